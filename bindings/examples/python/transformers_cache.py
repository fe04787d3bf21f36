"""A cache and an attention function for models of Hugging Face transformers with sparse attention.

The latent KV rows of all layers are in a pool of AVSG, and attention gathers the K selected rows of a token before it
expands them. The model stays as it is installed:

  model.set_attn_implementation("latent_rows")
  rows = PoolRows(model, requests=3, max_context=65536, slots=8192)
  model.generate(**inputs, cache=rows.cache())

It serves models whose attention, as that of DeepSeek-V3.2 and GLM-MoE-DSA in transformers 5.24, caches latents, passes
its arguments to `Cache.update`, has `expand_kv`, and passes `indices` to the attention function. It refuses an argument
that it does not know, such as attention sinks.
"""

import avsg
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.cache_utils import DynamicIndexedLayer
from transformers.masking_utils import sdpa_mask

#: Rows of a block of the pool.
PAGE = 64
#: Arguments of an attention function that do not change what it computes.
WITHOUT_EFFECT = {"use_cache"}


class Rows:
    """The latent rows of all layers and requests; a row is the latent and the rotary part of a token."""

    def __init__(self, model, requests, max_context, tokens=1):
        config = model.config
        #: Longer calls are prompts, whose attention takes every row.
        self.tokens = tokens
        self.requests, self.max_context, self.dtype = requests, max_context, model.dtype
        self.layers, self.k = config.num_hidden_layers, config.index_topk
        self.widths = config.kv_lora_rank, config.qk_rope_head_dim
        #: Whether a layer selects ids, or shares those of the layer before it.
        kinds = getattr(config, "indexer_types", None) or ["full"] * self.layers
        self.selects = [kind == "full" for kind in kinds]

    def cache(self):
        """Returns an empty cache of the model on these rows; the one before it is lost."""
        return Cache(layers=[LatentLayer(self, layer) for layer in range(self.layers)])


class PoolRows(Rows):
    """The rows in a pool of AVSG, in memory or in a file of the folder `file`."""

    def __init__(self, model, requests, max_context, slots, tokens=1, file=None):
        super().__init__(model, requests, max_context, tokens)
        indexer = [sum(self.selects[: layer + 1]) - 1 for layer in range(self.layers)]
        blocks = -(-max_context // PAGE)
        self.stride = blocks * PAGE
        file = file and avsg.PoolFile(file, layer_indexer=indexer)
        self.pool = avsg.Pool(self.layers, requests * self.stride, sum(self.widths) * self.dtype.itemsize, file=file)
        sizes = {"k": self.k, "slots": slots, "tokens": tokens, "states": requests, "page": PAGE}
        # A second core would spin beside the threads of torch.
        self.engine = avsg.Engine(self.pool, layer_indexer=indexer, cores=1, **sizes)
        self.steps = []
        for number in range(indexer[-1] + 1):
            batch = avsg.Batch.zeros(requests, self.k, tokens, blocks, number)
            batch.block_table.reshape(-1)[:] = range(requests * blocks)
            self.steps.append((batch, torch.from_numpy(batch.ids), self.engine.new_plan()))
        self.indexer, self.states = indexer, torch.arange(requests)[:, None, None]
        self.slots = [torch.from_dlpack(self.engine.view(layer)).view(self.dtype) for layer in range(self.layers)]
        self.new = torch.empty(requests * tokens, sum(self.widths), dtype=self.dtype)
        self.fresh = avsg.Fresh(self.new)

    def write(self, layer, first, new):
        """Puts rows `[requests, tokens, elements]` of a prompt from token `first` on into the pool."""
        for request, rows in enumerate(new):
            self.pool.write(layer, request * self.stride + first, rows)
            self.engine.invalidate(request, first, first + len(rows))

    def read(self, layer, end):
        """Returns all rows before token `end`."""
        found = [self.pool.read(layer, request * self.stride, end)[0] for request in range(self.requests)]
        return torch.stack([torch.from_numpy(rows).view(self.dtype) for rows in found])

    def step(self, layer, first, new, ids):
        """Returns the rows of `ids` `[requests, tokens, K]`; those of the step, from token `first` on, are `new`."""
        tokens = ids.shape[1]
        count = self.requests * tokens
        batch, batch_ids, plan = self.steps[self.indexer[layer]]
        self.new[:count] = new.flatten(0, 1)
        if self.selects[layer]:
            batch_ids[:count].fill_(-1)[:, : ids.shape[2]] = ids.flatten(0, 1)
            batch.cu_q[:] = range(0, count + 1, tokens)
            batch.stable_len[:], batch.seq_len[:] = first, first + tokens
            self.engine.plan(batch, plan)
        self.engine.transfer(plan, layer, self.fresh)
        slots = torch.from_dlpack(plan.view("slot"))[:count, : ids.shape[2]]
        found = self.slots[layer][self.states, slots.view(ids.shape)]
        self.engine.append(batch, layer, self.fresh)
        return found


class LatentLayer(DynamicIndexedLayer):
    """The cache of a layer: its latents are in `Rows`, and the keys of its indexer are here."""

    def __init__(self, rows, layer):
        super().__init__()
        self.rows, self.layer, self.length = rows, layer, 0

    def update(self, latents, rotary, kwargs):
        """Takes the latents of new tokens, and returns these in a decode step and all of them in a prompt.

        `kwargs` are the arguments that the model is about to pass to `attend`, which gets this layer among them.
        """
        rows, first = self.rows, self.length
        requests, _, tokens, _ = latents.shape
        if requests != rows.requests or first + tokens > rows.max_context or latents.dtype != rows.dtype:
            raise ValueError(
                f"{requests} requests of {first + tokens} tokens in {latents.dtype} came, but the cache has rows for "
                f"{rows.requests} of {rows.max_context} in {rows.dtype}; make one of the size that is needed"
            )
        kwargs["cached"], self.length = self, first + tokens
        self.new = torch.cat((latents, rotary), -1)[:, 0]
        if tokens <= rows.tokens:
            return latents, rotary
        rows.write(self.layer, first, self.new)
        return latents_of(self.new if first == 0 else rows.read(self.layer, self.length), rows.widths)

    def gather(self, ids):
        """Returns the latents of the selected tokens, `[requests · tokens, 1, K, elements]`; an id of -1 has none."""
        first = self.length - ids.shape[1]
        found = self.rows.step(self.layer, first, self.new, ids).masked_fill_(ids[..., None] < 0, 0)
        return latents_of(found.flatten(0, 1), self.rows.widths)

    def get_seq_length(self):
        return self.length

    def crop(self, tokens_to_remove):
        super().crop(tokens_to_remove)
        self.length = max(self.length + tokens_to_remove, 0)

    def reset(self):
        super().reset()
        self.length = 0

    def reorder_cache(self, *_):
        raise NotImplementedError("a cache in a pool keeps its requests in their order; decode without beams")

    batch_repeat_interleave = batch_select_indices = offload = prefetch = reorder_cache


def latents_of(rows, widths):
    """Splits rows `[requests, tokens, elements]` into the two tensors that `expand_kv` takes."""
    return rows[:, None].split(widths, -1)


def attend(module, query, key, value, attention_mask, *, indices, scaling, dropout, cached=None, **others):
    """The attention function: it expands the selected latents of a decode step, and masks the keys of a prompt."""
    unknown = sorted(name for name, value in others.items() if value is not None and name not in WITHOUT_EFFECT)
    unknown += ["dropout"] * bool(dropout) + ["no ids of an indexer"] * (indices is None)
    if unknown:
        raise NotImplementedError(
            f"{type(module).__name__} passes {', '.join(unknown)} to attention, but this function computes it over "
            "the selected tokens and nothing else; use another attn_implementation"
        )
    if cached is None:
        raise ValueError("attention got no rows of a cache of this file; pass cache=PoolRows(..).cache()")
    indices, visible = indices.long(), attention_mask[:, 0]
    requests, heads, tokens, _ = query.shape
    if tokens > cached.rows.tokens:
        mask = (torch.zeros_like(visible).scatter_(-1, indices, True) & visible)[:, None]
    else:
        visible = visible.expand(requests, -1, -1).gather(-1, indices)
        key, value = module.expand_kv(*cached.gather(indices.masked_fill(~visible, -1)))
        query, mask = query.transpose(1, 2).flatten(0, 1)[:, :, None], visible.flatten(0, 1)[:, None, None]
    output = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return output.transpose(1, 2).reshape(requests, tokens, heads, -1), None


AttentionInterface.register("latent_rows", attend)
AttentionMaskInterface.register("latent_rows", sdpa_mask)
