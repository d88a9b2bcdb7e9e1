"""The stationary law of one flow among many, under steady signals.

Between reactions the window follows its growth rule from ACK to ACK; a mark or a loss takes it to
another window, where it stays while the sender does not listen. This is a semi-Markov process on a
grid of windows: growth along the grid is exact, what a reaction leaves lies between two points with
the shares that keep its mean. Growth leads up by one point and reactions lead down, so that the
visits follow from the top down, without a system of equations.

Time is in round trips. Packets in flight are the whole packets of the window: after a reaction
nothing is sent until ACKs have brought the flight down to the new window, and the packets
acknowledged are those that were sent. Marks and losses are independent from packet to packet.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.orbits import OrbitLaw, carried, law_of_orbits
from fluidcc.analysis.sending import Reaction, Sending, share_taken
from fluidcc.laws.law import SIGNALS, Ack, Signal
from fluidcc.ops import Num
from fluidcc.programs import compiled, in_columns, machine_code, map_tree
from fluidcc.scenario.network import Flows

POINTS = 256
"""Windows of the grid."""

_TRIED = 256  # windows, in the search for the largest one
_FAR = 20.0  # expected reactions on the way from the smallest window to the largest
_LARGEST = 1e7  # packets, if a law has no cap
_LEAST = 1e-9  # packets in flight
_MOST_MET = 1.0  # reactions expected between two points of the grid
_NARROWEST = 1e-6  # range of the grid, of its smallest window
_TINY = 1e-300  # keeps quotients of zeros finite
_COLUMNS = 4, 64  # signals at once in a compiled program
_ONE = np.ones(1)


class Population(NamedTuple):
    """The stationary law of one flow; (B,) for each signal and round trip."""

    flight: Num  # mean packets in flight
    window: Num  # mean over time [packet]
    windows: Num  # (M, B), between the points of the grid, and the last point
    flights: Num  # (M, B), of these windows
    crossing: Num  # (M - 1, B), round trips from point to point if nothing happens, at a ratio of 1
    time: Num  # (M, B), the shares of time at each window, listening
    reactions: tuple[Num, ...]  # per round trip, of each kind, at each window (M, B)
    kinds: tuple[Reaction, ...]  # marks, then losses, if there are any
    places: tuple[Num, ...]  # (M, B), points of the grid below the windows that each kind leaves
    ack_ratio: Num  # ACKs, over those that the flight a round trip ago would bring
    lost_below: Num  # visits that lead below the grid, of all: 0 but for rounding

    @property
    def taken(self) -> Num:
        """Share of the packets in flight that reactions take away, per round trip (B,)."""
        return share_taken(self.reactions, self.kinds, self.flight)


def why_no_population(flows: Flows) -> str:
    """Why the stationary law of a group is not known; empty if it is."""
    law = flows.window
    if numbers := law.written or flows.feedback.written:
        return f"{law.name} acts on the {SIGNALS[numbers[0]].name}"
    if law.states and carried(law) is None:
        return f"{law.name} remembers more than its last reaction"
    if law.is_paced:
        return f"{law.name} paces its packets"
    if law.draws:
        return f"{law.name} draws random numbers of its own"
    if not isinstance(law.rounds(Ack(1.0, 0.0, 1.0)), int):
        return f"{law.name} does not listen for longer than a round trip"
    if flows.traffic.starts:
        return f"its traffic, {flows.traffic.name}, begins and ends"
    if flows.loss.window(0.0, 1.0) is not None:
        return f"its loss closure, {flows.loss.name}, gives windows alone"
    return ""


def _largest(flows: Flows, signal: Signal, rtt: Num) -> Num:
    """The window (1, B) that is next to never reached."""
    low, high = flows.window.min_window, ops.minimum(flows.window.max_window, _LARGEST)
    steps = np.linspace(0.0, 1.0, _TRIED)[:, None]
    w = low * (high / low) ** steps + 0.0 * rtt
    width = w[1:] - w[:-1]
    _, growth, kinds = Sending(flows, signal, rtt, width).reactions(w[:-1] + width / 2)
    rate = sum(kind.rate for kind in kinds)
    met = rate * width / ops.maximum(growth, ops.maximum(rate * width / (2 * _FAR), _TINY))
    before = met.cumsum(axis=0) - met
    share = ops.clip((_FAR - before) / ops.maximum(met, _TINY), 0.0, 1.0)
    reach = (share * width).sum(axis=0, keepdims=True)
    return w[:1] + ops.maximum(reach, _NARROWEST * w[:1])


class _Rules(NamedTuple):
    """What the rules of a sender do on a grid of M windows; (M, B) but for `crossing`."""

    windows: Num  # between the points of the grid, and the last point
    flights: Num
    acks: Num  # per round trip
    crossing: Num  # (M - 1, B), round trips from point to point if nothing happens
    kinds: tuple[Reaction, ...]
    places: tuple[Num, ...]  # points of the grid below the windows that each kind leaves


@compiled(static_argnames="points")
def _rules(flows: Flows, signal: Signal, rtt: Num, top: Num | None, points: int) -> _Rules:
    """The rules under signals at round trips [s] (B,), up to the windows `top` (B,); `drop` is None
    if nothing is lost.
    """
    if signal.drop is None:
        signal = signal._replace(drop=np.zeros(np.shape(rtt)))
    signal, rtt = map_tree(_as_row, signal), _as_row(rtt)
    low = flows.window.min_window
    top = _largest(flows, signal, rtt) if top is None else _as_row(top)
    width = (top - low) / (points - 1)
    index = np.arange(float(points))[:, None]
    grid = low + width * index
    w = grid + width / 2  # of reactions; the last point is the largest window, from there on
    sender = Sending(flows, signal, rtt, width)
    acks, growth, kinds = sender.reactions(w)
    kinds = map_tree(lambda v: v + 0.0 * w, kinds)
    rate: Any = sum(kind.rate for kind in kinds)
    least = ops.maximum(rate * width / _MOST_MET, _TINY)  # where windows next to never grow
    places = tuple(ops.clip((kind.landing - low) / width, 0.0, index) for kind in kinds)
    crossing = width / ops.maximum(growth, least)[:-1]
    return _Rules(ops.minimum(w, top), sender.flight(w), acks, crossing, kinds, places)


@machine_code(
    "UniTuple(float64[:, ::1], 2)"
    "(float64[::1], float64[:, ::1], int64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1])"
)
def _visits(top, keep, below, lower, upper):
    """Visits to each point of a grid (M, B) from the top down, if reactions there, as many as
    `top` (B,), lead to it; and what leads below the grid (1, B).

    From a point the share `keep` (M, B) comes to the next one; reactions of each kind lead to the
    points `below` (K, M, B) and to those above these, in a grid as a vector (M B,), with their
    shares `lower` and `upper`.
    """
    kinds, points, columns = below.shape
    landed = np.zeros(points * columns)
    visits = np.zeros((points, columns))
    risen, entered = 0.0 * top, top
    for k in range(points - 1, -1, -1):
        if k < points - 1:
            entered = risen / keep[k]
        visits[k] = entered
        reacting = entered - risen
        for j in range(kinds):
            at = below[j, k]
            landed[at] += reacting * lower[j, k]
            landed[at + columns] += reacting * upper[j, k]
        risen = entered - landed[k * columns : (k + 1) * columns]
    return visits, risen.reshape((1, columns))


def population(
    flows: Flows, signal: Signal, rtt: Num, points: int = POINTS, top: Num | None = None
) -> Population:
    """The stationary law of a flow under signals at round trips [s], all of shape (B,), in NumPy.

    The window law must have no memory but its window; see `orbits` for others. On one grid, up to
    given windows `top` (B,), the law is smooth.
    """
    lossy = bool(np.any(signal.drop > 0))
    signal = signal if lossy else signal._replace(drop=None)
    flows = dataclasses.replace(flows, n=_ONE, rtt=_ONE)  # one program for groups of all sizes
    return _population(flows, signal, rtt, top, points=points)


@in_columns(*_COLUMNS)
@np.errstate(all="ignore")
def _population(flows: Flows, signal: Signal, rtt: Num, top: Num | None, points: int) -> Population:
    """The same; `drop` is None if nothing is lost."""
    rules = _rules(flows, signal, rtt, top, points=points)
    kinds, crossing = rules.kinds, rules.crossing
    rates = np.stack([kind.rate for kind in kinds])
    rate, places = rates.sum(axis=0), np.stack(rules.places)
    shares = rates / np.maximum(rate, _TINY)
    met, columns = rate[:-1] * crossing, np.size(rtt)
    below = np.minimum(np.floor(places), points - 2.0)
    upper = places - below
    visits, below_low = _visits(
        rate[-1],
        np.concatenate([np.exp(-met), rate[-1:]]),
        below.astype(np.int64) * columns + np.arange(columns),
        shares * (1 - upper),
        shares * upper,
    )
    entered = visits[:-1]
    reacting = np.concatenate([entered * -np.expm1(-met), visits[-1:]])
    time = np.concatenate([entered * crossing * _mean_survival(met), np.ones((1, columns))])
    by_kind = [reacting * share for share in shares]

    def over_reactions(of: Callable[[Reaction], Num]) -> Num:
        return sum((r * of(kind)).sum(axis=0) for r, kind in zip(by_kind, kinds, strict=True))

    # The ACKs of all time are the packets in flight of all time; listening, both go by the ACK.
    flying, heard = (time * rules.flights).sum(axis=0), (time * rules.acks).sum(axis=0)
    away = over_reactions(lambda kind: kind.flight)
    acknowledged = heard + over_reactions(lambda kind: kind.acks) - away
    ack_ratio = flying / np.maximum(acknowledged, _LEAST * heard)
    whole = time.sum(axis=0) / ack_ratio + over_reactions(lambda kind: kind.dwell)
    windows = over_reactions(lambda kind: kind.window * kind.dwell)
    return Population(
        flight=(flying / ack_ratio + away) / whole,
        window=((time * rules.windows).sum(axis=0) / ack_ratio + windows) / whole,
        windows=rules.windows,
        flights=rules.flights,
        crossing=crossing,
        time=time / (ack_ratio * whole)[None],
        reactions=tuple(r / whole[None] for r in by_kind),
        kinds=kinds,
        places=rules.places,
        ack_ratio=ack_ratio,
        lost_below=below_low[0] / np.maximum(entered.sum(axis=0), _TINY),
    )


class Moments(NamedTuple):
    """Means and standard deviations over time of window and flight [packet]."""

    window: float
    window_std: float
    flight: float
    flight_std: float


def moments(law: Population | OrbitLaw) -> Moments:
    """Moments of a stationary law for one signal and round trip (B = 1), in NumPy."""
    time, w, flights = law.time[:, 0], law.windows[:, 0], law.flights[:, 0]
    mean, flight = float(law.window[0]), float(law.flight[0])
    windows, squares = float(time @ w**2), float(time @ flights**2)
    for reacting, kind in zip(law.reactions, law.kinds, strict=True):
        windows += float((reacting * kind.dwell * kind.window**2).sum())
        fallen = kind.silence * (kind.before**2 + kind.before * kind.after - 2 * kind.after**2) / 3
        squares += float((reacting * (fallen + kind.dwell * kind.after**2)).sum())
    window_std, flight_std = (
        math.sqrt(max(v, 0.0)) for v in (windows - mean**2, squares - flight**2)
    )
    return Moments(mean, window_std, flight, flight_std)


def _as_row(v: Num) -> Num:
    return v.reshape((1, -1))


def _is_timed(flows: Flows) -> bool:
    """Whether windows grow by time too."""
    state, law = flows.window.start(7.0), flows.window
    changes = (law.on_ack(state, Ack(0.0, time, 1.0)) for time in (0.5, 1.0))
    return any(bool(law.window(change)) for change in changes)


def needs_round_trip(flows: Flows, drop: Num) -> Num:
    """Whether the round trip counts beyond the scale of time: for timers, and growth by time."""
    return (drop > 0) | _is_timed(flows)


def stationary_law(
    flows: Flows, signal: Signal, rtt: Num, finer: int = 1, top: Num | None = None
) -> Population | OrbitLaw:
    """The stationary law of a flow under signals at round trips [s], all of shape (B,), on a grid
    so many times finer than usual, or one up to windows `top` if they are given.
    """
    if flows.window.states:
        return law_of_orbits(flows, map_tree(_as_row, signal), _as_row(rtt), finer)
    return population(flows, signal, rtt, finer * POINTS, top)


def mean_window(flows: Flows, signal: Signal, rtt: Num, top: Num | None = None) -> tuple[Num, Num]:
    """Mean window and flight of one flow under signals at round trips [s], all of shape (B,), on
    grids up to windows `top` if they are given.

    Equal ones are found once: round trips matter for losses and for growth by time alone.
    """
    if ops.traced(*signal, rtt):
        found = stationary_law(flows, signal, rtt)
        return found.window, found.flight
    first, all_of = distinct(flows, signal, rtt)
    top = None if top is None else top[first]
    found = stationary_law(flows, map_tree(lambda v: v[first], signal), rtt[first], top=top)
    return found.window[all_of], found.flight[all_of]


def distinct(flows: Flows, signal: Signal, rtt: Num) -> tuple[Num, Num]:
    """Numbers of the signals and round trips (B,) that differ, and which of them each is."""
    counts = np.where(needs_round_trip(flows, signal.drop), rtt, 0.0)
    read = [getattr(signal, name) for name in {"mark", "drop", *flows.window.signals}]
    return np.unique(np.stack([*read, counts]), axis=1, return_index=True, return_inverse=True)[1:]


def grid_error(flows: Flows, signal: Signal, rtt: Num) -> Num:
    """Relative change of the mean flight (B,) on a grid twice as fine, or what is left of the
    visits at the bottom, if that is more.
    """
    first, all_of = distinct(flows, signal, rtt)
    columns = map_tree(lambda v: v[first], signal), rtt[first]
    coarse, fine = (stationary_law(flows, *columns, finer) for finer in (1, 2))
    error = abs(coarse.flight / fine.flight - 1)
    if not isinstance(fine, OrbitLaw):
        error = ops.maximum(error, abs(fine.lost_below))
    return error[all_of]


def _mean_survival(met: Num) -> Num:
    """Mean of exp(-u met) over u from 0 to 1."""
    some = np.where(met < 1e-8, 1.0, met)
    return np.where(met < 1e-8, 1.0 - met / 2, -np.expm1(-some) / some)
