"""What importing the package costs, and what it does not import."""

import json
import subprocess
import sys

import avsg

PROGRAM = """
import json, sys, time
begin = time.process_time()
import avsg
print(json.dumps([(time.process_time() - begin) * 1e3, "numpy" in sys.modules, "torch" in sys.modules]))
"""


def test_importing_costs_under_50_ms_and_imports_neither_numpy_nor_torch():
    """The time is the process's own, so that other programs on the machine do not count."""
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", PROGRAM])) for _ in range(5)]
    assert not any(numpy or torch for _, numpy, torch in runs)
    assert min(took for took, _, _ in runs) < 50, runs


def test_the_library_has_a_version_and_devices():
    assert avsg.__version__.count(".") == 2
    assert "cpu" in avsg.devices()
