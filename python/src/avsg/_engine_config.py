"""The configuration of an engine as C takes it, from keywords."""

from __future__ import annotations

import ctypes as c
from typing import Any

from . import _header
from ._arguments import instance, real, struct, text, wholes
from .workers import Workers


def engine_config(k: int, slots: int, tokens: int = 1, states: int = 1, **options: Any) -> _header.avsg_engine_config:
    """Returns the C struct of an engine.

    `options` are the other fields of avsg_engine_config; 0 is their default.
    """
    fields = {"k": k, "slots": slots, "tokens": tokens, "states": states}
    # An engine of this package allocates its memory.
    absent = {"size", "reserved", "layer_indexers", "lambda", "buffer", "allocator", *fields}
    names = {field[0] for field in _header.avsg_engine_config._fields_} - absent | {"decay"}
    for name, value in options.items():
        if name not in names:
            raise TypeError(f"{name!r} is no option of an engine; the options are {', '.join(sorted(names))}")
        if name == "decay":
            fields["lambda"] = real(value, name)
        elif name == "layer_indexer" and value is not None:
            fields[name] = wholes(value, name, c.c_uint32)
            fields["layer_indexers"] = len(fields[name])
        elif name == "workers" and value is not None:
            fields[name] = instance(value, Workers, name)._address()
        elif name in ("device", "kernels", "runtime") and value is not None:
            fields[name] = text(value, name)
        else:
            fields[name] = value
    return struct(_header.avsg_engine_config, **fields)
