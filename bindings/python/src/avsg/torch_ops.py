"""Custom operators of torch: torch.ops.avsg.step, plan, transfer and append.

Importing this module registers them, and imports torch.

An operator takes numbers in the place of an engine and a plan; `number` gives them. Their arrays
are tensors on one device, and their work goes into torch's current stream of that device if it has
streams. The tensors `slots` and `buffers` are what DLPack makes of `Plan.view("slot")` and
`Engine.view(layer, segment)` (on a device of `Plan.device_view("slot")`). Where torch.compile
passes copies of them, the operator fills the copies.

No tensor stands for the host pool, which may be larger than a graph may copy. `append` declares
that it writes `slots`, so that a compiled graph keeps it between its step and the next one.

`step` and `plan` take the `indexer` of a `Batch` and the `check` of `Engine.plan` last. With tensors
on a device they check nothing, because the host does not see the status of work in a stream: `slots`
is -1 for an id without a row, and `Plan.device_view("summary")` has the status.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from .batch import PER_REQUEST, Batch, Fresh
from .engine import Engine
from .errors import HandleError
from .memory import View
from .plan import Plan

_objects: weakref.WeakValueDictionary[int, Engine | Plan] = weakref.WeakValueDictionary()
_numbers: weakref.WeakKeyDictionary[Engine | Plan, int] = weakref.WeakKeyDictionary()
_next = itertools.count(1)


def number(target: Engine | Plan) -> int:
    """Returns the number by which operators know an engine or a plan.

    It is not used again after the object is gone.
    """
    if not isinstance(target, (Engine, Plan)):
        raise TypeError(f"target is of type {type(target).__name__}, but an avsg.Engine or avsg.Plan is needed")
    if target not in _numbers:
        _numbers[target] = next(_next)
        _objects[_numbers[target]] = target
    return _numbers[target]


def _get(kind: type, index: int):
    found = _objects.get(index)
    if not isinstance(found, kind):
        name = kind.__name__.lower()
        raise HandleError(f"{index} is not the number of {name}s alive here; pass avsg.torch_ops.number({name})")
    return found


def _made(plan: Plan, name: str, tensors: Sequence[torch.Tensor], make: Callable[[], Any]) -> Any:
    """Returns what `make` makes of these tensors; those of the last call cost no conversion.

    A tensor whose memory has moved is another one.
    """
    kept, addresses = plan._kept, [tensor.data_ptr() for tensor in tensors]
    last, last_addresses, made = kept.get(name, ((), (), None))
    if len(last) != len(tensors) or not all(map(operator.is_, last, tensors)) or last_addresses != addresses:
        made = make()
        kept[name] = tuple(tensors), addresses, made
    return made


def _batch(plan: Plan, ids, block_table, per_request, indexer: int = 0) -> Batch:
    """Returns the plan's batch, pointed at these tensors."""
    tables = () if block_table is None else (block_table,)

    def make() -> Batch:
        return Batch(ids, **dict(zip(PER_REQUEST, per_request)), block_table=block_table)

    batch = _made(plan, "batch", (ids, *per_request, *tables), make)
    batch.indexer = indexer
    return batch


def _fresh(plan: Plan, tensors: Sequence[torch.Tensor]) -> Fresh | None:
    """Returns the fresh rows of these tensors, one for each segment; None if there are none."""
    return _made(plan, "fresh", tensors, lambda: Fresh(*tensors)) if tensors else None


def _deliver(owner: Engine | Plan, name: Any, view: Callable[[], View], tensor: torch.Tensor, what: str) -> None:
    """Copies the library's memory into a tensor that is not that memory itself."""
    kept = owner._kept
    if name not in kept:
        found = view()
        kept[name] = found.address, None if tensor.device.type != "cpu" else torch.from_dlpack(found)
    address, own = kept[name]
    if tensor.data_ptr() != address:
        if own is None:
            raise HandleError(f"{what}; capture the call in a graph instead of compiling it")
        tensor.copy_(own[: tensor.shape[0]])


def _deliver_slots(plan: Plan, slots: torch.Tensor) -> None:
    """Copies a plan's slots into a tensor that is not the plan's own memory."""
    _deliver(plan, "slots", lambda: plan.device_view("slot"), slots, "slots is a copy of a plan's device memory")


def _deliver_buffers(engine: Engine, layer: int, buffers: Sequence[torch.Tensor]) -> None:
    """Copies a layer's slots into tensors that are not the engine's own memory."""
    for segment, tensor in enumerate(buffers):
        view = functools.partial(engine.view, layer, segment)
        _deliver(engine, (layer, segment), view, tensor, "a buffer is a copy of device memory")


@torch.library.custom_op("avsg::step", mutates_args=("slots", "buffers"))
def step(
    engine: int,
    plan: int,
    layer: int,
    ids: torch.Tensor,
    cu_q: torch.Tensor,
    state: torch.Tensor,
    generation: torch.Tensor,
    stable_len: torch.Tensor,
    seq_len: torch.Tensor,
    block_table: Optional[torch.Tensor],
    fresh: Sequence[torch.Tensor],
    slots: torch.Tensor,
    buffers: Sequence[torch.Tensor],
    indexer: int = 0,
    check: bool = True,
) -> None:
    """Plans a batch and copies its misses into one layer's slots."""
    owner, outputs = _get(Engine, engine), _get(Plan, plan)
    batch = _batch(outputs, ids, block_table, (cu_q, state, generation, stable_len, seq_len), indexer)
    owner.step(batch, outputs, layer, _fresh(outputs, fresh), check=check)
    _deliver_slots(outputs, slots)
    _deliver_buffers(owner, layer, buffers)


@torch.library.custom_op("avsg::plan", mutates_args=("slots",))
def plan(
    engine: int,
    plan: int,
    ids: torch.Tensor,
    cu_q: torch.Tensor,
    state: torch.Tensor,
    generation: torch.Tensor,
    stable_len: torch.Tensor,
    seq_len: torch.Tensor,
    block_table: Optional[torch.Tensor],
    slots: torch.Tensor,
    indexer: int = 0,
    check: bool = True,
) -> None:
    """Finds slots and misses of a batch."""
    owner, outputs = _get(Engine, engine), _get(Plan, plan)
    batch = _batch(outputs, ids, block_table, (cu_q, state, generation, stable_len, seq_len), indexer)
    owner.plan(batch, outputs, check=check)
    _deliver_slots(outputs, slots)


@torch.library.custom_op("avsg::transfer", mutates_args=("buffers",))
def transfer(
    engine: int,
    plan: int,
    layer: int,
    slots: torch.Tensor,
    fresh: Sequence[torch.Tensor],
    buffers: Sequence[torch.Tensor],
) -> None:
    """Copies a plan's misses into one layer's slots.

    `slots` is read by nothing: it puts the call behind its plan.
    """
    owner, outputs = _get(Engine, engine), _get(Plan, plan)
    batch = outputs._kept.get("batch", (None,))[-1]
    stream = owner._stream(None, batch) if batch is not None and batch.device != "cpu" else None
    owner.transfer(outputs, layer, _fresh(outputs, fresh), stream)
    _deliver_buffers(owner, layer, buffers)


@torch.library.custom_op("avsg::append", mutates_args=("slots",))
def append(
    engine: int,
    plan: int,
    layer: int,
    ids: torch.Tensor,
    cu_q: torch.Tensor,
    state: torch.Tensor,
    generation: torch.Tensor,
    stable_len: torch.Tensor,
    seq_len: torch.Tensor,
    block_table: Optional[torch.Tensor],
    fresh: Sequence[torch.Tensor],
    slots: torch.Tensor,
) -> None:
    """Writes the rows of this step to one layer of the host pool."""
    owner, outputs = _get(Engine, engine), _get(Plan, plan)
    batch = _batch(outputs, ids, block_table, (cu_q, state, generation, stable_len, seq_len))
    owner.append(batch, layer, _fresh(outputs, fresh))


def _no_output(*_arguments, **_named) -> None:
    """The operators return nothing, so that their fake implementations have no shapes to make."""


for _operator in (step, plan, transfer, append):
    _operator.register_fake(_no_output)
