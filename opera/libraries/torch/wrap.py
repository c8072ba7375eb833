"""From an instance to an nn.Module whose forward is the one call, and what running it eagerly shows."""

from __future__ import annotations

import base64
import math
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import precision
from opera.errors import CorpusError, InvalidTest
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch import source as torch_source
from opera.libraries.torch.source import Outputs
from opera.programs.program import Captured, Instance, parse_instance
from opera.programs.values import CONTAINERS, RandomTensor, Tensor, Value

FILE = "instance.json"
"""What the model is rebuilt from: the instance, and what running it showed."""
MAX_BYTES = 256 << 20
"""Inputs, or outputs, of more bytes than this in total make no test."""


class Live(msgspec.Struct):
    """The library's own model.

    Attributes:
        module: The nn.Module, in training mode where the instance says so.
        args: Its inputs, in the manifest's order.
        outputs: Names of its outputs; forward returns a tensor, or a tuple of several.
    """

    module: Any
    args: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def results(self, returned: Any) -> list[Value]:
        """Return the outputs that a compiled form of the module returned. Raises InvalidTest for what has no encoding."""
        return [encoded(x) for x in leaves(returned)]

    def program(self) -> Any:
        """Return the torch.export.ExportedProgram."""
        from opera.libraries.torch import export as torch_export

        return torch_export.program(self)

    def torchscript(self) -> Any:
        """Return the traced torch.jit.ScriptModule."""
        from opera.libraries.torch import export as torch_export

        return torch_export.torchscript(self)

    def quicken(self) -> None:
        """Make torch.onnx.export quick in this process, as far as that is wanted."""
        from opera.libraries.torch import export as torch_export

        torch_export.quicken_onnx()

    def onnx(self, path: Path) -> None:
        """Write the model that torch.onnx.export makes."""
        from opera.libraries.torch import export as torch_export

        torch_export.onnx(self, path)


class Ran(msgspec.Struct):
    """What eager PyTorch showed: the outputs, what the model changes and returns, and whether it is random."""

    expected: list[Value]
    outputs: Outputs
    random: bool


@cache
def prepare() -> None:
    """Set up this process: one thread, for there is a worker a core, and as precise as PyTorch can be."""
    import torch

    torch.set_num_threads(1)
    precision.set_torch()


@contextmanager
def quiet() -> Iterator[None]:
    """Run PyTorch without its warnings, and without gradients."""
    import torch

    prepare()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


def module(instance: Instance, outputs: Outputs) -> Any:
    """Return the nn.Module of an instance. Raises InvalidTest where PyTorch refuses to construct it."""
    source = torch_source.model(instance, outputs)
    import torch

    scope: dict[str, Any] = {"torch": torch, "np": np, "unpack": _unpack}
    try:
        exec(compile(source, "<opera>", "exec"), scope)  # source of literals and known names: see torch_source
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidTest(f"the call cannot be written down: {brief(error)}") from None
    try:
        with quiet():
            made = scope["Model"]()
    except Exception as error:
        raise InvalidTest(f"PyTorch rejects the constructor: {brief(error)}") from None
    return made.train(bool(instance.context.get("training", False)))


def tensors(instance: Instance, given: Sequence[Value] | None = None) -> tuple[Any, ...]:
    """Return the inputs as fresh torch.Tensors in their layouts; `given` replaces the instance's own values."""
    layouts = instance.context.get("layout", {})
    if not isinstance(layouts, dict):
        raise InvalidTest("the layout of an instance is no table")
    held = [operand.value for operand in instance.inputs] if given is None else given
    made = []
    for operand, value in zip(instance.inputs, held, strict=True):
        if not isinstance(value, Tensor | RandomTensor):
            raise InvalidTest(f"the input {operand.name[:100]!r} is no tensor")
        strides = layouts.get(operand.name)
        if strides is not None and not isinstance(strides, list | tuple):
            raise InvalidTest(f"the layout of {operand.name[:100]!r} is no list of strides")
        made.append(torch_values.to_torch(value, None if strides is None else tuple(strides)))
    return tuple(made)


def check_size(instance: Instance) -> None:
    """Raise InvalidTest where the inputs are larger than MAX_BYTES in total."""
    total = sum(_bytes(x.value.dtype, x.value.shape) for x in instance.inputs if hasattr(x.value, "dtype"))
    if total > MAX_BYTES:
        raise InvalidTest(f"the inputs are of {total >> 20} MiB, more than {MAX_BYTES >> 20} MiB")


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return math.prod(shape) * np.dtype(CONTAINERS[dtype]).itemsize


def run(instance: Instance) -> Ran:
    """Run an instance twice, and tell what it returns. Raises InvalidTest where PyTorch rejects it."""
    import torch

    check_size(instance)
    first, args = module(instance, Outputs()), tensors(instance)
    buffers = [(buffer, buffer.clone()) for buffer in first.buffers()]
    before, state = [(x._version, encoded(x)) for x in args], torch.get_rng_state()
    result = eager(first, args)
    mutated = tuple(
        operand.name
        for operand, x, (version, value) in zip(instance.inputs, args, before, strict=True)
        if x._version != version or encoded(x) != value  # batch_norm changes its statistics without saying so
    )
    outputs = _outputs(result, mutated)
    expected = values(result, outputs, dict(zip((x.name for x in instance.inputs), args, strict=True)))
    drew = not torch.equal(state, torch.get_rng_state())
    for buffer, before in buffers:
        buffer.copy_(before)
    second = first if outputs == Outputs() else module(instance, outputs)
    again = [encoded(x) for x in leaves(eager(second, tensors(instance) if mutated else args))]
    if len(again) != len(expected):
        raise InvalidTest(f"PyTorch returns {len(expected)} tensors once, and {len(again)} the second time")
    return Ran(again, outputs, drew or again != expected)


def eager(model: Any, args: tuple[Any, ...]) -> Any:
    """Run a model. Raises InvalidTest with the library's message where it raises anything."""
    with quiet():
        try:
            return model(*args)
        except Exception as error:
            raise InvalidTest(f"PyTorch rejects it: {brief(error)}") from None


def leaves(result: Any) -> tuple[Any, ...]:
    """Return the outputs of a finished model, which is a tensor or a tuple of tensors."""
    return result if isinstance(result, tuple) else (result,)


def values(result: Any, outputs: Outputs, args: dict[str, Any]) -> list[Value]:
    """Return the values of the tensors that are at `outputs.paths` of what the bare call returned."""
    import torch
    from torch.utils import _pytree

    if outputs.paths[0].startswith("="):
        return [encoded(args[path[1:]]) for path in outputs.paths]
    return [encoded(x) for x in _pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def _outputs(result: Any, mutated: tuple[str, ...]) -> Outputs:
    """Find the tensors in what a call returned; where there are none, those that it changed. InvalidTest without any."""
    import torch
    from torch.utils import _pytree

    if isinstance(result, torch.Tensor):
        return Outputs(mutated)
    found, _ = _pytree.tree_flatten_with_path(result)
    paths = tuple(_path(steps) for steps, leaf in found if isinstance(leaf, torch.Tensor))
    if not paths:
        paths = tuple(f"={name}" for name in mutated)
    if not paths:
        raise InvalidTest(f"it returns no tensor, but a {type(result).__name__}")
    return Outputs(mutated, paths)


def _path(steps: Sequence[Any]) -> str:
    """Return the steps to a leaf as source."""
    text = ""
    for step in steps:
        if hasattr(step, "idx"):
            text += f"[{int(step.idx)}]"
        elif hasattr(step, "key") and isinstance(step.key, str | int):
            text += f"[{step.key!r}]"
        elif hasattr(step, "name") and str(step.name).isidentifier():
            text += f".{step.name}"
        else:
            raise InvalidTest(f"it returns a tensor in a place that has no name: {type(step).__name__}")
    return text


def encoded(item: Any) -> Tensor:
    """Return all elements of an output. Raises InvalidTest for what is no dense tensor of a dtype that opera knows."""
    import torch

    try:
        torch_values.check_plain(item.detach())
    except torch_values.NotRepresentable as error:
        raise InvalidTest(f"an output cannot be compared: {error}") from None
    if min(item.shape, default=0) < 0:  # as_strided takes such a size where another one is 0
        raise InvalidTest(f"PyTorch makes an output of negative size: {list(item.shape)}")
    dtype = str(item.dtype).removeprefix("torch.")
    if _bytes(dtype, tuple(item.shape)) > MAX_BYTES:
        raise InvalidTest(f"an output of shape {list(item.shape)} is of more than {MAX_BYTES >> 20} MiB")
    item = item.detach().resolve_conj().resolve_neg().contiguous()
    if CONTAINERS[dtype] != dtype:
        item = item.view(torch.int16 if item.element_size() == 2 else torch.uint8)
    return Tensor(dtype, tuple(item.shape), item.numpy().tobytes())


def stated(captured: Captured, found: list[Value]) -> list[Value]:
    """Return what a test itself expects. Raises InvalidTest where the call returns another number of tensors."""
    expected = list(captured.expected or ())
    if len(expected) != len(found) or not all(isinstance(value, Tensor) for value in expected):
        raise InvalidTest(f"the test states {len(expected)} outputs, the call returns {len(found)} tensors")
    return expected


def saved(instance: Instance, outputs: Outputs) -> bytes:
    """Return the content of FILE."""
    return msgspec.json.encode({"instance": instance.form(), "outputs": outputs}, order="sorted")


def load(directory: Path) -> tuple[Instance, Outputs]:
    """Return what `wrap` stored in a test's folder. Raises CorpusError where it is damaged."""
    try:
        form = msgspec.json.decode((directory / FILE).read_bytes())
        return parse_instance(form["instance"]), msgspec.convert(form["outputs"], Outputs)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{directory / FILE} cannot be read: {error}", fix="delete the folder; `opera run` makes the test again"
        ) from None


def live(
    directory: Path, inputs: tuple[str, ...], names: tuple[str, ...], given: Sequence[Value] | None = None
) -> Live:
    """Rebuild the model of a test from its folder; `given` replaces the values of its inputs."""
    prepare()
    instance, outputs = load(directory)
    return Live(module(instance, outputs), tensors(instance, given), inputs, names)


def brief(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"


def _unpack(text: str, dtype: str, shape: list[int]) -> Any:
    """What the source of large tensors calls (opera.programs.literals)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()
