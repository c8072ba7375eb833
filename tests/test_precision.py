"""How precisely is computed is decided by opera, and neither by the CPU nor by the user's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opera import precision
from opera.compilers import Case, inductor, onnxruntime, recipes, torchexport
from opera.compilers.openvino import compiler as openvino
from opera.libraries.torch import library as torch
from opera.programs.values import Tensor

TEMPLATES = Path(__file__).parents[1] / "templates"
TEMPTING = {
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "DNNL_DEFAULT_FPMATH_MODE": "BF16",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math",
}
"""What a user may have set for their own work."""


def printed(code: str) -> str:
    """What a fresh process prints whose environment asks for less precision."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | TEMPTING, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (torch.PRELOAD, "opera.libraries.torch.wrap"),
        (inductor.PRELOAD[:2], "opera.compilers.shared.torch_live"),
        (torchexport.PRELOAD[:2], "opera.compilers.torchexport"),
    ],
)
def test_pytorch_convolves_float32_in_float32(names: tuple[str, ...], module: str) -> None:
    pytest.importorskip("torch")
    told = printed(
        f"from importlib import import_module\nfor name in {names}:\n    import_module(name)\n"
        f"import torch, {module} as module\nmodule.prepare()\n"
        "with torch.backends.mkldnn.verbose(1):\n"
        "    torch.nn.functional.conv2d(torch.rand(1, 16, 64, 64), torch.rand(16, 16, 3, 3))\n"
        "print(torch.get_float32_matmul_precision(), torch.tensor([1e-40]).mul(1).count_nonzero().item())\n"
    )
    if "exec,cpu" not in told:
        pytest.skip("this PyTorch does not convolve by oneDNN")
    assert "fpmath:bf16" not in told and "highest 1" in told


def test_a_process_that_only_asks_for_options_keeps_its_environment() -> None:
    """The user's own suite runs in one, under instrumentation."""
    told = printed(
        "import os, opera.cli\nfrom opera import compilers\nfor name in compilers.registered():\n"
        "    compilers.get(name)\nprint(os.environ['ONEDNN_DEFAULT_FPMATH_MODE'], os.environ['XLA_FLAGS'])\n"
    )
    assert told.split() == ["BF16", "--xla_cpu_enable_fast_math"]


def test_xla_rounds_to_bfloat16_where_the_program_does() -> None:
    pytest.importorskip("tensorflow")
    told = printed(
        "from opera.compilers import xla\nxla.prepare()\nimport tensorflow as tf\n"
        "def twice(x):\n    y = tf.cast(x, tf.bfloat16)\n    return tf.cast(y * y * y, tf.float32)\n"
        "x = tf.linspace(0.1, 3.0, 1000)\n"
        "print(bool(tf.reduce_all(twice(x) == tf.function(twice, jit_compile=True)(x))))\n"
    )
    assert told.split()[-1] == "True"


def test_products_of_uint8_and_constant_int8_do_not_saturate(tmp_path: Path) -> None:
    """They do in ONNX Runtime on CPUs without VNNI, unless a session asks for precision."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weights = onnx.numpy_helper.from_array(np.full((64, 2), 127, np.int8), "w")
    x, y = (onnx.helper.make_tensor_value_info(*port) for port in (("x", 2, [2, 64]), ("y", 6, [2, 2])))
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMulInteger", ["x", "w"], ["y"])], "g", [x], [y], [weights]
    )
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)
    case = Case("onnx", "MatMulInteger", path, {"x": Tensor.of(np.full((2, 64), 255, np.uint8))}, ("y",))
    frontend = onnxruntime.FRONTENDS["onnx"]
    found = frontend.infer(frontend.compile(frontend.load(case), case), case)
    assert found == [Tensor.of(np.full((2, 2), 255 * 127 * 64, np.int32))]


def test_openvino_neither_narrows_nor_quantises() -> None:
    runtime = pytest.importorskip("openvino")
    openvino.prepare()
    from opera.compilers.recipes import openvino as recipe

    x = runtime.opset13.parameter([2, 2], np.float32)
    compiled = recipe.CORE.compile_model(runtime.Model([runtime.opset13.relu(x)], [x]), "CPU")
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == runtime.Type.f32
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 0
    assert compiled.get_property("CPU_DENORMALS_OPTIMIZATION") is False


def test_the_scripts_of_findings_set_what_the_adapters_set() -> None:
    """What compilers are told is in recipes, which both run; what libraries are told is in their templates."""
    eager, keras = ((TEMPLATES / library / "script.py.j2").read_text() for library in ("torch", "keras"))
    core = (Path(recipes.__path__[0]) / "openvino.py").read_text()
    for variables, text in ((precision.ONEDNN, eager), (precision.ONEDNN, core), (precision.TENSORFLOW, keras)):
        assert all(f'"{name}"' in text and f'"{value}"' in text for name, value in variables.items())
    assert eager.index("ONEDNN") < eager.index("import torch")
    assert "set_flush_denormal(False)" in eager and 'set_float32_matmul_precision("highest")' in eager


def test_every_script_gets_its_runtime_that_way() -> None:
    """None opens a session, or a core, by itself."""
    made_once = {"onnxruntime.InferenceSession(": "session_onnxruntime.py.j2", "openvino.Core(": "core_openvino.py.j2"}
    for path in TEMPLATES.rglob("run_*.j2"):
        for call, file in made_once.items():
            assert call not in path.read_text(), path
            assert f'import {call.partition(".")[0]}"' not in path.read_text() or file in path.read_text(), path
