#!/usr/bin/env python3
"""Makes libraries that take the places of CUDA's beside a libtorch that does without a GPU.

  scripts/cuda_stand_ins.py FOLDER           for programs: CUDA's own libraries, in which each
                                             function answers that there is no device
  scripts/cuda_stand_ins.py --python FOLDER  for `import torch` besides: libtorch_cuda.so and the
                                             libraries that it needs

FOLDER has libtorch's libraries; what lies there already stays, but for libtorch_cuda.so. Needs
readelf and objdump (binutils), ldd and gcc. scripts/libtorch calls it.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

CUDA = re.compile(r"libcu[a-z]+\.so\.[0-9]+")
WITH_KERNELS = re.compile(r"lib(cu|nv|nccl|torch_cuda|torch_nvshmem)[A-Za-z_]*\.so")
NO_DEVICE = 100  # cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE

# What the symbols of libtorch_cuda.so are made of. Functions give zeros, whose address is false as a
# bool; constructors make an object of a class whose functions do.
TORCH_CUDA = """\
extern char _ZTVN10__cxxabiv117__class_type_infoE[];
struct type { void* vtable; const char* name; };
static char zeros[4096] __attribute__((aligned(4096)));
static void* function(void) { return zeros; }
static struct type type = {_ZTVN10__cxxabiv117__class_type_infoE + 16, "no_cuda"};
static void* vtable[] = {0, &type, function, function, function, function, function, function,
                         function, function};
"""


def said_by(*command):
    """What a command prints, whatever its exit status; it needs no more than to exist."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False).stdout


def libraries_in(folder):
    return sorted(folder.glob("*.so"))


def needed_by(dynamic_sections):
    """The names of libraries in what `readelf -d` prints, sorted, each once."""
    return sorted(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic_sections)))


def symbols_of(library, symbol_tables):
    """The symbols that `objdump -T` shows with the version of this library, each once."""
    lines = [line.split() for line in symbol_tables.splitlines() if f"({library})" in line]
    return list(dict.fromkeys(words[-1] for words in lines))


def missing_in(relocations):
    """The symbols that `ldd -r` misses, but for Python's own, sorted, each once."""
    found = re.findall(r"^undefined symbol: ([A-Za-z_]\w*)", relocations, re.MULTILINE)
    return sorted({name for name in found if not re.match(r"_?Py", name)})


def cuda_code(symbols):
    """C for functions of CUDA's: texts say so, all others give the number of the error."""
    code = ""
    for name in symbols:
        if name.endswith(("String", "ErrorName")):
            code += f'const char* {name}(void) {{ return "no CUDA"; }}\n'
        else:
            code += f"int {name}(void) {{ return {NO_DEVICE}; }}\n"
    return code


def torch_cuda_code(symbols):
    """C for symbols of libtorch_cuda.so, which are mangled C++: types under which Python's classes
    are registered, tables, constructors and other functions."""
    code = TORCH_CUDA
    for name in symbols:
        if name.startswith("_ZTI"):
            code += (f"struct type {name} = "
                     f'{{_ZTVN10__cxxabiv117__class_type_infoE + 16, "{name[4:]}"}};\n')
        elif name.startswith("_ZTV"):
            code += f"void* {name}[64];\n"
        elif re.search("C[12]E", name):
            code += f"void {name}(void** self) {{ *self = vtable + 2; }}\n"
        else:
            code += f"void* {name}(void) {{ return zeros; }}\n"
    return code


def make_library(path, code, *flags):
    """Compiles C to a library at this path."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, *flags,
                    f"-Wl,-soname,{path.name}"], input=code, text=True, check=True)


def stand_in_for_cuda(folder):
    """A wheel for CUDA does not start without CUDA's libraries, of which a program on the CPU calls
    nothing."""
    symbol_tables = said_by("objdump", "-T", *libraries_in(folder))
    for name in needed_by(said_by("readelf", "-d", *libraries_in(folder))):
        path = folder / name
        if not CUDA.fullmatch(name) or path.exists():
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:
            versions.write(f"{name} {{ global: *; }};\n")
            versions.flush()
            make_library(path, cuda_code(symbols_of(name, symbol_tables)),
                         f"-Wl,--version-script={versions.name}")


def stand_in_for_torch_cuda(folder):
    """libtorch_python.so calls libtorch_cuda.so, half a gigabyte of kernels. In its place stands what
    the loader misses."""
    for name in needed_by(said_by("readelf", "-d", *libraries_in(folder))):
        if WITH_KERNELS.match(name) and not (folder / name).exists():
            make_library(folder / name, "")
    code = torch_cuda_code(missing_in(said_by("ldd", "-r", folder / "libtorch_python.so")))
    (folder / "libtorch_cuda.so").unlink(missing_ok=True)
    make_library(folder / "libtorch_cuda.so", code, "-lstdc++")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="store_true", help="for `import torch` besides")
    parser.add_argument("folder", type=pathlib.Path, help="where libtorch's libraries are")
    options = parser.parse_args()
    if not libraries_in(options.folder):
        parser.error(f"there are no libraries in {options.folder}: give the folder `lib` of a libtorch")
    if options.python and not (options.folder / "libtorch_python.so").exists():
        parser.error(f"there is no libtorch_python.so in {options.folder}: leave --python out")
    try:
        stand_in_for_cuda(options.folder)
        if options.python:
            stand_in_for_torch_cuda(options.folder)
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is missing: on Debian, apt-get install binutils gcc")
    except subprocess.CalledProcessError as error:
        sys.exit(f"gcc cannot make a stand-in in {options.folder}: it ends with {error.returncode}")


if __name__ == "__main__":
    main()
