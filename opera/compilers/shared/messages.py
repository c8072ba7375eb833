"""What the messages of compilers tell: is something unsupported, and where did it fail? Needs numpy and msgspec."""

from __future__ import annotations

import re

import msgspec

from opera.compilers.shared.packing import CannotCarry


class Rule(msgspec.Struct, frozen=True):
    """One way in which a compiler says that it does not support something.

    Attributes:
        pattern: Regular expression searched in the message.
        reason: The normalised reason; `\\1` stands for what the first group matched.
        stage: The only stage in which the rule holds, or empty for all.
    """

    pattern: str
    reason: str
    stage: str = ""


def unsupported(rules: tuple[Rule, ...], stage: str, error: BaseException) -> str | None:
    """Return the reason of the first rule that fits. What opera cannot feed or read is unsupported, never a crash."""
    if isinstance(error, CannotCarry):
        return str(error)
    message = str(error)
    for rule in rules:
        if rule.stage in ("", stage) and (found := re.search(rule.pattern, message)):
            return found.expand(rule.reason).strip()
    return None


def last_location(message: str, generic: str) -> str:
    """Return the last `file:line` in a message whose file does not match `generic`, else an empty string.

    Paths are cut to the file name, and so do not tell where the compiler was built.
    """
    found = re.findall(r"([\w./-]+\.(?:cc|cpp|cxx|hpp|h|py)):(\d+)", message)
    specific = [(path.rsplit("/", 1)[-1], line) for path, line in found if not re.search(generic, path)]
    return "{}:{}".format(*specific[-1]) if specific else ""
