"""PyTorch parameters as one flat vector of floats: what sotto's optimizer works on.

A float32 parameter on the CPU, in one piece, is moved into the flat vector: its storage becomes a piece
of it, and so does that of its gradient. Any other (half precision, float64, another device, another
order in memory, such as channels_last) is staged: the flat vector holds its float32 master copy, and
the parameter stays where and as it lies. Frozen parameters are left out.
"""

import ctypes
import hashlib

import torch

from ._errors import Refused

_TRAINED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_NEW_ONE = "make a new optimizer"


def zeros(count):
    """A vector of floats on the CPU, whatever PyTorch's defaults are."""
    return torch.zeros(count, dtype=torch.float32, device="cpu")


class FlatTensor:
    """A vector of floats, `whole`, in which tensors have their places."""

    def __init__(self, count):
        self.whole = zeros(count)
        self._memory = (ctypes.c_float * count).from_address(self.whole.data_ptr())
        self._memory.owner = self.whole  # lives as long as a piece does

    def piece(self, offset, shape):
        """The elements from `offset` on as a tensor with a storage of its own: views of one storage
        can be saved together alone."""
        if 0 in shape:
            return zeros(0).view(shape)
        size = shape.numel()
        piece = torch.frombuffer(self._memory, dtype=torch.float32, count=size, offset=4 * offset)
        return piece.view(shape)


def require_usable(name, parameter):
    """Raises what is wrong with a parameter, before anything is changed."""
    if torch.nn.parameter.is_lazy(parameter):
        raise TypeError(f"{name}: it has no shape yet; run a batch through the module first")
    if parameter.layout != torch.strided:
        raise TypeError(f"{name}: it is sparse ({parameter.layout}); sotto trains dense parameters")
    if type(parameter.data) is not torch.Tensor:
        raise TypeError(
            f"{name}: it is a {type(parameter.data).__name__}, of which this process has a part; sotto "
            "trains plain tensors"
        )
    if parameter.dtype not in _TRAINED:
        raise TypeError(
            f"{name}: it holds {parameter.dtype}; sotto takes torch.float32, and half precision and "
            "torch.float64 with a float32 copy: convert the module with .float(), or freeze this one "
            "(requires_grad_(False))"
        )
    if parameter.device.type not in ("cpu", "cuda"):
        raise TypeError(
            f"{name}: it lies on {parameter.device}; sotto trains parameters of the CPU, and of CUDA "
            "through copies"
        )
    if any(step == 0 and size > 1 for step, size in zip(parameter.stride(), parameter.shape)):
        raise TypeError(
            f"{name}: several of its elements are one in memory, as expand() leaves them: give a "
            "contiguous() copy"
        )
    if not parameter.is_leaf:
        raise TypeError(f"{name}: it is no leaf: it was computed from other tensors; give those")


def require_apart(named):
    """A flat vector would part what overlaps, and step twice what is given twice."""
    given = {}
    extents = []
    for name, parameter in named:
        if id(parameter) in given:
            raise Refused(
                f"{name}: it is given twice, also as {given[id(parameter)]}; give once what two layers "
                "share, or it is stepped twice"
            )
        given[id(parameter)] = name
        # What is not contiguous may lie between the elements of others.
        if parameter.numel() > 0 and parameter.is_contiguous():
            begin = parameter.data_ptr()
            extents.append((begin, begin + parameter.numel() * parameter.element_size(), name))
    extents.sort()
    for (_, end, name), (begin, _, other) in zip(extents, extents[1:]):
        if begin < end:
            raise Refused(f"{other}: it overlaps {name}; give the tensor that both are views of")


def bytes_of(tensor):
    """A tensor's elements as they lie in memory, whatever their type."""
    values = tensor.detach().cpu().contiguous()
    size = values.numel() * values.element_size()
    return (ctypes.c_char * size).from_address(values.data_ptr()).raw if size > 0 else b""


def digest_of(tensors):
    """A fingerprint of the tensors' values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()[:16]


def _strides_of(parameter):
    """How the elements lie in memory. Of a size of 1 the stride says nothing, and torch may change it."""
    return [step for step, size in zip(parameter.stride(), parameter.shape) if size > 1]


def _state_of(parameter):
    """What tells that something was done to a parameter."""
    place = 0 if parameter.is_meta else parameter.data_ptr()
    return place, parameter._version, parameter.dtype, parameter.requires_grad


class _Slot:
    """One parameter, and its places in the flat vectors."""

    def __init__(self, name, parameter, values, gradient):
        self.name = name
        self.parameter = parameter
        self.values = values
        self.gradient = gradient
        self.staged = (
            parameter.dtype != torch.float32
            or parameter.device.type != "cpu"
            or not parameter.is_contiguous()
        )
        self.dtype = parameter.dtype
        self.has_gradient = False
        self._version = None

    def attach(self):
        """Moves the parameter into its place, whose values it takes."""
        if self.staged:
            self._version = self.parameter._version
        else:
            # Strides too, which say what is channels_last where several orders are one.
            strides = self.parameter.stride()
            self.parameter.data = self.values.as_strided(self.values.shape, strides)
        self._address = self.parameter.data_ptr()
        self._strides = _strides_of(self.parameter)

    def copy_holds(self):
        """Whether the float32 copy, if there is one, has the parameter's values: a write through
        `.data` leaves no trace but these."""
        if not self.staged:
            return True
        return torch.equal(self.parameter.detach().to("cpu", torch.float32), self.values)

    def require_unchanged(self):
        parameter = self.parameter
        if parameter.shape != self.values.shape:
            self._changed(f"it has another shape, {tuple(parameter.shape)}")
        in_place = (
            parameter.data_ptr() == self._address
            and parameter.dtype == self.dtype
            and _strides_of(parameter) == self._strides
        )
        if not self.staged and not in_place:
            self._changed("the module was moved or changed its type, or its storage was replaced")
        if self.staged and (not in_place or parameter._version != self._version):
            self._changed(
                "its values were replaced or changed in place, and steps are made on a float32 copy of "
                "what they were"
            )

    def _changed(self, how):
        raise RuntimeError(
            f"{self.name}: {how}, after the optimizer was made, so that steps would not reach it: "
            f"convert, move and load the module first, and then {_NEW_ONE}"
        )

    def gather_gradient(self, takes_sparse):
        given = self.parameter.grad if self.parameter.requires_grad else None
        self.has_gradient = given is not None
        if given is None:
            self.gradient.zero_()
            return
        if given.layout != torch.strided:
            if not takes_sparse:
                raise TypeError(
                    f"{self.name}: its gradient is sparse, which this optimizer does not take: use SGD or "
                    "Adagrad, or leave out sparse=True of the embedding"
                )
            given = given.to_dense()  # what the nodes exchange is
        if given.data_ptr() != self.gradient.data_ptr():
            self.gradient.copy_(given)
            if not self.staged:
                self.parameter.grad = self.gradient

    def publish(self):
        """Hands the values on where they are staged, and tells autograd that they have changed."""
        if self.staged:
            self.parameter.copy_(self.values)
            self._version = self.parameter._version
        else:
            self.parameter.as_strided((0,), (1,)).zero_()  # whatever became of the parameter


class FlatParameters:
    """`named`: parameters with names that tell them apart, those that need a gradient among them."""

    def __init__(self, named):
        self.takes_sparse = True  # gradients, of which what is not there is 0
        self._given = [parameter for _, parameter in named]
        self.frozen = [(name, p) for name, p in named if not p.requires_grad]
        trained = [(name, p) for name, p in named if p.requires_grad]
        if not trained:
            raise Refused("parameters: none of them needs a gradient: there is nothing to train")
        for name, parameter in trained:
            require_usable(name, parameter)
        require_apart(trained)
        total = sum(parameter.numel() for _, parameter in trained)
        values, gradient = FlatTensor(total), FlatTensor(total)
        self.values, self.gradient = values.whole, gradient.whole
        self.slots = []
        self.layout = [(name, tuple(parameter.shape)) for name, parameter in trained]
        offset = 0
        with torch.no_grad():
            for name, parameter in trained:
                shape = parameter.shape
                slot = _Slot(
                    name, parameter, values.piece(offset, shape), gradient.piece(offset, shape)
                )
                slot.values.copy_(parameter)
                self.slots.append(slot)
                offset += parameter.numel()

    def attach(self):
        """Moves the parameters into the flat vector."""
        for slot in self.slots:
            slot.attach()
        self._taken = [_state_of(parameter) for parameter in self._given]

    def holds(self, parameters):
        """Whether it was made of these, and nothing has been done to one since."""
        return len(parameters) == len(self._given) and all(
            now is then and _state_of(now) == taken
            for now, then, taken in zip(parameters, self._given, self._taken)
        ) and all(slot.copy_holds() for slot in self.slots)

    def frozen_digest(self):
        """A fingerprint of the frozen parameters' values, which nodes are to have in common."""
        return digest_of(parameter for _, parameter in self.frozen)

    def require_unchanged(self):
        """Raises RuntimeError unless all parameters are as they were taken over."""
        for slot in self.slots:
            slot.require_unchanged()
        for name, parameter in self.frozen:
            if parameter.requires_grad:
                raise RuntimeError(
                    f"{name}: it was frozen when the nodes met, and needs a gradient now: freeze layers "
                    f"that are to be trained later after the first step, or {_NEW_ONE}"
                )

    def has_gradients(self):
        """Whether a parameter that is not frozen has a gradient."""
        return any(
            slot.parameter.grad is not None and slot.parameter.requires_grad for slot in self.slots
        )

    def gather_gradients(self):
        """Collects the gradients; one that is missing, or of a frozen parameter, counts as 0."""
        for slot in self.slots:
            slot.gather_gradient(self.takes_sparse)

    def frozen_since(self):
        """Numbers of the parameters that are frozen now."""
        return [number for number, slot in enumerate(self.slots) if not slot.parameter.requires_grad]

    def zero_gradients(self):
        """Sets all gradients to 0, in the flat vector where they can lie there."""
        self.gradient.zero_()
        for slot in self.slots:
            slot.parameter.grad = None if slot.staged else slot.gradient

    def drop_gradients(self):
        """Counts all gradients as missing, whatever the parameters hold."""
        self.gradient.zero_()
        for slot in self.slots:
            slot.has_gradient = False

    def scale_gradients(self, factor):
        """Multiplies what was gathered by a tensor of one float."""
        self.gradient.mul_(factor.to(self.gradient.device))

    def publish(self):
        """Hands the values to the parameters, and tells autograd that they have changed: a graph of
        before cannot be used any more."""
        with torch.no_grad():
            for slot in self.slots:
                slot.publish()
