"""Functions of NumPy for dual numbers too: a + b e with e^2 = 0, values with first derivatives.

A slope has the shape of its value, or one more axis at its end: derivatives along several
directions. Values and slopes may be dual numbers of a lower level: the derivative of a rule within
a derivative of the model (Griewank and Walther, 2008, chapter 3).
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


class Dual:
    """A value with its slope. Comparisons are those of the values."""

    __array_ufunc__ = None  # so that arrays leave the arithmetic to this class
    __slots__ = ("level", "slope", "value", "wide")

    def __init__(self, value: Any, slope: Any, level: int, *, wide: bool) -> None:
        self.value, self.slope, self.level, self.wide = value, slope, level, wide

    def chain(self, value: Any, factor: Any) -> Dual:
        """A function of this number, from its value and its derivative."""
        return Dual(value, self._wider(factor) * self.slope, self.level, wide=self.wide)

    def _wider(self, factor: Any) -> Any:
        return np.asarray(factor)[..., None] if self.wide else factor

    def _join(self, other: Any, value: Any, factors: tuple[Any, Any]) -> Dual:
        """A function of this number and another, from its value and both derivatives."""
        level = max(self.level, getattr(other, "level", 0))
        terms = [
            each._wider(factor) * each.slope
            for each, factor in zip((self, other), factors, strict=True)
            if isinstance(each, Dual) and each.level == level
        ]
        wide = self.wide if self.level == level else other.wide
        return Dual(value, sum(terms[1:], terms[0]), level, wide=wide)

    def _values(self, other: Any) -> tuple[Any, Any]:
        """Both numbers at the level at which they are joined."""
        level = max(self.level, getattr(other, "level", 0))
        a = self.value if self.level == level else self
        return a, other.value if getattr(other, "level", 0) == level else other

    def __add__(self, other: Any) -> Dual:
        a, b = self._values(other)
        return self._join(other, a + b, (1.0, 1.0))

    def __sub__(self, other: Any) -> Dual:
        a, b = self._values(other)
        return self._join(other, a - b, (1.0, -1.0))

    def __mul__(self, other: Any) -> Dual:
        a, b = self._values(other)
        return self._join(other, a * b, (b, a))

    def __truediv__(self, other: Any) -> Dual:
        a, b = self._values(other)
        quotient = a / b
        return self._join(other, quotient, (1.0 / b, -quotient / b))

    def __pow__(self, other: Any) -> Dual:
        a, b = self._values(other)
        power = a**b
        by_power = power * log(where(a > 0, a, 1.0)) if isinstance(other, Dual) else 0.0
        return self._join(other, power, (b * a ** (b - 1.0), by_power))

    def __rsub__(self, other: Any) -> Dual:
        return self.chain(other - self.value, -1.0)

    def __rtruediv__(self, other: Any) -> Dual:
        quotient = other / self.value
        return self.chain(quotient, -quotient / self.value)

    def __rpow__(self, other: Any) -> Dual:
        power = other**self.value
        return self.chain(power, power * log(where(other > 0, other, 1.0)))

    def __neg__(self) -> Dual:
        return self.chain(-self.value, -1.0)

    def __abs__(self) -> Dual:
        return self.chain(abs(self.value), np.sign(plain(self.value)))

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, index: Any) -> Dual:
        within = (*index, slice(None)) if self.wide and isinstance(index, tuple) else index
        return Dual(self.value[index], self.full()[within], self.level, wide=self.wide)

    def reshape(self, shape: tuple[int, ...]) -> Dual:
        """The same numbers in another shape."""
        value, slope = self.value, self.full().reshape((*shape, *self.directions))
        value = value.reshape(shape) if isinstance(value, Dual) else np.reshape(value, shape)
        return Dual(value, slope, self.level, wide=self.wide)

    def full(self) -> Any:
        """The slope in the shape of the value, with the axis of the directions."""
        return broadcast_to(self.slope, (*self.shape, *self.directions))

    @property
    def directions(self) -> tuple[int, ...]:
        """Shape of the axis of directions."""
        return np.shape(plain(self.slope))[-1:] if self.wide else ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return np.shape(plain(self))

    @property
    def ndim(self) -> int:
        """Number of axes of the value."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    def __lt__(self, other: Any) -> Any:
        return plain(self) < plain(other)

    def __le__(self, other: Any) -> Any:
        return plain(self) <= plain(other)

    def __gt__(self, other: Any) -> Any:
        return plain(self) > plain(other)

    def __ge__(self, other: Any) -> Any:
        return plain(self) >= plain(other)

    def __eq__(self, other: object) -> Any:
        return plain(self) == plain(other)

    def __ne__(self, other: object) -> Any:
        return plain(self) != plain(other)

    __hash__ = None  # type: ignore[assignment]


def plain(x: Any) -> Any:
    """The value of a number, without slopes of any level."""
    while isinstance(x, Dual):
        x = x.value
    return x


_SLOPES: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, y: y,
    "log": lambda x, y: 1.0 / x,
    "sqrt": lambda x, y: 0.5 / y,
    "expm1": lambda x, y: y + 1.0,
    "log1p": lambda x, y: 1.0 / (1.0 + x),
}


def _unary(name: str) -> Callable[[Any], Any]:
    numpy, slope = getattr(np, name), _SLOPES[name]

    def function(x: Any) -> Any:
        if not isinstance(x, Dual):
            return numpy(x)
        y = function(x.value)
        return x.chain(y, slope(x.value, y))

    return function


exp, log, sqrt, expm1, log1p = map(_unary, _SLOPES)


def _pick(weight: Any, a: Any, b: Any, value: Callable[[Any, Any], Any]) -> Dual:
    """A number with the slope weight a' + (1 - weight) b'."""
    first, other, share = (a, b, weight) if isinstance(a, Dual) else (b, a, 1.0 - weight)
    x, y = first._values(other)
    return first._join(other, value(*((x, y) if first is a else (y, x))), (share, 1.0 - share))


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition holds, else `b`, number by number."""
    if not (isinstance(a, Dual) or isinstance(b, Dual)):
        return np.where(condition, a, b)
    return _select(plain(condition), a, b)


def _select(condition: Any, a: Any, b: Any) -> Any:
    level = max(getattr(each, "level", 0) for each in (a, b))
    if not level:
        return np.where(condition, a, b)
    kind = type(a if getattr(a, "level", 0) == level else b)
    wide = any(each.wide for each in (a, b) if getattr(each, "level", 0) == level)
    values, slopes = [], []
    for each in (a, b):
        own = getattr(each, "level", 0) == level
        values.append(each.value if own else each)
        slopes.append(each.slope if own else 0.0)
    lasting = np.asarray(condition)[..., None] if wide else condition
    return kind(_select(condition, *values), _select(lasting, *slopes), level, wide=wide)


def logical_not(condition: Any) -> Any:
    """Whether a condition does not hold, number by number."""
    return np.logical_not(condition)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers; of two equal ones, with the mean of their slopes."""
    if not (isinstance(a, Dual) or isinstance(b, Dual)):
        return np.maximum(a, b)
    x, y = plain(a), plain(b)
    return _pick((x > y) + 0.5 * (x == y), a, b, maximum)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers; of two equal ones, with the mean of their slopes."""
    if not (isinstance(a, Dual) or isinstance(b, Dual)):
        return np.minimum(a, b)
    x, y = plain(a), plain(b)
    return _pick((x < y) + 0.5 * (x == y), a, b, minimum)


def total(x: Any) -> Any:
    """The sum of all numbers of an array."""
    if not isinstance(x, Dual):
        return np.sum(x)
    axes = tuple(range(x.ndim))
    slope = total(x.full()) if not x.wide else x.full().sum(axis=axes)
    return Dual(total(x.value), slope, x.level, wide=x.wide)


def stack(values: Sequence[Any]) -> Any:
    """Numbers of one shape along a new first axis."""
    return _joined(np.stack, values)


def concatenate(values: Sequence[Any], axis: int = 0) -> Any:
    """Arrays, one after the other along an axis."""
    return _joined(functools.partial(np.concatenate, axis=axis), values)


def _joined(function: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    level = max(getattr(v, "level", 0) for v in values)
    if not level:
        return function(list(values))
    own = [getattr(v, "level", 0) == level for v in values]
    some = next(v for v, is_own in zip(values, own, strict=True) if is_own)
    value = [v.value if is_own else v for v, is_own in zip(values, own, strict=True)]
    slope = [
        v.full() if is_own else np.zeros((*np.shape(plain(v)), *some.directions))
        for v, is_own in zip(values, own, strict=True)
    ]
    return Dual(_joined(function, value), _joined(function, slope), level, wide=some.wide)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """The number in a larger shape."""
    if not isinstance(x, Dual):
        return np.broadcast_to(x, shape)
    return Dual(broadcast_to(x.value, shape), x.slope, x.level, wide=x.wide)


_thread = threading.local()


@contextlib.contextmanager
def seed(x: Any, direction: Any) -> Iterator[Dual]:
    """The number with a slope, at a level of its own; several directions along one more axis."""
    below = getattr(_thread, "level", 0)
    _thread.level = below + 1
    try:
        yield Dual(x, direction, below + 1, wide=np.ndim(direction) > np.ndim(x))
    finally:
        _thread.level = below


def parts(y: Any, x: Dual) -> tuple[Any, Any]:
    """Value and slope of a result that was computed from a number `x` with a slope."""
    if isinstance(y, Dual) and y.level == x.level:
        return y.value, y.full()
    return y, np.zeros((*np.shape(plain(y)), *x.directions))
