"""Step rules that a program brings along."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Literal, Optional, overload

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
_NEXT_TENSORS = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_size_t,
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

    def __call__(self, _, *arguments):
        *numbers, x, gradient, following, count = arguments
        floats = ctypes.c_float * count
        try:
            vectors = (floats.from_address(at) for at in (x, gradient, following))
            self._next_model(*numbers, *vectors)
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

    With `by_tensor` a tensor's step depends on that tensor alone, so that gradients may be given in
    parts (Optimizer.gradient_part): `next_model(round, first, x, gradient, next)` then has the
    parameters from number `first` on, all of them or one or more whole tensors, and is called once
    for each part of a gradient.

    It is called while the node's thread is inside `step`, `gradient_part` or `finish`, by that
    thread or another one, and must not use the node's optimizer. What it raises ends the run, at
    all nodes, and is the cause of what `step` then raises.
    """

    @overload
    def __init__(
        self,
        name: str,
        next_model: Callable[[int, Any, Any, Any], object],
        *,
        by_tensor: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        next_model: Callable[[int, int, Any, Any, Any], object],
        *,
        by_tensor: Literal[True],
    ) -> None: ...
    def __init__(
        self, name: str, next_model: Callable[..., object], *, by_tensor: bool = False
    ) -> None:
        self._calls = _Calls(next_model)
        # It outlives the handle, after whose end nothing is called any more.
        self._entry = (_NEXT_TENSORS if by_tensor else _NEXT_MODEL)(self._calls)
        create = "step_rule_create_by_tensor" if by_tensor else "step_rule_create"
        super().__init__("step_rule", create, encoded("name", name), self._entry, None)

    def take_trouble(self) -> Optional[BaseException]:
        """What the last call raised, once; None for nothing."""
        trouble, self._calls.trouble = self._calls.trouble, None
        return trouble
