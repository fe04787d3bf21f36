"""Tensors in the memory of AVSG's simulated Ascend runtime, which Python sees through copies alone."""

import ctypes
import types

import numpy as np

TO_DEVICE, FROM_DEVICE = 1, 2


class Runtime:
    """The runtime's library, loaded by its path, with one stream."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self.call("aclInit", None)
        self.call("aclrtSetDevice", 0)
        stream = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(stream))
        self.stream = stream.value

    def call(self, name, *arguments):
        """Calls a function, which must succeed; a whole number is an address or a size."""
        code = getattr(self._library, name)(*(ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments))
        assert code == 0, f"{name} returned {code}"

    def malloc(self, count):
        """Returns the address of device memory, which nobody frees."""
        at = ctypes.c_void_p()
        self.call("aclrtMalloc", ctypes.byref(at), count, 0)
        return at.value

    def copy(self, to, source, count, kind):
        """Waits for the stream, and copies."""
        self.call("aclrtSynchronizeStream", self.stream)
        self.call("aclrtMemcpy", to, count, source, count, kind)

    def tensor(self, values, dtype=np.int32):
        """Returns a tensor with these values."""
        values = np.array(values, dtype)
        made = Tensor(self, self.malloc(max(values.nbytes, 4)), values.shape, values.dtype)
        made.write(values)
        return made

    def zeros(self, *shape):
        """Returns a tensor of int32 zeros."""
        return self.tensor(np.zeros(shape))


class Tensor:
    """A contiguous tensor, with those of torch's methods that the adapter calls. They wait, as a stream orders them."""

    device = types.SimpleNamespace(type="npu", index=0)

    def __init__(self, runtime, address, shape, dtype):
        self._runtime, self._address, self.shape, self._dtype = runtime, address, tuple(shape), np.dtype(dtype)
        self.dtype = f"torch.{self._dtype.name}"

    def data_ptr(self):
        return self._address

    def element_size(self):
        return self._dtype.itemsize

    def stride(self):
        return tuple(int(np.prod(self.shape[axis + 1 :])) for axis in range(len(self.shape)))

    def __getitem__(self, part):
        start, stop, _ = part.indices(self.shape[0])
        at = self._address + start * self.stride()[0] * self.element_size()
        return Tensor(self._runtime, at, (stop - start, *self.shape[1:]), self._dtype)

    def read(self):
        """Returns the values."""
        values = np.empty(self.shape, self._dtype)
        self._runtime.copy(values.ctypes.data, self._address, values.nbytes, FROM_DEVICE)
        return values

    def write(self, values):
        """Sets the values."""
        values = np.ascontiguousarray(values, self._dtype)
        assert values.shape == self.shape
        self._runtime.copy(self._address, values.ctypes.data, values.nbytes, TO_DEVICE)

    def index_select(self, axis, index):
        assert axis == 0
        return self._runtime.tensor(self.read()[index.read()], self._dtype)

    def __add__(self, other):
        return self._runtime.tensor(self.read() + other.read(), self._dtype)

    def copy_(self, other):
        self.write(other.read())


class Buffer:
    """vLLM's `CpuGpuBuffer` of int32."""

    def __init__(self, runtime, count):
        self.np, self.gpu = np.zeros(count, np.int32), runtime.zeros(count)

    def copy_to_gpu(self, count):
        self.gpu[:count].write(self.np[:count])
