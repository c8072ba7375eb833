"""What labelled programs have in common: what is told of them, and which others would put that to the test.

Who asks: opera.triage.conditions.circumstances. What may be told: opera.triage.conditions.features and wider.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from opera.programs.program import Instance, Program, with_params
from opera.programs.values import NO_DEFAULT, RandomTensor, Tensor, Value
from opera.triage.alike import same_values
from opera.triage.conditions import (
    deciding,
    dtypes,
    equal,
    implied,
    operands,
    peculiar,
    refuting,
    removable,
    scalars,
    separating,
    varied,
    wider,
)
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.expected import BEYOND_FLOAT32, NO_ELEMENTS, OVERFLOW, of_expected, of_outputs, of_overflow
from opera.triage.conditions.features import BESIDE_FIRST, as_left, features
from opera.triage.conditions.forms import shaped
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.lengths import BROADCAST, OF_LENGTH_0, broadcast_shape, empty_axis, is_longer
from opera.triage.conditions.representable import inexact
from opera.triage.conditions.stated import BEYOND_DTYPE, WHOLE, Feature, differ_in_one
from opera.triage.sentence import EMPTY, is_relation
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults, Leaf

Outputs: TypeAlias = Callable[[Program], "list[Value] | None"]
"""Returns the outputs that a library computes, None where it computes none. Raises Spent."""
OUTPUTS, SAMPLE = 24, 4
"""Near programs of which outputs are asked for; failing ones that bear out what is told."""
RIVALS, BASES, LACKING = 12, 6, 6
"""What else is compared with what is told, of programs near so many labelled ones that fail, and that pass; and failing ones
of which what decides is taken away."""

AT_ENDS = {f"{says} in an input": n == 0 for n, says in enumerate(peculiar.ENDS)}
"""How it is told that numbers are the ends of their dtype, and whether it is the least."""

OF_PYTHON = re.compile(r"an? (?:float|integer|number) for (\S+)$")
"""How it is told which numbers of Python's decide, whatever their value."""
OUT_OF = re.compile(rf"(?:{WHOLE})?(\S+){BEYOND_DTYPE}")
"""How it is told that a number is none of a dtype."""
OF_RANK = re.compile(r"\brank\b|\b\d-d\b")
"""How it is told how many axes there are."""


class Told(NamedTuple):
    """What is told of labelled programs.

    Attributes:
        parameters, besides: What decided before, and still does.
        found: What else all that fail have.
        rivals: What else could be told in its place.
        despite: How many pass though they have all of it, but for those that do for another reason; where there was no time to
            see that, these count if they are more than those that fail.
    """

    parameters: list[Feature]
    besides: list[Feature]
    found: list[Feature]
    rivals: list[list[Feature]]
    despite: int

    @property
    def exact(self) -> bool:
        """Whether all that have all of it fail."""
        return not self.despite

    @property
    def all(self) -> list[Feature]:
        """All that is told."""
        return [*self.parameters, *self.besides, *self.found]

    @property
    def keys(self) -> set[str]:
        """What all that is told is called, whatever its value."""
        return {removable.key(x.says) for x in self.all}

    def holds(self, program: Program) -> bool:
        """Whether a program has all that is told."""
        return all(x.holds(program) for x in self.all)


class Learner:
    """Tells what labelled programs have in common.

    Attributes:
        program, defaults, decided: What is told of, and what decided before near programs were asked.
        plain: Ordinary programs, and whether they fail alike; None: in other words.
        passes: As `borne_out` has it.
        odd: Programs that fail in another respect.
        wrong: Programs that have a wrong number where the program's dtype or shape is wrong.
        alike: Ids of programs that have something of the same kind in the place of what decides: they fail of the same.
        edges: Of an input or a parameter, from which number on the program fails, where that is known
            (opera.triage.conditions.edges).
        outputs, moot, loud, channels: As `borne_out` has them.
    """

    def __init__(
        self,
        program: Instance,
        defaults: Defaults,
        decided: Decided,
        outputs: Outputs,
        moot: Callable[[Program], bool | None],
        loud: bool,
        channels: Mapping[str, int] | None = None,
    ) -> None:
        self.program, self.defaults, self.decided = program, defaults, decided
        self.outputs, self.moot, self.loud, self.channels = outputs, moot, loud, channels
        self.plain: list[tuple[Program, bool | None]] = []
        self.edges: dict[str, Feature] = {}
        self.wrong: list[Program] = []
        self.odd: list[Program] = []
        self.alike: set[str] = set()
        self.passes: Callable[[Program], bool] = lambda _: True
        self.clear: Callable[[Program], bool] = lambda _: True
        self._outputs: dict[str, list[Value] | None] = {}
        self._asks = 0
        self._moot: dict[str, bool | None] = {}
        self._lack: dict[str, tuple[str, str]] = {}
        self._doubted: set[str] = set()
        self._fractions: list[str] = []
        self._overflow: bool | None = None

    def told(self, known: Sequence[Labelled]) -> Told:
        """Return what is told of labelled programs."""
        program, known = self.program, self.apart(known)
        self._fractions = [] if self.loud else self._fractional([x.program for x in known if x.fails])
        known = [x for x in known if x.fails or not self._is_same_cut(x.program)]
        failing, passing = ([cast(Instance, x.program) for x in known if x.fails is fails] for fails in (True, False))
        parameters, besides = (
            [
                y
                for y in wider.kept(x, program, self.defaults, failing, passing, self.odd)
                if self._borne_by_plain(y, passing)
            ]
            for x in (self.decided.parameters, self.decided.besides)
        )
        parameters, besides = (self._by_value(x, failing, passing) for x in (parameters, besides))
        parameters, order = self._in_order(parameters, failing, passing)
        kept = {says for x in besides for says in (x.says, peculiar.unnamed_rank(x.says))}
        lost = [Feature(x, lambda _: False) for x in self.decided.besides if x not in kept]
        besides = self._of_operands(besides, failing) + [
            x for x in self._of_operands(lost, failing, lost=True) if x.words
        ]
        told = [*parameters, *besides, *order]
        related = any(map(is_relation, [x.says for x in told]))  # of numbers, which decide together
        having = [] if related else [x for x in passing if all(of.holds(x) for of in told)]
        failed = {x.id for x in failing}
        had = [x for x in having if renumbered(x).id not in failed]
        having = [x for x in had if not self._hides(x, bool(parameters))]
        unsure = [x for x in had if self._moot.get(x.id, False) is None]
        own = self._own(failing, passing) if having else ()
        given = wider.given(program, self.defaults, failing, passing, (x.says for x in told)) if having else []
        given += as_left(program, self.defaults, passing) if having else ()
        over = self._overflows(failing, having) if having else []
        every = itertools.chain(self._bare(failing, having, passing), over, self.edges.values(), own, given)
        candidates = [x for x in every if all(map(x.holds, failing)) and self._borne_by_plain(x, passing)]
        elsewhere = [
            x for x in having if not _all_one(x, program)
        ]  # where another axis is longer: it is this one that matters
        fitting = [x for x in candidates if not is_longer(x.says) or not all(map(x.holds, elsewhere))]
        rivals, whole = separating.one(fitting, having), having
        if self.loud and not rivals:
            rivals = separating.pairs(fitting, having)
        if not rivals:
            having = [x for x in having if not _short(x, program)]
            candidates = [x for x in candidates if not is_longer(x.says)]
            rivals = separating.one(candidates, having) or separating.pairs(candidates, having)
        if having and not rivals:
            having = [x for x in having if not self._short_output(x)]
            candidates += [x for x in self._of_outputs(failing, having) if all(map(x.holds, failing))]
            rivals = separating.one(candidates, having) or separating.pairs(candidates, having)
        if having and not rivals and (alone := self._alone((x for x in given if x in candidates), passing)):
            left = [x for x in having if all(of.holds(x) for of in alone)]
            rivals = [[*x, *alone] for x in separating.one(candidates, left) or separating.pairs(candidates, left)]
            rivals = rivals or ([] if left else [alone])
        rivals = rivals or separating.triples(candidates, having) or separating.nearly(candidates, having)
        found = rivals[0] if rivals else []
        if isinstance(self.program, Instance) and any(x.says == EMPTY for x in (*told, *found)):
            defaults = self.defaults.get(self.program.operator, {})
            found = empty_axis(self.program, defaults, told, found, failing, passing)
        found = [*order, *self._of_operands(found, failing)]
        besides = implied.unless_of_dtypes([*parameters, *found], besides, passing)
        besides, found = implied.of_given(besides, found)
        parameters = implied.of_windows(parameters, [*besides, *found], passing)
        if self.loud:  # a crash hides nowhere: what passes lacks something, though it be short
            having = whole if told or found else [x for x in passing if not self.is_empty(x)]
        unsure = [x for x in unsure if all(y.holds(x) for y in found)]
        having = [x for x in having if all(y.holds(x) for y in found)]
        found += self._bare_alone([*parameters, *besides, *found], failing)
        despite = len(having) + len(unsure if len(unsure) > len(failing) else [])
        return Told(parameters, besides, found, rivals, despite)

    def _bare_alone(self, told: Sequence[Feature], failing: Sequence[Instance]) -> list[Feature]:
        """Return that an input is empty, where nothing with elements fails: a library may reject that (`log_softmax` of
        integers), and who reads what else is told tries it first.
        """
        every = (self.program, *failing)
        said = any(x.says == EMPTY or x.says == NO_ELEMENTS or OF_LENGTH_0 in x.says for x in told)
        if said or len(every) < BASES or not all(smaller.is_empty(x) for x in every):
            return []
        return self._of_operands([Feature(EMPTY, smaller.is_empty)], failing)

    def _in_order(
        self, told: list[Feature], failing: Sequence[Instance], passing: Sequence[Instance]
    ) -> tuple[list[Feature], list[Feature]]:
        """Return what is told of parameters, and how two numbers stand to each other in the place of one that decides, where
        others fail, too, and nothing passes that stands so. What is told of numbers by themselves, and of none that passes, is
        more: `beta <= 0`, whatever `alpha` is.
        """
        if not isinstance(self.program, Instance):
            return told, []
        known = self.defaults.get(self.program.operator, {})
        numbers = scalars.names(self.program, known)
        own = {x for x in self.decided.parameters if removable.named(x) in numbers}
        alone = [x for x in told if removable.named(x.says) in numbers]
        if own <= {x.says for x in told} or (alone and not any(all(of.holds(x) for of in alone) for x in passing)):
            return told, []
        every = scalars.features(self.program, known)
        found = [x for x in every if all(map(x.holds, failing)) and not any(map(x.holds, passing))][:1]
        return ([x for x in told if removable.named(x.says) not in numbers] if found else told), found

    def _of_operands(
        self, told: Iterable[Feature], failing: Sequence[Instance], *, lost: bool = False
    ) -> list[Feature]:
        """Return what is told, of one operand where it is that of all that fail."""
        call = self.program if isinstance(self.program, Instance) else None
        return [operands.named(x, call, failing, lost=lost) if call is not None else x for x in told]

    def _alone(self, told: Iterable[Feature], passing: Sequence[Instance]) -> list[Feature]:
        """Return, of each parameter once, what is told of it where a program passes that lacks that and differs in it alone."""
        own, found = self.program, dict[str, Feature]()
        of = [x for x in passing if x.inputs == own.inputs and x.outputs == own.outputs]
        for x in told:
            if any(not x.holds(y) and differ_in_one(y, own) for y in of):
                found.setdefault(removable.key(x.says), x)
        return list(found.values())

    def _by_value(self, told: list[Feature], failing: Sequence[Instance], passing: Sequence[Instance]) -> list[Feature]:
        """Return what is told with the value of what is given in its place, where programs pass that are given the default,
        with which the library computes what it does without. Wrong outputs are right then in any case.
        """
        given = (*self.decided.parameters, *implied.given_inputs(self.decided.besides))
        if not self.loud or len(given) != 1:
            return told
        made = []
        for of in told:
            having = [x for x in passing if of.holds(x)][:OUTPUTS]
            plain = [x for x in having if self._is_moot(x)]
            found = wider.by_value(of.says, self.program, self.defaults, plain, failing)
            named = of.says.startswith(removable.GIVEN)  # all that fail have another number, whatever it does to them
            read = found is not None and (named or not any(self._is_moot(x) is not False for x in failing[:SAMPLE]))
            made.append(found if found is not None and read else of)
        return made

    def _borne_by_plain(self, told: Feature, passing: Sequence[Instance]) -> bool:
        """Whether no more ordinary programs fail in other words than pass of those that lack something, or the program itself
        passes without it alone."""
        if isinstance(self.program, Instance) and self._alone([told], passing):
            return True
        lacking = [fails for x, fails in self.plain if not told.holds(x)]
        return lacking.count(None) <= lacking.count(False)

    def _hides(self, other: Program, parameters: bool) -> bool:
        """Whether a program that passes may do so for another reason: nothing is computed that could be wrong, or a compiler
        that does not read what decides is right by itself.
        """
        if self.is_empty(other) or self._computes_less(other):
            return True
        if not self.loud and (self._handed_through(other) or self._is_lost(other)):
            return True
        if self._is_same_cut(other):
            return True
        if self.loud or (not parameters and not _short(other, self.program)):
            return False  # what raises does so whatever would have been computed
        return self._is_moot(other) is not False

    def _is_moot(self, program: Program) -> bool | None:
        if (name := program.id) not in self._moot:
            self._moot[name] = self.moot(program)
        return self._moot[name]

    def _fractional(self, failing: Sequence[Program]) -> list[str]:
        """Return the parameters that are fractions in all that fail."""
        every = [x.params for x in (self.program, *failing) if isinstance(x, Instance)]
        return (
            [name for name in every[0] if all(map(scalars.is_fraction, (x.get(name) for x in every)))] if every else []
        )

    def _is_same_cut(self, other: Program) -> bool:
        """Whether the library computes the same of a program with its fractions cut to whole numbers: if a compiler cuts them,
        it does not show there.
        """
        held = {name: other.params.get(name) for name in self._fractions} if isinstance(other, Instance) else {}
        cut: dict[str, Value] = {x: float(int(y)) for x, y in held.items() if scalars.is_fraction(y)}  # type: ignore[arg-type]
        made = with_params(other, lambda x: {**x.params, **cut}) if cut else None
        return made is not None and same_values(self._returned(other), self._returned(made) or None)

    def is_empty(self, other: Program) -> bool:
        """Whether a program has an empty tensor, and what is told of has none."""
        return smaller.is_empty(other) and not smaller.is_empty(self.program)

    def _computes_less(self, other: Program) -> bool:
        """Whether nothing is computed of a program without elements, and of what is told of there is something."""
        return smaller.is_empty(other) and not self.computes(other) and self.computes(self.program)

    def _handed_through(self, other: Program) -> bool:
        """Whether nothing is expected of a program but an input as it is, bit for bit, and of what is told of there is more: it
        is right whatever decides."""
        return self._is_handed(other) and not self._is_handed(self.program)

    def _is_handed(self, program: Program) -> bool:
        made = self._returned(program)[:1]
        return made != [] and any(x == made[0] for x in smaller.leaves(program))

    def _is_lost(self, other: Program) -> bool:
        """Whether no finite number is expected of a program, and one is of what is told of: what overflows is infinite by a
        wrong formula, too (`cdist` with p=100)."""
        return self._is_finite(self.program) is True and self._is_finite(other) is False

    def _is_finite(self, program: Program) -> bool | None:
        """Whether there is a finite number in the first output that is expected; None where none is known, or there is none."""
        made = next((x for x in self._returned(program) if isinstance(x, Tensor) and "float" in x.dtype), None)
        if made is None or not math.prod(made.shape):
            return None
        return bool(np.isfinite(simpler.numbers(made)).any())

    def computes(self, program: Program) -> bool:
        """Whether an output of a program has elements; of what is not known nothing speaks against it."""
        tensors = [x for x in self._returned(program) if isinstance(x, Tensor | RandomTensor)]
        return not tensors or any(math.prod(x.shape) for x in tensors)

    def _returned(self, program: Program) -> list[Value]:
        """Return the expected outputs of a program, none where there are none, or is no time to ask."""
        if (name := program.id) not in self._outputs:
            try:
                self._outputs[name] = self.outputs(program)
            except Spent:
                return []
        return self._outputs[name] or []

    def _made(self) -> list[str]:
        """Return the dtypes in which something is computed: of outputs, and float32, for compilers compute float64 in it, and
        integers that it may not hold."""
        leaves = smaller.leaves(self.program)
        own = next((x.dtype for x in leaves), "")  # others may only tell a dtype
        made = [x.dtype for x in self._returned(self.program) if isinstance(x, Tensor) and x.dtype != own]
        wide = own == "float64" or any(peculiar.has(x, inexact_in_float32) for x in leaves[:1])
        return [*dict.fromkeys((*made, *(["float32"] if wide else [])))]

    def _short_output(self, other: Program) -> bool:
        """Whether less comes out of a program, where most mistakes do not show: nothing, one element, an axis of length 1."""
        own, shape = (
            next((y.shape for y in self._returned(x) if isinstance(y, Tensor)), None) for x in (self.program, other)
        )
        if own is None or shape is None:
            return False
        one, two = math.prod(shape), math.prod(own)
        return one < two and (one <= 1 or any(x == 1 < y for x, y in zip(shape, own, strict=False)))

    def _of_outputs(self, failing: Sequence[Program], passing: Sequence[Program]) -> list[Feature]:
        for x in (self.program, *failing[:OUTPUTS], *passing[:OUTPUTS]):
            self._returned(x)
        self._asks = len(self._outputs) + OUTPUTS  # so many of those that are asked about later

        def shape(x: Program) -> tuple[int, ...] | None:
            found = self._returned(x) if len(self._outputs) < self._asks or x.id in self._outputs else []
            return next((y.shape for y in found if isinstance(y, Tensor)), None)

        def numbers(x: Program) -> peculiar.Array | None:
            held = next((y for y in self._returned(x) if isinstance(y, Tensor)), None) if shape(x) is not None else None
            return simpler.numbers(held).astype("float64") if held is not None and "float" in held.dtype else None

        def outputs(x: Program) -> list[Value] | None:
            asked = len(self._outputs) < self._asks + OUTPUTS or x.id in self._outputs
            return self._returned(x) or None if asked else None

        told = (of_overflow(self.program, outputs), of_expected(self.program, numbers), of_outputs(self.program, shape))
        return [*itertools.chain(*told)]

    def _overflows(self, failing: Sequence[Program], passing: Sequence[Program]) -> list[Feature]:
        """Return that integers overflow, where those of the program do: that says more than their signs."""
        if self._overflow is None:
            self._overflow = bool(of_overflow(self.program, lambda x: self._returned(x) or None))
        said = (OVERFLOW, BEYOND_FLOAT32)
        return [x for x in self._of_outputs(failing, passing) if x.says in said] if self._overflow else []

    def _bare(
        self, failing: Sequence[Program], left: Sequence[Program], passing: Sequence[Program]
    ) -> Sequence[Feature]:
        """Return that nothing with elements is expected of the program, where that is so: it says more than any shape; not of
        a crash where another such program passes."""
        bare = left and not self.computes(self.program)
        found = [x for x in self._of_outputs(failing, left) if x.says == NO_ELEMENTS] if bare else []
        others = [x for x in passing if smaller.is_empty(x)] if self.loud and found else []
        return [] if any(self._returned(x) and not self.computes(x) for x in others) else found

    def in_doubt(self, known: Sequence[Labelled], told: Told) -> Iterator[Program]:
        """Yield programs that put to the test what is told: those of which it and what else explains all, wider and narrower,
        say different things, the most telling first; then those that should fail and pass, with other numbers.
        """
        self._doubted |= {x.program.id for x in known} | {self.program.id}
        failing, passing = (
            [cast(Instance, x.program) for x in self.apart(known) if x.fails is of] for of in (True, False)
        )
        if told.exact and told.all:
            bases = [self.program, *itertools.chain.from_iterable(zip(failing[:BASES], passing[:BASES], strict=False))]
            fair = [x for x in passing if not self.is_empty(x) and not self._handed_through(x)]
            rivals = [[*told.parameters, *told.besides, *x] for x in told.rivals[1:RIVALS]]
            rivals += refuting.rivals(told.all, self._candidates(failing, passing), fair)
            yield from refuting.programs(told.all, rivals, refuting.varied(bases, self.defaults), self._doubted)
        right = (renumbered(x) for x in passing if all(of.holds(x) for of in told.besides))
        bare = passing[:BASES] if self.loud and any(x.says == NO_ELEMENTS for x in told.all) else []
        for made in itertools.chain(
            map(_emptied, bare),  # an output may be empty for another reason
            self._lacking(failing[:: len(failing) // LACKING + 1]),
            itertools.islice(right, BASES),
        ):
            if isinstance(made, Instance) and made.id not in self._doubted:
                self._doubted.add(made.id)
                yield made

    def _candidates(self, failing: Sequence[Instance], passing: Sequence[Instance]) -> list[Feature]:
        """Return what may be told of all programs that fail, in the order of preference."""
        own = self._own(failing, passing)
        given = wider.given(self.program, self.defaults, failing, passing, ())
        left = as_left(self.program, self.defaults, passing)
        every = itertools.chain(self._bare(failing, passing, passing), self.edges.values(), own, given, left)
        return [x for x in every if all(map(x.holds, failing))]

    def _own(self, failing: Sequence[Program], passing: Sequence[Program]) -> Iterator[Feature]:
        """Yield what the program has that may be told, in the order of preference; that a tensor is broadcast last, where what
        is computed has another shape: a signal and its window may be of such shapes by chance."""
        shapes = [x.shape for x in self._returned(self.program)[:1] if isinstance(x, Tensor | RandomTensor)]
        by_chance = bool(shapes) and shapes != [broadcast_shape(self.program)]
        last: list[Feature] = []
        for x in features(self.program, self.defaults, failing, self._made(), self.channels, passing, self.odd):
            if by_chance and x.says.endswith(BROADCAST):
                last.append(x)
            else:
                yield x
        yield from last

    def varied(self, told: Told, labelled: Sequence[Labelled]) -> Sequence[Program]:
        """Return the program with other values of what is told of it, each alone; of a dtype with other numbers, and of numbers
        that are the ends of one with those of others; of outputs with each of those that labelled programs have."""
        known = self.defaults.get(self.program.operator, {})
        names = [removable.named(x.says) or removable.key(x.says).removeprefix(removable.GIVEN) for x in told.all]
        names += [found[1] for x in told.all for of in (OF_PYTHON, OUT_OF) if (found := of.match(x.says))]
        fed = {x.name for x in self.program.inputs}
        own = {*self.program.params} if isinstance(self.program, Instance) else set[str]()
        own |= {x for x in names if smaller.default(known, x) not in (None, NO_DEFAULT)}
        listed = [x for x in names if x in own - fed]
        made = [*varied.told(self.program, known, listed, [x for x in names if x not in listed], bare=False)]
        if isinstance(self.program, Instance):
            made += varied.of_dtype(self.program) if any(removable.is_dtype(x.says) for x in told.all) else ()
            ends = [AT_ENDS[x.says] for x in told.all if x.says in AT_ENDS]
            ends += [y for x in told.all if x.says == OVERFLOW for y in (False, True)]
            made += varied.ranks(self.program) if any(OF_RANK.search(x.says) for x in told.all) else ()
            made += [y for x in listed for y in varied.past_ends(self.program, x)]
            asks = any(x.says == BESIDE_FIRST for x in told.all)
            made += varied.outputs(self.program, [x.program for x in labelled]) if asks else ()
            made += varied.inexact(self.program) if any(x.says == OVERFLOW for x in told.all) else ()
            for least in ends + [True for x in told.all if x.says.startswith(equal.ONLY_LEAST)][:1]:
                made += varied.at_end(self.program, least=least)
        return made

    def restated(self) -> Sequence[Program]:
        """Return the program with other inputs, and parameters that say how long an output of these is."""

        def shape(x: Program) -> tuple[int, ...] | None:
            return next((y.shape for y in self._returned(x) if isinstance(y, Tensor)), None)

        return [*varied.restated(self.program, shape)] if isinstance(self.program, Instance) else []

    def _lacking(self, failing: Sequence[Instance]) -> Iterator[Instance]:
        """Yield programs that fail without something that decided."""
        for x, says in itertools.product(failing, (*self.decided.parameters, *self.decided.besides)):
            held = dtypes.members(says)  # an integer of another dtype is one still
            for made in deciding.lacking(x, [says], self.defaults):
                if isinstance(made, Instance) and not held & {y.dtype for y in smaller.leaves(made)}:
                    self._lack[made.id] = x.id, says
                    yield made

    def apart(self, known: Sequence[Labelled]) -> list[Labelled]:
        """Return the labelled programs without those that fail of something else: as they do without what decides, while most
        others pass then; and without those that pass with their numbers alone: of others they are wrong in another respect.
        """
        wrong = set(map(_form, self.wrong))
        known = [x for x in known if x.fails or not wrong or _form(x.program) not in wrong]
        fails = {x.program.id: x.fails for x in known}
        asked = [(says, of, name) for name, (of, says) in self._lack.items() if name in fails and fails.get(of)]
        passed = Counter(says for says, _, name in asked if not fails[name])
        failed = Counter(says for says, _, name in asked if fails[name])
        others = {says for says in passed if passed[says] >= 2 * failed[says]}
        odd = {x for says, *both in asked if fails[both[1]] and says in others for x in both}
        names = set(filter(None, map(removable.named, others)))
        return [
            x
            for x in known
            if x.program.id in self.alike
            or not (x.program.id in odd or (names and x.fails and self._lacks(x.program, names)))
        ]

    def _lacks(self, program: Program, names: set[str]) -> bool:
        """Whether one of these parameters is not given, or has its default."""
        return not names <= {x.key for x in removable.conditions(program, self.defaults)}

    def excused(self, program: Program) -> bool:
        """Whether a program that passes may do so for another reason than what it lacks."""
        quiet = not self.loud and (_short(program, self.program) or self._short_output(program))
        return quiet or self.hides(program)

    def hides(self, program: Program) -> bool:
        """Whether a program passes whatever decides: nothing is computed, or the same without what decides."""
        return self._hides(program, parameters=True)


def _form(program: Program) -> tuple[str, str, tuple[tuple[str, bool, bool], ...]]:
    """Return what of a program is the same whatever its numbers and lengths are, but for no elements and no axes."""
    params = repr(sorted(program.params.items())) if isinstance(program, Instance) else ""
    return program.operator, params, tuple((x.dtype, x.shape == (), 0 in x.shape) for x in smaller.leaves(program))


def _emptied(program: Instance) -> Program | None:
    """Return a call of whose first tensor the first axis has length 0."""
    first = next(iter(smaller.leaves(program)), None)
    if first is None or not first.shape:
        return None
    return smaller.applied(smaller.at(0, lambda x: shaped(x, (0, *x.shape[1:]))), program)


def inexact_in_float32(numbers: peculiar.Array) -> peculiar.Array:
    """Return which integers are none of float32."""
    whole = numbers.dtype.kind in "iu"
    return inexact(numbers, "float32") if whole else np.zeros(numbers.shape, bool)


def renumbered(program: Program) -> Program:
    """Return a program with other numbers, each tensor with its own: equal ones may hide what is wrong, and rounding may make
    the right integers of it. Of integers those of the first tensor change, of both signs, if it has axes: others are often
    indices and sizes.
    """
    number, data = itertools.count(2), next(iter(smaller.leaves(program)), None)

    def change(leaf: Leaf) -> Leaf:
        if "float" in leaf.dtype:
            return simpler.counted(leaf, next(number))
        if leaf is not data or leaf.dtype not in dtypes.INTEGERS or leaf.dtype.endswith("int2") or leaf.shape == ():
            return leaf
        numbers = np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 5 + 2
        return simpler.numbered(numbers if leaf.dtype.startswith("u") else numbers * (-1) ** numbers, leaf.dtype)

    return smaller.mapped(program, change)


def _all_one(other: Program, program: Program) -> bool:
    """Whether all axes have length 1 of an input that has a longer one in a program."""
    pairs = [(x.shape, y.shape) for x, y in zip(smaller.leaves(other), smaller.leaves(program), strict=False)]
    return any(max(one, default=1) == 1 < max(two, default=1) for one, two in pairs)


def _short(other: Program, program: Program) -> bool:
    """Whether an axis has length 1 that is longer in a program, or there is no axis at all: most mistakes do not show there."""
    pairs = [(x.shape, y.shape) for x, y in zip(smaller.leaves(other), smaller.leaves(program), strict=False)]
    return any((two and not one) or any(x == 1 < y for x, y in zip(one, two, strict=False)) for one, two in pairs)
