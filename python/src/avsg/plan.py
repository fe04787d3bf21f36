"""Plans: the outputs of a step, allocated once."""

from __future__ import annotations

import ctypes as c
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _header
from ._arguments import whole
from ._header import SUMMARY_MISSES, SUMMARY_STATUS, SUMMARY_WORDS, MemoryKind, PlanCounters, RequestStatus
from ._library import Handle, check, filled, lib
from .errors import InvalidError
from .memory import HOST, View, int32_view

if TYPE_CHECKING:
    import numpy as np

ROWS = ("valid", "row_misses")
MISS_LISTS = ("miss_position", "miss_id", "miss_slot", "miss_row")


class Request(NamedTuple):
    """One request of the last batch planned. The arrays are views that the next plan overwrites."""

    first_token: int
    tokens: int
    slot: np.ndarray
    valid: np.ndarray
    row_misses: np.ndarray
    miss_position: np.ndarray
    miss_id: np.ndarray
    miss_slot: np.ndarray
    miss_row: np.ndarray
    status: RequestStatus


class Failure(NamedTuple):
    """A request that transfers leave out, and the layer and the row of a file that are not whole."""

    request: int
    layer: int
    row: int


class Plan:
    """Slots, miss lists and counters of batches of at most `max_tokens` tokens and `max_requests` requests.

    `Engine.new_plan` makes it. The arrays stay at one address for the plan's whole life; their
    contents are those of the last batch planned.
    """

    def __init__(self, engine: Handle | None, max_tokens: int, max_requests: int, k: int, device: str) -> None:
        out = c.c_void_p()
        check(lib.avsg_plan_create(engine, max_tokens, max_requests, c.byref(out)))
        self._handle: Handle | None = Handle(out, lib.avsg_plan_destroy)
        self.max_tokens, self.max_requests, self.k, self._device = max_tokens, max_requests, k, device
        #: `status` for the check of every step: `any` of so few words is faster than NumPy's.
        self._status = memoryview(self.status)

    def __repr__(self) -> str:
        shown = f"max_tokens={self.max_tokens} max_requests={self.max_requests} k={self.k} device={self._device}"
        return f"<avsg.Plan {shown}{'' if self._handle else ' closed'}>"

    def close(self) -> None:
        """Ends the plan. Its memory is given back when the last array that views it is gone.

        A batch that no layer has is discarded by the engine's next call.
        """
        self._handle, self._status = None, memoryview(b"")
        for name in ("slots", "valid", "row_misses", "summary", "misses", "status"):
            self.__dict__.pop(name, None)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def view(self, name: str) -> View:
        """Returns a host array of the plan for DLPack.

        `name` is slot, valid, cu_q, row_misses, summary, miss_position, miss_id, miss_slot or miss_row.
        """
        return self._view(name, MemoryKind.HOST, HOST)

    def device_view(self, name: str) -> View:
        """Returns the array `name` in device memory, where a stream leaves it.

        On "cpu" this is `view`. Elsewhere `summary` has the misses of each token, and there is neither
        row_misses nor cu_q.
        """
        return self._view(name, MemoryKind.DEVICE, self._device)

    def _view(self, name: str, memory: MemoryKind, device: str) -> View:
        shapes = {"slot": (self.max_tokens, self.k)} | dict.fromkeys(ROWS, (self.max_tokens,))
        shapes |= {"summary": (self.max_requests, SUMMARY_WORDS), "cu_q": (self.max_requests + 1,)}
        shapes |= dict.fromkeys(MISS_LISTS, (self.max_tokens * self.k,))
        if name not in shapes:
            raise InvalidError(f"{name!r} is not an array of a plan; the arrays are {', '.join(shapes)}")
        arrays = filled(lib.avsg_plan_get_arrays, _header.avsg_plan_arrays, self._handle, memory)
        address = getattr(arrays, name)
        if not address:
            raise InvalidError(
                f"{name!r} is not an array in device memory; read misses from 'summary' and tokens from the batch"
            )
        return int32_view(address, shapes[name], self._handle, device)

    @cached_property
    def slots(self) -> np.ndarray:
        """The slot of each selected id, [max_tokens, K] in int32; -1 for an id without a row.

        Such an id is padding (a negative one, and every id of a request whose state is -1), or the
        request's `status` is about it. NumPy reads an array's last element at -1: leave it out.
        """
        return self.view("slot").numpy()

    @cached_property
    def valid(self) -> np.ndarray:
        """How many ids of each token have a slot, [max_tokens] in int32."""
        return self.view("valid").numpy()

    @cached_property
    def row_misses(self) -> np.ndarray:
        """The number of misses of each token, [max_tokens] in int32."""
        return self.view("row_misses").numpy()

    @cached_property
    def summary(self) -> np.ndarray:
        """The summary of each request, [max_requests, 16] in int32.

        Words 0 to 7 are the misses of its first 8 tokens. In a request of more than 8 tokens these are the low 16
        bits of word g, and the high 16 bits are the misses of token g + 8. `misses` and `status` are other words.
        """
        return self.view("summary").numpy()

    @cached_property
    def misses(self) -> np.ndarray:
        """The number of misses of each request, [max_requests] in int32."""
        return self.summary[:, SUMMARY_MISSES]

    @cached_property
    def status(self) -> np.ndarray:
        """The `RequestStatus` bits of each request, [max_requests] in int32; 0 if every id was accepted."""
        return self.summary[:, SUMMARY_STATUS]

    @property
    def counters(self) -> PlanCounters:
        """The counters of the last batch planned."""
        return PlanCounters.of(filled(lib.avsg_plan_get_counters, _header.avsg_plan_counters, self._handle))

    @property
    def failures(self) -> list[Failure]:
        """The requests that the transfers so far left out (`LostRowsError`), in the order of the batch."""
        arrays = filled(lib.avsg_plan_get_arrays, _header.avsg_plan_arrays, self._handle, MemoryKind.HOST)
        kind = c.c_int64 * self.counters.requests
        layers, rows = kind.from_address(arrays.failed_layer), kind.from_address(arrays.failed_row)
        return [Failure(r, layers[r], row) for r, row in enumerate(rows) if row >= 0]

    def request(self, index: int) -> Request:
        """Returns what the last batch planned found for one request."""
        index, requests = whole(index, "request"), self.counters.requests
        if index >= requests:
            raise InvalidError(f"request is {index}, but the last batch has {requests}; pass a lower number")
        first, end = (int(token) for token in self.view("cu_q").numpy()[index : index + 2])
        at, misses = first * self.k, int(self.misses[index])
        lists = {name: self.view(name).numpy()[at : at + misses] for name in MISS_LISTS}
        tokens = {"slot": self.slots, "valid": self.valid, "row_misses": self.row_misses}
        arrays = lists | {name: array[first:end] for name, array in tokens.items()}
        return Request(first, end - first, status=RequestStatus(int(self.status[index])), **arrays)
