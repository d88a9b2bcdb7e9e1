"""Rightmost roots of many linear systems: eigenvalues of a few, Newton's method for the rest.

Blocks of equal length are processed in parallel threads.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.roots import (
    BRIEF,
    CRITICAL,
    DEEPEST,
    NOISE,
    distinct,
    follow,
    generator,
    negligible,
    rightmost_roots,
)
from fluidcc.analysis.winding import counts
from fluidcc.machine import threads
from fluidcc.memory import in_place

_SEEDS = 4
_TILE = 256  # points that share the seeds of one
_TILES = 64  # that share them at first
_LANES = 4096  # systems of one class in one batch
_MATRICES = 8  # in one call of the eigenvalue solver
_ORDERS = (12, 24)
_PASSES = 4  # from neighbours
_WORTHWHILE = 0.2  # of the systems left: settled ones that make another pass worthwhile
_FOLLOWED = 6.0  # decay over the longest lag up to which roots of neighbours are followed
_WIDE = 0.05  # relative width of a gap between roots that is wide enough for a line


@dataclasses.dataclass(frozen=True)
class ManyRoots:
    """Rightmost roots of systems (P,).

    `rightmost` [1/s] is NaN if unknown; `unstable` is the number of roots with positive real part,
    -1 if unknown. `certified`: the argument principle confirms that number, to rounding; `proven`:
    it confirms that no root is further right. `source` is how the roots were found: `neighbour`,
    `eigenvalues`, or `single` for systems that no batch settles.
    """

    rightmost: Array
    unstable: Array
    certified: Array
    proven: Array
    source: Array

    def __len__(self) -> int:
        return len(self.rightmost)

    def __repr__(self) -> str:
        ways = [f"{np.sum(self.source == name)} {name}" for name in np.unique(self.source)]
        return (
            f"ManyRoots: {len(self)} systems, {np.sum(self.unstable > 0)} unstable, "
            f"{np.sum(self.certified)} certified ({', '.join(ways)})"
        )


def many_roots(systems: Linear, *, places: Array | None = None) -> ManyRoots:
    """The rightmost root and the certified number of unstable roots of each system.

    Parameters
    ----------
    systems
        The systems.
    places
        Integers (P, d), the places of the systems on a grid of parameters (default: the systems
        are a sequence along one parameter).
    """
    count = len(systems.A)
    every = np.arange(count)
    out = ManyRoots(
        np.full(count, complex(math.nan, math.nan)), np.full(count, -1),
        np.zeros(count, bool), np.zeros(count, bool),
        np.full(count, "single", "<U11"),
    )  # fmt: skip
    if not count:
        return out
    if systems.conserved:
        return _solve_singly(systems, every, out)
    left = _continue_roots(systems, every[:, None] if places is None else places, out)
    for order in _ORDERS:
        if len(left):
            found = by_eigenvalues(systems[left], order)
            _record(out, left, found, found.agree, "eigenvalues")
            left = left[~found.agree]
    return _solve_singly(systems, left, out)


def _continue_roots(systems: Linear, places: Array, out: ManyRoots) -> Array:
    """Find roots from those of neighbours; returns the systems that are left (indices).

    The first neighbours are the centres of tiles, later ones the nearest systems that are settled.
    """
    seeds = _first_seeds(systems, places)
    left, roots = np.arange(len(places)), np.empty_like(seeds)
    for _ in range(_PASSES):
        own = systems if len(left) == len(places) else systems[left]
        found = judged(own, seeds, near=False)
        sound = found.agree & (np.real(found.roots[0]) > found.line)
        _record(out, left, found, sound, "neighbour")
        roots[:, left] = found.roots
        done, left = np.sum(sound), left[~sound]
        if not len(left) or done < _WORTHWHILE * len(left):
            break
        from scipy.spatial import KDTree  # heavy, and few maps come here

        known = np.flatnonzero(out.certified)
        _, place = KDTree(places[known]).query(places[left])
        seeds = roots[:, known[place]]
    return left


def _first_seeds(systems: Linear, places: Array) -> Array:
    """Roots (j, P) of the centre of each system's tile, found from those of much larger tiles."""
    far, wide = tiles(places, _TILE * _TILES)
    first = by_eigenvalues(systems[far], _ORDERS[0])
    centres, numbers = tiles(places, _TILE)
    found = judged(systems[centres], first.roots[:, wide[centres]], near=False)
    other = by_eigenvalues(systems[centres[~found.agree]], _ORDERS[0])
    found.roots[:, ~found.agree] = other.roots
    return found.roots[:, numbers]


def tiles(places: Array, size: int) -> tuple[Array, Array]:
    """Systems near the centres of tiles of a grid, and for each system the number of its tile.

    Tiles hold up to `size` places of the grid.
    """
    side = max(1, round(size ** (1 / places.shape[1])))
    tile = (places - places.min(axis=0)) // side
    flat = np.ravel_multi_index(tuple(tile.T), tuple(tile.max(axis=0) + 1))
    names, numbers = np.unique(flat, return_inverse=True)
    off = np.sum((2 * ((places - places.min(axis=0)) % side) - side + 1) ** 2, axis=1)
    order = np.lexsort((off, numbers))
    return order[np.searchsorted(numbers[order], np.arange(len(names)))], numbers


class Judged(NamedTuple):
    """Roots of systems (k,) from seeds, with proof.

    `roots` (j, k) from the right, NaN where there are no more; `unstable` is the number of those
    with positive real part; `agree`: the argument principle counts as many roots right of `line` as
    `roots` has there, and none of them is on the imaginary axis.
    """

    roots: Array
    unstable: Array
    line: Array
    agree: Array


def judged(systems: Linear, seeds: Array, *, near: bool) -> Judged:
    """Refine and count roots from seeds (j, k); `near`: seeds are approximations to own roots."""

    def block(part: slice) -> Judged:
        characteristic = Characteristic(systems[part])
        longest = np.maximum(characteristic.longest, 1e-12)
        first = distinct(seeds[:, part])
        whole = near | (np.imag(first) == 0)
        deepest = -(NOISE if near else _FOLLOWED) / longest
        roots = distinct(follow(characteristic, first, whole, deepest, apart=near))
        real, number = np.real(roots), np.where(np.imag(roots) > 0, 2, 1)
        line = _line(roots, longest)
        expected = np.sum(number * (real > line), axis=0)
        # a real root is never near the axis compared with itself, but so with the largest root
        near_axis = CRITICAL * np.abs(roots) + negligible(roots)
        clear = np.all(np.isnan(real) | (np.abs(real) > near_axis), axis=0)
        found = counts(characteristic, np.arange(len(line)), line, nodes=BRIEF)
        agree = clear & (found.number == expected)
        return Judged(roots, np.sum(number * (real > 0), axis=0), line, agree)

    classes = len(np.unique(systems.output_owner))
    parts = in_threads(block, len(systems.A), max(1, _LANES // classes))
    if not parts:
        return Judged(seeds, np.zeros(0, int), np.zeros(0), np.zeros(0, bool))
    return Judged(*(np.concatenate(p, axis=-1) for p in zip(*parts, strict=True)))


def _line(roots: Array, longest: Array) -> Array:
    """Real part of a line between roots (j, k), left of all with positive real part (k,).

    It is the first gap from the right that is wide enough, or the widest.
    """
    real, size = np.real(roots), np.maximum(np.abs(roots), np.finfo(float).tiny)
    left = np.concatenate([real[1:], np.full((1, len(longest)), np.nan)])
    left = np.where(np.isnan(left), -np.inf, left)
    line = np.where(np.isinf(left), real - _WIDE * size, (real + left) / 2)
    line = np.where(real > 0, np.minimum(line, 0.0), line)
    gap = np.minimum(np.minimum(real - line, line - left) / size, _WIDE)
    usable = np.isfinite(real) & ((left <= 0) | (real <= 0))
    score = np.where(usable, gap * (1 - 0.01 * np.arange(len(roots))[:, None]), -np.inf)
    best = np.argmax(score, axis=0)[None]
    chosen = np.where(usable, line, 0.0)
    return np.maximum(np.take_along_axis(chosen, best, 0)[0], -DEEPEST / longest)


def by_eigenvalues(systems: Linear, order: int) -> Judged:
    """Roots from eigenvalues of the collocated systems."""

    def block(part: slice) -> Array:
        s = systems[part].pruned()
        values = np.linalg.eigvals(generator(s.A, s.B, s.C, s.D, s.pick, s.lag, order))
        values = np.where(np.imag(values) >= 0, values, -np.inf)
        missing = max(_SEEDS - values.shape[1], 0)  # of small systems without delay
        values = np.pad(values, [(0, 0), (0, missing)], constant_values=-np.inf)
        first = np.argsort(-np.real(values), axis=1)[:, :_SEEDS]
        return np.take_along_axis(values, first, axis=1).T

    parts = in_threads(block, len(systems.A), _MATRICES)
    seeds = np.concatenate([np.zeros((_SEEDS, 0), complex), *parts], axis=1)
    return judged(systems, np.where(np.isfinite(seeds), seeds, np.nan), near=True)


def _record(out: ManyRoots, index: Array, found: Judged, sound: Array, source: str) -> None:
    """Store the results of the systems that are `sound`."""
    at = index[sound]
    out.rightmost[at] = found.roots[0, sound]
    out.unstable[at] = found.unstable[sound]
    out.certified[at] = True
    out.proven[at] = (np.real(found.roots[0]) > found.line)[sound]
    out.source[at] = source


def _solve_singly(systems: Linear, index: Array, out: ManyRoots) -> ManyRoots:
    """Solve the systems with these indices one at a time."""
    for i in index:
        found = rightmost_roots(systems[i])
        first = found.rightmost
        out.rightmost[i] = complex(math.nan, math.nan) if first is None else first
        out.unstable[i], out.certified[i] = found.unstable, found.certified
        out.proven[i], out.source[i] = found.proven > 0, "single"
    return out


def in_threads(function: Callable[[slice], Any], count: int, size: int) -> list[Any]:
    """Results of a function for each block of up to `size` of `count` items, in order."""
    parts = [slice(i, min(i + size, count)) for i in range(0, count, size)]
    with concurrent.futures.ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(in_place(function), parts))


def filled(block: Array, size: int, axis: int = 0) -> Array:
    """The block with its last entry repeated up to `size` of them."""
    missing = size - block.shape[axis]
    if not missing:
        return block
    last = np.take(block, [-1], axis=axis)
    return np.concatenate([block, np.repeat(last, missing, axis=axis)], axis=axis)
