"""The figure of findings that sources share: circles for two or three (the paper's Venn figure), rows of dots for more."""

from __future__ import annotations

from itertools import combinations
from math import cos, radians, sin

import msgspec

from opera.report.sources import Comparison

WIDTH, MIDDLE, RADIUS = 320, 160.0, 80.0
"""Width of the figure, the x of its centre, and the radius of a circle, in its own units."""
NAME = 18
"""Characters of a source's name that have room beside a circle."""


class Circle(msgspec.Struct, frozen=True):
    """A source's circle, and its name and findings outside of it."""

    name: str
    x: float
    y: float
    at: tuple[float, float]
    anchor: str
    total: int


class Area(msgspec.Struct, frozen=True):
    """How many findings the tests of exactly these sources show, and where the number stands in the figure."""

    sources: tuple[str, ...]
    count: int
    x: float = 0.0
    y: float = 0.0

    @property
    def words(self) -> str:
        """The area in words: `2 by tests and docter only`."""
        return f"{self.count} by {' and '.join(self.sources)}{' only' if len(self.sources) == 1 else ''}"


class Venn(msgspec.Struct, frozen=True):
    """Circles for two or three sources; for more there are none, and `areas` are the rows of a table."""

    circles: list[Circle]
    areas: list[Area]
    sources: tuple[str, ...]
    height: float
    width: int = WIDTH
    radius: float = RADIUS


def venn(comparison: Comparison) -> Venn | None:
    """Lay out the sources that were run; None where there are not two to compare."""
    run = [x for x in comparison.yields if x.tests]
    names = tuple(x.source for x in run)
    counts = {x.sources: len(x.findings) for x in comparison.overlaps}
    if len(run) < 2:
        return None
    if len(run) > 3:
        areas = [Area(area, count) for area, count in counts.items()]
        return Venn([], sorted(areas, key=lambda area: (-area.count, area.sources)), names, 0)
    directions = dict(zip(names, (180, 0) if len(run) == 2 else (210, 330, 90), strict=True))
    middle, out = (122.0, 44.0) if len(run) == 2 else (134.0, 48.0)
    circles = [_circle(x.source, x.findings, directions[x.source], middle, out) for x in run]
    areas = [
        Area(area, counts.get(area, 0), *_point(middle, *_place(area, directions)))
        for size in range(1, len(names) + 1)
        for area in combinations(names, size)
    ]
    height = max(y for circle in circles for y in (circle.y + RADIUS, circle.at[1])) + 8
    return Venn(circles, areas, names, height)


def _circle(name: str, total: int, direction: int, middle: float, out: float) -> Circle:
    x, y = _point(middle, direction, out)
    shown = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
    if direction == 90:
        return Circle(shown, x, y, (x, y + RADIUS + 18), "middle", total)
    side = 1 if direction == 180 or direction == 210 else -1
    return Circle(shown, x, y, (x + 26 * side, y - RADIUS - 10), "end" if side > 0 else "start", total)


def _place(area: tuple[str, ...], directions: dict[str, int]) -> tuple[int, float]:
    """Return direction and distance from the centre at which the number of an area stands."""
    outside = [direction for name, direction in directions.items() if name not in area]
    if not outside:
        return 0, 0.0
    if len(area) == 1:
        return directions[area[0]], 86.0
    return outside[0] + 180, 60.0


def _point(middle: float, direction: int, distance: float) -> tuple[float, float]:
    angle = radians(direction)
    return round(MIDDLE + distance * cos(angle), 1), round(middle + distance * sin(angle), 1)
