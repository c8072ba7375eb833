"""Dtypes are told together as widely as programs of them fail; all that the library admits are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bearing import borne
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Named, Tensor
from opera.triage.conditions import dtypes, removable
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled, _of_other_dtypes, labelled
from opera.triage.shrink import smaller

F32 = np.float32
FLOATS, INTS = {"float16", "float32", "float64", "bfloat16"}, {"int8", "int16", "int32", "int64"}
UNSIGNED = {"uint8", "uint16", "uint32", "uint64"}


def call(*arrays: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", {}, given, ("y",), {"opset": {"": 22}})


def dtype(program: Program, place: int = 0) -> str:
    return smaller.leaves(program)[place].dtype


@pytest.mark.parametrize(
    ("failing", "passing", "wanted"),
    [
        ({"uint16", "uint64"}, {"int8", "float32"}, "unsigned inputs"),
        ({"uint16", "uint64"}, {"uint8", "float32"}, "uint16 or uint64 inputs"),
        ({"int32", "int64", "uint32"}, FLOATS, "integer inputs"),
        ({"float16", "float64", "bfloat16"}, {"float32"}, "floating-point inputs other than float32"),
        ({"float16", "float64"}, {"float32", "bfloat16"}, "float16 or float64 inputs"),
        ({"float16", "float32"}, {"int32"}, "floating-point inputs"),
        ({"float64", "int32"}, {"float32"}, "non-float32 inputs"),
        ({"float32", "int32"}, {"int8"}, ""),
        ({"bfloat16"}, FLOATS, "bfloat16 inputs"),
        ({*dtypes.ASKED} - {"uint8"}, {"uint8"}, "numeric inputs other than uint8"),
        ({"float32", "int32", "int64"}, {"uint8"}, ""),
        ({*INTS, *UNSIGNED} - {"int64"}, {*FLOATS, "int64"}, "integer inputs other than int64"),
    ],
)
def test_dtypes_are_told_as_the_least_kind_of_which_none_passes(failing, passing, wanted):
    assert dtypes.told(failing, passing) == wanted


@given(st.frozensets(st.sampled_from(dtypes.ASKED), min_size=1), st.frozensets(st.sampled_from(dtypes.ASKED)))
def test_all_that_fail_are_told_and_none_that_passes(failing, passing):
    says = dtypes.told(failing, passing)
    assert not says or (failing <= dtypes.members(says) and not (passing - failing) & dtypes.members(says))
    assert not says or all(removable.is_of(f"{x} inputs", says) for x in failing)


@pytest.mark.parametrize(
    ("of", "fails", "wanted"),
    [
        ("string", lambda x: x == "string", "string inputs"),
        ("uint64", lambda x: "uint" in x, "unsigned inputs"),
        ("int64", lambda x: "int" in x, "integer inputs"),
        ("bfloat16", lambda x: "float" in x and x != "float32", "floating-point inputs other than float32"),
        ("float16", lambda x: x in ("float16", "bfloat16"), "bfloat16 or float16 inputs"),
    ],
)
def test_every_dtype_is_asked_about_with_all_inputs_that_share_it(of, fails, wanted):
    held = (
        Tensor.of(np.uint16([16256, 16384]), of)
        if of == "bfloat16"
        else Tensor.of(np.array([1, 2], of if of != "string" else None))
    )
    held = Tensor.of(np.array(["a", "b"])) if of == "string" else held
    program = Instance("onnx", "Any", {}, tuple(Operand(x, held) for x in "ab"), ("y",), {"opset": {"": 22}})

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(dtype(x)) if dtype(x) == dtype(x, 1) else None for x in programs]

    found = borne_out(label, program, {}, Decided((), (f"{of} inputs",) if of != "string" else ()))
    assert (found.decided.besides or found.circumstances, found.exact) == ((wanted,), True)


@pytest.mark.parametrize("matter", [False, True])
def test_large_numbers_do_not_keep_dtypes_from_being_asked_about(matter):
    """What fails with ordinary numbers, too, is asked in dtypes that do not hold its own."""
    program, asked = call(np.array([3, 2**40])), list[Program]()

    def label(programs: Sequence[Program]) -> list[bool | None]:
        asked.extend(programs)
        return [dtype(x) == "int64" and (not matter or x == program) for x in programs]

    labelled(label, program, {}, [])
    assert ("uint8" in map(dtype, asked)) is not matter


def test_the_first_tensor_alone_is_of_another_dtype_where_all_of_it_say_nothing():
    """Indices have the dtype of the data by chance."""
    program = call(np.int64([[1, 2]]), np.int64([0]))

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return ["int" in dtype(x) if dtype(x, 1) == "int64" else None for x in programs]

    found = borne_out(label, program, {}, Decided((), ("int64 inputs",)))
    assert found.decided.besides == ("integer inputs",)


def test_the_dtype_of_an_input_beside_the_first_is_told_where_data_of_any_fail():
    """Sizes of int32 are refused; data that the compiler has no kernel for says nothing with sizes of int64."""
    program = call(np.array(["a", "b"]), np.int32([1]))

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [dtype(x, 1) == "int32" or (None if dtype(x) == "string" else False) for x in programs]

    found = borne_out(label, program, {}, Decided())
    assert (found.circumstances, found.exact) == (("x1 of int32",), True)


@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (("float32", "float64"), "float64"),
        (("int64", "float16"), "float16"),
        (("float16", "bfloat16"), "float32"),
        (("bfloat16", "int32", "bool"), "bfloat16"),
        (("uint8", "int8"), "int16"),
        (("int64", "int64"), "int64"),
        (("complex64", "float32"), ""),
        ((), ""),
    ],
)
def test_dtypes_of_several_tensors_are_promoted_to_one(of, wanted):
    held = [Tensor.of(np.zeros(1, np.uint16 if x == "bfloat16" else x), *([x] if x == "bfloat16" else [])) for x in of]
    program = Instance("torch", "any", {}, tuple(Operand(f"x{n}", x) for n, x in enumerate(held)), (), {})
    assert dtypes.promoted(program) == wanted


@pytest.mark.parametrize(
    ("library", "of", "wanted"),
    [
        ("torch", (("bfloat16", (2,)), ("float32", ())), "bfloat16"),  # as torch.result_type has it
        ("torch", (("bfloat16", ()), ("float32", (2,))), "float32"),
        ("torch", (("int64", (2,)), ("bfloat16", ())), "bfloat16"),
        ("keras", (("bfloat16", (2,)), ("float32", ())), "float32"),
    ],
)
def test_a_tensor_without_axes_has_no_say_in_pytorch_beside_one_of_its_kind(library, of, wanted):
    held = [
        Tensor.of(np.zeros(shape, np.uint16 if x == "bfloat16" else x), *([x] if x == "bfloat16" else []))
        for x, shape in of
    ]
    program = Instance(library, "any", {}, tuple(Operand(f"x{n}", x) for n, x in enumerate(held)), (), {})
    assert dtypes.promoted(program) == wanted


def test_what_the_dtypes_of_two_inputs_are_promoted_to_is_told_where_neither_alone_decides():
    """A compiler makes a constant of float32, whatever the inputs are promoted to."""
    program = call(F32([1, 2]), np.float64([3, 4]))

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [dtypes.promoted(x) != "float32" for x in programs]

    found = borne_out(label, program, {}, Decided())
    assert (found.circumstances, found.exact) == (("inputs not promoted to float32",), True), "integers are asked, too"


def test_of_complex_numbers_those_of_another_width_are_asked_about():
    """PyTorch's exporter writes a wrong dtype of complex64 as it does of complex128."""
    program = call(np.complex64([1, 2]))
    [made] = list(dtypes.others(program))
    assert "complex128" in made and dtype(made["complex128"]) == "complex128"
    assert [x.name for x in dtypes.named(Named("torch.dtype", "complex64")) if x.name.startswith("complex")] == [
        "complex128"
    ]


def test_where_all_common_dtypes_fail_alike_no_others_are_asked_about():
    asked = list[Program]()

    def label(programs: Sequence[Program]) -> list[bool | None]:
        asked.extend(programs)
        return [True] * len(programs)

    program = call(F32([1, 2]))
    _of_other_dtypes(label, program, {program.id})
    assert [*map(dtype, asked)][-1] == "bool"  # which is no number
    assert {*map(dtype, asked)} == {"bool", *dtypes.ASKED[: dtypes.COMMON]} - {"float32"}


def test_one_integer_dtype_stands_for_no_others_that_fail_in_another_respect():
    """TVM's `any` of uint8 is a maximum, as PyTorch's is not; of other integers, and of floats, a wrong dtype shows first."""
    others = list[Program]()

    def fails(x: Instance) -> bool | None:
        others.extend([] if dtype(x) in ("uint8", "bool") else [x])
        return dtype(x) == "uint8" if dtype(x) in ("uint8", "bool") else None

    program = call(np.array([[5, 6]], "u1"))
    for otherwise, told in ((lambda x: x in others, "uint8 inputs"), (lambda _: False, "integer inputs")):
        for decided in (Decided(), Decided((), ("integer inputs",))):
            found = borne(program, fails, decided, otherwise=otherwise)
            assert (*found.decided.besides, *found.circumstances) == (told,)


def test_that_inputs_are_numbers_is_told_where_truth_values_pass():
    """TVM's `any` is a maximum: of truth values alone that is the same; of uint8 it has the dtype by chance, and is wrong."""
    program = call(np.int32([[1]]))
    wrong = list[Program]()

    def fails(x: Instance) -> bool | None:
        if dtype(x) != "uint8":
            return dtype(x) != "bool"
        if smaller.leaves(x)[0].array().max() <= 1:  # type: ignore[union-attr]
            return False
        wrong.append(x)
        return None

    for form, told in ((True, "numeric inputs"), (False, "numeric inputs other than uint8")):
        found = borne(program, fails, form=form, otherwise=lambda x: x in wrong)
        assert (found.decided.besides, found.circumstances) == ((), (told,))


def test_to_what_inputs_are_promoted_tells_their_dtypes_as_well():
    """Whatever fails as bool and nothing else is bool fails of what both are promoted to."""

    def label(programs):
        return [dtypes.promoted(x) == "bool" for x in programs]

    program = call(np.array([True, False]), np.array([True, True]))
    other = Labelled(call(np.array([True, False]), np.int64([1, 2])), False)
    told = Decided((), ("bool inputs",))
    found = borne_out(label, program, {"Any": {}}, told, [other])
    assert (found.decided.besides, found.circumstances) == ((), ("inputs promoted to bool",))
