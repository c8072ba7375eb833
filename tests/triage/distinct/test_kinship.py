"""Findings that are one cause, as their compiler tells: what it does not read, and what does not tell two programs apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from faults.onnx_faults import Silent
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Message, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, INVALID, NEWER, PASS, Limits, Outcome
from opera.run import driver as stage
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.conditions import peculiar
from opera.triage.distinct import kinship, uniting
from opera.triage.distinct.kinship import ALIKE, APART, UNTOLD, Kin, answer, candidates, exchanged, unread
from opera.triage.findings import findings
from opera.triage.reducer import closing, reducing
from opera.triage.reduction import Reduction
from opera.triage.reproducers import choice, scripts

pytest.importorskip("onnx")

WRONG = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 2 elements")
ONE, TWO = Tensor.of(np.ones(1, np.float32)), Tensor.of(np.full(1, 2.0, np.float32))
DEFAULTS = {"IsInf": {"detect_negative": 1, "detect_positive": 1}}


def call(operator: str = "IsInf", value: Value = ONE, opset: int = 22, **params: Any) -> Instance:
    return Instance("onnx", operator, params, (Operand("X", value),), ("Y",), {"opset": {"": opset}})


def reduced(shown: Program, *deciding: str, outcome: Outcome = WRONG, test: str = "t0", **more: Any) -> Reduction:
    captured = Captured(shown, Provenance("s", "f", "t")).form()
    return Reduction(
        "F", "e", "a-onnx", "inputs", test, captured, outcome, stored=f"of {shown.id}", deciding=deciding, **more
    )


def crash(message: str) -> Outcome:
    return Outcome(CRASH, "compile", "InternalError", message)


class Compiler:
    """Shows of a program what a function says: an outcome, a verdict, or whether it fails as the target does.

    What its library computes of a program is given, and what the compiler computes.
    """

    def __init__(
        self, target: Outcome, shows: Callable[[Program], Outcome | bool | str] = bool, computes: Any = None
    ) -> None:
        self.target, self.shows, self.computes = target, shows, computes
        self.everywhere: Sequence[str] = ()

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        said = map(self.shows, programs)
        return [x if isinstance(x, Outcome) else Outcome(x) if isinstance(x, str) else self._of(x) for x in said]

    def _of(self, fails: bool) -> Outcome:
        return self.target if fails else Outcome(PASS)

    def fails(self, outcome: Outcome) -> bool:
        return outcome == self.target

    def lowered(self, program: Program) -> list[str]:
        return list(program.context.get("lowered", ()))

    def reference(self, program: Program) -> list[Value] | None:
        return [TWO] if program.instances()[0].params else [ONE]

    def passes_by_another(self, program: Program) -> bool:
        return program.operator not in self.everywhere

    def stated(self, program: Program, expected: Sequence[Value]) -> Outcome:
        return Outcome(PASS) if self.computes == expected else self.look([program])[0]


# ---------------------------------------------------------------------- what is not read


def test_what_computes_as_without_a_parameter_does_not_read_it() -> None:
    found = reduced(call(detect_negative=0), "detect_negative=0")
    for computes, wanted in (([ONE], ("detect_negative",)), ([TWO], ())):
        assert unread(Compiler(WRONG, lambda _: True, computes), found, DEFAULTS) == wanted
    assert not unread(Compiler(WRONG, lambda _: True, [ONE]), reduced(call(detect_negative=0)), DEFAULTS)


def test_what_stops_as_without_a_parameter_does_not_read_it() -> None:
    stops = crash("index is out of bounds here")
    found = reduced(call(axes=[1]), "axes=[1]", outcome=stops)
    assert unread(Compiler(stops, lambda _: True), found, {}) == ("axes",)
    assert not unread(Compiler(stops, lambda x: "axes" in x.instances()[0].params), found, {})


def test_an_input_and_a_fraction_of_scales_may_not_be_read_either() -> None:
    """The program without it computes on the same numbers."""
    x, scales = Tensor.of(np.array([1, 8], np.float32)), Tensor.of(np.array([0.6], np.float32))
    inputs = (Operand("X", x), Operand("scales", scales))
    found = reduced(Instance("onnx", "Resize", {}, inputs, ("Y",), {"opset": {"": 19}}), besides=(peculiar.FRACTION,))
    asked = list[Program]()

    class Rounding(Compiler):
        def reference(self, program: Program) -> list[Value] | None:
            asked.append(program)
            return [ONE]

    assert unread(Rounding(WRONG, lambda _: True, [ONE]), found, {}) == (peculiar.FRACTION,)
    [bare] = asked
    assert [operand.value for operand in bare.instances()[0].inputs] == [x, Tensor.of(np.array([0.5], np.float32))]
    shift = Instance("onnx", "Clip", {}, (Operand("X", x), Operand("min", ONE)), ("Y",), {"opset": {"": 19}})
    clipped = reduced(shift, besides=("input min",))
    assert unread(Rounding(WRONG, lambda _: True, [ONE]), clipped, {}) == ("input min",)
    assert not unread(Rounding(WRONG, lambda _: True, [TWO]), clipped, {})
    assert (
        any(several for _, _, several in candidates([("F1", found), ("F2", reduced(found.program().program))])) is False
    )
    assert all(several for _, _, several in candidates([("F1", found), ("F2", found)]))


SCORES, WEIGHTS = (Instance("onnx", "Attention", {"causal": 1, "mode": 2}, (Operand("Q", ONE),), x, {}) for x in (
    ("Y", "scores"), ("Y",),
))  # fmt: skip
BOTH_WRONG = reduced(SCORES, outcome=Outcome(
    INCONSISTENT, "infer", "nan-mask", "", details={"output": "scores", "manner": {"Y": ["wrong"], "scores": ["wrong"]}}
))  # fmt: skip
ONE_WRONG = reduced(
    msgspec.structs.replace(WEIGHTS, params={"causal": 1}), "causal=1",
    outcome=Outcome(INCONSISTENT, "infer", "value", "", details={"output": "Y", "max_rel": 0.5}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("shows", "says"),
    [
        (lambda x: "causal" in x.params, ALIKE),
        (lambda x: True, APART),  # what decides of one does not of the other
        (lambda x: "mode" in x.params and "causal" in x.params, APART),
        (lambda x: "causal" in x.params and ("mode" in x.params or INVALID), UNTOLD),
    ],
)
def test_two_outputs_of_one_model_are_wrong_for_one_reason(shows: Any, says: str) -> None:
    asked = [(x.finding, others) for x, others, _ in candidates([("F1", BOTH_WRONG), ("F2", ONE_WRONG)])]
    assert (asked[0][1] if asked else []) == [ONE_WRONG]
    assert answer(*((Compiler(x.outcome, shows), x) for x in (BOTH_WRONG, ONE_WRONG))) == says


# ---------------------------------------------------------------------- what does not tell two apart

VALUES = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))


@given(VALUES, VALUES)
def test_each_thing_is_exchanged_alone(mine: dict[str, int], theirs: dict[str, int]) -> None:
    one, other = call("Max", **mine), call("Min", **theirs)
    made = exchanged(one, other)
    assert made is not None
    assert [x.operator for x in made].count("Min") == 1
    for x in made:
        changed = {name for name in "abc" if x.params.get(name) != mine.get(name)}
        assert len(changed) + (x.operator != one.operator) == 1
        assert all(x.params.get(name) == theirs.get(name) for name in changed)
    assert exchanged(one, one) == []


def test_an_operator_is_exchanged_in_a_version_that_has_it() -> None:
    """Asinh came with version 9: an Atan that was reduced to version 7 says nothing of it there."""
    atan, asinh = call("Atan", opset=7), call("Asinh", opset=9)
    for one, other in ((atan, asinh), (asinh, atan)):
        assert exchanged(one, other) == [call(other.operator, opset=9)]


def test_a_subgraph_is_not_exchanged() -> None:
    assert exchanged(call(then_branch=Message("onnx.GraphProto", b"")), call()) is None


LINEAR, CUBIC = reduced(call("Resize", mode="linear")), reduced(call("Resize", mode="cubic"))


@pytest.mark.parametrize(
    ("shows", "says"),
    [
        (lambda _: True, ALIKE),
        (lambda x: x.params["mode"] == "linear", APART),
        (lambda x: crash("") if x.params["mode"] == "linear" else True, APART),
        (lambda x: INVALID if x.params["mode"] == "linear" else True, UNTOLD),
    ],
)
def test_what_both_fail_with_does_not_tell_them_apart(shows: Any, says: str) -> None:
    ask = Compiler(WRONG, shows)
    assert answer((ask, LINEAR), (ask, CUBIC)) == says


HIGHEST = reduced(call("ReduceMax"), outcome=crash("Cannot decide min_value for this type"))
LOWEST = reduced(call("ReduceMin"), outcome=crash("Cannot decide max_value for this type"))


def test_twins_fail_as_the_other_does_with_its_operator() -> None:
    def asked(shows: Callable[[Program], Any]) -> str:
        return answer(*((Compiler(x.outcome, shows), x) for x in (HIGHEST, LOWEST)))

    assert asked(lambda x: (HIGHEST if x.operators == ("ReduceMax",) else LOWEST).outcome) == ALIKE
    assert asked(lambda x: x.operators == ("ReduceMax",)) == APART


@pytest.mark.parametrize(
    ("stage", "places", "asked"),
    [
        ("load", ("importer:_any", "importer:_sum"), False),
        ("load", ("importer:_any[a]", "importer:_any[b]"), True),
        ("compile", ("importer:_any", "importer:_sum"), True),
        ("load", ("importer:_any@core.cpp:6", "importer:_sum@core.cpp:6"), True),
    ],
)
def test_what_two_converters_say_alike_is_a_line_in_each(stage: str, places: tuple[str, str], asked: bool) -> None:
    def shown(operator: str, place: str) -> Reduction:
        outcome = Outcome(CRASH, stage, "ValueError", "the input axis is out of range", conversion_function=place)
        return reduced(call(operator), outcome=outcome)

    found = [("F1", shown("Any", places[0])), ("F2", shown("Sum", places[1]))]
    assert bool(list(candidates(found))) is asked


CHECKED = "[ShapeInferenceError] Inference error(s): (op_type:{}, node name: a): axis must be in the rank of the input"


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        ((CHECKED.format("ReduceMax"), CHECKED.format("ReduceProd")), False),
        ((CHECKED.format("Any"), CHECKED.format("Prod")), True),
        (("no value is given, of T=INT | FLOAT", "no value is given, of T=FLOAT | INT"), True),
        (("no value is given, of T=INT | FLOAT", "no value is given, of T=INT | BOOL"), False),
    ],
)
def test_what_is_said_of_nodes_of_two_operators_is_not_the_same(messages: tuple[str, str], asked: bool) -> None:
    """A checker says the same of all; in which order a set of types is printed is chance."""
    one, other = (reduced(call(x), outcome=crash(y)) for x, y in zip(("any", "prod"), messages, strict=True))
    assert bool(list(candidates([("F1", one), ("F2", other)]))) is kinship.asked_about(one, other) is asked
    kin = [kin_of(one, asked=[kinship.Asked(other.stored, ALIKE)])]
    assert one_cause(one, other, kin=kin) is asked, "what was asked of such that are asked no more tells nothing"


OTHER = reduced(call("ReduceMin"), outcome=crash("Cannot allocate a buffer of this type"))
ANTIALIAS = reduced(call("Resize", antialias=1), "antialias=1")
DECIDED = reduced(call("Resize", mode="linear"), "mode='linear'")


@pytest.mark.parametrize(
    ("one", "other", "asked", "several"),
    [
        (HIGHEST, LOWEST, True, False),
        (HIGHEST, OTHER, False, False),
        (HIGHEST, msgspec.structs.replace(HIGHEST, test="t1"), False, False),
        (LINEAR, reduced(call("Resize", TWO, mode="linear")), False, False),
        (LINEAR, CUBIC, True, False),
        (LINEAR, reduced(call("Upsample", mode="cubic")), False, False),
        (LINEAR, reduced(call("Resize", Tensor.of(np.ones(1)), mode="cubic")), False, False),
        (LINEAR, msgspec.structs.replace(CUBIC, besides=("input roi",)), False, False),
        (LINEAR, msgspec.structs.replace(CUBIC, besides=("an input of rank 1",)), True, False),
        (ANTIALIAS, LINEAR, False, False),
        (ANTIALIAS, DECIDED, False, True),
        (DECIDED, reduced(call("Resize", mode="cubic"), "mode='cubic'"), True, True),
    ],
)
def test_only_what_may_be_one_cause_is_asked(one: Reduction, other: Reduction, asked: bool, several: bool) -> None:
    for found in ([("F1", one), ("F2", other)], [("F2", other), ("F1", one)]):
        made = list(candidates(found))
        assert any(others for _, others, _ in made) is asked
        assert any(told for *_, told in made) is several
    assert not list(candidates([("F1", one), ("F1", other)]))


ODD = reduced(
    call("Abs"), besides=("bfloat16 inputs",), whatever=True, outcome=crash("the model's input is of another precision")
)
INTO = reduced(
    call("Cast", to=16),
    circumstances=("bfloat16 to (stated, or the input's)",),
    outcome=crash("cannot convert to dynamic"),
)


@pytest.mark.parametrize(
    ("one", "other", "everywhere", "says"),
    [
        (ODD, INTO, (), ALIKE),
        (ODD, INTO, ("Cast",), APART),  # there is no kernel of it, whoever imports it
        (ODD, INTO, ("Abs",), APART),
        (ODD, msgspec.structs.replace(INTO, circumstances=("float16 to (stated, or the input's)",)), (), None),
        (
            ODD,
            msgspec.structs.replace(INTO, circumstances=("bfloat16 or float16 to (stated, or the input's)",)),
            (),
            None,
        ),
        (ODD, msgspec.structs.replace(INTO, circumstances=("floating-point to (stated, or the input's)",)), (), None),
        (ODD, msgspec.structs.replace(INTO, circumstances=(*INTO.circumstances, "an empty input")), (), None),
        (ODD, msgspec.structs.replace(INTO, variant="model"), (), None),
        (ODD, msgspec.structs.replace(INTO, outcome=WRONG), (), None),
        (msgspec.structs.replace(ODD, whatever=False), INTO, (), None),  # its operator may matter
    ],
)
def test_a_dtype_that_a_route_does_not_know_is_one_cause_wherever_it_comes_up(
    one: Reduction, other: Reduction, everywhere: Sequence[str], says: str | None
) -> None:
    asked = [others for _, others, _ in candidates([("F1", one), ("F2", other)]) if others]
    assert bool(asked) is (says is not None) is kinship.asked_about(one, other)
    both = [Compiler(x.outcome) for x in (one, other)]
    for x in both:
        x.everywhere = everywhere
    if says is not None:
        assert answer((both[0], one), (both[1], other)) == says


def test_two_that_fail_alike_whatever_tells_them_apart_are_one_though_no_route_passes() -> None:
    """A frontend of one route (TFLite) has no other that could pass: then their operators are exchanged."""
    one, other = (msgspec.structs.replace(ODD, captured=reduced(call(x)).captured, stored=x) for x in ("Abs", "Neg"))
    other = msgspec.structs.replace(other, whatever=False)
    both = [Compiler(ODD.outcome) for _ in range(2)]
    for x in both:
        x.everywhere = ("Abs", "Neg")
    assert kinship._untyped(one, other) and answer((both[0], one), (both[1], other)) == ALIKE


def layer(name: str, place: str, lowered: tuple[str, ...], *deciding: str, **params: int) -> Reduction:
    made = msgspec.structs.replace(call(name, **params), context={"lowered": list(lowered)})
    return reduced(made, *deciding, outcome=msgspec.structs.replace(WRONG, conversion_function=place), test=name)


def test_a_layer_that_is_made_of_a_failing_operator_is_asked_whether_it_is_one_cause() -> None:
    whole = layer("Separable", "expanded Separable", ("DEPTHWISE", "CONV"), "multiplier=6", multiplier=6)
    part = layer("Depthwise", "DEPTHWISE", ("DEPTHWISE",), "multiplier=2", multiplier=2)
    [(asked, others, _)] = [x for x in candidates([("F1", part), ("F2", whole)]) if x[1]]
    assert (asked, others) == (whole, [part])
    assert not any(others for _, others, _ in candidates([("F1", whole), ("F2", layer("Depthwise", "DEPTHWISE", ()))]))
    mine = (Compiler(whole.outcome), whole)
    for shows, other, says in (
        (lambda x: x.params["multiplier"] == 6, part, kinship.ALIKE),
        (lambda x: x.params["multiplier"] == 2, part, kinship.APART),
        (bool, layer("Pool", "POOL", (), "multiplier=2", multiplier=2), kinship.APART),
    ):
        assert kinship.answer(mine, (Compiler(other.outcome, shows), other)) == says
    unknown = layer("Separable", "expanded Separable", (), "multiplier=6", multiplier=6)
    assert kinship.answer((Compiler(unknown.outcome), unknown), (Compiler(part.outcome), part)) == kinship.UNTOLD


@pytest.mark.parametrize(
    ("deciding", "near", "drawn", "lowered", "says"),
    [
        ((), (9, 0), "", ("native_dropout",), ALIKE),
        ((), (0, 0), "constant", ("native_dropout",), ALIKE),
        ((), (9, 0), "", ("softmax",), APART),
        ((), (9, 0), "", ("softmax", "native_dropout"), UNTOLD),  # which of them it is, is not known
        ((), (9, 0), "", (), UNTOLD),
        ((), (9, 1), "", ("native_dropout",), ""),
        ((), (0, 0), "", ("native_dropout",), ""),
        ((), (0, 0), "mean", ("native_dropout",), ""),
        (("p=1.0",), (9, 0), "", ("native_dropout",), ""),  # another parameter than in the whole
    ],
)
def test_a_call_that_only_one_operator_gets_wrong_is_that_operators_cause_where_that_is_always_wrong(
    deciding: tuple[str, ...], near: tuple[int, int], drawn: str, lowered: tuple[str, ...], says: str
) -> None:
    whole = layer("attention", "expanded attention", lowered, "dropout_p=1.0", dropout_p=1)
    part = layer("dropout", "native_dropout", (), *deciding)
    shown = msgspec.structs.replace(part.outcome, details={"drawn": drawn} if drawn else {})
    part = msgspec.structs.replace(part, outcome=shown, near=near)
    asked = [x for x in candidates([("F1", part), ("F2", whole)]) if x[1]]
    assert bool(asked) is bool(says)
    if says:
        assert asked[0][:2] == (whole, [part])
        assert answer((Compiler(whole.outcome), whole), (Compiler(part.outcome), part)) == says
        assert kinship.asked_about(part, whole)


def test_what_was_not_reduced_to_the_end_is_asked_where_it_is_small_and_decided() -> None:
    left = msgspec.structs.replace(DECIDED, finished=False)
    assert kinship.telling(DECIDED) and kinship.telling(left)
    assert not kinship.telling(msgspec.structs.replace(left, elements=kinship.SMALL + 1))
    assert not kinship.telling(msgspec.structs.replace(left, deciding=()))


# ---------------------------------------------------------------------- what follows from it


def one_cause(*found: Reduction, kin: Sequence[Kin] = ()) -> bool:
    """Whether findings of one reduction each are all one."""
    named = [(f"F{n}", x) for n, x in enumerate(found)]
    created = {f"F{n}": float(n) for n, _ in enumerate(found)}
    once = uniting.united(named, {}, created, kin)
    assert uniting.united(named[::-1], {}, created, [*kin][::-1]) == once, "the order does not matter"
    return once == {f"F{n}": "F0" for n in range(1, len(found))}


def kin_of(x: Reduction, *unread: str, asked: Sequence[kinship.Asked] = (), has: tuple[str, ...] = ()) -> Kin:
    return Kin("F", "e", "a-onnx", "inputs", x.test, x.stored, unread, has, tuple(asked))


def test_one_of_many_parameters_that_is_not_read_is_a_feature_of_its_own() -> None:
    found = reduced(call(detect_negative=0), "d"), reduced(call(detect_positive=0), "d")
    for has, one in (
        (("detect_negative", "detect_positive"), True),
        (("X", "detect_negative", "detect_positive"), True),  # a tensor is read
        (("a", "detect_negative", "detect_positive"), False),
    ):
        kin = [kin_of(found[0], "detect_negative", has=has), kin_of(found[1], "detect_positive", has=has)]
        assert one_cause(*found, kin=kin) is one
    assert not one_cause(*found, kin=[kin_of(found[0], "detect_negative", has=("detect_negative", "detect_positive"))])
    assert not one_cause(*found, kin=[kin_of(x, name) for x, name in zip(found, "ab", strict=True)]), (
        "nobody knows of others"
    )


def test_one_parameter_that_is_not_read_is_one_cause_whatever_is_wrong_then() -> None:
    shape = msgspec.structs.replace(WRONG, symptom="shape")
    found = reduced(call(axes=[1]), "axes=[1]"), reduced(call(axes=[0], value=TWO), "axes=[0]", outcome=shape)
    kin = [kin_of(x, "axes", has=("axes", "mode")) for x in found]
    assert one_cause(*found, kin=kin) and not one_cause(*found, kin=kin[:1]) and not one_cause(*found)


def test_answers_about_earlier_reductions_count_no_more() -> None:
    asked = [kinship.Asked(LOWEST.stored, ALIKE)]
    assert one_cause(HIGHEST, LOWEST, kin=[kin_of(HIGHEST, asked=asked)])
    for says in (APART, UNTOLD):
        assert not one_cause(HIGHEST, LOWEST, kin=[kin_of(HIGHEST, asked=[kinship.Asked(LOWEST.stored, says)])])
    assert not one_cause(HIGHEST, LOWEST, kin=[kin_of(ANTIALIAS, asked=asked)])
    assert not one_cause(HIGHEST, LOWEST, kin=[kin_of(HIGHEST, asked=[kinship.Asked("of another", ALIKE)])])


def special(*pairs: str) -> Outcome:
    return msgspec.structs.replace(WRONG, details={"manner": {"Y": ["wrong", "all", *pairs]}})


def test_one_number_for_another_special_one_is_one_cause_whatever_made_it() -> None:
    nothing, infinite = call("ReduceMax", Tensor("float32", (0,), b"")), call("ReduceMax")
    lost = special("-inf>largest")
    assert one_cause(reduced(nothing, outcome=lost), reduced(infinite, outcome=lost))
    for other in (
        reduced(infinite, outcome=special("inf>largest")),
        reduced(call("ReduceMin"), outcome=lost),
        reduced(call("ReduceMax", keepdims=0), "keepdims=0", outcome=lost),
        reduced(infinite, outcome=lost, besides=("input axes",)),
        reduced(call("ReduceMax", Tensor.of(np.ones(1))), outcome=lost),
    ):
        assert not one_cause(reduced(nothing, outcome=lost), other)
    finite = special("finite>finite")
    assert not one_cause(reduced(nothing, outcome=finite), reduced(infinite, outcome=finite))


def test_a_special_number_is_not_told_where_another_does_it_too() -> None:
    nothing, infinite, both = (
        reduced(call(), besides=("input B", *says))
        for says in (("an empty input",), ("infinity in an input",), ("an empty input", "infinity in an input"))
    )
    assert choice._shared(nothing, [nothing, infinite]).besides == ("input B",)
    for others in ([nothing], [nothing, both]):
        assert choice._shared(nothing, others).besides == ("input B", "an empty input")
    plain = reduced(call())
    assert choice._shared(nothing, [nothing, plain]).besides == ("input B",), "the other fails without"
    one, other = (
        reduced(call(), besides=(f"{x} inputs", f"an input of rank {n}")) for n, x in enumerate(("int8", "bool"))
    )
    assert choice._shared(one, [one, plain]).besides == ("int8 inputs",)
    assert choice._shared(one, [one, other]).besides == ()


def test_who_fails_of_another_value_is_not_named_with_the_value_that_is_told() -> None:
    one, same, unlike, bare = (
        msgspec.structs.replace(reduced(call()), deciding=x)
        for x in (("by=L1", "units=2"), ("by=L1",), ("by=Orthogonal",), ())
    )
    assert choice._with_its_values(one, same) and choice._with_its_values(one, bare)
    assert not choice._with_its_values(one, unlike)


@pytest.mark.parametrize(
    ("own", "others", "told"),
    [
        ("float16 or float64", ["bfloat16"], "bfloat16, float16 or float64 inputs"),
        ("bfloat16", ["bfloat16", "float8_e5m2"], "bfloat16 or float8_e5m2 inputs"),
        ("int32, int64 or uint32", ["int32, int64 or uint64"], "int32, int64, uint32 or uint64 inputs"),
        ("uint8", ["integer", "int16"], "integer inputs"),
        ("float64", ["integer"], ""),
        ("float64", ["int8"], ""),
        ("float64", ["floating-point"], ""),
        ("bool", ["bool"], "bool inputs"),
        ("bool", ["int8"], ""),
    ],
)
def test_dtypes_of_one_kind_are_told_of_all_reductions(own: str, others: list[str], told: str) -> None:
    """Elu of float16 and of bfloat16, which ended apart, told of no dtype at all."""
    best, *rest = (reduced(call(), besides=(f"{x} inputs",)) for x in (own, *others))
    for found in ([best, *rest], [best, reduced(call()), *rest]):
        assert choice._shared(best, found).besides == ((told,) if told else ())


def test_what_a_newer_version_of_an_operator_brings_is_one() -> None:
    newer = msgspec.structs.replace(WRONG, details={"tags": [NEWER]})
    left = reduced(call("Attention", opset=25, left_window_size=1), outcome=newer)
    assert one_cause(left, reduced(call("Attention", opset=25, right_window_size=1), outcome=newer))
    said = msgspec.structs.replace(WRONG, details={"tags": [NEWER], "newer": "Attention 25"})
    assert one_cause(*(reduced(call("Attention", opset=x), outcome=said, test=f"t{x}") for x in (25, 28)))
    for other in (
        reduced(call("Attention", opset=26, right_window_size=1), outcome=newer),
        reduced(call("Attention", opset=25, right_window_size=1)),
        reduced(call("BitShift", opset=25), outcome=newer),
    ):
        assert not one_cause(left, other)


def test_two_that_need_an_input_to_come_in_one_way_are_one() -> None:
    says = "input_sequence is a graph input"
    one = reduced(call("SequenceInsert"), besides=("int64 inputs", says), outcome=crash("no len of this"))
    other = reduced(call("SequenceInsert", value=TWO), besides=(says,), outcome=crash("no item of that"))
    assert one_cause(one, other)
    for beside in (("position is a graph input",), (), (says, "NaN in an input")):
        assert not one_cause(one, msgspec.structs.replace(other, besides=beside))
    assert not one_cause(one, msgspec.structs.replace(other, deciding=("position=1",)))
    assert not one_cause(one, msgspec.structs.replace(other, outcome=WRONG))
    of = [msgspec.structs.replace(x, besides=("input position",)) for x in (one, other)]
    assert not one_cause(*of), "an input may be wrong in many ways"


# ---------------------------------------------------------------------- with a compiler that reads no attribute


def isinf(number: float, **params: int) -> Captured:
    x = Tensor.of(np.asarray([number, 1.0], np.float32))
    return Captured(
        call("IsInf", x, 20, **params), Provenance("suite", "file", f"isinf{number}"), (Tensor.of(np.zeros(2, bool)),)
    )


@pytest.mark.full
def test_an_operator_none_of_whose_attributes_is_read_is_one_finding(workspace: Workspace) -> None:
    workspace.add_captured([isinf(-np.inf, detect_negative=0), isinf(np.inf, detect_positive=0)])
    options = stage.Options(compilers=("faults.onnx_faults:dropped_attribute",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    reducing.reduce_all(workspace, list(scripts.members(workspace)), 60.0, 600.0, lambda _: None, workers=1)
    assert len({x.deciding for x in reduction.stored(workspace)}) == 2
    assert {x.unread for x in kinship.stored(workspace)} == {("detect_negative",), ("detect_positive",)}
    [found] = findings(workspace)
    assert len(found.members) == 2 and len(found.aliases) == 1


def test_all_are_asked_about_though_a_finding_cannot_be_reduced(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left for good, and findings of other frontends are nobody's who reduces it."""
    asked = list[Workspace]()
    monkeypatch.setattr(reducing, "reduce_all", lambda *_, **__: ["F1"])
    monkeypatch.setattr(closing, "ask_rest", lambda of, *_: asked.append(of))
    monkeypatch.setattr(scripts, "members", lambda *_: {"F1": []})
    reducing.show(workspace, ["all"], 1.0, 50.0, 1)
    assert asked == [workspace]
