"""Reads the description of a DLPack capsule with ctypes, so that no framework has to be imported."""

from __future__ import annotations

import ctypes as c
from typing import Any

from .errors import InvalidError

HOST_TYPES = (1, 3)  # kDLCPU, kDLCUDAHost
DEVICE_NAMES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "hip", 12: "npu"}  # kDLExtDev is what torch_npu uses
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class Device(c.Structure):
    _fields_ = [("kind", c.c_int32), ("index", c.c_int32)]


class DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Tensor(c.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", c.c_void_p),
        ("device", Device),
        ("ndim", c.c_int32),
        ("dtype", DataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (c.py_object, c.c_char_p), c.c_void_p


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Returns the bytes from element to element along each axis of a packed row-major array."""
    strides: list[int] = []
    step = itemsize
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


def read_dlpack(array: Any, what: str) -> tuple:
    """Returns the fields of a `Span` for an object with DLPack.

    The capsule keeps the memory and is not consumed.
    """
    kind = array.__dlpack_device__()[0]
    try:
        # -1 asks the producer not to wait for its stream: the order of work on a device is the
        # caller's.
        capsule = array.__dlpack__() if kind in HOST_TYPES else array.__dlpack__(stream=-1)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{what} gives no address by DLPack ({error}); pass a copy of its values") from None
    tensor = Tensor.from_address(_pointer(capsule, b"dltensor"))
    itemsize, shape = tensor.dtype.bits // 8, tuple(tensor.shape[: tensor.ndim])
    if itemsize * 8 != tensor.dtype.bits or tensor.dtype.lanes != 1:
        raise InvalidError(f"{what} has elements of {tensor.dtype.bits} bits, but needs whole bytes")
    steps = tuple(itemsize * step for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    strides = packed_strides(shape, itemsize) if steps is None else steps
    dtype = KINDS.get(tensor.dtype.code, "code") + str(tensor.dtype.bits)
    address = (tensor.data or 0) + tensor.byte_offset
    return address, dtype, itemsize, shape, strides, DEVICE_NAMES.get(kind, f"dlpack-{kind}"), (array, capsule)
