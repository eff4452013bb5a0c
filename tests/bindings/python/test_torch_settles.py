"""Until the nodes meet, the optimizer goes along with what is done to the module."""

import pytest
import torch

import sotto.torch
from torch_nodes import bits, loss_at, net, play, same_bits, take_step, wrap


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def load(model):
    model.load_state_dict(net(seed=7).state_dict())


def assign(model):
    model.last.weight.data = net(seed=7).last.weight.data.clone()


def freeze(model):
    model.first.weight.requires_grad_(False)


def order(model):
    weight = model.first.weight
    weight.data = weight.data.t().contiguous().t()


CHANGES = [
    load,
    assign,
    freeze,
    order,
    lambda model: model.double(),
    lambda model: model.bfloat16(),
    lambda model: torch.nn.init.normal_(model.first.weight),
]


@pytest.mark.parametrize("kind", ["wrapped", "with the module", "own rule"])
@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_what_is_done_before_the_first_step_counts_as_if_it_had_come_before(change, kind):
    models, trained = [net(), net()], []
    for model, before in zip(models, (True, False)):
        torch.manual_seed(5)
        if before:
            change(model)
        if kind == "own rule":
            optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, lr=0.1)
        else:
            optimizer = wrap(sgd(model), None if kind == "wrapped" else model, algorithm="dcd")
        if not before:
            change(model)
        start = bits(model)
        for round in range(4):
            take_step(model, optimizer, 0, round)
        trained.append(bits(model))
        assert not same_bits(start, trained[-1])
    assert same_bits(*trained)


def test_a_write_through_data_before_the_first_step_reaches_a_float32_copy_too():
    trained = []
    for before in (True, False):
        model = net().double()
        if before:
            model.first.weight.data.mul_(0.5)
        optimizer = wrap(sgd(model), algorithm="dcd")
        if not before:
            model.first.weight.data.mul_(0.5)
        for round in range(3):
            take_step(model, optimizer, 0, round)
        trained.append(bits(model))
    assert same_bits(*trained)


def test_layers_that_are_unfrozen_before_the_first_step_are_trained():
    for with_module in (True, False):
        model = net()
        model.first.requires_grad_(False)
        optimizer = wrap(sgd(model), model if with_module else None)
        model.first.requires_grad_(True)
        before = bits(model.first)
        take_step(model, optimizer, 0, 0)
        assert not same_bits(before, bits(model.first))


def test_what_the_optimizer_cannot_train_is_refused_before_the_first_step_too():
    for with_module in (True, False):
        model = net()
        optimizer = wrap(sgd(model), model if with_module else None)
        model.last.weight = torch.nn.Parameter(torch.zeros(1, 5))
        with pytest.raises(RuntimeError, match="replaced"):
            optimizer.zero_grad()
    model = net()
    optimizer = wrap(sgd(model), model)
    model.more = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="more.weight: it was unfrozen, added or replaced"):
        optimizer.zero_grad()
    model = net()
    optimizer = wrap(sgd(model), model)
    model.to(torch.complex64)
    for _ in range(2):
        with pytest.raises(TypeError, match="first.weight: it holds torch.complex64"):
            optimizer.zero_grad()
    model = net()
    optimizer = wrap(sgd(model), model)
    optimizer.step(lambda: loss_at(model, 0, 0).backward())
    model.last.weight = torch.nn.Parameter(torch.zeros(1, 5))
    with pytest.raises(RuntimeError, match="replaced"):
        optimizer.zero_grad()


def test_a_rule_of_sotto_s_trains_what_the_module_has_as_the_nodes_meet():
    model = net()
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, algorithm="allreduce", lr=0.5)
    model.last.weight = torch.nn.Parameter(torch.ones(1, 5))
    optimizer.zero_grad()
    model.last.weight.grad = torch.ones(1, 5)
    optimizer.step()
    assert torch.allclose(model.last.weight, torch.full((1, 5), 0.5))
    assert any(model.last.weight is each for each in optimizer.param_groups[0]["params"])


def test_nodes_load_alike_and_schedulers_stay():
    loaded = net(seed=7).state_dict()  # torch's seed is one for all threads

    def node(rank, model, optimizer):
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 2))
        if rank != 1:
            model.load_state_dict(loaded)  # in place; node 1 has had it from the start
        for round in range(4):
            take_step(model, optimizer, rank, round)
            scheduler.step()

    models = [net(), net(seed=7), net()]
    play(3, node, models, local=sgd, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))


def test_buffers_go_along_with_a_module_that_is_converted():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = wrap(sgd(model), model)
    model.double()
    model.register_buffer("more", torch.ones(2))
    optimizer.zero_grad()
    model(torch.randn(8, 4, dtype=torch.float64)).square().mean().backward()
    optimizer.step()
    assert optimizer.state_dict()["sotto_buffers"]["more"].numel() == 2
    with optimizer.averaged():
        assert model[1].running_mean.dtype == torch.float64
    optimizer.finish_with_mean()
