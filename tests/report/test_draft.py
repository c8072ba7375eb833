"""A draft has the form of the tracker whose part is wrong, a script that was run, and nothing of this machine."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import opera
from drafted import ABOUT, FINDING, WRONG, drafted, wrong_sum
from filled import floats

from opera import compilers, resources
from opera.compilers import SOURCE
from opera.errors import UsageError
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    DISPUTED,
    INCONSISTENT,
    NEWER,
    PASS,
    SCREENED,
    UNSUPPORTED,
    Outcome,
    Raised,
    Seen,
)
from opera.report import draft as stage
from opera.report import issue, others, running, searching, terminal, trackers
from opera.report.issue import Draft
from opera.report.page import _contrasts, page
from opera.report.summary import summarise
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.triage import blame
from opera.triage.blame import Blame
from opera.triage.contrasts import Contrast
from opera.triage.evidence import OTHERWISE, Evidence
from opera.triage.findings import findings
from opera.triage.known import Entry, Known
from opera.triage.part import EXPORTER, LIBRARY
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.reproducers.reproducer import Exhibit
from opera.triage.reproducers.scripts import Trial
from opera.triage.sentence import cut

FORMLESS = ("tract", "litert", "litert-torch", "onnxscript", "tensorflow-onnx")
"""Trackers without a form of their own."""
HEADINGS = {
    "tvm": ["### Expected behavior", "### Actual behavior", "### Environment", "### Steps to reproduce", "### Triage"],
    "openvino": ["### OpenVINO Version", "### Operating System", "### Device used for inference", "### Framework",
                 "### Issue description", "### Step-by-step reproduction", "### Relevant log output"],
    "onnxruntime": ["### Describe the issue", "### To reproduce", "### Urgency", "### Platform", "### Execution Provider"],
    "opencv": ["### System Information", "### Detailed description", "### Steps to reproduce"],
    "iree": ["### What happened?", "### Steps to reproduce your issue", "### Version information"],
    **{key: ["**Expected**", "**To reproduce**", "**Versions**"] for key in FORMLESS},
    "mnn": ["# Platform", "# Github Version", "# Compiling Method", "# Build Log"],
    "tensorrt": ["## Description", "## Environment", "## Steps To Reproduce"],
    "torch-tensorrt": ["## Bug Description", "## To Reproduce", "## Expected behavior", "## Environment"],
    "tensorflow": ["### Issue type", "### Source", "### TensorFlow version", "### Standalone code to reproduce the issue"],
    "pytorch": ["### 🐛 Describe the bug", "### Versions"],
    "executorch": ["### 🐛 Describe the bug", "### Versions"],
    "keras": ["**Describe the current behavior**", "**Standalone code to reproduce the issue**"],
    "onnx": ["# Bug Report", "### Is the issue related to model conversion?", "### Reproduction instructions"],
}  # fmt: skip


def sections(text: str) -> str:
    """Return the script of a draft."""
    return re.search(r"```python\n(.*?)\n```", text, re.DOTALL)[1]


def test_a_finding_becomes_an_issue_whose_script_fails_as_pasted(workspace, tmp_path):
    drafted(workspace)
    found = stage.draft(workspace, "F0123")
    text = issue.render(found)
    assert found.tracker == "onnxruntime"
    assert [x.partition(":")[0] for x in found.not_to_file] == ["it is not reduced"]
    assert found.title == "Add: wrong value, C[1] is 22 instead of 23"
    for part in (*HEADINGS["onnxruntime"], "`test_add_planted`", "ONNX's own tests", "1.31", "opset 14", "not reduced",
                 "https://github.com/microsoft/onnxruntime/issues?q=Add -->"):  # fmt: skip
        assert part in text, part
    (tmp_path / "pasted.py").write_text(sections(text))
    done = subprocess.run([sys.executable, "pasted.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "C: got float32[3] [15.0, 22.0, 33.0]" in done.stdout
    assert len(sections(text).splitlines()) < 40
    for private in (str(workspace.root), tempfile.gettempdir(), str(Path.home()), sys.prefix, str(Path.cwd())):
        assert private not in text, private


def test_what_should_not_be_filed_says_so_and_why(workspace):
    message = "there is no kernel of that, it is not supported"
    drafted(
        workspace,
        Outcome(CRASH, "load", "Fail", message, details={"tags": (NEWER, "single-reference")}),
        confirmation="",
    )
    entry = Entry(findings=(FINDING,), issue="https://tracker/1")
    found = stage.draft(workspace, FINDING, issues=Known((entry,)))
    told = " ".join(found.not_to_file)
    for why in (
        "known (open: https://tracker/1)",
        "does not show it here and now",
        "refusal",
        "confirmed",
        "newer opset",
    ):
        assert why in told, why
    assert "**Not to be filed as it stands**" in issue.render(found)


def test_what_another_compiler_settles_is_not_held_back_and_what_is_newer_is_whoever_is_wrong(workspace):
    seen = {"tags": (NEWER, "single-reference"), "newer": "Mod 28, where it declares opset 27"}
    drafted(workspace, Outcome(INCONSISTENT, "infer", "value", "wrong", details=seen))
    finding = findings(workspace)[0]
    environment, test = finding.environment, next(iter(finding.members))
    for verdict in ("kernel", "conversion"):
        blame.save(workspace, blame.Blame(FINDING, environment, test, verdict, "so", ()))
        told = " ".join(stage.draft(workspace, FINDING).not_to_file)
        assert "it needs Mod 28, where" in told and "no other implementation" not in told


def test_who_confirms_is_told_of_the_model_that_is_shown_and_alike_everywhere(workspace):
    """What the screens heard of a test does not stand beside what others made of its reduction."""
    seen = Outcome(INCONSISTENT, "infer", "value", "wrong", details={"tags": ("single-reference",)})
    test = drafted(workspace, seen)
    [finding] = findings(workspace)
    for kind, told, agrees, held in (
        ("other compiler", ("passes", ""), "tvm 0.27.0 agrees with them", False),
        (
            "other compiler",
            ("inconsistent: infer value: 1 of 3", "another answer"),
            "tvm 0.27.0 gives another answer",
            True,
        ),
        ("other compiler", ("crash: load E: no", ""), "no other implementation confirms them: tvm 0.27.0 cannot", True),
    ):
        rows = (Evidence("tvm 0.27.0", *told, kind),)
        blame.save(workspace, Blame(FINDING, finding.environment, test, "unknown", "so", rows))
        shown = page(workspace, finding)
        assert any(x.startswith(agrees) for x in shown.agreement) and not shown.elsewhere
        assert any("no other" in x for x in shown.agreement) == held
        assert [others.CONFIRMS in x for x in others.others(shown, seen)] == [not held]
        drawn = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "x", "why": "y"})
        assert not any("wrong" in x for x in others.others(shown, drawn)), "who draws other numbers is not wrong"
    same, other = (Evidence("its body", "", x, blame.BODY) for x in (blame.ALIKE[0], OTHERWISE))
    by_body = Blame(FINDING, finding.environment, test, "library", "so", (same, other))
    for outcome, told in ((seen, [f"its body gives {x.remark}" for x in (same, other)]), (drawn, [])):
        assert others.others(msgspec.structs.replace(shown, blame=by_body, asked=()), outcome) == told, (
            "draws say nothing"
        )
    near = msgspec.structs.replace(shown, asked=(Evidence("tvm 0.27.0", "passes", "", "other compiler", 1.5e-7),))
    assert others.others(near, seen) == ["TVM 0.27.0 gives the expected outputs (off by 1.5e-07 at most, relatively)"]
    for wrong, says in (
        (1.8e-7, "is off by 1.5e-07 at most, relatively"),
        (1.0, "gives the expected outputs (off by 1.5e-07"),
    ):
        off = msgspec.structs.replace(seen, details={"max_rel": wrong})
        assert others.others(near, off)[0].startswith(f"TVM 0.27.0 {says}"), "who is as far off confirms nothing"
    assert others.others(near, Outcome(CRASH, "load")) == ["TVM 0.27.0 gives the expected outputs"]
    assert "no other implementation" in " ".join(stage.draft(workspace, FINDING).not_to_file)


def test_what_another_showed_by_its_variants_is_told_once_if_it_is_the_same(workspace):
    drafted(workspace)
    shown = page(workspace, findings(workspace)[0])
    for by, told in (
        ({"inputs": "unsupported: no", "constants": "unsupported in load: none"}, ["OpenVINO 2 does not support it"]),
        (
            {"exported-program": "pass", "torchscript": "inconsistent (value): 1"},
            ["OpenVINO 2 as an exported program gives the expected outputs", "OpenVINO 2 as TorchScript is wrong, too"],
        ),
    ):
        elsewhere = {f"openvino-torch 2, {name}": text for name, text in by.items()}
        seen = Outcome(INCONSISTENT, "infer", "value")
        assert others.others(msgspec.structs.replace(shown, elsewhere=elsewhere, asked=(), blame=None), seen) == told


def test_operators_of_findings_that_say_the_same_are_named_once(workspace):
    drafted(workspace)
    told = page(workspace, findings(workspace)[0])
    program = Instance("onnx", "ReduceL2", {}, (), ("y",), {})
    twins = (("F2", "ReduceL1"), ("F3", "ReduceLogSum"), ("F4", "ReduceL1"), ("F5", "ReduceL2"))
    assert stage._siblings(msgspec.structs.replace(told, twins=twins), program) == "ReduceL1 and ReduceLogSum"
    assert stage._siblings(msgspec.structs.replace(told, twins=()), program) == ""


def test_what_seems_to_decide_is_told_where_nothing_like_it_is_known_to_pass(workspace, monkeypatch):
    """A Scan whose body reads a value from outside fails with all that was changed: a reader sees nothing of what decides."""
    drafted(workspace)
    told, says = page(workspace, findings(workspace)[0]), "a value from outside its body"
    for passing, seems in (((), says), (("y = Scan(x)",), "")):
        now = msgspec.structs.replace(told, seems=says, passing=passing)
        monkeypatch.setattr(stage, "page", lambda *_, now=now: now)
        made = stage.draft(workspace, FINDING)
        assert made.seems == seems and (says in issue.render(made)) is bool(seems)


def test_of_a_small_error_it_is_told_what_is_allowed(workspace):
    small = {
        "expected": 0.36660938,
        "actual": 0.36660933,
        "max_rel": 2.7e-7,
        "max_abs": 1e-7,
        "rtol": 1e-7,
        "atol": 1e-9,
    }
    drafted(workspace, Outcome(INCONSISTENT, "infer", "value", "output 'C': 1 of 3 elements", details=WRONG | small))
    [told] = [x for x in stage.draft(workspace, FINDING).actual if "rtol" in x]
    assert told.startswith("it is off by 2.7e-07 relatively; rtol 1e-07 and atol 1e-09 are allowed")


@pytest.mark.parametrize("tracker", HEADINGS)
def test_every_tracker_has_its_own_form_and_a_compilers_words_stay_words(tracker):
    nasty = "`x` </details> @someone #12 <b>*bold*</b>\n```\n# heading"
    found = Draft(
        "F1", tracker, "https://form", nasty, nasty, "ONNX", "tvm-onnx", Outcome(CRASH, "load", "E", nasty), (nasty,),
        expected=(nasty,), actual=(nasty,), says=nasty, script="x = 1\n", log=nasty, origin=nasty, file=nasty, others=(nasty,),
        versions={"TVM": "1"}, system="Linux x86_64, Python 3", blame=nasty, members=2, named=(nasty,), claimed=nasty,
    )  # fmt: skip
    text = issue.render(found)
    for heading in HEADINGS[tracker]:
        assert f"\n{heading}\n" in text, heading
    outside = re.sub(r"(?sm)^(````+)\w*\n.*?\n\1$", "", text)
    outside = re.sub(r"(``+) .*? \1", "", outside)
    assert "\n# heading" not in outside and not re.search(r"(?<!\\)<(?:b|/details)>", outside)
    assert not re.search(r"(?<![\\\w])[@#](?:someone|12)", outside)


def test_the_tracker_is_whose_part_is_wrong(workspace):
    drafted(workspace)
    assert (
        trackers.default("onnxexport-torch", "exporter") == "pytorch"
        and trackers.default("onnxexport-keras", "") == "tensorflow-onnx"
    )
    assert trackers.default("tvm-onnx", "conversion") == "tvm" and trackers.default("tvm-torch", LIBRARY) == "pytorch"
    assert (
        trackers.default("tensorrt-torch", "") == "torch-tensorrt"
        and trackers.default("tensorrt-onnx", "") == "tensorrt"
    )
    for name in compilers.registered():
        for found in compilers.get(name).FRONTENDS:
            assert trackers.default(compilers.frontend_name(name, found), "") in HEADINGS
    with pytest.raises(UsageError, match="no form of a tracker is known for planted-onnx"):
        trackers.default("planted-onnx", "")
    with pytest.raises(UsageError, match="no form for a tracker called 'jira'"):
        stage.draft(workspace, FINDING, "jira")
    environment, [test] = next(iter(workspace.environments())), findings(workspace)[0].members
    for of, tracker in (("another", "onnxruntime"), (test, "onnx")):  # blame of what it was before says nothing
        blame.save(workspace, Blame(FINDING, environment, of, LIBRARY, "openvino and tvm give the same other answer"))
        assert stage.draft(workspace, FINDING).tracker == tracker
    named = {path.name.partition(".")[0] for path in resources.content("templates/issues").glob("*.md.j2")}
    assert named == {x.template or name for name, x in trackers.trackers().items()} and set(trackers.trackers()) == set(
        HEADINGS
    )


def test_what_the_functions_of_a_package_translate_goes_to_its_own_tracker():
    place = "aten_erfcx (onnxscript/function_libs/torch_lib/ops/special.py:106)"
    for verdict, shown, wanted in (
        (EXPORTER, place, "onnxscript"),
        (EXPORTER, place.replace("onnxscript/function_libs", "torch/onnx"), "pytorch"),
        (EXPORTER, "", "pytorch"),
        ("kernel", place, "onnxruntime"),
    ):
        rows = (Evidence("the code that translates it", shown, kind=SOURCE),) if shown else ()
        laid = Blame(FINDING, "e", "t", verdict, "so", rows)
        assert searching.tracker("onnxexport-torch", "onnxexport-torch", laid) == wanted, (verdict, shown)
    assert trackers.prefix("onnxscript", "onnxexport-torch") == "[torchlib] "
    told = (("tvm-keras", "tflite"), ("tvm-torch", "onnx"), ("tvm-torch", "exported-program"), ("tvm-onnx", ""))
    assert [trackers.prefix("tvm", *x).split()[-1] for x in told] == ["[TFLite]", "[ONNX]", "[PyTorch]", "[ONNX]"]
    drafts = [
        Draft("F1", "tvm", "", "", "", "Keras", x, Outcome(CRASH, "load"), importer=trackers.importer(x, y))
        for x, y in told
    ]
    labels = [re.findall(r"\* frontend:(\w+)", issue.render(x)) for x in drafts]
    assert labels == [["tflite"], ["onnx"], ["pytorch"], ["onnx"]]


def test_a_long_title_is_cut_at_a_word():
    text = cut("word " * 40, stage.TITLE)
    assert text == f"{'word ' * 30}word…" and len(text) <= stage.TITLE and cut("short", stage.TITLE) == "short"


def test_a_disputed_test_is_drafted_against_the_librarys_tests(workspace):
    details = {"screen": DISPUTED, "by": "openvino", "agrees_with_compiler": True}
    message = "output 'C': 1 of 3 elements, first at [1]: expected 23.0, got 22.0"
    test = drafted(workspace, Outcome(SCREENED, "infer", "value", message, details=details), finding="")
    found = stage.draft(workspace, test[:8])
    text = issue.render(found)
    assert found.tracker == "onnx" and "test_add_planted" in found.title and "# Bug Report" in text
    assert "OpenVINO and ONNX Runtime agree to contradict" in text or "ONNX Runtime and OpenVINO agree" in text
    assert "C: got float32[3] [15.0, 22.0, 33.0]" in text


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome(PASS), "it passes"),
        (Outcome("error", "load", "KeyError", "no such thing"), "opera itself failed"),
        (Outcome(UNSUPPORTED, "load", "E", "no kernel"), "says that it is not supported"),
        (Outcome(SCREENED, "infer", "value", details={"screen": "nondeterministic"}), "differs for another reason"),
    ],
)
def test_what_is_no_finding_makes_no_issue_and_it_is_said_why(workspace, outcome, told):
    test = drafted(workspace, outcome, finding="")
    with pytest.raises(UsageError, match=told):
        stage.draft(workspace, test)


def test_the_command_writes_a_file_and_an_unknown_id_is_one_line(workspace, tmp_path):
    drafted(workspace)
    workspace.close()
    done = opera(
        "issue", FINDING, "--output", tmp_path / "issue.md", "--workspace", tmp_path / "workspace", cwd=tmp_path
    )
    assert done.returncode == 0 and "wrong value" in (tmp_path / "issue.md").read_text(), done.stderr
    done = opera("issue", "F9", "--workspace", tmp_path / "workspace", cwd=tmp_path)
    assert done.returncode == 2 and "no finding has an id that begins with 'F9'" in done.stderr


@pytest.mark.parametrize(
    ("operator", "inputs", "deciding", "told"),
    [
        ("ReduceMax", {"data": Tensor.of(np.array([True])), "axes": Tensor.of(np.int64([0]))}, (), "ReduceMax (bool)"),
        ("ReduceMax", {"data": floats(1), "axes": Tensor.of(np.int64([0]))}, (), "ReduceMax"),
        ("If", {"cond": Tensor.of(np.array(True))}, (), "If"),
        ("TopK", {"X": Tensor.of(np.int64([1, 2]))}, (), "TopK"),
        ("Abs", {"X": floats(np.nan)}, (), "Abs (NaN)"),
        ("Abs", {"X": floats(np.nan)}, ("NaN in an input",), "Abs"),
        ("EyeLike", {"input": Tensor.of(np.int32([[1]]))}, ("dtype=1", "integer inputs"), "EyeLike"),
        ("Pow", {"X": Tensor.of(np.int32([1])), "Y": floats(1)}, (), "Pow (int32, float32)"),
        ("Pow", {"X": Tensor.of(np.int32([1])), "Y": floats(1)}, ("inputs of two dtypes",), "Pow"),
    ],
)
def test_a_title_names_the_dtypes_that_the_operator_leaves_open_where_they_are_uncommon(
    operator, inputs, deciding, told
):
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    call = Instance("onnx", operator, {}, operands, ("y",), {"opset": {"": 22}})
    page = type("Told", (), {"parameters": (), "reduced": True, "blame": None})
    assert (
        stage._what(
            call, page, type("Shown", (), {"deciding": deciding, "told": deciding, "reduction": None, "firm": True})
        )
        == told
    )


def test_a_reduced_program_is_told_as_it_is_called_and_a_body_by_the_number_that_shows_it():
    call = Instance(
        "onnx", "EyeLike", {"k": 1}, (Operand("input", Tensor.of(np.uint8([[1]]))),), ("y",), {"opset": {"": 22}}
    )
    parameter = type("Parameter", (), {"name": "k", "value": 1, "mark": "default 0"})
    page = type("Told", (), {"parameters": (parameter,), "reduced": True, "blame": None})
    seen = Outcome("crash")
    form = Captured(call, Provenance("suite", "file", "test")).form()
    verdict = Verdict("t", "tvm-onnx", "v", "e", seen, "F")
    shown = Choice(verdict, verdict, Reduction("F", "e", "tvm-onnx", "v", "t", form, seen))
    assert stage._what(call, page, shown) == "EyeLike(input=uint8([[1]]), k=1)"
    assert stage._what(call, page, shown, body="EyeLike's function body") == "EyeLike (k=1, input=1)"
    without = type("Shown", (), {"told": (), "reduction": None})
    assert stage._what(call, page, without) == "EyeLike (uint8)"


def test_wrong_outputs_alone_are_compared_in_the_script(workspace):
    drafted(workspace, Outcome(CRASH, "infer", "Fail", "something else that is nowhere said"))
    found = stage.draft(workspace, FINDING)
    assert found.exit_codes and found.not_to_file and found.shows.verdict != INCONSISTENT


def test_a_finding_is_shown_by_its_own_verdict_and_not_by_another_of_the_same_test(workspace):
    """A test may fail in two ways by two routes, which are two findings."""
    test = drafted(workspace, Outcome(CRASH, "infer", "Fail", "the second"), finding="F89abcdef", variant="constants")
    first = Outcome(INCONSISTENT, "infer", "value", "output 'C': 1 of 3 elements", details=WRONG)
    run, name = workspace.start_run({"workers": 1}), next(iter(workspace.environments()))
    verdict = Verdict(test, "onnxruntime-onnx", "inputs", name, first, FINDING, "confirmed")
    workspace.save_verdicts(run, [verdict], {FINDING: b"{}"})
    for finding, said in ((FINDING, ""), ("F89abcdef", "the second")):
        [found] = findings(workspace, only=finding)
        assert page(workspace, found).says == said
    said = stage.draft(workspace, "F89abcdef").actual
    assert not any("initializer" in x for x in said), said  # none of its tensors is one


def test_every_route_has_words():
    for compiler in compilers.registered():
        for of in compilers.get(compiler).FRONTENDS:
            names = {x.name for x in compilers.frontend(compiler, of).VARIANTS}
            assert names <= others.GIVEN_AS.keys(), (compiler, of)
    assert others._who("onnxruntime-onnx by its variant oldest-opset").startswith(
        "ONNX Runtime itself, given a model of the"
    )
    assert others._who("tvm 0.27.0") == "TVM 0.27.0"


def test_no_number_that_was_drawn_is_expected(workspace):
    seen = Outcome(INCONSISTENT, "infer", "dtype", "output 'C': float32 is expected", details={"output": "C"})
    test = drafted(workspace, seen)
    [found] = findings(workspace, only=FINDING)
    assert [x.expected for x in page(workspace, found).outputs] == ["float32[3]: 15, 23, 33"]
    folder = migrated.folder(workspace.tests_folder, test)
    manifest = msgspec.structs.replace(migrated.read_manifest(folder), tags=("nondeterministic",))
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    assert [x.expected for x in page(workspace, found).outputs] == ["float32[3], random"]


def test_a_random_value_that_was_stored_as_wrong_is_told_by_what_may_be_drawn(workspace):
    """Older runs compared what was drawn with what the reference drew."""
    fed = {"data": np.array(1.0, np.float32), "ratio": np.array(0.5, np.float32), "training_mode": np.array(True)}
    operands = tuple(Operand(name, Tensor.of(x)) for name, x in fed.items())
    program = Instance("onnx", "Dropout", {}, operands, ("output", "mask"), {"opset": {"": 22}})
    details = {"output": "output", "index": "[]", "expected": 2.0, "actual": 1.0, "differing": 1, "elements": 1}
    seen = Outcome(INCONSISTENT, "infer", "value", "output 'output': expected 2.0, got 1.0", details=details)
    drafted(workspace, seen, captured=Captured(program, Provenance("suite", "dropout.py", "test_dropout"), None))
    found = stage.draft(workspace, FINDING)
    assert found.expected == ("output = float32[], random: 0 or 2",) and found.actual == ()
    assert found.title == "Dropout: output is 1, neither 0 nor 2, which is the input over 1 - p"
    assert (
        "EXPECTED" not in found.script and "0 of 64 numbers are neither 0 nor" in found.log
    )  # ONNX Runtime's are right
    told, *_ = found.not_to_file
    assert "its script does not show it" in told


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        (["onnx-node-tests"], ""),
        (["docter", "onnx-node-tests"], ""),
        (["docter", "sionnx"], "inputs that the documentation's constraints admit (DocTer)"),
        (["deeprel"], "inputs of related operators (DeepREL)"),
        (["another"], "inputs that another made"),
        ([], ""),
    ],
)
def test_a_draft_says_what_made_a_test_that_nobody_wrote(sources, says):
    assert stage._whose([Provenance(x, "file", "test") for x in sources]) == says


@pytest.mark.parametrize(
    ("symptom", "said", "shown"),
    [
        ("value", "AssertionError: \nArrays are not equal\ny\nMismatched elements: 1", True),
        ("value", "AssertionError: y: wrong dtype", False),
        ("nan-mask", "AssertionError: \nNot equal to tolerance rtol=0\nmask\nnan", False),
        ("dtype", "AssertionError: y: wrong dtype", True),
        ("dtype", "AssertionError: y: wrong shape", False),
        ("shape", "AssertionError: mask: wrong shape", False),
    ],
)
def test_a_short_script_shows_the_output_and_the_symptom_of_the_finding_or_nothing(symptom, said, shown):
    exhibit = Exhibit("F1", "f", "c", {}, "onnx", INCONSISTENT, "infer", symptom, "it differs", output="y")
    trial = Trial("F1", 1, f"y: got [1.0]\nTraceback (most recent call last):\n{said}")
    assert running.fails_so(exhibit, trial) == shown


@pytest.mark.parametrize(
    ("found", "seen", "shown"),
    [
        ("SIGSEGV", -6, True),
        ("SIGSEGV", -11, True),
        ("SIGSEGV", -9, False),
        ("SIGABRT", 1, False),
        ("SIGXCPU", -6, False),
    ],
)
def test_a_process_may_die_of_its_fault_by_another_signal(found, seen, shown):
    """A string that is freed twice ends one run by SIGSEGV and the next by SIGABRT."""
    exhibit = Exhibit("F1", "f", "c", {}, "onnx", ABORT, "infer", found, "")
    assert running.fails_so(exhibit, Trial("F1", seen, "")) is shown


def test_in_how_many_runs_it_is_so_is_told_where_it_is_not_in_all():
    assert list(stage._seldom(Trial("F1", 1, "", shown=True, runs=(2, 3)))) == ["in 2 of 3 runs of the script"]
    assert not [
        *stage._seldom(Trial("F1", 1, "", shown=True, runs=(3, 3))),
        *stage._seldom(Trial("F1", 1, "")),
        *stage._seldom(None),
    ]


def test_a_runtime_that_fails_on_a_right_file_is_who_is_told(workspace, monkeypatch):
    """The exporter is under test, and its file is not at fault; no script is made, for the test is none of PyTorch's."""
    monkeypatch.setattr(running, "script", lambda *_, **__: ("", None, True))
    seen = Outcome(CRASH, "infer", "Fail", "Non-zero status code returned while running ConvTranspose node")
    about = ABOUT | {"compiler": "onnxexport", "library": "torch"}
    test = drafted(workspace, seen)
    environment = workspace.save_environment(about)
    [verdict] = stored.of_test(workspace, test)
    changed = msgspec.structs.replace(
        verdict, frontend="onnxexport-torch", environment=environment, finding="F89abcdef"
    )
    workspace.save_verdicts(workspace.start_run({"workers": 1}), [changed], {"F89abcdef": b"{}"})
    for part, tracker, says in (
        ("exporter", "pytorch", "The ONNX exporter makes of"),
        ("kernel", "onnxruntime", "ONNX Runtime cannot run"),
    ):
        blame.save(workspace, Blame("F89abcdef", environment, test, part, "so"))
        found = stage.draft(workspace, "F89abcdef")
        assert found.tracker == tracker and says in found.sentence
        assert ("by its ONNX file" in found.title) == (part == "kernel") and not found.title.startswith("[PyTorch]")


def test_a_report_says_how_what_is_not_reduced_goes_on(workspace):
    drafted(workspace)
    report = summarise(workspace)
    told = []
    for doubts in ((), ("it is not reduced: `opera reduce F1` goes on",)):
        found = [msgspec.structs.replace(x, doubts=doubts) for x in report.findings]
        told.append("opera reduce all (1 not" in terminal.render(msgspec.structs.replace(report, findings=found)))
    assert told == [False, True]


def test_what_opera_computes_in_the_place_of_the_evaluator_is_told(workspace):
    """Who runs ONNX's own reference evaluator for RoiAlign gets what the compiler returns, not what is expected."""
    rois = Operand("rois", Tensor.of(np.float32([[0, 0, 1, 1]])))
    fed = (Operand("X", Tensor.of(np.ones((1, 1, 2, 2), np.float32))), rois, Operand("b", Tensor.of(np.int64([0]))))
    program = Instance("onnx", "RoiAlign", {"mode": "max"}, fed, ("Y",), {"opset": {"": 16}})
    seen = msgspec.structs.replace(wrong_sum().provenance, test="test_roi")
    wrong = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 1 elements", details=WRONG | {"output": "Y"})
    drafted(workspace, wrong, captured=Captured(program, seen))
    found = stage.draft(workspace, "F0123")
    assert found.reference == (
        "the expected outputs are those of ONNX's reference evaluator, in which opera computes RoiAlign itself, as documented"
    )


@pytest.mark.parametrize(("message", "whole"), [("no", True), ("no " * 60, False)])
def test_a_title_without_room_leaves_out_the_rest_of_the_route(message, whole):
    def line(route):
        return f"f ({route}): {message}"

    told = stage._titled("[Bug] ", line, "as an object; as a file this model runs", ())
    assert ("this model runs" in told) is whole and "(as an object" in told and len(told) <= stage.TITLE


def test_of_numbers_off_by_little_right_ones_are_right_within_a_tolerance(workspace):
    off = {"rtol": 1e-7, "max_rel": 2.7e-7, "expected": 1.0, "actual": 1.1}
    rows = (Contrast("p", "0.4", passes=("0.2",)),)
    for details, says in ((off, "right within 1e-07 for 0.2"), ({**off, "max_rel": 0.5}, "right for 0.2")):
        shown = Outcome(INCONSISTENT, "infer", "value", details=details)
        reduced = Reduction("F1", "e", "f", "v", "t", {}, shown, contrasts=rows)
        assert _contrasts(reduced, shown, ()) == (f"p: wrong for 0.4; {says}",)
        assert _contrasts(reduced, shown, ("p=1.0",)) == (f"drawn at random, p: wrong for 0.4; {says}",)


def test_what_opera_cannot_feed_says_nothing_of_another_compiler() -> None:
    said = "unsupported: infer CannotCarry: opera: cannot feed complex64 to OpenVINO, which has no such type"
    assert others._does(said) == "" and others._does("unsupported: load: no conversion rule") == "does not support it"


@pytest.mark.parametrize(
    ("called", "told"),
    [
        ("_parse_attr", "raised in _parse_attr (importer.py)"),
        ("Transpose._impl_v13", "converted by Transpose._impl_v13"),
    ],
)
def test_the_code_that_raises_is_named_where_no_converter_was_reached(called: str, told: str) -> None:
    """TVM reads an empty list of integers before any converter is called: whoever began at that began elsewhere."""
    rows = (Evidence("the code that converts it", "Transpose._impl_v13", kind=SOURCE),)
    laid = Blame(FINDING, "e", "t", "conversion", "so", rows)
    seen = Seen(frames=("tvm.importer:from_onnx:9", f"tvm.importer:Importer.{called}:3"))
    where = f"importer.py:{called.rpartition('.')[2]}"
    shown = Outcome(CRASH, "load", "ValueError", "no", where, seen=seen)
    assert told in stage._laid(laid, shown)
    bound = msgspec.structs.replace(shown, location=where.replace(".py", ".pxi"))  # all native code is called by that
    assert "converted by" in stage._laid(laid, bound)
    exports = msgspec.structs.replace(laid, verdict=EXPORTER)  # it wraps what its own functions raise
    assert "converted by" in stage._laid(exports, shown)
    chained = msgspec.structs.replace(seen, raised=(Raised((), "outer"), Raised((), "inner")))
    assert "converted by" in stage._laid(laid, msgspec.structs.replace(shown, seen=chained))
