"""Screens against false positives: is an inconsistency explained by something other than a fault of the compiler?

A screen only ever moves `inconsistent` or `unstable` to `screened`, with the reason and the numbers behind it. They are asked
in this order: nondeterministic, undefined-behaviour, ill-conditioned, reference-disputed. A wrong form (count, shape, dtype)
is only ever disputed; outputs that vary are only ever undefined. Runs in library-side workers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from opera.errors import InvalidTest
from opera.oracle import comparison as oracle
from opera.oracle import declared, domains, draws, randomness, ties, undefined
from opera.oracle.conditioning import Array, Number, distance_of, ill_conditioned, left_out, rounding, tensors, wide
from opera.oracle.draws import Broken
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Graph, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import DISPUTED, UNSTABLE, Outcome

if TYPE_CHECKING:
    from opera.libraries import Library

NONDETERMINISTIC, UNDEFINED = "nondeterministic", "undefined-behaviour"
ILL_CONDITIONED = "ill-conditioned"
UNWRITTEN = "unwritten"
"""Tag of a test whose expected outputs hold memory that nobody wrote: they differ with what that holds (opera.poison)."""
UNDECIDED = "the library's own answer holds memory that nobody wrote"
SINGLE_REFERENCE, UNSCREENED = "single-reference", "unscreened"
"""Tags of a finding whose expected outputs no independent implementation confirms, and of one whose screens did not end."""

THREE_ANSWERS = "three-answers"
"""Tag of a finding where an independent implementation contradicts the expected output and the compiler alike."""
AGREEING = "agreeing"
"""Detail of an outcome: the independent implementations that confirm what is expected."""
LEFT_OUT = "left-out"
"""Tag of a finding where the compiler computes what the program would with another attribute, or an older operator."""
UNMENDED = "unmended"
"""Tag of a finding where the compiler computes what the library's own reference does, in whose place opera computes."""
BEYOND = "beyond"
"""Tag of a finding where a random operator yields what it never draws."""

RUNS = 8
"""How often a random reference is run, to see how much it varies."""
PATIENCE = 10.0
"""Processor seconds that more of these runs may take, and programs that lack something, where rounding explains it already."""


class Screening(msgspec.Struct, frozen=True):
    """What the screens say: `reason` is empty where the inconsistency stands; `tags` go with the finding."""

    reason: str = ""
    numbers: dict[str, Number] = {}
    tags: tuple[str, ...] = ()


def screen(
    library: Library,
    compiler: str,
    manifest: Manifest,
    directory: Path,
    program: Program,
    actual: list[Value],
    outcome: Outcome,
    runs: randomness.Runs = randomness.NONE,
) -> Screening:
    """Screen one inconsistent or unstable outcome; `actual` are the outputs of `compiler`, in the manifest's order.

    `runs` are what it drew besides, where the program is random.
    """
    expected, inputs = read_values(directory, "expected"), read_values(directory, "inputs")
    form = randomness.wrong_form(manifest, expected, actual)
    if randomness.RANDOM in manifest.tags and not form:
        drawn = _random(library, compiler, manifest, directory, program, actual, outcome, runs)
        if drawn is not None:
            return drawn
    why = "" if form else UNDECIDED if UNWRITTEN in manifest.tags else why_undefined(library, program, expected)
    if why:
        actual = undefined.mended(why, expected, actual)
        if not undefined.wrong(manifest, expected, actual, outcome.details):
            return Screening(UNDEFINED, {"why": str(why)})
    if outcome.verdict == UNSTABLE:
        return Screening()

    def ask(values: list[Value]) -> list[Opinion]:
        return library.opinions(manifest, directory, values, compiler)

    def defined(told: Iterable[Opinion]) -> Iterator[Opinion]:
        for x in told:
            kept = undefined.mended(why, expected, x.outputs) if why and x.outputs is not None else x.outputs
            yield msgspec.structs.replace(x, outputs=kept)

    opinions = list(defined(ask(inputs)))
    without = getattr(library, "lacking", _nobody)
    if rounded := ill_conditioned(ask, manifest, program, inputs, expected, actual, outcome.symptom, opinions):
        begun = time.process_time()
        asked = defined(without(manifest, directory, inputs, compiler))
        for lacking in itertools.takewhile(lambda _: time.process_time() - begun < PATIENCE, asked):
            if lacking.outputs is not None and left_out(manifest, expected, actual, lacking.outputs):
                return Screening("", {"computes_as": lacking.name, **rounded}, (LEFT_OUT,))
        return Screening(ILL_CONDITIONED, rounded)
    further = defined(getattr(library, "further", _nobody)(manifest, directory, inputs, compiler))
    disputed = DISPUTED in manifest.tags and compiler != getattr(library, "DISPUTING", "")
    found = _disputed(manifest, expected, actual, opinions, further, disputed)
    if found.reason == DISPUTED and manifest.reference != "test" and _of_ties(manifest, program, expected, actual):
        return Screening("", found.numbers)
    own = [x.outputs for x in opinions if not x.independent and x.outputs is not None]
    if found.reason == DISPUTED and any(_agree(manifest, expected, outputs) for outputs in own):
        for lacking in defined(without(manifest, directory, inputs, compiler)):
            if lacking.outputs is not None and _agree(manifest, actual, lacking.outputs):
                return Screening("", {"computes_as": lacking.name, **found.numbers}, (LEFT_OUT,))
    if not found.reason and _as_the_library(library, manifest, directory, inputs, actual, why):
        return msgspec.structs.replace(found, tags=(*found.tags, UNMENDED))
    return found


def _of_ties(manifest: Manifest, program: Program, expected: list[Value], actual: list[Value]) -> bool:
    """Whether all that differs are exact ties, which the documentation alone tells, whoever rounds them otherwise."""
    pairs, told = list(tensors(expected, actual)), False
    for want, got in pairs:
        off, tied = _tolerances(manifest, want, got) > 1, ties.exact(program, want.shape)
        if off.any() and (tied is None or (off & ~tied).any()):
            return False
        told = told or bool(off.any())
    return told and len(pairs) == len(expected) == len(actual)


def _as_the_library(
    library: Library, manifest: Manifest, directory: Path, inputs: list[Value], actual: list[Value], why: str
) -> bool:
    """Whether a compiler computes what the library's own reference does, in whose place opera computed what is expected."""
    if manifest.reference == "test" or not hasattr(library, "unmended"):
        return False
    stock = library.unmended(manifest, directory, inputs)
    if stock is not None and why:
        stock = undefined.mended(why, actual, stock)
    return stock is not None and _agree(manifest, actual, stock)


def _nobody(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterable[Opinion]:
    """Return no opinion: most libraries have all of them in `opinions`."""
    return ()


def _random(
    library: Library,
    compiler: str,
    manifest: Manifest,
    directory: Path,
    program: Program,
    actual: list[Value],
    outcome: Outcome,
    runs: randomness.Runs,
) -> Screening | None:
    """Judge the outputs of a random program: by what is declared of its operator, and by runs of the reference.

    Where the program was given a seed, only runs that differ tell how often a number is drawn. None where nothing is drawn: no
    law is declared, and neither the reference's runs nor the compiler's differ.
    """
    expected, inputs = read_values(directory, "expected"), read_values(directory, "inputs")
    seed, again = declared.seeded(program), runs.same
    if seed and runs.anew is not None and runs.anew != actual:
        why = f"with {seed}, two models that are compiled draw different numbers"
        return Screening("", {"why": why, "drawn": draws.SEED, "drawn_place": 0}, (draws.SEED,))
    # before all that takes a number for drawn: memory that nobody wrote is the same from run to run, too
    outside = draws.broken(program, [actual])
    if (
        outside is not None
        and outside.kind == draws.RANGE
        and not _reference_too(library, compiler, manifest, directory, program, inputs, 1, draws.RANGE)
    ):
        return Screening("", outside.numbers(manifest.outputs), (draws.UNLIKE,))
    repeated = bool(again) and all(x == actual for x in again)
    if again and not seed:
        known = [expected, *_drawn(library, compiler, manifest, directory, inputs)]
        renewed = outcome.details.get(randomness.RENEWED) is True
        if same := randomness.repeating(known, actual, again, inputs, renewed=renewed):
            return Screening("", same.numbers(manifest.outputs), (draws.CONSTANT,))
    if same := _unvarying(library, compiler, manifest, directory, inputs, expected, actual, outcome):
        return Screening("", same.numbers(manifest.outputs), (draws.CONSTANT,))
    own = [actual] if repeated else [actual, *again]
    if found := outside if len(own) == 1 else draws.broken(program, own):
        if not _reference_too(library, compiler, manifest, directory, program, inputs, len(own), found.kind):
            return Screening(
                "", found.numbers(manifest.outputs), (draws.CONSTANT if found.kind == draws.ELEMENT else draws.UNLIKE,)
            )
        said = f"the reference draws likewise: {found.why}"
        return Screening(NONDETERMINISTIC, {"why": said, "runs": len(own)})
    if randomness.suspicious(expected, actual):
        drawn = [expected, *_drawn(library, compiler, manifest, directory, inputs)]
        if odd := randomness.beyond(drawn, actual):
            return Screening("", odd.numbers(manifest.outputs), (BEYOND,))
    said = "its draws are as documented"
    if not declared.declared(program):
        drawn = [x for x in _drawn(library, compiler, manifest, directory, inputs) if x]
        varies = any(x != expected for x in drawn)
        if drawn and not varies and not seed and outcome.details.get(randomness.RANDOM) is False:
            return None
        said = (
            "runs of the reference differ" if varies else f"it may draw, though {1 + len(drawn)} runs give one answer"
        )
    return Screening(NONDETERMINISTIC, {"why": f"the operator is random: {said}", "runs": len(own)})


def _reference_too(
    library: Library,
    compiler: str,
    manifest: Manifest,
    directory: Path,
    program: Program,
    inputs: list[Value],
    times: int,
    kind: str,
) -> bool:
    """Whether the reference draws what is not documented, too, and of the same kind: it is asked as often, within PATIENCE.

    An element that never changes is no share that is too large: ONNX Runtime keeps the first one of a Dropout in every run.
    """
    begun, drawn = time.process_time(), list[list[Value]]()
    while len(drawn) < times and time.process_time() - begun < PATIENCE:
        drawn += (x for x in _drawn(library, compiler, manifest, directory, inputs) if x)
        if not drawn:
            return False
    drawn = drawn[:1] if all(x == drawn[0] for x in drawn) else drawn[:times]  # it has a seed: that is one draw
    found = draws.broken(program, drawn)
    return found is not None and found.kind == kind


def _unvarying(
    library: Library,
    compiler: str,
    manifest: Manifest,
    directory: Path,
    inputs: list[Value],
    expected: list[Value],
    actual: list[Value],
    outcome: Outcome,
) -> Broken | None:
    """Return how the outputs of a random program do not vary, where the compiler computed them again; else None.

    The reference is run a few times, for it may draw little or much.
    """
    if outcome.details.get(randomness.RANDOM) is not False:
        return None
    for again in _drawn(library, compiler, manifest, directory, inputs):
        if same := randomness.unvarying(inputs, expected, again, actual):
            return same
    return None


def _drawn(
    library: Library, compiler: str, manifest: Manifest, directory: Path, inputs: list[Value]
) -> Iterator[list[Value]]:
    """Yield the outputs of a few runs of the reference; nothing where it does not run."""
    for _ in range(RUNS):
        own = (x for x in library.opinions(manifest, directory, inputs, compiler) if not x.independent)
        yield next((x.outputs for x in own if x.outputs is not None), [])


def why_undefined(library: Library, program: Program, expected: list[Value]) -> str:
    """Return why the result of a call is left undefined; what follows it may then be anything."""
    if isinstance(program, Graph):
        try:
            steps = library.steps(program)
        except InvalidTest:  # then nothing can be told, and nothing is excused
            return ""
        why = ((call.operator, library.undefined(call, out) or domains.outside(call)) for call, out in steps)
        return next((f"{operator}: {reason}" for operator, reason in why if reason), "")
    return library.undefined(program, expected) or domains.outside(program)


def _disputed(
    manifest: Manifest, expected: list[Value], actual: list[Value], opinions: list[Opinion], further: Iterable[Opinion],
    tagged: bool,
) -> Screening:  # fmt: skip
    """Ask the independent implementations whether the expected outputs stand; it is decided for the test, not the compiler.

    One that agrees with the expected outputs settles it: they stand, whoever else contradicts them; but not one that computes
    in a narrower dtype, and agrees with the compiler as well, within that. Until then, `further` ones are asked. Where none
    agrees with them, a compiler is excused that computes what an independent one computes; two that agree with each other
    then speak against the test's expectation. Who computes something else again excuses nobody, but
    leaves a reference that opera computed itself without a witness, if by outputs of the compiler's form: another dtype says
    nothing of values. One that computed the same in higher precision speaks for whoever is nearer to it, whether it contradicts
    the reference or not. Where nobody can be asked now, a test that is `tagged` so from the start is disputed by who was then:
    by another than the compiler itself, who excuses nobody.
    """
    contradicting: list[tuple[Opinion, oracle.Comparison]] = []
    precise, refused, neutral = "", {}, False
    form = randomness.RANDOM in manifest.tags and randomness.wrong_form(
        manifest, expected, actual
    )  # other draws tell it alone
    for opinion in _independent(opinions, further):
        if opinion.outputs is None:
            refused[opinion.name] = opinion.error[:300]
            continue
        narrow = opinion.computes_in
        granted = oracle.granted(narrow, expected, manifest)
        against = oracle.compare(expected, opinion.outputs, manifest.outputs, *granted)
        if opinion.precise and not form:
            shown = _nearer(manifest, expected, actual, opinion.outputs)
            if shown is not None:
                reason = DISPUTED if against.symptom else ILL_CONDITIONED
                return Screening(reason, {"by": opinion.name, **shown})
            precise = opinion.name
            if against.symptom:
                contradicting.append((opinion, against))
        elif _agree(manifest, expected, opinion.outputs, narrow):
            if narrow and _agree(manifest, actual, opinion.outputs, narrow):
                neutral = True  # as near to the one as to the other, for what it computes in
                continue
            numbers: dict[str, Number] = {AGREEING: opinion.name}
            if contradicting:
                numbers["contradicting"] = ", ".join(x.name for x, _ in contradicting)
            return Screening("", numbers)
        elif not opinion.confirming and (not opinion.equivalent or _agree(manifest, actual, opinion.outputs, narrow)):
            contradicting.append((opinion, against))
    like = [
        pair
        for pair in contradicting
        if not pair[0].precise and _agree(manifest, actual, pair[0].outputs or [], pair[0].computes_in)
    ]
    if like:
        return Screening(DISPUTED, {
            "by": ", ".join(x.name for x, _ in like),
            "reference_symptom": like[0][1].symptom,
            "reference_message": like[0][1].message[:500],
            "agrees_with_compiler": True,
            **{f"{name}_error": error for name, error in refused.items()},
        })  # fmt: skip
    heard = precise or contradicting or neutral
    if tagged and not heard and not randomness.wrong_form(manifest, expected, actual):
        return Screening(DISPUTED, {
            "by": "a reference that was asked when the test was generated",
            "agrees_with_compiler": False,
            **{f"{name}_error": error for name, error in refused.items()},
        })  # fmt: skip
    if contradicting:
        both: dict[str, Number] = {"contradicts_both": ", ".join(x.name for x, _ in contradicting)}
        formed = (x for x, _ in contradicting if not randomness.wrong_form(manifest, actual, x.outputs or []))
        alone = manifest.reference != "test" and any(not x.precise for x in formed)
        return Screening("", both, (THREE_ANSWERS, *([SINGLE_REFERENCE] if alone else [])))
    if precise:
        return Screening("", {AGREEING: precise})
    return Screening("", {f"{name}_error": error for name, error in refused.items()}, (SINGLE_REFERENCE,))


def _independent(opinions: list[Opinion], further: Iterable[Opinion]) -> Iterator[Opinion]:
    """Yield the independent opinions, those that are asked for only now last."""
    yield from (opinion for opinion in opinions if opinion.independent)
    yield from (opinion for opinion in further if opinion.independent)


def _agree(
    manifest: Manifest, one: list[Value], other: list[Value], computes_in: Mapping[str, str] = MappingProxyType({})
) -> bool:
    """Whether two answers agree: within tolerance, that of narrower dtypes where the other is computed in these; for long sums
    within rounding, for random operators in form.
    """
    if randomness.RANDOM in manifest.tags:
        return not randomness.wrong_form(manifest, one, other)
    granted = oracle.granted(computes_in, one, manifest)
    found = oracle.compare(one, other, manifest.outputs, *granted)
    if found.symptom == "value" and "accumulating" in manifest.tags and not randomness.wrong_form(manifest, one, other):
        return rounding(manifest, one, other) is not None
    return not found.symptom


def _nearer(
    manifest: Manifest, expected: list[Value], actual: list[Value], precise: list[Value]
) -> dict[str, float] | None:
    """Return the numbers that show that the compiler is as near to a more precise result as the reference is, else None.

    Distances are taken where the compiler is off by the oracle, in tolerances. NaN or an infinity on one side only is an
    infinite distance.
    """
    found = list(tensors(expected, actual))
    exact = [x for _, x in tensors(expected, precise)]
    if not len(found) == len(exact) == len(expected) == len(actual):
        return None
    worst = {"reference": 0.0, "compiler": 0.0}
    for (want, got), right in zip(found, exact, strict=True):
        off = _tolerances(manifest, want, got) > 1
        for name, one in (("reference", want), ("compiler", got)):
            worst[name] = max(worst[name], float(_tolerances(manifest, right, one)[off].max(initial=0.0)))
    if worst["compiler"] > worst["reference"] or worst["compiler"] == np.inf:
        return None
    return {f"{name}_deviation": value for name, value in worst.items()}


def _tolerances(manifest: Manifest, right: Tensor, other: Tensor) -> Array:
    """Return how far each element is from the right one, in tolerances: more than 1 is off."""
    distance, special = distance_of(right, other)
    rtol, atol = oracle.tolerance(right.dtype, *oracle.granted({}, [right], manifest))
    size = np.nan_to_num(np.abs(wide(right)), nan=0.0, posinf=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(distance > 0, distance / (atol + rtol * size), 0.0)
    return np.where(special, np.inf, share)
