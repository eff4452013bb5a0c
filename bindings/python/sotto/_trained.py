"""Which memory the optimizers and sites of this process train."""

from __future__ import annotations

import os
import threading
import weakref

from ._errors import Refused


class _Trained:
    """The memory that optimizers of this process train, each piece by one."""

    def __init__(self):
        self._extents = {}  # process, begin and end, by the owner's id
        self._taking = threading.Lock()

    def take(self, owner, address, length):
        """Has it until `owner` gives it back or is no more; raises Refused where another has it."""
        process, end = os.getpid(), address + 4 * length
        with self._taking:
            for other, begins, ends in list(self._extents.values()):
                # A fork has its own copy of what its parent trains.
                if other == process and address < ends and begins < end:
                    raise Refused(
                        "parameters: another optimizer of this process trains them, and two would "
                        "undo each other's steps: close() that one, or give each its own array"
                    )
            self._extents[id(owner)] = (process, address, end)
        weakref.finalize(owner, self._extents.pop, id(owner), None)

    def give_back(self, owner):
        self._extents.pop(id(owner), None)


trained = _Trained()
