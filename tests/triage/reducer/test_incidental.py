"""A program whose operator does not matter is told by the simplest call that fails of the same input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from keras_instance import instance

from opera import libraries
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Named, Tensor, Value
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, PASS, UNSUPPORTED, Outcome, Seen
from opera.run.probe import Probe, Question
from opera.triage.reducer import asking
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.incidental import incidental

NO_TYPE = Outcome(
    CRASH, "load", "KeyError", "10", "frontend.py:_decode_type", "frontend:convert_tile",
    seen=Seen(frames=("opera.run.worker:_timed:276", "tvm.frontend:_decode_type:9")),
)  # fmt: skip
SIMPLE = ("torch.abs", "torch.clone", "torch.add", "torch.maximum", "torch.zeros_like", "torch.Tensor.new_ones")
PANEL = ("torch.square", "torch.sum", "torch.flatten", "torch.isfinite")
NO_KERNEL = Outcome(UNSUPPORTED, "load", "NotImplementedError", "no kernel")
FORM = Outcome(
    INCONSISTENT, "infer", "dtype", details={"output": "output_0", "expected": "float64", "actual": "float32"}
)


def changed(shown: Outcome, **how: Any) -> Outcome:
    return msgspec.structs.replace(shown, **how)


class Answers(asking.Asker):
    """Of whom programs of float64 show what a test says of their operators, and all others pass."""

    def __init__(self, target: Outcome, shown: dict[str, Outcome], always: bool = False) -> None:
        super().__init__(None, Question(frontend="f-torch"))  # type: ignore[arg-type]
        self.target, self._shown, self._always = target, shown, always

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        for x in programs:
            odd = self._always or any(y.value.dtype != "float32" for y in x.inputs if isinstance(y.value, Tensor))
            self.outcomes[x.id] = self._shown.get(x.operator, Outcome(PASS)) if odd else Outcome(PASS)
        return [self.outcomes[x.id] for x in programs]


def of(operator: str, dtype: str = "float64") -> Instance:
    return Instance("torch", operator, {}, (Operand("input", Tensor.of(np.ones(2, dtype))),), (), {})


@pytest.mark.parametrize(
    ("target", "shown", "others", "found"),
    [
        (NO_TYPE, {"torch.abs": NO_TYPE, "torch.clone": NO_TYPE}, ("torch.tile", "torch.clone"), "torch.abs"),
        (
            NO_TYPE, dict.fromkeys((*SIMPLE, *PANEL), NO_TYPE),
            ("torch.tile", *SIMPLE[1:], *PANEL), "torch.abs",
        ),
        (NO_TYPE, dict.fromkeys(SIMPLE, NO_TYPE), ("torch.tile", *SIMPLE[1:]), "torch.abs"),
        (NO_TYPE, {"torch.clone": NO_TYPE}, ("torch.tile",), "torch.clone"),
        (NO_TYPE, {}, (), "torch.tile"),
        (NO_TYPE, {"torch.abs": changed(NO_TYPE, message="17")}, (), "torch.tile"),
        (NO_TYPE, {"torch.abs": changed(NO_TYPE, seen=Seen(frames=("tvm.frontend:convert_abs:9",)))}, (), "torch.tile"),
        (  # each kernel is missing by itself
            changed(NO_TYPE, message="no kernel for node 'Tile' of this type"),
            {"torch.abs": changed(NO_TYPE, message="no kernel for node 'Abs' of this type")}, (), "torch.tile",
        ),
        (  # a message may have words of the code that all come by, before any operator is looked at
            changed(NO_TYPE, message="more than one input shape", conversion_function="tools:input_to_info"),
            {"torch.abs": changed(NO_TYPE, message="more than one input shape", conversion_function="tools:input_to_info")},
            ("torch.tile",), "torch.abs",
        ),
        (FORM, {"torch.abs": FORM}, ("torch.tile",), "torch.abs"),
        (FORM, {"torch.abs": changed(FORM, details=FORM.details | {"actual": "int8"})}, (), "torch.tile"),
        (changed(FORM, symptom="value"), {"torch.abs": changed(FORM, symptom="value")}, (), "torch.tile"),
    ],
)  # fmt: skip
def test_what_fails_alike_at_one_place_is_the_inputs(
    target: Outcome, shown: dict[str, Outcome], others: tuple[str, ...], found: str
) -> None:
    kept: list[Program] = [of("torch.tile")]
    ask = Answers(target, {"torch.tile": target} | shown)
    told = incidental(ask, kept)
    assert told.others == others and kept[-1].operator == found
    assert told.always == (shown.keys() == {*SIMPLE, *PANEL}), "the panel passes"
    assert ask.target == (target if not others or found == "torch.tile" else shown[found])


@pytest.mark.parametrize(("alike", "always"), [(1, False), (3, False), (5, True), (9, True)])
def test_most_kinds_of_operators_fail_alike_where_none_is_said_to_matter(alike: int, always: bool) -> None:
    """Of a bfloat16 input a file cannot be made of a constant alone: that others fail of something else tells nothing."""
    shown = {x: NO_TYPE if n < alike else NO_KERNEL for n, x in enumerate([SIMPLE[-1], *PANEL, *SIMPLE[:-1]])}
    kept: list[Program] = [of("torch.tile")]
    told = incidental(Answers(NO_TYPE, {"torch.tile": NO_TYPE} | shown), kept)
    assert kept[-1].operator in SIMPLE and told.always is always


def test_a_cast_to_what_should_be_returned_is_told_in_place_of_what_ends_in_one() -> None:
    """MNN computes a product of integers in float32, as its file says, and does not cast it back."""
    wrong = changed(FORM, details=FORM.details | {"actual": "int32", "expected": "int64"})
    kept: list[Program] = [of("torch.tile")]
    told = incidental(Answers(wrong, dict.fromkeys(("torch.tile", "torch.Tensor.to"), wrong)), kept)
    assert kept[-1].operator == "torch.Tensor.to" and kept[-1].params == {"dtype": Named("torch.dtype", "int64")}
    assert told == (("torch.tile",), False)  # what else returns int64 may be right


def test_a_verdict_that_names_no_dtypes_asks_for_no_cast() -> None:
    """A sequence for which a tensor was returned is of another dtype, too: it ended the reduction of all that followed."""
    wrong = changed(FORM, details={"output": "output_0"})
    kept: list[Program] = [of("torch.tile")]
    assert incidental(Answers(wrong, {"torch.tile": wrong}), kept).others == ()


def test_a_cast_that_a_call_of_two_dtypes_implies_is_told_in_its_place() -> None:
    """OpenVINO knows no bfloat16 of Keras: not what multiplies fails, but the cast to it, which the message names."""
    fails = changed(
        NO_TYPE, message="Convert name: to cannot be done", conversion_function="torch.matmul@reference.cpp:36"
    )
    cast = changed(fails, conversion_function="torch.Tensor.to@reference.cpp:36")
    x, y = (Operand(name, Tensor.of(np.ones(2, dtype))) for name, dtype in (("input", "float64"), ("mat2", "int8")))
    kept: list[Program] = [Instance("torch", "torch.matmul", {}, (x, y), (), {})]
    ask = Answers(fails, {"torch.matmul": fails, "torch.Tensor.to": cast})
    ask.reference = lambda of: [x.value]  # type: ignore[method-assign, list-item, return-value]
    assert incidental(ask, kept).others == ("torch.matmul",)
    assert kept[-1].operator == "torch.Tensor.to" and kept[-1].params == {"dtype": Named("torch.dtype", "float64")}
    assert kept[-1].inputs[0].value == Tensor.of(np.ones(1, "int8"))


def test_a_program_that_fails_in_float32_too_has_an_operator_that_matters() -> None:
    kept: list[Program] = [of("torch.tile")]
    ask = Answers(NO_TYPE, {"torch.tile": NO_TYPE, "torch.abs": NO_TYPE}, always=True)
    ask.reference = lambda x: [y.value for y in x.inputs]  # type: ignore[method-assign]
    assert incidental(ask, kept).others == ()
    assert len(kept) == 1


def test_what_ends_the_process_of_an_odd_input_whatever_is_called_is_told_of_the_input() -> None:
    """Identity of strings kills OpenVINO's process as Split does."""
    killed = Outcome(ABORT, "infer", "SIGABRT", "free(): invalid pointer")
    kept: list[Program] = [of("torch.tile")]
    found = incidental(Answers(killed, {"torch.tile": killed, "torch.clone": killed}), kept)
    assert found.others == ("torch.tile",) and kept[-1].operator == "torch.clone"


@pytest.mark.parametrize("hangs", [True, False])
def test_what_returns_a_constant_is_told_as_that(hangs: bool) -> None:
    """MNN finds no output that is a constant of the file, whatever made it one."""
    kept: list[Program] = [of("torch.full_like", "float32")]
    ask = Answers(NO_TYPE, {"torch.full_like": NO_TYPE, "torch.zeros_like": NO_TYPE}, always=True)
    ask.reference = lambda x: [y.value for y in x.inputs if hangs and x.operator == "torch.full_like"]  # type: ignore[method-assign]
    assert incidental(ask, kept).others == (() if hangs else ("torch.full_like",))
    assert kept[-1].operator == ("torch.full_like" if hangs else "torch.zeros_like")


def test_the_simplest_of_those_that_fail_stands_for_all() -> None:
    """Two findings, of a simple call each, end at one program."""
    shown = {"torch.abs": NO_TYPE, "torch.clone": NO_TYPE}
    for operator, others, last in (
        ("torch.abs", ("torch.clone",), "torch.abs"),
        ("torch.clone", ("torch.clone",), "torch.abs"),
    ):
        kept: list[Program] = [
            next(x for x in libraries.get("torch").simplest(of("torch.tile")) if x.operator == operator)
        ]
        assert incidental(Answers(NO_TYPE, shown), kept).others == others and kept[-1].operator == last


@pytest.mark.full
def test_openvino_gives_a_shape_to_an_input_that_the_exported_program_does_not_use() -> None:
    """`matrix_rank` of nothing is 0 in the exported program: its operator, and that it is given nothing, decide nothing."""
    pytest.importorskip("openvino")
    given, call = (Operand("input", Tensor.of(np.ones((0, 3), "float32"))),), {"args": ["input"], "kwargs": []}
    context: dict[str, Value] = {"kind": "function", "call": call}  # type: ignore[dict-item]
    kept: list[Program] = [Instance("torch", "torch.linalg.matrix_rank", {}, given, (), context)]
    with Probe(workers=1) as probe:
        ask = Asker(probe, Question(frontend="openvino-torch", variant="exported-program"))
        ask.budget = Budget(60.0)
        [ask.target] = ask.look(kept)
        assert incidental(ask, kept).others == ("torch.linalg.matrix_rank",)
    assert kept[-1].operator == "torch.Tensor.new_ones" and kept[-1].params == {"size": 1}


@pytest.mark.full  # two dozen models go to TFLite, most of a minute; what follows from answers is tested above
def test_tvm_has_no_float64_of_tflite_whatever_the_layer_is() -> None:
    """The place is where it stops, before it looks at any operator: a converter that is never entered is none."""
    pytest.importorskip("keras")
    pytest.importorskip("tvm")
    kept: list[Program] = [instance("keras.layers.DepthwiseConv1D", {"kernel_size": 1}, inputs=np.ones((1, 2, 2)))]
    with Probe(workers=1) as probe:
        ask = Asker(probe, Question(frontend="tvm-keras", variant="tflite"))
        ask.budget = Budget(60.0)
        [ask.target] = ask.look(kept)
        assert ask.target.symptom == "KeyError" and ask.target.conversion_function == "tflite_frontend:_decode_type"
        others, always = incidental(ask, kept)
    assert (
        always
        and kept[-1].operator == "keras.ops.ravel"
        and others == ("keras.layers.DepthwiseConv1D", "keras.ops.zeros_like")
    )


def test_a_cast_to_an_odd_dtype_is_tried_alone_where_an_input_is_of_it() -> None:
    """What computes in float32 and casts back fails of the cast, which needs no input of that dtype."""
    fails = changed(
        NO_TYPE, message="Convert name: to cannot be done", conversion_function="torch.tile@reference.cpp:36"
    )
    cast = changed(fails, conversion_function="torch.Tensor.to@reference.cpp:36")
    for dtype, found in (("float64", "torch.Tensor.to"), ("int64", "torch.tile")):
        kept: list[Program] = [of("torch.tile", dtype)]
        ask = Answers(fails, {"torch.tile": fails})
        look = ask.look

        def shows(programs: Sequence[Program], ask: Answers = ask, look: Any = look) -> list[Outcome]:
            look(programs)
            ask.outcomes |= {x.id: cast for x in programs if x.operator == "torch.Tensor.to"}
            return [ask.outcomes[x.id] for x in programs]

        ask.look = shows  # type: ignore[method-assign]
        incidental(ask, kept)
        assert kept[-1].operator == found
        if kept[1:]:
            assert kept[-1].inputs[0].value == Tensor.of(np.ones(1, "f4")) and kept[-1].params == {
                "dtype": Named("torch.dtype", dtype)
            }


def test_a_call_that_becomes_the_node_that_a_checker_names_stands_for_a_composite() -> None:
    """`ptp` is a maximum less a minimum, of which ONNX has neither for int16."""
    says = "[ShapeInferenceError] (op_type:ReduceMin, node name: f/Min): data typestr: T, has unsupported type"
    fails = changed(NO_TYPE, stage="compile", symptom="InferenceError", message=says)
    x = (Operand("x", Tensor.of(np.ones(2, "int16"))),)
    given: dict[str, Value] = {"kind": "function", "call": {"args": ["x"], "kwargs": []}}
    ptp = Instance("keras", "keras.ops.ptp", {}, x, (), given)
    for node, found in (("ReduceMin", "keras.ops.min"), ("ReduceMax", "keras.ops.ptp")):
        kept: list[Program] = [ptp]
        shown = changed(fails, message=says.replace("ReduceMin", node))
        ask = Answers(shown, {"keras.ops.ptp": shown, "keras.ops.min": shown})
        ask.question = msgspec.structs.replace(ask.question, frontend="f-keras")
        told = incidental(ask, kept)
        assert kept[-1].operator == found and told.others == (("keras.ops.ptp",) if kept[1:] else ())


@pytest.mark.parametrize(("node", "found"), [("Pow", "torch.tile"), ("Tile", "torch.abs")])
def test_of_invalid_files_one_node_is_refused_in_both(node: str, found: str) -> None:
    """`abs` of complex numbers is a Pow of them by a handler of its own, which explains no Conv of them."""
    says = "[ShapeInferenceError] (op_type:{}, node name: f/1): X typestr: T, has unsupported type: tensor(complex64)"
    fails = changed(NO_TYPE, stage="compile", symptom="InferenceError", message=says.format("Tile"))
    kept: list[Program] = [of("torch.tile", "complex64")]
    shown = {"torch.tile": fails, "torch.abs": changed(fails, message=says.format(node))}
    incidental(Answers(fails, shown), kept)
    assert kept[-1].operator == found
