"""Cycles that collocation does not give: relays in closed form, and settled simulations."""

from __future__ import annotations

import numpy as np

from fluidcc.analysis.cycles.result import Cycle, FlowsCycle, LinkCycle, none_found
from fluidcc.analysis.oscillation import Oscillation, oscillation
from fluidcc.analysis.relay import relay_cycle
from fluidcc.fluid.simulate import Trajectory, simulate, uniform_mesh
from fluidcc.fluid.status import Status
from fluidcc.network import Network

_LENGTH = 400.0  # longest round trips of a run
_SETTLED = 0.5  # of a run: what comes after counts
_POINTS_PER_TRIP = 40
_LASTING = 0.8  # of the range in the half before: what falls below this decays


def from_relay(net: Network) -> Cycle | None:
    """The exact switching cycle of a relay, where the network is one that has it."""
    loads = any(link.queue.loads for link in net.links)
    stepped = net.rates == "self_clocked" and any(link.queue.jumps() for link in net.links)
    if not (loads or stepped):
        return None
    try:
        found = relay_cycle(net)
    except ValueError:
        return None
    if not (found.exact and found.valid):
        return None
    note = "; ".join(filter(None, [f"the switching cycle of {found.basis}", found.message]))
    return Cycle(
        found.period, {net.link_names[0]: LinkCycle(found.queue, found.average)},
        {net.flow_names[0]: FlowsCycle((found.window,))}, (), "relay", note,
    )  # fmt: skip


def from_simulation(net: Network, why: str) -> Cycle:
    """Period and extremes of the settled end of a simulation."""
    trip = max(float(np.max(np.asarray(f.rtt))) for f in net.flows)
    until = _LENGTH * trip
    points = np.linspace(0.0, until, int(_LENGTH * _POINTS_PER_TRIP) + 1)
    run = simulate(net, until=until, points=points, mesh=uniform_mesh(net))
    if run.status is not Status.ok:
        return none_found(f"no cycle found ({why}), and the simulation fails: {run.status.advice}")
    return of_trajectory(run, why)


def of_trajectory(run: Trajectory, why: str) -> Cycle:
    """Period and extremes of the settled end of a trajectory."""
    after = _SETTLED * float(run.time[-1])
    late = run.time >= after
    series = [link.queue for link in run.links.values()]
    series += [w for group in run.flows.values() for w in group.window.T]
    swings = [_swing(oscillation(run.time, values, after=after)) for values in series]
    leading = series[int(np.argmax(swings))]
    lead = oscillation(run.time, leading, after=after)
    if lead.period is None:
        return none_found(f"no cycle: the simulation comes to rest, or does not repeat ({why})")
    first, second = (np.ptp(half) for half in np.array_split(leading[late], 2))
    if second < _LASTING * first:
        return none_found(f"no cycle: the oscillation of the simulation dies away ({why})")

    def ends(values: np.ndarray) -> tuple[float, float]:
        return float(np.min(values[late])), float(np.max(values[late]))

    return Cycle(
        lead.period,
        {name: LinkCycle(ends(k.queue), ends(k.average)) for name, k in run.links.items()},
        {name: FlowsCycle(tuple(ends(w) for w in f.window.T)) for name, f in run.flows.items()},
        (), "simulated", f"from a simulation: {why}",
    )  # fmt: skip


def _swing(found: Oscillation) -> float:
    """Range relative to the size, 0 without a period."""
    if found.period is None:
        return 0.0
    return (found.highest - found.lowest) / max(abs(found.highest), 1e-300)
