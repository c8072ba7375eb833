"""`opera known`: what its commands do and tell, for a terminal."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from opera import errors, temporary
from opera.errors import UsageError
from opera.report.words import clean, one_line, standing
from opera.store import runs
from opera.store.workspace import DATABASE, Workspace
from opera.triage import known_add, known_check, known_exchange
from opera.triage.distinct import causes
from opera.triage.findings import findings
from opera.triage.known import STATUSES, Entry, Known, mark
from opera.triage.known_edit import Document, editing

ALL = "all"
"""Instead of findings: those that are not known yet, an entry each."""


def add(root: Path, path: Path, names: Sequence[str], said: Mapping[str, str]) -> None:
    """Write into the file what is said of findings, as one entry; of `all` new ones, an entry each.

    What the file knows already may be gone from the workspace `root`, as what is fixed is, or the workspace itself may be.
    """
    with editing(path, make=True) as document:
        if all(known_add.naming(document, name) for name in names) and not (root / DATABASE).is_file():
            done = [known_add.edit(document, names, said)]
        else:
            with Workspace.open(root, write=False) as opened:
                done = list(_add(opened, document, names, said))
        count = len(document.blocks)
    for entry, changed in done:
        told = f"{', '.join(entry.findings)}: {standing(mark(entry))}" + (f", {entry.issue}" if entry.issue else "")
        print(f"{'changed' if changed else 'added'} {told}")
    print(f"{path} holds {count} known issues; next: opera known list; opera findings")


def _add(
    workspace: Workspace, document: Document, names: Sequence[str], said: Mapping[str, str]
) -> Iterator[known_add.Added]:
    found = findings(workspace)
    if list(names) == [ALL]:
        known = Known(document.entries).within_workspace(workspace)
        new = dict.fromkeys(x.id for x in known.marked(found) if x.known is None)
        groups = [[x for x in found if x.id == name] for name in new]
    else:
        here = {x.id for x in found}
        gone = [x for x in names if known_add.naming(document, x) and not here & set(causes.resolve(workspace, x))]
        wanted = {causes.named(workspace, name, here) for name in names if name not in gone}
        groups = [[x for x in found if x.id in wanted]] if wanted else []
        if gone:
            yield known_add.edit(document, gone, said)
    recorder = known_add.Recorder(workspace, [x for group in groups for x in group])
    for group in groups:
        yield known_add.add(document, group, said, recorder)


def remove(path: Path, names: Sequence[str]) -> None:
    """Remove findings from the file."""
    with editing(path) as document:
        changed = known_add.take_out(document, names)
        left = len(document.blocks)
    print(f"removed {', '.join(names)} from {len(changed)} entries; {path} holds {left} known issues")


def show(known: Known, status: str) -> None:
    """Print a line for each entry."""
    if status and status not in STATUSES:
        raise UsageError(f"there is no status {status!r}", fix=f"choose from {', '.join(STATUSES)}")
    console = _console()
    chosen = [x for x in known.entries if status in ("", x.status)]
    if not chosen:
        where = known.path or "no file of known issues is here"
        console.print(f"No known issues{f' of status {status}' if status else ''} ({escape(str(where))}).")
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("findings", "status", "what fails", "issue, reason, note"):
        table.add_column(title, overflow="fold")
    for x in chosen:
        table.add_row(*(escape(clean(cell)) for cell in (_ids(x), standing(mark(x)), _what(x), _says(x))))
    console.print(table)
    counted = Counter(x.status for x in chosen)
    told = ", ".join(f"{counted[name]} {name}" for name in STATUSES if counted[name])
    console.print(f"{len(chosen)} known issues in {escape(str(known.path))}: {told}")


def check(workspace: Workspace, known: Known, frontend: str) -> bool:
    """Print what is no longer as the file says; return whether all is."""
    console = _console()
    known = known.within_workspace(workspace)
    found = known.marked(findings(workspace))
    states = known_check.check(workspace, known, found, frontend)
    wrong = list(known_check.wrong(states))
    for x in wrong:
        at = f"{x.frontend} {x.compiler_version}"
        says = f" ({_says(x.entry)})" if _says(x.entry) else ""
        line = f"{x.state:10}  {_ids(x.entry)}  {at}: {x.told}{says}"
        console.print(escape(clean(line)), soft_wrap=True)
    counted = Counter(x.state for x in states)
    told = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    console.print(
        f"{len(known.entries)} known issues in {escape(str(known.path))}, by frontend and version: {told or 'none'}"
    )
    new = [x for x in found if x.new and frontend in ("", x.frontend)]
    if new:
        console.print(
            f"{len(new)} findings are not known: opera findings --new lists them, opera known add ID notes one"
        )
    if wrong:
        gone = "opera known remove ID, or opera known add ID --fixed-in VERSION, or --versions '<VERSION'"
        console.print(f"what to do:   {gone}: for what is gone; opera known add with the new id for what has changed")
    return not wrong


def import_(workspace: Path, path: Path, file: Path, form: str) -> None:
    """Write the entries of another file into the file."""
    form = known_exchange.form_of(file, form, known_exchange.READ)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", cause="a wrong path", fix="give another file"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no UTF-8 text", cause="another encoding", fix="save it as UTF-8") from None
    if form == known_exchange.TESTS:
        with Workspace.open(workspace, write=False) as opened:
            _import_tests(opened, path, text, file)
        return
    entries = known_exchange.load(text, form, str(file))
    with editing(path, make=True) as document:
        done = Counter(known_add.put(document, x) for x in entries)
    print(f"{path}: {done['added']} added, {done['changed']} changed, {done['there']} were there")


def _import_tests(workspace: Workspace, path: Path, text: str, file: Path) -> None:
    found = findings(workspace)
    expected, unused = known_exchange.failing(text, found)
    with editing(path, make=True) as document:
        recorder = known_add.Recorder(workspace, expected)
        known = Known(document.entries, path).within_workspace(workspace)
        new = dict.fromkeys(x.id for x in expected if known.of(x) is None)
        for name in new:
            said = {"note": f"all of its tests are expected to fail by {file.name}"}
            known_add.add(document, [x for x in expected if x.id == name], said, recorder)
    print(f"{path}: {len(new)} added; {len({x.id for x in expected}) - len(new)} were known")
    if unused:
        print(f"{len(unused)} names belong to no finding of {workspace.root}: {', '.join(unused[:5])}", file=sys.stderr)


def export(workspace: Path, known: Known, form: str, output: Path | None) -> None:
    """Write the entries in another form, to a file or standard output."""
    form = known_exchange.form_of(output or Path("-.json"), form, known_exchange.FORMATS)
    if form == known_exchange.TESTS:
        with Workspace.open(workspace, write=False) as opened:
            known = known.within_workspace(opened)
            text = known_exchange.expected(known, known.marked(findings(opened)))
    else:
        text = known_exchange.dump(known.entries, form)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with temporary.beside(output) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.unwritable(output, error) from None
    print(f"{len(text.splitlines())} lines written to {output}")


def after_run(workspace: Workspace, known: Known, names: Sequence[str]) -> list[str]:
    """Say what is known of the findings of the newest run; return the new ones: of `names` those that are not known.

    What was fixed and fails again is new, whether the workspace had it before or not.
    """
    new = causes.distinct(workspace, names)
    if not known.entries:
        return new
    told_apart = causes.causes(workspace)
    parts = {told_apart.kept(part) for name in names for part in told_apart.parts.get(name, {}).values()}
    ran = runs.newest_frontends(workspace)
    known = known.within_workspace(workspace)
    found = [x for x in known.marked(findings(workspace)) if (x.frontend, x.environment) in ran]
    back = [x.id for x in found if x.known is not None and x.known.regression]
    unknown = [x.id for x in found if x.known is None and (x.id in new or x.id in parts)]
    states = list(known_check.wrong(known_check.check(workspace, known, found, among=ran)))
    gone = len({x.entry.findings or x.entry.signature for x in states if x.state != known_check.REGRESSION})
    told = f"{sum(not x.new for x in found)} of {len(found)} findings are known ({known.path})"
    told += f", {len(back)} are back though they were fixed: {', '.join(back[:5])}" if back else ""
    told += f"; {gone} known issues are gone or look otherwise: opera known check" if gone else ""
    print(told)
    return [*unknown, *back]


def _console() -> Console:
    return Console(highlight=False, width=None if os.isatty(1) else 120)


def _ids(entry: Entry) -> str:
    rest = f" and {len(entry.findings) - 3} more" if len(entry.findings) > 3 else ""
    return ", ".join(entry.findings[:3]) + rest if entry.findings else "described"


def _what(entry: Entry) -> str:
    narrowed = {name: getattr(entry, name) for name in ("frontend", "operator", "message", "versions")}
    parts = [entry.signature, *(f"{name} {value}" for name, value in narrowed.items() if value)]
    return one_line(", ".join(filter(None, parts)), 200)


def _says(entry: Entry) -> str:
    return one_line(", ".join(filter(None, (entry.issue, entry.reason, entry.note))), 200)
