"""What is checked, and the library that it uses, are told from the file alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from opera.check import program
from opera.errors import SourceError, UsageError

SCRIPTS = {
    "import torch": "torch",
    "from torch.nn import functional as F\nimport onnx": "torch",
    "import torchvision.models": "torch",
    "import tensorflow as tf": "keras",
    "def f():\n    from keras import layers": "keras",
    "import onnx.reference": "onnx",
    "import beside": "torch",
    "from package import model": "keras",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("import deeper, beside")
    (tmp_path / "deeper.py").write_text("import torch")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import keras")
    return tmp_path


@pytest.mark.parametrize("text", SCRIPTS, ids=lambda text: text.partition("\n")[0])
def test_the_library_is_the_one_that_is_imported(place: Path, text: str) -> None:
    (place / "s.py").write_text(text)
    assert program.parse("", ["s.py", "--epochs", "1"]).hooks.library == SCRIPTS[text]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import torch, keras", "it imports keras and torch"),
        ("print(1)", "it imports none of keras, onnx, torch"),
    ],
)
def test_where_the_imports_do_not_tell_it_must_be_named(place: Path, text: str, told: str) -> None:
    (place / "s.py").write_text(text)
    with pytest.raises(UsageError, match="of which library") as error:
        program.parse("", ["s.py"])
    assert told in str(error.value)
    command = program.parse("torch", ["s.py", "-x"])
    assert (command.kind, command.file, command.arguments) == ("script", "s.py", ("-x",))


def test_a_file_that_is_no_python_is_told_with_its_line(place: Path) -> None:
    (place / "s.py").write_text("import torch\nprint((1)")
    with pytest.raises(UsageError, match=r"s.py is no Python that this version reads: line 2: '\(' was never closed"):
        program.parse("", ["s.py"])
    assert program.parse("torch", ["s.py"]).file == "s.py", "another interpreter may read it"


def test_commands_are_those_of_record(place: Path) -> None:
    (place / "s.py").write_text("import torch")
    assert program.parse("", ["python", "s.py", "a"]).arguments == ("a",)
    assert program.parse("keras", ["python", "-m", "package"]).kind == "module"
    assert program.parse("onnx", ["pytest", "-x"]).kind == "pytest"
    assert [program.title(program.parse("torch", words)) for words in (["s.py"], ["python", "-m", "package"])] == [
        "s",
        "package",
    ]
    for words in (["pytest"], ["none.py"], []):
        with pytest.raises(UsageError):
            program.parse("", words)
    with pytest.raises(SourceError, match="'caffe'"):
        program.parse("caffe", ["s.py"])


def test_a_model_file_is_one_of_onnx(place: Path) -> None:
    (place / "net.onnx").write_bytes(b"")
    command = program.parse("", ["net.onnx"])
    assert (command.hooks.library, command.kind, command.arguments) == ("onnx", "module", (str(place / "net.onnx"),))
    assert program.title(command) == "net"
    with pytest.raises(UsageError, match="is a model of onnx"):
        program.parse("torch", ["net.onnx"])


def test_a_compiler_without_a_frontend_is_refused_with_those_that_have_one() -> None:
    program.check_compilers(["openvino"], "keras")
    with pytest.raises(UsageError, match="onnxruntime has no frontend for keras") as error:
        program.check_compilers(["onnxruntime"], "keras")
    assert "openvino" in str(error.value)
