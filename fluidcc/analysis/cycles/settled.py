"""The settled end of a located run: whether it repeats, and a first orbit from its last period."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from fluidcc.analysis.cycles.collocation import OrbitLostError
from fluidcc.analysis.cycles.orbit import (
    GUARD,
    LAG,
    POINTS,
    Array,
    Event,
    Model,
    Orbit,
    fit,
    nodes_of,
)
from fluidcc.analysis.oscillation import rises
from fluidcc.dde.integrate import Status, integrate
from fluidcc.dde.located import Located
from fluidcc.progress import report

_ROOM = (1 << 16) - 4  # steps in memory: one length, so that few shapes are compiled
_MOST_STEPS = 5e4  # without those at events
_STEPS_PER_LAG = 8
_STEP_OF_RATE = 0.25  # of the shortest time in which an equation changes
_SAMPLES = 3  # per step, of the search for periods
_TURNS = 6  # largest number of rises per period
_AGREE = 0.02  # of the range: how near a state comes back once a run may have settled
_STILL = 1e-6  # of the size: smaller ranges are an equilibrium
_OF_NETWORKS = {
    Status.event_limit: "a law stays on a discontinuity of its signal, with event after event, as "
    "RED does at max_th if it is not gentle",
    Status.lag_below_step: "a delay does not settle within a step",
    Status.nonmonotone_argument: "a queue grows so fast that delays by the present queue turn time "
    "back (those of model.delay = 'fifo' do not)",
}
_LAST = 3  # highest derivative of the outputs whose jumps still matter
_MOST_ENDS = 90
_SAME = 1e-6  # of the period: nearer ends are merged
_NEAR = 1e-3  # of the period: tolerance for repeated events
_JUMP = 1e-5  # of the size of the outputs


def describe(status: Status) -> str:
    """Message on why a located run of a network ends."""
    return _OF_NETWORKS.get(status, status.advice)


@dataclasses.dataclass(frozen=True)
class Run:
    """A simulation that can be read at any time up to `end`; `breaks` are its breaking points."""

    rows: Array
    width: int
    size: int
    end: float
    breaks: Array

    def __call__(self, time: Array) -> tuple[Array, Array]:
        """Record (Q, U), or the states if there is no record, and states (Q, n)."""
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
        """Record (Q, U); the states if there is no record."""
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


def simulate(model: Model, y0: Any, until: float) -> Run:
    """A run from a constant history; raises OrbitLostError if it ends early."""
    mesh = Located(step_for(model, y0), max_steps=_ROOM)
    path = integrate(model.system, y0, 0.0, until, model.args, mesh=mesh)
    status = Status(int(path.status))
    if status is not Status.ok:
        why = status.advice if model.direct else describe(status)
        raise OrbitLostError(
            f"the located simulation ends at {float(path.status_time):.4g} s: {why}"
        )
    assert path.evaluate is not None
    track = path.evaluate.args[0].track  # pyright: ignore[reportFunctionMemberAccess]
    rows = np.asarray(track.steps)[: int(path.steps)]
    breaks = np.asarray(path.breaking_points)
    return Run(rows, rows.shape[1] // 4, len(np.asarray(y0)), until, breaks[np.isfinite(breaks)])


class Return(NamedTuple):
    """End of a run: the last period [s] (None: the run settles or does not repeat) up to `end`,
    the distance of its two ends and its number of rises; `rests`: the run reaches an equilibrium.
    """

    period: float | None
    end: float
    apart: float
    turns: int
    rests: bool


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
    best = Return(None, run.end, np.inf, 0, rests=False)
    if len(starts) < 3 or starts[-1] < 0.5 * run.end:
        return best
    at_starts = run.states(starts)
    for turns in range(1, min(_TURNS, len(starts) - 1) + 1):
        apart = float(
            np.max(np.abs(at_starts[-1] - at_starts[-1 - turns]) / (ranges + 1e-6 * size))
        )
        if apart < 0.2 * best.apart and best.apart > _AGREE:
            best = Return(
                float(starts[-1] - starts[-1 - turns]), float(starts[-1]), apart, turns, rests=False
            )
    return best


def settling(
    model: Model, y0: Any, *, shortest: float, longest: float
) -> Iterator[tuple[Run, Return]]:
    """Longer and longer runs, between the given lengths [s], that settle or seem to repeat.

    The last one is yielded in any case.
    """
    until, step = shortest, step_for(model, y0)
    longest = min(longest, _MOST_STEPS * step)
    while True:
        run = simulate(model, y0, until)
        report(0.5 * until / longest)
        end = last_return(run, step / _SAMPLES)
        last = end.rests or 4 * until > longest or 4 * len(run.rows) > _ROOM
        if last or end.apart < _AGREE:
            yield run, end
        if last:
            return
        until *= 4


@dataclasses.dataclass(frozen=True, eq=False)
class _End:
    """The end of a segment: time from the start of the orbit, order of the derivative of the
    outputs that jumps there (0: the outputs themselves), and the event.
    """

    time: float
    order: int
    event: Event
    parent: _End | None = None


def _delayed_values(model: Model, run: Run, time: Array, y: Array) -> Array:
    """Delayed values (Q, P) at times (Q,)."""
    lags, _ = model.lags(y)
    late = time[:, None] - lags[:, model.lag_of]
    record = run.record(late.ravel()).reshape(*late.shape, -1)
    columns = np.array(model.system.column_of, int)
    return np.take_along_axis(record, columns[None, :, None], axis=2)[..., 0]


def _regimes(model: Model, run: Run, time: Array) -> tuple[Array, Array]:
    """Modes (Q, k) and sides of the kinks (Q, j) at times."""
    y = run.states(time)
    z = _delayed_values(model, run, time, y)
    modes = model.modes(y, z)
    return modes, model.sides(y, z, modes)


def _switches(model: Model, run: Run, low: float, high: float) -> list[_End]:
    """Changes of mode or of the side of a kink between two times, in order."""
    if not model.switches:
        return []
    edges = run.breaks[(run.breaks > low) & (run.breaks < high)]
    edges = np.concatenate([[low], edges, [high]])
    edges = edges[np.append(True, np.diff(edges) > 1e-9 * (high - low))]
    middle = 0.5 * (edges[1:] + edges[:-1])
    modes, kinks = _regimes(model, run, middle)
    found = []
    for k in range(1, len(middle)):
        moved, crossed = modes[k] != modes[k - 1], kinks[k] != kinks[k - 1]
        if not (np.any(moved) or np.any(crossed)):
            continue
        near = np.linspace(middle[k - 1], edges[k], 12)
        y = run.states(near)
        mode = np.repeat(modes[k - 1 : k], len(near), axis=0)
        values = model.conditions(y, _delayed_values(model, run, near, y), mode)[0]
        first_kink = values.shape[1] - kinks.shape[1]
        size = np.max(np.abs(values), axis=0)
        known = np.isfinite(size) & (size > 0)
        left = np.where(known, np.abs(values[-1]), np.inf) / np.where(known, size, 1.0)
        candidates = (
            np.arange(first_kink) if np.any(moved) else first_kink + np.flatnonzero(crossed)
        )
        best = candidates[np.argmin(left[candidates])]
        time = float(edges[k])
        found.append(_End(time, _order(model, run, time, high), Event(GUARD, int(best))))
    return found


def _order(model: Model, run: Run, time: float, span: float) -> int:
    """Order of the discontinuity at a time: 0 if outputs jump, 1 if their slope does."""
    if model.direct:
        return 1
    aside = 1e-7 * max(span, 1.0)
    before, after = run.record(np.array([time - aside, time + aside]))
    return 0 if np.any(np.abs(after - before) > _JUMP * (1.0 + np.abs(before))) else 1


def first_orbit(model: Model, run: Run, end: Return, count: int) -> Orbit:
    """A first orbit of about `count` intervals from the last period of a run.

    Raises OrbitLostError if the events of the last two periods differ.
    """
    assert end.period is not None
    period, low = end.period, max(end.end - 2.0 * end.period, 0.0)
    switches = _switches(model, run, low, end.end)
    if not switches:
        return _orbit(model, run, end.end - period, np.array([period]), (), count)
    first = switches[0]
    again = [s for s in switches if s.event == first.event]
    gaps = [abs(s.time - first.time - period) for s in again]
    if min(gaps) > _NEAR * period:
        raise OrbitLostError("the last periods of the simulation switch differently")
    last = again[int(np.argmin(gaps))]
    length = last.time - first.time
    own = [s for s in switches if first.time < s.time <= last.time]
    ends = [dataclasses.replace(s, time=s.time - first.time) for s in own]
    ends = _with_descendants(model, run, first.time, length, ends)
    times = np.array([e.time for e in ends])
    return _orbit(model, run, first.time, times, tuple(e.event for e in ends), count)


def _with_descendants(
    model: Model, run: Run, origin: float, period: float, ends: list[_End]
) -> list[_End]:
    """The ends, and those at which a delayed time passes an earlier end, sorted.

    Of ends at the same time the one of the lowest order stays. Orders that would add too many ends
    are left out.
    """
    time = origin + np.linspace(0.0, period, 33)
    lags = model.lags(run.states(time))[0]
    reach = float(np.max(lags))
    _, distinct = np.unique(np.round(lags, 12), axis=1, return_index=True)

    def passing(time: float, lag: int) -> float:
        """When a delayed argument passes a time."""

        def distance(t: float) -> float:
            y = run.states(np.array([origin + (t % period)]))
            return t - float(model.lags(y)[0][0, lag]) - time

        found: Any = scipy.optimize.brentq(distance, time, time + 1.01 * reach + 1e-12, xtol=1e-13)
        return float(found)

    apart = np.diff([e.time for e in ends], prepend=-np.inf) >= _SAME * period
    kept = [e for e, own in zip(ends, apart, strict=True) if own]
    for order in range(_LAST):
        before = len(kept)
        for k in [k for k in range(before) if kept[k].order == order]:
            for lag in sorted(distinct):
                absolute = passing(kept[k].time, lag)
                wrap = int(np.floor(absolute / period - _SAME))
                at = absolute - wrap * period
                if all(abs(at - e.time) >= _SAME * period for e in kept):
                    event = Event(LAG, int(lag), wrap=wrap)
                    kept.append(_End(at, order + 1, event, kept[k]))
        if len(kept) > _MOST_ENDS and order > 0:
            del kept[before:]
            break
    kept.sort(key=lambda e: e.time)
    return [
        e if e.parent is None
        else dataclasses.replace(e, event=e.event._replace(target=kept.index(e.parent)))
        for e in kept
    ]  # fmt: skip


def _orbit(
    model: Model, run: Run, origin: float, ends: Array, events: tuple[Event, ...], count: int
) -> Orbit:
    """The run from `origin` on as an orbit with given segments."""
    period, segments = float(ends[-1]), len(ends)
    begins = np.concatenate([[0.0], ends[:-1]])
    numbers = np.maximum(1, np.round(count * (ends - begins) / period)).astype(int)
    segment = np.repeat(np.arange(segments), numbers)
    inside = np.concatenate([np.arange(k) for k in numbers])
    width = 1.0 / numbers[segment]
    bare = Orbit(
        segment, inside * width, width, ends, np.zeros((len(segment), 0)),
        np.zeros((len(segment), POINTS, 0)), np.zeros((len(segment), POINTS, 0)),
        np.zeros((segments, 0), int),
    )  # fmt: skip
    middle = origin + 0.5 * (begins + ends)
    modes = _regimes(model, run, middle)[0] if model.switches else np.zeros((segments, 0), np.int32)
    interval, theta = nodes_of(bare)
    time = origin + bare.time(interval, theta)
    record, states = run(time)
    start = run.states(origin + bare.times + 1e-12 * period)
    shape = (len(segment), POINTS, -1)
    orbit = dataclasses.replace(
        bare, start=start, rise=fit(start, states.reshape(shape)), modes=modes,
        outputs=(record[:, list(model.columns)] if model.wires else record[:, :0]).reshape(
            len(segment), POINTS, model.wires
        ), events=events,
    )  # fmt: skip
    return orbit if not events else dataclasses.replace(orbit, reach=_reach(model, orbit))


def _reach(model: Model, orbit: Orbit) -> Array:
    """The segments that each lag reads from each segment, (S, M, 2)."""
    interval, theta = nodes_of(orbit)
    late = orbit.time(interval, theta)[:, None] - model.lags(orbit.states(interval, theta))[0]
    period, segments = orbit.period, len(orbit.ends)
    wrap = np.floor(late / period)
    within = late - wrap * period
    found = np.clip(np.searchsorted(orbit.ends, within, side="right"), 0, segments - 1)
    clear = np.min(np.abs(within[..., None] - np.append(0.0, orbit.ends)), axis=-1) > 1e-5 * period
    number = found + segments * wrap.astype(int)
    reach = np.zeros((segments, late.shape[1], 2), int)
    for k in range(segments):
        own = orbit.segment[interval] == k
        for j in range(late.shape[1]):
            sure = own & clear[:, j]
            seen = number[sure if np.any(sure) else own, j]
            reach[k, j] = np.min(seen), np.max(seen)
    return reach
