"""One layer's KV rows: a pool with every row, in memory or in a file, and an engine on it."""

from __future__ import annotations

from dataclasses import dataclass

import avsg
import numpy as np


@dataclass
class Counts:
    """What a layer's steps did, since the last `clear`."""

    steps: int = 0
    selected: int = 0
    hits: int = 0
    misses: int = 0
    #: Misses whose slot held a row that was still valid.
    evictions: int = 0
    #: Slots that were dropped because their row was computed anew.
    invalidated: int = 0

    def clear(self) -> None:
        self.__init__()


class LayerRows:
    """The rows of one layer and one request.

    `capacity` is the most tokens, `segment_bytes` the bytes of a row's latent and rotary parts, `k`
    the ids that a token selects, `slots` S, `tokens` the most tokens of a decode step (1 and the
    drafts), and `file` that of `avsg.Pool`.
    """

    def __init__(
        self,
        capacity: int,
        segment_bytes: tuple[int, ...],
        k: int,
        slots: int,
        tokens: int = 1,
        file: avsg.PoolFile | str | None = None,
        **options,
    ) -> None:
        self.capacity, self.k, self.tokens = capacity, k, tokens
        self.segment_bytes = segment_bytes
        self.pool = avsg.Pool(1, capacity, segment_bytes, chunk_bytes=None, file=file)
        # A second core would spin beside the framework's threads, and a layer's rows of one request
        # are few.
        self.engine = avsg.Engine(self.pool, k=k, slots=slots, tokens=tokens, **{"cores": 1, **options})
        self.plan, self.batch = self.engine.new_plan(), avsg.Batch.zeros(1, k, tokens)
        #: All slots, for each segment.
        self.slots = [self.engine.buffer(0, segment)[0] for segment in range(len(segment_bytes))]
        self.fresh_rows = [np.zeros((tokens, bytes_), np.uint8) for bytes_ in segment_bytes]
        self.fresh = avsg.Fresh(*self.fresh_rows)
        self._gathered = [np.empty((tokens * k, bytes_), np.uint8) for bytes_ in segment_bytes]
        self.counts = Counts()
        #: The id of each slot's row, kept only to count evictions.
        self._occupant = np.full(slots, -1, np.int32)
        #: Tokens whose row a slot may hold.
        self._planned = 0

    def write(self, first: int, *segments: np.ndarray) -> None:
        """Puts rows into the pool outside of a decode step, as prefill does."""
        self.pool.write(0, first, *segments)
        if first < self._planned:
            # Slots may hold what these rows were before: start cold.
            self.batch.generation[0] += 1
            self._planned = 0
            self._occupant[:] = -1

    def read(self, rows: int) -> list[np.ndarray]:
        """Returns copies of the first rows of the pool, an array [rows, bytes] for each segment."""
        return self.pool.read(0, 0, rows)

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
        self.engine.step(self.batch, self.plan, 0, self.fresh)

    def append(self) -> None:
        """Writes the step's own rows to the pool."""
        self.engine.append(self.batch, 0, self.fresh)

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
