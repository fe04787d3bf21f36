"""A small random DeepSeek-V3.2 model.

Its rows have the large model's format: 512 latent and 64 rotary values.
"""

from __future__ import annotations

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.deepseek_v32 import Model, ModelArgs


def random_model(layers: int, k: int, seed: int = 1, dtype: mx.Dtype = mx.bfloat16) -> Model:
    """Makes a model of dense layers, each with an indexer of its own that selects K ids."""
    mx.random.seed(seed)
    model = Model(
        ModelArgs(
            vocab_size=512,
            hidden_size=64,
            index_head_dim=64,
            index_n_heads=2,
            index_topk=k,
            intermediate_size=128,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=2,
            kv_lora_rank=512,
            q_lora_rank=32,
            qk_rope_head_dim=64,
            v_head_dim=16,
            qk_nope_head_dim=16,
            max_position_embeddings=1 << 16,
        )
    )
    model.update(tree_map(lambda weight: weight.astype(dtype), model.parameters()))
    mx.eval(model.parameters())
    return model


def same_weights(model: Model) -> Model:
    """Makes another model with the weights of `model`."""
    twin = Model(model.args)
    twin.update(model.parameters())
    return twin


def random_text(tokens: int, seed: int = 1) -> list[int]:
    """Draws a text."""
    return mx.random.randint(0, 512, (tokens,), key=mx.random.key(seed)).tolist()
