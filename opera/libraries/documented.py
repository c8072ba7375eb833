"""What a library's documentation says of a call: the sentences that a maintainer would look up, with their address.

A sentence is quoted only if it is about a parameter or an output that is asked about, or if it names what is special about the
inputs (an empty tensor, NaN): nothing is guessed.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from opera.programs.program import Instance
from opera.programs.values import Tensor

LENGTH, CLAUSE = 420, 800
"""Characters of a quotation, to the end of a sentence where there is one; of one that is about the very value that is set."""
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"'(])")
"""Where a sentence ends."""
EMPTY = r"\bempty\b"
TIES = r"\bties?\b|\btie-?break\w*|\bequivalent values\b"
AT_A_LIMIT = r"\bstrictly\b|\b(?:exactly )?equal to the\b|\b(?:in|ex)clusive\b"
EXCEPTION = r"\b(?:are|is) (?:ignored|excluded|discarded|skipped|not counted)\b"
"""How a sentence tells on which side of a limit what is equal to it lies, and what is left out of a rule."""
ZERO, NAN, INFINITE = r"\b(?:zeros?|0)\b", r"\bnans?\b", r"\binf(?:init\w+)?\b"
RESULTS = r"\b(?:produc|yield|return|giv|becom|result)(?:e|es|s)?"
"""How a sentence says what comes of something."""
LITTLE = re.compile(r"an?|the|i[nst]|of|to|that|are|not?|its|by|with|just|at|number|gives?|be")
"""Words of what is told that say nothing by themselves."""
MEANINGS = (
    ("whole", "integer", "fractional", "fraction"),
    ("size", "length", "width", "dimension"),
    ("tie", "half", "nearest"),
)
"""Words that say the same of a thing, or its opposite."""
CONDITION = r"\b(?:if|when|where)\b[^.;]{{0,40}}?[`'\"]*(?<![\w.-]){}(?![\w]|\.\d)"
"""How a sentence says when it holds."""


class Quote(msgspec.Struct, frozen=True):
    """What is said, of what (`attribute keep_aspect_ratio_policy`), and where.

    `types`: only that a dtype is admitted. `exact`: for the very value that a parameter has.
    """

    about: str
    text: str
    address: str
    types: bool = False
    exact: bool = False


class Wrong(NamedTuple):
    """What is wrong: the output, the symptom (`value`, `shape`, ...), and the number expected; empty of draws.

    `told`: what decides besides parameters, as it is told: `a number equal to iou_threshold`.
    """

    output: str = ""
    symptom: str = ""
    expected: object = None
    told: tuple[str, ...] = ()

    @classmethod
    def of(cls, details: Mapping[str, object], symptom: str) -> Wrong:
        """Return it of the details of an outcome."""
        if "drawn" in details:
            return cls()
        return cls(str(details.get("output", "")), symptom, details.get("expected"))


def special(call: Instance) -> list[tuple[str, str]]:
    """Return (in words, pattern that a sentence on it matches) of what is special about the inputs of a call."""
    tensors = [x.value for x in call.inputs if isinstance(x.value, Tensor)]
    numbers = [x.numbers() for x in tensors if x.dtype.startswith(("float", "bfloat"))]
    found = []
    if any(0 in x.shape for x in tensors):
        found.append(("empty inputs", EMPTY))
    if any((x != x).any() for x in numbers):
        found.append(("NaN", NAN))
    if any((abs(x) == float("inf")).any() for x in numbers):
        found.append(("infinities", INFINITE))
    return found


def about_value(text: str, value: object) -> str:
    """Return the paragraph that names a string value, or the first; quoted as `quoted` does."""
    if said := clause(text, value):
        return said
    paragraphs = [x for x in re.split(r"\n\s*\n", inspect.cleandoc(text)) if x.strip()]
    named = [x for x in paragraphs if isinstance(value, str) and re.search(rf"\b{re.escape(value)}\b", x)]
    return quoted((named or paragraphs or [""])[0])


def clause(text: str, value: object) -> str:
    """Return what a description says of a number or truth value (`If 1, …`), up to the next condition, or nothing."""
    if not isinstance(value, bool | int | float):
        return ""
    names = {str(value), *({"True", "1"} if value == 1 else {"False", "0"} if value == 0 else set())}
    pattern = CONDITION.format(f"(?:{'|'.join(map(re.escape, sorted(names)))})")
    sentences = SENTENCE.split(" ".join(text.split()))
    first = next((place for place, x in enumerate(sentences) if re.search(pattern, x, re.IGNORECASE)), None)
    if first is None:
        return ""
    last = first + 1
    while last < len(sentences) and not re.match(
        r"(?:if|when|otherwise|the default)\b", sentences[last], re.IGNORECASE
    ):
        last += 1
    return quoted(" ".join(sentences[first:last]), CLAUSE)


def sentence_on(text: str, pattern: str) -> str:
    """Return the first sentence that matches, with one that puts it in other words (`That is, …`), or nothing."""
    sentences = [*SENTENCE.split(" ".join(text.split())), ""]
    found = ((x, after) for x, after in pairwise(sentences) if re.search(pattern, x, re.I))
    return next((quoted(f"{x} {after}" if after.startswith("That is,") else x) for x, after in found), "")


def rule_on(text: str, told: str) -> str:
    """Return the first sentence with all words of what is told to decide, or others of their meaning; else nothing.

    Of a long one, the clauses that have them.
    """
    named = [x for x in re.findall(r"[a-z]\w+", told.lower()) if not LITTLE.fullmatch(x)]
    meant = [next((x for x in MEANINGS if word.rstrip("s") in x), (word.rstrip("s"),)) for word in named]
    patterns = [re.compile(rf"\b(?:{'|'.join(map(re.escape, x))})(?:s|es|d|ed|ing)?\b", re.IGNORECASE) for x in meant]
    for sentence in SENTENCE.split(" ".join(text.split())) if len(patterns) > 1 else ():
        if all(x.search(sentence) for x in patterns):
            clauses = re.split(r"(?<=,)\s+", sentence)
            short = next((x for x in clauses if all(y.search(x) for y in patterns)), sentence)
            return quoted(short if len(sentence) > LENGTH else sentence).rstrip(",")
    return ""


def exception(text: str, name: str) -> str:
    """Return the sentence that says what is left out of the rules of the paragraph which names a parameter, or nothing."""
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", paragraph) and (said := sentence_on(paragraph, EXCEPTION)):
            return said
    return ""


def consequence(text: str, expected: object) -> str:
    """Return the first sentence that says when 0, NaN or an infinity results, where that is what is expected, or nothing."""
    try:
        number = float(expected) if isinstance(expected, int | float | str) else 1.0
    except ValueError:  # no number
        return ""
    word = ZERO if number == 0 else NAN if math.isnan(number) else INFINITE if math.isinf(number) else ""
    return sentence_on(text, rf"{RESULTS}\b[^.;,]{{0,30}}{word}") if word else ""


def formula(text: str, output: str) -> str:
    """Return the line that says what an output is (`running_mean = input_mean * momentum + …`), if there is one alone."""
    found = re.findall(rf"(?m)^\s*({re.escape(output)}\s*=\s*\S.*?),?\s*$", text) if output else []
    return found[0] if len(found) == 1 else ""


def prose(text: str, call: Instance) -> str:
    """Return a text without its tables, and without what it says of strings and of empty inputs, where a call is given none."""
    if not any(isinstance(x.value, Tensor) and 0 in x.value.shape for x in call.inputs):
        parts = re.split(r"(\n\s*\n)", text)
        text = "".join(
            " ".join(y for y in SENTENCE.split(x) if not re.search(EMPTY, y, re.I)) if x.strip() else x for x in parts
        )
    strings = any(isinstance(x.value, Tensor) and x.value.dtype == "string" for x in call.inputs)
    paragraphs = (x for x in re.split(r"\n\s*\n", text) if not x.lstrip().startswith("|"))
    return "\n\n".join(x for x in paragraphs if strings or not re.search(r"\bstrings?\b", x, re.I))


def reaching(text: str) -> str:
    """Return what is said of a parameter, as `quoted` does; with the sentence on its limit where that comes too late for it."""
    said, limit = quoted(text), sentence_on(text, AT_A_LIMIT)
    return said if not limit or limit in said else f"{said} [...] {limit}"


def quoted(text: str, length: int = LENGTH) -> str:
    """Return a text on one line without the marks of its markup, cut at the end of a sentence."""
    flat = " ".join(text.split())
    flat = re.sub(r":(?:math|attr|class|func|meth|ref):`~?([^`]*)`", r"\1", flat).strip(" -*")
    flat = re.sub(r"`{2,}", "`", flat)
    if len(flat) <= length:
        return flat
    cut = flat[:length]
    return cut[: cut.rindex(". ") + 1] if ". " in cut else cut.rstrip() + " …"


def argument(docstring: str, name: str) -> str:
    """Return what a docstring in Google's style says of a parameter (`name: …`, `name (type): …`), or nothing."""
    lines = inspect.cleandoc(docstring).splitlines()
    for place, line in enumerate(lines):
        found = re.match(rf"(\s+)\*{{0,2}}{re.escape(name)}\s*(?:\([^)]*\))?\s*:\s*(.*)", line)
        if found:
            rest = []
            for more in lines[place + 1 :]:
                if more.strip() and len(more) - len(more.lstrip()) <= len(found[1]):
                    break
                rest.append(more)
            return "\n".join([found[2], textwrap.dedent("\n".join(rest))]).strip()
    return ""


def described(call: Instance, docstring: str) -> dict[str, str]:
    """Return the name of an input or parameter of a call → what a docstring says of it; others are left out."""
    found = {name: argument(docstring, name) for name in (*(x.name for x in call.inputs), *call.params)}
    return {name: text for name, text in found.items() if text}


def of_docstring(
    call: Instance, docstring: str, parameters: list[str], address: str, told: Iterable[str] = ()
) -> list[Quote]:
    """Return what a docstring says of what else decides, of parameters of a call, and of what is special about its inputs."""
    rules = (rule_on(prose(docstring, call), x) for x in told)
    found = [Quote("the rule", text, address) for text in rules if text]
    for name in parameters:
        if text := argument(docstring, name):
            said = clause(text, call.params.get(name)) or reaching(text.split("\n\n")[0])
            found.append(Quote(f"parameter `{name}`", said, address))
    for words, pattern in special(call):
        if text := sentence_on(prose(docstring, call), pattern):
            found.append(Quote(words, text, address))
    return found
