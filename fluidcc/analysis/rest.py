"""Where a network comes to rest, as compiled nested bisections; no law is known by name.

For given signals a sender's window is the one at which its drift in log w changes sign; for given
queues the memory of a queue law is where arrivals without end leave it. With these, what a link
accepts decreases with its queue, so a bisection finds the queue, or the place where the signal
jumps. Several links take turns until all of them rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.fluid.delays import State, round_trip
from fluidcc.fluid.rates import heard
from fluidcc.fluid.senders import sender_change, start_sender
from fluidcc.laws.law import Arrival, Signal
from fluidcc.network import Flows, Link, Network
from fluidcc.ops import Num

INTERIOR, EMPTY, JUMP, FULL, NONE = range(5)
"""What a link rests in: a root, an empty queue, a jump of its signal, a full buffer, nothing."""

_MANY = 1e12  # packets and seconds after which a queue law's memory is at rest
LARGEST_WINDOW = 1e7  # packets, where the law has no cap
_LOG_WINDOWS = (math.log(1e-6), math.log(LARGEST_WINDOW))
_LONGEST_QUEUE = 1e9  # packets, where the buffer has no end
_SMALL = 1e-7  # of the capacity; a larger mismatch is a jump
_HALVINGS = 200
_ROUNDS = 400


class Rest(NamedTuple):
    """A network at rest.

    Codes and queues (links,), Signal per link at the queue and just below it, windows (m,) per
    group, accepted rates (links,) [packet/s], and how far the last round still moved [relative].
    """

    codes: Any
    queues: Any
    signals: tuple[Signal, ...]
    signals_below: tuple[Signal, ...]
    windows: tuple
    accepted: Any
    moved: Any


def bisect(function: Callable[[Num], Num], low: Num, high: Num) -> tuple[Num, Num]:
    """Neighbouring numbers between which a decreasing function (elementwise) changes sign."""

    def unfinished(carry: tuple) -> Num:
        step, low, high = carry
        middle = 0.5 * (low + high)
        return (step < _HALVINGS) & jnp.any((middle > low) & (middle < high))

    def halve(carry: tuple) -> tuple:
        step, low, high = carry
        middle = 0.5 * (low + high)
        above = function(middle) > 0
        return step + 1, jnp.where(above, middle, low), jnp.where(above, high, middle)

    return jax.lax.while_loop(unfinished, halve, (0, low, high))[1:]


def settled(link: Link, queue: Num) -> Any:
    """Memory of a queue law after endless time at a queue [packet]."""
    law = link.queue
    x = law.start(queue)
    change = law.on_arrival(x, Arrival(_MANY, _MANY, queue, link.capacity))
    return jax.tree.map(lambda a, b: a + b, x, change)


def says(link: Link, queue: Num) -> Signal:
    """What a link says after endless time at a queue [packet], shapes ()."""
    seen = Arrival(1.0, 0.0, queue, link.capacity)
    signal = link.queue.signal(settled(link, queue), seen)
    return Signal(*(jnp.asarray(value, float) for value in signal))


def window_at_rest(net: Network, flows: Flows, signal: Signal, rtt: Num) -> Num:
    """Window (m,) that a sender keeps under a signal heard (m,) at a round trip (m,) [s]."""
    law = flows.window

    def growth(log_window: Num) -> Num:
        window = jnp.exp(log_window)
        rate = window / rtt
        share = 1.0 if net.rates == "mgt" else flows.reaction.shares(signal.mark, window).growing
        change = sender_change(
            flows, start_sender(flows, window), growth=rate * share, acks=rate, carried=rate,
            signal=signal, rtt=rtt, ticks=True,
        )  # fmt: skip
        return law.window(change.law)

    low, high = (jnp.full(jnp.shape(rtt), end) for end in _LOG_WINDOWS)
    high = jnp.minimum(high, jnp.log(law.max_window))
    capped = growth(high) >= 0
    window = jnp.exp(bisect(growth, low, high)[0])
    return jnp.where(capped, jnp.minimum(law.max_window, LARGEST_WINDOW), window)


def _windows(net: Network, queues: list, signals: list) -> tuple:
    """Windows (m,) per group at rest under what the links say."""
    out = []
    for flows in net.flows:
        signal = heard(flows, tuple(signals[k] for k in flows.route))
        shape = jnp.shape(flows.rtt)
        full = Signal(*(jnp.broadcast_to(jnp.asarray(v, float), shape) for v in signal))
        out.append(window_at_rest(net, flows, full, round_trip(net, flows, tuple(queues))))
    return tuple(out)


def _accepted(net: Network, k: int, queues: list, signals: list, windows: tuple) -> Num:
    """Rate that link k accepts [packet/s] from senders with these windows."""
    total = jnp.zeros(())
    for flows, window in zip(net.flows, windows, strict=True):
        if k in flows.route:
            rate = flows.n * window / round_trip(net, flows, tuple(queues))
            kept = 1 - heard(flows, (signals[k],)).drop
            total = total + flows.route.count(k) * jnp.sum(rate * kept)
    return total


def _with(values: list, k: int, value: Any) -> list:
    return [*values[:k], value, *values[k + 1 :]]


def _choose(condition: Num, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _link_at_rest(net: Network, k: int, queues: list, signals: list) -> tuple[Num, Num, Signal]:
    """Code, queue and signal of link k at rest, the other links given."""
    link = net.links[k]

    def excess(queue: Num, signal: Signal) -> Num:
        others = _with(queues, k, queue), _with(signals, k, signal)
        return _accepted(net, k, *others, _windows(net, *others)) - link.capacity

    def own(queue: Num) -> Num:
        return excess(queue, says(link, queue))

    top = jnp.minimum(jnp.asarray(link.buffer, float), _LONGEST_QUEUE)
    zero, one, small = jnp.zeros(()), jnp.ones(()), _SMALL * link.capacity
    below, above = bisect(own, zero, top)
    at_zero, at_below, at_above, at_top = jax.lax.map(own, jnp.stack([zero, below, above, top]))
    empty, over = at_zero <= 0, at_top > 0
    jumps = ~over & ((at_below > small) | (at_above < -small))
    queue = jnp.where(empty, zero, jnp.where(over, top, above))

    # what holds the queue at a jump is more marking, at a full buffer loss: find how much
    least = _choose(jumps, says(link, below), says(link, queue))
    most = Signal(jnp.where(over, least.mark, one), jnp.where(over, one, least.drop))

    def held(share: Num) -> Signal:
        return jax.tree.map(lambda a, b: a + share * (b - a), least, most)

    share = bisect(lambda share: excess(queue, held(share)), zero, one)[0]
    enough = excess(queue, most) <= 0
    spills = enough & (top < _LONGEST_QUEUE) & (least.mark < 1)
    code = jnp.where(jumps, jnp.where(enough, JUMP, NONE), INTERIOR)
    code = jnp.where(over, jnp.where(spills, FULL, NONE), code)
    code = jnp.where(empty, EMPTY, code)
    return code, queue, _choose(~empty & (jumps | over), held(share), says(link, queue))


@jax.jit
def find_rest(net: Network, first: Num) -> Rest:
    """Rest of a network whose leaves are all arrays, from queues `first` (links,) [packet]."""
    links = range(len(net.links))
    queues = [first[k] for k in links]
    signals = [says(link, q) for link, q in zip(net.links, queues, strict=True)]

    def turn(carry: tuple) -> tuple:
        count, _, codes, queues, signals = carry
        codes, new, signals = list(codes), list(queues), list(signals)
        for k in links:
            codes[k], new[k], signals[k] = _link_at_rest(net, k, new, signals)
        moved = jnp.stack(
            [jnp.abs(a - b) / (1 + jnp.abs(a)) for a, b in zip(new, queues, strict=True)]
        )
        return count + 1, jnp.max(moved), codes, new, signals

    def unrested(carry: tuple) -> Num:
        return (carry[0] < _ROUNDS) & (carry[1] > 1e-12)

    carry = (0, jnp.ones(()), [jnp.zeros((), int) for _ in links], queues, signals)
    if len(queues) > 1:
        carry = jax.lax.while_loop(unrested, turn, carry)
    else:
        carry = (1, jnp.zeros(()), *turn(carry)[2:])
    moved = carry[1]
    codes, queues, signals = carry[2:]
    windows = _windows(net, queues, signals)
    accepted = [_accepted(net, k, queues, signals, windows) for k in links]
    below = tuple(
        says(link, jnp.nextafter(q, -1.0)) for link, q in zip(net.links, queues, strict=True)
    )
    return Rest(
        jnp.stack(codes), jnp.stack(queues), tuple(signals), below, windows,
        jnp.stack(accepted), moved,
    )  # fmt: skip


def state_at_rest(net: Network, rest: Rest) -> State:
    """The State of a network at rest."""
    senders = tuple(start_sender(f, w) for f, w in zip(net.flows, rest.windows, strict=True))
    queues = tuple(rest.queues[k] for k in range(len(net.links)))
    laws = tuple(settled(link, q) for link, q in zip(net.links, queues, strict=True))
    return State(senders, queues, laws)
