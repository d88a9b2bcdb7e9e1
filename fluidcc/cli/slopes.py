"""The commands `gradient` and `sensitivity`: derivatives of what rests, and of trajectories."""

from functools import partial
from typing import Annotated

import typer

from fluidcc.cli.flags import Changes, FastCPU, Json, Out, Over, Plot, Scenario, Until
from fluidcc.cli.options import end_of, prepare
from fluidcc.cli.run import deliver, evaluate
from fluidcc.scenario.typed import Faults, seconds

Parameters = Annotated[list[str], typer.Argument(metavar="PATH...", help="Parameters.")]


def gradient(
    scenario: Scenario,
    of: Annotated[str, typer.Argument(metavar="QUANTITY", help="phase_margin, link.queue, ...")],
    over: Parameters,
    changes: Changes = None, grid: Over = None, json: Json = False, out: Out = None,
    fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Derivatives of a quantity of the equilibrium, a root or a margin by parameters."""
    faults = Faults()
    task = prepare(faults, scenario, changes, grid, json, out, None, fast_cpu)
    faults.finish()
    from fluidcc.analysis.gradients.gradient import gradient as verb

    deliver(task, evaluate(task, lambda net: verb(net, of, over), doing="gradient"))


def sensitivity(
    scenario: Scenario, over: Parameters, until: Until = "60",
    after: Annotated[
        str, typer.Option("--after", metavar="TIME", help="Means are from here on [s].")
    ] = "0",
    changes: Changes = None, grid: Over = None, json: Json = False, out: Out = None,
    plot: Plot = None, fast_cpu: FastCPU = True,
) -> None:  # fmt: skip
    """Derivatives of a trajectory by parameters, delays and the initial state."""
    faults = Faults()
    task = prepare(faults, scenario, changes, grid, json, out, plot, fast_cpu)
    end = end_of(until, faults)
    begin = seconds("--after", after, faults, within="[0, inf)")
    if 0 < end <= begin:
        faults.add("--after", "", f"a time before --until ({end:g} s)", f"{after!r}")
    faults.finish()
    from fluidcc.analysis.gradients.trajectory import sensitivity as verb

    run = partial(verb, over=over, until=end, after=begin)
    deliver(task, evaluate(task, run, doing="derivatives"))
