"""Screens against false positives: is an inconsistency explained by something other than a fault of the compiler?

A screen only ever moves `inconsistent` or `unstable` to `screened`, with the reason and the numbers behind it. They are asked
in this order: nondeterministic, undefined-behaviour, ill-conditioned, reference-disputed. A wrong form (count, shape, dtype)
is only ever disputed; outputs that vary are only ever undefined. Runs in library-side workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from opera.errors import InvalidTest
from opera.oracle import comparison as oracle
from opera.oracle import declared, domains, draws, randomness, ties, undefined
from opera.oracle.draws import Broken
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Graph, Program
from opera.programs.values import Optional, Sequence, Tensor, Value
from opera.programs.verdicts import DISPUTED, UNSTABLE, Outcome

if TYPE_CHECKING:
    from opera.libraries import Library

NONDETERMINISTIC, UNDEFINED = "nondeterministic", "undefined-behaviour"
ILL_CONDITIONED = "ill-conditioned"
NEARER = 8
"""How many times nearer, at least, an answer is to that of a program which lacks something, where rounding may explain it."""
SINGLE_REFERENCE, UNSCREENED = "single-reference", "unscreened"
"""Tags of a finding for which no independent implementation could be asked, and of one whose screens did not end."""

THREE_ANSWERS = "three-answers"
"""Tag of a finding where an independent implementation contradicts the expected output and the compiler alike."""
AGREEING = "agreeing"
"""Detail of an outcome: the independent implementations that confirm what is expected."""
LEFT_OUT = "left-out"
"""Tag of a finding where the compiler computes what the program would with another attribute, or an older operator."""
BEYOND = "beyond"
"""Tag of a finding where a random operator yields what it never draws."""
NORMWISE = 16.0
"""Rounding errors of this many machine epsilons of the largest element are no finding (long sums reach about 10)."""
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23}

SAMPLES = 3
"""How often inputs are perturbed: one sample may by chance move an output little."""
RUNS = 8
"""How often a random reference is run, to see how much it varies."""
PATIENCE = 10.0
"""Processor seconds that more of these runs may take."""
SHARE, MARGIN = 0.95, 4.0
"""Share of the differing elements that must each have moved by a MARGINth of their deviation: a few of many move little by
chance, but an element that is tame is not excused by a wild one."""
ULPS = {"float16": 1, "bfloat16": 1, "float32": 4, "float64": 4}
"""dtype → units in the last place that inputs are perturbed by. A backward-stable implementation is exact for inputs
that are this close; 8-bit floats are left alone, for their steps are far larger than any rounding."""

Array: TypeAlias = np.ndarray[Any, Any]
Number: TypeAlias = str | float | int | bool | None
Ask: TypeAlias = Callable[[list[Value]], list[Opinion]]


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
        return _random(library, compiler, manifest, directory, program, actual, outcome, runs)
    why = "" if form else why_undefined(library, program, expected)
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
        for lacking in defined(without(manifest, directory, inputs, compiler)):
            if lacking.outputs is not None and _is_it(manifest, expected, actual, lacking.outputs):
                return Screening("", {"computes_as": lacking.name, **rounded}, (LEFT_OUT,))
        return Screening(ILL_CONDITIONED, rounded)
    further = defined(getattr(library, "further", _nobody)(manifest, directory, inputs, compiler))
    found = _disputed(manifest, expected, actual, opinions, further)
    own = [x.outputs for x in opinions if not x.independent and x.outputs is not None]
    if found.reason == DISPUTED and any(_agree(manifest, expected, outputs) for outputs in own):
        for lacking in defined(without(manifest, directory, inputs, compiler)):
            if lacking.outputs is not None and _agree(manifest, actual, lacking.outputs):
                return Screening("", {"computes_as": lacking.name, **found.numbers}, (LEFT_OUT,))
    return found


def ill_conditioned(
    ask: Ask,
    manifest: Manifest,
    program: Program,
    inputs: list[Value],
    expected: list[Value],
    actual: list[Value],
    symptom: str,
    opinions: list[Opinion],
) -> dict[str, Number]:
    """Return the numbers that show that rounding explains a difference of values, empty where it does not."""
    if randomness.wrong_form(manifest, expected, actual):
        return {}
    if symptom == "value" and "accumulating" in manifest.tags:
        numbers = _rounding(manifest, expected, actual)
        if numbers is not None:
            return numbers
    if symptom in ("value", "nan-mask") and "exact" not in manifest.tags:
        decided = [ties.exact(program, want.shape) for want, _ in _tensors(expected, actual)]
        for base in opinions:
            numbers = _ill_conditioned(ask, manifest, inputs, expected, actual, base, decided)
            if numbers is not None:
                return numbers if numbers["explains"] else {}
    return {}


def _is_it(manifest: Manifest, expected: list[Value], actual: list[Value], lacking: list[Value]) -> bool:
    """Whether an answer that may be rounded is that of a program which lacks something: within tolerance of it, and nearer to
    it than to the expected one by far.
    """
    if oracle.compare(lacking, actual, manifest.outputs, manifest.rtol, manifest.atol).symptom:
        return False
    off, left = (
        max((float(_distance(want, got)[0].max(initial=0.0)) for want, got in _tensors(of, actual)), default=0.0)
        for of in (expected, lacking)
    )
    return off > NEARER * left


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
) -> Screening:
    """Judge the outputs of a random program: by what is declared of its operator, and by runs of the reference.

    Where the program was given a seed, only runs that differ tell how often a number is drawn.
    """
    expected, inputs = read_values(directory, "expected"), read_values(directory, "inputs")
    seed, again = declared.seeded(program), runs.same
    if seed and runs.anew is not None and runs.anew != actual:
        why = f"with {seed}, two models that are compiled draw different numbers"
        return Screening("", {"why": why, "drawn": draws.SEED, "drawn_place": 0}, (draws.SEED,))
    repeated = bool(again) and all(x == actual for x in again)
    if again and not seed:
        known = [expected, *_drawn(library, compiler, manifest, directory, inputs)]
        renewed = outcome.details.get(randomness.RENEWED) is True
        if same := randomness.repeating(known, actual, again, inputs, renewed=renewed):
            return Screening("", same.numbers(manifest.outputs), (draws.CONSTANT,))
    if same := _unvarying(library, compiler, manifest, directory, inputs, expected, actual, outcome):
        return Screening("", same.numbers(manifest.outputs), (draws.CONSTANT,))
    own = [actual] if repeated else [actual, *again]
    if found := draws.broken(program, own):
        if not _reference_too(library, compiler, manifest, directory, program, inputs, len(own)):
            return Screening(
                "", found.numbers(manifest.outputs), (draws.CONSTANT if found.kind == draws.ELEMENT else draws.UNLIKE,)
            )
        said = f"the reference draws likewise: {found.why}"
        return Screening(NONDETERMINISTIC, {"why": said, "runs": len(own)})
    if randomness.suspicious(expected, actual):
        drawn = [expected, *_drawn(library, compiler, manifest, directory, inputs)]
        if odd := randomness.beyond(drawn, actual):
            return Screening("", odd.numbers(manifest.outputs), (BEYOND,))
    said = "its draws are as documented" if declared.declared(program) else "two reference runs differ, and so may it"
    return Screening(NONDETERMINISTIC, {"why": f"the operator is random: {said}", "runs": len(own)})


def _reference_too(
    library: Library,
    compiler: str,
    manifest: Manifest,
    directory: Path,
    program: Program,
    inputs: list[Value],
    times: int,
) -> bool:
    """Whether the reference draws what is not documented, too: it is asked as often, within PATIENCE."""
    begun, drawn = time.process_time(), list[list[Value]]()
    while len(drawn) < times and time.process_time() - begun < PATIENCE:
        drawn += (x for x in _drawn(library, compiler, manifest, directory, inputs) if x)
        if not drawn:
            return False
    drawn = drawn[:1] if declared.seeded(program) and all(x == drawn[0] for x in drawn) else drawn[:times]
    return draws.broken(program, drawn) is not None


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


def _rounding(manifest: Manifest, expected: list[Value], actual: list[Value]) -> dict[str, Number] | None:
    """Return the numbers that show that all differences are rounding at the scale of the tensor, else None.

    A sum that cancels to nearly nothing keeps the rounding errors of its terms: its error is small beside the norm of the
    output, though not beside the element itself (normwise forward error; Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1).
    """
    pairs = list(_tensors(expected, actual))
    worst = 0.0
    for want, got in pairs:
        epsilon = EPSILON.get(want.dtype)
        distance, special = _distance(want, got)
        if special.any() or (epsilon is None and distance.any()):
            return None
        wide = np.abs(_wide(want))
        norm = float(wide[np.isfinite(wide)].max(initial=0.0))
        rtol, atol = oracle.tolerance(want.dtype, manifest.rtol, manifest.atol)
        off = distance[distance > atol + rtol * np.nan_to_num(wide, nan=0.0, posinf=0.0)]
        if off.size:
            worst = max(worst, float(off.max()) / (norm * (epsilon or 0.0)) if norm else np.inf)
    if not pairs or not 0.0 < worst <= NORMWISE:
        return None
    return {"deviation_in_epsilons_of_the_largest_element": worst, "allowed": NORMWISE}


def _disputed(
    manifest: Manifest, expected: list[Value], actual: list[Value], opinions: list[Opinion], further: Iterable[Opinion]
) -> Screening:
    """Ask the independent implementations whether the expected outputs stand; it is decided for the test, not the compiler.

    One that agrees with the expected outputs settles it: they stand, whoever else contradicts them. Until then, `further`
    ones are asked. Where none agrees with them, a compiler is excused that computes what an independent one computes; two
    that agree with each other then speak against the test's expectation. A reference that opera computed itself falls by any
    contradiction by one whose outputs are of the compiler's form: another dtype says nothing of values. One that computed the
    same in higher precision speaks for whoever is nearer to it, whether it contradicts the reference or not. Of a test that is
    tagged so from the start, only one that agrees with the expected outputs, or a more precise one, says that the values stand.
    """
    contradicting: list[tuple[Opinion, oracle.Comparison]] = []
    precise, refused = "", {}
    for opinion in _independent(opinions, further):
        if opinion.outputs is None:
            refused[opinion.name] = opinion.error[:300]
            continue
        against = oracle.compare(expected, opinion.outputs, manifest.outputs, manifest.rtol, manifest.atol)
        if opinion.precise:
            shown = _nearer(manifest, expected, actual, opinion.outputs)
            if shown is not None:
                reason = DISPUTED if against.symptom else ILL_CONDITIONED
                return Screening(reason, {"by": opinion.name, **shown})
            precise = opinion.name
            if against.symptom:
                contradicting.append((opinion, against))
        elif _agree(manifest, expected, opinion.outputs):
            numbers: dict[str, Number] = {AGREEING: opinion.name}
            if contradicting:
                numbers["contradicting"] = ", ".join(x.name for x, _ in contradicting)
            return Screening("", numbers)
        elif not opinion.equivalent or _agree(manifest, actual, opinion.outputs):
            contradicting.append((opinion, against))
    like = [pair for pair in contradicting if not pair[0].precise and _agree(manifest, actual, pair[0].outputs or [])]
    computed = [
        pair
        for pair in contradicting
        if not pair[0].precise
        and manifest.reference != "test"
        and not randomness.wrong_form(manifest, actual, pair[0].outputs or [])
    ]
    for opinion, against in like or computed:
        return Screening(DISPUTED, {
            "by": ", ".join(x.name for x, _ in like) or opinion.name,
            "reference_symptom": against.symptom,
            "reference_message": against.message[:500],
            "agrees_with_compiler": bool(like),
            **{f"{name}_error": error for name, error in refused.items()},
        })  # fmt: skip
    if DISPUTED in manifest.tags and not precise and not randomness.wrong_form(manifest, expected, actual):
        return Screening(DISPUTED, {
            "by": "a reference that was asked when the test was generated",
            "agrees_with_compiler": False,
            **{f"{name}_error": error for name, error in refused.items()},
        })  # fmt: skip
    if contradicting:
        return Screening("", {"contradicts_both": ", ".join(x.name for x, _ in contradicting)}, (THREE_ANSWERS,))
    if precise:
        return Screening("", {AGREEING: precise})
    return Screening("", {f"{name}_error": error for name, error in refused.items()}, (SINGLE_REFERENCE,))


def _independent(opinions: list[Opinion], further: Iterable[Opinion]) -> Iterator[Opinion]:
    """Yield the independent opinions, those that are asked for only now last."""
    yield from (opinion for opinion in opinions if opinion.independent)
    yield from (opinion for opinion in further if opinion.independent)


def _agree(manifest: Manifest, one: list[Value], other: list[Value]) -> bool:
    """Whether two answers agree: within tolerance; for long sums within rounding, for random operators in form."""
    if randomness.RANDOM in manifest.tags:
        return not randomness.wrong_form(manifest, one, other)
    found = oracle.compare(one, other, manifest.outputs, manifest.rtol, manifest.atol)
    if found.symptom == "value" and "accumulating" in manifest.tags and not randomness.wrong_form(manifest, one, other):
        return _rounding(manifest, one, other) is not None
    return not found.symptom


def _nearer(
    manifest: Manifest, expected: list[Value], actual: list[Value], precise: list[Value]
) -> dict[str, float] | None:
    """Return the numbers that show that the compiler is as near to a more precise result as the reference is, else None.

    Distances are taken where the compiler is off by the oracle, in tolerances. NaN or an infinity on one side only is an
    infinite distance.
    """
    found = list(_tensors(expected, actual))
    exact = [x for _, x in _tensors(expected, precise)]
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
    distance, special = _distance(right, other)
    rtol, atol = oracle.tolerance(right.dtype, manifest.rtol, manifest.atol)
    size = np.nan_to_num(np.abs(_wide(right)), nan=0.0, posinf=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(distance > 0, distance / (atol + rtol * size), 0.0)
    return np.where(special, np.inf, share)


def _ill_conditioned(
    ask: Ask,
    manifest: Manifest,
    inputs: list[Value],
    expected: list[Value],
    actual: list[Value],
    base: Opinion,
    decided: list[Array | None],
) -> dict[str, Number] | None:
    """Compare how far the compiler is off with how far a reference moves when its inputs do, where they differ.

    Returns None where this reference cannot tell: it did not run, or its outputs have another form.
    """
    pairs = list(_tensors(expected, actual))
    steady = None if base.outputs is None else [got for _, got in _tensors(expected, base.outputs)]
    if not pairs or steady is None or len(steady) != len(pairs):
        return None
    moved = [np.zeros(want.shape) for want, _ in pairs]
    flipped = [np.zeros(want.shape, dtype=bool) for want, _ in pairs]
    coarsest = max((EPSILON.get(want.dtype, np.inf) for want, _ in pairs))
    for seed in range(SAMPLES):
        generator = np.random.Generator(np.random.PCG64(seed))
        nudged = [perturb(value, generator, coarsest) for value in inputs]
        if nudged == inputs:
            return None
        again = [x for x in ask(nudged) if x.name == base.name]
        if not again or again[0].outputs is None:
            return None
        shifted = [got for _, got in _tensors(expected, again[0].outputs)]
        if len(shifted) != len(steady):
            return None
        for place, (before, after) in enumerate(zip(steady, shifted, strict=True)):
            distance, special = _distance(before, after)
            moved[place], flipped[place] = np.maximum(moved[place], distance), flipped[place] | special
    return _verdict(manifest, pairs, moved, flipped, decided, base.name)


def _verdict(
    manifest: Manifest,
    pairs: list[tuple[Tensor, Tensor]],
    moved: list[Array],
    flipped: list[Array],
    decided: list[Array | None],
    name: str,
) -> dict[str, Number]:
    """Decide: what is off must have been moved as far by the perturbation, in the elements that are off.

    `decided` tells the exact ties of each output: what is off there is wrong, however far a perturbation moves it.
    """
    explains, deviation, movement = True, 0.0, 0.0
    for (want, got), reach, flips, tied in zip(pairs, moved, flipped, decided, strict=True):
        distance, special = _distance(want, got)
        rtol, atol = oracle.tolerance(want.dtype, manifest.rtol, manifest.atol)
        size = np.nan_to_num(np.abs(_wide(want)), nan=0.0, posinf=0.0)
        off = ~special & (distance > atol + rtol * size)
        explains = explains and bool(flips[special].all()) and (tied is None or not (tied & off).any())
        if off.any():
            each = float(np.mean(MARGIN * reach[off] >= distance[off]))
            explains = explains and each >= SHARE and bool(reach[off].max() >= distance[off].max())
            deviation = max(deviation, float(distance[off].max()))
            movement = max(movement, float(reach[off].max()))
    return {
        "explains": explains,
        "reference": name,
        "compiler_deviation": deviation,
        "reference_movement": movement,
        "samples": SAMPLES,
    }


def perturb(value: Value, generator: np.random.Generator, coarsest: float = np.inf) -> Value:
    """Move every finite, nonzero float of a value by 1 to ULPS units in the last place; its sign and zeros stay.

    Floats whose machine epsilon is above `coarsest` stay: where a result is of a finer dtype than an input, the input is exact
    in the precision that the result is to have, and a move of it would excuse whoever computes in the input's.
    """
    match value:
        case Tensor(dtype=dtype) if dtype in ULPS and EPSILON[dtype] <= coarsest:
            width = 16 if dtype == "bfloat16" else 8 * np.dtype(dtype).itemsize
            mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype]
            bits = np.frombuffer(value.data, dtype=f"<u{width // 8}").astype(np.uint64)
            sign = np.uint64(1 << (width - 1))
            size = (bits & ~sign).astype(np.int64)
            infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
            steps = generator.integers(1, ULPS[dtype] + 1, size=size.shape) * generator.choice([-1, 1], size=size.shape)
            usual = (size > ULPS[dtype]) & (size < infinity - ULPS[dtype])
            new = np.where(usual, size + steps, size).astype(np.uint64) | (bits & sign)
            return Tensor(dtype, value.shape, new.astype(f"<u{width // 8}").tobytes())
        case Sequence(items=items):
            return Sequence(value.type, tuple(perturb(item, generator, coarsest) for item in items))
        case Optional(value=inner) if inner is not None:
            return Optional(value.type, perturb(inner, generator, coarsest))
    return value


def _tensors(expected: list[Value], actual: list[Value]) -> Iterator[tuple[Tensor, Tensor]]:
    """Pair the numeric tensors of two lists of outputs, where both have the same form; what has not is left out."""
    for want, got in zip(expected, actual, strict=False):
        want = want.value if isinstance(want, Optional) else want
        got = got.value if isinstance(got, Optional) else got
        match want, got:
            case Tensor(), Tensor():
                if want.shape == got.shape and want.dtype == got.dtype != "string":
                    yield want, got
            case Sequence(items=wants), Sequence(items=gots) if len(wants) == len(gots):
                yield from _tensors(list(wants), list(gots))


def _wide(tensor: Tensor) -> Array:
    numbers = tensor.numbers()
    return numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)


def _distance(before: Tensor, after: Tensor) -> tuple[Array, Array]:
    """Return |after - before| (0 where either is not finite), and where NaN or an infinity is on one side only."""
    one, other = _wide(before), _wide(after)
    finite = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        distance = np.where(finite, np.abs(np.where(finite, other, 0) - np.where(finite, one, 0)), 0.0)
    return distance, ~finite & ~same
