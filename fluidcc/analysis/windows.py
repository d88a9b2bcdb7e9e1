"""Stationary windows of a network: what packets make of the marks that its senders hear."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.stationary import StationaryWindow, stationary_window
from fluidcc.laws.law import Signal
from fluidcc.quantities import attributes
from fluidcc.result import Result
from fluidcc.scenario.echoes import repeated
from fluidcc.scenario.network import Flows, Network

if TYPE_CHECKING:
    import xarray


_MOMENTS = ("p", "mean", "time_mean", "variance", "fluid", "bias")
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Shares of the time for which quantiles are written."""


@dataclasses.dataclass(frozen=True, repr=False)
class StationaryWindows(Result):
    """Stationary windows by group of flows; of the other groups, why they have none.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stationary_windows(fc.load("hollot2001/slow"))
    >>> found.status, found.missing
    ('ok', {})
    """

    _view = "runs.WindowsView"

    groups: Mapping[str, StationaryWindow]
    missing: Mapping[str, str]

    @property
    def status(self) -> str:
        """`ok`, or `none` where no group has a stationary window."""
        return "ok" if self.groups else "none"

    @property
    def message(self) -> str:
        """Why groups have none."""
        return "; ".join(f"flows.{name}: {why}" for name, why in self.missing.items())

    def to_dict(self) -> dict[str, Any]:
        """The moments of each group, without the distributions."""
        groups = {name: found.to_dict() for name, found in self.groups.items()}
        return {"status": self.status, "message": self.message, "groups": groups}

    def to_dataset(self) -> xarray.Dataset:
        """Moments by group, and the windows below which a flow is for a share of the time."""
        import xarray as xr

        data: dict[str, Any] = {
            name: ("group", self._each(name), attributes("windows", name)) for name in _MOMENTS
        }
        rows = [[own.quantile(share) for share in SHARES] for own in self.groups.values()]
        values = np.array(rows, float).reshape(-1, len(SHARES))
        data["quantile"] = (("group", "share"), values, attributes("windows", "quantile"))
        labels = {"group": list(self.groups), "share": list(SHARES)}
        return xr.Dataset(data, labels, {"status": self.status, "message": self.message})

    def _each(self, name: str) -> np.ndarray:
        return np.array([getattr(own, name) for own in self.groups.values()], float)


def stationary_windows(net: Network, *, p: float | None = None) -> StationaryWindows:
    """Stationary windows of the groups of a network, one packet at a time.

    Parameters
    ----------
    net
        The network.
    p
        Probability of a mark, the same for all groups; what each hears at rest for None.

    Returns
    -------
    StationaryWindows
        With a reason for each group that has none: for losses, laws with more memory than a
        window, and marks outside of what `stationary_window` takes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stationary_windows(fc.load("misra2003/mixed"))
    >>> {name: round(own.bias, 2) for name, own in found.groups.items()}
    {'mod': 0.07, 'newreno': 0.3}
    """
    return windows_at(equilibrium(net)) if p is None else _windows(net, lambda name, flows: p)


def windows_at(eq: Equilibrium) -> StationaryWindows:
    """Stationary windows under the marks at rest: their `bias` is that of the fluid model."""

    def told(name: str, flows: Flows) -> float:
        if name not in eq.flows or not np.all(np.isfinite(eq.flows[name].signal)):
            raise ValueError(f"nothing is known to be at rest: the status is {eq.status}")
        return float(mean_over_flows(flows.n, eq.flows[name].signal))

    return _windows(eq.net, told)


def _windows(net: Network, marks: Callable[[str, Flows], float]) -> StationaryWindows:
    groups, missing = {}, {}
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        try:
            if not (flows.feedback.marks and hears_marks(flows)):
                raise ValueError("it hears losses or windows, which are no independent marks")
            groups[name] = stationary_window(
                flows.window, marks(name, flows), reaction=flows.reaction, quiet=stands_still(flows)
            )
        except ValueError as error:
            missing[name] = str(error)
    return StationaryWindows(groups, missing)


def hears_marks(flows: Flows) -> bool:
    """Whether a signal comes as a mark or a quench rather than as a loss."""
    return float(flows.feedback.hears(Signal(0.5, 0.0, 1.0)).mark) > 0


def stands_still(flows: Flows) -> bool:
    """Whether a window stands still until the receiver hears that the sender has reacted."""
    rules = dict(flows.sender)
    if flows.feedback.quench or rules.get("grow_on_echo", False):
        return False
    return repeated(flows, rules.get("echo", "law"))
