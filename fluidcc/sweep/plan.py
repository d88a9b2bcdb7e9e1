"""The schedule of a sweep: remaining blocks, sizes of chunks, and progress."""

import time
from collections.abc import Callable, Sequence

from fluidcc.errors import SweepStopped
from fluidcc.sweep.job import Chunk, Job

_SECONDS = 10.0  # most work in a chunk, which an interruption may lose
_BYTES = 64_000_000  # most results in a chunk
_GROWTH = 8  # most growth from chunk to chunk, as the first ones also compile
_LEAST = 1.0  # seconds of work; a shorter chunk is not worth a file
_DEATHS = 2  # deaths of processes at the same block that stop the sweep


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


class Plan:
    """Hands out chunks of the remaining blocks, and takes finished ones.

    Chunks grow until one takes some seconds or its results are large, and shrink at the end, so
    that all workers end together.

    Parameters
    ----------
    job
        The job of the sweep.
    left
        Remaining blocks as pairs: the first, and the one after the last.
    workers
        Number of workers.
    take
        Called with each finished chunk.
    """

    def __init__(
        self, job: Job, left: Sequence[tuple[int, int]], workers: int,
        take: Callable[[Chunk], None],
    ) -> None:  # fmt: skip
        self.job, self.workers, self._take = job, workers, take
        self._left = list(reversed(left))
        self._size = 1
        self._deaths: dict[int, int] = {}
        self._started: dict[int, float] = {}

    def next(self) -> tuple[int, int] | None:
        """The blocks of the next chunk, as a pair; None if none are left."""
        if not self._left:
            return None
        first, last = self._left.pop()
        end = min(last, first + self._size)
        if end < last:
            self._left.append((end, last))
        self._started[first] = time.monotonic()
        return first, end

    def done(self, chunk: Chunk) -> None:
        """Take a finished chunk, and adapt the size of the next ones to its time and bytes."""
        self._take(chunk)
        count = chunk.last - chunk.first
        seconds_each = max((time.monotonic() - self._started.pop(chunk.first)) / count, 1e-9)
        left = sum(last - first for first, last in self._left)
        even = max(left / (2 * self.workers), _LEAST / seconds_each)
        by_bytes = _BYTES * count / max(len(chunk.data), 1)
        self._size = max(1, int(min(_SECONDS / seconds_each, by_bytes, _GROWTH * count, even)))

    def retry(self, first: int, last: int, why: str, *, guilty: bool = True) -> None:
        """Schedule blocks whose process died again, in halves, to find the block at fault.

        Raises SweepStopped if a single block has killed two processes. `guilty` is false if the
        process died before it started the blocks.
        """
        self._started.pop(first, None)
        middle = (first + last) // 2
        if not guilty:
            self._left.append((first, last))
            return
        if first < middle:
            self._left += [(middle, last), (first, middle)]
            return
        self._deaths[first] = self._deaths.get(first, 0) + 1
        if self._deaths[first] >= _DEATHS:
            points = self.job.blocks.axes(first)
            where = ", ".join(f"{path} = {_span(values)}" for path, values in points.items())
            raise SweepStopped(
                f"a process died {_DEATHS} times at {where} ({why}), perhaps from lack of memory: "
                "use fewer workers, or leave this out of the grid"
            )
        self._left.append((first, last))


def _span(values: tuple) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} ... {values[-1]}"
