"""Calls of PyTorch and Keras of which the model holds an argument: what they compute is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera import libraries
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Named, Tensor, Value

SEEN = Provenance("by-hand", "programs", "here")
NEEDS = {"torch": "torch", "keras": "tensorflow"}


def call(operator: str, names: list[str], params: dict[str, Value], context: dict[str, Any], *arrays: Any) -> Instance:
    library = operator.partition(".")[0]
    inputs = tuple(Operand(x, Tensor.of(np.float32(y))) for x, y in zip(names, arrays, strict=True))
    return Instance(library, operator, params, inputs, (), context)


def function(*args: str) -> dict[str, Any]:
    return {"kind": "function", "call": {"args": list(args), "kwargs": []}}


LAYER: dict[str, Any] = {"kind": "layer", "training": False, "call": {"args": ["call.inputs"], "kwargs": []}}
LIST: Value = [Named("torch.input", "tensors.0"), Named("torch.input", "tensors.1")]
LAYERS: Value = [Named("keras.input", "call.inputs.0"), Named("keras.input", "call.inputs.1")]
CALLS = {
    "torch": (call("torch.sub", ["input", "other"], {}, function("input", "other"), [1, 2], [5, 3]), "other"),
    "torch-first": (call("torch.sub", ["input", "other"], {}, function("input", "other"), [1, 2], [5, 3]), "input"),
    "torch-list": (
        call("torch.cat", ["tensors.0", "tensors.1"], {"tensors": LIST}, function("tensors"), [1, 2], [5]),
        "tensors.1",
    ),
    "keras": (call("keras.ops.subtract", ["x1", "x2"], {}, function("x1", "x2"), [1, 2], [5, 3]), "x2"),
    "keras-layer": (
        call(
            "keras.layers.Subtract", ["call.inputs.0", "call.inputs.1"], {"call.inputs": LAYERS}, LAYER, [[1, 2]], [[5, 3]]
        ),
        "call.inputs.1",
    ),
}  # fmt: skip


def expected(program: Any, folder: Path) -> tuple[list[np.ndarray[Any, Any]], tuple[str, ...], str]:
    library: Any = libraries.get(program.library)
    folder.mkdir()
    manifest = library.wrap(Captured(program, SEEN), "t" * 20, folder)
    source = library.reproducer(manifest, folder, program, "live")["model"]
    return [x.array() for x in migrated.read_values(folder, "expected")], manifest.inputs, source


@pytest.mark.parametrize("name", CALLS)
def test_a_model_that_holds_an_argument_computes_the_same(name: str, tmp_path: Path) -> None:
    program, held = CALLS[name]
    pytest.importorskip(NEEDS[program.library])
    library: Any = libraries.get(program.library)
    [made] = library.embedded(program, held)
    assert [x.name for x in made.inputs] == [x.name for x in program.inputs if x.name != held]
    before, names, _ = expected(program, tmp_path / "before")
    after, left, source = expected(made, tmp_path / "after")
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    first = next(x.value for x in program.inputs if x.name == held).numbers().ravel()[0]  # type: ignore[union-attr]
    assert (len(names), len(left)) == (2, 1) and f"{first:.1f}" in source
    assert library.attributed(program, held) == []


def test_the_only_input_is_none_that_a_model_could_hold() -> None:
    alone = call("torch.abs", ["input"], {}, function("input"), [1, -2])
    assert libraries.get("torch").embedded(alone, "input") == []  # type: ignore[attr-defined]
