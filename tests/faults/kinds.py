"""Every kind of fault of the campaign, and what a true verdict on it is. README.md shows this table."""

from __future__ import annotations

import sys

import msgspec
from faults import campaign, engine

from opera.programs.verdicts import (
    ABORT,
    CRASH,
    ERROR,
    FAILURES,
    INCONSISTENT,
    OUT_OF_MEMORY,
    PASS,
    TIMEOUT,
    UNSTABLE,
    UNSUPPORTED,
)


class Kind(msgspec.Struct, frozen=True):
    """What opera is to say of a fault; `tags` are those that the verdict must have, `says` a part of its message."""

    verdict: str
    stage: str = ""
    symptom: str = ""
    tags: tuple[str, ...] = ()
    says: str = ""

    @property
    def found(self) -> int:
        """Findings that it makes."""
        return int(self.verdict in FAILURES)


def _wrong(symptom: str, *tags: str) -> Kind:
    return Kind(INCONSISTENT, "infer", symptom, tags)


GROUPS: dict[str, dict[str, Kind]] = {
    "wrong answers": {
        "wrong_value": _wrong("value"),
        "just_off": _wrong("value"),
        "dropped_attribute": _wrong("value"),
        "wrong_shape": _wrong("shape"),
        "wrong_dtype": _wrong("dtype"),
        "extra_output": _wrong("count"),
        "missing_output": _wrong("count"),
        "empty_list": _wrong("count"),
        "not_a_number": _wrong("nan-mask"),
        "infinity": _wrong("nan-mask"),
        "zeros": _wrong("value"),
        "random_value": Kind(UNSTABLE, "infer", "unstable"),
        "state_leak": _wrong("value", "state-dependent"),
    },
    "exceptions": {
        "raises": Kind(CRASH, "load", "ValueError"),
        "raises_chained": Kind(CRASH, "compile", "RuntimeError"),
        "raises_unspeakable": Kind(CRASH, "load", "Unspeakable"),
        "raises_system_exit": Kind(CRASH, "load", "SystemExit"),
        "raises_interrupt": Kind(CRASH, "infer", "KeyboardInterrupt"),
        "raises_generator_exit": Kind(CRASH, "infer", "GeneratorExit"),
        "raises_own_base": Kind(CRASH, "compile", "_Own"),
        "raises_group": Kind(CRASH, "load", "ExceptionGroup"),
        "raises_recursion": Kind(CRASH, "compile", "RecursionError"),
        "raises_memory": Kind(OUT_OF_MEMORY, "infer", "MemoryError"),
        "raises_bad_alloc": Kind(OUT_OF_MEMORY, "infer", "RuntimeError"),
        "raises_100_mb": Kind(CRASH, "load", "ValueError"),
        "raises_surrogates": Kind(CRASH, "load", "ValueError"),
        "refuses": Kind(UNSUPPORTED, "load", "NotImplementedError"),
        "no_answer": Kind(CRASH, "infer", "no-answer"),
    },
    "mistakes of the adapter, the library or opera": {
        "asserts": Kind(ERROR, "infer", "AssertionError"),
        "zips_strictly": Kind(ERROR, "infer", "ValueError"),
        "key_error": Kind(ERROR, "infer", "KeyError"),
        "attribute_error": Kind(ERROR, "infer", "AttributeError"),
        "import_error": Kind(ERROR, "infer", "ModuleNotFoundError"),
        "returns_none": Kind(ERROR, "infer", "BadAnswer"),
        "returns_arrays": Kind(ERROR, "infer", "BadAnswer"),
        "returns_lie": Kind(ERROR, "infer", "BadAnswer"),
        "unbuildable": Kind(ERROR, "load", "NotRebuilt"),
        "fewer_inputs": Kind(ERROR, "", "ValueError"),
        "unknown_feed": Kind(ERROR, "", "KeyError"),
        "refuses_oddly": Kind(CRASH, "load", "RuntimeError", ("adapter-failed",)),
        "conversion_lost": _wrong("count", "adapter-failed"),
    },
    "deaths": {
        "segfault": Kind(ABORT, "load", "SIGSEGV"),
        "aborts": Kind(ABORT, "infer", "SIGABRT"),
        "exits_0": Kind(ABORT, "infer", "exit 0"),
        "exits_3": Kind(ABORT, "compile", "exit 3"),
        "kills_itself": Kind(ABORT, "load", "SIGKILL"),
        "terminates_itself": Kind(ABORT, "load", "SIGTERM"),
        "bus_error": Kind(ABORT, "infer", "SIGBUS"),
        "divides_by_zero": Kind(ABORT, "infer", "SIGFPE"),
        "illegal_instruction": Kind(ABORT, "compile", "SIGILL"),
        "double_free": Kind(ABORT, "infer", "SIGABRT"),
        "stack_overflow": Kind(ABORT, "compile", "SIGSEGV"),
    },
    "hangs": {
        "sleeps": Kind(TIMEOUT, "compile", "timeout"),
        "spins_deaf": Kind(TIMEOUT, "load", "timeout"),
        "holds_gil": Kind(TIMEOUT, "infer", "timeout"),
        "stops_itself": Kind(TIMEOUT, "infer", "timeout"),
        "deadlocks": Kind(TIMEOUT, "compile", "timeout"),
        "waits_for_child": Kind(TIMEOUT, "load", "timeout"),
    },
    "memory": {
        "grows_numpy": Kind(OUT_OF_MEMORY, "infer", "MemoryError"),
        "grows_shared": Kind(OUT_OF_MEMORY, "load", "out-of-memory"),
        "grows_malloc": Kind(OUT_OF_MEMORY, "compile", "out-of-memory"),
    },
    "output and files": {
        "prints_1_mb": Kind(PASS),
        "prints_400_mb": Kind(PASS),
        "prints_and_raises": Kind(CRASH, "compile", "ValueError"),
        "writes_8_gb": Kind(ERROR, "infer", "OSError", says="opera's own limit"),
    },
    "processes": {
        "forks": Kind(PASS),
        "forks_and_hangs": Kind(PASS),
        "daemon": Kind(PASS),
        "fifty_children": Kind(PASS),
        "endless_thread": Kind(PASS),
        "alarm": Kind(PASS),
        "kills_siblings": Kind(PASS),
        "stops_siblings": Kind(PASS),
        "daemon_kills_parent": Kind(ABORT, "infer", "killed its parent"),
        "kills_parent": Kind(ABORT, "infer", "killed its parent"),
        "stops_parent": Kind(PASS),
        "stops_parent_and_hangs": Kind(TIMEOUT, "compile", "timeout"),
    },
    "descriptors and the like": {
        "closes_all": Kind(ABORT, "infer", "closed files"),
        "closes_all_and_hangs": Kind(ABORT, "load", "closed files"),
        "garbles": Kind(ABORT, "infer", "closed files"),
        "changes_folder": Kind(PASS),
        "changes_umask": Kind(PASS),
        "changes_environment": Kind(PASS),
        "changes_locale": Kind(PASS),
        "changes_limits": Kind(PASS),
        "installs_hook": Kind(PASS),
    },
}
"""Faults that share one run."""

POISONS = {
    name: Kind(INCONSISTENT, stage, "poisons", ("state-dependent",))
    for name, stage in {
        "patches_sum": "infer",
        "patches_abs": "infer",
        "patches_time": "load",
        "raises_on_underflow": "infer",
        "closes_stdout": "infer",
        "replaces_stdout": "infer",
        "limits_recursion": "infer",
        "limits_files": "",
        "deletes_folder": "infer",
    }.items()
}
"""Faults after which others fail in the same process, each in a run of its own; the stage is the one that others fail in."""

MADE_BY_THE_LIBRARY = {
    "unbuildable": "KeyError when the library rebuilds its model",
    "fewer_inputs": "The test holds fewer inputs than its manifest names",
    "unknown_feed": "The manifest feeds an input that is not there",
}
ALL = {name: kind for kinds in GROUPS.values() for name, kind in kinds.items()}


def table() -> str:
    """Return the kinds as a table of Markdown."""
    lines = ["| kind | what goes wrong | verdict | stage | symptom | tags |", "|---|---|---|---|---|---|"]
    for group, kinds in {**GROUPS, "poison: whatever runs after it in its process fails": POISONS}.items():
        lines.append(f"| **{group}** | | | | | |")
        for name, kind in kinds.items():
            cells = (f"`{name}`", _told(name), kind.verdict, kind.stage, kind.symptom, ", ".join(kind.tags))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _told(name: str) -> str:
    if name in MADE_BY_THE_LIBRARY:
        return MADE_BY_THE_LIBRARY[name]
    function = campaign.MISTAKES.get(name) or engine.MISDEEDS[name][1]
    return (function.__doc__ or "").strip()


if __name__ == "__main__":
    sys.stdout.write(table())
