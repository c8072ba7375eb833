"""A short script compares first what the finding names, expects no number that is drawn, and holds nothing without use."""

import subprocess
import sys

import msgspec
import numpy as np
import pytest

from opera.libraries.keras import library as keras
from opera.libraries.onnx import library
from opera.libraries.torch import library as torch
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, TIMEOUT, UNSTABLE
from opera.report import running
from opera.triage.reproducers import brief
from opera.triage.reproducers.reproducer import Exhibit
from opera.triage.reproducers.scripts import Trial


def made(folder, operator, inputs, outputs, expected=None, params=None, opset=21):
    operands = tuple(Operand(name, Tensor.of(value)) for name, value in inputs.items())
    instance = Instance("onnx", operator, params or {}, operands, outputs, {"opset": {"": opset}})
    seen = Provenance("by-hand", "test.py", "here")
    return library.wrap(Captured(instance, seen, expected), "t" * 20, folder), folder, instance


def exhibit(verdict=INCONSISTENT, symptom="value", output="a"):
    versions = {"onnxruntime": "1"}
    fields = {"artefact": "onnx", "verdict": verdict, "stage": "infer", "symptom": symptom, "message": "it differs"}
    return Exhibit("F01234567", "onnxruntime-onnx", "onnxruntime", versions, output=output, **fields)


def run(folder, text):
    (folder / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("operator", "more", "params", "dtype"),
    [("Split", {}, {"num_outputs": 2}, np.float32), ("TopK", {"k": np.array([1])}, {}, np.int64)],
)
@pytest.mark.parametrize("output", ["a", "b"])
def test_what_the_finding_names_is_compared_first(tmp_path, operator, more, params, dtype, output):
    """With one tolerance for all outputs, and with one of each."""
    wrong = (Tensor.of(np.array([5], np.float32)), Tensor.of(np.array([6], dtype)))
    told = made(tmp_path, operator, {"x": np.array([1.0, 2.0], np.float32), **more}, ("a", "b"), wrong, params)
    code, said = run(tmp_path, brief.brief(exhibit(output=output), *told).script(exhibit(output=output)))
    first = next(line for line in said.splitlines() if ": got" in line)
    assert code == 1 and first.startswith(f"{output}: got"), said


def test_of_a_random_program_only_the_form_is_expected(tmp_path):
    fed = {"data": np.array([1.37], np.float32), "ratio": np.array(0.5, np.float32), "training_mode": np.array(True)}
    told = made(tmp_path, "Dropout", fed, ("y", "mask"))
    assert brief.brief(exhibit(output="y"), *told) is None  # 0 and 2.74 are right, and so is each of them alone
    shown = exhibit(symptom="dtype", output="mask")
    text = brief.brief(shown, *told).script(shown)
    assert "2.74" not in text and "('bool', [1])" in text and "expected = " not in text
    assert run(tmp_path, text)[0] == 0
    assert run(tmp_path, text.replace("('bool', [1])", "('float32', [1])"))[0] == 1


def test_the_script_of_a_crash_has_no_use_for_what_is_expected_where_that_is_long(tmp_path):
    numbers = np.random.default_rng(0).random(600).astype(np.float32)
    told = made(tmp_path, "Expand", {"x": numbers[:2], "shape": np.array([2])}, ("y",), (Tensor.of(numbers),))
    shown = exhibit(CRASH, "RuntimeError")
    assert brief.brief(shown, *told, folder="folder").helpers  # an exported test states what is expected
    made_of = brief.brief(shown, *told)
    assert not made_of.helpers and "base64" not in made_of.script(shown)


@pytest.mark.parametrize("numbers", [[-1.0, 2.0], [1.0, 2.5], [[-1.0, 2.5]]])
def test_what_stops_is_to_give_what_is_expected_once_it_runs(tmp_path, numbers):
    """Half of a mend may end no more, and compute something else."""
    expected = (Tensor.of(np.array(numbers, np.float32)),)
    told = made(tmp_path, "Neg", {"x": np.array([1.0, -2.5], np.float32)}, ("y",), expected)
    shown = exhibit(CRASH, "RuntimeError")
    text = brief.brief(shown, *told).script(shown)
    code, said = run(tmp_path, text)
    assert code == 1 and "AssertionError" in said, said
    hides = msgspec.structs.replace(
        shown, hides=True
    )  # what is like it gives wrong outputs: that is to be filed by itself
    assert "expected" not in brief.brief(hides, *told).script(hides)
    right = text.replace(str(numbers), str([-1.0, 2.5]))
    assert right != text and run(tmp_path, right)[0] == 0


@pytest.mark.parametrize(
    ("law", "code"),
    [
        ({"drawn": "constant"}, 0),
        ({"drawn": "range", "drawn_low": 0.0, "drawn_high": 1.0}, 0),
        ({"drawn": "range", "drawn_low": 0.0, "drawn_high": 0.2}, 1),
        ({"drawn": "share", "drawn_element": "[0]", "drawn_at": 0.5, "drawn_share": 0.5, "drawn_slack": 0.4}, 0),
        ({"drawn": "share", "drawn_element": "[0]", "drawn_at": 0.0, "drawn_share": 0.9, "drawn_slack": 0.4}, 1),
        ({"drawn": "share", "drawn_how": "<", "drawn_at": 0.0, "drawn_share": 0.5, "drawn_slack": 0.25}, 1),
        ({"drawn": "share", "drawn_how": "mean", "drawn_share": 0.5, "drawn_slack": 0.3}, 0),
        ({"drawn": "share", "drawn_how": "std", "drawn_share": 1.0, "drawn_slack": 0.3}, 1),
        ({"drawn": "seed"}, 0),
    ],
)
def test_what_is_drawn_is_held_against_its_law(tmp_path, law, code):
    """ONNX Runtime draws from 0 to 1, as it should; chance makes it fail less often than once in a million times."""
    told = made(tmp_path, "RandomUniformLike", {"x": np.array([1.37], np.float32)}, ("y",))
    shown = msgspec.structs.replace(exhibit(output="y"), drawn={"drawn_place": 0, **law})
    found, said = run(tmp_path, brief.brief(shown, *told).script(shown))
    assert found == code, said
    assert running.fails_so(shown, Trial("F01234567", found, said)) is bool(code)


def test_another_number_of_outputs_is_shown_in_few_lines(tmp_path):
    """OpenVINO returns none of `zeros_like`, which TensorFlow folds to a constant: it took 149 lines to say so."""
    told = made(tmp_path, "Abs", {"x": np.array([-1.0], np.float32)}, ("y",), (Tensor.of(np.array([1.0], np.float32)),))
    shown = exhibit(INCONSISTENT, "count")
    text = brief.brief(shown, *told).script(shown)
    assert "expected = " not in text
    for script, code in ((text, 0), (text.replace("print(", "outputs = []\nprint(", 1), 1)):
        found, said = run(tmp_path, script)
        assert found == code, said
        assert running.fails_so(shown, Trial("F01234567", found, said)) is bool(code)


def test_a_function_body_is_run_and_shown_without_a_compiler(tmp_path):
    """Bernoulli's of onnx 1.23 compares the wrong way round."""
    told = made(tmp_path, "Bernoulli", {"input": np.zeros(1, np.float32)}, ("y",), opset=15)
    shown = msgspec.structs.replace(exhibit(output="y"), frontend="body-onnx")
    text = brief.brief(shown, *told).script(shown)
    code, said = run(tmp_path, text)
    assert "onnxruntime" not in text and "RandomUniformLike" not in text
    assert (code, running.fails_so(shown, Trial("F01234567", code, said))) == (1, True), said
    log = running.excerpt(said)
    assert "RandomUniformLike" in log and "Greater" in log and "y: expected float32[1] [0.0]" in log, log


def test_what_nobody_writes_is_shown_in_memory_that_is_filled(tmp_path):
    """The script fills its own memory; ONNX Runtime is right, unless what is expected is not."""
    for expected, code in ((1.0, 0), (2.0, 1)):
        wanted = (Tensor.of(np.array([expected], np.float32)),)
        told = made(tmp_path, "Abs", {"x": np.array([-1.0], np.float32)}, ("y",), wanted)
        shown = exhibit(UNSTABLE, "unstable", output="y")
        text = brief.brief(shown, *told).script(shown)
        found, said = run(tmp_path, text.replace("feeds =", 'print("with", os.environ["MALLOC_PERTURB_"])\nfeeds ='))
        assert found == code and "with 170" in said, said
        assert running.fails_so(shown, Trial("F01234567", found, said)) is bool(code)


@pytest.mark.full
@pytest.mark.parametrize("frontend", ["mnn-keras", "tvm-keras"])
def test_a_keras_model_is_held_against_the_interpreter_of_its_tflite_file(tmp_path, frontend):
    """They agree on a Dense layer; a wrong kernel is what the script says."""
    operands = (Operand("x", Tensor.of(np.array([[1.0, 2.0]], np.float32))),)
    call = {"args": ["x"], "kwargs": []}
    instance = Instance(
        "keras", "keras.layers.Dense", {"units": 3}, operands, (), {"call": call, "config": "constructor"}
    )
    manifest = keras.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
    shown = msgspec.structs.replace(
        exhibit(output=manifest.outputs[0]),
        frontend=frontend,
        compiler=frontend[:3],
        artefact="tflite",
        variant="tflite",
    )
    text = brief.brief(shown, manifest, tmp_path, instance).script(shown)
    assert "expected = [" not in text and len(text.splitlines()) <= 50
    code, said = run(tmp_path, text)
    assert code == 0, said
    code, said = run(tmp_path, text.replace("\n# what TFLite", "\noutputs = [outputs[0] + 1]\n# what TFLite"))
    assert running.fails_so(shown, Trial("F01234567", code, said)), said


@pytest.mark.full
@pytest.mark.parametrize(("frontend", "artefact"), [("openvino-torch", "pt2"), ("tvm-torch", "pt2")])
def test_bfloat16_is_fed_and_compared_in_few_lines(tmp_path, frontend, artefact):
    operands = (Operand("x", Tensor(dtype="bfloat16", shape=(2,), data=np.uint16([0x3F80, 0x4000]).tobytes())),)
    instance = Instance("torch", "torch.neg", {}, operands, (), {"call": {"args": ["x"], "kwargs": []}})
    manifest = torch.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
    shown = msgspec.structs.replace(
        exhibit(output=manifest.outputs[0]), frontend=frontend, compiler=frontend[:-6], artefact=artefact
    )
    text = brief.brief(shown, manifest, tmp_path, instance).script(shown)
    assert len(text.splitlines()) <= 50
    code, said = run(tmp_path, text)
    assert code == 0 and "bfloat16[2] [-1.0, -2.0]" in said, said
    code, said = run(tmp_path, text.replace("for name, got", "outputs = [outputs[0] + outputs[0]]\nfor name, got"))
    assert running.fails_so(shown, Trial("F01234567", code, said)), said


@pytest.mark.parametrize("compiler", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(("expected", "code"), [([b"b", b"a"], 0), ([b"a", b"b"], 1)])
def test_strings_are_fed_and_compared(tmp_path, compiler, expected, code):
    pytest.importorskip(compiler)
    wanted = np.empty(2, dtype=object)
    wanted[:] = expected
    fed = {"data": np.array([b"a", b"b"], dtype=object), "indices": np.array([1, 0])}
    told = made(tmp_path, "Gather", fed, ("y",), (Tensor.of(wanted, "string"),))
    shown = msgspec.structs.replace(exhibit(output="y"), frontend=f"{compiler}-onnx", compiler=compiler)
    ended, said = run(tmp_path, brief.brief(shown, *told).script(shown))
    assert ended == code, said


def test_a_script_that_does_not_end_says_where_and_exits_with_1(tmp_path):
    told = made(tmp_path, "Abs", {"x": np.float32([1])}, ("y",))
    shown = exhibit(TIMEOUT, "timeout", "")
    text = brief.brief(shown, *told).script(shown)
    assert "faulthandler.dump_traceback_later(15, exit=True)" in text
    endless = text.replace("later(15,", "later(1,").replace(
        "session.run(", "(lambda *_: [None for _ in iter(int, 1)])("
    )
    code, said = run(tmp_path, endless)
    assert running.fails_so(shown, Trial("F", code, said)) and running.excerpt(said).startswith("Timeout (0:00:01)!")
    assert not running.fails_so(shown, Trial("F", *run(tmp_path, text)))


def test_a_model_may_be_imported_with_its_constants_as_inputs_where_it_fails_so_alone(tmp_path):
    assert brief.keeps("tvm-onnx") and not brief.keeps("onnxruntime-onnx") and not brief.keeps("no-such")
    told = made(tmp_path, "Abs", {"x": np.float32([1])}, ("y",))
    shown = msgspec.structs.replace(exhibit(CRASH, "ValueError", ""), frontend="tvm-onnx", compiler="tvm")
    plain, kept = (brief.brief(shown, *told, kept=x).script(shown) for x in (False, True))
    assert "keep_params" not in plain and "model.graph.input])\n" in plain
    assert "keep_params_in_input=True" in kept and '*params.get("main", ()))' in kept and "detach_params" in kept
    compile(kept, "script.py", "exec")


def test_a_nan_of_any_bits_is_expected_as_nan(tmp_path):
    """The evaluator's logarithm of -1 is a negative NaN, which took a line of base64 in a script."""
    bits = np.array([0xFFC00000, 0x3F800000], np.uint32).view(np.float32)
    told = made(tmp_path, "Log", {"x": np.float32([-1, np.e])}, ("y",), (Tensor.of(bits),))
    text = brief.brief(exhibit(output="y"), *told).script(exhibit(output="y"))
    assert "np.nan" in text and "unpack(" not in text
