"""A PyTorch optimizer that makes the steps of a node that comes and goes: what it remembers is part of
the node's state, and goes to newcomers with the model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Union

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


def require_optimizer(optimizer: object, schedule: Union[Schedule, str, None]) -> None:
    """Raises what is wrong with the optimizer of a node; None is none."""
    if optimizer is None:
        if schedule is not None and not isinstance(schedule, str):
            raise Refused("schedule: it is one of a torch optimizer's groups: give an optimizer")
        return
    if schedule is not None and not callable(schedule):
        raise Refused(
            f"schedule: {schedule!r} is refused: with a torch optimizer it is a function of the step's "
            "number and the groups"
        )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer: {type(optimizer).__name__} is no torch.optim.Optimizer")
    require_wrappable(optimizer)


class NodeSteps:
    """`rule` is the StepRule, and `job` what nodes must agree on of it. Until release() the optimizer
    takes steps for the node alone. What it remembers at first, as Adagrad does before its first step,
    is what the node begins with, and the same at all nodes. `compared`: nodes compare the schedule's
    settings of each step."""

    def __init__(self, optimizer, flat, schedule, compared):
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
            settings=self._settings if schedule is not None and compared else None,
        )
        self._held = False

    def hold(self):
        """Has the optimizer's step() refused to all others."""
        self._local.hold()
        self._held = True

    def release(self):
        """Gives the optimizer back to the program, once."""
        if self._held:
            self._held = False
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
        self._begun_with = group_options(self._optimizer)  # some count in their groups

    def _save(self):
        optimizer = self._optimizer
        return save_state(
            (optimizer.state.get(p, {}) for p in parameters_of(optimizer)), optimizer.param_groups
        )

    def _load(self, state):
        optimizer = self._optimizer
        parameters = parameters_of(optimizer)
        known, groups = load_state(
            state or self._first, [p.shape for p in parameters], len(optimizer.param_groups)
        )
        for parameter, value in zip(parameters, known):
            optimizer.state.pop(parameter, None)
            if value:
                optimizer.state[parameter] = value
        for group, values in zip(optimizer.param_groups, groups):
            group.update((name, value) for name, value in values.items() if name in group)
        self._begun_with = group_options(optimizer)

    def _settings(self, step):
        groups = [dict(group) for group in self._optimizer.param_groups]
        self._schedule(step, groups)
        told = repr((rates_of(groups), options_of(groups, self._optimizer.defaults)))
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "little")
