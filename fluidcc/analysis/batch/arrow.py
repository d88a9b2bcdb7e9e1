"""Characteristic matrices of many systems as sparse arrows, in lanes.

As in `Characteristic` classes of flows touch each other through links only. Here the cells of all
classes at the same place make one array (classes, lanes), those between links one array (1, lanes),
and only cells that are not zero everywhere exist.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.analysis.batch.enclosure import Enclosure, plus, times
from fluidcc.analysis.batch.systems import Systems
from fluidcc.analysis.batch.trigonometry import cosine_and_sine
from fluidcc.analysis.linear import LINK, Array, Linear
from fluidcc.ops import Num

_PHASE = 4e-16  # relative error of a phase


class Cell(NamedTuple):
    """One place of the matrix: fixed + moves s + sum over slots of a value times e^(-s lag).

    `unit` says that it is 1, `state` that s itself stands in it, `padded` that it does so in some
    classes only.
    """

    row: int
    column: int
    fixed: bool
    state: bool
    padded: bool
    slots: tuple[int, ...]
    unit: bool


@dataclasses.dataclass(frozen=True)
class Shape:
    """What systems of one structure share.

    Rows and columns below `inner` belong to classes, first `inner_states` states and then what is
    sent; the others, up to `whole`, to links, first `outer_states` states. `cells` come in the
    order of the arrays in `Numbers`; `degree` is the number of states. `sent` are the rows of what
    is sent, each after those that it depends on.
    """

    classes: int
    inner: int
    inner_states: int
    whole: int
    outer_states: int
    degree: int
    cells: tuple[Cell, ...] = ()
    sent: tuple[int, ...] = ()

    def own(self, cell: Cell) -> bool:
        """Whether a cell differs between classes."""
        return cell.row < self.inner or cell.column < self.inner


class Numbers(NamedTuple):
    """Numbers of the cells, and lags [s] of classes (slots, c, P) and of links (slots, 1, P)."""

    cells: tuple[tuple[Array, ...], ...]
    inner_lags: Array
    outer_lags: Array

    def lanes(self, index: Any) -> Numbers:
        """The numbers of the systems with these indices."""
        return jax.tree.map(lambda x: x[..., index], self)


@dataclasses.dataclass(frozen=True)
class _Places:
    """Class and place of every state and every wire component."""

    owner: Array
    place: Array


def _places(s: Linear) -> tuple[_Places, Shape]:
    names = np.unique(s.wire_owner[s.wire_owner != LINK])
    names = np.union1d(names, s.state_owner[s.state_owner != LINK])
    classes = [*names.tolist(), LINK]
    most = [
        max((int(np.sum(part == c)) for c in names), default=0)
        for part in (s.state_owner, s.wire_owner)
    ]
    inner = sum(most)
    links = [int(np.sum(part == LINK)) for part in (s.state_owner, s.wire_owner)]
    owner = np.concatenate([s.state_owner, s.wire_owner])
    place = np.zeros(len(owner), int)
    for first, part, wide, border in (
        (0, s.state_owner, 0, inner), (len(s.state_owner), s.wire_owner, most[0], inner + links[0])
    ):  # fmt: skip
        for c in classes:
            members = first + np.flatnonzero(part == c)
            place[members] = np.arange(len(members)) + (border if c == LINK else wide)
    numbered = np.array([-1 if c == LINK else int(np.searchsorted(names, c)) for c in owner], int)
    shape = Shape(
        len(names), inner, most[0], inner + sum(links), links[0], len(s.state_owner)
    )  # fmt: skip
    return _Places(numbered, place), shape


class _Collector:
    """Gathers the numbers of cells by place, kind and slot."""

    def __init__(self, shape: Shape, places: _Places, count: int):
        self.shape, self.places, self.count = shape, places, count
        self.found: dict[tuple[int, int], dict[Any, Array]] = {}

    def add(self, row: int, column: int, key: Any, values: Array) -> None:
        """Add values (P,) to the cell of two components; key None is the fixed part."""
        i, j = self.places.owner[row], self.places.owner[column]
        if min(i, j) >= 0 and i != j:
            raise ValueError("classes of flows must touch each other through links only")
        place = (int(self.places.place[row]), int(self.places.place[column]))
        parts = self.found.setdefault(place, {})
        own = max(i, j) >= 0
        if key not in parts:
            parts[key] = np.zeros((self.shape.classes if own else 1, self.count))
        parts[key][max(i, j) if own else 0] += values


def arrow(systems: Systems) -> tuple[Shape, Numbers]:
    """The arrow of the characteristic matrices [[s I - A, -B E], [-C, I - D E]].

    Raises ValueError if a cell joins two classes, or what is sent feeds back on itself.
    """
    whole = systems.pattern()
    kept, s, count = np.flatnonzero(whole.used()), whole.pruned(), len(systems)
    felt = np.flatnonzero(whole.used()[whole.pick])
    places, shape = _places(s)
    n, m = s.size
    into = _Collector(shape, places, count)
    for i in range(n + m):
        into.add(i, i, "state" if i < n else None, np.ones(count))

    def values(row: int, column: int, states: Array, sent: Array) -> Array:
        return -states[:, row, column] if row < n else -sent[:, kept[row - n], column]

    for row, column in np.argwhere(np.concatenate([s.A, s.C])).tolist():
        into.add(row, column, None, values(row, column, systems.A, systems.C))
    late = np.argwhere(np.concatenate([s.B, s.D])).tolist()
    slots, inner_lags, outer_lags = _slots(systems.lag[:, felt], s, late, places, shape)
    for row, look in late:
        numbers_there = values(row, int(felt[look]), systems.B, systems.D)
        into.add(row, n + int(s.pick[look]), slots[row, look], numbers_there)
    _pad(into, places)
    cells, numbers = [], []
    for (row, column), parts in sorted(into.found.items()):
        late_slots = tuple(sorted(k for k in parts if isinstance(k, int)))
        fixed = parts.get(None)
        unit = fixed is not None and len(parts) == 1 and bool(np.all(fixed == 1))
        state = "state" in parts
        padded = state and not bool(np.all(parts["state"] == 1))
        cells.append(Cell(row, column, fixed is not None, state, padded, late_slots, unit))
        keys = [None] * (fixed is not None) + ["state"] * padded + list(late_slots)
        numbers.append(() if unit else tuple(parts[k] for k in keys))
    shape = dataclasses.replace(shape, cells=tuple(cells), sent=_order(shape, cells))
    return shape, Numbers(tuple(numbers), inner_lags, outer_lags)


def _order(shape: Shape, cells: list[Cell]) -> tuple[int, ...]:
    """Rows of what is sent, each after those that it depends on."""
    states = {*range(shape.inner_states), *range(shape.inner, shape.inner + shape.outer_states)}
    left = [i for i in range(shape.whole) if i not in states]
    diagonal = {cell.row: cell for cell in cells if cell.row == cell.column}
    needs = {i: {c.column for c in cells if c.row == i} - {i} - states for i in left}
    out: list[int] = []
    while left:
        ready = [i for i in left if needs[i] <= set(out) and diagonal[i].unit]
        if not ready:
            raise ValueError("what is sent feeds back on itself without a state between")
        out += ready
        left = [i for i in left if i not in ready]
    return tuple(out)


def _slots(
    lags: Array, s: Linear, late: list[list[int]], places: _Places, shape: Shape
) -> tuple[dict[tuple[int, int], int | None], Array, Array]:
    """The slot of the lag at every look-up in every row; None where it is zero in all systems."""
    n, count = s.size[0], len(lags)
    inner: list[list[Array]] = [[] for _ in range(shape.classes)]
    outer: list[Array] = []
    out: dict[tuple[int, int], int | None] = {}
    for row, look in late:
        lag = lags[:, look]
        wire = n + int(s.pick[look])
        owner = max(places.owner[row], places.owner[wire])
        known = outer if owner < 0 else inner[owner]
        if not lag.any():
            out[row, look] = None
            continue
        same = [i for i, other in enumerate(known) if np.array_equal(other, lag)]
        if not same:
            same = [len(known)]
            known.append(lag)
        out[row, look] = same[0]
    most = max((len(k) for k in inner), default=0)
    own = np.zeros((most, shape.classes, count))
    for c, known in enumerate(inner):
        for slot, lag in enumerate(known):
            own[slot, c] = lag
    return out, own, np.array(outer).reshape(len(outer), 1, count)


def _pad(into: _Collector, places: _Places) -> None:
    """Give classes with fewer components than the largest a unit diagonal in what is left."""
    for place in range(into.shape.inner):
        present = set(places.owner[places.place == place].tolist()) - {-1}
        missing = [c for c in range(into.shape.classes) if c not in present]
        if missing:
            parts = into.found.setdefault((place, place), {})
            fixed = parts.setdefault(None, np.zeros((into.shape.classes, into.count)))
            fixed[missing] += 1.0


class _Late(NamedTuple):
    """e^(-s lag): its parts, its derivative along the line, and the bound of what is left."""

    re: Num
    im: Num
    d_re: Num
    d_im: Num
    rest: Num


def _late(lags: Num, real: Num, imag: Num, half: Num) -> _Late:
    """Of one slot."""
    decay = jnp.exp(-real * lags)
    phase = imag * lags
    cos, sin = cosine_and_sine(phase)
    re, im = decay * cos, -decay * sin
    if isinstance(half, float):
        return _Late(re, im, lags * im, -lags * re, 0.0)
    reach = half * lags
    rest = decay * (0.5 * reach * reach + _PHASE * (1 + jnp.abs(phase)))
    return _Late(re, im, lags * im, -lags * re, rest)


Matrix = dict[tuple[int, int], Enclosure]


def matrix(shape: Shape, numbers: Numbers, real: Num, imag: Num, half: Num) -> Matrix:
    """Enclosures of the cells around real + i imag (1, P), `half` (1, P) to both sides.

    Where `half` is the literal 0.0 these are values and derivatives by the imaginary part.
    """
    inner = [_late(lag, real, imag, half) for lag in numbers.inner_lags]
    outer = [_late(lag, real, imag, half) for lag in numbers.outer_lags]
    out: Matrix = {}
    for cell, values in zip(shape.cells, numbers.cells, strict=True):
        late = inner if shape.own(cell) else outer
        out[cell.row, cell.column] = _cell(cell, values, late, real, imag, half)
    return out


def _cell(
    cell: Cell, values: tuple[Array, ...], late: list[_Late], real: Num, imag: Num, half: Num
) -> Enclosure:
    if cell.unit:
        return Enclosure(1.0, 0.0, 0.0, 0.0, 0.0, half)
    left = list(values)
    re, im, d_re, d_im, rest = (left.pop(0) if cell.fixed else 0.0), 0.0, 0.0, 0.0, 0.0
    if cell.state:
        moves = left.pop(0) if cell.padded else 1.0
        re, im, d_im = plus(re, times(moves, real)), times(moves, imag), moves
    for slot, value in zip(cell.slots, left, strict=True):
        e = late[slot]
        re, im = plus(re, times(value, e.re)), plus(im, times(value, e.im))
        d_re, d_im = plus(d_re, times(value, e.d_re)), plus(d_im, times(value, e.d_im))
        rest = plus(rest, times(abs(value), e.rest))
    return Enclosure(re, im, d_re, d_im, rest, half)
