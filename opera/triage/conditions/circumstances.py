"""In which circumstances a program fails: programs near it are asked, and what is told contradicts none of them.

What decides of one small program (`conditions.deciding`) may hold of it alone, and need not be all. So programs near it are
labelled: they fail as it does, or pass; all else says nothing. Of what decides, what another failing program lacks is told no
more, or told more widely (`depth_multiplier > 1` for `=6`). Where programs that have all of it pass, the simplest thing is
added that all failing ones have and these lack: a rank, an input or a parameter left out, a length of an axis of an input or
an output, which axis is named. After Kampmann et al., When to Cry Wolf: Learning Circumstances of Program Behavior (Alhazen),
ESEC/FSE 2020, and Gopinath et al., Abstracting Failure-Inducing Inputs (DDSet), ISSTA 2020.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol, cast

from opera.libraries.bounds import Bounds
from opera.oracle import randomness
from opera.oracle.comparison import COUNT
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, PASS, UNSTABLE
from opera.triage.alike import same_values
from opera.triage.conditions import (
    axes,
    deciding,
    dtypes,
    edges,
    elementwise,
    equal,
    implied,
    literals,
    operands,
    peculiar,
    removable,
    scalars,
    sizes,
    usual,
    varied,
)
from opera.triage.conditions.arguments import is_flag
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.forms import emptied, tensor
from opera.triage.conditions.further import OTHERS, TRIALS, Tried, anew, evenly, further, in_turn
from opera.triage.conditions.labels import Label, Labelled, labelled
from opera.triage.conditions.learner import BASES, Learner, Outputs, Told
from opera.triage.conditions.near import alone
from opera.triage.conditions.ordinary import comparable, given_names
from opera.triage.conditions.ranks import ALL
from opera.triage.conditions.stated import value_of
from opera.triage.failure import clearly
from opera.triage.sentence import lowered
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

AT_A_TIME, ROUNDS = 8, 3
"""Near programs that put to the test what is told, at a time, and how often."""
CLEAR = 8
"""Programs that pass that are looked at for one which does so beyond what tolerance hides."""
FEW = 6
"""Elements of a tensor that is read number by number."""
LITTLE = 2
"""Inputs and parameters in which the program that passes differs at most: else it is another case."""
TURNS = 6
"""How often what is told is tried by as many programs of which several things differ."""
ANEW, PASSING = 2, 24
"""How often a program that passes is given other numbers, where wrong ones are looked for; of those that a search has asked
about so many are, at most."""


class Borne(NamedTuple):
    """What is told of a program, once near ones were asked.

    Attributes:
        decided: What decided before, without what a near program contradicts.
        circumstances: What else all near programs that fail have, and of those that have what decided none that passes.
        failing, passing: Near programs that fail alike, and that pass.
        exact: Whether all that have all that is told fail, and all others pass.
        despite: How many pass though they have all that is told, and no other reason for it is known.
        tried: What programs say of which several things differ, and nothing of what is told was learned.
        passing_one: The program most like it that passes, and lacks something of what is told; None where none is known.
        usual: Whether an ordinary call fails (opera.triage.conditions.usual); None: nobody asked.
        named: What is told → how readers are told of which operand it is (opera.triage.conditions.operands).
        beyond: Near programs that lack something of what is told, and run wrongly, or end at a later stage, where it is told
            of what ends.
        bare: Whether all whose first tensor has no elements do not fail that have all that is told; False where there is none.
    """

    decided: Decided
    circumstances: tuple[str, ...] = ()
    failing: int = 0
    passing: int = 0
    exact: bool = True
    despite: int = 0
    tried: Tried = Tried()
    usual: bool | None = None
    passing_one: Program | None = None
    named: tuple[tuple[str, str], ...] = ()
    beyond: int = 0
    bare: bool = False


class Asking(deciding.Lowers, Protocol):
    """Tells what programs show, and whether they fail alike; `bounds`: what the library says of inputs; `corpus`: programs that
    others wrote."""

    bounds: Bounds
    corpus: Sequence[Instance]

    def label(self, programs: Sequence[Program]) -> list[bool | None]:
        """Return of each whether it fails alike, None where it neither does so nor passes. Raises Spent."""

    def gets_further(self, program: Program) -> bool:
        """Whether a program that was asked about runs, with wrong outputs, or ends at a later stage, where it is told of what
        returns none."""

    def otherwise(self, program: Program) -> bool:
        """Whether a program that was asked about fails in other words, in another respect, or of another part of the compiler,
        or gets further."""

    def apart(self, program: Program, of: Program) -> bool:
        """Whether a program that fails as another does is of another part of the compiler. Raises Spent."""

    def seen(self) -> list[Labelled]:
        """Return what is known of programs already: the member that was reduced, and what a search has asked about."""

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library computes for a program, None where it rejects it. Raises Spent."""

    def go_on(self) -> None:
        """Take some more time for what is asked from now on."""


def of(ask: Asking, program: Program, defaults: Defaults, decided: Decided) -> Borne:
    """Return what near programs leave of what decides, and what else must be so.

    What is drawn, or varies, passes where it does so in several processes, and by the law that is declared of it. That a
    program passes which does not ask for the wrong output tells nothing, nor that one does of which an exporter makes another
    operator than that at which it fails. What runs, though wrongly, or ends at a later stage, does not crash so.
    """
    try:
        chance = deciding.by_chance(ask, program)
        [shown] = ask.look([program])
    except Spent:
        return Borne(decided)
    place = lowered(shown.conversion_function)
    numbered = any(map(edges.NUMBER.match, decided.besides)) or any(x.endswith(" in an input") for x in decided.besides)
    hides = shown.verdict == INCONSISTENT and shown.symptom == "value" and not chance and not numbered

    def label(programs: Sequence[Program]) -> list[bool | None]:
        found = ask.label(programs)
        if chance:  # what draws nothing (a rate of 1) is right anyway
            pairs = zip(programs, ask.look(programs), found, strict=True)
            drawn = [(x, now, fails, chance == UNSTABLE or now.verdict != PASS) for x, now, fails in pairs]
            found = [
                fails or (False if of and deciding.right(ask, x, now, chance) else None) for x, now, fails, of in drawn
            ]
        found = [
            False if fails is None and ask.gets_further(x) else fails for x, fails in zip(programs, found, strict=True)
        ]
        found = [None if fails is False and not tells(x) else fails for x, fails in zip(programs, found, strict=True)]
        found = [None if fails and apart(x) else fails for x, fails in zip(programs, found, strict=True)]
        spared = set[str]()
        with suppress(Spent):  # what was answered stands
            spared = by_luck([x for x, fails in zip(programs, found, strict=True) if fails is False])
        return [None if x.id in spared else fails for x, fails in zip(programs, found, strict=True)]

    def by_luck(passing: Sequence[Program]) -> set[str]:
        """Return which of these, that are of another form, fail with other numbers: theirs, which are those of the program,
        hide that they are wrong."""
        if not hides:
            return set()
        own = _numbers_of(program)
        formed = (
            x for x in passing if isinstance(x, Instance) and _formed(x) != _formed(program) and _numbers_of(x) <= own
        )
        others = [(x, anew(x, random.Random(f"{x.id} {n}"))) for x in formed for n in range(ANEW)]
        others = [(x, made) for x, made in others if made.id != x.id]
        shown = ask.label([made for _, made in others])
        return {x.id for (x, _), fails in zip(others, shown, strict=True) if fails}

    def tells(x: Program) -> bool:
        wrong = shown.details.get("output") if shown.verdict == INCONSISTENT else None
        if not (wrong is None or x.outputs in ((), program.outputs) or wrong in x.outputs):
            return False
        with suppress(Spent):
            return not made_of or place in ask.lowered(x)
        return False

    def apart(x: Program) -> bool:
        with suppress(Spent):
            return ask.apart(x, program)
        return False

    def clear(x: Program) -> bool:
        if shown.verdict != INCONSISTENT or shown.symptom != "value":
            return True
        with suppress(Spent):
            [now] = ask.look([x])
            return now.verdict == PASS and clearly(shown, now)
        return True

    made_of = False
    with suppress(Spent):
        made_of = bool(place) and place in ask.lowered(program)
    seen = [x for x in ask.seen() if x.fails or (tells(x.program) and not chance)]
    with suppress(Spent):
        lucky = by_luck([x.program for x in seen if not x.fails][:PASSING])
        seen = [x for x in seen if x.program.id not in lucky]
    seen = [x for x in seen if not (x.fails and apart(x.program))]
    seen = [x for x in seen if not removable.is_held(x.program, program)]  # how it is given is told by what decides
    known = defaults.get(program.operator, {})
    alike = (x.program for x in seen if not x.fails and x.program.operator == program.operator)
    inputs = dict.fromkeys(given_names(alike))
    defaults = {**defaults, program.operator: {**inputs, **known}}
    read = (*decided.parameters, *implied.given_inputs(decided.besides))
    moot = partial(_moot, ask, read, defaults)
    loud = shown.verdict != INCONSISTENT or shown.symptom == COUNT
    channels = {name: x.channels for name, x in ask.bounds.get(program.operator, {}).items() if x.channels}
    return borne_out(
        label,
        program,
        defaults,
        decided,
        seen,
        ask.reference,
        moot,
        ask.otherwise,
        channels,
        ask.go_on,
        ask.corpus,
        lambda x: not ask.gets_further(x),
        clear,
        loud=loud,
        form=shown.verdict == INCONSISTENT and shown.symptom in randomness.FORMS,
    )


def _formed(program: Program) -> list[tuple[str, tuple[int, ...]]]:
    """Return the dtypes and shapes of a program's tensors."""
    return [(x.dtype, x.shape) for x in smaller.leaves(program)]


def _numbers_of(program: Program) -> set[complex]:
    """Return the numbers in the tensors of a program that have some."""
    held = (x for x in smaller.leaves(program) if isinstance(x, Tensor) and x.dtype != "string" and 0 not in x.shape)
    return {y for x in held for y in simpler.numbers(x).ravel()[: simpler.MANY].tolist()}


def _moot(ask: Asking, parameters: Sequence[str], defaults: Defaults, program: Program) -> bool | None:
    """Whether a library computes the same of a program without a parameter or input that decides: whether a compiler reads it
    does not show there. None where there is no time left to ask.
    """
    made = [y for x in parameters for y in deciding.lacking(program, [x], defaults)[:1]]
    try:
        return any(_same(ask.reference(program), ask.reference(x)) for x in made)
    except Spent:
        return None


def _same(ones: list[Value] | None, others: list[Value] | None) -> bool:
    dtypes = [[getattr(x, "dtype", "") for x in of or ()] for of in (ones, others)]
    return dtypes[0] == dtypes[1] and same_values(ones, others)


def borne_out(
    label: Label, program: Program, defaults: Defaults, decided: Decided, seen: Iterable[Labelled] = (),
    outputs: Outputs = lambda _: None, moot: Callable[[Program], bool | None] = lambda _: False,
    otherwise: Callable[[Program], bool] = lambda _: False, channels: Mapping[str, int] | None = None,
    go_on: Callable[[], None] = lambda: None, corpus: Sequence[Instance] = (),
    passes: Callable[[Program], bool] = lambda _: True, clear: Callable[[Program], bool] = lambda _: True, *,
    loud: bool = False, form: bool = False,
) -> Borne:  # fmt: skip
    """Return what near programs leave of what decides, and what else must be so.

    What explains them all is put to the test: programs near these are asked about where it and others that explain them as well
    say different things, or where it alone says that they pass (Alhazen's refinement).

    Args:
        seen: What is known of programs already: the member that was reduced, and what a search has asked about.
        outputs: Returns the outputs that are expected.
        moot: Whether a program is right by itself without what decides.
        otherwise: Whether a program that is not said to fail alike fails in other words, or in another respect, or gets
            further: that confirms nothing, but it is not right, as is told of what lacks something.
        channels: Inputs that are documented to have an axis of channels, and which.
        go_on: Takes more time, for programs of which several things differ.
        corpus: Programs that call the operator and were made for another purpose; they put what is told to the test, too.
        passes: Whether a program that does not fail so is right; `clear`: whether it is so beyond what tolerance hides.
        loud: Whether the failure shows itself whatever is computed: programs that pass with a short axis are not explained
            where nothing else is told.
        form: Whether a dtype or a shape is wrong: what has the right one, and is wrong with other numbers, does not pass.
    """
    ordinary: list[tuple[Program, bool | None]] = []
    wrong: list[Program] = []  # in another respect
    made = Learner(cast(Instance, program), defaults, decided, outputs, moot, loud, channels)
    made.wrong, made.odd = wrong if form else [], [] if form else wrong
    made.passes, made.clear = passes, clear

    def noted(programs: Sequence[Program]) -> list[bool | None]:
        shown = label(programs)
        wrong.extend(x for x, fails in zip(programs, shown, strict=True) if not fails and otherwise(x))
        return shown

    def asked(programs: Iterable[Program]) -> list[Labelled]:
        more = list(programs)
        return [Labelled(x, fails) for x, fails in zip(more, noted(more), strict=True) if fails is not None]

    own = defaults.get(program.operator, {})
    known, inputs = [*seen], [x.removeprefix(removable.GIVEN) for x in implied.given_inputs(decided.besides)]
    with suppress(Spent):
        parameters = [removable.named(x) for x in decided.parameters]
        known += axes.apart(program, asked, defaults)
        known += asked(literals.beside(program))
        zeros = [*scalars.at_zero(program, own)] if isinstance(program, Instance) else []
        made.alike = {x.id for x in zeros}
        known += asked(zeros)
        known += asked(elementwise.beside(program, own)) if not loud and not form else []
        known += asked(varied.told(program, own, parameters, inputs, bare=decided == Decided()))
        known += asked(made.restated())
    known = labelled(noted, program, defaults, known, ordinary)
    made.plain = [(x, fails) for x, fails in ordinary if fails is not None or otherwise(x)]
    told = made.told(known)

    def learn(programs: Iterable[Labelled]) -> bool:
        nonlocal told
        more = _new(programs, known, program)
        known.extend(more)
        told = made.told(known) if more else told
        return bool(more)

    with suppress(Spent):  # what was asked about tells what it tells
        if isinstance(program, Instance):
            learn(asked(operands.apart(told.all, program)))
        learn(_numbers(made, told, asked))
        if isinstance(program, Instance) and (told.despite or not told.all or _of_numbers(program, own, told)):
            plain = _plainest(made, known)  # what no one thing explains
            learn(asked(scalars.beside(plain, own)))
            learn(sizes.asked_about(plain, asked))
        for _ in range(ROUNDS):
            doubtful = itertools.islice(made.in_doubt(known, told), AT_A_TIME)
            if not learn(asked([*made.varied(told, known), *doubtful])):
                break
    go_on()
    with suppress(Spent):  # of what is told at last
        bare = asked(emptied(program)) if loud else []
        learn(bare if not any(x.fails for x in bare) else ())  # that they fail, too, teaches nothing
        learn(asked(itertools.islice(made.in_doubt(known, told), AT_A_TIME)))
        learn(_numbers(made, told, asked))
        learn(asked(made.varied(told, known)))
    return _borne(made, *_on_further(made, known, told, asked, corpus, go_on))


def _of_numbers(program: Instance, known: Mapping[str, Value], told: Told) -> bool:
    """Whether one of two numbers of a call is told to decide: it may be how they stand to each other."""
    decide = {removable.named(x.says) for x in told.parameters}
    return not decide.isdisjoint(scalars.names(program, known))


def _numbers(made: Learner, told: Told, asked: edges.Asked) -> list[Labelled]:
    """Return labelled programs with other numbers of each parameter that is told, and of the first input, if numbers
    of it are told, or what is told explains too little; where they begin to fail may be told from then on. Raises Spent."""
    found: list[Labelled] = []
    if not isinstance(made.program, Instance):  # what several calls name tells nobody
        return found
    known = made.defaults.get(made.program.operator, {})
    beside = [x for x in (removable.named(y.says) for y in told.found) if isinstance(smaller.default(known, x), float)]
    for name in dict.fromkeys([*filter(None, (removable.named(x.says) for x in told.parameters)), *beside]):
        plain, own = smaller.default(known, name), made.program.params.get(name)
        if isinstance(own, int) and (is_flag(name, own, known) or smaller.is_axes(name) or simpler.is_type(name)):
            continue
        for x in edges.of_parameter(made.program, name, plain, asked):
            if isinstance(x, Labelled):
                found.append(x)
            elif name in beside and (edge := x.of(name, partial(value_of, name=name, known=known))) is not None:
                made.edges[name] = edge
    first = next((x.name for x in made.program.inputs if tensor(made.program, x.name) is not None), "")
    if first and (told.despite or any(edges.NUMBER.match(x.says) for x in told.all)):
        for x in edges.of_input(made.program, first, asked):
            if isinstance(x, edges.Edge):
                made.edges[first] = x.feature(first)
            else:
                found.append(x)
    return found


def _new(found: Iterable[Labelled], known: Iterable[Labelled], program: Program) -> list[Labelled]:
    """Return the labelled programs that are not known yet, each once."""
    seen = {program.id, *(x.program.id for x in known)}
    return [x for name, x in {x.program.id: x for x in found}.items() if name not in seen]


def _on_further(
    made: Learner,
    known: list[Labelled],
    told: Told,
    asked: Callable[[Iterable[Program]], list[Labelled]],
    corpus: Sequence[Instance],
    go_on: Callable[[], None],
) -> tuple[list[Labelled], Told, Tried]:
    """Return labelled programs, what is told of them, and what others say to that, of which several things differ.

    Where the time is over before enough of them said anything, more is taken for as many as are asked about at a time.
    """
    tried, new = Tried(), list[Labelled]()
    bases = [cast(Instance, x) for x in (_plainest(made, known), *(x.program for x in made.apart(known)[:BASES]))]
    old = {x.program.id for x in known}
    others = [x for x in corpus if x.id not in old]
    drawn = further(bases, made.defaults, made.program.id, {*old, *(x.id for x in others)})
    drawn = in_turn(others[:OTHERS], drawn)
    some = evenly(drawn, told.holds, both=bool(told.all))
    for turn in range(TURNS + 1):  # what was told at the last one is tried, too
        says = [x.says for x in told.all]
        batch = list(itertools.islice(some, AT_A_TIME))
        try:
            shown = _with_time(partial(asked, batch), go_on if tried.asked < TRIALS else None)
            new += [x for x in shown if x.fails or not equal.in_part(x.program, says)]
            tried = Tried.of(new, told.holds, made.excused)
            if tried.as_told == tried.asked or turn == TURNS:
                continue
            teaching, again = new, made.told([*known, *new])
            if not told.keys <= again.keys:  # what is told more widely holds of them
                teaching = tried.teaching(new, told.holds)
                again = made.told([*known, *teaching])
            if [x.says for x in again.all] != [x.says for x in told.all]:  # of what is told now nothing was tried yet
                known, tried, new = [*known, *teaching], Tried(), []
                more = _new(_numbers(made, again, asked), known, made.program)  # from which number on it is so
                known, told = [*known, *more], made.told([*known, *more]) if more else again
                some = evenly(drawn, told.holds, both=bool(told.all))
        except Spent:
            break
    return known, told, tried


def _with_time(ask: Callable[[], list[Labelled]], go_on: Callable[[], None] | None) -> list[Labelled]:
    """Return what is said, with more time where there is too little, if more may be taken. Raises Spent."""
    try:
        return ask()
    except Spent:
        if go_on is None:
            raise
    go_on()
    return ask()


def _plainest(made: Learner, known: Sequence[Labelled]) -> Instance:
    """Return the program with its first output alone where that fails, too, else as it is."""
    first = alone(made.program)
    return cast(Instance, first) if any(x.fails and x.program == first for x in known) else made.program


def _borne(made: Learner, known: Sequence[Labelled], told: Told, tried: Tried) -> Borne:
    """Return what is told in the end."""
    all_of_rank = any(x.says.startswith(ALL) for x in told.found)  # then one of them is no news
    found = [x.says for x in told.found]
    left_besides = (x.says for x in told.besides if not (all_of_rank and peculiar.is_rank(x.says)))
    besides = tuple(x for x in left_besides if not implied.of_one(x, found))
    own = (x.says for x in told.parameters)  # that it is not below another is more than that it is given
    parameters = (x for x in own if not any(implied.given(x, y.says) for y in told.found))
    left = Decided(tuple(parameters), besides)
    more = tuple(x.says for x in told.found if x.says not in (*left.parameters, *left.besides))
    failing = sum(x.fails for x in known)
    ordinary = usual.fails(
        [(made.program, True), *((x.program, x.fails) for x in known)], made.defaults, made.computes, loud=made.loud
    )
    right = [x for x in known if not x.fails and made.passes(x.program)]
    beside = _passing_one(made, right, told)
    named = tuple((x.says, x.words) for x in told.all if x.words)
    bare = {
        x.fails for x in known if told.holds(x.program) and made.is_empty(x.program) and not sizes.elements(x.program)
    }
    beyond = sum(not x.fails and not made.passes(x.program) and not told.holds(x.program) for x in known)
    return Borne(
        left,
        more,
        failing,
        len(right),
        told.exact,
        told.despite,
        tried,
        ordinary,
        beside,
        named,
        beyond,
        bare == {False},
    )


def _unlike(one: Program, other: Program) -> int:
    """Return how many inputs and parameters differ, call by call."""
    pairs = [
        [{x.name: x.value for x in of.inputs} | of.params for of in calls]
        for calls in zip(one.instances(), other.instances(), strict=True)
    ]
    return sum(held.get(name) != others.get(name) for held, others in pairs for name in held | others)


def _moved(one: Program, other: Program) -> int:
    """Return in how many things the tensors differ: dtypes, ranks, how many elements there are, and their numbers."""
    pairs = zip(smaller.leaves(one), smaller.leaves(other), strict=False)
    return sum(
        (x.dtype != y.dtype)
        + (len(x.shape) != len(y.shape))
        + (math.prod(x.shape) != math.prod(y.shape))
        + (not dtypes.equal(x, y))
        for x, y in pairs
    )


def _length(program: Program) -> int:
    """Return how much there is to read of the parameters and of small tensors: a half is plainer than 2.92969e-05."""
    told = [x for call in program.instances() for x in call.params.values()]
    told += [x for x in smaller.leaves(program) if math.prod(x.shape) <= FEW]
    return sum(len(removable.said(x)) for x in told)


def _passing_one(made: Learner, right: Sequence[Labelled], told: Told) -> Program | None:
    """Return the program that passes, lacks something of what is told if anything is, and differs in the least; of several the
    smallest, unless one of the next few is right beyond what tolerance hides (bfloat16 grants more than float32 may be off by).
    """
    own: Program = made.program
    alike = (x.program for x in right if not (told.all and told.holds(x.program)))
    first = alone(own)  # of what fails with its first output alone, too, that is asked for
    outputs = {own.outputs, *([first.outputs] if first is not None else [])}
    same = (x for x in alike if x.outputs in outputs and x.operators == own.operators)
    calls = (x for x in same if len(x.instances()) == len(own.instances()) and comparable(x, own))
    little = [x for x in calls if _unlike(own, x) <= LITTLE]
    fair = [x for x in little if not made.excused(x)]
    if told.all and not fair:  # what lacks what decides passes, though less comes out of it
        fair = [x for x in little if not made.hides(x)]

    kept = {x.dtype for x in smaller.leaves(own)}

    def odd(x: Program) -> int:
        return sum(y.dtype not in (*kept, *dtypes.ASKED[: dtypes.COMMON]) for y in smaller.leaves(x))

    def order(x: Program) -> tuple[bool, int, int, int, int, int, str]:
        return x.outputs != own.outputs, _unlike(own, x), _moved(own, x), odd(x), smaller.elements(x), _length(x), x.id

    ranked = sorted(fair, key=order)
    return next(filter(made.clear, ranked[:CLEAR]), None) or next(iter(ranked), None)
