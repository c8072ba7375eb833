"""A script and the frontend's adapter do the same: the same functions, the same outputs bit for bit, the same failures."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera import compilers, libraries
from opera.compilers import RECIPES, Case, Recipe, Variant
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Optional, Sequence, Tensor, Value
from opera.programs.verdicts import INCONSISTENT, Job
from opera.run import worker
from opera.store import folders
from opera.triage.reproducers import by_plugin, recipes, reproducer

TEST = "t" * 20
NEEDS = {"onnx": ("onnx",), "torch": ("torch", "onnxscript"), "keras": ("keras", "tensorflow", "tf2onnx")}
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
HALF = np.array([0x3F80, 0x4000, 0xC000], np.uint16)


def operator(
    name: str, *inputs: Any, outputs: int = 1, opset: int = 21, expected: Any = None, named: Any = (), **params: Any
) -> Callable[[], Captured]:
    """Return what makes an ONNX test; the reference evaluator says what is expected where the test does not."""

    def make() -> Captured:
        values = [x if isinstance(x, Tensor | Sequence) else Tensor.of(x) for x in inputs]
        names = named or [f"x{place}" for place in range(len(values))]
        operands = tuple(Operand(*operand) for operand in zip(names, values, strict=True))
        results = tuple(f"y{place}" for place in range(outputs))
        instance = Instance("onnx", name, params, operands, results, {"opset": {"": opset}})
        return captured(instance, None if expected is None else (Tensor.of(expected),))

    return make


def call(name: str, *args: Any, **kwargs: Any) -> Callable[[], Captured]:
    """Return what makes a PyTorch test; arrays become tensors."""

    def make() -> Captured:
        import torch

        from opera.libraries.torch import calls

        def given(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                return torch.from_numpy(x.copy())
            return getattr(torch, x.removeprefix("torch.")) if isinstance(x, str) and x.startswith("torch.") else x

        return captured(calls.instance(name, tuple(map(given, args)), {k: given(x) for k, x in kwargs.items()}))

    return make


def layer(name: str, params: dict[str, Any] | None = None, **inputs: Any) -> Callable[[], Captured]:
    """Return what makes a Keras test."""

    def make() -> Captured:
        from keras_instance import instance

        return captured(instance(name, params or {}, **inputs))

    return make


def captured(instance: Instance, expected: tuple[Value, ...] | None = None) -> Captured:
    return Captured(instance, Provenance("by-hand", "test.py", "here"), expected)


def bfloat16() -> Callable[[], Captured]:
    def make() -> Captured:
        import ml_dtypes

        return layer("keras.ops.expand_dims", {"axis": 0}, x=X.astype(ml_dtypes.bfloat16))()

    return make


OF = {
    "onnx": {
        "plain": operator("Sub", X, X[:, ::-1].copy()),
        "constants": operator("Reshape", X, np.array([3, 2]), named=("data", "shape")),
        "several": operator("TopK", X, np.array([2]), outputs=2, axis=-1),
        "passed-through": operator("Max", X, opset=13),
        "crash": operator("Gather", X, np.array([9]), axis=0, expected=X[:1]),
        "refused": operator("Det", np.eye(2), opset=22),
        "bfloat16": operator("Identity", Tensor.of(HALF, "bfloat16")),
        "int4": operator("Cast", Tensor.of(np.int8([-8, 7, 1]), "int4"), to=1),
        "to-int4": operator("Cast", np.float32([-8, 7, 1]), to=22),
        "strings": operator("Identity", np.array(["a", "ü"], dtype=object)),
        "made-list": operator("SequenceConstruct", X, X),
        "list": operator("SequenceAt", Sequence("float32", (Tensor.of(X), Tensor.of(X[0]))), np.int64(1)),
        "scalar": operator("ReduceSum", X, keepdims=0),
    },
    "torch": {
        "plain": call("torch.sub", X, X[:, ::-1].copy()),
        "several": call("torch.sort", X[:, ::-1].copy()),
        "bfloat16": call("torch.Tensor.to", X, "torch.bfloat16"),
        "crash": call("torch.gather", X, 1, np.array([[0]])),
        "crash-tvm": call("torch.sum", np.array(3, np.float32), 0),
        "refused": call("torch.i0", X),
        "complex": call("torch.fft.fft", X),
    },
    "keras": {
        "plain": layer("keras.ops.subtract", x1=X, x2=X[:, ::-1].copy()),
        "several": layer("keras.ops.top_k", {"k": 2}, x=X),
        "weights": layer("keras.layers.Dense", {"units": 2}, inputs=X),
        "bfloat16": bfloat16(),
        "refused": layer("keras.ops.det", x=np.array([[2.0, 1.0], [1.0, 3.0]], "float32")),
        "crash": layer("keras.ops.diagonal", x=X[:, :2].copy()),
    },
}  # fmt: skip
"""library → name → what makes a test."""

ROUTES = [
    pytest.param(name, library, variant, id=f"{name}-{library}-{variant.name}")
    for name in compilers.registered()
    if name
    in (
        "executorch",
        "inductor",
        "litert",
        "mnn",
        "onnxexport",
        "onnxruntime",
        "opencv",
        "openvino",
        "tflite",
        "torchexport",
        "tract",
        "tvm",
        "xla",
    )
    for library, frontend in compilers.get(name).FRONTENDS.items()
    for variant in frontend.VARIANTS
]
Seen = list[Tensor | None] | tuple[str, str, str]


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts are run in this process, for libraries and compilers take seconds to import."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_grad_enabled(True)


def flat(value: Value) -> list[Tensor | None]:
    match value:
        case Sequence(items=items):
            return [tensor for item in items for tensor in flat(item)]
        case Optional(value=inner):
            return [None] if inner is None else flat(inner)
        case Tensor():
            return [value]
    raise TypeError(type(value))


def cleaned(text: str) -> str:
    """Return a message without the folders of temporary files, addresses, counters in names, and stacks of Python's.

    Nor has it MLIR's locations, which name the module that holds the model, and its line where that is in a file.
    """
    text = re.sub(r"0x[0-9a-f]+|(?<=[A-Za-z])(?:_\d+)+", "", re.sub(r"(?:/[\w.+-]+)+/", "", text))
    text = re.sub(r"""\S+?:\d+(?::\d+)?: error: |(?:loc\()?"[\w.]+;"\("\w+"(?:\("[^"]*":\d+:\d+\))?\)\)?: """, "", text)
    return re.split("The op is created at|Original traceback:", text)[0][:1500].strip()


def by_adapter(name: str, case: Case, folder: Path) -> Seen:
    """Return the tensors that a frontend returns, or stage, type and text of its failure."""
    compiler = compilers.get(name)
    frontend, stage, state = compilers.frontend_of(compiler, case.library), "load", None
    try:
        compiler.prepare()
        case = compilers.exported(frontend, case, folder)
        state = frontend.load(case)
        for stage in ("compile", "infer"):
            state = getattr(frontend, stage)(state, case)
    except Exception as error:
        return stage, type(error).__name__, cleaned(str(error))
    return [tensor for value in state for tensor in flat(value)]


def by_script(text: str, path: Path) -> Seen:
    """Run a script to its end; return what it would compare, or the failure that it prints."""
    path.write_text(text)
    scope: dict[str, Any] = {"__name__": "script", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), scope)
    found: list[Any] = []
    scope["difference"] = lambda want, got, rtol, atol: found.append(got)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scope["main"]()
    if found:
        return [tensor for got in found for tensor in flat(by_plugin._value(got))]
    told = re.search(
        r"^(load|compile|infer): (\w+): (.*)\n(?:gone|another failure)", said.getvalue(), re.MULTILINE | re.DOTALL
    )
    assert told is not None, said.getvalue()
    return told[1], told[2], cleaned(told[3])


def made(library: str, test: Callable[[], Captured], variant: Variant, folder: Path) -> Any:
    """Return the manifest and program of a test whose artefact is there; skips where the library's exporter makes none."""
    for package in NEEDS[library]:
        pytest.importorskip(package)
    adapter: Any = libraries.get(library)
    seen = test()
    manifest = adapter.wrap(seen, TEST, folder)
    if library == "keras":
        adapter._live.cache_clear()
    if variant.artefact not in manifest.artefacts and variant.artefact not in manifest.offers:
        pytest.skip(f"this test has no {variant.artefact}")
    if variant.artefact not in manifest.artefacts:
        try:
            export = adapter.export(manifest, folder, variant.artefact)
        except Exception as error:
            pytest.skip(f"{library} does not export it: {error}")
        migrated.save_export(folder, variant.artefact, migrated.Export(export))
    return manifest, seen.program


def rooted(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the test under a root, where this process finds it by its id."""
    monkeypatch.setattr(folders, "TOLD", str(root))
    folder = migrated.folder(root / folders.TESTS, TEST)
    folder.mkdir(parents=True)
    return folder


def script(name: str, variant: Variant, manifest: Any, folder: Path, program: Program) -> str:
    shown = reproducer.Exhibit(
        "F1", f"{name}-{manifest.library}", name, {}, variant.artefact, INCONSISTENT, "infer", "value", "differs",
        variant=variant.name,
    )  # fmt: skip
    return reproducer.render(shown, manifest, folder, program)


def missing(name: str, variant: Variant) -> bool:
    """Whether something is not installed that the other compilers do not need."""
    needed = {"executorch": "executorch", "litert": "litert_torch"}.get(
        name, "tflite" if (name, variant.artefact) == ("tvm", "tflite") else ""
    )
    return bool(needed) and find_spec(needed) is None


def _timely(route: Any) -> Any:
    """Return a route, marked where all its programs take a minute; test_torch_recipes.py runs one script of it each time."""
    slow = pytest.mark.full if "inductor" in route.values else ()
    return pytest.param(*route.values, id=route.id, marks=slow)


@pytest.mark.parametrize(("name", "library", "variant"), [_timely(x) for x in ROUTES])
def test_outputs_and_failures_are_the_same(
    name: str, library: str, variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing(name, variant):
        pytest.skip("not installed: ExecuTorch, LiteRT Torch, or tflite, by which TVM reads TFLite's models")
    outcomes = {}
    for place, (test, make) in enumerate(OF[library].items()):
        if not _carried(name, test):
            continue
        folder = rooted(tmp_path / str(place), monkeypatch)
        try:
            manifest, program = made(library, make, variant, folder)
        except pytest.skip.Exception:
            continue
        job = Job(manifest.test, name, library, variant.name, variant.artefact)
        own = by_adapter(name, worker.case_of(job, manifest), folder)
        shown = by_script(script(name, variant, manifest, folder, program), folder / "script.py")
        assert shown == own, test
        outcomes[test] = "failed" if isinstance(own, tuple) else "ran"
    assert "ran" in outcomes.values(), outcomes


def _carried(name: str, test: str) -> bool:
    """Whether opera can feed the test to the compiler, else there is no finding to be shown; TVM and MNN read beyond arrays,
    MNN dies of a Max of one input, and ExecuTorch of a scalar's dimension 0."""
    left_out = {
        "executorch": ("crash-tvm",),
        "mnn": ("int4", "strings", "list", "crash", "passed-through"),
        "opencv": ("bfloat16", "int4", "strings", "list"),
        "openvino": ("strings", "list"),
        "tract": ("bfloat16", "crash", "int4", "strings", "list"),  # it ends the process for an index out of range
        "tvm": ("int4", "to-int4", "strings", "list", "crash"),
    }
    return test not in left_out.get(name, ())


@pytest.mark.parametrize(("name", "library", "variant"), [_timely(x) for x in ROUTES])
def test_a_script_holds_what_the_adapter_calls(
    name: str, library: str, variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing(name, variant):
        pytest.skip("not installed: ExecuTorch, LiteRT Torch, or tflite, by which TVM reads TFLite's models")
    folder = rooted(tmp_path, monkeypatch)
    manifest, program = made(
        library, OF[library]["constants" if "constants" in variant.artefact else "plain"], variant, folder
    )
    text = script(name, variant, manifest, folder, program)
    job = Job(manifest.test, name, library, variant.name, variant.artefact)
    case, called = worker.case_of(job, manifest), set()
    places = tuple(str(Path(entry)) for entry in importlib.import_module(RECIPES).__path__)

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(places):
            called.add((frame.f_globals["__name__"], frame.f_code.co_name))

    sys.setprofile(watch)
    try:
        outcome = by_adapter(name, case, folder)
    finally:
        sys.setprofile(None)
    assert isinstance(outcome, list), outcome
    frontend: Any = compilers.frontend(name, library)
    steps = frontend.recipe(variant.artefact, compilers.Involved(frozenset({"float32"}), variant=variant.name))
    for step in (*steps.load, *steps.compile, *steps.infer):
        module, _, function = step.partition(":")
        defined = getattr(importlib.import_module(module), function)
        assert inspect.getsource(defined).strip() in text
        assert (defined.__module__, function) in called, step


def test_a_recipe_is_printed_without_what_it_does_not_use() -> None:
    frontend: Any = compilers.frontend("onnxruntime", "onnx")
    plain = recipes.printed(frontend.recipe("onnx", compilers.Involved(frozenset({"float32", "string"}), lists=True)))
    low = recipes.printed(frontend.recipe("onnx", compilers.Involved(frozenset({"bfloat16"}))))
    packed = recipes.printed(frontend.recipe("onnx", compilers.Involved(frozenset({"int4"}))))
    assert (plain.imports, plain.standard) == (("import onnxruntime",), ())
    assert "memmove" not in plain.source and "bitwise_or" not in low.source and "bitwise_or" in packed.source
    assert low.steps == '(("load", load), ("infer", run_low, FEEDS, OUTPUTS, feed, read))'
    assert "import ctypes" in low.standard


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module of recipes, and return its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"recipe_{abs(hash(text))}"
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    return write


def test_all_modules_that_are_imported_from_one_package_are_printed() -> None:
    """They share the first name, by which the recipe uses them: `iree.compiler.api.Session`, `iree.runtime.Config`."""
    imports = recipes.printed(Recipe(load=(f"{RECIPES}.iree:load",), infer=(f"{RECIPES}.iree:compile",))).imports
    assert {"import iree.compiler.api", "import iree.runtime"} <= set(imports)


def test_what_a_script_cannot_give_is_told(module: Any) -> None:
    name = module("def load(path, more):\n    return path\n")
    with pytest.raises(LookupError, match="nothing is known to give to more"):
        recipes.printed(compilers.Recipe(load=(f"{name}:load",)))
    with pytest.raises(LookupError, match="has no convert"):
        recipes.printed(compilers.Recipe(load=(f"{name}:convert",)))


def test_what_sets_the_scene_comes_with_every_function_of_its_module(module: Any) -> None:
    name = module("import os\n\nLEVEL = 1\nos.environ['A'] = str(LEVEL)\n\n\n# why\ndef load(path):\n    return path\n")
    shown = recipes.printed(compilers.Recipe(load=(f"{name}:load",)))
    assert shown.source == "LEVEL = 1\nos.environ['A'] = str(LEVEL)\n\n\n# why\ndef load(path):\n    return path"
    assert shown.standard == ("import os",)
