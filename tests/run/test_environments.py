"""Which interpreter runs which compiler, and the commands that make environments."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from opera import compilers
from opera.errors import UsageError, WorkspaceError
from opera.run import doctor, environments, releases


@pytest.fixture
def interpreter(tmp_path: Path) -> str:
    """An interpreter that is not the one that runs the tests, by its path."""
    made = tmp_path / "own" / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.symlink_to(sys.executable)
    return str(made)


def test_a_compiler_may_be_named_with_its_interpreter(tmp_path, interpreter, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, pythons = environments.chosen(["tvm", "openvino=own/bin/python", "tvm"], "", tmp_path)
    assert (names, pythons) == (("tvm", "openvino"), {"openvino": interpreter}), "links are kept, paths are absolute"
    assert environments.chosen([], "", tmp_path) == ((), {})
    for word, said in {
        "tvm=own/bin/nothing": "no interpreter own/bin/nothing",
        "gcc=x": "no compiler called 'gcc'",
    }.items():
        with pytest.raises(UsageError, match=said):
            environments.chosen([word], "", tmp_path)


def test_what_the_workspace_keeps_counts_where_nothing_is_named(tmp_path, interpreter):
    environments.remember(tmp_path, "tvm", interpreter)
    environments.remember(tmp_path, "openvino", interpreter)
    both = {"tvm": interpreter, "openvino": interpreter}
    assert environments.chosen([], "", tmp_path) == ((), both)
    assert environments.chosen(["tvm"], "", tmp_path) == (("tvm",), {"tvm": interpreter})
    assert environments.chosen([f"tvm={sys.executable}"], "", tmp_path)[1] == {"tvm": sys.executable}
    assert environments.chosen(["tvm"], sys.executable, tmp_path)[1] == {}, "--python comes before it"
    assert environments.chosen([], "", tmp_path / "check" / "model")[1] == both, "checks lie below"
    assert environments.forget(tmp_path, Path(interpreter).parents[1]) == ["tvm", "openvino"]
    assert environments.chosen([], "", tmp_path)[1] == {}


def test_an_environment_that_is_gone_is_told_where_it_is_needed(tmp_path):
    environments.remember(tmp_path, "tvm", str(tmp_path / "gone" / "bin" / "python"))
    assert environments.chosen(["openvino"], "", tmp_path)[1] == {}
    with pytest.raises(UsageError, match=r"which environments\.toml names") as raised:
        environments.chosen([], "", tmp_path)
    assert "opera env create" in raised.value.fix


@pytest.mark.parametrize("text", ["tvm = 3\n", "tvm\n", "[tvm]\n"])
def test_a_file_that_is_no_table_of_interpreters_is_told(tmp_path, text):
    (tmp_path / environments.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(WorkspaceError, match=r"environments\.toml"):
        environments.remembered(tmp_path)


class Index:
    """Makes environments as uv and pip do, of nothing; `works` are the libraries whose canaries are judged rightly."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, works: set[str]) -> None:
        self.asked: list[str] = []
        self.works = works
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(doctor, "examine", self.examine)

    def run(self, step: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "install" in step:
            self.asked.append(" ".join(x for x in step[step.index("install") :] if not x.startswith("-")))
            site = Path(step[0]).parents[1] / "lib" / "python3.11" / "site-packages"
            about = site / "openvino-2026.9.dist-info"
            about.mkdir(parents=True)
            (about / "METADATA").write_text(
                "Metadata-Version: 2.1\nName: openvino\nVersion: 2026.9\n", encoding="utf-8"
            )
        else:
            (Path(step[-1]) / "bin").mkdir(parents=True)
            (Path(step[-1]) / "bin" / "python").symlink_to(sys.executable)
        return subprocess.CompletedProcess(step, 0, "", "")

    def examine(self, compiler: str, library: str, python: str) -> doctor.Check:
        fine = library in self.works
        return doctor.Check(doctor.OK if fine else doctor.WRONG, "compiler", compiler, "", "a canary died")


def test_an_environment_is_made_found_listed_and_removed(tmp_path, monkeypatch, capsys):
    from opera.cli import env

    monkeypatch.setattr(releases.shutil, "which", lambda name: None)  # no uv
    index = Index(monkeypatch, tmp_path, works={"onnx"})
    root = tmp_path / "w"
    env.create("openvino", workspace=root)
    env.create("openvino", workspace=root)
    assert index.asked == ["install openvino numpy msgspec"], "made once"
    [kept] = releases.kept()
    assert (kept.name, kept.version) == (f"openvino-{sys.implementation.cache_tag}", "2026.9") and kept.size > 0
    assert tomllib.loads((root / environments.FILE).read_text()) == {"openvino": str(kept.python)}
    env.create("openvino", version="2026.9", workspace=root)
    assert index.asked[1:] == ["install openvino==2026.9 numpy msgspec"]
    capsys.readouterr()
    env.show(workspace=root)
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("runs openvino") for line in lines] == [True, False], "the last one made counts"
    env.remove("openvino", workspace=root)
    assert "openvino-2026.9" in capsys.readouterr().out and environments.remembered(root) == {}
    env.remove(kept.name, workspace=root)
    assert releases.kept() == []
    with pytest.raises(UsageError, match="no environment openvino"):
        env.remove("openvino", workspace=root)


def test_an_environment_in_which_no_frontend_works_is_none(tmp_path, monkeypatch):
    Index(monkeypatch, tmp_path, works=set())
    with pytest.raises(releases.Unavailable, match="openvino does not work: a canary died"):
        releases.create("openvino")
    assert releases.kept() == []
    with pytest.raises(UsageError, match="no package of the index"):
        releases.create("inductor")


def test_a_plugins_adapter_is_lent_with_its_entry_point(tmp_path, monkeypatch):
    """A compiler that another package declares is found in its environment, too."""
    plugin = tmp_path / "site" / "elsewhere"
    (plugin).mkdir(parents=True)
    (plugin / "__init__.py").write_text("NAME = 'strange'\n", encoding="utf-8")
    about = tmp_path / "site" / "elsewhere-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[opera.compilers]\nstrange = elsewhere\n", encoding="utf-8")
    where = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(where)], check=True)
    monkeypatch.syspath_prepend(str(plugin.parent))
    compilers.plugins.registered.cache_clear()
    try:
        releases._lend(where, "strange", False)
    finally:
        compilers.plugins.registered.cache_clear()
    code = (
        "from importlib.metadata import entry_points as e;"
        "print(next(x for x in e(group='opera.compilers') if x.name == 'strange').load().NAME)"
    )
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done = subprocess.run([where / "bin" / "python", "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "strange"
