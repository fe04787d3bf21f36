"""Builds libavsg.so with Cargo and puts it into the wheel, whose tag is py3-none-linux_<machine>.

Before that, header.py makes the module _header of include/avsg.h.

`build_wheel` turns that tag into a manylinux one with auditwheel. The environment may say:

  AVSG_CARGO_TARGET    a target of cargo-zigbuild, such as x86_64-unknown-linux-gnu.2.28, to link against an older glibc
  AVSG_CARGO_FEATURES  features of the crate avsg-capi-so, such as "sim"
  CARGO_TARGET_DIR     Cargo's target folder; by default `target` of the repository
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):
    """Adds the shared library to a wheel as avsg/libavsg.so, and the header's declarations as avsg/_header.py."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the library and names it and the wheel's tag in `build_data`."""
        crate = Path(self.root).resolve().parent / "capi" / "so" / "Cargo.toml"
        if not crate.is_file():
            raise RuntimeError(f"{crate} is missing: build the wheel in a checkout of the whole repository")
        if shutil.which("cargo") is None:
            raise RuntimeError("cargo is not on the PATH: install Rust 1.95 or newer (https://rustup.rs)")
        root = Path(self.root)
        module = runpy.run_path(str(root / "header.py"))["module"]
        (root / "src" / "avsg" / "_header.py").write_text(module((root.parent / "include" / "avsg.h").read_text()))
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["force_include"][str(build_library(crate))] = "avsg/libavsg.so"


def build_library(crate: Path) -> Path:
    """Runs Cargo on the manifest `crate` and returns the path of libavsg.so."""
    target = os.environ.get("AVSG_CARGO_TARGET")
    command = ["cargo", "zigbuild" if target else "build", "--release", "--locked"]
    command += ["--manifest-path", str(crate), "--message-format", "json-render-diagnostics"]
    command += ["--target", target] if target else []
    features = os.environ.get("AVSG_CARGO_FEATURES")
    command += ["--features", features] if features else []
    # The toolchain file of the repository counts only if Cargo runs inside the repository.
    lines = subprocess.run(command, cwd=crate.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = (json.loads(line) for line in lines.splitlines())
    files = [name for message in messages if message["reason"] == "compiler-artifact" for name in message["filenames"]]
    libraries = [name for name in files if name.endswith("libavsg.so")]
    if len(libraries) != 1:
        raise RuntimeError(f"{' '.join(command)} made {libraries or 'no libavsg.so'}, not one libavsg.so")
    return Path(libraries[0])
