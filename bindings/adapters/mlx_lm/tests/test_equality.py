"""Decoding through AVSG gives upstream's logits, to the last bit."""

import mlx.core as mx
import pytest
from conftest import THOROUGH

from avsg_mlx_lm.harness.compare import compare
from avsg_mlx_lm.harness.decoding import steps_of
from avsg_mlx_lm.harness.model import random_model, random_text

#: Layers, K, S, N_q, prompt, steps, type. The context is at least 4 S from the first step on.
CASES = [(3, 32, 64, 1, 256, 256, "bfloat16"), (2, 32, 64, 2, 256, 128, "bfloat16")]
LONG = [
    (3, 32, 64, 1, 256, 512, "bfloat16"),
    (2, 32, 64, 2, 256, 256, "bfloat16"),
    (4, 64, 128, 1, 1024, 2048, "bfloat16"),
    (3, 128, 256, 1, 1024, 512, "float32"),
    (3, 64, 128, 2, 512, 512, "bfloat16"),
    (2, 64, 256, 4, 1024, 512, "bfloat16"),
]


@pytest.mark.parametrize(("tokens", "steps"), [(1, 96), (2, 64)])
def test_logits_are_equal_with_rows_on_a_disk(small, disk, tokens, steps):
    made = steps_of(small.text, small.prompt, steps, tokens)
    sizes = {"prompt": small.prompt, "slots": small.slots, "tokens": tokens}
    report = compare(small.model, small.text, made, **sizes, file=str(disk))
    assert (report.steps, report.different) == (steps, 0)
    assert report.total("misses") > steps and report.total("evictions") > steps
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("layers", "k", "slots", "tokens", "prompt", "steps", "dtype"), CASES + (LONG if THOROUGH else [])
)
def test_logits_are_equal_to_the_last_bit(layers, k, slots, tokens, prompt, steps, dtype):
    assert prompt >= 4 * slots
    model, text = random_model(layers, k, dtype=getattr(mx, dtype)), random_text(prompt + (steps + 1) * tokens)
    made = steps_of(text, prompt, steps, tokens)
    report = compare(model, text, made, prompt=prompt, slots=slots, tokens=tokens)
    assert (report.steps, report.different, report.max_difference) == (steps, 0, 0.0)
    for counts in report.layers:
        assert counts.evictions > 10 * slots and counts.hits > slots
        assert counts.misses + counts.hits == counts.selected == sum(len(step.tokens) for step in made) * k
    if tokens > 1:
        assert report.rejected > steps // 4 and report.total("invalidated") > 10
    # Each layer's own indexer selects for itself, so that no two layers miss alike.
    assert len({counts.misses for counts in report.layers}) == layers
