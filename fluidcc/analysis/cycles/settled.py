"""The settled end of a simulation: whether it repeats, and what it does in a period."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.polynomials import Array
from fluidcc.analysis.oscillation import rises
from fluidcc.dde.integrate import integrate
from fluidcc.dde.located import Located
from fluidcc.dde.status import Status

_ROOM = (1 << 16) - 4  # steps: one length, so that few shapes are compiled
_MOST_STEPS = 5e4  # that events are not counted in
_STEPS_PER_LAG = 8
_STEP_OF_RATE = 0.25  # of the shortest time in which an equation changes
_SAMPLES = 3  # per step, of the search for periods
_TURNS = 6  # most turns after which a cycle may repeat
_AGREE = 0.02  # of the range: how near a state comes back once a run may have settled
_STILL = 1e-6  # of the size: what moves less rests
_OF_NETWORKS = {
    Status.event_limit: "a law slides along a jump of its signal, with event after event, as RED "
    "does at max_th where it is not gentle",
    Status.lag_below_step: "a delay does not settle within a step",
    Status.nonmonotone_argument: "a queue grows so fast that delays by the present queue turn time "
    "back (those of model.delay = 'fifo' do not)",
}


def told_status(status: Status) -> str:
    """Why a located run of a network ends."""
    return _OF_NETWORKS.get(status, status.advice)


class RunError(ValueError):
    """A simulation that ends early; the message says why."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A simulation that can be read at any time up to `end`; `breaks` are its breaking points."""

    rows: Array
    width: int
    size: int
    end: float
    breaks: Array

    def __call__(self, time: Array) -> tuple[Array, Array]:
        """Record (Q, U), or what is read in its place, and states (Q, n)."""
        time = np.asarray(time, float)
        index = np.clip(np.searchsorted(self.rows[:, 0], time, "right") - 1, 0, len(self.rows) - 1)
        row, v = self.rows[index], self.width
        x = np.clip((time - row[:, 0]) / row[:, 1], 0.0, 1.0)[:, None]
        older, rise, newer, fall = (row[:, 2 + k * v : 2 + (k + 1) * v] for k in range(4))
        h = x * x * (3.0 - 2.0 * x)
        values = (1 - h) * older + h * newer + x * (1 - x) * ((1 - x) * rise - x * fall)
        return values[:, : v - self.size] if v > self.size else values, values[:, v - self.size :]

    def states(self, time: Array) -> Array:
        """States (Q, n)."""
        return self(time)[1]

    def record(self, time: Array) -> Array:
        """Record (Q, U); the states where there is no other."""
        return self(time)[0]


def step_for(model: Model, y0: Any) -> float:
    """A step well below the longest lag, and below the shortest one unless that is very short.

    An equation may also be faster than its lags; networks are not.
    """
    y = np.asarray(y0, float)[None]
    lags = model.lags(y)[0]
    longest = float(np.max(lags))
    step = max(min(longest / _STEPS_PER_LAG, 0.9 * float(np.min(lags))), longest / 100.0)
    if model.direct:
        slopes = model.present(y, y[:, model.place_of], np.zeros((1, 0), np.int32))[1][0]
        rate = float(np.max(np.abs(np.linalg.eigvals(slopes))))
        step = min(step, _STEP_OF_RATE / max(rate, 1e-300))
    return step


def simulated(model: Model, y0: Any, until: float) -> Run:
    """A run from a constant history; raises RunError where it ends early."""
    mesh = Located(step_for(model, y0), max_steps=_ROOM)
    path = integrate(model.system, y0, 0.0, until, model.args, mesh=mesh)
    status = Status(int(path.status))
    if status is not Status.ok:
        why = status.advice if model.direct else told_status(status)
        raise RunError(f"the located simulation ends at {float(path.status_time):.4g} s: {why}")
    assert path.evaluate is not None
    track = path.evaluate.args[0].track  # pyright: ignore[reportFunctionMemberAccess]
    rows = np.asarray(track.steps)[: int(path.steps)]
    breaks = np.asarray(path.breaking_points)
    return Run(rows, rows.shape[1] // 4, len(np.asarray(y0)), until, breaks[np.isfinite(breaks)])


class Return(NamedTuple):
    """How a run ends: the last period [s] (None: it rests or does not repeat) up to `end`, how
    far apart its ends are and how many turns it has; whether the run rests; the range of the late
    periods, relative to the last.
    """

    period: float | None
    end: float
    apart: float
    turns: int
    rests: bool
    spread: float = np.inf


def last_return(run: Run, step: float) -> Return:
    """The end of a run: the last time that its state came back."""
    time = np.arange(0.0, run.end, step)
    late = time >= 0.5 * run.end
    states = run.states(time)
    low, high = states[late].min(0), states[late].max(0)
    ranges, size = high - low, np.maximum(np.abs(low), np.abs(high)) + 1e-12
    if np.all(ranges <= _STILL * size):
        return Return(None, run.end, 0.0, 0, rests=True)
    lead = int(np.argmax(ranges / size))
    starts = np.array(rises(time, states[:, lead], low[lead], high[lead]))
    if len(starts) < 3 or starts[-1] < 0.5 * run.end:
        return Return(None, run.end, np.inf, 0, rests=False)
    at_starts = run.states(starts)
    best = Return(None, run.end, np.inf, 0, rests=False)
    for turns in range(1, min(_TURNS, len(starts) - 1) + 1):
        apart = float(
            np.max(np.abs(at_starts[-1] - at_starts[-1 - turns]) / (ranges + 1e-6 * size))
        )
        if apart < 0.2 * best.apart and best.apart > _AGREE:
            periods = (starts[turns:] - starts[:-turns])[starts[turns:] >= 0.5 * run.end]
            last = float(periods[-1])
            spread = float(np.ptp(periods)) / last if len(periods) > 1 else np.inf
            best = Return(last, float(starts[-1]), apart, turns, rests=False, spread=spread)
    return best


def settling(
    model: Model, y0: Any, *, shortest: float, longest: float
) -> Iterator[tuple[Run, Return]]:
    """Longer and longer runs, between the given lengths [s], that rest or seem to repeat.

    The last one is given in any case.
    """
    until, step = shortest, step_for(model, y0)
    longest = min(longest, _MOST_STEPS * step)
    while True:
        run = simulated(model, y0, until)
        end = last_return(run, step / _SAMPLES)
        last = end.rests or 4 * until > longest or 4 * len(run.rows) > _ROOM
        if last or end.apart < _AGREE:
            yield run, end
        if last:
            return
        until *= 4
