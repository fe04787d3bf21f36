"""Plans: the outputs of a step, allocated once."""

from __future__ import annotations

import ctypes as c
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _header
from ._arguments import struct, whole
from ._header import SUMMARY_MISSES, SUMMARY_STATUS, SUMMARY_WORDS, MemoryKind, PlanCounters, RequestStatus
from ._library import Handle, check, filled, lib
from .errors import InvalidError
from .memory import HOST, View, int32_view

if TYPE_CHECKING:
    import numpy as np

ROWS = ("valid", "row_misses")
MISS_LISTS = ("miss_position", "miss_id", "miss_slot", "miss_row")
#: The arrays that a plan makes once.
CACHED = ("slots", "valid", "row_misses", "summary", "misses", "status", "_lists")


class Request(NamedTuple):
    """One request of the last batch planned. The arrays are views that the next plan overwrites, but `miss_slot`.

    `miss_slot` numbers slots as `slot` does: with `global_slots` among the slots of all states.
    """

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
    """A request that transfers leave out, and the layer and the row of a file that are not whole.

    `is_new` tells whether the last transfer of the plan found it, and `ids` has the ids of all rows that were not
    whole then. It is empty if another plan missed the row.
    """

    request: int
    layer: int
    row: int
    is_new: bool
    ids: list[int]


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
        self._counters = struct(_header.avsg_plan_counters)
        #: What `torch_ops` keeps from call to call.
        self._kept: dict[Any, Any] = {}
        #: `status` for the check of every step: `any` of so few words is faster than NumPy's.
        self._status = memoryview(self.status)

    def __repr__(self) -> str:
        shown = f"max_tokens={self.max_tokens} max_requests={self.max_requests} k={self.k} device={self._device}"
        return f"<avsg.Plan {shown}{'' if self._handle else ' closed'}>"

    def close(self) -> None:
        """Ends the plan. Its memory is given back at once, or when the last array that views it is gone.

        A batch that no layer has is discarded by the engine's next call.
        """
        self._handle, self._status = None, memoryview(b"")
        self._kept.clear()
        for name in CACHED:
            self.__dict__.pop(name, None)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def view(self, name: str) -> View:
        """Returns a host array of the plan for DLPack.

        `name` is slot, valid, cu_q, row_misses, summary, miss_position, miss_id, miss_slot or miss_row. This
        `miss_slot` has slots within their states also with `global_slots`, because Stage Two reads it.
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

    @cached_property
    def _lists(self) -> list[np.ndarray]:
        """The first token of each request, and the miss lists of all."""
        return [self.view(name).numpy() for name in ("cu_q", *MISS_LISTS)]

    @property
    def counters(self) -> PlanCounters:
        """The counters of the last batch planned."""
        return PlanCounters.of(filled(lib.avsg_plan_get_counters, _header.avsg_plan_counters, self._handle))

    @property
    def failures(self) -> list[Failure]:
        """The requests that the transfers so far left out (`LostRowsError`), in the order of the batch."""
        arrays = filled(lib.avsg_plan_get_arrays, _header.avsg_plan_arrays, self._handle, MemoryKind.HOST)
        requests = self.counters.requests
        kind, flags = c.c_int64 * requests, (c.c_int32 * requests).from_address(arrays.failed_new)
        layers, rows = kind.from_address(arrays.failed_layer), kind.from_address(arrays.failed_row)
        failed = [r for r, row in enumerate(rows) if row >= 0]
        return [Failure(r, layers[r], rows[r], flags[r] == 1, self._lost_ids(r)) for r in failed]

    def _lost_ids(self, request: int) -> list[int]:
        count = c.c_size_t()
        check(lib.avsg_plan_get_lost_ids(self._handle, request, None, 0, c.byref(count)))
        ids = (c.c_int32 * count.value)()
        check(lib.avsg_plan_get_lost_ids(self._handle, request, ids, len(ids), c.byref(count)))
        return list(ids)

    def request(self, index: int) -> Request:
        """Returns what the last batch planned found for one request."""
        index, counters = whole(index, "request"), self._counters
        check(lib.avsg_plan_get_counters(self._handle, c.byref(counters)))
        if index >= counters.requests:
            raise InvalidError(f"request is {index}, but the last batch has {counters.requests}; pass a lower number")
        cu_q, *lists = self._lists
        first, end = cu_q[index : index + 2].tolist()
        tokens, misses = slice(first, end), slice(first * self.k, first * self.k + int(self.misses[index]))
        of_tokens = self.slots[tokens], self.valid[tokens], self.row_misses[tokens]
        position, id_, _, row = (array[misses] for array in lists)
        of_misses = position, id_, self.slots[tokens].reshape(-1)[position], row
        return Request(first, end - first, *of_tokens, *of_misses, RequestStatus(self._status[index]))
