"""Text as Markdown that means nothing else: no word of a compiler is markup, a mention or a reference to an issue."""

from __future__ import annotations

import re

from opera.report.words import clean


def prose(text: str) -> str:
    """Return a text on one line that may hold code between backquotes, and no other Markdown."""
    flat = " ".join(clean(text).split())
    parts = re.split(r"(`[^`]*`)", flat)
    return "".join(part if part[:1] == "`" and len(part) > 1 else _bare(part) for part in parts)


def plain(text: str) -> str:
    """Return a text on one line in which nothing is Markdown, a mention or a reference to an issue."""
    return _bare(" ".join(clean(text).split()))


def _bare(text: str) -> str:
    return re.sub(r"([`*<\\]|(?<!\w)[@#_](?=\w)|(?<=\w)_(?!\w))", r"\\\1", text)


def code(text: str) -> str:
    """Return a text on one line as code, whatever it holds."""
    flat = " ".join(clean(text).split())
    fence = "`" * (max((len(x) for x in re.findall("`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """Return a text as a block of code, whatever it holds."""
    fence = "`" * max(3, max((len(x) for x in re.findall("`+", text)), default=0) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
