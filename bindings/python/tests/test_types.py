"""mypy accepts a user's program, and refuses those of its lines that are wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import avsg

shape = avsg.PoolShape(1, 512, 64, pages=avsg.Pages.PLAIN)
memory = avsg.Engine.memory(shape, k=16, slots=64, states=2, page=16, cores=2)
pool = avsg.Pool(1, 512, 64)
with avsg.Workers(2) as workers:
    engine = avsg.Engine(pool, k=16, slots=64, workers=workers, lifetime=avsg.Lifetime.LEARNED, layer_indexer=[0])
batch, plan, fresh = avsg.Batch.zeros(1, 16), engine.new_plan(), avsg.Fresh(np.zeros((1, 64), np.uint8))
batch.ids[0], batch.seq_len = np.arange(16), np.array([512], np.int32)
engine.step(batch, plan, 0, fresh)
print(engine.buffer()[0, plan.slots[0]].sum())
avsg.Engine(pool, k=16, slots=64, coers=2)  # wrong
avsg.Engine(pool, k=16, slots=64, lifetime="learned")  # wrong
avsg.Engine.memory(shape, k=16, slots=64, coers=2)  # wrong
batch.idz = np.arange(16)  # wrong
batch.ids.idz()  # wrong
"""


def test_mypy_refuses_the_wrong_lines_of_a_program_and_no_other(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # The cache stays with the installed packages, because a run without one takes seconds.
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", Path(sys.prefix) / "mypy_cache", program]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    refused = [int(line.split(":")[1]) for line in printed.stdout.splitlines() if ": error: " in line]
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")]
    assert refused == wrong, printed
