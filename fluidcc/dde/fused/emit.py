"""From the graph of a kernel to C: which loops there are, in which order, and what is kept.

Operations on arrays of one length share a loop as far as each needs no more of the others than
the number of the same turn. What others need later is kept in an array of the thread, which is
used again after its last reader; all else is a number in a register. Numbers outside loops are
computed where they are needed first.
"""

import contextlib
import functools
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidcc.dde.fused.graph import (
    Graph,
    Ids,
    Node,
    Region,
    identity,
)
from fluidcc.dde.fused.writer import Writer, lane_type, literal, rule

_BETWEEN_FENCES = 40  # lines
MOST_REGISTERS = 52
"""Most registers for numbers that wait for a reader, beside those of addresses and functions."""
_RUN = 4  # least numbers that are copied by a loop


class _Scope:
    """Names of numbers and arrays that are visible in a block."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.arrays: dict[int, str] = {}
        self.given: list[int] = []


class Emitter:
    """Writes what computes numbers of a graph.

    With `reload` numbers from memory are read anew after some statements: that is cheaper than to
    keep them in registers.
    """

    def __init__(self, writer: Writer, graph: Graph, *, reload: bool) -> None:
        self.writer, self.graph, self.reload = writer, graph, reload
        self.scopes = [_Scope()]
        self._fenced = 0
        self._free_arrays: dict[tuple[str, int], list[str]] = {}
        self._declarations = len(writer.lines)

    @contextlib.contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """An inner block, whose names are not visible outside."""
        with self.writer.block(head):
            self.scopes.append(_Scope())
            yield
            for index in list(self.scopes[-1].arrays):
                self._free(self.graph.nodes[index])
            self.scopes.pop()

    # numbers by name

    def _name(self, number: int) -> str | None:
        return next((s.names[number] for s in self.scopes[::-1] if number in s.names), None)

    def _array(self, node: Node) -> str | None:
        found = (s.arrays[node.index] for s in self.scopes[::-1] if node.index in s.arrays)
        return next(found, None)

    def text(self, number: int, dtype: Any) -> str:
        """A number as C; one that is computed has been, or can be read."""
        if number < 0:
            return literal(self.graph.value(number), dtype)
        name = self._name(number)
        if name is None:
            node = self.graph.owner(number)
            name = self._read(node, str(number - node.start))
            self.scopes[-1].names[number] = name
            if self.reload:
                self.scopes[-1].given.append(number)
        return name

    def _fence(self) -> None:
        """Forget numbers that were read from memory, here and in the compiler."""
        if not self.reload or len(self.writer.lines) < self._fenced + _BETWEEN_FENCES:
            return
        self._fenced = len(self.writer.lines)
        self.writer.write("FENCE;")
        for scope in self.scopes:
            for number in scope.given:
                scope.names.pop(number, None)
            scope.given.clear()

    def _read(self, node: Node, index: str) -> str:
        """A number of an array, under a name."""
        array = self._array(node)
        expression = f"{array}[{index}]" if array else node.detail(index)
        return self.writer.constant(lane_type(node.dtype), expression)

    def _is_known(self, node: Node, numbers: Ids) -> bool:
        """Whether numbers of a node can be read without further operations."""
        if node.kind == "given" or self._array(node) is not None:
            return True
        return all(self._name(int(n)) is not None for n in numbers)

    def bind(self, node: Node, names: Sequence[str] | str) -> None:
        """Name the numbers of a node, or the array that has them."""
        if isinstance(names, str):
            self.scopes[-1].arrays[node.index] = names
        else:
            self.scopes[-1].names.update(zip(node.ids.tolist(), names, strict=True))

    def declare(self, node: Node, *, parked: bool = False) -> None:
        """Declare a variable: an array, or a name for each number.

        One that is `parked` stays in memory if reading anew is cheaper than a register.
        """
        parked = parked and self.reload and node.size > 0
        if node.size > self.graph.unrolled or parked:
            self.bind(node, self.writer.variable(node.dtype, node.size, kept=self.reload))
        else:
            self.bind(node, [self.writer.variable(node.dtype) for _ in range(node.size)])

    # what is needed, in which order

    def compute(self, *targets: Ids) -> None:
        """Write what computes numbers, unless that has been done in this block or one around it."""
        needed, need = self.graph.needed(targets, self._is_known)
        order, loops = self._order(needed)
        self._write(order, loops, need, self.graph.owners(*targets))

    def _order(self, needed: list[Node]) -> tuple[list[list[Node]], dict[int, int]]:
        """Nodes by loop, in an order in which all can be computed; the loop of each node."""
        graph, pending = self.graph, {node.index: node for node in needed}
        parents = {
            k: {p.index for p in graph.parents(node) if p.index in pending}
            for k, node in pending.items()
        }
        items: list[list[Node]] = []
        item_of: dict[int, int] = {}

        def take(nodes: list[Node]) -> None:
            for node in nodes:
                item_of[node.index] = len(items)
                del pending[node.index]
            items.append(nodes)

        while pending:
            for k, node in list(pending.items()):
                if not node.turns and all(p in item_of for p in parents[k]):
                    take([node])
            groups: dict[int, list[Node]] = {}
            for k, node in pending.items():
                if not node.turns:
                    continue
                group = groups.setdefault(node.turns, [])
                inside = {member.index for member in group}
                if all(
                    p in item_of or (p in inside and self._same_turn(graph.nodes[p], node))
                    for p in parents[k]
                ):
                    group.append(node)
            if groups:
                take(max(groups.values(), key=len))
        return self._short_lived(items, item_of, parents), item_of

    def _late(
        self, items: list[list[Node]], item_of: dict[int, int], parents: dict[int, set[int]]
    ) -> list[int]:
        """The same order, but what is outside loops as late as possible."""
        placed: set[int] = set()
        order: list[int] = []

        def place(index: int) -> None:
            stack = [(index, False)]
            while stack:
                at, ready = stack.pop()
                if at in placed:
                    continue
                if ready:
                    placed.add(at)
                    order.append(at)
                    continue
                stack.append((at, True))
                before = {item_of[p] for node in items[at] for p in parents[node.index]} - {at}
                stack += [(k, False) for k in sorted(before, reverse=True)]

        for index, nodes in enumerate(items):
            if nodes[0].turns or nodes[0].kind == "region":
                place(index)
        for index in range(len(items)):
            place(index)
        return order

    def _short_lived(
        self, items: list[list[Node]], item_of: dict[int, int], parents: dict[int, set[int]]
    ) -> list[list[Node]]:
        """An order in which few numbers wait for their last reader: the best of some."""
        before = [
            {item_of[p] for node in nodes for p in parents[node.index]} - {at}
            for at, nodes in enumerate(items)
        ]
        after: list[list[int]] = [[] for _ in items]
        for at, needs in enumerate(before):
            for k in needs:
                after[k].append(at)
        weight = [
            0
            if nodes[0].turns or nodes[0].kind not in ("each", "read", "pick")
            else nodes[0].size * (nodes[0].dtype.itemsize // 4)
            for nodes in items
        ]
        late = self._late(items, item_of, parents)
        rank = {index: k for k, index in enumerate(late)}
        tries = [
            late,
            _eager(late, before, after),
            _eager(range(len(items)), before, after),
            _greedy(rank, before, after, weight),
            _backward(before, after, weight),
        ]
        best = min(tries, key=lambda order: _most_alive(order, before, after, weight))
        return [items[at] for at in best]

    @staticmethod
    def _same_turn(source: Node, user: Node) -> bool:
        """Whether a node needs no more of another than the number of the same turn."""
        if source.kind == "reduce" or source.size != user.turns:
            return False
        for k, part in enumerate(user.inputs):
            of_it = (part >= source.start) & (part < source.start + source.size)
            if np.any(of_it) and (
                (user.kind == "pick" and k == 1)
                or part.size != source.size
                or part[0] != source.start
                or np.any(np.diff(part) != 1)
            ):
                return False
        return True

    # statements

    def _write(
        self,
        order: list[list[Node]],
        loops: dict[int, int],
        need: np.ndarray,
        wanted: Iterable[Node],
    ) -> None:
        graph = self.graph
        parked = self._park(order) if self.reload else set()
        last_use: dict[int, int] = {}
        kept: set[int] = {node.index for node in wanted}
        stored = set(kept)
        for position, nodes in enumerate(order):
            inside = {node.index for node in nodes}
            for node in nodes:
                for parent in graph.parents(node):
                    last_use[parent.index] = position
                    if parent.index not in inside:
                        stored.add(parent.index)
                if node.kind == "out":
                    kept.add(node.index)
        ends: dict[int, list[Node]] = {}
        for index, position in last_use.items():
            if index in loops and index not in kept:
                ends.setdefault(position, []).append(graph.nodes[index])
        for position, nodes in enumerate(order):
            first = nodes[0]
            self._fence()
            if first.turns:
                self._write_loop(nodes, stored)
            elif first.kind == "pack":
                self._write_pack(first)
            elif first.kind == "region":
                self._write_region(first)
            elif first.kind != "out":
                numbers = np.flatnonzero(need[first.start : first.start + first.size])
                self._write_numbers(first, numbers)
                if first.index in parked:
                    self._write_parked(first, numbers)
            for node in ends.get(position, ()):
                self._free(node)

    def _park(self, order: list[list[Node]]) -> set[int]:
        """Nodes to keep in memory between two readers, where too many numbers wait for theirs."""
        used: dict[int, list[int]] = {}
        size: dict[int, int] = {}
        for position, nodes in enumerate(order):
            node = nodes[0]
            if node.kind in ("each", "read", "pick") and not node.turns:
                used[node.index] = [position]
                size[node.index] = node.size * (node.dtype.itemsize // 4)
            for parent in {p.index for node in nodes for p in self.graph.parents(node)}:
                if parent in used:
                    used[parent].append(position)
        alive = np.zeros(len(order) + 1, int)
        for index, positions in used.items():
            alive[positions[0] : positions[-1]] += size[index]
        parked: dict[tuple[int, int], None] = {}
        while alive.max() > MOST_REGISTERS:
            peak = int(np.argmax(alive))
            gaps = [
                (b - a, index, a, b)
                for index, positions in used.items()
                if size[index] > 1
                for a, b in itertools.pairwise(positions)
                if a + _BETWEEN_FENCES <= peak < b and (index, a) not in parked
            ]
            if not gaps:
                break
            _, index, a, b = max(gaps)
            parked[index, a] = None
            alive[a + _BETWEEN_FENCES : b] -= size[index]
        return {index for index, _ in parked}

    def _write_parked(self, node: Node, numbers: Ids) -> None:
        """Keep numbers in memory, too."""
        name = self._claim(node)
        for k in numbers.tolist():
            self.writer.write(f"{name}[{k}] = {self._name(node.start + k)};")
            self.scopes[-1].given.append(node.start + k)

    def _claim(self, node: Node) -> str:
        """An array for a node: one that is free, or a new one."""
        key = lane_type(node.dtype), node.size
        free = self._free_arrays.setdefault(key, [])
        if not free:
            free.append(self.writer.name("a"))
            kept = "volatile " * self.reload
            line = f"{kept}{key[0]} {free[0]}[{key[1]}];"
            self.writer.lines.insert(self._declarations, line)
            self._fenced += 1
        self.bind(node, free.pop())
        return str(self._array(node))

    def _free(self, node: Node) -> None:
        """Give back the array of a node."""
        if node.kind in ("variable", "out"):
            return
        name = self.scopes[-1].arrays.pop(node.index, None)
        if name is not None:
            self._free_arrays[lane_type(node.dtype), node.size].append(name)

    def _expression(self, node: Node, texts: list[str]) -> str:
        """C of one number of a node from those of its inputs."""
        kind = lane_type(node.dtype)
        if node.kind == "each":
            return node.detail[0].c.format(*texts, type=kind)
        return texts[0]

    def _types(self, node: Node) -> list[Any]:
        if node.kind == "each":
            return list(node.detail[1:])
        return [self.graph.dtype(node.inputs[0])]

    def _write_numbers(self, node: Node, numbers: Ids) -> None:
        """Number by number."""
        graph, kind = self.graph, lane_type(node.dtype)
        for k in numbers.tolist():
            if self._name(node.start + k) is not None:
                continue
            if node.kind == "read":
                memory, row = node.detail
                base, offset = graph.split_sum(int(node.inputs[0][k]))
                name = memory.read(self._index(base), offset, row)
            elif node.kind == "pick":
                index = self.text(int(node.inputs[0][k]), graph.dtype(node.inputs[0]))
                name = self.writer.constant(kind, f"from_list({self._table(node)}, {index})")
            else:
                pairs = zip(node.inputs, self._types(node), strict=True)
                texts = [self.text(int(part[k]), dtype) for part, dtype in pairs]
                name = self.writer.constant(kind, self._expression(node, texts))
            self.scopes[-1].names[node.start + k] = name

    def _index(self, number: int) -> str:
        if (
            number >= 0
            and self._name(number) is None
            and not self._is_known(self.graph.owner(number), np.array([number]))
        ):
            self.compute(np.array([number]))
        return self.text(number, np.int32)

    def _table(self, node: Node) -> str:
        """The array in which a node picks."""
        table = node.inputs[1]
        if np.all(table < 0):
            values = [literal(self.graph.value(n), node.dtype) for n in table]
            kind = lane_type(node.dtype)
            return self.writer.table(
                f"static const {kind}" if self.reload else f"const {kind}", values
            )
        array = self._array(self.graph.owner(table[0]))
        assert array is not None
        return array

    def _write_loop(self, nodes: list[Node], stored: set[int]) -> None:
        """Nodes that share a loop."""
        writer = self.writer
        arrays = {
            node.index: self._claim(node)
            for node in nodes
            if node.index in stored and node.kind != "reduce"
        }
        for node in nodes:
            if node.kind == "reduce":
                start = literal(identity(node.detail, node.dtype), node.dtype)
                name = writer.name("s")
                writer.write(f"{lane_type(node.dtype)} {name} = {start};")
                self.bind(node, [name])
        tables = {node.index: self._table(node) for node in nodes if node.kind == "pick"}
        # numbers outside are named outside
        for node in nodes:
            for part, dtype in zip(node.inputs, [*self._types(node), None], strict=False):
                if dtype is not None and np.all(part == part[0]):
                    self.text(int(part[0]), dtype)
        i = writer.name("k")
        writer.write("ONE_BY_ONE")
        with self.block(f"for (int {i} = 0; {i} < {nodes[0].turns}; ++{i})"):
            local: dict[int, str] = {}
            reads: dict[Any, str] = {}
            for node in nodes:
                kind = lane_type(node.dtype)
                pairs = zip(node.inputs, [*self._types(node), None], strict=False)
                texts = [
                    self._of_turn(part, dtype, i, local, reads)
                    for part, dtype in pairs
                    if dtype is not None
                ]
                if node.kind == "reduce":
                    (name,) = (self._name(node.start),)
                    by = rule(node.detail, node.dtype)
                    assert by is not None and name is not None
                    writer.write(f"{name} = {by.c.format(name, texts[0], type=kind)};")
                    continue
                if node.kind == "read":
                    memory, _ = node.detail
                    name = memory.read(texts[0], 0, False)
                elif node.kind == "pick":
                    name = writer.constant(kind, f"from_list({tables[node.index]}, {texts[0]})")
                else:
                    name = writer.constant(kind, self._expression(node, texts))
                local[node.index] = name
                if node.index in arrays:
                    writer.write(f"{arrays[node.index]}[{i}] = {name};")

    def _of_turn(
        self, part: Ids, dtype: Any, i: str, local: dict[int, str], reads: dict[Any, str]
    ) -> str:
        """The number of a turn of a loop."""
        first = int(part[0])
        if np.all(part == first):
            return self.text(first, dtype)
        if np.all(part < 0):
            key = str(np.dtype(dtype)), part.tobytes()
            if key not in reads:
                reads[key] = self._constant_of_turn(part, dtype, i)
            return reads[key]
        node = self.graph.owner(first)
        index = part - node.start
        if node.index in local and np.array_equal(index, np.arange(node.size)):
            return local[node.index]
        key = part.tobytes()
        if key not in reads:
            reads[key] = self._read(node, self._place(index, i))
        return reads[key]

    def _constant_of_turn(self, part: Ids, dtype: Any, i: str) -> str:
        kind, values = np.dtype(dtype), [self.graph.value(n) for n in part]
        steps = np.diff(np.array(values, object)) if kind.kind in "iu" else []
        if kind.kind in "iu" and len(set(steps)) == 1:
            return self.writer.constant(
                lane_type(dtype), f"({lane_type(dtype)})({values[0]} + {steps[0]} * {i})"
            )
        if kind.kind == "b":
            table = self.writer.table("static const int", [str(int(v)) for v in values])
            return self.writer.constant("truth", f"{table}[{i}] ? yes : no")
        if kind.kind == "f":
            table = self.writer.table("static const double", [_number(v) for v in values])
        else:
            table = self.writer.table("static const long long", [str(int(v)) for v in values])
        return self.writer.constant(lane_type(dtype), f"({lane_type(dtype)}){table}[{i}]")

    def _place(self, index: Ids, i: str) -> str:
        """C of an index in an array at a turn."""
        steps = np.unique(np.diff(index))
        if steps.size == 1:
            first, step = int(index[0]), int(steps[0])
            text = i if step == 1 else f"{step} * {i}"
            return text if not first else f"{first} + {text}"
        kind = "short" if index.max() < 1 << 15 else "int"
        table = self.writer.table(f"static const {kind}", list(map(str, index)))
        return f"{table}[{i}]"

    def copy(self, ids: Ids, dtype: Any, store: Callable[[str, str], str]) -> None:
        """Write ``store(index, number)`` for numbers that are known, by loops if possible."""
        at = 0
        for size in _runs(self.graph, ids):
            part = ids[at : at + size]
            if size < _RUN:
                for k, number in enumerate(part.tolist(), start=at):
                    self.writer.write(store(str(k), self.text(number, dtype)))
            else:
                i = self.writer.name("k")
                if np.all(part == part[0]):
                    self.text(int(part[0]), dtype)
                self.writer.write("ONE_BY_ONE")
                with self.block(f"for (int {i} = 0; {i} < {size}; ++{i})"):
                    number = self._of_turn(part, dtype, i, {}, {})
                    self.writer.write(store(f"{at} + {i}" if at else i, number))
            at += size

    def _write_pack(self, node: Node) -> None:
        name = self._claim(node)
        self.copy(node.inputs[0], node.dtype, lambda k, number: f"{name}[{k}] = {number};")

    # variables and regions

    def assign(self, variables: Sequence[Node], values: Sequence[Ids]) -> None:
        """Assign numbers, which are computed first, to all variables at once."""
        self.compute(*values)
        small: list[tuple[str, str, Any]] = []
        large: list[tuple[Node, Ids]] = []
        changed = {node.index for node in variables}
        for node, ids in zip(variables, values, strict=True):
            ids = ids.ravel()
            if np.array_equal(ids, node.ids):
                continue
            if node.size <= self.graph.unrolled:
                array = self._array(node)
                for k, (own, number) in enumerate(
                    zip(node.ids.tolist(), ids.tolist(), strict=True)
                ):
                    name = f"{array}[{k}]" if array else self._name(own)
                    assert name is not None
                    small.append((name, self.text(number, node.dtype), node.dtype))
                continue
            if any(owner.index in changed for owner in self.graph.owners(ids)):
                packed = self.graph.pack(ids)
                self.compute(packed)
                ids = packed
            large.append((node, ids))
        for node, ids in large:
            array = str(self._array(node))
            self.copy(ids, node.dtype, functools.partial(self._set, array))
        if small:
            self.writer.assign(*zip(*small, strict=True))

    def _set(self, array: str, index: str, number: str) -> str:
        """Assign a number of an array."""
        old = f"{array}[{index}]"
        return f"{old} = {self.writer.unmasked(number, old)};"

    def _write_region(self, node: Node) -> None:
        region: Region = node.detail
        writer = self.writer
        for variable in region.variables:
            self.declare(variable)
        outs = [
            out for out in self.graph.nodes[node.index + 1 : node.index + 1 + len(region.variables)]
        ]
        for out, variable in zip(outs, region.variables, strict=True):
            if variable.size > self.graph.unrolled:
                self.bind(out, str(self._array(variable)))
            else:
                self.bind(out, [str(self._name(n)) for n in variable.ids.tolist()])
        if region.kind == "branches":
            self._write_branches(region)
            return
        before, writer.mask = writer.mask, "yes"
        self.assign(region.variables, region.start)
        writer.mask = before
        if region.kind == "while":
            self._write_while(region)
            return
        i = writer.name("k")
        assert region.counter is not None
        writer.write("ONE_BY_ONE")
        with self.block(f"for (int {i} = 0; {i} < {region.turns}; ++{i})"):
            writer.write("FENCE;")
            self.bind(region.counter, [f"((i32){i})"])
            self.assign(region.variables, region.results[0])
        writer.write("FENCE;")

    def _write_while(self, region: Region) -> None:
        writer = self.writer
        (any_goes,), new = region.results
        active = writer.name("mask")
        writer.write(f"truth {active} = {writer.mask};")
        with self.block("for (;;)"), writer.masked(active):
            self.compute(any_goes)
            # a new name, as the condition was evaluated under the former mask
            left = writer.name("mask")
            writer.write(f"const truth {left} = {active} & {self.text(any_goes.item(), bool)};")
            writer.write(f"{active} = {left};")
            writer.write(f"if (!any_lane({left})) break;")
            with writer.masked(left):
                self.assign(region.variables, new)

    def _write_branches(self, region: Region) -> None:
        writer = self.writer
        index = self.text(region.start[0].item(), self.graph.dtype(region.start[0]))
        count = len(region.results)
        for k, values in enumerate(region.results):
            sign = "<=" if k == 0 else ">=" if k == count - 1 else "=="
            active = writer.constant("truth", f"{writer.mask} & truth_of({index} {sign} {k})")
            with self.block(f"if (any_lane({active}))"), writer.masked(active):
                self.assign(region.variables, values)


def _eager(
    base: Iterable[int], before: Sequence[set[int]], after: Sequence[list[int]]
) -> list[int]:
    """An order in which each item is followed by all that is ready then."""
    left, done = [len(needs) for needs in before], [False] * len(before)
    order: list[int] = []
    for first in base:
        stack = [first]
        while stack:
            at = stack.pop()
            if done[at] or left[at]:
                if not done[at]:  # what it needs comes first
                    stack.append(at)
                    stack += [k for k in before[at] if not done[k]]
                continue
            done[at] = True
            order.append(at)
            for k in after[at]:
                left[k] -= 1
            stack += [k for k in sorted(after[at], reverse=True) if not left[k] and not done[k]]
    return order


def _greedy(
    rank: dict[int, int],
    before: Sequence[set[int]],
    after: Sequence[list[int]],
    weight: Sequence[int],
) -> list[int]:
    """An order that takes the item that ends the most lives, less those that it begins; else the
    one that is needed first.
    """
    left = [len(needs) for needs in before]
    readers = [set(users) for users in after]
    score = [-w for w in weight]
    for k, users in enumerate(readers):
        if len(users) == 1:
            score[next(iter(users))] += weight[k]
    heap = [(-score[at], rank[at], at) for at, count in enumerate(left) if not count]
    heapq.heapify(heap)
    done: set[int] = set()
    order: list[int] = []
    while heap:
        value, _, at = heapq.heappop(heap)
        if at in done or value != -score[at]:
            continue
        done.add(at)
        order.append(at)
        for k in before[at]:
            readers[k].discard(at)
            if len(readers[k]) == 1:
                last = next(iter(readers[k]))
                score[last] += weight[k]
                if not left[last]:
                    heapq.heappush(heap, (-score[last], rank[last], last))
        for k in after[at]:
            left[k] -= 1
            if not left[k]:
                heapq.heappush(heap, (-score[k], rank[k], k))
    return order


def _backward(
    before: Sequence[set[int]], after: Sequence[list[int]], weight: Sequence[int]
) -> list[int]:
    """An order from its end: before what is ordered comes the item that adds the fewest numbers
    that it waits for, less its own; else the one whose reader was ordered last.
    """
    left, alive = [len(users) for users in after], [False] * len(after)
    score = [
        weight_of - sum(weight[k] for k in needs)
        for weight_of, needs in zip(weight, before, strict=True)
    ]
    turn = 0
    heap = [(-score[at], 0, at) for at, count in enumerate(left) if not count]
    heapq.heapify(heap)
    done = [False] * len(after)
    order: list[int] = []
    while heap:
        value, _, at = heapq.heappop(heap)
        if done[at] or value != -score[at]:
            continue
        done[at] = True
        order.append(at)
        turn -= 1
        for k in before[at]:
            left[k] -= 1
            if not alive[k]:
                alive[k] = True
                for user in after[k]:
                    score[user] += weight[k]
                    if not left[user] and not done[user]:
                        heapq.heappush(heap, (-score[user], turn, user))
            if not left[k]:
                heapq.heappush(heap, (-score[k], turn, k))
    return order[::-1]


def _most_alive(
    order: Sequence[int],
    before: Sequence[set[int]],
    after: Sequence[list[int]],
    weight: Sequence[int],
) -> int:
    """Most numbers that wait for a reader at once."""
    left, alive, most = [len(users) for users in after], 0, 0
    for at in order:
        alive += weight[at]
        most = max(most, alive)
        for k in before[at]:
            left[k] -= 1
            alive -= 0 if left[k] else weight[k]
    return most


def _number(value: float) -> str:
    """A double as C, for tables."""
    if np.isfinite(value):
        return repr(float(value))
    return (
        "(1e308 * 1e308 - 1e308 * 1e308)"
        if np.isnan(value)
        else f"{'-' * (value < 0)}1e308 * 1e308"
    )


def _runs(graph: Graph, ids: Ids) -> list[int]:
    """Lengths of parts that loops can copy, in turn; other numbers alone."""
    sizes, at = [], 0
    while at < ids.size:
        first = int(ids[at])
        end = at + 1
        if first < 0:
            while end < ids.size and ids[end] == first:
                end += 1
        else:
            node = graph.owner(first)
            step = ids[end] - first if end < ids.size else 0
            if node.size > graph.unrolled or not step:
                while (
                    end < ids.size
                    and node.start <= ids[end] < node.start + node.size
                    and ids[end] - ids[end - 1] == step
                ):
                    end += 1
        sizes.append(end - at)
        at = end
    return sizes
