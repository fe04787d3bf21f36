"""Records which ids a model selects at each decode step, as a trace that the program `avsg` reads.

This file needs only NumPy, so a copy of it records on a machine without AVSG.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

#: Ids are below this.
LIMIT = 1 << 24


class Recorder:
    """The selections of decode steps."""

    def __init__(self) -> None:
        self._ids: list[Any] = []
        self._stable: list[Any] = []

    def __len__(self) -> int:
        """Returns the number of steps."""
        return len(self._ids)

    def record(self, ids: Any, stable: Any = -1) -> None:
        """Copies the ids of a step: `[N_q, K]`, `[layers, N_q, K]` or `[layers, requests, N_q, K]`.

        An id is a token's position in its sequence, and a negative one is padding. `stable` is the number of tokens
        whose KV row was final before the step, for each request (`[requests]`) or for all; -1 is unknown. Every step
        must have the same axes; their lengths may differ.
        """
        import numpy as np

        step, known = np.array(host(ids)), np.array(host(stable), np.int32)
        shape = f"ids of {step.dtype} have the shape {step.shape}"
        if step.dtype.kind != "i" or not 2 <= step.ndim <= 4:
            raise ValueError(f"{shape}, but a step is of signed integers and has 2 to 4 axes")
        if known.shape not in ((), step.shape[1:-2]):
            raise ValueError(f"{shape}, and stable {known.shape}; pass one number, or one for each request")
        if self._ids and (step.ndim, known.ndim) != (self._ids[0].ndim, self._stable[0].ndim):
            raise ValueError(f"{shape}, and those of the first step {self._ids[0].shape}; all steps need the same axes")
        if step.size and step.max() >= LIMIT:
            raise ValueError(
                f"an id is {step.max()}, but positions are below {LIMIT}; slots of a pool are no positions"
            )
        self._ids.append(step.astype(np.int32))
        self._stable.append(known)

    def save(self, path: Any) -> None:
        """Writes `ids` `[steps, ..]` and `stable` to an .npz file, which appears as a whole; short axes end with -1."""
        import numpy as np

        if not self._ids:
            raise ValueError("no step was recorded; record a decode step before save")
        part = f"{os.fspath(path)}.part"
        with open(part, "wb") as file:
            np.savez_compressed(file, ids=stacked(self._ids), stable=stacked(self._stable))
        os.replace(part, path)


def hook(model: Any, recorder: Recorder, tokens: int = 1) -> Callable[[], None]:
    """Records the decode steps of a model of Hugging Face transformers, and returns a function that ends this.

    Each module whose class is named `*Indexer` must return the positions that it selects, `[requests, N_q, K]`. A step
    is a forward of at most `tokens` tokens of each request; longer ones are prompts. Positions that the mask hides from
    a token (padding and later tokens) become -1. The step is `[indexers, requests, N_q, K]`, in the model's order.
    """
    import numpy as np

    indexers = [module for module in model.modules() if type(module).__name__.endswith("Indexer")]
    if not indexers:
        raise ValueError(f"{type(model).__name__} has no module whose class is named *Indexer; use record")
    step: dict[int, Any] = {}

    def keep(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        ids, index = np.asarray(host(output)), indexers.index(module)
        if ids.ndim != 3 or ids.dtype.kind != "i":
            found = f"{type(module).__name__} returns {ids.dtype} of shape {ids.shape}"
            raise ValueError(f"{found}, but needs positions [requests, N_q, K]; use record")
        if ids.shape[1] > tokens:
            return
        stable: Any = -1
        mask = inspect.signature(module.forward).bind(*args, **kwargs).arguments.get("attention_mask")
        if mask is not None and mask.ndim == 3:
            visible = host(mask if "bool" in str(mask.dtype) else mask == 0)
            visible = np.broadcast_to(visible, (*ids.shape[:2], visible.shape[-1]))
            ids = np.where(np.take_along_axis(visible, ids.astype(np.int64), -1), ids, -1)
            # The last position that the first token sees is its own.
            first = visible[:, 0]
            stable = np.where(first.any(-1), first.shape[-1] - 1 - first[:, ::-1].argmax(-1), 0)
        if index in step:  # the last forward did not end
            step.clear()
        step[index] = ids
        if len(step) == len(indexers):
            recorder.record(stacked([step[i] for i in range(len(indexers))]), np.broadcast_to(stable, len(ids)))
            step.clear()

    handles = [module.register_forward_hook(keep, with_kwargs=True) for module in indexers]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def host(array: Any) -> Any:
    """Returns a tensor of torch in host memory, and anything else as it is."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else array


def stacked(arrays: list[Any]) -> Any:
    """Returns arrays of int32 along a new first axis, as long as the longest; the rest is -1."""
    import numpy as np

    made: Any = np.full((len(arrays), *np.max([array.shape for array in arrays], axis=0).astype(int)), -1, np.int32)
    for index, array in enumerate(arrays):
        made[(index, *map(slice, array.shape))] = array
    return made
