"""The numbers and structs of this package are those of include/avsg.h."""

import ctypes
import re
import shutil
import subprocess
from enum import IntEnum, IntFlag
from pathlib import Path

import pytest

from avsg import _library, _structs, constants, errors

HEADER = Path(__file__).resolve().parents[2] / "include" / "avsg.h"
STRUCTS = {
    "avsg_allocator": _structs.Allocator,
    "avsg_pool_config": _structs.PoolConfig,
    "avsg_pool_info": _structs.PoolInfo,
    "avsg_chunk": _structs.Chunk,
    "avsg_region": _structs.Region,
    "avsg_pool_part": _structs.PoolPart,
    "avsg_pool_layout": _structs.PoolLayout,
    "avsg_caller_buffer": _structs.CallerBuffer,
    "avsg_workers_config": _structs.WorkersConfig,
    "avsg_engine_config": _structs.EngineConfig,
    "avsg_engine_memory": _structs.EngineMemory,
    "avsg_memory": _structs.Memory,
    "avsg_engine_info": _structs.EngineInfo,
    "avsg_engine_stats": _structs.EngineStats,
    "avsg_buffer": _structs.Buffer,
    "avsg_plan_arrays": _structs.PlanArrays,
    "avsg_plan_counters": _structs.PlanCounters,
    "avsg_plan_request": _structs.PlanRequest,
    "avsg_i32s": _structs.I32s,
    "avsg_batch": _structs.Batch,
    "avsg_fresh": _structs.Fresh,
    "avsg_load": _structs.Load,
}
ENUMS = {
    "TABLE": constants.Table,
    "LIFETIME": constants.Lifetime,
    "MACHINE": constants.Machine,
    "STRATEGY": constants.Strategy,
    "COPIER": constants.Copier,
    "LOG": constants.LogLevel,
    "PAGES": constants.Pages,
    "MEMORY": constants.MemoryKind,
    "ROLE": constants.Role,
    "REQUEST": constants.RequestStatus,
}

pytestmark = pytest.mark.skipif(not HEADER.is_file(), reason="no checkout around this file")


def field_names(struct):
    """The fields of a struct in order, by the names of the header."""
    inherited = [name for base in reversed(struct.__mro__) for name, _ in base.__dict__.get("_fields_", [])]
    return [(name, name.rstrip("_")) for name in inherited]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_structs_have_the_sizes_and_offsets_of_the_header(tmp_path):
    lines, expected = [], []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
        expected.append(ctypes.sizeof(struct))
        for own, header in field_names(struct):
            lines.append(f'printf("%zu\\n", offsetof(struct {name}, {header}));')
            expected.append(getattr(struct, own).offset)
    source = f'#include "{HEADER}"\n#include <stdio.h>\nint main(void) {{ {" ".join(lines)} return 0; }}\n'
    (tmp_path / "offsets.c").write_text(source)
    subprocess.run(["cc", "-o", tmp_path / "offsets", tmp_path / "offsets.c"], check=True)
    found = subprocess.check_output([tmp_path / "offsets"]).decode().split()
    assert [int(number) for number in found] == expected


def test_every_struct_and_field_of_the_header_is_here():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    for name, body in re.findall(r"typedef struct (avsg_\w+) \{(.*?)\}", text, flags=re.S):
        names = [re.sub(r"\[.*?\]", "", line).split()[-1].lstrip("*") for line in body.split(";") if line.strip()]
        assert names == [header for _, header in field_names(STRUCTS[name])], name


def test_enumerations_have_the_numbers_of_the_header():
    found = dict(re.findall(r"^  AVSG_(\w+) = (\d+),$", HEADER.read_text(), flags=re.M))
    for prefix, kind in ENUMS.items():
        for member in kind:
            assert int(found.pop(f"{prefix}_{member.name}")) == member, member
    assert issubclass(constants.Table, IntEnum) and issubclass(constants.RequestStatus, IntFlag)
    statuses = {name: int(number) for name, number in found.items() if name != "OK"}
    assert sorted(statuses.values()) == sorted(errors.BY_STATUS)
    defined = dict(re.findall(r"^#define AVSG_(\w+) (\d+)$", HEADER.read_text(), flags=re.M))
    assert {name: getattr(constants, name) for name in defined} == {name: int(value) for name, value in defined.items()}


def test_every_function_of_the_header_is_declared():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    declared = re.findall(r"^(?:avsg_status|const char \*|uint32_t) ?(avsg_\w+)\((.*?)\);", text, flags=re.S | re.M)
    assert {name for name, _ in declared} == {
        "avsg_" + n for n in [*_library.SIGNATURES, *_library.TEXTS, "abi_version"]
    }
    for name, arguments in declared:
        short = name.removeprefix("avsg_")
        if short in _library.SIGNATURES:
            assert len(_library.SIGNATURES[short]) == len(arguments.split(",")), name
