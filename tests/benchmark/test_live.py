"""Live runs: what the labels are, that they are frozen, and what is scored and written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from commands import opera
from filled import HOSTILE, captured, document, fill, judged

from opera.benchmark import labels as labelling
from opera.benchmark.subjects import live
from opera.errors import CorpusError, UsageError
from opera.oracle.signature import Signature
from opera.store import examined, verdicts
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    fill(workspace)
    return workspace


def test_faults_are_findings_at_two_granularities(filled: Workspace) -> None:
    labels = labelling.freeze([filled])
    newest = next(x for x in labels.frontends.values() if x.compiler_version == "0.27.0")
    assert newest.tests == 10
    assert newest.faults["signature"] == {
        "Faaaaaaaa": ["t0", "t2"], "Fbbbbbbbb": ["t1"], "Fdddddddd": ["t8"], "Feeeeeeee": ["t9"],
    }  # fmt: skip
    assert newest.faults["converter"]["onnx_frontend:Conv._impl_v1"] == ["t0", "t2"]
    assert {name: len(x.faults["signature"]) for name, x in labels.frontends.items()} == {
        "tvm-onnx": 4,
        "openvino-onnx": 1,
    }
    assert labelling.left_out(filled) == ["tvm-onnx 0.9.0"], "two versions of one frontend are not two subjects"


def test_where_in_a_converter_it_failed_does_not_tell_faults_apart_at_the_coarser_one() -> None:
    for name in ("DFT@common.h:31", "DFT@src/op/dft.cpp:7", "DFT:12", "DFT"):
        assert labelling.PLACE.sub("", name) == "DFT"
    assert labelling.PLACE.sub("", "onnx_frontend:Conv._impl_v1") == "onnx_frontend:Conv._impl_v1"


def test_what_was_made_of_a_member_is_no_test_of_the_corpus(filled: Workspace) -> None:
    told = examined.Examined("Fbbbbbbbb", "", "t1", b"t0 without pads")
    examined.save(filled, examined.MADE, told)
    labels = labelling.freeze([filled])
    for x in labels.frontends.values():
        assert x.tests == len(verdicts.seconds(filled, x.frontend, x.environment))
        assert "t1" not in {test for found in x.faults.values() for tests in found.values() for test in tests}
    assert not any("Fbbbbbbbb" in x.faults["signature"] for x in labels.frontends.values())
    assert live([filled], labels), "the digests agree"


def test_nothing_run_and_nothing_found_are_told(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="nothing was run"):
        labelling.freeze([workspace])
    environment = workspace.save_environment(
        {"compiler": "tvm", "library": "onnx", "library_version": "", "version": "1"}
    )
    workspace.save_verdicts(1, [judged("t", "tvm-onnx", "inputs", environment, "pass")], {})
    with pytest.raises(UsageError, match="no finding"):
        labelling.freeze([workspace])


def test_frozen_labels_do_not_change(filled: Workspace, tmp_path: Path) -> None:
    labelling.write(labelling.freeze([filled]), tmp_path / "labels.json")
    with pytest.raises(UsageError, match="frozen labels do not change"):
        labelling.write(labelling.freeze([filled]), tmp_path / "labels.json")
    assert labelling.read(tmp_path / "labels.json").frontends == labelling.freeze([filled]).frontends


@pytest.mark.parametrize(
    "text", ["", "[]", '{"b": [1]}', '{"format": "other", "version": 1, "opera": "", "frozen": "", "frontends": {}}']
)
def test_other_files_are_no_labels(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(CorpusError, match=r"labels\.json"):
        labelling.read(tmp_path / "labels.json")


def test_one_command_scores_and_writes_every_report(filled: Workspace, tmp_path: Path) -> None:
    filled.close()
    output = tmp_path / "out"
    arguments = (
        "benchmark",
        "--workspace",
        str(filled.root),
        "--output",
        str(output),
        "--repeat",
        "3",
        "--workers",
        "1",
    )
    done = opera(*arguments, "--strategy", "opera", "--strategy", "random", "--strategy", "fast-pw")
    assert done.returncode == 0, done.stderr
    assert re.search(r"(?m)^opera +0\.\d+ ± ", done.stdout)
    assert "labels frozen" in done.stderr
    found = json.loads((output / "benchmark.json").read_text())
    assert {x["strategy"] for x in found["scores"]} == {"opera", "random", "fast-pw"}
    assert all(0 < x["metrics"]["apfd"]["mean"] < 1 for x in found["scores"])
    assert {x["strategy"] for x in found["differences"]} == {"random", "fast-pw"}
    assert len(found["comparisons"]) == 3 * 2 * 2
    page = (output / "report.html").read_text()
    assert HOSTILE not in page
    assert (
        page.count("<svg")
        == len(list((output / "figures").glob("*.png")))
        == len(list((output / "figures").glob("*.pdf")))
    )
    assert found["labels"] in page
    again = opera(*arguments, "--strategy", "opera", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert "labels frozen" not in again.stderr, "labels that are there are used as they are"
    assert json.loads(again.stdout)["labels"] == found["labels"]


def test_what_was_run_since_is_told(filled: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "labels.json"
    labelling.write(labelling.freeze([filled]), file)
    environment = next(x.environment for x in labelling.read(file).frontends.values() if x.compiler_version == "0.27.0")
    filled.save_verdicts(1, [judged("t11", "tvm-onnx", "inputs", environment, "pass")], {})
    filled.close()
    done = opera("benchmark", "--workspace", str(filled.root), "--labels", str(file), "--output", str(tmp_path / "out"))
    assert (done.returncode, "freeze labels anew" in done.stderr) == (2, True)


def test_labels_of_unknown_tests_are_told(filled: Workspace, tmp_path: Path) -> None:
    labels = labelling.freeze([filled])
    next(iter(labels.frontends.values())).faults["signature"]["Fzzzzzzzz"] = ["t99"]
    with pytest.raises(CorpusError, match="fault 'Fzzzzzzzz' of the labels names test 't99', which was not run"):
        live([filled], labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--strategy", "total"), "opera coverage --frontend"),
        (("--strategy", "opera-op"), "opera extract --equipped"),
        (("--strategy", "opra"), "no strategy called 'opra'"),
        (("--format", "html"), "no format called 'html'"),
        (("--strategy", "random"), "the baseline opera is not scored"),
        (("--labels", "absent.json"), "absent.json: No such file"),
        (("--equipped", "e.jsonl"), "--equipped and --costs go with --instances"),
        (("--instances", "e.jsonl"), "--instances goes with --labels"),
        (("--instances", "e.jsonl", "--labels", "l.json", "--freeze", "f.json"), "about workspaces"),
    ],
)
def test_bad_use_is_told(filled: Workspace, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    filled.close()
    base = ("benchmark", "--workspace", str(filled.root), "--output", str(tmp_path / "out"), "--workers", "1")
    extra = ("--strategy", "opera") if arguments[1] in ("total", "opera-op") else ()
    done = opera(*base, *arguments, *extra)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.full
def test_workspaces_are_scored_together(filled: Workspace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with Workspace.open(other, write=True) as opened:
        opened.add_captured([captured(number, "Conv") for number in range(3)])
        opened.save_tests(
            "exporter", [MigratedTest(f"u{n}", captured(n, "Conv").program.id, "valid") for n in range(3)]
        )
        environment = opened.save_environment(document("xla", "2.0"))
        crash = {"stage": "load", "symptom": "KeyError", "finding": "Fxxxxxxxx", "confirmation": "confirmed"}
        verdicts = [judged(f"u{n}", "xla-onnx", "inputs", environment, "pass", seconds={"load": 1.0}) for n in (0, 1)]
        verdicts.append(judged("u2", "xla-onnx", "inputs", environment, "crash", seconds={"load": 1.0}, **crash))
        signature = msgspec.json.encode(Signature("xla-onnx", "load", "KeyError", "", "Conv", ""))
        opened.save_verdicts(1, verdicts, {"Fxxxxxxxx": signature})
    filled.close()
    roots = ("--workspace", str(filled.root), "--workspace", str(other), "--output", str(tmp_path / "out"))
    done = opera("benchmark", *roots, "--repeat", "2", "--workers", "1", "--strategy", "opera", "--format", "json")
    assert done.returncode == 0, done.stderr
    facts = {x["name"].partition(" ")[0]: x for x in json.loads(done.stdout)["subjects"]}
    assert set(facts) == {"tvm-onnx", "openvino-onnx", "xla-onnx"}
    assert (facts["xla-onnx"]["tests"], facts["xla-onnx"]["faults"]) == (3, {"signature": 1, "converter": 1})
    assert (tmp_path / "out" / "figures" / "faults-mean.pdf").is_file()
    twice = opera(
        "benchmark", "--workspace", str(other), "--workspace", str(other), "--freeze", str(tmp_path / "l.json")
    )
    assert (twice.returncode, "two workspaces hold runs of xla-onnx" in twice.stderr) == (2, True)


def test_labels_that_lack_a_frontend_are_told(filled: Workspace, tmp_path: Path) -> None:
    labels = labelling.freeze([filled])
    one = next(iter(labels.frontends))
    out = tmp_path / "out"
    labelling.write(msgspec.structs.replace(labels, frontends={one: labels.frontends[one]}), out / "labels.json")
    filled.close()
    base = ("benchmark", "--workspace", str(filled.root), "--output", str(out), "--repeat", "2", "--workers", "1")
    done = opera(*base, "--strategy", "opera")
    assert done.returncode == 2
    assert "know nothing of" in done.stderr and all(
        f"{x.frontend} {x.compiler_version}" in done.stderr for name, x in labels.frontends.items() if name != one
    )
    done = opera(*base, "--strategy", "opera", "--labels", str(out / "labels.json"), "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "not scored, for the labels do not have them" in done.stderr
    assert [x["name"] for x in json.loads(done.stdout)["subjects"]] == [one]


def test_workspaces_in_other_orders_are_ranked_each_by_its_own(tmp_path: Path) -> None:
    """The same tests on one compiler's two versions, captured in opposite orders."""
    operators = ("Conv", "Pad", "Relu", "Cast")
    workspaces = []
    for version, order in (("1.0", (0, 1, 2, 3)), ("2.0", (3, 2, 1, 0))):
        opened = Workspace.open(tmp_path / version, write=True)
        opened.add_captured([captured(n, operators[n]) for n in order])
        opened.save_tests(
            "exporter", [MigratedTest(f"t{n}", captured(n, operators[n]).program.id, "valid") for n in order]
        )
        environment = opened.save_environment(document("xla", version))
        crash = {"stage": "load", "symptom": "KeyError", "finding": "Fxxxxxxxx", "confirmation": "confirmed"}
        verdicts = [judged(f"t{n}", "xla-onnx", "inputs", environment, "pass") for n in (1, 2, 3)]
        verdicts.append(judged("t0", "xla-onnx", "inputs", environment, "crash", **crash))
        signature = msgspec.json.encode(Signature("xla-onnx", "load", "KeyError", "", "Conv", ""))
        opened.save_verdicts(1, verdicts, {"Fxxxxxxxx": signature})
        workspaces.append(opened)
    first, second = sorted(live(workspaces, labelling.freeze(workspaces)), key=lambda x: x.name)
    assert [x.operator for x in first.rows] == [x.operator for x in reversed(second.rows)] == list(operators)
    assert (first.faults["signature"], second.faults["signature"]) == ({"Fxxxxxxxx": [0]}, {"Fxxxxxxxx": [3]})
    assert first.same != second.same
    for opened in workspaces:
        opened.close()


@pytest.mark.full
def test_held_out_frontends_are_told_apart(filled: Workspace, tmp_path: Path) -> None:
    filled.close()
    (tmp_path / "held.toml").write_text(
        'named = 2026-01-01\nbaseline = "opera"\ntuning = ["openvino-onnx"]\nheld_out = []\n'
    )
    done = opera(
        "benchmark", "--workspace", str(filled.root), "--output", str(tmp_path / "out"), "--repeat", "2", "--workers", "1",
        "--strategy", "opera", "--strategy", "random", "--held-out", str(tmp_path / "held.toml"), "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scopes = {x["scope"]: x["subjects"] for x in json.loads(done.stdout)["differences"]}
    assert scopes["tuning"] == ["openvino-onnx"]
    assert scopes["held out"] == ["tvm-onnx"]


def test_the_published_file_of_held_out_frontends_is_one() -> None:
    from opera.benchmark.command import HeldOut

    file = Path(__file__).parents[2] / "results" / "benchmarks" / "held-out.toml"
    told = msgspec.toml.decode(file.read_bytes(), type=HeldOut)
    assert not set(told.tuning) & set(told.held_out)
