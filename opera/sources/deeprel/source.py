"""The entry point of `opera extract --source deeprel`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from opera import plugins
from opera.errors import NotInstalled, SourceError
from opera.sources import Extraction, Extractions, Request
from opera.sources.deeprel import apis, folder, published, stage
from opera.store.workspace import Workspace

MAKES = "inputs of related operators (DeepREL)"
"""What it makes, in words."""


def extraction(
    request: Request,
    *,
    count: Annotated[
        int,
        Meta(ge=0, description="Invocations of an operator tried on a partner; 0 is 100 to verify, 200 to exchange."),
    ] = 0,
) -> Extractions:
    """Check a request; see opera.sources.Source."""
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
    settings = stage.Settings(count, request.timeout)
    if target:
        found = published.read_folder(Path(target))
        return partial(folder.extractions, folder=Path(target), found=found, library=library, settings=settings)
    return partial(_builtin, libraries=[library] if library else known, settings=settings, named=bool(library))


def _builtin(
    workspace: Workspace, *, libraries: list[str], settings: stage.Settings, named: bool
) -> Iterator[Extraction]:
    """Infer relations of every library; where none was named, of those that the workspace holds instances of."""
    held = [name for name in libraries if workspace.operators(name) and (named or stage.installed(name))]
    if not held:
        raise SourceError(
            f"the workspace holds no instances of {' or '.join(libraries)}",
            cause="relations are verified on invocations that another source captured",
            fix=f"run `opera extract {libraries[0] if named else 'torch'}` first",
        )
    for name in held:
        yield stage.Relations(workspace, name, settings)
