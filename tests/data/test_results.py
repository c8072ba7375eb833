"""`opera.open`: tables of a workspace as DataFrames. The workspace is tests/filled.py's."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from filled import HOSTILE, captured, fill, instance_of, judged

import opera
from opera.data.frames import DTYPES
from opera.data.tables import DETAILS, TABLES
from opera.errors import NotInstalled, UsageError, WorkspaceError
from opera.programs.verdicts import VERDICTS
from opera.report.summary import summarise
from opera.store.rows import Covered
from opera.store.workspace import COMBINED, Workspace
from opera.triage import blame
from opera.triage.blame import Blame

DOCUMENT = Path(__file__).parents[2] / "docs" / "data.md"


@pytest.fixture
def environments(workspace):
    return fill(workspace)


@pytest.fixture
def results(workspace, environments):
    with opera.open(workspace.root) as opened:
        yield opened


def test_verdicts_are_rows_of_what_is_stored(results, environments):
    found = results.verdicts()
    assert len(found) == 16 and list(found.test[:4]) == ["t3", "t0", "t0", "t1"]
    crash = found[(found.test == "t0") & (found.version == "0.27.0") & (found.variant == "inputs")].iloc[0]
    assert (crash.verdict, crash.stage, crash.symptom, crash.finding) == ("crash", "load", "KeyError", "Faaaaaaaa")
    assert (crash.instance, crash.operator, crash.library, crash.compiler) == (instance_of(0), "Conv", "onnx", "tvm")
    assert crash.message == HOSTILE and crash.conversion_function == "onnx_frontend:Conv._impl_v1"
    assert found[found.verdict == "screened"].screen.tolist() == ["nondeterministic"]
    passed = found[found.verdict == "pass"]
    assert passed[["stage", "message", "finding", "screen"]].isna().all(axis=None)
    assert passed.seconds.max() == 0.5 and set(found.run) == {1}


@pytest.mark.parametrize("name", TABLES)
def test_columns_and_dtypes_are_the_same_with_and_without_rows(name, results, tmp_path):
    with Workspace.open(tmp_path / "empty", write=True):
        pass
    table = TABLES[name]
    with opera.open(tmp_path / "empty") as nothing:
        empty, full = getattr(nothing, name)(), getattr(results, name)()
    assert len(empty) == 0
    for column in table.columns:
        want = DTYPES[column.kind]
        assert empty[column.name].dtype == want, column.name
        assert full[column.name].dtype == want, column.name
    assert list(full.columns) == list(empty.columns) == [column.name for column in table.columns]


def test_the_worst_verdict_comes_first_so_that_tests_are_counted_as_in_reports(workspace, results):
    found = results.verdicts(frontend="tvm-onnx")
    assert tuple(found.verdict.cat.categories) == COMBINED and set(COMBINED) == set(VERDICTS)
    worst = found.sort_values("verdict").drop_duplicates(["frontend", "environment", "test"])
    assert worst[worst.version == "0.27.0"].verdict.value_counts()["crash"] == 2  # t0 and t2 pass as constants
    counted = worst.groupby(["environment", "verdict"], observed=True).size()
    assert counted.to_dict() == {
        (x.environment, verdict): count
        for x in summarise(workspace).frontends if x.name == "tvm-onnx"
        for verdict, count in x.verdicts.items()
    }  # fmt: skip


def test_filters_choose_rows(results, environments):
    counts = [
        (16, {}),
        (2, {"frontend": "openvino-onnx"}),
        (14, {"environment": [environments["tvm"], environments["old"]]}),
        (3, {"status": "crash"}),
        (4, {"operator": "Con*"}),
        (4, {"status": ("abort", "timeout", "out-of-memory", "inconsistent"), "library": "onnx"}),
        (1, {"frontend": ["tvm-onnx"], "operator": "Conv", "status": "pass"}),
        (0, {"frontend": "openvino-onnx", "status": "crash"}),
    ]
    assert [(len(results.verdicts(**asked)), asked) for _, asked in counts] == counts
    every = results.verdicts()
    assert results.verdicts(operator="*").equals(every)
    assert results.verdicts(status=iter(VERDICTS)).equals(every)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"frontend": "tvm-onx"}, "no frontend 'tvm-onx'.*\n.*\n.*openvino-onnx, tvm-onnx"),
        ({"library": "torch"}, "no library 'torch'"),
        ({"environment": "abc"}, "no environment 'abc'"),
        ({"operator": "Nothing*"}, "no operator .*'Nothing\\*'"),
        ({"status": "crashed"}, "no status 'crashed'.*\n.*abort"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_and_no_empty_table(results, asked, told):
    with pytest.raises(UsageError, match=told):
        results.verdicts(**asked)


def test_findings_are_those_of_the_report(workspace, results, environments):
    blame.save(workspace, Blame("Faaaaaaaa", environments["tvm"], "t0", "conversion", "it is raised there"))
    found = results.findings()
    key = found.set_index(["finding", "version"])
    assert set(key.index) == {
        ("Faaaaaaaa", "0.27.0"), ("Faaaaaaaa", "0.9.0"), ("Fbbbbbbbb", "0.27.0"), ("Fdddddddd", "0.27.0"),
        ("Feeeeeeee", "0.27.0"), ("Fffffffff", "2026.4"),
    }  # fmt: skip
    one = key.loc[("Faaaaaaaa", "0.27.0")]
    assert (one.members, one.confirmed, one.blame, one.because) == (2, 1, "conversion", "it is raised there")
    assert one.reproducer == "reproducers/Faaaaaaaa.py" and abs(one.found.timestamp() - time.time()) < 600
    assert key.loc[("Faaaaaaaa", "0.9.0")].isna()["blame"]
    assert len(results.findings(status="crash", environment=environments["old"])) == 1
    assert set(results.findings(operator="Conv").finding) == {"Faaaaaaaa"}
    assert results.findings(operator="Relu").empty
    assert set(results.verdicts(status="abort").finding) == set(results.findings(status="abort").finding)


def test_instances_have_their_sources_and_what_became_of_them(workspace, results):
    again = captured(1, "Cast")
    workspace.add_captured([type(again)(again.program, type(again.provenance)("other, tests", "f.py", "t"), None)])
    found = results.instances().set_index("operator")
    assert len(found) == 12 and found.place.is_monotonic_increasing
    assert found.loc["Cast"].sources == "node-tests, other, tests" and found.loc["Conv"].sources == "node-tests"
    assert found.loc["Cast"].origin == "test_Cast_1" and found.loc["Cast"].calls == 1
    assert found.loc["Bad"].status == "invalid" and found.loc["Bad"].reason.startswith("rejected")
    assert set(results.instances(status=["invalid", "error"]).operator) == {"Bad", "Odd"}
    detailed = results.instances(operator="Pad", details=True).iloc[0]
    assert (detailed.parameters, detailed.input_dtypes, detailed.input_shapes) == ('{"axis":4}', '["float64"]', "[[2]]")
    assert [x.name for x in DETAILS] == list(results.instances(details=True).columns[-3:])


def test_rankings_are_in_order(results):
    found = results.rankings()
    assert found.operator.tolist() == [HOSTILE, "Conv"] and found.position.tolist() == [0, 1]
    assert set(found.frontend) == {"tvm-onnx"} and set(found.strategy) == {"opera"}
    assert len(results.rankings(frontend="tvm-onnx", operator="Conv")) == 1
    with pytest.raises(UsageError, match="no ranking for 'openvino-onnx'"):
        results.rankings(frontend="openvino-onnx")


def test_coverage_counts_statements_of_files(workspace, results, environments):
    lines = (0b10010).to_bytes(1, "little")
    workspace.save_coverage(
        "tvm-onnx", environments["tvm"], [Covered(instance_of(0), {"a.py": lines, "b.py": b""}, 0.1)]
    )
    found = results.coverage(frontend="tvm-onnx")
    assert found[["file", "statements", "operator"]].values.tolist() == [["a.py", 2, "Conv"], ["b.py", 0, "Conv"]]
    assert found.lines[0] == lines


def test_it_reads_while_a_run_writes(workspace, results, environments):
    before = len(results.verdicts())
    new = judged("t1", "openvino-onnx", "inputs", environments["openvino"], "pass")
    with pytest.raises(KeyboardInterrupt), workspace.transaction():
        workspace.write("UPDATE verdicts SET verdict = 'flaky', finding = ''")
        assert len(results.verdicts(status="flaky")) == 1 and len(results.findings()) == 6  # it is not committed
        raise KeyboardInterrupt
    with results._workspace.snapshot():
        assert len(results._workspace.query("SELECT test FROM verdicts")) == before
        workspace.save_verdicts(2, [new], {})
        assert len(results._workspace.query("SELECT test FROM verdicts")) == before  # of one moment
    assert len(results.verdicts()) == before + 1


def test_nothing_is_written(results):
    with pytest.raises(WorkspaceError, match="readonly"), results._workspace.transaction():
        results._workspace.write("DELETE FROM verdicts")


def test_an_older_workspace_is_superseded_as_in_reports(workspace, results, environments):
    newer = workspace.save_environment(
        {**workspace.environments()[environments["tvm"]], "exporter": {"onnx": "1.3"}}
    )  # the same but for how tests are made
    workspace.save_verdicts(3, [judged("t3", "tvm-onnx", "inputs", newer, "pass")], {})
    found = results.verdicts(frontend="tvm-onnx")
    assert set(found.environment) == {newer, environments["old"]}
    assert len(results.verdicts(environment=environments["tvm"])) == 12


def test_folders_that_are_no_workspace(tmp_path, monkeypatch):
    with pytest.raises(WorkspaceError, match=r"no workspace in .*\n.*cause.*\n.*what to do"):
        opera.open(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceError, match="no workspace in results"):
        opera.open()
    monkeypatch.setenv("OPERA_WORKSPACE", "elsewhere")
    with pytest.raises(WorkspaceError, match="no workspace in elsewhere"):
        opera.open()


def test_without_pandas_it_says_what_to_install(workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotInstalled, match=r'(?s)pandas is not installed.*pip install "opera\[pandas\]"'):
        opera.open(workspace.root)


def test_importing_opera_imports_nothing_heavy():
    code = "import sys, opera; opera.open; print([x for x in ('pandas', 'numpy', 'msgspec', 'sqlite3') if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_is_typed():
    assert (Path(opera.__file__).parent / "py.typed").is_file()
    assert opera.open.__annotations__["return"] == "Results"


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_documented(name):
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    columns = (*TABLES[name].columns, *(DETAILS if name == "instances" else ()))
    told = [line for line in section.splitlines() if line.startswith("| `")]
    names = {"verdict": "category, ordered"}
    assert told == [
        f"| `{x.name}` | {names.get(x.kind, DTYPES[x.kind])} | {x.holds} |" for x in columns
    ]  # fmt: skip
    assert TABLES[name].row in " ".join(section.split())
