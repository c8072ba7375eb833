"""Screens move an inconsistency only for a reason they can show."""

import msgspec
import numpy as np
import pytest
from screened import SEEN, Answers, asked_of, f32, made, outcome, screen

from opera.libraries.onnx import library, references
from opera.oracle import comparison as oracle
from opera.oracle import draws, randomness, screens
from opera.oracle.opinions import Opinion
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import DISPUTED, Outcome
from opera.run import library_side
from opera.store import folders
from opera.store.folders import Folders


def test_a_wrong_output_stands_where_a_second_reference_agrees(tmp_path):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)})
    found = screen(tmp_path, manifest, instance, f32(1, 3))
    assert found == screens.Screening("", {"agreeing": "onnxruntime"})


def test_it_stands_and_is_tagged_where_none_could_be_asked(tmp_path):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(1, np.e))
    found = screen(tmp_path, manifest, instance, f32(1, 3), compiler="onnxruntime")
    assert found == screens.Screening("", {"agreeing": "openvino"}), "another is asked in place of the one under test"
    answer = [Tensor.of(f32(1, 3))]
    found = asked_of(Answers(), manifest, tmp_path, instance, answer)
    assert (found.reason, found.tags) == ("", (screens.SINGLE_REFERENCE,))


def dropout(folder):
    inputs = {"data": np.arange(1, 21, dtype=np.float32), "ratio": np.float32(0.5), "training_mode": np.array(True)}
    expected = inputs["data"] * np.float32([0, 2] * 10)
    return (*made(folder, "Dropout", inputs, expected=expected), expected)


def test_what_varies_is_random_only_where_an_operator_is(tmp_path):
    manifest, instance = made(tmp_path / "exp", "Exp", {"input": f32(0, 1)})
    found = screen(tmp_path / "exp", manifest, instance, f32(1, 3), nondeterministic=True, repeat="second inference")
    assert found.reason == "", "it is unstable"
    manifest, instance, _ = dropout(tmp_path)
    other = np.arange(1, 21, dtype=np.float32) * np.float32([2, 0] * 10)
    assert screen(tmp_path, manifest, instance, other).reason == screens.NONDETERMINISTIC


@pytest.mark.parametrize(
    ("varies", "told"), [(True, "runs of the reference differ"), (False, "9 runs give one answer")]
)
def test_whether_the_reference_itself_varies_is_seen_and_not_supposed(tmp_path, monkeypatch, varies, told):
    """Keras' posterization by one bit of one is no draw, and was told to differ from run to run."""
    manifest, instance, expected = dropout(tmp_path)
    monkeypatch.setattr(screens.declared, "declared", lambda _: None)
    monkeypatch.setattr(screens.draws, "broken", lambda *_: None)
    other = [Tensor.of(expected + np.float32(varies))]
    monkeypatch.setattr(screens, "_drawn", lambda *_: iter([other] * screens.RUNS))
    found = screen(tmp_path, manifest, instance, expected[::-1].copy(), nondeterministic=True)
    assert found.reason == screens.NONDETERMINISTIC and told in found.numbers["why"]


@pytest.mark.parametrize("varies", [True, False])
def test_where_nobody_draws_a_random_operator_is_judged_as_any_other(tmp_path, monkeypatch, varies):
    """What the reference's nine runs and the compiler's own never vary is wrong by no draw."""
    manifest, instance, expected = dropout(tmp_path)
    monkeypatch.setattr(screens.declared, "declared", lambda _: None)
    monkeypatch.setattr(screens.draws, "broken", lambda *_: None)
    monkeypatch.setattr(screens, "_drawn", lambda *_: iter([[Tensor.of(expected + varies)]] * screens.RUNS))
    monkeypatch.setattr(screens, "why_undefined", lambda *_: "it is so")
    monkeypatch.setattr(screens, "_unvarying", lambda *_: None)
    found = screen(tmp_path, manifest, instance, expected[::-1].copy(), nondeterministic=False)
    assert found.reason == (screens.NONDETERMINISTIC if varies else screens.UNDEFINED)


def test_what_varies_may_be_undefined(tmp_path):
    manifest, instance = made(tmp_path, "Cast", {"input": f32(1e20)}, params={"to": 6})
    found = screen(tmp_path, manifest, instance, np.int32([7]), nondeterministic=True)
    assert found.reason == screens.UNDEFINED


def test_what_is_undefined_excuses_nothing_beside_it(tmp_path):
    """Nor do references that differ where it is undefined dispute the rest."""
    manifest, instance = made(tmp_path, "Cast", {"input": f32(1e20, 2)}, params={"to": 6})
    assert screen(tmp_path, manifest, instance, np.int32([7, 2])).reason == screens.UNDEFINED
    found = screen(tmp_path, manifest, instance, np.int32([7, 3]))
    assert found == screens.Screening("", {"agreeing": "onnxruntime"})


@pytest.mark.parametrize("kind", ["zeros", "input", "nan"])
def test_a_random_operator_that_does_not_vary_is_a_finding(tmp_path, kind):
    manifest, instance, expected = dropout(tmp_path)
    actual = {"zeros": expected * 0, "input": np.arange(1, 21, dtype=np.float32), "nan": expected * np.float32(np.nan)}
    found = screen(tmp_path, manifest, instance, actual[kind], nondeterministic=False)
    assert (found.reason, found.tags) == ("", (randomness.CONSTANT,))
    varied = screen(tmp_path, manifest, instance, actual[kind], nondeterministic=True)
    if kind == "zeros":
        assert varied.reason == screens.NONDETERMINISTIC, (
            "it did vary from run to run, and one run of 20 elements may be so"
        )
    else:
        assert (varied.reason, varied.tags) == ("", (draws.UNLIKE,)), "it did vary, but is no dropout"


@pytest.mark.parametrize(
    ("shape", "drawn", "beyond"),
    [
        ((1,), -3350404.0, True),
        ((1,), 0.5, False),
        ((3,), 1e30, True),
        ((3,), -1.0, True),
        ((3,), 1.0, False),
        ((3,), np.inf, True),
    ],
)
def test_a_random_number_is_one_that_may_be_drawn(tmp_path, shape, drawn, beyond):
    manifest, instance = made(tmp_path, "RandomUniformLike", {"input": np.zeros(shape, np.float32)}, opset=22)
    actual = np.full(shape, 0.25, np.float32)
    actual.flat[-1] = drawn
    found = screen(tmp_path, manifest, instance, actual, nondeterministic=True)
    assert (found.reason, found.tags) == (("", (draws.UNLIKE,)) if beyond else (screens.NONDETERMINISTIC, ()))


def test_a_whole_number_need_not_be_as_far_off():
    def beyond(number, *drawn):
        return randomness.beyond([[Tensor.of(np.array([x]))] for x in drawn], [Tensor.of(np.array([number]))])

    assert "holds numbers far outside of what the reference draws" in beyond(27995, *range(9)).why and not beyond(
        -1, *range(9)
    ), "it could be of the distribution"
    assert not beyond(27995.0, 0.5, *map(float, range(8))), "Cauchy's may be"


def test_a_random_operator_that_is_the_same_in_every_run_is_a_finding(tmp_path):
    """Bernoulli: the reference's two runs differ, the compiler's three do not."""
    manifest, instance = made(tmp_path, "Bernoulli", {"input": np.full(40, 0.5, np.float32)}, opset=15)
    actual = np.float32([0, 1, 1, 1] * 10)
    found = screen(tmp_path, manifest, instance, actual, nondeterministic=False)
    assert (found.reason, found.tags) == ("", (randomness.CONSTANT,)) and "same in every run" in found.numbers["why"]
    assert screen(tmp_path, manifest, instance, actual, nondeterministic=True).reason == screens.NONDETERMINISTIC
    assert screen(tmp_path, manifest, instance, actual).reason == screens.NONDETERMINISTIC, "it was not computed again"


@pytest.mark.parametrize(("number", "kind"), [(3.2514e35, draws.RANGE), (0.5, draws.CONSTANT)])
def test_what_may_not_be_drawn_is_no_draw_that_does_not_vary(tmp_path, number, kind):
    """OpenVINO does not write a RandomUniformLike without axes: as long as memory is the same, so is what it returns."""
    manifest, instance = made(tmp_path, "RandomUniformLike", {"input": np.float32(1)})
    actual = [Tensor.of(np.float32(number))]
    runs = randomness.Runs((actual,) * 64, actual)
    seen = outcome(manifest, tmp_path, actual, nondeterministic=False)
    found = screens.screen(library, "openvino", manifest, tmp_path, instance, actual, seen, runs)
    assert found.reason == "" and found.numbers["drawn"] == kind


def test_a_few_random_elements_may_be_equal_by_chance(tmp_path):
    inputs = {"data": f32(1, 2, 3, 4), "ratio": np.float32(0.5), "training_mode": np.array(True)}
    manifest, instance = made(tmp_path, "Dropout", inputs, expected=f32(0, 4, 0, 8))
    found = screen(tmp_path, manifest, instance, f32(0, 0, 0, 0), nondeterministic=False)
    assert found.reason == screens.NONDETERMINISTIC


@pytest.mark.parametrize("actual", [np.float32([[1, 2]]), np.float64([1, 2])])
def test_a_wrong_form_is_never_random_or_undefined(tmp_path, actual):
    manifest, instance, _ = dropout(tmp_path / "random")
    assert screen(tmp_path / "random", manifest, instance, actual).reason == ""
    manifest, instance = made(tmp_path, "Cast", {"input": f32(1e20, 1)}, params={"to": 6})
    assert screen(tmp_path, manifest, instance, actual).reason == ""


@pytest.mark.parametrize("precise", [False, True])
def test_of_a_wrong_form_of_random_numbers_others_tell_the_form(tmp_path, precise):
    """`randn_like` of float16 is float32 on OpenVINO; its float64 reference draws other numbers, which were a third answer."""
    manifest, instance, expected = dropout(tmp_path)

    class Other(Answers):
        def opinions(self, *_):
            return [Opinion("other", True, [Tensor.of(np.roll(expected, 1))], precise=precise)]

    found = asked_of(Other(), manifest, tmp_path, instance, [Tensor.of(expected.astype("f8"))])
    assert found == screens.Screening("", {"agreeing": "other"})


@pytest.mark.parametrize(("tags", "told"), [((randomness.RANDOM,), False), ((), True)])
def test_of_random_numbers_of_another_form_no_values_are_told(tags, told):
    expected, actual = [Tensor.of(f32(1, 2))], [Tensor.of(np.float64([3, 4]))]
    found = randomness.compared(tags, expected, actual, ("y",), None, None)
    assert found.symptom == "dtype" and ("values" in found.message, "values_differ" in found.details) == (told, told)
    assert found.details["wrong"] == {"y": "dtype and values" if told else "dtype"}


def test_a_tie_that_is_exact_is_decided(tmp_path):
    """-2.5 / 1 is a tie, and goes to -2; -2.4999998 is none, and whoever divides by other means may err."""
    inputs = {"x": f32(-2.5, -2.4999998), "y_scale": np.float32(1), "y_zero_point": np.uint8(3)}
    manifest, instance = made(tmp_path / "tie", "QuantizeLinear", inputs)
    assert migrated.read_values(tmp_path / "tie", "expected")[0].array().tolist() == [1, 1]
    assert screen(tmp_path / "tie", manifest, instance, np.uint8([0, 1])).reason == ""
    assert screen(tmp_path / "tie", manifest, instance, np.uint8([1, 0])).reason == screens.ILL_CONDITIONED


def test_undefined_behaviour_says_why(tmp_path):
    manifest, instance = made(tmp_path, "Cast", {"input": f32(1e20)}, params={"to": 6})
    found = screen(tmp_path, manifest, instance, np.int32([7]))
    assert found.reason == screens.UNDEFINED and "out of range" in found.numbers["why"]


@pytest.mark.parametrize(
    ("actual", "agrees", "by"),
    [(f32(1, np.e), True, "onnxruntime, tvm, torch"), (f32(2.5, 2), False, "onnxruntime, tvm")],
)
def test_an_expectation_that_onnx_runtime_contradicts_is_disputed(tmp_path, actual, agrees, by):
    """PyTorch, whose operator is but an equivalent, is heard where it sides with the compiler."""
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    found = screen(tmp_path, manifest, instance, actual)
    assert found.reason == (DISPUTED if agrees else "")
    assert found.numbers["by" if agrees else "contradicts_both"] == by


@pytest.mark.parametrize(
    ("first", "further", "actual", "reason", "tags", "asked"),
    [
        ([f32(2, 2)], [f32(5, 5)], f32(5, 5), "", (), []),  # one agrees with the test: nobody else is asked
        ([f32(5, 5)], [f32(2, 2), f32(5, 5)], f32(5, 5), "", (), [0]),  # a further one does
        ([f32(5, 5)], [f32(5, 5)], f32(5, 5), DISPUTED, (), [0]),
        ([f32(5, 5)], [], f32(5, 5), DISPUTED, (), []),  # it and the compiler are two
        ([f32(9, 9)], [f32(5, 5)], f32(5, 5), DISPUTED, (), [0]),
        ([f32(5, 5)], [f32(5, 5)], f32(7, 7), "", (screens.THREE_ANSWERS,), [0]),  # the compiler is wrong by both
        ([f32(5, 5, 5)], [f32(5, 5, 5)], f32(5, 5, 5), DISPUTED, (), [0]),  # of that very form
        ([f32(5, 5)], [], f32(5, 5, 5), "", (screens.THREE_ANSWERS,), []),
    ],
)
def test_an_expectation_stands_with_the_first_that_agrees(tmp_path, first, further, actual, reason, tags, asked):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    answers = Answers(*first, further=further)
    found = asked_of(answers, manifest, tmp_path, instance, [Tensor.of(actual)])
    assert (found.reason, found.tags, answers.asked) == (reason, tags, asked)


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize(
    ("says", "reason", "tags"),
    [(f32(5, 5), DISPUTED, ()), (f32(1, np.e), "", ()), (f32(7, 7), "", (screens.SINGLE_REFERENCE,))],
)
def test_an_equivalent_of_another_library_votes_only_with_one_side(tmp_path, stated, says, reason, tags):
    """Not even a reference that opera computed falls by it alone: there may be something that it does not mean."""
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(1, np.e) if stated else None)

    class Equivalent(Answers):
        def further(self, *args):
            yield Opinion("torch", True, [Tensor.of(says)], equivalent=True)

    found = asked_of(Equivalent(), manifest, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (found.reason, found.tags) == (reason, tags)


@pytest.mark.parametrize(
    ("says", "reason", "tags"), [(f32(1, np.e), "", ()), (f32(5, 5), DISPUTED, ()), (f32(7, 7), DISPUTED, ())]
)
def test_who_runs_it_in_a_wider_dtype_confirms_and_excuses_nobody(tmp_path, says, reason, tags):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(1, np.e))
    alike, wider = (
        Opinion("other", True, [Tensor.of(f32(5, 5))]),
        Opinion("x", True, [Tensor.of(says)], confirming=True),
    )

    class Both(Answers):
        def further(self, *args):
            yield from (alike, wider)

    found = asked_of(Both(), manifest, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (found.reason, found.tags) == (reason, tags)
    assert found.numbers.get("by" if reason else screens.AGREEING) == ("other" if reason else "x")

    class Alone(Answers):
        def further(self, *args):
            yield wider

    found = asked_of(Alone(), manifest, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (found.reason, found.tags) == ("", () if reason == "" else (screens.SINGLE_REFERENCE,))


def test_pytorch_is_asked_where_no_compiler_tells(tmp_path, monkeypatch):
    """ONNX's test of MaxUnpool with `output_shape` is wrong: the compiler is right, and the test disputed."""
    pytest.importorskip("torch")
    numbers = {"X": f32(5, 6, 7, 8).reshape(1, 1, 2, 2), "I": np.int64([5, 7, 13, 15]).reshape(1, 1, 2, 2)}
    right, wrong = np.zeros((1, 1, 5, 5), np.float32), np.zeros((1, 1, 5, 5), np.float32)
    right.flat[[5, 7, 13, 15]] = f32(5, 6, 7, 8)
    wrong[0, 0, :4, :4] = [[0, 0, 0, 0], [0, 5, 0, 6], [0, 0, 0, 0], [0, 7, 0, 8]]
    monkeypatch.setattr(references, "ask_compiler", lambda name, *_: Opinion(name, True, None, "not supported"))
    inputs = {**numbers, "output_shape": np.int64([1, 1, 5, 5])}
    params = {"kernel_shape": [2, 2], "strides": [2, 2]}
    manifest, instance = made(tmp_path, "MaxUnpool", inputs, expected=wrong, params=params)
    found = screen(tmp_path, manifest, instance, right)
    assert (found.reason, found.numbers["by"], found.numbers["agrees_with_compiler"]) == (DISPUTED, "torch", True)


def test_a_sentence_of_the_documentation_outvotes_whoever_disputes(tmp_path, monkeypatch):
    """OpenVINO and TVM leave out the logarithm of ReduceLogSum where nothing is reduced, and excused each other."""
    params = {"noop_with_empty_axes": 1}
    directory = Folders.of(tmp_path).test("a" * 20)
    manifest, instance = made(directory, "ReduceLogSum", {"data": f32(10)}, f32(np.log(10)), params=params)
    details = {"output": manifest.outputs[0], "expected": float(np.log(10)), "actual": 10.0, "index": "[0]"}
    result = Outcome("inconsistent", "infer", "value", details=details)
    monkeypatch.setattr(folders, "TOLD", str(tmp_path))
    (tmp_path / "saved.msgpack").write_bytes(migrated.pack([Tensor.of(f32(10))]))
    monkeypatch.setattr(screens, "screen", lambda *_: screens.Screening(DISPUTED, {"by": "tvm"}))
    ask = library_side.ScreenRequest("onnx", "openvino", "a" * 20, instance.canonical(), "saved.msgpack", result)
    reply = library_side.screen(ask)
    assert reply.status == "kept" and "returns the Log of" in reply.numbers["settled"]
    other = msgspec.structs.replace(result, details={**details, "expected": 10.0, "actual": 2.3})
    assert library_side.screen(msgspec.structs.replace(ask, outcome=other)).reason == DISPUTED


def test_it_does_not_matter_whose_finding_it_is(tmp_path):
    """Three implementations, in any role: the compilers under test that give one answer have one verdict."""
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    for answers in ((5, 5, 2), (5, 5, 5), (5, 5, 7), (5, 7, 7), (5, 7, 9), (5, 2, 2)):
        found: dict[int, set[str]] = {}
        for place, under_test in enumerate(answers):
            others = [f32(x, x) for other, x in enumerate(answers) if other != place]
            for order in (others, others[::-1]):
                if under_test != 2:
                    library = Answers(order[0], further=order[1:])
                    actual = [Tensor.of(f32(under_test, under_test))]
                    shown = asked_of(library, manifest, tmp_path, instance, actual)
                    found.setdefault(under_test, set()).add(shown.reason)
        assert all(len(reasons) == 1 for reasons in found.values()), answers


def test_rounding_agrees_among_opinions(tmp_path):
    """A sum that cancels to nothing in the reference and nearly so elsewhere: the implementations agree."""
    inputs = {"A": np.ones((1, 2), np.float32), "B": np.ones((2, 3), np.float32)}
    manifest, instance = made(tmp_path, "MatMul", inputs, expected=f32(100, 0, 50))
    actual = [Tensor.of(f32(100, 7, 50))]
    found = asked_of(Answers(f32(100, 3e-5, 50)), manifest, tmp_path, instance, actual)
    assert found == screens.Screening("", {"agreeing": "first 0"})


@pytest.mark.parametrize(("computes_in", "confirmed"), [({"float64": "float32"}, True), ({}, False)])
def test_who_computes_in_a_narrower_dtype_by_design_disputes_nothing_within_that(tmp_path, computes_in, confirmed):
    """OpenVINO's LpPool of float64 is right in float32; TVM's, which is wrong, was set aside for it."""
    x = np.arange(1.0, 9.0)
    manifest, instance = made(tmp_path, "Identity", {"input": x})

    class Narrow(Answers):
        @staticmethod
        def opinions(*args):
            rounded = [Tensor.of(x * (1 + 2e-6))]
            return [*library.opinions(*args)[:1], Opinion("openvino", True, rounded, computes_in=computes_in)]

    found = asked_of(Narrow(), manifest, tmp_path, instance, [Tensor.of(x * 1.5)])
    assert (found.reason, screens.SINGLE_REFERENCE in found.tags) == ("", not confirmed)


@pytest.mark.parametrize(("off", "confirmed"), [(1e-6, False), (0.5, True)])
def test_who_computes_in_a_narrower_dtype_confirms_nothing_that_both_are_within(tmp_path, off, confirmed):
    """ONNX's evaluator has a sixth in float32, TVM in float64: OpenVINO, whose numbers are of float32, knows no better."""
    x = np.arange(1.0, 9.0)
    manifest, instance = made(tmp_path, "Identity", {"input": x})

    class Narrow(Answers):
        @staticmethod
        def opinions(*args):
            return [Opinion("openvino", True, [Tensor.of(x * (1 + 1e-7))], computes_in={"float64": "float32"})]

    found = asked_of(Narrow(), manifest, tmp_path, instance, [Tensor.of(x * (1 + off))])
    assert (found.numbers.get("agreeing") == "openvino") is confirmed
    assert (screens.SINGLE_REFERENCE in found.tags) is not confirmed


def test_compilers_that_leave_out_the_same_do_not_dispute(tmp_path):
    """Both take alpha for its default, as the compiler does: the expectation is not to blame."""
    x = f32(-1, 2)
    manifest, instance = made(tmp_path, "LeakyRelu", {"X": x}, f32(-0.5, 2), params={"alpha": 0.5})

    class Forgetful(Answers):
        opinions = staticmethod(
            lambda *args: [*library.opinions(*args)[:1], Opinion("other", True, [Tensor.of(f32(-0.01, 2))])]
        )
        lacking = staticmethod(library.lacking)

    found = asked_of(Forgetful(), manifest, tmp_path, instance, [Tensor.of(f32(-0.01, 2))])
    assert (found.reason, found.tags, found.numbers["computes_as"]) == ("", (screens.LEFT_OUT,), "without alpha")


def test_compilers_that_take_a_fraction_for_an_integer_do_not_dispute(tmp_path):
    """Half of an even number is an integer: no compiler is right that takes alpha and beta for 0."""
    inputs = {"A": np.array([[2, 4]]), "B": np.array([[3], [5]]), "C": np.array([[4]])}
    manifest, instance = made(tmp_path, "Gemm", inputs, np.array([[15]]), params={"alpha": 0.5, "beta": 0.5})

    class Whole(Answers):
        opinions = staticmethod(
            lambda *args: [*library.opinions(*args)[:1], Opinion("other", True, [Tensor.of(np.array([[0]]))])]
        )
        lacking = staticmethod(library.lacking)

    found = asked_of(Whole(), manifest, tmp_path, instance, [Tensor.of(np.array([[0]]))])
    assert (found.reason, found.tags, found.numbers["computes_as"]) == (
        "",
        (screens.LEFT_OUT,),
        "with alpha = 0.0, with beta = 0.0",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_answer_of_another_dtype_disputes_no_values(tmp_path, dtype):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)})
    found = asked_of(Answers(np.array([5, 5], dtype)), manifest, tmp_path, instance, [Tensor.of(f32(7, 7))])
    assert found.reason == "" and (screens.SINGLE_REFERENCE in found.tags) is (dtype is np.float32)


def test_a_third_answer_excuses_nobody_and_leaves_a_computed_reference_without_a_witness(tmp_path):
    """OpenVINO's RoiAlign, which makes 0 of a negative maximum, was set aside for ONNX Runtime's, which takes another one."""
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)})
    found = asked_of(Answers(f32(5, 5)), manifest, tmp_path, instance, [Tensor.of(f32(7, 7))])
    assert (found.reason, found.tags) == ("", (screens.THREE_ANSWERS, screens.SINGLE_REFERENCE))
    found = asked_of(Answers(f32(7, 7)), manifest, tmp_path, instance, [Tensor.of(f32(7, 7))])
    assert found.reason == DISPUTED


def test_who_computes_what_onnx_s_own_evaluator_does_is_told_so(tmp_path):
    """ONNX Runtime's maximum of RoiAlign is that of weighted corners, as the evaluator's, which opera mends."""
    given = {
        "X": np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6) % 7,
        "rois": f32(0, 0, 3.3, 3.3).reshape(1, 4),
        "batch_indices": np.int64([0]),
    }
    params = {"mode": "max", "output_height": 2, "output_width": 2, "sampling_ratio": 2}
    manifest, instance = made(tmp_path, "RoiAlign", given, params=params)
    inputs = migrated.read_values(tmp_path, "inputs")
    [stock], [expected] = library.unmended(manifest, tmp_path, inputs), migrated.read_values(tmp_path, "expected")
    assert stock != expected
    nobody, other = Answers(), Tensor.of(expected.array() + 1)
    nobody.unmended = library.unmended
    assert screens.UNMENDED in asked_of(nobody, manifest, tmp_path, instance, [stock]).tags
    assert screens.UNMENDED not in asked_of(nobody, manifest, tmp_path, instance, [other]).tags


def test_values_that_a_schema_quotes_are_tried(tmp_path):
    manifest, _ = made(tmp_path, "Pad", {"data": f32(1, 2, 3), "pads": np.array([1, 1])}, params={"mode": "edge"})
    tried = {x.name for x in library.lacking(manifest, tmp_path, migrated.read_values(tmp_path, "inputs"), "")}
    assert {"without mode", "with mode = 'reflect'", "with mode = 'wrap'", "as of opset 11"} <= tried


@pytest.mark.parametrize("actual", [f32(7, 8), f32(1, 2, 3), f32(np.nan, 2)])
def test_three_answers_leave_the_finding(tmp_path, actual):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    found = screen(tmp_path, manifest, instance, actual)
    assert (found.reason, found.tags) == ("", (screens.THREE_ANSWERS,)), "nearer to the test, or wrong in another way"


def test_the_handlers_answer_whatever_they_are_asked(tmp_path, monkeypatch):
    files = Folders.of(tmp_path)
    monkeypatch.setattr(folders, "TOLD", str(tmp_path))
    instance = Instance("onnx", "Exp", {}, (Operand("input", Tensor.of(f32(0, 1))),), ("y",), {"opset": {"": 21}})
    import msgspec

    good = msgspec.json.encode(Captured(instance, SEEN).form())
    bad = msgspec.json.encode(Captured(msgspec.structs.replace(instance, operator="Nope"), SEEN).form())
    requests = [
        library_side.WrapRequest("onnx", "a" * 20, good),
        library_side.WrapRequest("onnx", "b" * 20, bad),
        library_side.WrapRequest("onnx", "c" * 20, b"{"),
        library_side.WrapRequest("none", "d" * 20, good),
    ]
    replies = library_side.wrap_batch(requests)
    assert [x.status for x in replies] == ["made", "invalid", "invalid", "error"]
    assert all(x.reason for x in replies[1:]) and replies[0].artefacts == ("onnx",)

    manifest = migrated.read_manifest(files.test("a" * 20))
    actual = [Tensor.of(f32(1, 3))]
    result = outcome(manifest, files.test("a" * 20), actual)
    migrated.write(tmp_path / "saved", manifest, actual, [], {})  # inputs.msgpack stands in for saved outputs
    ask = library_side.ScreenRequest("onnx", "openvino", "a" * 20, instance.canonical(), "saved/inputs.msgpack", result)
    assert library_side.screen(ask).status == "kept"
    gone = msgspec.structs.replace(ask, actual="nowhere.msgpack")
    assert library_side.screen(gone).status == "error"


def test_a_computed_reference_falls_by_any_contradiction(tmp_path):
    """Before opset 13, Softmax flattens to two dimensions; the evaluator knows the newer meaning only."""
    pytest.importorskip("openvino")
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    manifest, instance = made(tmp_path, "Softmax", {"input": x}, opset=11)
    flat = np.exp(x.reshape(2, 4) - x.reshape(2, 4).max(1, keepdims=True))
    actual = (flat / flat.sum(1, keepdims=True)).reshape(x.shape).astype(np.float32)
    found = screen(tmp_path, manifest, instance, actual, compiler="onnxruntime")
    assert (found.reason, found.numbers["agrees_with_compiler"]) == (DISPUTED, True)


class Precise:
    """A library whose only independent reference computes the same in higher precision."""

    def __init__(self, *numbers):
        self.outputs = [Tensor.of(f32(*numbers))]

    def undefined(self, instance, expected):
        return None

    def opinions(self, manifest, directory, inputs, besides):
        return [Opinion("float64", True, self.outputs, precise=True)]


@pytest.mark.parametrize(
    ("exact", "actual", "reason"),
    [
        ((1, 3), (1, 3), DISPUTED),  # the reference is off, the compiler is right
        ((1, 2.6), (1, 3), DISPUTED),  # both are off, the compiler by less
        ((1, 2.4), (1, 3), ""),  # both are off, the compiler by more
        ((1, 2), (1, 3), ""),  # the reference is right
        ((1, 2.00012), (1, 2.00022), screens.ILL_CONDITIONED),  # both are as near as the tolerance asks
        ((1, 2.0001), (1, 2.0003), ""),
        ((9, 2), (1, 3), ""),  # where the compiler agrees with the reference, it does not matter who is right
        ((1, 2), (1, np.nan), ""),
        ((1, np.inf), (1, np.inf), DISPUTED),
        ((1, np.inf), (1, 3), ""),
    ],
)
def test_a_more_precise_reference_speaks_for_who_is_nearer(tmp_path, exact, actual, reason):
    manifest, instance = made(tmp_path, "Floor", {"X": f32(1, 2)})
    manifest = msgspec.structs.replace(manifest, tags=())  # with its dtype's tolerance; a perturbation moves nothing
    answer = [Tensor.of(f32(*actual))]
    result = outcome(manifest, tmp_path, answer)
    found = screens.screen(Precise(*exact), "tvm", manifest, tmp_path, instance, answer, result)
    assert found.reason == reason
    if reason:
        assert found.numbers["by"] == "float64"
        assert found.numbers["compiler_deviation"] <= found.numbers["reference_deviation"]
    else:
        agrees = not oracle.compare([Tensor.of(f32(1, 2))], [Tensor.of(f32(*exact))], ("y",), None, None).symptom
        assert found.numbers == ({"agreeing": "float64"} if agrees else {"contradicts_both": "float64"})
        assert found.tags == (() if agrees else (screens.THREE_ANSWERS,))


def test_a_more_precise_reference_says_nothing_of_another_form(tmp_path):
    manifest, instance = made(tmp_path, "Floor", {"X": f32(1, 2)})
    answer = [Tensor.of(f32(1, 2, 3))]
    result = outcome(manifest, tmp_path, answer)
    assert screens.screen(Precise(1, 3), "tvm", manifest, tmp_path, instance, answer, result).reason == ""


@pytest.mark.parametrize(
    ("further", "reason", "agrees"),
    [
        ([f32(2, 2)], "", None),  # a third opinion says that the expectation stands
        ([], DISPUTED, False),  # nobody can be asked
        ([f32(5, 5)], DISPUTED, True),  # the compiler is not alone
        ([f32(7, 7)], "", None),  # three answers, or four: nobody is excused by who computes something else
    ],
)
def test_a_test_that_was_disputed_when_it_was_generated_needs_a_third_opinion(tmp_path, further, reason, agrees):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    untagged = asked_of(Answers(), manifest, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (untagged.reason, untagged.tags) == ("", (screens.SINGLE_REFERENCE,))
    tagged = msgspec.structs.replace(manifest, tags=(*manifest.tags, DISPUTED))
    found = asked_of(Answers(*further), tagged, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (found.reason, found.numbers.get("agrees_with_compiler")) == (reason, agrees)
    if not further:
        assert asked_of(Answers(), tagged, tmp_path, instance, [Tensor.of(np.array([5, 5]))]).reason == "", "a dtype"


def test_who_disputed_a_test_by_its_own_answer_is_not_excused_by_that(tmp_path):
    """ONNX Runtime loses texts that a Loop scans; nobody else runs it, and its own answer was why the test was disputed."""
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)}, expected=f32(2, 2))
    tagged = msgspec.structs.replace(manifest, tags=(*manifest.tags, DISPUTED))
    answers = Answers()
    answers.DISPUTING = "any"
    found = asked_of(answers, tagged, tmp_path, instance, [Tensor.of(f32(5, 5))])
    assert (found.reason, found.tags) == ("", (screens.SINGLE_REFERENCE,))
    answers.DISPUTING = "onnxruntime"
    assert asked_of(answers, tagged, tmp_path, instance, [Tensor.of(f32(5, 5))]).reason == DISPUTED
    assert library.DISPUTING == "onnxruntime"
