"""A site: training with others that come and go."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from typing import Optional

from ._arrays import count, place
from ._node_handle import NodeHandle
from ._step_rule import StepRule
from ._types import Array, Layout, Path, Setting

_EXCHANGED = 1
_DROPPED = 2


@dataclasses.dataclass(frozen=True)
class SiteStep:
    """What a step of a Site came to."""

    exchanged: bool
    """A round is over: what peers sent is in the parameters."""
    dropped: bool
    """The gradient does not count: the parameters are a neighbour's, or again those of before peers
    spoilt them. Compute the next one at the parameters as they are now."""


class Site(NodeHandle):
    """One site: trains `parameters` with those of sites that it trusts, each on its own data and in
    its own time.

        with sotto.Site(parameters, site="bank/site.toml") as site:
            site.connect()
            while not site.over:
                loss, gradient = loss_and_gradient(parameters, batch(site.next_step))
                site.step(gradient, loss)

    Nothing ends because a peer ends: one that is away is not waited for, and one that comes back goes
    on where it was. What this process has told others is in its folder first, unless `save_every` or
    an empty `state` say otherwise; a program that died goes on from there.

    `parameters` is the initial model, equal at all sites; it is changed in place and must not be
    resized or moved. `layout` names its tensors: [("layer1.weight", (64, 784)), …]. `site` is a
    site's file, as `sotto site init` makes it; `settings` are what it says, or replace that:
    sotto.choices("site-settings") lists them. Spans of time are seconds. `monitor`, the file's or a port,
    is where `sotto status` and Prometheus ask; "" is none.

    With `nodes`, "MIN:MAX", and `seeds` it is a node of a run whose nodes come and go, each with a
    model of its own: `key` is then the run's, and there are no peers and no state.

    `own_step_rule`, a StepRule with `save` and `load`, makes the site's own steps in place of one of
    sotto's; what it remembers is part of the site's state. `job` is a dictionary of what else sites
    must agree on.

    Ctrl-C ends a call that waits, and the site is then over. As a context manager it finishes at the
    end of the block, and leaves as leave() does where Ctrl-C or stop() ended it; it is gone at once
    when the block raised anything else.
    """

    def __init__(
        self,
        parameters: Array,
        *,
        layout: Optional[Layout] = None,
        site: Optional[Path] = None,
        own_step_rule: Optional[StepRule] = None,
        **settings: Setting,
    ) -> None:
        named = None if site is None else os.fspath(site)
        super().__init__("site", parameters, layout, own_step_rule, {"site": named, **settings})

    def _stepped(self, name, *arguments):
        outcome = ctypes.c_int()
        self._wait(name, *arguments, ctypes.byref(outcome))
        return SiteStep(bool(outcome.value & _EXCHANGED), bool(outcome.value & _DROPPED))

    def connect(self) -> None:
        """Reads the state, opens the connections and begins: with the folder's model, a neighbour's, or
        the initial one. The first step does it by itself. Raises Stopped where the site was to stop
        before it had a model."""
        self._wait("connect")

    def step(self, gradient: Array, loss: float = math.nan) -> SiteStep:
        """A local step by the gradient at the parameters; each `communication_interval`-th exchanges
        with the peers, and waits for those that are behind for `patience` seconds at most. `loss` is
        that of the same batch. NonFinite for a gradient with a NaN or an infinity changes nothing.
        What it raises is of this site alone, never of a peer."""
        address, shape = place(gradient, "gradient")
        return self._stepped("step", address, count(shape), loss)

    def relay(self) -> SiteStep:
        """A round without a step, for an observer: takes in what comes, and passes it on."""
        return self._stepped("relay")

    def finish(self) -> None:
        """Ends a round that is under way, and saves the state. No step may follow."""
        super().finish()

    def leave(self) -> None:
        """finish() for a node that ends before its run (the setting `nodes`): others are told, one of
        them takes over what it holds, and it waits until what it sent has arrived, for `leave_within`
        seconds at most. Ctrl-C and a stop() meanwhile end that wait."""
        self._end("leave")

    def _leave_early(self):
        self.leave()

    @property
    def round(self) -> int:
        """Rounds done, by the site's own count: about those of its neighbours. A schedule follows it."""
        return self._number("round")

    @property
    def next_step(self) -> int:
        """The number of the next local step, which goes on after a restart: batches may be chosen by
        it."""
        return self._number("next_step")
