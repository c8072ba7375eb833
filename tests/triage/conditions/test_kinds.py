"""What inputs are: truth values among dtypes, Python's numbers that promote, and fractions that do not show."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from bearing import F32, borne, listed

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Named, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.triage.conditions import circumstances, dtypes
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.dtypes import PROMOTED
from opera.triage.conditions.kinds import features
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.removable import SEVERAL
from opera.triage.shrink import simpler, smaller


def kinds(program: Instance) -> list[str]:
    return [x.dtype for x in smaller.leaves(program)]


def test_that_no_input_is_of_bool_is_told_where_one_of_two_dtypes_may_be() -> None:
    """TVM's clamp of two dtypes, which takes truth values."""
    program = listed(F32([1, 2]), np.float64([1, 3]))
    found = borne(
        program, lambda x: len(set(kinds(x))) == 2 and "bool" not in kinds(x), Decided((), (SEVERAL,)), loud=True
    )
    assert (*found.decided.besides, *found.circumstances) == (SEVERAL,) and found.exact
    assert dict(found.named) == {SEVERAL: f"{SEVERAL}, none of them bool"}


def test_a_float_of_pythons_promotes_integers() -> None:
    """`keras.ops.power` of integers on TVM, where an exponent of 2.0 makes floats of them."""

    program = listed(np.int32([0, 1]), np.int32([2, 3]))
    mixed = listed(np.int32([0, 1]), F32([2, 3]))
    number = msgspec.structs.replace(program, inputs=program.inputs[:1], params={"x1": 2.0})
    whole = msgspec.structs.replace(number, params={"x1": 2})
    found = features(program, [program], [mixed, number])
    [promoted] = [x for x in found if x.says == f"{PROMOTED}int32"]
    assert [promoted.holds(x) for x in (program, whole, mixed, number)] == [True, True, False, False]


def test_a_fraction_that_is_cut_is_told_so_and_what_it_does_not_show_in_speaks_not_against_it() -> None:
    """TVM's `int < 1.5`, which becomes `int < 1`."""

    def compared(x: Program, other: float) -> list[Value]:
        [leaf] = smaller.leaves(x)
        return [Tensor.of(simpler.numbers(leaf) < other)] if isinstance(leaf, Tensor) else []

    def outputs(x: Program) -> list[Value] | None:
        other = x.params.get("other") if isinstance(x, Instance) else None
        return compared(x, other) if isinstance(other, int | float) else None

    def fails(x: Any) -> bool | None:
        other = x.params.get("other")
        if len(x.inputs) != 1 or not isinstance(other, int | float) or not math.isfinite(other):
            return None
        return kinds(x)[0] in dtypes.INTEGERS and compared(x, other) != compared(x, int(other))

    program = listed(np.int64([1, 2]))
    program = Instance("torch", "Any", {"other": 1.5}, program.inputs, ("y",), program.context)
    found = borne(program, fails, Decided((), ("integer inputs",)), {"other": NO_DEFAULT}, outputs=outputs)
    assert (*found.decided.besides, *found.circumstances) == ("integer inputs", "other that is no whole number")
    assert found.exact


def test_that_an_operand_is_of_another_dtype_is_told_whichever_it_is() -> None:
    """OpenVINO's instance_norm, whose statistics must have the dtype of the input."""
    program = listed(np.float64([[1, 2]]), F32([1]))
    found = borne(program, lambda x: len(set(kinds(x))) == 2 if len(x.inputs) == 2 else None, loud=True)
    assert found.circumstances == ("x1 of another dtype than x0",) and found.exact


def test_of_which_dtype_a_result_is_said_to_be_is_told_where_a_parameter_may_name_another() -> None:
    """TVM's full_like, which has no negative number of an unsigned dtype: the result's, not the input's."""
    program = msgspec.structs.replace(listed(np.uint8([1, 2])), library="torch")

    def fails(x: Instance) -> bool | None:
        named = x.params.get("dtype")
        own = named.name if isinstance(named, Named) else kinds(x)[0]
        return own.startswith("uint") if len(x.inputs) == 1 else None

    found = borne(program, fails, Decided((), ("uint8 inputs",)), {"dtype": None}, loud=True)
    assert (*found.decided.besides, *found.circumstances) == ("unsigned dtype (stated, or the input's)",)
    assert found.exact


def test_that_several_axes_are_listed_is_told_where_one_passes() -> None:
    """OpenVINO's `any`, which reduces the first of the axes that it is given, and no other."""
    program = msgspec.structs.replace(listed(F32([[1, 2], [3, 4]])), params={"dim": [0, -1]})

    def fails(x: Instance) -> bool | None:
        dim = x.params.get("dim", [])
        rank = len(smaller.leaves(x)[0].shape)
        if len(x.inputs) != 1 or not isinstance(dim, list | tuple) or any(not -rank <= y < rank for y in dim):
            return None
        return len(dim) > 1 if len({y % rank for y in dim}) == len(dim) else None

    found = borne(program, fails, Decided(("dim=[0, -1]",)), {"dim": None})
    assert (*found.decided.parameters, *found.circumstances) == ("several axes in dim",) and found.exact


def test_what_runs_though_wrongly_does_not_crash() -> None:
    """OpenVINO's instance_norm of float64 takes the wrong statistics: it loads, where those of float32 beside it do not."""
    program = listed(np.float64([[1, 2]]), F32([1]))

    def shown(x: Program) -> Outcome:
        found = kinds(x)
        equal = Outcome(PASS) if found[:1] == ["float32"] else Outcome(INCONSISTENT, "infer", "value")
        return Outcome(CRASH, "load") if len(set(found)) == 2 else equal

    def wrongly(x: Program) -> bool:
        return shown(x).verdict == INCONSISTENT

    ask: Any = SimpleNamespace(
        look=lambda programs: [*map(shown, programs)], gets_further=wrongly, otherwise=lambda _: False,
        label=lambda programs: [None if wrongly(x) else shown(x).verdict == CRASH for x in programs],
        seen=lambda: [], reference=lambda _: None, go_on=lambda: None, corpus=(), bounds={}, apart=lambda *_: False,
    )  # fmt: skip
    told = Decided((), ("floating-point inputs other than float32",))
    found = circumstances.of(ask, program, {"Any": {}}, told)
    assert (*found.decided.besides, *found.circumstances) == ("x1 of another dtype than x0",) and found.exact
    assert found.passing_one is not None and not wrongly(found.passing_one)


def test_an_input_that_an_empty_name_leaves_out_is_told_where_it_passes_without() -> None:
    """OpenVINO makes a node of the zero point of ConvInteger that is not given."""
    without = listed(F32([1]), F32([2]))
    program = msgspec.structs.replace(without, inputs=(*without.inputs, Operand("zero", None)))
    known = [Labelled(without, fails=False)]
    found = borne(program, lambda x: any(y.name == "zero" and y.value is None for y in x.inputs), loud=True, seen=known)
    assert found.circumstances == ("zero left out by an empty name",) and found.exact


def test_of_two_tensors_of_one_dtype_it_is_told_of_both_where_one_of_another_kind_passes() -> None:
    """TVM's true division of integers, which returns integers: of a float by an integer, and of an integer by a float, it is
    right; `x / 2.0` is wrong, too."""
    program = listed(np.int64([1, 2]), np.int64([2, 3]))
    found = borne(program, lambda x: all("int" in y for y in kinds(x)), Decided((), ("int64 inputs",)))
    assert (*found.decided.besides, *found.circumstances) == ("tensors promoted to integer",) and found.exact
    assert dict(found.named) == {"tensors promoted to integer": "tensors promoted to integers"}


def test_one_of_two_tensors_of_one_dtype_is_given_another_kind() -> None:
    program = listed(np.int64([1, 2]), np.int64([2, 3]))
    assert [kinds(x) for x in dtypes.unlike(program)] == [["float32", "int64"], ["int64", "float32"]]
    truths = listed(np.array([True]), np.array([False]))
    assert [kinds(x) for x in dtypes.unlike(truths)] == [["float32", "bool"], ["bool", "float32"]]
    mixed = dtypes.unlike(listed(F32([1]), np.int64([2])))
    assert [kinds(x) for x in mixed] == [["float32", "float32"], ["int64", "int64"]]
    assert dtypes.unlike(listed(np.int64([1, 2]))) == []


@pytest.mark.parametrize(("library", "wanted"), [("torch", "int64"), ("keras", "int32")])
def test_an_integer_of_pythons_promotes_truth_values(library: str, wanted: str) -> None:
    program = msgspec.structs.replace(listed(np.array([True]), np.array([False])), library=library)
    number = msgspec.structs.replace(program, inputs=program.inputs[:1], params={"x1": 2})
    mixed = listed(np.array([True]), np.int64([2]))
    says = [x.says for x in features(number, [number], [mixed, program]) if x.says.startswith(PROMOTED)]
    assert says == [f"{PROMOTED}{wanted}"]
