"""Whose failure an exception is, by where its traceback leads."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from faults import engine

from opera.compilers import Variant, onnxexport
from opera.compilers.openvino import compiler as openvino
from opera.compilers.tvm import compiler as tvm
from opera.run import culprit
from opera.run.culprit import COMPILER, LIBRARY, OPERA

ENGINE = ("faults.engine",)
HERE = __name__


def caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def whose(function: Callable[[], Any], packages: tuple[str, ...] = ENGINE, library: tuple[str, ...] = ()) -> str:
    return culprit.blame(caught(function), packages, HERE, library)


def asserts() -> None:
    assert not HERE


def unequal() -> None:
    list(zip([1], [1, 2], strict=True))


def lacking() -> Any:
    return {}["key"]


def misspelt() -> Any:
    return np.no_such_name


def imports() -> None:
    import no_such_module  # noqa: F401


def says_so() -> None:
    raise ValueError("the adapter's own")


def miscalls() -> Any:
    return engine.fail()  # type: ignore[call-arg]


def of_numpy() -> Any:
    return np.zeros(3).reshape(2, 2)


@pytest.mark.parametrize("function", [asserts, unequal, lacking, misspelt, imports, says_so, miscalls, of_numpy])
def test_an_adapters_mistake_is_operas(function: Callable[[], Any]) -> None:
    assert whose(function) == OPERA


def test_what_the_compilers_code_raises_is_its_own() -> None:
    assert whose(lambda: engine.fail(ValueError("no converter"))) == COMPILER
    assert whose(lambda: engine.fail(KeyError("its own mistake"))) == COMPILER
    assert whose(lambda: engine.fail(SystemExit(3))) == COMPILER


def test_what_the_compiler_calls_fails_on_its_account() -> None:
    assert whose(lambda: engine.call(lambda: None) or engine.numpy_mistake()) == COMPILER


def test_a_callback_of_opera_inside_the_compiler_is_operas() -> None:
    assert whose(lambda: engine.call(lacking)) == OPERA


def test_native_code_of_the_compiler_needs_no_frame() -> None:
    openvino_module = pytest.importorskip("openvino")

    def dimension() -> Any:
        shape = openvino_module.PartialShape([1])
        return shape.get_dimension(7)

    assert whose(dimension, ("openvino",)) == COMPILER
    assert whose(dimension, ENGINE) == OPERA


def test_operators_on_the_compilers_objects_are_its_own() -> None:
    torch = pytest.importorskip("torch")

    def product() -> Any:
        left, right = torch.zeros(3), torch.zeros(4)
        return left @ right

    assert whose(product, ("torch",)) == COMPILER
    assert whose(product, ENGINE) == OPERA


def test_an_exported_file_that_cannot_be_read_is_the_librarys(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt2"
    path.write_bytes(b"no program")
    assert whose(lambda: torch.export.load(path), ENGINE, ("torch",)) == LIBRARY
    assert whose(lambda: torch.export.load(path), ENGINE) == OPERA


def test_packages_are_declared_or_preloaded() -> None:
    assert culprit.packages_of(openvino, openvino.FRONTENDS["torch"]) == ("openvino",)
    assert culprit.packages_of(tvm, tvm.FRONTENDS["onnx"]) == ("tvm", "tvm_ffi")
    assert "onnxscript" in culprit.packages_of(onnxexport, onnxexport.FRONTENDS["torch"])
    adapter = SimpleNamespace(PRELOAD=("mine", "theirs.core"))
    assert culprit.packages_of(adapter, SimpleNamespace(VARIANTS=(Variant("a", "onnx", preload=("x.y",)),))) == (
        "mine",
        "theirs",
        "x",
    )


def test_frames_are_told_outermost_first() -> None:
    found = culprit.frames(caught(lambda: engine.fail(ValueError("x"))))
    assert found[-1].startswith("faults.engine:fail:")
    assert found[0].startswith(f"{HERE}:caught:")
