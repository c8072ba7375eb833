"""What is wrong of the outputs of a model alone is told so: another call takes the result, and all is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from opera import libraries
from opera.programs import migrated
from opera.programs.program import Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import CONTAINERS, Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, INVALID, PASS, Outcome
from opera.triage.conditions import around, deciding, wider
from opera.triage.sentence import RETURNED, sentence

CONTEXT: dict[str, Any] = {"kind": "function", "call": {"args": ["input"], "kwargs": ["dim"]}}


def amin(dtype: str = "float16") -> Instance:
    data = Operand("input", Tensor.of(np.array([[1, 2], [4, 3]], dtype)))
    return Instance("torch", "torch.amin", {"dim": 1}, (data,), (), CONTEXT)


class Exporter:
    """Drops what stands behind a call of half numbers, where nothing but the model takes it."""

    def __init__(
        self,
        fails: Callable[[Program], bool],
        output: str = "output_0",
        verdict: str = INCONSISTENT,
        stage: str = "infer",
    ) -> None:
        self.does, self.asked = fails, list[Program]()
        self.wrong = Outcome(verdict, stage, "dtype", "wrong", details={"output": output})

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        self.asked += programs
        rejected = [not x.inputs or "bitwise" in x.operator or "ravel" in x.operator for x in programs]
        failed = [self.wrong if self.does(x) else Outcome(PASS) for x in programs]
        return [Outcome(INVALID) if no else shown for no, shown in zip(rejected, failed, strict=True)]

    def fails(self, outcome: Outcome) -> bool:
        return outcome == self.wrong

    def reference(self, program: Program) -> list[Any]:
        return [x.value for x in program.inputs]

    def told(self, program: Program) -> tuple[str, ...]:
        return deciding.decided(self, program, {}).besides  # type: ignore[arg-type]


def half(program: Program) -> bool:
    return any(getattr(x.value, "dtype", "") == "float16" for x in program.inputs)


def test_it_is_told_that_a_result_is_an_output_where_it_is_right_inside() -> None:
    assert Exporter(lambda x: x.operators[-1] == "torch.amin" and half(x)).told(amin()) == (RETURNED, "float16 inputs")
    assert Exporter(half).told(amin()) == ("float16 inputs",)


def test_of_what_ends_once_it_is_loaded_it_is_asked_too() -> None:
    """OpenVINO dies of `expand([])` between an input and an output of the model, and nowhere else."""
    ends = Exporter(lambda x: isinstance(x, Instance) and half(x), verdict=ABORT, stage="compile")
    assert ends.told(amin())[:2] == ("input is a graph input", RETURNED)
    assert Exporter(half, verdict=ABORT, stage="compile").told(amin()) == ("float16 inputs",)
    early = Exporter(lambda x: x.operators[-1] == "torch.amin" and half(x), verdict=CRASH, stage="load")
    assert early.told(amin())[0] == RETURNED


def test_it_is_told_that_an_input_is_one_of_the_model_where_it_is_right_of_what_another_call_makes() -> None:
    fed = Exporter(lambda x: x.operators[0] == "torch.amin" and half(x))
    assert fed.told(amin()) == ("input is a graph input", "float16 inputs")
    assert "torch.amin where input is a graph input:" in sentence("X", "torch.amin", fed.wrong, fed.told(amin())[:1])


def test_where_less_is_returned_it_is_not_told_that_an_output_is_one_of_the_model() -> None:
    """TVM makes no `Unique` of several outputs; what another call takes is one."""
    several = msgspec.structs.replace(amin(), outputs=("a", "b"))
    told = Exporter(lambda x: len(x.outputs) > 1, verdict=CRASH, stage="load").told(several)
    assert told and not set(told) & {RETURNED, "input is a graph input"}


def test_what_fails_in_another_way_once_another_call_takes_it_is_none_of_outputs_alone() -> None:
    """A vector made of it runs, and a negation is refused in other words: where it stands decides but how it shows."""

    class Otherwise(Exporter):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            found = zip(programs, super().look(programs), strict=True)
            behind = (isinstance(x, Graph) and "torch.neg" in x.operators for x in programs)
            return [
                Outcome(CRASH, "compile", "E", "else") if no else now
                for no, (_, now) in zip(behind, found, strict=True)
            ]

    told = Otherwise(lambda x: isinstance(x, Instance) and half(x), verdict=CRASH, stage="load").told(amin())
    assert told == ("float16 inputs",)


def test_a_negation_that_fails_by_itself_tells_nothing_of_what_it_negates() -> None:
    """ONNX has no Neg of uint8: that `any` of it is right once it is reshaped is told all the same."""

    class NoNegation(Exporter):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            found = zip(programs, super().look(programs), strict=True)
            return [
                Outcome(CRASH, "compile", "E", "no kernel")
                if "torch.neg" in x.operators
                else Outcome(PASS)
                if "torch.ravel" in x.operators
                else now
                for x, now in found
            ]

    assert RETURNED in NoNegation(lambda x: isinstance(x, Instance) and half(x)).told(amin())


def test_nothing_is_asked_where_another_output_is_wrong() -> None:
    ask = Exporter(half, "output_1")
    ask.told(amin())
    assert not any(isinstance(x, Graph) for x in ask.asked)


def test_a_failing_call_has_it_and_a_program_of_several_calls_has_not() -> None:
    [made, *_] = wider.kept([RETURNED], amin(), {}, [amin("float32")], [])
    assert made.says == RETURNED and not made.holds(around.negated(amin())[0])


def test_what_calls_are_bound_to_their_names_stays_as_it_is() -> None:
    bound = Instance("onnx", "If", {}, amin().inputs, ("y",), {"captured": ["z"]})
    assert around.negated(bound) == [] == around.computed(bound, "input")


@pytest.mark.parametrize("dtype", ["float16", "int32", "bool"])
def test_pytorch_runs_one_of_them(dtype: str) -> None:
    pytest.importorskip("torch")
    from opera.errors import InvalidTest
    from opera.libraries.torch import wrap

    found = []
    for x in around.negated(amin(dtype)):
        try:
            found += wrap.run(x).expected
        except InvalidTest:
            continue
    wanted = ~np.array([True, True]) if dtype == "bool" else -np.array([1, 3], dtype)
    assert any(isinstance(x, Tensor) and np.array_equal(x.numbers(), wanted) for x in found)


@pytest.mark.parametrize(
    ("dtype", "makes"), [("int8", True), ("complex64", True), ("int4", False), ("float8_e5m2", False)]
)
def test_narrow_numbers_are_made_by_no_other_call(dtype: str, makes: bool) -> None:
    held = Tensor.of(np.array([-8, 1]).astype(CONTAINERS[dtype]), dtype)
    call = Instance("onnx", "Identity", {}, (Operand("input", held),), ("output",), {"opset": {"": 21}})
    assert bool(around.computed(call, "input")) is makes


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("library", ["torch", "onnx", "keras"])
def test_what_another_call_makes_is_what_was_given(library: str, dtype: str, tmp_path: Path) -> None:
    held = Tensor.of(np.array([0, 1], dtype))
    kind: dict[str, Any] = {"kind": "function", "call": {"args": ["x"], "kwargs": []}}
    call = {
        "torch": Instance(
            "torch",
            "torch.ravel",
            {},
            (Operand("input", held),),
            (),
            {"kind": "function", "call": {"args": ["input"], "kwargs": []}},
        ),
        "onnx": Instance("onnx", "Identity", {}, (Operand("input", held),), ("output",), {"opset": {"": 16}}),
        "keras": Instance("keras", "keras.ops.ravel", {}, (Operand("x", held),), (), kind),
    }[library]
    [made] = around.computed(call, call.inputs[0].name)
    if dtype == "uint8" and library != "torch":
        pytest.skip("nobody else negates it")
    libraries.get(library).wrap(Captured(made, Provenance("suites", "t", "")), "made", tmp_path)
    assert migrated.read_values(tmp_path, "expected") == [held]


@pytest.mark.parametrize(("operator", "dtype"), [("Neg", "float32"), ("Not", "bool")])
def test_onnx_runs_one_of_them(operator: str, dtype: str) -> None:
    pytest.importorskip("onnx")
    from opera.libraries.onnx import library

    data = Operand("input", Tensor.of(np.array([1, 0], dtype)))
    call = Instance("onnx", "Identity", {}, (data,), ("output",), {"opset": {"": 16}})
    [made] = [x for x in around.negated(call) if operator in x.operators]
    assert isinstance(made, Graph)
    [_, (last, [value])] = library.steps(made)
    wanted = ~np.array([True, False]) if dtype == "bool" else -np.float32([1, 0])
    assert last.operator == operator and isinstance(value, Tensor) and np.array_equal(value.numbers(), wanted)


def test_the_sentence_says_where() -> None:
    seen = Outcome(INCONSISTENT, "infer", "dtype", "wrong", details={"output": "output_0", "expected": "float16"})
    said = sentence("The ONNX exporter", "torch.amin", seen, ("float16 inputs", RETURNED))
    assert "torch.amin with float16 inputs where its result is an output of the model" in said
