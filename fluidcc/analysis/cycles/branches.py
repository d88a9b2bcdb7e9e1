"""The verb that follows cycles along one parameter, and its result."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.crossings import crossings
from fluidcc.analysis.cycles.branch import Branch, Place
from fluidcc.analysis.cycles.hopf import state_of_rest
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.newton import LostError
from fluidcc.analysis.cycles.result import Cycle
from fluidcc.analysis.cycles.subjects import NotHereError, equation_model, network_model
from fluidcc.analysis.cycles.verb import check, cycle, result_of
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.model import ends_of, family, unit_of
from fluidcc.analysis.scan import Scale, scale_of
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class CycleBranch:
    """Cycles that are born at one Hopf point, in their order on the branch.

    `hopf` is the parameter there and `frequency` [rad/s] that of its roots; `values` are the
    parameters of the `cycles`, `folds` those at which the branch turns; `message` says why it ends
    inside the range, empty at its ends.
    """

    hopf: float
    frequency: float
    values: tuple[float, ...]
    cycles: tuple[Cycle, ...]
    message: str

    @property
    def folds(self) -> tuple[float, ...]:
        """Parameters at which the branch turns back."""
        steps = np.sign(np.diff([self.hopf, *self.values]))
        turns = np.flatnonzero(steps[1:] * steps[:-1] < 0)
        return tuple(self.values[k] for k in turns)


@dataclasses.dataclass(frozen=True, repr=False)
class Cycles(Result):
    """Cycles along one parameter, a branch from every Hopf point in the range.

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

    @property
    def failure(self) -> str:
        """Which branches end inside the range, and why; empty where none does."""
        lost = [(branch.hopf, branch.message) for branch in self.branches if branch.message]
        return "; ".join(f"the branch from {hopf:.6g} ends: {why}" for hopf, why in lost)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        out = []
        for branch in self.branches:
            pairs = zip(branch.values, branch.cycles, strict=True)
            points = [{"value": value, **found.to_dict()} for value, found in pairs]
            out.append({
                "hopf": branch.hopf, "frequency": branch.frequency, "folds": branch.folds,
                "points": points, "message": branch.message,
            })  # fmt: skip
        return plain({"branches": out, "message": self.message})

    def to_dataset(self) -> xarray.Dataset:
        """All cycles in a row: branch, parameter, period, leading multiplier, extremes."""
        import xarray as xr

        rows = [
            (k, value, found)
            for k, branch in enumerate(self.branches)
            for value, found in zip(branch.values, branch.cycles, strict=True)
        ]
        found = [row[2] for row in rows]
        leading = [max((abs(mu) for mu in c.floquet[1:]), default=0.0) for c in found]
        data: dict[str, Any] = {
            "branch": ("point", [row[0] for row in rows]),
            "value": ("point", [row[1] for row in rows], {"units": self.unit}),
            "period": ("point", [c.period for c in found], {"units": "s"}),
            "leading_multiplier": ("point", leading),
            "status": ("point", [c.status for c in found]),
        }
        for name in found[0].links if found else ():
            for k, end in enumerate(("least", "greatest")):
                values = [c.links[name].queue[k] for c in found]
                data[f"{name}.{end}_queue"] = ("point", values, {"units": "packet"})
        for k in range(len(found[0].states) if found else 0):
            data[f"state_{k}"] = (("point", "extreme"), [c.states[k] for c in found])
        return xr.Dataset(data, attrs={"path": self.path, "message": self.message})


def cycles(
    net: Network | DelayEquation, path: str, low: float | str, high: float | str, *,
    points: int = 12,
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
        Values over the whole range at which cycles are looked for where they are not smooth.

    Returns
    -------
    Cycles
        Its `message`, and those of its branches, tell what was not found.

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
    found = crossings(net, path, *ends, criticality=False)
    every = [c for c in (*found.crossings, *found.further) if not c.jump and c.frequency]
    branches = [_followed(member, scale, c.value, float(c.frequency or 0), points) for c in every]
    told = [] if every else ["no Hopf point in this range: no cycles are born here"]
    if found.gaps or not found.certified:
        told.append("Hopf points may be missing, as not all of the range has a certain verdict")
    return Cycles(path, unit_of(net, path), *ends, tuple(branches), "; ".join(told))


def _model(net: Network | DelayEquation) -> Model:
    return (equation_model(net) if isinstance(net, DelayEquation) else network_model(net))[0]


def _followed(member: Any, scale: Scale, hopf: float, frequency: float, points: int) -> CycleBranch:
    """The branch from one Hopf point."""
    at = functools.lru_cache(maxsize=8)(lambda share: _model(member(scale.value(share))))

    def sound(place: Place) -> bool:
        try:
            check(at(place.share), place.orbit)
        except LostError:
            return False
        return True

    values, found, shares = [], [], []
    try:
        steps = Branch(at).followed(
            state_of_rest(member(hopf)), scale.share(hopf), 2.0 * math.pi / frequency, sound
        )
        while True:
            place = next(steps)
            value = scale.value(place.share)
            found.append(result_of(member(value), at(place.share), place.orbit, None))
            values.append(value)
            shares.append(place.share)
    except StopIteration as end:
        message = end.value
    except (LostError, NotHereError) as why:
        message = str(why)
    if message.startswith("the cycle meets") and len(values) > 1:
        up = values[-1] > values[-2]
        more, message = _beyond(member, scale, shares[-1], up, points, found[-1])
        values += [value for value, _ in more]
        found += [c for _, c in more]
    return CycleBranch(hopf, frequency, tuple(values), tuple(found), message)


def _beyond(
    member: Any, scale: Scale, share: float, up: bool, points: int, last: Cycle
) -> tuple[list[tuple[float, Cycle]], str]:
    """Cycles at fixed values beyond the last smooth one, and why they end."""
    grid = np.linspace(0.0, 1.0, points)
    grid = grid[grid > share + 1e-9] if up else grid[grid < share - 1e-9][::-1]
    out = []
    for place in grid:
        value = scale.value(float(place))
        last = cycle(member(value), start=last)
        if last.period is None:
            return out, f"at {value:.6g}: {last.message}"
        out.append((value, last))
    return out, ""
