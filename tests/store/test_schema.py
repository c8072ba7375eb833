"""Schemas of earlier versions, as they were: each becomes the newest one, with all that it holds."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from filled import fill, judged

import opera
from opera.errors import WorkspaceError
from opera.report.summary import summarise
from opera.sources.deeprel import relations
from opera.store import defaults, examined, sites, verdicts
from opera.store.rows import Covered, Crash
from opera.store.schema import APPLICATION_ID, SCHEMA_VERSION
from opera.store.workspace import Workspace

VERSION_1 = """
CREATE TABLE instances (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    library TEXT NOT NULL,
    operator TEXT NOT NULL,
    document BLOB NOT NULL
);
CREATE INDEX instances_library ON instances (library, operator);
CREATE TABLE provenances (
    instance TEXT NOT NULL,
    source TEXT NOT NULL,
    file TEXT NOT NULL,
    test TEXT NOT NULL,
    UNIQUE (instance, source, file, test)
);
CREATE TABLE equipped (
    compiler TEXT NOT NULL,
    instance TEXT NOT NULL,
    source TEXT NOT NULL,
    file TEXT NOT NULL,
    test TEXT NOT NULL,
    UNIQUE (compiler, instance, source, file, test)
);
CREATE TABLE expectations (
    instance TEXT PRIMARY KEY,
    document BLOB NOT NULL
);
CREATE TABLE extractions (
    key TEXT PRIMARY KEY,
    started REAL NOT NULL,
    document BLOB NOT NULL
);
CREATE TABLE extraction_files (
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    status TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (extraction, file)
);
CREATE TABLE rankings (
    id INTEGER PRIMARY KEY,
    library TEXT NOT NULL,
    compiler TEXT NOT NULL,
    strategy TEXT NOT NULL,
    created REAL NOT NULL,
    document BLOB NOT NULL,
    UNIQUE (library, compiler)
);
CREATE TABLE ranks (
    ranking INTEGER NOT NULL REFERENCES rankings ON DELETE CASCADE,
    position INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    PRIMARY KEY (ranking, instance)
) WITHOUT ROWID;
CREATE TABLE tests (
    id TEXT PRIMARY KEY,
    instance TEXT NOT NULL,
    exporter TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    seconds REAL NOT NULL
);
CREATE INDEX tests_exporter ON tests (exporter, instance);
CREATE TABLE environments (
    id TEXT PRIMARY KEY,
    document BLOB NOT NULL
);
CREATE TABLE findings (
    id TEXT PRIMARY KEY,
    signature BLOB NOT NULL,
    created REAL NOT NULL
);
CREATE TABLE verdicts (
    test TEXT NOT NULL,
    frontend TEXT NOT NULL,
    variant TEXT NOT NULL,
    environment TEXT NOT NULL,
    verdict TEXT NOT NULL,
    stage TEXT NOT NULL,
    symptom TEXT NOT NULL,
    finding TEXT NOT NULL,
    confirmation TEXT NOT NULL,
    seconds REAL NOT NULL,
    run INTEGER NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (test, frontend, variant, environment)
);
CREATE INDEX verdicts_finding ON verdicts (finding, environment);
CREATE INDEX verdicts_frontend ON verdicts (frontend, environment, verdict);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started REAL NOT NULL,
    finished REAL,
    document BLOB NOT NULL
);
CREATE TABLE run_frontends (
    run INTEGER NOT NULL,
    frontend TEXT NOT NULL,
    environment TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (run, frontend, environment)
);
"""
COVERAGE_OF_2 = """
CREATE TABLE coverage (
    frontend TEXT NOT NULL,
    environment TEXT NOT NULL,
    instance TEXT NOT NULL,
    seconds REAL NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (frontend, environment, instance)
) WITHOUT ROWID;
"""
SCHEMAS = {1: VERSION_1, 2: VERSION_1 + COVERAGE_OF_2}
ROWS = """
INSERT INTO instances VALUES (1, 'i1', 'torch', 'torch.abs', x'7b7d'), (7, 'i7', 'torch', 'torch.absolute', x'7b7d');
INSERT INTO provenances VALUES
    ('i1', 'pytorch-samples', 'opinfo', 'value: of no relation'),
    ('i7', 'deeprel', 'torch.abs -> torch.absolute', 'value: i1'),
    ('i7', 'deeprel', 'torch.sign -> torch.absolute', 'status: i1'),
    ('i7', 'deeprel', 'records.json', 'value: a record of DeepREL'),
    ('i7', 'mine', 'a -> b', 'value: i1');
INSERT INTO equipped VALUES ('tvm', 'i1', 's', 'f', 't');
INSERT INTO expectations VALUES ('i1', x'7b7d');
INSERT INTO extractions VALUES ('deeprel on torch 2', 1.0, x'7b7d'), ('docter', 2.0, x'7b7d');
INSERT INTO extraction_files VALUES
    ('deeprel on torch 2', 'verify torch.abs', 'done', CAST('{"outcomes":[
        {"pair":{"source":"torch.abs","target":"torch.absolute","names":{}},"agreed":5,"examples":{"agreed":["i1"]}},
        {"pair":{"source":"torch.abs","target":"torch.neg","names":{}},"raised":1}],"crashes":[]}' AS BLOB)),
    ('deeprel on torch 2', 'transfer torch.absolute', 'done', CAST('{"outcomes":[
        {"pair":{"source":"torch.abs","target":"torch.absolute","names":{},"relation":"value"},"agreed":1}]}' AS BLOB)),
    ('docter', 'torch.f@1', 'done', CAST('{"reason":"","crashes":[
        {"how":"killed by SIGFPE","operator":"torch.f","values":{"n":-1,"mode":"a"},"violates":"value of n"},
        {"how":"does not end in time","operator":"torch.f","values":{"arguments":"é"}}]}' AS BLOB)),
    ('docter', 'torch.g@1', 'died', CAST('{"reason":"no \\"crashes\\":[{ here"}' AS BLOB));
INSERT INTO rankings VALUES (3, 'torch', 'tvm', 'opera', 1.0, x'7b7d');
INSERT INTO ranks (ranking, position, instance) VALUES (3, 0, 7), (3, 1, 1);
INSERT INTO tests VALUES ('t1', 'i1', 'x', 'valid', '', 0.5), ('t7', 'i7', 'x', 'valid', '', 0.5);
INSERT INTO environments VALUES ('e', CAST('{"compiler":"tvm","version":"1","library":"torch",
    "library_version":"2","options":{}}' AS BLOB));
INSERT INTO findings VALUES ('F1', x'7b7d', 1.0);
INSERT INTO verdicts (rowid, test, frontend, variant, environment, verdict, stage, symptom, finding, confirmation, seconds,
    run, document)
VALUES
    (9, 't1', 'tvm-torch', 'v', 'e', 'pass', '', '', '', '', 0.5, 1,
        CAST('{"test":"t1","frontend":"tvm-torch","variant":"v","environment":"e","verdict":"pass"}' AS BLOB)),
    (4, 't7', 'tvm-torch', 'v', 'e', 'crash', 'load', 'E', 'F1', 'confirmed', 0.5, 1, CAST('{"test":"t7",
        "frontend":"tvm-torch","variant":"v","environment":"e","verdict":"crash","stage":"load","finding":"F1"}' AS BLOB));
INSERT INTO runs VALUES (1, 1.0, 2.0, x'7b7d');
INSERT INTO run_frontends VALUES (1, 'tvm-torch', 'e', CAST('{"seconds":1.0,"slot_seconds":1.0,"wall_seconds":1.0,
    "workers":1.0,"confirmation_seconds":0.0,"tests":2.0}' AS BLOB));
"""
CRASHES = [
    Crash("killed by SIGFPE", "torch.f", {"n": -1, "mode": "a"}, "value of n"),
    Crash("does not end in time", "torch.f", {"arguments": "é"}),
]


@pytest.fixture(params=sorted(SCHEMAS))
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A workspace of an earlier version that holds something in every table."""
    root = tmp_path / "earlier"
    root.mkdir()
    database = sqlite3.connect(root / "opera.sqlite")
    database.executescript(
        f"{SCHEMAS[request.param]} {ROWS} PRAGMA application_id = {APPLICATION_ID};"
        f" PRAGMA user_version = {request.param};"
    )
    if request.param > 1:
        database.execute("INSERT INTO coverage VALUES ('tvm-torch', 'e', 'i1', 0.5, x'80')")
        database.commit()
    database.close()
    return root


def schema(workspace: Workspace) -> set[tuple[str, str, str, str]]:
    """What sqlite_master says, but for comments, white space and where in the file a table lies."""
    rows = workspace.query("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {(*row[:3], re.sub(r"--.*|\s+", "", row[3] or "")) for row in rows}


def contents(database: sqlite3.Connection) -> Iterator[tuple[str, object]]:
    """Every table's rows, by the names of their columns."""
    database.row_factory = sqlite3.Row
    for (table,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ):
        rows = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]
        yield table, sorted(rows, key=lambda row: repr(sorted(row.items())))
    yield "order of verdicts", [row[0] for row in database.execute("SELECT test FROM verdicts ORDER BY rowid")]


def healthy(workspace: Workspace) -> bool:
    return workspace.query("PRAGMA integrity_check") == [("ok",)] and not workspace.query("PRAGMA foreign_key_check")


def test_every_earlier_schema_becomes_the_newest(earlier: Path, tmp_path: Path) -> None:
    with Workspace.open(earlier, write=True) as found, Workspace.open(tmp_path / "fresh", write=True) as fresh:
        assert schema(found) == schema(fresh)
        assert found.query("PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_what_an_earlier_workspace_holds_stays(earlier: Path) -> None:
    before = dict(contents(sqlite3.connect(earlier / "opera.sqlite")))
    Workspace.open(earlier, write=True).close()
    after = dict(contents(sqlite3.connect(earlier / "opera.sqlite")))
    for row in after["verdicts"]:
        assert (row.pop("rules"), row.pop("seen")) == ("", None)
    assert {table: after[table] for table in before} == before
    assert before["order of verdicts"] == ["t7", "t1"]


def test_an_earlier_workspace_is_healthy_once_it_is_brought_up_to_date(earlier: Path) -> None:
    with Workspace.open(earlier, write=True) as found:
        assert healthy(found)
        assert found.query("SELECT instance FROM ranks ORDER BY position") == [(7,), (1,)]


def test_a_filled_workspace_is_healthy(workspace: Workspace) -> None:
    fill(workspace)
    workspace.save_coverage("tvm-onnx", "e", [Covered("i", {"a.py": b"\x06"}, 0.5)])
    workspace.extraction("k", {})
    workspace.save_extraction_file("k", "f", "done", {}, crashes=CRASHES, candidates=[("f", "g", {})])
    with workspace.transaction():
        workspace.relate("i7", "i1", "value")
    assert healthy(workspace)


@pytest.mark.parametrize("write", [False, True])
def test_an_earlier_workspace_tells_the_same_whether_it_is_brought_up_to_date_or_not(
    earlier: Path, write: bool
) -> None:
    before = (earlier / "opera.sqlite").read_bytes()
    with Workspace.open(earlier, write=write) as found:
        assert list(found.crashes()) == CRASHES
        assert found.query("SELECT one, other, kind FROM relations ORDER BY kind") == [
            ("i7", "i1", "status"), ("i7", "i1", "value"),
        ]  # fmt: skip
        assert [(x.kind, x.pair.target) for x in relations.about(found, "torch", "torch.abs")] == [
            ("value", "torch.absolute")
        ]
        assert [x.pair.target for x in relations.stored(found, "deeprel on torch 2")] == ["torch.absolute", "torch.neg"]
        assert not list(relations.stored(found, "deeprel on torch 2", "torch.f"))
        assert found.coverage("tvm-torch") in ({}, {"i1": {}})
        assert [x.test for x in found.verdicts("rules = '' AND seen IS NULL")] == ["t7", "t1"]
        assert found.query("SELECT * FROM interpreters") == []
        assert [x.id for x in summarise(found).findings] == ["F1"]
    if not write:
        assert (earlier / "opera.sqlite").read_bytes() == before


def test_an_earlier_workspace_is_read_where_nothing_may_be_written(
    earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opera.store.database.os.access", lambda path, mode: False)
    with Workspace.open(earlier, write=False) as found:
        assert list(found.crashes()) == CRASHES


def test_an_earlier_workspace_is_read_as_tables(earlier: Path) -> None:
    before = (earlier / "opera.sqlite").read_bytes()
    with opera.open(earlier) as results:
        assert results.verdicts().test.tolist() == ["t7", "t1"]
        assert results.findings().finding.tolist() == ["F1"]
        assert results.instances().instance.tolist() == ["i1", "i7"]
        assert results.rankings().instance.tolist() == ["i7", "i1"]
        assert results.coverage().empty
    assert (earlier / "opera.sqlite").read_bytes() == before


def test_a_reader_of_an_earlier_schema_goes_on_while_a_writer_brings_it_up_to_date(earlier: Path) -> None:
    with Workspace.open(earlier, write=False) as reader, Workspace.open(earlier, write=True) as writer:
        told = judged("t1", "tvm-torch", "w", "e", "pass")
        writer.save_verdicts(1, [told], {})
        assert told in list(reader.verdicts())
        assert list(reader.crashes()) == CRASHES


@pytest.mark.parametrize("write", [False, True])
def test_documents_of_schema_3_which_hold_a_whole_verdict_are_read(workspace: Workspace, write: bool) -> None:
    fill(workspace)
    told = list(workspace.verdicts())
    workspace.close()
    with closing(sqlite3.connect(workspace.root / "opera.sqlite")) as database:
        for x in told:
            flat = {**msgspec.to_builtins(x), **msgspec.to_builtins(x.outcome)} | {"finding": x.finding, "seen": None}
            document, where = msgspec.json.encode(flat), (x.test, x.frontend, x.variant, x.environment)
            database.execute(
                "UPDATE verdicts SET document = ? WHERE test = ? AND frontend = ? AND variant = ? AND environment = ?",
                (document, *where),
            )
        for table in ("examined", "aliases", "sites", "defaults"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version = 3")
        database.commit()
    with Workspace.open(workspace.root, write=write) as found:
        assert list(found.verdicts()) == told
        assert examined.aliases(found) == {}
        assert sites.of_instances(found, ["i1"]) == []
        assert defaults.known(found, "torch", "x") == {}
        assert found.query("PRAGMA user_version") == [(SCHEMA_VERSION if write else 3,)]


@pytest.mark.parametrize("write", [True, False])
def test_verdicts_of_no_environment_in_a_workspace_of_schema_6_are_gone(workspace: Workspace, write: bool) -> None:
    """`opera reduce` stored what a witness showed that no run had used; `opera operators` ended in an error then."""
    fill(workspace)
    told = list(workspace.verdicts())
    workspace.close()
    with closing(sqlite3.connect(workspace.root / "opera.sqlite")) as database:
        columns = [x[1] for x in database.execute("PRAGMA table_info(verdicts)")]
        copied = ", ".join("''" if x == "environment" else x for x in columns)
        database.execute(f"INSERT INTO verdicts SELECT {copied} FROM verdicts LIMIT 1")
        database.execute("PRAGMA user_version = 6")
        database.commit()
    with Workspace.open(workspace.root, write=write) as found:
        assert list(found.verdicts()) == told and told
        assert "" not in {x for _, x in verdicts.frontends(found)}


def test_a_step_that_fails_changes_nothing(earlier: Path, tmp_path: Path) -> None:
    with sqlite3.connect(earlier / "opera.sqlite") as database:
        database.execute("CREATE TABLE interpreters (of_another_kind)")
    shutil.copy(earlier / "opera.sqlite", tmp_path / "before")
    with pytest.raises(WorkspaceError, match="interpreters"):
        Workspace.open(earlier, write=True)
    with sqlite3.connect(earlier / "opera.sqlite", timeout=0) as database:
        database.execute("BEGIN IMMEDIATE")  # the connection that failed holds no lock
        database.rollback()
    dumps = [list(sqlite3.connect(x).iterdump()) for x in (earlier / "opera.sqlite", tmp_path / "before")]
    assert dumps[0] == dumps[1]
