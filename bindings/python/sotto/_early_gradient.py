"""Hands a gradient over while the backward pass that computes it goes on."""

import ctypes
import threading
import weakref
import zlib

import torch

from ._errors import Refused


def _accumulator_of(parameter):
    """The node of the graph that adds to a parameter's gradient. It lives as long as something
    refers to it, and each graph of the parameter has the same one meanwhile."""
    with torch.enable_grad():
        return parameter.expand_as(parameter).grad_fn.next_functions[0][0]


def _fingerprint(gradient):
    """Tells whether a gradient of the CPU, in one piece, was changed: by its bytes, as it may hold
    NaNs, and their order. (Versions of tensors do not tell: what goes through `.data` goes round
    them.)"""
    size = gradient.numel() * gradient.element_size()
    return zlib.crc32((ctypes.c_char * size).from_address(gradient.data_ptr())) if size > 0 else 0


def may_wait_in_backward(flat):
    """Whether a backward pass has all gradients on the thread that began it, where Ctrl-C ends a
    wait. Those of other devices than the CPU come on threads of autograd's, for which that thread
    waits where no handler of a signal runs."""
    return all(slot.parameter.device.type == "cpu" for slot in flat.slots)


class _Hook:
    """Calls ready(index) after a parameter's gradient has been accumulated, in each backward pass.
    It keeps nothing alive that the optimizer does not."""

    def __init__(self, parameter, early, index):
        self.accumulator = _accumulator_of(parameter)
        owner = weakref.ref(early)

        def ready(*_):
            held = owner()
            if held is not None:
                held._ready(index)

        self._handle = self.accumulator.register_hook(ready)

    def remove(self):
        self._handle.remove()


class EarlyGradient:
    """Gradients of FlatParameters that go to `give_on(first, part)`, as Optimizer.gradient_part
    takes them, as soon as they are there. start() and finish() are for the caller's thread; in
    between autograd's threads hand over gradients, one at a time."""

    def __init__(self, flat, give_on):
        self._flat = flat
        self._give_on = give_on
        self._first = []  # number of each parameter's first element
        offset = 0
        for slot in flat.slots:
            self._first.append(offset)
            offset += slot.values.numel()
        self._hooks = {}  # by the parameters' numbers
        self._lock = threading.Lock()  # guards what follows
        self.started = False
        self._given = {}  # fingerprints of the gradients that were handed over
        self._failure = None  # the first one

    def start(self):
        """Hands over from now on a gradient as soon as it is there. The node's round has begun."""
        self.forget()
        self._follow()
        self.started = True

    def forget(self):
        """Takes start(), and what went wrong since, back. Raises Refused when some of the step's
        gradient has been handed over."""
        with self._lock:
            if self._given:
                raise Refused(
                    "a part of this step's gradient has been sent during the backward pass, and "
                    "there is no way back: call step() before the next zero_grad()"
                )
            self.started = False
            self._failure = None

    def require_no_failure(self):
        """Raises, once, what went wrong in the pass."""
        with self._lock:
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def finish(self):
        """Hands over the gradients that have not been, and ends. What went wrong meanwhile is
        raised; after that it may be tried again."""
        self.require_no_failure()
        with self._lock:
            self._require_unchanged()
            for index in range(len(self._flat.slots)):
                if index not in self._given:
                    self._give(index)
            self.started = False
            self._given = {}

    def close(self):
        """Hears no more of backward passes."""
        self.started = False
        for hook in self._hooks.values():
            hook.remove()
        self._hooks = {}

    def _follow(self):
        """Has the accumulators that there are now say when they have a gradient: a parameter that
        was lent to an optimizer in another type gets a new one."""
        for index, slot in enumerate(self._flat.slots):
            if not slot.parameter.requires_grad:
                continue
            hook = self._hooks.get(index)
            if hook is None or hook.accumulator is not _accumulator_of(slot.parameter):
                if hook is not None:
                    hook.remove()
                self._hooks[index] = _Hook(slot.parameter, self, index)

    def _ready(self, index):
        with self._lock:
            if not self.started or self._failure is not None:
                return
            # An exception would end the backward pass, and leave gradients of which nobody knows
            # what they are.
            try:
                if index in self._given:
                    raise Refused(
                        "a second backward pass adds to gradients that have been sent already: "
                        "call start_in_backward() before the last one of a step"
                    )
                self._give(index)
            except Exception as failure:
                self._failure = failure
            except BaseException as failure:  # Ctrl-C ends the pass too
                self._failure = failure
                raise

    def _give(self, index):
        gradient = self._gathered(index)
        self._give_on(self._first[index], gradient)
        self._given[index] = _fingerprint(gradient)

    def _gathered(self, index):
        slot = self._flat.slots[index]
        with torch.no_grad():
            slot.gather_gradient(self._flat.takes_sparse)
        return slot.gradient

    def _require_unchanged(self):
        for index, sent in self._given.items():
            if _fingerprint(self._gathered(index)) != sent:
                raise Refused(
                    f"{self._flat.slots[index].name}: its gradient was changed after it had been "
                    "sent during the backward pass (clipped, or scaled?), which would be without "
                    "effect: leave start_in_backward() out"
                )
