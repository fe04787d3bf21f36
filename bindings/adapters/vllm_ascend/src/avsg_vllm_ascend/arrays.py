"""NumPy arrays over memory that is known by its address alone."""

from __future__ import annotations

import ctypes
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=4096)
def array_at(address: int, shape: tuple[int, ...], dtype: type = np.int32) -> np.ndarray:
    """Returns an array over the caller's memory, which must stay valid while the array is used.

    vLLM-Ascend passes the same addresses at every step, so arrays are kept. An array over memory that
    was freed is not read again unless a call passes its address, which is valid then.
    """
    count = 1
    for length in shape:
        count *= length
    memory = (ctypes.c_byte * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
