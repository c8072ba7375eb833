from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import msgspec
import pytest

from opera.capture import sites
from opera.capture.recorder import Recorder
from opera.capture.sites import NOWHERE, Frames, Site
from opera.programs.program import Instance


def instance(number: int) -> Instance:
    return Instance("demo", "Op", {"x": number}, (), ("y",), {})


def called_from(*files: str) -> Site | None:
    """Return the site of a call whose callers stand in these files, the outermost first; the library is in /library."""
    names: dict[str, object] = {"look": lambda: Frames(["/library"]).site(sys._getframe(1), "Net.fc")}
    inner = "look()"
    for number, file in enumerate(reversed(files)):
        exec(compile(f"\n\ndef f{number}():\n    return {inner}", file, "exec"), names)
        inner = f"f{number}()"
    found: Site | None = eval(inner, names)
    return found


INSTALLED = sysconfig.get_paths()["purelib"] + "/package/model.py"
PYTHON = sysconfig.get_paths()["stdlib"] + "/contextlib.py"


def test_the_line_is_the_innermost_of_the_users_own() -> None:
    found = called_from("/home/main.py", "/home/model.py", INSTALLED, PYTHON, "/library/nn/module.py", "<string>")
    assert found == Site("/home/model.py", 4, "", "Net.fc")


def test_a_program_that_is_installed_is_told_by_its_innermost_line() -> None:
    # The test's own file is the user's: nothing outside of installed packages calls, as with `python -m package`.
    frames = Frames(["/library"])
    names: dict[str, object] = {}
    exec(compile("import sys\ndef f():\n    return sys._getframe(0)", INSTALLED, "exec"), names)
    assert (
        frames.kind(INSTALLED) == sites.INSTALLED
        and frames.kind(PYTHON) == frames.kind("/library/x.py") == sites.PASSED
    )
    assert frames.kind("/usr/lib/python3/dist-packages/package/x.py") == sites.INSTALLED
    assert frames.kind(__file__) == sites.OWN and frames.kind(sites.__file__) == sites.PASSED
    assert frames.site(None) is None


def test_text_that_cannot_be_stored_is_made_plain(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text(f"def f(look):\n    return look()  # \x1b[31m {'x' * 400}\n")
    names: dict[str, object] = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    found = names["f"](lambda: Frames([]).site(sys._getframe(1), "\ud800\n"))  # type: ignore[operator]
    assert found.file == str(script) and found.line == 2
    assert found.text.startswith("return look()  #  [31m x") and len(found.text) == sites.MAX_TEXT
    assert found.module == "\\ud800 " and msgspec.json.encode(found)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    made = Recorder("command", sited=True)
    made.begin("s.py", tmp_path / "spool", tmp_path / "sites")
    return made


def test_each_place_is_written_once_in_whatever_order_it_is_known_what_it_calls(
    recorder: Recorder, tmp_path: Path
) -> None:
    asked = []

    def came(key: str, line: int) -> bool:
        return recorder.came(key, line, lambda: asked.append(line) or Site("s.py", line))

    assert not came("a", 1)
    recorder.record(instance(1), key="a")
    assert came("a", 1) and came("a", 2) and came("a", 2)
    assert not came("never recorded", 3)
    recorder.record(instance(2))
    recorder.record(instance(3), key="b")
    came("b", 4)
    recorder.close()
    assert asked == [1, 2, 3, 4]
    with (tmp_path / "sites").open("ab") as file:
        file.write(b'{"call": 0, "sit')  # the process was killed
    found = [(name, site.line) for name, site in sites.read(tmp_path / "sites")]
    assert found == [(instance(1).id, 1), (instance(1).id, 2), (instance(2).id, NOWHERE.line), (instance(3).id, 4)]


def test_without_the_wish_for_it_nothing_is_written_and_nothing_is_asked(tmp_path: Path) -> None:
    recorder = Recorder("suite")
    recorder.begin("s.py", tmp_path / "spool", tmp_path / "sites")
    assert not recorder.came("a", 1, lambda: pytest.fail("it was asked"))
    recorder.record(instance(1), key="a")
    recorder.close()
    assert not (tmp_path / "sites").exists() and list(sites.read(tmp_path / "sites")) == []
