"""TensorRT's adapter against a stand-in that has the names and parameters of the bindings' wheels, for there is no GPU here."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opera import compilers
from opera.compilers import Case, recipes
from opera.compilers.shared.packing import CannotCarry
from opera.compilers.tensorrt import compiler as tensorrt
from opera.compilers.tensorrt import told
from opera.compilers.tensorrt.onnx import NotDeclared, Onnx
from opera.programs.values import Tensor
from opera.run import culprit, judge, worker

HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in"
NAMES = json.loads((HERE / "tensorrt_names.json").read_text())
RELEASES = [name.removeprefix("tensorrt ") for name in NAMES if name.startswith("tensorrt ")]
RECIPES = [HERE.parents[1] / "opera" / "compilers" / "recipes" / f"{name}.py" for name in ("tensorrt", "tensorrt_low")]
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have the stand-in of a release imported as `tensorrt`, and the recipe anew."""
    held = {name: sys.modules.pop(name) for name in list(sys.modules) if _theirs(name)}
    vars(recipes).pop("tensorrt", None)
    monkeypatch.setenv("STAND_IN_TENSORRT", request.param)
    monkeypatch.syspath_prepend(str(STAND_IN))
    yield request.param
    for name in [name for name in sys.modules if _theirs(name)]:
        del sys.modules[name]
    sys.modules.update(held)
    vars(recipes).pop("tensorrt", None)


def _theirs(name: str) -> bool:
    return name.partition(".")[0] in ("tensorrt", "cuda") or name.startswith("opera.compilers.recipes.tensorrt")


@pytest.fixture
def model(tmp_path: Path) -> Any:
    """Write a model of one node, whose inputs and outputs are told as name → (type, shape); return its case."""

    def write(operator: str, inputs: dict[str, Any], outputs: dict[str, Any], **attributes: Any) -> Case:
        node = helper.make_node(operator, list(inputs), list(outputs), **attributes)
        infos = [
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape, *_) in part.items()]
            for part in (inputs, outputs)
        ]
        made = helper.make_model(
            helper.make_graph([node], "g", *infos), opset_imports=[helper.make_opsetid("", 18)], ir_version=10
        )
        path = tmp_path / "model.onnx"
        onnx.save(made, path)
        feeds = {name: Tensor.of(given[2]) for name, given in inputs.items()}
        return Case("onnx", operator, path, feeds, tuple(outputs), "inputs", "onnx")

    return write


def seen(case: Case) -> tuple[str, str, str, str]:
    """Run a case; return stage, verdict, symptom and message as a worker concludes them."""
    frontend, state, stage = tensorrt.FRONTENDS["onnx"], None, "load"
    try:
        state = frontend.load(case)
        for stage in ("compile", "infer"):
            state = getattr(frontend, stage)(state, case)
    except Exception as error:
        outcome = worker._failure(tensorrt, frontend, case, worker._Stopped(stage, error), MANIFEST, {})
        return stage, outcome.verdict, outcome.symptom, outcome.message
    return "done", "", "", ""


class MANIFEST:
    library, offers, needs, operators = "onnx", (), {}, {}


def ran(case: Case) -> list[np.ndarray[Any, Any]]:
    frontend = tensorrt.FRONTENDS["onnx"]
    outputs = frontend.infer(frontend.compile(frontend.load(case), case), case)
    return [x.array() for x in outputs]  # type: ignore[union-attr]


# ---------------------------------------------------------------------- names


def used() -> set[str]:
    """Return the attributes that the recipes read of anything: of TensorRT's modules and objects among others."""
    found = set()
    for file in RECIPES:
        tree = ast.parse(file.read_text())
        own = {x.name for x in ast.walk(tree) if isinstance(x, ast.FunctionDef | ast.ClassDef)}
        found |= {x.attr for x in ast.walk(tree) if isinstance(x, ast.Attribute)} - own
    return found


NOT_THEIRS = {
    "DOUBLE", "TensorProto", "abort", "address", "addresses", "append", "arrays", "ascontiguousarray", "astype", "bool_",
    "ceil", "clear", "ctypes", "data", "decode", "dtype", "elem_type", "errors", "exception", "float16", "float32", "float64",
    "frombuffer", "graph", "host", "int32", "int64", "int8", "items", "join", "load", "memory", "ndarray", "output", "prod",
    "ravel", "reshape", "rpartition", "size", "size_of", "stderr", "tensor_type", "tobytes", "tolist", "type", "uint8",
    "values", "view", "write", "zeros",
}  # fmt: skip
"""What the recipes use of numpy, onnx, Python and themselves."""


@pytest.mark.parametrize("release", RELEASES)
def test_every_name_that_the_recipe_uses_is_in_the_bindings(release: str) -> None:
    held, cuda = NAMES[f"tensorrt {release}"], next(NAMES[name] for name in NAMES if name.startswith("cuda"))
    known = {*held["classes"], *held["enums"], *cuda["functions"], *cuda["enums"], "Severity"}
    known |= {member for part in ("classes", "enums") for members in held[part].values() for member in members}
    known |= {member for members in cuda["enums"].values() for member in members}
    absent = used() - known - NOT_THEIRS
    assert absent <= ({"STRICT_NANS"} if release == "10.0.1" else set())
    assert {"execute_async_v3", "set_tensor_address", "STRONGLY_TYPED", "cudaMalloc"} <= used()


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_bindings") is None, reason="no bindings are installed")
def test_the_names_are_those_of_the_bindings_that_are_installed() -> None:
    """Where the libraries are not there as well, empty ones will do, as benchmarks/tensorrt_names.py makes them."""
    code = (
        "import json, tensorrt_names as n, tensorrt_bindings as b; print(json.dumps([b.__version__, n.of_module(b)]))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE.parents[1] / "benchmarks")])}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, stdout=subprocess.PIPE, text=True)
    version, held = json.loads(done.stdout)
    missing = used() - NOT_THEIRS - {"STRICT_NANS"}
    known = {*held["classes"], *held["enums"]} | {
        x for part in held.values() for members in part.values() for x in members
    }
    cuda = next(NAMES[name] for name in NAMES if name.startswith("cuda"))
    assert missing - known <= {*cuda["functions"], *cuda["enums"], "Severity"} | {
        x for y in cuda["enums"].values() for x in y
    }
    if f"tensorrt {version}" in NAMES:
        assert held == NAMES[f"tensorrt {version}"]


# ---------------------------------------------------------------------- what passes


def test_inputs_arrive_and_outputs_come_in_their_order(release: str, model: Any) -> None:
    case = model(
        "TopK", {"x": (1, [2, 3], X), "k": (7, [1], np.array([2]))}, {"v": (1, [2, 2]), "i": (7, [2, 2])}, axis=-1
    )
    values, indices = ran(case)
    assert values.tolist() == [[3, 2], [6, 5]] and indices.tolist() == [[2, 1], [2, 1]]
    from cuda.bindings import runtime

    assert not runtime.OF_GPU and not runtime.STREAMS  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (TensorProto.FLOAT16, X.astype("float16")),
        (TensorProto.INT32, X.astype("int32")),
        (TensorProto.INT64, X.astype("int64")),
        (TensorProto.BOOL, X > 2),
        (TensorProto.UINT8, X.astype("uint8")),
        (TensorProto.FLOAT, X[:0]),
        (TensorProto.FLOAT, np.float32(2.5)),
    ],
)
def test_tensors_of_every_dtype_travel(release: str, model: Any, kind: int, array: Any) -> None:
    (found,) = ran(model("Identity", {"x": (kind, np.shape(array), array)}, {"y": (kind, np.shape(array))}))
    np.testing.assert_array_equal(found, array, strict=True)


def test_float64_is_computed_in_float32_and_comes_back_as_the_model_states_it(release: str, model: Any) -> None:
    tiny = X.astype("float64") + 1e-12
    (found,) = ran(model("Identity", {"x": (TensorProto.DOUBLE, [2, 3], tiny)}, {"y": (TensorProto.DOUBLE, [2, 3])}))
    assert found.dtype == "float64" and found.tolist() == X.tolist()
    assert compilers.computes_in(tensorrt.FRONTENDS["onnx"]) == {"float64": "float32"}


def test_low_precision_is_packed() -> None:
    from opera.compilers.tensorrt.onnx import _fed, _read

    four = Tensor("int4", (3,), np.int8([-8, 7, 1]).tobytes())
    assert _fed(four, "INT4") == b"\x78\x01" and _read(b"\x78\x01", "INT4", (3,), False) == four
    half = Tensor("bfloat16", (2,), b"\x80\x3f\x00\x40")
    assert _fed(half, "BF16") == half.data and _read(half.data, "BF16", (2,), False) == half
    with pytest.raises(CannotCarry, match="feed int16 where TensorRT takes INT32"):
        _fed(Tensor.of(np.int16([1])), "INT32")


def test_an_output_whose_shape_depends_on_values_gets_its_memory_when_it_is_known(release: str, model: Any) -> None:
    case = model("NonZero", {"x": (1, [2, 3], X - 4)}, {"y": (7, [2, None])})
    (found,) = ran(case)
    assert found.tolist() == np.stack(np.nonzero(X - 4)).tolist()


def test_open_shapes_and_shape_tensors_are_stated_in_a_profile(release: str, model: Any) -> None:
    import tensorrt as stand_in

    open_shape = model("Abs", {"x": (1, ["n", 3], -X)}, {"y": (1, ["n", 3])})
    assert ran(open_shape)[0].tolist() == X.tolist()
    assert stand_in.BUILT[-1].profiles == [{"x": (2, 3)}]
    by_values = model(
        "Reshape", {"x": (1, [2, 3], X), "shape": (7, [2], np.array([3, 2]))}, {"y": (1, [3, 2])}
    )  # fmt: skip
    assert ran(by_values)[0].tolist() == X.reshape(3, 2).tolist()
    assert stand_in.BUILT[-1].profiles == [{"shape": [3, 2]}]
    ran(model("Abs", {"x": (1, [2, 3], X)}, {"y": (1, [2, 3])}))
    assert stand_in.BUILT[-1].profiles == []


def test_what_decides_precision_is_set_and_stated(release: str, model: Any) -> None:
    import tensorrt as stand_in

    case = model("Abs", {"x": (1, [2, 3], X)}, {"y": (1, [2, 3])})
    frontend = tensorrt.FRONTENDS["onnx"]
    loaded = frontend.load(case)
    assert loaded[1].flags == 1 << int(stand_in.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    frontend.compile(loaded, case)
    strict = {"STRICT_NANS"} if hasattr(stand_in.BuilderFlag, "STRICT_NANS") else set()
    assert stand_in.BUILT[-1].flags_on == strict and stand_in.BUILT[-1].level == 3
    options = tensorrt.options()
    assert options["tf32"] == "False" and options["strict_nans"] == str(bool(strict))
    assert (options["gpu"], options["compute_capability"]) == ("Stand-in", "9.0")


def test_ways_build_less_and_tell_what_the_parser_states(release: str, model: Any) -> None:
    import msgspec
    import tensorrt as stand_in

    case = model("Abs", {"x": (1, [2, 3], -X)}, {"y": (1, [2, 3])})
    ran(msgspec.structs.replace(case, way="untuned"))
    assert stand_in.BUILT[-1].level == 0
    (stated,) = ran(msgspec.structs.replace(case, way="declared"))
    assert (stated.dtype, stated.shape) == ("float32", (2, 3)) and not stated.any()
    left_open = model("NonZero", {"x": (1, [2, 3], X)}, {"y": (7, [2, None])})
    with pytest.raises(NotDeclared):
        ran(msgspec.structs.replace(left_open, way="declared"))


# ---------------------------------------------------------------------- what fails

ONE = {"x": (1, [2, 3], X)}, {"y": (1, [2, 3])}
TOLD = {
    "Det": ("load", "unsupported", "ParserError", "no importer and no plugin for Det"),
    "Compress": ("load", "unsupported", "ParserError", "no axis"),
    "CumSum": ("load", "unsupported", "ParserError", "needs-constant: Axis input must be an initializer"),
    "Elu": ("load", "crash", "ParserError", "INVALID_NODE: Invalid Node - n\nITensor::getDimensions: Error Code 4 (in parseNode at ModelImporter.cpp:180, node 0 of Elu)"),  # noqa: E501
    "Softsign": ("compile", "crash", "BuildError", "Error Code 10: Could not find any implementation for node n"),
    "Softplus": ("compile", "crash", "BuildError", "deserialize_cuda_engine returned None"),
    "Celu": ("infer", "crash", "ExecutionError", "execute_async_v3 returned False"),
}  # fmt: skip
"""Operator that the stand-in fails on → stage, verdict, symptom, message."""


@pytest.mark.parametrize("operator", TOLD)
def test_a_parser_that_says_no_and_a_builder_that_returns_none_are_told_apart(
    release: str, model: Any, operator: str
) -> None:
    assert seen(model(operator, *ONE)) == TOLD[operator]


def test_what_was_stored_is_judged_alike_where_there_is_no_tensorrt(model: Any) -> None:
    """Rules that change are applied to stand-ins of exceptions, in a process that has no TensorRT."""
    text = "UNSUPPORTED_NODE_SHAPE: too many (in importAdd at x.cpp:1, node 0 of Add)"
    error = told.ParserError(text)
    observed = worker.Seen(judge.observed(error, ""), culprit.COMPILER)
    found = judge.conclude(Onnx(), model("Add", *ONE), "load", observed)
    assert (found.verdict, found.message) == ("unsupported", "too many")
    assert type(judge.restored(observed.raised)).__mro__[1] is told.ParserError


@pytest.mark.parametrize(
    ("text", "converter"),
    [
        ("INVALID_NODE: x (in importConv at onnxOpImporters.cpp:7, node 0 of Conv)", "importConv"),
        ("INVALID_NODE: x\ny (in parseNode at /a/ModelImporter.cpp:7, node 0 of Conv)", "Conv@ModelImporter.cpp:7"),
        ("INVALID_NODE: x (in checkFallbackPluginImporter at c.cpp:8, node 0 of Det)", "Det@c.cpp:8"),
        ("INTERNAL_ERROR: x (in  at :0, node -1 of )\nINVALID_NODE: x (in importA at a.cpp:1, node 0 of A)", "Conv"),
        ("parse_from_file returned False", "Conv"),
    ],
)
def test_the_converter_is_the_parsers_function_or_its_place(model: Any, text: str, converter: str) -> None:
    case = model("Conv", *ONE)
    assert Onnx().conversion_function(case, told.ParserError(text)) == converter
    assert Onnx().conversion_function(case, told.BuildError(text)) == Onnx().conversion_function(case, None) == "Conv"


def test_places_lead_to_the_part_that_failed() -> None:
    import re

    def part(text: str) -> str:
        return next((part for place, part in Onnx.PLACES.items() if re.search(place, text)), "")

    assert part(TOLD["Elu"][3]) == compilers.CONVERSION
    assert part(TOLD["Softsign"][3]) == compilers.OPTIMISATION
    assert part("IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime") == compilers.KERNEL


def test_a_kernel_that_loses_the_gpu_ends_the_process(tmp_path: Path) -> None:
    code = (
        "from opera.compilers.recipes import tensorrt as recipe; from cuda.bindings import runtime as cuda\n"
        "try: recipe.done((cuda.cudaError_t.cudaErrorInvalidValue,))\n"
        "except recipe.ExecutionError as error: print(error, flush=True)\n"
        "cuda.STICKY.append(cuda.cudaError_t.cudaErrorIllegalAddress); recipe.done((cuda.STICKY[0],))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.stdout.startswith("cudaErrorInvalidValue: ") and done.returncode == -6
    assert done.stderr.startswith("the process has lost the GPU: cudaErrorIllegalAddress")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(STAND_IN), *sys.path]), **more}


# ---------------------------------------------------------------------- what is missing


def test_what_is_missing_is_told(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import runtime

    assert tensorrt.version() == release
    monkeypatch.setitem(
        runtime.ACTIONS, "cudaGetDeviceCount", lambda: (runtime.cudaError_t.cudaErrorInsufficientDriver, None)
    )
    with pytest.raises(
        ImportError, match="needs an NVIDIA GPU and its driver, and CUDA has none: cudaErrorInsufficientDriver"
    ):
        tensorrt.version()
    monkeypatch.setitem(runtime.ACTIONS, "cudaGetDeviceCount", lambda: (runtime.cudaError_t.cudaSuccess, 0))
    with pytest.raises(ImportError, match="CUDA sees none"):
        tensorrt.version()


def test_the_newest_opset_is_the_documented_one(release: str) -> None:
    documented = {"10.0.1": {"": 20}, "11.4.0.106": {"": 25}}
    assert Onnx().opsets() == documented.get(release, {})


# ---------------------------------------------------------------------- scripts


def shown(operator: str, folder: Path, verdict: str, stage: str, symptom: str, message: str, factor: float = 1) -> Any:
    """Wrap a call of one input; return an exhibit of it, manifest and program. `factor` makes the expectation wrong."""
    from opera.libraries.onnx import library
    from opera.programs.program import Captured, Instance, Operand, Provenance
    from opera.triage.reproducers.reproducer import Exhibit

    instance = Instance("onnx", operator, {}, (Operand("x", Tensor.of(X)),), ("y",), {"opset": {"": 18}})
    captured = Captured(
        instance, Provenance("by-hand", "test.py", "here"), (Tensor.of(np.abs(X) * np.float32(factor)),)
    )
    manifest = library.wrap(captured, "t" * 20, folder)
    exhibit = Exhibit(
        "F1", "tensorrt-onnx", "tensorrt", {"tensorrt": "11"}, "onnx", verdict, stage, symptom, message, variant="inputs",
        computes_in=compilers.computes_in(tensorrt.FRONTENDS["onnx"], "cuda"),
    )  # fmt: skip
    return exhibit, manifest, instance


@pytest.mark.parametrize(
    ("operator", "factor", "code"),
    [("Abs", 1.0, 0), ("Abs", 1.01, 1), ("Softsign", 1.0, 1)],
    ids=["right", "wrong", "build"],
)
def test_scripts_stand_alone_and_show_what_the_adapter_sees(
    tmp_path: Path, operator: str, factor: float, code: int
) -> None:
    from opera.triage.reproducers import brief, reproducer

    stage, verdict, symptom, message = TOLD.get(operator, ("infer", "inconsistent", "value", "differs"))
    exhibit, manifest, program = shown(operator, tmp_path, verdict, stage, symptom, message, factor)
    text = reproducer.render(exhibit, manifest, tmp_path, program)
    assert "import opera" not in text and "from opera" not in text
    env = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    env |= {"PYTHONPATH": str(STAND_IN)}
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], env=env, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    short = brief.brief(exhibit, manifest, tmp_path, program)
    assert short is not None
    assert "execute_async_v3" in short.run and "import tensorrt as trt" in short.imports and "cuda" in short.imports


# ---------------------------------------------------------------------- doctor


@pytest.mark.full
def test_doctor_sees_all_canaries_through_workers(tmp_path: Path) -> None:
    release = RELEASES[-1]
    about = tmp_path / "stand_in.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[opera.compilers]\ntensorrt = opera.compilers.tensorrt.compiler\n")
    env = environment(STAND_IN_TENSORRT=release)
    env["PYTHONPATH"] += f"{os.pathsep}{tmp_path}"
    command = [sys.executable, "-m", "opera", "doctor", "--compiler", "tensorrt", "--workers", "1"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    (line,) = [x for x in done.stdout.splitlines() if " tensorrt-onnx " in x]
    assert line.startswith("ok") and release in line
    for seen_by in (
        "right answer passes",
        "planted wrong answer is caught",
        "without importer is unsupported",
        "a build",
    ):
        assert seen_by in line
