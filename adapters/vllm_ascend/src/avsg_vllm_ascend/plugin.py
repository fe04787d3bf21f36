"""The plug-in for the entry point group `vllm.general_plugins`."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from .planner import ResidentPlanner

MANAGER = "vllm_ascend.distributed.kv_transfer.sparse_kv_offload.sparse_kv_offload_manager"
#: The attribute in which a manager keeps the C++ module that it compiles.
ATTRIBUTE = "sparse_kv_offload_cpp"

logger = logging.getLogger(__name__)


class PlannerModule:
    """vLLM-Ascend's C++ module with AVSG's planner in the place of `lru_resident_compact`.

    The planner is made at its first call, because a manager loads the module before it sets its sizes.
    """

    def __init__(self, manager: Any, module: Any) -> None:
        self._manager, self._module = manager, module
        self._planner: ResidentPlanner | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def lru_resident_compact(self, *args: int) -> None:
        """Plans with AVSG."""
        if self._planner is None:
            manager = self._manager
            self._planner = ResidentPlanner(manager.max_num_topk_rows, manager.num_layers)
        self._planner(*args)


class ModuleAttribute:
    """A class attribute that wraps the C++ module when a manager stores it."""

    def __set__(self, manager: Any, module: Any) -> None:
        manager.__dict__[ATTRIBUTE] = PlannerModule(manager, module)

    def __get__(self, manager: Any, owner: type | None = None) -> Any:
        if manager is None:
            return self
        try:
            return manager.__dict__[ATTRIBUTE]
        except KeyError:
            raise AttributeError(f"{ATTRIBUTE} is not loaded yet") from None


def install(manager_class: type) -> None:
    """Makes every manager of this class that loads its C++ module later plan with AVSG."""
    if not isinstance(manager_class.__dict__.get(ATTRIBUTE), ModuleAttribute):
        setattr(manager_class, ATTRIBUTE, ModuleAttribute())


def register() -> None:
    """Installs the planner; vLLM calls this in every process. Without vLLM-Ascend it does nothing."""
    try:
        manager = importlib.import_module(MANAGER)
    except ImportError as error:
        logger.info("AVSG does not plan for vLLM-Ascend: %s", error)
        return
    install(manager.SparseKVOffloadManager)
    logger.info("AVSG plans the misses of vLLM-Ascend's sparse KV offload")
