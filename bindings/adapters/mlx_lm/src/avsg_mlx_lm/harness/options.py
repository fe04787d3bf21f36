"""The options of the programs that compare two ways to decode."""

from __future__ import annotations

from argparse import ArgumentParser

#: The whole numbers that a program may take.
TEXTS = {
    "layers": "layers, each with an indexer of its own",
    "k": "K, the ids that a token selects",
    "slots": "S, the slots of a layer",
    "tokens": "N_q, the tokens of a step: 1 and the drafts",
    "prompt": "tokens before the first step",
    "steps": "decode steps",
    "seed": "seed of weights, text and drafts",
}


def parser(about: str, **defaults: int) -> ArgumentParser:
    """Returns a parser of these options, described by the first line of `about`."""
    parser = ArgumentParser(description=about.splitlines()[0])
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{TEXTS[name]} (default {value})")
    return parser
