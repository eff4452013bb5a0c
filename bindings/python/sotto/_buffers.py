"""A module's buffers, such as the running statistics of batch normalization: no step moves them, and
they belong to the model that is evaluated and saved."""

import torch

from ._errors import Refused
from ._flat_parameters import zeros
from ._module_watch import plain_name


def _kept_by(module):
    """Buffers that the module's state_dict() has, by name; one that is shared, once."""
    found, seen = {}, set()
    for prefix, part in module.named_modules():
        for name, buffer in part._buffers.items():
            derived = name in part._non_persistent_buffers_set
            if buffer is None or derived or id(buffer) in seen:
                continue
            seen.add(id(buffer))
            found[plain_name(f"{prefix}.{name}" if prefix else name)] = buffer
    return found


def _kind_of(buffer):
    return tuple(buffer.shape), buffer.dtype


class Buffers:
    """Those of a module; none without one. `values` holds the floating-point numbers of all, as
    gather() has found them; whole numbers, as the count of batches, stay a node's own."""

    def __init__(self, module):
        self._module = module
        self._kinds = {name: _kind_of(buffer) for name, buffer in self._all().items()}
        self.values = zeros(sum(buffer.numel() for buffer in self._carried()))

    def _all(self):
        """As the module has them now: a layer may have put another tensor in a buffer's place."""
        return {} if self._module is None else _kept_by(self._module)

    def _carried(self):
        return [
            buffer
            for buffer in self._all().values()
            if buffer.is_floating_point() and buffer.layout == torch.strided
        ]

    def difference(self):
        """What keeps them from being as many numbers as when this was made; "" for nothing."""
        now = {name: _kind_of(buffer) for name, buffer in self._all().items()}
        for name in sorted(now.keys() ^ self._kinds.keys()):
            return f"{name}: the buffer was added or removed"
        for name, (shape, dtype) in now.items():
            if (shape, dtype) != self._kinds[name]:
                return f"{name}: the buffer has another shape or type now, {shape} of {dtype}"
        return ""

    def require_same(self):
        """Raises RuntimeError unless there are as many numbers as the nodes have agreed on."""
        difference = self.difference()
        if difference:
            raise RuntimeError(f"{difference}, after the nodes had met: make a new optimizer")

    def _pieces(self, values):
        """Each carried buffer, and its numbers in `values`."""
        offset = 0
        for buffer in self._carried():
            yield buffer, values[offset : offset + buffer.numel()].view(buffer.shape)
            offset += buffer.numel()

    def gather(self):
        """Reads the buffers into `values`."""
        with torch.no_grad():
            for buffer, piece in self._pieces(self.values):
                piece.copy_(buffer)

    def show(self, values):
        """Writes numbers, as many as `values` has, into the buffers."""
        with torch.no_grad():
            for buffer, piece in self._pieces(values):
                buffer.copy_(piece)

    def saved(self):
        """A copy of all, whatever their type, by name."""
        return {name: buffer.detach().clone() for name, buffer in self._all().items()}

    def require_fit(self, saved):
        """Raises Refused unless `saved` are buffers that load() can take."""
        kinds = {name: _kind_of(buffer) for name, buffer in saved.items()}
        if kinds != self._kinds:
            other = sorted({name for name, _ in kinds.items() ^ self._kinds.items()})
            raise Refused(
                f"load_state_dict: the buffers are those of another model: {', '.join(other)}"
            )

    def load(self, saved):
        """Takes back what saved() returned."""
        with torch.no_grad():
            for name, buffer in self._all().items():
                buffer.copy_(saved[name])
