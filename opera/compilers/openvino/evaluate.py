"""OpenVINO's own model, as its importer made it, evaluated by the reference code of its operators: no plugin takes part."""

from __future__ import annotations

from typing import Any

from opera.compilers.shared.packing import Refusal


class NotEvaluated(Refusal):
    """An operator of the model has no reference code that can be asked."""


class Evaluated:
    """Stands where a compiled model stands: its one request evaluates the model, or returns tensors as it `declares` them."""

    def __init__(self, model: Any, *, declared: bool = False) -> None:
        self.declared = declared
        self.model, self.inputs, self.outputs = model, model.inputs, model.outputs
        self._fed: dict[str, Any] = {}
        self._found: list[Any] = []

    def create_infer_request(self) -> Evaluated:
        return self

    def set_tensor(self, port: Any, tensor: Any) -> None:
        self._fed[port.get_node().get_friendly_name()] = tensor

    def infer(self) -> None:
        """Evaluate. Raises NotEvaluated where that cannot be done."""
        import openvino

        if self.declared and not all(port.partial_shape.is_static for port in self.outputs):
            raise NotEvaluated("OpenVINO states no static shapes for its outputs")
        fed = [self._fed[port.get_node().get_friendly_name()] for port in self.inputs]
        self._found = [openvino.Tensor(port.element_type, openvino.Shape(_shape(port))) for port in self.outputs]
        if self.declared:
            return
        try:
            done = self.model.evaluate(self._found, fed)
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
