"""The plug-in on managers of vLLM-Ascend, which is not installed: stand-ins, and released ones in the thorough tier."""

import importlib.metadata
import logging
import os
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from managers import load, released, stand_in
from reference import Arrays

import avsg_vllm_ascend
from avsg_vllm_ascend import PlannerModule, register
from avsg_vllm_ascend.plugin import MANAGER

TOPK, CAPACITY, MAX_TOKEN = 16, 128, 600
#: Two names of requests that have one adler32.
SAME_ADLER32 = ("cmpl-020", "cmpl-101")


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """No module of vLLM stays loaded, and no call is counted yet."""
    before = dict(sys.modules)
    monkeypatch.setattr(PlannerModule, "calls", 0)
    yield
    for name in set(sys.modules) - set(before):
        if name.split(".")[0] in ("torch", "torch_npu", "vllm", "vllm_ascend", "memfabric_hybrid"):
            del sys.modules[name]


def selections():
    arrays = Arrays(4, TOPK, CAPACITY, MAX_TOKEN)
    arrays.stable_prefix_lens.fill(MAX_TOKEN)
    arrays.topk_indices[:] = np.arange(4 * TOPK).reshape(4, TOPK)
    return arrays


def test_vllm_finds_the_entry_point():
    (entry,) = [e for e in importlib.metadata.entry_points(group="vllm.general_plugins") if e.name == "avsg"]
    assert entry.load() is avsg_vllm_ascend.register


@pytest.mark.parametrize("form", ["attribute", "function"])
def test_a_manager_of_each_form_plans_with_avsg_and_says_so_after_its_first_call(form, caplog):
    caplog.set_level(logging.INFO)
    module, addresses = stand_in(form)
    register()
    register()
    manager = module.SparseKVOffloadManager()
    manager.register()
    assert (PlannerModule.calls, caplog.messages) == (0, [])
    arrays = selections()
    for calls in (1, 2):
        manager._onload_topk_kv_cpu(arrays.arguments(4))
        assert (PlannerModule.calls, len(caplog.messages), addresses.call_count) == (calls, 1, calls)
    assert "planned the first call" in caplog.messages[0]
    assert arrays.miss_count.tolist() == [0] * 4 and (arrays.current_slots >= 0).all()


@pytest.mark.parametrize(
    ("switch", "planner"),
    [
        ("use_fused_overlap", "sparse_kv_lru_resident_compact_with_plan_stable_rows"),
        ("use_fused_copy_sfa", "fused_lightning_indexer_manage"),
    ],
)
def test_a_switch_that_plans_without_avsg_is_named(switch, planner, caplog):
    module, _ = stand_in("function")
    register()
    module.SparseKVOffloadManager(**{switch: True})
    (message,) = caplog.messages
    assert switch in message and planner in message


def test_a_version_whose_planner_is_elsewhere_is_refused_with_that_version(tmp_path, monkeypatch):
    (tmp_path / "vllm_ascend-9.9rc1.dist-info").mkdir()
    (tmp_path / "vllm_ascend-9.9rc1.dist-info" / "METADATA").write_text("Name: vllm-ascend\nVersion: 9.9rc1\n")
    monkeypatch.syspath_prepend(tmp_path)
    stand_in("moved")
    with pytest.raises(RuntimeError, match=r"vLLM-Ascend 9.9rc1: _onload_topk_kv_cpu calls neither .*VLLM_PLUGINS"):
        register()
    sys.modules[MANAGER] = None
    with pytest.raises(RuntimeError, match=r"vLLM-Ascend 9.9rc1: .* cannot be imported"):
        register()


def test_without_vllm_ascend_nothing_happens():
    assert "vllm_ascend" not in sys.modules
    register()


@pytest.mark.parametrize("form", ["attribute", "function"])
def test_requests_of_one_adler32_get_numbers_of_their_own(form):
    module, _ = stand_in(form)
    assert len({module.number(name) for name in SAME_ADLER32}) == 1
    register()
    numbers = [module.number(name) for name in SAME_ADLER32]
    assert len(set(numbers)) == 2 and all(0 <= number < 2**63 for number in numbers)


class Buffer:
    """A `CpuGpuBuffer` of vLLM, whose part on the device nobody reads."""

    def __init__(self, values):
        self.np = np.array(values, np.int64)
        self.cpu = MagicMock()
        self.cpu.__getitem__.return_value.numpy.return_value = self.np

    def copy_to_gpu(self, count):
        pass


def constructed(module):
    """Returns the manager that its own constructor makes of mocks, for four requests of one layer."""
    spec = SimpleNamespace(block_size=128, store_on_host=True, page_size_bytes=1)
    group = SimpleNamespace(kv_cache_spec=spec, layer_names=["layer"])
    config = MagicMock(speculative_config=None)
    config.scheduler_config = SimpleNamespace(max_num_seqs=4, max_num_batched_tokens=64)
    config.model_config.max_model_len = MAX_TOKEN
    config.parallel_config.data_parallel_index = 0
    switches = dict.fromkeys(("use_fused_overlap", "use_fused_copy_sfa"), False)
    module.UniformTypeKVCacheSpecs = module.CpuGpuBuffer = Buffer
    module.offload.initialize.return_value = 0
    module.torch_npu.__file__ = "torch_npu/__init__.py"
    manager = module.SparseKVOffloadManager(
        config,
        SimpleNamespace(kv_cache_groups=[group], num_blocks=1),
        SimpleNamespace(topk_buffer_size=CAPACITY, topk=TOPK, dram_size_per_dp_GB=1, **switches),
    )
    manager.num_layers, manager.lru_workspace_threads = 1, 2
    return manager


@pytest.mark.skipif(os.environ.get("AVSG_THOROUGH") != "1", reason="AVSG_THOROUGH=1 runs this")
@pytest.mark.parametrize("version", ["0.26.0rc1", "0.27.1rc1", "0.28.0rc1", "0.30.0rc2", "newest"])
def test_the_manager_of_each_released_version_plans_with_avsg(version, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    source = released(version)
    if source is None:
        pytest.skip("pip has no package index here")
    module = load(source)
    register()
    manager, arrays = constructed(module), selections()
    addresses = arrays.arguments(4)[:15]
    manager._onload_topk_kv_cpu((4, *[None] * 3, *addresses[:10], *[None] * 8, *addresses[10:], *[None] * 5))
    assert PlannerModule.calls == 1 and arrays.miss_count.tolist() == [TOPK] * 4
    for operators in (module.torch.utils.cpp_extension.load.return_value, module.torch.ops._C_ascend):
        assert not any(name.endswith("lru_resident_compact") for name, _, _ in operators.method_calls)
    numbers = Buffer([0, 0])
    module.update_sparse_kv_offload_metadata(2, 2, 2, 2, SAME_ADLER32, Buffer([0, 1, 2]), numbers, Buffer([0, 0]))
    assert numbers.np[0] != numbers.np[1]
