"""What a torch optimizer saves, and what is refused around one."""

import copy
import io

import pytest
import torch

import sotto
import sotto.torch
from torch_nodes import Net, bits, loss_at, net, play, same_bits, take_step, wrap

ROUNDS = 12


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def adagrad(model):
    return torch.optim.Adagrad(model.parameters(), lr=0.05, initial_accumulator_value=0.1)


def run(local, begin, end, saved, models, **settings):
    """Rounds begin to end of three nodes; loads what is in `saved` by rank, and leaves the state."""

    def node(rank, model, optimizer):
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
        if rank in saved:
            file = io.BytesIO(saved[rank])
            state = torch.load(file)
            optimizer.load_state_dict(state["optimizer"])
            scheduler.load_state_dict(state["scheduler"])
        for round in range(begin, end):
            take_step(model, optimizer, rank, round)
            scheduler.step()
        file = io.BytesIO()
        torch.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, file)
        saved[rank] = file.getvalue()

    return play(3, node, models, local=local, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("local", [adamw, sgd, adagrad])
@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "dcd", "compressor": "quant:8"},
        {"algorithm": "choco", "compressor": "topk:0.3"},
        {"algorithm": "allreduce", "communication_interval": 2},
    ],
    ids=lambda settings: settings["algorithm"],
)
def test_a_run_that_was_saved_and_loaded_ends_with_the_same_bits(settings, local, dtype):
    def models():
        return [net().to(dtype) for _ in range(3)]

    whole = run(local, 0, ROUNDS, {}, models(), **settings)
    saved = {}
    run(local, 0, ROUNDS // 2, saved, models(), **settings)
    resumed = run(local, ROUNDS // 2, ROUNDS, saved, models(), **settings)
    for a, b in zip(whole, resumed):
        assert same_bits(bits(a), bits(b))


def test_a_state_is_a_snapshot_and_may_be_taken_back_twice():
    model = net()
    first = wrap(adamw(model))
    for round in range(3):
        take_step(model, first, 0, round)
    state = first.state_dict()
    for round in range(3, 8):
        take_step(model, first, 0, round)
    first.finish()
    for _ in range(2):
        other = net(seed=9)
        resumed = wrap(adamw(other))
        resumed.load_state_dict(state)
        for round in range(3, 8):
            take_step(other, resumed, 0, round)
        resumed.finish()
        assert same_bits(bits(model), bits(other))


def test_sotto_s_own_rule_is_saved_with_its_rate():
    def made(model):
        return sotto.torch.DistributedOptimizer(model, nodes=1, lr=0.5, momentum=0.9)

    model, other = net(), net(seed=4)
    first, second = made(model), made(other)
    for round in range(6):
        if round == 2:
            first.param_groups[0]["lr"] = 0.125
        if round == 3:
            second.load_state_dict(first.state_dict())
            assert second.param_groups[0]["lr"] == 0.125
        take_step(model, first, 0, round)
        if round >= 3:
            take_step(other, second, 0, round)
    assert same_bits(bits(model), bits(other))


def test_a_state_of_something_else_is_refused_and_changes_nothing():
    model = net()
    plain = adamw(net())
    optimizer = wrap(adamw(model))
    before = bits(model)
    with pytest.raises(sotto.Refused, match="no state of a sotto.torch.DistributedOptimizer"):
        optimizer.load_state_dict(plain.state_dict())
    other = net()
    narrow = wrap(torch.optim.AdamW(other.first.parameters(), lr=0.01, weight_decay=0.1))
    take_step(other, narrow, 0, 0)
    with pytest.raises(sotto.Unexpected, match="saved under other settings"):
        optimizer.load_state_dict(narrow.state_dict())
    damaged = narrow.state_dict()
    damaged["sotto"] = damaged["sotto"][:-3]
    with pytest.raises(sotto.Malformed):
        optimizer.load_state_dict(damaged)
    assert same_bits(before, bits(model)) and not optimizer.state
    take_step(model, optimizer, 0, 0)
    with pytest.raises(sotto.Refused, match="before the first step"):
        optimizer.load_state_dict(optimizer.state_dict())
    optimizer.finish()


def test_it_can_be_neither_copied_nor_pickled():
    optimizer = wrap(sgd(net()))
    with pytest.raises(TypeError, match="save its state_dict"):
        copy.deepcopy(optimizer)
    with pytest.raises(TypeError, match="save its state_dict"):
        torch.save(optimizer, io.BytesIO())


class Sharpened(torch.optim.SGD):
    """Evaluates the loss twice a step."""

    def step(self, closure):
        closure()
        return super().step(closure)


class Counting(torch.optim.SGD):
    """Saves more than torch's state."""

    def state_dict(self):
        return {**super().state_dict(), "count": 1}


@pytest.mark.parametrize(
    "local, message",
    [
        (lambda m: torch.optim.LBFGS(m.parameters()), "LBFGS is refused: it evaluates the loss"),
        (lambda m: torch.optim.SparseAdam(list(m.parameters())), "SparseAdam is refused"),
        (lambda m: Sharpened(m.parameters(), lr=0.1), "Sharpened is refused: its step"),
        (lambda m: Counting(m.parameters(), lr=0.1), "Counting is refused: its state_dict"),
        (lambda m: wrap(sgd(m)), "distributed already"),
        (lambda m: sgd(m.requires_grad_(False)), "nothing to train"),
    ],
)
def test_optimizers_that_cannot_be_wrapped_are_refused(local, message):
    model = net()
    with pytest.raises(sotto.Refused, match=message):
        wrap(local(model))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"lr": 0.1}, "lr: the wrapped optimizer has its own"),
        ({"momentum": 0.9}, "momentum: the step rule is the caller's own"),
        ({"schedule": "cosine", "rounds": 5}, "schedule: the step rule is the caller's own"),
        ({"clip_norm": 1}, "clip_norm: the step rule is the caller's own"),
        ({"algorithm": "onebit-adam"}, "onebit-adam"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_that_the_wrapped_optimizer_has_are_refused_and_leave_the_module_as_it_was(
    settings, message
):
    model = net()
    address = model.first.weight.data_ptr()
    with pytest.raises(sotto.Refused, match=message):
        wrap(sgd(model), model, **settings)
    assert model.first.weight.data_ptr() == address and model.first.weight.grad is None


def twice(model):
    with pytest.warns(UserWarning):
        return torch.optim.SGD([model.last.weight, model.last.weight], lr=0.1)


def overlapping(model):
    whole = torch.zeros(10)
    return torch.optim.SGD([whole[:6].requires_grad_(), whole[4:].requires_grad_()], lr=0.1)


def expanded(model):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, 3).expand(4, 3))], lr=0.1)


@pytest.mark.parametrize(
    "local, error, message",
    [
        (lambda m: sgd(m.to(torch.complex64)), TypeError, r"0: it holds torch.complex64; .*\.float\("),
        (expanded, TypeError, "0: several of its elements are one in memory"),
        (lambda m: sgd(m.to("meta")), TypeError, "0: it lies on meta"),
        (twice, sotto.Refused, "1: it is given twice"),
        (overlapping, sotto.Refused, "1: it overlaps 0"),
        (lambda m: sgd(torch.nn.LazyLinear(3)), TypeError, "0: it has no shape yet"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_parameters_that_cannot_be_trained_are_refused(local, error, message):
    with pytest.raises(error, match=message):
        wrap(local(net()))


def replace(model):
    model.last.weight = torch.nn.Parameter(torch.zeros(1, 5))


def load_in_place(model):
    model.load_state_dict(net(seed=3).bfloat16().state_dict())


@pytest.mark.parametrize(
    "dtype, change, message",
    [
        (torch.float32, lambda m: m.double(), "the module was moved or changed its type"),
        (torch.float32, lambda m: m.half(), "the module was moved or changed its type"),
        (torch.float32, lambda m: m.to("meta"), "first.weight: it was unfrozen, added or replaced"),
        (
            torch.float32,
            lambda m: setattr(m.last.weight, "data", m.last.weight.data.clone()),
            "last.weight: the module was moved .* or its storage was replaced",
        ),
        (torch.float32, replace, r"last.weight: it was unfrozen, added or replaced"),
        (
            torch.float32,
            lambda m: m.add_module("more", torch.nn.Linear(2, 2)),
            "more.weight: .*added",
        ),
        (torch.float32, lambda m: delattr(m, "spare"), "no longer the module's"),
        (torch.bfloat16, lambda m: m.float(), "its values were replaced"),
        (torch.bfloat16, load_in_place, "changed in place, and steps are made on a float32 copy"),
    ],
)
def test_what_happens_to_parameters_behind_the_optimizer_s_back_is_found(dtype, change, message):
    model = net().to(dtype)
    optimizer = wrap(adamw(model), model)
    take_step(model, optimizer, 0, 0)
    change(model)
    for call in (optimizer.zero_grad, optimizer.step):
        with pytest.raises(RuntimeError, match=message):
            call()
    optimizer.close()


def test_without_the_module_one_that_was_replaced_is_found():
    model = net()
    optimizer = wrap(sgd(model))
    take_step(model, optimizer, 0, 0)
    other = net()
    other.load_state_dict(model.state_dict())
    take_step(model, optimizer, 0, 1)
    replace(model)
    with pytest.raises(RuntimeError, match="3: it was replaced"):
        optimizer.zero_grad()


def test_what_two_layers_share_may_be_replaced_in_one_of_them():
    model = net()
    optimizer = wrap(sgd(model))
    model.second.bias = torch.nn.Parameter(torch.zeros(5), requires_grad=False)
    take_step(model, optimizer, 0, 0)
    optimizer.finish()


def test_without_the_module_parameters_that_are_all_gone_are_found():
    model = net()
    optimizer = wrap(sgd(model))
    model = net()
    optimizer.zero_grad()
    loss_at(model, 0, 0).backward()
    with pytest.raises(RuntimeError, match="no parameter has a gradient"):
        optimizer.step()


@pytest.mark.parametrize("with_module", [True, False])
def test_layers_that_were_frozen_as_nodes_met_are_not_unfrozen(with_module):
    model = net()
    model.first.requires_grad_(False)
    optimizer = wrap(sgd(model), model if with_module else None)
    frozen = model.first.weight.detach().clone()
    take_step(model, optimizer, 0, 0)
    assert torch.equal(frozen, model.first.weight)
    model.first.requires_grad_(True)
    with pytest.raises(RuntimeError, match="make a new optimizer"):
        optimizer.zero_grad()


@pytest.mark.parametrize("with_module", [True, False])
def test_layers_that_are_frozen_later_get_the_bits_that_torch_gives(with_module):
    model, plain = net(), net()
    reference = sgd(plain)
    optimizer = wrap(sgd(model), model if with_module else None, algorithm="dpsgd")
    for step in range(12):
        if step in (3, 8):
            for each in (model, plain):
                each.first.requires_grad_(step == 8)
                each.zero_grad(set_to_none=True)  # torch steps what still has a gradient
        before = model.first.weight.detach().clone()
        take_step(model, optimizer, 0, step)
        take_step(plain, reference, 0, step)
        assert torch.equal(before, model.first.weight) == (3 <= step < 8)
        for ours, theirs in zip(model.parameters(), plain.parameters()):
            assert torch.equal(ours, theirs)


def test_layers_that_are_frozen_later_stay_where_they_are_at_all_nodes():
    def node(rank, model, optimizer):
        for step in range(6):
            model.first.requires_grad_(step < 3)  # gradients that are left over do not count
            before = model.first.weight.detach().clone()
            take_step(model, optimizer, rank, step)
            assert torch.equal(before, model.first.weight) == (step >= 3)

    play(3, node, local=sgd, algorithm="allreduce")


def test_a_node_that_freezes_a_layer_by_itself_is_named():
    def node(rank, model, optimizer):
        for step in range(6):
            model.first.requires_grad_(rank == 0 or step < 2)
            take_step(model, optimizer, rank, step)

    with pytest.raises(sotto.Error, match="node 1.*settings|settings.*node 1"):
        play(2, node, local=sgd, algorithm="allreduce")


def test_a_rule_of_sottos_leaves_no_layer_out_later():
    model = net()
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, lr=0.1)
    take_step(model, optimizer, 0, 0)
    model.first.requires_grad_(False)
    with pytest.raises(RuntimeError, match="cannot leave out a layer"):
        optimizer.zero_grad()


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "RMSprop", "Adagrad"])
def test_what_an_optimizer_has_learnt_already_is_kept(kind):
    def make(model):
        settings = {"momentum": 0.9} if kind == "SGD" else {}
        return getattr(torch.optim, kind)(model.parameters(), lr=0.05, **settings)

    plain = net()
    reference = make(plain)
    for step in range(4):
        take_step(plain, reference, 0, step)
    model = net()
    model.load_state_dict(plain.state_dict())
    local = make(model)
    local.load_state_dict(copy.deepcopy(reference.state_dict()))  # newer torch shares its tensors
    optimizer = wrap(local, model, algorithm="dpsgd")
    for step in range(4, 8):
        take_step(plain, reference, 0, step)
        take_step(model, optimizer, 0, step)
        for ours, theirs in zip(model.parameters(), plain.parameters()):
            assert torch.equal(ours, theirs)


def test_nodes_start_from_equal_moments():
    models = [net() for _ in range(2)]
    learnt = {}
    for rank, model in enumerate(models):
        learnt[id(model)] = sgd(model)
        take_step(model, learnt[id(model)], rank, 0)
        model.load_state_dict(net().state_dict())

    def node(rank, model, optimizer):
        optimizer.zero_grad()

    with pytest.raises(sotto.Unexpected, match="torch-optimizer-state"):
        play(2, node, models, local=lambda model: learnt[id(model)])


def test_frozen_layers_must_be_equal_at_all_nodes():
    models = [net(), net()]
    with torch.no_grad():
        models[1].first.weight[0, 0] += 1
    for model in models:
        model.first.weight.requires_grad_(False)
    with pytest.raises(sotto.Unexpected, match="frozen-parameters"):
        play(2, lambda rank, model, own: own.zero_grad(), models, local=sgd)


def test_groups_that_are_added_or_changed_after_a_step_are_refused():
    model = net()
    local = torch.optim.SGD(model.first.parameters(), lr=0.1)
    optimizer = wrap(local)
    take_step(model, optimizer, 0, 0)
    with pytest.raises(sotto.Refused, match="add_param_group: .*in the first step"):
        optimizer.add_param_group({"params": model.last.parameters()})
    take_step(model, optimizer, 0, 1)
    local.add_param_group({"params": model.last.parameters()})
    with pytest.raises(RuntimeError, match="parameter groups were changed"):
        optimizer.zero_grad()
    own_rule = sotto.torch.DistributedOptimizer(net(), nodes=1)
    with pytest.raises(sotto.Refused, match="one group of all parameters"):
        own_rule.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]})


def with_groups(model, together):
    """Both layers in two groups: given at once, or one after the other."""
    groups = [
        {"params": list(model.first.parameters()), "lr": 0.02},
        {"params": list(model.last.parameters()), "weight_decay": 0.1},
    ]
    optimizer = wrap(torch.optim.AdamW(groups if together else groups[:1], lr=0.01), model)
    if not together:
        optimizer.add_param_group(groups[1])
    return optimizer


def test_a_group_that_is_added_before_the_first_step_is_trained_as_one_that_was_given():
    models, wrapped = [net(), net()], []
    for model, together in zip(models, (True, False)):
        optimizer = with_groups(model, together)
        wrapped.append(optimizer)
        for round in range(5):
            take_step(model, optimizer, 0, round)
    assert same_bits(bits(models[0]), bits(models[1]))
    assert not same_bits(bits(models[0].last), bits(net().last))
    resumed = net()
    again = with_groups(resumed, True)
    again.load_state_dict(wrapped[1].state_dict())
    assert same_bits(bits(resumed), bits(models[1]))


def test_a_group_that_cannot_be_added_leaves_the_optimizer_as_it_was():
    model = net()
    optimizer = wrap(torch.optim.SGD(model.first.parameters(), lr=0.1), model)
    with pytest.raises(TypeError, match="complex64"):
        extra = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
        optimizer.add_param_group({"params": [extra]})
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [model.first.weight]})
    assert len(optimizer.param_groups) == 1
    before = bits(model.first)
    take_step(model, optimizer, 0, 0)
    assert not same_bits(before, bits(model.first))


def test_groups_are_added_on_all_nodes_of_a_run():
    def node(rank, model, optimizer):
        optimizer.add_param_group({"params": model.last.parameters(), "lr": 0.01})
        for round in range(4):
            take_step(model, optimizer, rank, round)

    models = play(
        3, node, local=lambda m: torch.optim.SGD(m.first.parameters(), lr=0.1), algorithm="allreduce"
    )
    assert same_bits(bits(models[0]), bits(models[2]))
    assert not same_bits(bits(models[0].last), bits(net().last))


def test_a_state_that_is_loaded_into_the_wrapped_optimizer_is_refused():
    model = net()
    local = sgd(model)
    optimizer = wrap(local)
    local.load_state_dict(sgd(net()).state_dict())
    with pytest.raises(RuntimeError, match="loaded or replaced by itself"):
        optimizer.zero_grad()


def test_a_module_that_the_parameters_are_not_of_is_refused():
    with pytest.raises(sotto.Refused, match="parameters that are not the module's"):
        wrap(sgd(net()), net())
    with pytest.raises(TypeError, match="module: dict is no torch.nn.Module"):
        wrap(sgd(net()), {})
    with pytest.raises(TypeError, match="another one than the first argument"):
        wrap(net(), net())
    with pytest.raises(TypeError, match="NoneType is no torch.nn.Module"):
        sotto.torch.DistributedOptimizer(nodes=1)
    sotto.torch.DistributedOptimizer(module=net(), nodes=1).close()


def test_a_model_outlives_the_optimizer_and_can_have_another_one():
    model = net()
    first = wrap(sgd(model), model)
    take_step(model, first, 0, 0)
    first.finish()
    first.close()
    del first
    loaded = Net()
    loaded.load_state_dict(model.state_dict())
    assert same_bits(bits(model), bits(loaded))
    second = wrap(adamw(model), model)
    take_step(model, second, 0, 1)
    second.finish()
    assert not same_bits(bits(model), bits(loaded))


def test_a_parameter_is_saved_alone():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(300, 300))
    model.register_parameter("none", torch.nn.Parameter(torch.zeros(0, 3)))
    optimizer = wrap(sgd(model), model)
    optimizer.zero_grad()
    (model[0](torch.ones(1, 2)).sum() + model[1](torch.ones(1, 300)).sum()).backward()
    optimizer.step()
    optimizer.finish()
    file = io.BytesIO()
    torch.save(model[0].state_dict(), file)
    assert len(file.getvalue()) < 10_000
    before = copy.deepcopy(model[0].state_dict())
    del optimizer
    assert all(torch.equal(before[name], value) for name, value in model[0].state_dict().items())


def test_the_mean_of_half_precision_is_shown_and_left():
    def node(rank, model, optimizer):
        for round in range(5):
            take_step(model, optimizer, rank, round)
        own = bits(model)
        with optimizer.averaged():
            means.append(bits(model))
        assert same_bits(own, bits(model))
        take_step(model, optimizer, rank, 5)

    means = []
    play(2, node, [net().bfloat16() for _ in range(2)], local=sgd, algorithm="dpsgd")
    assert same_bits(means[0], means[1])


def test_nodes_with_different_amounts_of_data_go_along():
    models = [net() for _ in range(3)]

    def node(rank, model, optimizer):
        for round in range(3 + 2 * rank):
            take_step(model, optimizer, rank, round)
        optimizer.finish_with_mean()

    play(3, node, models, local=adamw, join="zeros", algorithm="dcd")
    assert same_bits(bits(models[0]), bits(models[2]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_block_ends_with_the_steps_that_a_node_went_along_with(dtype):
    models = [net().to(dtype) for _ in range(2)]

    def node(rank, model, optimizer):
        for round in range(3 + 4 * rank):
            take_step(model, optimizer, rank, round)

    play(2, node, models, local=sgd, join="zeros", algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))
