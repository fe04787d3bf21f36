"""Pools whose rows are in a file: steps are exact, and a kept file has every flushed row."""

import os

import numpy as np
import pytest

import avsg

LAYERS, ROWS, PROMPT, K = 2, 160, 120, 16


def decode(pool, rows, steps, **options):
    """Decodes and returns the number of wrong rows. `rows` is what row i of layer l holds."""
    engine = avsg.Engine(pool, k=K, slots=64, **options)
    plan, batch, wrong = engine.new_plan(), avsg.Batch.zeros(requests=1, k=K), 0
    for length in range(PROMPT, PROMPT + steps):
        ids = np.random.default_rng(length).permutation(length + 1)[:K]
        batch.ids[0], batch.stable_len[0], batch.seq_len[0] = ids, length, length + 1
        engine.plan(batch, plan)
        for layer in range(LAYERS):
            new = rows[layer, length : length + 1]
            fresh = avsg.Fresh(new[:, :32].copy(), new[:, 32:].copy())
            engine.transfer(plan, layer, fresh)
            got = np.concatenate([engine.buffer(layer, part)[0, plan.slots[0]] for part in range(2)], axis=1)
            wrong += int((got != rows[layer, ids]).any(axis=1).sum())
            engine.append(batch, layer, fresh)
    return wrong


@pytest.fixture
def rows():
    return np.random.default_rng(3).integers(0, 256, (LAYERS, ROWS, 48), dtype=np.uint8)


def fill(pool, rows):
    for layer in range(LAYERS):
        pool.write(layer, 0, rows[layer, :PROMPT, :32], rows[layer, :PROMPT, 32:])


@pytest.mark.parametrize("buffered", [False, True])
def test_a_kept_file_has_every_flushed_row(disk, rows, buffered):
    path = disk / "rows"
    with avsg.Pool(LAYERS, ROWS, (32, 16), file=avsg.PoolFile(path, keep=True, buffered=buffered)) as pool:
        fill(pool, rows)
        # A row that waits in the queue of writes is not read from the file.
        pool.flush()
        assert decode(pool, rows, 20) == 0
        pool.flush()
        info = pool.info
        assert info.record_bytes % info.block_bytes == 0 and info.record_bytes >= LAYERS * (48 + 8)
        assert info.reads > 0 and info.written_bytes >= (PROMPT + 20) * info.record_bytes
        assert info.io in (avsg.Io.URING, avsg.Io.PREADV)
        with pytest.raises(avsg.AvsgError):
            avsg.Pool.open(path)
    with pytest.raises(avsg.AvsgError):
        avsg.Pool(LAYERS, ROWS, (32, 16), file=avsg.PoolFile(path, keep=True))
    with avsg.Pool.open(avsg.PoolFile(path, buffered=buffered)) as pool:
        for layer in range(LAYERS):
            assert (np.concatenate(pool.read(layer, 0, PROMPT + 20), axis=1) == rows[layer, : PROMPT + 20]).all()
            with pytest.raises(avsg.InvalidError, match=str(PROMPT + 20)):
                pool.read_row(layer, PROMPT + 20)
        assert decode(pool, rows, 30) == 0
    assert os.listdir(disk) == ["rows"]


def test_a_private_file_leaves_nothing_behind_and_has_no_addresses(disk, rows):
    file = avsg.PoolFile(disk, layer_indexer=[0, 1])
    with avsg.Pool(LAYERS, ROWS, (32, 16), file=file) as pool:
        fill(pool, rows)
        assert (pool.read_row(1, 7) == rows[1, 7]).all()
        assert os.listdir(disk) == []
        assert pool.info.chunks == 0
        for refused in (lambda: pool.blocks(0), pool.export):
            with pytest.raises(avsg.InvalidError, match="pool is in a file"):
                refused()
        with pytest.raises(avsg.InvalidError, match="indexer"):
            avsg.Engine(pool, k=K, slots=64)
        avsg.Engine(pool, k=K, slots=64, layer_indexer=[0, 1])


def test_memory_is_that_of_the_queue_of_writes(disk):
    shape = avsg.PoolShape(LAYERS, 1 << 20, 1152, file=str(disk))
    assert shape.bytes() < 32 << 20 < avsg.PoolShape(LAYERS, 1 << 20, 1152).bytes()


def test_a_wrong_file_is_refused_by_its_name(disk):
    for file, error, words in [
        (disk / "no" / "folder", avsg.AvsgError, "no/folder"),
        (3, TypeError, "file is of type int"),
        (avsg.PoolFile(disk, layer_indexer=[0, 0, 0]), avsg.InvalidError, "the pool has 2 layers"),
    ]:
        with pytest.raises(error, match=words):
            avsg.Pool(LAYERS, ROWS, (32, 16), file=file)
    (disk / "text").write_text("of someone else")
    with pytest.raises(avsg.AvsgError):
        avsg.Pool.open(disk / "text")
    pool = avsg.Pool(1, 64, 16)
    pool.flush()
    assert (pool.info.file_bytes, pool.info.io) == (0, avsg.Io.NONE)
