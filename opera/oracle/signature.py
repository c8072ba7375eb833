"""The signature of a finding: failing verdicts with one signature are one suspected bug."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import msgspec

from opera.oracle import location
from opera.programs.verdicts import CRASH, REFUSED, Outcome

SIGNATURE_VERSION = 5
"""Changes whenever equal failures may get another signature; `opera run` sorts those of another version anew.

5: as 4, and no part of a name is an address (a temporary folder `tmpab0x1f3c`).
4: as 3, and of a call of Relax that a message prints only its operator counts, not what it is given.
3: as 2, and one name for all forms of an operator (opera.oracle.location); an API's name, or an operator that was expanded, is
   no place of a crash that says where it was; in-place forms of a wrong dtype are one. Ids are those of version 2 where
   the fields are: the version is no part of them.
2: as 1, and the names of variables that a compiler's own function is called with do not count (`R.add(p_bias, lv4)`).
1: frontend, stage, symptom, conversion function (else the operator), and for crashes the normalised message where the
   conversion function does not name the failing line.
"""

EXCUSED = "excused"
"""Detail of an outcome: what was done to the test for no excuse to hold of it ("longer"). It is another failure than what is
wrong without that: an `axis` that is ignored is no error that grows with length."""
IDS = "2"
"""Hashed before the fields, for ids to be what they were in the version that first had these fields."""

LIMIT = 300
"""Characters of a normalised message that count."""
CUT = LIMIT - 1
"""A normalised message of so many characters was cut (white space at its end may be gone): it need not hold the cause."""


class Signature(msgspec.Struct, frozen=True):
    """What makes two failures the same suspected bug.

    Attributes:
        frontend: `tvm-onnx`.
        stage: load, compile or infer.
        symptom: exception type, signal, `timeout`, `out-of-memory`, or count, shape, dtype, nan-mask, value; and EXCUSED.
        conversion_function: the code that converts the operator, empty where the compiler cannot tell; of a crash that no
            converter is known of, the last place in the compiler's own code.
        message: normalised message of a crash, or of a refusal that is a finding; empty for what is neither, and where the
            conversion function ends in the `file:line` that failed.
        operator: the operator signature, by the name that all its forms share; empty where the conversion function is known, or
            the message tells the failure by itself.
        version: SIGNATURE_VERSION of the rules that made it.
    """

    frontend: str
    stage: str
    symptom: str
    conversion_function: str
    message: str
    operator: str
    version: int = 2

    @classmethod
    def of(cls, frontend: str, operator: str, outcome: Outcome) -> Signature:
        """Return the signature of a failing outcome."""
        symptom = " ".join(filter(None, (outcome.symptom or outcome.verdict, str(outcome.details.get(EXCUSED, "")))))
        api, written_into = location.is_api(operator), location.in_place(operator)
        operator = location.canonical(operator)
        converter = location.canonical(outcome.conversion_function)
        located = re.search(r"\.\w+:\d+$", converter) is not None
        told = outcome.verdict in (CRASH, REFUSED) and not located
        message = normalise(outcome.message) if told else ""
        expanded = converter.startswith(location.EXPANDED)
        if outcome.symptom == "dtype" and written_into:
            converter, operator = "", location.IN_PLACE
        elif location.telling(message) and len(message) < CUT and (expanded or location.is_api(converter or operator)):
            converter, operator = outcome.location, ""
        elif location.telling(message):
            converter = location.shared(converter)
        elif expanded and api:
            converter = location.EXPANDED + operator.rpartition(".")[2]
        return cls(
            frontend, outcome.stage, symptom, converter, message, "" if converter else operator, SIGNATURE_VERSION
        )

    @property
    def id(self) -> str:
        """`F` and 8 hexadecimal digits of the SHA-256 of the fields."""
        fields = [IDS, *msgspec.structs.astuple(self)[:-1]]
        return "F" + hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:8]


DTYPE = r"(?:u?int|float|bfloat|bf|complex|fp|f|i|u|s|b)\d+(?:_?e\d+m\d+\w*)?"
TYPE = re.compile(rf"\b{DTYPE}\b")
"""A dtype in a message, as native code or Python writes it."""
RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),  # colours
        (r"\b(R\.(?:\w+\.)*\w+)\((?!@\))(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", r"\1(@)"),  # R.add(lv, R.const(0.0))
        (r"(?<!\w)0x[0-9a-fA-F]+", "#"),  # addresses; none within a name: of a temporary folder, say
        (r"(?<![\w'])'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|‘[^’\n]*’", "@"),  # quoted names
        (r"(?:[A-Za-z]:)?(?:[\w.+~@-]*[/\\])+([\w.@-]+)", r"\1"),  # folders of paths; the file name stays
        (r"(?i)(\bnode(?:_?name)?\b(?: name)?\s*[:=]\s*)[^\s,;()<>@]+", r"\1@"),  # node names
        (rf"\b(?!{DTYPE}\b)([A-Za-z_]+)\d+\b", r"\1#"),  # lv12, node_3: numbered names; dtypes keep their width
        (r"(?<![A-Za-z_\d])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![A-Za-z_\d])", "#"),  # numbers
        (r"(?:T\.int#|T\.int\d+|int\d+|i\d+)\(#\)|#L\b", "#"),  # typed numbers
        (r"(?<![\w])(?:#|\?|-#|@)(?:\s*[x×]\s*#)+", "[#]"),  # 2x3x4
        (r"[\[({<]\s*(?:(?:#|\?|-#|None|\.\.|\[#\])\s*,?\s*)*[\])}>]", "[#]"),  # shapes
        (r"(?:#|\[#\])(?:\s*,\s*(?:#|\[#\]))+", "#"),  # lists of numbers
        (r"\btensor\((\w+)\)", r"\1"),
        (rf"(?<![\w@])(?:T\.)?(?:{DTYPE}|bool|float|double|half)(?!\w)", "dtype"),
        (r"@(?:: ?dtype)?(?:,\s*(?:@(?:: ?dtype)?)?)+", "@"),  # lists of named and typed arguments
        (r"\b((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*)\([A-Za-z_]\w*#?(?:,\s*[A-Za-z_]\w*#?)*\)", r"\1(@)"),  # R.add(x, lv4)
        (r"\b((?:opset[\d#]+|util)::\w+) (?!@)[^\s()\[\],]+", r"\1 @"),  # opset1::Result Result_12: nodes of OpenVINO
        (r"\s+", " "),
    )
)


@lru_cache(maxsize=4096)
def normalise(message: str) -> str:
    """Strip what differs between two sights of one failure: numbers, shapes, dtypes, addresses, quoted names, folders.

    Idempotent.
    """
    text = message[: 20 * LIMIT]
    for _ in range(20):
        before = text
        for pattern, replacement in RULES:
            text = pattern.sub(replacement, text)
        text = text.strip()[:LIMIT].strip()
        if text == before:
            break
    return text
