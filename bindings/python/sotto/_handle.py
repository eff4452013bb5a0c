"""What all objects of the library have in common: a handle, one thread at a time, and an end."""

import contextlib
import ctypes
import os
import threading
import weakref

from ._errors import Refused
from ._library import call, library


def _destroy(destroy, handle, process):
    """In the process that made it: a fork has the memory, but not the threads."""
    if os.getpid() == process:
        destroy(handle)


class Handle:
    """Owns a handle of sotto.h, which close(), or the end of the object, destroys."""

    def __init__(self, kind, create, *arguments):
        handle = ctypes.c_void_p()
        call(create, *arguments, ctypes.byref(handle))
        self._kind = kind
        self._turn = threading.Lock()
        self._handle = handle
        destroy = getattr(library, f"sotto_{kind}_destroy")
        self._end = weakref.finalize(self, _destroy, destroy, handle, os.getpid())

    @contextlib.contextmanager
    def _held(self):
        """The handle, for one thread at a time."""
        if not self._turn.acquire(blocking=False):
            raise Refused(
                f"{self._kind}: another thread is inside a call; it takes one at a time"
            )
        try:
            if not self._end.alive:
                raise Refused(f"{self._kind}: it is closed")
            yield self._handle
        finally:
            self._turn.release()

    def close(self):
        """Destroys what the library holds; again, it does nothing."""
        if self._end.alive:
            with self._held():
                self._end()


class Layout(Handle):
    """Tensors of a flat vector: pairs of name and shape, one behind the other."""

    def __init__(self, tensors):
        super().__init__("layout", "layout_create")
        for name, shape in tensors:
            sizes = (ctypes.c_size_t * len(shape))(*shape)
            with self._held() as handle:
                call("layout_add", handle, name.encode(), len(shape), sizes)


@contextlib.contextmanager
def layout_handle(tensors):
    """The handle of a layout for one call; None for None."""
    if tensors is None:
        yield None
        return
    layout = Layout(tensors)
    try:
        yield layout._handle
    finally:
        layout.close()
