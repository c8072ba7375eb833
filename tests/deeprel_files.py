"""Writes BSON as mongodump does, for the types that DeepREL's dump has."""

from __future__ import annotations

import struct
from typing import Any


def encode(item: dict[str, Any]) -> bytes:
    """Write a document as mongodump would, for the types that DeepREL has."""
    body = b"".join(_entry(name, value) for name, value in item.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _entry(name: str, value: Any) -> bytes:
    key = name.encode() + b"\0"
    match value:
        case None:
            return b"\x0a" + key
        case bool():
            return b"\x08" + key + bytes([value])
        case int() if -(2**31) <= value < 2**31:
            return b"\x10" + key + struct.pack("<i", value)
        case int():
            return b"\x12" + key + struct.pack("<q", value)
        case float():
            return b"\x01" + key + struct.pack("<d", value)
        case str():
            raw = value.encode() + b"\0"
            return b"\x02" + key + struct.pack("<i", len(raw)) + raw
        case list():
            return b"\x04" + key + encode({str(place): x for place, x in enumerate(value)})
        case dict():
            return b"\x03" + key + encode(value)
    raise TypeError(value)
