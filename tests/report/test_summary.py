from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from filled import HOSTILE, captured, document, judged

from opera import report as reports
from opera.report import summary
from opera.report.json import schema
from opera.report.summary import FrontendSummary, Report, summarise
from opera.store.rows import Crash
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace

PUBLISHED = Path(__file__).parents[2] / "docs" / "report.schema.json"


def frontend(report: Report, label: str) -> FrontendSummary:
    return next(x for x in report.frontends if x.label == label)


def test_a_test_counts_once_with_its_worst_verdict(report):
    tvm = frontend(report, "tvm-onnx 0.27.0")
    assert tvm.verdicts == {
        "unsupported": 1, "pass": 1, "screened": 1, "flaky": 1, "error": 1, "inconsistent": 1, "crash": 2, "abort": 1,
        "timeout": 1,
    }  # fmt: skip
    assert tvm.tests == 10 == sum(tvm.verdicts.values())
    assert tvm.corpus == 11  # twelve instances, of which one is invalid
    assert frontend(report, "openvino-onnx 2026.4").verdicts == {"pass": 1, "out-of-memory": 1}


def test_a_curve_never_goes_back_where_one_test_shows_two_findings():
    assert summary._curve([5, 5, 6], 9) == [(0, 0), (4, 0), (5, 1), (5, 1), (5, 2), (5, 2), (6, 3), (9, 3)]


def test_a_curve_ends_where_the_tests_do():
    """A reduction makes tests of its own, that were run by no plan: the curve went on beyond its axis."""
    assert summary._curve([2, 11, 12], 9)[-1] == (9, 3) == max(summary._curve([2, 11, 12], 9))


def test_versions_side_by_side_are_separate_and_in_order(report):
    assert [x.label for x in report.frontends] == ["openvino-onnx 2026.4", "tvm-onnx 0.9.0", "tvm-onnx 0.27.0"]
    assert frontend(report, "tvm-onnx 0.9.0").tests == 2


def test_frontends_of_one_version_are_told_apart_by_what_differs(workspace, environments):
    other = workspace.save_environment(document("tvm", "0.27.0") | {"options": {"threads": "4"}})
    workspace.save_verdicts(2, [judged("t3", "tvm-onnx", "inputs", other, "pass")], {})
    report = summarise(workspace)
    labels = [x.label for x in report.frontends if x.compiler_version == "0.27.0"]
    assert sorted(labels) == ["tvm-onnx 0.27.0 (threads 1)", "tvm-onnx 0.27.0 (threads 4)"]
    assert report.matrix["Relu"]["tvm-onnx 0.27.0 (threads 4)"] == {"pass": 1}


def test_accounts_of_all_runs_are_summed(report):
    tvm = frontend(report, "tvm-onnx 0.27.0")
    assert (tvm.seconds, tvm.wall_seconds, tvm.workers, tvm.confirmation_seconds) == (6.0, 3.0, 2, 2.0)
    assert tvm.efficiency == pytest.approx(6.0 / (3.0 * 2))
    assert tvm.tests_per_second == pytest.approx(10 / 3)
    old = frontend(report, "tvm-onnx 0.9.0")  # verdicts without an account, as after a kill
    assert (old.seconds, old.efficiency, old.tests_per_second, old.workers) == (0.0, 0.0, 0.0, 0)


def test_reasons_matrix_and_trouble(report):
    tvm = frontend(report, "tvm-onnx 0.27.0")
    assert tvm.screened == {"nondeterministic": 1}
    assert tvm.unsupported == {"no converter for Pad": 1}
    assert tvm.strategy == "opera"
    assert report.matrix["Conv"]["tvm-onnx 0.27.0"] == {"crash": 1}
    assert report.instances == {"onnx": {"node-tests": 12}}
    assert report.equipped == {"tvm": {"onnx": 1}}
    assert report.invalid == {"onnx": 1}
    assert [x.where.split()[0] for x in report.errors] == ["test", "instance"]
    assert all(HOSTILE in x.reason for x in report.errors)
    assert [(x.where, x.what) for x in report.extraction_failures] == [("broken.py", "failed-import")]
    assert report.unfinished


def test_an_instance_whose_newer_test_is_valid_is_not_invalid(workspace, environments):
    workspace.save_tests("newer", [MigratedTest("t10b", captured(10, "Bad").program.id, "valid")])
    assert summarise(workspace).invalid == {}


def test_the_curve_climbs_to_all_findings_within_its_points(workspace, report):
    curve = frontend(report, "tvm-onnx 0.27.0").curve
    assert curve[0] == (0, 0)
    assert curve[-1] == (10, 4)
    assert curve == sorted(curve)
    environment = frontend(report, "tvm-onnx 0.27.0").environment
    many = [judged(f"m{n}", "tvm-onnx", "inputs", environment, "crash", "load", finding=f"F{n:08}") for n in range(900)]
    workspace.save_verdicts(2, many, {x.finding: b"{}" for x in many})
    curve = frontend(summarise(workspace), "tvm-onnx 0.27.0").curve
    assert len(curve) <= 500
    assert curve[-1] == (910, 904)


def test_the_json_report_fits_the_published_schema(report):
    text = reports.get("json").render(report)
    found = json.loads(text)
    jsonschema.validate(found, json.loads(PUBLISHED.read_text(encoding="utf-8")))
    for key in ("name", "compiler_version", "tests", "verdicts", "seconds", "wall_seconds", "workers", "efficiency"):
        assert key in found["frontends"][0]
    finding = next(x for x in found["findings"] if x["reproducer"])
    assert finding["reproducer"] == "reproducers/Faaaaaaaa.py"
    del found["findings"][0]["members"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, json.loads(PUBLISHED.read_text(encoding="utf-8")))


def test_the_published_schema_is_up_to_date():
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert published == schema(), "docs/report.md says how to write it anew"


def test_numbers_that_json_has_no_word_for(workspace, environments):
    broken = {"max_abs": float("nan"), "max_rel": float("inf")}
    verdict = judged("t1", "tvm-onnx", "inputs", environments["tvm"], "inconsistent", "infer", "value", finding="Fbbbbbbbb",
                      details=broken)  # fmt: skip
    workspace.save_verdicts(2, [verdict], {})
    text = reports.get("json").render(summarise(workspace))
    jsonschema.validate(json.loads(text, parse_constant=pytest.fail), schema())


@pytest.mark.full
def test_fifty_thousand_verdicts_take_seconds(workspace):
    names = ["Conv", "Cast", "Pad", "Add"]
    records = [captured(n, names[n % 4]) for n in range(10_000)]
    workspace.add_captured(records)
    workspace.save_tests("x", [MigratedTest(f"t{n}", x.program.id, "valid") for n, x in enumerate(records)])
    environments = [workspace.save_environment(document("tvm", f"0.{n}")) for n in range(5)]
    outcomes = [
        {"verdict": "pass", "seconds": {"load": 0.1}},
        {"verdict": "unsupported", "message": "no converter " * 40},
        {"verdict": "crash", "stage": "load", "symptom": "E", "message": "m" * 500, "confirmation": "confirmed"},
        {"verdict": "screened", "details": {"screen": "nondeterministic"}},
    ]
    verdicts = (
        judged(f"t{n}", "tvm-onnx", "inputs", environment, **outcome,
                finding=f"F{n % 700}" if outcome["verdict"] == "crash" else "")
        for environment in environments
        for n in range(10_000)
        for outcome in [outcomes[n * 7 % 4]]
    )  # fmt: skip
    workspace.save_verdicts(1, verdicts, {})
    start = time.process_time()
    report = summarise(workspace)
    assert time.process_time() - start < 12  # generous: other work makes the processor slower
    assert sum(x.tests for x in report.frontends) == 50_000


def test_a_reader_sees_what_a_running_writer_stored(workspace, environments):
    with Workspace.open(workspace.root, write=False) as reader:
        assert len(summarise(reader).findings) == 6
        workspace.save_verdicts(2, [judged("t3", "tvm-onnx", "inputs", environments["tvm"], "crash", "load",
                                            finding="Fnew")], {"Fnew": b"{}"})  # fmt: skip
        assert len(summarise(reader).findings) == 7


def test_crashes_of_the_library_are_told_apart_from_what_could_not_be_extracted(workspace):
    before = len(summarise(workspace).extraction_failures)
    crash = Crash("killed by SIGFPE", "torch.f", {"n": -1, "mode": "a"}, "value of n")
    workspace.extraction("docter", {})
    for reason in ("", 'it says "crashes":[{ and means none'):
        workspace.save_extraction_file("docter", "torch.f@1", "done", {"reason": reason}, crashes=[crash])
        workspace.save_extraction_file("docter", "torch.g@1", "done", {"reason": reason})
    told = summarise(workspace)
    assert [(x.where, x.what) for x in told.library_crashes] == [("torch.f", "killed by SIGFPE")]
    assert told.library_crashes[0].reason == "n=-1, mode='a'; it violates value of n"
    assert len(told.extraction_failures) == before


def test_what_is_no_word_of_the_compilers_is_told_apart_however_rare() -> None:
    words = Counter({f"no kernel for {number}": 2 for number in range(summary.REASONS + 3)})
    said = summary.APART["opera: "]
    top = summary._top(words + Counter({said: 1}))
    assert top[said] == 1 and top["3 other reasons"] == 6 and len(top) == summary.REASONS + 2


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "tflite: ConverterError: Could not translate MLIR to FlatBuffer.<frozen runpy>:198:1: error: 'tf.Qr' op is neither"
            "\n<frozen runpy>:198:1: note: called from",
            "tflite: 'tf.Qr' op is neither",
        ),
        ("onnx: WrongExport: ONNX Runtime computes something else", "onnx: WrongExport: ONNX Runtime computes something else"),
        ("pt2: the process died", "pt2: the process died"),
    ],
)  # fmt: skip
def test_why_nothing_was_exported_is_told_without_what_its_exporter_always_says(message: str, told: str) -> None:
    assert summary._by_its_exporter(message) == told
