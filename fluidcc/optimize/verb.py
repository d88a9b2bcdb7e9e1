"""`optimize`: the best parameters of a network under constraints.

An optimum is verified by its trajectory, and by packets with seeds that the search did not use.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import EQUILIBRIUM, Measure, measure
from fluidcc.errors import Fault, ScenarioError
from fluidcc.optimize.constraints import Constraint, constraint
from fluidcc.optimize.problem import (
    Problem,
    Range,
    Runs,
    ranges,
    settling_time,
    variation,
    worst,
    worst_at,
)
from fluidcc.optimize.search import Descent, Multipliers, SearchResult, multipliers
from fluidcc.optimize.solve import (
    Check,
    ConstraintValue,
    Effort,
    Optimum,
    Settling,
    Start,
    Verification,
    corners,
    solve,
    solve_worst_case,
)
from fluidcc.packets.hooks import compile_ahead
from fluidcc.packets.plan import PacketError
from fluidcc.programs import compiling
from fluidcc.progress import counted, part, reporting
from fluidcc.results.compare import Comparison, compare
from fluidcc.results.levels import WITHOUT_TRAINS
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import in_seconds
from fluidcc.scenario.paths import full_path

_BOX = 4  # parameters that span a box of scenarios, at most: its corners are 16 then


_SEARCHED = 0.7  # finished share when the search is done, if the optimum is verified


@reporting
def optimize(
    net: Network,
    vary: Mapping[str, Iterable[Any]],
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    subject_to: Sequence[str] = (),
    over_scenarios: Mapping[str, Iterable[Any]] | None = None,
    integer: Sequence[str] = (),
    until: float | str = 60.0,
    warmup: float | str | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    starts: int = 3,
    trials: int = 60,
    seed: int = 1,
    verification: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Optimum:
    """The best parameters of a network: of its equilibrium, margins, trajectory or packets.

    Quantities at equilibrium, roots and margins (the names of `gradient`) have derivatives: SciPy's
    sequential quadratic programming starts from the best of a fixed sample of the ranges.
    ``settling_time``, ``queue_cov`` and ``packets.`` metrics have none: every point is tried
    if the parameters are few whole numbers, else optuna samples (``pip install
    'fluidcc[opt]'``). If any quantity is taken from the equilibrium, this has to be stable.
    Positive ranges of a decade or more are searched by their logarithm.

    Parameters
    ----------
    net
        The network; the search and the verification keep everything that is not in `vary`.
    vary
        Ranges by path, ``{"link.queue.w_q": (1e-6, 0.1)}``; numbers of flows are whole.
    maximize, minimize
        The goal by name; one of the two.
    subject_to
        Constraints such as ``"utilization >= 0.95"`` and ``"packets.queue_mean <= 20"``.
    over_scenarios
        Ranges of parameters that are not chosen, such as ``{"flow.n": (10, 100)}``: the worst case
        over this box counts, by its corners, its centre, and what is found to be worse inside.
    integer
        Paths of `vary` of which only whole numbers count. With derivatives the optimum is found
        without that, and the whole numbers next to it are compared.
    until, warmup
        End of trajectories and packet runs, and start of their statistics (`until` / 3) [s]; text
        is read with its unit.
    seeds
        Packet runs of the search; the verification takes as many that the search did not use.
    starts, trials
        Starts of a search with derivatives, trials of one without.
    seed
        Of the sampler that chooses trials.
    verification
        Whether to run the optimum as a trajectory and in packets: over a box of scenarios in the
        worst ones of the goal and of each constraint that holds the optimum.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Optimum
        `values` by path, in the units `units`; `objective`, the goal there, in `unit`; the
        constraints with their values, those active with multipliers; `verification` by trajectory
        and packets.

    Raises
    ------
    ScenarioError
        For names, paths, ranges and constraints that are wrong, with the nearest valid ones.
    ValueError
        For times, numbers of starts or trials and seeds that make no sense.
    MissingExtra
        If a search needs optuna and it is not installed.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/pi")
    >>> best = fc.optimize(net, {"link.queue.k_pi": (1e-6, 1e-4)}, maximize="gain_crossover",
    ...     subject_to=["phase_margin >= 60"], starts=1, verification=False)
    >>> best.status, best.active[0].text
    ('ok', 'phase_margin >= 60 deg')
    """
    problem, box = _problem(
        net, vary, maximize, minimize, subject_to, over_scenarios or {}, integer,
        _runs(in_seconds("until", until), in_seconds("warmup", warmup), seeds),
    )  # fmt: skip
    effort = Effort(_count("starts", starts), _count("trials", trials), seed)
    if verification:
        compile_ahead()
    searched = _SEARCHED if verification else 1.0
    with compiling(), part(0.0, searched):  # the verification asks about a few networks, once each
        if box:
            problem, found = solve_worst_case(problem, box, effort)
        else:
            found = solve(problem, effort)
    with part(searched, 1.0):
        return _optimum(problem, found, effort, verification)


def _problem(
    net: Network,
    vary: Mapping[str, Iterable[Any]],
    maximize: str | None,
    minimize: str | None,
    subject_to: Sequence[str],
    over_scenarios: Mapping[str, Iterable[Any]],
    integer: Sequence[str],
    runs: Runs,
) -> tuple[Problem, tuple[Range, ...]]:
    """The problem of the arguments of `optimize`, and the box of scenarios."""
    if (maximize is None) == (minimize is None):
        both = "both" if maximize is not None else "neither"
        raise ScenarioError([Fault("optimize", "", "either maximize or minimize", both)])
    if not vary:
        raise ScenarioError([Fault("vary", "", "at least one parameter with its range", "none")])
    varied = ranges(net, vary, integer, where="vary")
    box = ranges(net, over_scenarios, where="over_scenarios")
    chosen = {full_path(net, r.path) for r in varied}
    faults = [
        Fault("over_scenarios", r.path, "a path that is not in vary", r.path)
        for r in box if full_path(net, r.path) in chosen
    ]  # fmt: skip
    if len(box) > _BOX:
        most = f"at most {_BOX} parameters"
        faults.append(Fault("over_scenarios", "", most, f"{len(box)}"))
    if isinstance(subject_to, str):
        faults.append(Fault("subject_to", "", "a list of texts", f"{subject_to!r} alone"))
    if faults:
        raise ScenarioError(faults)
    sign = 1 if maximize is not None else -1
    goal = measure(net, str(maximize or minimize), where="maximize" if sign > 0 else "minimize")
    rules = [constraint(net, text) for text in subject_to]
    stable = Constraint(measure(net, "decay_rate"), 1, 0.0)
    asked = any(c.measure == stable.measure and c.sign > 0 and c.bound >= 0 for c in rules)
    if not asked and EQUILIBRIUM in (goal.engine, *(c.measure.engine for c in rules)):
        rules.append(stable)
    return Problem(net, varied, goal, sign, tuple(rules), corners(box), runs), box


def _runs(until: float, warmup: float | None, seeds: Sequence[int]) -> Runs:
    start = until / 3 if warmup is None else warmup
    if not 0 <= start < until < math.inf:
        raise ValueError(f"expected 0 <= warmup < until in s, got {start!r} and {until!r}")
    if not seeds:
        raise ValueError("seeds: expected at least one, got none")
    return Runs(until, start, tuple(seeds))


def _count(name: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"{name}: expected at least 1, got {number!r}")
    return number


def _optimum(problem: Problem, found: SearchResult, effort: Effort, verification: bool) -> Optimum:
    """The result of a search."""
    units = {r.path: r.unit for r in problem.ranges}
    known = {
        "status": found.status, "message": found.message, "goal": problem.goal.name,
        "sense": "maximize" if problem.sign > 0 else "minimize", "unit": problem.goal.unit,
        "units": units, "points": found.points, "problem": problem, "effort": effort,
    }  # fmt: skip
    if found.x is None:
        return Optimum(
            **known, objective=math.nan, given=None, given_meets=None,
            values=dict.fromkeys(units, math.nan), constraints=(), active=(), worst=(),
            residual=None, starts=(), net=problem.net, verification=(),
        )  # fmt: skip
    evaluator, x = found.evaluator, found.x
    values = evaluator(x).values
    held = Multipliers((), np.zeros(0), math.nan)
    if found.status == "ok":
        held = multipliers(evaluator, x)
    pairs = zip(problem.scenarios, held.weights, strict=False)
    deciding = tuple(dict(s) for s, weight in pairs if weight > 0 and s)
    initial = problem.initial_point()
    before = None if initial is None else evaluator(initial).values
    given = math.nan if before is None else worst(problem.sign, before[:, 0])
    meets = None if before is None or math.isnan(given) else problem.met(before)
    return Optimum(
        **known,
        objective=worst(problem.sign, values[:, 0]),
        given=None if math.isnan(given) else given,
        given_meets=meets,
        values=problem.values(x),
        constraints=tuple(
            _constraint_value(problem, rule, values[:, j])
            for j, rule in enumerate(problem.constraints, 1)
        ),
        active=held.active,
        worst=deciding,
        residual=held.residual if math.isfinite(held.residual) else None,
        starts=tuple(_start(found, each) for each in found.starts),
        net=problem.network(x),
        verification=_verified(problem, x, held, deciding) if verification else (),
    )


def _constraint_value(problem: Problem, rule: Constraint, values: Array) -> ConstraintValue:
    """A constraint with values (S,) of its quantity."""
    s = worst_at(rule.sign, values)
    value = float(values[s])
    return ConstraintValue(
        rule.text, rule.measure.name, value, rule.met(value), dict(problem.scenarios[s])
    )


def _start(found: SearchResult, each: Descent) -> Start:
    problem, values = found.evaluator.problem, found.evaluator(each.end).values
    ends = problem.values(each.begin), problem.values(each.end)
    return Start(*ends, worst(problem.sign, values[:, 0]), problem.met(values), each.points)


def _verified(
    problem: Problem, x: Array, held: Multipliers, deciding: Sequence[Mapping[str, float]]
) -> tuple[Verification, ...]:
    """The optimum in the worst scenarios of its goal and of each active constraint.

    Its seeds are new ones, which the search did not use. Empty without an optimum.
    """
    if not held.weights.size:
        return ()
    first, count = max(problem.runs.seeds) + 1, len(problem.runs.seeds)
    fresh = dataclasses.replace(problem.runs, seeds=tuple(range(first, first + count)))
    worst_for: dict[tuple, list[str]] = {}
    for scenario, name in [
        *((scenario, problem.goal.name) for scenario in deciding),
        *((each.scenario, each.text) for each in held.active if each.scenario),
    ]:
        worst_for.setdefault(tuple(scenario.items()), []).append(name)
    return tuple(
        verify(
            problem.network(x, dict(place)), problem.goal, problem.constraints, fresh,
            scenario=dict(place), worst_for=names,
        )
        for place, names in counted([*(worst_for or {(): []}).items()])
    )  # fmt: skip


def verify(
    net: Network,
    goal: Measure,
    constraints: Sequence[Constraint],
    runs: Runs,
    *,
    scenario: Mapping[str, float] | None = None,
    worst_for: Sequence[str] = (),
) -> Verification:
    """Run the network in both engines from the scenario's own start.

    Parameters
    ----------
    net
        The network at the optimum, in the scenario that is to be verified.
    goal, constraints
        Quantities that are checked in packets, if these have them.
    runs
        Ends, warm-up and seeds of both runs.
    scenario, worst_for
        The scenario in which the network runs, and the quantities for which it is the worst.
    """
    settling, checks, both, message = [], [], None, ""
    try:
        both = compare(
            net, until=runs.until, warmup=runs.warmup, seeds=runs.seeds, levels=WITHOUT_TRAINS
        )
        if both.packets is not None:
            both.packets.complete()
    except (PacketError, ValueError) as error:
        message = str(error)
    if both is not None and both.fluid is not None:
        time = both.fluid.time
        for name, run in both.fluid.links.items():
            settled = settling_time(time, run.queue, both.equilibrium.links[name].queue)
            settling.append(Settling(name, settled, variation(time, run.queue, runs.warmup)))
        message = both.fluid.message if both.fluid.status.value else ""
    if both is not None:
        wanted = [(goal, None), *((c.measure, c) for c in constraints)]
        known = {m.name for m, _ in wanted}
        links = net.by_group.link_names
        always = [f"links.{n}.{key}" for n in links for key in ("queue", "utilization")]
        wanted += [(measure(net, name), None) for name in always if name not in known]
        checks = [c for c in (_check(net, both, m, bound) for m, bound in wanted) if c is not None]
    return Verification(
        dict(scenario or {}), tuple(worst_for), tuple(settling), tuple(checks), both, runs.until,
        runs.warmup, runs.seeds, message,
    )  # fmt: skip


def _check(net: Network, both: Comparison, each: Measure, bound: Constraint | None) -> Check | None:
    metric = each.in_packets(net)
    if metric is None or both.packets is None:
        return None
    value, half = (
        float(seen[metric.kind][metric.owner].get(metric.key, math.nan))
        for seen in (both.packets.mean, both.packets.ci95)
    )
    holds = None
    if bound is not None and math.isfinite(value):
        wide = bound.sign * (half if math.isfinite(half) else math.inf)
        holds = True if bound.met(value - wide) else None if bound.met(value + wide) else False
    text = each.name if bound is None else bound.text
    name = f"packets.{metric.kind}.{metric.owner}.{metric.key}"
    most = None if bound is None else bound.bound
    expected = each.read(both.equilibrium)
    fluid = None if expected is None or not math.isfinite(expected) else float(expected)
    return Check(text, name, most, fluid, value, half, holds)
