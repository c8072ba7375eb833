"""Exporters to ONNX: what they write is checked by onnx, and run by ONNX Runtime."""

from pathlib import Path

import onnx

from opera.compilers.recipes.onnxruntime import load, run, run_low


def check_and_load(path):
    onnx.checker.check_model(Path(path).read_bytes(), full_check=True)
    return load(path)


def infer(session, feeds):
    """Run it; outputs come in their order, for an exporter may give them names of its own."""
    return run(session, feeds, [item.name for item in session.get_outputs()])


def infer_low(session, feeds, feed, read):
    return run_low(session, feeds, [item.name for item in session.get_outputs()], feed, read)
