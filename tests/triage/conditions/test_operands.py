"""Of which operand it is told that it is empty, of a dtype, or holds a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import operands
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import smaller

F16, F32 = np.float16, np.float32


def call(**arrays: Any) -> Instance:
    given = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in arrays.items())
    return Instance("onnx", "Any", {}, given, ("y",), {"opset": {"": 22}})


def told(program: Instance, fails: Callable[[Program], bool | None], says: str) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) for x in programs]

    return borne_out(label, program, {"Any": {}}, Decided((), (says,)), loud=True)


def dtype(program: Program, name: str) -> str:
    return getattr(tensor(program, name), "dtype", "")


def is_empty(program: Program, name: str) -> bool:
    return 0 in getattr(tensor(program, name), "shape", ())


def is_negative(program: Program, name: str) -> bool:
    held = tensor(program, name)
    return isinstance(held, Tensor) and bool((np.asarray(held.numbers()) < 0).any())


@pytest.mark.parametrize(
    ("program", "fails", "says", "words"),
    [
        (
            call(indices=F16([[1, 2]]), values=F16([3, 4])),
            lambda x: dtype(x, "indices").startswith("float16"),
            "float16 inputs",
            "float16 indices",
        ),
        (
            call(indices=F16([[1, 2]]), values=F16([3, 4])),
            lambda x: dtype(x, "values").startswith("float16"),
            "float16 inputs",
            "float16 values",
        ),
        (
            call(a=F16([[1, 2]]), b=F16([[3, 4]])),  # other pairs are no programs
            lambda x: None if dtype(x, "a") != dtype(x, "b") else dtype(x, "a") == "float16",
            "float16 inputs",
            "",
        ),
        (call(x=F16([[1, 2]])), lambda x: dtype(x, "x") == "float16", "float16 inputs", ""),
        (
            call(input=F32([1, 2]), condition=np.zeros(0, bool)),
            lambda x: is_empty(x, "condition"),
            "an empty input",
            "an empty condition",
        ),
        (
            call(data=F32([[-1, -2]]), value=F32([[-3]])),
            lambda x: is_negative(x, "value"),
            "a negative number in an input",
            "a negative number in value",
        ),
    ],
)
def test_the_operand_is_named_that_all_failing_programs_have_it_of(
    program: Instance, fails: Callable[[Program], bool | None], says: str, words: str
) -> None:
    assert dict(told(program, fails, says).named).get(says, "") == words


def test_a_number_is_told_of_an_operand_that_may_state_sizes_too() -> None:
    """TFLite divides by no 0 of whole numbers, which one list of them might be sizes."""
    zero = Feature("0 in an input", lambda _: True)
    program, other = (call(x1=F32(x), x2=np.int64(y)) for x, y in (([1, 2], [0]), ([0], [3])))
    narrow = operands.named(zero, program, [])
    assert (narrow.words, narrow.holds(program), narrow.holds(other)) == ("0 in x2", True, False)


def test_a_list_of_sizes_is_named_where_it_alone_is_empty() -> None:
    """Expand of no axes by a shape of no numbers, on OpenVINO."""
    empty = Feature("an empty input", lambda _: True)
    none, one = (call(input=F32(1), shape=np.int64(x)) for x in ([], [2]))
    named = operands.named(empty, none, [none])
    assert (named.words, named.holds(none), named.holds(one)) == ("an empty shape", True, False)


def rank(program: Program, name: str) -> int:
    return len(getattr(tensor(program, name), "shape", ()))


@pytest.mark.parametrize(
    ("names", "words"),
    [(["index"], "a 0-d index"), (["index", "src"], "0-d index and src"), (["x", "index", "src"], "")],
)
def test_a_rank_is_told_of_the_operands_that_have_it(names: list[str], words: str) -> None:
    """`scatter_reduce` stops at a 0-d `index`, whatever the rank of its input is."""
    program = call(x=F32(1.5), index=np.int64(0), src=F32(2.5))

    def fails(x: Program) -> bool:
        return all(rank(x, name) == 0 for name in names)

    found = told(program, fails, "a 0-d input")
    assert dict(found.named).get("a 0-d input", "") == words and found.exact


def test_several_operands_have_a_rank_or_a_dtype_together_but_are_not_all_known_to_be_empty() -> None:
    program = call(a=F32([[1]]), b=F32([[1]]), c=F32([1]))
    narrow = operands.named(Feature("an input of rank 2", lambda _: True), program, [])
    assert narrow.words == "a and b of rank 2" and narrow.holds(program)
    empty = call(a=np.zeros(0, F32), b=np.zeros(0, F32), c=F32([1]))
    assert operands.named(Feature("an empty input", lambda _: True), empty, []).words == ""


def test_what_passes_with_another_operand_so_speaks_against_nothing() -> None:
    """`Compress` of an empty `input` is right; readers who are told of "an empty input" would say that it is none."""
    program = call(input=F32([1, 2]), condition=np.zeros(0, bool))
    other = call(input=np.zeros(0, F32), condition=np.array([True]))
    wide = Feature("an empty input", lambda x: any(0 in leaf.shape for leaf in smaller.leaves(x)))
    narrow = operands.named(wide, program, [])
    assert (narrow.words, narrow.holds(program)) == ("an empty condition", True)
    assert wide.holds(other) and not narrow.holds(other)


def test_each_operand_alone_is_given_another_dtype() -> None:
    program = call(a=F16([[1, 2]]), b=F16([[3, 4]]), axes=np.int64([0]))
    made = list(operands.apart([Feature("float16 inputs", lambda _: True)], program))
    pairs = {(dtype(x, "a"), dtype(x, "b")) for x in made}
    assert pairs == {("float32", "float16"), ("int64", "float16"), ("float16", "float32"), ("float16", "int64")}
    assert list(operands.apart([Feature("float16 inputs", lambda _: True)], call(a=F16([1]), b=F32([1])))) == []
