"""The KV rows of a model: a pool with every row, in memory or in a file, and an engine on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import avsg
import numpy as np


@dataclass
class Counts:
    """What a layer's steps did."""

    steps: int = 0
    selected: int = 0
    hits: int = 0
    misses: int = 0
    #: Misses whose slot held a row that was still valid.
    evictions: int = 0
    #: Slots that were dropped because their row was computed anew.
    invalidated: int = 0


@dataclass(eq=False)
class ModelRows:
    """The rows of all layers and one request: a pool and an engine, in which each layer has an indexer of its own."""

    layers: int
    #: The most tokens of the request.
    capacity: int
    #: The bytes of a row's latent and rotary parts.
    segment_bytes: tuple[int, ...]
    #: The ids that a token selects.
    k: int
    #: S.
    slots: int
    #: The most tokens of a decode step: 1 and the drafts.
    tokens: int = 1
    #: A folder, if the rows are in a file there.
    file: str | None = None

    @cached_property
    def shape(self) -> avsg.PoolShape:
        """The geometry of the pool."""
        file = self.file and avsg.PoolFile(self.file, layer_indexer=range(self.layers))
        return avsg.PoolShape(self.layers, self.capacity, self.segment_bytes, chunk_bytes=None, file=file)

    @cached_property
    def pool(self) -> avsg.Pool:
        """The pool, made when it is used first."""
        return avsg.Pool(**self.shape._asdict())

    @cached_property
    def engine(self) -> avsg.Engine:
        """The engine, made when it is used first."""
        sizes = {"k": self.k, "slots": self.slots, "tokens": self.tokens}
        # A second core would spin beside the framework's threads, and a layer's rows of one request are few.
        return avsg.Engine(self.pool, layer_indexer=range(self.layers), cores=1, **sizes)


class LayerRows:
    """The rows of one layer."""

    def __init__(self, model: ModelRows, layer: int) -> None:
        self.layer, self.capacity, self.k, self.tokens = layer, model.capacity, model.k, model.tokens
        self.segment_bytes = segment_bytes = model.segment_bytes
        self.pool, self.engine, tokens, k = model.pool, model.engine, model.tokens, model.k
        self.plan = self.engine.new_plan()
        self.batch = avsg.Batch.zeros(1, k, tokens, indexer=layer)
        #: All slots, for each segment.
        self.slots = [self.engine.buffer(layer, segment)[0] for segment in range(len(segment_bytes))]
        self.fresh_rows = [np.zeros((tokens, bytes_), np.uint8) for bytes_ in segment_bytes]
        self.fresh = avsg.Fresh(*self.fresh_rows)
        self._gathered = [np.empty((tokens * k, bytes_), np.uint8) for bytes_ in segment_bytes]
        self.counts = Counts()
        #: The id of each slot's row, kept only to count evictions.
        self._occupant = np.full(model.slots, -1, np.int32)
        #: Tokens whose row a slot may hold.
        self._planned = 0

    def write(self, first: int, *segments: np.ndarray) -> None:
        """Puts rows into the pool outside of a decode step, as prefill does."""
        self.pool.write(self.layer, first, *segments)
        if first < self._planned:
            # Slots may hold what these rows were before: start cold.
            self.batch.generation[0] += 1
            self._planned = 0
            self._occupant[:] = -1

    def read(self, rows: int) -> list[np.ndarray]:
        """Returns copies of the first rows of the pool, an array [rows, bytes] for each segment."""
        return self.pool.read(self.layer, 0, rows)

    def step(self, ids: np.ndarray, context: int, *segments: np.ndarray) -> np.ndarray:
        """Makes the slots hold the rows of `ids` [tokens, K] and returns the slots, [tokens, K].

        `context` tokens had a final row before this step, whose own rows are `segments`. They reach
        the pool, too.
        """
        count, batch = len(ids), self.batch
        batch.ids[:count], batch.cu_q[1] = ids, count
        batch.stable_len[0], batch.seq_len[0] = context, context + count
        for fresh, rows in zip(self.fresh_rows, segments):
            fresh[:count] = rows
        self.copy_misses()
        self.append()
        self._planned = context + count
        self._count(context)
        return self.plan.slots[:count]

    def copy_misses(self) -> None:
        """Plans the batch and copies the rows that no slot holds."""
        self.engine.step(self.batch, self.plan, self.layer, self.fresh)

    def append(self) -> None:
        """Writes the step's own rows to the pool."""
        self.engine.append(self.batch, self.layer, self.fresh)

    def gather(self, segment: int, slots: np.ndarray) -> np.ndarray:
        """Reads one segment of rows through their slots, from the engine's buffer.

        The next call overwrites them.
        """
        return self.slots[segment].take(slots, axis=0, out=self._gathered[segment][: slots.size], mode="clip")

    def _count(self, context: int) -> None:
        counters, found = self.plan.counters, self.plan.request(0)
        if counters.selected != self.k * self.batch.cu_q[1]:
            raise ValueError(
                f"{counters.selected} ids have a slot, but each token needs {self.k}; select no negative ids"
            )
        dropped = self._occupant >= context
        self.counts.invalidated += int(dropped.sum())
        self._occupant[dropped] = -1
        self.counts.evictions += int((self._occupant[found.miss_slot] >= 0).sum())
        self._occupant[found.miss_slot] = found.miss_id
        self.counts.steps += 1
        self.counts.selected += counters.selected
        self.counts.hits += counters.hits
        self.counts.misses += counters.misses
