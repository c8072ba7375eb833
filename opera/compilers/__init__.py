"""Compilers under test: one module a compiler, each with the same few functions in the same order.

A compiler is a module (or any object) that fits the `Compiler` protocol and is named in the entry-point group
`opera.compilers`. It is imported inside worker processes only; what it needs beside its own package is numpy and
msgspec. examples/opera-onnx-reference is a worked third-party one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol

import msgspec

from opera import plugins
from opera.programs.values import Value


class Variant(msgspec.Struct, frozen=True):
    """One route into a frontend.

    Attributes:
        name: Short name (`inputs`, `constants`).
        artefact: The artefact it consumes (`onnx`, `onnx-constants`); `live` is the library's own model in the process.
        after: When it is tried: `always`, or `rejected`: only where the variants before it ended in `unsupported`
            or failed at load, which decides whether the operator is supported at all.
        preload: Modules imported once, before workers of this frontend are forked, beside the compiler's PRELOAD.
    """

    name: str
    artefact: str
    after: str = "always"
    preload: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True):
    """What a compiler is given: the model file, what to feed, and the names of the outputs in order.

    Attributes:
        model: The artefact's file.
        feeds: Input name → value (Tensor, Sequence or Optional of opera.programs.values), in the model's input order.
        outputs: Names of the outputs.
        variant, artefact: Names of the route that is tried, and of what it consumes.
        live: Rebuilds the library's own model (opera.libraries.Exporting.live), where the artefact is `live`.
    """

    library: str
    operator: str
    model: Path
    feeds: dict[str, Value]
    outputs: tuple[str, ...]
    variant: str = ""
    artefact: str = ""
    live: Callable[[], Any] | None = None


class Compiler(Protocol):
    """The protocol. All functions but the attributes may raise anything: that is what is being tested.

    A failure is the compiler's only if its own packages raised it, or native code that they hold (opera.run.blame).
    They are named by an attribute `PACKAGES`, a tuple; without one they are the top-level packages of PRELOAD and of the
    variants' preloads. An adapter that refuses a test on purpose raises a subclass of shared.packing.Refusal, and one whose
    compiler returned nothing at all raises NoAnswer: what else it raises itself is counted as opera's `error`.

    `unsupported` may be given a stand-in of what was raised, when rules have changed since: it has the same text, causes and
    names of classes, and nothing else.

    A compiler that computes some dtype in a narrower one by design may say so in an attribute `COMPUTES_IN` (dtype →
    dtype): its outputs of that dtype are then compared at the narrower one's tolerance.

    One through whose workers run functions that opera replaced by quicker ones (opera.libraries.torch.preload and
    torch_export) says so in an attribute `UNPATCHED` (library → environment variable → value): workers that are started
    with these leave everything as the user has it, and findings are confirmed in such a one.
    """

    NAME: str
    """Name on the command line (`openvino`)."""
    PACKAGE: str
    """What `pip install` needs to get it, for messages."""
    PRELOAD: tuple[str, ...]
    """Modules imported once, before workers of any frontend are forked. Importing them must start no threads that matter."""
    FRONTENDS: Mapping[str, tuple[Variant, ...]]
    """library → variants, in the order they are tried."""

    def version(self) -> str:
        """Return the compiler's version; ImportError where it is not installed."""

    def options(self) -> dict[str, str]:
        """Return options and target that decide results: part of a verdict's identity."""

    def prepare(self) -> None:
        """Set up a fresh worker (one thread, quiet logs); called once after the fork."""

    def load(self, case: Case) -> Any:
        """Convert the model: the model loading stage, the one under test."""

    def compile(self, loaded: Any, case: Case) -> Any:
        """Compile what `load` returned."""

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        """Run it and return the outputs as opera.programs.values, in the order of `case.outputs`."""

    def unsupported(self, stage: str, error: BaseException) -> str | None:
        """Return what is unsupported where the compiler says so in its own words, else None (then it is a crash)."""

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the code that converts the operator, or an empty string; `error` is None for wrong outputs."""


GROUP = "opera.compilers"


def registered() -> dict[str, EntryPoint]:
    """Return name → entry point of all compilers that this environment registers, sorted by name."""
    return plugins.registered(GROUP)


def get(name: str) -> Compiler:
    """Import the module of a compiler (not the compiler itself). Raises UsageError for an unknown name."""
    module: Compiler = plugins.load(GROUP, "compiler", name)
    return module


def frontend_name(compiler: str, library: str) -> str:
    """Return the name of a frontend: `tvm-onnx`."""
    return f"{compiler}-{library}"
