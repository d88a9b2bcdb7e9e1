"""The limit cycle of a network or of a delay equation.

Both are one subject: a system with parameters, and what is reported.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.cycles.collocation import OrbitLostError, equations, remesh, solve
from fluidcc.analysis.cycles.multipliers import multipliers
from fluidcc.analysis.cycles.orbit import GUARD, Array, Model, Orbit, extremes, nodes_of, points_at
from fluidcc.analysis.cycles.result import (
    Course,
    Cycle,
    Label,
    by_name,
    none_found,
    not_known,
    with_turns,
)
from fluidcc.analysis.cycles.settled import first_orbit, settling
from fluidcc.analysis.cycles.simulated import (
    FEW_CLASSES,
    from_network,
    from_run,
    labels_of,
    observed,
)
from fluidcc.analysis.delay_equation import DelayEquation, equation_equilibrium
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.operating_point import steady_state
from fluidcc.arrays import jax, jnp
from fluidcc.dde import equation as general
from fluidcc.dde.system import shapes_of, unraveler
from fluidcc.model.fluid import as_fluid, with_mean_calls
from fluidcc.model.network_system import initial_state, network_system
from fluidcc.model.rates import FREE, HIGH, LOW
from fluidcc.progress import report, reporting
from fluidcc.scenario.network import Network, Start, to_arrays

MESHES = (24, 36, 54)
"""Intervals of the meshes on which a cycle is solved one after the other."""
_SHORTEST, _LONGEST = 150.0, 1e4  # times the longest lag: lengths of runs
_RUN = 0.5  # finished share when the run is done
_VANISHED = 1e-3  # of the amplitude of the run: smaller orbits are equilibria
_SMALL = 1e-6  # of the states: smaller amplitudes count as 0
_POINTS = 401
_RESTS = "no cycle: the run from the initial history converges; others may lead to cycles"


@reporting
def cycle(
    net: Network | DelayEquation,
    *,
    start: Cycle | None = None,
    progress: Callable[[float], object] | None = None,
) -> Cycle:
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
    progress
        Called with the finished share, in [0, 1], from time to time.

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
    return dataclasses.replace(_find(subject_of(net), start), net=net)


def _find(subject: Subject, start: Cycle | None) -> Cycle:
    """The cycle, near that of nearby parameters if there is one."""
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
            report(_RUN)
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
    for k, count in enumerate(MESHES):
        report(_RUN + (1.0 - _RUN) * k / len(MESHES))
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
            raise CornerError("the cycle passes other corners or bounds than the simulation")


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


_PUSHED = 0.1  # of the state and of 1: distance of an equation's start from its equilibrium


@dataclasses.dataclass(frozen=True)
class Subject:
    """Interface of networks and delay equations for the algorithms of cycles.

    labels (R,): reported values; observe: computes them from states, (Q, n) to (Q, R).
    equilibrium: the state (n,) there; raises OrbitLostError if there is no smooth one.
    switches: messages on the events of an orbit.
    simulated: the cycle at the end of another simulation, given the reason for no orbit.
    build: the model, and the state (n,) that runs start from; raises OrbitLostError.
    """

    labels: tuple[Label, ...]
    observe: Callable[[Array], Array]
    equilibrium: Callable[[], Array]
    switches: Callable[[Orbit], list[str]]
    simulated: Callable[[str], Cycle]
    build: Callable[[], tuple[Model, Array]]

    @functools.cached_property
    def _built(self) -> tuple[Model, Array]:
        return self.build()

    @property
    def model(self) -> Model:
        """The system with its parameters; raises OrbitLostError if collocation does not apply."""
        return self._built[0]

    @property
    def start(self) -> Array:
        """The state (n,) that runs start from."""
        return self._built[1]


def subject_of(net: Network | DelayEquation) -> Subject:
    """A network long after its start, or a delay equation, as a subject."""
    return _of_equation(net) if isinstance(net, DelayEquation) else _of_network(net)


def _of_network(given: Network) -> Subject:
    net = steady(given)
    numbers = to_arrays(net)

    def equilibrium_state() -> Array:
        found = equilibrium(given)
        if not found.smooth:
            raise OrbitLostError(f"no smooth equilibrium: {found.message}")
        return np.asarray(ravel_pytree(steady_state(numbers, found.op))[0])

    return Subject(
        labels=labels_of(net),
        observe=functools.partial(observed, net),
        equilibrium=equilibrium_state,
        switches=functools.partial(_switches, net),
        simulated=functools.partial(from_network, net),
        build=functools.partial(_network_model, net),
    )


def _network_model(net: Network) -> tuple[Model, Array]:
    """The model; OrbitLostError if it repeats only in the mean or has no located events."""
    if jax.tree.leaves(initial_state(to_arrays(net)).clocks):
        raise OrbitLostError("a law acts at intervals, which the period need not be a multiple of")
    if any(link.queue.limits for link in net.links):
        raise OrbitLostError("the state of a queue law has bounds, which are not located in time")
    if net.delay == "fifo":
        raise OrbitLostError("delays of model.delay = 'fifo' depend on past queues")
    if net.rates == "self_clocked":
        raise OrbitLostError(
            "self-clocked flows conserve packets in flight, so cycles are not isolated"
        )
    if sum(np.size(f.rtt) for f in net.flows) > FEW_CLASSES:
        raise OrbitLostError(f"there are more than {FEW_CLASSES} distinct round trips")
    system, y0, args = network_system(net)
    return Model(system, args, len(y0)), np.asarray(y0)


def _switches(net: Network, orbit: Orbit) -> list[str]:
    out: list[str] = []
    links = len(net.links)
    for k, name in enumerate(net.link_names):
        words = {LOW: "runs empty", HIGH: "is full"}
        out += [f"links.{name} {words[m]}" for m in (LOW, HIGH) if np.any(orbit.modes[:, k] == m)]
    at = links
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        own = orbit.modes[:, at : at + np.size(flows.rtt)]
        at += np.size(flows.rtt)
        if np.any(own != FREE):
            out.append(f"windows of flows.{name} stay at a bound")
    guards = 2 * orbit.modes.shape[1]
    if any(e.kind == GUARD and e.index >= guards for e in orbit.events):
        out.append("queues pass corners of the marking function")
    return out


def _of_equation(equation: DelayEquation) -> Subject:
    rest = equation_equilibrium(equation)

    def equilibrium_state() -> Array:
        if not rest.smooth:
            raise OrbitLostError(rest.message)
        return rest.flat

    def build() -> tuple[Model, Array]:
        y = rest.flat + _PUSHED * (1.0 + np.abs(rest.flat))
        params = jax.tree.map(lambda v: jnp.asarray(v, float), dict(equation.params))
        shapes = shapes_of(general.as_state(rest.y))
        form = jax.tree.structure(params)
        system = _equation_system(equation.field, tuple(equation.lags), shapes, form)
        before = unraveler(shapes)(jnp.asarray(y))
        args = general.Arguments({"own": params, "before": before}, None)
        return Model(system, args, len(y)), y

    return Subject(
        labels=tuple(Label("states", str(k)) for k in range(rest.flat.size)),
        observe=lambda y: y,
        equilibrium=equilibrium_state,
        switches=lambda orbit: [],
        simulated=lambda why: not_known(f"no cycle found: {why}"),
        build=build,
    )


def steady(net: Network) -> Network:
    """The network long after its start: flows have all begun, and calls are at their mean."""
    net = as_fluid(net)
    flows = tuple(dataclasses.replace(f, start=Start()) for f in net.flows)
    return with_mean_calls(dataclasses.replace(net, flows=flows))


@functools.lru_cache(maxsize=64)
def _equation_system(field: Any, lags: tuple[Any, ...], shapes: Any, structure: Any) -> Any:
    """The system of equations of one form, whose constant history is among its parameters."""
    tree = unraveler(shapes)
    y = tree(jnp.zeros(sum(int(np.prod(shape)) for shape, _ in shapes[1])))
    params = jax.tree.unflatten(structure, [jnp.zeros(())] * structure.num_leaves)
    wrapped = tuple((lambda t, y, p, lag=lag: lag(t, y, p["own"])) for lag in lags)
    arguments = general.Arguments({"own": params, "before": y}, None)
    return general.build(
        lambda t, y, z, p: field(t, y, z, p["own"]), lambda t, p: p["before"], wrapped,
        None, y, jnp.zeros(()), arguments,
    )  # fmt: skip
