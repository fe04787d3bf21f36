"""Builds libavsg.so and the program avsg with Cargo for the wheel, whose tag is py3-none-linux_<machine>.

Before that, header.py makes the module _header of avsg.h. An editable install has all three in src/avsg.
A source distribution carries the Rust sources in its folder `rust`, and is built from them.

`build_wheel` turns the wheel's tag into a manylinux one with auditwheel. The environment may say:

  AVSG_CARGO_TARGET    a target of cargo-zigbuild, such as x86_64-unknown-linux-gnu.2.28, to link against an older glibc
  AVSG_CARGO_FEATURES  features of the crate avsg-capi-so, such as "sim"
  CARGO_TARGET_DIR     Cargo's target folder; by default `target` beside the Rust sources
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import stat
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: This folder in the repository.
FOLDER = Path("bindings/python")
#: What a source distribution takes of the repository.
SOURCES = ["Cargo.toml", "Cargo.lock", "LICENSE", "build.rs", "rust-toolchain.toml"]
SOURCES += ["bindings/c", "device", "docs/paper", "host", "linker", "program", "tests/kit"]
#: What Cargo builds for the wheel: the crate, the end of the file's path, and its name in the package.
BUILT = {"bindings/c/so": ("/libavsg.so", "libavsg.so"), "program": ("/avsg", "program")}


def is_distribution(root: Path) -> bool:
    """Tells whether a folder is an unpacked source distribution."""
    return (root / "PKG-INFO").is_file()


def repository(root: Path) -> Path:
    """Returns the folder of the Rust sources: the checkout around `root`, or `rust` of a source distribution."""
    if is_distribution(root):
        return root / "rust"
    around = list(root.parents)[: len(FOLDER.parts)]
    # In a folder such as /tmp anybody could put a Cargo project beside this folder, which the build would run.
    shared = any(folder.stat().st_mode & stat.S_ISVTX for folder in around)
    if (
        shared
        or root.parts[-len(FOLDER.parts) :] != FOLDER.parts
        or not (around[-1] / "bindings" / "c" / "so").is_dir()
    ):
        raise SystemExit(
            f"{root} is not the folder {FOLDER} of a checkout of the whole repository; pass that folder to a pip "
            "from 21.3 on (an older pip copies it: python -m pip install --upgrade pip), or install a wheel of avsg"
        )
    return around[-1]


class RepositoryMetadata(MetadataHookInterface):
    """Takes the version and the licence from the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the version, and copies LICENSE to where pyproject.toml may name it."""
        root = Path(self.root).resolve()
        found = repository(root)
        pattern = r'^\[workspace\.package\]\nversion = "([^"]+)"'
        metadata["version"] = re.search(pattern, (found / "Cargo.toml").read_text(), flags=re.M)[1]
        if not is_distribution(root):
            shutil.copyfile(found / "LICENSE", root / "LICENSE")


class LibraryHook(BuildHookInterface):
    """Adds what Cargo and header.py make to a wheel, and the Rust sources to a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the library and the program, and names them and the wheel's tag in `build_data`."""
        root = Path(self.root).resolve()
        found, included = repository(root), build_data["force_include"]
        if self.target_name == "sdist":
            if not is_distribution(root):
                included.update({str(found / name): f"rust/{name}" for name in SOURCES})
            return
        for tool, source in (("cargo", "Rust 1.95 or newer (https://rustup.rs)"), ("strip", "binutils")):
            if shutil.which(tool) is None:
                raise SystemExit(f"{tool} is not on the PATH, but building avsg needs it; install {source}")
        package = root / "src" / "avsg"
        module = runpy.run_path(str(root / "header.py"))["module"]
        (package / "_header.py").write_text(module((found / "bindings" / "c" / "include" / "avsg.h").read_text()))
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        for crate, (end, name) in BUILT.items():
            built = build(found, crate, end, bundled=is_distribution(root))
            stripped = (package if version == "editable" else built.parent / "stripped") / name
            stripped.parent.mkdir(exist_ok=True)
            subprocess.run(["strip", "-o", stripped, built], check=True)
            # An editable install imports the package from `src`.
            if version != "editable":
                included[str(stripped)] = f"avsg/{name}"


def build(found: Path, crate: str, end: str, bundled: bool) -> Path:
    """Runs Cargo on a crate of the Rust sources and returns the file of its that has this end."""
    target = os.environ.get("AVSG_CARGO_TARGET")
    command = ["cargo", "zigbuild" if target else "build", "--release", "--locked"]
    command += ["--manifest-path", str(found / crate / "Cargo.toml"), "--message-format", "json-render-diagnostics"]
    command += ["--target", target] if target else []
    features = os.environ.get("AVSG_CARGO_FEATURES")
    command += ["--features", features] if features and end == "/libavsg.so" else []
    # The toolchain file of the repository counts only if Cargo runs inside of it. The folders around a source
    # distribution may be anybody's: Cargo would read a configuration there, which can name programs to run.
    channel = re.search(r'channel = "([^"]+)"', (found / "rust-toolchain.toml").read_text())[1]
    environment = {"RUSTUP_TOOLCHAIN": channel, **os.environ} if bundled else os.environ
    folder = "/" if bundled else found
    ran = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed; its messages say why")
    messages = (json.loads(line) for line in ran.stdout.splitlines())
    files = [name for message in messages if message["reason"] == "compiler-artifact" for name in message["filenames"]]
    made = [name for name in files if name.endswith(end)]
    if len(made) != 1:
        raise SystemExit(f"{' '.join(command)} made {made or 'no file'}, not one *{end}; check the Cargo project")
    return Path(made[0])
