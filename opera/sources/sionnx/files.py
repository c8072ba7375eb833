"""Specifications as files: opera's own, a folder of the user's, or a checkout of the published ones. Nothing of it is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from opera import resources
from opera.errors import SourceError
from opera.sources.sionnx import parse, skeleton
from opera.sources.sionnx.spec import Spec

PUBLISHED = "onnx_instr.td"
"""What the published files include: a folder that has it is a checkout of theirs."""
LEGACY = 10
"""The newest opset that the published specifications are written for (their last change is of 2019)."""
HEAD = re.compile(r"\bInstruction\s*<\s*\[([^\]]*)\]")
"""The head of a definition: the operators that it is for."""
MAX_SIZE = 1 << 20
"""Bytes of a file that is read."""


class Unread(msgspec.Struct, frozen=True):
    """A file, or a specification, that is not used, and why."""

    file: str
    reason: str


class Work(msgspec.Struct, frozen=True):
    """One version of one specified operator.

    Attributes:
        text, file: The file of its specification, and its name.
        name, operator, since: Definition, operator signature, version.
        algorithm: Text of the published reference implementation; empty where there is none, or it may not run.
        rest: Opera's own file that specifies the operator (its text and name): it says what published files leave to the code
            of their generator.
    """

    text: str
    file: str
    name: str
    operator: str
    since: int
    algorithm: str = ""
    rest: tuple[str, str] = ("", "")


class Found(msgspec.Struct):
    """What a folder holds.

    Attributes:
        works: What can be generated from.
        unread: What cannot.
        published: Whether it is a checkout of the published ones.
    """

    works: list[Work]
    unread: list[Unread]
    published: bool


def own() -> Path:
    """Return the folder of opera's own specifications."""
    return resources.content("sources") / "sionnx"


def read(folder: Path, *, every: bool = False, algorithms: bool = False, alone: bool = False) -> Found:
    """Return what a folder, or its folder `include`, specifies. Raises SourceError where it holds no specification at all.

    Args:
        folder: Opera's own, the user's, or the root of a checkout.
        every: Every version of an operator that the specification fits, not only the newest.
        algorithms: Whether the texts of reference implementations are wanted: they are run then.
        alone: Whether published specifications are not completed by opera's own.
    """
    if not folder.is_dir():
        raise SourceError(f"there is no folder {folder}", fix="check the path")
    place = folder / "include" if any((folder / "include").glob("*.td")) else folder
    names = sorted(x for x in place.glob("*.td") if x.is_file())
    if not names:
        raise SourceError(
            f"{folder} holds no specifications",
            cause="neither it nor its folder include has a file *.td",
            fix="give a checkout of the published ones, or what `opera constraints onnx --osl --out FOLDER` wrote",
        )
    found = Found([], [], (place / PUBLISHED).is_file())
    rest = _own() if found.published and not alone else {}
    for path in names:
        try:
            text = _text(path)
            specs = parse.parse(text, path.name)
        except SourceError as error:
            found.unread.append(_unread(path.name, error))
            continue
        for spec in specs:
            try:
                _add(found, spec, text, rest, place if algorithms else None, every)
            except SourceError as error:
                found.unread.append(_unread(path.name, error))
    return found


def _unread(file: str, error: SourceError) -> Unread:
    return Unread(file, "; ".join(x for x in (error.what, error.cause) if x))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_SIZE:
            raise SourceError(f"{path.name} is larger than {MAX_SIZE >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path.name} cannot be read: {error}") from None


def _own() -> dict[str, tuple[str, str]]:
    """Return operator signature → text and name of opera's own file that specifies it, as the heads of its definitions say."""
    found = {}
    for path in sorted(own().glob("*.td")):
        text = _text(path)
        names = (name.strip() for listed in HEAD.findall(text) for name in listed.split(","))
        found.update(dict.fromkeys(names, (text, path.name)))
    return found


def _add(
    found: Found, spec: Spec, text: str, rest: dict[str, tuple[str, str]], algorithms: Path | None, every: bool
) -> None:
    numbers = list(versions(spec, published=found.published, every=every))
    if not numbers:
        skeleton.resolve(spec)  # says it where there is no such operator
        raise SourceError(
            f"{spec.file}:{spec.line}: no version of {spec.signature} has the attributes and inputs that it names"
        )
    path = None if algorithms is None else algorithms / f"{spec.operator.lower()}.algorithm"
    algorithm = _text(path) if path is not None and path.is_file() else ""
    more = rest.get(spec.signature, ("", ""))
    found.works += [Work(text, spec.file, spec.name, spec.signature, since, algorithm, more) for since in numbers]


def versions(spec: Spec, *, published: bool, every: bool) -> Iterator[int]:
    """Yield the versions of an operator that are generated from a specification: the newest that it fits, or all, newest first.

    Published ones are written for opset 10 at most, where attributes are what inputs are today: of them, the newest version of
    that time that has all attributes and inputs which the specification names; where there is none, the newest that has them.
    """
    known = skeleton.versions(spec.operator, spec.domain)[::-1]
    fitting = [x for x in known if not published or fits(spec, x)]
    if published:
        fitting = [x for x in fitting if x <= LEGACY] or fitting
    yield from fitting if every else fitting[:1]


def fits(spec: Spec, since: int) -> bool:
    """Whether a version of the operator has the attributes and inputs that a specification names."""
    base = skeleton.skeleton(spec.operator, since, spec.domain)
    variadic = bool(base.inputs) and base.inputs[-1].variadic
    if not {x.name for x in spec.attributes} <= {x.name for x in base.attributes}:
        return False
    return all(variadic if x.variadic else x.index < len(base.inputs) or variadic for x in spec.inputs)
