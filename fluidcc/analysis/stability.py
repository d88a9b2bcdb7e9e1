"""Whether an equilibrium is stable, by what margin, and whether that is proven.

The proof is the argument principle in ball arithmetic. The matrices and lags of the linear system
are taken as the numbers they are in double precision; every operation on them has a proven
enclosure. All roots with nonnegative real part lie in a rectangle. Its border is cut into pieces,
on each of which the enclosure of the characteristic function excludes zero: its argument then
changes by less than half a turn, so that the values at the ends of a piece determine the change.
Values on the real axis are real, so the upper half of the border is enough. Source: Johansson
(2017), Arb: efficient arbitrary-precision midpoint-radius interval arithmetic.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.balance import FOLLOW
from fluidcc.analysis.equilibrium import without
from fluidcc.analysis.flow_response import Answering
from fluidcc.analysis.linear import LINK, Array, Linear
from fluidcc.analysis.margins import (
    LoopCurve,
    Margins,
    loop_curve,
    loop_curves,
    scale_of,
    stabilizing_gain,
    system_margins,
)
from fluidcc.analysis.population_loop import NoLoop, PopulationLoop, find_loop
from fluidcc.analysis.roots import Roots, critical, rightmost_roots
from fluidcc.analysis.scan import equilibrium_of
from fluidcc.errors import extra
from fluidcc.quantities import about, attributes
from fluidcc.result import Result

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.scan import AnyEquilibrium, Model

_BITS = 128
_DEEPEST = 60  # halvings of a side of the rectangle
_MOST = 60_000  # pieces
_MARGINS = ("gain_margin", "gain_crossover", "phase_margin", "delay_margin", "phase_crossover")
UNSTABLE_LOOP = (
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
    is None where there is undetermined: `message` says why. `linear` is the linearisation that was
    judged, None where there is none; `population` the loop of one.

    `status` is that of the `equilibrium`, or the reason why there is no verdict.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability(fc.load("hollot2001/slow"))
    >>> round(found.phase_margin, 2), round(found.delay_margin, 2)
    (87.97, 29.24)
    """

    _view = "equilibria.StabilityView"
    _in_dict = (
        "status", "message", "stable", "unstable", "certified", "proof", *_MARGINS, "rightmost",
        "roots", "proven", "equilibrium",
    )  # fmt: skip

    status: str
    message: str
    stable: bool | None
    unstable: int | None
    certified: bool
    roots: Array
    margins: Margins | None
    equilibrium: AnyEquilibrium
    proven: int = 0
    proof: str = ""
    linear: Linear | None = dataclasses.field(default=None, repr=False)
    population: PopulationLoop | None = dataclasses.field(default=None, repr=False)

    def curves(self) -> tuple[LoopCurve, ...]:
        """The response of the loop cut at each link whose signal reaches a sender; none without a
        loop. Raises ArithmeticError if a curve cannot be followed.
        """
        if self.population is not None:
            loop = self.population
            return tuple(
                loop_curve(
                    loop.links[i], functools.partial(loop.gain, queue=i), scale=1 / loop.trip
                )
                for i in loop.heard
            )
        return () if self.linear is None or self.margins is None else loop_curves(self.linear)

    def describe_margins(self) -> str:
        """What the margins of an unstable loop mean, in words; empty for a stable one or none."""
        if not self.unstable or self.phase_margin is None or self.margins is None:
            return ""
        out = "unstable: other crossovers of the loop decide than the one nearest to critical"
        if self.phase_margin < 0:
            out = (
                f"unstable: the phase lags {-self.phase_margin:.4g} deg beyond -180 deg at the "
                f"gain crossover, {self.gain_crossover:.4g} rad/s"
            )
        gain = None if self.linear is None else stabilizing_gain(self.linear, self.margins)
        if gain is not None:
            out += (
                f"; the loop gain must fall by a factor of {1 / gain:.3g} "
                f"({-20 * math.log10(gain):.3g} dB) to be stable"
            )
        return out

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

    def to_xarray(self) -> xarray.Dataset:
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
        unstable = ((), -1 if self.unstable is None else self.unstable, about("unstable"))
        out = xr.Dataset({**scalars, **roots, "unstable": unstable})
        out = out.merge(self.equilibrium.to_xarray())
        stable = -1 if self.stable is None else int(self.stable)
        flags = {"stable": stable, "certified": int(self.certified), "proven": self.proven}
        return out.assign_attrs(status=self.status, message=self.message, **flags)


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def stability(net: Model, *, roots: int = 6, certify: bool = False) -> Stability:
    """Rightmost roots, certified count of unstable roots and margins at a network's equilibrium.

    A delay equation has roots and a count too, but no margins. `roots` is how many of the rightmost
    roots are wanted (a conjugate pair counts once). The loop of a population has a count by its
    frequency response, and roots near the frequencies at which it is nearest to critical. At a
    kink of a marking function the worse of both one-sided linearisations is returned, and the
    message says so. `certify` proves the count
    of unstable roots in ball arithmetic, for the linearisation as it stands in double precision;
    MissingExtra is raised without python-flint.

    Returns
    -------
    Stability
        `stable`, `unstable` (the count) and whether it is `certified`; `roots` (k,) [1/s] from the
        right; `phase_margin` [deg], `gain_margin` (a factor), `delay_margin` [s], `gain_crossover`
        and `phase_crossover` [rad/s].

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability(fc.load("hollot2001/fast"))
    >>> found.stable, found.unstable, found.certified
    (False, 2, True)
    """
    return judge(equilibrium_of(net), roots=roots, certify=certify)


def judge(
    eq: AnyEquilibrium,
    *,
    roots: int = 6,
    certify: bool = False,
    answering: Sequence[list[Answering]] | None = None,
) -> Stability:
    """`stability` at a known equilibrium; the answers of a population's groups may be known too."""
    if is_population(eq):
        return _of_population(eq, roots, certify, answering)
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
    corner = (
        f"the marking function has a corner here: {', '.join(words)}; these are of the worse side"
    )
    message = "; ".join(filter(None, [eq.message, corner]))
    worse = max(sides, key=_growth)
    both = sides[0].certified and sides[1].certified
    return dataclasses.replace(worse, message=message, certified=both)


def is_population(eq: Any) -> bool:
    """Whether the loop at an equilibrium is that of a population."""
    return getattr(getattr(eq, "net", None), "closure", "") == "population"


def count_unstable(
    eq: Any, answering: Sequence[list[Answering]] | None = None
) -> tuple[int | None, str]:
    """Number of unstable roots of the loop of a population, whose groups may be known to answer so;
    None if it is not known, and why not, or what else there is to say.
    """
    try:
        return find_loop(eq, answering).unstable(), eq.message
    except NoLoop as refusal:
        return None, _refused(eq, refusal)


def _refused(eq: Any, refusal: NoLoop) -> str:
    own = "" if eq.message in str(refusal) else eq.message
    return "; ".join(filter(None, [own, str(refusal)]))


def _of_population(
    eq: Any, count: int, certify: bool, answering: Sequence[list[Answering]] | None
) -> Stability:
    """Stability of the loop of a population: a count by its frequency response, and its margins;
    with its roots, if any are wanted.
    """
    try:
        loop = find_loop(eq, answering)
        unstable = loop.unstable()
    except NoLoop as refusal:
        message = _refused(eq, refusal)
        return Stability(eq.status, message, None, None, False, np.zeros(0), None, eq)
    roots, notes = loop.roots(unstable) if count else np.zeros(0, complex), [eq.message]
    if roots is None:
        roots = np.zeros(0, complex)
        notes.append("no roots are given: those found are not as many as the Nyquist curve counts")
    if eq.kinked:
        notes.append("the marking function has a corner here: these are of one side of it")
    if certify:
        notes.append("no proof: a frequency response on a grid counts the roots of a population")
    try:
        found = loop.margins()
    except ArithmeticError as fault:
        found = None
        notes.append(f"no margins: {fault}")
    if found is not None and unstable and math.isfinite(found.phase_margin):
        notes.append(UNSTABLE_LOOP)
    message = "; ".join(filter(None, notes))
    return Stability(
        eq.status, message, unstable == 0, unstable, False, _both(roots), found, eq,
        population=loop,
    )  # fmt: skip


def _both(roots: Array) -> Array:
    """Roots with the conjugates of complex ones."""
    pairs = ((z, z.conjugate()) if z.imag > 0 else (z,) for z in roots.tolist())
    return np.array(list(itertools.chain.from_iterable(pairs)), complex)


def _switching(eq: Any) -> Stability:
    """Stability without a linearisation."""
    notes = [eq.message]
    if eq.status not in ("none", "undetermined"):
        notes.append(f"no linearisation, hence no roots and margins: {without(eq)}")
    if (eq.sliding or eq.status == "discontinuity") and FOLLOW not in eq.message:
        notes.append(FOLLOW)
    message = "; ".join(filter(None, notes))
    return Stability(eq.status, message, None, None, False, np.zeros(0), None, eq)


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
        notes.append(UNSTABLE_LOOP)
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


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Proven number of roots with positive real part; None if the proof fails, see `reason`.

    `pieces` is the number of pieces of the border, `bound` [rad/s] the proven bound of the modulus
    of roots with nonnegative real part.
    """

    unstable: int | None
    reason: str = ""
    pieces: int = 0
    bound: float = np.nan


class _Refused(ArithmeticError):
    """The proof failed; the message has the reason."""


class _Balls:
    """A system's characteristic function in balls, each row of a state divided by s + shift.

    Classes of flows are coupled through links only, and are eliminated one by one.
    """

    def __init__(self, system: Linear, flint: Any, shift: Any) -> None:
        self.flint, self.shift, self.states = flint, shift, len(system.A)
        present = np.vstack([system.A, system.C])
        late = np.vstack([system.B, system.D])
        self._lags = sorted(set(map(float, system.lag)))
        place = [self._lags.index(float(lag)) for lag in system.lag]
        acb = flint.acb
        self._entries: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        for i, j in np.argwhere(present):
            self._entry(i, j).append((-1, -acb(float(present[i, j]))))
        for i, k in np.argwhere(late):
            column = self.states + int(system.pick[k])
            self._entry(i, column).append((place[k], -acb(float(late[i, k]))))
        owner = np.concatenate([system.state_owner, system.output_owner])
        self._links = np.flatnonzero(owner == LINK)
        self._classes = [np.flatnonzero(owner == c) for c in np.unique(owner[owner != LINK])]

    def _entry(self, i: int, j: int) -> list[tuple[int, Any]]:
        return self._entries.setdefault((int(i), int(j)), [])

    def _block(self, rows: Array, columns: Array, s: Any, late: list[Any], weight: Any) -> Any:
        """Rows and columns of the scaled characteristic matrix."""
        acb, out = self.flint.acb, []
        for i in rows:
            row = []
            for j in columns:
                value = acb(0)
                if i == j:
                    value += s if i < self.states else 1
                for lag, number in self._entries.get((int(i), int(j)), ()):
                    value += number if lag < 0 else number * late[lag]
                row.append(value * weight if i < self.states else value)
            out.append(row)
        return self.flint.acb_mat(out)

    def value(self, s: Any) -> Any:
        """The function det M(s)/(s + shift)^n of a ball s; right of the axis its zeros are roots.

        Not finite if a class cannot be eliminated on the whole ball.
        """
        late = [(-s * self.flint.arb(lag)).exp() for lag in self._lags]
        weight, links = 1 / (s + self.shift), self._links
        corner, product = self._block(links, links, s, late, weight), self.flint.acb(1)
        for own in self._classes:
            inside = self._block(own, own, s, late, weight)
            product *= inside.det()
            try:
                reached = inside.solve(self._block(own, links, s, late, weight))
            except ZeroDivisionError:
                return self.flint.acb("nan")
            corner -= self._block(links, own, s, late, weight) * reached
        return product * corner.det()


def _upper(flint: Any, system: Linear) -> Any:
    """A ball matrix that bounds |s| Y of roots s y = (A + B E (I - D E)^-1 C) y, Re s >= 0.

    Raises _Refused if outputs depend on themselves without a state between.
    """
    arb_mat = flint.arb_mat
    _, m = system.size

    def exact(matrix: Array) -> Any:
        return arb_mat([[float(abs(v)) for v in row] for row in matrix])

    look = np.zeros((len(system.pick), m))
    look[np.arange(len(system.pick)), system.pick] = 1.0
    into = [[float(v) for v in row] for row in look]
    loop = exact(system.D) * arb_mat(into) if m else None
    total = arb_mat([[float(i == j) for j in range(m)] for i in range(m)])
    power = total
    for _ in range(m):
        power = power * loop
        if all(bool(entry == 0) for entry in power.entries()):
            break
        total = total + power
    else:
        if m:
            raise _Refused("what is sent feeds back on itself without a state between")
    bound = exact(system.A)
    if m:
        bound = bound + exact(system.B) * arb_mat(into) * total * exact(system.C)
    return bound


def _bound(flint: Any, system: Linear) -> Any:
    """A ball at least as large as the modulus of every root with nonnegative real part."""
    matrix = _upper(flint, system)
    n = matrix.nrows()
    near = np.array([[float(matrix[i, j].upper()) for j in range(n)] for i in range(n)])
    weights = np.ones(n)
    for _ in range(50):  # towards the Perron vector; any positive weights give a bound
        weights = near @ weights + 1e-12 * weights.max()
        weights /= weights.max()
    scale = [flint.arb(float(max(w, 1e-200))) for w in weights]
    sums = (sum((matrix[i, j] * scale[j] for j in range(n)), flint.arb(0)) for i in range(n))
    rows = [row / scale[i] for i, row in enumerate(sums)]
    return max((row.upper() for row in rows), key=float)


def _pieces(balls: _Balls, start: Any, end: Any, spent: list[int]) -> Iterator[tuple[Any, Any]]:
    """Neighbouring points of a side from start to end, with zero excluded between them.

    Raises _Refused if zero cannot be excluded.
    """
    acb, arb = balls.flint.acb, balls.flint.arb
    waiting = [(start, end, _DEEPEST)]
    while waiting:
        a, b, depth = waiting.pop()
        spent[0] += 1
        whole = acb(arb.union(a.real, b.real), arb.union(a.imag, b.imag))
        value = balls.value(whole)
        if value.is_finite() and not value.contains(acb(0)):
            yield a, b
            continue
        if depth == 0 or spent[0] > _MOST:
            at = complex(float(a.real.mid()), float(a.imag.mid()))
            raise _Refused(f"a root is too near the imaginary axis, or on it, at about {at:.6g}")
        middle = acb(((a.real + b.real) / 2).mid(), ((a.imag + b.imag) / 2).mid())
        waiting += [(middle, b, depth - 1), (a, middle, depth - 1)]


def _half_turns(balls: _Balls, corners: list[Any], spent: list[int]) -> Any:
    """Change of the argument along the sides between corners, as a ball in half turns."""
    arb = balls.flint.arb
    total = arb(0)
    for start, end in itertools.pairwise(corners):
        last, before = start, balls.value(start)
        for a, b in _pieces(balls, start, end, spent):
            if a is not last:
                before = balls.value(a)
            after = balls.value(b)
            total += (after / before).arg()
            last, before = b, after
    return total / arb.pi()


def prove(system: Linear) -> Certificate:
    """Prove how many roots of a linear delay system have a positive real part.

    Parameters
    ----------
    system
        The system; its entries and lags count as exact.

    Raises
    ------
    MissingExtra
        If python-flint is not installed.
    """
    flint = extra("flint", "certify", what="a certificate in ball arithmetic")
    if system.conserved:
        return Certificate(None, "conserved quantities keep roots at zero")
    system = system.pruned()
    if not len(system.A):
        return Certificate(None, "the system has no state")
    precision, spent = flint.ctx.prec, [0]
    flint.ctx.prec = _BITS
    try:
        bound = _bound(flint, system)
        side = flint.arb(float(bound.upper())) * flint.arb(1.01) + flint.arb(1e-9)
        side = side.mid()
        balls, acb = _Balls(system, flint, side), flint.acb
        corners = [acb(side, 0), acb(side, side), acb(0, side), acb(0, 0)]
        number = _half_turns(balls, corners, spent).unique_fmpz()
    except _Refused as fault:
        return Certificate(None, str(fault), spent[0])
    finally:
        flint.ctx.prec = precision
    if number is None:
        return Certificate(None, "the argument is not known to a whole turn", spent[0])
    return Certificate(int(number), "", spent[0], float(side))
