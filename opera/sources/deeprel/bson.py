"""Reads the few types of BSON that DeepREL's dump has, without a database, and with every distrust.

`mongodump` writes documents one after the other (bsonspec.org, version 1.1). Sizes are checked against what is there before
anything is taken, and nothing is ever constructed but plain values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from opera.errors import CorpusError

MAX_DOCUMENT = 16 << 20
"""Bytes of a document: MongoDB's own limit."""
MAX_DEPTH = 32
MAX_ITEMS = 500_000
"""Values in one document."""

_DOUBLE, _STRING, _DOCUMENT, _ARRAY, _OBJECT_ID, _BOOL, _DATE, _NULL, _INT32, _INT64 = 1, 2, 3, 4, 7, 8, 9, 10, 16, 18
_FIXED = {_DOUBLE: "<d", _DATE: "<q", _INT32: "<i", _INT64: "<q"}


def documents(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the documents of a file. Raises CorpusError where it ends early, lies about sizes, or holds other types."""
    start = 0
    while start < len(data):
        reader = _Reader(data, start)
        yield reader.document()
        start = reader.place


class _Reader:
    """One document, from `place` on."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place
        self.end, self.items = len(data), 0

    def document(self) -> dict[str, Any]:
        return dict(self._entries(0))

    def _entries(self, depth: int) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a document or array, and end right behind it."""
        start, size = self.place, int(self._number("<i"))
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}")
        if not 5 <= size <= min(MAX_DOCUMENT, self.end - start):
            raise self._error(f"a document that declares {size} bytes")
        outer, self.end = self.end, start + size
        while kind := self._byte():
            self.items += 1
            if self.items > MAX_ITEMS:
                raise self._error(f"a document of more than {MAX_ITEMS} values")
            yield self._name(), self._value(kind, depth)
        if self.place != self.end:
            raise self._error("a document that ends before its declared size")
        self.end = outer

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _FIXED:
            return self._number(_FIXED[kind])
        match kind:
            case 2:
                return self._string()
            case 3:
                return dict(self._entries(depth + 1))
            case 4:
                return [value for _, value in self._entries(depth + 1)]
            case 7:
                return self._take(12).hex()
            case 8:
                return self._byte() != 0
            case 10:
                return None
        raise self._error(f"a value of BSON type {kind}, which DeepREL's records have none of")

    def _string(self) -> str:
        size = int(self._number("<i"))
        raw = self._take(size) if size > 0 else b""
        if not raw.endswith(b"\0"):
            raise self._error("a string that does not end where it says")
        return self._text(raw[:-1])

    def _name(self) -> str:
        end = self.data.find(b"\0", self.place, self.end)
        if end < 0:
            raise self._error("a name that does not end")
        name = self._text(self.data[self.place : end])
        self.place = end + 1
        return name

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self._error("a text that is no UTF-8") from None

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        if size > self.end - self.place:
            raise self._error("it ends in the middle of a value")
        taken = self.data[self.place : self.place + size]
        self.place += size
        return taken

    def _error(self, what: str) -> CorpusError:
        return CorpusError(
            f"no BSON dump that opera reads: {what}, at byte {self.place}",
            fix="fetch the file again; see docs/deeprel.md",
        )
