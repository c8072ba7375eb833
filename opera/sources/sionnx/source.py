"""The entry point of `opera extract --source sionnx`: which specifications are asked for, and how cases are made of them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from opera.errors import NotInstalled, SourceError, UsageError, near
from opera.sources import Extraction, Extractions, Request
from opera.sources.sionnx import files
from opera.sources.sionnx.driver import COMPAT
from opera.sources.sionnx.extraction import LIBRARY, Cases, Settings
from opera.sources.sionnx.generate import COUNT, FULL, SMOKE
from opera.store.workspace import Workspace

MAX_SEED = 2**32 - 1

MAKES = "models generated from the operators' specification (Sionnx)"
"""What it makes, in words."""


def extraction(
    request: Request,
    *,
    full: Annotated[
        bool, Meta(description="All combinations of types, attributes and boundaries, not a sample.")
    ] = False,
    smoke: Annotated[
        bool, Meta(description="One value of each attribute, drawn once; what is done by default.")
    ] = False,
    operator: Annotated[str, Meta(description="Only these operators (a glob such as 'Reduce*'); tells of each.")] = "*",
    count: Annotated[int, Meta(ge=1, description="Cases of each version of an operator.")] = COUNT,
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED, description="Of all that is random.")] = 0,
    zero: Annotated[bool, Meta(description="Dimensions of size 0 are boundaries, too.")] = False,
    nonfinite: Annotated[bool, Meta(description="NaN and infinities are boundaries of elements, too.")] = False,
    compat: Annotated[bool, Meta(description="Make cases as the published code does, not as the paper says.")] = False,
    all_versions: Annotated[bool, Meta(description="Every version of an operator, not the newest alone.")] = False,
    algorithms: Annotated[
        bool,
        Meta(description="Run the .algorithm files of the checkout, which are anybody's code, as one more reference."),
    ] = False,
) -> Extractions:
    """Check a request; see opera.sources.Source."""
    if full and smoke:
        raise UsageError("--full and --smoke exclude each other", fix="leave one away; --smoke is the default")
    if compat and (zero or nonfinite):
        raise UsageError("the published code makes neither empty tensors nor NaN", fix="leave --compat away")
    if request.library not in ("", LIBRARY):
        raise UsageError(
            f"there are no specifications for {request.library!r}", fix=f"leave --library away: it is {LIBRARY}"
        )
    if algorithms and not request.target:
        raise UsageError(
            "--algorithms runs what a checkout holds, and none was given",
            fix="opera extract --source sionnx ../sionnx --algorithms",
        )
    installed = _installed()
    folder = Path(request.target).expanduser() if request.target else files.own()
    found = files.read(folder, every=all_versions, algorithms=algorithms, alone=compat)
    works = [x for x in found.works if _matches(x.operator, operator)]
    if not works:
        _nothing(found, folder, operator)
    mode = f"{COMPAT} " * compat + (FULL if full else SMOKE)
    settings = Settings(mode, count, seed, zero, nonfinite, request.timeout)
    origin = str(folder.resolve()) if request.target else "opera's own specifications"

    def begin(workspace: Workspace) -> Iterator[Extraction]:
        yield Cases(works, found.unread, origin, installed, settings, operator != "*")

    return begin


def _matches(signature: str, pattern: str) -> bool:
    """Whether an operator matches a glob, by its signature or, without the domain, its name."""
    return any(fnmatchcase(name, pattern) for name in (signature, signature.rpartition("::")[2]))


def _installed() -> str:
    """Return the versions of what is generated for, and of the references."""
    try:
        held = [f"onnx {importlib.metadata.version('onnx')}"]
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled("onnx is not installed, whose schemas specifications are completed by") from None
    for name in ("onnxruntime",):
        try:
            held.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            held.append(f"no {name}")
    return ", ".join(held)


def _nothing(found: files.Found, folder: Path, operator: str) -> None:
    """Raise the error that fits."""
    names = sorted({x.operator for x in found.works})
    if names:
        raise UsageError(
            f"no specification is of an operator {operator!r}",
            cause=near(operator, names)
            or "operators are named as ONNX names them, those of a domain `ai.onnx.ml::Scaler`",
            fix="give a glob in quotes, such as 'Reduce*'",
        )
    first = found.unread[0]
    raise SourceError(f"{folder} holds no specification that can be used", cause=f"{first.file}: {first.reason}")
