"""Pivots of sparse arrow matrices: which to take, and what they are.

The pivots' product is the characteristic function, up to its sign. Which places they stand at is
the same for all systems of a batch and is chosen from a few of them, at a few frequencies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.batch.arrow import Numbers, Shape
from fluidcc.analysis.batch.enclosure import Enclosure
from fluidcc.analysis.linear import Array

_SYSTEMS, _FREQUENCIES = 24, 24  # of the sample
_SLIGHT = 1e-9  # of the largest cell of its row: no pivot; their units differ, and so their sizes


class Plan(NamedTuple):
    """Places (row, column) of the pivots, those of classes first; `odd` permutations change the
    sign of the product.
    """

    inner: tuple[tuple[int, int], ...]
    outer: tuple[tuple[int, int], ...]
    odd: bool


Entries = dict[tuple[int, int], Any]


def removed(entries: Entries, row: int, column: int) -> tuple[Any, Entries]:
    """The pivot at a place, and what elimination leaves of the other rows and columns.

    Entries are whatever has arithmetic: enclosures, arrays of complex numbers.
    """
    pivot = entries[row, column]
    over = pivot.inverse() if isinstance(pivot, Enclosure) else 1 / pivot
    right = {j: v for (i, j), v in entries.items() if i == row and j != column}
    left = {i: v for (i, j), v in entries.items() if j == column and i != row}
    out = {k: v for k, v in entries.items() if k[0] != row and k[1] != column}
    for i, below in left.items():
        factor = below * over
        for j, beside in right.items():
            change = factor * beside
            out[i, j] = out[i, j] - change if (i, j) in out else -change
    return pivot, out


def divided(shape: Shape, entries: Entries) -> tuple[Entries, Entries]:
    """The entries of classes, and those between links."""
    inner = {k: v for k, v in entries.items() if min(k) < shape.inner}
    return inner, {k: v for k, v in entries.items() if min(k) >= shape.inner}


def joined(inner: Entries, outer: Entries, summed: Callable[[Any], Any]) -> Entries:
    """What is left between links when the classes are gone."""
    out = dict(outer)
    for place, value in inner.items():
        out[place] = out[place] + summed(value) if place in out else summed(value)
    return out


def pivots(
    shape: Shape, plan: Plan, entries: Entries, summed: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Pivots of classes and of links; `summed` adds up classes."""
    inner, outer = divided(shape, entries)
    own, common = [], []
    for place in plan.inner:
        pivot, inner = removed(inner, *place)
        own.append(pivot)
    outer = joined(inner, outer, summed)
    for place in plan.outer:
        pivot, outer = removed(outer, *place)
        common.append(pivot)
    return own, common


def chosen(shape: Shape, numbers: Numbers) -> Plan:
    """Pivots that are nowhere small in a sample: what is sent first, then the states.

    Raises ValueError where there are none.
    """
    count = numbers.outer_lags.shape[-1]
    lanes = np.unique(np.linspace(0, count - 1, min(_SYSTEMS, count)).astype(int))
    entries = _sampled(shape, numbers.lanes(lanes), len(lanes))
    inner, outer = divided(shape, entries)
    sent = range(shape.inner_states, shape.inner)
    places, inner = _best(inner, sent, range(shape.inner))
    outer = joined(inner, outer, lambda v: np.sum(v, axis=0, keepdims=True))
    sent = range(shape.inner + shape.outer_states, shape.whole)
    others, _ = _best(outer, sent, range(shape.inner, shape.whole))
    odd = (_odd(places) and shape.classes % 2 == 1) != _odd(others)
    return Plan(tuple(places), tuple(others), odd)


def _odd(places: list[tuple[int, int]]) -> bool:
    """Whether the permutation from rows to columns changes the sign of a determinant."""
    columns = [column for _, column in sorted(places)]
    pairs = itertools.combinations(columns, 2)
    return sum(a > b for a, b in pairs) % 2 == 1


def _best(entries: Entries, sent: range, every: range) -> tuple[list[tuple[int, int]], Entries]:
    """Places of pivots among some rows and columns, one by one the least small of those left."""
    left, places = set(every), []
    columns = set(every)
    for i in sent:
        if entries[i, i].size and np.all(np.abs(entries[i, i] - 1) < 1e-12):
            places.append((i, i))
            left.discard(i)
            columns.discard(i)
            entries = removed(entries, i, i)[1]
    while left:
        scores = {
            place: _score(entries, place) for place in entries
            if place[0] in left and place[1] in columns
        }  # fmt: skip
        place = max(sorted(scores), key=lambda p: (round(scores[p], 2), p[0] == p[1], p))
        if scores[place] < _SLIGHT:
            raise ValueError("no order of elimination holds at all frequencies")
        places.append(place)
        left.discard(place[0])
        columns.discard(place[1])
        entries = removed(entries, *place)[1]
    return places, entries


def _score(entries: Entries, place: tuple[int, int]) -> float:
    """Least modulus, relative to the largest of the row."""
    row = [np.abs(v) for (i, _), v in entries.items() if i == place[0]]
    largest = np.max(np.broadcast_arrays(*row), axis=0)
    return float(np.min(np.abs(entries[place]) / np.maximum(largest, 1e-300)))


def _sampled(shape: Shape, numbers: Numbers, lanes: int) -> Entries:
    """Cells at points s up the imaginary axis, arrays (classes or 1, lanes, points)."""
    lags = np.concatenate([numbers.inner_lags.ravel(), numbers.outer_lags.ravel()])
    longest = float(lags.max(initial=0.0)) or 1.0
    s = 1j * np.concatenate([[0.0], np.geomspace(1e-4, 1e2, _FREQUENCIES)]) / longest
    out: Entries = {}
    for cell, values in zip(shape.cells, numbers.cells, strict=True):
        own = shape.own(cell)
        axes = (shape.classes if own else 1, lanes, len(s))
        if cell.unit:
            out[cell.row, cell.column] = np.ones(axes, complex)
            continue
        total, left = np.zeros(axes, complex), list(values)
        if cell.fixed:
            total += left.pop(0)[..., None]
        if cell.state:
            total += (left.pop(0)[..., None] if cell.padded else 1.0) * s
        known: Array = numbers.inner_lags if own else numbers.outer_lags
        for slot, value in zip(cell.slots, left, strict=True):
            total += value[..., None] * np.exp(-s * known[slot][..., None])
        out[cell.row, cell.column] = total
    return out
