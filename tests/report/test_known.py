"""What `opera known` does with a workspace, and how reports tell known findings from new ones."""

from __future__ import annotations

import json

import pytest
from filled import captured, judged

from opera import report as reports
from opera.errors import UsageError, WorkspaceError
from opera.report import known as stage
from opera.report import show
from opera.report.chosen import Wanted
from opera.report.summary import summarise
from opera.store import database
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace
from opera.triage.findings import findings
from opera.triage.known import Entry, Known

CRASH, WRONG = "Faaaaaaaa", "Fbbbbbbbb"


@pytest.fixture
def path(tmp_path, environments):
    return tmp_path / "known.toml"


def marked(workspace: Workspace, path) -> dict[tuple[str, str], str]:
    """Return (finding, version) → what is known of it."""
    found = Known.load(path).within_workspace(workspace).marked(findings(workspace))
    return {(x.id, x.compiler_version): x.known.status + "!" * x.known.regression if x.known else "" for x in found}


def save(
    workspace: Workspace, environment: str, test: str, verdict: str, *place: str, frontend="tvm-onnx", **more
) -> None:
    """Store another verdict of a test."""
    x = judged(test, frontend, "inputs", environment, verdict, *place, **more)
    workspace.save_verdicts(1, [x], {x.finding: b"{}"} if x.finding else {})
    if not x.finding:
        workspace.drop_empty_findings()


def test_a_finding_is_noted_with_what_it_looked_like(workspace, path, capsys):
    stage.add(workspace.root, path, ["Faaa"], {"issue": "https://x/1", "versions": ">=0.20"})
    assert "added Faaaaaaaa: open, https://x/1" in capsys.readouterr().out
    (entry,) = Known.load(path).entries
    assert entry.signature.startswith("tvm-onnx load KeyError onnx_frontend:Conv._impl_v1: ")
    assert set(entry.tests) == {captured(0, "Conv").program.id, workspace_instance(workspace, "t2")}
    assert "# test_Conv_0" in path.read_text()
    assert "# TVM cannot load Conv" in path.read_text()
    told = marked(workspace, path)
    assert (told[CRASH, "0.27.0"], told[CRASH, "0.9.0"], told[WRONG, "0.27.0"]) == ("open", "", "")


def workspace_instance(workspace: Workspace, test: str) -> str:
    return workspace.query("SELECT instance FROM tests WHERE id = ?", (test,))[0][0]


def test_noting_it_again_changes_the_entry(workspace, path, capsys):
    stage.add(workspace.root, path, [CRASH], {"issue": "https://x/1", "status": "fixed", "fixed_in": "0.28"})
    stage.add(workspace.root, path, ["Faaa", "Fbbb"], {"status": "open", "note": "both"})
    assert "changed Faaaaaaaa, Fbbbbbbbb: open, https://x/1" in capsys.readouterr().out
    (entry,) = Known.load(path).entries
    assert (entry.findings, entry.status, entry.fixed_in) == ((CRASH, WRONG), "open", "")
    assert (entry.issue, entry.note) == ("https://x/1", "both")


def test_all_notes_what_is_new_and_nothing_twice(workspace, path, capsys):
    stage.add(workspace.root, path, [WRONG], {"issue": "https://x/1"})
    stage.add(workspace.root, path, ["all"], {"note": "baseline"})
    entries = Known.load(path).entries
    assert [x.note for x in entries].count("baseline") == len(entries) - 1
    assert set(marked(workspace, path).values()) == {"open"}
    before = path.read_text()
    stage.add(workspace.root, path, ["all"], {})
    assert path.read_text() == before
    assert [x.signature for x in entries] == sorted(x.signature for x in entries)


def test_a_finding_may_split(workspace, path):
    stage.add(workspace.root, path, [CRASH], {"operator": "Conv", "issue": "https://x/1"})
    assert marked(workspace, path)[CRASH, "0.27.0"] == ""  # its other operator is new
    found = next(x for x in findings(workspace) if x.id == CRASH and len(x.operators) > 1)
    stage.add(workspace.root, path, [CRASH], {"operator": "*<*", "issue": "https://x/2"})
    assert len(Known.load(path).entries) == 2 == len(found.operators)
    assert marked(workspace, path)[CRASH, "0.27.0"] == "open"
    with pytest.raises(UsageError, match="2 entries are about that"):
        stage.add(workspace.root, path, [CRASH], {"note": "which?"})


@pytest.mark.parametrize(
    ("names", "said", "what"),
    [
        (["Fzzz"], {}, "no finding has an id that begins with 'Fzzz'"),
        (["F"], {}, "findings have an id that begins with 'F'"),
        ([CRASH], {"versions": "new"}, "opera known add: versions = 'new' cannot be read"),
        ([CRASH], {"status": "wontfix"}, "opera known add: there is no status 'wontfix'"),
        ([CRASH], {"status": "by-design"}, "opera known add: status 'by-design' without a reason"),
        ([CRASH], {"message": "["}, "opera known add: message cannot be read"),
    ],
)
def test_what_cannot_be_noted_leaves_the_file_alone(workspace, path, names, said, what):
    path.write_text("# mine\n")
    with pytest.raises(UsageError) as told:
        stage.add(workspace.root, path, names, said)
    assert what in told.value.what
    assert told.value.fix
    assert path.read_text() == "# mine\n"


def test_what_is_taken_out_is_gone(workspace, path, capsys):
    stage.add(workspace.root, path, [CRASH, WRONG], {})
    stage.remove(path, [CRASH])
    assert Known.load(path).entries[0].findings == (WRONG,)
    with pytest.raises(UsageError, match="no entry names Faaaaaaaa"):
        stage.remove(path, [WRONG, CRASH])
    stage.remove(path, [WRONG])
    assert Known.load(path).entries == ()


def test_what_is_gone_from_the_workspace_can_still_be_changed(workspace, path, tmp_path, environments, capsys):
    stage.add(workspace.root, path, [CRASH], {})
    stage.add(workspace.root, path, [WRONG], {})
    save(workspace, environments["tvm"], "t1", "pass")
    stage.add(workspace.root, path, ["Fbbb"], {"status": "fixed", "fixed_in": "0.27"})
    assert "changed Fbbbbbbbb: fixed in 0.27" in capsys.readouterr().out
    stage.add(tmp_path / "nowhere", path, [CRASH], {"issue": "https://x/1"})
    assert [(x.findings, x.status, x.issue) for x in Known.load(path).entries] == [
        ((WRONG,), "fixed", ""), ((CRASH,), "open", "https://x/1"),
    ]  # fmt: skip
    with pytest.raises(WorkspaceError, match="there is no workspace"):
        stage.add(tmp_path / "nowhere", path, ["Fdddddddd"], {})


# ---------------------------------------------------------------------- check


def checked(workspace: Workspace, path, capsys, frontend: str = "") -> tuple[bool, str]:
    capsys.readouterr()
    ok = stage.check(workspace, Known.load(path), frontend)
    return ok, capsys.readouterr().out


def test_a_file_that_is_right(workspace, path, capsys):
    stage.add(workspace.root, path, ["all"], {})
    ok, told = checked(workspace, path, capsys)
    assert ok
    assert "6 here" in told
    assert "not run" in told  # what failed on 0.27.0 was not run on 0.9.0


def test_what_is_gone_although_its_tests_were_run_is_told(workspace, path, capsys, environments):
    stage.add(workspace.root, path, ["all"], {"issue": "https://x/1"})
    save(workspace, environments["tvm"], "t1", "pass")
    ok, told = checked(workspace, path, capsys)
    assert not ok
    assert "fixed?      Fbbbbbbbb  tvm-onnx 0.27.0: 1 of its tests were run, and pass (https://x/1)" in told
    assert checked(workspace, path, capsys, "openvino-onnx")[0]
    stage.add(workspace.root, path, [WRONG], {"status": "fixed", "fixed_in": "0.27"})
    assert checked(workspace, path, capsys)[0]


def test_what_changed_its_symptom_is_told_and_new(workspace, path, capsys, environments):
    stage.add(workspace.root, path, ["all"], {})
    save(
        workspace, environments["tvm"], "t1", "crash", "load", "KeyError", finding="F00000001", message="no such thing"
    )
    ok, told = checked(workspace, path, capsys)
    assert not ok
    assert "changed     Fbbbbbbbb  tvm-onnx 0.27.0: its tests now fail as F00000001 (crash in load: KeyError)" in told
    assert "1 findings are not known" in told
    assert marked(workspace, path)["F00000001", "0.27.0"] == ""
    save(workspace, environments["tvm"], "t1", "unsupported", "load", "OpNotImplemented", message="no Pad")
    assert "its tests are now unsupported" in checked(workspace, path, capsys)[1]


def test_what_only_moved_is_known_by_its_tests(workspace, path, capsys, environments):
    stage.add(workspace.root, path, ["all"], {})
    moved = {"finding": "F00000001", "conversion_function": "onnx_frontend:Conv._impl_v1", "message": "worded anew"}
    for test in ("t0", "t2"):
        save(workspace, environments["tvm"], test, "crash", "load", "KeyError", **moved)
    assert marked(workspace, path)["F00000001", "0.27.0"] == "open"
    assert checked(workspace, path, capsys)[0]


def test_what_was_not_run_is_not_called_fixed(workspace, path, capsys, environments):
    stage.add(workspace.root, path, ["all"], {})
    for verdict in ("flaky", "error", "unexported"):
        save(workspace, environments["tvm"], "t1", verdict, "load", "x")
        assert checked(workspace, path, capsys)[0], verdict


def test_what_is_fixed_and_fails_again_is_a_regression(workspace, path, capsys, environments):
    stage.add(workspace.root, path, ["all"], {})
    stage.add(workspace.root, path, [WRONG], {"status": "fixed", "fixed_in": "0.27", "issue": "https://x/1"})
    ok, told = checked(workspace, path, capsys)
    assert not ok
    assert "regression  Fbbbbbbbb  tvm-onnx 0.27.0: Fbbbbbbbb fails again (https://x/1)" in told
    assert marked(workspace, path)[WRONG, "0.27.0"] == "fixed!"
    stage.add(workspace.root, path, [WRONG], {"status": "fixed", "fixed_in": "0.28"})
    assert checked(workspace, path, capsys)[0]


def test_a_description_of_what_no_longer_fails_is_told_where_its_operator_was_run(workspace, path, capsys):
    path.write_text('[[known]]\noperator = "Relu"\nfrontend = "tvm-*"\n\n[[known]]\nmessage = "never said"\n')
    ok, told = checked(workspace, path, capsys)
    assert not ok
    assert "described  tvm-onnx 0.27.0: tests of Relu were run, and none fails so" in told
    assert "not run" in told


# ---------------------------------------------------------------------- what else knows it


def test_reports_tell_known_from_new(workspace, path, environments, capsys):
    stage.add(
        workspace.root, path, [CRASH], {"issue": "https://x/1", "status": "not-a-bug", "reason": "it is allowed to"}
    )
    known = Known.load(path)
    report = summarise(workspace, known=known)
    assert [x.id for x in report.findings][-2:] == [CRASH, CRASH]
    text = reports.get("terminal").render(report)
    assert "not a bug" in text and ", 2 known)" in text
    text = reports.get("markdown").render(report)
    assert "known: not a bug, https://x/1, it is allowed to" in text
    assert "2 of them known" in text
    told = json.loads(reports.get("json").render(report))["findings"][-1]["known"]
    assert (told["status"], told["reason"], told["regression"]) == ("not-a-bug", "it is allowed to", False)
    page = reports.get("html").render(report)
    assert page.count('data-new="0"') == 2
    assert '<a href="https://x/1" rel="noreferrer">' in page
    capsys.readouterr()
    show.findings(workspace, Wanted(), known)
    text = capsys.readouterr().out
    assert "2 known" in text and "not a bug" in text
    show.findings(workspace, Wanted(statuses=("new",)), known)
    assert CRASH not in capsys.readouterr().out
    show.show(workspace, CRASH, known)
    assert "not a bug, https://x/1, it is allowed to" in " ".join(capsys.readouterr().out.split())


def test_html_shows_the_worst_first_and_what_is_new_before_what_is_known(workspace, path):
    stage.add(workspace.root, path, ["Fdddddddd"], {})
    text = reports.get("html").render(summarise(workspace, known=Known.load(path)))
    order = [part.partition('"')[0] for part in text.split('data-id="')[1:]]
    # What there are no doubts about, the worst first; what one reference alone expects, or no fresh process confirmed; what is
    # of older versions; the abort is known.
    assert order == [CRASH, "Feeeeeeee", WRONG, "Fffffffff", CRASH, "Fdddddddd"]


def test_no_address_that_a_browser_runs_becomes_a_link(workspace, path):
    stage.add(workspace.root, path, [CRASH], {"issue": "javascript:alert(1)"})
    page = reports.get("html").render(summarise(workspace, known=Known.load(path)))
    assert 'href="javascript' not in page
    assert "javascript:alert(1)" in page


def test_a_run_is_green_where_all_that_is_new_to_it_is_known(workspace, path, capsys, environments):
    workspace.save_run(workspace.start_run({}), {("tvm-onnx", environments["tvm"]): {}}, finished=True)
    assert stage.after_run(workspace, Known(), [CRASH, WRONG]) == [CRASH, WRONG]
    stage.add(workspace.root, path, [CRASH], {})
    assert stage.after_run(workspace, Known.load(path), [CRASH, WRONG]) == [WRONG]
    stage.add(workspace.root, path, ["all"], {})
    capsys.readouterr()
    assert stage.after_run(workspace, Known.load(path), [CRASH, WRONG]) == []
    told = capsys.readouterr().out
    assert "4 of 4 findings are known" in told and "gone" not in told, (
        "of other versions in the workspace nothing is said"
    )
    stage.add(workspace.root, path, [WRONG], {"status": "fixed", "fixed_in": "0.27"})
    assert stage.after_run(workspace, Known.load(path), []) == [WRONG]  # whether the workspace had it or not
    assert "1 are back though they were fixed: Fbbbbbbbb" in capsys.readouterr().out


# ---------------------------------------------------------------------- other forms


@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_is_exported_can_be_imported(workspace, path, tmp_path, form):
    stage.add(workspace.root, path, ["all"], {"note": 'a, "b"\nc'})
    stage.add(workspace.root, path, [WRONG], {"status": "by-design", "reason": "ü"})
    file = tmp_path / f"known.{form}"
    stage.export(workspace.root, Known.load(path), "", file)
    other = tmp_path / "other.toml"
    stage.import_(workspace.root, other, file, "")
    assert Known.load(other).entries == Known.load(path).entries
    stage.import_(workspace.root, other, file, "")  # and nothing is there twice
    assert Known.load(other).entries == Known.load(path).entries


def test_importing_adds_to_what_is_there(workspace, path, tmp_path, capsys):
    stage.add(workspace.root, path, [CRASH], {"note": "ours"})
    theirs = tmp_path / "theirs.toml"
    theirs.write_text(f'[[known]]\nfindings = ["{CRASH}"]\nissue = "https://x/1"\n\n[[known]]\noperator = "Loop"\n')
    capsys.readouterr()
    stage.import_(workspace.root, path, theirs, "")
    assert "1 added, 1 changed, 0 were there" in capsys.readouterr().out
    described, crash = sorted(Known.load(path).entries, key=lambda x: len(x.findings))
    assert described == Entry(operator="Loop")
    assert (crash.note, crash.issue) == ("ours", "https://x/1")


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("x.json", "{", "x.json is no JSON"),
        ("x.json", '{"findings": []}', "x.json is no list of objects"),
        ("x.json", '[{"findings": ["F1"]}]', "x.json: entry 1: 'F1' is no id"),
        ("x.csv", "findings,status\nFaaaaaaaa,odd\n", "x.csv:2: there is no status 'odd'"),
        ("x.csv", "findings,status\nFaaaaaaaa\n", "x.csv:2: it has not as many cells"),
        ("x.csv", 'findings\n"Faaaaaaaa" x\n', "x.csv is no CSV"),
        ("x.csv", "finding\nFaaaaaaaa\n", "x.csv:2: there is no field 'finding'"),
        ("x.md", "", "x.md does not say what format it has"),
        ("x.toml", "[[known]]\n", "x.toml:1: it names no finding"),
    ],
)
def test_what_cannot_be_imported_is_told(workspace, path, tmp_path, monkeypatch, name, text, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as told:
        stage.import_(workspace.root, path, tmp_path.joinpath(name).relative_to(tmp_path), "")
    assert told.value.what.startswith(what)
    assert told.value.fix and told.value.cause
    assert not path.exists()


def test_tests_that_are_expected_to_fail(workspace, path, tmp_path, capsys):
    stage.add(workspace.root, path, [WRONG], {"issue": "https://x/1"})
    capsys.readouterr()
    stage.export(workspace.root, Known.load(path), "tests", None)
    text = capsys.readouterr().out
    assert "test_Cast_1  # Fbbbbbbbb tvm-onnx open https://x/1\n" in text
    names = tmp_path / "excludes.txt"
    names.write_text(text + "# a remark\ntest_nobody  # gone\ntest_Conv_0\n")
    other = tmp_path / "other.toml"
    stage.import_(workspace.root, other, names, "")
    told = capsys.readouterr()
    assert "1 names belong to no finding" in told.err and "test_nobody" in told.err
    found = Known.load(other).entries
    assert {name for x in found for name in x.findings} == {WRONG}  # one of Faaaaaaaa's tests is not in the list
    assert all(x.note == "all of its tests are expected to fail by excludes.txt" for x in found)


def test_a_part_of_a_new_finding_is_new_too(workspace, path, monkeypatch, environments):
    from opera.triage.distinct import causes

    workspace.save_run(workspace.start_run({}), {("tvm-onnx", environments["tvm"]): {}}, finished=True)
    told = causes.Causes({}, {CRASH: {"t2": "F12345678"}})
    monkeypatch.setattr(causes, "causes", lambda _: told)
    stage.add(workspace.root, path, [CRASH, WRONG], {})
    assert stage.after_run(workspace, Known.load(path), [CRASH]) == ["F12345678"]


def test_many_findings_are_added_in_one_reading(workspace, path, monkeypatch):
    """An entry each of 300 findings: what is read of the workspace is read once."""
    instances = [captured(1000 + n, "Conv") for n in range(300)]
    workspace.add_captured(instances)
    workspace.save_tests("exporter", [MigratedTest(f"m{n}", x.program.id, "valid") for n, x in enumerate(instances)])
    environment = next(iter(workspace.environments()))
    found = [
        judged(f"m{n}", "tvm-onnx", "inputs", environment, "crash", "load", f"E{n}", finding=f"F{n:08x}")
        for n in range(300)
    ]
    workspace.save_verdicts(1, found, {x.finding: b"{}" for x in found})
    read: list[str] = []
    connect = database.connect

    def connected(*args, **kwargs):
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(read.append)
        return connection

    monkeypatch.setattr(database, "connect", connected)
    stage.add(workspace.root, path, ["all"], {})
    assert len(Known.load(path).entries) >= 300
    assert 0 < len(read) < 60
