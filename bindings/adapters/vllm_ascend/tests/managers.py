"""Modules with vLLM-Ascend's `SparseKVOffloadManager`: stand-ins of each form, and those of released versions."""

import __future__

import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from unittest.mock import MagicMock

from avsg_vllm_ascend.plugin import MANAGER

#: The stand-ins, by the expression that finds the operators and the prefix of their names.
FORMS = {
    "attribute": ("self.sparse_kv_offload_cpp", ""),
    "function": ("_sparse_kv_ops()", "sparse_kv_"),
    "moved": ("_planner_of(self)", "sparse_kv_"),
}
STAND_IN = """
from zlib import adler32

operators = None

def _sparse_kv_ops():
    return operators

_planner_of = _sparse_kv_ops if {moved} else None

def number(request_id):
    return adler32(request_id.encode())

class SparseKVOffloadManager:
    def __init__(self, **switches):
        vars(self).update(switches)
        self.max_num_topk_rows = 4
        if {attribute}:
            self.sparse_kv_offload_cpp = operators

    def register(self):
        self.num_layers = 1

    def _onload_topk_kv_cpu(self, args):
        {find}.{prefix}lru_resident_compact(*args)
        {find}.{prefix}compute_lru_resident_addrs(args)
"""


def stand_in(form):
    """Returns a module with the manager of a form, and its operators, which no planner may call."""
    find, prefix = FORMS[form]
    source = STAND_IN.format(find=find, prefix=prefix, moved=form == "moved", attribute=form == "attribute")
    module = load(source)
    module.operators = MagicMock()
    getattr(module.operators, prefix + "lru_resident_compact").side_effect = AssertionError("the original planned")
    return module, getattr(module.operators, prefix + "compute_lru_resident_addrs")


def load(source):
    """Runs a manager's source below the real module's name, with mocks in the place of what is not installed here."""
    tree = ast.parse(source)
    imports = [name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    names = [name.name for name in imports]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for name in names:
        if name.split(".")[0] in ("torch", "torch_npu", "vllm", "vllm_ascend", "memfabric_hybrid"):
            install(name, MagicMock())
    module = types.ModuleType(MANAGER)
    module.__file__ = "sparse_kv_offload_manager.py"
    install(MANAGER, module)
    # Annotations stay text, because those of a mock are not types.
    exec(compile(tree, MANAGER, "exec", __future__.annotations.compiler_flag), vars(module))
    return module


def install(name, module):
    """Makes `import` find the module and its packages."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:length]), MagicMock())
    sys.modules[name] = module


def released(version):
    """Returns the manager's source in the sdist of a version or of the `newest` one, or None without an index.

    Nothing of the sdist runs: pip unpacks it, and then finds no `setuptools` that could build it.
    """
    wanted = "vllm-ascend" if version == "newest" else f"vllm-ascend=={version}"
    options = ["--pre", "--no-deps", "--no-binary", "vllm-ascend", "--no-build-isolation", "--no-clean"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "setuptools.py").write_text("raise ImportError('the source is enough')")
        command = [sys.executable, "-m", "pip", "download", *options, "--ignore-requires-python", "-d", folder, wanted]
        environment = {**os.environ, "TMPDIR": name, "PYTHONPATH": name}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not list(folder.rglob("PKG-INFO")):
            return None
        return next(folder.rglob(MANAGER.replace(".", "/") + ".py")).read_text()
