"""scripts/cuda_stand_ins.py: what it reads of other programs' output, and the C that it writes."""

import ctypes
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import cuda_stand_ins  # noqa: E402

READELF = """
File: a.so
 0x0000000000000001 (NEEDED)             Shared library: [libcudart.so.12]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libowner.so.1]
File: b.so
 0x0000000000000001 (NEEDED)             Shared library: [libcudart.so.12]
"""
OBJDUMP = """
0000000000000000      DF *UND*  0000000000000000 (libcudart.so.12) cudaMalloc
0000000000000000      DF *UND*  0000000000000000 (libcudart.so.12) cudaMalloc
0000000000000000      DF *UND*  0000000000000000 (libcudart.so.12) cudaGetErrorString
0000000000000000      DF *UND*  0000000000000000 (libcublas.so.12) cublasCreate
0000000000000000 g    DF .text  0000000000000010  Base        ready
"""
LDD = """
\tlibc.so.6 => /lib/libc.so.6 (0x1)
undefined symbol: PyList_New\t(./libtorch_python.so)
undefined symbol: _Py_NoneStruct\t(./libtorch_python.so)
undefined symbol: _ZN4nccl9availableEv\t(./libtorch_python.so)
undefined symbol: _ZN4nccl7OptionsC1Eb\t(./libtorch_python.so)
undefined symbol: _ZN4nccl9availableEv\t(./libtorch_python.so)
"""


def test_output_of_others_is_read():
    assert cuda_stand_ins.needed_by(READELF) == ["libc.so.6", "libcudart.so.12"]
    assert cuda_stand_ins.symbols_of("libcudart.so.12", OBJDUMP) == ["cudaMalloc", "cudaGetErrorString"]
    assert cuda_stand_ins.missing_in(LDD) == ["_ZN4nccl7OptionsC1Eb", "_ZN4nccl9availableEv"]
    for read in cuda_stand_ins.needed_by, cuda_stand_ins.missing_in:
        assert read("") == []


def test_functions_of_cuda_answer_that_there_is_no_device(folder):
    path = folder / "libcudart.so.12"
    names = ["cudaMalloc", "cudaGetErrorString", "cudaGetErrorName"]
    cuda_stand_ins.make_library(path, cuda_stand_ins.cuda_code(names))
    library = ctypes.CDLL(str(path))
    assert library.cudaMalloc() == cuda_stand_ins.NO_DEVICE
    for text in library.cudaGetErrorString, library.cudaGetErrorName:
        text.restype = ctypes.c_char_p
        assert text() == b"no CUDA"


def test_symbols_of_torch_cuda_can_be_used(folder):
    path = folder / "libtorch_cuda.so"
    names = ["_ZN4nccl9availableEv", "_ZN4nccl7OptionsC1Eb", "_ZTIN4nccl5GroupE", "_ZTVN4nccl5GroupE"]
    cuda_stand_ins.make_library(path, cuda_stand_ins.torch_cuda_code(names), "-lstdc++")
    library = ctypes.CDLL(str(path))
    available = library._ZN4nccl9availableEv
    available.restype = ctypes.c_void_p
    assert available() % 256 == 0  # false, where its caller takes it for a bool
    made = ctypes.c_void_p()
    library._ZN4nccl7OptionsC1Eb(ctypes.byref(made))
    virtual = ctypes.cast(made, ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_void_p)))[0]
    assert virtual() == available()
    assert ctypes.c_void_p.in_dll(library, "_ZTIN4nccl5GroupE").value
    name = ctypes.c_char_p.from_address(ctypes.addressof(
        ctypes.c_void_p.in_dll(library, "_ZTIN4nccl5GroupE")) + ctypes.sizeof(ctypes.c_void_p))
    assert name.value == b"N4nccl5GroupE"


def test_a_folder_without_libtorch_is_refused(folder):
    def said(*arguments):
        ended = subprocess.run([SCRIPTS / "cuda_stand_ins.py", *arguments], capture_output=True,
                               text=True, check=False)
        return ended.returncode, ended.stderr

    status, error = said(folder)
    assert status == 2 and f"there are no libraries in {folder}: give" in error, error
    cuda_stand_ins.make_library(folder / "libc10.so", "")
    status, error = said("--python", folder)
    assert status == 2 and "there is no libtorch_python.so" in error, error
    assert said(folder) == (0, "")


if __name__ == "__main__":
    test_output_of_others_is_read()
    for case in (test_functions_of_cuda_answer_that_there_is_no_device,
                 test_symbols_of_torch_cuda_can_be_used,
                 test_a_folder_without_libtorch_is_refused):
        with tempfile.TemporaryDirectory() as made:
            case(pathlib.Path(made))
