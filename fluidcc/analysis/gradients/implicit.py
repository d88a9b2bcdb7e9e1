"""The implicit function theorem: the solution of F(x, p) = 0 has derivative -F_x^-1 F_p by p.

Equilibria, characteristic roots and crossovers are all differentiated in this way, at the solution
and never through the iterations that found it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.arrays import jax, jnp
from fluidcc.model.fluid import as_fluid, with_mean_calls
from fluidcc.ops import Num
from fluidcc.scenario.network import Network, to_arrays
from fluidcc.scenario.paths import number_at, replace


def directions(net: Network, paths: Sequence[str], *, steady: bool = True) -> list[Network]:
    """Derivatives of all numbers of the fluid model by the value at each path.

    If `steady`, those of the network with calls at their mean rate, as for equilibria; else calls
    keep varying at random. The number of flows scales a group in proportion over its round trips.
    Raises ScenarioError for paths that lead to no number.
    """

    def direction(path: str) -> Network:
        def numbers(value: jax.Array) -> Network:
            fluid = to_arrays(as_fluid(replace(net, {path: value}, where="gradient")))
            return with_mean_calls(fluid, varying=steady)

        value = jnp.asarray(number_at(net, path), float)
        return jax.jvp(numbers, (value,), (jnp.ones_like(value),))[1]

    return [direction(path) for path in paths]


def expand(function: Callable[[Num, Any], Any], x: Num, p: Any, along: Any) -> tuple[Any, Any, Any]:
    """A function of x (N,) and of a tree p to first order: its value, its derivatives by x (..., N)
    and those along K directions of p (K, ...).
    """

    def pushed(direction: Any) -> Any:
        return jax.jvp(lambda p: function(x, p), (p,), (direction,))[1]

    return function(x, p), jax.jacfwd(function)(x, p), jax.lax.map(pushed, along)


def motion_of(by_x: Array, along: Array) -> Array:
    """Derivatives (K, N) of the solution of N equations, from those of the equations by x (N, N)
    and along K directions (K, N); NaN where they are singular.
    """
    try:
        return -np.linalg.solve(by_x, along.T).T
    except np.linalg.LinAlgError:
        return np.full(along.shape, np.nan)


def carry(by_x: Array, along: Array, moves: Array) -> Array:
    """Derivatives (K, ...) of a function of x and p by the chain rule, with those (K, N) of x."""
    return along + np.tensordot(moves, np.moveaxis(by_x, -1, 0), (1, 0))
