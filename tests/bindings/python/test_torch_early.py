"""Gradients that leave while the backward pass goes on."""

import gc
import sys
import threading
import types
import weakref

import pytest
import torch

import nodes
import sotto
import sotto.torch
from sotto import _early_gradient
from torch_nodes import bits, same_bits, wrap

WIDTH = 70  # three buckets of 4096 and more


class Deep(torch.nn.Module):
    """A net whose second layer is used twice, and whose last one never is."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, WIDTH)
        self.second = torch.nn.Linear(WIDTH, WIDTH)
        self.third = torch.nn.Linear(WIDTH, 3)
        self.spare = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, inputs):
        hidden = torch.tanh(self.second(torch.tanh(self.first(inputs))))
        return self.third(torch.tanh(self.second(hidden)))


def deep():
    torch.manual_seed(3)
    return Deep()


def loss_of(model, rank, round):
    generator = torch.Generator().manual_seed(100 * rank + round)
    inputs = torch.randn(8, 6, generator=generator)
    outputs = model(inputs.to(model.first.weight.dtype)).float()
    return (outputs - inputs[:, :3].sin()).square().mean()


def nan_of(layer):
    return (layer.bias * float("nan")).sum()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)


LOCAL = {
    "sgd": sgd,
    "adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True),
    "adamw": lambda model: torch.optim.AdamW(
        [
            {"params": [model.third.weight, model.first.weight], "lr": 0.02},
            {"params": [model.second.weight, model.second.bias, model.first.bias]},
            {"params": [*model.spare.parameters(), model.third.bias]},
        ],
        lr=0.01,
    ),
    "rmsprop": lambda model: torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5),
    "adagrad": lambda model: torch.optim.Adagrad(model.parameters(), lr=0.05),
    "own adam": None,
}


def built(model, local, **settings):
    """Around the torch optimizer that `local` makes, or None for a step rule of sotto's."""
    if local is None:
        settings = {"step_rule": "adam", "lr": 0.01, **settings}
        return wrap(None, model, **settings)
    return wrap(local(model), model, **settings)


def play(node, models, local, **settings):
    """Runs `node(rank, model, optimizer)` at two nodes; returns their models."""
    store = sotto.Store()
    settings = {"algorithm": "choco", "buckets": 3, "timeout": 60, **settings}

    def run(rank):
        model = models[rank]
        with built(model, local, nodes=2, rank=rank, store=store, **settings) as optimizer:
            node(rank, model, optimizer)

    nodes.threads(2, run)
    return models


def trained(early, local, models=None, **settings):
    def node(rank, model, optimizer):
        for round in range(8):
            optimizer.zero_grad()
            loss = loss_of(model, rank, round)
            if early:
                assert optimizer.start_in_backward()
            loss.backward()
            optimizer.step()

    return play(node, models or [deep(), deep()], local, **settings)


@pytest.mark.parametrize("algorithm", ["choco", "dcd", "deepsqueeze"])
@pytest.mark.parametrize("name", LOCAL)
def test_gradients_that_leave_during_the_backward_pass_give_the_same_bits(name, algorithm):
    whole = trained(False, LOCAL[name], algorithm=algorithm)
    early = trained(True, LOCAL[name], algorithm=algorithm)
    assert not same_bits(bits(whole[0]), bits(deep()))
    for left, right in zip(whole, early):
        assert same_bits(bits(left), bits(right))


@pytest.mark.parametrize("name", ["sgd", "adamw", "own adam"])
@pytest.mark.parametrize("kind", ["bfloat16", "order"])
def test_parameters_that_are_trained_through_a_copy_give_the_same_bits(kind, name):
    def made():
        model = deep()
        if kind == "order":
            weight = model.second.weight
            weight.data = weight.data.t().contiguous().t()
            return model
        return model.bfloat16()

    whole = trained(False, LOCAL[name], [made(), made()])
    early = trained(True, LOCAL[name], [made(), made()])
    for left, right in zip(whole, early):
        assert same_bits(bits(left), bits(right))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_with_whole_gradients_may_come_in_between(dtype):
    def steps(early):
        def node(rank, model, optimizer):
            for round in range(8):
                optimizer.zero_grad()
                loss = loss_of(model, rank, round)
                if early and round % 3 != 1:
                    assert optimizer.start_in_backward()
                loss.backward()
                optimizer.step()

        return play(node, [deep().to(dtype), deep().to(dtype)], sgd)

    for left, right in zip(steps(False), steps(True)):
        assert same_bits(bits(left), bits(right))


def test_a_pass_on_the_main_thread_gives_the_same_bits():
    models, store = [deep(), deep()], sotto.Store()

    def node(rank):
        settings = {"algorithm": "choco", "buckets": 3, "timeout": 60}
        with wrap(
            sgd(models[rank]), models[rank], nodes=2, rank=rank, store=store, **settings
        ) as optimizer:
            for round in range(8):
                optimizer.zero_grad()
                assert optimizer.start_in_backward()
                loss_of(models[rank], rank, round).backward()
                optimizer.step()

    other = threading.Thread(target=node, args=(1,))
    other.start()
    node(0)
    other.join()
    for left, right in zip(trained(False, sgd), models):
        assert same_bits(bits(left), bits(right))


def frames(optimizer):
    return optimizer.report()["traffic"][0]["frames"]


def test_a_bucket_is_sent_before_the_backward_pass_is_over():
    def node(rank, model, optimizer):
        seen = []
        model.first.weight.register_hook(lambda gradient: seen.append(frames(optimizer)))
        for step in range(3):
            optimizer.zero_grad()
            assert optimizer.start_in_backward()
            # Passes go backwards: the last bucket's layer has its gradient first.
            loss = loss_of(model, rank, step)
            for parameter in model.spare.parameters():
                loss = loss + parameter.square().sum()
            loss.backward()
            assert seen[-1] > 3 * step
            optimizer.step()
            assert optimizer.optimizer.round == step + 1

    play(node, [deep(), deep()], sgd)


def derived(model):
    class Derived(torch.optim.SGD):
        pass

    return Derived(model.parameters(), lr=0.1)


def hooked(model):
    local = sgd(model)
    if not hasattr(local, "register_step_pre_hook"):
        pytest.skip("this PyTorch has no hooks of optimizers")
    local.register_step_pre_hook(lambda *_: None)
    return local


def scheduled(model):
    local = sgd(model)
    torch.optim.lr_scheduler.LambdaLR(local, lambda step: 1.0)
    return local


@pytest.mark.parametrize(
    "local, settings, expected",
    [
        (sgd, {}, True),
        (scheduled, {}, True),
        (None, {}, True),
        (sgd, {"buckets": 1}, False),
        (sgd, {"algorithm": "allreduce"}, False),
        (None, {"clip_norm": 1.0}, False),
        (lambda model: torch.optim.NAdam(model.parameters()), {}, False),
        (derived, {}, False),
        (hooked, {}, False),
    ],
)
def test_where_gradients_are_needed_whole_none_leaves_early(local, settings, expected):
    def node(rank, model, optimizer):
        optimizer.zero_grad()
        assert optimizer.start_in_backward() is expected
        loss_of(model, rank, 0).backward()
        assert expected or frames(optimizer) <= 1
        optimizer.step()

    play(node, [deep(), deep()], local, **settings)


def test_hooks_around_the_steps_of_all_optimizers_see_steps_of_all_parameters():
    module = sys.modules[torch.optim.Optimizer.__module__]
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        pytest.skip("this PyTorch has no hooks of all optimizers")

    def node(rank, model, optimizer):
        optimizer.zero_grad()
        hook = register(lambda *_: None)
        try:
            assert not optimizer.start_in_backward()
        finally:
            hook.remove()
        both.wait()  # the hooks of the other node are those of all, too
        assert optimizer.start_in_backward()
        loss_of(model, rank, 0).backward()
        optimizer.step()

    both = threading.Barrier(2, timeout=60)
    play(node, [deep(), deep()], sgd)


def test_a_gradient_that_comes_on_another_thread_does_not_leave_early():
    def slots_on(*devices):
        parameters = [torch.empty(2, device=device) for device in devices]
        return types.SimpleNamespace(
            slots=[types.SimpleNamespace(parameter=parameter) for parameter in parameters]
        )

    assert _early_gradient.may_wait_in_backward(slots_on("cpu", "cpu"))
    assert not _early_gradient.may_wait_in_backward(slots_on("cpu", "meta"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA")
def test_a_gradient_on_cuda_does_not_leave_early():
    def node(rank, model, optimizer):
        optimizer.zero_grad()
        assert not optimizer.start_in_backward()

    play(node, [deep().cuda(), deep().cuda()], sgd)


def test_alone_no_gradient_leaves_early():
    model = deep()
    optimizer = wrap(sgd(model), algorithm="choco", buckets=3)
    assert not optimizer.start_in_backward()
    optimizer.close()


def with_two(work, local=sgd):
    """Runs `work(model, optimizer, rank)` at two nodes that have begun a step whose gradient leaves
    early."""

    def node(rank, model, optimizer):
        optimizer.zero_grad()
        assert optimizer.start_in_backward()
        work(model, optimizer, rank)

    play(node, [deep(), deep()], local)


def test_early_gradients_that_are_added_to_or_thrown_away_are_refused():
    def work(model, optimizer, rank):
        loss_of(model, rank, 0).backward()
        for call in (optimizer.zero_grad, optimizer.start_in_backward, optimizer.skip_step):
            with pytest.raises(sotto.Refused, match="no way back"):
                call()
        kept = bits_of_gradients(model)
        loss_of(model, rank, 1).backward()
        with pytest.raises(sotto.Refused, match="a second backward pass"):
            optimizer.step()
        with pytest.raises(sotto.Refused, match="was changed after it had been sent"):
            optimizer.step()
        put(model, kept)
        optimizer.step()
        assert optimizer.optimizer.round == 1

    with_two(work)


def bits_of_gradients(model):
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def put(model, gradients):
    for parameter, gradient in zip(model.parameters(), gradients):
        if gradient is not None:
            parameter.grad.data.copy_(gradient)


def test_what_would_come_too_late_for_early_gradients_is_refused():
    def work(model, optimizer, rank):
        loss_of(model, rank, 0).backward()
        group = optimizer.param_groups[0]
        for option in ("lr", "momentum"):
            before = group[option]
            group[option] = before / 2
            with pytest.raises(sotto.Refused, match="the learning rate or another option"):
                optimizer.step()
            group[option] = before
        optimizer.step()
        optimizer.zero_grad()
        assert optimizer.start_in_backward()
        loss_of(model, rank, 1).backward()
        kept = bits_of_gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        with pytest.raises(sotto.Refused, match="clipped, or scaled"):
            optimizer.step()
        put(model, kept)
        optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(0.0)
        with pytest.raises(sotto.Refused, match="GradScaler"):
            optimizer.step()
        del optimizer.grad_scale, optimizer.found_inf
        optimizer.step()
        assert optimizer.optimizer.round == 2

    with_two(work)


def flip_two_signs(gradient):
    """Which leave the sum of all bits, and of all absolute values, as it was."""
    for number in (int(gradient.argmin()), int(gradient.argmax())):
        gradient[number].neg_()


@pytest.mark.parametrize(
    "change", [lambda gradient: gradient.copy_(gradient.flip(0)), flip_two_signs]
)
def test_early_gradients_that_are_put_in_another_order_or_change_signs_are_refused(change):
    def work(model, optimizer, rank):
        loss_of(model, rank, 0).backward()
        kept = bits_of_gradients(model)
        change(model.second.weight.grad.data.view(-1))
        with pytest.raises(sotto.Refused, match="was changed after it had been sent"):
            optimizer.step()
        put(model, kept)
        optimizer.step()

    with_two(work)


def test_after_a_nan_in_early_gradients_another_one_may_be_given_in_its_place():
    def work(model, optimizer, rank):
        (loss_of(model, rank, 0) + nan_of(model.spare)).backward()
        with pytest.raises(sotto.NonFinite):
            optimizer.step()
        model.spare.bias.grad.zero_()
        optimizer.step()
        assert optimizer.optimizer.round == 1

    with_two(work)


def test_a_batch_whose_first_early_gradient_is_a_nan_is_skipped_and_leaves_no_trace():
    def work(model, optimizer, rank):
        (loss_of(model, rank, 0) * float("nan")).backward()
        optimizer.zero_grad()  # and no step
        # The first of two passes, which start_in_backward has not been called for.
        loss_of(model, rank, 1).backward()
        assert optimizer.start_in_backward()
        loss_of(model, rank, 2).backward()
        optimizer.step()
        assert optimizer.optimizer.round == 1

    with_two(work)


def test_what_goes_wrong_in_the_pass_does_not_end_it_and_is_raised_by_the_step():
    def work(model, optimizer, rank):
        give_on = optimizer._early._give_on
        calls = []

        def fail(first, part):
            calls.append(first)
            if len(calls) == 2:
                raise KeyError("no such bucket")
            give_on(first, part)

        optimizer._early._give_on = fail
        loss_of(model, rank, 0).backward()
        assert len(calls) == 2 and model.first.weight.grad is not None
        with pytest.raises(KeyError, match="no such bucket"):
            optimizer.step()
        optimizer.step()
        assert optimizer.optimizer.round == 1
        optimizer.zero_grad()
        loss_of(model, rank, 1).backward()  # autograd goes on
        optimizer.step()

    with_two(work)


def test_what_ctrl_c_raises_in_the_pass_ends_it():
    def work(model, optimizer, rank):
        give_on = optimizer._early._give_on

        def interrupted(first, part):
            raise KeyboardInterrupt

        optimizer._early._give_on = interrupted
        with pytest.raises(KeyboardInterrupt):
            loss_of(model, rank, 0).backward()
        optimizer._early._give_on = give_on
        optimizer.zero_grad()
        assert optimizer.start_in_backward()
        loss_of(model, rank, 0).backward()
        optimizer.step()

    with_two(work)


def clamp(parameter):
    parameter.grad.clamp_(-0.01, 0.01)


def test_hooks_that_run_in_the_backward_pass_change_early_gradients_too():
    def steps(early):
        models = [deep(), deep()]
        for model in models:
            for parameter in model.parameters():
                if not hasattr(parameter, "register_post_accumulate_grad_hook"):
                    pytest.skip("this PyTorch has no such hooks")
                parameter.register_post_accumulate_grad_hook(clamp)
        return trained(early, sgd, models)

    for left, right in zip(steps(False), steps(True)):
        assert same_bits(bits(left), bits(right))


def test_a_layer_that_is_frozen_later_is_left_out_of_early_gradients():
    def steps(early):
        def node(rank, model, optimizer):
            for round in range(6):
                optimizer.zero_grad()
                model.second.requires_grad_(round not in (2, 3))
                if early:
                    assert optimizer.start_in_backward()
                loss_of(model, rank, round).backward()
                optimizer.step()

        return play(node, [deep(), deep()], LOCAL["adam"])

    for left, right in zip(steps(False), steps(True)):
        assert same_bits(bits(left), bits(right))


def test_the_groups_and_state_are_the_program_s_after_a_step():
    def node(rank, model, optimizer):
        groups = [group["params"] for group in optimizer.param_groups]
        for round in range(2):
            optimizer.zero_grad()
            assert optimizer.start_in_backward()
            loss_of(model, rank, round).backward()
            optimizer.step()
        assert all(a is b["params"] for a, b in zip(groups, optimizer.param_groups))
        assert set(optimizer.state) == set(model.parameters())
        assert all(float(each["step"]) == 2 for each in optimizer.state.values())

    play(node, [deep(), deep()], LOCAL["adamw"])


def test_a_step_that_fails_in_the_pass_ends_all_nodes_and_leaves_groups_and_state():
    models, store, ended = [deep(), deep()], sotto.Store(), []

    def node(rank):
        model = models[rank]
        settings = {"algorithm": "choco", "buckets": 3, "timeout": 60}
        local = LOCAL["adamw"](model)
        optimizer = wrap(local, model, nodes=2, rank=rank, store=store, **settings)
        groups = [group["params"] for group in optimizer.param_groups]
        with pytest.raises(sotto.Unexpected, match="step rule torch: RuntimeError") as raised:
            for round in range(50):
                optimizer.zero_grad()
                if rank == 1 and round == 2:
                    optimizer.state[model.second.weight]["exp_avg"] = torch.zeros(3)
                assert optimizer.start_in_backward()
                loss_of(model, rank, round).backward()
                optimizer.step()
        assert isinstance(raised.value.__cause__, RuntimeError) == (rank == 1)
        assert all(a is b["params"] for a, b in zip(groups, local.param_groups))
        assert len(local.param_groups) == 3
        assert set(local.state) == set(model.parameters())
        optimizer.close()
        ended.append(rank)

    nodes.threads(2, node)
    assert sorted(ended) == [0, 1]


def test_a_state_goes_on_after_early_gradients():
    saved = {}

    def steps(model, optimizer, rank, rounds):
        for round in rounds:
            optimizer.zero_grad()
            assert optimizer.start_in_backward()
            loss_of(model, rank, round).backward()
            optimizer.step()

    def whole(rank, model, optimizer):
        steps(model, optimizer, rank, range(3))
        saved[rank] = optimizer.state_dict()
        steps(model, optimizer, rank, range(3, 6))

    def rest(rank, model, optimizer):
        optimizer.load_state_dict(saved[rank])
        steps(model, optimizer, rank, range(3, 6))

    models = play(whole, [deep(), deep()], LOCAL["adamw"])
    again = play(rest, [deep(), deep()], LOCAL["adamw"])
    for left, right in zip(models, again):
        assert same_bits(bits(left), bits(right))


def test_an_optimizer_that_is_gone_hears_no_more_and_a_module_keeps_nothing_of_it():
    kept = []

    def work(model, optimizer, rank):
        loss_of(model, rank, 0).backward()
        optimizer.step()
        kept.append((model, weakref.ref(optimizer._early)))

    with_two(work)
    gc.collect()
    for model, early in kept:
        loss_of(model, 0, 1).backward()
        assert early() is None


# ----- Nodes that come and go


def epoch_node(model, port, number=0, **more):
    own = {"name": "ab"[number], "listen": f"127.0.0.1:{port if number == 0 else 0}"}
    settings = {"nodes": "2:2", "rounds": 5, "lr": 0.05, "step_rule": "adam", "wait_limit": 60}
    return sotto.torch.ElasticOptimizer(
        model, seeds=f"127.0.0.1:{port}", **{**settings, **own, **more}
    )


def epochs_trained(early, dtype):
    port = nodes.free_port()
    models = [deep().to(dtype) for _ in range(2)]
    ends = [None, None]

    def node(rank):
        with epoch_node(models[rank], port, rank) as optimizer:
            optimizer.connect()
            while not optimizer.over:
                optimizer.zero_grad()
                loss = loss_of(models[rank], rank, optimizer.round)
                if early:
                    assert optimizer.start_in_backward()
                loss.backward()
                assert not optimizer.step(loss).left_out
            ends[rank] = bits(models[rank])

    nodes.threads(2, node)
    assert same_bits(*ends)
    return ends[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nodes_of_one_model_send_in_the_backward_pass_with_the_same_bits(dtype):
    whole = epochs_trained(False, dtype)
    assert same_bits(epochs_trained(True, dtype), whole)
    assert not same_bits(whole, bits(deep().to(dtype)))


def test_gradients_that_have_been_sent_in_the_backward_pass_are_not_taken_back():
    model = deep()
    with epoch_node(model, nodes.free_port(), nodes="1", found_after=0.01) as node:
        node.connect()
        node.zero_grad()
        assert node.start_in_backward()
        loss_of(model, 0, 0).backward()
        for call in (node.zero_grad, node.start_in_backward):
            with pytest.raises(sotto.Refused, match="no way back"):
                call()
        model.first.weight.grad.mul_(2)
        with pytest.raises(sotto.Refused, match="was changed after it had been sent"):
            node.step()
        model.first.weight.grad.div_(2)
        assert node.step().round == 1
        node.zero_grad()
        loss_of(model, 0, 1).backward()  # whole again
        assert node.step().round == 2
        node.zero_grad()
        assert node.start_in_backward()
        (loss_of(model, 0, 2) + nan_of(model.spare)).backward()
        with pytest.raises(sotto.NonFinite):
            node.step()
        model.spare.bias.grad.zero_()
        assert node.step().round == 3


def test_local_steps_send_no_gradient():
    model = deep()
    local = {"communication_interval": 2, "outer_lr": 0.5, "nodes": "1", "found_after": 0.01}
    with epoch_node(model, nodes.free_port(), **local) as node:
        node.connect()
        assert not node.start_in_backward()
        loss_of(model, 0, 0).backward()
        assert node.step().local


def test_a_node_that_waits_in_the_pass_says_so_in_the_step_and_goes_on():
    model = deep()
    node = epoch_node(model, nodes.free_port())
    assert node.start_in_backward()
    node.cancel()
    loss_of(model, 0, 0).backward()  # without a second node its first part waits
    with pytest.raises(sotto.Stopped):
        node.step()
    node.cancel()
    with pytest.raises(sotto.Stopped):
        node.step()
    node.close()
