"""Cycles by simulation, for models without collocation: settled ends of runs, multipliers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.cycles.multipliers import Moves, NoMultipliersError, multipliers_of_run
from fluidcc.analysis.cycles.orbit import Array, Model, in_chunks
from fluidcc.analysis.cycles.result import Cycle, Label, by_name, none_found, not_known, with_turns
from fluidcc.analysis.cycles.settled import Return, Run, step_for
from fluidcc.analysis.oscillation import Oscillation, oscillation, repeating_period, rises
from fluidcc.arrays import jax, jnp
from fluidcc.dde.integrate import Status
from fluidcc.dde.system import Args, System
from fluidcc.laws.law import Ack
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import blank, initial_state, network_system
from fluidcc.model.simulate import FlowsRun, LinkRun, named, report, simulate
from fluidcc.scenario.network import Flows, Network, to_arrays

FEW_CLASSES = 4
"""Most distinct round trips with located breaking points, as for trajectories: every distinct delay
multiplies their number."""
_EVEN = 0.01  # relative: how much the periods of a run that repeats may differ
_FIRST, _SECOND, _LAST = 100.0, 400.0, 6400.0  # longest round trips of a run
_MOST = 4e6  # steps times round trips of a run that is longer than the second: a minute
_SETTLED = 0.5  # of a run: the transient, which is left out
_STEPS_PER_TRIP = 16  # of the shortest round trip, of located runs
_CLOCKED = 2  # steps with self-clocked rates per step of other networks
_FINER = 4  # steps of located runs for multipliers, which are to repeat to 1e-6 of the range
_POINTS = 32001  # of a simulation; one number of them, so that it is compiled once
_AGAIN = 4  # least number of periods in a run
_LAST_PERIODS = 12  # of a located run that count
_FEW = 1.5  # least factor by which a run with too few periods is lengthened
_TURNS = 6  # largest number of rises per period
_REPEATS = 3  # of each gap at least: two may be alike by chance
_NEARER = 0.2  # of the range of gaps: largest rest with more rises per period
_UNEVEN = 0.05  # relative range of the periods beyond which there is no single period
_REST = 0.01  # of the greatest value: smaller ranges are an equilibrium
_LASTING = 0.8  # of the range in the half before: smaller ranges are a decay
_PARTS = 4  # of the late half, over which a monotone approach slows down


def from_network(net: Network, why: str) -> Cycle:
    """Period and extremes of the settled end of a simulation, with equal groups merged.

    A run that repeats or settles early is taken; the longest one in any case.
    """
    one, place = alike_joined(net)
    trip = max(float(np.max(np.asarray(f.rtt))) for f in one.flows)
    mesh = uniform_mesh(one)
    if one.rates == "self_clocked":  # errors in the packets in flight, which are conserved, add up
        mesh = dataclasses.replace(mesh, step=mesh.step / _CLOCKED)
    paces = sum(np.size(f.rtt) for f in one.flows)
    most = min(max(_SECOND, _MOST * float(mesh.step) / (paces * trip)), _LAST) * trip
    settled, end = False, _FIRST * trip
    while True:
        points = np.linspace(_SETTLED * end, end, _POINTS)
        run = simulate(one, until=end, points=points, mesh=mesh)
        if run.status is not Status.ok:
            return not_known(
                f"no cycle found ({why}), and the simulation fails: {run.status.advice}"
            )
        values = values_of(run.links, run.flows)
        found, settled = settled_cycle(run.time, values, labels_of(one), why)
        if settled or end >= most:
            break
        enough = (_AGAIN + 2) / (1 - _SETTLED) * (found.period or 0.0)
        longer = max(enough, _FEW * end) if enough > end else _SECOND / _FIRST * end
        end = min(longer, most)
    if settled and found.period is not None:
        if paces > FEW_CLASSES:
            words = f"no multipliers: {paces} distinct round trips are too many for them"
            found = _add_note(found, words)
        else:
            step = min(float(np.min(np.asarray(f.rtt))) for f in one.flows) / _STEPS_PER_TRIP
            observe = functools.partial(observed, one)
            found = _with_multipliers(
                found, *network_system(one), network_moves(one), end, step, observe, labels_of(one)
            )
    flows = {
        name: found.flows[one.flow_names[k]]
        for name, k in zip(net.flow_names, place, strict=True)
        if found.flows
    }
    joined = len(place) - len(one.flows)
    note = f"; {joined + 1} equal groups of flows are merged" if joined else ""
    note += ", in the multipliers too" if joined and found.floquet else ""
    if not settled and found.status != "incomplete":
        note += f"; the longest run, {end:.4g} s, had not converged"
    return dataclasses.replace(found, flows=flows, message=found.message + note)


def from_run(
    model: Model, run: Run, end: Return, observe: Any, labels: Sequence[Label], why: str
) -> Cycle | None:
    """The cycle at the end of a located run; None if it has not settled."""
    assert end.period is not None
    begin = max(_SETTLED * run.end, run.end - _LAST_PERIODS * end.period)
    time = np.linspace(begin, run.end, _POINTS)
    found, settled = settled_cycle(time, observe(run.states(time)), labels, why)
    if not settled or found.period is None:
        return None
    y0 = run.states(np.zeros(1))[0]
    moves = Moves(np.zeros(model.size, bool), np.eye(model.size))  # nothing ticks
    step = step_for(model, y0) / _FINER
    return _with_multipliers(
        found, model.system, y0, model.args, moves, run.end, step, observe, labels
    )


def _with_multipliers(
    found: Cycle, system: System, y0: Any, args: Args, moves: Moves, until: float, step: float,
    observe: Callable[[Array], Array], labels: Sequence[Label],
) -> Cycle:  # fmt: skip
    """The cycle that a run settles in until a time [s], with the multipliers, period and extremes
    of located runs of a step [s], or with the reason why it has no multipliers.
    """
    assert found.period is not None
    try:
        leading = multipliers_of_run(
            system, y0, args, moves, period=found.period, until=until, step=step
        )
    except NoMultipliersError as why:
        return _add_note(found, f"no multipliers: {why}")
    found = dataclasses.replace(
        found, floquet=leading.floquet, stable=leading.stable, period=leading.period,
        **by_name(labels, _extremes(observe(leading.states))),
    )  # fmt: skip
    return _add_note(found, leading.note)


def settled_cycle(
    time: Array, values: Array, labels: Sequence[Label], why: str
) -> tuple[Cycle, bool]:
    """Period and extremes of the late part of values (T, R), and whether that has settled.

    `why` is the reason for using a simulation, for messages.
    """
    late = time >= _SETTLED * time[-1]
    time, values = time[late], values[late]
    series = [v for v, label in zip(values.T, labels, strict=True) if label.key != "average"]
    leading = series[int(np.argmax([_swing(oscillation(time, v)) for v in series]))]
    lead = oscillation(time, leading)
    if lead.period is None:
        still = [np.ptp(v) <= _REST * np.max(np.abs(v)) for v in series]
        if all(own or _slows(v) for own, v in zip(still, series, strict=True)):
            return none_found(f"no cycle: the simulation becomes constant ({why})"), all(still)
        return not_known(f"no cycle found: the simulation does not repeat ({why})"), False
    first, second = _ranges(leading, 2)
    if second < _LASTING * first:
        return none_found(f"no cycle: the oscillation of the simulation dies away ({why})"), False
    starts = np.array(rises(time, leading, lead.lowest, lead.highest))
    gaps = np.diff(starts)
    if len(gaps) < 2:
        return not_known(f"no cycle found: the simulation repeats only once ({why})"), False
    turns, period, spread = _rhythm(starts)
    if spread <= _UNEVEN:
        note = f"{len(gaps) // turns} periods, which differ by {spread:.1g} of their mean"
    else:
        turns, spread, period = 1, None, repeating_period(time, leading)  # no range of its own
        note = f"{np.min(gaps):.4g} to {np.max(gaps):.4g} s from one rise to the next"
        if period is None or _AGAIN * period > np.ptp(time):
            return not_known(
                f"no cycle found: the simulation does not repeat, {note} ({why})"
            ), False
        note = f"it repeats roughly, {note}"
    ends = by_name(labels, _extremes(values))
    note = f"simulated, not refined: {why}; {note}"
    found = Cycle(
        period, floquet=(), status="simulated", message=note, spread=spread, **ends
    )  # fmt: skip
    evenly = spread is not None and spread < _EVEN and _even(leading)
    return with_turns(found, turns), evenly and len(gaps) >= _AGAIN * turns


def _extremes(values: Array) -> list[tuple[float, float]]:
    """Least and greatest of each of values (T, R)."""
    return [(float(v.min()), float(v.max())) for v in values.T]


def _add_note(found: Cycle, note: str) -> Cycle:
    """The cycle with one more note."""
    return dataclasses.replace(found, message=f"{found.message}; {note}")


def _rhythm(starts: np.ndarray) -> tuple[int, float, float]:
    """Number of rises after which they come evenly, the mean period, and the range of the periods
    relative to it.

    More rises than one are taken only if every single gap repeats far better than with fewer rises:
    sums of more gaps are more even for mere jitter too.
    """
    gaps = np.diff(starts)
    best, apart = 1, float(np.ptp(gaps))
    for turns in range(2, min(_TURNS, len(gaps) // _REPEATS) + 1):
        if _periods(starts, best)[1] < _EVEN:
            break
        own = max(float(np.ptp(gaps[phase::turns])) for phase in range(turns))
        if own < _NEARER * apart:
            best, apart = turns, own
    return best, *_periods(starts, best)


def _periods(starts: np.ndarray, turns: int) -> tuple[float, float]:
    """Mean of the periods of so many rises, and their range relative to it."""
    periods = starts[turns:] - starts[:-turns]
    mean = float(np.mean(periods))
    return mean, float(np.ptp(periods)) / mean


def _even(values: np.ndarray) -> bool:
    """Whether both halves reach the same values."""
    first, second = ((np.min(half), np.max(half)) for half in np.array_split(values, 2))
    return bool(np.max(np.abs(np.subtract(first, second))) <= _EVEN * np.ptp(values))


def _ranges(values: np.ndarray, parts: int) -> np.ndarray:
    """Ranges of the values in equal parts of the time."""
    return np.array([np.ptp(part) for part in np.array_split(values, parts)])


def _slows(values: np.ndarray) -> bool:
    """Whether the range falls from part to part, and clearly over all of them."""
    moved = _ranges(values, _PARTS)
    return bool(np.all(np.diff(moved) < 0) and moved[-1] < _LASTING**2 * moved[0])


def _swing(found: Oscillation) -> float:
    """Range relative to the size, 0 without a period."""
    if found.period is None:
        return 0.0
    return (found.highest - found.lowest) / max(abs(found.highest), 1e-300)


def labels_of(net: Network) -> tuple[Label, ...]:
    """Reported values of a network: queues and average queues of links, windows of groups."""
    out = [Label("links", name, "queue") for name in net.link_names]
    out += [Label("links", name, "average") for name in net.link_names]
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        out += [Label("flows", name, "window", k) for k in range(np.size(flows.rtt))]
    return tuple(out)


def values_of(links: Mapping[str, LinkRun], flows: Mapping[str, FlowsRun]) -> Array:
    """The values (T, R) of runs of links and groups in the order of `labels_of`."""
    columns = [link.queue for link in links.values()] + [k.average for k in links.values()]
    return np.column_stack(columns + [group.window for group in flows.values()])


def alike_joined(net: Network) -> tuple[Network, tuple[int, ...]]:
    """The network with groups merged that differ only in their number of flows, and for each group
    the index of its merged group.
    """
    kept: list[Flows] = []
    place = []
    for flows in net.flows:
        alike = (dataclasses.replace(flows, n=own.n) for own in kept)
        same = [eqx.tree_equal(*pair) is True for pair in zip(kept, alike, strict=True)]
        k = same.index(True) if any(same) else len(kept)
        if k == len(kept):
            kept.append(flows)
        else:
            kept[k] = dataclasses.replace(kept[k], n=kept[k].n + flows.n)
        place.append(k)
    names = tuple(net.flow_names[place.index(k)] for k in range(len(kept)))
    return dataclasses.replace(net, flows=tuple(kept), flow_names=names), tuple(place)


def network_moves(net: Network) -> Moves:
    """Perturbations of the state of a network for its multipliers.

    Ticks of fixed periods keep their distances for ever: they are perturbed together, which shifts
    time. All other components are perturbed one by one.
    """
    nothing = jax.tree.map(jnp.zeros_like, initial_state(to_arrays(net)))
    kept = [link.queue.period() is not None for link in net.links]
    for flows in net.flows:
        short, long = (flows.window.period(Ack(1.0, 0.0, trip)) for trip in (1.0, 2.0))
        kept.append(short is not None and bool(short == long))

    def marked(which: list[bool]) -> Array:
        clocks = zip(nothing.clocks, which, strict=True)
        ticks = tuple(jax.tree.map(lambda v, on=on: v + float(on), clock) for clock, on in clocks)
        return np.asarray(ravel_pytree(nothing._replace(clocks=ticks))[0]) > 0

    clock, fixed = marked([True] * len(kept)), marked(kept)
    along = np.eye(len(clock))[~fixed]
    return Moves(clock, np.vstack([along, fixed]) if np.any(fixed) else along)


def observed(net: Network, y: Array) -> Array:
    """The values (Q, R) of states (Q, n) in the order of `labels_of`."""
    return in_chunks(_observed, to_arrays(net), y)[0]


def _observed(net: Network, y: Array) -> tuple[Array]:
    nothing = ravel_pytree(blank(net)[1])[0]  # rates and signals have no part in the values
    return (values_of(*named(net, report(net, y, jnp.tile(nothing, (len(y), 1))))),)
