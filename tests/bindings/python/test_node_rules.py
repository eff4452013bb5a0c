"""Step rules of a program's own at nodes that come and go."""

import struct
import threading

import numpy
import pytest

import sotto
from nodes import federation, free_port, threads

SIZE = 40


class HeavyBall:
    """Steps by a velocity that goes into the node's state."""

    def __init__(self, rate=0.05):
        self.rate = rate
        self.velocity = numpy.zeros(SIZE, dtype=numpy.float32)
        self.steps = []
        self.rule = sotto.StepRule("heavy-ball", self.next_model, save=self.save, load=self.load)

    def next_model(self, step, x, gradient, following):
        x, gradient, following = (
            numpy.frombuffer(each, numpy.float32) for each in (x, gradient, following)
        )
        self.steps.append(step)
        self.velocity = numpy.float32(0.9) * self.velocity + gradient
        following[:] = x - numpy.float32(self.rate) * self.velocity

    def save(self):
        return struct.pack("<Q", SIZE) + self.velocity.tobytes()

    def load(self, state):
        if not state:
            self.velocity = numpy.zeros(SIZE, dtype=numpy.float32)
            return
        if len(state) != 8 + 4 * SIZE:
            raise ValueError("it is no velocity")
        self.velocity = numpy.frombuffer(state[8:], numpy.float32).copy()


def by_hand(steps):
    x, velocity = numpy.zeros(SIZE, dtype=numpy.float32), numpy.zeros(SIZE, dtype=numpy.float32)
    for _ in range(steps):
        velocity = numpy.float32(0.9) * velocity + (x - numpy.float32(1))
        x = x - numpy.float32(0.05) * velocity
    return x


def test_a_newcomer_steps_with_the_velocity_of_the_others():
    port = free_port()
    ends = {}
    early = threading.Event()

    def run(rank):
        x = numpy.zeros(SIZE, dtype=numpy.float32)
        ball = HeavyBall()
        if rank == 1:
            assert early.wait(60)
        given = {"nodes": "1:2", "seeds": f"127.0.0.1:{port}", "found_after": 0.01}
        given = {**given, "wait_limit": 60, "rounds": 50}
        with sotto.ElasticOptimizer(x, own_step_rule=ball.rule, **given) as node:
            node.connect()
            while not node.over:
                node.step(x - numpy.float32(1))
                if node.round == 20:
                    early.set()
        ends[rank] = x

    threads(2, run)
    assert (ends[0] == by_hand(50)).all() and (ends[1] == ends[0]).all()


def test_a_site_goes_on_with_its_rules_velocity(tmp_path):
    site = {"site": federation(tmp_path, ["bank", "lab"])["bank"], "found_after": 0.01}
    x = numpy.zeros(SIZE, dtype=numpy.float32)
    for rounds in (7, 15):
        ball = HeavyBall()
        x = numpy.zeros(SIZE, dtype=numpy.float32)
        with sotto.Site(x, own_step_rule=ball.rule, rounds=rounds, **site) as node:
            node.connect()
            while not node.over:
                node.step(x - numpy.float32(1))
    assert ball.steps == list(range(7, 15))
    # A site without company has mass 1, so that nothing but its own steps moves the model.
    assert (x == by_hand(15)).all()


def test_what_a_rule_cannot_save_or_load_ends_the_node_and_is_named(tmp_path):
    def broken(*_):
        raise OSError("no room")

    x = numpy.zeros(SIZE, dtype=numpy.float32)
    ball = HeavyBall()
    site = {"site": federation(tmp_path, ["bank", "lab"])["bank"], "found_after": 0.01}
    unsaved = sotto.StepRule("heavy-ball", ball.next_model, save=broken, load=ball.load)
    with pytest.raises(sotto.Error, match="heavy-ball: OSError: no room") as raised:
        with sotto.Site(x, own_step_rule=unsaved, rounds=9, **site) as node:
            node.connect()
            while not node.over:
                node.step(x - numpy.float32(1))
    assert isinstance(raised.value.__cause__, OSError)
    # In the last write nothing follows that would say it, and what was written before stays good.
    broken_now = threading.Event()
    ball = HeavyBall()
    late = sotto.StepRule(
        "heavy-ball",
        ball.next_model,
        save=lambda: broken() if broken_now.is_set() else ball.save(),
        load=ball.load,
    )
    port = free_port()
    given = {"nodes": "1:2", "found_after": 0.01, "seeds": f"127.0.0.1:{port}"}
    node = sotto.ElasticOptimizer(x, own_step_rule=late, state=tmp_path / "node", **given)
    for _ in range(3):
        node.step(x - numpy.float32(1))
    broken_now.set()
    with pytest.raises(sotto.Error, match="heavy-ball: OSError: no room"):
        node.finish()
    node.close()
    unloaded = sotto.StepRule("heavy-ball", ball.next_model, save=ball.save, load=broken)
    with pytest.raises(sotto.Error, match="heavy-ball: OSError: no room"):
        sotto.Site(x, own_step_rule=unloaded, **site)


def test_rules_that_nodes_cannot_have_are_refused(tmp_path):
    x = numpy.zeros(SIZE, dtype=numpy.float32)
    file = federation(tmp_path, ["bank", "lab"])["bank"]
    ball = HeavyBall()
    forgetful = sotto.StepRule("heavy-ball", ball.next_model)
    with pytest.raises(sotto.Refused, match="step_rule: .*save=, load="):
        sotto.Site(x, site=file, own_step_rule=forgetful)
    with pytest.raises(sotto.Refused, match="momentum: the step rule is the caller's own"):
        sotto.Site(x, site=file, own_step_rule=ball.rule, momentum=0.9)
    told = sotto.StepRule(
        "heavy-ball", ball.next_model, save=ball.save, load=ball.load, settings=lambda _: 1
    )
    with pytest.raises(sotto.Refused, match="step_rule: sites .*without settings="):
        sotto.Site(x, site=file, own_step_rule=told)
    with pytest.raises(sotto.Refused, match="step_rule: .*announce_settings"):
        sotto.Optimizer(x, nodes=1, algorithm="allreduce", own_step_rule=told, lr=0.1)
    with pytest.raises(sotto.Refused, match="save: it goes with load"):
        sotto.StepRule("heavy-ball", ball.next_model, save=ball.save)
    with pytest.raises(TypeError, match="own_step_rule: a sotto.StepRule is needed"):
        sotto.Site(x, site=file, own_step_rule=ball)
    with sotto.Site(x, site=file, own_step_rule=ball.rule, found_after=0.01) as site:
        other = numpy.zeros(SIZE, dtype=numpy.float32)
        with pytest.raises(sotto.Refused, match="steps of another optimizer"):
            sotto.ElasticOptimizer(
                other, nodes=1, seeds=f"127.0.0.1:{free_port()}", own_step_rule=ball.rule
            )
        site.stop()


def test_what_nodes_must_agree_on_of_a_program_is_compared():
    port = free_port()
    refused = threading.Event()
    told = []

    def run(rank):
        x = numpy.zeros(SIZE, dtype=numpy.float32)
        node = sotto.ElasticOptimizer(
            x,
            own_step_rule=HeavyBall().rule,
            job={"ball's rate": (0.05, 0.06)[rank]},
            nodes="2:2",
            seeds=f"127.0.0.1:{port}",
            wait_limit=0.2,
        )
        try:
            while not refused.is_set():
                try:
                    node.connect()
                except sotto.Deadline:
                    continue  # nobody else is there yet, or the other one was told
                except sotto.Error as error:
                    told.append(str(error))
                    refused.set()
        finally:
            refused.set()
            node.close()

    threads(2, run)
    assert all("ball's rate is 0.0" in text for text in told) and told


def test_a_folder_is_of_one_kind_of_rule(tmp_path):
    given = {"nodes": "1:2", "found_after": 0.01, "rounds": 5, "state": tmp_path / "state"}
    given["seeds"] = f"127.0.0.1:{free_port()}"
    x = numpy.zeros(SIZE, dtype=numpy.float32)
    ball = HeavyBall()
    with sotto.ElasticOptimizer(x, own_step_rule=ball.rule, **given) as node:
        while not node.over:
            node.step(x - numpy.float32(1))
    other = sotto.StepRule("ball", ball.next_model, save=ball.save, load=ball.load)
    with pytest.raises(sotto.Refused, match="own-step-rule is ball here and heavy-ball there"):
        sotto.ElasticOptimizer(x, own_step_rule=other, **given)

    def mistaken(state):
        if state:
            raise AttributeError("lod")

    wrong = sotto.StepRule("heavy-ball", ball.next_model, save=ball.save, load=mistaken)
    with pytest.raises(sotto.Error, match="AttributeError: lod") as raised:
        sotto.ElasticOptimizer(x, own_step_rule=wrong, **given)
    assert isinstance(raised.value.__cause__, AttributeError)
    assert not list((tmp_path / "state").glob("*.damaged"))


def test_what_settings_raise_is_said_by_the_next_step():
    def broken(_):
        raise LookupError("no rate")

    x = numpy.zeros(SIZE, dtype=numpy.float32)
    ball = HeavyBall()
    rule = sotto.StepRule(
        "heavy-ball", ball.next_model, save=ball.save, load=ball.load, settings=broken
    )
    node = sotto.ElasticOptimizer(
        x, own_step_rule=rule, nodes="1:2", found_after=0.01, seeds=f"127.0.0.1:{free_port()}"
    )
    with pytest.raises(sotto.Error, match="LookupError: no rate"):
        node.step(x - numpy.float32(1))
    node.close()
