"""What library-side workers do: wrap instances, and screen inconsistencies. Nothing raises: failures are records."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from opera import libraries
from opera.errors import CorpusError, InvalidTest
from opera.libraries import bounds, pieces, rulings
from opera.libraries.bounds import Bound
from opera.oracle import comparison as oracle
from opera.oracle import randomness, screens
from opera.programs import migrated, verdicts
from opera.programs.migrated import Export, Manifest, read_manifest, read_values
from opera.programs.program import Program, parse, parse_captured, parse_instance
from opera.programs.values import Value, encode
from opera.programs.verdicts import Outcome, Uses
from opera.run import plan, rules
from opera.store import folders
from opera.store.folders import Files

MADE, INVALID, ERROR, KEPT, SCREENED, AGREES = "made", "invalid", "error", "kept", "screened", "agrees"


class WrapRequest(msgspec.Struct, frozen=True):
    """Wrap one instance: `captured` is the JSON of Captured.form(), `test` the id of the test to be made."""

    library: str
    test: str
    captured: bytes

    @property
    def uses(self) -> Uses:
        return Uses(makes=(self.test,))


class WrapReply(msgspec.Struct, frozen=True):
    """What came of it: `status` is made, invalid (the library rejects the case) or error (opera failed)."""

    test: str
    status: str
    reason: str = ""
    artefacts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    seconds: float = 0.0


class ExportRequest(msgspec.Struct, frozen=True):
    """Make one artefact that a test offers."""

    library: str
    artefact: str
    test: str

    @property
    def uses(self) -> Uses:
        return Uses(reads=(self.test,), makes=(self.test,))


class ScreenRequest(msgspec.Struct, frozen=True):
    """Screen one inconsistent outcome: `instance` is the JSON of its form(), `actual` the name of saved outputs.

    With `anew` the outputs are compared once more before; `computes_in` is the compiler's COMPUTES_IN.
    """

    library: str
    compiler: str
    test: str
    instance: bytes
    actual: str
    outcome: Outcome
    anew: bool = False
    computes_in: dict[str, str] = {}

    @property
    def uses(self) -> Uses:
        return Uses(reads=(self.test,), takes=(self.actual,))


class ScreenReply(msgspec.Struct, frozen=True):
    """What the screens say: `status` is agrees, screened, kept or error; for the rest see screens.Screening.

    `outcome` is what comparing once more showed, where that was asked for.
    """

    status: str
    reason: str = ""
    numbers: dict[str, str | float | int | bool | None] = {}
    tags: tuple[str, ...] = ()
    seconds: float = 0.0
    outcome: Outcome | None = None


class PublishRequest(msgspec.Struct, frozen=True):
    """Write tests of one operator as files of a suite.

    Attributes:
        cases: (name, test, instance as the JSON of its form) of each.
        number: See opera.libraries.Publishing.
        place: Name of the folder that is written to, beside the tests.
    """

    library: str
    form: str
    operator: str
    cases: list[tuple[str, str, bytes]]
    number: int
    place: str


class ProbeRequest(msgspec.Struct, frozen=True):
    """Say at which points of one operator a reference runs anything: `calls` are instances as the JSON of their forms."""

    library: str
    points: list[libraries.Point]
    calls: list[bytes]


class KnowRequest(msgspec.Struct, frozen=True):
    """Say what the library knows of a program: `program` is the JSON of its form(). With `counted`, also how many operations it
    becomes, for which it is traced."""

    library: str
    program: bytes
    counted: bool = False


class ExpectRequest(msgspec.Struct, frozen=True):
    """Say what the library computes for a program: `captured` is the JSON of its form()."""

    library: str
    captured: bytes


class Expected(msgspec.Struct, frozen=True):
    """The outputs of a program, packed; empty where its library rejects it."""

    values: bytes = b""


class OpenRequest(msgspec.Struct, frozen=True):
    """Read an artefact of a test as a program of the `library` whose models are such files."""

    library: str
    test: str
    artefact: str

    @property
    def uses(self) -> Uses:
        return Uses(reads=(self.test,))


class Opened(msgspec.Struct, frozen=True):
    """The form of that program and the values of its inputs and results by name, encoded; else why there is none."""

    program: dict[str, Any] = {}
    values: dict[str, Any] = {}
    why: str = ""


class Known(msgspec.Struct, frozen=True):
    """What a library knows of a program, in the encoding of values.

    Attributes:
        defaults: Operator → parameter → default, of every operator of the program and of its pieces.
        pieces: Forms of the programs that it is made of: its calls and shorter runs of them, nodes of an expanded body.
        why: Why there are no pieces though there should be.
        older: Forms of the program as of older versions of its operators, the newest first, and whether these say the same.
        bounds: Operator → input → what the documentation says of its rank, size and values, of operators as in `defaults`.
        shortened: Forms of the program with less in the programs that its calls hold.
        operations: How many operations it becomes, where that is asked of a library that tells; else 0.
    """

    defaults: dict[str, dict[str, Any]]
    pieces: tuple[dict[str, Any], ...] = ()
    why: str = ""
    older: tuple[tuple[dict[str, Any], bool], ...] = ()
    bounds: dict[str, dict[str, Bound]] = {}
    shortened: tuple[dict[str, Any], ...] = ()
    operations: int = 0


def known(payload: KnowRequest) -> Known:
    """Say what a library knows of a program."""
    library, program = libraries.get(payload.library), parse(payload.program)
    why, found = "", []
    try:
        found = pieces.pieces(library, program)
    except InvalidTest as error:  # the program stays whole
        why = error.what
    operators = sorted({operator for x in (program, *found) for operator in x.operators})
    defaults = library.equipped_defaults(operators)
    encoded = {name: {key: encode(x) for key, x in table.items()} for name, table in defaults.items()}
    older = cast(libraries.Versioned, library).older(program) if hasattr(library, "older") else []
    forms = tuple((x.program.form(), x.same) for x in older)
    less = cast(libraries.Nesting, library).shortened(program) if hasattr(library, "shortened") else []
    said = _bounds(library, [program, *found])
    count = 0
    with suppress(InvalidTest):
        told = payload.counted and hasattr(library, "operations")
        count = cast(libraries.Graphed, library).operations(program) if told else 0
    return Known(encoded, tuple(x.form() for x in found), why, forms, said, tuple(x.form() for x in less), count)


def expected(payload: ExpectRequest) -> Expected:
    """Compute what is expected of a program; its test goes again."""
    with tempfile.TemporaryDirectory() as above:
        held = Path(above) / "test"
        try:
            libraries.get(payload.library).wrap(parse_captured(payload.captured), held.name, held)
        except (InvalidTest, CorpusError):
            return Expected()
        return Expected(migrated.pack(read_values(held, "expected")))


def opened(payload: OpenRequest) -> Opened:
    """Read an artefact as a program, and run it call by call."""
    directory = folders.here().test(payload.test)
    manifest = read_manifest(directory)
    made = migrated.artefact(manifest, directory, payload.artefact)
    if made is None:
        return Opened(why=f"the test has no {payload.artefact}")
    given = dict(zip(manifest.inputs, read_values(directory, "inputs"), strict=True))
    try:
        library = cast(libraries.Reading, libraries.get(payload.library))
        program, values = library.opened(directory / made.file, {name: given[name] for name in made.feeds})
    except (InvalidTest, KeyError) as error:
        return Opened(why=str(error))
    whole = program.instance(program.calls[0], values) if len(program.calls) == 1 else program
    return Opened(whole.form(), {name: encode(x) for name, x in values.items()})


def _bounds(library: libraries.Library, programs: list[Program]) -> dict[str, dict[str, Bound]]:
    """Return what the documentation says of the inputs of operators, by a call of each."""
    if not hasattr(library, "described"):
        return {}
    calls = {call.operator: call for program in programs for call in program.instances()}
    said = cast(libraries.Documenting, library).described
    return {name: bounds.read(said(call), [x.name for x in call.inputs]) for name, call in calls.items()}


def exporter(name: str) -> str:
    """Return the id of what makes this library's migrated tests here."""
    return plan.exporter_id(name)


def wrap_batch(payload: list[WrapRequest]) -> list[WrapReply]:
    """Make the migrated tests of a batch, one reply a request in the same order."""
    return [_wrap(request) for request in payload]


def _wrap(request: WrapRequest) -> WrapReply:
    start = time.perf_counter()
    try:
        captured = parse_captured(request.captured)
        library = libraries.get(request.library)
        manifest = library.wrap(captured, request.test, folders.here().test(request.test))
    except (InvalidTest, CorpusError) as error:
        return WrapReply(request.test, INVALID, error.what, seconds=time.perf_counter() - start)
    except Exception as error:  # a fault of opera or of a plugin costs this test alone
        return WrapReply(request.test, ERROR, _text(error), seconds=time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return WrapReply(request.test, MADE, "", tuple(manifest.artefacts), manifest.tags, seconds)


def export(payload: ExportRequest) -> Export:
    """Make an artefact, and store how it went: an exporter that fails once is not asked again."""
    directory = folders.here().test(payload.test)
    manifest = read_manifest(directory)
    library = cast(libraries.Exporting, libraries.get(payload.library))
    start = time.perf_counter()
    try:
        made = library.export(manifest, directory, payload.artefact)
    except MemoryError:
        raise
    except BaseException as error:
        seconds = time.perf_counter() - start
        found = Export(None, type(error).__qualname__, _text(error), seconds, rules.of_exports())
    else:
        found = Export(made, seconds=time.perf_counter() - start, rules=rules.of_exports())
    migrated.save_export(directory, payload.artefact, found)
    return found


def publish(payload: PublishRequest) -> dict[str, str]:
    """Write tests as files of a suite; return the id of an instance → why its test cannot be written so."""
    files, library = folders.here(), cast(libraries.Publishing, libraries.get(payload.library))
    cases = []
    for name, test, instance in payload.cases:
        directory = files.test(test)
        cases.append(libraries.Case(name, read_manifest(directory), directory, parse(instance)))
    return library.publish(payload.form, payload.operator, cases, payload.number, files.file(payload.place))


def probe(payload: ProbeRequest) -> list[libraries.Point]:
    """Say at which of the points a reference runs one of the calls when it is changed so."""
    library = cast(libraries.Specified, libraries.get(payload.library))
    return library.probe(payload.points, [parse_instance(x) for x in payload.calls])


def screen(payload: ScreenRequest) -> ScreenReply:
    """Screen one inconsistency."""
    start = time.perf_counter()
    outcome = payload.outcome
    try:
        files = folders.here()
        directory, saved = files.test(payload.test), files.file(payload.actual)
        manifest, actual = read_manifest(directory), read_values(saved.parent, saved.stem)
        if payload.anew:
            outcome = _compared(manifest, directory, actual, payload)
            if not outcome.symptom and randomness.RANDOM in manifest.tags:
                details = {**outcome.details, verdicts.AGREES: True}
                outcome = msgspec.structs.replace(
                    outcome, symptom="value", message="the first outputs agree", details=details
                )
            if not outcome.symptom:
                return ScreenReply(AGREES, seconds=time.perf_counter() - start, outcome=outcome)
        program = parse(payload.instance)
        library = libraries.get(payload.library)
        runs = randomness.runs(_drawn(files, payload.actual), len(actual))
        found = screens.screen(library, payload.compiler, manifest, directory, program, actual, outcome, runs)
        if found.reason == verdicts.DISPUTED and (said := rulings.settled(library, program, outcome)):
            found = screens.Screening("", {"settled": said})
    except Exception as error:  # a screen that fails explains nothing: the finding stays, and says so
        return ScreenReply(ERROR, _text(error), seconds=time.perf_counter() - start, outcome=outcome)
    status = SCREENED if found.reason else KEPT
    return ScreenReply(status, found.reason, found.numbers, found.tags, time.perf_counter() - start, outcome)


def _drawn(files: Files, name: str) -> list[Value]:
    """Return what further runs of a random program drew; nothing where it is none, or was not run so."""
    kept = files.file(folders.drawn(name))
    return migrated.unpack(kept.read_bytes()) if kept.is_file() else []


def _compared(manifest: Manifest, directory: Path, actual: list[Value], payload: ScreenRequest) -> Outcome:
    """Compare outputs that were kept; what only a run can tell, whether they vary, is kept too."""
    expected = read_values(directory, "expected")
    granted = oracle.granted(payload.computes_in, expected, manifest)
    found = randomness.compared(manifest.tags, expected, actual, manifest.outputs, *granted)
    kept = ("nondeterministic", "repeat", "tags")
    held = {key: value for key, value in payload.outcome.details.items() if key in kept}
    seen = msgspec.structs.replace(
        payload.outcome, symptom=found.symptom, message=found.message[:4000], details={**found.details, **held}
    )
    return randomness.settled(seen, manifest.tags)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]
