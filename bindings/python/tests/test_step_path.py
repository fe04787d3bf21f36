"""A step keeps no memory: objects are made once, and a call only passes addresses."""

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import avsg


def test_steps_keep_no_memory(deployment):
    fresh_rows = np.zeros((1, 48), np.uint8)
    fresh, batch, plan, engine = avsg.Fresh(fresh_rows), deployment.batch, deployment.plan, deployment.engine
    layers = avsg.Layers([0], [fresh])
    batch.ids[0] = np.arange(16)
    batch.stable_len[0], batch.seq_len[0] = 511, 512

    def steps(count):
        for step in range(count):
            batch.ids[0, 0] = step % 500
            engine.step(batch, plan, 0, fresh)
            engine.append(batch, 0, fresh)
            engine.transfer(plan, layers)
            engine.append(batch, layers)

    steps(50)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    steps(500)
    gc.collect()
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    kept = sum(line.size_diff for line in after.compare_to(before, "filename") if "avsg" in line.traceback[0].filename)
    assert kept < 1024, kept


CLOSED = """
import avsg, numpy as np

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

before, kind = resident(), avsg.PoolShape(1, 1 << 15, 1024)
pool = {pool}
pool.write(0, 0, np.ones((1 << 15, 1024), np.uint8))
engine = avsg.Engine(pool, k=2048, slots=1 << 15, cores=1)
plan, batch = engine.new_plan(), avsg.Batch.zeros(1, 2048)
batch.seq_len[0] = 1 << 15
for first in range(0, 1 << 15, 2048):
    batch.ids[0] = np.arange(first, first + 2048)
    engine.step(batch, plan)
held = resident() - before
engine.close(), pool.close()
print(held >> 20, resident() - before >> 20)
"""


@pytest.mark.parametrize("pool", ["avsg.Pool(*kind[:3])", "avsg.Pool.over(kind, [np.ones((1 << 15, 1024), np.uint8)])"])
def test_a_closed_engine_and_pool_hold_no_memory_while_their_objects_live(pool):
    """Rows and slots take 32 MiB each."""
    held, left = map(int, subprocess.check_output([sys.executable, "-c", CLOSED.replace("{pool}", pool)]).split())
    assert held >= 64 and left <= held - 60, (held, left)
