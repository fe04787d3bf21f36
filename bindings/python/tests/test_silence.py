"""A program prints nothing that it did not ask for, also when it ends in disorder."""

import subprocess
import sys

import pytest

SETUP = """
import gc, os, sys, threading, time
import numpy as np
import avsg
from avsg._library import Handle

pool = avsg.Pool(1, 128, 64)
engine = avsg.Engine(pool, k=16, slots=64, cores=2)
plan, batch = engine.new_plan(), avsg.Batch.zeros(1, 16)
batch.seq_len[0] = 128
engine.step(batch, plan)
buffer, slots = engine.buffer(), plan.slots
"""
PROGRAMS = {
    "objects live until the interpreter ends": "import builtins; builtins.kept = engine, plan, pool, batch, slots",
    "a cycle of objects": "engine.own = engine, plan, slots; plan.own = plan; del engine, plan, slots",
    "closed twice": """
workers = avsg.Workers(2)
for one in (plan, engine, pool, workers) * 2:
    one.close()
with pool, engine, plan, workers:
    engine.close()
""",
    "constructors that fail": """
refused = (
    lambda: avsg.Pool(),
    lambda: avsg.Pool(0, 0, 0),
    lambda: avsg.Pool.attach(bytes(112), 0),
    lambda: avsg.Pool.over(avsg.PoolShape(1, 1, 1), []),
    lambda: avsg.Engine(pool),
    lambda: avsg.Engine(pool, k=0, slots=64),
    lambda: avsg.Engine(None, k=16, slots=64),
    lambda: avsg.Workers(0),
    lambda: avsg.Batch(5),
    lambda: avsg.Fresh(),
    lambda: engine.new_plan(max_tokens=0),
    lambda: Handle(),
    lambda: avsg.View(),
)
for call in refused:
    try:
        call()
    except (TypeError, ValueError):
        pass
    else:
        raise AssertionError(call)
""",
    "constructors that were interrupted": """
for kind in (Handle, avsg.Pool, avsg.Engine, avsg.Plan, avsg.Workers, avsg.Batch, avsg.Fresh):
    kind.__new__(kind)
gc.collect()
""",
    "modules that are gone": "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('avsg')]",
    "a thread in a step": """
def steps():
    while True:
        engine.step(batch, plan)

threading.Thread(target=steps, daemon=True).start()
time.sleep(0.05)
""",
    "a forked child": "child = os.fork(); child and os.waitpid(child, 0)",
    "a log": "avsg.set_log(lambda *_: None, avsg.LogLevel.DEBUG); more = avsg.Engine(pool, k=16, slots=64, cores=2)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_prints_nothing(program):
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", SETUP + program], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
