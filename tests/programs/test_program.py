from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from strategies import INSTANCES

from opera.errors import CorpusError
from opera.programs.program import Captured, Instance, Operand, Provenance, parse_captured, parse_instance
from opera.programs.values import Tensor


@given(INSTANCES)
def test_the_canonical_form_decides_identity(instance):
    again = parse_instance(instance.canonical())
    assert again.canonical() == instance.canonical()
    assert again.id == instance.id


def instance(**changed: object) -> Instance:
    parts = {
        "library": "onnx", "operator": "Relu", "params": {"alpha": 1.0, "beta": 2},
        "inputs": (Operand("X", Tensor("int8", (1,), b"\1")),), "outputs": ("Y",), "context": {},
    }  # fmt: skip
    return Instance(**(parts | changed))


def test_the_order_of_parameters_does_not_matter_and_their_types_do():
    assert instance().id == instance(params={"beta": 2, "alpha": 1.0}).id
    others = [{"alpha": 1, "beta": 2}, {"alpha": 1.0, "beta": 2.0}, {"alpha": True, "beta": 2}, {"alpha": 1.0}]
    assert len({instance().id, *(instance(params=other).id for other in others)}) == 5


def test_captured_round_trips_with_what_its_test_expects():
    captured = Captured(instance(), Provenance("s", "f", "t"), (math.inf, "x"), 1e-3, None)
    assert parse_captured(msgspec.json.encode(captured.form())) == captured


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"library": 1}',
        b"[" * 50_000,
        b'{"library":"onnx","operator":"' + b"x" * 600 + b'"}',
    ],
)
def test_malformed_instances_are_refused(data):
    with pytest.raises(CorpusError):
        parse_instance(data)
    with pytest.raises(CorpusError):
        parse_captured(data)
