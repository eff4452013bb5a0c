"""The block of `with` around a run."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Optional, TypeVar

from ._errors import Ended

_Self = TypeVar("_Self", bound="RunBlock")


class RunBlock:
    """As a context manager it finishes the run at the end of the block, also of one that Ended leaves,
    or tells all nodes what the block raised."""

    def finish(self) -> None:
        raise NotImplementedError

    def give_up(self, reason: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None or issubclass(kind, Ended):
                self.finish()
            else:
                with contextlib.suppress(Exception):  # what is being raised matters more
                    reason = f"{kind.__name__}: {error}".replace("\0", " ")
                    self.give_up(reason.encode("utf-8", "replace").decode())
        finally:
            self._leave()

    def _leave(self) -> None:
        """The end of the block, whatever it was."""
        self.close()
