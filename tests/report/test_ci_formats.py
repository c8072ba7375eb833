"""JUnit and SARIF, as other programs read them."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
import xml.etree.ElementTree as ET
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from filled import HOSTILE, captured, document, judged

from opera import report as reports
from opera.report import known as stage
from opera.report.places import Place, Places
from opera.store.rows import Test as MigratedTest
from opera.triage.findings import Finding, findings
from opera.triage.known import NONE, Known

CRASH, WRONG = "Faaaaaaaa", "Fbbbbbbbb"


def rendered(workspace, name: str, known: Known = NONE, source: Path | None = None) -> str:
    found = known.within_workspace(workspace).marked(findings(workspace))
    return "".join(reports.stream(name).chunks(workspace, found, source=source))


@pytest.fixture
def known(workspace, environments, tmp_path) -> Known:
    path = tmp_path / "known.toml"
    stage.add(workspace.root, path, [CRASH], {"issue": "https://x/1?a=1&b=2", "note": HOSTILE, "versions": ">=0.20"})
    stage.add(workspace.root, path, [WRONG], {"status": "fixed", "fixed_in": "0.27"})
    return Known.load(path)


@pytest.fixture(scope="session")
def schemas() -> Path:
    """The published schemas, where they are there (docs/ci.md says where from)."""
    folder = Path(os.environ.get("OPERA_SCHEMAS", Path(__file__).parents[3] / "shared" / "schemas"))
    if not folder.is_dir():
        pytest.skip("the published schemas of JUnit and SARIF are not here (set OPERA_SCHEMAS)")
    return folder


# ---------------------------------------------------------------------- JUnit

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "skipped": {"message"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"skipped", "failure", "error"},
}


def test_junit_has_a_case_for_each_test_on_each_frontend(workspace, known):
    root = ET.fromstring(rendered(workspace, "junit", known))
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag]
        assert {x.tag for x in element} <= CHILDREN.get(element.tag, set())
    suites = {x.get("name"): x for x in root}
    assert list(suites) == ["openvino-onnx 2026.4", "tvm-onnx 0.9.0", "tvm-onnx 0.27.0"]
    for suite in root:
        cases = suite.findall("testcase")
        for attribute, path in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == len(suite.findall(f"testcase/{path}"))
        assert int(suite.get("tests")) == len(cases) == len({x.get("name") for x in cases})
    assert int(root.get("tests")) == sum(int(x.get("tests")) for x in root)
    told = {x.get("name").split("[")[1][:-1]: x for x in suites["tvm-onnx 0.27.0"].findall("testcase")}
    assert len(told["t3"]) == 0 and told["t3"].get("time") == "0.500"
    assert told["t3"].get("classname") == "tvm-onnx.Relu"
    assert told["t0"][0].tag == told["t2"][0].tag == "skipped"
    assert told["t0"][0].get("message").startswith("known issue Faaaaaaaa: open, https://x/1?a=1&b=2, ")
    assert told["t1"][0].tag == "failure"
    assert "Fbbbbbbbb, back though it was fixed in 0.27: TVM computes" in told["t1"][0].get("message")
    assert "opera repro Fbbbbbbbb --verify" in told["t1"][0].text
    assert told["t4"][0].get("message") == "unsupported: no converter for Pad"
    assert told["t5"][0].get("message") == "screened: nondeterministic"
    assert told["t6"][0].tag == "skipped" and told["t6"][0].get("message") == "flaky"
    assert told["t7"][0].tag == "error" and told["t7"][0].get("message").startswith("opera itself failed: opera broke")
    assert told["t8"][0].get("type") == "SIGSEGV"
    old = suites["tvm-onnx 0.9.0"].findall("testcase/failure")
    assert [x.get("message")[:9] for x in old] == [CRASH]  # it is known from 0.20 on


def test_junit_without_a_file_of_known_issues_fails_for_all(workspace, environments):
    root = ET.fromstring(rendered(workspace, "junit"))
    failing = {(x.frontend, x.environment, test) for x in findings(workspace) for test in x.members}
    assert int(root.get("failures")) == len(failing)
    assert HOSTILE.replace("\x1b]0;owned\x07\x1b[31m", "") in "".join(root.itertext())


def test_junit_of_a_time_out_that_nothing_confirmed_is_skipped(workspace, environments):
    more = {"finding": "F00000009", "confirmation": "pending", "message": "over 30 s"}
    late = judged("t3", "tvm-onnx", "inputs", environments["tvm"], "timeout", "load", "timeout", **more)
    workspace.save_verdicts(1, [late], {"F00000009": b"{}"})
    root = ET.fromstring(rendered(workspace, "junit"))
    told = [x.get("message") for x in root.iter("skipped")]
    assert "not confirmed: over 30 s" in told


def test_junit_is_as_jenkins_wants_it(workspace, known, schemas, tmp_path):
    xmlschema = pytest.importorskip("xmlschema")
    xmlschema.XMLSchema(schemas / "junit-10.xsd").validate(rendered(workspace, "junit", known))


def test_text_that_xml_cannot_hold_is_replaced(workspace, environments):
    told = "a\x00b\x0bc\ud800d\ufffee ]]> & <é>"
    x = judged("t3", "tvm-onnx", "inputs", environments["tvm"], "crash", "load", "E", finding="F00000009", message="x")
    x = msgspec.structs.replace(x, outcome=msgspec.structs.replace(x.outcome, message=told.replace("\ud800", "")))
    workspace.save_verdicts(1, [x], {"F00000009": b"{}"})
    texts = [x.text for x in ET.fromstring(rendered(workspace, "junit")).iter("failure")]
    assert any("a\ufffdb\ufffdcd\ufffde ]]> & <é>" in text for text in texts)


# ---------------------------------------------------------------------- SARIF


def test_sarif_has_a_result_for_each_finding(workspace, known):
    log = json.loads(rendered(workspace, "sarif", known))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    results = {x["partialFingerprints"]["operaFinding/v1"]: x for x in run["results"]}
    assert set(results) == {x.id for x in findings(workspace)}
    assert len(results) == len(run["results"])
    rules = {x["id"] for x in run["tool"]["driver"]["rules"]}
    assert {x["ruleId"] for x in run["results"]} == rules == {"value", "crash", "abort", "timeout", "out-of-memory"}
    for x in run["results"]:
        assert set(x["partialFingerprints"].values()) == {x["partialFingerprints"]["operaFinding/v1"]} | {
            f"{x['partialFingerprints']['operaFinding/v1']}:1"
        }
        assert x["level"] in ("error", "warning", "note")
        (at,) = x["locations"]
        assert not Path(at["physicalLocation"]["artifactLocation"]["uri"]).is_absolute()
        assert x["message"]["text"]
    assert results[WRONG]["suppressions"] == []
    assert "It is back: fixed in 0.27." in results[WRONG]["message"]["text"]
    assert results["Fdddddddd"]["level"] == "note"  # not confirmed
    assert results["Feeeeeeee"]["level"] == "warning"
    assert results[CRASH]["properties"]["versions"] == ["0.9.0", "0.27.0"]
    assert "\x1b" not in json.dumps(log, ensure_ascii=False)


def test_what_is_known_is_suppressed_with_its_address(workspace, environments, tmp_path):
    path = tmp_path / "known.toml"
    stage.add(workspace.root, path, [CRASH], {"issue": "https://x/1", "status": "not-a-bug", "reason": "as agreed"})
    stage.add(workspace.root, path, [WRONG], {"issue": "JIRA-7"})
    results = json.loads(rendered(workspace, "sarif", Known.load(path)))["runs"][0]["results"]
    told = {x["partialFingerprints"]["operaFinding/v1"]: x for x in results}
    (suppression,) = told[CRASH]["suppressions"]
    assert suppression == {
        "kind": "external", "status": "accepted", "justification": "not a bug, https://x/1, as agreed",
    }  # fmt: skip
    assert told[CRASH]["workItemUris"] == ["https://x/1"]
    assert "workItemUris" not in told[WRONG]  # that is no address
    assert [x["partialFingerprints"]["operaFinding/v1"] for x in results][-2:] == [WRONG, CRASH]


def test_sarif_is_as_the_standard_has_it(workspace, known, schemas):
    import jsonschema

    schema = json.loads((schemas / "sarif-schema-2.1.0.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator(schema, format_checker=jsonschema.FormatChecker()).validate(
        json.loads(rendered(workspace, "sarif", known))
    )


@pytest.mark.parametrize("form", ["junit", "sarif"])
def test_an_empty_workspace_has_an_empty_report(workspace, form):
    text = rendered(workspace, form)
    if form == "sarif":
        assert json.loads(text)["runs"][0]["results"] == []
    else:
        assert ET.fromstring(text).get("tests") == "0"


# ---------------------------------------------------------------------- places

FINDING = Finding(
    "F00000001", "tvm-onnx", "0.1", "e", "crash", "load", "KeyError", "Conv", ("Conv",), "", "m", ("t1",), ("test_a",),
    ("inputs",), 1, (), 1, None, {},
)  # fmt: skip


def place(converter: str, source: Path | None = None, **more) -> Place | None:
    x = msgspec.structs.replace(FINDING, conversion_function=converter, **more)
    return Places([x], source).of(x)


@pytest.fixture
def checkout(tmp_path) -> Path:
    files = {
        "python/frontend.py": "import x\n\nclass Pool:\n    @classmethod\n    def _impl_v1(cls):\n        pass\n\n\n"
        "class Max(Pool):\n    pass\n",
        "src/onnx/resize.cpp": "",
        "src/torch/resize.cpp": "",
        "src/core/shape.hpp": "",
        "python/two.py": "def convert(): pass\n",
        "test/two.py": "x = 1\n",
        "python/broken.py": "def (",
        "build/shape.hpp": "",
    }
    for name, text in files.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


@pytest.mark.parametrize(
    ("converter", "expected"),
    [
        ("frontend:Pool._impl_v1", ("python/frontend.py", 5)),
        ("relax.frontend:Pool._impl_v1[max]", ("python/frontend.py", 5)),
        ("frontend:Max._impl_v1", ("python/frontend.py", 9)),  # inherited: the class
        ("frontend:_impl_v1", ("python/frontend.py", 5)),
        ("frontend:Gone._impl_v1", ("python/frontend.py", 0)),
        ("two:convert", ("python/two.py", 1)),  # the one that defines it
        ("broken:convert", ("python/broken.py", 0)),
        ("nowhere:convert", ("nowhere.py", 0)),
        ("Resize@shape.hpp:12", ("src/core/shape.hpp", 12)),
        ("Resize@resize.cpp:12", ("resize.cpp", 12)),  # there are two
        ("aten::index_add@gone.hpp:66", ("gone.hpp", 66)),
    ],
)
def test_files_are_found_in_a_checkout(checkout, converter, expected):
    found = place(converter, checkout)
    assert found is not None
    assert (found.file, found.line) == expected


@pytest.mark.parametrize("converter", ["Resize", "torch.cdist", "expanded Attention", "", "aten::view"])
def test_what_names_no_file_has_no_place(checkout, converter):
    assert place(converter, checkout) is None


def test_where_it_was_raised_counts_in_a_file_of_converters_alone(checkout):
    x = msgspec.structs.replace(FINDING, location="frontend.py:_impl_v1")
    assert Places([x], checkout).of(x) is None  # it may be a wrapper, through which every failure goes
    other = msgspec.structs.replace(FINDING, conversion_function="frontend:Pool._impl_v1")
    found = Places([x, other], checkout).of(x)
    assert found is not None and (found.file, found.line) == ("python/frontend.py", 5)


def test_files_of_what_is_installed_are_found_and_lines_of_the_same_version():
    package = find_spec("tvm")  # not imported, which takes long
    assert package is not None and package.origin is not None
    version = {"frontend": "tvm-onnx", "compiler_version": metadata.version("apache-tvm")}
    found = place("onnx_frontend:Cast._impl_v13", **version)
    assert found is not None
    assert found.file == "tvm/relax/frontend/onnx/onnx_frontend.py"
    lines = (Path(package.origin).parents[1] / found.file).read_text().splitlines()
    assert "def _impl_v13" in lines[found.line - 1]
    older = place("onnx_frontend:Cast._impl_v13", frontend="tvm-onnx", compiler_version="0.1")
    assert older is not None and (older.file, older.line) == (found.file, 0)
    assert place("onnx_frontend:Cast._impl_v13", frontend="another-onnx") == Place(
        "onnx_frontend.py", 0, "Cast._impl_v13"
    )


# ---------------------------------------------------------------------- large reports


def many(workspace, count: int) -> str:
    """Put `count` tests with a verdict each into a workspace, one of ten failing."""
    tvm = workspace.save_environment(document("tvm", "0.27.0"))
    run = workspace.start_run({})
    for start in range(0, count, 1000):
        instances = [captured(10_000 + n, "Conv") for n in range(start, min(start + 1000, count))]
        workspace.add_captured(instances)
        names = [f"m{n:06d}" for n in range(start, start + len(instances))]
        workspace.save_tests(
            "e", [MigratedTest(name, x.program.id, "valid") for name, x in zip(names, instances, strict=True)]
        )
        told = [
            judged(
                name,
                "tvm-onnx",
                "inputs",
                tvm,
                "crash",
                "load",
                f"E{n % 50}",
                finding=f"F{n % 50:08x}",
                message="m" * 900,
            )
            if n % 10 == 0
            else judged(name, "tvm-onnx", "inputs", tvm, "pass")
            for n, name in enumerate(names, start)
        ]
        workspace.save_verdicts(run, told, {x.finding: b"{}" for x in told if x.finding})
    return tvm


def test_junit_is_written_as_it_is_read(workspace):
    many(workspace, 2000)
    found = findings(workspace)
    chunks = reports.stream("junit").chunks(workspace, found, source=None)
    head = [next(chunks) for _ in range(50)]
    asked: list[str] = []
    workspace._db.set_trace_callback(asked.append)
    rest = list(chunks)
    workspace._db.set_trace_callback(None)
    assert asked == []  # the rows come from the query that is open
    assert len(head) + len(rest) > 2000


@pytest.mark.full
def test_a_hundred_thousand_verdicts_take_seconds_and_little_memory(workspace, tmp_path):
    """Ten times as many take about ten times as long; held are the names of tests, and not what was said of them."""
    seconds = []
    for count in (10_000, 100_000):
        many(workspace, count)
        found = findings(workspace)
        began = time.process_time()
        reports.put(reports.stream("junit").chunks(workspace, found, source=None), tmp_path / "junit.xml")
        seconds.append(time.process_time() - began)
    assert seconds[1] < 20 * seconds[0]
    assert seconds[1] < 60
    tracemalloc.start()
    reports.put(reports.stream("junit").chunks(workspace, found, source=None), tmp_path / "junit.xml")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * 100_000
