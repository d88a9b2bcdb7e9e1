"""The table of verbs: each is declared once, with its command and its part in `sweep`.

A verb is a public function of `fluidcc` that takes a network. A function declares it: it reads the
words and options, returns the options of the public function, and has the help line as docstring.
A new verb is a module with the function and its result, the view of this, their names in
`fluidcc/__init__.pyi`, and a declaration here.
"""

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer

import fluidcc
from fluidcc.cli.options import (
    CHANGES,
    COLUMNS,
    FAST_CPU,
    JSON,
    OUT,
    OVER,
    PLOT,
    QUIET,
    SCENARIO,
    SEEDS,
    UNTIL,
    WARMUP,
    Option,
    Task,
    check_columns,
    check_file,
    completed,
    end_of,
    file,
    flag,
    interval,
    prepare,
    several,
    takes,
    text,
    times,
    word,
)
from fluidcc.cli.run import deliver, evaluate
from fluidcc.results.levels import LEVELS, known_levels
from fluidcc.scenario.parsing import Faults, count, seconds, share

Options = dict[str, Any] | Callable[..., Any]
"""Options of a public function, or a function of a network in its place."""


class Verb(NamedTuple):
    """A verb of the command line.

    Parameters
    ----------
    name, function
        The command, and the name of its function in `fluidcc`.
    read
        Reads its words and options: ``read(task, faults, ...)``.
    options
        Its own words and options.
    doing
        Text of its progress bar.
    grid
        Whether the function takes a network and a grid, which must be given.
    gridded, drawn
        Whether the command has ``--over`` and ``--plot``.
    listed
        Whether its JSON is a list of points even if there is only one.
    command, swept
        Whether there is a command, and whether `sweep` takes the verb.
    alone
        Options that `sweep` does not take.
    scenario
        The first word.
    fluid
        Whether its result is of the fluid model.
    """

    name: str
    function: str
    read: Callable[..., Options]
    options: Mapping[str, Option]
    doing: str
    grid: bool = False
    gridded: bool = True
    drawn: bool = True
    listed: bool = False
    command: bool = True
    swept: bool = True
    alone: tuple[str, ...] = ()
    scenario: Option = SCENARIO
    fluid: bool = True

    @property
    def words(self) -> dict[str, Option]:
        """The words that it needs after the scenario."""
        needed = inspect.Parameter.empty
        return {name: option for name, option in self.options.items() if option.default is needed}

    @property
    def choices(self) -> dict[str, Option]:
        """Those of its options that `sweep` takes."""
        left = (
            *self.alone,
            *(name for name, option in self.options.items() if option.names is None),
        )
        return {name: option for name, option in self.options.items() if name not in left}

    def check_columns(
        self, task: Task, faults: Faults, own: Mapping[str, Any], *, chunked: bool = False
    ) -> None:
        """Note columns that its result cannot have; `own` are its words and options."""
        if task.columns is None:
            return
        paths = [own.get(name) or () for name in ("along", "over", "vary")]
        each = [path for p in paths for path in ([p] if isinstance(p, str) else p)]
        function = "cycles" if self.name == "cycle" and own["along"] else self.function
        name = getattr(fluidcc, function).__annotations__["return"]
        result = getattr(fluidcc, getattr(name, "__name__", name))
        along = [text.partition("=")[0].strip() for text in each]
        check_columns(task, faults, result, along, chunked=chunked)

    def call(self, options: Options) -> Any:
        """The function that is called with a network."""
        if callable(options):
            return options
        function = getattr(fluidcc, self.function)
        return partial(function, **options) if options else function


VERBS: dict[str, Verb] = {}


def _verb(
    name: str, function: str = "", own: Mapping[str, Option] | None = None, **properties: Any
) -> Callable[..., Any]:
    """Declare a verb by the function that reads its own words and options."""

    def declare(read: Callable[..., Options]) -> Callable[..., Options]:
        doing = properties.pop("doing", name)
        VERBS[name] = Verb(name, function or name, read, own or {}, doing, **properties)
        return read

    return declare


def make_command(verb: Verb) -> Callable[..., None]:
    """The command of a verb: its own words and options between those that all commands share."""

    def command(
        scenario: str | None, *, changes: Any, json: bool, out: Path | None, columns: str | None,
        fast_cpu: bool, quiet: bool, grid: Any = None, plot: Path | None = None, **own: Any,
    ) -> None:  # fmt: skip
        along = own.get("along")
        if isinstance(along, str) and "=" in (scenario or "") and "=" not in along:
            scenario, own["along"] = along, scenario
        faults = Faults()
        task = prepare(
            faults, scenario, changes, grid, json, out, columns, plot, fast_cpu, quiet=quiet
        )
        if verb.grid and not grid:
            faults.add(verb.name, "", "a grid: --over PATH=A:B:STEP", "none")
        if verb.scenario is SCENARIO:  # bounds have words of their own
            verb.check_columns(task, faults, own)
        options = verb.read(task, faults, **own)
        faults.finish()
        result = evaluate(task, verb.call(options), verb.doing, verb.grid)
        deliver(task, result, listed=verb.listed, fluid=verb.fluid)

    command.__doc__ = verb.read.__doc__
    shared = {"changes": CHANGES} | ({"grid": OVER} if verb.gridded else {})
    shared |= {"json": JSON, "out": OUT, "columns": COLUMNS} | (
        {"plot": PLOT} if verb.drawn else {}
    )
    return takes(
        scenario=verb.scenario, **verb.options, **shared, quiet=QUIET, fast_cpu=FAST_CPU
    )(command)  # fmt: skip


_PATHS = word("PATH...", "Parameters.", list[str])


_CLOSURE = {"closure": text("NAME", "What rules act on: mean windows, or the population's.")}


def _closed(
    task: Task, faults: Faults, closure: str | None, function: str, **options: Any
) -> Options:
    """Options of a function, or the function with them, called with another closure."""
    if closure is None:
        return options
    changes = {"model.closure": closure}
    if task.net is not None:
        faults.catch(fluidcc.replace, task.net, changes, where="--closure")

    def call(net: Any) -> Any:
        function_of = getattr(fluidcc, function)  # imported when all faults are known
        return function_of(fluidcc.replace(net, changes, where="--closure"), **options)

    return call


@_verb("equilibrium", own=_CLOSURE, listed=True)
def _equilibrium(task: Task, faults: Faults, closure: str | None) -> Options:
    """The equilibrium of the network, with its status."""
    return _closed(task, faults, closure, "equilibrium")


@_verb("noise", "fluctuations", doing="fluctuations", listed=True)
def _noise(task: Task, faults: Faults) -> Options:
    """Fluctuations of queues and windows around the equilibrium: spectrum, spread, quantiles."""
    return {}


@_verb(
    "stability", listed=True,
    own=_CLOSURE | {"certify": flag("Prove the count of unstable roots rigorously.")},
)  # fmt: skip
def _stability(task: Task, faults: Faults, closure: str | None, certify: bool) -> Options:
    """Stability of the equilibrium: roots and margins."""
    options = {"certify": True} if certify else {}
    return _closed(task, faults, closure, "stability", **options)


@_verb("bode", own=_CLOSURE, gridded=False, swept=False)
def _bode(task: Task, faults: Faults, closure: str | None) -> Options:
    """Frequency response of the loop with its margins: Bode and Nyquist plots."""
    return _closed(task, faults, closure, "bode")


@_verb("stability-map", "stability_map", grid=True)
def _map(task: Task, faults: Faults) -> Options:
    """Stability over a grid of parameters, all points together, with rightmost roots."""
    return {}


@_verb("crossings", own={"along": word("PATH=LO:HI", "The range to search.")} | _CLOSURE)
def _crossings(task: Task, faults: Faults, along: str, closure: str | None) -> Options:
    """Every change of stability along one parameter."""
    path, low, high = interval(along, task, faults, "crossings")
    return _closed(task, faults, closure, "crossings", path=path, low=low, high=high)


@_verb(
    "boundary",
    own={"along": word("PATH=LO:HI PATH=LO:HI", "Both ranges to search.", list[str])} | _CLOSURE,
)
def _boundary(task: Task, faults: Faults, along: list[str], closure: str | None) -> Options:
    """Every curve over two parameters on which stability changes."""
    if len(along) != 2:
        faults.add("boundary", "", "two ranges PATH=LO:HI", f"{len(along)}")
    ranges = [interval(text, task, faults, "boundary") for text in along]
    (x, *x_range), (y, *y_range) = (ranges * 2)[:2]
    if not faults.found:
        from fluidcc.scenario.paths import require_once

        faults.catch(require_once, task.net, (x, y), where="boundary")
    given: Options = {"x": x, "y": y, "x_range": tuple(x_range), "y_range": tuple(y_range)}
    return _closed(task, faults, closure, "boundary", **given)


@_verb(
    "cycle", alone=("points",),
    own={
        "along": word(
            "[PATH=LO:HI]", "Range to follow cycles from each Hopf point.", str | None, None
        ),
        "points": text("N", "Values in the range at which to search for non-smooth cycles.", "12"),
    },
)  # fmt: skip
def _cycle(task: Task, faults: Faults, along: str | None, points: str) -> Options:
    """The limit cycle: period, extremes, Floquet multipliers. Grid points start from neighbours."""
    number = count("--points", points, faults)
    if task.chunked:
        return {}
    if along is not None:
        path, low, high = interval(along, task, faults, "cycles")
        return lambda net: fluidcc.cycles(net, path, low, high, points=number)
    from fluidcc.analysis.cycles.verb import follower

    return follower()


@_verb(
    "gradient", drawn=False,
    own={"of": word("QUANTITY", "phase_margin, link.queue, ..."), "over": _PATHS},
)  # fmt: skip
def _gradient(task: Task, faults: Faults, of: str, over: list[str]) -> Options:
    """Derivatives of a quantity of the equilibrium, a root or a margin by parameters."""
    _check_paths(task, over, faults, "gradient")
    if task.net is not None and not of.startswith("cycle."):
        from fluidcc.analysis.measures import EQUILIBRIUM, find, measures

        faults.catch(find, task.net, of, measures(task.net, EQUILIBRIUM), where="gradient")
    return {"of": of, "over": over}


@_verb(
    "sensitivity", doing="derivatives",
    own={
        "over": _PATHS, "until": UNTIL, "after": text("TIME", "Means start here [s].", "0")
    },
)  # fmt: skip
def _sensitivity(task: Task, faults: Faults, over: list[str], until: str, after: str) -> Options:
    """Derivatives of a trajectory by parameters, delays and the initial state."""
    _check_paths(task, over, faults, "sensitivity")
    end = end_of(until, faults)
    begin = seconds("--after", after, faults, within="[0, inf)")
    if 0 < end <= begin:
        faults.add("--after", "", f"a time before --until ({end:g} s)", f"{after!r}")
    return {"over": over, "until": end} | ({"after": begin} if begin else {})


@_verb(
    "optimize", gridded=False, drawn=False, swept=False,
    own={
        "vary": several("PATH=LO:HI", "Parameter to choose. Repeatable."),
        "maximize": text("QUANTITY", "Goal, such as phase_margin."),
        "minimize": text("QUANTITY", "Goal, such as packets.queue_mean."),
        "subject_to": several("CONSTRAINT", 'Such as "utilization >= 0.95". Repeatable.'),
        "over_scenarios": several("PATH=LO:HI", "Scenarios whose worst case counts. Repeatable."),
        "integer": several("PATH", "Parameter with whole numbers only. Repeatable."),
        "tradeoff": text("QUANTITY", "Find the best goal for each level of this."),
        "points": text("N", "Levels of --tradeoff.", "9"),
        "until": UNTIL, "warmup": WARMUP, "seeds": SEEDS._replace(default="3"),
        "starts": text("N", "Starts of a search with derivatives.", "3"),
        "trials": text("N", "Trials of a search without derivatives.", "60"),
        "seed": text("K", "Seed of the trials.", "1"),
        "verify": flag(
            "Verify the optimum by trajectory and packets.", "--verify/--no-verify", default=True
        ),
    },
)  # fmt: skip
def _optimize(
    task: Task, faults: Faults, vary: Sequence[str] | None, maximize: str | None,
    minimize: str | None, subject_to: Sequence[str] | None, over_scenarios: Sequence[str] | None,
    integer: Sequence[str] | None, tradeoff: str | None, points: str, until: str, warmup: str,
    seeds: str, starts: str, trials: str, seed: str, verify: bool,
) -> Options:  # fmt: skip
    """The best parameters under constraints, verified by a trajectory and by packets."""
    ranges = _ranges("--vary", vary or (), task, faults)
    box = _ranges("--over-scenarios", over_scenarios or (), task, faults)
    counts: dict[str, Any] = {
        "starts": count("--starts", starts, faults), "trials": count("--trials", trials, faults),
    }  # fmt: skip
    levels = count("--points", points, faults)
    counts["seed"] = count("--seed", seed, faults, least=0)
    when = times(until, warmup, seeds, faults)
    if tradeoff is not None and levels < 2:
        faults.add("--points", "", "at least 2 levels", points)
    if not ranges:
        faults.add("--vary", "", "at least one PATH=LO:HI to choose from", "none")
    if (maximize is None) == (minimize is None):
        both = "neither" if maximize is None else "both"
        faults.add("optimize", "", "either --maximize QUANTITY or --minimize QUANTITY", both)
    goals = {"--maximize": maximize, "--minimize": minimize, "--tradeoff": tradeoff}
    _check_names(task, goals, subject_to or (), faults)

    def search(net: Any) -> Any:
        best = fluidcc.optimize(
            net, ranges, maximize=maximize, minimize=minimize, subject_to=subject_to or (),
            integer=integer or (), over_scenarios=box, verification=verify, **when, **counts,
        )  # fmt: skip
        return best if tradeoff is None else best.traded(tradeoff, levels)

    return search


def _ranges(
    option: str, texts: Sequence[str], task: Task, faults: Faults
) -> dict[str, tuple[float, float]]:
    """The ranges of ``PATH=LO:HI`` options by path."""
    ends: dict[str, tuple[float, float]] = {}
    for given in texts:
        path, low, high = interval(given, task, faults, option)
        if path in ends:
            faults.add(option, path, "each path once", f"{given!r}")
        ends[path] = low, high
    return ends


def _check_paths(task: Task, paths: Sequence[str], faults: Faults, where: str) -> None:
    """Note paths of parameters that the network does not have."""
    if task.net is not None:
        from fluidcc.scenario.paths import check_paths

        faults.catch(check_paths, task.net, paths, where=where)


def _check_names(
    task: Task, quantities: Mapping[str, str | None], rules: Sequence[str], faults: Faults
) -> None:
    """Note quantities, by option, and constraints that the network does not have."""
    if task.net is None:
        return
    from fluidcc.analysis.measures import measure
    from fluidcc.optimize.constraints import constraint

    for option, name in quantities.items():
        if name is not None:
            faults.catch(measure, task.net, name, where=option)
    for rule in rules:
        faults.catch(constraint, task.net, rule, where="--subject-to")


@_verb(
    "window-distribution",
    "window_distributions",
    {"probability": text("P", "Mark probability (default: the one seen at equilibrium).")},
)
def _windows(task: Task, faults: Faults, probability: str | None) -> Options:
    """Distribution of the windows under random marks; the fluid model has only its mean."""
    return {} if probability is None else {"p": share("--probability", probability, faults)}


_LONG = 600.0  # s


def _announce(
    task: Task, faults: Faults, options: Mapping[str, Any], time: Callable[..., float],
    how: str = "",
) -> None:  # fmt: skip
    """Say on stderr that runs will take long, before they start: `time` [s] at each point."""
    if task.net is None or faults.found or task.quiet:
        return
    points = math.prod(map(len, task.axes.values()))
    with contextlib.suppress(ValueError):  # the verb says what is wrong
        taken = points * time(task.net, **options)
        if taken > _LONG:
            span = f"{taken / 3600:,.1f} h" if taken > 3600 else f"{taken / 60:.0f} min"
            typer.echo(f"note: about {span}{how}", err=True)


def _processors() -> str:
    from fluidcc.machine import threads

    return f" on {threads()} processors"


@_verb("simulate", own={"until": UNTIL}, doing="fluid model")
def _simulate(task: Task, faults: Faults, until: str) -> Options:
    """A trajectory of the fluid model."""
    from fluidcc.model.simulate import trajectory_time

    options = {"until": end_of(until, faults)}
    _announce(task, faults, options, trajectory_time)
    return options


@_verb(
    "trajectories", "simulate_map",
    {"until": UNTIL, "fused": flag("Integrate trajectories by one kernel.")},
    grid=True, command=False,
)  # fmt: skip
def _trajectories(task: Task, faults: Faults, until: str, fused: bool) -> Options:
    """Trajectories of the fluid model over a grid, integrated together."""
    mesh = {"mesh": fluidcc.Uniform(fused=True)} if fused else {}
    return {"until": end_of(until, faults), **mesh}


_SAMPLE = text("TIME", "Sample queues and windows, for --out or --plot [s].")


def _runs(
    task: Task, faults: Faults, until: str, warmup: str, seeds: str, sample: str | None
) -> dict[str, Any]:
    """Options of runs over seeds."""
    options = times(until, warmup, seeds, faults)
    if sample is not None:
        options["sample"] = seconds("--sample", sample, faults)
        if task.out is None and task.plot is None:
            faults.add("--sample", "", "--out or --plot for the samples", f"{sample!r} alone")
    return options


def _refuse_records(task: Task, faults: Faults, options: Mapping[str, Any]) -> None:
    """Note what a run writes, on a grid."""
    names = ("sample", "trace", "save_state")
    records = [f"--{name.replace('_', '-')}" for name in names if name in options]
    if records and task.axes and not task.chunked:
        faults.add(" and ".join(records), "", "no --over", "a grid of points")


@_verb(
    "packets", "simulate_packets",
    {
        "until": UNTIL, "sample": _SAMPLE,
        "warmup": WARMUP._replace(
            help="Statistics start here [s], with --initial FILE that long after its states. "
            "[default: --until / 3, or 0]"
        ),
        "seeds": SEEDS._replace(
            default="", help=f"{SEEDS.help} [default: 5, or those of --initial FILE]"
        ),
        "trace": file("Write the first seed's run: all events (.csv), or packets (.pcap)."),
        "initial": text(
            "equilibrium|FILE", "Begin at the equilibrium, or go on from states of --save-state."
        ),
        "save_state": file("Write the states of all runs at their end (.state), for --initial."),
    },
    alone=("trace", "save_state"), fluid=False,
)  # fmt: skip
def _packets(
    task: Task, faults: Faults, until: str, warmup: str, seeds: str, sample: str | None,
    trace: Path | None, initial: str | None, save_state: Path | None,
) -> Options:  # fmt: skip
    """The packet-level simulation, with intervals."""
    options = _runs(task, faults, until, warmup, seeds or "5", sample)
    if trace is not None:
        check_file("--trace", trace, (".csv", ".pcap"), faults)
        if task.out is not None and task.out.resolve() == trace.resolve():
            faults.add("--trace", "", "another file than that of --out", f"'{trace}' for both")
        options["trace"] = trace
    if save_state is not None:
        check_file("--save-state", save_state, (".state",), faults)
        options["save_state"] = save_state
    if initial == "equilibrium":
        options["initial"] = fluidcc.equilibrium
    elif initial is not None:
        if not Path(initial).is_file():
            faults.add("--initial", "", "equilibrium, or a file of --save-state", f"{initial!r}")
        options["initial"] = Path(initial)
        if not seeds:
            options["seeds"] = None  # all those of the states
        if not warmup:
            options["warmup"] = 0.0  # counts from the states
    _refuse_records(task, faults, options)
    from fluidcc.packets.budget import packet_time
    from fluidcc.packets.saved import saved_seeds

    def time(net: Any, **_: Any) -> float:
        runs = options["seeds"] or saved_seeds(options["initial"])
        return packet_time(net, options["until"], len(runs))

    full = " if the links are full; trains take as long at any capacity (fluidcc trains)"
    _announce(task, faults, options, time, _processors() + full)
    return options


@_verb(
    "trains", "simulate_trains",
    {
        "until": UNTIL, "warmup": WARMUP, "seeds": SEEDS,
        "step": text("TIME", "Time between looks at the flows [s] (default: by round trips)."),
        "error": flag(
            "Estimate the error of the step, by runs with twice the step.", "--error/--no-error",
            default=True,
        ),
        "sample": _SAMPLE,
    },
    fluid=False,
)  # fmt: skip
def _trains(
    task: Task, faults: Faults, until: str, warmup: str, seeds: str, step: str | None,
    error: bool, sample: str | None,
) -> Options:  # fmt: skip
    """The simulation by trains of packets, with intervals: its cost is the same at any capacity."""
    options: dict[str, Any] = _runs(task, faults, until, warmup, seeds, sample)
    options["estimate_error"] = error
    if step is not None:
        options["step"] = seconds("--step", step, faults)
    _refuse_records(task, faults, options)
    from fluidcc.trains.layout import train_time
    from fluidcc.trains.run import TWICE_THE_STEP

    def time(net: Any, **_: Any) -> float:
        once = train_time(net, options["until"], len(options["seeds"]), options.get("step"))
        return (TWICE_THE_STEP if error else 1.0) * once

    _announce(task, faults, options, time, _processors())
    return options


@_verb(
    "compare", doing="runs",
    own={
        "until": UNTIL, "warmup": WARMUP, "seeds": SEEDS,
        "levels": text("LEVELS", "Levels to set side by side.", ",".join(LEVELS)),
        "trajectory": flag(
            "Integrate the fluid model, or take its equilibrium alone.",
            "--trajectory/--no-trajectory", default=True,
        ),
    },
)  # fmt: skip
def _compare(
    task: Task, faults: Faults, until: str, warmup: str, seeds: str, levels: str, trajectory: bool
) -> Options:
    """Mean windows, the population, trains and packets side by side, and the level to trust."""
    options = times(until, warmup, seeds, faults) | ({} if trajectory else {"trajectory": False})
    try:
        options["levels"] = known_levels(levels)
    except ValueError:
        faults.add("--levels", "", f"some of {', '.join(LEVELS)}", f"{levels!r}")
    from fluidcc.results.compare import compare_time

    _announce(task, faults, options, compare_time, _processors())
    return options


@_verb(
    "check-bounds", "check_bounds",
    {
        "only": several("BOUND", "Test this bound only. Repeatable."),
        "budget": text("N", "Number of cases to search for each kind of network."),
        "seed": text("K", "Seed of the search.", "1"),
    },
    gridded=False, drawn=False, swept=False,
    scenario=word(
        None, "Scenario to test; without one, search over parameters.", str | None, None,
        autocompletion=completed,
    ),
)  # fmt: skip
def _bounds(
    task: Task, faults: Faults, only: list[str] | None, budget: str | None, seed: str
) -> Options:
    """Tests of published bounds: verdicts, and the smallest counterexamples."""
    size = None if budget is None else count("--budget", budget, faults)
    start = count("--seed", seed, faults, least=0)
    return {"names": only or (), "budget": size, "seed": start}
