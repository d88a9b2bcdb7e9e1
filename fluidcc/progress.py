"""The finished share of a verb, reported where its loops advance.

Loops call `report`, or run over `counted`; each of several in a row has its `part`. The caller's
function takes the shares: `progress` of the verb (`reporting`), or what `listening` is given. A
verb that another one calls is silent, unless it is called in a `part` for a verb.
"""

import contextlib
import contextvars
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fluidcc.errors import P, T, answers


class Progress(float):
    """The finished share, with the counts behind it.

    Parameters
    ----------
    done, failed, total
        Points: finished, finished without a valid result, and all.
    left
        Time until the end [s]; None if it is not known yet.
    doing
        What is being done, in place of the counts.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.Progress(3, 0, 12)
    3 of 12 points, 0 failed
    >>> round(fc.Progress(3, 0, 12), 2)
    0.25
    """

    done: int
    failed: int
    total: int
    left: float | None
    doing: str

    def __new__(
        cls, done: int, failed: int, total: int, left: float | None = None, doing: str = ""
    ) -> "Progress":
        """The share of `done` in `total`."""
        self = super().__new__(cls, done / total if total else 1.0)
        self.done, self.failed, self.total, self.left, self.doing = done, failed, total, left, doing
        return self

    def __repr__(self) -> str:
        left = "" if self.left is None else f", {self.left:.0f} s left"
        return (self.doing or f"{self.done} of {self.total} points, {self.failed} failed") + left


class Clock:
    """Turns counts into `Progress`; the time left follows from the rate since its creation."""

    def __init__(self, total: int, done: int = 0, failed: int = 0) -> None:
        self.total, self.done, self.failed = total, done, failed
        self._done_before, self._started = done, time.monotonic()

    def count(self, points: int, failed: int) -> Progress:
        """Add finished points, of which some failed."""
        self.done, self.failed = self.done + points, self.failed + failed
        new = self.done - self._done_before
        seconds_each = (time.monotonic() - self._started) / new if new else None
        left = None if seconds_each is None else seconds_each * (self.total - self.done)
        return Progress(self.done, self.failed, self.total, left)


class _Listener:
    """Passes shares on that do not go back, to a function that has not raised."""

    def __init__(self, show: Callable[[float], object]) -> None:
        self.show, self.last = show, 0.0

    def __call__(self, share: float) -> None:
        if share >= self.last:
            self.last = float(share)
            try:
                self.show(share)
            except BaseException:
                self.last = math.inf
                raise


class _Range(NamedTuple):
    """The part of a listener's shares that is reported now; `free` if the next verb may take it."""

    listener: _Listener
    low: float
    high: float
    free: bool


_now: contextvars.ContextVar[_Range | None] = contextvars.ContextVar("progress", default=None)


def report(share: float) -> None:
    """Report the finished share, in [0, 1], of the present verb, or of the present `part`."""
    now = _now.get()
    if now is not None:
        if (now.low, now.high) != (0.0, 1.0) or not isinstance(share, Progress):  # without words
            share = float(now.low + (now.high - now.low) * share)
        now.listener(share)


def counted(items: Sequence[T]) -> Iterator[T]:
    """The items in turn; the share of those that are done is reported."""
    for done, item in enumerate(items, 1):
        yield item
        report(done / len(items))


@contextlib.contextmanager
def part(low: float, high: float, *, verb: bool = False) -> Iterator[None]:
    """Report from `low` to `high`, shares of the present part, for loops, or a verb, within."""
    now = _now.get()
    if now is None:
        yield
        return
    low, high = (now.low + (now.high - now.low) * share for share in (low, high))
    before = _now.set(_Range(now.listener, low, high, free=verb))
    try:
        yield
        report(1.0)
    finally:
        _now.reset(before)


@contextlib.contextmanager
def listening(show: Callable[[float], object] | None) -> Iterator[None]:
    """Let `show` take the finished share, in [0, 1], of the verb that runs within."""
    before = _now.set(None if show is None else _Range(_Listener(show), 0.0, 1.0, free=True))
    try:
        yield
    finally:
        _now.reset(before)


def reporting(verb: Callable[P, T]) -> Callable[P, T]:
    """Let a verb's `progress` take what is reported while it runs; the last share is 1. Arguments
    that it does not have are answered.
    """
    answered = answers(verb)

    @functools.wraps(verb)
    def call(*args: P.args, **options: P.kwargs) -> T:
        show: Any = options.pop("progress", None)
        if show is not None and not callable(show):
            raise TypeError(f"progress: expected a function of the finished share, got {show!r}")
        with contextlib.nullcontext() if show is None else listening(show):
            now = _now.get()
            own = now._replace(free=False) if now is not None and now.free else None
            before = _now.set(own)
            try:
                found = answered(*args, **options)
                if own is not None and own.listener.last < own.high:
                    report(1.0)
            finally:
                _now.reset(before)
        return found

    return call
