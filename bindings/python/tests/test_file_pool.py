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
        both = pool.read([0, 1], 3, PROMPT)
        assert (np.concatenate(both, axis=2) == rows[:, 3 : PROMPT + 3]).all()
        pool.write([0, 1], 3, *both)
        with pytest.raises(avsg.InvalidError, match="rows of 2 layers were passed, but 1 are listed"):
            pool.write([0], 3, *both)
        for layer in range(LAYERS):
            assert (np.concatenate(pool.read(layer, 0, PROMPT + 20), axis=1) == rows[layer, : PROMPT + 20]).all()
            for read in (pool.read_row, lambda layer, row: pool.read(layer, row, 1)):
                with pytest.raises(avsg.LostRowsError, match=f"row {PROMPT + 20} of layer {layer} is not whole at"):
                    read(layer, PROMPT + 20)
        assert decode(pool, rows, 30) == 0
    assert os.listdir(disk) == ["rows"]


def test_a_session_is_what_its_last_commit_gave(disk, rows):
    file = avsg.PoolFile(disk / "rows", keep=True, sessions=3, session_rows=16, session_bytes=20, token_bytes=4)
    with avsg.Pool(LAYERS, ROWS, 48, file=file) as pool:
        assert (pool.session(1).length, pool.session(1).data) == (0, b"")
        pool.write([0, 1], 32, rows[:, :20])
        pool.write_tokens(32, np.arange(20, dtype=np.int32))
        pool.commit(1, 20, [2, 3], b"a prompt")
    with avsg.Pool.open(disk / "rows") as pool:
        session = pool.session(1)
        assert (session.length, session.blocks.tolist(), session.data) == (20, [2, 3], b"a prompt")
        assert (pool.read_tokens(32, 20).view(np.int32)[:, 0] == np.arange(20)).all()
        assert (pool.read([0, 1], 32, 20)[0] == rows[:, :20]).all()
        with pytest.raises(avsg.InvalidError, match="a session keeps the first 4 rows of block 3"):
            pool.write(0, 51, rows[0, :1])
        pool.commit(1, 0, [])
        pool.write(0, 51, rows[0, :1])


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


def test_a_damaged_row_costs_the_requests_that_miss_it(disk, rows):
    path = disk / "rows"
    with avsg.Pool(LAYERS, ROWS, (32, 16), file=avsg.PoolFile(path, keep=True)) as pool:
        fill(pool, rows)
        pool.flush()
    bytes_ = bytearray(path.read_bytes())
    for row in 70, 73:
        bytes_[bytes_.index(rows[0, row].tobytes())] ^= 1
    path.write_bytes(bytes_)
    with avsg.Pool.open(path) as pool:
        engine = avsg.Engine(pool, k=K, slots=64, states=8)
        plan, batch = engine.new_plan(), avsg.Batch.zeros(requests=8, k=K)
        batch.ids[:] = np.arange(8)[:, None] * 14 + np.arange(K)
        batch.seq_len[:] = PROMPT
        lost = [r for r in range(8) if 70 in batch.ids[r]]
        lost_ids = {r: [row for row in (70, 73) if row in batch.ids[r]] for r in lost}

        def check(left_out, is_new=True):
            assert plan.failures == [avsg.Failure(r, 0, 70, is_new, lost_ids[r]) for r in left_out]
            for r in set(range(8)) - set(left_out):
                got = np.concatenate([engine.buffer(0, part)[r, plan.slots[r]] for part in range(2)], axis=1)
                assert (got == rows[0, batch.ids[r]]).all()

        assert lost == [4, 5]
        with pytest.raises(avsg.LostRowsError, match="row 70 of layer 0 is not whole") as caught:
            engine.step(batch, plan)
        assert isinstance(caught.value, LookupError)
        check(lost)
        with pytest.raises(avsg.LostRowsError, match="left out 2 of"):
            engine.transfer(plan, 1)
        check(lost, is_new=False)
        with pytest.raises(avsg.LostRowsError, match="row 70"):
            engine.load(plan, np.arange(60, 75, dtype=np.int32), state=1, generation=0, seq_len=PROMPT)
        assert plan.failures == [avsg.Failure(0, 0, 70, True, [70, 73])] and not engine.held(1, 0, 0, PROMPT).any()
        for row in 70, 73:
            pool.write_row(0, row, rows[0, row])
        engine.step(batch, plan)
        # All ids of a state that is empty miss.
        assert list(plan.misses) == [K if r in (1, *lost) else 0 for r in range(8)]
        check([])


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


def test_transfers_are_under_way_during_other_calls(disk, rows):
    with avsg.Pool(LAYERS, ROWS, (32, 16), file=avsg.PoolFile(disk)) as pool:
        fill(pool, rows)
        engine = avsg.Engine(pool, k=K, slots=64, states=3, under_way=2)
        assert engine.info.under_way == 2
        plans, batches = [engine.new_plan(1, 1) for _ in range(3)], []
        for state, plan in enumerate(plans):
            batch = avsg.Batch.zeros(requests=1, k=K)
            batch.ids[0], batch.state[0], batch.seq_len[0] = np.arange(K) * (state + 2), state, PROMPT
            batch.stable_len[0] = -1
            engine.plan(batch, plan)
            batches.append(batch)
        every = avsg.Layers(range(LAYERS))
        with pytest.raises(avsg.InvalidError, match="no transfer of it is under way"):
            engine.wait(plans[0])
        engine.begin(plans[0], every)
        engine.begin(plans[1], every)
        with pytest.raises(avsg.BusyError, match="2 transfers are under way"):
            engine.begin(plans[2], every)
        with pytest.raises(avsg.InvalidError, match="state is 0, but a transfer of its plan is under way"):
            engine.plan(batches[0], plans[2])
        while not engine.is_done(plans[1]):
            pass
        for state in (1, 0):
            engine.wait(plans[state])
            for layer in range(LAYERS):
                got = np.concatenate(
                    [engine.buffer(layer, part)[state, plans[state].slots[0]] for part in range(2)], axis=1
                )
                assert (got == rows[layer, batches[state].ids[0]]).all()
        # A transfer that nobody waits for.
        engine.begin(plans[2], 1)
        plans[2].close()
        engine.plan(batches[2], plans[1])
