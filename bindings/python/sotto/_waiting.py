"""Calls that wait for other nodes, and that Ctrl-C ends all the same.

While the main thread is inside the library, Python runs no handler of a signal. So such a call is
made by a thread of its own, and the main thread waits for it, where handlers do run: one that
raises, as that of Ctrl-C does, interrupts the call.

A handler may raise at any point of the main thread. So whatever a call uses is taken and given back
by the thread that makes it, and nothing that the main thread leaves out can end that too early.
"""

import os
import queue
import threading


# A signal that comes as the main thread is about to wait does not wake it: it looks so often, in
# seconds.
_LOOK = 0.5


class _Request:
    """One call, which is either withdrawn or made, and then once."""

    def __init__(self, function):
        self.done = threading.Event()
        self._function = function
        self._error = None
        self._decided = threading.Lock()  # taken by whoever decides what becomes of it

    def withdraw(self):
        """Whether the call will not be made."""
        return self._decided.acquire(blocking=False)

    def make(self):
        """Makes the call unless it was withdrawn."""
        function, self._function = self._function, None  # which keeps objects of the caller's
        if self._decided.acquire(blocking=False):
            try:
                function()
            except BaseException as error:
                self._error = error

    def wait(self):
        """Until the call is made."""
        while not self.done.wait(_LOOK):
            pass

    def conclude(self):
        """Raises what the call raised."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error


class _Caller:
    """A thread that makes one call after the other for the main thread."""

    def __init__(self):
        self.process = os.getpid()
        self.calling = False  # a call is under way
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="sotto", daemon=True).start()

    def _serve(self):
        while True:
            request = self._calls.get()
            self.calling = True
            request.make()
            self.calling = False
            request.done.set()
            del request

    def run(self, function, interrupt):
        request = _Request(function)
        try:
            self._calls.put(request)
            request.wait()
        except BaseException:  # by a signal's handler
            self._abandon(request, interrupt)
            raise
        request.conclude()

    def _abandon(self, request, interrupt):
        """Ends the request, also where handlers raise again meanwhile."""
        try:
            if not request.withdraw():
                self._calls.put(request)  # a handler may have raised before the first time
                interrupt()
                request.wait()
        except BaseException:
            if not request.done.is_set():
                self._abandon(request, interrupt)


_caller = None


def waiting(function, interrupt):
    """Calls `function`, and raises what it raises. Where a signal's handler raises meanwhile, calls
    `interrupt`, which must make `function` return soon, and raises what the handler raised."""
    global _caller
    if threading.current_thread() is not threading.main_thread():
        function()  # no handler runs here
        return
    if _caller is None or _caller.process != os.getpid():  # a fork has no other threads
        _caller = _Caller()
    _caller.run(function, interrupt)
