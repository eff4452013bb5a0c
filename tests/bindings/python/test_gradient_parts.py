"""Gradients that are given in parts, of arrays."""

import numpy
import pytest

import nodes
import sotto

LONG = 3 * 4096  # three buckets
COUNT = 3


def step(optimizer, gradient, length, *loss):
    """By parts of `length` elements, the last first; 0: by the whole gradient."""
    if length == 0:
        return optimizer.step(gradient, *loss)
    for first in reversed(range(0, len(gradient), length)):
        optimizer.gradient_part(first, gradient[first : first + length])
    return optimizer.step_by_parts(*loss)


def trained(length, rule=None, **settings):
    store = sotto.Store()
    models = [numpy.zeros(LONG, numpy.float32) for _ in range(COUNT)]

    def node(rank):
        x = models[rank]
        own = {} if rule is None else {"own_step_rule": rule()}
        with sotto.Optimizer(
            x, nodes=COUNT, rank=rank, store=store, buckets=3, **own, **settings
        ) as optimizer:
            assert optimizer.takes_parts
            for _ in range(8):
                step(optimizer, x - numpy.float32(rank), length)

    nodes.threads(COUNT, node)
    return models


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "choco", "compressor": "topk:0.1"},
        {"algorithm": "deepsqueeze", "compressor": "sign", "step_rule": "adam"},
    ],
    ids=["choco", "deepsqueeze"],
)
def test_parts_leave_the_bits_of_whole_gradients(settings):
    whole = trained(0, lr=0.05, **settings)
    parts = trained(1024, lr=0.05, **settings)
    assert all(numpy.array_equal(a, b) for a, b in zip(whole, parts))


def heavy_ball():
    velocity = numpy.zeros(LONG, numpy.float32)

    def next_tensors(_, first, x, gradient, following):
        x, gradient, following = (
            numpy.frombuffer(each, numpy.float32) for each in (x, gradient, following)
        )
        own = velocity[first : first + len(x)]
        own[:] = numpy.float32(0.5) * own + gradient
        following[:] = x - numpy.float32(0.05) * own

    return sotto.StepRule("heavy-ball", next_tensors, by_tensor=True)


def test_a_step_rule_by_tensor_steps_parts_with_the_bits_of_whole_gradients():
    settings = {"algorithm": "choco", "rule": heavy_ball}
    layout = [(f"t{number}", (4096,)) for number in range(3)]
    whole = trained(0, layout=layout, **settings)
    parts = trained(4096, layout=layout, **settings)
    assert all(numpy.array_equal(a, b) for a, b in zip(whole, parts))
    assert abs(whole[0]).max() > 0.1


def test_what_a_rule_raises_in_a_part_ends_all_nodes_and_is_the_cause():
    store = sotto.Store()
    layout = [(f"t{number}", (4096,)) for number in range(3)]
    ended = []

    def copies(round, first, x, _, following):
        if round == 2 and first == 4096:
            raise KeyError("moment")
        numpy.frombuffer(following, numpy.float32)[:] = numpy.frombuffer(x, numpy.float32)

    def node(rank):
        x = numpy.ones(LONG, numpy.float32)
        fails = sotto.StepRule("heavy-ball", copies, by_tensor=True)
        rule = fails if rank == 1 else heavy_ball()
        optimizer = sotto.Optimizer(
            x,
            nodes=COUNT,
            rank=rank,
            store=store,
            own_step_rule=rule,
            algorithm="choco",
            buckets=3,
            layout=layout,
        )
        with pytest.raises(sotto.Unexpected, match="heavy-ball: KeyError: 'moment'") as raised:
            for _ in range(50):
                step(optimizer, x - numpy.float32(rank), 4096)
        assert isinstance(raised.value.__cause__, KeyError) == (rank == 1)
        with pytest.raises(sotto.Unexpected, match="KeyError: 'moment'"):
            optimizer.step_by_parts()
        optimizer.close()
        ended.append(rank)

    nodes.threads(COUNT, node)
    assert sorted(ended) == [0, 1, 2]


def test_parts_that_do_not_fit_are_missing_or_come_twice_are_refused():
    x = numpy.zeros(LONG, numpy.float32)
    ones = numpy.ones(LONG, numpy.float32)
    with sotto.Optimizer(x, nodes=1, algorithm="choco", buckets=3) as optimizer:
        with pytest.raises(sotto.Refused, match="gradient: '0 elements'"):
            optimizer.step_by_parts()
        with pytest.raises(sotto.Refused, match="there are 12288 parameters"):
            optimizer.gradient_part(LONG, ones[:1])
        with pytest.raises(sotto.Refused, match="first: -1 is refused"):
            optimizer.gradient_part(-1, ones[:1])
        with pytest.raises(TypeError, match="integer"):
            optimizer.gradient_part(0.5, ones[:1])
        with pytest.raises(TypeError, match="part: the array holds float64"):
            optimizer.gradient_part(0, ones.astype(float))
        optimizer.gradient_part(numpy.int64(100), ones[:50])
        with pytest.raises(sotto.Refused, match="in another part"):
            optimizer.gradient_part(149, ones[:1])
        with pytest.raises(sotto.Refused, match="parts of it were given"):
            optimizer.step(ones)
        with pytest.raises(sotto.Refused, match="parts of it were given"):
            optimizer.save()
        with pytest.raises(sotto.Refused, match="gradient: '50 elements'"):
            optimizer.step_by_parts()
        optimizer.gradient_part(0, ones[:100])
        spoilt = ones[150:].copy()
        spoilt[7] = numpy.nan
        with pytest.raises(sotto.NonFinite):
            optimizer.gradient_part(150, spoilt)
        assert not x.any()
        optimizer.gradient_part(150, ones[150:])
        optimizer.step_by_parts()
        assert optimizer.round == 1 and x.all()


def test_where_gradients_are_needed_whole_parts_are_refused():
    x = numpy.zeros(LONG, numpy.float32)
    whole = sotto.StepRule("halving", lambda *_: None)
    private = {"clip_norm": 1, "noise_multiplier": 0.5, "privacy_unit": "update"}
    for settings in (
        {"buckets": 1},
        {"own_step_rule": whole},
        {"communication_interval": 2},
        private,
    ):
        settings = {"buckets": 3, **settings}
        with sotto.Optimizer(x, nodes=1, algorithm="choco", **settings) as optimizer:
            assert not optimizer.takes_parts
            with pytest.raises(sotto.Refused, match="takes gradients whole"):
                optimizer.gradient_part(0, x)


def epochs_trained(length):
    seed = f"127.0.0.1:{nodes.free_port()}"
    settings = {"nodes": "2:2", "seeds": seed, "lr": 0.1, "wait_limit": 60, "rounds": 6}
    models = [numpy.zeros(60, numpy.float32) for _ in range(2)]
    ends = [None, None]

    def node(rank):
        x = models[rank]
        listen = seed if rank == 0 else "127.0.0.1:0"
        with sotto.ElasticOptimizer(x, name="ab"[rank], listen=listen, **settings) as optimizer:
            optimizer.connect()
            assert optimizer.takes_parts
            while not optimizer.over:
                made = step(optimizer, x - numpy.float32(rank), length, 0.5)
                assert made == sotto.ElasticStep(optimizer.round, False)
            ends[rank] = x.copy()

    nodes.threads(2, node)
    assert numpy.array_equal(*ends)
    return ends[0]


def test_nodes_that_come_and_go_step_by_parts_with_the_bits_of_whole_gradients():
    whole = epochs_trained(0)
    assert whole.min() > 0.1
    assert numpy.array_equal(epochs_trained(25), whole)


def test_parts_of_gradients_that_a_node_of_one_model_refuses():
    x = numpy.zeros(3, numpy.float32)
    one = numpy.ones(1, numpy.float32)

    def made(**more):
        seed = f"127.0.0.1:{nodes.free_port()}"
        return sotto.ElasticOptimizer(
            x, nodes="1", seeds=seed, lr=0.1, found_after=0.01, wait_limit=60, **more
        )

    with made() as node:
        node.connect()
        with pytest.raises(sotto.Refused, match="there are 3 parameters"):
            node.gradient_part(3, one)
        node.gradient_part(1, numpy.ones(2, numpy.float32))
        with pytest.raises(sotto.Refused, match="in another part"):
            node.gradient_part(2, one)
        with pytest.raises(sotto.Refused, match="end this step with step_by_parts"):
            node.step(x)
        with pytest.raises(sotto.Refused, match="gradient: '2 elements'"):
            node.step_by_parts()
        with pytest.raises(sotto.NonFinite):
            node.gradient_part(0, one * numpy.float32("inf"))
        node.gradient_part(0, one)
        assert node.step_by_parts(0.5) == sotto.ElasticStep(1, False)
        assert numpy.allclose(x, -0.1)
    with made(communication_interval=2, outer_lr=0.5) as local:
        assert not local.takes_parts
        with pytest.raises(sotto.Refused, match="with local steps"):
            local.gradient_part(0, one)
