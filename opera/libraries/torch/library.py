"""PyTorch as a library of operators: a program becomes an nn.Module, with eager PyTorch as reference."""

from __future__ import annotations

import importlib.metadata
import re
import struct
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

from opera import precision, resources
from opera.libraries import Cast, embedding, exported, rulings
from opera.libraries import simplest as simplest_calls
from opera.libraries.documented import Quote, Wrong, of_docstring
from opera.libraries.documented import described as inputs_described
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import export as torch_export
from opera.libraries.torch import references as torch_reference
from opera.libraries.torch import source as torch_source
from opera.libraries.torch import undefined as torch_undefined
from opera.libraries.torch import wrap as torch_module
from opera.oracle import screens
from opera.oracle.opinions import Opinion
from opera.programs import degenerate, migrated, values
from opera.programs.migrated import LIVE, Artefact, Manifest
from opera.programs.program import Argument, Call, Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import Value

NAME = "torch"
PACKAGE = "torch"
DEFINES_FORMS = True
EXPORTER_VERSION = "2"
"""Changes whenever `wrap` makes another model of the same instance, or tags it otherwise."""
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload")


def version() -> str:
    """Return the version of the installed torch; PackageNotFoundError (an ImportError) where there is none."""
    return importlib.metadata.version("torch")


def exporter() -> dict[str, str]:
    """Return what decides how models look: torch, onnxscript where it is there, this module, and the declarations."""
    return dict(_exporter())


@cache
def _exporter() -> dict[str, str]:
    declared = resources.digest(torch_api.deciding())
    found = {"torch": version(), "opera-torch": EXPORTER_VERSION, "torch.toml": declared}
    try:
        return {
            **found,
            "onnxscript": importlib.metadata.version("onnxscript"),
        }  # it holds the functions that `onnx` is made of
    except importlib.metadata.PackageNotFoundError:
        return found


def wrap(captured: Captured, test: str, directory: Path) -> Manifest:
    """Write a test whose artefact is `live`; files are exported when a frontend asks for them.

    Expected outputs are eager PyTorch's, unless the test states its own. Raises InvalidTest where PyTorch rejects the case,
    or returns no tensor.
    """
    program = captured.program
    ran = torch_module.run(program)
    known = torch_source.identifiers(program)
    names = tuple(known[operand.name] for operand in program.inputs)
    expected = ran.expected if captured.expected is None else torch_module.stated(captured, ran.expected)
    random = ran.random and not (isinstance(program, Instance) and degenerate.holds(program))
    tags = torch_undefined.tags(program) | set(captured.tags) | ({"nondeterministic"} if random else set())
    tags |= {screens.UNWRITTEN} if ran.unwritten else set()
    manifest = Manifest(
        test=test, instance=program.id, library=NAME, operator=program.operator, exporter=exporter(),
        inputs=names, outputs=tuple(f"output_{number}" for number in range(len(expected))),
        artefacts={LIVE: Artefact(torch_module.FILE, names)}, offers=tuple(torch_export.FILES),
        reference="eager" if captured.expected is None else captured.reference or "test",
        rtol=captured.rtol, atol=captured.atol, tags=tuple(sorted(tags)),
    )  # fmt: skip
    inputs = [operand.value for operand in program.inputs]
    migrated.write(directory, manifest, inputs, expected, {torch_module.FILE: torch_module.saved(program, ran.outputs)})
    return manifest


def export(manifest: Manifest, directory: Path, artefact: str) -> Artefact:
    """Write the file of `pt2`, `torchscript` or `onnx`. Whatever it raises is the exporter's failure.

    An ONNX file is run before it is handed on: WrongExport where it does not compute what PyTorch does.
    """
    file = torch_export.write(live(manifest, directory), artefact, directory)
    if artefact == "onnx":
        exported.check_onnx(manifest, directory, directory / file)
    return Artefact(file, manifest.inputs)


def live(manifest: Manifest, directory: Path) -> torch_module.Live:
    """Rebuild the module of a test, and its inputs."""
    return torch_module.live(directory, manifest.inputs, manifest.outputs)


ALIAS = re.compile(r"Alias for :(?:func|meth):`~?(torch\.[\w.]+)`\.?\s*$")
"""How the documentation of `torch.softmax` ends: another function's is meant."""


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    """Ask eager PyTorch (without a vote), and the same module in float64."""
    return torch_reference.opinions(manifest, directory, inputs)


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why PyTorch leaves the result undefined, with the numbers that show it, else None."""
    return torch_undefined.undefined(instance, expected)


def steps(program: Graph) -> list[tuple[Instance, list[Value]]]:
    """Return each call with the values of its arguments, and what eager PyTorch returns for them."""
    return torch_module.steps(program)


def expanded(instance: Instance) -> list[Program]:
    """Return the calls that PyTorch's exporter makes of one call; empty where it stays one."""
    from opera.libraries.torch import expansion as torch_expansion  # reduction alone needs it

    return list(torch_expansion.expanded(instance))


def negations(call: Instance, of: str, made: str) -> list[Call]:
    """Return what negates a result of a call, see `opera.libraries.Negating`."""
    context: dict[str, Value] = {"kind": "function", "call": {"args": ["input"], "kwargs": []}}
    return [
        Call(x, {}, (Argument("input", of),), (made,), context)
        for x in ("torch.neg", "torch.bitwise_not", "torch.ravel")
    ]


def embedded(call: Instance, name: str) -> list[Program]:
    """Return the call that is given an input as a constant, see `opera.libraries.Embedding`."""
    return [*embedding.embedded(call, name, "torch.input")]


def attributed(call: Instance, name: str) -> list[Instance]:
    """Return nothing: PyTorch's operators have no versions that state an input otherwise."""
    return []


def reproducer(manifest: Manifest, directory: Path, program: Program, variant: str) -> dict[str, object]:
    """Return the code of the module and its inputs; `variant` is the name of the artefact to show."""
    return torch_source.reproducer(manifest, *torch_module.load(directory), variant)


def specification(operator: str) -> str:
    """Return the address of an operator's documentation."""
    return torch_source.specification(operator)


def documented(call: Instance, parameters: list[str], wrong: Wrong) -> list[Quote]:
    """Return what the documentation says of parameters, and of what is special about the inputs."""
    operator = alias(call.operator) or call.operator  # that of an alias says no more than what it is one of
    docstring, address = torch_api.resolve(operator).__doc__ or "", specification(operator)
    settling = rulings.of_docstring(call, docstring, address, wrong)
    return [*settling, *of_docstring(call, docstring, parameters, address, wrong)]


def alias(operator: str) -> str:
    """Return the function that another is an alias of, as its documentation says: `torch.sub` of `torch.subtract`."""
    found = ALIAS.search(torch_api.resolve(operator).__doc__ or "")
    return found[1] if found else ""


def described(call: Instance) -> dict[str, str]:
    """Return the name of an input → what the documentation says of it."""
    return inputs_described(call, torch_api.resolve(call.operator).__doc__ or "")


def equipped_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Return operator → parameter → default, by the signatures of its functions and modules."""
    from opera.libraries.torch import signatures as torch_signatures  # prioritization alone needs it

    return torch_signatures.defaults(operators)


def typed(dtype: str) -> Value:
    """Return what a parameter holds that names a dtype."""
    return values.Named("torch.dtype", dtype)


def simplest(
    program: Program, *, panel: bool = False, cast: Cast | None = None, nodes: Collection[str] = ()
) -> list[Instance]:
    """Return the simplest calls of what a program is given, see `opera.libraries.Plain`."""

    def context(of: simplest_calls.Declared) -> dict[str, Value]:
        kind = "method" if of.operator.startswith("torch.Tensor.") else "function"
        return {"kind": kind, "call": {"args": list(of.args), "kwargs": []}}

    return simplest_calls.calls(NAME, program, context, typed, cast, panel=panel, nodes=nodes)


def canaries() -> tuple[Captured, Captured]:
    """Return an addition with its sum, and one with a sum that is off by one in one place."""
    return _addition(0.0, 0.0), _addition(4.0, 1.0)


def _addition(offset: float, error: float) -> Captured:
    left, right = [1.0 + offset, 2.0, 3.0], [10.0, 20.0, 30.0]
    total = [a + b for a, b in zip(left, right, strict=True)]
    total[1] += error
    tensors = [values.Tensor("float32", (3,), struct.pack("<3f", *numbers)) for numbers in (left, right, total)]
    operands = (Operand("input", tensors[0]), Operand("other", tensors[1]))
    context = {"kind": "function", "call": {"args": ["input", "other"], "kwargs": []}}
    instance = Instance(NAME, "torch.add", {}, operands, (), context)
    return Captured(instance, Provenance("doctor", "canary", "planted" if error else "right"), (tensors[2],))
