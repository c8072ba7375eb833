"""Reproducers fail while the failure is there, pass once it is gone, and hold no code that came from a value."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from opera.libraries.onnx import library
from opera.oracle import draws
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Message, Sequence, Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED, TIMEOUT, UNSTABLE, Limits
from opera.triage.reproducers import reproducer

TESTS = Path(__file__).parents[1]
PATH = os.pathsep.join([str(TESTS), str(TESTS.parent)])
NASTY = [
    '"""; import os',
    "'''",
    "\\",
    "a\nimport os\n#",
    "{{ 7 * 7 }}",
    "__import__('os')",
    "\u2028x",
    "\x00",
    "class",
    "name",
]


def f32(*items):
    return np.array(items, dtype=np.float32)


def made(folder, operator, inputs, params=None, outputs=("y",), expected=None, opset=21):
    operands = tuple(Operand(name, Tensor.of(x) if isinstance(x, np.ndarray) else x) for name, x in inputs)
    instance = Instance("onnx", operator, params or {}, operands, outputs, {"opset": {"": opset}})
    seen = Provenance("by-hand", "test.py", "here")
    return library.wrap(Captured(instance, seen, expected), "t" * 20, folder), instance


def exhibit(compiler="onnxruntime", verdict=INCONSISTENT, **fields):
    base = {"stage": "infer", "symptom": "value", "message": "output 'y' differs", "came_from": "test.py::here"}
    return reproducer.Exhibit(
        "F01234567",
        f"{compiler}-onnx",
        compiler,
        {compiler: "1"},
        fields.pop("artefact", "onnx"),
        verdict,
        **base | fields,
    )


def run(tmp_path, shown, manifest, instance):
    path = tmp_path / "out" / "F01234567.py"
    reproducer.write(shown, manifest, tmp_path, instance, path)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path / "out")
    return done.returncode, done.stdout + done.stderr, path.read_text()


@pytest.mark.parametrize("compiler", ["onnxruntime", "openvino", pytest.param("tvm", marks=pytest.mark.full)])
def test_a_planted_wrong_expectation_is_shown_and_a_right_one_is_gone(tmp_path, compiler):
    inputs = [("input", f32(0, 1))]
    manifest, instance = made(tmp_path, "Exp", inputs, expected=(Tensor.of(f32(1, 3)),))
    code, output, script = run(tmp_path, exhibit(compiler), manifest, instance)
    assert code == 1, output
    assert "2.718" in output and "the failure is there" in output
    assert "import opera" not in script and "from opera" not in script
    assert script.partition("# ---- the rest")[0].count("\n") < 40
    manifest, instance = made(tmp_path, "Exp", inputs)
    code, output, _ = run(tmp_path, exhibit(compiler), manifest, instance)
    assert code == 0 and "gone" in output, output


def test_the_constants_of_a_variant_are_in_the_model(tmp_path):
    inputs = [("data", f32(1, 2, 3, 4)), ("shape", np.array([2, 2]))]
    manifest, instance = made(tmp_path, "Reshape", inputs, outputs=("reshaped",))
    code, output, script = run(tmp_path, exhibit(artefact="onnx-constants"), manifest, instance)
    assert code == 0, output
    assert "numpy_helper.from_array(" in script


@pytest.mark.parametrize("symptom", ["shape", "dtype", "strings", "sequence", "bfloat16", "int4", "large"])
def test_every_kind_of_output_is_compared(tmp_path, symptom):
    expected = {"shape": f32([1]), "dtype": np.array([1.0])}.get(symptom)
    value = {
        "strings": Tensor.of(np.array(["a", "ü"], dtype=object)),
        "sequence": Sequence("float32", (Tensor.of(f32(1)), Tensor.of(f32(1, 2)))),
        "bfloat16": Tensor.of(np.array([0x3F80, 0x4000], np.uint16), "bfloat16"),
        "int4": Tensor.of(np.array([-8, -1, 7], np.int8), "int4"),
        "large": Tensor.of(np.linspace(0, 1, 3000, dtype=np.float32)),
    }.get(symptom, Tensor.of(f32(1)))
    operator, fed, params = "Identity", value, {}
    if symptom == "int4":  # ONNX Runtime has no Identity of int4
        operator, fed, params = "Cast", f32(-8, -1, 7), {"to": TensorProto.INT4}
    right, instance = made(tmp_path, operator, [("input", fed)], params, outputs=("output",), expected=(value,))
    code, output, _ = run(tmp_path, exhibit(), right, instance)
    assert code == 0 and "as expected" in output, output
    if expected is None:
        wrong = {
            "strings": Tensor.of(np.array(["a", "u"], dtype=object)),
            "sequence": Sequence("float32", (Tensor.of(f32(1)), Tensor.of(f32(1, 3)))),
            "bfloat16": Tensor.of(np.array([0x3F80, 0x4080], np.uint16), "bfloat16"),
            "int4": Tensor.of(np.array([-8, -1, 6], np.int8), "int4"),
            "large": Tensor.of(np.linspace(0, 1.1, 3000, dtype=np.float32)),
        }[symptom]
    else:
        wrong = Tensor.of(expected)
    types = (Message("onnx.TypeProto", library.onnx_values.type_proto(value).SerializeToString()),)
    context = instance.context | {"output_types": list(types)}
    odd = Instance("onnx", operator, params, instance.inputs, instance.outputs, context)
    manifest = library.wrap(Captured(odd, Provenance("s", "f", "t"), (wrong,)), "t" * 20, tmp_path)
    own = symptom if symptom in ("shape", "dtype") else "value"
    code, output, _ = run(tmp_path, exhibit(symptom=own, output="output"), manifest, odd)
    assert code == 1 and "the failure is there" in output, output


def test_a_crash_is_known_by_its_type_stage_and_words(tmp_path):
    expected = (Tensor.of(f32(1)),)
    inputs = [("data", f32(1, 2)), ("indices", np.array([7]))]
    manifest, instance = made(tmp_path, "Gather", inputs, outputs=("output",), expected=expected)
    message = "indices element out of data bounds, idx=7 must be within the inclusive range [-2,1]"
    crash = {"verdict": CRASH, "symptom": "InvalidArgument", "message": message}
    code, output, _ = run(tmp_path, exhibit(**crash), manifest, instance)
    assert code == 1 and "the failure is there" in output, output
    for other in ({"symptom": "TypeError"}, {"stage": "load"}, {"message": "something else entirely went wrong"}):
        code, output, _ = run(tmp_path, exhibit(**crash | other), manifest, instance)
        assert code == 2 and "another failure" in output, output
    refused = exhibit(**crash | {"verdict": REFUSED})
    code, output, _ = run(tmp_path, refused, manifest, instance)
    assert code == 1 and "the failure is there" in output, output


def test_a_death_is_seen_from_outside(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))])
    script = reproducer.render(exhibit(verdict=ABORT, symptom="SIGABRT"), manifest, tmp_path, instance)
    hung = reproducer.render(exhibit(verdict=TIMEOUT, limits=Limits(20, 1)), manifest, tmp_path, instance)
    dying = script.replace("def run(session", "def run(*_):\n    os.abort()\n\n\ndef old(session")
    hanging = hung.replace("def run(session", "def run(*_):\n    __import__('time').sleep(3600)\n\n\ndef old(session")
    for text, code, words in (
        (script, 0, "gone"),
        (dying, 1, "SIGABRT"),
        (dying.replace("os.abort()", "os.kill(os.getpid(), signal.SIGSEGV)"), 1, "SIGSEGV"),
        (dying.replace("os.abort()", "os.kill(os.getpid(), signal.SIGTERM)"), 2, "another failure"),
        (
            dying.replace("os.abort()", "os._exit(3)"),
            2,
            "another failure than the one reported: the process died, exit 3",
        ),
        (hanging, 1, "no end after 20"),
    ):
        path = tmp_path / "death.py"
        path.write_text(text)
        done = subprocess.run([sys.executable, path], capture_output=True, text=True)
        assert done.returncode == code and words in done.stdout, done.stdout + done.stderr


def test_a_wrong_output_of_another_kind_is_another_failure(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))], expected=(Tensor.of(f32(1, 3)),))
    for symptom, output, code in (("value", "y", 1), ("shape", "y", 2), ("nan-mask", "y", 2), ("value", "", 1)):
        seen, text, _ = run(tmp_path, exhibit(symptom=symptom, output=output), manifest, instance)
        assert seen == code and "not 3.0" in text, text
    assert "with onnxruntime" not in text.partition("Python")[2]


def test_few_words_are_no_proof_without_the_place(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))])
    crash = {"verdict": CRASH, "stage": "load", "symptom": "KeyError", "message": "'x'"}
    script = reproducer.render(exhibit(**crash, location="wrong.py:convert"), manifest, tmp_path, instance)
    for name, code in (("wrong.py", 1), ("other.py", 2)):
        (tmp_path / name).write_text("def convert(path):\n    raise KeyError('x')\n")
        planted = script.replace("def main():", f"from {name[:-3]} import convert as load\n\n\ndef main():")
        (tmp_path / "crash.py").write_text(planted)
        done = subprocess.run([sys.executable, tmp_path / "crash.py"], capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr


def test_outputs_that_differ_from_run_to_run_are_shown(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))])
    script = reproducer.render(exhibit(verdict=UNSTABLE, symptom="value"), manifest, tmp_path, instance)
    garbage = "def main():\n    global attempt\n    attempt = lambda: ('', [np.full(2, os.getpid(), np.float32)])\n"
    for text, code, words in ((script, 0, "gone"), (script.replace("def main():\n", garbage), 1, "from run to run")):
        (tmp_path / "unstable.py").write_text(text)
        done = subprocess.run([sys.executable, tmp_path / "unstable.py"], capture_output=True, text=True)
        assert done.returncode == code and words in done.stdout, done.stdout + done.stderr


def test_a_missing_compiler_is_neither_there_nor_gone(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))])
    script = reproducer.render(exhibit(), manifest, tmp_path, instance)
    path = tmp_path / "missing.py"
    path.write_text(script.replace("import onnxruntime", "import onnxruntime_that_is_not_there"))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 2 and "cannot be tried" in done.stdout


def test_a_compiler_without_a_recipe_is_run_through_its_plugin(tmp_path):
    manifest, instance = made(tmp_path, "Exp", [("input", f32(0, 1))])
    script = reproducer.render(exhibit("faults.onnx_faults:right"), manifest, tmp_path, instance)
    assert "opera has to be installed" in script and "by_plugin.Plugin('faults.onnx_faults:right', 'onnx'" in script
    path = tmp_path / "plugin.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PATH})
    assert done.returncode == 0, done.stdout + done.stderr


def names(script):
    return {node.id for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Name)}


def imports(script):
    found = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


@given(st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=30)), min_size=7, max_size=7))
@settings(max_examples=40, deadline=None)
def test_nothing_that_a_value_holds_becomes_code(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("nasty")
    one, other, attr, text, value, seen, message = (x.encode("utf-8", "replace").decode() for x in texts)
    one, other, attr = one + "1", other + "2", attr + "3"
    node = helper.make_node("Identity", [one], [other], name=text)
    info = [helper.make_tensor_value_info(x, TensorProto.STRING, [1]) for x in (one, other)]
    node.attribute.append(helper.make_attribute(attr, value))
    body = helper.make_graph([node], text or "g", info[:1], info[1:])
    plain = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "g", *[[x] for x in info])
    plain.input[0].name, plain.output[0].name = "a", "b"

    def script(graph, fed, where, said):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        data = Tensor.of(np.array([fed], dtype=object))
        a, b = graph.input[0].name, graph.output[0].name
        manifest = library.Manifest(
            "t", "i", "onnx", "Identity" if graph is plain else text, {}, (a,), (b,),
            {"onnx": library.Artefact("model.onnx", (a,))},
        )  # fmt: skip
        library.migrated.write(folder, manifest, [data], [data], {"model.onnx": model.SerializeToString()})
        instance = Instance("onnx", manifest.operator, {}, (), (b,), {})
        shown = exhibit(verdict=CRASH, came_from=where, message=said, symptom=said or "x")
        return model, reproducer.render(shown, manifest, folder, instance)

    _, harmless = script(plain, "x", "y", "z")
    model, hostile = script(body, value, seen, message)
    assert names(hostile) <= names(harmless) | {"with_attributes", "node", "attributes"}
    assert imports(hostile) == imports(harmless)
    assert hostile.isascii()
    assert evaluated_model(hostile).graph == onnx.ModelProto.FromString(model.SerializeToString()).graph


def evaluated_model(script):
    """Build the model of a script without running anything else of it."""
    (assigned,) = [
        node for node in ast.parse(script).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "MODEL"
    ]  # fmt: skip

    def with_attributes(node, *attributes):
        node.attribute.extend(attributes)
        return node

    scope = {"helper": helper, "TensorProto": TensorProto, "with_attributes": with_attributes, "np": np}
    return eval(compile(ast.Expression(assigned.value), "script", "eval"), scope)


FULL = pytest.mark.full
DRAWN = [
    ({"drawn": "range", "drawn_place": 0, "drawn_low": 0.0, "drawn_high": 0.5}, 1, "numbers are outside of 0 to 0.5"),
    (
        {
            "drawn": "share",
            "drawn_place": 0,
            "drawn_element": "[3]",
            "drawn_at": 0.5,
            "drawn_share": 0.5,
            "drawn_slack": 0.2,
        },
        0,
        "y[3]: expected 50 % of the numbers at most 0.5, got",
    ),
    ({"drawn": "seed", "drawn_place": 0}, 0, "draw the same at first"),
    ({"drawn": "element", "drawn_place": 0, "drawn_element": "[2]"}, 0, "y[2] is not the same in 64 runs"),
    pytest.param({"drawn": "range", "drawn_place": 0, "drawn_low": 0.0, "drawn_high": 1.0}, 0, "gone", marks=FULL),
    pytest.param(
        {"drawn": "share", "drawn_place": 0, "drawn_at": 0.5, "drawn_share": 0.9, "drawn_slack": 0.05},
        1,
        "is there",
        marks=FULL,
    ),
    pytest.param({"drawn": "constant", "drawn_place": 0}, 0, "not the same in 64 runs", marks=FULL),
    pytest.param({}, 0, "dtypes and shapes are as expected", marks=FULL),
    pytest.param({"drawn": "", "drawn_place": 0}, 2, "no script can tell", marks=FULL),
]


@pytest.mark.parametrize(("drawn", "code", "says"), DRAWN)
def test_what_is_drawn_at_random_is_drawn_again_and_never_compared(tmp_path, drawn, code, says):
    manifest, instance = made(tmp_path, "RandomUniformLike", [("input", np.zeros(4, np.float32))], opset=21)
    shown = exhibit(drawn=drawn, symptom="value" if drawn else "shape")
    found, output, script = run(tmp_path, shown, manifest, instance)
    assert (found, says in output) == (code, True), output
    assert "EXPECTED" not in script


def test_a_dropouts_script_knows_what_may_be_left_of_each_element(tmp_path):
    fed = [
        ("data", np.array([1.0, 3.0], np.float32)),
        ("ratio", np.array(0.5, np.float32)),
        ("training_mode", np.array(True)),
    ]
    manifest, instance = made(tmp_path, "Dropout", fed, opset=22)
    assert draws.legal(instance) == "0 or 2 or 6" and draws.outside(instance, [1], 6.0) is None
    told = draws.outside(instance, [1], 3.0)
    assert told.why.startswith("output 0[1] is 3, neither 0 nor 6,")
    found, output, script = run(tmp_path, exhibit(drawn=told.numbers(), symptom="value"), manifest, instance)
    assert found == 0 and "0 of 128 numbers are neither" in output and "KEPT = np.array([2.0, 6.0]" in script


def test_the_script_of_a_random_program_looks_at_the_output_that_is_named(tmp_path):
    """Another one's wrong form neither hides it nor stands for it."""
    fed = [("data", np.array(1.0, np.float32)), ("ratio", np.array(0.5, np.float32)), ("training_mode", np.array(True))]
    manifest, instance = made(tmp_path, "Dropout", fed, opset=22, outputs=("y", "mask"))
    for symptom, output, drawn, code in (
        ("value", "y", {"drawn": "kept", "drawn_place": 0}, 0),
        ("dtype", "mask", {}, 1),
        ("dtype", "y", {}, 2),
    ):
        shown = exhibit(drawn=drawn, symptom=symptom, output=output)
        script = reproducer.render(shown, manifest, tmp_path, instance).replace("('bool', [])", "('float32', [])")
        (tmp_path / "script.py").write_text(script)
        done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
