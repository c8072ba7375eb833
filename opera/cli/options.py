"""The options of `opera extract`: its own, and those that the source brings which `--source` names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from opera.errors import UsageError, near

if TYPE_CHECKING:
    from opera.sources import Option

GIVEN = "opera.options"
"""Where a context holds what was given for options of the source."""


def given(context: Any) -> dict[str, Any]:
    """Return what was given for the options of the source; what was not has its default there."""
    found: dict[str, Any] = context.meta.get(GIVEN, {})
    return found


class Extract(TyperCommand):
    """Shows and takes the options of a source where one is named; `--library` alone takes a command (`opera record`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own parameters and the source's; click asks for them often."""
        params: list[Any] = super().get_params(ctx)
        if "opera.source" in ctx.meta:
            if GIVEN not in ctx.meta:
                ctx.meta[GIVEN] = {}
                ctx.meta["opera.params"] = list(_options(ctx.meta["opera.source"], ctx.meta[GIVEN]))
            params = [*ctx.meta["opera.params"], *params]
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises UsageError for what neither the command nor the source knows."""
        own = args[: args.index("--")] if "--" in args else args
        words = {word.partition("=")[0] for word in own}
        if "--library" in words and not ("--" in args or {"-h", "--help", "--source"} & words):
            raise UsageError(
                "--library needs a command after `--`",
                cause="without `--`, options of the command would be taken for opera's",
                fix="opera record --library torch -- python train.py --epochs 1, or --source for a generator of inputs",
            )
        source = _source(own)
        if source:
            ctx.meta["opera.source"] = source
        try:
            return list(super().parse_args(ctx, args))
        except _UsageError as error:
            name = getattr(error, "option_name", "")
            if type(error).__name__ != "NoSuchOption":
                raise
            whose = f"the source {source!r}" if source else "`opera extract`"
            nearest = near(name, [x for param in self.get_params(ctx) for x in param.opts if x.startswith("--")])
            told = "a spelling mistake, or it is another source's" if source else "it may be an option of a source"
            raise UsageError(
                f"{whose} has no option {name}",
                cause=nearest or told,
                fix=f"see `opera extract {f'--source {source} ' if source else ''}--help`"
                + ("" if source else "; a source is named by --source NAME"),
            ) from None


_UsageError: Any = typer.BadParameter.__mro__[1]
"""click's, wherever typer has it from."""


def _source(args: list[str]) -> str:
    """Return what --source names, before anything is parsed."""
    found = ""
    for word, following in pairwise([*args, ""]):
        if word == "--source":
            found = following
        elif word.startswith("--source="):
            found = word.removeprefix("--source=")
    return found


def _options(source: str, given: dict[str, Any]) -> Iterator[Any]:
    """Yield the options of a source; what is given for them goes to `given`. Raises UsageError for an unknown source."""
    from opera import sources

    def keep(ctx: Any, param: Any, value: Any) -> None:
        given[param.name] = value

    for param in _made(sources.options(sources.get(source))):
        param.expose_value, param.callback = False, keep
        yield param


def _made(options: list[Option]) -> list[Any]:
    """Have typer make options, as it does of a function's parameters."""

    def command() -> None:
        return

    kinds = {
        x.name: Annotated[x.kind, typer.Option(f"--{x.name.replace('_', '-')}", help=x.help, min=x.least, max=x.most)]
        for x in options
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(x.name, keyword, default=x.default, annotation=kinds[x.name]) for x in options]
    command.__annotations__, command.__signature__ = kinds, inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(command)
    made: Any = typer.main.get_command(app)
    return [param for param in made.params if param.name in kinds]
