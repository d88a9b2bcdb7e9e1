"""The command `optimize`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from fluidcc.cli.flags import Changes, FastCPU, Json, Out, Scenario, Seeds, Until, Warmup
from fluidcc.cli.options import Task, interval, prepare, times
from fluidcc.cli.run import deliver, evaluate
from fluidcc.scenario.typed import Faults, count


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
    faults = Faults()
    task = prepare(faults, scenario, changes, None, json, out, None, fast_cpu)
    ranges = _ranges("--over", over or (), task, faults)
    box = _ranges("--over-scenarios", scenarios or (), task, faults)
    numbers = {"starts": starts, "trials": trials, "points": points}
    counts = {key: count(f"--{key}", text, faults) for key, text in numbers.items()}
    counts["seed"] = count("--seed", seed, faults, least=0)
    when = times(until, warmup, seeds, faults)
    levels = counts.pop("points")
    if tradeoff is not None and levels < 2:
        faults.add("--points", "", "at least 2 levels", points)
    if not ranges:
        faults.add("--over", "", "at least one PATH=LO:HI to choose from", "none")
    if (maximize is None) == (minimize is None):
        both = "neither" if maximize is None else "both"
        faults.add("optimize", "", "either --maximize QUANTITY or --minimize QUANTITY", both)
    goals = {"--maximize": maximize, "--minimize": minimize, "--tradeoff": tradeoff}
    _check_names(task, goals, subject_to or (), faults)
    faults.finish()
    from fluidcc.optimize import optimize as search

    verb = partial(
        search, over=ranges, maximize=maximize, minimize=minimize,
        subject_to=subject_to or (), whole=whole or (), over_scenarios=box,
        verification=verify, **when, **counts,
    )  # fmt: skip
    result: Any = evaluate(task, verb, doing="optimize", reports=True)
    if tradeoff is not None:
        result = result.traded(tradeoff, levels)
    deliver(task, result)


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
    from fluidcc.optimize.constraints import constraint
    from fluidcc.optimize.measures import measure

    for option, name in quantities.items():
        if name is not None:
            faults.catch(measure, task.net, name, where=option)
    for text in rules:
        faults.catch(constraint, task.net, text, where="--subject-to")
