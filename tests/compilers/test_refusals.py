"""The tables of refusals: every row has an example that it decides itself, and that is concluded as the row says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opera.compilers import (
    executorch,
    inductor,
    iree,
    litert,
    mnn,
    onnxexport,
    onnxruntime,
    opencv,
    tflite,
    torchexport,
    tract,
    xla,
)  # fmt: skip
from opera.compilers.openvino import compiler as openvino
from opera.compilers.shared import messages
from opera.compilers.shared.messages import Claimed, Rule
from opera.compilers.tensorrt import compiler as tensorrt
from opera.compilers.tvm import compiler as tvm
from opera.programs.case import remembered
from opera.programs.verdicts import CRASH, REFUSED, UNSUPPORTED, Raised, Seen
from opera.run import culprit, judge

FILES = sorted(messages.file_of("tvm").parent.glob("*.toml"))
READ = {
    ("iree", "onnx"): (iree, "onnx", "onnx", ()),
    ("executorch", "exporter"): (executorch, "torch", "pt2", ()),
    ("executorch", "runtime"): (executorch, "torch", "pt2", ("exporter",)),
    ("litert", "converter"): (litert, "torch", "live", ()),
    ("litert", "interpreter"): (litert, "torch", "live", ("converter",)),
    ("mnn", "converter"): (mnn, "onnx", "onnx", ()),
    ("mnn", "module"): (mnn, "onnx", "onnx", ("converter",)),
    ("onnxruntime", "reader"): (onnxruntime, "onnx", "onnx", ()),
    ("opencv", "onnx"): (opencv, "onnx", "onnx", ()),
    ("openvino", "core"): (openvino, "onnx", "onnx", ()),
    ("openvino", "tensorflow"): (openvino, "keras", "saved_model", ("core",)),
    ("openvino", "pytorch"): (openvino, "torch", "pt2", ("core",)),
    ("tract", "onnx"): (tract, "onnx", "onnx", ()),
    ("tvm", "onnx"): (tvm, "onnx", "onnx", ()),
    ("tvm", "pytorch"): (tvm, "torch", "pt2", ()),
    ("tvm", "tflite"): (tvm, "keras", "tflite", ()),
    ("tvm", "every"): (tvm, "torch", "pt2", ("pytorch",)),
    ("tvm", "classes"): (tvm, "keras", "tflite", ("tflite", "every")),
    ("torch", "classes"): (torchexport, "torch", "live", ()),
    ("torch", "export"): (torchexport, "torch", "live", ()),
    ("torch", "inductor"): (inductor, "torch", "live", ()),
    ("onnxexport", "exporter"): (onnxexport, "torch", "live", ()),
    ("tensorrt", "parser"): (tensorrt, "onnx", "onnx", ()),
    ("tensorrt", "builder"): (tensorrt, "onnx", "onnx", ("parser",)),
    ("tensorrt", "torch"): (tensorrt, "torch", "pt2", ()),
    ("tensorflow", "tflite"): (tflite, "keras", "live", ()),
    ("tensorflow", "xla"): (xla, "keras", "live", ()),
}
"""(file, part) → who reads it: compiler, library, artefact, and the parts that are asked before it."""
ROWS = [
    pytest.param(file.stem, part, place, id=f"{file.stem}-{part}-{place}")
    for file in FILES
    for part, rules in messages.read(file).items()
    for place in range(len(rules))
]


def raised(rule: Rule) -> Seen:
    """Return what is seen of an exception that says a row's example, of a class that the row is for."""
    named = rule.exception.replace("\\.", ".").replace(".*", "inner").replace("(?:", "").partition("|")[0].rstrip(")")
    kinds = (named or "compiler:CompilerError", "builtins:Exception", "builtins:BaseException")
    if named == "builtins:KeyError":
        kinds = (named, "builtins:LookupError", *kinds[1:])
    return Seen((Raised(kinds, rule.example),), culprit.COMPILER)


@pytest.mark.parametrize(("file", "part", "place"), ROWS)
def test_a_row_decides_its_own_example(file: str, part: str, place: int) -> None:
    compiler, library, artefact, before = READ[file, part]
    rules = messages.table(file, part)
    rule = rules[place]
    seen, stage = raised(rule), rule.stage or "compile"
    error = judge.restored(seen.raised)
    asked = (*messages.table(file, *before), *rules)
    assert next(x for x in asked if x.fits(stage, error)) is rule
    assert rule.why and rule.example and rule.reason
    case = remembered(library, "Foo", "", artefact)
    found = judge.conclude(compiler.FRONTENDS[library], case, stage, seen)
    told = messages.reason(rule, rule.fits(stage, error))  # type: ignore[arg-type]
    if rule.kind == messages.CLAIMED:
        assert (found.verdict, found.message, found.claimed) == (REFUSED, rule.example, told)
    else:
        assert (found.verdict, found.message, found.claimed) == (UNSUPPORTED, told, "")
    if rule.kind in (messages.NEEDS_CONSTANT, messages.MACHINE):
        assert told.startswith(f"{rule.kind}: ")


def test_every_part_is_read_by_somebody() -> None:
    assert set(READ) == {(file.stem, part) for file in FILES for part in messages.read(file)}


@pytest.mark.parametrize(
    "text",
    [
        "Binary operators must have the same datatype for both operands.",
        "Check failed: (IsFloatType(x.ty())) is false: power only applies to float",
        "'Var' object has no attribute 'values'",
        "'axis'",
        "Missing outputs during conversion. Expected 2 but Got 1 in MaxPool.",
        "TensorCopyFromBytes failed",
    ],
)
def test_what_says_nothing_of_support_is_a_crash(text: str) -> None:
    kind = "builtins:KeyError" if text == "'axis'" else "tvm:Error"
    seen = Seen((Raised((kind, "builtins:Exception"), text),), culprit.COMPILER)
    found = judge.conclude(tvm.FRONTENDS["onnx"], remembered("onnx", "Foo", "", "onnx"), "load", seen)
    assert found.verdict == CRASH


MARKED = """-- IRFFT with a message:
While validating node 'opset9::IRDFT IRDFT_25 (opset1::{made}[0]:f64[2,10,5,2], opset4::Range Range_20[0]:i32[1]) -> (dynamic[...])' with friendly_name 'IRDFT_25':
FFT op input element type must be f32, f16, or bf16

Summary:
-- No conversion rule found for operations: {unknown}
-- Conversion is failed for: IRFFT
"""  # noqa: E501


@pytest.mark.parametrize(
    ("made", "unknown", "verdict"),
    [
        ("Convert Convert_10", "ComplexTypeMark", CRASH),  # of a model in float32
        ("Concat Concat_15", "ComplexTypeMark", UNSUPPORTED),  # of one in float64
        ("Parameter x", "ComplexTypeMark", UNSUPPORTED),
        ("Convert Convert_10", "AsString", UNSUPPORTED),
    ],
)
def test_what_a_translator_made_is_no_limit_of_the_models_types(made: str, unknown: str, verdict: str) -> None:
    text = MARKED.format(made=made, unknown=unknown)
    seen = Seen((Raised(("openvino:OpConversionFailure", "builtins:Exception"), text),), culprit.COMPILER)
    found = judge.conclude(openvino.FRONTENDS["keras"], remembered("keras", "Foo", "", "live"), "load", seen)
    assert found.verdict == verdict


@pytest.mark.parametrize("left", ["torch::None", "prim::ListConstruct", ""])
def test_what_is_left_over_of_an_operator_that_failed_names_no_other(left: str) -> None:
    """OpenVINO's `cdist` of float64 was another failure where its None was told beside it."""
    more = f"-- {left} with a message:\nNone constant cannot be converted to OpenVINO opset.\n" if left else ""
    failed = "-- aten._cdist_forward.default with a message:\nCheck failed at src/core/src/op/util/elementwise_args.cpp:18:\n"
    error = RuntimeError(f"Model wasn't fully converted. Failed operations detailed log:\n{failed}{more}Summary:\n")
    case = remembered("torch", "torch.cdist", "exported-program", "pt2")
    told = openvino.FRONTENDS["torch"].conversion_function(case, error)
    assert told == "aten::_cdist_forward@elementwise_args.cpp:18"


@pytest.mark.parametrize(
    ("while_executing", "verdict"),
    [
        ("", UNSUPPORTED),
        (
            "\n\nWhile executing %bucketize : [num_users=1] = call_function[target=torch.ops.aten.bucketize.Tensor]",
            CRASH,
        ),
    ],
)
def test_a_graph_that_was_captured_depends_on_no_data(while_executing: str, verdict: str) -> None:
    outer = Raised(("torch.onnx:ConversionError", "builtins:Exception"), "Failed to decompose the FX graph")
    kinds = ("torch.fx.experimental.symbolic_shapes:GuardOnDataDependentSymNode", "builtins:Exception")
    inner = Raised(kinds, f"Could not extract specialized integer from data-dependent expression u0{while_executing}")
    case = remembered("torch", "torch.bucketize", "live", "live")
    found = judge.conclude(onnxexport.FRONTENDS["torch"], case, "load", Seen((outer, inner), culprit.COMPILER))
    assert found.verdict == verdict


@pytest.mark.parametrize(("left_out", "verdict"), [("NullNode", CRASH), ("Unsqueeze", UNSUPPORTED)])
def test_what_an_importer_puts_for_an_input_that_is_left_out_is_no_operation_of_the_models(
    left_out: str, verdict: str
) -> None:
    text = f"Unexpected: CPU plug-in doesn't support {left_out} operation with dynamic rank. Operation name: x_4"
    seen = Seen((Raised(("builtins:RuntimeError", "builtins:Exception"), text),), culprit.COMPILER)
    found = judge.conclude(openvino.FRONTENDS["onnx"], remembered("onnx", "Foo", "", "onnx"), "compile", seen)
    assert found.verdict == verdict


def test_what_an_adapter_itself_claims_is_no_finding() -> None:
    class Claims:
        def unsupported(self, *_: Any) -> str:
            return Claimed("declares it")

    seen = Seen((Raised(("builtins:RuntimeError", "builtins:Exception"), "no"),), culprit.OPERA)
    case = remembered("onnx", "Foo", "", "onnx")
    refused: Any = Claims()
    assert judge.conclude(refused, case, "load", seen).verdict != REFUSED
    theirs = judge.conclude(refused, case, "load", Seen(seen.raised, culprit.COMPILER))
    assert (theirs.verdict, theirs.claimed) == (REFUSED, "declares it")
    before = {"tags": ["x"], "claimed": "before", "omission": "before"}
    assert theirs.details(before) == {"tags": ["x"], "claimed": "declares it"}


@pytest.mark.parametrize("together", [True, False])
def test_what_several_operators_of_one_omission_have_in_common_is_their_rule(together: bool) -> None:
    rule = messages.Rule("no ([A-Z]+)", "lists \\1", kind="claimed", together=together)
    said = {messages.unsupported((rule,), "load", RuntimeError(f"no {x}")) for x in ("A", "B")}
    assert said == {"lists A", "lists B"}
    assert {x.omission for x in said if isinstance(x, Claimed)} == {"lists \\1" if together else ""}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[[part]]\npattern = "x"\nkind = "whim"\n', "unknown kinds: whim"),
        ('[[part]]\npatern = "x"\n', "patern"),
    ],
)
def test_a_table_that_is_wrong_is_told(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "words.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=error):
        messages.read(file)
