"""The schedule of a sweep: blocks left, sizes of chunks, and progress."""

import time
from collections.abc import Callable, Sequence

from fluidcc.errors import SweepStopped
from fluidcc.sweep.job import Chunk, Job

_SECONDS = 10.0  # of work in a chunk: what an interruption costs at most
_BYTES = 64_000_000  # of results in a chunk
_GROWTH = 8  # of chunks, as the first ones compile
_LEAST = 1.0  # seconds of work, below which a chunk is not worth its file
_DEATHS = 2  # of processes over the same block that stop the sweep


class Progress(float):
    """The finished share, with the counts behind it.

    Parameters
    ----------
    done, failed, total
        Points: finished, finished without a sound result, and all.
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
    """Makes `Progress` of counts: the time left follows from what was done since it was made."""

    def __init__(self, total: int, done: int = 0, failed: int = 0) -> None:
        self.total, self.done, self.failed = total, done, failed
        self._before, self._begin = done, time.monotonic()

    def passed(self, points: int, failed: int) -> Progress:
        """Count finished points."""
        self.done, self.failed = self.done + points, self.failed + failed
        count = self.done - self._before
        rate = (time.monotonic() - self._begin) / count if count else None
        left = None if rate is None else rate * (self.total - self.done)
        return Progress(self.done, self.failed, self.total, left)


class Plan:
    """Hands out chunks of the blocks that are left, and takes finished ones.

    Chunks grow until one takes some seconds or its results are large, and get smaller at the end,
    so that all workers end together.

    Parameters
    ----------
    job
        What is computed.
    left
        Blocks to do, as pairs: the first and the one after the last.
    workers
        How many work at a time.
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
        self._begun: dict[int, float] = {}

    def next(self) -> tuple[int, int] | None:
        """The blocks to do next, as a pair; None if none are left."""
        if not self._left:
            return None
        first, last = self._left.pop()
        end = min(last, first + self._size)
        if end < last:
            self._left.append((end, last))
        self._begun[first] = time.monotonic()
        return first, end

    def done(self, chunk: Chunk) -> None:
        """Take a finished chunk, and learn from it how large the next ones should be."""
        self._take(chunk)
        count = chunk.last - chunk.first
        each = max((time.monotonic() - self._begun.pop(chunk.first)) / count, 1e-9)
        left = sum(last - first for first, last in self._left)
        fair = max(left / (2 * self.workers), _LEAST / each)
        heavy = _BYTES * count / max(len(chunk.data), 1)
        self._size = max(1, int(min(_SECONDS / each, heavy, _GROWTH * count, fair)))

    def lost(self, first: int, last: int, why: str, *, guilty: bool = True) -> None:
        """Blocks whose process died: they are done again, in halves, to find the one at fault.

        Raises SweepStopped if one block did this before. `guilty` is false if the process died
        before it began.
        """
        self._begun.pop(first, None)
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
            place = ", ".join(f"{path} = {_span(values)}" for path, values in points.items())
            raise SweepStopped(
                f"a process died {_DEATHS} times at {place} ({why}), perhaps for want of memory: "
                "use fewer workers, or leave this out of the grid"
            )
        self._left.append((first, last))


def _span(values: tuple) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} ... {values[-1]}"
