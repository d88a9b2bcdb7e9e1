"""Rightmost roots of many linear systems: eigenvalues of a few, Newton's method for the rest."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import scipy.spatial

from fluidcc.analysis.batch.arrow import Numbers, Shape, arrow
from fluidcc.analysis.batch.elimination import Plan, chosen
from fluidcc.analysis.batch.lanes import Judged, compiled
from fluidcc.analysis.batch.systems import Systems
from fluidcc.analysis.batch.threads import filled, in_threads
from fluidcc.analysis.collocation import generator
from fluidcc.analysis.linear import Array
from fluidcc.analysis.roots import rightmost_roots

_SEEDS = 4
_TILE = 256  # points that share the seeds of one
_TILES = 64  # that share them at first
_LANES = 1024  # numbers of a kind that are worked on together
_MATRICES = 8  # decomposed together
_ORDERS = (12, 24)
_STEPS = 10  # of Newton's method, at most
_PASSES = 4  # from neighbours
_WORTHWHILE = 0.2  # of the systems left: so many settled ones make another pass worthwhile


@dataclasses.dataclass(frozen=True)
class ManyRoots:
    """Rightmost roots of systems (P,).

    `rightmost` [1/s] is NaN where it is not known, `unstable` the number of roots with positive
    real part, -1 where it is not known. `certified` tells that the argument principle shows that
    number, to rounding, `proven` that it shows the rightmost root to be so. `source` says how the
    roots were found: `neighbour`, `eigenvalues`, or `single` for what a batch does not settle.
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


def many_roots(systems: Systems, *, places: Array | None = None) -> ManyRoots:
    """The rightmost root and the certified number of unstable roots of each system.

    Parameters
    ----------
    systems
        The systems.
    places
        Whole numbers (P, d), the places of the systems on a grid of parameters; they follow each
        other in one parameter unless given.
    """
    every = np.arange(len(systems))
    out = ManyRoots(
        np.full(len(systems), complex(math.nan, math.nan)), np.full(len(systems), -1),
        np.zeros(len(systems), bool), np.zeros(len(systems), bool),
        np.full(len(systems), "single", "<U11"),
    )  # fmt: skip
    if not len(systems):
        return out
    try:
        batch = Batch(systems)
    except ValueError:
        return _singly(systems, every, out)
    left = _continued(batch, every[:, None] if places is None else places, out)
    for order in _ORDERS:
        if len(left):
            found = batch.by_eigenvalues(left, order)
            _record(out, left, found, found.agree, "eigenvalues")
            left = left[~found.agree]
    return _singly(systems, left, out)


def _continued(batch: Batch, places: Array, out: ManyRoots) -> Array:
    """Find roots from those of neighbours; returns the systems that are left (indices).

    The first neighbours are the centres of tiles, later ones the nearest systems that are settled.
    """
    seeds = _first(batch, places)
    left, roots = np.arange(len(places)), np.empty_like(seeds)
    for _ in range(_PASSES):
        found = batch.judged(left, seeds, _STEPS, near=False)
        sound = found.agree & (np.max(found.re, axis=0) > found.line)
        _record(out, left, found, sound, "neighbour")
        roots[:, left] = found.re + 1j * found.im
        done, left = np.sum(sound), left[~sound]
        if not len(left) or done < _WORTHWHILE * len(left):
            break
        known = np.flatnonzero(out.certified)
        _, place = scipy.spatial.KDTree(places[known]).query(places[left])
        seeds = _usable(roots[:, known[place]])
    return left


def _first(batch: Batch, places: Array) -> Array:
    """Roots (j, P) of the centre of each system's tile, found from those of much larger tiles."""
    far, wide = tiles(places, _TILE * _TILES)
    first = batch.by_eigenvalues(far, _ORDERS[0])
    centres, numbers = tiles(places, _TILE)
    seeds = _usable(first.re + 1j * first.im)[:, wide[centres]]
    found = batch.judged(centres, seeds, _STEPS, near=False)
    roots = found.re + 1j * found.im
    if not np.all(found.agree):
        other = batch.by_eigenvalues(centres[~found.agree], _ORDERS[0])
        roots[:, ~found.agree] = other.re + 1j * other.im
    return _usable(roots)[:, numbers]


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


class Batch:
    """Systems of one structure, ready to be judged in lanes.

    Raises ValueError where their structure does not permit it.
    """

    def __init__(self, systems: Systems):
        if systems.structure.conserved:
            raise ValueError("conserved quantities keep roots at zero")
        self.shape: Shape
        self.numbers: Numbers
        self.systems = systems
        self.shape, self.numbers = arrow(self.systems)
        self.plan: Plan = chosen(self.shape, self.numbers)
        self.together = max(1, _LANES // max(1, self.shape.classes))

    def judged(self, index: Array, seeds: Array, steps: int, *, near: bool) -> Judged:
        """What becomes of seeds (j, P) of the systems with these indices (P,)."""
        numbers = self.numbers.lanes(index)
        every = (numbers, (np.real(seeds), np.imag(seeds)))
        count = seeds.shape[1]

        def block(part: slice) -> Judged:
            some, pair = jax.tree.map(lambda x: filled(x[..., part], self.together, -1), every)
            found = compiled(self.shape, self.plan, some, pair, steps, near)
            return jax.tree.map(lambda x: np.asarray(x)[..., : count - part.start], found)

        parts = in_threads(block, count, self.together)
        return Judged(*(np.concatenate(p, axis=-1) for p in zip(*parts, strict=True)))

    def by_eigenvalues(self, index: Array, order: int) -> Judged:
        """Roots from eigenvalues of the collocated systems with these indices."""

        def block(part: slice) -> Array:
            s = self.systems.take(index[part]).pruned()
            matrices = generator(s.A, s.B, s.C, s.D, s.structure.pick, s.lag, order)
            values = np.linalg.eigvals(matrices)
            values = np.where(np.imag(values) >= 0, values, -np.inf)
            first = np.argsort(-np.real(values), axis=1)[:, :_SEEDS]
            return np.take_along_axis(values, first, axis=1).T

        parts = in_threads(block, len(index), _MATRICES)
        return self.judged(index, _usable(np.concatenate(parts, axis=1)), _STEPS, near=True)


def _usable(seeds: Array) -> Array:
    """Seeds with the first sound one of a system in place of what is not finite."""
    sound = np.isfinite(seeds)
    first = np.take_along_axis(seeds, np.argmax(sound, axis=0)[None], axis=0)
    return np.where(sound, seeds, np.where(np.isfinite(first), first, 1.0))


def _record(out: ManyRoots, index: Array, found: Judged, sound: Array, source: str) -> None:
    """Keep what was found of the systems that are `sound`."""
    first = np.argmax(found.re, axis=0)[None]
    re, im = (np.take_along_axis(x, first, axis=0)[0] for x in (found.re, found.im))
    values = np.where(np.isfinite(re), re, np.nan) + 1j * np.where(np.isfinite(re), im, 0.0)
    at = index[sound]
    out.rightmost[at] = values[sound]
    out.unstable[at] = found.unstable[sound].astype(int)
    out.certified[at] = True
    out.proven[at] = (re > found.line)[sound]
    out.source[at] = source


def _singly(systems: Systems, index: Array, out: ManyRoots) -> ManyRoots:
    """The systems with these indices, one at a time."""
    for i in index:
        found = rightmost_roots(systems[i])
        first = found.rightmost
        out.rightmost[i] = complex(math.nan, math.nan) if first is None else first
        out.unstable[i], out.certified[i] = found.unstable, found.certified
        out.proven[i], out.source[i] = found.proven > 0, "single"
    return out
