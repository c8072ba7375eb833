from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.programs.values import Tensor
from opera.sources.docter import constraints
from opera.sources.docter.check import broken
from opera.sources.docter.constraints import Api
from opera.sources.docter.generate import Generator, order
from opera.sources.docter.make import Unsatisfied
from opera.sources.docter.violate import Violator


def api(required: dict[str, dict[str, list[str]]], optional: dict[str, dict[str, list[str]]] | None = None) -> Api:
    optional = optional or {}
    made = {name: constraints.parameter(name, texts, None, "") for name, texts in {**required, **optional}.items()}
    return Api("torch.f", "torch", tuple(required), tuple(optional), made, file="torch.f")


INPUT = {"tensor_t": ["tensor"], "dtype": ["float32", "int64"], "shape": ["[N,C,L]"]}
WEIGHT = {"tensor_t": ["tensor"], "dtype": ["dtype:&input"], "shape": ["[O,C,&size]"]}
SIZE = {"dtype": ["int"], "ndim": ["0"], "range": ["[1,5]"]}


def texts(kind: st.SearchStrategy[dict[str, list[str]]]) -> st.SearchStrategy[dict[str, dict[str, list[str]]]]:
    return st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), kind, min_size=1, max_size=4)


NUMBERS = st.fixed_dictionaries(
    {"dtype": st.sampled_from([["int"], ["float"], ["numeric"]]), "ndim": st.just(["0"])},
    optional={"range": st.sampled_from([["[0,inf)"], ["(0,1]"], ["[-3,-1]"], ["[1,1]"]])},
).filter(lambda x: not (x["dtype"] == ["int"] and x.get("range") == ["(0,1)"]))
TENSORS = st.fixed_dictionaries(
    {"tensor_t": st.just(["tensor"])},
    optional={
        "dtype": st.sampled_from([["float32"], ["int"], ["bool", "uint8"], ["complex64"]]),
        "ndim": st.sampled_from([["2"], [">=3"], ["1", "4"], ["?"]]),
        "range": st.sampled_from([["[0,1]"], ["[0,inf)"]]),
    },
)
LISTS = st.fixed_dictionaries(
    {
        "dtype": st.just(["int"]),
        "structure": st.sampled_from([["list"], ["tuple"], ["list", "tuple"]]),
        "ndim": st.just(["1"]),
    },
    optional={"shape": st.sampled_from([["[2]"], ["[n]"]]), "range": st.just(["[0,inf)"])},
)
WORDS = st.just({"dtype": ["string"], "enum": ["mean", "sum"]})


@settings(max_examples=60, deadline=None)
@given(texts(st.one_of(NUMBERS, TENSORS, LISTS, WORDS)), st.integers(0, 1000), st.lists(st.booleans(), min_size=1))
def test_inputs_satisfy_what_they_were_made_from(stated: dict[str, Any], seed: int, fate: list[bool]) -> None:
    made = api(stated)
    generator = Generator(made, seed)
    for number in range(8):
        found = generator.draw(number)
        assert set(found.values) == set(stated)
        assert broken(made, found.values) == set()
        generator.learn(found, fate[number % len(fate)])


@settings(max_examples=40, deadline=None)
@given(texts(st.one_of(NUMBERS, TENSORS, WORDS)), st.integers(0, 1000))
def test_violating_inputs_break_exactly_one_constraint(stated: dict[str, Any], seed: int) -> None:
    made = api(stated)
    generator, violator = Generator(made, seed, boundary=0), Violator(made, seed)
    for number in range(4):
        conforming = generator.draw(number).values
        values, violates = violator.violate(conforming, number)
        assert [f"{category} of {name}" for name, category in broken(made, values)] == [violates]


def test_dependencies_hold_within_an_input() -> None:
    made = api({"weight": WEIGHT, "input": INPUT, "size": SIZE})
    assert order(made).index("weight") > order(made).index("size") and order(made).index("weight") > order(made).index(
        "input"
    )
    generator = Generator(made, 3, boundary=0)
    for number in range(20):
        values = generator.draw(number).values
        weight, tensor = values["weight"], values["input"]
        assert isinstance(weight, Tensor) and isinstance(tensor, Tensor)
        assert weight.dtype == tensor.dtype and weight.shape[1:] == (tensor.shape[1], values["size"])


def test_a_seed_gives_the_same_inputs_and_another_one_others() -> None:
    made = api({"input": INPUT}, {"size": SIZE})
    first, second, other = (Generator(made, seed) for seed in (1, 1, 2))
    drawn = [[g.draw(number).values for number in range(5)] for g in (first, second, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_optional_parameters_are_given_with_probability_point_six() -> None:
    made = api({"input": INPUT}, {"size": SIZE})
    generator = Generator(made, 0)
    share = sum("size" in generator.draw(number).values for number in range(1, 400)) / 399
    assert 0.5 < share < 0.7
    assert "size" not in generator.draw(0).values  # the first one is bare


def test_what_the_library_takes_becomes_likelier() -> None:
    made = api({"a": {"tensor_t": ["tensor"]}, "b": {"tensor_t": ["tensor"]}})

    def share(numbers: range, generator: Generator) -> float:
        taken = []
        for number in numbers:
            found = generator.draw(number)
            a, b = found.values["a"], found.values["b"]
            assert isinstance(a, Tensor) and isinstance(b, Tensor)
            taken.append(a.dtype == b.dtype == "float64" and a.shape == b.shape)
            generator.learn(found, taken[-1])
        return sum(taken) / len(taken)

    generator = Generator(made, 0)
    assert share(range(40), generator) < share(range(200, 300), generator)


@pytest.mark.parametrize(
    "stated",
    [
        {"a": {"dtype": ["int"], "ndim": ["0"], "range": ["(0,1)"]}},
        {"a": {"tensor_t": ["tensor"], "ndim": ["9"]}},
        {
            "a": {"tensor_t": ["tensor"], "shape": ["[&b]"]},
            "b": {"dtype": ["int"], "ndim": ["0"], "range": ["[-9,-1]"]},
        },
        {"a": {"tensor_t": ["tensor"], "shape": ["[len:&a]"]}},
        {"a": {"dtype": ["int"], "structure": ["list"], "shape": ["[1000000000]"]}},
        {"a": {"tensor_t": ["tensor"], "shape": ["[100000,100000]"]}},
    ],
)
def test_what_cannot_be_satisfied_is_said_and_ends(stated: dict[str, dict[str, list[str]]]) -> None:
    started = time.process_time()
    with pytest.raises(Unsatisfied, match=r"a|b"):
        Generator(api(stated), 0).draw(0)
    assert time.process_time() - started < 5


def test_circles_of_dependencies_end() -> None:
    made = api(
        {"a": {"tensor_t": ["tensor"], "shape": ["[len:&b]"]}, "b": {"tensor_t": ["tensor"], "shape": ["[len:&a]"]}}
    )
    assert sorted(order(made)) == ["a", "b"]
    with pytest.raises(Unsatisfied):
        Generator(made, 0).draw(0)
