"""The tables: their columns, what each holds, and how their rows come from a workspace, one by one."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from opera.data import query as wanted
from opera.data.query import Query
from opera.prioritize.documents import from_document
from opera.prioritize.subspaces import Row
from opera.programs import values
from opera.programs.program import operators_of
from opera.programs.verdicts import FAILURES, PASS
from opera.programs.verdicts import VERDICTS as ALL
from opera.store import tables as stored
from opera.store import verdicts as stored_verdicts
from opera.store.rows import unpack
from opera.store.workspace import Workspace
from opera.triage.distinct import causes
from opera.triage.findings import Finding, findings

TEXT, CATEGORY, VERDICT = "text", "category", "verdict"
COUNT, NUMBER, TIME, BYTES = "count", "number", "time", "bytes"
"""Kinds of columns. TEXT, CATEGORY and TIME may be missing, the others never are."""


class Column(msgspec.Struct, frozen=True):
    """A column: its name, one of the kinds above, and what it holds, as docs/data.md says it."""

    name: str
    kind: str
    holds: str


Values: TypeAlias = tuple[Any, ...]
"""A row: a value for each column; None where it is missing."""


BATCH = 5_000
"""Rows that are held at a time."""


class Table(msgspec.Struct, frozen=True):
    """A table: its columns, what a row is, and the function that yields the rows that a query asks for."""

    name: str
    row: str
    columns: tuple[Column, ...]
    rows: Callable[[Workspace, Query], Generator[Values]]


# ---------------------------------------------------------------------- verdicts


class _Details(msgspec.Struct, frozen=True):
    screen: str = ""


class _Told(msgspec.Struct, frozen=True):
    """What columns show of a verdict's document. It says nothing of what passes, and reading little is most of the speed."""

    message: str = ""
    location: str = ""
    conversion_function: str = ""
    details: _Details = _Details()


def _verdicts(workspace: Workspace, query: Query) -> Generator[Values]:
    rows = stored.verdicts(
        workspace, wanted.places(workspace, query), wanted.operators(workspace, query), wanted.statuses(query, ALL)
    )
    called, decode, nothing = causes.causes(workspace), msgspec.json.Decoder(_Told).decode, _Told()
    made_of, facts = stored.made_of(workspace), _facts(workspace)
    for (
        test,
        frontend,
        environment,
        variant,
        verdict,
        stage,
        symptom,
        finding,
        confirmation,
        seconds,
        run,
        data,
    ) in rows:
        told = nothing if verdict == PASS else decode(unpack(data))
        instance, operator = made_of.get(test, (None, None))
        compiler, version, library, library_version = facts[environment]
        yield (
            test, instance, library, operator, frontend, compiler, version, library_version, environment, variant, verdict,
            stage or None, symptom or None, finding and called.of(finding, test), confirmation or None,
            told.details.screen or None, told.conversion_function or None, told.location or None, told.message or None,
            seconds, run,
        )  # fmt: skip


def _facts(workspace: Workspace) -> dict[str, tuple[str, str, str, str]]:
    """Return environment → compiler and version, library and version."""
    names = "compiler", "version", "library", "library_version"
    return {key: tuple(str(x[name]) for name in names) for key, x in workspace.environments().items()}  # type: ignore[misc]


_WHERE = (
    Column("frontend", CATEGORY, "`tvm-onnx`"),
    Column("compiler", CATEGORY, "`tvm`"),
    Column("version", CATEGORY, "the compiler's version"),
)
VERDICTS = Table(
    "verdicts",
    "one execution of a test through one variant of a frontend in one environment, in the order in which tests were first run",
    (
        Column("test", TEXT, "id of the migrated test"),
        Column("instance", TEXT, "id of the instance that it was made of"),
        Column("library", CATEGORY, "`onnx`"),
        Column("operator", CATEGORY, "operator signature; of a program of several calls all of them, `MatMul + Relu`"),
        *_WHERE,
        Column("library_version", CATEGORY, "the library's version"),
        Column("environment", CATEGORY, "id of all that a verdict depends on beside the test"),
        Column("variant", CATEGORY, "the route into the frontend: `inputs`, `constants`, …"),
        Column("verdict", VERDICT, "ordered, the worst first: what a test's verdict is, of those of its variants"),
        Column("stage", CATEGORY, "where it ended: `load`, `compile`, `infer`; missing for `pass`"),
        Column("symptom", CATEGORY, "exception type, signal, or what of the outputs differs"),
        Column("finding", CATEGORY, "id of the finding that it is a member of"),
        Column("confirmation", CATEGORY, "`pending`, `confirmed`, `unconfirmed`; missing where none is needed"),
        Column("screen", CATEGORY, "why an inconsistency is no failure"),
        Column("conversion_function", CATEGORY, "the code that converts the operator, where it is known"),
        Column("location", CATEGORY, "last line of the compiler's own code in the traceback"),
        Column("message", TEXT, "what the compiler said, or what differs"),
        Column("seconds", NUMBER, "inside the compiler, first execution"),
        Column("run", COUNT, "number of the run that stored it"),
    ),
    _verdicts,
)

# ---------------------------------------------------------------------- findings


def _findings(workspace: Workspace, query: Query) -> Generator[Values]:
    places, kinds = set(wanted.places(workspace, query)), wanted.statuses(query, FAILURES)
    operators = wanted.operators(workspace, query)
    environments, created = workspace.environments(), stored_verdicts.created(workspace)
    for x in _found(workspace, query.environments):
        if (
            stored.Place(x.frontend, x.environment) not in places
            or (kinds is not None and x.verdict not in kinds)
            or (operators is not None and not set(operators) & {x.operator, *x.operators})
        ):
            continue
        about, names = environments[x.environment], (x.id, *x.aliases)
        began = min((created[name] for name in names if name in created), default=None)
        yield (
            x.id, about["library"], x.operator, x.frontend, about["compiler"], x.compiler_version, x.environment, x.verdict,
            x.stage or None, x.symptom or None, x.conversion_function or None, x.sentence or None, x.message or None,
            len(x.members), x.confirmed, x.first_found, began and datetime.datetime.fromtimestamp(began, datetime.UTC),
            x.blame or None, x.because or None, " ".join(x.tags) or None, x.reproducer,
            " ".join(x.aliases) or None,
        )  # fmt: skip


def _found(workspace: Workspace, environments: Iterable[str] | None) -> list[Finding]:
    if environments is None:
        return findings(workspace)
    return [x for name in environments for x in findings(workspace, environment=name)]


FINDINGS = Table(
    "findings",
    "a finding in one environment, in the order of `opera findings`",
    (
        Column("finding", TEXT, "its id"),
        Column("library", CATEGORY, "`onnx`"),
        Column("operator", CATEGORY, "what most members call"),
        *_WHERE,
        Column("environment", CATEGORY, "id of all that a verdict depends on beside the test"),
        Column("verdict", VERDICT, "of its first member; ordered, the worst first"),
        Column("stage", CATEGORY, "where it ends: `load`, `compile`, `infer`"),
        Column("symptom", CATEGORY, "exception type, signal, or what of the outputs differs"),
        Column("conversion_function", CATEGORY, "the code that converts the operator, where it is known"),
        Column("sentence", TEXT, "what is wrong, in words"),
        Column("message", TEXT, "what the compiler said of its first member, or what differs"),
        Column("members", COUNT, "failing tests"),
        Column(
            "confirmed",
            COUNT,
            "those of them that failed again in a fresh process; 1 where none did, but what one was reduced to",
        ),
        Column("first_found", COUNT, "tests that its frontend had run when it was found, itself included"),
        Column("found", TIME, "when it was first found; missing for a part of another finding"),
        Column(
            "blame",
            CATEGORY,
            "the part that is wrong (`conversion`, `type inference`, `kernel`, …); missing where it was not asked",
        ),
        Column("because", TEXT, "what says so"),
        Column("tags", TEXT, "separated by spaces"),
        Column("reproducer", TEXT, "its script, a path in the workspace"),
        Column("aliases", TEXT, "other ids of it, separated by spaces"),
    ),
    _findings,
)

# ---------------------------------------------------------------------- instances


def _instances(workspace: Workspace, query: Query) -> Generator[Values]:
    libraries, operators = wanted.libraries(workspace, query), wanted.operators(workspace, query)
    for x in stored.instances(workspace, libraries, operators, wanted.statuses(query, STATUSES), whole=query.details):
        sources = ", ".join(sorted(msgspec.json.decode(x.sources)))
        told = () if x.document is None else _details(from_document(x.document))
        yield (
            x.instance, x.place, x.library, x.operator, len(operators_of(x.operator)), sources, x.file, x.test, x.status,
            x.reason or None, *told,
        )  # fmt: skip


def _details(row: Row) -> tuple[str, str, str]:
    """Return parameters, dtypes and shapes of inputs, as JSON; of several calls, a list of each."""
    rows = row.calls or (row,)
    parameters = [{name: values.encode(value) for name, value in x.params.items()} for x in rows]
    columns = parameters, [x.input_dtypes for x in rows], [x.input_shapes for x in rows]
    return tuple(msgspec.json.encode(x if row.calls else x[0]).decode() for x in columns)  # type: ignore[return-value]


DETAILS = (
    Column("parameters", TEXT, "JSON object: parameter → value, as docs/corpus.md writes it"),
    Column("input_dtypes", CATEGORY, "JSON list: the dtype of each input, null for one that is left out"),
    Column("input_shapes", TEXT, "JSON list: the shape of each input"),
)
"""Columns that `instances` has where they are asked for; of a program of several calls, each is a list with one a call."""
STATUSES = ("valid", "invalid", "error")
INSTANCES = Table(
    "instances",
    "an operator instance of the corpus, or a program of several calls, in the order of the corpus",
    (
        Column("instance", TEXT, "its id"),
        Column("place", COUNT, "its number in the corpus, ascending"),
        Column("library", CATEGORY, "`onnx`"),
        Column("operator", CATEGORY, "operator signature; of a program of several calls all of them, `MatMul + Relu`"),
        Column("calls", COUNT, "1 for an operator instance"),
        Column("sources", CATEGORY, "the migration sources that hold it, separated by commas"),
        Column("file", CATEGORY, "where it was first seen"),
        Column("origin", TEXT, "the library's own test that showed it first"),
        Column(
            "status",
            CATEGORY,
            "of its newest test: `valid`, `invalid` (its library rejects it), `error`; missing: none",
        ),
        Column("reason", TEXT, "why it is not valid"),
    ),
    _instances,
)

# ---------------------------------------------------------------------- rankings, coverage


def _rankings(workspace: Workspace, query: Query) -> Generator[Values]:
    of, operators = wanted.rankings(workspace, query), wanted.operators(workspace, query)
    for x in stored.ranks(workspace, of, operators):
        yield f"{x.compiler}-{x.library}", x.library, x.strategy, x.position, x.instance, x.operator


RANKINGS = Table(
    "rankings",
    "the place of an instance in the ranking for a frontend, best first",
    (
        Column("frontend", CATEGORY, "`tvm-onnx`"),
        Column("library", CATEGORY, "`onnx`"),
        Column("strategy", CATEGORY, "what ranked it: `opera-wide`"),
        Column("position", COUNT, "0 is run first"),
        Column("instance", TEXT, "id of the instance"),
        Column("operator", CATEGORY, "operator signature"),
    ),
    _rankings,
)


def _coverage(workspace: Workspace, query: Query) -> Generator[Values]:
    operators, environments = wanted.operators(workspace, query), workspace.environments()
    for x in stored.coverage(workspace, wanted.places(workspace, query, "coverage"), operators):
        version = environments[x.environment]["version"]
        for file, lines in msgspec.msgpack.decode(x.document, type=dict[str, bytes]).items():
            yield (
                x.frontend, version, x.environment, x.instance, x.operator, file, int.from_bytes(lines, "little").bit_count(),
                lines,
            )  # fmt: skip


COVERAGE = Table(
    "coverage",
    "a file of a frontend written in Python, of which the test of an instance covers statements (`opera coverage`)",
    (
        Column("frontend", CATEGORY, "`tvm-onnx`"),
        Column("version", CATEGORY, "the compiler's version"),
        Column("environment", CATEGORY, "id of all that a verdict depends on beside the test"),
        Column("instance", TEXT, "id of the instance"),
        Column("operator", CATEGORY, "operator signature"),
        Column("file", CATEGORY, "the frontend's file"),
        Column("statements", COUNT, "statements that are covered, by their first lines"),
        Column("lines", BYTES, "a bitmap of them: bit n of byte m is line 8 m + n (coverage.numbits)"),
    ),
    _coverage,
)

TABLES = {x.name: x for x in (VERDICTS, FINDINGS, INSTANCES, RANKINGS, COVERAGE)}


def columns(table: Table, query: Query) -> tuple[Column, ...]:
    """Return the columns that a query yields."""
    return (*table.columns, *DETAILS) if query.details and table is INSTANCES else table.columns


def batches(rows: Iterable[Values]) -> Iterator[list[Values]]:
    """Yield rows by the thousand: what reads a table holds no more of them at a time."""
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch
