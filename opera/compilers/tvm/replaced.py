"""Which node of a decomposed program TVM gets wrong: with PyTorch's answers in place of its converter's, all is right."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opera.compilers.tvm import trial
from opera.compilers.tvm.values import feed, read
from opera.oracle.comparison import TOLERANCES
from opera.programs.values import Tensor, Value

MOST = 64
"""Nodes of a program at most of which one is looked for."""
RTOL, ATOL = TOLERANCES["float32"]
"""How near to PyTorch's numbers is right."""


def culprit(program: Any, feeds: Sequence[Value]) -> Any:
    """Return the node in whose converter's place PyTorch's answer makes all outputs right; else None.

    It is the first up to which all must be replaced for that, and it is enough to replace it alone. What comes before and after
    it is converted and run as ever, so that is right. Whether its converter is wrong, or the kernels that this calls, is not
    known by that. Nothing is returned where all is right anyway, or where what a node returns is drawn at random.

    Args:
        program: A decomposed torch.export.ExportedProgram.
        feeds: Its inputs.
    """
    nodes = [x for x in program.graph.nodes if x.op == "call_function" and x.target is not operator.getitem]
    given = [_tensor(value) for value in feeds]
    if not 0 < len(nodes) <= MOST or any(value is None for value in given):
        return None
    values, again = (_values(program, given, seed) for seed in (0, 1))
    outputs = list(program.graph_signature.user_outputs)
    wanted = [value for node, value in values.items() if node.name in outputs]
    if len(wanted) != len(outputs) or any(not _same(values[x], again[x]) for x in nodes):
        return None

    def right(replaced: Sequence[Any]) -> bool:
        return _right(program, {x: values[x] for x in replaced}, feeds, wanted)

    if right(()):
        return None
    first, last = 0, len(nodes)  # with PyTorch's answers for so many of the first ones all is wrong, and right
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if right(nodes[:middle]) else (middle, last)
    return nodes[first] if right(nodes[first:last]) else None


def _tensor(value: Value) -> Any:
    import torch

    with suppress(TypeError, AttributeError):  # what NumPy has no dtype for, or is no tensor
        return torch.from_numpy(value.array().copy())
    return None


def _values(program: Any, given: Sequence[Any], seed: int) -> dict[Any, Any]:
    """Return what PyTorch computes at each node."""
    import torch

    found: dict[Any, Any] = {}
    fed = iter(given)
    kept = {**program.state_dict, **program.constants}
    arguments = [
        next(fed) if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT else kept[spec.target]
        for spec in program.graph_signature.input_specs
    ]

    class Watch(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
        def run_node(self, node: Any) -> Any:
            value = super().run_node(node)
            found[node] = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(), value)
            return value

    torch.manual_seed(seed)
    Watch(program.graph_module).run(*arguments)
    return found


def _right(program: Any, replaced: dict[Any, Any], feeds: Sequence[Value], wanted: Sequence[Any]) -> bool:
    """Whether TVM's outputs are PyTorch's, with its answers in place of some nodes' converters."""
    from tvm.relax.frontend.torch import from_exported_program

    from opera.compilers.recipes import tvm_torch as recipe

    def convert(node: Any, importer: Any) -> Any:
        if node in replaced:
            return _constants(replaced[node])
        return importer.create_convert_map()[node.target.__name__](node)

    own = dict.fromkeys({node.target.__name__ for node in replaced}, convert)
    with suppress(Exception):  # what fails in whatever way is not right
        module = from_exported_program(program, custom_convert_map=own or None, run_ep_decomposition=False)
        named = {str(place): value for place, value in enumerate(feeds)}
        got = recipe.infer((trial.machine(module),), named, feed, read)
        return len(got) == len(wanted) and all(
            isinstance(x, Tensor) and _same(_tensor(x), y) for x, y in zip(got, wanted, strict=True)
        )
    return False


def _constants(value: Any) -> Any:
    import torch
    from tvm import relax

    if isinstance(value, torch.Tensor):
        return relax.const(value.contiguous().numpy())
    return tuple(_constants(x) for x in value) if isinstance(value, tuple | list) else value


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return one is other or (type(one) is type(other) and bool(one == other))
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and bool(np.allclose(one.numpy(), other.numpy(), rtol=RTOL, atol=ATOL, equal_nan=True))
