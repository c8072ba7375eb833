"""Why a finding should not be filed as it stands, as far as that is stored: lists, reports and drafts say the same of it.

What has no doubts is ready: it failed again in a fresh process and on its own, it is small, the compiler knows its operators,
and where outputs are wrong, someone else confirms the expected ones, or the documentation does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from opera import libraries
from opera.compilers.limits import limits
from opera.libraries.documented import Wrong
from opera.oracle.screens import SINGLE_REFERENCE
from opera.programs.program import Instance, Program
from opera.programs.verdicts import INCONSISTENT, NEWER, UNSTABLE, Outcome
from opera.store.rows import Verdict
from opera.triage.conditions import dtypes
from opera.triage.conditions.deciding import named
from opera.triage.reduction import Reduction
from opera.triage.sentence import READS_AS_REFUSAL
from opera.triage.shrink import smaller

SMALL = 16
"""Elements of a program that anybody reads at a glance."""
EXCEPTIONS = 4
"""Near programs that fail, at least, to each that passes though it has all that is told: else more decides."""
UNEXPLAINED = "what decides is not known"
AGAINST = 2
"""Programs of which several things differ, at least, that speak against what is told."""
CONTRADICTED = "what is told to decide is not, or not all, that does"
DOCUMENTED = "documented-limit"
"""Tag of a finding that the compiler's own documentation answers (opera.compilers.limits)."""
NO_ORDINARY = "none passes, and none that fails is an ordinary call"
UNREDUCED, UNFINISHED = "it is not reduced", "it is not reduced to the end"
"""How a doubt begins that nothing but time is wanting to."""


def doubts(
    tags: Collection[str],
    confirmed: int,
    needs: str,
    *,
    alone: bool,
    settled: bool,
    large: str = "",
    gone: str = "",
    unexplained: tuple[int, int] | None = None,
    behind: str = "",
    dying: str = "",
    contradicted: str = "",
    alike: str = "",
    odd: bool = False,
    limit: str = "",
    invalid: bool = False,
) -> Iterator[str]:
    """Yield what speaks against filing a finding, a clause each.

    Args:
        tags: Of the finding.
        confirmed: How many members, or reductions of them, failed again in a fresh process.
        needs: Of what is newer than the compiler knows: operator and version (`Mod 28, where it declares opset 27`).
        alone: Whether a member fails without others before it.
        settled: Whether something besides the library's reference shows that what is expected is right.
        large: What its program being larger than it need be says against it (`too_large`), or nothing.
        gone: What blame saw of its program, where that does not fail any more, or nothing.
        unexplained: How many near programs fail, and pass, where it is not told why (`unexplained`); else None.
        dying: Who fails on its program, too, where nobody is known to run it, or nothing.
        alike: Who gives the same answer as the compiler, where no more implementations give the expected one, or nothing.
        odd: Whether NaN is expected where finite numbers are given.
        contradicted: What speaks against what is told of when it fails (`contradicted`), or nothing.
        invalid: Whether the compiler says that its input is not valid, and none of those who were asked runs it as expected.
        limit: The sentence by which the compiler documents that it does not do this, or nothing.
        behind: What decides and without which the compiler says that it does not support the program, or nothing.
    """
    if not alone:
        yield "no test shows it alone: it fails only after others in the same process"
    if READS_AS_REFUSAL in tags:
        yield "its words read as a refusal: if the documentation does not promise it, this asks for a feature"
    if limit:
        yield f"a documented limit, so it may be closed as known: {limit}"
    if not confirmed:
        yield "it was not confirmed in a fresh process"
    if NEWER in tags:  # reductions try older versions: these do not take it, or say nothing of it, or are right
        newer = needs or "a newer opset than the compiler declares to know"
        yield f"it needs {newer}: that is a feature not yet there, no bug"
    elif SINGLE_REFERENCE in tags and not settled:
        yield "no other implementation confirms the expected outputs: check them by hand against the documentation first"
    if alike:
        yield f"the same answer is given by {alike}: check by the documentation that it is not the expected one which is wrong"
    if odd:
        yield "NaN is expected of finite numbers: check that the documentation defines it"
    if dying:
        yield f"nobody runs its program, and {dying} fails on it, too: check by hand that the documentation admits it"
    elif invalid:
        yield "it says that its input is not valid, and nobody runs it: check by hand that the documentation admits it"
    if gone:
        yield f"asked again, {gone}"
    if large and alone:
        yield large
    if behind:
        yield f"without {behind} the compiler says that it does not support the program: once mended it may say so of this one"
    if unexplained is not None:
        failing, passing = unexplained
        apart = f"{passing} pass, and nothing that is told separates them"
        yield f"{UNEXPLAINED}: {failing} near programs fail, {apart if passing else NO_ORDINARY}"
    if contradicted:
        yield contradicted


def too_large(finding: str, program: Program, finished: bool | None) -> str:
    """Return the doubt that the program which shows a finding may become much smaller: nobody knows then what decides.

    Args:
        program: What shows it.
        finished: Whether its reduction left nothing smaller to try; None where there is none. A call of few elements to which
            no parameter is given needs none.
    """
    calls = program.instances()
    small = len(calls) == 1 and smaller.elements(program) <= SMALL
    if finished or (small and (finished is False or all(x is None for x in calls[0].params.values()))):
        return ""
    what = UNREDUCED if finished is None else UNFINISHED
    return f"{what}: `opera reduce {finding}` goes on"


def documented(program: Program, shown: Verdict) -> str:
    """Return the documented limit of the compiler that a program meets which fails so, told with its address, or nothing."""
    tensors = smaller.leaves(program)
    known = limits(shown.frontend.rpartition("-")[0])
    return next((x.told for x in known if x.holds(program.operators, tensors, shown.outcome)), "")


def unexplained(of: Reduction, told: Collection[str]) -> tuple[int, int] | None:
    """Return how many near programs of a reduction fail, and pass, where it is not told why; None where it is.

    What is told of it may be true and not all: then it will do where few pass though they have all that is told (EXCEPTIONS).
    Where nothing is told all must fail, an ordinary call among them. What crashes, or is refused, does not pass by chance.
    """
    failing, passing = of.near
    odd = passing if of.despite is None else of.despite
    few = failing >= EXCEPTIONS * odd and (of.despite is None or of.outcome.verdict in (INCONSISTENT, UNSTABLE))
    borne = of.near[0] > 0 or not of.near[1]  # else no program but its own is known to fail so
    known = (of.explained or few) and borne if told else of.explained and not passing and of.usual is not False
    return None if known else of.near


def contradicted(of: Reduction, told: Collection[str]) -> str:
    """Return the doubt that what is told to decide does not, or not alone: near programs pass though they have it, or those of
    which several things differ say so. Nothing where they do not.

    Of the latter one may fail of something else, and give a right output by chance: so two must say it, and of those that lack
    what is told a good part. Of seven audited findings of wrong outputs that near programs contradict two were fileable.
    """
    failing, passing, other_failing, other_passing = of.tried
    least = AGAINST if of.outcome.verdict in (INCONSISTENT, UNSTABLE) else 1
    despite = (of.despite or 0) + (passing if passing >= least else 0)
    have, lack = of.near[0] + failing + despite, other_failing + other_passing
    odd = [
        f"{despite} of {have} programs that have it pass" if despite else "",
        f"{other_failing} of {lack} that lack it fail"
        if other_failing >= AGAINST and 2 * other_failing > other_passing
        else "",
    ]
    says = " and ".join(filter(None, odd))
    return (
        f"{CONTRADICTED if told else UNEXPLAINED}: {says if told else f'{despite} of {have} programs pass'}"
        if says
        else ""
    )


def right_as_float32(deciding: Collection[str]) -> bool:
    """Whether what decides is a dtype of floating-point numbers: in float32 the compiler itself gives what is expected."""
    held = (dtypes.members(x) for x in deciding if x != dtypes.OTHER_FLOATS)
    return dtypes.OTHER_FLOATS in deciding or any(x and x <= {"float16", "bfloat16", "float64"} for x in held)


def stated(call: Instance, deciding: Iterable[str], outcome: Outcome) -> bool:
    """Whether documentation says which shape the wrong output has, of the very value of a parameter that decides."""
    library: Any = libraries.get(call.library)
    wrong = Wrong.of(outcome.details, outcome.symptom)
    if wrong.symptom != "shape" or not wrong.output or not hasattr(library, "documented"):
        return False
    try:
        found = library.documented(call, list(filter(None, map(named, deciding))), wrong)
    except ImportError:
        return False
    return any(x.exact and f"{wrong.output}.shape" in x.text for x in found)
