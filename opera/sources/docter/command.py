"""`opera constraints`: what the installed library documents of its parameters, as files in DocTer's form."""

from __future__ import annotations

from pathlib import Path

from opera.errors import UsageError
from opera.sources.docter import documented, files
from opera.sources.docter.constraints import CATEGORIES
from opera.sources.suites import suites


def write(library: str, folder: Path) -> None:
    """Write a file for every way to call every operator.

    Raises UsageError where that would mix with other files, NotInstalled without the library or PyYAML.
    """
    suites.version_of(library)
    builtin = documented.get(library).builtin
    files.yaml()
    if folder.is_dir() and any(path.suffix not in files.SUFFIXES for path in folder.iterdir()):
        raise UsageError(f"{folder} holds other files", fix="name a new folder, or one of constraint files")
    apis = list(builtin())
    files.write_folder(apis, folder)
    parameters = [parameter for api in apis for parameter in api.parameters.values()]
    constrained = sum(parameter.constrained for parameter in parameters)
    print(f"{len(apis)} files, {len({api.title for api in apis})} operators, {len(parameters)} parameters: {folder}")
    counts = [
        f"{sum(any(x.texts.get(field) for field in fields) for x in parameters)} {name}"
        for name, fields in CATEGORIES.items()
    ]
    print(f"constrained are {constrained} of them: {', '.join(counts)}")
