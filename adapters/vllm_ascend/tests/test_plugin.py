"""The plug-in on a stand-in for vLLM-Ascend's manager, which is not installed here."""

import importlib.metadata
import sys
import types

import numpy as np
import pytest
from reference import Arrays

import avsg_vllm_ascend
from avsg_vllm_ascend import PlannerModule, register
from avsg_vllm_ascend.plugin import MANAGER


@pytest.fixture
def manager_class(monkeypatch):
    """A manager that loads its C++ module before it sets its sizes, below the real module's name."""

    class SparseKVOffloadManager:
        def __init__(self):
            self.max_num_topk_rows = 4
            self.sparse_kv_offload_cpp = types.SimpleNamespace(
                lru_resident_compact=lambda *_: pytest.fail("the original planner was called"),
                compute_lru_resident_addrs=lambda n: n + 1,
            )
            self.num_layers = 1

    parts = MANAGER.split(".")
    for length in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:length]), types.ModuleType(".".join(parts[:length])))
    sys.modules[MANAGER].SparseKVOffloadManager = SparseKVOffloadManager
    return SparseKVOffloadManager


def test_vllm_finds_the_entry_point():
    (entry,) = [e for e in importlib.metadata.entry_points(group="vllm.general_plugins") if e.name == "avsg"]
    assert entry.load() is avsg_vllm_ascend.register


def test_a_manager_plans_with_avsg(manager_class):
    register()
    register()
    manager = manager_class()
    assert isinstance(manager.sparse_kv_offload_cpp, PlannerModule)
    arrays = Arrays(4, 16, 64, 600)
    arrays.stable_prefix_lens.fill(600)
    arrays.topk_indices[:] = np.arange(64).reshape(4, 16)
    manager.sparse_kv_offload_cpp.lru_resident_compact(*arrays.arguments(4))
    assert arrays.miss_count.tolist() == [16] * 4
    assert manager.sparse_kv_offload_cpp.compute_lru_resident_addrs(1) == 2


def test_the_module_is_missing_until_it_is_loaded(manager_class):
    register()
    with pytest.raises(AttributeError, match="not loaded yet"):
        _ = manager_class.__new__(manager_class).sparse_kv_offload_cpp


def test_without_vllm_ascend_nothing_happens():
    assert MANAGER not in sys.modules
    register()
