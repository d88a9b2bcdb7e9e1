"""Equilibria of networks, with a status and advice."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.balance import unbalanced
from fluidcc.analysis.extremes import extremes
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.regimes import (
    STEADY,
    apart,
    either,
    escape_advice,
    growth_advice,
    link_advice,
    quench_ratio,
    resolved,
    sampled_advice,
    sliding,
    status_of,
    window_advice,
)
from fluidcc.analysis.rest import INTERIOR, NEUTRAL, Rest, find_rest
from fluidcc.model.advice import advice
from fluidcc.model.fluid import as_fluid, steady
from fluidcc.model.rates import touched
from fluidcc.quantities import attributes
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray

_AGREE = 1e-8  # relative change of places in a round up to which they rest


@dataclasses.dataclass(frozen=True)
class LinkRest:
    """One link at rest: queue and average [packet], probability of a signal, utilization.

    `load` is the load factor it tells, and `quench_ratio` the share of quenches in the packets on
    the way back from it; None where there is none.
    """

    queue: float
    average: float
    signal: float
    utilization: float
    load: float | None = None
    quench_ratio: float | None = None


@dataclasses.dataclass(frozen=True)
class FlowsRest:
    """One group of flows at rest, per distinct round trip, shapes (m,).

    Window of one flow [packet], round trip with queueing [s], rate of one source [packet/s],
    probability of a signal heard, and the share of the sources that have something to send.
    """

    window: Array
    rtt: Array
    rate: Array
    signal: Array
    active: Array


@dataclasses.dataclass(frozen=True, repr=False)
class Equilibrium(Result):
    """Where a network comes to rest.

    `status` is `interior` (a root within the laws' ranges), `empty` (a queue at zero, the links
    not full), `saturated` (the signal needed lies within a jump, or a full buffer drops),
    `continuum` (many places rest; the numbers are those reached from the laws' start), or `none`
    (a link stays overloaded, or windows grow or fall without end), or `undetermined` (what was
    found does not rest in the moving model, or a law remembers an extreme of all its past);
    `message` says why and what helps.
    `sliding` names the links that are held at a jump from both sides: the equilibrium of the
    undelayed model, without a linearisation. Numbers are NaN where there is no equilibrium.

    Examples
    --------
    >>> import fluidcc as fc
    >>> rest = fc.equilibrium(fc.load("hollot2001/slow"))
    >>> rest.status, round(rest.links["bottleneck"].queue, 3)
    ('interior', 194.4)
    """

    _view = "equilibria.EquilibriumView"

    status: str
    message: str
    sliding: tuple[str, ...]
    links: dict[str, LinkRest]
    flows: dict[str, FlowsRest]
    net: Network = dataclasses.field(repr=False)
    rest: Rest = dataclasses.field(repr=False)

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation, on either side of a kink at least."""
        moving = all(flows.loss.window(0.0, 1.0) is None for flows in self.net.flows)
        return self.status in ("interior", "empty") and not self.sliding and moving

    @property
    def kinked(self) -> bool:
        """Whether a marking function has a kink here, so that there are two linearisations."""
        from fluidcc.analysis.linearize import at_kink

        return at_kink(self.net, self)

    @property
    def regime(self) -> Hashable:
        """What stays the same along a family as long as the linearisation is smooth."""
        from fluidcc.analysis.linearize import regime

        return regime(self)

    def linear(self, *, side: int = 0) -> Linear:
        """The linear system, see `linearize`; at a kink the one on that `side`."""
        from fluidcc.analysis.linearize import linearize

        return linearize(self.net, self, side=side)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for what is not known."""
        return {
            "status": self.status,
            "message": self.message,
            "sliding": list(self.sliding),
            "links": {k: plain(dataclasses.asdict(v)) for k, v in self.links.items()},
            "flows": {k: plain(dataclasses.asdict(v)) for k, v in self.flows.items()},
        }

    def to_dataset(self) -> xarray.Dataset:
        """Labelled arrays with units: per link, and per flow group and round trip (`flow`)."""
        import xarray as xr

        variables: dict[str, Any] = {}
        for name in ("queue", "average", "signal", "utilization"):
            values = [getattr(v, name) for v in self.links.values()]
            variables[name] = ("link", values, attributes("links", name))
        for name in ("window", "rtt", "rate", "heard"):
            key = "signal" if name == "heard" else name
            values = np.concatenate([getattr(v, key) for v in self.flows.values()])
            variables[name] = ("flow", values, attributes("flows", name))
        groups = [name for name, v in self.flows.items() for _ in v.window]
        coords = {"link": list(self.links), "group": ("flow", groups)}
        attrs = {"status": self.status, "message": self.message}
        return xr.Dataset(variables, coords=coords, attrs=attrs)


def without(eq: Equilibrium) -> str:
    """Why an equilibrium has no linearisation."""
    reasons = []
    if eq.status not in ("interior", "empty"):
        reasons.append(f"the status is {eq.status}")
    if eq.sliding:
        reasons.append(f"the laws switch there, at links.{', links.'.join(eq.sliding)}")
    return ", and ".join(reasons) or "a loss closure gives windows at rest only"


def equilibrium(net: Network) -> Equilibrium:
    """Where a network comes to rest, to about 12 digits.

    One link has at most one equilibrium if windows do not grow with the signal nor with the round
    trip faster than it, nor the signal falls with the queue. Where that fails, the shortest queue
    is found and the message says so; of memories that rest anywhere it tells the range. For several
    links uniqueness is not known: the search starts from empty and from long queues, and the
    message says if they differ.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.equilibrium(fc.load("hollot2001/slow"))
    Equilibrium: interior
    Links
    link        queue [packet]  average [packet]     signal  utilization
    bottleneck           194.4             194.4  0.0080727            1
    Flows
    group  round trips  window [packet]  rtt [ms]  rate [packet/s]     signal
    tcp              1            15.74    251.84             62.5  0.0080727
    """
    noted, net = advice(net), as_fluid(net)
    arrays = steady(net)
    nothing = np.zeros(len(net.links))
    rest = find_rest(arrays, nothing)
    notes = []
    if len(net.links) > 1:
        longest = [float(min(link.buffer, 1e4)) for link in net.links]
        other = find_rest(arrays, np.asarray(longest))
        if apart(rest, other):
            queues = ", ".join(f"{q:.6g}" for q in np.asarray(other.queues))
            notes.append(f"not unique: another start ends at queues of {queues} packets")
    starts = max(len(link.queue.starts(0.0)) for link in net.links)
    others = [find_rest(arrays, nothing, start) for start in range(1, starts)]
    others = [other for other in others if apart(rest, other)]
    notes += [_between(net, k, [rest, *others]) for k in range(len(net.links)) if others]
    return _described(net, arrays, rest, [n for n in (*notes, *noted) if n], bool(others))


def _between(net: Network, k: int, rests: list[Rest]) -> str:
    """The range over which link k may rest."""
    queues = [float(rest.queues[k]) for rest in rests]
    signals = [either(rest.signals[k]) for rest in rests]
    if max(queues) - min(queues) <= _AGREE and max(signals) - min(signals) <= _AGREE:
        return ""
    return (
        f"many places rest: links.{net.link_names[k]} at queues from {min(queues):.6g} to "
        f"{max(queues):.6g} packets with signals from {min(signals):.6g} to {max(signals):.6g}, by "
        "the start of its law"
    )


def _described(
    net: Network, arrays: Network, rest: Rest, notes: list[str], many: bool
) -> Equilibrium:
    rest, regimes = resolved(arrays, rest)
    status = status_of(arrays, rest, regimes, many=many)
    links = {name: _link(arrays, rest, k, regimes[k]) for k, name in enumerate(net.link_names)}
    flows = {name: _flows(arrays, rest, i) for i, name in enumerate(net.flow_names)}
    unknown = status == "none" or NEUTRAL in regimes
    fault = _unsettled(rest) if unknown else unbalanced(arrays, rest, regimes)
    faults = extremes(net) or ([fault] if fault else [])
    if faults:
        return _undetermined(net, rest, "; ".join([*faults, *notes]))
    texts = [link_advice(arrays, rest, k, regime) for k, regime in enumerate(regimes)]
    texts += [escape_advice(net, rest, k) for k in range(len(regimes))]
    if status == "interior" and not sliding(net, regimes):
        texts += [sampled_advice(net, k, regime) for k, regime in enumerate(regimes)]
    for i, group in enumerate(flows.values()):
        if status == "none":
            texts.append(growth_advice(arrays, rest, i))
        elif NEUTRAL not in regimes:
            texts += window_advice(net, i, group.window)
    message = "; ".join(t for t in [*texts, *notes] if t)
    if status == "none":
        links = _unknown_links(net)
    if unknown:
        flows = _unknown_flows(net)
    return Equilibrium(status, message, sliding(net, regimes), links, flows, net, rest)


def _unsettled(rest: Rest) -> str:
    """Whether the links never came to rest together, so that nothing is known; empty if they did.

    Where there are no windows that could be put into the moving model, this is all that is checked.
    """
    moved = float(rest.moved)
    if moved <= _AGREE:
        return ""
    return f"the search does not end: links still move by {moved:.1e} a round"


def _undetermined(net: Network, rest: Rest, message: str) -> Equilibrium:
    links, flows = _unknown_links(net), _unknown_flows(net)
    return Equilibrium("undetermined", message, (), links, flows, net, rest)


def _unknown_links(net: Network) -> dict[str, LinkRest]:
    return {name: LinkRest(*4 * (math.nan,)) for name in net.link_names}


def _unknown_flows(net: Network) -> dict[str, FlowsRest]:
    sizes = {n: np.size(flows.rtt) for n, flows in zip(net.flow_names, net.flows, strict=True)}
    return {name: FlowsRest(*5 * (np.full(size, math.nan),)) for name, size in sizes.items()}


def _link(net: Network, rest: Rest, k: int, regime: int) -> LinkRest:
    link, queue = net.links[k], float(rest.queues[k])
    average = float(link.queue.average(rest.laws[k], queue))
    used = min(1.0, float(rest.accepted[k]) / float(link.capacity))
    busy = regime in (INTERIOR, STEADY) and queue > 0
    load = float(rest.signals[k].load) if link.queue.loads else None
    return LinkRest(
        queue, average, either(rest.signals[k]), 1.0 if busy else used, load,
        quench_ratio(net, k, rest),
    )  # fmt: skip


def _flows(net: Network, rest: Rest, i: int) -> FlowsRest:
    flows = net.flows[i]
    rtt = np.asarray(flows.rtt, float)
    rtt = rtt + sum(float(rest.queues[k]) / float(net.links[k].capacity) for k in flows.route)
    window = np.asarray(rest.windows[i])
    signal = float(touched(flows, tuple(rest.signals[k] for k in flows.route)))
    active = rest.senders[i].active if flows.traffic.starts else np.ones_like(window)
    return FlowsRest(
        window, rtt, np.asarray(rest.rates[i]), np.full(len(window), signal), np.asarray(active)
    )
