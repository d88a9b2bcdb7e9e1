"""How an equilibrium moves with parameters: the implicit function theorem for its balance.

The balance of a rest is drift = 0 for what moves, a bound for what rests on it, and wire = what is
sent and said. With its Jacobian J by state and wire, a direction of parameters moves both by
-J^-1 times the derivative of the balance in that direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.gradients.quantities import FLOW_UNITS, LINK_UNITS
from fluidcc.analysis.linear import Array
from fluidcc.analysis.linearize import At, jacobians, operating_point, present, still
from fluidcc.analysis.rest import Rest
from fluidcc.fluid.delays import Past, State, Wire, picks, round_trip
from fluidcc.fluid.rates import HIGH, LOW, Modes, flux, heard, touched
from fluidcc.fluid.senders import sending_rate
from fluidcc.fluid.service import with_mean_calls
from fluidcc.laws.law import Signal
from fluidcc.network import Network, numeric
from fluidcc.ops import Num

_OFF_BALANCE = 1e-6  # relative Newton step up to which a rest balances


class Seen(NamedTuple):
    """What is told of a rest, by name: per link (L,), per group (m,) each."""

    links: dict[str, Num]
    flows: dict[str, tuple[Num, ...]]


class Moving(NamedTuple):
    """A rest and how it moves along K directions: state (K, n) and wire (K, m), what is told of it
    and its derivatives (K, ...), distances (c,) to kinks and theirs (K, c), and a fault if any.
    """

    state: Array
    wire: Array
    seen: Seen
    slopes: Seen
    distances: Array
    kinks: Array
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
        jnp.where(mode == LOW, 0.0, q) for q, mode in zip(y.queues, modes.queues, strict=True)
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


def _balance(
    net: Network, at: At, held: Num, function: Callable[[Network, Num, Num], Num], index: Num
) -> Callable[[Network, Num, Num], Num]:
    """What vanishes at rest, (n + m,), of numbers, flat state and flat wire."""
    unflatten = ravel_pytree(at.y)[1]

    def balance(net: Network, v: Num, u: Num) -> Num:
        now, n = function(net, v, u[index]), len(v)
        y = unflatten(v)
        rests = pinned(net, unflatten(jax.lax.stop_gradient(v)), at.modes)
        drift = jnp.where(held > 0, rests - v, now[:n])
        wire = now[n:]
        if net.rates == "self_clocked":  # whose numbers in flight stay what they are
            wire = wire.at[: _classes(net)].set(_rates(net, y, u))
        return jnp.concatenate([drift, wire - u])

    return balance


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


def _seen(net: Network, at: At, v: Num, u: Num) -> Seen:
    """What is told of a network with this state and wire."""
    y, wire = ravel_pytree(at.y)[1](v), _wire(net, u)
    past: Past = jax.tree.map(lambda index: u[index], picks(net))
    raw = flux(net, y, past, at.modes, ticks=True).queue_raw
    links: dict[str, list] = {key: [] for key in LINK_UNITS}
    for k, link in enumerate(net.links):
        used = (raw[k] + link.capacity) / link.capacity
        links["queue"].append(y.queues[k])
        links["average"].append(link.queue.average(y.laws[k], y.queues[k]))
        links["signal"].append(wire.signals[k].either)
        links["utilization"].append(jnp.where(at.modes.queues[k] == LOW, used, 1.0))
        links["load"].append(wire.signals[k].load)
    flows: dict[str, list] = {key: [] for key in FLOW_UNITS}
    for i, group in enumerate(net.flows):
        signal = touched(group, tuple(wire.signals[k] for k in group.route))
        flows["window"].append(group.window.window(y.senders[i].law))
        flows["rtt"].append(round_trip(net, group, y.queues))
        flows["rate"].append(wire.rates[i])
        flows["heard"].append(signal + 0.0 * group.rtt)
    stacked = {key: jnp.stack(each) for key, each in links.items()}
    return Seen(stacked, {key: tuple(each) for key, each in flows.items()})


def _kinks(net: Network, y: State) -> Num:
    """Distances to the kinks of the marking functions, (c,)."""
    found = [
        jnp.asarray(distance, float)
        for link, x, q in zip(net.links, y.laws, y.queues, strict=True)
        for distance in link.queue.kinks(x, q)
    ]
    return jnp.stack(found) if found else jnp.zeros(0)


@jax.jit
def _parts(net: Network, rest: Rest, side: Num, held: Num, along: Network) -> tuple:
    """Balance, its Jacobian by state and wire, its derivatives along K directions; what is told,
    with derivatives by state and wire, and along the directions; distances to kinks likewise. Then
    state, wire, and ones for memories of queue laws at no limit.
    """
    at = operating_point(net, rest, side)
    function, v, index = present(net, at.y, at.modes)
    unflatten = ravel_pytree(at.y)[1]
    balance = _balance(net, at, held, function, index)

    def told(net: Network, v: Num, u: Num) -> tuple[Seen, Num]:
        return _seen(net, at, v, u), _kinks(net, unflatten(v))

    def both(net: Network, v: Num, u: Num) -> tuple:
        return balance(net, v, u), told(net, v, u)

    u = at.wire
    slopes = jax.jacfwd(both, (1, 2))(net, v, u)
    directed = jax.lax.map(lambda d: jax.jvp(lambda net: both(net, v, u), (net,), (d,))[1], along)
    laws = ravel_pytree(jax.tree.map(jnp.zeros_like, at.y)._replace(
        laws=jax.tree.map(jnp.ones_like, at.y.laws)
    ))[0]  # fmt: skip
    pins = jax.jvp(lambda v: pinned(net, unflatten(v), at.modes), (v,), (jnp.ones_like(v),))[1]
    return both(net, v, u), slopes, directed, v, u, laws * pins


def moving(eq: Equilibrium, along: Network, *, side: int = 0) -> Moving:
    """How a smooth equilibrium moves along directions of its network's numbers."""
    net, aside = with_mean_calls(numeric(eq.net)), jnp.asarray(float(side))
    A, B, *_, frozen = map(np.asarray, jacobians(net, eq.rest, aside))
    idle = still(A, B)
    held = jnp.asarray((frozen > 0) | idle, float)
    values, slopes, directed, v, u, loose = jax.tree.map(
        np.asarray, _parts(net, eq.rest, aside, held, along)
    )
    balance, n = values[0], len(v)
    by_state, by_wire = slopes[0]
    jacobian = np.concatenate([by_state, by_wire], axis=1)
    try:
        solution = -np.linalg.solve(jacobian, np.vstack([directed[0], balance]).T).T
    except np.linalg.LinAlgError:
        solution = np.full((len(directed[0]) + 1, n + len(u)), np.nan)
    moves, newton = solution[:-1], solution[-1]
    size = 1.0 + np.abs(np.concatenate([v, u]))
    message = ""
    if not np.all(np.isfinite(solution)):
        message = "the equilibrium is singular: it has no derivative"
    elif side == 0 and np.max(np.abs(newton) / size) > _OFF_BALANCE:
        message = "the equilibrium found does not balance its own equations, so has no derivative"
    lost = idle & (loose > 0) & (frozen == 0)
    if np.any(lost) and np.any(np.delete(jacobian, np.flatnonzero(lost), axis=0)[:, :n][:, lost]):
        message = "a queue law's memory rests wherever it started, so its derivative is unknown"
    dv, du = moves[:, :n], moves[:, n:]

    def total(direct: Array, slopes: tuple[Array, Array]) -> Array:
        """Derivatives (K, ...): along the directions themselves, and by state and wire."""
        by_state, by_wire = slopes
        return direct + np.tensordot(dv, by_state, (1, -1)) + np.tensordot(du, by_wire, (1, -1))

    told = jax.tree.map(total, directed[1], slopes[1])
    return Moving(dv, du, values[1][0], told[0], values[1][1], told[1], message)
