"""`opera run --balance`: the same number of tests from each migration source."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from opera.errors import UsageError
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.run import driver as stage
from opera.run import show
from opera.run.plan import Selection

pytest.importorskip("onnxruntime")


class Silent:
    total = 0

    def say(self, text: str) -> None: ...
    def step(self, counts: Counter[str], done: int, efficiency: float) -> None: ...
    def begin(self, total: int) -> None:
        self.total = total


def relu(number: int, *sources: str, operator: str = "Relu", rejected: bool = False) -> list[Captured]:
    x = Tensor.of(np.array([-4.0, 2.0, number], dtype=np.float32))
    params = {"bogus": 1} if rejected else {}
    instance = Instance("onnx", operator, params, (Operand("X", x),), ("Y",), {"opset": {"": 16}})
    return [Captured(instance, Provenance(source, "file", f"test{number}")) for source in sources]


def corpus(*instances: list[Captured]) -> list[Captured]:
    return [record for instance in instances for record in instance]


def run(workspace, *compilers: str, **selection) -> tuple[stage.Summary, Silent]:
    progress = Silent()
    chosen = Selection(balance=True, **selection)
    options = stage.Options(compilers=compilers or ("onnxruntime",), workers=1, selection=chosen)
    return stage.run(workspace, options, progress), progress


def taken(workspace) -> dict[str, list[str]]:
    """Source → names of its tests that were run, in corpus order."""
    found: dict[str, list[str]] = {}
    for source, test in workspace.query(
        "SELECT DISTINCT p.source, p.test FROM verdicts v JOIN tests t ON t.id = v.test"
        " JOIN instances i ON i.id = t.instance JOIN provenances p ON p.instance = i.id ORDER BY i.seq"
    ):
        found.setdefault(source, []).append(test)
    return found


def rank(workspace, *best: int) -> None:
    """Rank the instances whose tests have these numbers first, the others after them in corpus order."""
    seqs = {test: seq for seq, test in workspace.query(
        "SELECT i.seq, p.test FROM instances i JOIN provenances p ON p.instance = i.id")}  # fmt: skip
    first = [seqs[f"test{number}"] for number in best]
    order = [*first, *(seq for seq in sorted(set(seqs.values())) if seq not in first)]
    workspace.save_ranking("onnx", "onnxruntime", "by-hand", {}, order)


def test_each_source_has_as_many_tests_as_the_one_with_fewest(workspace):
    workspace.add_captured(
        corpus(
            *(relu(n, "onnx-node-tests") for n in range(6)),
            *(relu(n, "onnx-pytest") for n in range(6, 8)),  # of one family with the node tests
            *(relu(n, "docter") for n in range(10, 13)),
            *(relu(n, "deeprel") for n in range(20, 24)),
        )
    )
    rank(workspace, 7, 5, 12, 23, 22)
    summary, progress = run(workspace)
    assert taken(workspace) == {
        "onnx-node-tests": ["test0", "test5"],
        "onnx-pytest": ["test7"],
        "docter": ["test10", "test11", "test12"],
        "deeprel": ["test20", "test22", "test23"],
    }
    assert progress.total == 9
    assert summary.counts["onnxruntime-onnx"] == {"pass": 9}
    assert run(workspace)[0].counts == {}, "nothing is left to run"


def test_a_limit_is_shared_and_a_rejected_test_makes_room_for_the_next_of_its_source(workspace):
    workspace.add_captured(
        corpus(
            *(relu(n, "onnx-node-tests") for n in range(6)),
            *(relu(n, "docter", rejected=n in (10, 12)) for n in range(10, 16)),
        )
    )
    run(workspace, limit=5)
    expected = {"onnx-node-tests": ["test0", "test1"], "docter": ["test11", "test13"]}
    assert taken(workspace) == expected
    run(workspace, limit=5)
    assert taken(workspace) == expected, "the same command takes the same tests"
    run(workspace, limit=100)
    assert {name: len(tests) for name, tests in taken(workspace).items()} == {"onnx-node-tests": 4, "docter": 4}


def test_a_plain_limit_is_reached_although_tests_are_rejected(workspace):
    workspace.add_captured(corpus(*(relu(n, "onnx-node-tests", rejected=n < 3) for n in range(9))))
    chosen = stage.Options(compilers=("onnxruntime",), workers=1, selection=Selection(limit=4))
    stage.run(workspace, chosen, Silent())
    assert taken(workspace) == {"onnx-node-tests": ["test3", "test4", "test5", "test6"]}


def test_a_test_of_two_sources_counts_for_both(workspace):
    workspace.add_captured(
        corpus(
            relu(0, "onnx-node-tests", "docter"),
            *(relu(n, "onnx-node-tests") for n in range(1, 5)),
            *(relu(n, "docter") for n in range(10, 15)),
        )
    )
    run(workspace, limit=4)
    assert taken(workspace) == {"onnx-node-tests": ["test0", "test1"], "docter": ["test0", "test10"]}


def test_sources_take_turns(workspace):
    """So that a time budget that runs out cuts all of them alike."""
    workspace.add_captured(
        corpus(*(relu(n, "onnx-node-tests") for n in range(4)), *(relu(n, "docter") for n in range(10, 14)))
    )
    run(workspace)
    order = [test for (test,) in workspace.query(
        "SELECT p.test FROM verdicts v JOIN tests t ON t.id = v.test JOIN provenances p ON p.instance = t.instance"
        " ORDER BY v.rowid")]  # fmt: skip
    assert order == ["test0", "test10", "test1", "test11", "test2", "test12", "test3", "test13"]


def test_what_cannot_be_balanced_is_told_before_anything_runs(workspace):
    workspace.add_captured(corpus(relu(0, "onnx-node-tests"), relu(1, "command")))
    with pytest.raises(UsageError, match="all instances of onnx come from one source, tests"):
        run(workspace)
    workspace.add_captured(corpus(relu(2, "docter", operator="Elu")))
    with pytest.raises(UsageError, match="docter has no onnx instance of an operator that matches 'Relu'"):
        run(workspace, operator="Relu")
    with pytest.raises(UsageError, match="--limit 1 leaves no test for each of the 2 sources of onnx"):
        run(workspace, limit=1)
    with pytest.raises(UsageError, match="--balance and --test"):
        show.check(stage.Options(selection=Selection(balance=True, test="abc")))
    assert workspace.query("SELECT COUNT(*) FROM runs") == [(0,)]
