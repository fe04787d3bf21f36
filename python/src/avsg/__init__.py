"""AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

A life is: `Pool`, `Engine`, `Plan`, then for each decode step `Engine.step`, attention that reads
`Engine.buffer` through `Plan.slots`, and `Engine.append`. Importing this package imports neither
NumPy nor torch.
"""

from ._library import lib as _lib
from .batch import Batch, Fresh
from .constants import ABI_VERSION, Copier, Lifetime, LogLevel, Machine, Pages, RequestStatus, Role, Strategy, Table
from .engine import Engine, EngineInfo, EngineMemory, EngineStats, MemoryBytes
from .errors import (
    AvsgError,
    BusyError,
    DeviceError,
    ForkedError,
    HandleError,
    InternalError,
    InvalidError,
    NoMemoryError,
    NullError,
    SizeError,
    SystemCallError,
    UnsupportedError,
)
from .memory import View
from .plan import Counters, Plan, Request
from .pool import Pool, PoolInfo, PoolShape
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
    "Counters",
    "DeviceError",
    "Engine",
    "EngineInfo",
    "EngineMemory",
    "EngineStats",
    "ForkedError",
    "Fresh",
    "HandleError",
    "InternalError",
    "InvalidError",
    "Lifetime",
    "LogLevel",
    "Machine",
    "MemoryBytes",
    "NoMemoryError",
    "NullError",
    "Pages",
    "Plan",
    "Pool",
    "PoolInfo",
    "PoolShape",
    "Request",
    "RequestStatus",
    "Role",
    "SizeError",
    "Strategy",
    "SystemCallError",
    "Table",
    "UnsupportedError",
    "View",
    "Workers",
    "devices",
    "set_log",
]
