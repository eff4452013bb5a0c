"""What a PyTorch optimizer remembers of its parameters, as bytes.

A header in JSON, behind its length, says what is known of each parameter, in the groups' order; the
elements of tensors follow. Bytes may come from another node, so that nothing of them is executed, as
unpickling would, and no size is believed before the bytes are there.
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


def save_state(states):
    """The bytes of what is known of parameters, of each a dictionary of tensors and plain values."""
    described = []
    pieces = []
    for state in states:
        said = {}
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                if str(value.dtype) not in _TYPES:
                    raise TypeError(f"{name}: a state of {value.dtype} cannot be saved")
                said[name] = {"type": str(value.dtype), "shape": list(value.shape)}
                pieces.append(bytes_of(value))
            elif isinstance(value, _PLAIN):
                said[name] = {"value": value}
            else:
                raise TypeError(f"{name}: a state of {type(value).__name__} cannot be saved")
        described.append(said)
    header = json.dumps(described).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *pieces])


def _tensor(said, rest):
    """A tensor of the first bytes of `rest`, and how many these are."""
    kind = _TYPES.get(said["type"])
    shape = said["shape"]
    if (
        kind is None
        or not isinstance(shape, list)
        or len(shape) > _MOST_DIMENSIONS
        or not all(type(size) is int and size >= 0 for size in shape)
    ):
        raise ValueError("it describes no tensor")
    count = math.prod(shape)
    size = count * torch.empty(0, dtype=kind).element_size()
    if size > len(rest):
        raise ValueError("a tensor of it is cut off")
    if count == 0:
        return torch.zeros(shape, dtype=kind), 0
    # A copy: the bytes are the library's.
    values = torch.frombuffer(bytearray(rest[:size]), dtype=kind)
    return values.reshape(shape), size


def load_state(state, count):
    """What save_state() has written of `count` parameters; raises ValueError for other bytes."""
    if len(state) < _LENGTH.size:
        raise ValueError("it is cut off")
    (length,) = _LENGTH.unpack_from(state)
    rest = memoryview(state)[_LENGTH.size :]
    if length > len(rest):
        raise ValueError("it is cut off")
    try:
        described = json.loads(bytes(rest[:length]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header cannot be read: {error}") from None
    rest = rest[length:]
    if not isinstance(described, list) or len(described) != count:
        raise ValueError(f"it is not of {count} parameters")
    states = []
    for said in described:
        if not isinstance(said, dict):
            raise ValueError("its header describes no state of a parameter")
        known = {}
        for name, value in said.items():
            if not isinstance(value, dict):
                raise ValueError(f"{name!r} is described by no dictionary")
            if value.keys() == {"type", "shape"} and isinstance(value["type"], str):
                known[name], size = _tensor(value, rest)
                rest = rest[size:]
            elif value.keys() == {"value"} and isinstance(value["value"], _PLAIN):
                known[name] = value["value"]
            else:
                raise ValueError(f"{name!r} is neither a tensor nor a plain value")
        states.append(known)
    if len(rest) > 0:
        raise ValueError("something follows its last tensor")
    return states
