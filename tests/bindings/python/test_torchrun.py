"""Python programs under a real torchrun: sotto alone, and sotto.torch."""

import os
import pathlib
import signal
import subprocess
import sys

import nodes
import sotto

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch"

# Each node pulls towards its number. Node `DIES` of the first life is killed in a round.
PROGRAM = """
import os, pathlib, signal, sys
import numpy
import sotto

rank = int(os.environ["RANK"])
first = not pathlib.Path(sys.argv[1], "lived").exists()
x = numpy.zeros(4, numpy.float32)
with sotto.Optimizer(x, algorithm="dpsgd", lr=0.1, timeout=60) as optimizer:
    for step in range(30):
        optimizer.step(x - numpy.float32(rank))
        if first and step == 10 and rank == int(sys.argv[2]):
            pathlib.Path(sys.argv[1], "lived").write_text("yes")
            os.kill(os.getpid(), signal.SIGKILL)
    optimizer.finish()
pathlib.Path(sys.argv[1], f"node-{rank}").write_text("done")
"""


def agent(options, processes, words):
    """Python 3.11 and PyTorch 1.13 agree only where outputs are redirected."""
    module = pathlib.Path(sotto.__file__).resolve().parents[1]
    path = os.pathsep.join([str(module), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "-r", "1", "-t", "1"]
    launcher += ["--monitor_interval", "1", "--nproc_per_node", str(processes)]
    return subprocess.Popen(
        [*launcher, *options, *words],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ends(agents):
    said = []
    for process in agents:
        try:
            said.append(process.communicate(timeout=150))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    for process, (_, errors) in zip(agents, said):
        assert process.returncode == 0, errors
    return [out for out, _ in said]


def static_group(agents, which, port):
    address = ["--master_addr", "127.0.0.1", "--master_port", str(port)]
    return ["--nnodes", str(agents), "--node_rank", str(which), *address]


def test_sotto_torch_learns_under_torchrun():
    words = [str(EXAMPLES / "spirals.py"), "150"]
    (out,) = ends([agent(static_group(1, 0, nodes.free_port()), 4, words)])
    lines = [line.split(":", 1)[-1] for line in out.splitlines() if "accuracy" in line]
    assert len(lines) == 1 and float(lines[0].removeprefix("accuracy ")) > 0.75


def test_two_agents_and_a_node_that_is_killed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    port = nodes.free_port()
    for dies in (-1, 3):
        folder = tmp_path / f"dies{dies}"
        folder.mkdir()
        words = [str(program), str(folder), str(dies)]
        options = [[*static_group(2, i, port), "--max_restarts", "1"] for i in range(2)]
        ends([agent(each, 2, words) for each in options])
        assert (folder / "lived").exists() == (dies >= 0)
        assert sorted(p.name for p in folder.glob("node-*")) == [f"node-{i}" for i in range(4)]
