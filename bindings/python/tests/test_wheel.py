"""What is packed: the wheel to publish, and with a Cargo that only names its files, all kinds of builds of a checkout.

The wheel is py3-none-manylinux_2_28 or older, by auditwheel's judgement. It takes a release build of its own.
"""

import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import PYTHON, ROOT, thorough

import avsg
from avsg._library import lib

SCRIPT = PYTHON / "build_wheel"
FOLDER = PYTHON.relative_to(ROOT)

pytestmark = pytest.mark.skipif(not (ROOT / "bindings" / "c").is_dir(), reason="no checkout around this file")


@thorough
def test_auditwheel_names_manylinux_2_28_or_older(tmp_path):
    printed = subprocess.check_output([SCRIPT, tmp_path], env=os.environ, text=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("avsg-") and "-py3-none-" in wheel.name
    sentence = " ".join(printed[printed.rindex(".whl") :].split())
    (minor,) = re.findall(rf'"manylinux_2_(\d+)_{platform.machine()}"', sentence)[:1]
    assert int(minor) <= 28, printed
    assert wheel.stat().st_size < 20 << 20


class Checkout:
    """A copy of what a build reads, and a Cargo that names files and notes where it ran, for what."""

    def __init__(self, folder):
        pytest.importorskip("hatchling")
        self.root, self.calls, made = folder / "checkout", folder / "calls", folder / "made"
        ignored = shutil.ignore_patterns("__pycache__", ".*", "libavsg.so", "program", "_header.py", "LICENSE")
        shutil.copytree(PYTHON, self.root / FOLDER, ignore=ignored)
        kept = {"include", "avsg.h", "so", "Cargo.toml"}
        for source in runpy.run_path(str(PYTHON / "hatch_build.py"))["SOURCES"]:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, self.root / source, ignore=lambda *found: set(found[1]) - kept)
            else:
                shutil.copy(ROOT / source, self.root)
        made.mkdir()
        shutil.copy(lib._name, made / "libavsg.so")
        shutil.copy(shutil.which("true"), made / "avsg")
        files = [{"reason": "compiler-artifact", "filenames": [str(made / name)]} for name in os.listdir(made)]
        messages = "\n".join(map(json.dumps, files))
        (folder / "cargo").write_text(f"#!/bin/sh\necho $PWD $5 >>{self.calls}\ncat <<E\n{messages}\nE\n")
        (folder / "cargo").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    def build(self, target, folder=None):
        """Builds a target of hatchling, and returns the ended process and the file."""
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", self.root / "dist"]
        found = folder or self.root / FOLDER
        ended = subprocess.run(command, cwd=found, env=self.environment, capture_output=True, text=True)
        return ended, next(iter(sorted((self.root / "dist").glob("avsg-*"), key=os.path.getmtime)[-1:]), None)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_the_wheel_carries_the_licence_the_program_and_a_stripped_library(checkout):
    ended, wheel = checkout.build("wheel")
    assert ended.returncode == 0, ended.stderr
    with zipfile.ZipFile(wheel) as files:
        (info,) = {name.split("/")[0] for name in files.namelist() if ".dist-info/" in name}
        assert files.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"License-File: LICENSE" in files.read(f"{info}/METADATA")
        assert b"avsg = avsg.__main__:main" in files.read(f"{info}/entry_points.txt")
        library = files.read("avsg/libavsg.so")
        assert b"avsg_engine_step" in library and not re.search(rb"\.(debug_\w+|symtab)\0", library)
        assert files.getinfo("avsg/program").external_attr >> 16 & 0o111 == 0o111


def test_a_source_distribution_is_built_from_its_own_rust_sources(checkout, tmp_path):
    ended, archive = checkout.build("sdist")
    assert ended.returncode == 0, ended.stderr
    shared = tmp_path / "shared"
    shared.mkdir()
    with tarfile.open(archive) as files:
        files.extractall(shared)
    (folder,) = shared.iterdir()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    # What anybody put around the folder is not looked at.
    shutil.copytree(checkout.root / "bindings" / "c", shared / "bindings" / "c")
    shared.chmod(0o1777)
    ended, wheel = checkout.build("wheel", folder)
    assert ended.returncode == 0 and wheel.suffix == ".whl", ended.stderr
    crates = [f"/ {folder}/rust/{crate}/Cargo.toml" for crate in ("bindings/c/so", "program")]
    assert checkout.calls.read_text().splitlines() == crates


@pytest.mark.parametrize("name", ["pip-req-build-abc", FOLDER.name])
def test_a_copy_of_the_folder_is_refused_in_one_sentence(checkout, tmp_path, name):
    """A pip older than 21.3 copies the folder to a place where anybody may have put a Cargo project beside it."""
    shared = tmp_path / "shared"
    shutil.copytree(checkout.root, shared)
    copied = (shared / FOLDER).rename((shared / FOLDER).with_name(name))
    shared.chmod(0o1777)
    ended, _ = checkout.build("wheel", copied)
    assert ended.returncode == 1 and not checkout.calls.exists()
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"{copied} is not the folder {FOLDER} of a checkout") and "upgrade pip" in line


def test_an_editable_install_imports_the_package_with_its_library(checkout):
    ended, wheel = checkout.build("wheel:editable")
    assert ended.returncode == 0, ended.stderr
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".pth")]
        path = files.read(name).decode().strip()
    environment = {**os.environ, "PYTHONPATH": path, "AVSG_LIBRARY": ""}
    printed = subprocess.check_output(
        [sys.executable, "-c", "import avsg; print(avsg.__file__, avsg.__version__)"], env=environment, text=True
    )
    assert printed.split() == [f"{checkout.root / FOLDER}/src/avsg/__init__.py", avsg.__version__]


def test_the_program_is_in_the_package():
    program = Path(avsg.__file__).parent / "program"
    ended = subprocess.run([sys.executable, "-m", "avsg", "--version"], capture_output=True, text=True)
    if program.exists():
        assert (ended.returncode, ended.stderr) == (0, "") and ended.stdout.startswith(f"avsg {avsg.__version__}")
    else:
        assert ended.returncode == 1 and "install avsg with pip, which brings the program" in ended.stderr
