"""Which arrays an optimizer takes, and what it says of others."""

import os

import numpy
import pytest

import sotto


def floats(*shape):
    return numpy.zeros(shape, numpy.float32)


def unaligned():
    return numpy.frombuffer(bytearray(33), numpy.uint8)[1:].view(numpy.float32)


def swapped():
    return numpy.zeros(8, numpy.dtype(numpy.float32).newbyteorder())


UNFIT = [
    (lambda: numpy.zeros(8), "float64"),
    (lambda: numpy.zeros(8, numpy.int32), "int32"),
    (swapped, "float32 is needed"),
    (lambda: floats(8)[::2], "not contiguous"),
    (lambda: floats(4, 6).T, "not contiguous"),
    (lambda: numpy.asfortranarray(floats(4, 6)), "not contiguous"),
    (lambda: numpy.broadcast_to(floats(1), (8,)), "not contiguous"),
    (unaligned, "not aligned to 4 bytes"),
    (lambda: numpy.ma.masked_array(floats(8), mask=[1] + 7 * [0]), "the array is masked"),
    (lambda: numpy.float32(3), "a single number, a float32"),
]


@pytest.mark.parametrize("make, message", UNFIT)
def test_parameters_that_do_not_fit_are_refused_and_no_copy_is_advised(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        sotto.Optimizer(make(), nodes=1)
    text = str(raised.value)
    assert text.startswith("parameters: ")
    assert "ascontiguousarray" not in text and "astype" not in text and "filled" not in text
    assert "single number" in text or "would be changed in its place" in text


@pytest.mark.parametrize("make, message", UNFIT)
def test_gradients_that_do_not_fit_are_refused_with_what_may_be_passed(make, message):
    array = make()
    x = floats(max(array.size, 1))
    with sotto.Optimizer(x, nodes=1) as optimizer:
        with pytest.raises((TypeError, ValueError), match=message) as raised:
            optimizer.step(array)
        text = str(raised.value)
        assert text.startswith("gradient: ") and ("pass " in text or "single number" in text)
        optimizer.step(numpy.array(numpy.ma.filled(array, 0), numpy.float32, order="C").reshape(-1))


def test_a_mean_is_written_where_the_caller_looks():
    with sotto.Optimizer(floats(8), nodes=1) as optimizer:
        for out in (numpy.zeros(8), floats(16)[::2], numpy.ma.masked_array(floats(8))):
            with pytest.raises((TypeError, ValueError), match="out: .* changed in its place"):
                optimizer.mean(out)


@pytest.mark.parametrize("shape", [(6, 4), (2, 12), (24,), (1, 4, 6), (4, 6, 1)])
def test_a_gradient_of_another_shape_is_refused(shape):
    x = floats(4, 6)
    with sotto.Optimizer(x, nodes=1) as optimizer:
        with pytest.raises(sotto.Refused, match=r"gradient: it has the shape .* have \(4, 6\)"):
            optimizer.step(floats(*shape))
        with pytest.raises(sotto.Refused, match=r"out: it has the shape .* have \(4, 6\)"):
            optimizer.mean(floats(*shape))
        optimizer.step(floats(*shape).reshape(4, 6))


@pytest.mark.parametrize("part", [slice(None), slice(0, 4), slice(7, 8)])
def test_two_optimizers_on_one_array_are_refused(part):
    x = floats(8)
    first = sotto.Optimizer(x, nodes=1)
    with pytest.raises(sotto.Refused, match="another optimizer of this process trains them"):
        sotto.Optimizer(x[part], nodes=1)
    first.step(numpy.ones(8, numpy.float32))
    first.close()
    sotto.Optimizer(x[part], nodes=1).close()


@pytest.mark.parametrize("end", ["finish", "close", "del"])
def test_an_array_is_free_again_where_its_optimizer_ends(end):
    x = floats(8)
    for _ in range(2):
        optimizer = sotto.Optimizer(x, nodes=1)
        optimizer.step(x)
        if end == "del":
            del optimizer
        else:
            getattr(optimizer, end)()
    with pytest.raises(sotto.Refused, match="colour"):
        sotto.Optimizer(x, nodes=1, colour="red")
    sotto.Optimizer(x, nodes=1).close()


def test_neighbours_in_one_array_are_two():
    x = floats(8)
    with sotto.Optimizer(x[:4], nodes=1) as first, sotto.Optimizer(x[4:], nodes=1) as second:
        first.step(floats(4))
        second.step(floats(4))


def test_a_fork_may_train_its_own_copy():
    x = floats(8)
    first = sotto.Optimizer(x, nodes=1)
    child = os.fork()
    if child == 0:
        try:
            sotto.Optimizer(x, nodes=1).close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    first.close()
