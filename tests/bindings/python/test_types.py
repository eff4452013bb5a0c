"""The module's annotations: that there are some, that they hold, and that Python 3.9 reads them."""

import ast
import pathlib
import subprocess
import sys

import pytest

import sotto

PACKAGE = pathlib.Path(sotto.__file__).resolve().parent
FILES = sorted(PACKAGE.glob("*.py"))


def mypy(folder, *arguments):
    """What it finds; nothing where all is well. Skips where it is not installed."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", f"--cache-dir={folder}", *arguments],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return done.stdout + done.stderr


def definitions():
    """Public classes and functions: those of `sotto` and those of sotto.torch."""
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            name = getattr(node, "name", "_")
            if name in [*sotto.__all__, "Handle", "NodeHandle"] or (
                file.name == "torch.py" and not name.startswith("_")
            ):
                yield file.name, node


def functions():
    for file, node in definitions():
        if isinstance(node, ast.FunctionDef):
            yield f"{file}: {node.name}", node
        for member in getattr(node, "body", []):
            offered = isinstance(member, ast.FunctionDef) and (
                not member.name.startswith("_")
                or member.name in ("__init__", "__enter__", "__exit__")
            )
            if offered:
                yield f"{file}: {node.name}.{member.name}", member


def test_each_public_function_says_its_types():
    found = dict(functions())
    assert len(found) > 50
    untyped = []
    for name, function in found.items():
        given = function.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        missing = [
            each.arg
            for each in arguments
            if each and each.arg != "self" and each.annotation is None
        ]
        if missing or function.returns is None:
            untyped.append(f"{name}: {', '.join(missing) or 'what it returns'}")
    assert not untyped


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_python_3_9_reads_it(file):
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    # Annotations are evaluated unless this is said, and some are of later versions.
    said = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    annotated = any(isinstance(node, ast.FunctionDef) and node.returns for node in ast.walk(tree))
    assert said or not annotated


def test_annotations_hold(tmp_path):
    # PyTorch's own would take minutes to read.
    assert not mypy(tmp_path, "--follow-imports=skip", *FILES)


def test_a_program_is_checked_against_them(tmp_path):
    program = pathlib.Path(__file__).with_name("typed_program.py")
    assert not mypy(tmp_path, "--strict", "--follow-imports=silent", program)
    marked = program.read_text(encoding="utf-8")
    unmarked = tmp_path / "unmarked.py"
    unmarked.write_text(marked.replace("# type: ignore", "# "), encoding="utf-8")
    found = mypy(tmp_path, "--strict", "--follow-imports=silent", unmarked)
    assert found.count("error:") == marked.count("# type: ignore"), found
