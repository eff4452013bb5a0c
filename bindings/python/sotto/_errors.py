"""Exceptions, one for each status of sotto.h."""


class Error(Exception):
    """What every call may raise; `status` is the number of sotto.h."""

    status: int = -1


class Refused(Error, ValueError):
    """A mistake in the request: a wrong setting, length or order of calls."""

    status = 1


class Malformed(Error):
    """Bytes that break the format."""


class Unexpected(Error):
    """Well-formed, but of another run, or made under other settings."""


class NonFinite(Error, ArithmeticError):
    """A NaN or an infinity."""


class PeerLost(Error, ConnectionError):
    """A peer closed, crashed or became unreachable."""


class Deadline(Error, TimeoutError):
    """A wait ended without what it waited for."""


class InputOutput(Error, OSError):
    """The operating system refused a read or write."""


class BudgetSpent(Error):
    """The privacy budget is spent."""


class Ended(Error):
    """The nodes have agreed to end the run here, as one asks for it or is out of data: nothing
    has changed, and the state can be saved and the run finished."""


class Stopped(Error):
    """A call that waited for other nodes was ended: by Ctrl-C, which ends an Optimizer's run with it,
    or by stop() or cancel()."""


class Internal(Error):
    """None of the others; please report it with its message."""


_BY_STATUS = {
    1: Refused,
    2: Malformed,
    3: Unexpected,
    4: NonFinite,
    5: PeerLost,
    6: Deadline,
    7: InputOutput,
    8: BudgetSpent,
    9: Refused,
    11: Internal,
    12: Ended,
    13: Stopped,
}


def error_of(status, message):
    """The exception of a status that is not 0."""
    if status == 10:
        return MemoryError(message)
    error = _BY_STATUS.get(status, Internal)(message)
    error.status = status
    return error
