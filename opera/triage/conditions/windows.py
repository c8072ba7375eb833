"""Whether the last window of a pooling begins behind its input, where their number is rounded up (`ceil_mode`): PyTorch, and
ONNX as of MaxPool-22, have no such window, and who but rounds up has one more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from opera.programs.program import Instance, Program
from opera.programs.values import Value
from opera.triage.conditions.stated import Feature, data, shape_of, value_of
from opera.triage.shrink import smaller

BEHIND = "a last window of ceil_mode that begins behind the input"
"""How it is told."""
NAMES = (("kernel_size", "kernel_shape"), ("stride", "strides"), ("padding", "pads"), ("dilation", "dilations"))
"""How libraries call the size of a window, how far the next one is, what is padded, and how far its elements are apart."""
OF_WINDOWS = frozenset({"ceil_mode", *(x for names in NAMES for x in names)})
"""Parameters on which it hangs."""
RANK = re.compile(r"([123])d", re.IGNORECASE)
"""How an operator's name says along how many axes windows go."""


class Window(NamedTuple):
    """The windows along one axis: lengths, and how many elements are padded before and behind."""

    length: int
    kernel: int
    stride: int
    dilation: int
    before: int
    behind: int

    @property
    def begins_behind(self) -> bool:
        """Whether the last of as many windows as there are where their number is rounded up begins behind the input."""
        room = self.length + self.before + self.behind - self.dilation * (self.kernel - 1) - 1
        return -(-room // self.stride) * self.stride >= self.length + self.before


def features(call: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield whether the last window along some axis begins behind the input, where the number of windows is rounded up."""
    if "ceil_mode" in call.params:
        feature = Feature(BEHIND, partial(_begins_behind, known=known))
        yield from [feature] if feature.holds(call) else []


def _begins_behind(program: Program, known: Mapping[str, Value]) -> bool:
    rounded = value_of(program, "ceil_mode", known)
    return (
        rounded in (True, 1)
        and isinstance(program, Instance)
        and any(x.begins_behind for x in _windows(program, known))
    )


def _windows(call: Instance, known: Mapping[str, Value]) -> list[Window]:
    """Return the windows of a call along each axis; none where that is not known."""
    shape = shape_of(call, next(iter(data(call)), "")) or ()
    kernel, *others = ([*_held(call, names, known)] for names in NAMES)
    named = RANK.search(call.operator)
    rank = int(named[1]) if named else len(kernel)
    sizes = [_each(x, rank) for x in (kernel, others[0] or kernel, others[2] or [1])]
    pads = others[1] if len(others[1]) == 2 * rank > rank else _each(others[1] or [0], rank) * 2
    if not 0 < rank <= len(shape) or any(len(x) != rank for x in sizes) or len(pads) != 2 * rank:
        return []
    every = zip(shape[-rank:], *sizes, pads[:rank], pads[rank:], strict=True)
    return [Window(*x) for x in every if x[2] > 0]


def _held(call: Instance, names: Sequence[str], known: Mapping[str, Value]) -> Sequence[int]:
    return next((found for x in names if (found := smaller.integers(value_of(call, x, known)))), ())


def _each(numbers: Sequence[int], rank: int) -> list[int]:
    """Return a number for each axis: one is that of all."""
    return [*numbers] * rank if len(numbers) == 1 else [*numbers]
