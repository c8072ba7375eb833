"""How many of the cases that our specifications yield are valid, operator by operator, and how fast they are made.

A case is accepted where onnx's checker with strict shape inference takes its model, and ONNX Runtime or the reference evaluator
computes outputs. Each operator is tried in a process of its own, for some cases end theirs.

Run it so: python benchmarks/sionnx.py --operator 'A*' --count 40 --reasons 3
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import re
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

from opera.sources.sionnx import generate, own, skeleton
from opera.sources.sionnx.case import Case, Given

SECONDS = 120
"""An operator that takes longer is given up."""


def kind_of(name: str) -> Any:
    from opera.libraries.onnx.codec import named_type

    return named_type(name)


def typed(name: str, value: Any) -> Any:
    """Return the TypeProto of an input, tensors with their shape."""
    proto = kind_of(name)
    if isinstance(value, np.ndarray):
        holder = proto.optional_type.elem_type if name.startswith("optional") else proto
        holder.tensor_type.shape.SetInParent()
        for size in value.shape:
            holder.tensor_type.shape.dim.add(dim_value=size)
    return proto


def attribute(name: str, given: Given) -> Any:
    from onnx import GraphProto, TypeProto, helper, numpy_helper

    value = given.value
    if given.kind == "tensor":
        value = numpy_helper.from_array(value)
    elif given.kind == "graph":
        value = GraphProto.FromString(value)
    elif given.kind == "type_proto":
        value = TypeProto.FromString(value)
    elif isinstance(value, list) and not value:
        return helper.make_attribute(name, value, attr_type=getattr(helper.AttributeProto, given.kind.upper()))
    return helper.make_attribute(name, value)


def model(case: Case) -> Any:
    from onnx import TypeProto, helper

    inputs = [x for x in case.inputs if x is not None]
    node = helper.make_node(case.operator, ["" if x is None else x.name for x in case.inputs],
                            [f"{x}_out" if x else "" for x in case.outputs], domain=case.domain)  # fmt: skip
    node.attribute.extend(attribute(name, given) for name, given in case.attributes.items())
    graph = helper.make_graph([node], "g", [helper.make_value_info(x.name, typed(x.type, x.value)) for x in inputs],
                              [helper.make_value_info(f"{x}_out", TypeProto()) for x in case.outputs if x])  # fmt: skip
    opsets = [helper.make_opsetid(case.domain, case.since)]
    if case.domain:
        opsets.append(helper.make_opsetid("", 21))
    needed = max([min(helper.find_min_ir_version_for(opsets, True), 13), *(13 for x in inputs if "int2" in x.type)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=max(needed, 11 if "float4" in str(inputs) else 4))


def run(case: Case) -> str:
    """Return "" for an accepted case, why it is not otherwise."""
    import onnx
    from onnx import shape_inference

    made = model(case)
    try:
        inferred = shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
    except Exception as error:
        return f"inference: {error}"
    refused, outputs = runtime(inferred, case)
    if refused:
        second, outputs = evaluator(made, case)
        if second:
            return f"{refused[:120]}  ///  {second}"
    for held, output in zip(inferred.graph.output, outputs, strict=True):
        output = output if isinstance(output, list) else np.asarray(output)
        if isinstance(output, np.ndarray) and not held.type.tensor_type.HasField("shape"):
            held.type.tensor_type.shape.SetInParent()
            for size in output.shape:
                held.type.tensor_type.shape.dim.add(dim_value=size)
            kind = held.type.tensor_type
            kind.elem_type = kind.elem_type or onnx.helper.np_dtype_to_tensor_dtype(output.dtype)
    try:
        onnx.checker.check_model(inferred)
    except Exception as error:
        return "" if "value_info" in str(error) else f"checker: {error}"
    return ""


def runtime(made: Any, case: Case) -> tuple[str, list[Any]]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {x.name: x.value for x in case.inputs if x is not None}
        return "", session.run(None, {k: list(v) if isinstance(v, list) else v for k, v in feeds.items()})
    except Exception as error:
        return f"runtime: {error}", []


def evaluator(made: Any, case: Case) -> tuple[str, list[Any]]:
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return "", ReferenceEvaluator(made).run(None, {x.name: x.value for x in case.inputs if x is not None})
    except Exception as error:
        return f"evaluator: {type(error).__name__}: {error}", []


def measure(spec: Any, since: int, arguments: Any, results: Any) -> None:
    import os

    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    reasons: Counter[str] = Counter()
    accepted = Counter[str]()
    total = 0
    try:
        start = time.process_time()
        made = list(generate.cases(skeleton.resolve(spec, since), arguments.mode, arguments.count, arguments.seed,
                                   empty=arguments.empty, special=arguments.special))  # fmt: skip
        seconds = time.process_time() - start
        results.put(("made", len(made), seconds))
        for case in made:
            total += 1
            reason = run(case)
            if reason:
                key = re.sub(r"\d+", "#", " ".join(reason.split()))[:330]
                reasons[key] += 1
                if reasons[key] == 1 and arguments.cases:
                    key_case = {n: g.value for n, g in case.attributes.items()}
                    shown = [None if x is None else (x.name, x.type, getattr(x.value, "shape", x.value)) for x in case.inputs]
                    results.put(("case", f"{key[:100]} {key_case} {shown} {case.outputs}", 0))
            else:
                accepted.update(x.type for x in case.inputs if x is not None)
            results.put(("ran", bool(reason), 0))
        results.put(("done", reasons.most_common(arguments.reasons), dict(accepted)))
    except Exception as error:
        results.put(("error", f"{type(error).__name__}: {error}", 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", default="*")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", default="full")
    parser.add_argument("--versions", choices=["newest", "all"], default="newest")
    parser.add_argument("--reasons", type=int, default=0, help="So many reasons of refusals for each operator.")
    parser.add_argument("--cases", action="store_true", help="Show a case for each reason.")
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--special", action="store_true")
    parser.add_argument("--below", type=float, default=101.0, help="Show only operators below this acceptance.")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("fork")
    import onnxruntime  # noqa: F401

    specs = own.specifications()
    whole = good = operators = 0
    spent = 0.0
    for signature, spec in specs.items():
        if not any(fnmatch.fnmatch(signature, x) for x in arguments.operator.split(",")):
            continue
        numbers = skeleton.versions(spec.operator, spec.domain)
        operators += 1
        for since in numbers if arguments.versions == "all" else numbers[-1:]:
            queue: Any = context.SimpleQueue()
            process = context.Process(target=measure, args=(spec, since, arguments, queue))
            process.start()
            made = ran = refused = 0
            seconds, note, reasons, end = 0.0, "", [], time.monotonic() + SECONDS
            cases = []
            while True:
                if queue.empty():
                    if not process.is_alive() and queue.empty():
                        note = note or "died"
                        break
                    if time.monotonic() > end:
                        process.kill()
                        note = "too slow"
                        break
                    time.sleep(0.002)
                    continue
                kind, value, more = queue.get()
                if kind == "made":
                    made, seconds = value, more
                elif kind == "ran":
                    ran, refused = ran + 1, refused + bool(value)
                elif kind == "case":
                    cases.append(value)
                else:
                    if kind == "done":
                        reasons = value
                    else:
                        note = value
                    break
            process.join()
            spent += seconds
            whole, good = whole + made, good + ran - refused
            share = 100 * (ran - refused) / made if made else 0.0
            if share >= arguments.below and not note:
                continue
            print(f"{signature}-{since:<4} {ran - refused:>4} of {made:>4} {share:6.1f} % {made / seconds if seconds else 0:8.0f}/s {note}")
            for reason, times in reasons:
                print(f"      {times:>4} {reason}")
            for text in cases[: arguments.reasons]:
                print(f"           {text[:400]}")
    print(f"{operators} operators: {good} of {whole} cases accepted, {100 * good / max(whole, 1):.1f} %;"
          f" {whole / max(spent, 1e-9):.0f} made a CPU second")  # fmt: skip


if __name__ == "__main__":
    main()
