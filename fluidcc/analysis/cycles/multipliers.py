"""Floquet multipliers: by collocation, and by located runs from perturbed states.

One period maps perturbations of an orbit and of its past linearly (the monodromy operator). In
collocation the map follows from the equations of the orbit. For a run that repeats, runs go on for
some periods from its end with the state perturbed up and down: half their difference is the image
of the perturbation, period after period, and its slowest decaying parts give the leading
multipliers. Perturbations start at breaking points of order 0, and events move with them, so that
differences are as accurate as the run, across jumps of a signal, recorded queue waits and ticks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from fluidcc.analysis.cycles.collocation import Equations
from fluidcc.analysis.cycles.orbit import Array, Orbit
from fluidcc.analysis.cycles.settled import Run, describe, last_return
from fluidcc.arrays import jnp, lax
from fluidcc.dde import located
from fluidcc.dde import track as tr
from fluidcc.dde.integrate import Status, power_of_two
from fluidcc.dde.machine import moved
from fluidcc.dde.system import Args, System
from fluidcc.dde.trial import Carry
from fluidcc.executables import compile_once

_DENSE = 800  # largest number of history unknowns for which all multipliers are computed
_WANTED = 12
_KEPT = 1e-6  # smaller multipliers are rounding: the perturbation is forgotten
PERIODS = 6
"""Number of periods for which perturbations are followed."""
_SAMPLES = 32  # over the longest lag: times at which runs are compared
_MOVE = 1e-5  # of the range of a component
_RESTING = 1e-3  # of its size: least range of a component, if it is constant
_TINY = 1e-12  # smaller components are ignored
_AGREE = 0.01  # relative: how near the periods of two simulations of one cycle are
_NEAR = 1e-3  # how near to itself a run comes back, and the trivial multiplier to 1
_NOISE = 10.0  # times the error of repetition: smaller parts of perturbations are noise
_ROUNDING = 1e-8  # of the range: least error of repetition
_CORNER = 0.02  # of the perturbations: largest even part; beyond it there is no derivative
_MOST_STEPS = 4e5  # of all runs
_BREAKS = 4.0  # steps per step of the mesh at most, about: events end steps
_LEAST_ROOM = 8  # steps
_FINE = 8001  # points of a period at which extremes are sought
_PHASES = 512  # times at which the period is fitted


def multipliers(orbit: Orbit, found: Equations) -> Array:
    """Floquet multipliers, largest first; those at rounding level are left out.

    Perturbations of this period depend linearly on those of earlier ones that lags still read: the
    eigenvalues of that map. In an orbit with events the ends of its segments are perturbed too.
    """
    size = len(found.residual) - (0 if orbit.events else len(orbit.ends))
    parts = [part[:size, :size] for part in found.parts]
    lu = scipy.sparse.linalg.splu(parts[0].tocsc())
    earlier = parts[1:]
    read = np.unique(np.concatenate([np.unique(part.nonzero()[1]) for part in earlier]))
    if len(read) * len(earlier) > _DENSE:
        every = _leading(lu, earlier, read)
    else:
        maps = [-lu.solve(part[:, read].toarray())[read] for part in earlier]
        count = len(read)
        whole = np.eye(count * len(maps), k=-count)
        whole[:count] = np.hstack(maps)
        every = np.asarray(scipy.linalg.eigvals(whole))
    every = every[np.abs(every) > _KEPT]
    return every[np.argsort(-np.abs(every))]


def _leading(lu: Any, earlier: list[Any], read: Array) -> Array:
    """The largest multipliers by Arnoldi's method, for many unknowns."""
    count, parts = len(read), [part[:, read] for part in earlier]

    def period(past: Array) -> Array:
        pieces = past.reshape(len(parts), count)
        late: Any = sum(part @ piece for part, piece in zip(parts, pieces, strict=True))
        now = -lu.solve(late)
        return np.concatenate([now[read], past[:-count]])

    size = count * len(parts)
    kind: Any = scipy.sparse.linalg.LinearOperator
    operator = kind((size, size), matvec=period, dtype=float)
    start = np.cos(np.arange(size))  # any vector, the same each time
    found: Any = scipy.sparse.linalg.eigs(
        operator, _WANTED, v0=start, ncv=4 * _WANTED, return_eigenvectors=False
    )
    return np.asarray(found)


def of_sequences(found: Array, noise: float) -> tuple[Array, Array]:
    """Leading eigenvalues (K,) of a linear map, largest first, and the residuals (K,) of their unit
    vectors, from the images of D vectors under J steps of the map, (D, J, S).

    Rayleigh-Ritz method on the Krylov space of all vectors but the last ones, in the
    part of it whose singular values are above `noise` times the largest.
    """
    count = found.shape[-1]
    before, after = (part.reshape(-1, count).T for part in (found[:, :-1], found[:, 1:]))
    basis, sizes, rest = np.linalg.svd(before, full_matrices=False)
    rank = int(np.sum(sizes > noise * sizes[0]))
    basis, mapped = basis[:, :rank], after @ rest[:rank].T / sizes[:rank]
    values, vectors = np.linalg.eig(basis.T @ mapped)
    residuals = np.linalg.norm(mapped @ vectors - basis @ vectors * values, axis=0)
    order = np.argsort(-np.abs(values))
    return values[order], residuals[order]


class NoMultipliersError(ValueError):
    """A cycle without multipliers; the message has the reason."""


class Moves(NamedTuple):
    """Perturbations of a state: mask (n,) of the components that are times of ticks, and the
    directions (D, n), of zeros and ones.
    """

    clock: Array
    along: Array


class Multipliers(NamedTuple):
    """Leading multipliers, the trivial one first; those below a thousandth are left out. Whether
    all others are inside the unit circle, None if some are not resolved. The method, or the reason
    why there are none. `period` [s] and `states` (Q, n) of one period are those of the located run.
    """

    floquet: tuple[complex, ...]
    stable: bool | None
    note: str
    period: float
    states: Array


def multipliers_of_run(
    system: System, y0: Any, args: Args, moves: Moves, *, period: float, until: float, step: float
) -> Multipliers:
    """The leading multipliers of the cycle that a run from `y0` settles in until a time [s].

    `period` is that of another simulation and `step` that of the located mesh [s]. Raises
    NoMultipliersError if the run fails or does not repeat exactly, as a cycle that is no multiple
    of the period of ticks. A run that repeats has no multipliers if perturbations up and down
    differ in size, or if none of the eigenvalues is 1.
    """
    ahead = (PERIODS + 1) * period
    count = until + (2 * len(moves.along) + 1) * ahead
    if count / step > _MOST_STEPS:
        raise NoMultipliersError(f"they would take more than {_MOST_STEPS:.0e} steps")
    capacity = power_of_two(_BREAKS * (until + ahead) / step + 1000.0)
    begun = _enlarge(_start_run(system, y0, jnp.zeros(()), step, args), capacity)

    def follow(carry: Carry, until: float, move: Array | None = None) -> tuple[Carry, Run, Array]:
        """Integrate from a perturbed state: the carry at `until`, the run, and its last lags."""
        by = np.zeros(len(y0)) if move is None else move
        found, lags = _follow(system, carry, jnp.zeros(()), until, step, args, by)
        status = Status(int(found.status))
        if status is not Status.ok:
            raise NoMultipliersError(
                f"a located run ends at {float(found.status_time):.4g} s: {describe(status)}"
            )
        rows = np.asarray(found.track.steps)[: int(found.node)]
        return found, Run(rows, tr.width(found.track), len(y0), until, np.zeros(0)), lags

    carry, run, lags = follow(begun, until)
    settled = _with_clocks(run, moves.clock, lambda values, _: 0.0 * values)
    end = last_return(settled, step / 3)
    if end.period is None or abs(end.period - period) > _AGREE * period:
        raise NoMultipliersError("a located run does not repeat with the same period")
    late = run.states(np.linspace(0.5 * until, until, _PHASES * 16))
    scale = np.maximum(np.ptp(late, axis=0), _RESTING * np.abs(late).max(axis=0))
    lag = float(np.max(lags))
    scale[moves.clock] = lag
    last = until + PERIODS * end.period * (1.0 + 1e-6) + step

    def path(move: Array) -> Run:
        """The run from there, with the time left to each tick in place of its time."""
        run = follow(carry, last, move)[1]
        return _with_clocks(run, moves.clock, lambda values, time: values - time[:, None])

    still = path(np.zeros(len(y0)))
    exact = _period(still, scale, until, end.period, step)
    phases = lag * (np.arange(_SAMPLES) + 0.5) / _SAMPLES
    times = until + exact * np.arange(1, PERIODS + 1)[:, None] - phases
    kept = scale > _TINY

    def seen(run: Run) -> Array:
        return (run.states(times.ravel()) / np.where(kept, scale, 1.0)).reshape(*times.shape, -1)

    before = seen(still)
    apart = returned(before, moves.clock)

    one = settled.states(np.linspace(until - exact, until, _FINE))
    odd, even = [], []
    try:
        for direction in moves.along:
            move = _MOVE * np.where(kept, scale * direction, 0.0)
            if np.any(move):
                up, down = seen(path(move)), seen(path(-move))
                odd.append((up - down) / (2 * _MOVE))
                even.append((up + down - 2 * before) / (2 * _MOVE))
        if not odd:
            raise NoMultipliersError("no state can be perturbed")
        found = np.array(odd).reshape(len(odd), PERIODS, -1)
        if np.max(np.abs(even)) > _CORNER * np.max(np.abs(found)):
            raise NoMultipliersError(
                "perturbations up and down differ in effect: there is no derivative"
            )
        floquet, error, stable = _judge(*of_sequences(found, _NOISE * max(apart, _ROUNDING)))
    except NoMultipliersError as why:
        return Multipliers((), None, f"no multipliers: {why}", exact, one)
    note = f"multipliers from perturbed states, the trivial one is 1 to {error:.1g}"
    return Multipliers(floquet, stable, note, exact, one)


def _judge(found: Array, residuals: Array) -> tuple[tuple[complex, ...], float, bool | None]:
    """Multipliers, error of the trivial one, and stability; NoMultipliersError if none is 1."""
    known, rough = found[residuals < _NEAR], residuals >= _NEAR
    if not len(known):
        raise NoMultipliersError("no eigenvalue is resolved")
    trivial = int(np.argmin(np.abs(known - 1.0)))
    error = float(np.abs(known[trivial] - 1.0))
    if error > _NEAR:
        nearest = known[trivial].real
        raise NoMultipliersError(f"the trivial multiplier is {nearest:.4g} instead of 1")
    others = np.delete(known, trivial)
    sizes, unsure = np.abs(others), 2 * error  # a double one at 1 is split to both sides of it
    stable: bool | None = bool(np.all(sizes < 1.0))
    near = np.any(np.abs(sizes - 1.0) <= unsure) and not np.any(sizes > 1.0 + unsure)
    if near or (stable and np.any(np.abs(found[rough]) + residuals[rough] >= 1.0)):
        stable = None
    kept = (known[trivial], *others[np.abs(others) > _NEAR])
    return tuple(complex(mu) for mu in kept), error, stable


def returned(seen: Array, clock: Array) -> float:
    """Error of repetition of a run (PERIODS, S, n); raises NoMultipliersError if it is large."""
    apart = np.abs(np.diff(seen, axis=0)).max(axis=(0, 1))
    if np.any(apart[clock] > _NEAR):
        raise NoMultipliersError(
            "ticks shift in phase from period to period: the cycle does not repeat exactly"
        )
    if np.any(apart > _NEAR):
        raise NoMultipliersError(f"a located run repeats only to {np.max(apart):.1g} of the range")
    return float(np.max(apart))


@compile_once(static_argnames="system")
def _start_run(system: System, y0: Any, t0: Any, step: Any, args: Args) -> Carry:
    """The start of a run from the constant history, with memory for a few steps only."""
    return located.Machine(system, t0, t0 + step, step, args).start(y0, _LEAST_ROOM, 1)


def _enlarge(carry: Carry, capacity: int) -> Carry:
    """The same with memory for so many steps, so that the capacity is no compiled constant."""

    def longer(array: Any) -> Any:
        last = np.asarray(array)[-1:]  # a row that is not used yet
        return jnp.asarray(np.concatenate([array, np.repeat(last, capacity - len(array), axis=0)]))

    track = carry.track._replace(steps=longer(carry.track.steps), breaks=longer(carry.track.breaks))
    return carry._replace(track=track, events=longer(carry.events))


@compile_once(static_argnames="system")
def _follow(
    system: System, carry: Carry, t0: Any, until: Any, step: Any, args: Args, move: Any
) -> tuple[Carry, Any]:
    """The carry at `until` of a run continued from a perturbed state, and its lags."""
    machine = located.Machine(system, t0, until, step, args)
    start = moved(machine, carry, move)
    end = lax.while_loop(lambda c: ~c.done & (c.status == Status.ok), machine.advance, start)
    return end, machine.delayed(end, end.t, end.y)[1]


def _period(run: Run, scale: Array, start: float, period: float, step: float) -> float:
    """The period [s] with the least error of repetition, by Gauss-Newton from an approximation.

    Samples at jumps are left out.
    """
    size = np.where(scale > _TINY, scale, np.inf)
    times = start + step + (PERIODS - 1) * period * (np.arange(_PHASES) + 0.5) / _PHASES
    for _ in range(3):
        gap = (run.states(times + period) - run.states(times)) / size
        slope = run.states(times + period + 1e-3 * step) - run.states(times + period - 1e-3 * step)
        slope = slope / (2e-3 * step) / size
        smooth = np.abs(slope) * step < 1.0
        period -= float(np.sum((gap * slope)[smooth]) / np.sum(slope[smooth] ** 2))
    return period


def _with_clocks(run: Run, clock: Array, change: Any) -> Run:
    """The run with other values of the ticks' times, which are constant in each step."""
    if not np.any(clock):
        return run
    rows, v = run.rows.copy(), run.width
    place = v - run.size + np.flatnonzero(clock)
    start, length = rows[:, 0], rows[:, 1]
    for k, time in ((0, start), (2, start + length)):
        columns = 2 + k * v + place
        rows[:, columns] = change(rows[:, columns], time)
    rise = rows[:, 2 + 2 * v + place] - rows[:, 2 + place]
    for k in (1, 3):
        rows[:, 2 + k * v + place] = rise
    return Run(rows, v, run.size, run.end, run.breaks)
