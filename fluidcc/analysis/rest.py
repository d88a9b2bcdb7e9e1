"""Where a network comes to rest, as compiled nested bisections; no law is known by name.

For given signals senders rest where their drift changes sign; for given queues the memory of a
queue law is where arrivals without end leave it. With these, what a link accepts decreases with
its place, so a bisection finds the place, or the one where the signal jumps. Several links take
turns until all of them rest.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.analysis.bisection import bisect
from fluidcc.analysis.sender_rest import Heard, like, sender_at_rest, source_rate
from fluidcc.analysis.settle import queue_at, says, settled, used_at
from fluidcc.fluid.delays import State, round_trip
from fluidcc.fluid.rates import heard
from fluidcc.laws.law import Signal
from fluidcc.network import Flows, Network
from fluidcc.ops import Num

INTERIOR, EMPTY, JUMP, FULL, NONE, NEUTRAL = range(6)
"""What a link rests in: a root, an empty queue, a jump of its signal, a full buffer, nothing, a
jump at which any windows rest."""

_LONGEST_QUEUE = 1e9  # packets, where the buffer has no end
_SMALL = 1e-7  # of the capacity; a larger mismatch is a jump
_ROUNDS = 400
_NOWHERE = 1e-12  # places so near to 0 are the empty queue of a full link


class Said(NamedTuple):
    """What a link says at rest; for a share of the time its load factor is another one."""

    signal: Signal
    other: Num
    share: Num


class Rest(NamedTuple):
    """A network at rest.

    Codes and places (links,), Said per link, Signal just below the place, memories of the queue
    laws; per group Sender, window [packet] and rate of one source [packet/s] (m,); accepted rates
    (links,) [packet/s], and how far the last round still moved [relative].
    """

    codes: Any
    places: Any
    said: tuple[Said, ...]
    signals_below: tuple[Signal, ...]
    laws: tuple
    senders: tuple
    windows: tuple
    rates: tuple
    accepted: Any
    moved: Any

    @property
    def queues(self) -> Any:
        """Queues (links,) [packet]."""
        return queue_at(self.places)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Signal per link; at a jump of the load factor, the one above."""
        return tuple(s.signal._replace(load=s.other) for s in self.said)


def _alone(signal: Signal) -> Said:
    return Said(signal, signal.load, jnp.zeros(()))


def cases(net: Network, flows: Flows, said: list[Said]) -> list[Heard]:
    """What flows hear of the links on their way, and for which share of the time."""
    options = []
    for k in flows.route:
        one = said[k]
        if net.links[k].queue.loads and flows.feedback.loads:
            other = one.signal._replace(load=one.other)
            options.append([(1 - one.share, one.signal), (one.share, other)])
        else:
            options.append([(1.0, one.signal)])
    out = []
    for combination in itertools.product(*options):
        share = functools.reduce(lambda a, b: a * b, (c[0] for c in combination))
        out.append(Heard(share, heard(flows, tuple(c[1] for c in combination))))
    return out


def _senders(net: Network, places: list, said: list[Said]) -> list[tuple[Any, Num]]:
    """Senders at rest under what the links say, and the rates (m,) of their sources."""
    out = []
    queues = tuple(queue_at(place) for place in places)
    for flows in net.flows:
        rtt = round_trip(net, flows, queues)
        told = [Heard(c.share, like(c.signal, rtt)) for c in cases(net, flows, said)]
        s = sender_at_rest(flows, told, rtt, all_grow=net.rates == "mgt")
        out.append((s, source_rate(flows, s, told, rtt)))
    return out


def _accepted(net: Network, k: int, said: list[Said], rates: list[Num]) -> Num:
    """Rate that link k accepts [packet/s] from sources with these rates."""
    signal = said[k].signal
    total = net.links[k].cross * (1 - signal.drop)
    for flows, rate in zip(net.flows, rates, strict=True):
        if k in flows.route:
            kept = 1 - heard(flows, (signal,)).drop
            total = total + flows.route.count(k) * jnp.sum(flows.n * rate * kept)
    return total


def _with(values: list, k: int, value: Any) -> list:
    return [*values[:k], value, *values[k + 1 :]]


def _choose(condition: Num, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _most(net: Network, k: int, least: Signal, above: Signal, over: Num) -> Signal:
    """The end of what may hold a link at a jump or at a full buffer.

    At a full buffer it is loss. At a jump it is more marking, where senders hear marks; where a
    load factor jumps, and where senders hear no marks, it is what the link says above the jump.
    """
    one = jnp.ones(())
    deaf = any(k in f.route and not f.feedback.marks for f in net.flows)
    told = net.links[k].queue.loads or deaf
    beyond = above if told else Signal(one, least.drop, above.load)
    return _choose(over, Signal(least.mark, one, least.load), beyond)


def _link_at_rest(
    net: Network, k: int, places: list, said: list[Said], start: int
) -> tuple[Num, Num, Said]:
    """Code and place of link k at rest and what it says, the other links given."""
    link = net.links[k]

    def excess(place: Num, own: Said) -> Num:
        others = _with(places, k, place), _with(said, k, own)
        rates = [rate for _, rate in _senders(net, *others)]
        return _accepted(net, k, others[1], rates) - used_at(link, place)

    def own(place: Num) -> Num:
        return excess(place, _alone(says(link, place, start)))

    top = jnp.minimum(jnp.asarray(link.buffer, float), _LONGEST_QUEUE)
    zero, one, small = jnp.zeros(()), jnp.ones(()), _SMALL * link.capacity
    below, above = bisect(own, -one, top)
    at_below, at_above, at_top = jax.lax.map(own, jnp.stack([below, above, top]))
    over = at_top > 0
    jumps = ~over & ((at_below > small) | (at_above < -small))
    place = jnp.where(over, top, above)
    place = jnp.where(jnp.abs(place) < _NOWHERE, zero, place)

    # what holds the place at a jump is a signal between both sides: find how much of each
    least = _choose(jumps, says(link, below, start), says(link, place, start))
    most = _most(net, k, least, says(link, above, start), over)

    def between(share: Num) -> Said:
        signal = jax.tree.map(lambda a, b: a + share * (b - a), least, most)
        return Said(signal._replace(load=least.load), most.load, share)

    def left(share: Num) -> Num:
        return excess(place, between(share))

    share = bisect(left, zero, one)[0]
    at_share, at_one = jax.lax.map(left, jnp.stack([share, one]))
    enough, neutral = at_one <= 0, jnp.abs(at_share) > small
    spills = enough & (top < _LONGEST_QUEUE) & (least.mark < 1)
    code = jnp.where(place < 0, EMPTY, INTERIOR)
    code = jnp.where(jumps, jnp.where(enough, jnp.where(neutral, NEUTRAL, JUMP), NONE), code)
    code = jnp.where(over, jnp.where(spills, FULL, NONE), code)
    return code, place, _choose(jumps | over, between(share), _alone(least))


@functools.partial(jax.jit, static_argnames="start")
def find_rest(net: Network, first: Num, start: int = 0) -> Rest:
    """Rest of a network whose leaves are all arrays, from places `first` (links,).

    `start` numbers the memory that queue laws with several start from.
    """
    links = range(len(net.links))
    places = [first[k] for k in links]
    said = [_alone(says(link, z, start)) for link, z in zip(net.links, places, strict=True)]

    def turn(carry: tuple) -> tuple:
        count, _, codes, places, said = carry
        codes, new, said = list(codes), list(places), list(said)
        for k in links:
            codes[k], new[k], said[k] = _link_at_rest(net, k, new, said, start)
        moved = jnp.stack(
            [jnp.abs(a - b) / (1 + jnp.abs(a)) for a, b in zip(new, places, strict=True)]
        )
        return count + 1, jnp.max(moved), codes, new, said

    def unrested(carry: tuple) -> Num:
        return (carry[0] < _ROUNDS) & (carry[1] > 1e-12)

    carry = (0, jnp.ones(()), [jnp.zeros((), int) for _ in links], places, said)
    if len(places) > 1:
        carry = jax.lax.while_loop(unrested, turn, carry)
    else:
        carry = (1, jnp.zeros(()), *turn(carry)[2:])
    moved = carry[1]
    codes, places, said = carry[2:]
    senders = _senders(net, places, said)
    accepted = [_accepted(net, k, said, [rate for _, rate in senders]) for k in links]
    pairs = list(zip(net.links, places, strict=True))
    return Rest(
        codes=jnp.stack(codes),
        places=jnp.stack(places),
        said=tuple(said),
        signals_below=tuple(says(link, jnp.nextafter(z, -1.0), start) for link, z in pairs),
        laws=tuple(settled(link, z, start) for link, z in pairs),
        senders=tuple(s for s, _ in senders),
        windows=tuple(f.window.window(s.law) for f, (s, _) in zip(net.flows, senders, strict=True)),
        rates=tuple(rate for _, rate in senders),
        accepted=jnp.stack(accepted),
        moved=moved,
    )


def state_at_rest(net: Network, rest: Rest) -> State:
    """The State of a network at rest."""
    queues = tuple(rest.queues[k] for k in range(len(net.links)))
    return State(rest.senders, queues, rest.laws)
