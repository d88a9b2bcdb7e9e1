"""Numbers of a graph as arrays of JAX over many trajectories, all of one shape: a compiler joins
elementwise operations on such arrays in few kernels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import Array, lax

from fluidcc.arrays import jnp
from fluidcc.dde.fused.graph import Graph, Ids, Node, Region

Numbers = list[Array]
"""Arrays (lanes,), one for each number."""


def choose(condition: Array, yes: list[Numbers], no: list[Numbers]) -> list[Numbers]:
    """One of two lists for each trajectory."""
    pairs = zip(yes, no, strict=True)
    return [[jnp.where(condition, a, b) for a, b in zip(*pair, strict=True)] for pair in pairs]


class Evaluation:
    """Evaluates numbers of a graph, which has no loops over arrays, for `lanes` trajectories."""

    def __init__(self, graph: Graph, lanes: int, known: dict[int, Array] | None = None) -> None:
        self.graph, self.lanes = graph, lanes
        self._known = dict(known or {})

    def bind(self, node: Node, values: Sequence[Array]) -> None:
        """Give a node its numbers."""
        self._known.update(zip(node.ids.tolist(), values, strict=True))

    def numbers(self, targets: Sequence[Ids], dtypes: Sequence[Any]) -> list[Numbers]:
        """The numbers of each target, which have a type."""
        is_known = lambda _, numbers: all(k in self._known for k in numbers.tolist())  # noqa: E731
        needed, need = self.graph.needed(targets, is_known)
        for node in needed:
            if node.kind == "region":
                self._enter(node)
            elif node.kind != "out":
                for k in np.flatnonzero(need[node.start : node.start + node.size]).tolist():
                    self._known[node.start + k] = self._evaluate(node, k)
        return [
            [self._number(k, dtype) for k in np.ravel(target).tolist()]
            for target, dtype in zip(targets, dtypes, strict=True)
        ]

    def _number(self, number: int, dtype: Any) -> Array:
        if number < 0:
            return lax.full((self.lanes,), self.graph.value(number), np.dtype(dtype))
        return self._known[number]

    def _evaluate(self, node: Node, k: int) -> Array:
        if node.kind == "read":
            memory, row = node.detail
            return memory.read(self._number(int(node.inputs[0][k]), np.int32), 0, row)
        by, *types = node.detail
        pairs = zip(node.inputs, types, strict=True)
        return by.traced(*(self._number(int(part[k]), dtype) for part, dtype in pairs))

    # loops and branches

    def _enter(self, node: Node) -> None:
        """Evaluate a region, and give what it leaves to the nodes after it."""
        region: Region = node.detail
        kinds = [v.dtype for v in region.variables]
        if region.kind == "branches":
            ((index,),) = self.numbers(region.start, [self.graph.dtype(region.start[0])])
            index = jnp.clip(index.astype(np.int32), 0, len(region.results) - 1)
            branches = [self._at(region).numbers(results, kinds) for results in region.results]
            values = [
                [lax.select_n(index, *cases) for cases in zip(*parts, strict=True)]
                for parts in zip(*branches, strict=True)
            ]
        elif region.kind == "while":
            values = self._repeat_while(region, self.numbers(region.start, kinds))
        else:
            values = self.numbers(region.start, kinds)
            for turn in range(region.turns):
                inner = self._at(region, values)
                assert region.counter is not None
                inner.bind(region.counter, [jnp.full((self.lanes,), turn, np.int32)])
                values = inner.numbers(region.results[0], kinds)
        outs = self.graph.nodes[node.index + 1 : node.index + 1 + len(values)]
        for out, value in zip(outs, values, strict=True):
            self.bind(out, value)

    def _at(self, region: Region, values: Sequence[Numbers] = ()) -> "Evaluation":
        """An evaluation in a region whose variables have these values."""
        inner = Evaluation(self.graph, self.lanes, self._known)
        for variable, value in zip(region.variables, values, strict=False):
            inner.bind(variable, value)
        return inner

    def _repeat_while(self, region: Region, values: list[Numbers]) -> list[Numbers]:
        """A trajectory whose condition has failed keeps its values."""
        goes, new = region.results
        kinds = [v.dtype for v in region.variables]

        def go(values: list[Numbers]) -> Array:
            return jnp.any(self._at(region, values).numbers(goes, [bool])[0][0])

        def advance(values: list[Numbers]) -> list[Numbers]:
            inner = self._at(region, values)
            ((active,),) = inner.numbers(goes, [bool])
            moved = inner.numbers(new, kinds)
            return choose(active, moved, values)

        return lax.while_loop(go, advance, values)
