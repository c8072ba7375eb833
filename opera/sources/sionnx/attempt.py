"""A specification made ready, and one attempt at a case of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.errors import SourceError
from opera.sources.sionnx import elements
from opera.sources.sionnx.case import Case, Given, Input
from opera.sources.sionnx.expressions import Compiled, Compiler
from opera.sources.sionnx.parse import DTYPES
from opera.sources.sionnx.scene import MAX_ELEMENTS, Drawn, Reject, Scene
from opera.sources.sionnx.spec import Attribute, Let, Node, Operand, Shape, Spec, Where

LEFT_OUT, DEFAULT = "left out", "default"


class Program:
    """A resolved specification, ready to be run.

    Attributes:
        variables: Type variable → types, of those that are combined; an input of types of its own has its name here.
        admitted: Type variable → all types that the schema admits for it.
        typed: Input → its type variable, or its own name.
        attribute_parts: Names of attributes, which full mode covers first.
        steps: Statements and the functions of their expressions, in order; `said` are those that name something.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.compiler = Compiler(spec.file)
        self.attributes = {x.name: x for x in spec.attributes}
        self.inputs = {x.name: x for x in spec.inputs}
        self.attribute_parts = frozenset(self.attributes)
        self.variables: dict[str, tuple[str, ...]] = {}
        for operand in spec.inputs:
            name = operand.variable or operand.name
            if operand.types:
                self.variables.setdefault(name, operand.types)
        self.admitted = dict(self.variables)
        self.typed = {x.name: x.variable or x.name for x in spec.inputs}
        self.steps: list[Any] = []
        self.said: dict[str, Any] = {}
        self.outputs: Compiled | None = None
        for statement in spec.body:
            self._compile(statement)
        for attribute in spec.attributes:
            known = self._ranged(attribute) or attribute.types == ("tensor",)
            if attribute.name not in self.said and attribute.required and not known:
                raise SourceError(
                    f"{spec.file}:{spec.line}: {spec.signature} of version {spec.since} needs the attribute {attribute.name!r}",
                    cause="the schema names no default, and the specification does not say what it may be",
                    fix=f"say `let {attribute.name} = ...;`",
                )

    @staticmethod
    def _ranged(attribute: Attribute) -> bool:
        return bool(attribute.minimum or attribute.maximum or attribute.choices)

    def _compile(self, statement: Any) -> None:
        compiled = self.compiler.compiled
        if isinstance(statement, Where):
            self.steps.append((statement, compiled(statement.condition)))
            return
        name = statement.name
        if isinstance(statement, Let):
            types = self._types(statement)
            if types is not None:
                narrowed = tuple(x for x in self.variables[name] if x in types)
                if narrowed:
                    self.variables[name] = narrowed
                    return
                raise SourceError(
                    f"{self.spec.file}:{statement.line}: {self.spec.signature} admits none of these types for {name}",
                    cause=f"it admits {', '.join(self.variables[name])}",
                )
            if name in self.variables and name not in self.inputs:
                self.variables = {key: types for key, types in self.variables.items() if key != name}
            value = compiled(statement.value)
            if name == "outputs":
                self.outputs = value
            default = None if statement.default is None else compiled(statement.default)
            step = statement, value, default, self.compiler.within(statement.value)
        else:
            parts = (statement.dims, statement.repeated, statement.condition)
            step = statement, *(None if x is None else compiled(x) for x in parts), self._span(statement)
        self.said[name] = step
        self.steps.append(step)

    def _types(self, statement: Let) -> set[str] | None:
        """Return the types that a statement restricts a type variable to, None where it does something else."""
        if statement.name not in self.variables or statement.name in self.inputs:
            return None
        node = statement.value
        names = [x.parts[0] for x in (node.parts if node.kind == "choice" else (node,)) if x.kind in ("name", "string")]
        expected = len(node.parts) if node.kind == "choice" else 1
        return set(names) if len(names) == expected and all(x in DTYPES for x in names) else None

    def _span(self, statement: Shape) -> Any:
        """Return a function of the range of an operand's elements: (low, high), a list to choose from, or None."""
        return None if statement.values is None else self._spans(statement.values)

    def _spans(self, node: Node) -> Any:
        if node.kind == "range":
            low, high = map(self.compiler.compiled, node.parts)
            return lambda scene: (low(scene), high(scene))
        if node.kind == "if":
            then, other = self._spans(node.parts[0]), self._spans(node.parts[2])
            condition = self.compiler.compiled(node.parts[1])
            return lambda scene: then(scene) if condition(scene) else other(scene)
        if node.kind == "choice":
            return self.compiler.compiled(Node("items", node.parts, node.line))
        return self.compiler.compiled(node)

    def run(self, scene: Scene, number: int) -> Case:
        """Return a case. Raises Reject where the attempt is none."""
        run = _Run(self, scene)
        run.all()
        return run.case(number)


class _Run:
    """One attempt at a case."""

    def __init__(self, program: Program, scene: Scene) -> None:
        self.program, self.scene, self.spec = program, scene, program.spec
        self.given: dict[str, Any] = {}
        self.operands: dict[str, Drawn | None] = {}
        self.shared: list[int] | None = None
        scene.draw_operand = self._on_demand

    def all(self) -> None:
        scene, program = self.scene, self.program
        for attribute in self.spec.attributes:
            if attribute.name not in program.said:
                self._part(attribute.name)
                self._undeclared(attribute)
        for step in program.steps:
            statement = step[0]
            if isinstance(statement, Where):
                self._part("")
                if not step[1](scene):
                    raise Reject("a condition does not hold")
            elif isinstance(statement, Let):
                self._part(statement.name)
                self._let(*step)
            elif statement.name in program.inputs and statement.name not in self.operands:
                self._part(statement.name)
                self._shape(*step)
        for operand in self.spec.inputs:
            if operand.name not in self.operands:
                self._on_demand(operand.name)

    def _part(self, name: str) -> None:
        self.scene.part = self.scene.subject = name
        self.scene.decided = {}

    def _undeclared(self, attribute: Attribute) -> None:
        """Draw an attribute of which no statement says anything."""
        scene, name, default = self.scene, attribute.name, attribute.default
        kind = attribute.types[0]
        if not attribute.required:
            option = scene.decide(name, [LEFT_OUT, *([DEFAULT] if default is not None else [])], 0.35)
            if option or not (self.program._ranged(attribute) or default is not None):
                scene.names[name] = default
                if option == DEFAULT:
                    self.given[name] = default
                return
        if kind == "tensor":
            value: Any = self._any_tensor(name)
        elif attribute.choices:
            value = scene.choice(list(attribute.choices), list(attribute.choices))
        elif attribute.minimum or attribute.maximum:
            value = self._within(attribute, kind)
        elif kind == "int" and default in (0, 1):
            value = scene.choice([0, 1], ["0", "1"])
        elif kind == "float" and default:
            value = float(default) * scene.choice(
                [0.5, 1.0, 2.0, 0.0, -1.0], ["half", "same", "double", "0", "negative"]
            )
        elif kind == "float" and default is not None:
            value = scene.number(-1.0, 1.0, 0)
        else:
            value = default
        scene.names[name] = self.given[name] = value

    def _any_tensor(self, name: str) -> Drawn:
        """Draw a tensor of which nothing is said but that the operator needs it."""
        scene = self.scene
        dtype = scene.uniform.one(self.spec.outputs[0].types)
        return self._drawn(name, dtype, scene.sizes(scene.rank(0, 4)), None)

    def _within(self, attribute: Attribute, kind: str) -> Any:
        low, high = self._pair(attribute.minimum, attribute.maximum, (-10.0, 10.0))
        draw = float if kind.startswith("float") else int
        if kind.endswith("s"):
            return [draw(self.scene.number(draw(low), draw(high), 0)) for _ in range(self.scene.uniform.whole(1, 4))]
        return draw(self.scene.number(draw(low), draw(high), 0))

    def _pair(self, minimum: Any, maximum: Any, usual: tuple[float, float]) -> tuple[float, float]:
        """Return one of the ranges that a published file lists."""
        lows, highs = [[x for x in items if not isinstance(x, str)] for items in (minimum, maximum)]
        place = self.scene.uniform.whole(0, max(len(lows), len(highs), 1) - 1)
        low = lows[place] if place < len(lows) else usual[0]
        high = highs[place] if place < len(highs) else max(usual[1], low)
        return low, max(low, high)

    def _let(self, statement: Let, value: Any, default: Any, within: Any) -> None:
        scene, name, program = self.scene, statement.name, self.program
        attribute, operand = program.attributes.get(name), program.inputs.get(name)
        optional = (attribute is not None and not attribute.required) or (operand is not None and operand.optional)
        if optional and not statement.required:
            stated = default(scene) if default is not None else attribute.default if attribute is not None else None
            option = scene.decide(name, [LEFT_OUT, *([DEFAULT] if stated is not None else [])], 0.3)
            if option:
                if stated is not None and default is None and not within(scene, stated):
                    raise Reject(f"the default of {name} is not valid here")
                scene.names[name] = stated
                self._give(name, attribute, operand, stated if option == DEFAULT else None)
                return
        made = value(scene)
        if name in program.admitted and name not in program.inputs and name not in program.attributes:
            if made not in program.admitted[name]:
                raise Reject(f"{made} is no type of {name}")
            scene.types = {**scene.types, name: made}
        if made is None and default is not None:
            scene.names[name] = default(scene)
        else:
            scene.names[name] = made
        self._give(name, attribute, operand, made)

    def _give(self, name: str, attribute: Attribute | None, operand: Operand | None, value: Any) -> None:
        """Make a value that of an attribute or of an input, as this version has it."""
        if value is None:
            if (attribute is not None and attribute.required) or (operand is not None and not operand.optional):
                raise Reject(f"{name} cannot be left out")
            if operand is not None:
                self.operands[name] = None
            if attribute is not None or operand is not None:
                self.scene.boundaries.setdefault(name, LEFT_OUT)
        elif attribute is not None:
            self.given[name] = value
        elif operand is not None:
            dtype = self._type(operand)
            array = elements.exact(value, dtype) if not isinstance(value, np.ndarray) else value
            self.operands[name] = Drawn(name, dtype, list(array.shape), array)

    def _type(self, operand: Operand) -> str:
        """Return the type that an input has in this case."""
        found = self.scene.types.get(self.program.typed[operand.name])
        if found is None or found not in operand.types:
            raise Reject(f"{operand.name} cannot be of type {found}")
        return found

    def _on_demand(self, name: str) -> Any:
        """Draw an input that an expression refers to before a statement did, or of which none says anything."""
        operand = self.program.inputs.get(name)
        if operand is None or name in self.operands:
            return None
        before = self.scene.part, self.scene.subject, self.scene.decided
        self._part(name)
        step = self.program.said.get(name)
        if step is not None and isinstance(step[0], Shape):
            self._shape(*step)
        elif step is None:
            self._free(operand)
        self.scene.part, self.scene.subject, self.scene.decided = before
        return self.scene.names.get(name)

    def _shape(self, statement: Shape, dims: Any, repeated: Any, condition: Any, span: Any) -> None:
        scene, operand = self.scene, self.program.inputs[statement.name]
        if condition is not None and not condition(scene):
            self._leave_out(operand)
            return
        if operand.optional and not statement.required and scene.decide(operand.name, [LEFT_OUT], 0.3):
            self._leave_out(operand)
            return
        dtype = self._type(operand)

        def one(name: str, kind: str) -> Drawn:
            scene.part = f"shape of {operand.name}"
            shape = dims(scene)
            scene.part = operand.name
            if any(not isinstance(x, int) or x < 0 for x in shape):
                raise Reject(f"{shape} is no shape")
            return self._drawn(name, kind, shape, None if span is None else span(scene), statement.distinct)

        self._several(operand, dtype, one, None if repeated is None else repeated(scene))

    def _several(self, operand: Operand, dtype: str, one: Any, count: int | None) -> None:
        """Give an operand its tensor; its tensors, items, or nothing, where it is variadic, a sequence, an optional."""
        scene, name = self.scene, operand.name
        if operand.variadic:
            number = scene.rank(max(operand.least, 1), 4, f"number of {name}") if count is None else count
            if number < operand.least:
                raise Reject(f"{name} has {operand.least} at least")
            made = []
            for place in range(number):
                scene.names["place"] = place
                made.append(one(f"{name}_{place}" if place else name, dtype))
            for item in made:
                self.operands[item.name] = item
            if number:
                scene.names[name] = made[0]
            else:
                self.operands[name] = None
                scene.names[name] = None
            return
        kind, _, rest = dtype.partition("(")
        inner = rest.removesuffix(")")
        held = not (kind == "optional" and scene.decide(f"held by {name}", ["nothing"], 0.3))
        if kind == "optional":
            kind, _, rest = inner.partition("(")
        if not held:
            drawn = Drawn(name, dtype, [], held=False)
        elif kind == "sequence":
            number = self._count_of(name) if count is None else count
            items = []
            for place in range(number):
                scene.names["place"] = place
                items.append(one(f"{name}[{place}]", rest.rstrip(")")))
            drawn = Drawn(name, dtype, [], items=items)
        else:
            drawn = one(name, inner or dtype)
            drawn.type = dtype
        scene.names[name] = self.operands[name] = drawn

    def _count_of(self, name: str) -> int:
        option = self.scene.decide(f"length of {name}", ["0", "1"])
        return int(option) if option else self.scene.uniform.whole(2, 3)

    def _drawn(self, name: str, dtype: str, shape: list[int], span: Any, distinct: bool = False) -> Drawn:
        scene = self.scene
        total = 1
        for x in shape:
            total *= x
        if total > MAX_ELEMENTS:
            raise Reject("too many elements")
        what = ""
        if span is None:
            if "nonzero" in self.spec.properties and name == self.spec.inputs[-1].name:
                top = elements.limits(dtype)[1]
                span = (0.5, min(100.0, top)) if elements.is_float(dtype) else (1, min(100, int(top)))
            else:
                what = scene.decide(scene.part, list(elements.options(dtype, scene.options.special)))
        if isinstance(span, tuple):
            if span[1] < span[0] and total:
                raise Reject(f"no element lies between {span[0]} and {span[1]}")
            if span[1] < span[0]:
                span = (span[0], span[0])
            if distinct and span[1] - span[0] + 1 < total:
                raise Reject("too few values that differ")
            span = self._held(dtype, span)
            what = "" if distinct else scene.decide(scene.part, elements.ranged(dtype, *span))
        elif isinstance(span, list) and ((total and not span) or (distinct and len(span) < total)):
            raise Reject("too few values")
        return Drawn(name, dtype, shape, span=span, what=what, distinct=distinct)

    @staticmethod
    def _held(dtype: str, span: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return the part of a range that a dtype holds."""
        if dtype in ("string", "bool") or dtype.startswith("complex"):
            return span
        least, most = elements.limits(dtype)
        found = max(span[0], least), min(span[1], most)
        if found[0] > found[1]:
            raise Reject(f"{dtype} holds nothing between {span[0]} and {span[1]}")
        return found

    def _free(self, operand: Operand) -> None:
        """Draw an input of which no statement says anything."""
        scene = self.scene
        if operand.optional and scene.decide(operand.name, [LEFT_OUT], 0.3):
            self._leave_out(operand)
            return
        span = None
        if operand.minimum or operand.maximum:
            span = self._pair(operand.minimum, operand.maximum, elements.usual(self._type(operand)))
        together = "broadcasting" in self.spec.properties

        def one(name: str, kind: str) -> Drawn:
            if together:
                shape = self._together(name)
            else:
                before = scene.part
                rank = scene.rank(operand.min_rank, min(operand.max_rank, 6), f"rank of {name}")
                scene.part = f"sizes of {before}"
                shape = scene.sizes(rank)
                scene.part = before
            return self._drawn(name, kind, shape, span)

        self._several(operand, self._type(operand), one, None)

    def _together(self, name: str) -> list[int]:
        """Return a shape for an input of an operator that broadcasts.

        Before opset 7 (8 where there may be many inputs) all had one shape, but that the attribute `broadcast` allowed the
        second one to have the last dimensions only.
        """
        scene, shape = self.scene, self._common()
        many = self.spec.inputs[-1].variadic
        if self.spec.since >= (8 if many else 7):
            return scene.broadcast(shape)
        if name == self.spec.inputs[-1].name and scene.names.get("broadcast") == 1:
            return shape[scene.uniform.whole(0, max(len(shape) - 1, 0)) :]
        return list(shape)

    def _common(self) -> list[int]:
        """Return the shape that all inputs broadcast to."""
        if self.shared is None:
            ranks = [(x.min_rank, x.max_rank) for x in self.spec.inputs]
            rank = self.scene.rank(max(x for x, _ in ranks), min(x for _, x in ranks), "rank")
            before, self.scene.part = self.scene.part, "sizes"
            self.shared = self.scene.sizes(rank)
            self.scene.part = before
        return self.shared

    def _leave_out(self, operand: Operand) -> None:
        if not operand.optional:
            raise Reject(f"{operand.name} cannot be left out")
        self.operands[operand.name] = None
        self.scene.names[operand.name] = None
        self.scene.boundaries[operand.name] = LEFT_OUT

    def case(self, number: int) -> Case:
        scene, spec = self.scene, self.spec
        outputs = self._outputs()
        inputs: list[Input | None] = []
        for operand in spec.inputs:
            place = 0
            while (name := f"{operand.name}_{place}" if place else operand.name) in self.operands:
                drawn = self.operands[name]
                inputs.append(None if drawn is None else Input(name, drawn.type, scene.elements(drawn)))
                place += 1
                if not operand.variadic:
                    break
        while inputs and inputs[-1] is None:
            inputs.pop()
        boundaries = {**{f"type {name}": kind for name, kind in scene.types.items()}, **scene.boundaries}
        target = next(iter(scene.forced.items()), ("", ""))
        attributes = {name: self._attribute(name, value) for name, value in self.given.items()}
        return Case(
            spec.operator, spec.domain, spec.since, attributes, tuple(inputs), outputs, boundaries, target, number
        )

    def _attribute(self, name: str, value: Any) -> Given:
        kind = self.program.attributes[name].types[0]
        if kind == "tensor" and isinstance(value, Drawn):
            value = self.scene.elements(value)
        if kind == "float":
            value = float(value)
        elif kind == "floats":
            value = [float(x) for x in value]
        elif kind == "int":
            value = int(value)
        return Given(kind, value)

    def _outputs(self) -> tuple[str, ...]:
        scene, said = self.scene, self.program.outputs
        wanted = scene.names.get("outputs") if said is not None else None
        if isinstance(wanted, list):
            return tuple(wanted)
        names = [x.name for x in self.spec.outputs]
        variadic = bool(self.spec.outputs) and self.spec.outputs[-1].variadic
        if isinstance(wanted, int):
            if variadic:
                names += [f"{names[-1]}_{place}" for place in range(1, wanted - len(names) + 1)]
            return tuple(names[:wanted])
        needed = sum(not x.optional for x in self.spec.outputs) or 1
        if needed >= len(names):
            return tuple(names)
        option = scene.decide("outputs", ["fewest", "all"], 0.9)
        asked = {"fewest": needed, "all": len(names)}.get(option) or scene.uniform.whole(needed, len(names))
        return tuple(names[:asked])
