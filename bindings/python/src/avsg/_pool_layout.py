"""The layout of a pool over the caller's arrays, read from their shapes and strides."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _header
from ._arguments import struct
from .errors import InvalidError
from .memory import Span, output_span


class Rows(NamedTuple):
    """Where the rows of an array are: rows of a block, 0 without blocks, and the bytes between blocks and rows."""

    block_rows: int
    block_stride: int
    row_stride: int
    #: Bytes from the first row to the end of the last.
    bytes: int


def rows_of(found: Span, what: str, bytes_: int, row_stride: int, rows: int) -> Rows:
    """Returns where the rows of an array are: one behind the other, or [rows, ...], or [blocks, rows, ...]."""
    if found.contiguous:
        return Rows(0, 0, row_stride or bytes_, found.nbytes)
    # The last axes are the elements of a row, one behind the other.
    axes, length = len(found.shape), found.itemsize
    while axes and length < bytes_ and found.strides[axes - 1] == length:
        axes -= 1
        length *= found.shape[axes]
    counts, strides = found.shape[:axes], found.strides[:axes]
    if length < bytes_ or axes not in (1, 2) or min(strides) < length:
        raise InvalidError(
            f"{what} has the shape {list(found.shape)} and {list(found.strides)} bytes between elements, but rows "
            f"of {bytes_} bytes are contiguous; pass [rows, elements] or [blocks, rows of a block, elements]"
        )
    if row_stride not in (0, strides[-1]):
        raise InvalidError(
            f"{what} has {strides[-1]} bytes from row to row, but row_stride is {row_stride}; leave row_stride out"
        )
    held = counts[0] * counts[-1] if axes == 2 else counts[0]
    if held < rows:
        raise InvalidError(f"{what} has {held} rows, but the pool has {rows}; pass an array of all rows")
    end = length + sum((count - 1) * stride for count, stride in zip(counts, strides))
    return Rows(counts[1] if axes == 2 else 0, strides[0] if axes == 2 else 0, strides[-1], end)


def pool_layout(config: _header.avsg_pool_config, arrays: Sequence[Any]) -> tuple[Any, list[Span]]:
    """Returns the C struct of a layout in the caller's arrays, one for each segment of each layer, and their spans."""
    segments = config.segments
    spans = [output_span(array, f"arrays[{index}]") for index, array in enumerate(arrays)]
    if len(spans) != config.layers * segments:
        text = f"the pool has {config.layers} layers of {segments} segments"
        raise InvalidError(f"{len(spans)} arrays were passed, but {text}; pass one for each segment of each layer")
    found = []
    for index, span in enumerate(spans):
        bytes_, row_stride = (getattr(config, name)[index % segments] for name in ("segment_bytes", "segment_stride"))
        found.append(rows_of(span, f"arrays[{index}]", bytes_, row_stride, config.rows))
    block_rows = max(rows.block_rows for rows in found)
    # Rows without blocks are blocks that follow one another.
    found = [rows if rows.block_rows else rows._replace(block_stride=block_rows * rows.row_stride) for rows in found]
    for index, rows in enumerate(found):
        same = found[index % segments]
        if rows.block_rows not in (0, block_rows) or rows[1:3] != same[1:3]:
            raise InvalidError(
                f"arrays[{index}] has blocks of {rows.block_rows} rows, {rows.block_stride} and {rows.row_stride} "
                f"bytes apart, but others have blocks of {block_rows}, in its segment {same.block_stride} and "
                f"{same.row_stride} bytes apart; lay out all layers of a segment alike"
            )
    regions = [_header.avsg_region(data=span.address, bytes=rows.bytes) for span, rows in zip(spans, found)]
    parts = [
        _header.avsg_pool_part(region=index, segment=segment, first_layer=layer, layers=1, rows=config.rows)
        for index, (layer, segment) in enumerate(itertools.product(range(config.layers), range(segments)))
    ]
    layout = struct(
        _header.avsg_pool_layout,
        block_rows=block_rows,
        block_stride=tuple(rows.block_stride for rows in found[:segments]),
        row_stride=tuple(rows.row_stride for rows in found[:segments]),
        regions=(_header.avsg_region * len(regions))(*regions),
        region_count=len(regions),
        parts=(_header.avsg_pool_part * len(parts))(*parts),
        part_count=len(parts),
    )
    return layout, spans
