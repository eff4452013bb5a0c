"""sotto for PyTorch: an optimizer whose model is kept in step with those of other nodes.

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)                          # before
    optimizer = sotto.torch.DistributedOptimizer(                                       # after
        torch.optim.AdamW(model.parameters(), lr=1e-3), module=model, compressor="quant:8")
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
    optimizer.finish()

What the wrapped optimizer would do in a step, x to x', is the node's own step: algorithms move by
d = x - x' where their papers write the learning rate times the gradient, and those that average
gradients (allreduce) show it the average.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Optional, TypeVar, Union

import torch

from ._errors import Refused
from ._flat_parameters import FlatParameters, bytes_of
from ._local_optimizer import (
    LocalOptimizer,
    options_of,
    parameters_of,
    rates_of,
    require_wrappable,
    text_of,
)
from ._module_watch import Holders, Members
from ._optimizer import Optimizer, Store
from ._step_rule import StepRule
from ._types import Setting

_STATE_KEY = "sotto"
_Self = TypeVar("_Self", bound="DistributedOptimizer")


class _SottoRule(torch.optim.Optimizer):
    """Stands for a step rule of sotto's, with its learning rate in one group; takes no steps."""

    def __init__(self, parameters, rate):
        super().__init__(parameters, {"lr": rate})

    def step(self, closure=None):
        raise NotImplementedError("the library makes the steps")


def _names_of(optimizer, module):
    """Names of the parameters in the optimizer's order: as the module calls them, or as the optimizer was
    told, or their numbers. What torch.compile puts in front is left out, so that nodes that compile
    and nodes that do not may train together."""
    named = {} if module is None else {id(p): name for name, p in module.named_parameters()}
    told = [name for group in optimizer.param_groups for name in group.get("param_names", ())]
    names = []
    for place, parameter in enumerate(parameters_of(optimizer)):
        name = named.get(id(parameter)) or (told[place] if told else str(place))
        names.append(name.replace("_orig_mod.", ""))
    return names


class DistributedOptimizer(torch.optim.Optimizer):
    """Wraps a torch.optim optimizer, new and not to be stepped by itself any more; it is one itself,
    for schedulers, hooks, GradScaler and checkpoints. `module`, the model, gives the tensors their
    names and has what happens to it later found. In place of an optimizer a module may be given:
    then the settings choose a step rule of sotto's, as onebit-adam and the like need it, whose
    learning rate is that of the one parameter group.

    `settings` are those of sotto.Optimizer, which lies in `optimizer`. The parameters and their
    gradients become views of two flat tensors; half precision is trained through a float32 copy.
    Afterwards do not move the module, change its type or load into it. All nodes must start from the
    same values: seed PyTorch alike, or load one state. Buffers such as the means of batch
    normalization stay each node's own.

    As a context manager it finishes the run at the end of the block, or tells all nodes what the
    block raised.
    """

    # A GradScaler then has step() called also where a gradient overflowed, which must not be left
    # out on one node alone.
    _step_supports_amp_scaling = True

    optimizer: Optimizer

    def __init__(
        self,
        optimizer: Union[torch.optim.Optimizer, torch.nn.Module, None] = None,
        *,
        module: Optional[torch.nn.Module] = None,
        store: Optional[Store] = None,
        **settings: Setting,
    ) -> None:
        given = module if optimizer is None else optimizer
        if isinstance(given, torch.nn.Module):
            if module is not None and module is not given:
                raise TypeError("module: it is another one than the first argument; leave one out")
        elif not isinstance(given, torch.optim.Optimizer):
            raise TypeError(
                f"{type(given).__name__} is no torch.nn.Module; give the model, not its parameters, or "
                "a torch.optim.Optimizer to wrap"
            )
        elif module is not None and not isinstance(module, torch.nn.Module):
            raise TypeError(
                f"module: {type(module).__name__} is no torch.nn.Module; give the model"
            )
        self.optimizer = None  # type: ignore[assignment]
        if isinstance(given, torch.nn.Module):
            self._take_module(given, store, settings)
        else:
            require_wrappable(given)
            self._wrap(given, module, store, settings)

    def _take_module(self, module, store, settings):
        """With a step rule of sotto's."""
        named = [(name.replace("_orig_mod.", ""), p) for name, p in module.named_parameters()]
        self._flat = FlatParameters(named)
        self._watch = Members(module, self._flat.slots)
        self._rule = None
        self._make_node(store, settings)
        self._rate = float(self.optimizer.report()["learning_rate"])
        self._adopt(_SottoRule([slot.parameter for slot in self._flat.slots], self._rate))

    def _wrap(self, local, module, store, settings):
        if settings.get("lr") is not None:
            raise Refused("lr: the wrapped optimizer has its own learning rates; leave it out")
        self._flat = FlatParameters(list(zip(_names_of(local, module), parameters_of(local))))
        slots = self._flat.slots
        self._watch = Holders(slots) if module is None else Members(module, slots)
        self._rule = LocalOptimizer(local, self._flat)
        self._agreed = self._announced = self._options(local)
        job = {**(settings.pop("job", None) or {}), "torch-optimizer": text_of(local)}
        rule = StepRule("torch", self._rule.next_model)
        rate = self._agreed[0][0]
        self._make_node(store, {**settings, "job": job, "own_step_rule": rule, "lr": rate})
        # A single node can skip as torch does; several would have to agree on what they skip.
        self._rule.skip_missing = self.optimizer.report()["nodes"] == 1
        self._rule.widen_state()
        self._adopt(local)

    def _make_node(self, store, settings):
        """Nothing of the module is changed when the settings are refused."""
        job = settings.pop("job", None) or {}
        if self._flat.frozen:
            job = {**job, "frozen-parameters": self._flat.frozen_digest()}
        layout = self._flat.layout
        self.optimizer = Optimizer(
            self._flat.values, layout=layout, store=store, job=job, **settings
        )
        self._flat.attach()

    def _adopt(self, local):
        """This optimizer's groups and state are those of `local`."""
        self._local = None
        super().__init__(local.param_groups, local.defaults)
        self._local = local
        self.param_groups = local.param_groups
        self.state = local.state
        self._taken = [id(parameter) for parameter in parameters_of(local)]

    @staticmethod
    def _options(local):
        """Learning rates, and a text of all else that groups say."""
        return rates_of(local.param_groups), options_of(local.param_groups, local.defaults)

    # ----- A step

    def _require_unchanged(self):
        if self.param_groups is not self._local.param_groups:
            raise RuntimeError(
                "the wrapped optimizer's state was loaded or replaced by itself: load_state_dict() of "
                "this one takes back what it saved"
            )
        if [id(parameter) for parameter in parameters_of(self)] != self._taken:
            raise RuntimeError(
                "parameter groups were changed after the optimizer was made: make a new one"
            )
        self._flat.require_unchanged()
        self._watch.require_same()

    def _begin(self):
        """Starts a round, unless one is started."""
        self._require_unchanged()
        if self._rule is None:
            rate = rates_of(self.param_groups)[0]
            if rate != self._rate:
                self.optimizer.set_learning_rate(rate)
                self._rate = rate
        else:
            self._announce()
        self.optimizer.begin_step()

    def _announce(self):
        """Tells the other nodes what this one steps with, where a scheduler or the caller changed it."""
        now = self._options(self)
        if now == self._announced:
            return
        (rates, others), (agreed_rates, agreed_others) = now, self._agreed
        one_rate = len(set(rates)) == 1 and len(set(agreed_rates)) == 1
        rate_alone = others == agreed_others and (rates == agreed_rates or one_rate)
        self.optimizer.announce_settings(rates[0], "" if rate_alone else f"{rates} {others}")
        self._announced = now

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, or sets them to zero, and says that the next ones are about to be
        computed: algorithms that send the model itself (dpsgd) send it meanwhile."""
        super().zero_grad(set_to_none)
        self._begin()

    def step(self, closure: Optional[Callable[[], Any]] = None, **scaler: Any) -> Any:
        """One round with the gradients that backward() left; what has none counts as zero, and on a
        single node the wrapped optimizer skips it. A closure is evaluated once, and its loss
        returned. Called by a GradScaler whose gradients overflowed, it is skip_step()."""
        if scaler:
            raise TypeError(
                f"step: {', '.join(scaler)}: this version of PyTorch has its GradScaler hand itself "
                "over; call scaler.unscale_(optimizer), and then step(), or skip_step() where a "
                "gradient is not finite"
            )
        self._begin()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self._require_unchanged()
        overflowed = getattr(self, "found_inf", None)  # as a GradScaler says it
        if overflowed is not None and float(overflowed) > 0:
            self.skip_step()
            return loss
        scale = getattr(self, "grad_scale", None)
        with torch.no_grad():
            self._flat.gather_gradients()
            if not any(slot.has_gradient for slot in self._flat.slots):
                raise RuntimeError(
                    "step: no parameter has a gradient: call backward() first, and make the optimizer "
                    "after the module was loaded; skip_step() is a round without data"
                )
            if scale is not None:
                self._flat.scale_gradients(scale.double().reciprocal().float())
            self._take_step()
        return loss

    def skip_step(self) -> None:
        """One round with a zero gradient in place of what the parameters hold: for a batch that this
        node leaves out, while the others step. On a single node the wrapped optimizer does nothing.
        """
        self._begin()
        self._flat.drop_gradients()
        self._take_step()

    def _take_step(self):
        self.optimizer.step(self._flat.gradient)
        self._flat.publish()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused: the flat vector has its length. Make a new optimizer with all parameters."""
        if self._local is not None:
            raise Refused(
                "add_param_group: what the nodes exchange was fixed when the optimizer was made: make "
                "a new one, around a torch optimizer with all groups"
            )
        super().add_param_group(param_group)

    # ----- State

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state, and beside it this node's model and the algorithm's state, as
        "sotto": a snapshot, one a node, all after the same step."""
        state = copy.deepcopy(super().state_dict())
        node = self.optimizer.save()
        state[_STATE_KEY] = torch.frombuffer(bytearray(node), dtype=torch.uint8)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes back what state_dict() returned under the same settings, before the first step; also
        the module's parameters. All nodes load, and meet first."""
        node = state_dict.get(_STATE_KEY)
        if not isinstance(node, torch.Tensor) or node.dtype != torch.uint8:
            raise Refused(
                "load_state_dict: it holds no state of a sotto.torch.DistributedOptimizer, which is one "
                "file a node"
            )
        state = {key: value for key, value in state_dict.items() if key != _STATE_KEY}
        self._require_unchanged()
        self.optimizer.load(bytes_of(node))
        self._flat.publish()
        lent = contextlib.nullcontext() if self._rule is None else self._rule.lent()
        with lent:  # state has the type of the copies
            super().load_state_dict(copy.deepcopy(state))

    def __setstate__(self, state):
        self._local.__setstate__(state)
        self.param_groups = self._local.param_groups
        self.state = self._local.state

    def __getstate__(self):
        raise TypeError(
            "a DistributedOptimizer is one node of a run, and can be neither copied nor pickled: save "
            "its state_dict()"
        )

    # ----- Mean and end

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside the block the module holds the mean of all nodes' models, to evaluate or save it;
        afterwards it is as it was. All nodes enter it after the same step, before zero_grad()."""
        mean = torch.empty_like(self._flat.values)
        self.optimizer.mean(mean)
        own = self._flat.values.clone()
        self._show(mean)
        try:
            yield
        finally:
            self._show(own)

    def _show(self, values):
        """Has the module hold other values."""
        with torch.no_grad():
            self._flat.values.copy_(values)
        self._flat.publish()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.optimizer.__exit__(kind, error, trace)
        finally:
            self._flat.publish()  # after steps without data, which finishing may take (join)

    def evaluated(self, loss: float, accuracy: float = math.nan) -> None:
        """As Optimizer.evaluated: what the caller has found of its model, for who watches the run."""
        self.optimizer.evaluated(loss, accuracy)

    def give_up(self, reason: str) -> None:
        """As Optimizer.give_up. A block of `with` that raises does so by itself."""
        self.optimizer.give_up(reason)

    def report(self) -> dict[str, Any]:
        """As Optimizer.report."""
        return self.optimizer.report()

    def finish(self) -> None:
        """Waits until all nodes have come this far. No step may follow. Where other nodes still take
        steps, the setting `join` says what happens."""
        self.optimizer.finish()
        self._flat.publish()

    def finish_with_mean(self) -> None:
        """As finish, and leaves the module with the mean of all nodes' models."""
        mean = torch.empty_like(self._flat.values)
        self.optimizer.finish_with_mean(mean)
        self._show(mean)

    def ask_to_stop(self) -> None:
        """As Optimizer.ask_to_stop."""
        self.optimizer.ask_to_stop()

    def close(self) -> None:
        """Leaves the run; the module keeps its parameters."""
        self.optimizer.close()
