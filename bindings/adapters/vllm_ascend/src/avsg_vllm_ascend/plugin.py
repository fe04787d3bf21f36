"""The plug-in for the entry point group `vllm.general_plugins`."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import logging
from collections.abc import Callable
from hashlib import blake2b
from types import ModuleType
from typing import Any

from .planner import ResidentPlanner

MANAGER = "vllm_ascend.distributed.kv_transfer.sparse_kv_offload.sparse_kv_offload_manager"
#: Where the manager's `_onload_topk_kv_cpu` finds the planner's module, and the planner's name there: up to 0.27.1rc1
#: an attribute of the manager, from 0.28.0rc1 on a function of the manager's module.
ATTRIBUTE = ("sparse_kv_offload_cpp", "lru_resident_compact")
FUNCTION = ("_sparse_kv_ops", "sparse_kv_lru_resident_compact")
#: What plans in the place of that planner where a manager has one of these switches on.
NOT_COVERED = {
    "use_fused_overlap": "sparse_kv_lru_resident_compact_with_plan_stable_rows",
    "use_fused_copy_sfa": "fused_lightning_indexer_manage",
}

#: vLLM shows what loggers below its own say, and no others.
logger = logging.getLogger("vllm.avsg_vllm_ascend")


class PlannerModule:
    """vLLM-Ascend's module of operators with AVSG's planner in the place of the one that is called `name`."""

    #: The calls that AVSG planned in this process.
    calls = 0

    def __init__(self, module: Any, name: str, manager: Any) -> None:
        self._module, self._manager = module, manager
        setattr(self, name, self._plan)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    @functools.cached_property
    def _planner(self) -> ResidentPlanner:
        # The manager knows its layers only after its constructor.
        return ResidentPlanner(self._manager.max_num_topk_rows, self._manager.num_layers)

    def _plan(self, *args: int) -> None:
        self._planner(*args)
        PlannerModule.calls += 1
        if PlannerModule.calls == 1:
            logger.info("AVSG planned the first call of vLLM-Ascend %s's sparse KV offload", version())


def version() -> str:
    """Returns the version of vLLM-Ascend that is installed."""
    try:
        return importlib.metadata.version("vllm-ascend")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def refusal(why: str) -> RuntimeError:
    """Returns the exception for a vLLM-Ascend whose planner cannot be replaced."""
    remedy = "uninstall avsg-vllm-ascend, or leave avsg out of VLLM_PLUGINS"
    return RuntimeError(f"AVSG cannot plan for vLLM-Ascend {version()}: {why}; {remedy}")


def request_number(request_id: bytes) -> int:
    """Returns a number of 63 bits for a request: vLLM-Ascend's adler32 gives many requests the same one."""
    return int.from_bytes(blake2b(request_id, digest_size=8).digest(), "little") >> 1


def install(module: ModuleType) -> None:
    """Makes the managers that the manager's module makes later plan with AVSG."""
    manager_class = module.SparseKVOffloadManager
    made: Callable[..., None] = manager_class.__init__
    if made.__module__ == __name__:
        return
    caller = getattr(manager_class, "_onload_topk_kv_cpu", None)
    names = set(caller.__code__.co_names) if caller else set()
    operators = module._sparse_kv_ops if names.issuperset(FUNCTION) else None
    if operators is None and not names.issuperset(ATTRIBUTE):
        raise refusal(f"_onload_topk_kv_cpu calls neither {'.'.join(ATTRIBUTE)} nor {'().'.join(FUNCTION)}")

    def __init__(manager: Any, *args: Any, **keywords: Any) -> None:
        made(manager, *args, **keywords)
        if operators is None:
            manager.sparse_kv_offload_cpp = PlannerModule(manager.sparse_kv_offload_cpp, ATTRIBUTE[1], manager)
        else:
            planned = PlannerModule(operators(), FUNCTION[1], manager)
            module._sparse_kv_ops = lambda: planned
        for switch, planner in NOT_COVERED.items():
            if getattr(manager, switch, False):
                logger.warning("AVSG does not plan with %s, because %s plans then; switch it off", switch, planner)

    manager_class.__init__ = __init__
    module.adler32 = request_number


def register() -> None:
    """Installs the planner; vLLM calls this in every process. Without vLLM-Ascend it does nothing."""
    try:
        module = importlib.import_module(MANAGER)
    except ImportError as error:
        if error.name == "vllm_ascend":
            return
        raise refusal(f"{MANAGER} cannot be imported: {error}") from error
    install(module)
