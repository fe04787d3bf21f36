"""The caller's arrays in which an engine keeps its slots."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import Any

from . import _header
from ._arguments import struct
from ._header import PoolInfo
from .errors import InvalidError
from .memory import HOST, Span, output_span, span


def caller_buffer(config: _header.avsg_engine_config, pool: PoolInfo, arrays: Sequence[Any]) -> tuple[Any, list[Span]]:
    """Returns the C struct of slots in the caller's arrays, one for each segment of each layer, and their spans."""
    host, segments = (config.device or b"cpu") == b"cpu", pool.segments
    spans = [(output_span if host else span)(array, f"buffers[{index}]") for index, array in enumerate(arrays)]
    if len(spans) != pool.layers * segments:
        text = f"the pool has {pool.layers} layers of {segments} segments"
        raise InvalidError(f"{len(spans)} buffers were passed, but {text}; pass one for each segment of each layer")
    for index, found in enumerate(spans):
        stride = pool.segment_stride[index % segments]
        need = config.states * config.slots * stride
        if not found.contiguous or found.nbytes < need:
            raise InvalidError(
                f"buffers[{index}] has the shape {list(found.shape)} of {found.dtype}, but needs {need} contiguous "
                f"bytes: {config.slots} slots of {stride} for each of {config.states} states; pass a larger array"
            )
        if not host and found.device == HOST:
            raise InvalidError(f"buffers[{index}] is in host memory, but the engine is not; pass arrays of its device")
    bases = (c.c_void_p * len(spans))(*(found.address for found in spans))
    stride = tuple(pool.segment_stride)
    return struct(_header.avsg_caller_buffer, bases=bases, base_count=len(spans), slot_stride=stride), spans
