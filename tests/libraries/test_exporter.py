"""What decides how tests are made: it is part of their identity, so that a changed declaration makes them anew."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest

from opera import resources

DECIDES = [
    ("onnx", "constants", "operators", "Relu", ["X"]),
    ("torch", "operators", "also", None, "torch.nn.functional.another"),
    ("torch", "operators", "makers", None, "torch.another"),
    ("torch", "deny", "it runs Python code", None, "torch.Tensor.another"),
    ("torch", "modules", "deny", None, "Another"),
    ("keras", "points", "functions", None, "keras.another"),
    ("keras", "deny", "it runs Python code", None, "keras.ops.another"),
    ("keras", "nondeterministic", "training", None, "keras.layers.Another"),
    ("keras", "nondeterministic", "training_prefixes", None, "keras.layers.Another"),
    ("keras", "exact", "operators", None, "keras.ops.another"),
    ("keras", "accumulating", "operators", None, "keras.ops.another"),
]
CAPTURES = [
    ("torch", "operators", "variadic", None, "torch.Tensor.another"),
    ("torch", "formals", "torch.where", None, "another"),
    ("keras", "points", "layers", None, "keras:Another"),
    ("keras", "tensors", "formals", None, "another"),
    ("keras", "made_up", "keras.ops.another", "", "num_classes"),
]


def changed(monkeypatch: pytest.MonkeyPatch, library: str, table: str, entry: str, key: str | None, item: Any) -> bool:
    """Tell whether the exporter is another one where a declaration says something more."""
    pytest.importorskip("tensorflow" if library == "keras" else library)
    module = importlib.import_module(f"opera.libraries.{library}.library")
    declared = copy.deepcopy(resources.declaration("instrumentation", library))
    if key is None:
        declared[table][entry].append(item)
    elif key:
        declared[table][entry][key] = item
    else:
        declared[table][entry] = item
    before = module.exporter()
    monkeypatch.setattr(resources, "declaration", lambda kind, name: declared)
    return bool(module._exporter.__wrapped__() != before)


@pytest.mark.parametrize("declaration", DECIDES, ids=lambda x: " ".join(x[:3]))
def test_a_declaration_that_decides_how_tests_are_made_is_part_of_their_exporter(monkeypatch, declaration) -> None:
    assert changed(monkeypatch, *declaration)


@pytest.mark.parametrize("declaration", CAPTURES, ids=lambda x: " ".join(x[:3]))
def test_a_declaration_that_only_says_what_is_captured_makes_no_test_anew(monkeypatch, declaration) -> None:
    assert not changed(monkeypatch, *declaration)
