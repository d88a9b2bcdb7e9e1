"""How an equilibrium moves with parameters: the implicit function theorem for its balance.

The balance of a rest is drift = 0 for what moves, a bound for what rests on it, wire = what is
sent and said, and for links on a jump the surface that they stay on. With its Jacobian J by state,
wire and the shares of the time on either side of the jumps, a direction of parameters moves all of
these by -J^-1 times the derivative of the balance in that direction.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.contacts import (
    Contact,
    exact,
    exact_rest,
    given,
    mixed,
    shares,
    stepped,
    surfaces,
    weighed,
)
from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.linearize import still
from fluidcc.analysis.operating_point import operating_point, present
from fluidcc.analysis.rest import Rest, state_at_rest
from fluidcc.laws.law import Signal
from fluidcc.model.delays import Past, State, Wire, kink_distances, picks, round_trip
from fluidcc.model.fluid import steady
from fluidcc.model.rates import HIGH, LOW, Modes, flux, heard, touched
from fluidcc.model.senders import sending_rate
from fluidcc.ops import Num
from fluidcc.quantities import units
from fluidcc.scenario.network import Network

_OFF_BALANCE = 1e-6  # relative Newton step up to which a rest balances
_UNMOVED = 1e-9  # of what is told, in its unit per unit of a memory


class Seen(NamedTuple):
    """What is told of a rest, by name: per link (L,), per group (m,) each."""

    links: dict[str, Num]
    flows: dict[str, tuple[Num, ...]]


class Moving(NamedTuple):
    """A rest and how it moves along K directions: state (K, n), wire (K, m) and shares of the time
    above jumps (K, s), what is told of it and its derivatives (K, ...), distances (c,) to kinks and
    theirs (K, c), derivatives of what links accept above their capacity, as a share of it (K, L),
    and of the room in their buffers [packet] (K, L), the largest relative change (K,), and a fault
    if any.
    """

    state: Array
    wire: Array
    shares: Array
    seen: Seen
    slopes: Seen
    distances: Array
    kinks: Array
    excess: Array
    room: Array
    pace: Array
    message: str


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
    laws = []
    for link, x in zip(net.links, y.laws, strict=True):
        if link.queue.limits is None:
            laws.append(x)
            continue
        low, high = link.queue.limits
        laws.append(jax.tree.map(lambda v, a=low, b=high: _limit(v, a, b), x))
    moved = y._replace(senders=tuple(senders), queues=queues, laws=tuple(laws))
    return ravel_pytree(moved)[0]


def _limit(value: Num, low: Num, high: Num) -> Num:
    """The limit that a value is at, or the value."""
    return jnp.where(value <= low, low, jnp.where(value >= high, high, value))


def _classes(net: Network) -> int:
    return int(sum(np.size(f.rtt) for f in net.flows))


def _wire(net: Network, u: Num) -> Wire:
    """The wire from its flat form."""
    at, rates, fields = 0, [], len(Signal._fields)
    for flows in net.flows:
        size = int(np.size(flows.rtt))
        rates.append(u[at : at + size])
        at += size
    links = range(len(net.links))
    signals = tuple(Signal(*(u[at + fields * k + j] for j in range(fields))) for k in links)
    at += fields * len(net.links)
    return Wire(tuple(rates), signals, tuple(u[at + k] for k in links))


def _rates(net: Network, y: State, u: Num) -> Num:
    """Rates of the flows at rest: flights over round trips."""
    signals, out = _wire(net, u).signals, []
    for flows, s in zip(net.flows, y.senders, strict=True):
        rtt = round_trip(net, flows, y.queues)
        said = heard(flows, tuple(signals[k] for k in flows.route))
        rate = sending_rate(flows, s, Signal(*(v + 0.0 * rtt for v in said)), rtt)
        out.append(s.active * rate if flows.traffic.starts else rate)
    return jnp.concatenate(out)


class _Told(NamedTuple):
    """What is told of a rest; distances (c,) to kinks; what links accept above their capacity, as
    a share of it, and the room in their buffers [packet] (L,).
    """

    seen: Seen
    distances: Num
    excess: Num
    room: Num


def _told(net: Network, y: State, u: Num, modes: Modes) -> _Told:
    """What is told of a network with this state and wire."""
    wire = _wire(net, u)
    past: Past = jax.tree.map(lambda index: u[index], picks(net))
    raw = flux(net, y, past, modes, ticks=True).queue_raw
    excess = jnp.stack([r / link.capacity for r, link in zip(raw, net.links, strict=True)])
    links: dict[str, list] = {key: [] for key in units("rest", "links")}
    for k, link in enumerate(net.links):
        links["queue"].append(y.queues[k])
        links["average"].append(link.queue.average(y.laws[k], y.queues[k]))
        links["signal"].append(wire.signals[k].either)
        links["utilization"].append(jnp.where(modes.queues[k] == LOW, 1 + excess[k], 1.0))
        links["load"].append(wire.signals[k].load)
    flows: dict[str, list] = {key: [] for key in units("rest", "flows")}
    for i, group in enumerate(net.flows):
        signal = touched(group, tuple(wire.signals[k] for k in group.route))
        flows["window"].append(group.window.window(y.senders[i].law))
        flows["rtt"].append(round_trip(net, group, y.queues))
        flows["rate"].append(wire.rates[i])
        flows["heard"].append(signal + 0.0 * group.rtt)
    stacked = {key: jnp.stack(each) for key, each in links.items()}
    seen = Seen(stacked, {key: tuple(each) for key, each in flows.items()})
    room = jnp.stack([link.buffer - q for link, q in zip(net.links, y.queues, strict=True)])
    return _Told(seen, kink_distances(net, y), excess, room)


class _Rows(NamedTuple):
    """What vanishes at rest: drift and distance from where a bound holds (n,), wire (m,), and all
    that may be the surface of a jump.
    """

    drift: Any
    rests: Any
    wire: Any
    surfaces: Any


class _Parts(NamedTuple):
    """Rows and what is told; derivatives by state, wire, what is looked up and shares, last axis
    (n + m + k + s), and along K directions (K, ...); where on the wire is looked; ones where a
    bound holds, and for memories of queue laws at no limit; state and wire.
    """

    values: tuple[_Rows, _Told]
    slopes: tuple[_Rows, _Told]
    directed: tuple[_Rows, _Told]
    index: Any
    frozen: Any
    loose: Any
    state: Any
    wire: Any


@functools.partial(jax.jit, static_argnames="held")
def _parts(net: Network, rest: Rest, side: Num, along: Network, held: tuple[Contact, ...]) -> Any:
    """All derivatives that the motion of a rest is made of, as `_Parts`."""
    part = shares(rest, held)
    said = given(net, held, state_at_rest(net, rest), part)
    at = operating_point(
        net, rest, side, said, lambda u: weighed(net, rest, held, part, u, jnp.arange(len(u)))
    )
    _, v, index = present(net, at.y, at.modes)
    unflatten, first = ravel_pytree(at.y)[1], _classes(net)
    ends = np.cumsum([len(v), len(at.wire), len(index)])

    def modes(net: Network, y: State, part: Num) -> Modes:
        return at.modes._replace(said=given(net, held, y, part))

    def both(net: Network, x: Num) -> tuple[_Rows, _Told]:
        v, u, z, part = jnp.split(x, ends)
        y = unflatten(v)
        told = _told(net, y, u, modes(net, y, part))
        function = present(net, y, modes(net, y, part))[0]
        heard = weighed(net, rest, held, part, z, index)
        now, n = mixed(heard, lambda z: function(net, v, z)), len(v)
        rests = pinned(net, unflatten(jax.lax.stop_gradient(v)), at.modes)
        wire, parts = now[n:], _wire(net, u)
        if net.rates == "self_clocked":  # whose numbers in flight stay what they are
            wire = wire.at[:first].set(_rates(net, y, u))
        there = surfaces(net, held, y, tuple(s.load for s in parts.signals), part)
        return _Rows(now[:n], rests - v, wire - u, there), told

    here = jnp.concatenate([v, at.wire, at.wire[index], part])
    laws = ravel_pytree(jax.tree.map(jnp.zeros_like, at.y)._replace(
        laws=jax.tree.map(jnp.ones_like, at.y.laws)
    ))[0]  # fmt: skip
    pins = jax.jvp(lambda v: pinned(net, unflatten(v), at.modes), (v,), (jnp.ones_like(v),))[1]
    return _Parts(
        values=both(net, here),
        slopes=jax.jacfwd(both, 1)(net, here),
        directed=jax.lax.map(
            lambda d: jax.jvp(lambda net: both(net, here), (net,), (d,))[1], along
        ),
        index=index, frozen=at.frozen, loose=laws * pins, state=v, wire=at.wire,
    )  # fmt: skip


def moving(
    eq: Equilibrium,
    along: Network,
    *,
    side: int = 0,
    held: tuple[Contact, ...] = (),
    chosen: Sequence[list[int]] = ([],),
) -> list[Moving]:
    """How an equilibrium moves along directions of its network's numbers.

    `held` are the jumps that it rests on; there is one motion for each choice of what is `chosen`
    to vanish on them, of all that `contacts.surfaces` tells.
    """
    net = steady(eq.net)
    net, along, rest = exact(net, held), exact(along, held), exact_rest(eq.rest, held)
    parts: _Parts = jax.tree.map(
        np.asarray, _parts(net, rest, jnp.asarray(float(side)), along, held)
    )
    stepping = sum((stepped(net, rest, c) for c in held if not c.weighs), parts.frozen > np.inf)
    return [_moving(parts, each, stepping, side) for each in chosen]


def _moving(parts: _Parts, chosen: list[int], stepping: Array, side: int) -> Moving:
    """The motion on the chosen surfaces, to which memories that ticks step either way adapt."""
    n, m = len(parts.state), len(parts.wire)
    ends = np.cumsum([n, m, len(parts.index)])
    fold = np.zeros((len(parts.index), m))
    fold[np.arange(len(parts.index)), parts.index] = 1.0

    def total(by: Array) -> Array:
        """Derivatives (n + m + s, ...), with those by what is looked up on the wire."""
        by_state, by_wire, by_late, by_share = np.split(by, ends, axis=-1)
        each = (by_state, by_wire + by_late @ fold, by_share)
        return np.moveaxis(np.concatenate(each, axis=-1), -1, 0)

    slopes, told_slopes = parts.slopes
    by_state, _, by_late, _ = np.split(slopes.drift, ends, axis=-1)
    idle = still(by_state, by_late) & ~stepping
    bound = (parts.frozen > 0) | idle

    def balance(rows: _Rows) -> Array:
        """What vanishes (..., n + m + s)."""
        moves = np.where(bound, rows.rests, rows.drift)[..., ~stepping]
        return np.concatenate([moves, rows.wire, rows.surfaces[..., chosen]], axis=-1)

    jacobian = balance(jax.tree.map(total, slopes)).T
    directed, told_directed = parts.directed
    wanted = np.vstack([balance(directed), balance(parts.values[0])])
    try:
        solution = -np.linalg.solve(jacobian, wanted.T).T
    except np.linalg.LinAlgError:
        solution = np.full(wanted.shape, np.nan)
    moves, newton = solution[:-1], solution[-1]
    size = 1.0 + np.abs(np.concatenate([parts.state, parts.wire, np.zeros(len(newton) - n - m)]))
    message = ""
    if not np.all(np.isfinite(solution)):
        message = "the equilibrium is singular: it has no derivative"
    elif side == 0 and np.max(np.abs(newton) / size) > _OFF_BALANCE:
        message = "the equilibrium found does not balance its own equations, so has no derivative"
    dv, du, dshare = np.split(moves, [n, n + m], axis=1)

    def along(direct: Array, by: Array) -> Array:
        """Derivatives (K, ...): along the directions themselves, and by all that moves."""
        return direct + np.tensordot(moves, total(by), (1, 0))

    told = jax.tree.map(along, told_directed, told_slopes)
    lost = np.flatnonzero((idle & (parts.loose > 0) & (parts.frozen == 0))[~stepping])
    if not message and _matters(jacobian, lost, [total(by) for by in jax.tree.leaves(told_slopes)]):
        message = "a queue law's memory rests wherever it started, so its derivative is unknown"
    here = parts.values[1]
    return Moving(
        state=dv, wire=du, shares=dshare, seen=here.seen, slopes=told.seen,
        distances=here.distances, kinks=told.distances, excess=told.excess, room=told.room,
        pace=np.max(np.abs(moves) / size, axis=1), message=message,
    )  # fmt: skip


def _matters(jacobian: Array, rows: Array, told: list[Array]) -> bool:
    """Whether what is told moves with where the states rest that these rows hold."""
    units = np.zeros((len(jacobian), len(rows)))
    units[rows, np.arange(len(rows))] = 1.0
    response = np.linalg.solve(jacobian, units)
    changes = [np.tensordot(response, by, (0, 0)) for by in told]
    return any(np.any(np.abs(change) > _UNMOVED) for change in changes)
