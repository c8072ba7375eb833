"""What is declared of random operators, `[[draws]]` of instrumentation/<library>.toml, and what a program gives of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from opera import resources
from opera.oracle.laws import Array
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What operators draw.

    Attributes:
        operators: Their names.
        law: A name of `laws.LAWS`, `categorical`, `chosen`: an element of the input `of`; or `dropout`: such one over 1 - `p`,
            or 0 in a share `p`.
        parameters: Parameter of the law → where it is: names of parameters or inputs, the first that is there counts, then a
            number that it has by default. `a if b` is the one called a where there is one called b.
        of: Name of an input that what was drawn is put on.
        how: `plus` or `times` of it; `slope`: times its negative elements, the others stay.
        mask: Place of an output that says which elements stay; -1: none does.
        blocks: Whether several elements share one draw, so that only each by itself tells something.
        unless: Parameters with which nothing is known.
        exclusive: Whether `high` is never drawn.
        logarithm: Whether weights of `categorical` are given by their logarithms.
        apart: Parameter that is false where no index is drawn twice.
        seed: Parameter with which two compiled models draw the same.
    """

    operators: tuple[str, ...]
    law: str
    parameters: dict[str, tuple[str | float, ...]] = {}
    of: tuple[str, ...] = ()
    how: str = ""
    mask: int = -1
    blocks: bool = False
    unless: tuple[str, ...] = ()
    exclusive: bool = False
    logarithm: bool = False
    apart: str = ""
    seed: str = ""


def declared(program: Program) -> Draw | None:
    """Return what is declared of the operator of a program of one call."""
    if not isinstance(program, Instance):
        return None
    held = resources.declaration("instrumentation", program.library).get("draws", [])
    known = msgspec.convert(held, list[Draw])
    return next(
        (x for x in known if program.operator in x.operators and not any(map(program.params.get, x.unless))), None
    )


def seeded(program: Program) -> str:
    """Return the parameter by which a program is given a seed, with its value; empty where none is."""
    draw = declared(program)
    value = program.params.get(draw.seed) if draw and draw.seed and isinstance(program, Instance) else None
    return "" if value is None or draw is None else f"{draw.seed}={value}"


def given_of(program: Instance, draw: Draw, names: Sequence[str], shape: tuple[int, ...]) -> dict[str, Array] | None:
    """Return the parameters of each element; None where one is not there, or is no number."""
    found = {}
    for name in names:
        value = first_of(program, draw.parameters.get(name, ()))
        try:
            if value is None or not np.isfinite(value).all():
                return None
            found[name] = np.broadcast_to(value, shape)
        except ValueError:  # it is of another shape: then it is not known which element has which
            return None
    return found


def first_of(program: Instance, places: Sequence[str | float]) -> Array | None:
    """Return the number, or numbers, of the first of several places that is there; None where none is."""
    for place in places:
        if not isinstance(place, str):
            return np.array(float(place))
        name, _, beside = place.partition(" if ")
        if (not beside or _number(program, beside) is not None) and (value := _number(program, name)) is not None:
            return value
    return None


def _number(program: Instance, name: str) -> Array | None:
    """Return a parameter or an input as numbers; None where it is none."""
    held: Value = program.params.get(name)
    held = next((x.value for x in program.inputs if x.name == name), held)
    if isinstance(held, RandomTensor):
        held = held.tensor()
    if isinstance(held, Tensor):
        return None if held.dtype == "string" or "complex" in held.dtype else held.numbers().astype(np.float64)
    return np.array(float(held)) if isinstance(held, int | float) else None
