"""The notebook in examples/ and the recipes of docs/data.md run on any workspace: their code, and with `full` itself."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from filled import fill

import opera
from opera.store.workspace import Workspace
from opera.triage import blame
from opera.triage.blame import Blame

NOTEBOOK = Path(__file__).parents[2] / "examples" / "findings.ipynb"


@pytest.fixture
def filled(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    environments = fill(workspace)
    blame.save(workspace, Blame("Faaaaaaaa", environments["tvm"], "t0", "conversion", "it is raised there"))
    monkeypatch.setenv("OPERA_WORKSPACE", str(workspace.root))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return workspace


def cells() -> list[dict[str, Any]]:
    return [x for x in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if x["cell_type"] == "code"]


def test_its_code_draws_what_the_workspace_holds(filled: Workspace) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    held: dict[str, Any] = {}
    try:
        for cell in cells():
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), held)
    finally:
        pyplot.close("all")
    assert held["by_verdict"].loc[("tvm-onnx", "0.27.0")]["crash"] == 2
    assert held["by_part"].loc["tvm-onnx 0.27.0"].to_dict() == {"conversion": 1, "not asked": 3}
    (axes,) = held["causes"].axes
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    assert sum(map(sum, widths)) == 6 and len(widths) == 2  # findings, and parts that some finding has
    told = [text.get_text() for text in held["curves"].axes[0].get_legend().get_texts()]
    assert "tvm-onnx 0.27.0: 4 in 10 tests" in told and len(told) == 3


def test_its_outputs_are_there_and_small() -> None:
    assert NOTEBOOK.stat().st_size < 100_000
    outputs = [output for cell in cells() for output in cell["outputs"]]
    assert [output["output_type"] for output in outputs if output["output_type"] in ("error", "stream")] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert "/tmp/" not in NOTEBOOK.read_text(encoding="utf-8")


def test_the_recipes_of_the_documentation_run(filled: Workspace) -> None:
    text = (NOTEBOOK.parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
    recipes = re.findall(r"```python\n(.*?)```", text.split("## Recipes")[1], re.S)
    assert len(recipes) == 3
    tables = []
    with opera.open() as results:
        for recipe in recipes:
            *before, last = ast.parse(recipe).body
            held = {"results": results}
            exec(compile(ast.Module(before, []), "recipe", "exec"), held)
            assert isinstance(last, ast.Expr)
            tables.append(eval(compile(ast.Expression(last.value), "recipe", "eval"), held))
    counted, failing, by_dtype = tables
    assert counted.loc[("tvm-onnx", "0.27.0")]["crash"] == 2 and counted.to_numpy().sum() == 14
    assert failing["mean"].is_monotonic_decreasing and failing["mean"].iloc[-1] == 0
    assert failing.loc["Conv"].tolist() == [1.0, 2, 2]
    assert by_dtype.loc[("openvino-onnx", '["float64"]')] == 0.5


@pytest.mark.full
def test_it_runs_as_a_notebook(filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.delenv("MPLBACKEND")  # the kernel draws into the notebook
    found = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(found, kernel_name="python3").execute()
    drawn = [
        output for cell in found.cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})
    ]
    assert len(drawn) == 2
