"""Runs FOLDER/K.onnx for K below NUMBER on the rows in K.in, and compares with K.out.

    onnx_check.py FOLDER NUMBER ROWS

Written by onnx_test.cc. Errors are relative to the range of the expected values of
a column, or to 1.
"""
import sys

import numpy
import onnx
import onnxruntime

MOST = 1e-5


def check(path, rows):
    """The largest error of one file."""
    model = onnx.load(path + ".onnx")
    onnx.checker.check_model(model, full_check=True)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes == {"sotto": "test", "columns": '["größe"]'}, notes
    session = onnxruntime.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.name == "features", given.name
    kind = numpy.float64 if given.type == "tensor(double)" else numpy.float32
    features = numpy.fromfile(path + ".in").reshape(rows, -1)
    assert given.shape[1] == features.shape[1], given.shape
    (found,) = session.run(None, {"features": features.astype(kind)})
    expected = numpy.fromfile(path + ".out").reshape(rows, -1)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    scale = numpy.maximum(1, numpy.ptp(expected, axis=0))
    (alone,) = session.run(None, {"features": features[:1].astype(kind)})
    assert numpy.allclose(alone, found[:1], rtol=1e-5, atol=1e-5), "one row alone"
    return (numpy.abs(found - expected) / scale).max()


def main(folder, number, rows):
    for case in range(int(number)):
        error = check(f"{folder}/{case}", int(rows))
        print(f"case {case}: {error:.2e}")
        if not error <= MOST:
            sys.exit(f"case {case}: off by {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
