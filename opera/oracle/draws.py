"""Whether numbers that a compiler drew are such as the documentation of a random operator says.

`[[draws]]` of instrumentation/<library>.toml says which operator draws what: a distribution (opera.oracle.laws) and where its
parameters stand. First come exact facts, which no draw may break: a number is of the range, it is 0 or the input over 1 - p.
Then comes how often numbers are drawn, of each element and of all that have the same parameters, over several runs of one
compiled model: the greatest distance between the share that was seen and the one that should be is compared with the
Dvoretzky-Kiefer-Wolfowitz bound (Massart, Annals of Probability 18, 1990) or, where few whole numbers may be drawn, with
Chernoff's, which sees rare ones better; both hold for every distribution and number of draws. So does the probability that
none of them is below the least that was seen, or above the greatest. A compiler that draws independently is told wrong by that
at most CHANCE times, all comparisons of a test together. opera.oracle.quantities says in what numbers differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.oracle import laws, quantities
from opera.oracle.declared import Draw, declared, first_of, given_of
from opera.oracle.laws import Given, Law
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value

Array: TypeAlias = np.ndarray[Any, Any]
Number: TypeAlias = str | float | int | bool | None

CHANCE = 1e-6
"""How often right draws may be told to be wrong, of one test."""
LARGEST = 1 << 20
"""Draws of an output that are looked at."""
SEPARATE = 4096
"""Elements, or sets of parameters, of an output that are looked at one by one."""
FEW = 64
"""Whole numbers among which each threshold is looked at by itself."""
ROUNDING = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-20, "float64": 2.0**-40}
"""dtype → how far a number may be off relatively that is computed from what was drawn."""
SURELY = 0.5
"""Share of the draws that are one number where a law of numbers between leaves it alone: a deviation of 0."""
OUTSIDE = 1000.0
"""So many times farther from 0 than any bound of a law no slip of a formula leads."""
SEED = "seed"
"""Tag of a finding where a seed is given, and two compiled models draw differently."""
UNCHANGED = "an input unchanged"
"""How it is told that nothing is drawn at all."""
CONSTANT, ELEMENT = "constant", "element"
"""Tag of a finding where a random operator does not vary; kind of it where one element does not, and others do."""
RANGE = "range"
"""Kind of it where a number is outside of what may be drawn: wrong in one run, whatever varies."""
CHOSEN = "chosen"
"""Law by which a random operator chooses among the numbers of an input."""
UNLIKE = "unlike"
"""Tag of a finding where numbers are none of the declared distribution, or drawn too often or too seldom."""


class Broken(msgspec.Struct, frozen=True):
    """What draws contradict, in words, and in numbers that a script can look at again.

    Attributes:
        why: In words; `output 0` is the first output.
        kind: RANGE: numbers below `low` or above `high`; `share`: the draws of `element` (all, where it is empty) differ in
            what `how` says; ELEMENT: `element` is the same in all runs; `kept`: numbers that are neither 0 nor what `kept`
            says; empty where it takes more to see it.
        place: Place of the output.
        at, share, slack, how, needs: As in opera.oracle.quantities.Difference, `share` is what is wanted.
        renewed: Whether what is the same from run to run is another now and then, as in the clock's next second.
    """

    why: str
    kind: str = ""
    place: int = 0
    element: str = ""
    at: float = 0.0
    share: float = 0.0
    slack: float = 0.0
    how: str = ""
    needs: int = 0
    low: float = -math.inf
    high: float = math.inf
    renewed: bool = False

    def numbers(self, outputs: Sequence[str] = ()) -> dict[str, Number]:
        """Return it as details of an outcome; what is infinite is left out, for JSON has no such number.

        Args:
            outputs: Names of the outputs, as far as they are known: they stand for `output 0` in words then.
        """
        named = {f"output {place}": name for place, name in enumerate(outputs)}
        why = re.sub(r"\boutput \d+\b", lambda x: named.get(x[0], x[0]), self.why)
        found: dict[str, Number] = {"why": why, "drawn": self.kind, "drawn_place": self.place}
        told: dict[str, dict[str, Any]] = {
            RANGE: {"low": self.low, "high": self.high},
            "share": {
                "element": self.element,
                "at": self.at,
                "share": self.share,
                "slack": self.slack,
                "how": self.how,
                "needs": self.needs,
            },
            ELEMENT: {"element": self.element},
            CONSTANT: {"renewed": True} if self.renewed else {},
        }
        more = told.get(self.kind, {})
        return {
            **found,
            **{f"drawn_{name}": x for name, x in more.items() if not isinstance(x, float) or math.isfinite(x)},
        }


def broken(program: Program, runs: Sequence[Sequence[Value]]) -> Broken | None:
    """Return what the outputs of several runs contradict of what is declared; None where it is nothing, or nothing is.

    Args:
        runs: The outputs of each, all of one form.
    """
    draw = declared(program)
    if draw is None or not isinstance(program, Instance) or not runs:
        return None
    outputs = list(zip(*runs, strict=True))
    first = _stacked(outputs[0]) if outputs else None
    if first is None:
        return None
    with np.errstate(over="ignore"):
        return _judged(program, draw, outputs, first)


def _judged(program: Instance, draw: Draw, outputs: Sequence[Sequence[Value]], first: Array) -> Broken | None:
    dtype = _dtype(outputs[0][0])
    if draw.law == "dropout":
        mask = _stacked(outputs[draw.mask]) if -1 < draw.mask < len(outputs) else None
        return _dropout(program, draw, first, mask, dtype)
    if draw.law == "categorical":
        return _categorical(program, draw, first)
    if draw.law == CHOSEN:
        return _chosen(program, draw, first, dtype)
    law = laws.LAWS[draw.law]
    given = given_of(program, draw, law.parameters, first.shape[1:])
    if given is None:
        return None
    if draw.of:
        return _put(program, draw, law, given, first, dtype)
    return _range(draw, law, given, first, dtype) or _shares(law, given, first, dtype, blocks=draw.blocks)


def _stacked(runs: Sequence[Value]) -> Array | None:
    """Return the numbers of one output, runs first; None where they are none, or too many."""
    if not all(isinstance(x, Tensor) and x.dtype != "string" and "complex" not in x.dtype for x in runs):
        return None
    tensors = [x for x in runs if isinstance(x, Tensor)]
    if len({x.shape for x in tensors}) != 1 or not 0 < len(tensors) * math.prod(tensors[0].shape) <= LARGEST:
        return None
    return np.stack([x.numbers().astype(np.float64) for x in tensors])


def _dtype(value: Value) -> str:
    return value.dtype if isinstance(value, Tensor) else ""


# ---------------------------------------------------------------------- facts


def _range(draw: Draw, law: Law, given: Given, drawn: Array, dtype: str) -> Broken | None:
    """Return which number is outside of what may be drawn, NaN among them."""
    low, high = (np.broadcast_to(of(given), drawn.shape) for of in (law.least, law.most))
    slack = ROUNDING.get(dtype, 0.0)
    with np.errstate(invalid="ignore"):
        room = slack * np.maximum(*(np.where(np.isfinite(x), np.abs(x), 0.0) for x in (low, high)))
        bad = ~((drawn >= low - room) & (drawn <= high + room)) | (
            np.isinf(drawn) & ~_overflows(law, given, drawn, dtype)
        )
        if draw.exclusive:
            bad |= (drawn >= high) & (high > low)
        if law.whole:
            bad |= np.isfinite(drawn) & (drawn != np.round(drawn))
    if not bad.any():
        return None
    place = tuple(np.argwhere(bad)[0])
    least, most = float(low.min()), float(high.max())
    why = f"output 0 holds {_odd(float(drawn[place]), least, most)}; the documentation lets it draw {_bounds(law, least, most)}"
    return Broken(why, RANGE if not least <= drawn[place] <= most else "", low=least, high=most)


def _odd(number: float, least: float, most: float) -> str:
    """Say of what kind a number is that may not be drawn: which it is tells of one run."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "infinities"
    if abs(number) > OUTSIDE * max(1.0, *(abs(x) for x in (least, most) if math.isfinite(x))):
        return "numbers far outside of what it may draw"  # the rest of memory
    if not least <= number <= most:
        return f"numbers below {least:g}" if number < least else f"numbers above {most:g}"
    return f"{most:g}, which is not among what it may draw" if number == most else "numbers that are not whole"


def _bounds(law: Law, least: float, most: float) -> str:
    what = "whole numbers " if law.whole else ""
    if not math.isfinite(least):
        return "finite numbers"
    return f"{what}{least:g} to {most:g}" if math.isfinite(most) else f"{what}from {least:g} on"


def _overflows(law: Law, given: Given, drawn: Array, dtype: str) -> bool:
    """Whether chance makes a number that its dtype cannot hold more often than CHANCE."""
    if not dtype.startswith(("float", "bfloat")):
        return False
    import ml_dtypes

    most = float(ml_dtypes.finfo(dtype).max)
    ends = (law.share(np.full(drawn.shape[1:], end), given) for end in (-most, most))
    low, high = (np.asarray(x) for x in ends)
    return bool(len(drawn) * (low + 1.0 - high).sum() > CHANCE)


def _dropout(program: Instance, draw: Draw, drawn: Array, mask: Array | None, dtype: str) -> Broken | None:
    """Judge a dropout: each element is 0 or the input's over 1 - p, as the mask says, 0 in a share p."""
    x, given = first_of(program, draw.of), given_of(program, draw, ("p",), drawn.shape[1:])
    if x is None or given is None or x.shape != drawn.shape[1:]:
        return None
    share, kept = given["p"], _kept(x, given["p"])
    with np.errstate(divide="ignore", invalid="ignore"):
        stays = np.isclose(drawn, kept, 8 * ROUNDING.get(dtype, 0.0), 0.0, equal_nan=True)
    odd = ~(stays | (drawn == 0))
    if odd.any():
        place = tuple(np.argwhere(odd)[0])
        return _neither(list(map(int, place[1:])), float(drawn[place]), float(kept[place[1:]]))
    telling = (x != 0) & (share < 1)
    if mask is not None and mask.shape == drawn.shape and ((mask != 0) != stays)[:, telling].any():
        place = tuple(np.argwhere(((mask != 0) != stays) & telling)[0])
        at = list(map(int, place[1:]))
        said = f"the mask says {bool(mask[place])} of {at}"
        return Broken(f"{said}, and output 0{at} is {drawn[place]:g} of {x[place[1:]]:g}", place=draw.mask)
    if not telling.any():
        return None
    law = laws.LAWS["bernoulli"]
    kinds = {"p": (1.0 - share)[telling]}
    stay = (drawn != 0)[:, telling] * 1.0
    found = _shares(law, kinds, stay, "", blocks=draw.blocks, where=np.argwhere(telling), dropped=True)
    return msgspec.structs.replace(found, kind="") if found and not found.element and not telling.all() else found


def _chosen(program: Instance, draw: Draw, drawn: Array, dtype: str) -> Broken | None:
    """Judge numbers that are chosen of an input, and not computed of them: each is one of these."""
    x = first_of(program, draw.of)
    if x is None or not x.size:
        return None
    held = np.unique(x[np.isfinite(x)])
    if not held.size:
        return None
    place = np.clip(np.searchsorted(held, drawn), 1, max(held.size - 1, 1))
    with np.errstate(invalid="ignore"):
        near = np.fmin(*(np.abs(held[np.minimum(y, held.size - 1)] - drawn) for y in (place, place - 1)))
        odd = ~(
            (near <= ROUNDING.get(dtype, 0.0) * np.abs(drawn))
            | np.isin(drawn, x)
            | (np.isnan(drawn) & np.isnan(x).any())
        )
    if not odd.any():
        return None
    at, low, high = tuple(np.argwhere(odd)[0]), float(held[0]), float(held[-1])
    told = f"output 0 holds {drawn[at]:.6g}, which is no number of its input"
    return Broken(told, "" if low <= drawn[at] <= high else RANGE, low=low, high=high)


def _kept(x: Array, share: Array) -> Array:
    """Return what a dropout leaves of elements that it does not set to 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(share < 1, x / (1.0 - share), 0.0)


def kept(program: Program) -> Array | None:
    """Return what each element of a dropout's output is where it is not 0; None for other programs."""
    draw = declared(program)
    if draw is None or draw.law != "dropout" or not isinstance(program, Instance):
        return None
    x = first_of(program, draw.of)
    given = None if x is None else given_of(program, draw, ("p",), x.shape)
    return None if x is None or given is None else _kept(x, given["p"])


def legal(program: Program) -> str:
    """Return in words what the first output of a random program may hold: `0 or 2`; empty where that is not known."""
    draw = declared(program)
    if draw is None or not isinstance(program, Instance):
        return ""
    if draw.how == "slope":
        return _sloped(program, draw)
    if draw.law == CHOSEN:
        return "numbers of its input"
    if draw.of and draw.law != "dropout":
        return ""
    if draw.law == "dropout":
        left = kept(program)
        if left is None:
            return ""
        numbers = np.unique(left[left != 0])
        return " or ".join(["0", *(f"{x:g}" for x in numbers)]) if numbers.size < 3 else "0 or the input over 1 - p"
    if draw.law == "categorical":
        weights = first_of(program, draw.parameters["weights"])
        return "" if weights is None or not weights.size else f"whole numbers 0 to {weights.shape[-1] - 1}"
    law = laws.LAWS[draw.law]
    held = {name: first_of(program, draw.parameters.get(name, ())) for name in law.parameters}
    given = {name: x for name, x in held.items() if x is not None and np.isfinite(x).all()}
    if len(given) < len(law.parameters) or any(not x.size for x in given.values()):
        return ""
    return _bounds(law, float(np.min(law.least(given))), float(np.max(law.most(given))))


def _sloped(program: Instance, draw: Draw) -> str:
    """Say what is made of negative numbers by a slope that is drawn; nothing where others are among them."""
    x, ends = first_of(program, draw.of), [first_of(program, draw.parameters[name]) for name in ("low", "high")]
    if x is None or not x.size or not (x < 0).all() or any(end is None for end in ends):
        return ""
    made = [float((x * end).reshape(-1)[0]) for end in ends]
    return f"{min(made):g} to {max(made):g}" if x.size == 1 else ""


def outside(program: Program, index: Sequence[int], number: float) -> Broken | None:
    """Return what one element of the first output contradicts of a dropout; None where nothing is known, or it may be so."""
    left = kept(program)
    if left is None or len(index) != left.ndim or (left.shape and tuple(index) >= left.shape):
        return None
    want = float(left[tuple(index)])
    if number == 0 or math.isclose(number, want, rel_tol=8 * ROUNDING["float16"]):
        return None
    return _neither(list(index), number, want)


def _neither(at: list[int], number: float, kept: float) -> Broken:
    told = ((f"{number:.{x}g}", f"{kept:.{x}g}") for x in (6, 9, 17))
    drawn, wanted = next((x for x in told if x[0] != x[1]), (str(number), str(kept)))
    return Broken(f"output 0{at or ''} is {drawn}, neither 0 nor {wanted}, which is the input over 1 - p", "kept")


def _categorical(program: Instance, draw: Draw, drawn: Array) -> Broken | None:
    """Judge indices that are drawn by weights: none of weight 0, none twice where that is said."""
    weights = first_of(program, draw.parameters["weights"])
    if weights is None or weights.ndim not in (1, 2) or weights.ndim != drawn.ndim - 1:
        return None
    if draw.logarithm:
        weights = np.exp(weights - weights.max(-1, keepdims=True))
    rows = weights.reshape(-1, weights.shape[-1])
    if not np.isfinite(rows).all() or (rows.sum(-1) <= 0).any():
        return None
    law = laws.categorical(weights)
    place = np.arange(len(rows)).reshape(*weights.shape[:-1], 1)
    given = {"row": np.broadcast_to(place, drawn.shape[1:])}
    if found := _range(draw, law, given, drawn, ""):
        return found
    chosen = rows[np.broadcast_to(given["row"], drawn.shape), drawn.astype(np.int64)]
    if (chosen == 0).any():
        return Broken(f"output 0 holds {drawn[chosen == 0][0]:g}, which has no weight", "")
    if draw.apart and not program.params.get(draw.apart, False):
        ordered = np.sort(drawn, -1)
        if (ordered[..., 1:] == ordered[..., :-1]).any():
            return Broken(f"output 0 holds an index twice, though {draw.apart} is not asked for")
        drawn, given = drawn[..., :1], {"row": given["row"][..., :1]}  # what follows depends on what was drawn first
    return _shares(law, given, drawn, "")


def _put(program: Instance, draw: Draw, law: Law, given: Given, drawn: Array, dtype: str) -> Broken | None:
    """Judge numbers that were put on an input."""
    x = first_of(program, draw.of)
    if x is None or x.shape != drawn.shape[1:]:
        return None
    telling = np.isfinite(x) & (x < 0 if draw.how == "slope" else x != 0 if draw.how == "times" else True)
    if draw.how == "slope":
        stay = np.isfinite(x) & (x >= 0)
        if (drawn != x)[:, stay].any():
            return Broken("an element that is not negative does not stay as it is")
    if not telling.any():
        return None
    own = {name: value[telling] for name, value in given.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        loose = drawn[:, telling] - x[telling] if draw.how == "plus" else drawn[:, telling] / x[telling]
    found = _range(draw, law, own, loose, dtype) or _shares(law, own, loose, dtype, blocks=draw.blocks)
    if found is None:
        return None
    on = {"plus": "less the input", "times": "over the input", "slope": "over the input"}[draw.how]
    return Broken(found.why.replace("output 0", f"output 0 {on}", 1))


# ---------------------------------------------------------------------- how often


def _shares(
    law: Law,
    given: Given,
    drawn: Array,
    dtype: str,
    *,
    blocks: bool = False,
    where: Array | None = None,
    dropped: bool = False,
) -> Broken | None:
    """Return which draws are too often, or too seldom, at most so large: of one element, or of all with its parameters.

    First comes an element that is the same in all runs where the others are drawn as they should be: that is seen again, while
    a share is another one each time. Where the others are drawn wrongly, too, chance may leave one of them as it was.

    `where` are the places of elements in the output, where they are some of it; `dropped`: drawn is whether one is not 0.
    """
    flat = drawn.reshape(len(drawn), -1)
    own = {name: np.broadcast_to(value, drawn.shape[1:]).ravel() for name, value in given.items()}
    groups = [] if blocks else list(_together(own, flat.shape[1]))
    single = [np.array([x]) for x in range(flat.shape[1])] if 1 < flat.shape[1] <= SEPARATE or blocks else []
    places = np.argwhere(np.ones(drawn.shape[1:], dtype=bool)) if where is None else where
    pooled = not law.whole and not blocks and len(groups) != 1  # none: there are too many sets
    bound = CHANCE / max(1, len(groups) + len(single) + pooled)
    still = (flat == flat[0]).all(0)
    first = [x for x in single if still[x[0]]] if not still.all() else []
    if first:
        vary = {name: value[~still] for name, value in own.items()}
        if _shares(law, vary, flat[:, ~still], dtype, blocks=blocks, dropped=dropped) is not None:
            first = []
    for elements in (*first, *groups, *single):
        values = flat[:, elements].ravel()
        each = {name: value[elements[0]] for name, value in own.items()}
        few = _thresholds(law, each)
        if few is not None:
            at, seen, should = quantities.least_likely(law, each, values, few)
            unlikely = 2.0 * len(few) * math.exp(-values.size * quantities.divergence(seen, should)) < bound
        else:
            at, seen, should = quantities.farthest(law, each, values)
            slack = math.sqrt(math.log(4.0 / bound) / (2 * values.size)) + _grain(law, each, at, dtype)
            ends = quantities.beyond(law, each, values, ROUNDING.get(dtype, 0.0))
            unlikely = abs(seen - should) > slack or ends < math.log(bound / 4.0)
        if not unlikely:
            continue
        one = elements.size == 1 < flat.shape[1]
        place = str([int(x) for x in places[elements[0]]]) if one else ""
        if any(elements is x for x in first):
            told = f"output 0{place} is the same in every run of a compiled model, others are not"
            return Broken(told, ELEMENT, 0, place)
        kind = "share" if one or elements.size == math.prod(drawn.shape[1:]) else ""
        if dropped:
            off = abs(seen - should) / 2
            said = f"is 0 in {quantities.about(seen)} of the numbers, not in {quantities.percent(should)}"
            return Broken(
                f"output 0{place} {said}", kind, 0, place, 0.0, float(should), off, "==", quantities.enough(off)
            )
        found = quantities.difference(law, each, values, few, at)
        why = f"output 0{place} {found.says}; documented: {law.words.format(**each)}"
        return Broken(why, kind, 0, place, found.at, found.wanted, found.slack, found.how, found.needs)
    return _pooled(law, own, flat, dtype, bound) if pooled else None


def _pooled(law: Law, given: Given, drawn: Array, dtype: str, bound: float) -> Broken | None:
    """Judge all numbers of a law together though each has its own parameters: the share of draws that are at most so large is
    uniform itself (the probability integral transform), whatever these are, but where they leave one number alone.

    Args:
        given: Parameter → what it is of each element.
        drawn: Numbers of float64, runs before elements.
    """
    each = {name: np.broadcast_to(value, drawn.shape) for name, value in given.items()}
    spread = (law.share(drawn, each) - law.share(np.nextafter(drawn, -np.inf), each) < SURELY).all(0)
    if not spread.any() or not np.isfinite(drawn).all():
        return None
    drawn, each = drawn[:, spread], {name: value[:, spread] for name, value in each.items()}
    step = ROUNDING.get(dtype, 0.0) * np.abs(drawn)
    shares, even = law.share(drawn, each), {"low": np.array(0.0), "high": np.array(1.0)}
    at, seen, should = quantities.farthest(laws.LAWS["uniform"], even, shares)
    grain = float((law.share(drawn + step, each) - law.share(drawn - step, each)).max())
    if abs(seen - should) <= math.sqrt(math.log(4.0 / bound) / (2 * shares.size)) + grain:
        return None
    what = re.split(r" (?:of|from) ", law.words)[0]
    told = f"{quantities.about(seen)} of the numbers are in the lowest {quantities.percent(at)} of {what}"
    return Broken(f"output 0: {told}, each of its own parameters")


def _together(given: Given, count: int) -> Iterator[Array]:
    """Yield the elements that have the same parameters, where these are few sets."""
    if not given:
        yield np.arange(count)
        return
    _, which = np.unique(np.stack(list(given.values())), axis=1, return_inverse=True)
    which = np.asarray(which).ravel()
    if which.max(initial=0) < SEPARATE:
        yield from (np.flatnonzero(which == kind) for kind in range(int(which.max(initial=-1)) + 1))


def _thresholds(law: Law, given: Given) -> Array | None:
    """Return the whole numbers that divide what may be drawn in two, where these are few; else None."""
    low, high = float(law.least(given)), float(law.most(given))
    if not law.whole or not 0 < high - low <= FEW:
        return None
    return np.arange(low, high)


def _grain(law: Law, given: Given, at: float, dtype: str) -> float:
    """Return how much a share changes by the rounding of a number."""
    step = ROUNDING.get(dtype, 0.0) * abs(at)
    if law.whole or not step:
        return 0.0
    ends = np.array([at - step, at + step])
    low, high = law.share(ends, {name: np.broadcast_to(value, ends.shape) for name, value in given.items()})
    return float(high - low)
