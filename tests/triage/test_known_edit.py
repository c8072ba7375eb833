"""Editing the file of known issues: what people wrote in it stays, and it is never lost or half-written."""

from __future__ import annotations

import os
import signal
import string
import subprocess
import sys
import textwrap

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opera.errors import UsageError
from opera.triage import known_edit
from opera.triage.known import Entry, Known, parse
from opera.triage.known_edit import Document, editing

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
HEX = st.text("0123456789abcdef", min_size=20, max_size=20)
IDS = st.text("0123456789abcdef", min_size=8, max_size=8).map("F{}".format)
WORDS = st.text(string.ascii_letters + " *:_#[]\"'\\", max_size=20)
COMMENT = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=30).map("# {}".format)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    status = draw(st.sampled_from(["open", "confirmed", "fixed", "by-design", "not-a-bug"]))
    return Entry(
        findings=tuple(draw(st.lists(IDS, min_size=1, max_size=3, unique=True))),
        signature=draw(WORDS),
        frontend=draw(st.sampled_from(["", "tvm-onnx", "openvino-*"])),
        operator=draw(WORDS),
        message=draw(st.sampled_from(["", r"\bno \(X\) in '\d'", 'say "why"'])),
        versions=draw(st.sampled_from(["", ">=0.25,<0.28", "==2026.*"])),
        status=status,
        fixed_in="0.28" if status == "fixed" else "",
        issue=draw(TEXT),
        note=draw(TEXT),
        reason=draw(TEXT.filter(str.strip)) if status in ("by-design", "not-a-bug") else "",
        tests=tuple(draw(st.lists(HEX, max_size=4, unique=True))),
    )


@st.composite
def several(draw: st.DrawFn) -> list[Entry]:
    """Entries that do not name a finding twice."""
    found, seen = [], set()
    for x in draw(st.lists(entries(), max_size=5)):
        if seen.isdisjoint(x.findings):
            found.append(x)
        seen.update(x.findings)
    return found


def written(found: list[Entry], comments: list[str] | None = None) -> str:
    document = Document.of("# ours\n", "known.toml")
    for x, comment in zip(found, comments or [""] * len(found), strict=True):
        document.add(x, comment, dict.fromkeys(x.tests[:1], "test_x"))
    return document.text()


@settings(max_examples=40)
@given(several())
def test_what_is_written_is_read_as_it_was_in_the_order_of_signatures(found):
    text = written(found)
    assert parse(text) == tuple(sorted(found, key=lambda x: x.order))
    assert text.startswith("# ours\n")
    assert Document.of(text, "known.toml").text() == text  # once in order, nothing moves


@settings(max_examples=40)
@given(several(), st.data())
def test_comments_stay_with_their_entries_whatever_is_added_and_removed(found, data):
    assume(found)
    text = written(found, [f"about {x.findings[0]}" for x in found])
    lines = text.split("\n")[:-1]
    for number in data.draw(st.sets(st.integers(0, len(lines) - 1))):  # comments of people, behind whole values
        if lines[number].startswith(("status", "signature", "findings")):
            lines[number] += "  " + data.draw(COMMENT)
    mine = "\n".join(lines) + "\n"
    document = Document.of(mine, "known.toml")
    assert document.entries == parse(text)
    gone = data.draw(st.integers(0, len(found) - 1))
    taken = document.blocks[gone].text
    document.remove(gone)
    added = Entry(findings=("Fffffffff",), signature=data.draw(WORDS))
    assume(not any("Fffffffff" in x.findings for x in found))
    document.add(added)
    after = document.text()
    assert parse(after) == tuple(sorted(document.entries, key=lambda x: x.order))
    kept = [line for line in lines if line not in taken.split("\n")]
    assert all(line in after.split("\n") for line in kept)
    for x in document.entries:
        if x is not added:
            assert f"# about {x.findings[0]}\n[[known]]\n" in after


@settings(max_examples=40)
@given(entries(), entries())
def test_an_entry_can_become_any_other(one, other):
    document = Document.of(written([one], ["mine"]), "known.toml")
    document.replace(0, other)
    text = document.text()
    assert parse(text) == (other,)
    assert "# mine\n[[known]]\n" in text


def test_only_what_differs_is_written_anew():
    text = textwrap.dedent("""\
        # A file of ours.

        # Reported twice,
        # see the mail.
        [[known]]
        findings   =  ["F00000002", 'F00000001'] # the first is older
        signature = "b"
        tests = [
            "00000000000000000001",  # test_conv

            # these two are slow
            "00000000000000000002",
        ]
        note = '''
        two
        lines'''   # yes
        """)
    document = Document.of(text, "known.toml")
    document.replace(0, msgspec.structs.replace(document.entries[0], issue="https://x/1", status="fixed", fixed_in="2"))
    after = document.text()
    assert set(text.splitlines()) <= set(after.splitlines())
    assert set(after.splitlines()) - set(text.splitlines()) == {
        'issue = "https://x/1"', 'status = "fixed"', 'fixed_in = "2"'
    }  # fmt: skip
    document.replace(0, msgspec.structs.replace(document.entries[0], tests=(*document.entries[0].tests, "3" * 20)))
    assert '"00000000000000000001", # test_conv' in document.text()


def test_files_of_windows_stay_so(tmp_path):
    path = tmp_path / "known.toml"
    path.write_bytes(b'# ours\r\n\r\n[[known]]\r\nfindings = ["F00000001"]\r\n')
    with editing(path) as document:
        document.add(Entry(findings=("F00000002",)))
    text = path.read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n") == 8
    assert len(Known.load(path).entries) == 2


@pytest.mark.parametrize(
    "text",
    [
        'known = [{findings = ["F00000001"]}]\n',
        '[[known]]\nfindings = ["F00000001"]\nnote = """\n[[known]]\n"""\n',
    ],
)
def test_a_form_that_cannot_be_edited_is_read_and_left_alone(tmp_path, text):
    path = tmp_path / "known.toml"
    path.write_text(text)
    assert len(Known.load(path).entries) == 1
    with pytest.raises(UsageError, match="can be read, but not edited"), editing(path):
        pass
    assert path.read_text() == text


def test_the_file_stays_as_it_was_where_the_change_fails(tmp_path, monkeypatch):
    path = tmp_path / "known.toml"
    path.write_text('[[known]]\nfindings = ["F00000001"]\n')
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), editing(path) as document:
        document.remove(0)
        raise ZeroDivisionError
    assert path.read_bytes() == before

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"cannot be written: No space left") as told, editing(path) as document:
        document.remove(0)
    assert "as it was" in told.value.fix
    assert (path.read_bytes(), [x.name for x in tmp_path.iterdir()]) == (before, ["known.toml"])


def test_a_broken_file_is_not_overwritten(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text("<<<<<<< ours\n")
    with pytest.raises(UsageError, match="it is no TOML"), editing(path, make=True):
        pass
    assert path.read_text() == "<<<<<<< ours\n"


def test_a_new_file_is_there_whether_anything_is_in_it_or_not(tmp_path):
    with editing(tmp_path / "known.toml", make=True):
        pass
    assert Known.load(tmp_path / "known.toml").entries == ()


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(UsageError, match="cannot be written: No such file"), editing(tmp_path / "no" / "k.toml"):
        pass


def test_links_and_rights_stay(tmp_path):
    real, link = tmp_path / "real.toml", tmp_path / "known.toml"
    real.write_text("# mine\n")
    real.chmod(0o640)
    link.symlink_to(real)
    with editing(link) as document:
        document.add(Entry(findings=("F00000001",)))
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert Known.load(real).entries == (Entry(findings=("F00000001",)),)


ADDS = """
import sys
from pathlib import Path
from opera.triage.known import Entry
from opera.triage.known_edit import editing
for number in range(20):
    with editing(Path(sys.argv[1]), make=True) as document:
        document.add(Entry(findings=(f"F{sys.argv[2]}{number:07d}",)))
"""


def test_two_that_edit_at_once_lose_nothing(tmp_path):
    path = tmp_path / "known.toml"
    both = [subprocess.Popen([sys.executable, "-c", ADDS, path, str(n)]) for n in range(2)]
    assert [x.wait() for x in both] == [0, 0]
    assert len(Known.load(path).entries) == 40


def test_a_kill_leaves_a_whole_file(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text('[[known]]\nfindings = ["Faaaaaaaa"]\n')
    worker = subprocess.Popen([sys.executable, "-c", ADDS.replace("range(20)", "range(100000)"), path, "0"])
    while len(path.read_text().splitlines()) < 20:
        assert worker.poll() is None
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    found = Known.load(path).entries
    assert "Faaaaaaaa" in {name for x in found for name in x.findings}
    with editing(path) as document:  # and what it left beside is swept
        document.add(Entry(findings=("Fbbbbbbbb",)))
    assert [x.name for x in tmp_path.iterdir()] == ["known.toml"]


def test_the_heading_of_a_new_file_is_toml():
    assert parse(known_edit.HEADING) == ()
