"""The block of `with` around a node that others outlive."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, TypeVar

from ._errors import Stopped

_Self = TypeVar("_Self", bound="Leaving")


class Leaving:
    """As a context manager it finishes at the end of the block, also of one that Ctrl-C ends, or a call
    that stop() has ended, and leaves at once when the block raised anything else."""

    _told_to_stop = False  # stop() was called

    def _may_finish(self) -> bool:
        """Whether it is open, and this process's: a fork has not the threads to finish with."""
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _leave_early(self) -> None:
        """Ends in good order where the block was told to end."""
        self.finish()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool:
        stopped = kind is not None and issubclass(kind, Stopped) and self._told_to_stop
        try:
            told = kind is not None or self._told_to_stop
            ends = kind is None or stopped or issubclass(kind, KeyboardInterrupt)
            if ends and self._may_finish():
                self._leave_early() if told else self.finish()
        finally:
            self.close()
        return stopped
