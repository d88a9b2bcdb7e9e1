"""First-order enclosures of analytic functions on a piece of a vertical line, in lanes.

Arithmetic in real and imaginary parts, which compilers vectorise; a part that is the literal 0.0
or 1.0 is known to be so when the computation is traced, and costs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from fluidcc.ops import Num

_ROUNDING = 2e-15
"""Relative bound of the rounding of a product of complex numbers and of what was added to it."""

_LEAST = 1e-300


def _is(a: Num, value: float) -> bool:
    return isinstance(a, float) and a == value


def times(a: Num, b: Num) -> Num:
    """Product of real parts."""
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    if _is(a, 1.0):
        return b
    return a if _is(b, 1.0) else a * b


def plus(a: Num, b: Num) -> Num:
    """Sum of real parts."""
    if _is(a, 0.0):
        return b
    return a if _is(b, 0.0) else a + b


def minus(a: Num, b: Num) -> Num:
    """Difference of real parts."""
    if _is(b, 0.0):
        return a
    return -b if _is(a, 0.0) else a - b


def size(a: Num, b: Num) -> Num:
    """Modulus of a + i b."""
    if _is(a, 0.0) or _is(b, 0.0):
        rest = plus(a, b)
        return abs(rest)
    return jnp.sqrt(a * a + b * b)


@dataclasses.dataclass(frozen=True)
class Enclosure:
    """A function (re + i im) + (d_re + i d_im) t, up to `rest`, for real t with |t| <= `half`.

    Without a remainder (`half` is the literal 0.0) it is the value and the derivative by t.
    """

    re: Num
    im: Num
    d_re: Num
    d_im: Num
    rest: Num
    half: Num

    def __neg__(self) -> Enclosure:
        return self._each(lambda x: minus(0.0, x), self.rest)

    def __add__(self, other: Enclosure) -> Enclosure:
        return self._both(plus, other)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self._both(minus, other)

    def _each(self, function: Callable[[Num], Num], rest: Num) -> Enclosure:
        re, im, d_re, d_im = map(function, (self.re, self.im, self.d_re, self.d_im))
        return Enclosure(re, im, d_re, d_im, rest, self.half)

    def _both(self, function: Callable[[Num, Num], Num], other: Enclosure) -> Enclosure:
        ours = (self.re, self.im, self.d_re, self.d_im)
        theirs = (other.re, other.im, other.d_re, other.d_im)
        re, im, d_re, d_im = map(function, ours, theirs)
        return Enclosure(re, im, d_re, d_im, plus(self.rest, other.rest), self.half)

    def __mul__(self, other: Enclosure) -> Enclosure:
        a, b = self, other
        re = minus(times(a.re, b.re), times(a.im, b.im))
        im = plus(times(a.re, b.im), times(a.im, b.re))
        d_re = plus(
            minus(times(a.re, b.d_re), times(a.im, b.d_im)),
            minus(times(a.d_re, b.re), times(a.d_im, b.im)),
        )
        d_im = plus(
            plus(times(a.re, b.d_im), times(a.im, b.d_re)),
            plus(times(a.d_re, b.im), times(a.d_im, b.re)),
        )
        return Enclosure(re, im, d_re, d_im, self._product_rest(other), self.half)

    def _product_rest(self, other: Enclosure) -> Num:
        if _is(self.half, 0.0):
            return 0.0
        (v, moves), (w, turns) = self._sizes(), other._sizes()
        bent = times(moves, turns)
        rounded = times(_ROUNDING, times(v, w))
        whole = plus(plus(w, turns), other.rest)
        crossed = plus(times(self.rest, whole), times(other.rest, plus(v, moves)))
        return plus(plus(bent, rounded), crossed)

    def _sizes(self) -> tuple[Num, Num]:
        """Modulus of the value, and the most that the linear part moves."""
        return size(self.re, self.im), times(size(self.d_re, self.d_im), self.half)

    def most(self) -> Num:
        """Bound of the linear part's modulus."""
        return plus(*self._sizes())

    def least(self) -> Num:
        """Least modulus of the linear part."""
        slope = plus(times(self.d_re, self.d_re), times(self.d_im, self.d_im))
        if _is(slope, 0.0):
            return size(self.re, self.im)
        along = plus(times(self.re, self.d_re), times(self.im, self.d_im))
        at = jnp.clip(-along / jnp.maximum(slope, _LEAST), -self.half, self.half)
        return size(plus(self.re, times(self.d_re, at)), plus(self.im, times(self.d_im, at)))

    def inverse(self) -> Enclosure:
        """1 over the function; senseless where `sure` is not positive."""
        if self.constant:
            value = 1.0 if _is(self.re, 1.0) else 1 / self.re
            return Enclosure(value, 0.0, 0.0, 0.0, 0.0, self.half)
        square = plus(times(self.re, self.re), times(self.im, self.im))
        over = 1 / jnp.maximum(square, _LEAST)
        re, im = times(self.re, over), minus(0.0, times(self.im, over))
        s_re, s_im = minus(times(re, re), times(im, im)), times(2.0, times(re, im))
        d_re = minus(times(s_im, self.d_im), times(s_re, self.d_re))
        d_im = minus(0.0, plus(times(s_re, self.d_im), times(s_im, self.d_re)))
        if _is(self.half, 0.0):
            return Enclosure(re, im, d_re, d_im, 0.0, 0.0)
        moves, least = self._sizes()[1], self.least()
        sure = jnp.maximum(minus(least, self.rest), _LEAST)
        inside = jnp.maximum(least, _LEAST)
        rest = times(times(moves, moves), over) / inside + self.rest / (inside * sure)
        return Enclosure(re, im, d_re, d_im, rest, self.half)

    @property
    def constant(self) -> bool:
        """Whether it is known to be a real number that does not change."""
        return all(_is(x, 0.0) for x in (self.im, self.d_re, self.d_im, self.rest))

    def end(self, side: float) -> tuple[Num, Num]:
        """Real and imaginary part of the linear part at t = `side` times `half`."""
        move = times(side, self.half)
        return plus(self.re, times(self.d_re, move)), plus(self.im, times(self.d_im, move))

    def summed(self, count: int) -> Enclosure:
        """The sum over the classes, the first axis of every part, of which there are `count`."""

        def total(part: Num) -> Num:
            if isinstance(part, float):
                return count * part
            return jnp.sum(jnp.broadcast_to(part, (count, part.shape[1])), axis=0, keepdims=True)

        return self._each(total, total(self.rest))
