"""ONNX's own definitions of operators, written out: what ONNX Runtime runs of an operator that it has no kernel of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opera.compilers.shared.packing import Refusal, of_numpy
from opera.programs.values import Tensor, Value


def written_out(model: Path, resolved: Callable[[Path], Any]) -> Any:
    """Return a model in which the operators that are not run as such are what their function bodies make of them.

    Args:
        resolved: Takes a file, and returns the ModelProto of what is run of it, with optimisations off.

    Raises Refusal where all are run as they stand, or where ONNX defines none of the others by a function.
    """
    try:
        import onnx
        import onnx.inliner
    except ImportError:
        raise Refusal("onnx, which knows the bodies, is not installed") from None

    given = onnx.load(model)
    kept = {(node.domain, node.op_type) for node in resolved(model).graph.node}
    lost = [key for node in given.graph.node if (key := (node.domain, node.op_type)) not in kept]
    if not lost:
        raise Refusal("it has a kernel of each operator")
    made = onnx.inliner.inline_selected_functions(given, lost, inline_schema_functions=True)
    if any((node.domain, node.op_type) in lost for node in made.graph.node):
        raise Refusal("ONNX defines it by no function")
    return made


def defined(model: Any) -> Any:
    """Return a ModelProto whose operators are what their function bodies make of them, as far as they have any; as it is where
    ONNX fails at that."""
    import onnx
    import onnx.inliner

    operators = [(node.domain, node.op_type) for node in model.graph.node]
    try:
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)  # some bodies hang on types
        held = (onnx.helper.make_tensor_value_info(x.name, x.data_type, x.dims) for x in typed.graph.initializer)
        typed.graph.value_info.extend(held)
        return onnx.inliner.inline_selected_functions(typed, operators, inline_schema_functions=True)
    except (RuntimeError, ValueError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return model


def evaluator(model: Any) -> Any:
    """Return ONNX's reference evaluator of a ModelProto or a file."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(str(model) if isinstance(model, Path) else model)


def evaluated(session: Any, feeds: Mapping[str, Value], outputs: Sequence[str] | None = None) -> list[Value]:
    """Return what a reference evaluator computes: outputs of these names, or all in the file's order."""
    fed = {name: value.array() for name, value in feeds.items() if isinstance(value, Tensor)}
    names = None if outputs is None else list(outputs)
    return [of_numpy(item) for item in session.run(names, {name: fed[name] for name in session.input_names})]
