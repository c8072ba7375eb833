"""Whether what a finding shows is a program that its library admits, and no feature that is wanting: who says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from opera import compilers, libraries
from opera.compilers import NODE
from opera.oracle.signature import TYPE
from opera.programs.verdicts import ABORT, CRASH, ERROR, INCONSISTENT, REFUSED, UNEXPORTED, UNSTABLE, UNSUPPORTED
from opera.store.rows import Verdict
from opera.triage import blame, others
from opera.triage import route as routes
from opera.triage.alike import same_words
from opera.triage.blame import Blame
from opera.triage.conditions import removable
from opera.triage.part import ROUTE
from opera.triage.reduction import SINCE
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import listed, reads_as_invalid
from opera.triage.shrink import simpler, smaller

NO_NUMBER = re.compile(r"\bnot (?:nan|-?inf)\b")
"""How it is told that an operator by itself gives something else than what is no number."""
WRONG = (CRASH, ABORT, REFUSED, INCONSISTENT)


def dying(chosen: Choice, laid: Blame | None) -> str:
    """Return who of those that a library asks fails on what is shown, too, or gives another answer, where nobody runs it as
    expected; nothing of wrong outputs, nor where documentation admits it (`optional`), or the compiler itself runs it as of the
    version before.
    """
    rows = blame.others(laid) if laid is not None else []
    wrong = chosen.verdict.outcome.verdict in (INCONSISTENT, UNSTABLE)
    before = any(x.startswith(SINCE) for x in chosen.deciding)
    if wrong or before or any(x.right for x in rows) or optional(chosen):
        return ""
    names = others.asked(_library(chosen))
    found = [x.way for x in rows if x.shows.partition(":")[0] in WRONG and x.way.split()[0] in names]
    return listed(found) if found else ""


def invalid(chosen: Choice, laid: Blame | None) -> bool:
    """Whether a crash says that its input is not valid, and nobody who was asked runs it as expected.

    What a library runs itself is valid, where its own word stands (PyTorch, Keras); an evaluator takes more than is specified.
    Nor does it count where documentation admits it (`optional`).
    """
    rows = blame.others(laid) if laid is not None else []
    nobody = bool(rows) and not any(x.right for x in rows) and bool(others.asked(_library(chosen)))
    return nobody and reads_as_invalid(chosen.verdict.outcome) and not optional(chosen)


def optional(chosen: Choice) -> bool:
    """Whether it decides that something is left out which documentation says may be: with it the compiler runs the call."""
    plain = map(removable.plainly, chosen.deciding)
    told = (x.removesuffix(removable.LEFT_OUT) for x in plain if x.endswith(removable.LEFT_OUT))
    out = {name for x in told for name in x.split(" or ")}
    calls = chosen.reduction.program().program.instances() if chosen.reduction is not None else []
    if not out or len(calls) != 1:
        return False
    library: Any = libraries.get(calls[0].library)
    try:
        return hasattr(library, "optional") and bool(out <= library.optional(calls[0]))
    except ImportError:
        return False


def refused(chosen: Choice, laid: Blame | None) -> str:
    """Return by which other routes the compiler says that it does not support what crashes by the one that is shown; nothing
    where another one says anything else: a feature that is there by no route is wanting. Two must say so, or one that is given
    the library's own model, too, and names a dtype: "FFT op input element type must be f32".

    Of a plain form, and of how constants come to a model, nothing is said: other importers than that which fails are asked.
    """
    asked = laid.evidence if laid is not None and chosen.whole is None and _library(chosen) != "onnx" else ()
    rows = [x for x in asked if x.kind == ROUTE and x.shows.partition(":")[0] not in (ERROR, UNEXPORTED)]
    says = {x.way.rpartition(" ")[2]: x.shows.partition(":")[0] for x in rows}
    typed = [x.way.rpartition(" ")[2] in routes.OWN and TYPE.search(x.shows) for x in rows]
    apart = (
        (len(says) > 1 or any(typed))
        and set(says.values()) == {UNSUPPORTED}
        and chosen.verdict.outcome.verdict == CRASH
    )
    return listed([routes.by(x) for x in sorted(says)]) if apart else ""


def by_route(chosen: Choice, laid: Blame | None) -> bool:
    """Whether the same frontend runs what is shown as expected where it is given the library's own model in another way: then
    it does what it says that it does not support. A file that an exporter made may be of other operators.
    """
    asked = laid.evidence if laid is not None and chosen.verdict.variant in routes.OWN else ()
    return any(x.kind == ROUTE and x.right and not x.lucky and x.way.rpartition(" ")[2] in routes.OWN for x in asked)


def unexported(shown: Verdict, stored: Callable[[], Iterable[Verdict]]) -> str:
    """Return the form in which a library itself cannot write a model down either, for the same exception in the same words, of
    an exporter that stops; or nothing.

    Args:
        shown: What the exporter shows of a test; `stored`: returns what is stored of that by all frontends.
    """
    if shown.outcome.verdict != CRASH or not compilers.exporter(*shown.frontend.rpartition("-")[::2]):
        return ""
    failed = [x for x in stored() if (x.outcome.verdict, x.outcome.symptom) == (UNEXPORTED, shown.outcome.symptom)]
    said = {x.variant: x.outcome.message.partition(": ")[2] for x in failed if x.variant in routes.OWN}
    return next((routes.OWN[x][1] for x, says in said.items() if same_words(shown.outcome.message, says)), "")


def arising(chosen: Choice, laid: Blame | None) -> str:
    """Return what an operator inside is told to make of a NaN or an infinity, where what is shown is given finite numbers
    alone, and finite ones are expected of it: whoever drops what is no number does so of what arises between two operators.
    """
    of, outcome = chosen.reduction, chosen.verdict.outcome
    finite = of is not None and simpler.finite(smaller.leaves(of.program().program))
    asked = laid.evidence if laid is not None and finite and outcome.details.get("not_finite") is False else ()
    return next((x.remark for x in asked if x.kind == NODE and NO_NUMBER.search(x.remark)), "")


def _library(chosen: Choice) -> str:
    return chosen.verdict.frontend.rpartition("-")[2]
