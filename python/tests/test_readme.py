"""The README's programs run, and the rows that its attention reads are right."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import THOROUGH, make_deployment

import avsg

README = Path(__file__).resolve().parents[1] / "README.md"


def programs():
    return re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)


def test_ten_lines_decode():
    truth, seen = np.random.default_rng(4).integers(0, 256, (3010, 1152), dtype=np.uint8), []

    def select(length):
        names["ids"] = np.random.default_rng(length).permutation(length + 1)[:2048]
        return names["ids"]

    names = {
        "prompt": 3000,
        "steps": 10,
        "select": select,
        "new_row": lambda length: truth[length],
        "attend": lambda rows: seen.append((rows == truth[names["ids"]]).all()),
    }
    source = programs()[0]
    # The prompt's rows go into the pool as the text below the program says.
    names["truth"] = truth
    setup, loop = source.split("for length in")
    exec(setup + "pool.write(0, 0, truth[:prompt])\nfor length in" + loop, names)
    assert seen == [True] * 10
    assert (names["pool"].read_row(0, 3009) == truth[3009]).all()


@pytest.mark.skipif(not THOROUGH, reason="AVSG_THOROUGH=1 runs this")
def test_the_torch_program_runs():
    torch = pytest.importorskip("torch")
    made = make_deployment()
    per_request = ("cu_q", "state", "generation", "stable_len", "seq_len")
    names = {"torch": torch, "avsg": avsg, "engine": made.engine, "plan": made.plan}
    made.batch.ids[0] = np.arange(16)
    names |= {name: torch.from_numpy(getattr(made.batch, name)) for name in ("ids", *per_request)}
    names["fresh"] = torch.zeros((1, 48), dtype=torch.uint8)
    exec(programs()[1], names)
    assert made.wrong_rows() == 0
