"""One result of each public class, small, with numbers that are easy to find again."""

import functools

import jax.numpy as jnp
import numpy as np

import fluidcc as fc
from fluidcc import laws
from fluidcc.analysis.cycles.result import Course, FlowsCycle, LinkCycle
from fluidcc.check.verb import Finding
from fluidcc.optimize.solve import ConstraintValue, Level, Start, Tradeoff
from fluidcc.results.compare import GainAndLoss

NET = fc.load("hollot2001/slow")
PATH, NUMBER = "link.queue.w_q", "flow.n"
EQUATION = fc.DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: p["tau"]],
    {"r": 2.0, "tau": 1.0}, 0.0,
)  # fmt: skip


@functools.cache
def trajectory():
    """Queue and window over 10 s."""
    return fc.simulate(NET, until=10.0, points=np.linspace(0.0, 10.0, 41))


def sensitivity():
    """The trajectory with itself as its slope."""
    run = trajectory()
    parts = (run.links, run.flows)
    return fc.Sensitivity(run, 1.0, {NUMBER: parts}, parts, {NUMBER: parts})


def packets():
    """Two seeds of one group."""
    return fc.simulate_packets(NET, until=20.0, warmup=5.0, seeds=(1, 2))


def trains():
    """Two seeds of one group."""
    return fc.simulate_trains(NET, until=20.0, warmup=5.0, seeds=(1, 2))


def comparison():
    """All quantities at all levels."""
    return fc.compare(NET, until=20.0, warmup=5.0, seeds=(1, 2))


def cycle(period=4.0):
    """A cycle with its course."""
    time = np.linspace(0.0, period, 21)
    values = {"links.bottleneck.queue": 100 + np.sin(time), "flows.tcp.window": 15 + np.cos(time)}
    return fc.Cycle(
        period, {"bottleneck": LinkCycle((99.0, 101.0), (99.5, 100.5))},
        {"tcp": FlowsCycle(((14.0, 16.0),))}, (1.0 + 0j, 0.25 + 0.125j), "smooth", "", True,
        course=Course(time, values),
    )  # fmt: skip


def window():
    """The windows of one group."""
    return fc.window_distribution(laws.Reno(), 0.01, reaction=laws.PerMark())


def bounds():
    """A bound that holds under one reading and not under another."""
    return fc.check_bound("bmcc.increase_map", budget=20)


def tradeoff():
    """Three levels, one without an optimum."""
    levels = [Level(q, "<=", q**2, q, {PATH: 1e-5}, s) for q, s in
              ((1.0, "ok"), (2.0, "ok"), (3.0, "infeasible"))]  # fmt: skip
    return Tradeoff("phase_margin", "deg", "links.bottleneck.queue", "packet", tuple(levels))


def optimum(curve=None):
    """One parameter, held by nothing."""
    constraint = ConstraintValue("queue <= 200 packet", "queue", 150.0, True, {})
    start = Start({PATH: 1e-6}, {PATH: 2.5e-5}, 42.0, True, 7)
    known = {
        "status": "ok", "message": "", "goal": "phase_margin", "sense": "maximize",
        "objective": 42.0, "unit": "deg", "given": 40.0, "given_meets": True,
        "values": {PATH: 2.5e-5}, "units": {PATH: "1"}, "constraints": (constraint,), "active": (),
        "worst": (), "residual": None, "starts": (start,), "points": 7, "net": NET,
        "verification": (), "problem": None, "effort": None, "curve": curve,
    }  # fmt: skip
    return fc.Optimum(**known)


def solution():
    """A state of two components."""
    t = jnp.linspace(0.0, 5.0, 11)
    y = {"a": jnp.sin(t), "b": jnp.cos(t)}
    return fc.Solution(
        t, y, jnp.asarray(0), jnp.asarray(5.0), jnp.asarray(10), jnp.zeros(0), None, lambda y: y
    )


def stability_map():
    """Two times two points, half of them without a verdict."""
    return fc.stability_map(NET, {NUMBER: (40, 1000), PATH: (1e-6, 1e-3)})


def sweep():
    """The rest at three values of one parameter, one of which failed."""
    return fc.sweep(NET, {"link.delay": (0.04, 0.05, -1.0)}, fc.equilibrium)


def sweep_data():
    """The same as labelled numbers."""
    found = sweep()
    return fc.SweepData(found.axes, found.units, found.to_xarray(), NET)


def law_report():
    """Two checks, one of which failed."""
    findings = (Finding("units", "ok"), Finding("slopes", "failed", "line 3: <w> = 2"))
    return fc.LawReport("mine", "window", findings)


RESULTS = {
    "Boundary": lambda: fc.boundary(EQUATION, "r", "tau", (0.5, 3.0), (0.5, 3.0), points=4),
    "BoundReport": bounds,
    "BoundReports": lambda: fc.BoundReports((bounds(),)),
    "Comparison": comparison,
    "Crossings": lambda: fc.crossings(EQUATION, "r", 1.0, 2.0, points=3),
    "Cycle": cycle,
    "Cycles": lambda: fc.cycles(EQUATION, "r", 1.5, 1.7),
    "Equilibrium": lambda: fc.equilibrium(NET),
    "EquationEquilibrium": EQUATION.equilibrium,
    "LawReport": law_report,
    "FrequencyResponse": lambda: fc.bode(NET),
    "Gradient": lambda: fc.Gradient(
        "phase_margin", 12.5, {PATH: -3.25e6}, "ok", "", "deg", {PATH: "1"}, {}
    ),
    "Optimum": lambda: optimum(tradeoff()),
    "PacketRuns": packets,
    "Sensitivity": sensitivity,
    "Solution": solution,
    "Fluctuations": lambda: fc.fluctuations(NET),
    "Stability": lambda: fc.stability(NET),
    "StabilityMap": stability_map,
    "WindowDistribution": window,
    "WindowDistributions": lambda: fc.WindowDistributions({"tcp": window()}, {}),
    "Sweep": sweep,
    "SweepData": sweep_data,
    "Tradeoff": tradeoff,
    "TrainRuns": trains,
    "Trajectory": trajectory,
}
"""Results by the names of their classes: what shows itself as tables."""

NUMBERS = {
    "Oscillation": lambda: fc.Oscillation(1.0, 0.0, 2.0, 1.0),
    "GainAndLoss": lambda: GainAndLoss(1.2, 0.8),
}
"""Results that are a few numbers, without tables and pictures."""

INPUTS = {
    "DelayEquation", "Fault", "Flows", "Link", "Located", "MethodOfSteps", "Modes", "Network",
    "Progress", "Result", "Sampled", "ScenarioError", "Status", "SweepStatus", "SweepStopped",
    "Uniform", "Voice",
}  # fmt: skip
"""Public classes that are no results."""


@functools.cache
def made(name):
    """One result of a class, made once."""
    return (RESULTS | NUMBERS)[name]()
