"""What is known of PyTrees of arrays before there are numbers in them."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Shapes = tuple[Any, tuple[tuple[tuple[int, ...], Any], ...]]
"""Structure of a PyTree, and shape and type of each of its leaves: hashable."""


def shapes_of(tree: Any) -> Shapes:
    """Structure, shapes and types of a PyTree of arrays."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def structs_of(shapes: Shapes) -> Any:
    """A PyTree of these shapes and types that JAX can trace with."""
    structure, leaves = shapes
    return jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves])


@functools.lru_cache(maxsize=256)
def unraveler(shapes: Shapes) -> Callable[[Array], Any]:
    """Function from a flat array to the PyTree of these shapes, in the type of the array.

    It is the same function for the same shapes.
    """
    structure, leaves = shapes
    ends = list(itertools.accumulate(size_of(shape) for shape, _ in leaves))

    def unravel(flat: Array) -> Any:
        parts = [
            flat[end - size_of(shape) : end].reshape(shape)
            for (shape, _), end in zip(leaves, ends, strict=True)
        ]
        return jax.tree.unflatten(structure, parts)

    return unravel


def size_of(shape: tuple[int, ...]) -> int:
    """How many numbers an array of this shape has."""
    return math.prod(shape)
