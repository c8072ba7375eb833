"""Corpus files that want all memory: refused in little of it, by the line, with nothing imported."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from commands import OPERA
from one_instance import captured

from opera.store import corpus
from opera.store.workspace import Workspace

pytest.importorskip("onnx")

MIB = 1 << 20
HEADER = b'{"format": "opera-corpus", "version": 1}\n'


def line(place: Path) -> bytes:
    """Return a line that is accepted."""
    with Workspace.open(place / "source", write=True) as source:
        source.add_captured([captured(1)])
        corpus.write(source, place / "one.jsonl")
    return (place / "one.jsonl").read_bytes().splitlines(keepends=True)[1]


def bomb(path: Path, parts: Iterator[bytes] | list[bytes], repeated: bytes, count: int) -> Path:
    """Write a gzip file of some parts, and one that is repeated often; each is compressed once."""
    with path.open("wb") as file:
        for part in parts:
            file.write(gzip.compress(part, 1))
        member = gzip.compress(repeated, 1)
        for _ in range(count):
            file.write(member)
    return path


WATCH = (
    "import os, subprocess, sys\n"
    "process = subprocess.Popen(sys.argv[1:], stderr=subprocess.STDOUT)\n"
    "_, status, usage = os.wait4(process.pid, 0)\n"
    "process.returncode = os.waitstatus_to_exitcode(status)\n"
    "print(f'\\n{process.returncode} {usage.ru_maxrss >> 10}')\n"
)
"""A process has had as much memory as the one that it was forked of, and this one, with all that it tested before, has much."""


def used(place: Path, *arguments: object) -> tuple[int, str, int]:
    """Run opera; return its exit code, what it said, and the most memory that it had, in MiB."""
    command = [sys.executable, "-c", WATCH, *OPERA, *map(str, arguments)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=place, check=True).stdout
    said, _, last = said.rstrip().rpartition("\n")
    code, memory = map(int, last.split())
    return code, said, memory


def instances(root: Path) -> int:
    with Workspace.open(root, write=False) as opened:
        return int(opened.query("SELECT COUNT(*) FROM instances")[0][0])


def deep(kind: bytes) -> tuple[bytes, bytes]:
    return b'{"instance": [', kind * (MIB // len(kind))


BOMBS = {
    "a line of a gigabyte": (b'{"instance": "', b"a" * (16 * MIB), 64, 700),
    "a line of a gigabyte of blanks": (b"", b" " * (16 * MIB), 64, 700),
    "a gigabyte of empty lines": (b"", b"\n" * (16 * MIB), 64, 700),
    "a line of many mappings": (*deep(b'{"a":{}},'), 24, 1500),
    "a line that nests without end": (*deep(b"["), 62, 700),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_by_its_line_in_little_memory(tmp_path: Path, name: str) -> None:
    start, repeated, count, limit = BOMBS[name]
    file = bomb(tmp_path / "bomb.jsonl.gz", [HEADER, line(tmp_path), start], repeated, count)
    assert file.stat().st_size < 8 * MIB
    code, said, memory = used(tmp_path, "corpus", "import", file)
    assert code == 2 and "bomb.jsonl.gz:3: " in said and "Traceback" not in said, said
    assert memory < limit, said
    assert instances(tmp_path / "results") == 0


@pytest.mark.full
def test_a_file_of_many_lines_takes_no_more_memory_than_a_few(tmp_path: Path) -> None:
    good = line(tmp_path)
    form = msgspec.json.decode(good)
    form["instance"]["params"] = {"text": "a" * MIB}
    large = msgspec.json.encode(form, order="sorted") + b"\n"
    file = bomb(tmp_path / "long.jsonl.gz", [HEADER], large * 4, 60)
    code, said, memory = used(tmp_path, "corpus", "import", file)
    assert code == 0 and "240 instances read, 1 of them new" in said, said
    assert memory < 200
    code, said, memory = used(tmp_path, "corpus", "merge", "all.jsonl", file, file)
    assert code == 0 and "1 instances written" in said, said
    assert memory < 200


def test_a_bad_last_line_after_many_good_ones_imports_nothing(tmp_path: Path) -> None:
    good = line(tmp_path)
    file = tmp_path / "corpus.jsonl"
    file.write_bytes(HEADER + good * 3000 + b'{"instance": 7}\n')
    code, said, _ = used(tmp_path, "corpus", "import", file)
    assert code == 2 and "corpus.jsonl:3002: " in said and "nothing was imported" in said
    assert instances(tmp_path / "results") == 0


@pytest.mark.parametrize("content", [b"\0" * 100, b"\xff\xfe{}", b'{"format": "opera-corpus", "version": 1}\n\0\n'])
def test_no_text_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "noise.jsonl").write_bytes(content)
    code, said, _ = used(tmp_path, "corpus", "import", "noise.jsonl")
    assert code == 2 and "noise.jsonl" in said and "Traceback" not in said
    assert instances(tmp_path / "results") == 0
