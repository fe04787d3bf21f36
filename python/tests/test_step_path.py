"""A step keeps no memory: objects are made once, and a call only passes addresses."""

import gc
import tracemalloc

import numpy as np

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
