"""The limit cycle of a network or of a delay equation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fluidcc.analysis.cycles.collocation import OrbitLostError, equations, remesh, solve
from fluidcc.analysis.cycles.model import Array, Model
from fluidcc.analysis.cycles.multipliers import multipliers
from fluidcc.analysis.cycles.orbit import Orbit, extremes, nodes_of, points_at
from fluidcc.analysis.cycles.result import Course, Cycle, by_name, none_found, with_turns
from fluidcc.analysis.cycles.settled import first_orbit, settling
from fluidcc.analysis.cycles.simulated import from_run
from fluidcc.analysis.cycles.subjects import Subject, subject_of
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.scenario.network import Network

MESHES = (24, 36, 54)
"""Intervals of the meshes on which a cycle is solved one after the other."""
_SHORTEST, _LONGEST = 150.0, 1e4  # times the longest lag: lengths of runs
_VANISHED = 1e-3  # of the amplitude of the run: smaller orbits are equilibria
_SMALL = 1e-6  # of the states: smaller amplitudes count as 0
_POINTS = 401
_RESTS = "no cycle: a run from the initial history settles; other histories may lead to cycles"


def cycle(net: Network | DelayEquation, *, start: Cycle | None = None) -> Cycle:
    """The limit cycle to which the model settles, with its Floquet multipliers.

    A simulation from the scenario's initial history finds it, and collocation makes it exact: on
    an adapted mesh, with segments whose ends are unknowns where queues run empty, windows reach
    bounds or marking has corners. If that does not apply, the simulation's period and extremes are
    returned, and the leading multipliers by located runs from perturbed states if these repeat.

    Parameters
    ----------
    net
        A network or a delay equation.
    start
        A cycle of the same model at nearby parameters, in place of a simulation.

    Returns
    -------
    Cycle
        With status `none` if the run settles at an equilibrium, `incomplete` if it does not
        repeat, and a message.

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
    subject = subject_of(net)
    try:
        model = subject.model
    except OrbitLostError as why:
        return subject.simulated(str(why))
    if start is not None and start.orbit is not None:
        try:
            near = collocate(subject, start.orbit)
        except OrbitLostError:  # it has changed too much
            near = None
        if near is not None and near.stable and near.period is not None:
            return near
    return _after_run(subject, model)


def follower() -> Callable[[Network | DelayEquation], Cycle]:
    """`cycle` for a sequence of models: each cycle is sought near the last one."""
    last: list[Cycle] = []

    def follow(net: Network | DelayEquation) -> Cycle:
        found = cycle(net, start=last[0] if last else None)
        last[:] = [found] if found.orbit is not None else last
        return found

    return follow


def _after_run(subject: Subject, model: Model) -> Cycle:
    """The cycle at the end of a located run.

    A run that seems to repeat may still decay, or pass an unstable cycle: a longer one decides.
    """
    lag = float(np.max(model.lags(subject.start[None])[0]))
    found, why, repeating = None, "", None
    try:
        for run, end in settling(
            model, subject.start, shortest=_SHORTEST * lag, longest=_LONGEST * lag
        ):
            found, why, repeating = None, "", None
            if end.rests:
                return none_found(_RESTS)
            if end.period is None:
                why = f"the run does not repeat within {run.end:.4g} s"
                continue
            try:
                found = collocate(subject, first_orbit(model, run, end, MESHES[0]))
            except OrbitLostError as fault:
                why, repeating = str(fault), (run, end)
                continue
            if found.stable:
                return with_turns(found, end.turns)
    except OrbitLostError as fault:  # the run ends early
        why = str(fault)
    if found is None and repeating is not None:
        found = from_run(model, *repeating, subject.observe, subject.labels, why)
    return subject.simulated(why) if found is None else found


def collocate(subject: Subject, orbit: Orbit) -> Cycle:
    """The cycle near an orbit, by collocation; raises OrbitLostError if there is none."""
    begin = _amplitude(orbit)
    before = error = None
    for count in MESHES:
        orbit = solve(subject.model, remesh(orbit, count))
        if np.all(_amplitude(orbit) <= _VANISHED * begin):
            return none_found("no cycle: the oscillation decays to the equilibrium")
        ends = extremes(orbit, subject.observe)
        now = np.vstack([[orbit.period, orbit.period], ends])
        if before is not None:
            size = np.maximum(np.abs(now).max(1), 1e-9)
            change = float(np.max(np.abs(now - before).max(1) / size))
            error = change if error is None else max(error, change)
        before = now
    check(subject.model, orbit)
    return result_of(subject, orbit, error)


def _amplitude(orbit: Orbit) -> Array:
    """Range of each state that moves, over the orbit."""
    ranges = orbit.start.max(0) - orbit.start.min(0)
    size = np.abs(orbit.start).max(0) + 1e-12
    return np.where(ranges > _SMALL * size, ranges, 0.0)


class CornerError(OrbitLostError):
    """An orbit meets a corner or a bound inside one of its segments."""


def check(model: Model, orbit: Orbit) -> None:
    """Raise CornerError if an orbit leaves the regimes assumed for its segments."""
    if not model.switches:
        return
    interval, theta = nodes_of(orbit)
    points = points_at(model, orbit, interval, theta)
    mode = orbit.modes[orbit.segment[interval]]
    seen = model.modes(points.y, points.z)
    sides = model.sides(points.y, points.z, mode)
    for k in range(len(orbit.ends)):
        own = orbit.segment[interval] == k
        if np.any(seen[own] != orbit.modes[k]) or np.any(sides[own] != sides[own][:1]):
            raise CornerError("the cycle leaves the regimes assumed for its segments")


def result_of(subject: Subject, orbit: Orbit, error: float | None) -> Cycle:
    """The result for an orbit."""
    floquet = multipliers(orbit, equations(subject.model, orbit))
    trivial = int(np.argmin(np.abs(floquet - 1.0))) if len(floquet) else 0
    others = np.delete(floquet, trivial) if len(floquet) else floquet
    floquet = np.append(floquet[trivial : trivial + 1], others)
    stable = bool(np.all(np.abs(others) < 1.0))
    ends = [(float(low), float(high)) for low, high in extremes(orbit, subject.observe)]
    messages = subject.switches(orbit)
    if not len(others):
        messages.append("superstable: perturbations are forgotten within a period")
    time = np.linspace(0.0, orbit.period, _POINTS)
    titles, values = [label.title for label in subject.labels], subject.observe(orbit.at(time))
    return Cycle(
        orbit.period, floquet=tuple(complex(mu) for mu in floquet),
        status="nonsmooth" if orbit.events else "smooth", message="; ".join(messages),
        stable=stable, error=error, course=Course(time, dict(zip(titles, values.T, strict=True))),
        orbit=orbit, **by_name(subject.labels, ends),
    )  # fmt: skip
