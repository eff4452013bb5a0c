"""What a step around a torch optimizer is."""

import pytest
import torch

import nodes
import sotto
import sotto.torch
from sotto._local_optimizer import optimizer_settings
from torch_nodes import bits, loss_at, net, play, same_bits, take_step, wrap

LOCAL = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


@pytest.mark.parametrize("algorithm", ["allreduce", "dpsgd"])
@pytest.mark.parametrize("name", LOCAL)
def test_alone_the_model_gets_the_bits_of_the_torch_optimizer(name, algorithm):
    plain, model = net(), net()
    reference = LOCAL[name](plain.parameters())
    optimizer = wrap(LOCAL[name](model.parameters()), algorithm=algorithm)
    for round in range(12):
        take_step(plain, reference, 0, round)
        take_step(model, optimizer, 0, round)
    optimizer.finish()
    assert same_bits(bits(plain), bits(model))


def test_it_is_a_torch_optimizer_whose_groups_and_state_are_those_of_the_wrapped_one():
    model = net()
    groups = [
        {"params": model.first.parameters(), "lr": 0.02},
        {"params": [model.last.weight], "weight_decay": 0.3},
    ]
    local = torch.optim.AdamW(groups, lr=0.01)
    optimizer = wrap(local, algorithm="allreduce")
    assert isinstance(optimizer, torch.optim.Optimizer)
    take_step(model, optimizer, 0, 0)
    assert optimizer.param_groups is local.param_groups and optimizer.state is local.state
    assert set(local.state) == {model.first.weight, model.first.bias, model.last.weight}
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.01]
    optimizer.zero_grad(set_to_none=True)
    assert all(parameter.grad is None for parameter in model.first.parameters())
    assert "DistributedOptimizer" in repr(optimizer) and "lr: 0.02" in repr(optimizer)
    optimizer.close()


@pytest.mark.parametrize("local", [sgd, adamw])
def test_nodes_that_average_gradients_are_one_node_with_the_batches_of_all(local):
    plain = net()
    reference = local(plain)
    for round in range(10):
        reference.zero_grad()
        (sum(loss_at(plain, rank, round) for rank in range(4)) / 4).backward()
        # On several nodes a layer that none of them uses counts as having a zero gradient.
        for parameter in plain.parameters():
            parameter.grad = (
                torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            )
        reference.step()

    def node(rank, model, optimizer):
        for round in range(10):
            take_step(model, optimizer, rank, round)
            assert optimizer.state[model.last.bias] is not None

    models = play(4, node, local=local, algorithm="allreduce")
    for model in models:
        for a, b in zip(plain.parameters(), model.parameters()):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)
    assert same_bits(bits(models[0]), bits(models[3]))


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "dcd", "compressor": "quant:8"},
        {"algorithm": "dcd", "compressor": "quant:8; *.bias=none"},
        {"algorithm": "dcd", "compressor": "quant:8", "buckets": 3},
        {"algorithm": "choco", "compressor": "topk:0.3"},
        {"algorithm": "dpsgd"},
        {"algorithm": "allreduce", "communication_interval": 3},
        {"algorithm": "ef21", "compressor": "topk:0.3"},
        {"algorithm": "ef21:momentum=0.5", "compressor": "topk:0.3"},
        {"algorithm": "qmean", "compressor": "quant:4", "communication_interval": 3},
        {"algorithm": "sparseloco", "compressor": "topk:0.3", "communication_interval": 3},
        {"algorithm": "allreduce", "communication_interval": 4, "fragments": 2, "sync_delay": 1},
        {"algorithm": "dpsgd", "communication_interval": 3, "outer_after_mixing": True},
    ],
    ids=lambda settings: "-".join(str(value) for value in settings.values()),
)
def test_gossip_and_local_steps_learn_around_a_torch_optimizer(settings):
    before = sum(loss_at(net(), rank, 0, 64).item() for rank in range(3))

    def node(rank, model, optimizer):
        for round in range(60):
            take_step(model, optimizer, rank, round)

    models = play(3, node, local=adamw, **settings)
    after = sum(loss_at(models[0], rank, 0, 64).item() for rank in range(3))
    assert after < 0.6 * before


def test_schedulers_step_it_as_any_optimizer():
    plain, model = net(), net()
    reference = sgd(plain)
    optimizer = wrap(sgd(model), algorithm="allreduce")
    schedulers = [
        torch.optim.lr_scheduler.OneCycleLR(each, max_lr=0.1, total_steps=20)
        for each in (reference, optimizer)
    ]
    for round in range(12):
        for held, own, scheduler in zip((plain, model), (reference, optimizer), schedulers):
            take_step(held, own, 0, round)
            scheduler.step()
    optimizer.finish()
    assert same_bits(bits(plain), bits(model))


def test_schedulers_on_all_nodes_are_no_difference():
    def node(rank, model, optimizer):
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
        for round in range(8):
            take_step(model, optimizer, rank, round)
            scheduler.step()  # moves the rate and the momentum
        assert optimizer.report()["warnings"] == []

    models = play(3, node, local=sgd, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[2]))
    play(3, node, local=sgd, algorithm="dcd")


def test_a_rate_that_one_node_alone_changes_is_found():
    def node(rank, model, optimizer):
        for round in range(6):
            if rank == 1 and round == 3:
                optimizer.param_groups[0]["lr"] = 0.025
            take_step(model, optimizer, rank, round)

    with pytest.raises(sotto.Unexpected, match="0.025"):
        play(2, node, local=sgd, algorithm="allreduce")


def test_a_rate_that_one_node_alone_changes_is_a_warning_with_gossip():
    def node(rank, model, optimizer):
        for round in range(6):
            if rank == 1 and round == 3:
                optimizer.param_groups[0]["lr"] = 0.025
            take_step(model, optimizer, rank, round)

    with pytest.warns(RuntimeWarning, match="0.025"):
        play(2, node, local=sgd, algorithm="dpsgd")


def test_other_options_that_one_node_alone_changes_are_found():
    def node(rank, model, optimizer):
        for round in range(6):
            if rank == 1 and round == 3:
                optimizer.param_groups[0]["momentum"] = 0.5
            take_step(model, optimizer, rank, round)

    with pytest.raises(sotto.Unexpected):
        play(2, node, local=sgd, algorithm="allreduce")


def test_nodes_whose_torch_optimizers_differ_do_not_start():
    kinds = [sgd, lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)]
    made = iter(kinds)
    with pytest.raises(sotto.Unexpected, match="momentum of group 0"):
        play(2, lambda rank, model, optimizer: optimizer.zero_grad(), local=lambda m: next(made)(m))


def settings_with_last_momentum(momentum, groups):
    tensors = [torch.nn.Parameter(torch.zeros(1)) for _ in range(groups)]
    local = torch.optim.SGD([{"params": [tensor]} for tensor in tensors], lr=0.1)
    local.param_groups[-1]["momentum"] = momentum
    return optimizer_settings(local)


@pytest.mark.parametrize("groups", [1, 2, 64, 65, 3000])
def test_options_of_every_group_are_compared_and_never_too_long_to_show(groups):
    settings = settings_with_last_momentum(0.5, groups)
    assert settings == settings_with_last_momentum(0.5, groups)
    other = settings_with_last_momentum(0.25, groups)
    assert settings.keys() == other.keys()
    assert sum(settings[name] != other[name] for name in settings) == 1
    assert sum(len(name) + len(value) for name, value in settings.items()) < 1 << 17


def test_an_option_whose_text_has_several_lines_is_compared():
    class Options:
        def __repr__(self):
            return "first\nsecond"

    def local(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.defaults["note"] = None
        optimizer.param_groups[0]["note"] = Options()
        return optimizer

    play(2, lambda rank, model, optimizer: optimizer.zero_grad(), local=local)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_warning_that_is_an_error_is_raised_once():
    raised = [0, 0]

    def node(rank, model, optimizer):
        for round in range(6):
            if rank == 1 and round == 3:
                optimizer.param_groups[0]["lr"] = 0.025
            try:
                take_step(model, optimizer, rank, round)
            except RuntimeWarning:
                raised[rank] += 1

    play(2, node, local=sgd, algorithm="dpsgd")
    assert max(raised) == 1


def test_a_closure_is_evaluated_once_and_its_loss_comes_back():
    plain, model = net(), net()
    reference, optimizer = sgd(plain), wrap(sgd(model), algorithm="allreduce")
    calls = []

    def closure(held, own, round):
        def evaluate():
            own.zero_grad()
            loss = loss_at(held, 0, round)
            loss.backward()
            calls.append(own)
            return loss

        return evaluate

    for round in range(5):
        with torch.no_grad():
            expected = reference.step(closure(plain, reference, round))
            assert torch.equal(optimizer.step(closure(model, optimizer, round)), expected)
    assert len(calls) == 10
    optimizer.finish()
    assert same_bits(bits(plain), bits(model))


def test_gradients_are_accumulated_over_batches_and_clipped():
    plain, model = net(), net()
    reference, optimizer = sgd(plain), wrap(sgd(model), algorithm="allreduce")
    for round in range(5):
        for held, own in ((plain, reference), (model, optimizer)):
            own.zero_grad()
            for part in range(3):
                (loss_at(held, part, round) / 3).backward()
            torch.nn.utils.clip_grad_norm_(held.parameters(), 0.1)
            own.step()
    optimizer.finish()
    assert same_bits(bits(plain), bits(model))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_trained_through_a_float32_copy(dtype):
    model = torch.nn.Linear(4, 4, bias=False).to(dtype)
    with torch.no_grad():
        model.weight.fill_(1)
    local = torch.optim.Adagrad(model.parameters(), lr=2.0**-12, initial_accumulator_value=0.1)
    optimizer = wrap(local, algorithm="allreduce")
    for _ in range(200):  # each step is below the precision of the parameter
        optimizer.zero_grad()
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
    optimizer.finish()
    assert model.weight.dtype == dtype and 0.9 < model.weight[0, 0].item() < 0.999
    assert local.state[model.weight]["sum"].dtype == torch.float32


def test_nodes_of_half_precision_train_together():
    def node(rank, model, optimizer):
        for round in range(20):
            take_step(model, optimizer, rank, round)

    models = play(2, node, [net().bfloat16() for _ in range(2)], local=adamw, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))
    assert loss_at(models[0], 0, 0, 64) < 0.8 * loss_at(net().bfloat16(), 0, 0, 64)


def test_defaults_of_the_program_do_not_matter():
    torch.set_default_dtype(torch.float64)
    try:
        model = net().float()
        optimizer = wrap(sgd(model), algorithm="allreduce")
        optimizer.zero_grad()
        model.last.bias.grad = torch.ones(1, dtype=torch.float32)
        before = model.last.bias.item()
        optimizer.step()
        optimizer.finish()
    finally:
        torch.set_default_dtype(torch.float32)
    assert model.last.bias.item() == pytest.approx(before - 0.05)


class Scaler:
    """Says of a step what torch.amp.GradScaler says of one whose optimizer scales by itself."""

    def __init__(self, scale):
        self._scale = torch.tensor(float(scale))

    def scale(self, loss):
        return loss * self._scale

    def step(self, optimizer):
        assert optimizer._step_supports_amp_scaling
        found = any(
            not bool(torch.isfinite(parameter.grad).all())
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        )
        optimizer.grad_scale, optimizer.found_inf = self._scale, torch.tensor(float(found))
        try:
            optimizer.step()
        finally:
            del optimizer.grad_scale, optimizer.found_inf


def scaler_of(scale):
    """PyTorch's own where it has one for the CPU."""
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cpu", init_scale=float(scale), growth_interval=1000)
    return Scaler(scale)


def scaled_step(model, optimizer, scaler, rank, round, overflows):
    optimizer.zero_grad()
    scaler.scale(loss_at(model, rank, round)).backward()
    if overflows:
        model.last.weight.grad[0, 0] = float("inf")
    scaler.step(optimizer)


class Rebinding(torch.optim.SGD):
    """Plain SGD that makes each parameter anew."""

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.data = parameter.data - group["lr"] * parameter.grad


@pytest.mark.parametrize("algorithm", ["allreduce", "dpsgd"])
def test_an_optimizer_that_makes_parameters_anew_trains_them(algorithm):
    plain, model = net(), net()
    reference = Rebinding(plain.parameters(), lr=0.1)
    optimizer = wrap(Rebinding(model.parameters(), lr=0.1), algorithm=algorithm)
    for round in range(5):
        take_step(plain, reference, 0, round)
        take_step(model, optimizer, 0, round)
    optimizer.finish()
    assert same_bits(bits(plain), bits(model)) and not same_bits(bits(net()), bits(model))


def test_a_scaled_step_has_the_bits_of_one_that_is_not_and_one_that_overflows_is_skipped():
    plain, model = net(), net()
    reference, optimizer = adamw(plain), wrap(adamw(model), algorithm="allreduce")
    for round in range(8):
        if round != 3:
            take_step(plain, reference, 0, round)
        scaled_step(model, optimizer, scaler_of(1024), 0, round, round == 3)
    optimizer.finish()
    assert same_bits(bits(plain), bits(model))


@pytest.mark.parametrize("algorithm", ["allreduce", "dcd"])
def test_a_step_that_a_scaler_skips_on_one_node_keeps_all_in_step(algorithm):
    rounds = [0, 0, 0]

    def node(rank, model, optimizer):
        for round in range(9):
            overflows = rank == 1 and round in (2, 3)
            scaled_step(model, optimizer, scaler_of(1024), rank, round, overflows)
        rounds[rank] = optimizer.optimizer.round

    models = play(3, node, local=adamw, algorithm=algorithm)
    assert rounds == [9, 9, 9]
    assert all(bool(torch.isfinite(parameter).all()) for parameter in bits(models[1]))
    assert algorithm == "dcd" or same_bits(bits(models[0]), bits(models[1]))


def test_a_scaler_s_skipped_step_keeps_nodes_with_sotto_s_own_rule_in_step():
    store, models = sotto.Store(), [net() for _ in range(2)]

    def node(rank):
        with sotto.torch.DistributedOptimizer(
            models[rank], nodes=2, rank=rank, store=store, algorithm="allreduce", lr=0.1
        ) as optimizer:
            for round in range(5):
                overflows = rank == 0 and round == 2
                scaled_step(models[rank], optimizer, scaler_of(1024), rank, round, overflows)

    nodes.threads(2, node)
    assert same_bits(bits(models[0]), bits(models[1]))
    assert all(bool(torch.isfinite(parameter).all()) for parameter in bits(models[0]))


def test_a_batch_may_be_left_out_on_one_node():
    def node(rank, model, optimizer):
        for round in range(6):
            optimizer.zero_grad()
            loss_at(model, rank, round).backward()
            if rank == 0 and round % 2:
                optimizer.skip_step()
            else:
                optimizer.step()

    models = play(2, node, local=sgd, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))


def test_a_gradient_that_is_not_finite_changes_nothing_and_another_may_follow():
    model = net()
    optimizer = wrap(sgd(model), algorithm="allreduce")
    optimizer.zero_grad()
    loss_at(model, 0, 0).backward()
    model.last.weight.grad[0, 0] = float("nan")
    before = bits(model)
    with pytest.raises(sotto.NonFinite):
        optimizer.step()
    assert same_bits(before, bits(model)) and not optimizer.state
    take_step(model, optimizer, 0, 0)
    optimizer.finish()
    assert not same_bits(before, bits(model))


def test_what_the_wrapped_optimizer_raises_is_the_cause_and_ends_all_nodes():
    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise KeyError("no such moment")

    said = []

    def node(rank, model, optimizer):
        with pytest.raises(sotto.Error) as raised:
            for round in range(20):
                take_step(model, optimizer, rank, round)
        said.append(str(raised.value))
        raise raised.value

    def local(model):
        kind = Failing if model is models[1] else torch.optim.SGD
        return kind(model.parameters(), lr=0.1)

    models = [net(), net()]
    Failing.__qualname__, Failing.__module__ = (
        torch.optim.SGD.__qualname__,
        torch.optim.SGD.__module__,
    )
    with pytest.raises(sotto.Error):
        play(2, node, models, local=local, algorithm="dcd")
    assert len(said) == 2 and all("no such moment" in text for text in said)


def test_the_cause_of_a_fault_is_what_the_optimizer_raised():
    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise KeyError("no such moment")

    model = net()
    optimizer = wrap(Failing(model.parameters(), lr=0.1), algorithm="dcd")
    before = bits(model)
    with pytest.raises(sotto.Unexpected, match="torch: KeyError: 'no such moment'") as raised:
        take_step(model, optimizer, 0, 0)
    assert isinstance(raised.value.__cause__, KeyError)
    assert same_bits(before, bits(model))


def test_hooks_run_around_a_step():
    model = net()
    optimizer = wrap(sgd(model), algorithm="allreduce")
    if not hasattr(optimizer, "register_step_pre_hook"):
        pytest.skip("this PyTorch has no hooks of optimizers")
    seen = []
    optimizer.register_step_pre_hook(lambda own, args, kwargs: seen.append(("pre", own)))
    optimizer.register_step_post_hook(lambda own, args, kwargs: seen.append(("post", own)))
    take_step(model, optimizer, 0, 0)
    assert seen == [("pre", optimizer), ("post", optimizer)]
    optimizer.finish()


def test_a_compiled_model_is_trained_and_has_the_names_of_one_that_is_not():
    if not hasattr(torch, "compile"):
        pytest.skip("this PyTorch does not compile models")

    def node(rank, model, optimizer):
        for round in range(6):
            take_step(model, optimizer, rank, round)

    models = [torch.compile(net(), backend="eager"), net()]
    play(2, node, models, local=sgd, algorithm="allreduce")
    assert same_bits(bits(models[0]), bits(models[1]))


def test_sotto_s_own_rule_follows_the_rate_of_its_group():
    model = net()
    optimizer = sotto.torch.DistributedOptimizer(model, nodes=1, algorithm="allreduce", lr=0.5)
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    optimizer.zero_grad()
    before = model.last.bias.item()
    model.last.bias.grad = torch.ones(1)
    optimizer.step()
    assert model.last.bias.item() == pytest.approx(before - 0.25)
    assert optimizer.report()["learning_rate"] == 0.25
    optimizer.finish()
