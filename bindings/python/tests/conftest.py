"""What the tests of avsg share: a small deployment, arrays of other frameworks, and the tier."""

import os
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import avsg

#: The folder of the package's sources, and the repository around it.
PYTHON = Path(__file__).resolve().parents[1]
ROOT = PYTHON.parents[1]
THOROUGH = os.environ.get("AVSG_THOROUGH") == "1"
thorough = pytest.mark.skipif(not THOROUGH, reason="AVSG_THOROUGH=1 runs this")


def pytest_configure(config):
    config.addinivalue_line("markers", "thorough: runs only with AVSG_THOROUGH=1")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(thorough)


@pytest.fixture
def disk(tmp_path):
    """A folder whose file system takes O_DIRECT, as a pool in a file does by default."""
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError:
        pytest.skip(f"the file system of {tmp_path} has no O_DIRECT")
    return tmp_path


@dataclass
class Deployment:
    """A pool of random rows, an engine, a plan, and a batch of one request.

    `rows` is what row i of layer l holds.
    """

    pool: avsg.Pool
    engine: avsg.Engine
    plan: avsg.Plan
    batch: avsg.Batch
    rows: np.ndarray

    def wrong_rows(self, state: int = 0, layer: int = 0) -> int:
        """Counts the selected ids whose slot does not hold the bytes of `rows`."""
        ids, slots = np.asarray(self.batch.ids), self.plan.slots[: len(self.batch.ids)]
        picked = ids >= 0
        gathered = self.engine.buffer(layer)[state, slots[picked]]
        return int((gathered != self.rows[layer, ids[picked]]).any(axis=1).sum())


class OnlyDlpack:
    """An array that other code sees through DLPack alone."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class Tensor:
    """A torch tensor as this package sees it, of any type and on any device."""

    def __init__(self, data, dtype, device):
        self.data, self.shape, self.dtype = data, data.shape, f"torch.{dtype}"
        self.device = types.SimpleNamespace(type=device, index=0)

    def data_ptr(self):
        return self.data.ctypes.data

    def element_size(self):
        return self.data.itemsize

    def stride(self):
        return tuple(step // self.data.itemsize for step in self.data.strides)


def device_ints(*values):
    """Returns a tensor of int32 on a device that only these tests know."""
    return Tensor(np.array(values, np.int32), "int32", "npu")


def device_batch():
    """Returns a batch of one request on that device."""
    per_request = {"state": 0, "generation": 1, "stable_len": -1, "seq_len": 100}
    arrays = {name: device_ints(value) for name, value in per_request.items()}
    return avsg.Batch(device_ints([0] * 16), cu_q=device_ints(0, 1), **arrays)


@pytest.fixture
def deployment():
    """Two layers of 512 rows of 48 bytes, K = 16, S = 64."""
    return make_deployment()


def make_deployment(layers=2, rows=512, row_bytes=48, k=16, slots=64, tokens=2, **options) -> Deployment:
    data = np.random.default_rng(3).integers(0, 256, (layers, rows, row_bytes), dtype=np.uint8)
    pool = avsg.Pool(layers, rows, row_bytes)
    for layer in range(layers):
        pool.write(layer, 0, data[layer])
    engine = avsg.Engine(pool, k=k, slots=slots, tokens=tokens, cores=1, **options)
    batch = avsg.Batch.zeros(1, k)
    batch.seq_len[0] = rows
    return Deployment(pool, engine, engine.new_plan(), batch, data)
