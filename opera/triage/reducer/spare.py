"""What a reduced program can spare at last: calls whose results nothing takes, outputs, parameters that mean nothing of it."""

from __future__ import annotations

import msgspec

from opera.oracle import messages
from opera.programs.program import Instance, Program
from opera.programs.verdicts import CRASH, Outcome
from opera.triage.failure import as_told
from opera.triage.reducer.asking import Asker
from opera.triage.shrink import smaller


def calls(ask: Asker, kept: list[Program]) -> None:
    """Leave out the calls whose results nothing takes, also where the call that is left is named as the one that fails then."""
    made = smaller.unread_left_out(kept[-1])
    if made is not None and made != kept[-1]:
        [shown] = ask.look([made])
        if ask.fails(shown, elsewhere=True) and ask.passed([made], [True]) == [True]:
            kept.append(made)
            ask.target = shown


def outputs(ask: Asker, kept: list[Program]) -> None:
    """Ask a call of a library that names no outputs for one alone, if it fails so, too: it is asked for all of them else."""
    program = kept[-1]
    if not isinstance(program, Instance) or any(program.outputs) or len(found := ask.reference(program) or ()) < 2:
        return
    made = [msgspec.structs.replace(program, outputs=(*("",) * n, f"output_{n}")) for n in range(len(found))]
    kept += [x for x, fails in zip(made, ask(made), strict=True) if fails and ask.stands(x)][:1]


def parameters(ask: Asker, kept: list[Program], defaults: smaller.Defaults) -> None:
    """Leave out what a failure needed at first, and the smaller program means the same without: `axis=0` of one axis.

    So it is where the library computes the same without it, bit for bit, and the compiler says the same; or where that stops
    before anything is computed, and says what a script knows the failure by.
    """
    for trait in smaller.traits(kept[-1], defaults):
        made = None if trait.kind == "dtype" else smaller.applied(trait.without, kept[-1])
        if made is None or ask([made]) != [True]:
            continue
        before, now = (ask.outcomes[x.id] for x in (kept[-1], made))
        same = before.message == now.message and ask.reference(made) == ask.reference(kept[-1])
        if same or (_stops_so(before, now) and ask.stands(made)):
            kept.append(made)


def _stops_so(before: Outcome, now: Outcome) -> bool:
    """Whether what stops before anything is computed says that by which a script knows another failure."""
    stops = now.verdict == CRASH and now.stage != "infer"
    return stops and bool(messages.identifying(before.message)) and as_told(before, now)
