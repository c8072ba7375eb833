"""Axes are set to other lengths one at a time, so that it is known which of them being empty decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor
from opera.triage.conditions import axes
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled
from opera.triage.shrink import smaller

EMPTY = "an empty input"
Shapes = list[tuple[int, ...]]


def call(*shapes: tuple[int, ...], **params: Any) -> Instance:
    inputs = tuple(Operand(f"x{n}", Tensor.of(np.ones(x, "float32"))) for n, x in enumerate(shapes))
    return Instance("onnx", "Any", params, inputs, ("y",), {"opset": {"": 22}})


def shapes(program: Program) -> Shapes:
    return [x.shape for x in smaller.leaves(program)]


def product(found: Shapes) -> tuple[int, ...] | None:
    """Return the shape of a product of matrices."""
    one, other = found
    return (one[0], other[1]) if len(one) == len(other) == 2 and one[1] == other[0] else None


def summed(x: Instance) -> bool | None:
    out = product(shapes(x))
    return None if out is None else shapes(x)[0][1] == 0 and 0 not in out


def batch(x: Instance) -> bool | None:
    return None if shapes(x)[0][:1] != (x.params.get("N"),) else shapes(x)[0][0] == 0


def last(x: Instance) -> bool | None:
    shape, axis = shapes(x)[0], x.params.get("axis", -1)
    return shape[axis] == 0 if -len(shape) <= axis < len(shape) else None


TOLD: list[tuple[Instance, Callable[[Instance], bool | None], Any, list[str]]] = [
    (call((2, 0), (0, 3)), summed, {}, ["the last axis of x0 of length 0"]),
    (call((0, 4, 3), N=0), batch, {"N": NO_DEFAULT}, ["the first axis of x0 of length 0"]),
    (call((2, 0, 3), axis=1), last, {"axis": -1}, ["the axis that axis names of length 0"]),
    (call((2, 0)), lambda x: 0 in shapes(x)[0], {}, [EMPTY]),
]


@pytest.mark.parametrize(("program", "fails", "known", "wanted"), TOLD, ids=[x[3][0] for x in TOLD])
def test_which_axis_must_be_empty_is_told(program: Any, fails: Any, known: Any, wanted: list[str]) -> None:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) else None for x in programs]

    def computed(x: Program) -> list[Any] | None:
        out = product(shapes(x)) if fails is summed else (1,)
        return None if out is None else [Tensor.of(np.ones(out, "float32"))]

    found = borne_out(label, program, {"Any": known}, Decided((), (EMPTY,)), (), computed)
    assert [*found.decided.besides, *found.circumstances] == wanted and found.exact


def test_what_must_be_as_long_is_as_few_axes_as_the_library_takes() -> None:
    """Of a product the two axes that are summed go together, and a batch alone; no more is asked about than need be."""
    asked: list[Program] = []

    def library(programs: Any) -> list[Labelled]:
        more = list(programs)
        asked.extend(more)
        return [Labelled(x, False) for x in more if product(shapes(x)) is not None]

    found = axes.apart(call((2, 0), (0, 3)), library, {"Any": {}})
    assert [(2, 2), (2, 3)] in [shapes(x.program) for x in found]
    assert all(math.prod(shapes(x.program)[0]) >= 0 for x in found) and len(asked) < 30
    assert axes.apart(call((2, 3), (3, 3)), library, {"Any": {}}) == [], "nothing is empty"


def test_that_an_input_is_empty_is_not_told_where_an_empty_batch_of_one_rank_more_passes() -> None:
    """A picture without a height or a width, of a blur that takes batches as well."""
    program = call((2, 0, 1))

    def asked(programs: Iterable[Program]) -> list[Labelled]:
        found = [(x, shapes(x)[0]) for x in programs]
        return [Labelled(x, 0 in shape[-3:-1]) for x, shape in found if len(shape) in (3, 4)]

    found = {smaller.leaves(x.program)[0].shape: x.fails for x in axes.apart(program, asked, {})}
    assert found[(2, 2, 0, 1)] is True and found[(0, 2, 2, 1)] is False and found[(0, 2, 1)] is True
