"""What decides is told by taking it away: parameters, inputs, dtypes, ranks, what is empty, special numbers."""

from collections.abc import Callable

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, INVALID, PASS, Outcome
from opera.triage import deciding, smaller
from opera.triage.minimise import Spent


class Compiler:
    """Fails where a predicate holds; the library rejects where another does."""

    def __init__(
        self, fails: Callable[[Instance], bool], rejects: Callable[[Instance], bool] = lambda _: False
    ) -> None:
        self.fails, self.rejects, self.asked = fails, rejects, 0

    def look(self, programs):
        self.asked += len(programs)

        def shown(program):
            rejected = not program.inputs or self.rejects(program)
            return INVALID if rejected else INCONSISTENT if self.fails(program) else PASS

        return [Outcome(shown(x)) for x in programs]


def call(*arrays, **params):
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


def first(program):
    return program.inputs[0].value


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
]


@pytest.mark.parametrize(("program", "fails", "wanted"), CASES, ids=[" ".join(x[2]) or "nothing" for x in CASES])
def test_what_the_program_passes_without_decides(program, fails, wanted):
    assert list(deciding.besides(Compiler(fails), program, {})) == wanted
    assert list(deciding.besides(Compiler(fails, lambda x: x != program), program, {})) == [], "nothing else can be run"


def test_a_parameter_decides_where_the_default_passes_and_a_size_never_does():
    program = call(F32([1]), axis=2, size=3, mode="cubic")
    defaults = {"Any": {"axis": 0, "mode": "nearest"}}
    fails = Compiler(lambda x: x.params.get("axis") == 2 or x.params.get("size") == 3)
    assert list(deciding.parameters(fails, program, defaults)) == [], "another one makes it fail, too"
    fails = Compiler(lambda x: x.params.get("axis") == 2 and x.params.get("size") == 3)
    assert list(deciding.parameters(fails, program, defaults)) == ["axis=2"]


RELATIONS = [
    (call(np.ones((2, 1), F32)), lambda x: first(x).shape == (2, 1), ["length 1 of axis 1"]),
    (call(F32([2, 2])), lambda x: len(np.unique(first(x).numbers())) == 1, ["equal elements in an input"]),
    (call(F32([2, 3]), F32([0.5])), lambda x: x.inputs[-1].value.numbers()[0] == 0.5, ["x1 just at a limit"]),
    (call(F32([2, 3]), limit=0.5), lambda x: x.params["limit"] == 0.5, ["limit just at a limit"]),
    (call(F32([2, 3]), limit=0.5), lambda x: True, []),
]


@pytest.mark.parametrize(("program", "fails", "wanted"), RELATIONS)
def test_numbers_and_sizes_may_decide_by_how_they_stand_to_each_other(program, fails, wanted):
    assert list(deciding.relations(Compiler(fails), program, {})) == wanted


def test_a_parameter_that_is_left_out_may_decide():
    """clamp of integers with one bound alone: given the other one, it passes."""
    defaults = {"Any": {"min": None, "max": None}}
    fails = Compiler(lambda x: x.params.get("min") is None)
    assert list(deciding.parameters(fails, call(np.int64([1]), max=3), defaults)) == ["min left out"]
    assert list(deciding.parameters(fails, call(np.int64([1]), min=None, max=3), defaults)) == ["min left out"]
    both = Compiler(lambda x: True)
    assert list(deciding.parameters(both, call(np.int64([1]), max=3), defaults)) == []


def test_without_time_nothing_is_said():
    class Slow:
        def look(self, programs):
            raise Spent

    program = call(np.ones((), "float64"), axis=2)
    assert (
        list(deciding.besides(Slow(), program, {}))
        == list(deciding.parameters(Slow(), program, {"Any": {"axis": 0}}))
        == []
    )


def test_unlike_values_tell_tensors_and_elements_apart():
    program = call(np.ones((2, 2), F32), np.ones((2, 2), F32))
    whole, one, other = (smaller.applied(step, program) for step in smaller.unlike(program))
    assert [x.value.numbers().ravel().tolist() for x in whole.inputs] == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert one.inputs[1] == program.inputs[1] and other.inputs[0] == program.inputs[0]
