"""Adds to a wheel that auditwheel has repaired the licences of what is in it, and prints what it brings
along and needs; called by scripts/wheel.

    finish_wheel.py WHEEL BINARY...

The wheel's sotto.libs/ holds copies of this system's libraries. The BINARYs, of which the wheel was
made, lead to the originals, and those to their packages.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

# Debian packages of headers alone, which no library gives away.
_COMPILED_IN = ("cppzmq-dev", "libcli11-dev", "libeigen3-dev", "nlohmann-json3-dev")

_NOTICE = """\
sotto is under the Apache License 2.0 (LICENSE). Of {system} this wheel has

- in sotto.libs/ the libraries listed below, each under its own licence. They are the system's, but for
  their names and the folder in which they look for each other, and may be replaced by others;
- code from the headers of the packages without files.

Each package's licences are in the file of its name in this folder, and texts that several refer to in
common-licenses/. Its source is the source package of that version.

"""


def said_by(*command):
    """What a command prints; nothing where there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def originals(binaries):
    """Paths of all libraries that the binaries load, by the files' names."""
    paths = re.findall(r"=> (/\S+)", "".join(said_by("ldd", binary) for binary in binaries))
    return {path.name: path for path in (pathlib.Path(each).resolve() for each in paths)}


def packages_of(paths):
    """The Debian packages of files, by path; those that no package has are left out. Packages may know a
    file by its path before /lib moved below /usr."""
    known = {
        str(form): path for path in paths for form in (path, pathlib.Path("/", *path.parts[2:]))
    }
    found = re.findall(
        r"^([^:,\s]+)[^/\n]* (/.*)$", said_by("dpkg-query", "--search", *known), re.M
    )
    return {known[file]: package for package, file in found if file in known}


def versions_of(packages):
    """By package; those that are not installed are left out."""
    lines = said_by(
        "dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *packages
    ).splitlines()
    return dict(words for words in map(str.split, lines) if len(words) == 2)


def system_name():
    release = pathlib.Path("/etc/os-release")
    text = release.read_text(encoding="utf-8") if release.exists() else ""
    return (re.findall(r'^PRETTY_NAME="?([^"\n]*)', text, re.M) or ["the system that built it"])[0]


def licences(files_by_package):
    """Texts by their names in the folder of licences."""
    texts = {}
    versions = versions_of(files_by_package)
    lines = []
    for package, files in sorted(files_by_package.items()):
        of_package = pathlib.Path("/usr/share/doc", package, "copyright")
        text = of_package.read_text(encoding="utf-8", errors="replace")
        texts[f"{package}.txt"] = text
        for common in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text):
            path = pathlib.Path("/usr/share/common-licenses", common)
            if path.exists():
                texts[f"common-licenses/{path.resolve().name}"] = path.read_text(encoding="utf-8")
        lines.append(f"{package} {versions[package]}: {', '.join(files) or 'headers'}\n")
    texts["NOTICE"] = _NOTICE.format(system=system_name()) + "".join(lines)
    return texts


def rewrite(wheel, texts):
    """Puts the texts among the wheel's licences and in its list of files, and compresses all of it."""
    finished = wheel.with_suffix(".finished")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(finished, "w") as new:
        (record,) = (each for each in old.infolist() if each.filename.endswith(".dist-info/RECORD"))
        folder = record.filename.rpartition("/")[0]
        lines = [line for line in old.read(record).decode().splitlines() if line]
        for each in old.infolist():
            if each is not record:
                new.writestr(each, old.read(each), zipfile.ZIP_DEFLATED)
        for name, text in sorted(texts.items()):
            info = zipfile.ZipInfo(f"{folder}/licenses/{name}", record.date_time)
            info.external_attr = 0o100644 << 16
            data = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.insert(0, f"{info.filename},sha256={digest},{len(data)}")
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
        new.writestr(record, "\n".join(lines) + "\n", zipfile.ZIP_DEFLATED)
    finished.replace(wheel)


def newest_cxx(wheel):
    """The newest symbols of libstdc++ that anything in the wheel asks for."""
    with zipfile.ZipFile(wheel) as zipped:
        asked = (
            re.findall(rb"GLIBCXX_3\.4\.(\d+)", zipped.read(name)) for name in zipped.namelist()
        )
        return max((int(number) for numbers in asked for number in numbers), default=0)


def main():
    wheel, binaries = pathlib.Path(sys.argv[1]), sys.argv[2:]
    with zipfile.ZipFile(wheel) as zipped:
        grafted = sorted(re.findall(r"^sotto\.libs/(.+)$", "\n".join(zipped.namelist()), re.M))
    paths = originals(binaries)
    # auditwheel puts a part of the file's digest into its name.
    sources = {
        name: paths.get(re.sub(r"-[0-9a-f]{8}(?=\.)", "", name, count=1)) for name in grafted
    }
    packages = packages_of([path for path in sources.values() if path])
    files_by_package = {package: [] for package in versions_of(_COMPILED_IN)}
    unknown = [name for name, path in sources.items() if path not in packages]
    for name, path in sources.items():
        if path in packages:
            files_by_package.setdefault(packages[path], []).append(name)
    rewrite(wheel, licences(files_by_package))
    kind, major, minor = re.findall(r"(many|musl)linux_(\d+)_(\d+)", wheel.name)[-1]
    libc = f"{'musl' if kind == 'musl' else 'glibc'} {major}.{minor}"
    print(
        f"It brings the module, the program and {len(grafted)} libraries of this system, and runs with Python "
        f"3.9 and later on Linux with {libc}, a libstdc++ with GLIBCXX_3.4.{newest_cxx(wheel)} and "
        "zlib, or later ones."
    )
    if unknown:
        print(
            f"Of {', '.join(unknown)} no package says the licence: add it before you hand the wheel on.",
            file=sys.stderr,
        )


main()
