"""Expressions of the language as functions of a Scene. What draws at random is a decision with boundaries (scene.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opera.errors import SourceError, near
from opera.sources.sionnx import elements
from opera.sources.sionnx.parse import DTYPES
from opera.sources.sionnx.scene import Reject, Scene
from opera.sources.sionnx.spec import Node

Compiled = Callable[[Scene], Any]


class Compiler:
    """Compiles the expressions of one file; what is wrong in them is told with file and line."""

    def __init__(self, file: str) -> None:
        self.file = file

    def compiled(self, node: Node) -> Compiled:
        """Return the function of an expression. Raises SourceError for a call of an unknown function."""
        made: Compiled = getattr(self, f"_{node.kind}")(node)
        return made

    def wrong(self, node: Node, what: str, cause: str = "") -> SourceError:
        return SourceError(f"{self.file}:{node.line}: {what}", cause=cause, fix="docs/sionnx.md tells the language")

    def _literal(self, node: Node) -> Compiled:
        value = node.parts[0]
        return lambda scene: value

    _int = _float = _string = _literal

    def _none(self, node: Node) -> Compiled:
        return lambda scene: None

    def _true(self, node: Node) -> Compiled:
        return lambda scene: True

    def _false(self, node: Node) -> Compiled:
        return lambda scene: False

    def _name(self, node: Node) -> Compiled:
        name = node.parts[0]

        def value(scene: Scene) -> Any:
            if name in scene.names:
                return scene.names[name]
            return self.unknown(scene, name, node)

        return value

    def unknown(self, scene: Scene, name: str, node: Node) -> Any:
        """Return what a name means that no statement defined: an input is drawn, a dtype is itself, another is a size."""
        if name in DTYPES:
            return name
        made = scene.draw_operand(name)
        if made is None:
            before, scene.part = scene.part, name
            made = scene.size()
            scene.part = before
            scene.names[name] = made
        return made

    def _arithmetic(self, node: Node) -> Compiled:
        left, right = self.compiled(node.parts[0]), self.compiled(node.parts[2])
        operation = ARITHMETIC[node.parts[1]]
        return self._guarded(node, lambda scene: operation(left(scene), right(scene)))

    def _guarded(self, node: Node, function: Compiled) -> Compiled:
        def value(scene: Scene) -> Any:
            try:
                return function(scene)
            except ZeroDivisionError:
                raise Reject("division by zero") from None
            except (TypeError, IndexError, ValueError, AttributeError, OverflowError) as error:
                raise self.wrong(node, f"{scene.spec.operator}-{scene.spec.since}: {error}") from None

        return value

    def _negative(self, node: Node) -> Compiled:
        inner = self.compiled(node.parts[0])
        return self._guarded(node, lambda scene: -inner(scene))

    def _compare(self, node: Node) -> Compiled:
        left, right = self.compiled(node.parts[0]), self.compiled(node.parts[2])
        operation = COMPARISONS[node.parts[1]]
        return self._guarded(node, lambda scene: operation(left(scene), right(scene)))

    def _in(self, node: Node) -> Compiled:
        left, right = self.compiled(node.parts[0]), self.within(node.parts[1])
        return self._guarded(node, lambda scene: right(scene, left(scene)))

    def _not_in(self, node: Node) -> Compiled:
        left, right = self.compiled(node.parts[0]), self.within(node.parts[1])
        return self._guarded(node, lambda scene: not right(scene, left(scene)))

    def _not(self, node: Node) -> Compiled:
        inner = self.compiled(node.parts[0])
        return lambda scene: not inner(scene)

    def _and(self, node: Node) -> Compiled:
        left, right = map(self.compiled, node.parts)
        return lambda scene: left(scene) and right(scene)

    def _or(self, node: Node) -> Compiled:
        left, right = map(self.compiled, node.parts)
        return lambda scene: left(scene) or right(scene)

    def _if(self, node: Node) -> Compiled:
        then, condition, other = map(self.compiled, node.parts)
        return lambda scene: then(scene) if condition(scene) else other(scene)

    def _index(self, node: Node) -> Compiled:
        whole, place = map(self.compiled, node.parts)
        return self._guarded(node, lambda scene: whole(scene)[place(scene)])

    def _slice(self, node: Node) -> Compiled:
        whole, *ends = (None if x is None else self.compiled(x) for x in node.parts)
        assert whole is not None
        return self._guarded(node, lambda scene: whole(scene)[slice(*(None if x is None else x(scene) for x in ends))])

    def _items(self, node: Node) -> Compiled:
        parts = [(self._spread_of(x), True) if x.kind == "spread" else (self.compiled(x), False) for x in node.parts]

        def value(scene: Scene) -> list[Any]:
            out: list[Any] = []
            for part, spread in parts:
                if spread:
                    out.extend(part(scene))
                else:
                    out.append(part(scene))
            return out

        return self._guarded(node, value)

    def _spread_of(self, node: Node) -> Compiled:
        """`D...`: the items of a list; a name that nothing defined is the sizes of some dimensions."""
        inner = node.parts[0]
        whole = self.compiled(inner)
        if inner.kind != "name":
            return whole
        name = inner.parts[0]

        def value(scene: Scene) -> Any:
            if name not in scene.names:
                before, scene.part = scene.part, name
                scene.names[name] = scene.sizes(scene.rank(0, 3))
                scene.part = before
            return scene.names[name]

        return value

    def _each(self, node: Node) -> Compiled:
        body, names, whole = self.compiled(node.parts[0]), node.parts[1], self.compiled(node.parts[2])
        kept = None if node.parts[3] is None else self.compiled(node.parts[3])

        def value(scene: Scene) -> list[Any]:
            before = {name: scene.names[name] for name in names if name in scene.names}
            out = []
            for item in whole(scene):
                values = (item,) if len(names) == 1 else item
                scene.names.update(zip(names, values, strict=True))
                if kept is None or kept(scene):
                    out.append(body(scene))
            for name in names:
                scene.names.pop(name, None)
            scene.names.update(before)
            return out

        return self._guarded(node, value)

    def _range(self, node: Node) -> Compiled:
        low, high = map(self.compiled, node.parts)
        key = id(node)
        return self._guarded(node, lambda scene: scene.number(low(scene), high(scene), key))

    def _choice(self, node: Node) -> Compiled:
        parts = node.parts
        if any(x.kind == "spread" for x in parts):
            whole = self._items(node)

            def spread(scene: Scene) -> Any:
                items = whole(scene)
                if not items:
                    raise Reject("nothing to choose from")
                return scene.choice(items, _labels([_label(x) for x in items]))

            return spread
        made = [self.compiled(x) for x in parts]
        labels = _labels([_shown(x, place) for place, x in enumerate(parts)])
        return lambda scene: scene.choice(made, labels)(scene)

    def _call(self, node: Node) -> Compiled:
        from opera.sources.sionnx import functions

        name, *args = node.parts
        if name in functions.SPECIAL:
            return self._guarded(node, functions.SPECIAL[name](self, node, args))
        if name not in functions.PLAIN:
            known = [*functions.SPECIAL, *functions.PLAIN]
            raise self.wrong(
                node, f"there is no function {name!r}", near(name, known) or f"known are {', '.join(sorted(known))}"
            )
        function = functions.PLAIN[name]
        made = [self.compiled(x) for x in args]
        return self._guarded(node, lambda scene: function(scene, *(x(scene) for x in made)))

    def _spread(self, node: Node) -> Compiled:
        raise self.wrong(node, "... stands after an item of a list only")

    def within(self, node: Node) -> Callable[[Scene, Any], bool]:
        """Return what tells whether a value is one of those that an expression may be. Nothing is drawn for ranges."""
        if node.kind == "range":
            low, high = map(self.compiled, node.parts)
            return lambda scene, value: low(scene) <= value <= high(scene)
        if node.kind == "choice":
            whole = [self.within(x) for x in node.parts]
            return lambda scene, value: any(x(scene, value) for x in whole)
        if node.kind == "if":
            then, other = self.within(node.parts[0]), self.within(node.parts[2])
            condition = self.compiled(node.parts[1])
            return lambda scene, value: then(scene, value) if condition(scene) else other(scene, value)
        if node.kind == "items":
            made = self._items(node)
            return lambda scene, value: value in made(scene)
        if node.kind == "spread":
            made = self.compiled(node.parts[0])
            return lambda scene, value: value in made(scene)
        if elements.is_literal(node):
            literal = self.compiled(node)
            return lambda scene, value: value == literal(scene)
        if node.kind == "call" and node.parts[0] == "axis":
            rank = self.compiled(node.parts[1])
            return lambda scene, value: -rank(scene) <= value < rank(scene)
        if node.kind == "name":
            named = self.compiled(node)
            return lambda scene, value: _holds(named(scene), value)
        return lambda scene, value: True


def _holds(known: Any, value: Any) -> bool:
    return value in known if isinstance(known, list) else bool(value == known)


def _label(value: Any) -> str:
    return str(value)[:40]


def _shown(node: Node, place: int) -> str:
    """Return what an alternative is called among the boundaries: what it is where it is brief, its number elsewhere."""
    if node.kind == "name" or (elements.is_literal(node) and node.parts):
        return _label(node.parts[0])
    if node.kind in ("none", "true", "false"):
        return node.kind
    if node.kind == "negative" and elements.is_literal(node.parts[0]):
        return _label(f"-{node.parts[0].parts[0]}")
    if node.kind == "range":
        ends = [_shown(x, place) for x in node.parts]
        if not any(x.startswith("choice ") for x in ends):
            return "..".join(ends)
    return f"choice {place + 1}"


def _labels(labels: list[str]) -> list[str]:
    """Make labels differ."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out


def _add(left: Any, right: Any) -> Any:
    return left + right


def _divide(left: Any, right: Any) -> Any:
    """Whole numbers are divided to whole ones, rounded down."""
    return left // right if isinstance(left, int) and isinstance(right, int) else left / right


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divide, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
