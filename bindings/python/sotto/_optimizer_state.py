"""What a PyTorch optimizer remembers of its parameters, and in its groups, as bytes.

A header in JSON, behind its length, says what is known of each parameter, in the groups' order, and
the plain values of each group; the elements of tensors follow. Bytes may come from another node, so
that nothing of them is executed, as unpickling would, and no size is believed before the bytes are
there.
"""

import json
import math
import struct

import torch

from ._flat_parameters import bytes_of

_LENGTH = struct.Struct("<Q")
_TYPES = {
    str(kind): kind
    for kind in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    )
}
_PLAIN = (bool, int, float, str, type(None))
_MOST_DIMENSIONS = 16
_MOST_SIZE = 1 << 40


def _described(name, value, pieces):
    if not isinstance(name, str):
        raise TypeError(f"{name!r}: a state whose name is no text cannot be saved")
    if isinstance(value, torch.Tensor):
        if str(value.dtype) not in _TYPES:
            raise TypeError(f"{name}: a state of {value.dtype} cannot be saved")
        pieces.append(bytes_of(value))
        return {"type": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, _PLAIN):
        return {"value": value}
    raise TypeError(f"{name}: a state of {type(value).__name__} cannot be saved")


def save_state(states, groups):
    """The bytes of what is known of parameters, of each a dictionary of tensors and plain values, and
    of the plain values of groups."""
    pieces = []
    described = [
        {name: _described(name, value, pieces) for name, value in state.items()} for state in states
    ]
    plain = [
        {name: value for name, value in group.items() if isinstance(value, _PLAIN)}
        for group in groups
    ]
    header = json.dumps({"states": described, "groups": plain}).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *pieces])


def _tensor(said, rest):
    """A tensor of the first bytes of `rest`, and how many these are."""
    kind = _TYPES.get(said["type"])
    shape = said["shape"]
    if (
        kind is None
        or not isinstance(shape, list)
        or len(shape) > _MOST_DIMENSIONS
        or not all(type(size) is int and 0 <= size <= _MOST_SIZE for size in shape)
    ):
        raise ValueError("it describes no tensor")
    count = math.prod(shape)
    size = count * torch.empty(0, dtype=kind).element_size()
    if size > len(rest):
        raise ValueError("a tensor of it is cut off")
    if count == 0:
        return torch.zeros(shape, dtype=kind), 0
    # A copy: the bytes are the library's.
    bits = bytearray(rest[:size])
    if kind is torch.bool and not set(bits) <= {0, 1}:
        raise ValueError("a truth value of it is neither 0 nor 1")
    return torch.frombuffer(bits, dtype=kind).reshape(shape), size


def _known(said, rest, shape):
    """What is known of one parameter, and what follows its tensors."""
    if not isinstance(said, dict):
        raise ValueError("its header describes no state of a parameter")
    known = {}
    for name, value in said.items():
        if not isinstance(value, dict):
            raise ValueError(f"{name!r} is described by no dictionary")
        if value.keys() == {"type", "shape"} and isinstance(value["type"], str):
            known[name], size = _tensor(value, rest)
            rest = rest[size:]
            if known[name].dim() == len(shape) > 0 and any(
                is_size not in (1, due) for is_size, due in zip(known[name].shape, shape)
            ):
                raise ValueError(f"{name!r} has another shape than the parameter")
        elif value.keys() == {"value"} and isinstance(value["value"], _PLAIN):
            known[name] = value["value"]
        else:
            raise ValueError(f"{name!r} is neither a tensor nor a plain value")
    return known, rest


def load_state(state, shapes, groups):
    """What save_state() has written of parameters of these shapes and of so many groups; raises
    ValueError for other bytes."""
    if len(state) < _LENGTH.size:
        raise ValueError("it is cut off")
    (length,) = _LENGTH.unpack_from(state)
    rest = memoryview(state)[_LENGTH.size :]
    if length > len(rest):
        raise ValueError("it is cut off")
    try:
        header = json.loads(bytes(rest[:length]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header cannot be read: {error}") from None
    rest = rest[length:]
    if not isinstance(header, dict) or header.keys() != {"states", "groups"}:
        raise ValueError("its header has no states and groups")
    described, plain = header["states"], header["groups"]
    if not isinstance(described, list) or len(described) != len(shapes):
        raise ValueError(f"it is not of {len(shapes)} parameters")
    if not isinstance(plain, list) or len(plain) != groups:
        raise ValueError(f"it is not of {groups} groups")
    for group in plain:
        if not isinstance(group, dict) or not all(isinstance(v, _PLAIN) for v in group.values()):
            raise ValueError("a group of it has what is no plain value")
    states = []
    for said, shape in zip(described, shapes):
        known, rest = _known(said, rest, shape)
        states.append(known)
    if len(rest) > 0:
        raise ValueError("something follows its last tensor")
    return states, plain
