"""`python -m sotto`: which program it becomes, and that it leaves nothing of Python behind."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

import sotto

MODULE = pathlib.Path(sotto.__file__).resolve().parents[1]
LIBRARY = os.environ.get("SOTTO_LIBRARY", "")
PROGRAM = os.environ.get("SOTTO_PROGRAM", "")


def run(*arguments, code=None, **variables):
    environment = {**os.environ, "PYTHONPATH": str(MODULE), **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    told = ["-c", code] if code else ["-m", "sotto"]
    return subprocess.run(
        [sys.executable, *told, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def as_shell(script, **variables):
    """The shell in the program's place."""
    return run("-c", script, SOTTO_PROGRAM="/bin/sh", **variables)


def test_arguments_and_exit_status_are_the_programs():
    done = as_shell('printf "<%s>" "$0" "$@"; exit 7')
    assert done.returncode == 7
    done = run(
        "-c", 'printf "<%s>" "$@"; echo oh >&2', "0", "a b", "", "ü*", SOTTO_PROGRAM="/bin/sh"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "<a b><><ü*>", "oh\n")


def test_it_is_the_process_that_was_started():
    with subprocess.Popen(
        [sys.executable, "-m", "sotto", "-c", "echo $$; kill -TERM $$"],
        env={**os.environ, "PYTHONPATH": str(MODULE), "SOTTO_PROGRAM": "/bin/sh"},
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.communicate(timeout=120)[0] == f"{started.pid}\n"
    assert started.returncode == -signal.SIGTERM


def test_no_signal_stays_ignored():
    done = as_shell("grep SigIgn /proc/self/status")
    assert int(done.stdout.split()[1], 16) == 0, done.stdout


def test_a_program_that_was_told_but_is_not_there():
    done = run("--version", SOTTO_PROGRAM="/nowhere/sotto")
    assert done.returncode == 1
    assert done.stderr == "sotto: /nowhere/sotto cannot be run: No such file or directory\n"


def test_a_program_that_may_not_be_run(tmp_path):
    place = tmp_path / "sotto"
    place.write_text("no program")
    done = run("--version", SOTTO_PROGRAM=str(place))
    assert done.returncode == 1
    assert done.stderr == f"sotto: {place} cannot be run: Permission denied\n"


def library_elsewhere(folder):
    """The library, away from the program of its build."""
    folder.mkdir(parents=True)
    return shutil.copy(LIBRARY, folder / "libsotto.so.0")


@pytest.mark.skipif(not LIBRARY, reason="SOTTO_LIBRARY names no library")
def test_without_a_program_it_says_what_to_do(tmp_path):
    library = library_elsewhere(tmp_path / "a" / "lib")
    done = run("--version", SOTTO_PROGRAM=None, SOTTO_LIBRARY=library, PATH=str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for word in ("not installed", "PATH", "SOTTO_PROGRAM", "cmake --install"):
        assert word in done.stderr


@pytest.mark.skipif(
    not LIBRARY or not PROGRAM, reason="SOTTO_LIBRARY or SOTTO_PROGRAM names nothing"
)
@pytest.mark.parametrize("place", ["sotto", "bin/sotto"])
def test_it_finds_the_program_beside_the_library(tmp_path, place):
    library = library_elsewhere(tmp_path / "lib")
    program = tmp_path / place
    program.parent.mkdir(exist_ok=True)
    program.symlink_to(PROGRAM)
    done = run("--version", SOTTO_PROGRAM=None, SOTTO_LIBRARY=library, PATH="/nonexistent")
    assert (done.returncode, done.stdout) == (0, f"sotto {sotto.__version__}\n"), done.stderr


@pytest.mark.skipif(
    not LIBRARY or not PROGRAM, reason="SOTTO_LIBRARY or SOTTO_PROGRAM names nothing"
)
def test_on_path_it_takes_the_program_and_not_the_command_that_leads_here(tmp_path):
    library = library_elsewhere(tmp_path / "a" / "lib")
    scripts, programs = tmp_path / "scripts", tmp_path / "programs"
    scripts.mkdir()
    programs.mkdir()
    command = scripts / "sotto"
    command.write_text(f"#!{sys.executable}\nfrom sotto._program import main\nmain()\n")
    command.chmod(0o755)
    (programs / "sotto").symlink_to(PROGRAM)
    variables = {"SOTTO_PROGRAM": None, "SOTTO_LIBRARY": library}
    done = run("--version", PATH=f"{scripts}:{programs}", **variables)
    assert (done.returncode, done.stdout) == (0, f"sotto {sotto.__version__}\n"), done.stderr
    alone = run("--version", PATH=str(scripts), **variables)
    assert alone.returncode == 1 and "not installed" in alone.stderr
