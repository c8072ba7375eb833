"""From words to constraints: ordered rules on the type and the description that documentation gives of a parameter.

The words and what they mean follow the assumptions that DocTer published for its annotators ("number of" is a whole number
that is not negative, a probability lies in [0, 1]); its rules, mined from parse trees, are not published and not used.
"""

from __future__ import annotations

import re

from opera.errors import CorpusError
from opera.sources.docter import constraints
from opera.sources.docter.constraints import Parameter

Texts = dict[str, list[str]]

_DTYPES = (
    (r"long ?tensors?|int64", "int64"), (r"int ?tensors?|int32", "int32"), (r"bool ?tensors?", "bool"),
    (r"byte ?tensors?|uint8", "uint8"), (r"float ?tensors?|float32", "float32"), (r"float64|doubles?", "float64"),
    (r"float16|half", "float16"), (r"int8", "int8"), (r"int16", "int16"), (r"complex", "complex64"),
    (r"bfloat16", "bfloat16"), (r"bool(ean)?s?", "bool"), (r"int(eger)?s?", "int"), (r"floats?|floating[- ]point", "float"),
    (r"str(ing)?s?", "string"), (r"numbers?(?! of)|scalars?|numeric|numerical", "numeric"),
    (r"(torch\.|keras\.|tf\.)?d(ata)?[- ]?types?", "dtype"),
)  # fmt: skip
_KIND_DTYPES = tuple((re.compile(rf"(?<![\w.]){pattern}(?![\w])"), name) for pattern, name in _DTYPES)
_TENSORS = re.compile(r"tensors?\b|\bndarrays?|numpy arrays?|tensor-like|\w+tensors?\b|\bparameter\b")
_LISTS = re.compile(r"\b(lists?|\w*\[\])\b|\blists?\b")
_TUPLES = re.compile(r"\b(tuples?|pairs?)\b|torch\.size")
_EITHER = re.compile(r"\b(sequences?|iterables?|collections?)\b")
_DICTS = re.compile(r"\b(dict|dictionary|mapping)s?\b")
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "2": 2, "3": 3, "4": 4, "5": 5, "1": 1}
_TUPLE_OF = re.compile(
    r"\b(?:tuple|list|tuple/list|list/tuple|tuple or list)s? (?:of (?:length |size )?)(\w+)(?: \w+)?"
)
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf(?:inity)?|∞|\\infty)"
_INTERVAL = re.compile(rf"([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])")
_NDIM = re.compile(
    r"\b(?:(\d)[- ]?d(?:imensional)?|of dimension (\d)|(scalar|vector|matrix|matrices))\b"
    r"(?:\s*(?:or (higher|more|greater)|\+))?"
)
_INTEGERS = re.compile(r"\bonly contain (?:(non-negative|positive) )?integers?\b")
"""What a tensor is said to hold."""
TITLE = 3
"""Words of a sentence that does but name a parameter, at most."""
_QUOTED = re.compile(r"``?[\"']([\w-]{1,40})[\"']``?|[\"']([\w-]{1,40})[\"']|``(none|None)``")
_SHAPE = re.compile(
    r"(?:shapes?|size)?\s*:?\s*(?::math:)?`{0,2}\s*([(\[](?:[^()\[\]]|\([^()]*\)|\[[^\[\]]*\])*[)\]])`{0,2}"
)


def clean(text: str) -> str:
    """Return text without roles, links and repeated blanks."""
    text = re.sub(r":(?:class|attr|func|meth|ref|mod|obj):`~?\.?([^`<]*)(?:<[^>]*>)?`", r"\1", text)
    return " ".join(text.split())


def texts(name: str, kind: str, description: str, default: str | None) -> Texts:
    """Return the constraints that words state of a parameter: field → alternatives.

    Args:
        name: The parameter's name.
        kind: What stands in parentheses after its name (`int or tuple, optional`).
        description: The rest.
        default: As the signature writes it; None where there is none.
    """
    kind, description = clean(kind).lower().replace("`", ""), clean(description)
    made: Texts = {field: [] for field in constraints.FIELDS}
    _of_kind(made, kind)
    if not any(made.values()):
        _of_kind(made, _leading(description))
    _of_default(made, default)
    _of_description(made, name, description)
    _dimensions(made, kind or _leading(description), description)
    return checked({field: list(dict.fromkeys(items)) for field, items in made.items() if items})


def checked(made: Texts) -> Texts:
    """Return only what can be parsed."""
    kept: Texts = {}
    for field, items in made.items():
        for item in items:
            try:
                constraints.parameter("x", {field: [item]}, None, "")
            except CorpusError:
                continue
            kept.setdefault(field, []).append(item)
    return kept


def parameter(name: str, made: Texts, default: str | None, description: str) -> Parameter:
    """Return a parameter of which texts were made by `texts`."""
    return constraints.parameter(name, checked(made), default, description)


def _leading(description: str) -> str:
    """Return the words before the first full stop where they say what a parameter is, else nothing; those before the second
    where the first ends a title (`Target shape. Tuple of integers, does not include ...`)."""
    first, *rest = re.split(r"\.(?:\s|$)|[;:]", description, maxsplit=1)
    title = first and rest and len(first.split()) <= TITLE
    return _said(first.lower().replace("`", "")) or (_leading(rest[0]) if title else "")


def _said(first: str) -> str:
    said = re.match(
        r"(?:an? |the )?(?:optional |positive |non-negative |python |input |output |single |\d-?d |symbolic )*"
        r"(bool|int|float|str|tuple|list|dict|tensor|integer|boolean|string|tuple/list|sequence|scalar"
        r"|number(?! of)|dtype)s?\b.*",
        first,
    )
    return first if said else ""


def _of_kind(made: Texts, kind: str) -> None:
    """What a type says. Words like `list[int]` are `list of int`."""
    kind = re.sub(r"\boptional\b|\bdefault\b.*", "", kind)
    if _TENSORS.search(kind):
        made["tensor_t"].append("tensor")
    rest = re.sub(r"(?<![a-z])tensors?\b", "", kind)
    for pattern, name in _KIND_DTYPES:
        if pattern.search(rest):
            made["dtype"].append(name)
            rest = pattern.sub("", rest)
    for pattern, names in ((_LISTS, ["list"]), (_TUPLES, ["tuple"]), (_EITHER, ["list", "tuple"]), (_DICTS, ["dict"])):
        if pattern.search(kind):
            made["structure"] += names


def _of_default(made: Texts, default: str | None) -> None:
    if made["dtype"] or made["tensor_t"] or default is None:
        return
    if default in ("True", "False"):
        made["dtype"].append("bool")
    elif re.fullmatch(r"-?\d+", default):
        made["dtype"].append("int")
    elif re.fullmatch(r"-?\d*\.\d*(e-?\d+)?|-?\d+e-?\d+", default):
        made["dtype"].append("float")
    elif re.fullmatch(r"[\"'].*[\"']", default):
        made["dtype"].append("string")


_MEANINGS = (
    (r"^(?:the |an? |optional |desired |maximum |total )*(number|count) of\b", "int", "[0,inf)"),
    (r"\bdropout rate|\bdropout probability|\bprobability (of|that)|^(the )?probability", "float", "[0,1]"),
    (r"\bfraction of the (input )?units", "float", "[0,1]"),
    (r"^(?:the |an? )*(size|length|stride|width|height|kernel size|dilation) (of|for)\b", "int", "[0,inf)"),
    (r"^(?:the |an? )*(axis|axes|dim|dimensions?|index|indices)\b", "int", ""),
    (r"^(?:whether|if (set )?(to )?`*true|boolean|controls whether|when set to|flag)", "bool", ""),
    (r"^(?:the |an? |optional )*name (of|for)\b", "string", ""),
    (r"\blearning rate\b", "float", "[0,1]"),
    (r"\b(desired data type|the dtype of)\b", "dtype", ""),
)  # fmt: skip
_SIGNS = (
    (r"non-?negative|must be (greater than or equal to|at least) (0|zero)|(>=|≥|\\geq?) *0\b", "[0,inf)"),
    (r"\b(strictly )?positive\b|(?<![\w])> *0\b|greater than (0|zero)", "(0,inf)"),
    (r"(>=|≥) *1\b|at least (1|one)\b", "[1,inf)"),
    (r"\bbetween 0 and 1\b|in (the range )?\[0, ?1\]", "[0,1]"),
)  # fmt: skip


def _of_description(made: Texts, name: str, description: str) -> None:
    lower = description.lower()
    plain = lower.replace("`", "")
    for pattern, dtype, span in _MEANINGS:
        if re.search(pattern, plain):
            if not made["dtype"] and not made["tensor_t"]:
                made["dtype"].append(dtype)
            if span and not made["tensor_t"] and set(made["dtype"]) & {"int", "float", "numeric"}:
                made["range"].append(span)
            break
    if "tensor" in made["tensor_t"] and not made["dtype"] and _INTEGERS.search(plain.replace("(s)", "s")):
        made["dtype"].append("int")
    if not made["range"] and set(made["dtype"]) & {"int", "float", "numeric"}:
        made["range"] += _ranges(plain)
    if "string" in made["dtype"] or (not made["dtype"] and not made["tensor_t"]):
        words = [a or b or c for a, b, c in _QUOTED.findall(description)]
        if len(set(words)) >= 2:
            made["enum"] += words
            made["dtype"] = made["dtype"] or ["string"]


def _ranges(plain: str) -> list[str]:
    found = _INTERVAL.search(plain) if re.search(r"\b(range|interval|in|between)\b", plain) else None
    if found:
        low, high = (re.sub(r"∞|\\infty|infinity", "inf", x) for x in (found[2], found[3]))
        return [f"{found[1]}{low},{high}{found[4]}"]
    return next(([span] for pattern, span in _SIGNS if re.search(pattern, plain)), [])


def _dimensions(made: Texts, kind: str, description: str) -> None:
    """Number of dimensions and shape."""
    length = _TUPLE_OF.search(kind)
    if length and length[1] in _WORDS and made["structure"]:
        made["shape"].append(f"[{_WORDS[length[1]]}]")
    if made["tensor_t"] and not made["structure"]:
        stated = shapes(description)
        made["shape"] += stated
        if not stated:
            made["ndim"] += _ndims(f"{kind} {description}".lower())
        return
    scalar = bool(set(made["dtype"]) & {"int", "float", "bool", "numeric", "string"})
    if scalar and not made["tensor_t"]:
        alone = re.sub(
            r"\b(tuple|list|sequence|iterable)s?\b( of)?( \w+)?( (ints?|floats?|strings?|bools?|integers?))?", "", kind
        )
        if not made["structure"] or any(pattern.search(alone) for pattern, _ in _KIND_DTYPES):
            made["ndim"].append("0")
        if made["structure"]:
            made["ndim"].append("1")


def _ndims(lower: str) -> list[str]:
    found = []
    for match in _NDIM.finditer(lower):
        count = match[1] or match[2] or {"scalar": "0", "vector": "1"}.get(match[3], "2")
        found.append(f">={count}" if match[4] else count)
    return found if len(set(found)) <= 3 else []


def shapes(description: str) -> list[str]:
    """Return the shapes that a description states, in DocTer's form: `[N,C,...]`."""
    if not re.search(r"\bshapes?\b|:math:`\(|\btensor (?:of|with) (?:size )?[`(]", description, re.IGNORECASE):
        return []
    found = []
    for match in _SHAPE.finditer(description):
        if "shape" in description[: match.start() + 8].lower() or ":math:" in match[0]:
            made = shape(match[1])
            if made:
                found.append(made)
    return found[:6]


def shape(text: str) -> str:
    """Return one shape as documents write it, `(N, C_{in}, *)`, in DocTer's form; empty for what is none."""
    inner = text.strip()[1:-1]
    inner = re.sub(r"\\(?:text|mathrm|mathbf|mathcal)\s*\{([^{}]*)\}", r"\1", inner)
    inner = (
        re.sub(r"\\(?:times|cdot)", "*", inner).replace("\\_", "_").replace("\\ldots", "...").replace("\\dots", "...")
    )
    inner = re.sub(r"_\{([^{}]*)\}", r"_\1", inner).replace("\\", "").replace("`", "").strip()
    parts = [part.strip() for part in inner.split(",") if part.strip()]
    made = []
    for part in parts:
        part = part.strip("'\" ")
        if part in ("*", "...", "…") or set(part) <= {".", "*"}:
            made.append("...")
        elif re.fullmatch(r"[A-Za-z]\w*(?: ?[-+*/] ?(?:\w+))*|\d+", part):
            made.append(part.replace(" ", ""))
        else:
            words = re.fullmatch(r"[A-Za-z]\w*(?: \w+)+", part)
            if words is None:
                return ""
            made.append(part.replace(" ", "_"))
    return f"[{','.join(made)}]" if made and not all(x.isdigit() for x in made) else ""
