"""What there are doubts about, and what settles them."""

import pytest

from opera import compilers
from opera.oracle.screens import SINGLE_REFERENCE
from opera.programs.verdicts import NEWER
from opera.triage.blame import Blame, Evidence
from opera.triage.doubts import doubts
from opera.triage.sentence import READS_AS_REFUSAL


def laid(verdict: str, *rows: Evidence) -> Blame:
    return Blame("F1", "e", "t", verdict, "so", rows)


def told(*tags: str, confirmed=1, blame=None, alone=True, agreeing=False) -> list[str]:
    return list(doubts(tags, confirmed, blame, alone=alone, agreeing=agreeing))


def test_what_was_confirmed_and_has_no_such_tag_is_ready():
    assert told() == [] and told("passes-as-constants") == []


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("newer opset", {"tags": (NEWER,)}),
        ("read as a refusal", {"tags": (READS_AS_REFUSAL,)}),
        ("no other implementation", {"tags": (SINGLE_REFERENCE,)}),
        ("fresh process", {"confirmed": 0}),
        ("only after others", {"alone": False}),
    ],
)
def test_each_doubt_is_told_in_words(words, given):
    found = told(*given.pop("tags", ()), **given)
    assert len(found) == 1 and words in found[0]


@pytest.mark.parametrize("part", [compilers.KERNEL, compilers.OPTIMISATION])
def test_a_part_after_the_importer_that_is_wrong_has_nothing_to_do_with_the_opset(part):
    assert told(NEWER, blame=laid(part)) == []
    assert len(told(NEWER, blame=laid(compilers.CONVERSION))) == 1


def test_another_compiler_that_passes_settles_what_one_reference_alone_expects():
    assert told(SINGLE_REFERENCE, agreeing=True) == []
