"""Rounding explains a difference only where it shows it."""

import msgspec
import numpy as np
import pytest
from screened import Answers, asked_of, f32, made, outcome, screen

from opera.libraries.onnx import library
from opera.oracle import conditioning, screens
from opera.oracle.opinions import Opinion
from opera.programs import migrated
from opera.programs.values import Optional, Sequence, Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome


def test_an_ill_conditioned_result_is_measured_against_the_reference(tmp_path):
    manifest, instance = made(tmp_path, "Tan", {"input": f32(np.pi / 2, 0.5)})
    right = migrated.read_values(tmp_path, "expected")[0].array()
    off = right * np.array([1.5, 1.0], np.float32)
    found = screen(tmp_path, manifest, instance, off)
    assert found.reason == screens.ILL_CONDITIONED
    assert found.numbers["reference_movement"] >= found.numbers["compiler_deviation"] > 0
    wrong = right * np.array([1.0, 1.5], np.float32)  # tan is tame there: nothing excuses it
    assert screen(tmp_path, manifest, instance, wrong).reason == ""
    both = right * np.array([1.5, 1.5], np.float32)
    assert screen(tmp_path, manifest, instance, both).reason == "", "a wild element does not excuse a tame one"


class Tangent:
    """A library whose one operator takes any float and returns the tangent in float64."""

    def undefined(self, instance, expected):
        return None

    def opinions(self, manifest, directory, inputs, besides):
        return [Opinion("eager", False, [Tensor.of(np.tan(inputs[0].array().astype("float64")))])]


@pytest.mark.parametrize(("given", "reason"), [("float32", ""), ("float64", screens.ILL_CONDITIONED)])
def test_an_input_that_is_coarser_than_the_output_excuses_no_coarse_arithmetic(tmp_path, given, reason):
    value = np.array([np.pi / 2], given)
    manifest, instance = made(tmp_path, "Tan", {"input": value})
    right = np.tan(value.astype("float64"))
    (tmp_path / "expected.msgpack").write_bytes(migrated.pack([Tensor.of(right)]))
    actual = [Tensor.of(right * (1 + 1e-5))]
    seen = Outcome(INCONSISTENT, "infer", "value", details={})
    assert screens.screen(Tangent(), "any", manifest, tmp_path, instance, actual, seen).reason == reason


def test_a_number_that_no_rounding_gives_is_not_excused_by_an_infinity_that_one_does(tmp_path):
    """OpenVINO has the largest float32 in place of an infinity of float64: near 1 Atanh is NaN, infinity or 19."""
    manifest, instance = made(tmp_path, "Atanh", {"input": np.float64([1.0, 0.5])})
    expected = migrated.read_values(tmp_path, "expected")[0].array()
    assert np.isinf(expected[0])
    for number, reason in ((19.0, screens.ILL_CONDITIONED), (np.nan, screens.ILL_CONDITIONED), (3.4e38, "")):
        assert screen(tmp_path, manifest, instance, np.array([number, expected[1]])).reason == reason


def test_an_operator_that_rounds_nothing_is_never_ill_conditioned(tmp_path):
    manifest, instance = made(tmp_path, "Floor", {"X": f32(3.0, 1.5)})
    assert screen(tmp_path, manifest, instance, f32(2.0, 1.0)).reason == ""


def test_what_is_left_out_is_no_rounding(tmp_path):
    """Of a narrow dtype rounding would explain an answer that is that of a program without its bias: it is no rounding."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((4, 64), (64, 3)))
    c = np.full((3,), 0.06, np.float16)
    inputs = {"A": a, "B": b, "C": c}
    exact = a.astype(np.float64) @ b.astype(np.float64)
    manifest, instance = made(tmp_path, "Gemm", inputs, expected=(exact + c).astype(np.float16))

    class Own(Answers):
        opinions = staticmethod(library.opinions)
        lacking = staticmethod(library.lacking)

    found = asked_of(Own(), manifest, tmp_path, instance, [Tensor.of(exact.astype(np.float16))])
    assert (found.reason, found.tags, found.numbers["computes_as"]) == ("", (screens.LEFT_OUT,), "without C")
    rounded = (exact + c + rng.choice([-0.05, 0.05], exact.shape)).astype(np.float16)
    assert asked_of(Own(), manifest, tmp_path, instance, [Tensor.of(rounded)]).reason == screens.ILL_CONDITIONED


@pytest.mark.parametrize(("base", "off", "excused"), [(600, 3, False), (np.float16(600), 3.5, True)])
def test_a_narrow_exponent_excuses_no_integers(tmp_path, base, off, excused):
    """Integers are computed in no dtype of the exponent's; numbers of that dtype may be."""
    inputs = {"X": np.array([base]), "Y": np.array([1], np.float16)}
    manifest, instance = made(tmp_path, "Pow", inputs)

    class Own(Answers):
        opinions = staticmethod(library.opinions)

    found = asked_of(Own(), manifest, tmp_path, instance, [Tensor.of(np.array([base - off], np.asarray(base).dtype))])
    assert (found.reason == screens.ILL_CONDITIONED) == excused


def test_what_cancels_may_keep_the_rounding_of_its_terms(tmp_path):
    exact = f32(100, 0, 50)
    inputs = {"A": np.ones((1, 2), np.float32), "B": np.ones((2, 3), np.float32)}
    manifest, instance = made(tmp_path, "MatMul", inputs, expected=exact)
    found = screen(tmp_path, manifest, instance, exact + f32(0, 3e-5, 0))
    assert found.reason == screens.ILL_CONDITIONED
    assert screen(tmp_path, manifest, instance, exact + f32(0, 3e-3, 0)).reason != screens.ILL_CONDITIONED


def test_a_wrong_shape_is_not_ill_conditioned_but_may_be_disputed(tmp_path):
    manifest, instance = made(tmp_path, "Tan", {"input": f32(np.pi / 2)})
    assert screen(tmp_path, manifest, instance, f32(1, 2)).reason == ""


def test_perturbation_is_seeded_small_and_leaves_the_rest_alone():
    values = f32(0.0, -0.0, 1.0, -1e30, np.inf, np.nan, 1e-45)
    tensor = Tensor.of(values)

    def nudge(value):
        return conditioning.perturb(value, np.random.Generator(np.random.PCG64(1)))

    moved = nudge(tensor).array()
    assert nudge(tensor) == nudge(tensor) != tensor
    np.testing.assert_array_equal(moved[[0, 1, 4, 5, 6]], values[[0, 1, 4, 5, 6]])
    np.testing.assert_allclose(moved[2:4], values[2:4], rtol=4 * 2.0**-22)
    assert np.signbit(moved[1])
    whole = Tensor.of(np.array([1, 2]))
    assert nudge(whole) is whole and nudge(Optional("float32", None)) == Optional("float32", None)
    assert nudge(Sequence("float32", (tensor,))).items[0] != tensor
    for dtype in ("float16", "float64"):
        ones = Tensor.of(np.ones(100, dtype))
        assert 0 < np.abs(nudge(ones).array().astype(float) - 1).max() <= 4 * np.finfo(dtype).eps
    bits = Tensor.of(np.full(100, 0x3F80, np.uint16), "bfloat16")
    assert 0 < np.abs(nudge(bits).numbers() - 1).max() <= 2.0**-7


class Moving:
    """A library whose only reference moves a lot, except where the compiler is off."""

    def undefined(self, instance, expected):
        return None

    def opinions(self, manifest, directory, inputs, besides):
        shift = 0.0 if inputs == migrated.read_values(directory, "inputs") else 100.0
        return [Opinion("other", False, [Tensor.of(f32(1 + shift, np.e))])]


def test_movement_elsewhere_explains_nothing(tmp_path):
    manifest, instance = made(tmp_path, "Exp", {"input": f32(0, 1)})
    for actual, reason in ((f32(1, 3), ""), (f32(50, np.e), screens.ILL_CONDITIONED)):
        values = [Tensor.of(actual)]
        result = outcome(manifest, tmp_path, values)
        found = screens.screen(Moving(), "openvino", manifest, tmp_path, instance, values, result)
        assert found.reason == reason


class Mean:
    """A library whose one operator is the mean of two, which it rounds upwards of integers."""

    def undefined(self, instance, expected):
        return None

    def opinions(self, manifest, directory, inputs, besides):
        made = inputs[0].array().astype("float64").mean(-1)
        whole = np.floor(made + 0.5).astype(inputs[0].array().dtype) if inputs[0].dtype != "float64" else made
        return [Opinion("eager", False, [Tensor.of(whole)])]


def interpolating(folder, given):
    manifest, instance = made(folder, "ReduceSum", {"data": given})
    return msgspec.structs.replace(manifest, tags=(*manifest.tags, conditioning.INTERPOLATING)), instance


def test_a_quotient_that_is_rounded_to_the_nearest_is_wrong(tmp_path):
    """ONNX cuts integers off: who rounds -7 / 2 down is wrong, though -4 is as near to -3.5 as -3."""
    manifest, instance = made(tmp_path, "Div", {"A": np.int32([-7, 8]), "B": np.int32([2, 3])})
    assert migrated.read_values(tmp_path, "expected")[0].array().tolist() == [-3, 2]
    for wrong in ([-4, 2], [-3, 3]):
        assert screen(tmp_path, manifest, instance, np.int32(wrong)).reason == ""


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        ([1, 4, 0], screens.ILL_CONDITIONED),  # 1.5 and 4.5 are as near to what is below them
        ([2, 4, 0], screens.ILL_CONDITIONED),
        ([2, 4, 1], ""),  # 0 is exact
        ([2, 3, 0], ""),  # two off
        ([1, 4, 1], ""),
    ],
)
def test_integers_that_are_the_nearest_to_what_is_computed_in_float64_are_rounded(tmp_path, actual, reason):
    given = np.array([[1, 2], [4, 5], [0, 0]], "int32")
    manifest, instance = interpolating(tmp_path, given)
    (tmp_path / "expected.msgpack").write_bytes(migrated.pack([Tensor.of(np.int32([2, 5, 0]))]))
    seen = Outcome(INCONSISTENT, "infer", "value", details={})
    found = screens.screen(Mean(), "any", manifest, tmp_path, instance, [Tensor.of(np.int32(actual))], seen)
    assert found.reason == reason


@pytest.mark.parametrize(("actual", "reason"), [([2], ""), ([3], screens.ILL_CONDITIONED)])
def test_what_is_cut_off_is_not_the_nearest(tmp_path, actual, reason):
    """Of 2.67 both 2 and 3 are less than one away: who returns 2 for the 3 that is expected cut it off."""

    class Third(Mean):
        def opinions(self, manifest, directory, inputs, besides):
            return [Opinion("eager", False, [Tensor.of(inputs[0].array().astype("float64") / 3)])]

    manifest, instance = interpolating(tmp_path, np.int32([8]))
    expected = 3 if actual == [2] else 2  # a library that cuts it off itself
    (tmp_path / "expected.msgpack").write_bytes(migrated.pack([Tensor.of(np.int32([expected]))]))
    seen = Outcome(INCONSISTENT, "infer", "value", details={})
    found = screens.screen(Third(), "any", manifest, tmp_path, instance, [Tensor.of(np.int32(actual))], seen)
    assert found.reason == reason


@pytest.mark.parametrize(("terms", "explained"), [(6, False), (12, True)])
def test_a_few_terms_round_a_few_times(tmp_path, terms, explained):
    """A trapezoid of six numbers of bfloat16 was 11 epsilons off, for TVM read beyond one of them."""
    held = np.ones(terms, np.float16)
    manifest, instance = made(tmp_path, "ReduceSum", {"data": held}, params={"keepdims": 0})
    one, off = Tensor.of(np.float16([1.0])), Tensor.of(np.float16([1.0 + 11 * 2.0**-10]))
    given = (manifest, instance, [Tensor.of(held)], [one], [off], "value", [])
    found = conditioning.ill_conditioned(lambda _: [], *given)
    assert "accumulating" in manifest.tags and bool(found) is explained
