"""Ranges of parameters, and the unit interval that stands for each of them in a search."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from fluidcc.analysis.model import unit_of
from fluidcc.analysis.scan import Scale
from fluidcc.errors import Fault, ScenarioError
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import check_paths, full_path, number_at, value_at

_DECADE = 10.0  # high over low from which on a positive range is taken by its logarithm, as even
# steps would hardly see its low end


@dataclasses.dataclass(frozen=True)
class Range:
    """A parameter between two numbers; `whole` if only whole numbers count."""

    path: str
    low: float
    high: float
    unit: str
    whole: bool

    @property
    def log(self) -> bool:
        """Whether equal steps are equal ratios: positive ranges of a decade or more."""
        return self.low > 0 and self.high >= _DECADE * self.low

    @property
    def _scale(self) -> Scale:
        return Scale(self.low, self.high, self.log)

    def value(self, share: float) -> float:
        """The value at a share of the range, 0 to 1."""
        return self._scale.value(min(max(share, 0.0), 1.0))

    def share(self, value: float) -> float:
        """Where a value lies in the range, 0 at its low end and 1 at its high end."""
        return self._scale.share(value)

    def slope(self, share: float) -> float:
        """Derivative of the value by the share."""
        width = math.log(self.high / self.low) if self.log else self.high - self.low
        return self.value(share) * width if self.log else width


def ranges(
    net: Network, over: Mapping[str, Iterable[Any]], whole: Iterable[str] = (), *, where: str
) -> tuple[Range, ...]:
    """The ranges of ``{path: (low, high)}``; numbers of flows and paths of `whole` are whole.

    Parameters
    ----------
    net
        The network.
    over
        Ends by path, as numbers in the parameter's unit or text with one.
    whole
        Paths of `over` of which only whole numbers count.
    where
        What to call their place in messages.

    Raises
    ------
    ScenarioError
        For paths that lead to no number or come twice, and ends that are no range.
    """
    check_paths(net, over, where=where)
    full = [full_path(net, path) for path in over]
    again = [path for k, path in enumerate(over) if full[k] in full[:k]]
    if again:
        raise ScenarioError([Fault(where, path, "each path once", path) for path in again])
    counted = {full_path(net, path) for path in whole}
    unknown = counted - set(full)
    if unknown:
        paths = " or ".join(over)
        faults = [Fault("whole", path, f"a path that is varied, {paths}", path) for path in unknown]
        raise ScenarioError(faults)
    out = []
    for name, (path, ends) in zip(full, over.items(), strict=True):
        number_at(net, path)
        low, high = _ends(net, path, ends, where)
        is_count = name in counted or name.endswith(".n")
        if is_count:
            low, high = math.ceil(low), math.floor(high)
            if low >= high:
                raise ScenarioError([Fault(where, path, "two whole numbers", f"{tuple(ends)!r}")])
        out.append(Range(path, float(low), float(high), unit_of(net, path), is_count))
    return tuple(out)


def _ends(net: Network, path: str, ends: Iterable[Any], where: str) -> tuple[float, float]:
    try:
        low, high = (float(value_at(net, path, end, where=where)) for end in ends)
    except (TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError([Fault(where, path, "two numbers (low, high)", f"{ends!r}")]) from None
    if not -math.inf < low < high < math.inf:
        raise ScenarioError([Fault(where, path, "low < high, both finite", f"{ends!r}")])
    return low, high
