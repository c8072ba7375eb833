"""BSON: what MongoDB's own encoder writes is read as its own decoder reads it, and whatever else is an error of opera's."""

from __future__ import annotations

import datetime
import math
import struct
from contextlib import suppress
from typing import Any

import pytest
from bson import CodecOptions, DatetimeConversion, DatetimeMS, Int64, ObjectId, decode_all, encode
from bson.errors import BSONError
from hypothesis import given
from hypothesis import strategies as st

from opera.errors import CorpusError
from opera.sources.deeprel import bson

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(min_size=12, max_size=12).map(ObjectId)
    | st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
DOCUMENT = {"parameter:0": {"shape": [2, 3], "dtype": "torch.float32"}, "dim": -1, "keepdim": True, "out": None}


OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)


def plain(value: Any) -> Any:
    """What MongoDB's decoder reads, in the values that opera's reader gives."""
    match value:
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case ObjectId():
            return str(value)
        case DatetimeMS() | Int64():
            return int(value)
        case float() if math.isnan(value):
            return "NaN"
    return value


@given(st.lists(st.dictionaries(TEXT, VALUES, max_size=4), max_size=3))
def test_what_is_written_is_read(documents: list[dict[str, Any]]) -> None:
    data = b"".join(map(encode, documents))
    assert list(bson.documents(data)) == plain(decode_all(data, OPTIONS))


@given(st.integers(0, 120), st.integers(0, 255))
def test_what_both_read_of_a_damaged_file_is_the_same(place: int, byte: int) -> None:
    data = bytearray(encode(DOCUMENT) * 2)
    data[place % len(data)] = byte
    with suppress(CorpusError, BSONError):
        ours, theirs = list(bson.documents(bytes(data))), decode_all(bytes(data), OPTIONS)
        assert plain(ours) == plain(theirs)


@given(st.binary(max_size=200))
def test_noise_is_an_error_and_nothing_else(data: bytes) -> None:
    with suppress(CorpusError):
        list(bson.documents(data))


@given(st.integers(0, 120), st.integers(0, 255))
def test_a_damaged_byte_is_read_or_an_error(place: int, byte: int) -> None:
    data = bytearray(encode(DOCUMENT) * 2)
    data[place % len(data)] = byte
    with suppress(CorpusError):
        list(bson.documents(bytes(data)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (encode(DOCUMENT)[:-3], "declares"),
        (struct.pack("<i", 2**31 - 1) + b"\x0aa\0" * 20, "declares 2147483647 bytes"),
        (struct.pack("<i", -5) + bytes(20), "declares -5 bytes"),
        (b"\1\0", "ends in the middle"),
        (struct.pack("<i", 20) + b"\x02a\0" + struct.pack("<i", 2**30) + b"x" * 8 + b"\0", "middle of a value"),
        (struct.pack("<i", 14) + b"\x02a\0" + struct.pack("<i", 2) + b"xx\0", "string that does not end"),
        (struct.pack("<i", 12) + b"\x0dalert(1)", "BSON type 13|name that does not end"),
        (struct.pack("<i", 9) + b"\x07aa\0\0", "middle of a value"),
        (struct.pack("<i", 8) + b"\x0a\xff\0\0", "no UTF-8"),
    ],
)
def test_hostile_files_are_told_in_words(data: bytes, said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        list(bson.documents(data))


def test_depth_and_number_are_limited() -> None:
    deep: dict[str, Any] = {}
    for _ in range(bson.MAX_DEPTH + 2):
        deep = {"a": deep}
    with pytest.raises(CorpusError, match="nested deeper"):
        list(bson.documents(encode(deep)))
    many = b"\x0aa\0" * (bson.MAX_ITEMS + 1)
    with pytest.raises(CorpusError, match="more than"):
        list(bson.documents(struct.pack("<i", len(many) + 5) + many + b"\0"))
