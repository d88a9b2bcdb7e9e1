"""The commands. Nothing heavy is imported before a command runs."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

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
)
from fluidcc.cli.options import Faults, Task, check_file, count, interval, prepare, seconds
from fluidcc.cli.run import advise, deliver, evaluate, progress, told

app = typer.Typer(
    name="fluidcc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fluid models, stability and packets of congestion control, from one law.",
    epilog="Exit codes: 0 done, 2 wrong use or faulty scenario, 3 some points failed.",
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
    with told():
        faults = Faults()
        task = prepare(faults, *flags)
        faults.finish()
        verb = partial(getattr(import_module(f"fluidcc.analysis.{name}"), name), **options)
        deliver(task, evaluate(task, verb, doing=name), name, listed=True)


def _along(task: Task, faults: Faults, text: str, name: str, module: str, **options: Any) -> None:
    """Run the verb NAME of `fluidcc.analysis.MODULE` along the range PATH=LO:HI of `text`."""
    path, low, high = interval(text, task, faults, name)
    faults.finish()
    from fluidcc.scenario.paths import info_at

    verb = partial(getattr(import_module(f"fluidcc.analysis.{module}"), name), **options)
    info = info_at(task.net, path)
    result = evaluate(task, lambda net: verb(net, path, low, high), doing=name)
    deliver(task, result, name, path=path, unit=info.unit if info else "1")


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
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        if not over:
            faults.add("map", "", "a grid: --over PATH=A:B:STEP", "none")
        faults.finish()
        from fluidcc.analysis.batch import stability_map as search

        with progress("map") as show:
            result = search(task.net, task.axes, progress=show)
        deliver(task, result, "stability_map")


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
    with told():
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
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        if len(along) != 2:
            faults.add("boundary", "", "two ranges PATH=LO:HI", f"{len(along)}")
        ranges = [interval(text, task, faults, "boundary") for text in along]
        faults.finish()
        from fluidcc.analysis.boundary import boundary as search
        from fluidcc.scenario.paths import info_at

        (x, *x_range), (y, *y_range) = ranges
        verb = partial(search, x=x, y=y, x_range=x_range, y_range=y_range)
        infos = [info_at(task.net, path) for path in (x, y)]
        units = [info.unit if info else "1" for info in infos]
        result = evaluate(task, verb, doing="boundary")
        deliver(task, result, "boundary", paths=(x, y), units=units)


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
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        if along is None:
            faults.finish()
            from fluidcc.analysis.cycles.verb import follower

            deliver(task, evaluate(task, follower(), doing="cycle"), "cycle")
            return
        number = count("--points", points, faults)
        _along(task, faults, along, "cycles", "cycles.branches", points=number)


@app.command()
def gradient(
    scenario: Scenario,
    of: Annotated[str, typer.Argument(metavar="QUANTITY", help="phase_margin, link.queue, ...")],
    over: Annotated[list[str], typer.Argument(metavar="PATH...", help="Parameters.")],
    changes: Changes = None, grid: Over = None, json: Json = False, out: Out = None,
    fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Derivatives of a quantity of the equilibrium, a root or a margin by parameters."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, grid, json, out, None, fast_cpu)
        faults.finish()
        from fluidcc.analysis.gradients.gradient import gradient as verb

        result = evaluate(task, lambda net: verb(net, of, over), doing="gradient")
        deliver(task, result, "gradient")


@app.command()
def optimize(
    scenario: Scenario,
    over: Annotated[
        list[str] | None,
        typer.Option("--over", metavar="PATH=LO:HI", help="Parameter to choose. Repeatable."),
    ] = None,
    maximize: Annotated[
        str | None, typer.Option("--maximize", metavar="QUANTITY", help="phase_margin, ...")
    ] = None,
    minimize: Annotated[
        str | None, typer.Option("--minimize", metavar="QUANTITY", help="packets.queue_mean, ...")
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to", metavar="CONSTRAINT", help='"utilization >= 0.95". Repeatable.'
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--over-scenarios", metavar="PATH=LO:HI", help="The worst case counts. Repeatable."
        ),
    ] = None,
    whole: Annotated[
        list[str] | None,
        typer.Option("--whole", metavar="PATH", help="Only whole numbers. Repeatable."),
    ] = None,
    tradeoff: Annotated[
        str | None,
        typer.Option("--tradeoff", metavar="QUANTITY", help="The best goal for each level of it."),
    ] = None,
    points: Annotated[str, typer.Option("--points", metavar="N", help="Levels of that.")] = "9",
    until: Until = "60", warmup: Warmup = "", seeds: Seeds = "3",
    starts: Annotated[
        str, typer.Option("--starts", metavar="N", help="Starts of a search with derivatives.")
    ] = "3",
    trials: Annotated[
        str, typer.Option("--trials", metavar="N", help="Trials of one without.")
    ] = "60",
    seed: Annotated[str, typer.Option("--seed", metavar="K", help="Seed of the trials.")] = "1",
    verify: Annotated[
        bool,
        typer.Option("--verify/--no-verify", help="Run the optimum as trajectory and packets."),
    ] = True,
    changes: Changes = None, json: Json = False, out: Out = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The best parameters under constraints, and whether both engines agree."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, None, json, out, None, fast_cpu)
        ranges = [interval(text, task, faults, "--over") for text in over or ()]
        box = [interval(text, task, faults, "--over-scenarios") for text in scenarios or ()]
        numbers = {"starts": starts, "trials": trials, "seed": seed, "points": points}
        counts = {key: count(f"--{key}", text, faults) for key, text in numbers.items()}
        times = _times(until, warmup, seeds, faults)
        levels = counts.pop("points")
        if tradeoff is not None and levels < 2:
            faults.add("--points", points, "at least 2 levels", points)
        faults.finish()
        from fluidcc.optimize import optimize as search
        from fluidcc.optimize.measures import measure

        if tradeoff is not None:
            measure(task.net, tradeoff, where="--tradeoff")

        verb = partial(
            search, over={path: ends for path, *ends in ranges}, maximize=maximize,
            minimize=minimize, subject_to=subject_to or (), whole=whole or (),
            over_scenarios={path: ends for path, *ends in box}, verification=verify, **times,
            **counts,
        )  # fmt: skip
        result: Any = evaluate(task, verb, doing="optimize", reports=True)
        if tradeoff is not None:
            result = result.traded(tradeoff, levels)
        deliver(task, result, "optimum")


@app.command()
def simulate(
    scenario: Scenario, until: Until = "60", changes: Changes = None, over: Over = None,
    json: Json = False, out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """A trajectory of the fluid model."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        end = seconds("--until", until, faults)
        faults.finish()
        from fluidcc.fluid.simulate import simulate as verb

        result = evaluate(task, partial(verb, until=end), doing="fluid model")
        deliver(task, result, "simulation")


@app.command()
def packets(
    scenario: Scenario, until: Until = "60", warmup: Warmup = "", seeds: Seeds = "5",
    sample: Sample = None, trace: Trace = None, changes: Changes = None, over: Over = None,
    json: Json = False, out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The packet-level simulation, with intervals."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        times = _times(until, warmup, seeds, faults)
        records = _records(sample, trace, task, faults)
        faults.finish()
        from fluidcc.packets.run import simulate_packets

        verb = partial(simulate_packets, **times, **records)
        result = evaluate(task, verb, doing="packets", reports=True)
        deliver(task, result, "packets", warmup=times["warmup"])


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
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        times = _times(until, warmup, seeds, faults)
        faults.finish()
        from fluidcc.compare import compare as both

        verb = partial(both, trajectory=trajectory, **times)
        result = evaluate(task, verb, doing="fluid and packets", reports=True)
        deliver(task, result, "comparison")


def _times(until: str, warmup: str, seeds: str, faults: Faults) -> dict[str, Any]:
    """End, start of the statistics, and seeds."""
    end = seconds("--until", until, faults)
    begin = seconds("--warmup", warmup, faults, within="[0, inf)") if warmup else end / 3
    if 0 < end <= begin:
        faults.add("--warmup", "", f"a time before --until ({end:g} s)", f"{warmup!r}")
    return {"until": end, "warmup": begin, "seeds": range(1, count("--seeds", seeds, faults) + 1)}


def _records(sample: str | None, trace: Path | None, task: Task, faults: Faults) -> dict[str, Any]:
    """What is recorded over time at the one point of a command."""
    found: dict[str, Any] = {}
    if sample is not None:
        found["sample"] = seconds("--sample", sample, faults)
        if task.out is None and task.plot is None:
            faults.add("--sample", "", "--out or --plot, where samples go", f"{sample!r} alone")
    if trace is not None:
        check_file("--trace", trace, (".csv",), faults)
        found["trace"] = trace
    if found and task.axes:
        faults.add(" and ".join(f"--{name}" for name in found), "", "no --over", "a grid of points")
    return found


@app.command()
def bounds(
    scenario: Annotated[
        str | None,
        typer.Argument(help="Judge this scenario; without one, search over parameters."),
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
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, None, json, out, None, fast_cpu)
        size = None if budget is None else count("--budget", budget, faults)
        start = count("--seed", seed, faults)
        faults.finish()
        from fluidcc.bounds.check import check_bounds

        verb = partial(check_bounds, names=only or (), budget=size, seed=start)
        deliver(task, evaluate(task, verb, doing="bounds", reports=True), "bounds")


@app.command()
def show(
    scenario: Scenario, changes: Changes = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the equations as LaTeX.")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """A scenario in full, or its equations."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, None, json)
        faults.finish()
        from fluidcc.cli import about

        about.show(task.net, latex=latex, json=json)
        advise(task.net)


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(help="scenarios, laws or figures")] = "scenarios",
    json: Json = False,
) -> None:
    """Bundled scenarios, the laws with their parameters, or figures of papers."""
    with told():
        from fluidcc.cli import about

        about.listing(what, json=json)


def main() -> None:
    """Run the command line."""
    app()
