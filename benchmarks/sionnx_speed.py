"""How many cases a second our specifications yield, part by part: generated, checked by ONNX, run by the references.

CPU seconds of one core, in one process, of the newest version of each operator; storing is not part of it.

Run it so: nice python benchmarks/sionnx_speed.py --count 40
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import time

from opera.errors import OperaError
from opera.libraries.onnx import wrap
from opera.sources.sionnx import answers, encode, generate, own, skeleton

PARTS = ("generated", "encoded", "checked", "judged")


def measure(signature: str, arguments: argparse.Namespace) -> tuple[int, dict[str, float]]:
    """Return how many cases an operator has, and part → CPU seconds. Checking is done once more by what judges."""
    spec = own.specifications()[signature]
    resolved = skeleton.resolve(spec)
    times = [time.process_time()]
    cases = list(generate.cases(resolved, arguments.mode, arguments.count, arguments.seed))
    times.append(time.process_time())
    instances = [encode.instance(case) for case in cases]
    times.append(time.process_time())
    for instance in instances:
        try:
            wrap.inferred(instance, wrap.parts(instance))
        except OperaError:
            continue
    times.append(time.process_time())
    patience = 10.0
    for instance in instances:
        patience -= answers.judge(instance, "", evaluator=patience > 0).seconds
    times.append(time.process_time())
    return len(cases), {name: after - before for name, before, after in zip(PARTS, times, times[1:], strict=False)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", default="*", help="A glob of operators.")
    parser.add_argument("--without", default="", help="Operators that are left out, between commas.")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=[generate.FULL, generate.SMOKE], default=generate.FULL)
    parser.add_argument("--slowest", type=int, default=8, help="So many operators are shown.")
    arguments = parser.parse_args()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    answers.prepare()
    names = [x for x in own.specifications() if fnmatch.fnmatch(x, arguments.operator)]
    names = [x for x in names if x not in arguments.without.split(",")]
    measure(names[0], arguments)  # what is imported at the first case
    found = {name: measure(name, arguments) for name in names}
    total = sum(count for count, _ in found.values())
    spent = {part: sum(seconds[part] for _, seconds in found.values()) for part in PARTS}
    print(f"{len(names)} operators, {total} cases")
    for part in PARTS:
        print(f"{part:>10}: {total / spent[part]:8.0f} a second, {1000 * spent[part] / total:6.2f} ms each")
    whole = spent["generated"] + spent["encoded"] + spent["judged"]
    print(f"{'all':>10}: {total / whole:8.0f} a second (checking is part of judging)")
    slowest = sorted(found, key=lambda name: -found[name][1]["judged"] / max(found[name][0], 1))[: arguments.slowest]
    for name in slowest:
        count, seconds = found[name]
        print(f"{name:>24}: {1000 * seconds['judged'] / max(count, 1):7.1f} ms to judge one")


if __name__ == "__main__":
    main()
