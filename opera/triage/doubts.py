"""Why a finding should not be filed as it stands, as far as that is stored: lists, reports and drafts say the same of it.

What has no doubts is ready: it failed again in a fresh process and on its own, it is small, the compiler knows its operators,
and where outputs are wrong, someone else confirms the expected ones, or the documentation does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from opera import libraries
from opera.compilers.limits import limits, met
from opera.libraries import bounds, ranges
from opera.libraries.documented import Quote, Wrong
from opera.oracle.screens import SINGLE_REFERENCE, UNMENDED, UNSCREENED
from opera.programs.program import Graph, Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, NEWER, REFUSED, UNSTABLE, Outcome
from opera.store.rows import Verdict
from opera.triage.conditions import dtypes
from opera.triage.conditions.further import TRIALS
from opera.triage.conditions.removable import named
from opera.triage.reduction import Reduction
from opera.triage.sentence import GRAPH_INPUT, READS_AS_REFUSAL, listed
from opera.triage.shrink import smaller

EXCEPTIONS = 4
"""Near programs that fail, at least, to each that passes though it has all that is told: else more decides."""
UNEXPLAINED = "what decides is not known"
AGAINST = 2
"""Programs of which several things differ, at least, that speak against what is told."""
CONTRADICTED = "what seems to decide is not, or not all, that does"
UNTRIED = "what seems to decide was hardly put to the test"
"""How the doubt begins that few programs of which several things differ say anything."""
ONE_BY_ONE = re.compile(r"(?P<name>[\w.]+)=-?[\d.]+(?:, -?[\d.]+)* or -?[\d.]+")
"""How it is told that a parameter is one of several numbers, between which others may pass."""
MANY = 20
"""Operations that one call becomes, at least, of which it is a riddle which is wrong."""
DOCUMENTED = "documented-limit"
"""Tag of a finding that the compiler's own documentation answers (opera.compilers.limits)."""
CONSTANT = "Constant"
"""Operator of ONNX's that holds what others are given."""
NO_ORDINARY = "none passes, and none that fails is an ordinary call"
NOT_SHOWN = "its script showed it in"
"""How the doubt begins that the script of what ends its process, or varies, may not show it."""
UNREDUCED, UNFINISHED = "it is not reduced", "it is not reduced to the end"
"""How a doubt begins that nothing but time is wanting to."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a finding that may speak against filing it.

    Attributes:
        tags: Of the finding.
        confirmed: How many members, or reductions of them, failed again in a fresh process.
        alone: Whether a member fails without others before it; `spoils`: whether it is others that fail after it.
        settled: Whether something besides the library's reference shows that what is expected is right.
        needs: Of what is newer than the compiler knows: operator and version (`Mod 28, where it declares opset 27`).
        large: That its program may be larger than it need be (`unreduced`), or nothing.
        gone: What blame, or who was to reduce it, saw of its program, where that does not fail any more, or nothing.
        shown: In how many runs its script showed it, and how often it was run; (0, 0) where it was not.
        unexplained: How many near programs fail, and pass, where nothing that is changed alone makes it pass, and nothing else
            tells why (`unexplained`); else None.
        dying: Who fails on its program, too, where nobody is known to run it, or nothing.
        alike: Who gives the same answer as the compiler, where no more implementations give the expected one, or nothing.
        off: By how much it is off, where that is little more than is tolerated (`triage.failure.slight`), or nothing.
        cut: The float that a wrong integer is cut from, where rounding may have left it on either side, or nothing.
        rounded: How many programs like it are wrong by rounding alone, as a screen has it, and how many by more.
        exact: What the first wrong integer would be without the bounds of its dtype, where that does not hold it, or nothing.
        written: Whether blame lays it on the exporter of what it is given, and another frontend tries that.
        unexported: In which form the library itself cannot write it down either, where an exporter stops, or nothing.
        odd: Whether NaN is expected where finite numbers are given.
        beyond: Which inputs of its program are not as is documented of them (`undocumented`), or nothing.
        arising: What an operator makes of a NaN or an infinity that arises inside (`lawful.arising`), or nothing.
        limit: The sentence by which the compiler documents that it does not do this, or nothing.
        invalid: Whether the compiler says that its input is not valid, and none of those who were asked runs it as expected.
        refused: By which other routes the compiler says that it does not support what crashes by this one, or nothing.
        parts: Operators that are wrong by themselves, where its call is made of several.
        operations: How many operations its one call becomes, as far as that is known.
        divided: Whether a test of it fails in another way without what decides, and of what is shown nothing is told to decide.
        foreign: The complex dtype that an exporter is given which writes what no checker admits, or nothing.
        older: The version that an exporter takes, and need not, of what no checker admits in it, or nothing.
        behind: What decides and without which the compiler says that it does not support the program, or nothing.
    """

    tags: Collection[str]
    confirmed: int
    alone: bool
    spoils: bool = False
    settled: bool
    needs: str = ""
    large: str = ""
    gone: str = ""
    shown: tuple[int, int] = (0, 0)
    unexplained: tuple[int, int] | None = None
    dying: str = ""
    alike: str = ""
    odd: bool = False
    arising: str = ""
    beyond: str = ""
    off: str = ""
    cut: str = ""
    rounded: tuple[int, int] = (0, 0)
    exact: str = ""
    written: bool = False
    unexported: str = ""
    limit: str = ""
    invalid: bool = False
    refused: str = ""
    foreign: str = ""
    older: str = ""
    behind: str = ""
    operations: int = 0
    divided: bool = False
    parts: Sequence[str] = ()


def doubts(of: Standing) -> Iterator[str]:
    """Yield what speaks against filing a finding, a clause each."""
    if not of.alone:
        what = "others fail after it" if of.spoils else "it fails only after others"
        yield f"no test shows it alone: {what} in the same process"
    if READS_AS_REFUSAL in of.tags:
        yield "its words read as a refusal: if the documentation does not promise it, this asks for a feature"
    elif of.refused:
        yield f"{of.refused} the compiler says that it does not support this program: this asks for a feature"
    if of.limit:
        yield f"a limit that the compiler states, so it may be closed as known: {of.limit}"
    if not of.confirmed:
        yield "it was not confirmed in a fresh process"
    if NEWER in of.tags:  # reductions try older versions: these do not take it, or say nothing of it, or are right
        newer = of.needs or "a newer opset than the compiler declares to know"
        yield f"it needs {newer}: that is a feature not yet there, no bug"
    elif SINGLE_REFERENCE in of.tags and not of.settled:
        yield "no other implementation confirms the expected outputs: check them by hand against the documentation first"
    if UNMENDED in of.tags:
        yield "its library's own reference gives the same answer, in whose place opera computes: ask there what is meant first"
    if of.alike:
        yield f"the same answer is given by {of.alike}: check by the documentation that not the expected one is wrong"
    if of.written:
        yield "its exporter wrote wrongly what it is given: what the exporter's own frontend shows is to be filed"
    if of.unexported:
        yield f"the library itself cannot make {of.unexported} of it either, in the same words: ask there first"
    if of.parts:
        yield f"it is made of {listed(of.parts)}, wrong by itself: what that shows is to be filed"
    elif of.operations >= MANY:
        yield f"it becomes {of.operations} operations: the one that is wrong should be filed by itself"
    if of.off:
        yield f"it is off by {of.off}: it may be closed as rounding"
    if of.cut:
        yield f"as a float it is {of.cut}: it may be closed as rounding"
    if of.rounded[0] > of.rounded[1]:
        alone, more = of.rounded
        yield f"of programs like it {alone} are wrong by rounding alone, {more} by more: it may be closed as rounding"
    if of.exact:
        yield f"without the bounds of its dtype it is {of.exact}: check that the documentation says what becomes of it"
    if of.odd:
        yield "NaN is expected of finite numbers: check that the documentation defines it"
    if of.beyond:
        yield f"its program is not one that the documentation admits: {of.beyond}"
    if of.arising:
        yield f"what is no number arises inside ({of.arising}): check that the documentation says what becomes of it"
    if of.dying:
        yield f"nobody runs its program, and {of.dying} fails on it, too: check by hand that the documentation admits it"
    elif of.invalid:
        yield "it says that its input is not valid, and nobody runs it: check by hand that the documentation admits it"
    if UNSCREENED in of.tags:
        yield "whether something else explains it, such as rounding, was not asked: opera could not; run it again (--rerun)"
    if of.gone:
        yield f"asked again, {of.gone}"
    if 2 * of.shown[0] <= of.shown[1] and of.shown[1]:
        yield f"{NOT_SHOWN} {of.shown[0]} of {of.shown[1]} runs"
    if of.large and of.alone:
        yield of.large
    if of.divided:
        yield "a test of it fails in another way without what decides: it may be of two causes, one of which is told"
    if of.foreign:
        yield f"it is given {of.foreign}, of which its format has hardly an operator: that it refuses is all that may be asked"
    if of.older:
        yield f"{of.older}, and its file is valid by a newer opset: users may be told to ask for that"
    if of.behind:
        yield f"without {of.behind} the compiler says that it does not support it: once mended it may say so of this one"
    if of.unexplained is not None:
        failing, passing = of.unexplained
        apart = f"{passing} pass, and nothing that is told separates them"
        yield f"{UNEXPLAINED}: {failing} near programs fail, {apart if passing else NO_ORDINARY}"


def after(first: str, why: str) -> str:
    """Return the doubt that a finding may be of one cause with another, which is to be filed first."""
    return f"file {first} first: {why}, and one mend may be for both"


def unreduced(finding: str, finished: bool | None) -> str:
    """Return the doubt that the program which shows a finding may become smaller, or nothing: nobody knows then what decides,
    however small it is.

    Args:
        finished: Whether its reduction left nothing smaller to try; None where there is none.
    """
    what = UNREDUCED if finished is None else UNFINISHED
    return "" if finished else f"{what}: `opera reduce {finding}` goes on"


def documented(
    program: Program,
    shown: Verdict,
    returned: Callable[[], Iterable[Value]] = tuple,
    deciding: Collection[str] = (),
) -> str:
    """Return the documented limit of the compiler that a program meets which fails so, told with its address, or nothing.

    Args:
        deciding: What decides: that something is the model's own input, among others.
        returned: What is expected of what fails in words, which is asked about where what it is given meets no limit: a model
            that should return complex numbers need not be given any. Of numbers beyond a dtype it says nothing.
    """
    compiler = shown.frontend.rpartition("-")[0]
    fed = [x.value for x in program.inputs if f"{x.name} {GRAPH_INPUT}" in deciding and x.value is not None]
    limit = met(compiler, program, smaller.leaves(program), shown.outcome, fed)
    of_dtypes = [x for x in limits(compiler) if x.dtypes and not x.beyond]
    if limit is None and of_dtypes and shown.outcome.verdict in (CRASH, REFUSED):
        made = [x for x in returned() if isinstance(x, Tensor | RandomTensor)]
        limit = next((x for x in of_dtypes if x.holds(program.operators, made, shown.outcome)), None)
    return "" if limit is None else limit.told


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
    """Return what speaks against what seems to decide: near programs pass though they have it, or those of which several things
    differ say so. Nothing where they do not.

    Of the latter one may fail of something else, and give a right output by chance: so two must say it, and of those that lack
    what is told a good part. Of seven audited findings of wrong outputs that near programs contradict two were fileable. Where
    hardly any of these say anything, or there was no time to ask, what near ones teach is a guess: `interpolate` with `a float
    for scale_factor`, where a whole one passes.
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
    if says:
        of_what = f"{CONTRADICTED} ({', '.join(told)}): {says}"
        return of_what if told else f"{UNEXPLAINED}: {despite} of {have} programs pass"
    if listed_ := next((x for x in told if (y := ONE_BY_ONE.fullmatch(x)) and not smaller.is_axes(y["name"])), ""):
        return f"{UNEXPLAINED}: {listed_} tells numbers one by one, and not what they have in common"
    asked = sum(of.tried)
    if told and asked < TRIALS and of.near[1] and isinstance(of.program().program, Instance):
        return (
            f"{UNTRIED} (programs that say anything: {asked}): `opera reduce {of.finding} --seconds 180` may ask more"
        )
    return ""


def right_as_float32(deciding: Collection[str]) -> bool:
    """Whether what decides is a dtype of floating-point numbers: in float32 the compiler itself gives what is expected."""
    held = (dtypes.members(x) for x in deciding if x != dtypes.OTHER_FLOATS)
    return dtypes.OTHER_FLOATS in deciding or any(x and x <= {"float16", "bfloat16", "float64"} for x in held)


def stated(call: Instance, deciding: Iterable[str], outcome: Outcome) -> bool:
    """Whether documentation says which shape the wrong output has, of the very value of a parameter that decides, or settles in
    a sentence what is expected of the very call."""
    output, shaped = outcome.details.get("output"), outcome.symptom == "shape"
    found = _quoted(call, deciding, outcome)
    return any(x.settles or (shaped and x.exact and f"{output}.shape" in x.text) for x in found)


def spoken_of(call: Instance, deciding: Iterable[str], outcome: Outcome) -> bool:
    """Whether documentation has a sentence on the very value of a parameter that decides."""
    return any(x.exact for x in _quoted(call, deciding, outcome))


def inadmissible(program: Program) -> str:
    """Say what speaks against a program's one call that takes something; a file's constants are what it is given."""
    told = {
        x.outputs[0]: x.params["value"]
        for x in (program.calls if isinstance(program, Graph) else ())
        if x.operator == CONSTANT and x.outputs and isinstance(x.params.get("value"), Tensor)
    }
    calls = [x for x in program.instances(told) if x.operator != CONSTANT]
    return undocumented(calls[0]) if len(calls) == 1 else ""


def undocumented(call: Instance) -> str:
    """Say which inputs of a call have a dtype, numbers or as few elements as its documentation does not state of them; nothing
    where the library is not here to ask. A library may take any dtype of what is empty, and no compiler need.
    """
    library: Any = libraries.get(call.library)
    try:
        texts = library.described(call) if hasattr(library, "described") else {}
    except ImportError:
        return ""
    said = {call.operator: bounds.read(texts)}
    held = {x.name: x.value for x in call.inputs} | call.params
    broken = sorted(bounds.broken(said, call))
    return listed([
        words for _, name, which in broken if (words := _undocumented(name, which, held.get(name), said[call.operator][name]))
    ])  # fmt: skip


def _undocumented(name: str, which: str, value: Value, bound: bounds.Bound) -> str:
    """Say what is documented otherwise of an input or a parameter; nothing of layouts, and of ranks only such as it must have:
    others are often meant loosely."""
    if which == "dtypes":
        return f"{name} is {getattr(value, 'dtype', '?')}, where {' or '.join(bound.dtypes)} is documented"
    if which == "ranks" and bound.must and isinstance(value, Tensor | RandomTensor):
        return f"{name} is {len(value.shape)}-d, where it must be {' or '.join(f'{x}-d' for x in bound.ranks)} as documented"
    if which == "least" and isinstance(value, Tensor | RandomTensor):
        return f"{name} has {math.prod(value.shape)} elements, where at least {bound.least} are documented"
    if which == "range" and bound.range is not None and (words := ranges.told(bound.range)):
        numbers = value.numbers() if isinstance(value, Tensor) else np.asarray(value)
        alone = numbers.size == 1 and not isinstance(value, RandomTensor)
        found = f"is {numbers.item()}" if alone else "holds others"
        return f"{name}, which is documented to be {words}, {found}"
    return ""


def _quoted(call: Instance, deciding: Iterable[str], outcome: Outcome) -> Sequence[Quote]:
    """Return what documentation says of what decides of a wrong output; nothing where the library is not here to ask."""
    library: Any = libraries.get(call.library)
    wrong = Wrong.of(outcome.details, outcome.symptom)
    if not wrong.output or not hasattr(library, "documented"):
        return []
    try:
        found: Sequence[Quote] = library.documented(call, list(filter(None, map(named, deciding))), wrong)
    except ImportError:
        return []
    return found
