"""Where the time of a Keras test goes: CPU milliseconds of each step, up to OpenVINO's compiled model and a TFLite file.

    python benchmarks/keras_stages.py WORKSPACE [--tests 60]

WORKSPACE holds Keras tests that were wrapped (`opera run --library keras`). What fails in a step is counted and passed over.
"""

from __future__ import annotations

import argparse
import gc
import random
import warnings
from contextlib import suppress
from pathlib import Path

from stages import Clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--tests", type=int, default=60)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    from opera.compilers.recipes import openvino as compiling
    from opera.compilers.recipes import openvino_keras as loading
    from opera.compilers.shared import keras_live
    from opera.libraries.keras import library, wrap

    keras_live.prepare()
    gc.collect()
    gc.freeze()  # as workers' servers do
    folders = sorted(path.parent for path in (given.workspace / "tests").rglob("instance.json"))
    random.Random(1).shuffle(folders)
    clock = Clock()
    for folder in folders[: given.tests]:
        program = library._stored(folder)
        with suppress(Exception):  # what a compiler refuses, or fails at, is none of this
            live = clock("build", wrap.build, program)
            clock("run", live.run)
            clock("run again", live.run)
            with suppress(Exception):
                clock("trace", lambda made=live: made.concrete)
                clock("convert to TFLite", live.tflite)
            again = clock("build again", wrap.build, program)
            outputs = [f"output_{place}" for place in range(len(again.model.outputs))]
            model = clock("OpenVINO: load", loading.load_live, again.model, outputs)
            clock("OpenVINO: compile", compiling.compile_model, model)
    print(*clock.table(), sep="\n")


if __name__ == "__main__":
    main()
