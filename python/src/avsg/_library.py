"""Loads libavsg.so and declares its functions.

The library beside this file is the wheel's. AVSG_LIBRARY names another one, for example a build
with the feature `sim`.
"""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from ._arguments import whole
from .constants import ABI_VERSION
from .errors import AvsgError, from_status

_HANDLE, _OUT, _SIZE = c.c_void_p, c.c_void_p, c.c_size_t


class Number(NamedTuple):
    """A parameter that is a number of the caller's: its name in error sentences, and its C type."""

    name: str
    kind: Any = _SIZE


_LAYER, _SEGMENT, _ROW, _STATE = Number("layer"), Number("segment"), Number("row"), Number("state")
_ROWS, _REQUESTS, _ROLE = Number("rows"), Number("requests"), Number("role", c.c_int32)

#: The parameter types of every function that returns an avsg_status.
SIGNATURES = {
    "pool_bytes": (_OUT, _OUT),
    "pool_create": (_OUT, _OUT),
    "pool_chunk_bytes": (_OUT, _OUT, _SIZE, _OUT),
    "pool_from_memory": (_OUT, _OUT, _SIZE, _OUT),
    "pool_from_layout": (_OUT, _OUT, _OUT),
    "pool_get_info": (_HANDLE, _OUT),
    "pool_chunks": (_HANDLE, _OUT, _SIZE, _OUT),
    "pool_demote": (_HANDLE,),
    "pool_destroy": (_HANDLE,),
    "pool_write_row": (_HANDLE, _LAYER, _ROW, _OUT, _SIZE),
    "pool_read_row": (_HANDLE, _LAYER, _ROW, _OUT, _SIZE),
    "pool_row": (_HANDLE, _LAYER, _SEGMENT, _ROW, _OUT),
    "pool_row_mut": (_HANDLE, _LAYER, _SEGMENT, _ROW, _OUT),
    "pool_export": (_HANDLE, _OUT, _SIZE, _OUT),
    "pool_import": (_OUT, _SIZE, Number("fd", c.c_int32), _ROLE, _OUT),
    "pool_send": (_HANDLE, c.c_int32),
    "pool_recv": (c.c_int32, _ROLE, _OUT),
    "set_log": (c.c_void_p, c.c_void_p, Number("level", c.c_int32)),
    "workers_create": (_OUT, _OUT),
    "workers_destroy": (_HANDLE,),
    "engine_bytes": (_OUT, _OUT, _OUT),
    "engine_create": (_OUT, _HANDLE, _OUT),
    "engine_get_info": (_HANDLE, _OUT),
    "engine_table": (_HANDLE, _STATE, _OUT, _OUT),
    "engine_indexer_table": (_HANDLE, Number("indexer"), _STATE, _OUT, _OUT),
    "engine_invalidate": (_HANDLE, _STATE, Number("first"), Number("end")),
    "engine_load": (_HANDLE, _OUT, _HANDLE),
    "engine_fork": (
        _HANDLE,
        Number("source"),
        Number("source_generation", c.c_int32),
        Number("target"),
        Number("target_generation", c.c_int32),
    ),
    "engine_discard": (_HANDLE, _HANDLE),
    "engine_get_stats": (_HANDLE, _OUT),
    "engine_destroy": (_HANDLE,),
    "engine_buffer": (_HANDLE, _LAYER, _SEGMENT, _OUT),
    "memory_bytes": (_OUT, _OUT, _ROWS, _REQUESTS, Number("block_stride"), _OUT),
    "plan_create": (_HANDLE, _ROWS, _REQUESTS, _OUT),
    "plan_destroy": (_HANDLE,),
    "plan_get_arrays": (_HANDLE, _OUT),
    "plan_get_device_arrays": (_HANDLE, _OUT),
    "plan_get_counters": (_HANDLE, _OUT),
    "plan_count_duplicates": (_HANDLE, _OUT),
    "plan_get_request": (_HANDLE, Number("request"), _OUT),
    # The calls of a step check their layer themselves, because this check would cost half as much as the call.
    "engine_plan": (_HANDLE, _OUT, _HANDLE, c.c_void_p),
    "engine_transfer": (_HANDLE, _HANDLE, _SIZE, _OUT, c.c_void_p),
    "engine_step": (_HANDLE, _OUT, _HANDLE, _SIZE, _OUT, c.c_void_p),
    "engine_append": (_HANDLE, _OUT, _SIZE, _OUT, c.c_void_p),
    "engine_block_table": (_HANDLE, _OUT, _SIZE, Number("page"), _OUT, _SIZE, _OUT),
}
#: The functions that return something else, and what.
TEXTS = {"version": (), "devices": (), "last_error": (), "status_name": (c.c_int32,)}


def load(path: str | None = None) -> c.CDLL:
    """Loads a library, refuses one of another interface, and declares its functions."""
    path = path or os.environ.get("AVSG_LIBRARY") or os.path.join(os.path.dirname(__file__), "libavsg.so")
    try:
        library = c.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}: install avsg with pip, or set AVSG_LIBRARY to a libavsg.so") from None
    if library.avsg_abi_version() != ABI_VERSION:
        raise ImportError(f"{path} has interface {library.avsg_abi_version()}, and this package needs {ABI_VERSION}")
    for name, types in SIGNATURES.items():
        function = getattr(library, "avsg_" + name)
        numbers = [(index, kind) for index, kind in enumerate(types) if isinstance(kind, Number)]
        function.argtypes = [kind.kind if isinstance(kind, Number) else kind for kind in types]
        function.restype = c.c_int32
        if numbers:
            setattr(library, "avsg_" + name, checked(function, numbers))
    for name, types in TEXTS.items():
        function = getattr(library, "avsg_" + name)
        function.argtypes, function.restype = types, c.c_char_p
    return library


def checked(function: Any, numbers: list[tuple[int, Number]]) -> Callable[..., int]:
    """Returns the function with a check of its numbers, each at its place among the parameters."""

    def call(*arguments: Any) -> int:
        for index, number in numbers:
            whole(arguments[index], number.name, number.kind)
        return function(*arguments)

    return call


lib = load()


def failure(status: int) -> AvsgError:
    """Returns the exception for a status, with the sentence of the last failure on this thread."""
    return from_status(status, lib.avsg_status_name(status).decode(), lib.avsg_last_error().decode())


def check(status: int) -> None:
    """Raises the exception for a status that is not AVSG_OK."""
    if status:
        raise failure(status)


class Handle:
    """A handle of the library, destroyed when the last object that refers to it is gone.

    An engine, a pool or a plan has one reference, and each array that views its memory has another.
    `close` drops the first, so that memory stays valid for the arrays that were made before.
    """

    __slots__ = ("_as_parameter_", "_destroy", "__weakref__")

    def __init__(self, pointer: c.c_void_p, destroy: Callable[[c.c_void_p], int]) -> None:
        # ctypes passes this attribute where a parameter is a pointer, and keeps the handle until
        # the call returns.
        self._as_parameter_ = pointer
        self._destroy = destroy

    def __del__(self) -> None:
        # An exception such as KeyboardInterrupt can end the constructor before it has begun.
        destroy = getattr(self, "_destroy", None)
        if destroy is not None:
            destroy(self._as_parameter_)
