"""What the processes tell each other is checked on both sides, and a refused request leaves the pool as it was."""

import os
import subprocess
import sys
from types import SimpleNamespace

import mlx.core as mx
import numpy as np
import pytest
from avsg_mlx_lm.harness.model import random_model
from conftest import LAYERS, K, SameProcess, served

from avsg_mooncake import Channel, MismatchError, NodePool, PeerError, PrefillServer, Receiver, TransferError, endpoint
from avsg_mooncake.compare import compare


def request(small, node, model=None, handle=None, timeout=5.0, end=None):
    """One request of the prompt, which `model` computes."""
    end = end or SameProcess()

    def client(address):
        receiver = Receiver(node, address, timeout=timeout, endpoint=lambda: end)
        return receiver.request(small.text[: small.prompt], small.steps)

    return served(model or small.model, client, handle)


def test_a_request_is_served_and_its_rows_are_free_again(small):
    node, end = small.node(), SameProcess()
    receiver = SimpleNamespace(request=lambda *_: request(small, node, end=end))
    report = compare(small.model, receiver, small.text, prompt=small.prompt, steps=small.steps, slots=small.slots)
    assert (report.steps, report.different) == (small.steps, 0) and report.total("misses") > 0
    assert node.free == node.rows and not end.registered and not end.closed


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ((LAYERS + 1, K, 1), "layers is 2 here, but 3"),
        ((LAYERS, K + 1, 1), "model is [0-9a-f]+ here, but [0-9a-f]+"),
        ((LAYERS, K, 2), "model is [0-9a-f]+ here, but [0-9a-f]+"),
        ((LAYERS, K, 1, mx.float32), r"segment_bytes is \(1024, 128, 128\) here, but \(2048, 256, 256\)"),
    ],
)
def test_another_model_is_refused_by_name(small, other, difference):
    """More layers, another K, other weights, another type."""
    node = small.node()
    with pytest.raises(MismatchError, match=f"^{difference} in the other process; run both with one model"):
        request(small, node, random_model(*other))
    assert node.free == node.rows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"geometry": None}, "layers is 2 here, but None in the other process"),
        ({"geometry": "segment_bytes"}, r"segment_bytes is \(1024, 128, 128\) here, but \(1024, 128, 64\)"),
        ({"geometry": "version"}, "version is 1 here, but 2"),
        ({"tokens": [1, 512]}, r"tokens is \[1, 512\], but needs to be ids from 0 to 511"),
        ({"tokens": []}, "tokens is"),
        ({"session": None}, "a request needs a session and targets of 2 layers"),
        ({"targets": [[0, 0, 0]]}, "targets of 2 layers"),
        ({"targets": [[0, 0], [0, 0]]}, "targets needs 3 addresses for each layer"),
        ({"targets": [[0, 0, -1], [0, 0, 0]]}, "targets needs 3 addresses for each layer"),
    ],
)
def test_the_prefill_process_refuses_what_it_cannot_serve(small, change, message):
    geometry = small.geometry.message()
    for field, value in [("segment_bytes", [1024, 128, 64]), ("version", 2)]:
        if change.get("geometry") == field:
            change = {"geometry": {**geometry, field: value}}
    right = {"geometry": geometry, "tokens": [1], "session": "nowhere", "targets": [[0] * 3] * LAYERS}

    def client(address):
        channel = Channel.connect(address, 5)
        try:
            assert channel.receive() == {"geometry": {**geometry, "segment_bytes": [1024, 128, 128]}}
            channel.send({**right, **change})
            return channel.receive()
        finally:
            channel.close()

    with pytest.raises(PeerError, match=f"the other process says: .*{message}"):
        served(small.model, client)


def wrong_bytes(message):
    return {**message, "crc": [0, 0, 0]} if "crc" in message else message


def skipped_rows(message):
    return {**message, "first": message["first"] + 1} if "first" in message else message


def too_many_rows(message):
    return {**message, "rows": 1000} if "rows" in message else message


def unknown_layer(message):
    return {**message, "layer": -1} if "layer" in message else message


def done_too_early(message):
    return {"done": 600, "token": 1} if "layer" in message else message


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (wrong_bytes, "layer 0, rows 0 to 511: the pool does not have the bytes that were sent"),
        (skipped_rows, "layer 0, row 1, which are not the next rows"),
        (too_many_rows, "layer 0 got rows 0 to 999, but has 600"),
        (unknown_layer, "layer -1, row 0, which are not"),
        (done_too_early, "the prompt has 600 tokens, but 0 to 0 rows arrived"),
    ],
)
def test_what_does_not_arrive_as_told_is_refused(small, monkeypatch, lie, said):
    send = Channel.send
    monkeypatch.setattr(Channel, "send", lambda channel, message: send(channel, lie(message)))
    node, end = small.node(), SameProcess()
    with pytest.raises(TransferError, match=said):
        request(small, node, end=end)
    assert node.free == node.rows and end.closed == 1 and not end.registered


def test_whatever_fails_in_the_prefill_process_is_told(small, monkeypatch):
    monkeypatch.setattr(PrefillServer, "_compute", lambda *_: 1 // 0)
    node = small.node()
    with pytest.raises(PeerError, match="the other process says: ZeroDivisionError: integer division"):
        request(small, node)
    assert node.free == node.rows


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda channel: channel._socket.recv(1), "the other process was silent for 0.2 s"),
        (lambda channel: channel._socket.sendall(b"{"), "has ended the connection"),
        (lambda channel: channel._socket.sendall(b"nothing\n"), "a message is no JSON"),
        (lambda channel: channel._socket.sendall(b"[1]\n"), r"a message is \[1\], but needs to be an object"),
        (lambda channel: channel.send({"error": "no memory"}), "the other process says: no memory"),
    ],
)
def test_a_peer_that_does_not_answer_is_refused(small, answer, said):
    node = small.node()
    with pytest.raises(PeerError, match=said):
        request(small, node, handle=answer, timeout=0.2)
    assert node.free == node.rows


def test_nobody_listens(small):
    node = small.node()
    with pytest.raises(PeerError, match="no connection to 127.0.0.1:1 .*is the process running"):
        Receiver(node, ("127.0.0.1", 1)).request([1], 0)
    assert node.free == node.rows


def test_rows_that_may_still_be_written_are_not_free(small, monkeypatch):
    """Where the transfers cannot be ended, no other request gets the rows."""
    node, end = small.node(), SameProcess()

    def fail():
        raise TransferError("it does not end")

    monkeypatch.setattr(end, "close", fail)
    with pytest.raises(TransferError, match="it does not end"):
        request(small, node, handle=lambda channel: channel.send({"geometry": small.geometry.message()}), end=end)
    assert node.free == 0


def test_a_node_gives_each_row_to_one_request(small):
    node, rng, held = NodePool(small.geometry, 100), np.random.default_rng(1), []
    for _ in range(500):
        if held and rng.random() < 0.5:
            node.release(held.pop(rng.integers(len(held))))
            continue
        try:
            held.append(node.reserve(int(rng.integers(1, 30))))
        except TransferError as error:
            assert "neighbouring rows were asked for" in str(error)
        taken = [row for rows in held for row in rows]
        assert len(taken) == len(set(taken)) == 100 - node.free
    for rows in held:
        node.release(rows)
    assert node.free == 100 and node.reserve(100) == range(100)
    with pytest.raises(
        TransferError, match="1 neighbouring rows were asked for, but at most 0 of the node's 100 are free"
    ):
        node.reserve(1)
    node.release(range(10))
    with pytest.raises(ValueError, match="rows 5 to 14 are free already"):
        node.release(range(5, 15))


@pytest.mark.parametrize("program", ["compare", "serve"])
def test_a_missing_libibverbs_is_one_sentence(program, tmp_path):
    (tmp_path / "mooncake").mkdir()
    (tmp_path / "mooncake" / "__init__.py").touch()
    (tmp_path / "mooncake" / "engine.py").write_text("raise ImportError('libibverbs.so.1: no such file')")
    command = [sys.executable, "-m", f"avsg_mooncake.{program}", "--layers=1"]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert ended.stderr.startswith("Mooncake's Transfer Engine does not load (libibverbs.so.1: no such file); install ")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)


def test_an_end_does_not_listen_at_a_port_of_a_closed_one(monkeypatch):
    """A write that was meant for the closed end must find nobody."""
    ports = iter([7001, 7001, 7002])

    class Engine:
        def initialize(self, *_):
            self.port = next(ports)
            listening.add(self.port)
            return 0

        def get_rpc_port(self):
            return self.port

        def __del__(self):
            listening.discard(self.port)

    listening = set()
    monkeypatch.setitem(sys.modules, "mooncake.engine", SimpleNamespace(TransferEngine=Engine))
    monkeypatch.setattr(endpoint, "_listening", lambda: set(listening))
    monkeypatch.setattr(endpoint, "_retired", set())
    first = endpoint.Endpoint()
    first.close()
    assert endpoint.Endpoint().session == "127.0.0.1:7002"
    monkeypatch.setattr(endpoint, "_retired", {7003})
    ports = iter([7003] * endpoint.ATTEMPTS)
    with pytest.raises(TransferError, match="16 ends in a row got a port of one that was closed"):
        endpoint.Endpoint()
