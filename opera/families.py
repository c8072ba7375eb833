"""Families of migration sources: what is compared with what. The paper's are human-written tests, DocTer and DeepREL."""

from __future__ import annotations

from functools import cache

from opera import resources

TESTS = "tests"
"""The family of what people wrote: the suites that `sources/*.toml` declare, and scripts and suites of the user's own."""
COMMAND = "command"
"""The source that `opera extract --library L -- COMMAND` names."""


def family(source: str) -> str:
    """Return the family of a source: TESTS, or for all that is not known to be written by people, the source itself."""
    return TESTS if source == COMMAND or source in _suites() else source


def order(names: set[str]) -> list[str]:
    """Return families in the order in which reports show them: TESTS first."""
    return sorted(names, key=lambda name: (name != TESTS, name))


@cache
def _suites() -> frozenset[str]:
    files = [path.stem for path in resources.content("sources").glob("*.toml")]
    return frozenset(suite["name"] for file in files for suite in resources.declaration("sources", file)["suites"])
