"""What the two processes tell each other: lines of JSON over a TCP connection, beside the rows themselves."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from dataclasses import asdict, dataclass, fields
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten

from .errors import MismatchError, PeerError

#: The version of the messages. Any change of them raises it.
VERSION = 1
#: The bytes of the longest message: the ids of about a million tokens.
LONGEST = 1 << 23


@dataclass(frozen=True)
class Geometry:
    """What both processes must have in common before the first row is written."""

    layers: int
    #: Bytes of a row's latent part, of its rotary part, and of the indexer's key.
    segment_bytes: tuple[int, ...]
    #: A digest of the model's configuration and of the first values of each weight.
    model: str
    version: int = VERSION

    @classmethod
    def of(cls, model: nn.Module) -> Geometry:
        """Reads the geometry of a DeepSeek-V3.2 model of mlx-lm."""
        args, itemsize = model.args, model.model.embed_tokens.weight.dtype.size
        digest = hashlib.sha256(repr(args).encode())
        for name, weight in sorted(tree_flatten(model.parameters())):
            first = np.array(weight.reshape(-1)[:16].view(mx.uint8), copy=False)
            digest.update(f"{name} {weight.shape} {weight.dtype}".encode() + first.tobytes())
        widths = args.kv_lora_rank, args.qk_rope_head_dim, args.index_head_dim
        return cls(len(model.layers), tuple(width * itemsize for width in widths), digest.hexdigest()[:16])

    def message(self) -> dict[str, Any]:
        """Returns what `check` reads on the other side."""
        return asdict(self)

    def check(self, other: Any) -> None:
        """Raises MismatchError if the other process differs, and says in what."""
        for field in fields(self):
            own = getattr(self, field.name)
            theirs = other.get(field.name) if isinstance(other, dict) else None
            theirs = tuple(theirs) if isinstance(theirs, list) else theirs
            if theirs != own:
                raise MismatchError(
                    f"{field.name} is {own} here, but {theirs} in the other process; "
                    "run both with one model and one version of this package"
                )


def address_of(text: str) -> tuple[str, int]:
    """Reads "host:port". Port 0 lets the system choose one."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is no address; write host:port")
    return host, int(port)


class Channel:
    """Messages over a connected socket. A message that takes longer than `timeout` seconds raises PeerError."""

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        self._socket, self._timeout, self._read = connection, timeout, b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def connect(cls, address: tuple[str, int], timeout: float) -> Channel:
        """Connects to a listening process."""
        try:
            return cls(socket.create_connection(address, timeout), timeout)
        except OSError as error:
            raise PeerError(f"no connection to {address[0]}:{address[1]} ({error}); is the process running?") from error

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message."""
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise PeerError(f"the other process takes no message: {error}") from error

    def receive(self) -> dict[str, Any]:
        """Waits for the next message. One that tells of an error raises it."""
        end = time.monotonic() + self._timeout
        while b"\n" not in self._read:
            if len(self._read) > LONGEST:
                raise PeerError(f"a message has more than {LONGEST} bytes; send a shorter prompt")
            try:
                self._socket.settimeout(max(end - time.monotonic(), 1e-3))
                part = self._socket.recv(1 << 16)
            except TimeoutError:
                raise PeerError(
                    f"the other process was silent for {self._timeout:g} s; see what it does, or raise the time-out"
                ) from None
            except OSError as error:
                raise PeerError(f"the connection to the other process failed: {error}") from error
            if not part:
                raise PeerError("the other process has ended the connection; see its output")
            self._read += part
        line, self._read = self._read.split(b"\n", 1)
        try:
            message = json.loads(line)
        except ValueError as error:
            raise PeerError(f"a message is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise PeerError(f"a message is {message!r:.40}, but needs to be an object")
        if "error" in message:
            raise PeerError(f"the other process says: {message['error']}")
        return message

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()
