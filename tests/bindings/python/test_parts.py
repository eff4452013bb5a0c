"""Compressors, topologies and lists from Python."""

import numpy
import pytest

import sotto


def test_what_there_is_to_choose_from():
    names = {kind: [item["name"] for item in sotto.choices(kind)] for kind in
             ("algorithms", "compressors", "topologies", "settings")}
    assert "dcd" in names["algorithms"]
    assert "quant" in names["compressors"]
    assert "ring" in names["topologies"]
    assert {"lr", "rank", "weight-decay"} <= set(names["settings"])
    with pytest.raises(sotto.Refused, match="there are algorithms"):
        sotto.choices("colours")


@pytest.mark.parametrize("spec", ["quant:8", "sign", "topk:0.1", "randk:0.25", "fp16", "none"])
def test_an_encoding_keeps_the_contract(spec):
    x = numpy.random.default_rng(1).normal(size=(40, 25)).astype(numpy.float32)
    codec = sotto.Compressor(spec)
    encoding = codec.encode(x, seed=2, round=3)
    assert encoding == codec.encode(x, seed=2, round=3)
    assert len(encoding) <= codec.max_bytes(x.size)
    decoded = codec.decode(encoding, x.size)
    error = numpy.linalg.norm(decoded - x.ravel()) / numpy.linalg.norm(x)
    contract = codec.describe(x.size)["contract"]
    bounds = [contract["alpha"]] if contract["alpha"] is not None else []
    if contract["delta"]:
        bounds.append((1 - contract["delta"]) ** 0.5)
    assert error <= 1.5 * min(bounds) + 1e-3
    y = numpy.ones(x.size, numpy.float32)
    codec.decode_add(encoding, y, scale=0.5)
    assert numpy.allclose(y, 1 + 0.5 * decoded, rtol=1e-6, atol=1e-6)


def test_bytes_that_are_malformed_change_nothing():
    codec = sotto.Compressor("quant:8")
    y = numpy.ones(100, numpy.float32)
    with pytest.raises(sotto.Malformed):
        codec.decode_add(b"nonsense", y)
    assert numpy.array_equal(y, numpy.ones(100, numpy.float32))
    with pytest.raises(sotto.NonFinite, match="x: 1 of 2 values"):
        codec.encode(numpy.array([1, numpy.inf], numpy.float32))


def test_a_zero_byte_cuts_nothing_off():
    for make in (sotto.Compressor, sotto.Topology, sotto.choices):
        with pytest.raises(sotto.Refused, match="holds a zero byte"):
            make("quant:8\0junk")


def test_tensors_are_told_apart():
    tensors = {"weight": (4, 9), "bias": (4,)}
    codec = sotto.Compressor("quant:4; bias=none", layout=tensors)
    pairs = sotto.Compressor("quant:4; bias=none", layout=list(tensors.items()))
    x = numpy.random.default_rng(1).normal(size=40).astype(numpy.float32)
    assert codec.encode(x) == pairs.encode(x)
    decoded = codec.decode(codec.encode(x), 40)
    assert numpy.array_equal(decoded[36:], x[36:])
    assert not numpy.array_equal(decoded[:36], x[:36])


def test_weights_are_those_of_the_theory():
    ring = sotto.Topology("ring", nodes=8)
    assert (ring.nodes, ring.period) == (8, 1)
    w = ring.weights()
    assert numpy.allclose(w, w.T) and numpy.allclose(w.sum(axis=1), 1)
    eigenvalues = numpy.sort(numpy.linalg.eigvalsh(w.astype(float)))
    assert eigenvalues[-2] == pytest.approx((1 + 2 * numpy.cos(numpy.pi / 4)) / 3, abs=1e-6)
    assert sotto.Topology("torus:2x4").nodes == 8
    with pytest.raises(sotto.Refused):
        sotto.Topology("torus:2x4", nodes=9)
