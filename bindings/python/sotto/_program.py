"""The program `sotto`, which `python -m sotto` and the command of a wheel hand over to."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from typing import NoReturn

_NAME = "sotto"
_HERE = pathlib.Path(__file__).resolve().parent


def _is_program(path):
    """Whether it is machine code: the command that a wheel installs has the program's name and would
    call itself."""
    try:
        with open(path, "rb") as file:
            return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _places():
    """Where the program may be: in the wheel, as installed, beside the library that the user named, and
    where a shell looks."""
    yield _HERE / "bin" / _NAME
    try:
        from ._place import PROGRAM  # type: ignore[import] # written by the installation

        yield (_HERE / PROGRAM).resolve()
    except ImportError:
        pass
    library = os.environ.get("SOTTO_LIBRARY", "")
    if os.sep in library:
        prefix = pathlib.Path(library).resolve().parent.parent
        yield prefix / "bin" / _NAME
        yield prefix / _NAME  # of a build that is not installed
    for folder in os.get_exec_path():
        yield pathlib.Path(folder) / _NAME


def program() -> str:
    """The program's path. Raises FileNotFoundError that says where it was looked for."""
    told = os.environ.get("SOTTO_PROGRAM")
    if told:
        return told
    for place in _places():
        if _is_program(place):
            return str(place)
    raise FileNotFoundError(
        "the program is not installed: it is neither in this module's folder, nor beside the library, "
        "nor on PATH; install it (pip install of a wheel, or cmake --install), or name the file in the "
        "variable SOTTO_PROGRAM"
    )


def main() -> NoReturn:
    """Becomes the program: process, arguments, exit status and signals are the program's."""
    # Python ignores these signals, which the program would inherit.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    path = "SOTTO_PROGRAM"
    try:
        path = program()
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as trouble:
        said = trouble if trouble.errno is None else f"{path} cannot be run: {trouble.strerror}"
        sys.exit(f"sotto: {said}")
