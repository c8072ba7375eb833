"""The engine of all sources: order, feedback, what goes on after a fault, what was done before, what a kill leaves."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from leftovers import Watched

from opera.capture.child import Hooks, Job
from opera.programs.program import Captured
from opera.sources import DIED, DONE, Finished, Totals, Unit, UnitReport, begin, engine, telling
from opera.sources import Request as Asked
from opera.sources.deeprel import stage
from opera.sources.suites import suites
from opera.sources.suites.extract import SuiteExtraction, extraction
from opera.store.workspace import Workspace

pytest.importorskip("onnx")
CASES = "onnx/backend/test/case/node"
DRIVER = """
import os, signal, time
from pathlib import Path
from opera.programs.program import Instance

def run(recorder, part):
    path = Path(part)
    name, dies, seconds = path.read_text().split()
    with path.with_suffix(".seen").open("a") as seen:
        seen.write(name + "\\n")
    recorder.observe(lambda: recorder.record(Instance("onnx", name, {}, (), (), {}), test="it"))
    time.sleep(float(seconds))
    if int(dies):
        os.kill(os.getpid(), int(dies))
    return 1, 0
"""


class Plans:
    """A source of units that are planned by `names`: (name, signal that ends it or 0, seconds); None is a barrier."""

    key, things = "a source of tests", "plans"
    about = dict.fromkeys(("target", "name", "version", "installed", "equipped"), "")

    def __init__(self, folder: Path, plans: list[tuple[str, int, float] | None]) -> None:
        (folder / "a_driver.py").write_text(DRIVER)
        self.folder, self.plans = folder, plans
        self.log: list[str] = []
        self.seen: dict[str, list[str]] = {}
        self.reports: dict[str, UnitReport] = {}

    def names(self) -> Collection[str]:
        return [plan[0] for plan in self.plans if plan]

    def units(self) -> Iterator[Unit | None]:
        for plan in self.plans:
            self.log.append(f"asked for {plan[0] if plan else None}")
            yield plan and self.unit(*plan)

    def unit(self, name: str, dies: int, seconds: float) -> Unit:
        job = Job(
            hooks=Hooks("plans", "onnx", {}),
            kind="driver",
            file="",
            spool="",
            driver="a_driver",
            path=(str(self.folder),),
        )
        return Unit(file=name, job=job, plan=f"{name} {dies} {seconds}".encode, seconds=60, subject=dies)

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        return workspace.add_captured(records)

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        """What dies goes on as another that does not."""
        self.log.append(f"told of {unit.file}: {report.status} {report.exit}".rstrip())
        if report.status == DIED and report.exit == "SIGALRM":
            return self.unit(unit.file, 0, 0.0)
        self.seen[unit.file] = report.plan.with_suffix(".seen").read_text().split()
        self.reports[unit.file] = report
        return Finished(report=report, document={"mine": 7})

    def progress(self, totals: Totals) -> str:
        return f"{totals.units} plans"

    def tell(self, totals: Totals) -> bool:
        telling.show_list("plans in trouble", [telling.in_trouble(x) for x in totals.trouble])
        return totals.captured > 0


def files(at: Path) -> dict[str, tuple[str, dict[str, object]]]:
    with Workspace.open(at, write=False) as workspace:
        rows = workspace.query("SELECT file, status, document FROM extraction_files ORDER BY rowid")
    return {file: (status, msgspec.json.decode(document)) for file, status, document in rows}


def run(source: Plans, at: Path, workers: int = 2) -> bool:
    with Workspace.open(at, write=True) as workspace:
        return engine.extract(workspace, source, workers=workers)


def test_a_source_is_told_in_order_and_asked_late(tmp_path: Path) -> None:
    plans: list[tuple[str, int, float] | None] = [("slow", 0, 0.5), *((f"p{n}", 0, 0.0) for n in range(9))]
    source = Plans(tmp_path, plans)
    assert run(source, tmp_path / "w")
    told = [line.split()[2].rstrip(":") for line in source.log if line.startswith("told")]
    assert told == [plan[0] for plan in plans if plan] == list(files(tmp_path / "w"))
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        rows = workspace.query("SELECT operator FROM instances ORDER BY seq")
    assert [row[0] for row in rows] == told
    one = Plans(tmp_path, plans)
    run(one, tmp_path / "again", workers=1)
    assert one.log.index("asked for p8") > one.log.index("told of p4: done"), "what is told may decide what comes"


def test_after_a_barrier_all_before_are_told(tmp_path: Path) -> None:
    source = Plans(tmp_path, [("a", 0, 0.3), ("b", 0, 0.0), None, ("c", 0, 0.0), None])
    assert run(source, tmp_path / "w")
    assert source.log.index("asked for c") > source.log.index("told of a: done")
    assert source.log.index("asked for c") > source.log.index("told of b: done")


def test_what_dies_goes_on_as_its_source_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Plans(tmp_path, [("first", signal.SIGALRM, 0.0), ("second", signal.SIGSEGV, 0.0), ("third", 0, 0.0)])
    assert run(source, tmp_path / "w", workers=1)
    assert [line for line in source.log if line.startswith("told")] == [
        "told of first: died SIGALRM", "told of first: done", "told of second: died SIGSEGV", "told of third: done",
    ]  # fmt: skip
    assert source.seen["first"] == ["first", "first"], "its files are those of before"
    assert (source.reports["first"].captured, source.reports["first"].new) == (2, 1), "the numbers are of both"
    stored = files(tmp_path / "w")
    assert {file: status for file, (status, _) in stored.items()} == {"first": DONE, "second": DIED, "third": DONE}
    assert stored["first"][1]["mine"] == 7 and stored["second"][1]["captured"] == 1
    assert stored["second"][1]["reason"] == "killed by SIGSEGV"
    assert "1 plans in trouble" in capsys.readouterr().out
    again = Plans(tmp_path, source.plans)
    run(again, tmp_path / "w")
    assert again.log.count("told of second: died SIGSEGV") == 1 and "told of third: done" not in again.log
    assert "2 plans were done before" in capsys.readouterr().err


def test_a_driver_that_leaves_costs_one_unit(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("def run(recorder, part):\n    raise SystemExit(3)\n")
    source = Plans(tmp_path, [("a", 0, 0.0)])
    leaving = msgspec.structs.replace(source.unit("b", 0, 0.0).job, driver="leaves")
    bad = msgspec.structs.replace(source.unit("b", 0, 0.0), job=leaving)
    kept = source.unit("a", 0, 0.0)
    source.units = lambda: iter([bad, kept])  # type: ignore[method-assign]
    source.told = lambda unit, report: Finished(report=report)  # type: ignore[method-assign]
    assert run(source, tmp_path / "w")
    found = files(tmp_path / "w")
    assert found["b"][0] == DIED and "SystemExit: 3" in str(found["b"][1]["reason"]) and found["a"][0] == DONE


SUM = """
title: torch.cumsum
package: torch
inputs: {required: [input, dim], optional: []}
constraints:
  input: {tensor_t: [torch.tensor], dtype: [torch.float32], ndim: ['2']}
  dim: {dtype: [int], ndim: ['0'], range: ['[0,1]']}
"""


def test_what_workspaces_hold_of_older_extractions_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys and names as opera has written them since there are workspaces: they never change."""
    root = tmp_path / "checkout"
    (root / CASES).mkdir(parents=True)
    for name in ("__init__.py", "a.py"):
        (root / CASES / name).write_text("import nowhere\n")
    (root / "VERSION_NUMBER").write_text("9.9.9\n")
    installed = suites.version_of("onnx")
    with Workspace.open(tmp_path / "w", write=True) as workspace:
        key = f"onnx 9.9.9 at {root} on {installed}"
        workspace.extraction(key, {})
        workspace.save_extraction_file(key, f"{CASES}/a.py", "done", {})
        assert engine.run(workspace, extraction(Asked(str(root)))(workspace), workers=1)
    told = capsys.readouterr()
    assert "1 files were done before" in told.err and "0 files, 0 tests" in told.out


def test_what_workspaces_hold_of_older_generators_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / "cumsum.yaml").write_text(SUM)
    version = suites.version_of("torch")
    with Workspace.open(tmp_path / "w", write=True) as workspace:
        key = f"docter {tmp_path / 'constraints'} on torch {version}: 3 inputs, seed 7, violating"
        workspace.extraction(key, {})
        workspace.save_extraction_file(key, "cumsum@e807df18", "done", {})
        options = {"count": 3, "seed": 7, "violating": True}
        made = begin("docter", Asked(str(tmp_path / "constraints")), options)
        assert engine.run(workspace, made(workspace), workers=1)
        told = capsys.readouterr()
        assert "1 APIs were done before" in told.err and "0 APIs, 0 inputs" in told.out
        related = stage.Relations(workspace, "torch", stage.Settings())
        assert related.key == f"deeprel on torch {version}"
        listed = stage.Relations(workspace, "torch", stage.Settings(), {}, "/some/where")
        assert listed.key == f"deeprel on torch {version} with the candidates of /some/where"


HANG = """
import os, pathlib, subprocess, time
subprocess.Popen(["sleep", "3600"], start_new_session=True)
pathlib.Path(PATH).write_text("started")
while True:
    time.sleep(0.1)
"""


def test_a_killed_opera_leaves_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "tmp")
    root, started = tmp_path / "checkout", tmp_path / "started"
    (root / CASES).mkdir(parents=True)
    (root / CASES / "__init__.py").write_text("")
    (root / "VERSION_NUMBER").write_text("9.9.9\n")
    (root / CASES / "a.py").write_text(HANG.replace("PATH", repr(str(started))))
    process = watched.start("extract", root, cwd=tmp_path)
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while watched.processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not watched.processes()
    assert not list((tmp_path / "tmp").glob("opera-worker-*"))


def test_a_name_that_is_no_text_is_told_and_not_run(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    (root / CASES).mkdir(parents=True)
    (root / CASES / "__init__.py").write_text("")
    (root / "VERSION_NUMBER").write_text("9.9.9\n")
    (root / CASES / "caf\udce9.py").write_text("")
    found = SuiteExtraction(suites.recognise(str(root)))
    with Workspace.open(tmp_path / "w", write=True) as workspace, pytest.raises(Exception, match="not one of the 1"):
        engine.extract(workspace, found, workers=1)
    assert files(tmp_path / "w") == {
        f"{CASES}/caf\\udce9.py": ("failed-import", files(tmp_path / "w")[f"{CASES}/caf\\udce9.py"][1])
    }
