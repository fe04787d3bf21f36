"""Random lives of a batch of requests, as vLLM-Ascend's scheduler makes them."""

import itertools
from dataclasses import dataclass

import numpy as np

PADDED = -1


@dataclass
class Request:
    """A request; `length` is the number of its tokens whose rows are final."""

    number: int
    length: int


class Life:
    """Requests with `tokens` rows each, that join, leave, and reject drafts.

    A token's row in the host pool has a version, which changes when the row is written again.
    """

    def __init__(self, seed, tokens, requests, topk, max_token):
        self.random = np.random.default_rng(seed)
        self.tokens, self.most, self.topk, self.max_token = tokens, requests, topk, max_token
        self.numbers = itertools.count(100)
        self.requests, self.versions, self.step = [], {}, 0

    def next_step(self, arrays):
        """Changes the batch, writes the inputs of one step into `arrays`, and returns its rows."""
        self.step += 1
        self._schedule()
        row = 0
        for request in self.requests:
            stable = max(request.length, 0)
            for draft in range(self.tokens):
                self.versions[request.number, stable + draft] = self.step
            for draft in range(self.tokens):
                arrays.req_ids[row] = request.number
                arrays.stable_prefix_lens[row] = stable
                arrays.topk_indices[row] = self._select(stable + draft + 1, request)
                row += 1
        return row

    def accept(self):
        """Accepts at least one token of each request, and rejects the drafts after it."""
        for request in self.requests:
            request.length += int(self.random.integers(1, self.tokens + 1))

    def content(self, row, token, arrays):
        """Returns what the host pool holds for a token of the row's request."""
        number = int(arrays.req_ids[row])
        return number, token, self.versions.get((number, token), 0)

    def _schedule(self):
        """Requests leave, so that later ones move to other rows; others join, or begin again shorter."""
        limit = self.max_token - self.tokens
        kept = [r for r in self.requests if r.length < limit and self.random.random() > 0.03]
        while len(kept) < self.most and self.random.random() < 0.6:
            kept.append(Request(next(self.numbers), int(self.random.integers(1, limit // 2))))
        if len(kept) > 1 and self.random.random() < 0.03:
            kept.reverse()
        for request in kept:
            if self.random.random() < 0.03:
                request.length = max(1, request.length - int(self.random.integers(1, 20)))
        self.requests = kept

    def _select(self, context, request):
        """Returns ids of which most repeat from step to step, in random order, with padding."""
        ids = np.full(self.topk, PADDED, np.int32)
        if self.random.random() < 0.05:
            return ids
        drift = np.random.default_rng(request.number).permutation(self.max_token)
        taste = (drift[: 2 * self.topk] + self.step // 3) % context
        recent = np.arange(max(0, context - 4), context)
        far = self.random.integers(0, context, self.topk // 4)
        pool = np.unique(np.concatenate([taste, far]))
        pool = self.random.permutation(np.setdiff1d(pool, recent))[: self.topk - len(recent)]
        chosen = self.random.permutation(np.concatenate([pool, recent]))
        ids[: len(chosen)] = chosen
        if self.random.random() < 0.2:
            ids[int(self.random.integers(self.topk))] = self.random.choice([PADDED, self.max_token + 5])
        return ids


class Buffers:
    """The device buffers of all rows, which misses fill; it checks what attention would read."""

    def __init__(self, rows, capacity):
        self.held = [[None] * capacity for _ in range(rows)]
        self.misses = self.selected = 0

    def take(self, life, arrays, rows):
        """Copies the misses of a step, and checks every output of it."""
        for row in range(rows):
            count = int(arrays.miss_count[row])
            tokens, slots = arrays.miss_tokens[row].tolist(), arrays.miss_slots[row].tolist()
            assert 0 <= count <= life.topk
            assert tokens[count:] == slots[count:] == [-1] * (life.topk - count)
            assert len(set(slots[:count])) == count, "two misses share a slot"
            for token, slot in zip(tokens[:count], slots[:count]):
                self.held[row][slot] = life.content(row, token, arrays)
            ids, current = arrays.topk_indices[row].tolist(), arrays.current_slots[row].tolist()
            assert set(tokens[:count]) <= set(ids), "a token was copied that is not selected"
            for token, slot in zip(ids, current):
                if not 0 <= token < life.max_token:
                    assert slot == -1, "padding has a slot"
                else:
                    assert self.held[row][slot] == life.content(row, token, arrays), f"row {row}, token {token}"
                    self.selected += 1
            self.misses += count
