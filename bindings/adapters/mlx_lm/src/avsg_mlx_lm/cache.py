"""mlx-lm's KV cache of one layer, with the rows in AVSG's pool."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import KVCache

from .bytes import array_of, rows_of
from .layer import LayerRows

#: A byte that makes a finite number near 3 in bfloat16 and float32, for rows that attention must
#: not use.
POISON = 0x40


class Scope:
    """Whether the model's indexers are exchanged: whether the block of `offload` goes on."""

    open = True


class AvsgKVCache(KVCache):
    """Latent rows as keys and rotary rows as values, of one request.

    Prefill, and contexts of at most K tokens, read every row: `update_and_fetch` returns all rows
    from the pool. Otherwise it returns arrays that are filled in by `select`, once the layer's
    indexer has selected ids, and before attention reads them.
    """

    def __init__(self, rows: LayerRows, scope: Scope) -> None:
        super().__init__()
        self.rows, self._scope = rows, scope
        self._pending: tuple[mx.array, ...] | None = None
        #: For steps of several tokens: all rows of the context, poisoned but for the selected ones.
        self._sparse: list[np.ndarray] = []

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Takes the rows of new tokens, and returns what attention reads."""
        context, count = self.offset, keys.shape[2]
        if not self._scope.open:
            # mlx-lm's own indexer would make attention read beyond the arrays that this cache
            # returns.
            raise RuntimeError("this cache was made in a block of offload that has ended; use it inside of the block")
        if keys.shape[0] != 1:
            raise ValueError(
                f"a batch of {keys.shape[0]} sequences came, but this cache has one; make a cache for each"
            )
        if context + count > self.rows.capacity:
            raise ValueError(
                f"{context + count} tokens came, but the pool has {self.rows.capacity} rows; raise max_context"
            )
        self.offset = context + count
        if count > self.rows.tokens or self.offset <= self.rows.k:
            mx.eval(keys, values)
            self.rows.write(context, rows_of(keys), rows_of(values))
            self._pending, (self.keys, self.values) = None, self._all(keys.dtype, values.dtype)
        else:
            length = self.rows.k if count == 1 else self.offset
            self.keys = mx.zeros((1, 1, length, keys.shape[3]), keys.dtype)
            self.values = mx.zeros((1, 1, length, values.shape[3]), values.dtype)
            self._pending = (keys, values, self.keys, self.values)
        return self.keys, self.values

    def _all(self, *dtypes: mx.Dtype) -> tuple[mx.array, ...]:
        return tuple(array_of(rows, dtype) for rows, dtype in zip(self.rows.read(self.offset), dtypes))

    @property
    def waits(self) -> bool:
        """Whether the arrays that `update_and_fetch` returned last still need `select`."""
        return self._pending is not None

    def select(self, ids: mx.array) -> mx.array:
        """Fills the arrays with the rows of `ids` and returns the ids' places in them.

        `ids` has the shape [1, 1, tokens, K]. mlx-lm's attention gathers rows for a step of one
        token, and masks rows for a step of several. So one token gets its K rows in the order of
        its ids, and several tokens get the whole context, where only the selected rows are the
        model's.
        """
        (*new, keys, values), self._pending = self._pending, None
        mx.eval(ids, *new)
        chosen = np.array(ids, copy=False).reshape(-1, self.rows.k).astype(np.int32)
        slots = self.rows.step(chosen, self.offset - len(chosen), *map(rows_of, new))
        outputs = (keys, values)
        if len(chosen) == 1:
            for segment, output in enumerate(outputs):
                output[:] = array_of(self.rows.gather(segment, slots[0]), output.dtype)
            return mx.arange(self.rows.k)[None, None, None]
        for segment, output in enumerate(outputs):
            output[:] = array_of(self._spread(segment, chosen, slots), output.dtype)
        return ids

    def _spread(self, segment: int, chosen: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Returns the rows of the context, with every row poisoned that was not chosen.

        The chosen rows come through their slots.
        """
        if not self._sparse:
            self._sparse = [np.empty((self.rows.capacity, length), np.uint8) for length in self.rows.segment_bytes]
        sparse = self._sparse[segment][: self.offset]
        sparse[:] = POISON
        sparse[chosen.ravel()] = self.rows.gather(segment, slots.ravel())
        return sparse

    @property
    def state(self):
        """All rows, from the pool, and the number of tokens."""
        if self.empty():
            return None, None, 0
        return (*self._all(self.keys.dtype, self.values.dtype), self.offset)

    @state.setter
    def state(self, value) -> None:
        keys, values, self.offset = value
        self.keys, self.values, self._pending = keys, values, None
        if keys is not None:
            mx.eval(keys, values)
            self.rows.write(0, rows_of(keys[..., : self.offset, :]), rows_of(values[..., : self.offset, :]))

    def to_quantized(self, group_size: int = 64, bits: int = 4):
        """Refused: rows are copied as they are."""
        raise NotImplementedError("a KV cache in an AVSG pool is not quantized; decode without kv_bits")

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in the pool."""
        return self.offset * sum(self.rows.segment_bytes)
