"""The commands: how often an option is given, --law-file, and how they end. Nothing heavy is
imported before a command runs.

Outside of a command the process ends by a fault of fluidcc, with a report in a file, or by Ctrl-C,
after which compiled loops may still run.
"""

import contextlib
import errno
import functools
import inspect
import os
import platform
import re
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from io import TextIOWrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fluidcc.cli.explore import explore
from fluidcc.cli.machine import doctor, installed, precompile_scenario
from fluidcc.cli.options import (
    CHANGES,
    JSON,
    SCENARIO,
    begin,
    command_line,
    flag,
    prepare,
    respelt,
    several,
    takes,
    word,
)
from fluidcc.cli.run import (
    CUT_OFF,
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    WRONG_USE,
    advise,
    print_error,
    report_faults,
)
from fluidcc.cli.sweep import sweep
from fluidcc.cli.validation import check_law, figures, new_law, validate
from fluidcc.cli.verbs import VERBS, make_command
from fluidcc.errors import ALIKE, Fault, ScenarioError, argument, meant, nearest, ours
from fluidcc.folders import BESIDE, own_folder
from fluidcc.scenario.parsing import Faults

VARIABLE = "FLUIDCC_TRACEBACK"
"""If it is 1, a failure shows its traceback."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_VERSIONS = ("fluidcc", *BESIDE, "xarray", "h5netcdf", "typer")


_AGAIN = 0.05  # s
_LOADING = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)
_COMPILING = ("from_hlo", "pxla.py")  # a function of JAX, and the end of its file's name


def report(error: Exception) -> int:
    """Print a failure on stderr, with the file of its report and how to pass it on.

    Gives the exit code; a disk that is full is no failure of fluidcc.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        where = f" '{error.filename}'" if error.filename else ""
        print(f"error: cannot write{where}: {error.strerror}", file=sys.stderr)
        return WRONG_USE
    summary = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".rstrip(": ")
    lines = [f"error: fluidcc failed where it should not: {summary}"]
    text = _report()
    if os.environ.get(VARIABLE) == "1":
        lines.append(text)
    else:
        lines += _save(text)
    print("\n".join(lines), file=sys.stderr)
    if "--json" in sys.argv:
        print_error(lines[0].removeprefix("error: "))
    return FAILED


def _report() -> str:
    """The versions, the command and the traceback of the present failure."""
    head = [f"{name} {installed(name) or 'is not installed'}" for name in _VERSIONS]
    head += [f"Python {platform.python_version()}", platform.platform()]
    return "\n".join([*head, "", command_line(), "", traceback.format_exc()])


def _save(text: str) -> list[str]:
    """The report in a file of the cache folder, or why it is not."""
    try:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        file = own_folder("faults") / f"fault-{stamp}-{os.getpid()}.txt"
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        return [
            f"Its report cannot be kept ({problem.strerror or problem}); "
            f"{VARIABLE}=1 shows it. It is a fault of fluidcc: please report it."
        ]
    return [
        f"This is a fault of fluidcc, not of your input. Its report is in '{file}':",
        f"please pass it on as described in README.md. {VARIABLE}=1 shows it here.",
    ]


class Interrupt:
    """Handles SIGINT, and records if one came: then the process has to end by `leave`."""

    def __init__(self) -> None:
        self.came = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = self._lost

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt; while a C library loads, which would fail, or JAX compiles,
        which would go on, a little later.
        """
        self.came = True
        while frame is not None and not _loses_exceptions(frame.f_code):
            frame = frame.f_back
        if frame is None:
            raise KeyboardInterrupt
        _send_again()

    def _lost(self, what: Any) -> None:
        """Send the signal again if its exception was lost in a callback."""
        if what.exc_type is KeyboardInterrupt:
            _send_again()
        else:
            sys.__unraisablehook__(what)

    def leave(self, code: object) -> None:
        """End the process at once if a SIGINT came.

        Python would wait for compiled loops, which cannot be stopped.
        """
        if self.came:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            os._exit(code if isinstance(code, int) else INTERRUPTED)


def _loses_exceptions(code: CodeType) -> bool:
    """Whether a function takes any exception for a reason to do something else."""
    name, file = _COMPILING
    losing = (*_LOADING, Interrupt._lost.__code__)  # what is raised in a hook is printed
    return code in losing or (code.co_name == name and code.co_filename.endswith(file))


def _send_again() -> None:
    threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()


_OTHERS = {
    "load": "'show'", "dumps": "'show --json'", "plot": "the option --plot of a command",
    "latex": "'show --latex'", "replace": "the option --set of a command", "paths": "'list keys'",
    "linearize": "'stability'", "solve_dde": "'simulate'", "citations": "'show'",
    "laws": "'list laws'", "scenarios": "'list scenarios'", "quantities": "'list quantities'",
    "gui": "'explore'", "version": "the option --version",
}  # fmt: skip


def _command(name: str) -> str:
    """The command of a public name, for messages."""
    if name.startswith(("Result.", "load_result")):
        return "the option --out of a command"
    commands = (verb.name for verb in VERBS.values() if verb.function == name and verb.command)
    return _OTHERS.get(name) or repr(next(commands, name.replace("_", "-")))


_LAW_FILES = several(
    "FILE", "Add the laws of a Python file, which is run: read it first. Repeatable."
)


class Program(TyperGroup):
    """All commands; wrong use is reported in text, and in JSON if asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        with report_faults("--json" in args):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; for a word that means another one, that is in the error."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            names = [name.replace("-", "_") for name in self.commands]
            for name in meant(args[0], [*names, *_OTHERS]):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {_command(name)}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        try:
            with report_faults("--json" in ctx.args):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            if isinstance(signal.getsignal(signal.SIGINT), Interrupt):
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would lose the line
            typer.echo("interrupted", err=True)
            raise


class Once(TyperCommand):
    """A command that takes each option once, unless it is one to repeat."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command."""
        try:
            _, extra, given = self.make_parser(ctx).parse_args(list(args))
        except Exception as error:
            if type(error).__name__ != "NoSuchOption" or ctx.resilient_parsing:
                raise
            raise ScenarioError([self._unknown(vars(error)["option_name"])]) from None
        single = (p for p in given if isinstance(p, TyperOption) and not (p.multiple or p.is_flag))
        faults = [
            Fault(option.opts[-1], "", "one value", f"{times}")
            for option, times in Counter(single).items() if times > 1
        ]  # fmt: skip
        if extra and not faults:
            faults = [self._extra(args, extra)]
        if faults and not ctx.resilient_parsing:
            raise ScenarioError(faults)
        return super().parse_args(ctx, args)

    def _extra(self, args: list[str], extra: list[str]) -> Fault:
        """The fault of words that the command has no place for."""
        names, first = {str(p.name) for p in self.params}, args.index(extra[0])
        close = respelt(args[max(first - 1, 0) : first + len(extra)], listed="along" not in names)
        if "changes" in names and all("=" in word for word in extra):
            grid = "grid" in names and all(re.fullmatch(r"[^=]+=[^\[{]*[:,].*", w) for w in extra)
            close = (" ".join(f"--{'over' if grid else 'set'} {word}" for word in extra),)
        return Fault(str(self.name), "", "no further word", f"{' '.join(extra)!r}", close)

    def _unknown(self, option: str) -> Fault:
        """The fault of an option that the command does not have."""
        from fluidcc.scenario.keys import RUN, answer_to

        own = {o[2:].replace("-", "_"): p for p in self.params for o in p.opts if o[:2] == "--"}
        word, name = option.lstrip("-").replace("-", "_"), str(self.name)
        listed = ", ".join(f"--{each.replace('_', '-')}" for each in sorted(own))
        expected, meanings = f"an option among {listed}", argument(word, list(own))
        close = tuple(f"--{each.replace('_', '-')}" for each in meanings)
        takers = {verb.name: argument(word, list(verb.options)) for verb in VERBS.values()}
        meaning = nearest(word, list(ours("functions")), 1, least=ALIKE)
        if close:
            help = str(vars(own[meanings[0]])["help"]).partition(". ")[0].rstrip(".")
            expected = f"an option such as {close[0]} ({help})"
        elif "." in word:
            close = (f"--set {option.lstrip('-')}=VALUE",)
        elif any(takers.values()):
            close = tuple(
                f"fluidcc {verb} --{found[0].replace('_', '-')}"
                for verb, found in takers.items()
                if found and VERBS[verb].command
            )[:3]
        elif answer := answer_to(word, ()):
            expected = answer if word in RUN else f"{answer} in the scenario (--set PATH=VALUE)"
        elif meaning:
            command = _command(ours("functions")[meaning[0]][0]).strip("'")
            if command == name:
                expected = f"no option for what `fluidcc {name}` answers anyway"
            else:
                close = (command if " " in command else f"fluidcc {command}",)
        return Fault(name, "", expected, repr(option), close)


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
        typer.echo(f"fluidcc {installed('fluidcc')}")
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
app.command()(new_law)
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
@takes(what=word(None, "scenarios, laws, keys, quantities or figures", str, "scenarios"), json=JSON)
def list_(what: str, json: bool) -> None:
    """Bundled scenarios, laws with their parameters, keys of scenarios, quantities, or figures."""
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
