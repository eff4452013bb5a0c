"""Step rules that a Python program brings along."""

import numpy
import pytest

import nodes
import sotto

COUNT = 3


def halve(_, x, gradient, following):
    here, there, out = (numpy.frombuffer(v, numpy.float32) for v in (x, gradient, following))
    out[:] = (here + there) / 2


def test_a_step_rule_of_the_program_s_own_makes_the_steps_of_numpy_arrays():
    x = numpy.full(8, 4, numpy.float32)
    rule = sotto.StepRule("halving", halve)
    with sotto.Optimizer(x, nodes=1, algorithm="allreduce", own_step_rule=rule, lr=0) as optimizer:
        optimizer.step(numpy.full(8, 2, numpy.float32))
        assert optimizer.report()["settings"]["step-rule"] == "halving"
    assert numpy.array_equal(x, numpy.full(8, 3, numpy.float32))


@pytest.mark.parametrize("algorithm", ["allreduce", "dcd"])
def test_what_it_raises_ends_all_nodes_and_is_the_cause(algorithm):
    store = sotto.Store()
    said = []

    def fail_at_3(round, x, gradient, following):
        if round == 3:
            raise KeyError("moment")
        halve(round, x, gradient, following)

    def node(rank):
        x = numpy.ones(8, numpy.float32)
        rule = sotto.StepRule("halving", fail_at_3 if rank == 1 else halve)
        optimizer = sotto.Optimizer(
            x, nodes=COUNT, rank=rank, store=store, own_step_rule=rule, algorithm=algorithm
        )
        with pytest.raises(sotto.Unexpected, match="halving: KeyError: 'moment'") as raised:
            for _ in range(50):
                optimizer.step(x)
        assert isinstance(raised.value.__cause__, KeyError) == (rank == 1)
        said.append(rank)
        optimizer.close()

    nodes.threads(COUNT, node)
    assert sorted(said) == [0, 1, 2]


def test_it_serves_one_optimizer_and_is_no_other_thing():
    rule = sotto.StepRule("halving", halve)
    x, y = numpy.zeros(8, numpy.float32), numpy.zeros(8, numpy.float32)
    with sotto.Optimizer(x, nodes=1, own_step_rule=rule):
        with pytest.raises(sotto.Refused, match="the steps of another optimizer"):
            sotto.Optimizer(y, nodes=1, own_step_rule=rule)
    with pytest.raises(
        TypeError, match="own_step_rule: a sotto.StepRule is needed, not a function"
    ):
        sotto.Optimizer(y, nodes=1, own_step_rule=halve)
    rule.close()
    with pytest.raises(sotto.Refused, match="step_rule: it is closed"):
        sotto.Optimizer(y, nodes=1, own_step_rule=rule)


def test_a_rate_that_one_node_alone_announces_is_found():
    store = sotto.Store()

    def node(rank):
        x = numpy.zeros(8, numpy.float32)
        rule = sotto.StepRule("halving", halve)
        with sotto.Optimizer(
            x,
            nodes=COUNT,
            rank=rank,
            store=store,
            own_step_rule=rule,
            algorithm="allreduce",
            lr=0.5,
        ) as optimizer:
            optimizer.step(x)
            optimizer.announce_settings(0.25 if rank == 2 else 0.5)
            optimizer.step(x)

    with pytest.raises(sotto.Unexpected, match="0.25"):
        nodes.threads(COUNT, node)


def test_an_interpreter_that_ends_during_a_step_ends(tmp_path):
    script = tmp_path / "daemon.py"
    script.write_text("""
import threading, numpy, sotto
inside = threading.Event()
def slow(round, x, gradient, following):
    inside.set()
    threading.main_thread().join(60)  # returns when the interpreter has begun to end
def train():
    x = numpy.zeros(8, numpy.float32)
    rule = sotto.StepRule("slow", slow)
    optimizer = sotto.Optimizer(x, nodes=1, own_step_rule=rule, algorithm="allreduce")
    try:
        while True:
            optimizer.step(x)
    except sotto.Stopped:  # the rule ends with the interpreter
        pass
threading.Thread(target=train, daemon=True).start()
inside.wait()
print("over")
""")
    done = nodes.run_script(script)
    assert done.returncode == 0 and done.stdout == "over\n" and done.stderr == ""
