"""Views of equilibria, their stability, and changes of stability along parameters."""

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.margins import LoopCurve
from fluidcc.analysis.scan import DECADE, scale_of
from fluidcc.analysis.stability import UNSTABLE_LOOP
from fluidcc.quantities import unit_of
from fluidcc.result import View, plain
from fluidcc.results.axes import (
    MARKERS,
    PALE,
    STABLE,
    abreast,
    add_delay,
    fit_scale,
    from_zero,
    is_narrow,
    legend_above,
    parameter_axis,
    tied,
    width_of,
    wrapped,
)
from fluidcc.results.blocks import (
    DASH,
    Block,
    Measured,
    Number,
    known,
    lines,
    number,
    parameter,
    span,
    table,
    verdict,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_MANY = 6  # most round trips of a group that are shown one per line


MEANINGS = {
    "regular": "increases and decreases balance",
    "continuum": "there are many equilibria side by side, and one of them is shown",
    "nonsmooth": "the model switches during the cycle, as where a queue runs empty",
}
"""Statuses whose meaning is printed with them."""


def explained(result: Any) -> str:
    """The status of a result with its meaning and its message."""
    why = "; ".join(filter(None, [MEANINGS.get(result.status), result.message]))
    return f"{result.status} ({why})" if why else result.status


def head(equilibrium: Any) -> Block:
    """The status of an equilibrium in a line."""
    good = {"regular": True, "empty": True, "none": False}.get(equilibrium.status)
    return verdict(good, f"Equilibrium: {explained(equilibrium)}")


class EquilibriumView(View):
    """Links and groups of flows at equilibrium; rates and windows over round trips."""

    engines = ("equilibrium", "data")
    size = (2.6, 2)
    names = (
        "links.queue", "links.queueing_delay", "links.mark_probability", "links.utilization",
        "flows.window",
    )  # fmt: skip
    heads = (
        "link", "queue", "queueing_delay", "average", "mark_probability", "utilization",
        "group", "round trips", "window", "rtt", "rate",
    )  # fmt: skip

    def tables(self, rows: int | None = None) -> list[Block]:
        """Links and groups of flows."""
        keys = ("average", "mark_probability", "utilization")
        heads = (*known("links", "queue"), ("queueing_delay", "ms"), *known("links", *keys))
        links = table("Links", "link", *heads)
        for name, link in self.found.links.items():
            first = link.queue, 1e3 * link.queueing_delay
            links.add_row(name, *map(Number, (*first, *(getattr(link, key) for key in keys))))
        columns = (
            *known("flows", "window"),
            ("rtt", "ms"),
            ("queueing_delay", "ms"),
            *known("flows", "rate", "mark_probability"),
        )
        flows = table("Flows", "group", "round trips", *columns)
        for name, group in self.found.flows.items():
            arrays = (
                group.window, 1e3 * group.rtt, 1e3 * group.queueing_delay, group.rate,
                group.mark_probability,
            )  # fmt: skip
            values = [np.asarray(array, float).tolist() for array in arrays]
            size = len(group.window)
            if np.any(np.isnan(group.window)):
                flows.add_row(name, str(size), *(DASH for _ in values))
            elif size > _MANY:
                flows.add_row(name, str(size), *map(span, values))
            else:
                for k, row in enumerate(zip(*values, strict=True)):
                    label = "1" if size == 1 else f"{k + 1} of {size}"
                    flows.add_row(name, label, *map(Number, row))
        return [head(self.found), links, flows]

    def value(self, part: Any, name: str) -> float:
        """That of a link, or the mean over the round trips of a group."""
        return float(np.mean(getattr(part, name)))

    def draw(self, figure: "SubFigure") -> None:
        """Rates and windows over round trips."""
        axes = abreast(figure)
        for k, (name, group) in enumerate(self.found.flows.items()):
            for ax, key in zip(axes, ("rate", "window"), strict=True):
                mark = MARKERS[k % len(MARKERS)]
                ax.plot(1000 * np.asarray(group.rtt), getattr(group, key), mark, label=name)
        queues = "; ".join(
            tied(f"{name} {v.queue:.4g} packets, {1e3 * v.queueing_delay:.4g} ms")
            for name, v in self.found.links.items()
        )
        status = "" if self.found.status == "regular" else f"{self.found.status}; "
        figure.suptitle(f"{status}queue and its delay: {queues}")
        for ax, label in zip(axes, ("rate of a flow [packet/s]", "window [packet]"), strict=True):
            ax.set(xlabel="round trip [ms]", ylabel=label)
            legend_above(ax)
        from_zero(*axes)


class FluctuationsView(View):
    """Spread of queues and windows; the spectrum of the queue, and the queue with its band."""

    engines = ("noise", "data")
    size = (2.6, 2)
    interval = "mean, and 5 to 95 % of the time"
    names = ("links.queue", "links.queue_std", "links.queueing_delay", "margin")
    heads = (
        "link", "queue", "queue_std", "5 %", "50 %", "95 %", "queueing_delay",
        "queueing_delay_95", "idle", "group", "window", "window_std", "rate", "rate_std",
    )  # fmt: skip

    def tables(self, rows: int | None = None) -> list[Block]:
        """Links and groups of flows."""
        found = self.found
        first = verdict(found.status == "regular", f"Fluctuations: {explained(found)}")
        distance = lines(
            f"distance of the loop gain from -1, critical: {number(found.margin, 3)}",
            f"queues fluctuate most at {number(found.frequency, 3)} rad/s, the peak of their "
            "spectrum under random marks: neither a crossover nor a root of the loop"
            if found.status == "regular" else "",
        )  # fmt: skip
        links = table(
            "Links", "link", *known("links", "queue", "queue_std"), "5 %", "50 %", "95 %",
            ("queueing_delay", "ms"), ("queueing_delay_95", "ms"), "idle",
        )  # fmt: skip
        for name, link in found.links.items():
            own, delay = link.queue.quantiles, link.queueing_delay
            cells = (link.queue.mean, link.queue.std, *(own.get(p) for p in (0.05, 0.5, 0.95)))
            late = 1e3 * delay.mean, 1e3 * delay.quantiles.get(0.95, math.nan)
            links.add_row(name, *map(Number, (*cells, *late, link.idle)))
        flows = table("Flows", "group", *known("flows", "window", "window_std", "rate", "rate_std"))
        for name, group in found.flows.items():
            spread = (v for pair in (group.window, group.rate) for v in (pair.mean, pair.std))
            flows.add_row(name, *map(Number, spread))
        return [first, *([] if math.isnan(found.margin) else distance), links, flows]

    def value(self, part: Any, name: str) -> Any:
        """Mean and standard deviation of each queue, its delay with a band, and the margin."""
        if name == "queueing_delay":
            delay = part.queueing_delay
            return delay.mean, NormalDist().inv_cdf(0.95) * delay.std
        known = {"queue": "mean", "queue_std": "std"}
        return getattr(part.queue, known[name]) if name in known else getattr(part, name)

    def draw(self, figure: "SubFigure") -> None:
        """The spectrum of the queue, and its share of the time below each length."""
        found = self.found
        if found.status != "regular":
            raise ValueError(f"no picture: {found.message}")
        spectrum, share = abreast(figure)
        for name, density in found.density.items():
            label = name if len(found.density) > 1 else None
            spectrum.loglog(found.omega, np.maximum(density, 1e-300), label=label)
        top = max(float(density.max()) for density in found.density.values())
        spectrum.set(
            xlabel="frequency [rad/s]", ylabel="density of the queue [packet² s]",
            ylim=(1e-6 * top, 2 * top),
        )  # fmt: skip
        peak = f"largest at {found.frequency:.3g} rad/s"
        spectrum.axvline(found.frequency, color="0.3", linestyle="--", label=peak)
        for name in found.density:
            queue = found.links[name].queue
            low, high = (max(queue.mean + k * queue.std, 0.0) for k in (-3.0, 3.0))
            q = np.linspace(low, high, 200)
            below = [NormalDist(queue.mean, queue.std).cdf(v) for v in q]
            share.plot(q, below, label=name if len(found.density) > 1 else None)
            ends = queue.quantiles[0.05], queue.quantiles[0.95]
            share.axvspan(*ends, alpha=PALE, label="5 to 95 % of the time")
        drawn = [found.links[name] for name in found.density]
        add_delay(share, ((v.queue.mean, v.queueing_delay.mean) for v in drawn), "x")
        share.set(xlabel="queue [packet]", ylabel="share of the time below [1]", ylim=(0, 1))
        share.legend(loc="lower right")  # the delay is above
        legend_above(spectrum)


class EquationView(View):
    """State and lags of a delay equation at equilibrium."""

    instead = "it is a point; draw its stability, or a solution that converges to it"

    def tables(self, rows: int | None = None) -> list[Block]:
        """States and lags."""
        states = table("States", "state", "at equilibrium")
        lags = table("Lags", "lag", ("value", "s"))
        for name, value in _named("y", plain(self.found.y)):
            states.add_row(name, Number(value, 8))
        for k, lag in enumerate(plain(self.found.lags)):
            lags.add_row(str(k), Number(lag, 8))
        return [head(self.found), states, lags]


def _named(name: str, value: Any) -> list[tuple[str, Any]]:
    """The numbers of a state with their paths, such as ``y.queue[0]``."""
    if isinstance(value, Mapping):
        return [pair for key, part in value.items() for pair in _named(f"{name}.{key}", part)]
    if isinstance(value, list):
        return [pair for k, part in enumerate(value) for pair in _named(f"{name}[{k}]", part)]
    return [(name, value)]


_SHOWN = 8  # roots
_VIEW = ((-2.2, 1.4), (-1.9, 1.9))  # of the Nyquist plot


ROOT = ("unstable", "root_real", "frequency")
"""The numbers of a rightmost root."""


def root(rightmost: complex | None, unstable: int | None) -> dict[str, Measured]:
    """The rightmost root as growth rate and frequency, and the number of unstable roots."""
    growth, frequency = (None, None) if rightmost is None else (rightmost.real, rightmost.imag)
    values = (unstable, growth, None if frequency is None else abs(frequency))
    return {
        name: Measured(value, unit_of("loop", name))
        for name, value in zip(ROOT, values, strict=True)
    }


def period(frequency: float | None) -> Number:
    """The period of a frequency [rad/s] in s."""
    return Number(2 * math.pi / abs(frequency) if frequency else None)


def decibels(gain: Any) -> Any:
    """A factor in decibels."""
    return 20 * np.log10(gain)


def gain_label(gain: float) -> str:
    """The gain margin as pictures have it."""
    return f"gain margin {gain:.3g} ({decibels(gain):.3g} dB)"


def judged(result: Any) -> list[Block]:
    """The verdict on stability, and what there is to say on it and on the margins."""
    message = result.message.replace(UNSTABLE_LOOP, result.describe_margins())
    if result.unstable is None:
        why = message.removeprefix(result.equilibrium.message).removeprefix("; ")
        unknown = verdict(None, f"Stability: unknown ({result.status})")
        return [unknown, *lines(why, tone="bold")]
    certificate = f"certified by the argument principle in {result.proof}"
    proof = certificate if result.certified else "not certified"
    unstable = f"unstable, {result.unstable} roots in the right half plane"
    text = {True: "stable", False: unstable, None: "undetermined"}[result.stable]
    return [verdict(result.stable, f"Stability: {text} ({proof})"), *lines(message, tone="bold")]


def margin_table(result: Any) -> list[Block]:
    """Margins with the frequencies of their crossovers; the gain margin in decibels too."""
    if result.unstable is None:
        return []
    title, gain = "Margins, at the crossovers of the loop gain", result.gain_margin
    margins = table(title, "margin", "value", ("at", "rad/s"))
    crossover = Number(result.gain_crossover)
    factor = DASH if gain is None else f"{number(gain)} ({number(float(decibels(gain)), 3)} dB)"
    margins.add_row("gain", factor, Number(result.phase_crossover))
    margins.add_row("phase [deg]", Number(result.phase_margin), crossover)
    margins.add_row("delay [s]", Number(result.delay_margin), crossover)
    return [margins]


class StabilityView(View):
    """The verdict, margins and roots; the Nyquist curve of a network with a linearisation."""

    engines = ("equilibrium", "data")
    names = ("gain_margin", "phase_margin", "delay_margin")
    heads = (*EquilibriumView.heads, "margin", "value", "at", "real", "imaginary", "period")

    @property
    def size(self) -> Any:
        """A panel for the roots, and one for the loop if there is one."""
        result = self.found
        has_loop = result.margins is not None
        return 3.4, 2 if has_loop and isinstance(result.equilibrium, Equilibrium) else 1

    def tables(self, rows: int | None = None) -> list[Block]:
        """The verdict, margins and rightmost roots."""
        result = self.found
        title = "Rightmost roots, of small deviations from the equilibrium"
        roots = table(title, ("real", "1/s"), ("imaginary", "rad/s"), ("period", "s"))
        for s in map(complex, result.roots[:_SHOWN]):
            roots.add_row(Number(s.real, 8), Number(s.imag, 8), period(s.imag))
        shown = [roots] if len(result.roots) else []
        return [*result.equilibrium.tables(), *judged(result), *margin_table(result), *shown]

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """The numbers of the rightmost root, and margins."""
        return [*ROOT, *super().quantities(net, paths)]

    def numbers(self) -> dict[str, Measured]:
        """Number of unstable roots, the rightmost root, and margins."""
        return root(self.found.rightmost, self.found.unstable) | super().numbers()

    def draw(self, figure: "SubFigure") -> None:
        """The rightmost roots, and the Nyquist curve with its margins if there is a loop.

        Raises ValueError without roots.
        """
        result = self.found
        if not len(result.roots) and result.population is None:
            raise ValueError(f"no picture: {result.message or result.status}")
        left, *right = abreast(figure, self.size[1])
        _roots(left, result)
        for ax in right:
            draw_nyquist(ax, result, result.curves())


def _roots(ax: "Axes", result: Any) -> None:
    verdicts = {True: "stable", False: f"unstable, {result.unstable} roots", None: "undetermined"}
    proof = "certified" if result.certified else "not certified"
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.plot([], [], " ", label=f"{verdicts[result.stable]} ({proof})")
    for colour, mark, unstable in (("C0", "x", False), ("C1", "+", True)):
        roots = [complex(s) for s in result.roots if (s.real > 0) == unstable]
        word = "unstable roots" if unstable else "stable roots"
        if roots:
            x, y = [s.real for s in roots], [s.imag for s in roots]
            ax.plot(x, y, mark, color=colour, markersize=6, label=word)
    ax.set(xlabel="real part [1/s]")
    ax.set(ylabel="imaginary part [rad/s]")
    legend_above(ax)


def draw_nyquist(ax: "Axes", result: Any, curves: Sequence[LoopCurve]) -> None:
    """The loop gain in the complex plane with -1, the unit circle and the margins."""
    names = result.equilibrium.net.link_names
    for k, curve in enumerate(curves):
        x, y = np.real(curve.response), np.imag(curve.response)
        ax.plot(x, y, color=f"C{k}", label=f"L(iω), cut at {names[curve.link]}")
    circle = np.exp(1j * np.linspace(0, 2 * math.pi, 361))
    ax.plot(np.real(circle), np.imag(circle), color="0.6", linewidth=0.7, linestyle=":")
    ax.plot(-1, 0, "k+", markersize=8, label="-1")
    _mark_margins(ax, result)
    ax.set(xlim=_VIEW[0], ylim=_VIEW[1], aspect="equal")
    ax.set(xlabel="real part of the loop gain", ylabel="imaginary part of the loop gain")
    legend_above(ax)


def _mark_margins(ax: "Axes", result: Any) -> None:
    """Crossings of the loop with the negative real axis and the unit circle, and its margins."""
    from matplotlib.patches import Arc

    gain, phase = result.gain_margin, result.phase_margin
    if gain is not None:
        ax.plot([-1, -1 / gain], [0, 0], color="C1", linestyle="-", linewidth=2, alpha=0.7)
        label = f"{gain_label(gain)} at {result.phase_crossover:.3g} rad/s"
        ax.plot(-1 / gain, 0, "s", color="C1", label=label)
    if phase is not None:
        angle = math.radians(phase) - math.pi
        low, high = sorted((180.0, 180.0 + phase))
        ax.add_patch(Arc((0, 0), 2, 2, theta1=low, theta2=high, color="C2", linewidth=2))
        label = f"phase margin {phase:.3g} deg at {result.gain_crossover:.3g} rad/s"
        ax.plot(math.cos(angle), math.sin(angle), "o", color="C2", label=label)
        ax.plot([], [], " ", label=f"delay margin {result.delay_margin:.3g} s")


class FrequencyResponseView(View):
    """Verdict and margins; magnitude and phase over frequency, and the Nyquist curve."""

    size = (3.8, 2)
    heads = StabilityView.heads

    def tables(self, rows: int | None = None) -> list[Block]:
        """The verdict and the margins."""
        found = self.found.stability
        return [head(found.equilibrium), *judged(found), *margin_table(found)]

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of the stability."""
        return StabilityView.quantities(net, paths)

    def numbers(self) -> dict[str, Measured]:
        """Those of the stability."""
        return self.found.stability.numbers()

    def draw(self, figure: "SubFigure") -> None:
        """Magnitude above the phase, and the Nyquist curve next to them, or below."""
        result, curves = self.found.stability, self.found.named()
        if not curves:
            raise ValueError(f"no picture: {result.message or 'no signal reaches a sender'}")
        narrow = is_narrow(figure)
        grid = figure.add_gridspec(4 if narrow else 2, 1 if narrow else 2)
        size = figure.add_subplot(grid[0, 0])
        phase = figure.add_subplot(grid[1, 0], sharex=size)
        low, high = _frequencies(result, [*curves.values()])
        for k, (name, curve) in enumerate(curves.items()):
            label, w = name if len(curves) > 1 else None, curve.frequency
            seen = (w > low) & (w < high)
            size.plot(w[seen], decibels(curve.magnitude[seen]), color=f"C{k}", label=label)
            phase.plot(w[seen], curve.phase[seen], color=f"C{k}")
        size.set(xscale="log", ylabel="magnitude [dB]")
        phase.set(xlabel="frequency [rad/s]", ylabel="phase [deg]")
        ticks: Any = phase.yaxis.get_major_locator()
        ticks.set_params(steps=[1, 1.8, 4.5, 9, 10])
        for ax, level in ((size, 0.0), (phase, -180.0)):
            ax.axhline(level, color="0.4", linewidth=0.8)
        _mark_bode(size, phase, result)
        for ax in (size, phase):
            legend_above(ax)
        draw_nyquist(
            figure.add_subplot(grid[2:, 0] if narrow else grid[:, 1]), result, [*curves.values()]
        )


def _frequencies(result: Any, curves: Sequence[LoopCurve]) -> tuple[float, float]:
    """The frequencies [rad/s] that are drawn: from where L begins to move to a while beyond its
    crossovers.
    """
    moves = [
        c.frequency[np.argmax(abs(decibels(c.magnitude / c.magnitude[0])) > 1)] for c in curves
    ]
    crossovers = [w for w in (result.gain_crossover, result.phase_crossover) if w is not None]
    last = max(crossovers, default=max(c.frequency[-1] for c in curves))
    return min(moves + crossovers) / 10, 3 * last


def _mark_bode(size: "Axes", phase: "Axes", result: Any) -> None:
    """Gain and phase margin between the curves and 0 dB and -180 deg, dashed at the crossovers."""
    gain, angle = result.gain_margin, result.phase_margin
    for ax in (size, phase):
        for w in (result.phase_crossover, result.gain_crossover):
            if w is not None:
                ax.axvline(w, color="0.4", linestyle="--", linewidth=0.8)
    if gain is not None:
        ends = [0.0, -decibels(gain)]
        size.plot(2 * [result.phase_crossover], ends, "C1-", linewidth=2, label=gain_label(gain))
    if angle is not None:
        label = f"phase margin {angle:.3g} deg"
        ends = [-180.0, angle - 180.0]
        phase.plot(2 * [result.gain_crossover], ends, "C2-", linewidth=2, label=label)


_JUMP = (
    "Where a threshold or a bound of a law is passed, the equations change, and roots jump across "
    "the imaginary axis."
)
_ENDS = {
    "edge": "edge of the range",
    "non-smooth": "change of regime",
    "zero frequency": "frequency 0",
    "meets": "meets another curve",
    "same stability": "same stability on both sides",
    "lost": "could not be followed",
}


_KINDS = {
    "hopf": "Hopf", "fold": "fold", "jump": "change of regime", "status": "no smooth equilibrium"
}  # fmt: skip


class CrossingsView(View):
    """Every change of stability along one parameter."""

    size = (3.0, 1)
    heads = ("frequency", "period", "becomes", "kind", "to", "status of the equilibrium")

    def tables(self, rows: int | None = None) -> list[Block]:
        """The changes, and the parts of the range without a smooth equilibrium."""
        result, stable = self.found, self.found.stable_at_low
        word = {True: "stable", False: "unstable", None: "undetermined"}[stable]
        proof = "certified" if result.certified else "not certified: crossings may be missing"
        head = f"At the low end: {word} ({proof})"
        out: list[Block] = [verdict(stable if result.certified else None, head)]
        along = parameter(result.path, result.unit)
        changes = table(
            "Changes of stability", along, ("frequency", "rad/s"), ("period", "s"), "becomes",
            "kind",
        )  # fmt: skip
        for c in result.crossings:
            numbers = (Number(c.value, 10), Number(c.frequency, 8), period(c.frequency))
            changes.add_row(*numbers, c.becomes, _kind_of(c))
        if result.crossings:
            out.append(changes)
            out += lines(_JUMP * any(c.jump for c in result.crossings))
        elif not result.without_equilibrium and result.certified:
            out += lines("No change of stability in this range.")
        else:
            scope = (
                "in the rest of the range"
                if result.without_equilibrium
                else "by a search that is not certified"
            )
            out.append(verdict(None, f"Changes of stability: none found {scope}."))
        if result.without_equilibrium:
            title = "Ranges without a smooth equilibrium: stability undetermined"
            ends = along._replace(name=f"from {result.path}"), ("to", result.unit)
            gaps = table(title, *ends, "status of the equilibrium")
            for gap in result.without_equilibrium:
                gaps.add_row(Number(gap.low, 6), Number(gap.high, 6), gap.status)
            out.append(gaps)
        return out

    def numbers(self) -> dict[str, Measured]:
        """Number of changes, the first change, and the number of parts without equilibrium."""
        first = self.found.crossings[0] if self.found.crossings else None
        count, at, frequency, without = self._names(self.found.path)
        return {
            count: Measured(len(self.found.crossings)),
            at: Measured(first and first.value, self.found.unit),
            frequency: Measured(first and first.frequency, "rad/s"),
            without: Measured(len(self.found.without_equilibrium)),
        }

    @staticmethod
    def _names(path: str) -> list[str]:
        """Names of the few numbers."""
        return ["crossings", f"first {path}", "frequency", "without_equilibrium"]

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of a search along a path."""
        return [name for path in paths for name in cls._names(path)]

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of the changes, and of the ranges without an equilibrium."""
        return [*cls.heads, *paths, *(f"from {path}" for path in paths)]

    def draw(self, figure: "SubFigure") -> None:
        """Stable and unstable parts of the range, and its changes with their frequencies."""
        ax, result = figure.subplots(), self.found
        axis = parameter_axis(result.net, result.path, result.unit, (result.low, result.high))
        low, high = axis.values((result.low, result.high))
        for left, right, stable in _stretches(result):
            colour, word = (STABLE, "stable") if stable else (_UNSTABLE, "unstable")
            ends = axis.values((left, right))
            ax.axvspan(*ends, color=colour, linewidth=0, zorder=0, label=word)
        for gap in result.without_equilibrium:
            ends = axis.values((gap.low, gap.high))
            word = f"undetermined ({gap.status})"
            grey = _NOTHING if gap.status == "none" else _UNKNOWN
            ax.axvspan(*ends, color=grey, linewidth=0, zorder=0, label=word)
        for c in result.crossings:
            (value,) = axis.values((c.value,))
            word, style = _kind_of(c), "C1s" if c.jump else "C0o"
            ax.axvline(value, color=style[:2], linewidth=0.8)
            ax.plot(value, math.nan if c.frequency is None else c.frequency, style, label=word)
        fit_scale(ax, low, high, "x", DECADE)
        if any(c.frequency for c in result.crossings):
            from_zero(ax)
        else:
            ax.set_yticks([])
        ax.set_xlim(low, high)
        label = wrapped(axis.label, width_of(ax))
        ax.set(xlabel=label, ylabel="frequency [rad/s]")
        legend_above(ax)


def _kind_of(crossing: Any) -> str:
    """The kind of a change of stability."""
    if crossing.jump:
        return crossing.reason or _KINDS["jump"]
    return ", ".join(filter(None, ["Hopf" if crossing.frequency else "fold", crossing.criticality]))


def _stretches(result: Any) -> list[tuple[float, float, bool]]:
    """Parts of the range between crossings and gaps that are known to be stable or not."""
    events = [(c.value, c.value, c) for c in result.crossings]
    events += [(gap.low, gap.high, None) for gap in result.without_equilibrium]
    out, left, stable = [], result.low, result.stable_at_low
    for begin, end, crossing in [*sorted(events, key=lambda e: e[0]), (result.high,) * 2 + (None,)]:
        if stable is None and crossing is not None:
            stable = crossing.becomes == "unstable"
        if stable is not None and begin > left:
            out.append((left, begin, stable))
        left, stable = end, None if crossing is None else crossing.becomes == "stable"
    return out


class BoundaryView(View):
    """Curves on which stability changes, over two parameters."""

    names = ("curves", "frequency_min", "frequency_max")
    heads = ("curve", "kind", "points", "frequency", "unstable roots on both sides", "why it ends")

    def tables(self, rows: int | None = None) -> list[Block]:
        """Every curve with its ranges, frequencies, unstable roots on both sides, and ends."""
        result = self.found
        proof = "certified" if result.certified else "not certified"
        good = None if not result.certified else result.status == "ok"
        out: list[Block] = [verdict(good, f"Boundary: {len(result.curves)} curves ({proof})")]
        curves = table(
            "Curves on which stability changes", "kind", "points",
            *map(parameter, result.paths, result.units), ("frequency", "rad/s"),
            "unstable roots on both sides", "why it ends",
        )  # fmt: skip
        for c in result.curves:
            known = c.frequency[np.isfinite(c.frequency)].tolist()
            curves.add_row(
                c.reason or _KINDS[c.kind], str(len(c.x)),
                span(c.x.tolist()), span(c.y.tolist()),
                span(known) if known else DASH,
                _both_sides(c),
                "closed" if c.closed else ", ".join(dict.fromkeys(_ENDS[end] for end in c.ends)),
            )  # fmt: skip
        out += lines(result.message, tone="bold")
        note = lines(_JUMP * any(c.kind == "jump" for c in result.curves))
        return [*out, curves, *note] if result.curves else out

    def details(self) -> list[Block]:
        """The points of every curve."""
        found = self.found
        out = table(
            "Points of the curves", "curve", *map(parameter, found.paths, found.units),
            ("frequency", "rad/s"),
        )  # fmt: skip
        for k, c in enumerate(found.curves, start=1):
            for point in zip(c.x.tolist(), c.y.tolist(), c.frequency.tolist(), strict=True):
                out.add_row(str(k), *map(Number, point))
        return [out] if out.rows else []

    def numbers(self) -> dict[str, Measured]:
        """Number of curves, and the range of their frequencies."""
        frequencies = [f for c in self.found.curves for f in c.frequency if np.isfinite(f)]
        return {
            "curves": Measured(len(self.found.curves)),
            "frequency_min": Measured(min(frequencies, default=None), "rad/s"),
            "frequency_max": Measured(max(frequencies, default=None), "rad/s"),
        }

    def draw(self, figure: "SubFigure") -> None:
        """Curves over both parameters, named by their kind, and the region that is stable."""
        ax, result = figure.subplots(), self.found
        axes = [
            parameter_axis(result.net, *parts)
            for parts in zip(result.paths, result.units, result.ranges, strict=True)
        ]
        _shade(ax, result, [axis.scale for axis in axes])
        kinds: dict[tuple[str, str], list[Any]] = {}
        for curve in result.curves:
            kinds.setdefault((curve.kind, curve.reason), []).append(curve)
        jumps = itertools.count()
        for (kind, reason), curves in kinds.items():
            known = np.concatenate([c.frequency[np.isfinite(c.frequency)] for c in curves])
            name = reason or _KINDS[kind]
            turn = f", {_range(known)} rad/s" if kind != "fold" and known.size else ""
            style = {"hopf": "C0-", "fold": "C3-"}.get(kind) or f"C{_JUMPS[next(jumps) % 4]}--"
            for curve in curves:
                x, y = (axis.values(v) for axis, v in zip(axes, (curve.x, curve.y), strict=True))
                ax.plot(x, y, style, label=f"{name}{turn}")
        for curve in result.secondary:
            x, y = (axis.values(v) for axis, v in zip(axes, (curve.x, curve.y), strict=True))
            ax.plot(x, y, color="0.6", linewidth=0.7, label="more roots cross")
        for side, axis, ends in zip("xy", axes, result.ranges, strict=True):
            low, high = axis.values(ends)
            fit_scale(ax, low, high, side, DECADE)
            getattr(ax, f"set_{side}lim")(low, high)
        ax.set(xlabel=wrapped(axes[0].label, width_of(ax)), ylabel=wrapped(axes[1].label, 3.0))
        legend_above(ax)


def _both_sides(curve: Any) -> str:
    """The unstable roots on both sides of a curve, and which side has more, or is unknown."""
    above = "undetermined" if curve.above is None else curve.above
    return f"{curve.below} | {above}{f' at {curve.side}' if curve.side else ''}"


_JUMPS = (1, 4, 6, 2)  # colours of changes of regime
_UNSTABLE, _UNKNOWN, _NOTHING = "#fbe3d6", "0.85", "0.72"
_FINE = 400  # points each way at which a region is shaded


def _range(values: np.ndarray) -> str:
    """The range of some numbers to two digits."""
    return " to ".join(dict.fromkeys(f"{v:.2g}" for v in (values.min(), values.max())))


def _shade(ax: "Axes", result: Any, scales: Sequence[float]) -> None:
    """Shade what is stable, unstable and unknown between the curves of a boundary.

    The curves divide the plane into parts; each point is as the nearest node of the grid in its
    part, whose unstable roots were counted. A part without a node differs from its neighbour.
    """
    from matplotlib.colors import ListedColormap
    from scipy.ndimage import distance_transform_edt, label

    ends = [scale_of(*pair) for pair in result.ranges]

    def places(curve: Any) -> np.ndarray:
        """Points (k, 2) on the fine grid, without holes between them."""
        at = [[s.share(float(v)) for v in c] for s, c in zip(ends, (curve.x, curve.y), strict=True)]
        dense = np.linspace(0, len(curve.x) - 1, 4 * _FINE + len(curve.x))
        shares = np.array([np.interp(dense, np.arange(len(curve.x)), row) for row in at])
        return np.clip(np.rint(shares.T * (_FINE - 1)).astype(int), 0, _FINE - 1)

    def nearest(known: np.ndarray) -> np.ndarray:
        """At each point what is known at the nearest one at which it is not negative."""
        near: Any = distance_transform_edt(known < 0, return_distances=False, return_indices=True)
        return known[tuple(near)]

    free = np.ones((_FINE, _FINE), bool)
    for curve in result.curves:
        free[tuple(places(curve).T)] = False
    divided: Any = label(free)
    parts, count = divided
    nodes = [
        np.rint([s.share(v) * (_FINE - 1) for v in at.tolist()]).astype(int)
        for s, at in zip(ends, result.grid, strict=True)
    ]
    i, j = (v.ravel() for v in np.meshgrid(*nodes, indexing="ij"))
    states = np.where(np.isnan(result.unstable), 2, result.unstable > 0).astype(int).ravel()
    shown = np.full((_FINE, _FINE), -1)
    for part in range(1, count + 1):
        own = parts[i, j] == part
        if own.any():
            known = np.full(parts.shape, -1)
            known[i[own], j[own]] = states[own]
            shown = np.where(parts == part, nearest(known), shown)
    near = nearest(shown)
    shown = np.where(shown >= 0, shown, np.where(free, np.array([1, 0, 2])[near], near))
    colours = {"stable": STABLE, "unstable": _UNSTABLE, "undetermined": _UNKNOWN}
    edges = [
        np.array([s.value(t) for t in np.linspace(0, 1, _FINE)]) / scale
        for s, scale in zip(ends, scales, strict=True)
    ]
    ax.pcolormesh(
        *edges, shown.T, cmap=ListedColormap([*colours.values()]), vmin=0, vmax=2, zorder=0,
        rasterized=True, shading="nearest",
    )  # fmt: skip
    for k, (word, colour) in enumerate(colours.items()):
        if np.any(shown == k):
            ax.plot([], [], "s", color=colour, markeredgecolor="0.6", label=word, linestyle="")
