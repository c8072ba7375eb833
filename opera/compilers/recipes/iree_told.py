"""IREE's compiler tells by diagnostics why it fails, and returns False: the errors among them become what is raised."""

import re
from pathlib import Path


def diagnosed(context, path):
    """Return the list that messages of errors are appended to, each once, with the operator of ONNX that stands at their line.

    The command iree-compile shows that line, of the file at the path, below the message.
    """
    said = []

    def told(diagnostic):
        if diagnostic.severity.name == "ERROR":
            message = "\n".join([diagnostic.message, *operator(str(diagnostic.location), path)])
            if message not in said:
                said.append(message)
        return True

    context.attach_diagnostic_handler(told)
    return said


def operator(location, path):
    """Return `of "onnx.X"` for a location `loc("model.mlir":LINE:COLUMN)` in the file at the path; a list that may be empty."""
    lines = []
    if found := re.search(r'":(\d+):\d+', location):
        lines = Path(path).read_text(encoding="utf-8").split("\n")[int(found[1]) - 1 : int(found[1])]
    return [f'of "onnx.{name}"' for line in lines for name in re.findall(r'torch\.operator "onnx\.([\w.]+)"', line)]


def fail(said):
    raise RuntimeError("\n".join(said) or "IREE failed without a word")
