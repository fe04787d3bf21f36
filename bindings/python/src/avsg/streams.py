"""Streams: which address a call passes as its `stream`."""

from __future__ import annotations

import sys
from typing import Any

from ._arguments import whole
from .errors import InvalidError


def stream_address(stream: Any) -> int | None:
    """Returns the address of a stream.

    It is an int, a framework's stream object, or None for a waiting call.
    """
    if stream is None:
        return None
    if isinstance(stream, int):
        return whole(stream, "stream")
    for name in ("npu_stream", "cuda_stream", "_as_parameter_"):
        address = getattr(stream, name, None)
        if address is not None:
            return getattr(address, "value", address)
    raise TypeError(f"stream is of type {type(stream).__name__}; pass an address or an object with .npu_stream")


def current_stream(device: str, tensor: Any) -> int:
    """Returns the address of torch's current stream on a tensor's device."""
    torch = sys.modules.get("torch")
    module = getattr(torch, device, None) if torch else None
    if module is None or not hasattr(module, "current_stream"):
        raise InvalidError(f"the arrays are on the device {device}, but no stream is known there; pass `stream`")
    address = stream_address(module.current_stream(getattr(tensor, "device", None)))
    if not address:
        raise InvalidError(
            f"the current stream of {device} is its default stream; enter a stream of its own, or pass `stream`"
        )
    return address
