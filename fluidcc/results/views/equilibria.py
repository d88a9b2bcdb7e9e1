"""Views of equilibria, their stability, and changes of stability along parameters."""

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.margins import LoopCurve
from fluidcc.result import View, plain
from fluidcc.results.axes import MARKERS, PALE, abreast, fit_scale, from_zero, legend
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
from fluidcc.results.export import with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_MANY = 6  # most round trips of a group that are shown one per line


def head(equilibrium: Any) -> Block:
    """The status of an equilibrium in a line."""
    good = {"regular": True, "empty": True, "none": False}.get(equilibrium.status)
    why = f" ({equilibrium.message})" if equilibrium.message else ""
    return verdict(good, f"Equilibrium: {equilibrium.status}{why}")


class EquilibriumView(View):
    """Links and groups of flows at equilibrium; rates and windows over round trips."""

    size = (2.6, 2)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Links and groups of flows."""
        keys = ("queue", "average", "mark_probability", "utilization")
        links = table("Links", "link", *known("links", *keys))
        for name, link in self.found.links.items():
            links.add_row(name, *(Number(getattr(link, key)) for key in keys))
        columns = (
            *known("flows", "window"),
            ("rtt", "ms"),
            *known("flows", "rate"),
            "mark_probability",
        )
        flows = table("Flows", "group", "round trips", *columns)
        for name, group in self.found.flows.items():
            arrays = (group.window, 1e3 * group.rtt, group.rate, group.mark_probability)
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

    def numbers(self) -> dict[str, Measured]:
        """Queue, mark probability and utilization of each link, mean window of each group."""
        out = {}
        for name, link in self.found.links.items():
            out[f"{name}: queue"] = Measured(link.queue, "packet")
            out[f"{name}: mark probability"] = Measured(link.mark_probability)
            out[f"{name}: utilization"] = Measured(link.utilization)
        for name, group in self.found.flows.items():
            out[f"{name}: window"] = Measured(float(np.mean(group.window)), "packet")
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Rates and windows over round trips."""
        axes = abreast(figure)
        for k, (name, group) in enumerate(self.found.flows.items()):
            for ax, key in zip(axes, ("rate", "window"), strict=True):
                mark = MARKERS[k % len(MARKERS)]
                ax.plot(1000 * np.asarray(group.rtt), getattr(group, key), mark, label=name)
        queues = ", ".join(f"{name} {v.queue:.4g}" for name, v in self.found.links.items())
        figure.suptitle(f"{self.found.status}; queue [packet]: {queues}", fontsize=8)
        for ax, label in zip(axes, ("rate of a flow [packet/s]", "window [packet]"), strict=True):
            ax.set(xlabel="round trip [ms]", ylabel=label)
        from_zero(*axes)
        axes[0].legend()


class FluctuationsView(View):
    """Spread of queues and windows; the spectrum of the queue, and the queue with its band."""

    size = (2.6, 2)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Links and groups of flows."""
        found = self.found
        why = f" ({found.message})" if found.message else ""
        first = verdict(found.status == "regular", f"Fluctuations: {found.status}{why}")
        distance = lines(f"distance of the loop from -1: {number(found.margin, 3)}")
        links = table(
            "Links", "link", *known("links", "queue", "queue_std"), "5 %", "50 %", "95 %",
            ("delay, 95 %", "ms"), "idle",
        )  # fmt: skip
        for name, link in found.links.items():
            own, delay = link.queue.quantiles, link.delay.quantiles.get(0.95)
            cells = (link.queue.mean, link.queue.std, *(own.get(p) for p in (0.05, 0.5, 0.95)))
            late = None if delay is None else 1e3 * delay
            links.add_row(name, *map(Number, (*cells, late, link.idle)))
        flows = table("Flows", "group", *known("flows", "window", "window_std", "rate", "rate_std"))
        for name, group in found.flows.items():
            spread = (v for pair in (group.window, group.rate) for v in (pair.mean, pair.std))
            flows.add_row(name, *map(Number, spread))
        return [first, *([] if math.isnan(found.margin) else distance), links, flows]

    def numbers(self) -> dict[str, Measured]:
        """Mean and standard deviation of each queue, and the margin."""
        out = {}
        for name, link in self.found.links.items():
            out[f"{name}: queue"] = Measured(link.queue.mean, "packet")
            out[f"{name}: std"] = Measured(link.queue.std, "packet")
        return out | {"margin": Measured(self.found.margin)}

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
            share.plot(q, below, label=name)
            ends = (max(queue.mean + k * queue.std, 0.0) for k in (-2.0, 2.0))
            share.axvspan(*ends, alpha=PALE, label="mean ± 2 std")
        share.set(xlabel="queue [packet]", ylabel="share of the time below [1]", ylim=(0, 1))
        share.legend(loc="lower right")
        spectrum.legend(loc="lower left")


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
_VIEW = ((-2.2, 1.4), (-1.9, 1.4))  # limits of the Nyquist plot, which show the margins


def root(rightmost: complex | None, unstable: int | None) -> dict[str, Measured]:
    """The rightmost root as growth rate and frequency, and the number of unstable roots."""
    growth, frequency = (None, None) if rightmost is None else (rightmost.real, rightmost.imag)
    return {
        "unstable roots": Measured(unstable),
        "growth rate": Measured(growth, "1/s"),
        "frequency": Measured(None if frequency is None else abs(frequency), "rad/s"),
    }


def period(frequency: float | None) -> Number:
    """The period of a frequency [rad/s] in s."""
    return Number(2 * math.pi / abs(frequency) if frequency else None)


class StabilityView(View):
    """The verdict, margins and roots; the Nyquist curve of a network with a linearisation."""

    @property
    def size(self) -> Any:
        """A panel for the roots, and one for the loop if there is one."""
        result = self.found
        has_loop = result.margins is not None
        return 3.4, 2 if has_loop and isinstance(result.equilibrium, Equilibrium) else 1

    def tables(self, rows: int | None = None) -> list[Block]:
        """The verdict, margins and rightmost roots."""
        result, equilibrium = self.found, self.found.equilibrium.tables()
        if result.unstable is None:
            why = result.message.removeprefix(result.equilibrium.message).removeprefix("; ")
            unknown = verdict(None, f"Stability: unknown ({result.status})")
            return [*equilibrium, unknown, *lines(why, tone="bold")]
        certificate = f"certified by the argument principle in {result.proof}"
        proof = certificate if result.certified else "not certified"
        unstable = f"unstable, {result.unstable} roots in the right half plane"
        text = {True: "stable", False: unstable, None: "undetermined"}[result.stable]
        judged = verdict(result.stable, f"Stability: {text} ({proof})")
        margins = table("Margins", "margin", "value", ("at", "rad/s"))
        crossover = Number(result.gain_crossover)
        margins.add_row("gain", Number(result.gain_margin), Number(result.phase_crossover))
        margins.add_row("phase [deg]", Number(result.phase_margin), crossover)
        margins.add_row("delay [s]", Number(result.delay_margin), crossover)
        roots = table("Rightmost roots", ("real", "1/s"), ("imaginary", "rad/s"), ("period", "s"))
        for s in map(complex, result.roots[:_SHOWN]):
            roots.add_row(Number(s.real, 8), Number(s.imag, 8), period(s.imag))
        shown = [margins, roots] if len(result.roots) else [margins]
        return [*equilibrium, judged, *lines(result.message, tone="bold"), *shown]

    def numbers(self) -> dict[str, Measured]:
        """Number of unstable roots, the rightmost root, and margins."""
        result = self.found
        return root(result.rightmost, result.unstable) | {
            "gain margin": Measured(result.gain_margin),
            "phase margin": Measured(result.phase_margin, "deg"),
            "delay margin": Measured(result.delay_margin, "s"),
        }

    def draw(self, figure: "SubFigure") -> None:
        """The rightmost roots, and the Nyquist curve with its margins if there is a loop.

        Without roots it draws the relay cycle; raises ValueError if that is unknown too.
        """
        result = self.found
        if not len(result.roots) and result.population is None:
            if result.cycle is None:
                raise ValueError(f"no picture: {result.message or result.status}")
            result.cycle.view.draw(figure)
            return
        left, *right = abreast(figure, self.size[1])
        _roots(left, result)
        for ax in right:
            _nyquist(ax, result, result.curves())


def _roots(ax: "Axes", result: Any) -> None:
    ax.axvline(0, color="0.4", linewidth=0.8)
    for colour, mark, unstable in (("C0", "x", False), ("C1", "+", True)):
        roots = [complex(s) for s in result.roots if (s.real > 0) == unstable]
        word = "unstable roots" if unstable else "stable roots"
        if roots:
            x, y = [s.real for s in roots], [s.imag for s in roots]
            ax.plot(x, y, mark, color=colour, markersize=6, label=word)
    verdicts = {True: "stable", False: f"unstable, {result.unstable} roots", None: "undetermined"}
    proof = "certified" if result.certified else "not certified"
    ax.set(title=f"{verdicts[result.stable]} ({proof})", xlabel="real part [1/s]")
    ax.set(ylabel="imaginary part [rad/s]")
    legend(ax)


def _nyquist(ax: "Axes", result: Any, curves: Sequence[LoopCurve]) -> None:
    names = result.equilibrium.net.link_names
    for k, curve in enumerate(curves):
        x, y = np.real(curve.response), np.imag(curve.response)
        ax.plot(x, y, color=f"C{k}", label="loop gain L(iω)" if not k else None)
    circle = np.exp(1j * np.linspace(0, 2 * math.pi, 361))
    ax.plot(np.real(circle), np.imag(circle), color="0.6", linewidth=0.7, linestyle=":")
    ax.plot(-1, 0, "k+", markersize=8, label="-1")
    _margins(ax, result)
    ax.set(xlim=_VIEW[0], ylim=_VIEW[1], aspect="equal")
    ax.set(xlabel="real part of the loop gain", ylabel="imaginary part of the loop gain")
    cut = names[0] if len(names) == 1 else "each link"
    ax.set_title(f"loop cut at the signal of {cut}")
    legend(ax, loc="lower left", fontsize=6, frameon=True, framealpha=0.8, edgecolor="none")


def _margins(ax: "Axes", result: Any) -> None:
    """Crossings of the loop with the negative real axis and the unit circle, and its margins."""
    from matplotlib.patches import Arc

    gain, phase = result.gain_margin, result.phase_margin
    if gain is not None:
        ax.plot([-1, -1 / gain], [0, 0], color="C1", linestyle="-", linewidth=2, alpha=0.7)
        label = f"gain margin {gain:.3g} at {result.phase_crossover:.3g} rad/s"
        ax.plot(-1 / gain, 0, "s", color="C1", label=label)
    if phase is not None:
        angle = math.radians(phase) - math.pi
        low, high = sorted((180.0, 180.0 + phase))
        ax.add_patch(Arc((0, 0), 2, 2, theta1=low, theta2=high, color="C2", linewidth=2))
        delay = f", delay margin {result.delay_margin:.3g} s" if result.delay_margin else ""
        label = f"phase margin {phase:.3g} deg at {result.gain_crossover:.3g} rad/s{delay}"
        ax.plot(math.cos(angle), math.sin(angle), "o", color="C2", label=label)


class CrossingsView(View):
    """Every change of stability along one parameter."""

    size = (3.0, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """The changes, and the parts of the range without a verdict."""
        result, stable = self.found, self.found.stable_at_low
        word = {True: "stable", False: "unstable", None: "undetermined"}[stable]
        proof = "certified" if result.certified else "not certified: crossings may be missing"
        head = f"At the low end: {word} ({proof})"
        out: list[Block] = [verdict(stable if result.certified else None, head)]
        along = parameter(result.path, result.unit)
        changes = table(
            "Changes of stability", along, ("frequency", "rad/s"), ("period", "s"), "becomes",
            "Hopf point",
        )  # fmt: skip
        for c in result.crossings:
            numbers = (Number(c.value, 10), Number(c.frequency, 8), period(c.frequency))
            kind = c.criticality or ("jump" if c.jump else DASH)
            changes.add_row(*numbers, c.becomes, kind)
        if result.crossings:
            out.append(changes)
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
            gaps = table("Parts without a verdict", f"{along.heading} from", "to", "equilibrium")
            for gap in result.without_equilibrium:
                gaps.add_row(Number(gap.low, 6), Number(gap.high, 6), gap.status)
            out.append(gaps)
        return out

    def numbers(self) -> dict[str, Measured]:
        """Number of changes, the first change, and the number of parts without equilibrium."""
        first = self.found.crossings[0] if self.found.crossings else None
        return {
            "changes": Measured(len(self.found.crossings)),
            "first at": Measured(first and first.value),
            "frequency": Measured(first and first.frequency, "rad/s"),
            "parts without a verdict": Measured(len(self.found.without_equilibrium)),
        }

    def draw(self, figure: "SubFigure") -> None:
        """Stable and unstable parts of the range, and the frequencies at its changes."""
        ax, result = figure.subplots(), self.found
        edges = [result.low, *(c.value for c in result.crossings), result.high]
        stable = result.stable_at_low
        for low, high in itertools.pairwise(edges):
            word, colour = ("stable", "C2") if stable else ("unstable", "C1")
            ax.axvspan(low, high, color=colour, alpha=PALE, linewidth=0, label=word)
            stable = not stable
        for gap in result.without_equilibrium:
            ax.axvspan(gap.low, gap.high, color="0.8", label=gap.status)
        values = [c.value for c in result.crossings]
        ax.plot(values, [c.frequency for c in result.crossings], "ko")
        fit_scale(ax, result.low, result.high)
        if values:
            from_zero(ax)
        ax.set_xlim(result.low, result.high)
        ax.set(xlabel=with_unit(result.path, result.unit), ylabel="frequency [rad/s]")
        unique = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        ax.legend(unique.values(), unique.keys())


class BoundaryView(View):
    """Curves on which stability changes, over two parameters."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """Every curve with its ranges, frequencies, unstable roots on both sides, and ends."""
        result = self.found
        proof = "certified" if result.certified else "not certified"
        good = None if not result.certified else result.status == "ok"
        out: list[Block] = [verdict(good, f"Boundary: {len(result.curves)} curves ({proof})")]
        curves = table(
            "Curves on which stability changes", "kind", "points",
            *map(parameter, result.paths, result.units), ("frequency", "rad/s"), "unstable roots",
            "ends",
        )  # fmt: skip
        for c in result.curves:
            known = c.frequency[np.isfinite(c.frequency)].tolist()
            curves.add_row(
                c.kind, str(len(c.x)), span(c.x.tolist()), span(c.y.tolist()),
                span(known) if known else DASH, f"{c.below} | {c.above}",
                "closed" if c.closed else ", ".join(c.ends),
            )  # fmt: skip
        out += lines(result.message, tone="bold")
        return [*out, curves] if result.curves else out

    def numbers(self) -> dict[str, Measured]:
        """Number of curves, and the range of their frequencies."""
        frequencies = [f for c in self.found.curves for f in c.frequency if np.isfinite(f)]
        return {
            "curves": Measured(len(self.found.curves)),
            "least frequency": Measured(min(frequencies, default=None), "rad/s"),
            "greatest frequency": Measured(max(frequencies, default=None), "rad/s"),
        }

    def draw(self, figure: "SubFigure") -> None:
        """Curves over both parameters, and the stable and unstable points of the grid."""
        ax, result = figure.subplots(), self.found
        for kind, style in (("hopf", "C0-"), ("fold", "C3-"), ("jump", "C4--")):
            curves = [c for c in result.curves if c.kind == kind]
            for k, curve in enumerate(curves):
                ax.plot(curve.x, curve.y, style, label=kind if k == 0 else None)
        for curve in result.secondary:
            ax.plot(curve.x, curve.y, color="0.8", linewidth=0.8, zorder=0)
        x, y = np.meshgrid(*result.grid, indexing="ij")
        for marker, chosen, word in ((".", result.unstable == 0, "stable"),
                                     ("x", result.unstable > 0, "unstable")):  # fmt: skip
            ax.plot(
                x[chosen], y[chosen], marker, color="0.6", markersize=4, label=word, linestyle=""
            )
        for axis, (low, high) in zip("xy", result.ranges, strict=True):
            fit_scale(ax, low, high, axis)
            getattr(ax, f"set_{axis}lim")(low, high)
        labels = [with_unit(p, u) for p, u in zip(result.paths, result.units, strict=True)]
        ax.set(xlabel=labels[0], ylabel=labels[1])
        ax.legend()
