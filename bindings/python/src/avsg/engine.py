"""The engine: tables and device buffer of one device, on a host pool."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _header
from ._arguments import address, instance, struct, whole, wholes
from ._caller_buffer import caller_buffer
from ._engine_config import engine_config
from ._header import EngineInfo, EngineOptions, EngineStats, Memory, Status
from ._library import Handle, check, failure, filled, lib
from ._refused_ids import refused_id
from .batch import Batch, Fresh, Layers
from .errors import InvalidError
from .memory import HOST, View, host_span, int32_span, output_span
from .plan import Plan
from .pool import Pool, PoolShape
from .streams import current_stream, stream_address

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack


#: What Python and ctypes raise for an argument of the wrong type, whose name they do not say.
NAMELESS = (AttributeError, TypeError, c.ArgumentError)
UNTAKEN = (
    "fresh rows were passed, but every stable_len is -1, so that no request takes them; "
    "set stable_len to the tokens whose rows were final before this step, or pass no fresh rows"
)


def named(error: Exception, **arguments: Any) -> Exception:
    """Raises the exception that names an argument of the wrong type; returns `error` if there is none."""
    kinds = {"batch": Batch, "plan": Plan, "fresh": Fresh}
    for name, value in arguments.items():
        if name == "layer" and not isinstance(value, Layers):
            whole(value, name)
        elif name in kinds and not (name == "fresh" and value is None):
            instance(value, kinds[name], name)
    return error


class Engine:
    """The operator on one device.

    `k` is the most ids that a token selects, `slots` the slots of each request state and layer,
    `tokens` the most tokens of a request in a step, and `states` the number of requests that are
    resident at once. `EngineOptions` has the other options. `buffers` has the caller's arrays for the slots, one
    for each segment of each layer, on the engine's device: slot s of state t is row t * slots + s of each. None
    allocates them.

    One thread at a time may be inside a call that plans, copies or appends; another gets BusyError
    at once.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        k: int,
        slots: int,
        tokens: int = 1,
        states: int = 1,
        buffers: Sequence[Any] | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        config, spans = engine_config(k, slots, tokens, states, **options), None
        if buffers is not None:
            buffer, spans = caller_buffer(config, instance(pool, Pool, "pool").info, buffers)
            config.buffer = address(buffer)
        out = c.c_void_p()
        check(lib.avsg_engine_create(c.byref(config), instance(pool, Pool, "pool")._handle, c.byref(out)))
        self._handle: Handle | None = Handle(out, lib.avsg_engine_destroy, (pool._handle, spans))
        #: What `torch_ops` keeps from call to call.
        self._kept: dict[Any, Any] = {}
        self.info = EngineInfo.of(filled(lib.avsg_engine_get_info, _header.avsg_engine_info, self._handle))
        self.k, self.device, self._layers = self.info.k, self.info.device, self.info.layers
        self._pool_rows = pool.info.rows
        #: A list of each layer alone, as C takes it.
        self._alone = [c.byref(c.c_size_t(layer)) for layer in range(self._layers)]

    @staticmethod
    def memory(
        pool: PoolShape,
        max_tokens: int = 0,
        max_requests: int = 0,
        block_stride: int = 0,
        *,
        k: int,
        slots: int,
        tokens: int = 1,
        states: int = 1,
        **options: Unpack[EngineOptions],
    ) -> Memory:
        """Returns the memory of a pool of this shape, of an engine, and of a plan for so many tokens and requests.

        None of it is taken. `block_stride` is that of the largest batch.
        """
        config = c.byref(engine_config(k, slots, tokens, states, **options))
        shape = c.byref(instance(pool, PoolShape, "pool").config())
        arguments = config, shape, max_tokens, max_requests, block_stride
        return Memory.of(filled(lib.avsg_get_memory, _header.avsg_memory, *arguments))

    def __repr__(self) -> str:
        info, end = self.info, "" if self._handle else " closed"
        sizes = f"k={info.k} slots={info.slots} tokens={info.tokens} states={info.states} layers={info.layers}"
        return f"<avsg.Engine {sizes} device={info.device}{end}>"

    def close(self) -> None:
        """Ends the engine.

        Its memory and cores, and a closed pool under it, are given back at once, or when the last array
        that views its memory is gone.
        """
        self._handle = None
        self._kept.clear()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def new_plan(self, max_tokens: int | None = None, max_requests: int | None = None) -> Plan:
        """Makes a plan; by default for one batch of all states with all their tokens."""
        max_requests = self.info.states if max_requests is None else whole(max_requests, "max_requests")
        max_tokens = max_requests * self.info.tokens if max_tokens is None else max_tokens
        return Plan(self._handle, max_tokens, max_requests, self.k, self.device)

    def step(
        self,
        batch: Batch,
        plan: Plan,
        layer: int = 0,
        fresh: Fresh | None = None,
        stream: Any = None,
        *,
        check: bool = True,
    ) -> None:
        """Plans a batch and copies its misses into one layer's slots.

        `fresh` holds the rows of this step; None if no `stable_len` is set, because fresh rows that no
        request takes raise InvalidError. Without `stream` a
        batch of host arrays waits, and a batch of device arrays goes into torch's current stream of
        their device. `check` is that of `plan`. A row of a file that is not whole raises LostRowsError, as
        in `transfer`.
        """
        try:
            if stream is not None or batch.device != HOST or (fresh is not None and fresh.device != HOST):
                stream = self._stream(stream, batch, None if fresh is None else fresh.device)
            elif fresh is not None and not batch._takes_fresh():
                raise named(InvalidError(UNTAKEN), fresh=fresh)
            if not 0 <= layer < self._layers:
                whole(layer, "layer")
            status = lib.avsg_engine_step(self._handle, batch, plan._handle, layer, fresh, stream)
        except NAMELESS as error:
            raise named(error, batch=batch, plan=plan, layer=layer, fresh=fresh) from None
        if status and status != Status.LOST_ROWS:
            raise named(failure(status), batch=batch, plan=plan, fresh=fresh)
        if check and stream is None and any(plan._status[: batch._requests]):
            raise self._drop(batch, plan)
        if status:
            raise failure(status)

    def plan(self, batch: Batch, plan: Plan, stream: Any = None, *, check: bool = True) -> None:
        """Finds slots and misses of a batch. Layers that share an indexer need it once.

        What `plan` holds is lost. If no layer has it, for example because an exception came before its transfer, it
        is discarded first, or InvalidError is raised if a newer plan of a state needs it.

        An id at or above its request's `seq_len`, or without a row in the pool, raises
        InvalidError, and the plan is dropped as by `discard`. With `check=False` such an id is
        padding: its slot is -1, and `plan.status` says why. A call in a stream checks nothing: the
        host does not see the status, which `plan.device_view("summary")` has.
        """
        try:
            if stream is not None or batch.device != HOST:
                stream = self._stream(stream, batch)
            status = lib.avsg_engine_plan(self._handle, batch, plan._handle, stream)
        except NAMELESS as error:
            raise named(error, batch=batch, plan=plan) from None
        if status:
            raise named(failure(status), batch=batch, plan=plan)
        if check and stream is None and any(plan._status[: batch._requests]):
            raise self._drop(batch, plan)

    def _drop(self, batch: Batch, plan: Plan) -> InvalidError:
        """Drops a plan whose batch selects an id without a row, and returns the exception that says which."""
        error = refused_id(batch, plan, self._pool_rows, self.info.page)
        self.discard(plan)
        return error

    def transfer(self, plan: Plan, layer: int | Layers = 0, fresh: Fresh | None = None, stream: Any = None) -> None:
        """Copies a plan's misses into the slots of one layer, or of several, which have their fresh rows.

        The stream is the one that the batch was planned in. If rows of a file are not whole, all requests
        that did not miss one are served, and LostRowsError is raised: `plan.failures` names the others, which
        the transfers of their plans leave out from then on, and whose next plan finds their state empty.
        """
        self._transfer(lib.avsg_engine_transfer, plan, layer, fresh, stream)

    def begin(self, plan: Plan, layer: int | Layers = 0, fresh: Fresh | None = None, stream: Any = None) -> None:
        """Begins a transfer, which `wait` ends; in a stream it is `transfer`.

        The kernel reads the rows of a file meanwhile, and workers copy those in memory. Until `wait` has
        succeeded, the slots that the plan missed must not be read in these layers, and no batch of its states
        may be planned for its indexer. The plan's arrays, and the slots of its hits, may be read. BusyError
        says that as many transfers are under way as the option `under_way`.
        """
        self._transfer(lib.avsg_engine_begin, plan, layer, fresh, stream)

    def wait(self, plan: Plan) -> None:
        """Waits for the transfer of a plan that was begun. It raises what `transfer` would have raised."""
        check(lib.avsg_engine_wait(self._handle, instance(plan, Plan, "plan")._handle))

    def is_done(self, plan: Plan) -> bool:
        """Returns, without waiting, whether `wait` has nothing to wait for that was begun."""
        done = c.c_int32()
        check(lib.avsg_engine_test(self._handle, instance(plan, Plan, "plan")._handle, c.byref(done)))
        return done.value == 1

    def _transfer(self, call: Any, plan: Plan, layer: int | Layers, fresh: Fresh | None, stream: Any) -> None:
        try:
            layers, count, rows, device = self._listed(layer, fresh)
            if device != HOST and stream is None:
                raise InvalidError(
                    f"the fresh rows are on the device {device}, but no stream was passed; pass the plan's stream"
                )
            stream = stream_address(stream)
            status = call(self._handle, plan._handle, layers, count, rows, stream)
        except NAMELESS as error:
            raise named(error, plan=plan, layer=layer, fresh=fresh) from None
        if status:
            raise named(failure(status), plan=plan, fresh=fresh)

    def append(self, batch: Batch, layer: int | Layers, fresh: Fresh | None = None, stream: Any = None) -> None:
        """Writes the rows of this step to one layer of the host pool, or to several, which have their fresh rows.

        The call comes after a layer's gather and before the next plan. It raises InvalidError if no request has
        a `stable_len`, so that no row would be written.
        """
        try:
            layers, count, rows, device = self._listed(layer, fresh)
            if stream is not None or batch.device != HOST or device != HOST:
                stream = self._stream(stream, batch, None if rows is None else device)
            elif rows is not None and not batch._takes_fresh():
                raise named(InvalidError(UNTAKEN), fresh=fresh)
            status = lib.avsg_engine_append(self._handle, batch, layers, count, rows, stream)
        except NAMELESS as error:
            raise named(error, batch=batch, layer=layer, fresh=fresh) from None
        if status:
            raise named(failure(status), batch=batch, fresh=fresh)

    def _listed(self, layer: int | Layers, fresh: Fresh | None) -> tuple[Any, int, Any, str]:
        """Returns the layers of a call, their number, and their fresh rows and the device of these."""
        if isinstance(layer, Layers):
            return layer.arguments(fresh)
        known = 0 <= layer < self._layers
        alone = self._alone[layer] if known else c.byref(c.c_size_t(whole(layer, "layer")))
        return alone, 1, fresh, HOST if fresh is None else fresh.device

    def invalidate(self, state: int, first: int, end: int) -> None:
        """Forgets the ids from `first` to `end` - 1 of a state, because their rows were rewritten (`Pool.write`)."""
        check(lib.avsg_engine_invalidate(self._handle, state, first, end))

    def load(
        self,
        plan: Plan,
        ids: Any,
        *,
        state: int,
        generation: int,
        seq_len: int,
        block_table: Any = None,
        indexer: int = 0,
    ) -> None:
        """Puts the rows of `ids` into slots of a state without a selection, as after a restore.

        The layers are those of `indexer`. `ids` and `block_table` are int32 arrays in host memory.
        Ids at or above `seq_len`, or without a row in the pool, are padding. After LostRowsError the state is
        empty for the indexer, and `plan.failures` has the row.
        """
        fields = {"state": state, "generation": generation, "seq_len": seq_len, "indexer": indexer}
        for name, array in (("ids", ids), ("block_table", block_table)):
            if array is not None:
                span = int32_span(array, name, 1, host_span)
                fields[name] = _header.avsg_i32s(data=span.address, len=span.shape[0])
        load = c.byref(struct(_header.avsg_load, **fields))
        check(lib.avsg_engine_load(self._handle, load, instance(plan, Plan, "plan")._handle))

    def held(self, state: int, generation: int, first: int, end: int, indexer: int = 0) -> np.ndarray:
        """Tells for each id from `first` to `end` - 1 whether a state holds it, as an array of bool.

        The first token of the state's next plan in `generation` hits such an id without a copy, if it
        selects it below `seq_len` and below a `stable_len` other than -1. For a later token of that plan
        an earlier one may have evicted it. On an Ascend device the call waits for all streams and reads
        the state's table back: it is not meant for the step path.
        """
        import numpy as np

        first, end = whole(first, "first"), whole(end, "end")
        words = np.zeros((max(end - first, 1) + 63) // 64, np.uint64)
        arguments = whole(generation, "generation", c.c_int32), first, end, words.ctypes.data, len(words)
        check(lib.avsg_engine_get_held(self._handle, indexer, state, *arguments))
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: end - first].astype(bool)

    def fork(self, source: int, source_generation: int, target: Any, target_generation: Any) -> None:
        """Copies the state `source`, tables and slots, to `target`, for a sequence that is forked.

        `target` and `target_generation` are a state and the generation of the copy, or lists of them. A
        copy is empty where `source` has not been planned in `source_generation`, for example after a
        prefill by `append` alone.
        """
        states, generations = (
            wholes(target, "target", c.c_uint32),
            wholes(target_generation, "target_generation", c.c_int32),
        )
        if len(states) != len(generations):
            raise InvalidError(
                f"{len(states)} targets and {len(generations)} generations were passed; pass one for each"
            )
        check(lib.avsg_engine_fork(self._handle, source, source_generation, states, generations, len(states)))

    def discard(self, plan: Plan) -> None:
        """Drops a planned batch that is not going to be transferred to every layer."""
        check(lib.avsg_engine_discard(self._handle, instance(plan, Plan, "plan")._handle))

    @property
    def stats(self) -> EngineStats:
        """The counters and times of the calls so far, which another thread may read during a call."""
        return EngineStats.of(filled(lib.avsg_engine_get_stats, _header.avsg_engine_stats, self._handle))

    def used_slots(self, indexer: int = 0) -> list[int]:
        """Returns the slots in use of each state for an indexer, also during a call of another thread.

        They are exact on "cpu", at most these on Ascend devices, and -1 once a stream has planned.
        """
        used = (c.c_int64 * self.info.states)()
        check(lib.avsg_engine_get_used_slots(self._handle, indexer, used, len(used)))
        return list(used)

    def _stream(self, stream: Any, batch: Batch, fresh: str | None = None) -> int | None:
        """Returns the stream of a call that was passed a stream or arrays of a device; `fresh` is that of its rows."""
        if fresh is not None and fresh != batch.device:
            raise InvalidError(f"the batch is on {batch.device} and the fresh rows on {fresh}; put both on one device")
        if self.device == HOST and batch.device != HOST:
            raise InvalidError(
                f'the batch is on the device {batch.device}, but the engine is on "cpu"; copy it to host memory'
            )
        if self.device != HOST and batch.device == HOST:
            raise InvalidError(
                "a stream was passed, but the batch is in host memory; pass arrays of the device, or no stream"
            )
        return current_stream(batch.device, batch.ids) if stream is None else stream_address(stream)

    def view(self, layer: int = 0, segment: int = 0) -> View:
        """Returns the slots of a layer's segment for DLPack.

        They are bytes of the shape [states, slots, segment bytes].
        """
        found = filled(lib.avsg_engine_get_buffer, _header.avsg_buffer, self._handle, layer, segment)
        shape, strides = (self.info.states, self.info.slots, found.bytes), (found.state_stride, found.slot_stride, 1)
        return View(found.base, shape, "|u1", self._handle, strides, self.device)

    def buffer(self, layer: int = 0, segment: int = 0) -> np.ndarray:
        """Returns the slots of a layer's segment as a read-only array.

        They are bytes of the shape [states, slots, segment bytes].
        """
        return self.view(layer, segment).numpy()

    def page_table(self, states: Any, table: Any, lengths: Any, page: int = 0) -> None:
        """Fills in the pages that a paged attention kernel reads.

        `table` has the shape [requests, pages] and `lengths` [requests]; both are int32.
        """
        of, pages, counts = (
            int32_span(states, "states", 1, host_span),
            int32_span(table, "table", 2, output_span),
            int32_span(lengths, "lengths", 1, output_span),
        )
        page = whole(page, "page")
        need = (of.shape[0], self.info.slots // (page or self.info.slots))
        if pages.shape[0] < need[0] or pages.shape[1] < need[1] or counts.shape[0] < need[0]:
            raise InvalidError(
                f"table is {list(pages.shape)} and lengths {list(counts.shape)}, but need {list(need)} and {need[0]}"
            )
        outputs = pages.address, pages.strides[0] // 4, counts.address
        check(lib.avsg_engine_get_page_table(self._handle, of.address, need[0], page, *outputs))
