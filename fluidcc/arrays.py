"""JAX as fluidcc needs it: in double precision, with laws and networks as trees.

Every part that computes with arrays imports this first; delays and roots have no digits to spare.
"""

import logging
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp  # noqa: F401
from jax import lax  # noqa: F401
from jax.tree_util import GetAttrKey

from fluidcc.machine import about_a_card
from fluidcc.module import classes, make, registrar, structure

jax.config.update("jax_enable_x64", True)
logging.getLogger("jax._src.xla_bridge").addFilter(about_a_card)


def _register(cls: type) -> None:
    nodes, fixed = structure(cls)
    keys = tuple(GetAttrKey(name) for name in nodes)

    def flatten(thing: Any) -> tuple[tuple, tuple]:
        values = vars(thing)
        return tuple(values[n] for n in nodes), tuple(values[n] for n in fixed)

    def flatten_with_keys(thing: Any) -> tuple[tuple, tuple]:
        leaves, fixed_values = flatten(thing)
        return tuple(zip(keys, leaves, strict=True)), fixed_values

    def unflatten(fixed_values: tuple, leaves: Iterable) -> Any:
        return make(cls, leaves, fixed_values)

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


if not registrar:
    registrar.append(_register)
    for each in classes:
        _register(each)
