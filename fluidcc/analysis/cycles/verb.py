"""The limit cycle of a network or of a delay equation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.analysis.cycles.begin import begun
from fluidcc.analysis.cycles.equations import Equations, equations
from fluidcc.analysis.cycles.extremes import extremes
from fluidcc.analysis.cycles.floquet import multipliers
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.newton import LostError, remeshed, solved
from fluidcc.analysis.cycles.orbit import Orbit, nodes_of, points_at
from fluidcc.analysis.cycles.perturbed import every_component
from fluidcc.analysis.cycles.polynomials import Array
from fluidcc.analysis.cycles.result import (
    Course,
    Cycle,
    FlowsCycle,
    LinkCycle,
    none_found,
    not_known,
    with_turns,
)
from fluidcc.analysis.cycles.settled import Return, Run, RunError, settling, step_for
from fluidcc.analysis.cycles.simulated import (
    EVEN,
    even,
    from_relay,
    from_simulation,
    with_multipliers,
)
from fluidcc.analysis.cycles.subjects import (
    NotHereError,
    equation_model,
    labels,
    network_model,
    reported,
    told,
)
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.model.fluid import as_fluid
from fluidcc.scenario.network import Network

MESHES = (24, 36, 54)
"""Intervals of the meshes on which a cycle is solved one after the other."""
_SHORTEST, _LONGEST = 150.0, 1e4  # of the longest lag: how long runs are that should settle
_VANISHED = 1e-3  # of the amplitude that the run had
_SMALL = 1e-6  # of the states: an amplitude that is none
_POINTS = 401
_FINER = 4  # steps of runs for multipliers, which are to repeat to 1e-6 of the range
_FINE = 8001  # points at which a period of a simulation is read for its extremes
_RESTS = (
    "no cycle: a run from the initial history comes to rest; cycles that other histories lead to "
    "are not excluded"
)


def cycle(net: Network | DelayEquation, *, start: Cycle | None = None) -> Cycle:
    """The limit cycle that the model settles in, with its Floquet multipliers.

    A simulation from the scenario's initial history finds it, and collocation makes it exact: on
    an adapted mesh, with segments whose ends are unknowns where queues run empty, windows rest at
    bounds or marking has corners. A switching cycle of a relay that is known in closed form is
    taken as it is. Where neither applies the simulation's own numbers are given, and the leading
    multipliers by located runs from states moved a little where these repeat.

    Parameters
    ----------
    net
        A network or a delay equation.
    start
        A cycle of the same model at nearby parameters, in place of a simulation.

    Returns
    -------
    Cycle
        With status `none` where the run comes to rest, `incomplete` where it does not repeat, and
        a message.

    Examples
    --------
    >>> import fluidcc as fc
    >>> delayed = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.7}, 0.1
    ... )
    >>> found = fc.cycle(delayed)
    >>> found.status, found.stable, round(found.period, 4)
    ('smooth', True, 4.0964)
    """
    if isinstance(net, DelayEquation):
        model, y0 = equation_model(net)
    else:
        exact = from_relay(net)
        if exact is not None:
            return exact
        try:
            model, y0 = network_model(net)
        except NotHereError as why:
            return from_simulation(net, str(why))
    if start is not None and start.orbit is not None:
        try:
            near = collocated(net, model, start.orbit)
            if near.stable and near.period is not None:
                return near
        except LostError:
            pass  # it has changed too much
    return _after_simulation(net, model, y0)


def follower() -> Callable[[Network | DelayEquation], Cycle]:
    """A verb for one model after another: each cycle is looked for near the last one."""
    last: list[Cycle] = []

    def follow(net: Network | DelayEquation) -> Cycle:
        found = cycle(net, start=last[0] if last else None)
        last[:] = [found] if found.orbit is not None else last
        return found

    return follow


def _after_simulation(net: Network | DelayEquation, model: Model, y0: Array) -> Cycle:
    """The cycle at the end of a simulation.

    A run that seems to repeat may still decay, or pass an unstable cycle: then a longer one tells.
    """
    lag = float(np.max(model.lags(y0[None])[0]))
    found, why, repeating = None, "", None
    try:
        for run, end in settling(model, y0, shortest=_SHORTEST * lag, longest=_LONGEST * lag):
            found, why, repeating = None, "", None
            if end.rests:
                return none_found(_RESTS)
            if end.period is None:
                why = f"the run does not repeat within {run.end:.4g} s"
                continue
            try:
                found = collocated(net, model, begun(model, run, end, MESHES[0]))
            except LostError as fault:
                why, repeating = str(fault), (run, end)
                continue
            if found.stable:
                return with_turns(found, end.turns)
    except RunError as fault:
        why = str(fault)
    if found is not None:
        return found
    if repeating is not None and lasts(net, *repeating):
        return from_run(net, model, *repeating, why)
    if isinstance(net, DelayEquation):
        return not_known(f"no cycle found: {why}")
    return from_simulation(net, why)


def collocated(net: Network | DelayEquation, model: Model, orbit: Orbit) -> Cycle:
    """The cycle near an orbit, by collocation; raises LostError where there is none."""
    begin = amplitude(orbit)
    before = error = None
    for count in MESHES:
        orbit = solved(model, remeshed(model, orbit, count))
        if np.all(amplitude(orbit) <= _VANISHED * begin):
            return none_found("no cycle: the oscillation decays to the equilibrium")
        ends = extremes(orbit, reported(net))
        now = np.vstack([[orbit.period, orbit.period], ends])
        if before is not None:
            size = np.maximum(np.abs(now).max(1), 1e-9)
            change = float(np.max(np.abs(now - before).max(1) / size))
            error = change if error is None else max(error, change)
        before = now
    check(model, orbit)
    return result_of(net, model, orbit, error)


def lasts(net: Network | DelayEquation, run: Run, end: Return) -> bool:
    """Whether a run repeats evenly, and no more decays or grows in its second half."""
    late = reported(net)(run.states(np.linspace(0.5 * run.end, run.end, _FINE)))
    return end.spread < EVEN and all(even(values) for values in late.T)


def from_run(net: Network | DelayEquation, model: Model, run: Run, end: Return, why: str) -> Cycle:
    """The last period of a located simulation, with multipliers; `why` there is no more."""
    assert end.period is not None
    time = np.linspace(0.0, end.period, _FINE)
    values = reported(net)(run.states(end.end - end.period + time))
    ends = [(float(a), float(b)) for a, b in zip(values.min(0), values.max(0), strict=True)]
    note = (
        f"from a located simulation: {why}; its periods are equal to {end.spread:.1g} of the last"
    )
    if isinstance(net, DelayEquation):
        found = Cycle(end.period, {}, {}, (), "simulated", note, states=tuple(ends))
    else:
        found = Cycle(end.period, *by_name(net, ends), (), "simulated", note)
    found = with_turns(dataclasses.replace(found, spread=end.spread), end.turns)
    y0 = run.states(np.zeros(1))[0]
    moves, step = every_component(model.size), step_for(model, y0) / _FINER  # nothing ticks
    return with_multipliers(found, model.system, y0, model.args, moves, until=run.end, step=step)


def amplitude(orbit: Orbit) -> Array:
    """Range of each state that moves, over the orbit."""
    ranges = orbit.start.max(0) - orbit.start.min(0)
    size = np.abs(orbit.start).max(0) + 1e-12
    return np.where(ranges > _SMALL * size, ranges, 0.0)


def check(model: Model, orbit: Orbit) -> None:
    """Raise LostError where an orbit is not in the regimes that its segments are taken to have."""
    if not model.guards:
        return
    interval, theta = nodes_of(orbit)
    points = points_at(model, orbit, interval, theta)
    mode = orbit.modes[orbit.segment[interval]]
    seen = model.modes(points.y, points.z)
    values = model.conditions(points.y, points.z, mode)[0]
    kinks = values[:, values.shape[1] - model.kinks(points.y[0], points.z[0]) :]
    for k in range(len(orbit.ends)):
        own = orbit.segment[interval] == k
        sides = np.sign(kinks[own])
        same = np.all(seen[own] == orbit.modes[k]) and np.all(sides == sides[:1])
        if not same:
            raise LostError("the cycle leaves the regimes that it was taken to have")


def result_of(
    net: Network | DelayEquation, model: Model, orbit: Orbit, error: float | None
) -> Cycle:
    """What is reported of an orbit."""
    found: Equations = equations(model, orbit)
    floquet = multipliers(orbit, found)
    trivial = int(np.argmin(np.abs(floquet - 1.0))) if len(floquet) else 0
    others = np.delete(floquet, trivial) if len(floquet) else floquet
    floquet = np.append(floquet[trivial : trivial + 1], others)
    stable = bool(np.all(np.abs(others) < 1.0))
    ends = [(float(a), float(b)) for a, b in extremes(orbit, reported(net))]
    status = "nonsmooth" if orbit.events else "smooth"
    parts: dict[str, Any] = {}
    messages: list[str] = []
    if isinstance(net, DelayEquation):
        names = [f"state {k}" for k in range(len(ends))]
        links, flows, parts["states"] = {}, {}, tuple(ends)
    else:
        links, flows = by_name(net, ends)
        names = [f"{name}.{key}" + (f"[{k}]" if k else "") for _, name, key, k in labels(net)]
        messages += told(net, orbit)
    if not len(others):
        messages.append("superstable: perturbations are forgotten within a period")
    time = np.linspace(0.0, orbit.period, _POINTS)
    values = reported(net)(orbit.at(time))
    course = Course(time, dict(zip(names, values.T, strict=True)))
    return Cycle(
        orbit.period, links, flows, tuple(complex(mu) for mu in floquet), status,
        "; ".join(messages), stable, error, course=course, model=model, orbit=orbit, **parts,
    )  # fmt: skip


def by_name(
    net: Network, ends: list[tuple[float, float]]
) -> tuple[dict[str, LinkCycle], dict[str, FlowsCycle]]:
    """Extremes by link and by group of flows."""
    known: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (_, name, key, _), pair in zip(labels(net), ends, strict=True):
        known.setdefault((name, key), []).append(pair)
    fluid = as_fluid(net)
    links = {
        name: LinkCycle(known[name, "queue"][0], known[name, "average"][0])
        for name in fluid.link_names
    }
    flows = {name: FlowsCycle(tuple(known[name, "window"])) for name in fluid.flow_names}
    return links, flows
