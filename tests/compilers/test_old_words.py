"""What releases of compilers really said, and what it means: recorded by `python benchmarks/old_words.py` from real runs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from opera import compilers
from opera.programs.case import remembered
from opera.programs.verdicts import CRASH, REFUSED, UNSUPPORTED, Raised, Seen
from opera.run import judge

FILES = (Path(__file__).with_name("old_words.json"), *sorted(Path(__file__).with_name("words").glob("*.json")))
RECORDED: list[dict[str, Any]] = [row for file in FILES for row in json.loads(file.read_text(encoding="utf-8"))]
BETWEEN = {
    "executorch-torch": ("1.5.1",),
    "openvino-onnx": ("2023.1.0", "2023.3.0", "2024.0.0", "2024.3.0", "2024.6.0", "2025.0.0", "2026.0.0", "2026.4.1"),
    "onnxruntime-onnx": ("1.17.0", "1.18.1", "1.19.2", "1.20.1", "1.22.0", "1.24.4", "1.27.0", "1.29.0", "1.31.1"),
    "iree-onnx": ("3.13.0",),
    "litert-torch": ("0.10.0, litert-converter 0.5.0, ai-edge-litert 2.3.0",),
    "opencv-onnx": ("5.0.0",),
    "tract-onnx": ("0.23.9",),
    "tvm-onnx": ("0.25.0.post1", "0.26.0", "0.27.0.post1"),
}  # fmt: skip


def name(row: dict[str, Any]) -> str:
    return f"{row['frontend']}-{row['versions'][0]}-{row['verdict']}-{row['operator']}"


@pytest.mark.parametrize("row", RECORDED, ids=name)
def test_what_a_release_said_means_what_it_meant(row: dict[str, Any]) -> None:
    compiler, _, library = row["frontend"].rpartition("-")
    frontend = compilers.frontend(compiler, library)
    artefact = next(x.artefact for x in frontend.VARIANTS if x.name == row["variant"])
    case = remembered(library, row["operator"], row["variant"], artefact)
    seen = Seen((Raised(tuple(row["kinds"]), row["text"]),), row["blame"])
    found = judge.conclude(frontend, case, row["stage"], seen)
    says = {UNSUPPORTED: found.message, REFUSED: found.claimed, CRASH: ""}[found.verdict]
    assert (found.verdict, says) == (row["verdict"], row["says"])
    if row["place"]:
        assert frontend.conversion_function(case, judge.restored(seen.raised)) == row["place"]


@pytest.mark.parametrize("frontend", BETWEEN)
def test_every_release_is_recorded(frontend: str) -> None:
    found = {version for row in RECORDED if row["frontend"] == frontend for version in row["versions"]}
    assert set(BETWEEN[frontend]) <= found


def test_a_place_that_stands_in_every_message_is_none() -> None:
    """Releases before 2026.2 raise everything from one loop in `frontend.cpp`: it would make one finding of all failures."""
    places = defaultdict(set)
    for row in RECORDED:
        if row["frontend"] == "openvino-onnx" and row["verdict"] == CRASH and row["place"]:
            places[row["place"]].add(row["operator"])
    assert places and not [place for place in places if place.startswith("frontend.cpp")]
    assert max(map(len, places.values())) <= 2


def test_what_has_no_translator_is_unsupported_whatever_the_release() -> None:
    """On OpenVINO 2023.1 these were one crash, together with true failures."""
    rows = [x for x in RECORDED if "does not support the following ONNX operations" in x["text"]]
    assert rows and {x["verdict"] for x in rows} == {UNSUPPORTED}
