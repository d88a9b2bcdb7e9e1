"""How an equilibrium moves with parameters, to either side of them.

The balance of an equilibrium is drift = 0 for what moves, a bound for what rests on it, wire = what
is sent and signalled, and for links on a jump the surface that they stay on. The unknowns are
state, wire and the shares of the time on either side of the jumps.

At the edge of a regime several such systems have the same solution: one with a queue at its end and
one with a queue that moves, those on both sides of a kink of the marking, on a jump and beside it.
Each is followed only where what it takes for granted stays so, as its own derivatives say.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.contacts import (
    SIGNAL,
    Contact,
    NoDerivative,
    choices,
    contacts,
    exact,
    exact_rest,
    given,
    mixed,
    shares,
    sides,
    stepped,
    surfaces,
    weighed,
)
from fluidcc.analysis.equilibrium import Equilibrium, without
from fluidcc.analysis.gradients.implicit import carry, expand, motion_of
from fluidcc.analysis.linear import Array
from fluidcc.analysis.linearize import at_kink
from fluidcc.analysis.operating_point import operating_point, present
from fluidcc.analysis.rest import FULL, INTERIOR, Rest, state_at_rest
from fluidcc.laws.law import Signal, combine
from fluidcc.model.delays import State, Wire, kink_distances, kinks, make_wire, picks, round_trip
from fluidcc.model.fluid import steady
from fluidcc.model.rates import HIGH, LOW, Modes, flux, heard, touched
from fluidcc.model.senders import sending_rate
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

_OFF_BALANCE = 1e-6  # relative Newton step up to which a rest balances
_UNMOVED = 1e-9  # of what is observed, in its unit per unit of a memory
_NEAR = 1e-6  # packets: a kink that is this near is the one that the equilibrium is at
_EDGE = 1e-9  # up to this a queue is at its end, a loss or a share of the time none
_JUMP = 1e-6  # of a probability: far more than a marking without jump differs by from side to side
_LEVEL = 1e-9  # of the largest relative change: what moves less than this stays
_MOST_ENDS = 3
_JUST_EMPTY = -1e-300  # the place of an empty queue in front of a link that is all but full
_CROWDED = "several edges of regimes meet here"

Observed = dict[str, Any]
"""What is seen of an equilibrium: `links` (L,) and `flows` (m,) by quantity, distances to kinks
(c,), what links accept above their capacity as a share of it (L,), room in buffers (L,) [packet].
"""


class Motion(NamedTuple):
    """Derivatives of an equilibrium along K directions: state (K, n), wire (K, m), shares of the
    time above jumps (K, s); what is observed of it and the derivatives of that (K, ...), the
    largest relative change (K,), and why there are none, if so.
    """

    state: Array
    wire: Array
    shares: Array
    seen: Observed
    slopes: Observed
    pace: Array
    message: str


class Branch(NamedTuple):
    """A motion, and whether it is that towards smaller and towards larger parameters (K,)."""

    motion: Motion
    below: Array
    above: Array


def pinned(net: Network, y: State, modes: Modes) -> Num:
    """Where each component of the flat state rests if it is held: at a bound, or where it is."""
    senders = []
    for flows, s, mode in zip(net.flows, y.senders, modes.windows, strict=True):
        law = flows.window
        low, high = law.min_window + 0.0 * flows.rtt, law.max_window + 0.0 * flows.rtt
        free = law.window(s.law)
        window = jnp.where(mode == HIGH, high, jnp.where(mode == LOW, low, free))
        senders.append(s._replace(law=law.with_window(s.law, window)))
    queues = tuple(
        jnp.where(mode == LOW, 0.0, jnp.where(mode == HIGH, link.buffer, q))
        for link, q, mode in zip(net.links, y.queues, modes.queues, strict=True)
    )

    def limited(value: Num, low: Num, high: Num) -> Num:
        return jnp.where(value <= low, low, jnp.where(value >= high, high, value))

    laws = tuple(
        x if link.queue.limits is None else jax.tree.map(limited, x, *link.queue.limits)
        for link, x in zip(net.links, y.laws, strict=True)
    )
    return ravel_pytree(y._replace(senders=tuple(senders), queues=queues, laws=laws))[0]


def _rates(net: Network, y: State, signals: tuple[Signal, ...]) -> Num:
    """Rates of the flows at rest: flights over round trips."""
    out = []
    for flows, s in zip(net.flows, y.senders, strict=True):
        rtt = round_trip(net, flows, y.queues)
        said = heard(flows, tuple(signals[k] for k in flows.route))
        rate = sending_rate(flows, s, Signal(*(v + 0.0 * rtt for v in said)), rtt)
        out.append(s.active * rate if flows.traffic.starts else rate)
    return jnp.concatenate(out)


def _observe(net: Network, y: State, u: Num, wire: Wire, modes: Modes) -> Observed:
    past = jax.tree.map(lambda index: u[index], picks(net))
    raw = flux(net, y, past, modes, ticks=True).queue_raw
    excess = jnp.stack([r / link.capacity for r, link in zip(raw, net.links, strict=True)])
    average = [
        link.queue.average(x, q) for link, x, q in zip(net.links, y.laws, y.queues, strict=True)
    ]
    empty = jnp.stack([mode == LOW for mode in modes.queues])
    groups = net.flows
    return {
        "links": {
            "queue": jnp.stack(y.queues),
            "average": jnp.stack(average),
            "signal": jnp.stack([s.either for s in wire.signals]),
            "utilization": jnp.where(empty, 1 + excess, 1.0),
            "load": jnp.stack([combine((s,)).load + 0.0 * s.mark for s in wire.signals]),
        },
        "flows": {
            "window": tuple(f.window.window(y.senders[i].law) for i, f in enumerate(groups)),
            "rtt": tuple(round_trip(net, f, y.queues) for f in groups),
            "rate": tuple(wire.rates[i] for i in range(len(groups))),
            "heard": tuple(
                touched(f, tuple(wire.signals[k] for k in f.route)) + 0.0 * f.rtt for f in groups
            ),
        },
        "distances": kink_distances(net, y),
        "excess": excess,
        "room": jnp.stack([link.buffer for link in net.links]) - jnp.stack(y.queues),
    }


class _Rows(NamedTuple):
    """What vanishes: drift and distance from where a bound holds (n,), wire (m,), and all that may
    be the surface of a jump; and what is observed.
    """

    drift: Any
    bound: Any
    wire: Any
    surfaces: Any
    seen: Observed


class _Expanded(NamedTuple):
    """Values, derivatives by the unknowns (..., n + m + s) and along K directions (K, ...); ones
    where a bound holds, and for memories of queue laws at no limit; state and wire.
    """

    values: _Rows
    by_x: _Rows
    along: _Rows
    frozen: Any
    loose: Any
    state: Any
    wire: Any


@functools.partial(jax.jit, static_argnames="held")
def _expanded(
    net: Network, rest: Rest, side: Num, along: Network, held: tuple[Contact, ...]
) -> Any:
    part = shares(rest, held)
    said = given(net, held, state_at_rest(net, rest), part)
    at = operating_point(
        net, rest, side, said, lambda u: weighed(net, rest, held, part, u, jnp.arange(len(u)))
    )
    _, v, index = present(net, at.y, at.modes)
    paces = tuple(jnp.ones(()) for _ in net.links)
    state_of, wire_of = (
        ravel_pytree(tree)[1] for tree in (at.y, make_wire(net, rest.rates, rest.signals, paces))
    )
    n, m = len(v), len(at.wire)

    def balance(x: Num, net: Network) -> _Rows:
        v, u, part = jnp.split(x, [n, n + m])
        y, wire = state_of(v), wire_of(u)
        modes = at.modes._replace(said=given(net, held, y, part))
        function = present(net, y, modes)[0]
        now = mixed(weighed(net, rest, held, part, u[index], index), lambda z: function(net, v, z))
        bound = pinned(net, state_of(jax.lax.stop_gradient(v)), at.modes)
        sent = now[n:]
        if net.rates == "self_clocked":  # whose numbers in flight stay what they are
            rates = _rates(net, y, wire.signals)
            sent = sent.at[: len(rates)].set(rates)
        there = surfaces(net, held, y, tuple(s.load for s in wire.signals), part)
        seen = _observe(net, y, u, wire, modes)
        return _Rows(now[:n], bound - v, sent - u, there, seen)

    zeros = jax.tree.map(jnp.zeros_like, at.y)
    laws = ravel_pytree(zeros._replace(laws=jax.tree.map(jnp.ones_like, at.y.laws)))[0]
    pins = jax.jvp(lambda v: pinned(net, state_of(v), at.modes), (v,), (jnp.ones_like(v),))[1]
    x = jnp.concatenate([v, at.wire, part])
    return _Expanded(*expand(balance, x, net, along), at.frozen, laws * pins, v, at.wire)


def motions(
    eq: Equilibrium,
    along: Network,
    *,
    side: int = 0,
    held: tuple[Contact, ...] = (),
    chosen: Sequence[list[int]] = ([],),
) -> list[Motion]:
    """How an equilibrium moves along directions of its network's numbers.

    `held` are the jumps that it rests on; there is one motion for each choice of what is `chosen`
    to vanish on them, of all that `contacts.surfaces` gives.
    """
    net = steady(eq.net)
    net, along, rest = exact(net, held), exact(along, held), exact_rest(eq.rest, held)
    parts = _expanded(net, rest, jnp.asarray(float(side)), along, held)
    parts: _Expanded = jax.tree.map(np.asarray, parts)
    stepping = sum((stepped(net, rest, c) for c in held if not c.weighs), parts.frozen > np.inf)
    return [_motion(parts, each, stepping, side) for each in chosen]


def _motion(parts: _Expanded, chosen: list[int], stepping: Array, side: int) -> Motion:
    """The motion on the chosen surfaces, to which memories that ticks step either way adapt."""
    n, m = len(parts.state), len(parts.wire)
    idle = ~np.any(parts.by_x.drift[:, : n + m] != 0, axis=1) & ~stepping
    bound = (parts.frozen > 0) | idle

    def balance(rows: _Rows, axis: int = 0) -> Array:
        """What vanishes, n + m + s equations along an axis."""
        each = [np.moveaxis(np.asarray(part), axis, 0) for part in rows[:4]]
        moves = np.where(bound.reshape(-1, *(1,) * (each[0].ndim - 1)), each[1], each[0])
        return np.concatenate([moves[~stepping], each[2], each[3][chosen]])

    by_x = balance(parts.by_x)
    wanted = np.vstack([balance(parts.along, 1).T, balance(parts.values)])
    solution = motion_of(by_x, wanted)
    moves, newton = solution[:-1], solution[-1]
    size = 1.0 + np.abs(np.concatenate([parts.state, parts.wire, np.zeros(len(newton) - n - m)]))
    lost = np.flatnonzero((idle & (parts.loose > 0) & (parts.frozen == 0))[~stepping])
    message = ""
    if not np.all(np.isfinite(solution)):
        message = "the equilibrium is singular: it has no derivative"
    elif side == 0 and np.max(np.abs(newton) / size) > _OFF_BALANCE:
        message = "the equilibrium found does not balance its own equations, so has no derivative"
    elif lost.size:  # whether anything observed moves with where these states rest
        shifts = motion_of(by_x, np.eye(len(by_x))[lost])
        seen = [carry(by, np.asarray(0.0), shifts) for by in jax.tree.leaves(parts.by_x.seen)]
        if any(np.any(np.abs(change) > _UNMOVED) for change in seen):
            message = "a queue law's memory rests wherever it started, so its derivative is unknown"
    slopes = jax.tree.map(
        lambda by, along: carry(by, along, moves), parts.by_x.seen, parts.along.seen
    )
    pace = np.max(np.abs(moves) / size, axis=1)
    dv, du, dshare = np.split(moves, [n, n + m], axis=1)
    return Motion(dv, du, dshare, parts.values.seen, slopes, pace, message)


def branches(eq: Equilibrium, along: Network) -> tuple[list[Branch], str]:
    """How an equilibrium moves along directions of its network's numbers, to both sides, and the
    edge of a regime that it is at, if any. Raises NoDerivative where that is not known.
    """
    if eq.status == "none":
        raise NoDerivative("there is no equilibrium")
    if eq.status == "undetermined":
        raise NoDerivative(eq.message)
    if eq.status == "continuum":
        raise NoDerivative("many places rest, and which one is a matter of the start")
    if any(flows.loss.window(0.0, 1.0) is not None for flows in eq.net.flows):
        raise NoDerivative(without(eq))
    held: tuple[Contact, ...] = ()
    if not eq.smooth:
        held = contacts(steady(eq.net), eq.rest)
    ends, bends = _queue_ends(eq), _kinks(eq)
    jumping = {c.link for c in held if c.kind == SIGNAL}
    near = [j for j, (k, d) in enumerate(bends) if abs(d) < _NEAR and k not in jumping]
    kinked = at_kink(eq.net, eq) if eq.smooth else bool(held and near)
    begun = [c for c in held if c.weighs and float(eq.rest.said[c.link].share) <= _EDGE]
    choice = choices(held)
    if kinked:
        crowded = bool(ends or held) or len(near) != 1
    else:
        single = not ends and len(held) == len(choice) == 1
        lone = single and all(c.kind == SIGNAL for c in held)
        crowded = len(ends) > _MOST_ENDS or (bool(begun) and not lone)
    if crowded:
        raise NoDerivative(_CROWDED)
    if kinked:
        return _beside_kink(eq, along, near[0])
    if begun:
        return _beside_jump(eq, along, begun[0])
    found: list[Branch] = []
    for resting in itertools.product((True, False), repeat=len(ends)):
        here = _placed(eq, dict(zip(ends, resting, strict=True)))
        for each in motions(here, along, held=held, chosen=choice):
            stays = [_stays(here, each, k, rests) for k, rests in zip(ends, resting, strict=True)]
            found.append(_followed(each, stays))
    edge = "at a jump where two thresholds meet" if len(choice) > 1 else ""
    known = [branch for branch in found if not branch.motion.message]
    return known or found, "at the end of a queue" if ends else edge


def _followed(motion: Motion, rising: Sequence[Array]) -> Branch:
    """The branch of a motion on which none of some numbers may fall, of derivatives (K,) each."""
    least = _LEVEL * motion.pace
    every = np.array([np.zeros_like(least), *rising])
    return Branch(motion, np.all(every <= least, axis=0), np.all(every >= -least, axis=0))


def _queue_ends(eq: Equilibrium) -> list[int]:
    """Links that are between a queue at its end and one that moves."""
    found = []
    for k, (link, code) in enumerate(zip(eq.net.links, eq.rest.codes, strict=True)):
        place, full = float(eq.rest.places[k]), float(link.buffer)
        lossless = int(code) == FULL and float(eq.rest.said[k].share) <= _EDGE
        filled = int(code) != FULL and place >= full * (1 - _EDGE)
        if abs(place) <= _EDGE or lossless or filled:
            found.append(k)
    return found


def _placed(eq: Equilibrium, resting: dict[int, bool]) -> Equilibrium:
    """The equilibrium with queues that rest at their end, or move from there."""
    codes, places = np.array(eq.rest.codes), np.array(eq.rest.places)
    for k, rests in resting.items():
        if abs(places[k]) <= _EDGE:
            places[k] = _JUST_EMPTY if rests else 0.0
        else:
            codes[k] = FULL if rests else INTERIOR
    return dataclasses.replace(eq, rest=eq.rest._replace(codes=codes, places=places))


def _stays(eq: Equilibrium, motion: Motion, k: int, rests: bool) -> Array:
    """What may not fall (K,) for the queue of link k to rest at its end, or to move from there."""
    empty = abs(float(eq.rest.places[k])) <= _EDGE
    if rests:
        return (-1 if empty else 1) * motion.slopes["excess"][:, k]
    return motion.slopes["links"]["queue"][:, k] if empty else motion.slopes["room"][:, k]


def _kinks(eq: Equilibrium) -> list[tuple[int, float]]:
    """Links and distances of their kinks, in the order of what is observed."""
    return [(k, float(distance)) for k, distance in kinks(eq.net, state_at_rest(eq.net, eq.rest))]


def _beside_kink(eq: Equilibrium, along: Network, j: int) -> tuple[list[Branch], str]:
    """The branches on both sides of kink number j of the marking, or where it jumps there."""
    bends = _kinks(eq)
    k = bends[j][0]
    low, high = sides(eq.net.links[k], eq.rest.laws[k], eq.rest.queues[k])
    if abs(float(high.either) - float(low.either)) > _JUMP:
        own = [i for i, (link, _) in enumerate(bends) if link == k]
        return _beside_jump(eq, along, Contact(k, SIGNAL, (own.index(j),)))
    found = []
    for side in (-1, 1):
        moved = motions(eq, along, side=side)[0]
        found.append(_followed(moved, [side * moved.slopes["distances"][:, j]]))
    return found, "at a kink of the marking"


def _beside_jump(eq: Equilibrium, along: Network, contact: Contact) -> tuple[list[Branch], str]:
    """The branches where a jump begins: on it, and below it, where its share of the time is 0."""
    own = [i for i, (link, _) in enumerate(_kinks(eq)) if link == contact.link]
    on, below = motions(eq, along, held=(contact,), chosen=[[0], [1]])
    distance = below.slopes["distances"][:, own[contact.surfaces[0]]]
    each = [_followed(below, [-distance]), _followed(on, [on.shares[:, 0]])]
    return each, "where the rest comes to a jump of the marking"
