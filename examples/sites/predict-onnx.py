#!/usr/bin/env python3
"""Says the class, or the targets, of each row of a table by an ONNX file that a site exports
(docs/operations.md).

    predict-onnx.py model.onnx patients.csv

Needs numpy and onnxruntime. The file scales columns itself: rows go in as they are in the table.
"""
import csv
import json
import sys

import numpy
import onnxruntime

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
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    notes = session.get_modelmeta().custom_metadata_map
    columns, classes = json.loads(notes["columns"]), json.loads(notes["classes"])
    with open(table, newline="") as file:
        rows = [[number(row[c]) for c in columns] for row in rows_of(file)]
    kind = {"tensor(double)": numpy.float64, "tensor(float)": numpy.float32}
    given = session.get_inputs()[0]
    (found,) = session.run(None, {given.name: numpy.array(rows, dtype=kind[given.type])})
    for row in found:
        print(classes[row.argmax()] if classes else ",".join(f"{value:.9g}" for value in row))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
