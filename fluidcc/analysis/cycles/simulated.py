"""Cycles that collocation does not give: relays in closed form, and settled simulations."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fluidcc.analysis.cycles.perturbed import Moves, NoMultipliersError, multipliers_of_run
from fluidcc.analysis.cycles.result import (
    Cycle,
    FlowsCycle,
    LinkCycle,
    none_found,
    not_known,
    with_turns,
)
from fluidcc.analysis.cycles.subjects import FEW_CLASSES, alike_joined, network_moves, steady
from fluidcc.analysis.oscillation import (
    Oscillation,
    oscillation,
    repeating_period,
    rises,
)
from fluidcc.analysis.relay import relay_cycle
from fluidcc.dde.status import Status
from fluidcc.dde.system import Args, System
from fluidcc.model.fluid import as_fluid
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system
from fluidcc.model.runs import Trajectory
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Network

EVEN = 0.01
"""How much the periods of a run that repeats may differ, relatively."""
_FIRST, _SECOND, _LAST = 100.0, 400.0, 6400.0  # longest round trips of a run
_MOST = 4e6  # steps times round trips of a run that is longer than the second: a minute
_SETTLED = 0.5  # of a run: what comes after counts
_STEPS_PER_TRIP = 16  # of the shortest round trip, of located runs
_POINTS = 32001  # of these; one number of them, so that it is compiled once
_AGAIN = 4  # periods that a run has to repeat
_FEW = 1.5  # at least: how much longer a run is made that has too few of them
_TURNS = 6  # most rises after which a cycle may repeat
_REPEATS = 3  # of each gap at least: two may be alike by chance
_NEARER = 0.2  # of how far gaps are apart: what more rises leave of it at most
_UNEVEN = 0.05  # relative: from where on they are no one period
_REST = 0.01  # of the greatest value: ranges of what has come to rest
_LASTING = 0.8  # of the range in the half before: what falls below this decays
_PARTS = 4  # of what counts, over which an approach without swings slows down


def from_relay(net: Network) -> Cycle | None:
    """The exact switching cycle of a relay, where the network is one that has it."""
    loads = any(link.queue.loads for link in net.links)
    stepped = net.rates == "self_clocked" and any(link.queue.jumps() for link in net.links)
    if not (loads or stepped):
        return None
    fluid = as_fluid(net)
    try:
        found = relay_cycle(net)
    except ValueError:
        return None
    if not (found.exact and found.valid):
        return None
    note = "; ".join(filter(None, [f"the switching cycle of {found.basis}", found.message]))
    return Cycle(
        found.period, {fluid.link_names[0]: LinkCycle(found.queue, found.average)},
        {fluid.flow_names[0]: FlowsCycle((found.window,))}, (), "relay", note,
    )  # fmt: skip


def from_simulation(net: Network, why: str) -> Cycle:
    """Period and extremes of the settled end of a simulation, in which like groups move as one.

    A run that repeats or rests early is taken; the longest one in any case.
    """
    one, place = alike_joined(steady(net))
    trip = max(float(np.max(np.asarray(f.rtt))) for f in one.flows)
    mesh = uniform_mesh(one)
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
        found, settled = of_trajectory(run, why)
        if settled or end >= most:
            break
        enough = (_AGAIN + 2) / (1 - _SETTLED) * (found.period or 0.0)
        longer = max(enough, _FEW * end) if enough > end else _SECOND / _FIRST * end
        end = min(longer, most)
    if settled and found.period is not None:
        found = _with_multipliers(found, one, end)
    flows = {
        name: found.flows[one.flow_names[k]]
        for name, k in zip(as_fluid(net).flow_names, place, strict=True)
        if found.flows
    }
    joined = len(place) - len(one.flows)
    note = f"; {joined + 1} groups of flows that are alike move as one" if joined else ""
    note += ", in the multipliers too" if joined and found.floquet else ""
    if not settled and found.status != "incomplete":
        note += f"; the longest run, {end:.4g} s, had not settled"
    return dataclasses.replace(found, flows=flows, message=found.message + note)


def _with_multipliers(found: Cycle, net: Network, until: float) -> Cycle:
    """The cycle with its multipliers, or with a word on why it has none."""
    classes = sum(np.size(f.rtt) for f in net.flows)
    if classes > FEW_CLASSES:
        why = f"{classes} distinct round trips have too many breaking points"
        return _noted(found, f"no multipliers: {why}")
    step = min(float(np.min(np.asarray(f.rtt))) for f in net.flows) / _STEPS_PER_TRIP
    system, y0, args = network_system(net)
    return with_multipliers(found, system, y0, args, network_moves(net), until=until, step=step)


def with_multipliers(
    found: Cycle, system: System, y0: Any, args: Args, moves: Moves, *, until: float, step: float
) -> Cycle:
    """The cycle that a run settles in until a time [s], with its multipliers by located runs of a
    step [s], or with a word on why it has none.
    """
    assert found.period is not None
    try:
        told = multipliers_of_run(
            system, y0, args, moves, period=found.period, until=until, step=step
        )
    except NoMultipliersError as why:
        return _noted(found, f"no multipliers: {why}")
    found = dataclasses.replace(found, floquet=told.floquet, stable=told.stable)
    return _noted(found, told.note)


def of_trajectory(run: Trajectory, why: str) -> tuple[Cycle, bool]:
    """Period and extremes of the late part of a trajectory, and whether that has settled."""
    after = _SETTLED * float(run.time[-1])
    late = run.time >= after
    series = [link.queue for link in run.links.values()]
    series += [w for group in run.flows.values() for w in group.window.T]
    swings = [_swing(oscillation(run.time, values, after=after)) for values in series]
    leading = series[int(np.argmax(swings))]
    lead = oscillation(run.time, leading, after=after)
    if lead.period is None:
        if all(_still(values[late]) for values in series):
            return none_found(f"no cycle: the simulation comes to rest ({why})"), True
        if all(_still(values[late]) or _slows(values[late]) for values in series):
            return none_found(f"no cycle: the simulation comes to rest ({why})"), False
        return not_known(f"no cycle found: the simulation does not repeat ({why})"), False
    if _fades(leading[late]):
        return none_found(f"no cycle: the oscillation of the simulation dies away ({why})"), False
    starts = np.array(rises(run.time[late], leading[late], lead.lowest, lead.highest))
    gaps = np.diff(starts)
    if len(gaps) < 2:
        return not_known(f"no cycle found: the simulation repeats but once ({why})"), False
    turns, period, spread = _rhythm(starts)
    note = f"from a simulation: {why}"
    if spread > _UNEVEN:
        turns, period = 1, repeating_period(run.time[late], leading[late])
        told = f"{np.min(gaps):.4g} to {np.max(gaps):.4g} s from rise to rise"
        if period is None or _AGAIN * period > np.ptp(run.time[late]):
            return not_known(
                f"no cycle found: the simulation does not repeat, {told} ({why})"
            ), False
        spread = None  # of the gaps, which are not the period told
        note += f"; it repeats in part, {told}"
    else:
        note += f"; {len(gaps) // turns} periods, equal to {spread:.1g} of their mean"

    def ends(values: np.ndarray) -> tuple[float, float]:
        return float(np.min(values[late])), float(np.max(values[late]))

    found = Cycle(
        period,
        {name: LinkCycle(ends(k.queue), ends(k.average)) for name, k in run.links.items()},
        {name: FlowsCycle(tuple(ends(w) for w in f.window.T)) for name, f in run.flows.items()},
        (), "simulated", note, spread=spread,
    )  # fmt: skip
    evenly = spread is not None and spread < EVEN and even(leading[late])
    settled = evenly and len(gaps) >= _AGAIN * turns
    return with_turns(found, turns), settled


def _noted(found: Cycle, note: str) -> Cycle:
    """The cycle with one more note."""
    return dataclasses.replace(found, message=f"{found.message}; {note}")


def _rhythm(starts: np.ndarray) -> tuple[int, float, float]:
    """Number of rises after which they come evenly, the mean period, and the range of the periods
    relative to it.

    More rises than one are taken where the gaps come back one by one, far nearer than with fewer
    rises: the sums of more gaps are more even for jitter alone, which nothing repeats.
    """
    gaps = np.diff(starts)
    best, apart = 1, float(np.ptp(gaps))
    for turns in range(2, min(_TURNS, len(gaps) // _REPEATS) + 1):
        if _periods(starts, best)[1] < EVEN:
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


def even(values: np.ndarray) -> bool:
    """Whether both halves reach the same values."""
    first, second = ((np.min(half), np.max(half)) for half in np.array_split(values, 2))
    return bool(np.max(np.abs(np.subtract(first, second))) <= EVEN * np.ptp(values))


def _fades(values: np.ndarray) -> bool:
    """Whether the second half moves clearly less than the first."""
    first, second = (np.ptp(half) for half in np.array_split(values, 2))
    return bool(second < _LASTING * first)


def _slows(values: np.ndarray) -> bool:
    """Whether values move less and less, from part to part, and clearly so over all of them."""
    moved = [np.ptp(part) for part in np.array_split(values, _PARTS)]
    return bool(np.all(np.diff(moved) < 0) and moved[-1] < _LASTING**2 * moved[0])


def _still(values: np.ndarray) -> bool:
    """Whether values stay within a hundredth of the greatest."""
    return bool(np.ptp(values) <= _REST * np.max(values))


def _swing(found: Oscillation) -> float:
    """Range relative to the size, 0 without a period."""
    if found.period is None:
        return 0.0
    return (found.highest - found.lowest) / max(abs(found.highest), 1e-300)
