"""Views of trajectories, packet runs, comparisons, derivatives and window distributions."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import ops, quantities
from fluidcc.analysis.measures import EQUILIBRIUM, measures
from fluidcc.result import View
from fluidcc.results.axes import (
    PALE,
    abreast,
    add_delay,
    axis_label,
    cut_peaks,
    fit_scale,
    from_zero,
    interval_bars,
    is_narrow,
    legend_above,
    mark_changes,
    name_ticks,
    over_time,
    width_of,
    wrapped,
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

_LINES = 7  # most components of a solution, or classes of transfers, in a picture
_ROW = 4  # panels that take two rows
_THIN = 30  # most flows of a group with a line
_FLOWS = ("5 to 95 % of the flows", (0.05, 0.95))  # with a band, in words and as shares
_OVER_TIME = 2.0  # inch
_SETTLED = 1 / 3  # of a trajectory, after which earlier peaks are cut
_BANDS = {"p50": "median", "p5": "5 to 95 %", "p95": "", "p99": "to 99 %", "p99_9": "to 99.9 %"}


def ended(run: Any) -> Block:
    """End time and status of a trajectory, in a line."""
    head = f"Fluid run to {number(float(run.time[-1]))} s: {run.message}"
    return verdict(run.status.name == "ok", head)


class TrajectoryView(View):
    """Links and groups of flows over time."""

    engines = ("fluid", "run", "data")
    names = ("links.queue_mean", "links.queue_min", "links.queue_max")
    heads = ("quantity", "at the end", "mean", "least", "greatest")

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means and extremes over the trajectory."""
        out = table("Over the whole run", *self.heads)
        for name, link in self.found.links.items():
            own = functools.partial(quantities.full_name, "links", name)
            _add_series(out, f"{own('queue')} [packet]", link.queue)
            _add_series(out, f"{own('queueing_delay')} [ms]", 1e3 * link.queueing_delay)
            _add_series(out, own("mark_fraction"), link.mark_fraction)
            _add_series(out, own("drop_fraction"), link.drop_fraction)
        for name, group in self.found.flows.items():
            full = quantities.full_name("flows", name, "window")
            _add_series(out, f"{full} [packet]", group.window)
        return [ended(self.found), out]

    def value(self, part: Any, name: str) -> float | None:
        """Mean, least and greatest queue of each link over the run."""
        known = part.queue[np.isfinite(part.queue)]
        statistic = {"queue_mean": np.mean, "queue_min": np.min, "queue_max": np.max}[name]
        return float(statistic(known)) if known.size else None

    def draw(self, figure: "SubFigure") -> None:
        """Queue and windows over time."""
        result = self.found
        above, below = over_time(figure)
        for k, (name, link) in enumerate(result.links.items()):
            _queue_over(above, k, name, result.time, link.queue, link.average)
        for k, (name, group) in enumerate(result.flows.items()):
            mean = np.average(group.window, axis=1, weights=group.n)
            _windows_over(below, k, name, result.time, group.window, mean)
        add_delay(above, ((link.queue, link.queueing_delay) for link in result.links.values()))
        cut_peaks(below, _SETTLED * float(result.time[-1]))
        for ax in (above, below):
            legend_above(ax)


def _line(k: int) -> dict[str, Any]:
    """Colour and dashes of the k-th line of the house style."""
    from matplotlib import rcParams

    cycle = [*rcParams["axes.prop_cycle"]]
    return {"color": f"C{k}", "linestyle": cycle[k % len(cycle)]["linestyle"]}


def _queue_over(ax: "Axes", k: int, name: str, time: Any, queue: Any, average: Any) -> None:
    """A queue over time, and its average if that differs."""
    ax.plot(time, queue, linewidth=0.9, label=f"{name}: queue", **_line(k))
    if not np.array_equal(average, queue):
        ax.plot(time, average, "--", color="0.2", linewidth=1, label=f"{name}: average")


def _windows_over(
    ax: "Axes", k: int, name: str, time: Any, windows: Any, mean: Any,
    of: str = "all round trips", shares: tuple[float, float] = (0.0, 1.0),
) -> None:  # fmt: skip
    """The mean window of a group over time, and the range of its windows (T, m) if known, or that
    between two shares of them.
    """
    known = ~np.isnan(windows).all(axis=1)
    low, high = np.nanquantile(windows[known], shares, axis=1)
    if np.any(high > low):
        # the edge keeps peaks visible that are narrower than a pixel
        edge = {"color": f"C{k}", "alpha": PALE, "linewidth": 0.3}
        ax.fill_between(time[known], low, high, label=f"{name}: {of}", **edge)
    ax.plot(time, mean, label=f"{name}: mean", **_line(k))


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
        figure.suptitle(f"{solution.message}{shown}")
        ax.set(xlabel="time [s]", ylabel="state")
        ax.margins(x=0)
        legend_above(ax)


class PacketsView(View):
    """Packet runs: metrics, and series if the runs have them."""

    engines = ("packets", "series", "data")
    names = ("links.utilization", "links.queue_mean", "flows.goodput")
    heads = ("metric", "unit", "of", "difference")

    @property
    def size(self) -> Any:
        """Panels for goodputs, queues and delays, and for transfers; or one for series."""
        if self.found.series is not None:
            return (4.0, 1)
        count = len(self._panels())
        return (3.0, count) if count < _ROW else (5.6, 2)

    def _means(self, kind: str, metric: str) -> list[Measured]:
        """Means of a metric with their intervals, for each link or group."""
        means, halves = self.found.mean[kind], self.found.ci95[kind]
        unit = quantities.units("packets", kind)[metric]
        return [Measured(v.get(metric), unit, halves[k].get(metric)) for k, v in means.items()]

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means over seeds with 95 % intervals."""
        result = self.found
        since = f"statistics from {number(result.warmup)} s: mean ± half width of the 95 % interval"
        since += ", a mean alone if all runs agree" if len(result.seeds) > 1 else ""
        out = lines(result.message, since)
        for kind, title in (("links", "Links"), ("flows", "Flows")):
            metrics = table(title, "metric", "unit", *result.mean[kind])
            for metric, unit in quantities.units("packets", kind).items():
                known = any(metric in values for values in result.mean[kind].values())
                if known and metric not in quantities.LISTS:
                    metrics.add_row(metric, *in_row(unit, *self._means(kind, metric)))
            out.append(metrics)
        return out

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """A column for each link or group."""
        return [*cls.heads, *net.by_group.link_names, *net.flow_names]

    def numbers(self) -> dict[str, Measured]:
        """Utilization and queue of each link, goodput of each group, with intervals."""
        return {
            quantities.full_name(kind, name, metric): mean
            for kind, metric in (name.split(".") for name in self.names)
            for name, mean in zip(self.found.mean[kind], self._means(kind, metric), strict=True)
        }  # fmt: skip

    def draw(self, figure: "SubFigure") -> None:
        """Means with intervals, or the series of the first run."""
        (self._draw_means if self.found.series is None else self._draw_series)(figure)

    def _panels(self) -> list[Callable[["Axes"], None]]:
        """What draws each panel of means."""
        panels: list[Callable[[Axes], None]] = [
            functools.partial(self._draw_mean, "flows", "goodput", "goodput of a flow"),
            functools.partial(self._draw_mean, "links", "number_in_system_mean", "mean queue"),
        ]
        medians = (v.get("queueing_delay_p50") for v in self.found.mean["links"].values())
        if any(value == value and value is not None for value in medians):  # no NaN
            panels.append(self._draw_delays)
        if self.found.transfers is not None and self.found.transfers.sizes["transfer"]:
            panels.append(self._draw_transfers)
        return panels

    def _draw_means(self, figure: "SubFigure") -> None:
        """Means with intervals, percentiles of delays, and times of transfers."""
        panels = self._panels()
        rows: Any = figure.subfigures(2, 1) if len(panels) == _ROW else [figure]
        share = len(panels) // len(rows)
        axes = [ax for row in rows for ax in abreast(row, share)]
        for ax, draw in zip(axes, panels, strict=True):
            draw(ax)
        figure.suptitle(f"mean and 95 % interval; {self.found.message}")

    def _draw_mean(self, kind: str, metric: str, words: str, ax: "Axes") -> None:
        """A metric of each group or link, with intervals."""
        unit = quantities.units("packets", kind)[metric]
        unit, means = in_unit(unit, *self._means(kind, metric))
        values, halves = np.array([(mean.value, mean.half) for mean in means], float).T
        ax.errorbar(range(len(values)), values, yerr=interval_bars(values, halves), fmt="o")
        name_ticks(ax, list(self.found.mean[kind]))
        label = {"flows": "group of flows", "links": "link"}[kind]
        ax.set(xlabel=label, ylabel=with_unit(words, unit))
        ax.margins(x=0.3)
        from_zero(ax)

    def _draw_delays(self, ax: "Axes") -> None:
        """Percentiles of the queueing delay at each link: a point with bars."""
        marks = [self._means("links", f"queueing_delay_{p}") for p in _BANDS]
        unit, all_marks = in_unit("s", *(mark for row in marks for mark in row))
        values = np.array([mark.value for mark in all_marks], float).reshape(len(marks), -1)
        (median, *ends), places = values, range(values.shape[1])
        name_ticks(ax, list(self.found.mean["links"]))
        labels = filter(None, list(_BANDS.values())[1:])
        bars = zip(itertools.pairwise(ends), (5, 3, 1), labels, strict=True)
        for (low, high), width, label in bars:
            ax.vlines(places, low, high, color="C0", linewidth=width, alpha=0.5, label=label)
        ax.plot(places, median, "o", color="C0", label=_BANDS["p50"])
        ax.set(xlabel="link", ylabel=with_unit("queueing delay", unit))
        ax.margins(x=0.3)
        from_zero(ax)
        legend_above(ax)

    def _draw_transfers(self, ax: "Axes") -> None:
        """Share of the transfers of each group that take at most a time, by classes of size."""
        found = self.found.transfers
        times, sizes = found.transfer_time.values, found.transfer_size.values
        decades = np.floor(np.log10(np.maximum(sizes, 1)) + 1e-9).astype(int)
        classes = [
            (name, decade)
            for name in np.unique(found.transfer_group.values)
            for decade in np.unique(decades[found.transfer_group.values == name])
        ]
        for name, decade in classes[:_LINES]:
            own = np.sort(times[(found.transfer_group.values == name) & (decades == decade)])
            label = f"{name}: {10**decade} to {10 ** (decade + 1) - 1} packets"
            ax.ecdf(own, label=label)
        ax.set(xlabel="completion time [s]", ylabel="share of the transfers")
        fit_scale(ax, times.min(), times.max(), beyond=10.0)
        legend_above(ax)

    def _draw_series(self, figure: "SubFigure") -> None:
        """Queues and windows of the first run over time."""
        runs = self.found
        above, below = over_time(figure)
        run = runs.series.isel(seed=0)
        figure.suptitle(f"seed {runs.seeds[0]} shown; {runs.message}")
        time = run.time.values
        for k, name in enumerate(run.link.values):
            link = run.sel(link=name)
            _queue_over(above, k, name, time, link.link_queue.values, link.link_average.values)
        for k, name in enumerate(run.group.values):
            windows = run.flow_window.values[:, run.flow_group.values == name]
            mean = run.group_window.sel(group=name).values
            below.plot(time, windows[:, :_THIN], "-", color=f"C{k}", linewidth=0.4, alpha=0.4)
            _windows_over(below, k, name, time, windows, mean, *_FLOWS)
        from_zero(above, below)
        cut_peaks(below, runs.warmup)
        for ax in (above, below):
            mark_changes(ax, runs.net, float(time[-1]))
            legend_above(ax)


class TrainsView(PacketsView):
    """Runs of trains: as packet runs, with the step and its error."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """Means over seeds with 95 % intervals, and what the step of the trains changes."""
        first, *rest = super().tables(rows)
        step = quantity(self.found.step, "s")
        if self.found.step_error is None:
            return [first, *lines(f"Trains with a step of {step}"), *rest]
        errors = table(
            f"Trains with a step of {step}, less those of the same seeds with a step twice as long",
            "metric", "of", "unit", "difference",
        )  # fmt: skip
        others = (f"links.{name}" for name in ("queue_var", "mark_fraction", "drop_fraction"))
        for kind, metric in (name.split(".") for name in (*self.names, *others)):
            unit = quantities.units("packets", kind)[metric]
            for name, values in self.found.step_error[kind].items():
                error = Measured(values.get(metric))
                errors.add_row(metric, name, *in_row(unit, error))
        return [first, *rest, errors]

    def _draw_series(self, figure: "SubFigure") -> None:
        """Queues of the first run over time."""
        runs, ax = self.found, figure.subplots()
        run = runs.series.isel(seed=0)
        for name in run.link.values:
            ax.plot(run.time, run.link_number_in_system.sel(link=name), linewidth=0.9, label=name)
        figure.suptitle(f"seed {runs.seeds[0]} shown; {runs.message}")
        ax.set(xlabel="time [s]", ylabel=axis_label("links", "queue"))
        ax.margins(x=0)
        from_zero(ax)
        legend_above(ax)


COLUMNS = {
    "mean": ("mean", ""), "population": ("population", ""),
    "trains": ("trains", "trains_ci95"), "packets": ("packets", "ci95"),
}  # fmt: skip
"""Levels with the fields of a row that have the value and half of its interval."""
_DIFFERENCES = {
    "mean": "difference", "population": "population_difference", "trains": "trains_difference",
}  # fmt: skip


class ComparisonView(View):
    """The levels of description side by side."""

    heads = ("quantity", "unit", *COLUMNS, "recommended_difference")
    in_lines = True

    @property
    def size(self) -> Any:
        """Size of the panels over time and below; taller in a narrow picture."""
        return 2 * _OVER_TIME + self._lower(), 1.3

    def _lower(self) -> float:
        """Height of the panel of differences [inch], which has a line for each quantity."""
        return max(3.0, 1.0 + 0.15 * len(self.found.rows))

    def tables(self, rows: int | None = None) -> list[Block]:
        """All levels, the one to trust, and the validity warnings of the fluid model."""
        both, fluid = self.found, self.found.fluid
        compared = both.packets is not None and both.level != "packets"
        span = f"{number(both.warmup)} to {number(both.until)} s"
        span += f", {len(both.seeds)} seeds" if both.seeds else ""
        levels_table = table(
            f"Levels of description, {span}",
            "quantity", "unit", *both.levels,
            *([("recommended_difference", "%")] if compared else []),
        )  # fmt: skip
        for row in both.rows:
            shown = (COLUMNS[level] for level in both.levels)
            values = [
                Measured(getattr(row, value), half=getattr(row, half) if half else None)
                for value, half in shown
            ]
            off = [percent(row.recommended_difference)] if compared else []
            levels_table.add_row(row.name, *in_row(row.unit, *values), *off)
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
        good = None if both.level == "packets" else True
        out.append(verdict(good, f"Level to trust: {both.level} ({both.level_reason})"))
        return [*out, levels_table]

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """The levels: a sweep has a table for each quantity."""
        from fluidcc.results.compare import compared

        return ["to_trust", *COLUMNS, *compared(net)]

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of the levels, and the quantities, which choose rows."""
        from fluidcc.results.compare import compared

        return [*cls.heads, *compared(net)]

    def numbers(self) -> dict[str, Measured]:
        """Each quantity at the level to trust."""
        return {row.name: Measured(row.recommended, row.unit) for row in self.found.rows}

    def draw(self, figure: "SubFigure") -> None:
        """Queues and windows over time, goodputs, and all relative differences."""
        narrow, both = is_narrow(figure), self.found
        above = [_queues] + [_windows] * bool(_courses(both))
        below = [_goodputs] + [_differences] * (both.packets is not None)
        count = 1 if narrow else len(below)
        heights = [*(_OVER_TIME for _ in above), *(self._lower() for _ in below[::count])]
        grid = figure.add_gridspec(len(heights), count, height_ratios=heights)
        shared = None
        for k, draw in enumerate(above):
            shared = figure.add_subplot(grid[k, :], sharex=shared)
            draw(shared, both)
            shared.set_xlabel("time [s]" if k == len(above) - 1 else "")
        for k, draw in enumerate(below):
            place = grid[len(above) + k // count, k % count]
            draw(figure.add_subplot(place), both)


_LEVEL_COLOURS = {"mean": "C0", "population": "0.5", "trains": "C2", "packets": "C1"}


def _colour(k: int, level: str) -> str:
    """The colour of a level of the k-th link or group; grey where all share one."""
    colour = _LEVEL_COLOURS[level]
    return f"C{3 * k + int(colour[1:])}" if colour.startswith("C") else colour


def _one_run(runs: Any, variable: str, label: str) -> Any:
    """Times and values of a series of the first run; empty if there is none."""
    if runs is None or runs.series is None or variable not in runs.series:
        return [], []
    series = runs.series
    return series.time, series[variable].isel(seed=0).sel({variable.split("_")[0]: label})


def _queues(ax: "Axes", both: Any) -> None:
    rows, links = {row.name: row for row in both.rows}, both.equilibrium.links
    for k, name in enumerate(links):
        of = f"{name}: " if len(links) > 1 else ""
        series = _one_run(both.packets or both.trains, "link_number_in_system", name)
        faint = _colour(k, "packets" if both.packets else "trains")
        ax.plot(*series, linestyle="-", color=faint, linewidth=0.5, alpha=2 * PALE)
        if both.fluid is not None:
            queue, colour = both.fluid.links[name].queue, _colour(k, "mean")
            ax.plot(both.fluid.time, queue, "-", color=colour, label=f"{of}fluid")
        row, span = rows[f"links.{name}.queue"], [both.warmup, both.until]
        for level, style in (("packets", "--"), ("trains", "-.")):
            mean, half = (getattr(row, field) for field in COLUMNS[level])
            if mean is not None:
                colour, label = _colour(k, level), f"{of}{level}, mean and 95 %"
                ax.plot(span, [mean, mean], style, color=colour, label=label)
                place = span[1] - (0.02 if level == "trains" else 0.01) * (span[1] - span[0])
                ax.errorbar(place, mean, interval_bars([mean], [half or 0.0]), color=colour)
        if row.mean is not None:
            ax.axhline(row.mean, color="0.3", linestyle=":", label="equilibrium")
        if row.population is not None:
            ax.axhline(row.population, color="0.5", linestyle="--", label="population")
            shares = both.population.links[name].queue.quantiles
            if shares:
                label = "population, 5 to 95 %"
                ax.axhspan(shares[0.05], shares[0.95], color="0.3", alpha=PALE / 2, label=label)
        if both.packets and len(links) == 1:
            rate, found = float(both.equilibrium.net.links[k].capacity), both.packets.mean["links"]
            low, high = (rate * found[name][f"queueing_delay_{p}"] for p in ("p5", "p95"))
            own = {"color": _colour(k, "packets"), "alpha": PALE, "label": "packets, 5 to 95 %"}
            ax.fill_between(span, [low, low], [high, high], **own)
    ax.set_ylabel(axis_label("links", "queue"))
    add_delay(ax, ((v.queue, v.queueing_delay) for v in links.values()))
    ax.set_xlim(0.0, both.until)
    from_zero(ax)
    mark_changes(ax, both.equilibrium.net, both.until)
    legend_above(ax)


def _courses(both: Any) -> list[tuple[str, Any, Any, str, float]]:
    """Mean windows over time: what they are of, times, values, colour and width of the line."""
    found = []
    for k, name in enumerate(both.equilibrium.flows):
        for level, runs in (("packets", both.packets), ("trains", both.trains)):
            times, values = _one_run(runs, "group_window", name)
            if len(times):
                said = f"{name}: {level}, seed {runs.seeds[0]}"
                found.append((said, times, values, _colour(k, level), 0.7))
        if both.fluid is not None:
            group = both.fluid.flows[name]
            mean = np.average(group.window, axis=1, weights=group.n)
            found.append((f"{name}: fluid", both.fluid.time, mean, _colour(k, "mean"), 1.0))
    return found


def _windows(ax: "Axes", both: Any) -> None:
    """Mean window of each group."""
    for label, times, values, colour, width in _courses(both):
        ax.plot(times, values, "-", color=colour, linewidth=width, label=label)
    ax.set_ylabel(axis_label("flows", "window"))
    from_zero(ax)
    cut_peaks(ax, both.warmup)
    legend_above(ax)


def _goodputs(ax: "Axes", both: Any) -> None:
    """Goodput of a flow of each group, at every level."""
    rows = [row for row in both.rows if row.name.endswith(".goodput")]
    every = {level: [getattr(row, COLUMNS[level][0]) for row in rows] for level in both.levels}
    known = {level: values for level, values in every.items() if {*values} - {None}}
    scale, unit = scaled([v for values in known.values() for v in values], "bit/s")
    width = 0.8 / max(len(known), 1)
    for i, (level, values) in enumerate(known.items()):
        value, half = COLUMNS[level]
        heights = np.array(values, float) / scale
        halves = np.array([getattr(row, half or value) for row in rows], float) / scale
        ends = interval_bars(heights, halves) if half else None
        places = np.arange(len(rows)) + (i - (len(known) - 1) / 2) * width
        colour = _LEVEL_COLOURS[level]
        ax.bar(places, heights, 0.95 * width, yerr=ends, label=level, color=colour)
    name_ticks(ax, [row.name.split(".")[1] for row in rows])
    ax.set(xlabel="group of flows", ylabel=f"goodput of a flow [{unit}]")
    ax.grid(visible=False, axis="x")
    from_zero(ax)
    legend_above(ax)


def _differences(ax: "Axes", both: Any) -> None:
    """Relative differences of the levels to packets."""
    levels = [level for level in both.levels if level in _DIFFERENCES]
    keys = [_DIFFERENCES[level] for level in levels]
    rows = [r for r in reversed(both.rows) if any(getattr(r, key) is not None for key in keys)]
    ax.axvline(0, color="0.4", linewidth=0.8)
    most = 1.0
    for i, (level, key) in enumerate(zip(levels, keys, strict=True)):
        known = [(k, row) for k, row in enumerate(rows) if getattr(row, key) is not None]
        off = [getattr(row, key) for _, row in known]
        # the interval of the ratio by the sampling error of packets
        halves = [
            100 * (row.ci95 or 0.0) / row.packets * (1 + d)
            for (_, row), d in zip(known, off, strict=True)
        ]
        places = [k + 0.2 * ((len(levels) - 1) / 2 - i) for k, _ in known]
        name = "fluid, its trajectory" if level == "mean" and both.fluid is not None else level
        colour, label = _LEVEL_COLOURS[level], f"{name}{', to trust' * (level == both.level)}"
        ends = interval_bars([100 * (1 + d) for d in off], halves)  # none is below -100 %
        if known:
            own: dict[str, Any] = {"fmt": "o", "color": colour, "label": label}
            ax.errorbar([100 * d for d in off], places, xerr=ends, **own)
            most = max(most, *off)
    low, high = ax.get_xlim()
    ax.set_xlim(low, min(high, 150 * most))  # longer intervals leave the picture
    names, rest = [row.name.split(".") for row in rows], both.equilibrium
    short = [name[1:] if len(getattr(rest, name[0])) > 1 else name[2:] for name in names]
    ax.set_yticks(range(len(rows)), [" ".join(name).replace("_", " ") for name in short])
    label = wrapped("relative to packets, with 95 % intervals [%]", width_of(ax))
    ax.set(xlabel=label, ylabel="quantity", ylim=(-0.7, max(len(rows), 1) - 0.3))
    legend_above(ax)


class GradientView(View):
    """A quantity and its derivatives."""

    instead = "its derivatives have different units; draw a sweep over a parameter"
    heads = ("parameter", "derivative", "towards smaller", "towards larger", "unit")

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

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """A quantity at equilibrium, and its derivatives."""
        return [*measures(net, EQUILIBRIUM), *(f"by {path}" for path in paths)]

    def numbers(self) -> dict[str, Measured]:
        """The quantity and its derivatives."""
        slopes = {f"by {path}": Measured(v) for path, v in self.found.derivatives.items()}
        return {self.found.of: Measured(self.found.value, self.found.unit), **slopes}


class SensitivityView(View):
    """A trajectory and its derivatives."""

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of the quantities, with a derivative by each parameter."""
        return ["quantity", "unit", "value", *(f"by {path}" for path in paths)]

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """The mean queue of each link, and its derivatives."""
        links = net.by_group.link_names
        means = [quantities.full_name("links", name, "queue_mean") for name in links]
        return [f"{mean}{by}" for mean in means for by in ("", *(f" by {p}" for p in paths))]

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
            full = quantities.full_name("links", name, "queue_mean")
            out[full] = Measured(mean.value, mean.unit)
            for path, slope in mean.derivatives.items():
                out[f"{full} by {path}"] = Measured(slope)
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
        below.set(ylabel="change of the queue\nfor + 1 % [packet]")
        for ax in (above, below):
            legend_above(ax)


_BINS = 60


class WindowsView(View):
    """Window distributions of the groups of a network, or that of one flow."""

    names = ("flows.mark_probability", "flows.window_mean", "flows.window_bias")
    heads = (
        "group", "marks", "mean over time", "over packets", "standard deviation", "fluid",
        "fluid / mean - 1",
    )  # fmt: skip

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.groups: Mapping[str, Any] = getattr(found, "groups", {"window": found})
        self.reasons = found.message if hasattr(found, "groups") else ""  # of the other groups

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
                group.window_mean,
                group.window_per_packet,
                math.sqrt(group.window_var),
                group.window_fluid,
            )
            out.add_row(name, *map(Number, moments), percent(group.window_bias))
        notes = (f"flows.{n}: {g.message}" for n, g in self.groups.items() if g.message)
        return [out, *lines(*notes, self.reasons)]

    def numbers(self) -> dict[str, Measured]:
        """Mark probability, mean window and bias of the fluid model, for each group."""
        owned = self.groups if hasattr(self.found, "groups") else {"": self.found}
        names = [name.partition(".")[2] for name in self.names]
        units = [quantities.unit_of("windows", name) for name in names]
        return {
            quantities.full_name("flows", owner, name): Measured(getattr(group, name), unit)
            for owner, group in owned.items()
            for name, unit in zip(names, units, strict=True)
        }

    def draw(self, figure: "SubFigure") -> None:
        """Densities of the windows over time, and the windows of the fluid model."""
        if not self.groups:
            raise ValueError(f"no picture: {self.found.message}")
        axes = abreast(figure, len(self.groups))
        for k, (ax, (name, group)) in enumerate(zip(axes, self.groups.items(), strict=True)):
            ax.plot([], [], " ", label=f"{name}, marks {group.mark_probability:.3g}")
            edges = np.linspace(group.quantile(0.0), group.quantile(1.0 - 1e-4), _BINS + 1)
            for weights, style, label in (
                (group.time_share, "-", "over time"),
                (group.packet_share, ":", "over ACKs"),
            ):
                counts, _ = np.histogram(group.window, edges, weights=weights)
                density = counts / np.diff(edges)
                ax.stairs(density, edges, linestyle=style, color=f"C{k}", label=label)
            if group.window_fluid is not None:
                ax.axvline(group.window_fluid, color="0.3", linestyle="--", label="fluid")
            ax.set(xlabel=axis_label("flows", "window"))
            from_zero(ax)
            ax.set(ylabel="density [1/packet]")
            legend_above(ax)
