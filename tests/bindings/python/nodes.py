"""A problem whose gradients NumPy computes with the bits of the C++ task, and nodes that solve it."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

import numpy

import sotto

DIMENSION = 50
HELD = []


def free_port():
    """A TCP port of loopback that nobody uses: a socket holds it to the end of this process."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    # Servers that set SO_REUSEADDR can listen at it; nobody who asks for any port is given it.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    HELD.append(holder)
    return holder.getsockname()[1]


def federation(folder, names):
    """The files of sites on this host, by their names."""
    sites = folder / "sites.csv"
    lines = ["name,address"] + [f"{name},127.0.0.1:{free_port()}" for name in names]
    sites.write_text("\n".join(lines) + "\n")
    made = folder / "federation"
    program = os.environ.get("SOTTO_PROGRAM", "sotto")
    subprocess.run(
        [program, "site", "init", str(sites), "--out", str(made), "--quiet"], check=True
    )
    files = {name: made / name / "site.toml" for name in names}
    for file in files.values():  # other tests run meanwhile
        text = file.read_text()
        assert "monitor = " in text
        file.write_text(re.sub(r'monitor = "[^"]*"', f'monitor = "{free_port()}"', text))
    return files


def problem(nodes):
    """f_i(x) = ½ Σ h (x − c)²; the file of `--task quadratic:FILE`."""
    random = numpy.random.default_rng(3)
    return {
        "start": random.normal(size=DIMENSION).astype(numpy.float32).tolist(),
        "nodes": [
            {
                "h": random.uniform(0.5, 1.5, DIMENSION).tolist(),
                "c": random.normal(size=DIMENSION).tolist(),
            }
            for _ in range(nodes)
        ],
    }


def start_of(given):
    return numpy.array(given["start"], dtype=numpy.float32)


def gradient_of(given, rank, x):
    node = given["nodes"][rank]
    away = x.astype(numpy.float64) - numpy.array(node["c"])
    return (numpy.array(node["h"]) * away).astype(numpy.float32)


def train(given, rank, rounds, x, **settings):
    with sotto.Optimizer(x, nodes=len(given["nodes"]), rank=rank, **settings) as optimizer:
        while optimizer.round < rounds:
            optimizer.step(gradient_of(given, rank, x))


def threads(count, node):
    """Runs `node(rank)` for every rank at once; raises what one of them raised."""
    troubles = []

    def run(rank):
        try:
            node(rank)
        except BaseException as trouble:  # pylint: disable=broad-except
            troubles.append(trouble)

    all_threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    if troubles:
        raise troubles[0]


def write_problem(given, path):
    path.write_text(json.dumps(given))


def environment():
    """Variables of a Python program that finds this module, and what else this one finds."""
    module = pathlib.Path(sotto.__file__).resolve().parents[1]
    told = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(module)] + ([told] if told else []))}


def run_script(path, *arguments):
    """Runs a Python program with this module and library."""
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
