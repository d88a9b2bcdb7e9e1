"""The option --law-file of every command that takes a scenario, defined once."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fluidcc.cli.options import begin
from fluidcc.cli.run import told

_FILES = "law_file"


def _bearer(
    law_file: Annotated[
        list[str] | None,
        typer.Option("--law-file", metavar="FILE", help="Add the laws of a file. Repeatable."),
    ] = None,
) -> None:
    """Bear the option, which Typer makes from it."""


def _option() -> Any:
    bearer = typer.Typer(add_completion=False)
    bearer.command()(_bearer)
    return next(p for p in typer.main.get_command(bearer).params if p.name == _FILES)


class TakingLaws(TyperCommand):
    """A command that adds the laws of files while it runs."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **options: Any) -> None:
        super().__init__(*args, params=[*(params or ()), _option()], **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command with the laws of the files."""
        files = ctx.params.pop(_FILES)
        with contextlib.ExitStack() as stack:
            if files:
                begin(ctx.params.get("fast_cpu", False))
                from fluidcc.laws.own import loaded

                with told():
                    stack.enter_context(loaded(files))
            return super().invoke(ctx)


class Commands(typer.Typer):
    """Commands, of which those with a scenario take --law-file."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a command, as Typer does."""

        def registered(function: Any) -> Any:
            if "scenario" in inspect.signature(function).parameters:
                options.setdefault("cls", TakingLaws)
            return super(Commands, self).command(name, **options)(function)

        return registered
