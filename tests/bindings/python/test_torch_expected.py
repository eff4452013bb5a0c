"""What users of PyTorch expect of an optimizer, one test for each row of the table in docs/bindings.md."""

import io
import pathlib
import pickle
import re

import pytest
import torch

import sotto
import sotto.torch
from torch_nodes import bits, loss_at, net, play, same_bits, take_step, wrap


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def pair(local=adamw, make=net):
    """A model with torch's optimizer, and another one, alike, with that wrapped alone."""
    plain, model = make(), make()
    return (plain, local(plain)), (model, wrap(local(model), model, algorithm="allreduce"))


def need(owner, *names):
    for name in names:
        owner = getattr(owner, name, None)
        if owner is None:
            pytest.skip(f"this PyTorch has no {'.'.join(names)}")
    return owner


OPTIMIZERS = {
    "SGD": [{"lr": 0.1, "momentum": 0.9, "fused": True}, {"lr": 0.1, "foreach": True}],
    "Adam": [{"fused": True}, {"foreach": True}, {"lr": torch.tensor(0.01)}, {"maximize": True}],
    "AdamW": [{"fused": True, "amsgrad": True}, {"foreach": True}],
    "Adagrad": [{"fused": True}, {"foreach": True}],
    "Muon": [{"lr": 0.02}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "Adafactor": [{}, {"foreach": True}],
    "NAdam": [{"decoupled_weight_decay": True}],
    "RAdam": [{"decoupled_weight_decay": True}, {"foreach": True}],
    "ASGD": [{}],
    "Adamax": [{}],
    "Adadelta": [{}],
    "Rprop": [{"foreach": True}],
    "RMSprop": [{"momentum": 0.5}],
}


@pytest.mark.parametrize(
    "kind, options",
    [(kind, options) for kind, all_options in OPTIMIZERS.items() for options in all_options],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_every_optimizer_of_torch_gives_its_own_bits(kind, options):
    made = need(torch.optim, kind)

    def local(model):
        matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
        return made(matrices if kind == "Muon" else model.parameters(), **options)

    try:
        plain = net()
        take_step(plain, local(plain), 0, 0)
    except (TypeError, RuntimeError) as error:
        pytest.skip(f"this PyTorch alone refuses it: {error}")
    (plain, reference), (model, optimizer) = pair(local)
    for round in range(6):
        take_step(plain, reference, 0, round)
        take_step(model, optimizer, 0, round)
    optimizer.finish()
    assert same_bits(bits(plain), bits(model)) and not same_bits(bits(net()), bits(model))


@pytest.mark.parametrize("kind", ["ReduceLROnPlateau", "SWALR"])
def test_schedulers_that_look_at_the_loss_or_average_set_its_rate(kind):
    rates = []
    for model, optimizer in pair(sgd):
        scheduler = {
            "ReduceLROnPlateau": lambda own: torch.optim.lr_scheduler.ReduceLROnPlateau(own, patience=0),
            "SWALR": lambda own: torch.optim.swa_utils.SWALR(own, swa_lr=0.5, anneal_epochs=3),
        }[kind](optimizer)
        for round in range(4):
            take_step(model, optimizer, 0, round)
            scheduler.step(*([1.0] if kind == "ReduceLROnPlateau" else []))
        rates.append((optimizer.param_groups[0]["lr"], bits(model)))
    assert rates[0][0] == rates[1][0] != 0.05 and same_bits(rates[0][1], rates[1][1])


@pytest.mark.parametrize("ema", [True, False])
def test_an_averaged_model_follows_it(ema):
    utilities = torch.optim.swa_utils
    options = {}
    if ema:
        options["multi_avg_fn"] = need(utilities, "get_ema_multi_avg_fn")(0.9)
    both = pair(sgd)
    averages = [utilities.AveragedModel(model, **options) for model, _ in both]
    for round in range(5):
        for (model, optimizer), average in zip(both, averages):
            take_step(model, optimizer, 0, round)
            average.update_parameters(model)
    assert same_bits(bits(averages[0]), bits(averages[1]))
    assert not same_bits(bits(averages[1].module), bits(both[1][0]))


def test_gradients_of_torch_func_are_stepped_with():
    functional = need(torch, "func")
    both = pair(sgd)
    for round in range(4):
        for model, optimizer in both:
            inputs = torch.full((4, 6), 0.1 * round + 0.5)
            held = dict(model.named_parameters())

            def loss(values):
                return functional.functional_call(model, values, (inputs,)).square().mean()

            gradients = functional.grad(loss)({name: p.detach() for name, p in held.items()})
            optimizer.zero_grad()
            for name, parameter in held.items():
                parameter.grad = gradients[name]
            optimizer.step()
    assert same_bits(bits(both[0][0]), bits(both[1][0]))


def test_a_step_may_be_inside_what_is_compiled():
    need(torch, "compile")
    both = pair(adamw)
    inputs = torch.ones(4, 6)

    def loop(model, optimizer):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    compiled = torch.compile(loop, backend="eager")
    step = torch.compile(both[1][1].step, backend="eager")
    for round in range(4):
        loop(*both[0])
        compiled(*both[1])
        take_step(*both[0], 0, round)
        both[1][1].zero_grad()
        loss_at(both[1][0], 0, round).backward()
        step()
    assert same_bits(bits(both[0][0]), bits(both[1][0]))
    assert both[1][1].optimizer.round == 8


def clamp(parameter):
    parameter.grad.clamp_(-0.01, 0.01)


def test_hooks_that_run_in_the_backward_pass_change_the_gradient():
    both = pair(sgd)
    for model, _ in both:
        for parameter in model.parameters():
            need(parameter, "register_post_accumulate_grad_hook")
            parameter.register_post_accumulate_grad_hook(clamp)
            parameter.register_hook(lambda gradient: 0.5 * gradient)
    for round in range(4):
        for model, optimizer in both:
            take_step(model, optimizer, 0, round)
    assert same_bits(bits(both[0][0]), bits(both[1][0]))


@pytest.mark.parametrize("at_wrapped", [True, False])
def test_hooks_around_a_state_see_it_wherever_they_are_registered(at_wrapped):
    model, seen = net(), []
    local = adamw(model)
    need(local, "register_state_dict_post_hook")
    if at_wrapped:
        local.register_state_dict_post_hook(lambda own, state: {**state, "note": 7})
    optimizer = wrap(local, model)
    if not at_wrapped:
        optimizer.register_state_dict_post_hook(lambda own, state: {**state, "note": 7})
    take_step(model, optimizer, 0, 0)
    state = optimizer.state_dict()
    assert state["note"] == 7 and {"state", "param_groups", "sotto"} <= state.keys()
    other = net()
    wrapped = adamw(other)
    resumed = wrap(wrapped, other)
    (wrapped if at_wrapped else resumed).register_load_state_dict_pre_hook(
        lambda own, given: seen.append(given["note"])
    )
    resumed.register_load_state_dict_post_hook(lambda own: seen.append("loaded"))
    resumed.load_state_dict(state)
    assert seen == [7, "loaded"] and same_bits(bits(model), bits(other))


def test_a_scaler_unscales_and_gradients_are_clipped_before_the_step():
    made = need(torch, "amp", "GradScaler")
    both = pair(adamw)
    scalers = [made("cpu", init_scale=1024.0) for _ in both]
    for round in range(5):
        for (model, optimizer), scaler in zip(both, scalers):
            optimizer.zero_grad(set_to_none=round % 2 == 0)
            scaler.scale(loss_at(model, 0, round)).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
    assert same_bits(bits(both[0][0]), bits(both[1][0]))


def test_float64_is_trained_through_a_float32_copy():
    def node(rank, model, optimizer):
        for round in range(20):
            take_step(model, optimizer, rank, round)
        assert optimizer.state[model.last.weight]["exp_avg"].dtype == torch.float32

    models = play(2, node, [net().double() for _ in range(2)], local=adamw, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))
    assert all(value.dtype == torch.float64 for value in bits(models[0]))
    assert all(torch.equal(value, value.float().double()) for value in bits(models[0]))
    assert loss_at(models[0], 0, 0, 64) < 0.8 * loss_at(net().double(), 0, 0, 64)
    single = net()
    optimizer = wrap(adamw(single), single, algorithm="allreduce")
    double = net().double()
    beside = wrap(adamw(double), double, algorithm="allreduce")
    for round in range(5):
        take_step(single, optimizer, 0, round)
        take_step(double, beside, 0, round)
    for a, b in zip(single.parameters(), double.parameters()):
        assert torch.allclose(a.double(), b, atol=1e-5)


@pytest.mark.parametrize(
    "local",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
    ids=["SGD", "Adagrad"],
)
def test_sparse_gradients_are_stepped_with_as_dense_ones(local):
    def table():
        torch.manual_seed(2)
        return torch.nn.Embedding(10, 3, sparse=True)

    both = pair(lambda model: local(model.parameters()), table)
    for round in range(6):
        for model, optimizer in both:
            optimizer.zero_grad(set_to_none=round % 2 == 0)
            for row in (round, 2):  # also rows that come twice, and passes that add up
                model(torch.tensor([row, 2, 2])).square().sum().backward()
            optimizer.step()
    assert torch.allclose(both[0][0].weight, both[1][0].weight, atol=1e-5)
    assert not torch.equal(both[1][0].weight, table().weight)


def test_optimizers_of_dense_gradients_alone_refuse_sparse_ones():
    table = torch.nn.Embedding(10, 3, sparse=True)
    optimizer = wrap(adamw(table), table)
    optimizer.zero_grad()
    table(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(TypeError, match="weight: its gradient is sparse, .* use SGD or Adagrad"):
        optimizer.step()
    with pytest.raises(sotto.Refused, match="SparseAdam is refused"):
        wrap(torch.optim.SparseAdam(list(table.parameters())))


def test_a_rule_of_sotto_s_takes_sparse_gradients():
    torch.manual_seed(2)
    table = torch.nn.Embedding(10, 3, sparse=True)
    before = table.weight.detach().clone()
    optimizer = sotto.torch.DistributedOptimizer(table, nodes=1, algorithm="allreduce", lr=1)
    optimizer.zero_grad()
    table(torch.tensor([1, 1])).sum().backward()
    optimizer.step()
    moved = before - table.weight.detach()
    assert torch.allclose(moved[1], torch.full((3,), 2.0)) and moved.sum().item() == pytest.approx(6)


def test_sparse_gradients_are_averaged_over_the_nodes():
    torch.manual_seed(2)
    models = [torch.nn.Embedding(10, 3, sparse=True) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    before = models[0].weight.detach().clone()

    def node(rank, model, optimizer):
        optimizer.zero_grad()
        model(torch.tensor([rank, 5])).sum().backward()
        optimizer.step()

    play(2, node, models, local=lambda m: torch.optim.SGD(m.parameters(), lr=1), algorithm="allreduce")
    moved = before - models[1].weight.detach()
    assert torch.equal(models[0].weight, models[1].weight)
    assert torch.allclose(moved[:2], torch.full((2, 3), 0.5), atol=1e-6)
    assert torch.allclose(moved[5], torch.ones(3), atol=1e-6) and not moved[6:].any()


def in_another_order(how):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 1))
    if how == "channels_last":
        return model.to(memory_format=torch.channels_last)
    for layer in model:
        turned = layer.weight.detach().transpose(0, 2).contiguous().transpose(0, 2)
        layer.weight = torch.nn.Parameter(turned)
    return model


@pytest.mark.parametrize("how", ["channels_last", "transposed"])
def test_parameters_keep_their_order_in_memory(how):
    both = pair(adamw, lambda: in_another_order(how))
    order = [parameter.stride() for parameter in both[0][0].parameters()]
    assert not both[0][0][0].weight.is_contiguous()
    for round in range(4):
        for model, optimizer in both:
            generator = torch.Generator().manual_seed(round)
            inputs = torch.randn(2, 3, 8, 8, generator=generator)
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
            assert [parameter.stride() for parameter in model.parameters()] == order
    assert same_bits(bits(both[0][0]), bits(both[1][0]))
    model, optimizer = both[1]
    resumed = in_another_order(how)
    again = wrap(adamw(resumed), resumed, algorithm="allreduce")
    again.load_state_dict(optimizer.state_dict())
    assert same_bits(bits(model), bits(resumed))
    with optimizer.averaged():
        assert [parameter.stride() for parameter in model.parameters()] == order


def test_nodes_whose_parameters_lie_in_other_orders_train_one_model():
    models = [in_another_order("channels_last"), in_another_order("transposed")]

    def node(rank, model, optimizer):
        optimizer.zero_grad()
        model(torch.full((2, 3, 8, 8), 0.5 + rank)).square().mean().backward()
        optimizer.step()

    play(2, node, models, local=sgd, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.to(memory_format=torch.channels_last), "0.weight: the module was moved"),
        (lambda m: m.load_state_dict(m.state_dict(), assign=True), "replaced"),
    ],
    ids=["order", "assign"],
)
@pytest.mark.parametrize("with_module", [True, False])
def test_storage_that_is_replaced_later_is_found(change, message, with_module):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 3))
    optimizer = wrap(sgd(model), model if with_module else None)
    optimizer.zero_grad()
    try:
        change(model)
    except TypeError:
        pytest.skip("this PyTorch has no load_state_dict(assign=True)")
    message = message if with_module else message.replace("0.weight", "0")
    with pytest.raises(RuntimeError, match=message):
        optimizer.step()


def test_a_block_ends_with_what_was_raised_of_a_module_that_was_moved():
    torch.manual_seed(3)
    model = torch.nn.Conv2d(3, 4, 3)
    with pytest.raises(RuntimeError, match="weight: the module was moved"):
        with wrap(sgd(model), model) as optimizer:
            optimizer.zero_grad()
            model.to(memory_format=torch.channels_last)
            optimizer.step()


def test_the_wrapped_optimizer_does_not_step_by_itself_until_the_run_is_over():
    model = net()
    local = adamw(model)
    early = torch.optim.lr_scheduler.StepLR(local, 100)
    optimizer = wrap(local, model)
    late = torch.optim.lr_scheduler.StepLR(local, 100)
    take_step(model, optimizer, 0, 0)
    early.step()
    late.step()
    before = bits(model)
    with pytest.raises(RuntimeError, match=r"makes the steps of a node .*: call step\(\) of the node"):
        local.step()
    with pytest.raises(sotto.Refused, match="it makes the steps of another node"):
        wrap(local, model)
    assert same_bits(before, bits(model))
    optimizer.finish()
    local.step()
    assert not same_bits(before, bits(model))


@pytest.mark.parametrize("end", ["close", "finish_with_mean", "block", "fault"])
def test_each_end_gives_the_wrapped_optimizer_back(end):
    model = net()
    local = adamw(model)
    optimizer = wrap(local, model)
    if end == "block":
        with optimizer:
            pass
    elif end == "fault":
        with pytest.raises(KeyError), optimizer:
            raise KeyError("label 12")
    else:
        getattr(optimizer, end)()
    loss_at(model, 0, 0).backward()
    local.step()
    assert not same_bits(bits(net()), bits(model))


def test_options_that_are_functions_are_one_for_all_processes():
    def options_with(function):
        class Custom(torch.optim.SGD):
            def __init__(self, parameters):
                super().__init__(parameters, lr=0.1)
                self.defaults["transform"] = function
                self.param_groups[0]["transform"] = function

        Custom.__qualname__ = "Custom"
        return lambda model: Custom(model.parameters())

    made = iter([options_with(lambda x: x), options_with(lambda x: x)])
    play(2, lambda rank, model, own: own.zero_grad(), local=lambda m: next(made)(m))


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_a_state_passes_through_weights_only_loading():
    (plain, reference), (model, optimizer) = pair(adamw)
    take_step(plain, reference, 0, 0)
    try:
        through_a_file(reference.state_dict())
    except pickle.UnpicklingError:
        pytest.skip("this PyTorch cannot load the state of its own AdamW so")
    take_step(model, optimizer, 0, 0)
    loaded = through_a_file({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other = net()
    resumed = wrap(adamw(other), other, algorithm="allreduce")
    resumed.load_state_dict(loaded["optimizer"])
    assert same_bits(bits(model), bits(other))


def test_names_come_from_the_optimizer_where_it_was_given_them():
    try:
        model = net()
        local = torch.optim.SGD(model.named_parameters(), lr=0.1)
    except TypeError:
        pytest.skip("this PyTorch's optimizers take no named parameters")
    optimizer = wrap(local)
    optimizer.zero_grad()
    model.first.weight.data = model.first.weight.data.clone()
    with pytest.raises(RuntimeError, match="first.weight: "):
        optimizer.zero_grad()


def test_a_tensor_of_a_class_of_its_own_is_refused():
    class Sharded(torch.Tensor):
        pass

    weight = torch.nn.Parameter(torch.zeros(3).as_subclass(Sharded))
    with pytest.raises(TypeError, match="0: it is a Sharded, of which this process has a part"):
        wrap(torch.optim.SGD([weight], lr=0.1))


def test_every_row_of_the_table_names_a_test_that_there_is():
    here = pathlib.Path(__file__).resolve()
    page = (here.parents[3] / "docs" / "bindings.md").read_text()
    named = re.findall(r"^\|.*\| `(test_\w+)` \|$", page, re.MULTILINE)
    tests = "".join(path.read_text() for path in here.parent.glob("test_torch*.py"))
    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in tests] == []
