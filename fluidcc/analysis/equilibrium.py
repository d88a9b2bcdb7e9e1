"""Equilibria of networks, with a status and advice."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.rest import (
    EMPTY,
    FULL,
    INTERIOR,
    JUMP,
    LARGEST_WINDOW,
    NONE,
    Rest,
    find_rest,
    settled,
)
from fluidcc.fluid.rates import heard
from fluidcc.network import Network, numeric
from fluidcc.results import plain

if TYPE_CHECKING:
    import xarray

_AGREE = 1e-8  # relative difference of queues up to which two starts found the same


@dataclasses.dataclass(frozen=True)
class LinkRest:
    """One link at rest: queue and average [packet], probability of a signal, utilization."""

    queue: float
    average: float
    signal: float
    utilization: float


@dataclasses.dataclass(frozen=True)
class FlowsRest:
    """One group of flows at rest, per distinct round trip, shapes (m,).

    Window of one flow [packet], round trip with queueing [s], rate of one flow [packet/s],
    probability of a signal heard.
    """

    window: Array
    rtt: Array
    rate: Array
    signal: Array


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """Where a network comes to rest.

    `status` is `interior` (a root within the laws' ranges), `empty` (a queue at zero, the links
    not full), `saturated` (the signal needed lies within a jump, or a full buffer drops), or
    `none`; `message` says why and what helps. Numbers are NaN where there is no equilibrium.
    """

    status: str
    message: str
    links: dict[str, LinkRest]
    flows: dict[str, FlowsRest]
    net: Network = dataclasses.field(repr=False)
    rest: Rest = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for what is not known."""
        return {
            "status": self.status,
            "message": self.message,
            "links": {k: plain(dataclasses.asdict(v)) for k, v in self.links.items()},
            "flows": {k: plain(dataclasses.asdict(v)) for k, v in self.flows.items()},
        }

    def to_dataset(self) -> xarray.Dataset:
        """Labelled arrays with units: per link, and per flow group and round trip (`flow`)."""
        import xarray as xr

        units = {"queue": "packet", "average": "packet", "signal": "1", "utilization": "1"}
        variables: dict[str, Any] = {
            name: ("link", [getattr(v, name) for v in self.links.values()], {"units": unit})
            for name, unit in units.items()
        }
        for name, unit in {"window": "packet", "rtt": "s", "rate": "packet/s"}.items():
            values = np.concatenate([getattr(v, name) for v in self.flows.values()])
            variables[name] = ("flow", values, {"units": unit})
        signal = np.concatenate([v.signal for v in self.flows.values()])
        variables["heard"] = ("flow", signal, {"units": "1"})
        groups = [name for name, v in self.flows.items() for _ in v.window]
        coords = {"link": list(self.links), "group": ("flow", groups)}
        attrs = {"status": self.status, "message": self.message}
        return xr.Dataset(variables, coords=coords, attrs=attrs)

    def __repr__(self) -> str:
        lines = [f"Equilibrium: {self.status}" + (f" ({self.message})" if self.message else "")]
        for name, link in self.links.items():
            lines.append(
                f"  link {name}: queue {link.queue:.6g} packet, average {link.average:.6g} packet, "
                f"signal {link.signal:.6g}, utilization {link.utilization:.4g}"
            )
        for name, flows in self.flows.items():
            lines.append(
                f"  flows {name}: window {_span(flows.window)} packet, rtt {_span(flows.rtt)} s, "
                f"rate {_span(flows.rate)} packet/s, signal {_span(flows.signal)}"
            )
        return "\n".join(lines)


def _span(values: Array) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.6g} to {high:.6g}" if high - low > 1e-9 * high else f"{low:.6g}"


def equilibrium(net: Network) -> Equilibrium:
    """Where a network comes to rest, to about 12 digits.

    One link has at most one equilibrium if windows do not grow with the signal nor the signal
    falls with the queue (both hold for every law here). For several links uniqueness is not
    known: the search starts from empty and from long queues, and the message says if they differ.
    """
    arrays = numeric(net)
    rest = find_rest(arrays, np.zeros(len(net.links)))
    notes = []
    if len(net.links) > 1:
        longest = [float(min(link.buffer, 1e4)) for link in net.links]
        other = find_rest(arrays, np.asarray(longest))
        apart = np.abs(np.asarray(rest.queues) - np.asarray(other.queues))
        if np.any(apart > _AGREE * (1 + np.abs(np.asarray(rest.queues)))):
            queues = ", ".join(f"{q:.6g}" for q in np.asarray(other.queues))
            notes.append(f"not unique: another start ends at queues of {queues} packets")
        if float(rest.moved) > _AGREE:
            notes.append(f"the queues still move by {float(rest.moved):.1e} a round")
    return _described(net, rest, notes)


def _described(net: Network, rest: Rest, notes: list[str]) -> Equilibrium:
    codes = [int(c) for c in rest.codes]
    status = (
        "none" if NONE in codes
        else "saturated" if JUMP in codes or FULL in codes
        else "empty" if all(c == EMPTY for c in codes)
        else "interior"
    )  # fmt: skip
    links = {name: _link(net, rest, k) for k, name in enumerate(net.link_names)}
    flows = {name: _flows(net, rest, i) for i, name in enumerate(net.flow_names)}
    texts = [_advice(net, rest, k) for k in range(len(codes))]
    texts += [_endless(net, name, group) for name, group in flows.items()]
    if status != "none":
        texts += [_floor(name, group) for name, group in flows.items()]
    message = "; ".join(t for t in [*texts, *notes] if t)
    if status == "none":
        links = {name: LinkRest(*4 * (math.nan,)) for name in links}
        unknown = {name: np.full(len(v.window), math.nan) for name, v in flows.items()}
        flows = {name: FlowsRest(*4 * (v,)) for name, v in unknown.items()}
    return Equilibrium(status, message, links, flows, net, rest)


def _link(net: Network, rest: Rest, k: int) -> LinkRest:
    link, queue = net.links[k], float(rest.queues[k])
    average = float(link.queue.average(settled(link, queue), queue))
    used = min(1.0, float(rest.accepted[k]) / float(link.capacity))
    used = 1.0 if int(rest.codes[k]) == INTERIOR else used
    return LinkRest(queue, average, _either(rest.signals[k]), used)


def _flows(net: Network, rest: Rest, i: int) -> FlowsRest:
    flows = net.flows[i]
    rtt = np.asarray(flows.rtt, float)
    rtt = rtt + sum(float(rest.queues[k]) / float(net.links[k].capacity) for k in flows.route)
    window = np.asarray(rest.windows[i])
    signal = _either(heard(flows, tuple(rest.signals[k] for k in flows.route)))
    return FlowsRest(window, rtt, window / rtt, np.full(len(window), signal))


def _either(signal: Any) -> float:
    return float(1 - (1 - signal.mark) * (1 - signal.drop))


def _advice(net: Network, rest: Rest, k: int) -> str:
    """What is to be said about link k."""
    code, queue, name = int(rest.codes[k]), float(rest.queues[k]), net.link_names[k]
    needed, given = _either(rest.signals[k]), _either(rest.signals_below[k])
    if code == JUMP:
        return (
            f"no smooth equilibrium: the marking needed ({needed:.3g}) is above the {given:.3g} "
            f"that links.{name}.queue gives below its jump at {queue:.6g} packets; the queue sits "
            "there, in small cycles if the feedback is delayed"
        )
    if code == FULL:
        return (
            f"the buffer of links.{name} is full ({queue:.6g} packets): beyond a marking of "
            f"{float(rest.signals[k].mark):.3g} it drops {float(rest.signals[k].drop):.3g}"
        )
    if code == NONE:
        return (
            f"no equilibrium: with every packet marked, or the longest queue ({queue:.6g} "
            f"packets), links.{name} is still offered more than its capacity; losses govern. "
            "Fewer flows, a longer buffer or a law that backs off further would settle"
        )
    if code == EMPTY and len(rest.codes) == 1:
        used = float(rest.accepted[k]) / float(net.links[k].capacity)
        return f"the windows keep links.{name} at a utilization of {used:.3g}: its queue is empty"
    return ""


def _endless(net: Network, name: str, group: FlowsRest) -> str:
    cap = float(net.flows[net.flow_names.index(name)].window.max_window)
    if not (np.max(group.window) >= LARGEST_WINDOW < cap):
        return ""
    return (
        f"flows.{name}: the window is not bounded; give max_window "
        f"(the search ends at {LARGEST_WINDOW:.3g} packets)"
    )


def _floor(name: str, group: FlowsRest) -> str:
    low = float(np.min(group.window))
    if not low < 1:
        return ""
    return f"flows.{name}: a window of {low:.3g} is below one packet per window"
