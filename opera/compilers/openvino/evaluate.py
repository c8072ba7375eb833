"""OpenVINO's own model, as its importer made it, run without a plugin: by reference code of its operators, or by numpy."""

from __future__ import annotations

from typing import Any

from opera.compilers.openvino import interpreter, nodes
from opera.compilers.openvino.interpreter import NotEvaluated

DECLARED, REFERENCE, NUMPY = "declared", "reference", "numpy"
SHAPELESS = "shapeless"
"""As NUMPY, of a model that was made without shapes of inputs."""
EACH, MIXED, ALONE = "each", "mixed", "alone"


class Evaluated:
    """Stands where a compiled model stands: its one request evaluates the model, or returns tensors as it declares them.

    Args:
        way: DECLARED, REFERENCE, NUMPY; EACH, MIXED or ALONE: operator by operator (opera.compilers.openvino.nodes).
    """

    def __init__(self, model: Any, way: str) -> None:
        self.way = way
        self.model, self.inputs, self.outputs = model, model.inputs, model.outputs
        self._fed: dict[str, Any] = {}
        self._found: list[Any] = []
        self._nodes = nodes.Nodes(model) if way in (EACH, MIXED, ALONE) else None

    def create_infer_request(self) -> Evaluated:
        return self

    def set_tensor(self, port: Any, tensor: Any) -> None:
        self._fed[port.get_node().get_friendly_name()] = tensor

    def infer(self) -> None:
        """Evaluate. Raises NotEvaluated where that cannot be done."""
        import openvino

        if self._nodes is not None:
            if self.way == ALONE:
                self._nodes.check(self._fed)
            self._found = self._nodes.mixed(self._fed) if self.way == MIXED else self._nodes.each(self._fed)
            return
        if self.way in (NUMPY, SHAPELESS):
            fed = {name: nodes.array(tensor) for name, tensor in self._fed.items()}
            self._found = [nodes.tensor(value) for value in interpreter.evaluated(self.model, fed)]
            return
        if self.way == DECLARED and not all(port.partial_shape.is_static for port in self.outputs):
            raise NotEvaluated("OpenVINO states no static shapes for its outputs")
        given = [self._fed[port.get_node().get_friendly_name()] for port in self.inputs]
        self._found = [openvino.Tensor(port.element_type, openvino.Shape(_shape(port))) for port in self.outputs]
        if self.way == DECLARED:
            return
        try:
            done = self.model.evaluate(self._found, given)
        except RuntimeError as error:
            raise NotEvaluated(f"OpenVINO has no reference code for it: {str(error)[:200]}") from None
        if not done:
            raise NotEvaluated("OpenVINO has no reference code for it")

    def get_tensor(self, port: Any) -> Any:
        return self._found[next(place for place, own in enumerate(self.outputs) if own == port)]


def _shape(port: Any) -> list[int]:
    """Return the shape of an output; one that is not known is made by whoever evaluates it."""
    known = port.partial_shape
    return list(known.to_shape()) if known.is_static else [0]
