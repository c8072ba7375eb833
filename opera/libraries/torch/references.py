"""What eager PyTorch computes for other inputs, and the same module in float64, which is nearer to the exact result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from opera.errors import CorpusError, InvalidTest
from opera.libraries.torch import exact
from opera.libraries.torch import wrap as torch_module
from opera.libraries.torch.eager import quiet
from opera.libraries.torch.source import Outputs
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Instance, Program, with_params
from opera.programs.values import Named, RandomTensor, Tensor, Value

WIDER = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}


def opinions(manifest: Manifest, directory: Path, inputs: list[Value]) -> list[Opinion]:
    """See `opera.libraries.Library.opinions`."""
    program, outputs = torch_module.load(directory)
    asked = [Opinion("eager", False, *_ask(lambda: _eager(program, outputs, inputs)))]
    if any(isinstance(x, Tensor | RandomTensor) and x.dtype in WIDER for x in inputs):
        expected = read_values(directory, "expected")
        asked.append(Opinion("float64", True, *_ask(lambda: _wide(program, outputs, inputs, expected)), precise=True))
    by_numpy = exact.ask(program, inputs, read_values(directory, "expected"))
    return asked if by_numpy is None else [*asked, by_numpy]


def _ask(compute: Any) -> tuple[list[Value] | None, str]:
    try:
        return compute(), ""
    except (InvalidTest, CorpusError) as error:
        return None, error.what


def _eager(program: Program, outputs: tuple[Outputs, ...], inputs: list[Value]) -> list[Value]:
    model = _built(program, outputs)
    result = torch_module.eager(model, torch_module.tensors(program, inputs))
    return [torch_module.encoded(x) for x in torch_module.leaves(result)]


def _built(program: Program, outputs: tuple[Outputs, ...]) -> Any:
    """Return the module, which is built with the seed 0, without that seed for what it draws: that is to differ."""
    import torch

    with torch.random.fork_rng(devices=[]):
        return torch_module.module(program, outputs)


def _wide(program: Program, outputs: tuple[Outputs, ...], inputs: list[Value], expected: list[Value]) -> list[Value]:
    """Run the module on inputs and weights in float64, and return its outputs in the dtypes that are expected.

    Raises InvalidTest where it does not run, or returns something of another form or other integers: then the operator's
    meaning depends on the dtype (`view(dtype)`, comparison with a number), and float64 says nothing.
    """
    import torch

    model = _cast(_built(with_params(program, _wide_params), outputs))
    args = tuple(_upcast(x) for x in torch_module.tensors(program, inputs))
    results = torch_module.leaves(torch_module.eager(model, args))
    if [tuple(x.shape) for x in results] != [x.shape for x in expected]:
        raise InvalidTest("its form is another one in float64")
    with quiet():
        pairs = zip(results, expected, strict=True)
        found = [torch_module.encoded(x.to(getattr(torch, want.dtype))) for x, want in pairs]
    if any(
        "float" not in x.dtype and "complex" not in x.dtype and x != y for x, y in zip(expected, found, strict=True)
    ):
        raise InvalidTest("an output that is never rounded is another one in float64")
    return found


def _wider_range(expected: Value, found: Tensor) -> bool:
    """Whether float64 gives an infinity or NaN where a finite number is expected: it has a larger one (`nan_to_num`)."""
    if not isinstance(expected, Tensor):
        return False
    return bool((np.isfinite(expected.numbers()) & ~np.isfinite(found.numbers())).any())


def _wide_params(instance: Instance) -> dict[str, Value]:
    kept = instance.context.get("init", {})  # a constructor asked for float64 draws other weights
    held = {*kept.get("args", ()), *kept.get("kwargs", ())} if isinstance(kept, dict) else set()
    return {name: value if name in held else _widened(value) for name, value in instance.params.items()}


def _widened(value: Value) -> Value:
    """Let arguments that name a dtype name the wider one."""
    match value:
        case Named(kind="torch.dtype", name=name):
            return Named("torch.dtype", WIDER.get(name, name))
        case list() | tuple():
            return type(value)(_widened(item) for item in value)
        case dict():
            return {key: _widened(item) for key, item in value.items()}
    return value


def _cast(model: Any) -> Any:
    """Upcast the weights that the module has in float32: they must be the same numbers."""
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = _upcast(tensor.data)
    return model


def _upcast(tensor: Any) -> Any:
    import torch

    wider = WIDER.get(str(tensor.dtype).removeprefix("torch."))
    return tensor if wider is None else tensor.to(getattr(torch, wider))
