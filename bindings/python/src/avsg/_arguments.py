"""What callers pass, refused by its name.

ctypes keeps the low bits of a number that a C type does not hold, and its errors name no argument.
"""

from __future__ import annotations

import ctypes as c
import operator
import os
from enum import IntEnum
from typing import Any

from . import _header
from .errors import InvalidError

#: The C types of numbers. An address is none.
WHOLE = (c.c_int32, c.c_uint32, c.c_size_t, c.c_uint64)
#: The enumerations of arguments, by the arguments' names.
ENUMS = {kind.__name__.lower(): kind for kind in vars(_header).values() if isinstance(kind, type(IntEnum))}
ENUMS["level"] = _header.LogLevel


def whole(value: Any, what: str, kind: Any = c.c_size_t) -> int:
    """Returns a whole number that the C type `kind` holds."""
    enum = ENUMS.get(what)
    try:
        number = operator.index(value)
        if enum and isinstance(value, IntEnum) and not isinstance(value, enum):
            raise TypeError
    except TypeError:
        needed = "a whole number is needed; pass an int"
        if enum:
            needed = f"a member of avsg.{enum.__name__} is needed; pass one of {', '.join(enum.__members__)}"
        raise TypeError(f"{what} is of type {type(value).__name__}, but {needed}") from None
    bits = 8 * c.sizeof(kind)
    least, most = (-1 << bits - 1, (1 << bits - 1) - 1) if kind(-1).value < 0 else (0, (1 << bits) - 1)
    if not least <= number <= most:
        raise InvalidError(f"{what} is {number}, but {least} to {most} can be passed; pass a number of this range")
    return number


def wholes(values: Any, what: str, kind: Any = c.c_size_t) -> Any:
    """Returns a C array of whole numbers; `values` has several of them, or is one."""
    try:
        listed = list(values)
    except TypeError:
        return (kind * 1)(whole(values, what, kind))
    return (kind * len(listed))(*(whole(value, f"{what}[{index}]", kind) for index, value in enumerate(listed)))


def text(value: Any, what: str) -> bytes:
    """Returns a name or a path as C takes it."""
    try:
        found = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{what} is of type {type(value).__name__}, but text is needed; pass a str") from None
    if b"\0" in found:
        raise InvalidError(f"{what} is {value!r}, but a text ends at a NUL; pass one without a NUL")
    return found


def address(value: Any) -> c.c_void_p:
    """Returns the address of an array or a struct, which lives as long as the address and each struct that has it."""
    return c.cast(c.pointer(value), c.c_void_p)


def struct(kind: Any, **values: Any) -> Any:
    """Returns the C struct `kind` with these fields; its own size, which it begins with, is set.

    A field that is an address takes an array or a struct, and keeps it.
    """
    made, kinds = kind(c.sizeof(kind)), dict(kind._fields_)
    for name, value in values.items():
        if kinds[name] in WHOLE:
            value = whole(value, name, kinds[name])
        elif kinds[name] is c.c_void_p and isinstance(value, (c.Array, c.Structure)):
            value = address(value)
        setattr(made, name, value)
    return made


def instance(value: Any, kind: type, what: str) -> Any:
    """Returns an object of this package's class `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is of type {type(value).__name__}, but an avsg.{kind.__name__} is needed")
    return value
