"""Writes a small model with random weights: make_model.py ARCHITECTURE OUT.gguf [SEED]

The architectures of llama.cpp are deepseek32 (each layer has an indexer) and glm-dsa (every
second layer uses the ids of the layer before it). A latent row is 512 + 64 values in half
precision, as in the published models. The tokens of deepseek32 are bytes; glm-dsa has no tokenizer.
"""

import sys

import gguf
import numpy as np

LAYERS, EMBEDDING, VOCABULARY, HEADS = 4, 128, 259, 4
LATENT, ROTARY, NOPE, VALUE, QUERY = 512, 64, 32, 32, 64
INDEXER_HEADS, INDEXER_KEY, TOP_K = 8, 128, 32
FEED_FORWARD, EXPERTS, EXPERTS_USED = 192, 4, 2


def tokenizer(writer: gguf.GGUFWriter) -> None:
    """Adds a tokenizer with one token for each byte, and three special ones."""
    kind = gguf.TokenType
    special = {"<unk>": kind.UNKNOWN, "<s>": kind.CONTROL, "</s>": kind.CONTROL}
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([*special.values(), *[kind.BYTE] * 256])
    writer.add_add_space_prefix(False)


def metadata(writer: gguf.GGUFWriter, arch: str) -> None:
    """Adds the keys that both architectures read."""
    numbers = {
        "vocab_size": VOCABULARY,
        "context_length": 1 << 17,
        "embedding_length": EMBEDDING,
        "block_count": LAYERS,
        "leading_dense_block_count": 1,
        "feed_forward_length": FEED_FORWARD,
        "expert_feed_forward_length": FEED_FORWARD,
        "expert_count": EXPERTS,
        "expert_used_count": EXPERTS_USED,
        "expert_shared_count": 1,
        "expert_gating_func": 2,
        "attention.head_count": HEADS,
        "attention.head_count_kv": 1,
        "attention.q_lora_rank": QUERY,
        "attention.kv_lora_rank": LATENT,
        "attention.key_length": LATENT + ROTARY,
        "attention.value_length": LATENT,
        "attention.key_length_mla": NOPE + ROTARY,
        "attention.value_length_mla": VALUE,
        "attention.indexer.head_count": INDEXER_HEADS,
        "attention.indexer.key_length": INDEXER_KEY,
        "attention.indexer.top_k": TOP_K,
        "rope.dimension_count": ROTARY,
    }
    for key, value in numbers.items():
        writer.add_uint32(f"{arch}.{key}", value)
    writer.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32(f"{arch}.expert_weights_scale", 1.0)
    writer.add_float32(f"{arch}.rope.freq_base", 10000.0)
    writer.add_bool(f"{arch}.expert_weights_norm", True)
    if arch == "glm-dsa":
        writer.add_array(
            f"{arch}.attention.indexer.types",
            [1 - layer % 2 for layer in range(LAYERS)],
        )


def layer_shapes(layer: int) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each matrix of a layer, the input's length last."""
    shapes = {
        "attn_q_a": (QUERY, EMBEDDING),
        "attn_q_b": (HEADS * (NOPE + ROTARY), QUERY),
        "attn_kv_a_mqa": (LATENT + ROTARY, EMBEDDING),
        "attn_k_b": (HEADS, LATENT, NOPE),
        "attn_v_b": (HEADS, VALUE, LATENT),
        "attn_output": (EMBEDDING, HEADS * VALUE),
        "indexer.proj": (INDEXER_HEADS, EMBEDDING),
        "indexer.attn_k": (INDEXER_KEY, EMBEDDING),
        "indexer.attn_q_b": (INDEXER_HEADS * INDEXER_KEY, QUERY),
    }
    if layer == 0:
        kinds = {"": ()}
    else:
        kinds = {"_exps": (EXPERTS,), "_shexp": ()}
        shapes["ffn_gate_inp"] = (EXPERTS, EMBEDDING)
    for kind, lead in kinds.items():
        shapes[f"ffn_gate{kind}"] = shapes[f"ffn_up{kind}"] = (
            *lead,
            FEED_FORWARD,
            EMBEDDING,
        )
        shapes[f"ffn_down{kind}"] = (*lead, EMBEDDING, FEED_FORWARD)
    return shapes


def main() -> None:
    arch, path, seed = (
        sys.argv[1],
        sys.argv[2],
        int(sys.argv[3]) if len(sys.argv) > 3 else 1,
    )
    if arch not in ("deepseek32", "glm-dsa"):
        sys.exit(f"the architecture is {arch}, and must be deepseek32 or glm-dsa")
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, arch)
    metadata(writer, arch)
    if arch == "deepseek32":
        tokenizer(writer)
    else:
        writer.add_tokenizer_model("no_vocab")

    def matrix(name: str, shape: tuple[int, ...]) -> None:
        values = random.standard_normal(shape, np.float32) / np.sqrt(
            np.float32(shape[-1])
        )
        writer.add_tensor(f"{name}.weight", values)

    def vector(name: str, length: int, mean: float = 1.0) -> None:
        values = mean + 0.1 * random.standard_normal(length, np.float32)
        writer.add_tensor(name, values.astype(np.float32))

    matrix("token_embd", (VOCABULARY, EMBEDDING))
    matrix("output", (VOCABULARY, EMBEDDING))
    vector("output_norm.weight", EMBEDDING)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name, length in (
            ("attn_norm", EMBEDDING),
            ("attn_q_a_norm", QUERY),
            ("attn_kv_a_norm", LATENT),
        ):
            vector(f"{block}{name}.weight", length)
        vector(f"{block}ffn_norm.weight", EMBEDDING)
        vector(f"{block}indexer.k_norm.weight", INDEXER_KEY)
        vector(f"{block}indexer.k_norm.bias", INDEXER_KEY, 0.0)
        for name, shape in layer_shapes(layer).items():
            matrix(block + name, shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
