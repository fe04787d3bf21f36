"""Decodes a prompt that another process computed, and compares every bit of every logit with one process that did both.

  python -m avsg_mooncake.compare --help

It starts the prefill process, unless --prefill names one that runs (with the same --layers, --k and
--seed). The exit status is 0 only if all logits are equal.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from avsg_mlx_lm import offload
from avsg_mlx_lm.harness import options
from avsg_mlx_lm.harness.compare import Report
from avsg_mlx_lm.harness.decoding import decode, prefill, steps_of
from avsg_mlx_lm.harness.model import random_model, random_text, same_weights
from mlx_lm.models.deepseek_v32 import Model

from .control import Geometry, address_of
from .decode import Receiver
from .endpoint import Endpoint, transfer_engine
from .errors import TransferError
from .node import NodePool


@contextmanager
def prefill_process(*command: str, **options: Any) -> Iterator[tuple[subprocess.Popen, tuple[str, int]]]:
    """Runs a prefill process, waits for the line that says where it listens, and ends it after the block."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, **options)
    try:
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise TransferError(f"the prefill process printed {line!r} and no address; see its messages above")
        yield process, address_of(line.split()[-1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def compare(model: Model, receiver: Receiver, text: list[int], *, prompt: int, steps: int, slots: int) -> Report:
    """Decodes `steps` tokens of a text after a prompt, both ways."""
    report, twin = Report(), same_weights(model)
    begin = time.perf_counter()
    with receiver.request(text[:prompt], steps) as request:
        print(f"prompt         {prompt} tokens in {time.perf_counter() - begin:.2f} s, rows {request.rows}")
        print(
            "prefill        {seconds:.2f} s, writes {write_seconds:.3f} s, waits for them {waited:.3f} s".format(
                **request.times
            )
        )
        with offload(twin, max_context=len(request.rows), slots=slots):
            theirs, ours = model.make_cache(), request.cache(twin)
            token = int(mx.argmax(prefill(model, theirs, text[:prompt])[0, -1]).item())
            if token != request.token:
                raise SystemExit(f"the prefill process says that token {request.token} follows, but it is {token}")
            for step in steps_of(text, prompt, steps, 1):
                report.add(step, decode(model, theirs, step), decode(twin, ours, step))
            report.layers = [cache[0].rows.counts for cache in ours]
    return report


def main() -> int:
    """Prints what was compared."""
    parser = options.parser(__doc__, layers=3, k=64, slots=128, prompt=1024, steps=512, seed=1)
    parser.add_argument("--prefill", help="host:port of a prefill process that runs (default: start one)")
    parser.add_argument("--host", default="127.0.0.1", help="this machine's address for Mooncake")
    parser.add_argument("--protocol", default="tcp", help="tcp or rdma")
    asked = parser.parse_args()
    transfer_engine()  # Without Mooncake nothing is started.
    model = random_model(asked.layers, asked.k, asked.seed)
    node = NodePool(Geometry.of(model), asked.prompt + asked.steps)
    text = random_text(asked.prompt + asked.steps + 1, asked.seed)
    sizes = {"prompt": asked.prompt, "steps": asked.steps, "slots": asked.slots}

    def run(address: tuple[str, int]) -> Report:
        receiver = Receiver(node, address, endpoint=lambda: Endpoint(asked.host, asked.protocol))
        report = compare(model, receiver, text, **sizes)
        receiver.close()
        return report

    if asked.prefill:
        report = run(address_of(asked.prefill))
    else:
        passed = [f"--{name}={getattr(asked, name)}" for name in ("layers", "k", "seed", "host", "protocol")]
        with prefill_process("-m", "avsg_mooncake.serve", *passed) as (_, address):
            report = run(address)
    selected, misses, evictions = (report.total(name) for name in ("selected", "misses", "evictions"))
    print(f"rows selected  {selected}, {misses} missed, {evictions} evicted")
    print(f"logits         {report.logits} compared, {report.different} differ, max difference {report.max_difference}")
    return 0 if report.different == 0 and report.steps == asked.steps else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TransferError as error:
        sys.exit(str(error))
