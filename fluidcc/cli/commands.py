"""What all commands share: how they end, how often an option is given, and --law-file."""

import contextlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fluidcc.cli.options import begin
from fluidcc.cli.run import print_error, told
from fluidcc.errors import Fault, ScenarioError

_FILES = "law_file"
_UsageError: Any = typer.BadParameter.__base__


class Program(TyperGroup):
    """All commands; what is wrong with the use of one is told in text, and in JSON if asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        with _told("--json" in args):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        json = "--json" in ctx.args
        with told(json), _told(json):
            return super().invoke(ctx)


@contextlib.contextmanager
def _told(json: bool) -> Iterator[None]:
    """Tell wrong use in JSON too if asked for, and an interrupt."""
    try:
        yield
    except _UsageError as error:  # whose text Typer prints
        if json:
            print_error(error.format_message())
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise


def _bearer(
    law_file: Annotated[
        list[str] | None,
        typer.Option(
            "--law-file", metavar="FILE",
            help="Add the laws of a Python file, which is run: read it first. Repeatable.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Bear the option, which Typer makes from it."""


def _option() -> Any:
    bearer = typer.Typer(add_completion=False)
    bearer.command()(_bearer)
    return next(p for p in typer.main.get_command(bearer).params if p.name == _FILES)


class Once(TyperCommand):
    """A command that takes each option once, unless it is one to repeat."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command."""
        given = self.make_parser(ctx).parse_args(list(args))[2]
        single = (p for p in given if isinstance(p, TyperOption) and not (p.multiple or p.is_flag))
        faults = [
            Fault(option.opts[-1], "", "one value", f"{times}")
            for option, times in Counter(single).items() if times > 1
        ]  # fmt: skip
        if faults and not ctx.resilient_parsing:
            raise ScenarioError(faults)
        return super().parse_args(ctx, args)


class TakingLaws(Once):
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

                stack.enter_context(loaded(files))
            return super().invoke(ctx)


class Commands(typer.Typer):
    """Commands, of which those with a scenario take --law-file."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a command, as Typer does."""

        def registered(function: Any) -> Any:
            laws = "scenario" in inspect.signature(function).parameters
            options.setdefault("cls", TakingLaws if laws else Once)
            return super(Commands, self).command(name, **options)(function)

        return registered
