"""`opera extract --source docter`: inputs from constraints, run in child processes, their instances stored as a suite's are."""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from opera import plugins, resources, temporary
from opera.capture.child import Answer, Job, Setup
from opera.errors import NotInstalled, SourceError, UsageError
from opera.sources.children import Children, Lost, how
from opera.sources.docter import documented, driver, files, output
from opera.sources.docter.constraints import Api
from opera.sources.docter.driver import Attempt, Plan, Result
from opera.sources.docter.files import Unread
from opera.sources.docter.tell import Totals
from opera.sources.generators import Extraction, Request
from opera.sources.suites import suites
from opera.sources.suites.suites import FileReport
from opera.store.workspace import Crash, Workspace

SOURCE = "docter"
"""The migration source that provenances name."""
DRIVER = "opera.sources.docter.driver"
INPUTS = 40
"""Inputs for each API, unless --count says otherwise."""
DEATHS = 3
"""An API that killed its process so often is left at that."""
PATIENCE = 300.0
"""Seconds that one API may take beyond what its inputs may."""
T = TypeVar("T")


class Work(msgspec.Struct, frozen=True):
    """What is to be done: one API of one library, with inputs that were made elsewhere if there are any."""

    library: str
    api: Api
    given: list[dict[str, object]] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How one API went."""

    work: Work
    result: Result
    crashes: tuple[Crash, ...]
    report: FileReport


def extraction(request: Request) -> Extraction:
    """Check a request; see opera.sources.generators."""
    known = list(plugins.registered(documented.GROUP))
    if request.library and request.library not in known:
        raise UsageError(f"there are no constraints for {request.library!r}", fix=f"choose from {', '.join(known)}")
    works, unread, origin = _imported(request) if request.target else _builtin(request, known)
    names = [work.api.file for work in works]
    assert len(names) == len(set(names)), "files of constraints have different names"

    def extract(workspace: Workspace) -> bool:
        return _extract(workspace, request, works, unread, origin)

    return extract


def _imported(request: Request) -> tuple[list[Work], list[Unread], str]:
    """Read a folder of constraint files, or one that DocTer's fuzzer wrote."""
    folder = Path(request.target).expanduser()
    if output.recognised(folder):
        if request.violating:
            raise UsageError("--violating makes inputs, and a folder of inputs was given", fix="leave it away")
        found, unread = output.read_folder(folder)
        works = [Work(_library(api, request), api, given) for api, given in found]
    else:
        apis, unread = files.read_folder(folder)
        works = [Work(_library(api, request), api) for api in apis]
    unread += [
        Unread(x.api.file, f"package {x.api.package!r} is none of opera's libraries") for x in works if not x.library
    ]
    works = [x for x in works if x.library and request.library in ("", x.library)]
    for library in {x.library for x in works}:
        suites.version_of(library)
    if not works:
        raise SourceError(
            f"{folder} holds nothing of a library that opera calls", fix="give PyTorch's or TensorFlow's folder"
        )
    return works, unread, str(folder.resolve())


def _library(api: Api, request: Request) -> str:
    return files.PACKAGES.get(api.package.lower(), "")


def _builtin(request: Request, known: Sequence[str]) -> tuple[list[Work], list[Unread], str]:
    works = []
    for library in [request.library] if request.library else known:
        try:
            suites.version_of(library)
        except NotInstalled:
            if request.library:
                raise
            continue
        works += [Work(library, api) for api in documented.get(library).builtin()]
    if not works:
        raise NotInstalled(
            "no library with constraints is installed", fix="pip install 'opera[torch]' or 'opera[keras]'"
        )
    return works, [], "what the installed library documents"


def _extract(workspace: Workspace, request: Request, works: list[Work], unread: list[Unread], origin: str) -> bool:
    started = time.monotonic()
    libraries = sorted({work.library for work in works})
    installed = ", ".join(f"{name} {suites.version_of(name)}" for name in libraries)
    count = request.count or INPUTS
    how = f"{count} inputs, seed {request.seed}" + (", violating" if request.violating else "")
    key = f"{SOURCE} {origin} on {installed}: {how}"
    if request.rerun:
        workspace.forget_extraction(key)
    told = {"target": origin, "name": SOURCE, "version": installed, "installed": installed, "equipped": ""}
    stated = {work.api.file: _digest(work) for work in works}
    done = {
        name
        for name in workspace.extraction(key, told)
        if name.rpartition("@")[2] == stated.get(name.rpartition("@")[0])
    }
    todo = [work for work in works if f"{work.api.file}@{stated[work.api.file]}" not in done]
    if done:
        print(f"{len(works) - len(todo)} APIs were done before; --rerun runs them again", file=sys.stderr)
    totals = Totals(request.violating, unread)
    for outcome in _run(todo, request, count):
        new = _store(workspace, key, outcome, stated[outcome.work.api.file], request.violating)
        totals.add(outcome.work.api.file, outcome.result, outcome.crashes, outcome.report, new)
    totals.show(time.monotonic() - started)
    return bool(done) or bool(totals.taken) or bool(request.violating and totals.inputs)


def _digest(work: Work) -> str:
    """What makes an API worth doing again: other constraints, or other inputs."""
    form = msgspec.json.encode([files.document(work.api), work.given], order="sorted", enc_hook=repr)
    return hashlib.sha256(form).hexdigest()[:8]


def _store(workspace: Workspace, key: str, outcome: Outcome, digest: str, violating: bool) -> int:
    """Store an API's instances, then that it is done; inputs that violate constraints are no tests of compilers."""
    report, lines = outcome.report, Counter[bool]()
    new = 0 if violating else workspace.add_captured(report.records(lines))
    document = {
        name: getattr(report, name) for name in ("source", "reason", "tests", "failed", "calls", "left_out", "seconds")
    }
    document |= {"captured": lines[True], "new": new, "damaged": lines[False]}
    document |= {"result": msgspec.to_builtins(outcome.result)}
    workspace.save_extraction_file(
        key,
        f"{report.file}@{digest}",
        report.status,
        document,
        instead_of=f"{report.file}@",
        crashes=outcome.crashes,
    )
    return new


def _run(works: list[Work], request: Request, count: int) -> Iterator[Outcome]:
    """Run all in child processes, in order; libraries one after the other, so that a child needs only one."""
    with temporary.folder("docter") as folder:
        children = Children(folder)
        pool = _Pool(children, request, count)
        with ThreadPoolExecutor(request.workers) as executor:
            futures = [executor.submit(pool.run, number, work) for number, work in enumerate(works)]
            try:
                for future in futures:
                    outcome = future.result()
                    yield outcome
                    outcome.report.spool.unlink(missing_ok=True)
            finally:
                executor.shutdown(wait=False, cancel_futures=True)
                children.close()


class _Pool:
    """Runs APIs in children, each of one library."""

    def __init__(self, children: Children, request: Request, count: int) -> None:
        self._children, self._request, self._count = children, request, count

    def run(self, number: int, work: Work) -> Outcome:
        """Run the inputs of one API; after each that kills its process, go on with the next one."""
        folder = self._children.folder
        spool, path = folder / f"{number}.jsonl", folder / f"{number}.plan"
        crashes: list[Crash] = []
        total, left_out, calls, started = Result(), Counter[str](), 0, time.monotonic()
        plan = Plan(
            work.library, work.api, self._request.seed, self._count, 0, self._request.violating, work.given,
            self._request.timeout or driver.SECONDS,
        )  # fmt: skip
        while True:
            answer, attempt = self._answer(plan, path, spool, total)
            calls += answer.calls
            left_out.update(answer.left_out)
            status, reason = answer.status, answer.reason
            if status != "died" or attempt is None:
                break
            crashes.append(Crash(how(reason), attempt.operator, attempt.values, attempt.violates))
            plan = msgspec.structs.replace(plan, start=attempt.number + 1)
            if len(crashes) >= DEATHS:
                status, reason = "done", f"{len(crashes)} inputs ended the process; the rest was not tried"
                break
        path.unlink(missing_ok=True)
        report = FileReport(
            SOURCE, work.api.file, status, reason, total.taken + total.refused, total.refused, calls, dict(left_out),
            round(time.monotonic() - started, 3), spool,
        )  # fmt: skip
        return Outcome(work, total, tuple(crashes), report)

    def _answer(self, plan: Plan, path: Path, spool: Path, total: Result) -> tuple[Answer, Attempt | None]:
        """Run a plan, add its result, and return the input that ran last."""
        path.write_bytes(msgspec.msgpack.encode(plan))
        points: dict[str, list[str]] = resources.declaration("instrumentation", plan.library).get("points", {})
        job = Job("driver", str(path.parent), str(path), str(spool), driver=DRIVER)
        inputs = plan.count if plan.given is None else len(plan.given)
        try:  # an input that hangs ends its process by a signal of its own
            answer = self._children.run(Setup(SOURCE, plan.library, points), job, PATIENCE + inputs * plan.seconds)
        except Lost as lost:
            answer = Answer(str(lost.args[0]), str(lost.args[1]), 0, 0, 0, 0, {}, 0.0)
        attempt = _read(driver.attempt_file(path), Attempt)
        result = _read(driver.result_file(path), Result) or (attempt.so_far if attempt else Result())
        for file in (driver.attempt_file(path), driver.result_file(path)):
            file.unlink(missing_ok=True)
        total.join(result)
        total.operator = total.operator or (attempt.operator if attempt else "")
        return answer, attempt


def _read(path: Path, kind: type[T]) -> T | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None
