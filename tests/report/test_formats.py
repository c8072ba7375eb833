from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser

import pytest
from filled import HOSTILE, captured

from opera import report as reports
from opera.errors import UsageError
from opera.programs.verdicts import VERDICTS
from opera.report.html import chart, ticks
from opera.report.summary import summarise
from opera.report.words import ORDER, clean, gist, one_line
from opera.resources import content


class Page(HTMLParser):
    """What a browser would make of the page: elements with attributes, and the text of each kind of element."""

    VOID = frozenset(("meta", "link", "input", "br", "line", "polyline"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


@pytest.fixture
def page(report) -> Page:
    return Page(reports.get("html").render(report))


def test_html_is_one_well_formed_file_that_asks_for_nothing(page):
    assert page.open == []
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "base")
        for name in ("src", "href", "action"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, value)
        assert not [name for name in attributes if name.startswith("on")]
    style = "".join(page.texts["style"])
    assert "url(" not in style
    assert "@import" not in style
    policy = next(x["content"] for tag, x in page.elements if tag == "meta" and "http-equiv" in x)
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_html_has_a_colour_for_every_verdict(page):
    style = "".join(page.texts["style"])
    assert [name for name in VERDICTS if f".v-{name} {{ --v: var(--" not in style] == []


def test_html_shows_hostile_strings_as_text(page):
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    shown = clean(HOSTILE)
    assert shown in "".join(page.texts["pre"])  # the message
    assert any(shown in text for text in page.texts["th"])  # the operator, in the matrix
    assert "49" not in "".join(page.texts["pre"])  # {{ 7*7 }}
    assert "\x1b]0;" not in "".join(page.texts["pre"])


def test_html_script_is_the_one_that_the_policy_allows(report):
    import base64
    import hashlib

    text = reports.get("html").render(report)
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in text


def test_html_has_every_section_and_denominators(page):
    ids = [x["id"] for _, x in page.elements if x.get("id")]
    assert len(ids) == len(set(ids))
    assert {"frontends", "curve", "findings", "operators", "reasons", "invalid", "trouble", "words"} <= set(ids)
    cells = " ".join(page.texts["td"])
    assert "2 (20.0 %)" in cells
    assert any("print('reproduced here')" in text for text in page.texts["pre"])
    findings = [x for tag, x in page.elements if tag == "details" and x.get("class") == "finding"]
    assert len(findings) == 6
    assert {x["data-frontend"] for x in findings} == {"tvm-onnx 0.27.0", "tvm-onnx 0.9.0", "openvino-onnx 2026.4"}


def test_html_matrix_has_letters_beside_colours(page):
    cells = [x for tag, x in page.elements if tag == "td" and str(x.get("class", "")).startswith("cell")]
    assert {x["class"].split()[1] for x in cells} >= {"v-crash", "v-pass", "v-abort", "v-error", "v-out-of-memory"}
    assert {"C", "P", "A", "E", "M"} <= set(page.texts["b"])
    assert any(x["title"] == "1 tests: 1 crash" for x in cells)


def test_html_leaves_a_script_out_that_is_gone_or_too_long(workspace, report):
    path = workspace.root / "reproducers" / "Faaaaaaaa.py"
    path.write_text("# long\n" * 20_000, encoding="utf-8")
    assert "too long to show" in reports.get("html").render(report)
    path.unlink()
    assert "too long to show" in reports.get("html").render(report)


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal_fits_its_width(report, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = reports.get("terminal").render(report)
    assert max(map(len, text.splitlines())) <= columns
    assert "2 (20.0 %)" in text
    assert "10 of 11" in text
    assert "Faaaaaaaa" in text
    assert "opera show ID" in text
    assert "opera itself failed 2 times" in text
    assert ("no converter for Pad" in text) and ("nondeterministic" in text)
    assert "\x1b" not in text.replace("\x1b[", "")


def test_terminal_keeps_markup_and_escape_codes_as_text(report, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = reports.get("terminal").render(report)
    assert "[bold]{{ 7*7 }}" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_markdown_tables_stay_tables(report):
    lines = reports.get("markdown").render(report).splitlines()
    table = [line for line in lines if line.startswith("| ")]
    pipes = [len(re.findall(r"(?<!\\)\|", line)) for line in table]
    assert set(pipes) == {len(report.frontends) + 2, 9, 4}  # frontends, findings, what schemas admit
    text = "\n".join(lines)
    assert "<img" not in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert "2 (20.0 %)" in text


def test_an_empty_workspace_says_what_to_do_next(workspace):
    empty = summarise(workspace)
    for name in ("terminal", "markdown", "html"):
        assert "opera extract onnx" in reports.get(name).render(empty), name
    assert json.loads(reports.get("json").render(empty))["frontends"] == []
    assert Page(reports.get("html").render(empty)).open == []


def test_what_is_there_need_not_be_extracted_again(workspace):
    workspace.add_captured([captured(1, "Conv")])
    for name in ("terminal", "markdown", "html"):
        text = reports.get(name).render(summarise(workspace))
        assert "opera prioritize" in text and "opera extract" not in text, name


def test_html_is_not_written_to_a_terminal(monkeypatch, tmp_path):
    reports.check("html", None)
    monkeypatch.setattr("opera.report.sys.stdout.isatty", lambda: True)
    for name in ("terminal", "markdown", "json"):
        reports.check(name, None)
    reports.check("html", tmp_path / "report.html")
    with pytest.raises(UsageError, match="html is not for a terminal") as error:
        reports.check("html", None)
    assert "--output report.html" in str(error.value)


def test_every_verdict_has_a_colour_of_its_own():
    style = (content("templates") / "report" / "style.css").read_text()
    colours = dict(re.findall(r"\.v-([\w-]+) \{ --v: var\(--([\w-]+)\)", style))
    assert set(colours) == set(ORDER) and len(set(colours.values())) == len(ORDER)
    assert all(style.count(f"--{name}: #") == 2 for name in colours.values()), "in light and in dark"


def test_write_goes_to_a_file_or_to_standard_output(report, tmp_path, capsys):
    reports.write(reports.get("json"), report, tmp_path / "report.json")
    assert "written to" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["findings"]
    reports.write(reports.get("json"), report, None)
    assert json.loads(capsys.readouterr().out)["findings"]
    with pytest.raises(UsageError, match="cannot be written"):
        reports.write(reports.get("json"), report, tmp_path / "no" / "folder.json")
    assert [x.name for x in tmp_path.iterdir() if x.name.startswith(".")] == []


def test_an_unknown_format_is_told():
    with pytest.raises(UsageError, match="no report format"):
        reports.get("pdf")


def test_chart_labels_do_not_lie_on_each_other(report):
    places = sorted(line.at for line in chart(report.frontends * 4).lines)
    assert min(b - a for a, b in itertools.pairwise(places)) >= 15
    assert [ticks(n) for n in (0, 3, 49, 1877)] == [
        [0], [0, 1, 2, 3], [0, 10, 20, 30, 40], [0, 500, 1000, 1500],
    ]  # fmt: skip


def test_short_texts():
    assert clean("a\x1b[31mred\x1b[0m\x00b\u202ec\td") == "ared\ufffdb\ufffdc\td"
    assert one_line("a\n b  c", 4) == "a b…"
    assert (
        gist("Exception from src/a.cpp:84:\nCheck 'false' failed at src/b.cpp:1:\n  the cause:\nand more", 50)
        == "the cause: and more"
    )
    assert gist("Check 'false' failed at src/b.cpp:1:", 50) == "Check 'false' failed at src/b.cpp:1:"
