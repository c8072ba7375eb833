from __future__ import annotations

import subprocess
import sys

import pytest
from commands import cpu_seconds_of_children, opera

from opera.cli import execute
from opera.errors import UsageError

COMMANDS = [
    "doctor",
    "extract",
    "record",
    "constraints",
    "prioritize",
    "coverage",
    "run",
    "findings",
    "show",
    "repro",
    "report",
    "benchmark",
    "bisect",
    "diff",
]
COMMANDS += ["corpus export", "corpus import", "corpus merge"]
COMMANDS += [f"known {name}" for name in ("add", "list", "check", "remove", "import", "export")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_is_instant(command):
    began = cpu_seconds_of_children()
    done = opera(*command.split(), "--help")
    seconds = cpu_seconds_of_children() - began
    assert done.returncode == 0
    assert f"Example: opera {command}" in done.stdout
    assert seconds < 1, "it computes more than a command line has to"


def test_help_shows_the_options_of_the_source_that_is_named():
    shown = {
        name: " ".join(opera("extract", "--source", name, "--help").stdout.split()) for name in ("docter", "deeprel")
    }
    assert all(word in shown["docter"] for word in ("--count", "--seed", "--violating", "default: 40", "--workers"))
    assert "--count" in shown["deeprel"] and "--violating" not in shown["deeprel"]
    assert "--count" not in opera("extract", "--help").stdout


def test_help_imports_nothing_heavy():
    code = "import sys; from opera import cli; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("numpy", "onnx", "tvm", "openvino", "jinja2", "plotly", "msgspec", "sqlite3"):
        assert f"'{heavy}'" not in loaded


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("1.5", 1.5), ("30m", 1800), ("2h", 7200), ("10s", 10)])
def test_times(text, expected):
    assert execute.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-3", "1d", "m", "nan", "1e3"])
def test_other_times_are_refused(text):
    with pytest.raises(UsageError):
        execute.seconds(text)


MISTAKES = [
    (["known", "check"], "the file of known issues known.toml cannot be read: No such file"),
    (["known", "list", "--known", "none.toml"], "the file of known issues none.toml cannot be read"),
    (["known", "list", "--status", "new"], "there is no status 'new'"),
    (["known", "add", "F00000001"], "there is no workspace in results"),
    (["known", "add", "F1", "--fixed-in", "1", "--status", "open"], "--fixed-in does not go with --status open"),
    (["known", "import", "none.json"], "none.json cannot be read: No such file"),
    (["report", "--format", "sarif", "--source", "none"], "there is no folder none"),
    (["run", "--known", "none.toml"], "the file of known issues none.toml cannot be read"),
    (["extract", "no-such-library"], "neither a library that opera knows nor a folder"),
    (["extract", "."], "is no checkout that opera knows"),
    (["extract"], "nothing to extract from"),
    (["extract", "--library", "onnx"], "needs a command after `--`"),
    (["extract", "--library", "onnx", "python", "s.py", "-k", "x"], "needs a command after `--`"),
    (["extract", "--library", "onnx", "--"], "needs a command after `--`"),
    (["extract", "--", "python", "s.py"], "of which library"),
    (["extract", "--library", "onnx", "--", "./s.sh", "x"], "is neither python nor pytest"),
    (["extract", "--library", "onnx", "--", "/usr/local/nowhere/python", "s.py"], "there is no script s.py"),
    (["extract", "--library", "onnx", "--", "python", "-W", "error", "s.py"], "opera cannot run"),
    (["extract", "--library", "onnx", "--", "python"], "opera cannot run"),
    (["extract", "--library", "onnx", "--", "python", "none.py"], "there is no script none.py"),
    (["extract", "--library", "caffe", "--", "python", "s.py"], "operators of 'caffe'"),
    (["extract", "--equipped", "tvm", "--library", "onnx", "--", "pytest"], "one target"),
    (["extract", "--source", "nowhere"], "no migration source called 'nowhere'"),
    (["extract", "--source", "nowhere", "--help"], "no migration source called 'nowhere'"),
    (["extract", "--source", "deeprel", "--seed", "3"], "the source 'deeprel' has no option --seed"),
    (["extract", "onnx", "--seed", "3"], "`opera extract` has no option --seed"),
    (["extract", "--source", "docter", "a", "b"], "--source takes one folder at most"),
    (["record"], "nothing to record"),
    (["record", "--library", "onnx"], "needs a command"),
    (["record", "python", "s.py"], "of which library"),
    (["record", "--library", "onnx", "python", "none.py", "-x"], "there is no script none.py"),
    (["run", "--compiler", "gcc"], "there is no compiler called 'gcc'"),
    (["run", "--library", "caffe"], "there is no library called 'caffe'"),
    (["run", "--python", "./no-python"], "there is no interpreter"),
    (["run", "--time-budget", "soon"], "is no time"),
    (["run", "--compiler", "onnxruntime"], "there is no workspace"),
    (["prioritize"], "there is no workspace"),
    (["prioritize", "--strategy", "best"], "no strategy called 'best'"),
    (["report"], "there is no workspace"),
    (["report", "--format", "docx"], "docx"),
    (["findings"], "there is no workspace"),
    (["findings", "--new", "--disputed"], "--new lists findings, and neither causes nor tests"),
    (["findings", "--by", "colour"], "not grouped by 'colour'"),
    (["show", "F00"], "there is no workspace"),
    (["corpus", "import", "none.jsonl"], "there is no file"),
    (["corpus", "export", "x.jsonl"], "there is no workspace"),
    (["extract", "onnx", "--wokers", "3"], "did you mean --workers"),
    (["run", "--compiler", "opnvino"], "did you mean openvino"),
    (["operators"], "there is no workspace"),
    (["reduce", "all"], "there is no workspace"),
    (["blame", "all"], "there is no workspace"),
    (["bisect", "F1", "--versions", "1"], "there is no workspace"),
    (["findings", "--json", "--disputed"], "--disputed goes with --frontend alone"),
    (["check", "none.py"], "there is no file none.py"),
    (["check", "README.md"], "README.md is nothing that can be checked"),
    (["check", "none.py", "--temporary", "--workspace", "x"], "--temporary keeps nothing"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(x[0]) for x in MISTAKES])
def test_a_mistake_is_told_in_a_few_lines(tmp_path, arguments, message):
    done = opera(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "what to do:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_a_workspace_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    done = opera("prioritize", "--workspace", tmp_path / "file", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a file" in done.stderr
