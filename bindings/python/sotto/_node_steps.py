"""A PyTorch optimizer that makes the steps of a node that comes and goes: what it remembers is part of
the node's state, and goes to newcomers with the model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Optional

import torch

from ._errors import Refused
from ._group_settings import group_options
from ._local_optimizer import (
    LocalOptimizer,
    options_of,
    optimizer_settings,
    parameters_of,
    rates_of,
    require_wrappable,
    state_text,
    takes_sparse_gradients,
)
from ._optimizer_state import load_state, save_state
from ._step_rule import StepRule

# Sets rates and other options of an optimizer's param_groups for the step of a number, from 0.
Schedule = Callable[[int, "list[dict[str, Any]]"], object]


def require_optimizer(optimizer: object, schedule: Optional[Schedule]) -> None:
    """Raises what is wrong with the optimizer of a node; None is none."""
    if optimizer is None:
        if schedule is not None:
            raise Refused("schedule: it is one of a torch optimizer's groups: give an optimizer")
        return
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer: {type(optimizer).__name__} is no torch.optim.Optimizer")
    require_wrappable(optimizer)


class NodeSteps:
    """`rule` is the StepRule, and `job` what nodes must agree on of it. Until release() the optimizer
    takes steps for the node alone. What it remembers at first, as Adagrad does before its first step,
    is what the node begins with, and the same at all nodes."""

    def __init__(self, optimizer, flat, schedule):
        flat.takes_sparse = takes_sparse_gradients(optimizer)
        self._optimizer = optimizer
        self._schedule = schedule
        self._local = LocalOptimizer(optimizer, flat)
        self._local.widen_state()
        self._first = self._save()
        state = {"torch-optimizer-state": state_text(optimizer)}
        self.job = {**optimizer_settings(optimizer), **state}
        self._begun_with = group_options(optimizer)
        self.rule = StepRule(
            "torch",
            self._next_model,
            save=self._save,
            load=self._load,
            settings=self._settings if schedule is not None else None,
        )

    def hold(self):
        """Has the optimizer's step() refused to all others."""
        self._local.hold()

    def release(self):
        """Gives the optimizer back to the program."""
        self._local.release()

    def require_same_groups(self):
        """For nodes that make each other's steps again: raises RuntimeError where rates or options were
        changed but by the schedule."""
        if self._schedule is None and group_options(self._optimizer) != self._begun_with:
            raise RuntimeError(
                "the optimizer's groups were changed: all nodes make the same steps, a newcomer also "
                "those that were before it; give `schedule`, a function of the step's number"
            )

    def _next_model(self, step, x, gradient, following):
        if self._schedule is not None:
            self._schedule(step, self._optimizer.param_groups)
        self._local.next_model(step, x, gradient, following)

    def _save(self):
        return save_state(self._optimizer.state.get(p, {}) for p in parameters_of(self._optimizer))

    def _load(self, state):
        parameters = parameters_of(self._optimizer)
        known = load_state(state or self._first, len(parameters))
        for parameter, value in zip(parameters, known):
            self._optimizer.state.pop(parameter, None)
            if value:
                self._optimizer.state[parameter] = value

    def _settings(self, step):
        groups = [dict(group) for group in self._optimizer.param_groups]
        self._schedule(step, groups)
        told = repr((rates_of(groups), options_of(groups, self._optimizer.defaults)))
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "little")
