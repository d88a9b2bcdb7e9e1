"""Trees of numbers: modules, tuples and lists of numbers, with None for no number.

They are the trees of JAX, and in the same order, for code that also runs without it.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc import ops
from fluidcc.module import Module, rebuild, structure


def leaves(tree: Any) -> list[Any]:
    """The numbers of a tree, in order."""
    found: list[Any] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Any]) -> None:
    if isinstance(tree, tuple | list):
        for inner in tree:
            _collect(inner, found)
    elif isinstance(tree, Module):
        for name in structure(type(tree))[0]:
            _collect(getattr(tree, name), found)
    elif tree is not None:
        found.append(tree)


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree of the results of a function of the numbers at the same position of each tree."""
    if isinstance(tree, tuple | list):
        found = [map_tree(function, *part) for part in zip(tree, *others, strict=True)]
        return type(tree)(*found) if hasattr(tree, "_fields") else type(tree)(found)
    if isinstance(tree, Module):
        names = structure(type(tree))[0]
        parts = [[getattr(each, name) for each in (tree, *others)] for name in names]
        return rebuild(tree, [map_tree(function, *part) for part in parts])
    return None if tree is None else function(tree, *others)


def unflatten(tree: Any, values: Any) -> Any:
    """A tree of the same shape with other numbers, in order."""
    rest = iter(values)
    return map_tree(lambda _: next(rest), tree)


def flatten(tree: Any) -> Any:
    """All numbers of a tree as one vector."""
    found = leaves(tree)
    return ops.concatenate([ops.ravel(v) for v in found]) if found else np.zeros(0)


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a tree as one vector, and the function that makes the tree of such a one."""
    shapes = [np.shape(v) for v in leaves(tree)]
    ends = [0, *itertools.accumulate(map(math.prod, shapes))]

    def restore(flat: Any) -> Any:
        parts = (flat[a:b] for a, b in itertools.pairwise(ends))
        shaped = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        return unflatten(tree, shaped)

    return flatten(tree), restore
