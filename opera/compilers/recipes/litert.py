"""LiteRT Torch: a PyTorch module becomes a TensorFlow Lite model, which LiteRT's interpreter runs."""

import litert_torch

from opera.compilers.recipes.interpreter import infer

litert_torch.config.show_progress = False


def export(model, path, args, dtypes):
    """Convert it. Its types of 64 bits would become such of 32 bits, unless they are asked for."""
    taken = [str(tensor.dtype).removeprefix("torch.") for tensor in args]
    wide = not {"int64", "float64"}.isdisjoint([*taken, *dtypes])
    litert_torch.convert(model, args, enable_x64=wide).export(path)
    return path


def infer_placed(interpreter, feeds, outputs, dtypes):
    """Run it: its signature names inputs and outputs by their places."""
    known = interpreter.get_signature_runner("serving_default").get_input_details()
    given = {f"args_{place}": array for place, array in enumerate(feeds.values())}
    fed = {name: array.astype(known[name]["dtype"]) for name, array in given.items() if name in known}
    found = infer(interpreter, fed, [f"output_{place}" for place in range(len(outputs))])
    narrow = {array.dtype.name: array.dtype for array in feeds.values()}.get("bfloat16")
    # The converter makes float32 of inputs of bfloat16, and so of what is computed of them.
    return [
        array.astype(narrow) if narrow and dtype == "bfloat16" and array.dtype.name == "float32" else array
        for array, dtype in zip(found, dtypes, strict=False)
    ]
