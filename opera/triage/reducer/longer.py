"""What rounding explains of few numbers, and of many does not: an error that grows with length.

A transform whose angles are wrong by a rounding of their own (pi n² / N in float32, never reduced) is off by three epsilons
for ten numbers, as any sum may be, and by a thousand for a thousand. So a call that a screen excused as rounding of a sum
(opera.oracle.conditioning.rounding) is asked about once more with a longer axis. What is wrong then, and no screen
explains, becomes a test of its own (opera.triage.reducer.hidden.store).
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from opera.errors import OperaError
from opera.oracle.conditioning import OF_SUMS
from opera.oracle.screens import ILL_CONDITIONED
from opera.programs.program import Instance, Operand, Program, parse
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import INCONSISTENT, SCREENED
from opera.run.probe import Probe, Question
from opera.store import examined, tests
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.reducer import hidden, witness
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.shrink.minimise import Spent

LONG, MOST = 1000, 200_000
"""How long an axis becomes, and elements that a tensor may have then."""
WIDE = ("float32", "float64")
"""Dtypes in which sums are kept: in narrower ones their makers may do so, or not."""
SECONDS = 20.0
"""What one may take."""


def longer(program: Program) -> Iterator[Program]:
    """Yield a call with a longer axis of its first tensor of floats, the longest axis first: alone, then with all axes of
    floats that are as long (both operands of a product). Numbers are drawn between its least and its greatest, and of those
    that have one sign, between -1 and 1 as well."""
    floats = [x for x in program.inputs if isinstance(x.value, Tensor | RandomTensor) and x.value.dtype in WIDE]
    if not isinstance(program, Instance) or not floats:
        return
    first = floats[0].value
    if not isinstance(first, Tensor | RandomTensor) or 0 in first.shape:
        return
    low, high = _range(first)
    ranges = [(low, high), *([(-1.0, 1.0)] if low * high >= 0 else [])]
    seen = set[str]()
    for axis in sorted(range(len(first.shape)), key=lambda n: -first.shape[n]):
        length = first.shape[axis]
        for together in (False, True) if 1 < length < LONG else ():
            for least, most in ranges:
                inputs = tuple(
                    _stretched(x, length, axis, together, x is floats[0], (least, most)) for x in program.inputs
                )
                made = msgspec.structs.replace(program, inputs=inputs)
                sizes = (math.prod(x.value.shape) for x in inputs if isinstance(x.value, Tensor | RandomTensor))
                if made.id not in seen and max(sizes) <= MOST:
                    seen.add(made.id)
                    yield made


def _range(tensor: Tensor | RandomTensor) -> tuple[float, float]:
    """Return the least and the greatest finite number of a tensor, 0 and 1 where there is none, or but one."""
    if isinstance(tensor, RandomTensor):
        return tensor.low, tensor.high
    found = [float(x) for x in tensor.numbers().ravel().tolist() if math.isfinite(x)]
    return (min(found), max(found)) if found and min(found) < max(found) else (0.0, 1.0)


def _stretched(
    given: Operand, length: int, axis: int, together: bool, is_first: bool, span: tuple[float, float]
) -> Operand:
    """Return an input with each axis that is to be longer so; the first one, with numbers between two."""
    held = given.value
    if not isinstance(held, Tensor | RandomTensor) or held.dtype not in WIDE or not (is_first or together):
        return given
    shape = tuple(
        LONG if (is_first and n == axis) or (together and x == length) else x for n, x in enumerate(held.shape)
    )
    if shape == held.shape and not is_first:
        return given
    low, high = span if is_first else _range(held)
    return msgspec.structs.replace(given, value=RandomTensor(held.dtype, shape, 0, low, high))


def ask(workspace: Workspace, probe: Probe, seconds: float) -> Iterator[Verdict]:
    """Yield what longer programs fail of where rounding explains the test, one for each operator and frontend: tests of their
    own. Each is asked about once.

    Args:
        seconds: What all may take.
    """
    last, excused = time.monotonic() + seconds, _excused(workspace)
    programs = dict(tests.documents(workspace, [x.test for x in excused]))
    for verdict in excused:
        if time.monotonic() > last:
            return
        found = None
        try:
            with suppress(OperaError):  # its environment is gone
                found = _wrong(workspace, probe, verdict, parse(msgspec.json.decode(programs[verdict.test])))
        except Spent:  # nothing is known of it, and the next run asks again
            continue
        made = b"" if found is None else found.test.encode()
        examined.save(workspace, examined.LONGER, examined.Examined("", verdict.environment, verdict.test, made))
        if found is not None:
            yield found


def show(workspace: Workspace, seconds: float, workers: int) -> None:
    """Ask, as long as there is time, and print what is found."""
    if seconds > 0 and _excused(workspace):
        with Probe.of(workspace, workers=workers) as probe:
            for found in ask(workspace, probe, seconds):
                operator = tests.origins(workspace, [found.test])[found.test].operator
                print(
                    f"{found.finding}: {operator} on {found.frontend} is wrong by more than rounding with a longer axis"
                )


def _wrong(workspace: Workspace, probe: Probe, verdict: Verdict, program: Program) -> Verdict | None:
    """Return what a longer program fails of; None where none does. Raises Spent."""
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment, screened=True
    )
    asker = Asker(probe, question, None, witness.beside(workspace, verdict))
    asker.budget = Budget(SECONDS)
    made = list(longer(program))
    for x, now in zip(made, asker.look(made), strict=True):
        if (now.verdict, now.symptom) == (INCONSISTENT, "value"):
            return hidden.store(workspace, asker, verdict, x, "longer")
    return None


def _excused(workspace: Workspace) -> list[Verdict]:
    """Return one verdict of each operator and frontend that rounding of a sum explains, the farthest off; none where one was
    asked about."""
    known = [x for x in stored.of_kind(workspace, SCREENED) if x.outcome.details.get("screen") == ILL_CONDITIONED]
    gone = workspace.superseded()
    known = [x for x in known if OF_SUMS in x.outcome.details and x.environment not in gone]
    origins, done = tests.origins(workspace, {x.test for x in known}), examined.documents(workspace, examined.LONGER)
    asked = {(x.test, x.environment) for x in done}
    groups = defaultdict[tuple[str, str, str], list[Verdict]](list)
    for x in known:
        groups[x.frontend, x.environment, origins[x.test].operator].append(x)
    new = [of for _, of in sorted(groups.items()) if not any((x.test, x.environment) in asked for x in of)]
    return [max(of, key=lambda x: (_off(x), x.test)) for of in new]


def _off(verdict: Verdict) -> float:
    off = verdict.outcome.details.get(OF_SUMS)
    return float(off) if isinstance(off, int | float) else 0.0
