"""Simulations and plans from Python: they are those of the program, and end with Ctrl-C."""

import json
import os
import secrets
import subprocess
import sys
import threading

import pytest

import sotto

PROGRAM = os.environ.get("SOTTO_PROGRAM", "")
needs_program = pytest.mark.skipif(not PROGRAM, reason="SOTTO_PROGRAM names no program")

SCENARIO = """
sotto-scenario = 1
title = "Four nodes"
run = ["allreduce", "dcd quant:8 ring"]

[nodes]
count = 4
gradient = "5 ms"

[network]
link = { bandwidth = "5 Mbit/s", latency = "10 ms" }

[task]
task = "digits"
rounds = 20
eval-every = 5
lr = 0.1
"""


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "four.toml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def seed():
    drawn = secrets.randbelow(2**32)
    print("seed", drawn)
    return drawn


def told(*arguments):
    """What the program writes with --json."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments), "--json", "-"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_program
def test_a_simulation_is_the_programs(scenario, seed):
    found = sotto.simulate(scenario, seed=seed)
    assert found == told("simulate", scenario, "--seed", seed)
    assert [run["name"] for run in found["runs"]] == ["allreduce", "dcd quant:8 ring"]
    assert not found["failed"]
    level = sotto.simulate(scenario, seed=seed, equal="bytes", threads=1)
    assert level == told("simulate", scenario, "--seed", seed, "--equal", "bytes", "--threads", 2)
    assert level["runs"][0]["at_equal"]["bytes_per_node"] > 0


@needs_program
def test_a_plan_is_the_programs(scenario, seed):
    settings = {"codec": "none", "budget": 2, "seeds": 1, "seed": seed}
    options = [f"--{name}={value}" for name, value in settings.items()]
    found = sotto.plan(scenario, topology="ring", compressor=("sign", "quant:4"), **settings)
    graph = ("--topology", "ring", "--compressor", "sign", "--compressor", "quant:4")
    assert found == told("plan", scenario, *options, *graph)
    assert found["winner"] and found["candidates"]


def test_a_text_is_as_good_as_a_file(scenario, seed):
    assert sotto.simulate(scenario_text=SCENARIO, seed=seed) == sotto.simulate(
        str(scenario), seed=seed
    )
    assert sotto.simulate(os.fsencode(scenario), seed=seed)["scenario"] == "Four nodes"


def test_a_dictionary_of_tables_is_as_good_as_a_file(scenario, seed):
    tables = {
        "title": "Four nodes",
        "run": ["allreduce", "dcd quant:8 ring"],
        "nodes": {"count": 4, "gradient": "5 ms"},
        "network": {"link": {"bandwidth": "5 Mbit/s", "latency": "10 ms"}},
        "task": {"task": "digits", "rounds": 20, "eval-every": 5, "lr": 0.1},
    }
    assert sotto.simulate(tables, seed=seed) == sotto.simulate(scenario, seed=seed)
    swept = sotto.simulate({**tables, "sweep": {"task.rounds": (2, 4)}}, seed=seed)
    assert [run["rounds"] for run in swept["runs"]] == [2, 2, 4, 4]
    assert sotto.simulate({**tables, "title": 'ä "quoted" 😀'})["scenario"] == 'ä "quoted" 😀'
    with pytest.raises(TypeError, match=r"scenario.task.lr: .* is a complex"):
        sotto.simulate({**tables, "task": {"lr": 1j}})
    with pytest.raises(TypeError, match="a text beside it"):
        sotto.simulate(tables, scenario_text=SCENARIO)
    with pytest.raises(sotto.Refused, match="did you mean nodes?"):
        sotto.simulate({**tables, "nodse": {}})


@needs_program
def test_seeds_and_money_are_the_programs(tmp_path, seed):
    file = tmp_path / "priced.toml"
    file.write_text(SCENARIO + "[costs]\nper-GB = 1\n[target]\naccuracy = 0.3\n")
    found = sotto.simulate(file, seed=seed, seeds=2)
    assert found == told("simulate", file, "--seed", seed, "--seeds", 2)
    assert found["over_seeds"][0]["loss"]["count"] == 2
    settings = {"codec": "none", "budget": 1, "seeds": 1, "seed": seed, "minimize": "money"}
    settings.update({"topology": "ring", "compressor": "quant:8"})  # few runs, as all are priced
    options = [f"--{name}={value}" for name, value in settings.items()]
    plan = sotto.plan(file, strategies=True, **settings)
    assert plan == told("plan", file, "--strategies", *options)
    assert {"data", "sharded", "pipeline"} <= {one["strategy"] for one in plan["strategies"]}
    assert plan["ranked_by"] == "money_to_target"


def test_threads_of_the_caller_simulate_beside_each_other(scenario, seed):
    found = [None, None]

    def simulate(k):
        found[k] = sotto.simulate(scenario, seed=seed, threads=1)

    threads = [threading.Thread(target=simulate, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == sotto.simulate(scenario, seed=seed)


def test_what_a_run_warns_of_is_a_warning():
    text = SCENARIO + 'delayed-gradient = true\noverlap = "off"\n'
    text = text.replace('["allreduce", "dcd', '["choco')
    with pytest.warns(RuntimeWarning, match="^choco quant:8 ring: task.delayed-gradient hides"):
        found = sotto.simulate(scenario_text=text)
    assert len(found["runs"][0]["warnings"]) == 1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sotto.simulate(), "^scenario: it is missing"),
        (lambda: sotto.simulate("a.toml", scenario_text=SCENARIO), "^scenario: it has a text"),
        (lambda: sotto.simulate("/nowhere/a.toml"), "^scenario: '/nowhere/a.toml' is refused"),
        (lambda: sotto.simulate(scenario_text="nodes = 3\n"), "^scenario_text:1: sotto-scenario"),
        (lambda: sotto.simulate(scenario_text=SCENARIO, equal="rounds"), "^equal: 'rounds'"),
        (lambda: sotto.simulate(scenario_text=SCENARIO, seed=-1), "^seed: '-1' is refused"),
        (lambda: sotto.plan(scenario_text=SCENARIO, rank_by="best"), "^rank_by: 'best'"),
        (lambda: sotto.plan(scenario_text=SCENARIO, budget=0), "^budget: '0'"),
        (lambda: sotto.plan(scenario_text=SCENARIO, algorithm="dcc"), "^algorithm: 'dcc'.*dcd"),
        (
            lambda: sotto.plan(scenario_text=SCENARIO, compressor=["sign", "sign"]),
            "^compressor: value 2, 'sign', is value 1 once more",
        ),
        (
            lambda: sotto.simulate(scenario_text=SCENARIO.replace("lr = 0.1", "lr = -1")),
            r"^scenario_text:17: task.lr: '-1' is refused",
        ),
        (
            lambda: sotto.simulate(scenario_text=SCENARIO.replace("dcd quant:8", "dcd topk:0.1")),
            "with task.allow-contract-violation = true$",
        ),
    ],
)
def test_what_is_refused_has_the_arguments_name(call, message):
    with pytest.raises(sotto.Refused, match=message):
        call()


def test_an_argument_that_is_none_is_pythons_own_mistake():
    with pytest.raises(TypeError, match="sed"):
        sotto.simulate(scenario_text=SCENARIO, sed=3)


@pytest.mark.parametrize("call", ["simulate", "plan"])
def test_ctrl_c_ends_it(call):
    code = f"""
import os, signal, sys, threading
import sotto
from sotto import _waiting
text = {SCENARIO.replace("rounds = 20", "rounds = 1000000000")!r}
waits = False
def interrupt():
    while not (_waiting._caller and _waiting._caller.calling and waits):
        pass
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    waits = True
    sotto.{call}(scenario_text=text)
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    assert ended.stdout == "interrupted\n", ended.stderr
