"""One node of a training run."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import warnings
from typing import Any, Optional

from ._arrays import count, place, place_in
from ._errors import Error, Refused
from ._handle import Handle, Interrupt, handle_of, layout_handle
from ._library import call, call_for_json, encoded, library, setting_texts
from ._run_block import RunBlock
from ._setup import Setup
from ._step_rule import StepRule
from ._trained import trained
from ._types import Array, Layout, Path, Setting
from ._waiting import waiting


class Store(Handle):
    """Where nodes meet that are threads of this process (transport="inproc"); serves one run at a
    time."""

    SHARED = True

    def __init__(self) -> None:
        super().__init__("store", "store_create")


class Optimizer(Handle, RunBlock):
    """One node: keeps `parameters` in step with the other nodes'.

    `parameters` is changed in place and must not be resized or moved; all nodes start from the same
    values. `layout` names its tensors for settings that tell them apart: [("layer1.weight", (64,
    784)), …]. `store` joins threads of one process. `settings` are those of `sotto train`, and rank,
    seed, rounds, sampling_rate, privacy_batch, privacy_ledger, report_every and job, a dictionary of
    what else all nodes must agree on. Without `nodes`, the launcher's variables say who this node is.

    `own_step_rule`, a StepRule, makes the node's own steps in place of one of sotto's; the setting
    lr is then the rate that it begins with, as the others are told.

    Ctrl-C ends a call that waits for other nodes within a second, and the run with it; ask_to_end
    ends it where all nodes agree.

    As a context manager it finishes the run at the end of the block, also of one that Ended leaves,
    and leaves at once when the block raised anything else.
    """

    def __init__(
        self,
        parameters: Array,
        *,
        layout: Optional[Layout] = None,
        store: Optional[Store] = None,
        own_step_rule: Optional[StepRule] = None,
        **settings: Setting,
    ) -> None:
        address, self._shape = place(parameters, "parameters", writable=True)
        self._parameters = parameters  # which must stay where they are
        self._store = store
        self._rule = own_step_rule
        self._carried: Optional[Array] = None
        self._shown: list[str] = []  # of the report's warnings
        self._warned = 0  # how many warnings there were when they were shown
        self._interrupt = Interrupt()
        with layout_handle(layout) as tensors, handle_of(
            store, Store, "store"
        ) as meeting_place, handle_of(own_step_rule, StepRule, "own_step_rule") as rule:
            setup = Setup(
                layout=tensors,
                store=meeting_place,
                interrupt=self._interrupt.handle,
                step_rule=rule,
            )
        with contextlib.closing(setup), setup._held() as parts:
            trained.take(self, address, count(self._shape))
            try:
                super().__init__(
                    "optimizer",
                    "optimizer_create_from",
                    parts,
                    setting_texts(settings),
                    address,
                    count(self._shape),
                )
            except BaseException:
                trained.give_back(self)
                raise

    def _create(self, name, *arguments):
        """The name of the store's host may have to become known first."""

        def create():
            with self._in_turn():
                call(name, *arguments)

        waiting(create, self._interrupt)

    def _do(self, name, *arguments):
        with self._held() as handle:
            call("optimizer_" + name, handle, *arguments)

    def _wait(self, name, *arguments):
        """As _do, for what waits for other nodes: the thread that makes the call has the turn. What a
        step rule of the caller's own raised is the cause of what is raised here."""
        try:
            waiting(lambda: self._do(name, *arguments), self._interrupt)
        except Error as error:
            trouble = self._rule.take_trouble() if self._rule is not None else None
            if trouble is None:
                raise
            raise error from trouble

    def _like_parameters(self, array, what, writable=False):
        """Address and length of an array that has the parameters' shape; any, where they are flat."""
        address, shape = place(array, what, writable)
        length = count(shape)  # which the library compares
        if length == count(self._shape) and shape != self._shape and len(self._shape) > 1:
            raise Refused(
                f"{what}: it has the shape {shape}, and the parameters have {self._shape}: give them "
                "one shape; where the order of the elements is right, reshape() does"
            )
        return address, length

    @property
    def parameters(self) -> Any:
        """The array that it was given: the model."""
        return self._parameters

    def connect(self) -> None:
        """Meets the other nodes; the first step does it by itself."""
        self._wait("connect")

    def begin_step(self) -> None:
        """Optional: the gradient of the next step is about to be computed."""
        self._wait("begin_step")

    def step(self, gradient: Array) -> None:
        """One round: takes the gradient at the parameters, and moves them. NonFinite for a gradient
        with a NaN or an infinity changes nothing, and another one may be given; where a finite one
        overflows the step rule it ends the run. After BudgetSpent no step can follow, but save and
        finish can."""
        address, length = self._like_parameters(gradient, "gradient")
        self._wait("step", address, length)
        self._show_warnings()

    @property
    def takes_parts(self) -> bool:
        """Whether the gradient of a step may be given in parts: with an algorithm in `buckets`, a
        step rule that goes tensor by tensor (all but lars, lamb and clipping; a StepRule with
        by_tensor=True), gradients as they are (no privacy, no local steps), and another transport
        than nccl."""
        takes = ctypes.c_int()
        self._do("takes_parts", ctypes.byref(takes))
        return bool(takes.value)

    def gradient_part(self, first: int, part: Array) -> None:
        """The gradient of the parameters from number `first` of the flat vector on, as soon as a
        backward pass has it: the exchanges of buckets that are complete begin. A part is any range,
        and one of whole tensors of the layout where the step rule needs these (muon, or a StepRule
        with by_tensor=True). Each parameter is in one part; step_by_parts() follows. From then on
        these parameters may move, and must not be read for other gradients; all others stay.
        Results and errors are those of step(gradient); a part that is refused by NonFinite may be
        given again. Refused for one that does not fit or overlaps an earlier one, and without
        takes_parts."""
        address, shape = place(part, "part")
        self._wait("gradient_part", place_in(first), address, count(shape))

    def step_by_parts(self) -> None:
        """One round, after all parts of its gradient; Refused, and nothing changes, when some are
        missing."""
        self._wait("step_by_parts")
        self._show_warnings()

    def _show_warnings(self):
        """Hands new warnings of the report to Python's `warnings`."""
        known = ctypes.c_size_t()
        self._do("warning_count", ctypes.byref(known))
        if known.value > self._warned:
            self._warned = known.value
            texts = self.report()["warnings"]
            new = [text for text in texts if text not in self._shown]
            self._shown = texts  # also where the first of them is raised as an error
            for text in new:
                warnings.warn(text, RuntimeWarning, stacklevel=3)

    def set_learning_rate(self, rate: float) -> None:
        """The base learning rate from the next step on; part of what save returns. All nodes change it
        after the same step: allreduce and all others that keep models equal raise Unexpected where one
        does not, and with gossip there is a RuntimeWarning, which the report has too."""
        self._do("set_learning_rate", rate)

    def announce_settings(self, rate: float, others: str = "") -> None:
        """For a StepRule whose settings have changed: with which base learning rate it steps from the
        next step on, and in a text, the same where the change is, what else is not as it was when the
        nodes met. Nodes compare it, as after set_learning_rate."""
        self._do("announce_settings", rate, encoded("others", others))

    def mean(self, out: Array) -> float:
        """Writes the mean of all nodes' models into the array `out`, on every node, to evaluate or
        save it; returns the mean squared distance of the models from it. All nodes call it after the
        same step."""
        address, length = self._like_parameters(out, "out", writable=True)
        distance = ctypes.c_double()
        self._wait("mean", address, length, ctypes.byref(distance))
        return distance.value

    def carry_along(self, values: Array) -> None:
        """Values that belong to the model and that no step moves, e.g. running statistics: mean and
        finish_with_mean give their mean behind that of the parameters, in one array as long as both.
        `values` may be changed between two calls, but not resized or moved. All nodes carry as many;
        once, before the first step."""
        address, shape = place(values, "values")
        self._do("carry_along", address, count(shape))
        self._carried = values  # which must stay where they are

    def take_from_node_0(self, values: Array) -> None:
        """Replaces an array's values by those of node 0, e.g. where carry_along starts from. All nodes
        call it, in one order with other such calls, with as many."""
        address, shape = place(values, "values", writable=True)
        self._wait("take_from_node_0", address, count(shape))

    def evaluated(self, loss: float, accuracy: float = math.nan) -> None:
        """What the caller has found of its model, for who watches the run (metrics, log_json,
        tensorboard): node 0 reports it at once; on other nodes nothing happens."""
        self._wait("evaluated", loss, accuracy)

    def give_up(self, reason: str) -> None:
        """For a program that ends for a reason of its own: once the nodes have met, all end with it, in
        place of the loss of this one. A block of `with` that raises does so by itself."""
        self._do("give_up", encoded("reason", reason))

    def ask_to_end(self) -> None:
        """Wants all nodes to end together: their steps raise Ended, and change nothing, after a round
        that all agree on. May be called from any thread, or by a signal's handler."""
        with self._beside() as handle:
            if handle is None:
                raise Refused("optimizer: it is closed")
            library.sotto_optimizer_ask_to_end(handle)

    def drain(self) -> None:
        """Waits until this node's exchanges are complete."""
        self._wait("drain")

    def finish(self) -> None:
        """Drains, and waits until all nodes have come this far. No step may follow. Where other nodes
        still take steps, the setting `join` says what happens; without it all raise Unexpected."""
        self._wait("finish")
        trained.give_back(self)

    def finish_with_mean(self, out: Array) -> float:
        """As finish, with the mean of all nodes' models at the end, as mean() gives it. Where nodes
        have different amounts of data (the setting `join`), mean() would come too early."""
        address, length = self._like_parameters(out, "out", writable=True)
        distance = ctypes.c_double()
        self._wait("finish_with_mean", address, length, ctypes.byref(distance))
        trained.give_back(self)
        return distance.value

    def close(self) -> None:
        """Destroys what the library holds; again, or in a fork, it does nothing."""
        super().close()
        trained.give_back(self)

    @property
    def round(self) -> int:
        """Rounds done."""
        done = ctypes.c_uint64()
        self._do("round", ctypes.byref(done))
        return done.value

    def report(self) -> dict[str, Any]:
        """Settings as used, the job's entries, warnings, traffic by peer, times, counters, privacy:
        a dictionary. Counts are exact after drain()."""
        with self._held() as handle:
            return call_for_json("optimizer_report", handle)

    def save(self) -> bytes:
        """The whole state, parameters included, as bytes."""
        state = ctypes.c_void_p()
        size = ctypes.c_size_t()
        self._wait("save", ctypes.byref(state), ctypes.byref(size))
        try:
            # string_at would cut the length to an int.
            whole = ctypes.POINTER(ctypes.c_char * size.value)
            return ctypes.cast(state, whole).contents.raw
        finally:
            library.sotto_free(state)

    def load(self, state: bytes) -> None:
        """Takes back what save returned under the same settings; before the first step."""
        state = bytes(state)
        self._wait("load", state, len(state))

    def save_file(self, path: Path) -> None:
        """Saves into a file, which is replaced as a whole or not at all."""
        self._wait("save_file", encoded("path", path))

    def load_file(self, path: Path) -> None:
        """Takes back what save_file wrote."""
        self._wait("load_file", encoded("path", path))
