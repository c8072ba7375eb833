"""Libraries whose operators are tested: one module a library, each with the same few functions in the same order.

A library is a module (or any object) that fits the `Library` protocol and is named in the entry-point group
`opera.libraries`. Its functions are called inside library-side worker processes only, for they import the library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from opera import plugins
from opera.errors import CorpusError, InvalidTest, NotInstalled, UsageError, near
from opera.libraries.documented import Quote, Wrong
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Artefact, Manifest
from opera.programs.program import Call, Captured, Graph, Instance, Program
from opera.programs.values import Message, Value


class Library(Protocol):
    """The protocol."""

    NAME: str
    PACKAGE: str
    """What `pip install` needs to get it, for messages."""
    PRELOAD: tuple[str, ...]
    """Modules imported once, before library-side workers are forked."""

    def version(self) -> str:
        """Return the library's version; ImportError where it is not installed."""

    def exporter(self) -> dict[str, str]:
        """Return what decides how artefacts look (name → version): part of a migrated test's identity."""

    def wrap(self, captured: Captured, test: str, directory: Path) -> Manifest:
        """Make a migrated test on disk. Raises InvalidTest where the library itself rejects the case."""

    def opinions(self, manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
        """Ask every other implementation that is there, except the compiler named `besides`, for the outputs."""

    def undefined(self, instance: Instance, expected: list[Value]) -> str | None:
        """Return why the library leaves the result of this call undefined, else None.

        An opera.oracle.undefined.Undefined says of which elements; any other text stands for all of them.
        """

    def steps(self, program: Graph) -> list[tuple[Instance, list[Value]]]:
        """Return each call of a program with the values of its arguments, and what the library returns for them.

        Raises InvalidTest where that cannot be told.
        """

    def reproducer(self, manifest: Manifest, directory: Path, program: Program, variant: str) -> dict[str, object]:
        """Return what the reproducer template of this library needs: literals only, never code from a value."""

    def specification(self, operator: str) -> str:
        """Return the address of an operator's documentation, or nothing; imports nothing heavy."""

    def equipped_defaults(self, operators: Iterable[str]) -> dict[str, dict[str, Value]]:
        """Return operator → parameter name → default, `programs.values.NO_DEFAULT` where the schema has none."""

    def canaries(self) -> tuple[Captured, Captured]:
        """Return a test that every working compiler passes, and one whose expected output is wrong on purpose."""


class Exporting(Library, Protocol):
    """What a library has beside that if its tests offer artefacts (Manifest.offers) or hold the artefact `live`."""

    def export(self, manifest: Manifest, directory: Path, artefact: str) -> Artefact:
        """Write the file of an artefact that the test offers. Whatever it raises is the exporter's failure."""

    def live(self, manifest: Manifest, directory: Path) -> Any:
        """Rebuild the model in this process, for compilers that need the library itself; they know its type."""


class Weighing(Library, Protocol):
    """What a library has beside that if further implementations can be asked where the first leave an expectation in doubt."""

    DISPUTING: str
    """The compiler by whose answers tests are disputed from the start: its own do not excuse it. May be missing."""

    def further(self, manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
        """Yield what those compute that `opinions` does not ask, but the compiler named `besides`; each when it is taken."""

    def lacking(self, manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
        """Yield what the program computes where something of it is left out or is another, named for what that is."""


class Graphed(Library, Protocol):
    """What a library has beside that if one call of it may be a graph of many operations, of which it knows no calls."""

    def operations(self, program: Program) -> int:
        """Return how many operations that compute something a program becomes. Raises InvalidTest where it becomes none."""


class Expanding(Library, Protocol):
    """What a library has beside that if an instance may hold what its operator is made of."""

    def expanded(self, instance: Instance) -> list[Program]:
        """Return the calls that an instance is made of, each with the values of its arguments, and the graph that they make.

        Empty where it is one call itself.

        Raises InvalidTest where that cannot be told.
        """


class Documenting(Library, Protocol):
    """What a library has beside that if its documentation can be quoted."""

    def documented(self, call: Instance, parameters: list[str], wrong: Wrong) -> list[Quote]:
        """Return what it says of parameters and inputs of these names, of what is wrong, and of special inputs.

        What it does not speak of is left out. ImportError where the library is not here to ask.
        """

    def described(self, call: Instance) -> dict[str, str]:
        """Return the name of an input of a call → what the documentation says of it (read by `opera.libraries.bounds`)."""


class Older(msgspec.Struct, frozen=True):
    """A program as of an older version of its library's operators; `same`: whether their documentation says the same there."""

    program: Program
    same: bool


class Versioned(Library, Protocol):
    """What a library has beside that if its operators have versions."""

    def older(self, program: Program) -> list[Older]:
        """Return a program as of each older version of its operators that admits its parameters, inputs and types.

        The newest comes first. Of versions in which none of its operators changed there is one, the oldest.
        """


class Form(NamedTuple):
    """How a call is written, and programs that are written otherwise and compute the same.

    Attributes:
        says: How it is told.
        others: Makes these programs.
        one_of: Name of a group, of which the first alone is told that decides.
    """

    says: str
    others: Callable[[], list[Program]]
    one_of: str = ""


class Nesting(Library, Protocol):
    """What a library has beside that if its calls hold programs: the branches of `If`."""

    def shortened(self, program: Program) -> list[Program]:
        """Return programs with less in what a call holds, each once; none where none holds any. They may mean nothing."""

    def bodies(self, call: Instance, held: Collection[str]) -> list[Program]:
        """Return what a call holds as programs, given what it takes at first; inputs of these names are constants there."""

    def retyped(self, body: Message, dtype: str, other: str, of: Callable[[Any], Any]) -> Message:
        """Return a body in which all that is of one dtype is of another; `of` turns tensors. As it is where nothing is."""

    def forms(self, program: Program) -> list[Form]:
        """Return what is peculiar about how calls, and programs that they hold, are written; nothing where it is not here."""


class Aliasing(Library, Protocol):
    """What a library has beside that if its documentation says of operators that they are others by another name."""

    def alias(self, operator: str) -> str:
        """Return the operator that another is documented to be an alias of; empty where it is none.

        Raises ImportError where the library is not here.
        """


class Lowering(Library, Protocol):
    """What a library has beside that if its exporters write models of other operators, which calls are known to become."""

    def plainest(self, lowered: str) -> list[Instance]:
        """Return the plainest calls of which an exporter makes this operator, the plainest first; none where none is declared.

        Words may be joined otherwise (`SCATTERND`). Imports nothing heavy.
        """


class Cast(NamedTuple):
    """From one dtype to another."""

    begins: str
    ends: str


class Typing(Library, Protocol):
    """What a library has beside that if parameters may name dtypes."""

    def typed(self, dtype: str) -> Value:
        """Return what a parameter holds that names a dtype. Raises KeyError for one that the library has not."""


class Plain(Library, Protocol):
    """What a library has beside that if it has operators of one input so simple that nothing but the input matters."""

    def simplest(
        self, program: Program, *, panel: bool = False, cast: Cast | None = None, nodes: Collection[str] = ()
    ) -> list[Instance]:
        """Return the simplest calls of what a program is given (`opera.libraries.simplest`), the simplest of each first; or the
        panel's, which are as simple, of other kinds. With `cast`, from the dtype that it returns, or that an input has, to the
        one that it should have, that cast is one of them; so are, where it fails at `nodes` of an exported file, the calls that
        become such.

        Some may be none that the library takes. Imports nothing heavy.
        """


class Reading(Library, Protocol):
    """What a library has beside that if its models are files, which exporters of other libraries write as well."""

    def opened(self, model: Path, feeds: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
        """Return the program of a model file, given values of its inputs by name, and the value of each of its results by name.

        Raises InvalidTest for what cannot be run, or is not of this library's operators alone.
        """


class Mending(Library, Protocol):
    """What a library has beside that if its reference gets operators wrong, which opera computes in its place."""

    def mended(self) -> Collection[str]:
        """Return the names of these operators. ImportError where the library is not installed."""

    def unmended(self, manifest: Manifest, directory: Path, inputs: list[Value]) -> list[Value] | None:
        """Return what its own reference computes of a test without that; None where it would be the same, or stops."""


class Bodied(Library, Protocol):
    """What a library has beside that if calls hold programs, as the branches of ONNX's `If`."""

    def body(self, message: Message) -> str:
        """Return a body as text for people, nothing of what is none. InvalidTest for bytes that are no message, ImportError
        where the library is not installed."""


class Embedding(Library, Protocol):
    """What a library has beside that if a model may hold, or make, what it is given else."""

    def embedded(self, call: Instance, name: str) -> list[Program]:
        """Return programs that compute what a call does, in which the model holds the input of this name as a constant, or
        makes it of its parts; none where that is not possible. It imports nothing heavy.
        """

    def attributed(self, call: Instance, name: str) -> list[Instance]:
        """Return the call as of an older version of its operator, if one has an attribute of this input's name in its place.

        Nothing where the library is not here to ask.
        """


class Negating(Library, Protocol):
    """What a library has beside that if a call may take what another one returns: outputs of a model may be wrong for that."""

    def negations(self, call: Instance, of: str, made: str) -> list[Call]:
        """Return calls that negate a result of a call, of this name, and what they make is called: the first numbers, the
        second truth values; and one in which it keeps what it holds, which compilers have for more dtypes. It imports nothing
        heavy.
        """


class Defining(Library, Protocol):
    """What a library has beside that if nothing but itself, run eagerly, defines of which dtype and shape an output is, and how
    many there are: no specification stands beside it that it could be at odds with.

    Attributes:
        DEFINES_FORMS: That it is so.
    """

    DEFINES_FORMS: bool


class Case(msgspec.Struct, frozen=True):
    """A migrated test that is to be published under a name: its manifest, its folder, and the program that it was made of."""

    name: str
    manifest: Manifest
    directory: Path
    program: Program


class Publishing(Library, Protocol):
    """What a library has beside that if its tests can be written as files of a conformance suite.

    Attributes:
        FORMS: Name of a form → what it is, in words.
    """

    FORMS: Mapping[str, str]

    def publish(self, form: str, operator: str, cases: list[Case], number: int, folder: Path) -> dict[str, str]:
        """Write tests of one operator into a folder; return the id of an instance → why its test cannot be written so.

        `number` tells apart the calls for one operator, from 1.
        """


TYPE, VALUE, INPUT = "type", "value", "input"
"""Kinds of points: a type variable and a type; an attribute and a class of values; an optional input, given or left out."""


class Point(msgspec.Struct, frozen=True):
    """One thing that the schema of an operator admits.

    Attributes:
        kind: TYPE, VALUE or INPUT.
        operator: Name of the operator.
        name: Of the type variable, attribute or input.
        value: The type; the class of values; `given` or `left out`.
    """

    kind: str
    operator: str
    name: str
    value: str


class Specified(Library, Protocol):
    """What a library has beside that if schemas say what its operators admit. The parent asks all but `probe`."""

    def admitted(self) -> Mapping[str, frozenset[Point]]:
        """Return operator → points. ImportError where the library is not installed."""

    def reached(self, call: Instance) -> frozenset[Point]:
        """Return the points that a call is at."""

    def probe(self, points: list[Point], calls: list[Instance]) -> list[Point]:
        """Return those of the points, of one operator, at which a reference runs one of these calls when it is changed so."""


GROUP = "opera.libraries"


def registered() -> dict[str, EntryPoint]:
    """Return name → entry point of all libraries that this environment registers, sorted by name."""
    return plugins.registered(GROUP)


def get(name: str) -> Library:
    """Import the module of a library. Raises UsageError for an unknown name."""
    module: Library = plugins.load(GROUP, "library", name)
    return module


def body(name: str, value: Value) -> str:
    """Return a program that a call of a library holds as a parameter, as text; nothing of what is none, or is not read here."""
    if not isinstance(value, Message) or name not in registered() or not hasattr(library := get(name), "body"):
        return ""
    try:
        return cast(Bodied, library).body(value)
    except (ImportError, InvalidTest):
        return ""


def publishing(form: str) -> str:
    """Return the library whose tests can be written in a form. Raises UsageError where there is none."""
    found: dict[str, str] = {}
    for name in registered():
        found |= dict.fromkeys(getattr(get(name), "FORMS", {}), name)
    if form not in found:
        raise UsageError(
            f"there is no form of tests called {form!r}", cause=near(form, found), fix=f"choose from {', '.join(found)}"
        )
    return found[form]


def declares(name: str, operator: str) -> bool:
    """Whether a library has an operator. Raises CorpusError for an unknown library, NotInstalled where it cannot be asked."""
    library = get(name) if name in registered() else None
    if library is None:
        raise CorpusError(f"there is no library called {name[:50]!r}")
    try:
        return operator in library.equipped_defaults([operator])
    except ImportError:
        raise NotInstalled(
            f"{name} is not installed, so its operators cannot be checked",
            fix=f"pip install {library.PACKAGE}",
        ) from None
