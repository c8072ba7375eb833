"""Passing tests of an operator, and the programs between a failing one and these."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Captured, Graph, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import Outcome
from opera.run import plan
from opera.store import rows
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.conditions import ordinary

F32, U8 = np.float32, np.uint8


def call(inputs: dict[str, Any], opset: int = 21, outputs: tuple[str, ...] = ("y",), **params: Any) -> Instance:
    given = tuple(Operand(n, None if x is None else Tensor.of(np.asarray(x))) for n, x in inputs.items())
    return Instance("onnx", "QuantizeLinear", params, given, outputs, {"opset": {"": opset}})


def shapes(program: Instance) -> dict[str, tuple[int, ...]]:
    return {x.name: x.value.shape for x in program.inputs if isinstance(x.value, Tensor)}


BLOCKED = call({"x": np.ones((1, 4), F32), "y_scale": np.ones((1, 2), F32)}, block_size=2)
WITH_ZERO = call(
    {"x": np.ones((3, 6), F32), "y_scale": np.ones((3, 2), F32), "y_zero_point": np.zeros((3, 2), U8)}, 25, block_size=3
)


def test_what_a_passing_test_is_given_takes_the_shape_of_the_input_that_has_the_same_there():
    made = list(ordinary.between(BLOCKED, [WITH_ZERO]))
    assert all(x.context == BLOCKED.context for x in made)
    assert {"x": (1, 4), "y_scale": (1, 2), "y_zero_point": (1, 2)} in map(shapes, made)
    assert {"x": (3, 6), "y_scale": (3, 2), "y_zero_point": (3, 2)} in map(shapes, made)  # the test itself
    assert [x.params["block_size"] for x in made if shapes(x) == shapes(BLOCKED)] == [3]
    assert {"x": (3, 6), "y_scale": (3, 2)} in map(shapes, made)  # and without what the failing one is not given


def test_an_input_takes_its_place_before_others_that_are_given():
    program = call({"x": F32([1]), "last": F32([1])})
    test = call({"x": F32([1, 2]), "middle": F32([1, 2]), "last": F32([3, 4])})
    assert [x.name for x in ordinary.between(program, [test]) for x in x.inputs].count("middle") > 0
    for made in ordinary.between(program, [test]):
        names = [x.name for x in made.inputs]
        assert names == sorted(names, key=["x", "middle", "last"].index)


def test_arguments_that_a_library_writes_down_are_named_where_they_are_given():
    def group_norm(**inputs: Any) -> Instance:
        operands = tuple(Operand(n, Tensor.of(np.asarray(x))) for n, x in inputs.items())
        context = {"kind": "function", "call": {"args": ["input", "num_groups"], "kwargs": [*inputs][1:]}}
        return Instance("torch", "torch.nn.functional.group_norm", {"num_groups": 1}, operands, (), context)

    program = group_norm(input=np.ones((1, 2, 1), F32))
    test = group_norm(input=np.ones((2, 4, 3), F32), weight=np.ones(4, F32))
    found = [x for x in ordinary.between(program, [test]) if shapes(x) == {"input": (1, 2, 1), "weight": (2,)}]
    assert [x.context["call"] for x in found] == [{"args": ["input", "num_groups"], "kwargs": ["weight"]}]


def test_a_test_of_another_version_says_nothing_itself_nor_does_one_in_another_mode():
    assert ordinary.comparable(BLOCKED, BLOCKED)
    assert not ordinary.comparable(WITH_ZERO, BLOCKED)
    trained = msgspec.structs.replace(BLOCKED, context={**BLOCKED.context, "training": True})
    assert not ordinary.comparable(trained, BLOCKED)
    assert ordinary.comparable(
        msgspec.structs.replace(BLOCKED, context={**BLOCKED.context, "training": False}), BLOCKED
    )


def test_a_few_tests_are_taken_that_differ_in_different_things_the_most_alike_first():
    tests = [call({"x": np.ones(n, F32), "y_scale": F32(1)}, axis=a) for n in (2, 3) for a in (0, 1, 2)]
    found = ordinary.handful(call({"x": np.ones(2, F32)}, axis=1), [WITH_ZERO, *tests])
    assert found[0].params["axis"] == 1
    assert len(found) < len(tests)
    assert WITH_ZERO in found


def test_nothing_is_between_programs_of_several_calls():
    graph: Any = msgspec.structs.replace(Graph("onnx", (), (), ()), inputs=BLOCKED.inputs)
    assert list(ordinary.between(graph, [WITH_ZERO])) == []


@given(st.data())
def test_each_program_between_has_each_thing_of_the_one_or_the_other(data):
    names = ["x", "scale", "bias"]

    def drawn() -> Instance:
        shape = st.lists(st.integers(1, 3), max_size=3).map(tuple)
        inputs = {x: np.ones(data.draw(shape), F32) for x in names if x == "x" or data.draw(st.booleans())}
        params = {x: data.draw(st.integers(0, 2)) for x in ("a", "b") if data.draw(st.booleans())}
        return call(inputs, data.draw(st.sampled_from([21, 25])), **params)

    one, other = drawn(), drawn()
    for made in ordinary.between(one, [other]):
        assert made.context["opset"] == one.context["opset"]
        assert made.outputs == one.outputs
        for name in ("a", "b"):
            assert made.params.get(name) in (one.params.get(name), other.params.get(name))
        given = {x.name for x in made.inputs if x.value is not None}
        assert "x" in given <= set(names)
        assert given <= shapes(one).keys() | shapes(other).keys()


def test_programs_of_the_corpus_are_read_as_the_failing_one_is_called(tmp_path):
    program = call({"x": F32([1.0, 2.0]), "y_scale": F32([1.0])}, outputs=("only",))
    small, older = WITH_ZERO, call({"x": F32([1]), "y_scale": F32(1)}, opset=10)
    huge = call({"x": np.ones(5000, F32), "y_scale": F32(1)})
    other = msgspec.structs.replace(small, operator="Other")
    with Workspace.open(tmp_path, write=True) as workspace:
        workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in (small, older, huge, other)])
        found = ordinary.captured(workspace, program)
        assert {(x.outputs, x.context["opset"][""]) for x in found} == {(("only",), 21)}
        assert sorted(shapes(x)["x"] for x in found) == [(1,), (3, 6)]
        assert ordinary.captured(workspace, Graph("onnx", (), (), ())) == []


def test_tests_are_read_that_pass_on_the_frontend_by_the_variant_of_one_call_of_the_operator(tmp_path):
    small = call({"x": F32([1])})
    large = call({"x": np.arange(50, dtype=F32)})
    other = msgspec.structs.replace(small, operator="Other")
    with Workspace.open(tmp_path, write=True) as workspace:
        workspace.insert([Captured(x, Provenance("suites", "t", "")) for x in (small, large, other, WITH_ZERO)])
        names = {x: plan.test_id(x, "e") for x in (small.id, large.id, other.id, WITH_ZERO.id)}
        workspace.save_tests("e", [rows.Test(name, of, "valid") for of, name in names.items()])
        verdicts = [
            Verdict(names[x.id], "f", variant, "here", Outcome(verdict), "")
            for x, variant, verdict in (
                (small, "inputs", "pass"), (large, "inputs", "pass"), (other, "inputs", "pass"),
                (WITH_ZERO, "constants", "pass"), (WITH_ZERO, "inputs", "crash"),
            )
        ]  # fmt: skip
        run = workspace.start_run({})
        workspace.save_verdicts(run, verdicts, {})
        failed = verdicts[-1]
        assert [x.id for x in ordinary.passing(workspace, failed, WITH_ZERO)] == [small.id, large.id]
        assert ordinary.passing(workspace, msgspec.structs.replace(failed, environment="there"), WITH_ZERO) == []


@pytest.mark.parametrize("name", ["block_size", "y_zero_point"])
def test_what_differs_is_told_by_name(name):
    assert name in ordinary.differing(BLOCKED, WITH_ZERO)
