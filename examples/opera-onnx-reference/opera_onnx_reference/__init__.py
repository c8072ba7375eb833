"""ONNX's reference evaluator as a compiler under test: a worked example of a compiler that comes from outside opera."""

from opera.compilers import Recipe, Variant
from opera.compilers.shared.messages import Rule
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy
from opera.programs.values import Optional, Sequence, Tensor

NAME = "onnx-reference"
PACKAGE = "onnx"
PRELOAD = ("onnx.reference",)
UNSUPPORTED = (
    Rule(r"No registered (?:implementation|schema) for operator '(\w+)'", r"no implementation of \1"),
    Rule(r"Node type '(\w+)' from domain '[\w.]*' is unknown", r"no implementation of \1"),
)


def version():
    import onnx

    return onnx.__version__


def options():
    return {}


def prepare():
    """A fresh worker needs no set-up: the evaluator is single-threaded and quiet."""


class Onnx:
    """The frontend: how it loads the models of one library."""

    VARIANTS = (Variant("inputs", "onnx"),)

    def load(self, case):
        from opera_onnx_reference.recipe import load

        return load(str(case.model))

    def compile(self, loaded, case):
        return loaded

    def infer(self, compiled, case):
        from opera_onnx_reference.recipe import infer

        results = infer(compiled, {name: _plain(value) for name, value in case.feeds.items()}, case.outputs)
        return [_value(result) for result in results]

    def unsupported(self, case, stage, error):
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case, error):
        return case.operator

    def recipe(self, artefact, involved):
        """What the script of a finding prints: the functions that are called above."""
        return Recipe(load=("opera_onnx_reference.recipe:load",), infer=("opera_onnx_reference.recipe:infer",))


FRONTENDS = {"onnx": Onnx()}


def _plain(value):
    match value:
        case Tensor(dtype="string"):
            return value.array().astype(str)
        case Tensor(dtype=dtype):
            import ml_dtypes

            low = getattr(ml_dtypes, dtype, None)
            return (
                value.array()
                if low is None
                else value.array().astype(low)
                if "int" in dtype
                else value.array().view(low)
            )
        case Sequence(items=items):
            return [_plain(item) for item in items]
        case Optional(value=inner):
            return None if inner is None else _plain(inner)
    raise CannotCarry(f"opera cannot feed a {type(value).__name__}")


def _value(result):
    if result is None:
        return Optional("", None)
    if isinstance(result, list):
        items = tuple(_value(item) for item in result)
        return Sequence(items[0].dtype if items and isinstance(items[0], Tensor) else "", items)
    return of_numpy(result)
