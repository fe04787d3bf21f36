"""Which stream a call passes on."""

import sys
import types

import numpy as np
import pytest
from conftest import device_batch, device_ints

import avsg
from avsg.streams import current_stream, stream_address


class Stream:
    def __init__(self, address):
        self.npu_stream = address


def test_addresses_and_stream_objects_are_taken():
    assert stream_address(None) is None and stream_address(4096) == 4096 and stream_address(Stream(64)) == 64
    with pytest.raises(TypeError, match="stream is of type str"):
        stream_address("stream")


def test_device_arrays_go_into_the_current_stream_of_their_device(monkeypatch):
    torch = types.SimpleNamespace(npu=types.SimpleNamespace(current_stream=lambda device: Stream(4096 + device.index)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    batch = device_batch()
    assert batch.device == "npu" and current_stream("npu", batch.ids) == 4096
    torch.npu.current_stream = lambda device: Stream(0)
    with pytest.raises(avsg.InvalidError, match="default stream"):
        current_stream("npu", batch.ids)
    with pytest.raises(avsg.InvalidError, match="no stream is known there"):
        current_stream("xpu", batch.ids)


def test_device_arrays_are_refused_by_the_cpu_engine(deployment):
    for call in (deployment.engine.step, deployment.engine.plan):
        with pytest.raises(avsg.InvalidError, match='the batch is on the device npu, but the engine is on "cpu"'):
            call(device_batch(), deployment.plan)


def test_fresh_rows_are_where_the_batch_is(deployment):
    fresh = avsg.Fresh(device_ints([0] * 48))
    for call in (deployment.engine.step, deployment.engine.append):
        with pytest.raises(avsg.InvalidError, match="the batch is on cpu and the fresh rows on npu"):
            call(deployment.batch, *([deployment.plan] if call == deployment.engine.step else []), 0, fresh)
    with pytest.raises(avsg.InvalidError, match="the fresh rows are on the device npu, but no stream was passed"):
        deployment.engine.transfer(deployment.plan, 0, fresh)
    layers = avsg.Layers([0], [fresh])
    with pytest.raises(avsg.InvalidError, match="the batch is on cpu and the fresh rows on npu"):
        deployment.engine.append(deployment.batch, layers)
    with pytest.raises(avsg.InvalidError, match="the fresh rows are on the device npu, but no stream was passed"):
        deployment.engine.transfer(deployment.plan, layers)
    both = avsg.Layers([0, 1], [fresh, avsg.Fresh(np.zeros(48, np.uint8))])
    with pytest.raises(avsg.InvalidError, match="the fresh rows are on cpu and npu"):
        deployment.engine.append(deployment.batch, both)


def test_the_cpu_device_has_no_streams(deployment):
    with pytest.raises(avsg.AvsgError, match="stream"):
        deployment.engine.step(deployment.batch, deployment.plan, stream=Stream(4096))


def test_one_batch_is_on_one_device(deployment):
    with pytest.raises(avsg.InvalidError, match="the arrays are on cpu and npu"):
        deployment.batch.point(state=device_batch().state)
