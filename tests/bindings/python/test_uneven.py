"""Nodes that change settings, end early or have different amounts of data."""

import numpy
import pytest

import nodes
import sotto

COUNT = 3


def uneven(**settings):
    """Node i has data for 4 + 3 i steps; rounds, means and who was stopped."""
    store = sotto.Store()
    rounds, means, ended = [0] * COUNT, [None] * COUNT, [False] * COUNT

    def node(rank):
        x = numpy.zeros(8, dtype=numpy.float32)
        mean = numpy.empty_like(x)
        with sotto.Optimizer(
            x, nodes=COUNT, rank=rank, store=store, timeout=3600, lr=0.1, **settings
        ) as optimizer:
            try:
                for _ in range(4 + 3 * rank):
                    optimizer.step(x - numpy.float32(rank))
            except sotto.Ended:
                ended[rank] = True
            optimizer.finish_with_mean(mean)
            rounds[rank] = optimizer.round
        means[rank] = mean

    nodes.threads(COUNT, node)
    return rounds, means, ended


def test_nodes_without_data_go_along_with_zero_gradients():
    rounds, means, ended = uneven(join="zeros")
    assert rounds == [10, 10, 10]
    assert not any(ended)
    assert all(numpy.array_equal(means[0], mean) for mean in means)


def test_all_end_with_the_shortest():
    rounds, means, ended = uneven(join="stop", algorithm="allreduce")
    assert rounds[0] <= 6 and rounds == [rounds[0]] * COUNT
    assert ended[2]
    assert all(numpy.array_equal(means[0], mean) for mean in means)


def test_without_a_wish_all_are_told_who_has_finished():
    with pytest.raises(sotto.Unexpected, match="after 4 rounds"):
        uneven()


def test_a_block_that_ended_leaves_waits_for_all_nodes():
    store = sotto.Store()
    rounds = []

    def node(rank):
        x = numpy.zeros(8, dtype=numpy.float32)
        with pytest.raises(sotto.Ended, match="node 2 was told to stop"):
            with sotto.Optimizer(x, nodes=COUNT, rank=rank, store=store) as optimizer:
                while True:
                    if rank == 2 and optimizer.round == 5:
                        optimizer.ask_to_end()
                    optimizer.step(x - numpy.float32(rank))
                    last = optimizer.round
        rounds.append(last)

    nodes.threads(COUNT, node)
    assert len(set(rounds)) == 1


def test_a_rate_that_was_set_later_goes_on():
    def steps(optimizer, x, count):
        for _ in range(count):
            optimizer.step(x - numpy.float32(3))

    x = numpy.zeros(8, dtype=numpy.float32)
    y = numpy.zeros(8, dtype=numpy.float32)
    with sotto.Optimizer(x, nodes=1, lr=0.5) as optimizer:
        steps(optimizer, x, 2)
        optimizer.set_learning_rate(0.125)
        state = optimizer.save()
        steps(optimizer, x, 3)
        assert optimizer.report()["learning_rate"] == 0.125
    with sotto.Optimizer(y, nodes=1, lr=0.5) as optimizer:
        optimizer.load(state)
        steps(optimizer, y, 3)
    assert numpy.array_equal(x, y)


def test_weights_are_those_of_examples():
    store = sotto.Store()
    models = [numpy.zeros(8, dtype=numpy.float32) for _ in range(COUNT)]

    def node(rank):
        x = models[rank]
        with sotto.Optimizer(
            x, nodes=COUNT, rank=rank, store=store, algorithm="allreduce", lr=0.5, weight=10**rank
        ) as optimizer:
            for _ in range(60):
                optimizer.step(x - numpy.float32(rank))

    nodes.threads(COUNT, node)
    assert abs(models[0] - (10 * 1 + 100 * 2) / 111).max() < 1e-4
