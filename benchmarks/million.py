"""A million instances in one workspace: `python benchmarks/million.py REAL [COUNT] [--verdicts N] [--keep DIR]`.

REAL is a workspace with instances of PyTorch (`opera extract torch`) and some verdicts of its frontends. COUNT instances are
made of its own by varying sizes, numbers and elements, and are stored as those of an extraction. N verdicts, which are REAL's
own with other tests, are stored as a run stores them; what fails stands for findings of 20 converters each, so that there are
many.

Prints a line of JSON a measurement: CPU and wall seconds of a command with all that it starts, and the peak of its memory
(maximum resident set). `plan` is all that `opera run` does up to the first job that it would hand to a pool.
With --keep, a workspace that is there already is measured again, and nothing is made.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import temporary
from opera.errors import OperaError
from opera.oracle.signature import Signature
from opera.pool.workers import DONE, Account, Group, Result
from opera.programs.program import Captured, Provenance, identity, parse
from opera.programs.values import CONTAINERS
from opera.run import driver, plan
from opera.run.ledger import verdict_of
from opera.run.worker import Description
from opera.store import corpus
from opera.store.rows import Test, Verdict
from opera.store.workspace import Workspace

OPERA = [sys.executable, "-m", "opera.cli"]
LIBRARY = "torch"
CONVERTERS = 20
"""Findings that one of REAL's own stands for."""
CONFIRMED = 3
"""Members of a finding that a run confirms."""
BATCH = 1000
"""Verdicts that are stored at a time: about as many as a quick run has in a second."""


# ---------------------------------------------------------------------- instances


class Variation:
    """What makes another instance of one: sizes of dimensions are changed alike in all its tensors."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sizes: dict[int, int] = {}

    def size(self, old: int) -> int:
        """Return what a dimension of this size is now."""
        if old < 2:
            return old
        return self.sizes.setdefault(old, old + self.rng.choice((0, 0, 0, 1, 1, 2, 3)))

    def value(self, form: Any) -> Any:
        """Return another parameter or input, encoded as the old one."""
        if isinstance(form, dict):
            kind, body = next(iter(form.items()))
            if kind in ("$tensor", "$random"):
                return {kind: self.tensor(body)}
            if kind == "$tuple":
                return {kind: [self.value(x) for x in body]}
            return form
        if isinstance(form, list):
            return [self.value(x) for x in form]
        if isinstance(form, bool) or self.rng.random() > 0.4:
            return form
        if isinstance(form, int):
            return self.sizes.get(form, form + self.rng.choice((0, 1, 1, 2)) if form >= 0 else form)
        return form * self.rng.choice((0.5, 2.0, 3.0)) if isinstance(form, float) else form

    def tensor(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a tensor of another shape; its elements are the old ones, turned around and repeated."""
        shape = [self.size(x) for x in body["shape"]]
        if "seed" in body:
            return body | {"shape": shape, "seed": self.rng.randrange(1 << 31)}
        if "data" not in body:
            return body
        items = np.frombuffer(base64.b64decode(body["data"]), np.dtype(CONTAINERS[body["dtype"]]))
        if not len(items):
            return body
        items = np.resize(np.roll(items, self.rng.randrange(len(items))), math.prod(shape))
        return body | {"shape": shape, "data": base64.b64encode(items.tobytes()).decode()}


def varied(form: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return another instance like one, encoded as it."""
    variation = Variation(rng)
    inputs = [x | {"value": variation.value(x["value"])} for x in form["inputs"]]
    return form | {"inputs": inputs, "params": {name: variation.value(x) for name, x in form["params"].items()}}


def lines(real: Workspace, count: int) -> Iterator[corpus.Line]:
    """Yield so many distinct instances: first those that are there, then others made of them, again and again."""
    rng, seen, number, again = random.Random(1), set[bytes](), 0, False
    while number < count:
        for _, _, document, _ in real.documents(LIBRARY):
            form = msgspec.json.decode(document)
            if "calls" in form:
                continue
            if again:
                form = varied(form, rng)
                document = msgspec.json.encode(form, order="sorted")
            name = bytes.fromhex(identity(document))
            if name in seen:
                continue
            with suppress(OperaError):
                parse(form)
                seen.add(name)
                yield corpus.Line(form, [Provenance("varied", f"{form['operator']}.py", f"test_{number}")])
                number += 1
            if number == count:
                return
        again = True


# ---------------------------------------------------------------------- verdicts


def descriptions() -> dict[str, dict[str, Any]]:
    """Return compiler → what it says of itself: nobody is asked, so that no compiler need be imported."""
    names = ("onnxexport", "openvino", "tvm")
    told = {name: Description(name, "1.0", {}, "3.11", "2.0", "x86_64") for name in names}
    return {name: msgspec.to_builtins(found) for name, found in told.items()}


def frontends(workspace: Workspace) -> list[plan.InstalledFrontend]:
    """Return the frontends, their environments stored."""
    found = {name: {k: v for k, v in x.items() if k != "error"} for name, x in descriptions().items()}
    return [plan.installed(workspace, name, LIBRARY, x) for name, x in found.items()]


def verdicts(real: Workspace, workspace: Workspace, count: int) -> dict[str, float]:
    """Store verdicts of the tests that are ranked best, the same number on each frontend."""
    rng, targets, members = random.Random(2), frontends(workspace), Counter[str]()
    known = {target.name: list(real.verdicts("frontend = ?", (target.name,), seen=True)) for target in targets}
    each = count // len(targets)
    _, ranked, _ = workspace.ranking(LIBRARY, targets[0].compiler)
    chosen = [(name, operator, plan.test_id(name, targets[0].exporter)) for name, operator in ranked[:each]]
    workspace.save_tests(targets[0].exporter, (Test(test, name, "valid", "", 0.01) for name, _, test in chosen))
    number = workspace.start_run({"workers": 2})

    def drawn(target: plan.InstalledFrontend, test: str, operator: str) -> Verdict:
        old = rng.choice(known[target.name])
        outcome = old.outcome
        if old.finding and outcome.conversion_function:
            other = f"{outcome.conversion_function}_{rng.randrange(CONVERTERS)}"
            outcome = msgspec.structs.replace(outcome, conversion_function=other)
        made = verdict_of(target, test, operator, old.variant, outcome)
        members[made.finding] += 1
        confirmation = "confirmed" if members[made.finding] <= CONFIRMED else "unconfirmed"
        return msgspec.structs.replace(made, confirmation=confirmation if made.finding else "")

    storing, slowest, stored = 0.0, 0.0, 0
    for target in targets:
        for first in range(0, each, BATCH):
            batch = [drawn(target, test, operator) for _, operator, test in chosen[first : first + BATCH]]
            operators = {test: operator for _, operator, test in chosen[first : first + BATCH]}
            signed = {
                x.finding: msgspec.json.encode(Signature.of(x.frontend, operators[x.test], x.outcome))
                for x in batch
                if x.finding
            }
            began = time.process_time()
            workspace.save_verdicts(number, batch, signed)
            workspace.save_run(number, {}, finished=False)
            took = time.process_time() - began
            storing, slowest, stored = storing + took, max(slowest, took / len(batch)), stored + len(batch)
    workspace.save_run(number, {}, finished=True)
    return {
        "verdicts": stored, "a_cpu_second": round(stored / storing), "the_slowest_thousand_a_cpu_second": round(1 / slowest),
    }  # fmt: skip


# ---------------------------------------------------------------------- the plan of a run


class Stopped(Exception):
    """The first test would begin now."""


class Nobody:
    """A pool that knows what compilers are, and stops a run at its first job."""

    workers, room = 2.0, 2

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.accounts = dict.fromkeys((f"{name}-{LIBRARY}" for name in descriptions()), Account())
        self._told: list[Result] = []

    def add(self, name: str, group: Group) -> None: ...
    def until(self, begin: float, end: float) -> None: ...
    def retire(self, number: int) -> None: ...

    def submit(self, group: str, payload: Any, *, tag: Any = None, call: str = "", **_: Any) -> None:
        if not call.endswith("describe"):
            raise Stopped
        self._told.append(Result(tag=tag, group=group, status=DONE, payload=descriptions()[payload]))

    def results(self) -> Iterator[Result]:
        while self._told:
            yield self._told.pop()

    def __enter__(self) -> Nobody:
        return self

    def __exit__(self, *_: object) -> None: ...


class Silent:
    def say(self, text: str) -> None: ...
    def begin(self, total: int) -> None: ...
    def step(self, *_: Any) -> None: ...


def planned(root: Path) -> None:
    """Do all that `opera run` does before its first test."""
    options = driver.Options(compilers=tuple(descriptions()), libraries=(LIBRARY,))
    with Workspace.open(root, write=True) as workspace, suppress(Stopped):
        driver.run(workspace, options, Silent(), Nobody())
        raise SystemExit("the run had nothing to do")


# ---------------------------------------------------------------------- measuring


def measure(name: str, command: list[object]) -> None:
    """Run a command to its end, which must be good, and print what it took."""
    began = time.perf_counter()
    process = subprocess.Popen([str(x) for x in command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}")
    told = {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "seconds": round(time.perf_counter() - began, 1),
        "peak_mib": round(used.ru_maxrss / 1024),
    }  # fmt: skip
    print(json.dumps({name: told}), flush=True)


def commands(root: Path) -> dict[str, list[object]]:
    """Return the commands that look something up."""
    with Workspace.open(root, write=False) as workspace:
        finding = workspace.query("SELECT id FROM findings LIMIT 1")[0][0]
        instance, operator = workspace.query("SELECT id, operator FROM instances WHERE seq = 1000")[0]
    at = ["--workspace", root]
    return {
        "report": [*OPERA, "report", *at],
        "report --format json": [*OPERA, "report", "--format", "json", *at],
        "report --format html": [*OPERA, "report", "--format", "html", "--output", root / "report.html", *at],
        "findings": [*OPERA, "findings", *at],
        "show FINDING": [*OPERA, "show", finding, *at],
        "show INSTANCE": [*OPERA, "show", instance, *at],
        "show OPERATOR": [*OPERA, "show", operator, *at],
        "operators": [*OPERA, "operators", *at],
    }


def make_corpus(given: argparse.Namespace) -> None:
    """Write the corpus file."""
    file = given.keep.with_suffix(".jsonl")
    with Workspace.open(given.real, write=False) as real:
        corpus._write(file, lines(real, given.count))
    print(json.dumps({"instances": given.count, "file_mb": round(file.stat().st_size / 1e6)}), flush=True)


def store(given: argparse.Namespace) -> None:
    """Store what the file holds, all or none, as the instances of one file of a suite."""
    with given.keep.with_suffix(".jsonl").open("rb") as file, Workspace.open(given.keep, write=True) as workspace:
        file.readline()  # the header
        read = (_line.decode(line) for line in file)
        workspace.add_captured(Captured(parse(x.instance), x.provenances[0]) for x in read)


_line = msgspec.json.Decoder(corpus.Line)


def make_verdicts(given: argparse.Namespace) -> None:
    """Store the verdicts."""
    with Workspace.open(given.real, write=False) as real, Workspace.open(given.keep, write=True) as workspace:
        told = verdicts(real, workspace, given.verdicts)
    size = (given.keep / "opera.sqlite").stat().st_size
    print(json.dumps({"store": told, "workspace_mb": round(size / 1e6)}), flush=True)


STEPS = {"corpus": make_corpus, "store": store, "verdicts": make_verdicts, "plan": lambda given: planned(given.keep)}


def main() -> None:
    """Make what is to be measured, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("real", type=Path)
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--verdicts", type=int, default=300_000)
    parser.add_argument("--keep", type=Path, help="make the workspace here, and leave it")
    parser.add_argument("--only", default="", help="measure this one alone, of a workspace that was kept")
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        STEPS[given.step](given)
        return
    with ExitStack() as stack:
        root = given.keep or stack.enter_context(temporary.folder("million")) / "workspace"
        # The peak of a process is at least that of the one that forked it: what takes memory is done in others.
        step = [
            sys.executable,
            __file__,
            given.real,
            given.count,
            "--verdicts",
            given.verdicts,
            "--keep",
            root,
            "--step",
        ]
        if not (root / "opera.sqlite").is_file():
            if not root.with_suffix(".jsonl").is_file():  # an interrupted measurement has left one
                subprocess.run([*map(str, step), "corpus"], check=True)
            measure("storing", [*step, "store"])
            root.with_suffix(".jsonl").unlink()
            measure("prioritize", [*OPERA, "prioritize", "--workspace", root])
            subprocess.run([*map(str, step), "verdicts"], check=True)
        wanted = {
            "prioritize": [*OPERA, "prioritize", "--workspace", root],
            "run: its plan": [*step, "plan"],
            **commands(root),
        }
        if given.only:
            wanted = {name: command for name, command in wanted.items() if name == given.only}
        else:
            wanted.pop("prioritize")
        for name, command in wanted.items():
            measure(name, command)


if __name__ == "__main__":
    main()
