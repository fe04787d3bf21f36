"""Selected ids without a row raise, unless the caller reads the status of each request."""

import numpy as np
import pytest
from conftest import OnlyDlpack, device_batch

import avsg
import avsg.engine
from avsg import RequestStatus


def refusal(made, call="step"):
    with pytest.raises(avsg.InvalidError) as caught:
        getattr(made.engine, call)(made.batch, made.plan)
    return str(caught.value)


@pytest.mark.parametrize("call", ["step", "plan"])
def test_a_request_without_tokens_raises(deployment, call):
    deployment.batch.seq_len[0] = 0
    deployment.batch.ids[0, 3] = 7
    assert refusal(deployment, call) == (
        "request 0 selects id 7, but its seq_len is 0; set seq_len to the length with the tokens of this step, "
        "pass negative ids as padding, or pass check=False and read plan.status"
    )


def test_an_id_beyond_the_pool_raises(deployment):
    deployment.batch.seq_len[0] = 600
    deployment.batch.ids[0, :3] = 5, 599, 512
    assert "request 0 selects id 599, but row 599 is outside of the pool's 512 rows; make a" in refusal(deployment)


@pytest.mark.parametrize(("entries", "held"), [([0, 1, -1], "-1"), ([0, 1, 8], "8"), ([0, 1], "missing")])
def test_an_id_without_a_block_raises(entries, held):
    pool = avsg.Pool(1, 128, 48)
    engine = avsg.Engine(pool, k=16, slots=64, states=3, page=16, cores=1)
    plan, batch = engine.new_plan(), avsg.Batch.zeros(3, 16, blocks=len(entries))
    batch.seq_len[:], batch.block_table[:] = 100, [0] * len(entries)
    batch.block_table[2] = entries
    batch.ids[2, :2] = 31, 33
    with pytest.raises(avsg.InvalidError, match=f"request 2 selects id 33, but entry 2 of its block_table is {held}, "):
        engine.step(batch, plan)


def test_the_id_is_found_in_any_row_and_any_frameworks_array():
    engine = avsg.Engine(avsg.Pool(1, 128, 48), k=16, slots=64, states=2, tokens=2, page=16, cores=1)
    batch, ids = avsg.Batch.zeros(2, 16, blocks=4), np.full((3, 32), -1, np.int32)[:, :16]
    batch.point(ids=OnlyDlpack(ids), cu_q=np.array([0, 1, 3], np.int32))
    batch.point(seq_len=OnlyDlpack(np.array([0, 40], np.int32)))
    ids[1, :2], ids[2, 9] = (39, 0), 40
    with pytest.raises(avsg.InvalidError, match="request 1 selects id 40, but its seq_len is 40"):
        engine.step(batch, engine.new_plan())


def test_a_refused_batch_is_corrected_and_planned_again(deployment):
    batch, plan, engine = deployment.batch, deployment.plan, deployment.engine
    for call in ("plan", "step"):
        batch.ids[0] = np.arange(500, 516)
        assert "id 512" in refusal(deployment, call)
        with pytest.raises(avsg.InvalidError, match="plan is empty"):
            engine.transfer(plan, 1)
        batch.ids[0] = np.arange(496, 512)
        engine.step(batch, plan)
        engine.transfer(plan, 1)
        assert deployment.wrong_rows(layer=0) == deployment.wrong_rows(layer=1) == 0


@pytest.mark.parametrize("call", ["step", "plan"])
def test_the_caller_reads_the_status_himself(deployment, call):
    batch, plan, engine = deployment.batch, deployment.plan, deployment.engine
    batch.seq_len[0] = 600
    batch.ids[0] = np.arange(590, 606)
    getattr(engine, call)(batch, plan, check=False)
    both = RequestStatus.ID_OUT_OF_RANGE | RequestStatus.ROW_OUT_OF_POOL
    assert plan.status.tolist() == [both] and plan.counters.status == plan.request(0).status == both
    assert (plan.slots[0] == -1).all()
    batch.ids[0] = np.arange(500, 516)
    engine.step(batch, plan, check=False)
    assert plan.status.tolist() == [RequestStatus.ROW_OUT_OF_POOL]
    assert (plan.slots[0, :12] >= 0).all() and (plan.slots[0, 12:] == -1).all()
    assert (engine.buffer()[0, plan.slots[0, :12]] == deployment.rows[0, 500:512]).all()


def test_padding_is_no_mistake():
    engine = avsg.Engine(avsg.Pool(1, 128, 48), k=16, slots=64, states=2, page=16, cores=1)
    plan, batch = engine.new_plan(), avsg.Batch.zeros(2, 16, blocks=8)
    batch.state[1], batch.ids[1], batch.seq_len[0] = -1, 999, 10
    batch.ids[0, 4] = 9
    engine.step(batch, plan)
    assert plan.status.tolist() == [0, 0]
    assert np.flatnonzero(plan.slots.ravel() >= 0).tolist() == [4]


def test_the_status_of_an_earlier_batchs_requests_is_not_this_ones():
    engine = avsg.Engine(avsg.Pool(1, 128, 48), k=16, slots=64, states=2, page=16, cores=1)
    plan, two, one = engine.new_plan(), avsg.Batch.zeros(2, 16, blocks=8), avsg.Batch.zeros(1, 16, blocks=8)
    two.ids[1, 0] = 1
    engine.step(two, plan, check=False)
    assert plan.status.tolist() == [0, 1]
    engine.step(one, plan)
    two.point(state=one.state, cu_q=one.cu_q, generation=one.generation, stable_len=one.stable_len)
    two.point(seq_len=one.seq_len, block_table=one.block_table)
    engine.step(two, plan)


def test_a_call_in_a_stream_does_not_read_the_hosts_status(deployment, monkeypatch):
    deployment.batch.seq_len[0] = 0
    deployment.batch.ids[0] = np.arange(16)
    deployment.engine.step(deployment.batch, deployment.plan, check=False)
    assert deployment.plan.status.any()

    class Library:
        """A device takes work in a stream, and returns before it is done."""

        avsg_engine_step = avsg_engine_plan = staticmethod(lambda *_: 0)

    monkeypatch.setattr(avsg.engine, "lib", Library)
    deployment.engine.device = "npu"
    deployment.engine.step(device_batch(), deployment.plan, stream=4096)
    deployment.engine.plan(device_batch(), deployment.plan, stream=4096)
