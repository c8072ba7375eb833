"""What does it do, now? Stored tests and programs made up just now, on a warm pool, without a trace in the workspace."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from faults import exporting
from faults.onnx_faults import Silent, relu

from opera import temporary
from opera.pool.pool import Pool
from opera.programs import migrated
from opera.programs.program import Captured, Provenance
from opera.programs.verdicts import Limits
from opera.run import driver as stage
from opera.run.groups import groups
from opera.run.probe import Answer, Asked, Probe, Question
from opera.store.folders import KEPT, Folders, drawn, keep_outputs, kept_outputs
from opera.store.workspace import Workspace
from opera.triage.alike import same_values
from opera.triage.reproducers import scripts

pytest.importorskip("onnx")


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.add_captured([relu(n, "Relu") for n in range(3)] + [relu(n, "LeakyRelu") for n in range(2)])
    return workspace


def name(compiler: str) -> str:
    return f"faults.onnx_faults:{compiler}-onnx"


def run(workspace: Workspace, compiler: str) -> dict[str, str]:
    """Run; return test → verdict."""
    options = stage.Options(compilers=(f"faults.onnx_faults:{compiler}",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    return {x.test: x.outcome.verdict for x in workspace.verdicts()}


def contents(root: Path) -> dict[str, bytes]:
    """Return what a workspace's folder holds, but for what SQLite leaves while it is open."""
    return {str(x): x.read_bytes() for x in root.rglob("*") if x.is_file() and not x.name.endswith(("-wal", "-shm"))}


def test_stored_tests_do_what_a_run_saw(filled: Workspace) -> None:
    stored = run(filled, "wrong_value")
    assert sorted(stored.values()) == ["inconsistent"] * 2 + ["pass"] * 3
    before = contents(filled.root)
    with Probe.of(filled, workers=2) as probe:
        assert probe.limits == Limits(20.0), "those of the newest run"
        answers = list(probe.ask(Question(frontend=name("wrong_value"), test=test) for test in stored))
    assert {x.question.test: x.outcome.verdict for x in answers} == stored
    assert contents(filled.root) == before


def test_programs_that_are_no_stored_tests_are_wrapped_in_a_scratch_place(filled: Workspace, tmp_path: Path) -> None:
    before = contents(filled.root)
    good, bad = relu(7, "LeakyRelu"), relu(8, "LeakyRelu")
    bad = msgspec.structs.replace(bad, program=msgspec.structs.replace(bad.program, operator="NoSuchOperator"))
    with Probe.of(filled, workers=1) as probe:
        scratch = Path(probe.files.roots[0])
        asked = [Question(frontend=name(x), program=good) for x in ("right", "wrong_value")]
        asked.append(Question(frontend=name("right"), program=bad))
        found = {(x.question.frontend, x.question.program is bad): x.outcome for x in probe.ask(asked)}
        assert found[name("right"), False].verdict == "pass"
        assert found[name("wrong_value"), False].symptom == "value"
        assert found[name("right"), True].verdict == "invalid"
        assert not list(scratch.rglob("manifest.json")), "nobody asks about them any more"
        assert probe(asked[1]).symptom == "value", "and they can be asked about again"
    assert not scratch.exists()
    assert contents(filled.root) == before


def test_a_test_is_kept_whether_it_is_made_for_the_question_or_stored(filled: Workspace, tmp_path: Path) -> None:
    [stored, *_] = run(filled, "wrong_value")
    before = contents(filled.root)
    with Probe.of(filled, workers=1) as probe:
        held = filled.instance(migrated.read_manifest(migrated.folder(filled.tests_folder, stored)).instance)
        for program in (held, relu(7, "Relu").program):
            asked = Captured(program, Provenance("suite", "file", "test"))
            for kept in (tmp_path / "kept", filled.tests_folder if program == held else tmp_path / "kept"):
                probe(Question(frontend=name("wrong_value"), program=asked, keep=kept))
        failing = relu(7, "LeakyRelu")
        probe(Question(frontend=name("wrong_value"), variant="v", program=failing, keep=tmp_path / "root" / "tests"))
    assert len(list((tmp_path / "kept").rglob("manifest.json"))) == 2
    [found] = (tmp_path / "root" / "tests").rglob("manifest.json")
    outputs = kept_outputs(found.parent.name, name("wrong_value"), "v", "")
    [actual] = migrated.unpack((tmp_path / "root" / outputs).read_bytes())
    assert not same_values([actual], migrated.read_values(found.parent, "expected")), "and what was returned beside it"
    assert contents(filled.root) == before, "a stored test is not copied onto itself"


def test_a_feedback_search_asks_more_meanwhile(filled: Workspace) -> None:
    [last] = [x for x, verdict in run(filled, "right").items() if x][-1:]
    with Probe.of(filled, workers=1) as probe:
        for n in range(3):
            probe.submit(Question(frontend=name("right"), program=relu(n + 20, "Relu")), tag=f"early {n}")
        assert probe(Question(frontend=name("crash"), program=relu(30, "LeakyRelu"))).verdict == "crash", (
            "its own answer"
        )
        assert [x.tag for x in probe.answers()] == ["early 0", "early 1", "early 2"]
        seen: list[Answer] = []
        for answer in probe.ask([Question(frontend=name("right"), test=last)]):
            seen.append(answer)
            if len(seen) < 5:
                probe.submit(Question(frontend=name("right"), program=relu(len(seen) + 10, "Relu")), tag=len(seen))
    assert [x.outcome.verdict for x in seen] == ["pass"] * 5
    assert [x.tag for x in seen] == [None, 1, 2, 3, 4]
    assert len({x.result.worker for x in seen if x.result is not None}) == 1, "one warm worker did them all"


def test_a_fresh_fork_has_no_history_and_predecessors_make_one(filled: Workspace) -> None:
    stored = run(filled, "right")
    leaky = [x for x in stored if filled.query("SELECT 1 FROM tests t JOIN instances i ON i.id = t.instance"
                                              " WHERE t.id = ? AND operator = 'LeakyRelu'", (x,))]  # fmt: skip
    others = [f"{x}/inputs" for x in stored if x not in leaky]
    question = Question(frontend=name("leaks_state"), test=leaky[0])
    with Probe.of(filled, workers=1) as probe:
        warm = [probe(question).verdict for _ in range(2)]
        fresh = [probe(msgspec.structs.replace(question, fresh=True)).verdict for _ in range(2)]
        [after] = probe.ask([msgspec.structs.replace(question, after=tuple(others[:1]))])
    assert warm == ["pass", "inconsistent"], "the second time, something had run before in that process"
    assert fresh == ["pass", "pass"]
    assert (after.reached, after.outcome.verdict) == (True, "inconsistent")


def test_a_death_costs_its_question_alone(filled: Workspace) -> None:
    with Probe.of(filled, workers=2, limits=Limits(10.0)) as probe:
        programs = [relu(n, "LeakyRelu" if n == 3 else "Relu") for n in range(8)]
        asked = [Question(frontend=name("segfault"), program=program) for program in programs]
        found = {x.question.program.program.id: x.outcome for x in probe.ask(asked) if x.question.program}
    told = [found[program.program.id] for program in programs]
    assert [x.verdict for x in told] == ["pass"] * 3 + ["abort"] + ["pass"] * 4
    assert told[3].symptom == "SIGSEGV"


def test_a_predecessor_that_ends_the_process_is_told(filled: Workspace) -> None:
    stored = list(run(filled, "right"))
    operators = dict(filled.query("SELECT t.id, operator FROM tests t JOIN instances i ON i.id = t.instance"))
    [killer, *_], [victim, *_] = ([x for x in stored if operators[x] == operator] for operator in ("LeakyRelu", "Relu"))
    with Probe.of(filled, workers=1) as probe:
        [answer] = probe.ask([Question(frontend=name("segfault"), test=victim, after=(f"{killer}/inputs",))])
    assert (answer.reached, answer.outcome.verdict) == (False, "abort")


def test_a_library_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PRELOAD", ("no_such_module",))
    asked = Question(frontend=f"faults.exporting:files-{exporting.NAME}", program=exporting.instance("Good"))
    with Probe(workers=1) as probe:
        outcome = probe(asked)
    assert (outcome.verdict, outcome.stage, outcome.symptom) == ("error", "wrap", "unavailable")
    assert "no_such_module" in outcome.message


def test_exporters_are_asked_without_their_patches(filled: Workspace) -> None:
    program = relu(1, "LeakyRelu")
    with Probe.of(filled, workers=1) as probe:
        asked = [Question(frontend=name("patched"), program=program, unpatched=x) for x in (False, True)]
        found = {x.question.unpatched: x.outcome.verdict for x in probe.ask(asked)}
    assert found == {False: "crash", True: "pass"}


def test_an_environment_is_asked_in_its_own_interpreter(filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = run(filled, "right")
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}{os.pathsep}{tests}")
    filled.save_interpreter("old", sys.executable)
    with Probe.of(filled, workers=1) as probe:
        asked = [Question(frontend=name("right"), test=next(iter(stored)), environment=x) for x in ("old", "")]
        found = [probe(x).verdict for x in asked]
        pythons = {group.python for group in probe.pool.groups.values()}
    assert found == ["pass", "pass"]
    assert pythons == {sys.executable, ""}


def test_workers_whose_root_is_another_path_do_the_same_jobs(filled: Workspace, tmp_path: Path) -> None:
    """As on another machine: its tests are a copy, and nothing of the paths here is known there."""
    stored = run(filled, "wrong_value")
    there = tmp_path / "another machine"
    shutil.copytree(filled.tests_folder, there / "tests")
    shutil.rmtree(filled.tests_folder)
    pairs = [("faults.onnx_faults:wrong_value", "onnx")]
    with Pool(groups(pairs, ["onnx"], lambda _: "", Folders.of(there)), workers=1) as pool:
        probe = Probe(filled.root, pool=pool)
        found = {x.question.test: x.outcome.verdict
                 for x in probe.ask(Question(frontend=name("wrong_value"), test=test) for test in stored)}  # fmt: skip
    assert found == stored


def test_several_roots_are_searched_in_order(tmp_path: Path) -> None:
    files = Folders.of(tmp_path / "new", tmp_path / "old")
    (tmp_path / "old" / "tests" / "ab" / "abc").mkdir(parents=True)
    assert files.test("abc") == tmp_path / "old" / "tests" / "ab" / "abc"
    assert files.test("abd") == tmp_path / "new" / "tests" / "ab" / "abd"
    (tmp_path / "new" / "tests" / "ab" / "abc").mkdir(parents=True)
    assert files.test("abc") == tmp_path / "new" / "tests" / "ab" / "abc"
    assert not temporary.sweep(), "probes leave no folders"


def test_where_a_script_does_not_show_its_finding_the_test_itself_is_asked(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(filled, "wrong_value")
    monkeypatch.setattr(
        scripts, "verify", lambda path, finding, python="": scripts.Trial(finding, scripts.GONE, "gone")
    )
    assert not scripts.show(filled, "all", None, check=True)
    assert "asked in a fresh process: fails, as found" in capsys.readouterr().out


def test_where_no_script_can_be_made_nothing_was_verified(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(filled, "wrong_value")
    monkeypatch.setattr(scripts, "write", lambda *_: None)
    assert scripts.show(filled, "all", None, check=False) and not scripts.show(filled, "all", None, check=True)
    assert "no script: it is state-dependent" in capsys.readouterr().out


def test_outputs_are_kept_on_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch folders lie in /tmp: what a rename cannot move is copied. What was kept stays where nothing is left."""

    def rename(self: object, *_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    saved, kept = tmp_path / "a.msgpack", tmp_path / "there" / "b.msgpack"
    for name, what in ((saved.name, b"1"), (drawn(saved.name), b"2")):
        (tmp_path / name).write_bytes(what)
    monkeypatch.setattr(os, "rename", rename)
    keep_outputs(saved, kept)
    assert (kept.read_bytes(), (kept.parent / drawn(kept.name)).read_bytes()) == (b"1", b"2")
    keep_outputs(saved, kept)
    assert kept.read_bytes() == b"1" and not saved.exists()
    saved.write_bytes(b"3" * (KEPT + 1))
    keep_outputs(saved, kept)
    assert not any(x.is_file() for x in kept.parent.iterdir()), "another run's outputs are not these"


@pytest.mark.parametrize(
    ("operator", "verdict", "symptom"),
    [("Good", "pass", ""), ("Refused", "unexported", "NotImplementedError"), ("Deadly", "unexported", "SIGSEGV")],
)
def test_an_artefact_that_is_only_offered_is_made_first(operator: str, verdict: str, symptom: str) -> None:
    asked = Question(frontend=f"faults.exporting:files-{exporting.NAME}", program=exporting.instance(operator))
    with Probe(workers=1, limits=Limits(20.0)) as probe:
        answers = list(probe.ask([asked, msgspec.structs.replace(asked, variant="file")]))
        log = (Path(probe.files.roots[0]) / "exports.log").read_text()
    assert [(x.outcome.verdict, x.outcome.symptom) for x in answers] == [(verdict, symptom)] * 2
    assert log == f"{operator} file\n", "one export serves both questions"


def test_what_two_equal_questions_leave_to_be_screened_lies_apart() -> None:
    """One is answered, and its outputs go, while the other's are looked at."""
    ones = [Question(frontend="tvm-onnx", test="t", screened=True) for _ in range(2)]
    probe = Probe()
    assert ones[0] == ones[1] and len({probe._outputs(Asked(x, "t")) for x in ones}) == 2


def test_what_holds_no_constants_is_asked_by_the_variant_of_constants_as_it_is() -> None:
    """Else a reduction would keep an empty input for the sake of the variant alone, by which it was found."""
    with Probe(workers=1, limits=Limits(60.0)) as probe:
        asked = [
            Question(frontend="onnxruntime-onnx", variant=x, program=relu(1, "Relu")) for x in ("inputs", "constants")
        ]
        assert [x.outcome.verdict for x in probe.ask(asked)] == ["pass", "pass"]
