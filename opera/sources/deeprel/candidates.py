"""Which operators may be related: by their names, what their documentation refers to and says, and their parameters.

DeepREL publishes the order of candidates, not how it was made; this is opera's own. All pairs of operators are scored at
once, as products of matrices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opera.sources.deeprel.apis import Api
from opera.sources.deeprel.matching import bare

TOP = 20
"""Best candidates of an operator that are tried; DeepREL tries 10, with fewer variants of a name among them."""
SURE = 0.95
"""Score from which on all are tried."""
WEIGHTS = {"text": 0.45, "name": 0.35, "parameters": 0.2}
Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def candidates(apis: Sequence[Api], top: int = TOP) -> dict[str, list[tuple[str, float]]]:
    """Return operator → its candidates with scores from 0 to 1, best first, itself left out."""
    scores = _scores(apis)
    np.fill_diagonal(scores, -1.0)
    found = {}
    for row, api in enumerate(apis):
        order = np.argsort(-scores[row], kind="stable")
        chosen = [j for place, j in enumerate(order) if scores[row, j] >= SURE or (place < top and scores[row, j] > 0)]
        found[api.operator] = [(apis[j].operator, round(float(scores[row, j]), 4)) for j in chosen]
    return found


def _scores(apis: Sequence[Api]) -> Matrix:
    names = [normalised(api.operator) for api in apis]
    by_name = {api.operator: api for api in apis}
    scores = WEIGHTS["text"] * _cosines(words(_told(api, by_name)) for api in apis)
    scores += WEIGHTS["name"] * _cosines(_grams(name) for name in names)
    scores += WEIGHTS["parameters"] * _cosines(Counter(map(bare, api.parameters)) for api in apis)
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        groups.setdefault(name, []).append(row)
    for row, api in enumerate(apis):
        for link in api.links:
            if link in by_name:
                variants = np.ix_(groups[names[row]], groups[normalised(link)])
                scores[variants] = np.maximum(scores[variants], SURE)
    scores = np.maximum(scores, scores.T)
    for rows in groups.values():
        scores[np.ix_(rows, rows)] = 1.0
    return np.asarray(np.minimum(scores, 1.0), dtype=np.float32)


def normalised(operator: str) -> str:
    """Return what variants of an operator share: `torch.nn.ReLU`, `torch.Tensor.relu_` and `torch.relu` are all `relu`."""
    name = operator.rpartition(".")[2].strip("_")
    return name.replace("_", "").lower()


def _told(api: Api, by_name: dict[str, Api]) -> str:
    """The documentation of what only refers to another operator is that one's."""
    referred = [by_name[link].text for link in sorted(api.links) if link in by_name]
    return " ".join([api.text, *referred]) if len(api.text) < 300 else api.text


def words(text: str) -> Counter[str]:
    """Return the words of the descriptive part of a documentation, with their numbers."""
    described = re.split(r"\n\s*(?:Args?|Arguments|Parameters|Examples?|Keyword args|Shape)\b.*?:", text, maxsplit=1)[0]
    return Counter(_WORD.findall(_CAMEL.sub(" ", described).lower()))


def _grams(name: str) -> Counter[str]:
    padded = f"^{name}$"
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def _cosines(documents: Iterable[Counter[str]]) -> Matrix:
    """Return the cosine of each pair of documents by TF-IDF, a matrix of float32."""
    counted = list(documents)
    number = Counter(term for document in counted for term in document)
    terms = {term: place for place, term in enumerate(number)}
    weights = np.zeros((len(counted), max(len(terms), 1)), dtype=np.float32)
    for row, document in enumerate(counted):
        for term, count in document.items():
            weights[row, terms[term]] = (1 + np.log(count)) * np.log(len(counted) / number[term])
    weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    return np.asarray(weights @ weights.T, dtype=np.float32)
