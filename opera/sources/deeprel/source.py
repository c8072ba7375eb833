"""The entry point of `opera extract --source deeprel`."""

from __future__ import annotations

from pathlib import Path

from opera import plugins
from opera.errors import NotInstalled, SourceError, UsageError
from opera.sources.deeprel import apis, folder, published, stage
from opera.sources.generators import Extraction, Request
from opera.store.workspace import Workspace


def extraction(request: Request) -> Extraction:
    """Check a request, and return what fulfils it; see opera.sources.generators.Source."""
    if request.violating or request.seed:
        raise UsageError(
            f"DeepREL has no use for {'--violating' if request.violating else '--seed'}",
            cause="it makes no inputs: operators exchange those that were captured",
            fix="leave it out, or take --source docter",
        )
    known = list(plugins.registered(apis.GROUP))
    target, library = request.target, request.library
    if target in known and not Path(target).is_dir():
        target, library = "", library or target
    if library and library not in known:
        raise SourceError(f"DeepREL knows no relations of {library!r}", fix=f"choose from {', '.join(known)}")
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise NotInstalled(
            "SciPy is not installed", cause="arguments are matched by assignment", fix="pip install 'opera[generators]'"
        ) from None
    settings = stage.Settings(request.workers, request.rerun, request.count, request.timeout)
    if target:
        found = published.read_folder(Path(target))
        return lambda workspace: folder.extract(workspace, Path(target), found, library, settings)
    return lambda workspace: _builtin(workspace, [library] if library else known, settings, bool(library))


def _builtin(workspace: Workspace, libraries: list[str], settings: stage.Settings, named: bool) -> bool:
    """Infer relations of every library; where none was named, of those that the workspace holds instances of."""
    held = [name for name in libraries if named or (workspace.operators(name) and stage.installed(name))]
    if not held:
        raise SourceError(
            f"the workspace holds no instances of {' or '.join(libraries)}",
            cause="relations are verified on invocations that another source captured",
            fix="run `opera extract torch` first",
        )
    done = [stage.extract(workspace, name, settings) for name in held]
    return all(done)
