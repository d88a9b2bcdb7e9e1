"""Whether an equilibrium is stable, by what margin, and whether that is proven."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.certify import Certificate
from fluidcc.analysis.certify import certify as prove
from fluidcc.analysis.equilibrium import without
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.margins import Margins, scale_of, system_margins
from fluidcc.analysis.model import equilibrium_of
from fluidcc.analysis.relay import RelayCycle, relay_cycle
from fluidcc.analysis.roots import Roots, critical, rightmost_roots
from fluidcc.quantities import attributes
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.model import AnyEquilibrium, Model


_MARGINS = ("gain_margin", "gain_crossover", "phase_margin", "delay_margin", "phase_crossover")
_UNSTABLE_LOOP = (
    "the loop is unstable, so that its margins measure no robustness: they say how far its "
    "crossovers are from critical, with the phase unwrapped from zero frequency"
)


@dataclasses.dataclass(frozen=True, repr=False)
class Stability(Result):
    """Roots and margins of the linearisation at an equilibrium.

    `unstable` is the number of roots with positive real part, `certified` if the argument
    principle proves it; `proof` says up to what: to rounding ("double precision"), or strictly
    ("ball arithmetic"). `roots` [1/s] come from the right, conjugates included, the rightmost
    complex pair always; the first `proven` are proven to be the rightmost. `margins` has every
    crossover; the margins shown are those nearest to critical, None where there is none. `stable`
    is None where there is undetermined: `message` says why. Where a link switches between all marks
    and none, or senders between increase and decrease at full load, `cycle` is the cycle that
    results, if it is known (`relay_cycle`). `linear` is the linearisation that was judged, None
    where there is none.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability(fc.load("hollot2001/slow"))
    >>> round(found.phase_margin, 2), round(found.delay_margin, 2)
    (87.97, 29.24)
    """

    _view = "equilibria.StabilityView"

    status: str
    message: str
    stable: bool | None
    unstable: int | None
    certified: bool
    roots: Array
    margins: Margins | None
    equilibrium: AnyEquilibrium
    proven: int = 0
    cycle: RelayCycle | None = None
    proof: str = ""
    linear: Linear | None = dataclasses.field(default=None, repr=False)

    @property
    def rightmost(self) -> complex | None:
        """The root with the largest real part [1/s]; None if there is none or it is not known."""
        return complex(self.roots[0]) if len(self.roots) else None

    @property
    def gain_margin(self) -> float | None:
        """Factor on the loop gain that makes it critical."""
        return _known(self.margins and self.margins.gain_margin)

    @property
    def gain_crossover(self) -> float | None:
        """Frequency at which the loop gain is 1 [rad/s]."""
        return _known(self.margins and self.margins.gain_crossover)

    @property
    def phase_margin(self) -> float | None:
        """Phase margin [deg], phase unwrapped from zero frequency."""
        return _known(self.margins and self.margins.phase_margin)

    @property
    def delay_margin(self) -> float | None:
        """Additional delay that makes the loop critical [s]."""
        return _known(self.margins and self.margins.delay_margin)

    @property
    def phase_crossover(self) -> float | None:
        """Frequency at which the loop is real and negative [rad/s]."""
        return _known(self.margins and self.margins.phase_crossover)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for what is not known."""
        names = (
            "status", "message", "stable", "unstable", "certified", "proof", *_MARGINS,
        )  # fmt: skip
        out = {name: plain(getattr(self, name)) for name in names}
        first = self.rightmost
        out["rightmost"] = None if first is None else [first.real, first.imag]
        out["roots"] = [[float(s.real), float(s.imag)] for s in self.roots]
        out["proven"] = self.proven
        out["cycle"] = None if self.cycle is None else self.cycle.to_dict()
        out["equilibrium"] = self.equilibrium.to_dict()
        return out

    def to_dataset(self) -> xarray.Dataset:
        """Labelled arrays with units: the equilibrium's, the roots and the margins."""
        import xarray as xr

        values = {name: getattr(self, name) for name in _MARGINS}
        scalars = {
            name: ((), math.nan if value is None else value, attributes("loop", name))
            for name, value in values.items()
        }
        roots = {
            "root_real": ("root", np.real(self.roots), attributes("roots", "root_real")),
            "root_imag": ("root", np.imag(self.roots), attributes("roots", "root_imag")),
        }
        unstable = ((), -1 if self.unstable is None else self.unstable, {"units": "1"})
        out = xr.Dataset({**scalars, **roots, "unstable": unstable})
        out = out.merge(self.equilibrium.to_dataset())
        stable = -1 if self.stable is None else int(self.stable)
        flags = {"stable": stable, "certified": int(self.certified), "proven": self.proven}
        return out.assign_attrs(status=self.status, message=self.message, **flags)


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def stability(net: Model, *, roots: int = 6, certify: bool = False) -> Stability:
    """Rightmost roots, certified count of unstable roots and margins at a network's equilibrium.

    A delay equation has roots and a count too, but no margins. `roots` is how many of the rightmost
    roots are wanted (a conjugate pair counts once). At a kink of a marking function the worse of
    both one-sided linearisations is returned, and the message says so. `certify` proves the count
    of unstable roots in ball arithmetic, for the linearisation as it stands in double precision;
    MissingExtra is raised without python-flint.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability(fc.load("hollot2001/fast"))
    >>> found.stable, found.unstable, found.certified
    (False, 2, True)
    """
    eq = equilibrium_of(net)
    if not eq.smooth:
        return _switching(eq)
    try:
        linear = [eq.linear(side=side) for side in ((-1, 1) if eq.kinked else (0,))]
    except ValueError as fault:
        message = "; ".join(filter(None, [eq.message, str(fault)]))
        return Stability("undetermined", message, None, None, False, np.zeros(0), None, eq)
    sides = [_judged(system, eq, count=roots, certify=certify) for system in linear]
    if len(sides) == 1:
        return sides[0]
    words = [
        f"{s.unstable} unstable roots {at} it"
        for s, at in zip(sides, ("below", "above"), strict=True)
    ]
    message = "; ".join(filter(None, [eq.message, f"at a kink of the marking: {', '.join(words)}"]))
    worse = max(sides, key=_growth)
    both = sides[0].certified and sides[1].certified
    return dataclasses.replace(worse, message=message, certified=both)


def _switching(eq: Any) -> Stability:
    """Stability without a linearisation; with the relay cycle if it is known."""
    cycle, notes = None, [eq.message]
    if eq.status not in ("none", "undetermined"):
        notes.append(f"no linearisation: {without(eq)}")
    if eq.sliding:
        try:
            cycle = relay_cycle(eq.net, at=eq)
        except ValueError as fault:
            notes.append(str(fault))
        else:
            notes.append(_describe_cycle(cycle))
    message = "; ".join(filter(None, notes))
    return Stability(eq.status, message, None, None, False, np.zeros(0), None, eq, cycle=cycle)


def _describe_cycle(cycle: RelayCycle) -> str:
    """One line on a relay cycle."""
    (low, high), (least, most) = cycle.queue, cycle.window
    source = "" if cycle.exact else f" (formula of {cycle.basis})"
    return (
        f"relay cycle{source}: period {cycle.period:.4g} s, queue {low:.4g} to {high:.4g} packets, "
        f"window {least:.4g} to {most:.4g} packets"
        + (f"; {cycle.message}" if cycle.message else "")
    )


def _growth(side: Stability) -> float:
    """Real part of the rightmost root [1/s]; infinite if unstable roots were not located."""
    if side.rightmost is None:
        return math.inf if side.unstable else -math.inf
    return side.rightmost.real


def _judged(system: Linear, eq: AnyEquilibrium, *, count: int, certify: bool) -> Stability:
    found: Roots = rightmost_roots(system, keep=count)
    loop, notes = None, [eq.message, found.reason]
    try:
        loop = system_margins(system, scale=scale_of(system))
    except ArithmeticError as fault:
        notes.append(f"no margins: {fault}")
    if loop is not None and found.unstable and math.isfinite(loop.phase_margin):
        notes.append(_UNSTABLE_LOOP)
    near = found.rightmost is not None and critical(found.rightmost)
    stable = None if near and not found.certified else found.unstable == 0
    result = Stability(
        eq.status, "", stable, found.unstable, found.certified, found.values, loop, eq,
        found.proven, proof="double precision" if found.certified else "", linear=system,
    )  # fmt: skip
    if certify:
        result, refused = _proven(result, prove(system))
        notes.append(refused)
    return dataclasses.replace(result, message="; ".join(filter(None, notes)))


def _proven(result: Stability, certificate: Certificate) -> tuple[Stability, str]:
    """The result with a proven count, and why it is not proven."""
    number = certificate.unstable
    if number is None:
        return result, f"no proof in ball arithmetic: {certificate.reason}"
    known = number == result.unstable
    proven = dataclasses.replace(
        result, unstable=number, stable=number == 0, certified=True, proof="ball arithmetic",
        roots=result.roots if known else result.roots[:0], proven=result.proven if known else 0,
    )  # fmt: skip
    return proven, "" if known else f"{number} unstable roots proven, {result.unstable} located"
