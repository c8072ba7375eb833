from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from opera.capture.plugin import Plugin
from opera.capture.recorder import Recorder

SUITE = """
import textwrap

def helper(x):
    textwrap.dedent(x)
    raise AssertionError("dedent was let through")

def test_goes_on():
    assert helper("a") is not None
    assert textwrap.indent("a", "  ") != "  a"

def test_ends():
    textwrap.dedent("b")
    raise AssertionError("dedent was let through")

def test_other():
    assert textwrap.shorten("c", 9) == "c"
"""


@pytest.fixture(autouse=True)
def as_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(tmp_path: Path, text: str, **options: object) -> Plugin:
    file = tmp_path / f"{tmp_path.name}_test.py"  # a name of its own, for pytest imports it into this process
    file.write_text(text)
    recorder = Recorder("demo")
    recorder.begin("a_test.py", tmp_path / "spool")
    plugin = Plugin(recorder, **options)  # type: ignore[arg-type]
    pytest.main(
        [
            "-c",
            "/dev/null",
            "--rootdir",
            str(tmp_path),
            "--import-mode=importlib",
            "-q",
            "-p",
            "no:cacheprovider",
            str(file),
        ],
        plugins=[plugin],
    )
    recorder.close()
    return plugin


def test_what_is_of_no_interest_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dedent", "indent"):
        monkeypatch.setattr(textwrap, name, getattr(textwrap, name))  # restored at the end
    stop = ["textwrap:dedent", "nowhere:absent", "textwrap:absent"]
    plugin = run(tmp_path, SUITE, stop=stop, resume=["helper", "absent"], inert=["textwrap:indent"])
    assert plugin.outcomes == {"passed": 2, "skipped": 1}
    assert not plugin.problems


def test_deferred_looks_that_fail_change_no_outcome(tmp_path: Path) -> None:
    tests: list[str] = []

    class Watching(Recorder):
        def flush(self) -> None:
            tests.append(self.test)
            self.defer(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
            super().flush()

    file = tmp_path / f"{tmp_path.name}_test.py"
    file.write_text("import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1\n")
    recorder = Watching("demo")
    recorder.begin("b_test.py", tmp_path / "spool")
    plugin = Plugin(recorder)
    pytest.main(
        [
            "-c",
            "/dev/null",
            "--rootdir",
            str(tmp_path),
            "--import-mode=importlib",
            "-q",
            "-p",
            "no:cacheprovider",
            str(file),
        ],
        plugins=[plugin],
    )
    assert plugin.outcomes == {"passed": 1, "failed": 1}
    assert tests == ["<module>", "test_n[1]", "test_n[2]"]
    assert recorder.left_out == {"capture failed: ZeroDivisionError": 3}


def test_the_reason_of_a_failed_import_is_its_last_line(tmp_path: Path) -> None:
    plugin = run(tmp_path, "import numpy\nimport a_module_that_is_not_there\n")
    assert plugin.problems == ["ModuleNotFoundError: No module named 'a_module_that_is_not_there'"]
    assert not plugin.outcomes
