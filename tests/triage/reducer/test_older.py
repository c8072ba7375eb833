"""A program is tried as of older versions of its operators, and it is told since which one it fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opsets import Opsets, f32, quantize, shown

from opera.programs.program import Instance, Operand, stated_version
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, NEWER, PASS, UNSTABLE, Outcome
from opera.run.probe import Probe, Question
from opera.triage.alike import same_values
from opera.triage.reducer import asking
from opera.triage.reducer.older import INTEGERS, as_of_older, oldest, other_integers, since
from opera.triage.shrink.minimise import Spent

pytest.importorskip("onnx")


def onnx(operator: str, inputs: dict[str, Tensor | None], **params: object) -> Instance:
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    return Instance("onnx", operator, dict(params), operands, ("y",), {"opset": {"": 22}})


@pytest.mark.parametrize(
    ("ask", "opset"),
    [
        (Opsets(10, range(10, 27)), [10]),
        (Opsets(13, range(10, 27)), [13]),  # before, other numbers are wrong
        (Opsets(7, range(21, 27)), [21]),  # before, nobody confirms what is expected
        (Opsets(7, range(7, 27), 19), [19]),  # before, something else is expected
        (Opsets(7, range(0)), []),
        (Opsets(7, range(7, 27), spent=True), []),
    ],
)
def test_a_newer_operator_is_tried_in_older_versions_that_another_implementation_confirms(
    ask: Any, opset: list[int]
) -> None:
    program, older = quantize(28), [(quantize(x).form(), False) for x in (25, 21, 19, 13, 10)]
    ask.outcomes[program.id] = shown(2.0, NEWER)
    assert [ask.version(x) for x in oldest(ask, program, older)] == opset
    ask.outcomes[program.id] = shown(2.0)
    assert oldest(ask, program, older) == [], "what the compiler knows stays: an older text may defend what is wrong"


@pytest.mark.parametrize(
    ("others", "opset"),
    [([range(7, 27)], [25]), ([range(7, 20)], [19]), ([range(7, 29)], []), ([range(0)], []), ([], [])],
)
def test_a_version_that_another_does_not_support_gives_way_to_the_newest_that_it_passes(
    others: list[range], opset: list[int]
) -> None:
    ask: Any = Opsets(10, range(0))
    ask.others = others
    program, older = quantize(28), [(quantize(x).form(), False) for x in (25, 21, 19, 13, 10)]
    ask.outcomes[program.id] = shown(2.0)
    assert [ask.version(x) for x in oldest(ask, program, older)] == opset


@pytest.mark.parametrize(
    ("right", "same", "found"),
    [
        (21, True, 21),  # a kernel of version 22, and of those after it, is missing
        (19, True, None),  # the version before fails as well: it is not since this one
        (21, False, None),  # an older text may mean something else
    ],
)
def test_that_it_fails_since_its_version_is_told_where_the_one_before_passes(
    right: int, same: bool, found: int | None
) -> None:
    forms = tuple((quantize(x).form(), same) for x in (21, 19))
    known = SimpleNamespace(known=lambda library, program: SimpleNamespace(older=forms))
    version = Opsets(0, range(0)).version
    ask: Any = asking.Asker(known, Question(frontend="onnxruntime-onnx"))  # type: ignore[arg-type]
    ask.label, ask.target = lambda programs: [version(x) > right for x in programs], Outcome(CRASH)
    made = since(ask, quantize(22))
    assert (made and (made.says, version(made.passing))) == (found and ("opset 22 or later", found))
    ask.label = lambda programs: [version(x) == 22 for x in programs]
    assert not found or since(ask, quantize(22)).says == "opset 22", "it is mended in those after it"  # type: ignore[union-attr]

    def hasty(programs: Any) -> list[bool]:
        if max(map(version, programs)) > 22:
            raise Spent
        return [version(x) > right for x in programs]

    ask.label = hasty
    assert not found or since(ask, quantize(22)).says == "opset 22", "there was no time left to ask"  # type: ignore[union-attr]


@pytest.mark.parametrize(("afresh", "told"), [(PASS, True), (UNSTABLE, False)])
def test_what_varies_passes_in_an_older_version_where_it_does_so_in_fresh_memory(afresh: str, told: bool) -> None:
    """TVM's ReduceSum along an axis of length 0 writes nothing, in opset 13 as in 28; memory of zeros is right by chance."""
    known = SimpleNamespace(known=lambda library, program: SimpleNamespace(older=((quantize(21).form(), True),)))
    version = Opsets(0, range(0)).version
    ask: Any = asking.Asker(known, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.label, ask.target = lambda programs: [version(x) > 21 for x in programs], Outcome(UNSTABLE)
    ask.afresh = lambda program: Outcome(afresh)
    assert (since(ask, quantize(22)) is not None) is told


def test_the_version_is_that_of_the_operators_own_domain() -> None:
    versions = {"": 22, "ai.onnx.ml": 3}
    context: dict[str, Any] = {"opset": versions}
    for operator, version in (("Gelu", 22), ("ai.onnx.ml::LinearRegressor", 3), ("other::Any", None)):
        assert stated_version(Instance("onnx", operator, {}, (), ("y",), context)) == version
    assert stated_version(Instance("torch", "torch.abs", {}, (), (), {})) is None


def test_the_oldest_version_that_says_the_same_needs_nobody_to_confirm_it() -> None:
    ask: Any = Opsets(7, range(0))
    program, older = quantize(28), [(quantize(x).form(), x > 20) for x in (25, 21, 19)]
    ask.outcomes[program.id] = shown(2.0)
    assert [ask.version(x) for x in oldest(ask, program, older)] == [21]


def test_a_crash_is_found_in_an_older_version_whichever_converter_raises_it() -> None:
    class Crashing(Opsets):
        def fails(self, outcome: Outcome, *, elsewhere: bool = False) -> bool:
            return elsewhere

    ask: Any = Crashing(7, range(7, 27))
    program = quantize(28)
    ask.outcomes[program.id] = Outcome(CRASH, "load", "ValueError", "no", details={"tags": (NEWER,)})
    older = [(quantize(x).form(), False) for x in (25, 21)]
    assert [ask.version(x) for x in oldest(ask, program, older)] == [21]
    ask.outcomes[program.id] = Outcome(CRASH, "load", "ValueError", "no")
    assert oldest(ask, program, older) == [], "a converter that the compiler has is another one's place"


def test_the_oldest_version_of_a_crash_computes_the_same_and_bounds_hold_in_it() -> None:
    pytest.importorskip("tvm")
    pytest.importorskip("onnxruntime")
    operands = {"indices": Tensor.of(np.int64([1])), "depth": Tensor.of(np.float32(3)), "values": f32(2)}
    program = msgspec.structs.replace(onnx("OneHot", operands), context={"opset": {"": 28}})
    with Probe(workers=1) as probe:
        beside = [Question(frontend="onnxruntime-onnx")]
        ask = asking.Asker(probe, Question(frontend="tvm-onnx", variant="constants"), None, beside)
        known = probe.known("onnx", program)
        [ask.target] = ask.look([program])
        assert ask.target.verdict == CRASH
        *_, found = oldest(ask, program, known.older)
        assert found.instances()[0].context["opset"] == {"": 11}, "before, its text is another, and TVM knows this one"
        assert ask.agreed(found) and ask.reference(found) == ask.reference(program)
        assert known.bounds["OneHot"]["values"].least == 2
        few = msgspec.structs.replace(program, inputs=(*program.inputs[:2], Operand("values", f32(1))))
        ask.begin(program, known, {})
        assert ask([few]) == [False] and few.id not in ask.outcomes, "what the documentation excludes is no program"


@given(st.integers(-128, 127), st.sampled_from(sorted(INTEGERS)))
def test_other_integers_of_as_many_bits_come_first_and_keep_the_bits(number: int, dtype: str) -> None:
    numbers = Tensor.of(np.array([number]).astype(dtype))
    made = [x.inputs[0].value for x in other_integers(onnx("Neg", {"X": numbers})) if isinstance(x, Instance)]
    assert len({x.dtype for x in made if isinstance(x, Tensor)} - {dtype}) == len(INTEGERS) - 1
    [first, second] = made[0], made[1]
    assert isinstance(first, Tensor) and first.data == numbers.data and same_values([first], [numbers])
    assert isinstance(second, Tensor) and second.dtype.removeprefix("u") != dtype.removeprefix("u")
    assert not same_values([numbers], [Tensor.of(numbers.array() + 1)]) and not same_values(None, None)


@pytest.mark.full
def test_a_newer_operator_is_tried_with_the_types_of_older_versions() -> None:
    """OpenVINO shifts by multiplying, which saturates, in whichever integers; BitShift-11 has unsigned ones alone."""
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    tried = {
        "LEFT": ([64, 1, -64], [1, 7, 1]),
        "RIGHT": ([-8, -1], [1, 1]),  # of unsigned ones something else is expected
        "BY THE WIDTH": ([4, 4], [8, 9]),  # no word on it in older versions
    }
    taken: dict[str, list[Any]] = {}
    with Probe(workers=1) as probe:
        for name, numbers in tried.items():
            tensors = {x: Tensor.of(np.int8(y)) for x, y in zip("XY", numbers, strict=True)}
            program = onnx("BitShift", tensors, direction="RIGHT" if name == "RIGHT" else "LEFT")
            program = msgspec.structs.replace(program, context={"opset": {"": 28}})
            question = Question(frontend="openvino-onnx", screened=True)
            ask = asking.Asker(probe, question, None, [Question(frontend="onnxruntime-onnx")])
            [ask.target] = ask.look([program])
            assert NEWER in ask.target.details["tags"] and "BitShift 28" in ask.target.details["newer"]
            taken[name] = [x.instances()[0] for x in as_of_older(ask, program)]
            assert all(map(ask.agreed, taken[name])), "ONNX Runtime knows the older version"
    [left] = taken.pop("LEFT")
    assert left.context["opset"] == {"": 11} and {x.value.dtype for x in left.inputs} == {"uint8"}  # type: ignore[union-attr]
    assert taken == {"RIGHT": [], "BY THE WIDTH": []}


@pytest.mark.parametrize(
    ("between", "right", "shown"),
    [((), 21, 21), ((), 10, 7), ((13,), 21, 7)],  # it passes until then; not so long; another text lies between
)
def test_what_passes_is_shown_in_the_last_opset_before_where_it_does_there(
    between: tuple[int, ...], right: int, shown: int
) -> None:
    """`GlobalLpPool` of opset 22 is refused: that 7 passes says little of where it begins."""
    older = (*((quantize(x).form(), False) for x in between), (quantize(7).form(), True))
    known = SimpleNamespace(known=lambda library, program: SimpleNamespace(older=older))
    version = Opsets(0, range(0)).version
    ask: Any = asking.Asker(known, Question(frontend="onnxruntime-onnx"))  # type: ignore[arg-type]
    ask.label, ask.target = lambda programs: [version(x) > right for x in programs], Outcome(CRASH)
    made = since(ask, quantize(22))
    assert made is not None and version(made.passing) == shown

    def hasty(programs: Any) -> list[bool]:
        if version(programs[0]) == 21:
            raise Spent
        return [version(x) > right for x in programs]

    ask.label = hasty
    made = since(ask, quantize(22))
    assert made is not None and version(made.passing) == 7, "there was no time left to ask"
