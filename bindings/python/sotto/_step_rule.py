"""Step rules that a program brings along."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Optional

from ._handle import Handle
from ._library import encoded

_NEXT_MODEL = ctypes.CFUNCTYPE(
    ctypes.c_void_p,  # a text's address, or none
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
)


class _Calls:
    """What the library calls. It knows nothing of the rule, so that both go when nobody uses them."""

    def __init__(self, next_model):
        self.trouble = None
        self._said = None  # stays where it is until the next call
        self._next_model = next_model

    def __call__(self, _, round, x, gradient, following, count):
        floats = ctypes.c_float * count
        try:
            self._next_model(round, *(floats.from_address(at) for at in (x, gradient, following)))
            return None
        except BaseException as trouble:  # nothing may leave through the library
            self.trouble = trouble
            text = f"{type(trouble).__name__}: {trouble}".encode("utf-8", "replace")
            self._said = ctypes.create_string_buffer(text.replace(b"\0", b" "))
            return ctypes.addressof(self._said)


class StepRule(Handle):
    """Makes the own steps of one node: `next_model(round, x, gradient, next)` writes into `next` the
    model that a step from `x` with this gradient leads to. All three are buffers of 32-bit floats,
    for numpy.frombuffer(x, numpy.float32) and the like, and valid during the call alone. Algorithms
    move by x - next where their papers write the learning rate times the gradient.

    It is called while the node's thread is inside `step` or `finish`, by that thread or another one,
    and must not use the node's optimizer. What it raises ends the run, at all nodes, and is the
    cause of what `step` then raises.
    """

    def __init__(self, name: str, next_model: Callable[[int, Any, Any, Any], object]) -> None:
        self._calls = _Calls(next_model)
        # It outlives the handle, after whose end nothing is called any more.
        self._entry = _NEXT_MODEL(self._calls)
        super().__init__("step_rule", "step_rule_create", encoded("name", name), self._entry, None)

    def take_trouble(self) -> Optional[BaseException]:
        """What the last call raised, once; None for nothing."""
        trouble, self._calls.trouble = self._calls.trouble, None
        return trouble
