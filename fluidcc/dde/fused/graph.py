"""What a kernel computes, as a graph: each node is one operation on arrays of numbers.

Every number has an index, negative for constants, and an array is an array of such indices. So
what only moves numbers (slices, transposes, broadcasts, concatenations, picks by constants) costs
nothing and has no node. Equal operations on equal numbers have one node, and what is constant is
computed at once.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import lax
from jax.core import Tracer

from fluidcc.dde.fused.writer import Rule, lane_type, rule

MOST_OPERATIONS = 100_000
_LOOPED = ("each", "read", "pick", "reduce")

Ids = np.ndarray[Any, Any]
"""Indices of numbers."""


class Memory(NamedTuple):
    """An array that stays in memory.

    ``read(index, offset, row)`` is a read of the number `index` + `offset`; `row` is true if its
    neighbours in a row are read too.
    """

    read: Callable[[Any, int, bool], Any]
    shape: tuple[int, ...]


Operand = Ids | Memory


@dataclasses.dataclass(eq=False)
class Node:
    """An operation whose results are the numbers from `start` on.

    `kind` is ``each`` (a rule applied number by number), ``read`` (of a memory), ``pick`` (from a
    table at computed indices), ``reduce``, ``pack`` (a copy side by side), ``given`` (by name or
    memory), ``variable``, ``region`` (a loop or branches) or ``out`` (what a region leaves in a
    variable).
    """

    index: int
    kind: str
    start: int
    size: int
    dtype: Any
    inputs: tuple[Ids, ...]
    detail: Any
    turns: int
    """Of the loop that computes it; 0 if it is computed number by number."""

    @property
    def ids(self) -> Ids:
        """The numbers of the results."""
        return np.arange(self.start, self.start + self.size)


@dataclasses.dataclass(eq=False)
class Region:
    """A loop or branches: `variables` take the numbers `start`, then those of `results` in turn.

    For a `while` the results are the condition and the new values; for `branches` the values of
    each; for a loop of `turns` the new values, where `counter` is the turn.
    """

    kind: str
    variables: list[Node]
    start: list[Ids]
    results: list[list[Ids]]
    turns: int = 0
    counter: Node | None = None


class Graph:
    """Nodes, in an order in which each comes after its inputs.

    Arrays of up to `unrolled` numbers are computed number by number, larger ones by loops. There
    are at `most` so many operations.
    """

    def __init__(self, unrolled: int, most: int = MOST_OPERATIONS) -> None:
        self.unrolled, self.most = unrolled, most
        self.nodes: list[Node] = []
        self.total = self.operations = 0
        self.weight = 1
        self._owners = np.zeros(1024, np.int64)
        self._values: list[Any] = []
        self._constants: dict[Any, int] = {}
        self._known: dict[Any, Node] = {}

    # numbers

    def constants(self, value: Any) -> Ids:
        """Numbers with constant values; raises ValueError for a traced array or another type."""
        if isinstance(value, Tracer):
            raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
        if hasattr(value, "dtype"):
            lane_type(value.dtype)
        array = np.asarray(value)
        ids = np.empty(array.shape, np.int64)
        for at, number in zip(np.ndindex(array.shape), array.ravel().tolist(), strict=True):
            key = type(number), repr(number)
            if key not in self._constants:
                self._values.append(number)
                self._constants[key] = -len(self._values)
            ids[at] = self._constants[key]
        return ids

    def value(self, number: int) -> Any:
        """The value of a constant number."""
        return self._values[-1 - number]

    def values(self, ids: Ids, dtype: Any) -> np.ndarray:
        """The values of constant numbers."""
        values = [self.value(number) for number in ids.ravel()]
        return np.array(values, dtype).reshape(ids.shape)

    def owner(self, number: int) -> Node:
        """The node that computes a number."""
        return self.nodes[self._owners[number]]

    def owners(self, *inputs: Ids) -> list[Node]:
        """The nodes that compute numbers, in order."""
        ids = np.concatenate([np.ravel(part) for part in (*inputs, np.zeros(0, np.int64))])
        return [self.nodes[k] for k in np.unique(self._owners[ids[ids >= 0]])]

    def parents(self, node: Node) -> list[Node]:
        """The nodes on which a node depends."""
        return [node.detail[0]] if node.kind == "out" else self.owners(*node.inputs)

    def needed(
        self, targets: Sequence[Ids], is_known: Callable[[Node, Ids], bool]
    ) -> tuple[list[Node], np.ndarray]:
        """The nodes that have to be evaluated for targets, in order, and of all numbers whether
        they are needed; `is_known` says if numbers of a node are there.
        """
        need = np.zeros(self.total, bool)
        for target in targets:
            need[target[target >= 0]] = True
        regions: set[int] = set()
        needed: list[Node] = []
        last = max((n.index for n in self.owners(*targets)), default=-1)
        for node in self.nodes[last::-1] if last >= 0 else []:
            numbers = np.flatnonzero(need[node.start : node.start + node.size])
            if not numbers.size and node.index not in regions:
                continue
            if node.kind != "region" and is_known(node, numbers + node.start):
                need[node.start : node.start + node.size] = False
                continue
            needed.append(node)
            if node.kind == "out":
                regions.add(node.detail[0].index)
            one_by_one = node.kind in ("each", "read", "pick") and not node.turns
            for k, part in enumerate(node.inputs):
                used = part[numbers] if one_by_one and not (node.kind == "pick" and k) else part
                need[used[used >= 0]] = True
        return needed[::-1], need

    # nodes

    def add(
        self, kind: str, dtype: Any, size: int, inputs: Sequence[Ids] = (), detail: Any = None
    ) -> Node:
        """A new node."""
        turns = inputs[0].size if kind == "reduce" else size
        if kind not in _LOOPED or turns <= self.unrolled:
            turns = 0
        node = Node(
            len(self.nodes), kind, self.total, size, np.dtype(dtype), tuple(inputs), detail, turns
        )
        self.nodes.append(node)
        self.total += size
        while self.total > self._owners.size:
            self._owners = np.concatenate([self._owners, np.zeros_like(self._owners)])
        self._owners[node.start : self.total] = node.index
        if kind in _LOOPED:
            self.operations += self.weight * (1 if node.turns else size)
        if self.operations > self.most:
            raise ValueError(
                f"a fused kernel has up to {self.most} operations, and this would have more: "
                "leave fused=True out"
            )
        return node

    def _compute(
        self, kind: str, dtype: Any, size: int, inputs: Sequence[Ids], detail: Any = None
    ) -> Ids:
        """The results of a node, which is new if there is none like it."""
        if size > self.unrolled:
            inputs = [self.side_by_side(part) for part in inputs]
        key = kind, np.dtype(dtype), detail, size, *(part.tobytes() for part in inputs)
        if key not in self._known:
            self._known[key] = self.add(kind, dtype, size, inputs, detail)
        return self._known[key].ids

    def side_by_side(self, ids: Ids) -> Ids:
        """Numbers that a loop can read: of one array, or one number, or constants."""
        first = ids[0]
        if np.all(ids == first) or np.all(ids < 0):
            return ids
        owner = self.owner(first) if first >= 0 else None
        if owner is not None and owner.size > self.unrolled:
            if np.all((ids >= owner.start) & (ids < owner.start + owner.size)):
                return ids
        return self.pack(ids)

    def pack(self, ids: Ids) -> Ids:
        """Numbers copied to an array of their own."""
        kind = self.dtype(ids)
        key = "pack", ids.tobytes()
        if key not in self._known:
            self._known[key] = self.add("pack", kind, ids.size, (ids,))
        return self._known[key].ids

    def dtype(self, ids: Ids) -> Any:
        """The type of numbers, at least one of which is computed."""
        return self.owner(ids[ids >= 0][0]).dtype

    def apply(
        self, by: Rule, operands: Sequence[Ids], types: Sequence[Any], dtype: Any, shape: Any = None
    ) -> Ids:
        """A rule applied number by number."""
        shape = np.broadcast_shapes(*(o.shape for o in operands)) if shape is None else shape
        columns = [np.broadcast_to(operand, shape).ravel() for operand in operands]
        size = columns[0].size
        if not size:
            return np.zeros(shape, np.int64)
        rows = np.stack(columns, axis=1)
        if size > 1:  # equal numbers are computed once
            _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            if first.size < size and (first.size <= size // 2 or size <= self.unrolled):
                order = np.argsort(first)
                place = np.empty_like(order)
                place[order] = np.arange(order.size)
                picked = [column[first[order]] for column in columns]
                once = self.apply(by, picked, types, dtype)
                return once[place[which.ravel()]].reshape(shape)
        fixed = np.all(rows < 0, axis=1) if by.known is not None else np.zeros(size, bool)
        results = np.empty(size, np.int64)
        if np.all(fixed) or (np.any(fixed) and size <= self.unrolled):
            for k in np.flatnonzero(fixed):
                results[k] = self._fold(by, rows[k], types)
            rest = ~fixed
            if np.any(rest):
                some = [column[rest] for column in columns]
                results[rest] = self._compute("each", dtype, some[0].size, some, (by, *types))
            return results.reshape(shape)
        return self._compute("each", dtype, size, columns, (by, *types)).reshape(shape)

    def _fold(self, by: Rule, row: Ids, types: Sequence[Any]) -> int:
        """The constant that a rule makes of constants."""
        assert by.known is not None
        values = [np.dtype(t).type(self.value(e)) for t, e in zip(types, row, strict=True)]
        with np.errstate(all="ignore"):
            return int(self.constants(np.asarray(by.known(*values)).item()))

    def binary(self, primitive: str, a: Ids, b: Ids, dtype: Any) -> Ids:
        """A binary primitive such as `add` or `mul` on two arrays of one type."""
        if np.dtype(dtype).kind in "iu":
            neutral = {"add": 0, "mul": 1}.get(primitive)
            for value, other in ((a, b), (b, a)):
                if np.all(value < 0) and np.all(self.values(value, object) == neutral):
                    return np.broadcast_to(other, np.broadcast_shapes(a.shape, b.shape))
        by = rule(primitive, dtype)
        assert by is not None, primitive
        return self.apply(by, (a, b), (dtype, dtype), dtype)

    def select(self, which: Ids, cases: Sequence[Ids], dtype: Any, shape: Any = None) -> Ids:
        """The case with an index; for two cases the index may be a condition, false or true."""
        shape = np.broadcast_shapes(*(o.shape for o in (which, *cases))) if shape is None else shape
        which, *cases = (np.broadcast_to(v, shape).ravel() for v in (which, *cases))
        result = np.array(cases[0])
        known = which < 0
        for k in np.flatnonzero(known):
            result[k] = cases[int(self.value(which[k]))][k]
        open_ = ~known & ~np.all([case == cases[0] for case in cases], axis=0)
        if np.any(open_):
            expression = "{1}"
            for k in range(1, len(cases)):
                later = f"{{0}} > {k - 1}" if k > 1 else "{0} != 0"
                expression = f"choose({later}, {{{k + 1}}}, {expression})"
            whole = which.size > self.unrolled and not np.any(known)
            pick = slice(None) if whole else open_
            given = [v[pick] for v in (which, *cases)]
            types = (self.dtype(given[0]), *(dtype,) * len(cases))
            result[pick] = self.apply(Rule(expression, traced=lax.select_n), given, types, dtype)
        return result.reshape(shape)

    def reduce(self, primitive: str, lines: Ids, dtype: Any) -> Ids:
        """Numbers joined along the last axis by a binary primitive."""
        *shape, count = lines.shape
        if not lines.size:
            return np.broadcast_to(self.constants(identity(primitive, dtype)), shape)
        rows = lines.reshape(-1, count)
        if count <= self.unrolled or np.all(rows < 0) or rows.shape[0] > count:
            result = rows[:, 0]
            for k in range(1, count):
                result = self.binary(primitive, result, rows[:, k], dtype)
            return result.reshape(shape)
        parts = []
        for row in rows:
            if np.all(row == row[0]) or np.all(row < 0):
                joined = row[:1]
                for k in range(1, count):
                    joined = self.binary(primitive, joined, row[k : k + 1], dtype)
            else:
                joined = self._reduce(primitive, row, dtype)
            parts.append(joined)
        return np.concatenate(parts).reshape(shape)

    def _reduce(self, primitive: str, row: Ids, dtype: Any) -> Ids:
        row = self.side_by_side(row)
        key = "reduce", primitive, np.dtype(dtype), row.tobytes()
        if key not in self._known:
            self._known[key] = self.add("reduce", dtype, 1, (row,), primitive)
        return self._known[key].ids

    def read(self, memory: Memory, index: Ids, dtype: Any, row: bool) -> Ids:
        """Numbers in memory at computed indices."""
        flat = index.ravel()
        return self._compute("read", dtype, flat.size, [flat], (memory, row)).reshape(index.shape)

    def pick(self, table: Ids, index: Ids, dtype: Any) -> Ids:
        """Numbers of a table at computed indices."""
        table, flat = table.ravel(), index.ravel()
        if np.all(flat < 0):
            return table[self.values(flat, np.int64)].reshape(index.shape)
        if np.all(table == table[0]):
            return np.broadcast_to(table[0], index.shape)
        if table.size <= self.unrolled:
            return self.select(index, [np.broadcast_to(v, index.shape) for v in table], dtype)
        whole = self.side_by_side(table)
        if (
            np.any(whole < 0)
            or self.owner(whole[0]).size != whole.size
            or np.any(np.diff(whole) != 1)
        ):
            whole = self.pack(table) if np.any(table >= 0) else table
        if flat.size > self.unrolled:
            flat = self.side_by_side(flat)
        node = self.add("pick", dtype, flat.size, (flat, whole))
        return node.ids.reshape(index.shape)

    def split_sum(self, number: int) -> tuple[int, int]:
        """The base and the constant offset of a sum; the number itself and 0 for anything else."""
        offset = 0
        while number >= 0:
            node = self.owner(number)
            if node.kind != "each" or node.detail[0] is not rule("add", int):
                break
            if node.dtype != np.int32:
                break
            a, b = (part[number - node.start] for part in node.inputs)
            if a < 0 <= b:
                a, b = b, a
            if not b < 0 <= a:
                break
            number, offset = a, offset + int(self.value(b))
        return number, offset

    # loops and branches

    def variables(self, avals: Iterable[Any]) -> list[Node]:
        """New variables, one for each array."""
        return [
            self.add("variable", aval.dtype, int(np.prod(aval.shape, dtype=int))) for aval in avals
        ]

    def region(self, region: Region, mark: int) -> list[Ids]:
        """What a region leaves in its variables; its nodes are those from `mark` on.

        Nodes that depend on no variable are computed once, before a loop; in branches each is
        computed only if its branch is taken.
        """
        inner = {node.index for node in region.variables}
        if region.counter is not None:
            inner.add(region.counter.index)
        for node in self.nodes[mark:]:
            if region.kind == "branches" and node.kind != "given":
                inner.add(node.index)
            elif any(parent.index in inner for parent in self.parents(node)):
                inner.add(node.index)
        needed = [ids for results in region.results for ids in results]
        outer, seen = list(region.start), set()
        waiting = [*needed]
        while waiting:
            ids = waiting.pop()
            flat = np.ravel(ids)
            owned = self._owners[np.maximum(flat, 0)]
            outside = (flat >= 0) & ~np.isin(owned, list(inner))
            outer.append(flat[outside])
            for node in self.owners(flat[~outside]):
                if node.index not in seen:
                    seen.add(node.index)
                    waiting += node.detail[0].inputs if node.kind == "out" else node.inputs
        outer = np.unique(np.concatenate([np.ravel(part) for part in outer]))
        node = self.add("region", bool, 0, (outer[outer >= 0],), region)
        outs = []
        for variable in region.variables:
            out = self.add("out", variable.dtype, variable.size, (), (node, variable))
            outs.append(out.ids)
        return outs


def identity(primitive: str, dtype: Any) -> Any:
    """The identity element of a binary primitive: the result of an empty reduction."""
    kind = np.dtype(dtype)
    if primitive in ("max", "min") and kind.kind != "b":
        sign = -1 if primitive == "max" else 1
        bounds = np.iinfo(kind) if kind.kind in "iu" else None
        return sign * np.inf if bounds is None else bounds.min if sign < 0 else bounds.max
    all_ones = True if kind.kind == "b" else -1
    zero = False if kind.kind == "b" else 0
    return {"add": zero, "mul": 1, "and": all_ones, "or": zero, "max": zero, "min": all_ones}[
        primitive
    ]
