"""torch.export as a compiler under test: it takes a module to an ExportedProgram, which all newer frontends read.

Most of them have it decomposed first, to fewer operators: that is the library's own step, whoever asks for it, and a variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opera import precision
from opera.compilers import APART, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.shared import messages, torch_live, torch_operators
from opera.programs.values import Value

NAME = "torchexport"
TITLE = "torch.export"
PACKAGE = "torch"
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload")

UNSUPPORTED = messages.table("torch", "export")


def version() -> str:
    import torch

    return str(torch.__version__)


def options() -> dict[str, str]:
    return {"strict": "False", **precision.TORCH}


def prepare() -> None:
    torch_live.prepare()


DECOMPOSED = "decomposed"


class Torch:
    """A module becomes an ExportedProgram, as it is or decomposed."""

    VARIANTS = (Variant("exported-program", "live"), Variant(DECOMPOSED, "live"))
    PACKAGES = ("torch",)
    TESTS = torch_operators.BEFORE
    EXPORTER = True
    WAYS = (Way("unsaved", APART, "the exported program, without saving and loading it"),)
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """The functions that its own PyTorch shares: torch.export decomposes by them, and annotates by `torch._ops.Callable`."""

    def load(self, case: Case) -> tuple[Any, Any]:
        """Return the program, and the live model."""
        import torch

        from opera.compilers.recipes import torchexport as recipe

        live = torch_live.rebuilt(case)
        load: Any = recipe.load_decomposed if case.variant == DECOMPOSED else recipe.load
        with torch.no_grad():
            return load(live.module, live.args), live

    def compile(self, loaded: tuple[Any, Any], case: Case) -> tuple[Any, Any]:
        """Save the program and load it again, as everybody does who hands it on."""
        from opera.compilers.recipes import torchexport as recipe

        program, live = loaded
        if case.way:
            return program.module(), live
        return recipe.save_and_load(program), live

    def infer(self, compiled: tuple[Any, Any], case: Case) -> list[Value]:
        model, live = compiled
        return torch_live.ran(live, model)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return torch_live.unsupported(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator: torch.export has no converter for each of them."""
        return case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{RECIPES}.torchexport"
        load = "load_decomposed" if involved.variant == DECOMPOSED else "load"
        return Recipe((f"{own}:{load}",), (f"{own}:save_and_load",), (f"{RECIPES}.torch:call",))


FRONTENDS: Mapping[str, Frontend] = {"torch": Torch()}
