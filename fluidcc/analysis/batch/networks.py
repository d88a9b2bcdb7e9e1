"""Equilibria and linearisations of one network at many values of its parameters, in lanes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.balance import holds
from fluidcc.analysis.batch.threads import filled, in_threads
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, linearize, still
from fluidcc.analysis.local_model import NEAR
from fluidcc.analysis.operating_point import (
    AGREE,
    OperatingPoint,
    Regime,
    find_operating_point,
    steady_state,
)
from fluidcc.analysis.steady_queue import memory_with_mark
from fluidcc.analysis.steady_sender import LARGEST_WINDOW
from fluidcc.arrays import jax, jnp
from fluidcc.model.delays import kinks
from fluidcc.model.fluid import as_fluid, steady
from fluidcc.ops import Num
from fluidcc.scenario.network import Network, to_arrays
from fluidcc.scenario.paths import replace

_TOGETHER = 128  # networks that are solved together


class OperatingPoints(NamedTuple):
    """Networks at equilibrium, first axis the networks (P,).

    Queues (P, links) [packet], whether all queues are empty, whether the equilibrium is smooth and
    the only one found, and the matrices of `Linear` with the lags [s] and the states held at a
    bound.
    """

    queues: Any
    empty: Any
    smooth: Any
    A: Any
    B: Any
    C: Any
    D: Any
    lag: Any
    frozen: Any


def _agrees(first: OperatingPoint, second: OperatingPoint) -> Num:
    """Whether two searches ended at the same backlogs and signals."""
    pairs = [(first.backlogs, second.backlogs)]
    for a, b in zip(first.signals, second.signals, strict=True):
        pairs += [(a.mark, b.mark), (a.drop, b.drop)]
    return jnp.all(
        jnp.stack([jnp.all(jnp.abs(a - b) <= AGREE * (1 + jnp.abs(a))) for a, b in pairs])
    )


@jax.jit
@jax.vmap
def _solve(net: Network) -> tuple[Network, OperatingPoint, Num]:
    """The fluid network, its operating point, and whether all initial states of laws lead to it."""
    net = steady(net)
    op = find_operating_point(net, jnp.zeros(len(net.links)))
    alone = op.moved <= AGREE
    for start in range(1, max(len(link.queue.initial_states(0.0)) for link in net.links)):
        alone = alone & _agrees(op, find_operating_point(net, jnp.zeros(len(net.links)), start))
    return net, op, alone


def _hold_jumps(net: Network, op: OperatingPoint) -> tuple[OperatingPoint, Num]:
    """The operating point with memories of links held on a discontinuity; their mask (links,)."""
    laws, steady = list(op.laws), []
    for k, link in enumerate(net.links):
        below, now = op.signals_below[k], op.emitted[k].signal
        if not jax.tree.leaves(laws[k]):
            steady.append(jnp.asarray(False))
            continue
        memory = memory_with_mark(link, op.backlogs[k], now.mark, op.lost[k])
        moves = (below.drop == now.drop) & (below.mark != now.mark) & (op.codes[k] == Regime.JUMP)
        steady.append(moves & memory.found & memory.smooth)
        laws[k] = jax.tree.map(functools.partial(jnp.where, steady[k]), memory.memory, laws[k])
    return op._replace(laws=tuple(laws)), jnp.stack(steady)


@functools.partial(jax.jit, static_argnames="jumps")
def _linearise(net: Network, op: OperatingPoint, alone: Num, jumps: bool) -> OperatingPoints:
    """Linearise networks at equilibrium (P,); `jumps`: some links are on a discontinuity."""

    def linearise(net: Network, op: OperatingPoint, alone: Num) -> OperatingPoints:
        op, steady = _hold_jumps(net, op) if jumps else (op, False)
        smooth = alone & jnp.all(
            (op.codes == Regime.INTERIOR) | (op.codes == Regime.EMPTY) | steady
        )
        for flows, window in zip(net.flows, op.windows, strict=True):
            endless = jnp.isinf(jnp.asarray(flows.window.max_window, float))
            smooth = smooth & ~(endless & (jnp.max(window) >= LARGEST_WINDOW))
        for _, distance in kinks(net, steady_state(net, op)):
            smooth = smooth & (jnp.abs(jnp.asarray(distance, float)) >= NEAR)
        A, B, C, D, lag, frozen = jacobians(net, op, jnp.zeros(()))
        smooth = smooth & holds(net, op, (A, B, C, D)) & jnp.all(jnp.isfinite(lag))
        empty = jnp.all(op.codes == Regime.EMPTY)
        return OperatingPoints(op.queues, empty, smooth, A, B, C, D, lag, frozen)

    return jax.vmap(linearise)(net, op, alone)


def at_rest(stacked: Network) -> OperatingPoints:
    """OperatingPoints of networks whose leaves have a first axis for them."""
    count = len(jax.tree.leaves(stacked)[0])

    def block(part: slice) -> OperatingPoints:
        some = jax.tree.map(lambda x: filled(x[part], _TOGETHER), stacked)
        net, op, alone = _solve(some)
        jumps = bool(np.any(np.asarray(op.codes) == Regime.JUMP))
        found = _linearise(net, op, alone, jumps)
        return jax.tree.map(lambda x: np.asarray(x)[: count - part.start], found)

    parts = in_threads(block, count, _TOGETHER)
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def batchable(net: Network) -> bool:
    """Whether windows follow drifts, not a formula of the loss rate, and there is one link.

    Several links may have several equilibria, which `equilibrium` looks for from further starts.
    """
    drifts = all(flows.loss.window(0.0, 1.0) is None for flows in as_fluid(net).flows)
    return drifts and len(net.links) == 1


def members(net: Network, axes: Mapping[str, Sequence[Any]]) -> Network | None:
    """The networks over a grid, stacked, the last axis fastest.

    None unless every parameter is a number and only replaces the number at its path, which is
    checked at the grid's corners and along its edges.
    """
    numbers = all(
        isinstance(v, int | float) and not isinstance(v, bool)
        for values in axes.values()
        for v in values
    )
    if not axes or not numbers:
        return None
    base = to_arrays(net)
    try:
        trials = [(values, to_arrays(replace(net, values))) for values in _edges(axes)]
    except ValueError:
        return None
    traced = jax.jit(functools.partial(_changed, tuple(axes)))
    for values, expected in trials:
        if not _same(traced(base, [float(v) for v in values.values()]), expected):
            return None
    grid = np.meshgrid(*(np.asarray(v, float) for v in axes.values()), indexing="ij")
    many = jax.vmap(functools.partial(_changed, tuple(axes)), in_axes=(None, 0))
    stacked = jax.jit(many)(base, [g.ravel() for g in grid])
    return jax.tree.map(np.asarray, stacked)


def _changed(paths: tuple[str, ...], net: Network, values: list[Num]) -> Network:
    return replace(net, dict(zip(paths, values, strict=True)))


def _edges(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The corners of the grid, and every value of an axis with the first ones of the others."""
    paths = tuple(axes)
    ends = [{axes[p][0], axes[p][-1], min(axes[p]), max(axes[p])} for p in paths]
    corners = [dict(zip(paths, c, strict=True)) for c in itertools.product(*ends)]
    first = {p: values[0] for p, values in axes.items()}
    return corners + [{**first, p: v} for p, values in axes.items() for v in values[1:-1]]


def _same(first: Network, second: Network) -> bool:
    """Whether two networks agree in every number and choice."""
    a, b = jax.tree.flatten(first), jax.tree.flatten(second)
    if a[1] != b[1]:
        return False
    return all(np.array_equal(x, y) for x, y in zip(a[0], b[0], strict=True))


def families(
    rests: OperatingPoints, chosen: Array, at: Callable[[int], Network]
) -> list[tuple[Array, Linear]]:
    """Linear systems of the equilibria `chosen` (indices), in groups of one structure each.

    `at` gives the network of an index.
    """
    free = (rests.frozen[chosen] == 0) & ~still(rests.A[chosen], rests.B[chosen])
    out = []
    for kept in np.unique(free, axis=0):
        own = chosen[np.all(free == kept, axis=1)]
        square = np.ix_(own, kept.nonzero()[0], kept.nonzero()[0])
        structure = linearize(at(int(own[0])))
        out.append((own, dataclasses.replace(
            structure, A=rests.A[square], B=rests.B[own][:, kept], C=rests.C[own][:, :, kept],
            D=rests.D[own], lag=rests.lag[own],
        )))  # fmt: skip
    return out
