"""The simplest calls of a library, given what another call is given: where these fail alike, its operator is incidental."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec
import numpy as np

from opera import resources
from opera.libraries import Cast
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import CONTAINERS, Message, Named, RandomTensor, Sequence, Tensor, Value

KINDS = 2
"""Kinds of inputs of a program that simple calls are made of: one decides, or two do."""
ORDINARY = ("float32", "int64", "int32", "bool")
"""Dtypes that tests are full of; what is odd comes before them. The first, with axes and elements, tells nothing."""


NUMPY = frozenset(x for x in CONTAINERS if x == CONTAINERS[x])
"""Dtypes of which NumPy makes tensors itself."""


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simple call, a row of `[[simplest]]` in `instrumentation/`.

    Attributes:
        operator: Its operator.
        input: Its input; `outputs`: what it returns, of a library that names that.
        second: Another input that is given the same.
        param: Parameter that is given a dtype, of a call that is asked where a parameter called one of `named` holds one.
        constant: Whether what it returns does not hang on what it is given: it is asked of whatever a program is given.
        panel: Whether it is only asked when a simpler one fails alike: so many kinds of operators must, before it is told that
            none matters.
        given: Further parameters that it needs.
        node: An operator that the library's exporter makes of it alone, a key of `[nodes]`: it is asked of what fails of such.
    """

    operator: str
    input: str
    second: str = ""
    outputs: tuple[str, ...] = ()
    param: str = ""
    named: tuple[str, ...] = ()
    constant: bool = False
    panel: bool = False
    node: str = ""
    given: dict[str, int] = {}

    @property
    def args(self) -> list[str]:
        """What is given by position."""
        return [x for x in (self.input, self.second, self.param, *self.given) if x]


def declared(library: str) -> list[Declared]:
    """Return the simplest calls of a library, the simplest first; then those that become one node of an exported file."""
    told = resources.declaration("instrumentation", library)
    nodes = ((node, *row, "") for node, row in told.get("nodes", {}).items())  # one input, or two
    of_nodes = [Declared(operator, one, other, node=node) for node, operator, one, other, *_ in nodes]
    return [*msgspec.convert(told.get("simplest", []), list[Declared]), *of_nodes]


def is_constant(call: Program) -> bool:
    """Whether what a call returns hangs on none of its inputs, as is declared of its operator."""
    return any(x.constant and (x.operator,) == call.operators for x in declared(call.library))


def calls(
    library: str,
    program: Program,
    context: Callable[[Declared], dict[str, Value]],
    typed: Callable[[str], Value],
    cast: Cast | None = None,
    *,
    panel: bool = False,
    nodes: Collection[str] = (),
) -> list[Instance]:
    """Return the simplest calls of each odd kind of input that a program is given, and of each odd dtype among its parameters;
    or those of the panel.

    The library may reject some: which types an operator takes is not asked here.

    Args:
        typed: Name of a dtype → what a parameter holds that names it.
        cast: From the dtype that a program returns to the one that it should, or from that of an input to that of the result:
            what is computed in another dtype is cast at the end, or before, so that is tried alone, too.
        nodes: Operators of an exported file that it fails at.
    """
    given = list(_kinds(program))
    rows = [x for x in declared(library) if x.panel is panel and (not x.node or x.node in nodes)]
    odd = [x for x in given if not _plain(x)][:KINDS]
    made = [_call(library, row, value, {}, context) for value in odd for row in rows if not (row.param or row.constant)]
    made += [_call(library, row, x, {}, context) for row in rows if row.constant for x in given[:1]]
    for row in (x for x in rows if x.param):
        held = [(ORDINARY[0], x) for x in list(dict.fromkeys(_dtypes(program, row.named)))[:KINDS]]
        held += [(cast.begins, typed(cast.ends))] if cast is not None and cast.begins in NUMPY else []
        made += [_call(library, row, Tensor.of(np.ones(1, of)), {row.param: x}, context) for of, x in held]
    return made


def _call(
    library: str,
    row: Declared,
    value: Value,
    params: dict[str, Value],
    context: Callable[[Declared], dict[str, Value]],
) -> Instance:
    given = tuple(Operand(name, value) for name in (row.input, row.second) if name)
    return Instance(library, row.operator, {**row.given, **params}, given, row.outputs, context(row))


def _kinds(program: Program) -> Iterator[Value]:
    """Yield an input of each kind that a program is given, the odd ones first: a dtype, with elements or none, 0-d or not."""
    found: dict[tuple[object, ...], Value] = {}
    for x in (operand.value for operand in program.inputs):
        if isinstance(x, Tensor | RandomTensor):
            found.setdefault((x.dtype, 0 in x.shape, x.shape == ()), x)
        elif isinstance(x, Sequence):
            found.setdefault((x.type,), x)
    yield from sorted(found.values(), key=lambda x: isinstance(x, Tensor | RandomTensor) and x.dtype in ORDINARY)


def _plain(value: Value) -> bool:
    """Whether an input is as ordinary as any: nothing that fails of it fails for what it is."""
    tensor = isinstance(value, Tensor | RandomTensor)
    return tensor and value.dtype == ORDINARY[0] and 0 not in value.shape and value.shape != ()


def _dtypes(program: Program, names: tuple[str, ...]) -> Iterator[Value]:
    """Yield the dtypes that parameters of these names hold."""
    for call in program.instances():
        for name, x in call.params.items():
            if name in names and isinstance(x, str | int | Named) and not isinstance(x, bool | Message):
                yield x
