"""One decode step's inputs. A batch and its fresh rows are made once and used at every step."""

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any, Generic

from . import _header
from ._arguments import instance, struct, whole, wholes
from .errors import InvalidError
from .memory import HOST, Span, int32_span, numpy_of, span

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import TypeVar

    #: The type of a batch's arrays, such as np.ndarray or torch.Tensor.
    A = TypeVar("A", default=Any)
else:
    from typing import TypeVar

    A = TypeVar("A")

PER_REQUEST = ("cu_q", "state", "generation", "stable_len", "seq_len")
ARRAYS = ("ids", *PER_REQUEST, "block_table")


class _Array:
    """One of the arrays of a batch; to assign another one is `Batch.point`."""

    def __init__(self, text: str) -> None:
        self.__doc__ = text

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, batch: Batch[A], _: Any = None) -> A:
        return self if batch is None else batch._arrays[self._name]

    def __set__(self, batch: Batch[A], array: Any) -> None:
        batch.point(**{self._name: array})


class Batch(Generic[A]):
    """The arrays of one decode step, which the library reads in place.

    Every array is int32. `indexer` selected the ids. Write new values into the arrays, or name other
    arrays by assignment or with `point`, and call the engine again.
    """

    __slots__ = ("_arrays", "_as_parameter_", "_device", "_lengths", "_requests", "_spans", "_struct")

    ids = _Array("The ids that each token selects, [tokens, K]; a negative id is padding.")
    cu_q = _Array("The first token of each request, and then the number of tokens, [requests + 1].")
    state = _Array("The state of each request, [requests]; -1: a vacant place.")
    generation = _Array("[requests]; one that the state has not had empties the state.")
    stable_len = _Array(
        "The tokens of each request whose rows were final before this step, [requests]. The rows of ids from there on "
        "are the fresh rows. -1: the request has none, and all rows are in the pool."
    )
    seq_len = _Array("The tokens of each request with those of this step, [requests].")
    block_table = _Array("The pool's blocks of each request, [requests, blocks]; None for an engine without `page`.")

    def __init__(
        self,
        ids: A,
        *,
        cu_q: A,
        state: A,
        generation: A,
        stable_len: A,
        seq_len: A,
        block_table: A | None = None,
        indexer: int = 0,
    ) -> None:
        self._struct = struct(_header.avsg_batch, indexer=indexer)
        self._as_parameter_ = c.byref(self._struct)
        self._arrays: dict[str, Any] = {"block_table": None}
        self._spans: dict[str, Any] = {}
        self.point(ids=ids, cu_q=cu_q, state=state, generation=generation, stable_len=stable_len, seq_len=seq_len)
        if block_table is not None:
            self.point(block_table=block_table)

    @classmethod
    def zeros(cls, requests: int, k: int, tokens: int = 1, blocks: int = 0, indexer: int = 0) -> Batch[np.ndarray]:
        """Makes a batch of NumPy arrays with `requests` requests of `tokens` tokens each.

        Request i is in state i and generation 0, every id is padding, and every `stable_len` is -1.
        """
        import numpy as np

        requests, tokens = whole(requests, "requests"), whole(tokens, "tokens")
        k, blocks = whole(k, "k"), whole(blocks, "blocks")
        table = np.zeros((requests, blocks), np.int32) if blocks else None
        return Batch(
            np.full((requests * tokens, k), -1, np.int32),
            cu_q=np.arange(requests + 1, dtype=np.int32) * np.int32(tokens),
            state=np.arange(requests, dtype=np.int32),
            generation=np.zeros(requests, np.int32),
            stable_len=np.full(requests, -1, np.int32),
            seq_len=np.zeros(requests, np.int32),
            block_table=table,
            indexer=indexer,
        )

    def _takes_fresh(self) -> bool:
        """Tells whether a request of a batch in host memory takes fresh rows, or all places are vacant."""
        vacant = True
        for state, stable_len in zip(*self._lengths):
            if state >= 0 <= stable_len:
                return True
            vacant = vacant and state < 0
        return vacant

    def __repr__(self) -> str:
        requests, (tokens, k) = self._requests, self._spans["ids"].shape
        return f"<avsg.Batch requests={requests} tokens={tokens} k={k} indexer={self.indexer} device={self.device}>"

    @property
    def device(self) -> str:
        """The device of the arrays."""
        return self._device

    @property
    def indexer(self) -> int:
        """The indexer that selected the ids: a number of the engine's `layer_indexer`."""
        return self._struct.indexer

    @indexer.setter
    def indexer(self, value: int) -> None:
        self._struct.indexer = whole(value, "indexer")

    def _host_array(self, name: str) -> np.ndarray:
        """Returns one of the arrays as NumPy reads it; it must be in host memory."""
        return numpy_of(self._spans[name], "<i4")

    def point(self, **arrays: Any) -> None:
        """Names other arrays for some of the fields. A refused array leaves the batch as it was."""
        spans = {}
        for name, array in arrays.items():
            if name not in ARRAYS:
                raise TypeError(f"{name!r} is not an array of a batch; the arrays are {', '.join(ARRAYS)}")
            found = spans[name] = int32_span(array, name, 2 if name in ("ids", "block_table") else 1)
        devices = {found.device for found in {**self._spans, **spans}.values()}
        if len(devices) > 1:
            raise InvalidError(
                f"the arrays are on {' and '.join(sorted(devices))}; put all of a batch's arrays on one device"
            )
        for name, found in spans.items():
            field = getattr(self._struct, name)
            field.data, field.len = found.address, _elements(found)
            if name == "ids":
                self._struct.k, self._struct.ids_stride = found.shape[1], row_stride(found)
            elif name == "block_table":
                self._struct.block_stride = row_stride(found)
        self._arrays.update(arrays)
        self._spans.update(spans)
        self._requests = self._spans["state"].shape[0]
        self._device = devices.pop()
        #: `state` and `stable_len` for `_takes_fresh`, which is faster with them than with NumPy's.
        self._lengths = [
            (c.c_int32 * found.shape[0]).from_address(found.address)
            for found in (self._spans["state"], self._spans["stable_len"])
            if self._device == HOST
        ]


def row_stride(found: Span) -> int:
    """Elements from row to row.

    The stride of a single row says nothing, and a framework may give any.
    """
    return found.strides[0] // 4 if found.shape[0] > 1 else found.shape[1]


def _elements(found: Span) -> int:
    """Elements from the first to the last of an array whose rows may lie apart."""
    if 0 in found.shape:
        return 0
    rows = (found.shape[0] - 1) * row_stride(found) if len(found.shape) == 2 else 0
    return rows + found.shape[-1]


class Fresh:
    """The rows of a step's tokens, which the host pool does not have yet.

    There is one array of any type for each segment. The row of token t of the batch begins at t times
    the segment's stride.
    """

    __slots__ = ("_as_parameter_", "_spans", "_struct", "device")

    def __init__(self, *segments: Any) -> None:
        self._struct = struct(_header.avsg_fresh, segments=len(segments))
        self._as_parameter_ = c.byref(self._struct)
        if not 1 <= len(segments) <= _header.MAX_SEGMENTS:
            raise InvalidError(f"{len(segments)} segments were passed, but a row has 1 to {_header.MAX_SEGMENTS}")
        self._spans: list[Span | None] = [None] * len(segments)
        self.device = HOST
        for index, array in enumerate(segments):
            self.point(index, array)

    def point(self, segment: int, array: Any) -> None:
        """Names another array for one segment."""
        found = span(array, f"segment {segment}")
        if not found.contiguous:
            raise InvalidError(
                f"segment {segment} is not contiguous; make it contiguous, with the pool's stride between rows"
            )
        self._struct.data[segment], self._struct.bytes[segment] = found.address, found.nbytes
        self._spans[segment], self.device = found, found.device


class Layers:
    """The layers of one call of `Engine.transfer` or `Engine.append`, in ascending order.

    `fresh` has the fresh rows of each layer, all on one device; a transfer needs none if no miss is a
    fresh row. A list is made once and used at every step.
    """

    __slots__ = ("_fresh", "_numbers", "_structs")

    def __init__(self, numbers: Any, fresh: Any = None) -> None:
        self._numbers = wholes(numbers, "layers")
        self._fresh: list[Fresh] | None = None
        self._structs: Any = None
        if fresh is not None:
            self._fresh = [instance(rows, Fresh, f"fresh[{index}]") for index, rows in enumerate(fresh)]
            if len(self._fresh) != len(self._numbers):
                raise InvalidError(
                    f"{len(self._numbers)} layers and {len(self._fresh)} fresh rows were passed; pass one for each"
                )
            self._structs = (_header.avsg_fresh * len(self._fresh))()

    def arguments(self, fresh: Any) -> tuple[Any, int, Any, str]:
        """Returns the numbers of the layers, their number, and their fresh rows and the device of these.

        Refuses fresh rows beside those of the layers.
        """
        if fresh is not None:
            raise TypeError("fresh was passed beside layers, which have their own; pass it to avsg.Layers")
        # The rows may name other arrays by now.
        for index, rows in enumerate(self._fresh or ()):
            self._structs[index] = rows._struct
        return self._numbers, len(self._numbers), self._structs, self.device

    @property
    def device(self) -> str:
        """The device of the fresh rows; that of host memory without any."""
        devices = {rows.device for rows in self._fresh or ()} or {HOST}
        if len(devices) > 1:
            raise InvalidError(f"the fresh rows are on {' and '.join(sorted(devices))}; put them on one device")
        return devices.pop()
