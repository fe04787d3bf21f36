"""What the tests share: a small model, its text, and transfers inside of one process."""

import ctypes
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from avsg_mlx_lm.harness.model import random_model, random_text

from avsg_mooncake import Channel, Endpoint, Geometry, NodePool, PrefillServer, TransferError

LAYERS, K = 2, 32


class Small:
    """Two layers with K = 32, and a prompt of two chunks."""

    slots, prompt, steps = 64, 600, 8

    def __init__(self):
        self.model, self.text = random_model(LAYERS, K), random_text(700)
        self.geometry = Geometry.of(self.model)

    def node(self, requests=1):
        return NodePool(self.geometry, requests * (self.prompt + self.steps))


@pytest.fixture(scope="session")
def small():
    return Small()


class SameProcess:
    """Stands in for Mooncake: both ends are in one process, and a write copies memory."""

    session = "same process"

    def __init__(self):
        self.registered, self.closed = set(), 0

    def register(self, ranges):
        self.registered.update(ranges)

    def unregister(self, ranges):
        self.registered.difference_update(ranges)

    def write(self, session, sources, targets, lengths):
        for source, target, length in zip(sources, targets, lengths):
            ctypes.memmove(target, source, length)

    def close(self):
        self.closed += 1
        self.registered.clear()


def served(model, client, handle=None, timeout=5.0):
    """Serves one request of `client`, which gets the address and whose result is returned.

    This thread serves, because MLX is made for one thread, and another one runs the client.
    `handle` takes the channel in the place of the server's own method.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        result = thread.submit(client, listener.getsockname())
        channel = Channel(listener.accept()[0], timeout)
        with suppress(Exception):  # The client is told what failed.
            (handle or PrefillServer(model, SameProcess()).handle)(channel)
        channel.close()
        return result.result()


@pytest.fixture(scope="session")
def mooncake():
    """Skips a test where Mooncake does not load."""
    try:
        Endpoint().close()
    except TransferError as error:
        pytest.skip(str(error))
