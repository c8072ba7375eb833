"""`opera extract --source deeprel FOLDER`: what DeepREL publishes or leaves behind, as a source."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from opera import temporary
from opera.sources.deeprel import published, stage
from opera.sources.deeprel.plans import Plan
from opera.sources.deeprel.pool import Done, Pool
from opera.sources.deeprel.published import Published, Records
from opera.sources.deeprel.stage import Settings
from opera.sources.suites import suites
from opera.sources.suites.extract import DONE
from opera.store.relations import SOURCE
from opera.store.workspace import Workspace

LINE_SECONDS = 2.0
AT_ONCE = 50
"""Records of a plan: those before one that kills its process are run again."""


def extract(workspace: Workspace, folder: Path, found: Published, library: str, settings: Settings) -> bool:
    """Run the recorded invocations of a folder, then verify its candidate lists on what the workspace holds.

    Args:
        workspace: Open for writing.
        folder: Where it was found.
        found: What the folder holds.
        library: Only this one; empty for all.
        settings: How.

    Returns False if nothing could be run.
    """
    if found.unread:
        print(f"{len(found.unread)} files are not used:")
        for line in list(published.unread_lines(found.unread))[: stage.SHOWN]:
            print(f"  {line}")
    ran = []
    recorded = {x.library for x in found.records}
    chosen = [library] if library else [x for x in sorted({*recorded, *found.candidates}) if stage.installed(x)]
    for name in chosen:
        if name in recorded:
            ran.append(_replay(workspace, folder, name, found, settings))
        lists = found.candidates.get(name)
        if not lists:
            continue
        if not workspace.operators(name):
            print(
                f"{name}: {len(lists)} candidate lists, and no instances to verify them on; run `opera extract {name}`"
            )
            continue
        partners = {_operator(title): [_operator(x) for x in titles] for title, titles in lists.items()}
        ran.append(stage.extract(workspace, name, settings, partners, str(folder.resolve())))
    return any(ran)


def _operator(title: str) -> str:
    return title.removeprefix("tf.")


class _Totals:
    """What came of the records of a library."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.apis: set[str] = set()
        self.dead: dict[str, str] = {}
        self.errors: Counter[str] = Counter()
        self.crashes: list[str] = []

    def add(self, done: Done) -> None:
        result = done.replayed
        self.counts.update(taken=result.taken, refused=result.refused, troubled=done.report.status != DONE)
        self.errors.update(result.errors)
        self.apis.add(done.plan.title)
        if result.dead:
            self.dead[done.plan.title] = result.dead
        self.crashes += map(stage.told, done.crashes)


def _replay(workspace: Workspace, folder: Path, library: str, found: Published, settings: Settings) -> bool:
    """Run the records of a library; return whether one was taken, now or before."""
    version = suites.version_of(library)
    started, key = time.monotonic(), f"{SOURCE} records of {folder.resolve()} on {library} {version}"
    if settings.rerun:
        workspace.forget_extraction(key)
    told = {"target": str(folder), "name": SOURCE, "version": "published", "installed": version, "equipped": ""}
    known = workspace.extraction(key, told)
    totals = _Totals()
    records = [x for x in found.records if x.library == library]
    last = time.monotonic()
    with (
        temporary.folder("deeprel") as place,
        Pool(SOURCE, library, place, settings.workers) as pool,
    ):
        for done in pool.run(_plans(records, known, settings)):
            captured, new, document = stage.stored(workspace, done)
            document["replayed"] = done.replayed
            workspace.save_extraction_file(key, done.report.file, done.report.status, document, crashes=done.crashes)
            totals.add(done)
            totals.counts.update(captured=captured, new=new)
            if time.monotonic() - last > LINE_SECONDS:
                last = time.monotonic()
                print(f"{len(totals.apis)} APIs, {totals.counts['captured']} captured", file=sys.stderr, flush=True)
    _tell(library, totals, time.monotonic() - started)
    return bool(totals.counts["taken"]) or bool(known)


def _plans(records: list[Records], known: set[str], settings: Settings) -> Iterator[tuple[str, Plan]]:
    for held in records:
        for start in range(0, len(held.records), AT_ONCE):
            name = f"{held.title} of {held.file} from {start}"
            if name not in known:
                part = slice(start, start + AT_ONCE)
                names, chosen = held.names[part], held.records[part]
                yield name, Plan(
                    held.library, "", [], seconds=settings.timeout,
                    title=held.title, file=held.file, names=names, records=chosen,
                )  # fmt: skip


def _tell(library: str, totals: _Totals, seconds: float) -> None:
    counts = totals.counts
    print(
        f"{library}: records of {len(totals.apis)} APIs ({len(totals.dead)} not there any more), {counts['taken']} taken,"
        f" {counts['refused']} refused; {counts['captured']} captured: {counts['new']} new instances, {seconds:.0f} s"
    )
    stage.show_list(
        f"{len(totals.dead)} APIs are not run:", [f"{name}: {why}" for name, why in sorted(totals.dead.items())]
    )
    stage.show_list("refused:", [f"{count} × {why}" for why, count in totals.errors.most_common(5)])
    stage.show_list(f"{len(totals.crashes)} calls hung or killed the library's process:", totals.crashes)
