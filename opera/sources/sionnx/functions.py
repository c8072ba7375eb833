"""The functions that specifications may call. Plain ones take values, special ones draw, or take an expression as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from opera.sources.sionnx import elements
from opera.sources.sionnx.scene import Drawn, Reject, Scene
from opera.sources.sionnx.spec import Node

if TYPE_CHECKING:
    from opera.sources.sionnx.expressions import Compiled, Compiler


def _shape(scene: Scene, value: Any) -> list[int]:
    if isinstance(value, Drawn):
        return list(value.shape)
    out = []
    while isinstance(value, list):
        out.append(len(value))
        value = value[0] if value else None
    return out


def _values(scene: Scene, value: Any) -> Any:
    return scene.elements(value).tolist() if isinstance(value, Drawn) else value


def _number(scene: Scene, dtype: str) -> int:
    from opera.libraries.onnx.codec import ELEMENT_TYPES

    return ELEMENT_TYPES[dtype]


def _cut(scene: Scene, items: list[Any], *places: int) -> list[Any]:
    """Items without those at some places."""
    dropped = {place % len(items) for place in places} if items else set()
    return [x for place, x in enumerate(items) if place not in dropped]


def _put(scene: Scene, items: list[Any], place: int, value: Any) -> list[Any]:
    """Items with another one at a place."""
    out = list(items)
    out[place] = value
    return out


def _insert(scene: Scene, items: list[Any], place: int, value: Any) -> list[Any]:
    out = list(items)
    out.insert(place, value)
    return out


def _broadcasts(scene: Scene, *shapes: list[int]) -> list[int]:
    """The shape that shapes broadcast to."""
    try:
        return list(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        raise Reject("shapes that do not broadcast") from None


def _has(scene: Scene, name: str) -> bool:
    """Whether this version of the operator has an attribute or input of that name."""
    return any(x.name == name for x in scene.spec.attributes) or any(x.name == name for x in scene.spec.inputs)


def _types(scene: Scene, name: str) -> list[str]:
    """The types that an input or output may have."""
    return list(next((x.types for x in (*scene.spec.inputs, *scene.spec.outputs) if x.name == name), ()))


def _enumerated(scene: Scene, dtype: str) -> str:
    """The name of a dtype in TensorProto.DataType."""
    from onnx import TensorProto

    return str(TensorProto.DataType.Name(_number(scene, dtype)))


def _type_proto(scene: Scene, name: str) -> bytes:
    from opera.libraries.onnx.codec import named_type

    data: bytes = named_type(name).SerializeToString(deterministic=True)
    return data


def _item(scene: Scene, name: str) -> str:
    """The type of what a sequence or optional holds."""
    return name.partition("(")[2].removesuffix(")")


PLAIN: dict[str, Callable[..., Any]] = {
    "shape": _shape,
    "rank": lambda scene, value: len(_shape(scene, value)) if isinstance(value, Drawn) else len(value),
    "size": lambda scene, value: math.prod(_shape(scene, value) if isinstance(value, Drawn) else value),
    "len": lambda scene, value: len(value.items or value.shape) if isinstance(value, Drawn) else len(value),
    "sum": lambda scene, items: sum(items),
    "product": lambda scene, items: math.prod(items),
    "min": lambda scene, *items: min(*items),
    "max": lambda scene, *items: max(*items),
    "abs": lambda scene, value: abs(value),
    "ceil": lambda scene, value: math.ceil(value),
    "floor": lambda scene, value: math.floor(value),
    "divide_up": lambda scene, a, b: -(-a // b),
    "range": lambda scene, *ends: list(range(*ends)),
    "reversed": lambda scene, items: list(reversed(items)),
    "sorted": lambda scene, items: sorted(items),
    "zip": lambda scene, *lists: [tuple(x) for x in zip(*lists, strict=True)],
    "cut": _cut,
    "put": _put,
    "insert": _insert,
    "repeat": lambda scene, value, count: [value] * count,
    "join": lambda scene, lists: [x for items in lists for x in items],
    "divisors": lambda scene, n: [x for x in range(1, n + 1) if n % x == 0] if n else [1],
    "broadcasts": _broadcasts,
    "values": _values,
    "type": lambda scene, value: value.type,
    "number": _number,
    "enumerated": _enumerated,
    "has": _has,
    "types": _types,
    "type_proto": _type_proto,
    "item": _item,
    "constant": lambda scene, dtype, values: elements.exact(values, dtype),
    "is_float": lambda scene, dtype: elements.is_float(dtype),
    "is_integer": lambda scene, dtype: elements.is_integer(dtype),
    "is_signed": lambda scene, dtype: not dtype.startswith(("u", "b")) or dtype == "bfloat16",
    "bits": lambda scene, dtype: elements.bits(dtype),
    "lowest": lambda scene, dtype: elements.limits(dtype)[0],
    "highest": lambda scene, dtype: elements.limits(dtype)[1],
    "given": lambda scene, value: value is not None,
    "all": lambda scene, items: all(items),
    "any": lambda scene, items: any(items),
    "log2": lambda scene, value: int(math.log2(value)),
    "text": lambda scene, value: str(value),
    "float": lambda scene, value: float(value),
}  # fmt: skip


def _vector(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`vector(n, E)`: E drawn n times."""
    count, body = map(compiler.compiled, args)
    return lambda scene: [body(scene) for _ in range(count(scene))]


def _dim(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`dim()`, `dim(LOW..HIGH)`: the size of a dimension, drawn anew."""
    if not args:
        return lambda scene: scene.size()
    low, high = _ends(compiler, args[0])
    return lambda scene: scene.size(low(scene), high(scene))


def _dims(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`dims(n)`, `dims(LOW..HIGH)`: the sizes of n dimensions; a second range bounds each size."""
    if args[0].kind == "range":
        low, high = _ends(compiler, args[0])
        count: Compiled = lambda scene: scene.rank(low(scene), high(scene))  # noqa: E731
    else:
        count = compiler.compiled(args[0])
    if len(args) == 1:
        return lambda scene: scene.sizes(count(scene))
    least, most = _ends(compiler, args[1])
    return lambda scene: scene.sizes(count(scene), least(scene), most(scene))


def _ends(compiler: Compiler, node: Node) -> tuple[Compiled, Compiled]:
    if node.kind != "range":
        value = compiler.compiled(node)
        return value, value
    low, high = map(compiler.compiled, node.parts)
    return low, high


def _broadcast(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`broadcast(S)`: a shape that broadcasts to S."""
    shape = compiler.compiled(args[0])
    return lambda scene: scene.broadcast(shape(scene))


def _permutation(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`permutation(n)`: the numbers below n in an order that is drawn."""
    count = compiler.compiled(args[0])

    def value(scene: Scene) -> list[int]:
        number = count(scene)
        option = scene.decide(scene.part, ["same order", "reversed"] if number > 1 else [])
        order = list(range(number))
        if option == "same order":
            return order
        if option == "reversed":
            return order[::-1]
        uniform = scene.source()
        for place in range(number - 1, 0, -1):
            other = uniform.whole(0, place)
            order[place], order[other] = order[other], order[place]
        return order

    return value


def _subset(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`subset(LIST)`: some of its items, in order; `subset(LIST, LOW..HIGH)` so many of them."""
    whole = compiler.compiled(args[0])
    ends = _ends(compiler, args[1]) if len(args) > 1 else None

    def value(scene: Scene) -> list[Any]:
        items = list(whole(scene))
        low, high = (0, len(items)) if ends is None else (ends[0](scene), min(ends[1](scene), len(items)))
        if low > high:
            raise Reject(f"no {low} of {len(items)} items")
        names = ["none" if not low else f"{low} of them", "all" if high == len(items) else f"{high} of them"]
        option = scene.decide(scene.part, names if low < high else [])
        uniform = scene.source()
        count = {names[0]: low, names[1]: high}.get(option) if option else uniform.whole(low, high)
        left = list(range(len(items)))
        while len(left) > (count or 0):
            left.pop(uniform.whole(0, len(left) - 1))
        return [items[x] for x in left]

    return value


def _axes(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`axes(r)`: some of the axes of r dimensions, in any order, some counted from the end (`axes(r, LOW..HIGH)`: so many)."""
    subset = _subset(compiler, node, [Node("call", ("range", args[0]), node.line), *args[1:]])
    rank = compiler.compiled(args[0])

    def value(scene: Scene) -> list[int]:
        part, number = scene.part, rank(scene)
        found: list[int] = subset(scene)
        scene.part = f"sign of {part}"
        option = scene.decide(scene.part, ["negative", "mixed"] if found and _negative_axes(scene) else [], 0.3)
        uniform = scene.source()
        if option == "negative":
            found = [x - number for x in found]
        elif option == "mixed":
            found = [x - number if uniform() < 0.5 else x for x in found]
            for place in range(len(found) - 1, 0, -1):
                other = uniform.whole(0, place)
                found[place], found[other] = found[other], found[place]
        scene.part = part
        return found

    return value


def _negative_axes(scene: Scene) -> bool:
    """Axes counted from the end came with opset 11, to all operators at once."""
    return scene.spec.since >= 11 or scene.spec.domain != ""


def _axis(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`axis(r)`: one axis of r dimensions, counted from the end as well where the version knows that."""
    rank = compiler.compiled(args[0])

    def value(scene: Scene) -> Any:
        number = rank(scene)
        return scene.number(-number if _negative_axes(scene) else 0, number - 1, id(node))

    return value


def _tensor(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`tensor(TYPE, SHAPE)`: a tensor whose elements are drawn, for an attribute."""
    dtype, shape = map(compiler.compiled, args)

    def value(scene: Scene) -> Any:
        drawn = Drawn(scene.part, dtype(scene), shape(scene))
        drawn.what = scene.decide(scene.part, list(elements.options(drawn.type, scene.options.special)))
        return drawn

    return value


def _graph(compiler: Compiler, node: Node, args: list[Node]) -> Compiled:
    """`graph("name", ...)`: the body of a control-flow operator, see bodies.py."""
    made = [compiler.compiled(x) for x in args]

    def value(scene: Scene) -> Any:
        from opera.sources.sionnx import bodies

        return bodies.graph(scene, *(x(scene) for x in made))

    return value


SPECIAL: dict[str, Callable[[Compiler, Node, list[Node]], Compiled]] = {
    "vector": _vector,
    "dim": _dim,
    "dims": _dims,
    "broadcast": _broadcast,
    "permutation": _permutation,
    "subset": _subset,
    "axes": _axes,
    "axis": _axis,
    "tensor": _tensor,
    "graph": _graph,
}
