"""OpenVINO's importer of TensorFlow's graphs, given Keras models and what they export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opera.compilers import Case, Involved, Recipe, Variant
from opera.compilers.openvino import onnx as reader
from opera.compilers.openvino.onnx import Onnx
from opera.compilers.shared import keras_live, messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import DeclaredOtherwise

PRELOAD = (keras_live.BACKEND, "openvino.frontend.tensorflow.utils", "openvino.tools.ovc.convert_impl")

UNSUPPORTED = messages.table("openvino", "core", "tensorflow")
"""The words of every route, and of its translators."""

TENSORFLOW = ("saved_model", "live")
"""Artefacts that this importer takes; others OpenVINO reads itself."""


class Keras(Onnx):
    """OpenVINO's importer of TensorFlow's graphs; ONNX's files it reads as they are."""

    VARIANTS = (
        Variant("live", "live", preload=PRELOAD),
        Variant("saved-model", "saved_model", after="sampled", preload=PRELOAD),
        Variant("onnx", "onnx", after="rejected"),
    )

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import openvino_keras as recipe

        match case.artefact:
            case "saved_model":
                return recipe.load_saved(str(case.model))
            case "live":
                live = keras_live.rebuilt(case)
                try:
                    with keras_live.graph_of(live):
                        return recipe.load_live(live.model, case.outputs)
                except recipe.DeclaredOtherwise as error:
                    raise DeclaredOtherwise(str(error)) from None
        return super().load(case)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        rules = UNSUPPORTED if case.artefact in TENSORFLOW else reader.UNSUPPORTED
        return keras_live.no_graph(error) or first_rule(rules, stage, error)

    def operators(self, case: Case) -> Iterable[str]:
        live = keras_live.rebuilt(case) if case.artefact == "live" else None
        return dict.fromkeys(x.type for x in live.concrete.graph.get_operations()) if live is not None else ()

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        load = {"saved_model": f"{reader.RECIPE}_keras:load_saved", "live": f"{reader.RECIPE}_keras:load_live"}
        return reader.steps(involved, load.get(artefact, f"{reader.RECIPE}:load"))
