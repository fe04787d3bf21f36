"""Loads libavsg.so and declares its functions.

The library beside this file is the wheel's. AVSG_LIBRARY names another one, for example a build
with the feature `sim`.
"""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable
from typing import Any

from ._arguments import WHOLE, struct, whole
from ._header import ABI_VERSION, FUNCTIONS
from .errors import AvsgError, from_status

#: What this package calls the parameters that have other names in C.
RENAMED = {
    "as_role": "role",
    "from": "source",
    "from_generation": "source_generation",
    "to": "target",
    "to_generation": "target_generation",
}
#: The calls of a step check their layer themselves, because `checked` would cost half as much as the call.
UNCHECKED = {f"avsg_engine_{call}" for call in ("plan", "transfer", "begin", "step", "append")}


def load(path: str | None = None) -> c.CDLL:
    """Loads a library, refuses one of another interface, and declares its functions."""
    path = path or os.environ.get("AVSG_LIBRARY") or os.path.join(os.path.dirname(__file__), "libavsg.so")
    try:
        library = c.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}: install avsg with pip, or set AVSG_LIBRARY to a libavsg.so") from None
    if library.avsg_abi_version() != ABI_VERSION:
        raise ImportError(f"{path} has interface {library.avsg_abi_version()}, and this package needs {ABI_VERSION}")
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = list(parameters.values()), result
        if name not in UNCHECKED:
            setattr(library, name, checked(function, parameters))
    return library


def checked(function: Any, parameters: dict[str, Any]) -> Callable[..., Any]:
    """Returns the function with a check of those of its parameters that are whole numbers."""
    numbers = [(i, RENAMED.get(name, name), kind) for i, (name, kind) in enumerate(parameters.items()) if kind in WHOLE]

    def call(*arguments: Any) -> Any:
        for index, name, kind in numbers:
            whole(arguments[index], name, kind)
        return function(*arguments)

    return call if numbers else function


lib = load()


def failure(status: int) -> AvsgError:
    """Returns the exception for a status, with the sentence of the last failure on this thread."""
    return from_status(status, lib.avsg_status_name(status).decode(), lib.avsg_last_error().decode())


def check(status: int) -> None:
    """Raises the exception for a status that is not AVSG_OK."""
    if status:
        raise failure(status)


def filled(function: Callable[..., int], kind: Any, *arguments: Any) -> Any:
    """Returns the C struct `kind` that a function fills, as its last parameter."""
    made = struct(kind)
    check(function(*arguments, c.byref(made)))
    return made


class Handle:
    """A handle of the library, destroyed when the last object that refers to it is gone.

    An engine, a pool or a plan has one reference, and each array that views its memory has another.
    `close` drops the first, so that memory stays valid for the arrays that were made before.
    """

    __slots__ = ("_as_parameter_", "_destroy", "_memory", "__weakref__")

    def __init__(self, pointer: c.c_void_p, destroy: Callable[[c.c_void_p], int], memory: Any = None) -> None:
        # The caller's memory under the object, or the handle of the pool that has it, must outlive the object.
        self._memory = memory
        # ctypes passes this attribute where a parameter is a pointer, and keeps the handle until
        # the call returns.
        self._as_parameter_ = pointer
        self._destroy = destroy

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError(
            "pools, engines, plans, workers and views of their memory are neither pickled nor copied, because they "
            "belong to their process; pass what Pool.export returns to Pool.attach in another process"
        )

    def __del__(self) -> None:
        # An exception such as KeyboardInterrupt can end the constructor before it has begun.
        destroy = getattr(self, "_destroy", None)
        if destroy is not None:
            destroy(self._as_parameter_)
