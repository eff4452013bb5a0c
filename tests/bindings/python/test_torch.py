"""The wrapper for PyTorch modules."""

import numpy
import pytest
import torch

import nodes
import sotto
import sotto.torch


def module(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))


def batch(rank, round):
    generator = torch.Generator().manual_seed(100 * rank + round)
    inputs = torch.randn(16, 6, generator=generator)
    return inputs, inputs.sum(dim=1, keepdim=True).sin()


def loss_at(model, rank, round):
    inputs, targets = batch(rank, round)
    return torch.nn.functional.mse_loss(model(inputs), targets)


def test_one_node_is_plain_sgd():
    plain = module()
    reference = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    model = module()
    # In full precision: dcd sends, and therefore steps by, compressed differences even alone.
    settings = {"algorithm": "allreduce", "lr": 0.1, "momentum": 0.9}
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, **settings)
    for round in range(20):
        for held, own in ((plain, reference), (model, optimizer)):
            own.zero_grad()
            loss_at(held, 0, round).backward()
            own.step()
    optimizer.finish()
    for expected, got in zip(plain.parameters(), model.parameters()):
        assert torch.allclose(expected, got, rtol=1e-5, atol=1e-6)


def test_nodes_learn_together_and_gradients_may_be_made_anew():
    store = sotto.Store()
    models = [module() for _ in range(4)]
    before = sum(loss_at(models[0], rank, 0).item() for rank in range(4))
    wrapped = [
        sotto.torch.DistributedOptimizer(
            models[rank], nodes=4, rank=rank, store=store, compressor="quant:8", lr=0.1
        )
        for rank in range(4)
    ]

    def node(rank):
        for round in range(60):
            if rank % 2 == 0:
                wrapped[rank].zero_grad()
            else:
                models[rank].zero_grad(set_to_none=True)
            loss_at(models[rank], rank, round).backward()
            wrapped[rank].step()
        wrapped[rank].finish()

    nodes.threads(4, node)
    after = sum(loss_at(models[0], rank, 0).item() for rank in range(4))
    assert after < 0.7 * before
    flat = [torch.nn.utils.parameters_to_vector(m.parameters()).detach() for m in models]
    assert max(torch.dist(flat[0], other).item() for other in flat) < 0.5


@pytest.mark.parametrize("algorithm", ["dcd", "dpsgd"])
def test_a_graph_of_before_a_step_cannot_be_used_after_it(algorithm):
    model = module()
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, algorithm=algorithm, lr=0.1)
    optimizer.zero_grad()
    loss = loss_at(model, 0, 0)
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss_at(model, 0, 1).backward()
    optimizer.step()
    optimizer.finish()


def test_the_model_is_sent_while_the_gradient_is_computed():
    store = sotto.Store()
    wrapped = [
        sotto.torch.DistributedOptimizer(
            module(), nodes=2, rank=rank, store=store, algorithm="dpsgd", lr=0.1
        )
        for rank in range(2)
    ]
    # Both at once: the first one meets the other node.
    nodes.threads(2, lambda rank: wrapped[rank].zero_grad())
    nodes.threads(2, lambda rank: wrapped[rank].finish())
    for optimizer in wrapped:
        assert optimizer.optimizer.report()["traffic"][0]["frames"] == 1


def test_tensors_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="parameters: the tensor holds torch.float64"):
        sotto.Optimizer(torch.zeros(4, dtype=torch.float64), nodes=1)
    with pytest.raises(ValueError, match="parameters: the tensor is not contiguous"):
        sotto.Optimizer(torch.zeros(4, 4).t()[:, :2], nodes=1)
    with pytest.raises(TypeError, match="generator is no torch.nn.Module; give the model"):
        sotto.torch.DistributedOptimizer(torch.nn.Linear(2, 2).parameters(), nodes=1)
    with pytest.raises(TypeError, match="0.weight: it holds torch.complex64"):
        sotto.torch.DistributedOptimizer(module().to(torch.complex64), nodes=1)
    model = module()
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1)
    optimizer.zero_grad()
    model.double()
    with pytest.raises(RuntimeError, match="0.weight: the module was moved"):
        optimizer.step()


def test_refused_settings_leave_the_module_as_it_was():
    model = module()
    first = next(model.parameters())
    address = first.data_ptr()
    with pytest.raises(sotto.Refused):
        sotto.torch.DistributedOptimizer(model, nodes=1, colour="red")
    assert first.data_ptr() == address and first.grad is None


def test_a_tensor_is_changed_in_place():
    x = torch.ones(8)
    with sotto.Optimizer(x, nodes=1, lr=0.5) as optimizer:
        optimizer.step(torch.ones(8))
    assert numpy.array_equal(x.numpy(), numpy.full(8, 0.5, dtype=numpy.float32))


def test_the_mean_is_there_inside_a_block():
    store = sotto.Store()
    models = [module() for _ in range(3)]
    wrapped = [
        sotto.torch.DistributedOptimizer(m, nodes=3, rank=rank, store=store, lr=0.1)
        for rank, m in enumerate(models)
    ]
    seen = [None] * 3

    def node(rank):
        for round in range(4):
            wrapped[rank].zero_grad()
            loss_at(models[rank], rank, round).backward()
            wrapped[rank].step()
        own = [p.detach().clone() for p in models[rank].parameters()]
        with wrapped[rank].averaged():
            seen[rank] = [p.detach().clone() for p in models[rank].parameters()]
        assert all(torch.equal(a, b) for a, b in zip(own, models[rank].parameters()))
        wrapped[rank].finish()

    nodes.threads(3, node)
    for index, means in enumerate(zip(*seen)):
        expected = sum(list(m.parameters())[index].detach() for m in models) / 3
        assert torch.allclose(means[0], expected, atol=1e-6)
        assert torch.equal(means[0], means[2])


def test_a_block_that_raises_tells_all_nodes_why():
    store = sotto.Store()
    said = [None] * 3

    def node(rank):
        model = models[rank]
        try:
            with sotto.torch.DistributedOptimizer(
                model, nodes=3, rank=rank, store=store, lr=0.1
            ) as optimizer:
                for round in range(100):
                    if rank == 2 and round == 4:
                        raise KeyError("label 12")
                    optimizer.zero_grad()
                    loss_at(model, rank, round).backward()
                    optimizer.step()
                    optimizer.evaluated(0.5)
        except (KeyError, sotto.PeerLost) as error:
            said[rank] = str(error)

    models = [module() for _ in range(3)]
    nodes.threads(3, node)
    assert said[:2] == 2 * ["node 2: KeyError: 'label 12'"]
