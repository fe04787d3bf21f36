"""Decodes with mlx-lm alone and through AVSG in lockstep, and compares every bit of every logit.

  python -m avsg_mlx_lm.harness.compare --help

The exit status is 0 only if all logits are equal and enough rows were evicted to make that worth
something.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import mlx.core as mx
from mlx_lm.models.deepseek_v32 import Model

from ..layer import Counts, LayerRows
from ..offload import offload
from . import options
from .decoding import Step, adopt, bits, decode, prefill, steps_of
from .model import random_model, random_text, same_weights


@dataclass
class Report:
    """What was compared."""

    steps: int = 0
    tokens: int = 0
    rejected: int = 0
    logits: int = 0
    different: int = 0
    max_difference: float = 0.0
    #: The first step whose logits differ.
    first: int | None = None
    layers: list[Counts] = field(default_factory=list)

    def add(self, step: Step, upstream: mx.array, ours: mx.array) -> None:
        """Compares the logits of one step."""
        differing = int((bits(upstream) != bits(ours)).sum().item())
        if differing and self.first is None:
            self.first = self.steps
        gap = mx.abs(upstream.astype(mx.float32) - ours.astype(mx.float32)).max().item()
        self.max_difference = max(self.max_difference, gap)
        self.steps += 1
        self.tokens += step.kept
        self.rejected += len(step.tokens) - step.kept
        self.logits += upstream.size
        self.different += differing

    def total(self, name: str) -> int:
        """Adds one counter of all layers."""
        return sum(getattr(counts, name) for counts in self.layers)


def compare(
    model: Model,
    text: list[int],
    steps: list[Step],
    *,
    prompt: int,
    slots: int,
    tokens: int = 1,
    rows: type[LayerRows] = LayerRows,
    prefilled: list | None = None,
    stop: bool = False,
    file: str | None = None,
) -> Report:
    """Runs the prompt and the steps both ways.

    `prefilled` is a cache of upstream's that holds the prompt already.

    With `stop` the comparison ends at the first step that differs, and `file` is that of `offload`.
    """
    report, twin = Report(), same_weights(model)
    capacity = prompt + sum(step.kept for step in steps) + tokens
    with offload(twin, max_context=capacity, slots=slots, tokens=tokens, rows=rows, file=file):
        theirs, ours = model.make_cache(), twin.make_cache()
        if prefilled is not None:
            adopt(theirs, prefilled)
            adopt(ours, prefilled)
        else:
            whole = Step(text[:prompt], prompt)
            report.add(whole, prefill(model, theirs, whole.tokens), prefill(twin, ours, whole.tokens))
            report.steps = report.tokens = 0
        for step in steps:
            report.add(step, decode(model, theirs, step), decode(twin, ours, step))
            if stop and report.different:
                break
        report.layers = [cache[0].rows.counts for cache in ours]
    return report


def main() -> int:
    """Prints one row of docs/end-to-end.md."""
    parser = options.parser(__doc__, layers=3, k=64, slots=128, tokens=1, prompt=512, steps=512, seed=1)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16", help="type of weights and rows")
    parser.add_argument("--disk", metavar="FOLDER", help="keep the rows in files of this folder")
    asked = parser.parse_args()
    model = random_model(asked.layers, asked.k, asked.seed, getattr(mx, asked.dtype))
    text = random_text(asked.prompt + (asked.steps + 1) * asked.tokens, asked.seed)
    steps = steps_of(text, asked.prompt, asked.steps, asked.tokens, asked.seed)
    report = compare(model, text, steps, prompt=asked.prompt, slots=asked.slots, tokens=asked.tokens, file=asked.disk)
    selected, misses, evictions = (report.total(name) for name in ("selected", "misses", "evictions"))
    print(f"{asked.layers} layers, {asked.dtype}, K = {asked.k}, S = {asked.slots}, N_q = {asked.tokens}")
    end = asked.prompt + report.tokens
    print(f"context        {asked.prompt} to {end} tokens, at least {asked.prompt // asked.slots} S")
    print(f"steps          {report.steps}, {report.rejected} drafts rejected")
    print(f"rows selected  {selected}, {misses} missed, {evictions} evicted, {report.total('invalidated')} invalidated")
    print(f"logits         {report.logits} compared, {report.different} differ, max difference {report.max_difference}")
    return 0 if report.different == 0 and evictions > misses // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
