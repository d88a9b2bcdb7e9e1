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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.bisection import bisect
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.file_noise import spectrum_of_files
from fluidcc.analysis.flow_response import Answering
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import Measure, mean_over_flows
from fluidcc.analysis.population import moments
from fluidcc.analysis.population_loop import (
    Member,
    NoLoop,
    PopulationLoop,
    QueueAnswer,
    distance_from_critical,
    find_loop,
)
from fluidcc.analysis.short_queues import packets_at
from fluidcc.laws.law import queueing_delay
from fluidcc.laws.marking import Plain
from fluidcc.model.rates import emit_signal
from fluidcc.ops import Num
from fluidcc.programs import flatten
from fluidcc.progress import counted, part, report, reporting
from fluidcc.quantities import SHARES, attributes, labels
from fluidcc.result import Result
from fluidcc.scenario.network import Link, Network

if TYPE_CHECKING:
    import xarray

_LEAST_DISTANCE = 0.15  # of the loop from -1; nearer, fluctuations are not small
_SIGMAS = 2.0  # between a mean queue and the end of its range
_LAST_GAP = 1e-9  # share of the gaps between signals that are longer than counted
_RAREST = 1e-5  # probability of a signal; gaps between rarer ones are not told apart
_GAPS = 4096  # lengths of gaps that are told apart
_SLOW = 1e-4  # rad per gap
_ASIDE, _JUMP = 1e-9, 1e-6  # of an average, and the change of a signal there that is a jump
_ALIKE = 0.1  # difference of sizes, at most
_FINE = 0.05  # rad per round trip: resolves what comes back, beside the share that dies
_FIRST, _LAST = 0.05, 80.0  # rad per longest and per shortest round trip
_MOST_FREQUENCIES = 60_000


def dispersion(link: Link, x: Any, queue: Num, omega: Array) -> Array:
    """Index of dispersion (W,) of the signals of a link at frequencies [rad/s]: near 1 if they are
    independent, 0 if they come evenly.

    Gaps between signals are independent of each other: a renewal process. Cox and Lewis (1966),
    section 4.5.
    """
    seen = link.arrival(1.0, 1 / link.capacity, queue)
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


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over time of a queue or a window [packet].

    `quantiles` has, for shares of the time, the value that it is not above; empty if not known.
    """

    mean: float
    std: float
    quantiles: Mapping[float, float] = dataclasses.field(default_factory=dict)


_UNKNOWN = Spread(math.nan, math.nan)


@dataclasses.dataclass(frozen=True)
class LinkFluctuations:
    """One link: its queue, the queueing delay [s], the average that its law keeps, and the share of
    the time in which it is idle. A link without a queue has packets in service and in bunches; of
    their delay only the mean is known.
    """

    queue: Spread
    queueing_delay: Spread
    average: Spread
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
    that of the largest fluctuations [rad/s]. `density` [packet^2 s] has the spectrum of each link's
    queue at frequencies `omega` [rad/s]; its integral over omega / pi, and what the phases of
    packets within a round trip add, are the variance.

    `links` and `flows` are by name, `equilibrium` is that of the population.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.fluctuations(fc.load("hollot2001/pi"))
    >>> found.status, round(found.links["bottleneck"].queue.std)
    ('regular', 37)
    """

    _view = "equilibria.FluctuationsView"
    _in_dict = "status", "message", "margin", "frequency", "links", "flows"

    status: str
    message: str
    margin: float
    frequency: float
    links: dict[str, LinkFluctuations]
    flows: dict[str, FlowsFluctuations]
    omega: Array
    density: dict[str, Array]
    equilibrium: Equilibrium = dataclasses.field(repr=False)

    def number(self, of: Measure) -> float:
        """The number of a quantity of a link or a group; NaN if it is refused."""
        name, _, part = of.key.rpartition("_")
        if part != "std" and not part.isdecimal():
            name, part = of.key, ""
        value = getattr(getattr(self, of.kind)[of.owner], name)
        if not isinstance(value, Spread):
            return value
        if not part.isdecimal():
            return value.std if part else value.mean
        return value.quantiles.get(int(part) / 100, math.nan)

    def spectrum(self) -> xarray.Dataset:
        """The spectral density of each link's queue along the frequency `omega`."""
        import xarray as xr

        rows = np.array([*self.density.values()]).reshape((-1, len(self.omega)))
        density = (("link", "omega"), rows, attributes("links", "queue_density"))
        coords = labels(link=self.density, omega=self.omega)
        return xr.Dataset({"queue_density": density}, coords)

    def to_xarray(self) -> xarray.Dataset:
        """Numbers of links and groups, with quantiles by `share` of the time."""
        import xarray as xr

        data: dict[str, Any] = {}

        def add(dimension: str, kind: str, name: str, values: list) -> None:
            data[name] = (dimension, values, attributes(kind, name))

        links, groups = list(self.links.values()), list(self.flows.values())
        for name in ("queue", "queueing_delay", "average"):
            own = [getattr(link, name) for link in links]
            add("link", "links", name, [v.mean for v in own])
            if name != "queueing_delay":
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
        coords = labels(share=SHARES, link=self.links, group=self.flows)
        names = ("status", "message", "margin", "frequency")
        return xr.Dataset(data, coords, {name: getattr(self, name) for name in names})


@reporting
def fluctuations(
    net: Network, *, progress: Callable[[float], object] | None = None
) -> Fluctuations:
    """Fluctuations of queues and windows around the equilibrium of the population.

    Signals are marks or losses of flows that last. Refused, with the reason and its size, if the
    loop is unstable or near to that, if a queue often empties or fills, and for windows of next to
    one packet.

    Parameters
    ----------
    net
        The network; its closure does not matter.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Fluctuations
        `links` and `flows` by name: mean, standard deviation and quantiles of queues and windows
        [packet], delays [s] and rates [packet/s]; `density` [packet^2 s] (k,) of each queue at the
        frequencies `omega` (k,) [rad/s].

    Examples
    --------
    >>> import fluidcc as fc
    >>> queue = fc.fluctuations(fc.load("hollot2001/pi")).links["bottleneck"].queue
    >>> [round(queue.quantiles[share]) for share in (0.05, 0.5, 0.95)]
    [140, 200, 260]
    """
    eq = equilibrium(dataclasses.replace(net, closure="population"))
    report(_AT_REST)
    with part(_AT_REST, 1.0, verb=True):
        return fluctuations_at(eq)


_AT_REST = 0.5  # finished share when the equilibrium is known


@reporting
def fluctuations_at(
    eq: Equilibrium, answering: Sequence[list[Answering]] | None = None
) -> Fluctuations:
    """`fluctuations` at an equilibrium that is known, as may be the answers of its groups."""
    margin = math.nan
    try:
        loop = find_loop(eq, answering)
        for k in loop.links:
            _check_loads(eq.asked or eq.net, eq.net.link_names[k])
            if (law := eq.net.links[k].queue).draws:
                raise NoLoop(
                    f"links.{eq.net.link_names[k]}: {law.name} draws random numbers of its own, "
                    "whose fluctuations are not known"
                )
        omega, unstable = loop.frequencies, loop.unstable()
        resisting, pulling = loop.queues(omega)
        distance = distance_from_critical(resisting, pulling)
        margin = float(distance.min())
        _check_loop(unstable, margin, float(omega[int(np.argmin(distance))]))
        return _describe(eq, loop, omega, np.linalg.inv(resisting - pulling), margin)
    except NoLoop as refusal:
        return _refuse(eq, str(refusal), margin)


def _check_memory(eq: Equilibrium, k: int, answer: QueueAnswer, found: _Spectrum) -> None:
    """Raise NoLoop if a number that the law of link k remembers often is at an end of its range."""
    name, law = eq.net.link_names[k], eq.net.links[k].queue
    moves, values = answer.move(1j * found.omega), flatten(eq.op.laws[k])
    for (field, own), value, move in zip(law.states.items(), values, moves, strict=True):
        std, ends = math.sqrt(found.variance(move)), own.info.within
        for end in () if ends is None else ends.ends:
            if abs(value - end) < _SIGMAS * std:
                raise NoLoop(
                    f"links.{name}: the {own.info.doc} of {law.name}, {field} = {value:.3g} +- "
                    f"{std:.2g}, is often at the end of its range, {end:g}"
                )


def _jumps(link: Link, average: float, reach: float) -> Iterator[float]:
    """Averages within reach at which the signal of a law jumps [packet]."""
    law = link.queue
    if not law.is_discontinuous():
        return

    def distances(v: float) -> tuple[Num, ...]:
        return law.breakpoints(law.start(v), link.arrival(0.0, 0.0, v))

    def emitted(v: float) -> float:
        return float(emit_signal(link, law.start(v), v, link.capacity).either)

    low, high = max(average - reach, 0.0), average + reach
    for k, (a, b) in enumerate(zip(distances(low), distances(high), strict=True)):
        if a * b < 0:
            below, above = bisect(lambda v, k=k, a=a: np.sign(a) * distances(v)[k], low, high)
            if abs(emitted(above * (1 + _ASIDE)) - emitted(below * (1 - _ASIDE))) > _JUMP:
                yield float(below)


def _check_loop(unstable: int, margin: float, at: float) -> None:
    """Raise NoLoop if fluctuations are not small, with `margin` the least distance, at [rad/s]."""
    if unstable:
        raise NoLoop(
            "the loop is unstable: windows and queues oscillate; its gain is nearest to -1 at "
            f"{at:.3g} rad/s, and `fluidcc cycle` has the period of the finished oscillation"
        )
    if margin < _LEAST_DISTANCE:
        raise NoLoop(
            f"the loop gain is as near as {margin:.2g} to -1, at {at:.3g} rad/s: fluctuations are "
            f"small from a distance of {_LEAST_DISTANCE:g} on"
        )


def _check_loads(net: Network, name: str) -> None:
    """Raise NoLoop if a queue counts voice as if it came in packets of the flows."""
    net = net.by_group
    k = net.link_names.index(name)
    voice, size = net.links[k].voice, float(net.links[k].packet_size)
    if voice is not None and voice.discipline == "fifo" and not net.links[k].queue.by_bytes:
        frame = float(voice.frame_bytes())
        if abs(frame / size - 1) > _ALIKE:
            raise NoLoop(
                f"links.{name}: packets of voice, {frame:.3g} B, count in the queue as much as "
                f"those of flows, {size:.4g} B"
            )


def _bursts(loop: PopulationLoop, queue: int) -> float:
    """Variance of a queue by where in a round trip packets are sent [packet^2].

    Windows grow packet by packet at any phase of a round trip R, and what a reaction takes away is
    at any phase too: births and deaths of packets that come back after each R, less their mean over
    a round trip, which the loop has. With a share k of the packets that dies in a round trip, and
    a share s of what leaves a queue that is of these flows, what they send is

        a = (1 - k) exp(-z R) (a - s A) + births - deaths, and A, the sum of all a, moves the queue.
    """
    trips, flights, numbers, dying = np.array([
        (m.trip, m.answering.law.flight[0], m.number, m.answering.law.taken[0])
        for m in loop.every if queue in m.passages
    ]).T  # fmt: skip
    rates = numbers * flights / trips
    longest, shortest = trips.max(), trips.min()
    step = _FINE * (dying.min() + _FINE) / longest
    low, high = _FIRST / longest, _LAST / shortest
    omega = np.linspace(low, high, min(round((high - low) / step), _MOST_FREQUENCIES))
    z, power, left = 1j * omega, np.zeros(len(omega)), np.ones(len(omega), complex)
    for trip, rate, k in zip(trips, rates, dying, strict=True):
        late = (1 - k) * np.exp(-z * trip)
        beyond = abs(1 - (1 - np.exp(-z * trip)) / (z * trip)) ** 2
        power += 2 * k * rate * beyond / abs(1 - late) ** 2
        left += rate / rates.sum() * late / (1 - late)
    density = power / abs(z * left) ** 2
    return float(np.trapezoid(density, omega) + density[-1] * omega[-1]) / math.pi


class _Spectrum(NamedTuple):
    """The spectrum of a queue (W,) [packet^2 s] at frequencies [rad/s]."""

    omega: Array
    density: Array

    def variance(self, response: Num = 1.0) -> float:
        """The variance of what responds (W,) to the queue; flat below the first frequency."""
        density = self.density * abs(response) ** 2
        area = np.trapezoid(density, self.omega) + density[0] * self.omega[0]
        return float(area) / math.pi


def _describe(
    eq: Equilibrium, loop: PopulationLoop, omega: Array, answer: Array, margin: float
) -> Fluctuations:
    """Fluctuations by a loop at its frequencies (W,) [rad/s], at which queues `answer` pulls on
    them (W, K, K), and which keeps a `margin` from -1.
    """
    power = _disturbances(eq, loop, omega)
    power = answer @ power @ answer.conj().swapaxes(1, 2)
    own = np.maximum(np.real(np.einsum("wkk->kw", power)), 0.0)
    spectra = [_Spectrum(omega, density) for density in own]
    names = [eq.net.link_names[k] for k in loop.links]
    known = {name: _link(eq, loop, i, spectra[i]) for i, name in enumerate(counted(names))}
    links = {
        name: known[name] if name in known else _without_queue(eq, k)
        for k, name in enumerate(eq.net.link_names)
    }
    groups = {
        group: _window(own) for group, own in zip(eq.net.flow_names, loop.members, strict=True)
    }
    density = {name: found.density for name, found in zip(names, spectra, strict=True)}
    peak = float(omega[int(np.argmax(sum(density.values())))])
    return Fluctuations("regular", "", margin, peak, links, groups, omega, density, eq)


def _link(eq: Equilibrium, loop: PopulationLoop, i: int, found: _Spectrum) -> LinkFluctuations:
    """Fluctuations of a queue with this spectrum. Raises NoLoop if they are not small."""
    k, law = loop.links[i], loop.laws[i]
    name, link, capacity = eq.net.link_names[k], eq.net.links[k], float(loop.net.links[k].capacity)
    mean, std = eq.links[name].queue, math.sqrt(found.variance() + _bursts(loop, i))
    for end, what in ((0.0, "empties"), (float(link.buffer), "fills")):
        if abs(mean - end) < _SIGMAS * std:
            raise NoLoop(f"links.{name}: a queue of {mean:.4g} +- {std:.3g} packets often {what}")
    queue, mean_average = _normal(mean, std), eq.links[name].average
    *_, answer = law.emit(1j * found.omega)
    average = math.sqrt(found.variance(answer))
    for jump in _jumps(link, mean_average, _SIGMAS * average):
        raise NoLoop(
            f"links.{name}: an average of {mean_average:.4g} +- {average:.3g} packets often passes "
            f"the discontinuity of the signal at {jump:.4g}"
        )
    _check_memory(eq, k, law, found)
    return LinkFluctuations(
        queue=queue,
        queueing_delay=_normal(*(queueing_delay(packets, capacity) for packets in (mean, std))),
        average=_normal(mean_average, average),
        idle=statistics.NormalDist().cdf(-mean / std) if std > 0 else 0.0,
    )


def _without_queue(eq: Equilibrium, k: int) -> LinkFluctuations:
    """Packets at a link without a queue; their quantiles are not known."""
    average = eq.links[eq.net.link_names[k]].average
    mean, std, used = packets_at(eq, k)
    delay = mean / (used * float(eq.net.links[k].capacity))  # Little's law
    return LinkFluctuations(
        Spread(mean, std), Spread(delay, math.nan), Spread(average, math.nan), max(1 - used, 0.0)
    )


def _disturbances(eq: Equilibrium, loop: PopulationLoop, omega: Array) -> Array:
    """Spectra (W, K, K) [packet^2 s] of the pulls on the queues if no signal answered them."""
    clock, op, z = loop.clock, eq.op, 1j * omega
    pulls = [m.number * clock.by_flight(m, z) for m in loop.every]
    answers = [m.answering.on_axis(omega * m.trip) for m in loop.every]
    power = np.zeros((len(omega), len(loop.links), len(loop.links)), complex)
    for m, pull, found in zip(loop.every, pulls, answers, strict=True):
        power += _squared(pull, m.trip * found.power / m.number)
    for own in loop.files:
        try:
            spectrum = spectrum_of_files(own.flows, own.signal, own.trip, omega)
        except ValueError as fault:
            raise NoLoop(f"flows.{own.name}: {fault}") from None
        power += _squared(clock.by_flight(own, z), spectrum)
    plain = all(isinstance(flows.marking, Plain) for flows in loop.net.flows)
    for i, k in enumerate(loop.links):
        link = loop.net.links[k]
        signals = float(op.signals[k].either) * float(link.capacity)
        if plain and signals > 0:
            mean: Any = 0.0
            for m, pull, found in zip(loop.every, pulls, answers, strict=True):
                if (way := m.passages.get(i)) is not None:
                    mean = mean + pull * (way.part * found.mean * np.exp(-z * way.age))[:, None]
            even = 1 - dispersion(link, op.laws[k], op.queues[k], omega)
            power -= _squared(mean, even / signals)
        power[:, i, i] += _of_others(eq, loop, i, z)
    return power


def _squared(pulls: Array, by: Array) -> Array:
    """Spectra (W, K, K) of one disturbance with a spectrum (W,) that pulls on all queues (W, K)."""
    return pulls[:, :, None] * pulls[:, None, :].conj() * by[:, None, None]


def _of_others(eq: Equilibrium, loop: PopulationLoop, i: int, z: Array) -> Array:
    """Spectrum (W,) [packet^2 s] of the pull of voice and Poisson traffic on queue i."""
    link = eq.net.links[loop.links[i]]
    shares = (own.passages[i].share for own in loop.files if i in own.passages)
    files = sum(shares) * float(loop.net.links[loop.links[i]].capacity)
    square = 2.0 if link.cross_sizes == "exponential" else 1.0  # of a size, mean
    cross = square * (float(link.cross) - files)
    power = cross * abs(loop.clock.by_load(i, z, 0.0)) ** 2
    if link.voice is not None:
        wait = eq.op.queues[loop.links[i]] / float(loop.net.links[loop.links[i]].capacity)
        passed = 0.0 if link.voice.discipline == "fifo" else wait
        calls = link.voice.spectrum(np.imag(z), float(link.packet_size))
        power = power + calls * abs(loop.clock.by_load(i, z, passed)) ** 2
    return power


def _refuse(eq: Equilibrium, why: str, margin: float) -> Fluctuations:
    unknown = LinkFluctuations(_UNKNOWN, _UNKNOWN, _UNKNOWN, math.nan)
    links = dict.fromkeys(eq.links, unknown)
    groups = dict.fromkeys(eq.flows, FlowsFluctuations(_UNKNOWN, _UNKNOWN))
    none = np.zeros(0)
    return Fluctuations("refused", why, margin, math.nan, links, groups, none, {}, eq)


def _normal(mean: float, std: float) -> Spread:
    """A queue, or another number that is not below 0, whose values are normal."""
    law = statistics.NormalDist()
    return Spread(mean, std, {p: max(mean + std * law.inv_cdf(p), 0.0) for p in SHARES})


def _window(own: list[Member]) -> FlowsFluctuations:
    """Window and rate of one flow, the means over a group; not known if it passes no queue."""
    if not own:
        return FlowsFluctuations(_UNKNOWN, _UNKNOWN)
    each, numbers = [moments(m.answering.law) for m in own], np.array([m.number for m in own])

    def over_flows(values: Any) -> float:
        return float(mean_over_flows(numbers, np.array(values)))

    window, spread = (over_flows([getattr(v, k) for v in each]) for k in ("window", "window_std"))
    rate, varies = (
        over_flows([getattr(v, k) / m.trip for v, m in zip(each, own, strict=True)])
        for k in ("flight", "flight_std")
    )
    return FlowsFluctuations(Spread(window, spread), Spread(rate, varies))
