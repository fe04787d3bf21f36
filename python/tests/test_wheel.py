"""The wheel to publish is py3-none-manylinux_2_28 or older, by auditwheel's judgement.

It takes a release build of its own.
"""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "build_wheel"

pytestmark = pytest.mark.thorough


@pytest.mark.skipif(not SCRIPT.is_file(), reason="no checkout around this file")
def test_auditwheel_names_manylinux_2_28_or_older(tmp_path):
    printed = subprocess.check_output([SCRIPT, tmp_path], env=os.environ, text=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("avsg-") and "-py3-none-" in wheel.name
    sentence = " ".join(printed[printed.rindex(".whl") :].split())
    (minor,) = re.findall(rf'"manylinux_2_(\d+)_{platform.machine()}"', sentence)[:1]
    assert int(minor) <= 28, printed
    assert wheel.stat().st_size < 20 << 20
