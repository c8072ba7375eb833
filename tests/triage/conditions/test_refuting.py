"""What is told is put to the test by programs of which something wider or narrower says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import refuting
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.features import Feature
from opera.triage.shrink import smaller

F32 = np.float32


def call(inputs: dict[str, Any], **params: Any) -> Instance:
    held = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in inputs.items())
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": 22}})


def borne(program: Instance, fails: Callable[[Any], bool | None], told: Decided, known: Any, **more: Any) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) else None for x in programs]

    return borne_out(label, program, {"Any": known}, told, **more)


def shapes(program: Program) -> list[tuple[int, ...]]:
    return [x.shape for x in smaller.leaves(program)]


def test_more_than_one_element_is_rivalled_by_each_axis() -> None:
    """Scores of several classes fail, not each matrix of several elements: two samples of one class are asked about."""

    def shows(x: Instance) -> bool | None:
        labels, scores = shapes(x)
        return scores[-1] > 1 if len(scores) == 2 and labels == scores[:1] else None

    found = borne(call({"target": np.int64([0]), "output": np.ones((1, 2), F32)}), shows, Decided(), {})
    assert (found.circumstances, found.exact) == (("the last axis of output longer than 1",), True)


def test_programs_are_yielded_of_which_rivals_say_otherwise_and_none_twice() -> None:
    program = call({"x": np.ones((1, 2), F32)})
    several = Feature("several", lambda x: math.prod(shapes(x)[0]) > 1)
    last = Feature("last", lambda x: shapes(x)[0][-1:] > (1,))
    asked: set[str] = set()
    made = list(refuting.programs([several], [[last]], refuting.varied([program], {}), asked))
    assert 0 < len(made) <= 2 * refuting.TRIALS
    assert all(several.holds(x) is not last.holds(x) for x in made) and asked == {x.id for x in made}
    more = [x.id for x in refuting.programs([several], [[last]], refuting.varied([program], {}), {*asked})]
    assert not asked & {*more}
    assert list(refuting.programs([several], [], refuting.varied([program], {}), set())) == []


def test_a_rival_is_what_leaves_a_thing_out_or_puts_another_in_its_place() -> None:
    one, two, three = (Feature(str(n), lambda x, n=n: len(shapes(x)[0]) >= n) for n in (1, 2, 3))  # type: ignore[misc]
    flat = call({"x": np.ones(2, F32)})
    assert [[x.says for x in of] for of in refuting.rivals([two], [one, two, three], [flat])] == [["3"]]
    assert [[x.says for x in of] for of in refuting.rivals([two], [one, three], [])] == [[], ["1"], ["3"]]
