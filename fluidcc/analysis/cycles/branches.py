"""Cycles along one parameter, continued from the Hopf points where they are born."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from fluidcc.analysis.crossings import crossings
from fluidcc.analysis.cycles.collocation import (
    OrbitLostError,
    equations,
    interpolate,
    move,
    newton_system,
    parameter_slope,
    remesh,
    solve_linear,
)
from fluidcc.analysis.cycles.orbit import POINTS, Array, Model, Orbit
from fluidcc.analysis.cycles.result import Cycle
from fluidcc.analysis.cycles.verb import CornerError, Subject, check, cycle, result_of, subject_of
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.scan import Scale, ends_of, family, scale_of, unit_of
from fluidcc.progress import counted, part, reporting
from fluidcc.quantities import about, about_parameter, attributes, full_name, labels
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray

_SEARCHED = 0.3  # finished share when the Hopf points are known
_COUNT = 36  # intervals
_BORN = 0.02  # of the states at rest: amplitude of the first cycle
_STEPS = 15
_MET = 1e-9
_DIFFERENCE = 1e-6  # of the range: step for derivatives along the parameter
_MOST = 80  # points of a branch
_LARGEST, _NEAREST, _SMALLEST = 0.2, 2e-3, 1e-4  # of the states and the range: steps
_EASY = 4  # iterations
_PASSES = 8  # outputs at equilibrium depend on each other through few links
_SHIFT = 1e-9
_ITERATIONS = 6


@dataclasses.dataclass(frozen=True)
class CycleBranch:
    """Cycles that are born at one Hopf point, in their order on the branch.

    `hopf` is the parameter there and `frequency` [rad/s] that of its roots; `values` are the
    parameters of the `cycles`, `folds` those at which the branch turns; `message` is why it ends
    inside the range, empty if it reaches an end.
    """

    hopf: float
    frequency: float
    values: tuple[float, ...]
    cycles: tuple[Cycle, ...]
    message: str

    @property
    def points(self) -> list[tuple[float, Cycle]]:
        """Parameters with their cycles."""
        return list(zip(self.values, self.cycles, strict=True))

    @property
    def folds(self) -> tuple[float, ...]:
        """Parameters at which the branch turns back."""
        steps = np.sign(np.diff([self.hopf, *self.values]))
        turns = np.flatnonzero(steps[1:] * steps[:-1] < 0)
        return tuple(self.values[k] for k in turns)


@dataclasses.dataclass(frozen=True, repr=False)
class Cycles(Result):
    """Cycles along one parameter, a branch from every Hopf point in the range.

    `path`, `unit`, `low` and `high` are the parameter and its range; `branches` have the
    cycles, and `message` why one of them ends. `net` is the network or delay equation.

    Examples
    --------
    >>> import fluidcc as fc
    >>> delayed = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.7}, 0.0
    ... )
    >>> found = fc.cycles(delayed, "r", 1.5, 1.6)
    >>> found.path, found.low, found.high
    ('r', 1.5, 1.6)
    """

    _view = "cycles.CyclesView"

    path: str
    unit: str
    low: float
    high: float
    branches: tuple[CycleBranch, ...]
    message: str
    net: Network | DelayEquation

    @property
    def failure(self) -> str:
        """Which branches end inside the range, and why; empty if none does."""
        lost = [(branch.hopf, branch.message) for branch in self.branches if branch.message]
        return "; ".join(f"the branch from {hopf:.6g} ends: {why}" for hopf, why in lost)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        out = []
        for branch in self.branches:
            points = [{"value": value, **found.to_dict()} for value, found in branch.points]
            out.append({
                "hopf": branch.hopf, "frequency": branch.frequency, "folds": branch.folds,
                "points": points, "message": branch.message,
            })  # fmt: skip
        return plain({"branches": out, "message": self.message})

    def to_xarray(self) -> xarray.Dataset:
        """All cycles in a row: branch, parameter, period, leading multiplier, extremes."""
        import xarray as xr

        number = [k for k, branch in enumerate(self.branches) for _ in branch.values]
        found = [c for branch in self.branches for c in branch.cycles]
        values = [value for branch in self.branches for value in branch.values]
        leading = [max((abs(mu) for mu in c.floquet[1:]), default=0.0) for c in found]
        data: dict[str, Any] = {
            "branch": ("point", number, about("branch")),
            "value": ("point", values, about_parameter(self.path, self.unit)),
            "period": ("point", [c.period for c in found], about("period")),
            "leading_multiplier": ("point", leading, about("leading_multiplier")),
            "status": ("point", [c.status for c in found], about("status")),
        }
        for name in found[0].links if found else ():
            for k, end in enumerate(("min", "max")):
                queues = [c.links[name].queue[k] for c in found]
                full = full_name("links", name, f"queue_{end}")
                data[full] = ("point", queues, attributes("links", "queue"))
        for k in range(len(found[0].states) if found else 0):
            data[f"state_{k}"] = (("point", "extreme"), [c.states[k] for c in found], about("y"))
        coords = labels(extreme=["least", "greatest"]) if found and found[0].states else {}
        return xr.Dataset(data, coords, {"path": self.path, "message": self.message})


@reporting
def cycles(
    net: Network | DelayEquation, path: str, low: float | str, high: float | str, *,
    points: int = 12, progress: Callable[[float], object] | None = None,
) -> Cycles:  # fmt: skip
    """Cycles along one parameter, continued from every Hopf point.

    Smooth cycles are followed by pseudo-arclength, through folds and unstable parts. Beyond a first
    corner or bound the stable ones are followed at fixed values of the parameter.

    Parameters
    ----------
    net
        A network or a delay equation; its own value of the parameter does not matter.
    path
        Path of the parameter.
    low, high
        The range; logarithmic if it spans more than one decade.
    points
        Values over the whole range at which non-smooth cycles are searched for.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Cycles
        Its `message`, and those of its branches, describe failures.

    Raises
    ------
    ScenarioError
        For a path that does not exist or has no number, and for ends out of range.

    Examples
    --------
    >>> import fluidcc as fc
    >>> delayed = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.7}, 0.0
    ... )
    >>> found = fc.cycles(delayed, "r", 1.5, 1.6)
    >>> len(found.branches), found.failure
    (1, '')
    """
    ends = ends_of(net, path, low, high, "cycles")
    scale = scale_of(*ends)
    member = family(net, [path], "cycles")
    with part(0.0, _SEARCHED, verb=True):
        found = crossings(net, path, *ends, criticality=False)
    every = [c for c in (*found.crossings, *found.secondary) if not c.jump and c.frequency]
    with part(_SEARCHED, 1.0):
        branches = [
            _follow_branch(member, scale, c.value, float(c.frequency or 0), points)
            for c in counted(every)
        ]
    notes = [] if every else ["no Hopf point in this range, from which cycles could begin"]
    if found.without_equilibrium or not found.certified:
        notes.append("Hopf points may be missing: not all numbers of unstable roots are certified")
    return Cycles(path, unit_of(net, path), *ends, tuple(branches), "; ".join(notes), net)


def _follow_branch(
    member: Any, scale: Scale, hopf: float, frequency: float, points: int
) -> CycleBranch:
    """The branch from one Hopf point."""
    found, message = [], ""
    try:
        for point in _along(member, scale, scale.share(hopf), 2.0 * math.pi / frequency, points):
            found.append(point)
    except OrbitLostError as why:
        message = str(why)
    values, cycles = tuple(v for v, _ in found), tuple(c for _, c in found)
    return CycleBranch(hopf, frequency, values, cycles, message)


def _along(
    member: Any, scale: Scale, share: float, period: float, points: int
) -> Iterator[tuple[float, Cycle]]:
    """Values of the parameter and cycles on the branch from a Hopf point: smooth ones, and beyond
    their last those at fixed values. Raises OrbitLostError if it ends inside the range.
    """

    @functools.lru_cache(maxsize=8)
    def subject_at(share: float) -> Subject:
        return subject_of(member(scale.value(share)))

    shares, last = [], None
    try:
        for at, orbit in _smooth_cycles(subject_at, share, period):
            shares.append(at)
            last = result_of(subject_at(at), orbit, None)
            yield scale.value(at), last
        return
    except CornerError:
        if len(shares) < 2:
            raise
    grid = np.linspace(0.0, 1.0, points)
    before, share = shares[-2:]
    for place in grid[grid > share + 1e-9] if share > before else grid[grid < share - 1e-9][::-1]:
        value = scale.value(float(place))
        last = cycle(member(value), start=last)
        if last.period is None:
            raise OrbitLostError(f"at {value:.6g}: {last.message}")
        yield value, last


SubjectAt = Callable[[float], Subject]
"""Subjects at values of the parameter as shares of its range."""


class _Place(NamedTuple):
    """A cycle on a branch, at a value of the parameter as a share of its range."""

    share: float
    orbit: Orbit


def _smooth_cycles(subject_at: SubjectAt, share: float, period: float) -> Iterator[_Place]:
    """Smooth cycles from a Hopf point to an end of the range, by pseudo-arclength continuation."""
    subject = subject_at(share)
    rest = _resting_orbit(subject.model, subject.equilibrium(), period)
    way = _hopf_direction(subject.model, rest)
    before, guess = _Place(share, rest), _Place(share, move(rest, _BORN * way))
    now, _ = _correct(subject_at, guess, guess.orbit, way / (way @ way), 0.0)
    yield now
    way = _unknowns(now.orbit) - _unknowns(before.orbit)
    length = min(_LARGEST, float(np.sqrt(np.sum(_weights(now.orbit) * way**2))))
    for _ in range(_MOST):
        try:
            following, iterations = _next(subject_at, before, now, length)
        except OrbitLostError as why:
            length /= 2
            if length < (_NEAREST if isinstance(why, CornerError) else _SMALLEST):
                raise
            continue
        before, now = now, following
        if not 0.0 <= now.share <= 1.0:
            return
        yield now
        length = min(_LARGEST, length * 1.5) if iterations <= _EASY else length
    raise OrbitLostError(f"the branch has more than {_MOST} points")


def _next(subject_at: SubjectAt, before: _Place, now: _Place, length: float) -> tuple[_Place, int]:
    """A cycle at some arclength from `now`, away from `before`, and the iterations it took."""
    here = remesh(now.orbit, _COUNT)
    weights = _weights(here)
    way = _unknowns(here) - _unknowns(interpolate(before.orbit, here))
    turn = now.share - before.share
    size = float(np.sqrt(np.sum(weights * way**2) + turn**2))
    way, turn = way * (length / size), turn * (length / size)
    guess = _Place(now.share + turn, move(here, way))
    return _correct(subject_at, guess, here, weights * way / length, turn / length)


def _correct(
    subject_at: SubjectAt, guess: _Place, reference: Orbit, row: Array, by_share: float
) -> tuple[_Place, int]:
    """The cycle near a guess for which the step along a row stays as it is, by Newton's method with
    the slope along the parameter held, and the iterations it took.
    """
    share, orbit, before = guess.share, guess.orbit, np.inf
    column = parameter_slope(lambda way: subject_at(guess.share + way).model, orbit, _DIFFERENCE)
    extra = np.append(row, 0.0)
    for k in range(_STEPS):
        found = equations(subject_at(share).model, orbit)
        matrix, residual = newton_system(orbit, found, reference)
        whole = sparse.bmat([[matrix, column[:, None]], [extra[None], [[by_share]]]], "csc")
        step = solve_linear(whole, np.append(residual, 0.0), "branch")
        orbit, share = move(orbit, step[:-2]), share + float(step[-1])
        length = float(np.sqrt(np.sum(_weights(orbit) * step[:-2] ** 2) + step[-1] ** 2))
        if length < _MET:
            check(subject_at(share).model, orbit)
            return _Place(share, orbit), k + 1
        if length > 4.0 * max(before, 1e-6) or not orbit.period > 0:
            break
        before = length
    raise OrbitLostError("the branch is lost: no cycle is found a step further")


def _unknowns(orbit: Orbit) -> Array:
    """All unknowns, flat (N,)."""
    count = len(orbit.segment)
    parts = [orbit.start, orbit.rise.reshape(count, -1), orbit.outputs.reshape(count, -1)]
    return np.append(np.concatenate(parts, axis=1).ravel(), orbit.ends)


def _weights(orbit: Orbit) -> Array:
    """Weights (N,) of the squares of a step: those of the starts, in the size of the states."""
    count, segments, n, _ = orbit.shape
    block = (len(_unknowns(orbit)) - segments) // count
    size = np.abs(orbit.start).max(0)
    size = np.where(size > 0, size, 1.0)
    out = np.zeros((count, block))
    out[:, :n] = 1.0 / (n * count * size**2)
    return np.append(out.ravel(), np.full(segments, 1.0 / orbit.period**2))


def _resting_orbit(model: Model, y: Array, period: float) -> Orbit:
    """An equilibrium as an orbit of a given period."""
    outputs = np.zeros(len(model.columns))
    if model.wires:
        for _ in range(_PASSES):
            z = outputs[model.place_of][None]
            mode = model.modes(y[None], z)
            outputs = model.present(y[None], z, mode)[0][0, len(y) :]
    z = (y if model.direct else outputs)[model.place_of][None]
    return Orbit(
        segment=np.zeros(_COUNT, int),
        left=np.arange(_COUNT) / _COUNT,
        width=np.full(_COUNT, 1.0 / _COUNT),
        ends=np.array([period]),
        start=np.tile(y, (_COUNT, 1)),
        rise=np.zeros((_COUNT, POINTS, len(y))),
        outputs=np.tile(outputs, (_COUNT, POINTS, 1))
        if model.wires
        else np.zeros((_COUNT, POINTS, 0)),
        modes=model.modes(y[None], z),
    )


def _hopf_direction(model: Model, rest: Orbit) -> Array:
    """A step (N,) along the cycles that leave a Hopf point: greatest change of a state 1."""
    found = equations(model, rest)
    total = sum(found.parts[1:], found.parts[0])[:-1, :-1]
    shifted = total + _SHIFT * sparse.eye(total.shape[0])
    lu = scipy.sparse.linalg.splu(shifted.tocsc())
    times = rest.times / rest.period
    block = (total.shape[0]) // len(times)
    step = np.repeat(np.cos(2.0 * math.pi * times), block)
    for _ in range(_ITERATIONS):
        step = lu.solve(step)
        step /= np.max(np.abs(step))
    if np.max(np.abs(total @ step)) > 1e-4:
        raise OrbitLostError("no cycles leave from here: the equilibrium has no roots on the axis")
    full = np.append(step, 0.0)
    start = move(dataclasses.replace(rest, start=0.0 * rest.start), full).start
    return full / np.max(np.abs(start) / (np.abs(rest.start) + _floor(rest)))


def _floor(rest: Orbit) -> float:
    """Scale of a state whose equilibrium value is 0."""
    return 1.0 if np.all(rest.start == 0) else 1e-3 * float(np.max(np.abs(rest.start)))
