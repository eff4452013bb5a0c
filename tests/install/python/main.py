"""The module as installed, with the library that came with it."""

import pathlib
import sys

import numpy

import sotto

place = pathlib.Path(sotto.__file__).resolve()
assert place.is_relative_to(pathlib.Path(sys.argv[1]).resolve()), place
x = numpy.zeros(4, dtype=numpy.float32)
with sotto.Optimizer(x, nodes=1, lr=0.5) as optimizer:
    optimizer.step(numpy.ones(4, dtype=numpy.float32))
assert (x == -0.5).all()
mapped = {
    pathlib.Path(line.split()[-1])
    for line in open("/proc/self/maps", encoding="utf-8")
    if "libsotto.so" in line
}
assert len(mapped) == 1 and mapped.pop().is_relative_to(pathlib.Path(sys.argv[1]).resolve())
print(f"sotto {sotto.__version__} at {place}")
