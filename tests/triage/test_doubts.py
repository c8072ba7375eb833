"""What there are doubts about, and what settles them."""

import msgspec
import numpy as np
import pytest

from opera.oracle.screens import SINGLE_REFERENCE, UNSCREENED
from opera.programs.program import Call, Graph, Instance, Operand
from opera.programs.values import Sequence, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, NEWER, Outcome
from opera.store.rows import Verdict
from opera.triage.doubts import (
    UNTRIED,
    Standing,
    contradicted,
    documented,
    doubts,
    right_as_float32,
    spoken_of,
    stated,
    unexplained,
    unreduced,
)
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.sentence import READS_AS_REFUSAL

GOOD = {"tags": (), "confirmed": 1, "alone": True, "settled": True}


def told(*tags: str, **given) -> list[str]:
    return list(doubts(Standing(**{**GOOD, "tags": tags, "settled": False, **given})))


def test_what_was_confirmed_and_has_no_such_tag_is_ready():
    assert told() == [] and told("passes-as-constants") == []
    assert told(shown=(2, 3)) == told(shown=(1, 1)) == [] and told(shown=(0, 1))
    assert len(told(READS_AS_REFUSAL, refused="as TorchScript")) == 1


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("newer opset", {"tags": (NEWER,)}),
        ("read as a refusal", {"tags": (READS_AS_REFUSAL,)}),
        ("no other implementation", {"tags": (SINGLE_REFERENCE,)}),
        ("fresh process", {"confirmed": 0}),
        ("only after others", {"alone": False}),
        ("others fail after it", {"alone": False, "spoils": True}),
        ("only after others", {"alone": False, "large": "it is not reduced"}),
        ("not reduced", {"large": "it is not reduced"}),
        ("59 near programs fail, 2 pass", {"unexplained": (59, 2)}),
        ("9 near programs fail, none passes, and none that fails is an ordinary call", {"unexplained": (9, 0)}),
        ("onnxruntime 1.31 fails on it, too", {"dying": "onnxruntime 1.31"}),
        ("says that its input is not valid", {"invalid": True}),
        ("another 1 fails on it, too", {"invalid": True, "dying": "another 1"}),
        ("as TorchScript the compiler says that it does not support", {"refused": "as TorchScript"}),
        ("its script showed it in 1 of 3 runs", {"shown": (1, 3)}),
        ("a limit that the compiler states, so it may be closed as known: 32 bits", {"limit": "32 bits"}),
        ("such as rounding, was not asked", {"tags": (UNSCREENED,)}),
        ("its exporter wrote wrongly", {"written": True}),
        ("the library itself cannot make a SavedModel of it either", {"unexported": "a SavedModel"}),
        ("it may be closed as rounding", {"off": "2 %"}),
        ("made of MIRROR_PAD (pad), wrong by itself", {"parts": ("MIRROR_PAD (pad)",)}),
        ("asked again, it passes", {"gone": "it passes"}),
        ("a test of it fails in another way without what decides", {"divided": True}),
        ("without input mask the compiler says that it does not support", {"behind": "input mask"}),
    ],
)
def test_each_doubt_is_told_in_words(words, given):
    found = told(*given.pop("tags", ()), **given)
    assert len(found) == 1 and words in found[0]


def test_what_is_newer_than_the_compiler_knows_is_named_and_that_nobody_knows_it_is_no_further_doubt():
    [found] = told(NEWER, SINGLE_REFERENCE, needs="Mod 28, where the newest that it ships is 13")
    assert "needs Mod 28" in found


def test_what_is_right_elsewhere_or_in_float32_settles_what_one_reference_alone_expects():
    assert told(SINGLE_REFERENCE, settled=True) == []
    assert right_as_float32(("is_causal=1", "bfloat16 inputs")) and right_as_float32(["float64 inputs"])
    assert not right_as_float32(["integer inputs", "float8_e4m3fn inputs", "input bfloat16"])


def test_a_sentence_on_the_very_value_that_decides_speaks_of_it():
    call = Instance(
        "onnx", "ReduceL1", {"noop_with_empty_axes": 1, "keepdims": 1}, (), ("reduced",), {"opset": {"": 18}}
    )
    wrong = Outcome(INCONSISTENT, "infer", "value", "no", details={"output": "reduced", "expected": 3, "actual": -3})
    assert spoken_of(call, ("noop_with_empty_axes=1", "a negative number in an input"), wrong)
    assert not spoken_of(call, ("a negative number in an input",), wrong) and not spoken_of(call, (), wrong)


def test_what_is_documented_of_the_value_that_decides_settles_a_shape():
    call = Instance("onnx", "RNN", {"layout": 1}, (), ("Y", "Y_h"), {"opset": {"": 22}})
    wrong = Outcome(INCONSISTENT, "infer", "shape", "no", details={"output": "Y_h", "expected": "(2, 1)"})
    assert stated(call, ("layout=1",), wrong)
    assert not stated(call, ("hidden_size=1",), wrong) and not stated(call, (), wrong)
    assert not stated(call, ("layout=1",), msgspec.structs.replace(wrong, symptom="value"))
    assert not stated(call, ("layout=1",), msgspec.structs.replace(wrong, details={"output": "Y_c"}))


@pytest.mark.parametrize(
    ("finished", "says"),
    [
        (None, "it is not reduced: `opera reduce F1` goes on"),
        (False, "it is not reduced to the end: `opera reduce F1` goes on"),
        (True, ""),
    ],
)
def test_what_may_become_smaller_is_not_ready(finished, says):
    assert unreduced("F1", finished) == says


@pytest.mark.parametrize(
    ("explained", "told", "near", "wanted"),
    [
        (True, (), (9, 0), None),
        (True, (), (9, 2), (9, 2)),
        (True, ("k=2",), (3, 8), None),
        (True, ("k=2",), (0, 2), (0, 2)),
        (True, ("k=2",), (0, 0), None),
        (False, (), (9, 1), (9, 1)),
        (False, ("k=2",), (9, 1), None),
        (False, ("k=2",), (9, 3), (9, 3)),
        (False, ("k=2",), (3, 8), (3, 8)),
    ],
)
def test_what_is_told_and_not_all_will_do_where_most_near_programs_fail(explained, told, near, wanted):
    found = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), near=near, explained=explained)
    assert unexplained(found, told) == wanted


def test_that_programs_pass_without_what_is_told_speaks_for_it():
    found = Reduction("F", "e", "f", "v", "t", {}, Outcome("inconsistent"), near=(9, 20), explained=False, despite=2)
    assert unexplained(found, ("k=2",)) is None
    assert unexplained(msgspec.structs.replace(found, despite=9), ("k=2",)) == (9, 20)


@pytest.mark.parametrize(
    ("verdict", "despite", "tried", "wanted"),
    [
        (INCONSISTENT, 0, (12, 1, 1, 10), ""),
        (INCONSISTENT, 0, (12, 2, 0, 10), "2 of 24 programs that have it pass"),
        ("crash", 0, (12, 1, 0, 10), "1 of 23 programs that have it pass"),
        (INCONSISTENT, 2, (7, 0, 0, 7), "2 of 19 programs that have it pass"),
        (INCONSISTENT, None, (6, 0, 2, 4), ""),
        (INCONSISTENT, 0, (6, 0, 4, 5), "4 of 9 that lack it fail"),
        (INCONSISTENT, 1, (3, 4, 5, 3), "5 of 18 programs that have it pass and 5 of 8 that lack it fail"),
    ],
)
def test_programs_may_speak_against_what_is_told(verdict, despite, tried, wanted):
    of = Reduction("F", "e", "f", "v", "t", {}, Outcome(verdict), near=(10, 9), despite=despite, tried=tried)
    said = contradicted(of, ("k=2",))
    assert said.partition(": ")[2] == wanted
    assert bool(contradicted(of, ())) == bool(said)


@pytest.mark.parametrize(
    ("tried", "near", "told", "wanted"),
    [
        (
            (0, 0, 0, 0),
            (9, 6),
            ("k=2",),
            "0): `opera reduce F --seconds 180` may ask more",
        ),
        (
            (1, 0, 0, 2),
            (9, 6),
            ("k=2",),
            "3): `opera reduce F --seconds 180` may ask more",
        ),
        ((4, 0, 0, 4), (9, 6), ("k=2",), ""),
        ((0, 0, 0, 0), (9, 0), ("k=2",), ""),  # all fail
        ((0, 0, 0, 0), (9, 6), (), ""),  # that nothing is told is another doubt
    ],
)
def test_what_was_not_put_to_the_test_is_a_guess(tried, near, told, wanted):
    call = Instance("onnx", "Relu", {}, (), ("y",), {})
    held = captured(call).form()
    of = Reduction("F", "e", "f", "v", "t", held, Outcome(INCONSISTENT), near=near, despite=0, tried=tried)
    said = contradicted(of, told)
    assert said.endswith(wanted) and said.startswith(UNTRIED if wanted else "") and bool(said) is bool(wanted)
    several = Graph("onnx", (), (Call("Relu", {}, (), ("y",), {}), Call("Abs", {}, (), ("z",), {})), ("z",))
    assert not contradicted(msgspec.structs.replace(of, captured=captured(several).form()), told)  # none is drawn


@pytest.mark.parametrize(
    ("says", "held"),
    [
        ("start=0 or 3", True),
        ("k=1, 2.5 or -3", True),
        ("dim=0 or 1", False),
        ("mode='a' or 'b'", False),
        ("k=1", False),
    ],
)
def test_numbers_that_are_told_one_by_one_have_something_in_common_that_is_not_known(says, held):
    of = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), near=(10, 9), despite=0, tried=(9, 0, 0, 9))
    said = contradicted(of, (says,))
    assert bool(said) is held and (not held or says in said)


def test_what_crashes_and_passes_though_it_has_all_that_is_told_does_not_do_so_by_chance():
    found = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), near=(43, 25), explained=False, despite=1)
    assert unexplained(found, ("input zero_point",)) == (43, 25)


@pytest.mark.parametrize(("usual", "wanted"), [(None, None), (True, None), (False, (9, 0))])
def test_where_nothing_is_told_an_ordinary_call_must_fail(usual, wanted):
    found = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), near=(9, 0), usual=usual)
    assert unexplained(found, ()) == wanted
    assert unexplained(found, ("a 0-d input",)) is None


@pytest.mark.parametrize(
    "given", [{"beyond": "index is uint8, where int64 is documented"}, {"arising": "Minimum () gives 2, not nan"}]
)
def test_what_is_not_documented_is_doubtful_and_told(given):
    assert not list(doubts(Standing(**GOOD)))
    [told] = doubts(Standing(**GOOD, **given))
    assert next(iter(given.values())) in told


def test_what_a_model_should_return_may_meet_a_documented_limit():
    """`keras.ops.polar` is given floats, and should return complex numbers, of which OpenVINO has none."""
    call = Instance("keras", "keras.ops.polar", {}, (Operand("abs_", Tensor.of(np.ones(1, "f4"))),), (), {})
    shown = Verdict("t", "openvino-keras", "saved-model", "e", Outcome(CRASH, "load", "OpConversionFailure", "no"))
    for dtype, told in (("complex64", True), ("float32", False)):
        limit = documented(call, shown, lambda dtype=dtype: [Tensor.of(np.ones(1, dtype))])
        assert ("a model takes and returns pairs of floats" in limit) is told
    assert not documented(call, shown)
    wrong = msgspec.structs.replace(shown, outcome=Outcome(INCONSISTENT, "infer", "value", "4, not 3"))
    assert not documented(call, wrong, lambda: [Tensor.of(np.array([2**40]))]), "another output may be the wrong one"


@pytest.mark.parametrize(("given", "limited"), [({"dropout_p": 1.0}, True), ({"dropout_p": 0.0}, False), ({}, False)])
def test_what_openvino_leaves_out_of_attention_is_documented_of_that_parameter_alone(
    given: dict[str, Value], limited: bool
) -> None:
    tensor = Tensor.of(np.ones((1, 2, 2), "f4"))
    inputs = tuple(Operand(x, tensor) for x in ("query", "key", "value"))
    call = Instance("torch", "torch.nn.functional.scaled_dot_product_attention", given, inputs, (), {})
    shown = Verdict("t", "openvino-torch", "torchscript", "e", Outcome(INCONSISTENT, "infer", "value", "4, not 3"))
    assert ("training" in documented(call, shown)) is limited


@pytest.mark.parametrize(
    ("deciding", "limited"), [(("s is a graph input",), True), (("n is a graph input",), False), ((), False)]
)
def test_a_sequence_that_tvm_takes_for_a_tensor_meets_its_limit_where_that_decides(
    deciding: tuple[str, ...], limited: bool
) -> None:
    """SequenceLength of a model's own input was filed as a fault of SequenceLength."""
    held = Sequence("float32", (Tensor.of(np.ones(1, "f4")),))
    given = (Operand("s", held), Operand("n", Tensor.of(np.array(0))))
    call = Instance("onnx", "SequenceAt", {}, given, (), {})
    shown = Verdict(
        "t", "tvm-onnx", "inputs", "e", Outcome(CRASH, "load", "TypeError", "object of type 'Var' has no len()")
    )
    assert ("taken for a tensor" in documented(call, shown, deciding=deciding)) is limited


def test_what_is_cut_from_a_float_that_rounding_moves_is_doubtful():
    [told] = doubts(Standing(**GOOD, cut="1, from which rounding leads to either side of 1"))
    assert told.startswith("as a float it is 1, from which rounding")


@pytest.mark.parametrize(("rounded", "doubtful"), [((93, 48), True), ((3, 3), False), ((0, 0), False)])
def test_what_is_mostly_rounding_in_programs_like_it_is_doubtful(rounded, doubtful):
    """OpenVINO's `floor_divide` multiplies by a reciprocal: -0.640625 by itself is 0.99999994, and 0."""
    found = list(doubts(Standing(**GOOD, rounded=rounded)))
    assert bool(found) is doubtful and all("93 are wrong by rounding alone" in x for x in found)


def test_an_exporter_that_is_asked_for_an_older_opset_may_be_asked_for_a_newer() -> None:
    """PyTorch writes opset 20, whose MaxPool takes no bfloat16; that of opset 22 does."""
    [told] = doubts(Standing(**GOOD, older="opset_version is below 22"))
    assert told.startswith("opset_version is below 22, and its file is valid by a newer opset")


@pytest.mark.parametrize(
    ("operations", "parts", "told"), [(189, (), "189 operations"), (13, (), ""), (189, ("PAD",), "PAD, wrong")]
)
def test_what_becomes_many_operations_is_a_riddle(operations: int, parts: tuple[str, ...], told: str) -> None:
    """OpenVINO folds a constant of nothing in MelSpectrogram, and has no fault in what that is called for."""
    found = list(doubts(Standing(**GOOD, operations=operations, parts=parts)))
    assert len(found) == bool(told) and all(told in x for x in found)


def test_a_format_without_complex_numbers_is_asked_to_refuse_them() -> None:
    """tf2onnx writes a Sinh of complex numbers, which ONNX has not, nor has any runtime."""
    [told] = doubts(Standing(**GOOD, foreign="complex64"))
    assert told.startswith("it is given complex64") and told.endswith("all that may be asked")
