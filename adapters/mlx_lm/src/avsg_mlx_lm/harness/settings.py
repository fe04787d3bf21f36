"""Three settings of one model that decode the same ids: all rows resident, every selected row copied, and AVSG.

  python -m avsg_mlx_lm.harness.settings --help

Logits of all settings are compared bit by bit. A CPU has no slow link, so that links are emulated: a setting's copies of one
layer and step take at least latency + bytes / bandwidth.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import mlx.core as mx
import numpy as np

from ..layer import LayerRows
from ..offload import offload
from .decoding import Step, adopt, bits, decode
from .link import Link
from .model import random_cache, random_model, random_text, same_weights


class Timed(LayerRows):
    """Copies misses over a link, and adds up the time of plans, copies and gathers, and the rows."""

    link = Link()

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.seconds, self.copied_rows = 0.0, 0

    def copy_misses(self) -> None:
        begin = time.perf_counter()
        self.engine.plan(self.batch, self.plan)
        planned, misses = time.perf_counter(), self.plan.counters.misses
        self.engine.transfer(self.plan, 0, self.fresh)
        self.link.wait(misses * self.pool.info.row_bytes, planned)
        self.seconds += time.perf_counter() - begin
        self.copied_rows += misses

    def gather(self, segment, slots):
        begin = time.perf_counter()
        rows = super().gather(segment, slots)
        self.seconds += time.perf_counter() - begin
        return rows


class CopyEveryRow(Timed):
    """Copies every selected row from the pool at every step, into memory that is used again."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.slots = [np.empty((self.k * self.tokens, host.shape[1]), np.uint8) for host in self.host]

    def step(self, ids, context, *segments):
        for host, rows in zip(self.host, segments):
            host[context : context + len(rows)] = rows
        begin, chosen = time.perf_counter(), ids.ravel()
        for slots, host in zip(self.slots, self.host):
            np.take(host, chosen, axis=0, out=slots[: len(chosen)], mode="clip")
        self.link.wait(len(chosen) * self.pool.info.row_bytes, begin)
        self.seconds += time.perf_counter() - begin
        self.copied_rows += len(chosen)
        return np.arange(len(chosen)).reshape(ids.shape)


@dataclass
class Setting:
    """One model and cache, and what its steps took."""

    name: str
    model: object
    cache: list
    seconds: list[float] = field(default_factory=list)
    gather: float = 0.0
    rows: int = 0

    def run(self, step: Step) -> mx.array:
        """Runs one step and notes its time."""
        begin = time.perf_counter()
        logits = decode(self.model, self.cache, step)
        self.seconds.append(time.perf_counter() - begin)
        return logits


def resident_gather(model, context: int) -> float:
    """Times the gather of mlx-lm's attention by itself, for all layers of a step: it is inside one graph with the rest."""
    args, dtype = model.args, model.model.embed_tokens.weight.dtype
    widths = (args.kv_lora_rank, args.qk_rope_head_dim)
    rows = [mx.random.normal((1, 1, context, width)).astype(dtype) for width in widths]
    ids = mx.random.permutation(context)[: args.index_topk][None, None, :, None]
    mx.eval(rows, ids)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        mx.eval([mx.take_along_axis(part, mx.broadcast_to(ids, (*ids.shape[:-1], part.shape[3])), axis=2) for part in rows])
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * len(model.layers)


def measure(model, text, prompt: int, steps: int, slots: int, link: Link, prefilled: list) -> tuple[list[Setting], int]:
    """Decodes one text in the three settings, in turns. Returns them, and how many logits differ from the resident ones."""
    settings, different = [Setting("all rows resident", model, model.make_cache())], 0
    with ExitStack() as blocks:
        for name, kind in (("every row copied", CopyEveryRow), ("AVSG", Timed)):
            rows = type(kind.__name__, (kind,), {"link": link})
            twin = same_weights(model)
            blocks.enter_context(offload(twin, max_context=prompt + steps, slots=slots, rows=rows))
            settings.append(Setting(name, twin, twin.make_cache()))
        for setting in settings:
            adopt(setting.cache, prefilled)
        for token in text[prompt : prompt + steps]:
            logits = [setting.run(Step([token], 1)) for setting in settings]
            different += sum(int((bits(logits[0]) != bits(other)).sum().item()) for other in logits[1:])
    settings[0].gather = resident_gather(model, prompt + steps // 2)
    for setting in settings[1:]:
        layers = [cache[0].rows for cache in setting.cache]
        setting.gather = sum(layer.seconds for layer in layers) / steps
        setting.rows = sum(layer.copied_rows for layer in layers)
    return settings, different


def main() -> int:
    """Prints the table of docs/end-to-end.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value, text in [
        ("layers", 3, "layers"),
        ("k", 2048, "K"),
        ("slots", 8192, "S"),
        ("prompt", 32768, "tokens before the first step, whose rows are drawn at random"),
        ("steps", 64, "decode steps of each link"),
    ]:
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default {value})")
    parser.add_argument("--repeat", type=float, default=0.9, help="probability that a token repeats the one before (default 0.9)")
    parser.add_argument("--latency", type=float, default=10.0, help="latency of an emulated link in us (default 10)")
    parser.add_argument("--links", default="25,50,100", help="GB/s of the emulated links (default 25,50,100)")
    asked = parser.parse_args()
    model, text = random_model(asked.layers, asked.k), random_text(asked.prompt + asked.steps, repeat=asked.repeat)
    prefilled = random_cache(model, asked.prompt)
    print(f"{asked.layers} layers, K = {asked.k}, S = {asked.slots}, context {asked.prompt} to {asked.prompt + asked.steps}, ", end="")
    print(f"rows of 1152 bytes, {asked.steps} steps a link, latency {asked.latency:g} us a layer and step, repeat {asked.repeat:g}")
    print("link        setting             p50 ms   p95 ms  gather ms   share  rows copied  MB copied  logits that differ")
    wrong = 0
    for speed in [None, *map(float, asked.links.split(","))]:
        link = Link(speed, asked.latency if speed else 0.0)
        settings, different = measure(model, text, asked.prompt, asked.steps, asked.slots, link, prefilled)
        wrong += different
        for setting in settings:
            times = sorted(setting.seconds)
            p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
            share, gather = 100 * setting.gather / statistics.fmean(times), setting.gather * 1e3
            figures = f"{p50 * 1e3:7.2f}  {p95 * 1e3:7.2f}  {gather:9.3f}  {share:4.1f} %  {setting.rows:11}"
            print(f"{link!s:11} {setting.name:18} {figures}  {setting.rows * 1152 / 1e6:9.2f}  {different:18}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
