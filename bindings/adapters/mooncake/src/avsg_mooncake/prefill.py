"""The process that computes prompts and writes their rows into the pool of another process."""

from __future__ import annotations

import socket
import sys
import time
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from avsg_mlx_lm.bytes import rows_of
from avsg_mlx_lm.harness.decoding import PREFILL_CHUNK
from mlx_lm.models.cache import CacheList, KVCache

from .control import Channel, Geometry
from .endpoint import Endpoint
from .errors import PeerError, TransferError


class Writer:
    """Writes the rows of one request, in a thread of its own, while the model computes the next layer.

    `staging` is registered memory for one chunk of a prompt, [layer][segment], and `targets` has the
    address of the request's first row in the other process, [layer][segment].
    """

    def __init__(
        self, endpoint: Endpoint, channel: Channel, staging: list[list[np.ndarray]], session: str, targets: list
    ) -> None:
        self._endpoint, self._channel = endpoint, channel
        self._staging, self._session, self._targets = staging, session, targets
        self._thread = ThreadPoolExecutor(1)
        #: The last write of each layer.
        self._last: dict[int, Future] = {}
        #: Seconds that writes took, and seconds of them that the model waited for.
        self.seconds = self.waited = 0.0

    def send(self, layer: int, first: int, segments: list[np.ndarray]) -> None:
        """Copies a layer's rows from row `first` on, and begins to write them.

        Waits for the layer's write of the chunk before. Raises what that one raised.
        """
        self._wait(layer)
        staged = [memory[: len(rows)] for memory, rows in zip(self._staging[layer], segments)]
        for memory, rows in zip(staged, segments):
            memory[:] = rows
        self._last[layer] = self._thread.submit(self._write, layer, first, staged)

    def finish(self) -> None:
        """Waits until every row is in the other process."""
        for layer in list(self._last):
            self._wait(layer)

    def close(self) -> None:
        """Ends the thread, after the write that it is in."""
        self._thread.shutdown(cancel_futures=True)

    def _wait(self, layer: int) -> None:
        begin = time.perf_counter()
        if layer in self._last:
            self._last.pop(layer).result()
        self.waited += time.perf_counter() - begin

    def _write(self, layer: int, first: int, staged: list[np.ndarray]) -> None:
        begin = time.perf_counter()
        targets = [target + first * rows.shape[1] for target, rows in zip(self._targets[layer], staged)]
        sums = [zlib.crc32(rows) for rows in staged]
        self._endpoint.write(self._session, [rows.ctypes.data for rows in staged], targets, [r.nbytes for r in staged])
        self._channel.send({"layer": layer, "first": first, "rows": len(staged[0]), "crc": sums})
        self.seconds += time.perf_counter() - begin


class SentKeys(KVCache):
    """The indexer's own keys. They are the last that a layer adds to its cache, so the layer is sent with them."""

    def __init__(self, layer: int, rows: KVCache, writer: Writer) -> None:
        super().__init__()
        self._layer, self._rows, self._writer = layer, rows, writer

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Takes the keys of new tokens, computes the layer's rows, and sends both."""
        first = self.offset
        fetched = super().update_and_fetch(keys, values)
        new = [part[..., first : self.offset, :] for part in (self._rows.keys, self._rows.values)] + [keys]
        mx.eval(new)
        self._writer.send(self._layer, first, [rows_of(part) for part in new])
        return fetched


class PrefillServer:
    """Computes prompts of a DeepSeek-V3.2 model for other processes, one at a time.

    `chunk` is the number of tokens that the model takes at once: logits have the bits of a process
    that prefills with the same one. `timeout` is the number of seconds that a message may take.
    """

    writer = Writer

    def __init__(
        self, model: nn.Module, endpoint: Endpoint, *, chunk: int = PREFILL_CHUNK, timeout: float = 30.0
    ) -> None:
        self.geometry = Geometry.of(model)
        self._model, self._endpoint, self._chunk, self._timeout = model, endpoint, chunk, timeout
        self._staging = [
            [np.zeros((chunk, bytes_), np.uint8) for bytes_ in self.geometry.segment_bytes]
            for _ in range(self.geometry.layers)
        ]
        endpoint.register([(part.ctypes.data, part.nbytes) for layer in self._staging for part in layer])

    def serve(self, listener: socket.socket) -> None:
        """Serves each process that connects, until the listening socket is closed. Failed requests are logged."""
        while True:
            try:
                connection, peer = listener.accept()
            except OSError:
                return
            channel = Channel(connection, self._timeout)
            try:
                self.handle(channel)
            except Exception as error:
                # No request ends the service of the others.
                print(f"the request of {peer[0]}:{peer[1]} failed: {told(error)}", file=sys.stderr, flush=True)
            finally:
                channel.close()

    def handle(self, channel: Channel) -> None:
        """Serves one request. What fails is told to the other process, and raised."""
        try:
            channel.send({"geometry": self.geometry.message()})
            request = channel.receive()
            self.geometry.check(request.get("geometry"))
            channel.send(self._compute(channel, *self._read(request)))
        except Exception as error:
            with suppress(PeerError):
                channel.send({"error": told(error)})
            raise

    def _read(self, request: dict[str, Any]) -> tuple[list[int], str, list]:
        """Returns the tokens, the session and the addresses of a request."""
        tokens, session, targets = (request.get(name) for name in ("tokens", "session", "targets"))
        vocabulary, segments = self._model.args.vocab_size, len(self.geometry.segment_bytes)
        if (
            not isinstance(tokens, list)
            or not tokens
            or not all(type(t) is int and 0 <= t < vocabulary for t in tokens)
        ):
            raise PeerError(f"tokens is {tokens!r:.40}, but needs to be ids from 0 to {vocabulary - 1}")
        if not isinstance(session, str) or not isinstance(targets, list) or len(targets) != self.geometry.layers:
            raise PeerError(f"a request needs a session and targets of {self.geometry.layers} layers")
        for target in targets:
            if not isinstance(target, list) or len(target) != segments or not all(map(is_address, target)):
                raise PeerError(f"targets needs {segments} addresses for each layer")
        return tokens, session, targets

    def _compute(self, channel: Channel, tokens: list[int], session: str, targets: list) -> dict[str, Any]:
        """Runs a prompt, and returns the message that ends the request."""
        begin = time.perf_counter()
        writer = self.writer(self._endpoint, channel, self._staging, session, targets)
        try:
            cache = []
            for layer in range(self.geometry.layers):
                rows = KVCache()
                cache.append(CacheList(rows, SentKeys(layer, rows, writer)))
            for start in range(0, len(tokens), self._chunk):
                logits = self._model(mx.array([tokens[start : start + self._chunk]]), cache)
                mx.eval(logits)
            writer.finish()
        finally:
            writer.close()
        times = {"seconds": time.perf_counter() - begin, "write_seconds": writer.seconds, "waited": writer.waited}
        return {"done": len(tokens), "token": int(mx.argmax(logits[0, -1]).item()), **times}


def is_address(value: object) -> bool:
    """Whether a value is an address, with room for rows behind it."""
    return type(value) is int and 0 <= value < 1 << 63


def told(error: Exception) -> str:
    """Returns an error as a line for the other process and for the log."""
    return str(error) if isinstance(error, TransferError) else f"{type(error).__name__}: {error}"
