"""Known issues: what is read, what is refused, and which finding an entry knows."""

from __future__ import annotations

from time import process_time

import msgspec
import pytest

from opera.errors import UsageError
from opera.triage.findings import Finding
from opera.triage.known import Entry, Known, alike, parse, regressed, signature, within

ONE = Finding(
    "F00000001", "tvm-onnx", "0.27.0", "e", "crash", "load", "KeyError", "Conv", ("Conv",), "onnx_frontend:Conv._impl_v1",
    "no 'X' in 3 things", ("t1", "t2"), ("test_a", "test_b"), ("inputs",), 1, (), 1, None, {}, ("F0000000a",),
)  # fmt: skip
PLACE = "tvm-onnx load KeyError onnx_frontend:Conv._impl_v1"
SIGNATURE = f"{PLACE}: no @ in # things"
TEST = "0123456789abcdef0123"


def known(*entries: Entry) -> Known:
    return Known(entries, instances={"t1": TEST})


def changed(**fields: object) -> Finding:
    return msgspec.structs.replace(ONE, **fields)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(findings=("F00000001",)),
        Entry(findings=("F0000ffff", "F00000001")),
        Entry(findings=("F0000000a",)),  # an alias
        Entry(
            findings=("F00000001",), frontend="tvm-*", operator="Con*", message=r"in \d things", versions=">=0.25,<0.28"
        ),
        Entry(
            findings=("F0000ffff",), signature="tvm-onnx load KeyError else: no @ in # things", tests=(TEST,)
        ),  # moved
        Entry(findings=("F0000ffff",), signature=f"{PLACE}: worded anew", tests=(TEST,)),
        Entry(signature=SIGNATURE),
        Entry(signature=PLACE),
        Entry(signature="tvm-onnx load KeyError onnx_frontend:*"),
        Entry(operator="Conv"),
        Entry(message="no 'X'"),
        Entry(findings=("F00000001",), status="fixed", fixed_in="0.28"),
    ],
)
def test_an_entry_knows_the_finding(entry):
    assert known(entry).of(ONE) is entry
    assert not known(entry).marked([ONE])[0].new


@pytest.mark.parametrize(
    "entry",
    [
        Entry(findings=("F00000002",)),
        Entry(findings=("F00000001",), frontend="openvino-*"),
        Entry(findings=("F00000001",), operator="Pool*"),
        Entry(findings=("F00000001",), message="no 'Y'"),
        Entry(findings=("F00000001",), versions="<0.27"),
        Entry(findings=("F0000ffff",), signature=SIGNATURE),  # its own id, and none of its tests
        Entry(findings=("F0000ffff",), signature=SIGNATURE.replace("Key", "Value"), tests=(TEST,)),  # another symptom
        Entry(
            findings=("F0000ffff",), signature="tvm-onnx load KeyError else: too many", tests=(TEST,)
        ),  # another exception
        Entry(findings=("F0000ffff",), signature=SIGNATURE, tests=("0" * 20,)),
        Entry(signature="tvm-onnx compile *"),
    ],
)
def test_an_entry_does_not_know_the_finding(entry):
    assert known(entry).of(ONE) is None
    assert known(entry).marked([ONE])[0].new


def test_entries_of_one_finding_must_match_all_its_operators():
    both = changed(operators=("Conv", "Pool"))
    conv, pool = (Entry(findings=(ONE.id,), operator=name, issue=name) for name in ("Conv", "Pool"))
    assert known(conv).of(both) is None
    assert known(conv, pool).of(both) is conv
    assert known(pool).of(changed(operator="Conv + Pool", operators=("Conv", "Pool"))) is pool  # one program of both


def test_the_one_that_names_a_finding_comes_before_one_that_describes_it():
    named, described = Entry(findings=(ONE.id,), issue="1"), Entry(operator="Conv", issue="2")
    assert known(described, named).of(ONE) is named


def test_what_is_fixed_and_fails_at_that_version_or_later_is_a_regression():
    entry = Entry(findings=(ONE.id,), status="fixed", fixed_in="0.27")
    mark = known(entry).mark(ONE)
    assert mark is not None
    assert mark.regression
    assert known(entry).marked([ONE])[0].new
    assert known(entry, Entry(findings=(ONE.id,), versions=">=0.27")).of(ONE) is not entry  # it was opened again
    for version, back in (("0.26.9", False), ("0.27.dev3", False), ("0.27.0.post1", True), ("0.28.dev1", True)):
        assert regressed(entry, version) is back


def test_versions_that_compilers_give_themselves():
    assert within("2023.1.0-12185-47b736f63ed-releases/2023/1", ">=2023.1,<2024")
    assert within("0.28.dev5", ">=0.27")
    assert within("2.13.0+cpu", "==2.13.*")
    assert not within("?", ">=0")
    assert within("?", "")


def test_new_findings_come_before_known_ones():
    found = known(Entry(findings=(ONE.id,))).marked([ONE, changed(id="F00000002", aliases=())])
    assert [x.id for x in found] == ["F00000002", ONE.id]


def test_a_signature_has_its_words():
    assert signature(ONE) == SIGNATURE
    died = {"verdict": "abort", "symptom": "exit  code 3", "conversion_function": ""}
    assert signature(changed(**died)) == "tvm-onnx load exit-code-3 Conv"
    assert signature(changed(message="")) == PLACE


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a load E Op@x.hpp:36: m", "a load E Op@x.hpp:41: other", True),  # a line further down
        ("a load E Op@x.hpp:36: m", "a load E Op@y.hpp:36: other", False),
        ("a load E Op@x.hpp:36: m", "a load E Other@y.hpp:41: m", True),
        ("a infer value Cast", "a infer value CastLike", True),
        ("a infer value Cast", "a infer nan-mask Cast", False),
        ("a load E Op", "a load E Op: m", False),
        ("a load E Op: m", "b load E Op: m", False),
    ],
)
def test_what_is_alike(one, other, same):
    assert alike(one, other) is alike(other, one) is same


GOOD = '[[known]]\nfindings = ["F00000001"]\n'


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("[[known]\n", "known.toml: it is no TOML: ", "mend it"),
        ('[[known]]\nfindings = ["F0000001"]\n', "known.toml:1: 'F0000001' is no id", "`opera findings` lists"),
        (GOOD + '\n[[known]]\nfindings = ["X"]\n', "known.toml:4: 'X' is no id", "`opera findings` lists"),
        (GOOD + 'status = "wontfix"\n', "known.toml:1: there is no status 'wontfix'", "choose from open, confirmed,"),
        (GOOD + 'versions = "0.25 and later"\n', "known.toml:1: versions = '0.25 and later' cannot", ">=0.25,<0.28"),
        (GOOD + 'status = "fixed"\n', "known.toml:1: no fixed_in", 'fixed_in = "0.28"'),
        (GOOD + 'fixed_in = "0.28"\n', "known.toml:1: fixed_in, but the status is 'open'", 'status = "fixed"'),
        (GOOD + 'status = "fixed"\nfixed_in = "next"\n', "known.toml:1: fixed_in = 'next' is no version", "0.28"),
        (GOOD + 'status = "by-design"\n', "known.toml:1: status 'by-design' without a reason", "reason ="),
        (GOOD + 'status = "not-a-bug"\nreason = " "\n', "known.toml:1: status 'not-a-bug' without", "reason ="),
        (GOOD + 'message = "("\n', "known.toml:1: message cannot be read: ", "\\("),
        (GOOD + 'tests = ["test_conv"]\n', "known.toml:1: 'test_conv' is no id of an instance", "leave it out"),
        (GOOD + "urgent = true\n", "known.toml:1: there is no field 'urgent'", "choose from findings,"),
        (GOOD + "note = 3\n", "known.toml:1: note is no text: 3", 'note = "3"'),
        ('[[known]]\nfindings = "F00000001"\n', "known.toml:1: findings is no list", 'findings = ["…"]'),
        ('[[known]]\nfrontend = "tvm-onnx"\n', "known.toml:1: it names no finding", "at least one of"),
        (GOOD + GOOD, "known.toml:3: F00000001 is named twice", "keep one"),
        ('[known]\nfindings = ["F00000001"]\n', "known.toml: 'known' is no array", "begin every issue with [[known]]"),
        ('[[knwon]]\nfindings = ["F00000001"]\n', "known.toml: 'knwon' means nothing here", "[[known]] table"),
    ],
)
def test_what_is_not_understood_is_told_with_its_line_and_what_to_do(text, what, fix):
    with pytest.raises(UsageError) as told:
        parse(text)
    error = told.value
    assert error.what.startswith(what)
    assert fix in error.fix
    assert error.cause
    assert not {"\n"} & set(error.what + error.cause + error.fix)


def test_an_empty_file_knows_nothing():
    assert parse("# nothing yet\n") == ()


def test_a_file_that_is_named_must_be_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Known.beside(None) == Known()
    with pytest.raises(UsageError, match=r"cannot be read: No such file"):
        Known.beside(tmp_path / "none.toml")
    (tmp_path / "known.toml").write_bytes(b'note = "\xff"')
    with pytest.raises(UsageError, match=r"is no UTF-8 text: byte 8"):
        Known.beside(None)
    (tmp_path / "known.toml").write_text(GOOD)
    assert Known.beside(None).of(ONE) is not None


def test_many_findings_among_many_entries_take_seconds():
    names = [f"F{n:08x}" for n in range(500)]
    entries = tuple(
        Entry(findings=(name,), signature=f"{PLACE}: {name}", versions=">=0.20,<0.28", tests=(f"{n:020x}",))
        for n, name in enumerate(names)
    )
    found = [changed(id=f"F1{name[2:]}", aliases=(), message=name, members=(name,)) for name in names]
    instances = {name: f"{n:020x}" for n, name in enumerate(names)}
    began = process_time()
    marked = Known(entries, instances=instances).marked(found)
    assert process_time() - began < 5
    assert not any(x.new for x in marked)


@pytest.mark.parametrize(("status", "waits"), [("by-design", False), ("not-a-bug", False), ("open", True)])
def test_what_is_to_be_filed_after_one_that_is_no_bug_waits_for_nothing(status: str, waits: bool) -> None:
    later = changed(id="F00000002", aliases=(), follows=ONE.id, doubts=(f"file {ONE.id} first",))
    elsewhere = changed(id="F00000003", aliases=(), environment="another", follows=ONE.id, doubts=("file it first",))
    entry = Entry(findings=(ONE.id,), status=status, reason="documented")
    found = {x.id: x for x in known(entry).marked([ONE, later, elsewhere])}
    assert bool(found["F00000002"].doubts) is bool(found["F00000002"].follows) is waits
    assert found["F00000003"].doubts
