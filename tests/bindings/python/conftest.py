"""The module of the source tree, and the library and program that CTest names."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Where the tests run against an installed module, it is on the path already.
if "SOTTO_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
