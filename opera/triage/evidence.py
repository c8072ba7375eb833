"""What came of each question that was asked to lay the blame of a finding, in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from opera import compilers
from opera.compilers import BODY, COUNTED, DECLARED, GIVEN, LAWFUL, LESS, MADE, NODE, SOURCE
from opera.compilers.openvino.interpreter import NotEvaluated
from opera.compilers.shared.packing import ALONE, Refusal
from opera.compilers.tvm.interpreter import NotKnown
from opera.oracle.randomness import FORMS
from opera.oracle.screens import AGREEING
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, REFUSED, Outcome
from opera.triage.alike import alike, same_answer, same_words
from opera.triage.part import (
    AS_FOUND,
    DREW,
    KERNELS,
    OTHER,
    ROUTE,
    SEVERAL,
    WITHOUT,
    Tried,
    at_output,
    converter,
    is_faulty,
    is_made,
    is_unlawful,
    lost,
    shows,
)
from opera.triage.sentence import listed

if TYPE_CHECKING:
    from opera.triage.blame import Subject

ALIKE = ("the same answer", "the same failure")
"""Remarks on what fails by another route as it was found."""
OTHERWISE = "another answer"
"""Remark on what is wrong in another way than it was found."""
UNCONFIRMED = "the test that it was reduced from is not right by it"
"""Remark on a reduced program that is right by another route: small programs hide mistakes."""
REPLACED = "with the library's answer in place of it, all is right"
"""Remark on the converter of a model that has several."""
UNKNOWN = (NotEvaluated.__name__, NotKnown.__name__)
"""Symptoms of a way by which opera itself computes something, and cannot: that tells nothing of the compiler."""
LUCK = "with several elements it fails"
"""How a remark begins on what is right of one element, or of elements that are all alike, alone."""


class Evidence(msgspec.Struct, frozen=True):
    """One thing that was tried: `way` in words (`graph optimisations off`), and what came of it (`passes`).

    Attributes:
        kind: As in opera.triage.part.Tried; empty for a second opinion.
        off: By how much right numbers are off, relatively.
    """

    way: str
    shows: str
    remark: str = ""
    kind: str = ""
    off: float = 0.0

    @property
    def right(self) -> bool:
        return self.shows == shows(Outcome(PASS))

    @property
    def lucky(self) -> bool:
        """Whether it is right by what hides mistakes: one element, or elements that are all alike."""
        return self.remark == UNCONFIRMED or self.remark.startswith(LUCK)


def evidence(about: Subject, tried: list[Tried]) -> Iterator[Evidence]:
    """Yield what came of each question that says something, and what the screens heard when the failure was found."""
    now = next((x.outcome for x in tried if x.kind == AS_FOUND), about.seen)
    own = (x for x in tried if x.kind not in (MADE, WITHOUT, SEVERAL))
    shown = [x for x in own if not _missing(x.outcome) and not _silent(x, about)]
    lucky = {x.way: f"{LUCK}: {shows(x.outcome)}" for x in lost(tried, about.seen, drawn=about.drawn)}
    for x in shown:
        row = _row(x, about, now)
        yield msgspec.structs.replace(row, remark=lucky[x.way]) if row.right and x.way in lucky else row
    yield from _alike(tried)
    yield from _opinions(about.seen, {x.way.partition(" ")[0] for x in shown if x.kind == OTHER})


def _evidence(tried: Tried) -> str:
    """Say what came of one question; of types that are stated, values mean nothing."""
    stated = tried.outcome
    if tried.kind == DECLARED and stated.verdict == INCONSISTENT and stated.symptom in ("value", "nan-mask"):
        others = [text for text in stated.details.get("others", ()) if not re.search(r": (?:value|nan-mask):", text)]
        return "; ".join(["shapes and dtypes are as expected"] if not others else ["inconsistent", *others])[:160]
    return shows(stated)


def _alike(tried: Iterable[Tried]) -> Iterator[Evidence]:
    """Yield whether the importer makes the same of the program with and without what decides, where that is known."""
    made = {x.kind: x.outcome.message for x in tried if x.kind == MADE and is_made(x.outcome)}
    for x in tried:
        if x.kind == WITHOUT and made and is_made(x.outcome):
            alike = x.outcome.message == made[MADE]
            yield Evidence(f"{x.way}, without {listed(x.names)}", "is the same" if alike else "is another one")


def _missing(outcome: Outcome) -> bool:
    """Whether a program has no such artefact, which is known of stored tests only."""
    return outcome.verdict == ERROR and outcome.symptom == LookupError.__name__


def _silent(tried: Tried, about: Subject) -> bool:
    """Whether a way had nothing to say: what an operator means is not known, no rule is broken, no operator runs by a body, or
    is wrong by itself, other kernels are right, nothing is there to be left out, other numbers were drawn, none or several
    converters are known.
    """
    if tried.outcome.symptom in UNKNOWN:
        return True
    of_body = tried.kind == BODY and not (tried.right or tried.wrong)
    drew = tried.kind not in (AS_FOUND, DECLARED, NODE) and _named(tried, about).message == DREW
    unknown = tried.kind == SOURCE and not converter(tried)
    sound = tried.kind == NODE and not is_faulty(tried.outcome)
    sound |= tried.kind in (COUNTED, GIVEN, LESS) and tried.outcome.symptom == Refusal.__name__
    sound |= tried.kind == KERNELS and not tried.wrong
    return of_body or drew or unknown or sound or (tried.kind == LAWFUL and not is_unlawful(tried.outcome))


def _named(tried: Tried, about: Subject) -> Outcome:
    """Return what was seen of the output that the finding names. Numbers that others draw are not the reference's; a wrong form
    by another route tells that this does otherwise.
    """
    if about.drawn and tried.kind == ROUTE and tried.wrong and tried.outcome.symptom in FORMS:
        return tried.outcome
    form = about.seen.symptom in FORMS and "drawn" in tried.outcome.details  # these tell of the form, too
    drew = about.random and tried.kind == OTHER and tried.wrong and tried.outcome.symptom not in FORMS and not form
    return at_output(tried.outcome, about.seen, drawn=about.drawn or drew)


def _row(tried: Tried, about: Subject, now: Outcome) -> Evidence:
    """Say what came of one question; where it is not what a user's model is given to, of the output that the finding names."""
    if tried.kind in (AS_FOUND, DECLARED):
        return Evidence(tried.way, _evidence(tried), kind=tried.kind)
    if tried.kind == SOURCE:
        alone = tried.outcome.message.startswith(ALONE)
        return Evidence(tried.way, converter(tried), REPLACED if alone else "", tried.kind)
    if tried.kind == LAWFUL:
        exports = compilers.exporter(*about.frontend.rpartition("-")[::2])
        return Evidence(tried.way, "fails by itself" if exports else "breaks a rule", tried.outcome.message, tried.kind)
    if tried.kind == NODE:
        return Evidence(tried.way, "is wrong by itself", tried.outcome.message, tried.kind)
    named = msgspec.structs.replace(tried, outcome=_named(tried, about))
    if named.right:
        unconfirmed = tried.kind == ROUTE and tried.way.rpartition(" ")[2] in about.unconfirmed
        remark, off = UNCONFIRMED if unconfirmed else named.outcome.message, named.outcome.details.get("max_rel")
        return Evidence(tried.way, shows(named.outcome), remark, tried.kind, off if isinstance(off, float) else 0.0)
    if named.wrong:
        remark = ALIKE[0] if same_answer(named.outcome, at_output(now, about.seen)) else OTHERWISE
    else:
        remark = ALIKE[1] if tried.kind in (ROUTE, GIVEN) and _is_alike(tried.kind, named.outcome, now) else ""
    return Evidence(tried.way, _evidence(tried), remark, tried.kind)


def _is_alike(kind: str, one: Outcome, now: Outcome) -> bool:
    """Whether a failure is the same one; given in another way, a model may say the same later on."""
    said = (x.verdict in (CRASH, REFUSED) for x in (one, now))
    return alike(one, now) or (kind == GIVEN and all(said) and same_words(one.message, now.message))


def _opinions(seen: Outcome, asked: Collection[str]) -> list[Evidence]:
    """Return what the screens heard of implementations when the failure was found, of those that were not asked now."""
    found = _heard(seen)
    return [row for row in found if row.way.removeprefix("second opinion: ") not in asked]


def _heard(seen: Outcome) -> list[Evidence]:
    told = {key: seen.details[key] for key in (AGREEING, "disputing") if seen.details.get(key)}
    errors = {key: text for key, text in seen.details.items() if key.endswith("_error") and isinstance(text, str)}
    rows = [
        Evidence(f"second opinion: {told[key]}", "agrees with the expected outputs") for key in told if key == AGREEING
    ]
    rows += [Evidence(f"second opinion: {told[key]}", "gives another answer") for key in told if key == "disputing"]
    return [*rows, *(Evidence(f"second opinion: {key[:-6]}", f"none: {text[:120]}") for key, text in errors.items())]
