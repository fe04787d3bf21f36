"""Times one step that copies nothing: by ctypes, by Engine.step, and by torch's operator.

  python3 bindings/python/tests/overhead.py [CALLS]

They are called in turns, in blocks, so that a busy machine slows all alike. The figures are
microseconds per call.
"""

import statistics
import sys
import time

import numpy as np
from conftest import make_deployment

import avsg
from avsg._library import lib

BLOCK = 500


def callers(made):
    """Returns the ways to make the same step, by name."""
    engine, batch, plan = made.engine, made.batch, made.plan
    batch.ids[0] = np.arange(16)
    # What the fastest ctypes program would pass: plain addresses.
    addresses = engine._handle._as_parameter_.value, plan._handle._as_parameter_.value
    struct = batch._as_parameter_
    ways = {
        "avsg_engine_step by ctypes": lambda: lib.avsg_engine_step(addresses[0], struct, addresses[1], 0, None, None),
        "Engine.step": lambda: engine.step(batch, plan),
        "Engine.step, check=False": lambda: engine.step(batch, plan, check=False),
    }
    try:
        import torch
    except ImportError:
        return ways
    from avsg import torch_ops

    numbers = torch_ops.number(engine), torch_ops.number(plan)
    tensors = [
        torch.from_numpy(getattr(batch, name))
        for name in ("ids", "cu_q", "state", "generation", "stable_len", "seq_len")
    ]
    slots, buffers = torch.from_dlpack(plan.view("slot")), [torch.from_dlpack(engine.view(0))]
    ways["torch.ops.avsg.step"] = lambda: torch.ops.avsg.step(*numbers, 0, *tensors, None, [], slots, buffers)
    return ways


def measure(ways, calls):
    """Returns the median and the 95th percentile of the blocks' microseconds per call, by name."""
    times = {name: [] for name in ways}
    for call in ways.values():
        # torch imports modules at an operator's first call.
        call()
    for _ in range(max(2, calls // BLOCK)):
        for name, call in ways.items():
            begin = time.perf_counter()
            for _ in range(BLOCK):
                call()
            times[name].append((time.perf_counter() - begin) / BLOCK * 1e6)
    return {name: (statistics.median(found), statistics.quantiles(found, n=20)[-1]) for name, found in times.items()}


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    print(f"avsg {avsg.__version__}, K = 16, S = 64, every row a hit; microseconds per call")
    for name, (median, p95) in measure(callers(make_deployment()), calls).items():
        print(f"{name:28} p50 {median:8.2f}   p95 {p95:8.2f}")


if __name__ == "__main__":
    main()
