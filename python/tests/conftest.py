"""What the tests of avsg share: a small deployment, and the tier."""

import os
from dataclasses import dataclass

import numpy as np
import pytest

import avsg

THOROUGH = os.environ.get("AVSG_THOROUGH") == "1"
thorough = pytest.mark.skipif(not THOROUGH, reason="AVSG_THOROUGH=1 runs this")


def pytest_configure(config):
    config.addinivalue_line("markers", "thorough: runs only with AVSG_THOROUGH=1")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(thorough)


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
