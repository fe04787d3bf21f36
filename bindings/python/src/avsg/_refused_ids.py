"""Which selected id has no row, in the sentence of an exception."""

from __future__ import annotations

from .batch import Batch
from .errors import InvalidError
from .plan import Plan


def refused_id(batch: Batch, plan: Plan, rows: int, page: int) -> InvalidError:
    """Returns the exception for the first id of a planned batch that its request's status is about.

    `rows` are those of the pool and `page` the ids of a block. The arrays are in host memory.
    """
    import numpy as np

    request = int(np.flatnonzero(plan.status[: batch._requests])[0])
    first, end = batch._host_array("cu_q")[request : request + 2]
    ids = batch._host_array("ids")[first:end]
    # A selected id without a slot is padding, or the status is about it.
    refused = int(ids[(ids >= 0) & (plan.slots[first:end, : ids.shape[1]] < 0)][0])
    length = int(batch._host_array("seq_len")[request])
    if refused >= length:
        why = f"its seq_len is {length}; set seq_len to the length with the tokens of this step"
    elif page == 0:
        why = f"row {refused} is outside of the pool's {rows} rows; make a larger pool"
    else:
        table, entry = batch._host_array("block_table")[request], refused // page
        block = table[entry] if entry < len(table) else "missing"
        why = f"entry {entry} of its block_table is {block}, and the pool has {rows // page} blocks; pass each id's"
    remedy = "pass negative ids as padding, or pass check=False and read plan.status"
    return InvalidError(f"request {request} selects id {refused}, but {why}, {remedy}")
