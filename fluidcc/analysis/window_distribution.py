"""The stationary law of a window under marks of constant probability, one packet at a time.

Between reactions the window follows its own growth rule from ACK to ACK, so that windows lie on
orbits of that rule; a reaction takes it from one orbit to the next. On a grid of such orbits growth
is exact and only reactions are interpolated, in a way that keeps the mean. The chain is solved from
reaction to reaction: what a reaction leaves, where the ACKs after it find the window, where the
next reaction meets it. Marks are independent, losses and timeouts have no part.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy.linalg.lapack import dtbtrs  # pyright: ignore[reportAttributeAccessIssue]

from fluidcc import ops
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.arrays import jax, jnp
from fluidcc.executables import compile_once
from fluidcc.laws.law import AbstractReaction, AbstractWindowLaw, Ack, Since
from fluidcc.programs import compiled
from fluidcc.progress import counted, reporting
from fluidcc.quantities import attributes, labels
from fluidcc.result import Result
from fluidcc.scenario.network import Flows, Network, sees_marks, stands_still

if TYPE_CHECKING:
    import xarray

_TIMEOUTS = 4.0  # packets; smaller windows have too few duplicate ACKs for fast recovery
_LOST = 1e-12  # share of the ACKs that may lie above the grid
_SETTLED = 1e-10  # change of the distribution from reaction to reaction
_MOST_REACTIONS = 20_000
_LEAST_POINTS = 16_384
_PRECISE = 1e-5  # change of the mean on doubling the grid
_CHUNK = 256  # steps of growth that are compiled as one
_MOST_POINTS = 4_194_304
_BLOCK = 2e-3  # mean number of marks in ACKs that are taken together, at most
_LEAST_P = 1e-8
_ONE = Ack(1.0, 0.0, 1.0)
_MOMENTS = (
    "mark_probability", "window_per_packet", "window_mean", "window_var", "window_fluid",
    "window_bias",
)  # fmt: skip
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Shares of the time for which quantiles are written."""


@dataclasses.dataclass(frozen=True, repr=False)
class WindowDistribution(Result):
    """Distribution of a window law's window under independent marks of probability `p`.

    `window` [packet] are values in order; `packet_share` and `time_share` the shares of ACKs that
    find, and of time spent at, each of them. `window_fluid` is the window at which the mean drift
    vanishes. `error` is the relative change of the mean on the last doubling of the grid.

    `mark_probability` is p; `message` has the reason of a failure.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.window_distributions(fc.load("hollot2001/slow")).groups["tcp"]
    >>> round(found.window_mean, 2), round(found.window_bias, 3)
    (14.66, 0.074)
    """

    _view = "runs.WindowsView"

    mark_probability: float
    window: Array
    packet_share: Array
    time_share: Array
    window_fluid: float | None
    error: float
    message: str = ""

    @property
    def window_per_packet(self) -> float:
        """Mean over packets: what an ACK finds [packet]."""
        return float(self.packet_share @ self.window)

    @property
    def window_mean(self) -> float:
        """Mean over time, which counts small windows less: more packets pass at large ones."""
        return float(self.time_share @ self.window)

    @property
    def window_var(self) -> float:
        """Variance over time [packet^2]."""
        return float(self.time_share @ (self.window - self.window_mean) ** 2)

    @property
    def window_bias(self) -> float | None:
        """Window of the fluid model relative to the mean over time, less 1."""
        return None if self.window_fluid is None else self.window_fluid / self.window_mean - 1

    def quantile(self, share: float) -> float:
        """Window below which the sender is for this share of the time [packet]."""
        return float(self.window[np.searchsorted(np.cumsum(self.time_share), share - 1e-12)])

    def describe(self) -> str:
        """The bias in a sentence."""
        about = (
            f"{self.window_mean:.4g} packets under independent marks of {self.mark_probability:.3g}"
        )
        if self.window_bias is None:
            return f"the mean window is {about}"
        way = "above" if self.window_bias >= 0 else "below"
        size = f"{100 * abs(self.window_bias):.1f} %"
        return f"the fluid model's window is {size} {way} the mean of {about}"

    def to_dict(self) -> dict[str, Any]:
        """The moments and a `summary`, without the distribution."""
        names = (*_MOMENTS, "error", "message")
        return {name: getattr(self, name) for name in names} | {"summary": self.describe()}

    def to_xarray(self) -> xarray.Dataset:
        """The distribution along the dimension `window`."""
        import xarray as xr

        shares = {
            name: ("window", getattr(self, name), attributes("windows", name))
            for name in ("packet_share", "time_share")
        }
        moments = {k: v for k, v in self.to_dict().items() if v is not None and k != "summary"}
        return xr.Dataset(shares, labels(window=self.window), moments)


class _Rules(NamedTuple):
    """Steps of a Markov chain; functions of windows (k,)."""

    law: AbstractWindowLaw
    deaf: bool  # no reaction until a packet sent after the last one is acknowledged
    grows_marked: bool  # growth on an ACK that is reacted to
    grows_deaf: float  # share of the ACKs on which the window grows while deaf
    low: float
    high: float


def _check(law: AbstractWindowLaw) -> None:
    """Raise ValueError for a law whose state is more than its window, or that grows with time."""
    if isinstance(law.start(1.0), tuple) or set(law.reads) - {"mark", "drop"}:
        raise ValueError(f"{law.name}: expected a law without a memory beside its window")
    if law.draws:
        raise ValueError(f"{law.name}: expected a law without random numbers of its own")
    grown = [float(law.on_ack(7.0, Ack(1.0, *times))) for times in ((0.0, 1.0), (0.7, 3.0))]
    if grown[0] != grown[1] or law.rounds(_ONE) != 1:
        raise ValueError(f"{law.name}: expected growth and rounds by ACKs alone, not by time")


def _rules(law: AbstractWindowLaw, reaction: AbstractReaction, p: float, quiet: bool) -> _Rules:
    """The rules of a law and of its reaction, which say when it is deaf and when windows grow."""
    _check(law)

    def since(sent_after: float) -> Since:
        return Since(time=2.0 * sent_after, round_trip=1.0, window=sent_after)

    deaf = not float(reaction.ready(since(0.0))) > 0
    clean, marked = (float(reaction.growing(since(0.0), m)) for m in (0.0, 1.0))
    at_reaction = float(reaction.growing(since(1.0), 1.0)) > 0 and not quiet
    while_deaf = 0.0 if quiet and deaf else (1 - p) * clean + p * marked
    return _Rules(
        law, deaf, at_reaction, while_deaf, float(law.min_window), float(law.max_window)
    )  # fmt: skip


class _Grid(NamedTuple):
    """Windows on `columns` orbits of `rows` steps of growth, each on a block of ACKs."""

    windows: Array  # (rows, columns), as a block begins
    order: Array  # places by rising window
    middle: Array  # (rows, columns), at the ACK in the middle, for which reactions are taken
    cuts: Array  # (rows * columns,), what these leave


@compiled
def _grown(law: AbstractWindowLaw, w: Any) -> Any:
    """Windows after growth on one ACK."""
    return ops.minimum(w + law.on_ack(w, _ONE), law.max_window)


@compiled
def _cut(law: AbstractWindowLaw, w: Any) -> Any:
    """Windows after a reaction."""
    return ops.maximum(w + law.on_mark(w, _ONE), law.min_window)


@compile_once
def _orbits(law: AbstractWindowLaw, starts: Any, half: Any) -> Any:
    """Windows (k,) after all steps, and those as steps on 2 `half` + 1 ACKs begin and in between.

    The latter have shape (steps, 2, k).
    """

    def grow(_: Any, w: Any) -> Any:
        return _grown(law, w)

    def advance(w: Any, _: None) -> tuple[Any, Any]:
        middle = jax.lax.fori_loop(0, half, grow, w)
        return jax.lax.fori_loop(0, half + 1, grow, middle), jnp.stack([w, middle])

    return jax.lax.scan(advance, starts, None, length=_CHUNK)


def _grid(rules: _Rules, rows: int, columns: int, block: int) -> _Grid:
    """Orbits that start between the smallest window and its first step."""
    first = float(_grown(rules.law, rules.low))
    w = np.linspace(rules.low, first, columns, endpoint=False)
    parts = []
    for _ in range(0, rows, _CHUNK):
        w, part = _orbits(rules.law, w, block // 2)
        parts.append(np.asarray(part))
    windows, middle = np.moveaxis(np.concatenate(parts), 1, 0)
    order = np.argsort(windows, axis=None, kind="stable")
    return _Grid(windows, order, middle, np.asarray(_cut(rules.law, middle.ravel())))


def _landing(grid: _Grid) -> tuple[Array, Array, Array]:
    """Places below and above the window that each reaction leaves, and the share of the upper."""
    values = grid.windows.ravel()[grid.order]
    above = np.clip(np.searchsorted(values, grid.cuts, side="right"), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    gap = np.where(high > low, high - low, 1.0)
    share = np.clip((grid.cuts - low) / gap, 0.0, 1.0)
    return grid.order[above - 1], grid.order[above], share


def _along(source: Array, keep: float) -> Array:
    """Visits along the orbits, of what enters by `source` and goes on with probability `keep`.

    The last row stands for everything above it.
    """
    band = np.array([1.0, -keep])[:, None] * np.ones(len(source))
    visits, _ = dtbtrs(band, source, uplo="L", diag="U")
    visits[-1] /= 1 - keep
    return visits


class _Chain:
    """One grid: the cycle from reaction to reaction, and what ACKs and time see in it."""

    def __init__(self, rules: _Rules, p: float, rows: int, columns: int, block: int) -> None:
        self.rules, self.block = rules, block
        self.grid = _grid(rules, rows, columns, block)
        self.keep = (1 - p) ** block
        self._below, self._above, self._share = _landing(self.grid)
        windows = self.grid.middle
        self._deaf = np.maximum(np.floor(windows) - 1, 0) if rules.deaf else np.zeros(windows.shape)
        steps = self._deaf * rules.grows_deaf + rules.grows_marked
        self._shift = steps.ravel() / block

    def _after_reactions(self) -> scipy.sparse.csr_array:
        """Windows left by reactions at each window, after the growth before the next may come."""
        rows, columns = self.grid.windows.shape
        origin, whole = np.arange(rows * columns), np.floor(self._shift).astype(int)
        out = scipy.sparse.csr_array((origin.size, origin.size))
        for place, share in ((self._below, 1 - self._share), (self._above, self._share)):
            row, column = np.divmod(place, columns)
            for step, part in ((whole, 1 + whole - self._shift), (whole + 1, self._shift - whole)):
                target = np.minimum(row + step, rows - 1) * columns + column
                if (part > 0).any():
                    out = out + scipy.sparse.csr_array((share * part, (target, origin)), out.shape)
        return out

    def settle(self) -> Array:
        """Visits of ACKs that may be reacted to, for one reaction in all."""
        source, moved = np.zeros(self.grid.windows.shape), self._after_reactions()
        source[0, 0] = 1.0
        for _ in range(_MOST_REACTIONS):
            met = _along(source, self.keep).ravel()
            after = (moved @ (met / met.sum())).reshape(source.shape)
            change = np.abs(after - source).sum()
            source = after
            if change < _SETTLED:
                return _along(source, self.keep)
        raise ValueError(
            f"{self.rules.law.name}: the window does not settle in {_MOST_REACTIONS} reactions"
        )

    def _between_reactions(self) -> Array:
        """Mean window from each reaction until the next may come."""
        rows, columns = self.grid.windows.shape
        row, column = np.divmod(self._below, columns)
        row = np.minimum(row + np.round(self._shift).astype(int), rows - 1)
        return np.where(self._shift > 0, (self.grid.cuts + self.grid.windows[row, column]) / 2,
                        self.grid.cuts)  # fmt: skip

    def seen(self, visits: Array) -> tuple[Array, Array, Array]:
        """Windows, and shares of ACKs and of time at each of them.

        Between reactions a sender receives the ACKs of the window that it reacted with, in a round
        trip. Of these the first do not let it send, as more than the new window is under way, and
        no ACKs come when theirs are due.
        """
        windows, met = self.grid.middle.ravel(), visits.ravel() * (1 - self.keep)
        values = np.concatenate([windows, self._between_reactions()])
        acks, deaf = visits.ravel() * self.block, met * self._deaf.ravel()
        silent = met * (windows - self.grid.cuts) if self.rules.deaf else 0.0
        packets = np.concatenate([acks, deaf])
        time = np.concatenate([acks / windows, (deaf + silent) / windows])
        order = np.argsort(values)
        return values[order], (packets / packets.sum())[order], (time / time.sum())[order]


def _rows(rules: _Rules, p: float, block: int) -> int:
    """Steps of growth that no run without a mark exceeds, as a power of two."""
    rows = _CHUNK
    while rows <= _MOST_POINTS // 4:
        chain = _Chain(rules, p, rows, 1, block)
        visits = chain.settle()
        reached = chain.grid.windows[-1, 0] >= rules.high
        if reached or visits[-1].sum() < _LOST * visits.sum():
            return rows
        rows *= 2
    raise ValueError(
        f"{rules.law.name}: its growth between marks of {p:g} takes more steps than are counted"
    )


def drift(law: AbstractWindowLaw, reaction: AbstractReaction, p: float, w: float) -> float:
    """Mean change of a window per ACK."""
    share = reaction.shares(p, w, _ONE.rtt)
    return float(share.growing * law.on_ack(w, _ONE) + share.reacting * law.on_mark(w, _ONE))


def _fluid_window(law: AbstractWindowLaw, reaction: AbstractReaction, p: float) -> float | None:
    """The window at which the mean drift vanishes, within the law's limits."""
    low, high = float(law.min_window), min(float(law.max_window), 1e12)
    if drift(law, reaction, p, low) <= 0:
        return low
    if drift(law, reaction, p, high) >= 0:
        return high if math.isfinite(float(law.max_window)) else None
    root: Any = scipy.optimize.brentq(lambda w: drift(law, reaction, p, w), low, high, xtol=1e-12)
    return float(root)


def window_distribution(
    law: AbstractWindowLaw, p: float, *, reaction: AbstractReaction, quiet: bool = False
) -> WindowDistribution:
    """Stationary distribution of a window under independent marks of probability `p`.

    Parameters
    ----------
    law
        A window law whose only memory is its window, and which grows by ACKs.
    p
        Probability that a packet is marked, from 1e-8 up and below 1.
    reaction
        Which marks count. One that waits for a window of data, or a round trip, is deaf for the
        packets that are in flight when it reacts.
    quiet
        Whether the window stands still while the reaction is deaf, as TCP's does under echoes that
        last until it confirms them (RFC 3168, 6.1.3).

    Returns
    -------
    WindowDistribution
        `window` (k,) [packet], and the shares of `packets` and of `time` at each, shape (k,).

    Raises
    ------
    ValueError
        For another law, a probability out of range, and where windows reach too far or settle too
        slowly for the grid.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws.reaction import PerMark
    >>> from fluidcc.laws.window.ecn_mod import ECNMod
    >>> found = fc.window_distribution(ECNMod(), 0.01, reaction=PerMark())
    >>> round(found.window_per_packet, 4), round(found.window_fluid, 4)
    (49.5, 49.5)
    """
    if not _LEAST_P <= p < 1:
        raise ValueError(f"p: expected a probability in [{_LEAST_P:g}, 1), got {p!r}")
    rules = _rules(law, reaction, p, quiet)
    block = 2 * int(_BLOCK / p / 2) + 1
    rows = _rows(rules, p, block)
    columns = max(_LEAST_POINTS // rows, 1)
    result, error = None, math.inf
    while True:
        chain = _Chain(rules, p, rows, columns, block)
        shares = chain.seen(chain.settle())
        mean = float(shares[1] @ shares[0])
        if result is not None:
            error = abs(mean / float(result[1] @ result[0]) - 1)
        result = shares
        if error < _PRECISE or 2 * rows * columns > _MOST_POINTS:
            break
        columns *= 2
    windows, packets, time = result
    small, note = float(time[windows < _TIMEOUTS].sum()), ""
    if small > 0.05:
        note = (
            f"{small:.0%} of the time below {_TIMEOUTS:g} packets, where timeouts slow a sender "
            "down as well"
        )
    fluid = _fluid_window(law, reaction, p)
    return WindowDistribution(p, windows, packets, time, fluid, error, note)


@dataclasses.dataclass(frozen=True, repr=False)
class WindowDistributions(Result):
    """Stationary windows by group of flows; of the other groups, why they have none.

    `groups` has the distributions, `missing` the reasons.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.window_distributions(fc.load("hollot2001/slow"))
    >>> found.status, found.missing
    ('ok', {})
    """

    _view = "runs.WindowsView"

    groups: Mapping[str, WindowDistribution]
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

    def to_xarray(self) -> xarray.Dataset:
        """Moments by group, and the windows below which a flow is for a share of the time."""
        import xarray as xr

        data: dict[str, Any] = {
            name: ("group", self._each(name), attributes("windows", name)) for name in _MOMENTS
        }
        rows = [[own.quantile(share) for share in SHARES] for own in self.groups.values()]
        values = np.array(rows, float).reshape(-1, len(SHARES))
        wanted = attributes("windows", "window_quantile")
        data["window_quantile"] = (("group", "share"), values, wanted)
        coords = labels(group=self.groups, share=SHARES)
        return xr.Dataset(data, coords, {"status": self.status, "message": self.message})

    def _each(self, name: str) -> np.ndarray:
        return np.array([getattr(own, name) for own in self.groups.values()], float)


@reporting
def window_distributions(
    net: Network, *, p: float | None = None, progress: Callable[[float], object] | None = None
) -> WindowDistributions:
    """Stationary windows of the groups of a network, one packet at a time.

    Parameters
    ----------
    net
        The network.
    p
        Probability of a mark, the same for all groups; None for that of each at equilibrium.
    progress
        Called with the finished share, in [0, 1], after each group.

    Returns
    -------
    WindowDistributions
        With a reason for each group that has none: for losses, laws with more memory than a
        window, and marks outside of what `window_distribution` takes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.window_distributions(fc.load("misra2003/mixed"))
    >>> {name: round(own.window_bias, 2) for name, own in found.groups.items()}
    {'mod': 0.07, 'newreno': 0.3}
    """
    return windows_at(equilibrium(net)) if p is None else _windows(net, lambda name, flows: p)


def windows_at(eq: Equilibrium) -> WindowDistributions:
    """Stationary windows under the marks at equilibrium; biases are those of the fluid model."""

    def mark_probability(name: str, flows: Flows) -> float:
        if name not in eq.flows or not np.all(np.isfinite(eq.flows[name].mark_probability)):
            raise ValueError(f"no equilibrium is known: the status is {eq.status}")
        return float(mean_over_flows(flows.n, eq.flows[name].mark_probability))

    return _windows(eq.net, mark_probability)


def _windows(net: Network, marks: Callable[[str, Flows], float]) -> WindowDistributions:
    groups, missing = {}, {}
    for name, flows in counted([*zip(net.flow_names, net.flows, strict=True)]):
        try:
            if not (flows.feedback.marks and sees_marks(flows)):
                raise ValueError(
                    "its feedback is no marks; the distribution is that under independent marks"
                )
            groups[name] = window_distribution(
                flows.window, marks(name, flows), reaction=flows.reaction, quiet=stands_still(flows)
            )
        except ValueError as error:
            missing[name] = str(error)
    return WindowDistributions(groups, missing)
