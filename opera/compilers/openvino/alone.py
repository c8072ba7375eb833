"""The operators of an ov.Model that draw at random: whether the CPU plugin runs one by itself as OpenVINO documents it, and
what comes of several that it takes for one; and those that leave the order of equal numbers open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.compilers.shared.packing import SAME_DRAWS, Faulty, Refusal

DRAWS = "RandomUniform"
ATTRIBUTES = ("output_type", "global_seed", "op_seed", "alignment")
RUNS, SIZE = 4, 16


def check(model: Any) -> None:
    """Raise Faulty where what has no seed, built anew between the same bounds, draws the same in all runs of a compiled model.

    Without a seed (both are 0) each run draws other numbers (OpenVINO's operation specification, RandomUniform-8).
    """
    import openvino
    from openvino import opset8

    from opera.compilers.recipes import openvino as recipe

    for node in _unseeded(model):
        bounds = [x.get_source_output().get_node() for x in node.inputs()[1:]]
        if any(x.get_type_name() != "Constant" for x in bounds) or len({x.data.ravel()[0] for x in bounds}) == 1:
            continue
        given = [opset8.constant(np.array([SIZE], np.int64)), *(opset8.constant(np.array(x.data)) for x in bounds)]
        alone = openvino.Model([_made(given, _attributes(node))], [])
        request = recipe.CORE.compile_model(alone, "CPU").create_infer_request()
        if len({np.array(request.infer()[0]).tobytes() for _ in range(RUNS)}) == 1:
            how = ", ".join(f"{name}={value}" for name, value in _attributes(node).items())
            raise Faulty(f"{DRAWS} ({how}) {SAME_DRAWS} in {RUNS} runs")


def parted(model: Any) -> Any:
    """Return the model with a seed of its own in each operator that draws without one, which nothing takes for one then.

    Raises Refusal where the plugin leaves as many of them as there are.
    """
    from opera.compilers.recipes import openvino as recipe

    free = _unseeded(model)
    if len(free) < 2:
        raise Refusal("it has not several operators that draw")
    run = recipe.CORE.compile_model(model, "CPU").get_runtime_model()
    told = [x.get_rt_info() for x in run.get_ordered_ops()]
    if not 0 < sum("layerType" in x and x["layerType"].value == DRAWS for x in told) < len(free):
        raise Refusal("it leaves as many operators that draw as there are")
    for seed, node in enumerate(free, 1):
        own = _made([x.get_source_output() for x in node.inputs()], {**_attributes(node), "op_seed": seed})
        node.output(0).replace(own.output(0))
    return model


def stable(model: Any) -> Any:
    """Return the model, each TopK of it one that keeps equal numbers in their order.

    By itself it need not: `stable` "specifies whether the equivalent elements should maintain their relative order from the
    input tensor during sorting" (ov::op::v11::TopK). Raises Refusal where all of them do.
    """
    free = [
        x for x in model.get_ordered_ops() if x.get_type_name() == "TopK" and not x.get_attributes().get("stable", True)
    ]
    if not free:
        raise Refusal("it has no TopK that leaves the order of equal numbers open")
    for node in free:
        node.set_attribute("stable", True)
    return model


def _unseeded(model: Any) -> list[Any]:
    found = [x for x in model.get_ordered_ops() if x.get_type_name() == DRAWS]
    return [x for x in found if not any(x.get_attributes()[name] for name in ("global_seed", "op_seed"))]


def _attributes(node: Any) -> dict[str, Any]:
    return {name: value for name, value in node.get_attributes().items() if name in ATTRIBUTES}


def _made(given: list[Any], attributes: dict[str, Any]) -> Any:
    from openvino.utils.node_factory import NodeFactory

    return NodeFactory("opset8").create(DRAWS, given, attributes)
