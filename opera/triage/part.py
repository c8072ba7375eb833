"""Which part of a compiler is wrong, by what was tried: the rule, which asks nobody."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from opera.compilers import (
    APART,
    BODY,
    CONVERSION,
    COUNTED,
    DECLARED,
    EACH,
    FILE,
    GIVEN,
    INFERENCE,
    INTERFACE,
    KERNEL,
    LAWFUL,
    LESS,
    MADE,
    MISTYPED,
    NODE,
    OPTIMISATION,
    OWN,
    SOURCE,
)
from opera.compilers.shared.packing import (
    ALONE,
    BY_ITSELF,
    DROPS,
    INFERRED,
    NEVER,
    SAME_DRAWS,
    Faulty,
    Made,
    Read,
    Unlawful,
    last,
)
from opera.oracle.draws import CONSTANT, SEED
from opera.oracle.messages import gist
from opera.oracle.randomness import RANDOM, refutes
from opera.oracle.screens import AGREEING
from opera.programs.verdicts import (
    ABORT,
    AGREES,
    CRASH,
    INCONSISTENT,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.triage.alike import in_body, of_two_files, same_answer, same_words
from opera.triage.failure import is_invalid
from opera.triage.sentence import DECLARED_OTHERWISE, listed

EXPORTER, LIBRARY, UNKNOWN = "exporter", "library", "unknown"
AS_FOUND, ROUTE, OTHER, WITHOUT = "as found", "route", "other compiler", "without"
SEVERAL = "several"
"""A ROUTE or OTHER, of a program of several elements beside one that hides what these tell."""
KERNELS = "other kernels"
"""An OTHER, by other kernels of its own (OWN): what these take otherwise is settled by nobody."""
QUOTED = 60
"""Characters of a message that are quoted at most, where they say whose it is."""
CONSTANTS, INPUTS = "constants", "inputs"
"""Shapes, axes and the like as constants where they were inputs when it failed; and the other way round."""
LEFT_OPEN = "the importer leaves to chance what the compiler's operator does not promise"
"""What is wrong with what is right once its indices count from the front, or equal numbers keep their order."""
GONE = "it does not fail as it did"
"""How it is told that a program passes now, or is not supported."""


class Tried(msgspec.Struct, frozen=True):
    """One question and what came of it.

    Attributes:
        kind: LESS, APART, FILE, OWN, DECLARED, MADE, LAWFUL, BODY, NODE, EACH, COUNTED or SOURCE (opera.compilers.Way);
            AS_FOUND, ROUTE, CONSTANTS or INPUTS: the same frontend; WITHOUT: as MADE, of the program without something that
            decides; OTHER: another compiler; SEVERAL: a ROUTE or OTHER, of another program (opera.triage.conditions.telling).
        way: In words.
        names: Of CONSTANTS what is a constant then; of WITHOUT what is left out; of SOURCE what decides.
    """

    kind: str
    way: str
    outcome: Outcome
    names: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return self.outcome.verdict == PASS

    @property
    def wrong(self) -> bool:
        return self.outcome.verdict in (INCONSISTENT, SCREENED)


def decide(
    seen: Outcome,
    tried: Iterable[Tried],
    places: Mapping[str, str],
    *,
    exporter: bool,
    native: bool = False,
    drawn: bool = False,
    settled: bool = False,
    typed: bool = False,
    writers: Collection[str] = (),
    files: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[str, str]:
    """Return which part is wrong, and why: the first of these that holds.

    1. It does not fail any more as it did: UNKNOWN.
    2. Two other compilers give the same other answer, and no implementation the expected one, nor says a sentence of the
       documentation that it is: LIBRARY (or its test), unless numbers are drawn, for compilers are alike in drawing none. So
       it is where the compiler has no kernel of the operator, and the library's definition, written out, gives that answer on
       the reference and wherever else it is run, and no other compiler gives it of an exported file; where that is right, it is
       the CONVERSION.
       What is drawn wrongly by an exported file, and of several elements by those who try its exporter: EXPORTER.
    3. What does not vary holds an operator that, built by itself, does not: the KERNEL. It passes with optimisations off, or
       where each operator is compiled by itself: OPTIMISATION, unless its outputs vary, which are right by luck.
    4. An exporter is under test: LIBRARY, where what comes before the export fails in the same words; else EXPORTER (so it is
       of a wrong dtype, for ONNX Runtime returns what the file declares, and refuses another than its operators return).
       KERNEL, of the runtime, where the reference evaluator gives what is expected of the very file, or where ONNX's checker
       takes the file, another implementation computes it rightly, and none gives the runtime's answer. The evaluator asks
       nothing of types, so what does not run must be run by a compiler; and where float32 rounds as much as is wrong, it is
       right by chance. UNKNOWN where the runtime alone says that a file which the checker takes is wrong. Of a frontend that is
       given such a file: EXPORTER, where its own frontend gives the same wrong answer, and the importer's result, run apart.
    5. The library's own inference of types, which a compiler without an importer is built with, says what it says: INFERENCE.
       It fails in words, and what the importer made breaks a rule of the compiler's own: CONVERSION. So it is where the code
       that converts it never reads what decides, or the importer makes the same of the program as of the one without that,
       which passes.
    6. Dtype or shape is what differs, and what the importer made states for that output what is returned: it is the
       CONVERSION; so it is where it states another kind of dtype, and fails or dies later. It states what is
       expected, and not as the most that it can be: the KERNEL.
    7. What the importer made is run apart: wrong, it is the CONVERSION, and so it is where it is right once its indices count
       from the front, as the compiler's operators take them, or equal numbers keep their order; right, what comes after it,
       the KERNEL, and where one operator by itself does not give what numpy gives, that is named (INFERENCE, where its shape
       is inferred wrongly). Run by other code of the compiler's own, only what is right tells: both may have one fault. No
       importer changes the model, and it is wrong with optimisations off, too: the KERNEL.
    8. It is raised while the model is loaded, or names a place in the compiler's sources: that place's part; INFERENCE, if
       what the importer makes of the model without shapes is right, run apart. An operator by itself dies, varies, or fails in
       the same words: the KERNEL.
    9. It passes by two of these, which have the same kernels: other routes into the same compiler, not if by luck, where it
       fails of several elements; with constants for the shapes, axes and the like that the failing model has as inputs:
       CONVERSION. One is not enough: what is made of it may be other operators. It gives the same wrong answer of a file of
       another format, which is right elsewhere: two importers hardly make one mistake, so it is the KERNEL.
    10. Else UNKNOWN.

    Everything is judged by the output that the finding names; what others do besides says nothing of it.

    Args:
        places: `PLACES` of the frontend.
        exporter: `EXPORTER` of the frontend.
        native: `NATIVE` of the frontend.
        drawn: Whether the finding is about numbers that are drawn at random.
        settled: Whether a sentence of the documentation says what is expected.
        typed: Whether what an exporter under test writes states the dtypes of outputs, and who runs it returns these.
        writers: Compilers that try the exporter of what the frontend is given.
        files: The same of each ROUTE that is given a file of another format.
    """
    by: dict[str, list[Tried]] = defaultdict(list)
    tried = list(tried)
    failed = lost(tried, seen, drawn=drawn)
    lucky = {x.way for x in failed}
    for x in tried:
        if x.kind == ROUTE and x.way in lucky:
            continue
        by[x.kind].append(msgspec.structs.replace(x, outcome=at_output(x.outcome, seen, drawn=drawn)))
    now = next((x.outcome for x in by[AS_FOUND]), seen)
    now = seen if drawn and now.verdict == UNSUPPORTED else now
    if not _still(now, seen):
        gone = now.verdict in (PASS, SCREENED, UNSUPPORTED)
        return UNKNOWN, f"{GONE if gone else 'it fails otherwise now'}: {shows(now)}"
    same = [x.way for x in by[OTHER] if x.wrong and same_answer(x.outcome, now)]
    confirmed = any(x.right for x in by[OTHER]) or bool(seen.details.get(AGREEING)) or settled
    if len({x.partition(" ")[0] for x in same}) > 1 and not drawn and not confirmed:
        return LIBRARY, f"{' and '.join(same)} give the same other answer, and none the expected one"
    of_file = exporter and any(x.wrong and same_answer(x.outcome, now) for x in by[FILE])
    if (body := [x for x in by[BODY] if x.right or x.wrong]) and not of_file:
        if all(x.wrong and (same_answer(x.outcome, now) or (drawn and _same_draws(x.outcome, now))) for x in body):
            return LIBRARY, f"the compiler has no kernel of it, and the same answer comes of {body[0].way}"
        if all(x.right for x in body):
            return CONVERSION, f"the compiler has no kernel of it, and it is right by {body[0].way}"
    for found in failed:
        if drawn and found.way.partition(" ")[0] in writers:
            return EXPORTER, f"of several elements the file that it is given is as wrong by {found.way}"
    for found in by[NODE] if drawn and seen.details.get("drawn") == CONSTANT else ():
        if is_faulty(found.outcome) and SAME_DRAWS in found.outcome.message:
            return KERNEL, f"an operator is wrong by itself: {found.outcome.message}"
    refused = exporter and is_invalid(now)  # by the checker, which no such way asks
    luck = now.verdict == UNSTABLE or seen.details.get("drawn") == SEED  # memory once in a while; a way's own seeds
    for found in by[LESS] if not (refused or luck) else ():
        if found.right and found.outcome.message != LEGAL:
            return OPTIMISATION, f"it passes with {found.way}"
    for found in by[EACH] if not luck else ():
        if found.right and now.stage != "load" and found.outcome.message != LEGAL:
            return OPTIMISATION, f"it passes by {found.way}"
    apart = [x for x in by[APART] if x.right or x.wrong]
    wrong = [x.way for x in apart if x.wrong]
    if exporter:
        for x in by[LAWFUL]:
            if now.stage == "load" and is_unlawful(x.outcome) and same_words(x.outcome.message, now.message):
                return LIBRARY, f"{x.way}, fails in the same words"
        laid = _exported(now, [*by[APART], *by[FILE]], typed=typed)
        given = next((x.way for x in by[GIVEN] if x.right), "")
        return (EXPORTER, f"it is right by {given}") if laid[0] == UNKNOWN and given else laid
    for found in by[OTHER] if now.verdict == INCONSISTENT and wrong and not any(x.right for x in apart) else ():
        if found.way.partition(" ")[0] in writers and found.wrong and same_answer(found.outcome, now):
            return EXPORTER, f"{found.way} gives the same answer of the file that it is given"
    for found in by[LAWFUL]:
        if native and is_unlawful(found.outcome) and found.outcome.message in now.message:
            own = "it is the library's code, which the compiler is built with"
            return INFERENCE, f"{found.way} says so by itself: {own}"
        if native and is_unlawful(found.outcome) and in_body(found.outcome, now):
            return LIBRARY, f"{found.way} says of {found.outcome.message}"
        if not native and now.verdict != INCONSISTENT and is_unlawful(found.outcome):
            return CONVERSION, f"what the importer made breaks a rule: {found.outcome.message}"
    for found in by[SOURCE]:
        if unread(found):
            return CONVERSION, converter(found)
    made = {x.outcome.message for x in by[MADE] if is_made(x.outcome)}
    for found in by[WITHOUT]:
        if is_made(found.outcome) and found.outcome.message in made:
            return CONVERSION, f"the importer makes the same of it without {listed(found.names)}: {found.way}"
    for found in by[DECLARED]:
        if now.verdict in (CRASH, ABORT) and now.stage != "load" and _mistyped(found.outcome):
            return CONVERSION, f"before it fails, an output is of another kind of dtype already in {found.way}"
        if part := _stated(found.outcome, now):
            told = "wrong already" if part == CONVERSION else "right still"
            return part, f"its {now.symptom} is {told} in {found.way}"
    if now.stage != "load" and wrong:
        return CONVERSION, f"what the importer made is wrong already: {wrong[0]}"
    part, where, words = next(
        ((x, at, _words(pattern, now)) for pattern, x in places.items() if (at := _place(pattern, now)) is not None),
        ("", "", ""),
    )
    raised = f"; it is raised in {where}" if where and part == KERNEL else ""
    alone = next((x for x in by[EACH] if now.stage != "load" and _dies_alike(x.outcome, now)), None)
    raised += f"; {name} fails so by itself" if alone and (name := _alone(alone.outcome)) else ""
    for found in by[COUNTED]:
        if now.stage != "load" and found.right and now.verdict in (INCONSISTENT, UNSTABLE, ABORT):
            return CONVERSION, f"{LEFT_OPEN}: it is right by {found.way}"
    for found in (*apart, *by[OWN]):
        if now.stage != "load" and found.right:
            return _by_itself(by[NODE]) or (KERNEL, f"what the importer made is right: {found.way}{raised}")
    if native and now.stage == "infer" and (plain := next((x for x in by[LESS] if not x.right), None)) is not None:
        return KERNEL, f"no importer changes the model, and it fails with {plain.way}, too"
    unshaped = next((x for x in apart if x.right and now.stage == "load"), None)
    if unshaped and not _says(CONVERSION, places, now):
        return INFERENCE, f"it is raised where a type is inferred, and {unshaped.way}, is right"
    if part == INFERENCE:
        return part, "it is raised where an operator's type is inferred, of sizes that are not known before it runs"
    if part == MISTYPED:
        return CONVERSION, "the model that was imported declares another dtype of an input than it is given"
    if part == INTERFACE:
        return part, "it is raised where values are handed in or out, and not where they are computed"
    if part and words and not where:
        return part, f"it says what only the {part} says: {words}"
    if part:
        return part, f"it names a place of the {part} in the compiler's sources{f' ({where})' if where else ''}"
    if alone is not None:
        return KERNEL, f"{_alone(alone.outcome) or 'an operator'} fails so by itself: {alone.way}"
    if now.stage == "load":
        return CONVERSION, "it is raised while the model is loaded"
    routes, right = ((x.way, x.outcome) for x in by[ROUTE]), (x.way for x in by[OTHER] if x.right)
    if not drawn and (told := of_two_files(now, routes, right, files)):
        return KERNEL, told
    passes = [*(_by_constants(x) for x in by[CONSTANTS] if x.right), *(x.way for x in by[ROUTE] if x.right)]
    if len(passes) > 1:
        return CONVERSION, f"it passes by way of {listed(passes)}, which other parts convert"
    alike = next((f": {x.way}, is wrong too, and may have the kernels' fault" for x in by[OWN] if x.wrong), "")
    alike = f": it passes by way of {passes[0]}, of which nothing else is known" if passes else alike
    return UNKNOWN, f"what was tried does not tell{alike}"


def _alone(outcome: Outcome) -> str:
    """Return the operator that failed when each was run by itself; nothing where that is not told."""
    return outcome.message.partition(BY_ITSELF)[0] if outcome.verdict == CRASH else last(outcome.message)


def _by_itself(nodes: Iterable[Tried]) -> tuple[str, str] | None:
    """Return the part that is wrong of an operator which is so by itself, None where none is known."""
    told = next((x.outcome.message for x in nodes if is_faulty(x.outcome)), "")
    return (INFERENCE if INFERRED in told else KERNEL, f"an operator is wrong by itself: {told}") if told else None


def _dies_alike(one: Outcome, now: Outcome) -> bool:
    """Whether an operator by itself ends as the whole does: by a signal, in the same words, or with numbers that vary."""
    if now.verdict in (ABORT, UNSTABLE):
        return one.verdict == now.verdict
    return now.verdict == one.verdict == CRASH and same_words(one.message.partition(BY_ITSELF)[2], now.message)


def _same_draws(one: Outcome, other: Outcome) -> bool:
    """Whether two break the law of what is drawn in the same way: as many numbers that are 1, not the number at hand."""
    return all(one.details.get(x) == other.details.get(x) for x in ("drawn", "drawn_element", "drawn_at", "drawn_how"))


def _by_constants(found: Tried) -> str:
    of = f", where {listed(found.names)} {'is' if len(found.names) == 1 else 'are'} constant" if found.names else ""
    return f"{found.way}{of}"


def lost(tried: Iterable[Tried], seen: Outcome, *, drawn: bool = False) -> list[Tried]:
    """Return what of several elements fails by another route or compiler, a row of each: of one it is right by luck.

    Only what it makes of the output that a finding names tells something, as of the finding's own program.
    """
    found = [x for x in tried if x.kind == SEVERAL]
    if not drawn:
        found = [msgspec.structs.replace(x, outcome=at_output(x.outcome, seen)) for x in found]
    failed = [x for x in found if x.outcome.verdict in (INCONSISTENT, UNSTABLE, CRASH, ABORT)]
    return list({x.way: x for x in reversed(failed)}.values())


ROUNDING = 2.0**-19
"""How far from the expected number, relative to it, the rounding of a few steps takes one of float32 (epsilon 2**-23)."""


def _exported(now: Outcome, apart: list[Tried], *, typed: bool) -> tuple[str, str]:
    """Return whose fault it is that what an exporter wrote fails, or that it writes nothing, by who ran the very file.

    The exporter stops by itself, or writes what is no model, or what gives something else wherever it is run.
    """
    if now.symptom == DECLARED_OTHERWISE:
        return EXPORTER, "what it writes declares another dtype than the model has"
    if now.stage == "load":
        return (
            EXPORTER,
            f"it raises while it exports{_raised_in(now)}" if now.verdict == CRASH else f"its own {now.verdict}",
        )
    if is_invalid(now):
        return EXPORTER, "it writes an invalid file: ONNX's checker refuses it"
    if typed and (now.verdict, now.symptom) == (INCONSISTENT, "dtype"):
        return (
            EXPORTER,
            "what it writes states that dtype of the output: ONNX Runtime loads no file that states another than it computes",
        )
    tells = not _rounded(now) if now.verdict == INCONSISTENT else None
    right = [x.way for x in apart if x.right and (x.kind == FILE if tells is None else tells)]
    wrong = [x.way for x in apart if x.wrong]
    same = [x.way for x in apart if x.wrong and same_answer(x.outcome, now)]
    meant = [x.way for x in apart if x.kind == APART and x.right]
    if tells and meant:  # what the nodes of the file mean: compilers may have one fault in common
        return KERNEL, f"what was exported is right: {listed(meant)}"
    if same:
        return EXPORTER, f"what was exported is wrong: {same[0]} gives the same answer"
    if right:
        return KERNEL, f"what was exported is right: {listed(right)}"
    if wrong:
        return EXPORTER, f"what was exported is wrong: {wrong[0]}"
    fails = [x.way for x in apart if x.outcome.verdict in (CRASH, ABORT)]
    if fails and now.verdict != INCONSISTENT:
        does = "load" if now.stage == "compile" else "run"
        return EXPORTER, f"it writes an invalid file: it does not {does}, and neither does {fails[0]}"
    return UNKNOWN, "nobody else runs what was exported"


def _raised_in(outcome: Outcome) -> str:
    """Return in whose module an exception arose, as it is told: an exporter calls the library, whose code that may be."""
    alone = outcome.seen is not None and len(outcome.seen.raised) < 2  # else these are who wrapped it
    frames = outcome.seen.frames if outcome.seen is not None and alone else ()
    module, _, rest = next((x for x in reversed(frames) if not x.startswith("opera.")), "").partition(":")
    return f", in {module}:{rest.partition(':')[0]}" if module else ""


def _rounded(outcome: Outcome) -> bool:
    """Whether a wrong number is no farther from the expected one than float32 rounds: others may be right by chance."""
    expected, actual = (outcome.details.get(x) for x in ("expected", "actual"))
    if outcome.symptom != "value" or not isinstance(expected, float) or not isinstance(actual, float):
        return False
    return abs(actual - expected) <= ROUNDING * abs(expected) < math.inf


def _still(now: Outcome, seen: Outcome) -> bool:
    """Whether it fails as it did; which of several wrong outputs is told may have changed, and a probe says no more of what
    is refused than that it is."""
    kinds = (seen.verdict, UNSUPPORTED) if seen.verdict == REFUSED else (seen.verdict,)
    outputs = (INCONSISTENT, UNSTABLE)  # memory that nobody wrote may happen to stay
    if now.verdict in outputs and seen.verdict in outputs:
        return True
    if now.verdict == seen.verdict == ABORT:  # freed memory may end it now or later, by one signal or another
        return True
    alike = now.verdict in kinds and now.stage == seen.stage
    return alike and (now.symptom == seen.symptom or now.verdict in (INCONSISTENT, UNSUPPORTED))


REPORTED = re.compile(r"\ACheck 'false' failed at \S+\n(?=(?s:.*)(?:failed at|Exception from) \S)")
"""Where OpenVINO tells of an exception that it caught, before the place of that."""
CAUGHT = re.compile(r"Check 'false' failed at (\S+)")
"""The same, wherever it is told: no place to look at."""


def _told(outcome: Outcome) -> str:
    """Return what a failure says of where it was raised: the message, and the compiler's own frames."""
    if outcome.verdict == INCONSISTENT:
        return ""
    if outcome.verdict == ABORT:  # where a process happens to die of memory that was spoilt before tells nothing
        said = outcome.message.partition("Fatal Python error")[0].splitlines()
        return "\n".join(line for line in said if "Warning:" not in line)
    frames = outcome.seen.frames if outcome.seen is not None else ()
    own = [frame for frame in frames if not frame.startswith("opera.")]
    return "\n".join([REPORTED.sub("", outcome.message), *own])


def _place(pattern: str, outcome: Outcome) -> str | None:
    """Return the innermost file that a pattern has among those that a failure names, one of Python's before others, which
    many share: `tvm/topi/scan.py:107`. Nothing where no word of it is a file (a module that calls bindings is none), None
    where it names no place that the pattern has. Where an exception was caught is none.
    """
    text = _told(outcome)
    if not re.search(pattern, text):
        return None
    words = (x.rstrip(".:") for line in text.splitlines() for x in re.split(r"[\s\"'()\[\],]+", line))
    caught = {x.rstrip(".:") for x in CAUGHT.findall(text)}
    found = [x for x in words if re.search(pattern, x) and re.search(r"\w/\w", x) and x not in caught]
    last = next((x for x in reversed(found) if re.search(r"\.py\b", x)), found[-1] if found else "")
    return re.sub(r"^/\w+/(?=src/)|:[^:/]*(?=:\d+$)", "", last)


def _words(pattern: str, outcome: Outcome) -> str:
    """Return the words of a failure that a pattern has, where they are no name of a file, a module or a function."""
    found = re.search(pattern, _told(outcome))
    return found[0] if found and " " in found[0] and len(found[0]) <= QUOTED else ""


def _says(part: str, places: Mapping[str, str], outcome: Outcome) -> bool:
    """Whether what a failure says names a place of a part, whoever called that."""
    said = msgspec.structs.replace(outcome, seen=None)
    return any(_place(pattern, said) is not None for pattern, x in places.items() if x == part)


COMPARED = ("shape", "dtype", "nan-mask", "value")
"""In which order an output is compared: what differs in one of these is right in those before it (opera.oracle.comparison)."""


def at_output(outcome: Outcome, seen: Outcome, *, drawn: bool = False) -> Outcome:
    """Return what wrong outputs show of what a finding names: a pass, where that output, or its shape or dtype, is right.

    Of numbers that are drawn only the screens tell something: UNSUPPORTED where these were not asked.
    """
    if drawn:
        return _at_drawn(outcome, seen)
    name, found = seen.details.get("output"), _of_output(outcome, seen)
    later = COMPARED[COMPARED.index(seen.symptom) + 1 :] if seen.symptom in COMPARED[:2] else ()
    told = (
        name and found.details.get("output") == name
    ) or "drawn" in found.details  # of draws all forms come before numbers
    if found.verdict in (INCONSISTENT, SCREENED) and found.symptom in later and told:
        return Outcome(PASS, message=f"the {seen.symptom} of its output {name!r} is right")
    return found


def _of_output(outcome: Outcome, seen: Outcome) -> Outcome:
    name, shown = seen.details.get("output"), outcome.details
    if seen.verdict != INCONSISTENT or outcome.verdict not in (INCONSISTENT, SCREENED) or not name:
        return outcome
    if outcome.symptom == "count" or shown.get("output") in (name, None):
        return outcome
    listed = list(shown.get("others", ()))
    told = next((x.removeprefix(f"output {name!r}: ") for x in listed if x.startswith(f"output {name!r}: ")), "")
    if told:
        symptom, _, message = told.partition(": ")
        return Outcome(outcome.verdict, outcome.stage, symptom, f"output {name!r}: {message}", details={"output": name})
    known = shown.get("wrong")
    if name in known if isinstance(known, dict) else any(re.fullmatch(r"\d+ more", x) for x in listed):
        return outcome
    return Outcome(PASS, message=f"its output {name!r} is right")


DREW = "of numbers that are drawn it tells nothing"
"""What is told of an answer to a random program that the screens said nothing of."""
LEGAL = "each of its numbers may be drawn"
"""What is told of numbers that are no longer out of range, but wrong in another way: memory that nobody wrote may hold such."""
ONE = ("range", "kept")
"""What is wrong with numbers drawn at random that each of them shows by itself (opera.oracle.draws.Broken)."""


def _at_drawn(outcome: Outcome, seen: Outcome) -> Outcome:
    legal = outcome.verdict == SCREENED and outcome.details.get("screen") == RANDOM
    if legal or (outcome.verdict == PASS and AGREES in outcome.details):
        right = Outcome(PASS, message="its numbers are drawn as they may be")
        return right if refutes(outcome, seen) else Outcome(UNSUPPORTED, outcome.stage, message=DREW)
    if outcome.verdict == INCONSISTENT and "drawn" in outcome.details:
        kinds = tuple(x.details.get("drawn") for x in (seen, outcome))
        if kinds[0] in ONE and kinds[1] not in ONE:
            return Outcome(PASS, message=LEGAL)
        return outcome
    tells = outcome.verdict not in (INCONSISTENT, SCREENED, PASS)
    return outcome if tells else Outcome(UNSUPPORTED, outcome.stage, message=DREW)


DTYPES = re.compile(r"(\w+) is expected, (\w+) was returned")
"""How a comparison says which dtype an output has (opera.oracle.comparison)."""
RETURNED = re.compile(r" (?:is|are) expected, (.*?) (?:was|were) returned")
"""How a comparison says what an output's form is (opera.oracle.comparison)."""


def _stated(stated: Outcome, now: Outcome) -> str:
    """Return which part is wrong by the form that the importer's result states for an output, empty where that is not told.

    What is stated to be as it is returned is wrong before any kernel runs. What is stated to be as is expected is not kept by
    the kernel; but a shape in which the returned one fits may be no more than the largest possible.
    """
    if now.symptom not in ("shape", "dtype"):
        return CONVERSION if now.symptom == stated.symptom == "count" and stated.message == now.message else ""
    returned = RETURNED.search(now.message)
    if stated.verdict in (INCONSISTENT, SCREENED) and stated.symptom in ("shape", "dtype"):
        said = RETURNED.search(stated.message)
        alike = stated.symptom == now.symptom and said is not None and returned is not None and said[1] == returned[1]
        return CONVERSION if alike else ""
    if stated.verdict not in (PASS, INCONSISTENT, SCREENED) or returned is None:
        return ""
    return "" if now.symptom == "shape" and _fits(now.message) else KERNEL


def _mistyped(stated: Outcome) -> bool:
    """Whether the importer's result states another kind of dtype for an output than is expected, integers in place of floats:
    what comes after it computes something else. One that is narrower need not matter."""
    told = (
        DTYPES.search(stated.message)
        if stated.verdict in (INCONSISTENT, SCREENED) and stated.symptom == "dtype"
        else None
    )
    kinds = [re.sub(r"\d+\w*$|^b(?=float)|^u(?=int)", "", x) for x in told.groups()] if told else []
    return len(set(kinds)) > 1


def _fits(message: str) -> bool:
    """Whether the shape that was returned is one of the same rank that is nowhere larger than what was expected."""
    shapes = [[int(x) for x in re.findall(r"\d+", text)] for text in re.findall(r"\[([\d, ]*)\]", message)[:2]]
    if len(shapes) < 2 or len(shapes[0]) != len(shapes[1]):
        return False
    return all(got <= most for most, got in zip(*shapes, strict=True))


def is_made(outcome: Outcome) -> bool:
    """Whether it is what a way of kind MADE raises."""
    return outcome.symptom == Made.__name__


def is_unlawful(outcome: Outcome) -> bool:
    """Whether it is what a way of kind LAWFUL raises."""
    return outcome.symptom == Unlawful.__name__


def unread(tried: Tried) -> list[str]:
    """Return what decides of what, as a way of kind SOURCE says, the one converter of a model never reads, or drops."""
    [_, *told], more = _told_of(tried)
    return [name for name in tried.names if not more and is_read(tried.outcome) and any(name in x for x in told)]


def _told_of(tried: Tried) -> tuple[list[list[str]], list[str]]:
    """Return a converter, what it never reads, and what is dropped of it; and the lines on other converters."""
    [line, *more] = tried.outcome.message.splitlines() or [""]
    rest, _, dropped = line.removeprefix(ALONE).partition(DROPS)
    who, _, never = rest.partition(NEVER)
    return [[who], never.split(", "), dropped.split(", ")], more


def converter(tried: Tried) -> str:
    """Return which code converts a model, and what decides and it never reads: `Resize._impl_v18 (onnx_frontend.py:3825) never
    reads axes`, or makes nothing of; empty where that is not one converter.
    """
    ([who], never, _), more = _told_of(tried)
    place, _, name = who.partition(" ")
    names = unread(tried)
    if not name or more or not is_read(tried.outcome):
        return ""
    does = NEVER if set(names) <= set(never) else DROPS
    return f"{name} ({place})" + (f"{does}{listed(names)}" if names else "")


def is_faulty(outcome: Outcome) -> bool:
    """Whether it is what a way of kind NODE raises."""
    return outcome.symptom == Faulty.__name__


def is_read(outcome: Outcome) -> bool:
    """Whether it is what a way of kind SOURCE raises."""
    return outcome.symptom == Read.__name__


def shows(outcome: Outcome) -> str:
    """Say what an outcome is, in few words."""
    if outcome.verdict == PASS:
        return "passes"
    told = " ".join(f"{outcome.stage} {outcome.symptom}: {gist(outcome.message)}".split())
    return f"{outcome.verdict}: {told}"[:160]
