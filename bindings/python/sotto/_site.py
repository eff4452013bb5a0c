"""A site: training with others that come and go."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from types import TracebackType
from typing import Any, Optional

from ._arrays import count, place
from ._errors import Refused
from ._handle import Handle, layout_handle
from ._library import call, call_for_json, library, setting_texts
from ._trained import trained
from ._types import Array, Layout, Path, Setting
from ._waiting import waiting

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


class Site(Handle):
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
    sotto.choices("site-settings") lists them. Spans of time are seconds.

    Ctrl-C ends a call that waits, and the site is then over. As a context manager it finishes at the
    end of the block, also of one that Ctrl-C ends, and leaves at once when the block raised anything
    else.
    """

    def __init__(
        self,
        parameters: Array,
        *,
        layout: Optional[Layout] = None,
        site: Optional[Path] = None,
        **settings: Setting,
    ) -> None:
        address, self._shape = place(parameters, "parameters", writable=True)
        self._parameters = parameters  # which must stay where they are
        given: dict[str, Any] = {"site": None if site is None else os.fspath(site), **settings}
        with layout_handle(layout) as tensors:
            trained.take(self, address, count(self._shape))
            try:
                super().__init__(
                    "site", "site_create", setting_texts(given), address, count(self._shape), tensors
                )
            except BaseException:
                trained.give_back(self)
                raise

    def _do(self, name, *arguments):
        with self._held() as handle:
            call("site_" + name, handle, *arguments)

    def _wait(self, name, *arguments):
        waiting(lambda: self._do(name, *arguments), self.stop)

    def _stepped(self, name, *arguments):
        outcome = ctypes.c_int()
        self._wait(name, *arguments, ctypes.byref(outcome))
        return SiteStep(bool(outcome.value & _EXCHANGED), bool(outcome.value & _DROPPED))

    def _asked(self, name):
        """What a function tells that may be called while another call is under way."""
        with self._beside() as handle:
            if handle is None:
                raise Refused("site: it is closed")
            return call_for_json("site_" + name, handle)

    @property
    def parameters(self) -> Any:
        """The array that it was given: the model."""
        return self._parameters

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

    def evaluated(self, loss: float, accuracy: float = math.nan) -> None:
        """Notes how good the model is, for the report."""
        self._do("evaluated", loss, accuracy)

    def finish(self) -> None:
        """Ends a round that is under way, and saves the state. No step may follow."""
        self._wait("finish")
        trained.give_back(self)

    def stop(self) -> None:
        """Ends what waits within a tenth of a second; `over` is then True. Any thread, or a signal's
        handler, may call it; once the site is closed it does nothing."""
        with self._beside() as handle:
            if handle is not None:
                library.sotto_site_stop(handle)

    def close(self) -> None:
        """Leaves at once; see finish()."""
        super().close()
        trained.give_back(self)

    def __enter__(self) -> Site:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None or issubclass(kind, KeyboardInterrupt):
                self.finish()
        finally:
            self.close()

    @property
    def over(self) -> bool:
        """The setting `rounds` is reached, or the site is to stop."""
        over = ctypes.c_int()
        self._do("over", ctypes.byref(over))
        return bool(over.value)

    def _number(self, name):
        number = ctypes.c_uint64()
        self._do(name, ctypes.byref(number))
        return number.value

    @property
    def round(self) -> int:
        """Rounds done, by the site's own count: about those of its neighbours. A schedule follows it."""
        return self._number("round")

    @property
    def next_step(self) -> int:
        """The number of the next local step, which goes on after a restart: batches may be chosen by
        it."""
        return self._number("next_step")

    def report(self) -> dict[str, Any]:
        """How the site and each of its peers stand, as `sotto status --json` has it. Any thread may
        ask."""
        return self._asked("report")

    def events(self) -> list[dict[str, Any]]:
        """What has happened since the last call, the latest 1000 at most: dictionaries with time,
        level, event, peer, round and text. Any thread may ask."""
        return self._asked("events")
