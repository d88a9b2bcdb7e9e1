"""Linearisation at an equilibrium: derivatives by the present state and by delayed inputs.

Delays are frozen at the equilibrium; round trips inside rates are differentiated. That is exact to
first order: the variation of a delay multiplies derivatives that vanish at equilibrium.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fluidcc import ops
from fluidcc.analysis.balance import differ
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium, without
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.local_model import NEAR, local_state
from fluidcc.analysis.operating_point import OperatingPoint, Regime, steady_state
from fluidcc.laws.parameters import numeric_parameters
from fluidcc.model.delays import (
    DelayedInputs,
    State,
    ages,
    kinks,
    output_index,
    output_indices,
)
from fluidcc.model.fluid import as_fluid, steady
from fluidcc.model.rates import Modes, flux, scaled, summed
from fluidcc.module import rebuild, structure
from fluidcc.ops import Num
from fluidcc.programs import batch, compiled, flatten, leaves, ravel, slope, write_out
from fluidcc.scenario.network import Network


def linearize(net: Network, eq: Equilibrium | None = None, *, side: int = 0) -> Linear:
    """The linear system around an equilibrium (default: that of `net`).

    At a kink of a marking function `side` = -1 or 1 takes the derivatives just below or above it;
    see `at_kink`. Ticks of sampled laws count as change per period. Raises ValueError if there is
    no smooth equilibrium, or if the derivatives disagree with finite differences.

    Returns
    -------
    Linear
        Matrices of the present state (n, n) and of each delayed input, and their lags [s].

    Examples
    --------
    >>> import fluidcc as fc
    >>> linear = fc.linearize(fc.load("hollot2001/slow"))
    >>> linear.size, linear.lag.round(4).tolist()
    ((3, 4), [0.2518, 0.2518, 0.2518])
    """
    own, net = eq is None or net is eq.net, as_fluid(net)
    eq = equilibrium(net) if eq is None else eq
    if not eq.smooth:
        raise ValueError(f"no linearisation: {without(eq)}")
    arrays = steady(net)
    A, B, C, D, lag, free = _derivatives(arrays, eq.op, side)
    if fault := differ(arrays, eq.op, side, (A, B, C, D), eq.rows if own else None):
        raise ValueError(f"no linearisation: {fault}")
    state_owner, output_owner = _owners(arrays, eq.op)
    index = output_index(net)
    return Linear(
        A=A[np.ix_(free, free)],
        B=B[free],
        C=C[:, free],
        D=D,
        pick=np.concatenate([np.ravel(p) for p in leaves(output_indices(net))]).astype(int),
        lag=lag,
        state_owner=state_owner[free],
        output_owner=output_owner,
        signals=tuple(tuple(leaves(signal)) for signal in index.signals),
        conserved=sum(map(np.size, index.rates)) if net.rates == "self_clocked" else 0,
    )


def free_states(net: Network, eq: Equilibrium) -> np.ndarray:
    """Mask of the components of the flat state that are in the linearisation."""
    return _derivatives(steady(net), eq.op, 0)[-1]


def _derivatives(arrays: Network, op: OperatingPoint, side: int) -> tuple[np.ndarray, ...]:
    """A, B, C, D, the lags [s], and which states are free."""
    *found, frozen = map(np.asarray, jacobians(arrays, op, np.float64(side)))
    return (*found, (frozen == 0) & ~still(*found[:2]))


def still(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Mask (..., n) of constant states, whose derivatives are all zero."""
    return ~(np.any(A != 0, axis=-1) | np.any(B != 0, axis=-1))


def at_kink(net: Network, eq: Equilibrium) -> bool:
    """Whether a marking function has a kink at the equilibrium: there are two linearisations."""
    found = kinks(net, steady_state(net, eq.op))
    return any(abs(float(distance)) < NEAR for _, distance in found)


def regime(eq: Equilibrium) -> tuple[Any, ...]:
    """Label that is constant along a family of equilibria while their linearisation is smooth.

    Status, sliding links, the bound that holds each link, the side of every kink, and the windows
    at their cap.
    """
    y = steady_state(steady(eq.net), eq.op)
    sides = tuple(bool(distance > 0) for _, distance in kinks(eq.net, y))
    capped = tuple(
        tuple((np.asarray(w) >= f.window.max_window).tolist())
        for f, w in zip(eq.net.flows, eq.op.windows, strict=True)
    )
    return (eq.status, eq.sliding, tuple(int(c) for c in eq.op.codes), sides, capped)


def describe_change(first: Equilibrium, second: Equilibrium) -> str:
    """What differs between two neighbouring regimes, such as ``average queue passes max_th``."""
    net, y = first.net, steady_state(steady(first.net), first.op)
    (_, _, codes, sides, capped), (_, _, others, far_sides, far_capped) = (
        regime(eq) for eq in (first, second)
    )
    links = [k for k, _ in kinks(net, y)]
    changed = [j for j, (a, b) in enumerate(zip(sides, far_sides, strict=True)) if a != b]
    words = [_describe_threshold(net, y, links[j], j - links.index(links[j])) for j in changed]
    for name, a, b in zip(net.link_names, codes, others, strict=True):
        if Regime.EMPTY in (a, b) and a != b:
            words.append(f"the queue of {name} empties")
        if Regime.FULL in (a, b) and a != b:
            words.append(f"the buffer of {name} fills")
    for name, a, b in zip(net.flow_names, capped, far_capped, strict=True):
        words += [f"windows of {name} reach max_window"] if a != b else []
    return ", ".join(words)


def _describe_threshold(net: Network, y: State, k: int, index: int) -> str:
    """The parameters of a link's law at which a breakpoint of its signal is, and what passes it."""
    link, x, queue = net.links[k], y.laws[k], float(y.queues[k])
    law = link.queue

    def distance(law: Any = law, x: Any = x, queue: float = queue) -> float:
        return float(law.breakpoints(x, link.arrival(0.0, 0.0, queue))[index])

    def beyond(name: str) -> float:
        """How far the breakpoint moves as a parameter grows by 1."""
        names = structure(type(law))[0]
        parts = (getattr(law, own) + 1.0 if own == name else getattr(law, own) for own in names)
        return round(distance() - distance(rebuild(law, parts)), 6)

    factors = ((name, beyond(name)) for name in numeric_parameters(law))
    place = " + ".join(name if f == 1 else f"{f:g} {name}" for name, f in factors if f)
    numbers, restore = ravel(x)
    own = [
        field.info.doc or name
        for j, (name, field) in enumerate(law.states.items())
        if distance(x=restore(numbers + np.eye(len(numbers))[j])) != distance()
    ]
    what = "queue" if distance(queue=queue + 1.0) != distance() else " and ".join(own)
    where = f" at {net.link_names[k]}" if len(net.links) > 1 else ""
    return f"{what} passes {place or 'a threshold'}{where}"


def _owners(net: Network, op: OperatingPoint) -> tuple[np.ndarray, np.ndarray]:
    """Class of flows that each state and each output belongs to."""
    y = steady_state(net, op)
    sizes = [np.size(f.rtt) for f in net.flows]
    first = np.concatenate([[0], np.cumsum(sizes)])
    own = [np.arange(a, b) for a, b in itertools.pairwise(first)]
    senders = [o for o, s in zip(own, y.senders, strict=True) for _ in leaves(s)]
    others = len(leaves((y.queues, y.laws)))
    links = len(leaves(output_index(net)._replace(rates=())))
    state = np.concatenate([*senders, np.full(others, LINK)])
    return state, np.concatenate([*own, np.full(links, LINK)])


def _along(
    net: Network, modes: Modes, y: State, past: DelayedInputs, change: State, late: DelayedInputs
) -> tuple[Any, Any]:
    """Derivative of the drift and the outputs along a change of the state and of its inputs."""

    def moved(k: Num) -> tuple[Any, Any]:
        there = summed(y, scaled(k, change)), summed(past, scaled(k, late))
        now = flux(net, *there, modes, ticks=True)
        return now.drift, now.outputs

    return slope(moved, net, y, past, change, late)


@compiled
def jacobians(net: Network, op: OperatingPoint, side: Num) -> tuple[Any, ...]:
    """A, B, C, D, the lags [s] and the mask of states held at a bound, which are included."""
    at = local_state(net, op, side)
    v, restore = ravel(at.y)
    index, as_inputs = ravel(output_indices(net))
    late = at.outputs[index]
    n, lag, outputs = len(v), flatten(ages(net, at.y)), output_index(net)

    def along(direction: Num) -> Num:
        moving = restore(direction[..., :n]), as_inputs(direction[..., n:])
        free = (at.y, as_inputs(late), *moving)
        found = write_out(_along, (net, at.modes), free)(*leaves(free))
        return flatten([*found], direction.shape[:-1], (at.y, outputs))

    point = ops.concatenate([v, late])
    slopes = batch(along, np.eye(len(point)) + 0.0 * point[None]).T
    return slopes[:n, :n], slopes[:n, n:], slopes[n:, :n], slopes[n:, n:], lag, at.frozen
