"""An extraction from specifications: captured, counted, resumed; and what a checkout holds is not run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("lark")

from opera.capture.recorder import Recorder
from opera.errors import InvalidTest
from opera.libraries.onnx import wrap
from opera.programs.program import Captured, parse_captured
from opera.sources import DIED, DONE, Finished, Request, Unit, UnitReport, engine
from opera.sources.sionnx import driver, encode, extraction, files
from opera.sources.sionnx.algorithm import Algorithms
from opera.sources.sionnx.case import Case, Input
from opera.sources.sionnx.source import extraction as source
from opera.store import disagreements
from opera.store.workspace import Workspace
from tests.sources.sionnx.specs import OWN, PUBLISHED, write


def extract(folder: Path, at: Path, **options: object) -> bool:
    with Workspace.open(at, write=True) as workspace:
        begin = source(Request(str(folder)), **options)  # type: ignore[arg-type]
        return engine.run(workspace, begin(workspace), workers=1)


def rows(at: Path, sql: str) -> list[tuple[object, ...]]:
    with Workspace.open(at, write=False) as workspace:
        return workspace.query(sql)


def test_cases_become_instances_with_what_they_are_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, at = write(tmp_path / "own", OWN), tmp_path / "w"
    assert extract(folder, at, full=True, count=12)
    told = capsys.readouterr().out
    assert "2 specifications, 24 cases" in told and "100.0 %" in told and "a second of CPU" in told
    found = rows(
        at, "SELECT i.operator, p.source, p.file, p.test FROM instances i JOIN provenances p ON p.instance = i.id"
    )
    assert {x[0] for x in found} == {"Relu", "Gather"} and {x[1:3] for x in found} == {("sionnx", "some.td")}
    names = [str(x[3]) for x in found if x[0] == "Gather"]
    assert all(x.startswith("Gather-13 ") for x in names) and any("axis" in x for x in names)
    assert len({x.split(":")[0] for x in names}) == len(names)
    assert extract(folder, at, full=True, count=12)
    assert "2 specifications were done before" in capsys.readouterr().err
    (folder / "some.td").write_text(OWN["some.td"] + "\n// another text\n")
    assert extract(folder, at, full=True, count=12, operator="Relu")
    again = capsys.readouterr().out
    assert "1 specifications, 12 cases" in again and " 0 new instances" in again and "Relu-14 of some.td: " in again


def run_here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> list[Captured]:
    """Run what a child would, in this process, without its limit of memory."""
    monkeypatch.setattr(driver, "_limit_memory", lambda: None)
    begin = source(Request(str(folder)), **options)  # type: ignore[arg-type]
    [cases] = begin(None)  # type: ignore[arg-type]
    found: list[Captured] = []
    for unit in cases.units():
        assert isinstance(unit, Unit) and unit.plan is not None
        plan, spool = tmp_path / "a.plan", tmp_path / "spool"
        plan.write_bytes(unit.plan())
        spool.unlink(missing_ok=True)
        recorder = Recorder("sionnx")
        recorder.begin("", spool)
        driver.run(recorder, str(plan))
        recorder.close()
        found += [parse_captured(line) for line in spool.read_bytes().splitlines()]
    return found


def test_the_same_seed_makes_the_same_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "own", OWN)
    one, again, other = (run_here(folder, tmp_path, monkeypatch, full=True, count=6, seed=x) for x in (3, 3, 4))
    assert one == again and one and {x.program.id for x in one} != {x.program.id for x in other}


HOSTILE = """
open({path!r}, "w").write("was run")
"""
LATE = """
def Add_compute(x_0, x_1):
    import os
    os.mkdir({path!r} + "-folder")
    return x_0 - x_1
"""


def test_nothing_of_a_checkout_is_run_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "marker"
    text = HOSTILE.format(path=str(marker))
    held = PUBLISHED | {"add.algorithm": text, "onnx_add.py": text, "generate_tests.py": text}
    folder = write(tmp_path / "published", held)
    assert all(not x.algorithm for x in files.read(folder).works), "its text is not even read"
    assert run_here(folder, tmp_path, monkeypatch, full=True, count=3, operator="Add")
    assert not list(tmp_path.glob("marker*"))
    for hostile in (text, LATE.format(path=str(marker))):
        (folder / "add.algorithm").write_text(hostile)
        assert run_here(folder, tmp_path, monkeypatch, full=True, count=3, operator="Add", algorithms=True)
        assert not list(tmp_path.glob("marker*")), "it can write nowhere"


def test_references_that_disagree_are_facts_of_the_extraction(tmp_path: Path) -> None:
    """Softmax before opset 13, which the evaluator computes as today's; and an algorithm of a checkout that subtracts."""
    algorithm = {"add.algorithm": "def Add_compute(x_0, x_1):\n    return x_0 - x_1\n"}
    folder = write(tmp_path / "published", PUBLISHED | algorithm)
    at = tmp_path / "w"
    assert extract(folder, at, full=True, count=15, operator="[AS]*", algorithms=True)
    with Workspace.open(at, write=False) as workspace:
        found = list(disagreements.all_of(workspace))
        tags = {x.instance: workspace.captured_form(x.instance).get("tags") for x in found}
    by = {(x.operator, x.taken, x.other) for x in found}
    assert by == {("Softmax", "reference-evaluator", "onnxruntime"), ("Add", "reference-evaluator", "algorithm")}
    for x in found:
        assert tags[x.instance] == (["reference-disputed"] if x.operator == "Softmax" else None), (
            "two stand against one"
        )
        assert x.test.startswith(f"{x.operator}-") and "expected" in x.message


def asked(text: str, operator: str = "Add") -> list[object]:
    inputs = tuple(Input(name, "float32", np.arange(4, dtype="float32")) for name in "AB")
    instance = encode.instance(Case(operator, "", 14, {}, inputs, ("C",), {}, ("", ""), 0))
    with Algorithms(text, operator) as algorithms:
        return list(algorithms(instance, wrap.parts(instance)))


@pytest.mark.parametrize(
    "text",
    [
        "def Add_compute(x_0, x_1):\n    raise ValueError('no')",
        "def Add_compute(x_0, x_1):\n    import os\n    os._exit(3)",
        "def Add_compute(x_0, x_1):\n    return x_0, x_1",
        "def Add_compute(x_0, x_1):\n    return np.ones(1 << 40)",
        "def Add_compute(x_0, x_1):\n    return object()",
        "def Other_compute(x_0, x_1):\n    return x_0",
        "raise SystemExit",
        "def Add_compute(x_0",
    ],
)
def test_an_algorithm_that_cannot_answer_says_why(text: str) -> None:
    with pytest.raises(InvalidTest) as caught:
        asked(text)
    assert "algorithm" in caught.value.what


def test_an_algorithm_is_given_inputs_and_attributes_by_name() -> None:
    from opera.sources.sionnx.case import Given

    data = np.arange(6, dtype="int32").reshape(2, 3)
    case = Case(
        "ArgMax", "", 13, {"axis": Given("int", 1)}, (Input("data", "int32", data),), ("reduced",), {}, ("", ""), 0
    )
    instance = encode.instance(case)
    text = "def ArgMax_compute(x_0, axis=0, keepdims=7):\n    return np.argmax(x_0, axis=axis).reshape(-1, keepdims)"
    with Algorithms(text, "ArgMax") as algorithms:
        [found] = algorithms(instance, wrap.parts(instance))
    assert found.dtype == "int64" and found.array().tolist() == [[2], [2]], "keepdims has the schema's default"  # type: ignore[union-attr]


def test_a_case_that_ends_the_process_is_tried_without_onnx_runtime_then_left(tmp_path: Path) -> None:
    work = files.Work("text", "x.td", "AddOp", "Add", 14)
    cases = extraction.Cases([work], [], "x", "onnx", extraction.Settings("full", 9, 0, False, False), True)
    unit = next(cases.units())
    plan = tmp_path / "plan"

    def died(at: int, asked: bool) -> Unit | Finished:
        so_far = driver.Result({"accepted": 1})
        driver.attempt_file(plan).write_bytes(
            msgspec.json.encode(driver.Attempt(at, "Add", f"Add-14 {at}", asked, so_far))
        )
        report = UnitReport(source="sionnx", file=unit.file, status=DIED, exit="SIGSEGV", plan=plan)
        return cases.told(unit, report)

    further = died(4, True)
    assert isinstance(further, Unit)
    assert further.subject.plan.start == 4 and further.subject.plan.unasked == (4,)
    further = died(4, False)
    assert isinstance(further, Unit) and further.subject.plan.start == 5
    driver.result_file(plan).write_bytes(msgspec.json.encode(driver.Result({"accepted": 3})))
    finished = cases.told(further, UnitReport(source="sionnx", file=unit.file, status=DONE, plan=plan))
    assert isinstance(finished, Finished)
    assert finished.document["result"]["counts"] == {"accepted": 5}
    assert [(x.how, x.operator) for x in finished.crashes] == [
        ("killed by SIGSEGV in ONNX Runtime", "Add"), ("killed by SIGSEGV in the checker or the evaluator", "Add"),
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())
