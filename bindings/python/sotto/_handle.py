"""What all objects of the library have in common: a handle, one call at a time, and an end."""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import os
import threading
import weakref
from typing import Any

from ._errors import Refused
from ._library import call, encoded, library


class _Owned:
    """What the library made, and whose turn it is; `handle` is None once it is destroyed."""

    def __init__(self, kind, handle):
        self.kind = kind
        self.handle = handle
        self.turn = threading.Lock()
        # Who destroys the handle, or uses it beside a call. A signal's handler may come in between.
        self.ending = threading.RLock()
        self.process = os.getpid()

    def destroy(self):
        """In this thread's turn. Only in the process that made it: a fork has the memory, but not
        the threads."""
        with self.ending:
            handle, self.handle = self.handle, None
            if handle is not None and os.getpid() == self.process:
                getattr(library, f"sotto_{self.kind}_destroy")(handle)


def _end(owned):
    """When nobody refers to the object any more, or the interpreter ends. A thread that is inside a
    call then keeps what it uses; the process takes it along."""
    if owned.turn.acquire(blocking=False):
        try:
            owned.destroy()
        finally:
            owned.turn.release()


class Handle:
    """Owns a handle of sotto.h, which close(), or the end of the object, destroys. With SHARED a
    second thread waits for its turn; else it is refused, as calls may wait for peers."""

    SHARED = False

    def __init__(self, kind: str, create: str, *arguments: Any) -> None:
        self._own = _Owned(kind, ctypes.c_void_p())
        # From now on, as a signal's handler may raise when the object is made already.
        weakref.finalize(self, _end, self._own)
        self._create(create, *arguments, ctypes.byref(self._own.handle))

    def _create(self, name, *arguments):
        """Makes what the handle is of; the last of `arguments` is where the handle goes."""
        call(name, *arguments)

    @contextlib.contextmanager
    def _held(self):
        """The handle, which stays as long as the block."""
        with self._in_turn() as own:
            if own.handle is None:
                raise Refused(f"{own.kind}: it is closed")
            yield own.handle

    @contextlib.contextmanager
    def _beside(self):
        """The handle for what any thread may call beside another call, which stays as long as the
        block; None once it is destroyed, or in a fork."""
        own = self._own
        with own.ending:
            yield own.handle if own.process == os.getpid() else None

    @contextlib.contextmanager
    def _in_turn(self):
        own = self._own
        if own.process != os.getpid():
            raise Refused(f"{own.kind}: another process made it; make one after the fork")
        if not own.turn.acquire(blocking=self.SHARED):
            raise Refused(f"{own.kind}: another thread is inside a call; it takes one at a time")
        try:
            yield own
        finally:
            own.turn.release()

    def close(self) -> None:
        """Destroys what the library holds; again, or in a fork, it does nothing."""
        if self._own.process == os.getpid():
            with self._in_turn() as own:
                own.destroy()


class Interrupt(Handle):
    """Ends calls that wait or compute, from before they begin. It lives as long as what uses it and is
    nobody's in turn, so that it may be raised at any time."""

    def __init__(self):
        super().__init__("interrupt", "interrupt_create")

    @property
    def handle(self):
        return self._own.handle

    def __call__(self):
        library.sotto_interrupt_raise(self.handle)


@contextlib.contextmanager
def handle_of(held, kind, what):
    """The handle of an object of that kind for one block; None for None."""
    if held is None:
        yield None
        return
    if not isinstance(held, kind):
        raise TypeError(f"{what}: a sotto.{kind.__name__} is needed, not a {type(held).__name__}")
    with held._held() as handle:
        yield handle


class Layout(Handle):
    """Tensors of a flat vector: names and shapes, one behind the other, as pairs or a dictionary."""

    SHARED = True

    def __init__(self, tensors):
        super().__init__("layout", "layout_create")
        pairs = tensors.items() if isinstance(tensors, collections.abc.Mapping) else tensors
        for name, shape in pairs:
            sizes = (ctypes.c_size_t * len(shape))(*shape)
            with self._held() as handle:
                call("layout_add", handle, encoded("layout", name), len(shape), sizes)


@contextlib.contextmanager
def layout_handle(tensors):
    """The handle of a layout for one call; None for None."""
    if tensors is None:
        yield None
        return
    layout = Layout(tensors)
    try:
        with layout._held() as handle:
            yield handle
    finally:
        layout.close()
