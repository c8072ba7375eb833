"""What a draft quotes of a library's documentation, and which parameters the quoted rule hangs on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from opera import libraries
from opera.libraries.documented import Quote, Wrong, holds
from opera.oracle import declared, ties
from opera.oracle.draws import SEED
from opera.oracle.randomness import FORMS
from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome
from opera.triage.conditions import peculiar, removable
from opera.triage.distinct import kinship
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import EMPTY, at_limit, said

DECIDES = re.compile(
    r"(?:input |a number equal to )?(\w+)(?: just at a limit|(?: or \w+)? left out| naming .*| is .*)?"
)
"""What decides, of an input or a parameter that has no value: `input P`, `a number equal to iou_threshold`, `min left out`."""
TYPES = re.compile(r"dtype|data ?type|element type|precision|\b(?:b?float|u?int|bool)\d*\b", re.IGNORECASE)
"""Words of a crash that is about a dtype."""
RULE = "the rule"
"""What a quotation is about that states a rule."""
LAWS = {
    "uniform": ("uniform distribution",),
    "normal": ("normal distribution",),
    "log-normal": ("log normal distribution",),
    "exponential": ("exponential distribution",),
    "cauchy": ("cauchy distribution",),
    "geometric": ("geometric distribution",),
    "integers": ("random integers uniformly", "discrete uniform distribution"),
    "bernoulli": ("produced probability", "bernoulli distribution", "bernoulli probability"),
    "categorical": ("multinomial distribution",),
    "dropout": ("output random dropout", "randomly zeroes probability", "randomly sets rate", "drops entire"),
}
"""Law that is declared of what an operator draws → words by which the sentence of its documentation is found that states it."""


def quotes(program: Program, shown: Choice, outcome: Outcome) -> list[Quote]:
    """Return what the library's documentation says of a program of one call; nothing where the library is not here to ask."""
    calls = program.instances()
    library: Any = libraries.get(program.library)
    if len(calls) != 1 or not hasattr(library, "documented"):
        return []
    parameters = [x for x in map(removable.named, shown.told) if x]
    decide = [removable.plainly(x) for x in shown.deciding]
    named = map(DECIDES.fullmatch, decide)
    parameters += [x[1] for x in named if x and x[1] not in parameters]
    parameters += [x for x in mentioned(calls[0], outcome) if x not in parameters]
    wrong = Wrong.of(outcome.details, outcome.symptom)
    told = [x for x in decide if is_rule(x)] + [peculiar.TIE] * tied(calls[0], outcome)
    out = tuple(x[1] for x in map(DECIDES.fullmatch, decide) if x and x[0].endswith(removable.LEFT_OUT))
    wrong = wrong._replace(told=tuple(told), dtypes=removable.SEVERAL in shown.deciding, omitted=out)
    try:
        found: list[Quote] = [*_drawn(calls[0], outcome), *library.documented(calls[0], parameters, wrong)]
    except ImportError:
        return []
    found = [x for x in {x.text: x for x in reversed(found)}.values() if holds(x, calls[0], wrong)][::-1]
    names = set(mentioned(calls[0], outcome))
    alone = outcome.verdict == INCONSISTENT or not any(map(circumstance, shown.deciding))
    found = [x for x in found if not x.general or alone or x.about.rpartition(" ")[2].strip("`") in names]
    types = [x for x in found if x.types and of_types(shown, outcome)]
    if any(x.about == "the types" for x in types):
        types = [x for x in types if x.about == "the types"]
    kept = [x for x in found if not x.types or x in types]
    parts = [x for x in kept if any(x.text in y.text for y in kept if y is not x)]  # they say nothing more
    return [x for x in kept if x not in parts]


def tied(call: Instance, outcome: Outcome) -> bool:
    """Whether a whole number is one off, and the call rounds what is exactly between two."""
    expected, actual = (outcome.details.get(x) for x in ("expected", "actual"))
    if not (outcome.symptom == "value" and isinstance(expected, int) and isinstance(actual, int)):
        return False
    return abs(expected - actual) == 1 and ties.untied(call) is not None


def circumstance(says: str) -> bool:
    """Whether what decides is no parameter, input or dtype: a rank, an empty input, how sizes stand to each other."""
    return not (removable.named(says) or removable.is_dtype(says) or DECIDES.fullmatch(says))


def _drawn(call: Instance, outcome: Outcome) -> list[Quote]:
    """Return the sentence that states what a random operator draws, where its numbers are wrong. Raises ImportError."""
    draw = declared.declared(call)
    seeded = outcome.details.get("drawn") == SEED  # it may draw what it should
    if draw is None or outcome.verdict != INCONSISTENT or outcome.symptom in FORMS or seeded:
        return []
    library: Any = libraries.get(call.library)
    said = (library.documented(call, [], Wrong(told=(words,))) for words in LAWS.get(draw.law, ()))
    found = (msgspec.structs.replace(x, text=_prose(x.text)) for of in said for x in of if x.about == RULE)
    return [x for x in found if x.text][:1]


def _prose(text: str) -> str:
    """Return a sentence without the signature that a docstring begins with, and without formulas; of a part of one nothing."""
    plain = re.sub(r"^\w+(?:\(|=).*?\)(?: -> \w+)? (?=[A-Z]\w)", "", text).partition(" .. ")[0]
    stated = plain[:1].isupper() and re.search("random|distribution|probabilit", plain)
    return re.sub(r":$", ".", plain) if stated else ""


def is_rule(says: str) -> bool:
    """Whether what decides is how numbers, sizes or inputs stand to each other: no parameter, input, dtype, rank or NaN."""
    plain = removable.named(says) or removable.is_dtype(says) or peculiar.is_rank(says) or kinship.special(says)
    return at_limit(says) or not (plain or says == EMPTY or DECIDES.fullmatch(says) or "output" in says)


def of_types(shown: Choice, outcome: Outcome) -> bool:
    """Whether it is known, or a crash says where no parameter decides, that a dtype is what is not taken."""
    if outcome.verdict not in (CRASH, REFUSED):
        return False
    told = any(map(removable.is_dtype, shown.deciding))
    return told or (not any(map(removable.named, shown.deciding)) and TYPES.search(said(outcome, 1500)) is not None)


def mentioned(call: Instance, outcome: Outcome) -> Iterator[str]:
    """Yield what a crash names: words that are no others' stand in quotes, or have an underscore and are of the call."""
    text = said(outcome, 1500) if outcome.verdict in (CRASH, REFUSED) else ""
    yield from dict.fromkeys(re.findall(r"['`\"]([a-z_]\w*)['`\"]", text))
    for name in (*call.params, *(x.name for x in call.inputs if x.value is not None)):
        if "_" in name and re.search(rf"\b{re.escape(name)}\b", text):
            yield name


def ruled(call: Instance, quoted: Iterable[Quote]) -> list[str]:
    """Return what is beyond a dtype that it is cast to, and parameters, by default as well, of the formula that is quoted."""
    library: Any = libraries.get(call.library)
    known = (
        library.equipped_defaults([call.operator]).get(call.operator, {}) if getattr(library, "LIGHT", False) else {}
    )
    values = {name: call.params.get(name, default) for name, default in known.items()}
    found: dict[str, None] = {}
    for quote in quoted:
        if cast := re.match(r"(numbers .*) cast to", quote.about):
            found[cast[1]] = None
        names = re.findall(r"\w+", quote.text) if re.match(r"\w+ = ", quote.text) else [quote.about[11:-1]]
        if names[0] not in call.params:  # such a one is told already
            found |= {f"{x}={_short(values[x])}": None for x in names if x in values and values[x] != NO_DEFAULT}
    return list(found)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
