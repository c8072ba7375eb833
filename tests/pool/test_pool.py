"""The worker pool: time-outs, memory, recycling, fresh forks, order, dead servers, dead parents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from opera.pool.pool import DEATHS, Pool
from opera.pool.workers import ABORT, DONE, ERROR, OUT_OF_MEMORY, TIMEOUT, UNAVAILABLE, Group, Result

JOBS = Group(call="faults.jobs:double", preload=("faults.jobs",))
TESTS, CHECKOUT = Path(__file__).parents[1], Path(__file__).parents[2]


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], seconds: float) -> list[int]:
    """Return which of the processes are left after `seconds` at most."""
    end = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def one(pool: Pool, name: str, payload: Any = None, *, group: str = "jobs", **options: Any) -> Result:
    pool.submit(group, payload, **{"seconds": 20, "call": f"faults.jobs:{name}", **options})
    [result] = pool.results()
    return result


@pytest.fixture
def pool() -> Any:
    with Pool({"jobs": JOBS}, workers=2) as opened:
        yield opened


def test_every_job_is_answered_once(pool: Pool) -> None:
    for number in range(400):
        pool.submit("jobs", number, seconds=20, tag=number)
    results = list(pool.results())
    assert sorted((x.tag, x.payload) for x in results) == [(number, 2 * number) for number in range(400)]
    account = pool.accounts["jobs"]
    assert (account.jobs, account.fresh_jobs, account.forks) == (400, 0, 2)
    assert account.seconds == pytest.approx(sum(x.seconds for x in results))


def test_results_may_bring_more_jobs(pool: Pool) -> None:
    pool.submit("jobs", 1, seconds=20)
    seen = []
    for result in pool.results():
        seen.append(result.payload)
        if result.payload < 100:
            pool.submit("jobs", result.payload, seconds=20)
    assert seen == [2, 4, 8, 16, 32, 64, 128]


def test_jobs_begin_in_order_over_all_groups() -> None:
    groups = {"a": JOBS, "b": msgspec.structs.replace(JOBS, env={"OTHER": "1"})}
    with Pool(groups, workers=1) as pool:
        for name in groups:  # both servers are up
            one(pool, "double", 1, group=name)
        for number in range(20):
            pool.submit("ab"[number % 2], number, seconds=20, tag=number)
        assert [result.tag for result in pool.results()] == list(range(20))


def test_no_more_workers_at_a_time_than_slots() -> None:
    with Pool({"a": JOBS, "b": JOBS}, workers=2) as pool:
        for name in ("a", "b") * 3:
            pool.submit(name, 0.2, seconds=20, call="faults.jobs:sleep")
        begin = time.monotonic()
        assert {result.status for result in pool.results()} == {DONE}
        assert time.monotonic() - begin >= 0.6


def test_timeout_kills_the_job_alone(pool: Pool) -> None:
    pool.submit("jobs", 600, seconds=0.5, call="faults.jobs:sleep", tag="slow")
    for number in range(50):
        pool.submit("jobs", number, seconds=20, tag=number)
    found = {result.tag: result for result in pool.results()}
    assert (found["slow"].status, found["slow"].exit) == (TIMEOUT, "SIGKILL")
    assert 0.5 <= found["slow"].seconds < 3
    assert {found[number].status for number in range(50)} == {DONE}


def test_a_timeout_takes_the_whole_family_along(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pids"
    assert one(pool, "hang_with_family", str(path), seconds=3).status == TIMEOUT
    worker, _, child, daemon = map(int, path.read_text().split())
    assert gone([worker, child, daemon], 2.0) == []


def test_processes_left_behind_end_with_their_worker(pool: Pool) -> None:
    result = one(pool, "family", 600)
    assert result.status == DONE
    assert gone(result.payload, 2.0) == []
    assert one(pool, "double", 1).worker != result.worker


def test_memory(pool: Pool) -> None:
    result = one(pool, "keep", 300 << 20, memory=200 << 20)
    assert result.status == OUT_OF_MEMORY
    assert one(pool, "keep", 300 << 20, memory=600 << 20).status == DONE


def test_a_worker_is_recycled_after_its_jobs() -> None:
    with Pool({"jobs": msgspec.structs.replace(JOBS, jobs=5)}, workers=1) as pool:
        for number in range(12):
            pool.submit("jobs", number, seconds=20, tag=number)
        results = list(pool.results())
    assert [x.worker for x in results] == [0] * 5 + [1] * 5 + [2] * 2
    assert results[8].predecessors == [5, 6, 7]
    assert results[10].predecessors == []


def test_a_worker_is_recycled_when_it_has_grown() -> None:
    with Pool({"jobs": msgspec.structs.replace(JOBS, growth=100 << 20)}, workers=1) as pool:
        first, second = one(pool, "keep", 200 << 20), one(pool, "keep", 10 << 20)
        third = one(pool, "double", 1)
    assert first.worker != second.worker == third.worker


def test_a_fresh_job_has_a_process_of_its_own(pool: Pool) -> None:
    warm = one(pool, "pid", tag="warm")
    fresh = [one(pool, "pid", fresh=True) for _ in range(2)]
    again = one(pool, "pid")
    assert warm.payload == again.payload
    assert again.predecessors == ["warm"]
    assert len({warm.payload[0], *(x.payload[0] for x in fresh)}) == 3
    assert [x.predecessors for x in fresh] == [[], []]
    account = pool.accounts["jobs"]
    assert (account.jobs, account.fresh_jobs, account.forks) == (2, 2, 3)
    assert gone([x.payload[0] for x in fresh], 2.0) == []


def test_output_is_kept_job_by_job(pool: Pool) -> None:
    assert one(pool, "say", "first").log == "first\nc says first\n"
    assert one(pool, "say", "second").log == "second\nc says second\n"
    assert one(pool, "double", 1).log == ""


def test_an_exception_of_the_function_is_an_error(pool: Pool) -> None:
    result = one(pool, "raises", "why")
    assert result.status == ERROR
    assert result.message.endswith("ValueError: why\n")
    assert one(pool, "double", 1).worker == result.worker


@pytest.mark.parametrize(("name", "status"), [("recurse_deeply", ERROR), ("fill_memory", OUT_OF_MEMORY)])
def test_a_failure_for_want_of_room_is_told(pool: Pool, name: str, status: str) -> None:
    result = one(pool, name, memory=64 << 20)
    assert result.status == status
    assert {ERROR: "RecursionError", OUT_OF_MEMORY: "MemoryError"}[status] in result.message


def test_death_is_told_exactly(pool: Pool) -> None:
    result = one(pool, "segfault")
    assert (result.status, result.exit, result.note) == (ABORT, "SIGSEGV", "just before")
    assert "Segmentation fault" in result.log
    assert one(pool, "leave", 7).exit == "exit 7"


def test_a_chatty_death_tells_what_it_was_at(pool: Pool) -> None:
    died = one(pool, "chatters_at", "the second")
    assert (died.mark, died.note, died.exit) == ("the second", "in it", "SIGSEGV")
    assert one(pool, "chatters_at", "").mark == ""


def test_garbage_in_every_file_spoils_no_note(pool: Pool) -> None:
    died = one(pool, "garbles")
    assert (died.status, died.note) == (ABORT, "in it")


def test_large_answers_and_payloads(pool: Pool) -> None:
    assert len(one(pool, "large", 20_000_000).payload) == 20_000_000
    assert len(one(pool, "argument", "y" * 5_000_000).payload) == 5_000_000


def test_a_worker_that_deletes_its_folder_harms_no_other(pool: Pool) -> None:
    folder = one(pool, "folder").payload
    assert one(pool, "delete_folder", fresh=True).status == DONE
    assert one(pool, "folder").payload == folder
    assert Path(folder).is_dir()
    assert Path(one(pool, "folder", fresh=True).payload) != Path(folder)


def test_workers_stand_in_a_folder_of_their_own(pool: Pool) -> None:
    folder = one(pool, "folder").payload
    assert Path(folder).is_dir()
    assert Path(folder) != Path.cwd()
    pool.close()
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (msgspec.structs.replace(JOBS, preload=("no_such_module",)), "No module named 'no_such_module'"),
        (msgspec.structs.replace(JOBS, python="/no/such/python"), "cannot be run"),
        (msgspec.structs.replace(JOBS, python=sys.executable, preload=("faults.exits",)), "exit 3\nleaving"),
        (msgspec.structs.replace(JOBS, preload=("faults.sleeps",), start_seconds=1.0), "more than 1 s"),
    ],
)
def test_a_group_that_cannot_start_is_unavailable(group: Group, words: str, tmp_path: Path) -> None:
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "exits.py").write_text("import os; os.write(2, b'leaving'); os._exit(3)")
    (tmp_path / "faults" / "sleeps.py").write_text("import time; time.sleep(60)")
    group = msgspec.structs.replace(group, env={"PYTHONPATH": f"{tmp_path}:{CHECKOUT}:{TESTS}"})
    with Pool({"bad": group, "jobs": JOBS}, workers=2) as pool:
        for number in range(5):
            pool.submit("bad", number, seconds=20, tag="bad")
            pool.submit("jobs", number, seconds=20, tag="good")
        results = list(pool.results())
        results.append(one(pool, "double", 1, group="bad", tag="bad"))
    assert [x.status for x in results if x.tag == "bad"] == [UNAVAILABLE] * 6
    assert [x.status for x in results if x.tag == "good"] == [DONE] * 5
    assert words in next(x.message for x in results if x.tag == "bad")


def test_another_interpreter_takes_nothing_of_this_one() -> None:
    group = Group(call="faults.jobs:double", python=sys.executable, env={"PYTHONPATH": f"{CHECKOUT}:{TESTS}"})
    with Pool({"jobs": group}, workers=1) as pool:
        assert one(pool, "double", 4).payload == 8


def test_a_dead_server_is_started_again_but_not_for_ever(pool: Pool) -> None:
    server = one(pool, "pid").payload[1]
    pool.submit("jobs", 0.5, seconds=20, call="faults.jobs:sleep")
    os.kill(server, 9)
    [result] = pool.results()
    assert result.status == DONE
    for _ in range(2):
        worker, second = one(pool, "pid").payload
        assert second != server
        os.kill(second, 9)
        assert gone([worker], 20.0) == []  # before that it would still do a job
        result = one(pool, "double", 1)
    assert result.status == UNAVAILABLE
    assert "died again: SIGKILL" in result.message
    assert gone([worker, server, second], 20.0) == []


def test_a_job_that_kills_its_parent_pays_for_it(pool: Pool) -> None:
    result = one(pool, "kill_server")
    assert (result.status, result.exit) == (ABORT, "killed its parent")
    assert one(pool, "double", 1).payload == 2


def test_a_server_that_a_job_has_stopped_goes_on() -> None:
    with Pool({"jobs": JOBS}, workers=2) as pool:
        server = one(pool, "pid").payload[1]
        for number in range(2 * DEATHS):
            pool.submit("jobs", 0.0, seconds=20, call="faults.jobs:stop_server", tag="stops")
            pool.submit("jobs", number, seconds=20, call="faults.jobs:double", tag="bystander", fresh=True)
        assert [x.status for x in pool.results()] == [DONE] * 4 * DEATHS
        assert one(pool, "pid").payload[1] == server


def test_a_job_does_not_pay_for_a_server_that_was_stopped_before_it_began() -> None:
    with Pool({"jobs": JOBS}, workers=3) as pool:
        pool.submit("jobs", 0.5, seconds=20, call="faults.jobs:stop_server", tag="stops")
        pool.submit("jobs", 0.5, seconds=20, call="faults.jobs:sleep", tag="bystander")
        pool.submit("jobs", None, seconds=20, call="faults.jobs:kill_server", tag="kills")
        found = {x.tag: (x.status, x.exit) for x in pool.results()}
    assert found == {"stops": (DONE, ""), "bystander": (DONE, ""), "kills": (ABORT, "killed its parent")}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGALRM, signal.SIGSTOP])
def test_a_job_that_signals_the_others_harms_none(tmp_path: Path, number: int) -> None:
    with Pool({"jobs": JOBS}, workers=4) as pool:
        for tag in range(3):
            pool.submit("jobs", str(tmp_path / f"{tag}"), seconds=2, call="faults.jobs:wait_for_file", tag=tag)
        pool.submit("jobs", [int(number), str(tmp_path)], seconds=20, call="faults.jobs:signal_siblings", tag="guilty")
        found = [(x.tag, x.status, x.exit) for x in pool.results()]
    assert sorted(found, key=str) == [("guilty", DONE, ""), *[(tag, DONE, "") for tag in range(3)]]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, ABORT), (signal.SIGSTOP, TIMEOUT)])
def test_a_job_that_signals_itself_pays_for_it(pool: Pool, number: int, status: str) -> None:
    assert one(pool, "signal_itself", int(number), seconds=0.5).status == status


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM), (ABORT, "SIGTERM")),  # another job's SIGKILL came between
        ((signal.SIGKILL, signal.SIGTERM), (DONE, "")),  # both were others' doing
        ((signal.SIGTERM, signal.SIGTERM), (ABORT, "SIGTERM")),
    ],
)
def test_a_job_pays_for_the_signal_that_ends_it_each_time(
    pool: Pool, tmp_path: Path, numbers: tuple[int, ...], found: tuple[str, str]
) -> None:
    result = one(pool, "signalled", [str(tmp_path / "runs"), *map(int, numbers)])
    assert (result.status, result.exit) == found


def test_a_signal_that_nobody_else_can_have_sent_is_paid_for_at_once(pool: Pool, tmp_path: Path) -> None:
    for twice in (True, False):
        path = tmp_path / str(twice)
        result = one(pool, "note_and_alarm", str(path), twice=twice)
        assert (result.status, result.exit, path.read_text()) == (ABORT, "SIGALRM", "run " * (1 + twice))


def test_a_bare_group_sees_nothing_of_opera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with Pool({}, workers=1) as pool:
        pool.add("bare", Group(call="pkgutil:resolve_name", bare=True, env={"PYTHONPATH": None, "OTHER": "1"}))
        path = one(pool, "", "sys:path", group="bare", call="pkgutil:resolve_name").payload
        assert not {str(TESTS), "/nowhere"} & set(path)
        for name, value in (("PYTHONPATH", None), ("OTHER", "1")):
            assert one(pool, "", name, group="bare", call="os:getenv").payload == value


def test_polling_keeps_workers_busy_and_never_waits(pool: Pool) -> None:
    assert list(pool.poll()) == []
    for number in range(20):
        pool.submit("jobs", number, seconds=20, tag=number)
    found: list[Result] = []
    began = time.monotonic()
    while len(found) < 20 and time.monotonic() - began < 60:
        found += pool.poll()
    assert sorted(x.tag for x in found) == list(range(20)) and not pool.waiting()


def test_a_daemon_ends_with_its_server_however_that_ends(pool: Pool) -> None:
    daemon, worker, server = one(pool, "daemon").payload
    assert alive(daemon)
    os.kill(server, signal.SIGKILL)
    assert gone([worker], 20.0) == []  # before that it would still do a job
    assert one(pool, "double", 1).payload == 2
    assert gone([daemon], 20.0) == []


def test_close_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with Pool({"jobs": JOBS}, workers=2) as pool:
        pool.submit("jobs", str(path), seconds=600, call="faults.jobs:hang_with_family")
        pool.submit("jobs", 0.2, seconds=20, call="faults.jobs:sleep")
        for _ in pool.results():
            while not path.exists():
                time.sleep(0.02)
            break
    assert gone([int(x) for x in path.read_text().split()], 2.0) == []


def test_a_killed_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    script = (
        "from opera.pool.pool import *\n"
        "pool = Pool({'jobs': Group(call='faults.jobs:hang_with_family')}, workers=2)\n"
        f"pool.submit('jobs', {str(path)!r}, seconds=600)\n"
        "list(pool.results())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{TESTS}"})
    try:
        end = time.monotonic() + 30
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)
        pids = [int(x) for x in path.read_text().split()]
        assert gone(pids, 0.0) == pids
    finally:
        parent.kill()
        parent.wait()
    assert gone(pids, 2.0) == []
