"""DocTer's constraint files: read with every distrust, and written."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from opera.errors import CorpusError, NotInstalled, SourceError
from opera.sources.docter import constraints
from opera.sources.docter.constraints import FIELDS, Api

MAX_FILES = 20_000
MAX_SIZE = 256 * 1024
"""Bytes of one file; the largest that was published has 30 KB."""
MAX_NODES = 20_000
"""Scalars and containers of one file."""
MAX_DEPTH = 20
MAX_PARAMETERS = 200
MAX_ENTRIES = 100
"""Alternatives of one constraint."""
PACKAGES = {"torch": "torch", "tensorflow": "keras", "keras": "keras"}
"""What a file calls its package → the library that opera runs it on."""
SUFFIXES = (".yaml", ".yml")


class Unread(msgspec.Struct, frozen=True):
    """A file, or a part of one, that is not used, and why."""

    file: str
    reason: str


def read_folder(folder: Path) -> tuple[list[Api], list[Unread]]:
    """Read all constraint files of a folder, sorted by name.

    Raises SourceError where there are none, or not one can be read; NotInstalled without PyYAML.
    """
    if not folder.is_dir():
        raise SourceError(
            f"{folder} is no folder of constraint files", cause="a spelling mistake",
            fix="name the folder that holds DocTer's *.yaml; without a folder opera makes constraints itself",
        )  # fmt: skip
    paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if not paths:
        raise SourceError(
            f"{folder} holds no constraint files",
            cause="they are named API.yaml, and lie in one folder (constraints_extracted/pytorch1.5)",
            fix="name that folder",
        )
    apis, unread = [], [Unread(path.name, f"more than {MAX_FILES} files") for path in paths[MAX_FILES:]]
    names = Counter(path.stem for path in paths)
    for path in paths[:MAX_FILES]:
        try:
            if names[path.stem] > 1:
                raise CorpusError("two files of that name, with different suffixes")
            apis.append(read(path))
        except CorpusError as error:
            unread.append(Unread(path.name, error.what))
    if not apis:
        raise SourceError(
            f"not one of the {len(unread)} files of {folder} is a constraint file",
            cause=f"the first: {unread[0].reason}",
        )
    return apis, unread


def read(path: Path) -> Api:
    """Read one file. Raises CorpusError for whatever is wrong with it."""
    try:
        if not path.is_file():  # a pipe or a device would be read without end
            raise CorpusError("no regular file")
        if path.stat().st_size > MAX_SIZE:
            raise CorpusError(f"larger than {MAX_SIZE} bytes")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CorpusError("no UTF-8 text") from None
    return parse(text, path.stem)


def parse(text: str, name: str) -> Api:
    """Parse the text of a file. Raises CorpusError."""
    try:
        return _api(_load(text), name)
    except (RecursionError, ValueError) as error:  # a number of thousands of digits has no decimal form
        raise CorpusError(f"no constraints that can be read: {type(error).__name__}") from None


def _api(form: Any, name: str) -> Api:
    if not isinstance(form, dict):
        raise CorpusError("no mapping at the top")
    title, package = str(form.get("title") or form.get("target") or ""), str(form.get("package") or "")
    if not title or len(title) > 300:
        raise CorpusError("it has no title")
    inputs = _mapping(form.get("inputs"), "inputs")
    required, optional = (_names(inputs.get(kind), kind) for kind in ("required", "optional"))
    stated = _mapping(form.get("constraints"), "constraints")
    if len(stated) > MAX_PARAMETERS:
        raise CorpusError(f"more than {MAX_PARAMETERS} parameters")
    parameters = {str(name): _parameter(str(name), _mapping(x, str(name))) for name, x in stated.items()}
    for name_ in (*required, *optional):
        parameters.setdefault(name_, constraints.Parameter(name_))
    return Api(title, package, required, optional, parameters, bool(form.get("layer_constructor")), name)


def yaml() -> Any:
    """Return PyYAML. Raises NotInstalled."""
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise NotInstalled(
            "PyYAML is not installed", cause="constraint files are YAML", fix="pip install 'opera[generators]'"
        ) from None


def _load(text: str) -> Any:
    """Parse YAML as plain strings, lists and mappings: no tags, no anchors (which can stand for gigabytes)."""
    library = yaml()
    loader: Any = getattr(library, "CSafeLoader", library.SafeLoader)
    try:
        depth = 0
        for count, event in enumerate(library.parse(text, Loader=loader)):
            depth += isinstance(event, library.CollectionStartEvent) - isinstance(event, library.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise CorpusError(f"nested more than {MAX_DEPTH} deep")
            if isinstance(event, library.AliasEvent):
                raise CorpusError("YAML aliases are not allowed")
            if getattr(event, "tag", None) not in (None, "!", "tag:yaml.org,2002:str"):
                raise CorpusError(f"YAML tags are not allowed: {event.tag}")
            if count > 2 * MAX_NODES:
                raise CorpusError(f"more than {MAX_NODES} nodes")
        return library.load(text, Loader=loader)
    except library.YAMLError as error:
        raise CorpusError(f"no YAML: {' '.join(str(error).split())[:200]}") from None
    except (RecursionError, ValueError) as error:
        raise CorpusError(f"no YAML that can be read: {type(error).__name__}") from None


def _mapping(item: Any, what: str) -> dict[Any, Any]:
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise CorpusError(f"{what[:60]} is no mapping")
    return item


def _names(item: Any, what: str) -> tuple[str, ...]:
    if item is None:
        return ()
    if not isinstance(item, list) or len(item) > MAX_PARAMETERS or not all(isinstance(x, str) for x in item):
        raise CorpusError(f"inputs.{what} is no list of names")
    return tuple(x for x in dict.fromkeys(item) if not x.startswith("*"))


def _parameter(name: str, form: dict[Any, Any]) -> constraints.Parameter:
    texts = {}
    for field in FIELDS:
        entries = form.get(field)
        if entries is None:
            continue
        entries = entries if isinstance(entries, list) else [entries]
        if len(entries) > MAX_ENTRIES or not all(isinstance(x, str | int | float | bool | None) for x in entries):
            raise CorpusError(f"{field} of {name[:60]!r} is no list of texts")
        texts[field] = [str(x) for x in entries]
    default = form.get("default")
    if isinstance(default, list | dict):
        raise CorpusError(f"the default of {name[:60]!r} is no text")
    return constraints.parameter(name, texts, None if default is None else str(default), str(form.get("descp") or ""))


def document(api: Api) -> dict[str, Any]:
    """Return what a file of an API holds, in DocTer's order of names."""
    stated = {}
    for name, parameter in api.parameters.items():
        entry: dict[str, Any] = {} if parameter.default is None else {"default": parameter.default}
        entry |= {"descp": parameter.description} if parameter.description else {}
        stated[name] = entry | {field: texts for field, texts in sorted(parameter.texts.items()) if texts}
    form: dict[str, Any] = {"constraints": stated}
    form |= {"inputs": {"optional": list(api.optional), "required": list(api.required)}}
    form |= {"layer_constructor": True} if api.layer else {}
    return form | {"package": api.package, "target": api.title.rpartition(".")[2], "title": api.title}


def write_folder(apis: Iterator[Api] | list[Api], folder: Path) -> int:
    """Write a file for every API; return how many. Raises SourceError where the folder cannot be written."""
    library = yaml()
    dumper: Any = getattr(library, "CSafeDumper", library.SafeDumper)
    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for api in apis:
            text = library.dump(document(api), Dumper=dumper, sort_keys=True, allow_unicode=True, width=120)
            (folder / f"{api.file or api.title}.yaml").write_text(text, encoding="utf-8")
            count += 1
    except OSError as error:
        raise SourceError(f"{folder} cannot be written: {error.strerror}") from None
    return count
