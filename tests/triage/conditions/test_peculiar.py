"""What is peculiar about values is told by taking it away, and what is made so is the same else."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from opera.programs.program import Instance, Operand
from opera.programs.values import NO_DEFAULT, Message, Tensor
from opera.programs.verdicts import INCONSISTENT, INVALID, PASS, Outcome
from opera.run.probe import Probe, Question
from opera.triage.conditions import deciding, peculiar
from opera.triage.reducer import asking

F32, I64 = np.float32, np.int64


class Compiler:
    """Fails where a predicate holds; the library rejects programs of several calls."""

    def __init__(self, fails: Any) -> None:
        self.does = fails

    def look(self, programs: Any) -> list[Outcome]:
        return [Outcome(self.shown(x), "infer") for x in programs]

    def shown(self, program: Any) -> str:
        try:
            return INCONSISTENT if self.does(program) else PASS
        except (
            AttributeError,
            IndexError,
            KeyError,
            StopIteration,
            TypeError,
            ValueError,
        ):  # it lacks what the operator needs
            return INVALID

    def fails(self, outcome: Outcome) -> bool:
        return outcome.verdict == INCONSISTENT

    def afresh(self, program: Any) -> Outcome:
        return self.look([program])[0]


def call(operator: str, operands: dict[str, Any], opset: int = 23, **params: Any) -> Instance:
    inputs = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in operands.items())
    return Instance("onnx", operator, params, inputs, ("y",), {"opset": {"": opset}})


def numbers(program: Any, name: str) -> Any:
    return next(x.value.numbers() for x in program.inputs if x.name == name)


def attention(mask: Any, q: int = 2, k: int = 2, **params: Any) -> Instance:
    shape = (1, 1, q, 1), (1, 1, k, 1)
    given = {"Q": np.ones(shape[0], F32), "K": np.ones(shape[1], F32), "V": np.ones(shape[1], F32)}
    return call("Attention", given | ({} if mask is None else {"attn_mask": mask}), **params)


def masked(program: Any) -> bool:
    seen = numbers(program, "attn_mask")
    seen = seen if seen.dtype == bool else seen > -np.inf
    if program.params.get("is_causal"):
        seen = seen & np.tril(np.ones(seen.shape[-2:], bool))
    return bool((~seen.any(-1)).any())


BITS = np.iinfo(np.int32).bits
THEN, ELSE = Message("onnx.GraphProto", b"then"), Message("onnx.GraphProto", b"else")
CASES = [
    (call("BitShift", {"X": np.uint32([4]), "Y": np.uint32([BITS])}, direction="LEFT"),
     lambda x: x.inputs[0].value.dtype == "uint32" and numbers(x, "Y")[0] >= BITS, peculiar.FAR),
    (call("BitShift", {"X": np.uint8([3]), "Y": np.uint8([7])}, direction="LEFT"),
     lambda x: int(numbers(x, "X")[0]) << int(numbers(x, "Y")[0]) > np.iinfo(numbers(x, "X").dtype).max, peculiar.LOST),
    (attention(np.array([[True, False], [False, False]])), masked, peculiar.MASKED),
    (attention(F32([[0, 0], [-np.inf, -np.inf]])), masked, peculiar.MASKED),
    (attention(np.array([[False, True], [True, True]]), is_causal=1), masked, peculiar.MASKED),
    (call("Split", {"input": np.ones(0, F32), "split": I64([0, 0, 0])}),
     lambda x: 0 in numbers(x, "split")[:-1], peculiar.PART),
    (call("Split", {"input": np.ones(2, F32), "split": I64([1, 0, 1])}),
     lambda x: 0 in numbers(x, "split")[:-1], peculiar.PART),
    (call("Resize", {"X": np.ones((1, 1, 2, 2), F32), "scales": F32([1, 1, 0.6, 0.6])}),
     lambda x: len(x.inputs) > 1 and not np.allclose(numbers(x, "scales") * 2 % 1, 0), peculiar.FRACTION),
    (call("QuantizeLinear", {"x": F32([1, 3]), "y_scale": F32([2]), "y_zero_point": np.uint8([1])}),
     lambda x: len(x.inputs) == 3 and (numbers(x, "x") / numbers(x, "y_scale") % 1 == 0.5).any(), peculiar.TIE),
    (call("If", {"cond": np.array(False)}, then_branch=THEN, else_branch=ELSE),
     lambda x: x.params["then_branch"] == THEN, peculiar.BRANCH),
    (call("ReduceMax", {"data": np.array([True])}), lambda x: x.inputs[0].value.dtype == "bool", "bool inputs"),
    (call("Resize", {"X": np.ones((2, 3, 1), F32), "scales": F32([2, 3])}, 19, axes=[0, 2]),
     lambda x: "axes" in x.params, "axes=[0, 2]"),
    (call("Upsample", {"X": np.ones((1, 1, 2, 2), F32), "scales": np.ones(4, F32)}, 9),
     lambda x: "scales" not in x.params, "scales is an input"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "fails", "says"), CASES, ids=[f"{x[0].operator} {x[2]}" for x in CASES])
def test_it_decides_where_the_program_passes_without_it(program: Instance, fails: Any, says: str) -> None:
    defaults = {"Resize": {"axes": NO_DEFAULT}}

    def decides(fails: Any) -> list[str]:
        found = deciding.decided(Compiler(fails), program, defaults)
        return [*found.parameters, *found.besides]

    assert says in decides(fails)
    assert not [x for x in decides(fails) if x.endswith("32 inputs")], "wider integers hold more, which tells nothing"
    assert says not in decides(lambda x: True)


def test_all_axes_are_listed_in_their_order() -> None:
    program = call("Resize", {"X": np.ones((2, 3, 5), F32), "sizes": I64([7, 4])}, 19, axes=[2, 0])
    found: Any = peculiar.every_axis(program, "axes")
    assert "axes" not in found.params and numbers(found, "sizes").tolist() == [4, 3, 7]
    assert peculiar.every_axis(call("Pad", {"X": np.ones(2, F32), "pads": I64([1])}, axes=[0]), "axes") is None
    assert (
        peculiar.every_axis(call("tensordot", {"X": np.ones(2, F32)}, dims=[[0], [0]]), "dims") is None
    )  # of two inputs


@pytest.mark.parametrize(
    "program",
    [
        attention(np.array([[True, False], [False, True]])),
        attention(None, q=2, k=1, is_causal=1),
        call("BitShift", {"X": np.uint8([3]), "Y": np.uint8([6])}, direction="LEFT"),
        call("BitShift", {"X": np.uint8([3]), "Y": np.uint8([7])}, direction="RIGHT"),
        call("Split", {"input": np.ones(2, F32), "split": I64([2, 0])}),
        call("Resize", {"X": np.ones((1, 2), F32), "scales": F32([1, 1.5])}),
        call("QuantizeLinear", {"x": F32([1, 2.4]), "y_scale": F32([1])}),
        call("torch.nn.MultiheadAttention", {"query": F32([[1]]), "key": F32([[1]]), "attn_mask": np.array([[False]])}),
    ],
)
def test_nobody_is_told_what_is_not_there(program: Instance) -> None:
    told = {
        peculiar.BRANCH,
        peculiar.FAR,
        peculiar.LOST,
        peculiar.MASKED,
        peculiar.PART,
        peculiar.FRACTION,
        peculiar.TIE,
    }
    assert not told & {says for says, _ in peculiar.values(program)}


@given(arrays.arrays(np.bool_, st.tuples(*[st.integers(1, 4)] * 2)), st.booleans())
def test_no_row_is_masked_after_it_is_opened_and_no_other_changes(mask: Any, causal: bool) -> None:
    program = attention(mask, *mask.shape, **({"is_causal": 1} if causal else {}))
    found = dict(peculiar.values(program)).get(peculiar.MASKED)
    assert (found is not None) is masked(program)
    for made in found or []:
        assert not masked(made)
        rows = (mask & np.tril(np.ones(mask.shape, bool)) if causal else mask).any(-1)
        assert (numbers(made, "attn_mask")[rows] == mask[rows]).all()


@given(arrays.arrays(np.uint8, 3), arrays.arrays(np.uint8, 3, elements=st.integers(0, 12)))
def test_after_it_no_shift_is_too_far_and_no_bit_is_lost(held: Any, far: Any) -> None:
    program: Any = call("BitShift", {"X": held, "Y": far}, direction="LEFT")
    for says in (peculiar.FAR, peculiar.LOST):
        for made in dict(peculiar.values(program)).get(says, ()):
            program = made
    held, far = numbers(program, "X"), numbers(program, "Y")
    assert (far < 8).all() and (held.astype(int) << far < 256).all()


def test_openvino_looks_into_the_branch_that_is_not_taken() -> None:
    pytest.importorskip("openvino")
    helper = pytest.importorskip("onnx").helper

    def branch(name: str, parts: int) -> Message:
        names = [name, *(f"{name}{x}" for x in range(1, parts))]
        nodes = [helper.make_node("Split", ["x"], names, num_outputs=parts)]
        info = helper.make_tensor_value_info(name, 1, None)
        return Message("onnx.GraphProto", helper.make_graph(nodes, name, [], [info]).SerializeToString())

    operands = {"cond": np.array(True), "x": np.ones(5, F32)}
    program = call("If", operands, 18, then_branch=branch("a", 2), else_branch=branch("b", 4))
    program.context["captured"] = ["x"]
    with Probe(workers=1) as probe:
        ask = asking.Asker(probe, Question(frontend="openvino-onnx"))
        [shown] = ask.look([program])
        ask.begin(program, probe.known("onnx", program), {})
        assert shown.verdict == "crash" and deciding.decided(ask, program, {}).besides[:1] == (peculiar.BRANCH,)


@given(st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "bool"]), st.data())
def test_integers_that_int32_does_not_hold_are_peculiar(dtype: str, data: Any) -> None:
    """OpenVINO computes them so: its ReduceMin of uint64 was told to be wrong of "more than one element"."""
    array = data.draw(arrays.arrays(dtype, st.integers(0, 3)))
    beyond = dtype != "float32" and any(not -(2**31) <= x < 2**31 for x in array.tolist())
    where = peculiar.SPECIAL["a number beyond int32"]
    assert peculiar.has(Tensor.of(array), where) is beyond
    made = dict(peculiar.values(call("Op", {"x": array}))).get("a number beyond int32 in an input", [])
    assert [peculiar.has(x.inputs[0].value, where) for x in made] == [False] * beyond  # type: ignore[union-attr, arg-type]
