"""TVM's importer of ONNX models, and what all its frontends have in common: how modules are compiled and run."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any

from opera.compilers import (
    APART,
    CONVERSION,
    COUNTED,
    DECLARED,
    EACH,
    GIVEN,
    INFERENCE,
    KERNEL,
    LAWFUL,
    LESS,
    MADE,
    NODE,
    OPTIMISATION,
    OWN,
    RECIPES,
    SOURCE,
    Case,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.shared import messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import BITS, Made, Read, Refusal
from opera.compilers.tvm import lawful, reading, trial
from opera.compilers.tvm.interpreter import Declared, Interpreted, digest
from opera.compilers.tvm.nodes import Each, FromFront
from opera.compilers.tvm.values import feed, read
from opera.programs.values import Value

PRELOAD = ("tvm.relax.frontend.onnx",)

UNSUPPORTED = messages.table("tvm", "onnx", "every")
"""The words of its importer, of what comes after it, and of what all importers share."""

RECIPE = f"{RECIPES}.tvm"

QUICK = "quick"
"""What is asked first: LLVM's optimiser takes two thirds of the time, and has nothing to do with the importer."""

PLAIN, SHAPED = "plain", "shaped"
"""Without keep_params_in_input, which is off by default, initializers become constants of the module; and with shape_dict, in
which a length of 0 is one."""

INPUT = "input "
"""Before an input that may be left out, where it is told with parameters."""

PLACES = {
    r"(?s)R\.shape\(\[[^\]]*\b[A-Za-z_]\w*.*relax/op/": INFERENCE,  # it names a shape with sizes that are not known
    r"legalize_ops|\btopi\b|tirx?/|\bte/|s_tir|codegen|target/|tir\.": KERNEL,
    r"relax/transform/(?:fold|fuse|dead|canonical|eliminate|simplify)": OPTIMISATION,
    r"relax/frontend|onnx_frontend|tflite_frontend|fx_graph_translator|exported_program_translator": CONVERSION,
}
"""Folders and modules of its sources: what an operator is lowered to counts as its kernel."""


class Onnx:
    """TVM's importer of ONNX models; the other frontends have importers of their own, and this one for what else there is."""

    VARIANTS: tuple[Variant, ...] = (
        Variant("inputs", "onnx", preload=PRELOAD, trial=QUICK),
        Variant("constants", "onnx-constants", after="rejected", preload=PRELOAD, trial=QUICK),
    )
    PACKAGES = ("tvm", "tvm_ffi")
    WAYS: tuple[Way, ...] = (
        Way("unoptimised", LESS, "opt_level=0, and LLVM at opt-level 0"),
        Way("relax", APART, "the imported Relax module, its operators as numpy has them"),
        Way(EACH, EACH, "each operator of the imported Relax module, compiled by itself"),
        Way("mixed", OWN, "the imported Relax module, its operators as numpy has them, and what it has not compiled by itself"),
        Way(COUNTED, COUNTED, "the imported Relax module, its indices counted from the front"),
        Way("alone", NODE, "an operator of the imported Relax module, compiled by itself"),
        Way("declared", DECLARED, "what the imported Relax module states of its outputs"),
        Way("made", MADE, "the imported Relax module"),
        Way("lawful", LAWFUL, "the imported Relax module"),
        Way(
            PLAIN, GIVEN, "from_onnx(model) alone, its initializers constants", "load", ("onnx", "onnx-constants"),
            ("imported with keep_params_in_input=True", "without keep_params_in_input"),
        ),
        Way(
            SHAPED, GIVEN, "from_onnx(model, shape_dict=...), the shapes that it states", "load", ("onnx", "onnx-constants"),
            ("imported without shape_dict", "with shape_dict"),
        ),
        Way("source", SOURCE, "the code that converts it", "load", ("onnx", "onnx-constants", "pt2")),
    )  # fmt: skip
    PLACES: Mapping[str, str] = PLACES
    PYTHON: tuple[str, ...] = PRELOAD

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import tvm_onnx as recipe

        if case.way == SOURCE:
            raise Read("\n".join(_sources(str(case.model))))
        if case.way == SHAPED:
            return _shaped(str(case.model))
        return _plain(str(case.model)) if case.way == PLAIN else recipe.load(str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        from opera.compilers.recipes import tvm as recipe

        if case.way in ("", PLAIN, SHAPED):
            return recipe.compile_module(loaded)
        module, *rest = loaded
        if case.way == "made":
            raise Made(digest(module))
        if case.way == "lawful":
            lawful.check(module)
        machines: dict[str, Callable[[Any], Any]] = {
            "relax": Interpreted, "declared": Declared, QUICK: trial.machine,
            EACH: Each, "mixed": partial(Each, mixed=True), "alone": partial(Each, check=True),
            COUNTED: FromFront,
        }  # fmt: skip
        return machines.get(case.way, _unoptimised)(module), *rest

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import tvm_onnx as recipe

        found: list[Value] = recipe.infer(compiled, case.feeds, feed, read)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def opsets(self) -> dict[str, int]:
        """Return the newest version that any of its converters is for: it declares none, and reads all without a word."""
        return _opsets()

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the converter that raised, else the one that TVM chooses for the operator: `onnx_frontend:Conv._impl_v11`.

        The expanded body of a function has many converters; where none raised, it is told as `expanded Softmax`.
        """
        import onnx
        from tvm.relax.frontend.onnx import onnx_frontend

        for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
            if frame.f_code.co_name.startswith("_impl_v") and frame.f_globals.get("__name__") == onnx_frontend.__name__:
                return f"onnx_frontend:{frame.f_code.co_qualname}"
        name = case.operator.rsplit("::", 1)[-1]
        model = onnx.load(case.model)
        nodes = [node.op_type for node in model.graph.node]
        if case.library == "onnx" and nodes != [name]:
            return f"expanded {name}"
        converter = onnx_frontend._get_convert_map().get(nodes[0]) if len(nodes) == 1 else None
        if converter is None:
            return name
        function = converter.get_converter(_opset(model))
        return f"{function.__module__.rsplit('.', 1)[-1]}:{function.__qualname__}"

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return steps("onnx", involved)


@cache
def _opsets() -> dict[str, int]:
    from tvm.relax.frontend.onnx import onnx_frontend

    names = (name for converter in onnx_frontend._get_convert_map().values() for name in dir(converter))
    found = {int(version[1]) for name in names if (version := re.fullmatch(r"_impl_v(\d+)", name))}
    return {"": max(found)} if found else {}


def _opset(model: Any) -> int:
    return next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 1)


def _sources(path: str) -> list[str]:
    """Return where the code stands that converts each node, and which of its attributes and inputs that never reads."""
    import onnx
    from tvm.relax.frontend.onnx import onnx_frontend

    model, found = onnx.load(path), []
    unused = _unused(path) - {x.name for x in model.graph.initializer}  # whose values the converter knows
    for node in model.graph.node:
        converter = onnx_frontend._get_convert_map().get(node.op_type)
        if converter is not None and onnx.defs.has(node.op_type, node.domain):
            formals = [x.name for x in onnx.defs.get_schema(node.op_type, _opset(model), node.domain).inputs]
            inputs = {f"{INPUT}{formals[k]}": frozenset({k}) for k, x in enumerate(node.input[: len(formals)]) if x}
            given = {
                "attr": reading.Given(reading.NAMED, {x.name: frozenset({x.name}) for x in node.attribute}),
                "inputs": reading.Given(reading.PLACED, inputs),
            }
            function = converter.get_converter(_opset(model))
            lost = [x for x, places in inputs.items() if {node.input[k] for k in places} <= unused]
            found.append(reading.told(function.__qualname__, function, given, lost))
    return list(dict.fromkeys(found))


def _unused(path: str) -> set[str]:
    """Return the inputs of a file's graph that the imported module has, and does not use; none where it cannot be imported."""
    from tvm import relax

    from opera.compilers.recipes import tvm_onnx as recipe

    with suppress(Exception):  # what fails to load is told by its own message
        module, *_ = recipe.load(path)
        main = module["main"]
        return {str(x) for x in main.params} - {str(x) for x in relax.analysis.free_vars(main.body)}
    return set()


def _shaped(path: str) -> Any:
    """Return what `load` does of the model with the shapes that it states itself; where an axis has no length it is imported as
    one that is not known, but for that. Raises Refusal where there is no such axis: it makes no difference then."""
    import onnx
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(path)
    ranked = (x for x in model.graph.input if x.type.HasField("tensor_type") and x.type.tensor_type.HasField("shape"))
    dims = {x.name: x.type.tensor_type.shape.dim for x in ranked}
    shapes = {name: [y.dim_value for y in of] for name, of in dims.items() if all(y.HasField("dim_value") for y in of)}
    if not any(0 in x for x in shapes.values()):
        raise Refusal("no input has an axis of length 0")
    module, params = detach_params(from_onnx(model, shape_dict=shapes, keep_params_in_input=True))
    return module, [x.name for x in model.graph.input], params.get("main", ()), len(model.graph.output)


def _plain(path: str) -> Any:
    """Return what the recipe's `load` does, of a module that holds the model's initializers as constants."""
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(path)
    return from_onnx(model), [item.name for item in model.graph.input], (), len(model.graph.output)


def _unoptimised(module: Any) -> Any:
    """Return the virtual machine of a module that was compiled with every optimisation off that has a switch."""
    import tvm
    from tvm import relax

    return relax.VirtualMachine(trial.compiled(module, 0), tvm.cpu())


def steps(importer: str, involved: Involved) -> Recipe:
    """Return what a script does that loads a model by this importer's recipe."""
    own = f"{RECIPE}_{importer}"
    more = {}
    if involved.lists:
        more = {"feed": f"{RECIPE}:feed_lists", "read": f"{RECIPE}:read_lists"}
    elif involved.dtypes & BITS.keys():
        more = {"feed": f"{RECIPE}_packed:feed_packed", "read": f"{RECIPE}_packed:read_packed"}
    return Recipe((f"{own}:load",), (f"{RECIPE}:compile_module",), (f"{own}:infer",), more)
