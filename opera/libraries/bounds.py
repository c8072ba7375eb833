"""Ranks, sizes and ranges of values that a library's documentation states of inputs, read out of its sentences.

Such as "1-dimensional tensor with size of at least 2", "tensor of rank r >= 1", "same shape as `X`". A library does not check
all that it says, and compilers are lenient in one thing or another; a program beyond what is said proves nothing to their
maintainers. A sentence may be meant otherwise than it is read: so what does not hold of the program that a search began with
binds nobody (compare what is `broken` of both).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from opera.libraries import ranges
from opera.libraries.ranges import Range
from opera.programs.program import Program
from opera.programs.values import RandomTensor, Sequence, Tensor, Value

SENTENCE = r"(?<=[.;])\s+"
"""What is between two sentences."""
WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_NUMBER = r"(\d|one|two|three|four|five)"
_RANK = re.compile(
    rf"(?<![\w*])(?:(\d)[- ]?d(?:imensional)?\b(?! (?:images?|convolution|data|case|grids?))"
    rf"|(?:rank[- ]|of dimension ){_NUMBER}\b|(scalar)\b)",
    re.I,
)
"""A stated rank: `3-D`, `2 dimensional`, `rank 1`, `of dimension 1`, `scalar`; a 2-D image has an axis of
channels, and often one of a batch."""
_LEAST_RANK = re.compile(
    rf"\brank (?:\w )?(?:>=|≥|(?:of |is |be )*at least) ?{_NUMBER}\b|\b[a-z] ?(?:>=|≥) ?{_NUMBER}\b"
    rf"|\bat least {_NUMBER}[- ]?(?:dimensions|dimensional|axes|d\b)|\brank {_NUMBER} or (?:higher|more|greater)\b"
    rf"|\b(\d)[- ]?d(?:imensional)? or (?:higher|more|greater)",
    re.I,
)
_LEAST = re.compile(
    rf"\b(?:size|length|number) (?:of |is |be )*at least {_NUMBER}\b|\bat least {_NUMBER} (?:elements?|entries|values|items)\b"
    rf"|\b(?:exactly|of) {_NUMBER} elements?\b",
    re.I,
)
_COUNT = re.compile(rf"\bat least {_NUMBER} (?:\w+ )?(?:tensors|arrays|inputs)\b", re.I)
_LIKE = re.compile(
    r"\bsame (shape|rank and shape|shape and rank|rank)(?: \w)? as (?:the |of |that of )*[`'\"]?(\w+)", re.I
)
_CHANNELS = re.compile(r"\bN\s*(?:x|,)\s*C\b.*\bchannels?\b", re.S)
"""A stated layout: `(N x C x H x W), where N is the batch size, C is the number of channels`."""
_KINDS = re.compile(r"^\((?:(?:Int|Long|Bool)Tensor(?: or |\)))+")
"""Of which dtypes PyTorch says that a tensor is: `(IntTensor or LongTensor)`."""
KINDS = {"IntTensor": "int32", "LongTensor": "int64", "BoolTensor": "bool"}
_MUST = re.compile(r"\bmust be (?:an? |either )?$", re.I)
"""What stands before a rank beside which nothing else is admitted."""
_CONDITION = re.compile(r"^(?:for|if|when|in) [^,]*,", re.I)
"""What a sentence says of other cases than all."""


class Bound(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said of one input.

    Attributes:
        ranks: Those that are stated, empty where none is.
        least_rank, least, count: Least number of axes, of elements, and of tensors in a list.
        like: Name of the input whose shape it has, or (`rank_alone`) whose rank.
        range: Where its values lie (opera.libraries.ranges).
        channels: Its axis of channels, 0 where none is stated: the first is the batch.
        dtypes: Those that it may have, empty where none is stated.
        must: Whether it is said that it must have one of these ranks: else that is often meant loosely.
    """

    ranks: tuple[int, ...] = ()
    least_rank: int = 0
    least: int = 0
    count: int = 0
    like: str = ""
    rank_alone: bool = False
    range: Range | None = None
    channels: int = 0
    dtypes: tuple[str, ...] = ()
    must: bool = False


Bounds: TypeAlias = Mapping[str, Mapping[str, Bound]]
"""Operator → input → what is said of it."""
Broken: TypeAlias = frozenset[tuple[str, str, str]]
"""Operator, input, and which of its bounds does not hold."""


def read(texts: Mapping[str, str], inputs: Collection[str] = ()) -> dict[str, Bound]:
    """Return what descriptions of inputs and parameters by their names state; those of which nothing is stated are left out.

    Args:
        inputs: Names of all inputs, also of those that are not described.
    """
    flat = {name: " ".join(text.split()) for name, text in texts.items()}
    found = {name: _bound(text, name, flat.keys()) for name, text in flat.items()}
    names = {*flat, *inputs}
    for own, text in flat.items():
        for sentence in re.split(SENTENCE, text):
            if (stated := ranges.read(sentence, names)) is not None:
                for name in ranges.subjects(sentence, own, names & {*inputs} or names):
                    found[name] = msgspec.structs.replace(found.get(name, Bound()), range=stated)
    return {name: bound for name, bound in found.items() if bound != Bound()}


def _bound(text: str, name: str, names: Iterable[str]) -> Bound:
    ranks, least_rank, least, count, like, alone, must = set[int](), 0, 0, 0, "", False, False
    for sentence in re.split(SENTENCE, text.replace("*", "")):
        if _CONDITION.match(sentence):
            continue
        more = _number(_LEAST_RANK.search(sentence))
        least_rank = max(least_rank, more)
        if not more and not like:
            own = list(_RANK.finditer(sentence))
            ranks |= {_number(x) for x in own}
            must |= any(_MUST.search(sentence, 0, x.start()) for x in own)
        least = max(least, _number(_LEAST.search(sentence)))
        count = max(count, _number(_COUNT.search(sentence)))
        if (found := _LIKE.search(sentence)) and not like:
            like = _named(found[2], name, names)
            alone = found[1].lower() == "rank"
    channels = int(_CHANNELS.search(text) is not None)
    kinds = found[0] if (found := _KINDS.match(text)) else ""
    dtypes = tuple(dtype for kind, dtype in KINDS.items() if kind in kinds)
    stated = tuple(sorted(ranks)) if not least_rank else ()
    return Bound(
        stated, least_rank, least, count, like, alone, channels=channels, dtypes=dtypes, must=must and bool(stated)
    )


def _number(found: re.Match[str] | None) -> int:
    """Return the number that a pattern's group holds; 0 for a scalar, and where nothing was found."""
    said = next((x for x in found.groups() if x), "0").lower() if found else "0"
    return WORDS.get(said) or (int(said) if said.isdigit() else 0)


def _named(said: str, own: str, names: Iterable[str]) -> str:
    """Return the other input that a word names; "input" may be the first one, whatever its name."""
    others = [x for x in names if x != own]
    return said if said in others else (others[0] if said == "input" and others else "")


def broken(bounds: Bounds, program: Program) -> Broken:
    """Return the bounds that do not hold of a program's inputs."""
    found = set[tuple[str, str, str]]()
    for call in program.instances():
        given = {x.name: x.value for x in call.inputs} | call.params
        for name, bound in bounds.get(call.operator, {}).items():
            found |= {(call.operator, name, which) for which in _beyond(bound, given.get(name), given)}
    return frozenset(found)


def _beyond(bound: Bound, value: Value, given: Mapping[str, Value]) -> Iterator[str]:
    if bound.range is not None and not ranges.holds(bound.range, value, given):
        yield "range"
    items = value.items if isinstance(value, Sequence) else value
    if isinstance(items, list | tuple) and len(items) < bound.count:
        yield "count"
    if not isinstance(value, Tensor | RandomTensor):
        return
    if bound.dtypes and value.dtype not in bound.dtypes:
        yield "dtypes"
    shape, other = value.shape, given.get(bound.like)
    if bound.ranks and len(shape) not in bound.ranks:
        yield "ranks"
    if len(shape) < bound.least_rank:
        yield "least_rank"
    if math.prod(shape) < bound.least:
        yield "least"
    if isinstance(other, Tensor | RandomTensor) and not (
        len(shape) == len(other.shape) if bound.rank_alone else shape == other.shape
    ):
        yield "like"
