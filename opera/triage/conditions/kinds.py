"""What may be told of what inputs are: their dtypes, to what they are promoted, tensors or numbers of Python's, strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import dtypes
from opera.triage.conditions.dtypes import PROMOTED
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import simpler, smaller

NOT_PROMOTED = "inputs not promoted to float32"
"""How it is told that inputs are promoted to another dtype."""
RESULT = " (stated, or the input's)"
"""Ends how it is told of which dtype a result is, after the dtype and the parameter that names it."""
PLURAL = {dtypes.INTEGER: "integers", dtypes.WHOLE: "integers or bool", dtypes.FLOATING: "floats"}
"""How kinds of dtypes are told to which something is promoted."""


def features(
    program: Program, failing: Sequence[Program], passing: Sequence[Program], odd: Iterable[Program] = ()
) -> Iterator[Feature]:
    """Yield of which dtype the first input is: of a kind of those that fail, a float, an integer, one of those that fail; and
    which others are floats or integers.

    Args:
        odd: Programs that fail in another respect: no kind of dtype is told that has theirs.
    """
    own = _first_dtype(program)
    bad, good = ({_first_dtype(x) for x in of} - {""} for of in ((program, *failing), passing))
    apart = otherwise(odd, (program, *failing))
    of_kind = [dtypes.told(bad, good | apart)] if own else []
    wide = [x for x in (dtypes.FLOATING, dtypes.INTEGER) if own in dtypes.KINDS[x] and not dtypes.KINDS[x] & apart]
    for says in dict.fromkeys(filter(None, of_kind + wide if len(bad) > 1 else wide + of_kind)):
        yield Feature(says, partial(_has_dtype, says=says))
    yield from _promoted(program, failing, passing, odd)
    yield from _stated(program, failing, passing)
    yield from _unlike(program)
    for name in [x.name for x in program.inputs[1:]]:
        for says, part in ((f"a floating-point {name}", "float"), (f"an integer {name}", "int")):
            if part in getattr(tensor(program, name), "dtype", ""):
                yield Feature(says, partial(_has_kind, name=name, part=part))
        kinds, right = (
            frozenset(held.dtype for x in of if (held := tensor(x, name)) is not None)
            for of in ((program, *failing), passing)
        )
        if kinds and own not in kinds:  # one that is of the first one's dtype shares it
            words = dtypes.told(kinds, right)
            words = words.replace(" inputs", " type") if words.startswith((*dtypes.OTHERS,)) else dtypes.either(kinds)
            words = f"a {words}" if words.startswith("numeric") else words
            yield Feature(f"{name} of {words}", partial(_is_of, name=name, kinds=kinds))


def otherwise(
    odd: Iterable[Program], failing: Sequence[Program], dtype: Callable[[Program], str] | None = None
) -> set[str]:
    """Return the dtypes (of first tensors, if nothing else is said) of programs that fail in another respect, and differ from
    one that fails alike in dtypes alone; none of those with which others fail alike."""
    of = dtype or _first_dtype

    def form(x: Program) -> tuple[object, ...]:
        params = [{key: y for key, y in call.params.items() if not simpler.is_type(key)} for call in x.instances()]
        return x.operators, params, [y.shape for y in smaller.leaves(x)]

    alike = [form(x) for x in failing]
    return {of(x) for x in odd if form(x) in alike} - {of(x) for x in failing} - {""}


def _stated(program: Program, failing: Sequence[Program], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield of which dtype a result is said to be, where some programs have a parameter for that: else it is the input's."""
    every = (program, *failing, *passing)
    names = {x: y for of in every if isinstance(of, Instance) for x, y in of.params.items() if dtypes.name_of(y)}
    for name in (x for x in names if any(_of_result(of, x) != _first_dtype(of) for of in every)):
        bad, good = ({_of_result(x, name) for x in of} - {""} for of in ((program, *failing), passing))
        words = dtypes.told(bad, good)
        if words:
            says = f"{words.replace(' inputs', '')} {name}{RESULT}"
            yield Feature(says, partial(_returns, name=name, kinds=dtypes.members(words)))


def _of_result(program: Program, name: str) -> str:
    """Return the dtype that a parameter names, else that of the first tensor."""
    stated = dtypes.name_of(program.params.get(name)) if isinstance(program, Instance) else ""
    return stated or _first_dtype(program)


def _returns(program: Program, name: str, kinds: frozenset[str]) -> bool:
    return _of_result(program, name) in kinds


def _unlike(program: Program) -> Iterator[Feature]:
    """Yield which tensors have another dtype than the first one; a number in the place of one may do as much."""
    held = {x.name: leaf.dtype for x in program.inputs if (leaf := tensor(program, x.name)) is not None}
    first, *others = held or [""]
    for name in (x for x in others if {held[x], held[first]}.isdisjoint({"bool", "string"}) and held[x] != held[first]):
        yield Feature(f"{name} of another dtype than {first}", partial(_unlike_dtypes, one=name, other=first))
        says = f"{name} a number, or of another dtype than {first}"
        yield Feature(says, partial(_number_or_unlike, one=name, other=first))


def _number_or_unlike(program: Program, one: str, other: str) -> bool:
    return _is_number(program, one) or _unlike_dtypes(program, one, other)


def _unlike_dtypes(program: Program, one: str, other: str) -> bool:
    found = [leaf.dtype for x in (one, other) if (leaf := tensor(program, x)) is not None]
    return len(set(found)) == 2


def _promoted(
    program: Program, failing: Sequence[Program], passing: Sequence[Program], odd: Iterable[Program]
) -> Iterator[Feature]:
    """Yield to which dtype all inputs are promoted, where some have several: float32 and float64 are computed in float64; and
    to which all tensors are, whatever the numbers of Python's beside them, where some programs have such: a compiler may
    make these what the tensors are."""
    every = (program, *failing, *passing)
    if all(len({y.dtype for y in smaller.leaves(x)}) < 2 for x in every):
        return
    names = [*dict.fromkeys(y.name for x in every for y in x.inputs)]
    numbered = any(_is_number(x, name) for x in every for name in names)
    for form, beside in ((PROMOTED, names), (dtypes.TENSORS_PROMOTED, []))[: 1 + numbered]:
        bad, good = ({_promoted_to(x, beside) for x in of} for of in ((program, *failing), passing))
        apart = otherwise(odd, (program, *failing), partial(_promoted_to, names=beside))
        words = dtypes.told(bad - {""}, (good | apart) - {""})
        if words and "" not in bad:
            says = f"{form}{words.replace(' inputs', '')}" if words != dtypes.NO_FLOAT32 else NOT_PROMOTED
            told = f"{form}{PLURAL[words]}" if words in PLURAL else ""
            yield Feature(says, partial(_is_promoted, names=beside, kinds=dtypes.members(words)), told)


def _is_promoted(program: Program, names: Sequence[str], kinds: frozenset[str]) -> bool:
    return _promoted_to(program, names) in kinds


def _promoted_to(program: Program, names: Sequence[str]) -> str:
    """Return to which dtype inputs are promoted; a number of Python's in the place of one of these makes a float of integers,
    and an integer of truth values."""
    found = dtypes.promoted(program)
    numbers = [program.params.get(x) for x in names] if isinstance(program, Instance) else []
    if found in (*dtypes.INTEGERS, "bool") and any(isinstance(x, float) for x in numbers):
        return "float32"
    if found == "bool" and any(type(x) is int for x in numbers):
        return "int64" if program.instances()[0].library == "torch" else "int32"
    return found


def _is_of(program: Program, name: str, kinds: frozenset[str]) -> bool:
    held = tensor(program, name)
    return held is None or held.dtype in kinds


def _has_dtype(program: Program, says: str) -> bool:
    return _first_dtype(program) in dtypes.members(says)


def _has_kind(program: Program, name: str, part: str) -> bool:
    held = tensor(program, name)  # what is left out is of no other kind
    return held is None or part in held.dtype


def _first_dtype(program: Program) -> str:
    return next((x.dtype for x in smaller.leaves(program)), "")


def of_python(program: Instance, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield which inputs are tensors, of which programs pass that have a number in their place: `x ** 2`; or all but such an
    integer."""
    for name in (x.name for x in program.inputs if tensor(program, x.name) is not None):
        numbers = [x.params[name] for x in passing if _is_number(x, name) and isinstance(x, Instance)]
        if numbers:
            yield Feature(f"a tensor for {name}", partial(_is_no_number, name=name, kind=(int, float)))
        if any(type(x) is int for x in numbers):
            yield Feature(f"{name} no integer of Python's", partial(_is_no_number, name=name, kind=(int,)))
    for name in (x for x in program.params if _is_number(program, x)):
        for words, kind, other in (("a float", float, int), ("an integer", int, float)):
            held = [type(x.params.get(name)) for x in passing if isinstance(x, Instance)]
            if type(program.params[name]) is kind and other in held:
                yield Feature(f"{words} for {name}", partial(_is_number, name=name, kind=(kind,)))
        if any(tensor(x, name) is not None for x in passing):
            others = (x.name for x in program.inputs if isinstance(tensor(program, x.name), Tensor))
            for names in ((name,), *((name, x) for x in others)):
                yield Feature(f"a number for {' or '.join(names)}", partial(_lacks_tensor, names=names))


def _is_number(program: Program, name: str, kind: tuple[type, ...] = (int, float)) -> bool:
    return isinstance(program, Instance) and isinstance(program.params.get(name), kind)


def _is_no_number(program: Program, name: str, kind: tuple[type, ...]) -> bool:
    return not _is_number(program, name, kind)


def _lacks_tensor(program: Program, names: Sequence[str]) -> bool:
    return any(tensor(program, x) is None for x in names)


def strings(program: Program) -> Iterator[Feature]:
    """Yield whether an input holds an empty string, or one of nothing but spaces."""
    for name in (x.name for x in program.inputs if getattr(tensor(program, x.name), "dtype", "") == "string"):
        for says, pattern in STRINGS.items():
            feature = Feature(f"{says} in {name}", partial(_holds_string, name=name, pattern=pattern))
            yield from [feature] if feature.holds(program) else []


STRINGS = {"an empty string": re.compile(rb""), "a string of spaces": re.compile(rb" +")}
"""What strings may be that decides."""


def _holds_string(program: Program, name: str, pattern: re.Pattern[bytes]) -> bool:
    held = tensor(program, name)
    strings = isinstance(held, Tensor) and held.dtype == "string"
    return strings and any(pattern.fullmatch(x) for x in held.array().ravel())  # type: ignore[union-attr]
