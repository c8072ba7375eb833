"""Whether scripts show what ends a process, or varies, is looked at once findings are reduced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from filled import judged

from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, UNSTABLE
from opera.store import examined
from opera.store.workspace import Workspace
from opera.triage.reducer import closing
from opera.triage.reproducers import scripts
from opera.triage.reproducers.choice import Choice
from opera.triage.reproducers.scripts import Trial


@pytest.mark.parametrize(
    ("verdict", "shown", "stored"),
    [
        (ABORT, (True, False, True), (2, 3)),
        (ABORT, (False, False, False), (0, 3)),
        (UNSTABLE, (True,), (1, 1)),
        (CRASH, (), None),
        (INCONSISTENT, (), None),
    ],
)
def test_the_script_of_what_may_be_there_in_one_run_and_not_in_the_next_is_run(
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    shown: Sequence[bool],
    stored: tuple[int, int] | None,
) -> None:
    """Of memory that is overwritten a worker dies, for its own is filled; a script of it ended with 0, and was called ready."""
    failed = judged("t", "tvm-onnx", "inputs", "e", verdict, "infer")
    runs = iter(shown)
    monkeypatch.setattr(closing, "done", lambda _: {"F1", "F2"})
    monkeypatch.setattr(closing, "choose", lambda *_: Choice(failed, failed))
    monkeypatch.setattr(scripts, "members", lambda _, names: {name: [failed] for name in names})
    monkeypatch.setattr(scripts, "write", lambda *_: Path("F1.py"))
    monkeypatch.setattr(scripts, "verify", lambda _, name, **given: Trial(name, 0, "", shown=next(runs)))
    probe: Any = SimpleNamespace(interpreter=lambda _: "python")
    closing.show(workspace, probe, ["F1"], 60.0)
    found = [msgspec.json.decode(x.document) for x in examined.documents(workspace, examined.SHOWN, "F1")]
    assert found == ([list(stored)] if stored else []) and next(runs, None) is None


@pytest.mark.parametrize(
    ("shown", "told", "runs"),
    [((True,), True, (0, 0)), ((True, False, True), True, (2, 3)), ((False, True, False), False, (1, 3))],
)
def test_most_of_several_runs_of_a_script_say_what_it_shows(
    shown: Sequence[bool], told: bool, runs: tuple[int, int]
) -> None:
    found = scripts.together([Trial("F1", int(x), str(x), shown=x) for x in shown])
    assert (found.shown, found.runs, found.text) == (told, runs, str(told))
