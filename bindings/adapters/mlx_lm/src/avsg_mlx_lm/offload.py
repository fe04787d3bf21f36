"""Puts the KV rows of a loaded DeepSeek-V3.2 model behind AVSG, without a change to mlx-lm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import avsg
import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import CacheList, KVCache

from .cache import AvsgKVCache, Scope
from .layer import LayerRows, ModelRows


class AvsgIndexer(nn.Module):
    """A layer's own indexer; what it selects is given to the layer's cache before attention reads."""

    def __init__(self, indexer: nn.Module) -> None:
        super().__init__()
        self.indexer = indexer

    def __call__(self, x: mx.array, qr: mx.array, mask: mx.array | None, cache: Any = None) -> mx.array | None:
        ids = self.indexer(x, qr, mask, cache=cache)
        rows = getattr(cache, "rows_cache", None)
        return rows.select(ids) if rows is not None and rows.waits else ids


class IndexerKVCache(KVCache):
    """The indexer's own keys, which stay resident. It knows the cache of the same layer's rows."""

    def __init__(self, rows_cache: AvsgKVCache) -> None:
        super().__init__()
        self.rows_cache = rows_cache


@contextmanager
def offload(
    model: nn.Module,
    *,
    max_context: int,
    slots: int,
    tokens: int = 1,
    rows: type[LayerRows] = LayerRows,
    file: str | None = None,
) -> Iterator[nn.Module]:
    """Makes caches of `model` keep their KV rows in AVSG pools.

    Each cache has a pool and an engine. `max_context` is the most tokens of a sequence, `slots` S (a
    multiple of 64, at least `tokens` times the model's index_topk), and `tokens` the most tokens of a
    decode step. With `file`, a folder, the rows are in a file there, and not in memory. In the block,
    `model.make_cache()` and all that calls it (`mlx_lm.generate` too) makes such caches. At its end
    the model is as it was, and such caches are refused.

    `model.make_cache(pool)` keeps the rows in the caller's pool: the model's layers, `max_context`
    rows, and two segments, the latent and rotary parts.
    """
    args, scope = model.args, Scope()
    attention = [layer.self_attn for layer in model.layers]
    indexers = [layer.indexer for layer in attention]

    def make_avsg_cache(pool: avsg.Pool | None = None) -> list[CacheList]:
        itemsize = model.model.embed_tokens.weight.dtype.size
        segments = (args.kv_lora_rank * itemsize, args.qk_rope_head_dim * itemsize)
        shared = ModelRows(len(model.layers), max_context, segments, args.index_topk, slots, tokens, file)
        if pool is not None:
            found, needed = pool.info, shared.shape
            if (found.layers, found.rows, found.segment_bytes) != needed[:3]:
                raise ValueError(
                    f"a pool of {found.layers} layers of {found.rows} rows of {found.segment_bytes} bytes came, but "
                    f"the model needs {needed.layers} of {needed.rows} of {needed.row_bytes}; pass such a pool"
                )
            shared.pool = pool
        caches = []
        for layer in range(len(model.layers)):
            first = AvsgKVCache(rows(shared, layer), scope)
            caches.append(CacheList(first, IndexerKVCache(first)))
        return caches

    model.make_cache = make_avsg_cache
    for layer, indexer in zip(attention, indexers):
        layer.indexer = AvsgIndexer(indexer)
    try:
        yield model
    finally:
        scope.open = False
        del model.make_cache
        for layer, indexer in zip(attention, indexers):
            layer.indexer = indexer
