"""`lru_resident_compact`, implemented again from its description, on NumPy arrays."""

import numpy as np

#: The names of the fifteen arrays, in the order of the arguments.
NAMES = (
    "req_ids",
    "last_req_ids",
    "topk_indices",
    "stable_prefix_lens",
    "slot_to_token",
    "lru_slots",
    "current_slots",
    "miss_count",
    "miss_tokens",
    "miss_slots",
    "token_mark",
    "token_pos",
    "slot_workspace",
    "miss_positions",
    "epochs",
)
GARBAGE = 1_234_567


class Arrays:
    """The arrays that vLLM-Ascend's manager keeps for one layer, with its shapes and types."""

    def __init__(self, rows, topk, capacity, max_token, threads=2):
        self.sizes = (topk, capacity, max_token, threads, threads)
        self.req_ids = np.zeros(rows, np.int64)
        self.last_req_ids = np.full(rows, -1, np.int64)
        self.topk_indices = np.full((rows, topk), -1, np.int32)
        self.stable_prefix_lens = np.zeros(rows, np.int32)
        self.slot_to_token = np.full((rows, capacity), -1, np.int32)
        self.lru_slots = np.tile(np.arange(capacity, dtype=np.int32), (rows, 1))
        self.current_slots = np.empty((rows, topk), np.int32)
        self.miss_count = np.empty(rows, np.int32)
        self.miss_tokens = np.empty((rows, topk), np.int32)
        self.miss_slots = np.empty((rows, topk), np.int32)
        self.token_mark = np.zeros((threads, max_token), np.int32)
        self.token_pos = np.full((threads, max_token), -1, np.int32)
        self.slot_workspace = np.empty((threads, 3 * capacity), np.int32)
        self.miss_positions = np.empty((threads, topk), np.int32)
        self.epochs = np.zeros(threads, np.int32)

    def poison_outputs(self):
        """Fills the outputs with a number that no correct output contains."""
        for name in ("current_slots", "miss_count", "miss_tokens", "miss_slots"):
            getattr(self, name).fill(GARBAGE)

    def arguments(self, num_reqs):
        """Returns the arguments of a call."""
        return (*(getattr(self, name).ctypes.data for name in NAMES), num_reqs, *self.sizes)

    def reference(self, num_reqs):
        """Plans by the reference."""
        for row in range(num_reqs):
            self._row(row)

    def _row(self, row):
        _, capacity, max_token, *_ = self.sizes
        held, order = self.slot_to_token[row], self.lru_slots[row]
        if self.last_req_ids[row] != self.req_ids[row]:
            held.fill(-1)
            order[:] = np.arange(capacity)
            self.last_req_ids[row] = self.req_ids[row]
        held[held >= self.stable_prefix_lens[row]] = -1
        positions = {}
        for position, token in enumerate(self.topk_indices[row].tolist()):
            if 0 <= token < max_token:
                positions.setdefault(token, position)
        current = self.current_slots[row]
        for out in (current, self.miss_tokens[row], self.miss_slots[row]):
            out.fill(-1)
        hits, others = [], []
        for slot in order.tolist():
            position = positions.pop(int(held[slot]), None)
            (others if position is None else hits).append(slot)
            if position is not None:
                current[position] = slot
        missed = sorted(positions.items(), key=lambda item: item[1])
        for index, (token, position) in enumerate(missed):
            slot = others[index]
            held[slot] = token
            current[position] = self.miss_slots[row, index] = slot
            self.miss_tokens[row, index] = token
        count = self.miss_count[row] = len(missed)
        order[:] = others[count:] + others[:count] + hits
