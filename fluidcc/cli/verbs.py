"""The table of verbs: each is declared once; its command, and what `sweep` takes of it, follow.

A verb is a public function of `fluidcc` that takes a network. It is declared by a function that
reads its words and options: the parameters of that function, after the task and the faults, are
those of the command, its docstring is the help line, and what it returns are the options of the
public function. A new verb is a module with the function and its result, their names in
`fluidcc/__init__.pyi`, and a declaration here.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import fluidcc
from fluidcc.cli import flags
from fluidcc.cli.flags import Sample, Seeds, Trace, Until, Warmup
from fluidcc.cli.options import Task, check_file, end_of, interval, prepare, times
from fluidcc.cli.run import deliver, evaluate
from fluidcc.scenario.typed import Faults, count, seconds, share

Options = dict[str, Any] | Callable[..., Any]
"""Options of a public function, or a function of a network in its place."""


class Verb(NamedTuple):
    """A verb of the command line.

    Parameters
    ----------
    name, function
        The command, and the name in `fluidcc` of what it runs.
    read
        Reads its words and options: ``read(task, faults, ...)``.
    doing
        What the bar of its progress says.
    reports
        Whether the function takes `progress`.
    grid
        Whether the function takes a grid beside the network, which must be given.
    over, plot
        Whether the command has ``--over`` and ``--plot``.
    listed
        Whether its JSON is a list of points even where there is but one.
    command, swept
        Whether there is a command, and whether `sweep` takes the verb.
    scenario
        Type of the first argument, None by default if it may be missing.
    """

    name: str
    function: str
    read: Callable[..., Options]
    doing: str
    reports: bool = False
    grid: bool = False
    over: bool = True
    plot: bool = True
    listed: bool = False
    command: bool = True
    swept: bool = True
    scenario: Any = flags.Scenario

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Its own words and options, as parameters of its function."""
        return list(inspect.signature(self.read).parameters.values())[2:]

    def call(self, options: Options) -> Any:
        """What is called with a network."""
        if callable(options):
            return options
        found = getattr(fluidcc, self.function)
        return partial(found, **options) if options else found


VERBS: dict[str, Verb] = {}


def _verb(name: str, function: str = "", doing: str = "", **properties: Any) -> Callable[..., Any]:
    """Declare a verb by the function that reads its words and options."""

    def declare(read: Callable[..., Options]) -> Callable[..., Options]:
        VERBS[name] = Verb(name, function or name, read, doing or name, **properties)
        return read

    return declare


def make_command(verb: Verb) -> Callable[..., None]:
    """The command of a verb: its own words and options between those that all commands share."""

    def command(
        scenario: str | None, *, changes: Any, json: bool, out: Path | None, fast_cpu: bool,
        grid: Any = None, plot: Path | None = None, **own: Any,
    ) -> None:  # fmt: skip
        along = own.get("along")
        if isinstance(along, str) and "=" in (scenario or "") and "=" not in along:
            scenario, own["along"] = along, scenario
        faults = Faults()
        task = prepare(faults, scenario, changes, grid, json, out, plot, fast_cpu)
        if verb.grid and not grid:
            faults.add(verb.name, "", "a grid: --over PATH=A:B:STEP", "none")
        options = verb.read(task, faults, **own)
        faults.finish()
        result = evaluate(task, verb.call(options), verb.doing, verb.reports, verb.grid)
        deliver(task, result, listed=verb.listed)

    command.__doc__ = verb.read.__doc__
    shared = {"changes": flags.Changes, "grid": flags.Over if verb.over else None}
    shared |= {"json": flags.Json, "out": flags.Out, "plot": flags.Plot if verb.plot else None}
    shared["fast_cpu"] = flags.FastCPU
    defaults = {"json": False, "fast_cpu": True}
    needed = inspect.Parameter.empty if verb.scenario is flags.Scenario else None
    command.__signature__ = inspect.Signature([  # pyright: ignore[reportFunctionMemberAccess]
        _parameter("scenario", verb.scenario, needed), *verb.parameters,
        *(_parameter(k, own, defaults.get(k)) for k, own in shared.items() if own is not None),
    ])  # fmt: skip
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


Parameters = Annotated[list[str], typer.Argument(metavar="PATH...", help="Parameters.")]


@_verb("equilibrium", listed=True)
def _equilibrium(task: Task, faults: Faults) -> Options:
    """Where the network comes to rest."""
    return {}


@_verb("stability", listed=True)
def _stability(
    task: Task, faults: Faults,
    certify: Annotated[
        bool, typer.Option("--certify", help="Prove the count of unstable roots strictly.")
    ] = False,
) -> Options:  # fmt: skip
    """Stability of the equilibrium: roots and margins."""
    return {"certify": True} if certify else {}


@_verb("map", "stability_map", grid=True)
def _map(task: Task, faults: Faults) -> Options:
    """Stability over a grid of parameters, all points together: verdicts and rightmost roots."""
    return {}


@_verb("crossings")
def _crossings(
    task: Task, faults: Faults,
    along: Annotated[str, typer.Argument(metavar="PATH=LO:HI", help="The range to search.")],
) -> Options:  # fmt: skip
    """Every change of stability along one parameter."""
    path, low, high = interval(along, task, faults, "crossings")
    return {"path": path, "low": low, "high": high}


@_verb("boundary")
def _boundary(
    task: Task, faults: Faults,
    along: Annotated[
        list[str], typer.Argument(metavar="PATH=LO:HI PATH=LO:HI", help="Both ranges to search.")
    ],
) -> Options:  # fmt: skip
    """Every curve over two parameters on which stability changes."""
    if len(along) != 2:
        faults.add("boundary", "", "two ranges PATH=LO:HI", f"{len(along)}")
    ranges = [interval(text, task, faults, "boundary") for text in along]
    (x, *x_range), (y, *y_range) = (ranges * 2)[:2]
    return {"x": x, "y": y, "x_range": tuple(x_range), "y_range": tuple(y_range)}


@_verb("cycle")
def _cycle(
    task: Task, faults: Faults,
    along: Annotated[
        str | None,
        typer.Argument(metavar="[PATH=LO:HI]", help="Follow cycles from each Hopf point in it."),
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="N", help="Of the range, beyond smooth cycles.")
    ] = "12",
) -> Options:  # fmt: skip
    """The limit cycle: period, extremes, Floquet multipliers. Points follow their neighbours."""
    number = count("--points", points, faults)
    if task.chunked:
        return {}
    if along is not None:
        path, low, high = interval(along, task, faults, "cycles")
        return lambda net: fluidcc.cycles(net, path, low, high, points=number)
    from fluidcc.analysis.cycles.verb import follower

    return follower()


@_verb("gradient", plot=False)
def _gradient(
    task: Task, faults: Faults,
    of: Annotated[str, typer.Argument(metavar="QUANTITY", help="phase_margin, link.queue, ...")],
    over: Parameters,
) -> Options:  # fmt: skip
    """Derivatives of a quantity of the equilibrium, a root or a margin by parameters."""
    return {"of": of, "over": over}


@_verb("sensitivity", doing="derivatives")
def _sensitivity(
    task: Task, faults: Faults, over: Parameters, until: Until = "60",
    after: Annotated[
        str, typer.Option("--after", metavar="TIME", help="Means are from here on [s].")
    ] = "0",
) -> Options:  # fmt: skip
    """Derivatives of a trajectory by parameters, delays and the initial state."""
    end = end_of(until, faults)
    begin = seconds("--after", after, faults, within="[0, inf)")
    if 0 < end <= begin:
        faults.add("--after", "", f"a time before --until ({end:g} s)", f"{after!r}")
    return {"over": over, "until": end} | ({"after": begin} if begin else {})


@_verb("optimize", reports=True, over=False, plot=False, swept=False)
def _optimize(
    task: Task, faults: Faults,
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
) -> Options:  # fmt: skip
    """The best parameters under constraints, and whether both engines agree."""
    ranges = _ranges("--over", over or (), task, faults)
    box = _ranges("--over-scenarios", scenarios or (), task, faults)
    counts: dict[str, Any] = {
        "starts": count("--starts", starts, faults), "trials": count("--trials", trials, faults),
    }  # fmt: skip
    levels = count("--points", points, faults)
    counts["seed"] = count("--seed", seed, faults, least=0)
    when = times(until, warmup, seeds, faults)
    if tradeoff is not None and levels < 2:
        faults.add("--points", "", "at least 2 levels", points)
    if not ranges:
        faults.add("--over", "", "at least one PATH=LO:HI to choose from", "none")
    if (maximize is None) == (minimize is None):
        both = "neither" if maximize is None else "both"
        faults.add("optimize", "", "either --maximize QUANTITY or --minimize QUANTITY", both)
    goals = {"--maximize": maximize, "--minimize": minimize, "--tradeoff": tradeoff}
    _check_names(task, goals, subject_to or (), faults)

    def search(net: Any, *, progress: Any = None) -> Any:
        best = fluidcc.optimize(
            net, ranges, maximize=maximize, minimize=minimize, subject_to=subject_to or (),
            whole=whole or (), over_scenarios=box, verification=verify, progress=progress,
            **when, **counts,
        )  # fmt: skip
        return best if tradeoff is None else best.traded(tradeoff, levels)

    return search


def _ranges(
    option: str, texts: Sequence[str], task: Task, faults: Faults
) -> dict[str, tuple[float, float]]:
    """The ranges of ``PATH=LO:HI`` options by path."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        path, low, high = interval(text, task, faults, option)
        if path in found:
            faults.add(option, path, "each path once", f"{text!r}")
        found[path] = low, high
    return found


def _check_names(
    task: Task, quantities: Mapping[str, str | None], rules: Sequence[str], faults: Faults
) -> None:
    """Note quantities, by option, and constraints that the network does not have."""
    if task.net is None:
        return
    from fluidcc.analysis.measures import measure
    from fluidcc.optimize.problem import constraint

    for option, name in quantities.items():
        if name is not None:
            faults.catch(measure, task.net, name, where=option)
    for text in rules:
        faults.catch(constraint, task.net, text, where="--subject-to")


@_verb("windows", "stationary_windows")
def _windows(
    task: Task, faults: Faults,
    probability: Annotated[
        str | None,
        typer.Option("--probability", metavar="P", help="Of a mark; what is heard at rest if not."),
    ] = None,
) -> Options:  # fmt: skip
    """Distribution of the windows under random marks: what the fluid's mean leaves out."""
    return {} if probability is None else {"p": share("--probability", probability, faults)}


@_verb("simulate", doing="fluid model")
def _simulate(task: Task, faults: Faults, until: Until = "60") -> Options:
    """A trajectory of the fluid model."""
    return {"until": end_of(until, faults)}


@_verb("trajectories", "simulate_map", grid=True, command=False)
def _trajectories(task: Task, faults: Faults, until: Until = "60", fused: bool = False) -> Options:
    """Trajectories of the fluid model over a grid, stepped side by side."""
    mesh = {"mesh": fluidcc.Uniform(fused=True)} if fused else {}
    return {"until": end_of(until, faults), **mesh}


@_verb("packets", "simulate_packets", reports=True)
def _packets(
    task: Task, faults: Faults, until: Until = "60", warmup: Warmup = "", seeds: Seeds = "5",
    sample: Sample = None, trace: Trace = None,
) -> Options:  # fmt: skip
    """The packet-level simulation, with intervals."""
    options = times(until, warmup, seeds, faults)
    if sample is not None:
        options["sample"] = seconds("--sample", sample, faults)
        if task.out is None and task.plot is None:
            faults.add("--sample", "", "--out or --plot, where samples go", f"{sample!r} alone")
    if trace is not None:
        check_file("--trace", trace, (".csv",), faults)
        if task.out is not None and task.out.resolve() == trace.resolve():
            faults.add("--trace", "", "another file than that of --out", f"'{trace}' for both")
        options["trace"] = trace
    records = [f"--{name}" for name in ("sample", "trace") if name in options]
    if records and task.axes and not task.chunked:
        faults.add(" and ".join(records), "", "no --over", "a grid of points")
    return options


@_verb("compare", doing="fluid and packets", reports=True)
def _compare(
    task: Task, faults: Faults, until: Until = "60", warmup: Warmup = "", seeds: Seeds = "5",
    trajectory: Annotated[
        bool,
        typer.Option(
            "--trajectory/--no-trajectory",
            help="Integrate the fluid model, or take its equilibrium alone.",
        ),
    ] = True,
) -> Options:  # fmt: skip
    """The fluid model beside the packets, with intervals."""
    return times(until, warmup, seeds, faults) | ({} if trajectory else {"trajectory": False})


@_verb(
    "bounds", "check_bounds", reports=True, over=False, plot=False, swept=False,
    scenario=Annotated[
        str | None,
        typer.Argument(
            help="Judge this scenario; without one, search over parameters.",
            autocompletion=flags.completed,
        ),
    ],
)  # fmt: skip
def _bounds(
    task: Task, faults: Faults,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="BOUND", help="Judge this. Repeatable.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="N", help="Cases searched for each kind of network."),
    ] = None,
    seed: Annotated[str, typer.Option("--seed", metavar="K", help="Seed of the search.")] = "1",
) -> Options:  # fmt: skip
    """Published bounds put to the test: verdicts, and the smallest counterexamples."""
    size = None if budget is None else count("--budget", budget, faults)
    start = count("--seed", seed, faults, least=0)
    return {"names": only or (), "budget": size, "seed": start}
