"""The process that decodes: it reserves rows, lets another process fill them, and reads them through AVSG."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

import avsg
import mlx.core as mx
import mlx.nn as nn
from avsg_mlx_lm.bytes import array_of

from .control import Channel
from .endpoint import Endpoint, Range
from .errors import PeerError, TransferError
from .node import NodePool


class Request:
    """A prompt whose rows are in the node's pool, and rows for the tokens that follow.

    At the end of its block the rows are free again, so that its caches must not be used afterwards.
    """

    def __init__(self, node: NodePool, rows: range, length: int, done: dict[str, Any]) -> None:
        self._node, self.rows, self.length = node, rows, length
        #: The most probable next token.
        self.token: int = done["token"]
        #: Seconds of the other process: the whole prefill, its writes, and its waits for them.
        self.times = {name: done.get(name) for name in ("seconds", "write_seconds", "waited")}

    def cache(self, model: nn.Module) -> list:
        """Makes the cache of a model inside of a block of `avsg_mlx_lm.offload`.

        KV rows stay where they are. MLX imports the indexer's keys by copying them.
        """
        geometry = self._node.geometry
        memory = [self._node.memory(layer, self.rows) for layer in range(geometry.layers)]
        shape = avsg.PoolShape(geometry.layers, len(self.rows), geometry.segment_bytes[:2])
        cache = model.make_cache(avsg.Pool.over(shape, [part for segments in memory for part in segments[:2]]))
        dtype = model.model.embed_tokens.weight.dtype
        for (rows, keys), (*_, sent) in zip((layer.caches for layer in cache), memory):
            rows.offset = self.length
            own = array_of(sent[: self.length], dtype)
            keys.state = (own, mx.zeros_like(own), self.length)
        return cache

    def close(self) -> None:
        """Gives the rows back."""
        if self.rows:
            self._node.release(self.rows)
            self.rows = range(0)

    def __enter__(self) -> Request:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Receiver:
    """Gets prompts computed by one prefill process, one at a time. Several receivers may share a node's pool.

    `address` is where the prefill process listens, `timeout` the number of seconds that it may be
    silent, and `endpoint` makes this side's end of the transfers.
    """

    def __init__(
        self,
        node: NodePool,
        address: tuple[str, int],
        *,
        timeout: float = 30.0,
        endpoint: Callable[[], Endpoint] = Endpoint,
    ) -> None:
        self._node, self._address, self._timeout, self._make_endpoint = node, address, timeout, endpoint
        self._endpoint: Endpoint | None = None

    def request(self, tokens: list[int], new_tokens: int) -> Request:
        """Waits until the rows of a prompt are in the node's pool, with room for `new_tokens` rows behind them.

        If it raises, the pool is as it was. Rows that the other process may still be writing are not
        free before this side's end of the transfers is closed, which makes such a write impossible.
        """
        if not tokens or new_tokens < 0:
            raise ValueError(
                f"{len(tokens)} tokens and {new_tokens} new ones were asked for; pass a prompt, and 0 or more"
            )
        channel = Channel.connect(self._address, self._timeout)
        try:
            self._node.geometry.check(channel.receive().get("geometry"))
            rows = self._node.reserve(len(tokens) + new_tokens)
            try:
                done = self._receive(channel, tokens, range(rows.start, rows.start + len(tokens)))
            except BaseException:
                self.close()
                self._node.release(rows)
                raise
            return Request(self._node, rows, len(tokens), done)
        finally:
            channel.close()

    def close(self) -> None:
        """Closes this side's end of the transfers. The next request makes another."""
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    def _receive(self, channel: Channel, tokens: list[int], rows: range) -> dict[str, Any]:
        """Has `rows` filled, and returns the message that ends the request."""
        memory = [self._node.memory(layer, rows) for layer in range(self._node.geometry.layers)]
        ranges: list[Range] = [(part.ctypes.data, part.nbytes) for segments in memory for part in segments]
        if self._endpoint is None:
            self._endpoint = self._make_endpoint()
        self._endpoint.register(ranges)
        channel.send(
            {
                "geometry": self._node.geometry.message(),
                "tokens": tokens,
                "session": self._endpoint.session,
                "targets": [[part.ctypes.data for part in segments] for segments in memory],
            }
        )
        arrived = [0] * len(memory)
        while "done" not in (message := channel.receive()):
            self._check(message, memory, arrived)
        if message["done"] != len(tokens) or set(arrived) != {len(tokens)} or type(message.get("token")) is not int:
            raise PeerError(f"the prompt has {len(tokens)} tokens, but {min(arrived)} to {max(arrived)} rows arrived")
        self._endpoint.unregister(ranges)
        return message

    @staticmethod
    def _check(message: dict[str, Any], memory: list, arrived: list[int]) -> None:
        """Checks that a message tells of the next rows of a layer, and that these bytes are in the pool."""
        layer, first, rows, sums = (message.get(name) for name in ("layer", "first", "rows", "crc"))
        if type(layer) is not int or not 0 <= layer < len(arrived) or first != arrived[layer] or type(rows) is not int:
            raise PeerError(f"a message tells of layer {layer}, row {first}, which are not the next rows of a layer")
        if rows < 1 or first + rows > len(memory[layer][0]):
            raise PeerError(f"layer {layer} got rows {first} to {first + rows - 1}, but has {len(memory[layer][0])}")
        found = [zlib.crc32(part[first : first + rows]) for part in memory[layer]]
        if found != sums:
            raise TransferError(
                f"layer {layer}, rows {first} to {first + rows - 1}: the pool does not have the bytes that were sent; "
                "let the request be computed again"
            )
        arrived[layer] += rows
