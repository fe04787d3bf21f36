"""The README's programs run, the rows that its attention reads are right, and what it names exists."""

import re

import numpy as np
import pytest
from conftest import PYTHON, THOROUGH, make_deployment

import avsg

README = PYTHON / "README.md"
SOURCES = PYTHON / "src" / "avsg"
MASK = "slots[slots >= 0]"


def programs():
    return re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)


def decode(source, prompt, steps, k=2048):
    """Runs the decode loop and returns, for each step, whether attention got the rows of the selected ids."""
    truth, seen = np.random.default_rng(4).integers(0, 256, (prompt + steps, 1152), dtype=np.uint8), []

    def select(length):
        names["selected"] = np.random.default_rng(length).permutation(length + 1)[:k]
        return np.pad(names["selected"], (0, k - len(names["selected"])), constant_values=-1)

    names = {
        "prompt": prompt,
        "steps": steps,
        "select": select,
        "new_row": lambda length: truth[length],
        "attend": lambda rows: seen.append(np.array_equal(rows, truth[names["selected"]])),
        "truth": truth,
    }
    # The prompt's rows go into the pool as the text below the program says.
    setup, loop = source.split("for length in")
    exec(setup + "pool.write(0, 0, truth[:prompt])\nfor length in" + loop, names)
    assert (names["pool"].read_row(0, prompt + steps - 1) == truth[prompt + steps - 1]).all()
    return seen


@pytest.mark.parametrize("prompt", [3000, 2044, 5])
def test_the_first_program_decodes(prompt):
    assert decode(programs()[0], prompt, 8) == [True] * 8


def test_without_its_mask_the_first_program_reads_rows_of_nothing():
    source = programs()[0]
    assert source.count(MASK) == 1
    # The sequence is longer than K from the fourth step on.
    assert decode(source.replace(MASK, "slots"), 2044, 8) == [False] * 3 + [True] * 5


def test_the_program_of_several_requests_gives_exact_rows():
    random = np.random.default_rng(6)
    lengths, tables = np.array([700, 90, 1500]), random.permutation(96).reshape(3, 32)
    truth = random.integers(0, 256, (3, 2048, 1152), dtype=np.uint8)
    pool, seen = avsg.Pool(1, 96 * 64, 1152), []
    selected = [random.permutation(lengths[token // 2] + token % 2 + 1)[:256] for token in range(6)]
    for request in range(3):
        for start in range(0, lengths[request], 64):
            pool.write(0, tables[request, start // 64] * 64, truth[request, start : min(start + 64, lengths[request])])

    def attend(found):
        seen.append(np.array_equal(found, truth[len(seen) // 2, selected[len(seen)]]))

    names = {"avsg": avsg, "np": np, "pool": pool, "tables": tables, "lengths": lengths, "attend": attend}
    names["select"] = lambda _: [np.pad(ids, (0, 256 - len(ids)), constant_values=-1) for ids in selected]
    names["new_rows"] = lambda _: [truth[t // 2, lengths[t // 2] + t % 2] for t in range(6)]
    exec(programs()[1], names)
    assert seen == [True] * 6
    for request, length in enumerate(lengths):
        for id in (length, length + 1):
            row = tables[request, id // 64] * 64 + id % 64
            assert np.array_equal(pool.read_row(0, row), truth[request, id])


def test_the_program_of_several_indexers_gives_exact_rows():
    rows = np.random.default_rng(5).integers(0, 256, (3, 600, 64), dtype=np.uint8)
    pool, seen, selected = avsg.Pool(3, 600, 64), [], {}
    for layer in range(3):
        pool.write(layer, 0, rows[layer])

    def select(layer):
        selected[layer] = np.random.default_rng(layer).permutation(600)[:256]
        return selected[layer]

    def attend(found):
        layer = len(seen)
        seen.append((found == rows[layer, selected[max(first for first in selected if first <= layer)]]).all())

    names = {"avsg": avsg, "pool": pool, "select": select, "length": 600, "attend": attend}
    exec(programs()[2], names)
    assert seen == [True] * 3 and list(selected) == [0, 2] and names["engine"].info.indexers == 2


def test_the_program_that_rewrites_rows_reads_the_new_ones():
    made, rows = make_deployment(), np.random.default_rng(8).integers(0, 256, (8, 48), dtype=np.uint8)
    made.batch.ids[0] = np.arange(34, 50)
    made.engine.step(made.batch, made.plan)
    exec(programs()[3], {"pool": made.pool, "engine": made.engine, "new_rows": rows})
    made.rows[0, 40:48] = rows
    made.engine.step(made.batch, made.plan)
    assert made.wrong_rows() == 0 and made.plan.counters.misses >= 8


def test_the_program_of_a_file_keeps_its_rows(disk):
    rows = np.random.default_rng(7).integers(0, 256, (500, 1152), dtype=np.uint8)
    names = {"avsg": avsg, "path": disk / "rows", "prompt_rows": rows}
    exec(programs()[4], names)
    assert (names["pool"].read(0, 0, 500)[0] == rows).all()


@pytest.mark.skipif(not THOROUGH, reason="AVSG_THOROUGH=1 runs this")
def test_the_torch_program_runs():
    torch = pytest.importorskip("torch")
    made = make_deployment()
    per_request = ("cu_q", "state", "generation", "stable_len", "seq_len")
    names = {"torch": torch, "avsg": avsg, "engine": made.engine, "plan": made.plan}
    made.batch.ids[0] = np.arange(16)
    names |= {name: torch.from_numpy(getattr(made.batch, name)) for name in ("ids", *per_request)}
    made.batch.stable_len[0], names["fresh"] = 511, torch.zeros((1, 48), dtype=torch.uint8)
    exec(programs()[5], names)
    assert made.wrong_rows() == 0


def test_every_name_in_the_text_exists():
    text, seen = README.read_text(), set()
    objects = {"avsg": avsg, "pool": avsg.Pool, "engine": avsg.Engine, "plan": avsg.Plan, "batch": avsg.Batch}
    objects |= {kind.__name__: kind for kind in (avsg.Pool, avsg.Engine, avsg.Plan, avsg.Batch)}
    for owner, name in re.findall(rf"(?<![\w./])({'|'.join(objects)})\.(\w+)(?=[^\w/])", text):
        if owner == "avsg" and name == "torch_ops":
            continue
        assert hasattr(objects[owner], name), (owner, name)
        seen.add(name)
    defined = set(re.findall(r"^def (\w+)", (SOURCES / "torch_ops.py").read_text(), flags=re.M))
    in_torch = set(re.findall(r"(?:avsg\.torch_ops|torch\.ops\.avsg)\.(?!py\b)(\w+)", text))
    assert in_torch and in_torch <= defined, in_torch - defined
    assert {"step", "over", "point", "slots", "device_view", "RequestStatus"} <= seen


def test_the_refusal_in_the_text_is_the_librarys():
    name, sentence = re.search(r"`(InvalidError): (.*?)`", README.read_text()).groups()
    with pytest.raises(getattr(avsg, name)) as caught:
        avsg.Engine(avsg.Pool(1, 128, 64), k=0, slots=64)
    assert str(caught.value) == sentence
