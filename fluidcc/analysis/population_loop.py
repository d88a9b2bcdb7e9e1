"""The loop of a population of flows and a queue law, linear in the queue.

A signal that a sender reacts to changes its flight for some round trips. Senders answer signals by
the stationary law of their windows, so that the loop is that of the population, not of its mean.
The queue is the sum of the flights less what the paths hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.population import (
    Population,
    Reaction,
    needs_round_trip,
    population,
)
from fluidcc.analysis.steady_laws import offered_rate
from fluidcc.laws.law import AbstractFeedback, Signal
from fluidcc.model.delays import explicit_delays, round_trip
from fluidcc.model.fluid import steady
from fluidcc.model.rates import emit_signal, marks_seen, queue_law_rate, received
from fluidcc.ops import Num
from fluidcc.programs import flatten, jacobian, machine_code, map_tree, ravel
from fluidcc.scenario.network import Flows, Link, Network

_LEAST_WINDOW = 2.0  # packets; in smaller ones a sender waits for its timer
_NUDGE = 0.03  # of a probability, for the slope of the mean flight
_SHORTEST = 1e-9  # round trips; keeps ramps finite
_SPARSE = 16, 8, 4  # one of so many frequencies counts roots if the loop is not next to critical
_STILL = 1e-6  # rad per round trip: slow enough for the mean
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

# Frequencies that resolve what happens within some round trips [rad per round trip].
_PER_TRIP = np.unique(np.concatenate([
    np.geomspace(1e-3, 0.2, 64), np.linspace(0.2, 12.0, 720), np.geomspace(12.0, 100.0, 60)
]))  # fmt: skip


class NoLoop(Exception):
    """Why the loop of a population, or what follows from it, is not known."""


class Response(NamedTuple):
    """Responses (W,) of one flow, at frequencies [rad per round trip] or at complex ones.

    `by_mark` and `by_loss` are those of its mean flight to the probabilities of marks and losses;
    `power` is the spectral density of its flight under independent signals [packet^2 x round
    trip], and `mean` that of signals which come evenly: what all of a round trip do to the flight.
    """

    by_mark: Array
    by_loss: Array
    power: Array
    mean: Array


def _decay(z: Array, time: Array) -> Array:
    """exp(-z time), by real functions, which are faster."""
    angle = np.imag(z) * time
    found = np.empty(angle.shape, complex)
    found.real, found.imag = np.cos(angle), -np.sin(angle)
    return found * np.exp(-np.real(z) * time) if np.any(np.real(z)) else found


def _until_listening(z: Array, kind: Reaction, late: Array, flight: float) -> Array:
    """Transform (M, W) of the flight beyond its mean from a reaction until the sender listens, with
    the factor `late` of that delay; if it listens at once, of the flight beyond that of the window
    left.
    """
    silence, waits = np.maximum(kind.silence, _SHORTEST), kind.dwell > 0
    before = np.where(waits, kind.before - flight, kind.before - kind.after)
    after = np.where(waits, kind.after - flight, 0.0)
    fall = _decay(z, silence)
    end = np.where(kind.dwell > silence, late, fall)
    ramp = (1 - fall * (1 + z * silence)) / (z**2 * silence)
    return before * (1 - fall) / z + (after - before) * ramp + after * (fall - end) / z


@machine_code(
    "complex128[:, :, ::1](complex128[:, ::1], complex128[:, ::1], complex128[:, :, ::1],"
    " int64[:, ::1], float64[:, ::1])"
)
def _values(stay, given, back, below, above):
    """What follows from each point of a grid and from its top (M + 1, 2, W): of 1 at the lowest,
    and of what is `given` (M, W).

    From a point on: the flight until the next point, which the share `stay` (M, W) reaches, or what
    a reaction brings, by `back` (K, M, W) to the points `below` (K, M) and the shares `above` of
    those above these. Reactions lead down, so that each point follows from those below, up to the
    value of the lowest, which the top decides: there no window grows.
    """
    kinds, points, frequencies = back.shape
    value = np.zeros((points + 1, 2, frequencies), np.complex128)
    value[0, 0] = 1.0
    for i in range(points):
        left = value[i].copy()
        for j in range(kinds):
            k, share = below[j, i], above[j, i]
            left -= back[j, i] * ((1 - share) * value[k] + share * value[k + 1])
        left[1] -= given[i]
        value[i + 1] = left / stay[i]
    return value


def _reactions(found: Population, z: Array) -> tuple[list[Array], list[Array]]:
    """Of marks first, then of losses of each kind: reactions of a flow per round trip at each
    window (M, 1), and the transform (M, W) at z [per round trip] of what each does to its flight.
    """
    w, flights, flight = found.windows, found.flights, found.flight[0]
    z = z[None]
    kinds = [map_tree(lambda v: np.broadcast_to(v, w.shape), kind) for kind in found.kinds]
    rates = [found.ack_ratio[0] * kind.rate for kind in kinds]
    crossing = found.crossing / found.ack_ratio[0]
    below = [np.minimum(place.astype(int), len(w) - 2) for place in found.places]
    above = [place - k for place, k in zip(found.places, below, strict=True)]
    late = [_decay(z, kind.dwell) for kind in kinds]
    spent = [
        _until_listening(z, kind, delay, flight) for kind, delay in zip(kinds, late, strict=True)
    ]
    met = np.sum(rates, axis=0)
    leaving = z + met
    stay = np.zeros(leaving.shape, complex)
    stay[:-1] = _decay(z, crossing) * np.exp(-met[:-1] * crossing)
    held = (1 - stay) / leaving
    given = held * (flights - flight + sum(r * s for r, s in zip(rates, spent, strict=True)))
    stay[-1] = 1.0
    value = _values(
        stay,
        given,
        np.stack([held * r * delay for r, delay in zip(rates, late, strict=True)]),
        np.concatenate(below, axis=1).T.copy(),
        np.concatenate(above, axis=1).T.copy(),
    )
    whole = value[:-1, 1] - value[:-1, 0] * value[-1, 1] / value[-1, 0]
    middle = np.concatenate([(whole[:-1] + whole[1:]) / 2, whole[-1:]])
    changes = [
        s + delay * ((1 - share) * whole[k[:, 0]] + share * whole[k[:, 0] + 1]) - middle
        for s, delay, k, share in zip(spent, late, below, above, strict=True)
    ]
    return [found.time * r for r in rates], changes


class Answering:
    """A flow that answers signals at a round trip [s] by its stationary law.

    At frequency 0 the mean flight answers as its derivative says. Reactions alone give somewhat
    less: signals on ACKs that come in bunches after a reaction, and the repairs that a loss more
    brings, are in the stationary law by their means.
    """

    def __init__(self, flows: Flows, signal: Signal, trip: float) -> None:
        seen = {"mark": float(marks_seen(flows, signal)), "drop": float(signal.drop)}
        varied = [name for name, probability in seen.items() if probability > 0]
        nudged = [
            signal._replace(**{name: (1 + side * _NUDGE) * float(getattr(signal, name))})
            for name in varied
            for side in (-1, 1)
        ]
        numbers = Signal(*np.array([[float(v) for v in one] for one in (signal, *nudged)]).T)
        laws = population(flows, numbers, np.full(1 + len(nudged), trip))
        self.law: Population = map_tree(lambda v: v[..., :1], laws)
        self._probabilities = tuple(seen.values())
        _, means = self._sums(np.array([1j * _STILL]))
        rises = dict(zip(varied, np.diff(laws.flight[1:].reshape((-1, 2)))[:, 0], strict=True))
        self._gains = [
            float(rises[name] / (2 * _NUDGE) / mean[0].real / seen[name]) if name in rises else 0.0
            for name, mean in zip(seen, means, strict=True)
        ]
        self._tables: dict[int, tuple[Array, Array, Array]] = {}

    def _sums(self, z: Array) -> tuple[list[Array], list[Array]]:
        """Sums over reactions to marks, and to losses: of squares, and of what they do."""
        pairs = list(zip(*_reactions(self.law, z), strict=True))
        means = [(m * c).sum(axis=0) for m, c in pairs]
        powers = [(m * abs(c) ** 2).sum(axis=0) for m, c in pairs]
        return [[each[0], sum(each[1:], np.zeros(len(z)))] for each in (powers, means)]  # type: ignore[return-value]

    def at(self, z: Array) -> Response:
        """Responses at z [per round trip]."""
        powers, means = self._sums(z)
        by_mark, by_loss = (gain * mean for gain, mean in zip(self._gains, means, strict=True))
        marked, lost = self._probabilities
        return Response(by_mark, by_loss, powers[0] + powers[1], marked * by_mark + lost * by_loss)

    def _table(self, every: int) -> tuple[Array, Array, Array]:
        """Frequencies, responses there and their slopes."""
        if every not in self._tables:
            nodes = _PER_TRIP[::every]
            if every // 2 in self._tables:
                table = self._tables[every // 2][1][:, ::2]
            else:
                table = np.stack(self.at(1j * nodes))
            self._tables[every] = nodes, table, np.gradient(table, nodes, axis=1)
        return self._tables[every]

    def on_axis(self, omega: Array, every: int = 1) -> Response:
        """Responses at frequencies [rad per round trip], by cubic interpolation between one of so
        many of those that resolve them.
        """
        nodes, table, slopes = self._table(every)
        omega = np.clip(omega, nodes[0], nodes[-1])
        k = np.clip(np.searchsorted(nodes, omega) - 1, 0, len(nodes) - 2)
        gap = nodes[k + 1] - nodes[k]
        t = (omega - nodes[k]) / gap
        (a, b), (da, db) = ((v[:, k], v[:, k + 1]) for v in (table, slopes))
        rise = b - a
        bent = (1 - t) * (gap * da - rise) - t * (gap * db - rise)
        by_mark, by_loss, power, mean = a + t * (rise + (1 - t) * bent)
        return Response(by_mark, by_loss, np.real(power), mean)


class Member(NamedTuple):
    """Flows of one round trip [s] in a group: their number, and the age of their signals [s]."""

    number: float
    trip: float
    age: float
    answering: Answering


class Clock(NamedTuple):
    """How a queue answers flights and loads at z [1/s], as what flows send follows what
    leaves the queue, a round trip later.

    A `share` of what leaves is traffic without windows; `trip` is the mean round trip [s].
    """

    share: float
    trip: float

    def by_flight(self, z: Array, trip: float) -> Array:
        """Answer to the flight of a flow with this round trip [s]."""
        return self.trip / trip / (1 - self.share * np.exp(-z * self.trip))

    def by_load(self, z: Array, passed: float) -> Array:
        """Answer to a load without windows, until the flows have given way [s]; in another queue at
        the same link it has `passed` a delay [s] of this one.
        """
        mixed = self.share * np.exp(-z * self.trip)
        given = (1 - self.share) * np.exp(-z * (self.trip - passed))
        return (1 - mixed - given) / (z * (1 - mixed))


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
        """Moduli of the eigenvalues [1/s]; 0 for what integrates."""
        return abs(np.linalg.eigvals(self.A)) if len(self.A) else np.zeros(0)


class PopulationLoop(NamedTuple):
    """The loop around link `k` of a network in the fluid model's version.

    `members` has those of each group, and `answers` how the queue law answers for each.
    """

    net: Network
    k: int
    members: list[list[Member]]
    answers: list[QueueAnswer]
    clock: Clock

    @property
    def frequencies(self) -> Array:
        """Frequencies [rad/s] that resolve the loop."""
        return self._one_of(1)

    def _one_of(self, every: int) -> Array:
        """One of so many of the frequencies [rad/s] that resolve the loop."""
        trips = [m.trip for own in self.members for m in own]
        low = _PER_TRIP[0] / max(trips)
        slow = [rate for rate in self.answers[0].rates if 0 < _SLOWER * rate < low]
        before = np.geomspace(_SLOWER * min(slow), low, _BEFORE) if slow else np.zeros(0)
        nodes = _PER_TRIP[::every]
        return np.unique(np.concatenate([before, nodes / max(trips), nodes / min(trips)]))

    def gain(self, omega: Array, every: int = 1) -> Array:
        """Response (W,) of the open loop at frequencies [rad/s], with its sign changed: at -1 it is
        critical; from one of so many of the frequencies that resolve the answers of flows.
        """
        return self._gain(1j * omega, lambda m: m.answering.on_axis(omega * m.trip, every))

    def _gain(self, z: Array, responses: Callable[[Member], Response]) -> Array:
        loop: Any = 0.0
        for own, answer in zip(self.members, self.answers, strict=True):
            mark, drop, _ = answer.emit(z)
            for m in own:
                found = responses(m)
                answered = found.by_mark * mark + found.by_loss * drop
                weight = m.number * self.clock.by_flight(z, m.trip)
                loop = loop - weight * answered * np.exp(-z * m.age)
        return loop

    def unstable(self) -> int:
        """Number of unstable roots, by the turns of 1 + L around 0; what integrates begins a
        quarter of a turn early. Raises NoLoop if the turns are no whole number.

        A few frequencies will do where 1 + L is larger than its change by taking half as many:
        such a change does not move it around 0 (Rouche).
        """
        for every in _SPARSE:
            omega = self._one_of(every)
            few, fewer = (1 + self.gain(omega, n) for n in (every, 2 * every))
            turned = np.angle(few[1:] / few[:-1])
            if np.all(abs(few - fewer) < abs(few)) and np.all(abs(turned) < math.pi / 2):
                break
        else:
            turned = self._turns()
        integrating = int((self.answers[0].rates < _INTEGRATES / self.clock.trip).sum())
        roots = -turned.sum() / math.pi + integrating / 2
        if abs(roots - round(roots)) > _WHOLE or round(roots) < 0:
            raise NoLoop(f"the loop makes {roots:.3g} half turns, which is no count of roots")
        return round(roots)

    def _turns(self) -> Array:
        """Turns [rad] of 1 + L between frequencies, more of them where it is nearest to 0."""
        omega = self.frequencies
        value = 1 + self.gain(omega)
        for _ in range(_REFINED):
            k = int(np.clip(np.argmin(abs(value)), 1, len(omega) - 2))
            more = np.linspace(omega[k - 1], omega[k + 1], _BETWEEN)[1:-1]
            omega = np.concatenate([omega, more])
            omega, first = np.unique(omega, return_index=True)
            value = np.concatenate([value, 1 + self.gain(more)])[first]
        return np.angle(value[1:] / value[:-1])

    def roots(self, unstable: int) -> Array:
        """Roots (k,) [1/s] from the right, conjugates left out, that Newton's method finds from the
        real axis and from frequencies at which the loop is nearly critical. There may be others
        left of the imaginary axis; none are given if the unstable ones are not as many as counted.
        """
        omega = self.frequencies
        near: Array = abs(1 + self.gain(omega))
        lowest = np.flatnonzero((near[1:-1] < near[:-2]) & (near[1:-1] < near[2:])) + 1
        first = omega[lowest[np.argsort(near[lowest])]]
        scale = 1 / self.clock.trip
        few = np.concatenate([
            1j * first[:_SOUGHT], 1j * first[:_SOUGHT] + _ASIDE * scale, -scale * _ON_AXIS
        ])  # fmt: skip
        grid = np.add.outer(_RIGHT, 1j * _UP).ravel() * scale
        for starts in (few, np.concatenate([few, 1j * first, grid])):
            found = self._polished(starts)
            right = sum(2 if root.imag > 0 else 1 for root in found if root.real > 0)
            if right == unstable:
                return np.array(found, complex)
        return np.zeros(0, complex)

    def _polished(self, starts: Array) -> list[complex]:
        """Roots to which Newton's method leads, from the right."""
        scale, z = 1 / self.clock.trip, starts
        step: Any = z
        with np.errstate(all="ignore"):
            for _ in range(_STEPS):
                value, beside = np.split(self._at(np.concatenate([z, z * (1 + _BUMP)])), 2)
                step = value * z * _BUMP / (beside - value)
                z = z - step
                z = np.where(abs(np.real(z)) > _FAR * scale, np.nan, z)
        sound = np.isfinite(z) & (abs(step) <= _SAME * abs(z)) & (np.imag(z) >= -_SAME * abs(z))
        found: list[complex] = []
        for root in z[sound]:
            real = abs(root.imag) <= _SAME * abs(root)
            if all(abs(root - other) > _ALIKE * abs(root) for other in found):
                found.append(complex(root.real, 0.0) if real else complex(root))
        return sorted(found, key=lambda root: -root.real)

    def _at(self, z: Array) -> Array:
        """1 + L at z [1/s]."""
        return 1 + self._gain(z, lambda m: m.answering.at(z * m.trip))


def find_loop(eq: Equilibrium) -> PopulationLoop:
    """The loop at an equilibrium of a population.

    Raises NoLoop with the reason if it is not known.
    """
    net, k, op = steady(eq.net), _only_queue(eq), eq.op
    link, queues = net.links[k], tuple(op.queues)
    members, answers, slowed = [], [], 0.0
    for name, flows, rate in zip(net.flow_names, net.flows, op.rates, strict=True):
        signal = received(flows, tuple(op.signals[j] for j in flows.route))
        if k not in flows.route:
            raise NoLoop(f"flows.{name} does not pass links.{net.link_names[k]}")
        if any(float(op.signals[j].either) > 0 for j in flows.route if j != k):
            raise NoLoop(f"flows.{name} receives signals of several links")
        if not max(marks_seen(flows, signal), signal.drop) > 0:
            raise NoLoop(f"flows.{name} receives no signal from links.{net.link_names[k]}")
        if type(flows.feedback).flight_size is not AbstractFeedback.flight_size:
            raise NoLoop(f"flows.{name}: flights that follow the marks of ACKs are not known")
        if flows.window.states:
            raise NoLoop(
                f"flows.{name}: responses of {flows.window.name}, which remembers, are not known"
            )
        trips = np.ravel(round_trip(net, flows, queues))
        path = explicit_delays(net, flows, queues).trips[flows.route.index(k)]
        numbers, ages, rates = (
            np.broadcast_to(np.ravel(v), trips.shape)
            for v in (flows.n, flows.feedback.age(path), rate)
        )
        alike = not needs_round_trip(flows, float(signal.drop))
        found = [Answering(flows, signal, float(t)) for t in (trips[:1] if alike else trips)]
        members.append([
            Member(float(n), float(t), float(age), found[0 if alike else i])
            for i, (n, t, age) in enumerate(zip(numbers, trips, ages, strict=True))
        ])  # fmt: skip
        answers.append(_answer(link, op.laws[k], op.queues[k], op.lost[k], flows))
        slowed += float((numbers * rates / trips).sum())
    share = float(link.cross) / float(link.capacity)
    clock = Clock(share, (1 - share) * float(link.capacity) / slowed)
    return PopulationLoop(net, k, members, answers, clock)


def _only_queue(eq: Equilibrium) -> int:
    """The link with the queue; raises NoLoop if there is none, or another equilibrium."""
    if eq.status != "regular":
        why = f": {eq.message}" if eq.message else ""
        raise NoLoop(f"the equilibrium is {eq.status}{why}")
    for name, group in eq.flows.items():
        if float(np.min(group.window)) < _LEAST_WINDOW:
            raise NoLoop(
                f"flows.{name}: windows of {np.min(group.window):.3g} packets; timers decide below "
                f"{_LEAST_WINDOW:g}"
            )
    busy = [k for k, backlog in enumerate(eq.op.backlogs) if float(backlog) > 0]
    if len(busy) != 1:
        names = ", ".join(f"links.{eq.net.link_names[k]}" for k in busy) or "none"
        raise NoLoop(f"the loop of a population is known for one link with a queue: {names}")
    return busy[0]


def _answer(link: Link, x: Any, queue: Num, lost: Num, flows: Flows) -> QueueAnswer:
    """How the law of a link answers its queue, as flows receive it."""
    state, shape = ravel(x)
    n, offered = len(state), offered_rate(link, queue, lost)

    def present(v: Num) -> Num:
        x, q, arrivals = shape(v[:n]), v[n], v[n + 1]
        rate = queue_law_rate(link, x, q, arrivals, ticks=True)
        seen = received(flows, (emit_signal(link, x, q, arrivals),))
        average = link.queue.average(x, q) + 0.0 * q
        return ops.concatenate([flatten(rate), flatten([seen.mark, seen.drop, average])])

    slopes = jacobian(present, np.append(state, [queue, offered]))
    return QueueAnswer(
        slopes[:n, :n], slopes[:n, n], slopes[:n, n + 1],
        slopes[n:, :n], slopes[n:, n], slopes[n:, n + 1],
    )  # fmt: skip
