"""Arrays of others as addresses: no copies, and no dependency on NumPy or PyTorch."""

from __future__ import annotations

import operator
import sys

from ._errors import Refused
from ._types import Array

_FLOAT32 = "<f4" if sys.byteorder == "little" else ">f4"
_BYTES = 4


def _advice(writable, made, passed):
    """What to do about an array that does not fit. One that is written to is not to be replaced by a
    copy, which would be changed in its place."""
    return f"{made}; a copy of it would be changed in its place" if writable else f"pass {passed}"


def _of_torch(tensor, what, writable):
    if tensor.device.type != "cpu":
        raise TypeError(f"{what}: the tensor is on {tensor.device}; sotto takes tensors on the CPU")
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{what}: the tensor is sparse ({tensor.layout}); sotto takes dense ones")
    if str(tensor.dtype) != "torch.float32":
        advice = _advice(writable, "create it with dtype=torch.float32", "tensor.float()")
        raise TypeError(
            f"{what}: the tensor holds {tensor.dtype}; torch.float32 is needed: {advice}"
        )
    if tensor.is_neg():
        raise ValueError(f"{what}: the tensor is a view of others' negatives; take resolve_neg()")
    if not tensor.is_contiguous():
        advice = _advice(
            writable, "create it as one piece, as torch.zeros does", "tensor.contiguous()"
        )
        raise ValueError(f"{what}: the tensor is not contiguous: {advice}")
    return tensor.data_ptr(), tuple(tensor.shape)


def _of_interface(array, what, writable):
    interface = getattr(array, "__array_interface__", None)
    if interface is None:
        raise TypeError(
            f"{what}: a NumPy array or a PyTorch tensor of 32-bit floats is needed, and this is a "
            f"{type(array).__name__}"
        )
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.generic):
        raise TypeError(f"{what}: this is a single number, a {type(array).__name__}, and no array")
    if numpy is not None and isinstance(array, numpy.ma.MaskedArray):
        advice = _advice(writable, "give its array x.data", "x.filled(0)")
        raise TypeError(f"{what}: the array is masked, and sotto knows no masks: {advice}")
    if interface["typestr"] != _FLOAT32:
        advice = _advice(
            writable, "create it with dtype=numpy.float32", "array.astype(numpy.float32)"
        )
        raise TypeError(
            f"{what}: the array holds {getattr(array, 'dtype', interface['typestr'])}; float32 is "
            f"needed: {advice}"
        )
    if interface.get("strides") is not None:
        advice = _advice(
            writable,
            "create it as one piece, as numpy.zeros does",
            "numpy.ascontiguousarray(array)",
        )
        raise ValueError(f"{what}: the array is not contiguous: {advice}")
    address, read_only = interface["data"]
    if writable and read_only:
        raise ValueError(f"{what}: the array is read-only, and sotto changes it in place")
    return address, tuple(interface["shape"])


def place(array, what="array", writable=False):
    """Address and shape of a contiguous array of 32-bit floats. Raises TypeError or ValueError that
    says what is wrong with it."""
    of = (
        _of_torch
        if hasattr(array, "data_ptr") and hasattr(array, "is_contiguous")
        else _of_interface
    )
    address, shape = of(array, what, writable)
    if address % _BYTES:
        advice = _advice(writable, "create it by itself, as numpy.zeros does", "a copy of it")
        raise ValueError(f"{what}: the array is not aligned to {_BYTES} bytes: {advice}")
    return address, shape


def count(shape):
    """The number of elements."""
    length = 1
    for size in shape:
        length *= size
    return length


def place_in(first):
    """A number of an element, as the library takes it. Raises Refused for one that is none."""
    number = operator.index(first)
    if not 0 <= number <= sys.maxsize:
        raise Refused(f"first: {number} is refused: it is the number of an element, from 0 on")
    return number


def floats(array: Array, what: str = "array", writable: bool = False) -> tuple[int, int]:
    """Address and length of a contiguous array of 32-bit floats, whatever its shape. Raises
    TypeError or ValueError that says what is wrong with it."""
    address, shape = place(array, what, writable)
    return address, count(shape)
