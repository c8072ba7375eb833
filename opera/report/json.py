"""The report as one JSON object; docs/report.schema.json describes it."""

from __future__ import annotations

from typing import Any

import msgspec

from opera.report.summary import Report


def render(report: Report) -> str:
    """Return the object, indented."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the object."""
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(msgspec.json.schema(Report))
    )  # defaults as JSON has them
    return found


def schema_text() -> str:
    """Return the text of docs/report.schema.json."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode()
