"""A refused call raises the exception of its status with the library's sentence."""

import copy
import pickle
import threading

import numpy as np
import pytest

import avsg
from avsg import errors


def test_every_status_has_an_exception_that_python_programs_expect():
    expected = {
        1: ValueError,
        2: ValueError,
        3: ValueError,
        6: NotImplementedError,
        7: MemoryError,
        8: OSError,
        9: RuntimeError,
        11: RuntimeError,
        12: LookupError,
    }
    for status, kind in expected.items():
        error = errors.from_status(status, "AVSG_NAME", "a sentence")
        assert isinstance(error, kind) and isinstance(error, avsg.AvsgError) and error.status == status
        assert "a sentence" in str(error)
    unknown = errors.from_status(77, "unknown status", "a sentence")
    assert type(unknown) is avsg.AvsgError and unknown.status == 77


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"slots": 100}, avsg.InvalidError, "slots"),
        ({"k": 0}, avsg.InvalidError, "K is 0, but it must be 1..=64"),
        ({"device": "abacus"}, avsg.AvsgError, "abacus"),
        ({"device": "ascend"}, avsg.UnsupportedError, "libacl_rt.so"),
        (
            {"wings": 2},
            TypeError,
            "'wings' is no option of an engine; the options are copier, copier_ahead, cores, device",
        ),
        ({"reserved": 1}, TypeError, "'reserved' is no option"),
    ],
)
def test_an_engine_is_refused_in_a_sentence(options, kind, words):
    pool = avsg.Pool(1, 128, 64)
    with pytest.raises(kind, match=words):
        avsg.Engine(pool, **{"k": 16, "slots": 64, "cores": 1, **options})


def test_a_pool_larger_than_the_machine_takes_nothing():
    with pytest.raises(avsg.NoMemoryError) as caught:
        avsg.Pool(1, 1 << 40, 1152)
    assert isinstance(caught.value, MemoryError)


def test_closed_objects_are_refused(deployment):
    deployment.plan.close()
    with pytest.raises(avsg.NullError, match="plan is closed, but the call needs it; make another one"):
        deployment.engine.step(deployment.batch, deployment.plan)
    deployment.engine.close()
    with pytest.raises(avsg.NullError, match="engine is closed"):
        deployment.engine.buffer()
    deployment.pool.close()
    with pytest.raises(avsg.NullError, match="pool is closed"):
        deployment.pool.read_row(0, 0)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_an_object_is_neither_pickled_nor_copied_and_names_what_does(deployment, copied):
    workers, view = avsg.Workers(1), deployment.plan.view("slot")
    for one in (deployment.pool, deployment.engine, deployment.plan, workers, view):
        with pytest.raises(TypeError, match="pass what Pool.export returns to Pool.attach in another process"):
            copied(one)


def test_a_failed_step_changes_nothing(deployment):
    deployment.batch.ids[0] = np.arange(16)
    deployment.engine.step(deployment.batch, deployment.plan)
    before = deployment.engine.stats
    deployment.batch.state[0] = 1
    with pytest.raises(avsg.InvalidError, match="state"):
        deployment.engine.step(deployment.batch, deployment.plan)
    assert deployment.engine.stats == before
    deployment.batch.state[0] = 0
    deployment.engine.step(deployment.batch, deployment.plan)
    assert deployment.plan.counters.misses == 0 and deployment.wrong_rows() == 0


def test_each_thread_has_its_own_sentence(deployment):
    sentences = {}

    def refuse(layer):
        for _ in range(200):
            try:
                deployment.engine.buffer(layer)
            except avsg.InvalidError as error:
                sentences.setdefault(layer, set()).add(str(error))

    threads = [threading.Thread(target=refuse, args=(layer,)) for layer in (5, 6, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {layer: len(found) for layer, found in sentences.items()} == {5: 1, 6: 1, 7: 1}
    assert all(str(layer) in next(iter(found)) for layer, found in sentences.items())


def test_a_second_thread_is_busy_and_a_closed_engine_ends_its_call_first(deployment):
    engine, outcomes = deployment.engine, set()

    def steps(plan):
        batch = avsg.Batch.zeros(1, 16)
        batch.seq_len[0] = 512
        for step in range(3000):
            batch.ids[0] = np.arange(step % 400, step % 400 + 16)
            try:
                engine.step(batch, plan)
                outcomes.add("done")
            except avsg.BusyError:
                outcomes.add("busy")
            except avsg.NullError:
                outcomes.add("closed")
                return

    threads = [threading.Thread(target=steps, args=[engine.new_plan()]) for _ in range(3)]
    for thread in threads:
        thread.start()
    while "done" not in outcomes:
        pass
    engine.close()
    for thread in threads:
        thread.join()
    assert {"done"} <= outcomes <= {"done", "busy", "closed"}
