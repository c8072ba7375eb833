"""What the generator promises: the same cases for a seed, boundaries, types that the schema admits, shapes as written."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.errors import SourceError
from opera.sources.sionnx import elements, generate, own, skeleton
from opera.sources.sionnx.case import Case
from opera.sources.sionnx.parse import DTYPES, parse
from opera.sources.sionnx.scene import MAX_ELEMENTS
from opera.sources.sionnx.spec import Shape

OPERATORS = sorted(own.specifications())
SOME = ["Add", "Conv", "Gather", "Reshape", "Slice", "Concat", "SequenceAt", "Clip", "LSTM", "QuantizeLinear", "Loop"]


def made(text: str, count: int = 60, since: int = 0, **options: object) -> list[Case]:
    [spec] = parse(text, "x.td")
    return list(generate.cases(skeleton.resolve(spec, since), count=count, **options))


def of(operator: str, count: int = 60, since: int = 0, **options: object) -> list[Case]:
    return list(generate.cases(skeleton.resolve(own.specifications()[operator], since), count=count, **options))


def plain(case: Case) -> tuple[object, ...]:
    def value(x: object) -> object:
        if isinstance(x, np.ndarray):
            return str(x.dtype), x.shape, x.tolist() if x.dtype == object else x.tobytes()
        return [value(y) for y in x] if isinstance(x, list) else x

    inputs = [None if x is None else (x.name, x.type, value(x.value)) for x in case.inputs]
    return {k: (v.kind, value(v.value)) for k, v in case.attributes.items()}, inputs, case.outputs, case.boundaries


@given(st.sampled_from(OPERATORS), st.integers(0, 2**32 - 1), st.sampled_from(["full", "smoke"]))
@settings(max_examples=25, deadline=None)
def test_cases_are_the_same_for_the_same_seed_and_what_the_schema_admits(operator: str, seed: int, mode: str):
    spec = skeleton.resolve(own.specifications()[operator])
    first = list(generate.cases(spec, mode, 4, seed))
    again = list(generate.cases(spec, mode, 4, seed))
    assert [plain(x) for x in first] == [plain(x) for x in again]
    formals = {x.name: x for x in spec.inputs}
    required = {x.name for x in spec.attributes if x.required}
    for case in first:
        assert required <= set(case.attributes) <= {x.name for x in spec.attributes}
        assert case.inputs == () or case.inputs[-1] is not None
        for place, item in enumerate(case.inputs):
            if item is None:
                assert spec.inputs[place].optional
                continue
            formal = formals.get(item.name) or formals[item.name.rpartition("_")[0]]
            assert item.type in formal.types
            if item.type in DTYPES:
                assert item.value.dtype == elements.dtype_of(item.type)
                assert math.prod(item.value.shape) <= MAX_ELEMENTS


@pytest.mark.parametrize("operator", SOME)
def test_every_boundary_that_was_found_is_in_some_case(operator: str):
    """Each part shows two boundaries at least where it has several, and targets are met."""
    cases = of(operator, 200)
    met = sum(case.boundaries.get(case.target[0]) == case.target[1] for case in cases if case.target[0])
    aimed = sum(bool(case.target[0]) for case in cases)
    assert met >= 0.7 * aimed and aimed >= 100


def test_boundaries_of_elements_of_ranks_and_of_sizes():
    cases = of("Add", 300, special=True, empty=True)
    seen = {(part, what) for case in cases for part, what in case.boundaries.items()}
    assert {("A", x) for x in ("min", "max", "0", "1", "-1", "-0.0", "tiny", "nan", "inf", "-inf")} <= seen
    assert {("rank", "min"), ("rank", "max"), ("sizes", "0"), ("sizes", "1"), ("sizes", "max")} <= seen
    for side in "AB":
        assert {(f"broadcast of {side}", x) for x in ("same", "scalar", "ones", "shorter")} <= seen
    kinds = {case.inputs[0].type for case in cases if case.inputs[0] is not None}
    assert kinds == set(skeleton.skeleton("Add", 14).inputs[0].types)


def test_what_is_said_to_be_on_a_boundary_is():
    for case in of("Relu", 300, special=True):
        item = case.inputs[0]
        assert item is not None
        what, array = case.boundaries.get("X"), item.value
        if not array.size or what is None:
            continue
        if what in ("0", "1", "-1"):
            assert (array == int(what)).all()
        elif what == "-0.0":
            assert (array == 0).all() and np.signbit(array.astype(np.float64)).all()
        elif what == "nan":
            assert np.isnan(array.astype(np.float64)).any()
        elif what in ("inf", "-inf"):
            assert (array.astype(np.float64) == float(what)).any()
        elif what == "tiny":
            assert (array.astype(np.float64) == elements.tiny(item.type)).any()
        else:
            assert (array == elements.limits(item.type)[what == "max"]).any()


def test_nothing_is_empty_or_special_unless_asked_for():
    for case in of("Add", 200):
        assert not {"0"} & {case.boundaries.get("sizes")}
        for item in case.inputs:
            assert item is not None and item.value.size
            if elements.is_float(item.type):
                assert np.isfinite(item.value.astype(np.float64)).all()


def test_attributes_and_inputs_are_given_and_left_out_and_defaults_both():
    cases = of("Conv", 200)
    assert {"group" in x.attributes for x in cases} == {True, False}
    assert {x.boundaries.get("group") for x in cases} >= {"left out", "default", "min", "max"}
    assert {len(x.inputs) for x in cases} == {2, 3}
    assert all(x.attributes["group"].value == 1 for x in cases if x.boundaries.get("group") == "default")


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_shapes_are_what_the_symbols_say(seed: int):
    for case in of("Conv", 12, seed=seed):
        x, w = case.inputs[0], case.inputs[1]
        assert x is not None and w is not None
        group = case.attributes["group"].value if "group" in case.attributes else 1
        assert x.value.shape[1] == w.value.shape[1] * group and w.value.shape[0] % group == 0
        assert x.value.ndim == w.value.ndim
        if "kernel_shape" in case.attributes:
            assert tuple(case.attributes["kernel_shape"].value) == w.value.shape[2:]
        if len(case.inputs) == 3:
            assert case.inputs[2] is not None and case.inputs[2].value.shape == (w.value.shape[0],)


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_values_are_bounded_by_the_shape_of_another_input(seed: int):
    for case in of("Gather", 12, seed=seed):
        data, indices = case.inputs
        assert data is not None and indices is not None
        axis = case.attributes["axis"].value if "axis" in case.attributes else 0
        size = data.value.shape[axis]
        assert ((indices.value >= -size) & (indices.value < size)).all()


def test_a_value_is_an_attribute_or_an_input_as_the_version_has_it():
    older, newer = of("Squeeze", 40, since=11), of("Squeeze", 40, since=13)
    assert any("axes" in x.attributes for x in older) and all(len(x.inputs) == 1 for x in older)
    given_one = [x for x in newer if len(x.inputs) == 2]
    assert given_one and not any(x.attributes for x in newer)
    assert all(x.inputs[1].type == "int64" and x.inputs[1].value.ndim == 1 for x in given_one if x.inputs[1])


@pytest.mark.parametrize("operator", ["Cast", "QuantizeLinear", "Resize"])
def test_smoke_takes_values_of_attributes_that_admit_cases(operator):
    """Of Cast most combinations of `saturate` and `round_mode` are for float8 alone: there was no case at all."""
    assert len(of(operator, 40, mode="smoke")) == 40


def test_smoke_varies_the_attributes_of_what_has_no_inputs():
    """Of sixteen cases of RandomNormal fifteen were the first one again; and some draw a thousand numbers."""
    found = {str(sorted(x.attributes.items(), key=str)) for x in of("RandomNormal", 16, mode="smoke")}
    assert len(found) > 8 and any("1000" in x for x in found)


def test_smoke_gives_attributes_one_value():
    cases = of("Selu", 40, mode="smoke")
    assert len({str({k: v.value for k, v in x.attributes.items()}) for x in cases}) == 1
    assert len({x.inputs[0].value.shape for x in cases if x.inputs[0]}) > 3


def test_divisors_are_not_zero():
    for case in of("Div", 200):
        assert case.inputs[1] is not None and (case.inputs[1].value != 0).all()


def test_sequences_and_optionals():
    assert all(isinstance(x.inputs[0].value, list) for x in of("SequenceAt", 20) if x.inputs[0])
    held = [x.inputs[0] for x in of("OptionalHasElement", 80) if x.inputs]
    assert any(x and x.value is None and x.type.startswith("optional") for x in held)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("let to = nothing(3);", "there is no function 'nothing'"),
        ("let alpha = [1, 2][7];", "index out of range"),
        ("let T = {string};", "admits none of these types"),
        ("let alpha = 3 + none;", "unsupported operand"),
    ],
)
def test_a_specification_that_is_wrong_says_where(body: str, said: str):
    with pytest.raises(SourceError) as found:
        made(f"def A : Instruction<[Elu]> {{\n  {body}\n}}", 5)
    assert found.value.what.startswith("x.td:2: ") and said in found.value.what


def test_a_required_attribute_of_which_nobody_says_anything_is_an_error():
    with pytest.raises(SourceError) as found:
        made("def A : Instruction<[Cast]>;")
    assert "needs the attribute 'to'" in found.value.what and "let to" in found.value.fix


def test_an_operator_that_onnx_lacks_is_an_error():
    with pytest.raises(SourceError, match="no operator 'Conw'"):
        made("def A : Instruction<[Conw]>;")


def test_our_specifications_are_of_every_operator_that_has_a_value_of_ours():
    """What is missing takes maps, or an image file."""
    known = {f"{domain}::{name}" if domain else name for domain, name in skeleton.operators()}
    assert set(OPERATORS) <= known
    missing = {"ImageDecoder", "ai.onnx.ml::CastMap", "ai.onnx.ml::DictVectorizer", "ai.onnx.ml::ZipMap"}
    assert known - set(OPERATORS) == missing


def test_a_specification_names_what_some_version_of_its_operator_has():
    """A misspelt input would be a symbol of its own, and the input drawn without what the file says of it."""
    names: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        signature = f"{schema.domain}::{schema.name}" if schema.domain else schema.name
        names.setdefault(signature, set()).update(x.name for x in schema.inputs)
    for spec in own.specifications().values():
        family = {x.signature for x in own.specifications().values() if (x.file, x.line) == (spec.file, spec.line)}
        known = set().union(*(names[x] for x in family))
        for statement in spec.body:
            if isinstance(statement, Shape):
                assert statement.name in known, f"{spec.file}:{statement.line}: {statement.name}"


@pytest.mark.full
def test_every_version_of_every_operator_yields_cases():
    """But for the few of old that nothing computes, and that specifications leave out."""
    silent = set()
    for signature, spec in own.specifications().items():
        for since in skeleton.versions(spec.operator, spec.domain):
            if not list(generate.cases(skeleton.resolve(spec, since), count=4)):
                silent.add((signature, since))
    assert silent == {("Scan", 8), ("Tile", 1)}


def test_the_specifications_of_the_documentation_work():
    text = (Path(__file__).parents[3] / "docs" / "sionnx.md").read_text(encoding="utf-8")
    shown = re.findall(r"```osl\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 2
    for definition in shown:
        assert len(made(definition, 40)) == 40
