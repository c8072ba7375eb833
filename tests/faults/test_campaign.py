"""A whole run over every kind of faulty compiler: true verdicts, one finding each, no bystander harmed, nothing left behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from faults import campaign, engine, kinds, numbers
from faults.kinds import ALL, POISONS

from opera.programs.verdicts import FAILURES, Limits
from opera.run import driver as stage
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import Finding, findings

GOOD = "Good"
BYSTANDERS, WARMING = 120, 40
SIBLINGS = 4
LIMITS = Limits(2.0, 256 << 20)
MARK = "OPERA_FAULTS_CAMPAIGN"
"""Environment variable by which processes of a run are known."""


class Silent:
    def say(self, text: str) -> None: ...
    def begin(self, total: int) -> None: ...
    def step(self, counts: Counter[str], done: int, efficiency: float) -> None: ...


class Found(msgspec.Struct):
    """What a run showed: operator → verdicts, findings, and what was left behind when it had been over for a while."""

    verdicts: dict[str, list[Verdict]]
    findings: list[Finding]
    processes: list[str]
    folders: list[str]
    integrity: str

    @property
    def harmed(self) -> list[Verdict]:
        return [x for x in self.verdicts[GOOD] if x.outcome.verdict != "pass"]


@contextmanager
def marked(folder: Path) -> Iterator[str]:
    """Give what this process starts a temporary folder of its own, and a mark by which it is known."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    before = {name: os.environ.get(name) for name in ("TMPDIR", MARK)}
    os.environ.update({"TMPDIR": str(folder), MARK: mark})
    tempfile.tempdir = None
    try:
        yield mark
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None


def processes(mark: str) -> list[str]:
    """Return the processes that were started with that mark and still live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found.append(f"{folder.name}: {command}")
        except OSError:  # it ended meanwhile
            continue
    return found


def over_the_corpus(root: Path, operators: list[str], workers: int = 2) -> Found:
    """Run one instance of each operator, in this order."""
    temporary = root / "tmp"
    temporary.mkdir()
    numbered: Counter[str] = Counter()
    captured = []
    for operator in operators:
        captured.append(numbers.instance(operator, numbered[operator]))
        numbered[operator] += 1
    with Workspace.open(root / "workspace", write=True) as workspace, marked(temporary) as mark:
        workspace.add_captured(captured)
        options = stage.Options(compilers=(campaign.Campaign.NAME,), workers=workers, limits=LIMITS)
        stage.run(workspace, options, Silent())
        end = time.monotonic() + 20
        while (processes(mark) or list(temporary.iterdir())) and time.monotonic() < end:
            time.sleep(0.2)
        names = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
        verdicts: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in workspace.verdicts(seen=True):
            verdicts[names[verdict.test]].append(verdict)
        return Found(
            verdicts, findings(workspace), processes(mark), [x.name for x in temporary.iterdir()],
            workspace.query("PRAGMA integrity_check")[0][0],
        )  # fmt: skip


def everything(root: Path) -> Found:
    """Run all faults that share a run among bystanders, in random order."""
    mixed = [GOOD] * (BYSTANDERS - WARMING) + [name for name in ALL if name != "state_leak"]
    mixed += ["kills_siblings"] * (SIBLINGS - 1)
    random.Random(11).shuffle(mixed)
    return over_the_corpus(root, [*[GOOD] * WARMING, "state_leak", *mixed])


def poisoned(root: Path, name: str) -> Found:
    """Run one fault after which others fail, among bystanders."""
    return over_the_corpus(root, [*[GOOD] * 10, name, *[GOOD] * 20])


@contextmanager
def busy() -> Iterator[None]:
    """Keep four processes computing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def shown(found: Found, name: str) -> set[tuple[object, ...]]:
    return {(x.outcome.verdict, x.outcome.stage, x.outcome.symptom, x.confirmation) for x in found.verdicts[name]}


def expected(name: str) -> tuple[object, ...]:
    kind = {**ALL, **POISONS}[name]
    return kind.verdict, kind.stage, kind.symptom, "confirmed" if kind.verdict in FAILURES else ""


def nothing_is_left(found: Found) -> None:
    assert (found.processes, found.folders, found.integrity) == ([], [], "ok")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return everything(tmp_path_factory.mktemp("quiet"))


@pytest.mark.parametrize("name", ALL)
def test_a_fault_gets_its_verdict(quiet: Found, name: str) -> None:
    assert shown(quiet, name) == {expected(name)}, quiet.verdicts[name]


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if kind.tags or kind.says])
def test_a_fault_is_described(quiet: Found, name: str) -> None:
    [verdict] = quiet.verdicts[name]
    assert set(ALL[name].tags) <= set(verdict.outcome.details.get("tags", []))
    assert ALL[name].says in verdict.outcome.message


@pytest.mark.parametrize(
    ("name", "function"), [("refuses_oddly", "unsupported"), ("conversion_lost", "conversion_function")]
)
def test_a_hook_that_fails_is_recorded(quiet: Found, name: str, function: str) -> None:
    [verdict] = quiet.verdicts[name]
    assert verdict.outcome.seen is not None
    assert list(verdict.outcome.seen.hooks) == [function]


def test_a_fault_makes_one_finding_or_none(quiet: Found) -> None:
    made = Counter(x.operator for x in quiet.findings)
    assert made == Counter({name: 1 for name, kind in ALL.items() if kind.found})


def test_bystanders_pass(quiet: Found) -> None:
    assert len(quiet.verdicts[GOOD]) == BYSTANDERS
    assert not quiet.harmed


def test_nothing_is_left_behind(quiet: Found) -> None:
    nothing_is_left(quiet)


@pytest.mark.parametrize("name", POISONS)
def test_poison_is_the_poisoners_finding(tmp_path: Path, name: str) -> None:
    found = poisoned(tmp_path, name)
    assert shown(found, name) == {expected(name)}, found.verdicts[name]
    assert [x.operator for x in found.findings] == [name]
    assert not found.harmed
    nothing_is_left(found)


def test_a_leaky_test_is_blamed_itself_though_it_had_one_predecessor(tmp_path: Path) -> None:
    found = over_the_corpus(tmp_path, [GOOD, "state_leak", *[GOOD] * 6], workers=1)
    assert shown(found, "state_leak") == {expected("state_leak")}
    assert [x.operator for x in found.findings] == ["state_leak"]
    assert not found.harmed


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_busy_machine_changes_no_verdict(tmp_path: Path) -> None:
    with busy():
        found = everything(tmp_path)
    wrong = {name: shown(found, name) for name in ALL if shown(found, name) != {expected(name)}}
    assert not wrong
    assert not found.harmed
    test_a_fault_makes_one_finding_or_none(found)
    nothing_is_left(found)


def test_every_fault_is_in_the_table() -> None:
    named = {*engine.MISDEEDS, *campaign.MISTAKES, *kinds.MADE_BY_THE_LIBRARY}
    assert named == {*ALL, *POISONS}
    assert len(named) >= 54


def test_the_readme_shows_the_table() -> None:
    text = (Path(__file__).parent / "README.md").read_text()
    assert kinds.table() in text, "`PYTHONPATH=tests python -m faults.kinds` prints it anew"
