"""A first orbit from a run: its segments, their modes and what ends them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from fluidcc.analysis.cycles import polynomials as poly
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.newton import LostError
from fluidcc.analysis.cycles.orbit import GUARD, LAG, Event, Orbit, nodes_of
from fluidcc.analysis.cycles.polynomials import POINTS, Array
from fluidcc.analysis.cycles.settled import Return, Run

_LAST = 3  # derivative of what travels whose jumps still matter
_MOST_ENDS = 90
_SAME = 1e-6  # of the period: ends as near as this are one
_NEAR = 1e-3  # of the period: how well a period's events come again
_JUMP = 1e-5  # of the size of what travels


class _Switch(NamedTuple):
    """A change of mode or of the side of a kink: when, which condition, and whether what travels
    jumps there (0) or its slope (1).
    """

    time: float
    condition: int
    order: int


@dataclasses.dataclass(frozen=True)
class _End:
    """The end of a segment, from the start of the orbit on."""

    time: float
    order: int
    event: Event
    parent: int | None = None  # among all ends found


def _read(model: Model, run: Run, time: Array, y: Array) -> Array:
    """Numbers (Q, P) that are read at times (Q,)."""
    lags, _ = model.lags(y)
    late = time[:, None] - lags[:, model.lag_of]
    record = run.record(late.ravel()).reshape(*late.shape, -1)
    columns = np.array(model.system.column_of, int)
    return np.take_along_axis(record, columns[None, :, None], axis=2)[..., 0]


def _regimes(model: Model, run: Run, time: Array) -> tuple[Array, Array]:
    """Modes (Q, k) and sides of the kinks (Q, j) at times."""
    y = run.states(time)
    z = _read(model, run, time, y)
    modes = model.modes(y, z)
    kinks = np.zeros((len(time), 0))
    if model.system.kinks is not None:
        conditions = model.conditions(y, z, modes)[0]
        number = model.kinks(y[0], z[0])
        kinks = np.sign(conditions[:, conditions.shape[1] - number :])
    return modes, kinks


def _switches(model: Model, run: Run, low: float, high: float) -> list[_Switch]:
    """What switches between two times, in order."""
    if not model.guards:
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
        values = model.conditions(y, _read(model, run, near, y), mode)[0]
        first_kink = values.shape[1] - kinks.shape[1]
        size = np.max(np.abs(values), axis=0)
        known = np.isfinite(size) & (size > 0)
        left = np.where(known, np.abs(values[-1]), np.inf) / np.where(known, size, 1.0)
        candidates = (
            np.arange(first_kink) if np.any(moved) else first_kink + np.flatnonzero(crossed)
        )
        best = candidates[np.argmin(left[candidates])]
        found.append(_Switch(float(edges[k]), int(best), _order(model, run, float(edges[k]), high)))
    return found


def _order(model: Model, run: Run, time: float, span: float) -> int:
    """0 where what travels jumps at a time, 1 where its slope does."""
    if model.direct:
        return 1
    aside = 1e-7 * max(span, 1.0)
    before, after = run.record(np.array([time - aside, time + aside]))
    return 0 if np.any(np.abs(after - before) > _JUMP * (1.0 + np.abs(before))) else 1


def _distinct_lags(model: Model, run: Run, time: Array) -> list[int]:
    """One index for each different lag."""
    lags = model.lags(run.states(time))[0]
    kept: list[int] = []
    for j in range(lags.shape[1]):
        if all(np.max(np.abs(lags[:, j] - lags[:, i])) > 1e-12 for i in kept):
            kept.append(j)
    return kept


def begun(model: Model, run: Run, end: Return, count: int) -> Orbit:
    """A first orbit of about `count` intervals from the last period of a run.

    Raises LostError where the events of the last two periods differ.
    """
    assert end.period is not None
    period, low = end.period, max(end.end - 2.0 * end.period, 0.0)
    switches = _switches(model, run, low, end.end)
    if not switches:
        return _orbit(model, run, end.end - period, np.array([period]), (), count)
    first = switches[0]
    again = [s for s in switches if s.condition == first.condition]
    gaps = [abs(s.time - first.time - period) for s in again]
    if min(gaps) > _NEAR * period:
        raise LostError("the last periods of the simulation switch differently")
    last = again[int(np.argmin(gaps))]
    own = [s for s in switches if first.time < s.time <= last.time]
    length = last.time - first.time
    ends = [_End(s.time - first.time, s.order, Event(GUARD, s.condition)) for s in own]
    ends = _with_descendants(model, run, first.time, length, ends)
    times = np.array([e.time for e in ends])
    return _orbit(model, run, first.time, times, tuple(e.event for e in ends), count)


def _with_descendants(
    model: Model, run: Run, origin: float, period: float, ends: list[_End]
) -> list[_End]:
    """The ends with those where a lag reaches an earlier end, in order."""
    distinct = _distinct_lags(model, run, origin + np.linspace(0.0, period, 7)[1:])

    def passing(time: float, lag: int) -> float:
        """When a lag reaches a time."""

        def distance(t: float) -> float:
            y = run.states(np.array([origin + (t % period)]))
            return t - float(model.lags(y)[0][0, lag]) - time

        reach = float(np.max(model.lags(run.states(origin + np.linspace(0, period, 33)))[0]))
        found: Any = scipy.optimize.brentq(distance, time, time + 1.01 * reach + 1e-12, xtol=1e-13)
        return float(found)

    whole, generation = list(ends), list(range(len(ends)))
    while generation:
        following = []
        for k in generation:
            parent = whole[k]
            for lag in distinct:
                if parent.order + 1 > _LAST:
                    continue
                absolute = passing(parent.time, lag)
                wrap = int(np.floor(absolute / period - _SAME))
                child = _End(
                    absolute - wrap * period, parent.order + 1, Event(LAG, lag, wrap=wrap), k
                )
                whole.append(child)
                following.append(len(whole) - 1)
        generation = following
        if len(whole) > 4 * _MOST_ENDS:
            break
    return _merged(whole, period)


def _merged(whole: list[_End], period: float) -> list[_End]:
    """All ends in order; of those at one time the one of the lowest order stays."""
    most = _LAST
    kept: list[int] = []
    while True:
        order = sorted(
            (k for k, e in enumerate(whole) if e.order <= most), key=lambda k: whole[k].time
        )
        kept, stands = [], {}
        for k in order:
            near = kept and whole[k].time - whole[kept[-1]].time < _SAME * period
            if near and (whole[kept[-1]].parent is None or whole[kept[-1]].order <= whole[k].order):
                stands[k] = kept[-1]
            elif near:
                stands[kept[-1]] = k
                kept[-1] = k
            else:
                kept.append(k)
        if len(kept) <= _MOST_ENDS or most <= 1:
            break
        most -= 1

    def standing(k: int) -> int:
        while k in stands:
            k = stands[k]
        return k

    number = {k: i for i, k in enumerate(kept)}
    out = []
    for k in kept:
        end = whole[k]
        if end.parent is not None:
            target = number[standing(end.parent)]
            end = dataclasses.replace(end, event=end.event._replace(target=target))
        out.append(end)
    return out


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
    modes = _regimes(model, run, middle)[0] if model.guards else np.zeros((segments, 0), np.int32)
    interval, theta = nodes_of(bare)
    time = origin + bare.time(interval, theta)
    record, states = run(time)
    start = run.states(origin + bare.times + 1e-12 * period)
    shape = (len(segment), POINTS, -1)
    orbit = dataclasses.replace(
        bare, start=start, rise=poly.fitted(start, states.reshape(shape)), modes=modes,
        wire=(record[:, list(model.columns)] if model.wires else record[:, :0]).reshape(
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
