"""Operators that fail so of the same inputs are told with a finding; those that fail otherwise, or pass, are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, INVALID, PASS, Outcome, Seen
from opera.run.probe import Question
from opera.store.workspace import Workspace
from opera.triage.reducer import asking
from opera.triage.reducer.siblings import alias, same_by_others, siblings


def node(operator: str, count: int = 1, version: int = 22, **params: Any) -> Instance:
    given = tuple(Operand(f"{operator}_{n}", Tensor.of(np.ones(2, "f2"))) for n in range(count))
    return Instance("onnx", operator, params, given, ("y",), {"opset": {"": version}})


def crash(operator: str, **more: Any) -> Outcome:
    said = f"cannot select an intrinsic for {operator.lower()} of this type"
    return msgspec.structs.replace(
        Outcome(CRASH, "compile", "InternalError", said, conversion_function="@intrin.cc:20"), **more
    )


class Answers(asking.Asker):
    """Of whom programs show what a test says of their operators, and all others pass."""

    def __init__(self, target: Outcome, shown: dict[str, Outcome]) -> None:
        super().__init__(None, Question(frontend="f-onnx"))  # type: ignore[arg-type]
        self.target, self._shown, self.met = target, shown, list[Instance]()

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        self.met += [x for x in programs if isinstance(x, Instance)]
        return [self._shown.get(x.operators[0], Outcome(PASS)) for x in programs]


CORPUS = [
    node("Cosh"), node("Sin"), node("Asinh", version=9), node("Tanh"), node("Add", 2), node("LeakyRelu", alpha=0.5),
    node("a::Sinh"), node("Sqrt"), node("Elu", alpha=0.25),
]  # fmt: skip


def test_those_that_say_the_same_at_one_place_are_siblings_and_are_given_what_the_program_is(
    workspace: Workspace,
) -> None:
    workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in CORPUS])
    shown = {
        "Cosh": crash("Cosh"),
        "Asinh": crash("Asinh"),
        "Tanh": crash("Tanh", conversion_function="@other.cc:7"),
        "Sin": crash("Sin", message="no rule for sin"),
        "Sqrt": Outcome(INVALID),
        "Elu": crash("Elu"),
        "Add": crash("Add"),
        "a::Sinh": crash("a::Sinh"),
    }
    program = msgspec.structs.replace(node("Sinh", version=21), params={"alpha": 4.0})
    ask = Answers(crash("Sinh"), shown)
    assert siblings(ask, workspace, program) == ("Elu", "Asinh", "Cosh")
    assert {x.operator for x in ask.met} == {"Asinh", "Cosh", "Elu", "LeakyRelu", "Sin", "Sqrt", "Tanh"}
    [elu] = (x for x in ask.met if x.operator == "Elu")
    assert elu.params == {"alpha": 4.0} and elu.context == {"opset": {"": 21}} and elu.inputs[0].name == "Elu_0"


@pytest.mark.parametrize(("line", "wanted"), [(68, ("Shrinks",)), (70, ())])
def test_those_that_say_the_same_of_another_line_below_are_no_siblings(
    workspace: Workspace, line: int, wanted: tuple[str, ...]
) -> None:
    """TVM's Shrink of unsigned integers stops at a negation, and Sign, in the same words, at its own kernel."""

    def stops(at: int) -> Outcome:
        made = (
            "tvm/ir/_overload_prim_expr.py:<module>:145",
            "tvm/runtime/object_generic.py:<module>:68",
        )  # of any kernel
        frames = (f"tvm/topi/math.py:<module>:{at}", *made, "?:<module>:0", "/project/src/op.h:<module>:575")
        said = "cannot make uint from negative value -1"
        return Outcome(
            CRASH, "compile", "InternalError", said, conversion_function="@op.h:575", seen=Seen(frames=frames)
        )

    workspace.insert([Captured(node("Shrinks"), Provenance("suites", "t", ""))])
    assert siblings(Answers(stops(68), {"Shrinks": stops(line)}), workspace, node("Shrink")) == wanted


@pytest.mark.parametrize(
    ("drawn", "wanted"), [("constant", ("AlphaDropout",)), ("law", ())], ids=["drawn once", "of another law"]
)
def test_what_draws_nothing_has_siblings_that_draw_nothing(
    workspace: Workspace, drawn: str, wanted: tuple[str, ...]
) -> None:
    workspace.insert(
        [Captured(node(x), Provenance("suites", "t", "")) for x in ("AlphaDropout", "DropoutOther", "Relu")]
    )
    once = Outcome(INCONSISTENT, "infer", "value", details={"drawn": drawn})
    other = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "law"})
    ask = Answers(once, {"AlphaDropout": once, "DropoutOther": other})
    assert siblings(ask, workspace, node("Dropout")) == wanted


def test_a_number_of_the_program_stands_where_a_sibling_takes_a_tensor(workspace: Workspace) -> None:
    given = [node("Add", 2), node("Abs")]
    workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in given])
    program = msgspec.structs.replace(node("Mul"), params={"Add_1": 0.5})
    ask = Answers(crash("Mul"), {"Add": crash("Add")})
    assert siblings(ask, workspace, program) == ("Add",)
    [made] = {x.id: x for x in ask.met if x.operator == "Add"}.values()
    assert made.params == {"Add_1": 0.5} and [x.name for x in made.inputs] == ["Add_0"]


def test_wrong_numbers_and_several_calls_have_none(workspace: Workspace) -> None:
    workspace.insert([Captured(node("Cosh"), Provenance("suites", "t", ""))])
    wrong = Outcome(INCONSISTENT, "infer", "value")
    ask = Answers(wrong, {"Cosh": wrong})
    assert siblings(ask, workspace, node("Sinh")) == () and not ask.met
    ask.target = crash("Sinh")
    assert siblings(ask, workspace, Graph("onnx", (), (), ())) == () and not ask.met


def test_who_is_asked_for_what_a_sibling_computes_must_confirm_it(workspace: Workspace) -> None:
    workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in (node("Cosh"), node("Asinh"))])
    ask = Answers(crash("Sinh"), {"Cosh": crash("Cosh"), "Asinh": crash("Asinh")})
    ask.passed = lambda programs, failed: [x.operators == ("Cosh",) for x in programs]  # type: ignore[method-assign]
    assert siblings(ask, workspace, node("Sinh")) == ("Cosh",)


def test_a_sibling_that_came_with_a_newer_version_is_asked_in_that(workspace: Workspace) -> None:
    workspace.insert(
        [Captured(x, Provenance("suites", "t", "")) for x in (node("Cosh", version=22), node("Asin", version=22))]
    )

    def look(programs: Sequence[Program]) -> list[Outcome]:
        versions = [(x.operators[0], x.instances()[0].context["opset"]) for x in programs]
        return [Outcome(INVALID) if x == ("Cosh", {"": 7}) else crash(x[0]) for x in versions]

    ask = Answers(crash("Acos"), {})
    ask.look = look  # type: ignore[method-assign]
    assert siblings(ask, workspace, node("Acos", version=7)) == ("Asin", "Cosh")


def test_a_wrong_form_that_one_converter_gives_several_operators_has_siblings(workspace: Workspace) -> None:
    """`_binary_op` of TVM's importer makes integers of an integer tensor and a float, for `mul` as for `add`."""
    workspace.insert(
        [Captured(node(x), Provenance("suites", "t", "")) for x in ("Add", "AddOther", "Max", "AddNarrow")]
    )

    def wrong(function: str, **details: str) -> Outcome:
        form = {"output": "y", "expected": "float32", "actual": "int64"} | details
        return Outcome(INCONSISTENT, "infer", "dtype", conversion_function=function, details=form)

    shown = {
        "Add": wrong("fx:_binary_op[add]"),
        "AddOther": wrong("fx:_other_op[add]"),
        "AddNarrow": wrong("fx:_binary_op[add]", actual="int8"),
    }
    ask = Answers(wrong("fx:_binary_op[mul]"), shown)
    assert siblings(ask, workspace, node("Mul")) == ("Add",)
    ask.target = wrong("fx:_convert_mul")
    assert siblings(ask, workspace, node("Mul")) == ()


def test_who_returns_as_few_outputs_is_a_sibling(workspace: Workspace) -> None:
    """OpenVINO returns nothing of `zeros_like`, which TensorFlow traces to a constant, nor of `ones_like`."""
    workspace.insert([Captured(node(x), Provenance("suites", "t", "")) for x in ("OnesLike", "Abs", "Split")])

    def fewer(actual: int, expected: int = 1) -> Outcome:
        return Outcome(INCONSISTENT, "infer", "count", details={"expected": expected, "actual": actual})

    ask = Answers(fewer(0), {"OnesLike": fewer(0), "Split": fewer(1, 2)})
    assert siblings(ask, workspace, node("ZerosLike")) == ("OnesLike",)


def test_a_sibling_fails_so_of_the_inputs_of_other_programs_that_fail_too(workspace: Workspace) -> None:
    workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in (node("Cosh"), node("Asinh"), node("Sin"))])
    other = msgspec.structs.replace(node("Sinh"), inputs=(Operand("Sinh_0", Tensor.of(np.ones((2, 1), "f4"))),))

    class OfTwo(Answers):
        """`Asinh` passes of float32, of which `Sin` is no operator at all."""

        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            held = [x.instances()[0].inputs[0].value for x in programs]
            wide = [isinstance(x, Tensor) and x.dtype == "float32" for x in held]
            of = {"Asinh": Outcome(PASS), "Sin": Outcome(INVALID)}
            shown = zip(programs, super().look(programs), wide, strict=True)
            return [of.get(x.operators[0], now) if other_dtype else now for x, now, other_dtype in shown]

    shown = {x: crash(x) for x in ("Cosh", "Asinh", "Sin")}
    ask = OfTwo(crash("Sinh"), shown)
    assert set(siblings(ask, workspace, node("Sinh"))) == {"Cosh", "Asinh", "Sin"}
    ask.programs, ask.outcomes = {other.id: other}, {other.id: crash("Sinh")}
    assert set(siblings(ask, workspace, node("Sinh"))) == {"Cosh", "Sin"}
    ask.others[frozenset({"float32"})] = other  # it is wrong for another reason
    assert set(siblings(ask, workspace, node("Sinh"))) == {"Cosh", "Asinh", "Sin"}


def test_those_of_similar_names_that_compute_the_same_and_pass_are_told(workspace: Workspace) -> None:
    """`subtract` was told without `sub`, which nobody had asked about; and `squeeze_copy` as passing, which had no `dim`."""

    class Remembering(Answers):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            found = super().look(programs)
            self.programs.update((x.id, x) for x in programs)
            self.outcomes.update((x.id, now) for x, now in zip(programs, found, strict=True))
            return found

    own, given = node("Divide", rounding="floor"), node("Divide").inputs
    names = ("Div", "Dive", "Divided", "Sin")
    asked = {x: msgspec.structs.replace(node(x, rounding="floor"), inputs=given) for x in names}
    asked["DivideOut"] = msgspec.structs.replace(node("DivideOut"), inputs=given)  # of no rounding
    workspace.insert([Captured(node("DivideBy", rounding="trunc"), Provenance("suites", "t", ""))])
    ask = Remembering(crash("Divide"), {"Dive": crash("Dive")})
    ask.look([own, *asked.values()])
    computed = {"Divided": [Tensor.of(np.zeros(2, "f2"))]}
    ask.reference = lambda x: computed.get(x.operators[0], [Tensor.of(np.ones(2, "f2"))])  # type: ignore[method-assign]
    told = same_by_others(ask, workspace, own)
    assert set(told) == {"Div", "DivideBy"}, (
        "Dive fails, Divided is another number, Sin another name, DivideOut no floor"
    )
    told = same_by_others(ask, workspace, own, "other::Over")
    assert told[0] == "other::Over", "whatever its name and the corpus, where it is known to be the same"
    alone = msgspec.structs.replace(own, outputs=("", "output_1"))
    ask.look([alone])
    assert set(same_by_others(ask, workspace, alone)) >= {"DivideBy"}, "one output alone is asked for"
    ask.target = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "constant"})
    assert not same_by_others(ask, workspace, own)


def test_pytorch_says_which_operators_are_others_by_another_name() -> None:
    calls = {
        x: Instance("torch", x, {}, (), (), {}) for x in ("torch.subtract", "torch.divide", "torch.sub", "torch.abs")
    }
    assert {x: alias(y) for x, y in calls.items() if alias(y)} == {
        "torch.subtract": "torch.sub",
        "torch.divide": "torch.div",
    }
    assert not alias(node("Sub")), "ONNX has none"
