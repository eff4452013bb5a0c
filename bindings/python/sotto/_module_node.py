"""Modules of PyTorch at nodes that come and go."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, Optional, Union

import torch

from . import _elastic_optimizer, _site
from ._early_gradient import EarlyGradient, may_wait_in_backward
from ._elastic_optimizer import ElasticStep
from ._errors import Refused
from ._flat_parameters import FlatParameters
from ._leaving import Leaving
from ._local_optimizer import names_of, parameters_of
from ._module_watch import Members, plain_name
from ._node_steps import NodeSteps, Schedule, require_optimizer
from ._site import SiteStep
from ._types import Path, Setting

_Loss = Union[float, torch.Tensor]


class ModuleNode(Leaving):
    """A node that trains a module: its trainable parameters and their gradients become views of two
    flat tensors, and steps change them where they lie; half precision, float64 and what lies in
    another order are trained through a float32 copy. Buffers, such as the statistics of batch
    normalization, stay this node's own. Load, move, convert and freeze the module before."""

    node: Any

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: Optional[torch.optim.Optimizer],
        schedule: Union[Schedule, str, None],
        make: Callable[..., Any],
        settings: dict[str, Any],
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module: {type(module).__name__} is no torch.nn.Module")
        require_optimizer(optimizer, schedule)
        if optimizer is not None and settings.get("own_step_rule") is not None:
            raise Refused("own_step_rule: the optimizer makes the steps: leave one of them out")
        if optimizer is None:
            named = [(plain_name(name), p) for name, p in module.named_parameters()]
        else:
            named = list(zip(names_of(optimizer, module), parameters_of(optimizer)))
        self._flat = FlatParameters(named)
        self._watch = Members(module, self._flat.slots)
        self._steps: Optional[NodeSteps] = None
        settings = dict(settings)
        if isinstance(schedule, str):  # of a step rule of sotto's
            settings["schedule"] = schedule
        if optimizer is not None:
            compared = make is _elastic_optimizer.ElasticOptimizer
            self._steps = NodeSteps(optimizer, self._flat, schedule, compared)
            settings["own_step_rule"] = self._steps.rule
            job = settings.get("job") or {}
            if taken := job.keys() & self._steps.job.keys():
                raise Refused(f"job: {min(taken)!r} is said of the optimizer already: leave it out")
            settings["job"] = {**job, **self._steps.job}
        # Nothing of the module is changed when the settings are refused.
        self.node = make(self._flat.values, layout=self._flat.layout, **settings)
        self._flat.attach()
        if self._steps is not None:
            self._steps.hold()
            weakref.finalize(self, self._steps.release)

    def _stepped(self, step, *arguments):
        """A call that may change the parameters, also where it raises."""
        try:
            return step(*arguments)
        finally:
            self._flat.publish()

    def _step(self, loss):
        """A step of `node` by the parameters' gradients."""
        value = loss.item() if isinstance(loss, torch.Tensor) else float(loss)
        self._flat.require_unchanged()
        self._watch.require_same()
        return self._make_step(value)

    def _make_step(self, loss):
        self._flat.gather_gradients()
        return self._stepped(self.node.step, self._flat.gradient, loss)

    def connect(self) -> None:
        """As that of `node`; the module has the run's values then."""
        self._flat.require_unchanged()
        self._watch.require_same()
        self._stepped(self.node.connect)

    def zero_grad(self) -> None:
        """Sets all gradients to 0, where steps read them: backward() adds to them there."""
        self._flat.zero_gradients()

    def evaluated(self, loss: float, accuracy: float = math.nan) -> None:
        """Notes how good the model is, for the report."""
        self.node.evaluated(loss, accuracy)

    def finish(self) -> None:
        """Ends in good order, as that of `node`. No step may follow."""
        self._stepped(self.node.finish)

    def report(self) -> dict[str, Any]:
        """How the node and the others stand, as that of `node`."""
        report: dict[str, Any] = self.node.report()
        return report

    def events(self) -> list[dict[str, Any]]:
        """What has happened since the last call, as that of `node`."""
        events: list[dict[str, Any]] = self.node.events()
        return events

    def stop(self) -> None:
        """Ends what waits, as that of `node`. Any thread, or a signal's handler, may call it."""
        self.node.stop()

    @property
    def _told_to_stop(self):
        return self.node._told_to_stop

    def _may_finish(self) -> bool:
        may: bool = self.node._may_finish()
        return may

    def _leave_early(self) -> None:
        self._stepped(self.node._leave_early)

    def close(self) -> None:
        """Leaves at once; see finish()."""
        self.node.close()
        if self._steps is not None:
            self._steps.release()

    @property
    def over(self) -> bool:
        """The setting `rounds` is reached, or it is to stop."""
        over: bool = self.node.over
        return over

    @property
    def round(self) -> int:
        """Rounds done, as `node` counts them: a schedule follows it."""
        round: int = self.node.round
        return round


class Site(ModuleNode):
    """A sotto.Site, which lies in `node`, for a module of PyTorch. All sites start from the same
    values: seed PyTorch alike, or load one state.

        with sotto.torch.Site(model, site="bank/site.toml", lr=0.1) as site:
            site.connect()
            while not site.over:
                site.zero_grad()
                loss = loss_of(model, batch(site.node.next_step))
                loss.backward()
                site.step(loss)

    `settings` are those of sotto.Site, and choose the step rule, unless `optimizer`, a new
    torch.optim optimizer that is not to be stepped by itself any more, makes the steps: what it
    remembers is then part of the site's state, and all sites have the same kind of it with the same
    options. Schedulers may change its rates, or `schedule(step, groups)` sets those of the step of
    this number, from 0, which goes on after a restart; sites do not compare them. Without an optimizer
    `schedule` is the setting. As a context manager it ends as a sotto.Site does.
    """

    node: _site.Site

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        optimizer: Optional[torch.optim.Optimizer] = None,
        schedule: Union[Schedule, str, None] = None,
        site: Optional[Path] = None,
        **settings: Setting,
    ) -> None:
        super().__init__(module, optimizer, schedule, _site.Site, {"site": site, **settings})

    def step(self, loss: _Loss = math.nan) -> SiteStep:
        """A local step by the parameters' gradients, as that of sotto.Site. Where the step is
        `dropped`, the module has other values than the gradients were taken at."""
        stepped: SiteStep = self._step(loss)
        return stepped

    def leave(self) -> None:
        """Ends before the run does, as that of sotto.Site."""
        self._stepped(self.node.leave)


class ElasticOptimizer(ModuleNode):
    """A sotto.ElasticOptimizer, which lies in `node`, for a module of PyTorch: a node of an all-reduce
    whose nodes come and go. The values of the node that begins the run count.

        with sotto.torch.ElasticOptimizer(model, nodes="2:16", seeds="10.0.0.1:9400", lr=0.1) as node:
            node.connect()
            while not node.over:
                node.zero_grad()
                loss = loss_of(model, batch(node.node.next_step))
                loss.backward()
                node.step(loss)

    `settings` are those of sotto.ElasticOptimizer, and choose the step rule, unless `optimizer`, a
    new torch.optim optimizer that is not to be stepped by itself any more, makes the steps: all nodes
    have the same kind of it with the same options, and a newcomer takes over what it remembers; with
    local steps each node keeps its own. `schedule(step, groups)` sets rates and other options of its
    groups for the step of this number, from 0; nothing else but the optimizer's own step may change
    them, unless nodes have local steps. Without an optimizer `schedule` is the setting. As a context
    manager it ends as a sotto.ElasticOptimizer does.
    """

    node: _elastic_optimizer.ElasticOptimizer

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        optimizer: Optional[torch.optim.Optimizer] = None,
        schedule: Union[Schedule, str, None] = None,
        **settings: Setting,
    ) -> None:
        self._early: Optional[EarlyGradient] = None
        make = _elastic_optimizer.ElasticOptimizer
        super().__init__(module, optimizer, schedule, make, settings)
        self._one_model = self.node.takes_parts  # no local steps: nodes make each other's steps

    def start_in_backward(self) -> bool:
        """Says that the next backward pass gives the whole gradient of the step: as soon as the
        layers of a chunk (docs/epochs.md) have theirs, it is sent, while the pass goes on. Results
        are the same. Call connect() first, as a pass in which the parameters become the run's is
        left out. Gradients stay as they are until step(), which else raises Refused: no clipping,
        no scaler. A batch cannot be skipped once some of its gradient has been sent; after
        NonFinite step() may be called again with another gradient in the place of the rest. What
        goes wrong during the pass is raised by step(). False, and nothing is done, with local
        steps, which send no gradient, and where a parameter lies on CUDA: the pass has its gradient
        on a thread where Ctrl-C cannot end a wait."""
        if not self.node.takes_parts or not may_wait_in_backward(self._flat):
            return False
        if self._early is None:
            self._early = EarlyGradient(self._flat, self.node.gradient_part)
        self._early.start()
        return True

    def step(self, loss: _Loss = math.nan) -> ElasticStep:
        """A step by the mean of all nodes' gradients, as that of sotto.ElasticOptimizer."""
        if self._steps is not None and self._one_model:
            self._steps.require_same_groups()
        stepped: ElasticStep = self._step(loss)
        return stepped

    def _make_step(self, loss):
        if self._early is None or not self._early.started:
            return super()._make_step(loss)
        self._stepped(self._early.finish)
        return self._stepped(self.node.step_by_parts, loss)

    def zero_grad(self) -> None:
        """Sets all gradients to 0, where steps read them: backward() adds to them there. Refused
        when some of the step's gradient has been sent (start_in_backward)."""
        if self._early is not None:
            self._early.forget()
        super().zero_grad()

    def close(self) -> None:
        """Leaves at once; see finish()."""
        if self._early is not None:
            self._early.close()
        super().close()

    def cancel(self) -> None:
        """Ends the present wait, or else the next one, as that of `node`."""
        self.node.cancel()

    def wait(self) -> ElasticStep:
        """Goes on with the wait of a step() that ended early."""
        stepped: ElasticStep = self._stepped(self.node.wait)
        return stepped
