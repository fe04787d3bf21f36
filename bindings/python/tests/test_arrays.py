"""Arrays in and out: shared where they can be, refused in a sentence where they cannot."""

import array
import gc

import numpy as np
import pytest
from conftest import OnlyDlpack

import avsg
from avsg.memory import span


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "float64"])
def test_numpy_and_dlpack_describe_an_array_alike(dtype):
    data = np.zeros((3, 8, 5), dtype)
    for part in (data, data[1:, ::2], data[:0], data.T):
        direct, through = span(part, "part"), span(OnlyDlpack(part), "part")
        assert direct[:3] + direct[5:6] == through[:3] + through[5:6]
        assert direct.shape == through.shape == part.shape
        if part.size:
            assert direct.strides == through.strides == part.strides
            assert direct.contiguous == through.contiguous == part.flags.c_contiguous


def test_the_buffer_protocol_is_read_in_place():
    data = array.array("i", [5, 6, 7])
    assert span(data, "data").address == data.buffer_info()[0]
    assert span(bytearray(4), "data").nbytes == 4


def test_ids_from_dlpack_are_read_in_place(deployment):
    ids, batch = np.arange(16, dtype=np.int32)[None], deployment.batch
    batch.point(ids=OnlyDlpack(ids))
    for first in (0, 30, 200):
        ids[0] = np.arange(first, first + 16)
        deployment.engine.step(batch, deployment.plan)
        assert deployment.plan.counters.misses == 16
        assert sorted(deployment.plan.request(0).miss_id) == list(ids[0])


def test_ids_may_have_a_row_stride(deployment):
    wide = np.arange(64, dtype=np.int32).reshape(2, 32)
    deployment.batch.point(ids=wide[:, :16], cu_q=np.array([0, 2], np.int32))
    deployment.engine.step(deployment.batch, deployment.plan)
    assert sorted(deployment.plan.request(0).miss_id) == [*range(16), *range(32, 48)]
    assert deployment.wrong_rows() == 0


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("ids", np.zeros((1, 16), np.int64), TypeError, "ids is of int64, but AVSG reads int32"),
        ("ids", np.zeros((1, 16), ">i4"), TypeError, "ids is of >i4, the other byte order"),
        ("ids", np.zeros(16, np.int32), avsg.InvalidError, "ids has 1 axes, but needs 2"),
        ("ids", np.zeros((1, 32), np.int32)[:, ::2], avsg.InvalidError, "8 bytes between neighbours, but needs 4"),
        ("state", [0], TypeError, "state is of type list, but an array is needed"),
        ("length", np.zeros(1, np.int32), TypeError, "'length' is not an array of a batch"),
    ],
)
def test_a_refused_array_leaves_the_batch_as_it_was(deployment, name, value, kind, words):
    with pytest.raises(kind, match=words.replace("[", r"\[")):
        deployment.batch.point(**{"seq_len": np.array([100], np.int32), name: value})
    deployment.batch.ids[0, 0] = 500
    deployment.engine.step(deployment.batch, deployment.plan)
    assert deployment.plan.counters.status == 0 and deployment.plan.slots[0, 0] >= 0


def test_the_engine_reads_an_array_that_was_assigned(deployment):
    batch, plan = deployment.batch, deployment.plan
    batch.ids = np.arange(100, 116, dtype=np.int32)[None]
    deployment.engine.step(batch, plan)
    assert plan.request(0).miss_id.tolist() == batch.ids[0].tolist() and deployment.wrong_rows() == 0
    batch.generation += 1
    deployment.engine.step(batch, plan)
    assert plan.counters.misses == 16
    for name in ("ids", "cu_q", "state", "generation", "stable_len", "seq_len"):
        array = getattr(batch, name) + 1
        setattr(batch, name, array)
        assert getattr(batch, name) is array and (batch._host_array(name) == array).all()
        assert getattr(batch._struct, name).data == array.ctypes.data
    batch.block_table = np.zeros((1, 3), np.int32)
    assert batch._struct.block_table.data == batch.block_table.ctypes.data and batch._struct.block_stride == 3


def test_an_assignment_that_is_refused_leaves_the_batch_as_it_was(deployment):
    batch, ids = deployment.batch, deployment.batch.ids
    for name, value, kind, words in [
        ("ids", ids.astype(np.int64), TypeError, "ids is of int64, but AVSG reads int32"),
        ("seq_len", [512], TypeError, "seq_len is of type list, but an array is needed"),
        ("block_table", None, TypeError, "block_table is of type NoneType, but an array is needed"),
        ("idz", ids, AttributeError, "'Batch' object has no attribute 'idz'"),
        ("device", "npu", AttributeError, "set"),
    ]:
        with pytest.raises(kind, match=words):
            setattr(batch, name, value)
    assert batch.ids is ids and batch.seq_len.tolist() == [512] and batch.device == "cpu"
    ids[0] = np.arange(16)
    deployment.engine.step(batch, deployment.plan)
    assert deployment.wrong_rows() == 0


def test_fresh_rows_must_be_contiguous():
    rows = np.zeros((4, 96), np.uint8)
    with pytest.raises(avsg.InvalidError, match="segment 1 is not contiguous"):
        avsg.Fresh(rows, rows[:, :48])
    with pytest.raises(avsg.InvalidError, match="0 segments were passed, but a row has 1 to 4"):
        avsg.Fresh()


def test_outputs_are_shared_and_read_only(deployment):
    buffer, slots = deployment.engine.buffer(1), deployment.plan.slots
    assert not buffer.flags.writeable and not slots.flags.writeable and slots is deployment.plan.slots
    shared = np.from_dlpack(deployment.plan.view("slot")), np.from_dlpack(deployment.engine.view(1))
    deployment.batch.ids[0] = np.arange(16)
    deployment.engine.step(deployment.batch, deployment.plan, 1)
    assert (shared[0] == slots).all() and (shared[1] == buffer).all()
    assert (buffer[0, slots[0]] == deployment.rows[1, :16]).all()


def test_memory_is_valid_while_an_array_over_it_exists(deployment):
    deployment.batch.ids[0] = np.arange(16)
    deployment.engine.step(deployment.batch, deployment.plan)
    gathered = deployment.engine.buffer()[0]
    slots, blocks = deployment.plan.slots, deployment.pool.blocks(0)
    deployment.plan.close(), deployment.engine.close(), deployment.pool.close()
    rows = deployment.rows
    del deployment
    gc.collect()
    assert (gathered[slots[0]] == rows[0, :16]).all()
    assert (np.concatenate(blocks) == rows[0]).all()


NO_VALUES = {
    "a masked array, .* pass array.filled": np.ma.masked_greater(np.zeros((1, 16), np.int32), 0),
    "an array of Python objects": np.zeros((1, 16), object),
    "a structured type; pass one of its fields": np.zeros((1, 16), [("id", "<i4"), ("name", object)]),
    "of >i4, the other byte order; pass array.astype": np.zeros((1, 16), ">i4"),
    "of >f4, the other byte order": memoryview(np.zeros((1, 16), ">f4")),
    "of NumPy's type <M8": np.zeros((1, 16), "M8[s]"),
    "of NumPy's type <U5": np.zeros((1, 16), "U5"),
    r"no address by DLPack \(": OnlyDlpack(np.zeros((1, 16), ">i4")),
}


@pytest.mark.parametrize("words", NO_VALUES)
def test_an_array_whose_values_are_not_its_bytes_is_refused(deployment, words):
    found, pool = NO_VALUES[words], deployment.pool
    for call in (
        lambda: setattr(deployment.batch, "ids", found),
        lambda: avsg.Fresh(found),
        lambda: pool.write(0, 0, found),
        lambda: pool.write_row(0, 0, found),
        lambda: avsg.Pool.over(avsg.PoolShape(1, 1, 16), [found]),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_an_array_whose_elements_share_memory_is_read_but_not_written(deployment):
    of, lengths = np.zeros(2, np.int32), np.zeros(2, np.int32)
    table = np.lib.stride_tricks.as_strided(np.zeros(4, np.int32), (2, 4), (0, 4))
    with pytest.raises(avsg.InvalidError, match="table has elements that share memory, .* pass a copy"):
        deployment.engine.page_table(of, table, lengths, page=16)
    uneven = np.ndarray((2, 4), np.int32, np.zeros(64, np.uint8), strides=(18, 4))
    with pytest.raises(avsg.InvalidError, match="table has 18 bytes between rows, but needs a multiple of 4"):
        deployment.engine.page_table(of, uneven, lengths, page=16)
    deployment.batch.ids = np.broadcast_to(np.arange(16, dtype=np.int32), (1, 16))
    deployment.engine.step(deployment.batch, deployment.plan)
    assert deployment.wrong_rows() == 0
