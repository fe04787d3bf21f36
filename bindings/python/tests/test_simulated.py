"""The simulated Ascend device behaves through this package as the CPU does.

It needs a library with the feature `sim`:

cargo build --release -p avsg-capi-so --features sim && AVSG_LIBRARY=target/release/libavsg.so
pytest bindings/python/tests
"""

import numpy as np
import pytest

import avsg

pytestmark = pytest.mark.skipif(
    "ascend-sim" not in avsg.devices(), reason="the library was built without the feature sim"
)


def test_the_simulated_device_gives_the_cpus_slots_and_misses():
    data = np.random.default_rng(3).integers(0, 256, (512, 64), dtype=np.uint8)
    pool = avsg.Pool(1, 512, 64, pages=avsg.Pages.PLAIN)
    pool.write(0, 0, data)
    options = {"k": 16, "slots": 128, "spread": 2, "cores": 2}
    engines = [avsg.Engine(pool, device=device, **options) for device in ("cpu", "ascend-sim")]
    plans = [engine.new_plan() for engine in engines]
    batch, rng = avsg.Batch.zeros(1, 16), np.random.default_rng(5)
    batch.seq_len[0] = 512
    for _ in range(12):
        batch.ids[0] = rng.permutation(200)[:16]
        for engine, plan in zip(engines, plans):
            engine.step(batch, plan)
        assert (plans[0].slots == plans[1].slots).all()
        assert plans[0].counters[:6] == plans[1].counters[:6]
        assert (plans[0].request(0).miss_id == plans[1].request(0).miss_id).all()
        assert (engines[0].buffer()[0, plans[0].slots[0]] == data[batch.ids[0]]).all()


def test_the_status_of_host_arrays_is_checked_as_on_the_cpu():
    pool = avsg.Pool(1, 100, 64, pages=avsg.Pages.PLAIN)
    engine = avsg.Engine(pool, device="ascend-sim", k=16, slots=128, cores=2)
    batch, plan = avsg.Batch.zeros(1, 16), engine.new_plan()
    batch.ids[0, 0], batch.seq_len[0] = 120, 200
    with pytest.raises(avsg.InvalidError, match="request 0 selects id 120, but row 120 is outside of the pool's 100"):
        engine.step(batch, plan)
    engine.step(batch, plan, check=False)
    assert plan.status.tolist() == [avsg.RequestStatus.ROW_OUT_OF_POOL] and plan.slots[0, 0] == -1
    batch.ids[0, 0] = 99
    engine.step(batch, plan)
    assert plan.status.tolist() == [0] and plan.slots[0, 0] >= 0


def test_device_memory_is_no_host_array():
    pool = avsg.Pool(1, 128, 64, pages=avsg.Pages.PLAIN)
    engine = avsg.Engine(pool, device="ascend-sim", k=16, slots=128, cores=2)
    with pytest.raises(avsg.UnsupportedError, match="this memory is on the device ascend-sim: pass its address"):
        engine.buffer()
    assert engine.view().address and engine.new_plan().device_view("slot").device == "ascend-sim"
    with pytest.raises(avsg.InvalidError, match="'row_misses' is not an array in device memory; read .* 'summary'"):
        engine.new_plan().device_view("row_misses")
    batch = avsg.Batch.zeros(1, 16)
    with pytest.raises(avsg.InvalidError, match="a stream was passed, but the batch is in host memory"):
        engine.step(batch, engine.new_plan(), stream=4096)
