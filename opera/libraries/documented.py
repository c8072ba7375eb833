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
SPECIAL = ("empty inputs", "NaN", "infinities")
"""What is special about inputs, in words."""
STATED = (
    r"\b(?:[Ii]f|[Ww]hen)\s+[`'\"]*(?P<name>\w+)[`'\"]*\s*(?:={1,2}|\bis\b(?: set to)?|\bequals\b(?: to)?)\s*"
    r"[`'\"]*(?P<value>True|False|-?\d+(?:\.\d+)?)\b"
)
"""How a sentence says of which value of a parameter it speaks."""
TYPE = r"\b(?:b?float\w*|double|int\w*|uint\w*|integers?|numeric|strings?|bool\w*|complex\w*|all|any|casting)\b"
"""Words of a sentence that says which types something may have."""
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
ASSIGNED = r"(?<![\w.])[`'\"]?{}[`'\"]?\s*(?:={{1,2}}|\bis(?: set to)?\b)\s*[`'\"]*{}(?!\w|\.\d)"
"""How it says which value of a parameter it is about (`p = 0`, `keepdim is True`)."""
OMITTED = r"\b(?:not (?:given|specified|provided|set|present|supplied)|unspecified|omitted|left out|none|defaults?)\b"
"""How it says what becomes of what is left out."""
SHAPED = r"\boutput\b[^.]*\bshape\b|\bshape\b[^.]*\boutput\b"
"""How it says which shape the output has."""
UNMET = r"(?i)(?:if|when)\b[^,]*\bnot\b"
"""How one begins that is about another case."""
SIGNATURE = re.compile(r"\w[\w.]*\(.*\)(?: ->.*)?")
PROMOTED = r"\btype promotion\b"
SECTION = re.compile(r"(?i)(?:(?:keyword |call )?arg(?:ument)?s|parameters|raises|examples?)\s*:{1,2}\s*")
"""How a section of a docstring begins that is no prose."""
WORDS = 8
"""Words that a description has at least, beside what its default is: fewer name a thing (`The lambd value for the Shrink
formulation.`)."""
BY_DEFAULT = re.compile(
    r"(?:\s*\bThe)? \bdefault(?: value)?(?: is|:) [^ ]+\.?(?= |$)|\(default:?[^)]*\)", re.IGNORECASE
)
"""How a description says what the default is."""


class Quote(msgspec.Struct, frozen=True):
    """What is said, of what (`attribute keep_aspect_ratio_policy`), and where.

    `types`: only that a dtype is admitted. `exact`: for the very value that a parameter has. `general`: what a parameter or an
    input is, whatever becomes of it. `settles`: what is expected is what it says, and what is returned is not.
    """

    about: str
    text: str
    address: str
    types: bool = False
    exact: bool = False
    general: bool = False
    settles: bool = False


class Wrong(NamedTuple):
    """What is wrong: the output, the symptom (`value`, `shape`, ...), and the number, shape or dtype expected; empty of draws.

    `actual` is what is returned for it, `at` where.
    `told`: what decides besides parameters, as it is told: `a number equal to iou_threshold`. `dtypes`: whether several dtypes
    among the inputs decide, `omitted` the parameters that decide by being left out.
    """

    output: str = ""
    symptom: str = ""
    expected: object = None
    told: tuple[str, ...] = ()
    dtypes: bool = False
    omitted: tuple[str, ...] = ()
    actual: object = None
    at: object = None

    @classmethod
    def of(cls, details: Mapping[str, object], symptom: str) -> Wrong:
        """Return it of the details of an outcome."""
        if "drawn" in details:
            return cls()
        found = cls(str(details.get("output", "")), symptom, details.get("expected"))
        return found._replace(actual=details.get("actual"), at=details.get("index"))


def special(call: Instance) -> list[tuple[str, str]]:
    """Return (in words, pattern that a sentence on it matches) of what is special about the inputs of a call."""
    tensors = [x.value for x in call.inputs if isinstance(x.value, Tensor)]
    numbers = [x.numbers() for x in tensors if x.dtype.startswith(("float", "bfloat"))]
    found = []
    if any(map(_empty, tensors, range(len(tensors)))):
        found.append(("empty inputs", EMPTY))
    if any((x != x).any() for x in numbers):
        found.append(("NaN", NAN))
    if any((abs(x) == float("inf")).any() for x in numbers):
        found.append(("infinities", INFINITE))
    return found


def _empty(value: Tensor, place: int) -> bool:
    """Whether a tensor has no elements, and is data: axes, sizes and pads beside the first of which there are none are not."""
    lists = place > 0 and len(value.shape) == 1 and "int" in value.dtype
    return 0 in value.shape and not lists


def holds(said: Quote, call: Instance, wrong: Wrong) -> bool:
    """Whether a quotation may be of a call: it states no other value of a parameter, nor that something else results.

    What it says of the very value that is set, or of types, holds anyway. A shape is told by numbers, names or formulas.
    """
    if said.settles:
        return True
    if said.exact or said.types:
        return not said.types or bool(re.search(TYPE, said.text, re.I))
    for found in re.finditer(STATED, said.text):
        name, value = found["name"], found["value"]
        held = call.params.get(name, next((x.value for x in call.inputs if x.name == name), None))
        known = isinstance(held, bool | int | float | str | None) and (
            name in call.params or value in ("True", "False")
        )
        if known and value not in names_of(held) and f"`{name}`" not in said.about:
            return False
    if wrong.symptom == "shape" and said.about.startswith(("output", "the output")):
        return bool(re.search(r"[\[(=\d]|\bsame\b", said.text))
    number = _number(wrong.expected)
    if number is not None and said.about in SPECIAL and "otherwise" not in said.text:
        states = re.search(rf"{RESULTS}\b[^.;,]{{0,30}}{NAN}|{NAN}[`'\"]* is returned", said.text, re.I)
        return math.isnan(number) or not states
    return True


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


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
    pattern = CONDITION.format(f"(?:{'|'.join(map(re.escape, sorted(names_of(value))))})")
    said = sentences(text)
    first = next((place for place, x in enumerate(said) if re.search(pattern, x, re.IGNORECASE)), None)
    if first is None:
        return ""
    last = first + 1
    while last < len(said) and not re.match(r"(?:if|when|otherwise|the default)\b", said[last], re.IGNORECASE):
        last += 1
    return quoted(" ".join(said[first:last]), CLAUSE)


def sentence_on(text: str, pattern: str) -> str:
    """Return the first sentence that matches, with one that puts it in other words (`That is, …`), or nothing."""
    paragraphs = ([*sentences(x), ""] for x in re.split(r"\n\s*\n", text))
    found = ((x, after) for part in paragraphs for x, after in pairwise(part) if re.search(pattern, x, re.I))
    return next((quoted(f"{x} {after}" if after.startswith("That is,") else x) for x, after in found), "")


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, each on one line; an item of a list begins one, and so does what follows a list."""
    parts: list[list[str]] = [[]]
    listed = False
    for line in inspect.cleandoc(paragraph).splitlines():
        item = re.match(r"\s*[-*] ", line) is not None
        if item or (listed and not line.startswith(" ")):
            parts.append([])
        listed = item or (listed and line.startswith(" "))
        parts[-1].append(line)
    return [x for part in parts if part for x in SENTENCE.split(" ".join(" ".join(part).split()))]


def names_of(value: object) -> list[str]:
    """Return how a text writes a number, a truth value or a string."""
    if isinstance(value, float) and value.is_integer():
        return [str(value), str(int(value))]
    return [str(value), *({"True", "1"} if value == 1 else {"False", "0"} if value == 0 else ())]


def assigned(text: str, name: str, value: object) -> str:
    """Return the first sentence on a value of a parameter (`When p = 0 it is equivalent to …`), or nothing."""
    if not isinstance(value, bool | int | float | str):
        return ""
    written = "|".join(map(re.escape, names_of(value)))
    return sentence_on(text, ASSIGNED.format(re.escape(name), f"(?:{written})"))


def option(text: str, value: object) -> str:
    """Return what a description says of one of the strings that it lists (`'mean'`: the weighted mean is taken), or nothing."""
    if not isinstance(value, str):
        return ""
    flat, quote = " ".join(unmarked(text).split()), r"[`'\"]+"
    ends = rf"(?:[,;.]|\s-)\s*{quote}\w+{quote}\s*[:-]\s|\.\s+(?=[A-Z])|\.?$"
    found = re.search(rf"({quote}{re.escape(value)}{quote})\s*[:-]\s+(.+?)(?={ends})", flat)
    return quoted(f"{found[1]}: {found[2]}") if found else ""


def row(text: str, name: str, value: object) -> str:
    """Return the row of a table about a value of a parameter, which heads the first of two columns; or nothing."""
    found = re.search(rf"(?m)^\s*=+ +=+\s*\n\s*`?{re.escape(name)}`? .*\n\s*=+ +=+\s*\n((?:.*\n)*?)\s*=+ +=+\s*$", text)
    rows = (re.split(r"\s{2,}", x.strip()) for x in (found[1].splitlines() if found else ()))
    said = {x[0].strip("`"): f"{x[0]}: {x[1]}" for x in rows if len(x) == 2}
    return next((said[x] for x in names_of(value) if x in said), "")


def omitted(text: str, name: str, own: str) -> str:
    """Return the sentence on what becomes of a parameter that is left out, of a text or its own description; or nothing."""
    said = sentence_on(text, rf"(?<!\w){re.escape(name)}(?!\w)[^.]*{OMITTED}") or sentence_on(own, OMITTED)
    return said if len(re.findall(r"\w+", said)) >= WORDS else ""


def shaped(text: str, call: Instance) -> str:
    """Return the first sentence on the shape of the output, of as many dimensions as an input has where it says how many."""
    ranks = {len(x.value.shape) for x in call.inputs if isinstance(x.value, Tensor)}
    for said in (x for part in re.split(r"\n\s*\n", text) for x in sentences(part) if re.search(SHAPED, x, re.I)):
        another = re.match(UNMET, said) or not ranks.issuperset(map(int, re.findall(r"\b(\d)-D\b", said)[:1]))
        if len(re.findall(r"\w+", said)) >= WORDS and not another:
            return quoted(said)
    return ""


def body(docstring: str) -> str:
    """Return what a docstring says beside its sections on parameters, and its examples, without marks of its markup."""
    kept: list[str] = []
    within = None
    for line in unmarked(re.sub(r"(?s)```.*?```", "", inspect.cleandoc(docstring))).splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip() and (within is None or indent <= within):
            within = indent if SECTION.fullmatch(line.strip()) else None
        if within is None and not SIGNATURE.fullmatch(line.strip()):
            kept.append(line)
    return "\n".join(kept)


def unmarked(text: str) -> str:
    """Return a text without the marks of reStructuredText and HTML, in the same lines."""
    text = re.sub(r":(?:math|attr|class|func|meth|ref):`~?([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<]+?)\s*<[^>`]*>`_{1,2}", r"\1", text).replace("\\ ", " ")
    text = re.sub(r"\\text\w*\{([^}]*)\}", r"\1", text).replace("\\_", "_")
    text = re.sub(r"(?m)^(\s*)\.\. (?:note|warning|important)::", r"\1", text)
    text = re.sub(r"(?m)^\s*\.\. \w+::.*$", "", text)
    text = re.sub(r"\*\*(\w+)\*\*", r"\1", re.sub(r"\(\*(\w+)\*\)", r"(\1)", text))
    return re.sub(r"`{2,}", "`", re.sub(r"\s*<br\s*/?>", "", text))


def telling(found: Iterable[Quote]) -> list[Quote]:
    """Return the quotations that tell most: what a parameter is in general tells nothing beside a rule, and of special inputs
    nothing that the clause for a value of a parameter speaks of, too. Of equal texts one is kept."""
    texts: dict[str, Quote] = {}
    for x in found:
        if x.text and (x.text not in texts or texts[x.text].general):
            texts[x.text] = x
    kept = list(texts.values())
    exact = " ".join(x.text for x in kept if x.exact)
    patterns = {"empty inputs": EMPTY, "NaN": NAN, "infinities": INFINITE}
    kept = [x for x in kept if x.about not in patterns or not re.search(patterns[x.about], exact, re.IGNORECASE)]
    ruled = any(not (x.general or x.types) for x in kept)
    return [
        x for x in kept if not x.general or not (ruled or len(re.findall(r"\w+", BY_DEFAULT.sub("", x.text))) < WORDS)
    ]


def rule_on(text: str, told: str) -> str:
    """Return the first sentence with all words of what is told to decide, or others of their meaning; else nothing.

    Of a long one, the clauses that have them.
    """
    named = [x for x in re.findall(r"[a-z]\w+", told.lower()) if not LITTLE.fullmatch(x)]
    meant = [next((x for x in MEANINGS if word.rstrip("s") in x), (word.rstrip("s"),)) for word in named]
    patterns = [re.compile(rf"\b(?:{'|'.join(map(re.escape, x))})(?:s|es|d|ed|ing)?\b", re.IGNORECASE) for x in meant]
    paragraphs = re.split(r"\n\s*\n", text) if len(patterns) > 1 else ()
    for sentence in (x for part in paragraphs for x in sentences(part)):
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
    number = _number(expected)
    if number is None:
        return ""
    word = ZERO if number == 0 else NAN if math.isnan(number) else INFINITE if math.isinf(number) else ""
    return sentence_on(text, rf"{RESULTS}\b[^.;,]{{0,30}}{word}") if word else ""


def formula(text: str, output: str) -> str:
    """Return the line that says what an output is (`running_mean = input_mean * momentum + …`), if there is one alone."""
    found = re.findall(rf"(?m)^\s*({re.escape(output)}\s*=\s*\S.*?),?\s*$", text) if output else []
    return found[0] if len(found) == 1 else ""


def prose(text: str, call: Instance) -> str:
    """Return a text without its tables, and without what it says of strings and of empty inputs, where a call is given none."""
    tensors = [x.value for x in call.inputs if isinstance(x.value, Tensor)]
    if not any(map(_empty, tensors, range(len(tensors)))):
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
    flat = " ".join(unmarked(text).split()).strip(" -*,")
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
    """Return the name of an input or parameter of a call → what a docstring says of it, after the kind of tensor that
    it is, where that says its dtype (`index (LongTensor): …`); others are left out.
    """
    names = [*(x.name for x in call.inputs), *call.params]
    found = {name: " ".join(filter(None, (_kind(docstring, name), argument(docstring, name)))) for name in names}
    return {name: text for name, text in found.items() if text}


def _kind(docstring: str, name: str) -> str:
    """Return `(LongTensor)` where a docstring says so of a parameter, of several kinds all; else nothing."""
    found = re.search(rf"(?m)^\s+{re.escape(name)} (\((?:\w+Tensor(?: or )?)+)(?:, optional)?\)\s*:", docstring)
    return f"{found[1]})" if found else ""


def of_docstring(call: Instance, docstring: str, parameters: list[str], address: str, wrong: Wrong) -> list[Quote]:
    """Return what a docstring says of what decides, of parameters of a call, of a wrong shape, and of special inputs."""
    text = prose(body(docstring), call)
    found = [Quote("the rule", rule_on(text, x), address) for x in wrong.told]
    for name in parameters:
        own, about = argument(docstring, name), f"parameter `{name}`"
        if name in wrong.omitted:
            found.append(Quote(about, omitted(text, name, own), address))
        else:
            value = call.params.get(name)
            said = row(text, name, value) or option(own, value) or clause(own, value) or assigned(text, name, value)
            found.append(
                Quote(about, said or reaching(own.split("\n\n")[0]), address, exact=bool(said), general=not said)
            )
    if wrong.symptom == "shape" and not parameters:
        found.append(Quote("the output", shaped(text, call), address))
    if wrong.dtypes:
        found.append(Quote("the types", sentence_on(text, PROMOTED), address))
    for words, pattern in special(call):
        found.append(Quote(words, sentence_on(text, pattern), address))
    return telling(found)
