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
from fluidcc.analysis.orbits import OrbitLaw
from fluidcc.analysis.population import Population, needs_round_trip, stationary_law
from fluidcc.analysis.sending import Reaction
from fluidcc.analysis.steady_laws import offered_rate
from fluidcc.laws.law import AbstractFeedback, Signal
from fluidcc.model.delays import explicit_delays, round_trip
from fluidcc.model.fluid import steady
from fluidcc.model.rates import emit_signal, marks_seen, queue_law_rate, received
from fluidcc.ops import Num
from fluidcc.programs import flatten, jacobian, map_tree, ravel
from fluidcc.scenario.network import Flows, Link, Network

_LEAST_WINDOW = 2.0  # packets; in smaller ones a sender waits for its timer
_NUDGE = 0.03  # of a probability, for the slope of the mean flight
_SHORTEST = 1e-9  # round trips; keeps ramps finite
_FLAT = 1e-9  # packets: an answer that is none
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

    `by_mark` and `by_loss` are those of its mean flight to the probabilities of marks and losses,
    `by_trip` to the logarithm of the round trip, as windows that remember grow by time;
    `power` is the spectral density of its flight under independent signals [packet^2 x round
    trip], and `mean` that of signals which come evenly: what all of a round trip do to the flight.
    """

    by_mark: Array
    by_loss: Array
    by_trip: Array
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
    value = np.zeros((len(w) + 1, 2, z.size), complex)  # of 1 at the lowest; of what is given
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


class Answering:
    """A flow that answers signals at a round trip [s] by its stationary law.

    At frequency 0 the mean flight answers as its derivative says. Reactions alone give somewhat
    less: signals on ACKs that come in bunches after a reaction, and the repairs that a loss more
    brings, are in the stationary law by their means.
    """

    def __init__(self, flows: Flows, signal: Signal, trip: float) -> None:
        def law(trip: float = trip, **changed: float) -> Population | OrbitLaw:
            one = signal._replace(**changed)
            numbers = Signal(*(np.reshape(np.asarray(v, float), (1,)) for v in one))
            return stationary_law(flows, numbers, np.array([trip]))

        def slope(**at: float) -> float:  # of the mean flight, by the logarithm of a number
            low, high = (
                float(law(**{name: (1 + side * _NUDGE) * v for name, v in at.items()}).flight[0])
                for side in (-1, 1)
            )
            return (high - low) / (2 * _NUDGE)

        self.law = law()
        seen = {"mark": float(marks_seen(flows, signal)), "drop": float(signal.drop)}
        self._probabilities = tuple(seen.values())
        _, means, by_trip = self._sums(np.array([1j * _STILL]))
        self._gains = [
            slope(**{name: float(getattr(signal, name))}) / float(mean[0].real) / probability
            if probability > 0
            else 0.0
            for (name, probability), mean in zip(seen.items(), means, strict=True)
        ]
        answers = float(by_trip[0].real)
        self._trip_gain = slope(trip=trip) / answers if abs(answers) > _FLAT else 0.0
        self._table = np.stack(self.at(1j * _PER_TRIP))
        self._slopes = np.gradient(self._table, _PER_TRIP, axis=1)

    def _sums(self, z: Array) -> tuple[list[Array], list[Array], Array]:
        """Sums over reactions to marks, and to losses: of squares, and of what they do; and what a
        longer round trip does.
        """
        by_trip = np.zeros(len(z))
        if isinstance(self.law, OrbitLaw):
            flight = self.law.flight[0]
            powers, means, by_trip = self.law.sums(
                z, [_until_listening(z[None], kind, flight) for kind in self.law.kinds]
            )
        else:
            pairs = list(zip(*_reactions(self.law, z), strict=True))
            means = [(m * c).sum(axis=0) for m, c in pairs]
            powers = [(m * abs(c) ** 2).sum(axis=0) for m, c in pairs]
        summed = [[each[0], sum(each[1:], np.zeros(len(z)))] for each in (powers, means)]
        return *summed, by_trip  # type: ignore[return-value]

    def at(self, z: Array) -> Response:
        """Responses at z [per round trip]."""
        powers, means, by_trip = self._sums(z)
        by_mark, by_loss = (gain * mean for gain, mean in zip(self._gains, means, strict=True))
        marked, lost = self._probabilities
        return Response(
            by_mark, by_loss, self._trip_gain * by_trip, powers[0] + powers[1],
            marked * by_mark + lost * by_loss,
        )  # fmt: skip

    def on_axis(self, omega: Array) -> Response:
        """Responses at frequencies [rad per round trip], by cubic interpolation."""
        omega = np.clip(omega, _PER_TRIP[0], _PER_TRIP[-1])
        k = np.clip(np.searchsorted(_PER_TRIP, omega) - 1, 0, len(_PER_TRIP) - 2)
        gap = _PER_TRIP[k + 1] - _PER_TRIP[k]
        t = (omega - _PER_TRIP[k]) / gap
        (a, b), (da, db) = ((v[:, k], v[:, k + 1]) for v in (self._table, self._slopes))
        rise = b - a
        bent = (1 - t) * (gap * da - rise) - t * (gap * db - rise)
        found = Response(*(a + t * (rise + (1 - t) * bent)))
        return found._replace(power=np.real(found.power))


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
        trips = [m.trip for own in self.members for m in own]
        low = _PER_TRIP[0] / max(trips)
        slow = [rate for rate in self.answers[0].rates if 0 < _SLOWER * rate < low]
        before = np.geomspace(_SLOWER * min(slow), low, _BEFORE) if slow else np.zeros(0)
        parts = (before, _PER_TRIP / max(trips), _PER_TRIP / min(trips))
        return np.unique(np.concatenate(parts))

    def gain(self, omega: Array) -> Array:
        """Response (W,) of the open loop at frequencies [rad/s], with its sign changed: at -1 it is
        critical.
        """
        return self._gain(1j * omega, lambda m: m.answering.on_axis(omega * m.trip))

    def _gain(self, z: Array, responses: Callable[[Member], Response]) -> Array:
        loop: Any = 0.0
        capacity = float(self.net.links[self.k].capacity)
        for own, answer in zip(self.members, self.answers, strict=True):
            mark, drop, _ = answer.emit(z)
            for m in own:
                found = responses(m)
                answered = found.by_mark * mark + found.by_loss * drop
                answered = answered + found.by_trip / (capacity * m.trip)
                weight = m.number * self.clock.by_flight(z, m.trip)
                loop = loop - weight * answered * np.exp(-z * m.age)
        return loop

    def unstable(self) -> int:
        """Number of unstable roots, by the turns of 1 + L around 0; what integrates begins a
        quarter of a turn early. Raises NoLoop if the turns are no whole number.
        """
        omega = self.frequencies
        for _ in range(_REFINED):  # where the loop is nearest to critical
            k = int(np.clip(np.argmin(abs(1 + self.gain(omega))), 1, len(omega) - 2))
            omega = np.union1d(omega, np.linspace(omega[k - 1], omega[k + 1], _BETWEEN))
        turned = np.unwrap(np.angle(1 + self.gain(omega)))
        integrating = int((self.answers[0].rates < _INTEGRATES / self.clock.trip).sum())
        roots = (turned[0] - turned[-1]) / math.pi + integrating / 2
        if abs(roots - round(roots)) > _WHOLE or round(roots) < 0:
            raise NoLoop(f"the loop makes {roots:.3g} half turns, which is no count of roots")
        return round(roots)

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
