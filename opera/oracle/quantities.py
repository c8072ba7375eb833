"""How numbers that were drawn differ from a law, in quantities that a reader knows.

That they differ is told by bounds that hold for every distribution (opera.oracle.draws); here is said in what: a value that is
too frequent, numbers that never come, the mean, the standard deviation, or the share of numbers that are at most so large.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from opera.oracle.laws import Array, Given, Law

TELLING = 0.05
"""Share of numbers that should be beyond the least or the greatest, from which on that none is says enough."""
MEAN, SPREAD = 0.1, 0.15
"""How far a mean or a deviation must be off, in standard deviations, to be what is told."""
EDGE = 0.08
"""The hundredth number is no farther from the first, beside half of them, where that is an end of what may be drawn."""
SIGMAS = 6.0
"""Standard errors within which a mean or a deviation says nothing."""
KURTOSIS = 9.0
"""The greatest fourth moment over the square of the variance of a law whose deviation is told: the exponential one's."""
UNLIKELY = math.log(2e6)
"""By Hoeffding's inequality, so often over twice the square of a distance makes it one in a million."""


class Difference(NamedTuple):
    """What is said of numbers that differ from a law, and how a script sees it again.

    Attributes:
        says: In words, after the name of the output.
        how: `==`, `<=`, `<` or `>`: the share of numbers that compare so with `at`; `mean`, `std`: that of all numbers.
        wanted: What should be of it.
        slack: How far it may be off.
        needs: How many numbers must be drawn to tell right ones from such at one in a million.
    """

    says: str
    how: str
    at: float
    wanted: float
    slack: float
    needs: int


def difference(law: Law, given: Given, values: Array, few: Array | None, at: float) -> Difference:
    """Return what tells best how numbers differ from a law.

    Args:
        given: Parameter → its one number.
        values: The numbers, of any shape.
        few: The whole numbers that divide what may be drawn in two, where these are few.
        at: The number up to which the share is farthest from what it should be.
    """
    if few is not None:
        return _value(law, given, values, [*few, few[-1] + 1.0])
    return _ends(law, given, values) or _moments(law, given, values) or _share(law, given, values, at)


def percent(share: float) -> str:
    """Return a share as a percentage of two digits, as many as it takes to be neither 0 nor 100 %."""
    if share in (0.0, 1.0):
        return f"{100 * share:g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.4g} %"


def _value(law: Law, given: Given, values: Array, may: list[float]) -> Difference:
    """Return the value that is drawn too often or too seldom, the greatest of such as are alike."""
    numbers = np.array(may)[::-1]
    each = {name: np.broadcast_to(x, numbers.shape) for name, x in given.items()}
    should = law.share(numbers, each) - law.share(numbers - 1.0, each)
    seen = (values.ravel()[None] == numbers[:, None]).mean(1)
    worst = int(np.argmax([round(divergence(float(x), float(y)), 9) for x, y in zip(seen, should, strict=True)]))
    at, wanted, found = float(numbers[worst]), float(should[worst]), float(seen[worst])
    slack = abs(found - wanted) / 2
    says = f"is {at:g} in {about(found)} of the numbers, not in {percent(wanted)}"
    return Difference(says, "==", at, wanted, slack, enough(slack))


def about(share: float) -> str:
    """Return a share that was seen, as a percentage."""
    return {0.0: "none", 1.0: "all"}.get(share, f"about {100 * share:.0f} %")


def _ends(law: Law, given: Given, values: Array) -> Difference | None:
    """Return that no number is below the least, or above the greatest, where these are ends and the law has many beyond."""
    ordered = np.sort(values.ravel())
    low, high = _end(ordered, whole=law.whole), -_end(-ordered[::-1], whole=law.whole)
    below, above = _upto(law, given, low - 1.0 if law.whole else low), 1.0 - _upto(law, given, high)
    share, at, how, side = max((below, low, "<", "below"), (above, high, ">", "above"))
    if share < TELLING or _none_of(share, values.size) > -UNLIKELY:
        return None
    says = f"is never {side} {at:g}, as {percent(share)} of the numbers should be"
    if min(below, above) >= TELLING and _none_of(min(below, above), values.size) <= -UNLIKELY:
        says = f"is always within {low:g} and {high:g}, as only {percent(1.0 - below - above)} of the numbers should be"
    surely = min(divergence(share / 2, share), divergence(min(1.5 * share, (1.0 + share) / 2), share))
    return Difference(says, how, at, share, share / 2, math.ceil(UNLIKELY / surely) if surely else 1)


def _end(ordered: Array, *, whole: bool) -> float:
    """Return where numbers that are given in order begin, of two digits at most; minus infinity where they thin out before.

    Many are near an end, and the least of what has none lies by itself.
    """
    least, half = float(ordered[0]), float(ordered[ordered.size // 2])
    gap = float(ordered[max(1, ordered.size // 100)]) - least if ordered.size > 1 else math.inf
    if whole or not math.isfinite(least):
        return least
    return _rounded(least - gap, math.floor) if gap <= EDGE * (half - least) else -math.inf


def beyond(law: Law, given: Given, values: Array, rounding: float) -> float:
    """Return the logarithm of how likely no number is below the least, or above the greatest, the less likely of both.

    Args:
        rounding: How far a number may be off relatively.
    """
    least, most = float(values.min()), float(values.max())
    lower = least - 1.0 if law.whole else math.nextafter(least - rounding * abs(least), -math.inf)
    below = _upto(law, given, lower)
    above = 1.0 - _upto(law, given, most if law.whole else most + rounding * abs(most))
    return _none_of(max(below, above), values.size)


def _none_of(share: float, size: int) -> float:
    """Return the logarithm of how likely none of so many draws is of what such a share should be."""
    return size * math.log1p(-share) if share < 1 else -math.inf


def _rounded(number: float, towards: object) -> float:
    """Return a number of two digits, by math.floor or math.ceil."""
    if number == 0 or not math.isfinite(number):
        return number
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    return float(f"{towards(number / step) * step:.3g}")  # type: ignore[operator]


def _moments(law: Law, given: Given, values: Array) -> Difference | None:
    """Return that the mean, or else the standard deviation, is not the law's; None where neither says anything."""
    if law.moments is None:
        return None
    mean, spread = (float(x) for x in law.moments(given))
    found, wide = float(values.mean()), float(values.std())
    error = max(spread, wide) / math.sqrt(values.size)  # of what was drawn, and of what should have been
    if not spread > 0 or not math.isfinite(wide):
        return None
    if abs(found - mean) > max(SIGMAS * error, MEAN * spread):
        slack = abs(found - mean) / 2
        says = f"has a mean of about {_near(found, error)}, not {mean:g}"
        return Difference(says, "mean", 0.0, mean, slack, math.ceil((SIGMAS * max(spread, wide) / slack) ** 2))
    error *= math.sqrt(KURTOSIS - 1) / 2
    if abs(wide - spread) > max(SIGMAS * error, SPREAD * spread):
        slack = abs(wide - spread) / 2
        says = f"has a standard deviation of about {_near(wide, error)}, not {spread:.3g}"
        needs = (SIGMAS * max(spread, wide) / slack) ** 2 * (KURTOSIS - 1) / 4
        return Difference(says, "std", 0.0, spread, slack, math.ceil(needs))
    return None


def _near(number: float, error: float) -> str:
    """Return a number with the digits that its error leaves it."""
    step = 10.0 ** math.ceil(math.log10(error))
    return f"{round(number / step) * step:.6g}"


def _share(law: Law, given: Given, values: Array, at: float) -> Difference:
    """Return the share of numbers that are at most so large."""
    short, slack = at if law.whole else float(f"{at:.2g}"), 0.0
    for number in (short, at):
        seen, wanted = float((values <= number).mean()), _upto(law, given, number)
        if (slack := abs(seen - wanted) / 2) > TELLING:
            break
    says = f"is at most {number:g} in {about(seen)} of the numbers, not in {percent(wanted)}"
    return Difference(says, "<=", number, wanted, slack, enough(slack))


def _upto(law: Law, given: Given, number: float) -> float:
    return float(law.share(np.array([number]), {name: np.broadcast_to(x, (1,)) for name, x in given.items()})[0])


def enough(slack: float) -> int:
    """Return how many numbers must be drawn that a share is off by so much by chance once in a million times."""
    return math.ceil(UNLIKELY / (2 * max(slack, 1e-4) ** 2))


# ---------------------------------------------------------------------- how far


def farthest(law: Law, given: Given, values: Array) -> tuple[float, float, float]:
    """Return where the share of draws that are at most so large is farthest from what it should be, and both shares."""
    numbers, counts = np.unique(values, return_counts=True)
    upto = np.cumsum(counts) / values.size
    each = {name: np.broadcast_to(value, numbers.shape) for name, value in given.items()}
    should = law.share(numbers, each)
    below = np.nextafter(numbers, -np.inf)
    before = law.share(np.ceil(numbers) - 1.0 if law.whole else below, each)
    lower = np.concatenate([[0.0], upto[:-1]])
    above, under = np.abs(upto - should), np.abs(lower - before)
    if above.max() >= under.max():
        worst = int(above.argmax())
        return float(numbers[worst]), float(upto[worst]), float(should[worst])
    worst = int(under.argmax())
    return float(numbers[worst] - 1.0 if law.whole else below[worst]), float(lower[worst]), float(before[worst])


def least_likely(law: Law, given: Given, values: Array, few: Array) -> tuple[float, float, float]:
    """Return the number up to which the share that was seen is the least likely, and both shares."""
    each = {name: np.broadcast_to(value, few.shape) for name, value in given.items()}
    should, seen = law.share(few, each), (values[None] <= few[:, None]).mean(1)
    worst = max(range(len(few)), key=lambda x: divergence(float(seen[x]), float(should[x])))
    return float(few[worst]), float(seen[worst]), float(should[worst])


def divergence(seen: float, should: float) -> float:
    """Return the relative entropy of two shares: e to minus n times it bounds how likely n draws are so (Chernoff)."""
    total = 0.0
    for one, other in ((seen, should), (1.0 - seen, 1.0 - should)):
        if one > 0:
            total += one * math.log(one / other) if other > 0 else math.inf
    return total
