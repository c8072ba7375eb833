"""The entry point of `opera extract --source docter`: which constraints or inputs a request asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from opera import plugins
from opera.errors import NotInstalled, SourceError, UsageError
from opera.sources import Extraction, Extractions, Request
from opera.sources.docter import documented, files, output
from opera.sources.docter.constraints import Api
from opera.sources.docter.extraction import INPUTS, Inputs, Settings, Work
from opera.sources.docter.files import Unread
from opera.sources.suites import suites
from opera.store.workspace import Workspace

MAX_SEED = 2**32 - 1
"""numpy's limit."""

MAKES = "inputs that the documentation's constraints admit (DocTer)"
"""What it makes, in words."""


def extraction(
    request: Request,
    *,
    count: Annotated[int, Meta(ge=1, description="Inputs for each way to call an operator.")] = INPUTS,
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED, description="Of all that is random.")] = 0,
    violating: Annotated[bool, Meta(description="Each input breaks one constraint, to find crashes.")] = False,
) -> Extractions:
    """Check a request; see opera.sources.Source."""
    known = list(plugins.registered(documented.GROUP))
    if request.library and request.library not in known:
        raise UsageError(f"there are no constraints for {request.library!r}", fix=f"choose from {', '.join(known)}")
    works, unread, origin = _imported(request, violating) if request.target else _builtin(request, known)
    names = [work.api.file for work in works]
    assert len(names) == len(set(names)), "files of constraints have different names"

    settings = Settings(count, seed, violating, request.timeout)

    def begin(workspace: Workspace) -> Iterator[Extraction]:
        yield Inputs(works, unread, origin, settings)

    return begin


def _imported(request: Request, violating: bool) -> tuple[list[Work], list[Unread], str]:
    """Read a folder of constraint files, or one that DocTer's fuzzer wrote; return also what is not used, and its name."""
    folder = Path(request.target).expanduser()
    if output.recognised(folder):
        if violating:
            raise UsageError("--violating makes inputs, and a folder of inputs was given", fix="leave it away")
        found, unread = output.read_folder(folder)
        works = [Work(_library(api), api, given) for api, given in found]
    else:
        apis, unread = files.read_folder(folder)
        works = [Work(_library(api), api) for api in apis]
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


def _library(api: Api) -> str:
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
