"""What calling operators by argument name is for every library."""

from __future__ import annotations

import pytest

from opera.libraries.calls import Unusable, check_called, divided, split, tensor_input, written
from opera.programs.program import Instance
from opera.programs.values import RandomTensor


def test_arguments_are_positional_as_far_as_there_is_no_gap() -> None:
    assert split(["a", "b", "c"], {"b": 2, "a": 1, "d": 4}) == ([1, 2], {"d": 4})
    assert split(["a", "b", "c"], {"a": 1, "c": 3}) == ([1], {"c": 3})
    assert split((), {"a": 1}) == ([], {"a": 1})


def test_a_starred_formal_takes_all_that_follow() -> None:
    assert split(["x", "*dims"], {"x": 1, "dims": (2, 3), "out": 4}) == ([1, 2, 3], {"out": 4})
    assert split(["*tensors"], {"tensors": 5}) == ([5], {})
    assert split(["*tensors"], {"keyword": 6}) == ([], {"keyword": 6})


def test_what_is_called_is_told_from_what_is_constructed() -> None:
    assert divided({"units": 3, "call.inputs": 1, "call.mask": None}, "call.") == (
        {"units": 3},
        {"inputs": 1, "mask": None},
    )


def test_an_instance_says_how_it_was_called_or_cannot_be_called() -> None:
    context = {"init": {"args": ["a"], "kwargs": ["b"]}, "call": {"args": ["x"], "kwargs": []}}
    assert list(written(Instance("torch", "f", {}, (), (), context), "init", "call")) == ["a", "b", "x"]
    for damaged in ({}, {"call": None}, {"call": {"args": ["x"]}}):
        with pytest.raises(Unusable, match="how it was called"):
            list(written(Instance("torch", "f", {}, (), (), damaged), "call"))


def test_inputs_are_tensors_of_limited_size() -> None:
    value = RandomTensor("float32", (3, 4), 1, 0.0, 1.0)
    assert tensor_input(value, 12) is value
    with pytest.raises(Unusable, match="large"):
        tensor_input(value, 11)
    with pytest.raises(Unusable, match="no tensor"):
        tensor_input([1, 2], 12)


def test_only_what_a_class_makes_is_called_twice() -> None:
    check_called(True, [])
    check_called(False, None)
    with pytest.raises(Unusable, match="class without"):
        check_called(True, None)
    with pytest.raises(Unusable, match="function that is called twice"):
        check_called(False, [])
