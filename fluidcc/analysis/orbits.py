"""The stationary law of one flow whose window law remembers its last reaction.

What is remembered after a reaction must follow from the window that it met. Then a flow begins anew
there: its orbit is the way of its state until the next reaction, which meets it with a probability
for each ACK. On a grid of windows orbits lead from reaction to reaction, an embedded Markov chain.
Time is in round trips.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, Since
from fluidcc.ops import Num
from fluidcc.programs import leaves, map_tree, scan, unflatten

if TYPE_CHECKING:
    from fluidcc.analysis.population import Reaction, Sending

POINTS = 64
"""Windows of the grid."""

_TRIED = 40  # windows, in the search for a typical one
_LARGEST = 1e7  # packets
_BELOW, _ABOVE = 30.0, 8.0  # ends of the grid, as factors of the typical window
_MET = 0.1  # reactions expected in a step along an orbit
_STEPS = 160  # to 16 reactions
_LONGEST = 1e4  # round trips of a step, at most
_REACTIONS = 80  # to the stationary law of the chain
_WINDOWS = (2.0, 11.0, 300.0)  # that reactions meet
_PRIORS = (1e-3, 0.3, 0.9, 1.1, 3.0, 1e3)  # of these: numbers remembered before
_TINY = 1e-300
_RAREST = 1e-12  # probability of a signal
LATE = Since(time=1e9, round_trip=1.0, window=1.0)
"""Long after the last reaction."""


def forgets(law: AbstractWindowLaw) -> bool:
    """Whether what a law remembers after a reaction follows from the window that it met, and then
    changes by the growth rule alone.
    """
    own, base = type(law), AbstractWindowLaw
    if own.observe is not base.observe or own.on_tick is not base.on_tick:
        return False
    one = Ack(1.0, 0.0, 0.1)
    for react, w in itertools.product((law.on_mark, law.on_loss), _WINDOWS):
        each = []
        for factor in _PRIORS:
            state = law.state_of(w, *(factor * w for _ in law.states))
            each.append(leaves(map_tree(lambda a, b: a + b, state, react(state, one))))
        first, *others = (np.array(left, float) for left in each)
        if any(np.any(abs(first - left) > 1e-9 * (1 + abs(first))) for left in others):
            return False
    return True


class _Orbits:
    """The orbits of a sender: its state is a tree of numbers (J, B), the window first."""

    def __init__(self, sending: Sending) -> None:
        self.sending, self.law = sending, sending.law
        self.signals = ops.maximum(sending.mark + sending.signal.drop, _RAREST)

    def rates(self, state: Any) -> tuple[Num, Num, Num, Any]:
        """Flight, ACKs and reactions in a round trip, and the change of the state in one."""
        window, sending = self.law.window(state), self.sending
        flight = sending.flight(window)
        by_ack = sending.grow(state, sending.clean, 0.0)
        by_time = sending.grow(state, 0.0, sending.rtt)
        grown = self.law.window(by_ack) * flight + self.law.window(by_time)
        acks = sending.acks(flight, grown)
        change = map_tree(lambda a, t: a * acks + t, by_ack, by_time)
        return flight, acks, acks * self.signals, change

    def advance(self, state: Any) -> tuple[Any, Any, Num, Num, Num]:
        """A step by the midpoint rule: the state after it and in its middle, flight and ACKs there
        in a round trip, and its length [round trips].
        """
        _, _, met, change = self.rates(state)
        step = ops.minimum(_MET / ops.maximum(met, _TINY), _LONGEST)
        middle = self._moved(state, change, step / 2)
        flight, acks, _, change = self.rates(middle)
        return self._moved(state, change, step), middle, flight, acks, step

    def _moved(self, state: Any, change: Any, by: Num) -> Any:
        window, *others = leaves(map_tree(lambda v, c: v + by * c, state, change))
        window = ops.clip(window, self.law.min_window, self.law.max_window)
        return unflatten(state, [window, *others])

    def typical(self) -> Num:
        """The window (1, B) from which an orbit comes back to itself until a reaction is due."""
        low = self.law.min_window
        steps = np.linspace(0.0, 1.0, _TRIED)[:, None]
        tried = low * (_LARGEST / low) ** steps + 0.0 * self.sending.rtt
        state = self.sending.after(tried, lost=True, window=self.sending.cut(tried, lost=True))
        for _ in range(round(1 / _MET)):
            state = self.advance(state)[0]
        rises = self.law.window(state) > tried
        return ops.where(rises, tried, low).max(axis=0)[None]


def means_over_orbits(sending: Sending, points: int = POINTS) -> tuple[Num, Num]:
    """Mean window and flight (B,) of a flow."""
    orbits, law = _Orbits(sending), sending.law
    typical = orbits.typical()
    low = ops.maximum(typical / _BELOW, law.min_window)
    high = ops.minimum(typical * _ABOVE, law.max_window)
    log_step = ops.log(high / low) / (points - 1)
    grid = low * ops.exp(log_step * np.arange(float(points))[:, None])
    _, _, kinds = sending.reactions(grid)
    rates = [kind.rate + _TINY for kind in kinds]
    shares = [own / sum(rates) for own in rates]
    share = ops.concatenate(shares)
    states = [
        sending.after(grid, lost=bool(k), window=kind.landing) for k, kind in enumerate(kinds)
    ]
    state = map_tree(lambda *v: ops.concatenate(v), *states)

    def go(carry: tuple, _: Any) -> tuple:
        state, alive, sums, chain = carry
        state, middle, flight, acks, step = orbits.advance(state)
        window, met = law.window(middle), acks * orbits.signals * step
        lasting = alive * step * -ops.expm1(-met) / ops.maximum(met, _TINY)
        sums = [a + lasting * b for a, b in zip(sums, (1.0, window, flight, acks), strict=True)]
        place = ops.ravel(ops.clip(ops.log(window / low) / log_step, 0.0, points - 1.0))
        below, reacting = ops.floor(ops.minimum(place, points - 2.0)), -ops.expm1(-met) * alive
        lower = ops.ravel(reacting) * (1 - place + below)
        chain = ops.add_at(chain, below, lower)
        chain = ops.add_at(chain, below + 1, ops.ravel(reacting) - lower)
        return (state, alive * ops.exp(-met), sums, chain), 0.0 * met[0]

    none, index = 0.0 * share, np.arange(float(points))[:, None]
    first = (state, 1.0 + none, [none] * 4, 0.0 * index + ops.ravel(none))
    (_, _, sums, chain), _ = scan(go, first, np.zeros((_STEPS, 1)))
    chain = chain * ops.ravel(share) / chain.sum(axis=0)
    chain = chain.reshape((points, len(kinds), points, -1)).sum(axis=1)  # to each from each
    visits = 0.0 * chain[0] + 1.0 / points
    for _ in range(_REACTIONS):
        visits = (chain * visits[None]).sum(axis=1)

    def over(values: Num) -> Num:
        """Sum over the orbits of values of each, per reaction."""
        each = (values * share).reshape((len(kinds), points, -1)).sum(axis=0)
        return (visits * each).sum(axis=0)

    def away(of: Callable[[Reaction], Num]) -> Num:
        return over(ops.concatenate([of(kind) + 0.0 * grid for kind in kinds]))

    time, windows, flying, heard = map(over, sums)
    fallen, gone = away(lambda kind: kind.flight), away(lambda kind: kind.dwell)
    ack_ratio = flying / (heard + away(lambda kind: kind.acks) - fallen)
    whole = time / ack_ratio + gone
    window = windows / ack_ratio + away(lambda kind: kind.window * kind.dwell)
    return window / whole, (flying / ack_ratio + fallen) / whole
