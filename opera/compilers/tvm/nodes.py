"""The operators of an imported Relax module one by one: each by itself in a module, given what it is given there."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.compilers.shared.meant import differs
from opera.compilers.shared.packing import BY_ITSELF, Faulty, Refusal, begins
from opera.compilers.tvm import interpreter, operators, trial
from opera.compilers.tvm.interpreter import Interpreted, NotKnown
from opera.compilers.tvm.values import array, handed

MOST = 20
"""Operators of a module that are built one by one."""


class Each(Interpreted):
    """Stands where a virtual machine stands: every operator is compiled by itself.

    Args:
        mixed: Whether an operator that numpy has is computed by it.
        check: Whether Faulty is raised where one by itself does not give what numpy does, else a Refusal.
    """

    def __init__(self, module: Any, *, mixed: bool = False, check: bool = False) -> None:
        super().__init__(module)
        self._mixed, self._check = mixed, check
        self._machines: dict[Any, Any] = {}
        self._known = False

    def invoke_stateful(self, name: str) -> None:
        super().invoke_stateful(name)
        if self._check:
            raise Refusal("each operator gives by itself what numpy does")
        if self._mixed and not self._known:
            raise NotKnown("numpy has none of its operators")

    def called(self, node: Any, arguments: list[Any]) -> Any:
        """Return what a call of an operator gives."""
        meant: Any = None
        if self._mixed or self._check:
            try:
                meant = _whole(node, super().called(node, arguments))
            except (NotKnown, ValueError, IndexError, TypeError):
                meant = None
        self._known |= meant is not None
        if self._mixed and meant is not None:
            return meant
        name = str(getattr(node.op, "name", ""))
        begins(name)
        try:
            found = self._alone(node, arguments)
        except Refusal:
            raise
        except Exception as error:
            if self._check:  # what it raises says as much as the whole does
                if meant is None:
                    raise NotKnown(str(error)) from None
                return meant
            error.args = (f"{name}{BY_ITSELF}{error}",)
            raise
        whole = meant is not None and not isinstance(found, tuple)
        if whole and (does := differs(found, np.asarray(meant))):
            raise Faulty(f"{name} {does}")
        return found

    def typed(self, variable: Any, value: Any) -> Any:
        """Return a value as it is: what an operator gives by itself may be of another dtype than Relax states."""
        return value

    def _alone(self, node: Any, arguments: list[Any]) -> Any:
        from opera.compilers.recipes import tvm as recipe

        if any(isinstance(x, np.ndarray) and x.dtype.kind == "i" and (x < 0).any() for x in arguments[1:]):
            raise NotKnown("an operator is given what may be a negative index, which TVM does not check")
        if node not in self._machines:
            if len(self._machines) == MOST:
                raise NotKnown(f"opera builds {MOST} operators one by one at most")
            self._machines[node] = trial.machine(_module(node))
        given = [handed(np.asarray(x)) for x in _tensors(node, arguments)]
        found = recipe.run(self._machines[node], given)
        return array(found) if hasattr(found, "numpy") else tuple(map(array, found))


class FromFront(Each):
    """Stands where a virtual machine stands: as numpy has the operators, and what it has not by itself, with indices that
    count from the end counted from the front. Raises NotKnown where there are none: relax says nothing of such.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module, mixed=True)
        self._counted = False

    def invoke_stateful(self, name: str) -> None:
        super().invoke_stateful(name)
        if not self._counted:
            raise NotKnown("no operator is given an index that counts from the end")

    def called(self, node: Any, arguments: list[Any]) -> Any:
        """Return what a call of an operator gives, of indices from the front."""
        short = getattr(node.op, "name", "").removeprefix("relax.")
        counted = operators.from_front(short, node.attrs, arguments)
        self._counted |= counted is not arguments
        return super().called(node, counted)


def _whole(node: Any, value: Any) -> Any:
    """Return a value in the dtype that Relax states for a call. Raises NotKnown for fractions where integers are stated."""
    dtype = getattr(interpreter.stated(node), "dtype", None)
    if dtype is None or isinstance(value, tuple):
        return value
    if np.asarray(value).dtype.kind == "f" and "int" in str(dtype):
        raise NotKnown("TVM does not say how fractions are cut")
    return np.asarray(value).astype(str(dtype))


def _is_tensor(node: Any) -> bool:
    """Whether an argument is a tensor that is no constant."""
    from tvm import relax

    return isinstance(node, relax.Var) and hasattr(interpreter.stated(node), "dtype")


def _tensors(node: Any, arguments: list[Any]) -> list[Any]:
    """Return the arrays of what a call is given that is no constant, those within tuples, too, each once."""
    from tvm import relax

    found: dict[Any, Any] = {}
    for argument, value in zip(node.args, arguments, strict=True):
        for part, held in (
            zip(argument.fields, value, strict=True) if isinstance(argument, relax.Tuple) else ((argument, value),)
        ):
            if _is_tensor(part):
                found[part] = np.ascontiguousarray(held).reshape(np.shape(held))
            elif isinstance(part, relax.Var):
                raise NotKnown("an operator is given what is no tensor")
    return list(found.values())


def _module(node: Any) -> Any:
    """Return a module of one call, whose tensors are its parameters."""
    from tvm import relax

    own: dict[Any, Any] = {}

    def parameter(part: Any) -> Any:
        if not _is_tensor(part):
            return part
        return own.setdefault(part, relax.Var(f"x{len(own)}", interpreter.stated(part)))

    args = [
        relax.Tuple([parameter(x) for x in argument.fields])
        if isinstance(argument, relax.Tuple)
        else parameter(argument)
        for argument in node.args
    ]
    call = relax.Call(node.op, args, node.attrs, node.ty_args if hasattr(node, "ty_args") else node.sinfo_args)
    builder = relax.BlockBuilder()
    with builder.function("main", list(own.values())):
        builder.emit_func_output(builder.emit(call))
    return builder.get()
