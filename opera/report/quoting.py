"""What a draft quotes of a library's documentation, and which parameters the quoted rule hangs on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from opera import libraries
from opera.libraries.documented import Quote, Wrong
from opera.oracle import declared
from opera.oracle.draws import SEED
from opera.oracle.randomness import FORMS
from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome
from opera.triage.conditions import deciding, peculiar
from opera.triage.distinct import kinship
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import EMPTY, at_limit, said

DECIDES = re.compile(r"(?:input |a number equal to )?(\w+)(?: just at a limit| left out| is .*)?")
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
    parameters = [x for x in map(deciding.named, shown.told) if x]
    named = (DECIDES.fullmatch(x) for x in shown.deciding)
    parameters += [x[1] for x in named if x and x[1] not in parameters]
    parameters += [x for x in mentioned(calls[0], outcome) if x not in parameters]
    try:
        wrong = Wrong.of(outcome.details, outcome.symptom)
        found: list[Quote] = library.documented(
            calls[0], parameters, wrong._replace(told=tuple(filter(is_rule, shown.deciding)))
        )
        found = [*_drawn(calls[0], outcome), *found]
    except ImportError:
        return []
    found = list({x.text: x for x in reversed(found)}.values())[::-1]
    return [x for x in found if not x.types or of_types(shown, outcome)]


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
    plain = deciding.named(says) or deciding.is_dtype(says) or peculiar.is_rank(says) or kinship.special(says)
    return at_limit(says) or not (plain or says == EMPTY or DECIDES.fullmatch(says) or "output" in says)


def of_types(shown: Choice, outcome: Outcome) -> bool:
    """Whether it is known, or a crash says, that a dtype is what matters."""
    text = said(outcome, 1500) if outcome.verdict in (CRASH, REFUSED) else ""
    return any(map(deciding.is_dtype, shown.deciding)) or TYPES.search(text) is not None


def mentioned(call: Instance, outcome: Outcome) -> Iterator[str]:
    """Yield what of a call a crash names: words that are no others' stand in quotes, or have an underscore."""
    text = said(outcome, 1500) if outcome.verdict in (CRASH, REFUSED) else ""
    for name in (*call.params, *(x.name for x in call.inputs if x.value is not None)):
        if re.search(rf"['`\"]{re.escape(name)}['`\"]" + (rf"|\b{re.escape(name)}\b" if "_" in name else ""), text):
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
