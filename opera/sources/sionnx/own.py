"""Opera's own specifications: the .td files of the content folder `sources`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opera.errors import SourceError
from opera.sources.sionnx import files
from opera.sources.sionnx.parse import parse
from opera.sources.sionnx.spec import Spec


@cache
def specifications() -> dict[str, Spec]:
    """Return operator signature → its specification, as written (skeleton.resolve completes it), sorted.

    Raises SourceError for an operator that two definitions are for, and for what `parse` refuses.
    """
    found: dict[str, Spec] = {}
    for path in sorted(files.own().glob("*.td")):
        for spec in parse(path.read_text(encoding="utf-8"), path.name):
            before = found.setdefault(spec.signature, spec)
            if before is not spec:
                raise SourceError(
                    f"{spec.file}:{spec.line}: {spec.signature} is specified a second time",
                    cause=f"the first one is {before.file}:{before.line}",
                )
    return dict(sorted(found.items()))


def folder() -> Path:
    """Return the folder that they lie in."""
    return files.own()
