"""Gain, phase and delay margins of a loop given by its frequency response, delays exact."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from typing import cast

import numpy as np

from fluidcc.analysis.bisection import find_zero
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.winding import count_roots, frequency_bounds

Loop = Callable[[Array], Array]
"""L(i w) for an array of frequencies w [rad/s]."""

_ENTRIES = 1e6  # of the matrices in one batch of frequencies
_COARSE = 30  # points a decade in the first scan
_DECADES = (-9, 5)  # of the scan, about the scale of frequencies
_FAINT = 1e-2  # gain below which phase crossovers are ignored
_NOISE = 1e-12  # of the largest gain; below, phases are rounding
_FINE = 0.5  # largest change of log L between nodes
_SMOOTH = 0.05  # largest difference of that between the halves of an interval
_FEWEST, _MOST_NODES = 17, 400_000
_CLOSED = 1e-9  # of log L, at a crossover
_BELOW = 0.99  # of the gain at which a loop is critical


@dataclasses.dataclass(frozen=True)
class GainCrossover:
    """Gain crossover, |L| = 1: frequency [rad/s]; phase margin [deg], phase unwrapped from DC."""

    frequency: float
    phase_margin: float

    @property
    def delay_margin(self) -> float:
        """Additional delay that makes this crossover critical [s]."""
        return math.radians(self.phase_margin) / self.frequency


@dataclasses.dataclass(frozen=True)
class PhaseCrossover:
    """Phase crossover, L real and negative: frequency [rad/s] and gain margin 1/|L|."""

    frequency: float
    gain_margin: float


@dataclasses.dataclass(frozen=True)
class Margins:
    """All crossovers of a loop, by frequency; the properties are those nearest to critical.

    A margin is infinite if there is no crossover. Positive margins prove nothing if there are
    several crossovers: the count of unstable roots decides.
    """

    gain_crossovers: tuple[GainCrossover, ...]
    phase_crossovers: tuple[PhaseCrossover, ...]
    zero_frequency_gain: float

    @property
    def _nearest_gain(self) -> GainCrossover | None:
        return min(self.gain_crossovers, key=lambda c: abs(c.phase_margin), default=None)

    @property
    def _nearest_phase(self) -> PhaseCrossover | None:
        nearest = self.phase_crossovers
        return min(nearest, key=lambda c: abs(math.log(c.gain_margin)), default=None)

    @property
    def phase_margin(self) -> float:
        """Least phase margin by modulus [deg]."""
        return self._nearest_gain.phase_margin if self._nearest_gain else math.inf

    @property
    def gain_crossover(self) -> float:
        """Frequency of that crossover [rad/s]; NaN without one."""
        return self._nearest_gain.frequency if self._nearest_gain else math.nan

    @property
    def delay_margin(self) -> float:
        """Least delay margin by modulus [s]."""
        return min((c.delay_margin for c in self.gain_crossovers), key=abs, default=math.inf)

    @property
    def gain_margin(self) -> float:
        """Gain margin nearest to 1, a factor."""
        return self._nearest_phase.gain_margin if self._nearest_phase else math.inf

    @property
    def phase_crossover(self) -> float:
        """Frequency of that crossover [rad/s]; NaN without one."""
        return self._nearest_phase.frequency if self._nearest_phase else math.nan


def margins(
    loop: Loop, *, scale: float = 1.0, estimates: tuple[Loop, Loop] | None = None
) -> Margins:
    """Every gain and phase crossover of a loop.

    `scale` [rad/s] is a typical frequency: crossovers are sought from 1e-9 to 1e5 times it, and
    phase crossovers as long as the gain is above 1 %. `estimates` are a fair and a poor one of the
    loop, which cost less: the fair one is followed in its place, and tells where the gain falls
    below 1 %, unless it is as near to a crossover, where it has none, as the two differ. Raises
    ArithmeticError if the phase cannot be followed.
    """
    if estimates is not None:
        fair, poor = estimates
        with contextlib.suppress(ArithmeticError):
            frequency, log = followed(fair, scale=scale)
            found = _close(loop, frequency, log, abs(poor(frequency) - np.exp(log)))
            if found is not None:
                return found
    frequency, log = followed(loop, scale=scale)
    return cast(Margins, _close(loop, frequency, log, np.zeros(len(log))))


def _close(loop: Loop, w: Array, log: Array, error: Array) -> Margins | None:
    """The crossovers of a loop between frequencies [rad/s], with log L there, in which L may have
    an error; None if that leaves open which crossovers there are.
    """
    size, angle, gain = np.real(log), np.imag(log), np.exp(log)
    phase = _unwrap(angle)
    behind = np.floor((phase - math.pi) / (2 * math.pi))
    of_gain, of_phase = np.flatnonzero(np.diff(size > 0)), np.flatnonzero(np.diff(behind))
    off_axis = np.where(np.real(gain) < 0, abs(np.imag(gain)), abs(gain))
    by_gain = _brackets(of_gain, abs(abs(gain) - 1) >= error)
    by_phase = _brackets(of_phase, off_axis >= error)
    if by_gain is None or by_phase is None:
        return None
    at, count = np.concatenate([of_gain, of_phase]), len(of_gain)
    is_gain = np.arange(len(at)) < count

    def zero(gain: Array) -> Array:
        """What is zero at each crossover."""
        return np.where(is_gain, np.real(_log(gain)), np.angle(-gain))

    def off(w: Array) -> Array:
        return zero(loop(w.ravel()).reshape(w.shape))

    sign, crossing = np.where(zero(gain[at]) > 0, 1.0, -1.0), w[:0]
    if len(at):
        x = np.log(w)
        low, high = x[np.concatenate([by_gain, by_phase], axis=1)]
        near = x[at], x[at + 1]
        crossing = np.exp(find_zero(lambda x: sign * off(np.exp(x)), low, high, near))
    at_all = loop(np.append(crossing, w[0]))
    if error.any() and np.any(abs(zero(at_all[:-1])) > _CLOSED):
        return None
    at_gain, at_phase = at_all[:count], at_all[count:-1]
    node = np.clip(np.searchsorted(w, crossing[:count]) - 1, 0, None)
    turned = np.angle(at_gain * np.exp(-1j * angle[node]))
    margin = 180.0 + np.degrees(phase[node] + turned)
    return Margins(
        tuple(map(GainCrossover, crossing[:count].tolist(), margin.tolist())),
        tuple(map(PhaseCrossover, crossing[count:].tolist(), (1 / abs(at_phase)).tolist())),
        float(abs(at_all[-1])),
    )


def _unwrap(angle: Array) -> Array:
    """The phase of a loop at neighbouring frequencies, from zero frequency on, by its angles."""
    turn = np.angle(np.exp(1j * np.diff(angle)))
    start = angle[0] - 2 * math.pi * (angle[0] > 0.75 * math.pi)
    return np.concatenate([[start], start + np.cumsum(turn)])


def _brackets(crossing: Array, clear: Array) -> Array | None:
    """Indices (2, n) of the nearest clear points on both sides of crossings, which are between an
    index and the next; None if there is one crossing too few or too many between any of these.
    """
    known = np.flatnonzero(clear)
    gaps = np.flatnonzero(np.diff(known) > 1)
    before = np.searchsorted(known, crossing, side="right") - 1
    one_each = np.all(np.diff(before) > 0) and np.all(np.isin(gaps, before))
    if not (clear[0] and clear[-1] and one_each):
        return None
    return known[np.stack([before, before + 1])]


def followed(loop: Loop, *, scale: float = 1.0) -> tuple[Array, Array]:
    """Frequencies [rad/s] dense enough to follow the phase of the loop, and log L there.

    They range from where L is a power of the frequency to where it is faint; `scale` and exceptions
    are those of `margins`.
    """
    return _dense(loop, *_band(loop, scale))


def _band(loop: Loop, scale: float) -> tuple[Array, Array]:
    """Frequencies between which the loop is no mere power of frequency and not faint, and log L
    there.
    """
    first, last = _DECADES
    w = scale * np.logspace(first, last, _COARSE * (last - first) + 1)
    gain = loop(w)
    noise = np.abs(gain) <= _NOISE * np.max(np.abs(gain))
    loudest = int(np.argmax(np.abs(gain)))
    lost = np.flatnonzero(noise[:loudest])  # a busy link before it hides a link at low frequencies
    w, gain = w[lost[-1] + 1 :] if lost.size else w, gain[lost[-1] + 1 :] if lost.size else gain
    log = _log(gain)
    slope = np.diff(np.unwrap(np.imag(log)) * 1j + np.real(log)) / np.diff(np.log(w))
    settled = np.abs(slope - np.round(np.real(slope))) < 1e-3
    decade = np.convolve(settled, np.ones(_COARSE), "valid") == _COARSE
    power = 0 if settled[0] else int(np.argmax(decade))  # poles at zero are rounding below it
    begin = power + int(np.argmin(settled[power:])) if not settled[power:].all() else 0
    loud = np.flatnonzero(np.real(log) > math.log(_FAINT))
    end = min(int(loud[-1]) + 1, len(w) - 1) if loud.size else begin
    turned = np.flatnonzero(np.unwrap(np.imag(log)) < np.imag(log)[0] - 1.1 * math.pi)
    if turned.size:  # keep the first crossing of the negative axis, however faint
        end = max(end, min(int(turned[0]) + 1, len(w) - 1))
    within = slice(begin, max(end, begin + 1) + 1)
    return w[within], log[within]


def _dense(loop: Loop, w: Array, log: Array) -> tuple[Array, Array]:
    """Frequencies dense enough to follow log L, and log L there, from a few of them.

    Raises ArithmeticError if the loop cannot be resolved.
    """
    doubt = np.ones(len(w) - 1, bool)
    while doubt.any():
        at = np.flatnonzero(doubt)
        middle = np.sqrt(w[at] * w[at + 1])
        jumps = (middle <= w[at]) | (middle >= w[at + 1])
        if len(w) > _MOST_NODES or jumps.any():
            near = middle[np.argmax(jumps)]
            raise ArithmeticError(f"the loop's phase cannot be followed near {near:.6g} rad/s")
        inside = _log(loop(middle))
        one, two = inside - log[at], log[at + 1] - inside
        one, two = _principal(one), _principal(two)
        rough = (np.abs(one) > _FINE) | (np.abs(two) > _FINE) | (np.abs(one - two) > _SMOOTH)
        w, log = np.insert(w, at + 1, middle), np.insert(log, at + 1, inside)
        doubt = np.full(len(w) - 1, len(w) < _FEWEST)
        place = at + np.arange(len(at))
        doubt[place] |= rough
        doubt[place + 1] |= rough
    return w, log


def _log(gain: Array) -> Array:
    """Log of a gain, also where it is 0: links that are idle pass nothing on."""
    return np.log(np.where(gain == 0, np.finfo(float).tiny, gain))


def _principal(log: Array) -> Array:
    return np.real(log) + 1j * np.angle(np.exp(1j * np.imag(log)))


def loop_gain(system: Linear, link: int) -> Loop:
    """Frequency response of the loop cut where a link's signal leaves it.

    That is the loop cut at the argument of the link's marking function: the input is the signal
    that senders see, the output, with its sign changed, the one that the link would emit. All other
    loops stay closed. Raises ValueError if no signal of the link varies and reaches a sender.
    """
    rows = received_signals(system, link)
    if not rows:
        raise ValueError(
            f"link {link} has no signal that depends on its queue and reaches a sender"
        )
    opened, late, wires = system.C.copy(), system.D.copy(), system.size[1]
    returned = [wires + i for i in range(len(rows))]
    opened[rows], late[rows] = 0.0, 0.0
    open_loop = dataclasses.replace(
        system,
        C=np.concatenate([opened, system.C[rows]]),
        D=np.concatenate([late, system.D[rows]]),
        output_owner=np.concatenate([system.output_owner, system.output_owner[rows]]),
    )
    characteristic = Characteristic(open_loop, keep=[*rows, *returned])

    def part(w: Array) -> Array:
        gain = -characteristic.response(1j * w, returned, rows)
        if len(rows) == 1:
            return gain[:, 0, 0]
        return np.linalg.det(np.eye(len(rows)) + gain) - 1

    def loop(w: Array) -> Array:
        w = np.asarray(w, float)
        pieces = math.ceil(len(w) * characteristic.layout.total / _ENTRIES)
        return np.concatenate([part(piece) for piece in np.array_split(w, max(1, pieces))])

    return loop


def received_signals(system: Linear, link: int) -> list[int]:
    """Indices of the signals of a link that vary and reach a sender."""
    used = system.used()
    varies = np.any(system.C != 0, axis=1) | np.any(system.D != 0, axis=1)
    return [j for j in system.signals[link] if used[j] and varies[j]]


def heard_links(system: Linear) -> list[int]:
    """Links whose signals vary and reach a sender."""
    return [k for k in range(len(system.signals)) if received_signals(system, k)]


def scale_of(system: Linear) -> float:
    """A typical frequency [rad/s], about which crossovers are sought."""
    bound = frequency_bounds(Characteristic(system), np.zeros(1, int), np.zeros(1))[0]
    return float(bound) if bound > 0 else 1.0


def link_margins(system: Linear, *, scale: float) -> list[tuple[int, Margins]]:
    """Links whose signals vary and reach a sender, each with its margins, other loops closed."""
    return [(k, margins(loop_gain(system, k), scale=scale)) for k in heard_links(system)]


def stabilizing_gain(system: Linear, margins: Margins) -> float | None:
    """The factor on the loop gain below which an unstable system is stable, at least just below it.

    None if several links have a loop, a link has several signals, or no such factor is found.
    """
    links = heard_links(system)
    rows = received_signals(system, links[0]) if len(links) == 1 else []
    gain = min((c.gain_margin for c in margins.phase_crossovers), default=math.inf)
    if len(rows) != 1 or not gain < 1:
        return None
    C, D = system.C.copy(), system.D.copy()
    C[rows] *= _BELOW * gain
    D[rows] *= _BELOW * gain
    count = count_roots(Characteristic(dataclasses.replace(system, C=C, D=D)))
    return gain if count.number == 0 else None


def system_margins(system: Linear, *, scale: float) -> Margins:
    """Margins of all links' loops together, each cut with the others closed."""
    return together(found for _, found in link_margins(system, scale=scale))


def together(margins: Iterable[Margins]) -> Margins:
    """Margins of several loops as those of one."""
    each = list(margins)
    return Margins(
        tuple(itertools.chain.from_iterable(m.gain_crossovers for m in each)),
        tuple(itertools.chain.from_iterable(m.phase_crossovers for m in each)),
        max((m.zero_frequency_gain for m in each), default=0.0),
    )


@dataclasses.dataclass(frozen=True)
class LoopCurve:
    """The response L(i w) of the loop cut at a link's signal, all other loops closed.

    `link` is the number of the link, `frequency` (k,) is w [rad/s], `response` (k,) is L.
    """

    link: int
    frequency: Array
    response: Array

    @property
    def magnitude(self) -> Array:
        """|L|, (k,)."""
        return np.abs(self.response)

    @property
    def phase(self) -> Array:
        """Phase of L [deg], unwrapped from zero frequency, (k,)."""
        return np.degrees(_unwrap(np.angle(self.response)))


def loop_curves(system: Linear) -> tuple[LoopCurve, ...]:
    """The curve of each link whose signal varies and reaches a sender, over the band of `margins`.

    Raises ArithmeticError if a curve cannot be followed.
    """
    scale = scale_of(system)
    links = heard_links(system)
    return tuple(loop_curve(link, loop_gain(system, link), scale=scale) for link in links)


def loop_curve(link: int, loop: Loop, *, scale: float) -> LoopCurve:
    """The curve of a link over the band of `margins`, twice as dense, to be drawn."""
    nodes, _ = followed(loop, scale=scale)
    frequency = np.sort(np.concatenate([nodes, np.sqrt(nodes[:-1] * nodes[1:])]))
    return LoopCurve(link, frequency, loop(frequency))
