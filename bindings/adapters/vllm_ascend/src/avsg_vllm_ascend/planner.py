"""A planner with the arguments of vLLM-Ascend's `lru_resident_compact`."""

from __future__ import annotations

from typing import NamedTuple

import avsg
import numpy as np

from .arrays import array_at

#: The slots of a buffer that AVSG accepts.
MIN_SLOTS, MAX_SLOTS = 64, 65536
#: Bytes of a row of AVSG's pool. AVSG only plans here: vLLM-Ascend copies the rows.
ROW_BYTES = 1


class Sizes(NamedTuple):
    """The arguments of a call that must be the same in every call."""

    topk: int
    capacity: int
    max_token: int
    threads: int


class Layer:
    """The rows of one layer: their states in the engine and what they held last."""

    def __init__(self, index: int, rows: int) -> None:
        self.state = np.arange(index * rows, (index + 1) * rows, dtype=np.int32)
        #: A row's table starts cold when its generation changes.
        self.generation = np.ones(rows, np.int32)
        #: No slot of a row holds an id at or above its `top`.
        self.top = np.zeros(rows, np.int32)
        self.batches: dict[tuple[int, int], avsg.Batch] = {}


class ResidentPlanner:
    """Plans as `lru_resident_compact` does: same arguments, and outputs of the same meaning.

    A row is one token of one request. `rows` is the largest number of rows in a call, and `layers`
    the number of layers, which are told apart by the address of `slot_to_token`. The engine is made
    at the first call. One thread at a time may call.

    The function's own state is not used and not changed: `slot_to_token`, `lru_slots` and the
    workspaces. `last_req_ids` is read and written, because vLLM-Ascend sets it to make rows cold.
    """

    def __init__(self, rows: int, layers: int = 1, **options: object) -> None:
        if rows < 1 or layers < 1:
            raise ValueError(f"rows is {rows} and layers {layers}, but both must be at least 1")
        self.rows, self.layers, self._options = rows, layers, options
        self._sizes: Sizes | None = None
        self._engine: avsg.Engine | None = None
        self._layers: dict[int, Layer] = {}

    def __call__(
        self,
        req_ids: int,
        last_req_ids: int,
        topk_indices: int,
        stable_prefix_lens: int,
        slot_to_token: int,
        lru_slots: int,
        current_slots: int,
        miss_count: int,
        miss_tokens: int,
        miss_slots: int,
        token_mark_workspace: int,
        token_pos_workspace: int,
        slot_workspace: int,
        miss_position_workspace: int,
        epochs: int,
        num_reqs: int,
        topk: int,
        capacity: int,
        max_token: int,
        workspace_threads: int,
        requested_threads: int,
    ) -> None:
        """Plans `num_reqs` rows. The first fifteen arguments are addresses of host memory."""
        if num_reqs <= 0 or topk <= 0 or capacity <= 0 or max_token <= 0:
            return
        threads = min((n for n in (workspace_threads, requested_threads) if n > 0), default=1)
        self._prepare(Sizes(topk, capacity, max_token, threads), num_reqs)
        layer = self._layer(slot_to_token)
        ids = array_at(topk_indices, (num_reqs, topk))
        stable = np.clip(array_at(stable_prefix_lens, (num_reqs,)), 0, max_token)
        self._restart(layer, array_at(req_ids, (num_reqs,), np.int64), array_at(last_req_ids, (num_reqs,), np.int64))
        self._invalidate(layer, ids, stable)
        # Tokens from `max_token` on are padding here, and no mistake.
        self._engine.plan(self._batch_of(layer, topk_indices, ids), self._plan, check=False)
        # The engine forgets the slots of a plan that no layer has when the next one overwrites it.
        self._engine.transfer(self._plan, 0)
        array_at(current_slots, (num_reqs, topk))[:] = self._plan.slots[:num_reqs]
        counts = self._plan.misses[:num_reqs]
        array_at(miss_count, (num_reqs,))[:] = counts
        self._copy_misses("miss_id", array_at(miss_tokens, (num_reqs, topk)), counts)
        self._copy_misses("miss_slot", array_at(miss_slots, (num_reqs, topk)), counts)

    def _copy_misses(self, name: str, out: np.ndarray, counts: np.ndarray) -> None:
        """Copies a column of the miss lists, which begin at multiples of K, and ends each with -1."""
        out.fill(-1)
        column = self._misses[name]
        for row in np.flatnonzero(counts):
            out[row, : counts[row]] = column[row, : counts[row]]

    def _restart(self, layer: Layer, req_ids: np.ndarray, last: np.ndarray) -> None:
        """Empties the tables of rows whose request changed."""
        changed = req_ids != last
        if changed.any():
            layer.generation[: len(changed)] += changed
            layer.top[: len(changed)][changed] = 0
            last[:] = req_ids

    def _invalidate(self, layer: Layer, ids: np.ndarray, stable: np.ndarray) -> None:
        """Empties the slots of ids at or above the stable length.

        AVSG does it in a plan without tokens, because a row here may select more ids from the stable
        length on than it has tokens. Rows that hold no such id are padding in that plan.
        """
        top = layer.top[: len(ids)]
        stale = top > stable
        if stale.any():
            batch = avsg.Batch(
                ids[:0],
                cu_q=self._no_tokens[: len(ids) + 1],
                state=np.where(stale, layer.state[: len(ids)], np.int32(-1)),
                generation=layer.generation[: len(ids)],
                stable_len=stable,
                seq_len=stable,
            )
            self._engine.plan(batch, self._plan)
        largest = np.minimum(ids.max(axis=1), self._sizes.max_token - 1)
        np.maximum(np.minimum(top, stable), largest + 1, out=top)

    def _batch_of(self, layer: Layer, address: int, ids: np.ndarray) -> avsg.Batch:
        """Returns the batch of all rows of `ids`, which is made once for each address and length."""
        key = (address, len(ids))
        batch = layer.batches.get(key)
        if batch is None:
            rows = len(ids)
            batch = layer.batches[key] = avsg.Batch(
                ids,
                cu_q=self._cu_q[: rows + 1],
                state=layer.state[:rows],
                generation=layer.generation[:rows],
                stable_len=self._unset[:rows],
                seq_len=self._seq_len[:rows],
            )
        return batch

    def _layer(self, address: int) -> Layer:
        found = self._layers.get(address)
        if found is None:
            if len(self._layers) == self.layers:
                raise ValueError(
                    f"slot_to_token is at {address:#x}, a layer after the {self.layers} of the planner; raise layers"
                )
            found = self._layers[address] = Layer(len(self._layers), self.rows)
        return found

    def _prepare(self, sizes: Sizes, num_reqs: int) -> None:
        """Makes the engine at the first call, and checks that later calls have the same sizes."""
        if num_reqs > self.rows:
            raise ValueError(f"num_reqs is {num_reqs}, but the planner has {self.rows} rows; raise rows")
        if sizes == self._sizes:
            return
        if self._sizes is not None:
            raise ValueError(f"the call has {sizes}, but the first call had {self._sizes}; make another planner")
        slots = slots_of(sizes.topk, sizes.capacity)
        pool = avsg.Pool(layers=1, rows=sizes.max_token, row_bytes=ROW_BYTES)
        states = self.rows * self.layers
        options = {"cores": sizes.threads, **self._options}
        self._engine = avsg.Engine(pool, k=sizes.topk, slots=slots, tokens=1, states=states, **options)
        self._plan = self._engine.new_plan(self.rows, self.rows)
        shape = (self.rows, sizes.topk)
        self._misses = {name: self._plan.view(name).numpy().reshape(shape) for name in ("miss_id", "miss_slot")}
        self._cu_q = np.arange(self.rows + 1, dtype=np.int32)
        self._no_tokens = np.zeros(self.rows + 1, np.int32)
        self._unset = np.full(self.rows, -1, np.int32)
        self._seq_len = np.full(self.rows, sizes.max_token, np.int32)
        self._sizes = sizes


def slots_of(topk: int, capacity: int) -> int:
    """Returns the slots that AVSG uses of a buffer of `capacity`: the largest multiple of 64."""
    slots = min(capacity // MIN_SLOTS * MIN_SLOTS, MAX_SLOTS)
    if slots < max(topk, MIN_SLOTS):
        raise ValueError(
            f"capacity is {capacity} and topk {topk}, but AVSG uses the {slots} slots of the largest multiple of 64 "
            f"and needs at least {max(topk, MIN_SLOTS)}; raise topk_buffer_size"
        )
    return slots
