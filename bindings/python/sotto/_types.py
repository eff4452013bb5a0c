"""The types that annotations name; nothing of it is needed to run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Union


class NumPyLike(Protocol):
    """A NumPy array, and what says like one where it lies."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Address, shape and type."""


class TensorLike(Protocol):
    """A PyTorch tensor."""

    def data_ptr(self) -> int:
        """Where its elements lie."""

    def is_contiguous(self) -> bool:
        """Whether they lie one behind the other."""


Array = Union[NumPyLike, TensorLike]

# A file's name.
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

# What a setting may be: a text, a number, a path; for `job` a dictionary; None leaves it out.
Setting = Union[str, float, "os.PathLike[str]", Mapping[str, object], None]

# Tensors of a flat vector, names and shapes.
Layout = Union[Mapping[str, Sequence[int]], Iterable["tuple[str, Sequence[int]]"]]
