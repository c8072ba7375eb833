"""Reproducers of a workspace's findings: choose the member to show, write the script, and run it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from opera import compilers
from opera.compilers import settings
from opera.errors import OperaError, UsageError
from opera.pool import clock
from opera.programs import migrated
from opera.programs.migrated import Manifest
from opera.programs.program import Program
from opera.programs.verdicts import ABORT
from opera.run.aftermath import fails_alike
from opera.run.probe import Probe, Question, limits_of
from opera.store import tests
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.store.workspace import REPRODUCERS, Workspace
from opera.triage.distinct import causes
from opera.triage.reproducers import replay, reproducer
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.reproducers.reproducer import Exhibit
from opera.triage.sentence import sentence

SHOWN, GONE, CANNOT_RUN = 1, 0, 2
"""Exit codes of a reproducer: its own failure, none, and all that says nothing of it: another failure, a refusal."""
ENDLESS = 124
"""What is told as the exit code of a script that did not end in its time."""
SAYS = "the failure is there"
"""What a reproducer prints where it is: an exit code alone could be an accident of the script's own."""


class Trial(msgspec.Struct, frozen=True):
    """What a reproducer did in a fresh process.

    Attributes:
        code: Its exit code, negative for a signal.
        text: The end of what it printed.
        shown: Whether it exited with SHOWN and said so.
        ran_with: Versions and interpreter, as it printed them; empty where it came to no such thing.
        runs: How often it was run, and in how many of these runs it was shown, where that was more than once.
    """

    finding: str
    code: int
    text: str
    shown: bool = False
    ran_with: str = ""
    runs: tuple[int, int] = (0, 0)


AGAIN = 3
"""How often the script is run of what ends its process: memory that is overwritten ends one run, and not the next."""


def times(verdict: str) -> int:
    """Return how often a script is run that shows a verdict; that of what varies runs itself several times."""
    return AGAIN if verdict == ABORT else 1


def together(trials: Sequence[Trial]) -> Trial:
    """Return several runs of one script as one: that shows the failure if more of them do than do not."""
    shown = [x for x in trials if x.shown]
    most = 2 * len(shown) > len(trials)
    told = shown[0] if most else next(x for x in trials if x not in shown)
    return msgspec.structs.replace(told, runs=(len(shown), len(trials)) if len(trials) > 1 else (0, 0))


def members(workspace: Workspace, names: Iterable[str] = ()) -> dict[str, list[Verdict]]:
    """Return finding → failing verdicts, in the order they were found; all findings where no names are given."""
    wanted, superseded, called = set(names), workspace.superseded(), causes.causes(workspace)
    found: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in stored.counted(workspace):
        name = called.of(verdict.finding, verdict.test)
        if verdict.environment not in superseded and (not wanted or name in wanted):
            found[name].append(verdict)
    return dict(found)


def write(workspace: Workspace, finding: str, verdicts: list[Verdict], output: Path | None = None) -> Path | None:
    """Write the script of a finding; return its path, or None where nothing shows it."""
    path = output or workspace.root / REPRODUCERS / f"{finding}.py"
    chosen = choose(workspace, verdicts)
    if chosen is None:
        return _write_sequel(workspace, finding, verdicts, path)
    exhibit, manifest, directory, program = exhibited(workspace, finding, chosen)
    reproducer.write(exhibit, manifest, directory, program, path)
    return path


def exhibited(workspace: Workspace, finding: str, chosen: Choice) -> tuple[Exhibit, Manifest, Path, Program]:
    """Return what a script needs of what was chosen: what it shows, and the manifest, folder and program of the test."""
    verdict = chosen.verdict
    directory = migrated.folder(workspace.tests_folder, verdict.test)
    manifest = migrated.read_manifest(directory)
    made = environment(workspace, chosen)
    compiler = made["compiler"]
    frontend = compilers.frontend(compiler, manifest.library)
    variants = {x.name: x for x in frontend.VARIANTS}
    seen = workspace.provenances(tests.test(workspace, chosen.member.test).instance)
    options, outcome = limits_of(workspace), verdict.outcome
    exhibit = Exhibit(
        id=finding,
        frontend=verdict.frontend,
        compiler=compiler,
        versions={compiler: made["version"], **made["exporter"]},
        artefact=variants.get(verdict.variant, frontend.VARIANTS[0]).artefact,
        verdict=outcome.verdict,
        stage=outcome.stage,
        symptom=outcome.symptom,
        message=outcome.message,
        location=outcome.location,
        sentence=sentence(
            compilers.title(compiler),
            chosen.called(manifest.operator),
            outcome,
            chosen.sure,
            exporter=compilers.exporter(compiler, manifest.library),
            route=chosen.exported,
            alike=chosen.alike,
            incidental=chosen.incidental,
        ),
        output=str(outcome.details.get("output", "")),
        came_from=f"{seen[0].test} ({seen[0].file})" if seen else "",
        limits=options,
        computes_in=compilers.computes_in(frontend, made.get("options", {}).get("device", "")),
        variant=verdict.variant,
        drawn={name: value for name, value in outcome.details.items() if name.startswith("drawn")},
        chosen=settings.of(compiler, made.get("options", {})),
        hides=chosen.reduction is not None and any(x.wrong for x in chosen.reduction.contrasts),
    )
    return exhibit, manifest, directory, workspace.instance(manifest.instance)


def environment(workspace: Workspace, chosen: Choice) -> dict[str, Any]:
    """Return the document of the environment of what was chosen; of a plain form, with what made that."""
    found = workspace.environments()[chosen.verdict.environment]
    if not chosen.exported:
        return found
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, chosen.verdict.test))
    return {**found, "exporter": manifest.exporter}


def _write_sequel(workspace: Workspace, finding: str, verdicts: list[Verdict], path: Path) -> Path | None:
    """Write the script of a state-dependent finding, with no more predecessors than it needs; None if it is gone."""
    environments = workspace.environments()
    with Probe.of(workspace, workers=1) as probe:
        for verdict in verdicts:
            environment, seen = environments[verdict.environment], verdict.outcome
            details = seen.details
            own = f"{verdict.test}/{verdict.variant}"
            before = tuple(details.get("predecessors", ())) or ((own,) if "victim" in details else ())
            sequel = replay.Sequel(
                compiler=environment["compiler"],
                library=environment["library"],
                name=details.get("victim", own),
                verdict=details.get("victim_verdict", seen.verdict),
                stage=details.get("victim_stage", seen.stage),
                symptom=details.get("victim_symptom", seen.symptom),
                python=probe.interpreter(verdict.environment),
                chosen=tuple(settings.of(environment["compiler"], environment.get("options", {})).items()),
            )
            fails = partial(replay.fails, probe, sequel, environment=verdict.environment)
            if before and fails(before):
                reduced = replay.reduce(before, fails)
                reproducer.write_sequel(finding, sequel, reduced, workspace, probe.limits, path)
                return path
    return None


def write_all(
    workspace: Workspace, names: Iterable[str] = (), anew: Collection[str] = ()
) -> tuple[int, dict[str, str]]:
    """Write the scripts of findings that have none yet; return how many, and finding → why it has none.

    Args:
        anew: Findings whose script is written again: what they show may have changed since, with their members.
    """
    written, missing = 0, {}
    for finding, verdicts in members(workspace, names).items():
        if finding not in anew and (workspace.root / REPRODUCERS / f"{finding}.py").is_file():
            continue
        try:
            if write(workspace, finding, verdicts) is None:
                missing[finding] = "no member fails in a fresh process any more, or its tests were deleted"
            else:
                written += 1
        except OperaError as error:
            missing[finding] = error.what
    return written, missing


def verify(path: Path, finding: str, *, python: str = "", seconds: float = 300.0, keep: int = 2000) -> Trial:
    """Run a script in a fresh process, for as long as it makes progress: `seconds` are those of opera.pool.clock.

    Of what it prints the last `keep` characters are kept.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [python or sys.executable, path.resolve()], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=path.parent, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Trial(finding, 127, f"{python} cannot be run: {error.strerror}")
        ended = clock.wait(process, seconds)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if not ended:
        return Trial(finding, ENDLESS, f"no end after {seconds:g} seconds\n{text[-1000:]}")
    shown = process.returncode == SHOWN and SAYS in text
    ran_with = re.search(r"^with (.*)$", text, re.MULTILINE)
    return Trial(finding, process.returncode, text[-keep:], shown, ran_with[1] if ran_with else "")


def show(workspace: Workspace, name: str, output: Path | None, *, check: bool, python: str = "") -> bool:
    """Write the script of one finding (or of all), print where it is, and run it where asked; False if it does not show.

    It is run by the interpreter that the finding was seen with, unless `python` names another.
    """
    found = members(workspace)
    wanted = sorted(found) if name == "all" else [causes.named(workspace, name, found)]
    if output is not None and name == "all":
        raise UsageError("--output names one file, but there are many findings", fix="leave it out")
    with Probe.of(workspace, workers=1) as probe:
        asked = partial(_shown, workspace, probe, output=output, check=check, python=python)
        shown = [asked(finding, found[finding]) for finding in wanted]
    return all(shown)


def _shown(
    workspace: Workspace,
    probe: Probe,
    finding: str,
    verdicts: list[Verdict],
    *,
    output: Path | None,
    check: bool,
    python: str,
) -> bool:
    """Write one script; where asked, run it, in the environment that the probe knows, and False if it does not show."""
    path = write(workspace, finding, verdicts, output)
    if path is None:
        print(
            f"{finding}: no script: it is state-dependent and does not fail again after the tests that `opera show`"
            " lists, or its tests were deleted (`opera run --rerun` makes them again)"
        )
        return not check
    if not check:
        print(path)
        return True
    chosen = choose(workspace, verdicts)
    by = python or probe.interpreter(verdicts[0].environment if chosen is None else chosen.verdict.environment)
    trial = verify(path, finding, python=by)
    other = {GONE: "does not fail", CANNOT_RUN: "does not show it: another failure, or it cannot be tried"}
    said = "fails, as found" if trial.shown else other.get(trial.code, f"ended with {trial.code}")
    print(f"{path}: {said} ({trial.ran_with or f'run with {by or sys.executable}'})")
    if not trial.shown:
        print(trial.text)
        if chosen is not None and not python:
            print(f"the test itself, asked in a fresh process: {_now(probe, chosen.verdict)}")
    return trial.shown


def _now(probe: Probe, verdict: Verdict) -> str:
    """Say what a test does now: where it fails as it did, its script is to blame."""
    asked = Question(
        frontend=verdict.frontend,
        test=verdict.test,
        variant=verdict.variant,
        environment=verdict.environment,
        fresh=True,
    )
    outcome = probe(asked)
    if fails_alike(outcome, verdict.outcome):
        return "fails, as found, so that its script does not show what it should"
    return " ".join(f"{outcome.verdict} {outcome.stage} {outcome.symptom} {outcome.message}".split())[:500]
