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

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.orbits import LATE, forgets, means_over_orbits
from fluidcc.analysis.orbits import POINTS as ORBIT_POINTS
from fluidcc.analysis.steady_laws import past_slow_start
from fluidcc.laws.law import Ack, Signal, Since
from fluidcc.laws.reaction import any_of, backed_off
from fluidcc.model.rates import acknowledgement, marks_seen
from fluidcc.ops import Num
from fluidcc.programs import compiled, in_columns, machine_code, map_tree, slope
from fluidcc.scenario.network import Flows, stands_still
from fluidcc.scenario.sender import sender_options

POINTS = 256
"""Windows of the grid."""

_TRIED = 256  # windows, in the search for the largest one
_FAR = 20.0  # expected reactions on the way from the smallest window to the largest
_LARGEST = 1e7  # packets, if a law has no cap
_DUPLICATES = 3.0  # ACKs that begin fast recovery
_CRITICAL = 2.0  # packets of a recovery that nothing repairs: the repair, the first one after it
_LEAST = 1e-9  # packets in flight
_MOST_MET = 1.0  # reactions expected between two points of the grid
_NARROWEST = 1e-6  # range of the grid, of its smallest window
_TINY = 1e-300  # keeps quotients of zeros finite
_COLUMNS = 4, 64  # signals at once in a compiled program
_EARLY = Since(time=0.5, round_trip=1.0, window=0.0)  # less than a round trip after it


class Reaction(NamedTuple):
    """Reactions of one kind, at the windows of a grid (M, B): how many per round trip of listening,
    the window left, and the time until the sender listens again [round trips]. Until then the
    window has its mean `window`, and ACKs come as given; during `silence` the flight falls evenly
    from `before` to `after`.

    If the sender listens at once, the time is 0, and during `silence` the flight is above that of
    the window left.
    """

    rate: Num
    landing: Num
    dwell: Num
    silence: Num
    before: Num
    after: Num
    window: Num
    acks: Num

    @property
    def flight(self) -> Num:
        """Integral of the flight until the sender listens again."""
        fallen = (self.before - self.after) * self.silence / 2
        return fallen + self.after * self.dwell


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
        fallen = (
            (met * ops.maximum(kind.before - kind.after, 0.0)).sum(axis=0)
            for met, kind in zip(self.reactions, self.kinds, strict=True)
        )
        return sum(fallen) / self.flight


def why_no_population(flows: Flows) -> str:
    """Why the stationary law of a group is not known; empty if it is."""
    law = flows.window
    if law.loads or flows.feedback.loads:
        return f"{law.name} acts on the load factor"
    if law.states and not forgets(law):
        return f"{law.name} remembers more than its last reaction"
    if flows.traffic.starts:
        return f"its traffic, {flows.traffic.name}, begins and ends"
    if flows.loss.window(0.0, 1.0) is not None:
        return f"its loss closure, {flows.loss.name}, gives windows alone"
    return ""


def listens_at_once(flows: Flows) -> bool:
    """Whether senders react again less than a round trip after a reaction: to each mark."""
    return float(flows.reaction.ready(_EARLY)) > 0


class Sending:
    """The rules of a sender under signals at round trips [s], both (1, B), for windows (M, B) that
    stand for intervals of a width (M, B) or (1, B).
    """

    def __init__(self, flows: Flows, signal: Signal, rtt: Num, width: Num) -> None:
        self.flows, self.signal, self.rtt, self.width = flows, signal, rtt, width
        self.law, self.mark = flows.window, marks_seen(flows, signal)
        options = sender_options(flows.sender)
        self._whole_cuts = options.integer_windows
        self._least_timer = options.min_rto
        self._others = 1.0 if options.limited_transmit else _DUPLICATES

    @property
    def clean(self) -> Num:
        """Share of the ACKs of a sender that listens on which its window may grow."""
        return (1 - self.mark) * self.growing(LATE, 0.0)

    def _state(self, w: Num) -> Any:
        return past_slow_start(self.flows, w).law

    def _ack(self, state: Any) -> Ack:
        """One acknowledgement to a sender whose law has this state."""
        s = past_slow_start(self.flows, self.law.window(state))._replace(law=state)
        return acknowledgement(self.flows, s, self.signal, self.rtt)

    def grow(self, state: Any, count: Num, elapsed: Num) -> Any:
        """Change of the law's state by growth, for `count` ACKs and `elapsed` seconds."""
        one = self._ack(state)
        return slope(
            lambda k: self.law.on_ack(state, one._replace(count=count * k, elapsed=elapsed * k)),
            state, *one,
        )  # fmt: skip

    def acks(self, flight: Num, grown: Num) -> Num:
        """ACKs in a round trip of listening: the flight a round trip ago."""
        return ops.maximum(flight - 0.5 * grown, 0.5 * flight)

    def _react(self, w: Num, *, lost: bool) -> tuple[Any, Any]:
        """The law's state as a reaction meets windows, and its change."""
        state = self._state(w)
        one = self._ack(state)
        return state, self.law.on_loss(state, one) if lost else self.law.on_mark(state, one)

    def after(self, w: Num, *, lost: bool, window: Num) -> Any:
        """The law's state after a reaction that met windows w and left others."""
        changed = map_tree(lambda a, b: a + b, *self._react(w, lost=lost))
        return self.law.with_window(changed, window)

    def whole(self, w: Num) -> Num:
        """Whole packets of windows, their mean over the intervals."""

        def below(w: Num) -> Num:  # the integral over all smaller windows
            whole = ops.floor(w)
            return whole * (w - whole) + whole * (whole - 1) / 2

        return (below(w + self.width / 2) - below(w - self.width / 2)) / self.width

    def flight(self, w: Num) -> Num:
        """Packets in flight."""
        size = self.flows.feedback.flight_size(w, self.signal.mark)
        return ops.maximum(self.whole(size), ops.clip(size, _LEAST, 1.0))

    def flight_left(self, w: Num) -> Num:
        """Packets in flight of windows that cuts leave; whole windows are at the end of theirs."""
        return self.flight(w + self.width / 2 if self._whole_cuts else w)

    def growth(self, w: Num) -> tuple[Num, Num]:
        """Growth on an ACK that lets a window grow, and in a round trip whatever ACKs come.

        ACKs take steps; the growth is that of the smooth course through them, to second order.
        """

        def grown(w: Num, count: float, elapsed: float) -> Num:
            return self.law.window(self.grow(self._state(w), count, elapsed))

        step = grown(w, 1.0, 0.0)
        return 1.5 * step - 0.5 * grown(w + step, 1.0, 0.0), grown(w, 0.0, 1.0) * self.rtt

    def cut(self, w: Num, *, lost: bool) -> Num:
        """The window left by a reaction to a loss or to a mark."""
        if self._whole_cuts:
            w = self.whole(w)
        _, change = self._react(w, lost=lost)
        left = ops.clip(w + self.law.window(change), self.law.min_window, self.law.max_window)
        return ops.maximum(self.whole(left), self.law.min_window) if self._whole_cuts else left

    def drift(self, w: Num) -> Num:
        """Mean change of a window on an ACK, if all are listened to."""
        growing = self.clean * self.growth(w)[0]
        return growing + self.mark * (self.cut(w, lost=False) - w)

    def window_after(self, w: Num, acks: Num) -> Num:
        """The mean window after some ACKs, if all are listened to: by the midpoint rule."""
        middle = ops.maximum(w + 0.5 * acks * self.drift(w), self.law.min_window)
        return w + acks * self.drift(middle)

    def growing(self, since: Since, marked: float) -> Num:
        """Whether a window may grow on an ACK."""
        return self.flows.reaction.growing(since, marked)

    def reactions(self, w: Num) -> tuple[Num, Num, tuple[Reaction, ...]]:
        """ACKs and growth [packet] per round trip of listening, and the reactions."""
        flight, (by_ack, by_time) = self.flight(w), self.growth(w)
        clean = self.clean
        acks = self.acks(flight, clean * by_ack * flight + by_time)
        growth = ops.where(w < self.law.max_window, acks * clean * by_ack + by_time, 0.0)
        return acks, growth, (self._marks(w, acks), *self._losses(w, acks))

    def _marks(self, w: Num, acks: Num) -> Reaction:
        left = self.cut(w, lost=False)
        quiet = stands_still(self.flows)
        if not quiet and not self.flows.feedback.quench:  # the ACK with the mark may let it grow
            left = left + self.growing(LATE, 1.0) * self.growth(left)[0]
        if not listens_at_once(self.flows):
            shares = (self.growing(_EARLY, marked) for marked in (0.0, 1.0))
            clean, marked = (0.0, 0.0) if quiet else shares
            growing = (1 - self.mark) * clean + self.mark * marked
            return self._deaf(w, left, acks * self.mark, growing, 0.0)
        before, after = self.flight(w), self.flight_left(left)
        extra = ops.maximum(before - after, 0.0)  # in flight, beyond windows like this one
        landing = ops.clip(self.window_after(left, extra), self.law.min_window, w)
        none = 0.0 * w
        return Reaction(acks * self.mark, landing, none, extra / before, before, after, none, extra)

    def _deaf(self, w: Num, left: Num, rate: Num, growing: Num, repairs: Num) -> Reaction:
        """Reactions after which nothing counts until the first packet sent after them, and after
        the repairs of further losses, is acknowledged; a share of the ACKs lets the window grow.
        """
        before, after = self.flight(w), self.flight_left(left)
        silence = ops.maximum(before - after, 0.0) / before  # until as many ACKs have come
        heard = ops.maximum(before - 1, 0.0)
        left = left + growing * heard * self.growth(left)[0]
        early = silence * after / 2  # ACKs come in the part of each round trip without silence
        return Reaction(
            rate=rate,
            landing=ops.clip(self.window_after(left, early), self.law.min_window, w),
            dwell=1 + silence + repairs,
            silence=silence,
            before=before,
            after=after,
            window=left,
            acks=heard + repairs * after + early,
        )

    def _losses(self, w: Num, acks: Num) -> tuple[Reaction, ...]:
        """Losses repaired by fast recovery, and those that end in a timeout with slow start."""
        lost = self.signal.drop
        if not (ops.traced(lost) or ops.anywhere(lost > 0)):
            return ()
        left, before = self.cut(w, lost=True), self.flight(w)
        others, rate = ops.maximum(before - 1, 0.0), acks * lost
        timer = None if self.flows.feedback.quench else self.flows.loss.timer(self.rtt)
        if timer is None:
            return (self._deaf(w, left, rate, 0.0, 0.0),)
        by_parts = self.law.recovery == "newreno"
        few = ops.clip(self._others + 1.5 - w, 0.0, 1.0)  # too few duplicate ACKs
        critical = _CRITICAL + (others if self.law.recovery == "reno" else 0.0)
        late = few + (1 - few) * any_of(critical, lost)
        fast = self._deaf(w, left, rate * (1 - late), 0.0, others * lost if by_parts else 0.0)
        begun = ops.maximum(left, 1.0)
        opening, sent = ops.log(begun) / math.log(2.0), (begun - 1) / math.log(2.0)
        waiting = ops.maximum(timer, self._least_timer) / self.rtt * backed_off(lost)
        dwell = 1 + waiting + opening  # what is in flight is acknowledged first
        after = sent / (waiting + opening + 0.5)  # mean over the time after it
        slow = Reaction(
            rate=rate * late,
            landing=left,
            dwell=dwell,
            silence=1.0 + 0.0 * w,
            before=before,
            after=after,
            window=(left + waiting + sent) / dwell,
            acks=before + sent,
        )
        return fast, slow


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


@in_columns(*_COLUMNS)
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
    w = ops.concatenate([grid[:-1] + width / 2, grid[-1:]])  # of reactions, and at the top
    sender = Sending(flows, signal, rtt, width)
    acks, growth, kinds = sender.reactions(w)
    kinds = map_tree(lambda v: v + 0.0 * w, kinds)
    rate: Any = sum(kind.rate for kind in kinds)
    least = ops.maximum(rate * width / _MOST_MET, _TINY)  # where windows next to never grow
    places = tuple(ops.clip((kind.landing - low) / width, 0.0, index) for kind in kinds)
    crossing = width / ops.maximum(growth, least)[:-1]
    return _Rules(w, sender.flight(w), acks, crossing, kinds, places)


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


@np.errstate(all="ignore")
def population(
    flows: Flows, signal: Signal, rtt: Num, points: int = POINTS, top: Num | None = None
) -> Population:
    """The stationary law of a flow under signals at round trips [s], all of shape (B,), in NumPy.

    The window law must have no memory but its window; see `orbits` for others. On one grid, up to
    given windows `top` (B,), the law is smooth.
    """
    lossy = bool(np.any(signal.drop > 0))
    signal = signal if lossy else signal._replace(drop=None)
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


def moments(law: Population) -> Moments:
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


def mean_window(flows: Flows, signal: Signal, rtt: Num, top: Num | None = None) -> tuple[Num, Num]:
    """Mean window and flight of one flow under signals at round trips [s], all of shape (B,), on
    grids up to windows `top` if they are given.

    Equal ones are found once: round trips matter for losses and for growth by time alone.
    """
    if flows.window.states:
        return _over_orbits(flows, signal, rtt, points=ORBIT_POINTS)
    counts = np.where(needs_round_trip(flows, signal.drop), rtt, 0.0)
    read = [getattr(signal, name) for name in {"mark", "drop", *flows.window.reads}]
    _, first, all_of = np.unique(
        np.stack([*read, counts]), axis=1, return_index=True, return_inverse=True
    )
    top = None if top is None else top[first]
    found = population(flows, map_tree(lambda v: v[first], signal), rtt[first], top=top)
    return found.window[all_of], found.flight[all_of]


def _over_orbits(flows: Flows, signal: Signal, rtt: Num, points: int) -> tuple[Num, Num]:
    """Mean window and flight on orbits, where windows stand for whole packets."""
    return means_over_orbits(Sending(flows, map_tree(_as_row, signal), _as_row(rtt), 1.0), points)


def grid_error(flows: Flows, signal: Signal, rtt: Num) -> Num:
    """Relative change of the mean flight (B,) on twice as many windows, or what is left of the
    visits at the bottom, if that is more.
    """
    if flows.window.states:
        coarse, fine = (
            _over_orbits(flows, signal, rtt, points=k * ORBIT_POINTS)[1] for k in (1, 2)
        )
        return abs(coarse / fine - 1)
    coarse, fine = (population(flows, signal, rtt, k * POINTS) for k in (1, 2))
    return ops.maximum(abs(coarse.flight / fine.flight - 1), abs(fine.lost_below))


def _mean_survival(met: Num) -> Num:
    """Mean of exp(-u met) over u from 0 to 1."""
    some = np.where(met < 1e-8, 1.0, met)
    return np.where(met < 1e-8, 1.0 - met / 2, -np.expm1(-some) / some)
