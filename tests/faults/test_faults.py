"""Every fault costs the test that has it its verdict, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from faults import compilers as faults

from opera.pool.pool import Pool
from opera.pool.workers import DONE, Group, Result
from opera.programs import migrated
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, UNSTABLE, UNSUPPORTED, Job, Outcome
from opera.run import worker
from opera.run.worker import Description, describe, locate, run
from opera.store import folders
from opera.store.folders import Folders


def group(root: Path) -> Group:
    return Group(call="opera.run.worker:run", preload=("faults.compilers",), env=Folders.of(root).environment())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run in this process finds the tests of this test."""
    monkeypatch.setattr(folders, "TOLD", str(tmp_path))


MEMORY = 256 << 20

EXPECTED = {
    # fault: (verdict or status, symptom or how the process ended)
    "wrong_value": (INCONSISTENT, "value"),
    "dropped_attribute": (INCONSISTENT, "value"),
    "wrong_shape": (INCONSISTENT, "shape"),
    "wrong_dtype": (INCONSISTENT, "dtype"),
    "wrong_count": (INCONSISTENT, "count"),
    "not_a_number": (INCONSISTENT, "nan-mask"),
    "nondeterministic": (UNSTABLE, "unstable"),
    "nothing": (ERROR, "BadAnswer"),
    "unsupported": (UNSUPPORTED, "NotImplementedError"),
    "raises": (CRASH, "ValueError"),
    "unspeakable": (CRASH, "Unspeakable"),
    "system_exit": (CRASH, "SystemExit"),
    "interrupt": (CRASH, "KeyboardInterrupt"),
    "chatters": (CRASH, "ValueError"),
    "segfault": ("abort", "SIGSEGV"),
    "aborts": ("abort", "SIGABRT"),
    "exit_zero": ("abort", "exit 0"),
    "killed": ("abort", "SIGKILL"),
    "closes": ("abort", "closed files"),
    "closes_and_hangs": ("abort", "closed files"),
    "hangs": ("timeout", "SIGKILL"),
    "deaf": ("timeout", "SIGKILL"),
    "explodes": ("out-of-memory", "MemoryError"),
    "explodes_shared": ("out-of-memory", "SIGKILL"),
    "forks": (PASS, ""),
    "forks_and_hangs": (PASS, ""),
    "correct": (PASS, ""),
}


def verdict(result: Result) -> tuple[str, str]:
    if result.status != DONE:
        return result.status, result.exit
    outcome = result.decode(Outcome)
    return outcome.verdict, outcome.symptom


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """100 good jobs and every fault, shuffled, in two workers; fault (or number of the good job) → result."""
    root = tmp_path_factory.mktemp("tests")
    jobs = [(fault, faults.job(root, fault)) for fault in EXPECTED]
    jobs += [(str(number), faults.job(root, "correct", number, bad=False)) for number in range(100)]
    random.Random(7).shuffle(jobs)
    with Pool({"faults": group(root)}, workers=2) as pool:
        for name, job in jobs:
            pool.submit("faults", job, seconds=3 if name in ("hangs", "deaf") else 30, memory=MEMORY, tag=name)
        results = list(pool.results())
    assert len(results) == len(jobs)
    return {result.tag: result for result in results}


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_gets_its_verdict(mixed: dict[str, Result], fault: str) -> None:
    assert verdict(mixed[fault]) == EXPECTED[fault], mixed[fault]


def test_good_jobs_among_faults_pass(mixed: dict[str, Result]) -> None:
    wrong = {name: verdict(mixed[name]) for name in map(str, range(100)) if verdict(mixed[name]) != (PASS, "")}
    assert not wrong


def test_a_crash_tells_where(mixed: dict[str, Result]) -> None:
    outcome = mixed["raises"].decode(Outcome)
    assert (outcome.stage, outcome.message) == ("load", "no converter")
    assert (outcome.location, outcome.conversion_function) == ("engine.py:fail", "convert_Scale")
    assert set(outcome.seconds) == {"load"}


def test_a_dead_worker_leaves_its_stage_and_stack(mixed: dict[str, Result]) -> None:
    assert mixed["segfault"].note == "load"
    assert "Segmentation fault" in mixed["segfault"].log
    assert mixed["aborts"].note == "infer"


def test_of_a_megabyte_of_output_the_end_is_kept(mixed: dict[str, Result]) -> None:
    log = mixed["chatters"].log
    assert len(log) == 4000
    assert log.endswith("the last line\n")


def test_only_random_outputs_are_nondeterministic(mixed: dict[str, Result]) -> None:
    found = {fault: mixed[fault].decode(Outcome).details.get("nondeterministic") for fault in EXPECTED
             if EXPECTED[fault][0] in (INCONSISTENT, UNSTABLE)}  # fmt: skip
    assert found.pop("nondeterministic") is True
    assert set(found.values()) == {False}


def test_a_leak_is_seen_with_predecessors_and_not_alone(tmp_path: Path) -> None:
    job = faults.job(tmp_path, "leaks")
    before = faults.job(tmp_path, "leaks", 1, bad=False)
    with Pool({"faults": group(tmp_path)}, workers=1) as pool:
        pool.submit("faults", before, seconds=30, tag="before")
        pool.submit("faults", job, seconds=30, tag="leak")
        pool.submit("faults", job, seconds=30, tag="alone", fresh=True)
        pool.submit("faults", [before, job], seconds=30, tag="replay", fresh=True, call="opera.run.worker:replay")
        found = {result.tag: result for result in pool.results()}
    assert verdict(found["leak"]) == (INCONSISTENT, "value")
    assert found["leak"].predecessors == ["before"]
    assert verdict(found["alone"]) == (PASS, "")
    assert found["alone"].predecessors == []
    assert verdict(found["replay"]) == (INCONSISTENT, "value")


def test_a_replay_goes_on_after_an_error_of_opera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = faults.job(tmp_path, "correct"), faults.job(tmp_path, "wrong_value")

    def fails_once(job: Job) -> Outcome:
        if job.test == first.test:
            raise RuntimeError("opera failed")
        return run(job)

    monkeypatch.setattr(worker, "run", fails_once)
    assert worker.replay([first, last]).symptom == "value"


def test_differing_outputs_are_saved(tmp_path: Path) -> None:
    assert run(faults.job(tmp_path, "wrong_value", save="actual.msgpack")).verdict == INCONSISTENT
    [actual] = migrated.read_values(tmp_path, "actual")
    np.testing.assert_array_equal(actual.array(), np.float32([3, 5, 7]))


def test_agreeing_outputs_are_not_saved(tmp_path: Path) -> None:
    saved = tmp_path / "actual.msgpack"
    assert run(faults.job(tmp_path, "correct", save=saved.name)).verdict == PASS
    assert not saved.exists()


def test_a_test_that_cannot_be_read_is_an_error_of_opera(tmp_path: Path) -> None:
    job = faults.job(tmp_path, "correct")
    (Folders.of(tmp_path).test(job.test) / "manifest.json").write_text("{")
    outcome = run(job)
    assert outcome.verdict == "error"
    assert "cannot be read" in outcome.message


def test_a_dead_test_is_located(tmp_path: Path) -> None:
    assert locate(faults.job(tmp_path, "segfault")) == "convert_Scale"


def test_describe() -> None:
    found = describe("faults.compilers:correct")
    assert (found.version, found.options, found.numpy, found.error) == (
        "1.0", {"fault": "correct"}, np.__version__, "",
    )  # fmt: skip
    assert isinstance(found, Description)
    assert found.machine


def test_describe_says_what_is_missing() -> None:
    assert "no_such_module" in describe("no_such_module:compiler").error
