"""A number that C cannot hold and an object of the wrong type are named as they were given."""

import numpy as np
import pytest

import avsg

ARRAY = np.zeros(1, np.int32)
CALLS = [
    (lambda m: avsg.Pool(-1, 64, 16), "layers is -1, but 0 to"),
    (lambda m: avsg.Pool(1, 1 << 64, 16), "rows is 18446744073709551616, but 0 to 18446744073709551615"),
    (lambda m: avsg.Pool(1, 64, -16), "row_bytes is -16"),
    (lambda m: avsg.Pool(1, 64, (16, -8)), r"row_bytes\[1\] is -8"),
    (lambda m: avsg.Pool(1, 64, 16, row_stride=-16), "row_stride is -16"),
    (lambda m: avsg.Pool(1, 64, 16, chunk_bytes=-2), "chunk_bytes is -2"),
    (lambda m: m.pool.read_row(-1, 0), "layer is -1"),
    (lambda m: m.pool.write_row(0, -2, bytes(48)), "row is -2"),
    (lambda m: m.pool.write(0, -3, np.zeros((1, 48), np.uint8)), "first is -3"),
    (lambda m: m.pool.blocks(0, -1), "segment is -1"),
    (lambda m: avsg.Engine(m.pool, k=-16, slots=64), "k is -16, but 0 to 4294967295"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=(1 << 32) + 64), "slots is 4294967360, but 0 to 4294967295"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, states=-1), "states is -1"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, cores=-1), "cores is -1"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, life=1 << 31), "life is 2147483648"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, layer_indexer=[0, -1]), r"layer_indexer\[1\] is -1"),
    (lambda m: m.engine.buffer(-1), "layer is -1"),
    (lambda m: m.engine.invalidate(0, -5, 3), "first is -5"),
    (lambda m: m.engine.fork(0, 1, -1, 2), "target is -1"),
    (lambda m: m.engine.load(m.plan, ARRAY, state=1 << 31, generation=1, seq_len=1), "state is 2147483648"),
    (lambda m: m.engine.load(m.plan, ARRAY, state=0, generation=1, seq_len=1, indexer=-1), "indexer is -1"),
    (lambda m: m.engine.new_plan(max_tokens=-1), "max_tokens is -1"),
    (lambda m: m.engine.new_plan(max_requests=-1), "max_requests is -1"),
    (lambda m: m.engine.page_table(ARRAY, ARRAY[None], ARRAY, page=-16), "page is -16"),
    (lambda m: m.engine.step(m.batch, m.plan, -1), "layer is -1"),
    (lambda m: m.engine.step(m.batch, m.plan, 1 << 64), "layer is 18446744073709551616"),
    (lambda m: m.engine.transfer(m.plan, -1), "layer is -1"),
    (lambda m: m.engine.append(m.batch, -1, avsg.Fresh(ARRAY)), "layer is -1"),
    (lambda m: avsg.Layers([0, -1]), r"layers\[1\] is -1"),
    (lambda m: avsg.Layers([0, 1], [avsg.Fresh(ARRAY)]), "2 layers and 1 fresh rows were passed"),
    (lambda m: m.engine.fork(0, 1, [1, -2], [2, 2]), r"target\[1\] is -2"),
    (lambda m: m.engine.held(-1, 1, 0, 9), "state is -1"),
    (lambda m: m.engine.held(0, 1, -3, 9), "first is -3"),
    (lambda m: m.engine.held(0, 1 << 40, 0, 9), "generation is 1099511627776"),
    (lambda m: m.engine.step(m.batch, m.plan, 0, None, -8), "stream is -8"),
    (lambda m: m.plan.request(-1), "request is -1"),
    (lambda m: m.plan.view("k"), "'k' is not an array of a plan; the arrays are slot, valid, row_misses, summary"),
    (lambda m: avsg.Batch.zeros(-1, 16), "requests is -1"),
    (lambda m: avsg.Batch.zeros(1, 16, indexer=-1), "indexer is -1"),
    (lambda m: setattr(m.batch, "indexer", -1), "indexer is -1"),
    (lambda m: avsg.Workers(-2), "threads is -2"),
    (lambda m: avsg.Workers(2, cpus=[0, 1 << 31]), r"cpus\[1\] is 2147483648"),
    (lambda m: avsg.set_log(None, 1 << 40), "level is 1099511627776"),
]
TYPES = [
    (lambda m: avsg.Pool("1", 64, 16), "layers is of type str, but a whole number is needed"),
    (lambda m: avsg.Pool(1, 64, 16.0), "row_bytes is of type float"),
    (
        lambda m: avsg.Pool(1, 64, 16, pages="huge"),
        "pages is of type str, but a member of avsg.Pages is needed; pass one of DEFAULT, HUGE_1G, HUGE_2M",
    ),
    (lambda m: avsg.Pool.attach(bytes(112), 0, "reader"), "role is of type str, but a member of avsg.Role is needed"),
    (lambda m: avsg.Pool.over((1, 64, 16), []), "shape is of type tuple, but an avsg.PoolShape is needed"),
    (lambda m: avsg.Pool.attach("text", 0), "descriptor is of type str"),
    (lambda m: avsg.Pool.attach(bytes(112), "0"), "fd is of type str"),
    (lambda m: m.pool.read_row(0, None), "row is of type NoneType"),
    (lambda m: m.pool.write(0, 0.5, np.zeros((1, 48), np.uint8)), "first is of type float"),
    (lambda m: m.pool.write_row(0, 0, np.zeros(6, object)), "data is an array of Python objects"),
    (lambda m: avsg.Engine(avsg.PoolShape(1, 64, 16), k=16, slots=64), "pool is of type PoolShape"),
    (lambda m: avsg.Engine.memory(m.pool, k=16, slots=64), "pool is of type Pool, but an avsg.PoolShape is needed"),
    (lambda m: avsg.Engine(m.pool, k=16.0, slots=64), "k is of type float"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, device=7), "device is of type int, but text is needed"),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, workers=3), "workers is of type int, but an avsg.Workers is needed"),
    (
        lambda m: avsg.Engine(m.pool, k=16, slots=64, lifetime="learned"),
        "lifetime is of type str, but a member of avsg.Lifetime is needed; pass one of AUTO, CONSTANT, LEARNED",
    ),
    (lambda m: avsg.Engine(m.pool, k=16, slots=64, table=None), "table is of type NoneType, but a member of"),
    (
        lambda m: avsg.Engine(m.pool, k=16, slots=64, table=avsg.Lifetime.CONSTANT),
        "table is of type Lifetime, but a member of avsg.Table is needed; pass one of WIDE, PAPER",
    ),
    (lambda m: avsg.set_log(None, "debug"), "level is of type str, but a member of avsg.LogLevel is needed"),
    (lambda m: m.engine.step([1], m.plan), "batch is of type list, but an avsg.Batch is needed"),
    (lambda m: m.engine.step(m.batch, m.plan, 0, ARRAY), "fresh is of type ndarray, but an avsg.Fresh is needed"),
    (lambda m: m.engine.step(m.batch, None), "plan is of type NoneType, but an avsg.Plan is needed"),
    (lambda m: m.engine.step(m.batch, m.plan, "0"), "layer is of type str"),
    (lambda m: m.engine.step(m.batch, m.plan, 0.5), "layer is of type float"),
    (lambda m: m.engine.plan(5, m.plan), "batch is of type int"),
    (lambda m: m.engine.plan(avsg.Fresh(ARRAY), m.plan), "batch is of type Fresh, but an avsg.Batch is needed"),
    (lambda m: m.engine.transfer(m.batch), "plan is of type Batch"),
    (lambda m: m.engine.transfer(m.plan, 0, 5, 4096), "fresh is of type int"),
    (lambda m: m.engine.append(m.batch, avsg.Fresh(ARRAY), 0), "layer is of type Fresh"),
    (lambda m: m.engine.append(avsg.Fresh(ARRAY), 0, m.batch), "batch is of type Fresh"),
    (lambda m: m.engine.append(m.plan, avsg.Layers([0], [avsg.Fresh(ARRAY)])), "batch is of type Plan"),
    (lambda m: m.engine.transfer(m.batch, avsg.Layers([0])), "plan is of type Batch"),
    (lambda m: m.engine.transfer(m.plan, avsg.Layers([0]), avsg.Fresh(ARRAY)), "fresh was passed beside layers"),
    (lambda m: avsg.Layers([0], [ARRAY]), r"fresh\[0\] is of type ndarray"),
    (lambda m: m.engine.load(m.batch, ARRAY, state=0, generation=1, seq_len=1), "plan is of type Batch"),
    (lambda m: m.engine.load(m.plan, ARRAY, state="0", generation=1, seq_len=1), "state is of type str"),
    (lambda m: m.engine.discard(m.engine), "plan is of type Engine"),
    (lambda m: m.engine.new_plan(max_requests="2"), "max_requests is of type str"),
    (lambda m: m.plan.request("0"), "request is of type str"),
    (lambda m: avsg.Batch.zeros(1, "16"), "k is of type str"),
    (lambda m: avsg.Workers(2, cpus="all"), r"cpus\[0\] is of type str"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[words for _, words in CALLS])
def test_numbers_are_named_as_they_were_given(deployment, call, words):
    with pytest.raises(avsg.InvalidError, match=f"^{words}"):
        call(deployment)


@pytest.mark.parametrize(("call", "words"), TYPES, ids=[words for _, words in TYPES])
def test_wrong_types_are_named(deployment, call, words):
    with pytest.raises(TypeError, match=f"^{words}"):
        call(deployment)


def test_numpys_numbers_are_whole_numbers():
    one = np.int64(1)
    pool = avsg.Pool(one, np.uint16(64), np.int64(16))
    engine = avsg.Engine(pool, k=np.int32(16), slots=np.int64(64), cores=one)
    batch = avsg.Batch.zeros(one, np.int64(16), indexer=np.int64(0))
    engine.step(batch, engine.new_plan(max_requests=one), np.int64(0))
    assert engine.buffer(np.uint8(0)).shape == (1, 64, 16)


def test_fresh_rows_that_no_request_takes_are_refused(deployment):
    engine, batch, plan = deployment.engine, deployment.batch, deployment.plan
    fresh = avsg.Fresh(np.zeros((1, 48), np.uint8))
    calls = [
        lambda: engine.step(batch, plan, 0, fresh),
        lambda: engine.append(batch, 0, fresh),
        lambda: engine.append(batch, avsg.Layers([0], [fresh])),
    ]
    for call in calls:
        with pytest.raises(avsg.InvalidError, match="fresh rows were passed, but every stable_len is -1"):
            call()
    # A vacant place takes nothing, whatever it has kept, and a batch of vacant places leaves nothing out.
    batch.state = np.array([-1], np.int32)
    for call in calls:
        call()
    batch.stable_len, batch.state = np.array([511], np.int32), np.array([0], np.int32)
    for call in calls:
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda text: avsg.Pool(1, 64, 16, file=text),
        lambda text: avsg.Pool.open(avsg.PoolFile(text)),
        lambda text: avsg.Engine(avsg.Pool(1, 64, 16), k=4, slots=64, device=text),
        lambda text: avsg.Engine(avsg.Pool(1, 64, 16), k=4, slots=64, kernels=text),
        lambda text: avsg.Engine(avsg.Pool(1, 64, 16), k=4, slots=64, runtime=text),
    ],
)
@pytest.mark.parametrize("text", ["cpu\0.tmp", b"cpu\0"])
def test_a_text_with_a_nul_is_refused(make, text):
    with pytest.raises(avsg.InvalidError, match="a text ends at a NUL; pass one without a NUL"):
        make(text)


def test_closed_workers_are_refused():
    workers = avsg.Workers(2)
    workers.close()
    with pytest.raises(avsg.NullError, match="workers are closed"):
        avsg.Engine(avsg.Pool(1, 64, 16), k=16, slots=64, workers=workers)


def test_a_closed_plan_gives_its_memory_back_and_no_arrays(deployment):
    slots = deployment.plan.slots
    deployment.plan.close()
    assert slots.shape == (2, 16)
    with pytest.raises(avsg.NullError, match="plan is closed"):
        _ = deployment.plan.slots
