#!/usr/bin/env python3
"""Compares transformers_cache.py with a gather in torch, bit for bit, and measures what it gains.

  pip install ./bindings/python torch transformers
  python3 bindings/examples/python/transformers_check.py            # every logit is compared
  python3 bindings/examples/python/transformers_check.py measure    # time of a step, and memory; some minutes

Models are small and random. `measure` decodes one request behind a random context with stock transformers, with a
gather in torch, and with AVSG over memory and over a file, each in a process of its own with one thread of torch.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from transformers_cache import PoolRows, Rows

SMALL = dict(vocab_size=256, hidden_size=128, intermediate_size=256, moe_intermediate_size=64, num_hidden_layers=4)
SMALL |= dict(num_attention_heads=4, num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, n_group=1)
SMALL |= dict(topk_group=1, kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=16, v_head_dim=32, qk_nope_head_dim=32)
SMALL |= dict(index_topk=16, index_head_dim=32, index_n_heads=4, bos_token_id=1, eos_token_id=None, pad_token_id=0)
FAMILIES = {"DeepseekV32": {}, "GlmMoeDsa": {"indexer_types": ["full", "shared", "full", "shared"]}}
#: Rows as those of DeepSeek-V3.2, in float32: 2304 bytes.
LARGE = SMALL | dict(hidden_size=512, q_lora_rank=512, kv_lora_rank=512, qk_rope_head_dim=64, v_head_dim=128)
LARGE |= dict(qk_nope_head_dim=128, index_topk=2048, index_head_dim=128, max_position_embeddings=1 << 17)
SETTINGS = ("stock transformers", "gather in torch", "AVSG over memory", "AVSG over a file")


class TorchRows(Rows):
    """The rows in a tensor, in the place of a pool."""

    def __init__(self, model, requests, max_context, tokens=1):
        super().__init__(model, requests, max_context, tokens)
        self.all = torch.zeros(self.layers, requests, max_context, sum(self.widths), dtype=self.dtype)

    def write(self, layer, first, new):
        self.all[layer, :, first : first + new.shape[1]] = new

    def read(self, layer, end):
        return self.all[layer, :, :end]

    def step(self, layer, first, new, ids):
        self.write(layer, first, new)
        return self.all[layer][torch.arange(self.requests)[:, None, None], ids]


def random_model(family, **sizes):
    """Makes a model with the same random weights in each process."""
    torch.manual_seed(1)
    config = getattr(transformers, f"{family}Config")(**sizes)
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


def generate(model, inputs, cache=None):
    """Returns the logits of each new token `[tokens, requests, vocabulary]`, and the sequences."""
    model.set_attn_implementation("latent_rows" if cache else "sdpa")
    options = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True, "max_new_tokens": 48}
    made = model.generate(**inputs, cache=cache, **options)
    return torch.stack(made.logits), made.sequences


def differences(family, place):
    """Decodes with rows in a tensor and in a pool, prints how many logits differ, and returns this number."""
    model, total = random_model(family, **SMALL | FAMILIES[family]), 0
    ids = torch.randint(1, 256, (3, 100))
    padded = torch.ones_like(ids)
    padded[1, :30] = padded[2, :90] = 0
    batch = {"input_ids": ids, "attention_mask": padded, "prefill_chunk_size": 40}
    lookup = {"input_ids": ids[:1, :10].repeat(1, 10), "prompt_lookup_num_tokens": 3}
    for case, inputs, tokens in (("3 requests with left padding", batch, 1), ("prompt lookup", lookup, 4)):
        requests = len(inputs["input_ids"])
        expected, sequences = generate(model, inputs, TorchRows(model, requests, 160, tokens).cache())
        if inputs is batch:  # Stock transformers adds in another order.
            torch.testing.assert_close(generate(model, inputs)[0][1], expected[1], rtol=1e-4, atol=1e-5)
        rows = PoolRows(model, requests, 160, 64 * tokens, tokens, place)
        logits, found = generate(model, inputs, rows.cache())
        wrong = int((logits.view(torch.int32) != expected.view(torch.int32)).sum() + (found != sequences).sum())
        stats = rows.engine.stats
        steps = stats.transfers // rows.layers
        appended = stats.appended_bytes // (rows.layers * requests * sum(rows.widths) * 4)
        print(
            f"{family}, {case}, rows in {'a file' if place else 'memory'}: {wrong} of {logits.numel()} logits differ; "
            f"{steps} steps of {appended} tokens in all, {stats.hits} hits, {stats.misses} misses"
        )
        # Some drafts are accepted, and some are cropped.
        total += wrong + (inputs is lookup and not steps < len(logits) - 1 < appended)
    return total


def refused(family, requests, *words):
    """Tells whether generation with a cache of one request raises an exception whose sentence has these words."""
    model = random_model(family, **SMALL)
    try:
        generate(model, {"input_ids": torch.ones(requests, 20, dtype=torch.long)}, PoolRows(model, 1, 160, 64).cache())
    except (NotImplementedError, ValueError) as error:
        print(f"refused: {error}")
        return all(word in str(error) for word in words)
    return False


def measure(setting, context, folder):
    """Prints what a decode step takes in CPU time and in time, and the peak of memory above that of the model."""
    model = random_model("DeepseekV32", **LARGE)
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if setting == SETTINGS[0]:
        cache = transformers.DynamicCache(config=model.config)
    else:
        model.set_attn_implementation("latent_rows")
        sizes = model, 1, context + 64
        rows = TorchRows(*sizes) if setting == SETTINGS[1] else PoolRows(*sizes, 8192, 1, folder)
        cache = rows.cache()
    for number, layer in enumerate(cache.layers):
        layer.update_indexer(torch.randn(1, context, LARGE["index_head_dim"]))
        for first in range(0, context, 4096):
            new = torch.randn(1, 4096, 576)
            if setting == SETTINGS[0]:
                layer.update(*(part[:, None] for part in new.split((512, 64), -1)))
            else:
                rows.write(number, first, new)
                layer.length = first + 4096
    took, total = [], 0.0
    with torch.no_grad():
        for token in range(4):
            start = time.process_time(), time.perf_counter()
            total += model(torch.tensor([[token]]), cache=cache).logits.double().abs().sum().item()
            took.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    cpu, wall = (1000 * statistics.median(times[1:]) for times in zip(*took))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print(f"| {context} | {setting} | {cpu:.0f} | {wall:.0f} | {peak / 1e9:.2f} | {total:.6f} |")


def main(arguments):
    if arguments[:1] == ["measure"]:
        print("| context | rows | CPU ms of a step | ms of a step | GB of memory at most | sum of the logits |")
        print("|---|---|---|---|---|---|", flush=True)
        failed = 0
        for context in ("16384", "32768", "65536"):
            for setting in SETTINGS:
                with tempfile.TemporaryDirectory(dir=".") as folder:
                    command = sys.executable, __file__, "one", setting, context, folder if "file" in setting else ""
                    failed |= subprocess.run(command).returncode
        return failed
    # More threads would wait for each other in models as small as these.
    torch.set_num_threads(1)
    if arguments[:1] == ["one"]:
        measure(arguments[1], int(arguments[2]), arguments[3] or None)
        return 0
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    failed = sum(differences(family, None) for family in FAMILIES)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        failed += sum(differences(family, folder) for family in FAMILIES)
    failed += not refused("HYV4", 1, "s_aux")  # attention sinks
    failed += not refused("DeepseekV32", 2, "2 requests")
    return 1 if failed else 0


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    sys.exit(main(sys.argv[1:]))
