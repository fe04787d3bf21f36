"""What importing the package does not import."""

import subprocess
import sys

import avsg

PROGRAM = """
import sys
import avsg
print("numpy" in sys.modules, "torch" in sys.modules)
"""


def test_importing_imports_neither_numpy_nor_torch():
    assert subprocess.check_output([sys.executable, "-c", PROGRAM], text=True) == "False False\n"


def test_the_library_has_a_version_and_devices():
    assert avsg.__version__.count(".") == 2
    assert "cpu" in avsg.devices()
