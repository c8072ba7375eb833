"""From a program to an nn.Module whose forward makes its calls, and what running it eagerly shows."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import poison
from opera.errors import CorpusError, InvalidTest
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch import source as torch_source
from opera.libraries.torch.eager import prepare, quiet
from opera.libraries.torch.source import Outputs
from opera.programs.migrated import read_values
from opera.programs.program import Captured, Graph, Instance, Program, parse, with_values
from opera.programs.values import CONTAINERS, RandomTensor, Tensor, Value

FILE = "instance.json"
"""What the model is rebuilt from: the program without the values of its inputs, and what running it showed."""
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
    """What eager PyTorch showed: the outputs, what each call changes and returns, whether it is random, and whether outputs
    hold memory that nobody wrote, as those of `pad` with negative pads may: they differ though it drew nothing."""

    expected: list[Value]
    outputs: tuple[Outputs, ...]
    random: bool
    unwritten: bool = False


def module(program: Program, outputs: tuple[Outputs, ...]) -> Any:
    """Return the nn.Module of a program. Raises InvalidTest where PyTorch refuses to construct it."""
    source = torch_source.model(program, outputs)
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
    return made.train(torch_source.trains(program))


def tensors(program: Program, given: Sequence[Value] | None = None) -> tuple[Any, ...]:
    """Return the inputs as fresh torch.Tensors in their layouts; `given` replaces the program's own values."""
    layouts = torch_source.layouts_of(program)
    held = [operand.value for operand in program.inputs] if given is None else given
    made = []
    for operand, value in zip(program.inputs, held, strict=True):
        if not isinstance(value, Tensor | RandomTensor):
            raise InvalidTest(f"the input {operand.name[:100]!r} is no tensor")
        made.append(torch_values.to_torch(value, layouts.get(operand.name)))
    return tuple(made)


def check_size(program: Program) -> None:
    """Raise InvalidTest where the inputs are larger than MAX_BYTES in total."""
    total = sum(_bytes(x.value.dtype, x.value.shape) for x in program.inputs if hasattr(x.value, "dtype"))
    if total > MAX_BYTES:
        raise InvalidTest(f"the inputs are of {total >> 20} MiB, more than {MAX_BYTES >> 20} MiB")


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return math.prod(shape) * np.dtype(CONTAINERS[dtype]).itemsize


def run(program: Program) -> Ran:
    """Run a program twice, and tell what it returns. Raises InvalidTest where PyTorch rejects it."""
    check_size(program)
    return _run_graph(program) if isinstance(program, Graph) else _run_call(program, program.outputs)


def steps(graph: Graph) -> list[tuple[Instance, list[Value]]]:
    """Return each call with the values of its arguments, and what eager PyTorch returns for them."""
    return [(call, ran.expected) for call, ran in _steps(graph)]


def _steps(graph: Graph) -> list[tuple[Instance, Ran]]:
    known: dict[str, Value] = {operand.name: operand.value for operand in graph.inputs}
    found = []
    for call in graph.calls:
        instance = graph.instance(call, known)
        ran = _run_call(instance)
        known |= {name: value for name, value in zip(call.outputs, ran.expected, strict=False) if name}
        found.append((instance, ran))
    return found


def _run_graph(graph: Graph) -> Ran:
    """What the calls return is seen one by one; what the program returns, of all of them together."""
    ran = [one for _, one in _steps(graph)]
    outputs = tuple(one.outputs[0] for one in ran)
    model, args = module(graph, outputs), tensors(graph)
    first, again = ([encoded(x) for x in leaves(eager(model, args, x))] for x in (poison.FIRST, poison.SECOND))
    random = any(one.random for one in ran)
    return Ran(first, outputs, random, any(one.unwritten for one in ran) or (first != again and not random))


def _run_call(instance: Instance, wanted: tuple[str, ...] = ()) -> Ran:
    """Run a call of its own; `wanted` names the outputs that are returned, empty strings for others; without any all are."""
    import torch

    first, args = module(instance, (Outputs(),)), tensors(instance)
    buffers = [(buffer, buffer.clone()) for buffer in first.buffers()]
    before, state = [(x._version, encoded(x)) for x in args], torch.get_rng_state()
    result = eager(first, args, poison.FIRST)
    mutated = tuple(
        operand.name
        for operand, x, (version, value) in zip(instance.inputs, args, before, strict=True)
        if x._version != version or encoded(x) != value  # batch_norm changes its statistics without saying so
    )
    outputs = _outputs(result, mutated)
    expected = values(result, outputs, dict(zip((x.name for x in instance.inputs), args, strict=True)))
    outputs, expected = _wanted(outputs, expected, wanted)
    drew = not torch.equal(state, torch.get_rng_state())
    for buffer, before in buffers:
        buffer.copy_(before)
    second = first if outputs == Outputs() else module(instance, (outputs,))
    again = [encoded(x) for x in leaves(eager(second, tensors(instance) if mutated else args, poison.SECOND))]
    if len(again) != len(expected):
        raise InvalidTest(f"PyTorch returns {len(expected)} tensors once, and {len(again)} the second time")
    return Ran(again, (outputs,), drew, again != expected and not drew)


def eager(model: Any, args: tuple[Any, ...], pattern: int | None = None) -> Any:
    """Run a model, `pattern` in each byte of fresh memory. Raises InvalidTest with the library's message where it raises."""
    with quiet(), nullcontext() if pattern is None else poison.memory(pattern):
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


def _wanted(outputs: Outputs, expected: list[Value], names: tuple[str, ...]) -> tuple[Outputs, list[Value]]:
    """Return what is left of the outputs of a call where some are named. Raises InvalidTest where that is all, or nothing."""
    if not any(names):
        return outputs, expected
    kept = [place for place, name in enumerate(names) if name and place < len(expected)]
    if not 0 < len(kept) < len(expected):
        raise InvalidTest(f"{len(kept)} outputs are named of {len(expected)} that there are")
    paths = tuple(outputs.paths[place] for place in kept)
    return msgspec.structs.replace(outputs, paths=paths), [expected[place] for place in kept]


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


def saved(program: Program, outputs: tuple[Outputs, ...]) -> bytes:
    """Return the content of FILE."""
    bare = with_values(program, [None] * len(program.inputs))
    return msgspec.json.encode({"program": bare.form(), "outputs": outputs}, order="sorted")


def load(directory: Path) -> tuple[Program, tuple[Outputs, ...]]:
    """Return what `wrap` stored in a test's folder. Raises CorpusError where it is damaged.

    Folders of opera 0.1 hold an `instance`, values and all, and the outputs of its one call.
    """
    try:
        form = msgspec.json.decode((directory / FILE).read_bytes())
        if "instance" in form:
            return parse(form["instance"]), (msgspec.convert(form["outputs"], Outputs),)
        program = with_values(parse(form["program"]), read_values(directory, "inputs"))
        return program, msgspec.convert(form["outputs"], tuple[Outputs, ...])
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        raise CorpusError(
            f"{directory / FILE} cannot be read: {error}", fix="delete the folder; `opera run` makes the test again"
        ) from None


def live(
    directory: Path, inputs: tuple[str, ...], names: tuple[str, ...], given: Sequence[Value] | None = None
) -> Live:
    """Rebuild the model of a test from its folder; `given` replaces the values of its inputs."""
    prepare()
    program, outputs = load(directory)
    return Live(module(program, outputs), tensors(program, given), inputs, names)


def brief(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"


def _unpack(text: str, dtype: str, shape: list[int]) -> Any:
    """What the source of large tensors calls (opera.programs.literals)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()
