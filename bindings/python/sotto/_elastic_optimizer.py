"""One node of an all-reduce whose nodes come and go."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Optional

from ._arrays import count, place, place_in
from ._node_handle import NodeHandle
from ._step_rule import StepRule
from ._types import Array, Layout, Setting

_LEFT_OUT = 1
_LOCAL_STEP = 2


@dataclasses.dataclass(frozen=True)
class ElasticStep:
    """What a step of an ElasticOptimizer came to."""

    round: int
    """Steps of the run that the parameters have had."""
    left_out: bool
    """The gradient, or a part of it, is in no mean: it came after the setting `grace`, or the others
    had put this node out meanwhile. With local steps the same of all of them since the run's step
    before."""
    local: bool = False
    """A step of this node's own, after which the run's is to come."""


class ElasticOptimizer(NodeHandle):
    """One node of an all-reduce whose nodes come and go: all have one model, and each step is
    committed at all of them.

        settings = {"nodes": "2:16", "seeds": "10.0.0.1:9400", "lr": 0.1}
        with sotto.ElasticOptimizer(parameters, rounds=1000, **settings) as node:
            node.connect()
            while not node.over:
                loss, gradient = loss_and_gradient(parameters, batch(node.next_step))
                node.step(gradient, loss)

    A step never fails because of a peer: those that live make it again of the same gradients, and a
    newcomer takes the model over in connect(). Where too few nodes are there a step waits, for
    `wait_limit` seconds at most if that is given.

    With `communication_interval` H a node makes H steps of its own for one of the run (DiLoCo), and
    `outer_lr`, `outer_momentum` … are the rule of that.

    `parameters` is the initial model; that of the node that begins the run counts. It is changed in
    place and must not be resized or moved. `layout` names its tensors: [("layer1.weight", (64, 784)),
    …]. `nodes`, "MIN:MAX" or one number for both, and `seeds` are needed; `seeds` may also be a store
    by which nodes find each other, "file:DIR", "redis://HOST:PORT/PREFIX" or
    "torch://HOST:PORT/PREFIX", and may be left out under torchrun;
    sotto.choices("elastic-settings") lists all settings. Spans of time are seconds.

    `own_step_rule`, a StepRule with `save` and `load`, makes the run's steps of the mean gradients in
    place of one of sotto's, with local steps the node's own. A newcomer takes over what the rules of
    the others remember, but for local steps. `job` is a dictionary of what else nodes must agree on.

    Ctrl-C ends a call that waits, and the node is then over. As a context manager it leaves in good
    order at the end of the block, also of one that Ctrl-C or stop() ends, and at once when the block
    raised anything else.
    """

    def __init__(
        self,
        parameters: Array,
        *,
        layout: Optional[Layout] = None,
        own_step_rule: Optional[StepRule] = None,
        **settings: Setting,
    ) -> None:
        super().__init__("elastic_optimizer", parameters, layout, own_step_rule, dict(settings))

    def _stepped(self, name, *arguments):
        round, outcome = ctypes.c_uint64(), ctypes.c_int()
        self._wait(name, *arguments, ctypes.byref(round), ctypes.byref(outcome))
        return ElasticStep(
            round.value, bool(outcome.value & _LEFT_OUT), bool(outcome.value & _LOCAL_STEP)
        )

    def connect(self) -> None:
        """Finds the others, and waits until this node takes part: the parameters are then the run's.
        The first step does it by itself."""
        self._wait("connect")

    def step(self, gradient: Array, loss: float = math.nan) -> ElasticStep:
        """A step by the gradient at the parameters; returns when the mean of all nodes' is in them,
        or the gradient is left out. `loss` at the same parameters is for reports. NonFinite for
        a gradient with a NaN or an infinity changes nothing. Deadline where `wait_limit` is over, and
        Stopped after cancel(): wait() goes on with the same gradient. Ended where the run is over and
        this node was not let in."""
        address, shape = place(gradient, "gradient")
        return self._stepped("step", address, count(shape), loss)

    @property
    def takes_parts(self) -> bool:
        """Whether the gradient of a step may be given in parts: without local steps
        (`communication_interval`), which send no gradient."""
        takes = ctypes.c_int()
        self._do("takes_parts", ctypes.byref(takes))
        return bool(takes.value)

    def gradient_part(self, first: int, part: Array) -> None:
        """The gradient of the parameters from number `first` of the flat vector on, as soon as a
        backward pass has it: chunks that are complete go to the nodes that own them, while the
        caller computes the rest. Each parameter is in one part; step_by_parts() follows, and until
        then all parameters stay as they are. The first part waits as connect() does where this node
        does not take part yet; if the parameters moved then nothing is sent, and the step is
        `left_out`. With `grace`, each chunk has to come within it once more than half of all nodes
        have sent theirs. NonFinite for a part that is not finite: nothing of it is sent, and it may
        be given again. Refused for one that is out of range or overlaps an earlier one, without
        takes_parts, and while a step is pending."""
        address, shape = place(part, "part")
        self._wait("gradient_part", place_in(first), address, count(shape))

    def step_by_parts(self, loss: float = math.nan) -> ElasticStep:
        """A step by the gradient whose parts were given, else as step(), which is refused between a
        part and this call. Refused, and nothing changes, when some parts are missing."""
        return self._stepped("step_by_parts", loss)

    def wait(self) -> ElasticStep:
        """Goes on with the wait of a step() that ended early."""
        return self._stepped("wait")

    def cancel(self) -> None:
        """Ends the present wait, or else the next one, which raises Stopped. Any thread, or a signal's
        handler, may call it."""
        self._now("cancel")

    def finish(self) -> None:
        """Leaves in good order, within the setting `leave_within`: the others go on without this
        node, and have what it alone may know. Ctrl-C, cancel() and a stop() meanwhile end that
        wait. No step may follow."""
        super().finish()

    @property
    def round(self) -> int:
        """Steps of the run that the parameters have had: a schedule, and batches, follow it at all
        nodes."""
        return self._number("round")

    @property
    def next_step(self) -> int:
        """The number of the next gradient in the run, from 0: `round` times the communication
        interval, and this node's own steps since. Batches may be chosen by it."""
        return self._number("next_step")
