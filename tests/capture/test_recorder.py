from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from opera.capture.recorder import LeftOut, Recorder, replace
from opera.errors import CorpusError
from opera.programs.program import Instance, parse_captured

INSTANCE = Instance("demo", "Op", {"x": 1}, (), ("y",), {})


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    made = Recorder("demo-suite")
    made.begin("a_test.py", tmp_path / "spool")
    made.test = "test_a"
    return made


def test_what_is_recorded_comes_back_with_where_it_was_seen(recorder: Recorder, tmp_path: Path) -> None:
    recorder.observe(lambda: recorder.record(INSTANCE, expected=(1.5,), rtol=1e-3))
    recorder.close()
    (line,) = (tmp_path / "spool").read_bytes().splitlines()
    captured = parse_captured(line)
    assert captured.program == INSTANCE
    assert msgspec.to_builtins(captured.provenance) == {"source": "demo-suite", "file": "a_test.py", "test": "test_a"}
    assert captured.expected == (1.5,)
    assert (captured.rtol, captured.atol) == (1e-3, None)


def test_nothing_that_a_look_raises_gets_out(recorder: Recorder) -> None:
    def fail(error: Exception) -> None:
        raise error

    for error in (LeftOut("no schema"), LeftOut("no schema"), CorpusError("dtype q"), ZeroDivisionError()):
        recorder.observe(lambda error=error: fail(error))
    assert recorder.left_out == {"no schema": 2, "no encoding: dtype q": 1, "capture failed: ZeroDivisionError": 1}
    assert recorder.calls == 4


def test_what_a_look_calls_is_not_observed(recorder: Recorder) -> None:
    recorder.observe(lambda: recorder.observe(lambda: recorder.record(INSTANCE)))
    assert (recorder.calls, recorder.recorded) == (1, 0)
    with recorder.aside():
        recorder.observe(lambda: recorder.record(INSTANCE))
        recorder.defer(lambda: recorder.record(INSTANCE))
    recorder.flush()
    assert (recorder.calls, recorder.recorded) == (1, 0)


def test_deferred_looks_see_the_final_form(recorder: Recorder) -> None:
    seen: list[list[int]] = []
    model = [1]
    recorder.defer(lambda: seen.append(list(model)))
    model.append(2)
    assert not seen
    recorder.flush()
    recorder.flush()
    assert seen == [[1, 2]]


def test_a_new_file_starts_from_nothing(recorder: Recorder, tmp_path: Path) -> None:
    recorder.observe(lambda: recorder.record(INSTANCE))
    recorder.keys.add("seen")
    recorder.begin("b_test.py", tmp_path / "other")
    assert (recorder.calls, recorder.recorded, recorder.keys) == (0, 0, set())
    recorder.observe(lambda: recorder.record(INSTANCE))
    recorder.close()
    assert parse_captured((tmp_path / "other").read_bytes()).provenance.file == "b_test.py"


def test_replace_keeps_name_and_result(monkeypatch: pytest.MonkeyPatch) -> None:
    import textwrap

    original = textwrap.dedent
    monkeypatch.setattr(textwrap, "dedent", original)  # restored at the end
    calls: list[str] = []
    replace("textwrap:dedent", lambda dedent: lambda text: calls.append(text) or dedent(text))
    assert textwrap.dedent("  a") == "a"
    assert calls == ["  a"]
    assert textwrap.dedent.__name__ == "dedent"
