"""The numbers and structs of this package are those of bindings/c/include/avsg.h."""

import ctypes
import inspect
import re
import runpy
import shutil
import subprocess
from enum import IntFlag
from pathlib import Path

import pytest
from conftest import PYTHON, ROOT

import avsg
from avsg import _header, errors

HEADER = ROOT / "bindings" / "c" / "include" / "avsg.h"
STRUCTS = [kind for kind in vars(_header).values() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)]

pytestmark = pytest.mark.skipif(not HEADER.is_file(), reason="no checkout around this file")


def generate(text):
    return runpy.run_path(str(PYTHON / "header.py"))["module"](text)


def test_the_package_was_built_with_this_header():
    assert Path(_header.__file__).read_text() == generate(HEADER.read_text())


@pytest.mark.parametrize("more", ["inline int avsg_more(void) {}", "typedef union avsg_more { int a; } avsg_more;"])
def test_a_declaration_of_another_form_is_refused(more):
    with pytest.raises(SystemExit, match=f"does not know this declaration of avsg.h: {re.escape(more)}"):
        generate(f"{HEADER.read_text()}\n/** More. */\n{more}\n")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_structs_have_the_sizes_and_offsets_of_the_header(tmp_path):
    expressions, expected = [], []
    for struct in STRUCTS:
        expressions.append(f"sizeof({struct.__name__})")
        expected.append(ctypes.sizeof(struct))
        for name, _ in struct._fields_:
            expressions.append(f"offsetof({struct.__name__}, {name})")
            expected.append(getattr(struct, name).offset)
    prints = "".join(f'printf("%zu\\n", {expression});' for expression in expressions)
    (tmp_path / "offsets.c").write_text(
        f'#include "{HEADER}"\n#include <stdio.h>\nint main(void) {{ {prints} return 0; }}'
    )
    subprocess.run(["cc", "-o", tmp_path / "offsets", tmp_path / "offsets.c"], check=True)
    found = subprocess.check_output([tmp_path / "offsets"]).decode().split()
    assert len(STRUCTS) > 20 and [int(number) for number in found] == expected


def test_help_tells_every_option_of_an_engine_and_every_array_of_a_batch():
    text = avsg.EngineOptions.__doc__
    for name in avsg.EngineOptions.__annotations__:
        assert re.search(rf"^ *{name}: \S.*\n +\S", text, flags=re.M), name
    assert not re.search("NULL|avsg_(table|lifetime|machine|copier)|AVSG_COPIER", text)
    for name in ("ids", "cu_q", "state", "generation", "stable_len", "seq_len", "block_table"):
        assert "[" in inspect.getdoc(vars(avsg.Batch)[name]), name


def test_enumerations_have_the_names_that_python_programs_write():
    assert (avsg.Pages.HUGE_2M, avsg.LogLevel.WARN, avsg.Machine.NEON) == (2, 2, 3)
    assert issubclass(avsg.RequestStatus, IntFlag) and avsg.RequestStatus.ROW_OUT_OF_POOL == 2
    assert set(_header.Status) == {_header.Status.OK, *errors.BY_STATUS}
