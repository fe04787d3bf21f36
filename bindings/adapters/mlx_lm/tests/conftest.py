"""What the tests share: a small model, its text, and upstream's cache of a prompt."""

import os

import pytest

from avsg_mlx_lm.harness.decoding import prefill
from avsg_mlx_lm.harness.model import random_model, random_text

THOROUGH = os.environ.get("AVSG_THOROUGH") == "1"


class Small:
    """Two layers with K = 32, and a prompt so short that a row is selected every few steps."""

    k, slots, prompt = 32, 64, 96

    def __init__(self):
        self.model = random_model(2, self.k)
        self.text = random_text(1000)
        self.prefilled = self.model.make_cache()
        prefill(self.model, self.prefilled, self.text[: self.prompt])


@pytest.fixture
def disk(tmp_path):
    """A folder whose file system takes O_DIRECT, as a pool in a file does by default."""
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError:
        pytest.skip(f"the file system of {tmp_path} has no O_DIRECT")
    return tmp_path


@pytest.fixture(scope="session")
def small():
    return Small()
