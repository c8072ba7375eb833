"""opera is killed at random moments, again and again: the same command then ends as if nothing had been, and nothing is left.

A kill takes the parent alone, as the kernel does when memory is short, or its whole process group, as a terminal does that
is closed. Each case is killed several times in a row before it is let run to its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from leftovers import Watched

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

KILLS = 4
"""In a row, for each case."""
HOWS = ["parent", "group"]
FILES = ["abs", "add", "cast", "clip", "concat", "gather", "matmul", "pad", "reducemax", "reshape", "softmax", "where"]
OPERATOR = "Resize"
"""It has 39 node tests."""
Rows = dict[str, list[tuple[object, ...]]]

QUERIES = {
    "extract": {
        "instances": "SELECT id, library, operator FROM instances ORDER BY id",
        "provenances": "SELECT instance, source, file, test FROM provenances ORDER BY 1, 2, 3, 4",
        "files": "SELECT file, status FROM extraction_files ORDER BY 1",
    },
    "prioritize": {
        "rankings": "SELECT library, compiler, strategy FROM rankings ORDER BY 1, 2",
        "ranks": "SELECT library, compiler, position, instance FROM ranks JOIN rankings ON id = ranking ORDER BY 1, 2, 3",
    },
    "run": {"verdicts": "SELECT test, frontend, variant, verdict FROM verdicts ORDER BY 1, 2, 3"},
}


def ask(root: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query; none where the database is being made."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(root / "opera.sqlite")) as database:
        return database.execute(sql).fetchall()
    return []


def rows(root: Path, command: str) -> Rows:
    """Return all that a command has stored."""
    found = {name: ask(root, sql) for name, sql in QUERIES[command].items()}
    assert all(found.values()), found.keys()
    return found


def check(root: Path, watched: Watched) -> None:
    """The database is whole, nothing runs on, and no temporary folder is left."""
    left = watched.left(20)
    assert not left, left
    assert ask(root, "PRAGMA foreign_key_check") == []
    assert ask(root, "PRAGMA integrity_check") == [("ok",)]


def killed(process: subprocess.Popen[str], how: str, ready: Callable[[], bool], delay: float) -> bool:
    """Kill a command when `ready()` holds and some seconds have gone by; False if it ended before."""
    while process.poll() is None and not ready():
        time.sleep(0.003)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(delay)
    if process.poll() is not None:
        process.communicate()
        return False
    (os.killpg if how == "group" else os.kill)(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def finish(watched: Watched, arguments: list[object]) -> None:
    done = watched.run(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def survive(
    root: Path, fresh: Callable[[], None], watched: Watched, arguments: list[object], how: str, seed: int
) -> Rows:
    """Kill a command KILLS times in a row, each at a random later row, let it end, and return what it has stored."""
    command, draw = str(arguments[0]), random.Random(seed)
    table = next(iter(QUERIES[command]))
    count = f"SELECT COUNT(*) FROM {table}"
    fresh()
    kills = tries = 0
    while kills < KILLS:
        tries += 1
        assert tries < 5 * KILLS, "it ends before it can be killed"
        have = sum(int(str(row[0])) for row in ask(root, count))
        wanted = have + draw.choice((0, 1, 1, 3, 8)) if have else 1

        def ready(wanted: int = wanted) -> bool:
            return any(int(str(row[0])) >= wanted for row in ask(root, count))

        if killed(watched.start(*arguments), how, ready, draw.choice((0, draw.random() / 4, draw.random() / 2))):
            kills += 1
        else:
            fresh()
    finish(watched, arguments)
    check(root, watched)
    return rows(root, command)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a few of ONNX's files, so that it is extracted in seconds."""
    import onnx

    folder = tmp_path_factory.mktemp("checkout")
    cases = Path(onnx.__file__).parent / "backend" / "test" / "case" / "node"
    (folder / "VERSION_NUMBER").write_text(onnx.__version__ + "\n")
    place = folder / "onnx" / "backend" / "test" / "case" / "node"
    place.mkdir(parents=True)
    for name in ["__init__", *FILES]:
        shutil.copy(cases / f"{name}.py", place)
    return folder


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with all of ONNX's node tests, not to be written."""
    folder = tmp_path_factory.mktemp("extracted")
    finish(Watched(folder / "tmp"), ["extract", "onnx", "--workspace", folder / "workspace"])
    return folder / "workspace"


class Case:
    """A workspace of a case's own, to be made anew as often as it likes."""

    def __init__(self, folder: Path, source: Path | None) -> None:
        self.root, self._source = folder / "workspace", source
        self.watched = Watched(folder / "tmp")

    def fresh(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        if self._source is not None:
            shutil.copytree(self._source, self.root)


def uninterrupted(folder: Path, source: Path | None, arguments: list[object]) -> Rows:
    case = Case(folder, source)
    case.fresh()
    finish(case.watched, [*arguments, "--workspace", case.root])
    return rows(case.root, str(arguments[0]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, checkout: Path, extracted: Path) -> dict[str, Rows]:
    """Command → what it stores when nobody kills it."""
    place = tmp_path_factory.mktemp
    return {
        "extract": uninterrupted(place("whole"), None, ["extract", checkout]),
        "prioritize": uninterrupted(place("whole"), extracted, ["prioritize"]),
        "run": uninterrupted(place("whole"), extracted, RUN),
    }


RUN: list[object] = ["run", "--compiler", "onnxruntime", "--operator", OPERATOR]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", HOWS)
def test_extract(tmp_path: Path, checkout: Path, whole: dict[str, Rows], how: str, seed: int) -> None:
    case = Case(tmp_path, None)
    arguments: list[object] = ["extract", checkout, "--workspace", case.root]
    assert survive(case.root, case.fresh, case.watched, arguments, how, seed) == whole["extract"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", HOWS)
def test_prioritize(tmp_path: Path, extracted: Path, whole: dict[str, Rows], how: str, seed: int) -> None:
    case = Case(tmp_path, extracted)
    arguments: list[object] = ["prioritize", "--workspace", case.root]
    assert survive(case.root, case.fresh, case.watched, arguments, how, seed) == whole["prioritize"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", HOWS)
def test_run(tmp_path: Path, extracted: Path, whole: dict[str, Rows], how: str, seed: int) -> None:
    case = Case(tmp_path, extracted)
    arguments = [*RUN, "--workspace", case.root]
    found = survive(case.root, case.fresh, case.watched, arguments, how, seed)
    assert len(found["verdicts"]) >= 39
    assert found == whole["run"]
    assert not ask(case.root, "SELECT * FROM verdicts WHERE confirmation = 'pending'")


def content(report: Path) -> dict[str, object]:
    return {name: held for name, held in json.loads(report.read_text()).items() if name != "generated"}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("how", HOWS)
def test_report(tmp_path: Path, extracted: Path, how: str, seed: int) -> None:
    """A report stores nothing: the file that was there is whole, the workspace is as it was, and nothing lies beside it."""
    case, draw, output = Case(tmp_path, extracted), random.Random(seed), tmp_path / "out" / "report.json"
    case.fresh()
    output.parent.mkdir()
    arguments: list[object] = ["report", "--format", "json", "--output", output, "--workspace", case.root]
    finish(case.watched, arguments)
    stored, before = rows(case.root, "extract"), content(output)
    kills = 0
    while kills < KILLS:
        opened = time.monotonic() + draw.uniform(0.1, 1.0)
        kills += killed(case.watched.start(*arguments), how, lambda opened=opened: time.monotonic() > opened, 0)
        assert content(output) == before
    finish(case.watched, arguments)
    assert [path.name for path in output.parent.iterdir()] == ["report.json"]
    assert rows(case.root, "extract") == stored
    check(case.root, case.watched)
