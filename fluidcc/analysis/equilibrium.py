"""Equilibria of networks, with a status and advice."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.balance import FOLLOW, Rows, describe_switching, unbalanced
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.operating_point import (
    AGREE,
    OperatingPoint,
    Regime,
    agree,
    find_operating_point,
    grid_errors,
    has_dead_zones,
    midway,
    resolved,
)
from fluidcc.analysis.population import why_no_population
from fluidcc.analysis.steady_laws import LARGEST_WINDOW, SMALLEST_WINDOW, per_flow
from fluidcc.errors import answers
from fluidcc.laws.law import AbstractWindowLaw, Ack, Arrival, Signal
from fluidcc.model.advice import advice, faults_of_sharing, milliseconds
from fluidcc.model.delays import path_delay, round_trip
from fluidcc.model.fluid import as_fluid, has_motion, steady
from fluidcc.model.rates import (
    in_its_share,
    interpret_signal,
    own_share,
    received,
    sender_change,
    touched,
)
from fluidcc.ops import Num
from fluidcc.programs import compiled, leaves, unflatten
from fluidcc.quantities import about, attributes, labels
from fluidcc.result import Result
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray

_BELOW = math.nextafter(1.0, 0.0)  # full load
_NO_WINDOW = 1.001 * SMALLEST_WINDOW


@dataclasses.dataclass(frozen=True)
class LinkEquilibrium:
    """One link at equilibrium: queue [packet], queueing delay [s], average of the queue law
    [packet], mark or drop probability, utilization.

    `load_factor` is that of the link, and `quench_fraction` the share of quenches in the packets on
    the way back from it; None if there is none.
    """

    queue: float
    queueing_delay: float
    average: float
    mark_probability: float
    utilization: float
    load_factor: float | None = None
    quench_fraction: float | None = None


@dataclasses.dataclass(frozen=True)
class FlowsEquilibrium:
    """One group of flows at equilibrium, per distinct round trip, shapes (m,).

    Window of one flow [packet], round trip with queueing [s], queueing delay over the links of the
    route [s], rate of one source [packet/s], mark or drop probability seen by the sender, and the
    share of the sources that are active.
    """

    window: Array
    rtt: Array
    queueing_delay: Array
    rate: Array
    mark_probability: Array
    active: Array


@dataclasses.dataclass(frozen=True, repr=False)
class Equilibrium(Result):
    """The equilibrium of a network.

    `status` is `regular` (a root within the laws' ranges), `empty` (a queue at zero, the links
    not full), `discontinuity` (the signal needed is passed over by a discontinuity of the law, a
    window law jumps at the window found and drives others back to it, or a full buffer drops),
    `continuum` (not unique; the numbers are those reached from the laws' start, or those half-way
    if windows in a range neither grow nor fall), `none` (a link stays overloaded, or windows grow
    or fall without end), or `undetermined` (the candidate fails the check against the equations of
    motion, or a law remembers an extreme of all its past);
    `message` has the reason and a remedy.
    `sliding` names the links that are held on a discontinuity from both sides: the equilibrium of
    the undelayed model, without a linearisation. Numbers are NaN if there is no equilibrium. `net`
    is the fluid model's version of the network `asked` about, `rows` the residuals of its check.

    `links` and `flows` are by name, `op` is the state in the arrays of the solver.

    Examples
    --------
    >>> import fluidcc as fc
    >>> rest = fc.equilibrium(fc.load("hollot2001/slow"))
    >>> rest.status, round(rest.links["bottleneck"].queue, 3)
    ('regular', 194.4)
    """

    _view = "equilibria.EquilibriumView"
    _in_dict = "status", "message", "sliding", "links", "flows"

    status: str
    message: str
    sliding: tuple[str, ...]
    links: dict[str, LinkEquilibrium]
    flows: dict[str, FlowsEquilibrium]
    net: Network = dataclasses.field(repr=False)
    op: OperatingPoint = dataclasses.field(repr=False)
    rows: Rows | None = dataclasses.field(default=None, repr=False)
    asked: Network | None = dataclasses.field(default=None, repr=False)

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation, on either side of a kink at least."""
        return self.status in ("regular", "empty") and not self.sliding and has_motion(self.net)

    @property
    def switching(self) -> bool:
        """Whether senders are at a jump of their own rule, which drives them back to it."""
        return (
            self.status == "discontinuity"
            and self.rows is not None
            and bool(np.any(self.rows.jump))
        )

    @property
    def kinked(self) -> bool:
        """Whether a marking function has a kink here, so that there are two linearisations."""
        from fluidcc.analysis.linearize import at_kink

        return at_kink(self.net, self)

    @property
    def regime(self) -> Hashable:
        """Label that is constant along a family while the linearisation is smooth."""
        from fluidcc.analysis.linearize import regime

        return regime(self)

    def received(self, k: int) -> Signal:
        """The signal that the flows of group k receive: probabilities that the acknowledgement of
        a packet brings a mark (`mark`) and that the packet is lost (`drop`), and load and delay.
        """
        flows = self.net.flows[k]
        return received(flows, tuple(self.op.signals[link] for link in flows.route))

    def linear(self, *, side: int = 0) -> Linear:
        """The linear system, see `linearize`; at a kink the one on that `side`."""
        from fluidcc.analysis.linearize import linearize

        return linearize(self.net, self, side=side)

    def to_xarray(self) -> xarray.Dataset:
        """Labelled arrays with units: per link, and per flow group and round trip (`flow`)."""
        import xarray as xr

        variables: dict[str, Any] = {}
        for name in ("queue", "queueing_delay", "average", "mark_probability", "utilization"):
            values = [getattr(v, name) for v in self.links.values()]
            variables[name] = ("link", values, attributes("links", name))
        for name in ("window", "rtt", "queueing_delay", "rate", "mark_probability"):
            values = np.concatenate([getattr(v, name) for v in self.flows.values()])
            own = f"flow_{name}" if name in variables else name
            variables[own] = ("flow", values, attributes("flows", name))
        groups = [name for name, v in self.flows.items() for _ in v.window]
        coords = labels(link=self.links) | {"group": ("flow", groups, about("group"))}
        attrs = {"status": self.status, "message": self.message}
        return xr.Dataset(variables, coords=coords, attrs=attrs)


NOT_SMOOTH = {
    "discontinuity": "the equilibrium is on a discontinuity or at a full buffer",
    "continuum": "the equilibrium is not unique",
    "none": "there is no equilibrium",
    "undetermined": "the equilibrium is undetermined",
}
"""Why there is no linearisation, by the status of the equilibrium."""


def without(eq: Equilibrium) -> str:
    """Message on why an equilibrium has no linearisation."""
    reasons = [NOT_SMOOTH[eq.status]] if eq.status in NOT_SMOOTH else []
    if eq.sliding:
        reasons.append(f"rules switch about it, at links.{', links.'.join(eq.sliding)}")
    if eq.net.closure == "population":
        reasons.append("a population has no equations of motion; stability judges its loop")
    return ", and ".join(reasons) or "a loss closure gives windows at equilibrium only"


@answers
def equilibrium(net: Network) -> Equilibrium:
    """The equilibrium of a network, to about 12 digits.

    One link has at most one equilibrium if windows do not grow with the signal, nor faster than the
    round trip, and the signal does not fall with the queue. If that fails, the shortest queue is
    found, with a message; if many values of a memory are equilibria, the message has their range.
    For several links uniqueness is not known: the search starts from empty and from long queues,
    and the message has the difference, if any.

    Returns
    -------
    Equilibrium
        By name: `links` with queue and average [packet], mark probability and utilization; `flows`
        with window [packet], rtt [s], rate [packet/s] and mark probability, each of shape (m,), a
        number for each distinct round trip.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.equilibrium(fc.load("hollot2001/slow"))  # doctest: +NORMALIZE_WHITESPACE
    Equilibrium: regular (increases and decreases balance)
    Links
    link        queue [packet]  queueing_delay [ms]  average [packet]  mark_probability  utilization
    bottleneck           194.4                51.84             194.4         0.0080727            1
    Flows
    group round trips window [packet] rtt [ms] queueing_delay [ms] rate [packet/s]  mark_probability
    tcp             1           15.74   251.84               51.84            62.5         0.0080727
    """
    fluid = as_fluid(net)
    arrays = steady(fluid)  # with mean voice calls, in double precision
    if faults := _no_populations(fluid):
        op, *_ = search(dataclasses.replace(arrays, closure="mean"))
        return _undetermined(fluid, op, "; ".join(faults))
    return conclude(net, arrays, search(arrays))


Searches = tuple[OperatingPoint, ...]
"""Operating points from empty queues and all starts of the laws."""


def search(arrays: Network) -> Searches:
    """Operating points of a fluid network in double precision."""
    starts = max(len(link.queue.initial_states(0.0)) for link in arrays.links)
    nothing = ops.zeros_like(ops.stack([link.capacity for link in arrays.links]))
    found = tuple(find_operating_point(arrays, nothing, start) for start in range(starts))
    if arrays.closure == "mean":
        return found
    return tuple(op._replace(errors=grid_errors(arrays, op)) for op in found)


def conclude(net: Network, arrays: Network, searches: Searches) -> Equilibrium:
    """The equilibrium of a network to which the searches with its `arrays` led, with its status and
    messages.
    """
    asked, noted, net = net, advice(net), as_fluid(net)
    (op, *others), notes = searches, []
    if len(net.links) > 1:
        longest = [float(min(link.buffer, 1e4)) for link in net.links]
        other = find_operating_point(arrays, np.asarray(longest))
        if not agree(op, other):
            queues = ", ".join(f"{q:.6g}" for q in np.asarray(other.queues))
            notes.append(f"not unique: a start from long queues ends at {queues} packets")
    others = [other for other in others if not agree(op, other)]
    if has_dead_zones(arrays, op):
        highest = find_operating_point(arrays, op.backlogs, highest=True)
        if not agree(op, highest):
            others += [op, highest]
            op = midway(op, highest)
    notes += [_range_message(net, k, [op, *others]) for k in range(len(net.links)) if others]
    found = _describe(net, arrays, op, [n for n in (*notes, *noted) if n], bool(others))
    return dataclasses.replace(found, asked=asked)


def _no_populations(net: Network) -> list[str]:
    """Why groups have no stationary law, if the closure needs one."""
    if net.closure != "population":
        return []
    pairs = zip(net.flow_names, map(why_no_population, net.flows), strict=True)
    return [
        f"closure 'population' does not hold for flows.{name}: {why}" for name, why in pairs if why
    ]


def _undetermined(net: Network, op: OperatingPoint, message: str) -> Equilibrium:
    if "fluidcc" not in message:
        message += "; next: `fluidcc simulate` or `packets`, which need no equilibrium"
    return Equilibrium("undetermined", message, (), *_unknown(net), net, op)


def _range_message(net: Network, k: int, rests: list[OperatingPoint]) -> str:
    """Message with the range of equilibria of link k."""
    queues = [float(op.queues[k]) for op in rests]
    signals = [float(op.signals[k].either) for op in rests]
    if max(queues) - min(queues) <= AGREE and max(signals) - min(signals) <= AGREE:
        return ""
    return (
        f"the equilibrium is not unique: links.{net.link_names[k]} at queues from "
        f"{min(queues):.6g} to {max(queues):.6g} packets and mark probabilities from "
        f"{min(signals):.6g} to {max(signals):.6g}; "
        "the one reached depends on the initial condition"
    )


def _describe(
    net: Network, arrays: Network, op: OperatingPoint, notes: list[str], many: bool
) -> Equilibrium:
    op, regimes = resolved(arrays, op)
    status = _status_of(arrays, op, regimes, many=many)
    links = {name: _link(arrays, op, k, regimes[k]) for k, name in enumerate(net.link_names)}
    flows = {name: _flows(arrays, op, i) for i, name in enumerate(net.flow_names)}
    moved, fault, rows = float(op.moved), "", None
    unknown = status == "none" or Regime.NEUTRAL in regimes
    if not unknown:
        fault, rows = unbalanced(arrays, op, regimes)
        fault = "; ".join(faults_of_sharing(net, links)) or fault
    elif moved > AGREE:  # the only check without windows for the equations of motion
        fault = f"the search does not end: links still move by {moved:.1e} a round"
    switching = [] if fault or rows is None else describe_switching(arrays, op, rows)
    status = "discontinuity" if switching else status
    faults = extremes(net) or ([fault] if fault else [])
    first = milliseconds(net)
    notes = [note for note in notes if note not in first]
    if faults:
        message = "; ".join([*first, *faults, *notes])
        return _undetermined(net, op, message)
    texts = [_link_advice(arrays, op, k, regime) for k, regime in enumerate(regimes)]
    texts += [_escape_advice(net, op, k) for k in range(len(regimes))] + switching
    if status == "regular" and not _sliding(net, regimes):
        texts += [_sampled_advice(net, k, regime) for k, regime in enumerate(regimes)]
    for i, group in enumerate(flows.values()):
        if status == "none":
            texts.append(_growth_advice(arrays, op, i))
        elif Regime.NEUTRAL not in regimes:
            texts += _window_advice(net, i, group.window)
    message = "; ".join(t for t in [*first, *texts, *notes] if t)
    if status == "none":
        links = _unknown(net)[0]
    if unknown:
        flows = _unknown(net)[1]
    return Equilibrium(status, message, _sliding(net, regimes), links, flows, net, op, rows)


def _unknown(net: Network) -> tuple[dict[str, LinkEquilibrium], dict[str, FlowsEquilibrium]]:
    """Links and flows with all values unknown."""
    sizes = {n: np.size(flows.rtt) for n, flows in zip(net.flow_names, net.flows, strict=True)}
    links = {name: LinkEquilibrium(*5 * (math.nan,)) for name in net.link_names}
    return links, {
        name: FlowsEquilibrium(*6 * (np.full(k, math.nan),)) for name, k in sizes.items()
    }


def _link(net: Network, op: OperatingPoint, k: int, regime: Regime) -> LinkEquilibrium:
    link, queue = net.links[k], float(op.queues[k])
    own = float(own_share(net, k, _loads(net, op)))
    used = min(1.0, float(op.accepted[k]) / float(link.capacity) - (1 - own))
    busy = regime in (Regime.INTERIOR, Regime.STEADY) and queue > 0
    load = float(op.signals[k].load) if link.queue.loads else None
    part, delay, average = map(float, in_its_share(link, op.laws[k], queue, own))
    return LinkEquilibrium(
        part, delay, average, float(op.signals[k].either), own if busy else used, load,
        _quench_fraction(net, k, op),
    )  # fmt: skip


def _loads(net: Network, op: OperatingPoint) -> Iterator[tuple[int, Any]]:
    """What each group sends [packet/s]."""
    for i, (flows, rate) in enumerate(zip(net.flows, op.rates, strict=True)):
        yield i, np.asarray(flows.n) * np.asarray(rate)


def _flows(net: Network, op: OperatingPoint, i: int) -> FlowsEquilibrium:
    flows = net.flows[i]
    delay = float(path_delay(net, flows, tuple(map(float, op.queues))))
    rtt = np.asarray(flows.rtt, float) + delay
    window = np.asarray(op.windows[i])
    signal = float(touched(flows, tuple(op.signals[k] for k in flows.route)))
    active = op.senders[i].active if flows.traffic.starts else np.ones_like(window)
    return FlowsEquilibrium(
        window, rtt, np.full(len(window), delay), np.asarray(op.rates[i]),
        np.full(len(window), signal), np.asarray(active),
    )  # fmt: skip


def _unbounded(net: Network, op: OperatingPoint, i: int) -> bool:
    """Whether no signal to a group of flows ends the growth of its windows."""
    cap = float(net.flows[i].window.max_window)
    return math.isinf(cap) and float(np.max(op.windows[i])) >= LARGEST_WINDOW


def _starved(op: OperatingPoint, i: int) -> bool:
    """Whether the windows of a group fall without end."""
    return float(np.min(op.windows[i])) <= _NO_WINDOW


def _status_of(net: Network, op: OperatingPoint, regimes: tuple[Regime, ...], *, many: bool) -> str:
    """The status, from the regimes of the links; `many` if the result depends on the start."""
    endless = any(_unbounded(net, op, i) or _starved(op, i) for i in range(len(net.flows)))
    if Regime.NONE in regimes or (endless and Regime.NEUTRAL not in regimes):
        return "none"
    if many or Regime.NEUTRAL in regimes or Regime.END in regimes:
        return "continuum"
    if Regime.JUMP in regimes or Regime.FULL in regimes:
        return "discontinuity"
    return "empty" if all(r == Regime.EMPTY for r in regimes) else "regular"


def _sliding(net: Network, regimes: tuple[Regime, ...]) -> tuple[str, ...]:
    """Names of the links that are held at a jump from both sides."""
    held_there = (Regime.JUMP, Regime.ADAPTED, Regime.LOADED, Regime.NEUTRAL)
    return tuple(n for n, r in zip(net.link_names, regimes, strict=True) if r in held_there)


_ADVICE = {
    Regime.JUMP: "links.{name}.queue is at a discontinuity: its mark or drop probability is "
    "{given:.3g} below {queue:.6g} packets, and above it exceeds the {needed:.3g} that balances "
    "the senders; the queue stays there, or oscillates about it if the feedback is delayed; "
    f"{FOLLOW}",
    Regime.FULL: "the buffer of links.{name} is full ({queue:.6g} packets): it drops a share of "
    "{signal.drop:.3g}, at a mark probability of {signal.mark:.3g}",
    Regime.NONE: "no equilibrium: even with every packet marked, or at the longest queue "
    "({queue:.6g} packets), links.{name} is offered more than its capacity; take fewer flows, a "
    "longer buffer, or a window law that decreases more",
    Regime.EMPTY: "the windows keep links.{name} at a utilization of {used:.3g}: its queue is "
    "empty",
    Regime.ADAPTED: "links.{name}.queue adapts its marking every {period:.3g} s, up on one side of "
    "this queue and down on the other, so that it keeps stepping about this equilibrium",
    Regime.LOADED: "links.{name} stays at a load factor of 1: the senders increase below it and "
    "decrease from there; the windows are those whose increases and decreases balance{cycle}",
    Regime.NEUTRAL: "every window vector that fills links.{name} is an equilibrium: at a load "
    "factor of 1 the senders neither increase nor decrease",
}


def _link_advice(net: Network, op: OperatingPoint, k: int, regime: Regime) -> str:
    """Message on link k, empty if there is nothing to note."""
    alone, law, signal, cycle = len(net.links) == 1, net.links[k].queue, op.emitted[k].signal, ""
    if regime not in _ADVICE or (regime == Regime.EMPTY and not alone):
        return ""
    turn = sawtooth(net, op) if regime == Regime.LOADED and alone else None
    if turn is not None:
        cycle = (
            f"; if all senders decrease once, the load factor is {turn.low:.4g}, and 1 again after "
            f"{turn.time:.4g} s"
        )
    return _ADVICE[regime].format(
        name=net.link_names[k], queue=float(op.queues[k]), needed=float(signal.either),
        given=float(op.signals_below[k].either), signal=Signal(*map(float, signal)), cycle=cycle,
        used=float(op.accepted[k]) / float(net.links[k].capacity),
        period=float(law.period() or 0.0),
    )  # fmt: skip


class Sawtooth(NamedTuple):
    """One common decrease from full load and the way back."""

    low: float  # share of the load that is left
    time: float  # s until full load is back


@compiled
def _load_changes(net: Network, op: OperatingPoint) -> tuple[Num, Num, Num]:
    """Total rate of the flows, its change by one decrease, and its growth per second."""
    total, fall, growth = 0.0, 0.0, 0.0
    for flows, s, rate in zip(net.flows, op.senders, op.rates, strict=True):
        rtt, law = round_trip(net, flows, tuple(op.queues)), flows.window
        share = flows.n / rtt
        change = sender_change(
            flows, s, growth=rate, acks=rate, carried=rate,
            signal=per_flow(Signal(load=_BELOW), rtt), rtt=rtt,
        )  # fmt: skip
        tick = law.on_tick(s.law, Ack(1.0, 0.0, rtt, 1.0))
        total = total + ops.total(flows.n * rate)
        fall = fall + ops.total(share * law.window(tick))
        growth = growth + ops.total(share * law.window(change.law))
    return total, fall, growth


def sawtooth(net: Network, op: OperatingPoint) -> Sawtooth | None:
    """The sawtooth at full load of one link; None if no window decreases at once.

    For BMCC (Qazi et al., 2010, eqs 4 and 5) the time is gamma C (1 - beta) t_p^2/n.
    """
    total, fall, growth = (float(v) for v in _load_changes(net, op))
    if fall >= 0 or growth <= 0:
        return None
    return Sawtooth(1 + fall / total, -fall / growth)


def _escape_advice(net: Network, op: OperatingPoint, k: int) -> str:
    """Message if link k is overloaded at longer queues than the one found."""
    backlog = float(op.escapes[k])
    if not math.isfinite(backlog):
        return ""
    return (
        f"not reached from every start: at a queue of {backlog:.3g} packets "
        f"links.{net.link_names[k]} is offered more than its capacity again, and longer queues do "
        "not come back"
    )


def _sampled_advice(net: Network, k: int, regime: Regime) -> str:
    """Message on the linearisation of a law with ticks."""
    law, name = net.links[k].queue, net.link_names[k]
    between = law.period()
    if between is None:
        return ""
    if regime != Regime.STEADY and not law.loads:
        return f"links.{name}.queue adapts no more: its state is at the end of its range"
    return (
        f"links.{name}.queue acts every {float(between):.3g} s: roots and margins "
        "are those of its mean rate of change"
    )


def _growth_advice(net: Network, op: OperatingPoint, i: int) -> str:
    """Message on why the windows of a group have no equilibrium."""
    flows = net.flows[i]
    share = float(touched(flows, tuple(op.signals[k] for k in flows.route)))
    if _starved(op, i):
        return (
            f"no equilibrium: the window of flows.{net.flow_names[i]} falls without end, with "
            f"{share:.3g} of its packets marked or lost; trajectories hold it at min_window = "
            f"{float(flows.window.min_window):g}"
        )
    if not _unbounded(net, op, i):
        return ""
    queues = " and ".join(
        f"{float(op.queues[k]):.6g} in links.{net.link_names[k]}" for k in flows.route
    )
    return (
        f"no equilibrium: the window of flows.{net.flow_names[i]} still grows at "
        f"{LARGEST_WINDOW:.3g} packets, with {share:.3g} of its packets marked or lost and a queue "
        f"of {queues}; give max_window, a finite buffer, or a law or feedback that reduces it"
    )


def _window_advice(net: Network, i: int, window: np.ndarray) -> list[str]:
    """Messages on the equilibrium windows (m,) of a group."""
    flows, name = net.flows[i], net.flow_names[i]
    out = []
    low, floor = float(np.min(window)), float(flows.window.min_window)
    if low <= floor and floor > 1:
        out.append(f"flows.{name}: the window is at its lower bound, min_window = {floor:g}")
    if low < 1:
        out.append(f"flows.{name}: a window of {low:.3g} packets, below the least of real senders")
    return out


def _quench_fraction(net: Network, k: int, op: OperatingPoint) -> float | None:
    """Quenches as a share of all packets on the way back from link k; None without quenches."""
    if not any(f.feedback.quench and k in f.route for f in net.flows):
        return None
    signal: Any = op.emitted[k].signal
    quenches = packets = 0.0
    for flows, rate in zip(net.flows, op.rates, strict=True):
        if k in flows.route:
            sent, own = np.asarray(flows.n) * np.asarray(rate), interpret_signal(flows, signal, k)
            quenches += float(np.sum(sent * own.either)) if flows.feedback.quench else 0.0
            packets += float(np.sum(sent * (1 - own.drop)))
    return quenches / (quenches + packets) if packets else None


_TRIALS = 300  # of each rule
_MEMORIES = (0.0, 1e-3, 0.03, 0.5, 1.0, 10.0, 1e3, 1e6)
_WINDOW, _CAPACITY, _BUFFER = 10.0, 1e3, 100.0  # packet, packet/s, packet
_COUNTS = [(1.0, 0.0), (0.0, 0.01), (1.0, 0.01)]  # packets, s
_ACKS = [
    Ack(
        count, elapsed, rtt, load, marked, delay=late * rtt, one_way=late * rtt,
        propagation=(1 - late) * rtt, least_rtt=(1 - late) * rtt, greatest_rtt=rtt, rate=_CAPACITY,
    )
    for (count, elapsed), rtt, late, load, marked in itertools.product(
        _COUNTS, (1e-3, 0.1, 2.0), (0.0, 0.5), (0.0, 0.9, 1.5), (0.0, 1.0)
    )
]  # fmt: skip
_ARRIVALS = [
    Arrival(count, elapsed, queue, _CAPACITY, buffer=_BUFFER, spacing=10 / _CAPACITY)
    for (count, elapsed), queue in itertools.product(_COUNTS, (0.0, 1.0, 30.0, 1e4))
]


def extremes(net: Network) -> list[str]:
    """Messages on memories of a network that hold extremes, one line each.

    Memories that only fall or only rise have no equilibrium: the least round trip ever seen, for
    example, depends on the whole past and not on the present. Their rules are evaluated in plain
    numbers, over a grid of memories and events.
    """
    senders = [
        (f"flows.{n}.window", f.window) for n, f in zip(net.flow_names, net.flows, strict=True)
    ]
    routers = [
        (f"links.{n}.queue", k.queue) for n, k in zip(net.link_names, net.links, strict=True)
    ]
    return [
        f"{where} remembers the {kind} that it ever saw ({symbol}), which the present does not "
        "determine: the equilibrium is unknown"
        for where, law in [*senders, *routers]
        for symbol, kind in _default_extremes(law)
    ]


def _default_extremes(law: Any) -> list[tuple[str, str]]:
    """Result of `_find_extremes` for the default parameters of a law, its own if it has none."""
    usual = {
        f.name: f.default
        for f in dataclasses.fields(law)
        if f.default is not dataclasses.MISSING and not f.metadata.get("static")
    }
    return _find_extremes(dataclasses.replace(law, **usual))


@functools.lru_cache(256)
def _find_extremes(law: Any) -> list[tuple[str, str]]:
    """Symbols of the memories of a law that hold an extreme, and whether the least or largest."""
    if isinstance(law, AbstractWindowLaw):
        start, events = law.start(_WINDOW), _ACKS
        functions = [law.on_ack, law.observe, law.on_mark, law.on_loss, law.on_tick]
        other = law.with_window(start, -1.0)
        own = [a == b for a, b in zip(*map(leaves, (start, other)), strict=True)]
    else:
        start, events = law.start(0.0), _ARRIVALS
        functions = [law.move_memory, law.on_signal, law.on_tick]
        own = [True] * len(leaves(start))
    if not any(own):
        return []
    changes = _changes(start, functions, events)
    falls, rises = np.any(changes < 0, axis=0), np.any(changes > 0, axis=0)
    return [
        (symbol, "least" if fall else "largest")
        for symbol, fall, rise, memory in zip(law.symbols, falls, rises, own, strict=False)
        if memory and fall != rise
    ]


def _changes(start: Any, rules: list[Callable], events: list) -> np.ndarray:
    """Changes (., memories) by the rules, from many memories and at many events."""
    first = leaves(start)
    draw, out = np.random.default_rng(0), [[0.0] * len(first)]
    for rule, _ in itertools.product(rules, range(_TRIALS)):
        values = [float(v) for v in draw.choice(_MEMORIES, len(first))]
        event = events[draw.integers(len(events))]
        try:
            change = rule(unflatten(start, values), event)
            out.append([float(v) for v in leaves(change)])
        except (ArithmeticError, ValueError):  # memories that this rule never meets
            continue
    return np.asarray(out)
