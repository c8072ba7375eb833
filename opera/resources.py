"""Where the three content folders are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

PACKAGE = Path(__file__).parent


@cache
def content(kind: str) -> Path:
    """Return the folder `instrumentation`, `templates` or `sources`."""
    for candidate in (PACKAGE / "_content" / kind, PACKAGE.parent / kind):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"content folder {kind!r} is missing from this installation of opera")


@cache
def declaration(kind: str, name: str) -> dict[str, Any]:
    """Return the parsed TOML file `name` of a content folder; an absent file is an empty declaration."""
    path = content(kind) / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def digest(declared: object) -> str:
    """Return what tells declarations apart, in eight hexadecimal digits; the order of tables does not count."""
    return hashlib.sha256(msgspec.json.encode(declared, order="sorted")).hexdigest()[:8]
