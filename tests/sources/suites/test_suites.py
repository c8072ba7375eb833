from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from suite_reports import damaged, reports

from opera.capture.child import KINDS
from opera.errors import SourceError
from opera.sources import Request, UnitReport
from opera.sources.suites.extract import extraction
from opera.sources.suites.suites import Suite, files, recognise, sources

from .conftest import CASES, GOOD

Checkout = Callable[[dict[str, str]], Path]


def case(name: str) -> dict[str, str]:
    return {f"{CASES}/{name}.py": GOOD.replace("NAME", name)}


def run(root: Path, **options: object) -> dict[str, tuple[UnitReport, list[str]]]:
    found = {}
    for report in reports(recognise(str(root)), **options):  # type: ignore[arg-type]
        found[report.file.removeprefix(f"{CASES}/")] = report, [x.provenance.test for x in report.records()]
        assert damaged(report) == 0
    return found


def test_targets_are_recognised(checkout: Checkout) -> None:
    installed = recognise("onnx")
    assert (installed.name, installed.checkout, installed.version) == ("onnx", False, installed.installed)
    target = recognise(str(checkout({})))
    assert (target.name, target.checkout, target.version, target.installed) == (
        "onnx",
        True,
        "9.9.9",
        installed.version,
    )
    assert target.key != installed.key


def test_pytorch_is_recognised_by_either_name_and_by_its_files(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    installed = recognise("torch")
    assert installed == recognise("pytorch") and not installed.checkout
    assert [file.partition("/")[0] for suite in installed.source.suites for file in files(installed, suite)] == [
        "opinfo"
    ] * 16 + ["moduleinfo"] * 6
    for name in ("test_torch", "test_jit_fuser", "test_ops_gradients", "test_shape_ops", "nn/test_pooling"):
        file = tmp_path / "test" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / "version.txt").write_text("2.6.0a0\n")
    checkout = recognise(str(tmp_path))
    assert (checkout.name, checkout.version, checkout.checkout) == ("pytorch", "2.6.0a0", True)
    found = [file for suite in checkout.source.suites for file in files(checkout, suite)]
    assert found == ["test/nn/test_pooling.py", "test/test_shape_ops.py", "test/test_torch.py"]


DRIVER = """
from opera.programs.program import Instance

def run(recorder, part):
    if part == "bad":
        raise ValueError("no such part")
    recorder.observe(lambda: recorder.record(Instance("onnx", part, {}, (), (), {}), test="it"))
    return 3, 1
"""


def test_a_driver_runs_the_parts_it_is_asked_for_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Checkout
) -> None:
    (tmp_path / "a_driver.py").write_text(DRIVER)
    site = recognise("onnx")
    parts = Suite("driven", "driver", driver="a_driver", parts=("Relu", "bad", "Abs"), path=(str(tmp_path),))
    lost = Suite("lost", "driver", driver="nowhere", parts=("x",))
    target = msgspec.structs.replace(site, source=msgspec.structs.replace(site.source, suites=(parts, lost)))
    found = [(report, [x.program.operator for x in report.records()]) for report in reports(target, workers=1)]
    assert [(x.file, x.status, x.tests, x.failed, operators) for x, operators in found] == [
        ("Relu", "done", 3, 1, ["Relu"]),
        ("bad", "failed", 0, 1, []),
        ("Abs", "done", 3, 1, ["Abs"]),
        ("x", "failed-import", 0, 0, []),
    ]
    assert "no such part" in found[1][0].reason and "nowhere" in found[3][0].reason
    there = msgspec.structs.replace(target, checkout=True)
    assert not [file for suite in (parts, lost) for file in files(there, suite)]


def test_every_declaration_is_complete() -> None:
    for source in sources().values():
        assert source.library or source.compiler
        assert all(suite.kind in KINDS and (suite.globs or suite.parts) for suite in source.suites)
        assert all(bool(suite.driver) == (suite.kind in ("driver", "files")) for suite in source.suites)
        assert all(suite.library or source.library for suite in source.suites)


@pytest.mark.parametrize(
    ("target", "words"), [("nowhere", "neither a library"), ("tvm", "neither a library"), (".", "no checkout")]
)
def test_what_is_no_target_is_refused(target: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=words) as caught:
        recognise(target)
    assert caught.value.cause and caught.value.fix


def test_a_compiler_is_no_library(tmp_path: Path, checkout: Checkout) -> None:
    for name in ("python/tvm/relax/frontend", "tests/python/relax"):
        (tmp_path / "tvm" / name).mkdir(parents=True)
    target = Request(str(tmp_path / "tvm"))
    with pytest.raises(SourceError, match="checkout of the compiler tvm") as caught:
        extraction(target)
    assert "--equipped tvm" in caught.value.fix
    with pytest.raises(SourceError, match="no tests of the compiler openvino"):
        extraction(target, equipped="openvino")
    with pytest.raises(SourceError, match="no test files"):
        extraction(target, equipped="tvm")
    with pytest.raises(SourceError, match="no tests of the compiler tvm"):
        extraction(Request(str(checkout({}))), equipped="tvm")


def test_a_file_that_fails_loses_only_itself(checkout: Checkout) -> None:
    files = {
        f"{CASES}/b_import.py": "import a_module_that_is_not_there",
        f"{CASES}/c_late.py": GOOD.replace("NAME", "late") + "raise RuntimeError('too late')\n",
        f"{CASES}/d_dies.py": GOOD.replace("NAME", "dies")
        + "import os\nprint('last words', flush=True)\nos.kill(os.getpid(), 11)\n",
        f"{CASES}/e_exits.py": "import os\nos._exit(3)\n",
        f"{CASES}/f_leaves.py": "raise SystemExit(0)\n",
    }
    found = run(checkout(case("a") | files | case("g")), workers=1)
    assert [name.removesuffix(".py") for name in found] == [
        "a",
        "b_import",
        "c_late",
        "d_dies",
        "e_exits",
        "f_leaves",
        "g",
    ]
    said = {name.removesuffix(".py"): (report.status, tests) for name, (report, tests) in found.items()}
    assert said["a"] == ("done", ["test_a"])
    assert said["b_import"] == ("failed-import", [])
    assert said["c_late"] == ("failed-import", ["test_late"])  # what came before the failure counts
    assert said["d_dies"] == ("died", ["test_dies"])
    assert said["e_exits"] == ("died", [])
    assert said["f_leaves"] == ("failed-import", [])
    assert said["g"] == ("done", ["test_g"])
    assert "a_module_that_is_not_there" in found["b_import.py"][0].reason
    assert "SIGSEGV" in found["d_dies.py"][0].reason and "last words" in found["d_dies.py"][0].reason
    assert "exit code 3" in found["e_exits.py"][0].reason


def test_a_file_that_hangs_is_stopped_with_all_it_started(checkout: Checkout, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hang = (
        "import subprocess, pathlib\np = subprocess.Popen(['sleep', '3600'])\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(p.pid))\np.wait()\n"
    )
    found = run(checkout({f"{CASES}/a_hangs.py": hang} | case("b")), workers=1, timeout=15.0)
    assert found["a_hangs.py"][0].status == "timeout"
    assert found["b.py"][1] == ["test_b"]
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_finished_files_are_skipped_and_spools_removed(checkout: Checkout) -> None:
    root = checkout(case("a") | case("b"))
    found = []
    for report in reports(recognise(str(root)), done={f"{CASES}/a.py"}):
        assert report.spool.exists()
        found.append(report)
    assert [report.file for report in found] == [f"{CASES}/b.py"]
    assert not found[0].spool.parent.parent.exists()


def test_stopping_early_ends_the_children(checkout: Checkout, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    slow = f"import os, pathlib, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(3600)\n"
    running = reports(recognise(str(checkout(case("a") | {f"{CASES}/z.py": slow}))), workers=2)
    next(running)
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.02)
    running.close()  # type: ignore[attr-defined]
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_damaged_spool_line_is_dropped_and_counted(checkout: Checkout) -> None:
    for report in reports(recognise(str(checkout(case("a"))))):
        with report.spool.open("ab") as spool:
            spool.write(b'{"instance": 1}\n' + report.spool.read_bytes()[:40])
        assert len(list(report.records())) == 1
        assert damaged(report) == 2


SUITE = """
import unittest
import numpy as np
import pytest
from onnx import helper, TensorProto
from onnx.helper import make_model
from onnx.reference import ReferenceEvaluator
import helper_beside

def model(op):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y]))

def test_built():
    made = model("Relu")
    made.graph.node[0].op_type = "Abs"

def test_executed():
    ReferenceEvaluator(model("Neg")).run(None, {"x": np.array([[1.5, 2.5]], np.float32)})

def test_fails():
    assert False

class Old(unittest.TestCase):
    def test_skipped(self):
        self.skipTest("no")

@pytest.mark.parametrize("n", [1, 2])
def test_random(n):
    assert np.random.rand() == pytest.approx(0.5488135)
"""


def test_pytest_suites_run_with_outcomes_unchanged(checkout: Checkout) -> None:
    files = {
        "tests/python/a_test.py": SUITE,
        "tests/python/helper_beside.py": "",
        "tests/python/b_test.py": "import pytest\npytest.importorskip('nowhere')\n",
        "tests/python/c_test.py": "import onnx\ndef test_installed():\n    assert 'site-packages' in onnx.__file__\n",
        "tests/python/conftest.py": "raise RuntimeError('conftest')",
        "onnx/__init__.py": "raise RuntimeError('shadowed')",
    }
    root = checkout(files)
    found = {report.file: (report, list(report.records())) for report in reports(recognise(str(root)))}
    report, records = found["tests/python/a_test.py"]
    assert (report.status, report.tests, report.failed) == ("done", 6, 1)
    assert [(x.program.operator, x.provenance.test) for x in records] == [
        ("Abs", "test_built"),
        ("Neg", "test_executed"),
    ]
    assert records[1].program.inputs[0].value.array().tolist() == [[1.5, 2.5]]
    assert all(x.expected is None and x.provenance.source == "onnx-pytest" for x in records)
    skipped = found["tests/python/b_test.py"][0]
    assert skipped.status == "failed-import" and "nowhere" in skipped.reason
    installed = found["tests/python/c_test.py"][0]
    assert (installed.tests, installed.failed) == (1, 0)
    assert not [*root.rglob("__pycache__"), *root.rglob(".pytest_cache")]


def test_the_environment_of_a_suite_is_its_own(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--nonsense")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    text = f"import os\ndef test_cwd():\n    assert os.getcwd() != {str(Path.cwd())!r} and not os.listdir()\n"
    (report,) = reports(recognise(str(checkout({"tests/python/a_test.py": text}))))
    assert (report.status, report.tests, report.failed) == ("done", 1, 0)
