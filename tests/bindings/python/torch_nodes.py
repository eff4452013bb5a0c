"""Small models, and nodes that train them around torch's optimizers."""

import torch

import nodes
import sotto
import sotto.torch


class Net(torch.nn.Module):
    """Two layers that share a bias, one that is never used, and an embedding."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.second = torch.nn.Linear(5, 5)
        self.second.bias = self.first.bias
        self.last = torch.nn.Linear(5, 1)
        self.spare = torch.nn.Linear(3, 2)

    def forward(self, inputs):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(inputs)))))


def net(seed=1):
    torch.manual_seed(seed)
    return Net()


def loss_at(model, rank, round, rows=8):
    generator = torch.Generator().manual_seed(100 * rank + round)
    inputs = torch.randn(rows, 6, generator=generator)
    dtype = next(model.parameters()).dtype
    targets = inputs.sum(dim=1, keepdim=True).sin()
    return (model(inputs.to(dtype)).float() - targets).square().mean()


def take_step(model, optimizer, rank, round):
    optimizer.zero_grad()
    loss_at(model, rank, round).backward()
    optimizer.step()


def bits(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def same_bits(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right))


def wrap(local, model=None, **settings):
    settings.setdefault("nodes", 1)
    return sotto.torch.DistributedOptimizer(local, module=model, **settings)


def play(count, node, models=None, **settings):
    """Runs `node(rank, model, wrapped)` on `count` nodes; returns their models. `settings` has "local",
    which makes a torch optimizer of a model."""
    store = sotto.Store()
    local = settings.pop("local")
    models = models or [net() for _ in range(count)]

    def run(rank):
        model = models[rank]
        with wrap(
            local(model), model, nodes=count, rank=rank, store=store, timeout=60, **settings
        ) as optimizer:
            node(rank, model, optimizer)

    nodes.threads(count, run)
    return models
