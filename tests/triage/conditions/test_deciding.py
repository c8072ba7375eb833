"""What decides is told by taking it away: parameters, inputs, dtypes, ranks, what is empty, special numbers."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from opera.programs.program import Graph, Instance, Operand
from opera.programs.values import NO_DEFAULT, Sequence, Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, INVALID, PASS, SCREENED, UNSUPPORTED, Outcome
from opera.triage.conditions import deciding, removable
from opera.triage.sentence import is_relation
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent


class Compiler:
    """Fails where a predicate holds, or as it says; the library rejects where another does, and models that hold an input."""

    def __init__(
        self, fails: Callable[..., bool | str], rejects: Callable[..., bool] = lambda x: isinstance(x, Graph)
    ) -> None:
        self.does, self.rejects, self.asked, self.stage = fails, rejects, 0, "load"

    def reference(self, program):
        return None

    def look(self, programs):
        self.asked += len(programs)

        def shown(program):
            if (isinstance(program, Instance) and not program.inputs) or self.rejects(program):
                return INVALID
            seen = self.does(program)
            return seen if isinstance(seen, str) else INCONSISTENT if seen else PASS

        return [Outcome(shown(x), self.stage) for x in programs]

    def fails(self, outcome):
        return outcome.verdict == INCONSISTENT


def call(*arrays, **params):
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


def first(program):
    return program.inputs[0].value


def alone(program):
    return len(smaller.leaves(program)) < 2


def dtypes(program):
    return {x.dtype for x in smaller.leaves(program)}


def test_what_gets_further_once_a_body_is_written_otherwise_did_fail_of_how_it_was_written():
    """A crash goes away, and another bug shows; so of what is given, or given otherwise (the length of a DFT). Of any other
    condition only a program that passes tells something."""
    program, other = call(np.ones(2, "f4")), call(np.ones(3, "f4"))
    ask = Compiler(lambda x: CRASH if x == program else INCONSISTENT)
    ask.fails = lambda outcome: outcome.verdict == CRASH
    cases = [("so", removable.FORM, True), ("so", removable.OTHER, False), ("input y", removable.INPUT, True)]
    for says, kind, wanted in (*cases, ("y is no constant", removable.OTHER, True)):
        one = removable.Condition(says, kind, lambda: [other])
        assert deciding._decides(ask, program, one) is wanted


F32 = np.float32
CASES = [
    (call(np.ones((2, 2), "float64")), lambda x: first(x).dtype == "float64", ["float64 inputs"]),
    (call(np.ones(2, "int8")), lambda x: first(x).dtype == "int8", ["int8 inputs"]),
    (call(np.ones((), F32)), lambda x: not first(x).shape, ["a 0-d input"]),
    (call(np.ones((2, 1, 2), F32)), lambda x: len(first(x).shape) == 3, ["an input of rank 3"]),
    (call(np.ones((2, 1), F32)), lambda x: first(x).shape == (2, 1), ["an input of rank 2"]),
    (call(np.int64([3])), lambda x: "int" in first(x).dtype, ["integer inputs"]),
    (call(np.int64([3])), lambda x: first(x).dtype == "int64", ["int64 inputs"]),
    (
        call(F32([2, 3]), F32([0.5])),
        lambda x: x.inputs[-1].value.numbers().ravel()[0] == 0.5,
        ["input x1"],
    ),
    (call(np.ones((0, 2), F32)), lambda x: 0 in first(x).shape, ["an empty input"]),
    (call(F32([1, np.nan])), lambda x: np.isnan(first(x).numbers()).any(), ["NaN in an input"]),
    (call(F32([-np.inf])), lambda x: np.isinf(first(x).numbers()).any(), ["infinity in an input"]),
    (call(np.int64([3, -2])), lambda x: (first(x).numbers() < 0).any(), ["a negative number in an input"]),
    (call(F32([1]), F32([2])), lambda x: len(x.inputs) > 1, ["input x1"]),
    (call(F32([1])), lambda x: True, []),
    (call(np.int32([3]), F32([2])), lambda x: alone(x) or len(dtypes(x)) > 1, ["inputs of two dtypes"]),
    (call(np.int32([3]), F32([2])), lambda x: alone(x) or "int32" in dtypes(x), ["int32 inputs"]),
]


def without_relations(found):
    return found.parameters, tuple(x for x in found.besides if not is_relation(x))


@pytest.mark.parametrize(("program", "fails", "wanted"), CASES, ids=[" ".join(x[2]) or "nothing" for x in CASES])
def test_what_the_program_passes_without_decides(program, fails, wanted):
    assert without_relations(deciding.decided(Compiler(fails), program, {})) == ((), tuple(wanted))
    assert deciding.decided(Compiler(fails, lambda x: x != program), program, {}) == ((), ()), "nothing else can be run"


def test_a_parameter_decides_where_the_default_passes_and_a_size_never_does():
    program = call(F32([1]), axis=2, size=3, mode="cubic")
    defaults = {"Any": {"axis": 0, "mode": "nearest"}}
    fails = Compiler(lambda x: x.params.get("axis") == 2 or x.params.get("size") == 3)
    assert deciding.decided(fails, program, defaults) == ((), ()), "another one makes it fail, too"
    fails = Compiler(lambda x: x.params.get("axis") == 2 and x.params.get("size") == 3)
    assert deciding.decided(fails, program, defaults).parameters == ("axis=2",)


RELATIONS = [
    (call(np.ones((2, 1), F32)), lambda x: first(x).shape == (2, 1), ["length 1 of axis 1"]),
    (call(F32([2, 2])), lambda x: len(np.unique(first(x).numbers())) == 1, ["equal elements in an input"]),
    (call(F32([2, 3]), F32([0.5])), lambda x: x.inputs[-1].value.numbers()[0] == 0.5, ["a number equal to x1"]),
    (call(F32([2, 3]), limit=0.5), lambda x: x.params["limit"] == 0.5, ["a number equal to limit"]),
    (call(F32([2, 3]), limit=0.5), lambda x: True, []),
]


@pytest.mark.parametrize(("program", "fails", "wanted"), RELATIONS)
def test_numbers_and_sizes_may_decide_by_how_they_stand_to_each_other(program, fails, wanted):
    assert list(deciding.relations(Compiler(fails), program)) == wanted


def test_a_parameter_that_is_left_out_may_decide():
    """clamp of integers with one bound alone: given the other one, it passes."""
    defaults = {"Any": {"min": None, "max": None}}
    fails = Compiler(lambda x: x.params.get("min") is None)
    assert deciding.decided(fails, call(np.int64([1]), max=3), defaults).parameters == ("min left out",)
    assert deciding.decided(fails, call(np.int64([1]), min=None, max=3), defaults).parameters == ("min left out",)
    both = Compiler(lambda x: True)
    assert deciding.decided(both, call(np.int64([1]), max=3), defaults).parameters == ()


def test_without_time_nothing_is_said():
    class Slow:
        def look(self, programs):
            raise Spent

        def fails(self, outcome):
            return True

    program = call(np.ones((), "float64"), axis=2)
    assert deciding.decided(Slow(), program, {"Any": {"axis": 0}}) == ((), ())


def test_a_parameter_that_passes_by_chance_alone_does_not_decide():
    """A wrong scale shows with linear interpolation of two elements, and with the nearest one once there are more."""
    program, defaults = call(F32([[1, 2]]), mode="linear"), {"Any": {"mode": "nearest"}}
    wrong_scale = Compiler(lambda x: x.params.get("mode") == "linear" or first(x).shape[1] > 3)
    assert deciding.decided(wrong_scale, program, defaults).parameters == ()
    more = call(F32([[1, 2]]), F32([1]), mode="linear", round="up")
    assert deciding.decided(wrong_scale, more, {"Any": {"mode": "nearest", "round": ""}}) == ((), ()), (
        "nor with another"
    )
    linear = Compiler(lambda x: x.params.get("mode") == "linear")
    assert deciding.decided(linear, program, defaults).parameters == ("mode='linear'",)


def test_what_a_compiler_cannot_do_without_does_not_decide():
    """Without hidden_size it fails otherwise, whatever layout is."""
    program = call(F32([[1, 2]]), hidden_size=1, layout=1)
    defaults = {"Any": {"layout": 0, "hidden_size": NO_DEFAULT}}
    fails = Compiler(lambda x: CRASH if "hidden_size" not in x.params else bool(x.params.get("layout")))
    assert deciding.decided(fails, program, defaults).parameters == ("layout=1",)


def test_two_that_are_only_needed_together_are_told_together():
    """Without one alone it still fails, in another way."""
    program = call(F32([[1, 2]]), F32([3]), causal=1, scale=2.0)

    def does(x):
        given = (len(x.inputs) > 1 and x.inputs[1].value is not None) + ("causal" in x.params)
        return {2: True, 1: CRASH, 0: False}[given]

    found = deciding.decided(Compiler(does), program, {"Any": {"causal": 0, "scale": NO_DEFAULT}})
    assert found == (("causal=1",), ("input x1",))


def test_of_a_crash_what_leads_to_it_is_told_if_something_else_decides():
    """With bfloat16 a mask crashes, and without one it is not supported; with float32 all is right."""
    program = call(F32([1]), F32([2]), to="double")

    def does(x, kind="double"):
        of = x.params.get("to") == kind
        return (CRASH if len(x.inputs) > 1 else UNSUPPORTED) if of else False

    defaults = {"Any": {"to": "float"}}
    assert deciding.decided(Compiler(does), program, defaults) == (("to='double'",), ("input x1",))
    alone = deciding.decided(Compiler(lambda x: CRASH if len(x.inputs) > 1 else UNSUPPORTED), program, defaults)
    assert without_relations(alone) == ((), ()), "what nothing passes without is told by nothing"


def test_an_index_that_a_parameter_excuses_is_put_in_range_without_it():
    program = call(F32([[1, 2]]), np.int64([7]), ignore_index=7)

    def rejects(x):
        return isinstance(x, Graph) or (not x.params and int(x.inputs[1].value.array()[0]) > 1)

    of = {"Any": {"ignore_index": NO_DEFAULT}}
    assert deciding.decided(Compiler(lambda x: bool(x.params), rejects), program, of).parameters == ("ignore_index=7",)
    other = Compiler(lambda x: any(operand.value == Tensor.of(np.int64([7])) for operand in x.inputs), rejects)
    assert deciding.decided(other, program, of).parameters == (), "it is the index itself"


def test_an_index_that_a_size_admits_is_put_in_range_without_it():
    """MaxUnpool of one number at place 1 is one of an `output_shape` alone; sizes of 0 are none."""
    program = call(F32([[1]]), np.int64([[1]]), np.int64([1, 5]))

    def rejects(x):
        held = [y.numbers() for y in smaller.leaves(x)]
        return isinstance(x, Graph) or len(held) < 2 or held[1].max() >= np.prod([1, *held[2:]][-1])

    assert deciding.decided(Compiler(lambda x: len(x.inputs) > 2, rejects), program, {}) == ((), ("input x2",))
    assert "input x2" not in deciding.decided(Compiler(lambda x: True, rejects), program, {}).besides


class Drawing(Compiler):
    """Draws one number: a program without what decides is right in its first process, and in those that it says."""

    def __init__(self, later, first=None, fails=None):
        super().__init__(fails or (lambda x: len(x.inputs) > 1 and x.inputs[1].value is not None), never)
        self.later, self.first, self.seeds = list(later), first or Outcome(PASS, "infer"), []

    def look(self, programs):
        seen = super().look(programs)
        return [
            Outcome(INCONSISTENT, "infer", details={"drawn": "share"}) if x.verdict == INCONSISTENT else self.first
            for x in seen
        ]

    def afresh(self, program):
        self.seeds.append(program.params.get("seed"))
        return self.later.pop(0) if self.later else Outcome(PASS, "infer")


WELL = Outcome(SCREENED, "infer", details={"screen": "nondeterministic"})
BADLY = Outcome(INCONSISTENT, "infer", details={"drawn": "share"})


@pytest.mark.parametrize(
    ("operator", "later", "told"),
    [
        ("Dropout", [WELL, Outcome(PASS, "infer"), WELL], ("input x1",)),
        ("Dropout", [WELL, WELL, BADLY], ()),
        ("Any", [WELL] * 9, ()),
    ],
)
def test_what_is_drawn_must_be_right_in_several_processes_and_judged_by_what_is_declared(operator, later, told):
    program = msgspec.structs.replace(call(F32([1]), F32([2]), seed=3), operator=operator)
    compiler = Drawing(later, WELL)
    found = deciding.decided(compiler, program, {operator: {"seed": 3}})
    assert found == ((), told), "relations, and pairs, are none of chance either"
    assert not told or compiler.seeds[:3] == [3, 4, 5]


@pytest.mark.parametrize(("symptom", "told"), [("dtype", ("float16 inputs",)), ("value", ())])
def test_other_draws_of_the_right_form_speak_for_what_has_another(symptom, told):
    """`randn_like` of float16 is float32 on OpenVINO: of float32 it draws, and no two draws are alike."""

    class Typed(Compiler):
        def look(self, programs):
            seen = super().look(programs)  # what fails is of float16
            symptoms = ((symptom if x.verdict == INCONSISTENT else "value") for x in seen)
            alike = (x if x.verdict == INVALID else Outcome(INCONSISTENT, "infer") for x in seen)
            return [msgspec.structs.replace(x, symptom=y) for x, y in zip(alike, symptoms, strict=True)]

    program = msgspec.structs.replace(call(np.float16([1])), operator="Dropout")
    half = Typed(lambda x: first(x).dtype == "float16")
    assert without_relations(deciding.decided(half, program, {})) == ((), told)


def test_a_model_of_several_calls_is_declared_by_nobody_and_passes_by_chance():
    """Of Dropout whose ratio the model holds nothing is declared: one number is soon the expected one."""
    fed = Drawing([], fails=lambda x: "x1" not in held(x))
    assert deciding.decided(fed, msgspec.structs.replace(call(F32([1]), F32([2])), operator="Dropout"), {}) == ((), ())


def test_what_varies_must_vary_in_no_process_without_what_decides():
    class Varying(Compiler):
        later = PASS

        def afresh(self, program):
            return Outcome(self.later, "infer")

    compiler = Varying(lambda x: "unstable" if 0 in first(x).shape else PASS)
    program = call(np.ones((0, 2), F32))
    assert deciding.decided(compiler, program, {}).besides == ("an empty input",)
    compiler.later = "unstable"
    assert deciding.decided(compiler, program, {}) == ((), ())


def test_a_constant_must_pass_with_other_numbers_too():
    program = call(F32([1]), F32([0.5]))
    by_chance = Compiler(lambda x: "x1" not in held(x) or x.calls[0].params["value"].numbers()[0] == 1, never)
    assert "x1 is no constant" not in deciding.decided(by_chance, program, {}).besides


def never(x):
    return False


def held(x):
    """Return the names of the inputs that a model holds or makes, where its last call is that which it is made for."""
    return (
        {name for made in x.calls[:-1] for name in made.outputs if name not in ("result", "computed")}
        if isinstance(x, Graph)
        else set()
    )


def test_an_input_that_must_be_no_constant_is_told_for_itself():
    program = call(F32([1]), np.int64([2]), F32([0.5]))
    found = deciding.decided(Compiler(lambda x: "x1" not in held(x), never), program, {})
    assert found.besides == ("x1 is no constant",)
    whole = deciding.decided(Compiler(lambda x: "x0" not in held(x), never), program, {})
    assert "x0 is no constant" not in whole.besides, "the compiler may compute all of it before it makes any code"
    crash = deciding.decided(Compiler(lambda x: False if "x0" in held(x) else CRASH, never), program, {})
    assert "x0 is no constant" in crash.besides, "what cannot be loaded is not computed either"


def test_an_input_that_another_call_makes_is_told_before_it_is_tried_as_a_constant():
    program = call(F32([1]), F32([0.5]))
    alone = Compiler(lambda x: CRASH if isinstance(x, Instance) else False, never)
    assert deciding.decided(alone, program, {}).besides[:2] == ("x0 is a graph input", "x1 is a graph input")
    one = Compiler(lambda x: CRASH if x.inputs[1:] == program.inputs[1:] and "x1" not in held(x) else False, never)
    told = deciding.decided(one, program, {}).besides
    assert "x1 is a graph input" in told and "x0 is a graph input" not in told


@pytest.mark.parametrize(("given", "told"), [(F32([1]), ()), (np.int64([2]), ("x0 is no constant",))])
def test_a_shape_that_must_be_no_constant_is_told_though_it_is_the_only_input(given, told):
    compiler = Compiler(lambda x: False if held(x) else CRASH, never)
    compiler.stage = "compile"
    assert without_relations(deciding.decided(compiler, call(given), {}))[1] == told


@pytest.mark.parametrize(("verdict", "told"), [(CRASH, ("output z",)), (INCONSISTENT, ())])
def test_an_output_is_told_that_cannot_be_asked_for(verdict, told):
    """Of a wrong output it would tell nothing that what is not asked for is not wrong."""
    one = call(F32([1]))
    program = Instance(one.library, one.operator, {}, one.inputs, ("y", "", "z"), one.context)
    fails = Compiler(lambda x: verdict if "z" in x.outputs else False)
    assert without_relations(deciding.decided(fails, program, {}))[1] == told


def test_a_sequence_that_the_model_is_given_is_told():
    items = (Tensor.of(F32([1])), Tensor.of(F32([2])))
    program = Instance("onnx", "Any", {}, (Operand("s", Sequence("f", items)),), ("y",), {"opset": {"": 22}})
    assert deciding.decided(Compiler(lambda x: not held(x), never), program, {}).besides == ("s is a graph input",)


@pytest.mark.parametrize(
    ("program", "says", "wanted"),
    [
        (call(F32([1]), mode="cubic"), "mode='linear'", [PASS]),
        (call(F32([1])), "mode='linear'", None),
        (call(F32([1]), F32([1])), "input x1", [PASS]),
        (call(F32([1])), "input x1", None),
        (call(np.float16([1])), "float64 inputs", None),
        (call(F32([1])), "NaN in an input", None),
        (call(F32([np.nan])), "NaN in an input", [PASS]),
        (call(F32([1])), "an input of rank 3", None),
    ],
)
def test_what_decides_of_one_program_is_taken_away_from_another(program, says, wanted):
    shown = deciding.without(Compiler(lambda x: x == program), program, says, {"Any": {"mode": "nearest"}})
    assert (shown if shown is None else [outcome.verdict for _, outcome in shown]) == wanted


def test_unlike_values_tell_tensors_and_elements_apart():
    program = call(np.ones((2, 2), F32), np.ones((2, 2), F32))
    whole, one, other = (smaller.applied(step, program) for step in smaller.unlike(program))
    assert [x.value.numbers().ravel().tolist() for x in whole.inputs] == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert one.inputs[1] == program.inputs[1] and other.inputs[0] == program.inputs[0]


@pytest.mark.parametrize(("verdict", "told"), [(CRASH, ("float64 inputs",)), (INCONSISTENT, ())])
def test_drawn_numbers_are_no_failure_beside_a_crash_alone(verdict, told):
    class Other(Compiler):
        def look(self, programs):
            lacking = [not isinstance(x, Instance) or not x.inputs for x in programs]
            kinds = [no or "float64" in dtypes(x) for no, x in zip(lacking, programs, strict=True)]
            return [Outcome(verdict if x else INCONSISTENT, "infer", "value") for x in kinds]

    program = msgspec.structs.replace(call(np.float64([1])), operator="RandomUniformLike")
    assert deciding.decided(Other(never), program, {}).besides == told


def test_training_mode_decides_where_it_does_and_else_is_left_out():
    layer = msgspec.structs.replace(call(np.ones(2, F32)), context={"opset": {"": 22}, "training": True})
    for fails, wanted in ((lambda x: x.context.get("training", False), ("training mode",)), (lambda x: True, ())):
        assert without_relations(deciding.decided(Compiler(fails), layer, {})) == ((), wanted)
    (trait,) = [x for x in smaller.traits(layer, {}) if x.kind == "mode"]
    assert trait.held(layer, {}) and not trait.held(trait.without(layer), {})
    plain = trait.without(layer)
    assert smaller.measure(plain, {}) < smaller.measure(layer, {})
    assert plain in [step(layer) for step in smaller.structure(layer, {})]


def test_a_flag_that_must_be_given_decides_where_it_passes_turned_off():
    context = {"call": {"args": ["x0", "training", "eps"], "kwargs": []}}
    program = msgspec.structs.replace(call(np.ones(2, F32), training=True, eps=1.0), context=context)
    fails = Compiler(lambda x: x.params["training"], lambda x: set(x.params) != {"training", "eps"})
    assert deciding.decided(fails, program, {}).parameters == ("training=True",)


def test_a_dtype_that_a_told_parameter_says_is_not_told_of_the_inputs():
    program = call(np.array([1, 2]), value=Tensor.of(np.ones(1, np.float16)))

    def fails(x):
        return "float16" in dtypes(x)

    told = deciding.decided(Compiler(fails), program, {})
    assert told.parameters == ("value=float16[1]",) and "float16 inputs" not in told.besides
    of_input = call(np.ones(2, np.float16), value=Tensor.of(np.ones(1, np.float16)))
    assert "float16 inputs" in deciding.decided(Compiler(fails), of_input, {}).besides


def test_an_empty_name_is_told_where_none_passes():
    """OpenVINO leaves a NullNode in the model for what a node names `""`, and not for what it does not name."""
    program = msgspec.structs.replace(
        call(np.ones(2, "f4")), inputs=(*call(np.ones(2, "f4")).inputs, Operand("z", None))
    )
    ask = Compiler(lambda x: len(x.inputs) > 1)
    assert deciding.decided(ask, program, {}).besides == ("an empty name for z",)
    assert not deciding.decided(Compiler(lambda x: True), program, {}).besides
    unnamed = msgspec.structs.replace(
        program, outputs=()
    )  # PyTorch's and Keras's arguments have no names that are empty
    assert not [x for x in removable.conditions(unnamed, {}) if "empty name" in x.says]
