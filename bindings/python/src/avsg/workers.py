"""The threads of engines on "cpu", and the log."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from typing import Any

from . import _header
from ._arguments import struct, wholes
from ._header import LogLevel
from ._library import Handle, check, lib
from .errors import NullError


class Workers:
    """Threads that several engines can share: Engine(pool, workers=workers, ...).

    `threads` counts the caller's. `cpus` are those that the started threads may use, and `pin` gives
    each of them one that no other workers of this process are pinned to. `spin_us` is how long a
    thread polls before it sleeps; 0 is the default, and -1 stands for not at all.
    """

    def __init__(self, threads: int, *, cpus: Sequence[int] = (), pin: bool = False, spin_us: int = 0) -> None:
        array = wholes(cpus, "cpus", c.c_int32)
        options = {"threads": threads, "pin": pin, "cpus": array, "cpu_count": len(array), "spin_us": spin_us}
        config, out = struct(_header.avsg_workers_config, **options), c.c_void_p()
        check(lib.avsg_workers_create(c.byref(config), c.byref(out)))
        self._handle: Handle | None = Handle(out, lib.avsg_workers_destroy)

    def _address(self) -> int:
        if self._handle is None:
            raise NullError("workers are closed, but an engine starts threads only without workers; pass open ones")
        return self._handle._as_parameter_.value

    def close(self) -> None:
        """Gives the threads back when no engine uses them."""
        self._handle = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_log: Any = None


def set_log(callback: Callable[[LogLevel, str], None] | None, level: LogLevel = LogLevel.INFO) -> None:
    """Passes the library's messages up to `level` to a function; None takes none.

    The function may be called on any thread, and must not call this package.
    """
    global _log
    new = None
    if callback is not None:
        new = _header.avsg_log_callback(lambda _, number, text: callback(LogLevel(number), text.decode()))
    check(lib.avsg_set_log(new, None, level))
    # The last function is kept until the library has the new one.
    _log = new
