"""Record what releases say where they refuse or fail: `python benchmarks/old_words.py WORKSPACE ... > old_words.json`.

WORKSPACE holds runs of several releases, each run into it with its own interpreter:

    opera run --library onnx --limit 500 --no-reduce --compiler openvino --python ENVIRONMENT/bin/python

Of each way of saying it (a frontend, a verdict, a stage, and the row of refusals that decides, or else the normalised
message) one message is kept, as the oldest release said it, and another one where the newest words it otherwise. Rows hold
what the rules of today conclude of it, to be read before they are committed as tests/compilers/old_words.json, which
tests/compilers/test_old_words.py holds later rules to. Of a compiler that is new here, with `--frontend`, they are
tests/compilers/words/COMPILER.json, from all node tests on the newest release.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from opera import compilers
from opera.compilers.shared import messages
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.case import remembered
from opera.programs.verdicts import CRASH, REFUSED, UNSUPPORTED, Raised, Seen
from opera.run import judge
from opera.store import tests
from opera.store.workspace import Workspace
from opera.triage.findings import version_key

FOLDERS = re.compile(r"(?:/[\w.+@-]+)+(?=/site-packages/)")
"""Where packages were installed."""
LONGEST = 2500
"""Characters of a message that are kept."""


def main() -> None:
    """Print the rows as JSON, sorted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspaces", nargs="+", type=Path)
    parser.add_argument("--frontend", default="", help="only this frontend")
    given = parser.parse_args()
    groups: dict[tuple[str, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for folder in given.workspaces:
        with Workspace.open(folder, write=False) as workspace:
            for key, version, row in rows(workspace):
                if given.frontend not in ("", key[0]):
                    continue
                groups[key].setdefault(version, row)
    found = []
    for key in sorted(groups):
        by_version = groups[key]
        versions = sorted(by_version, key=version_key)
        kept = [by_version[versions[0]]]
        if worded(by_version[versions[-1]]) != worded(kept[0]):
            kept.append(by_version[versions[-1]])
        found += [{**row, "versions": versions} for row in kept]
    json.dump(found, sys.stdout, indent=1, ensure_ascii=False, sort_keys=True)
    print()


def rows(workspace: Workspace) -> Any:
    """Yield (group, version, row) of all crashes and refusals whose exception is stored."""
    versions = {name: document["version"] for name, document in workspace.environments().items()}
    operators = {test: origin.operator for test, origin in tests.origins(workspace).items()}
    marks = (CRASH, UNSUPPORTED, REFUSED)
    for verdict in workspace.verdicts("verdict IN (?, ?, ?)", marks, seen=True):
        seen = verdict.outcome.seen
        if seen is None or not seen.raised or len(seen.raised[0].text) > LONGEST:
            continue
        compiler, _, library = verdict.frontend.rpartition("-")
        frontend = compilers.frontend(compiler, library)
        variant = next(x for x in frontend.VARIANTS if x.name == verdict.variant)
        operator = operators.get(verdict.test, "?")
        case = remembered(library, operator, variant.name, variant.artefact)
        text = FOLDERS.sub("", seen.raised[0].text)
        seen = Seen((Raised(seen.raised[0].kinds, text),), seen.blame)
        told = judge.conclude(frontend, case, verdict.outcome.stage, seen)
        error = judge.restored(seen.raised)
        # Others need the model, or name the operator alone.
        place = frontend.conversion_function(case, error) if compiler in ("iree", "opencv", "openvino", "tract") else ""
        rule = decided(frontend, verdict.outcome.stage, error)
        key = (verdict.frontend, told.verdict, verdict.outcome.stage, rule or normalise(cause(text) or text)[:100])
        row = {
            "frontend": verdict.frontend, "operator": operator, "variant": variant.name, "stage": verdict.outcome.stage,
            "kinds": list(seen.raised[0].kinds), "text": text, "verdict": told.verdict, "blame": seen.blame,
            "says": told.claimed if told.verdict == REFUSED else told.message if told.verdict == UNSUPPORTED else "",
            "place": place,
        }  # fmt: skip
        yield key, versions[verdict.environment], row


def decided(frontend: Any, stage: str, error: BaseException) -> str:
    """Return the pattern of the row that decides, among all tables of the frontend's compiler; empty where none does."""
    name = frontend.__class__.__module__.split(".")[2] if not hasattr(frontend, "NAME") else frontend.NAME
    file = messages.file_of(name)
    parts = messages.read(file).values() if file.is_file() else ()
    return next((rule.pattern for rules in parts for rule in rules if rule.fits(stage, error)), "")


def worded(row: dict[str, Any]) -> str:
    """Return a message without what differs from test to test."""
    return normalise(cause(row["text"]) or row["text"])[:60]


if __name__ == "__main__":
    main()
