"""Operators' defaults are asked of a library once: `opera prioritize` imports none for what a workspace knows."""

from __future__ import annotations

import pytest

from opera.libraries.onnx import library
from opera.prioritize import defaults
from opera.programs.values import NO_DEFAULT
from opera.store import defaults as stored
from opera.store.workspace import Workspace

pytest.importorskip("onnx")


def test_what_is_stored_is_not_asked_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = library.equipped_defaults(["Conv", "Clip"])
    assert asked["Conv"]["auto_pad"] and asked["Conv"]["dilations"] == NO_DEFAULT
    assert defaults.of(workspace, "onnx", ["Conv", "None such"]) == {"Conv": asked["Conv"]}

    def ask(operators: list[str]) -> dict[str, object]:
        assert list(operators) == ["Clip"], "what is stored is asked again"
        return {"Clip": asked["Clip"]}

    monkeypatch.setattr(library, "equipped_defaults", ask)
    assert defaults.of(workspace, "onnx", ["Conv", "Clip", "None such"]) == asked
    assert defaults.of(workspace, "onnx", ["None such"]) == {}


def test_another_version_of_the_library_is_asked_anew(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults.of(workspace, "onnx", ["Conv"])
    exporter = stored.version("onnx", library.exporter())
    assert set(stored.known(workspace, "onnx", exporter)) == {"Conv"}
    other = library.exporter() | {"onnx": "99"}
    monkeypatch.setattr(library, "exporter", lambda: other)
    monkeypatch.setattr(library, "equipped_defaults", lambda operators: {x: {"new": 1} for x in operators})
    assert defaults.of(workspace, "onnx", ["Conv"]) == {"Conv": {"new": 1}}
