"""CPU seconds and memory of `opera` on generated corpora: `python benchmarks/prioritize.py [SIZE...]`;
of the others on the first size.

Each size is ranked in a process of its own, from instances that are read from a file one by one, made into rows, encoded and
ranked; its figures are that process's, imports included. The corpus is like the ONNX one (1,013 instances, 182 operators, as
the OPERA artifact migrated it) where that decides the cost, whatever the size:

- operator i has a share ∝ i^-0.72 (89, 53, 39, 34, ... instances there);
- 0 to 9 attributes an operator, 42 % of operators without any; an attribute is unset in 40 % of them;
- 93 % of the instances are distinct after encoding (938 of 1,013). A larger corpus needs more distinct values for that: they
  come as longer lists of tensors and higher dimensions, as in the tail of the real ones.
"""

from __future__ import annotations

import json
import math
import random
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import temporary
from opera.prioritize import rank
from opera.prioritize.diversity import OPERA
from opera.prioritize.subspaces import ArtifactSubspaces, Row, from_program
from opera.programs.program import Instance, Operand
from opera.programs.values import CONTAINERS, Tensor

OPERATORS, EXPONENT, DISTINCT = 182, 0.72, 938 / 1013
ATTRIBUTES = {0: 76, 1: 37, 2: 33, 3: 13, 4: 5, 5: 2, 6: 6, 7: 4, 8: 4, 9: 2}
DTYPES = {
    "float32": 2043,
    "int64": 431,
    "bool": 124,
    "int32": 87,
    "uint8": 84,
    "float64": 68,
    "float16": 37,
    "int8": 28,
} | {f"uint{bits}": 20 for bits in (16, 32, 64)}
ITEMSIZE = {dtype: np.dtype(CONTAINERS[dtype]).itemsize for dtype in DTYPES}
KINDS = {"flag": 30, "integer": 40, "word": 20, "real": 8, "list": 12}
SIZES = (100_000, 1_000_000)
STRATEGIES = (
    "opera",
    "opera-wide",
    "round-robin",
    "fast-pw",
    "fast-one",
    "fast-log",
    "fast-sqrt",
    "fast-all",
    "total",
    "additional",
)


class Line(msgspec.Struct):
    """One generated instance; tensors are (dtype, shape)."""

    operator: str
    params: dict[str, Any]
    inputs: list[tuple[str, tuple[int, ...]]]
    outputs: list[tuple[str, tuple[int, ...]]]

    def row(self) -> Row:
        """Make the row the way a stored instance becomes one."""
        operands = tuple(Operand("x", tensor(*x)) for x in self.inputs)
        instance = Instance("onnx", self.operator, self.params, operands, ("y",), {})
        return from_program(instance, tuple(tensor(*x) for x in self.outputs))


def tensor(dtype: str, dims: tuple[int, ...]) -> Tensor:
    """Make a tensor of zeros."""
    return Tensor(dtype, dims, bytes(math.prod(dims) * ITEMSIZE[dtype]))


def draw(rng: random.Random, weights: dict[Any, int]) -> Any:
    """Draw a key by its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def shape(rng: random.Random, more: int) -> tuple[int, ...]:
    """Draw a shape; `more` makes it longer."""
    length = draw(rng, {0: 154, 1: 689, 2: 332, 3: 461, 4: 262, 5: 11, 6: 12, 7: 12})
    return tuple(rng.choices((0, 1, rng.randint(2, 3)), (29, 559, 3407), k=min(length + more // 3, 8)))


def value(rng: random.Random, kind: str) -> Any:
    """Draw an attribute's value."""
    if kind == "list":
        return [rng.randint(-1, 3) for _ in range(rng.choice((1, 2, 2, 2, 3, 4)))]
    choices = {"flag": (0, 1), "integer": (-2, -1, 0, 1, 2, 3), "word": ("a", "b", "c", "d", "e"), "real": (0.0, 0.5)}
    return rng.choice(choices[kind])


def generate(count: int) -> Iterator[Line]:
    """Yield `count` instances."""
    rng, encoding = random.Random(count), ArtifactSubspaces()
    shares = list(accumulate((i + 1) ** -EXPONENT for i in range(OPERATORS)))
    kinds = [[draw(rng, KINDS) for _ in range(draw(rng, ATTRIBUTES))] for _ in range(OPERATORS)]
    inputs = [draw(rng, {1: 369, 2: 433, 3: 162, 5: 22}) for _ in range(OPERATORS)]
    seen: list[set[int]] = [set() for _ in range(OPERATORS)]
    effort, old = [0.0] * OPERATORS, [[] for _ in range(OPERATORS)]  # type: ignore[var-annotated]
    for operator in rng.choices(range(OPERATORS), cum_weights=shares, k=count):
        if old[operator] and rng.random() > DISTINCT:
            yield rng.choice(old[operator])
            continue
        while True:
            more = int(effort[operator])
            tensors = [
                (draw(rng, DTYPES) if i == 0 or rng.random() < 0.3 else None, shape(rng, more))
                for i in range(inputs[operator] + more // 2)
            ]
            tensors = [(dtype or tensors[0][0], size) for dtype, size in tensors]
            out = [rng.choice(tensors)] if rng.random() < 0.6 else [(tensors[0][0], shape(rng, more))]
            params = {f"p{i}": value(rng, k) for i, k in enumerate(kinds[operator]) if rng.random() < 0.6}
            key = hash((
                tuple((name, encoding.value(x)) for name, x in params.items()),
                tuple((t, encoding.value(s)) for t, s in tensors), out[0][0], encoding.value(out[0][1]),
            ))  # fmt: skip
            if key not in seen[operator]:
                break
            effort[operator] += 0.02
        seen[operator].add(key)
        line = Line(f"Op{operator}", params, tensors, out)
        if len(old[operator]) < 200:
            old[operator].append(line)
        yield line


def lines(file: Path) -> Iterator[Row]:
    """Read rows one by one."""
    decoder = msgspec.json.Decoder(Line)
    with file.open("rb") as stream:
        for line in stream:
            yield decoder.decode(line).row()


def coverage(rows: list[Row]) -> list[np.ndarray[Any, Any]]:
    """Make up statements like those of TVM's ONNX importer: 300 that nearly all tests run, and branches of each converter."""
    found, starts, encoding = [], dict[str, int](), ArtifactSubspaces()
    for row in rows:
        start = starts.setdefault(row.operator, 1000 + 200 * len(starts))
        facts = [f"{name}={encoding.value(value)}" for name, value in row.params.items()]
        facts += [str(row.input_dtypes[:1]), str(list(map(len, row.input_shapes)))]
        branches = sorted({zlib.crc32(fact.encode()) % 12 for fact in facts})
        own = [np.arange(start + 15 * branch, start + 15 * branch + 10) for branch in branches]
        common = 300 - 20 * (zlib.crc32(str(row.input_dtypes).encode()) % 4)
        found.append(np.concatenate([np.arange(common), *own]).astype(np.int32))
    return found


def measure_strategy(file: Path, name: str) -> dict[str, Any]:
    """Rank a file's instances by one strategy, coverage given; return CPU seconds, encoding included."""
    rows = list(lines(file))
    covered = coverage(rows) if name in ("total", "additional") else []
    started = time.process_time()
    count = len(set(rank(name, rows, rows[:1000], {}, 0, lambda need: covered)))
    return {"strategy": name, "instances": count, "cpu_seconds": round(time.process_time() - started, 2)}


def measure(file: Path) -> dict[str, float]:
    """Rank a file's instances; return seconds and MB."""
    marks = [time.process_time()]

    def rows() -> Iterator[Row]:
        yield from lines(file)
        marks.append(time.process_time())

    count = len(set(OPERA.rank(rows(), [], {}, None)))
    total = time.process_time()
    return {
        "instances": count,
        "cpu_seconds": round(total, 2),
        "encode_seconds": round(marks[1] - marks[0], 2),
        "rank_seconds": round(total - marks[1], 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main(sizes: list[int]) -> None:
    """Print one line of JSON a size, and the ratio of the last two."""
    seconds = []
    with temporary.folder("bench") as folder:
        for size in sizes:
            file = folder / f"{size}.jsonl"
            encoder = msgspec.json.Encoder()
            with file.open("wb") as stream:
                for line in generate(size):
                    stream.write(encoder.encode(line) + b"\n")
            command = [sys.executable, __file__, "--measure", str(file)]
            figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print(json.dumps(figures), flush=True)
            seconds.append(figures["cpu_seconds"])
            for name in STRATEGIES if size == sizes[0] else ():
                command = [sys.executable, __file__, "--strategy", str(file), name]
                print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)
            file.unlink()
    if len(seconds) > 1:
        print(json.dumps({"ratio": round(seconds[-1] / seconds[-2], 1)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    elif sys.argv[1:2] == ["--strategy"]:
        print(json.dumps(measure_strategy(Path(sys.argv[2]), sys.argv[3])))
    else:
        main([int(size) for size in sys.argv[1:]] or list(SIZES))
