from __future__ import annotations

import io
import textwrap

import msgspec
import numpy as np
import pytest
from filled import TVM, document, instance_of, judged
from rich.console import Console

from opera import report as reports
from opera.compilers import CONVERSION
from opera.errors import UsageError
from opera.oracle.draws import CONSTANT
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Message, Named, Optional, RandomTensor, Sequence, Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.report import programs, show
from opera.report.chosen import Wanted
from opera.report.page import _agreement, _near, _remarks, borne_out
from opera.report.summary import summarise
from opera.report.terminal import findings_table
from opera.sources.deeprel import relations
from opera.sources.deeprel.plans import Pair, Tried
from opera.store import sites
from opera.store.folders import kept_outputs
from opera.store.rows import Verdict
from opera.store.sites import Seen
from opera.triage import blame, reduction
from opera.triage.blame import Blame
from opera.triage.contrasts import Contrast
from opera.triage.evidence import Evidence
from opera.triage.findings import findings
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice


def shown(capsys, workspace, name: str) -> str:
    show.show(workspace, name)
    return capsys.readouterr().out


def stored_reduction(workspace, finding: str, environment: str, frontend: str, test: str, outcome: Outcome) -> None:
    program = Instance("onnx", "Gemm", {}, (), ("y",), {"opset": {"": 25}})
    migrated.write(
        migrated.folder(workspace.tests_folder, "reduced"),
        migrated.Manifest("reduced", "i", "onnx", "Gemm", {}, (), ("y",), {}), [], [], {},
    )  # fmt: skip
    line = Captured(program, Provenance("node-tests", "cases.py", "t"), None).form()
    reduction.save(workspace, Reduction(finding, environment, frontend, "inputs", test, line, outcome, "reduced"))


def test_findings_are_listed_and_counted(workspace, environments, capsys):
    show.findings(workspace, Wanted())
    text = capsys.readouterr().out
    assert text.index("0.27.0") < text.index("0.9.0")
    assert "6 findings, 0 ready to file, 6 with doubts (marked ?)" in text  # none is reduced
    stored_reduction(workspace, "Faaaaaaaa", environments["tvm"], TVM, "t0", Outcome("crash", "load", "KeyError", "no"))
    show.findings(workspace, Wanted())
    assert "6 findings, 1 ready to file, 5 with doubts (marked ?)" in capsys.readouterr().out


def listed(capsys, workspace, *statuses: str, **wanted: str) -> list[str]:
    show.findings(workspace, Wanted(statuses=statuses, **wanted), as_json=True)
    return [x["id"] for x in msgspec.json.decode(capsys.readouterr().out)]


def test_findings_are_chosen_by_frontend_operator_and_status(workspace, environments, capsys):
    stored_reduction(workspace, "Faaaaaaaa", environments["tvm"], TVM, "t0", Outcome("crash", "load", "KeyError", "no"))
    every = listed(capsys, workspace)
    assert len(every) == 6
    confirmed, unconfirmed = (listed(capsys, workspace, word) for word in ("confirmed", "unconfirmed"))
    assert len(unconfirmed) == 2 and sorted([*confirmed, *unconfirmed]) == sorted(every)
    ready, doubtful = (listed(capsys, workspace, word) for word in ("ready", "doubtful"))
    assert sorted([*ready, *doubtful]) == sorted(every) and len(doubtful) == 5 and set(unconfirmed) < set(doubtful)
    assert listed(capsys, workspace, "new") == every and listed(capsys, workspace, "known") == []
    assert 0 < len(listed(capsys, workspace, "crash")) < 6
    assert listed(capsys, workspace, "crash", "confirmed") == [
        x for x in listed(capsys, workspace, "crash") if x in confirmed
    ]
    conv = listed(capsys, workspace, operator="Con*")
    assert 0 < len(conv) < 6 and listed(capsys, workspace, operator="con*") == []
    assert listed(capsys, workspace, "timeout", operator="Conv") == [], (
        "a word that no finding here has is none that is wrong"
    )
    show.findings(workspace, Wanted(operator="con*"))
    assert "None of the 6 findings is so" in capsys.readouterr().out


def test_what_no_finding_could_be_is_refused_with_what_was_perhaps_meant(workspace, environments):
    with pytest.raises(UsageError, match="nothing was run on a frontend called 'tvm-onx'") as error:
        show.findings(workspace, Wanted(frontend="tvm-onx"))
    assert "did you mean tvm-onnx?" in str(error.value)
    with pytest.raises(UsageError, match="no finding has the status 'crahs'") as error:
        show.findings(workspace, Wanted(statuses=("crahs",)))
    assert "did you mean crash?" in str(error.value)


def test_a_pipe_gets_whole_sentences_and_no_blanks_behind(workspace, environments, capsys):
    found = findings(workspace)
    show.findings(workspace, Wanted())
    head, *lines = capsys.readouterr().out.splitlines()[: len(found) + 1]
    assert head.split() == ["id", "frontend", "version", "tests", "what", "is", "wrong"]
    for line in lines:
        [of] = [x for x in found if x.id == line.split()[0] and x.compiler_version == line.split()[2]]
        assert line.endswith(" ".join(of.sentence.split())) and "…" not in line


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_width_cuts_ids_or_frontends(workspace, environments, width):
    found = findings(workspace)
    out = io.StringIO()
    Console(file=out, width=width).print(findings_table(found, width))
    for x in found:
        assert x.id in out.getvalue() and f"{x.frontend} " in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_a_finding_shows_everything_for_each_version(workspace, environments, capsys):
    text = shown(capsys, workspace, "Faaa")
    for part in (
        "0.27.0",
        "0.9.0",
        "crash in load: KeyError",
        "_impl_v1",
        "test_Conv_0",
        "[bold]{{ 7*7",
    ):
        assert part in text
    assert "reproducers/Faaaaaaaa.py" in "".join(text.split()), "a long path is folded"
    assert "\x1b" not in text
    assert text.index("TVM cannot load Conv") < text.index("The model") < text.index("2 tests, of")
    assert "It says" in text and "onnx__Conv.html" in text
    assert "t8 fails only after: t3, t0" in shown(capsys, workspace, "Fddd")


def test_a_finding_shows_its_reduction_and_who_is_to_blame(workspace, environments, capsys):
    data = Operand("x", Tensor.of(np.array([2.5], np.float32)))
    program = Instance("onnx", "Pad", {"mode": "wrap"}, (data,), ("y",), {"opset": {"": 25}})
    details = {"index": "[0]", "expected": 2.5, "actual": 0.0, "differing": 1, "elements": 1, "output": "y"}
    outcome = Outcome("inconsistent", "infer", "value", "output 'y' differs", details=details)
    folder = migrated.folder(workspace.tests_folder, "reduced")
    values = [data.value]
    migrated.write(folder, migrated.Manifest("reduced", "i", "onnx", "Pad", {}, ("x",), ("y",), {}), values, values, {})
    kept = workspace.files.file(kept_outputs("reduced", "tvm-onnx", "inputs", environments["tvm"]))
    kept.parent.mkdir(parents=True)
    kept.write_bytes(migrated.pack([Tensor.of(np.array([0], np.float32))]))
    line = Captured(program, Provenance("node-tests", "cases.py", "t"), None).form()
    known = ("Fbbbbbbbb", environments["tvm"])
    smallest = Reduction(*known, "tvm-onnx", "inputs", "t1", line, outcome, "reduced", ("mode='wrap'",))
    smallest = msgspec.structs.replace(
        smallest, contrasts=(Contrast("mode", "'wrap'", passes=("'reflect'", "left out")),)
    )
    reduction.save(workspace, smallest)
    blame.save(workspace, Blame(*known, "t1", CONVERSION, "of the test before", (Evidence("tvm 1", "fails"),)))
    before = shown(capsys, workspace, "Fbbbbbbbb")
    assert "Blame" not in before and "of the test" not in before, "nothing is told of another program"
    blame.save(
        workspace,
        Blame(*known, "reduced", CONVERSION, "the module before any pass is wrong", (Evidence("no passes", "fails"),)),
    )
    text = shown(capsys, workspace, "Fbbbbbbbb")
    parts = (
        "TVM computes Pad(x=float32([2.5]), mode='wrap') wrongly: y[0] is 0, not 2.5",
        "The model (called by Cast, ", "x = float32[1]: 2.5",
        "y = Pad(x, mode='wrap')  # opset 25", "mode='wrap'  (it decides, default 'constant')",
        "One thing changed, all else as it is",
        "mode: wrong for 'wrap'; right for 'reflect' and where left out", "expected  float32[1]: 2.5",
        "actual    float32[1]: 0", "Blame: conversion: the module before any pass is wrong", "no passes  fails",
        "onnx__Pad.html",
    )  # fmt: skip
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    html = reports.get("html").render(summarise(workspace, pages=True))
    assert "mode: wrong for &#39;wrap&#39;; right for &#39;reflect&#39; and where left out" in html
    assert "environment" not in text and environments["tvm"] not in text and "not to the end" not in text
    reduction.save(workspace, msgspec.structs.replace(smallest, finished=False))
    assert "not to the end)" in shown(capsys, workspace, "Fbbbbbbbb")
    cast = Captured(msgspec.structs.replace(program, operator="Cast"), Provenance("node-tests", "cases.py", "t"), None)
    reduction.save(workspace, msgspec.structs.replace(smallest, captured=cast.form()))
    assert "The model (reduced from" in shown(capsys, workspace, "Fbbbbbbbb"), "it is no call inside another"
    assert "This passes" not in shown(capsys, workspace, "Fbbbbbbbb")
    reduction.save(workspace, msgspec.structs.replace(smallest, passing=cast.form()))
    text = shown(capsys, workspace, "Fbbbbbbbb")
    assert "This passes" in text and "Cast(" in text.partition("This passes")[2]


def test_a_reduction_that_failed_in_a_fresh_process_confirms_its_finding(workspace, environments):
    def doubts() -> str:
        return " ".join(findings(workspace, only="Fffffffff")[0].doubts)

    assert "not confirmed" in doubts()
    outcome = Outcome("out-of-memory", "infer", "out-of-memory", "too much")
    stored_reduction(workspace, "Fffffffff", environments["openvino"], "openvino-onnx", "t9", outcome)
    assert "not confirmed" not in doubts()


@pytest.mark.parametrize(
    ("near", "despite", "unknown", "wanted"),
    [
        ((9, 0), 0, False, "all 9 fail that say anything: what passes is not known"),
        ((53, 18), 16, True, "53 fail and 18 pass; what decides is not, or not all, known"),
        ((45, 9), 4, False, "45 that have what decides fail, 5 others pass; 4 that have it, too, pass"),
        ((45, 9), 0, False, "45 that have what decides fail, 9 others pass"),
        ((35, 1), 0, False, "35 that have what decides fail, 1 other passes"),
        ((66, 1), 1, False, "66 fail, 1 pass"),
    ],
)
def test_that_what_decides_is_not_known_is_said_only_of_what_is_held_back_for_it(near, despite, unknown, wanted):
    of = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), deciding=("k=2",), near=near, despite=despite)
    assert _near(of, unknown=unknown) == wanted


def test_what_gets_further_than_a_crash_is_counted_and_that_others_run_without_elements_is_told():
    told = {"deciding": ("k=2",), "near": (73, 0), "beyond": 4}
    program = Instance("onnx", "ReduceL2", {}, (Operand("data", Tensor.of(np.int64([1]))),), ("y",), {})
    form = Captured(program, Provenance("s", "f", "t")).form()
    of = Reduction("F", "e", "f", "v", "t", form, Outcome("crash"), **told)
    assert _near(of, unknown=False) == "73 that have what decides fail; 4 without it run wrongly, or end later"
    shown = Verdict("t", "f", "v", "e", of.outcome, "F")
    assert [*_remarks(Choice(shown, shown, of))] == []
    bare = Choice(shown, shown, msgspec.structs.replace(of, bare=True))
    assert [*_remarks(bare)] == ["programs near it in which data has no elements run"]
    wrong = msgspec.structs.replace(of, bare=True, contrasts=(Contrast("shape of data", "1", wrong=("0x1",)),))
    assert [*_remarks(Choice(shown, shown, wrong))] == [], "they run, with wrong outputs"
    unheeded = msgspec.structs.replace(of, unheeded=("antialias",), outcome=Outcome("inconsistent"))
    assert [*_remarks(Choice(shown, shown, unheeded))] == [
        "it gives what is right without antialias, as if that were not given"
    ]


def test_who_confirmed_a_test_still_does_where_nobody_can_run_what_was_made_of_it():
    seen = Outcome("inconsistent", "infer", "value", "it differs", details={"agreeing": "float64"})
    cannot = (Evidence("tvm 0.27.0", "unsupported: load no"),)
    assert list(_agreement(seen, None, cannot)) == ["float64 agrees with them"]
    alone = msgspec.structs.replace(seen, details={})
    assert list(_agreement(alone, None, cannot)) == ["no other implementation confirms them: tvm 0.27.0 cannot run it"]
    assert list(_agreement(seen, None, (Evidence("tvm 0.27.0", "passes"),))) == ["tvm 0.27.0 agrees with them"]


def test_a_test_shows_its_verdicts_on_every_frontend(workspace, environments, capsys):
    text = " ".join(shown(capsys, workspace, "t9").split())
    assert "tvm-onnx 0.27.0 inputs timeout in compile F" in text
    assert "openvino-onnx 2026.4 inputs out-of-memory in infer F" in text
    assert "TopK" not in text  # that is another test's operator
    assert "Gemm" in text and "opera show t9 --details: all that was measured" in text
    assert " confirmed" not in text
    show.show(workspace, "t9", details=True)
    text = capsys.readouterr().out
    assert "tvm-onnx 0.27.0, inputs: timeout in compile" in text and " confirmed" in text
    assert "--details" not in text, "nothing is left to be told"


def test_a_screened_verdict_says_by_what(workspace, environments, capsys):
    why = {"screen": "reference-disputed", "by": "float64", "max_abs": 0.5}
    seen = Outcome("screened", "infer", "value", "output 'y': it differs", details=why)
    run = workspace.start_run({})
    environment = environments["tvm"]
    workspace.save_verdicts(
        run, [msgspec.structs.replace(judged("t3", TVM, "inputs", environment, "pass"), outcome=seen)], {}
    )
    text = " ".join(shown(capsys, workspace, "t3").split())
    assert "inputs screened in infer reference-disputed: float64" in text and "max_abs" not in text


def test_an_instance_shows_inputs_params_and_where_it_was_seen(workspace, environments, capsys):
    text = shown(capsys, workspace, instance_of(3)[:10])
    for part in ("Relu", "float64[2]: 3, 1.5", "axis=", "node-tests: test_Relu_3 (cases.py)", "Test t3 valid"):
        assert part in text


@pytest.mark.parametrize("name", ["zzz", "F", "", "%", "t1"])
def test_unknown_and_ambiguous_ids_are_told(workspace, environments, name):
    with pytest.raises(UsageError, match=r"have an id that begins with|nothing in .* is called"):
        show.show(workspace, name)


def test_an_operator_shows_its_sources_verdicts_and_findings(workspace, environments, capsys):
    text = shown(capsys, workspace, "Conv")
    assert "Conv  onnx" in text
    assert "1 from node-tests" in text
    assert "tvm-onnx 0.27.0       1 crash" in text  # one of its variants passes
    assert "openvino-onnx 2026.4  1 pass" in text
    assert "Faaaaaaaa" in text and "Fbbbbbbbb" not in text
    assert "returns the same as" not in text


def test_an_operator_shows_no_superseded_verdicts(workspace, environments, capsys):
    environment = workspace.save_environment(document("tvm", "0.27.0", oracle="2"))
    run = workspace.start_run({})
    workspace.save_verdicts(run, [judged("t0", "tvm-onnx", "inputs", environment, "pass")], {})
    workspace.save_run(run, {("tvm-onnx", environment): {}}, finished=True)
    text = shown(capsys, workspace, "Conv")
    assert "tvm-onnx 0.27.0       1 pass" in text and "1 crash" in text.partition("0.27.0")[0]


def test_an_operator_shows_its_verified_relations(workspace, environments, capsys):
    pairs = [
        ("Conv", "Pad", 3, 0),
        ("Pad", "Conv", 2, 0),
        ("Conv", "Relu", 0, 4),
        ("Gemm", "TopK", 5, 0),
        ("If", "Conv", 0, 1),
    ]
    listed = relations.key("onnx", "1.2", "a list of others")
    workspace.extraction(listed, {})
    more = Tried(Pair("Scan", "Conv", {}), agreed=3, examples={"agreed": ["x"]})
    workspace.save_extraction_file(listed, f"{relations.VERIFY}Scan", "done", {}, candidates=[("Scan", "Conv", more)])
    outcomes = [Tried(Pair(*pair, {}), agreed=agreed, differed=differed) for *pair, agreed, differed in pairs]
    for outcome in outcomes:
        outcome.examples = {"agreed": ["x"], "differed": ["y"]}
    key = relations.key("onnx", "1.2")
    workspace.extraction(key, {})
    candidates = [(x.pair.source, x.pair.target, x) for x in outcomes]
    workspace.save_extraction_file(key, f"{relations.VERIFY}Conv", "done", {}, candidates=candidates)
    text = shown(capsys, workspace, "Conv")
    assert "returns the same as   Pad (3 of 3), Scan (3 of 3)" in text
    assert "accepts the same as   Relu" in text
    assert "TopK" not in text and "If" not in text


@pytest.mark.parametrize(("name", "near"), [("conv", "Conv"), ("Cnov", "Conv"), ("topk", "TopK")])
def test_an_unknown_name_is_answered_with_operators_of_similar_names(workspace, environments, name, near):
    with pytest.raises(UsageError) as told:
        show.show(workspace, name)
    assert near in told.value.cause


def test_values_in_a_few_words():
    assert programs.short(Tensor.of(list(range(20)))).endswith("10, 11, …")
    assert "seed 7" in programs.short(RandomTensor("float32", (1000,), 7, 0.0, 1.0))
    assert programs.short(Tensor.of(np.ones((0, 3), np.float32))) == "float32[0, 3]: no elements"
    assert programs.short(Tensor.of(np.array([b"a", b""], dtype=object), "string")) == "string[2]: 'a', ''"
    assert programs.short(Sequence("float32", (Tensor.of([1.0]),))).startswith("sequence of 1 float32: ")
    assert programs.short(Optional("float32", None)) == "optional float32: empty"
    assert programs.short(None) == "left out"
    assert len(programs.short("x" * 1000)) == 300


def test_a_name_that_is_none_is_told_with_what_was_perhaps_meant(workspace, environments):
    with pytest.raises(UsageError) as error:
        show.show(workspace, "Cnov")
    assert "nothing in" in str(error.value) and "is called 'Cnov'" in str(error.value)
    assert "did you mean Conv" in str(error.value) and "0 things" not in str(error.value)


def test_an_instance_shows_which_lines_call_it_and_a_snippet(workspace, environments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = Operand("input", RandomTensor("float32", (2, 3), 0, -1.0, 1.0))
    context = {"kind": "function", "call": {"args": ["input"], "kwargs": ["approximate"]}}
    instance = Instance("torch", "torch.nn.functional.gelu", {"approximate": "tanh"}, (data,), (), context)
    workspace.add_captured([Captured(instance, Provenance("command", "net.py", ""))])
    lines = [
        Seen(instance.id, str(tmp_path / "net.py"), 7, f"Net.blocks.{number}", "return F.gelu(x)")
        for number in range(6)
    ]
    sites.replace(workspace, "command net.py", [*lines, Seen("nobody", "/x.py", 1, "", "")])
    text = shown(capsys, workspace, instance.id)
    assert "  net.py:7  return F.gelu(x)  in Net.blocks.0, Net.blocks.1, Net.blocks.2, Net.blocks.3 and 2 more" in text
    pasted = text.partition("To paste\n")[2].partition("\n\n")[0]
    found: dict[str, object] = {}
    exec(textwrap.dedent(pasted).replace("torch.nn.functional.gelu(", "result = torch.nn.functional.gelu("), found)
    assert found["result"].shape == (2, 3)
    sites.replace(workspace, "command net.py", lines[:1])
    assert [x.module for x in sites.of_instances(workspace, [instance.id])] == ["Net.blocks.0"]
    assert "nobody" not in {x.instance for x in sites.of_extraction(workspace, "command net.py")}


def test_an_output_that_is_left_out_before_another_has_its_place() -> None:
    def told(*outputs: str) -> str:
        [line] = programs.lines(Instance("onnx", "TopK", {}, (), outputs, {"opset": {"": 11}}))
        return line.partition("  #")[0]

    assert told("", "Indices") == "_, Indices = TopK()" and told("Values", "") == "Values, _ = TopK()"
    assert told("", "") == told() == "TopK()"


def test_a_tensor_in_a_list_is_told_once() -> None:
    given = (Operand("tensors.0", Tensor.of(np.float32([1]))), Operand("other", Tensor.of(np.float32([2]))))
    call = Instance("torch", "torch.hstack", {"tensors": (Named("value.input", "tensors.0"),)}, given, ("y",), {})
    assert list(programs.lines(call))[-1] == "y = torch.hstack(other, tensors=(tensors.0,))"


def test_what_is_the_same_in_every_run_is_told_as_it_is_though_it_should_be_random(workspace, environments, capsys):
    held = Operand("data", Tensor.of(np.float32([1])))
    program = Instance("onnx", "Dropout", {}, (held,), ("output",), {"opset": {"": 22}})
    details = {"output": "output", "drawn": CONSTANT, "why": "output is the same in every run"}
    outcome = Outcome(INCONSISTENT, "infer", "value", "output 'output' differs", details=details)
    manifest = migrated.Manifest(
        "constant", "i", "onnx", "Dropout", {}, ("data",), ("output",), {}, tags=("nondeterministic",)
    )
    workspace.add_captured([Captured(program, Provenance("node-tests", "cases.py", "t"), None)])
    manifest = msgspec.structs.replace(manifest, instance=program.id)
    migrated.write(migrated.folder(workspace.tests_folder, "constant"), manifest, [held.value], [held.value], {})
    kept = workspace.files.file(kept_outputs("constant", "tvm-onnx", "inputs", environments["tvm"]))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(migrated.pack([Tensor.of(np.float32([-0.75]))]))
    line = Captured(program, Provenance("node-tests", "cases.py", "t"), None).form()
    reduction.save(
        workspace, Reduction("Fbbbbbbbb", environments["tvm"], "tvm-onnx", "inputs", "t1", line, outcome, "constant")
    )
    text = shown(capsys, workspace, "Fbbbbbbbb")
    assert "expected  float32[1], random" in text and "actual    float32[1]: -0.75" in text


def test_a_body_is_told_as_onnx_writes_it_where_that_is_short():
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    def call(count: int) -> Instance:
        names = [f"y{n}" for n in range(count)]
        nodes = [helper.make_node("Constant", [], [x], value_float=1.0) for x in names]
        graph = helper.make_graph(nodes, "body", [], [helper.make_tensor_value_info("y0", TensorProto.FLOAT, [])])
        branch = Message("onnx.GraphProto", graph.SerializeToString())
        return Instance("onnx", "If", {"then_branch": branch}, (), ("out",), {"opset": {"": 16}})

    told = list(programs.lines(call(1)))
    assert told[0].startswith("out = If(then_branch=<GraphProto>)") and told[1] == "  then_branch:"
    assert any("y0 = Constant" in x for x in told[2:])
    assert len(list(programs.lines(call(40)))) == 1, "the script shows it"


@pytest.mark.parametrize(
    ("seems", "row", "told"),
    [
        ("an axis of x longer than that of y", Contrast("shape of x", "2x2", passes=("2x1",)), True),
        ("dim left out", Contrast("keepdim", "left out", passes=("True",)), False),  # which decides, too
        ("dim left out and keepdim=False", Contrast("keepdim", "left out", passes=("True",)), True),
        ("is_causal=1 and float32 inputs", Contrast("shape of x", "2x2", passes=("1x1",)), False),
        ("is_causal=1 and float32 inputs", Contrast("dtype of x", "float32", passes=("float64",)), True),
        ("an axis of x longer than that of y", Contrast("dtype of x", "float32", passes=("float64",)), False),
        ("NaN in an input", Contrast("shape of x", "2", passes=("1",)), False),
        ("rank 2 of x", Contrast("x", "nan", passes=("1",)), False),
        ("input x", Contrast("x", "float32[1]", passes=("left out",)), True),
        ("k=2", Contrast("axis of Softmax", "1", passes=("0",)), False),
        ("axis naming the last axis", Contrast("axis of Softmax", "1", passes=("0",)), True),
        ("NaN in an input", Contrast("x", "nan", passes=("1",)), True),
        ("k=2", Contrast("x", "nan", passes=("1",)), False),
        ("k=2", Contrast("x", "nan", ("1",)), True),
        ("a negative number in x and 0 for gamma or alpha", Contrast("gamma", "left out", ("3.0",)), False),
        ("a tensor for axis", Contrast("axis", "2", ("0", "left out")), False),
        ("0 for alpha", Contrast("gamma", "left out", ("3.0",)), True),
        ("float32 inputs", Contrast("dtype", "float32", ("float64",)), True),
        ("k=2", Contrast("operator", "amin", passes=("min",)), True),
        ("k=2", Contrast("its result", "an output of the model", passes=("what neg takes",)), True),
    ],
)
def test_what_seems_to_decide_is_borne_out_by_each_thing_that_passes(seems: str, row: Contrast, told: bool) -> None:
    program = Instance("onnx", "Op", {}, (Operand("x", Tensor.of(np.float32([1]))),), ("y",), {})
    form = Captured(program, Provenance("s", "f", "t")).form()
    of = Reduction("F", "e", "f", "v", "t", form, Outcome("crash"), near=(9, 3), tried=(6, 0, 0, 4), contrasts=(row,))
    assert borne_out(of, seems) is told
    tried = ((6, 0, 0, 3), (6, 1, 0, 4), (0, 0, 0, 10), (10, 0, 0, 2))
    fewer = ({"near": (9, 2)}, {"despite": 1}, {"explained": False}, *({"tried": x} for x in tried))
    assert not any(borne_out(msgspec.structs.replace(of, **x), seems) for x in fewer)
    assert not borne_out(None, seems) and not borne_out(of, "")
