"""One fault a program: where an output has another dtype or shape and its numbers are wrong, too, these are two questions.

Whoever mends the dtype would still see the script fail. So plainer numbers are tried, and the program without what it need not
be given, until the form alone is wrong; and the program whose form nobody gets wrong, whose numbers then are another finding.
Integers for floats are one question: their fractions are gone, and at last a program is looked for that shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from opera.programs.program import Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.conditions import readable
from opera.triage.reducer.asking import FORMS, Asker
from opera.triage.shrink import simpler, smaller


def twofold(outcome: Outcome | None) -> bool:
    """Whether an output has another dtype or shape, and other numbers than those that are expected, too."""
    wrong = outcome is not None and outcome.verdict == INCONSISTENT and outcome.symptom in FORMS
    return wrong and outcome is not None and bool(outcome.details.get("values_differ"))


def form_alone(ask: Asker, program: Program, defaults: smaller.Defaults) -> list[Program]:
    """Return the smallest program that was found of which the form of the same output is as wrong, and its numbers are right;
    nothing where the numbers of the program are right anyway. Raises Spent.
    """
    seen = ask.outcomes.get(program.id)
    if seen is None or not twofold(seen):
        return []
    tried = ask.within(list({x.id: x for x in _plainer(program, defaults)}.values()))
    shown = ask.look(tried)
    alone = ask.passed(tried, [_alone(seen, x) for x in shown])
    found = sorted(
        (x for x, good in zip(tried, alone, strict=True) if good), key=partial(smaller.measure, defaults=defaults)
    )
    ask.look(list(_formed(program)))  # which are remembered if their numbers are wrong
    return found[:1]


def fractions(ask: Asker, program: Program) -> list[Program]:
    """Return the program with other numbers, of which a fraction is expected where integers are returned for floats, if those
    that are expected of it are whole; else nothing. A cast of what is computed would mend those. Raises Spent.
    """
    seen = ask.outcomes.get(program.id)
    if seen is None or (seen.verdict, seen.symptom) != (INCONSISTENT, "dtype"):
        return []
    wanted, returned = (str(seen.details.get(x, "")) for x in ("expected", "actual"))
    if "float" not in wanted or "int" not in returned or not _are_whole(ask.reference(program)):
        return []
    made = [x for step in smaller.unlike(program) if (x := smaller.applied(step, program)) is not None and x != program]
    failing = (x for x, fails in zip(made, ask(made), strict=True) if fails)
    return list(itertools.islice((x for x in failing if not _are_whole(ask.reference(x)) and ask.stands(x)), 1))


def _are_whole(outputs: Iterable[Value] | None) -> bool:
    """Whether all finite numbers of outputs of floats are whole, as far as anything is known of them."""
    found = [x.numbers() for x in outputs or () if isinstance(x, Tensor) and "float" in x.dtype]
    return all((~np.isfinite(x) | (x == np.rint(x))).all() for x in found)


def _alone(seen: Outcome, shown: Outcome) -> bool:
    """Whether an outcome is of the same wrong form of the same output, and of nothing else."""
    if (shown.verdict, shown.stage, shown.symptom) != (seen.verdict, seen.stage, seen.symptom) or twofold(shown):
        return False
    wrong, before = (x.details.get("wrong") or {} for x in (shown, seen))
    told = ("output", *(("expected", "actual") if seen.symptom == "dtype" else ()))
    return set(wrong) <= set(before) and all(shown.details.get(x) == seen.details.get(x) for x in told)


def _plainer(program: Program, defaults: smaller.Defaults) -> Iterator[Program]:
    """Yield the program with plainer numbers, without each of what it need not be given, and with both."""
    numbers = [partial(smaller.mapped, change=x) for x in (simpler.counted, *simpler.WHOLE)]
    kept = [x for x in smaller.traits(program, defaults) if x.kind != "dtype"]
    bare = [x for trait in kept if (x := smaller.applied(trait.without, program)) is not None]
    for of in (program, *bare):
        for change in numbers if of is program else numbers[:1]:
            if (made := smaller.applied(partial(_numbered, change=change), of)) is not None and made != program:
                yield made
        if of is not program:
            yield of


def _numbered(program: Program, change: smaller.Step) -> Program | None:
    made = change(program)
    return None if made is None else smaller.axes_kept(program, made)


def _formed(program: Program) -> Iterator[Program]:
    """Yield the program in ordinary dtypes, and with an axis in place of none: other rules of a compiler tell its form then."""
    for step in smaller.dtypes(program, {}):
        if (made := smaller.applied(step, program)) is not None:
            yield made
    yield from readable.filled(program)
