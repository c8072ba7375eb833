"""OpenCV's DNN module on the CPU. It is given the model file; the onnx package tells which types its outputs have."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from opera.compilers import CONVERSION, KERNEL, OPTIMISATION, RECIPES, Case, Frontend, Involved, Recipe, Variant
from opera.compilers.shared import messages
from opera.compilers.shared.messages import last_location
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, NoAnswer, of_numpy
from opera.programs.values import CONTAINERS, Tensor, Value

NAME = "opencv"
TITLE = "OpenCV"
PACKAGE = "opencv-python-headless onnx"
PRELOAD = ("onnx", "cv2")

UNSUPPORTED = messages.table("opencv", "onnx")

RECIPE = f"{RECIPES}.opencv"
PLACES = {
    r"dnn/src/onnx/|error: .* in function 'getLayerInstance'": CONVERSION,
    r"dnn/src/(?:graph_|fuse|const_fold)": OPTIMISATION,
    r"dnn/src/(?:layers|int8layers)/|modules/(?:core|imgproc)/": KERNEL,
}
"""Folders of its sources. Its switches for optimisations have no effect on the new engine: there are no ways without."""
NODE = r"Node \[(\w+)@"
"""How it names the operator of a node that it reads."""
LOOP = r"dnn/src/(?:onnx/onnx_importer2?|layer|net_impl2?|net)\.[ch]pp|core/src/matrix|core/include/"
"""Where whatever fails in any operator is raised, or raised again."""


def version() -> str:
    import cv2

    return str(cv2.__version__)


def options() -> dict[str, str]:
    return {"backend": "opencv", "target": "cpu", "engine": "auto", "threads": "1"}


def prepare() -> None:
    import cv2

    from opera.compilers.recipes import opencv as recipe  # noqa: F401 - its import does it

    cv2.utils.logging.setLogLevel(0)


class Onnx:
    """OpenCV's reader of ONNX models."""

    VARIANTS = (
        Variant("inputs", "onnx"),
        Variant("constants", "onnx-constants", after="rejected"),
    )
    PACKAGES = ("cv2",)
    PLACES: Mapping[str, str] = PLACES

    def load(self, case: Case) -> Any:
        """Read the file; where neither engine does, tell which operators the new one lacks, which it only prints.

        What the classic one says then is of a model that was never meant for it, unless it fails at such an operator itself.
        """
        import cv2

        from opera.compilers.recipes import opencv as recipe

        try:
            return recipe.load(str(case.model))
        except cv2.error as error:
            lacking = _lacking(str(case.model))
            named = re.search(NODE, str(error))
            if not lacking or (named and named[1] in lacking):
                raise
            raise cv2.error(f"{error}\nUnsupported operations: {', '.join(lacking)}") from None

    def compile(self, loaded: Any, case: Case) -> Any:
        """Nothing is left to compile once the net is there: the first inference does it."""
        return loaded

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import opencv as recipe

        fed = {name: _array(value) for name, value in case.feeds.items()}
        return [_value(array) for array in recipe.run(compiled, fed, case.outputs)]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the node that failed and the place in OpenCV's sources, or one of these; of wrong outputs the operator.

        The node may be one of a function's expanded body. A place of a layer's own says enough where no node is named.
        """
        message = "" if error is None else str(error)
        named = re.search(NODE, message)
        place = last_location(message, LOOP)
        if named is None:
            return place or case.operator
        return f"{named[1]}@{place}" if place else named[1]

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe(load=(f"{RECIPE}:load",), infer=(f"{RECIPE}:run",))


FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx()}


def _lacking(path: str) -> list[str]:
    """Return the operators that OpenCV prints to be unsupported by its new engine when it reads a file by that one."""
    import cv2

    levels = cv2.utils.logging
    before, kept = levels.getLogLevel(), os.dup(2)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 2)
        try:
            levels.setLogLevel(levels.LOG_LEVEL_WARNING)
            with contextlib.suppress(cv2.error):  # the failure that is known
                cv2.dnn.readNetFromONNX(path, cv2.dnn.ENGINE_NEW)
        finally:
            levels.setLogLevel(before)
            os.dup2(kept, 2)
            os.close(kept)
        printed.seek(0)
        found = re.search(r"Unsupported operations:\s+((?:\w+\s+)+)", printed.read().decode("utf-8", "replace"))
    return found[1].split() if found else []


def _array(value: Value) -> np.ndarray[Any, Any]:
    dtype = value.dtype if isinstance(value, Tensor) else f"{type(value).__name__.lower()}s"
    if not isinstance(value, Tensor) or CONTAINERS[dtype] != dtype or dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {dtype} to OpenCV, whose Python interface takes none")
    return value.array()


def _value(array: Any) -> Tensor:
    if array is None:
        raise NoAnswer("OpenCV returned None for an output that is not empty")
    return of_numpy(array)
