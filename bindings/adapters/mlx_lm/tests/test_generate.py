"""mlx-lm's own generation loops run through AVSG, and the model is as it was afterwards."""

import avsg
import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models.cache import KVCache, make_prompt_cache

from avsg_mlx_lm import AvsgKVCache, offload
from avsg_mlx_lm.harness.model import random_model, same_weights


def generated(generator):
    """Collects tokens and the bits of their log probabilities."""
    return [(int(token), logprobs.tolist()) for token, logprobs, *_ in generator]


def test_generate_step_gives_upstreams_tokens(small):
    prompt, twin = mx.array(small.text[: small.prompt]), same_weights(small.model)
    expected = generated(generate_step(prompt, small.model, max_tokens=40))
    with offload(twin, max_context=256, slots=small.slots):
        cache = make_prompt_cache(twin)
        assert generated(generate_step(prompt, twin, max_tokens=40, prompt_cache=cache)) == expected
        assert all(part[0].rows.counts.misses > 0 for part in cache)
        assert cache[0][0].nbytes == cache[0][0].size() * 1152


def test_rows_may_lie_in_the_callers_pools(small):
    prompt, twin = mx.array(small.text[: small.prompt]), same_weights(small.model)
    pool = avsg.Pool(2, 256, (1024, 128))
    with offload(twin, max_context=256, slots=small.slots):
        own, callers = twin.make_cache(), twin.make_cache(pool)
        steps = [generated(generate_step(prompt, twin, max_tokens=40, prompt_cache=cache)) for cache in (own, callers)]
        assert steps[0] == steps[1]
        for layer, (first, second) in enumerate(zip(own, callers)):
            assert second[0].size() > small.prompt and second[0].rows.counts == first[0].rows.counts
            for row in range(second[0].size()):
                assert np.array_equal(first[0].rows.pool.read_row(layer, row), pool.read_row(layer, row))
        for other in (avsg.Pool(1, 256, (1024, 128)), avsg.Pool(2, 255, (1024, 128)), avsg.Pool(2, 256, 1152)):
            with pytest.raises(ValueError, match=r"^a pool of .* came, but the model needs 2 of 256 of \(1024, 128\)"):
                twin.make_cache(other)


def test_speculative_generation_gives_upstreams_tokens(small):
    """The draft model has other weights, so that nearly all of its drafts are rejected."""
    prompt, draft = mx.array(small.text[: small.prompt]), random_model(1, small.k, seed=9)
    options = {"max_tokens": 24, "num_draft_tokens": 1}
    expected = generated(speculative_generate_step(prompt, small.model, draft, **options))
    twin = same_weights(small.model)
    with offload(twin, max_context=256, slots=small.slots, tokens=2):
        cache = make_prompt_cache(twin)
        both = cache + make_prompt_cache(draft)
        assert generated(speculative_generate_step(prompt, twin, draft, prompt_cache=both, **options)) == expected
        assert all(part[0].rows.counts.steps > 10 for part in cache)


def test_a_model_is_as_it_was_after_the_block(small):
    twin = same_weights(small.model)
    indexers = [layer.self_attn.indexer for layer in twin.layers]
    names = list(dict(twin.named_modules()))
    with offload(twin, max_context=128, slots=small.slots):
        cache = twin.make_cache()
        assert isinstance(cache[0][0], AvsgKVCache)
    assert [layer.self_attn.indexer for layer in twin.layers] == indexers
    assert list(dict(twin.named_modules())) == names and type(twin.make_cache()[0][0]) is KVCache
    with pytest.raises(RuntimeError, match="a block of offload that has ended"):
        twin(mx.array([[1]]), cache)


def test_what_a_cache_cannot_do_is_said(small):
    twin = same_weights(small.model)
    with offload(twin, max_context=100, slots=small.slots):
        with pytest.raises(ValueError, match="101 tokens came, but the pool has 100 rows; raise max_context"):
            twin(mx.array([small.text[:101]]), twin.make_cache())
        with pytest.raises(ValueError, match="a batch of 2 sequences came, but this cache has one"):
            twin(mx.array([[1, 2], [3, 4]]), twin.make_cache())
        with pytest.raises(NotImplementedError, match="without kv_bits"):
            twin.make_cache()[0][0].to_quantized()
