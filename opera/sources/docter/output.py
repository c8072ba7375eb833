"""A folder that DocTer's fuzzer wrote: its pickled inputs, read by an unpickler that knows a few harmless names.

Scripts in it are never executed, and whatever else a pickle names ends its reading.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opera.errors import CorpusError, SourceError
from opera.programs import values
from opera.programs.values import Named, Tensor, Value
from opera.sources.docter.constraints import Api, Parameter
from opera.sources.docter.files import Unread

SUFFIX = ".yaml_workdir"
ORDER = "gen_order"
MAX_PICKLE = 16 << 20
"""Bytes of one input."""
MAX_INPUTS = 100_000
MAX_NODES = 10_000
MAX_PLACE = 100_000
"""Number that a pickle gives one of its objects."""
MAX_DEPTH = 16
MAX_ELEMENTS = 1 << 20


def recognised(folder: Path) -> bool:
    """Return whether a folder holds, at some depth, folders of inputs."""
    return folder.is_dir() and next(_folders(folder), None) is not None


def _folders(folder: Path) -> Iterator[Path]:
    if folder.name.endswith(SUFFIX):
        yield folder
    for depth in range(1, 5):
        yield from sorted(
            path for path in folder.glob("/".join("*" * depth)) if path.name.endswith(SUFFIX) and path.is_dir()
        )


def read_folder(folder: Path) -> tuple[list[tuple[Api, list[dict[str, Any]]]], list[Unread]]:
    """Read all inputs: API → encoded arguments, in the order in which they were generated.

    Raises SourceError where there are none that can be read.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    unread: list[Unread] = []
    count = 0
    for place in _folders(folder):
        name = place.name.removesuffix(SUFFIX)
        for path in _in_order(place):
            count += 1
            if count > MAX_INPUTS:
                return _apis(found), [*unread, Unread(str(folder), f"more than {MAX_INPUTS} inputs")]
            try:
                made = read(path)
            except CorpusError as error:
                unread.append(Unread(f"{name}/{path.name}", error.what))
                continue
            found.setdefault(name, []).append(made)
    if not found:
        reason = f"the first: {unread[0].reason}" if unread else "without --save, DocTer keeps only inputs that crash"
        raise SourceError(f"{folder} holds no input that can be read", cause=reason)
    return _apis(found), unread


def _apis(found: dict[str, list[dict[str, Any]]]) -> list[tuple[Api, list[dict[str, Any]]]]:
    made = []
    for name, inputs in found.items():
        names = tuple(dict.fromkeys(x for arguments in inputs for x in arguments))
        package = "torch" if name.startswith("torch.") else "tensorflow"
        made.append((Api(name, package, (), names, {x: Parameter(x) for x in names}, file=name), inputs))
    return made


def _in_order(place: Path) -> list[Path]:
    """Return the pickles of a folder: those that `gen_order` names first, in its order."""
    there = {path.stem: path for path in sorted(place.glob("*.p")) if path.is_file() and not path.is_symlink()}
    order = place / ORDER
    names: list[str] = []
    if order.is_file() and order.stat().st_size < MAX_PICKLE:
        names = [Path(line.strip()).stem for line in order.read_text(errors="replace").splitlines()]
    return [there[name] for name in dict.fromkeys((*names, *there)) if name in there]


def read(path: Path) -> dict[str, Any]:
    """Read one pickled input: parameter → encoded value. Raises CorpusError."""
    try:
        if path.stat().st_size > MAX_PICKLE:
            raise CorpusError(f"larger than {MAX_PICKLE} bytes")
        data = path.read_bytes()
        if any(name.endswith("PUT") and place > MAX_PLACE for name, place in _places(data)):
            raise CorpusError(f"it numbers objects beyond {MAX_PLACE}")
        found = _Unpickler(io.BytesIO(data)).load()
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise CorpusError("it holds no arguments by name")
        nodes = [0]
        return {name: values.encode(_value(item, nodes, 0)) for name, item in found.items()}
    except CorpusError:
        raise
    except Exception as error:  # whatever a damaged or hostile pickle makes of it
        raise CorpusError(f"no pickle that opera reads: {type(error).__name__}: {str(error)[:120]}") from None


def _places(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the operations of a pickle that have a number: an unpickler takes memory for the largest that PUT names."""
    for operation, argument, _ in pickletools.genops(data):
        if isinstance(argument, int):
            yield operation.name, argument


class _Unpickler(pickle.Unpickler):
    """Knows the names that inputs of DocTer are made of, and no others."""

    def find_class(self, module: str, name: str) -> Any:
        made = _KNOWN.get((module.replace("numpy._core", "numpy.core"), name))
        if made is not None:
            return made
        if module == "torch" and name in values.CONTAINERS:
            return Named("dtype", name)
        if module == "numpy" and name in values.CONTAINERS:
            return Named("dtype", name)
        raise CorpusError(f"the pickle names {module[:60]}.{name[:60]}")

    def persistent_load(self, pid: Any) -> Any:
        raise CorpusError("the pickle refers to what is outside of it")


class _Dtype:
    """Stands for numpy.dtype, whose own way of being built from a pickle was not made for hostile ones."""

    def __init__(self, name: Any, *_: Any) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[<>|=]?([biufcSUO]\d{0,5}|\?)", name):
            raise CorpusError("the pickle builds a dtype in an odd way")
        self.name, self.order = name.lstrip("<>|="), "<"

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise CorpusError("the pickle builds a dtype with parts")
        self.order = ">" if state[1] == ">" else "<"

    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.name if self.name != "?" else "?")


class _Array:
    """Stands for numpy.ndarray, likewise."""

    found: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if (
            not isinstance(dtype, _Dtype)
            or not all(type(x) is int and x >= 0 for x in shape)
            or math.prod(shape) > MAX_ELEMENTS
        ):
            raise CorpusError("the pickle builds an array in an odd way")
        if dtype.name.startswith("O"):
            if not isinstance(raw, list) or not all(isinstance(x, str | bytes) for x in raw):
                raise CorpusError("the pickle builds an array of objects")
            flat = np.array(
                [x if isinstance(x, bytes) else x.encode("utf-8", "surrogatepass") for x in raw], dtype=object
            )
        else:
            flat = np.frombuffer(raw if isinstance(raw, bytes) else b"?", dtype.numpy())
        self.found = flat.reshape(shape, order="F" if fortran else "C")


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, _Dtype) or dtype.name.startswith("O") or not isinstance(data, bytes):
        raise CorpusError("the pickle builds a number in an odd way")
    return np.frombuffer(data, dtype.numpy())[0]


def _encoded(text: Any, coding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or coding != "latin1":
        raise CorpusError("the pickle encodes in an odd way")
    return text.encode("latin1")


def _storage(data: Any) -> Any:
    """What torch.save wrote of a tensor's memory; `weights_only` builds nothing but tensors."""
    import torch

    return torch.load(io.BytesIO(data), weights_only=True)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Any:
    import torch

    if (
        not all(type(x) is int and 0 <= x <= MAX_ELEMENTS for x in (offset, *size, *stride))
        or math.prod(size) > MAX_ELEMENTS
    ):
        raise CorpusError("the pickle builds a tensor in an odd way")
    return torch._utils._rebuild_tensor(storage, offset, size, stride)


def _eager(item: Any, *_: Any) -> Any:
    return item


def _tf_dtype(number: Any) -> Named:
    if not isinstance(number, str):
        raise CorpusError("the pickle names a dtype by number")
    return Named("dtype", number)


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encoded,
    ("builtins", "complex"): complex,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): dict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch.storage", "_load_from_bytes"): _storage,
    ("torch", "Size"): tuple,
    ("tensorflow.python.framework.ops", "convert_to_tensor"): _eager,
    ("tensorflow.python.framework.dtypes", "as_dtype"): _tf_dtype,
}  # fmt: skip


def _value(item: Any, nodes: list[int], depth: int) -> Value:
    """Return opera's value of what was unpickled. Raises CorpusError for what is none, is too large, or holds itself."""
    nodes[0] += 1
    if nodes[0] > MAX_NODES or depth > MAX_DEPTH:
        raise CorpusError("too many values, or nested too deep")
    match item:
        case None | bool() | str() | bytes() | Named():
            return item
        case np.generic():
            return _value(item.item(), nodes, depth + 1)
        case int() | float():
            return item
        case complex():
            return Named("complex", repr(item))
        case list() | tuple():
            made = [_value(x, nodes, depth + 1) for x in item]
            return tuple(made) if isinstance(item, tuple) else made
        case dict() if all(isinstance(name, str) for name in item):
            return {name: _value(x, nodes, depth + 1) for name, x in item.items()}
        case _Array() if item.found is not None:
            return Tensor.of(item.found)
        case _Dtype():
            return Named("dtype", item.numpy().name)
    if type(item).__module__ == "torch" and type(item).__name__ == "Tensor":
        from opera.libraries.torch import codec as torch_values

        found = torch_values.tensor(item)
        return found
    raise CorpusError(f"a value of type {type(item).__name__[:60]}")
