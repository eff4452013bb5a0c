"""Calls that wait for other nodes, and that Ctrl-C ends all the same.

While the main thread is inside the library, Python runs no handler of a signal. So such a call is
made by a thread of its own, and the main thread waits for it, where handlers do run: one that
raises, as that of Ctrl-C does, interrupts the call.
"""

import os
import queue
import threading


class _Caller:
    """A thread that makes one call after the other for the main thread."""

    def __init__(self):
        self.process = os.getpid()
        self.calling = False  # a call is under way
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="sotto", daemon=True).start()

    def _serve(self):
        while True:
            function, results, done = self._calls.get()
            self.calling = True
            try:
                results.append(function())
            except BaseException as error:
                results.append(error)
            self.calling = False
            done.set()

    def run(self, function, interrupt):
        results = []
        done = threading.Event()
        queued = False
        raised = None
        while True:
            try:
                if not queued:
                    self._calls.put((function, results, done))
                    queued = True
                while not done.is_set():
                    done.wait()
                break
            except BaseException as error:  # by a signal's handler
                if not queued:
                    raise
                raised = error
                interrupt()
        if raised is not None:
            raise raised
        return results[0]


_caller = None


def waiting(function, interrupt):
    """Returns what `function` does, an exception or None. Where a signal's handler raises meanwhile,
    calls `interrupt`, which must make `function` return soon, and raises that then."""
    global _caller
    if threading.current_thread() is not threading.main_thread():
        return function()  # no handler runs here
    if _caller is None or _caller.process != os.getpid():  # a fork has no other threads
        _caller = _Caller()
    return _caller.run(function, interrupt)
