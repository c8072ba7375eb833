from __future__ import annotations

import pytest
from two_versions import crash, fill, wrong

from opera.errors import UsageError
from opera.programs import migrated
from opera.programs.verdicts import Outcome
from opera.report import show
from opera.run import releases
from opera.triage.findings import findings
from opera.triage.versions import bisect, since
from opera.triage.versions.bisect import FAILS, GOOD, UNTOLD, Span

PASS, LEFT = Outcome("pass"), Outcome("unsupported", "load", "RuntimeError", "no conversion rule for Op0")


@pytest.mark.parametrize(
    ("shown", "span", "asked"),
    [
        ([GOOD, GOOD, FAILS, FAILS], Span(2, 1), 3),
        ([GOOD, GOOD, GOOD, GOOD], Span(4, 3), 3),
        ([FAILS, FAILS], Span(0, -1), 1),
        ([UNTOLD, GOOD, FAILS], Span(2, 1), 3),
        ([GOOD, UNTOLD, UNTOLD, FAILS], Span(3, 0, (1, 2)), 4),
        ([UNTOLD, UNTOLD], Span(2, -1), 2),
        ([], Span(0, -1), 0),
    ],
)
def test_the_first_that_fails_is_found_and_what_cannot_tell_is_stepped_over(shown, span, asked):
    seen: list[int] = []
    assert bisect.search(len(shown), lambda place: seen.append(place) or shown[place]) == span
    assert len(seen) == len(set(seen)) == asked


def test_hundred_releases_are_asked_seven_times_or_so():
    seen: list[int] = []
    assert bisect.search(100, lambda x: seen.append(x) or (FAILS if x >= 63 else GOOD)) == Span(63, 62)
    assert len(seen) <= 8


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (wrong(), FAILS),
        (PASS, GOOD),
        (LEFT, GOOD),
        (wrong("shape"), UNTOLD),
        (crash("x"), UNTOLD),
        (Outcome("unexported"), UNTOLD),
    ],
)
def test_another_failure_tells_nothing(now, told):
    assert bisect.judged("1.0", wrong(), now).told == told


class Stand:
    """Stands in for the package index and the compiler: version → what it shows, or that it cannot be had."""

    def __init__(self, monkeypatch, shown):
        self.shown = shown
        monkeypatch.setattr(releases, "interpreter", self.interpreter)
        monkeypatch.setattr(bisect, "Probe", lambda *_, **__: self)

    def interpreter(self, compiler, library, version):
        assert (compiler, library) == ("openvino", "onnx")
        if version not in self.shown:
            raise releases.Unavailable(f"openvino {version} cannot be installed", cause="no wheel")
        return f"/{version}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, question):
        assert question.fresh and question.test == "bad"
        return self.shown[question.environment]


@pytest.fixture
def finding(workspace) -> str:
    """The id of a finding that both 2025.0.0 and 2026.4.1 have."""
    fill(workspace, {"bad": (wrong(), wrong())})
    migrated.folder(workspace.tests_folder, "bad").mkdir(parents=True)
    return findings(workspace)[0].id


def test_what_was_learned_is_stored_and_shown(workspace, finding, monkeypatch, capsys):
    Stand(monkeypatch, {"2023.1": LEFT, "2024.0": PASS, "2025.0": wrong(), "2026.0": wrong()})
    assert bisect.show(workspace, finding, ["2026.0", "2024.6", "2025.0", "2023.1", "2024.0"])
    told = "since 2025.0 (2024.0: pass), or since 2024.6, which cannot tell"
    assert told in capsys.readouterr().out
    (stored,) = since.stored(workspace, [finding])
    assert (stored.first_bad, stored.last_good, stored.between, stored.seen_in) == (
        "2025.0",
        "2024.0",
        ("2024.6",),
        "2026.4.1",
    )
    assert [(x.version, x.told) for x in stored.asked if x.told == UNTOLD] == [("2024.6", UNTOLD)]
    show.show(workspace, finding)
    assert told in " ".join(capsys.readouterr().out.split())


def test_newer_releases_tell_where_it_is_gone(workspace, finding, monkeypatch, capsys):
    Stand(monkeypatch, {"2027.0": wrong(), "2027.1": PASS, "2027.2": PASS})
    assert bisect.show(workspace, finding, ["2027.0", "2027.1", "2027.2"])
    assert "gone in 2027.1 (still in 2027.0)" in capsys.readouterr().out


def test_the_oldest_may_fail_already(workspace, finding, monkeypatch, capsys):
    Stand(monkeypatch, {"2023.1": wrong()})
    assert bisect.show(workspace, finding, ["2023.1", "2024.0"])
    assert "in 2023.1 already" in capsys.readouterr().out


def test_nothing_is_stored_where_no_release_can_tell(workspace, finding, monkeypatch, capsys):
    Stand(monkeypatch, {})
    assert not bisect.show(workspace, finding, ["2023.1", "2024.0"])
    assert "openvino 2024.0 cannot be installed: no wheel" in capsys.readouterr().out
    assert not since.stored(workspace, [finding])


@pytest.mark.parametrize(
    ("versions", "says"), [(["2026.4.1"], "no other version"), (["2024.x", "-r"], "is no version"), ([], "no other")]
)
def test_what_is_no_other_version_is_refused(workspace, finding, versions, says):
    with pytest.raises(UsageError, match=says):
        bisect.bisect(workspace, finding, versions, print)


def test_a_version_is_the_same_with_zeros_behind():
    assert bisect._key("2025.0") == bisect._key("2025.0.0") < bisect._key("2025.1") < bisect._key("2025.10")
