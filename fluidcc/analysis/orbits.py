"""The stationary law of one flow whose window law remembers its last reaction.

What is remembered after a reaction must follow from the window that it met, but for one number that
takes one of two values there, by the same number before: as CUBIC with fast convergence does. Then
a flow begins anew at each reaction. Its orbit is the way of its state until the next one, which
meets it with a probability for each ACK. On a grid of windows and both values orbits lead from
reaction to reaction, an embedded Markov chain. Time is in round trips.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.linear import Array
from fluidcc.analysis.sending import Reaction, Sending, share_taken
from fluidcc.laws.law import AbstractWindowLaw, Ack, Signal
from fluidcc.ops import Num
from fluidcc.programs import leaves, map_tree, repeat, scan, unflatten, write_out
from fluidcc.scenario.network import Flows

POINTS = 64
"""Windows of the grid."""

_TRIED = 40  # windows, in the search for a typical one
_LARGEST = 1e7  # packets
_BELOW, _ABOVE = 30.0, 8.0  # ends of the grid, as factors of the typical window
_MET = 0.05 * 1.04 ** np.arange(68.0)  # reactions expected in the steps along an orbit: 17
_LONGEST = 1e4  # round trips of a step, at most
_REACTIONS, _STILL = 200, 1e-13  # at most, to the stationary law of the chain; it is there
_AT_A_TIME = 8  # of these, in NumPy
_WINDOWS = (2.0, 11.0, 300.0)  # that reactions meet
_PRIORS = (1e-3, 0.3, 0.9, 1.1, 3.0, 1e3)  # of these: numbers remembered before
_BEFORE, _ROUNDS = np.linspace(0.0, 1.0, 9), 4  # numbers tried, and reactions to find their range
_SAME = 1e-9  # relative difference of numbers
_TINY = 1e-300
_RAREST = 1e-12  # probability of a signal


def carried(law: AbstractWindowLaw) -> str | None:
    """The number of which a law remembers one of two values after a reaction, by the window met
    and the same number before; "" if all follow from the window alone. None if more is carried on,
    or by more than the growth rule and reactions.
    """
    traced = [f for f in dataclasses.fields(law) if ops.is_tracer(getattr(law, f.name))]
    law = dataclasses.replace(law, **{f.name: f.default for f in traced})
    one, names = Ack(1.0, 0.1, 0.1), law.fields
    if type(law).on_tick is not AbstractWindowLaw.on_tick:
        return None

    def values(react: Callable, w: float, varied: tuple[str, ...]) -> dict[str, int]:
        """How many values numbers have after a reaction that meets a window, by others before."""
        after = []
        for factor in _PRIORS:
            priors = (w * (factor if name in varied else 1.0) for name in names[1:])
            state = law.state_of(w, *priors)
            state = map_tree(lambda a, b: a + b, state, react(state, one))
            after.append(leaves(state))
            observed.extend(leaves(law.observe(state, one)))
        ordered = np.sort(np.array(after, float), axis=0)
        steps = np.diff(ordered, axis=0) > _SAME * (1 + abs(ordered[1:]))
        return dict(zip(names, 1 + steps.sum(axis=0), strict=True))

    cases = list(itertools.product((law.on_mark, law.on_loss), _WINDOWS))
    observed: list[float] = []  # changes, after reactions
    counts = [values(*case, names[1:]) for case in cases]
    if any(map(bool, observed)):
        return None
    found = [name for name in names if any(own[name] > 1 for own in counts)]
    if not found:
        return ""
    name, others = found[0], tuple(each for each in names[1:] if each not in found)
    grown = [
        getattr(law.on_ack(law.state_of(w, *(factor * w for _ in names[1:])), one), name)
        for factor, w in itertools.product(_PRIORS, _WINDOWS)
    ]
    alone = name != "window" and len(found) == 1 and not any(map(bool, grown))
    two = all(own[name] <= 2 for own in counts)
    return (
        name if alone and two and all(values(*case, others)[name] == 1 for case in cases) else None
    )


class OrbitLaw(NamedTuple):
    """The stationary law of one flow; (B,) for each signal and round trip.

    Orbits begin after reactions of L kinds, those that happen, in C cells: the P windows of a grid,
    at which reactions meet them, for each value of the number carried on. They have S steps; the
    last ends with a reaction. `signals` are the first of the L kinds with a mark, and with a loss.
    """

    flight: Num  # mean packets in flight
    window: Num  # mean over time [packet]
    windows: Num  # (S L C, B)
    flights: Num  # (S L C, B), of these windows
    time: Num  # (S L C, B), the shares of time at each window, listening
    reactions: tuple[Num, ...]  # per round trip, of each kind, at each window of the grid (P, B)
    kinds: tuple[Reaction, ...]  # marks, then losses, if there are any
    ack_ratio: Num  # ACKs, over those that the flight a round trip ago would bring
    steps: Num  # (S, L C, B), round trips at a ratio of 1
    met: Num  # (S, L C, B), reactions expected in each
    rises: Num  # (S, L C, B), of the flight in each
    timed: Num  # (S, L C, B), share of the window's growth that comes by time
    corners: list  # of each signal: pairs of cells around a reaction and weights, (S, L C, B)
    shares: Num  # (L, C, B), of each kind among all reactions
    happening: list[int]  # the L kinds
    signals: list[int]

    @property
    def taken(self) -> Num:
        """Share of the packets in flight that reactions take away, per round trip (B,)."""
        return share_taken(self.reactions, self.kinds, self.flight)

    @np.errstate(all="ignore")
    def sums(self, z: Array, spent: list[Array]) -> tuple[Array, Array, Array]:
        """Of each kind, sums (K, W) over the reactions to one more signal, per round trip, of the
        squares and of the transforms at z [per round trip] of what they do to the flight; `spent`
        (P, W) is that until the sender listens again. And the answer (1, W) of the mean flight to
        the logarithm of the round trip, by growth that comes by time. In NumPy, for B = 1.
        """
        flat = (len(self.steps), -1, 1)
        steps, met, rises = self.steps / self.ack_ratio, self.met, self.rises
        flights, time = self.flights.reshape(flat), self.time.reshape(flat)
        rates, beyond = met / steps, flights - self.flight
        corners = [[(at[..., 0].astype(int), part) for at, part in own] for own in self.corners]
        values, shares = self.shares.shape[1] // len(spent[0]), self.shares
        gone, dwell = (
            np.array([np.tile(v[k], (values, 1)) for k in self.happening])
            for v in (spent, [kind.dwell for kind in self.kinds])
        )
        late = decay(z, dwell)
        layout, every = late.shape, np.arange(steps.shape[1])

        # Along orbits: what is given until the next reaction, and the cells to which that leads.
        # The flight rises evenly in a step, and has its mean there while nothing is met.
        slopes, ages = rises / steps, 1 / rates - steps / np.expm1(met)
        starts, decays = beyond - slopes * ages, np.exp(-met)
        left, given = np.ones((len(every), len(z)), complex), 0.0
        chain = np.zeros((len(corners), layout[1], *left.shape), complex)
        stay, flown, reached = np.empty((3, len(steps), *left.shape), complex)
        for i in range(len(steps)):
            leaving = 1 / (z + rates[i])
            stay[i] = decay(z, steps[i]) * decays[i]
            held = (1 - stay[i]) * leaving
            flown[i] = held * starts[i] + slopes[i] * leaving * (held - steps[i] * stay[i])
            reached[i] = held * rates[i]
            given = given + left * flown[i]
            reacting, left = left * reached[i], left * stay[i]
            if i == len(steps) - 1:
                reacting = reacting + left
            for to, around in zip(chain, corners, strict=True):
                for at, part in around:
                    to[at[i], every] += part[i] * reacting

        # What follows reactions to each signal that meet each cell, x = known + matrix x.
        size = len(corners) * layout[1]
        given, chain = np.reshape(given, layout), chain.reshape((size, *layout))
        matrix = np.tile(np.eye(size, dtype=complex), (len(z), 1, 1))
        rows = matrix.reshape((len(z), len(corners), -1, size))
        signals = np.searchsorted(self.signals, np.arange(len(shares)), "right") - 1
        for own, (signal, weight) in enumerate(zip(signals, shares * late, strict=True)):
            rows[:, signal] -= (weight * chain[:, own]).T
        known = _by_signal(shares * (gone + late * given), self.signals).reshape((size, len(z)))
        found = _solved(matrix, known.T)
        brings = gone + late * (given + np.einsum("nlcw,wn->lcw", chain, found))

        # What one more signal does, from the ends of the orbits on.
        # A longer round trip moves windows on along their orbits, as far as they grow by time.
        powers = np.zeros((len(self.kinds), len(z)))
        means = powers.astype(complex)
        lead = [corners[signal] for signal in signals]
        parts: list[Any] = [
            sum(part * share[at] for at, part in around)
            for around, share in zip(lead, shares, strict=True)
        ]
        brings, moves = shares * brings, time * self.timed / steps
        later, by_trip = None, np.zeros(len(z), complex)
        for i in reversed(range(len(steps))):
            landed = [
                sum(part[i] * bring[at[i]] for at, part in around)
                for around, bring in zip(lead, brings, strict=True)
            ]
            following = sum(landed)
            after = following if later is None else later
            later = stay[i] * after + flown[i] + reached[i] * following
            by_trip = by_trip + moves[i, :, 0] @ (after - later)
            middle = (later + after) / 2
            for k, part, whole in zip(self.happening, parts, landed, strict=True):
                often = (time[i] * rates[i] * part[i])[:, 0]
                change = whole / np.maximum(part[i], _TINY) - middle
                means[k] += often @ change
                powers[k] += often @ (change.real**2 + change.imag**2)
        return powers, means, by_trip[None]


def decay(z: Array, time: Array) -> Array:
    """exp(-z time), by real functions, which are faster."""
    angle = np.imag(z) * time
    found = np.empty(angle.shape, complex)
    found.real, found.imag = np.cos(angle), -np.sin(angle)
    return found * np.exp(-np.real(z) * time) if np.any(np.real(z)) else found


def _rates(sending: Sending, state: Any) -> tuple[Num, Num, Num, Num, Any]:
    """Flight, ACKs and reactions in a round trip, the share of the window's growth that comes by
    time, and the change of a state in a round trip.
    """
    law, window = sending.law, sending.law.window(state)
    flight = sending.flight(window)
    by_ack = sending.grow(state, sending.clean, 0.0)
    by_time = sending.grow(state, 0.0, sending.rtt)
    timed = law.window(by_time)
    acks = sending.acks(flight, law.window(by_ack) * flight + timed)
    share = (timed + _TINY) / (law.window(by_ack) * acks + timed + _TINY)
    signals = ops.maximum(sending.mark + sending.signal.drop, _RAREST)
    change = map_tree(lambda a, t: a * acks + t, by_ack, by_time)
    return flight, acks, acks * signals, share, change


def _advance(
    flows: Flows, signal: Signal, rtt: Num, state: Any, met: Num, *, name: str
) -> tuple[Any, tuple[Num, ...]]:
    """The state after a step in which about `met` reactions are expected, by Kutta's third-order
    method. Of its middle window, flight and ACKs per round trip; of all of it the reactions, its
    length [round trips], the growth of the flight and the share by time of that of the window; of
    the middle again, by the cubic through both ends, the number `name` after a mark and a loss.
    """
    sending = Sending(flows, signal, rtt, 1.0)
    law = sending.law

    def moved(*changes: tuple[Num, Any]) -> Any:
        def move(v: Num, *each: Num) -> Num:
            return v + sum(by * c for (by, _), c in zip(changes, each, strict=True))

        new = map_tree(move, state, *(change for _, change in changes))
        window = ops.clip(law.window(new), law.min_window, law.max_window)
        return law.with_window(new, window)

    begins, _, meeting, _, first = _rates(sending, state)
    step = ops.minimum(met / ops.maximum(meeting, _TINY), _LONGEST)
    second = _rates(sending, moved((step / 2, first)))[-1]
    third = _rates(sending, moved((-step, first), (2 * step, second)))[-1]
    after = moved((step / 6, first), (2 * step / 3, second), (step / 6, third))
    middle = moved((5 * step / 24, first), (step / 3, second), (-step / 24, third))
    flight, acks, meeting, timed, _ = _rates(sending, middle)
    numbers = [getattr(sending.reacted(middle, lost=lost), name) for lost in (False, True) if name]
    rise = sending.flight(law.window(after)) - begins
    return after, (law.window(middle), flight, acks, meeting * step, step, rise, timed, *numbers)


def _solved(matrices: Array, known: Array) -> Array:
    """Solutions (K, n) of K linear systems; NaN for a singular one: a pole of the response."""
    try:
        return np.linalg.solve(matrices, known[..., None])[..., 0]
    except np.linalg.LinAlgError:
        sound = abs(np.linalg.det(matrices)) > 0
        found = np.full_like(known, np.nan)
        found[sound] = np.linalg.solve(matrices[sound], known[sound, :, None])[..., 0]
        return found


def _by_signal(of_kinds: Num, signals: list[int]) -> Num:
    """Sums of numbers (L, ...) over the kinds of each signal."""
    ends = itertools.pairwise([*signals, len(of_kinds)])
    return ops.stack([of_kinds[first:last].sum(axis=0) for first, last in ends])


class _Orbits:
    """The orbits of a sender whose law carries on the number `name`, if that is not empty; states
    are trees of numbers (J, B).
    """

    def __init__(self, sending: Sending, name: str) -> None:
        self.sending, self.law, self.name = sending, sending.law, name
        free = sending.state(sending.rtt), sending.rtt
        self._advance = write_out(
            _advance, (sending.flows, sending.signal, sending.rtt), free, name=name
        )

    def follow(self, state: Any, met: Array) -> tuple[Any, list[Num]]:
        """The state after steps in which these numbers of reactions (S,) are expected, and what
        `_advance` says of each step (S, J, B).
        """
        none, size = 0.0 * (self.law.window(state) + self.sending.rtt), len(leaves(state))

        def go(state: Any, met: Num) -> tuple[Any, list]:
            found = [v + none for v in self._advance(*leaves(state), met + none)]
            return unflatten(state, found[:size]), found[size:]

        state, rows = scan(go, map_tree(lambda v: v + none, state), met[::-1])
        return state, [v[::-1] for v in rows]

    def after(self, w: Num, *, lost: bool, window: Num, number: Num | None = None) -> Any:
        """The state after a reaction that met windows w and left others."""
        state = self.sending.reacted(self.sending.state(w), lost=lost)
        state = self.law.with_window(state, window)
        return state if number is None else state._replace(**{self.name: number})

    def typical(self) -> Num:
        """The window (1, B) from which an orbit comes back to itself until a reaction is due."""
        low = self.law.min_window
        steps = np.linspace(0.0, 1.0, _TRIED)[:, None]
        tried = low * (_LARGEST / low) ** steps + 0.0 * self.sending.rtt
        first = self.after(tried, lost=True, window=self.sending.cut(tried, lost=True))
        rises = self.law.window(self.follow(first, np.full(10, 0.1))[0]) > tried
        return ops.where(rises, tried, low).max(axis=0)[None]

    def values(self, grid: Num) -> list[tuple[Num, Num]]:
        """Both values (P, B), over the window, of the number carried on after a mark and after a
        loss at each window of a grid (P, B), from all that it may be before.
        """
        before = getattr(self.sending.state(grid), self.name)[None]
        each: list[Num] = []
        for _ in range(_ROUNDS):
            low, high = (v[None, None] for v in (before.min(axis=(0, 1)), before.max(axis=(0, 1))))
            tried = low + (high - low) * _BEFORE[:, None, None] + 0.0 * grid[None]
            state = self.sending.state(0.0 * tried + grid[None])._replace(**{self.name: tried})
            each = [
                getattr(self.sending.reacted(state, lost=lost), self.name) for lost in (False, True)
            ]
            before = ops.concatenate(each)
        return [(v.min(axis=0) / grid, v.max(axis=0) / grid) for v in each]


@np.errstate(all="ignore")
def law_of_orbits(flows: Flows, signal: Signal, rtt: Num, finer: int = 1) -> OrbitLaw:
    """The stationary law of a flow under signals at round trips [s], all of shape (1, B), on a grid
    and by steps so many times finer than usual. Windows stand for whole packets.
    """
    law, name = flows.window, carried(flows.window) or ""
    sending = Sending(flows, signal, rtt, 1.0)
    orbits, points, values = _Orbits(sending, name), finer * POINTS, 2 if name else 1
    typical = orbits.typical()
    low = ops.maximum(typical / _BELOW, law.min_window)
    high = ops.minimum(typical * _ABOVE, law.max_window)
    log_step = ops.log(high / low) / (points - 1)
    grid = low * ops.exp(log_step * np.arange(float(points))[:, None])
    _, _, found = sending.reactions(grid)
    kinds = [map_tree(lambda v: v + 0.0 * grid, kind) for kind in found]
    happening = [
        k for k, kind in enumerate(kinds) if ops.traced(kind.rate) or ops.anywhere(kind.rate > 0)
    ] or [0]
    lost = [k > 0 for k in happening]
    signals = [lost.index(own) for own in (False, True) if own in lost]

    # Where orbits begin, and what they meet.
    both = orbits.values(grid) if name else []
    states = []
    for k, value in itertools.product(happening, range(values)):
        number = grid * both[k > 0][value] if name else None
        states.append(orbits.after(grid, lost=k > 0, window=kinds[k].landing, number=number))
    state = map_tree(lambda *v: ops.concatenate([each + 0.0 * grid for each in v]), *states)
    _, (windows, flights, acks, met, length, rises, timed, *numbers) = orbits.follow(
        state, np.repeat(_MET, finer) / finer
    )
    place = ops.clip(ops.log(windows / low[None]) / log_step[None], 0.0, points - 1.0)
    below = ops.floor(ops.minimum(place, points - 2.0))
    beyond = place - below
    corners: list[list[tuple[Num, Num]]] = []
    for own in (False, True):
        if own in lost:
            at = [(below, 1 - beyond), (below + 1, beyond)]
            if name:
                row, column = below.astype(int), np.arange(grid.shape[1])
                least, most = (
                    (1 - beyond) * v[row, column] + beyond * v[row + 1, column] for v in both[own]
                )
                width = ops.maximum(most - least, _SAME * abs(most) + _TINY)
                share = ops.clip((numbers[own] / windows - least) / width, 0.0, 1.0)
                at = [
                    (place + first, weight * part)
                    for place, weight in at
                    for first, part in ((0, 1 - share), (points, share))
                ]
            corners.append(at)

    # The chain from cell to cell.
    keep = ops.concatenate([ops.exp(-met[:-1]), 0.0 * met[-1:]])
    alive = ops.concatenate([1.0 + 0.0 * met[:1], ops.exp(-met[:-1].cumsum(axis=0))])
    lasting = alive * length * -ops.expm1(-met) / ops.maximum(met, _TINY)
    cells, none = values * points, 0.0 * met[0]

    def land(chain: list[Num], row: tuple) -> tuple[list[Num], Num]:
        reacting, around = row
        for k, own in enumerate(around):
            for at, weight in own:
                chain[k] = ops.add_at(chain[k], ops.ravel(at), ops.ravel(reacting * weight))
        return chain, reacting[0]

    none_met = [np.zeros((cells, 1)) + ops.ravel(none)[None] for _ in corners]
    chain, _ = scan(land, none_met, (alive * (1 - keep), corners))
    layout = (len(happening), cells, -1)
    rate = sum(kind.rate for kind in kinds) + _TINY * len(kinds)
    shares = ops.stack([
        ops.concatenate([(kinds[k].rate + _TINY) / rate] * values) for k in happening
    ])  # fmt: skip
    size = len(corners) * cells
    each = ops.concatenate(chain).reshape((size, *layout)).swapaxes(0, 1)
    matrix = _by_signal(shares[:, None] * each, signals).swapaxes(0, 1).reshape((size, size, -1))
    matrix = matrix.transpose((2, 0, 1))
    if not ops.traced(matrix):
        matrix = np.linalg.matrix_power(matrix, _AT_A_TIME)

    def moving(carry: tuple) -> Num:
        count, before, now = carry
        return (count < _REACTIONS) & ops.anywhere(abs(now - before) > _STILL)

    first = 0.0 * matrix[..., :1] + 1.0 / cells
    *_, met_by = repeat(moving, lambda c: (c[0] + 1, c[2], matrix @ c[2]), (0, 0.0 * first, first))
    met_by = met_by[..., 0].T.reshape((len(corners), cells, -1))
    visits = shares * ops.stack([met_by[-1 if own else 0] for own in lost])

    time = visits.reshape(none.shape)[None] * lasting  # per reaction, at a ratio of 1
    by_kind = [0.0 * grid for _ in kinds]
    for own, k in zip(visits, happening, strict=True):
        by_kind[k] = own.reshape((values, *grid.shape)).sum(axis=0)

    def away(of: Callable[[Reaction], Num]) -> Num:
        return sum((n * of(kind)).sum(axis=0) for n, kind in zip(by_kind, kinds, strict=True))

    def along(values: Num) -> Num:
        return (time * values).sum(axis=(0, 1))

    fallen, flying = away(lambda kind: kind.flight), along(flights)
    ack_ratio = flying / (along(acks) + away(lambda kind: kind.acks) - fallen)
    whole = along(1.0) / ack_ratio + away(lambda kind: kind.dwell)
    window = along(windows) / ack_ratio + away(lambda kind: kind.window * kind.dwell)
    flat = (-1, grid.shape[1])
    return OrbitLaw(
        flight=(flying / ack_ratio + fallen) / whole,
        window=window / whole,
        windows=windows.reshape(flat),
        flights=flights.reshape(flat),
        time=time.reshape(flat) / (ack_ratio * whole)[None],
        reactions=tuple(own / whole[None] for own in by_kind),
        kinds=tuple(kinds),
        ack_ratio=ack_ratio,
        steps=length,
        met=met,
        rises=rises,
        timed=timed,
        corners=corners,
        shares=shares,
        happening=happening,
        signals=signals,
    )
