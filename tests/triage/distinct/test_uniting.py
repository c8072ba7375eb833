"""Which findings of one frontend are one cause, as their reductions tell."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from caused import VALUE, concluded, program, reduced, tensor
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Argument, Call, Graph, Instance, Operand
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, UNSTABLE, Outcome, Seen
from opera.triage.distinct import dividing, uniting
from opera.triage.distinct.dividing import Reduced, divide
from opera.triage.distinct.uniting import joined, outline
from opera.triage.reduction import Reduction, is_form_of


@given(st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=8))
def test_joined_sets_are_disjoint_and_hold_all(groups: list[set[int]]) -> None:
    found = joined(groups)
    assert sum(map(len, found)) == len(set().union(*groups)) == len(set().union(*found))
    assert all(any(group <= whole for whole in found) for group in groups)
    assert sorted(map(sorted, joined(found))) == sorted(map(sorted, found))


def test_equal_reductions_make_one_finding_of_two() -> None:
    found = [reduced("F2", "t2", program(name="b")), reduced("F1", "t1", program(name="a", value=tensor(7.0)))]
    result = concluded(found, {"F1": ["t1"], "F2": ["t2"]})
    assert result.of("F2", "t2") == "F1" and result.aliases() == {"F1": ["F2"]}


@pytest.mark.parametrize(
    ("operator", "other", "shape", "one"),
    [("Tile", "Tile", (2,), True), ("Tile", "Slice", (2,), False), ("ReduceMin", "ReduceSum", (0, 2), True)],
)
def test_what_varies_is_one_by_operator_or_where_nothing_is_computed(
    operator: str, other: str, shape: tuple[int, ...], one: bool
) -> None:
    found = [
        reduced(f"F{n}", f"t{n}", program(name, value=Tensor.of(np.zeros((*shape, n), np.float32))),
                outcome=Outcome(UNSTABLE, "infer", UNSTABLE, f"repetitions differ: by {n}"))
        for n, name in enumerate((operator, other), 1)
    ]  # fmt: skip
    result = concluded(found, {"F1": ["t1"], "F2": ["t2"]})
    assert (result.of("F2", "t2") == "F1") is one


@pytest.mark.parametrize(
    ("symptom", "variant", "one"),
    [("value", "inputs", True), ("shape", "inputs", False), ("value", "constants", False)],
)
def test_one_program_that_varies_and_is_seen_as_wrong_is_one_finding(symptom: str, variant: str, one: bool) -> None:
    """Memory that nobody wrote is wrong in each run, and another in the next, if it is looked at twice."""
    varies = Outcome(UNSTABLE, "infer", UNSTABLE, "repetitions differ")
    wrong = Outcome(INCONSISTENT, "infer", symptom, VALUE.message)
    found = [reduced("F1", "t1", program(), outcome=wrong), reduced("F2", "t2", program(), outcome=varies)]
    found[1] = found[1]._replace(reduction=msgspec.structs.replace(found[1].reduction, variant=variant))
    assert (concluded(found, {"F1": ["t1"], "F2": ["t2"]}).of("F2", "t2") == "F1") is one


@pytest.mark.parametrize(
    "other",
    [
        reduced("F2", "t2", program(), environment="another"),
        reduced("F2", "t2", program(), frontend="tvm-torch"),
        reduced("F2", "t2", program(), outcome=Outcome(INCONSISTENT, "infer", "shape", VALUE.message)),
        reduced("F2", "t2", program(value=tensor(1.0, 2.0))),
        reduced("F2", "t2", program(value=tensor(float("nan")))),
        reduced("F2", "t2", program(mode="cubic")),
        reduced("F2", "t2", program("Pad")),
    ],
)
def test_what_is_not_the_same_stays_apart(other: Reduced) -> None:
    assert not concluded([reduced("F1", "t1", program()), other], {"F1": ["t1"], "F2": ["t2"]}).names


@pytest.mark.parametrize(("variant", "translator", "one"), [
    ("torchscript", "aten::index_add@slice.hpp:6", True),
    ("exported-program", "aten::index_add@slice.hpp:6", False),
    ("torchscript", "aten::add@slice.hpp:6", False),
    ("torchscript", "torch.index_add", True),
])  # fmt: skip
def test_two_routes_to_one_translator_may_fail_at_two_places(variant: str, translator: str, one: bool) -> None:
    def shown(text: str, converter: str) -> Outcome:
        return Outcome(CRASH, "load", "OpConversionFailure", text, conversion_function=converter)

    found = [
        reduced("F1", "t1", program(), outcome=shown("axis is out of range", "aten::index_add@utils.cpp:55")),
        reduced("F2", "t2", program(), outcome=shown("no such dimension there", translator)),
    ]
    found[0] = Reduced("F1", msgspec.structs.replace(found[0].reduction, variant="exported-program"))
    found[1] = Reduced("F2", msgspec.structs.replace(found[1].reduction, variant=variant))
    assert bool(concluded(found, {"F1": ["t1"], "F2": ["t2"]}).names) == one
    found[1] = Reduced("F2", msgspec.structs.replace(found[1].reduction, besides=("a 0-d input",)))
    assert not concluded(found, {"F1": ["t1"], "F2": ["t2"]}).names  # the one fails always, and the other of a scalar


@pytest.mark.parametrize(
    ("operator", "place", "deciding", "shape", "one"),
    [
        ("any", "shape_util.cpp:66", ["keepdim=True"], (), True),
        ("any", "shape_util.cpp:66", ["keepdim=1"], (), True),
        ("any", "shape_util.cpp:66", ["dim=0", "keepdim=1"], (), True),  # who takes dim away, has another operator
        ("any", "shape_util.cpp:66", ["dim=0"], (), False),
        ("any", "shape_util.cpp:66", [], (), False),
        ("any", "shape_util.cpp:67", ["keepdim=True"], (), False),
        ("any", "shape_util.cpp:66", ["keepdim=True"], (1,), False),
    ],
)
def test_one_place_that_one_parameter_leads_to_is_one_cause(
    operator: str, place: str, deciding: list[str], shape: tuple[int, ...], one: bool
) -> None:
    def crash(of: str, at: str) -> Outcome:
        return Outcome(CRASH, "load", "RuntimeError", f"while {of}", conversion_function=f"aten::{of}@{at}")

    def shown(of: str, size: tuple[int, ...]) -> Instance:
        return program(of, value=Tensor.of(np.ones(size, "f4")))

    first = reduced(
        "F1", "t1", shown("sum", ()), "keepdim=True", outcome=crash("sum", "shape_util.cpp:66"), nondefault=1
    )
    other = reduced("F2", "t2", shown(operator, shape), *deciding, outcome=crash(operator, place), nondefault=1)
    found = concluded([first, other], {"F1": ["t1"], "F2": ["t2"]})
    assert (found.of("F2", "t2") == "F1") is one


@pytest.mark.parametrize(
    ("place", "decides", "one"),
    [
        ("element_type.hpp:256", "string inputs", True),
        ("element_type.hpp:256", "bool inputs", False),
        ("element_type.hpp:257", "string inputs", False),
        ("elementwise_util.cpp:25", "string inputs", False),  # it checks what each converter made
        ("element_type.hpp:256", "a 1-d input", False),
    ],
)
def test_a_place_that_is_about_dtypes_is_one_cause_whatever_operator_leads_there(
    place: str, decides: str, one: bool
) -> None:
    def crash(of: str, at: str, condition: str) -> Reduced:
        shown = Outcome(CRASH, "load", "RuntimeError", "Unknown type", conversion_function=f"{of}@{at}")
        return reduced(f"F{of}", of, program(of), outcome=shown, circumstances=(condition,))

    found = concluded(
        [crash("Trilu", "element_type.hpp:256", "string inputs"), crash("Pad", place, decides)],
        {"FTrilu": [], "FPad": []},
    )
    assert (found.kept("FPad") == "FTrilu") is one


def test_what_is_one_node_of_the_exported_file_is_one_cause() -> None:
    def plain(operator: str, drawn: str, x: Value) -> Reduction:
        outcome = msgspec.structs.replace(VALUE, details={"drawn": drawn})
        return reduced("F", "t", program(operator, value=x), outcome=outcome, frontend="openvino-onnx").reduction

    def called(name: str) -> Reduced:
        shown = msgspec.structs.replace(program(f"torch.{name}"), library="torch")
        return reduced(f"F{name}", name, shown, outcome=VALUE, frontend="openvino-torch", stored=name)

    one, first = tensor(1.0), plain("RandomNormalLike", "share", tensor(1.0))
    for other, same in (
        (plain("RandomNormalLike", "share", tensor(1.0, 2.0)), True),
        (plain("RandomNormalLike", "constant", one), False),
        (plain("RandomUniformLike", "share", one), False),
        (plain("torch.normal", "share", one), False),
    ):
        if other.program().program.operator.startswith("torch."):  # a form of the library's own calls
            form = msgspec.structs.replace(program("torch.normal"), library="torch")
            first = other = reduced("F", "t", form, outcome=other.outcome).reduction
        made = {"normal": first, "log_normal": other}
        found = uniting.united([called("normal"), called("log_normal")], {}, {"Fnormal": 0.0}, plain=made)
        assert (found.get("Fnormal") == "Flog_normal" or found.get("Flog_normal") == "Fnormal") is same


@pytest.mark.parametrize(("told", "same"), [(("an empty input",), True), (("0-d inputs",), False), ((), False)])
def test_nodes_of_one_operator_of_which_the_same_is_told_are_one_cause(told: tuple[str, ...], same: bool) -> None:
    """A constant without elements, which exporters write of whatever dtype."""

    def plain(x: Value, besides: tuple[str, ...]) -> Reduction:
        shown = program("Constant", value=x)
        return reduced("F", "t", shown, outcome=VALUE, frontend="openvino-onnx", besides=besides).reduction

    def called(name: str) -> Reduced:
        shown = msgspec.structs.replace(program(f"torch.{name}"), library="torch")
        return reduced(f"F{name}", name, shown, outcome=VALUE, frontend="openvino-torch", stored=name)

    made = {"logspace": plain(tensor(1.0), ("an empty input",)), "rank": plain(tensor(1.0, 2.0), told)}
    found = uniting.united([called("logspace"), called("rank")], {}, {"Flogspace": 0.0}, plain=made)
    assert bool(found) is same


@pytest.mark.parametrize(("line", "same"), [(372, True), (399, False)])
def test_one_line_of_a_code_generator_is_one_cause_by_whatever_route(line: int, same: bool) -> None:
    """`ne` of bool by its exported program, and `Equal` of bool by the ONNX file of another operator: TVM compares no bool.
    What the generator was given is told behind it, and differs."""

    def shown(given: str, line: int) -> Outcome:
        frames = ("tvm.build:_f:1", f"/src/target/llvm/codegen_llvm.cc:<module>:{line}")
        said = f"verification failed: \nInvalid operand types\n  %6 = fcmp {given}, !dbg !3\n"
        return Outcome(CRASH, "compile", "InternalError", said, seen=Seen(frames=frames))

    first = reduced("Fne", "ne", program("ne"), outcome=shown("one i1 %5", 372), besides=("bool inputs",))
    other = shown("oeq i1 %2, %9", line)
    second = reduced("Fdiv", "div", program("div"), outcome=other, besides=("int8 inputs",), stored="div")
    form = reduced("F", "t", program("Equal"), outcome=other, besides=("bool inputs",)).reduction
    assert bool(uniting.united([first, second], {}, {"Fne": 0.0}, plain={"div": form})) is same


def test_the_plainest_call_that_fails_so_is_one_cause_and_another_failures_form_is_none() -> None:
    """Two EinsumDense are one Dense to who is given the file; what fails otherwise by another route is no Dense for that."""
    form = reduced(
        "F", "t", program("Dense"), outcome=Outcome(CRASH, "infer", "Reshape"), frontend="mnn-keras"
    ).reduction

    def layer(name: str, message: str = "Reshape error") -> Reduced:
        shown = Outcome(CRASH, "infer", message.partition(" ")[0], message)
        return reduced(f"F{name}", name, program(f"Einsum{name}"), outcome=shown, frontend="mnn-keras", stored=name)

    plain = dict.fromkeys(("a", "b", "c"), msgspec.structs.replace(form, outcome=layer("a").reduction.outcome))
    found = uniting.united([layer("a"), layer("b"), layer("c", "Cast error")], {}, {"Fa": 0.0}, plain=plain)
    assert found.keys() <= {"Fa", "Fb"} and len(found) == 1
    assert is_form_of(plain["a"], layer("b").reduction) and not is_form_of(
        plain["a"], layer("c", "Cast error").reduction
    )


@pytest.mark.parametrize(
    ("other", "one"), [("torch.nn.functional.dropout", True), ("torch.nn.functional.dropout2d", False)]
)
def test_what_is_drawn_wrongly_and_the_call_that_leaves_nothing_to_chance_are_one_cause(other: str, one: bool) -> None:
    """A dropout that hands its input through, and the same with p=1, where 0 was expected, were two reports."""

    def called(name: str, operator: str, p: float, **details: str) -> Reduced:
        made = msgspec.structs.replace(program(operator, value=tensor(1.0)), library="torch", params={"p": p})
        shown = msgspec.structs.replace(VALUE, details=details)
        return reduced(f"F{name}", name, made, outcome=shown, frontend="tvm-torch", stored=name)

    form = called("t", "torch.nn.functional.dropout", 1.0).reduction
    first, second = called("a", "torch.nn.functional.dropout", 0.5, drawn="constant"), called("b", other, 1.0)
    assert bool(uniting.united([first, second], {}, {"Fa": 0.0}, plain={"a": form})) is one
    every, nothing = called("c", other, 1.0), called("d", other, 0.0)
    assert not uniting.united([every, nothing], {}, {"Fc": 0.0}), "nobody draws wrongly"


@pytest.mark.parametrize(
    ("symptom", "told", "converter", "one"),
    [
        ("dtype", "non-float32 inputs", "fx:_binary_op[matmul(out_dtype='float32')]", True),
        ("dtype", "float16 inputs", "fx:_binary_op[matmul(out_dtype='float32')]", False),
        ("dtype", "non-float32 inputs", "fx:_addmm", False),
        ("dtype", "non-float32 inputs", "torch.bmm", False),
        ("value", "non-float32 inputs", "fx:_binary_op[matmul(out_dtype='float32')]", False),
    ],
)
def test_a_wrong_dtype_that_one_converter_makes_of_the_same_inputs_is_one_cause(
    symptom: str, told: str, converter: str, one: bool
) -> None:
    """TVM's product of matrices is said to be float32, whether `mm` or `bmm` asks for it."""

    def product(of: str, says: str, made_by: str) -> Reduced:
        shown = Outcome(INCONSISTENT, "infer", symptom, VALUE.message, conversion_function=made_by)
        return reduced(f"F{of}", of, program(of), outcome=shown, besides=(says,))

    first = product("mm", "non-float32 inputs", "fx:_binary_op[matmul(out_dtype='float32')]")
    found = uniting.united([first, product("bmm", told, converter)], {}, {"Fmm": 0.0})
    assert bool(found) is one


@pytest.mark.parametrize(("message", "one"), [("1 outputs are expected, 0 returned", True), ("2 expected, 1", False)])
def test_an_operator_of_which_outputs_are_lacking_is_one_cause_whatever_it_is_given(message: str, one: bool) -> None:
    """OpenVINO drops an output that is a constant, of any shape below 1000 elements."""
    says = "1 outputs are expected, 0 returned"
    found = [
        reduced(f"F{n}", f"t{n}", program("zeros_like", value=tensor(*numbers)), *told,
                outcome=Outcome(INCONSISTENT, "infer", "count", text))
        for n, numbers, told, text in ((1, [1.0], (), says), (2, [1.0, 2.0], ("x=1",), message))
    ]  # fmt: skip
    assert bool(uniting.united(found, {}, {"F1": 0.0})) is one


@pytest.mark.parametrize(
    ("output", "expected", "besides", "one"),
    [
        ("mask", "bool", (), True),
        ("output", "bool", (), False),
        ("mask", "float64", (), False),
        ("mask", "bool", ("float16 inputs",), False),
    ],
)
def test_a_dtype_that_a_converter_always_gets_wrong_is_one_cause_of_whatever_it_is(
    output: str, expected: str, besides: tuple[str, ...], one: bool
) -> None:
    """TVM's Dropout returns its mask in the dtype of its input, in place of bool."""

    def dropout(of: str, dtype: str, output: str, expected: str, besides: tuple[str, ...]) -> Reduced:
        details = {"output": output, "expected": expected, "actual": dtype}
        shown = Outcome(INCONSISTENT, "infer", "dtype", conversion_function="onnx:Dropout._impl_v12", details=details)
        return reduced(f"F{of}", of, program("Dropout", value=tensor(1.0, dtype=dtype)), outcome=shown, besides=besides)

    found = [dropout("1", "float32", "mask", "bool", ()), dropout("2", "float16", output, expected, besides)]
    assert bool(uniting.united(found, {}, {"F1": 0.0})) is one


@pytest.mark.parametrize(("actual", "one"), [("(1, 2, 1, 2)", True), ("(1, 2, 2, 2)", False)])
def test_a_shape_that_a_converter_gets_wrong_whatever_calls_lead_there_is_one_cause(actual: str, one: bool) -> None:
    """What `grid_sample` becomes is `grid_sampler_2d`, and both were reported."""

    def sampled(of: str, operator: str, actual: str) -> Reduced:
        details = {"output": "output_0", "expected": "(1, 2, 1, 1)", "actual": actual}
        shown = Outcome(INCONSISTENT, "infer", "shape", conversion_function="torch:_grid_sampler_2d", details=details)
        return reduced(f"F{of}", of, program(operator), outcome=shown)

    found = [sampled("1", "grid_sample", "(1, 2, 1, 2)"), sampled("2", "grid_sampler_2d", actual)]
    assert bool(uniting.united(found, {}, {"F1": 0.0})) is one


@pytest.mark.parametrize(
    ("message", "converter", "one"),
    [
        ("no value in Constant", "onnx:Constant._impl_v13", True),
        ("no value in Constant", "onnx:Constant._impl_v1", False),
        ("object of type 'NoneType' has no len()", "onnx:Constant._impl_v13", False),
        ("the Constant's value_ints is not supported", "onnx:Constant._impl_v13", False),  # what decides is told
        ("Constant folding failed", "onnx:Constant._impl_v13", False),  # a first word
    ],
)
def test_what_a_converter_says_of_its_operator_is_one_cause_whatever_parameter_decides(
    message: str, converter: str, one: bool
) -> None:
    """TVM's Constant takes `value` alone: of `value_int` and of `value_ints` one line says so."""

    def constant(of: str, says: str, made_by: str) -> Reduced:
        shown = Outcome(REFUSED, "load", "ValueError", says, conversion_function=made_by)
        made = msgspec.structs.replace(program("Constant"), params={of: 1})
        return reduced(f"F{of}", of, made, f"{of} given", outcome=shown)

    first = constant("value_int", message.replace("ints", "int"), "onnx:Constant._impl_v13")
    found = uniting.united([first, constant("value_ints", message, converter)], {}, {"Fvalue_int": 0.0})
    assert bool(found) is one


@pytest.mark.parametrize(("actual", "one"), [("(1, 3, 1, 2)", True), ("(1, 3)", False)])
def test_an_axis_too_few_is_another_cause_than_an_axis_too_many(actual: str, one: bool) -> None:
    """OpenVINO's one-sided DFT, forward and inverse."""

    def transformed(of: str, actual: str) -> Reduced:
        details = {"expected": "(1, 3, 2)", "actual": actual}
        shown = Outcome(INCONSISTENT, "infer", "shape", conversion_function="onnx:make_dft", details=details)
        return reduced(f"F{of}", of, program(of), "onesided=1", outcome=shown)

    found = uniting.united([transformed("DFT", "(1, 3, 1, 2)"), transformed("STFT", actual)], {}, {"FDFT": 0.0})
    assert bool(found) is one


@pytest.mark.parametrize(("told", "one"), [("the last axis of w of length 1", True), ("a 1-d input", False)])
def test_what_the_same_several_things_decide_is_one_cause_whether_the_shape_is_wrong_or_the_numbers(
    told: str, one: bool
) -> None:
    def convolved(of: str, symptom: str, pads: str, condition: str) -> Reduced:
        shown = Outcome(INCONSISTENT, "infer", symptom, VALUE.message)
        decides = (f"pads={pads}", "strides=[2]")
        return reduced(f"F{of}", of, program(pads=pads), *decides, outcome=shown, circumstances=(condition,))

    first = convolved("a", "shape", "[1, 1]", "the last axis of w of length 1")
    found = concluded([first, convolved("b", "value", "[1, 0]", told)], {"Fa": [], "Fb": []})
    assert (found.kept("Fb") == "Fa") is one


def graph(first: str, second: str, *outputs: str) -> Graph:
    calls = (
        Call("Relu", {}, (Argument("X", first),), (second,), {}),
        Call("Neg", {}, (Argument("X", second),), ("end",), {}),
    )
    return Graph("onnx", (Operand(first, tensor(1.0)),), calls, outputs or ("end",))


def test_graphs_are_equal_whatever_their_names_are() -> None:
    assert outline(graph("a", "b")) == outline(graph("x", "y"))
    assert outline(graph("a", "b")) != outline(graph("a", "b", "b", "end"))
    assert outline(program(value=tensor(1, dtype="int64"))) != outline(program(value=tensor(2, dtype="int64")))


def test_two_that_need_parameters_which_nobody_knows_are_one_if_their_operator_is() -> None:
    one, other = reduced("F", "a", program("Conv"), nondefault=1), reduced("F", "b", program("Conv"), nondefault=2)
    assert not divide("F", ["a", "b"], dividing.kinds_of([one, other]), {})


def test_what_is_computed_of_nothing_is_one_cause_whether_it_varies_or_not() -> None:
    nothing = Tensor("float32", (0,), b"")
    varies, wrong, shape = (
        Outcome(*x)
        for x in (("unstable", "infer", "unstable"), (INCONSISTENT, "infer", "value"), (INCONSISTENT, "infer", "shape"))
    )
    one = reduced("F1", "a", program("ReduceMax", value=nothing), outcome=varies)
    other = reduced("F2", "b", program("ReduceProd", value=nothing), outcome=wrong)
    third = reduced("F3", "c", program("ReduceSum", value=nothing), outcome=shape)
    assert uniting.united([one, other, third], {}, {"F1": 1.0, "F2": 2.0, "F3": 3.0}) == {"F2": "F1"}
    typed = Instance(
        "onnx", "CastLike", {}, (Operand("x", tensor(1.0)), Operand("like", nothing)), ("y",), {"opset": 26}
    )
    cast = reduced("F2", "b", typed, outcome=wrong)
    assert not uniting.united([one, cast], {}, {"F1": 1.0, "F2": 2.0}), "the second tensor only tells a type"
    unreduced = {("F0", one.reduction.frontend, one.reduction.environment), ("F4", "another", "")}
    ages = {f"F{n}": float(n) for n in range(5)}
    assert uniting.united([one], {}, ages, (), unreduced) == {"F1": "F0"}


def test_joined_sets_and_many_sights_of_one_program_take_no_square_of_time() -> None:
    """A hundred thousand findings that say the same are one; in pairs they would be ten billion."""
    assert sorted(map(sorted, joined([["a", "b"], ["c"], ["d", "e"], ["b", "e"]]))) == [["a", "b", "d", "e"], ["c"]]
    sights = [uniting._Sight(f"F{n}", "inputs", "it fails", "converter") for n in range(100_000)]
    [whole] = joined(uniting._same(sights))
    assert len(whole) == 100_000


@pytest.mark.parametrize(
    ("sights", "groups"),
    [
        ([("A", "one", "x", "f"), ("B", "two", "y", "f")], [["A", "B"]]),
        ([("A", "one", "x", "f"), ("B", "one", "y", "f")], [["A"], ["B"]]),
        ([("A", "one", "x", "f"), ("B", "two", "y", "g")], [["A"], ["B"]]),
        ([("A", "one", "x", "f"), ("B", "two", "y", "torch.add")], [["A", "B"]]),
        ([("A", "one", "x", "f"), ("B", "one", "y", "torch.add")], [["A"], ["B"]]),
    ],
)
def test_two_routes_to_one_translator_are_one_cause(
    sights: list[tuple[str, str, str, str]], groups: list[list[str]]
) -> None:
    found = joined(uniting._same([uniting._Sight(*x) for x in sights]))
    assert sorted(map(sorted, found)) == groups


@pytest.mark.parametrize(
    ("told", "one"),
    [
        ("a last window of ceil_mode that begins behind the input", True),
        ("float16 inputs", False),
        ("an input of rank 3", False),
    ],
)
def test_where_a_checker_stops_hangs_on_shapes_and_what_decides_is_one_cause(told: str, one: bool) -> None:
    """A pooling whose last window has no place is refused at a `Sub` of a batch, and at a `Squeeze` without one."""
    found = []
    for n, (node, shape) in enumerate((("Sub", (1, 2, 2)), ("Squeeze", (2, 2))), 1):
        says = f"(op_type:{node}, node name: pool): Inferred shape and existing shape differ in dimension {n}"
        shown = Outcome(CRASH, "compile", "InferenceError", says)
        made = reduced(f"F{n}", f"t{n}", program("Pool", value=Tensor.of(np.ones(shape, np.float32))), outcome=shown)
        found.append(made._replace(reduction=msgspec.structs.replace(made.reduction, circumstances=(told,))))
    assert (concluded(found, {"F1": ["t1"], "F2": ["t2"]}).of("F2", "t2") == "F1") is one


@pytest.mark.parametrize(("alias", "one"), [("torch.sub", True), ("", False)])
def test_what_sets_an_operator_apart_from_the_one_that_it_is_another_name_of_is_one_cause(
    alias: str, one: bool
) -> None:
    """`torch.subtract` is not promoted on its way to ONNX: an invalid file of two dtypes, a wrong dtype of a number."""
    invalid = Outcome(CRASH, "compile", "InferenceError", "B has inconsistent type tensor(float)")
    typed = Outcome(INCONSISTENT, "infer", "dtype", "int64 for float32")
    found = [
        reduced("F1", "t1", program("torch.subtract"), outcome=invalid),
        reduced("F2", "t2", program("torch.subtract", value=tensor(1.0, 2.0)), outcome=typed),
    ]
    found = [x._replace(reduction=msgspec.structs.replace(x.reduction, alias=alias)) for x in found]
    assert (concluded(found, {"F1": ["t1"], "F2": ["t2"]}).of("F2", "t2") == "F1") is one


@pytest.mark.parametrize(
    ("dtype", "version", "one"), [("f2", "22", True), ("f4", "22", False), ("f2", "21", False), ("f2", "", False)]
)
def test_files_that_are_invalid_below_one_version_are_one_cause_whatever_operator(
    dtype: str, version: str, one: bool
) -> None:
    """`acos` and `elu` of bfloat16: ONNX has either from opset 22 on."""
    says = (f"opset_version is below {version}",) if version else ()
    found = [
        reduced(
            f"F{n}", f"t{n}", program(f"torch.{name}", value=Tensor.of(np.ones(2, of))),
            outcome=Outcome(CRASH, "compile", "InferenceError", f"{formal} typestr: T, has unsupported type"),
        )
        for n, (name, formal, of) in enumerate((("acos", "input", "f2"), ("elu", "X", dtype)), 1)
    ]  # fmt: skip
    told = [("opset_version is below 22",) if version else (), says]
    found = [
        x._replace(reduction=msgspec.structs.replace(x.reduction, settings=y)) for x, y in zip(found, told, strict=True)
    ]
    assert (concluded(found, {"F1": ["t1"], "F2": ["t2"]}).of("F2", "t2") == "F1") is one
