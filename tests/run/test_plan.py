"""What is to be run: made when it is come to, found by its test, and known without importing a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice

import pytest
from faults.onnx_faults import relu

from opera.run import plan
from opera.run.plan import InstalledFrontend, Lookup, Selection
from opera.run.quota import Quota
from opera.store import rows
from opera.store.workspace import Workspace

pytest.importorskip("onnx")
EXPORTER = "an exporter"
FRONTENDS = [InstalledFrontend(f"{name}-onnx", name, "onnx", "1", f"of {name}", EXPORTER, ()) for name in ("a", "b")]


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """Six instances of two operators, ranked backwards for `a`; all but the last have tests, and one is rejected."""
    records = [relu(n, "Relu" if n % 2 else "LeakyRelu") for n in range(6)]
    workspace.add_captured(records)
    workspace.save_ranking("onnx", "a", "by-hand", {}, list(reversed(workspace.corpus("onnx"))))
    made = [rows.Test(plan.test_id(x.program.id, EXPORTER), x.program.id, "valid") for x in records[:5]]
    workspace.save_tests(EXPORTER, [*made[:4], rows.Test(made[4].id, made[4].instance, "invalid")])
    return workspace


def instances(filled: Workspace) -> list[str]:
    return [name for name, _ in filled.corpus("onnx").values()]


def rejected(filled: Workspace) -> set[str]:
    return {instances(filled)[4]}


def test_frontends_take_turns_by_relative_rank(filled: Workspace) -> None:
    queues, unranked = plan.queues(filled, FRONTENDS, Selection())
    assert unranked == {"b-onnx": 6}
    found = list(plan.merged(queue.items() for queue in queues))
    names = instances(filled)
    assert [x.instance for x in found if x.frontend.name == "a-onnx"] == names[::-1]
    assert [x.instance for x in found if x.frontend.name == "b-onnx"] == names
    assert [x.frontend.name for x in found] == ["a-onnx", "b-onnx"] * 6
    assert all(x.test == plan.test_id(x.instance, EXPORTER) for x in found)


@pytest.mark.parametrize(("limit", "total"), [(None, 10), (2, 4), (5, 10), (9, 10)])
def test_with_a_limit_no_more_are_come_to_and_one_that_is_rejected_is_replaced(
    filled: Workspace, limit: int | None, total: int
) -> None:
    selection, wrong = Selection(limit=limit), rejected(filled)
    queues, _ = plan.queues(filled, FRONTENDS, selection)
    quota = Quota(queues, selection)
    assert quota.total(queues, lambda _, instance: instance in wrong) == total
    upcoming = quota.upcoming(queues, lambda _, instance: instance in wrong)
    first = list(islice(upcoming, 2))
    assert all(quota.take(item) for item in first)
    if limit == 2:
        names = instances(filled)
        item = next(iter(quota.replacements(first[0])))
        assert item.instance == names[2], "the next after the sixth and the fourth: the fifth is rejected"
        assert quota.take(item)
        assert [x.instance for x in upcoming if quota.take(x)] == [names[1], names[3]]


def test_a_test_is_found_where_the_run_comes_to_it(filled: Workspace) -> None:
    names = instances(filled)
    test = plan.test_id(names[1], EXPORTER)
    found = Lookup(filled, FRONTENDS, Selection()).get("b-onnx", test)
    assert found is not None and (found.instance, found.operator, found.test) == (names[1], "Relu", test)
    assert found.frontend == FRONTENDS[1]
    for frontend, name, selection in (
        ("c-onnx", test, Selection()),
        ("a-onnx", "f" * 20, Selection()),
        ("a-onnx", test, Selection(operator="Leaky*")),
        ("a-onnx", test, Selection(test=names[2])),
        ("a-onnx", test, Selection(instances=frozenset(names[2:]))),
    ):
        assert Lookup(filled, FRONTENDS, selection).get(frontend, name) is None
    other = [InstalledFrontend("a-onnx", "a", "onnx", "1", "", "another exporter", ())]
    assert Lookup(filled, other, Selection()).get("a-onnx", test) is None, "another exporter makes another test of it"
    lookup = Lookup(filled, [], Selection())
    lookup.add(found)
    assert lookup.get("b-onnx", test) is found


def test_what_only_a_compilers_suite_covers_is_not_found(workspace: Workspace) -> None:
    record = relu(1, "Relu")
    workspace.add_captured([record], equipped="a")
    test = plan.test_id(record.program.id, EXPORTER)
    workspace.save_tests(EXPORTER, [rows.Test(test, record.program.id, "valid")])
    assert Lookup(workspace, FRONTENDS, Selection()).get("a-onnx", test) is None
    assert workspace.libraries() == [] and workspace.operators("onnx") == set() and workspace.corpus("onnx") == {}


def test_rules_are_read_without_importing_compilers() -> None:
    pytest.importorskip("tvm")
    code = "import sys; from opera.run import rules; rules.of('tvm', 'onnx'); sys.exit('tvm' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(x for x in sys.path if x)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
