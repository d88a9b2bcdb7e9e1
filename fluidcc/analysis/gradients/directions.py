"""How the numbers of a network move with the value at a path."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from fluidcc.model.fluid import as_fluid, with_mean_calls
from fluidcc.scenario.network import Network, numeric
from fluidcc.scenario.paths import number_at, replace


def directions(net: Network, paths: Sequence[str], *, steady: bool = True) -> list[Network]:
    """Derivatives of all numbers of the fluid model by the value at each path.

    With `steady` those of the network whose calls are all at their mean rate, as equilibria have
    it; else calls that vary at random stay. The number of flows scales a group in proportion over
    its round trips. Raises ScenarioError for paths that lead to no number.
    """

    def moved(path: str) -> Network:
        def numbers(value: jax.Array) -> Network:
            fluid = numeric(as_fluid(replace(net, {path: value}, where="gradient")))
            return with_mean_calls(fluid, varying=steady)

        value = jnp.asarray(number_at(net, path), float)
        return jax.jvp(numbers, (value,), (jnp.ones_like(value),))[1]

    return [moved(path) for path in paths]
