"""Settings that decode the same ids: rows resident, rows copied, and AVSG.

  python -m avsg_mlx_lm.harness.settings --help

Logits of all settings are compared bit by bit. A CPU has no link to a device, so that links are
emulated: the copies of one layer and step are charged latency + bytes / bandwidth in the place of
the time that they took. With `--disk` the rows are in files, which are read as they are, and one
setting more maps its files and leaves them AVSG's memory in the page cache.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import avsg
import mlx.core as mx
import numpy as np
from mlx_lm.models.deepseek_v32 import Model

from ..cache import AvsgKVCache
from ..layer import Counts, LayerRows, ModelRows
from ..offload import offload
from . import options
from .decoding import Step, adopt, bits, decode
from .link import Link
from .mapped import MappedRows
from .model import random_cache, random_model, random_text, same_weights

#: Bytes of the queue of writes. A decode step writes few rows, and the mapped files get this memory, too.
QUEUE_BYTES = 1 << 18


class Timed(LayerRows):
    """Times plans, copies and reads through slots, and charges copies to a link."""

    link = Link()
    plan_seconds = copy_seconds = read_seconds = 0.0
    #: What the link needs beyond the time that copies took.
    charge = 0.0
    copied_rows = 0

    def copy_misses(self) -> None:
        begin = time.perf_counter()
        self.engine.plan(self.batch, self.plan)
        planned, misses = time.perf_counter(), self.plan.counters.misses
        self.plan_seconds += planned - begin
        begin = time.perf_counter()
        self.engine.transfer(self.plan, self.layer, self.fresh)
        self.copied(misses, time.perf_counter() - begin)

    def copied(self, rows: int, measured: float) -> None:
        """Notes a batch of copies."""
        charged = self.link.seconds(rows * sum(self.segment_bytes), measured)
        self.copy_seconds += charged
        self.charge += charged - measured
        self.copied_rows += rows

    def gather(self, segment, slots):
        begin = time.perf_counter()
        rows = super().gather(segment, slots)
        self.read_seconds += time.perf_counter() - begin
        return rows

    def end_step(self) -> None:
        """Does what a step's time leaves out."""


class CopyEveryRow(Timed):
    """Copies every selected row from the pool at every step, in the order of the ids."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.host = [self.pool.blocks(self.layer, segment)[0] for segment in range(len(self.segment_bytes))]
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


class ReadEveryRow(Timed):
    """Reads every selected row from the pool's file at every step: its table is emptied before each plan."""

    def copy_misses(self) -> None:
        self.batch.generation[0] += 1
        planned = self.plan_seconds
        super().copy_misses()
        # Without a table there is nothing to plan.
        self.charge -= self.plan_seconds - planned
        self.plan_seconds = planned


class Mapped(Timed):
    """Reads every selected row through the mapping of a file, without AVSG, whose memory the page cache has."""

    def __init__(self, model: ModelRows, layer: int) -> None:
        self.layer, self.capacity, self.k, self.tokens = layer, model.capacity, model.k, model.tokens
        self.segment_bytes, self.counts = model.segment_bytes, Counts()
        memory = avsg.Engine.memory(model.shape, model.tokens, 1, **model.engine_options)
        #: The layer's share of the bytes of AVSG's pool and engine, and those of its plan.
        self.memory = (memory.pool + memory.engine_host) // model.layers + memory.plan_host
        self.file = MappedRows(model.file.path, model.capacity, sum(model.segment_bytes), self.memory)
        self._gathered = np.empty((model.k * model.tokens, sum(model.segment_bytes)), np.uint8)

    def write(self, first, *segments):
        self.file.write(first, np.concatenate(segments, axis=1))
        self.file.end_step()

    def step(self, ids, context, *segments):
        begin, chosen = time.perf_counter(), ids.ravel()
        self.file.write(context, np.concatenate(segments, axis=1))
        self.file.read(chosen, self._gathered[: len(chosen)])
        self.copied(len(chosen), time.perf_counter() - begin)
        return np.arange(len(chosen)).reshape(ids.shape)

    def gather(self, segment, slots):
        first = sum(self.segment_bytes[:segment])
        return self._gathered[: slots.size, first : first + self.segment_bytes[segment]]

    def end_step(self):
        self.file.end_step()

    @property
    def cached_bytes(self) -> int:
        return self.file.cached_bytes()


def device_bytes() -> int:
    """Returns the bytes that this process has read from devices. Reads from the page cache do not count."""
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["read_bytes"])


@dataclass
class Setting:
    """One model and cache, and what its steps took."""

    name: str
    model: Model
    cache: list
    seconds: list[float] = field(default_factory=list)
    #: Whether the rows are in files, and the bytes that the steps have read from devices.
    disk: bool = False
    read_bytes: int = 0

    @property
    def layers(self) -> list[Timed]:
        """The rows of each layer; none if they are resident."""
        return [part[0].rows for part in self.cache if isinstance(part[0], AvsgKVCache)]

    def total(self, name: str) -> float:
        """Adds one figure of all layers."""
        return sum(getattr(layer, name) for layer in self.layers)

    def run(self, step: Step) -> mx.array:
        """Runs one step and notes its time, with the link's in the place of the copies'."""
        read = device_bytes() if self.disk else 0
        charged, begin = self.total("charge"), time.perf_counter()
        logits = decode(self.model, self.cache, step)
        self.seconds.append(time.perf_counter() - begin + self.total("charge") - charged)
        self.read_bytes += device_bytes() - read if self.disk else 0
        for layer in self.layers:
            layer.end_step()
        return logits

    def line(self) -> str:
        """Describes the steps in one line of the table.

        Times are milliseconds per token; the share is that of plans, copies and reads. The bytes
        are those that were copied, or read from the disk.
        """
        steps, times = len(self.seconds), sorted(self.seconds)
        p50, p95 = statistics.median(times) * 1e3, times[int(steps * 0.95)] * 1e3
        parts = [self.total(name) / steps * 1e3 for name in ("plan_seconds", "copy_seconds", "read_seconds")]
        share = 100 * sum(parts) / (statistics.fmean(times) * 1e3)
        rows = int(self.total("copied_rows"))
        figures = "  ".join(f"{part:6.3f}" for part in parts)
        megabytes = (self.read_bytes if self.disk else rows * 1152) / 1e6
        return f"{self.name:18} {p50:7.2f}  {p95:7.2f}  {figures}  {share:4.1f} %  {rows:8}  {megabytes:8.2f}"


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
    model: Model,
    text: list[int],
    prompt: int,
    steps: int,
    slots: int,
    link: Link,
    prefilled: list,
    disk: str | None = None,
) -> tuple[list[Setting], int]:
    """Decodes one text in all settings, in turns. With `disk`, a folder, the rows are in files there.

    Returns the settings, and how many logits differ from the resident ones.
    """
    settings, different = [Setting("all rows resident", model, model.make_cache(), disk=disk is not None)], 0
    kinds, file = [("every row copied", CopyEveryRow), ("AVSG", Timed)], None
    if disk is not None:
        file = avsg.PoolFile(disk, queue_bytes=QUEUE_BYTES)
        kinds = [("every row read", ReadEveryRow), ("mapped", Mapped), ("AVSG", Timed)]
    with ExitStack() as blocks:
        for name, kind in kinds:
            rows = type(kind.__name__, (kind,), {"link": link})
            twin = same_weights(model)
            blocks.enter_context(offload(twin, max_context=prompt + steps, slots=slots, rows=rows, file=file))
            settings.append(Setting(name, twin, twin.make_cache(), disk=disk is not None))
        for setting in settings:
            adopt(setting.cache, prefilled)
        for token in text[prompt : prompt + steps]:
            logits = [setting.run(Step([token], 1)) for setting in settings]
            different += sum(int((bits(logits[0]) != bits(other)).sum().item()) for other in logits[1:])
    return settings, different


def main() -> int:
    """Prints the figures of docs/end-to-end.md."""
    parser = options.parser(__doc__, layers=3, k=2048, slots=8192, prompt=32768, steps=64)
    parser.add_argument(
        "--repeat", type=float, default=0.9, help="probability that a token repeats the one before (default 0.9)"
    )
    parser.add_argument("--latency", type=float, default=10.0, help="latency of an emulated link in us (default 10)")
    parser.add_argument("--links", default="25,50,100", help="GB/s of the emulated links (default 25,50,100)")
    parser.add_argument("--disk", metavar="FOLDER", help="keep the rows in files of this folder, without links")
    asked = parser.parse_args()
    model, text = random_model(asked.layers, asked.k), random_text(asked.prompt + asked.steps, repeat=asked.repeat)
    prefilled = random_cache(model, asked.prompt)
    end, gather = asked.prompt + asked.steps, own_gather(model, asked.prompt) * 1e3
    print(f"{asked.layers} layers, K = {asked.k}, S = {asked.slots}, context {asked.prompt} to {end}")
    print(f"rows of 1152 bytes, {asked.steps} steps a link, repeat {asked.repeat:g}")
    if asked.disk is None:
        print(f"emulated links: a layer's copies of a step are charged {asked.latency:g} us + bytes / bandwidth")
        links = [None, *map(float, asked.links.split(","))]
    else:
        print("MB: read from the device")
        links = [None]
    print(f"mlx-lm's own gather, which all settings make: {gather:.2f} ms a token by itself")
    print("milliseconds per token")
    figures = "   p50      p95    plan    copy    read   share      rows        MB"
    print(f"{'link':11} {'setting':15} {figures}  differing logits")
    wrong = 0
    for speed in links:
        link = Link(speed, asked.latency if speed else 0.0)
        settings, different = measure(model, text, asked.prompt, asked.steps, asked.slots, link, prefilled, asked.disk)
        wrong += different
        for setting in settings:
            name = link if asked.disk is None else "disk"
            print(f"{name!s:11} {setting.line()}  {different:16}")
        for setting in settings:
            if setting.name == "mapped":
                limit, end = setting.total("memory") / 1e6, setting.total("cached_bytes") / 1e6
                print(f"mapped: page cache limited to AVSG's {limit:.2f} MB by posix_fadvise after each step;", end=" ")
                print(f"{end:.2f} MB at the end")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
