"""Rightmost characteristic roots to rounding, and proof that none is missing.

First approximations are by Chebyshev collocation of the outputs' history. Breda, Maset and
Vermiglio (2005): the generator of the solution operator, discretised; here the history is that of
the outputs, which at lag 0 follow from the present state and the history.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear, cluster
from fluidcc.analysis.winding import count_roots

_ORDERS = (12, 24, 48)
_CLASSES = 4  # of the clustered system that gives the first approximations
_ABERTH, _NEWTON, _NEAR = 14, 8, 30  # iterations
_REAL_AXIS, _CLOSE = 250, 500  # points at which the sign is taken
BRIEF = 3000  # evaluations spent on one line
NOISE = 14.0  # decay over the longest lag from which on rounding spoils ten digits
DEEPEST = 3.0  # decay over the longest lag down to which completeness is proven
CRITICAL = 1e-9  # relative distance from the imaginary axis that counts as none
_NEGLIGIBLE = 1e-12  # of the largest root


def critical(root: Any) -> Any:
    """Whether a root (elementwise) lies on the imaginary axis within rounding."""
    return abs(np.real(root)) <= CRITICAL * abs(root)


@dataclasses.dataclass(frozen=True)
class Roots:
    """Rightmost characteristic roots [1/s], both of each conjugate pair, from the right.

    `unstable` is the number with positive real part, `certified` if the argument principle proves
    it (else `reason` says why not). The first `proven` values are proven to be the rightmost. The
    rightmost complex pair is the last of the values where real roots alone lie right of it. There
    are no values where fewer unstable roots than counted were located.
    """

    values: Array
    unstable: int
    certified: bool
    proven: int
    reason: str = ""

    @property
    def rightmost(self) -> complex | None:
        """The root with the largest real part, above the real axis; None without any root."""
        return complex(self.values[0]) if len(self.values) else None


def polish(characteristic: Characteristic, seeds: Array) -> Array:
    """Characteristic roots near the seeds, each once, to rounding.

    Complex seeds are polished on the loop through the links also, as many classes with roots of
    their own drag them away otherwise. Roots below the real axis are left out, and those that decay
    too fast to be known in double precision.
    """
    seeds = np.asarray(seeds, complex)
    s = _known(distinct(seeds[np.imag(seeds) >= 0]))
    deepest = -NOISE / np.maximum(characteristic.longest, 1e-12)
    found = follow(characteristic, s[:, None], True, deepest)
    if characteristic.layout.classes:
        waves = follow(characteristic, s[np.imag(s) > 0, None], False, deepest)
        found = np.concatenate([found, waves])
    return _known(distinct(found[:, 0]))


def _known(roots: Array) -> Array:
    return roots[np.isfinite(roots)]


def follow(
    characteristic: Characteristic, seeds: Array, whole: Any, deepest: Any, *, apart: bool = True
) -> Array:
    """Zeros (j, k) near seeds (j, k) of each of k systems, NaN where there is none.

    They are those of the characteristic function where `whole` (j, k), else of the loop through the
    links. Left of `deepest` (k,) they are given up. Aberth's iteration (Newton's method on the
    function over the factors of all other approximations) keeps two seeds `apart`; Newton's method
    ends it. Without it steps are shorter and relative to the seeds, so that roots nearby are found,
    one at zero too.
    """
    s, whole = seeds.astype(complex), np.broadcast_to(whole, seeds.shape)
    together, alone, longest = (_ABERTH, _NEWTON, 0.5) if apart else (0, _NEAR, 0.2)
    scale = np.max(np.abs(s), axis=0, initial=1e-12, where=np.isfinite(s))
    error = np.full(s.shape, np.inf)
    active = np.isfinite(s)
    for turn in range(together + alone):
        if not active.any():
            break
        here, line = s[active], np.nonzero(active)[1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = characteristic.log_slope(here, line, whole[active])
            step = 1 / (slope - _others(s)[active] if turn < together else slope)
        size = np.abs(here) + 1e-3 * scale[line] if apart else scale[line]
        known = np.isfinite(step)
        step = np.where(known, step, 0.0)
        step /= np.maximum(1.0, np.abs(step) / (longest * size))
        s[active] = here - step
        found = known | ~np.isfinite(slope)  # the slope is infinite at a root itself
        error[active] = np.where(found, np.abs(step) / size, np.inf)
        active &= (error > 1e-12) & (np.real(s) > 2 * deepest)
    good = (error <= 1e-10) & (np.imag(s) > -1e-9 * scale) & (np.real(s) > deepest)
    return np.where(good, s, np.nan)


def nearby_root(characteristic: Characteristic, seed: complex) -> complex:
    """The characteristic root that Newton's method reaches from a seed; NaN if it does not.

    From a complex seed it is tried on the loop through the links first, which has no roots and no
    poles of the classes nearby.
    """
    for whole in [False, True] if seed.imag and characteristic.layout.classes else [True]:
        found = follow(characteristic, np.array([[seed]]), whole, -np.inf, apart=False)[0, 0]
        if np.isfinite(found):
            return complex(found)
    return complex("nan")


def _others(s: Array) -> Array:
    """Sum of 1/(s - t) over all other approximations t of a system (j, k) and their conjugates."""
    own = np.eye(len(s), dtype=bool)[..., None] | ~np.isfinite(s)
    near = np.where(own, 0.0, 1 / np.where(own, 1.0, s[:, None] - s[None]))
    mirror = s[:, None] - s[None].conj()
    paired = (np.abs(np.imag(s)) > 1e-6 * np.abs(s))[None] & (mirror != 0) & np.isfinite(mirror)
    return near.sum(axis=1) + np.where(paired, 1 / np.where(paired, mirror, 1.0), 0.0).sum(axis=1)


def negligible(roots: Array) -> Array:
    """Modulus (...) that counts as zero beside the largest of the roots (j, ...)."""
    return _NEGLIGIBLE * np.max(np.abs(roots), axis=0, initial=0.0, where=np.isfinite(roots))


def distinct(roots: Array) -> Array:
    """Roots (j, ...) sorted from the right, NaN in place of duplicates; nearly real ones real."""
    floor = negligible(roots)
    size = np.abs(roots) + floor
    roots = np.where(np.abs(np.imag(roots)) < 1e-9 * size, np.real(roots), roots)
    roots = np.take_along_axis(roots, np.lexsort((np.imag(roots), -np.real(roots)), axis=0), 0)
    near = np.abs(roots[:, None] - roots[None]) <= (1e-8 * np.abs(roots) + floor)[:, None]
    before = np.expand_dims(np.tri(len(roots), k=-1, dtype=bool), tuple(range(2, roots.ndim + 1)))
    roots = np.where(np.any(near & before, axis=1), np.nan, roots)
    return np.take_along_axis(roots, np.argsort(np.isnan(roots), axis=0, kind="stable"), 0)


def rightmost_roots(system: Linear, *, keep: int = 6) -> Roots:
    """The `keep` rightmost roots of a linear system (a conjugate pair counts once).

    The rightmost complex pair is always among them, after real ones that are more than `keep`.

    Starting values come from collocation (of a system with few, clustered classes where there are
    many) and from changes of sign on the real axis; Newton's method on the exact characteristic
    function does the rest.
    """
    characteristic = Characteristic(system)
    count = count_roots(characteristic)
    found = np.zeros(0, complex)
    for order in _ORDERS:
        seeds = first_approximations(characteristic, order, keep)
        seeds = np.concatenate([seeds, _chain(characteristic, seeds, keep)])
        fresh = polish(characteristic, seeds)
        found = without_conserved(
            _known(distinct(np.concatenate([found, fresh]))), system.conserved
        )
        unstable = located(found)
        proven = _proven(characteristic, found[:keep])
        if count.number is None or (proven and count.number == unstable):
            break
    shown = np.arange(len(found)) < max(keep, int(np.sum(np.real(found) > 0)))
    shown[np.flatnonzero(np.imag(found) > 0)[:1]] = True  # the pair of the loop
    values = _pairs(found[shown])
    if count.number is None:
        return Roots(values, unstable, False, proven, count.reason)
    if count.number != unstable:
        reason = (
            f"{count.number} unstable roots counted, {unstable} located: "
            "the rightmost root is not known"
        )
        return Roots(values[:0], count.number, True, 0, reason)
    return Roots(values, unstable, True, proven)


def first_approximations(characteristic: Characteristic, order: int, keep: int) -> Array:
    """Starting values in the upper half plane and on the real axis."""
    system = characteristic.system
    deepest = NOISE / max(float(system.lag.max(initial=0.0)), 1e-12)
    seeds = approximate_roots(cluster(system, _CLASSES), order)
    seeds = seeds[np.isfinite(seeds) & (np.imag(seeds) >= 0) & (np.real(seeds) > -deepest)]
    seeds = seeds[np.argsort(-np.real(seeds))][: 3 * keep + 6]
    size = min(deepest, float(np.max(np.abs(seeds), initial=1.0)))
    real = _sign_changes(characteristic, -np.geomspace(1e-7 * size, size, _REAL_AXIS))
    return np.concatenate([seeds, real[:keep]])


def _chain(characteristic: Characteristic, seeds: Array, keep: int) -> Array:
    """Starting values at the end of the chain of real roots that many classes make."""
    real = np.real(seeds[np.imag(seeds) == 0])
    if not characteristic.layout.classes or not np.any(real < 0):
        return seeds[:0]
    first = np.max(real[real < 0])
    return _sign_changes(characteristic, first * np.linspace(0.95, 1.3, _CLOSE))[:keep]


def _sign_changes(characteristic: Characteristic, real: Array) -> Array:
    """Middles of the intervals in which the characteristic function changes its sign."""
    odd = np.cos(np.imag(characteristic.log_det(real))) < 0
    change = np.flatnonzero(np.diff(odd))
    return (real[change] + real[change + 1]) / 2


def without_conserved(roots: Array, conserved: int) -> Array:
    """Take away the `conserved` roots nearest to zero."""
    if not conserved or not len(roots):
        return roots
    return np.delete(roots, np.argsort(np.abs(roots))[:conserved])


def _proven(characteristic: Characteristic, roots: Array) -> int:
    """How many of the roots (with conjugates) the argument principle proves to be the rightmost.

    Lines between neighbours are tried from the left; lines so far left that the delays blow the
    bounds up are not.
    """
    longest = float(characteristic.system.lag.max(initial=0.0))
    for size in range(len(roots), 0, -1):
        last = roots[size - 1]
        after = roots[size].real if size < len(roots) else -np.inf
        gap = min((last.real - after) / 2, 0.02 * abs(last))
        deep = -(last.real - gap) * longest > DEEPEST
        if deep or gap <= 1e-6 * abs(last):
            continue
        number = _number(roots[:size])
        if count_roots(characteristic, last.real - gap, nodes=BRIEF).number == number:
            return number
    return 0


def located(roots: Array) -> int:
    """Number of roots with positive real part, given those of the upper half plane."""
    return _number(roots[np.real(roots) > 0])


def _number(upper: Array) -> int:
    return int(np.sum(np.where(np.imag(upper) > 0, 2, 1)))


def _pairs(upper: Array) -> Array:
    """The roots with their conjugates, from the right."""
    out = []
    for s in upper:
        out += [s, s.conjugate()] if s.imag > 0 else [s]
    return np.array(out, complex)


def differentiation(order: int) -> tuple[Array, Array]:
    """Chebyshev points on [-1, 1] from 1 down to -1, and the matrix that differentiates there."""
    x = np.cos(np.pi * np.arange(order + 1) / order)
    weight = np.ones(order + 1)
    weight[[0, -1]] = 2.0
    weight *= (-1.0) ** np.arange(order + 1)
    gap = x[:, None] - x[None] + np.eye(order + 1)
    D = np.outer(weight, 1 / weight) / gap
    return x, D - np.diag(D.sum(axis=1))


def interpolation(x: Array, at: Array) -> Array:
    """Weights (..., k, len(x)) that interpolate from Chebyshev points x to places `at` (..., k)."""
    weight = (-1.0) ** np.arange(len(x))
    weight[[0, -1]] /= 2
    gap = at[..., None] - x
    hit = np.abs(gap) < 1e-14
    ratio = weight / np.where(hit, 1.0, gap)
    ratio = np.where(hit.any(axis=-1, keepdims=True), hit.astype(float), ratio)
    return ratio / ratio.sum(axis=-1, keepdims=True)


def approximate_roots(system: Linear, order: int) -> Array:
    """Eigenvalues of the generator with `order` + 1 nodes of the history [1/s]."""
    s = system.pruned()
    return np.linalg.eigvals(generator(s.A, s.B, s.C, s.D, s.pick, s.lag, order))


def generator(A: Array, B: Array, C: Array, D: Array, pick: Array, lag: Array, order: int) -> Array:
    """The generator with `order` + 1 nodes of the history, of one system or of many.

    The arrays are those of `Linear`, all but `pick` with the same first axes.
    """
    n, m, k = A.shape[-1], C.shape[-2], len(pick)
    many = A.shape[:-2]
    longest = lag.max(axis=-1, initial=0.0)
    longest = np.where(longest > 0, longest, 1.0)
    x, slopes = differentiation(order)
    nodes = interpolation(x, 1 - 2 * lag / longest[..., None])
    look = np.zeros((*many, k, order + 1, m))
    look[..., np.arange(k), :, pick] = np.moveaxis(nodes, -2, 0)
    now, then = look[..., 0, :], look[..., 1:, :].reshape(*many, k, order * m)
    loop = np.eye(m) - D @ now  # (I - D now) u(0) = C y + D then
    present = np.linalg.solve(loop, np.concatenate([C, D @ then], axis=-1))
    top = np.concatenate([A, B @ then], axis=-1) + B @ now @ present
    scale = (2 / longest)[..., None, None]
    past = scale * (np.kron(slopes[1:, :1], np.eye(m)) @ present)
    past[..., n:] += scale * np.kron(slopes[1:, 1:], np.eye(m))
    return np.concatenate([top, past], axis=-2)
