"""Roots right of a vertical line for many systems at once: the argument principle, in lanes.

Every lane walks up its line in pieces. On each the pivots of the characteristic matrix are
enclosed; where none of the enclosures holds zero, nothing hides, and the argument's change is that
of the linear parts. Pieces that hold zero are shortened, those that are far from it get longer.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.analysis.batch.arrow import Matrix, Numbers, Shape, matrix
from fluidcc.analysis.batch.elimination import Plan, pivots
from fluidcc.analysis.batch.enclosure import Enclosure
from fluidcc.ops import Num

_MOST_PIECES = 300
_POWERS = 12  # of the matrix that bounds the roots
_QUARTER = 0.45 * math.pi  # change of the argument beyond the bound, at most
_FIRST = 1e-3  # of the bound: the first piece
_AIM = 0.5  # of a remainder against what it surrounds
_CLOSE = 1e-9  # relative distance to zero that is not told from zero
_SOUND = 0.9  # up to this share of the remainder a piece counts


def bound(shape: Shape, numbers: Numbers, real: Num) -> Num:
    """Modulus beyond which no root lies right of the line and the argument turns no more (1, P).

    By Collatz's bound of |A| + |B| E (I - |D| E)^-1 |C|, E = e^(-real lag), as in
    `winding.frequency_bound`.
    """
    sizes = _sizes(shape, numbers, real)
    states = [i for i in range(shape.whole) if i not in shape.sent]

    def spread(row: int) -> Num:
        return jnp.ones((shape.classes if row < shape.inner else 1, real.shape[1]))

    def felt(row: int, weights: dict[int, Num]) -> Num:
        """What a component feels of others with these weights."""
        parts = []
        for (i, j), value in sizes.items():
            if i == row:
                product = value * weights[j]
                crowd = j < shape.inner <= i
                parts.append(jnp.sum(product, axis=0, keepdims=True) if crowd else product)
        return sum(parts, 0.0 * spread(row))

    def moved(weights: tuple) -> tuple[Num, ...]:
        known = dict(zip(states, weights, strict=True))
        for i in shape.sent:
            known[i] = felt(i, known)
        return tuple(felt(i, known) for i in states)

    def improved(weights: tuple, _: None) -> tuple[tuple, None]:
        change = moved(weights)
        most = _largest([c / w for c, w in zip(change, weights, strict=True)])
        most = jnp.where(most > 0, most, 1.0)
        added = [w + c / most for c, w in zip(change, weights, strict=True)]
        scale = _largest(added)
        return tuple(jnp.maximum(a / scale, 1e-9) for a in added), None

    start = tuple(spread(i) for i in states)
    weights, _ = jax.lax.scan(improved, start, None, length=_POWERS)
    rows = [c / w for c, w in zip(moved(weights), weights, strict=True)]
    most = _largest(rows)
    every = _lanes(rows)
    k = jnp.where(most > 0, every / jnp.where(most > 0, most, 1.0), 1.0)
    return most / -jnp.expm1(-_QUARTER / k)


def _sizes(shape: Shape, numbers: Numbers, real: Num) -> dict[tuple[int, int], Num]:
    """Bounds of what components feel of each other, s and the diagonal of what is sent left out."""
    inner = [jnp.exp(-real * lag) for lag in numbers.inner_lags]
    outer = [jnp.exp(-real * lag) for lag in numbers.outer_lags]
    out = {}
    for cell, values in zip(shape.cells, numbers.cells, strict=True):
        if cell.unit and cell.row == cell.column:
            continue
        left = list(values)
        parts = [jnp.abs(left.pop(0))] if cell.fixed and not cell.unit else []
        parts += [jnp.ones_like(real)] if cell.unit else []
        left = left[1:] if cell.padded else left
        late = inner if shape.own(cell) else outer
        parts += [jnp.abs(v) * late[slot] for slot, v in zip(cell.slots, left, strict=True)]
        if parts:
            out[cell.row, cell.column] = sum(parts[1:], parts[0])
    return out


def _largest(parts: list[Num]) -> Num:
    """The largest over all components and classes (1, P)."""
    return functools.reduce(jnp.maximum, [jnp.max(p, axis=0, keepdims=True) for p in parts])


class _Walk(NamedTuple):
    """Where lanes are on their way up: height and half length of the next piece, whole turns of all
    pivots, the last ends of the pivots' enclosures, pieces tried, and whether to go on.
    """

    height: Num
    half: Num
    turns: Num
    ends: Any
    pieces: Num
    going: Num


Point = tuple[Num, Num]


def _crossed(start: Point, end: Point) -> Num:
    """Crossings of the negative real axis, counter-clockwise, on the shorter way to a point."""
    (a, b), (c, d) = start, end
    side = a * d - b * c  # positive if the way goes round counter-clockwise
    up = (b >= 0) & (d < 0) & (side > 0)
    down = (b < 0) & (d >= 0) & (side < 0)
    return up.astype(float) - down.astype(float)


def _broadcast(point: Point, lanes: int) -> Point:
    """Both parts as arrays of the same shape (c, P)."""
    parts = [jnp.atleast_2d(jnp.asarray(x)) for x in point]
    rows = max(len(x) for x in parts)
    re, im = (jnp.broadcast_to(x, (rows, lanes)) for x in parts)
    return re, im


def _angle(point: Point) -> Num:
    re, im = point
    return jnp.arctan2(jnp.where(im == 0, 0.0, im), re)  # -0 counts as above the axis


def _lanes(values: list[Num]) -> Num:
    """Sum of numbers per pivot over the pivots and their classes (1, P)."""
    return functools.reduce(jnp.add, [jnp.sum(v, axis=0, keepdims=True) for v in values])


class _Lanes(NamedTuple):
    """Systems in lanes and the lines Re s = `real` (1, P) that they are looked at from."""

    shape: Shape
    plan: Plan
    numbers: Numbers
    real: Num

    def pivots(self, height: Num, half: Num) -> list[Enclosure]:
        """The pivots that are not constant, around a height on the line."""
        entries: Matrix = matrix(self.shape, self.numbers, self.real, height, half)
        own, common = pivots(self.shape, self.plan, entries, lambda v: v.summed(self.shape.classes))
        return [p for p in (*own, *common) if not p.constant]

    def ends(self, found: list[Enclosure], side: float) -> list[Point]:
        """One end of each enclosure's linear part."""
        return [_broadcast(p.end(side), self.real.shape[1]) for p in found]


def _worst(found: list[Enclosure]) -> Num:
    """Largest share of a remainder in what keeps its enclosure from zero (1, P)."""
    shares = []
    for p in found:
        least = p.least() - _CLOSE * p.most()
        share = p.rest / jnp.where(least > 0, least, 1.0)
        shares.append(jnp.where((least > 0) & (share < jnp.inf), share, jnp.inf))
    return _largest(shares)


def _step(lanes: _Lanes, top: Num, walk: _Walk) -> _Walk:
    """Try the next piece of every lane."""
    left = 0.5 * (top - walk.height)
    last, half = walk.half >= left, jnp.minimum(walk.half, left)
    found = lanes.pivots(walk.height + half, half)
    share = _worst(found)
    sound = walk.going & (share < _SOUND)
    starts, ends = lanes.ends(found, -1.0), lanes.ends(found, 1.0)
    ways = [*zip(walk.ends, starts, strict=True), *zip(starts, ends, strict=True)]
    turned = _lanes([_crossed(a, b) for a, b in ways])
    scale = jnp.clip(jnp.sqrt(_AIM / jnp.maximum(share, 1e-12)), 0.2, 2.0)
    pieces = walk.pieces + walk.going.astype(float)
    return _Walk(
        height=jnp.where(sound, jnp.where(last, top, walk.height + 2 * half), walk.height),
        half=jnp.where(walk.going, half * scale, walk.half),
        turns=walk.turns + jnp.where(sound, turned, 0.0),
        ends=jax.tree.map(functools.partial(jnp.where, sound), ends, walk.ends),
        pieces=pieces,
        going=walk.going & ~(sound & last) & (pieces < _MOST_PIECES),
    )


def count(shape: Shape, plan: Plan, numbers: Numbers, real: Num) -> Num:
    """Number of roots with real part above `real` (1, P) of systems in lanes; -1 if not known."""
    lanes = _Lanes(shape, plan, numbers, real)
    top, zero = bound(shape, numbers, real), jnp.zeros_like(real)

    def exact(height: Num) -> list[Point]:
        return lanes.ends(lanes.pivots(height, 0.0), 0.0)

    outer = jax.vmap(exact)(jnp.stack([zero, top]))
    first, final = (jax.tree.map(lambda x, i=i: x[i], outer) for i in range(2))
    going = jnp.isfinite(top) & (top > 0)
    walk = jax.lax.while_loop(
        lambda walk: jnp.any(walk.going),
        functools.partial(_step, lanes, top),
        _Walk(zero, _FIRST * top, zero, first, zero, going),
    )
    turns = walk.turns + _lanes([_crossed(a, b) for a, b in zip(walk.ends, final, strict=True)])
    begin, end = (_lanes([_angle(p) for p in ends]) for ends in (first, final))
    n, up = shape.degree, jnp.arctan2(top, real)
    last = end + math.pi * plan.odd - n * up
    beyond = n * (math.pi / 2 - up) - jnp.arctan2(jnp.sin(last), jnp.cos(last))
    number = n / 2 - (end - begin + 2 * math.pi * turns + beyond) / math.pi
    whole = jnp.round(number)
    known = going & (jnp.abs(number - whole) < 1e-3) & (walk.height >= top)
    return jnp.where(known, whole, -1.0)
