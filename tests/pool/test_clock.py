"""The clock of jobs: CPU time while something can run, the wall's while nothing can, nothing while it is not served."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from opera import processes
from opera.pool import clock
from opera.pool.clock import Clock

BUSY, IDLE = "while True: pass", "import time; time.sleep(600)"


def start(code: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    while processes.look(process.pid) is None:
        time.sleep(0.01)
    return process


def watch(process: subprocess.Popen[bytes], rounds: int = 10) -> tuple[float, float, float]:
    """Return the clock's seconds, the wall's, and the CPU seconds of the process over the same time."""
    found = Clock()
    found.start()
    found.look(process.pid)
    begin, used = time.monotonic(), clock.tree(process.pid)[0]
    seconds = 0.0
    for _ in range(rounds):
        time.sleep(0.1)
        seconds = found.look(process.pid)
    return seconds, time.monotonic() - begin, clock.tree(process.pid)[0] - used


def end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_idle_time_counts_by_the_wall() -> None:
    process = start(IDLE)
    try:
        time.sleep(1.0)  # its start is no idle time
        seconds, wall, _ = watch(process)
    finally:
        end(process)
    assert seconds == pytest.approx(wall, abs=0.15)


def test_busy_time_counts_by_the_cpu() -> None:
    processes = [start(BUSY) for _ in range(2 * (os.cpu_count() or 1))]  # so that none is served all the time
    try:
        seconds, wall, used = watch(processes[0])
    finally:
        for process in processes:
            end(process)
    assert seconds == pytest.approx(used, abs=0.15)
    assert seconds < 0.9 * wall


def test_a_stopped_process_is_idle() -> None:
    process = start(BUSY)
    try:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.2)
        seconds, wall, _ = watch(process)
    finally:
        end(process)
    assert seconds == pytest.approx(wall, abs=0.15)


def test_what_children_use_counts() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    process = start(code)
    try:
        while not processes.children(process.pid):
            time.sleep(0.01)
        seconds, _, used = watch(process)
    finally:
        end(process)
    assert used > 0.1
    assert seconds == pytest.approx(used, abs=0.25)


def test_a_job_without_a_process_has_no_time() -> None:
    found = Clock()
    found.start()
    assert found.look(0) == 0.0
    assert processes.look(2**22 + 1) is None
    assert clock.tree(2**22 + 1) == (0.0, False)


def test_waiting_ends_what_does_not_end() -> None:
    process = start(IDLE)
    assert clock.wait(process, 0.5) is False
    assert process.returncode == -signal.SIGKILL
    assert clock.wait(start("pass"), 60.0) is True


def test_the_backstop_grows_with_limit_and_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert clock.backstop(1.0) == clock.LEAST_BACKSTOP
    assert clock.backstop(30.0) == 600.0
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * (os.cpu_count() or 1), 0.0, 0.0))
    assert clock.backstop(30.0) == 1800.0
