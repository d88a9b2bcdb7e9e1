"""Fluctuations of queues and windows around an equilibrium, from the marks and losses of packets.

Each signal that a sender reacts to changes its flight for some round trips. These responses add up
over many flows, and the loop through the queue and its law filters their sum: linear noise, exact
to first order in one over the number of flows. The queue is the sum of the flights less what the
paths hold. Senders answer signals by the stationary law of their windows, so that the loop is that
of the population, not of its mean.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.bisection import bisect
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.population import (
    Population,
    Reaction,
    listens_at_once,
    moments,
    needs_round_trip,
    population,
)
from fluidcc.analysis.steady_laws import offered_rate
from fluidcc.laws.law import AbstractFeedback, Arrival, Signal
from fluidcc.laws.marking import Plain
from fluidcc.model.delays import explicit_delays, round_trip
from fluidcc.model.fluid import as_fluid, open_load, steady
from fluidcc.model.rates import emit_signal, marks_seen, queue_law_rate, received
from fluidcc.ops import Num
from fluidcc.programs import flatten, jacobian, map_tree, ravel
from fluidcc.quantities import attributes
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Flows, Link, Network

if TYPE_CHECKING:
    import xarray

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Shares of the time for which quantiles of the queue are given."""

_LEAST_DISTANCE = 0.15  # of the loop from -1; nearer, fluctuations are not small
_LEAST_WINDOW = 2.0  # packets; in smaller ones a sender waits for its timer
_SIGMAS = 2.0  # between a mean queue and the end of its range
_LAST_GAP = 1e-9  # share of the gaps between signals that are longer than counted
_RAREST = 1e-5  # probability of a signal; gaps between rarer ones are not told apart
_GAPS = 4096  # lengths of gaps that are told apart
_SLOW = 1e-4  # rad per gap
_NUDGE = 0.03  # of a probability, for the slope of the mean flight
_ASIDE, _JUMP = 1e-9, 1e-6  # of an average, and the change of a signal there that is a jump
_ALIKE = 0.1  # difference of sizes, at most
_SHORTEST = 1e-9  # round trips; keeps ramps finite


def _frequencies(low: float, high: float) -> Array:
    """Frequencies [rad per round trip] that resolve what happens within some round trips."""
    return np.unique(np.concatenate([
        np.geomspace(low, 0.2, 16), np.linspace(0.2, 12.0, 360), np.geomspace(12.0, high, 60)
    ]))  # fmt: skip


class Response(NamedTuple):
    """Responses of one flow at frequencies (W,) [rad per round trip].

    `by_mark` and `by_loss` are those of its mean flight to the probabilities of marks and losses;
    `power` is the spectral density of its flight under independent signals [packet^2 x round
    trip], and `mean` the sum over its reactions, per round trip, of what each does to the flight.
    """

    by_mark: Array
    by_loss: Array
    power: Array
    mean: Array


def _until_listening(z: Array, kind: Reaction, flight: float) -> Array:
    """Transform (M, W) of the flight beyond its mean from a reaction until the sender listens; if
    it listens at once, of the flight beyond that of the window left.
    """
    silence, waits = np.maximum(kind.silence, _SHORTEST), kind.dwell > 0
    before = np.where(waits, kind.before - flight, kind.before - kind.after)
    after = np.where(waits, kind.after - flight, 0.0)
    fall, end = np.exp(-z * silence), np.exp(-z * np.maximum(kind.dwell, silence))
    ramp = (1 - fall * (1 + z * silence)) / (z**2 * silence)
    return before * (1 - fall) / z + (after - before) * ramp + after * (fall - end) / z


def _reactions(found: Population, omega: Array) -> tuple[list[Array], list[Array]]:
    """Of marks first, then of losses of each kind: reactions of a flow per round trip at each
    window (M, 1), and the transform (M, W) of what each does to its flight.
    """
    w, flights, flight = found.windows, found.flights, found.flight[0]
    z = 1j * omega[None]
    kinds = [map_tree(lambda v: np.broadcast_to(v, w.shape), kind) for kind in found.kinds]
    rates = [found.ack_ratio[0] * kind.rate for kind in kinds]
    crossing = found.crossing / found.ack_ratio[0]
    places = [found.place(kind.landing) for kind in kinds]
    below = [np.minimum(place.astype(int), len(w) - 2) for place in places]
    above = [place - k for place, k in zip(places, below, strict=True)]
    spent = [_until_listening(z, kind, flight) for kind in kinds]
    late = [np.exp(-z * kind.dwell) for kind in kinds]
    # From a point on: the flight until the next point, or what a reaction brings. Reactions lead
    # down, so that each point follows from those below, up to the value of the lowest, which the
    # top decides: there no window grows.
    leaving = z + sum(rates)
    stay = np.concatenate([np.exp(-leaving[:-1] * crossing), 0.0 * z])
    held = (1 - stay) / leaving
    given = held * (flights - flight + sum(r * s for r, s in zip(rates, spent, strict=True)))
    back = [held * r * delay for r, delay in zip(rates, late, strict=True)]
    value = np.zeros((len(w) + 1, 2, len(omega)), complex)  # of 1 at the lowest; of what is given
    value[0, 0] = 1.0
    left = value[0]
    for i in range(len(w)):
        left = value[i].copy()
        for b, k, share in zip(back, below, above, strict=True):
            left -= b[i] * ((1 - share[i]) * value[k[i, 0]] + share[i] * value[k[i, 0] + 1])
        left[1] -= given[i]
        value[i + 1] = left / stay[i] if i < len(w) - 1 else 0.0
    whole = value[:-1, 1] - value[:-1, 0] * left[1] / left[0]
    middle = np.concatenate([(whole[:-1] + whole[1:]) / 2, whole[-1:]])
    changes = [
        s + delay * ((1 - share) * whole[k[:, 0]] + share * whole[k[:, 0] + 1]) - middle
        for s, delay, k, share in zip(spent, late, below, above, strict=True)
    ]
    return [found.time * r for r in rates], changes


def respond(flows: Flows, signal: Signal, trip: float, omega: Array) -> tuple[Population, Response]:
    """The stationary law of a flow under signals at a round trip [s], and its responses at
    frequencies [rad per round trip].

    At frequency 0 the mean flight answers as its derivative says. Reactions alone give somewhat
    less: signals on ACKs that come in bunches after a reaction, and the repairs that a loss more
    brings, are in the stationary law by their means.
    """

    def law(**changed: float) -> Population:
        one = signal._replace(**changed)
        numbers = Signal(*(np.reshape(np.asarray(v, float), (1,)) for v in one))
        return population(flows, numbers, np.array([trip]))

    found = law()
    met, changes = _reactions(found, np.append(omega[:1] * 1e-3, omega))
    means = [(m * c).sum(axis=0) for m, c in zip(met, changes, strict=True)]
    powers = [(m * abs(c) ** 2).sum(axis=0) for m, c in zip(met, changes, strict=True)]
    seen = {"mark": float(marks_seen(flows, signal)), "drop": float(signal.drop)}
    gains = []
    for (name, probability), own in zip(seen.items(), (means[:1], means[1:]), strict=True):
        if probability <= 0:
            gains.append(0.0 * means[0])
            continue
        low, high = (
            float(law(**{name: (1 + side * _NUDGE) * float(getattr(signal, name))}).flight[0])
            for side in (-1, 1)
        )
        mean: Any = sum(own)
        ratio = (high - low) / (2 * _NUDGE) / float(mean[0].real)
        gains.append(ratio * mean / probability)
        if name == "mark" and listens_at_once(flows):
            powers[0], means[0] = ratio * powers[0], ratio * means[0]
    return found, Response(*(v[1:] for v in (*gains, sum(powers), sum(means))))


def dispersion(link: Link, x: Any, queue: Num, omega: Array) -> Array:
    """Index of dispersion (W,) of the signals of a link at frequencies [rad/s]: near 1 if they are
    independent, 0 if they come evenly.

    Gaps between signals are independent of each other: a renewal process. Cox and Lewis (1966),
    section 4.5.
    """
    seen = Arrival(1.0, 1 / link.capacity, queue, link.capacity)
    first = float(link.queue.gap_probability(x, seen, 1.0))
    rate = max(float(link.queue.signal(x, seen).either), _RAREST)
    count = np.arange(1.0, 2.0 + math.ceil(-math.log(_LAST_GAP) / rate))
    chosen = np.broadcast_to(link.queue.gap_probability(x, seen, count), count.shape)
    if np.all(chosen == first):
        return np.full(len(omega), 1 - first)
    weight = chosen * np.append(1.0, np.cumprod(1 - chosen)[:-1])
    last = int(np.searchsorted(np.cumsum(weight), 1 - _LAST_GAP)) + 1
    weight, count = weight[:last] / weight[:last].sum(), count[:last]
    starts = np.unique(np.linspace(0, last, _GAPS + 1).astype(int)[:-1])
    mass, mean = (np.add.reduceat(v, starts) for v in (weight, weight * count))
    some = mass > 0
    mass, gap = mass[some], mean[some] / mass[some]
    average = float(mass @ gap)
    turns = np.exp(-1j * np.outer(omega / link.capacity, gap))
    phi = turns @ mass
    slow = omega * average < _SLOW * link.capacity  # differences of phi and 1 have no digits there
    spread = float(mass @ (gap - average) ** 2) / average**2
    return np.where(slow, spread, (1 - abs(phi) ** 2) / np.maximum(abs(1 - phi) ** 2, 1e-300))


def _queue_response(
    link: Link, x: Any, queue: Num, lost: Num, flows: Flows, omega: Array
) -> tuple[Array, Array, Array]:
    """Responses (W,) to the queue: of the marks and of the losses that flows receive [1/packet],
    and of the average that the law keeps.
    """
    state, shape = ravel(x)
    n, offered = len(state), offered_rate(link, queue, lost)

    def present(v: Num) -> Num:
        x, q = shape(v[:n]), v[n]
        rate = queue_law_rate(link, x, q, offered, ticks=True)
        seen = received(flows, (emit_signal(link, x, q, offered),))
        average = link.queue.average(x, q) + 0.0 * q
        return ops.concatenate([flatten(rate), flatten([seen.mark, seen.drop, average])])

    slopes = jacobian(present, np.append(state, queue))
    A, b, C, d = slopes[:n, :n], slopes[:n, n], slopes[n:, :n], slopes[n:, n]
    z = 1j * omega[:, None, None]
    driven = np.broadcast_to(b[:, None], (len(omega), n, 1))
    moves = np.linalg.solve(z * np.eye(n) - A, driven)
    mark, drop, average = (C @ moves)[..., 0].T + d[:, None]
    return mark, drop, average


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over time of a queue or a window [packet].

    `quantiles` has, for shares of the time, the value that it is not above; empty if not known.
    """

    mean: float
    std: float
    quantiles: Mapping[float, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class LinkFluctuations:
    """One link: its queue, the average that its law keeps, the time in the queue [s], and the share
    of the time in which it is idle.
    """

    queue: Spread
    average: Spread
    delay: Spread
    idle: float


@dataclasses.dataclass(frozen=True)
class FlowsFluctuations:
    """One group: window of one flow [packet], and its rate [packet/s]."""

    window: Spread
    rate: Spread


@dataclasses.dataclass(frozen=True, repr=False)
class Fluctuations(Result):
    """Fluctuations of a network around its equilibrium.

    `status` is `regular`, or `refused` with the reason and its size in `message`; then numbers of
    links and flows are NaN. `margin` is the least distance of the loop from -1, and `frequency`
    that of the largest fluctuations [rad/s]. `omega` [rad/s] and `density` [packet^2 s] are the
    spectrum of the queue; its integral over omega / pi and the bursts within a round trip are the
    variance.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.fluctuations(fc.load("hollot2001/pi"))
    >>> found.status, round(found.links["bottleneck"].queue.std)
    ('regular', 37)
    """

    _view = "equilibria.FluctuationsView"

    status: str
    message: str
    margin: float
    frequency: float
    links: dict[str, LinkFluctuations]
    flows: dict[str, FlowsFluctuations]
    omega: Array
    density: Array
    equilibrium: Equilibrium = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, without the spectrum."""
        names = ("status", "message", "margin", "frequency", "links", "flows")
        return {name: plain(getattr(self, name)) for name in names}

    def spectrum(self) -> xarray.Dataset:
        """The spectral density of the queue along the frequency `omega`."""
        import xarray as xr

        density = ("omega", self.density, attributes("links", "queue_density"))
        omega = ("omega", self.omega, {"units": "rad/s", "long_name": "frequency"})
        return xr.Dataset({"queue_density": density}, {"omega": omega})

    def to_dataset(self) -> xarray.Dataset:
        """Numbers of links and groups, with quantiles by `share` of the time."""
        import xarray as xr

        data: dict[str, Any] = {}

        def add(dimension: str, kind: str, name: str, values: list) -> None:
            data[name] = (dimension, values, attributes(kind, name))

        links, groups = list(self.links.values()), list(self.flows.values())
        for name in ("queue", "average", "delay"):
            own = [getattr(link, name) for link in links]
            add("link", "links", name, [v.mean for v in own])
            if name != "delay":
                add("link", "links", f"{name}_std", [v.std for v in own])
            if name != "average":
                rows = [[v.quantiles.get(p, math.nan) for p in SHARES] for v in own]
                wanted = attributes("links", f"{name}_quantile")
                data[f"{name}_quantile"] = (("link", "share"), rows, wanted)
        add("link", "links", "idle", [link.idle for link in links])
        for name in ("window", "rate"):
            own = [getattr(group, name) for group in groups]
            add("group", "flows", name, [v.mean for v in own])
            add("group", "flows", f"{name}_std", [v.std for v in own])
        coords = {
            "share": list(SHARES), "link": list(self.links), "group": list(self.flows),
        }  # fmt: skip
        names = ("status", "message", "margin", "frequency")
        return xr.Dataset(data, coords, {name: getattr(self, name) for name in names})


class _Refused(Exception):
    """Why fluctuations are not known, and the margin, if the loop is known."""

    def __init__(self, why: str, margin: float = math.nan) -> None:
        super().__init__(why)
        self.margin = margin


def fluctuations(net: Network) -> Fluctuations:
    """Fluctuations of queues and windows around the equilibrium of the population.

    One link may have a queue, and signals are marks or losses of flows that last. Refused, with the
    reason and its size, if the loop is unstable or near to that, if the queue often empties or
    fills, and for windows of next to one packet.

    Examples
    --------
    >>> import fluidcc as fc
    >>> queue = fc.fluctuations(fc.load("hollot2001/pi")).links["bottleneck"].queue
    >>> [round(queue.quantiles[share]) for share in (0.05, 0.5, 0.95)]
    [139, 200, 261]
    """
    fluid = dataclasses.replace(as_fluid(net), closure="population")
    eq = equilibrium(fluid)
    try:
        k = _only_queue(eq)
        _check_loads(net, eq.net.link_names[k])
        return _describe(eq, k, _loop(steady(fluid), eq, k))
    except _Refused as refusal:
        return _refuse(eq, str(refusal), refusal.margin)


def _only_queue(eq: Equilibrium) -> int:
    """The link with the queue; raises _Refused if there is none, or another equilibrium."""
    if eq.status != "regular":
        why = f": {eq.message}" if eq.message else ""
        raise _Refused(f"the equilibrium is {eq.status}{why}")
    for name, group in eq.flows.items():
        if float(np.min(group.window)) < _LEAST_WINDOW:
            raise _Refused(
                f"flows.{name}: windows of {np.min(group.window):.3g} packets; timers decide below "
                f"{_LEAST_WINDOW:g}"
            )
    busy = [k for k, backlog in enumerate(eq.op.backlogs) if float(backlog) > 0]
    if len(busy) != 1:
        names = ", ".join(f"links.{eq.net.link_names[k]}" for k in busy) or "none"
        raise _Refused(f"fluctuations are known for one link with a queue, here: {names}")
    return busy[0]


def _jumps(link: Link, average: float, reach: float) -> Iterator[float]:
    """Averages within reach at which the signal of a law jumps [packet]."""
    law = link.queue
    if not law.is_discontinuous():
        return

    def distances(v: float) -> tuple[Num, ...]:
        return law.breakpoints(law.start(v), v)

    def emitted(v: float) -> float:
        return float(emit_signal(link, law.start(v), v, link.capacity).either)

    low, high = max(average - reach, 0.0), average + reach
    for k, (a, b) in enumerate(zip(distances(low), distances(high), strict=True)):
        if a * b < 0:
            below, above = bisect(lambda v, k=k, a=a: np.sign(a) * distances(v)[k], low, high)
            if abs(emitted(above * (1 + _ASIDE)) - emitted(below * (1 - _ASIDE))) > _JUMP:
                yield float(below)


def _check_loads(net: Network, name: str) -> None:
    """Raise _Refused if files come to a link by themselves, or voice that its queue counts as if it
    came in packets of the flows.
    """
    k = net.link_names.index(name)
    voice, size = net.links[k].voice, float(net.links[k].packet_size)
    if voice is not None and voice.discipline == "fifo" and not net.links[k].queue.by_bytes:
        frame = float(voice.frame_bytes())
        if abs(frame / size - 1) > _ALIKE:
            raise _Refused(
                f"links.{name}: packets of voice, {frame:.3g} B, count in the queue as much as "
                f"those of flows, {size:.4g} B"
            )
    loads = [open_load(flows) for flows in net.flows if k in flows.route]
    load = sum(float(own) for own in loads if own is not None)
    if load > 0:
        raise _Refused(
            f"{load / float(net.links[k].capacity):.0%} of links.{name} is files that come by "
            "themselves, whose own fluctuations are not known"
        )


class _Clock(NamedTuple):
    """How a queue answers flights and loads at frequencies [rad/s], as what flows send follows what
    leaves the queue, a round trip later.

    A `share` of what leaves is traffic without windows; `trip` is the mean round trip [s].
    """

    share: float
    trip: float

    def by_flight(self, omega: Array, trip: float) -> Array:
        """Answer to the flight of a flow with this round trip [s]."""
        return self.trip / trip / (1 - self.share * np.exp(-1j * omega * self.trip))

    def by_load(self, omega: Array, passed: float) -> Array:
        """Answer to a load without windows, until the flows have given way [s]; in another queue at
        the same link it has `passed` a delay [s] of this one.
        """
        z = 1j * omega
        mixed = self.share * np.exp(-z * self.trip)
        given = (1 - self.share) * np.exp(-z * (self.trip - passed))
        return (1 - mixed - given) / (z * (1 - mixed))


def _of_others(link: Link, clock: _Clock, wait: float, omega: Array) -> Array:
    """Spectrum of a queue (W,) [packet^2 s] by voice and Poisson traffic; flows wait in it [s]."""
    square = 2.0 if link.cross_sizes == "exponential" else 1.0  # of a size, mean
    power = square * float(link.cross) * abs(clock.by_load(omega, 0.0)) ** 2
    if link.voice is not None:
        passed = 0.0 if link.voice.discipline == "fifo" else wait
        calls = link.voice.spectrum(omega, float(link.packet_size))
        power = power + calls * abs(clock.by_load(omega, passed)) ** 2
    return power


def _bursts(rates: Array, trips: Array) -> float:
    """Variance of a queue within a round trip [packet^2], from flows with these rates in all
    [packet/s] and round trips [s].

    Packets that leave belong to each flow at random. How many of those that left within a time are
    still on their way is then binomial. Of one round trip all are back at the same time.
    """
    order = np.argsort(trips)
    on_way = rates[order][::-1].cumsum()[::-1] / rates.sum()  # beyond a time, of all
    spans = np.diff(trips[order])
    return float(rates.sum() * (on_way[1:] * (1 - on_way[1:]) * spans).sum())


class _Loop(NamedTuple):
    """Spectra (W,) of a loop at frequencies [rad/s]: that of the queue [packet^2 s], the distance
    of the loop from -1 (complex), and the response of the average to the queue; the variance of
    the queue within a round trip [packet^2]; and the stationary law of each group at each of its
    round trips.
    """

    omega: Array
    density: Array
    distance: Array
    average: Array
    bursts: float
    laws: list[list[Population]]


def _loop(net: Network, eq: Equilibrium, k: int) -> _Loop:
    op, link = eq.op, net.links[k]
    queues, capacity = tuple(op.queues), float(link.capacity)
    trips = [np.ravel(round_trip(net, flows, queues)) for flows in net.flows]
    shortest, longest = min(t.min() for t in trips), max(t.max() for t in trips)
    per_trip = _frequencies(1e-3, 100.0)
    omega = np.unique(np.concatenate([per_trip / longest, per_trip / shortest]))
    numbers = [np.ravel(flows.n) for flows in net.flows]
    carried = np.concatenate([
        np.broadcast_to(n * np.ravel(rate), trip.shape)
        for n, rate, trip in zip(numbers, op.rates, trips, strict=True)
    ])  # fmt: skip
    share = float(link.cross) / capacity
    clock = _Clock(share, (1 - share) * capacity / float(carried @ (1 / np.concatenate(trips))))
    power = _of_others(eq.net.links[k], clock, op.queues[k] / capacity, omega)
    distance, mean = np.ones(len(omega), complex), 0.0j * omega
    laws, average = [], 0.0 * omega
    for name, flows, n, trip in zip(net.flow_names, net.flows, numbers, trips, strict=True):
        signal = received(flows, tuple(op.signals[j] for j in flows.route))
        mark, drop, average = _queue_response(
            link, op.laws[k], op.queues[k], op.lost[k], flows, omega
        )
        if k not in flows.route or not max(marks_seen(flows, signal), signal.drop) > 0:
            raise _Refused(f"flows.{name} receives no signal from links.{net.link_names[k]}")
        if type(flows.feedback).flight_size is not AbstractFeedback.flight_size:
            raise _Refused(f"flows.{name}: flights that follow the marks of ACKs are not known")
        found = _responses(flows, signal, trip, omega)
        laws.append([law for law, _ in found])
        path = explicit_delays(net, flows, queues).trips[flows.route.index(k)]
        ages = np.broadcast_to(np.ravel(flows.feedback.age(path)), trip.shape)
        for number, t, age, (_, own) in zip(n, trip, ages, found, strict=True):
            weight, late = clock.by_flight(omega, t), np.exp(-1j * omega * age)
            power += number * abs(weight) ** 2 * t * own.power
            distance -= number * weight * (own.by_mark * mark + own.by_loss * drop) * late
            mean += number * weight * own.mean * late
    signals = float(op.signals[k].either) * capacity
    if all(isinstance(flows.marking, Plain) for flows in net.flows):
        even = 1 - dispersion(link, op.laws[k], op.queues[k], omega)
        power = np.maximum(power - even * abs(mean) ** 2 / signals, 0.0)
    bursts = _bursts(carried, np.concatenate(trips))
    return _Loop(omega, power / abs(distance) ** 2, distance, average, bursts, laws)


def _responses(
    flows: Flows, signal: Signal, trips: Array, omega: Array
) -> list[tuple[Population, Response]]:
    """The stationary law of a group and its responses at each of its round trips [s]."""
    if len(trips) == 1 or needs_round_trip(flows, float(signal.drop)):
        return [respond(flows, signal, float(t), omega * t) for t in trips]
    at = _frequencies(omega[0] * trips.min(), omega[-1] * trips.max())
    law, found = respond(flows, signal, float(trips[0]), at)
    return [(law, Response(*(np.interp(omega * t, at, v) for v in found))) for t in trips]


def _describe(eq: Equilibrium, k: int, loop: _Loop) -> Fluctuations:
    name, link = eq.net.link_names[k], eq.net.links[k]
    distance, capacity = abs(loop.distance), float(link.capacity)
    margin = float(distance.min())
    at = float(loop.omega[int(np.argmin(distance))])
    turned = float(np.unwrap(np.angle(loop.distance))[-1])
    if abs(turned) > 1:
        raise _Refused(
            f"the loop is unstable, most of all near {at:.3g} rad/s: windows and queues oscillate",
            margin,
        )
    if margin < _LEAST_DISTANCE:
        raise _Refused(
            f"the loop comes as near as {margin:.2g} to -1, at {at:.3g} rad/s: fluctuations are "
            f"not small (at least {_LEAST_DISTANCE:g})",
            margin,
        )
    variance = _integral(loop.omega, loop.density) + loop.bursts
    mean, std = eq.links[name].queue, math.sqrt(variance)
    groups = {
        group: _window(flows.n, laws, np.ravel(eq.flows[group].rtt))
        for group, flows, laws in zip(eq.net.flow_names, eq.net.flows, loop.laws, strict=True)
    }
    for end, what in ((0.0, "empties"), (float(link.buffer), "fills")):
        if abs(mean - end) < _SIGMAS * std:
            raise _Refused(
                f"links.{name}: a queue of {mean:.4g} +- {std:.3g} packets often {what}", margin
            )
    queue, mean_average = _normal(mean, std), eq.links[name].average
    average = math.sqrt(_integral(loop.omega, loop.density * abs(loop.average) ** 2))
    for jump in _jumps(link, mean_average, _SIGMAS * average):
        raise _Refused(
            f"links.{name}: an average of {mean_average:.4g} +- {average:.3g} packets often passes "
            f"the jump of the signal at {jump:.4g}",
            margin,
        )
    links = {
        name: LinkFluctuations(
            queue=queue,
            average=_normal(mean_average, average),
            delay=_normal(mean / capacity, std / capacity),
            idle=statistics.NormalDist().cdf(-mean / std) if std > 0 else 0.0,
        )
    }
    peak = float(loop.omega[int(np.argmax(loop.density))])
    return Fluctuations(
        "regular", "", margin, peak, links, groups, loop.omega, loop.density, eq
    )  # fmt: skip


def _refuse(eq: Equilibrium, why: str, margin: float) -> Fluctuations:
    unknown = Spread(math.nan, math.nan)
    links = {name: LinkFluctuations(unknown, unknown, unknown, math.nan) for name in eq.links}
    groups = {name: FlowsFluctuations(unknown, unknown) for name in eq.flows}
    none = np.zeros(0)
    return Fluctuations("refused", why, margin, math.nan, links, groups, none, none, eq)


def _integral(omega: Array, density: Array) -> float:
    """The variance of a spectrum, flat below its first frequency."""
    return float(np.trapezoid(density, omega) + density[0] * omega[0]) / math.pi


def _normal(mean: float, std: float) -> Spread:
    """A queue, or another number that is not below 0, whose values are normal."""
    law = statistics.NormalDist()
    return Spread(mean, std, {p: max(mean + std * law.inv_cdf(p), 0.0) for p in SHARES})


def _window(n: Array, laws: list[Population], trips: Array) -> FlowsFluctuations:
    """Window and rate of one flow, the means over a group with round trips [s]."""
    each = [moments(law) for law in laws]

    def over_flows(values: Any) -> float:
        return float(mean_over_flows(n, np.array(values)))

    window, spread = (over_flows([getattr(m, k) for m in each]) for k in ("window", "window_std"))
    rate, varies = (
        over_flows([getattr(m, k) / t for m, t in zip(each, trips, strict=True)])
        for k in ("flight", "flight_std")
    )
    return FlowsFluctuations(Spread(window, spread), Spread(rate, varies))
