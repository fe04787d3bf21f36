"""AVSG's planner beside the reference, over random lives."""

import os

import numpy as np
import pytest
from lives import Buffers, Life
from reference import GARBAGE, Arrays

from avsg_vllm_ascend import ResidentPlanner

THOROUGH = os.environ.get("AVSG_THOROUGH") == "1"
TOPK, MAX_TOKEN, REQUESTS, STEPS = 16, 600, 4, 150


def run(seed, tokens, capacity, plan, steps=STEPS):
    """Plans a life with `plan(arrays, rows)`, checks each step, and returns its buffers."""
    rows = REQUESTS * tokens
    arrays = Arrays(rows, TOPK, capacity, MAX_TOKEN)
    life, buffers = Life(seed, tokens, REQUESTS, TOPK, MAX_TOKEN), Buffers(rows, capacity)
    for step in range(steps):
        used = life.next_step(arrays)
        arrays.poison_outputs()
        if step % 40 == 39:
            arrays.last_req_ids.fill(-1)  # vLLM-Ascend's switch for misses everywhere
        plan(arrays, used)
        buffers.take(life, arrays, used)
        assert (arrays.last_req_ids[:used] == arrays.req_ids[:used]).all()
        assert (arrays.current_slots[used:] == GARBAGE).all(), "rows after the batch were written"
        life.accept()
    return buffers


def planner_of(tokens, layers=1):
    planner = ResidentPlanner(REQUESTS * tokens, layers)
    return planner, lambda arrays, rows: planner(*arrays.arguments(rows))


@pytest.mark.parametrize("capacity", [64, 128, 100, 200])
@pytest.mark.parametrize("tokens", range(1, 7) if THOROUGH else [1, 3, 6])
def test_outputs_mean_what_the_reference_means(tokens, capacity):
    reference = run(tokens, tokens, capacity, Arrays.reference)
    planned = run(tokens, tokens, capacity, planner_of(tokens)[1])
    assert planned.selected == reference.selected > 1000
    # AVSG uses 64 of 100 slots, and 192 of 200; the reference uses all of them.
    least = run(tokens, tokens, capacity // 64 * 64, Arrays.reference) if capacity % 64 else reference
    assert planned.misses <= 1.03 * least.misses, (planned.misses, least.misses)
    assert reference.misses <= planned.misses * 1.03


def test_layers_keep_tables_of_their_own():
    planner, _ = planner_of(2, layers=2)
    lives = []
    for seed in (1, 2):
        arrays = Arrays(8, TOPK, 64, MAX_TOKEN)
        lives.append((arrays, Life(seed, 2, REQUESTS, TOPK, MAX_TOKEN), Buffers(8, 64)))
    for _ in range(60):
        for arrays, life, buffers in lives:
            used = life.next_step(arrays)
            planner(*arrays.arguments(used))
            buffers.take(life, arrays, used)
            life.accept()


@pytest.mark.parametrize("fault", ["_invalidate", "_restart"])
def test_a_missed_invalidation_or_restart_is_noticed(fault, monkeypatch):
    monkeypatch.setattr(ResidentPlanner, fault, lambda *_: None)
    with pytest.raises(AssertionError):
        run(3, 3, 128, planner_of(3)[1])


def test_the_same_batch_twice_has_no_misses_and_padded_rows_change_nothing():
    arrays = Arrays(4, TOPK, 128, MAX_TOKEN)
    _, plan = planner_of(1)
    arrays.req_ids[:] = 7, 8, 9, 10
    arrays.stable_prefix_lens.fill(MAX_TOKEN)
    arrays.topk_indices[:] = np.arange(4 * TOPK).reshape(4, TOPK)
    plan(arrays, 4)
    slots = arrays.current_slots.copy()
    assert (arrays.miss_count == TOPK).all()
    plan(arrays, 4)
    assert (arrays.miss_count == 0).all() and (arrays.current_slots == slots).all()
    kept = arrays.topk_indices.copy()
    arrays.topk_indices.fill(-1)
    plan(arrays, 4)
    assert (arrays.miss_count == 0).all() and (arrays.current_slots == -1).all()
    arrays.topk_indices[:] = kept
    plan(arrays, 4)
    assert (arrays.miss_count == 0).all() and (arrays.current_slots == slots).all()


def test_wrong_sizes_are_refused_in_a_sentence():
    arrays = Arrays(4, TOPK, 64, MAX_TOKEN)
    planner = ResidentPlanner(3)
    with pytest.raises(ValueError, match="num_reqs is 4, but the planner has 3 rows"):
        planner(*arrays.arguments(4))
    planner(*arrays.arguments(3))
    with pytest.raises(ValueError, match="make another planner"):
        planner(*Arrays(4, 8, 64, MAX_TOKEN).arguments(3))
    with pytest.raises(ValueError, match="raise layers"):
        planner(*Arrays(4, TOPK, 64, MAX_TOKEN).arguments(3))
    with pytest.raises(ValueError, match="raise topk_buffer_size"):
        ResidentPlanner(4)(*Arrays(4, TOPK, 63, MAX_TOKEN).arguments(3))
    with pytest.raises(ValueError, match="at least 1"):
        ResidentPlanner(0)
    planner(*arrays.arguments(0))
