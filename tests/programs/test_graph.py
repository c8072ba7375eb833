"""Programs of several calls as data: their form, what is refused, and how they are seen call by call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from several_calls import EVERY, ONNX

from opera.errors import CorpusError
from opera.programs.program import (
    Argument,
    Call,
    Graph,
    Instance,
    Operand,
    Result,
    matches,
    operators_of,
    parse,
    parse_instance,
    with_values,
)
from opera.programs.values import Tensor

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs.jsonl"
ONE = Tensor.of([1.0])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a graph in single-assignment form: every call takes what is there before it, every input is used."""
    inputs = [f"x{n}" for n in range(draw(st.integers(1, 3)))]
    known, calls = list(inputs), []
    for place in range(draw(st.integers(2, 5))):
        names = draw(st.lists(st.sampled_from(["", *known]), max_size=3))
        names = [*inputs, *names] if place == 0 else names
        outputs = draw(st.sampled_from([(f"y{place}",), (f"y{place}", ""), (f"y{place}", f"z{place}")]))
        params = draw(st.dictionaries(st.sampled_from(["axis", "mode"]), st.integers() | st.text(max_size=3)))
        calls.append(Call("Op", params, tuple(Argument(f"a{n}", x) for n, x in enumerate(names)), outputs, {}))
        known += [name for name in outputs if name]
    results = [name for call in calls for name in call.outputs if name]
    returned = draw(st.lists(st.sampled_from(results), min_size=1, unique=True))
    return Graph("onnx", tuple(Operand(name, ONE) for name in inputs), tuple(calls), tuple(returned))


@given(graphs())
def test_a_graph_survives_its_form(graph: Graph) -> None:
    assert parse(graph.canonical()) == graph
    assert parse(msgspec.json.decode(graph.canonical())) == graph
    assert len(graph.id) == 20
    assert operators_of(graph.operator) == graph.operators


@given(graphs())
def test_call_by_call_every_argument_is_an_input_a_result_or_left_out(graph: Graph) -> None:
    known = {name: ONE for call in graph.calls for name in call.outputs if name}
    for bare, whole, call in zip(graph.instances(), graph.instances(known), graph.calls, strict=True):
        for before, after, argument in zip(bare.inputs, whole.inputs, call.inputs, strict=True):
            assert after.value == (ONE if argument.of else None)
            assert before.value == (Result(argument.of) if argument.of in known else after.value)
        assert (whole.operator, whole.params, whole.outputs) == (call.operator, call.params, call.outputs)


def test_one_call_is_an_instance_and_its_form_is_what_it_was() -> None:
    form: dict[str, Any] = {
        "library": "onnx", "operator": "Relu", "params": {}, "outputs": ["Y"], "context": {"opset": {"$dict": [["", 14]]}},
        "inputs": [{"name": "X", "value": {"$tensor": {"data": "AQ==", "dtype": "int8", "shape": [1]}}}],
    }  # fmt: skip
    found = parse(form)
    assert isinstance(found, Instance) and found.instances() == (found,) and found.operators == ("Relu",)
    assert found.id == "39af1423f189dae0c17b"
    with pytest.raises(CorpusError, match="one operator instance is wanted"):
        parse_instance(ONNX["matmul-relu"].canonical())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda form: form["calls"].pop(), "a program of 1 calls"),
        (lambda form: form["calls"][1]["inputs"][0].update(of="nothing"), "takes 'nothing', which no input is"),
        (lambda form: form["calls"].reverse(), "no earlier call returns"),
        (lambda form: form["calls"][1].update(outputs=["x"]), "'x' is given twice"),
        (lambda form: form["inputs"].append(dict(form["inputs"][0])), "'x' is given twice"),
        (lambda form: form["inputs"].append({"name": "", "value": 1}), "has no name"),
        (lambda form: form["inputs"].append({"name": "u", "value": 1}), "no call takes the input 'u'"),
        (lambda form: form.update(outputs=[]), "outputs of a program"),
        (lambda form: form.update(outputs=["x"]), "outputs of a program"),
        (lambda form: form.update(outputs=["y", "y"]), "outputs of a program"),
        (lambda form: form["calls"][0].update(operator="A + B"), "no operator called"),
        (lambda form: form["calls"][0].update(params=[]), "malformed"),
        (lambda form: form["calls"][0].pop("context"), "malformed"),
        (lambda form: form["calls"][0].update(outputs=["o" * 501]), "at most 500 characters"),
        (lambda form: form.update(calls=form["calls"] * 600), "1000 are refused"),
    ],
)
def test_what_is_no_program_is_refused(change: Any, says: str) -> None:
    form = msgspec.json.decode(ONNX["matmul-relu"].canonical())
    change(form)
    with pytest.raises(CorpusError, match=says):
        parse(form)


def test_other_values_make_another_program() -> None:
    graph = ONNX["matmul-relu"]
    other = with_values(graph, [ONE, ONE])
    assert [x.value for x in other.inputs] == [ONE, ONE] and other.id != graph.id
    assert with_values(other, [x.value for x in graph.inputs]) == graph


def test_a_program_is_found_by_each_of_its_operators() -> None:
    assert matches("MatMul + Relu", "Rel*") and matches("MatMul + Relu", "MatMul")
    assert not matches("MatMul + Relu", "Softmax") and not matches("MatMul + Relu", "MatMul + *")


def test_the_example_holds_these_programs() -> None:
    header, *lines = EXAMPLES.read_text().splitlines()
    assert json.loads(header)["format"] == "opera-corpus"
    assert [parse(json.loads(line)["instance"]) for line in lines] == list(EVERY.values())
