"""Rightmost roots of many systems from seeds, and what the argument principle says of them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.analysis.batch.arrow import Numbers, Shape
from fluidcc.analysis.batch.count import count
from fluidcc.analysis.batch.elimination import Plan
from fluidcc.analysis.batch.polish import polished
from fluidcc.analysis.roots import CRITICAL, DEEPEST, NOISE
from fluidcc.ops import Num

_FOLLOWED = 6.0  # decay over the longest lag up to which roots of neighbours are followed
_SAME = 1e-8  # relative distance of roots that are one
_REAL = 1e-9  # relative distance from the real axis of roots that lie on it
_WIDE = 0.05  # relative width of a gap that is wide enough for a line


class Judged(NamedTuple):
    """Roots from seeds, with proof, for lanes (P,).

    `re` and `im` of the distinct roots found, (j, P), -inf where there is none; `unstable` is the
    number of roots with positive real part; `agree` tells that the argument principle finds as
    many roots right of `line` as were found there, and that none of them is on the imaginary axis.
    """

    re: Num
    im: Num
    unstable: Num
    line: Num
    agree: Num


def _distinct(re: Num, im: Num, sound: Num) -> tuple[Num, Num]:
    """Roots (j, P) of the upper half plane, each once; -inf in place of the others."""
    size = jnp.sqrt(re * re + im * im)
    im = jnp.where(jnp.abs(im) <= _REAL * size, 0.0, jnp.abs(im))
    kept = [sound[0]]
    for j in range(1, len(re)):
        before = zip(re[:j], im[:j], kept, strict=True)
        near = [k & (_distance(re[j] - a, im[j] - b) <= _SAME * size[j]) for a, b, k in before]
        kept.append(sound[j] & ~functools.reduce(jnp.logical_or, near))
    return jnp.where(jnp.stack(kept), re, -jnp.inf), im


def _distance(re: Num, im: Num) -> Num:
    return jnp.sqrt(re * re + im * im)


def _line(re: Num, im: Num, longest: Num) -> Num:
    """Real part of a line between roots (j, P), left of all with positive real part (1, P).

    It is the first gap from the right that is wide enough, or the widest.
    """
    lines, scores = [], []
    for one, other in zip(re, im, strict=True):
        size = _distance(one, other)
        left = functools.reduce(
            jnp.maximum, [jnp.where(r < one - _SAME * size, r, -jnp.inf) for r in re]
        )
        line = jnp.where(jnp.isinf(left), one - _WIDE * size, 0.5 * (one + left))
        line = jnp.where(one > 0, jnp.minimum(line, 0.0), line)
        gap = jnp.minimum(one - line, line - left) / size
        rank = sum((r > one).astype(float) for r in re)
        usable = jnp.isfinite(one) & ((left <= 0) | (one <= 0))
        lines.append(line)
        scores.append(jnp.where(usable, jnp.minimum(gap, _WIDE) * (1 - 0.01 * rank), -jnp.inf))
    best = functools.reduce(jnp.maximum, scores)
    parts = zip(lines, scores, strict=True)
    chosen = [jnp.where((s == best) & jnp.isfinite(s), line, -jnp.inf) for line, s in parts]
    line = functools.reduce(jnp.maximum, chosen)
    return jnp.maximum(jnp.where(jnp.isfinite(line), line, 0.0), -DEEPEST / longest[0])[None]


def judged(
    shape: Shape, plan: Plan, numbers: Numbers, seeds: tuple[Num, Num], steps: Num, near: Num
) -> Judged:
    """The roots that Newton's method reaches in `steps` steps from seeds (j, P), with proof.

    `near` tells that the seeds are approximations, not roots of a neighbour.
    """
    both = (numbers.inner_lags, numbers.outer_lags)
    longest = jnp.maximum(*(jnp.max(lags, axis=(0, 1), initial=1e-12) for lags in both))[None]
    re, im = (part[:, None] for part in seeds)
    deepest = -jnp.where(near, NOISE, _FOLLOWED) / longest
    reached = polished(shape, plan, numbers, (re, im), steps, near=near, deepest=deepest)
    re, im, sound = (x[:, 0] for x in reached)
    re, im = _distinct(re, im, sound)
    line = _line(re, im, longest)
    number = jnp.where(im > 0, 2.0, 1.0)
    expected = jnp.sum(jnp.where(re > line, number, 0.0), axis=0)
    unstable = jnp.sum(jnp.where(re > 0, number, 0.0), axis=0)
    clear = jnp.all(jnp.isinf(re) | (jnp.abs(re) > CRITICAL * _distance(re, im)), axis=0)
    counted = count(shape, plan, numbers, line)
    return Judged(re, im, unstable, line[0], clear & (counted[0] == expected))


compiled = jax.jit(judged, static_argnums=(0, 1))
