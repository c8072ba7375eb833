"""`python -m opera.libraries.onnx.evaluate MODEL`: run a model file once on made-up inputs, for `opera check` to see its nodes.

Where onnx's reference evaluator cannot run it, each node is taken with the types that shape inference gives its inputs.
"""

from __future__ import annotations

import sys

import onnx
from onnx.reference import ReferenceEvaluator

from opera.libraries.onnx import codec, hooks, models


def main(path: str) -> int:
    """Run the model; return the exit code."""
    try:
        model = onnx.load(path)
        onnx.checker.check_model(path)
    except Exception as error:  # protobuf's, the checker's, the system's: the file is no model
        print(f"{path} is no valid ONNX model: {error}", file=sys.stderr)
        return 1
    hooks.come_from(path, model)
    try:
        ReferenceEvaluator(model).run(None, _inputs(model))
    except Exception as error:  # whatever numpy or the evaluator raises on a model that it cannot run
        told = f"{type(error).__name__}: {str(error)[:200]}"
        print(f"onnx's reference evaluator cannot run it ({told}): inputs of nodes are made up", file=sys.stderr)
        hooks.take_apart(model)
    return 0


def _inputs(model: onnx.ModelProto) -> dict[str, object]:
    """Return made-up values of the inputs that no initializer states."""
    stated = {tensor.name for tensor in model.graph.initializer}
    concrete = models.concrete(model)
    found: dict[str, object] = {}
    for seed, info in enumerate(x for x in concrete.graph.input if x.name not in stated):
        found[info.name] = codec.to_evaluator(codec.materialise(models.made_up(info.type, seed, (0.0, 1.0))))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
