"""The operators of an ov.Model one by one: each by itself in a plain model, given what it is given there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opera.compilers.openvino import interpreter
from opera.compilers.openvino.interpreter import NotEvaluated, key, sources
from opera.compilers.shared.meant import differs
from opera.compilers.shared.packing import BY_ITSELF, INFERRED, Faulty, Refusal, begins, told

MOST = 40
"""Operators of a model that are built one by one: of more, nobody says which is wrong in the time that there is."""
FREE = ("Parameter", "RandomUniform", "Multinomial", "ReadValue")
"""What no constants alone tell."""
GIVEN = ("Parameter", "Constant", "Result")


class Nodes:
    """An ov.Model whose operators are run by themselves.

    Args:
        model: What the importer made. Raises NotEvaluated for one that is too large, or keeps a state.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._order = model, model.get_ordered_ops()
        self._requests: dict[int, tuple[Any, list[tuple[str, int]]]] = {}
        if sum(x.get_type_name() not in GIVEN for x in self._order) > MOST or model.get_sinks():
            raise NotEvaluated(f"opera builds {MOST} operators one by one at most, none that keeps a state")
        self._fixed: set[str] = set()
        for node in self._order:
            of = [x.get_node().get_friendly_name() for x in sources(node)]
            static = node.get_type_name() == "ShapeOf" and node.input(0).get_partial_shape().is_static
            if node.get_type_name() not in FREE and (static or self._fixed.issuperset(of)):
                self._fixed.add(node.get_friendly_name())

    def each(self, fed: Mapping[str, Any]) -> list[Any]:
        """Return the model's outputs of tensors, by the names of parameters; raises what an operator raises by itself."""
        return self._walked(fed, self._alone)

    def mixed(self, fed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs where whatever numpy has is computed by it. Raises NotEvaluated where that is nothing."""
        known = [False]

        def step(place: int, held: dict[tuple[str, int], Any]) -> dict[int, Any]:
            meant = _meant(self._order[place], held)
            known[0] |= meant is not None
            return self._alone(place, held) if meant is None else dict(enumerate(map(tensor, meant)))

        found = self._walked(fed, step)
        if not known[0]:
            raise NotEvaluated("numpy has none of its operators")
        return found

    def check(self, fed: Mapping[str, Any]) -> None:
        """Raise Faulty where an operator by itself does not give what numpy does of the same inputs. Else a Refusal."""

        def step(place: int, held: dict[tuple[str, int], Any]) -> dict[int, Any]:
            node = self._order[place]
            meant = _meant(node, held)
            try:
                found = self._alone(place, held)
            except RuntimeError as error:  # what it raises says as much as the whole does
                if meant is None:
                    raise NotEvaluated(str(error)) from None
                return dict(enumerate(map(tensor, meant)))
            odd = (_differs(node.output(at), meant[at], x) for at, x in found.items()) if meant is not None else ()
            if does := next(filter(None, odd), ""):
                raise Faulty(f"{_called(node)} {does}")
            return found

        self._walked(fed, step)
        raise Refusal("each operator gives by itself what numpy does")

    def _walked(self, fed: Mapping[str, Any], step: Any) -> list[Any]:
        known: dict[tuple[str, int], Any] = {}
        for place, node in enumerate(self._order):
            name, kind = node.get_friendly_name(), node.get_type_name()
            if kind == "Parameter":
                known[name, 0] = fed[name]
            elif kind == "Constant":
                known[name, 0] = node.get_tensor_view()
            elif kind != "Result":
                known |= {(name, at): x for at, x in step(place, known).items()}
        return [known[key(x)] for result in self._model.get_results() for x in sources(result)]

    def _alone(self, place: int, known: dict[tuple[str, int], Any]) -> dict[int, Any]:
        """Return the outputs of a node that something takes, by their places. Raises what it raises, its name before it."""
        node = self._order[place]
        begins(_called(node))
        try:
            if place not in self._requests:
                self._requests[place] = self._built(place, known)
            request, given = self._requests[place]
            for port, source in zip(request.model_inputs, given, strict=True):
                request.set_tensor(port, known[source])
            request.infer()
        except RuntimeError as error:
            error.args = (f"{node.get_type_name()}{BY_ITSELF}{error}",)
            raise
        return {at: request.get_output_tensor(k) for k, at in enumerate(_taken(node))}

    def _built(self, place: int, known: dict[tuple[str, int], Any]) -> tuple[Any, list[tuple[str, int]]]:
        """Return a request for one node, and what it is given, in order."""
        import openvino
        from openvino import op

        from opera.compilers.recipes import openvino as recipe

        own = self._model.clone()
        node = own.get_ordered_ops()[place]
        if node.get_friendly_name() != self._order[place].get_friendly_name():
            raise NotEvaluated("a copy of the model has its operators in another order")
        parameters: dict[tuple[str, int], Any] = {}
        for port in node.inputs():
            source = port.get_source_output()
            of = key(source)
            if source.get_node().get_type_name() == "Constant":
                continue
            if source.get_element_type().is_dynamic():
                raise NotEvaluated("an input has no type")
            if of[0] in self._fixed:
                port.replace_source_output(op.Constant(known[of]).output(0))
                continue
            if of not in parameters:
                parameters[of] = op.Parameter(source.get_element_type(), source.get_partial_shape())
            port.replace_source_output(parameters[of].output(0))
        results = [op.Result(node.output(at)) for at in _taken(self._order[place])]
        model = openvino.Model(results, list(parameters.values()))
        return recipe.CORE.compile_model(model, "CPU").create_infer_request(), list(parameters)


def _taken(node: Any) -> list[int]:
    return [at for at, port in enumerate(node.outputs()) if port.get_target_inputs()]


def _meant(node: Any, known: Mapping[tuple[str, int], Any]) -> list[Any] | None:
    """Return what numpy says of a node, None where it does not."""
    try:
        return interpreter.computed(node, [array(known[key(x)]) for x in sources(node)])
    except NotEvaluated:
        return None


def array(tensor: Any) -> Any:
    """Return the numpy array of a tensor. Raises NotEvaluated for a type that numpy has not."""
    name = tensor.element_type.get_type_name()
    if name not in interpreter.DTYPES:
        raise NotEvaluated(f"numpy has no {name}")
    return np.array(tensor.str_data, object) if name == "string" else tensor.data.copy()


def tensor(held: Any) -> Any:
    """Return the tensor of a numpy array."""
    import openvino

    return openvino.Tensor(
        held.astype(np.str_) if held.dtype == object else np.ascontiguousarray(held).reshape(held.shape)
    )


def _called(node: Any) -> str:
    given = ", ".join(f"{name}={told(value)}" for name, value in node.get_attributes().items())
    return f"{node.get_type_name()} ({given})" if given else str(node.get_type_name())


def _differs(port: Any, meant: Any, value: Any) -> str:
    """Say how what an operator gives by itself is not what numpy gives; nothing where it is, but for rounding."""
    found, declared = array(value), port.get_partial_shape()
    if declared.is_static and list(declared.to_shape()) != list(meant.shape):
        return f"{INFERRED} {list(declared.to_shape())}, not {list(meant.shape)}"
    return differs(found, meant)
