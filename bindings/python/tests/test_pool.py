"""Pools: geometry, views of all rows, the caller's memory, and a pool in two processes."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from conftest import Tensor

import avsg

CHILD = """
import socket, sys, avsg, numpy as np
descriptor, (fd,), *_ = socket.recv_fds(socket.socket(fileno=int(sys.argv[1])), 4096, 1)
pool = avsg.Pool.attach(descriptor, fd)
assert pool.info.role == avsg.Role.READER and not pool.blocks(0)[0].flags.writeable
print(int(np.concatenate(pool.blocks(1, 1)).sum()))
try:
    pool.write_row(0, 0, bytes(40))
except avsg.InvalidError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("rows", "chunk_bytes"), [(300, 0), (300, 64 * 32), (256, 64 * 32), (1, 0), (300, None), (65, 64 * 64)]
)
def test_blocks_cover_every_row_of_every_segment(rows, chunk_bytes):
    pool = avsg.Pool(2, rows, (32, 8), row_stride=(64, 8), chunk_bytes=chunk_bytes)
    rng = np.random.default_rng(1)
    for layer in range(2):
        parts = [rng.integers(0, 256, (rows, bytes_), dtype=np.uint8) for bytes_ in (32, 8)]
        pool.write(layer, 0, *parts)
        for row in {0, rows // 2, rows - 1}:
            assert (pool.read_row(layer, row) == np.concatenate([part[row] for part in parts])).all()
        for segment, part in enumerate(parts):
            blocks = pool.blocks(layer, segment)
            assert (np.concatenate(blocks) == part).all()
            blocks[-1][-1] = 7
        assert (pool.read_row(layer, rows - 1) == 7).all()


def bfloat16(bits, device="cpu"):
    """Returns a tensor of a type that NumPy does not have."""
    return Tensor(bits, "bfloat16", device)


@pytest.mark.parametrize("chunk_bytes", [0, 64 * 48])
def test_rows_of_any_type_are_written(chunk_bytes):
    pool, rng = avsg.Pool(1, 200, 48, chunk_bytes=chunk_bytes), np.random.default_rng(2)
    bits = rng.integers(0, 1 << 16, (150, 64), dtype=np.uint16)
    halves = bits[:, :24]
    for array, rows in [
        (halves.copy().view(np.float16), halves),
        (bfloat16(halves.copy()), halves),
        (bfloat16(halves), halves),
        (bfloat16(bits[:, ::-1][:, :24]), bits[:, ::-1][:, :24]),
        (halves.copy().view(np.float32).reshape(150, 2, 6), halves),
        (halves.copy().view(np.uint8), halves),
        (memoryview(halves.copy()), halves),
    ]:
        pool.write(0, 0, np.zeros((200, 12), np.float32))
        pool.write(0, 37, array)
        written = np.concatenate(pool.blocks(0))
        assert (written[37:187] == np.ascontiguousarray(rows).view(np.uint8)).all()
        assert not written[:37].any() and not written[187:].any()
    pool.write_row(0, 5, bfloat16(bits[3, :24]))
    assert (pool.read_row(0, 5) == bits[3, :24].view(np.uint8)).all()
    pool.write(0, 200, np.zeros((0, 48), np.uint8))


def test_refused_rows_change_nothing():
    pool, ones = avsg.Pool(1, 64, (16, 8)), [np.ones((8, 16), np.uint8), np.ones((8, 8), np.uint8)]
    for first, segments, words in [
        (60, ones, "rows 60 to 68 were passed, but the pool has 64; pass fewer"),
        (0, ones[:1], "1 arrays were passed, but a row has 2 segments"),
        (0, [ones[0], ones[0]], r"segment 1 has \[8, 16\] elements of uint8, but needs 8 bytes in each row"),
        (0, [ones[0], ones[1].astype(np.uint16)], "segment 1 has .* of uint16"),
        (0, [ones[0], np.uint8(1)], "segment 1 has .* but needs 8 bytes"),
        (0, [ones[0], ones[1][:4]], "segment 1 has 4 rows, but segment 0 has 8"),
        (0, [ones[0], bfloat16(np.ones((8, 4), np.uint16), "npu")], "segment 1 is on the device npu"),
    ]:
        with pytest.raises(avsg.InvalidError, match=words):
            pool.write(0, first, *segments)
        assert not any(block.any() for segment in range(2) for block in pool.blocks(0, segment))
    for call in (pool.write_row, avsg.Pool.over):
        with pytest.raises(avsg.InvalidError, match="is on the device npu, but needs to be in host memory"):
            on_device = bfloat16(np.ones(12, np.uint16), "npu")
            call(0, 0, on_device) if call == pool.write_row else call(avsg.PoolShape(1, 1, 24), [on_device])


def test_a_closed_pool_has_no_rows():
    pool = avsg.Pool(1, 64, 16)
    pool.write(0, 0, np.ones((64, 16), np.uint8))
    pool.close()
    for call in (lambda: pool.blocks(0), lambda: pool.write(0, 0, np.ones((64, 16), np.uint8))):
        with pytest.raises(avsg.NullError, match="pool is closed"):
            call()


def test_a_pool_over_the_callers_memory_reads_and_writes_it():
    shape = avsg.PoolShape(2, 100, 48)
    arrays = np.zeros((2, 100, 48), np.uint8)
    with pytest.raises(avsg.InvalidError, match="1 arrays were passed, but the pool has 2 layers of 1 segments"):
        avsg.Pool.over(shape, arrays[:1])
    pool = avsg.Pool.over(shape, arrays)
    pool.write_row(1, 3, np.full(48, 9, np.uint8))
    assert (arrays[1, 3] == 9).all() and arrays.sum() == 9 * 48 and pool.info.pages == avsg.Pages.CALLER
    engine = avsg.Engine(pool, k=16, slots=64, cores=1)
    batch, plan = avsg.Batch.zeros(1, 16), engine.new_plan()
    batch.ids[0, 0], batch.seq_len[0] = 3, 100
    pool.close()
    del pool
    engine.step(batch, plan, 1)
    assert (engine.buffer(1)[0, plan.slots[0, 0]] == 9).all()


def test_a_pool_is_not_made_over_read_only_arrays(tmp_path):
    rows, path = np.zeros((100, 48), np.uint8), tmp_path / "rows"
    rows.tofile(path)
    marked = rows.copy()
    marked.flags.writeable = False
    for read_only in (marked, bytes(4800), np.memmap(path, np.uint8, "r", shape=rows.shape)):
        with pytest.raises(avsg.InvalidError, match=r"^arrays\[1\] is read-only, .* pass a writable array, such as"):
            avsg.Pool.over(avsg.PoolShape(2, 100, 48), [rows, read_only])
    writable = np.memmap(path, np.uint8, "r+", shape=rows.shape)
    avsg.Pool.over(avsg.PoolShape(2, 100, 48), [rows, writable]).write_row(1, 3, np.full(48, 9, np.uint8))
    assert (writable[3] == 9).all()


def test_a_pool_over_the_callers_memory_has_its_strides():
    keys, values = np.zeros((3, 20, 32), np.uint8), np.zeros((3, 20, 2), np.float32)
    shape = avsg.PoolShape(3, 20, (24, 8), row_stride=(32, 8))
    pool = avsg.Pool.over(shape, [segment[layer] for layer in range(3) for segment in (keys, values)])
    ones = np.ones(2, np.float32)
    pool.write_row(2, 7, bytes([1] * 24) + ones.tobytes())
    assert (keys[2, 7] == [1] * 24 + [0] * 8).all() and keys.sum() == 24
    assert (values[2, 7] == ones).all() and values.sum() == 2
    keys_read, values_read = (pool.blocks(2, segment)[0] for segment in range(2))
    assert keys_read.shape == (20, 24) and (values_read[7] == ones.view(np.uint8)).all()


def pages(slab, at, block_rows, bytes_):
    """Returns the rows of one segment in each block of a slab, from byte `at` of the block on."""
    strides = slab.strides[0], bytes_, 1
    return np.lib.stride_tricks.as_strided(slab[:, at:], (len(slab), block_rows, bytes_), strides)


def test_a_pool_over_an_engines_pages_reads_and_writes_them():
    """In each page 64 rows of 576 bytes come first, then their 64 scales of 8 bytes, then padding."""
    rng, page = np.random.default_rng(5), 64 * 584 + 64
    slab = rng.integers(0, 256, (30, 2 * page + 512), dtype=np.uint8)
    before = slab.copy()
    views = [[pages(slab, at + gap, 64, n) for gap, n in ((0, 576), (64 * 576, 8))] for at in (0, page)]
    pool = avsg.Pool.over(avsg.PoolShape(2, 1920, (576, 8)), [view for layer in views for view in layer])
    rows = [[view.reshape(1920, -1) for view in layer] for layer in views]
    engine = avsg.Engine(pool, k=256, slots=512, page=64, cores=1)
    plan, batch = engine.new_plan(), avsg.Batch.zeros(1, 256, blocks=30)
    batch.block_table[0], batch.seq_len[0] = rng.permutation(30), 1920
    batch.ids[0] = rng.permutation(1920)[:256]
    engine.plan(batch, plan)
    picked = batch.block_table[0, batch.ids[0] // 64] * 64 + batch.ids[0] % 64
    for layer, parts in enumerate(rows):
        engine.transfer(plan, layer)
        for segment, part in enumerate(parts):
            assert (engine.buffer(layer, segment)[0, plan.slots[0]] == part[picked]).all()
            assert (np.concatenate(pool.blocks(layer, segment)) == part).all()
    new = [rng.integers(0, 256, (100, n), dtype=np.uint8) for n in (576, 8)]
    pool.write(1, 50, *new)
    for segment, part in enumerate(new):
        rows[1][segment][50:150] = part
        assert (views[1][segment].reshape(1920, -1) == rows[1][segment]).all()
    assert (slab[:, :page] == before[:, :page]).all() and (slab[:, 2 * page :] == before[:, 2 * page :]).all()


def test_an_array_with_strides_says_which_rows_it_has():
    slab = np.zeros((10, 64 * 584 + 40), np.uint8)
    rows = pages(slab, 0, 64, 584)
    avsg.Pool.over(avsg.PoolShape(1, 640, 584), [rows]).write_row(0, 70, np.full(584, 5, np.uint8))
    assert (rows[1, 6] == 5).all() and slab.sum() == 5 * 584
    padded = np.zeros((640, 600), np.uint8)[:, :584]
    pool = avsg.Pool.over(avsg.PoolShape(1, 640, 584), [padded])
    pool.write(0, 3, rows[0])
    assert (padded[3:67] == rows[0]).all() and (pool.blocks(0)[0] == padded).all() and not padded.base[:, 584:].any()
    for shape, arrays, words in [
        ((1, 641, 584), [rows], r"arrays\[0\] has 640 rows, but the pool has 641"),
        ((1, 640, 584, 600), [rows], r"arrays\[0\] has 584 bytes from row to row, but row_stride is 600"),
        ((1, 640, 585), [rows], r"arrays\[0\] has 10 rows, but the pool has 640"),
        ((1, 640, 584), [padded[::-1]], r"arrays\[0\] has the shape .* and \[-600, 1\] bytes between elements"),
        ((2, 640, 584), [rows, padded], r"arrays\[1\] has blocks of 0 rows, 38400 and 600 bytes apart, but others"),
        ((1, 480, 584), [rows[:, :48]], "block rows is 48, but it must be 0 or a power of two"),
        ((2, 640, 584), [rows, rows], "have the same bytes; give each memory of its own"),
    ]:
        with pytest.raises(avsg.InvalidError, match=words):
            avsg.Pool.over(avsg.PoolShape(*shape), arrays)


def test_a_shape_says_what_it_takes():
    shape = avsg.PoolShape(2, 1000, (1024, 128))
    assert shape.bytes() >= 2 * 1000 * 1152
    memory = avsg.Engine.memory(shape, k=16, slots=64, states=3)
    assert memory.buffer >= 3 * 2 * 64 * 1152 and memory.tables > 0
    whole = avsg.Engine.memory(shape, 6, 3, k=16, slots=64, states=3)
    assert (whole.pool, whole.engine_host) == (shape.bytes(), memory.buffer + memory.tables)
    assert whole.plan_host == 6 * (20 * 16 + 8) + 3 * 116 + 4 and whole.engine_device == whole.staging_device == 0
    on_device = avsg.Engine.memory(shape, 6, 3, k=16, slots=128, device="ascend")
    assert on_device.plan_device == on_device.plan_pinned > 0 and on_device.staging_device > 6 * 1152
    with pytest.raises(avsg.InvalidError, match="a row has 5 segments and 5 strides"):
        avsg.PoolShape(1, 1, (1,) * 5).bytes()


def test_another_process_reads_a_pool_that_was_sent():
    pool = avsg.Pool(2, 100, (32, 8))
    pool.write(1, 0, np.zeros((100, 32), np.uint8), np.full((100, 8), 2, np.uint8))
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdout=subprocess.PIPE
    )
    descriptor, fd = pool.export()
    socket.send_fds(ours, [descriptor], [fd])
    os.close(fd)
    total, sentence = child.communicate()[0].decode().splitlines()
    assert child.returncode == 0 and total == "1600" and "read" in sentence


def test_a_pool_is_exported_and_attached():
    pool = avsg.Pool(1, 100, 32)
    pool.write_row(0, 5, bytes([4] * 32))
    descriptor, fd = pool.export()
    with pytest.raises(avsg.AvsgError):
        avsg.Pool.attach(descriptor, fd, avsg.Role.WRITER)
    with avsg.Pool.attach(descriptor, fd) as other:
        assert (other.read_row(0, 5) == 4).all()
    pool.demote()
    assert pool.info.role == avsg.Role.READER
    with avsg.Pool.attach(descriptor, fd, avsg.Role.WRITER) as writer:
        writer.write_row(0, 5, bytes([6] * 32))
    os.close(fd)
    assert (pool.read_row(0, 5) == 6).all()
