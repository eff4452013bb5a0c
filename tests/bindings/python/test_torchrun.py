"""Python programs under a real torchrun: sotto alone, and sotto.torch."""

import json
import os
import pathlib
import select
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

# Nodes that come and go, with a folder for each start's LOCAL_RANK. In the first life each says
# that its model is on the disk, and then dies or stays, as it is told.
COMES_AND_GOES = """
import json, os, pathlib, signal, sys, time
import numpy
import sotto

folder, last, dies = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
agent, local = sys.argv[4], os.environ["LOCAL_RANK"]
state = folder / f"state-{agent}-{local}"
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
first = int(os.environ["WORLD_SIZE"]) < last if last else restarts == 0
x = numpy.zeros(4, numpy.float32)
settings = {"rounds": 30, "state": str(state), "save_every": 1, "begin_again_after": 1}
with sotto.ElasticOptimizer(
    x, nodes="2:4", lr=0.1, insecure=True, wait_limit=100, **settings
) as node:
    node.connect()
    began, steps = node.round, 0
    while not node.over:
        node.step(x - numpy.float32(local))
        steps += 1
        if first and node.round >= 10:
            while not list(state.glob("state.[ab]")):
                time.sleep(0.01)
            if local == dies:
                os.kill(os.getpid(), signal.SIGKILL)
            with open(folder / "news", "w") as news:
                news.write("on the disk\\n")
            signal.pause()
    name = node.report()["name"]
end = {"name": name, "began": began, "steps": steps, "x": x.tobytes().hex()}
(folder / f"end-{agent}-{local}").write_text(json.dumps(end))
"""


def agent(options, processes, words, **more):
    """Python 3.11 and PyTorch 1.13 agree only where outputs are redirected."""
    module = pathlib.Path(sotto.__file__).resolve().parents[1]
    path = os.pathsep.join([str(module), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}
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
    try:
        said = [process.communicate(timeout=150) for process in agents]
    finally:
        for process in agents:
            process.terminate()  # which ends its workers, too
        for process in agents:
            process.wait(60)
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


def c10d_group(agents, port):
    """One that agents may join while it runs."""
    conf = ["--rdzv_conf", "join_timeout=120,last_call_timeout=1"]
    where = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "run1"]
    return ["--nnodes", agents, *where, *conf, "--max_restarts", "3"]


def comes_and_goes(folder):
    """The words of a worker, but for its agent's, and a pipe in which workers say something."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(COMES_AND_GOES)
    os.mkfifo(folder / "news")
    return [str(program), str(folder)], os.open(folder / "news", os.O_RDWR)


def ends_of_nodes(folder, count):
    """What the nodes of the last life have left, which all have the same model."""
    left = [json.loads(path.read_text()) for path in sorted(folder.glob("end-*"))]
    assert len(left) == count and len({node["name"] for node in left}) == count
    assert {node["x"] for node in left} == {left[0]["x"]}
    return left


def test_nodes_that_come_and_go_go_on_from_their_folders_when_one_is_killed(tmp_path):
    static = [*static_group(1, 0, nodes.free_port()), "--max_restarts", "3"]
    for kind, options in {"static": static, "c10d": c10d_group("1:2", nodes.free_port())}.items():
        folder = tmp_path / kind
        words, _ = comes_and_goes(folder)
        ends([agent(options, 2, [*words, "0", "1", "a"])])
        for node in ends_of_nodes(folder, 2):
            assert node["began"] > 0  # they take part in a run that began from what was saved
            assert 0 < node["steps"] <= 30 - node["began"]


def test_an_agent_that_joins_has_all_go_on_from_the_folders_of_the_first(tmp_path):
    folder = tmp_path / "joined"
    words, news = comes_and_goes(folder)
    options = c10d_group("1:2", nodes.free_port())
    # With a shared store PyTorch's agents wait for each other for ever when one joins.
    apart = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    agents = [agent(options, 2, [*words, "4", "nobody", "a"], **apart)]
    saved = select.select([news], [], [], 100)[0]
    if not saved:
        agents[0].terminate()
    assert saved, "the first agent's nodes have saved nothing"
    agents.append(agent(options, 2, [*words, "4", "nobody", "b"], **apart))
    ends(agents)
    for node in ends_of_nodes(folder, 4):
        assert node["began"] > 0
