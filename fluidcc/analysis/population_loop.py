"""The loop of a population of flows and the laws of the queues that they pass, linear in these.

Senders answer signals by the stationary law of their windows, so that the loop is that of the
population, not of its mean. A queue is the sum of the flights less what the paths hold.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.flow_response import PER_TRIP, Answering, Response, answer, sparse_nodes
from fluidcc.analysis.linear import Array
from fluidcc.analysis.margins import Loop, Margins, margins, together
from fluidcc.analysis.operating_point import OperatingPoint, conditions
from fluidcc.analysis.steady_laws import offered_rate
from fluidcc.laws.law import AbstractFeedback, Signal
from fluidcc.model.delays import explicit_delays, round_trip, signal_age
from fluidcc.model.fluid import open_load, steady
from fluidcc.model.rates import emit_signal, marks_seen, queue_law_rate, received
from fluidcc.ops import Num
from fluidcc.programs import flatten, jacobian, ravel
from fluidcc.scenario.network import Flows, Network

_LEAST_WINDOW = 2.0  # packets; in smaller ones a sender waits for its timer
_SPARSE = 32, 16, 8, 4  # one of so many frequencies counts roots if the loop is far from critical
_FAIR = 8  # one of so many frequencies tells where crossovers are
_SOUGHT = 4  # frequencies from which roots are sought
_ON_AXIS = np.array([0.02, 0.1, 0.5, 1.5])  # per round trip: real numbers from which they are
_ASIDE = 0.5  # per round trip: right of the imaginary axis
_STEPS, _SAME, _ALIKE = 12, 1e-9, 1e-6  # of Newton's method; relative step at its end; one root
_BUMP = 1e-6  # relative: step for a slope
_FAR = 3.0  # per round trip: decay beyond which responses have no digits
_RIGHT, _UP = np.array([0.1, 0.4, 1.0, 2.0]), np.linspace(0.0, 8.0, 17)[1:]  # per round trip
_INTEGRATES = 1e-9  # per round trip: slower is an integrator
_WHOLE = 0.1  # of a half turn
_REFINED, _BETWEEN = 4, 33  # times, and frequencies each time, beside the one nearest to critical
_SLOWER, _BEFORE = 1e-2, 60  # of the slowest rate, and frequencies from there


class NoLoop(Exception):
    """Why the loop of a population, or what follows from it, is not known."""


class Passage(NamedTuple):
    """Packets of flows on their way through a queue: since they were sent [s], until the sender
    receives its signal [s], their share of what leaves it, and the part of the signals that they
    receive which is of this queue.
    """

    ahead: float
    age: float
    share: float
    part: float


class Member(NamedTuple):
    """Flows of one round trip [s] in a group: their number, and their way through the queues that
    they pass, by the number of the queue.
    """

    number: float
    trip: float
    answering: Answering
    passages: dict[int, Passage]


class FileTraffic(NamedTuple):
    """Files that come to the queues by themselves: a group of the network that is asked about,
    with its signal and round trip [s]. ACKs clock their packets as those of the flows.
    """

    name: str
    flows: Flows
    signal: Signal
    trip: float
    passages: dict[int, Passage]


class Clock(NamedTuple):
    """How K queues answer flights and loads at z [1/s], as what flows send follows what leaves the
    queues, a round trip later.

    For each, `shares` (K,) of what leaves is traffic without windows; `trips` (K,) are the mean
    round trips [s] of the rest. Packets leave first-in first-out: changes A_l of the arrivals at
    queue l take from each flow's packets its share s of them. Behind queue l, such a packet is
    missing at queue k after a delay d(l, k), that around the loop if k = l, and

        (1 - exp(-z R_k)) q_k + sum_l q_l sum_flows s_l R_k/R exp(-z d(l, k)) =
            sum_flows R_k/R exp(-z a_k) f,

    with flights f, and a_k the delay from the sender to queue k. It is exact for equal round trips
    R, and else in the mean over a round trip.
    """

    shares: Array
    trips: Array

    def by_flight(self, m: Member | FileTraffic, z: Array) -> Array:
        """Pull (W, K) of a flight on the queues that its packets pass."""
        pull = np.zeros((len(z), len(self.trips)), complex)
        for k, passage in m.passages.items():
            pull[:, k] = self.trips[k] / m.trip * np.exp(-z * passage.ahead)
        return pull

    def by_queues(self, carried: Sequence[Member | FileTraffic], z: Array) -> Array:
        """How much the queues resist (W, K, K) with what they carry."""
        late = np.exp(-np.outer(z, self.trips))
        out = np.zeros((len(z), len(self.trips), len(self.trips)), complex)
        out[:, *np.diag_indices(len(self.trips))] = 1 - self.shares * late
        for m in carried:
            for (k, there), (j, here) in itertools.permutations(m.passages.items(), 2):
                delay = there.ahead - here.ahead
                delay += m.trip if delay < 0 else 0.0
                out[:, k, j] += here.share * self.trips[k] / m.trip * np.exp(-z * delay)
        return out

    def by_load(self, k: int, z: Array, passed: float) -> Array:
        """Pull (W,) on queue k of a load without windows, until the flows have given way; in
        another queue at the same link it has `passed` a delay [s] of this one.
        """
        mixed = self.shares[k] * np.exp(-z * self.trips[k])
        given = (1 - self.shares[k]) * np.exp(-z * (self.trips[k] - passed))
        return (1 - mixed - given) / z


class QueueAnswer(NamedTuple):
    """How a queue law answers its queue: change of what it remembers (n,) by itself, by the queue
    and by the arrivals, which are the queue's change more than the link carries; and of what it
    emits, the marks and the losses that flows receive [1/packet] and the average that it keeps.
    """

    A: Array
    b: Array
    b_arrivals: Array
    C: Array
    d: Array
    d_arrivals: Array

    def move(self, z: Array) -> Array:
        """What is remembered (n, W), at z [1/s]."""
        driven = (self.b + z[:, None] * self.b_arrivals)[..., None]
        return np.linalg.solve(z[:, None, None] * np.eye(len(self.A)) - self.A, driven)[..., 0].T

    def emit(self, z: Array) -> Array:
        """Marks, losses and the average (3, W), at z [1/s]."""
        return self.C @ self.move(z) + self.d[:, None] + self.d_arrivals[:, None] * z

    @property
    def rates(self) -> Array:
        """Moduli of the eigenvalues [1/s] of what is not constant; 0 for what integrates."""
        moves = np.any(np.column_stack([self.A, self.b, self.b_arrivals]) != 0, axis=1)
        return abs(np.linalg.eigvals(self.A[np.ix_(moves, moves)]))


class PopulationLoop(NamedTuple):
    """The loop through the links of a network, in the fluid model's version, that have a queue.

    `members` has those of each group, `answers` how the laws of the queues that it passes answer
    for it, and `files` what comes to the queues by itself.
    """

    net: Network
    links: tuple[int, ...]
    members: list[list[Member]]
    answers: list[dict[int, QueueAnswer]]
    clock: Clock
    files: list[FileTraffic]

    @property
    def heard(self) -> list[int]:
        """The queues whose signals change with them and reach a sender."""
        return sorted({
            i
            for answers in self.answers
            for i, law in answers.items()
            if any(np.any(part[:2]) for part in (law.C, law.d, law.d_arrivals))
        })  # fmt: skip

    @property
    def every(self) -> list[Member]:
        """The members of all groups."""
        return list(itertools.chain.from_iterable(self.members))

    @property
    def trip(self) -> float:
        """A mean round trip [s], the longest of the queues."""
        return float(self.clock.trips.max())

    @property
    def laws(self) -> list[QueueAnswer]:
        """How the law of each queue answers, for one of the groups."""
        known = {i: law for answers in self.answers for i, law in answers.items()}
        return [known[i] for i in range(len(self.links))]

    @property
    def _rates(self) -> Array:
        """Moduli of the eigenvalues of all laws [1/s]."""
        return np.concatenate([law.rates for law in self.laws])

    @property
    def frequencies(self) -> Array:
        """Frequencies [rad/s] that resolve the loop."""
        return self._sparse_nodes(1)

    def _sparse_nodes(self, every: int) -> Array:
        """One of so many of the frequencies [rad/s] that resolve the loop."""
        trips = [m.trip for m in self.every]
        low = PER_TRIP[0] / max(trips)
        slow = [rate for rate in self._rates if 0 < _SLOWER * rate < low]
        before = np.geomspace(_SLOWER * min(slow), low, _BEFORE) if slow else np.zeros(0)
        nodes = PER_TRIP[sparse_nodes(every)]
        return np.unique(np.concatenate([before, nodes / max(trips), nodes / min(trips)]))

    def gain(self, omega: Array, queue: int = 0, every: int = 1) -> Array:
        """Response (W,) of the loop cut at the signal of a queue, those of others closed, at
        frequencies [rad/s], with its sign changed: at -1 it is critical; from one of so many
        frequencies, see `queues`.
        """
        return _cut(*self.queues(omega, every), queue)

    def margins(self) -> Margins:
        """Margins of the loops cut at the signal of each queue. Raises ArithmeticError."""
        scale = 1 / self.trip

        def of(queue: int, every: int) -> Loop:
            return functools.partial(self.gain, queue=queue, every=every)

        def found(queue: int) -> Margins:
            estimates = of(queue, _FAIR), of(queue, 2 * _FAIR)
            return margins(of(queue, 1), scale=scale, estimates=estimates)

        return together(map(found, self.heard))

    def queues(self, omega: Array, every: int = 1) -> tuple[Array, Array]:
        """How much the queues resist (W, K, K), and how much their signals to the flows pull on
        them, at frequencies [rad/s], from one of so many of those that resolve the answers of
        flows.
        """
        found = self._responses(omega, lambda flow, omega: flow.on_axis(omega, every))
        return self._queues(1j * omega, found)

    def _responses(
        self, z: Array, answer: Callable[[Answering, Array], Response]
    ) -> dict[int, Response]:
        """Responses of the members, by their identity, at z [1/s]; one answer for all that answer
        alike.
        """
        alike: dict[int, list[Member]] = {}
        for m in self.every:
            alike.setdefault(id(m.answering), []).append(m)
        found = {}
        for own in alike.values():
            both = answer(own[0].answering, np.concatenate([z * m.trip for m in own]))
            parts = zip(*(np.split(v, len(own)) for v in both), strict=True)
            found |= {id(m): Response(*part) for m, part in zip(own, parts, strict=True)}
        return found

    def _queues(self, z: Array, responses: dict[int, Response]) -> tuple[Array, Array]:
        resisting = self.clock.by_queues([*self.every, *self.files], z)
        pulling = np.zeros_like(resisting)
        for own, answers in zip(self.members, self.answers, strict=True):
            emitted = {queue: answer.emit(z) for queue, answer in answers.items()}
            for m in own:
                found, pull = responses[id(m)], m.number * self.clock.by_flight(m, z)
                for queue, (mark, drop, _) in emitted.items():
                    capacity = float(self.net.links[self.links[queue]].capacity)
                    answered = found.by_mark * mark + found.by_loss * drop
                    answered = answered + found.by_trip / (capacity * m.trip)
                    late = np.exp(-z * m.passages[queue].age)
                    pulling[:, :, queue] += pull * (answered * late)[:, None]
        return resisting, pulling

    def _critical(self, omega: Array, every: int = 1) -> Array:
        """Distance of the loop from critical, 1 + L for one queue, at frequencies [rad/s]."""
        resisting, pulling = self.queues(omega, every)
        return np.linalg.det(resisting - pulling) / np.linalg.det(resisting)

    def unstable(self) -> int:
        """Number of unstable roots, by the turns around 0 of 1 + L, or for several queues of its
        determinant; what integrates begins a quarter of a turn early. Raises NoLoop if the turns
        are no whole number.

        A few frequencies will do where 1 + L is larger than its change by taking half as many:
        such a change does not move it around 0 (Rouche).
        """
        for every in _SPARSE:
            omega = self._sparse_nodes(every)
            few, fewer = (self._critical(omega, n) for n in (every, 2 * every))
            turned = np.angle(few[1:] / few[:-1])
            if np.all(abs(few - fewer) < abs(few)) and np.all(abs(turned) < math.pi / 2):
                break
        else:
            turned = self._turns()
        integrating = int((self._rates < _INTEGRATES / self.trip).sum())
        roots = -turned.sum() / math.pi + integrating / 2
        if abs(roots - round(roots)) > _WHOLE or round(roots) < 0:
            raise NoLoop(
                f"the Nyquist curve counts {roots:.3g} unstable roots, which is no whole number"
            )
        return round(roots)

    def _turns(self) -> Array:
        """Turns [rad] of 1 + L between frequencies, more of them where it is nearest to 0."""
        omega = self.frequencies
        value = self._critical(omega)
        for _ in range(_REFINED):
            k = int(np.clip(np.argmin(abs(value)), 1, len(omega) - 2))
            more = np.linspace(omega[k - 1], omega[k + 1], _BETWEEN)[1:-1]
            omega = np.concatenate([omega, more])
            omega, first = np.unique(omega, return_index=True)
            value = np.concatenate([value, self._critical(more)])[first]
        return np.angle(value[1:] / value[:-1])

    def roots(self, unstable: int) -> Array | None:
        """Roots (k,) [1/s] from the right, conjugates left out, that Newton's method finds from the
        real axis and from frequencies at which the loop is nearly critical. There may be others
        left of the imaginary axis; None if the unstable ones are not as many as counted.
        """
        omega = self.frequencies
        near: Array = abs(self._critical(omega))
        lowest = np.flatnonzero((near[1:-1] < near[:-2]) & (near[1:-1] < near[2:])) + 1
        first = omega[lowest[np.argsort(near[lowest])]]
        scale = 1 / self.trip
        few = np.concatenate([
            1j * first[:_SOUGHT], 1j * first[:_SOUGHT] + _ASIDE * scale, -scale * _ON_AXIS
        ])  # fmt: skip
        grid = np.add.outer(_RIGHT, 1j * _UP).ravel() * scale
        for starts in (few, np.concatenate([few, 1j * first, grid])):
            found = self._polished(starts)
            right = sum(2 if root.imag > 0 else 1 for root in found if root.real > 0)
            if right == unstable:
                return np.array(found, complex)
        return None

    def _polished(self, starts: Array) -> list[complex]:
        """Roots to which Newton's method leads, from the right."""
        z, step = starts.astype(complex), np.full(len(starts), np.inf, complex)
        with np.errstate(all="ignore"):
            for _ in range(_STEPS):
                going = np.isfinite(z) & ~(abs(step) <= _SAME * abs(z))
                at = z[going]
                if not at.size:
                    break
                value, beside = np.split(self._at(np.concatenate([at, at * (1 + _BUMP)])), 2)
                step[going] = value * at * _BUMP / (beside - value)
                z[going] = at - step[going]
                z = np.where(abs(np.real(z)) > _FAR / self.trip, np.nan, z)
        sound = np.isfinite(z) & (abs(step) <= _SAME * abs(z)) & (np.imag(z) >= -_SAME * abs(z))
        found: list[complex] = []
        for root in z[sound]:
            real = abs(root.imag) <= _SAME * abs(root)
            if all(abs(root - other) > _ALIKE * abs(root) for other in found):
                found.append(complex(root.real, 0.0) if real else complex(root))
        return sorted(found, key=lambda root: -root.real)

    def _at(self, z: Array) -> Array:
        """1 + L at z [1/s]."""
        resisting, pulling = self._queues(z, self._responses(z, Answering.at))
        return np.linalg.det(resisting - pulling) / np.linalg.det(resisting)


def _cut(resisting: Array, pulling: Array, queue: int) -> Array:
    """Response (W,) of a loop of K queues (W, K, K), cut at the signal of one."""
    others = pulling.copy()
    others[:, :, queue] = 0.0
    return np.linalg.det(resisting - pulling) / np.linalg.det(resisting - others) - 1


def distance_from_critical(resisting: Array, pulling: Array) -> Array:
    """Distance (W,) from -1 of the nearest of the loops that cuts at each of K queues leave, from
    how much the queues resist and their signals pull (W, K, K).
    """
    each = [1 + _cut(resisting, pulling, queue) for queue in range(resisting.shape[-1])]
    return abs(np.array(each)).min(axis=0)


def find_loop(
    eq: Equilibrium, answering: Sequence[list[Answering]] | None = None
) -> PopulationLoop:
    """The loop at an equilibrium of a population; the answers of its groups, if they are known, are
    taken as they are.

    Raises NoLoop with the reason if it has none.
    """
    net, links, op = steady(eq.net), _queues(eq), eq.op
    members, answers = [], []
    for g, (name, flows, rate) in enumerate(zip(net.flow_names, net.flows, op.rates, strict=True)):
        passed = {i: k for i, k in enumerate(links) if k in flows.route}
        if passed:
            _check_signals(eq, f"flows.{name}", flows, passed)
        known = None if answering is None else answering[g]
        members.append(_members(net, op, flows, passed, rate, known) if passed else [])
        answers.append({i: _answer(net, op, flows, k) for i, k in passed.items()})
    files = _files(eq, net, links)
    shares = np.array([float(net.links[k].cross) / float(net.links[k].capacity) for k in links])
    slowed = np.zeros(len(links))
    for own in files:  # in the fluid they are traffic without windows
        for i, passage in own.passages.items():
            shares[i] -= passage.share
    for m in itertools.chain(files, *members):
        for i, passage in m.passages.items():
            slowed[i] += passage.share / m.trip
    clock = Clock(shares, (1 - shares) / slowed)
    return PopulationLoop(net, links, members, answers, clock, files)


def _files(eq: Equilibrium, fluid: Network, links: tuple[int, ...]) -> list[FileTraffic]:
    """The files that come to links with a queue by themselves."""
    out, op, queues, net = [], eq.op, tuple(eq.op.queues), eq.asked or eq.net
    place = {name: k for k, name in enumerate(fluid.link_names)}
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        load = open_load(flows)
        route = [place[net.link_names[k]] for k in flows.route if net.link_names[k] in place]
        if load is None or not set(route) & set(links):
            continue
        own = dataclasses.replace(flows, route=tuple(route), reverse_route=())
        signal = received(own, tuple(op.signals[k] for k in route))
        passages = {}
        for path, k in zip(explicit_delays(fluid, own, queues).trips, route, strict=True):
            if k in links:
                share = float(load) / float(fluid.links[k].capacity)
                ahead = float(np.mean(path.forward))
                passages[links.index(k)] = Passage(ahead, math.nan, share, math.nan)
        trip = float(np.mean(round_trip(fluid, own, queues)))
        out.append(FileTraffic(name, flows, signal, trip, passages))
    return out


def _check_signals(eq: Equilibrium, who: str, flows: Flows, passed: dict[int, int]) -> None:
    """Raise NoLoop if flows do not answer the signals of the queues that they pass, and these
    alone.
    """
    signals = {k: eq.op.signals[k] for k in flows.route}
    if any(float(own.either) > 0 for k, own in signals.items() if k not in passed.values()):
        raise NoLoop(f"{who} receives signals of a link without a queue")
    signal = received(flows, tuple(signals.values()))
    if not max(marks_seen(flows, signal), signal.drop) > 0:
        names = " and ".join(f"links.{eq.net.link_names[k]}" for k in passed.values())
        raise NoLoop(f"{who} receives no signal from {names}")
    if type(flows.feedback).flight_size is not AbstractFeedback.flight_size:
        raise NoLoop(f"{who}: flights that follow the marks of ACKs are not known")


def _members(
    net: Network,
    op: OperatingPoint,
    flows: Flows,
    passed: dict[int, int],
    rate: Num,
    answering: list[Answering] | None,
) -> list[Member]:
    """The members of a group that passes some queues, links by the number of the queue."""
    queues, signals = tuple(op.queues), [op.signals[k] for k in flows.route]
    every = sum(float(own.either) for own in signals)
    trips = np.ravel(round_trip(net, flows, queues))
    paths = explicit_delays(net, flows, queues).trips
    numbers, rates = (np.broadcast_to(np.ravel(v), trips.shape) for v in (flows.n, rate))
    passages: list[dict[int, Passage]] = [{} for _ in trips]
    for i, k in passed.items():
        path, part = paths[flows.route.index(k)], float(op.signals[k].either) / every
        share = numbers * rates / float(net.links[k].capacity)
        age = signal_age(flows, net.links[k], path)
        columns = np.broadcast_arrays(path.forward, age, share, part, trips)
        for own, (*way, _) in zip(passages, np.stack(columns, axis=-1).tolist(), strict=True):
            own[i] = Passage(*way)
    found = answering or answer(flows, *conditions(net, op, flows))
    return [
        Member(float(n), float(trip), own, way)
        for n, trip, own, way in zip(numbers, trips, found, passages, strict=True)
    ]


def _queues(eq: Equilibrium) -> tuple[int, ...]:
    """The links with a queue; raises NoLoop if there are none, or another equilibrium."""
    if eq.status != "regular":
        why = f": {eq.message}" if eq.message else ""
        raise NoLoop(f"the equilibrium has the status {eq.status}{why}")
    for name, group in eq.flows.items():
        if float(np.min(group.window)) < _LEAST_WINDOW:
            raise NoLoop(
                f"flows.{name}: windows of {np.min(group.window):.3g} packets; timers decide below "
                f"{_LEAST_WINDOW:g}"
            )
    if any(link.beside is not None for link in eq.net.links):
        raise NoLoop("the loop of a population over two queues of one link is not known")
    busy = tuple(k for k, backlog in enumerate(eq.op.backlogs) if float(backlog) > 0)
    if not busy:
        raise NoLoop("no link has a queue")
    return busy


def _answer(net: Network, op: OperatingPoint, flows: Flows, k: int) -> QueueAnswer:
    """How the law of link k answers its queue, as flows receive it."""
    link, queue = net.links[k], op.queues[k]
    state, shape = ravel(op.laws[k])
    n, offered = len(state), offered_rate(link, queue, op.lost[k])

    def present(v: Num) -> Num:
        x, q, arrivals = shape(v[:n]), v[n], v[n + 1]
        rate = queue_law_rate(link, x, q, arrivals, link.arrival(0.0, 0.0, q))
        own = emit_signal(link, x, q, arrivals)
        seen = received(flows, tuple(own if j == k else op.signals[j] for j in flows.route))
        average = link.queue.average(x, q) + 0.0 * q
        return ops.concatenate([flatten(rate), flatten([seen.mark, seen.drop, average])])

    slopes = jacobian(present, np.append(state, [queue, offered]))
    return QueueAnswer(
        slopes[:n, :n], slopes[:n, n], slopes[:n, n + 1],
        slopes[n:, :n], slopes[n:, n], slopes[n:, n + 1],
    )  # fmt: skip
