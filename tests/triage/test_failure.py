"""A smaller program fails as the first one does, or it is none of its reductions."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, UNSTABLE, Outcome
from opera.triage.failure import alike, as_wrong, cancelled, moved, says_the_same, slight

WRONG, RIGHT = ["wrong", "some", "finite>finite"], ["right"]


def wrong(verdict: str = INCONSISTENT, **manner: list[str]) -> Outcome:
    differing = {name: "value" for name, words in manner.items() if "wrong" in words}
    details = {"output": next(iter(differing)), "wrong": differing, "manner": manner, "max_rel": 1.0}
    return Outcome(verdict, "infer", "value", details=details)


def test_another_output_that_is_wrong_is_another_failure() -> None:
    one = wrong(Y=RIGHT, mask=WRONG)
    assert alike("f", one, one) and not alike("f", one, wrong(mask=WRONG, Y=WRONG))
    assert alike("f", wrong(UNSTABLE, Y=RIGHT, mask=WRONG), wrong(UNSTABLE, mask=WRONG, Y=WRONG)), "it varies"


def test_outputs_may_be_left_out_but_the_one_that_the_failure_is_named_for() -> None:
    one = wrong(Y=WRONG, Z=WRONG)
    assert alike("f", one, wrong(Y=WRONG)) and not alike("f", one, wrong(Z=WRONG))
    assert not alike("f", one, wrong(Y=WRONG, Z=RIGHT)), "it is there, and right"


def test_other_kinds_of_wrong_numbers_are_another_failure() -> None:
    one = wrong(Y=["wrong", "some", "-inf>largest", "finite>finite"])
    assert alike("f", one, wrong(Y=["wrong", "all", "-inf>largest"]))
    assert not alike("f", one, wrong(Y=["wrong", "all", "-inf>finite"]))


@pytest.mark.parametrize(
    ("nodes", "expects", "same"), [(("Add",), False, True), (("Add", "Mul"), False, False), (("Add",), True, False)]
)
def test_the_same_words_of_another_node_are_another_crash(nodes: tuple[str, ...], expects: bool, same: bool) -> None:
    def crash(*names: str, expects: bool = False) -> Outcome:
        text = " ".join(f"While validating node 'opset1::{x} {x}_1' with friendly_name 'y':" for x in names)
        return Outcome(
            CRASH, "load", "RuntimeError", f"{text} dimensions are not the same", details={"not_finite": expects}
        )

    assert alike("f", crash("Add"), crash(*nodes, expects=expects)) is same


def test_a_dtype_that_pytorch_prints_only_of_unusual_tensors_is_no_other_message() -> None:
    def crash(tensor: str) -> Outcome:
        return Outcome(
            CRASH, "load", "RuntimeError", f"Pending unbacked symbols not in FakeTensor({tensor}) of outputs"
        )

    assert alike("f", crash("..., size=(u0, 2), dtype=torch.complex64"), crash("..., size=(u0, 2)"))


@pytest.mark.parametrize(
    ("place", "then", "operator", "other"),
    [
        ("base:Importer._norm", "base:Importer._sum", "torch.linalg.vector_norm", True),
        ("aten::any@shape_util.cpp:66", "aten::sum@shape_util.cpp:66", "torch.any", True),
        ("base:Importer._binary_op[mm.default]", "base:Importer._binary_op[mul.Tensor]", "torch.addmm", False),
        ("expanded Attention", "MatMul", "Attention", False),  # nobody knows which of several it was
        (
            "LinearAttention@reference.cpp:36",
            "Scan@reference.cpp:36",
            "LinearAttention",
            False,
        ),  # so called for want of more
        ("torch.amin", "torch.min", "torch.amin", False),  # what was called, not what converts it
        ("base:Importer._norm", "torch.sum", "torch.norm", False),
    ],
)
def test_a_call_inside_another_fails_where_that_does_if_that_is_told(
    place: str, then: str, operator: str, other: bool
) -> None:
    one, inside = (Outcome(CRASH, "load", "ValueError", "no", conversion_function=x) for x in (place, then))
    assert moved(one, inside, {operator}) is other
    assert not moved(one, one, {operator})


def test_a_dtype_is_wrong_whether_or_not_numbers_were_drawn_besides() -> None:
    def shown(how: str, **manner: list[str]) -> Outcome:
        told: dict[str, object] = {"manner": manner} if manner else {}
        details = {"output": "mask", "wrong": {"mask": how}, "expected": "bool", "actual": "float32", **told}
        return Outcome(INCONSISTENT, "infer", "dtype", details=details)

    drawn, plain = shown("dtype and values"), shown("dtype", mask=["form"])
    assert alike("f", drawn, plain), "drawn numbers differ always"
    assert not alike("f", shown("dtype and values", mask=["form", "wrong"]), plain), "these were wrong, too"


@pytest.mark.parametrize(
    ("symptom", "text", "location", "same"),
    [
        ("RuntimeError", "Reshape error: 2 -> 1\nCompute Shape Error for {}\ncode=3 in onForward, 666", "", True),
        ("RuntimeError", "Cannot find {} among outputs", "", True),
        ("KeyError", "'{}'", "frontend:get_expr", True),
        ("KeyError", "'{}'", "frontend:convert", False),
    ],
)
def test_a_tensor_has_another_name_in_a_smaller_program(symptom: str, text: str, location: str, same: bool) -> None:
    one, other = (
        Outcome(CRASH, "infer", symptom, text.format(x), location=location)
        for x in ("StatefulPartitionedCall_1:0", "PartitionedCall")
    )
    assert alike("f", one, other) or not same
    plain = (msgspec.structs.replace(one, message=text.format(x)) for x in ("Identity", "arith.constant"))
    assert alike("f", *plain) is (same and "among" not in text)


@given(st.integers(0, 2**47), st.integers(0, 2**47))
def test_an_address_makes_no_other_failure(one, other):
    """Its letters were taken for words: of one address in forty a short message was another one."""
    said = [
        Outcome("crash", "infer", "RuntimeError", f"shape 1 of node_1 at {x:#x} is not understood")
        for x in (one, other)
    ]
    assert alike("x-onnx", *said)


@pytest.mark.parametrize(
    ("symptoms", "finite", "off", "same"),
    [
        (("nan-mask", "value"), True, 1.0, True),
        (("nan-mask", "nan-mask"), True, 1.0, True),
        (("value", "nan-mask"), True, 1.0, True),
        (("nan-mask", "value"), True, 1e-3, False),  # it may be rounding
        (("nan-mask", "nan-mask"), False, 1.0, False),
        (("nan-mask", "shape"), True, 1.0, False),
    ],
)
def test_what_is_no_number_is_as_wrong_as_what_is_far_off_where_numbers_are_expected(symptoms, finite, off, same):
    """`erfcx` is 0 from about 4 on, and NaN from about 9.5 on."""
    one, other = (
        Outcome(INCONSISTENT, "infer", x, details={"not_finite": not finite, "max_rel": off if x == "value" else None})
        for x in symptoms
    )
    assert as_wrong(one, other) is same


@pytest.mark.parametrize(
    ("relative", "tolerated", "numbers", "little"),
    [
        (0.0266, 5e-3, (-0.05621337890625, -0.054718017578125), True),  # Mish of float16
        (1.6e-7, 1e-7, (-0.1996767165036496, -0.19967674818780276), True),
        (0.029, 1e-4, (-0.0155242, -0.0150843), False),  # gelu by another formula
        (6e-8, 1e-8, (0.1, 0.10000000149011612), False),  # a number of float32
        (2.0, 5e-3, (3.0, -3.0), False),
        (None, None, (3, -3), False),
    ],
)
def test_little_more_than_is_tolerated_may_be_rounding(relative, tolerated, numbers, little) -> None:
    told = dict(zip(("expected", "actual"), numbers, strict=True))
    found = Outcome(INCONSISTENT, "infer", "value", details={**told, "max_rel": relative, "rtol": tolerated})
    assert slight(found) is little
    assert not slight(msgspec.structs.replace(found, symptom="shape"))


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("1 tensor [ linspace/ExpandDims ] is input but not found", True),
        ("tensor 1 is input but not found [ linspace/ExpandDims ]", True),
        ("1 tensor [ linspace/Mul ] is input but not found", False),
        ("no tensor", False),
    ],
)
def test_a_crash_that_says_the_same_of_another_place_is_read_as_the_same(said: str, same: bool) -> None:
    """By its place `logspace` failed otherwise with num=50: what read as its condition, num < 50, decided nothing."""
    one = Outcome(CRASH, "load", "RuntimeError", "1 tensor [ linspace/ExpandDims ] is input but not found")
    other = msgspec.structs.replace(one, message=said, conversion_function="MUL")
    assert says_the_same(one, other) is same
    assert not says_the_same(one, msgspec.structs.replace(other, stage="infer"))
    short = msgspec.structs.replace(one, message="KeyError 'x'")
    assert not says_the_same(short, short), "it tells nothing"


@pytest.mark.parametrize(("location", "same"), [("ort.py:invoke", True), ("ort.py:run", True), ("other.py:run", False)])
def test_another_function_of_a_file_that_hands_the_same_words_on_is_no_other_failure(location: str, same: bool) -> None:
    """ONNX Runtime is handed bfloat16 by another function than float32: a script was of the one where the other fails so."""
    said = Outcome(
        CRASH, "infer", "Fail", "axis 0 is not in the valid range of this tensor", "ort.py:run", "torch.scatter"
    )
    assert alike("onnxexport-torch", said, msgspec.structs.replace(said, location=location)) is same


HEAP = "malloc(): unaligned fastbin chunk detected\nFatal Python error: Aborted"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("SIGSEGV", ""), ("SIGABRT", HEAP), True),
        (("SIGABRT", "double free or corruption (out)"), ("SIGSEGV", ""), True),
        (("SIGSEGV", ""), ("SIGBUS", ""), True),
        (("SIGSEGV", ""), ("SIGABRT", "malloc_consolidate(): invalid chunk size"), True),
        (("SIGSEGV", ""), ("SIGABRT", "terminate called after throwing an instance of 'std::length_error'"), False),
        (("SIGSEGV", ""), ("SIGFPE", ""), False),
        (("SIGABRT", ""), ("SIGABRT", ""), True),
    ],
)
def test_of_overwritten_memory_a_process_dies_in_several_ways(one, other, same) -> None:
    """OpenVINO loading a MelSpectrogram dies of a segmentation fault, or glibc says that its heap is corrupted."""
    [before, now] = (Outcome(ABORT, "load", how, said) for how, said in (one, other))
    assert alike("openvino-keras", before, now) is same
    assert not alike("openvino-keras", before, msgspec.structs.replace(now, stage="infer"))


@pytest.mark.parametrize(
    ("dtype", "off", "given", "told"),
    [
        ("float16", 0.002, 1.7, "0.002, where 1.7 is given"),
        ("float16", 0.02, 1.7, ""),
        ("float32", 0.002, 1e5, ""),  # its tolerance grants hundreds of roundings
        ("float16", 0.002, np.inf, "0.002, where 1 is given"),
        ("float16", 4.0, -65504.0, ""),  # a mask
        ("int32", 0.002, 7, ""),
    ],
)
def test_what_is_left_of_a_difference_keeps_the_errors_of_its_terms(
    dtype: str, off: float, given: float, told: str
) -> None:
    """An AffineGrid of float16 adds 0.85 to -0.85: what is left is off by what that rounds."""
    wrong = Outcome(INCONSISTENT, "infer", "value", details={"max_abs": off, "expected": 0.005, "actual": 0.004})
    assert cancelled(wrong, [Tensor.of(np.array([given, 1, 0], dtype))]) == told
    assert cancelled(msgspec.structs.replace(wrong, symptom="shape"), [Tensor.of(np.array([given], dtype))]) == ""
    whole = msgspec.structs.replace(wrong, details={**wrong.details, "expected": 1})
    assert cancelled(whole, [Tensor.of(np.array([given], dtype))]) == ""
    drawn = msgspec.structs.replace(wrong, details={**wrong.details, "drawn": "constant"})
    assert cancelled(drawn, [Tensor.of(np.array([given], dtype))]) == ""
