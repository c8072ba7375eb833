"""`opera run` as its user sees it: options checked at the door, progress, and a few lines of what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

from opera import compilers, libraries
from opera.errors import NoAnswer, UsageError
from opera.run import driver as stage
from opera.run.driver import Options
from opera.run.progress import reporter
from opera.store.workspace import Workspace

Reproduce: TypeAlias = Callable[[Workspace], tuple[int, Mapping[str, str]]]
"""Writes the missing reproducers of a workspace; returns how many, and finding → why it has none."""
Distinct: TypeAlias = Callable[[Workspace, list[str]], list[str]]
"""Returns those of some findings that are new: none of the others in the workspace, nor known otherwise."""


def check(options: Options) -> None:
    """Raise UsageError for options that cannot be meant, before the workspace is touched."""
    for name in options.compilers:
        compilers.get(name)
    for name in options.libraries:
        libraries.get(name)
    if options.selection.balance and options.selection.test:
        raise UsageError("--balance and --test do not go together", fix="leave one of them out")


def run(workspace: Workspace, options: Options, reproduce: Reproduce, distinct: Distinct) -> bool:
    """Run, write the reproducers of new findings, and say what came of it; True if there are new findings.

    `distinct` says which of them are findings of their own, and not known, which this package cannot tell.
    """
    with reporter() as progress:
        summary = stage.run(workspace, options, progress)
        written, missing = reproduce(workspace)
    for frontend, counts in sorted(summary.counts.items()):
        told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda x: -x[1]) if count)
        print(f"{frontend}: {told}")
    if not summary.counts:
        print("nothing left to run: every test has its verdict (--rerun runs them again)")
    new = distinct(workspace, summary.new_findings)
    print(
        f"{len(new)} new findings, {written} reproducers written,"
        f" {summary.seconds:.0f} s, efficiency {summary.efficiency:.2f}"
    )
    for finding, why in sorted(missing.items()):
        print(f"no reproducer for {finding}: {why}", file=sys.stderr)
    if summary.stopped:
        print(f"stopped: {summary.stopped}; the same command goes on from there")
    if summary.lost:
        told = "; ".join(f"{frontend}: {why}" for frontend, why in sorted(summary.lost.items()))
        raise NoAnswer(
            f"not all frontends were run to the end: {told}",
            cause="their processes died again and again, or a package was changed meanwhile",
            fix="run the same command again: what was stored stays",
        )
    print(f"next: opera report --format html --output report.html --workspace {workspace.root}")
    return bool(new)
