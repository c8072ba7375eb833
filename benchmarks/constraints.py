"""Compare the constraints that opera reads out of today's documentation with those that DocTer's authors annotated by hand.

    python benchmarks/constraints.py DOCTER_DIR [--library torch] [--half scored] [--show dtype]

DOCTER_DIR is a checkout of DocTer. Its `annotation_details/annotation_*.csv` say, sentence by sentence, what a parameter's
documentation states; placeholders in them (D_TYPE) stand for words, which are taken from the published constraints of the
same parameter. The unit is what a field (dtype, structure, tensor_t, ndim, shape, range, enum) of one annotated parameter
says. Extracted and annotated agree if they are the same set, or share at least half of all they name; of shapes, whose
sizes have other names today, the number of dimensions and all constants are compared.

Only APIs that still exist are compared. Rules were written on one half of them (`written`: the SHA-256 of the API's name
is even), and are scored on the other (`scored`).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from opera.errors import CorpusError
from opera.sources.docter import constraints, documented, files
from opera.sources.docter.constraints import CATEGORIES, Api, Parameter
from opera.sources.docter.documented import Bound, Dead

TABLES = {"torch": ("annotation_pytorch.csv", "pytorch1.5"), "keras": ("annotation_tensorflow.csv", "tensorflow2.1")}
PLACEHOLDERS = ("D_TYPE", "D_STRUCTURE", "SHAPE", "ENUM", "PARAM", "CONSTANT", "REXPR", "DF_STR")
AGREE = 0.5
"""Share of what both sets name that they must have in common."""
Said = dict[str, frozenset[str]]


def half(title: str) -> str:
    """Return which half of the APIs a name belongs to."""
    return "scored" if hashlib.sha256(title.encode()).digest()[0] % 2 else "written"


def annotations(folder: Path, library: str) -> Iterator[tuple[str, dict[str, Said]]]:
    """Yield API → parameter → field → what was annotated."""
    table, published = TABLES[library]
    stated = {api.title.lower(): api for api in files.read_folder(folder / "constraints_extracted" / published)[0]}
    rows: dict[str, dict[str, dict[str, set[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    with (folder / "annotation_details" / table).open(encoding="utf-8", errors="replace", newline="") as lines:
        for row in csv.DictReader(lines):
            parameter = rows[row["API"]][row["Arg"]]
            for field in constraints.FIELDS:
                parameter[field] |= {x.strip() for x in (row.get(field) or "").split(";") if x.strip()}
    for title, parameters in rows.items():
        api = stated.get(title.lower())
        if api is not None:
            yield title, {name: _resolved(fields, api.parameters.get(name)) for name, fields in parameters.items()}


def _resolved(fields: dict[str, set[str]], published: Parameter | None) -> Said:
    said = {}
    for field, entries in fields.items():
        concrete = {x for x in entries if not any(word in x for word in PLACEHOLDERS)}
        if concrete != entries:
            concrete |= set(published.texts.get(field, ())) if published else set()
            concrete = concrete or {"?"}
        if concrete:
            said[field] = frozenset(filter(None, (_normal(field, x) for x in concrete)))
    return {field: entries for field, entries in said.items() if entries}


def _normal(field: str, text: str) -> str:
    """Return one way to write what means the same; empty for what says nothing (`None` among words)."""
    try:
        match field:
            case "dtype":
                return constraints.dtype(text).name or text
            case "shape":
                return ",".join(str(getattr(x, "value", "_")) for x in constraints.shape(text).terms)
            case "range":
                made = constraints.interval(text)
                return f"{made.low} {made.high} {made.closed}"
            case "tensor_t" | "structure":
                return text.rpartition(".")[2].lower()
            case "enum":
                return text.strip("'\"`").lower().replace("none", "")
    except CorpusError:
        pass
    return text.strip()


def extracted(bound: Bound, known: Api) -> dict[str, Said]:
    """Return what today's documentation says, under the names that parameters had."""
    made = {}
    for old, new in bound.names.items():
        if new in known.parameters:
            texts = known.parameters[new].texts
            said = {
                field: frozenset(filter(None, (_normal(field, x) for x in entries))) for field, entries in texts.items()
            }
            made[old] = {field: entries for field, entries in said.items() if entries}
    return made


def known(library: str, bound: Bound, stated: Api) -> Api:
    """Return today's constraints of an API."""
    if library == "keras":
        from opera.sources.docter import keras_documents

        return keras_documents.api(bound.operator)
    from opera.sources.docter import torch_documents

    found = torch_documents.known(bound.operator, stated)
    assert found is not None
    return found


def agree(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two sets are the same, or nearly."""
    return len(first & second) >= AGREE * len(first | second)


def score(folder: Path, library: str, part: str, show: str) -> tuple[dict[str, Counter[str]], int, int]:
    """Return category → counts (`right`, `extracted`, `annotated`), and how many APIs and parameters were compared."""
    target = documented.get(library)
    if library == "keras":
        next(iter(target.builtin()))  # imports it in silence
    stated = {
        api.title.lower(): api for api in files.read_folder(folder / "constraints_extracted" / TABLES[library][1])[0]
    }
    counts: dict[str, Counter[str]] = {name: Counter() for name in CATEGORIES}
    apis = parameters = 0
    for title, said in annotations(folder, library):
        if part not in ("all", half(title)):
            continue
        try:
            bound = target.bind(stated[title.lower()])
        except Dead:
            continue
        today = extracted(bound, known(library, bound, stated[title.lower()]))
        apis += 1
        for name, annotated in said.items():
            if name not in today:
                continue
            parameters += 1
            for category, fields in CATEGORIES.items():
                for field in fields:
                    mine, theirs = today[name].get(field, frozenset()), annotated.get(field, frozenset())
                    right = bool(mine and theirs) and agree(mine, theirs)
                    counts[category].update(right=right, extracted=bool(mine), annotated=bool(theirs))
                    if show == category and not right and (mine or theirs):
                        print(f"{title} {name} {field}: extracted {sorted(mine)}, annotated {sorted(theirs)}")
    return counts, apis, parameters


def main() -> None:
    """Print a table for each library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", choices=list(TABLES), action="append")
    parser.add_argument("--half", choices=["written", "scored", "all"], default="scored")
    parser.add_argument("--show", default="", help="list what does not agree in this category")
    options = parser.parse_args()
    for library in options.library or TABLES:
        counts, apis, parameters = score(options.folder, library, options.half, options.show)
        print(f"\n{library}: {apis} APIs, {parameters} parameters ({options.half})\n")
        print("| category | extracted | annotated | agree | precision | recall |\n|---|---|---|---|---|---|")
        total: Counter[str] = sum(counts.values(), Counter())
        for name, x in {**counts, "all": total}.items():
            precision, recall = (f"{x['right'] / x[of]:.2f}" if x[of] else "-" for of in ("extracted", "annotated"))
            print(f"| {name} | {x['extracted']} | {x['annotated']} | {x['right']} | {precision} | {recall} |")


if __name__ == "__main__":
    main()
