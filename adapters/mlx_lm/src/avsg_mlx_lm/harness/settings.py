"""Three settings that decode the same ids: rows resident, rows copied, and AVSG.

  python -m avsg_mlx_lm.harness.settings --help

Logits of all settings are compared bit by bit. A CPU has no link to a device, so that links are
emulated: the copies of one layer and step are charged latency + bytes / bandwidth in the place of
the time that they took.
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
from mlx_lm.models.deepseek_v32 import Model

from ..cache import AvsgKVCache
from ..layer import LayerRows
from ..offload import offload
from .decoding import Step, adopt, bits, decode
from .link import Link
from .model import random_cache, random_model, random_text, same_weights


class Timed(LayerRows):
    """Times plans, copies and reads through slots, and charges copies to a link."""

    link = Link()

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.plan_seconds = self.copy_seconds = self.read_seconds = 0.0
        #: What the link needs beyond the time that copies took.
        self.charge, self.copied_rows = 0.0, 0

    def copy_misses(self) -> None:
        begin = time.perf_counter()
        self.engine.plan(self.batch, self.plan)
        planned, misses = time.perf_counter(), self.plan.counters.misses
        self.plan_seconds += planned - begin
        begin = time.perf_counter()
        self.engine.transfer(self.plan, 0, self.fresh)
        self.copied(misses, time.perf_counter() - begin)

    def copied(self, rows: int, measured: float) -> None:
        """Notes a batch of copies."""
        charged = self.link.seconds(rows * self.pool.info.row_bytes, measured)
        self.copy_seconds += charged
        self.charge += charged - measured
        self.copied_rows += rows

    def gather(self, segment, slots):
        begin = time.perf_counter()
        rows = super().gather(segment, slots)
        self.read_seconds += time.perf_counter() - begin
        return rows


class CopyEveryRow(Timed):
    """Copies every selected row from the pool at every step, in the order of the ids."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.slots = [np.empty((self.k * self.tokens, host.shape[1]), np.uint8) for host in self.host]

    def step(self, ids, context, *segments):
        for host, rows in zip(self.host, segments):
            host[context : context + len(rows)] = rows
        begin, chosen = time.perf_counter(), ids.ravel()
        for slots, host in zip(self.slots, self.host):
            np.take(host, chosen, axis=0, out=slots[: len(chosen)], mode="clip")
        self.copied(len(chosen), time.perf_counter() - begin)
        return np.arange(len(chosen)).reshape(ids.shape)

    def gather(self, segment, slots):
        return self.slots[segment][: slots.size]


@dataclass
class Setting:
    """One model and cache, and what its steps took."""

    name: str
    model: Model
    cache: list
    seconds: list[float] = field(default_factory=list)

    @property
    def layers(self) -> list[Timed]:
        """The rows of each layer; none if they are resident."""
        return [part[0].rows for part in self.cache if isinstance(part[0], AvsgKVCache)]

    def total(self, name: str) -> float:
        """Adds one figure of all layers."""
        return sum(getattr(layer, name) for layer in self.layers)

    def run(self, step: Step) -> mx.array:
        """Runs one step and notes its time, with the link's in the place of the copies'."""
        charged, begin = self.total("charge"), time.perf_counter()
        logits = decode(self.model, self.cache, step)
        self.seconds.append(time.perf_counter() - begin + self.total("charge") - charged)
        return logits

    def line(self) -> str:
        """Describes the steps in one line of the table.

        Times are milliseconds per token; the share is that of plans, copies and reads.
        """
        steps, times = len(self.seconds), sorted(self.seconds)
        p50, p95 = statistics.median(times) * 1e3, times[int(steps * 0.95)] * 1e3
        parts = [self.total(name) / steps * 1e3 for name in ("plan_seconds", "copy_seconds", "read_seconds")]
        share = 100 * sum(parts) / (statistics.fmean(times) * 1e3)
        rows = int(self.total("copied_rows"))
        figures = "  ".join(f"{part:6.3f}" for part in parts)
        return f"{self.name:18} {p50:7.2f}  {p95:7.2f}  {figures}  {share:4.1f} %  {rows:8}  {rows * 1152 / 1e6:8.2f}"


def own_gather(model: Model, context: int) -> float:
    """Times the gather of mlx-lm's attention by itself, in seconds for all layers of a step."""
    args, dtype = model.args, model.model.embed_tokens.weight.dtype
    widths = (args.kv_lora_rank, args.qk_rope_head_dim)
    rows = [mx.random.normal((1, 1, context, width)).astype(dtype) for width in widths]
    ids = mx.random.permutation(context)[: args.index_topk][None, None, :, None]
    mx.eval(rows, ids)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        mx.eval(
            [mx.take_along_axis(part, mx.broadcast_to(ids, (*ids.shape[:-1], part.shape[3])), axis=2) for part in rows]
        )
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * len(model.layers)


def measure(
    model: Model, text: list[int], prompt: int, steps: int, slots: int, link: Link, prefilled: list
) -> tuple[list[Setting], int]:
    """Decodes one text in the three settings, in turns.

    Returns them, and how many logits differ from the resident ones.
    """
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
    parser.add_argument(
        "--repeat", type=float, default=0.9, help="probability that a token repeats the one before (default 0.9)"
    )
    parser.add_argument("--latency", type=float, default=10.0, help="latency of an emulated link in us (default 10)")
    parser.add_argument("--links", default="25,50,100", help="GB/s of the emulated links (default 25,50,100)")
    asked = parser.parse_args()
    model, text = random_model(asked.layers, asked.k), random_text(asked.prompt + asked.steps, repeat=asked.repeat)
    prefilled = random_cache(model, asked.prompt)
    end, gather = asked.prompt + asked.steps, own_gather(model, asked.prompt) * 1e3
    print(f"{asked.layers} layers, K = {asked.k}, S = {asked.slots}, context {asked.prompt} to {end}")
    print(f"rows of 1152 bytes, {asked.steps} steps a link, repeat {asked.repeat:g}")
    print(f"emulated links: a layer's copies of a step are charged {asked.latency:g} us + bytes / bandwidth")
    print(f"mlx-lm's own gather, which all settings make: {gather:.2f} ms a token by itself")
    print("milliseconds per token")
    figures = "   p50      p95    plan    copy    read   share      rows        MB"
    print(f"{'link':11} {'setting':15} {figures}  differing logits")
    wrong = 0
    for speed in [None, *map(float, asked.links.split(","))]:
        link = Link(speed, asked.latency if speed else 0.0)
        settings, different = measure(model, text, asked.prompt, asked.steps, asked.slots, link, prefilled)
        wrong += different
        for setting in settings:
            print(f"{link!s:11} {setting.line()}  {different:16}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
