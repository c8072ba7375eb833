"""TVM's importer of PyTorch's exported programs."""

from __future__ import annotations

import inspect
import itertools
import re
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any

from opera import precision
from opera.compilers import LOWERED, SOURCE, Case, Involved, Recipe, Variant, Way
from opera.compilers.shared import messages, torch_operators
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import ALONE, Made, Read
from opera.compilers.tvm import onnx as importer
from opera.compilers.tvm import reading, replaced
from opera.compilers.tvm.onnx import Onnx
from opera.compilers.tvm.values import feed, read
from opera.programs.values import Value

PRELOAD = (precision.PRELOAD, "opera.libraries.torch.preload", "tvm.relax.frontend.torch")

UNSUPPORTED = messages.table("tvm", "pytorch", "every")
"""The words of its importer. What an `assert` without words stops is no refusal, but a crash."""


NARROWED = "narrowed"


class Torch(Onnx):
    """TVM's importer of exported programs; what PyTorch exports to ONNX goes through that of ONNX."""

    VARIANTS = (
        Variant("exported-program", "pt2", preload=PRELOAD, trial=importer.QUICK),
        Variant("onnx", "onnx", after="rejected", preload=importer.PRELOAD, trial=importer.QUICK),
    )
    PYTHON = ("tvm.relax.frontend.torch",)
    BEFORE = torch_operators.BEFORE
    WAYS = (
        *Onnx.WAYS,
        Way(NARROWED, LOWERED, "the operator of it without which all is right", "load", ("pt2",)),
    )

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import tvm_torch as recipe

        if case.artefact == "pt2" and case.way == SOURCE:
            raise Read("\n".join(_sources(case)))
        if case.artefact == "pt2" and case.way == NARROWED:
            raise Made(" ".join(_named(key) for key in _narrowed(case)[0]))
        return recipe.load(str(case.model)) if case.artefact == "pt2" else super().load(case)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import tvm_torch as recipe

        if case.artefact != "pt2":
            return super().infer(compiled, case)
        found: list[Value] = recipe.infer(compiled, case.feeds, feed, read)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        """Return the operators without converter, PyTorch's refusal, or what the importer says."""
        if case.artefact != "pt2":
            return super().unsupported(case, stage, error)
        missing = _missing(error)
        refused = f"no converter for {missing}" if missing else torch_operators.refusal(error)
        return refused or first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the converter that raised, else the one that TVM chooses for what the operator decomposes to.

        A converter is told as `base_fx_graph_translator:BaseFXGraphImporter._conv2d`; one that serves several operators is
        told with the operator: `base_fx_graph_translator:BaseFXGraphImporter._unary_op[cos.default]`. Where decomposition
        leaves several operators that matter and none raised, that is told as `expanded svd`.
        """
        if case.artefact != "pt2":
            return super().conversion_function(case, error)
        told = _missing(error) or _raised(error)
        if told:
            return told
        name = case.operator.rsplit(".", 1)[-1]
        keys = list(_called_for(_decomposed(case), name))
        return _named(keys[0]) if len(keys) == 1 else f"expanded {name}"

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return importer.steps("torch" if artefact == "pt2" else "onnx", involved)


def _decomposed(case: Case) -> Any:
    import torch

    return torch.export.load(case.model).run_decompositions()


def _called_for(program: Any, name: str) -> dict[str, list[Any]]:
    """Return the operators of a decomposed program that matter (`sub.Tensor`), with their nodes.

    Args:
        name: Of the operator that was exported, its last part.
    """
    found: dict[str, list[Any]] = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            found.setdefault(node.target.__name__, []).append(node)
    return {key: found[key] for key in torch_operators.telling(found, name)}


def _narrowed(case: Case) -> tuple[dict[str, list[Any]], bool]:
    """Return the operator that matters, with its nodes, and whether it is one of several: then it is the one that goes wrong,
    and none where that is not known.
    """
    program = _decomposed(case)
    called = _called_for(program, case.operator.rsplit(".", 1)[-1])
    if len(called) < 2:
        return called, False
    node = replaced.culprit(program, list(case.feeds.values()))
    return {node.target.__name__: [node]} if node is not None else {}, True


def _named(key: str) -> str:
    """Name the converter of an operator, else the operator."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    converter = ExportedProgramImporter().convert_map.get(key)
    if converter is None:
        return key
    held = inspect.getclosurevars(converter).nonlocals
    return _called(converter.__code__, converter.__module__, key, held)


def _sources(case: Case) -> list[str]:
    """Return where the code stands that converts the operator that goes wrong, and which of its arguments that never reads."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    converters, found = ExportedProgramImporter().convert_map, []
    called, several = _narrowed(case)
    for key, nodes in called.items():
        if key in converters:
            [argument, *_] = inspect.signature(converters[key]).parameters
            given = {x: keys for node in nodes for x, keys in _arguments(node).items()}
            name = _named(key).partition(":")[2]
            told = reading.told(name, converters[key], {argument: reading.Given(reading.NODE, given)})
            found.append(f"{ALONE}{told}" if several else told)
    return found


def _arguments(node: Any) -> dict[str, frozenset[str | int]]:
    """Return the arguments that a node is given, by their names, each with what it may be read by: its name, or its place."""
    schema = getattr(node.target, "_schema", None)
    formals = [x.name for x in schema.arguments] if schema is not None else []
    every = {name: frozenset({name, place}) for place, name in enumerate(formals)}
    return {x: keys for x, keys in every.items() if x in node.kwargs or formals.index(x) < len(node.args)}


def _missing(error: BaseException | None) -> str:
    """Return the operators without converter, which the importer lists in an order that changes from run to run."""
    found = re.search(r"Unsupported function types \[([^\]]+)\]", str(error))
    return ", ".join(sorted(re.findall(r"[\w.]+", found[1]))) if found else ""


def _raised(error: BaseException | None) -> str:
    """Return the converter whose frame is in the traceback: the one called by the loop over the graph's nodes."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None)]
    for caller, frame in itertools.pairwise(frames):
        if caller.f_code.co_name == "_translate_fx_graph" and "func_name" in caller.f_locals:
            held = {x: frame.f_locals.get(x) for x in frame.f_code.co_freevars}
            module, key = str(frame.f_globals.get("__name__")), str(caller.f_locals["func_name"])
            return _called(frame.f_code, module, key, held)
    return torch_operators.decomposing(error)


def _called(code: Any, module: str, key: str, held: Mapping[str, Any]) -> str:
    """Name a converter; a closure or lambda, whose qualified name others share, gets the operator added.

    Of one that `held` a function with arguments of its own, that is added, which the table has for several operators alike:
    mm, bmm and matmul are `partial(matmul, out_dtype="float32")`.
    """
    name = re.sub(r"\.<locals>\.(?:convert|<lambda>)$", "", code.co_qualname)
    shared = name != code.co_qualname
    for bound in (x for x in held.values() if isinstance(x, partial)):
        given = ", ".join([*map(repr, bound.args), *(f"{x}={y!r}" for x, y in bound.keywords.items())])
        key = f"{bound.func.__name__}({given})"
    return f"{module.rsplit('.', 1)[-1]}:{name}" + (f"[{key}]" if shared else "")
