"""Sign changes of decreasing functions, bracketed down to neighbouring numbers.

The steps are those of Chandrupatla (1997): inverse quadratic interpolation if three points show
that it will do, else bisection.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.ops import Num
from fluidcc.programs import repeat, write_out

_MOST = 200  # steps
_SHORTEST = 8e-16  # of the number: step over a root that has been met, to close the bracket
_SPREAD = 1e-3  # of the bracket: to both sides of an interpolated root, if several points are tried
_NOTHING = np.float64(0.0)  # makes a plain number one of NumPy, whose division by 0 is infinite
_PARTS = np.arange(1, 64) / 64.0


class Bracket(NamedTuple):
    """Two ends, above 0 at the low one and not at the high one, the end before the last step, and
    the values there; elementwise.
    """

    low: Num
    high: Num
    before: Num
    at_low: Num
    at_high: Num
    at_before: Num
    rose: Num  # whether the last step moved the low end

    @property
    def open(self) -> Num:
        """Whether there are numbers in between."""
        middle = 0.5 * (self.low + self.high)
        return (middle > self.low) & (middle < self.high)

    def propose(self) -> Num:
        """The next point, strictly between the ends if there is any."""
        ends, values = (self.low, self.high), (self.at_low, self.at_high)
        a, b = (ops.where(self.rose, *pair) for pair in (ends, ends[::-1]))  # the last one, other
        fa, fb = (ops.where(self.rose, *pair) for pair in (values, values[::-1]))
        c, fc = self.before, self.at_before
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        share = fa / (fb - fa) * fc / (fb - fc)
        share = share + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        least = ops.minimum(_SHORTEST * ops.maximum(abs(a), abs(b)) / abs(b - a), 0.5)
        share = ops.where(smooth, ops.clip(share, least, 1 - least), 0.5)
        x = a + share * (b - a)
        return ops.where((x > self.low) & (x < self.high), x, 0.5 * (self.low + self.high))

    def narrow(self, x: Num, value: Num) -> "Bracket":
        """The bracket with a new point in between, which takes the place of the end on its side."""
        kept, rises = ~self.open, value > 0
        new = Bracket(
            ops.where(rises, x, self.low), ops.where(rises, self.high, x),
            ops.where(rises, self.low, self.high), ops.where(rises, value, self.at_low),
            ops.where(rises, self.at_high, value), ops.where(rises, self.at_low, self.at_high),
            rises,
        )  # fmt: skip
        return Bracket(*(ops.where(kept, *pair) for pair in zip(self, new, strict=True)))


def _bracket(low: Num, high: Num, at_low: Num, at_high: Num) -> Bracket:
    """The bracket between two ends; closed at an end beyond which the sign changes, if it does."""
    low = ops.where(at_high > 0, high, low)
    high = ops.where((at_low > 0) | (low == high), high, low)
    return Bracket(low, high, high, at_low, at_high, at_high, at_low > 0)


def _advance(found: Bracket, x: Num, value: Num) -> tuple[Bracket, Num, Num]:
    """The bracket with one point more, the next point, and whether it is open."""
    new = found.narrow(x, value)
    return new, new.propose(), new.open


@np.errstate(all="ignore")
def bisect(function: Callable[[Num], Num], low: Num, high: Num) -> tuple[Num, Num]:
    """Neighbouring numbers between which a decreasing function (elementwise) changes sign; twice
    the end beyond which it does, if it does not in between.
    """
    low, high = low + _NOTHING, high + _NOTHING
    if not ops.traced(low, high):
        at_high, at_low = function(high) + _NOTHING, function(low) + _NOTHING
        found: Any = _bracket(low, high, at_low, at_high)
        x, is_open = found.propose(), found.open
        advance = write_out(_advance, (), (found, x, at_low))
        for _ in range(_MOST):
            if not np.any(is_open):
                break
            *found, x, is_open = advance(*found, x, function(x))
        return found[0], found[1]

    def unfinished(carry: tuple) -> Num:
        step, _, found = carry
        return (step < 2) | ((step < _MOST) & ops.anywhere(found.open))

    def narrow(carry: tuple) -> tuple:
        step, at_high, found = carry
        x = ops.where(step == 0, high, ops.where(step == 1, low, found.propose()))
        value = function(x)
        begun, narrowed = _bracket(low, high, value, at_high), found.narrow(x, value)
        found = (ops.where(step < 2, *pair) for pair in zip(begun, narrowed, strict=True))
        return step + 1, ops.where(step == 0, value, at_high), Bracket(*found)

    none = 0.0 * low
    found = repeat(unfinished, narrow, (0, none, _bracket(low, high, none, none)))[2]
    return found.low, found.high


class Crossing(NamedTuple):
    """First change of a function from above 0 to 0 or below: its values at the points tried, the
    index of the first with a value of at most 0, between 1 and the last, and the neighbouring
    numbers to the left (`below`) and right (`above`) of the change, with the values there.
    """

    values: Num
    first: Num
    below: Num
    above: Num
    at_below: Num
    at_above: Num


@np.errstate(all="ignore")
def first_crossing(function: Callable[[Num], Num], tried: Num) -> Crossing:
    """Try points (n,), then narrow the interval around the first crossing.

    The function, of one number, is in a compiled program once, however large it is; in NumPy it
    takes several numbers (n, 1) at a time. If a function changes its sign several times between two
    points, NumPy finds the first change, a compiled program any of them.
    """
    last = len(tried) - 1

    def start(values: Num) -> tuple[Num, Bracket]:
        """The first crossing of the points tried: index of its end, and bracket."""
        over, index = values > 0, np.arange(last + 1)
        first = ops.least(ops.where(over | (index == 0), last, index))
        low, high, at_low, at_high = (
            ops.total(ops.where(index == k, v, 0.0))
            for v in (tried, values)
            for k in (first - 1, first)
        )
        return first, Bracket(low, high, high, at_low, at_high, at_high, at_low > 0)

    def unfinished(carry: tuple) -> Num:
        step, _, found = carry
        return (step <= last) | ((step < last + 1 + _MOST) & found.open)

    def go(carry: tuple) -> tuple:
        step, values, found = carry
        index, trying = np.arange(last + 1) == step, step <= last
        x = ops.where(trying, ops.total(ops.where(index, tried, 0.0)), found.propose())
        value = function(x)
        values = ops.where(index, value, values)
        pairs = zip(start(values)[1], found.narrow(x, value), strict=True)
        return step + 1, values, Bracket(*(ops.where(trying, *pair) for pair in pairs))

    if ops.traced(tried):
        none = 0.0 * tried
        values, found = repeat(unfinished, go, (0, none, start(none)[1]))[1:]
    else:
        values = function(tried[:, None])[:, 0]
        found = _narrow_by_many(function, start(values)[1])
    return Crossing(values, start(values)[0], found.low, found.high, found.at_low, found.at_high)


def _narrow_by_many(function: Callable[[Num], Num], found: Bracket) -> Bracket:
    """Narrow the bracket around the first of its crossings with many points at a time, as their
    number costs next to nothing.
    """
    for _ in range(_MOST):
        if not found.open:
            break
        low, width, x = found.low, found.high - found.low, found.propose()
        near = x + _SPREAD * width * np.array([-1.0, -_SPREAD, 0.0, _SPREAD, 1.0])
        tried = np.unique(np.concatenate([low + width * _PARTS, near]))
        tried = tried[(tried > low) & (tried < found.high)]
        values = function(tried[:, None])[:, 0]
        falls = np.flatnonzero(~(values > 0))
        first = falls[0] if len(falls) else len(values)
        if first < len(values):
            found = found.narrow(tried[first], values[first])
        if first > 0:
            found = found.narrow(tried[first - 1], values[first - 1])
    return found
