"""The commands. Nothing heavy is imported before a command runs."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from fluidcc.cli.options import Faults, Task, check_file, count, interval, prepare, seconds
from fluidcc.cli.run import advise, deliver, evaluate, told

app = typer.Typer(
    name="fluidcc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fluid models, stability and packets of congestion control, from one law.",
    epilog="Exit codes: 0 done, 2 wrong use or faulty scenario, 3 some points failed.",
)

Scenario = Annotated[str, typer.Argument(help="Bundled scenario (fluidcc list) or a TOML file.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a parameter. Repeatable."),
]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", metavar="PATH=A:B:STEP|v1,v2", help="Sweep a parameter. Repeat for a grid."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the result: .nc or .csv.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the result: .png, .pdf or .svg.")]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="End of the run [s].")]
Warmup = Annotated[
    str,
    typer.Option(
        "--warmup", metavar="TIME", help="Statistics start here [s]. [default: --until / 3]"
    ),
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="K", help="Packet runs: seeds 1 to K.")]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample", metavar="TIME", help="Sample queues and windows, for --out or --plot [s]."
    ),
]
Trace = Annotated[
    Path | None, typer.Option("--trace", help="Write every event of seed 1's run: .csv.")
]
FastCPU = Annotated[
    bool,
    typer.Option("--fast-cpu/--no-fast-cpu", help="Compile integration loops as a whole."),
]


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
        path, low, high = interval(along, task, faults)
        faults.finish()
        from fluidcc.analysis.crossings import crossings as search
        from fluidcc.scenario.paths import info_at

        info = info_at(task.net, path)
        result = evaluate(task, lambda net: search(net, path, low, high), doing="crossings")
        deliver(task, result, "crossings", path=path, unit=info.unit if info else "1")


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
    scenario: Scenario, changes: Changes = None, over: Over = None, json: Json = False,
    out: Out = None, plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """The limit cycle: period, extremes, Floquet multipliers. Points follow their neighbours."""
    with told():
        faults = Faults()
        task = prepare(faults, scenario, changes, over, json, out, plot, fast_cpu)
        faults.finish()
        from fluidcc.analysis.cycles.verb import follower

        deliver(task, evaluate(task, follower(), doing="cycle"), "cycle")


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
