"""Test suites as migration sources: recognising a target, and running its suites under instrumentation.

What a target looks like, which suites it has and how they run is declared in `sources/*.toml`; nothing here names a library.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from opera import resources, temporary
from opera.capture.child import Answer, Job, Setup
from opera.errors import CorpusError, NotInstalled, OperaError, SourceError
from opera.programs.program import Captured, parse_captured
from opera.sources.children import Children, Lost

MAX_VERSION = 1 << 20
"""Characters of the file that states a version in which it is looked for."""


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a checkout states its version: the first group of `regex` in `file`."""

    file: str
    regex: str


class Checkout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a checkout is recognised: all of `files` (files or folders) exist."""

    files: tuple[str, ...]
    version: Version | None = None


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One suite of a source.

    Attributes:
        name: The migration source that provenances name.
        kind: `modules`, `pytest` or `driver` (opera.capture.child.Job).
        globs, exclude: Which files, relative to the target's root.
        driver, parts: For the kind `driver`, the module that runs the suite, and what it is asked for in place of files,
            largest first. It belongs to the installed package, never to a checkout.
        library: Whose operators are captured; the source's own by default.
        arguments: Further arguments of pytest.
        path: Folders that its tests import helpers from.
        stop, resume, inert: What is not run, and where tests go on (opera.capture.child.Job).
        points: What is hooked, in place of the points of the library's instrumentation.
        installed: Whether the installed package ships it.
        shared_process: Whether files run one after the other in one process, or each in its own.
        timeout: Seconds a file may take.
    """

    name: str
    kind: str
    globs: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    driver: str = ""
    parts: tuple[str, ...] = ()
    library: str = ""
    arguments: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    points: dict[str, list[str]] = {}
    installed: bool = False
    shared_process: bool = False
    timeout: float = 300.0


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of `sources/`: a library, or a compiler whose own tests are read as equipped tests."""

    distribution: str
    package: str
    checkout: Checkout
    suites: tuple[Suite, ...]
    library: str = ""
    compiler: str = ""


class Target(msgspec.Struct, frozen=True):
    """What `opera extract` was pointed at.

    Attributes:
        source: Its declaration.
        name: Name of the declaration (`onnx`).
        root: The checkout, or the folder that the installed package lies in.
        version: The version the checkout states, or that is installed.
        installed: Version of the installed package that its suites run against.
        checkout: Whether it is a checkout.
    """

    source: Source
    name: str
    root: Path
    version: str
    installed: str
    checkout: bool

    @property
    def key(self) -> str:
        """Identity of an extraction: what was run, against what."""
        return f"{self.name} {self.version} at {self.root} on {self.installed}"


class FileReport(msgspec.Struct, frozen=True):
    """How one file of a suite went.

    Attributes:
        source: The suite's name.
        file: Path relative to the target's root.
        status: `done`; `failed-import`; `timeout`; `died`; `failed` (the runner itself could not work).
        reason: Why, and what else is to be said; empty for an untroubled `done`.
        tests: Tests run; `failed` of them failed (which does not matter to capture).
        calls: Observations, recorded or not.
        left_out: Category → observations that were not recorded.
        seconds: Wall time.
        spool: JSON lines of the captured records: also those captured before a file failed, died or timed out. It is
            removed when the generator that yielded the report goes on.
    """

    source: str
    file: str
    status: str
    reason: str
    tests: int
    failed: int
    calls: int
    left_out: dict[str, int]
    seconds: float
    spool: Path

    def records(self, lines: Counter[bool] | None = None) -> Iterator[Captured]:
        """Yield what was captured, without damaged lines (a process that died may leave one).

        `lines` counts what was read: whole lines under True, damaged ones under False.
        """
        if not self.spool.exists():
            return
        with self.spool.open("rb") as spool:
            for line in spool:
                record = None
                with suppress(CorpusError):
                    record = parse_captured(line) if line.endswith(b"\n") else None
                if lines is not None:
                    lines[record is not None] += 1
                if record is not None:
                    yield record

    def damaged(self) -> int:
        """Return how many lines of the spool cannot be read."""
        lines = Counter[bool]()
        for _ in self.records(lines):
            pass
        return lines[False]


def sources() -> dict[str, Source]:
    """Return every declared source by name."""
    names = sorted(path.stem for path in resources.content("sources").glob("*.toml"))
    return {name: msgspec.convert(resources.declaration("sources", name), Source) for name in names}


def recognise(target: str) -> Target:
    """Tell what a target is: the name of an installed library, or a path to a checkout.

    Raises SourceError for anything else, NotInstalled where the library that its suites run against is missing.
    """
    declared = sources()
    for name, source in declared.items():
        if not source.compiler and target in (name, source.library):
            return _installed(name, source)
    root = Path(target).expanduser()
    if not root.is_dir():
        raise SourceError(
            f"{target!r} is neither a library that opera knows nor a folder",
            cause="a spelling mistake, or a path relative to another folder",
            fix=f"name one of {', '.join(s.library for s in declared.values() if s.library)}, or the folder of a checkout",
        )
    for name, source in declared.items():
        if all((root / entry).exists() for entry in source.checkout.files):
            root = _text(root.resolve())
            return Target(source, name, root, _stated_version(root, source), installed_version(source), True)
    expected = "; ".join(f"{name}: {', '.join(source.checkout.files)}" for name, source in declared.items())
    raise SourceError(
        f"{target} is no checkout that opera knows",
        cause=f"it holds none of the sets of files by which checkouts are recognised ({expected})",
        fix="give the top folder of a complete checkout",
    )


def extract(
    target: Target,
    *,
    workers: int = 2,
    equipped: str | None = None,
    done: Collection[str] = (),
    timeout: float | None = None,
) -> Iterator[FileReport]:
    """Run the suites of a target in child processes and yield how each file went, in an order that does not vary.

    Args:
        target: See `recognise`.
        workers: Child processes at a time.
        equipped: Name of the compiler whose own tests the target is; None for a library's suites.
        done: Files (FileReport.file) that an earlier extraction finished: they are skipped.
        timeout: Seconds a file may take, in place of what its suite declares.

    Raises SourceError where the target does not fit, holds no test files, or not one of its files could be run.
    """
    check_role(target, equipped)
    jobs = [(suite, file) for suite in target.source.suites for file in files(target, suite)]
    if not jobs:
        raise SourceError(
            f"no test files were found in {target.root}",
            cause="the checkout is incomplete, or its layout is newer than opera's declaration of it",
            fix=f"compare with the globs of sources/{target.name}.toml",
        )
    jobs = [(suite, file) for suite, file in jobs if file not in set(done)]
    reasons: list[str] = []
    with temporary.folder("extract") as folder:
        children = Children(folder)
        with ThreadPoolExecutor(workers) as executor:
            futures = [
                executor.submit(_run, children, target, timeout, number, *job) for number, job in enumerate(jobs)
            ]
            try:
                for future in futures:
                    report = future.result()
                    if report.status != "done":
                        reasons.append(f"{report.file}: {report.status}: {report.reason}")
                    yield report
                    report.spool.unlink(missing_ok=True)
            finally:
                executor.shutdown(wait=False, cancel_futures=True)
                children.close()
    if jobs and len(reasons) == len(jobs) and not done:
        raise SourceError(
            f"not one of the {len(jobs)} test files of {target.root} could be run",
            cause=f"the first said: {reasons[0]}",
            fix=f"install what the tests need, or a {target.source.package} whose version is near {target.version}"
            f" (installed: {target.installed})",
        )


def files(target: Target, suite: Suite) -> list[str]:
    """Return the files of a suite, relative to the target's root, sorted; of a driver, its parts."""
    if suite.kind == "driver":
        return [] if target.checkout else list(suite.parts)
    if not (target.checkout or suite.installed):
        return []
    paths = (path for glob in suite.globs for path in target.root.glob(glob))
    found = {path.relative_to(target.root).as_posix() for path in paths if path.is_file()}
    return sorted(name for name in found if not any(fnmatch(name, pattern) for pattern in suite.exclude))


def _run(children: Children, target: Target, timeout: float | None, number: int, suite: Suite, file: str) -> FileReport:
    """Run one file: in a process that others share where the suite allows that."""
    spool, limit = children.folder / f"{number}.jsonl", timeout or suite.timeout
    if (told := file.encode("utf-8", "backslashreplace").decode()) != file:
        reason = "the name of the file is no UTF-8 text"
        return FileReport(suite.name, told, "failed-import", reason, 0, 0, 0, {}, 0.0, spool)
    rest = (suite.arguments, suite.path, suite.stop, suite.resume, suite.inert, suite.driver)
    job = Job(suite.kind, str(target.root), file, str(spool), *rest)
    try:
        answer = children.run(_setup(target.source, suite), job, limit, keep=suite.shared_process)
    except Lost as lost:
        status, reason = lost.args
        answer = Answer(status, reason, 0, 0, 0, 0, {}, limit if status == "timeout" else 0.0)
    return FileReport(
        suite.name, file, answer.status, answer.reason, answer.tests, answer.failed, answer.calls,
        answer.left_out, answer.seconds, spool,
    )  # fmt: skip


def _setup(source: Source, suite: Suite) -> Setup:
    library = suite.library or source.library
    declared: dict[str, list[str]] = resources.declaration("instrumentation", library).get("points", {})
    return Setup(suite.name, library, suite.points or declared)


def check_role(target: Target, equipped: str | None) -> None:
    """Raise SourceError where a compiler's checkout is taken for a library's, or the other way round."""
    role = target.source.compiler
    if role and not equipped:
        raise SourceError(
            f"{target.root} is a checkout of the compiler {role}, not of a library",
            fix=f"`opera extract --equipped {role} {target.root}` reads its own tests for prioritization",
        )
    if equipped and role != equipped:
        raise SourceError(
            f"{target.root} holds no tests of the compiler {equipped}",
            cause=f"it was recognised as {target.name}",
            fix=f"give the folder of a checkout of {equipped}",
        )


def _text(root: Path) -> Path:
    """Return a path that is text, as it is stored; SourceError for others."""
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise SourceError(
            f"the path of {os.fsencode(root)!r} is no UTF-8 text",
            cause="a folder named in another encoding",
            fix="rename it",
        ) from None
    return root


def _installed(name: str, source: Source) -> Target:
    version = installed_version(source)
    spec = importlib.util.find_spec(source.package)
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(f"{name} is not installed", fix=f"pip install {source.distribution}")
    return Target(source, name, Path(next(iter(spec.submodule_search_locations))).parent, version, version, False)


def installed_version(source: Source) -> str:
    """Return the version of the package that a source's suites run against. Raises NotInstalled."""
    try:
        return importlib.metadata.version(source.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(
            f"{source.distribution} is not installed",
            cause="test suites run against the installed package, also those of a checkout",
            fix=f"pip install {source.distribution}",
        ) from None


def version_of(library: str) -> str:
    """Return the version of the installed library. Raises NotInstalled."""
    return next((installed_version(x) for x in sources().values() if x.library == library), "unknown")


def _stated_version(root: Path, source: Source) -> str:
    stated = source.checkout.version
    if stated is None or not (root / stated.file).is_file():  # a pipe or a device would be read without end
        return "unknown"
    try:
        with (root / stated.file).open(encoding="utf-8", errors="replace") as file:
            found = re.search(stated.regex, file.read(MAX_VERSION))
    except OSError as error:
        raise OperaError(f"{root} cannot be read: {error}") from None
    return found[1] if found and found[1].isprintable() and found[1].isascii() else "unknown"
