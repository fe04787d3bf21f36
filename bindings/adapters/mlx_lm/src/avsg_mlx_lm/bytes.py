"""MLX arrays as bytes, and back. NumPy has no bfloat16, and AVSG's rows are bytes."""

from __future__ import annotations

import mlx.core as mx
import numpy as np


def rows_of(array: mx.array) -> np.ndarray:
    """Returns an evaluated array [1, 1, rows, width] as bytes [rows, bytes].

    Packed rows are not copied.
    """
    rows = np.array(array.view(mx.uint8), copy=False)
    return rows.reshape(array.shape[2], -1)


def array_of(rows: np.ndarray, dtype: mx.Dtype) -> mx.array:
    """Copies rows of bytes into an array [1, 1, rows, width].

    MLX imports host memory only by copying it.
    """
    return mx.array(rows).view(dtype)[None, None]
