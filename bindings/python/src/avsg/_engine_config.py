"""The configuration of an engine as C takes it, from keywords."""

from __future__ import annotations

import ctypes as c
from typing import Any

from ._arguments import instance, struct, text, wholes
from ._header import EngineOptions, avsg_ascend, avsg_engine_config, avsg_tuning
from .workers import Workers


def engine_config(k: int, slots: int, tokens: int, states: int, **options: Any) -> avsg_engine_config:
    """Returns the C struct of an engine. `options` are `EngineOptions`; 0 is their default."""
    fields: dict[Any, dict[str, Any]] = {avsg_engine_config: {}, avsg_ascend: {}, avsg_tuning: {}}
    kinds = {name: kind for kind in fields for name, _ in kind._fields_ if name in EngineOptions.__annotations__}
    for name, value in options.items():
        if name not in kinds:
            raise TypeError(f"{name!r} is no option of an engine; the options are {', '.join(sorted(kinds))}")
        made = fields[kinds[name]]
        if name == "layer_indexer" and value is not None:
            made[name] = wholes(value, name, c.c_uint32)
            made["layer_indexers"] = len(made[name])
        elif name == "workers" and value is not None:
            made[name] = instance(value, Workers, name)._address()
        elif name in ("device", "kernels", "runtime") and value is not None:
            made[name] = text(value, name)
        else:
            made[name] = value
    ascend, tuning = struct(avsg_ascend, **fields[avsg_ascend]), struct(avsg_tuning, **fields[avsg_tuning])
    own = {"k": k, "slots": slots, "tokens": tokens, "states": states, **fields[avsg_engine_config]}
    return struct(avsg_engine_config, ascend=ascend, tuning=tuning, **own)
