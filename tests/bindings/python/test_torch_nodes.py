"""Modules of PyTorch at nodes that come and go."""

import threading

import pytest
import torch

import sotto
import sotto.torch
from nodes import federation, free_port, threads
from torch_nodes import bits, loss_at, net, same_bits


def settings(port, **more):
    return {"seeds": f"127.0.0.1:{port}", "lr": 0.05, "wait_limit": 60, **more}


def train(node, model, rank):
    """Until the end; returns the loss of the last step."""
    node.connect()
    while not node.over:
        node.zero_grad()
        loss = loss_at(model, rank, node.round)
        loss.backward()
        node.step(loss)
    return loss.item()


def test_modules_at_nodes_of_one_model_end_with_the_same_bits():
    port = free_port()
    models = [net(seed=1), net(seed=2)]  # that of the node that begins the run counts

    def run(rank):
        with sotto.torch.ElasticOptimizer(
            models[rank], nodes="2:3", rounds=30, **settings(port)
        ) as node:
            assert train(node, models[rank], rank) < 1
            assert node.round == 30 and node.node.report()["phase"] != "failed"

    threads(2, run)
    assert same_bits(bits(models[0]), bits(models[1]))
    assert not same_bits(bits(models[0]), bits(net(seed=1)))


def test_a_module_in_half_precision_gets_what_its_copy_has():
    model = torch.nn.Linear(6, 1).to(torch.bfloat16)
    before = bits(model)
    with sotto.torch.ElasticOptimizer(
        model, nodes="1:2", found_after=0.01, rounds=3, **settings(free_port())
    ) as node:
        train(node, model, 0)
    assert model.weight.dtype == torch.bfloat16 and not same_bits(before, bits(model))


def test_a_site_trains_a_module_and_goes_on_from_its_folder(tmp_path):
    given = {"site": federation(tmp_path, ["a", "b"])["a"], "lr": 0.05}
    ends = []
    for rounds in (5, 8):
        model = net()
        with sotto.torch.Site(model, rounds=rounds, found_after=0.01, **given) as site:
            site.connect()
            if ends:
                assert same_bits(bits(model), ends[0])
            train(site, model, 0)
            assert site.round == rounds
        ends.append(bits(model))
    assert not same_bits(*ends)


def test_a_module_leaves_what_it_holds_to_another_node():
    run = {"nodes": 2, "algorithm": "pushsum", "mass_return": 0, "lr": 0.05}
    run = {**run, "seeds": f"127.0.0.1:{free_port()}", "leave_within": 60}
    models = [net(), net()]  # here, as PyTorch's seed is of the process
    gone = threading.Event()
    reports = []
    sites = []

    def step(site, model, rank):
        site.zero_grad()
        loss = loss_at(model, rank, site.round)
        loss.backward()
        site.step(loss)

    def node(rank):
        model = models[rank]
        try:
            with sotto.torch.Site(model, name="ab"[rank], **run) as site:
                sites.append(site)
                site.connect()
                while not gone.is_set() if rank == 0 else site.round < 20:
                    step(site, model, rank)
                if rank == 1:
                    site.leave()
                else:
                    for _ in range(5):
                        step(site, model, rank)
                reports.append(site.report())
        except BaseException:  # the other one is not left to wait for this one
            for site in sites:
                site.stop()
            raise
        finally:
            gone.set()

    threads(2, node)
    left, stayed = reports
    assert left["mass"] == 0
    # An heir takes a parcel-mass in, and counts what it cuts off.
    lowered = sum(report["mass_lowered"] for report in reports)
    assert stayed["mass"] + lowered == pytest.approx(2)
    assert stayed["mass"] > 1


def test_what_steps_would_not_reach_is_refused():
    model = net()
    with pytest.raises(TypeError, match="no torch.nn.Module"):
        sotto.torch.ElasticOptimizer(model.parameters(), nodes="1:2", seeds="127.0.0.1:9")
    with pytest.raises(sotto.Refused, match="nodes: it is missing"):
        sotto.torch.ElasticOptimizer(model, seeds="127.0.0.1:9")
    node = sotto.torch.ElasticOptimizer(
        model, nodes="1:2", found_after=0.01, **settings(free_port())
    )
    node.connect()
    model.double()
    with pytest.raises(RuntimeError, match="after the optimizer was made"):
        node.step()
    node.close()
    with pytest.raises(sotto.Refused, match="closed"):
        node.evaluated(0.5)
