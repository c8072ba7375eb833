"""What a draft of an issue says, and as Markdown: templates/issues/TRACKER.md.j2 has the headings of a tracker's own form."""

from __future__ import annotations

import re

import msgspec

from opera.libraries.documented import Quote
from opera.programs.verdicts import Outcome
from opera.report import markup, trackers
from opera.triage.reproducers import brief


class Draft(msgspec.Struct, frozen=True):
    """What a template is filled with; texts may hold a compiler's words, and are escaped there.

    Attributes:
        title, sentence: One line each.
        not_to_file: Why it should not be filed as it stands; empty where nothing speaks against it.
        library: Whose tests they are; `framework`: what the model is of that the script shows; `importer`: what the importer
            that it came by is called.
        shows: What the member shows.
        expected, actual: Lines; `says`: what the compiler says of a crash.
        script: The script; `folded` where it is long, `exit_codes` where it is the reproducer.
        contrasts: What becomes of the program of the script when one thing alone is another, a line for each.
        seems: What seems to decide, where nothing that is changed alone, and no program like it, is known to pass.
        written: The file that an exporter makes of the script's program, a line each.
        passing: The program most like that of the script that passes, call by call.
        log: What it printed of the failure.
        reduced: Whether it is of a reduction; `origin` the test that it was made of, `whose` what made that, if not people.
        quotes: Of the documentation.
        others: What other compilers do with the same model.
        versions: Name → version, the compiler's first; `system`: operating system and Python; `opset`: of the model.
        exporter: Whether it is an exporter that is under test.
        siblings: Other operators of which findings say the same; `behind`: what else its tests fail of, a sentence each.
        blame: Which part is wrong, with what says so.
        members: How many tests fail alike, and names of some.
        claimed: What the compiler declares to support against its own refusal.
        search: Where the tracker is searched for it, before it is filed.
        reference: Whose the expected outputs are; `since`: since which release it fails, where that was asked.
    """

    finding: str
    tracker: str
    form: str
    title: str
    sentence: str
    library: str
    frontend: str
    shows: Outcome
    not_to_file: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    actual: tuple[str, ...] = ()
    says: str = ""
    model: tuple[str, ...] = ()
    contrasts: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    seems: str = ""
    written: tuple[str, ...] = ()
    script: str = ""
    folded: bool = False
    exit_codes: bool = False
    log: str = ""
    reduced: bool = False
    origin: str = ""
    whose: str = ""
    file: str = ""
    quotes: tuple[Quote, ...] = ()
    others: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    system: str = ""
    opset: str = ""
    exporter: bool = False
    siblings: str = ""
    behind: tuple[str, ...] = ()
    blame: str = ""
    members: int = 1
    named: tuple[str, ...] = ()
    claimed: str = ""
    reference: str = ""
    since: str = ""
    framework: str = ""
    importer: str = ""
    search: str = ""


def render(found: Draft) -> str:
    """Return a draft as Markdown."""
    environment = brief.environment()
    environment.filters |= {"code": markup.code, "block": markup.block, "plain": markup.plain, "prose": markup.prose}
    text = environment.get_template(
        f"issues/{trackers.trackers()[found.tracker].template or found.tracker}.md.j2"
    ).render(x=found)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
