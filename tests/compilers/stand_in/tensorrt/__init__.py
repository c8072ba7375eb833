"""Stands in for TensorRT with no name and no parameter but those of its bindings' wheels (tensorrt_names.json).

What it does is TensorRT's documentation in small: a model is parsed by onnx, run by onnx's reference evaluator, and handed over
through `cuda`, which stands in beside it. Operators say what it is to do wrong: see `FAILS`. An access to what the bindings
have not is an AttributeError, a call with other parameters a TypeError.
"""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

RELEASE = os.environ.get("STAND_IN_TENSORRT", "11.4.0.106")
NAMES = json.loads((Path(__file__).parents[2] / "tensorrt_names.json").read_text())[f"tensorrt {RELEASE}"]
__version__ = RELEASE
KINDS = {1: "FLOAT", 2: "UINT8", 3: "INT8", 6: "INT32", 7: "INT64", 9: "BOOL", 10: "HALF", 11: "FLOAT", 16: "BF16"}
SIZES = {"FLOAT": 4, "UINT8": 1, "INT8": 1, "INT32": 4, "INT64": 8, "BOOL": 1, "HALF": 2, "BF16": 2, "INT4": 0.5}
NUMPY = {
    "FLOAT": "float32",
    "UINT8": "uint8",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
    "HALF": "float16",
}
PLUGIN = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'
FAILS = {
    "Det": ("INVALID_NODE", PLUGIN, "onnxOpCheckers.cpp", 780, "checkFallbackPluginImporter"),
    "Compress": (
        "UNSUPPORTED_NODE_ATTR",
        "Assertion failed: !axis: no axis",
        "onnxOpImporters.cpp",
        5,
        "importCompress",
    ),
    "CumSum": (
        "INTERNAL_ERROR",
        "Exception occurred in - n\nAxis input must be an initializer!",
        "ModelImporter.cpp",
        9,
        "parseNode",
    ),
    "Elu": (
        "INVALID_NODE",
        "Invalid Node - n\nITensor::getDimensions: Error Code 4",
        "ModelImporter.cpp",
        180,
        "parseNode",
    ),
}
"""Operator → the parser's error of it."""


class _Member:
    """A member of an enumeration, as pybind11 makes them."""

    def __init__(self, kind: str, name: str, number: int) -> None:
        self._kind, self._name, self._number = kind, name, number

    @property
    def name(self) -> Any:
        """As TensorRT 10.0 has it, the name of a parser's error code is a method that is bound to nothing."""
        return object() if self._kind == "ErrorCode" and RELEASE.startswith("10.0.") else self._name

    def __int__(self) -> int:
        return self._number

    def __str__(self) -> str:
        return f"{self._kind}.{self._name}"


def _enum(name: str) -> type:
    short = name.rpartition(".")[2]
    members = {x: _Member(short, x, place) for place, x in enumerate(NAMES["enums"][name])}
    return type(short, (), {"__members__": members, **members})


class _Bound:
    """What all classes are made from: members that the bindings have, and nothing else."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        known = inspect.getattr_static(type(self), name, None)
        if type(self).__module__ == __name__ and (not isinstance(known, property) or known.fset is None):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r} that can be set")
        super().__setattr__(name, value)


def _class(name: str, setters: dict[str, str] | None = None, /, **does: Any) -> type:
    """Make a class of the bindings: `does` is what its members do; those without are there and fail when they are used.

    `setters` are the properties that can be set, and where they are kept.
    """
    members = NAMES["classes"][name]
    unknown = does.keys() - members.keys() - {"__init__"}
    assert not unknown, f"{name} of TensorRT {RELEASE} has no {unknown}"
    body: dict[str, Any] = {"__module__": __name__}
    for member, overloads in members.items():
        action = does.get(member, _missing(name, member))
        setter = _set(setters[member]) if setters and member in setters else None
        body[member] = property(action, setter) if overloads is None else _checked(member, overloads, action)
    return type(name, (_Bound,), body)


def _missing(name: str, member: str) -> Any:
    def missing(self: Any, *_: Any) -> Any:
        raise NotImplementedError(f"the stand-in does not know what {name}.{member} does")

    return missing


def _checked(member: str, overloads: list[list[str]], action: Any) -> Any:
    """Return a method that takes what one of the overloads takes, by place or by name."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        for parameters in overloads or [[]]:
            signature = _signature(parameters)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                continue
            bound.apply_defaults()
            return action(self, *bound.args)
        raise TypeError(f"{member}(): incompatible function arguments: {args} {kwargs} for {overloads}")

    return method


def _signature(parameters: list[str]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(x.rstrip("="), kind, default=0 if x.endswith("=") else inspect.Parameter.empty)
            for x in parameters
        ]
    )


def _state(**values: Any) -> Any:
    """Return a constructor that keeps what it is given, and these."""

    def init(self: Any, *args: Any) -> None:
        self.__dict__.update({key: value() for key, value in values.items()}, _given=args)

    return init


def _reader(name: str) -> Any:
    return lambda self: self.__dict__[name]


def _made(kind: type, /, **values: Any) -> Any:
    found = kind.__new__(kind)
    found.__dict__.update(values)
    return found


def _set(name: str) -> Any:
    return lambda self, value: self.__dict__.__setitem__(name, value)


BuilderFlag = _enum("BuilderFlag")
DataType = _enum("DataType")
for _kind in DataType.__members__.values():
    _kind.__dict__["itemsize"] = SIZES.get(_kind._name, 1)
ErrorCode = _enum("ErrorCode")
NetworkDefinitionCreationFlag = _enum("NetworkDefinitionCreationFlag")
TensorIOMode = _enum("TensorIOMode")
TensorLocation = _enum("TensorLocation")

ILogger = _class("ILogger", __init__=_state())
ILogger.Severity = _enum("ILogger.Severity")
ITensor = _class(
    "ITensor", {"shape": "dims"}, name=_reader("label"), shape=_reader("dims"), dtype=_reader("kind"),
    is_shape_tensor=lambda self: self.label.startswith("shape"),
)  # fmt: skip
INetworkDefinition = _class(
    "INetworkDefinition", num_inputs=lambda self: len(self.ins), num_outputs=lambda self: len(self.outs),
    flags=_reader("options"), get_input=lambda self, index: self.ins[index], get_output=lambda self, index: self.outs[index],
)  # fmt: skip
ParserError = _class(
    "ParserError", code=_reader("of"), desc=_reader("text"), file=_reader("source"), line=_reader("number"),
    func=_reader("function"), node=lambda self: 0, node_operator=_reader("operator"),
)  # fmt: skip


def _tensor(info: Any) -> Any:
    held = info.type.tensor_type
    dims = tuple(x.dim_value if x.HasField("dim_value") else -1 for x in held.shape.dim)
    return _made(ITensor, label=info.name, dims=dims, kind=getattr(DataType, KINDS[held.elem_type]))


def _parse(self: Any, path: str) -> bool:
    network, _ = self._given
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type in FAILS:
            code, text, source, number, function = FAILS[node.op_type]
            where = {"source": source, "number": number, "function": function, "operator": node.op_type}
            self.errors.append(_made(ParserError, of=getattr(ErrorCode, code), text=text, **where))
    known = not self.errors
    ins, outs = ([_tensor(x) for x in part] if known else [] for part in (model.graph.input, model.graph.output))
    network.__dict__.update(model=model, ins=ins, outs=outs)
    return known


OnnxParser = _class(
    "OnnxParser", __init__=_state(errors=list), parse_from_file=_parse, num_errors=lambda self: len(self.errors),
    get_error=lambda self, index: self.errors[index],
)  # fmt: skip


def _shape(self: Any, name: str, *three: Any) -> None:
    assert three[0] == three[1] == three[2] and isinstance(three[0], (tuple, list))
    self.known[name] = three[0]


IOptimizationProfile = _class(
    "IOptimizationProfile", __init__=_state(known=dict), set_shape=_shape, set_shape_input=_shape
)
IBuilderConfig = _class(
    "IBuilderConfig",
    {"builder_optimization_level": "level"},
    set_flag=lambda self, flag: self.flags_on.add(flag._name),
    clear_flag=lambda self, flag: self.flags_on.discard(flag._name),
    add_optimization_profile=lambda self, profile: self.profiles.append(profile.known) or 0,
    builder_optimization_level=_reader("level"),
)
BUILT: list[Any] = []
"""The configurations that engines were built with: for tests to look at."""


def _build(self: Any, network: Any, config: Any, *_: Any) -> Any:
    (logger,) = self._given
    BUILT.append(config)
    known = {name for profile in config.profiles for name in profile}
    if any((-1 in x.dims or x.is_shape_tensor) and x.name not in known for x in network.ins):
        words = "IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (Network has dynamic or shape inputs, "
        words += "but no optimization profile has been defined.)"
        logger.log(ILogger.Severity.ERROR, words)
        return None
    if any(node.op_type == "Softsign" for node in network.model.graph.node):
        logger.log(ILogger.Severity.WARNING, "a warning is none of its errors")
        logger.log(ILogger.Severity.INTERNAL_ERROR, "Error Code 10: Could not find any implementation for node n")
        return None
    return network


Builder = _class(
    "Builder", __init__=_state(), build_serialized_network=_build,
    create_network=lambda self, flags: _made(INetworkDefinition, options=flags, ins=[], outs=[]),
    create_builder_config=lambda self: _made(IBuilderConfig, flags_on={"TF32"}, profiles=[], level=3),
    create_optimization_profile=lambda self: IOptimizationProfile(),
)  # fmt: skip


def _loaded(self: Any, plan: Any) -> Any:
    if any(node.op_type == "Softplus" for node in plan.model.graph.node):
        return None
    names = {x.name for x in plan.ins}
    return _made(ICudaEngine, network=plan, io={x.name: x for x in [*plan.ins, *plan.outs]}, fed=names.__contains__)


Runtime = _class("Runtime", __init__=_state(), deserialize_cuda_engine=_loaded)
ICudaEngine = _class(
    "ICudaEngine",
    num_io_tensors=lambda self: len(self.io),
    get_tensor_name=lambda self, index: list(self.io)[index],
    get_tensor_dtype=lambda self, name: self.io[name].dtype,
    get_tensor_mode=lambda self, name: (
        TensorIOMode.INPUT if any(x.name == name for x in self.network.ins) else TensorIOMode.OUTPUT
    ),
    get_tensor_location=lambda self, name: TensorLocation.HOST if name.startswith("shape") else TensorLocation.DEVICE,
    create_execution_context=lambda self, *_: _made(IExecutionContext, engine_of=self, shapes={}, at={}, allocators={}),
)


def _execute(self: Any, stream: int) -> bool:
    """Read the inputs from their addresses, and write the outputs to theirs: of whom none is known, by its allocator."""
    from cuda.bindings import runtime

    assert stream in runtime.STREAMS
    if any(node.op_type == "Selu" for node in self.engine_of.network.model.graph.node):
        runtime.STICKY.append(runtime.cudaError_t.cudaErrorIllegalAddress)  # tells at the next synchronisation
        return True
    if any(node.op_type == "Celu" for node in self.engine_of.network.model.graph.node):
        return False
    model, feeds = self.engine_of.network.model, {}
    for x in self.engine_of.network.ins:
        host = x.name.startswith("shape")
        kind, shape = NUMPY[x.dtype.name], self.shapes[x.name]
        data = runtime.peek(self.at[x.name], int(np.prod(shape)) * np.dtype(kind).itemsize, host=host)
        feeds[x.name] = np.frombuffer(data, kind).reshape(shape).astype(_stated(model.graph.input, x.name))
    found = ReferenceEvaluator(model).run(None, feeds)
    for x, array in zip(self.engine_of.network.outs, found, strict=True):
        data = np.ascontiguousarray(array, NUMPY[x.dtype.name]).tobytes()
        if x.name in self.allocators:
            self.at[x.name] = self.allocators[x.name].reallocate_output_async(x.name, 0, len(data), 256, stream)
            self.allocators[x.name].notify_shape(x.name, array.shape)
        runtime.poke(self.at[x.name], data)
    return True


def _stated(infos: Any, name: str) -> Any:
    held = next(x for x in infos if x.name == name)
    return onnx.helper.tensor_dtype_to_np_dtype(held.type.tensor_type.elem_type)


def _keep(where: str, good: Any) -> Any:
    """Return a method that keeps what a name is given, and says whether that is good."""

    def keep(self: Any, name: str, value: Any) -> bool:
        self.__dict__[where][name] = value
        return bool(good(self, name, value))

    return keep


IExecutionContext = _class(
    "IExecutionContext",
    set_input_shape=_keep("shapes", lambda self, name, shape: len(shape) == len(self.engine_of.io[name].dims)),
    set_tensor_address=_keep("at", lambda self, name, memory: memory != 0),
    set_output_allocator=_keep("allocators", lambda *_: True),
    get_tensor_shape=lambda self, name: self.engine_of.io[name].dims,
    execute_async_v3=_execute,
)
IOutputAllocator = _class("IOutputAllocator", __init__=_state())
