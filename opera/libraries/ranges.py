"""Ranges that a library's documentation states of values, read out of its sentences.

Such as "in the range `0 <= value < num_tokens`", "with value in [0, 1)", "must be non-negative". An end is a number, or one
more than a parameter or another input is; what it says of letters that are explained elsewhere (`[0, C)`) is not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import numpy as np

from opera.programs.values import RandomTensor, Tensor, Value

_MARKS = re.compile(r":(?:math|attr):|[`$]")
_ENDS = r"([-+\w. ]+?)"
_INTERVAL = re.compile(
    rf"\b(?:range|interval|bounds|between|within|in)\b(?: (?:is|of|in|the|be))*:?\s?"
    rf"(?P<low>[\[(]) ?{_ENDS} ?, ?{_ENDS} ?(?P<high>[\])])"
)
_CHAIN = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?) ?(<=?) ?[a-z]\w+ ?(<=?) ?([-+\w.]+)")
_BETWEEN = re.compile(r"\b(?:must|should|shall|have to) be between (-?\d+(?:\.\d+)?) and (-?\d+(?:\.\d+)?)\b")
_LEAST = re.compile(
    r"\b(?:must|should|shall|have to) be (?:(>=|non-?negative)|(>|positive|greater than))(?: (0)\b)?(?! \d| or)"
)
_TAKES = re.compile(
    r"\btakes? (?:any )?values? greater than or equal to (\d+)\b|\btake any (non-?negative) value|\bis a (positive) integer"
    r"|\blist of (non-?negative) integers"
    r"|\bcontaining (?:a single|only) (?:non-?negative|positive) (?:value|integer|number)s?\b",
    re.I,
)
_RANK = re.compile(r"\brank\((\w+)\)")
"""How it is said of which input `r` is the rank, else of the first tensor."""
_BLOCKS = re.compile(r"\[ceil\(Di/Si\), ceil\(Di/\(Si-1\)\)-1\]")
"""How ONNX says in which range the size of a block is: of D elements along an axis, S blocks have a scale of their own."""
_OTHERWISE = re.compile(
    r"\\cup\b|∪|\b(?:if|when|outside|most|may|can be|not)\b"
    r"|\b(?:outputs?|outcomes?|returns?|results?|lie|re-?scale\w*|mapped|clamp\w*)\b",
    re.I,
)
"""What is said of some cases, or of what is returned."""
_ALL = re.compile(r"\ball (?:the )?inputs?\b", re.I)
_END = re.compile(r"(-?)([A-Za-z_]\w*)(?: ?([+-]) ?(\d+))?")


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """One end of a range: a number, or that much more than `sign` times what is given as `name`; `open`: itself not in it.

    `rank`: it is the rank of what is given as `name`, of the first tensor where that is empty.
    """

    number: float = 0.0
    name: str = ""
    sign: int = 1
    open: bool = False
    rank: bool = False


class Range(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the values of an input or a parameter lie; an end of which nothing is known is None.

    `blocks`: it is the size of a block along `axis` of the first tensor, with the second one's scales (`_BLOCKS`).
    """

    low: End | None = None
    high: End | None = None
    blocks: bool = False


def read(sentence: str, names: Collection[str]) -> Range | None:
    """Return the range that a sentence states, None where it states none of numbers and of what has one of these names."""
    text = _MARKS.sub("", sentence.replace(r"\leq", "<=").replace("``", ""))
    if _BLOCKS.search(text):
        return Range(blocks=True)
    if _OTHERWISE.search(text):
        return None
    if found := _INTERVAL.search(text):
        said = _RANK.search(text)
        of = "" if said is None or said[1] in ("input", "inputs") else said[1] if said[1] in names else None
        ends = (
            _end(found[2], names, open_=found["low"] == "(", of=of),
            _end(found[3], names, open_=found["high"] == ")", of=of),
        )
    elif found := _CHAIN.search(text):
        ends = _end(found[1], names, open_=found[2] == "<"), _end(found[4], names, open_=found[3] == "<")
    elif found := _BETWEEN.search(text):
        ends = _end(found[1], names), _end(found[2], names)
    elif (found := _LEAST.search(text)) and (found[3] or (found[0][-1].isalpha() and "than" not in found[0])):
        ends = End(open=bool(found[2])), None
    elif found := _TAKES.search(text):
        ends = End(float(found[1] or 0), open="positive" in found[0].lower()), None
    else:
        return None
    low, high = ends
    reversed_ = (
        high is not None and low is not None and not (low.name or high.name or high.rank) and low.number > high.number
    )
    return None if low is None or reversed_ else Range(low, high)


def subjects(sentence: str, own: str, inputs: Collection[str]) -> list[str]:
    """Return what a sentence in the description of `own` is about: all inputs, another that it quotes, or itself."""
    if _ALL.search(sentence):
        return sorted(inputs)
    quoted = [x for x in re.findall(r"['`](\w+)['`]", sentence) if x in inputs]
    return quoted[:1] or [own]


def _blocked(size: Value, given: Mapping[str, Value]) -> bool:
    """Whether a block is of a size that has a scale for each of all blocks, and no scale beside; 0 is none."""
    tensors = [x.shape for x in given.values() if isinstance(x, Tensor | RandomTensor)]
    axis = given.get("axis", 1)
    if not isinstance(size, int) or not size or not isinstance(axis, int) or len(tensors) < 2:
        return True
    (data, scale), rank = tensors[:2], len(tensors[0])
    if len(scale) != rank or not -rank <= axis < rank or not scale[axis]:
        return False
    most = math.inf if scale[axis] == 1 else math.ceil(data[axis] / (scale[axis] - 1)) - 1
    return math.ceil(data[axis] / scale[axis]) <= size <= most


def holds(stated: Range, value: Value, given: Mapping[str, Value]) -> bool:
    """Whether the numbers of a value lie in a range; of what has no numbers, or whose ends are not given, it does."""
    if stated.blocks:
        return _blocked(value, given)
    numbers = _numbers(value)
    if not numbers.size or not (isinstance(value, int | float | list | tuple) or numbers.dtype.kind in "iuf"):
        return True
    low, high = (_number(x, given) for x in (stated.low, stated.high))
    least, most = float(numbers.min()), float(numbers.max())
    return not (
        least < low or most > high or (stated.low is not None and stated.low.open and least == low)
        or (stated.high is not None and stated.high.open and most == high)
    )  # fmt: skip


def told(stated: Range) -> str:
    """Return a range in words: `positive`, `non-negative`, `in [0, num_tokens)`; nothing of the size of a block."""
    low, high = stated.low, stated.high
    if stated.blocks or low is None:
        return ""
    if high is None and not (low.name or low.rank or low.number):
        return "positive" if low.open else "non-negative"
    return f"in {'(' if low.open else '['}{_said(low)}, {_said(high)}{')' if high is None or high.open else ']'}"


def _said(end: End | None) -> str:
    """Return an end as an interval has it: `2`, `num_tokens`, `-rank + 1`."""
    if end is None:
        return "inf"
    name = "rank" if end.rank else end.name
    number = f"{abs(end.number):g}"
    sign = "-" if end.number < 0 else "+"
    return f"{'-' * (end.sign < 0)}{name}{f' {sign} {number}' if end.number else ''}" if name else f"{end.number:g}"


def _end(text: str, names: Collection[str], *, open_: bool = False, of: str | None = None) -> End | None:
    """Return an end of a range, None where it is told by what nobody knows; `of`: the input of whose rank `r` is."""
    text = text.strip().rstrip(".")
    if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
        return End(float(text), open=open_)
    found = _END.fullmatch(text)
    if found is None:
        return None
    rank = of is not None and found[2] in ("r", "R", "rank")
    if not rank and found[2] not in names:
        return None
    name = of or "" if rank else found[2]
    return End(float(f"{found[3] or ''}{found[4] or 0}"), name, -1 if found[1] else 1, open_, rank)


def _number(end: End | None, given: Mapping[str, Value]) -> float:
    """Return where an end is; NaN, with which nothing compares, where that is not given."""
    if end is not None and end.rank:
        tensors = [x for name, x in given.items() if name == (end.name or name)]
        first = next((x for x in tensors if isinstance(x, Tensor | RandomTensor)), None)
        return math.nan if first is None else end.sign * len(first.shape) + end.number
    if end is None or not end.name:
        return math.nan if end is None else end.number
    numbers = _numbers(given.get(end.name))
    return end.sign * float(numbers.reshape(-1)[0]) + end.number if numbers.size == 1 else math.nan


def _numbers(value: Value) -> np.ndarray[Any, Any]:
    """Return the numbers of a value as an array, none where it has no such."""
    if isinstance(value, RandomTensor):
        return np.asarray([value.low, value.high]) if math.prod(value.shape) else np.zeros(0)
    if isinstance(value, Tensor):
        return value.numbers() if re.match(r"u?int|b?float", value.dtype) else np.zeros(0)
    items = value if isinstance(value, list | tuple) else [value]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in items)
    return np.asarray(items, "f8") if plain else np.zeros(0)
