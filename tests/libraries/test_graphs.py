"""Programs of several calls in each library: one model, references, what is undefined, source, and inputs stored once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from several_calls import EVERY, ONNX, TORCH, function, node

from opera import libraries
from opera.oracle import screens
from opera.programs import migrated
from opera.programs.program import Captured, Graph, Operand, Provenance
from opera.programs.values import Tensor

SEEN = Provenance("by-hand", "programs", "here")
NEEDS = {"onnx": "onnx", "torch": "torch", "keras": "tensorflow"}


def wrapped(graph: Graph, folder: Path) -> tuple[Any, migrated.Manifest, list[np.ndarray[Any, Any]]]:
    pytest.importorskip(NEEDS[graph.library])
    library: Any = libraries.get(graph.library)
    manifest = library.wrap(Captured(graph, SEEN), "t" * 20, folder)
    return library, manifest, [x.array() for x in migrated.read_values(folder, "expected")]


@pytest.mark.parametrize("name", EVERY)
def test_a_program_becomes_one_test(name: str, tmp_path: Path) -> None:
    graph = EVERY[name]
    library, manifest, expected = wrapped(graph, tmp_path)
    assert (manifest.instance, manifest.operator) == (graph.id, " + ".join(graph.operators))
    assert len(manifest.inputs) == len(graph.inputs) and len(expected) == len(graph.outputs)
    steps = library.steps(graph)
    assert [call.operator for call, _ in steps] == list(graph.operators)
    known = {
        name: value
        for call, (_, returned) in zip(graph.calls, steps, strict=True)
        for name, value in zip([x for x in call.outputs if x], returned, strict=False)
    }
    for name, value in zip(graph.outputs, expected, strict=True):
        np.testing.assert_allclose(known[name].array(), value, rtol=1e-6)
    for opinion in library.opinions(manifest, tmp_path, migrated.read_values(tmp_path, "inputs"), "onnxruntime"):
        if opinion.outputs is not None:
            for one, other in zip(opinion.outputs, expected, strict=True):
                np.testing.assert_allclose(one.array(), other, rtol=1e-5)
    shown = library.reproducer(manifest, tmp_path, graph, "onnx" if graph.library == "onnx" else "live")
    compile(shown["model"], "model", "exec")
    assert all(operator.rpartition(".")[2] in shown["model"] for operator in graph.operators)


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("onnx")])
def test_a_folder_holds_its_inputs_once(name: str, tmp_path: Path) -> None:
    library, manifest, expected = wrapped(EVERY[name], tmp_path)
    held = [path.name for path in tmp_path.iterdir() if b"$tensor" in path.read_bytes()]
    assert held == []
    live = library.live(manifest, tmp_path)
    made = live.run() if EVERY[name].library == "keras" else _eager(live)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _eager(live: Any) -> list[np.ndarray[Any, Any]]:
    found = live.module(*live.args)
    return [x.detach().numpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("library", ["torch", "keras"])
def test_folders_of_before_are_read(library: str, tmp_path: Path) -> None:
    """opera 0.1 wrote the instance, values and all, into the folder."""
    pytest.importorskip(NEEDS[library])
    module: Any = libraries.get(library)
    captured, _ = module.canaries()
    manifest = module.wrap(captured, "t" * 20, tmp_path)
    form = captured.program.form()
    old = {"instance": form, "outputs": {"mutated": [], "paths": [""]}} if library == "torch" else form
    (tmp_path / "instance.json").write_bytes(msgspec.json.encode(old))
    (tmp_path / "inputs.msgpack").unlink()
    live = module.live(manifest, tmp_path)
    made = live.run() if library == "keras" else _eager(live)
    np.testing.assert_array_equal(made[0], migrated.read_values(tmp_path, "expected")[0].array())


def test_a_call_in_place_changes_a_copy(tmp_path: Path) -> None:
    _, _, (changed, before) = wrapped(TORCH["matmul-relu_"], tmp_path)
    assert (before < 0).any() and np.array_equal(changed, np.maximum(before, 0))


def test_what_a_later_call_leaves_undefined_is_told(tmp_path: Path) -> None:
    zero = Operand("zero", Tensor.of(np.array([0, 1], np.int32)))
    numbers = Operand("x", Tensor.of(np.array([3, 4], np.int32)))
    onnx = Graph(
        "onnx", (numbers, zero),
        (node("Abs", {"X": "x"}, ("size",)), node("Div", {"A": "size", "B": "zero"}, ("y",))), ("y",),
    )  # fmt: skip
    pytest.importorskip("onnx")
    library = libraries.get("onnx")
    assert screens.why_undefined(library, onnx, []).startswith("Div: ")
    assert screens.why_undefined(library, ONNX["matmul-relu"], []) == ""


def test_constants_are_those_that_any_call_needs(tmp_path: Path) -> None:
    _, manifest, _ = wrapped(ONNX["clip-softmax"], tmp_path)
    assert manifest.artefacts["onnx"].feeds == ("x", "most")
    assert manifest.artefacts["onnx-constants"].feeds == ("x",)


def test_tags_are_those_of_all_calls(tmp_path: Path) -> None:
    assert wrapped(ONNX["matmul-relu"], tmp_path / "a")[1].tags == ("accumulating",)
    moved = Graph(
        "onnx", (Operand("x", Tensor.of([[1.0, -2.0]])),),
        (node("Relu", {"X": "x"}, ("y",)), node("Transpose", {"data": "y"}, ("z",))), ("z",),
    )  # fmt: skip
    assert wrapped(moved, tmp_path / "b")[1].tags == ("exact",)


def test_calls_of_two_opsets_are_refused(tmp_path: Path) -> None:
    graph = ONNX["matmul-relu"]
    other = msgspec.structs.replace(graph.calls[1], context={"opset": {"": 15}})
    with pytest.raises(Exception, match="two versions of the domain"):
        wrapped(msgspec.structs.replace(graph, calls=(graph.calls[0], other)), tmp_path)


def test_a_call_that_returns_fewer_tensors_is_refused(tmp_path: Path) -> None:
    call = function("torch.relu", {"input": "x"}, "y", "more")
    graph = msgspec.structs.replace(TORCH["linear-split-add"], calls=(call, function("torch.exp", {"input": "y"}, "z")))
    with pytest.raises(Exception, match="returns 1 tensors, not 2"):
        wrapped(msgspec.structs.replace(graph, outputs=("z",)), tmp_path)
