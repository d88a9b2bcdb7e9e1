"""How one flow of a population answers signals: linear responses of its flight, and its noise.

A signal that a sender reacts to changes its flight for some round trips, and one more of them what
would have followed. Senders answer by the stationary law of their windows.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.orbits import OrbitLaw, decay
from fluidcc.analysis.population import Population, distinct, stationary_law
from fluidcc.analysis.sending import Reaction
from fluidcc.laws.law import Signal
from fluidcc.model.rates import marks_seen
from fluidcc.programs import machine_code, map_tree
from fluidcc.scenario.network import Flows

_NUDGE = 0.03  # of a probability, for the slope of the mean flight
_SHORTEST = 1e-9  # round trips; keeps ramps finite
_FLAT = 1e-9  # packets: an answer that is none
_RAREST = 1e-300  # keeps quotients finite
_AT_ONCE = 64  # frequencies, for memory and its caches
_TAIL_FINER = 8  # times as many frequencies in a round trip as beyond
_STILL = 1e-6  # rad per round trip: slow enough for the mean

PER_TRIP = np.unique(np.concatenate([
    np.geomspace(1e-3, 0.2, 64), np.linspace(0.2, 12.0, 720), np.geomspace(12.0, 100.0, 60)
]))  # fmt: skip
"""Frequencies that resolve what happens within some round trips [rad per round trip]."""
_BODY = int(np.searchsorted(PER_TRIP, 12.0))  # of them are next to each other


@functools.cache
def sparse_nodes(every: int) -> Array:
    """Indices of one of so many of the frequencies; of more of those beyond two periods, which are
    sparse.
    """
    last = len(PER_TRIP) - 1
    tail = np.arange(_BODY, last, max(every // _TAIL_FINER, 1))
    return np.concatenate([np.arange(0, _BODY, every), tail, [last]])


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


def _until_listening(z: Array, kind: Reaction, late: Array, flight: float) -> Array:
    """Transform (M, W) of the flight beyond its mean from a reaction until the sender listens, with
    the factor `late` of that delay; if it listens at once, of the flight beyond that of the window
    left.
    """
    silence, waits = np.maximum(kind.silence, _SHORTEST), kind.dwell > 0
    before = np.where(waits, kind.before - flight, kind.before - kind.after)
    after = np.where(waits, kind.after - flight, 0.0)
    fall = decay(z, silence)
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


def _reactions(found: Population, z: Array) -> tuple[Array, Array]:
    """Of marks first, then of losses of each kind, sums (K, W) over the reactions of a flow, per
    round trip, of the squares and of the transforms at z [per round trip] of what each does to its
    flight.
    """
    w, flights, flight = found.windows, found.flights, found.flight[0]
    z = z[None]
    kinds = [map_tree(lambda v: np.broadcast_to(v, w.shape), kind) for kind in found.kinds]
    rates = [found.ack_ratio[0] * kind.rate for kind in kinds]
    crossing = found.crossing / found.ack_ratio[0]
    below = [np.minimum(place.astype(int), len(w) - 2) for place in found.places]
    above = [place - k for place, k in zip(found.places, below, strict=True)]
    late = [decay(z, kind.dwell) for kind in kinds]
    spent = [
        _until_listening(z, kind, delay, flight) for kind, delay in zip(kinds, late, strict=True)
    ]
    met = np.sum(rates, axis=0)
    leaving = z + met
    stay = np.zeros(leaving.shape, complex)
    stay[:-1] = decay(z, crossing) * np.exp(-met[:-1] * crossing)
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
    pairs = list(zip([found.time * r for r in rates], changes, strict=True))
    powers = np.array([(often * abs(change) ** 2).sum(axis=0) for often, change in pairs])
    means = np.array([(often * change).sum(axis=0) for often, change in pairs])
    return powers, means


class Answering:
    """A flow that answers signals by its stationary law, that of one signal and round trip.

    `probabilities` are those of marks and losses. `rises` are the derivatives of the mean flight by
    these and by the logarithm of the round trip: at frequency 0 it answers as they say. Reactions
    alone give somewhat less: signals on ACKs that come in bunches after a reaction, and the repairs
    that a loss more brings, are in the stationary law by their means.
    """

    def __init__(
        self, law: Population | OrbitLaw, probabilities: tuple[float, float], rises: Array
    ) -> None:
        self.law, self._probabilities = law, probabilities
        _, means, by_trip = self._sums(np.array([1j * _STILL]))
        answers = *(float(mean[0].real) for mean in means), float(by_trip[0].real)
        least = 0.0, 0.0, _FLAT
        self._gains = [
            rise / given if abs(given) > flat else 0.0
            for rise, given, flat in zip(rises, answers, least, strict=True)
        ]
        self._known = np.full((len(Response._fields), len(PER_TRIP)), np.nan, complex)
        self._slopes: dict[int, Array] = {}

    def _sums(self, z: Array) -> tuple[list[Array], list[Array], Array]:
        """Sums over reactions to marks, and to losses: of squares, and of what they do; and what a
        longer round trip does.
        """
        parts = np.array_split(z, max(1, -(-len(z) // _AT_ONCE)))
        each = [self._summed(part) for part in parts]
        powers, means, (by_trip,) = (np.concatenate(v, axis=1) for v in zip(*each, strict=True))
        summed = [[v[0], sum(v[1:], np.zeros(len(z)))] for v in (powers, means)]
        return *summed, by_trip  # type: ignore[return-value]

    def _summed(self, z: Array) -> tuple[Array, Array, Array]:
        """The same of each kind of reaction (K, W), and of the round trip (1, W)."""
        if isinstance(self.law, Population):
            return *_reactions(self.law, z), np.zeros((1, len(z)))
        flight, row = self.law.flight[0], z[None]
        kinds = self.law.kinds
        away = [_until_listening(row, own, decay(row, own.dwell), flight) for own in kinds]
        return self.law.sums(z, away)

    def at(self, z: Array) -> Response:
        """Responses at z [per round trip]."""
        powers, means, by_trip = self._sums(z)
        by_mark, by_loss, by_trip = (
            gain * own for gain, own in zip(self._gains, (*means, by_trip), strict=True)
        )
        marked, lost = self._probabilities
        return Response(
            by_mark, by_loss, by_trip, powers[0] + powers[1], marked * by_mark + lost * by_loss
        )

    def _slopes_at(self, every: int, k: Array) -> Array:
        """Slopes of the responses at nodes k of one of so many frequencies; the responses at these
        are known then, too.
        """
        chosen = sparse_nodes(every)
        if every not in self._slopes:
            self._slopes[every] = np.full((len(self._known), len(chosen)), np.nan, complex)
        slopes = self._slopes[every]
        new = np.unique(k[np.isnan(slopes[0, k])])
        if new.size:
            left, right = np.maximum(new - 1, 0), np.minimum(new + 1, len(chosen) - 1)
            places = chosen[np.stack([left, new, right])]
            unknown = np.unique(places[np.isnan(self._known[0, places])])
            if unknown.size:
                self._known[:, unknown] = np.stack(self.at(1j * PER_TRIP[unknown]))
            before, after = np.diff(PER_TRIP[places], axis=0)
            falls, rises = np.moveaxis(np.diff(self._known[:, places], axis=1), 1, 0)
            inside = before * after > 0
            weight = np.where(inside, before / (before + after), after > 0)
            by_left, by_right = (
                change / np.where(way > 0, way, 1.0)
                for change, way in ((falls, before), (rises, after))
            )
            slopes[:, new] = (1 - weight) * by_left + weight * by_right
        return slopes[:, k]

    def on_axis(self, omega: Array, every: int = 1) -> Response:
        """Responses at frequencies [rad per round trip], by cubic interpolation between one of so
        many of those that resolve them.
        """
        chosen = sparse_nodes(every)
        nodes = PER_TRIP[chosen]
        omega = np.clip(omega, nodes[0], nodes[-1])
        k = np.clip(np.searchsorted(nodes, omega) - 1, 0, len(nodes) - 2)
        da, db = np.split(self._slopes_at(every, np.concatenate([k, k + 1])), 2, axis=1)
        a, b = self._known[:, chosen[k]], self._known[:, chosen[k + 1]]
        gap = nodes[k + 1] - nodes[k]
        t = (omega - nodes[k]) / gap
        rise = b - a
        bent = (1 - t) * (gap * da - rise) - t * (gap * db - rise)
        found = Response(*(a + t * (rise + (1 - t) * bent)))
        return found._replace(power=np.real(found.power))


def answer(flows: Flows, signal: Signal, trips: Array) -> list[Answering]:
    """How flows answer under signals at round trips [s], all of shape (B,); equal ones are one."""
    first, all_of = distinct(flows, signal, trips)
    together = 1 if flows.window.states else len(first)  # orbits take much memory
    found: list[Answering] = []
    for k in range(0, len(first), together):
        columns = first[k : k + together]
        found += _answers(flows, map_tree(lambda v, c=columns: v[c], signal), trips[columns])
    return [found[k] for k in all_of]


def _answers(flows: Flows, signal: Signal, trips: Array) -> list[Answering]:
    law, count = stationary_law(flows, signal, trips), len(trips)
    seen = {"mark": marks_seen(flows, signal), "drop": signal.drop}
    varied: list[Any] = [name for name, v in seen.items() if np.any(v > 0)] or ["mark"]
    nudges = list(itertools.product([*varied, None], (1 - _NUDGE, 1 + _NUDGE)))
    if not isinstance(law, OrbitLaw):
        nudges = nudges[:-2]
    moved = [
        signal._replace(**{name: by * getattr(signal, name)}) if name else signal
        for name, by in nudges
    ]
    beside = stationary_law(
        flows,
        map_tree(lambda *v: np.concatenate(v), *moved),
        np.concatenate([trips if name else by * trips for name, by in nudges]),
        top=np.tile(law.windows[-1], len(nudges)),
    )
    found = np.diff(beside.flight.reshape((-1, 2, count)), axis=1)[:, 0] / (2 * _NUDGE)
    rises = dict(zip([name for name, _ in nudges[::2]], found, strict=True))
    by = [
        rises[name] / np.maximum(v, _RAREST) if name in rises else 0.0 * v
        for name, v in seen.items()
    ]
    by.append(rises.get(None, 0.0 * trips))
    return [
        Answering(
            map_tree(lambda v, b=b: v[..., b : b + 1].copy() if np.ndim(v) else v, law),
            (float(seen["mark"][b]), float(seen["drop"][b])),
            np.array([each[b] for each in by]),
        )
        for b in range(count)
    ]
