"""Inputs that satisfy the constraints of an API, and learn from what the library takes.

As in DocTer's fuzzer, parameters are made in the order of what they depend on, each from its dtype to its number of
dimensions, its shape, its values and its structure; an optional one is given with probability .6, and with probability
.2 one parameter takes a boundary value. What documents leave open (do two tensors have one shape? which dtype?) is
guessed, and every guess that the library takes becomes likelier (DocTer's `guided` mode); most later inputs vary one
that was taken.
"""

from __future__ import annotations

import random
from collections import ChainMap
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from opera.programs.values import Tensor, Value
from opera.sources.docter import make
from opera.sources.docter.check import broken
from opera.sources.docter.constraints import Api, Parameter, references
from opera.sources.docter.make import Scene, Unsatisfied

OPTIONAL = 0.6
BOUNDARY = 0.2
VARIED = 0.7
"""Share of inputs that vary one which the library took, once there is one."""
TRIES = 12
"""Attempts at one input, after which constraints count as not satisfiable."""
POOL = 32
T = TypeVar("T")


class Input(msgspec.Struct):
    """One input.

    Attributes:
        values: Parameter → value, of those that are given, in the order in which they were made.
        variables: Free variable of shapes → its number.
        guesses: What was guessed: question → answer.
        forms: Parameter → the form it was made in.
    """

    values: dict[str, Value]
    variables: dict[str, int]
    guesses: dict[str, str]
    forms: dict[str, str]


class Generator:
    """Makes the inputs of one API, reproducible by its seed and what it is told of their fate."""

    def __init__(
        self, api: Api, seed: int, *, boundary: float = BOUNDARY, optional: float = OPTIONAL,
        given: dict[str, Value] | None = None,
    ) -> None:  # fmt: skip
        """`given` are arguments that constraints may refer to, and that are no part of what is made."""
        self.api, self._seed, self._boundary, self._optional = api, seed, boundary, optional
        self._given = given or {}
        self._order = order(api)
        self._taken: list[Input] = []
        self._scores: dict[tuple[str, str], list[int]] = {}

    def draw(self, number: int) -> Input:
        """Return input `number`. Raises Unsatisfied after TRIES attempts."""
        reason = ""
        for attempt in range(TRIES):
            rng = random.Random(f"{self._seed}/{self.api.file or self.api.title}/{number}/{attempt}")
            try:
                if self._taken and rng.random() < VARIED:
                    made = self._vary(rng, rng.choice(self._taken))
                else:
                    made = self._fresh(rng, bare=number == 0)
            except Unsatisfied as error:
                reason = str(error)
                continue
            wrong = broken(self.api, {**self._given, **made.values})
            wrong = {(name, category) for name, category in wrong if name in made.values}
            if not wrong:
                return made
            reason = "; ".join(f"{category} of {name}" for name, category in sorted(wrong))
        raise Unsatisfied(reason)

    def learn(self, made: Input, taken: bool) -> None:
        """Hear whether the library took an input."""
        for question, answer in (*made.guesses.items(), *made.forms.items()):
            score = self._scores.setdefault((question, answer), [0, 0])
            score[not taken] += 1
        if taken:
            if len(self._taken) >= POOL:
                self._taken.pop(0)
            self._taken.append(made)

    def _guess(self, rng: random.Random, question: str, answers: dict[str, float]) -> str:
        """Choose an answer, by its prior weight times the square of the share that was taken so far."""
        weights = []
        for answer, prior in answers.items():
            good, bad = self._scores.get((question, answer), (0, 0))
            weights.append(prior * ((good + 1) / (good + bad + 1.5)) ** 2)
        return rng.choices(list(answers), weights)[0]

    def _fresh(self, rng: random.Random, bare: bool) -> Input:
        made = Input({}, {}, {}, {})
        scene = self._scene(rng, made)
        given = set(self.api.required)
        for name in self.api.optional:
            answer = self._guess(rng, f"given {name}", {"yes": self._optional, "no": 1 - self._optional})
            if answer == "yes" and not bare:
                given.add(name)
                made.guesses[f"given {name}"] = "yes"
        odd = rng.choice(sorted(given)) if given and rng.random() < self._boundary else ""
        for name in self._order:
            if name in given:
                self._add(scene, made, self.api.parameters[name], name == odd)
        return made

    def _scene(self, rng: random.Random, made: Input) -> Scene:
        def guess(question: str, answers: dict[str, float]) -> str:
            if question not in made.guesses:
                made.guesses[question] = self._guess(rng, question, answers)
            return made.guesses[question]

        return Scene(rng, ChainMap(made.values, self._given), made.variables, guess)

    def _add(self, scene: Scene, made: Input, parameter: Parameter, odd: bool) -> None:
        forms = make.forms(parameter, parameter.name in self.api.required)
        if not forms:
            raise Unsatisfied(f"no value of {parameter.name} can be made")
        form = self._guess(scene.rng, parameter.name, forms)
        made.forms[parameter.name] = form
        made.values[parameter.name] = make.value(scene, parameter, form, odd)

    def _vary(self, rng: random.Random, old: Input) -> Input:
        """Return a variation of an input that was taken: one parameter anew, another size, another dtype."""
        made = Input(dict(old.values), dict(old.variables), dict(old.guesses), dict(old.forms))
        tensors = list(make.tensors(made.values))
        change = rng.choices(["parameter", "size", "dtype"], [0.5, 0.35 if tensors else 0, 0.15 if tensors else 0])[0]
        if change == "size":
            return _resized(rng, made)
        if change == "dtype":
            return _retyped(rng, made, self._guess)
        scene = self._scene(rng, made)
        name = rng.choice(self._order) if self._order else ""
        if not name:
            return made
        if name in self.api.optional and rng.random() > self._optional:
            made.values.pop(name, None)
            made.forms.pop(name, None)
            made.guesses.pop(f"given {name}", None)
        else:
            self._add(scene, made, self.api.parameters[name], rng.random() < self._boundary)
        return made


def _resized(rng: random.Random, made: Input) -> Input:
    """Give one size another value wherever it occurs, so that sizes that belong together stay together."""
    sizes = sorted({size for tensor in make.tensors(made.values) for size in tensor.shape})
    if not sizes:
        return made
    old, new = rng.choice(sizes), make.size(rng)
    numbers = rng.random() < 0.5

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            shape = tuple(new if x == old else x for x in value.shape)
            return make.reshaped(rng, value, shape)
        if isinstance(value, list | tuple):
            return type(value)(change(x) for x in value)
        return new if numbers and type(value) is int and value == old and old > 1 else value

    made.values = {name: change(value) for name, value in made.values.items()}
    made.variables = {name: new if x == old else x for name, x in made.variables.items()}
    return made


def _retyped(rng: random.Random, made: Input, guess: Callable[..., str]) -> Input:
    """Give all tensors of one dtype another one."""
    old = rng.choice(sorted({x.dtype for x in make.tensors(made.values)}))
    new = guess(rng, "dtype", make.DTYPE_WEIGHTS)
    made.guesses["dtype"] = new

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return make.retyped(rng, value, new) if value.dtype == old else value
        return type(value)(change(x) for x in value) if isinstance(value, list | tuple) else value

    made.values = {name: change(value) for name, value in made.values.items()}
    return made


def order(api: Api) -> list[str]:
    """Return the parameters in order of what they depend on; a circle is entered where the API's own order enters it."""
    names = [x for x in dict.fromkeys((*api.required, *api.optional)) if x in api.parameters]
    done: list[str] = []
    doing: set[str] = set()

    def visit(name: str) -> None:
        if name in doing or name in done or name not in names:
            return
        doing.add(name)
        for other in sorted(references(api.parameters[name])):
            visit(other)
        doing.discard(name)
        done.append(name)

    for name in names:
        visit(name)
    return done
