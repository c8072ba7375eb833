"""Inputs that are constants of the model: by which variant it fails, what becomes of it with one, and which need be one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import cast

import msgspec

from opera import compilers, libraries
from opera.libraries import Embedding
from opera.oracle.messages import one_line
from opera.programs import migrated
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, PASS
from opera.run import plan
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.conditions import deciding
from opera.triage.failure import alike, words
from opera.triage.reducer.asking import Asker
from opera.triage.sentence import NO_CONSTANT
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

CONSTANTS = "constants"
"""Variant of a frontend by which inputs that state sizes and the like are constants of the model."""


def of_variant(workspace: Workspace, ask: Asker, program: Program, verdict: Verdict) -> Verdict:
    """Return the verdict, of the variant by which what states sizes is constants of the model if it fails alike by that, which
    is asked from then on: so users have it, and a compiler that takes no others may refuse the program once its bug is mended.
    """
    compiler, _, library = verdict.frontend.rpartition("-")
    variants = (x.name for x in compilers.frontend(compiler, library).VARIANTS)
    held = migrated.read_manifest(migrated.folder(workspace.tests_folder, verdict.test)).constants
    if not held or verdict.variant == CONSTANTS or CONSTANTS not in variants or ask.target is None:
        return verdict
    known = stored_verdicts.of_test(workspace, verdict.test)  # a reduction is found by a member of its finding
    of_finding = ((x.frontend, x.variant, x.environment, x.finding) for x in known)
    if (verdict.frontend, CONSTANTS, verdict.environment, verdict.finding) not in of_finding:
        return verdict
    shown = ask.by_variant(program, CONSTANTS)
    if not alike(verdict.frontend, ask.target, shown):
        return verdict
    ask.question = msgspec.structs.replace(ask.question, variant=CONSTANTS)
    ask.target = ask.outcomes[program.id] = shown
    return msgspec.structs.replace(verdict, variant=CONSTANTS)


def passing(ask: Asker, program: Program, told: Iterable[str], defaults: Defaults) -> Program | None:
    """Return the program that holds as a constant what must be none for it to fail, if that passes."""
    made = deciding.lacking(program, [x for x in told if x.endswith(NO_CONSTANT)][:1], defaults)
    made = [x for x in made if x != program]
    with suppress(Spent):
        return next((x for x, now in zip(made, ask.look(made), strict=True) if now.verdict == PASS), None)
    return None


def held(ask: Asker, program: Program) -> tuple[tuple[str, str], ...]:
    """Return inputs that may state sizes, and what a compiler says where the model holds one, if it fails then, too, in other
    words: whoever mends what it says may have one of both in mind.
    """
    library, now = libraries.get(program.library), ask.outcomes[program.id]
    if now.verdict != CRASH or not isinstance(program, Instance) or not hasattr(library, "embedded"):
        return ()
    sizes = [x.name for x in program.inputs if isinstance(x.value, Tensor) and smaller.states(x.value)]
    made = [(name, x) for name in sizes for x in cast(Embedding, library).embedded(program, name)]
    with suppress(Spent):
        shown = zip(made, ask.look([x for _, x in made]), strict=True)
        said = [(name, x.message) for (name, _), x in shown if (x.verdict, x.stage) == (CRASH, now.stage)]
        return tuple((name, one_line(x)) for name, x in said if words(_begins(x)) != words(_begins(now.message)))
    return ()


def alone(ask: Asker, program: Program, workspace: Workspace) -> tuple[tuple[str, bool], ...]:
    """Return of several inputs that the model holds as constants whether it fails so if each alone is one, or runs.

    The others are fed then, by the frontend's first variant. Where opera itself makes no such model, nothing is known; where it
    fails so with all of them fed, none of them need be one.
    """
    library = libraries.get(program.library)
    if ask.question.variant != CONSTANTS or not isinstance(program, Instance) or not hasattr(library, "embedded"):
        return ()
    compiler, _, name = ask.question.frontend.rpartition("-")
    first, *_ = compilers.frontend(compiler, name).VARIANTS
    test = plan.test_id(program.id, plan.exporter_id(program.library))
    names = migrated.read_manifest(migrated.folder(workspace.tests_folder, test)).constants
    made = [(x, y) for x in names for y in cast(Embedding, library).embedded(program, x)]
    with suppress(Spent):
        if len(names) < 2 or ask.fails(ask.by_variant(program, first.name), elsewhere=True):
            return ()
        shown = [(x, ask.by_variant(y, first.name)) for x, y in made]
        told = [(x, now.verdict == PASS, ask.fails(now, elsewhere=True)) for x, now in shown]
        return tuple((x, fails) for x, passes, fails in told if passes or fails)
    return ()


def _begins(message: str) -> str:
    return message.strip().partition("\n")[0]
