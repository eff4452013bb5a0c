"""Objects that end while others still want them: closed, shared, forked, or at the interpreter's
end."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import nodes
import sotto
from sotto import _waiting


def test_a_store_that_is_closed_serves_nobody():
    x = numpy.zeros(8, numpy.float32)
    store = sotto.Store()
    optimizer = sotto.Optimizer(x, store=store, nodes=1, rank=0)
    store.close()
    store.close()
    with pytest.raises(sotto.Refused, match="store: it is closed"):
        sotto.Optimizer(x, store=store, nodes=1, rank=0)
    optimizer.step(x)  # it has the store for as long as it needs it
    optimizer.close()
    with pytest.raises(TypeError, match="store: a sotto.Store is needed, not a Optimizer"):
        sotto.Optimizer(x, store=optimizer, nodes=1, rank=0)


def test_a_store_and_a_topology_are_shared():
    store = sotto.Store()
    ring = sotto.Topology("ring", nodes=64)
    expected = ring.weights()
    ready = threading.Barrier(8, timeout=60)

    def use(rank):
        ready.wait()
        for _ in range(50):
            assert numpy.array_equal(ring.weights(), expected)
            x = numpy.zeros(8, numpy.float32)
            sotto.Optimizer(x, store=store, nodes=8, rank=rank).close()

    nodes.threads(8, use)


def test_what_another_process_made_is_refused_after_a_fork():
    x = numpy.zeros(8, numpy.float32)
    optimizer = sotto.Optimizer(x, nodes=1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            optimizer.step(x)
        except sotto.Refused as refused:
            optimizer.close()
            status = 0 if "another process made it" in str(refused) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    optimizer.step(x)
    optimizer.close()


BUSY = """
import threading
import numpy
import sotto

def {name}(optimizer, started):
    started.set()
    {body}

x = numpy.zeros(100_000, numpy.float32)
optimizer = sotto.Optimizer(x, {settings})
started = threading.Event()
threading.Thread(target={name}, args=(optimizer, started), daemon=True).start()
started.wait(60)
for _ in range(1000):  # until it is inside a call
    try:
        optimizer.round
    except sotto.Refused:
        break
"""


@pytest.mark.parametrize(
    "body, settings",
    [
        ("while True: optimizer.step(x)", "nodes=1"),
        ("optimizer.connect()", "nodes=2, rank=0, store=sotto.Store()"),
    ],
)
def test_the_interpreter_may_end_while_a_daemon_thread_is_inside_a_call(body, settings):
    script = BUSY.format(name="run", body=body, settings=settings)
    path = os.pathsep.join(sys.path)
    for _ in range(4):
        ended = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            timeout=60,
            text=True,
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_block_that_raises_tells_all_nodes_why():
    given = nodes.problem(4)
    store = sotto.Store()
    said = [None] * 4

    def node(rank):
        x = nodes.start_of(given)
        try:
            with sotto.Optimizer(x, nodes=4, rank=rank, store=store) as optimizer:
                while True:
                    if rank == 2 and optimizer.round == 5:
                        raise ValueError("the disk is full")
                    optimizer.step(nodes.gradient_of(given, rank, x))
        except (sotto.PeerLost, ValueError) as error:
            said[rank] = str(error)

    nodes.threads(4, node)
    assert said[2] == "the disk is full"
    for rank in (0, 1, 3):
        assert said[rank] == "node 2: ValueError: the disk is full"


def test_a_handler_that_raises_at_any_point_leaves_no_call_that_uses_the_optimizer():
    place = _waiting.__file__

    def raising_at(line_number):
        lines = 0

        def trace(frame, event, _):
            nonlocal lines
            if frame.f_code.co_filename != place:
                return trace
            if event == "line":
                lines += 1
                if lines == line_number:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        return trace

    raised = 0
    for line_number in range(1, 40):
        optimizer = sotto.Optimizer(
            numpy.zeros(8, numpy.float32),
            nodes=2,
            rank=0,
            store=sotto.Store(),
            timeout=2,
        )
        sys.settrace(raising_at(line_number))
        try:
            optimizer.connect()
        except KeyboardInterrupt:
            raised += 1
            seen = _waiting._caller
            while seen and not seen._calls.empty():
                pass
            time.sleep(0)  # the caller's thread may run
            assert not seen or not seen.calling or optimizer._own.turn.locked(), line_number
        except sotto.Deadline:
            break  # it has fewer lines
        finally:
            sys.settrace(None)
    assert raised > 5


def test_ctrl_c_ends_the_making_of_an_optimizer():
    """Whose store's host no name service knows."""
    code = """
import os, signal, threading
import numpy, sotto
from sotto import _waiting
def interrupt():
    while not (_waiting._caller and _waiting._caller.calling):
        pass
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    sotto.Optimizer(numpy.zeros(8, numpy.float32), nodes=2, rank=1,
                    rendezvous="tcp://nobody.invalid:4000", timeout=50)
except KeyboardInterrupt:
    print("interrupted")
print(sotto.Optimizer(numpy.zeros(8, numpy.float32), nodes=1).round)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=40,
        text=True,
    )
    assert ended.stdout == "interrupted\n0\n", ended.stderr


@pytest.mark.parametrize("waits", ["connect", "step"])
def test_ctrl_c_ends_a_wait_for_other_nodes(waits):
    """In a process whose other node never comes, or says no more."""
    code = """
import os, signal, sys, threading
import numpy, sotto
from sotto import _waiting
waits = False
def node(rank):
    return sotto.Optimizer(numpy.zeros(8, numpy.float32), nodes=2, rank=rank,
                           transport="inproc", store=store, timeout=50)
def interrupt():
    while not (_waiting._caller and _waiting._caller.calling and waits):
        pass
    os.kill(os.getpid(), signal.SIGINT)
store = sotto.Store()
gradient = numpy.zeros(8, numpy.float32)
optimizer = node(0)
if sys.argv[1] == "step":
    silent = node(1)
    thread = threading.Thread(target=silent.connect)
    thread.start()
    optimizer.connect()
    thread.join()
threading.Thread(target=interrupt).start()
try:
    waits = True
    while True:
        optimizer.step(gradient)
except KeyboardInterrupt:
    print("interrupted")
try:
    optimizer.step(gradient)
except sotto.Stopped as stopped:
    print(stopped)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, waits],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=60,
        text=True,
    )
    assert ended.stdout.startswith("interrupted\n"), ended.stderr
    assert "stopped while waiting for" in ended.stdout


@pytest.mark.parametrize("takes_back", ["load", "load_file"])
def test_ctrl_c_ends_a_load_that_waits_for_other_nodes(takes_back, tmp_path):
    """In a process whose other node never comes."""
    code = """
import os, signal, sys, threading
import numpy, sotto
from sotto import _waiting
waits = False
def node(rank, store):
    return sotto.Optimizer(numpy.zeros(8, numpy.float32), nodes=2, rank=rank,
                           transport="inproc", store=store, timeout=50)
def interrupt():
    while not (_waiting._caller and _waiting._caller.calling and waits):
        pass
    os.kill(os.getpid(), signal.SIGINT)
def save(rank, store):
    optimizer = node(rank, store)
    optimizer.step(numpy.ones(8, numpy.float32))
    if rank == 0:
        optimizer.save_file("state")
    optimizer.finish()
store = sotto.Store()
threads = [threading.Thread(target=save, args=(rank, store)) for rank in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
state = "state" if sys.argv[1] == "load_file" else open("state", "rb").read()
optimizer = node(0, sotto.Store())
threading.Thread(target=interrupt).start()
try:
    waits = True
    getattr(optimizer, sys.argv[1])(state)
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, takes_back],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        timeout=40,
        text=True,
    )
    assert ended.stdout == "interrupted\n", ended.stderr
