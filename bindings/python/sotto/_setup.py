"""What a node is made of beside its settings and parameters."""

from __future__ import annotations

from ._handle import Handle
from ._library import call


class Setup(Handle):
    """The parts that are given, as handles; None leaves one out."""

    def __init__(self, **parts):
        super().__init__("optimizer_setup", "optimizer_setup_create")
        with self._held() as handle:
            for name, part in parts.items():
                call(f"optimizer_setup_set_{name}", handle, part)
