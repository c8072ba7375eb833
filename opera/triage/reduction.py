"""What a reduction is: the smallest program found that fails as a member of a finding does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from opera.programs.program import Captured, parse_captured
from opera.programs.verdicts import Outcome
from opera.store import examined
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.contrasts import Contrast

SINCE = "opset "
"""How it begins that a program fails as of a version of its operator, and passes as of the one before."""


class Reduction(msgspec.Struct, frozen=True):
    """The smallest program found that fails as a member of a finding does.

    Attributes:
        finding, environment, frontend, variant: What was reduced, and where it was asked.
        test: The member that it began with.
        captured: The reduced program, in the form of a corpus line; its expected outputs are the library's own, computed anew.
        outcome: What it shows.
        stored: Id of the migrated test that was made of it, in the workspace's folder of tests; empty where there is none.
        deciding: Parameters that must keep a value other than the default for it to fail: `ceil_mode=True`.
        besides: What else must be so, and the program passes without: `input B`, `B is no constant`, `float16 inputs`; of a
            crash also what leads to it.
        circumstances: What else all near programs that fail have (opera.triage.conditions.circumstances): `a 1-d input`.
        near: How many of these fail, and how many pass.
        despite: How many of those that pass have all that is told, and no other reason to pass is known; None: nobody counted.
        beyond: How many near programs lack something of what is told, and run wrongly, or end at a later stage, where it is
            told of what ends.
        bare: Whether all near programs whose first tensor has no elements do not fail that have all that is told; False where
            there is none.
        tried: What programs say of which several things differ, and of which nothing was learned: of those that have all that
            is told, how many fail and pass; and of the others (opera.triage.conditions.further).
        passing: The form of the program most like it that passes; None where none is known.
        explained: Whether all that have what decides fail; False where more decides that is not known.
        usual: Whether an ordinary call of the operator fails (opera.triage.conditions.usual); None: nobody asked.
        behind: Of a crash, what decides and without which the compiler says that it does not support the program; else empty.
        elements: Of all its tensors together.
        nondefault: Parameters that differ from their defaults.
        asked: Programs that were tried.
        seconds: Wall seconds that it took.
        finished: Whether nothing smaller was left to try; False where the budget ended it.
        fed: Of a plain form, whether the file that it is cut of fails only where constants of the file are fed, as opera has a
            compiler take them; who loads the file otherwise sees no failure of it.
        held: Inputs that may state sizes, and what is said in place of the message where the model holds one as a constant.
        constant: Of several inputs that the model holds as constants, whether it fails so if each alone is one, or runs; those
            of which neither is known are left out.
        settings: Settings without each of which it passes, opera's or a default that users may change: `INFERENCE_NUM_THREADS=1
            is set`.
        named: What is told → how readers are told of which operand it is (opera.triage.conditions.operands).
        silent: Of a crash or a refusal, programs beside it that gave wrong outputs, as forms: opera.triage.reducer.hidden asks.
        mistaken: Whether it is wrong as it is imported, and programs of other dtypes that fail alike are not
            (opera.triage.reducer.imported).
        apart: Programs of other dtypes that fail alike and of which the one is imported rightly and the other not, as forms.
        incidental: Operators beside its own that fail so of the same input (opera.triage.reducer.incidental).
        siblings: Other operators that fail so of the same inputs, and whose names are similar or which take as many
            (opera.triage.reducer.siblings).
        exact: What the first wrong integer would be without the bounds of its dtype, where that does not hold it, in words
            (opera.triage.reducer.exact).
        contrasts: What becomes of it when one thing of it is changed alone (opera.triage.contrasts).
        written: The file that an exporter makes of it, as text; empty where that is long, or there is none.
        cut: The float that a wrong integer is cut from, where rounding may have left it on either side (reducer.exact).
        alias: The operator that its own is documented to be another name of, where that passes.
        rounded: How many programs that were asked about are wrong by rounding alone (oracle.screens), and how many by more.
        parts: Operators that are wrong by themselves, where the call is made of several, of the exported file (`MIRROR_PAD
            (keras.ops.pad)`) or called inside (opera.triage.reducer.parts).
        whatever: Whether no simple call of the library passes of that input: it is told first then.
        operations: How many operations its one call becomes, of a library that tells (opera.libraries.Graphed).
        unheeded: Parameters and inputs without which it is right, and whose wrong outputs are those of the program without.
        void: Of what ends while it is run, whether all outputs that are expected have no elements.
    """

    finding: str
    environment: str
    frontend: str
    variant: str
    test: str
    captured: dict[str, Any]
    outcome: Outcome
    stored: str = ""
    deciding: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    circumstances: tuple[str, ...] = ()
    near: tuple[int, int] = (0, 0)
    despite: int | None = None
    beyond: int = 0
    bare: bool = False
    tried: tuple[int, int, int, int] = (0, 0, 0, 0)
    passing: dict[str, Any] | None = None
    explained: bool = True
    usual: bool | None = None
    behind: str = ""
    elements: int = 0
    nondefault: int = 0
    asked: int = 0
    seconds: float = 0.0
    finished: bool = True
    fed: bool = False
    held: tuple[tuple[str, str], ...] = ()
    constant: tuple[tuple[str, bool], ...] = ()
    silent: tuple[dict[str, Any], ...] = ()
    mistaken: bool = False
    apart: tuple[dict[str, Any], ...] = ()
    incidental: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    rounded: tuple[int, int] = (0, 0)
    cut: str = ""
    alias: str = ""
    whatever: bool = False
    void: bool = False
    unheeded: tuple[str, ...] = ()
    operations: int = 0
    settings: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    exact: str = ""
    written: str = ""

    def program(self) -> Captured:
        """Return the reduced program."""
        return parse_captured(self.captured)


def save(workspace: Workspace, found: Reduction) -> None:
    """Store a reduction, in place of an earlier one of the same member."""
    document = msgspec.json.encode(found)
    examined.save(
        workspace, examined.REDUCTION, examined.Examined(found.finding, found.environment, found.test, document)
    )


def stored(workspace: Workspace) -> list[Reduction]:
    """Return all reductions; several of a finding where members were reduced apart."""
    return _decoded(examined.documents(workspace, examined.REDUCTION))


def by_member(workspace: Workspace, tests: Iterable[str] | None = None) -> dict[str, list[Reduction]]:
    """Return test → its reductions, whatever finding it belongs to by now; of all tests where none are given."""
    found: dict[str, list[Reduction]] = defaultdict(list)
    kind = examined.REDUCTION
    asked = examined.documents(workspace, kind) if tests is None else examined.of_tests(workspace, kind, tests)
    for x in _decoded(asked):
        found[x.test].append(x)
    return dict(found)


def is_about(found: Reduction, verdict: Verdict) -> bool:
    """Whether a reduction is of the variant, the frontend and the environment of a verdict."""
    return (found.frontend, found.variant, found.environment) == (
        verdict.frontend,
        verdict.variant,
        verdict.environment,
    )


def of_another_member(found: Reduction, verdict: Verdict, asked: int, seconds: float) -> Reduction:
    """Return the reduction of a member that ends at the very program of one that is reduced: the same is told of it."""
    return msgspec.structs.replace(
        found, finding=verdict.finding, test=verdict.test, asked=asked, seconds=seconds, incidental=()
    )


def save_plain(workspace: Workspace, of: Reduction, found: Reduction | None) -> None:
    """Store the plain form of a reduction (opera.triage.reducer.cut), or that there is none."""
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.PLAIN, examined.Examined(of.finding, of.environment, of.stored, document))


def plain(workspace: Workspace, of: Reduction) -> Reduction | None:
    """Return the plain form of a reduction, None where there is none."""
    for x in examined.of_tests(workspace, examined.PLAIN, [of.stored]):
        found = msgspec.json.decode(x.document, type=Reduction | None)
        if found is not None and x.environment == of.environment and is_form_of(found, of):
            return found
    return None


def is_form_of(plain: Reduction, of: Reduction) -> bool:
    """Whether a plain form is that of a reduction: one program may fail otherwise by another route, whose form it is not."""
    ways = [(_frontend(x), x.outcome.verdict, x.outcome.stage) for x in (plain, of)]
    drawn = "drawn" in of.outcome.details  # what a node may draw is not what the whole may
    return ways[0] == ways[1] and (drawn or plain.outcome.symptom == of.outcome.symptom)


def plains(workspace: Workspace) -> dict[str, Reduction]:
    """Return all plain forms, by the test that was made of the reduction."""
    made = (
        (x.test, msgspec.json.decode(x.document, type=Reduction | None))
        for x in examined.documents(workspace, examined.PLAIN)
    )
    return {test: x for test, x in made if x is not None}


def _frontend(of: Reduction) -> str:
    """Return the compiler of a reduction's frontend: `tvm` of `tvm-torch`."""
    return of.frontend.rpartition("-")[0]


def _decoded(found: Iterable[examined.Examined]) -> list[Reduction]:
    return [msgspec.json.decode(x.document, type=Reduction) for x in found]


def named(found: Iterable[Reduction]) -> tuple[str, ...]:
    """Return the operators that tell reduced programs of one finding apart, the most frequent first; none where there are none.

    `Size`, `Div` and `Sub`, of nodes after a `Shape` that all have: one place may refuse every operator that it has no list of.
    """
    called = [dict.fromkeys(x.program().program.operators) for x in found]
    shared = set[str]().union(*called).intersection(*called)
    return tuple(name for name, _ in Counter(y for x in called for y in x if y not in shared).most_common())
