"""The finished share of a sweep, with the counts behind it and the time left."""

import time


class Progress(float):
    """The finished share, with the counts behind it.

    Parameters
    ----------
    done, failed, total
        Points: finished, finished without a valid result, and all.
    left
        Time until the end [s]; None if it is not known yet.

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

    def __new__(cls, done: int, failed: int, total: int, left: float | None = None) -> "Progress":
        """The share of `done` in `total`."""
        self = super().__new__(cls, done / total if total else 1.0)
        self.done, self.failed, self.total, self.left = done, failed, total, left
        return self

    def __repr__(self) -> str:
        left = "" if self.left is None else f", {self.left:.0f} s left"
        return f"{self.done} of {self.total} points, {self.failed} failed{left}"


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
