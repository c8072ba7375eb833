"""Checkouts and published files from strangers, on the real command line: told in words, nothing executed, nothing endless."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import opera
from leftovers import Watched

onnx = pytest.importorskip("onnx")
CASES = Path(onnx.__file__).parent / "backend" / "test" / "case" / "node"
GOOD = "title: torch.nn.functional.relu\npackage: torch\ninputs: {required: [input]}\nconstraints: {input: {ndim: ['2']}}\n"


class Runs:
    """Pickles to a call of os.system."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.mark}",)


def endless(folder: Path, suffix: str) -> None:
    """Make what has no end, or no beginning, under names that opera reads."""
    os.mkfifo(folder / f"torch.pipe{suffix}")
    (folder / f"torch.zero{suffix}").symlink_to("/dev/zero")
    (folder / f"torch.itself{suffix}").symlink_to(f"torch.itself{suffix}")
    (folder / f"torch.folder{suffix}").mkdir()
    (folder / "loop").symlink_to(".")
    (folder / "up").symlink_to("..")
    (folder / f"torch.noise{suffix}").write_bytes(b"\0\xff\xfe" * 1000)
    Path(os.fsdecode(os.fsencode(folder) + b"/torch.\xff" + suffix.encode())).write_bytes(b"a")


def checkout(folder: Path) -> Path:
    """Make a checkout of ONNX with two good files."""
    place = folder / "onnx" / "backend" / "test" / "case" / "node"
    place.mkdir(parents=True)
    (folder / "VERSION_NUMBER").write_text(onnx.__version__)
    for name in ("__init__", "abs", "relu"):
        shutil.copy(CASES / f"{name}.py", place)
    return place


def test_a_checkout_of_a_stranger(tmp_path: Path) -> None:
    place = checkout(tmp_path / "stranger")
    endless(place, ".py")
    (place / "nul.py").write_bytes(b"import os\0\n")
    (place / "latin.py").write_bytes(b"x = '\xff'\n")
    (place / "deep.py").write_text("(" * 100_000)
    (place / "leaves.py").write_text("raise SystemExit('gone')")
    (tmp_path / "stranger" / "VERSION_NUMBER").write_bytes(b"\xff\x1b[31m\0\n")
    done = opera("extract", tmp_path / "stranger", "--workspace", tmp_path / "w")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "6 files did not run to their end" in done.stdout and "7 files" not in done.stdout
    assert "the name of the file is no UTF-8 text" in done.stdout
    assert "checkout unknown" in done.stderr and "\x1b" not in done.stderr
    with sqlite3.connect(tmp_path / "w" / "opera.sqlite") as database:
        assert {"Abs", "Relu"} == {row[0] for row in database.execute("SELECT operator FROM instances")}


def test_a_version_without_end(tmp_path: Path) -> None:
    checkout(tmp_path / "stranger")
    (tmp_path / "stranger" / "VERSION_NUMBER").unlink()
    (tmp_path / "stranger" / "VERSION_NUMBER").symlink_to("/dev/zero")
    done = opera("extract", tmp_path / "stranger", "--workspace", tmp_path / "w")
    assert done.returncode == 0 and "checkout unknown" in done.stderr


@pytest.mark.parametrize("words", [["extract"], ["extract", "--library", "onnx", "--", "python"], ["corpus", "import"]])
def test_names_that_are_no_text_are_told(tmp_path: Path, words: list[str]) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    checkout(folder)
    done = opera(*words, folder, cwd=tmp_path)
    assert done.returncode == 2 and "is no UTF-8 text" in done.stderr and "Traceback" not in done.stderr
    done = opera("extract", ".", cwd=folder)
    assert done.returncode == 2 and "is no UTF-8 text" in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "results").exists()


def test_what_hangs_in_a_suite_ends_with_opera(tmp_path: Path) -> None:
    place = checkout(tmp_path / "stranger")
    (place / "zz.py").write_text(
        "import pathlib, re, subprocess\nsubprocess.Popen(['sleep', '300'])\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\nre.match('(a+)+$', 'a' * 60 + 'b')\n"
    )
    watched = Watched(tmp_path / "tmp")
    process = watched.start("extract", tmp_path / "stranger", "--workspace", tmp_path / "w")
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate()
    while watched.processes():
        time.sleep(0.05)


def docter(folder: Path, mark: Path) -> None:
    """Fill a folder with constraint files of an enemy's."""
    endless(folder, ".yaml")
    bomb = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 'x'}]" for n in range(12))
    texts = {
        "bomb": f"{GOOD}{bomb}\n",
        "tag": f"!!python/object/apply:os.system ['touch {mark}']",
        "tag inside": f"{GOOD}more: !!python/object/new:os.system ['touch {mark}']",
        "deep": f"{GOOD}more: {'[' * 60_000}",
        "deep mapping": f"{GOOD}more: {'{a: ' * 60_000}",
        "number": f"title: 0x{'f' * 100_000}",
        "large": f"{GOOD}# {'x' * 300_000}",
        "merge": f"base: &b {{<<: *b}}\n{GOOD}",
        "regex": f"{GOOD.replace('2', '&' * 20_000)}",
        "expression": "title: torch.abs\npackage: torch\nconstraints: {input: {range: ['["
        + "(" * 20_000
        + "1,2]']}}\n",
        "escape": f"title: ../../../{mark.name}\npackage: torch\n",
    }
    for name, text in texts.items():
        (folder / f"torch.{name}.yaml").write_text(text)


def pickles(folder: Path, mark: Path) -> None:
    """Fill a folder of DocTer's fuzzer with pickles of an enemy's."""
    place = folder / "torch.nn.functional.relu.yaml_workdir"
    place.mkdir()
    endless(place, ".p")
    (place / "gen_order").symlink_to("/dev/zero")
    held = {
        "calls": pickle.dumps({"input": Runs(mark)}),
        "deep": pickle.dumps({})[:-1] + b"]" * 100_000 + b"a" * 100_000 + b".",
        "memory": b"\x80\x02}r\xff\xff\xff\x7f.",
        "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
        "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"x.",
        "script": f"import os; os.system('touch {mark}')".encode(),
    }
    for name, data in held.items():
        (place / f"{name}.p").write_bytes(data)
    (place / "script.py").write_text(f"import os; os.system('touch {mark}')")


def deeprel(folder: Path, mark: Path) -> None:
    """Fill a folder with DeepREL's kinds of files, of an enemy's."""
    for suffix in (".bson", ".json"):
        (folder / suffix[1:]).mkdir()
        endless(folder / suffix[1:], suffix)
    nested = b""
    for _ in range(5000):
        nested = struct.pack("<i", len(nested) + 8) + b"\x03a\0" + nested + b"\0"
    (folder / "torch.nested.bson").write_bytes(nested)
    (folder / "torch.size.bson").write_bytes(struct.pack("<i", 2**31 - 1) + b"\x0aa\0" * 20)
    (folder / "torch.negative.bson").write_bytes(struct.pack("<i", -5) + bytes(20))
    (folder / "torch.text.bson").write_bytes(
        struct.pack("<i", 20) + b"\x02a\0" + struct.pack("<i", 2**30) + b"x" * 8 + b"\0"
    )
    (folder / "torch.code.bson").write_bytes(struct.pack("<i", 17) + b"\x0da\0\x05\0\0\0os()\0\0")
    (folder / "torch.deep.json").write_text("[" * 100_000)
    (folder / "torch.number.json").write_text('["torch.abs", 1e999999]\n["torch.abs", ' + "9" * 10_000 + "]")
    out = folder / "output-0" / "torch.abs+torch.neg+1" / "success"
    out.mkdir(parents=True)
    endless(out, ".py")
    (out / "1.py").write_text(f"import os\nos.system('touch {mark}')\n")
    (out / "2.py").write_text("(" * 100_000)
    (out / "3.py").write_text("x = " + "-" * 100_000 + "1")


ENEMIES: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "constraints": ("docter", docter), "pickles": ("docter", pickles), "records": ("deeprel", deeprel),
}  # fmt: skip


@pytest.mark.parametrize("name", ENEMIES)
def test_an_enemys_folder_is_told_and_runs_nothing(tmp_path: Path, name: str) -> None:
    pytest.importorskip("torch")
    source, make = ENEMIES[name]
    folder, mark = tmp_path / "enemy", tmp_path / "hacked"
    folder.mkdir()
    make(folder, mark)
    done = opera("extract", "--source", source, folder, "--library", "torch", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stdout[-3000:] + done.stderr[-3000:]
    assert max(map(len, (done.stdout + done.stderr).splitlines())) < 1000
    assert not mark.exists()


def test_one_good_file_among_an_enemys_is_used(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder, mark = tmp_path / "enemy", tmp_path / "hacked"
    folder.mkdir()
    docter(folder, mark)
    (folder / "torch.nn.functional.relu.yaml").write_text(GOOD)
    done = opera("extract", "--source", "docter", folder, "--count", 3, cwd=tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
    assert "aliases are not allowed" in done.stdout and "no regular file" in done.stdout, done.stdout
    assert not mark.exists()
