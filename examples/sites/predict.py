#!/usr/bin/env python3
"""Says the class, or the targets, of each row of a table by the model that a site exports
(docs/operations.md).

    predict.py model.safetensors patients.csv

Needs nothing but Python. With numpy and the package safetensors the first function is one line:
safetensors.numpy.load_file(path).
"""
import array
import csv
import json
import sys


def read_model(path):
    """Tensors by name, each with its shape, and the notes."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = array.array("f", file.read())
    if sys.byteorder == "big":
        values.byteswap()
    notes = header.pop("__metadata__")
    tensors = {}
    for name, tensor in header.items():
        begin, end = (offset // 4 for offset in tensor["data_offsets"])
        tensors[name] = (tensor["shape"], values[begin:end])
    return tensors, notes


def scores(tensors, x):
    """softmax, linear and mlp:…: layers of W x + b, with max(0, ·) between them."""
    layers = sum(name.endswith(".weight") for name in tensors)
    for layer in range(1, layers + 1):
        (rows, columns), weight = tensors[f"layer{layer}.weight"]
        _, bias = tensors[f"layer{layer}.bias"]
        x = [
            sum(weight[row * columns + k] * x[k] for k in range(columns)) + bias[row]
            for row in range(rows)
        ]
        if layer < layers:
            x = [max(0.0, value) for value in x]
    return x


TRUTH = {"true": 1.0, "false": 0.0}


def number(field):
    return TRUTH[field.lower()] if field.lower() in TRUTH else float(field)


def rows_of(file):
    """The rows by column. Where each row has one field more than the header, the first is its number,
    as in files that R writes, and no column."""
    lines = csv.reader(file)
    header = next(lines)
    for line in filter(None, lines):
        yield dict(zip(header, line[1:] if len(line) == len(header) + 1 else line))


def main(model, table):
    tensors, notes = read_model(model)
    columns, classes = json.loads(notes["columns"]), json.loads(notes["classes"])
    mean, deviation = json.loads(notes["mean"]), json.loads(notes["deviation"])
    with open(table, newline="") as file:
        for row in rows_of(file):
            # The columns of the training data, in their order, scaled as they were there.
            x = [(number(row[c]) - m) / d for c, m, d in zip(columns, mean, deviation)]
            all_scores = scores(tensors, x)
            if classes:
                print(classes[all_scores.index(max(all_scores))])
            else:
                # A regression; its targets were scaled, too.
                means = json.loads(notes["target_mean"])
                deviations = json.loads(notes["target_deviation"])
                print(",".join(f"{y * d + m:.9g}" for y, m, d in zip(all_scores, means, deviations)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
