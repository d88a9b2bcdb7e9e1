"""Views of trajectories, packet runs, comparisons, derivatives and window distributions."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import ops, quantities
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

_LISTS = ("goodput_flows",)  # metrics with a value for each flow
_LINES = 7  # most components of a solution in a picture


def ended(run: Any) -> Block:
    """End time and status of a trajectory, in a line."""
    head = f"Fluid run to {number(float(run.time[-1]))} s: {run.message}"
    return verdict(run.status.name == "ok", head)


class TrajectoryView(View):
    """Links and groups of flows over time."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means and extremes over the trajectory."""
        out = table("Over the whole run", "quantity", "at the end", "mean", "least", "greatest")
        for name, link in self.found.links.items():
            _add_series(out, f"{name}: queue [packet]", link.queue)
            _add_series(out, f"{name}: mark probability", link.mark_probability)
        for name, group in self.found.flows.items():
            _add_series(out, f"{name}: window [packet]", group.window)
        return [ended(self.found), out]

    def numbers(self) -> dict[str, Measured]:
        """Mean, least and greatest queue of each link over the run."""
        out = {}
        for name, link in self.found.links.items():
            known = link.queue[np.isfinite(link.queue)]
            for word, statistic in (("mean", np.mean), ("least", np.min), ("greatest", np.max)):
                value = float(statistic(known)) if known.size else None
                out[f"{name}: {word} queue"] = Measured(value, "packet")
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Queue and windows over time."""
        result = self.found
        above, below = over_time(figure)
        above.set(title=result.net.title)
        for k, (name, link) in enumerate(result.links.items()):
            _queue_over(above, k, name, result.time, link.queue, link.average)
        for k, (name, group) in enumerate(result.flows.items()):
            mean = np.average(group.window, axis=1, weights=group.n)
            _windows_over(below, k, name, result.time, group.window, mean)
        legend(above, 2)
        legend(below, 3)


def _queue_over(ax: "Axes", k: int, name: str, time: Any, queue: Any, average: Any) -> None:
    """A queue over time, and its average if that differs."""
    ax.plot(time, queue, color=f"C{k}", linewidth=0.9, label=f"{name}: queue")
    if not np.array_equal(average, queue):
        ax.plot(time, average, "--", color="0.2", linewidth=1, label=f"{name}: average")


def _windows_over(ax: "Axes", k: int, name: str, time: Any, windows: Any, mean: Any) -> None:
    """The mean window of a group over time, and the range of its windows (T, m) if known."""
    known = ~np.isnan(windows).all(axis=1)
    low, high = np.nanmin(windows[known], axis=1), np.nanmax(windows[known], axis=1)
    # the edge keeps peaks visible that are narrower than a pixel
    edge = {"color": f"C{k}", "alpha": PALE, "linewidth": 0.3}
    ax.fill_between(time[known], low, high, **edge)
    ax.plot(time, mean, color=f"C{k}", label=f"{name}: mean")


def _add_series(out: Table, name: str, series: np.ndarray) -> None:
    """Add a line for series (T,) or (T, m) that have finite values."""
    known, ends = series[np.isfinite(series)], np.ravel(series[-1])
    ends = ends[np.isfinite(ends)]
    if known.size and ends.size:
        values = (float(statistic(known)) for statistic in (np.mean, np.min, np.max))
        out.add_row(name, span(ends.tolist()), *map(Number, values))


class SolutionView(View):
    """Solutions of delay equations."""

    size = (2.8, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Status, end times and steps of the runs."""
        from fluidcc.dde.integrate import Status

        solution = self.found
        if ops.is_tracer(solution.status):
            return [Line("Solution that JAX traces")]
        codes, ends = np.ravel(solution.status), np.ravel(solution.status_time)
        steps = np.ravel(solution.steps)
        runs = table(
            "Runs", "status", "runs", ("earliest end", "s"), ("latest end", "s"), "most steps"
        )
        for code in np.unique(codes):
            chosen = codes == code
            times = (Number(float(extreme(ends[chosen]))) for extreme in (np.min, np.max))
            name, count = Status(int(code)).name, str(chosen.sum())
            runs.add_row(name, count, *times, str(steps[chosen].max()))
        head = f"Solution: {solution.message}" if codes.size == 1 else f"{codes.size} solutions"
        return [verdict(bool((codes == Status.ok).all()), head), runs]

    def draw(self, figure: "SubFigure") -> None:
        """Components of the state of a delay equation over time."""
        from fluidcc.arrays import jax  # heavy, and views of packet runs do without

        solution = self.found
        if np.ndim(solution.status):
            raise TypeError("a batch of solutions has no picture: choose one, with jax.tree.map")
        ax = figure.subplots()
        parts = {
            f"y{jax.tree_util.keystr(path)}": np.reshape(leaf, (len(solution.t), -1))
            for path, leaf in jax.tree_util.tree_leaves_with_path(solution.y)
        }
        lines = [
            (name if values.shape[1] == 1 else f"{name}[{k}]", values[:, k])
            for name, values in parts.items()
            for k in range(values.shape[1])
        ]
        for name, values in lines[:_LINES]:
            ax.plot(solution.t, values, label=name)
        shown = f", {_LINES} of {len(lines)} components" if len(lines) > _LINES else ""
        ax.set(title=f"{solution.message}{shown}", xlabel="time [s]", ylabel="state")
        legend(ax, 4)


class PacketsView(View):
    """Packet runs: metrics, and series if the runs have them."""

    @property
    def size(self) -> Any:
        """Two panels for goodputs and queues, or one for series."""
        return (2.6, 2) if self.found.series is None else (4.0, 1)

    def _means(self, kind: str, metric: str) -> list[Measured]:
        """Means of a metric with their intervals, for each link or group."""
        means, halves = self.found.mean[kind], self.found.ci95[kind]
        unit = quantities.units("packets", kind)[metric]
        return [Measured(v.get(metric), unit, halves[k].get(metric)) for k, v in means.items()]

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means over seeds with 95 % intervals."""
        result = self.found
        head = f"{result.message}, statistics from {number(result.warmup)} s"
        out: list[Block] = [Line(f"{head}: mean ± half width of the 95 % interval")]
        for kind, title in (("links", "Links"), ("flows", "Flows")):
            metrics = table(title, "metric", "unit", *result.mean[kind])
            for metric, unit in quantities.units("packets", kind).items():
                known = any(metric in values for values in result.mean[kind].values())
                if known and metric not in _LISTS:
                    metrics.add_row(metric, *in_row(unit, *self._means(kind, metric)))
            out.append(metrics)
        return out

    def numbers(self) -> dict[str, Measured]:
        """Utilization and queue of each link, goodput of each group, with intervals."""
        out = {}
        wanted = (("links", "utilization"), ("links", "queue_mean"), ("flows", "goodput"))
        for kind, metric in wanted:
            for name, mean in zip(self.found.mean[kind], self._means(kind, metric), strict=True):
                out[f"{name}: {metric}"] = mean
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
            unit, means = in_unit(unit, *self._means(kind, metric))
            values, halves = np.array([(mean.value, mean.half) for mean in means], float).T
            ax.errorbar(list(runs.mean[kind]), values, yerr=np.nan_to_num(halves), fmt="o")
            label = {"flows": "group of flows", "links": "link"}[kind]
            ax.set(xlabel=label, ylabel=with_unit(words, unit))
            ax.margins(x=0.3)
        from_zero(left, right)
        left.set_title(f"{runs.message}: mean and 95 % interval")

    def _draw_series(self, figure: "SubFigure") -> None:
        """Queues and windows of the first run over time."""
        runs = self.found
        above, below = over_time(figure)
        run = runs.series.isel(seed=0)
        above.set(title=f"{runs.message}, seed {runs.seeds[0]} shown")
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
    """The fluid model versus packets."""

    size = (6.6, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """Both engines, and the validity warnings of the fluid model."""
        both, fluid = self.found, self.found.fluid
        span = f"{number(both.warmup)} to {number(both.until)} s, {len(both.packets.runs)} seeds"
        quantities_table = table(
            f"Fluid versus packets, {span}", "quantity", "unit", "equilibrium", "population",
            "fluid", "packets (95 %)", ("fluid - packets", "%"), ("population - packets", "%"),
        )  # fmt: skip
        for row in both.rows:
            engines = (
                (row.equilibrium, None), (row.population, None), (row.fluid, None),
                (row.packets, row.ci95),
            )  # fmt: skip
            cells = in_row(row.unit, *(Measured(value, half=half) for value, half in engines))
            off = map(percent, (row.difference, row.population_difference))
            quantities_table.add_row(row.name, *cells, *off)
        out = [head(both.equilibrium)]
        if fluid and (fluid.status.name != "ok" or "not to be trusted" in fluid.message):
            out.append(verdict(False, f"Fluid run: {fluid.message}"))
        out += [verdict(None, both.message)] if both.message else []
        if rows is None and both.validity_warnings:
            out.append(verdict(None, "Validity warnings of the fluid model:"))
            out += lines(*(f"  {reason}" for reason in both.validity_warnings))
        noise = both.population
        known = noise.status == "regular" or noise.message in both.validity_warnings
        if rows is None and not known:
            out += lines(f"No fluctuations of the population: {noise.message}")
        return [*out, quantities_table]

    def numbers(self) -> dict[str, Measured]:
        """Each quantity in the fluid model and in packets."""
        out = {}
        for row in self.found.rows:
            out[f"{row.name} (fluid)"] = Measured(row.fluid, row.unit)
            out[f"{row.name} (packets)"] = Measured(row.packets, row.unit, row.ci95)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Queues and windows over time, goodputs, and all relative differences."""
        narrow, both = is_narrow(figure), self.found
        grid = figure.add_gridspec(4 if narrow else 3, 1 if narrow else 2)
        queues = figure.add_subplot(grid[0, :])
        _queues(queues, both)
        _windows(figure.add_subplot(grid[1, :], sharex=queues), both)
        _goodputs(figure.add_subplot(grid[2, 0]), both)
        _differences(figure.add_subplot(grid[3, 0] if narrow else grid[2, 1]), both)


def _one_run(both: Any, variable: str, label: str) -> Any:
    """Times and values of a series of the first packet run; empty if runs have no series."""
    series = both.packets.series
    if series is None:
        return [], []
    return series.time, series[variable].isel(seed=0).sel({variable.split("_")[0]: label})


def _queues(ax: "Axes", both: Any) -> None:
    rows = {row.name: row for row in both.rows}
    for k, name in enumerate(both.equilibrium.links):
        series = _one_run(both, "link_number_in_system", name)
        ax.plot(*series, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.5, alpha=2 * PALE)
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
        noise = both.population.links[name].queue
        if math.isfinite(noise.std):
            ends = (max(noise.mean + side * noise.std, 0.0) for side in (-2, 2))
            ax.axhspan(*ends, color="0.3", alpha=PALE / 2, label=f"{name}: population, ± 2 std")
    ax.set(title=both.equilibrium.net.title, ylabel=axis_label("links", "queue"))
    from_zero(ax)
    legend(ax, 3)


def _windows(ax: "Axes", both: Any) -> None:
    """Mean window of each group."""
    for k, name in enumerate(both.equilibrium.flows):
        series = _one_run(both, "group_window", name)
        label = f"{name}: packets, seed {both.packets.seeds[0]}"
        ax.plot(*series, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.7, label=label)
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
    positions = np.arange(len(rows))
    fluid = [np.nan if row.model is None else row.model / scale for row in rows]
    packets = [np.nan if row.packets is None else row.packets / scale for row in rows]
    halves = [(row.ci95 or 0.0) / scale for row in rows]
    ax.bar(positions - 0.2, fluid, 0.38, label="fluid", color="C0")
    ax.bar(positions + 0.2, packets, 0.38, yerr=halves, label="packets", color="C1")
    ax.set_xticks(positions, [row.name.split(".")[1] for row in rows])
    ax.set(xlabel="group of flows", ylabel=f"goodput of a flow [{unit}]")
    ax.grid(visible=False, axis="x")
    from_zero(ax)
    legend(ax, 2)


def _differences(ax: "Axes", both: Any) -> None:
    names = [row.name for row in reversed(both.rows) if row.difference is not None]
    rows = {row.name: row for row in both.rows}
    ax.axvline(0, color="0.4", linewidth=0.8)
    for key, label, aside, colour in (
        ("difference", "fluid", 0.12, "C0"),
        ("population_difference", "population", -0.12, "0.3"),
    ):
        known = [(k, rows[n]) for k, n in enumerate(names) if getattr(rows[n], key) is not None]
        off = [getattr(row, key) for _, row in known]
        # only packets have a sampling error: the interval of the ratio is theirs
        halves = [
            100 * (row.ci95 or 0.0) / row.packets * (1 + d)
            for (_, row), d in zip(known, off, strict=True)
        ]
        places = [k + aside for k, _ in known]
        ax.errorbar([100 * d for d in off], places, xerr=halves, fmt="o", color=colour, label=label)
    ax.set_yticks(range(len(names)), [" ".join(name.split(".")[1:]) for name in names])
    ax.set(xlabel="relative to packets [%]", ylabel="quantity")
    ax.set_title("with 95 % intervals of the packets")
    ax.margins(y=0.15)
    legend(ax, 2)


class GradientView(View):
    """A quantity and its derivatives."""

    instead = "its derivatives have different units; draw a sweep over a parameter"

    def tables(self, rows: int | None = None) -> list[Block]:
        """The derivatives, on both sides if these differ."""
        result = self.found
        why = f" ({result.message})" if result.message else ""
        value = quantity(result.value, result.unit)
        head = verdict(result.status == "ok", f"{result.of}: {value}, {result.status}{why}")
        columns = ("towards smaller", "towards larger") if result.sides else ()
        out = table("Derivatives", "parameter", "derivative", *columns, "unit")
        for path, slope in result.derivatives.items():
            sides = map(Number, result.sides.get(path, (None,) * len(columns)))
            unit = f"({result.unit}) / ({result.units[path]})"
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
        result, out = self.found, [ended(self.found.run)]
        for title, gradient_of in (
            (f"Means from {number(result.after)} s", result.mean),
            ("At the end", result.end),
        ):
            slopes = (f"by {path}" for path in result.slopes)
            values = table(title, "quantity", "unit", "value", *slopes)
            for name in result.quantities:
                gradient = gradient_of(name)
                numbers = (gradient.value, *gradient.derivatives.values())
                if any(value for value in numbers if value == value):  # no NaN
                    unit = "" if gradient.unit == "1" else gradient.unit
                    values.add_row(name, unit, *map(Number, numbers))
            out.append(values)
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
        """Queues over time, and their change for a relative change of each parameter."""
        result = self.found
        above, below = over_time(figure)
        run = result.run
        for name, link in run.links.items():
            above.plot(run.time, link.queue, label=name)
        for path, (links, _) in result.slopes.items():
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
    """Window distributions of the groups of a network."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """Distributions by name of group."""
        return self.found.groups

    @property
    def reasons(self) -> Any:
        """Why the other groups have no distribution."""
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
        for name, group in self.groups.items():
            moments = (
                group.mark_probability,
                group.time_mean,
                group.mean,
                math.sqrt(group.variance),
                group.fluid,
            )
            out.add_row(name, *map(Number, moments), percent(group.bias))
        notes = (f"flows.{n}: {g.message}" for n, g in self.groups.items() if g.message)
        return [out, *lines(*notes, self.reasons)]

    def numbers(self) -> dict[str, Measured]:
        """Mark probability, mean window and bias of the fluid model, for each group."""
        out = {}
        for name, group in self.groups.items():
            out[f"{name}: marks"] = Measured(group.mark_probability)
            out[f"{name}: mean window"] = Measured(group.time_mean, "packet")
            out[f"{name}: fluid's bias"] = Measured(group.bias)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Densities of the windows over time, and the windows of the fluid model."""
        if not self.groups:
            raise ValueError(f"no picture: {self.found.message}")
        axes = abreast(figure, len(self.groups))
        for k, (ax, (name, group)) in enumerate(zip(axes, self.groups.items(), strict=True)):
            edges = np.linspace(group.quantile(0.0), group.quantile(1.0 - 1e-4), _BINS + 1)
            for weights, style, label in (
                (group.time, "-", "over time"),
                (group.packets, ":", "over ACKs"),
            ):
                counts, _ = np.histogram(group.window, edges, weights=weights)
                density = counts / np.diff(edges)
                ax.stairs(density, edges, linestyle=style, color=f"C{k}", label=label)
            if group.fluid is not None:
                ax.axvline(group.fluid, color="0.3", linestyle="--", label="fluid")
            ax.set(
                title=f"{name}, marks {group.mark_probability:.3g}",
                xlabel=axis_label("flows", "window"),
            )
            from_zero(ax)
            ax.set(ylabel="density [1/packet]")
        axes[0].legend()


class WindowView(WindowsView):
    """The window distribution of one flow."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """The single distribution."""
        return {"window": self.found}

    reasons: Any = ""
