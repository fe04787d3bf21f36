"""AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

A life is: `Pool`, `Engine`, `Plan`, then for each decode step `Engine.step`, attention that reads
`Engine.buffer` through `Plan.slots`, and `Engine.append`. Importing this package imports neither
NumPy nor torch.
"""

from ._header import (
    ABI_VERSION,
    SUMMARY_MISSES,
    SUMMARY_STATUS,
    Copier,
    EngineInfo,
    EngineOptions,
    EngineStats,
    Io,
    Lifetime,
    LogLevel,
    Machine,
    Memory,
    Pages,
    PlanCounters,
    PoolInfo,
    RequestStatus,
    Role,
    Table,
)
from ._library import lib as _lib
from .batch import Batch, Fresh, Layers
from .engine import Engine
from .errors import (
    AvsgError,
    BusyError,
    DeviceError,
    ForkedError,
    HandleError,
    InternalError,
    InvalidError,
    LostRowsError,
    NoMemoryError,
    NullError,
    SizeError,
    SystemCallError,
    UnsupportedError,
)
from .memory import View
from .plan import Failure, Plan, Request
from .pool import Pool, PoolFile, PoolShape, Session
from .workers import Workers, set_log

#: The library's version.
__version__: str = _lib.avsg_version().decode()


def devices() -> tuple[str, ...]:
    """Returns the devices that the library drives: values for the option `device` of an engine."""
    return tuple(_lib.avsg_devices().decode().split())


__all__ = [
    "ABI_VERSION",
    "AvsgError",
    "Batch",
    "BusyError",
    "Copier",
    "DeviceError",
    "Engine",
    "EngineInfo",
    "EngineOptions",
    "EngineStats",
    "Failure",
    "ForkedError",
    "Fresh",
    "HandleError",
    "InternalError",
    "InvalidError",
    "Io",
    "Layers",
    "Lifetime",
    "LogLevel",
    "LostRowsError",
    "Machine",
    "Memory",
    "NoMemoryError",
    "NullError",
    "Pages",
    "Plan",
    "PlanCounters",
    "Pool",
    "PoolFile",
    "PoolInfo",
    "PoolShape",
    "SUMMARY_MISSES",
    "SUMMARY_STATUS",
    "Request",
    "RequestStatus",
    "Role",
    "Session",
    "SizeError",
    "SystemCallError",
    "Table",
    "UnsupportedError",
    "View",
    "Workers",
    "devices",
    "set_log",
]
