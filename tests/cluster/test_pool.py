"""A pool over several nodes: every job is answered once, whatever becomes of nodes. The nodes are in this process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nearby import Nearby

from opera.cluster import messages, node, parcels
from opera.cluster import pool as cluster
from opera.cluster.luggage import uses_of
from opera.cluster.pool import ClusterPool
from opera.errors import NoAnswer, WorkspaceError
from opera.pool.workers import ABORT, DONE, ERROR, STARVED, TIMEOUT, UNAVAILABLE, Group, Identity, Result
from opera.programs import migrated
from opera.programs.verdicts import Uses
from opera.store.folders import Folders

JOBS = Group(call="faults.jobs:double", preload=("faults.jobs",))
ALIKE = msgspec.structs.replace(JOBS, identity=Identity("faults.jobs:trait", None))


class Reading(msgspec.Struct, frozen=True):
    """A job that reads tests and makes tests; it adds the text to those that it makes."""

    reads: tuple[str, ...]
    makes: tuple[str, ...] = ()
    text: str = ""

    @property
    def uses(self) -> Uses:
        return Uses(self.reads, self.makes)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK", 0.0)
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)


@pytest.fixture
def files(tmp_path: Path) -> Folders:
    return Folders.of(tmp_path / "workspace")


def opened(machines: Nearby, files: Folders, group: Group = JOBS, **options: Any) -> ClusterPool:
    return ClusterPool({"jobs": group}, files=files, machines=machines, **options)


def answers(pool: ClusterPool, count: int, **options: Any) -> Iterator[Result]:
    for number in range(count):
        pool.submit("jobs", number, seconds=20, tag=number, **options)
    yield from pool.results()


def once(results: list[Result], count: int) -> None:
    """Each of so many jobs was answered once, and rightly."""
    assert sorted(x.tag for x in results) == list(range(count))
    assert [x.payload for x in results] == [2 * x.tag for x in results]


def test_every_job_is_answered_once_and_small_portions_go_to_all(files: Folders) -> None:
    machines = Nearby({"a": 1, "b": 2})
    with opened(machines, files) as pool:
        found = list(answers(pool, 40))
        once(found, 40)
        assert pool.room >= 3 and pool.workers == pytest.approx(3)
    assert all(machines.jobs(name) for name in "ab")
    assert pool.accounts["jobs"].jobs == 40 and pool.accounts["jobs"].forks == 3
    assert len({x.worker for x in found}) == 3
    for worker in {x.worker for x in found}:
        mine = [x for x in found if x.worker == worker]
        assert [x.predecessors for x in mine] == [[y.tag for y in mine[:at]] for at in range(len(mine))]


def test_faults_cost_the_job_alone(files: Folders) -> None:
    with opened(Nearby({"a": 1}), files) as pool:
        pool.submit("jobs", "oh", seconds=20, tag="raises", call="faults.jobs:raises")
        pool.submit("jobs", None, seconds=20, tag="dies", call="faults.jobs:segfault")
        pool.submit("jobs", 60.0, seconds=0.5, tag="hangs", call="faults.jobs:sleep")
        pool.submit("jobs", 4, seconds=20, tag="fresh", fresh=True)
        found = {x.tag: x for x in pool.results()}
    assert {name: x.status for name, x in found.items()} == {
        "raises": ERROR, "dies": ABORT, "hangs": TIMEOUT, "fresh": DONE,
    }  # fmt: skip
    assert (found["dies"].exit, found["dies"].note) == ("SIGSEGV", "just before")
    assert found["fresh"].fresh and found["fresh"].decode(int) == 8 and "ValueError: oh" in found["raises"].message


def test_what_a_lost_node_had_in_hand_is_done_elsewhere(files: Folders) -> None:
    machines, said = Nearby({"a": 1, "b": 1, "c": 1}), []
    machines.dies_at = {"b": 3}
    with opened(machines, files, say=said.append) as pool:
        once(list(answers(pool, 60)), 60)
    assert machines.told["b"] <= 3 < machines.jobs("b")
    [line] = [x for x in said if "is lost" in x]
    assert "its machine died" in line and "jobs of it are done elsewhere" in line


def test_a_job_that_nodes_do_not_survive_is_left_to_the_next_run(files: Folders) -> None:
    machines, said = Nearby({"a": 1}), []
    machines.rots = {"a"}
    with opened(machines, files, say=said.append) as pool:
        found = list(answers(pool, 1))
    assert [x.status for x in found] == [STARVED]
    assert sum("is lost" in x for x in said) == cluster.LOSSES and "it is not tried again" in said[-1]


def test_a_node_that_joins_late_takes_its_share(files: Folders) -> None:
    machines = Nearby({"a": 1})
    with opened(machines, files) as pool:
        found = []
        for result in answers(pool, 60):
            found.append(result)
            machines.workers["late"] = 1
        once(found, 60)
    assert machines.jobs("late")


def test_jobs_go_where_most_workers_are_alike(files: Folders) -> None:
    machines, said = Nearby({"old": 1, "new": 2}), []
    machines.traits = {"old": {"OPERA_TEST_TRAIT": "avx"}, "new": {"OPERA_TEST_TRAIT": "avx512"}}
    with opened(machines, files, ALIKE, say=said.append) as pool:
        once(list(answers(pool, 20)), 20)
        machines.workers["late"], machines.traits["late"] = 1, machines.traits["old"]
        machines.workers["latest"], machines.traits["latest"] = 1, machines.traits["new"]
        once(list(answers(pool, 60)), 60)
    assert (machines.jobs("old"), machines.jobs("late")) == (0, 0)
    assert machines.jobs("new") and machines.jobs("latest")
    assert sum("runs no jobs: versions, options or CPU differ" in x for x in said) == 2


def test_jobs_go_where_the_expected_is(files: Folders) -> None:
    machines = Nearby({"few": 1, "many": 3})
    machines.traits = {"few": {"OPERA_TEST_TRAIT": "1.0"}, "many": {"OPERA_TEST_TRAIT": "2.0"}}
    group = msgspec.structs.replace(JOBS, identity=Identity("faults.jobs:trait", None, "1.0"))
    with opened(machines, files, group) as pool:
        once(list(answers(pool, 5)), 5)
    assert (machines.jobs("few"), machines.jobs("many")) == (5, 0)


def test_a_group_that_no_node_can_do_is_unavailable(files: Folders) -> None:
    machines = Nearby({"a": 1, "b": 1})
    machines.traits = {"a": {"OPERA_TEST_TRAIT": "broken"}, "b": {"OPERA_TEST_TRAIT": "broken"}}
    with opened(machines, files, ALIKE) as pool:
        found = list(answers(pool, 2))
        assert [x.status for x in found] == [UNAVAILABLE] * 2
        assert "LookupError: broken" in found[0].message
        machines.traits = {"a": {"OPERA_TEST_TRAIT": "well"}}
    with opened(machines, files, msgspec.structs.replace(ALIKE, preload=("no_such_module",))) as pool:
        found = list(answers(pool, 1))
        assert found[0].status == UNAVAILABLE and "ModuleNotFoundError" in found[0].message


def test_a_node_with_another_opera_is_left_out(files: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "code", lambda: "another")
    with pytest.raises(NoAnswer, match="another opera is installed there"), opened(Nearby({"a": 1}), files):
        pass
    assert messages.code() == messages.code() != "another"


def test_without_a_node_nothing_begins(files: Folders) -> None:
    with pytest.raises(NoAnswer, match="no node of the cluster can be used"), opened(Nearby({}), files):
        pass


def test_a_node_whose_disk_is_full_is_left_out_and_none_of_its_answers_count(files: Folders) -> None:
    said: list[str] = []
    machines = Nearby({"a": 1, "full": 1}, least_free={"full": 1 << 60})
    with opened(machines, files, say=said.append) as pool:
        once(list(answers(pool, 10)), 10)
        assert machines.jobs("full")
        assert any("its disk is full" in x for x in said)
        machines.least_free, machines.workers = {"a": 1 << 60}, {"a": 1}
    with opened(machines, files) as pool:
        found = list(answers(pool, 2))
        assert {x.status for x in found} == {UNAVAILABLE} and "disk is full" in found[0].message


def test_after_the_time_of_a_run_nothing_begins_and_nothing_goes_on(files: Folders) -> None:
    with opened(Nearby({"a": 1}), files) as pool:
        once(list(answers(pool, 1)), 1)
        now = time.monotonic()
        pool.until(now + 0.3, now + 1.0)
        for number in range(5):
            pool.submit("jobs", 60.0, seconds=100, tag=number, call="faults.jobs:sleep")
        assert list(pool.results()) == []
        assert time.monotonic() >= now + 1.0
        pool.until(time.monotonic(), time.monotonic() + 1000)
        assert list(answers(pool, 3)) == []
    with opened(Nearby({"a": 1}), files) as pool:
        once(list(answers(pool, 1)), 1)
        now = time.monotonic()
        pool.until(now + 1.0, now + 1000)
        for number in range(5):
            pool.submit("jobs", 0.8, seconds=100, tag=number, call="faults.jobs:sleep")
        assert 0 < len(list(pool.results())) < 5, "what was handed out and not begun is not waited for"


def test_a_worker_that_is_retired_gets_no_other_job(files: Folders) -> None:
    with opened(Nearby({"a": 1}), files) as pool:
        [first] = answers(pool, 1)
        pool.retire(first.worker)
        [second] = answers(pool, 1)
        assert second.worker != first.worker and second.predecessors == []


# ---------------------------------------------------------------------- tests that jobs read and make


def write(files: Folders, test: str, text: str) -> Path:
    folder = files.test(test)
    (folder / "saved_model" / "assets").mkdir(parents=True, exist_ok=True)
    (folder / "saved_model" / "model.pb").write_text(text)
    (folder / "manifest.json").write_text("{}")
    return folder


def texts(pool: ClusterPool, *jobs: Reading) -> list[Any]:
    for job in jobs:
        pool.submit("jobs", job, seconds=20, tag=job)
    results = {x.tag: x for x in pool.results()}
    assert {x.status for x in results.values()} == {DONE}, [x.message for x in results.values()]
    return [results[job].payload for job in jobs]


GROUP = Group(call="faults.jobs:reads", preload=("faults.jobs",), env={"OPERA_ROOTS": "/nowhere/of/the/driver"})


@pytest.mark.parametrize("where", ["messages", "store"])
def test_tests_travel_once_to_a_node_and_what_is_made_comes_back(files: Folders, tmp_path: Path, where: str) -> None:
    address = f"file://{tmp_path}/store" if where == "store" else ""
    store = parcels.Store(address) if address else None
    machines = Nearby({"a": 1}, store=address)
    with opened(machines, files, GROUP, store=store) as pool:
        write(files, "t1", "one")
        assert texts(pool, Reading(("t1",)), Reading(("t1",))) == [["one"], ["one"]]
        assert texts(pool, Reading((), ("t2",), "two")) == [[]]
        assert (files.test("t2") / "saved_model" / "model.pb").read_text() == "two"
        assert texts(pool, Reading(("t2",), ("t2",), " and more"), Reading(("t1", "t2"))) == [
            ["two"],
            ["one", "two and more"],
        ]
        assert (files.test("t2") / "saved_model" / "model.pb").read_text() == "two and more"
        moved = [name for request in machines.requests["a"] for name in request.parcels]
        assert len(moved) == (0 if store else 1), "what a node made it has"
        machines.dies_at, machines.workers["b"] = {"a": machines.told["a"]}, 1
        write(files, "t1", "changed")
        assert texts(pool, Reading(("t1", "t2"))) == [["changed", "two and more"]], "another node, a changed test"


def test_on_the_drivers_machine_nothing_moves(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    files, home = Folders.of(tmp_path / "workspace"), messages.Home.of(tmp_path / "workspace")
    machines, group = Nearby({"a": 1}, home=home), msgspec.structs.replace(GROUP, env=files.environment())
    with opened(machines, files, group) as pool:
        write(files, "t1", "one")
        assert texts(pool, Reading(("t1",), ("t2",), "two")) == [["one"]]
        assert texts(pool, Reading(("t2",))) == [["two"]]
        assert not any(request.parcels for request in machines.requests["a"])
        assert not list(machines.nodes["a"]._root.glob("tests/*"))
    assert home.is_here()
    assert not msgspec.structs.replace(home, boot="another machine's").is_here()
    (tmp_path / "workspace").rename(tmp_path / "other")
    assert not home.is_here()


def test_what_the_store_has_lost_travels_with_the_message(files: Folders, tmp_path: Path) -> None:
    store = parcels.Store(str(tmp_path / "store"))
    machines = Nearby({"a": 1}, store=store.address)
    with opened(machines, files, GROUP, store=store) as pool:
        write(files, "t1", "one")
        pool._luggage._stored[parcels.digest(parcels.pack(files.test("t1")))] = None  # it is thought to be there
        assert texts(pool, Reading(("t1",))) == [["one"]]
    assert sum(len(request.parcels) for request in machines.requests["a"]) == 1
    store.put("ab" * 16, b"not what its name says")
    assert store.get("ab" * 16) is None and store.get("cd" * 16) is None


def test_a_node_forgets_tests_and_says_so(files: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "KEPT", 10)
    machines = Nearby({"a": 1})
    with opened(machines, files, GROUP) as pool:
        for number in range(14):
            write(files, f"t{number}", str(number))
            assert texts(pool, Reading((f"t{number}",))) == [[str(number)]]
        assert len(list((machines.nodes["a"]._root / "tests").glob("*/*"))) < 14
        assert texts(pool, Reading(("t0",)), Reading(("t13",))) == [["0"], ["13"]]


def test_a_test_that_two_nodes_add_to_is_the_sum(files: Folders) -> None:
    """Each brings back what it has; whoever reads it next gets both."""
    machines = Nearby({"a": 1, "b": 1})
    with opened(machines, files, GROUP) as pool:
        folder = write(files, "t1", "one")
        pool.submit("jobs", Reading(("t1",), ("t1",), "+"), seconds=20, tag=1)
        pool._step(0.0)
        (folder / "export-x.json").write_text("of another node")
        assert [x.payload for x in pool.results()] == [["one"]]
        parcel = msgspec.msgpack.decode(parcels.pack(folder))
        assert parcel["export-x.json"] == b"of another node" and parcel["saved_model/model.pb"] == b"one+"
        assert pool._luggage._digest("t1") == parcels.digest(parcels.pack(folder))


def test_a_parcel_is_the_folder_and_stays_in_it(tmp_path: Path) -> None:
    folder = write(Folders.of(tmp_path), "t1", "one")
    parcels.unpack(parcels.pack(folder), tmp_path / "copy")
    assert parcels.pack(tmp_path / "copy") == parcels.pack(folder)
    assert (tmp_path / "copy" / "saved_model" / "assets").is_dir()
    for name in ("../outside", "/tmp/outside", "a/../../outside"):
        with pytest.raises(WorkspaceError, match="outside its folder"):
            parcels.unpack(msgspec.msgpack.encode({name: b""}), tmp_path / "copy")
    with pytest.raises(WorkspaceError, match="damaged"):
        parcels.unpack(b"\x00nothing", tmp_path / "copy")
    assert migrated.folder(tmp_path / "tests", "t1") == folder


def test_what_a_job_uses_is_said_by_its_payload() -> None:
    assert uses_of([Reading(("a",), ("b",)), Reading(("a", "c"))]) == Uses(("a", "c"), ("b",))
    assert uses_of(7) == Uses()


def test_no_request_brings_more_than_a_node_should_hold(files: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow node holds little: twice its workers, until it has shown how fast it is."""
    machines = Nearby({"slow": 1, "fast": 1})
    given: Counter[str] = Counter()
    with opened(machines, files) as pool:
        for number in range(400):
            pool.submit("jobs", number, seconds=20, tag=number)
        pool._step(0.0)
        given.update({name: machines.jobs(name) for name in ("slow", "fast")})
        assert given == {"slow": 2, "fast": 2}
        once(list(pool.results()), 400)
