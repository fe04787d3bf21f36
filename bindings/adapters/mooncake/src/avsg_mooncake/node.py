"""The rows of one node: one pool, from which requests reserve rows."""

from __future__ import annotations

from threading import Lock

import avsg
import numpy as np

from .control import Geometry
from .errors import TransferError


class NodePool:
    """Rows of all layers and all requests of one node, in one `avsg.Pool`, which one process writes.

    A row has the segments of its `Geometry`: latent, rotary, and the indexer's key. A request
    reserves the same rows in each layer.
    """

    def __init__(self, geometry: Geometry, rows: int) -> None:
        self.geometry, self.rows = geometry, rows
        # One chunk for each layer and segment, so that reserved rows are one range of memory.
        self.pool = avsg.Pool(geometry.layers, rows, geometry.segment_bytes, chunk_bytes=None)
        segments = range(len(geometry.segment_bytes))
        #: All rows as bytes [rows, segment bytes], for each layer and segment.
        self.blocks = [[self.pool.blocks(layer, s)[0] for s in segments] for layer in range(geometry.layers)]
        self._free, self._lock = [range(rows)], Lock()

    @property
    def free(self) -> int:
        """The number of rows that no request has."""
        with self._lock:
            return sum(map(len, self._free))

    def reserve(self, count: int) -> range:
        """Takes `count` neighbouring rows."""
        if count < 1:
            raise ValueError(f"{count} rows were asked for, but a request needs at least 1")
        with self._lock:
            for place, gap in enumerate(self._free):
                if len(gap) >= count:
                    rest = range(gap.start + count, gap.stop)
                    self._free[place : place + 1] = [rest] if rest else []
                    return range(gap.start, gap.start + count)
            longest = max(map(len, self._free), default=0)
        raise TransferError(
            f"{count} neighbouring rows were asked for, but at most {longest} of the node's {self.rows} are free; "
            "wait until a request ends, or make the node's pool larger"
        )

    def release(self, rows: range) -> None:
        """Gives rows back, which other requests then get.

        Nothing may write to them any more.
        """
        with self._lock:
            gaps = sorted([*self._free, rows], key=lambda gap: gap.start)
            if any(after.start < before.stop for before, after in zip(gaps, gaps[1:])) or rows.stop > self.rows:
                raise ValueError(f"rows {rows.start} to {rows.stop - 1} are free already or not of this pool")
            merged = gaps[:1]
            for gap in gaps[1:]:
                if gap.start == merged[-1].stop:
                    merged[-1] = range(merged[-1].start, gap.stop)
                else:
                    merged.append(gap)
            self._free = merged

    def memory(self, layer: int, rows: range) -> list[np.ndarray]:
        """Returns some rows of a layer as bytes [rows, segment bytes], for each segment, without a copy."""
        return [block[rows.start : rows.stop] for block in self.blocks[layer]]
