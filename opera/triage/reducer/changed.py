"""What the probe shows of a failing program when one thing of it is changed alone (opera.triage.contrasts)."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

import msgspec
import numpy as np

from opera import libraries
from opera.compilers.shared import tflite_models
from opera.libraries import simplest
from opera.oracle import declared, draws, manner
from opera.oracle.randomness import RANDOM, refutes
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import ABORT, AGREES, CRASH, INCONSISTENT, PASS, REFUSED, SCREENED, UNSTABLE, Outcome
from opera.triage import contrasts, refilled
from opera.triage.conditions import around, deciding, near
from opera.triage.conditions.features import PLACES
from opera.triage.contrasts import Contrast
from opera.triage.failure import NUMBERS, as_told, below, clearly, same_words, says_the_same
from opera.triage.reducer import exact
from opera.triage.reducer.asking import STOPS, Asker
from opera.triage.sentence import RETURNED
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

MOST = 32
"""Programs that are asked about in which one thing alone differs, where others have it with other numbers."""


def alone(
    ask: Asker, program: Program, target: Outcome, defaults: smaller.Defaults | None = None
) -> list[tuple[Program, str]]:
    """Return programs that were asked about in which one thing alone is another than in this one, and what each shows
    (FAILS and others of opera.triage.contrasts); a few are asked about now: whose numbers or outputs differed besides, or that
    have another text of the corpus, or a default written out.

    Args:
        target: What the program's script shows: its words may differ in numbers from those that the search began with.
    """
    loud = target.verdict == INCONSISTENT and "drawn" not in target.details
    with suppress(Spent):
        ask.look(list(itertools.islice(_returning(program, _known(ask)), MOST)))
        ask.look(list(_seeds(program)) if target.details.get("drawn") == draws.SEED else [])
        made = contrasts.alone(program, _known(ask), wrong=loud, corpus=ask.corpus, defaults=defaults)
        ask.look(list(itertools.islice(made, MOST)))
    found: list[tuple[Program, str]] = []
    for x in _known(ask):
        change = contrasts.change(x, program)
        if change is not None and ask.within([x]):
            with suppress(Spent):  # whoever is to confirm it is not asked about the others
                shows = _shows(ask, target, program, x, change)
                found += [(x, shows)] if shows else []
    found = _borne(ask, found, program) if loud and target.symptom in NUMBERS else found
    return _within_bounds(ask, _with_operators(ask, found, program), program, target)


def _seeds(program: Program) -> Iterator[Program]:
    """Yield a call with other seeds in place of its own."""
    draw = declared.declared(program)
    own = program.params.get(draw.seed) if draw and draw.seed and isinstance(program, Instance) else None
    if isinstance(program, Instance) and draw and isinstance(own, int | float):
        for seed in (1, 2):
            made = msgspec.structs.replace(program, params={**program.params, draw.seed: type(own)(seed)})
            yield from [made] if made != program else []


def _borne(ask: Asker, found: list[tuple[Program, str]], own: Program) -> list[tuple[Program, str]]:
    """Return programs and what they show, but for those that are right by their numbers alone: with others, and all else as it
    is, their outputs are wrong, too (a cast that does nothing is right of whole numbers; a power without an absolute value, of
    positive ones; a maximum that begins at 0, too; what takes the least number for none at all, of 0 in all dtypes but one),
    and should be finite. Of other numbers in place of its own nobody says more than that.
    """
    inputs = {x.name for x in own.inputs}
    right = [x for x, shows in found if shows == contrasts.PASSES]
    typed = [x for x in right if (one := contrasts.change(x, own)) and (one.form or one.what not in inputs)][:MOST]
    made = {x.id: list(_numbered(ask, x, own)) for x in typed}
    ask.go_on()  # what was found before may have taken all the time
    with suppress(Spent):
        ask.look([y for several in made.values() for y in several])
    known = {x: [ask.outcomes[y.id] for y in several if y.id in ask.outcomes] for x, several in made.items()}
    wrong = {
        x
        for x, shown in known.items()
        if any(now.verdict == INCONSISTENT and not now.details.get("not_finite") for now in shown)
    }
    return [(x, shows) for x, shows in found if shows != contrasts.PASSES or x.id not in wrong]


def _numbered(ask: Asker, program: Program, own: Program) -> Iterator[Program]:
    """Yield a program with other numbers, as far as its library and documentation admit these."""
    made = (refilled.signed(program), refilled.in_sign(program, own), refilled.ends(program, own))
    yield from (x for x in made if x is not None and ask.within([x]))


def _with_operators(ask: Asker, found: list[tuple[Program, str]], own: Program) -> list[tuple[Program, str]]:
    """Return programs and what they show, but for those of another dtype that are right since no operator is left of them,
    where one is left of their own: `abs` of unsigned integers is its input.
    """
    exported = hasattr(libraries.get(own.library), "plainest")  # to TensorFlow Lite, whose operators can be told
    typed = [x for x, shows in found if exported and shows == contrasts.PASSES and _is_typed(x, own)][
        : contrasts.DTYPES
    ]
    with suppress(Spent):
        if typed and ask.lowered(own) not in ([], [tflite_models.NONE]):
            bare = {x.id for x in typed if ask.lowered(x) == [tflite_models.NONE]}
            return [(x, shows) for x, shows in found if x.id not in bare]
    return found


def _within_bounds(
    ask: Asker, found: list[tuple[Program, str]], own: Program, target: Outcome
) -> list[tuple[Program, str]]:
    """Return programs and what they show, but for those that are wrong of an integer beyond their dtype, where their own is
    not: OpenVINO's power of int64 is rounded to float32, and that of int8 ends at 127, for another reason.
    """
    if target.verdict != INCONSISTENT or exact.beyond(ask, own, target):
        return found
    wrong = (x for x, shows in found if shows == contrasts.FAILS)
    odd = {x.id for x in wrong if exact.beyond(ask, x, ask.outcomes[x.id])}
    return [(x, shows) for x, shows in found if x.id not in odd]


def _is_typed(program: Program, own: Program) -> bool:
    """Whether it is dtypes alone in which a program differs from another."""
    change = contrasts.change(program, own)
    return change is not None and change.form == contrasts.DTYPE


def _known(ask: Asker) -> list[Program]:
    """Return the programs that were asked about."""
    return [x for name, x in ask.programs.items() if name in ask.outcomes]


def _returning(program: Program, known: Iterable[Program]) -> Iterator[Program]:
    """Yield programs that differ in one thing, and were asked for all outputs, asked for those of the program alone."""
    for x in known if any(program.outputs) else ():
        if isinstance(x, Instance) and not any(x.outputs):
            made = msgspec.structs.replace(x, outputs=program.outputs)
            change = contrasts.change(made, program)
            if change is not None and change.alone:
                yield made


def outputs(ask: Asker, program: Program, told: Collection[str]) -> Iterator[Contrast]:
    """Yield what becomes of a program whose result is an output of the model where another call takes it (a negation, or what
    reshapes texts), if that is `told` to decide, or the result hangs on no input; and of one that is asked for outputs beside
    the first where it is asked for that alone."""
    with suppress(Spent):
        chance = any(map(declared.declared, program.instances()))  # what is drawn may be right by chance
        asked = RETURNED in told or simplest.is_constant(program)
        made = around.negated(program) if asked and not chance else []
        right = [x for x, now in zip(made, ask.look(made), strict=True) if now.verdict == PASS]
        for x in right[:1]:
            behind = f"what {x.operators[-1]} takes, whose own result is returned"
            yield Contrast(contrasts.RESULT, "an output of the model", passes=(behind,))
    yield from _unread(ask, program) if simplest.is_constant(program) else ()
    first = near.alone(program)
    if first is not None and ask.vanished(first):
        named = [n for n, x in enumerate(program.outputs) if x]
        own = f"the {PLACES[named[0]]} alone" if len(named) == 1 and named[0] < len(PLACES) else "several"
        own = f"the first of {len(program.outputs)}, the others without a name" if named == [0] else own
        node = (
            isinstance(program, Instance) and "opset" in program.context
        )  # one with outputs that a model need not return
        what = "outputs of the node" if node else "outputs that are returned"
        yield Contrast(what, own, passes=(f"the {PLACES[0]} alone",))
    yield from _others(ask, program)


def short(ask: Asker, program: Program, found: Collection[tuple[Program, str]]) -> Iterator[Contrast]:
    """Yield the shapes that should be returned where a parameter, or numbers, change them, if all of what fails, and none of
    what passes, have an axis of length 1 or 0: a scale of a half is no fault of its own, the division by a length less one is.

    Args:
        found: Programs in which one thing is another, and what each shows.
    """
    told: dict[str, dict[tuple[int, ...], None]] = defaultdict(dict)
    with suppress(Spent):
        for x, how in [(program, contrasts.FAILS), *itertools.islice(found, MOST)]:
            change = contrasts.change(x, program)
            chosen = x is program or (change is not None and not change.form)
            if how in (contrasts.FAILS, contrasts.PASSES) and chosen:
                shapes = [y.shape for y in ask.reference(x) or () if isinstance(y, Tensor)]
                told[how].update(dict.fromkeys(shapes[:1]))
    failing, passing = (sorted(told[x], key=lambda x: (len(x), x)) for x in (contrasts.FAILS, contrasts.PASSES))
    alike = {len(x) for x in (*failing, *passing)}
    places = range(alike.pop()) if len(alike) == 1 and passing else ()
    if any({x[n] for x in failing} in ({1}, {0}) and failing[0][n] not in {x[n] for x in passing} for n in places):
        own, *others = ("x".join(map(str, x)) for x in told[contrasts.FAILS])
        right = tuple("x".join(map(str, x)) for x in passing)
        most = contrasts.VALUES
        yield Contrast(contrasts.RETURNED_SHAPE, own, fails=tuple(others[:most]), passes=right[:most])


def _unread(ask: Asker, program: Program) -> Iterator[Contrast]:
    """Yield whether it is that an input is not used, where what hangs on none fails: so does a model then that uses its second
    input alone, and none that uses its first."""
    target = ask.outcomes.get(program.id)
    with suppress(Spent):
        shown = ask.look(around.unread(program)) if target is not None and target.verdict in STOPS else []
        if target is None or len(shown) != 2 or shown[1].verdict != PASS:
            return
        stops = (shown[0].verdict, shown[0].stage) == (target.verdict, target.stage)
        if stops and same_words(target, shown[0]):  # of an input of several, as another exception
            yield Contrast(contrasts.UNREAD, "the only one", fails=(contrasts.FIRST,), passes=("the last of two",))


def _others(ask: Asker, program: Program) -> Iterator[Contrast]:
    """Yield what becomes of a program that is asked for one output if it is asked for another alone, of those that it was asked
    for before: a placeholder may stand for several. What varies, or is drawn, tells nothing of others; nor does an output of
    one number again and again, nor a wrong one that nobody confirms.
    """
    target, named = ask.outcomes.get(program.id), [n for n, x in enumerate(program.outputs) if x]
    if target is None or target.verdict == UNSTABLE or "drawn" in target.details:
        return
    if not isinstance(program, Instance) or len(named) != 1:
        return
    known = [x.outputs for x in _known(ask) if isinstance(x, Instance) and x.operator == program.operator]
    names: dict[int, str] = {}
    for outputs in sorted(known, key=len, reverse=True):  # those that were all asked for have their own names
        for n, name in enumerate(outputs):
            if name and n not in named:
                names.setdefault(n, name)
    if (first := near.alone(program)) is not None and ask.vanished(first):
        names.pop(0, None)  # which is told
    made = {x: msgspec.structs.replace(program, outputs=(*("",) * n, x)) for n, x in sorted(names.items())}
    told: dict[str, list[str]] = defaultdict(list)
    with suppress(Spent):
        shown = ask.look([*made.values()])
        sure = ask.passed([*made.values()], [True] * len(made))  # or it may be no program to others
        for (name, x), now, is_sure in zip(made.items(), shown, sure, strict=True):
            if is_sure and (how := _of_output(ask, target, x, now)):
                told[how].append(name)
    if told:
        own = program.outputs[named[0]]
        yield Contrast(contrasts.OUTPUT, own, **{how: tuple(others) for how, others in told.items()})


def comes(ask: Asker, program: Program, besides: Iterable[str], defaults: smaller.Defaults) -> Iterator[Contrast]:
    """Yield how inputs come to the model, as far as a failure needs that and it was seen that it is right with what they may be
    in its place, or that it is wrong then of something else, which somebody confirms.
    """
    random = any(map(declared.declared, program.instances()))  # two draws differ
    with suppress(Spent):
        for says in besides:
            for x in contrasts.comes([says], program):
                shown = deciding.without(ask, program, says, defaults) or []
                verdicts = {now.verdict for _, now in shown}
                if PASS in verdicts or (random and verdicts & {SCREENED, INCONSISTENT}):
                    yield x
                elif any(now.verdict == INCONSISTENT and ask.agreed(of) for of, now in shown):
                    yield msgspec.structs.replace(x, passes=(), wrong=x.passes)


def unheeded(ask: Asker, program: Program, defaults: smaller.Defaults) -> tuple[str, ...]:
    """Return the parameters and inputs without which a wrong program is right, and of which it is as if they were not given:
    its wrong outputs are those of the program without, which is asked as if these were expected of it. Zeros and ones may be
    so by chance.
    """
    target, found = ask.outcomes.get(program.id), list[str]()
    if target is None or target.verdict != INCONSISTENT or "drawn" in target.details:
        return ()
    with suppress(Spent):
        for x in smaller.traits(program, defaults):
            made = None if x.kind == "dtype" else smaller.applied(x.without, program)
            held = made is None or any(x.name in call.params for call in made.instances())  # its default is stated
            if made is None or held or made == program or ask.look([made])[0].verdict != PASS:
                continue
            expected = ask.reference(made)
            alike = expected is not None and _tell(expected) and ask.stated(program, expected).verdict == PASS
            if expected is not None and alike and not _is_heeded(ask, program, x.name, expected):
                found.append(x.name)
    return tuple(dict.fromkeys(found))


def _is_heeded(ask: Asker, program: Program, name: str, without: list[Value]) -> bool:
    """Whether a program is right with another value in place of one, and returns what it does not without any: it is read then,
    and cut off to a whole number, say."""
    for x in _known(ask):
        change = contrasts.change(x, program) if ask.outcomes[x.id].verdict == PASS else None
        other = change is not None and change.what == name and change.now != contrasts.LEFT_OUT
        if other and ask.stated(x, without).verdict != PASS:
            return True
    return False


def _tell(outputs: Iterable[Value]) -> bool:
    """Whether outputs hold finite numbers beside 0, 1 and -1."""
    found = [x.numbers() for x in outputs if isinstance(x, Tensor) and x.dtype not in ("string", "bool")]
    return any((abs(x) != 1)[(x != 0) & np.isfinite(x)].any() for x in found)


def _of_output(ask: Asker, target: Outcome, program: Program, shown: Outcome) -> str:
    """Return what a program shows that is asked for another output; nothing where that is not to be told. Raises Spent."""
    if shown.verdict == PASS:
        tells = not _is_uniform(ask.reference(program), whole=True) and ask.passes_afresh(program)
        return contrasts.PASSES if tells else ""
    if shown.verdict not in (CRASH, REFUSED, INCONSISTENT):
        return ""
    if shown.verdict == INCONSISTENT and ask.beside and not ask.agreed(program):
        return ""
    if as_told(target, shown):
        return contrasts.FAILS
    return contrasts.WRONG if target.verdict in STOPS and shown.verdict == INCONSISTENT else contrasts.OTHERWISE


def _shows(ask: Asker, target: Outcome, own: Program, program: Program, change: contrasts.Change) -> str:
    """Return what a program shows that differs from its own in one thing; nothing where that is not to be told: of two models
    that draw differently, what is given no seed promises nothing."""
    if target.details.get("drawn") == draws.SEED and not declared.seeded(program):
        return ""
    shown, [fails] = ask.outcomes[program.id], ask.label([program])
    wrong = target.verdict == INCONSISTENT
    drawn = "drawn" in target.details and shown.details.get("screen") == RANDOM  # it draws as it may
    if ask.runs(program) or drawn:
        if (drawn or AGREES in shown.details) and not refutes(shown, target):
            return ""
        sure = clearly(target, shown, 0.0) if change.form == contrasts.SHAPE else clearly(target, shown)
        return contrasts.PASSES if sure and _surely(ask, target, own, program, change) else ""
    # of what hangs or dies, or is drawn, a script asks more
    judged = target.verdict in (CRASH, REFUSED, INCONSISTENT) and "drawn" not in target.details
    if _as_a_script(target, shown) if judged else fails:
        confirmed = not wrong or (_of_a_kind(target, shown) and ask.passed([program], [True]) == [True])
        return contrasts.FAILS if confirmed and not _elsewhere(target, shown) else ""
    if target.verdict != ABORT and shown.verdict == ABORT:
        return ""  # another program may have spoilt the worker, or its settings, which no script has
    if fails:
        return contrasts.LIKEWISE if says_the_same(target, shown) else ""
    if target.verdict == UNSTABLE and shown.verdict in (INCONSISTENT, UNSTABLE):
        return ""  # memory that nobody wrote is wrong in one way, and in the next run in another
    in_like_words = target.verdict in (CRASH, REFUSED) and same_words(target, shown)
    if in_like_words or not ask.otherwise(program):
        return ""
    if shown.verdict == INCONSISTENT and ask.beside and not ask.agreed(program):
        return ""  # nobody gives what is expected: neither that it is wrong, nor how, is known
    if target.verdict not in STOPS or shown.verdict != INCONSISTENT:
        return contrasts.OTHERWISE
    return "" if any(map(declared.declared, program.instances())) else contrasts.WRONG  # two draws differ


def _elsewhere(target: Outcome, shown: Outcome) -> bool:
    """Whether a program stops at another line than the target, or by another way below what its operators are converted to, in
    whatever words: a division by zero may be of two causes."""
    lines = [below(x) or tuple(filter(None, [x.line])) for x in (target, shown)]
    return target.verdict in STOPS and all(lines) and len(set(lines)) > 1


def _surely(ask: Asker, target: Outcome, own: Program, program: Program, change: contrasts.Change) -> bool:
    """Whether a program that is right once is right: what nobody wrote may be so by chance, and is computed again in a process
    of its own, where memory holds other bytes each time, all of which are true; what is not drawn may be with other numbers
    what might be drawn; and what a witness says to be none, of another shape or of other sizes, nobody needs to run: OpenVINO's
    `Tile` takes four repeats of five axes. Raises Spent.
    """
    sizes = {x.name for x in own.inputs if isinstance(x.value, Tensor) and smaller.states(x.value)}
    if (change.form == contrasts.SHAPE or change.what in sizes) and ask.refuted(program):
        return False
    if change.form == contrasts.SHAPE and target.symptom in (*NUMBERS, "shape") and _is_padding(ask, own, program):
        return False
    if change.form == contrasts.DTYPE and target.symptom in NUMBERS and _is_rounded(ask, target, own, program):
        return False
    if "drawn" in target.details:
        return bool(change.form) or change.what not in {x.name for x in own.inputs}
    return not (target.verdict == UNSTABLE and "bool" in change.now) and ask.passes_afresh(program)


def _is_rounded(ask: Asker, target: Outcome, own: Program, program: Program) -> bool:
    """Whether integers are expected of a program where floats are of its own, which are off by less than 1: rounded to whole
    numbers they may be right."""
    off = target.details.get("max_abs")
    if not isinstance(off, int | float) or off >= 1:
        return False
    whole = [[x.dtype for x in ask.reference(of) or () if isinstance(x, Tensor)] for of in (own, program)]
    floats, integers = (sum(word in x for x in some) for word, some in zip(("float", "int"), whole, strict=True))
    return floats > 0 and integers == len(whole[1])


def _is_padding(ask: Asker, own: Program, program: Program) -> bool:
    """Whether all that is expected of what is computed of inputs is one number: that may be right whatever is made of them."""
    return not simplest.is_constant(own) and _is_uniform(ask.reference(program))


def _is_uniform(outputs: Iterable[Value] | None, *, whole: bool = False) -> bool:
    """Whether all that is expected is one float again and again, or any number if `whole`: `grid_sample` of places outside of
    its image is padding, whatever is made of them. What has one element tells as much as it can."""
    kinds = ("float", "int") if whole else ("float",)
    found = [x.numbers() for x in outputs or () if isinstance(x, Tensor) and any(y in x.dtype for y in kinds)]
    return bool(found) and all(x.size > 1 and (x == x.flat[0]).all() for x in found)


def _as_a_script(target: Outcome, shown: Outcome) -> bool:
    """Whether a program fails as the target does in the eyes of its script: at that stage, with that type and text; or in that
    respect of that output."""
    return as_told(target, shown) and (
        target.verdict != INCONSISTENT or target.details.get("output") == shown.details.get("output")
    )


def _of_a_kind(target: Outcome, shown: Outcome) -> bool:
    """Whether what is no ordinary number in wrong outputs, or is expected there, is so in those of the target, too."""
    one, other = (manner.special(x.details.get("manner") or {}) for x in (target, shown))
    return one == other
