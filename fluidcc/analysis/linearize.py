"""Linearisation at an equilibrium: derivatives by the present and by everything looked up.

Delays are frozen at the equilibrium; round trips inside rates are differentiated. That is exact to
first order: the variation of a delay multiplies derivatives that vanish at rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium, without
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.rest import FULL, Rest, state_at_rest
from fluidcc.analysis.settle import served
from fluidcc.fluid.delays import Past, State, Wire, ages, kinks, picks
from fluidcc.fluid.mean_traffic import as_fluid
from fluidcc.fluid.rates import FREE, HIGH, LOW, Modes, flux
from fluidcc.fluid.service import with_mean_calls
from fluidcc.laws.law import Signal
from fluidcc.network import Flows, Network, numeric
from fluidcc.ops import Num

Heard = Callable[[Num], list[tuple[Num, Num]]]

NEAR = 1e-7  # packets: distance at which a kink counts as reached
_ASIDE = 1e-6  # packets: step to either side of a kink
_FALLING = 1e-6  # packets per packet sent; a window at its floor that falls faster is held there


def linearize(net: Network, eq: Equilibrium | None = None, *, side: int = 0) -> Linear:
    """The linear system around an equilibrium (of `net` unless given).

    At a kink of a marking function `side` = -1 or 1 takes the derivatives just below or above it;
    see `at_kink`. Ticks of sampled laws count as change per period. Raises ValueError where there
    is no smooth equilibrium.

    Examples
    --------
    >>> import fluidcc as fc
    >>> linear = fc.linearize(fc.load("hollot2001/slow"))
    >>> linear.size, linear.lag.round(4).tolist()
    ((3, 5), [0.2518, 0.2518, 0.2518, 0.2518, 0.2518, 0.0, 0.2518])
    """
    net = as_fluid(net)
    eq = equilibrium(net) if eq is None else eq
    if not eq.smooth:
        raise ValueError(f"no linearisation: {without(eq)}")
    arrays = with_mean_calls(numeric(net))
    A, B, C, D, lag, frozen = map(np.asarray, jacobians(arrays, eq.rest, jnp.asarray(float(side))))
    free = (frozen == 0) & ~still(A, B)
    state_owner, wire_owner = _owners(arrays, eq.rest)
    first = int(sum(np.size(f.rtt) for f in net.flows))
    fields = len(Signal._fields)
    return Linear(
        A=A[np.ix_(free, free)],
        B=B[free],
        C=C[:, free],
        D=D,
        pick=np.concatenate([np.ravel(p) for p in jax.tree.leaves(picks(net))]).astype(int),
        lag=lag,
        state_owner=state_owner[free],
        wire_owner=wire_owner,
        signals=tuple(
            tuple(range(first + fields * k, first + fields * (k + 1)))
            for k in range(len(net.links))
        ),
        conserved=first if net.rates == "self_clocked" else 0,
    )


def still(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Mask (..., n) of the states that nothing moves: at a limit, or adapted by nothing."""
    return ~(np.any(A != 0, axis=-1) | np.any(B != 0, axis=-1))


def at_kink(net: Network, eq: Equilibrium) -> bool:
    """Whether a marking function has a kink at the equilibrium: there are two linearisations."""
    found = kinks(net, state_at_rest(net, eq.rest))
    return any(abs(float(distance)) < NEAR for _, distance in found)


def regime(eq: Equilibrium) -> tuple[Any, ...]:
    """What stays the same along a family of equilibria as long as their linearisation is smooth.

    Status, sliding links, the bound that each link rests at, the side of every kink, and the
    windows at their cap.
    """
    y = state_at_rest(with_mean_calls(numeric(eq.net)), eq.rest)
    sides = tuple(bool(distance > 0) for _, distance in kinks(eq.net, y))
    capped = tuple(
        tuple((np.asarray(w) >= f.window.max_window).tolist())
        for f, w in zip(eq.net.flows, eq.rest.windows, strict=True)
    )
    return (eq.status, eq.sliding, tuple(int(c) for c in eq.rest.codes), sides, capped)


def _owners(net: Network, rest: Rest) -> tuple[np.ndarray, np.ndarray]:
    """Class of flows that each state and each component of the wire belongs to."""
    y = state_at_rest(net, rest)
    sizes = [np.size(f.rtt) for f in net.flows]
    first = np.concatenate([[0], np.cumsum(sizes)])
    own = [np.arange(a, b) for a, b in itertools.pairwise(first)]
    senders = [o for o, s in zip(own, y.senders, strict=True) for _ in jax.tree.leaves(s)]
    others = len(jax.tree.leaves((y.queues, y.laws)))
    links = len(net.links) * (len(Signal._fields) + 1)
    state = np.concatenate([*senders, np.full(others, LINK)])
    return state, np.concatenate([*own, np.full(links, LINK)])


def _looked_up(net: Network, u: Num) -> Past:
    """What is seen of a wire that has always been u."""
    return jax.tree.map(lambda index: u[index], picks(net))


def _wire_at_rest(net: Network, rest: Rest, y: State, modes: Modes) -> Num:
    """The flattened wire at rest."""
    start = Wire(rest.rates, rest.signals, tuple(jnp.ones(()) for _ in net.links))
    none, first = jax.tree.map(jnp.zeros_like, start), ravel_pytree(start)[0]
    full = tuple(
        Signal(*((code == FULL).astype(float) for _ in Signal._fields)) for code in rest.codes
    )
    known = ravel_pytree(none._replace(signals=full))[0] > 0  # losses there: turns do not settle
    u = first
    for _ in range(len(net.links) + 2):  # other losses, and paces, are not known before
        now = ravel_pytree(flux(net, y, _looked_up(net, u), modes, ticks=True).wire)[0]
        u = jnp.where(known, first, now)
    return u


def _modes(net: Network, rest: Rest, y: State, said: tuple, heard: Heard) -> Modes:
    """Which bounds hold at rest: empty and full queues, windows that would pass their bounds."""
    queues = tuple(
        jnp.where(code == FULL, HIGH, jnp.where(place < 0, LOW, FREE))
        for code, place in zip(rest.codes, rest.places, strict=True)
    )
    free = tuple(jnp.zeros(jnp.shape(w), int) for w in rest.windows)
    modes = Modes(queues, free, said)
    u = _wire_at_rest(net, rest, y, modes)
    turns = [
        jax.tree.map(
            lambda c, w=weight: w * c,
            flux(net, y, _looked_up(net, wire), modes, ticks=True).window_raw,
        )
        for weight, wire in heard(u)
    ]
    raw = jax.tree.map(lambda *c: sum(c), *turns)

    def mode(flows: Flows, window: Num, change: Num, rate: Num) -> Num:
        capped = (change > 0) & (window >= flows.window.max_window)
        starved = (change < -_FALLING * rate) & (window == flows.window.min_window)
        return jnp.where(capped, HIGH, jnp.where(starved, LOW, FREE))

    parts = zip(net.flows, rest.windows, raw, rest.rates, strict=True)
    return Modes(queues, tuple(mode(*part) for part in parts), said)


def _frozen(net: Network, y: State, modes: Modes) -> Num:
    """Ones where a component of the flattened state is held by a bound."""
    still = jax.tree.map(jnp.zeros_like, y)
    senders = tuple(
        s._replace(law=f.window.with_window(s.law, (m != FREE).astype(float)))
        for f, s, m in zip(net.flows, still.senders, modes.windows, strict=True)
    )
    queues = tuple((m != FREE).astype(float) for m in modes.queues)
    return ravel_pytree(State(senders, queues, still.laws))[0]


def _aside(net: Network, rest: Rest, y: State, side: Num) -> State:
    """The state with busy queues and their averages a little longer or shorter."""
    queues, laws = [], []
    for link, place, x in zip(net.links, rest.places, y.laws, strict=True):
        there = jnp.where(place < 0, place, place + _ASIDE * side)
        beside = served(link, x, there)
        queues.append(jnp.maximum(there, 0.0))
        laws.append(jax.tree.map(lambda a, b: jnp.where(side == 0, a, b), x, beside))
    return y._replace(queues=tuple(queues), laws=tuple(laws))


def present(
    net: Network, y: State, modes: Modes
) -> tuple[Callable[[Network, Num, Num], Num], Num, Num]:
    """What a network does now, (drift, wire) flat, as a function of its numbers, of its flat state
    (n,) and of what it looks up (k,); with that state, and where on the wire (k,) it looks.
    """
    v, unflatten = ravel_pytree(y)
    indices, shape = jax.tree.flatten(picks(net))
    sizes = np.cumsum([np.size(i) for i in indices])[:-1]

    def function(net: Network, v: Num, z: Num) -> Num:
        parts = [p.reshape(np.shape(i)) for p, i in zip(jnp.split(z, sizes), indices, strict=True)]
        now = flux(net, unflatten(v), jax.tree.unflatten(shape, parts), modes, ticks=True)
        return jnp.concatenate([ravel_pytree(now.drift)[0], ravel_pytree(now.wire)[0]])

    return function, v, np.concatenate([np.ravel(i) for i in indices])


class At(NamedTuple):
    """A rest as an operating point: state, modes, flat wire, and ones where a bound holds."""

    y: State
    modes: Modes
    wire: Num
    frozen: Num


def _alone(wire: Num) -> list[tuple[Num, Num]]:
    return [(jnp.ones(()), wire)]


def operating_point(
    net: Network, rest: Rest, side: Num, said: tuple = (), heard: Heard = _alone
) -> At:
    """The operating point at rest, or a little to one side of it.

    `said` has, per link, the Signal that it is held at on a jump of its law, or None; `heard`
    tells the shares of the time and the flat wires of which senders hear in turn.
    """
    y = state_at_rest(net, rest)
    modes = _modes(net, rest, y, said, heard)
    wire = _wire_at_rest(net, rest, y, modes)
    y = _aside(net, rest, y, side)
    return At(y, modes, wire, _frozen(net, y, modes))


@jax.jit
def jacobians(net: Network, rest: Rest, side: Num) -> tuple[Any, ...]:
    """A, B, C, D, the lags [s] and which states are held, before those are taken out."""
    at = operating_point(net, rest, side)
    function, v, index = present(net, at.y, at.modes)
    by_state, by_past = jax.jacfwd(function, (1, 2))(net, v, at.wire[index])
    n = len(v)
    lag = ravel_pytree(ages(net, at.y))[0]
    return by_state[:n], by_past[:n], by_state[n:], by_past[n:], lag, at.frozen
