"""Arrays whose values are not the bytes at their address, refused with what to pass in their place."""

from __future__ import annotations

import sys
from typing import Any

#: Attributes of torch tensors without values of their own at their address, and what to pass then.
TENSORS = {
    "is_nested": ("is a nested tensor", "torch.nested.to_padded_tensor(tensor, -1)"),
    "is_sparse": ("is sparse", "tensor.to_dense()"),
    "is_quantized": ("is quantized", "tensor.int_repr()"),
    "is_meta": ("is on the device meta, which keeps no values", "a tensor that has memory"),
    "is_conj": ("is a conjugate that torch has not computed", "tensor.resolve_conj()"),
    "is_neg": ("is a negative that torch has not computed", "tensor.resolve_neg()"),
    "requires_grad": ("requires a gradient, which AVSG does not compute", "tensor.detach()"),
}


def check_tensor(tensor: Any, what: str) -> int:
    """Returns the address of a torch tensor whose bytes there are its values."""
    torch = sys.modules.get("torch")
    plain = getattr(torch, "Tensor", None)
    if plain and isinstance(tensor, plain):
        # A subclass that takes the place of torch's dispatch wraps other tensors, or stands for one.
        if type(tensor).__torch_dispatch__ is not plain.__torch_dispatch__:
            kind = type(tensor).__name__
            raise TypeError(f"{what} is of type {kind}, which wraps other tensors; pass a plain torch.Tensor")
        for name, (kind, remedy) in TENSORS.items():
            found = getattr(tensor, name)
            if found() if callable(found) else found:
                raise TypeError(f"{what} {kind}; pass {remedy}")
        if tensor.layout is not torch.strided:
            raise TypeError(f"{what} has the layout {tensor.layout}; pass tensor.to_dense()")
    try:
        address = tensor.data_ptr()
    except RuntimeError:
        address = 0
    if not address and 0 not in tensor.shape:
        raise TypeError(f"{what} is a tensor without memory of its own; pass one that has its values in memory")
    return address


def check_interface(array: Any, interface: dict[str, Any], what: str) -> None:
    """Refuses an object with NumPy's array interface whose elements are not numbers at its address."""
    masked = sys.modules.get("numpy.ma")
    if interface.get("mask") is not None or (masked and isinstance(array, masked.MaskedArray)):
        raise TypeError(
            f"{what} is a masked array, and the values under its mask would count; pass array.filled(value), which "
            "is -1 for ids"
        )
    typestr = interface["typestr"]
    if "O" in typestr:
        raise TypeError(f"{what} is an array of Python objects, which have no bytes; give the array a type of numbers")
    if getattr(getattr(array, "dtype", None), "names", None) or any(name for name, *_ in interface.get("descr", ())):
        raise TypeError(f"{what} has a structured type; pass one of its fields as a contiguous array of numbers")
    if typestr[1] not in "biufcV":
        raise TypeError(f"{what} is of NumPy's type {typestr}; pass an array of numbers, such as array.view('uint8')")
    if typestr[0] == (">" if sys.byteorder == "little" else "<"):
        raise TypeError(
            f"{what} is of {typestr}, the other byte order; pass array.astype(array.dtype.newbyteorder('='))"
        )
    if not isinstance(interface.get("data"), tuple):
        raise TypeError(f"{what} does not tell the address of its values; pass numpy.asarray(array)")
