"""PyTorch itself as a compiler of every artefact that is made of it, for its recipe alone.

`opera.compilers.get("faults.itself:compiler")` finds it.
"""

from __future__ import annotations

from types import SimpleNamespace

from opera.compilers import RECIPES, Involved, Recipe, Variant

NAME = "faults.itself:compiler"


class Itself:
    VARIANTS = tuple(Variant(name, name) for name in ("live", "pt2", "torchscript", "onnx"))

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        infer = "faults.itself_recipe:infer_onnx" if artefact == "onnx" else f"{RECIPES}.torch:call"
        return Recipe(load=(f"faults.itself_recipe:load_{artefact}",), infer=(infer,))


compiler = SimpleNamespace(NAME=NAME, FRONTENDS={"torch": Itself()})
