"""A PyTorch optimizer as a step rule: it makes a node's own step, from the gradient that the
algorithm hands it to the next model.

It steps on copies of x and g in float32, which the parameters show it for the time of a step: what
they hold is not touched before the algorithm has taken the step.
"""

import bisect
import contextlib
import hashlib
import inspect
import sys
import types
import weakref

import torch

from ._errors import Refused
from ._flat_parameters import FlatTensor, digest_of
from ._module_watch import plain_name

# How a step is computed, not what it is.
_IMPLEMENTATION = {
    "params",
    "param_names",
    "lr",
    "foreach",
    "fused",
    "capturable",
    "differentiable",
}
_OF_ITS_OWN = {
    "LBFGS": "it evaluates the loss several times a step; use SGD or Adam",
    "SparseAdam": "it needs sparse gradients, and sotto exchanges dense ones; use Adam, and leave out "
    "sparse=True of the embedding",
    "ZeroRedundancyOptimizer": "it spreads its state over nodes by itself; wrap the one inside",
    "DistributedOptimizer": "it is distributed already; wrap the one inside",
}


# Optimizers that make the steps of a node.
_wrapped: "weakref.WeakSet[torch.optim.Optimizer]" = weakref.WeakSet()


def _refuse_step(_, *__, **___):
    raise RuntimeError(
        "this optimizer makes the steps of a node of sotto's, and a step of its own would train this "
        "node alone: call step() of the node, or close() that first"
    )


def require_wrappable(optimizer):
    """Raises Refused for an optimizer that cannot make a node's own step."""
    if optimizer in _wrapped:
        raise Refused(
            "optimizer: it makes the steps of another node: close() that one, or make a new one"
        )
    for kind in type(optimizer).__mro__:
        if kind.__name__ in _OF_ITS_OWN:
            raise Refused(f"optimizer: {kind.__name__} is refused: {_OF_ITS_OWN[kind.__name__]}")
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise Refused(
            f"optimizer: {type(optimizer).__name__} is refused: its step() needs to evaluate the loss "
            "again; use SGD or Adam"
        )
    for method in ("state_dict", "load_state_dict"):
        if getattr(type(optimizer), method) is not getattr(torch.optim.Optimizer, method):
            raise Refused(
                f"optimizer: {type(optimizer).__name__} is refused: its {method}() is not that of "
                "torch.optim.Optimizer, and states would not bring back what it saves"
            )


def parameters_of(optimizer):
    """All of them, in the groups' order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def rates_of(groups):
    """The learning rate of each group; 0 where the optimizer has none."""
    return [float(rate) if (rate := group.get("lr")) is not None else 0.0 for group in groups]


def options_of(groups, names):
    """What each group says of those names, but for the learning rate."""
    return [
        {name: _plain(group.get(name)) for name in sorted(names) if name not in _IMPLEMENTATION}
        for group in groups
    ]


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if callable(value):  # its text would have an address
        return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else "?"
    return value


# Groups that are compared option by option; with a group a parameter there are thousands, which
# nodes compare as one.
_NAMED_GROUPS = 64


def optimizer_settings(optimizer):
    """An optimizer's kind and the options of its groups, by name, which nodes compare; groups beyond
    the first 64 by one digest."""
    groups = optimizer.param_groups
    kind = type(optimizer)
    settings = {"torch-optimizer": f"{kind.__module__}.{kind.__qualname__}"}
    further = {}
    options = options_of(groups, optimizer.defaults)
    for i, (group, rate) in enumerate(zip(groups, rates_of(groups))):
        for name, value in {"lr": rate, **options[i], "tensors": len(group["params"])}.items():
            shown = " ".join(repr(value).split("\n"))  # a setting is one line
            among = settings if i < _NAMED_GROUPS else further
            among[f"torch-optimizer's {name} of group {i}"] = shown
    if further:
        digest = hashlib.sha256(repr(further).encode()).hexdigest()[:16]
        settings[f"torch-optimizer's groups from {_NAMED_GROUPS} on"] = digest
    return settings


def state_text(optimizer):
    """What tells the state that an optimizer starts with, which nodes compare."""
    digest = hashlib.sha256()
    for parameter in parameters_of(optimizer):
        for name, value in sorted(optimizer.state.get(parameter, {}).items()):
            shown = digest_of([value]) if isinstance(value, torch.Tensor) else repr(_plain(value))
            digest.update(f"{name} {shown};".encode())
        digest.update(b".")
    return digest.hexdigest()[:16]


def takes_sparse_gradients(optimizer):
    """Whether it means by a sparse gradient what it means by the dense one."""
    return isinstance(optimizer, (torch.optim.SGD, torch.optim.Adagrad))


# Torch's own, which step each tensor by itself; a class that is derived from one may not.
_BY_TENSOR = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
)


def _has_hooks(optimizer):
    """Whether something runs around its steps: hooks of its own, or of all optimizers."""
    own = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    of_all = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
    module = sys.modules[torch.optim.Optimizer.__module__]
    return any(getattr(optimizer, hooks, None) for hooks in own) or any(
        getattr(module, hooks, None) for hooks in of_all
    )


def _steps_by_tensor(optimizer, step):
    """Whether step() may be called once for each of several parts of the parameters. `step` is what
    it has in place of its class's, if anything: a scheduler's may count calls, and no other is
    known."""
    marks = ("_wrapped_by_lr_sched", "_with_counter")
    scheduled = any(getattr(step, mark, False) for mark in marks)
    plain = type(optimizer) in _BY_TENSOR and not _has_hooks(optimizer)
    return plain and (step is None or scheduled)


def names_of(optimizer, module):
    """Names of the parameters in the optimizer's order: as the module calls them, or as the optimizer was
    told, or their numbers."""
    named = {} if module is None else {id(p): name for name, p in module.named_parameters()}
    told = [name for group in optimizer.param_groups for name in group.get("param_names", ())]
    names = []
    for place, parameter in enumerate(parameters_of(optimizer)):
        name = named.get(id(parameter)) or (told[place] if told else str(place))
        names.append(plain_name(name))
    return names


class SottoRule(torch.optim.Optimizer):
    """Stands for a step rule of sotto's, with its learning rate in one group; takes no steps."""

    def __init__(self, parameters, rate):
        super().__init__(parameters, {"lr": rate})

    def step(self, closure=None):
        raise NotImplementedError("the library makes the steps")


class LocalOptimizer:
    """The wrapped optimizer on the copies. `skip_missing`: it sees missing gradients as missing, else
    as 0. Until release() it takes steps for this one alone."""

    def __init__(self, optimizer, flat):
        self._optimizer = optimizer
        self._step = optimizer.step  # maybe a scheduler's, which counts the steps
        self._own_step = optimizer.__dict__.get("step")
        self._flat = flat
        model, gradient = FlatTensor(flat.values.numel()), FlatTensor(flat.values.numel())
        self._model, self._gradient = model.whole, gradient.whole
        self.skip_missing = False
        self._pieces = []
        self._places = []  # first element of each parameter, and the end
        offset = 0
        for slot in flat.slots:
            shape = slot.values.shape
            self._pieces.append((model.piece(offset, shape), gradient.piece(offset, shape)))
            self._places.append(offset)
            offset += slot.values.numel()
        self._places.append(offset)
        groups = {}
        for number, group in enumerate(optimizer.param_groups):
            groups.update((parameter, number) for parameter in group["params"])
        self._group_of = [groups[slot.parameter] for slot in flat.slots]

    def by_tensor(self):
        """Whether next_tensors() may be asked for the step of some parameters alone."""
        return _steps_by_tensor(self._optimizer, self._own_step)

    def hold(self):
        """Has the optimizer's step() refused to all others."""
        _wrapped.add(self._optimizer)
        self._optimizer.step = types.MethodType(_refuse_step, self._optimizer)

    def release(self):
        """Gives the optimizer back to the program."""
        _wrapped.discard(self._optimizer)
        if self._own_step is not None:
            self._optimizer.step = self._own_step
        else:
            self._optimizer.__dict__.pop("step", None)

    @contextlib.contextmanager
    def lent(self):
        """Inside the block the parameters are the copies, in float32, without gradients."""
        parameters = [slot.parameter for slot in self._flat.slots]
        own = [(parameter.data, parameter.grad) for parameter in parameters]
        try:
            for parameter, (model, _) in zip(parameters, self._pieces):
                parameter.grad = None
                parameter.data = model
            yield
        finally:
            for parameter, (data, gradient) in zip(parameters, own):
                parameter.grad = None
                parameter.data = data
                parameter.grad = gradient

    def next_model(self, _, x, gradient, following):
        """The function of a sotto.StepRule."""
        with torch.no_grad():
            self._model.copy_(_tensor(x))
            self._gradient.copy_(_tensor(gradient))
        with self.lent():
            for slot, (_, piece) in zip(self._flat.slots, self._pieces):
                missing = self.skip_missing and not slot.has_gradient
                if slot.parameter.requires_grad and not missing:
                    slot.parameter.grad = piece
            with torch.enable_grad():  # as on a thread of the program's
                self._step()
            for slot, (model, _) in zip(self._flat.slots, self._pieces):
                # One that computes a new tensor rather than change the one that is there.
                if slot.parameter.data_ptr() != model.data_ptr():
                    model.copy_(slot.parameter.detach())
        with torch.no_grad():
            _tensor(following).copy_(self._model)

    def next_tensors(self, round, first, x, gradient, following):
        """The function of a sotto.StepRule that goes by tensor."""
        count = len(following)
        if count == self._places[-1]:
            self.next_model(round, x, gradient, following)
            return
        begin = bisect.bisect_left(self._places, first)
        end = bisect.bisect_left(self._places, first + count)
        with torch.no_grad():
            self._model[first : first + count].copy_(_tensor(x))
            self._gradient[first : first + count].copy_(_tensor(gradient))
        with self._replaced(range(begin, end)), torch.enable_grad():
            self._step()
        with torch.no_grad():
            _tensor(following).copy_(self._model[first : first + count])

    @contextlib.contextmanager
    def _replaced(self, numbers):
        """Inside the block the optimizer has copies in the place of some parameters, with what is
        known of these, and no other ones: what a backward pass is using is not touched."""
        groups, state = self._optimizer.param_groups, self._optimizer.state
        copies = {}
        stepped = {}  # copies by the number of their group, in its order
        for number in numbers:
            slot, (model, gradient) = self._flat.slots[number], self._pieces[number]
            model.grad = gradient if slot.parameter.requires_grad else None
            copies[slot.parameter] = model
            stepped.setdefault(self._group_of[number], []).append(model)
        given = {group: groups[group]["params"] for group in stepped}
        try:
            self._optimizer.param_groups = [groups[group] for group in stepped]
            for group, models in stepped.items():
                groups[group]["params"] = models
            for parameter, model in copies.items():
                if parameter in state:
                    state[model] = state.pop(parameter)
            yield
        finally:
            for parameter, model in copies.items():
                if model in state:
                    state[parameter] = state.pop(model)
                model.grad = None
            for group, parameters in given.items():
                groups[group]["params"] = parameters
            self._optimizer.param_groups = groups

    def widen_state(self):
        """State that was made for a staged parameter gets the copy's type."""
        for slot in self._flat.slots:
            state = self._optimizer.state.get(slot.parameter, {}) if slot.staged else {}
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == slot.values.shape:
                    state[name] = value.detach().to("cpu", torch.float32)


def _tensor(floats):
    return torch.frombuffer(floats, dtype=torch.float32)
