"""From a program of Keras to a functional model of its layers and functions, and its exports.

Weights are what the layer's initializers give after `keras.utils.set_random_seed(0)`, so that a script can build the same
model without a file. Every shape is static, and `training` is baked into the model.
"""

from __future__ import annotations

import base64
import itertools
import shutil
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera.errors import CorpusError, InvalidTest
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import calls as keras_calls
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras import kernels
from opera.libraries.keras import source as keras_source
from opera.programs.program import Graph, Instance, Program, with_params, with_values
from opera.programs.values import RandomTensor, Tensor, Value

MAX_BYTES = 256 << 20
"""Inputs of a test may take this much memory together."""
NARROW = ("bfloat16", "float16", "float32")
"""dtypes that have a wider one to be checked against."""
MIXED = ("mixed_bfloat16", "mixed_float16")
"""Policies that compute in one of them and keep weights in another."""


SEED = "seed_generator_state"
"""How Keras names the variable from which what is random in a layer is drawn."""


class Live:
    """A model in this process.

    Attributes:
        model: A keras.Model whose inputs are a list named as the manifest's. It returns its outputs as a list in the
            manifest's order; a single one is returned bare, as Keras does.
        inputs: What to feed, in that order: numpy arrays, of ml_dtypes' types where numpy has none.
    """

    def __init__(self, model: Any, inputs: list[np.ndarray[Any, Any]]) -> None:
        self.model, self.inputs = model, inputs
        moving = (x for x in model.non_trainable_variables if x.name != SEED)
        self._first = [(x, x.numpy()) for x in moving]  # statistics that training moves, and outputs may depend on

    def run(self, inputs: list[np.ndarray[Any, Any]] | None = None) -> list[np.ndarray[Any, Any]]:
        """Run the model eagerly, from its first state; returns one array an output."""
        import keras

        self._reset()
        fed = self.inputs if inputs is None else inputs
        found = self.model([keras.ops.convert_to_tensor(item, dtype=item_dtype(item)) for item in fed])
        outputs = keras.tree.flatten(found)
        if any(map(keras_calls.not_dense, outputs)):
            raise TypeError("an output is sparse or ragged: no compiler's model has such")
        return [np.asarray(keras.ops.convert_to_numpy(item)) for item in outputs]

    def run_graph(self, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run the graph that TensorFlow traces of the model, which is what every compiler and exporter starts from."""
        import tensorflow as tf

        self._reset()
        fed = [tf.constant(item, spec.dtype) for item, spec in zip(inputs, self.signature, strict=True)]
        return [np.asarray(item) for item in tf.nest.flatten(self.concrete(*fed))]

    @property
    def size(self) -> int:
        """Bytes of its weights and inputs."""
        return sum(item.nbytes for item in self.inputs) + sum(int(np.prod(x.shape)) * 8 for x in self.model.variables)

    def state(self) -> list[bytes]:
        """Return all that a run may leave changed: values of variables, and seeds that layers and Keras itself draw from.

        Two runs that begin in one state compute the same: what is random in Keras draws from these seeds alone.
        """
        from keras.src.backend.common import global_state
        from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR

        shared = global_state.get_global_attribute(GLOBAL_SEED_GENERATOR)
        held = [*self.model.variables, *([shared.state] if shared is not None else [])]
        return [np.asarray(variable).tobytes() for variable in held]

    def _reset(self) -> None:
        for layer in self.model.layers:
            if getattr(layer, "stateful", False) is True:
                layer.reset_state()
        for variable, value in self._first:
            variable.assign(value)

    @cached_property
    def signature(self) -> list[Any]:
        """One tf.TensorSpec an input, with its name and static shape."""
        import tensorflow as tf

        return [
            tf.TensorSpec(x.shape, tf.as_dtype(item_dtype(x)), name=tensor.name)
            for x, tensor in zip(self.inputs, self.model.inputs, strict=True)
        ]

    @cached_property
    def concrete(self) -> Any:
        """The model as a tf.ConcreteFunction of its flat inputs, traced once: what converters start from."""
        import tensorflow as tf

        def serve(*inputs: Any) -> Any:
            return self.model(list(inputs))

        made = tf.function(serve, input_signature=self.signature, autograph=False, jit_compile=False)
        return made.get_concrete_function()

    def saved_model(self, path: Path | str) -> None:
        """Write a SavedModel with one endpoint, `serve` (alias `serving_default`); its outputs are `output_0`, ..."""
        shutil.rmtree(path, ignore_errors=True)
        self._export(path, "tf_saved_model")

    def tflite(self) -> bytes:
        """Convert with the TFLiteConverter's default options: operators of TFLite alone, none of TensorFlow's.

        The converter freezes the graph itself. Where it is told what holds the variables, it writes a SavedModel to disk and
        reads that, to the same operators, three times as slowly; so it is told where the graph assigns one, which it cannot
        freeze, and of which `from_keras_model` knows (a seed that a layer draws by and moves on).
        """
        import tensorflow as tf

        variables = list(self.concrete.variables)
        held = tf.Module() if variables and _assigns(self.concrete.graph) else None
        if held is not None:
            held.variables_ = variables
        data: bytes = tf.lite.TFLiteConverter.from_concrete_functions([self.concrete], held).convert()
        return data

    def onnx(self, path: Path | str) -> None:
        """Write an ONNX model by way of tf2onnx; inputs have the manifest's names, outputs its order."""
        self._export(path, "onnx")

    def _export(self, path: Path | str, form: str) -> None:
        self.model.export(str(path), format=form, verbose=False, input_signature=[self.signature])


def _assigns(graph: Any) -> bool:
    """Whether a graph, or a function that it calls, assigns a variable."""
    made = graph.as_graph_def()
    nodes = itertools.chain(made.node, *(x.node_def for x in made.library.function))
    return any(node.op.startswith("Assign") for node in nodes)


def item_dtype(item: np.ndarray[Any, Any]) -> str:
    """Return the name by which Keras knows an array's dtype."""
    return "string" if item.dtype.kind in "OSU" else item.dtype.name


def inputs(program: Program) -> list[np.ndarray[Any, Any]]:
    """Make the arrays of the inputs. Raises InvalidTest where there is none, or they are too large."""
    if not program.inputs:
        raise InvalidTest("the program has no tensor input")
    total = 0
    for operand in program.inputs:
        if not isinstance(operand.value, Tensor | RandomTensor):
            raise InvalidTest(f"input {operand.name!r} is no tensor")
        itemsize = keras_values.numpy_dtype(operand.value.dtype).itemsize
        total += int(np.prod(operand.value.shape, dtype=np.int64)) * itemsize
    if total > MAX_BYTES:
        raise InvalidTest(f"the inputs take {total >> 20} MiB, more than {MAX_BYTES >> 20}")
    return [keras_values.to_array(operand.value) for operand in program.inputs]


def build(program: Program) -> Live:
    """Build the model of a program. Raises InvalidTest where Keras rejects it, CorpusError for what is not its own."""
    import keras

    fed = inputs(program)
    try:
        with kernels.kept():
            source = keras_source.model(program)
            keras.backend.clear_session(free_memory=False)
            scope: dict[str, Any] = {"keras": keras, "np": np, "unpack": _unpack}
            exec(compile(source, "<opera>", "exec"), scope)  # source of literals and known names: see keras_source
            made = scope["build"]()
    except (InvalidTest, CorpusError, MemoryError):
        raise
    except Exception as error:  # what Keras raises for bad arguments is as various as its layers
        raise InvalidTest(f"Keras rejects it: {type(error).__name__}: {' '.join(str(error).split())[:600]}") from None
    return Live(made, fed)


def _unpack(text: str, dtype: str, shape: list[int]) -> Any:
    """What the source of large tensors calls (opera.programs.literals)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()


PLUMBING = frozenset(
    ("Const", "Identity", "IdentityN", "NoOp", "Placeholder", "ReadVariableOp", "Shape", "StopGradient")
)
"""Operations of TensorFlow's graphs that compute nothing."""


def operations(program: Program) -> int:
    """Return how many operations TensorFlow's graph of a program has that compute something, those of its functions among
    them. Raises InvalidTest where there is no graph.
    """
    try:
        graph = build(program).concrete.graph.as_graph_def()
    except Exception as error:
        raise InvalidTest(f"TensorFlow cannot trace it: {type(error).__name__}") from None
    bodies = (graph.node, *(x.node_def for x in graph.library.function))
    return sum(x.op not in PLUMBING for nodes in bodies for x in nodes)


def steps(graph: Graph) -> list[tuple[Instance, list[Value]]]:
    """Return each call with the values of its arguments, and what Keras returns for them, run eagerly."""
    names = tuple(name for call in graph.calls for name in call.outputs if name)
    found = map(keras_values.from_array, build(msgspec.structs.replace(graph, outputs=names)).run())
    known: dict[str, Value] = dict(zip(names, found, strict=True))
    return [(call, [known[name] for name in call.outputs if name]) for call in graph.instances(known)]


def in_double(live: Live, program: Program, fed: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run a program with inputs, weights and computation in float64; outputs have the dtypes that they should have.

    Raises InvalidTest where nothing of it is of a narrower float, or Keras cannot run it so.
    """
    if not any(item.dtype.name in NARROW for item in fed):
        raise InvalidTest("no input is of a narrower float")
    wide = [item.astype("float64") if item.dtype.name in NARROW else item for item in fed]
    given = [
        Tensor.of(item) if item.dtype.name == "float64" else operand.value
        for operand, item in zip(program.inputs, wide, strict=True)
    ]
    with keras_calls.aside():
        double = build(with_params(with_values(program, given), _in_double))
        double.model.set_weights([np.asarray(item) for item in live.model.get_weights()])
        found = double.run(wide)
    outputs = [tensor.dtype for tensor in live.model.outputs]
    return [item.astype(keras_values.numpy_dtype(dtype)) for item, dtype in zip(found, outputs, strict=True)]


def _in_double(instance: Instance) -> dict[str, Value]:
    if instance.params.get("dtype", "float32") not in (*NARROW, *MIXED):
        raise InvalidTest("the layer computes in several dtypes")
    params: dict[str, Value] = _widened(instance.params)
    if keras_api.kind(instance.operator) == "layer":
        params["dtype"] = "float64"
    return params


def _widened(value: Value) -> Any:
    """Return a configuration with float64 for every dtype of a layer in it."""
    if isinstance(value, dict):
        return {key: "float64" if key == "dtype" and item in NARROW else _widened(item) for key, item in value.items()}
    return [_widened(item) for item in value] if isinstance(value, list) else value
