"""What the messages of compilers tell: is something unsupported, and where did it fail? Needs numpy and msgspec.

The words of opera's own adapters are data: `opera/compilers/refusals/*.toml`, one file a compiler.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from opera.compilers.shared.packing import CannotCarry

REFUSAL, NEEDS_CONSTANT, MACHINE, CLAIMED = "refusal", "needs-constant", "machine", "claimed"
KINDS = (REFUSAL, NEEDS_CONSTANT, MACHINE, CLAIMED)
"""What a refusal is: see Rule.kind."""
OPERA = "opera"
"""What reasons begin with that are opera's own limits."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which a compiler says that it does not support something.

    Attributes:
        pattern: Regular expression searched in the message; an empty one fits all.
        reason: The normalised reason; `\\1` stands for what the first group matched.
        stage: The only stage in which the rule holds, or empty for all.
        kind: `refusal`: an honest one; `needs-constant`: of a runtime value where only constants are converted; `machine`: the
            machine lacks something, which is no word of the compiler's; `claimed`: it contradicts what the compiler declares,
            as the reason says, and is a finding.
        exception: Regular expression that `module:qualified name` of one of the exception's classes matches, or empty for all.
        example: A message, or the beginning of one, that the rule is for.
        seen: Name and version of what said it; empty where the example is only made up after the pattern.
        why: Why it is of this kind.
        together: Whether it is one omission for all that the groups of the pattern match: of a list, say, that nobody renewed.
    """

    pattern: str = ""
    reason: str = ""
    stage: str = ""
    kind: str = REFUSAL
    exception: str = ""
    example: str = ""
    seen: str = ""
    why: str = ""
    together: bool = False

    def fits(self, stage: str, error: BaseException) -> re.Match[str] | None:
        """Return the match of the pattern where the rule fits what was raised in a stage."""
        if self.stage not in ("", stage):
            return None
        kinds = (f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__)
        if self.exception and not any(re.fullmatch(self.exception, kind) for kind in kinds):
            return None
        return re.search(self.pattern, str(error))


class Claimed(str):
    """A reason of a refusal that contradicts what the compiler itself declares: what it declares, in words.

    Attributes:
        omission: What all of one omission have in common, where the refusals of several operators are one; empty else.
    """

    omission = ""


def file_of(name: str) -> Path:
    """Return the file of one of opera's own tables."""
    return Path(__file__).parents[1] / "refusals" / f"{name}.toml"


def table(name: str, *parts: str) -> tuple[Rule, ...]:
    """Return rules of one of opera's own tables: the parts one after the other. Raises KeyError for an unknown part.

    What verdicts are concluded by is told by where this is called with a literal name: see opera.run.rules.
    """
    return tuple(rule for part in parts for rule in read(file_of(name))[part])


@cache
def read(file: Path) -> dict[str, tuple[Rule, ...]]:
    """Return the tables of a file. Raises ValueError where it holds something else, or a kind that there is not."""
    parts = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), dict[str, tuple[Rule, ...]])
    if unknown := {rule.kind for rules in parts.values() for rule in rules} - set(KINDS):
        raise ValueError(f"{file.name} has rules of unknown kinds: {', '.join(sorted(unknown))}")
    return parts


def unsupported(rules: tuple[Rule, ...], stage: str, error: BaseException) -> str | None:
    """Return the reason of the first rule that fits, as a Claimed where it contradicts what the compiler declares.

    What opera cannot feed or read is unsupported, never a crash, and its reason says that it is opera's own limit.
    """
    if isinstance(error, CannotCarry):
        return f"{OPERA}: {str(error).removeprefix('opera ')}"
    for rule in rules:
        if found := rule.fits(stage, error):
            return reason(rule, found)
    return None


def reason(rule: Rule, found: re.Match[str]) -> str:
    """Return the reason of a rule for what its pattern matched."""
    text = found.expand(rule.reason).strip()
    match rule.kind:
        case "claimed":
            claimed = Claimed(text)
            claimed.omission = rule.reason if rule.together else ""
            return claimed
        case "needs-constant" | "machine":
            return f"{rule.kind}: {text}"
    return text


def last_location(message: str, generic: str) -> str:
    """Return the last `file:line` in a message whose file does not match `generic`, else an empty string.

    Paths are cut to the file name, and so do not tell where the compiler was built.
    """
    found = re.findall(r"([\w./-]+\.(?:cc|cpp|cxx|hpp|h|py)):(\d+)", message)
    specific = [(path.rsplit("/", 1)[-1], line) for path, line in found if not re.search(generic, path)]
    return "{}:{}".format(*specific[-1]) if specific else ""
