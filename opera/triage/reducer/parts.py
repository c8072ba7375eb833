"""Which operators that a call is made of are wrong by themselves: those of the exported file, or those that it calls inside.

`sobel_edges` of Keras is MIRROR_PAD and DEPTHWISE_CONV_2D in TensorFlow Lite: where MNN computes one of them wrongly, whoever
reads of `sobel_edges` begins at the wrong place. The plainest calls that become each are asked (`[[plainest]]` of a library).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import cast

from opera import libraries
from opera.libraries import Lowering
from opera.oracle import location
from opera.oracle.randomness import FORMS
from opera.programs.program import Instance, Program
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome
from opera.triage.conditions.deciding import Lowers
from opera.triage.sentence import lowered
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent


def parts(ask: Lowers, program: Program, shown: Outcome) -> tuple[str, ...]:
    """Return the operators of the exported file, each with the plainest call that becomes it, of which that is wrong by itself.

    Of a crash at one of them those beside it are asked, of which a form alone counts, for nothing is screened: they may give it
    what it does not take; of one while it is run, at a place that nobody names, casts, which are exact. `nanargmin` is an
    ARG_MIN whose dtype TVM gets wrong, and stops at the SELECT behind. Nothing where the call becomes one operator; as many as
    there is time to ask about.

    Args:
        shown: What the program shows.
    """
    library = libraries.get(program.library)
    at = lowered(shown.conversion_function) if shown.verdict in (CRASH, REFUSED) else ""
    composed = shown.verdict == INCONSISTENT and shown.conversion_function.startswith(location.EXPANDED)
    unknown = shown.verdict == CRASH and shown.stage == "infer" and not at
    if not (composed or at or unknown) or not hasattr(library, "plainest"):
        return ()
    found, dtypes = list[str](), {x.dtype for x in smaller.leaves(program)}
    with suppress(Spent):
        for name in dict.fromkeys(x for x in ask.lowered(program) if x != at):
            plainest = cast(Lowering, library).plainest(name)
            calls = [x for x in plainest if x.operator not in program.operators and _is_of(x, dtypes)]
            calls = [x for x in calls if not unknown or "dtype" in x.params]
            made = zip(calls, ask.look(calls), strict=True)
            wrong = (x for x, now in made if now.verdict == INCONSISTENT and (not at or now.symptom in FORMS))
            found += [f"{name} ({x.operator})" for x in wrong][:1]
    return tuple(found)


def _is_of(call: Instance, dtypes: Collection[str]) -> bool:
    """Whether a call that casts does so to the dtype of a tensor that the program is given, or to int32: all casts are one
    operator, and a compiler may get one of them wrong."""
    to = call.params.get("dtype")
    return to in (None, "int32", *dtypes)


def inside(program: Program, shown: Outcome, asked: Iterable[tuple[Program, Outcome]]) -> Iterator[str]:
    """Yield the operators of calls inside one that stops which return what has a wrong dtype, shape or count, by themselves:
    what comes after them stops at that. TVM's `linear` of bfloat16 returns float32, and `linear_cross_entropy`, which calls
    it, stops at a `where` of both.

    Args:
        shown: What the program shows.
        asked: Calls inside that were asked about, each with what it shows.
    """
    for x, now in asked if shown.verdict in (CRASH, REFUSED) else ():
        wrong = now.verdict == INCONSISTENT and now.symptom in FORMS
        if wrong and isinstance(x, Instance) and x.operator not in program.operators:
            yield x.operator
