"""`opera extract --source deeprel FOLDER`: what DeepREL publishes or leaves behind, as a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from opera.programs.program import Captured
from opera.sources import Extraction, Finished, Totals, Unit, UnitReport, telling
from opera.sources.deeprel import plans as files
from opera.sources.deeprel import published, stage, units
from opera.sources.deeprel.plans import Plan
from opera.sources.deeprel.published import Published, Records
from opera.sources.deeprel.stage import Settings
from opera.sources.suites import suites
from opera.store.relations import SOURCE, insert
from opera.store.workspace import Workspace

AT_ONCE = 50
"""Records of a plan: those before one that kills its process are run again."""


def extractions(
    workspace: Workspace, *, folder: Path, found: Published, library: str, settings: Settings
) -> Iterator[Extraction]:
    """Run the recorded invocations of a folder, then verify its candidate lists on what the workspace holds.

    Args:
        workspace: Open for writing.
        folder: Where it was found.
        found: What the folder holds.
        library: Only this one; empty for all.
        settings: How.
    """
    lines = list(published.unread_lines(found.unread))
    if lines:
        print(f"{len(found.unread)} files are not used:")
        for line in lines[: telling.SHOWN]:
            print(f"  {line}")
    recorded = {x.library for x in found.records}
    chosen = [library] if library else [x for x in sorted({*recorded, *found.candidates}) if stage.installed(x)]
    for name in chosen:
        if name in recorded:
            yield Replays(folder, name, [x for x in found.records if x.library == name], settings)
        lists = found.candidates.get(name)
        if not lists:
            continue
        if not workspace.operators(name):
            print(
                f"{name}: {len(lists)} candidate lists, and no instances to verify them on; run `opera extract {name}`"
            )
            continue
        partners = {_operator(title): [_operator(x) for x in titles] for title, titles in lists.items()}
        yield stage.Relations(workspace, name, settings, partners, str(folder.resolve()))


def _operator(title: str) -> str:
    return title.removeprefix("tf.")


class Replays:
    """The recorded invocations of a library's APIs; see opera.sources.Extraction."""

    things = "batches of records"

    def __init__(self, folder: Path, library: str, records: list[Records], settings: Settings) -> None:
        self.library, self.records, self.settings = library, records, settings
        version = suites.version_of(library)
        self.key = f"{SOURCE} records of {folder.resolve()} on {library} {version}"
        self.about = {
            "target": str(folder), "name": SOURCE, "version": "published", "installed": version, "equipped": ""
        }  # fmt: skip
        self.taken = self.refused = 0
        self.apis: set[str] = set()
        self.dead: dict[str, str] = {}
        self.errors: Counter[str] = Counter()
        self.crashes: list[str] = []

    def names(self) -> Collection[str]:
        return [name for name, _, _ in self._parts()]

    def units(self) -> Iterator[Unit]:
        for name, held, start in self._parts():
            yield units.unit(SOURCE, name, self.library, partial(self._plan, held, start))

    def _parts(self) -> Iterator[tuple[str, Records, int]]:
        for held in self.records:
            for start in range(0, len(held.records), AT_ONCE):
                yield f"{held.title} of {held.file} from {start}", held, start

    def _plan(self, held: Records, start: int) -> Plan:
        part = slice(start, start + AT_ONCE)
        return Plan(
            held.library, "", [], seconds=self.settings.timeout,
            title=held.title, file=held.file, names=held.names[part], records=held.records[part],
        )  # fmt: skip

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        with workspace.transaction():
            return insert(workspace, records)

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        ended = units.after(unit, report)
        if isinstance(ended, Unit):
            return ended
        result, title = files.replayed(report.plan), ended.plan.title
        self.taken += result.taken
        self.refused += result.refused
        self.errors.update(result.errors)
        self.apis.add(title)
        if result.dead:
            self.dead[title] = result.dead
        self.crashes += map(units.told, ended.crashes)
        return Finished(report=report, crashes=ended.crashes, document={"replayed": result})

    def progress(self, totals: Totals) -> str:
        return f"{len(self.apis)} APIs, {totals.captured} captured"

    def tell(self, totals: Totals) -> bool:
        print(
            f"{self.library}: records of {len(self.apis)} APIs ({len(self.dead)} not there any more), {self.taken} taken,"
            f" {self.refused} refused; {totals.captured} captured: {totals.new} new instances, {totals.seconds:.0f} s"
        )
        telling.show_list("APIs are not run", [f"{name}: {why}" for name, why in sorted(self.dead.items())])
        refused = [f"{count} × {why}" for why, count in self.errors.most_common(5)]
        telling.show_list("most frequent reasons of refusal", refused)
        telling.show_list("calls hung or killed the library's process", self.crashes)
        return bool(self.taken)
