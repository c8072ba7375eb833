"""From what was seen to a verdict: the rules about exceptions. Those about outputs are in oracle.py and screens.py.

Workers conclude by these functions when they have run a test, and the parent process when rules have changed since
(`opera.run.rejudge`). Needs numpy and msgspec only.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from opera.compilers import Case, Frontend
from opera.compilers.shared.messages import NEEDS_CONSTANT, Claimed
from opera.compilers.shared.packing import NoAnswer, Refusal
from opera.programs.verdicts import CRASH, ERROR, OUT_OF_MEMORY, REFUSED, UNEXPORTED, UNSUPPORTED, Raised, Seen
from opera.run import culprit

TEXT = 1 << 16
"""Characters of an exception's text that are kept."""
CHAIN = 8
"""Causes of an exception that are kept."""
MESSAGE = 4000
"""Characters of a message."""
MOVED = {"opera.compilers.packing": "opera.compilers.shared.packing"}
"""Modules of opera's own exceptions as older workspaces name them → where they are now."""


class Conclusion(msgspec.Struct, frozen=True):
    """What an exception means: the fields of records.Outcome of the same names, and the hooks that failed meanwhile.

    `claimed` is what the compiler declares, where its refusal contradicts that, and `omission` what it has in common with
    refusals of other operators that are one omission with it. `asked` is what of the library (Frontend.BEFORE) failed.
    """

    verdict: str
    symptom: str
    message: str
    hooks: dict[str, str] = {}
    claimed: str = ""
    omission: str = ""
    asked: str = ""

    def details(self, before: dict[str, Any]) -> dict[str, Any]:
        """Return the details of an outcome, with what is claimed in place of what was said of that before."""
        said = {"claimed": self.claimed, "omission": self.omission, "asked": self.asked}
        return {key: value for key, value in before.items() if key not in said} | {
            key: value for key, value in said.items() if value
        }


def observed(error: BaseException, folder: str) -> tuple[Raised, ...]:
    """Return an exception and its causes as data, without the folder of the test in their texts."""
    found: list[Raised] = []
    link: BaseException | None = error
    while link is not None and len(found) < CHAIN:
        kinds = tuple(f"{kind.__module__}:{kind.__qualname__}" for kind in type(link).__mro__ if kind is not object)
        found.append(Raised(kinds, cut(said(link).replace(folder, ""), TEXT)))
        link = link.__cause__
    return tuple(found)


def restored(raised: tuple[Raised, ...]) -> BaseException:
    """Return a stand-in of what was raised: it has the same text, causes and names of classes, and no other attribute.

    Its classes are Python's and opera's own, and empty ones where they were a compiler's: nothing of it is imported.
    """
    cause: BaseException | None = None
    for one in reversed(raised):
        error = _stand_in(one.kinds)(one.text)
        error.__cause__ = cause
        cause = error
    assert cause is not None
    return cause


def conclude(frontend: Frontend, case: Case, stage: str, seen: Seen, error: BaseException | None = None) -> Conclusion:
    """Return what an exception in a stage means; `error` is the exception itself, where it is still there."""
    first = seen.raised[0]
    error = restored(seen.raised) if error is None else error
    symptom, message = first.kinds[0].partition(":")[2], cut(first.text)
    if isinstance(error, MemoryError) or "std::bad_alloc" in first.text:
        return Conclusion(OUT_OF_MEMORY, "MemoryError" if isinstance(error, MemoryError) else symptom, message)
    if isinstance(error, NoAnswer):
        return Conclusion(CRASH, "no-answer", message)
    if seen.blame == culprit.OPERA and not isinstance(error, Refusal):
        return Conclusion(ERROR, symptom, cut(f"{message}\n" + "\n".join(seen.frames)))
    reason, hooks = None, {}
    try:
        reason = frontend.unsupported(case, stage, error)
    except Exception as failure:
        hooks = {"unsupported": f"{type(failure).__name__}: {cut(said(failure), 300)}"}
    if reason is not None and (given := _given(case, reason)):
        reason = Claimed(f"it wants a constant, and {given} is one")
    if isinstance(reason, Claimed) and seen.blame != culprit.OPERA:
        return Conclusion(REFUSED, symptom, message, hooks, claimed=cut(reason), omission=reason.omission)
    if reason is not None:
        return Conclusion(UNSUPPORTED, symptom.rpartition(".")[2], cut(reason), hooks)
    if seen.blame == culprit.OPERA:
        return Conclusion(ERROR, symptom, message, hooks)
    if seen.blame == culprit.BEFORE:
        before = " and ".join(getattr(frontend, "BEFORE", ()))
        return Conclusion(UNEXPORTED, symptom, cut(f"{before} fails: {message}"), hooks, asked=before)
    if seen.blame == culprit.LIBRARY:
        return Conclusion(UNEXPORTED, symptom, cut(f"the library cannot read what it exported: {message}"), hooks)
    return Conclusion(CRASH, symptom, message, hooks)


def _given(case: Case, reason: str) -> str:
    """Return the input that is to be a constant, by a refusal's own words, and is one in this file; empty where none is."""
    if not reason.startswith(f"{NEEDS_CONSTANT}:"):
        return ""
    named = set(re.findall(r"\w+", reason.lower()))
    return next((name for name in case.constants if name.lower() in named), "")


def said(error: BaseException) -> str:
    """Return the exception's text, even where it cannot say it itself."""
    try:
        return str(error)
    except BaseException as second:
        return f"(its text cannot be had: {type(second).__name__})"


def cut(text: str, most: int = MESSAGE) -> str:
    """Keep the beginning, which says what, and the end, which says where."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[: most - most // 4 - 5]} ... {text[-(most // 4) :]}"


@cache
def _stand_in(kinds: tuple[str, ...]) -> type[BaseException]:
    made: Any = None
    for kind in reversed(kinds):
        module, _, name = kind.partition(":")
        known = _known(module, name)
        if known is not None and (made is None or issubclass(known, made)):
            made = known
        elif known is None:
            made = type(name.rpartition(".")[2], (made or BaseException,), {"__module__": module, "__qualname__": name})
    made = made or Exception
    shown = {
        "__str__": _says,
        "__init__": _init,
        "__module__": made.__module__,
        "__qualname__": made.__qualname__,
    }
    found: type[BaseException] = type(made.__name__, (made,), shown)
    return found


def _init(self: BaseException, text: str) -> None:
    """Some of Python's exceptions (UnicodeDecodeError) want other arguments than a text."""
    self.args = (text,)


def _says(self: BaseException) -> str:
    """KeyError, for one, would say it in quotes."""
    return str(self.args[0])


def _known(module: str, name: str) -> type[BaseException] | None:
    """Return a class of Python's or of opera's own by name."""
    if name.endswith("ExceptionGroup"):  # it is made of other exceptions, not of a text
        return None
    if module != "builtins" and not culprit.within(module, ("opera",)):
        return None
    try:
        found = getattr(import_module(MOVED.get(module, module)), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
