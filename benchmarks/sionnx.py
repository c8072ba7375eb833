"""How many of the cases that our specifications yield are valid, operator by operator, and how fast they are made.

A case is accepted where onnx's checker with strict shape inference takes its model, and ONNX Runtime or the reference evaluator
computes outputs (opera.sources.sionnx.answers). Each operator is tried in a process of its own, for some cases end theirs.

Run it so: python benchmarks/sionnx.py --operator 'A*' --count 40 --reasons 3
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import os
import re
import time
from collections import Counter
from typing import Any

import msgspec

from opera.sources.sionnx import answers, encode, generate, own, skeleton
from opera.sources.sionnx.case import Case
from opera.sources.sionnx.spec import Spec

SECONDS = 180
"""An operator that takes longer is given up."""


class Tally(msgspec.Struct):
    """What became of the cases of one version of an operator; `seconds` is the CPU time of making them, and
    `disputed` counts those accepted of which references compute different things."""

    made: int = 0
    accepted: int = 0
    disputed: int = 0
    seconds: float = 0.0
    reasons: dict[str, int] = {}
    shown: dict[str, str] = {}
    note: str = ""


def measure(spec: Spec, since: int, arguments: argparse.Namespace, results: Any) -> None:
    """Put a Tally after each case, so that what is known outlives a process that dies."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    answers.prepare()
    tally = Tally()
    start = time.process_time()
    try:
        options = {"empty": arguments.empty, "special": arguments.special}
        resolved = skeleton.resolve(spec, since)
        made = list(generate.cases(resolved, arguments.mode, arguments.count, arguments.seed, **options))
    except Exception as error:
        tally.note = f"{type(error).__name__}: {error}"
        made = []
    tally.made, tally.seconds = len(made), time.process_time() - start
    for case in made if not arguments.unjudged else ():
        accepted, reason = judged(case)
        tally.accepted += accepted
        tally.disputed += accepted and bool(reason)
        if reason:
            key = re.sub(r"\d+", "#", reason)
            tally.reasons[key] = tally.reasons.get(key, 0) + 1
            tally.shown.setdefault(key, described(case))
        results.put(msgspec.msgpack.encode(tally))
    results.put(msgspec.msgpack.encode(tally))
    results.put(b"")


def judged(case: Case) -> tuple[bool, str]:
    """Return whether a case is accepted, and why it is not or who disagrees."""
    try:
        found = answers.judge(encode.instance(case), "")
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"
    if found.status != answers.ACCEPTED:
        return False, f"{found.status}: {found.reason}"
    said = (f"{x.other} says other than {x.taken}: {x.symptom}: {x.message}" for x in found.disagreements)
    return True, "; ".join(said) if found.disputed else ""


def described(case: Case) -> str:
    inputs = [None if x is None else (x.name, x.type, getattr(x.value, "shape", x.value)) for x in case.inputs]
    return f"{ {name: given.value for name, given in case.attributes.items()} } {inputs} {case.outputs}"


def tallied(spec: Spec, since: int, arguments: argparse.Namespace) -> Tally:
    """Measure in a child."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    send.put = send.send_bytes  # type: ignore[attr-defined]
    child = context.Process(target=measure, args=(spec, since, arguments, send))
    child.start()
    send.close()
    tally, end = Tally(note="died at the first case"), time.monotonic() + SECONDS
    while receive.poll(max(0.0, end - time.monotonic())):
        try:
            data = receive.recv_bytes()
        except EOFError:
            break
        if not data:
            child.join()
            return tally
        tally = msgspec.msgpack.decode(data, type=Tally)
    child.kill()
    child.join()
    tally.note = tally.note or ("died" if time.monotonic() < end else "too slow")
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", default="*", help="Globs of operators, between commas.")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=[generate.FULL, generate.SMOKE], default=generate.FULL)
    parser.add_argument("--versions", choices=["newest", "all"], default="newest")
    parser.add_argument("--reasons", type=int, default=0, help="So many reasons of refusals for each operator.")
    parser.add_argument("--empty", action="store_true", help="Dimensions of size 0 too.")
    parser.add_argument("--special", action="store_true", help="NaN and infinities too.")
    parser.add_argument(
        "--below", type=float, default=101.0, help="Show operators below this acceptance (percent) only."
    )
    parser.add_argument("--unjudged", action="store_true", help="Make cases only; nothing is accepted.")
    parser.add_argument("--disputed", action="store_true", help="Show operators with disputed cases only.")
    arguments = parser.parse_args()

    whole, operators, without = Tally(), 0, []
    for signature, spec in own.specifications().items():
        if not any(fnmatch.fnmatch(signature, x) for x in arguments.operator.split(",")):
            continue
        operators += 1
        numbers = skeleton.versions(spec.operator, spec.domain)
        accepted = 0
        for since in numbers if arguments.versions == "all" else numbers[-1:]:
            found = tallied(spec, since, arguments)
            whole.made, whole.accepted = whole.made + found.made, whole.accepted + found.accepted
            whole.seconds, whole.disputed = whole.seconds + found.seconds, whole.disputed + found.disputed
            accepted += found.accepted
            share = 100 * found.accepted / max(found.made, 1)
            if (share >= arguments.below or (arguments.disputed and not found.disputed)) and not found.note:
                continue
            rate = found.made / max(found.seconds, 1e-9)
            print(
                f"{signature}-{since:<4} {found.accepted:>4} of {found.made:>4} {share:6.1f} %"
                f" {found.disputed:>3} disputed {rate:6.0f}/s {found.note}"
            )
            told = {x: n for x, n in found.reasons.items() if not arguments.disputed or " says other than " in x}
            for reason, times in Counter(told).most_common(arguments.reasons):
                print(f"      {times:>4} {reason[:360]}\n           {found.shown[reason][:300]}")
        if not accepted:
            without.append(signature)
    share, rate = 100 * whole.accepted / max(whole.made, 1), whole.made / max(whole.seconds, 1e-9)
    print(
        f"{operators} operators: {whole.accepted} of {whole.made} cases accepted, {share:.1f} %; {whole.disputed} disputed;"
        f" {rate:.0f} made a CPU second"
    )
    if not arguments.unjudged:
        print(f"without an accepted case: {', '.join(without) or 'none'}")


if __name__ == "__main__":
    main()
