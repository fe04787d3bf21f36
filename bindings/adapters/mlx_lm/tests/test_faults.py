"""Each deliberate fault makes the comparison fail, and its control does not."""

import numpy as np
import pytest
from mlx_lm.models.cache import trim_prompt_cache

from avsg_mlx_lm import LayerRows, offload
from avsg_mlx_lm.harness.compare import compare
from avsg_mlx_lm.harness.decoding import Step, adopt, bits, decode, prefill, steps_of
from avsg_mlx_lm.harness.model import same_weights

FAULTY_STEP = 5


class WrongSlot(LayerRows):
    """One token of one step reads one row through another row's slot."""

    def step(self, ids, context, *segments):
        slots = super().step(ids, context, *segments).copy()
        if self.counts.steps == FAULTY_STEP:
            slots[0, 3] = np.setdiff1d(np.arange(len(self._occupant)), slots[0])[0]
        return slots


class SwappedSlots(LayerRows):
    """Two rotary parts come through each other's slots."""

    def gather(self, segment, slots):
        if self.counts.steps == FAULTY_STEP and segment == 1:
            slots = slots.copy()
            slots[..., [0, 1]] = slots[..., [1, 0]]
        return super().gather(segment, slots)


class StaleRow(LayerRows):
    """The rows of one step do not reach the pool.

    A later miss copies what the pool held before.
    """

    def append(self):
        if self.counts.steps != FAULTY_STEP:
            super().append()


class MissedInvalidation(LayerRows):
    """Slots of recomputed rows stay valid.

    The pool has the new rows, so that only hits are stale.
    """

    def copy_misses(self):
        context, count = self.batch.stable_len[0], self.batch.cu_q[1]
        self.pool.write(self.layer, context, *(fresh[:count] for fresh in self.fresh_rows))
        self.batch.stable_len[0] = -1
        self.engine.step(self.batch, self.plan, self.layer)
        self.batch.stable_len[0] = context


class MissedRestart(LayerRows):
    """A prefill rewrites rows that slots may hold, and the table does not start cold."""

    def write(self, first, *segments):
        self._planned = 0
        super().write(first, *segments)


def run(small, steps, rows, tokens=1):
    return compare(
        small.model,
        small.text,
        steps,
        prompt=small.prompt,
        slots=small.slots,
        tokens=tokens,
        rows=rows,
        prefilled=small.prefilled,
        stop=True,
    )


@pytest.mark.parametrize("fault", [WrongSlot, SwappedSlots, StaleRow])
def test_a_fault_in_one_step_is_noticed(small, fault):
    steps = steps_of(small.text, small.prompt, 60, 1)
    assert run(small, steps, LayerRows).different == 0
    report = run(small, steps, fault)
    assert report.different > 0 and report.max_difference > 0
    # Steps count from 0 in the report and from 1 in the counts, which a step raises before its rows
    # are gathered.
    assert report.first == FAULTY_STEP - 1 if fault is not StaleRow else report.first > FAULTY_STEP - 1


def test_a_missed_invalidation_is_noticed(small):
    steps = steps_of(small.text, small.prompt, 100, 2)
    assert any(step.kept < 2 for step in steps)
    assert run(small, steps, LayerRows, tokens=2).different == 0
    report = run(small, steps, MissedInvalidation, tokens=2)
    assert report.different > 0


def test_without_rejected_drafts_there_is_nothing_to_invalidate(small):
    text, prompt = small.text, small.prompt
    steps = [Step(text[prompt + 2 * i : prompt + 2 * i + 2], 2) for i in range(40)]
    assert run(small, steps, MissedInvalidation, tokens=2).different == 0


@pytest.mark.parametrize(("rows", "equal"), [(LayerRows, True), (MissedRestart, False)])
def test_a_prefill_over_decoded_tokens_starts_cold(small, rows, equal):
    """Decodes 40 tokens, replaces them by 30 others in one prefill, and decodes again."""
    twin, text, prompt, different = same_weights(small.model), small.text, small.prompt, 0
    with offload(twin, max_context=400, slots=small.slots, rows=rows):
        pair = [(small.model, small.model.make_cache()), (twin, twin.make_cache())]
        for _, cache in pair:
            adopt(cache, small.prefilled)
        for token in text[prompt : prompt + 40]:
            for model, cache in pair:
                decode(model, cache, Step([token], 1))
        for model, cache in pair:
            trim_prompt_cache(cache, 40)
            prefill(model, cache, text[500:530])
        for token in text[600:640]:
            theirs, ours = (decode(model, cache, Step([token], 1)) for model, cache in pair)
            different += int((bits(theirs) != bits(ours)).sum().item())
    assert (different == 0) == equal
