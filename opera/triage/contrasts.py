"""What becomes of a failing program when one thing of it is changed alone: what a reader checks first, and nobody need believe.

A rule of when it fails may be told too widely or too narrowly; that `dilation=2` fails and `dilation=1` passes, all else as it
is, was seen. Everything else about a failure is told beside this (opera.triage.conditions), as what it seems to be.
"""

from __future__ import annotations

import math
import re
from collections import Counter, abc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from opera.oracle.conditioning import EPSILON
from opera.programs.program import Graph, Instance, Program
from opera.programs.values import Message, RandomTensor, Sequence, Tensor, Value
from opera.triage import refilled
from opera.triage.conditions import dtypes as dtypes_
from opera.triage.conditions import removable
from opera.triage.sentence import GRAPH_INPUT, NO_ATTRIBUTE, NO_CONSTANT, number
from opera.triage.shrink import simpler, smaller

VALUES, DTYPES, ROWS = 6, 14, 8
"""Values of one thing that are told of each kind, dtypes, and things."""
SOME = 3
"""Values that are told of a thing which does not matter, as far as was tried; but of those that LISTED names."""
FAILS, LIKEWISE, PASSES, OTHERWISE = "fails", "likewise", "passes", "otherwise"
WRONG = "wrong"
"""What a program shows: the failure, the same words with other dtypes or numbers in them, none, another one; and, where the
failure is that it stops, wrong outputs."""
DTYPE, SHAPE = "dtype", "shape"
COARSER = ", each within its own tolerance,"
"""What is told besides of numbers that are right in a dtype of less precision."""
LISTED = (DTYPE, "opset")
RESULT = "its result"
"""What is told of a program where another call takes what it returns."""
RETURNED_SHAPE = "shape that it should return by these"
"""What is told of what should be returned where a parameter, or numbers, say how large that is."""
UNREAD, FIRST = "an input that nothing uses", "the first of two"
"""What is told of a model that does not use its first input, where that decides and not what hangs on none."""
TEXTS = 6
"""Other texts in place of one that are asked about."""
STATED, PLAINEST = 4, 2
"""Parameters that are left out and asked about, and values of each."""
NUMBERS, LONG = 6, 60
"""Elements of a tensor that are told one by one, and characters of a value."""
FRACTION = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")
WORDED = "likewise, with other dtypes or numbers in the message,"
LEFT_OUT = removable.LEFT_OUT.strip()
OUTPUT = "output that is asked for"
"""What is told of a program that is asked for one output, with another in its place."""
WRITTEN = "call"
"""The context of a call of PyTorch's or Keras's that says which arguments are written by place, and which by name."""
OPSET = "(opset)"
"""The context of an ONNX call that states versions, of each domain."""
COMES = {
    NO_CONSTANT: ("an input", "a constant written into the call"),
    GRAPH_INPUT: ("an input of the model", "what a negation makes"),
    NO_ATTRIBUTE: ("an input", "an attribute of an older opset"),
}
"""How it ends that an input comes to the model in some way → that, and with what else it passes, of a tensor."""
CONSTRUCTED = {True: "what SequenceConstruct makes", False: "what SequenceEmpty makes"}
"""Whether a sequence holds anything → with what it passes: other operators that make one are not asked about."""


class Contrast(msgspec.Struct, frozen=True):
    """One thing of a program, and what the program shows with another in its place, all else as it is.

    Attributes:
        what: `dilation`, `dtype of input`, `shape of input`, `input` (its numbers), `opset`.
        own: What the program has.
        fails, passes, otherwise, likewise, wrong: With what it fails in the same way, passes, fails in another way, says the
            same with other dtypes or numbers, and gives wrong outputs in place of stopping; the simplest first.
    """

    what: str
    own: str
    fails: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    likewise: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The parameter or input that it is about, the last of several."""
        return self.what.rpartition(" of ")[2].rpartition(", ")[2]

    @property
    def tells(self) -> bool:
        """Whether it fails no more in the same way with something else."""
        return bool(self.passes or self.otherwise or self.wrong)


class Change(NamedTuple):
    """The one thing in which a program differs from another: what it is, what each has, and whether it is alone so.

    `form` is `dtype` or `shape` where it is that of tensors, and `of` which; `alone` is false where numbers differ besides that
    anybody may choose, `kept` where another dtype does not hold the numbers; `opposite` where the same numbers come in the
    opposite order.
    """

    what: str
    own: str
    now: str
    order: tuple[float, ...] = ()
    alone: bool = True
    kept: bool = True
    form: str = ""
    of: str = ""
    opposite: bool = False


def change(program: Program, of: Program) -> Change | None:
    """Return the one thing in which a program differs from another, None where it is none, or several."""
    if _structure(program) != _structure(of):
        return None
    ours, theirs = _params(program), _params(of)
    named = [x for x in {**theirs, **ours} if not _same(ours.get(x), theirs.get(x), x in ours, x in theirs)]
    now, own = ({x.name: x.value for x in y.inputs} for y in (program, of))
    given = [x for x in {**own, **now} if (now.get(x) is None) != (own.get(x) is None)]
    pairs = {x: (now[x], own[x]) for x in own if x in now and x not in given and now[x] != own[x]}
    tensors = {x: y for x, y in pairs.items() if all(isinstance(z, Tensor | RandomTensor) for z in y)}
    if len(tensors) < len(pairs):
        return None
    dtypes = [x for x, (a, b) in tensors.items() if a.dtype != b.dtype]
    shapes = [x for x, (a, b) in tensors.items() if a.shape != b.shape]
    numbers = [x for x in tensors if x not in dtypes and x not in shapes]
    free = [x for x in numbers if not smaller.states(own[x])]
    every = [x for x in own if isinstance(own[x], Tensor | RandomTensor)]
    match (named, given, dtypes, shapes):
        case [[one], *_] if all(isinstance(x.get(one), Message) for x in (ours, theirs)):
            return None  # nobody reads the bytes of a message
        case [[one], [], [], []] if free == numbers:
            had, has = _param(theirs, one), _param(ours, one)
            return Change(_called(of, one), had, has, _order(ours.get(one)), not numbers)
        case [[one], [name], [], []] if one[1] == name and not numbers and isinstance(ours.get(one), int | float):
            return Change(name, removable.said(own.get(name)), f"the number {_param(ours, one)}")
        case [[], [name], [], []] if not numbers:
            return Change(name, _tensor(own.get(name)), _tensor(now.get(name)))
        case [[], [], [_, *_], []] if free == numbers:
            as_cast = not numbers and all(_as_cast(*tensors[x]) for x in dtypes)
            kept = all(_kept(*tensors[x]) for x in dtypes)
            some = dtypes if len(dtypes) == 1 else every
            had, has = (_each([z.dtype for z in x]) for x in (_held(own, some), _held(now, some)))
            return Change(_of(DTYPE, some, every), had, has, alone=as_cast, kept=kept, form=DTYPE, of=", ".join(some))
        case [[], [], [], [_, *_]] if not numbers:
            some = shapes if len(shapes) == 1 else every
            had, has = (_each([*map(_shape, x)]) for x in (_held(own, some), _held(now, some)))
            order = _size(_held(now, some)[0])
            return Change(_of(SHAPE, some, every), had, has, order, form=SHAPE, of=", ".join(some))
        case [[], [], [], []] if len(numbers) == 1:
            [(changed, kept_)] = (tensors[x] for x in numbers)
            had, has = _numbers(kept_), _numbers(changed)
            return Change(numbers[0], had, has, opposite=changed == _opposite(kept_)) if had and has else None
    return None


def alone(
    program: Program,
    seen: Iterable[Program],
    *,
    wrong: bool = False,
    corpus: Iterable[Instance] = (),
    defaults: smaller.Defaults | None = None,
) -> Iterator[Program]:
    """Yield programs that differ in one thing, and that nobody has asked about.

    The program with other texts in place of one that a parameter has, the shortest that tests of the corpus call the operator
    with; given what it leaves out and they do not (`dim`), or with a default written out (0.2, of a schema that holds it in
    float32); with ones in a small tensor of floats beside the first; and with what others have in place of one thing alone, of
    those that have other numbers besides, in another shape its own numbers again and again; of wrong outputs also those of
    another shape with 1, 2, 3, ...: what repeats may be right by that alone (a softmax along an axis of equal numbers); and,
    before these, its own numbers in the opposite order, of the other sign, and, of small tensors beside the first, the last
    one half and twice as large, a tensor each.
    """
    done = set[tuple[str, str]]()
    corpus = list(corpus)
    yield from _texts(program, corpus)
    yield from _stated(program, corpus)
    yield from _written_out(program, (defaults or {}).get(program.operators[0], {}))
    yield from _of_ones(program)
    if wrong:
        yield from {x.id: x for x in _varied(program) if x.id != program.id}.values()
    for x in seen:
        found = change(x, program)
        if found is None or (found.what, found.now) in done:
            continue
        if found.form == SHAPE:
            several = [refilled.tiled(x, program), *([refilled.counted(x)] if wrong else [])]
        else:
            several = [] if found.alone else [_with(program, x)]
        for made in {y.id: y for y in several if y is not None and y.id not in (program.id, x.id)}.values():
            done.add((found.what, found.now))
            yield made


def contrasts(program: Program, shown: Collection[tuple[Program, str]], *, value: bool = False) -> tuple[Contrast, ...]:
    """Return what was changed alone of a program, those things first with which it passes.

    Args:
        shown: Programs, and what each shows (FAILS, LIKEWISE, PASSES, OTHERWISE, WRONG).
        value: Whether numbers are wrong. Where it passes with others of its own shape, or has too many to be told, what it does
            with some of another shape says nothing of shapes; nor does another dtype that does not hold its numbers. What has
            no elements is right whatever is computed, and says nothing of what has some.
    """
    vacuous = value and not smaller.is_empty(program)
    found: dict[tuple[str, str], tuple[str, dict[str, tuple[str, Change]]]] = {}
    for x, how in shown:
        made = change(x, program)
        if (
            made is not None
            and made.alone
            and (made.kept or not value)
            and made.now != made.own
            and len(made.now) <= LONG
            and not (vacuous and how == PASSES and smaller.is_empty(x))
        ):
            told = found.setdefault((made.what, made.form), (made.own, {}))[1]
            if made.now not in told or told[made.now][0] == PASSES or how == FAILS:  # some numbers pass by chance
                told[made.now] = how, made
    names = {x.name for x in program.inputs}
    tried = [x for (what, form), (_, told) in found.items() if what in names and not form for x in told.items()]
    long = (x for x in smaller.leaves(program) if math.prod(x.shape) > NUMBERS and not smaller.states(x))
    many = any(not _numbers(x) for x in long)
    if value and (many or any(how == PASSES and not _is_plain(now) for now, (how, _) in tried)):
        found = {x: y for x, y in found.items() if x[1] != SHAPE}
    called = {name.strip("()").rpartition(".")[2] for x in (program, *(x for x, _ in shown)) for _, name in _params(x)}
    rows = [_row(what, form, own, told, called) for (what, form), (own, told) in found.items()]
    return tuple(sorted(rows, key=lambda x: (not x.passes, not x.tells))[:ROWS])


def comes(besides: Iterable[str], program: Program) -> Iterator[Contrast]:
    """Yield how inputs come to the model, as far as a failure needs that (opera.triage.conditions.deciding)."""
    lists = {x.name: bool(x.value.items) for x in program.inputs if isinstance(x.value, Sequence)}
    for says in besides:
        for ending, (own, other) in COMES.items():
            name = says.removesuffix(ending).strip()
            if says.endswith(ending):
                made = CONSTRUCTED[lists[name]] if name in lists else other
                yield Contrast(f"how {name} comes to the model", own, passes=(made,))


def _row(what: str, form: str, own: str, told: Mapping[str, tuple[str, Change]], called: Collection[str]) -> Contrast:
    """Return a row; a form that a parameter is `called` as is told with its tensor."""
    border = _border(told)

    def of(which: str) -> tuple[str, ...]:
        some = sorted(
            (x for how, x in told.values() if how == which),
            key=lambda x: (not x.opposite, x.now not in border, len(x.now), x.order, x.now),
        )
        unlike = dict[str, Change]()
        for x in some:
            unlike.setdefault(_about(x), x)
        kept = [*unlike.values()][: DTYPES if form == DTYPE else VALUES]
        return tuple(x.now for x in sorted(kept, key=lambda x: (x.order, x.now)))

    if form and what in called:
        what = f"{what} of {next(x.of for _, x in told.values())}"
    return Contrast(what, own, of(FAILS), of(PASSES), of(OTHERWISE), of(LIKEWISE), of(WRONG))


def _about(change: Change) -> str:
    """Return what is told of a change with two digits of each number alone: 3.61 and 3.6 tell the same."""
    return change.now if change.form else FRACTION.sub(lambda x: f"{float(x[0]):.2}", change.now)


def _border(told: Mapping[str, tuple[str, Change]]) -> tuple[str, ...]:
    """Return the two numbers, or shapes of one rank, that lie closest of those with which it fails and those with which it
    passes: 999 elements and 1000."""
    known = [(how, x) for how, x in told.values() if x.order and all(map(math.isfinite, x.order))]
    bad, good = ([x for how, x in known if how == which] for which in (FAILS, PASSES))
    pairs = ((one, other) for one in bad for other in good if len(one.order) == len(other.order))
    nearest = min(pairs, key=lambda x: (math.dist(x[0].order, x[1].order), x[0].now, x[1].now), default=())
    return tuple(x.now for x in nearest)


# ---------------------------------------------------------------------- one thing


def _structure(program: Program) -> object:
    """Return what must be the same: which operators are called, of what, and what is asked for."""
    if isinstance(program, Graph):
        wired = tuple((x.operator, tuple(y.name for y in x.inputs), x.outputs) for x in program.calls)
        return wired, program.outputs
    return program.operator, program.outputs


def _params(program: Program) -> dict[tuple[int, str], Value]:
    """Return (call, name) → value of all parameters, and of what else a call is told that may be chosen, but for how it is
    written: what is given by its name may be left out."""
    found: dict[tuple[int, str], Value] = {}
    for n, call in enumerate(program.instances()):
        found.update({(n, name): value for name, value in call.params.items()})
        found.update({(n, f"({name})"): value for name, value in call.context.items() if name != WRITTEN})
    return found


def _same(one: Value, other: Value, held: bool, holds: bool) -> bool:
    """Whether two parameters are one: a list is a tuple, 1 and 1.0 are two."""
    alike = type(one) is type(other) or all(isinstance(x, list | tuple) for x in (one, other))
    return held == holds and (one is other or (alike and smaller.same(one, other)))


def _held(held: Mapping[str, Value], names: Iterable[str]) -> list[Tensor | RandomTensor]:
    return [x for name in names if isinstance(x := held[name], Tensor | RandomTensor)]


def _of(what: str, some: abc.Sequence[str], every: abc.Sequence[str]) -> str:
    """Return of which tensors something is told: `dtype`, of the only one; `shape of input`; `dtypes of input, other`."""
    if len(every) == 1:
        return what
    return f"{what}{'s' if len(some) > 1 else ''} of {', '.join(some)}"


def _called(program: Program, one: tuple[int, str]) -> str:
    n, name = one
    calls, short = program.instances(), name.strip("()").rpartition(".")[2]
    return short if len(calls) == 1 else f"{short} of {calls[n].operator}"


def _param(held: Mapping[tuple[int, str], Value], one: tuple[int, str]) -> str:
    match held.get(one, LEFT_OUT):
        case x if x is LEFT_OUT and one[1] == f"({smaller.TRAINING})":
            return "False"  # a call is made so where nothing is said, whatever its layer does by itself
        case {**versions} if one[1] == OPSET and len(versions) == 1:
            return removable.said(*versions.values())
        case Tensor() as tensor if text := _numbers(tensor):
            return text
    return removable.said(held[one]) if one in held else LEFT_OUT


def _order(value: Value) -> tuple[float, ...]:
    return (float(value),) if isinstance(value, int | float) else tuple(map(float, smaller.integers(value)))


def _tensor(value: Value) -> str:
    """Return what an input holds that may be left out: of few numbers these, for a threshold of 0 is not one of 0.5."""
    if isinstance(value, Tensor) and (text := _numbers(value)):
        return f"{value.dtype}({text})"
    return LEFT_OUT if value is None else removable.said(value)


def _shape(value: Tensor | RandomTensor) -> str:
    return "x".join(map(str, value.shape)) or "0-d"


def _size(value: Tensor | RandomTensor) -> tuple[float, ...]:
    return (float(len(value.shape)), *map(float, value.shape))


def _numbers(value: Tensor | RandomTensor) -> str:
    """Return the numbers of a tensor, once where all are the same; nothing of many, or of others than real ones."""
    if not isinstance(value, Tensor) or value.dtype == "string" or value.dtype.startswith("complex"):
        return ""
    found = simpler.numbers(value).ravel().tolist()
    if not found or (len(found) > NUMBERS and len(set(found)) > 1):
        return ""
    same = len(set(found)) == 1 and len(found) > 1
    text = ", ".join(number(int(x) if isinstance(x, bool) else x) for x in (found[:1] if same else found))
    return f"all {text}" if same else text if not value.shape else f"[{text}]"


def _as_cast(now: Tensor | RandomTensor, own: Tensor | RandomTensor) -> bool:
    """Whether a tensor holds the numbers of another in its own dtype, or that does not hold them."""
    made = simpler.as_dtype(own, own.dtype, now.dtype)
    return dtypes_.equal(made, now) or not dtypes_.about_equal_leaves(made, own)


def _kept(now: Tensor | RandomTensor, own: Tensor | RandomTensor) -> bool:
    """Whether a tensor of another dtype holds the numbers of one, of integers those very numbers: -0.6 is no -1."""
    return dtypes_.equal(now, own) if "int" in now.dtype else dtypes_.about_equal_leaves(now, own)


def _each(words: abc.Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else f"({', '.join(words)})"


def _with(program: Program, other: Program) -> Program | None:
    """Return a program of one call as another is, but for its own numbers, in the other's dtypes; None of several calls."""
    if not (isinstance(program, Instance) and isinstance(other, Instance)):
        return None
    kinds = {x.name: x.value.dtype for x in other.inputs if isinstance(x.value, Tensor | RandomTensor)}
    inputs = tuple(
        msgspec.structs.replace(x, value=simpler.as_dtype(x.value, x.value.dtype, kinds[x.name]))
        if isinstance(x.value, Tensor | RandomTensor) and x.name in kinds
        else x
        for x in program.inputs
    )
    return msgspec.structs.replace(other, inputs=inputs)


def _is_plain(numbers: str) -> bool:
    """Whether numbers are told that are one, or 0: of such much is right by any formula."""
    return numbers.startswith("all ") or numbers in ("0", "[0]")


def _texts(program: Program, corpus: Iterable[Instance]) -> Iterator[Program]:
    """Yield a call with other texts of the corpus in place of each: another mode, or another equation."""
    if not isinstance(program, Instance):
        return
    others = {name: set[str]() for name, value in program.params.items() if isinstance(value, str)}
    for x in corpus if others else ():
        for name, known in others.items():
            if isinstance(other := x.params.get(name), str):
                known.add(other)
    for name, known in others.items():
        for value in sorted(known - {program.params[name]}, key=lambda x: (len(x), x))[:TEXTS]:
            made = smaller.with_param(program, name, value)
            yield from [made] if made is not None else []


def _stated(program: Program, corpus: Iterable[Instance]) -> Iterator[Program]:
    """Yield a call that is given what it leaves out, as tests of the corpus give it: what most give first."""
    if not isinstance(program, Instance):
        return
    known, often = dict[str, dict[str, Value]](), Counter[str]()
    for x in corpus:
        for name, value in x.params.items():
            if program.params.get(name) is None and isinstance(value, bool | int | float | str):
                known.setdefault(name, {})[removable.said(value)] = value
                often[name] += 1
    for name in sorted(known, key=lambda x: (-often[x], x))[:STATED]:
        for said in sorted(known[name], key=lambda x: (len(x), x))[:PLAINEST]:
            made = smaller.given(program, name, known[name][said])
            yield from [made] if made is not None else []


def _written_out(program: Program, defaults: Mapping[str, Value]) -> Iterator[Program]:
    """Yield a call that is given the default of a number which it leaves out, fractions first: they may be rounded."""
    if not isinstance(program, Instance):
        return
    left = {x: y for x, y in defaults.items() if isinstance(y, bool | int | float)}
    for name in sorted(left, key=lambda x: not isinstance(left[x], float))[:STATED]:
        made = smaller.given(program, name, left[name])
        yield from [made] if made is not None else []


def _of_ones(program: Program) -> Iterator[Program]:
    """Yield a program with ones in a small tensor of floats beside the first: scales of 1 change no size."""
    for place, held in enumerate(smaller.leaves(program)):
        small = isinstance(held, Tensor) and held.dtype in refilled.FLOATS and 0 < math.prod(held.shape) <= NUMBERS
        made = smaller.applied(smaller.at(place, simpler.ONE), program) if place and small else None
        yield from [made] if made is not None and made.id != program.id else []


def _varied(program: Program) -> Iterator[Program]:
    for place, held in enumerate(smaller.leaves(program)):
        scaled = (0.5, 2.0) if place and math.prod(held.shape) <= NUMBERS else ()
        steps: list[Callable[[smaller.Leaf], smaller.Leaf]] = [_opposite]
        steps += [partial(_scaled, by=-1.0), *(partial(_scaled, by=x, last=True) for x in scaled)]
        yield from (x for step in steps if (x := smaller.applied(smaller.at(place, step), program)) is not None)


def _scaled(leaf: Tensor | RandomTensor, by: float, *, last: bool = False) -> Tensor | RandomTensor:
    """Return a tensor of ordinary numbers with each, or the last alone, so many times as large; of others, itself."""
    if not isinstance(leaf, Tensor) or not leaf.dtype.startswith(("float", "bfloat", "int")) or smaller.states(leaf):
        return leaf
    numbers = simpler.numbers(leaf).astype(np.float64)
    with np.errstate(over="ignore"):
        numbers.ravel()[-1 if last else 0 :] *= by
    return simpler.numbered(numbers, leaf.dtype) if np.isfinite(numbers).all() else leaf


def _opposite(leaf: Tensor | RandomTensor) -> Tensor | RandomTensor:
    """Return a tensor with its numbers in the opposite order; of what may state sizes, itself."""
    if not isinstance(leaf, Tensor) or smaller.states(leaf):
        return leaf
    return Tensor.of(np.ascontiguousarray(leaf.array().ravel()[::-1]).reshape(leaf.shape), leaf.dtype)


def rows(
    found: abc.Sequence[Contrast], *, wrong: bool, value: bool = False, within: float | None = None
) -> Iterator[str]:
    """Yield what was seen of each thing, in words: `dilation: fails so for [1, 2, 1], 2; runs for 1`.

    Args:
        wrong: Whether it is outputs that are wrong.
        value: Whether it is their numbers.
        within: The relative tolerance, where wrong ones are off by so little that right ones need not be right to the last bit.
    """
    right = "right" if within is None else f"right within {within:g}"
    last = ("wrong otherwise" if wrong else "fails otherwise", "gives wrong outputs")
    heads = ("wrong", WORDED, right, *last) if wrong else ("fails so", WORDED, "runs", *last)
    found = [x for x in found if x.tells or x.likewise or x.fails]  # of older versions there was more
    no_matter = [x for x in found if not x.tells and not x.likewise and not x.what.startswith(LISTED)]
    for x in found:
        called = (*heads[:2], heads[2] + COARSER, *heads[3:]) if value and _is_coarser(x) else heads
        told = zip(called, ((x.own, *x.fails), x.likewise, x.passes, x.otherwise, x.wrong), strict=True)
        if x not in no_matter:
            yield f"{x.what}: {'; '.join(f'{head} {_listed(values)}' for head, values in told if values)}"
    if no_matter:
        others = "; ".join(f"{x.what} ({_apart(x.fails[:SOME])}{', …' * (len(x.fails) > SOME)})" for x in no_matter)
        yield f"{heads[0]} with all others that were tried of {others}"


def _is_coarser(row: Contrast) -> bool:
    """Whether numbers are right of a coarser dtype, whose tolerance may hide that they are wrong."""
    own, others = (EPSILON.get(x.partition(",")[0], 0.0) for x in (row.own, *row.fails)), row.passes
    coarsest = max(own)
    return row.what.startswith(DTYPE) and any(EPSILON.get(x.partition(",")[0], 0.0) > coarsest > 0 for x in others)


def _listed(values: abc.Sequence[str]) -> str:
    """Return for which values it is so."""
    given = [x for x in values if x != LEFT_OUT]
    words = f"for {_apart(given)}" if given else ""
    return " and ".join(filter(None, (words, f"where {LEFT_OUT}" if len(given) < len(values) else "")))


def _apart(values: abc.Sequence[str]) -> str:
    """Return values in a row; those that have commas of their own are kept apart otherwise."""
    return (" · " if any("," in x for x in values) else ", ").join(values)
