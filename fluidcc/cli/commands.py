"""Common to all commands: how they end, how often an option is given, and --law-file."""

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fluidcc.cli.options import begin, several
from fluidcc.cli.run import report_faults
from fluidcc.errors import Fault, ScenarioError

_LAW_FILES = several(
    "FILE", "Add the laws of a Python file, which is run: read it first. Repeatable."
)


class Program(TyperGroup):
    """All commands; wrong use is reported in text, and in JSON if asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        with report_faults("--json" in args):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        try:
            with report_faults("--json" in ctx.args):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise


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


class Commands(typer.Typer):
    """Commands; those with a scenario, and those with `laws`, take --law-file."""

    def command(
        self, name: str | None = None, *, laws: bool = False, **options: Any
    ) -> Callable[[Any], Any]:
        """Register a command, as Typer does."""

        def register(function: Any) -> Any:
            taking = laws or "scenario" in inspect.signature(function).parameters
            super(Commands, self).command(name, cls=Once, **options)(
                _take_laws(function) if taking else function
            )
            return function

        return register


def _take_laws(function: Callable[..., None]) -> Callable[..., None]:
    """The same command with --law-file, whose laws are registered while it runs."""

    @functools.wraps(function)
    def command(*, law_file: list[str] | None, **given: Any) -> None:
        with contextlib.ExitStack() as stack:
            if law_file:
                begin(given.get("fast_cpu", False))
                from fluidcc.laws.own import loaded

                stack.enter_context(loaded(law_file))
            function(**given)

    signature = inspect.signature(function)
    option = _LAW_FILES.parameter("law_file")
    command.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # pyright: ignore[reportAttributeAccessIssue]
    return command
