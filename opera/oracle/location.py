"""One name for what one piece of code converts, whatever form of an operator a test called."""

from __future__ import annotations

import re

LIKE = frozenset({"Cast", "RandomNormal", "RandomUniform"})
"""Operators of ONNX with a second form, XLike, that takes the type (and shape) of a tensor (ONNX operator specification)."""
FORMS = frozenset({"Tensor", "nn", "functional"})
"""Namespaces of a Python library that hold other forms of the operators above them: methods, modules, functions."""
IN_PLACE = "in-place forms"
"""Stands for the operator where all that can be said is that a form which writes into its argument has the wrong dtype."""
EXPANDED = "expanded "
"""Before the name of an operator whose body of several others was converted, and none of them is known to be the one."""

_DIMENSIONS = re.compile(r"_?(?<=[A-Za-z_])[123][dD](?=_|\b)")
_INNER = re.compile(r"(?<=[a-z])[123]D(?=[A-Z])")
_TRANSFORM = re.compile(r"(?<=fft)[2n](?=@|$)")
_API = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_ATEN = re.compile(r"aten::(\w*?[a-z\d])_")
_CONVERTER = re.compile(r"(\w+:)(\w+)\._impl_v\d+")
_RECURRENT = re.compile(r"(?i)((?:.*\.|aten::)?)(?:simple)?(?:rnn|lstm|gru)(?:_?cell|_tanh|_relu)?")
_VARIANCE = re.compile(r"((?:.*\.|aten::)?)(?:var|std)(?:_?mean)?")
_FUNCTION = re.compile(r"\w+:[A-Za-z_][\w.]*")
_SHARED = re.compile(r"\[[\w.]+\]$")
_WORD = re.compile(r"[A-Za-z]{3,}")
TELLING = 3
"""Words that a normalised message needs to tell one assertion from others: a lone `'num_heads'` or `KeyError` does not."""


def is_api(name: str) -> bool:
    """Whether this is the name of a Python function or class: it says how an operator was called, not who converts it."""
    return _API.fullmatch(name) is not None


def names_converter(place: str) -> bool:
    """Whether this is a conversion function by its name, rather than the call or the expanded body that was converted."""
    return bool(place.partition("@")[0]) and not place.startswith(EXPANDED) and not is_api(place)


def in_place(operator: str) -> bool:
    """Whether an operator is the form of another one that writes into its argument (`torch.Tensor.eq_`)."""
    last = operator.rpartition(".")[2]
    return is_api(operator) and last.endswith("_") and not last.endswith("__")


def shared(converter: str) -> str:
    """Return a converter without the operator that it was called for: `_binary_op[add.Tensor]` serves several."""
    return _SHARED.sub("", converter)


def elsewhere(one: str, other: str) -> bool:
    """Whether two conversion functions are two functions of the compiler, with no place (`@pool.cpp:35`) known below both."""
    names = [_FUNCTION.match(shared(canonical(x))) for x in (one, other)]
    places = {x.partition("@")[2] for x in (one, other)}
    told = [x[0] for x in names if x]
    return len(set(told)) == len(names) and (len(places) > 1 or places == {""})


def telling(message: str) -> bool:
    """Whether a normalised message says enough to know the assertion that failed, wherever it was reached from."""
    words = {word.lower() for word in _WORD.findall(message)} - {"dtype"}
    return len(words) >= TELLING


def canonical(location: str) -> str:
    """Return the name that all forms of an operator share, of an operator or a conversion function. Idempotent.

    A place (`@pool.cpp:35`) stays. `torch.Tensor.add_`, `torch.Tensor.add` and `torch.add` are `torch.add`; `conv1d` and
    `conv2d` are `conv`, `fft2` and `fftn` `fft`; `CastLike` is `Cast`; `std` is `var`; LSTM, GRU and RNN, which have the same
    attributes and one description, are `RNN`.
    """
    while (shorter := _shortened(location)) != location:
        location = shorter
    return location


def family(operator: str) -> str:
    """Return the name that the forms of an operator share, those of one to three dimensions inside a name as well.

    `Conv1DTranspose` and `Conv2DTranspose` are `ConvTranspose`. Signatures do not know it: what they tell apart keeps its ids.
    """
    return canonical(_INNER.sub("", operator))


def _shortened(location: str) -> str:
    name, at, place = location.partition("@")
    while (shorter := _DIMENSIONS.sub("", name)) != name:
        name = shorter
    if name.startswith(EXPANDED):
        inner = name.removeprefix(EXPANDED)
        base = inner.removesuffix("Like")
        name = base if inner != base and base in LIKE else name
    elif is_api(name):
        name = _api(name)
    if found := _ATEN.fullmatch(name):
        name = f"aten::{found[1]}"
    if found := _CONVERTER.fullmatch(name):
        base = found[2].removesuffix("Like")
        name = base if base in LIKE else name
    elif name.removesuffix("Like") in LIKE:
        name = name.removesuffix("Like")
    name = _TRANSFORM.sub("", name)
    if found := _VARIANCE.fullmatch(name):
        name = f"{found[1]}var"
    if found := _RECURRENT.fullmatch(name):
        name = f"{found[1]}RNN"
    return name + at + place


def _api(name: str) -> str:
    """Return one name for the function, method, module and in-place form of an operator."""
    *space, last = name.split(".")
    return ".".join([*(part for part in space if part not in FORMS), _key(last)])


def _key(name: str) -> str:
    """Return what `cross_entropy`, `CrossEntropyLoss`, `full_like` and `native_batch_norm` have in common with their likes."""
    key = name.lower().replace("_", "")
    for before, after in (("native", ""), ("", "loss"), ("", "like")):
        shorter = key.removeprefix(before).removesuffix(after)
        key = shorter if len(shorter) > 2 else key
    return key
