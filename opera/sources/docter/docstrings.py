"""Reading what docstrings say of parameters: `name (type): description` under `Args:` and the like."""

from __future__ import annotations

import inspect
import re

import msgspec

HEADS = re.compile(
    r"(args|arguments|keyword args|keyword arguments|parameters|inputs?|call arguments|shape|shapes|inputs: [\w, ]+)\s*:?:?",
    re.IGNORECASE,
)
ENTRY = re.compile(
    r"\*{0,2}(`{0,2}[A-Za-z_][\w.]*`{0,2}(?:\s*,\s*`{0,2}[A-Za-z_]\w*`{0,2})*)\s*(?:\((.*?)\)\s*)?:(?!:|\w)\s*(.*)"
)
TYPED = re.compile(r"\*{0,2}([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\((.*)\)\s*:\s*(.*)", re.DOTALL)
MAX_DOC = 100_000


class Entry(msgspec.Struct, frozen=True):
    """What a docstring says of one parameter."""

    kind: str
    description: str


def entries(text: str | None) -> dict[str, dict[str, Entry]]:
    """Return heading (lower case, `args`, `shape`, ...) → parameter → entry, in order."""
    found: dict[str, dict[str, Entry]] = {}
    head, indent = "", 0
    block: list[str] = []
    for line in [*inspect.cleandoc((text or "")[:MAX_DOC]).splitlines(), "End:"]:
        here = len(line) - len(line.lstrip())
        title = HEADS.fullmatch(line.strip())
        ends = bool(line.strip()) and here <= indent and head
        if title or ends:
            if head:
                found.setdefault(head, {}).update(_block(block))
            head, block, indent = (title[1].lower() if title else ""), [], here
        elif head:
            block.append(line)
    return found


def arguments(text: str | None) -> dict[str, Entry]:
    """Return what is said of parameters under all headings but `Shape` and `Call arguments`."""
    made: dict[str, Entry] = {}
    for head, items in entries(text).items():
        if not head.startswith(("shape", "input", "call")):
            made |= items
    return made


def _block(lines: list[str]) -> dict[str, Entry]:
    """Read entries: each begins at the block's own indent, and what is deeper belongs to it."""
    depth = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    items: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        if len(line) - len(line.lstrip()) <= depth or not items:
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    made: dict[str, Entry] = {}
    for item in items:
        item = item.lstrip("-* ") if item.startswith(("- ", "* ")) else item
        match = _typed(item) or ENTRY.match(item)
        if match is None:
            continue
        for name in re.findall(r"[A-Za-z_]\w*", match[1]):
            made[name] = Entry((match[2] or "").strip(), match[3].strip())
    return made


def _typed(item: str) -> re.Match[str] | None:
    """Match `name (type): text`, where the type may hold parentheses of its own."""
    depth = 0
    if not re.match(r"\*{0,2}[A-Za-z_][\w, ]*\(", item):
        return None
    for place, char in enumerate(item):
        depth += (char == "(") - (char == ")")
        if char == ")" and not depth:
            rest = item[place + 1 :].lstrip()
            if not rest.startswith((":", "–", "-")):
                return None
            return TYPED.fullmatch(item[: place + 1] + ": " + rest[1:].strip())
    return None
