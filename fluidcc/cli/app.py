"""The commands. Nothing heavy is imported before a command runs."""

import os
import sys
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from fluidcc.cli.check_law import check_law
from fluidcc.cli.commands import Commands, Program, TakingLaws
from fluidcc.cli.explore import explore
from fluidcc.cli.flags import (
    Changes,
    FastCPU,
    Json,
    Out,
    Over,
    Plot,
    Sample,
    Scenario,
    Seeds,
    Trace,
    Until,
    Warmup,
    completed,
)
from fluidcc.cli.interrupt import Interrupt
from fluidcc.cli.machine import doctor, warm
from fluidcc.cli.optimize import optimize
from fluidcc.cli.options import Task, check_file, end_of, interval, prepare, times
from fluidcc.cli.papers import figures, validate
from fluidcc.cli.run import CUT_OFF, EXIT_CODES, INTERRUPTED, advise, deliver, evaluate, progress
from fluidcc.cli.slopes import gradient, sensitivity
from fluidcc.cli.sweep import sweep
from fluidcc.scenario.typed import Faults, count, seconds, share

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


def _analysed(name: str, *flags: Any, **options: Any) -> None:
    """Run the verb `fluidcc.analysis.NAME.NAME` on every point, with the flags of `prepare`."""
    faults = Faults()
    task = prepare(faults, *flags)
    faults.finish()
    verb = partial(getattr(import_module(f"fluidcc.analysis.{name}"), name), **options)
    deliver(task, evaluate(task, verb, doing=name), listed=True)


def _along(task: Task, faults: Faults, text: str, name: str, module: str, **options: Any) -> None:
    """Run the verb NAME of `fluidcc.analysis.MODULE` along the range PATH=LO:HI of `text`."""
    path, low, high = interval(text, task, faults, name)
    faults.finish()
    verb = partial(getattr(import_module(f"fluidcc.analysis.{module}"), name), **options)
    deliver(task, evaluate(task, lambda net: verb(net, path, low, high), doing=name))


@app.command()
def equilibrium(
    scenario: Scenario, changes: Changes = None, over: Over = None, json: Json = False,
    out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Where the network comes to rest."""
    _analysed("equilibrium", scenario, changes, over, json, out, plot, fast_cpu)


@app.command()
def stability(
    scenario: Scenario,
    certify: Annotated[
        bool, typer.Option("--certify", help="Prove the count of unstable roots strictly.")
    ] = False,
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Stability of the equilibrium: roots and margins."""
    flags = (scenario, changes, over, json, out, plot, fast_cpu)
    _analysed("stability", *flags, certify=certify)


@app.command("map")
def stability_map(
    scenario: Scenario, changes: Changes = None, over: Over = None, json: Json = False,
    out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Stability over a grid of parameters, all points together: verdicts and rightmost roots."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    if not over:
        faults.add("map", "", "a grid: --over PATH=A:B:STEP", "none")
    faults.finish()
    from fluidcc.analysis.batch import stability_map as search

    with progress("map") as show:
        result = search(task.net, task.axes, progress=show)
    deliver(task, result)


@app.command()
def crossings(
    scenario: Scenario,
    along: Annotated[str, typer.Argument(metavar="PATH=LO:HI", help="The range to search.")],
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Every change of stability along one parameter."""
    if "=" in scenario and "=" not in along:
        scenario, along = along, scenario
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    _along(task, faults, along, "crossings", "crossings")


@app.command()
def boundary(
    scenario: Scenario,
    along: Annotated[
        list[str], typer.Argument(metavar="PATH=LO:HI PATH=LO:HI", help="Both ranges to search.")
    ],
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Every curve over two parameters on which stability changes."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    if len(along) != 2:
        faults.add("boundary", "", "two ranges PATH=LO:HI", f"{len(along)}")
    ranges = [interval(text, task, faults, "boundary") for text in along]
    faults.finish()
    from fluidcc.analysis.boundary import boundary as search

    (x, *x_range), (y, *y_range) = ranges
    verb = partial(search, x=x, y=y, x_range=x_range, y_range=y_range)
    deliver(task, evaluate(task, verb, doing="boundary"))


@app.command()
def cycle(
    scenario: Scenario,
    along: Annotated[
        str | None,
        typer.Argument(metavar="[PATH=LO:HI]", help="Follow cycles from each Hopf point in it."),
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="N", help="Of the range, beyond smooth cycles.")
    ] = "12",
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The limit cycle: period, extremes, Floquet multipliers. Points follow their neighbours."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    number = count("--points", points, faults)
    if along is None:
        faults.finish()
        from fluidcc.analysis.cycles.verb import follower

        deliver(task, evaluate(task, follower(), doing="cycle"))
        return
    _along(task, faults, along, "cycles", "cycles.branches", points=number)


app.command()(gradient)
app.command()(sensitivity)
app.command()(optimize)
app.command()(sweep)


@app.command()
def windows(
    scenario: Scenario,
    probability: Annotated[
        str | None,
        typer.Option("--probability", metavar="P", help="Of a mark; what is heard at rest if not."),
    ] = None,
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Distribution of the windows under random marks: what the fluid's mean leaves out."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    p = None if probability is None else share("--probability", probability, faults)
    faults.finish()
    from fluidcc.analysis.windows import stationary_windows

    deliver(task, evaluate(task, partial(stationary_windows, p=p), doing="windows"))


@app.command()
def simulate(
    scenario: Scenario, until: Until = "60", changes: Changes = None, over: Over = None,
    json: Json = False, out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """A trajectory of the fluid model."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    end = end_of(until, faults)
    faults.finish()
    from fluidcc.model.simulate import simulate as verb

    deliver(task, evaluate(task, partial(verb, until=end), doing="fluid model"))


@app.command()
def packets(
    scenario: Scenario, until: Until = "60", warmup: Warmup = "", seeds: Seeds = "5",
    sample: Sample = None, trace: Trace = None, changes: Changes = None, over: Over = None,
    json: Json = False, out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The packet-level simulation, with intervals."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    when = times(until, warmup, seeds, faults)
    records = _records(sample, trace, task, faults)
    faults.finish()
    from fluidcc.packets.run import simulate_packets

    verb = partial(simulate_packets, **when, **records)
    deliver(task, evaluate(task, verb, doing="packets", reports=True))


@app.command()
def compare(
    scenario: Scenario, until: Until = "60", warmup: Warmup = "", seeds: Seeds = "5",
    trajectory: Annotated[
        bool,
        typer.Option(
            "--trajectory/--no-trajectory",
            help="Integrate the fluid model, or take its equilibrium alone.",
        ),
    ] = True,
    changes: Changes = None, over: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The fluid model beside the packets, with intervals."""
    faults = Faults()
    task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
    when = times(until, warmup, seeds, faults)
    faults.finish()
    from fluidcc.results.compare import compare as both

    verb = partial(both, trajectory=trajectory, **when)
    deliver(task, evaluate(task, verb, doing="fluid and packets", reports=True))


def _records(sample: str | None, trace: Path | None, task: Task, faults: Faults) -> dict[str, Any]:
    """What is recorded over time at the one point of a command."""
    found: dict[str, Any] = {}
    if sample is not None:
        found["sample"] = seconds("--sample", sample, faults)
        if task.out is None and task.plot is None:
            faults.add("--sample", "", "--out or --plot, where samples go", f"{sample!r} alone")
    if trace is not None:
        check_file("--trace", trace, (".csv",), faults)
        if task.out is not None and task.out.resolve() == trace.resolve():
            faults.add("--trace", "", "another file than that of --out", f"'{trace}' for both")
        found["trace"] = trace
    if found and task.axes:
        faults.add(" and ".join(f"--{name}" for name in found), "", "no --over", "a grid of points")
    return found


@app.command()
def bounds(
    scenario: Annotated[
        str | None,
        typer.Argument(
            help="Judge this scenario; without one, search over parameters.",
            autocompletion=completed,
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="BOUND", help="Judge this. Repeatable.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="N", help="Cases searched for each kind of network."),
    ] = None,
    seed: Annotated[str, typer.Option("--seed", metavar="K", help="Seed of the search.")] = "1",
    changes: Changes = None, json: Json = False, out: Out = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Published bounds put to the test: verdicts, and the smallest counterexamples."""
    faults = Faults()
    task = prepare(faults, scenario, changes, None, json, out, None, fast_cpu)
    size = None if budget is None else count("--budget", budget, faults)
    start = count("--seed", seed, faults, least=0)
    faults.finish()
    from fluidcc.bounds.check import check_bounds

    verb = partial(check_bounds, names=only or (), budget=size, seed=start)
    deliver(task, evaluate(task, verb, doing="bounds", reports=True))


app.command()(explore)
app.command()(figures)
app.command()(validate)
app.command()(check_law)


@app.command()
def show(
    scenario: Scenario, changes: Changes = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the equations as LaTeX.")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """A scenario in full, or its equations."""
    faults = Faults()
    task = prepare(faults, scenario, changes, None, json)
    faults.finish()
    from fluidcc.cli import about

    about.show(task.net, latex=latex, json=json)
    advise(task.net)


@app.command("list", cls=TakingLaws)
def list_(
    what: Annotated[str, typer.Argument(help="scenarios, laws or figures")] = "scenarios",
    json: Json = False,
) -> None:
    """Bundled scenarios, the laws with their parameters, or figures of papers."""
    from fluidcc.cli import about

    about.listing(what, json=json)


app.command()(doctor)
app.command(cls=TakingLaws)(warm)


def main() -> None:
    """Run the command line; what fluidcc itself does wrong ends with a report, and 1."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, who wants none of it
            setattr(sys, name, Path(os.devnull).open(mode))
        elif isinstance(stream, TextIOWrapper):  # a terminal may not have every letter
            stream.reconfigure(errors="replace")
    interrupt = Interrupt()
    try:
        app()
    except SystemExit as end:
        interrupt.leave(end.code)
        # 1 is what Typer and rich end with where a pipe is closed
        sys.exit(CUT_OFF if end.code == 1 else end.code)
    except Exception as error:
        interrupt.leave(INTERRUPTED)
        from fluidcc.cli.crash import report

        sys.exit(report(error))
