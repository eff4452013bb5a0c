"""Step rules that a program brings along."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Literal, Optional, overload

from ._errors import Refused
from ._handle import Handle
from ._library import call, encoded

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


_SAVE = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
)
_LOAD = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_SETTINGS = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)


class _Calls:
    """What the library calls. It knows nothing of the rule, so that both go when nobody uses them."""

    def __init__(self, next_model, save, load, settings):
        self.trouble = None
        self._said = None  # stays where it is until the next call
        self._saved = None  # likewise
        self._next_model = next_model
        self._save = save
        self._load = load
        self._settings = settings
        self._unsettled = None  # what settings() raised, until a step can say it

    def _run(self, work):
        """The address of what is wrong, or None: nothing may leave through the library."""
        self.trouble = None
        try:
            work()
            return None
        except BaseException as trouble:
            self.trouble = trouble
            text = f"{type(trouble).__name__}: {trouble}".encode("utf-8", "replace")
            self._said = ctypes.create_string_buffer(text.replace(b"\0", b" "))
            return ctypes.addressof(self._said)

    def next_model(self, _, *arguments):
        *numbers, x, gradient, following, count = arguments
        floats = ctypes.c_float * count

        def work():
            trouble, self._unsettled = self._unsettled, None
            if trouble is not None:
                raise trouble
            vectors = (floats.from_address(at) for at in (x, gradient, following))
            self._next_model(*numbers, *vectors)

        return self._run(work)

    def save(self, _, place, size):
        def work():
            state = bytes(memoryview(self._save()))
            self._saved = ctypes.create_string_buffer(state, len(state))
            place[0] = ctypes.addressof(self._saved)
            size[0] = len(state)

        return self._run(work)

    def load(self, _, state, size):
        return self._run(lambda: self._load(ctypes.string_at(state, size) if size > 0 else b""))

    def settings(self, _, step):
        try:
            return int(self._settings(step)) % 2**64
        except BaseException as trouble:
            self._unsettled = trouble
            return 0


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
    all nodes, and is the cause of what `step` then raises; of a sotto.Site or a
    sotto.ElasticOptimizer it ends this node alone.

    `save` and `load` go together, and sotto.Site and sotto.ElasticOptimizer take no other rules:
    `save()` returns what the rule remembers between two steps, as bytes, and `load(state)` has it
    remember that, or nothing where `state` is empty, as before the first step. Such bytes may come
    from another node: check them. Both become part of the node's state, which begins without
    a memory; at nodes that come and go functions are also called between two calls of the node's.
    `settings(step)` is for an ElasticOptimizer: a number, e.g. a digest of the rates, for the
    settings with which the step of this number, from 0, is made. Nodes that differ in it do not step
    together.
    """

    @overload
    def __init__(
        self,
        name: str,
        next_model: Callable[[int, Any, Any, Any], object],
        *,
        by_tensor: Literal[False] = False,
        save: Optional[Callable[[], bytes]] = None,
        load: Optional[Callable[[bytes], object]] = None,
        settings: Optional[Callable[[int], int]] = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        next_model: Callable[[int, int, Any, Any, Any], object],
        *,
        by_tensor: Literal[True],
        save: Optional[Callable[[], bytes]] = None,
        load: Optional[Callable[[bytes], object]] = None,
        settings: Optional[Callable[[int], int]] = None,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        next_model: Callable[..., object],
        *,
        by_tensor: bool = False,
        save: Optional[Callable[[], bytes]] = None,
        load: Optional[Callable[[bytes], object]] = None,
        settings: Optional[Callable[[int], int]] = None,
    ) -> None:
        if (save is None) != (load is None):
            raise Refused("save: it goes with load, and neither without the other")
        self._calls = calls = _Calls(next_model, save, load, settings)
        # They outlive the handle, after whose end nothing is called any more.
        self._entries = [(_NEXT_TENSORS if by_tensor else _NEXT_MODEL)(calls.next_model)]
        create = "step_rule_create_by_tensor" if by_tensor else "step_rule_create"
        super().__init__("step_rule", create, encoded("name", name), self._entries[0], None)
        if save is not None:
            self._add("set_state", _SAVE(calls.save), _LOAD(calls.load))
        if settings is not None:
            self._add("set_settings", _SETTINGS(calls.settings))

    def _add(self, name, *functions):
        self._entries += functions
        with self._held() as handle:
            call(f"step_rule_{name}", handle, *functions)

    def take_trouble(self) -> Optional[BaseException]:
        """What the last call raised, once; None for nothing."""
        trouble, self._calls.trouble = self._calls.trouble, None
        return trouble
