"""What a user sees of a run: progress at every width, and what is asked for and is not there."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from faults.onnx_faults import relu
from rich.console import Console

from opera.errors import UsageError
from opera.run import plan, progress
from opera.run.plan import Selection
from opera.store.workspace import Workspace

pytest.importorskip("onnx")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_total_and_time_left_are_never_cut(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    live = progress.Live()
    live.begin(5631)
    live.step(Counter({"pass": 1201, "unsupported": 203, "inconsistent": 31, "crash": 7}), 1442, 0.81)
    out = io.StringIO()
    Console(file=out, width=width).print(live._bar.get_renderable())
    text = out.getvalue()
    assert text.startswith("1442/5631") and "/s" in text and "-:--" in text, text
    assert ("━" in text or "╸" in text) == (width >= progress.WIDE)
    assert max(map(len, text.splitlines())) <= width and len(text.splitlines()) == 1


def test_the_end_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    plain = progress.Plain()
    plain.begin(2)
    for done in (1, 2, 2, 2):
        plain.step(Counter({"pass": done}), done, 0.5)
    assert [x.partition(" ")[0] for x in capsys.readouterr().err.splitlines()] == ["2", "2/2"]


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.add_captured([relu(1, "Relu"), relu(2, "LeakyRelu")])
    return workspace


def test_a_selection_that_matches_nothing_is_told_before_anything_is_run(filled: Workspace) -> None:
    with pytest.raises(UsageError, match=r"no operator in the workspace matches 'Nothing\*'") as error:
        plan.check(filled, ["onnx"], Selection(operator="Nothing*"))
    assert "opera operators" in str(error.value)
    with pytest.raises(UsageError) as error:
        plan.check(filled, ["onnx"], Selection(operator="relu*"))
    assert "did you mean" in str(error.value) and "Relu" in str(error.value)
    with pytest.raises(UsageError, match="no test or instance in the workspace has an id that begins with 'zz'"):
        plan.check(filled, ["onnx"], Selection(test="zz"))
    instance = relu(1, "Relu").program.id
    plan.check(filled, ["onnx"], Selection(operator="*Relu", test=instance[:9]))
    plan.check(filled, ["onnx"], Selection(test=plan.test_id(instance, plan.exporter_id("onnx"))))
