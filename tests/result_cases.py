"""One result of each public class, small, with numbers that are easy to find again."""

import functools
import math

import jax.numpy as jnp
import numpy as np

import fluidcc as fc
from fluidcc.analysis.boundary import BoundaryCurve
from fluidcc.analysis.bounds import Example, Reading
from fluidcc.analysis.crossings import Crossing
from fluidcc.analysis.cycles.branches import CycleBranch
from fluidcc.analysis.cycles.result import Course, FlowsCycle, LinkCycle
from fluidcc.analysis.stability_map import MapPoint
from fluidcc.check.verb import Finding
from fluidcc.model.simulate import FlowsRun, LinkRun
from fluidcc.optimize.solve import ConstraintValue, Level, Start, Tradeoff
from fluidcc.results.compare import GainAndLoss, Row
from fluidcc.sweep.result import Point

NET = fc.load("hollot2001/slow")
PATH, NUMBER = "link.queue.w_q", "flow.n"


def trajectory():
    """Queue and window that swing, over 10 s."""
    time = np.linspace(0.0, 10.0, 41)
    wave = np.sin(time)
    link = dict.fromkeys(
        (
            "average",
            "mark_probability",
            "mark_fraction",
            "drop_fraction",
            "load_factor",
            "offered",
            "source_quench_rate",
            "utilization",
        ),
        0 * time,
    )
    queue = 100 + 50 * wave
    flows = dict.fromkeys(
        ("rate", "rtt", "mark_fraction", "loss_fraction", "load_factor", "active", "slow_start"),
        time[:, None],
    )
    window = 15 + wave[:, None]
    return fc.Trajectory(
        time, {"bottleneck": LinkRun(queue=queue, **link)},
        {"tcp": FlowsRun(window=window, n=np.array([60.0]), **flows)}, fc.Status.ok, 10.0,
        np.zeros(0), NET,
    )  # fmt: skip


def sensitivity():
    """The trajectory with itself as its slope."""
    run = trajectory()
    parts = (run.links, run.flows)
    return fc.Sensitivity(run, 1.0, {NUMBER: parts}, parts, {NUMBER: parts})


def packets():
    """Two seeds of one group."""
    link = {"utilization": 0.98765, "queue_mean": 123.456, "number_in_system_mean": 124.0}
    flow = {"goodput": 2.34567e5, "window_mean": 15.5, "goodput_flows": (2.3e5, 2.4e5)}
    run = {"links": {"bottleneck": link}, "flows": {"tcp": flow}}
    half = {
        "links": {
            "bottleneck": {"utilization": 0.0123, "queue_mean": 4.567, "number_in_system_mean": 4.6}
        },
        "flows": {"tcp": {"goodput": 1234.5, "window_mean": math.nan}},
    }
    return fc.PacketRuns((1, 2), (run, run), run, half, 20.0, 5.0)


def comparison():
    """One quantity in both engines."""
    row = Row("links.bottleneck.queue", "packet", 194.4, 190.0, 200.0, 5.0)
    rate = Row("flows.tcp.goodput", "bit/s", 2.5e5, 2.4e5, 2.3e5, 1234.5)
    return fc.Comparison((row, rate), fc.equilibrium(NET), trajectory(), packets(), 20.0, 5.0)


def cycle(period=4.0):
    """A cycle with its course."""
    time = np.linspace(0.0, period, 21)
    values = {"bottleneck.queue": 100 + np.sin(time), "tcp.window": 15 + np.cos(time)}
    return fc.Cycle(
        period, {"bottleneck": LinkCycle((99.0, 101.0), (99.5, 100.5))},
        {"tcp": FlowsCycle(((14.0, 16.0),))}, (1.0 + 0j, 0.25 + 0.125j), "smooth", "", True,
        course=Course(time, values),
    )  # fmt: skip


def relay():
    """A switching cycle."""
    return fc.RelayCycle(3.0, 0.5, (10.0, 20.0), (5.0, 60.0), True, True, "", NET)


def window():
    """Two windows."""
    shares = np.array([0.25, 0.75])
    return fc.WindowDistribution(0.01, np.array([8.0, 16.0]), shares, shares, 15.0, 1e-6)


def bounds():
    """A bound that holds and one that does not."""
    words = {"queue": "instantaneous"}
    readings = [
        Reading(words, verdict, False, 10, Example({}, None, 2.0, value, value - 2.0), None)
        for verdict, value in (("holds", 1.5), ("violated", 2.5))
    ]
    return fc.BoundReport(
        "some.bound", "hollot2001", (), "q < 2", (), "formula", (), tuple(readings)
    )


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


def boundary():
    """One curve."""
    x, y = np.array([1e-5, 1e-4]), np.array([0.1, 0.2])
    curve = BoundaryCurve(x, y, np.array([1.25, np.nan]), "hopf", 0, 2, True, ("edge", "edge"))
    counts = np.array([[0.0, 2.0], [0.0, 2.0]])
    paths, ranges = (PATH, "link.delay"), ((1e-5, 1e-4), (0.1, 0.2))
    return fc.Boundary(paths, ("1", "s"), ranges, (curve,), (), (x, y), counts, "ok", "", True)


def crossings():
    """One Hopf point."""
    change = Crossing(1.5e-4, 1.25, "unstable", 0, 2, False, -0.1, "supercritical")
    return fc.Crossings(PATH, "1", 5e-5, 2e-4, (change,), (), (), True, True)


def cycles():
    """One branch of two cycles."""
    branch = CycleBranch(1e-4, 1.5, (1.1e-4, 1.2e-4), (cycle(4.0), cycle(4.5)), "")
    return fc.Cycles(PATH, "1", 5e-5, 2e-4, (branch,), "")


def stability_map():
    """Two times two points, one without a verdict."""
    axes = {NUMBER: (40, 60), PATH: (1e-6, 1e-5)}
    points = [
        MapPoint({NUMBER: n, PATH: w}, "regular", "", w < 5e-6, 0 if w < 5e-6 else 2, True,
                 complex(1e5 * w - 0.5, 1.25), True, {"bottleneck": 100.0})
        for n in axes[NUMBER] for w in axes[PATH]
    ]  # fmt: skip
    points[3] = MapPoint(points[3].set, "discontinuity", "no smooth equilibrium")
    return fc.StabilityMap(axes, {NUMBER: "1", PATH: "1"}, tuple(points), 3)


def sweep():
    """The rest at three values of one parameter, one of which failed."""
    rest = fc.equilibrium(NET)
    points = (Point({"link.delay": 0.1}, rest), Point({"link.delay": 0.2}, rest),
              Point({"link.delay": 0.3}, None, "no such <network>"))  # fmt: skip
    return fc.Sweep({"link.delay": (0.1, 0.2, 0.3)}, {"link.delay": "s"}, points)


def sweep_data():
    """The same as labelled numbers."""
    found = sweep()
    return fc.SweepData(found.axes, found.units, found.to_dataset())


def equation_rest():
    """A point."""
    flat = np.array([1.5])
    equation = fc.DelayEquation(lambda t, y, z, p: -z[0], [lambda t, y, p: 1.0], {"r": 1.0}, 0.0)
    return fc.EquationEquilibrium(
        "regular", "", 1.5, flat, np.array([1.0]), (flat, [flat]), equation
    )


def law_report():
    """Two checks, one of which failed."""
    findings = (Finding("units", "ok"), Finding("slopes", "failed", "line 3: <w> = 2"))
    return fc.LawReport("mine", "window", findings)


RESULTS = {
    "Boundary": boundary,
    "BoundReport": bounds,
    "BoundReports": lambda: fc.BoundReports((bounds(),)),
    "Comparison": comparison,
    "Crossings": crossings,
    "Cycle": cycle,
    "Cycles": cycles,
    "Equilibrium": lambda: fc.equilibrium(NET),
    "EquationEquilibrium": equation_rest,
    "LawReport": law_report,
    "Gradient": lambda: fc.Gradient(
        "phase_margin", 12.5, {PATH: -3.25e6}, "ok", "", "deg", {PATH: "1"}, {}
    ),
    "Optimum": lambda: optimum(tradeoff()),
    "PacketRuns": packets,
    "RelayCycle": relay,
    "Sensitivity": sensitivity,
    "Solution": solution,
    "Stability": lambda: fc.stability(NET),
    "StabilityMap": stability_map,
    "WindowDistribution": window,
    "WindowDistributions": lambda: fc.WindowDistributions({"tcp": window()}, {}),
    "Sweep": sweep,
    "SweepData": sweep_data,
    "Tradeoff": tradeoff,
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
    "Progress", "Sampled", "ScenarioError", "Status", "SweepStatus", "SweepStopped", "Uniform",
    "Voice",
}  # fmt: skip
"""Public classes that are no results."""


@functools.cache
def made(name):
    """One result of a class, made once."""
    return (RESULTS | NUMBERS)[name]()
