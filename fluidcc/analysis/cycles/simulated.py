"""Cycles that collocation does not give: relays in closed form, and settled simulations."""

from __future__ import annotations

import dataclasses

import numpy as np

from fluidcc.analysis.cycles.result import Cycle, FlowsCycle, LinkCycle, none_found, not_known
from fluidcc.analysis.cycles.subjects import alike_joined, steady
from fluidcc.analysis.oscillation import (
    Oscillation,
    oscillation,
    repeating_period,
    rises,
)
from fluidcc.analysis.relay import relay_cycle
from fluidcc.fluid.mean_traffic import as_fluid
from fluidcc.fluid.simulate import Trajectory, simulate, uniform_mesh
from fluidcc.fluid.status import Status
from fluidcc.network import Network

_LENGTHS = (100.0, 400.0, 1600.0)  # longest round trips of a run
_MOST = 1e6  # steps times round trips of a run that is longer than the first two
_SETTLED = 0.5  # of a run: what comes after counts
_POINTS = 16001  # one number of them, so that it is compiled once
_AGAIN = 4  # periods that a run has to repeat
_EVEN = 0.01  # relative: how much they may differ
_UNEVEN = 0.05  # relative: from where on they are no one period
_REST = 0.01  # of the greatest value: ranges of what has come to rest
_LASTING = 0.8  # of the range in the half before: what falls below this decays


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
    most = max(_LENGTHS[1], _MOST * float(mesh.step) / (paces * trip))
    found, settled, end = not_known(""), False, 0.0
    for length in _LENGTHS:
        if length > most:
            break
        points = np.linspace(0.0, length * trip, _POINTS)
        run = simulate(one, until=length * trip, points=points, mesh=mesh)
        if run.status is not Status.ok:
            return not_known(
                f"no cycle found ({why}), and the simulation fails: {run.status.advice}"
            )
        end = length * trip
        found, settled = of_trajectory(run, why)
        if settled:
            break
    flows = {
        name: found.flows[one.flow_names[k]]
        for name, k in zip(as_fluid(net).flow_names, place, strict=True)
        if found.flows
    }
    joined = len(place) - len(one.flows)
    note = f"; {joined + 1} groups of flows that are alike move as one" if joined else ""
    if not settled and found.status != "incomplete":
        note += f"; the longest run, {end:.4g} s, had not settled"
    return dataclasses.replace(found, flows=flows, message=found.message + note)


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
        if all(_rests(values[late]) for values in series):
            still = all(_still(values[late]) for values in series)
            return none_found(f"no cycle: the simulation comes to rest ({why})"), still
        return not_known(f"no cycle found: the simulation does not repeat ({why})"), False
    if _fades(leading[late]):
        return none_found(f"no cycle: the oscillation of the simulation dies away ({why})"), False
    gaps = np.diff(rises(run.time[late], leading[late], lead.lowest, lead.highest))
    uneven, period = float(np.ptp(gaps)) / lead.period, lead.period
    note = f"from a simulation: {why}"
    if uneven > _UNEVEN:
        period = repeating_period(run.time[late], leading[late])
        told = f"{np.min(gaps):.4g} to {np.max(gaps):.4g} s from rise to rise"
        if period is None:
            return not_known(
                f"no cycle found: the simulation does not repeat, {told} ({why})"
            ), False
        note += f"; it repeats in part, {told}"

    def ends(values: np.ndarray) -> tuple[float, float]:
        return float(np.min(values[late])), float(np.max(values[late]))

    found = Cycle(
        period,
        {name: LinkCycle(ends(k.queue), ends(k.average)) for name, k in run.links.items()},
        {name: FlowsCycle(tuple(ends(w) for w in f.window.T)) for name, f in run.flows.items()},
        (), "simulated", note,
    )  # fmt: skip
    return found, len(gaps) >= _AGAIN and uneven < _EVEN and _even(leading[late])


def _even(values: np.ndarray) -> bool:
    """Whether both halves reach the same values."""
    first, second = ((np.min(half), np.max(half)) for half in np.array_split(values, 2))
    return bool(np.max(np.abs(np.subtract(first, second))) <= _EVEN * np.ptp(values))


def _fades(values: np.ndarray) -> bool:
    """Whether the second half moves clearly less than the first."""
    first, second = (np.ptp(half) for half in np.array_split(values, 2))
    return bool(second < _LASTING * first)


def _rests(values: np.ndarray) -> bool:
    """Whether values stay within a hundredth of the greatest, or come to."""
    return _still(values) or _fades(values)


def _still(values: np.ndarray) -> bool:
    """Whether values stay within a hundredth of the greatest."""
    return bool(np.ptp(values) <= _REST * np.max(values))


def _swing(found: Oscillation) -> float:
    """Range relative to the size, 0 without a period."""
    if found.period is None:
        return 0.0
    return (found.highest - found.lowest) / max(abs(found.highest), 1e-300)
