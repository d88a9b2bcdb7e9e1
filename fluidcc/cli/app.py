"""The commands. Nothing heavy is imported before a command runs."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from fluidcc.cli.check_law import check_law
from fluidcc.cli.commands import Commands, Program
from fluidcc.cli.ends import Interrupt, report
from fluidcc.cli.explore import explore
from fluidcc.cli.machine import doctor, precompile_scenario
from fluidcc.cli.options import CHANGES, JSON, SCENARIO, flag, prepare, takes, word
from fluidcc.cli.papers import figures, validate
from fluidcc.cli.run import CUT_OFF, EXIT_CODES, INTERRUPTED, advise
from fluidcc.cli.sweep import sweep
from fluidcc.cli.verbs import VERBS, make_command
from fluidcc.scenario.parsing import Faults

app = Commands(
    name="fluidcc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fluid models, stability and packets of congestion control, from one law.",
    cls=Program,
    epilog=f"Exit codes: {'; '.join(f'{code} {what}' for code, what in EXIT_CODES.items())}.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"fluidcc {version('fluidcc')}")
        raise typer.Exit


@app.callback()
def _whole(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options of the program itself; help text and epilog are those of `app`."""


for verb in VERBS.values():
    if verb.command:
        app.command(verb.name)(make_command(verb))
    if verb.name == "optimize":
        app.command()(sweep)
app.command()(explore)
app.command()(figures)
app.command()(validate)
app.command()(check_law)


@app.command()
@takes(scenario=SCENARIO, changes=CHANGES, latex=flag("Print the equations as LaTeX."), json=JSON)
def show(scenario: str, changes: list[str] | None, latex: bool, json: bool) -> None:
    """A scenario in full, or its equations."""
    faults = Faults()
    task = prepare(faults, scenario, changes, None, json)
    faults.finish()
    from fluidcc.cli import about

    about.show(task.net, latex=latex, json=json)
    advise(task.net)


@app.command("list", laws=True)
@takes(what=word(None, "scenarios, laws, quantities or figures", str, "scenarios"), json=JSON)
def list_(what: str, json: bool) -> None:
    """Bundled scenarios, laws with their parameters, quantities, or figures of papers."""
    from fluidcc.cli import about

    about.print_list(what, json=json)


app.command()(doctor)
app.command("precompile", laws=True)(precompile_scenario)


def main() -> None:
    """Run the command line; a fault of fluidcc itself ends with a report, and exit code 1."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open(mode))
        elif isinstance(stream, TextIOWrapper):  # a terminal may not have every letter
            stream.reconfigure(errors="replace")
    interrupt = Interrupt()
    try:
        app()
    except SystemExit as end:
        interrupt.leave(end.code)
        # Typer and rich end with 1 if a pipe is closed
        sys.exit(CUT_OFF if end.code == 1 else end.code)
    except Exception as error:
        interrupt.leave(INTERRUPTED)
        sys.exit(report(error))
