"""Trajectories, packet runs, both side by side, derivatives and distributions of windows."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

from fluidcc import quantities
from fluidcc.result import View
from fluidcc.results.axes import (
    PALE,
    abreast,
    axis_label,
    from_zero,
    from_zero_late,
    is_narrow,
    legend,
    over_time,
)
from fluidcc.results.blocks import (
    Block,
    Line,
    Measured,
    Number,
    Path,
    Table,
    in_row,
    in_unit,
    lines,
    number,
    percent,
    quantity,
    span,
    table,
    verdict,
)
from fluidcc.results.export import scaled, with_unit
from fluidcc.results.views.equilibria import head
from fluidcc.scenario.paths import number_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_LISTS = ("goodput_flows",)  # metrics of single flows
_LINES = 7  # of a solution


def ended(run: Any) -> Block:
    """How a trajectory ended, in a line."""
    head = f"Fluid run to {number(float(run.time[-1]))} s: {run.message}"
    return verdict(run.status.name == "ok", head)


class TrajectoryView(View):
    """Links and groups of flows over time."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means and extremes over the trajectory."""
        out = table("Over the whole run", "quantity", "at the end", "mean", "least", "greatest")
        for name, link in self.found.links.items():
            _series_line(out, f"{name}: queue [packet]", link.queue)
            _series_line(out, f"{name}: mark probability", link.mark_probability)
        for name, group in self.found.flows.items():
            _series_line(out, f"{name}: window [packet]", group.window)
        return [ended(self.found), out]

    def numbers(self) -> dict[str, Measured]:
        """Mean, least and greatest queue of each link over the run."""
        out = {}
        for name, link in self.found.links.items():
            known = link.queue[np.isfinite(link.queue)]
            for what, of in (("mean", np.mean), ("least", np.min), ("greatest", np.max)):
                value = float(of(known)) if known.size else None
                out[f"{name}: {what} queue"] = Measured(value, "packet")
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Queue and windows over time."""
        found = self.found
        above, below = over_time(figure)
        above.set(title=found.net.title)
        for k, (name, link) in enumerate(found.links.items()):
            _queue_over(above, k, name, found.time, link.queue, link.average)
        for k, (name, group) in enumerate(found.flows.items()):
            mean = np.average(group.window, axis=1, weights=group.n)
            _windows_over(below, k, name, found.time, group.window, mean)
        legend(above, 2)
        legend(below, 3)


def _queue_over(ax: "Axes", k: int, name: str, time: Any, queue: Any, average: Any) -> None:
    """A queue over time, and its average if the queue law has another one."""
    ax.plot(time, queue, color=f"C{k}", linewidth=0.9, label=f"{name}: queue")
    if not np.array_equal(average, queue):
        ax.plot(time, average, "--", color="0.2", linewidth=1, label=f"{name}: average")


def _windows_over(ax: "Axes", k: int, name: str, time: Any, windows: Any, mean: Any) -> None:
    """The mean window of a group over time, and the range of its windows (T, m) where known."""
    known = ~np.isnan(windows).all(axis=1)
    low, high = np.nanmin(windows[known], axis=1), np.nanmax(windows[known], axis=1)
    # its edge shows peaks that are narrower than a point of the picture
    edge = {"color": f"C{k}", "alpha": PALE, "linewidth": 0.3}
    ax.fill_between(time[known], low, high, **edge)
    ax.plot(time, mean, color=f"C{k}", label=f"{name}: mean")


def _series_line(out: Table, name: str, series: np.ndarray) -> None:
    """A line for series (T,) or (T, m), unless nothing is known of them."""
    known, ends = series[np.isfinite(series)], np.ravel(series[-1])
    ends = ends[np.isfinite(ends)]
    if known.size and ends.size:
        each = (float(of(known)) for of in (np.mean, np.min, np.max))
        out.add_row(name, span(ends.tolist()), *map(Number, each))


class SolutionView(View):
    """Solutions of delay equations."""

    size = (2.8, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """How the runs ended."""
        from fluidcc.dde.status import Status

        found = self.found
        if isinstance(found.status, Tracer):
            return [Line("Solution that JAX traces")]
        codes, ends = np.ravel(found.status), np.ravel(found.status_time)
        steps = np.ravel(found.steps)
        runs = table(
            "Runs", "status", "runs", ("earliest end", "s"), ("latest end", "s"), "most steps"
        )
        for code in np.unique(codes):
            some = codes == code
            times = (Number(float(of(ends[some]))) for of in (np.min, np.max))
            runs.add_row(Status(int(code)).name, str(some.sum()), *times, str(steps[some].max()))
        head = f"Solution: {found.message}" if codes.size == 1 else f"{codes.size} solutions"
        return [verdict(bool((codes == Status.ok).all()), head), runs]

    def draw(self, figure: "SubFigure") -> None:
        """Components of the state of a delay equation over time."""
        found = self.found
        if np.ndim(found.status):
            raise TypeError("a batch of solutions has no picture: choose one, with jax.tree.map")
        ax = figure.subplots()
        parts = {
            f"y{jax.tree_util.keystr(path)}": np.reshape(leaf, (len(found.t), -1))
            for path, leaf in jax.tree_util.tree_leaves_with_path(found.y)
        }
        lines = [
            (name if own.shape[1] == 1 else f"{name}[{k}]", own[:, k])
            for name, own in parts.items()
            for k in range(own.shape[1])
        ]
        for name, values in lines[:_LINES]:
            ax.plot(found.t, values, label=name)
        rest = f", {_LINES} of {len(lines)} components" if len(lines) > _LINES else ""
        ax.set(title=f"{found.message}{rest}", xlabel="time [s]", ylabel="state")
        legend(ax, 4)


class PacketsView(View):
    """Packet runs: metrics, and series if they were asked for."""

    @property
    def size(self) -> Any:
        """Of goodputs and queues beside each other, or of series."""
        return (2.6, 2) if self.found.series is None else (4.0, 1)

    def _all(self, kind: str, metric: str) -> list[Measured]:
        """Means of a metric with their intervals, for each link or group."""
        means, halves = self.found.mean[kind], self.found.ci95[kind]
        unit = quantities.units("packets", kind)[metric]
        return [Measured(own.get(metric), unit, halves[k].get(metric)) for k, own in means.items()]

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means over seeds with 95 % intervals."""
        found = self.found
        head = f"{found.message}, statistics from {number(found.warmup)} s"
        out: list[Block] = [Line(f"{head}: mean ± half width of the 95 % interval")]
        for kind, title in (("links", "Links"), ("flows", "Flows")):
            own = table(title, "metric", "unit", *found.mean[kind])
            for metric, unit in quantities.units("packets", kind).items():
                known = any(metric in values for values in found.mean[kind].values())
                if known and metric not in _LISTS:
                    own.add_row(metric, *in_row(unit, *self._all(kind, metric)))
            out.append(own)
        return out

    def numbers(self) -> dict[str, Measured]:
        """Utilization and queue of each link, goodput of each group, with intervals."""
        out = {}
        wanted = (("links", "utilization"), ("links", "queue_mean"), ("flows", "goodput"))
        for kind, metric in wanted:
            for name, own in zip(self.found.mean[kind], self._all(kind, metric), strict=True):
                out[f"{name}: {metric}"] = own
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Means with intervals, or the series of the first run."""
        (self._draw_means if self.found.series is None else self._draw_series)(figure)

    def _draw_means(self, figure: "SubFigure") -> None:
        """Goodput of each group, and queue of each link, with intervals."""
        runs = self.found
        left, right = abreast(figure)
        for ax, kind, metric, words in (
            (left, "flows", "goodput", "goodput of a group"),
            (right, "links", "number_in_system_mean", "mean queue"),
        ):
            unit = quantities.units("packets", kind)[metric]
            unit, own = in_unit(unit, *self._all(kind, metric))
            values, halves = np.array([(each.value, each.half) for each in own], float).T
            ax.errorbar(list(runs.mean[kind]), values, yerr=np.nan_to_num(halves), fmt="o")
            what = {"flows": "group of flows", "links": "link"}[kind]
            ax.set(xlabel=what, ylabel=with_unit(words, unit))
            ax.margins(x=0.3)
        from_zero(left, right)
        left.set_title(f"{runs.message}: mean and 95 % interval")

    def _draw_series(self, figure: "SubFigure") -> None:
        """Queues and windows of the first run over time."""
        runs = self.found
        above, below = over_time(figure)
        run = runs.series.isel(seed=0)
        above.set(title=f"{runs.message}, here seed {runs.seeds[0]}")
        time = run.time.values
        for k, name in enumerate(run.link.values):
            link = run.sel(link=name)
            _queue_over(above, k, name, time, link.link_queue.values, link.link_average.values)
        for k, name in enumerate(run.group.values):
            windows = run.flow_window.values[:, run.flow_group.values == name]
            mean = run.group_window.sel(group=name).values
            _windows_over(below, k, name, time, windows, mean)
        from_zero(above)
        from_zero_late(below, runs.warmup)
        legend(above, 2)
        legend(below, 3)


class ComparisonView(View):
    """The fluid model beside the packets."""

    size = (6.6, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Both engines, and what the fluid model says of itself."""
        both, fluid = self.found, self.found.fluid
        span = f"{number(both.warmup)} to {number(both.until)} s, {len(both.packets.runs)} seeds"
        own = table(
            f"Fluid versus packets, {span}", "quantity", "unit", "equilibrium", "fluid",
            "packets (95 %)", ("fluid / packets - 1", "%"),
        )  # fmt: skip
        for each in both.rows:
            engines = ((each.equilibrium, None), (each.fluid, None), (each.packets, each.ci95))
            cells = in_row(each.unit, *(Measured(value, half=half) for value, half in engines))
            own.add_row(each.name, *cells, percent(each.difference))
        out = [head(both.equilibrium)]
        if fluid and (fluid.status.name != "ok" or "not to be trusted" in fluid.message):
            out.append(verdict(False, f"Fluid run: {fluid.message}"))
        out += [verdict(None, both.message)] if both.message else []
        if rows is None and both.validity_warnings:
            out.append(verdict(None, "Validity warnings of the fluid model:"))
            out += lines(*(f"  {reason}" for reason in both.validity_warnings))
        windows = both.window_distributions.items() if rows is None else ()
        return [*out, own, *lines(*(f"flows.{name}: {w.describe()}" for name, w in windows))]

    def numbers(self) -> dict[str, Measured]:
        """Each quantity in the fluid model and in packets."""
        out = {}
        for row in self.found.rows:
            out[f"{row.name} (fluid)"] = Measured(row.fluid, row.unit)
            out[f"{row.name} (packets)"] = Measured(row.packets, row.unit, row.ci95)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Queues and windows over time, goodputs, and all relative differences."""
        slim, both = is_narrow(figure), self.found
        grid = figure.add_gridspec(4 if slim else 3, 1 if slim else 2)
        queues = figure.add_subplot(grid[0, :])
        _queues(queues, both)
        _windows(figure.add_subplot(grid[1, :], sharex=queues), both)
        _goodputs(figure.add_subplot(grid[2, 0]), both)
        _differences(figure.add_subplot(grid[3, 0] if slim else grid[2, 1]), both)


def _one_run(both: Any, variable: str, label: str) -> Any:
    """A series of the first packet run, with its times; nothing where there is none."""
    series = both.packets.series
    if series is None:
        return [], []
    return series.time, series[variable].isel(seed=0).sel({variable.split("_")[0]: label})


def _queues(ax: "Axes", both: Any) -> None:
    rows = {row.name: row for row in both.rows}
    for k, name in enumerate(both.equilibrium.links):
        seen = _one_run(both, "link_number_in_system", name)
        ax.plot(*seen, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.5, alpha=2 * PALE)
        if both.fluid is not None:
            queue = both.fluid.links[name].queue
            ax.plot(both.fluid.time, queue, "-", color=f"C{2 * k}", label=f"{name}: fluid")
        row, colour = rows[f"links.{name}.queue"], f"C{2 * k + 1}"
        if row.packets is not None:
            half = row.ci95 or 0.0
            span, mean = [both.warmup, both.until], row.packets
            ax.fill_between(span, mean - half, mean + half, color=colour, alpha=2 * PALE)
            ax.plot(span, [mean, mean], "--", color=colour, label=f"{name}: packets, mean and 95 %")
        if row.equilibrium is not None:
            ax.axhline(row.equilibrium, color="0.3", linestyle=":", label=f"{name}: equilibrium")
    ax.set(title=both.equilibrium.net.title, ylabel=axis_label("links", "queue"))
    from_zero(ax)
    legend(ax, 3)


def _windows(ax: "Axes", both: Any) -> None:
    """Mean window of each group."""
    for k, name in enumerate(both.equilibrium.flows):
        seen = _one_run(both, "group_window", name)
        label = f"{name}: packets, seed {both.packets.seeds[0]}"
        ax.plot(*seen, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.7, label=label)
        if both.fluid is not None:
            group = both.fluid.flows[name]
            mean = np.average(group.window, axis=1, weights=group.n)
            ax.plot(both.fluid.time, mean, "-", color=f"C{2 * k}", label=f"{name}: fluid")
    ax.set(xlabel="time [s]", ylabel=axis_label("flows", "window"))
    from_zero_late(ax, both.warmup)
    legend(ax, min(len(both.equilibrium.flows), 3))


def _goodputs(ax: "Axes", both: Any) -> None:
    rows = [row for row in both.rows if row.name.endswith(".goodput")]
    scale, unit = scaled([row.packets for row in rows], "bit/s")
    places = np.arange(len(rows))
    fluid = [np.nan if row.model is None else row.model / scale for row in rows]
    packets = [np.nan if row.packets is None else row.packets / scale for row in rows]
    halves = [(row.ci95 or 0.0) / scale for row in rows]
    ax.bar(places - 0.2, fluid, 0.38, label="fluid", color="C0")
    ax.bar(places + 0.2, packets, 0.38, yerr=halves, label="packets", color="C1")
    ax.set_xticks(places, [row.name.split(".")[1] for row in rows])
    ax.set(xlabel="group of flows", ylabel=f"goodput of a flow [{unit}]")
    ax.grid(visible=False, axis="x")
    from_zero(ax)
    legend(ax, 2)


def _differences(ax: "Axes", both: Any) -> None:
    rows = [row for row in reversed(both.rows) if row.difference is not None]
    places = np.arange(len(rows))
    # the fluid is exact here: the interval of the ratio is that of the packets
    halves = [100 * (row.ci95 or 0.0) / row.packets * (1 + row.difference) for row in rows]
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.errorbar([100 * row.difference for row in rows], places, xerr=halves, fmt="o")
    ax.set_yticks(places, [" ".join(row.name.split(".")[1:]) for row in rows])
    ax.set(xlabel="fluid relative to packets [%]", ylabel="quantity")
    ax.set_title("with 95 % intervals of the packets")
    ax.margins(y=0.15)


class GradientView(View):
    """A quantity and its derivatives."""

    instead = "its derivatives have units of their own; draw a sweep over a parameter"

    def tables(self, rows: int | None = None) -> list[Block]:
        """The derivatives, on both sides if these differ."""
        found = self.found
        why = f" ({found.message})" if found.message else ""
        value = quantity(found.value, found.unit)
        head = verdict(found.status == "ok", f"{found.of}: {value}, {found.status}{why}")
        columns = ("towards smaller", "towards larger") if found.sides else ()
        out = table("Derivatives", "parameter", "derivative", *columns, "unit")
        for path, slope in found.derivatives.items():
            sides = map(Number, found.sides.get(path, (None,) * len(columns)))
            unit = f"({found.unit}) / ({found.units[path]})"
            out.add_row(Path(path), Number(slope), *sides, unit)
        return [head, out]

    def numbers(self) -> dict[str, Measured]:
        """The quantity and its derivatives."""
        slopes = {f"by {path}": Measured(v) for path, v in self.found.derivatives.items()}
        return {self.found.of: Measured(self.found.value, self.found.unit), **slopes}


class SensitivityView(View):
    """A trajectory and its derivatives."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means over the trajectory and its end, with their derivatives."""
        found, out = self.found, [ended(self.found.run)]
        for words, of in (
            (f"Means from {number(found.after)} s", found.mean),
            ("At the end", found.end),
        ):
            slopes = (f"by {path}" for path in found.slopes)
            own = table(words, "quantity", "unit", "value", *slopes)
            for name in found.quantities:
                each = of(name)
                numbers = (each.value, *each.derivatives.values())
                if any(value for value in numbers if value == value):  # no NaN
                    unit = "" if each.unit == "1" else each.unit
                    own.add_row(name, unit, *map(Number, numbers))
            out.append(own)
        note = "Derivatives are per unit of each parameter, in packet, packet/s and s."
        return [*out, *lines(note)]

    def numbers(self) -> dict[str, Measured]:
        """Mean queue of each link over the run, and its derivatives."""
        out = {}
        for name in self.found.run.links:
            mean = self.found.mean(f"links.{name}.queue")
            out[f"{name}: mean queue"] = Measured(mean.value, mean.unit)
            for path, slope in mean.derivatives.items():
                out[f"{name}: mean queue by {path}"] = Measured(slope)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Queues over time, and what they change by for a relative change of each parameter."""
        found = self.found
        above, below = over_time(figure)
        run = found.run
        for name, link in run.links.items():
            above.plot(run.time, link.queue, label=name)
        for path, (links, _) in found.slopes.items():
            value = number_at(run.net, path)
            for name, link in links.items():
                label = path if len(links) == 1 else f"{name} by {path}"
                below.plot(run.time, value * link.queue / 100, label=label)
        above.set(title=run.net.title)
        below.set(ylabel="change of the queue\nfor + 1 % [packet]")
        for ax in (above, below):
            legend(ax, 2)


_BINS = 60


class WindowsView(View):
    """Windows of the groups of a network."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """Distributions by the names of their groups."""
        return self.found.groups

    @property
    def reasons(self) -> Any:
        """Why other groups have none."""
        return self.found.message

    @property
    def size(self) -> Any:
        """A panel for each group."""
        return 2.8, max(len(self.groups), 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Moments of the stationary window of each group."""
        if not self.groups:
            return [verdict(None, self.found.message)]
        out = table(
            "Windows under independent marks", "group", "marks", ("mean over time", "packet"),
            ("over packets", "packet"), ("standard deviation", "packet"), ("fluid", "packet"),
            ("fluid / mean - 1", "%"),
        )  # fmt: skip
        for name, own in self.groups.items():
            moments = (
                own.mark_probability,
                own.time_mean,
                own.mean,
                math.sqrt(own.variance),
                own.fluid,
            )
            out.add_row(name, *map(Number, moments), percent(own.bias))
        notes = (f"flows.{n}: {own.message}" for n, own in self.groups.items() if own.message)
        return [out, *lines(*notes, self.reasons)]

    def numbers(self) -> dict[str, Measured]:
        """Marks, mean window and the fluid model's bias of each group."""
        out = {}
        for name, own in self.groups.items():
            out[f"{name}: marks"] = Measured(own.mark_probability)
            out[f"{name}: mean window"] = Measured(own.time_mean, "packet")
            out[f"{name}: fluid's bias"] = Measured(own.bias)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Densities of the windows over time, and the windows of the fluid model."""
        if not self.groups:
            raise ValueError(f"no picture: {self.found.message}")
        axes = abreast(figure, len(self.groups))
        for k, (ax, (name, own)) in enumerate(zip(axes, self.groups.items(), strict=True)):
            edges = np.linspace(own.quantile(0.0), own.quantile(1.0 - 1e-4), _BINS + 1)
            for shares, style, label in (
                (own.time, "-", "over time"),
                (own.packets, ":", "over ACKs"),
            ):
                counts, _ = np.histogram(own.window, edges, weights=shares)
                density = counts / np.diff(edges)
                ax.stairs(density, edges, linestyle=style, color=f"C{k}", label=label)
            if own.fluid is not None:
                ax.axvline(own.fluid, color="0.3", linestyle="--", label="fluid")
            ax.set(
                title=f"{name}, marks {own.mark_probability:.3g}",
                xlabel=axis_label("flows", "window"),
            )
            from_zero(ax)
            ax.set(ylabel="density [1/packet]")
        axes[0].legend()


class WindowView(WindowsView):
    """One window."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """The window alone."""
        return {"window": self.found}

    reasons: Any = ""
