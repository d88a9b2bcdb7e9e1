"""The history of trajectories on a uniform mesh: a ring of rows, one for each of the latest nodes.

A row holds a record's values, then step times their slopes. The rows of one node stand side by
side, a lane for each trajectory of a batch: what is read lies close together in the cache, and what
a step writes is one piece.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax


def _get(array: Array, index: Array) -> Array:
    """Entries of an array, without clamps."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


class Ring(NamedTuple):
    """The ring as one of its `lanes` trajectories sees it.

    `table` has shape (slots lanes, 2 U), with a power of two of slots.
    """

    table: Array
    lane: Any
    lanes: int

    @property
    def slots(self) -> int:
        """How many nodes are kept."""
        return self.table.shape[0] // self.lanes

    @property
    def width(self) -> int:
        """Number U of columns of the record."""
        return self.table.shape[1] // 2

    def _place(self, node: Array) -> Array:
        return (node & (self.slots - 1)) * self.lanes + self.lane

    def rows(self, node: Array) -> Array:
        """The rows (..., 2 U) of nodes of any shape."""
        return _get(self.table, self._place(node))

    def numbers(self, node: Array, column: Array) -> tuple[Array, Array]:
        """Values, and step times slopes, of one column at each node."""
        at = self._place(node) * (2 * self.width) + column
        flat = self.table.reshape(-1)
        return _get(flat, at), _get(flat, at + self.width)


def written(table: Array, node: Array, rows: Array) -> Array:
    """The table with the rows (lanes, 2 U) of a new node in place of the oldest one's."""
    lanes = rows.shape[0]
    at = jnp.bitwise_and(node, table.shape[0] // lanes - 1) * lanes
    return lax.dynamic_update_slice(table, rows, (at, jnp.zeros_like(at)))
