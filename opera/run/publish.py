"""`opera corpus export --as FORM`: instances as the files of a conformance suite, with what their tests expect.

Tests are made as a run makes them, in library-side workers; those that the workspace holds are taken from there. The
workspace is only read, and the folder is there whole or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from opera import errors, libraries, temporary
from opera.errors import UsageError, near
from opera.pool.pool import Pool
from opera.pool.workers import DONE, Result
from opera.programs.program import operators_of
from opera.programs.verdicts import Limits
from opera.run import plan
from opera.run.groups import library_group
from opera.run.library_side import PublishRequest
from opera.run.prepare import VALID, Preparation
from opera.store import families, instances
from opera.store.folders import Folders
from opera.store.instances import Seen
from opera.store.rows import Test
from opera.store.workspace import Workspace

AT_A_TIME = 100
"""Tests of an operator that one job writes."""
LONGEST = 100
"""Characters of a test's name."""
LEFT_OUT = "left-out.txt"
"""The file of the folder that lists what was not written, with its reason."""
PLACE = "suite"
"""The folder that is written to, beside the tests that are made."""
SECONDS = 600.0
"""What writing a batch may take."""
TOLD, MOST = 100, 15
"""Characters of a reason, and reasons, that are told on the terminal."""


class Published(msgspec.Struct, frozen=True):
    """What became of the instances: tests written, and those left out, each with its reason."""

    written: int
    left: dict[str, str]


class _Reading:
    """The workspace's instances and tests, and the tests that are made here; nothing is stored (opera.run.prepare.Programs)."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def captured_form(self, name: str) -> dict[str, Any]:
        return self.workspace.captured_form(name)

    def tests(self, exporter: str) -> dict[str, Test]:
        return self.workspace.tests(exporter)

    def save_tests(self, exporter: str, tests: Iterable[Test]) -> None:
        """Preparation keeps them itself."""


def publish(
    workspace: Workspace,
    form: str,
    out: Path,
    *,
    library: str = "",
    source: str = "",
    operator: str = "*",
    workers: int = 2,
) -> Published:
    """Write instances of a workspace as files of a suite into the folder `out`, which must not be there, or be empty.

    Args:
        form: One of a library's FORMS.
        library: As the user named it; another than the form's own is refused.
        source: Only what this migration source brought; empty for all.
        operator: Glob of operators' names.

    Raises UsageError for an unknown form, for a folder that cannot be written, and where nothing is chosen.
    """
    owner = libraries.publishing(form)
    if library not in ("", owner):
        raise UsageError(f"{form} is a form of tests of {owner}, not of {library}", fix=f"--library {owner}, or none")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already, and is no empty folder", fix="choose another folder, or remove it")
    chosen = [
        x
        for x in instances.seen(workspace, owner, source)
        if any(fnmatchcase(name, operator) for name in operators_of(x.operator))
    ]
    if not chosen:
        raise _nothing(workspace, owner, source)
    with temporary.folder("publish") as scratch:
        place, files = scratch / PLACE, Folders.of(scratch, workspace.root)
        place.mkdir()
        with Pool({f"library {owner}": library_group(owner, files)}, workers=workers) as pool:
            left = _Writing(workspace, form, owner, place, pool, files).write(chosen)
        if left:
            operators = {x.instance: x.operator for x in chosen}
            lines = (f"{name}\t{operators[name]}\t{' '.join(why.split())}\n" for name, why in left.items())
            (place / LEFT_OUT).write_text("".join(lines), encoding="utf-8")
        _move(place, out)
    return Published(len(chosen) - len(left), left)


def named(chosen: Iterable[Seen]) -> dict[str, str]:
    """Return instance → the name of its test in a suite: what its first test is called, as far as a name may hold that.

    Names begin with `test_`, hold letters, digits and underscores, and are each another also where case does not count. Of two
    tests of one name the second has the beginning of its instance's id behind it.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for x in chosen:
        plain = re.sub(r"\W+", "_", x.test, flags=re.ASCII).strip("_")[:LONGEST].strip("_")
        name = (
            plain
            if plain.startswith("test_")
            else f"test_{plain or re.sub(r'[^A-Za-z0-9]+', '_', x.operator).strip('_')}"
        )
        if name.casefold() in taken:
            name = f"{name}_{x.instance[:8]}"
        if name.casefold() in taken:
            name = f"{name}{x.instance[8:]}"
        taken.add(name.casefold())
        found[x.instance] = name
    return found


def _nothing(workspace: Workspace, library: str, source: str) -> UsageError:
    """Return what is said where nothing is chosen."""
    sources = sorted({x for held in families.held(workspace) if held[0] == library for x in held[2]})
    if source and source not in sources:
        return UsageError(
            f"the workspace holds nothing of {library} from {source!r}",
            cause=near(source, sources),
            fix=f"choose from {', '.join(sources)}" if sources else "run `opera extract` first",
        )
    return UsageError(
        f"no instance of {library} is chosen",
        cause="--operator matches none",
        fix="give a glob of whole names, as 'Conv*'",
    )


class _Writing:
    """Has tests made, and written: a batch of an operator's tests a job, and each alone where its batch does not end well."""

    def __init__(self, workspace: Workspace, form: str, library: str, place: Path, pool: Pool, files: Folders) -> None:
        self.workspace, self.form, self.library, self.place, self.pool = workspace, form, library, place, pool
        self.exporter = plan.exporter_id(library)
        self.preparation: Preparation[Seen] = Preparation(_Reading(workspace), files, pool, Limits())
        self.left: dict[str, str] = {}
        self.numbers: Counter[str] = Counter()

    def write(self, chosen: list[Seen]) -> dict[str, str]:
        """Write what can be written; return instance → why it was left out."""
        self.names = named(chosen)
        tests = self._made(chosen)
        ready: dict[str, list[Seen]] = defaultdict(list)
        for x in chosen:
            if x.instance in tests:
                ready[x.operator].append(x)
        for found in ready.values():
            for at in range(0, len(found), AT_A_TIME):
                self._submit(found[at : at + AT_A_TIME], tests)
        for result in self.pool.results():
            self._take(result, tests)
        return {x.instance: self.left[x.instance] for x in chosen if x.instance in self.left}

    def _made(self, chosen: list[Seen]) -> dict[str, str]:
        """Return instance → test, of those that the library accepts."""
        tests: dict[str, str] = {}

        def take(x: Seen, test: Test | None, said: str = "") -> None:
            if test is not None and test.status == VALID:
                tests[x.instance] = test.id
            else:
                self.left[x.instance] = test.reason if test is not None else said

        for x in chosen:
            if (known := self.preparation.known(self.exporter, x.instance)) is None:
                self.preparation.wrap(self.library, self.exporter, x.instance, x)
            else:
                take(x, known)
        self.preparation.submit()
        for result in self.pool.results():
            for x, test in self.preparation.wrapped(result.tag, result):
                take(x, test, f"{result.status}: {result.message}".strip())
        return tests

    def _submit(self, batch: list[Seen], tests: dict[str, str]) -> None:
        operator = batch[0].operator
        self.numbers[operator] += 1
        cases = [
            (self.names[x.instance], tests[x.instance], self.workspace.instance(x.instance).canonical()) for x in batch
        ]
        request = PublishRequest(self.library, self.form, operator, cases, self.numbers[operator], PLACE)
        self.pool.submit(
            f"library {self.library}", request, seconds=SECONDS, call="opera.run.library_side:publish", tag=batch
        )

    def _take(self, result: Result, tests: dict[str, str]) -> None:
        if result.status == DONE:
            self.left |= result.decode(dict[str, str])
            return
        for x in result.tag:
            shutil.rmtree(self.place / self.names[x.instance], ignore_errors=True)
            if len(result.tag) > 1:
                self._submit([x], tests)
            else:
                self.left[x.instance] = f"{result.status} {result.exit}: {result.message or result.log}".strip()[:600]


def _move(made: Path, out: Path) -> None:
    """Bring a folder to its place, whole or not at all. Raises UsageError where it cannot be written."""
    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, part)
        if out.is_dir():
            out.rmdir()
        part.rename(out)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise errors.unwritable(out, error) from None


def show(found: Published, out: Path) -> None:
    """Tell how many tests were written, and what was left out, by reason."""
    print(f"{found.written} tests written to {out}")
    reasons = Counter(" ".join(why.split())[:TOLD] for why in found.left.values())
    for why, count in reasons.most_common(MOST):
        print(f"left out: {count}: {why}", file=sys.stderr)
    if found.left:
        print(f"{len(found.left)} instances were left out: {out / LEFT_OUT} lists them", file=sys.stderr)
