"""Reproducers of a workspace's findings: choose the member to show, write the script, and run it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from opera import compilers
from opera.errors import OperaError, UsageError
from opera.pool import clock
from opera.programs import migrated
from opera.programs.verdicts import Limits
from opera.store.workspace import COUNTED, REPRODUCERS, Verdict, Workspace
from opera.triage import replay, reproducer

SHOWN, GONE, CANNOT_RUN = 1, 0, 2
"""Exit codes of a reproducer."""
SAYS = "the failure is there"
"""What a reproducer prints where it is: an exit code alone could be an accident of the script's own."""


class Trial(msgspec.Struct, frozen=True):
    """What a reproducer did in a fresh process.

    Attributes:
        code: Its exit code, negative for a signal.
        text: The end of what it printed.
        shown: Whether it exited with SHOWN and said so.
    """

    finding: str
    code: int
    text: str
    shown: bool = False


def members(workspace: Workspace, names: Iterable[str] = ()) -> dict[str, list[Verdict]]:
    """Return finding → failing verdicts, in the order they were found; all findings where no names are given."""
    wanted, superseded = set(names), workspace.superseded()
    found: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in workspace.verdicts(COUNTED):
        if verdict.environment not in superseded and (not wanted or verdict.finding in wanted):
            found[verdict.finding].append(verdict)
    return dict(found)


def choose(workspace: Workspace, verdicts: list[Verdict]) -> Verdict | None:
    """Return the member that shows a finding best: confirmed alone in a fresh process, and the smallest of those.

    None where no member fails on its own (a state-dependent finding needs its predecessors, which `opera show` lists), or
    the folders of its tests were deleted.
    """
    alone = [x for x in verdicts if "state-dependent" not in x.details.get("tags", ())]
    alone = [x for x in alone if migrated.folder(workspace.tests_folder, x.test).is_dir()]
    confirmed = [x for x in alone if x.confirmation == "confirmed"] or alone
    return min(confirmed, key=lambda x: (_size(workspace, x.test), x.test), default=None)


def write(workspace: Workspace, finding: str, verdicts: list[Verdict], output: Path | None = None) -> Path | None:
    """Write the script of a finding; return its path, or None where nothing shows it."""
    path = output or workspace.root / REPRODUCERS / f"{finding}.py"
    verdict = choose(workspace, verdicts)
    if verdict is None:
        return _write_sequel(workspace, finding, verdicts, path)
    directory = migrated.folder(workspace.tests_folder, verdict.test)
    manifest = migrated.read_manifest(directory)
    environment = workspace.environments()[verdict.environment]
    frontend = compilers.frontend(environment["compiler"], manifest.library)
    variants = {x.name: x for x in frontend.VARIANTS}
    seen = workspace.provenances(manifest.instance)
    options = _limits(workspace)
    exhibit = reproducer.Exhibit(
        id=finding,
        frontend=verdict.frontend,
        compiler=environment["compiler"],
        versions={environment["compiler"]: environment["version"], **environment["exporter"]},
        artefact=variants[verdict.variant].artefact,
        verdict=verdict.verdict,
        stage=verdict.stage,
        symptom=verdict.symptom,
        message=verdict.message,
        came_from=f"{seen[0].test} ({seen[0].file})" if seen else "",
        limits=options,
        computes_in=compilers.computes_in(frontend),
        variant=verdict.variant,
    )
    reproducer.write(exhibit, manifest, directory, workspace.instance(manifest.instance), path)
    return path


def _write_sequel(workspace: Workspace, finding: str, verdicts: list[Verdict], path: Path) -> Path | None:
    """Write the script of a state-dependent finding, with no more predecessors than it needs; None if it is gone."""
    limits, environments = _limits(workspace), workspace.environments()
    for verdict in verdicts:
        environment, details = environments[verdict.environment], verdict.details
        own = f"{verdict.test}/{verdict.variant}"
        before = tuple(details.get("predecessors", ())) or ((own,) if "victim" in details else ())
        sequel = replay.Sequel(
            compiler=environment["compiler"],
            library=environment["library"],
            name=details.get("victim", own),
            verdict=details.get("victim_verdict", verdict.verdict),
            stage=details.get("victim_stage", verdict.stage),
            symptom=details.get("victim_symptom", verdict.symptom),
            python=workspace.interpreter(verdict.environment),
        )

        def fails(part: tuple[str, ...], sequel: replay.Sequel = sequel) -> bool:
            return replay.still_fails(workspace.tests_folder, sequel, part, limits)

        if before and fails(before):
            reproducer.write_sequel(finding, sequel, replay.reduce(before, fails), workspace, limits, path)
            return path
    return None


def write_all(workspace: Workspace, names: Iterable[str] = ()) -> tuple[int, dict[str, str]]:
    """Write the scripts of findings that have none yet; return how many, and finding → why it has none."""
    written, missing = 0, {}
    for finding, verdicts in members(workspace, names).items():
        if (workspace.root / REPRODUCERS / f"{finding}.py").is_file():
            continue
        try:
            if write(workspace, finding, verdicts) is None:
                missing[finding] = "no member fails in a fresh process any more, or its tests were deleted"
            else:
                written += 1
        except OperaError as error:
            missing[finding] = error.what
    return written, missing


def verify(path: Path, finding: str, *, python: str = "", seconds: float = 300.0) -> Trial:
    """Run a script in a fresh process, for as long as it makes progress: `seconds` are those of opera.pool.clock."""
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
        return Trial(finding, 124, f"no end after {seconds:g} seconds\n{text[-1000:]}")
    return Trial(finding, process.returncode, text[-2000:], process.returncode == SHOWN and SAYS in text)


def show(workspace: Workspace, name: str, output: Path | None, *, check: bool) -> bool:
    """Write the script of one finding (or of all), print where it is, and run it where asked; False if it does not show."""
    found = members(workspace)
    wanted = sorted(found) if name == "all" else [x for x in found if x.startswith(name)]
    if len(wanted) != 1 and name != "all":
        raise UsageError(
            f"{'no finding has' if not wanted else f'{len(wanted)} findings have'} an id that begins with {name!r}",
            fix="`opera findings` lists them",
        )
    if output is not None and name == "all":
        raise UsageError("--output names one file, but there are many findings", fix="leave it out")
    ok = True
    for finding in wanted:
        path = write(workspace, finding, found[finding], output)
        if path is None:
            print(
                f"{finding}: no script: it is state-dependent and does not fail again after the tests that `opera show`"
                " lists, or its tests were deleted (`opera run` makes them again)"
            )
            continue
        if not check:
            print(path)
            continue
        python = interpreter(workspace, found[finding])
        trial = verify(path, finding, python=python)
        other = {GONE: "does not fail", CANNOT_RUN: "cannot run here"}.get(trial.code, f"ended with {trial.code}")
        print(f"{path}: {'fails, as found' if trial.shown else other}{f' (run with {python})' if python else ''}")
        ok = ok and trial.shown
        if not trial.shown:
            print(trial.text)
    return ok


def interpreter(workspace: Workspace, verdicts: list[Verdict]) -> str:
    """Return the interpreter of the environment that the shown member of a finding was seen in; empty for this one."""
    shown = choose(workspace, verdicts) or verdicts[0]
    return workspace.interpreter(shown.environment)


def _size(workspace: Workspace, test: str) -> int:
    return sum(path.stat().st_size for path in migrated.folder(workspace.tests_folder, test).iterdir())


def _limits(workspace: Workspace) -> Limits:
    """Return the limits of the newest run."""
    rows = workspace.query("SELECT document FROM runs ORDER BY id DESC LIMIT 1")
    if not rows:
        return Limits()
    limits: Limits = msgspec.convert(msgspec.json.decode(rows[0][0])["options"]["limits"], Limits)
    return limits
