"""sotto as installed in a folder, runs.py FOLDER, without NumPy: one node, four threads, and two processes for
each way to each other. Fails where a library is loaded that neither the folder has nor every Linux.
"""

import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import threading

# What PEP 600 lets a manylinux wheel take from the system.
EVERYWHERE = {
    "ld-linux-x86-64",
    "ld-linux-aarch64",
    "libc",
    "libdl",
    "libgcc_s",
    "libm",
    "libpthread",
    "libresolv",
    "librt",
    "libstdc++",
    "libutil",
    "libz",
}


class Floats:
    """An array of 32-bit floats."""

    def __init__(self, *values):
        self.memory = (ctypes.c_float * len(values))(*values)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": (len(values),),
            "data": (ctypes.addressof(self.memory), False),
        }


def mapped():
    """The shared libraries of this process, but for Python's own modules."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(maxsplit=5)[-1].strip() for line in maps if line.count("/")}
    return {pathlib.Path(file) for file in files if ".so" in file and "/lib-dynload/" not in file}


BEFORE = mapped()
import sotto  # noqa: E402


def train(target, **settings):
    """Where 40 steps towards `target` lead."""
    x = Floats(0.0, 0.0)
    with sotto.Optimizer(x, algorithm="dcd", compressor="quant:8", lr=0.2, **settings) as optimizer:
        for _ in range(40):
            optimizer.step(Floats(*(value - target for value in x.memory)))
    return x.memory[0]


def threads(count):
    store = sotto.Store()
    found = {}

    def node(rank):
        found[rank] = train(rank, nodes=count, rank=rank, store=store)

    nodes = [threading.Thread(target=node, args=(rank,)) for rank in range(count)]
    for each in nodes:
        each.start()
    for each in nodes:
        each.join()
    mean = sum(found.values()) / count
    assert abs(mean - (count - 1) / 2) < 0.1, found


def processes(transport, count):
    free = socket.socket()  # holds the port until the nodes have ended
    free.bind(("127.0.0.1", 0))
    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port = free.getsockname()[1]
    launched = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    nodes = [
        subprocess.Popen(
            [sys.executable, __file__, sys.argv[1], transport],
            env={**os.environ, **launched, "RANK": str(rank)},
        )
        for rank in range(count)
    ]
    assert [node.wait(120) for node in nodes] == [0] * count, transport
    free.close()


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        assert abs(train(int(os.environ["RANK"]), transport=sys.argv[2], timeout=60) - 0.5) < 0.2
    else:
        assert abs(train(3.0, nodes=1) - 3.0) < 0.01
        threads(4)
        for transport in ("gloo", "zmq"):
            processes(transport, 2)
    for library in sorted(mapped() - BEFORE):
        known = library.is_relative_to(folder) or library.name.split(".so")[0] in EVERYWHERE
        assert known, f"{library} is the system's"
    place = pathlib.Path(sotto.__file__).resolve()
    assert place.is_relative_to(folder), place
    if len(sys.argv) == 2:
        print(f"sotto {sotto.__version__} runs on Python {sys.version.split()[0]}")


main()
