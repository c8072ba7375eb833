"""Compilers under test: a module or folder a compiler, and in it a frontend for each library whose models it loads.

A compiler is a module (or any object) that fits the `Compiler` protocol and is named in the entry-point group
`opera.compilers`; its frontends are objects that fit the `Frontend` protocol, each with the same few functions in the same
order. They are imported inside worker processes only; what they need beside the compiler's own package is numpy and
msgspec. examples/opera-onnx-reference is a worked third-party one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol

import msgspec

from opera import plugins
from opera.oracle import comparison
from opera.programs.case import Case
from opera.programs.program import Captured
from opera.programs.values import CONTAINERS, Value

__all__ = [
    "APART",
    "BODY",
    "CONVERSION",
    "COUNTED",
    "DECLARED",
    "EACH",
    "FILE",
    "GIVEN",
    "INFERENCE",
    "INTERFACE",
    "KERNEL",
    "LAWFUL",
    "LESS",
    "LOWERED",
    "MADE",
    "MISTYPED",
    "NODE",
    "OPTIMISATION",
    "OWN",
    "RECIPES",
    "SOURCE",
    "TEXT",
    "THREADS",
    "Canary",
    "Case",
    "Compiler",
    "Frontend",
    "Involved",
    "Recipe",
    "Variant",
    "Way",
]


class Variant(msgspec.Struct, frozen=True):
    """One route into a frontend.

    Attributes:
        name: Short name (`inputs`, `constants`).
        artefact: The artefact of the library that it begins with (`onnx`, `onnx-constants`); `live` is the library's own model
            in the process.
        after: When it is tried: `always`; `rejected`: only where the variants before it ended in `unsupported`
            or failed at load, which decides whether the operator is supported at all; `sampled`: where the one before it did
            not pass, and for a drawn tenth of the tests that passed.
        preload: Modules imported once, before workers of this frontend are forked, beside the compiler's PRELOAD.
        exports: Name of the file or folder that the frontend's own exporter (`Frontend.export`) makes of the artefact, empty
            where it has none. The exporter belongs to the compiler, and so does its failure: it is part of the stage `load`.
        trial: A cheaper way to run it (`Case.way`), which differs from `compile` on, and by which most tests are run first.
            What passes so has passed; what does not is run as users run it, and so is a drawn tenth. The compiler's `options`
            say it.
    """

    name: str
    artefact: str
    after: str = "always"
    preload: tuple[str, ...] = ()
    exports: str = ""
    trial: str = ""


LESS, APART, OWN, DECLARED, MADE = "optimisation", "ir", "own", "declared", "made"
LAWFUL, BODY, LOWERED, FILE, GIVEN, SOURCE = "lawful", "body", "lowered", "file", "given", "source"
NODE, EACH, COUNTED, THREADS, SETTING = "node", "each", "counted", "threads", "setting"
NEWEST, OPSET, TEXT = "newest", "opset", "text"
"""Kinds of ways: see Way."""
UNSET = (THREADS, SETTING)
"""Kinds of ways that leave out a setting which opera makes, and users need not: blame asks none of them, nor of NEWEST,
OPSET or TEXT."""
CONVERSION, INFERENCE, OPTIMISATION, KERNEL = "conversion", "type inference", "optimisation", "kernel"
INTERFACE = "interface"
"""Parts of a compiler: what a frontend's PLACES lead to."""
MISTYPED = "mistyped"
"""What PLACES lead to as well: a model that was imported refuses what its library's model is given, for it declares another
dtype, which is the conversion's fault."""


class Way(msgspec.Struct, frozen=True):
    """How a frontend can run a model otherwise than users do, to tell which part of the compiler fails.

    Attributes:
        name: What `Case.way` is then; `load`, `compile` and `infer` honour it.
        kind: LESS: the same model, with optimisations off or fewer; APART: what the importer made of it, run by something
            else than the kernels that are used else, which shares no code with them. OWN: the same by other code of the
            compiler's own, which may have the kernels' faults: only what is right then tells something. DECLARED: tensors,
            of whatever values, in the dtypes and shapes that the importer's result states for its outputs. MADE: nothing is
            run, but shared.packing.Made is raised with a digest of what the importer made, without names and what leads to no
            output, so that it can be told of two models whether they are converted alike. LAWFUL: nothing is run, but
            shared.packing.Unlawful is raised where what the importer made breaks a rule of the compiler's own: the form of
            an operator is none that can be lowered, a number is none of the dtype; of an exporter, where the library itself
            fails before anything is exported. BODY: an operator that the compiler has
            no kernel of is what the library's definition makes of it, written out, run by the library's reference or by the
            compiler itself; a Refusal where it has kernels of all. LOWERED: as MADE, but the names of the operators that the
            model is of once it came to the compiler, as conversion_function has them. FILE: what an exporter wrote, run by
            another compiler that reads such files. GIVEN: the same model, given to the compiler in another way that users have.
            SOURCE: nothing is run, but shared.packing.Read is raised, which says where the code stands that converts the model,
            and which of its parameters and inputs that never reads, by its source. NODE: shared.packing.Faulty is raised where
            an operator that the model is made of, built by itself in the compiler's own representation and run, does not do
            what the compiler documents of it. EACH: every operator of what the importer made, by itself, compiled and run as
            the whole is, one after the other. COUNTED: what the importer made, with what the compiler's operators leave open
            settled (indices that count from the end counted from the front, equal numbers kept in their order); a Refusal
            where it has none. THREADS: the same,
            with as many threads as the compiler takes by itself; what spoils its process is asked so. SETTING: the same,
            with another setting left as the compiler has it, that opera makes. NEWEST: an exporter writes a file of the newest
            version that it knows. OPSET: it writes one of another version, between these and the oldest that it takes. TEXT:
            nothing is run, but shared.packing.Read is raised with what an exporter wrote, as text; a Refusal of long ones.
        about: In words.
        stage: The first that differs: what fails before it fails alike.
        artefacts: Of GIVEN, the artefacts that can be given so.
        told: Of GIVEN, how the model is given else, and how in this way: `read by path`, `from the file's bytes`. Of a way that
            leaves out a setting, that setting, and what there is in its place: `INFERENCE_NUM_THREADS=1`, `=0`; of NEWEST,
            how it is told that the version is the usual one; of OPSET, that it is an older one, and which it is not.
    """

    name: str
    kind: str
    about: str
    stage: str = "compile"
    artefacts: tuple[str, ...] = ()
    told: tuple[str, str] = ("", "")


class Canary(msgspec.Struct, frozen=True):
    """A call that a frontend must not get through: `opera doctor` runs it after the two canaries of the library.

    Attributes:
        about: What must be seen, in words that follow "and": `an unknown operator is unsupported`.
        verdict: What the verdict must be.
        program: The call; None for the library's canary that passes else.
        way: Name of a way of the frontend's own that makes it fail; it need not be one of WAYS.
        symptom: What the symptom must be; empty for any.
    """

    about: str
    verdict: str
    program: Captured | None = None
    way: str = ""
    symptom: str = ""


class Involved(msgspec.Struct, frozen=True):
    """What kinds of values a script feeds and compares: dtypes of all tensors, and whether any are sequences or optionals.

    Attributes:
        chosen: What was chosen of the compiler's settings, without defaults (opera.compilers.settings).
        variant: The one that the script shows, for a frontend that has several of one artefact.
    """

    dtypes: frozenset[str] = frozenset()
    lists: bool = False
    chosen: dict[str, str] = {}
    variant: str = ""

    @property
    def low(self) -> bool:
        """Whether there are elements that numpy does not have."""
        return any(CONTAINERS[name] != name for name in self.dtypes - {"string"})


class Recipe(msgspec.Struct, frozen=True):
    """What a script does with a compiler: functions of modules that use nothing of opera but each other.

    They are what the frontend itself calls, and are printed as they stand, with what they use in their modules. A step takes
    what the step before it returned, the first the model; what else it takes is told by the names of its parameters, see
    opera.triage.reproducers.recipes. Steps are named as `module:function`.

    Attributes:
        load: Steps of the stage load: the frontend's exporter, where it has one, and what converts the model.
        compile, infer: Steps of the other stages; the last returns a list of arrays, None for an empty optional, lists of them.
        more: Parameter of steps → what it is given: another function, as `module:function`.
    """

    load: tuple[str, ...] = ()
    compile: tuple[str, ...] = ()
    infer: tuple[str, ...] = ()
    more: dict[str, str] = {}


class Frontend(Protocol):
    """A compiler's loader for the models of one library. All its functions may raise anything: that is what is being tested.

    A failure is the compiler's only if its own packages raised it, or native code that they hold (opera.run.culprit).
    They are named by an attribute `PACKAGES`, a tuple; without one they are the top-level packages of PRELOAD and of the
    variants' preloads. A frontend that refuses a test on purpose raises a subclass of shared.packing.Refusal, and one whose
    compiler returned nothing at all raises NoAnswer: what else it raises itself is counted as opera's `error`.

    What it may have beside the functions below:

    COMPUTES_IN: dtype → dtype, where it computes some dtype in a narrower one by design: its outputs of that dtype are then
        compared at the narrower one's tolerance.
    OPTIONS: name → value: what decides results of this frontend alone, beside the compiler's `options()`.
    UNPATCHED: environment variable → value, where its workers run functions that opera replaced by quicker ones
        (opera.libraries.torch.preload and torch.export): workers that are started with these leave everything as the user
        has it, and findings are confirmed in such a one.
    WAYS: Ways, a tuple: how to run a model otherwise, so that it can be told which part of the compiler fails. A way that
        cannot be gone raises a subclass of shared.packing.Refusal.
    PLACES: Regular expression → CONVERSION, INFERENCE, OPTIMISATION, KERNEL, INTERFACE (what hands values in and out) or
        MISTYPED: whose a failure is that names such a place in the compiler's sources, or says what that part alone does; the
        first that is found counts.
    BEFORE: Modules of the library that make what the compiler works on, a tuple, where the adapter asks them first or the
        compiler itself does: what they raise is `unexported`, and a finding of the frontend that TESTS them.
    TESTS: Modules of the library, a tuple, that are under test here: a test for which they fail another frontend (its BEFORE)
        is run here too, by runs that did not ask for it.
    EXPORTER: True where it is the exporter that is under test, and what runs its files only shows whether they are right.
    RUNTIME: The compiler that runs an exporter's files: whose fault it is where these are right.
    NATIVE: True where the artefact is in the compiler's own representation: no importer changes what is run.
    MAKES: Artefact of the library that it is the exporter of (`onnx`): a test whose file computes something else is run on
        it too, by runs that did not ask for it.
    canaries() -> tuple of Canary: What `opera doctor` must see fail, beside the two canaries of the library.
    PYTHON: Packages of the importer where it is written in Python, whose statements `opera coverage` traces.
    export(case, path): Makes of the artefact what a variant `exports`, by the compiler's own exporter.
    opsets() -> dict[str, int]: domain of the library's operators → the newest version that the compiler declares to know, of
        the domains of which it declares one. A failure of a test that needs a newer one (Manifest.needs) gets a tag.
    newest(operator) -> int | None: the newest version of an operator that it ships a schema of, which then decides in place of
        what is declared of all; None where that is not known.
    recipe(artefact, involved) -> Recipe: What a script does; without one the script runs the frontend by way of opera.
    """

    @property
    def VARIANTS(self) -> tuple[Variant, ...]:
        """The routes into it, in the order they are tried; an attribute will do."""

    def load(self, case: Case) -> Any:
        """Convert the model: the model loading stage, the one under test."""

    def compile(self, loaded: Any, case: Case) -> Any:
        """Compile what `load` returned."""

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        """Run it and return the outputs as opera.programs.values, in the order of `case.outputs`."""

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        """Return what is unsupported where the compiler says so in its own words, else None (then it is a crash).

        When rules have changed since, it is given a stand-in of what was raised, which has the same text, causes and names of
        classes, and a case that has its names alone (opera.programs.case.remembered).
        """

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the code that converts the operator, or an empty string; `error` is None for wrong outputs."""


class Compiler(Protocol):
    """A compiler: what is common to its frontends.

    It may have TOGETHER, a tuple: packages of PACKAGE that are released with the first, under the same version. It may have
    ALONE, True: users are told to make it an environment of its own, and not to install it beside the others. It may have BARE,
    True: PACKAGE names all that it needs beside the library, and such an environment holds nothing else that these packages
    ask for.
    """

    NAME: str
    """Name on the command line (`openvino`)."""
    PACKAGE: str
    """What `pip install` needs to get it, for messages."""
    PRELOAD: tuple[str, ...]
    """Modules imported once, before workers of any frontend are forked. Importing them must start no threads that matter."""
    FRONTENDS: Mapping[str, Frontend]
    """library → frontend."""

    def version(self) -> str:
        """Return the compiler's version; ImportError where it is not installed."""

    def options(self) -> dict[str, str]:
        """Return options and target that decide results: part of a verdict's identity.

        A compiler may have SETTINGS (opera.compilers.settings): what of these options a user may choose.
        """

    def prepare(self) -> None:
        """Set up a fresh worker (one thread, quiet logs); called once after the fork."""


GROUP = "opera.compilers"
RECIPES = "opera.compilers.recipes"
"""The package of opera's own recipes."""


def registered() -> dict[str, EntryPoint]:
    """Return name → entry point of all compilers that this environment registers, sorted by name."""
    return plugins.registered(GROUP)


def get(name: str) -> Compiler:
    """Import the module of a compiler (not the compiler itself). Raises UsageError for an unknown name."""
    module: Compiler = plugins.load(GROUP, "compiler", name)
    return module


def package(name: str) -> str:
    """Return the package of the index whose releases are the compiler's, empty for an exporter, or a part of a library."""
    module = get(name)
    found = module.PACKAGE.split()[0] if module.PACKAGE else ""
    parts = any(getattr(x, "EXPORTER", False) for x in module.FRONTENDS.values())
    return "" if parts or not re.fullmatch(r"[\w.-]+", found) else found


def cure(name: str) -> str:
    """Return the command that gets a compiler which is not there."""
    module = get(name)
    return f"opera env create {name}" if getattr(module, "ALONE", False) else f"pip install {module.PACKAGE}"


@cache
def title(name: str) -> str:
    """Return what a compiler is called in prose: its TITLE, where it has one (`ONNX Runtime`)."""
    return str(getattr(get(name), "TITLE", name)) if name in registered() else name


def exporter(name: str, library: str) -> bool:
    """Whether an exporter is what a frontend tests; False for one that is not registered here."""
    known = get(name).FRONTENDS if name in registered() else {}
    return library in known and bool(getattr(frontend_of(get(name), library), "EXPORTER", False))


def runtime(name: str, library: str) -> str:
    """Return the compiler that runs what an exporter under test writes; empty where a frontend tests none, or has no other."""
    return str(getattr(frontend_of(get(name), library), "RUNTIME", "")) if exporter(name, library) else ""


def artefact(name: str, library: str, variant: str) -> str:
    """Return what a variant of a frontend takes; empty for one that is not registered here, as a stored one may be."""
    known = get(name).FRONTENDS if name in registered() else {}
    variants = frontend_of(get(name), library).VARIANTS if library in known else ()
    return next((x.artefact for x in variants if x.name == variant), "")


def frontend(name: str, library: str) -> Frontend:
    """Return the frontend of the compiler called `name` for a library. Raises UsageError, or KeyError where it has none."""
    return frontend_of(get(name), library)


def frontend_of(compiler: Compiler, library: str) -> Frontend:
    """Return a compiler's frontend for a library. Raises KeyError where it has none."""
    found: Any = compiler.FRONTENDS[library]
    return _Flat(compiler, library) if isinstance(found, tuple) else found


def frontend_name(compiler: str, library: str) -> str:
    """Return the name of a frontend: `tvm-onnx`."""
    return f"{compiler}-{library}"


def computes_in(frontend: Frontend, device: str = "") -> dict[str, str]:
    """Return a frontend's COMPUTES_IN, and what its dtypes are computed in on a device that has tolerances of its own.

    `device` is what the compiler's `options()` say; it is empty, or without tolerances, for a CPU.
    """
    own: dict[str, str] = dict(getattr(frontend, "COMPUTES_IN", {}))
    return own | comparison.on_device({**{name: name for name in comparison.TOLERANCES}, **own}, device)


def options(frontend: Frontend) -> dict[str, str]:
    """Return a frontend's OPTIONS, empty where it has none."""
    return dict(getattr(frontend, "OPTIONS", {}))


def given(name: str, library: str) -> dict[str, tuple[str, str]]:
    """Return `about` → `told` of a frontend's ways of kind GIVEN; empty for one that is not registered here."""
    known = get(name).FRONTENDS if name in registered() else {}
    found = ways(frontend_of(get(name), library)) if library in known else ()
    return {x.about: x.told for x in found if x.kind == GIVEN}


def ways_of(frontend: str, kinds: Collection[str]) -> list[Way]:
    """Return the ways of a frontend, by its name, that are of these kinds."""
    compiler, _, library = frontend.rpartition("-")
    known = get(compiler).FRONTENDS if compiler in registered() else {}
    return [x for x in ways(frontend_of(get(compiler), library)) if x.kind in kinds] if library in known else []


def ways(frontend: Frontend) -> tuple[Way, ...]:
    """Return a frontend's WAYS, empty where it has none."""
    found: tuple[Way, ...] = getattr(frontend, "WAYS", ())
    return found


def exports(frontend: Frontend, variant: str) -> str:
    """Return what a variant `exports`, by the variant's name."""
    return next((x.exports for x in frontend.VARIANTS if x.name == variant), "")


def exported(frontend: Any, case: Case, folder: Path) -> Case:
    """Return the case of what the frontend's own exporter writes into `folder`, the case as it is where it has no exporter."""
    name = exports(frontend, case.variant)
    if not name:
        return case
    frontend.export(case, folder / name)
    return msgspec.structs.replace(case, model=folder / name)


class _Flat:
    """A frontend of a compiler that has the functions itself, as all of them had once.

    Its FRONTENDS is library → variants, its `unsupported` takes no case, and PYTHON is PYTHON_FRONTENDS, by library.
    """

    def __init__(self, compiler: Any, library: str) -> None:
        self.VARIANTS: tuple[Variant, ...] = compiler.FRONTENDS[library]
        self.UNPATCHED = getattr(compiler, "UNPATCHED", {}).get(library, {})
        self.PYTHON = getattr(compiler, "PYTHON_FRONTENDS", {}).get(library, ())
        self.__name__ = getattr(compiler, "__name__", type(compiler).__module__)
        self._compiler = compiler

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        found: str | None = self._compiler.unsupported(stage, error)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler, name)
