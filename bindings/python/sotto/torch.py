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

sotto.torch.Site and sotto.torch.ElasticOptimizer are for modules at nodes that come and go.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional, Union

import torch

from ._buffers import Buffers
from ._early_gradient import EarlyGradient, may_wait_in_backward
from ._errors import Refused
from ._flat_parameters import FlatParameters, bytes_of, zeros
from ._group_settings import GroupSettings, group_options
from ._local_optimizer import (
    LocalOptimizer,
    SottoRule,
    names_of,
    parameters_of,
    rates_of,
    require_wrappable,
    state_text,
    takes_sparse_gradients,
)
from ._module_node import ElasticOptimizer, Site
from ._module_watch import Holders, Members, plain_name
from ._optimizer import Optimizer, Store
from ._run_block import RunBlock
from ._step_rule import StepRule
from ._types import Setting

__all__ = ["DistributedOptimizer", "ElasticOptimizer", "Site"]

_STATE_KEY = "sotto"
_BUFFERS_KEY = "sotto_buffers"
# Hooks around a state, which a program may have registered at the wrapped optimizer.
_STATE_HOOKS = [
    f"_optimizer_{action}_{when}_hooks"
    for action in ("state_dict", "load_state_dict")
    for when in ("pre", "post")
]


class DistributedOptimizer(torch.optim.Optimizer, RunBlock):
    """Wraps a torch.optim optimizer, new and not to be stepped by itself any more; it is one itself,
    for schedulers, hooks, GradScaler and checkpoints. `module`, the model, gives the tensors their
    names and has what happens to it later found. In place of an optimizer a module may be given:
    then the settings choose a step rule of sotto's, as onebit-adam and the like need it, whose
    learning rate is that of the one parameter group.

    `settings` are those of sotto.Optimizer, which lies in `optimizer`. The parameters and their
    gradients become views of two flat tensors; half precision, float64 and what lies in another order,
    as channels_last does, are trained through a float32 copy. The module may be loaded, moved and
    converted until the nodes meet, in the first zero_grad() or step(), and not after it. All nodes
    must start from the same values: seed PyTorch alike, or load one state.

    The module's buffers, such as the means of batch normalization, go along: they start as node 0's,
    are averaged with the model (averaged, finish_with_mean), and are part of state_dict(). With
    `buffers=False` they are each node's own.

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
        buffers: bool = True,
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
        self._rule = self._watch = self._groups = self._early = None
        self._started = False
        own_rule = isinstance(given, torch.nn.Module)
        model = given if own_rule else module
        self._carrier = model if buffers else None
        self._made_of = (given, model, store, settings)
        if not own_rule:
            require_wrappable(given)
            if settings.get("lr") is not None:
                raise Refused("lr: the wrapped optimizer has its own learning rates; leave it out")
        self._make = self._take_module if own_rule else self._wrap
        self._make(*self._made_of)
        if own_rule:
            self._rate = float(self.optimizer.report()["learning_rate"])
            given = SottoRule([slot.parameter for slot in self._flat.slots], self._rate)
        self._adopt(given)

    def _take_module(self, _, module, store, settings):
        """With a step rule of sotto's."""
        self._take_parameters(
            [(plain_name(name), p) for name, p in module.named_parameters()], module
        )
        self._make_node(store, settings)

    def _wrap(self, local, module, store, settings):
        self._take_parameters(list(zip(names_of(local, module), parameters_of(local))), module)
        self._flat.takes_sparse = takes_sparse_gradients(local)
        self._rule = LocalOptimizer(local, self._flat)
        if self._groups is None or not self._groups.fit(local):
            # What is changed in the groups that there are is announced to the others later.
            self._groups = GroupSettings(local)
        self._rule.widen_state()
        job = {
            **(settings.get("job") or {}),
            **self._groups.compared,
            "torch-optimizer-state": state_text(local),
        }
        rule = (
            StepRule("torch", self._rule.next_tensors, by_tensor=True)
            if self._rule.by_tensor()
            else StepRule("torch", self._rule.next_model)
        )
        own = {"job": job, "own_step_rule": rule, "lr": self._groups.rate}
        self._make_node(store, {**settings, **own})
        # A single node can skip as torch does; several would have to agree on what they skip.
        self._rule.skip_missing = self._alone
        self._rule.hold()

    def _take_parameters(self, named, module):
        self._flat = FlatParameters(named)
        self._buffers = Buffers(self._carrier)
        slots = self._flat.slots
        if self._watch is not None:
            self._watch = self._watch.retaken(slots)
        else:
            self._watch = Holders(slots) if module is None else Members(module, slots)

    def _make_node(self, store, settings):
        """Nothing of the module is changed when the settings are refused."""
        settings = dict(settings)
        job = settings.pop("job", None) or {}
        if self._flat.frozen:
            job = {**job, "frozen-parameters": self._flat.frozen_digest()}
        layout = self._flat.layout
        self.optimizer = Optimizer(
            self._flat.values, layout=layout, store=store, job=job, **settings
        )
        if self._buffers.values.numel() > 0:
            self.optimizer.carry_along(self._buffers.values)
        self._alone = self.optimizer.report()["nodes"] == 1
        self._flat.attach()

    def _make_anew(self):
        """Before the nodes meet: takes the parameters and buffers as they are now."""
        self.optimizer.close()
        self._release()
        self._make(*self._made_of)
        if self._rule is None:
            self.param_groups[0]["params"][:] = [slot.parameter for slot in self._flat.slots]
        self._taken = [id(parameter) for parameter in parameters_of(self)]

    def _adopt(self, local):
        """This optimizer's groups and state are those of `local`."""
        self._local = None
        super().__init__(local.param_groups, local.defaults)
        self._local = local
        self.param_groups = local.param_groups
        self.state = local.state
        for hooks in _STATE_HOOKS:
            if hasattr(local, hooks):
                setattr(self, hooks, getattr(local, hooks))
        self._taken = [id(parameter) for parameter in parameters_of(local)]

    # ----- A step

    def _require_own_groups(self):
        if self.param_groups is not self._local.param_groups:
            raise RuntimeError(
                "the wrapped optimizer's state was loaded or replaced by itself: load_state_dict() of "
                "this one takes back what it saved"
            )

    def _require_unchanged(self):
        self._require_own_groups()
        if [id(parameter) for parameter in parameters_of(self)] != self._taken:
            raise RuntimeError(
                "parameter groups were changed after the nodes had met: make a new optimizer"
            )
        self._flat.require_unchanged()
        self._watch.require_same()
        self._buffers.require_same()

    def _settle(self):
        """Before the nodes meet: takes what was done to the module since this was made."""
        if self._started:
            return
        self._require_own_groups()
        module = self._made_of[0] if self._rule is None else None
        now = parameters_of(self) if module is None else list(module.parameters())
        if not self._flat.holds(now) or self._buffers.difference():
            self._make_anew()
        self._watch.require_same()

    def _start(self):
        """Once, on all nodes, before they meet: what nothing has moved yet becomes node 0's."""
        if self._started:
            return
        self._settle()
        self._started = True
        if not self._alone and self._buffers.values.numel() > 0:
            self._buffers.gather()
            self.optimizer.take_from_node_0(self._buffers.values)
            self._buffers.show(self._buffers.values)

    def _begin(self):
        """Starts a round, unless one is started."""
        self._start()
        self._require_unchanged()
        if self._rule is None:
            if self._flat.frozen_since():
                raise RuntimeError(
                    "a step rule of sotto's cannot leave out a layer that is frozen after the nodes have "
                    "met: freeze it before the first step, or wrap a torch optimizer"
                )
            rate = rates_of(self.param_groups)[0]
            if rate != self._rate:
                self.optimizer.set_learning_rate(rate)
                self._rate = rate
        else:
            self._groups.announce(self, self._flat.frozen_since(), self.optimizer)
        self.optimizer.begin_step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, or sets them to zero, and says that the next ones are about to be
        computed: algorithms that send the model itself (dpsgd) send it meanwhile."""
        self._forget_early()
        super().zero_grad(set_to_none)
        self._begin()

    def start_in_backward(self) -> bool:
        """Says that the next backward pass gives the whole gradient of the step: as soon as a
        bucket's layers have theirs, it is encoded and sent, while the pass goes on. Results are the
        same. The pass must read no parameter once it has its gradient, as torch's layers do not,
        also where they share one; and gradients and the groups' options stay as they are until
        step(), which else raises Refused: no clipping, no GradScaler. A batch cannot be skipped
        once some of its gradient has been sent; after NonFinite step() may be called again with
        another gradient in the place of the rest. What goes wrong during the pass is raised by
        step().

        False, and nothing is done, where the gradient is needed whole: on one node, where
        Optimizer.takes_parts says so, and around other optimizers than torch's SGD, Adam, AdamW,
        RMSprop and Adagrad, or one with hooks around its steps, or with hooks around those of all
        optimizers. False too where a parameter lies on CUDA: the pass has its gradient on a thread
        where Ctrl-C cannot end a wait."""
        self._begin()
        whole = self._alone or not self.optimizer.takes_parts
        if whole or (self._rule is not None and not self._rule.by_tensor()):
            return False
        if not may_wait_in_backward(self._flat):
            return False
        if self._early is None:
            self._early = EarlyGradient(self._flat, self.optimizer.gradient_part)
        self._early.start()
        self._options = group_options(self)
        return True

    def _early_gradient(self):
        """That of this step, where start_in_backward() was called for it."""
        return self._early if self._early is not None and self._early.started else None

    def _forget_early(self):
        """Takes start_in_backward() back, where nothing has been sent."""
        if self._early is not None:
            self._early.forget()

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
        early = self._early_gradient()
        if early is not None and group_options(self) != self._options:
            raise Refused(
                "the learning rate or another option was changed between start_in_backward() and "
                "step(), when some parameters had been stepped with the old one: change it before "
                "zero_grad()"
            )
        if early is not None:
            early.require_no_failure()  # of which the node does not know the cause
        self._begin()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self._require_unchanged()
            early = self._early_gradient()  # its zero_grad() takes that back
        overflowed = getattr(self, "found_inf", None)  # as a GradScaler says it
        if overflowed is not None and float(overflowed) > 0:
            self.skip_step()
            return loss
        scale = getattr(self, "grad_scale", None)
        if early is not None and scale is not None:
            raise Refused(
                "step: the gradient that was sent during the backward pass is a GradScaler's scaled "
                "one: leave start_in_backward() out"
            )
        if not self._flat.has_gradients():
            raise RuntimeError(
                "step: no parameter has a gradient: call backward() first, and make the optimizer "
                "after the module was loaded; skip_step() is a round without data"
            )
        with torch.no_grad():
            if early is not None:
                early.finish()
                self.optimizer.step_by_parts()
                self._flat.publish()
                return loss
            self._flat.gather_gradients()
            if scale is not None:
                self._flat.scale_gradients(scale.double().reciprocal().float())
            self._take_step()
        return loss

    def skip_step(self) -> None:
        """One round with a zero gradient in place of what the parameters hold: for a batch that this
        node leaves out, while the others step. On a single node the wrapped optimizer does nothing.
        Refused when some of the gradient has been sent (start_in_backward)."""
        self._forget_early()
        self._begin()
        self._flat.drop_gradients()
        self._take_step()

    def _take_step(self):
        self.optimizer.step(self._flat.gradient)
        self._flat.publish()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """A further group of the wrapped optimizer, before the nodes meet in the first zero_grad() or
        step(): what they exchange is fixed then. It makes this node anew, in `optimizer`."""
        if self._local is None:  # inside the constructor of torch's
            super().add_param_group(param_group)
            return
        if self._rule is None:
            raise Refused(
                "add_param_group: the step rule is sotto's, with one group of all parameters: wrap a "
                "torch optimizer for several"
            )
        if self._started:
            raise Refused(
                "add_param_group: what the nodes exchange was fixed as they met, in the first step: make "
                "a new optimizer, around a torch optimizer with all groups"
            )
        groups = len(self.param_groups)
        self._local.add_param_group(param_group)
        try:
            self._make_anew()
        except BaseException:
            del self.param_groups[groups:]
            self._make_anew()
            raise

    # ----- State

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state, and beside it this node's model and the algorithm's state, as
        "sotto", and the buffers, as "sotto_buffers": a snapshot, one a node, all after the same step."""
        state = copy.deepcopy(super().state_dict())
        node = self.optimizer.save()
        state[_STATE_KEY] = torch.frombuffer(bytearray(node), dtype=torch.uint8)
        state[_BUFFERS_KEY] = self._buffers.saved()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes back what state_dict() returned under the same settings, before the first step; also
        the module's parameters and buffers. All nodes load, and meet first."""
        node = state_dict.get(_STATE_KEY)
        if not isinstance(node, torch.Tensor) or node.dtype != torch.uint8:
            raise Refused(
                "load_state_dict: it holds no state of a sotto.torch.DistributedOptimizer, which is one "
                "file a node"
            )
        ours = (_STATE_KEY, _BUFFERS_KEY)
        state = {key: value for key, value in state_dict.items() if key not in ours}
        buffers = state_dict.get(_BUFFERS_KEY, {})
        self._settle()
        self._require_unchanged()
        self._buffers.require_fit(buffers)
        self.optimizer.load(bytes_of(node))
        self._started = True
        self._flat.publish()
        self._buffers.load(buffers)
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
        self._start()
        self._buffers.gather()
        mean = self._room_for_mean()
        self.optimizer.mean(mean)
        own, buffers = self._flat.values.clone(), self._buffers.saved()
        self._show(mean)
        try:
            yield
        finally:
            self._show(own)
            self._buffers.load(buffers)

    def _room_for_mean(self):
        return zeros(self._flat.values.numel() + self._buffers.values.numel())

    def _show(self, values):
        """Has the module hold other values: parameters, and behind them maybe buffers."""
        count = self._flat.values.numel()
        with torch.no_grad():
            self._flat.values.copy_(values[:count])
        self._flat.publish()
        if values.numel() > count and not self._alone:
            self._buffers.show(values[count:])

    def _leave(self):
        self._flat.publish()  # also the steps of a finish() that failed
        self.close()

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
        self._start()
        self._buffers.gather()  # for means that others ask for meanwhile
        self.optimizer.finish()
        self._flat.publish()  # after steps without data, which finishing may take (join)
        self._release()

    def finish_with_mean(self) -> None:
        """As finish, and leaves the module with the mean of all nodes' models and buffers."""
        self._start()
        self._buffers.gather()
        mean = self._room_for_mean()
        self.optimizer.finish_with_mean(mean)
        self._show(mean)
        self._release()

    def _release(self):
        """The run is over: the wrapped optimizer is the program's again."""
        if self._early is not None:
            self._early.close()
        if self._rule is not None:
            self._rule.release()

    def ask_to_end(self) -> None:
        """As Optimizer.ask_to_end."""
        self.optimizer.ask_to_end()

    def close(self) -> None:
        """Leaves the run; the module keeps its parameters, and the wrapped optimizer its state."""
        self.optimizer.close()
        self._release()
