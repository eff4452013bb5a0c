"""Optimizers of PyTorch that make the steps of nodes that come and go."""

import random

import pytest
import torch

import sotto
import sotto.torch
from nodes import federation, free_port, threads
from sotto._optimizer_state import load_state, save_state
from torch_nodes import bits, loss_at, net, same_bits


def settings(port, **more):
    return {"seeds": f"127.0.0.1:{port}", "wait_limit": 60, **more}


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)


def train(node, model, rank, until=None):
    node.connect()
    while not node.over and (until is None or node.round < until):
        node.zero_grad()
        loss = loss_at(model, rank, node.node.next_step)
        loss.backward()
        node.step(loss)


def by_torch(model, steps, optimizer, schedule=None):
    """What torch alone makes of the model."""
    for step in range(steps):
        if schedule is not None:
            schedule(step, optimizer.param_groups)
        optimizer.zero_grad()
        loss_at(model, 0, step).backward()
        for parameter in model.parameters():  # nodes count a missing gradient as 0
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    return bits(model)


def warm_up(step, groups):
    for group in groups:
        group["lr"] = 0.02 * min(1, (step + 1) / 5)


KINDS = {
    "adamw": adamw,
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True),
    "rmsprop": lambda model: torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5),
    "adagrad": lambda model: torch.optim.Adagrad(model.parameters(), lr=0.05),
    "asgd": lambda model: torch.optim.ASGD(model.parameters(), lr=0.05),
    "nadam": lambda model: torch.optim.NAdam(model.parameters(), lr=0.01),
    "rprop": lambda model: torch.optim.Rprop(model.parameters(), lr=0.01),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_node_gets_the_bits_of_torch_alone(kind):
    model, other = net(), net()
    with sotto.torch.ElasticOptimizer(
        model,
        optimizer=KINDS[kind](model),
        nodes="1:2",
        found_after=0.01,
        rounds=12,
        **settings(free_port()),
    ) as node:
        train(node, model, 0)
    assert same_bits(bits(model), by_torch(other, 12, KINDS[kind](other)))


@pytest.mark.parametrize("schedule", [None, warm_up])
def test_a_newcomer_takes_over_what_the_optimizers_remember(schedule):
    port = free_port()
    models = [net(seed=seed) for seed in range(4)]

    def node(number):
        given = {"optimizer": adamw(models[number]), "schedule": schedule}
        return sotto.torch.ElasticOptimizer(
            models[number], nodes="3:3", rounds=60, **given, **settings(port)
        )

    def run(rank):
        if rank == 2:
            early = node(2)
            train(early, models[2], 2, until=10)
            early.close()  # as a process that dies: two of three go on
        number = rank if rank < 2 else 3
        with node(number) as late:
            train(late, models[number], number)

    threads(3, run)
    assert same_bits(bits(models[0]), bits(models[1]))
    assert same_bits(bits(models[0]), bits(models[3]))


def test_a_site_goes_on_with_what_its_optimizer_remembers(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    model = net()
    whole = federation(tmp_path / "whole", ["a", "b"])["a"]
    with sotto.torch.Site(
        model, optimizer=adamw(model), schedule=warm_up, rounds=9, found_after=0.01, site=whole
    ) as site:
        train(site, model, 0)
    parts = federation(tmp_path / "parts", ["a", "b"])["a"]
    for rounds in (4, 9):
        continued = net()
        with sotto.torch.Site(
            continued,
            optimizer=adamw(continued),
            schedule=warm_up,
            rounds=rounds,
            found_after=0.01,
            site=parts,
        ) as site:
            train(site, continued, 0)
    assert same_bits(bits(model), bits(continued))


def test_sites_whose_optimizers_differ_do_not_exchange(tmp_path):
    files = federation(tmp_path, ["a", "b"])
    models = [net(), net()]
    told = [None, None]

    def run(rank):
        rate = (0.02, 0.03)[rank]
        optimizer = torch.optim.AdamW(models[rank].parameters(), lr=rate)
        with sotto.torch.Site(
            models[rank],
            optimizer=optimizer,
            site=files["ab"[rank]],
            patience=0.2,
            found_after=0.2,
            rounds=10_000,
        ) as site:
            site.connect()
            while not site.over and not all(told):
                site.zero_grad()
                loss_at(models[rank], rank, 0).backward()
                site.step()
                if any("group 0" in event["text"] for event in site.events()):
                    told[rank] = True
            site.stop()

    threads(2, run)


def test_what_no_node_can_step_by_is_refused(tmp_path):
    model = net()
    given = {"nodes": "1:2", **settings(free_port())}
    with pytest.raises(sotto.Refused, match="lr: the step rule is the caller's own"):
        sotto.torch.ElasticOptimizer(model, optimizer=adamw(model), lr=0.1, **given)
    with pytest.raises(sotto.Refused, match="schedule: .*give an optimizer"):
        sotto.torch.ElasticOptimizer(model, schedule=warm_up, **given)
    with pytest.raises(sotto.Refused, match="schedule: 'cosine' is refused"):
        sotto.torch.ElasticOptimizer(model, optimizer=adamw(model), schedule="cosine", **given)
    with pytest.raises(sotto.Refused, match="job: 'torch-optimizer' is said"):
        job = {"torch-optimizer": "mine"}
        sotto.torch.ElasticOptimizer(model, optimizer=adamw(model), job=job, **given)
    with pytest.raises(sotto.Refused, match="LBFGS is refused"):
        lbfgs = torch.optim.LBFGS(model.parameters())
        sotto.torch.Site(model, optimizer=lbfgs, site=federation(tmp_path, ["a", "b"])["a"])
    rule = sotto.StepRule("none", lambda *_: None)
    with pytest.raises(sotto.Refused, match="own_step_rule: .*leave one of them out"):
        sotto.torch.ElasticOptimizer(model, optimizer=adamw(model), own_step_rule=rule, **given)
    with pytest.raises(TypeError, match="no torch.optim.Optimizer"):
        sotto.torch.ElasticOptimizer(model, optimizer=model, **given)
    optimizer = adamw(model)
    with sotto.torch.ElasticOptimizer(
        model, optimizer=optimizer, found_after=0.01, rounds=9, **given
    ) as node:
        with pytest.raises(sotto.Refused, match="makes the steps of another node"):
            sotto.torch.ElasticOptimizer(model, optimizer=optimizer, **given)
        with pytest.raises(RuntimeError, match="makes the steps of a node"):
            optimizer.step()
        train(node, model, 0, until=3)
        optimizer.param_groups[0]["lr"] = 0.5
        with pytest.raises(RuntimeError, match="groups were changed.*schedule"):
            node.step()
        node.close()
    optimizer.step()


class Counting(torch.optim.Optimizer):
    """Steps with a rate that falls, by a count in its groups."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1, "k": 0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["k"] += 1
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=group["lr"] / group["k"])


def test_what_an_optimizer_counts_in_its_groups_is_kept(tmp_path):
    whole = net()
    reference = by_torch(whole, 8, Counting(whole.parameters()))
    file = federation(tmp_path, ["a", "b"])["a"]
    for rounds in (3, 8):
        model = net()
        with sotto.torch.Site(
            model,
            optimizer=Counting(model.parameters()),
            rounds=rounds,
            found_after=0.01,
            site=file,
        ) as site:
            train(site, model, 0)
    # A site steps by the difference of two models, which is rounded.
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(bits(model), reference))


def test_a_schedule_of_sottos_is_still_a_setting():
    model = net()
    given = {"nodes": "1:2", "found_after": 0.01, "rounds": 4, **settings(free_port())}
    with sotto.torch.ElasticOptimizer(model, lr=0.1, schedule="cosine,warmup=2", **given) as node:
        train(node, model, 0)


def test_what_a_schedule_raises_is_the_cause():
    model = net()

    def broken(step, groups):
        if step == 3:
            raise KeyError("no such epoch")

    with pytest.raises(sotto.Error, match="no such epoch") as raised:
        with sotto.torch.ElasticOptimizer(
            model,
            optimizer=adamw(model),
            schedule=broken,
            nodes="1:2",
            found_after=0.01,
            rounds=9,
            **settings(free_port()),
        ) as node:
            train(node, model, 0)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_state_comes_back_and_other_bytes_are_refused():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draw = random.Random(seed)
    states = [
        {"step": torch.tensor(7.0), "exp_avg": torch.randn(3, 4), "momentum_buffer": None},
        {},
        {"row": torch.randn(5, 1).to(torch.bfloat16), "seen": torch.tensor([True, False]), "n": 3},
        {"none": torch.zeros(0, 4), "mu": 0.5},
    ]
    shapes = [torch.Size(shape) for shape in ((3, 4), (2,), (5, 6), (0, 4))]
    groups = [{"lr": 0.1, "params": [], "betas": (0.9, 0.99)}, {"k": 3}]
    saved = save_state(states, groups)
    loaded, plain = load_state(saved, shapes, 2)
    assert plain == [{"lr": 0.1}, {"k": 3}]
    assert [list(state) for state in loaded] == [list(state) for state in states]
    for ours, theirs in zip(states, loaded):
        for name, value in ours.items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, theirs[name]) and value.dtype == theirs[name].dtype
            else:
                assert value == theirs[name]
    for other in ((shapes[:3], 2), (shapes, 1), ([torch.Size((4, 3)), *shapes[1:]], 2)):
        with pytest.raises(ValueError):
            load_state(saved, *other)
    for _ in range(3000):
        other = bytearray(saved[: draw.randrange(len(saved) + 1)])
        for _ in range(draw.randrange(4)):
            if other:
                other[draw.randrange(len(other))] = draw.randrange(256)
        if draw.random() < 0.2:
            other += bytes(draw.randrange(1, 9))
        try:
            load_state(bytes(other), shapes, 2)
        except ValueError:
            pass
    with pytest.raises(TypeError, match="cannot be saved"):
        save_state([{"history": [1, 2]}], [])
    with pytest.raises(TypeError, match="no text"):
        save_state([{3: 1.0}], [])
