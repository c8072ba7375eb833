"""Worker side of `opera coverage`: load a test, and tell which statements of the frontend's own files that ran."""

from __future__ import annotations

import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from opera import compilers
from opera.errors import NotInstalled
from opera.pool.forkserver import note
from opera.programs import migrated
from opera.programs.verdicts import Job
from opera.run import worker
from opera.store import folders


class TraceJob(msgspec.Struct, frozen=True):
    """A test to be loaded, and the packages of the frontend whose statements are told."""

    job: Job
    packages: tuple[str, ...]


class Traced(msgspec.Struct, frozen=True):
    """What loading a test covered.

    Attributes:
        files: File, relative to its package → bitmap of the lines that ran (coverage.numbits).
        loaded: Whether the frontend took the model; what it refuses covers statements too.
    """

    files: dict[str, bytes]
    loaded: bool
    seconds: float


def trace(job: TraceJob) -> Traced:
    """Load a test through one variant under coverage.py, with a context of its own; only the frontend's files are traced."""
    measured, roots = _tracer(job.packages)
    from coverage.numbits import nums_to_numbits

    worker.prepared(job.job.compiler)
    frontend = compilers.frontend(job.job.compiler, job.job.library)
    case = worker.case_of(job.job, migrated.read_manifest(folders.here().test(job.job.test)))
    note("load")
    started, loaded = time.perf_counter(), False
    measured.start()
    measured.switch_context(job.job.test)
    try:
        with tempfile.TemporaryDirectory() as folder:
            frontend.load(compilers.exported(frontend, case, Path(folder)))
        loaded = True
    except MemoryError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        measured.stop()
    data = measured.get_data()
    data.set_query_context(job.job.test)
    files = {}
    for file in data.measured_files():
        lines = data.lines(file)
        if lines:
            files[_relative(Path(file), roots)] = nums_to_numbits(lines)
    measured.erase()
    return Traced(files, loaded, time.perf_counter() - started)


def _relative(file: Path, roots: dict[str, Path]) -> str:
    package, root = next((name, root) for name, root in roots.items() if file.is_relative_to(root))
    return f"{package}/{file.relative_to(root)}"


@cache
def _tracer(packages: tuple[str, ...]) -> tuple[Any, dict[str, Path]]:
    try:
        from coverage import Coverage
    except ImportError:
        raise NotInstalled(
            "coverage.py is not installed where the compiler is", fix='pip install "opera[benchmark]"'
        ) from None
    roots = {}
    for name in packages:
        found = find_spec(name)
        if found is not None and found.origin:
            roots[name] = Path(found.origin).parent.resolve()
    source = [str(root) for root in roots.values()]
    # No data file: what is measured stays in memory. Modules are imported before, so their import is nobody's.
    measured = Coverage(data_file=None, config_file=False, source=source, messages=False)
    measured.set_option("run:disable_warnings", ["module-not-measured", "no-data-collected", "module-not-imported"])
    return measured, roots
