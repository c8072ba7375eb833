"""Sentences of documentation that settle what is expected: they say the shape, type or number of the very case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opera.libraries.documented import Quote, Wrong, body, prose, sentences
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import Outcome

SCALAR = re.compile(
    r"\b(?:for|if|when|where|of)\b[^.]{0,40}?\b(?:scalars?|0-?d|0-dimensional|zero-dimensional)\b(?: input| tensor)*"
    r"[^.]*?\bshape\b[^.(\[]{0,12}[(\[]([^)\]]*)[)\]]",
    re.IGNORECASE,
)
"""How a sentence says which shape comes of a scalar (`for scalar input, NonZero produces output shape (0, N)`)."""
SAME = re.compile(
    r"\bsame (?P<what>(?:data ?)?type|dtype|shape|size)(?: and (?P<more>(?:data ?)?type|dtype|shape|size))? as "
    r"(?:that of )?(?:the )?(?:type of )?(?:the )?(?:first )?[`'\":\w]*?[`'\"]?(?P<name>\w+)[`'\"]?",
)
"""How one says that an output has the shape or type of an input."""
OF_OUTPUT = re.compile(r"\b(?:outputs?|results?|returns?|returned)\b", re.IGNORECASE)
NEGATED = re.compile(r"\b(?:if|when|unless|except|must|should|not|broadcast\w*|may|out)\b", re.IGNORECASE)
"""Words of a sentence that is about another case, or asks something of the caller."""
RETURNS = r"\b{} returns (?:the )?([A-Za-z ]+?) of (?:the )?input(?: tensor)?\b[^.]*\bin this case\b"
"""How one says what an operator gives of each number."""
OF_EACH: Mapping[str, Callable[[Any], Any]] = {
    "square": np.square,
    "log": np.log,
    "absolute value": np.abs,
    "exponential": np.exp,
}
NEAR = 1e-3


def shape_of_scalar(text: str, call: Instance, wrong: Wrong) -> str:
    """Return the sentence by which a scalar makes an output of the shape that is expected, and not that which is returned."""
    first = next((x.value for x in call.inputs if isinstance(x.value, Tensor)), None)
    shapes = [_shape(wrong.expected), _shape(wrong.actual)]
    if wrong.symptom != "shape" or first is None or first.shape != () or None in shapes:
        return ""
    for said in _sentences(text):
        found = SCALAR.search(said)
        fits = [found is not None and _fits(found[1], x or ()) for x in shapes]
        if fits == [True, False]:
            return said
    return ""


def same_as_input(text: str, call: Instance, wrong: Wrong, *, output: bool = False) -> str:
    """Return the sentence by which an output has the shape or type of an input, where that is what is expected, and not what
    is returned.

    Args:
        output: Whether the whole text is about the wrong output; else a sentence must name an output, and the call have one.
    """
    if wrong.symptom not in ("shape", "dtype") or not (output or len(call.outputs) == 1):
        return ""
    tensors = {x.name.lower(): x.value for x in call.inputs if isinstance(x.value, Tensor)}
    for said in _sentences(text):
        found = SAME.search(said)
        if found is None or NEGATED.search(said) or not (output or OF_OUTPUT.search(said)):
            continue
        whats = {"shape" if x in ("shape", "size") else "dtype" for x in (found["what"], found["more"]) if x}
        name = found["name"].lower()
        alone = next(iter(tensors.values())) if name in ("input", "inputs", "tensor") and len(tensors) == 1 else None
        given = tensors.get(name, alone)
        if given is None or wrong.symptom not in whats:
            continue
        held = str(given.shape) if wrong.symptom == "shape" else given.dtype
        if held == str(wrong.expected) != str(wrong.actual):
            return said
    return ""


def of_each_number(text: str, call: Instance, wrong: Wrong) -> str:
    """Return the sentence that says what an operator gives of each number in this case (`ReduceSumSquare returns the Square of
    the input tensor, in this case`), where what is expected is that, and what is returned is not.
    """
    first = next((x.value for x in call.inputs if isinstance(x.value, Tensor)), None)
    numbers = [x for x in (wrong.expected, wrong.actual) if isinstance(x, int | float)]
    if wrong.symptom != "value" or first is None or first.dtype == "string" or len(numbers) < 2:
        return ""
    at = tuple(int(x) for x in re.findall(r"\d+", str(wrong.at)))
    if len(at) != len(first.shape) or any(x >= n for x, n in zip(at, first.shape, strict=True)):
        return ""
    name = call.operator.rpartition("::")[2]
    for said in _sentences(text):
        found = re.search(RETURNS.format(re.escape(name)), said)
        run = OF_EACH.get(found[1].lower()) if found else None
        if run is not None:
            with np.errstate(all="ignore"):
                meant = float(run(np.float64(first.numbers()[at])))
            if [abs(x - meant) <= NEAR * abs(meant) for x in numbers] == [True, False]:
                return said
    return ""


def settled(library: Any, program: Program, outcome: Outcome) -> str:
    """Return the sentence of a library's documentation that settles what is expected of a program, where an output is wrong;
    empty where there is none, or the library is not here to ask."""
    wrong = Wrong.of(outcome.details, outcome.symptom)
    if not wrong.output or not isinstance(program, Instance) or not hasattr(library, "documented"):
        return ""
    try:
        found: list[Quote] = library.documented(program, [], wrong)
    except ImportError:
        return ""
    return next((x.text for x in found if x.settles), "")


def of_docstring(call: Instance, docstring: str, address: str, wrong: Wrong) -> list[Quote]:
    """Return the sentences of a docstring, beside its sections, that settle what is expected."""
    text = prose(body(docstring), call)
    found = dict.fromkeys((shape_of_scalar(text, call, wrong), same_as_input(text, call, wrong)))
    return [Quote("the output", x, address, settles=True) for x in found if x]


def _sentences(text: str) -> list[str]:
    return [x for part in re.split(r"\n\s*\n", text) for x in sentences(part)]


def _shape(value: object) -> tuple[int, ...] | None:
    """Return the shape that a detail of an outcome tells: `(0, 1)`."""
    found = re.fullmatch(r"[(\[]((?:\d+(?:, ?|(?=[)\]])))*)[)\]]", str(value))
    return tuple(int(x) for x in re.findall(r"\d+", found[1])) if found else None


def _fits(written: str, shape: tuple[int, ...]) -> bool:
    """Whether a shape is one that is written with numbers and names: `0, N`; of names alone nothing is said."""
    parts = [x.strip() for x in written.split(",") if x.strip()]
    if len(parts) != len(shape) or not any(x.isdigit() for x in parts):
        return False
    return all(int(x) == size for x, size in zip(parts, shape, strict=True) if x.isdigit())
