"""The script of a draft: run before it is shown, and what of its output is shown, without this machine's folders."""

from __future__ import annotations

import re
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from opera import resources
from opera.oracle import messages
from opera.oracle.comparison import COUNT
from opera.oracle.randomness import FORMS
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED, TIMEOUT, UNSTABLE, deaths
from opera.report.words import clean
from opera.store.workspace import Workspace
from opera.triage.findings import Finding
from opera.triage.reproducers import brief, reproducer, scripts
from opera.triage.reproducers.choice import Choice
from opera.triage.reproducers.reproducer import Exhibit
from opera.triage.reproducers.scripts import Trial

SHORT = (CRASH, REFUSED, ABORT, TIMEOUT, INCONSISTENT, UNSTABLE)
"""Verdicts that a short script may show."""
WIDEST = 1000
"""Characters of a line of that."""
PRINTED = 20_000
"""Characters of what a script printed that are looked at; a draft shows HEAD and TAIL lines of the part that matters."""
HEAD, TAIL = 8, 22
ENDLESS = "Timeout ("
"""What Python's faulthandler prints first of a script that does not end."""
LOGGED = re.compile(
    r"[IW]\d{4} [\d:.]+\s+\d+ \S+:\d+\]|WARNING: All log messages before absl|\[\d\d:\d\d:\d\d\] \S+:\d+: Warning:"
)
"""How a line begins that glog, absl or TVM writes of something else than a failure."""


def script(
    workspace: Workspace, finding: Finding, chosen: Choice | None, *, body: bool = False
) -> tuple[str, Trial | None, bool]:
    """Return the script of a finding, what it did just now, and whether it is the short one.

    Args:
        body: Whether an operator's definition is wrong: if it is so by itself, the compiler that ran it is left out.
    """
    if chosen is None:
        return "", None, False
    python = workspace.interpreter(finding.environment)
    exhibit, manifest, directory, program = scripts.exhibited(workspace, finding.id, chosen)
    exhibit = msgspec.structs.replace(exhibit, sentence=finding.sentence)  # which knows whose fault it is
    shown = exhibit, manifest, directory, program
    by_body = msgspec.structs.replace(exhibit, frontend=f"body-{manifest.library}")
    tried = [(by_body, False)] * body + [(exhibit, False)] + [(exhibit, True)] * brief.keeps(exhibit.frontend)
    for short, kept in tried:
        made = brief.brief(short, *shown[1:], kept=kept) if exhibit.verdict in SHORT else None
        if made is None:
            continue
        text = made.script(exhibit)
        trials = [run(text, finding.id, python) for _ in range(scripts.times(exhibit.verdict))]
        trial = scripts.together([msgspec.structs.replace(x, shown=fails_so(exhibit, x)) for x in trials])
        if trial.shown:
            return text, trial, True
    text = reproducer.render(*shown)
    return text, scripts.together([run(text, finding.id, python) for _ in range(scripts.times(exhibit.verdict))]), False


def run(text: str, name: str, python: str) -> Trial:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reproduce.py"
        path.write_text(text, encoding="utf-8")
        return scripts.verify(path, name, python=python, keep=PRINTED)


def excerpt(text: str, says: str = "") -> str:
    """Return what a script printed of its failure: comparisons, and the last traceback, its middle left out.

    Args:
        says: The message of a crash: what was printed of it before, by native code that raises something else, is kept.
    """
    lines = [x for x in messages.COLOURS.sub("", text).strip().splitlines() if not LOGGED.match(x)]
    hangs = next((place for place, line in enumerate(lines) if line.startswith(ENDLESS)), None)
    if hangs is not None:
        return "\n".join(line[:WIDEST] for line in lines[hangs : hangs + HEAD + TAIL])
    begin = max((place for place, line in enumerate(lines) if line.startswith("Traceback (most recent")), default=0)
    written = re.search(r"^ONNX's function body:.*?^\}", "\n".join(lines[:begin]), re.MULTILINE | re.DOTALL)
    told = written[0].splitlines() if written else []
    told += [line for line in lines[:begin] if re.match(r"\S+: (?:expected|got) ", line)]
    words = [x for x in messages.identifying(says).split(messages.GAP) if x]
    if words and not any(words[0] in line for line in lines[begin:]):
        told += [line for line in lines[:begin] if all(x in line for x in words)][-1:]
    rest = [line for line in lines[begin:] if line.strip(" ^~") or not line]
    failed = next((place for place, line in enumerate(rest) if line.startswith("AssertionError")), 0)
    if told and failed:  # where a comparison was made says nothing
        rest = rest[failed:]
    if not begin and not told:
        return "\n".join(line[:WIDEST] for line in rest[-HEAD:])
    if len(rest) > HEAD + TAIL:
        rest = [*rest[:HEAD], f"[{len(rest) - HEAD - TAIL} lines left out]", *rest[-TAIL:]]
    return "\n".join([*told, *(line[:WIDEST] for line in rest)])


def fails_so(exhibit: Exhibit, trial: Trial) -> bool:
    """Whether a short script, which has no exit codes of its own, failed as was found."""
    if exhibit.verdict == ABORT:
        return trial.code < 0 and _signal(-trial.code) in deaths(exhibit.symptom)
    if trial.code != 1:
        return False
    if exhibit.verdict == TIMEOUT:
        return ENDLESS in trial.text
    if exhibit.verdict == INCONSISTENT and exhibit.drawn and exhibit.symptom not in FORMS:
        return re.search(r"^AssertionError: .*: drawn wrongly", trial.text, re.MULTILINE) is not None
    if exhibit.verdict == INCONSISTENT and exhibit.symptom == COUNT:
        return re.search(r"^AssertionError: wrong count of outputs", trial.text, re.MULTILINE) is not None
    if exhibit.verdict in (INCONSISTENT, UNSTABLE):
        form = exhibit.symptom in ("shape", "dtype")
        about = (
            rf"^AssertionError: {re.escape(exhibit.output)}: wrong {exhibit.symptom}"
            if form  # values are compared by numpy, which says so on lines of their own
            else rf"^AssertionError: *\n[^\0]*\b{re.escape(exhibit.output)}\b"
        )
        return re.search(about, trial.text, re.MULTILINE) is not None
    flat = " ".join(messages.COLOURS.sub("", trial.text).split())
    words = ".*?".join(map(re.escape, messages.identifying(exhibit.message).split(" ... ")))
    return bool(words) and f"{exhibit.symptom.rpartition('.')[2]}:" in flat and re.search(words, flat) is not None


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else ""


def private(workspace: Workspace, python: str) -> tuple[str, ...]:
    """Return the folders of this machine that no draft names, the longest first."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, tempfile.gettempdir(), str(Path.cwd()), str(Path.home())}
    folders |= {str(workspace.root.resolve()), str(resources.content("templates").parent)}
    folders |= {str(Path(python).parent.parent), str(Path(python).resolve().parent.parent)} if python else set()
    return tuple(sorted((x for x in folders if len(x) > 3), key=len, reverse=True))


def hide(text: str, folders: Iterable[str]) -> str:
    """Return a text without control characters, `…` in place of folders of this machine and of what leads to a package."""
    for folder in folders:
        text = re.sub(
            rf"{re.escape(folder)}(?:/[^\s\"':,]*?/(?=site-packages/)|(?=[/\s\"':,)]|$))", "…/", text
        ).replace("…//", "…/")
    return clean(re.sub(r"…/tmp\w+/", "", text))
