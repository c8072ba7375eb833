"""Arguments are matched one to one, by what they are called, take and where they stand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.sources.deeprel.apis import Api, Parameter, observed
from opera.sources.deeprel.matching import compatible, match, name_similarity

NAMES = st.sampled_from(
    ["input", "other", "dim", "axis", "keepdim", "min", "max", "p", "alpha", "x", "weights", "*tensors"]
)
TYPES = st.frozensets(st.sampled_from(["tensor", "tensors", "int", "float", "bool", "ints", "str"]), max_size=2)


@st.composite
def apis(draw: st.DrawFn) -> Api:
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    parameters = []
    for name in names:
        required = draw(st.booleans())
        default = {} if required else {"default": draw(st.sampled_from([None, 0, 1.5, False, "mean"]))}
        parameters.append(Parameter(name, draw(TYPES), required=required, **default))
    return Api(draw(st.sampled_from(["torch.a", "torch.b"])), tuple(parameters))


@settings(deadline=None)  # SciPy is imported in the first
@given(apis(), apis())
def test_no_argument_is_given_twice_and_no_required_one_is_missing(source: Api, target: Api) -> None:
    matching = match(source, target)
    if matching is None:
        return
    mine = {x.name: x for x in source.parameters}
    theirs = {x.name: x for x in target.parameters}
    assert len(set(matching.names.values())) == len(matching.names) > 0
    assert {x.name for x in source.parameters if x.required} <= set(matching.names)
    assert {x.name for x in target.parameters if x.required} <= set(matching.names.values())
    for name, other in matching.names.items():
        assert compatible(mine[name].types, theirs[other].types) > 0
    for other, name in matching.explicit.items():
        assert matching.names[name] == other and not theirs[other].required


@settings(deadline=None)
@given(apis())
def test_an_operator_matches_itself_by_name(api: Api) -> None:
    matching = match(api, api)
    if not api.parameters:
        assert matching is None
        return
    assert matching is not None
    same = {name for name, other in matching.names.items() if name_similarity(name, other) == 1}
    assert same == {x.name for x in api.parameters}
    assert not matching.explicit or any(name != other for name, other in matching.names.items())


@given(st.text(max_size=12), st.text(max_size=12))
def test_similarity_of_names_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    assert name_similarity(one, other) == name_similarity(other, one)
    assert 0 <= name_similarity(one, other) <= 1
    assert name_similarity(one, one) == 1


def test_types_decide_against_position() -> None:
    source = Api(
        "a", (Parameter("x", frozenset({"tensor"}), required=True), Parameter("n", frozenset({"int"}), required=True))
    )
    target = Api(
        "b", (Parameter("k", frozenset({"int"}), required=True), Parameter("t", frozenset({"tensor"}), required=True))
    )
    matching = match(source, target)
    assert matching is not None and matching.names == {"x": "t", "n": "k"}


def test_optional_arguments_of_other_names_are_not_mixed_up() -> None:
    first = Parameter("input", frozenset({"tensor"}), required=True)
    source = Api("a", (first, Parameter("keepdim", frozenset({"bool"}), False)))
    target = Api("b", (first, Parameter("descending", frozenset({"bool"}), False)))
    matching = match(source, target)
    assert matching is not None and matching.names == {"input": "input"}


def test_a_default_that_the_partner_has_otherwise_is_passed() -> None:
    first = Parameter("input", frozenset({"tensor"}), required=True)
    source = Api("hardtanh", (first, Parameter("min_val", frozenset({"float"}), -1.0)))
    target = Api("clamp", (first, Parameter("min", frozenset({"float"}), None)))
    matching = match(source, target)
    assert matching is not None and matching.explicit == {"min": "min_val"}


@pytest.mark.parametrize("lacking", ["source", "target"])
def test_what_is_required_must_have_a_counterpart(lacking: str) -> None:
    one = Api("a", (Parameter("input", frozenset({"tensor"}), required=True),))
    two = Api("b", (*one.parameters, Parameter("dim", frozenset({"int"}), required=True)))
    assert match(*((two, one) if lacking == "source" else (one, two))) is None


def test_calls_show_parameters_that_no_signature_states() -> None:
    api = Api("a", (Parameter("input"),))
    seen = observed(api, iter([{"input": "tensor", "alpha": "int"}, {"alpha": "float"}]))
    assert [(x.name, set(x.types)) for x in seen.parameters] == [("input", {"tensor"}), ("alpha", {"int", "float"})]
