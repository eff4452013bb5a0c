"""A program with types that uses all that the module offers, for mypy alone: what the module says of its types has to
fit, and each mistake that is marked has to be found."""

from __future__ import annotations

import pathlib

import numpy
from numpy.typing import NDArray

import sotto


def takes_text(_: str) -> None: ...


def takes_number(_: float) -> None: ...


def takes_bytes(_: bytes) -> None: ...


def takes_floats(_: NDArray[numpy.float32]) -> None: ...


def train(x: NDArray[numpy.float32], folder: pathlib.Path) -> None:
    def descend(round: int, at: object, gradient: object, following: object) -> None: ...

    def descend_part(
        round: int, first: int, at: object, gradient: object, following: object
    ) -> None: ...

    rule = sotto.StepRule("descent", descend)
    sotto.StepRule("descent", descend_part, by_tensor=True).close()
    store = sotto.Store()
    layout = [("weight", (8, 100)), ("bias", (8,))]
    with sotto.Optimizer(
        x,
        layout=layout,
        store=store,
        own_step_rule=rule,
        nodes=1,
        lr=0.1,
        job={"model": 3},
        key=folder / "key",
    ) as optimizer:
        optimizer.connect()
        optimizer.begin_step()
        optimizer.step(x)
        takes_number(int(optimizer.takes_parts))
        optimizer.gradient_part(8, x[8:])
        optimizer.step_by_parts()
        optimizer.set_learning_rate(0.05)
        optimizer.announce_settings(0.05, "others")
        takes_number(optimizer.mean(x))
        takes_number(optimizer.round)
        optimizer.evaluated(0.5, accuracy=0.9)
        state = optimizer.save()
        takes_bytes(state)
        optimizer.load(state)
        optimizer.save_file(folder / "state")
        optimizer.load_file("state")
        takes_text(str(optimizer.report()["nodes"]))
        optimizer.ask_to_end()
        takes_number(optimizer.finish_with_mean(x))
    sotto.Optimizer(x, layout={"weight": (8, 100)}).close()


def parts(x: NDArray[numpy.float32]) -> None:
    codec = sotto.Compressor("quant:4")
    encoding = codec.encode(x, seed=1, round=2)
    takes_bytes(encoding)
    takes_floats(codec.decode(encoding, x.size))
    codec.decode_add(encoding, x, scale=0.5)
    takes_number(codec.max_bytes(10) + len(codec.describe(10)))
    ring = sotto.Topology("ring", nodes=8, lazy=True)
    takes_floats(ring.weights(round=1))
    takes_number(ring.nodes + ring.period)
    takes_text(sotto.version() + sotto.__version__ + str(sotto.choices("algorithms")[0]["name"]))
    takes_number(sum(sotto.floats(x, "x", writable=True)))
    try:
        codec.close()
    except sotto.Refused as error:
        takes_number(error.status)


def nodes(x: NDArray[numpy.float32], folder: pathlib.Path) -> None:
    with sotto.Site(x, site=folder / "site.toml", lr=0.1) as site:
        site.connect()
        takes_number(int(site.step(x, 0.5).exchanged) + site.next_step)
        takes_text(str(site.report()["name"]) + str(site.events()))
    with sotto.ElasticOptimizer(x, nodes="2:16", seeds="10.0.0.1:9400", lr=0.1) as node:
        node.connect()
        takes_number(node.step(x, loss=0.5).round + node.round)
        takes_number(int(node.wait().left_out))
        takes_number(int(node.takes_parts))
        node.gradient_part(0, x)
        takes_number(node.step_by_parts(0.5).round)
        node.cancel()
        node.evaluated(0.5, accuracy=0.9)
        node.stop()
        takes_text(node.round)  # type: ignore[arg-type]


def studies(folder: pathlib.Path) -> None:
    simulated = sotto.simulate(folder / "ocean.toml", seed=3, threads=2, equal="bytes")
    takes_text(str(simulated["runs"][0]["name"]))
    sotto.simulate(scenario_text="sotto-scenario = 1")
    sotto.simulate({"nodes": {"count": 4}}, seeds=3)
    planned = sotto.plan("ocean.toml", compressor=["sign", "quant:8"], codec="none", budget=3)
    takes_text(str(planned["winner"]))
    sotto.plan("ocean.toml", topology="ring", rank_by="worst", seeds=2)


def mistakes(x: NDArray[numpy.float32], optimizer: sotto.Optimizer) -> None:
    sotto.Optimizer([1.0, 2.0])  # type: ignore[arg-type]
    sotto.Optimizer(x, store="here")  # type: ignore[arg-type]
    sotto.Optimizer(x, lr=[0.1])  # type: ignore[arg-type]
    sotto.Optimizer(x, layout=["weight"])  # type: ignore[list-item]
    optimizer.step()  # type: ignore[call-arg]
    optimizer.step(0.1)  # type: ignore[arg-type]
    optimizer.steps(x)  # type: ignore[attr-defined]
    optimizer.round = 3  # type: ignore[misc]
    takes_text(optimizer.save())  # type: ignore[arg-type]
    sotto.Compressor(4)  # type: ignore[arg-type]
    sotto.Compressor("sign").decode("text", 3)  # type: ignore[arg-type]
    sotto.Topology("ring", "8")  # type: ignore[arg-type]
    sotto.StepRule("descent", 3)  # type: ignore[call-overload]
    optimizer.gradient_part(0, 0.1)  # type: ignore[arg-type]
    sotto.simulate(3)  # type: ignore[arg-type]
    sotto.plan("ocean.toml", budget="many")  # type: ignore[arg-type]
    sotto.choices()  # type: ignore[call-arg]
