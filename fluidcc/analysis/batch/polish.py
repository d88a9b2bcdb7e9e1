"""Newton's method on the characteristic functions of many systems, in lanes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fluidcc.analysis.batch.arrow import Numbers, Shape, matrix
from fluidcc.analysis.batch.elimination import Plan, pivots
from fluidcc.analysis.batch.enclosure import Enclosure
from fluidcc.ops import Num

_LARGEST_STEP = 0.5  # of the root
_SETTLED = 1e-10  # relative step up to which a root is one


def polished(
    shape: Shape, plan: Plan, numbers: Numbers, seeds: tuple[Num, Num], steps: Num,
    *, near: Num, deepest: Num,
) -> tuple[Num, Num, Num]:  # fmt: skip
    """Real and imaginary parts (j, 1, P) of the roots near the seeds, and which of them are roots.

    Real seeds stay real. Where the seeds are not `near` roots already, complex ones are followed on
    the loop through the links, as the roots of classes alone would drag them away. What goes left
    of `deepest` (1, P) is given up.
    """

    def follow(re: Num, im: Num) -> tuple[Num, Num, Num]:
        whole = jnp.where(near | (im == 0), 1.0, 0.0)

        def unsettled(carry: tuple) -> Num:
            count, re, _, moved = carry
            return (count < steps) & jnp.any((moved > _SETTLED) & (re > deepest))

        def step(carry: tuple) -> tuple:
            count, re, im, _ = carry
            a, b = _newton(shape, plan, numbers, (re, im), whole)
            scale = jnp.sqrt(re * re + im * im) + 1e-12
            length = jnp.sqrt(a * a + b * b)
            fine = jnp.isfinite(length)
            short = jnp.minimum(1.0, _LARGEST_STEP * scale / jnp.maximum(length, 1e-300))
            a, b = (jnp.where(fine, x * short, 0.0) for x in (a, b))
            return count + 1, re - a, im - b, jnp.where(fine, length / scale, 0.0)

        start = (jnp.zeros_like(steps), re, im, jnp.full_like(re, jnp.inf))
        _, re, im, moved = jax.lax.while_loop(unsettled, step, start)
        return re, im, (moved <= _SETTLED) & (re > deepest)

    return jax.vmap(follow)(*seeds)


def _newton(
    shape: Shape, plan: Plan, numbers: Numbers, s: tuple[Num, Num], whole: Num
) -> tuple[Num, Num]:
    """One over the derivative of the function's logarithm; not finite at a root itself.

    The pivots of classes take part where `whole` is 1.
    """
    entries = matrix(shape, numbers, *s, 0.0)
    own, common = pivots(shape, plan, entries, lambda v: v.summed(shape.classes))
    inner, outer = (_slope(part, s[0]) for part in (own, common))
    re, im = (whole * a + b for a, b in zip(inner, outer, strict=True))
    square = re * re + im * im
    return re / square, -im / square


def _slope(pivots: list[Enclosure], like: Num) -> tuple[Num, Num]:
    """Derivative by s of the logarithm of the pivots' product."""
    total_re, total_im = jnp.zeros_like(like), jnp.zeros_like(like)
    for p in pivots:
        if p.constant:
            continue
        square = p.re * p.re + p.im * p.im
        a = (p.d_re * p.re + p.d_im * p.im) / square
        b = (p.d_im * p.re - p.d_re * p.im) / square
        total_re = total_re + jnp.sum(a, axis=0, keepdims=True)
        total_im = total_im + jnp.sum(b, axis=0, keepdims=True)
    return total_im, -total_re  # the derivative by the height is i times that by s
