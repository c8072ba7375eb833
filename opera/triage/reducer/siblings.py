"""Which other operators fail so of the same inputs: what is wrong with one may be wrong with a family of them."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

import msgspec

from opera import libraries
from opera.libraries import Aliasing
from opera.oracle import location, randomness
from opera.oracle.comparison import COUNT
from opera.oracle.draws import CONSTANT
from opera.oracle.screens import AGREEING
from opera.programs.program import Instance, Operand, Program, parse
from opera.programs.verdicts import CRASH, INCONSISTENT, INVALID, REFUSED, Outcome
from opera.store import instances
from opera.store.workspace import Workspace
from opera.triage.conditions import deciding
from opera.triage.conditions.ordinary import BYTES, called_as
from opera.triage.distinct import kinship
from opera.triage.failure import below
from opera.triage.reducer.asking import Asker
from opera.triage.sentence import bare
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

MOST, ASKED, TRIED, AT_A_TIME = 6, 24, 120, 8
"""Programs of a sibling that are read; siblings that are asked about: of those that its library takes, in all, at a time."""
NAMED, SIMILAR = 3, 0.6
"""Operators that are told of those which compute the same and pass, and how similar their names are at least."""
UNNAMED = re.compile(r"output_\d+")
"""How an output is called of a library that names none."""
OTHERS, PLAIN = 4, 64
"""Further calls by which a sibling is put to the test, and how many elements they have at most."""


def siblings(
    ask: Asker, workspace: Workspace, program: Program, told: Sequence[str] = (), defaults: Defaults | None = None
) -> tuple[str, ...]:
    """Return other operators of a program's library that fail as it does of its inputs: in the same words but for names, at a
    place that all come by; by drawing nothing at random either; with as few outputs; in the same form that one converter of
    several gives them. As many as are found in the time that there is.

    Of those of the most similar names they are asked about first whose parameters are the program's. A parameter has the value
    that it has in the program, if any, else that of a test. Each must fail so of the inputs of a few other programs, too, of
    which the program's operator does: of other dtypes and shapes.

    Args:
        told: What decides of the program: what fails without that, too, fails of something else.
        defaults: Operator → its parameters' defaults, of the program.
    """
    target = ask.outcomes.get(program.id, ask.target)
    if not isinstance(program, Instance) or target is None or not _tells(target):
        return ()
    found, taken = list[str](), 0
    near = (made for x in _named(workspace, program) if (made := _in_place(workspace, program, x)) is not None)
    every = iter(sorted(itertools.islice(near, TRIED), key=lambda x: _unlike(program, x[0])))
    known = (defaults or {}).get(program.operator, {})

    def fails(x: Instance, now: Outcome) -> bool:
        return _alike(target, program, now, x) and not ask.excused(x)

    def asked(some: Sequence[Instance]) -> list[bool]:
        """Append those that fail so, and return which the library rejects."""
        shown = ask.look(some)
        alike = [x for x, now in zip(some, shown, strict=True) if fails(x, now)]
        alike = [x for x, sure in zip(alike, ask.passed(alike, [True] * len(alike)), strict=True) if sure]
        for x in alike:
            without = [y for says in told for y in deciding.lacking(x, [says], {x.operator: known}) if y != x]
            others = [(y, now) for y, now in zip(without, ask.look(without), strict=True) if now.verdict != INVALID]
            if not others or not all(isinstance(y, Instance) and fails(y, now) for y, now in others):
                found.append(x.operator)
        return [x.verdict == INVALID for x in shown]

    with suppress(Spent):
        while taken < ASKED and (called := list(itertools.islice(every, AT_A_TIME))):
            rejected = asked([own for own, _ in called])
            newer = [other for (own, other), no in zip(called, rejected, strict=True) if no and other.id != own.id]
            taken += len(called) - sum(rejected) + len(newer) - sum(asked(newer))
    names, wrong = list(dict.fromkeys(found)), set[str]()
    with suppress(Spent):
        for other in _others(ask, program):
            put = (_in_place(workspace, other, x) for x in names if x not in wrong)
            calls = [x[0] for x in put if x is not None]
            shown = zip(calls, ask.look(calls), strict=True)
            wrong.update(x.operator for x, now in shown if now.verdict != INVALID and not fails(x, now))
    return tuple(x for x in names if x not in wrong)


def alias(program: Program) -> str:
    """Return the operator that the one of a program of one call is documented to be another name of, or nothing."""
    library = libraries.get(program.library)
    with suppress(ImportError):
        if isinstance(program, Instance) and hasattr(library, "alias"):
            return cast(Aliasing, library).alias(program.operator)
    return ""


def same_by_others(ask: Asker, workspace: Workspace, program: Program, known: str = "") -> tuple[str, ...]:
    """Return operators of similar names that pass with a program's very inputs and parameters, of which the library computes
    the same: `torch.div` beside `torch.divide`. None of what is drawn: two draws tell nothing of who computes the same.

    Args:
        known: One that is asked about whatever its name and the corpus, and told first: an `alias`.
    """
    if not isinstance(program, Instance) or "drawn" in (ask.target.details if ask.target else {}):
        return ()
    found, own = list[str](), _split(program.operator)[1]

    def similar(operator: str) -> bool:
        return operator != program.operator and _likeness(own, _split(operator)[1]) >= SIMILAR

    def called_alike(x: Instance) -> bool:
        same = [y.value for y in x.inputs] == [y.value for y in program.inputs]
        pairs = ((x.params.get(name), value) for name, value in program.params.items())
        return same and x.params.keys() == program.params.keys() and all(smaller.same(*y) for y in pairs)

    with suppress(Spent):
        named = [msgspec.structs.replace(program, operator=known)] if known else []
        near = itertools.islice(filter(similar, _named(workspace, program)), AT_A_TIME)
        put = (_in_place(workspace, program, x) for x in near)
        ask.look([*named, *(x[0] for x in put if x is not None and called_alike(x[0]))])
        others = (x for x in ask.programs.values() if isinstance(x, Instance) and similar(x.operator))
        passing = [x for x in (*named, *others) if ask.vanished(x) and called_alike(x)]
        wanted = ask.reference(program)
        for x in passing[:AT_A_TIME]:
            if wanted is not None and ask.reference(x) == wanted:
                found.append(x.operator)
    return tuple(dict.fromkeys(found))[:NAMED]


def _others(ask: Asker, program: Instance) -> list[Instance]:
    """Return a few programs of the same operator that fail alike, of other dtypes, ranks or parameters each, those first of
    which most is otherwise; of each kind the largest that is not large."""

    def kind(x: Instance) -> list[object]:
        held = smaller.leaves(x)
        return [[y.dtype for y in held], [len(y.shape) for y in held], x.params]

    own, found = kind(program), dict[str, Instance]()
    for x in ask.programs.values():
        shown = ask.outcomes.get(x.id)
        if not isinstance(x, Instance) or (x.operator, x.outputs) != (program.operator, program.outputs):
            continue
        if shown is None or not ask.fails(shown) or x in ask.others.values():
            continue
        name, size = repr(kind(x)), smaller.elements(x)
        if kind(x) != own and size <= PLAIN and (name not in found or size > smaller.elements(found[name])):
            found[name] = x
    return sorted(found.values(), key=lambda x: -sum(a != b for a, b in zip(kind(x), own, strict=True)))[:OTHERS]


def _tells(shown: Outcome) -> bool:
    """Whether a failure is of a kind that has siblings: it says something, draws nothing, lacks outputs, or is one of code that
    several operators share."""
    return shown.verdict in (CRASH, REFUSED) or shown.details.get("drawn") == CONSTANT or bool(_form_of(shown))


def _form_of(shown: Outcome) -> tuple[object, ...]:
    """Return what is wrong with the form of an output, and which code that several operators share made it, or how many outputs
    there are; else nothing."""
    if shown.symptom == COUNT and shown.verdict == INCONSISTENT:
        return COUNT, shown.details.get("expected"), shown.details.get("actual")
    function = location.shared(shown.conversion_function)
    if shown.symptom not in randomness.FORMS or shown.verdict != INCONSISTENT or function == shown.conversion_function:
        return ()
    return (function, *(shown.details.get(x) for x in ("output", "expected", "actual")))


def _alike(target: Outcome, program: Instance, shown: Outcome, sibling: Instance) -> bool:
    if (target.verdict, target.stage, target.symptom) != (shown.verdict, shown.stage, shown.symptom):
        return False
    if target.details.get(AGREEING) and not shown.details.get(AGREEING):
        return False
    if target.verdict in (CRASH, REFUSED):
        elsewhere = target.stage == "compile" and below(target) != below(shown)
        if elsewhere:  # in the same words, from another line: `negative` and `sign` of unsigned integers
            return False
        return kinship.say_the_same((target, program.operator), (shown, sibling.operator))
    return _form_of(target) == _form_of(shown) and target.details.get("drawn") == shown.details.get("drawn")


def _named(workspace: Workspace, program: Instance) -> Iterator[str]:
    """Yield the operators of the corpus beside a program's, of its namespace, those of the most similar names first."""
    space, own = _split(program.operator)
    every = workspace.operators(program.library) - {program.operator}
    others = {x: _split(x)[1] for x in every if _split(x)[0] == space and bare(x) != bare(program.operator)}
    yield from sorted(others, key=lambda x: (-_likeness(own, others[x]), x))


def _split(operator: str) -> tuple[str, str]:
    space, _, name = operator.rpartition("::" if "::" in operator else ".")
    return space, name


def _likeness(one: str, other: str) -> float:
    """Return how similar two names are: by a word that both have, or else by their letters."""
    words = [set(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", x)) for x in (one, other)]
    return bool(words[0] & words[1]) + difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _in_place(workspace: Workspace, program: Instance, name: str) -> tuple[Instance, Instance] | None:
    """Return another operator with a program's inputs, as a program of the corpus calls it that has as many, and whose
    parameters differ in the least: in the program's world (of its version, in its mode), and in that of the other; None where
    there is none.
    """
    read = map(parse, instances.of_operator(workspace, program.library, name, MOST, BYTES))
    given = [x.value for x in program.inputs if x.value is not None]
    unnamed = all(not x or UNNAMED.fullmatch(x) for x in program.outputs)  # one alone may be asked for
    made = []
    for test in (x for x in read if isinstance(x, Instance)):
        own = {x.name: program.params[x.name] for x in test.inputs if x.name in program.params}  # a number, or a tensor
        taking = [x for x in test.inputs if x.name not in own]
        names = [x.name for x in taking if x.value is not None]
        if len(names) != len(given) or (bool(test.outputs) != bool(program.outputs) and not unnamed):
            continue
        held = dict(zip(names, given, strict=True))
        other = msgspec.structs.replace(
            test,
            params={x: program.params.get(x, y) for x, y in test.params.items()} | own,
            inputs=tuple(Operand(x.name, held.get(x.name)) for x in taking),  # what is left out keeps its place
        )
        outputs = test.outputs or program.outputs
        made.append((msgspec.structs.replace(called_as(other, program), outputs=outputs), other))
    return min(made, key=lambda x: _unlike(program, x[0]), default=None)


def _unlike(program: Instance, other: Instance) -> int:
    """Return how many parameters two calls have otherwise."""
    return len(kinship.differing(program, other))
