"""Where issues go, and what their titles begin with: templates/issues/trackers.toml."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import quote_plus

import msgspec

from opera import compilers, resources
from opera.errors import UsageError
from opera.triage import part
from opera.triage.reproducers import reproducer

TITLES = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}
"""Library → what it is called in prose."""
FILES = {"onnx": "ONNX", "tflite": "TFLite"}
"""Artefact that is a file which compilers import → what its importer is called."""


class Tracker(msgspec.Struct, frozen=True):
    """Where issues go: see templates/issues/trackers.toml. `template` is the tracker's name where none is given."""

    form: str
    search: str = ""
    template: str = ""
    title: str = ""
    compilers: tuple[str, ...] = ()
    frontends: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def searched(self, words: Iterable[str]) -> str:
        """Return the address of a search for all of some words, among issues and pull requests: a mend may be on its way."""
        search = self.search or f"{self.form.partition('/new')[0]}?q={{}}"
        return search.format(quote_plus(" ".join(words)))


def default(frontend: str, laid: str, file: str = "") -> str:
    """Return the tracker of the part that is wrong: the library's where it is to blame, else the compiler's or exporter's.

    Args:
        file: Of the code of an exporter's that is at fault, from its package on, where it is known.
    """
    compiler, _, library = frontend.rpartition("-")
    package = file.partition("/")[0]
    for name, of in trackers().items():
        own = (frontend in of.frontends or compiler in of.compilers) and (not of.packages or package in of.packages)
        if library in of.libraries if laid == part.LIBRARY else own:
            return name
    raise UsageError(
        f"no form of a tracker is known for {frontend}", fix=f"choose one: --tracker {', '.join(trackers())}"
    )


@cache
def _declared() -> dict[str, Any]:
    return resources.declaration("templates/issues", "trackers")


@cache
def trackers() -> dict[str, Tracker]:
    """Return the trackers whose forms are known."""
    return msgspec.convert(_declared()["tracker"], dict[str, Tracker])


def versions(environment: dict[str, Any]) -> dict[str, str]:
    """Return name → version of the compiler, of what made the model, the compiler's first, and of NumPy, with which several of
    them compute."""
    compiler, exporter = environment["compiler"], reproducer.named(environment["exporter"])
    of = _declared()["version_of"].get(compiler, compilers.title(compiler))
    found = exporter if of in exporter else {of: environment["version"], **exporter}
    return {**found, "numpy": environment["numpy"]} if "numpy" in environment else found


def named(name: str) -> Tracker:
    """Return the tracker of that name. Raises UsageError where there is none."""
    if name not in trackers():
        raise UsageError(f"there is no form for a tracker called {name!r}", fix=f"one of {', '.join(trackers())}")
    return trackers()[name]


def prefix(name: str, frontend: str, variant: str = "") -> str:
    """Return what titles begin with: the tracker's own word, and which frontend of several, or which exporter.

    Of a file that is given it is the file's, whatever library it was made of: it is that importer's readers who see it.
    """
    tracker, (compiler, _, library) = named(name), frontend.rpartition("-")
    if tracker.packages:  # of one exporter alone
        return tracker.title
    if library in tracker.libraries:
        return f"{tracker.title}[{compilers.title(compiler).removeprefix('The ')}] "
    several = len(compilers.get(compiler).FRONTENDS) > 1
    return tracker.title + (f"[{importer(frontend, variant)}] " if several else "")


def importer(frontend: str, variant: str = "") -> str:
    """Return what a compiler's importer is called that is given a model: of a file, else of the library."""
    compiler, _, library = frontend.rpartition("-")
    return FILES.get(compilers.artefact(compiler, library, variant), TITLES.get(library, library))


def called(name: str, version: str) -> str:
    """Return what a compiler is called, with its version, and with what the version is of where that has another name."""
    of = _declared()["version_of"].get(name, "")
    return f"{compilers.title(name)} ({of} {version})" if of else f"{compilers.title(name)} {version}"
