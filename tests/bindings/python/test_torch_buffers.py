"""Buffers: running statistics go with the model that is averaged, evaluated and saved."""

import io

import pytest
import torch

import sotto
import sotto.torch
from torch_nodes import bits, play, same_bits, wrap


class Normed(torch.nn.Module):
    """Batch normalization, a buffer of whole numbers, one of float64, and one that is derived."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 9)
        self.norm = torch.nn.BatchNorm1d(9)
        self.last = torch.nn.Linear(9, 1)
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.register_buffer("none", None)

    def forward(self, inputs):
        self.scratch += 1
        self.seen = self.seen + inputs.shape[0]  # another tensor in its place
        return self.last(torch.relu(self.norm(self.first(inputs))))


def normed():
    torch.manual_seed(4)
    return Normed()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def loss_at(model, rank, round):
    generator = torch.Generator().manual_seed(100 * rank + round)
    inputs = torch.randn(8, 6, generator=generator)
    return (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()


def steps(model, optimizer, rank, begin, end):
    for round in range(begin, end):
        optimizer.zero_grad()
        loss_at(model, rank, round).backward()
        optimizer.step()


def buffers_of(model):
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


def same_buffers(left, right, but=()):
    return all(torch.equal(left[name], right[name]) for name in left if name not in but)


@pytest.mark.parametrize("own_rule", [False, True])
def test_buffers_start_as_node_0_s_and_their_mean_comes_with_the_model_s(own_rule):
    models = [normed() for _ in range(3)]
    started, before, shown, last = ([None] * 3 for _ in range(4))
    for rank, model in enumerate(models):
        model.norm.running_mean.fill_(rank)

    def node(rank, model, optimizer):
        optimizer.zero_grad()
        started[rank] = buffers_of(model)
        steps(model, optimizer, rank, 0, 5)
        before[rank] = buffers_of(model)
        with optimizer.averaged():
            shown[rank] = buffers_of(model)
            model(torch.zeros(8, 6))
        assert same_buffers(before[rank], buffers_of(model), but=["scratch"])
        steps(model, optimizer, rank, 5, 6)
        last[rank] = buffers_of(model)
        optimizer.finish_with_mean()

    local = (lambda model: model) if own_rule else sgd
    play(3, node, models, local=local, algorithm="dcd")
    for rank, model in enumerate(models):
        assert torch.equal(started[rank]["norm.running_mean"], torch.zeros(9))
        assert same_buffers(shown[rank], shown[0], but=["norm.num_batches_tracked"])
        for name in ("norm.running_mean", "norm.running_var", "seen"):
            mean = sum(each[name] for each in before) / 3
            assert torch.allclose(shown[rank][name], mean, rtol=1e-5, atol=1e-6)
            end = sum(each[name] for each in last) / 3
            assert torch.allclose(buffers_of(model)[name], end, rtol=1e-5, atol=1e-6)
        assert model.norm.num_batches_tracked == 6
        assert not torch.equal(before[rank]["norm.running_mean"], shown[rank]["norm.running_mean"])


def test_a_setting_leaves_buffers_each_node_s_own():
    models = [normed() for _ in range(2)]

    def node(rank, model, optimizer):
        model.norm.running_mean.fill_(rank)
        optimizer.zero_grad()
        assert model.norm.running_mean[0] == rank
        before = buffers_of(model)
        optimizer.finish_with_mean()
        assert same_buffers(before, buffers_of(model))

    play(2, node, models, local=sgd, buffers=False)


def test_nodes_that_carry_other_buffers_do_not_start():
    models = [normed(), normed()]
    models[1].register_buffer("more", torch.zeros(2))
    with pytest.raises(sotto.Unexpected, match="carried-values"):
        play(2, lambda rank, model, own: own.zero_grad(), models, local=sgd)


def test_a_node_without_data_gives_its_buffers_too():
    models = [normed() for _ in range(3)]
    for rank, model in enumerate(models):
        model.norm.running_mean.fill_(3 - rank)

    def node(rank, model, optimizer):
        steps(model, optimizer, rank, 0, 2 * rank)  # node 0 has none
        optimizer.finish_with_mean()

    play(3, node, models, local=sgd, join="zeros", algorithm="allreduce")
    for model in models[1:]:
        assert torch.equal(model.norm.running_mean, models[0].norm.running_mean)


@pytest.mark.parametrize("algorithm", ["choco", "allreduce"])
def test_buffers_are_part_of_what_is_saved(algorithm):
    def trained(begin, end, saved):
        def node(rank, model, optimizer):
            if rank in saved:
                optimizer.load_state_dict(torch.load(io.BytesIO(saved[rank])))
            steps(model, optimizer, rank, begin, end)
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            saved[rank] = file.getvalue()

        return play(3, node, [normed() for _ in range(3)], local=sgd, algorithm=algorithm)

    whole, saved = trained(0, 6, {}), {}
    trained(0, 3, saved)
    resumed = trained(3, 6, saved)
    for left, right in zip(whole, resumed):
        assert same_bits(bits(left), bits(right))
        assert same_buffers(buffers_of(left), buffers_of(right), but=["scratch"])


def test_buffers_of_another_model_are_refused_and_change_nothing():
    model, other = normed(), normed()
    optimizer = wrap(sgd(model), model)
    state = wrap(sgd(other), other).state_dict()
    del state["sotto_buffers"]["norm.running_mean"]
    before = bits(model)
    with pytest.raises(sotto.Refused, match="buffers are those of another model: norm.running_mean"):
        optimizer.load_state_dict(state)
    assert same_bits(before, bits(model))


def resize(model):
    model.seen = torch.zeros(2, dtype=torch.float64)


def halve_statistics(model):
    model.norm.running_var = model.norm.running_var.half()


@pytest.mark.parametrize(
    "change, message",
    [
        (resize, "seen: the buffer has another shape"),
        (lambda m: m.register_buffer("more", torch.zeros(2)), "more: the buffer was added"),
        (lambda m: delattr(m, "seen"), "seen: the buffer was added or removed"),
        (lambda m: m.norm.half(), "norm.weight: the module was moved or changed its type"),
        (halve_statistics, "norm.running_var: the buffer has another .* type"),
    ],
)
def test_buffers_that_are_changed_later_are_found(change, message):
    model = normed()
    optimizer = wrap(sgd(model), model)
    steps(model, optimizer, 0, 0, 1)
    change(model)
    with pytest.raises(RuntimeError, match=message):
        optimizer.zero_grad()


def test_alone_buffers_keep_all_of_their_bits():
    plain, model = normed(), normed()
    for each in (plain, model):
        each.seen.fill_(2.0**40 + 0.125)  # no float32
    steps(plain, sgd(plain), 0, 0, 3)
    optimizer = wrap(sgd(model), model, algorithm="allreduce")
    steps(model, optimizer, 0, 0, 3)
    with optimizer.averaged():
        assert same_buffers(buffers_of(plain), buffers_of(model))
    optimizer.finish_with_mean()
    assert same_bits(bits(plain), bits(model))
    assert same_buffers(buffers_of(plain), buffers_of(model))
