"""`bode`: the frequency response of the open loop, with its margins."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.margins import LoopCurve
from fluidcc.analysis.stability import Stability, stability
from fluidcc.quantities import about, attributes
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, repr=False)
class FrequencyResponse(Result):
    """The loop gain L(i w) of a network at its equilibrium, and the margins.

    `curves` has a response for each link whose signal varies and reaches a sender: of the loop cut
    there, all others closed; none if the equilibrium has no linearisation. `stability` has the
    verdict and all margins.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.bode(fc.load("hollot2001/slow"))
    >>> list(found.named()), round(found.stability.phase_margin, 2)
    (['bottleneck'], 87.97)
    """

    _view = "equilibria.FrequencyResponseView"

    stability: Stability
    curves: tuple[LoopCurve, ...]

    @property
    def status(self) -> str:
        """The status of the equilibrium."""
        return self.stability.status

    @property
    def message(self) -> str:
        """The message on stability."""
        return self.stability.message

    def named(self) -> dict[str, LoopCurve]:
        """The curves by link."""
        equilibrium: Any = self.stability.equilibrium
        return {equilibrium.net.link_names[curve.link]: curve for curve in self.curves}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for what is not known."""
        keys = ("frequency", "magnitude", "phase")
        links = {
            name: {key: plain(getattr(curve, key)) for key in keys}
            for name, curve in self.named().items()
        }
        return {"links": links, **self.stability.to_dict()}

    def to_xarray(self) -> xarray.Dataset:
        """All points of the curves in a row: link, frequency, magnitude and unwrapped phase; the
        margins are scalars.
        """
        import xarray as xr

        curves = self.named()
        variables: dict[str, Any] = {
            key: (
                "vertex",
                np.concatenate([np.zeros(0), *(getattr(c, key) for c in curves.values())]),
                attributes("response", key),
            )
            for key in ("frequency", "magnitude", "phase")
        }
        links = [name for name, c in curves.items() for _ in c.frequency]
        margins = self.stability.to_xarray()
        scalars = [name for name, v in margins.variables.items() if not v.dims]
        link = ("vertex", np.array(links, "U"), about("link"))
        out = xr.Dataset({"link": link, **variables})
        return out.merge(margins[scalars]).assign_attrs(margins.attrs)


def bode(net: Network) -> FrequencyResponse:
    """Frequency response of the loop at a network's equilibrium, delays exact.

    Parameters
    ----------
    net
        The network. Its loop is cut where the signal of a link leaves it.

    Returns
    -------
    FrequencyResponse
        Frequencies [rad/s], magnitudes, unwrapped phases [deg] and margins.

    Raises
    ------
    TypeError
        For a delay equation, which has no signal at which its loop could be cut.
    ArithmeticError
        If the phase cannot be followed.

    Examples
    --------
    >>> import fluidcc as fc
    >>> curve = fc.bode(fc.load("hollot2001/pi")).curves[0]
    >>> bool(curve.frequency[0] < curve.frequency[-1]), curve.phase.shape == curve.frequency.shape
    (True, True)
    """
    if not isinstance(net, Network):
        raise TypeError(f"bode: expected a network, got {type(net).__name__}: it has no signal")
    found = stability(net)
    return FrequencyResponse(found, found.curves())
