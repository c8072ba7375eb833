"""Who else is asked about a program: the compilers that its library asks for second opinions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from opera import compilers, resources
from opera.run.probe import Question


def asked(library: str) -> tuple[str, ...]:
    """Return the compilers that a library asks where opera computed what is expected; none where its own word stands alone."""
    return tuple(resources.declaration("instrumentation", library).get("independent", {}).get("evaluator", ()))


def here(frontend: str) -> Iterator[tuple[str, Question]]:
    """Yield those that run where opera does, but for a frontend's own: name and version, and a question, of nothing yet."""
    compiler, _, library = frontend.rpartition("-")
    for name in asked(library):
        with suppress(ImportError):
            if name != compiler:
                version = compilers.get(name).version()
                yield f"{name} {version}", Question(frontend=compilers.frontend_name(name, library))
