"""The frontends of PyTorch: what passes, what is refused, where it failed, and how tensors of every kind travel."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from opera.compilers import Case, executorch, inductor, litert, onnxexport, torchexport  # noqa: E402
from opera.compilers.openvino import compiler as openvino  # noqa: E402
from opera.compilers.openvino.evaluate import SHAPELESS  # noqa: E402
from opera.compilers.shared import torch_operators  # noqa: E402
from opera.compilers.shared.packing import Read, Refusal  # noqa: E402
from opera.compilers.tvm import compiler as tvm  # noqa: E402
from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.oracle.comparison import compare  # noqa: E402
from opera.programs.migrated import read_values  # noqa: E402
from opera.programs.program import Captured, Provenance  # noqa: E402
from opera.programs.verdicts import UNEXPORTED, Seen  # noqa: E402
from opera.run import culprit, judge  # noqa: E402

ROUTES: list[Any] = [
    pytest.param(
        compiler,
        variant.artefact,
        id=f"{compiler.NAME}-{variant.name}",
        marks=pytest.mark.full
        if compiler is inductor
        else (),  # it compiles C++: a minute; its scripts are run each time
    )
    for compiler in (tvm, openvino, inductor, torchexport, onnxexport)
    for variant in compiler.FRONTENDS["torch"].VARIANTS
    if variant.name != torchexport.DECOMPOSED  # of the artefact of another
]
each = pytest.mark.parametrize(("compiler", "artefact"), ROUTES)
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """Wrap a call and export it; return the case and the expected outputs."""

    def once(artefact: str, operator: str, *args: Any, **kwargs: Any) -> tuple[Case, list[Any]]:
        instance = torch_calls.instance(operator, args, kwargs)
        manifest = library.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
        made = manifest.artefacts.get(artefact) or library.export(manifest, tmp_path, artefact)
        feeds = dict(zip(manifest.inputs, read_values(tmp_path, "inputs"), strict=True))
        live = partial(library.live, manifest, tmp_path) if artefact == "live" else None
        case = Case("torch", operator, tmp_path / made.file, feeds, manifest.outputs, "", artefact, live)
        return case, read_values(tmp_path, "expected")

    return once


@each
def test_inputs_are_fed_in_their_order_and_a_wrong_expectation_is_caught(compiler, artefact, make, run):
    case, expected = make(artefact, "torch.sub", X, X.flip(1))
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""
    assert compare([case.feeds["input"]], outputs, case.outputs, None, None).symptom == "value"
    assert "sub" in compiler.FRONTENDS["torch"].conversion_function(case, None).lower()


@each
def test_several_outputs_come_in_their_order(compiler, artefact, make, run):
    case, expected = make(artefact, "torch.sort", X.flip(1))
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


@pytest.mark.parametrize("compiler", [executorch, inductor, litert, torchexport, onnxexport], ids=lambda x: x.NAME)
def test_who_is_patched_pytorch_says_how_to_have_it_unpatched(compiler: Any) -> None:
    for frontend in compiler.FRONTENDS.values():
        preloaded = {*compiler.PRELOAD, *(x for variant in frontend.VARIANTS for x in variant.preload)}
        patched = "opera.libraries.torch.preload" in preloaded
        assert getattr(frontend, "UNPATCHED", {}) == ({"OPERA_UNPATCHED": "1"} if patched else {})


KINDS = {
    "scalar": torch.tensor(2.5),
    "empty": X[:0],
    "bool": X > 2,
    "int8": X.to(torch.int8),
    "float64": X.double(),
    "float16": X.half(),
    "bfloat16": X.bfloat16(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("compiler", "artefact"), [(tvm, "pt2"), (openvino, "pt2"), (openvino, "live")])
def test_tensors_of_every_kind_travel_unchanged(compiler, artefact, kind, make, run):
    call = ("torch.exp", KINDS[kind]) if kind == "empty" else ("torch.unsqueeze", KINDS[kind], 0)
    case, expected = make(artefact, *call)
    stage, outputs = run(compiler, case)
    assert (stage, outputs) == ("done", expected)


REFUSED = [
    (tvm, "pt2", "load", "no converter for i0.default"),
    (openvino, "pt2", "load", "no conversion rule for aten.i0.default"),
    (openvino, "live", "load", "no conversion rule for aten::i0"),
    (onnxexport, "live", "load", "no ONNX function for prims.bessel_i0"),
]


@pytest.mark.parametrize(("compiler", "artefact", "stage", "reason"), REFUSED)
def test_the_compilers_own_words_make_it_unsupported(compiler, artefact, stage, reason, make, run):
    case, _ = make(artefact, "torch.i0", X)
    failed, error = run(compiler, case)
    assert (failed, compiler.FRONTENDS["torch"].unsupported(case, failed, error)) == (stage, reason)
    assert "i0" in compiler.FRONTENDS["torch"].conversion_function(case, error)


DEPENDS = "the shape of what aten._ctc_loss.default returns depends on data"


@pytest.mark.parametrize(
    ("compiler", "reason"), [(torchexport, DEPENDS), (onnxexport, DEPENDS), (inductor, "Dynamic shape operator")]
)
def test_what_depends_on_data_is_refused_by_the_exceptions_class(compiler, reason, make, run):
    losses = (torch.log_softmax(torch.zeros(4, 1, 5), 2), torch.tensor([[1, 2]]), (4,), (2,))
    case, _ = make("live", "torch.nn.functional.ctc_loss", *losses)
    failed, error = run(compiler, case)
    assert (failed, compiler.FRONTENDS["torch"].unsupported(case, failed, error)) == ("load", reason)


def test_what_torch_export_raises_by_itself_is_not_the_onnx_exporters(make, run):
    """`narrow` from a tensor on: torch.onnx.export is not asked before there is a program."""
    case, _ = make("live", "torch.narrow", X, 1, torch.tensor(1), 1)
    for compiler, whose in ((torchexport, culprit.COMPILER), (onnxexport, culprit.BEFORE)):
        frontend = compiler.FRONTENDS["torch"]
        stage, error = run(compiler, case)
        before = getattr(frontend, "BEFORE", ())
        packages, adapter = culprit.packages_of(compiler, frontend), culprit.adapter_of(frontend)
        assert (stage, culprit.blame(error, packages, adapter, (), before)) == ("load", whose)


@pytest.mark.parametrize(("compiler", "artefact"), [(tvm, "pt2"), (openvino, "pt2"), (onnxexport, "live")])
def test_what_pytorchs_decompositions_raise_is_not_the_compilers_that_asked(compiler, artefact, make, run):
    """`take` at an index of rank 0: its decomposition wants the number, which a program does not know."""
    case, _ = make(artefact, "torch.take", torch.tensor([1, 2]), torch.tensor(0))
    frontend = compiler.FRONTENDS["torch"]
    stage, error = run(compiler, case)
    packages, adapter = culprit.packages_of(compiler, frontend), culprit.adapter_of(frontend)
    assert stage == "load" and culprit.blame(error, packages, adapter, (), ()) == culprit.COMPILER
    assert culprit.blame(error, packages, adapter, (), frontend.BEFORE) == culprit.BEFORE
    found = judge.conclude(frontend, case, stage, Seen(judge.observed(error, ""), culprit.BEFORE, ()), error)
    assert (found.verdict, found.details({})) == (UNEXPORTED, {"asked": "torch.export"})


def test_pytorchs_decompositions_are_a_variant_of_torch_export(make, run):
    case, _ = make("live", "torch.take", torch.tensor([1, 2]), torch.tensor(0))
    assert run(torchexport, case)[0] == "done"
    stage, error = run(torchexport, msgspec.structs.replace(case, variant=torchexport.DECOMPOSED))
    assert stage == "load" and torchexport.FRONTENDS["torch"].unsupported(case, stage, error) is None
    case, _ = make("live", "torch.sub", X, X)
    assert run(torchexport, msgspec.structs.replace(case, variant=torchexport.DECOMPOSED))[0] == "done"


@pytest.mark.parametrize("compiler", [tvm, openvino])
def test_what_pytorch_cannot_decompose_is_no_crash_of_the_compiler(compiler, make, run):
    case, _ = make("pt2", "torch.geqrf", X)
    stage, error = run(compiler, case)
    assert stage == "load"
    told = compiler.FRONTENDS["torch"].unsupported(case, stage, error)
    assert told == "aten.geqrf.default has no implementation that computes only shapes"


@pytest.mark.parametrize(("compiler", "artefact"), [(tvm, "pt2"), (openvino, "pt2"), (openvino, "live")])
def test_complex_numbers_are_unsupported_and_no_crash_of_opera(compiler, artefact, make, run):
    case, _ = make(artefact, "torch.abs", torch.complex(X, X))
    stage, error = run(compiler, case)
    if artefact == "pt2":
        assert "complex" in str(compiler.FRONTENDS["torch"].unsupported(case, stage, error))
    else:  # convert_model fails on the type of its own table
        assert compiler.FRONTENDS["torch"].unsupported(case, stage, error) is None
        assert (
            compiler.FRONTENDS["torch"].conversion_function(case, error) == "cli_parser:single_input_to_input_cut_info"
        )


def test_onnx_pairs_are_complex_numbers_again(make, run):
    for operator, x in (
        ("torch.fft.fft", X),
        ("torch.mul", torch.complex(X, X)),
        ("torch.view_as_real", X * 1j),
    ):
        case, expected = make("live", operator, *([x, x] if operator == "torch.mul" else [x]))
        stage, outputs = run(onnxexport, case)
        assert stage == "done" and compare(expected, outputs, case.outputs, None, None).symptom == "", operator


def test_an_exported_file_is_told_as_text(make, run):
    case, _ = make("live", "torch.lerp", X.double(), X.double() + 3, 0.4)
    stage, found = run(onnxexport, msgspec.structs.replace(case, way=onnxexport.WRITTEN.name))
    assert stage == "compile" and isinstance(found, Read)
    text = str(found)
    assert "weight_0 = {0.4000000059604645}" in text and "diff = Sub (" in text, (
        "a weight of float32 for one of float64"
    )
    assert "producer" not in text and "[n" not in text and not any(x != x.rstrip() for x in text.splitlines())
    case, _ = make("live", "torch.nn.functional.multi_margin_loss", torch.ones(2, 3), torch.tensor([0, 1]))
    stage, found = run(onnxexport, msgspec.structs.replace(case, way=onnxexport.WRITTEN.name))
    assert stage == "compile" and isinstance(found, Refusal), "it is long"


CONVERTERS = [
    ("torch.cos", (X,), "base_fx_graph_translator:BaseFXGraphImporter._unary_op[cos.default]"),
    ("torch.sin", (X,), "base_fx_graph_translator:BaseFXGraphImporter._unary_op[sin.default]"),
    ("torch.mm", (X, X.T), "base_fx_graph_translator:BaseFXGraphImporter._binary_op[matmul(out_dtype='float32')]"),
    ("torch.outer", (X[0], X[1]), "base_fx_graph_translator:BaseFXGraphImporter._binary_op[mul.Tensor]"),
    ("torch.nn.functional.relu", (X,), "base_fx_graph_translator:BaseFXGraphImporter._unary_op[relu.default]"),
    ("torch.clone", (X,), "exported_program_translator:ExportedProgramImporter.create_convert_map[clone.default]"),
    ("torch.permute", (X, (1, 0)), "base_fx_graph_translator:BaseFXGraphImporter._permute"),
    ("torch.nn.functional.softmin", (X,), "expanded softmin"),
]


@pytest.mark.parametrize(("operator", "args", "converter"), CONVERTERS, ids=[row[0] for row in CONVERTERS])
def test_tvm_tells_closures_of_its_converter_map_apart(operator, args, converter, make):
    assert tvm.FRONTENDS["torch"].conversion_function(make("pt2", operator, *args)[0], None) == converter


def test_the_converter_that_raised_is_told(make, run):
    case, _ = make("pt2", "torch.sum", torch.tensor(3.0), 0)
    stage, error = run(tvm, case)
    assert stage == "load" and tvm.FRONTENDS["torch"].unsupported(case, stage, error) is None
    assert (
        tvm.FRONTENDS["torch"].conversion_function(case, error) == "base_fx_graph_translator:BaseFXGraphImporter._sum"
    )


def test_openvino_tells_operator_and_place_of_its_translators(make, run):
    case, _ = make("live", "torch.gather", X, 1, torch.tensor([[0]]))
    stage, error = run(openvino, case)
    assert stage == "load" and openvino.FRONTENDS["torch"].unsupported(case, stage, error) is None
    assert (
        openvino.FRONTENDS["torch"].conversion_function(case, error)
        == "aten::gather@gather_elements_shape_inference.hpp:56"
    )


def test_openvino_reports_no_conversion(make, run):
    """Each report is a process that it forks: with them a worker is six times slower."""
    assert run(openvino, make("pt2", "torch.cos", X)[0])[0] == "done"
    telemetry = pytest.importorskip("openvino_telemetry").Telemetry()
    assert telemetry.consent is False and telemetry.sender.queue_size == 0


@pytest.mark.full
def test_inductor_leaves_no_process_and_wants_a_compiler(make, run, monkeypatch):
    assert run(inductor, make("live", "torch.cos", X)[0])[0] == "done"
    assert not [x for task in Path("/proc/self/task").iterdir() for x in (task / "children").read_text().split()]
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    inductor._compiler.cache_clear()
    with pytest.raises(ImportError, match="needs a C\\+\\+ compiler"):
        inductor.version()
    inductor._compiler.cache_clear()


def test_a_failure_of_pytorchs_decomposition_is_told_as_such(make):
    program = torch.export.load(make("pt2", "torch.cos", X)[0].model)
    with pytest.raises(Exception, match="int") as caught:
        program.run_decompositions(5)
    assert torch_operators.decomposing(caught.value) == "torch.export:run_decompositions"
    assert torch_operators.decomposing(ValueError()) == "" == torch_operators.decomposing(None)


@pytest.mark.parametrize("name", ["executorch", "inductor", "litert", "torchexport", "onnxexport", "tvm", "openvino"])
def test_importing_the_module_imports_no_torch(name: str) -> None:
    code = f"import sys, opera.compilers.{name}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("aten.add.Tensor", "aten::add"), ("aten::add_", "aten::add"), ("aten._to_copy.default", "aten::_to_copy"),
        ("aten::__and__", "aten::__and__"), ("prim::ListConstruct", "prim::ListConstruct"), ("", ""),
    ],
)  # fmt: skip
def test_openvino_has_one_translator_for_what_differs_in_its_place_or_overload(operator, name):
    assert openvino.FRONTENDS["torch"].translator(operator) == name


def test_openvino_is_given_the_module_as_users_give_it(make, run):
    """What is saved and loaded as TorchScript loses the strides that `as_strided` asks for; what is traced keeps them."""
    case, expected = make("live", "torch.as_strided", torch.arange(6.0), (2, 2), (2, 1), 1)
    stage, outputs = run(openvino, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


def test_tracing_leaves_the_inputs_as_they_are(make, run):
    case, expected = make("live", "torch.Tensor.add_", torch.ones(3), 1.0)
    stage, outputs = run(openvino, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


def test_tvm_normalises_a_batch_in_the_mode_that_the_model_states(make, run):
    """An inference pass would take the running statistics, which a batch norm in training must not."""
    for training in (True, False):
        statistics = torch.zeros(3) + 0.5, torch.ones(3) * 2
        call = (X, *(None if training else x for x in statistics), None, None, training)
        case, expected = make("pt2", "torch.nn.functional.batch_norm", *call)
        stage, outputs = run(tvm, case)
        assert stage == "done", outputs
        assert compare(expected, outputs, case.outputs, None, None).symptom == "", training


def test_openvino_is_given_modules_in_the_mode_that_they_are_in():
    """Given the module itself, convert_model would put it into evaluation mode first."""
    from opera.compilers.recipes import openvino as runtime
    from opera.compilers.recipes import openvino_torch as recipe

    module, x = torch.nn.BatchNorm1d(2).train(), torch.tensor([[1.0, 2.0], [3.0, 8.0]])
    with torch.no_grad():
        loaded = recipe.load_traced(recipe.trace(module, (x,)), (x,), {"x": x})
        compiled, _ = runtime.compile_model(loaded)
        torch.testing.assert_close(torch.from_numpy(compiled([x.numpy()])[0]), copy.deepcopy(module)(x))


@pytest.mark.parametrize("way", sorted(onnxexport.ON))
def test_an_exported_file_is_run_by_others_that_read_onnx(way, make, run):
    case, expected = make("live", "torch.exp", X)
    stage, outputs = run(onnxexport, msgspec.structs.replace(case, way=way))
    assert stage == "done" and compare(expected, outputs, case.outputs, None, None).symptom == "", outputs


@pytest.mark.parametrize(
    ("operator", "args", "given", "told"),
    [
        ("torch.special.erfcx", (X,), {}, r"onnxscript/function_libs/torch_lib/ops/special\.py:\d+ aten_special_erfcx"),
        ("torch.repeat_interleave", (torch.tensor([1, 2]),), {"output_size": 3}, r"onnxscript/\S+ aten_repeat_\w+_Tensor"),
    ],
)  # fmt: skip
def test_which_function_translates_what_is_exported_is_known_where_it_raises_too(
    operator, args, given, told, make, run
):
    case, _ = make("live", operator, *args, **given)
    stage, error = run(onnxexport, msgspec.structs.replace(case, way=onnxexport.DECOMPOSED.name))
    assert stage == "load" and isinstance(error, Read) and re.fullmatch(told, str(error)), error


def test_what_the_exporter_s_optimiser_drops_is_there_without_it(make, run):
    """onnxscript takes what is added for a zero if it is within 1e-8 of that: `log(x + eps)` becomes `log(x)`."""
    given = (torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    case, expected = make("live", "torch.nn.functional.poisson_nll_loss", *given, log_input=False)
    for way, wrong in (("", True), (onnxexport.UNREWRITTEN.name, False)):
        stage, outputs = run(onnxexport, msgspec.structs.replace(case, way=way))
        assert stage == "done" and bool(compare(expected, outputs, case.outputs, None, None).symptom) is wrong, outputs


@pytest.mark.parametrize("artefact", ["pt2", "live"])
def test_what_no_type_inference_stops_is_right_as_numpy_has_it(artefact, make, run):
    """Reflection over an empty batch: OpenVINO asks of all axes whether they can be reflected."""
    case, expected = make(artefact, "torch.nn.functional.pad", torch.ones(0, 2, 3), (1, 1), mode="reflect")
    assert run(openvino, case)[0] == "load"
    stage, outputs = run(openvino, msgspec.structs.replace(case, way=SHAPELESS))
    assert stage == "done" and compare(expected, outputs, case.outputs, None, None).symptom == "", outputs
