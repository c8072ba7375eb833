from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from opera import temporary

HOLD = """
import sys, time
from opera import temporary
with temporary.folder("extract") as folder:
    (folder / "spool").write_text("x")
    print(folder, flush=True)
    time.sleep(100)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_there_for_the_time_of_its_use(place: Path) -> None:
    with temporary.folder("doctor") as folder:
        assert folder.parent == place and f"-{os.getpid()}-" in folder.name
        (folder / "deep").mkdir()
    assert not list(place.iterdir())


def test_what_a_killed_process_left_is_swept_and_nothing_else(place: Path) -> None:
    others = ["opera-abcdefgh", "opera-extract-abcdefgh", "opera-mine", "other-extract-1-abcdefgh"]
    for name in others:
        (place / name).mkdir()
    aim = place / "aim"
    aim.mkdir()
    (place / "opera-extract-1-link").symlink_to(aim)
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    held = Path(process.stdout.readline().strip())
    assert temporary.sweep() == [] and (held / "spool").is_file(), "it is in use"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert held.is_dir()
    with temporary.folder("extract"):
        assert not held.exists()
    assert sorted(x.name for x in place.iterdir()) == sorted([*others, "aim", "opera-extract-1-link"])


def test_a_file_takes_its_place_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "report[1].html"
    gone = subprocess.Popen(["true"])
    gone.wait()
    others = [f".{file.name}.{os.getppid()}", f".{file.name}.bak", f".report1.html.{gone.pid}"]
    for name in [*others, f".{file.name}.{gone.pid}"]:
        (tmp_path / name).write_text("")
    with temporary.beside(file) as part:
        part.write_text("one")
    with pytest.raises(KeyboardInterrupt), temporary.beside(file) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert file.read_text() == "one"
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted([*others, file.name])


def test_a_folder_that_a_sweeper_takes_in_the_making_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = temporary._lock, []

    def sweeping(path: Path) -> int:
        if not swept:
            swept.append(path)
            path.rmdir()
        return lock(path)

    monkeypatch.setattr(temporary, "_lock", sweeping)
    with temporary.folder("bench") as folder:
        assert folder.is_dir() and folder not in swept


@pytest.mark.parametrize(("module", "moment"), [(os, "mkdir"), (fcntl, "flock")])
def test_who_is_interrupted_in_the_making_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, moment: str
) -> None:
    done = getattr(module, moment)

    def interrupted(*arguments: object, **options: object) -> None:
        done(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, moment, interrupted)
    with pytest.raises(KeyboardInterrupt), temporary.folder("doctor"):
        pass
    assert not list(place.iterdir())
