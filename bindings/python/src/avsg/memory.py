"""Addresses of the caller's arrays, and views of the library's memory, without copies."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ._dlpack import packed_strides, read_dlpack
from ._refused_arrays import check_interface, check_tensor
from .errors import InvalidError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

HOST = "cpu"


class Span(NamedTuple):
    """Where a caller's array is and how it is laid out. `owner` keeps the memory."""

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    #: Bytes from element to element along each axis.
    strides: tuple[int, ...]
    device: str
    owner: Any
    #: Whether the array says that its memory cannot be written.
    read_only: bool = False

    @property
    def contiguous(self) -> bool:
        """Whether the elements are packed in row-major order."""
        expected = self.itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides)):
            if length > 1 and stride != expected:
                return False
            expected *= length
        return True

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        total = self.itemsize
        for length in self.shape:
            total *= length
        return total


def span(array: Any, what: str) -> Span:
    """Describes an array of NumPy, torch, or any framework with DLPack.

    Objects with the buffer protocol are arrays, too. An array whose values are not the bytes at its address raises
    TypeError. `what` names the argument in error sentences.
    """
    if hasattr(array, "data_ptr"):
        return torch_span(array, what)
    if hasattr(array, "__array_interface__"):
        return numpy_span(array, what)
    if hasattr(array, "__dlpack__"):
        return Span(*read_dlpack(array, what))
    import numpy as np

    try:
        buffer = memoryview(array)
    except TypeError:
        kind = type(array).__name__
        raise TypeError(
            f"{what} is of type {kind}, but an array is needed; pass a NumPy array or a DLPack one"
        ) from None
    return numpy_span(np.asarray(buffer), what)


def numpy_span(array: Any, what: str) -> Span:
    """Describes an object with NumPy's array interface."""
    interface = array.__array_interface__
    check_interface(array, interface, what)
    kind, itemsize = interface["typestr"][1], int(interface["typestr"][2:])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or packed_strides(shape, itemsize)
    name = {"i": "int", "u": "uint", "f": "float"}.get(kind, kind) + str(8 * itemsize)
    address, read_only = interface["data"]
    return Span(address, name, itemsize, shape, strides, HOST, array, read_only)


def torch_span(tensor: Any, what: str) -> Span:
    """Describes a torch tensor on any device."""
    address = check_tensor(tensor, what)
    itemsize = tensor.element_size()
    strides = tuple(itemsize * step for step in tensor.stride())
    name = str(tensor.dtype).rpartition(".")[2]
    return Span(address, name, itemsize, tuple(tensor.shape), strides, tensor.device.type, tensor)


def host_span(array: Any, what: str) -> Span:
    """Describes an array that the host reads."""
    found = span(array, what)
    if found.device != HOST:
        raise InvalidError(f"{what} is on the device {found.device}, but needs to be in host memory; copy it there")
    return found


def output_span(array: Any, what: str) -> Span:
    """Describes an array that the host writes."""
    found = host_span(array, what)
    if found.read_only:
        raise InvalidError(f"{what} is read-only, but the library writes to it; pass a writable array, such as a copy")
    extent = found.itemsize
    for stride, length in sorted((abs(stride), n) for stride, n in zip(found.strides, found.shape) if n > 1):
        if stride < extent:
            raise InvalidError(
                f"{what} has elements that share memory, as a broadcast array has, but the library writes to it; "
                "pass a copy"
            )
        extent += stride * (length - 1)
    return found


def int32_span(array: Any, what: str, axes: int, of: Callable[[Any, str], Span] = span) -> Span:
    """Describes an array of int32 with `axes` axes whose last axis is packed.

    `of` is `host_span` or `output_span` for an array that cannot be on a device.
    """
    found = of(array, what)
    if found.dtype != "int32":
        raise TypeError(
            f"{what} is of {found.dtype}, but AVSG reads int32; convert it once, with astype('int32') or .int()"
        )
    if len(found.shape) != axes:
        raise InvalidError(f"{what} has {len(found.shape)} axes, but needs {axes}; reshape it")
    if found.shape[-1] > 1 and found.strides[-1] != 4:
        raise InvalidError(f"{what} has {found.strides[-1]} bytes between neighbours, but needs 4; make it contiguous")
    if axes == 2 and found.shape[0] > 1 and (found.strides[0] < 0 or found.strides[0] % 4):
        raise InvalidError(
            f"{what} has {found.strides[0]} bytes between rows, but needs a multiple of 4, from 0; copy it"
        )
    return found


def numpy_of(found: Span, typestr: str) -> np.ndarray:
    """Returns a read-only NumPy array of a caller's array in host memory, which may be of another framework."""
    return View(found.address, found.shape, typestr, found.owner, found.strides).numpy()


class View:
    """Memory of the library as an array that NumPy and DLPack frameworks share without a copy.

    The memory is valid as long as the view or an array made from it exists.
    """

    __slots__ = ("address", "device", "owner", "shape", "strides", "typestr")

    def __init__(self, address: int, shape, typestr: str, owner: Any, strides=None, device: str = HOST) -> None:
        self.address, self.shape, self.typestr, self.owner = address, tuple(shape), typestr, owner
        self.strides, self.device = strides, device

    def _interface(self, read_only: bool) -> dict[str, Any]:
        if self.device != HOST:
            raise UnsupportedError(
                f"this memory is on the device {self.device}: pass its address ({self.address:#x}) on"
            )
        return {
            "version": 3,
            "data": (self.address, read_only),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.typestr,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface(read_only=True)

    def numpy(self) -> np.ndarray:
        """Returns a read-only NumPy array of the memory."""
        import numpy as np

        return np.asarray(self)

    def writable(self) -> np.ndarray:
        """Returns a writable NumPy array of the memory."""
        import numpy as np

        return np.asarray(_Writable(self))

    def __dlpack__(self, **options: Any) -> Any:
        """Exports the memory.

        It looks writable, since most frameworks have no read-only arrays; do not write it.
        """
        return self.writable().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._interface(read_only=True)
        return (1, 0)


class _Writable:
    """A view without the read-only mark, which old DLPack versions cannot express."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, view: View) -> None:
        self.__array_interface__, self.owner = view._interface(read_only=False), view.owner


def int32_view(address: int | None, shape, owner: Any, device: str = HOST) -> View:
    """Returns a view of packed int32; an address of None is an array without elements."""
    if not address:
        empty = c.c_int32()
        return View(c.addressof(empty), (0,) * len(shape), "<i4", empty)
    return View(address, shape, "<i4", owner, device=device)
