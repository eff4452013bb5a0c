"""The notebooks of the documents run from top to bottom, as a reader would run them."""

import contextlib
import io
import json
import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")  # shows no window
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names = {}
    told = io.StringIO()
    for number, cell in enumerate(cells):
        assert not cell.get("outputs"), "outputs are not kept: they would grow old"
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec")
            with contextlib.redirect_stdout(told):
                exec(code, names)
    text = told.getvalue()
    assert "to the target" in text
    assert "time →" in text and "money →" in text
