"""Sign changes of decreasing functions, bracketed down to neighbouring numbers.

The steps are those of Chandrupatla (1997): inverse quadratic interpolation if three points show
that it will do, else bisection.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.ops import Num
from fluidcc.programs import repeat, write_out

_MOST = 200  # steps
_SHORTEST = 8e-16  # of the number: step over a root that has been met, to close the bracket
_BEYOND = 1e-13  # of a number: margin around numbers between which a root is expected
_NUMBERS = 1000  # at once; more cost more time
_WIDEST = 8.0  # difference of two of them
_SECANTS = 30  # steps
_SURE = 1e-14  # of a number: to both sides of a root, the numbers whose signs prove it
_NOTHING = np.float64(0.0)  # makes a plain number one of NumPy, whose division by 0 is infinite
_ULP = np.finfo(float).eps  # of a number
_PARTS, _MORE_PARTS = (np.arange(1, n) / n for n in (8, 64))
_SHARES = np.linspace(0.0, 1.0, 9)
_BESIDE = np.arange(-1.0, 1.5)  # numbers of double precision
_ASIDE = 0.0, -(2.0**20), 2.0**20  # of them, beside a number where a jump may be
_NEAREST, _NEAR = 1e-16, 0.1  # of the bracket: distances of points beside a proposal


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
        return _closed(function, _bracket(low, high, at_low, at_high))

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


def _closed(function: Callable[[Num], Num], found: Any) -> tuple[Num, Num]:
    """The ends of a bracket, closed in NumPy."""
    x, is_open, value = found.propose(), found.open, found.at_low
    advance = write_out(_advance, (), (found, x, value))
    for _ in range(_MOST):
        if not np.any(is_open):
            break
        *found, x, is_open = advance(*found, x, function(x))
    return found[0], found[1]


@functools.cache
def _grid(count: int) -> Num:
    return np.linspace(0.0, 1.0, count)


@np.errstate(all="ignore")
def find_zero(
    function: Callable[[Num], Num], low: Num, high: Num, near: tuple[Num, Num] | None = None
) -> Num:
    """The number at which a decreasing function (elementwise) changes its sign, to rounding; the
    end beyond which it does, if it does not in between.

    `near`, for NumPy alone, are two numbers between which it probably does. There the function may
    get numbers with one axis more in front. A bracket from a few points is narrowed by the secant
    method, whose result is proven by the signs on both sides of it; failing that, it is closed.
    """
    if ops.traced(low, high):
        below, above = bisect(function, low, high)
        return ops.where(above == high, high, below)
    low, high, *ends = np.broadcast_arrays(low, high, *(near or ()))
    a, b = low, high
    if near is not None:
        a, b = (v + s * _BEYOND * (1.0 + abs(v)) for s, v in zip((-1, 1), ends, strict=True))
        a, b = np.fmin(np.fmax(a, low), high), np.fmax(np.fmin(b, high), low)
    count = max(_NUMBERS / low.size, 1 + (b - a).max() / _WIDEST)
    points = a + (b - a) * _grid(int(min(max(count, 3), 17))).reshape((-1, *low.ndim * (1,)))
    if near is not None:
        points = np.concatenate([low[None], points, high[None]])
    values = function(points)
    falls = ~(values > 0)
    first = np.argmax(falls, axis=0)[None]
    pair = np.concatenate([np.maximum(first - 1, 0), first])
    (a, b), (at_a, at_b) = (np.take_along_axis(v, pair, 0) for v in (points, values))
    rising = values[-1] > 0  # and perhaps falling before, which does not count
    ended, x = rising | falls[0], np.where(rising, high, low)
    a, b = np.where(ended, x, a), np.where(ended, x, b)
    before, last, at_before, at_last = a, b, at_a, at_b
    aside = _SURE * (1 + abs(x))
    for _ in range(_SECANTS):
        step = at_last * (last - before) / (at_last - at_before)
        x = last - step
        inside = (x > a) & (x < b)
        if not inside.all():
            still = (abs(step) <= aside) | (last == before)
            x = np.where(inside, x, np.where(still, last, 0.5 * (a + b)))
        before, at_before, last, at_last = last, at_last, x, function(x)
        rises = at_last > 0
        a, b = np.where(rises, x, a), np.where(rises, b, x)
        aside = _SURE * (1 + abs(x))
        if ((abs(x - before) <= aside) | ended).all():
            break
    at_both = function(np.stack([x - aside, x + aside]))
    if ((at_both[0] > 0) & ~(at_both[1] > 0) | ended).all():
        return x
    below, above = _closed(function, _bracket(a, b, function(a), function(b)))
    return np.where(ended, x, np.where(above == high, high, below))


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
def first_crossing(
    function: Callable[[Num], Num],
    tried: Num,
    jumps: Callable[[Num], tuple[Num, ...]] = lambda _: (),
    finest: float = 0.0,
    rounding: Num = 0.0,
) -> Crossing:
    """Try points (n,), then narrow the interval around the first crossing.

    The function, of one number, is in a compiled program once, however large it is; in NumPy it
    takes several numbers (n, 1) at a time. If a function changes its sign several times between two
    points, any of the changes from above 0 is found. NumPy also tries numbers at which any of the
    functions `jumps` is zero early, and ends at a bracket of width `finest` or at values within
    `rounding`. In NumPy points may also be those (n, P, 1) of P functions in one, of numbers (P, 1)
    or several of each in front.
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

    if not ops.traced(tried):
        if np.ndim(tried) > 1:
            return _narrow_each(function, tried, jumps, finest, rounding)
        return _narrow_by_many(function, tried, jumps, finest, rounding)
    none = 0.0 * tried
    values, found = repeat(unfinished, go, (0, none, start(none)[1]))[1:]
    return Crossing(values, start(values)[0], found.low, found.high, found.at_low, found.at_high)


def _narrow_each(
    function: Callable[[Num], Num],
    tried: Num,
    jumps: Callable[[Num], tuple[Num, ...]],
    finest: float,
    rounding: Num,
) -> Crossing:
    """`first_crossing` of many functions, one number of each at a time."""
    values = function(tried)
    first = np.argmax(_ends(values), axis=0)
    pair = np.stack([first - 1, first])
    (low, high), (at_low, at_high) = (np.take_along_axis(v, pair, 0) for v in (tried, values))
    found = Bracket(low, high, high, at_low, at_high, at_high, at_low > 0)
    special = [
        zero + _ULP * abs(zero) * aside for zero in _zeros(jumps, low, high) for aside in _ASIDE
    ]
    for turn in range(_MOST):
        largest = np.maximum(abs(found.at_low), abs(found.at_high))
        wide = (found.high - found.low > finest) & (largest > rounding) & (found.at_high <= 0)
        if not np.any(wide & found.open):
            break
        x = found.propose()
        if turn < len(special):
            inside = (special[turn] > found.low) & (special[turn] < found.high)
            x = np.where(inside, special[turn], x)
        pairs = zip(found.narrow(x, function(x)), found, strict=True)
        found = Bracket(*(np.where(wide, *pair) for pair in pairs))
    return Crossing(values, first, found.low, found.high, found.at_low, found.at_high)


def _narrow_by_many(
    function: Callable[[Num], Num],
    tried: Num,
    jumps: Callable[[Num], tuple[Num, ...]],
    finest: float,
    rounding: Num,
) -> Crossing:
    """`first_crossing` in NumPy, with many points at a time, as their number costs next to nothing:
    some all over the bracket, most of them ever nearer to the root of an interpolation; more all
    over if the values at its ends stay apart, as at a jump.
    """
    x, values, apart = tried, function(tried[:, None])[:, 0], math.inf
    at = at_start = int(np.argmax(_ends(values)))
    first_values = values
    for turn in range(_MOST):
        (low, high), ends = x[at - 1 : at + 1], values[at - 1 : at + 1]
        middle, width = 0.5 * (low + high), high - low
        close = width <= finest or max(abs(ends)) <= rounding
        if not low < middle < high or close or ends[1] > 0:
            break
        special = [] if turn else [zero for zero in _zeros(jumps, low, high) if zero == zero]
        guess = _interpolated(x[max(at - 2, 0) : at + 2], values[max(at - 2, 0) : at + 2])
        guesses = [*special, guess if low < guess < high else middle]
        before, apart = apart, ends[0] - ends[1]
        parts = _PARTS if apart < 0.5 * before else _MORE_PARTS
        points = [low + width * parts, *(_around(each, width) for each in guesses)]
        inner = np.unique(np.concatenate(points))
        inner = inner[(inner > low) & (inner < high)]
        x = np.concatenate([[low], inner, [high]])
        values = np.concatenate([ends[:1], function(inner[:, None])[:, 0], ends[1:]])
        at = int(np.argmax(_ends(values)))
    return Crossing(first_values, at_start, x[at - 1], x[at], values[at - 1], values[at])


def _ends(values: Num) -> Num:
    """Mask of the points at which the first crossing may end: with values of at most 0, or last."""
    ends = ~(values > 0)
    ends[0], ends[-1] = False, True
    return ends


def _interpolated(x: Num, values: Num) -> float:
    """The number at which the polynomial through some points, of the value, is 0 (Neville)."""
    x, values = x.tolist(), values.tolist()
    for order in range(1, len(x)):
        for k in range(len(x) - order):
            apart = values[k] - values[k + order]
            if not apart:
                return math.nan
            x[k] = (values[k] * x[k + 1] - values[k + order] * x[k]) / apart
    return x[0]


def _around(number: Num, width: Num) -> Num:
    """Numbers ever nearer to one, on both of its sides, in a bracket of this width."""
    ulp = _ULP * abs(number)
    nearest = min(max(ulp / width, _NEAREST), _NEAR)
    aside = _NEAR * width * (nearest / _NEAR) ** _SHARES
    return np.concatenate([number - aside, number + ulp * _BESIDE, number + aside])


def _zeros(functions: Callable[[Num], tuple[Num, ...]], low: Num, high: Num) -> list[Num]:
    """Zeros of functions that are next to linear between two ends; NaN if there are none."""
    ends = np.stack([low, high])
    pairs = [np.broadcast_to(value, ends.shape) for value in functions(ends)]
    return [
        np.where((a > 0) != (b > 0), low + (high - low) * a / (a - b), np.nan) for a, b in pairs
    ]
