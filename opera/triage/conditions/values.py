"""Which values of what is told were tried, each alone, and whether the program fails with it: what a reader is shown.

"Wrong for bias=0.8 and 1.5; right for 1 and 2": nothing says more of a condition in fewer words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage.conditions import dtypes, peculiar, removable
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.labels import Labelled
from opera.triage.shrink import simpler, smaller

SHOWN, OTHERWISE = 12, 3
"""Values that are shown at most, and those with which it fails in another respect."""
NUMBERS = re.compile(r"^(?:an? .*number\b.*|NaN.*|infinity|0) in an input$")
"""How it is told that numbers of an input decide."""
LONG = 60
"""Characters of a value that is shown."""


class Shown(NamedTuple):
    """What a program has of the one thing that is varied, in words, and what it is sorted by."""

    text: str
    order: tuple[float, ...] = ()


def tried(
    program: Program,
    told: Iterable[str],
    labelled: Iterable[Labelled],
    wrong: Iterable[Program] = (),
    words: Mapping[str, str] | None = None,
) -> tuple[tuple[str, bool | None], ...]:
    """Return which values of what is told were tried alone, and whether the program fails with each: its own first, then those
    with which it fails and those with which it passes in turn, each kind by size, a dozen at most; then some with which it
    fails in another respect (None), which a reader meets first.

    `bias=0.8`, `axes=[2, 1, 0]`, `x=0.9967` (all elements), `int8`, `2x3`; nothing where nothing of what is told has a value.

    Args:
        wrong: Programs that fail in another respect: with their values it is not right, though another of these passes.
        words: What is told → how readers are told of which operand it is: of the dtype of one no other is shown.
    """
    if not isinstance(program, Instance):
        return ()
    for says, of_one in itertools.product(told, (True, False)):  # of one operand if that was tried alone, else of all
        read = _reading(program, says, (words or {}).get(says, "") if of_one else "")
        own = read(program, program) if read is not None else None
        if read is None or own is None:
            continue
        found: dict[str, tuple[bool, Shown]] = {}
        for x in labelled:
            made = read(x.program, program) if isinstance(x.program, Instance) else None
            if made is not None and made.text != own.text:
                fails = x.fails or found.get(made.text, (False, made))[0]
                found[made.text] = fails, made
        others = [read(x, program) for x in wrong if isinstance(x, Instance)]
        doubtful = {x.text for x in others if x is not None}
        found = {text: x for text, x in found.items() if x[0] or text not in doubtful}
        if found:
            each = [_shortest(x for fails, x in found.values() if fails is of) for of in (True, False)]
            many = [max(SHOWN // 2 - n, SHOWN - 1 - len(other)) for n, other in enumerate(reversed(each))]
            rows = [sorted(x[:n], key=lambda y: (y.order, y.text)) for x, n in zip(each, many, strict=True)]
            turns = itertools.zip_longest(
                *([(x.text, fails) for x in y] for y, fails in zip(rows, (True, False), strict=True))
            )
            odd = _shortest(x for x in others if x is not None and x.text not in {own.text, *found})
            otherwise = [(x.text, None) for x in {x.text: x for x in odd}.values()][:OTHERWISE]
            return ((own.text, True), *(x for pair in turns for x in pair if x is not None), *otherwise)
    return ()


def _shortest(found: Iterable[Shown]) -> list[Shown]:
    return sorted(found, key=lambda x: (len(x.text), x.order, x.text))


def _reading(program: Instance, says: str, words: str) -> Callable[[Instance, Instance], Shown | None] | None:
    """Return what reads of a program the value that is told so, None where all else is not as in the other."""
    name = removable.key(says)
    name = name.removeprefix(removable.GIVEN)
    if name in program.params or removable.named(says):  # one that has its default is left out
        return lambda x, of: _parameter(x, of, name)
    if name in {x.name for x in program.inputs}:
        return lambda x, of: _input(x, of, name)
    if dtypes.members(says):
        named = [x.name for x in program.inputs if x.name in words.split()]
        return partial(_dtype_of, name=named[0]) if len(named) == 1 else _dtype
    if peculiar.is_rank(says):
        return _shape
    if NUMBERS.search(says):
        held = {x.name: x.value for x in program.inputs if isinstance(x.value, Tensor) and x.value.dtype != "string"}
        where = peculiar.TOLD.get(says.removesuffix(" in an input"))
        odd = [name for name, x in held.items() if where is None or peculiar.has(x, where)]
        return (lambda x, of: _input(x, of, odd[0])) if odd else None
    return None


def _parameter(x: Instance, of: Instance, name: str) -> Shown | None:
    left = [{key: value for key, value in y.params.items() if key != name} for y in (x, of)]
    if left[0] != left[1] or not _alike(x, of):
        return None
    called = name.rpartition(".")[2]
    if name not in x.params:
        return Shown(f"{called}{removable.LEFT_OUT}")
    value = x.params[name]
    order = (float(value),) if isinstance(value, int | float) else tuple(map(float, smaller.integers(value)))
    return Shown(f"{called}={removable.said(value)}", order)


def _input(x: Instance, of: Instance, name: str) -> Shown | None:
    held = tensor(x, name)
    others = [{y.name: y.value for y in z.inputs if y.name != name} for z in (x, of)]
    if x.params != of.params or others[0] != others[1] or not _alike(x, of, but=name):
        return None
    if not isinstance(held, Tensor) or held.dtype == "string":
        return None
    own = tensor(of, name)
    if own is None or own.dtype != held.dtype or (held.shape != own.shape and not smaller.states(held)):
        return None
    found = simpler.numbers(held).ravel().tolist()
    if any(isinstance(y, complex) for y in found):
        return None
    one = len(set(found)) == 1 and (held is smaller.leaves(x)[0] or not smaller.states(held))
    text = f"{found[0]:.6g}" if one else f"[{', '.join(f'{y:.6g}' for y in found)}]"
    return Shown(f"{name}={text}", tuple(map(float, found))) if len(text) <= LONG else None


def _dtype(x: Instance, of: Instance) -> Shown | None:
    same = [[y.shape for y in smaller.leaves(z)] for z in (x, of)]
    found = [y.dtype for y in smaller.leaves(x)]
    plain = _left_of(x, simpler.is_type) == _left_of(of, simpler.is_type)
    return Shown(_each(found)) if found and same[0] == same[1] and plain and x.outputs == of.outputs else None


def _dtype_of(x: Instance, of: Instance, name: str) -> Shown | None:
    held = tensor(x, name)
    same = x.params == of.params and _alike(x, of, but=name)
    return Shown(f"{held.dtype} {name}") if held is not None and same else None


def _shape(x: Instance, of: Instance) -> Shown | None:
    kinds = [[y.dtype for y in smaller.leaves(z)] for z in (x, of)]
    if kinds[0] != kinds[1] or x.params != of.params or x.outputs != of.outputs or not smaller.leaves(x):
        return None
    found = [y.shape for y in smaller.leaves(x)]
    text = _each(["x".join(map(str, shape)) or "0-d" for shape in found])
    return Shown(text, (float(len(found[0])), *map(float, found[0])))


def _each(words: Sequence[str]) -> str:
    """Return what is said of each tensor, once where it is said of all: `0-d`, `(2x3, 3)`."""
    return words[0] if len(set(words)) == 1 else f"({', '.join(words)})"


def _left_of(x: Instance, leave: Callable[[str], bool]) -> dict[str, Value]:
    return {key: value for key, value in x.params.items() if not leave(key)}


def _alike(x: Instance, of: Instance, but: str = "") -> bool:
    """Whether inputs are of equal dtypes and shapes, and integers that may state sizes the same; and what else is called."""
    ones, others = ({y.name: y.value for y in z.inputs if y.name != but} for z in (x, of))
    if ones.keys() != others.keys() or x.outputs != of.outputs or x.context.get("opset") != of.context.get("opset"):
        return False
    return all(_form(value) == _form(others[name]) for name, value in ones.items())


def _form(value: Value) -> Value:
    """Return what of an input must be the same: of data the numbers need not."""
    if isinstance(value, Tensor | RandomTensor) and not (isinstance(value, Tensor) and smaller.states(value)):
        return [value.dtype, list(value.shape)]
    return value
