"""The suites of a target at work: one unit a file."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator

from opera.capture.child import Job, Needs, digest_of
from opera.errors import SourceError
from opera.programs.degenerate import with_degenerate
from opera.programs.program import Captured
from opera.sources import Extraction, Extractions, Finished, Request, Totals, Unit, UnitReport, telling
from opera.sources.suites import suites
from opera.sources.suites.suites import Suite, Target
from opera.store.workspace import Workspace


def extraction(request: Request, *, equipped: str = "", spread: bool = False) -> Extractions:
    """Recognise the target, as opera.sources.Source; `equipped` is the compiler whose own tests it is taken to hold.

    With `spread`, its files may be run on other machines, which have the target at the same path.

    Raises SourceError where it cannot be extracted from, not in that role, or holds no test files; NotInstalled.
    """
    target = suites.recognise(request.target)
    suites.check_role(target, equipped)
    found = SuiteExtraction(target, equipped=equipped, timeout=request.timeout, spread=spread)

    def begin(workspace: Workspace) -> Iterator[Extraction]:
        where = f"checkout {target.version}, " if target.checkout else ""
        print(f"{target.name}: {where}tests run against the installed {target.installed}", file=sys.stderr)
        if target.version != "unknown" and _series(target.version) != _series(target.installed):
            hint = "names that one of the two lacks cost whole files; a checkout of the installed version loses fewest"
            print(f"{target.version} on {target.installed}: {hint}", file=sys.stderr)
        yield found

    return begin


def _series(version: str) -> str:
    """The release that a version belongs to: 2.13 of 2.13.0+cpu."""
    return ".".join(version.split("+")[0].split(".")[:2])


class SuiteExtraction:
    """See opera.sources.Extraction. Raises SourceError where the target holds no test files.

    Args:
        target: See suites.recognise.
        equipped: Name of the compiler whose own tests the target is; empty for a library's suites.
        timeout: Seconds a file may take, in place of what its suite declares.
        spread: Whether files may be run on other machines.
    """

    things = "files"

    def __init__(
        self, target: Target, *, equipped: str = "", timeout: float | None = None, spread: bool = False
    ) -> None:
        self.target, self.equipped, self.timeout = target, equipped, timeout
        self.key = f"{target.key} equipped {equipped}" if equipped else target.key
        self.about = {
            "target": str(target.root), "name": target.name, "version": target.version,
            "installed": target.installed, "equipped": equipped,
        }  # fmt: skip
        self.jobs = [(suite, file) for suite in target.source.suites for file in suites.files(target, suite)]
        if not self.jobs:
            raise SourceError(
                f"no test files were found in {target.root}",
                cause="the checkout is incomplete, or its layout is newer than opera's declaration of it",
                fix=f"compare with the globs of sources/{target.name}.toml",
            )

        self.needs = self._needs() if spread else None

    def _needs(self) -> Needs:
        """Return what a machine must have. Raises SourceError where files of the suites cannot be read."""
        root = str(self.target.root)
        files = tuple(sorted({file for suite, file in self.jobs if suite.kind != "driver"}))
        try:
            digest = digest_of(root, files)
        except OSError as error:
            raise SourceError(f"the test files in {root} cannot be read: {error}", fix="check their rights") from None
        return Needs(self.target.source.distribution, self.target.installed, root, files, digest)

    def names(self) -> Collection[str]:
        return [_told(file) for _, file in self.jobs]

    def units(self) -> Iterator[Unit]:
        return (self._unit(suite, file) for suite, file in self.jobs)

    def _unit(self, suite: Suite, file: str) -> Unit:
        told = _told(file)
        job = Job(
            hooks=suites.hooks(self.target.source, suite), kind=suite.kind, root=str(self.target.root), file=file, spool="",
            arguments=suite.arguments, path=suite.path, stop=suite.stop, resume=suite.resume, inert=suite.inert,
            driver=suite.driver,
        )  # fmt: skip
        return Unit(
            file=told, job=job, seconds=self.timeout or suite.timeout, alone=not suite.shared_process,
            problem="" if told == file else "the name of the file is no UTF-8 text", needs=self.needs,
        )  # fmt: skip

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        return workspace.add_captured(records if self.equipped else with_degenerate(records), equipped=self.equipped)

    def told(self, unit: Unit, report: UnitReport) -> Finished:
        return Finished(report=report)

    def progress(self, totals: Totals) -> str:
        return f"{totals.units} files, {totals.captured} instances"

    def tell(self, totals: Totals) -> bool:
        what = f"equipped instances of {self.equipped}" if self.equipped else "instances"
        print(
            f"{totals.units} files, {totals.tests} tests, {totals.captured} captured:"
            f" {totals.new} new {what}, {totals.seconds:.0f} s"
        )
        telling.show_left_out(totals.left_out)
        lines = [telling.in_trouble(report) for report in totals.trouble]
        telling.show_list("files did not run to their end", lines, "`opera report` lists them all")
        if len(lines) == len(self.jobs):
            target, first = self.target, totals.trouble[0]
            raise SourceError(
                f"not one of the {len(lines)} test files of {target.root} could be run",
                cause=f"the first said: {first.file}: {first.status}: {first.reason}",
                fix=f"install what the tests need, or a {target.source.package} whose version is near {target.version}"
                f" (installed: {target.installed})",
            )
        return len(lines) < totals.units or not totals.units


def _told(file: str) -> str:
    """Return a file's name as text that can be stored and shown."""
    return file.encode("utf-8", "backslashreplace").decode()
