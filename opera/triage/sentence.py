"""What is wrong, in one sentence: for lists of findings, their pages, reports, and the first line of a script."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from opera.compilers.shared.tflite_models import NONE as NO_OPERATOR
from opera.oracle.draws import CONSTANT
from opera.oracle.manner import ALL, SHOWN, kind
from opera.oracle.messages import LEFT, OF_TENSOR, gist, of_operator, one_line, short
from opera.poison import FIRST, SECOND
from opera.programs import verdicts
from opera.programs.program import JOINED
from opera.programs.verdicts import Outcome
from opera.triage.failure import CHECKED, TABLE, is_invalid, rounded

ZERO, ONE = SHOWN[:2]
"""What is returned of what is wrong is 0; all that is returned is one number."""
VERBS = {"load": ("load", "loading"), "compile": ("compile", "compiling"), "infer": ("run", "running")}
"""Stage → what a compiler did not manage, and what it was about."""
EXPORTING = {
    "load": "cannot export {}",
    "compile": "makes of {} a model that does not load",
    "infer": "makes of {} a model that does not run",
}
"""Stage → what an exporter did that is under test: what follows the export only shows what it is worth."""
CONSTANT_RESULT, UNUSED = "its result hangs on no input", "its first input is not used"
"""What is told beside the route of a simple call of which that is declared: what loses it loses whatever is constant, or what
drops its input drops whatever is not used, which was seen of another model."""
WHOSE = {CONSTANT_RESULT: "a model whose result hangs on no input", UNUSED: "a model whose first input is not used"}
"""How the same is told before the operator, where nothing else decides."""
NOTHING_LEFT = "where no operator is left of it"
DECLARED_OTHERWISE = "DeclaredOtherwise"
"""What opera raises of a file, or a loaded model, that declares another dtype for an input than the library's model has."""
TELLS_NOTHING = {
    DECLARED_OTHERWISE,
    "RuntimeError",
    "InternalError",
    "Exception",
    "Error",
    "Fail",
    "RuntimeException",
    "TVMError",
    "ValueError",
}
"""Types of exceptions that say no more than that something went wrong."""
REFUSAL = re.compile(
    r"\bunsupported\b|\bnot (?:yet )?supported\b|\bsupported only\b|\bonly [^\n.]{1,60} supported\b"
    r"|\bdo(?:es)?(?: not|n't) (?:support|allow|handle)\b|\bcannot handle\b|\bonly (?:supports?|accepts?|handles?)\b"
    r"|\bsupported (?:\w+ ){1,8}(?:is|are)\b"
    r"|\bnot yet implemented\b|\bnot implemented yet\b|\btypes? must be (?:one of:? )?\w+, ",
    re.IGNORECASE,
)
"""Words of a refusal, in whatever crash."""
TAKEN = re.compile(
    r"\b(?:must be|one of:?|supports? only|only supports?)\s+((?:(?:and|or|,|:)\s*|\b(?:b?f|[iu])\d+\b\s*)+)",
    re.IGNORECASE,
)
"""Types that a refusal says are taken: `must be f32, f16, or bf16`."""
SHORT_TYPES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}
"""How a compiler shortens the names of types, without their bits."""
INVALID = re.compile(
    r"\b(?:must|should|expect(?:ed|s)|requires?|invalid|mismatch\w*|inconsistent|do(?:es)?(?:n't| not) match|not matched)\b",
    re.IGNORECASE,
)
"""Words of a crash that says what an input ought to be, and is not."""
TYPED = re.compile(r"\b(?:element|data)[ _-]?types?\b|\bdtypes?\b", re.IGNORECASE)
"""Words of one that is about types: which of them an operator takes, its schema says, and the library holds inputs to it."""
GUARD = re.compile(r"(?<![A-Za-z])(?:requires|must_be|only_supports?|supports_only|unsupported|not_supported)_\w+")
"""What a node is called that is there to refuse something: `aten::svd/requires_3x3`."""
MEANT = "NotImplementedError"
"""An exception that nobody raises but on purpose."""
READS_AS_REFUSAL = "reads-as-refusal"
"""Tag of a crash whose message has such words: it asks for a feature, if the documentation does not promise it."""
NAMED = 4
"""Operators of a program that are all named."""
LENGTH_ONE, EQUAL, LIMIT, EQUAL_TO = (
    "length 1 of axis",
    "equal elements in an input",
    "just at a limit",
    "a number equal to ",
)
"""How numbers and sizes stand to each other where a failure needs that (opera.triage.conditions.deciding.relations)."""
COMPARED = re.compile(rf"{EQUAL_TO}((\w+)_(?:threshold|limit))")
"""How it is told that a number is equal to a limit that is named for what it limits: `iou_threshold`."""
NO_CONSTANT, GRAPH_INPUT, NO_ATTRIBUTE = "is no constant", "is a graph input", "is an input"
"""How an input comes to the model where a failure needs that: it passes where the model holds it, makes it itself, or states it
as the attribute that an older version of the operator has for it."""
UNNAMED = "an empty name for "
"""How it begins that a node leaves out an input by an empty name, where it passes by none: both mean the same."""
IS_SET, LEFT_AT, BELOW = " is set", " is left at its default", " is below "
"""How a setting ends that opera makes, where it passes without: users need not make it; how one that users may make so that it
passes, and how it is told from which version on it does."""
RETURNED = "its result is an output of the model"
"""Told where it passes once another call takes what it returns, and the model returns what that makes of it."""
EMPTY, RANKED = "an empty input", re.compile(r"an? ((?:\d-d )?input(?: of rank .*)?)$")
"""How it is told that a tensor has no elements; how many axes it has."""
GIVEN = re.compile(r"\binputs?$|^an? .*input of rank |^dtype=")
"""How it is told what an operator is given, of whatever numbers: dtypes, no elements, a rank."""
TRAINING = "training mode"
"""What decides where a layer is called as in training."""
BRANCH = "what stands in the branch that is not taken"
TITLED, BESIDE = 3, 2
"""Conditions that a title has room for, beside how inputs come to the model; and operators that do not matter."""
ROUTE = 80
"""Characters of a route that a title has room for; of more it has the first part."""
TELLS = 3
"""Words of a line that says something by itself."""
LONG = re.compile(r"\([^()]{24,}\)|\[[^\[\]]{24,}\]")
"""What stands in brackets, and is too long for a title."""
NUMBERED = re.compile(r"\s*Node number \d+ \((\w+)\) (failed to \w+)\.?")
"""Which node of a file an interpreter of TensorFlow Lite gives up at."""
DETAILS = re.compile(r"\nDetails:\n(?:[^\n]*:\n)*(?=[^\n]*\w)")
"""Before what is wrong with an operator that OpenVINO names by its type and name."""
RAISED = re.compile(r"^(?:[\w.+-]+/)+[\w.+-]+\.\w+:\d+:? (?=\S)")
"""File and line in which native code raised, before its words."""
SHORT = 90
"""Characters of a message that a title quotes."""
FEW = 12
"""So many more are not worth that it is cut."""
LENGTH = 160
"""Characters of a message that a sentence quotes."""
DENORMAL, FAR, BITS = 2.0**-126, 1e20, 2**16
"""The smallest number of float32's full precision; how many times too large no rounding or wrong term makes a number; and which
integers a compiler may have taken for floats: sizes, above all."""
FILLED = (FIRST, SECOND)
"""What each byte of fresh memory holds while a worker infers."""
DIGITS, WHOLE = 6, 1e16
"""Digits of a number, where they are enough; whole numbers up to this one are told in full."""


def sentence(
    compiler: str,
    operator: str,
    outcome: Outcome,
    deciding: Iterable[str] = (),
    *,
    exporter: bool = False,
    route: str = "",
    alike: Sequence[str] = (),
    incidental: bool = False,
) -> str:
    """Return what is wrong, on one line, without a full stop.

    Args:
        compiler: Its name in prose (`ONNX Runtime`).
        operator: What is computed: an operator, or several.
        outcome: What the member showed that is told of.
        deciding: Parameters without which it does not fail: `ceil_mode=True`.
        exporter: Whether an exporter is under test (`EXPORTER` of the frontend).
        route: How the model came to the compiler, where that matters (opera.triage.route).
        alike: Operators in place of one of these with which it fails as well.
        incidental: Whether these do so whatever they compute: what they are given is told first.
    """
    what = _what(operator, outcome, deciding, route, alike, incidental=incidental)
    verb, doing = VERBS.get(outcome.stage, ("run", "running"))
    match outcome.verdict:
        case verdicts.INCONSISTENT if drawn(outcome):
            told = _drawn_of(outcome, what)
            if outcome.details["drawn"] == CONSTANT:
                return f"{compiler} does not draw {what} at random: {told}"
            return f"{compiler} draws {what} wrongly: {told}"
        case verdicts.INCONSISTENT:
            return _wrong(compiler, what, outcome)
        case verdicts.CRASH if exporter and is_invalid(outcome):
            return f"{compiler} makes of {what} a model that ONNX's checker refuses: {said(outcome)}"
        case verdicts.CRASH if outcome.symptom == DECLARED_OTHERWISE:
            made = f"writes a model of {what} that declares" if exporter else f"loads {what} with"
            return f"{compiler} {made} another dtype: {outcome.message}"
        case verdicts.CRASH if exporter and outcome.stage in EXPORTING:
            return f"{compiler} {EXPORTING[outcome.stage].format(what)}: {said(outcome)}"
        case verdicts.CRASH:
            return f"{compiler} cannot {verb} {what}: {said(outcome)}"
        case verdicts.REFUSED:
            return f"{compiler} refuses {what}, against what it declares: {said(outcome)}"
        case verdicts.ABORT:
            return f"{compiler} kills the process ({outcome.symptom}) {doing} {what}"
        case verdicts.TIMEOUT:
            return f"{compiler} does not end {doing} {what}"
        case verdicts.OUT_OF_MEMORY if outcome.symptom == verdicts.OUT_OF_MEMORY:
            return f"{compiler} needs more memory than it is given {doing} {what}"
        case verdicts.OUT_OF_MEMORY:  # an exception: it may have asked for a negative number of bytes
            return f"{compiler} asks for more memory than there is {doing} {what}: {said(outcome)}"
        case verdicts.UNSTABLE if untouched(outcome):
            of = f"{outcome.details['output']} of {what}"
            return f"{compiler} returns {of} out of memory that nobody wrote: it varies with that from run to run"
        case verdicts.UNSTABLE:
            return f"{compiler} returns other outputs of {what} from run to run"
    return f"{outcome.verdict} of {compiler} on {what}: {said(outcome)}"


def title(
    operator: str,
    outcome: Outcome,
    deciding: Iterable[str] = (),
    *,
    exporter: bool = False,
    route: str = "",
    alike: Sequence[str] = (),
    incidental: bool = False,
) -> str:
    """Return the title of an issue: operator, parameters that decide, symptom. Its readers know which compiler it is about."""
    what = _what(operator, outcome, deciding, route, alike, most=TITLED, incidental=incidental)
    verb, doing = VERBS.get(outcome.stage, ("run", "running"))
    if outcome.verdict == verdicts.CRASH and outcome.symptom == DECLARED_OTHERWISE:
        return f"{what}: {outcome.message}"
    if exporter and outcome.verdict == verdicts.CRASH:
        made = {
            "load": "is not exported",
            "compile": "exported model does not load",
            "infer": "exported model does not run",
        }
        how = "exported model is invalid" if is_invalid(outcome) else made.get(outcome.stage, "fails")
        return f"{what}: {how}: {_begins(outcome)}"
    return f"{what}: {_symptom(outcome, verb, doing, what)}"


def _what(
    operator: str,
    outcome: Outcome,
    deciding: Iterable[str],
    route: str,
    alike: Sequence[str],
    most: int | None = None,
    *,
    incidental: bool = False,
) -> str:
    """Say what is computed: the operator, what decides, and in brackets the route, what of it is meant, and what else is so.

    Where the operator is incidental, and all that decides is what it is given, that comes first.
    """
    told = list(deciding)
    whose = next((x for x in WHOSE if x in route), "")
    constant = bool(whose) and not told  # nor does it matter what is called then
    if constant:
        route = "; ".join(x for x in route.split("; ") if x != whose)
    if most is not None and len(route) > ROUTE:
        route = route.partition(";")[0]
    if incidental and told and all(map(GIVEN.search, told)):
        names = list(dict.fromkeys((brief(operator), *alike)))
        room = NAMED if most is None else BESIDE
        these = f"{', '.join(names[:room])}{', …' if len(names) > room else ''}"
        return f"{listed(together(told)[:most])} of several operators ({'; '.join(filter(None, (these, route)))})"
    named = operator.partition("(")[0].strip()  # what it is given may stand there
    own = {bare(x) for x in named.split(JOINED)}
    others = list({bare(x): x for x in reversed(alike) if bare(x) not in own}.values())[::-1]
    typed = (
        outcome.verdict == verdicts.INCONSISTENT and outcome.symptom == "dtype" and lowered(outcome.conversion_function)
    )
    inner = "" if typed else _inner(named, outcome.conversion_function)  # of what dtype it is a cast behind it decides
    inner = "" if inner == NOTHING_LEFT and whose else inner
    inner = "" if inner in route.split("; ") else inner
    place = ", ".join(filter(None, (inner, route)))
    others = [x for x in others if x not in place.split()]
    also = (
        f"also seen in programs of {', '.join(others[:NAMED])}{', …' if len(others) > NAMED else ''}" if others else ""
    )
    notes = "; ".join(filter(None, (place, also)))
    if constant:
        return f"{WHOSE[whose]} ({'; '.join(filter(None, (brief(operator), notes)))})"
    return f"{brief(operator)}{_decided(told, most)}{f' ({notes})' if notes else ''}"


def bare(operator: str) -> str:
    """Return one name for an operator in whatever form it is called: `torch.Tensor.add_` is `add`, `torch.nn.PReLU` `prelu`."""
    return operator.rpartition(".")[2].replace("_", "").lower()


def _symptom(outcome: Outcome, verb: str, doing: str, what: str) -> str:
    """Say what is wrong in the fewest words that tell it from other failures."""
    seen = outcome.details
    expected, actual = apart(seen.get("expected", "?"), seen.get("actual", "?"))
    output = str(seen.get("output", "")) or "output"
    match outcome.verdict:
        case verdicts.INCONSISTENT if drawn(outcome):
            return _drawn_of(outcome, what).partition(";")[0].replace(" of a compiled model", "")
        case verdicts.INCONSISTENT if outcome.symptom in ("value", "nan-mask") and "index" in seen:
            at = "" if seen["index"] == "[]" or _zeros(outcome) else seen["index"]
            return f"wrong value, {output}{at} {_got(outcome, actual)} instead of {expected}"
        case verdicts.INCONSISTENT if outcome.symptom in ("shape", "dtype") and "expected" in seen:
            seen_as = set(_manner(outcome))  # else it is what is wrong alone that is 0
            zeros = ", and all zeros" if ZERO in seen_as and seen_as & {ALL, ONE} else ""
            numbers = (
                "numbers and dtype" if outcome.symptom == "dtype" and seen.get("values_differ") else outcome.symptom
            )
            return f"wrong {numbers} of {output}, {actual} instead of {expected}{zeros}"
        case verdicts.INCONSISTENT if outcome.symptom == "count":
            return f"returns {actual} outputs instead of {expected}"
        case verdicts.INCONSISTENT:
            return "wrong output"
        case verdicts.ABORT:
            return f"{outcome.symptom} while {doing}"
        case verdicts.TIMEOUT:
            return f"{doing} does not end"
        case verdicts.OUT_OF_MEMORY if outcome.symptom == verdicts.OUT_OF_MEMORY:
            return f"{doing} takes all memory"
        case verdicts.OUT_OF_MEMORY:
            return f"{doing} asks for more memory than there is: {_begins(outcome)}"
        case verdicts.UNSTABLE if untouched(outcome):
            return f"{output} is made of memory that nobody wrote"
        case verdicts.UNSTABLE:
            return "output varies from run to run"
    how = "is refused" if outcome.verdict == verdicts.REFUSED else f"fails to {verb}"
    return f"{how}: {_begins(outcome)}"


def reads_as_refusal(outcome: Outcome, dtypes: Collection[str] = ()) -> bool:
    """Whether a crash says in words of its own, anywhere in its cause, that something is not supported, or by the type of its
    exception, or names a guard.

    What ONNX's checker says is none: a type that it calls unsupported is one that the specification forbids there. Nor is that
    only types are taken among which are all that the program is given (`dtypes`): the compiler made another of them.
    """
    listed_ = TAKEN.search(said(outcome, 1500))
    if listed_ and dtypes:
        names = re.findall(r"\b(bf|f|i|u)(\d+)\b", listed_[1])
        if {SHORT_TYPES[kind] + bits for kind, bits in names}.issuperset(dtypes):
            return False
    judged = outcome.symptom in CHECKED
    told = REFUSAL.search(said(outcome, 1500)) or GUARD.search(outcome.message)
    meant = told is not None or outcome.symptom.rpartition(".")[2] == MEANT
    return outcome.verdict == verdicts.CRASH and not judged and meant


def reads_as_invalid(outcome: Outcome) -> bool:
    """Whether a crash says that what it was given is not valid, for another reason than its types."""
    text = said(outcome, 600)
    return outcome.verdict == verdicts.CRASH and INVALID.search(text) is not None and not TYPED.search(text)


def drawn(outcome: Outcome) -> str:
    """Return what is wrong with numbers that were drawn at random; nothing of what is not random.

    The numbers themselves are of one run, and tell nothing.
    """
    return str(outcome.details.get("why", "")) if "drawn" in outcome.details else ""


def _drawn_of(outcome: Outcome, what: str) -> str:
    """Return what is wrong with numbers that were drawn, without a parameter at its beginning that is told already."""
    first, comma, rest = drawn(outcome).partition(", ")
    return rest if comma and first in what else drawn(outcome)


def _begins(outcome: Outcome) -> str:
    """Return the first sentence of what a crash says, shortened at a word: of several lines the first that says something.

    Which node of a file it is about, by its number, is nothing for a title, nor in which line of which file it is raised, nor
    which operator it is, where details follow.
    """
    outcome = _of(outcome, DETAILS.split(_unnumbered(_words(outcome)))[-1])
    text = said(outcome, LENGTH)
    if len(text) <= SHORT + FEW:
        return text.rstrip(".")
    lines = gist(outcome.message).splitlines()
    told = (
        len(lines) > 1 and len(re.findall(r"[A-Za-z]{2,}", lines[0])) >= TELLS and not lines[0].rstrip().endswith(":")
    )
    whole = said(outcome, len(outcome.message)) if not told else said(_of(outcome, lines[0]), len(lines[0]))
    first = LONG.sub("(…)", re.split(r"(?<=\w\w[.;])\s", whole)[0].rstrip(".;"))
    if len(first) <= SHORT:
        return first
    cut = first[:SHORT].rsplit(" ", 1)[0]
    if cut.count("(") > cut.count(")") and cut.rindex("(") > SHORT / 3:  # what stands in brackets would not be closed
        cut = cut[: cut.rindex("(")]
    for quote in "'\"":  # nor a quotation
        if cut.count(quote) % 2 and f" {quote}" in cut:
            cut = cut[: cut.rindex(f" {quote}")]
    return re.sub(r"(?:\s+(?:for|of|in|the|a|to|with|and|or|at|from|by|is|are))+$", "", cut.rstrip(" ,:;")) + "…"


def _words(outcome: Outcome) -> str:
    """Return what a crash says of its cause: of several operators that fail, of the one that it was laid to."""
    return OF_TENSOR.sub("", gist(of_operator(outcome.message, outcome.converter)))


def _unnumbered(text: str) -> str:
    rest = NUMBERED.sub("", RAISED.sub("", text)).strip()
    return rest if re.search(r"\w", rest) else NUMBERED.sub(r"\1 \2", text).strip()


def cut(text: str, most: int) -> str:
    """Return a text of so many characters at most, cut at a word."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,:;(") + "…"


def _of(outcome: Outcome, message: str) -> Outcome:
    return msgspec.structs.replace(outcome, message=message)


def said(outcome: Outcome, most: int = LENGTH) -> str:
    """Return what a crash says of its cause, on one line, with its type where that says more than that it failed."""
    text = short(one_line("\n".join(dict.fromkeys(_words(outcome).splitlines())))).strip(" :")
    text = text if len(text) <= most else text[: most - 3].rsplit(" ", 1)[0].rstrip(" ,:;(") + " ..."
    name = outcome.symptom.rpartition(".")[2]
    if name == "KeyError" and TABLE.search(outcome.location) and re.fullmatch(r"'[^']*'", text):
        return f"KeyError: {text}, the name of a tensor, is not found"
    return f"{name}: {text}".strip(" :") if name not in TELLS_NOTHING or not text else text


def _wrong(compiler: str, what: str, outcome: Outcome) -> str:
    """Say which output is wrong and how, by the numbers that the comparison left."""
    seen = outcome.details
    output = str(seen.get("output", ""))
    expected, actual = apart(seen.get("expected", "?"), seen.get("actual", "?"))
    of = f" ({output})" if output else ""
    match outcome.symptom:
        case "count" if "output" not in seen:
            return f"{compiler} returns {actual} outputs of {what}, not {expected}"
        case "shape":
            return f"{compiler} returns a wrong shape from {what}: {actual} for {expected}{of}"
        case "dtype" if seen.get("values_differ"):
            return f"{compiler} returns wrong numbers, and of another dtype, from {what}: {actual} for {expected}{of}"
        case "dtype":
            return f"{compiler} returns a wrong dtype from {what}: {actual} for {expected}{of}"
        case "value" | "nan-mask" if "index" in seen:
            place = "" if seen["index"] == "[]" or _zeros(outcome) else seen["index"]
            at = f"{output or 'the output'}{place}"
            many = f"{seen.get('differing')} of {seen.get('elements')} elements"
            return f"{compiler} computes {what} wrongly: {at} {_got(outcome, actual)}, not {expected} ({many})"
    return f"{compiler} returns wrong outputs of {what}: {one_line(outcome.message)[:LENGTH]}"


def _got(outcome: Outcome, actual: str) -> str:
    """Say what a wrong number is: nothing of what differs from run to run."""
    if _zeros(outcome):
        return "is all zeros"
    seen = outcome.details
    if not unwritten(seen.get("expected"), seen.get("actual")):
        narrow = rounded(outcome)
        return f"is the {narrow} {actual}" if narrow else f"is {actual}"
    bits = abs(seen["actual"]) / DENORMAL * 2**23
    whole = 0 < bits < BITS and bits.is_integer()
    return f"holds the bits of the integer {bits:.0f}" if whole else "looks like unwritten memory"


def _manner(outcome: Outcome) -> Collection[str]:
    """Return the words on how the output is wrong that the failure is named for (opera.oracle.manner)."""
    known: dict[str, list[str]] = outcome.details.get("manner") or {}
    return known.get(outcome.details.get("output", ""), ())


def _zeros(outcome: Outcome) -> bool:
    """Whether all of several numbers are wrong, and 0."""
    return {ZERO, ALL} <= set(_manner(outcome)) and outcome.details.get("elements", 0) > 1


def unwritten(expected: Any, actual: Any) -> bool:
    """Whether a number is none that a computation comes to: denormal, or by far too large and no bound of a dtype.

    Memory that nobody wrote holds such numbers, and others in the next run.
    """
    if not (isinstance(expected, float | int) and isinstance(actual, float) and math.isfinite(actual) and actual):
        return False
    size = max(abs(float(expected)), DENORMAL)
    if abs(actual) < DENORMAL:
        return size > DENORMAL or expected == 0
    edge = kind(actual) != "finite" or abs(math.frexp(actual)[0]) == 0.5
    return abs(actual) > FAR * max(size, 1.0) and not edge


def untouched(outcome: Outcome) -> bool:
    """Whether all elements of an output that varies are wrong, and one is the byte that opera fills fresh memory with.

    That is another byte in the next run (opera.poison), and so is the output: nobody wrote it.
    """
    actual, seen = outcome.details.get("actual"), outcome.details
    if outcome.verdict != verdicts.UNSTABLE or "output" not in seen or seen.get("differing") != seen.get("elements"):
        return False
    if isinstance(actual, int):
        size = max((actual.bit_length() + 7) // 8, 1)
        return actual > 0 and size > 1 and actual.to_bytes(size, "little") in [bytes([x]) * size for x in FILLED]
    fills = (struct.unpack(f"<{x}", bytes([byte]) * struct.calcsize(x))[0] for x in "efd" for byte in FILLED)
    return isinstance(actual, float) and actual in fills


def brief(operator: str) -> str:
    """Return the name of a program by its operators, without its constants; of many, by the first and the last of them."""
    names = [x for x in operator.split(JOINED) if x != "Constant"] or operator.split(JOINED)
    if len(names) <= NAMED:
        return JOINED.join(names)
    return f"{names[0]} + … + {names[-1]} ({len(names)} operators)"


def _decided(deciding: Iterable[str], most: int | None = None) -> str:
    """Say what decides, but for lengths: they tell more of the small program than of the bug."""
    named = [COMPARED.sub(r"\2 equal to \1", x) for x in deciding if LENGTH_ONE not in x]
    trains = f" in {TRAINING}" if TRAINING in named else ""
    named = [x for x in named if x != TRAINING]
    fed = [
        x
        for x in named
        if x.endswith((NO_CONSTANT, GRAPH_INPUT, NO_ATTRIBUTE, IS_SET)) or of_version(x) or x == RETURNED
    ]
    others = listed(together([x for x in named if x not in fed])[:most])
    return trains + (f" with {others}" if others else "") + (f" where {' and '.join(fed)}" if fed else "")


def of_version(says: str) -> bool:
    """Whether this tells that an exporter takes an older version than one at which it is right."""
    return says.endswith(LEFT_AT) or BELOW in says


def together(told: Sequence[str]) -> list[str]:
    """Return what is told with what is of one tensor as one phrase: that it is empty, and its rank; given, and odd."""
    told = [x for x in told if not (x.startswith("input ") and any(y.endswith(f" {x[6:]}") for y in told if y != x))]
    rank = next((x for x in told if RANKED.match(x)), "")
    if EMPTY not in told or not rank or "0-d" in rank:  # what has no axes is not empty: that are two
        return list(told)
    return [RANKED.sub(r"an empty \1", rank) if x == EMPTY else x for x in told if x != rank]


def listed(words: Sequence[str]) -> str:
    """Return several things as one: `a, b and c`."""
    *some, last = words or [""]
    return f"{', '.join(some)} and {last}" if some else last


def is_relation(says: str) -> bool:
    """Whether what decides is how numbers or sizes stand to each other."""
    return at_limit(says) or any(words in says for words in (LENGTH_ONE, EQUAL))


def at_limit(says: str) -> bool:
    """Whether what decides is that a number is just so large: as another, or as some limit."""
    return says.endswith(LIMIT) or says.startswith(EQUAL_TO)


LOWERED = re.compile(r"[\w.]*:(?:\w+\.)*convert_(\w+)|[\w.]*:[\w.]+\[([A-Z\d_]+)\]|([A-Z][A-Z\d_]+)")
"""How a conversion function names an operator of TFLite: by its method, in brackets, or by itself."""


def lowered(function: str) -> str:
    """Return the operator of TFLite that a conversion function converts (`SLICE`), empty where it names none."""
    found = LOWERED.fullmatch(function)
    return next(filter(None, found.groups())).upper() if found else ""


def _inner(operator: str, function: str) -> str:
    """Return which operator within the one that was called it is about, where the conversion function names another."""
    if function == f"expanded {operator}":
        return "" if JOINED in operator else "expanded to its function body"
    name, at, _ = function.partition("@")
    made = lowered(function)
    name, at = (made, made) if made else (name, at)
    known = re.sub(r"[\W_]", "", operator).lower()
    inner = re.fullmatch(r"[\w.:]+", name) is not None and at and name.rpartition(":")[2] not in operator
    inner = inner and re.fullmatch(LEFT, name) is None  # what is left over of another
    if not inner or re.sub(r"[\W_]", "", name).lower() in known:
        return ""
    if made == NO_OPERATOR:
        return NOTHING_LEFT
    return f"where it becomes {name}" if made else f"at its {name}"


def apart(one: Any, other: Any) -> tuple[str, str]:
    """Return two numbers with as many digits, six at least, as tell them from each other, and anything else as it is."""
    found = number(one), number(other)
    for digits in range(DIGITS + 1, 18):
        if found[0] != found[1] or one == other:
            break
        found = number(one, digits), number(other, digits)
    return found


def number(value: Any, digits: int = DIGITS) -> str:
    """Return a number as short as so many digits allow, a whole one in full (16777217), and anything else as it is, but for an
    empty string."""
    if not isinstance(value, float):
        return one_line(str(value))[:60] or "''"
    return f"{value:.0f}" if value.is_integer() and abs(value) < WHOLE else f"{value:.{digits}g}"
