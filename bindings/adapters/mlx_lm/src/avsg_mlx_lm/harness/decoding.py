"""Two models of the same weights that decode the same tokens, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models.cache import trim_prompt_cache
from mlx_lm.models.deepseek_v32 import Model

PREFILL_CHUNK = 512


@dataclass(frozen=True)
class Step:
    """The tokens of a decode step, drafts included, and how many of them are kept."""

    tokens: list[int]
    kept: int


def steps_of(text: list[int], prompt: int, steps: int, tokens: int, seed: int = 1) -> list[Step]:
    """Makes the steps that decode a given text.

    Two in five drafts are wrong; the first wrong one ends what is kept.
    """
    rng, place, made = np.random.default_rng(seed), prompt, []
    for _ in range(steps):
        drafts = text[place + 1 : place + tokens]
        guesses = [int(rng.integers(len(text))) if rng.random() < 0.4 else None for _ in drafts]
        called = [text[place]] + [draft if guess is None else text[guess] for draft, guess in zip(drafts, guesses)]
        right = [called[i] == text[place + i] for i in range(tokens)]
        kept = right.index(False) if False in right else tokens
        made.append(Step(called, kept))
        place += kept
    return made


def prefill(model: Model, cache: list, text: list[int]) -> mx.array:
    """Runs a prompt and returns the logits of its last token."""
    for start in range(0, len(text), PREFILL_CHUNK):
        logits = model(mx.array([text[start : start + PREFILL_CHUNK]]), cache)
        mx.eval(logits)
    return logits[:, -1:]


def decode(model: Model, cache: list, step: Step) -> mx.array:
    """Runs a step and returns the evaluated logits of every token.

    The rows of rejected drafts are dropped.
    """
    logits = model(mx.array([step.tokens]), cache)
    mx.eval(logits)
    if step.kept < len(step.tokens):
        trim_prompt_cache(cache, len(step.tokens) - step.kept)
    return logits


def adopt(cache: list, other: list) -> None:
    """Makes a cache hold what another one holds, in arrays of its own."""
    for own, theirs in zip(cache, other):
        for to, source in zip(own.caches, theirs.caches):
            to.state = tree_map(lambda part: mx.array(part) if isinstance(part, mx.array) else part, source.state)


def bits(logits: mx.array) -> mx.array:
    """Returns the bits of logits as integers."""
    return logits.view({2: mx.uint16, 4: mx.uint32}[logits.dtype.size])
