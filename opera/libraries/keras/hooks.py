"""Capture points of Keras: layers that are called, and functions of its public namespaces that tests call.

`install` hooks the points of instrumentation/keras.toml, by kind:

- `layers`: base classes whose `__call__` is seen, layers called by layers too (they are marked with the outer one);
- `constructors`: base classes whose `__new__` is seen, for layers whose configuration cannot be had;
- `functions`: namespaces whose functions are seen, at every module of Keras that holds them, where a test calls them.

Keras runs on TensorFlow, or on the backend that the environment variable KERAS_BACKEND names; keras.json has no say.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera.capture.recorder import LeftOut, Recorder, replace
from opera.capture.sites import Frames, Site
from opera.errors import NotInstalled
from opera.libraries.calls import Watching
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import calls
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras.codec import NotRepresentable
from opera.programs import values
from opera.programs.values import Value

SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "KERAS_BACKEND": "tensorflow"}
"""What the environment may say otherwise."""
MASK = "mask"
OPS, BELOW = "keras.src.ops", frozenset(("core", "image", "linalg", "math", "nn", "numpy"))
"""Where Keras's functions lie, and in which of its modules those that call one of the backend's module of that name."""


def install(recorder: Recorder, points: dict[str, list[str]]) -> None:
    """Hook the points; see opera.capture.Capture. Raises NotInstalled where the backend is missing."""
    _import_keras()
    watch = _Watch(recorder)
    for point in points.get("constructors", ()):
        replace(f"{point}.__new__", watch.constructor)
    for point in points.get("layers", ()):
        replace(f"{point}.__call__", watch.layer)
    names = {name: item for name, item in keras_api.objects().items() if keras_api.kind(name) == "function"}
    namespaces = tuple(points.get("functions", ()))
    _everywhere({id(item): watch.function(name, item) for name, item in names.items() if name.startswith(namespaces)})


@contextmanager
def watching(recorder: Recorder) -> Iterator[Watching]:
    """Prepare for calls that a generator makes; what is given wraps each: they are seen wherever they are made."""
    calls.begin_anew()
    yield nullcontext
    calls.begin_anew()


@contextmanager
def inside(recorder: Recorder) -> Iterator[None]:
    """See what layers and functions of Keras call, too, as long as this lasts.

    A call of what [inner] of instrumentation/keras.toml names is one of the layer that it names there. A function of a
    backend that a layer or another function calls by itself is the public one that calls it. What is recorded has real
    tensors: calls within a graph that is traced have none.
    """
    from keras import Layer
    from keras.src import backend

    watch, original = _Watch(recorder, inner=True), Layer.__call__
    public = {name: item for name, item in keras_api.objects().items() if not isinstance(item, type)}
    below = [(name, of) for name, item in public.items() if (of := _below(item)) is not None]
    wrapped = {id(item): (watch.function(name, item, below=True), item) for name, item in below}
    wrapped |= {id(item): (watch.function(name, item), item) for name, item in public.items()}
    for point, operator in keras_api.instrumentation().inner.items():
        item = functools.reduce(getattr, point.split("."), backend)
        wrapped[id(item)] = watch.as_layer(operator, item), item
    Layer.__call__ = watch.layer(original)
    _everywhere({name: wrapper for name, (wrapper, _) in wrapped.items()})
    try:
        yield
    finally:
        Layer.__call__ = original
        _everywhere({id(wrapper): item for wrapper, item in wrapped.values()})


def _below(item: Any) -> Any:
    """Return the function of the backend that a public one only calls, with the same names of arguments; None where none is."""
    from keras.src import backend

    module = str(item.__module__).rpartition(f"{OPS}.")[2]
    found = getattr(getattr(backend, module, None), item.__name__, None) if module in BELOW else None
    signatures = [keras_api.signature(x) for x in (item, found)] if found is not None else []
    same = all(signatures) and len({tuple(x.parameters) for x in signatures if x}) == 1
    return found if same else None


def settle() -> None:
    """Set up the environment for Keras to be imported as capture does, in silence, unless it says otherwise."""
    for name, text in SETTINGS.items():
        os.environ.setdefault(name, text)


def _import_keras() -> None:
    settle()
    os.environ["KERAS_HOME"] = str(Path.cwd() / ".keras")  # the child's own empty folder
    backend = os.environ["KERAS_BACKEND"]
    try:
        import keras
    except ImportError as error:
        raise NotInstalled(
            f"Keras cannot run on the backend {backend!r}: {error}",
            cause="KERAS_BACKEND names a backend that is not installed",
            fix=f"install {backend}, or unset KERAS_BACKEND: opera then uses tensorflow",
        ) from None
    assert keras.config.backend() == backend


def _everywhere(wrapped: dict[int, Any]) -> None:
    """Put wrappers in the place of functions in every module of Keras, and in the tables by which it finds them."""

    def swap(item: Any) -> Any:
        return wrapped.get(id(item), item)

    held = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "keras" and module}
    for module in held.values():
        for name, item in list(vars(module).items()):
            if id(item) in wrapped:
                setattr(module, name, swap(item))
            elif type(item) is set and any(id(x) in wrapped for x in item):
                changed = {swap(x) for x in item}
                item.clear()
                item.update(changed)
            elif type(item) is dict and any(id(x) in wrapped for pair in item.items() for x in pair):
                table = {swap(key): swap(x) for key, x in item.items()}
                item.clear()
                item.update(table)


class _Watch:
    """Makes the wrappers, and knows in which layer each thread is.

    `inner`: calls of functions by Keras itself are looked for, too, and symbolic ones are not.
    """

    def __init__(self, recorder: Recorder, *, inner: bool = False) -> None:
        self.recorder, self.inner = recorder, inner
        self.inside = threading.local()
        self.symbolic: list[Callable[[], None]] = []  # found by the observation that runs now
        self.arguments: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()
        self.made: weakref.WeakKeyDictionary[Any, Site] = weakref.WeakKeyDictionary()
        self.frames = Frames(_folders()) if recorder.sited else None

    def constructor(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Keep what layers are constructed with."""

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(cls, *args, **kwargs)
            try:
                if keras_api.public_name(cls):
                    self.arguments[made] = (args, kwargs)
                    if self.frames is not None and (site := self.frames.site(sys._getframe(1))):
                        self.made[made] = site
            except TypeError:  # not hashable, not weakly referenced: only a fallback is lost
                pass
            return made

        return new

    def layer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Record a call of a layer, and mark what it calls in turn. Models, and layers of tests, are looked through."""

        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            operator = keras_api.public_name(type(this))
            outer: str = getattr(self.inside, "layer", "")
            if operator is None:
                self._count_unknown(this)
                around, self.inside.own = getattr(self.inside, "own", None), this
                try:
                    return original(this, *args, **kwargs)
                finally:
                    self.inside.own = around
            self._see(functools.partial(self._layer_call, this, operator, outer, args, kwargs))
            self.inside.layer = outer or operator
            try:
                return original(this, *args, **kwargs)
            finally:
                self.inside.layer = outer

        return call

    def function(self, operator: str, original: Callable[..., Any], *, below: bool = False) -> Callable[..., Any]:
        """Record calls of a function by a test; what Keras itself calls it for is no test of it.

        Args:
            below: Whether it is the backend's: what the public one of this name calls is no call beside it.
        """

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            around = getattr(self.inside, "function", "")
            wanted = self.inner or _is_test(sys._getframe(1).f_code.co_filename)
            if wanted and not (below and around == operator):
                self._see(functools.partial(self._function_call, original, operator, args, kwargs))
            self.inside.function = operator
            try:
                return original(*args, **kwargs)
            finally:
                self.inside.function = around

        call.autograph_info__ = {}  # type: ignore[attr-defined]  # TensorFlow must not rewrite the wrapper
        return call

    def as_layer(self, operator: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Record calls of a function of a backend as those of a layer that does the same in training, by names of arguments."""
        constructed = {*keras_api.formals(keras_api.resolve(operator).__init__)} - {
            "seed"
        }  # what draws has no encoding

        def look(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            found = calls.describe(original, args, {name: x for name, x in kwargs.items() if name in constructed}, "")
            params = {name: x for name, x in found.params.items() if name in constructed}
            found.params, found.args, found.kwargs = {}, [*found.tensors], []
            self._record(found, operator, params, {"kind": "layer", "training": True}, "")

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._see(functools.partial(look, args, kwargs))
            return original(*args, **kwargs)

        return call

    def _count_unknown(self, layer: Any) -> None:
        def look() -> None:
            import keras

            self.recorder.calls -= 1
            key = ("unknown", type(layer))
            if isinstance(layer, keras.Model) or key in self.recorder.keys:
                return
            self.recorder.keys.add(key)
            kept = type(layer).__module__.startswith("keras.src") and not type(layer).__module__.endswith("_test")
            raise LeftOut("layer class without a public name" if kept else "layer class defined by a test")

        self.recorder.observe(look)

    def _layer_call(self, layer: Any, operator: str, outer: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from keras.src import backend

        kwargs = dict(kwargs)
        training = kwargs.pop("training", None)
        if not isinstance(training, bool | int | None):
            raise LeftOut("training given by a tensor")
        floatx = backend.floatx() if layer.autocast else ""
        found = calls.describe(layer.call, args, {**kwargs, **_masks(layer, args, kwargs)}, "call.", floatx)
        params, context = self._parameters(layer)
        context |= {"kind": "layer", "training": bool(training)}
        self._record(found, operator, params, context, outer, layer)

    def _function_call(
        self, original: Callable[..., Any], operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        found = calls.describe(original, args, kwargs, "")
        if not found.tensors:
            found = calls.describe(original, *_as_tensors(original, args, kwargs), "")
        if not found.tensors:
            raise LeftOut("call without a tensor")
        self._record(found, operator, {}, {"kind": "function"}, "")

    def _record(
        self,
        found: calls.Call,
        operator: str,
        params: dict[str, Value],
        context: dict[str, Value],
        outer: str,
        layer: Any = None,
    ) -> None:
        """Record what is new; symbolic calls only when the test has ended without the same on real tensors."""
        keys, stated = self.recorder.keys, values.dumps([operator, params, context])
        exact, rough = found.key(stated), found.rough_key(stated)
        self._came(rough, layer)
        if exact in keys:
            return
        keys.add(exact)
        if outer and not self.inner:
            context = context | {"inside": outer}
        if not found.symbolic:
            keys.add(rough)
            self.recorder.record(calls.instance(operator, found, params, context), key=rough)
            return
        if self.inner:
            raise LeftOut("call without real tensors")
        made = calls.instance(operator, found, params, context)

        def later() -> None:
            self.recorder.calls -= 1
            if rough not in keys:
                keys.add(rough)
                self.recorder.record(made, key=rough)

        self.symbolic.append(later)

    def _came(self, key: Any, layer: Any) -> None:
        """Note the line that makes a layer, for what calls it is a model of Keras as a rule; of a function, that calls it."""
        if self.frames is None:
            return
        site = self.made.get(layer) if layer is not None else None
        site = site or self.frames.site(sys._getframe(1))
        inner = layer if layer is not None else getattr(self.inside, "own", None)
        path = str(getattr(inner, "path", "") or getattr(inner, "name", ""))
        self.recorder.came(key, (site, path), lambda: site and msgspec.structs.replace(site, module=path))

    def _see(self, look: Callable[[], None]) -> None:
        """Observe a call, and put off what it says is to be recorded at the end of the test."""
        self.recorder.observe(look)
        while self.symbolic:
            self.recorder.defer(self.symbolic.pop())

    def _parameters(self, layer: Any) -> tuple[dict[str, Value], dict[str, Value]]:
        """Return the configuration of a layer, and what is to be said about it."""
        context: dict[str, Value] = {}
        try:
            config = layer.get_config()
        except Exception:  # whatever a layer that cannot say raises
            config, context = self._constructed(layer), {"config": "constructor"}
        try:
            adapted = _adapted(layer)
        except Exception:  # as a rule, in the graph of a data pipeline, where state has no value
            raise LeftOut("adapted state that cannot be read") from None
        if adapted:
            context["state"] = sorted(adapted)
        config = {name: item for name, item in {**config, **adapted}.items() if name not in ("name", "build_config")}
        try:
            return {str(name): keras_values.encode(item) for name, item in config.items()}, context
        except NotRepresentable as category:
            raise LeftOut(f"layer that cannot be serialised: {category}") from None

    def _constructed(self, layer: Any) -> dict[str, Any]:
        import keras

        if layer not in self.arguments:
            raise LeftOut("layer that cannot be serialised: no configuration, no constructor arguments")
        args, kwargs = self.arguments[layer]
        signature = keras_api.signature(type(layer).__init__)
        assert signature is not None
        bound = signature.bind(layer, *args, **kwargs).arguments
        given = {name: item for place, (name, item) in enumerate(bound.items()) if place}
        given |= given.pop("kwargs", {})
        try:
            return {name: keras.saving.serialize_keras_object(item) for name, item in given.items()}
        except Exception:
            raise LeftOut("layer that cannot be serialised: its constructor arguments cannot be either") from None


def _folders() -> list[str]:
    """Return where Keras and its backend lie."""
    held = (sys.modules.get(name) for name in ("keras", os.environ["KERAS_BACKEND"]))
    return [str(Path(module.__file__).parent) for module in held if module and module.__file__]


@functools.cache
def _is_test(file: str) -> bool:
    """Tell whether a file belongs to a test rather than to Keras; what calls operators for generators does."""
    return file.endswith("_test.py") or file == calls.__file__ or not ({"keras", "tensorflow"} & set(Path(file).parts))


def _masks(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the masks that Keras takes from the inputs of a layer (Layer.__call__, steps 6 and 7)."""
    from keras.src import backend, tree

    signature = keras_api.signature(type(layer).call)
    formals = list(signature.parameters)[1:] if signature else []
    named = dict(zip(formals, args, strict=False)) | kwargs
    tensors = {name: item for name, item in named.items() if _holds_tensors(item)}
    if len(tensors) == 1 and MASK in formals and named.get(MASK) is None:
        wanted = {MASK: next(iter(tensors.values()))}
    else:
        wanted = {f"{name}_mask": item for name, item in tensors.items()}
        wanted = {name: item for name, item in wanted.items() if name in formals and named.get(name) is None}
    found = {name: tree.map_structure(backend.get_keras_mask, item) for name, item in wanted.items()}
    return {name: mask for name, mask in found.items() if any(x is not None for x in tree.flatten(mask))}


def _holds_tensors(item: Any) -> bool:
    from keras.src import backend, tree

    return item is not None and all(
        backend.is_tensor(x) or isinstance(x, backend.KerasTensor) for x in tree.flatten(item) or [None]
    )


def _as_tensors(
    original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Turn lists and numbers that Keras itself makes tensors of into tensors, by the names of their formals."""
    from keras.src import backend

    declared = keras_api.instrumentation().tensors["formals"]
    signature = keras_api.signature(original)
    formals = list(signature.parameters) if signature else []

    def turn(name: str, item: Any) -> Any:
        if name not in declared or not isinstance(item, list | tuple | int | float | complex):
            return item
        return backend.convert_to_numpy(backend.convert_to_tensor(item))

    named = zip([*formals, *[""] * len(args)], args, strict=False)
    return tuple(turn(name, item) for name, item in named), {name: turn(name, x) for name, x in kwargs.items()}


def _adapted(layer: Any) -> dict[str, Any]:
    """Return what a preprocessing layer learned by `adapt`, as the constructor arguments that say the same."""
    if not callable(getattr(layer, "adapt", None)):
        return {}
    kind = type(layer).__name__
    if kind == "Normalization" and layer.input_mean is None and layer.built:
        found = {"mean": _numbers(layer.adapt_mean), "variance": _numbers(layer.adapt_variance)}
        return {} if not np.any(found["mean"]) and np.all(np.equal(found["variance"], 1.0)) else found
    if kind in ("StringLookup", "IntegerLookup", "TextVectorization"):
        return _vocabulary(layer)
    return {}


def _vocabulary(layer: Any) -> dict[str, Any]:
    lookup = getattr(layer, "_lookup_layer", layer)
    if lookup.input_vocabulary is not None or not lookup.vocabulary_size() > lookup._token_start_index():
        return {}
    found: dict[str, Any] = {"vocabulary": list(layer.get_vocabulary(include_special_tokens=False))}
    if lookup.output_mode == "tf_idf":
        found["idf_weights"] = _numbers(lookup.idf_weights_const)[lookup._token_start_index() :]
    return found


def _numbers(item: Any) -> Any:
    from keras.src import backend

    return backend.convert_to_numpy(item).tolist()
