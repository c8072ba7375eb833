"""IREE: how values travel, what its diagnostics become, and that it has one thread and is quiet.

It is not beside the others: what needs it runs in the environment that `opera env create iree` made,
and skips where there is none.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from opera.compilers import Case, iree
from opera.oracle.comparison import compare
from opera.programs.values import Tensor
from opera.run import doctor, releases

ONNX = iree.FRONTENDS["onnx"]
FLOATS = Tensor.of(np.float32([[1, -2, 3], [4, 5, -6]]))
DRAWN = Tensor.of(np.zeros(9, dtype=np.float32))
MASK = Tensor.of(np.array([True, False]))
STRINGS = Tensor.of(np.array(["a"], dtype=object))
ILLEGAL = (
    "failed to legalize operation 'torch.operator' that was explicitly marked illegal: "
    '%0 = "torch.operator"(%arg0) <{name = "onnx.Det"}> {torch.onnx.axis = 1 : si64}'
)
ASKED = """
import pickle, sys
from pathlib import Path
from opera import compilers
from opera.compilers import iree
iree.prepare()
frontend, told, threads = iree.FRONTENDS["onnx"], [], 0
for place, case in enumerate(pickle.load(sys.stdin.buffer)):
    folder = Path(sys.argv[1]) / str(place)
    folder.mkdir()
    stage = "load"
    try:
        state = frontend.load(compilers.exported(frontend, case, folder))
        stage = "compile"
        state = frontend.compile(state, case)
        threads = threads or len(list(Path("/proc/self/task").iterdir()))
        stage = "infer"
        told.append(("done", frontend.infer(state, case), frontend.infer(state, case)))
    except Exception as error:
        told.append((stage, frontend.unsupported(case, stage, error), frontend.conversion_function(case, error)))
pickle.dump((told, threads), sys.stdout.buffer)
"""


@pytest.fixture
def python() -> str:
    kept = [x for x in releases.kept() if x.made[0].startswith("iree-base-compiler")]
    if not kept:
        pytest.skip("IREE has no environment here: `opera env create iree` makes one")
    releases.create("iree")  # the opera that it finds is this one
    return str(kept[0].python)


def asked(python: str, cases: list[Case], folder: Path) -> tuple[list[tuple[str, Any, Any]], int, str]:
    """Return what became of each case, how many threads there were when the first was compiled, and what was printed.

    What became of it is ("done", the answer, that of a second call) or (stage, what is unsupported, conversion function).
    """
    command = [python, "-c", ASKED, str(folder)]
    # One thread, as workers have it; what is freed is overwritten, so that an answer that lies there is wrong.
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_PERTURB_": "85"}
    done = subprocess.run(command, input=pickle.dumps(cases), capture_output=True, check=True, env=one)
    told, threads = pickle.loads(done.stdout)
    return told, threads, done.stderr.decode()


def apart(case: Case, folder: Path, way: str = "") -> Case:
    """Return the case with its model in a file of its own: the next one that is made has the same name."""
    number = len(list(folder.glob("*.onnx")))
    return Case(
        case.library, case.operator, case.model.rename(folder / f"model{number}.onnx"), case.feeds, case.outputs,
        "inputs", case.artefact, dtypes=case.dtypes, way=way,
    )  # fmt: skip


def test_its_own_words_make_it_unsupported_and_name_the_operator(make: Any) -> None:
    case = make("Det", [FLOATS], [FLOATS])
    assert ONNX.unsupported(case, "load", RuntimeError(ILLEGAL)) == "no conversion of Det"
    assert ONNX.conversion_function(case, RuntimeError(ILLEGAL)) == "Det"
    assert ONNX.unsupported(case, "load", RuntimeError("'tensor.dim' op unexpected rank")) is None
    assert ONNX.conversion_function(case, RuntimeError("'tensor.dim' op unexpected rank")) == "tensor.dim"
    assert ONNX.conversion_function(case, None) == "Det"


def test_both_packages_of_a_release_get_into_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def none(where: Path, wanted: list[str], package: str, version: str, *, optional: bool) -> bool:
        seen.append(wanted)
        raise releases.Unavailable("nothing is installed by a test")

    monkeypatch.setattr(releases, "_installed", none)
    for version, stated in (("3.12.0", "==3.12.0"), ("", "")):
        with pytest.raises(releases.Unavailable):
            releases._make("iree", ["onnx"], version, tmp_path / "environment")
        needed = [f"iree-base-compiler{stated}", f"iree-base-runtime{stated}", f"onnx=={onnx.__version__}"]
        assert seen[-1] == [*needed, "numpy", "msgspec"]


def test_values_travel_and_wrong_answers_are_caught(python: str, make: Any, tmp_path: Path) -> None:
    """One process, for a model takes a second: floats, integers without a sign, two outputs, a scalar, a refusal, ways."""
    right = Tensor.of(np.maximum(FLOATS.array(), 0))
    parts = [Tensor.of(FLOATS.array()[:1]), Tensor.of(FLOATS.array()[1:])]
    scalar, signless = Tensor.of(np.float64(-1e-300)), Tensor.of(np.uint8([0, 200]))
    cases = [apart(make(*given[:-1], **given[-1]), tmp_path) for given in (
        ("Relu", [FLOATS], [right], {}),
        ("Split", [FLOATS], parts, {"axis": 0, "num_outputs": 2}),
        ("Abs", [scalar], [scalar], {}),
        ("Flatten", [signless], [Tensor.of(signless.array()[:, None])], {"axis": 1}),
        ("StringNormalizer", [STRINGS], [STRINGS], {}),
        ("RandomUniformLike", [DRAWN], [DRAWN], {}),
        ("Compress", [FLOATS, MASK], [FLOATS], {"axis": 0}),
    )]  # fmt: skip
    cases += [apart(make("Relu", [FLOATS], [right]), tmp_path, way.name) for way in ONNX.WAYS]
    told, threads, printed = asked(python, cases, tmp_path)
    assert [x[0] for x in told] == ["done"] * 4 + ["load", "done", "load"] + ["done"] * len(ONNX.WAYS), told
    assert compare([right], told[0][1], cases[0].outputs, None, None).symptom == ""
    assert compare([FLOATS], told[0][1], cases[0].outputs, None, None).symptom == "value"
    assert told[1][1] == parts
    assert told[2][1] == [Tensor.of(np.float64(1e-300))]  # float64 stays what it is
    assert told[3][1] == [Tensor.of(np.uint8([[0], [200]]))]
    assert told[4][1] == "no conversion of StringNormalizer"
    assert told[5][1] != told[5][2]  # it draws on, for the compiled model is loaded once
    assert told[6][2] == "Compress"  # told by the place in the model, for the message has none of it
    assert [x[1] for x in told[7:]] == [[right]] * 2
    assert (threads, printed) == (2, "")  # itself, and one of its runtime that waits for files


@pytest.mark.full
def test_the_canaries_are_judged_rightly_in_its_environment(python: str) -> None:
    found = doctor.examine("iree", "onnx", python)
    assert found.mark == doctor.OK, found.note


def test_it_is_imported_nowhere_else() -> None:
    """Neither the adapter nor its rules need IREE: verdicts are judged anew where it is not."""
    code = "import sys; from opera.compilers import iree; print('iree' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr
