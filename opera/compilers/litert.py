"""LiteRT Torch: PyTorch's modules by its converter to TensorFlow Lite models, which LiteRT's interpreter runs."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

from opera import precision
from opera.compilers import RECIPES, Canary, Case, Frontend, Involved, Recipe, Variant, tflite
from opera.compilers.shared import messages, torch_live, torch_operators
from opera.compilers.shared.packing import Refusal, of_numpy
from opera.programs.values import Value
from opera.programs.verdicts import UNSUPPORTED as UNSUPPORTED_VERDICT

NAME = "litert"
TITLE = "LiteRT Torch"
PACKAGE = (
    "litert-torch litert-converter ai-edge-litert ai-edge-quantizer torchao jax jaxlib "
    "absl-py flatbuffers immutabledict ml-dtypes opt-einsum scipy tqdm typing-extensions"
)
"""What a conversion loads. litert-torch asks for more: a PyTorch for GPUs, and what language models and downloads need."""
ALONE = BARE = True
PRELOAD = (precision.PRELOAD, "torch", "litert_torch", "ai_edge_litert.interpreter")

RECIPE = f"{RECIPES}.litert"
UNSUPPORTED = messages.table("litert", "converter", "interpreter") + tflite.UNSUPPORTED
"""The words of the converter, and those of TensorFlow Lite, whose passes it ends with and whose interpreter runs its files."""
LOWERINGS = re.compile(r"litert_torch\.backend\.lowerings\.(?!utils|context|registry)")


class NotExported(Refusal):
    """PyTorch makes no exported program of the module, which the converter begins with: no fault of LiteRT's."""


def version() -> str:
    """Return the versions of the package, of the converter that its last step is, and of the interpreter."""
    others = [f"{name} {metadata.version(name)}" for name in ("litert-converter", "ai-edge-litert")]
    return ", ".join([metadata.version("litert-torch"), *others])


def options() -> dict[str, str]:
    return {"enable_x64": "where 64 bits go in or out", "threads": "1", **precision.TORCH}


def prepare() -> None:
    """Keep it quiet: it warns of modules in training, and its last step tells what it counted."""
    torch_live.prepare()
    logging.getLogger().setLevel(logging.ERROR)


class Torch:
    """The converter's own file is what the interpreter loads: an export that belongs to the compiler."""

    VARIANTS = (Variant("live", "live", preload=("opera.libraries.torch.preload",), exports="model.tflite"),)
    PACKAGES = ("litert_torch", "litert_converter", "ai_edge_litert")
    WAYS = tflite.WAYS
    BEFORE = torch_operators.BEFORE
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """It decomposes what it is given by PyTorch's own functions."""
    PYTHON = ("litert_torch.backend", "litert_torch._convert")

    def export(self, case: Case, path: Path) -> None:
        """Convert the module. Raises NotExported where PyTorch itself makes no program of it."""
        import torch

        from opera.compilers.recipes import litert as recipe

        live = torch_live.rebuilt(case)
        try:
            with torch.no_grad():
                recipe.export(live.module, str(path), live.args, case.dtypes)
        except Exception as error:
            if _exporting(error) and torch_operators.refusal(error) is None:
                raise NotExported(f"PyTorch cannot export it: {error}"[:300]) from None
            raise

    def load(self, case: Case) -> str:
        """Conversion was all of it: nothing is left but to name the file."""
        return str(case.model)

    def compile(self, loaded: str, case: Case) -> Any:
        """Have the interpreter read the model, choose kernels and allocate tensors."""
        return tflite.interpreter(loaded, case.way)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import litert as recipe

        feeds = {name: tflite.feed(value) for name, value in case.feeds.items()}
        return [of_numpy(array) for array in recipe.infer_placed(compiled, feeds, case.outputs, case.dtypes)]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        if isinstance(error, NotExported):
            return str(error)
        return torch_live.unsupported(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the lowering that raised, or the operator that has none; else that of what the operator decomposes to.

        Where decomposition leaves several operators that matter, that is told as `expanded svd`.
        """
        if missing := re.search(r"Lowering not found: ([\w.]+)", str(error)):
            return missing[1]
        if isinstance(error, NotExported) or _exporting(error):
            return case.operator
        return _raised(error) or torch_operators.decomposing(error) or _chosen(case)

    def canaries(self) -> tuple[Canary, ...]:
        about = "an operator without lowering is unsupported"
        return (Canary(about, UNSUPPORTED_VERDICT, torch_operators.uncommon()),)

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe((f"{RECIPE}:export",), (f"{RECIPES}.interpreter:allocate",), (f"{RECIPE}:infer_placed",))


FRONTENDS: Mapping[str, Frontend] = {"torch": Torch()}


def _frames(error: BaseException | None) -> Iterator[tuple[str, FrameType]]:
    """Yield module and frame of what an error came through, outermost first."""
    for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
        yield str(frame.f_globals.get("__name__")), frame


def _exporting(error: BaseException | None) -> bool:
    """Whether an error came out of torch.export.export, and no function of the converter's below it."""
    names = [f"{module}:{frame.f_code.co_name}" for module, frame in _frames(error)]
    place = names.index("torch.export:export") if "torch.export:export" in names else len(names)
    return place < len(names) and not any(name.startswith("litert_") for name in names[place:])


def _raised(error: BaseException | None) -> str:
    """Return the outermost of the converter's lowerings that an error came through (`lowerings:_aten_sub_tensor`)."""
    names = (_named(frame.f_code, module) for module, frame in _frames(error) if LOWERINGS.match(module))
    return next((name for name in names if name), "")


def _named(code: Any, module: str) -> str:
    """Name a lowering; a closure stands for as many as are made by it, and has no name of its own."""
    return "" if "<locals>" in code.co_qualname else f"{module.rpartition('.')[2]}:{code.co_qualname}"


def _chosen(case: Case) -> str:
    """Return the lowering that the converter chooses for what the operator decomposes to."""
    import torch
    from litert_torch import fx_infra
    from litert_torch.backend import lowerings

    live, name = torch_live.rebuilt(case), case.operator.rpartition(".")[2]
    with torch.no_grad():
        program = torch.export.export(live.module, live.args, strict=False)
        program = fx_infra.safe_run_decompositions(program, fx_infra.decomp.pre_lower_decomp(), can_skip=False)
    called = {x.target.__name__: x.target for x in program.graph.nodes if x.op == "call_function"}
    keys = torch_operators.telling(called, name)
    if len(keys) != 1:
        return f"expanded {name}"
    lowering = lowerings.lookup(called[keys[0]])
    code = getattr(lowering, "__code__", None)
    return (_named(code, lowering.__module__) if code is not None else "") or keys[0]
