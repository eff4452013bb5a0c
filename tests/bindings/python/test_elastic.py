"""Nodes of an all-reduce that come and go, with models of Python's: over real sockets."""

import threading

import numpy
import pytest

import sotto
from nodes import free_port, threads

DIMENSION = 30


def settings(port, **more):
    return {"seeds": f"127.0.0.1:{port}", "lr": 0.1, "wait_limit": 60, **more}


def model():
    return numpy.zeros(DIMENSION, dtype=numpy.float32)


def step_towards(node, x, target):
    return node.step(x - numpy.float32(target), loss=1.0)


def test_nodes_die_and_come_and_all_end_with_the_same_bits():
    port = free_port()
    ends = {}

    def stay(rank):
        x = model()
        with sotto.ElasticOptimizer(x, nodes="3:3", rounds=40, **settings(port)) as node:
            node.connect()
            while not node.over:
                step = step_towards(node, x, rank)
                assert not step.left_out and step.round == node.round
            node.evaluated(0.5, 0.25)
            assert node.report()["evaluation"]["accuracy"] == 0.25
            assert "listening" in [event["event"] for event in node.events()]
        with pytest.raises(sotto.Refused, match="closed"):
            node.events()
        ends[rank] = x

    def die():
        x = model()
        node = sotto.ElasticOptimizer(x, nodes="3:3", **settings(port))
        while step_towards(node, x, 3).round < 5:
            pass
        node.close()

    threads(3, lambda rank: (die() if rank == 2 else None, stay(rank)))
    assert len(ends) == 3 and ends[0].mean() > 0.9
    assert (ends[0] == ends[1]).all() and (ends[0] == ends[2]).all()


def test_a_worker_of_torchruns_needs_no_seeds(monkeypatch):
    agent = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
        "TORCHELASTIC_RUN_ID": "job",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    for name, value in agent.items():
        monkeypatch.setenv(name, value)
    ends = {}

    def stay(rank):
        x = model()
        with sotto.ElasticOptimizer(x, nodes="2:2", rounds=10, lr=0.1, wait_limit=60) as node:
            node.connect()
            while not node.over:
                step_towards(node, x, rank)
        ends[rank] = x

    threads(2, stay)
    assert (ends[0] == ends[1]).all() and ends[0].mean() > 0
    monkeypatch.delenv("MASTER_ADDR")
    with pytest.raises(sotto.Refused, match="MASTER_ADDR is not"):
        sotto.ElasticOptimizer(model(), nodes="2:2", lr=0.1)


def test_local_steps_are_a_nodes_own():
    x = model()
    local = {"communication_interval": 3, "outer_lr": 0.5, "found_after": 0.01}
    with sotto.ElasticOptimizer(x, nodes="1", rounds=2, **settings(free_port(), **local)) as node:
        node.connect()
        run = numpy.float32(0)
        for number in range(6):
            assert node.next_step == number and not node.over
            step = node.step(numpy.ones_like(x))
            assert step == sotto.ElasticStep(number // 3 + (number % 3 == 2), False, number % 3 < 2)
            if step.local:
                assert numpy.allclose(x, run - 0.1 * (number % 3 + 1))
            else:
                run -= numpy.float32(0.15)
                assert numpy.allclose(x, run)
        assert node.over


def test_a_call_that_stop_ends_ends_the_block_in_good_order():
    port = free_port()
    held = {}

    def stays():
        x = model()
        with sotto.ElasticOptimizer(x, nodes="2:2", **settings(port)) as node:
            held["stays"] = node
            while True:  # without the other it waits
                step_towards(node, x, 1)
        with pytest.raises(sotto.Refused, match="closed"):
            node.step(x)

    def goes():
        x = model()
        with sotto.ElasticOptimizer(x, nodes="2:2", **settings(port)) as node:
            step_towards(node, x, 1)
        held["stays"].stop()

    threads(2, lambda rank: goes() if rank else stays())


def test_a_step_without_a_quorum_waits_and_goes_on():
    port = free_port()
    x, other = model(), model()
    begun = threading.Event()

    def founder():
        with sotto.ElasticOptimizer(x, nodes="2:2", name="a", **settings(port, wait_limit=0.2)) as node:
            while True:
                try:
                    node.connect()
                    break
                except sotto.Deadline:
                    begun.set()  # it has the seed's address
            pending = False
            while node.round < 12:
                try:
                    node.wait() if pending else node.step(x - numpy.float32(1))
                    pending = False
                except sotto.Deadline:
                    pending = True
                    lonely.set()

    lonely = threading.Event()

    def peers():
        assert begun.wait(60)
        node = sotto.ElasticOptimizer(other, nodes="2:2", **settings(port))
        for _ in range(4):
            node.step(other - numpy.float32(1))
        node.close()  # as a process that dies
        lonely.clear()  # the founder may have been late before
        assert lonely.wait(60)
        with sotto.ElasticOptimizer(other, nodes="2:2", rounds=12, **settings(port)) as node:
            node.connect()
            while not node.over:
                node.step(other - numpy.float32(1))

    threads(2, lambda rank: founder() if rank == 0 else peers())
    assert (x == other).all()


def test_a_wait_that_is_cancelled_goes_on_when_it_is_asked_for():
    x = model()
    node = sotto.ElasticOptimizer(x, nodes="2:2", **settings(free_port()))
    node.cancel()
    with pytest.raises(sotto.Stopped):
        node.connect()  # without a second node it waits
    assert not node.over
    node.stop()
    with pytest.raises(sotto.Stopped):
        node.connect()
    assert node.over
    node.close()


def test_what_is_wrong_is_said():
    x = model()
    with pytest.raises(sotto.Refused, match="nodes: it is missing"):
        sotto.ElasticOptimizer(x, seeds="127.0.0.1:9")
    with pytest.raises(sotto.Refused, match="see.s: there is no such setting.*seeds"):
        sotto.ElasticOptimizer(x, nodes="1:2", seets="127.0.0.1:9")
    with pytest.raises(sotto.Refused, match="allreduce and qmean alone"):
        sotto.ElasticOptimizer(x, nodes="1:2", algorithm="dpsgd", seeds="127.0.0.1:9")
    node = sotto.ElasticOptimizer(x, nodes="1:2", **settings(free_port(), found_after=0.01))
    with pytest.raises(sotto.Refused, match="gradient"):
        node.step(numpy.zeros(3, dtype=numpy.float32))
    with pytest.raises(sotto.NonFinite):
        node.step(numpy.full(DIMENSION, numpy.nan, dtype=numpy.float32))
    assert node.round == 0
    with pytest.raises(sotto.Refused, match="another optimizer of this process trains"):
        sotto.ElasticOptimizer(x, nodes="1:2", **settings(free_port()))
    node.stop()
    assert node.over
    node.close()
    names = {setting["name"] for setting in sotto.choices("elastic-settings")}
    assert {"nodes", "seeds", "key", "lr", "grace", "wait-limit", "found-after"} <= names


def test_cancel_ends_what_a_node_waits_for_to_leave():
    port = free_port()
    kept = (model(), model())
    elder = sotto.ElasticOptimizer(kept[0], nodes="2", listen=f"127.0.0.1:{port}", **settings(port))
    younger = sotto.ElasticOptimizer(
        kept[1], nodes="2", listen="127.0.0.1:0", leave_within=3600, **settings(port)
    )
    threads(2, lambda rank: (elder, younger)[rank].connect())
    elder.close()  # of two the younger can neither go on nor end the epoch
    leaves = threading.Thread(target=younger.finish)
    leaves.start()
    while younger.report()["epoch"]["waits_for"] != "quorum":
        assert leaves.is_alive()
        leaves.join(0.02)
    younger.cancel()
    leaves.join(60)
    assert not leaves.is_alive()
    younger.close()


def test_the_node_that_began_a_run_says_that_it_is_over(tmp_path):
    port = free_port()

    def train():
        x = model()
        state = str(tmp_path / "votes")
        with sotto.ElasticOptimizer(
            x, name="a", nodes="1", rounds=3, found_after=0.1, state=state, **settings(port)
        ) as node:
            while not node.over:
                step_towards(node, x, 1)

    train()
    with pytest.raises(sotto.Ended, match="over"):
        train()
