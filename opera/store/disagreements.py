"""References that disagreed when programs were generated: facts of extractions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opera.store.rows import Disagreement
from opera.store.workspace import Workspace

NAME = "disagreements"
"""Under which the document of an extraction's file holds them."""


class _Document(msgspec.Struct):
    disagreements: list[Disagreement] = []


def all_of(workspace: Workspace) -> Iterator[Disagreement]:
    """Yield all that extractions found, by operator; those of an extraction that was forgotten are gone with it."""
    rows = workspace.stream(
        "SELECT document FROM extraction_files WHERE instr(document, ?) > 0 ORDER BY file, extraction",
        (b'"disagreements":[{',),
    )
    for (document,) in rows:
        yield from msgspec.json.decode(document, type=_Document).disagreements
