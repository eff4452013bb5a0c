"""A node in a run whose nodes come and go, with a model and a loop of the caller's own."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Optional

from ._arrays import count, place
from ._errors import Error, Refused
from ._handle import Handle, handle_of, layout_handle
from ._leaving import Leaving
from ._library import call, call_for_json, library, setting_texts
from ._setup import Setup
from ._step_rule import StepRule
from ._trained import trained
from ._types import Array, Layout
from ._waiting import waiting


class NodeHandle(Handle, Leaving):
    """A node of `kind`, a handle of sotto.h, that trains `parameters` in place."""

    def __init__(
        self,
        kind: str,
        parameters: Array,
        layout: Optional[Layout],
        rule: Optional[StepRule],
        settings: dict[str, Any],
    ) -> None:
        self._kind = kind
        address, self._shape = place(parameters, "parameters", writable=True)
        self._parameters = parameters  # which must stay where they are
        self._rule = rule
        with layout_handle(layout) as tensors, handle_of(
            rule, StepRule, "own_step_rule"
        ) as own_rule:
            setup = Setup(layout=tensors, step_rule=own_rule)
        with contextlib.closing(setup), setup._held() as parts:
            trained.take(self, address, count(self._shape))
            try:
                with self._caused_by_rule():
                    super().__init__(
                        kind,
                        f"{kind}_create_from",
                        parts,
                        setting_texts(settings),
                        address,
                        count(self._shape),
                    )
            except BaseException:
                trained.give_back(self)
                raise

    def _may_finish(self) -> bool:
        with self._beside() as handle:
            return handle is not None

    def _do(self, name, *arguments):
        with self._held() as handle:
            call(f"{self._kind}_{name}", handle, *arguments)

    def _wait(self, name, *arguments):
        """As _do, for what waits."""
        with self._caused_by_rule():
            waiting(lambda: self._do(name, *arguments), self.stop)

    @contextlib.contextmanager
    def _caused_by_rule(self):
        """What a step rule of the caller's own raised is the cause of what the block raises; Ctrl-C in
        it goes on as such."""
        try:
            yield
        except Error as error:
            trouble = self._rule.take_trouble() if self._rule is not None else None
            if trouble is None:
                raise
            if not isinstance(trouble, Exception):
                raise trouble
            raise error from trouble

    def _asked(self, name):
        """What a function tells that may be called while another call is under way."""
        with self._beside() as handle:
            if handle is None:
                raise Refused(f"{self._kind}: it is closed, or another process made it")
            return call_for_json(f"{self._kind}_{name}", handle)

    def _now(self, name):
        """Calls what any thread may call; once it is closed, nothing happens."""
        with self._beside() as handle:
            if handle is not None:
                getattr(library, f"sotto_{self._kind}_{name}")(handle)

    @property
    def parameters(self) -> Any:
        """The array that it was given: the model."""
        return self._parameters

    def evaluated(self, loss: float, accuracy: float = float("nan")) -> None:
        """Notes how good the model is, for the report."""
        self._do("evaluated", loss, accuracy)

    def finish(self) -> None:
        """Ends in good order. No step may follow."""
        self._end("finish")

    def _end(self, name):
        with self._caused_by_rule():
            waiting(lambda: self._do(name), self._hurry)
        trained.give_back(self)

    def _hurry(self):
        """Ends the wait of a last call, whether or not stop() was called before."""
        self.stop()
        self.stop()

    def stop(self) -> None:
        """Ends what waits, and `over` is then True: a call that is ended raises Stopped, which the
        block of `with` takes for its end. What the last call waits for, as the block makes it, is
        ended by a stop() meanwhile, and by a second one: what has not arrived by then is lost. Any
        thread, or a signal's handler, may call it; once it is closed it does nothing."""
        self._told_to_stop = True
        self._now("stop")

    def close(self) -> None:
        """Leaves at once; see finish()."""
        super().close()
        trained.give_back(self)

    @property
    def over(self) -> bool:
        """The setting `rounds` is reached, or it is to stop."""
        over = ctypes.c_int()
        self._do("over", ctypes.byref(over))
        return bool(over.value)

    def _number(self, name):
        number = ctypes.c_uint64()
        self._do(name, ctypes.byref(number))
        return number.value

    def report(self) -> dict[str, Any]:
        """How it and each of the others stand, as `sotto status --json` has it. Any thread may ask."""
        return self._asked("report")

    def events(self) -> list[dict[str, Any]]:
        """What has happened since the last call, the latest 1000 at most: dictionaries with time,
        level, event, peer, round and text. Any thread may ask."""
        return self._asked("events")
