"""Random operators at parameters that leave nothing to chance."""

import numpy as np
import pytest

from opera import libraries, resources
from opera.programs.degenerate import ABSENT, holds, settings, with_degenerate
from opera.programs.migrated import read_values
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

SEEN = Provenance("suite", "file", "test")


def dropout(ratio, training=True):
    given = {"data": np.float32([1, 2, 3, 4]), "ratio": np.float32(ratio), "training_mode": np.array(training)}
    inputs = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in given.items())
    return Captured(Instance("onnx", "Dropout", {}, inputs, ("y",), {"opset": {"": 21}}), SEEN)


def function(operator, params, **inputs):
    operands = tuple(Operand(name, Tensor.of(np.float32(x))) for name, x in inputs.items())
    context = {"kind": "function", "call": {"args": list(inputs), "kwargs": list(params)}}
    return Captured(Instance("torch", operator, params, operands, (), context), SEEN)


def test_a_random_call_is_followed_by_the_same_at_its_degenerate_parameters():
    first, more = with_degenerate([dropout(0.5)])
    assert (first, more) == (dropout(0.5), dropout(0.0).__class__(dropout(0.0).program, more.provenance))
    assert more.provenance.test == "test with ratio = 0"
    assert holds(more.program) and not holds(first.program)
    assert list(with_degenerate([more])) == [more], "it is there already"


def test_what_is_not_random_or_lacks_the_parameter_stays_alone():
    other = Captured(Instance("onnx", "Exp", {}, (Operand("input", Tensor.of(np.float32([1]))),), ("y",), {}), SEEN)
    bare = Captured(Instance("onnx", "Dropout", {}, dropout(0.5).program.inputs[:1], ("y",), {"opset": {"": 21}}), SEEN)
    assert list(with_degenerate([other, bare])) == [other, bare]


def test_onnx_compares_it(tmp_path):
    library = libraries.get("onnx")
    assert "nondeterministic" in library.wrap(dropout(0.5), "a" * 20, tmp_path / "a").tags
    assert "nondeterministic" not in library.wrap(dropout(0.0), "b" * 20, tmp_path / "b").tags
    assert read_values(tmp_path / "b", "expected")[0].array().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "captured",
    [
        function("torch.nn.functional.dropout", {"p": 0.5, "training": True}, input=[1, 2, 3, 4] * 8),
        function("torch.bernoulli", {}, input=[0.5] * 32),
        function(
            "torch.nn.functional.rrelu", {"lower": 0.1, "upper": 0.9, "training": True}, input=[-1, -2, -3, -4] * 8
        ),
        function("torch.normal", {}, mean=[1, 2, 3], std=[1, 2, 3]),
    ],
)
def test_pytorch_compares_it(tmp_path, captured):
    pytest.importorskip("torch")
    library = libraries.get("torch")
    made = list(with_degenerate([captured]))
    tags = [library.wrap(x, "a" * 20, tmp_path / str(place)).tags for place, x in enumerate(made)]
    assert ["nondeterministic" in x for x in tags] == [True] + [False] * (len(made) - 1)
    assert len(made) == 1 + len(settings("torch", captured.program.operator))


@pytest.mark.parametrize("name", ["onnx", "keras", "torch"])
def test_what_is_declared_are_settings_of_numbers(name):
    declared = resources.declaration("instrumentation", name)["degenerate"]
    assert declared and all(
        isinstance(x, float) or x == ABSENT for each in declared.values() for one in each for x in one.values()
    )
    assert all(any(isinstance(x, float) for x in one.values()) for each in declared.values() for one in each)


@pytest.mark.parametrize(
    ("params", "certain"),
    [
        ({"arg1": 1}, True),
        ({"arg1": 1, "arg2": 5}, False),
        ({"high": 1}, True),
        ({"low": -4, "high": 1}, False),
        ({"arg1": 3, "arg2": 4}, True),
    ],
)
def test_an_upper_end_of_one_leaves_nothing_to_chance_only_from_zero_on(params, certain):
    """randint_like(x, 1, 5) draws 1 to 4: called certain, each run of it gave other outputs."""
    assert holds(function("torch.randint_like", params, input=[1, 2]).program) == certain
