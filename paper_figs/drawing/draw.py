"""Draws a figure in the house style, and writes its points as a table."""

import csv
import math
import textwrap
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from fluidcc.results.plot import style

from .figure import FLUID, FORMULA, PACKETS, Curve, Panel, Printed, Recipe

_MARKS = "osD^vP*X"
_DASHES: dict[str, Any] = {PACKETS: "-", FLUID: "--", FORMULA: "-."}
_WIDTH, _HEIGHT, _LEGEND = 3.2, 2.5, 1.7  # of a panel, and of the legend next to it [inch]
_PALE = 0.4  # opacity if the fluid model does not hold
_LETTERS, _TITLE = 21, 13  # letters of a caption and of a title in an inch


def _layout(count: int) -> tuple[int, int]:
    """Rows and columns of panels: two abreast, so that letters are alike in all figures."""
    columns = min(count, 2)
    return math.ceil(count / columns), columns


def draw(recipe: Recipe, panels: Sequence[Panel], *, caption: str = "") -> Figure:
    """The picture of a figure: panels, one legend next to them, and a caption below."""
    rows, columns = _layout(len(panels))
    with style():
        spare = rows * columns > len(panels)  # the legend goes there
        size = (_WIDTH * columns + (0 if spare else _LEGEND), _HEIGHT * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for empty in axes[len(panels) :]:
            empty.set_axis_off()
        shades, entries = _shades(recipe, panels), {}
        looks = _looks(panels)
        both = {c.label for p in panels for c in p.curves if c.engine != FLUID}
        for k, (panel, ax) in enumerate(zip(panels, axes, strict=False)):
            letter = recipe.panels[k] if k < len(recipe.panels) else ""
            ax.set_title(f"({letter}) {panel.title}" if letter else panel.title)
            entries |= _panel(ax, panel, shades, looks, both)
        head = textwrap.fill(recipe.title, int(_TITLE * _WIDTH * columns))
        figure.suptitle(head, fontsize=9, fontweight="bold", x=0.01, ha="left")
        if caption:
            lines = textwrap.fill(caption, int(_LETTERS * size[0]))
            figure.supxlabel(lines, fontsize=6, x=0.01, ha="left", color="0.35")
        if entries:
            texts = [textwrap.fill(text, 40 if spare else 26) for text in entries]
            place: Any = axes[-1] if spare else figure
            loc = "center left" if spare else "outside right upper"
            place.legend(list(entries.values()), texts, loc=loc, handlelength=2)
    return figure


def _shades(recipe: Recipe, panels: Sequence[Panel]) -> dict[str, tuple[Any, str]]:
    """A colour and a mark for each label: the same in all panels, those named in all figures."""
    labels = dict.fromkeys([*recipe.labels, *(c.label for p in panels for c in p.curves)])
    cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return {
        label: (cycle[k % len(cycle)], _MARKS[k % len(_MARKS)]) for k, label in enumerate(labels)
    }


def _panel(
    ax: Axes, panel: Panel, shades: dict[str, tuple[Any, str]], looks: dict[str, Any],
    both: Container[str],
) -> dict[str, Any]:  # fmt: skip
    """Draw a panel; entries of the legend by text. `both` has the labels seen in packets."""
    ax.set_xscale(panel.xscale)
    ax.set_yscale(panel.yscale)
    entries = {}
    if panel.field is not None:
        entries |= _field(ax, panel, looks)
    for curve in panel.curves:
        drawn = _curve(ax, curve, *shades[curve.label])
        text = f"{curve.label} ({curve.note})" if curve.note else curve.label
        if curve.engine == FLUID and curve.label in both and not curve.note:
            grey: dict[str, Any] = {"color": "0.3", "linestyle": "--"}
            if curve.valid is None or curve.valid.any():
                entries["fluid model"] = Line2D([], [], **grey)
            if curve.valid is not None and not curve.valid.all():
                words = "fluid model, outside its validity"
                entries[words] = Line2D([], [], **grey, alpha=_PALE)
        else:
            entries[text] = drawn
    for number in panel.printed:
        drawn = _printed(ax, number, shades.get(number.label, ("0.2", ""))[0])
        entries[f"paper: {number.text}"] = drawn
    ax.set_xlabel(panel.xlabel)
    ax.set_ylabel(panel.ylabel)
    ax.set_ylim(*panel.ylim)
    for axis in (ax.xaxis, ax.yaxis):
        _few_ticks(axis)
    places = {x for curve in panel.curves for x in curve.x.tolist()}
    if len(places) == 1 and panel.field is None:
        ax.set_xticks(list(places))
        ax.margins(x=1.0)
    return entries


def _few_ticks(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of each decade on a short logarithmic axis, where others would meet."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high < 400 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _curve(ax: Axes, curve: Curve, colour: Any, mark: str) -> Any:
    """Draw a curve; its entry in the legend."""
    dashes = _DASHES[curve.engine]
    if curve.dense:
        width = 0.6 if curve.engine == PACKETS else 1.0
        ax.plot(curve.x, curve.y, dashes, color=colour, linewidth=width, alpha=0.85)
        return Line2D([], [], color=colour, linestyle=dashes)
    sound = np.isfinite(curve.y)
    x, y = curve.x[sound], curve.y[sound]
    if curve.engine != PACKETS:
        if curve.valid is not None and not curve.valid.all():
            ax.plot(x, y, dashes, color=colour, alpha=_PALE)
            y = np.where(curve.valid[sound], y, np.nan)
        alone = _alone(y)
        mark = "x" if alone else ""
        return ax.plot(x, y, dashes, color=colour, marker=mark, markevery=alone or None)[0]
    half = None if curve.half is None else np.nan_to_num(curve.half[sound])
    return ax.errorbar(x, y, half, fmt=dashes, marker=mark, color=colour, elinewidth=0.7)


def _alone(y: Any) -> list[int]:
    """The points of a line that have no neighbours, so that no line shows them."""
    finite = np.pad(np.isfinite(y), 1)
    return np.flatnonzero(finite[1:-1] & ~finite[:-2] & ~finite[2:]).tolist()


def _printed(ax: Axes, number: Printed, colour: Any) -> Any:
    """Draw a number of the paper; its entry in the legend."""
    if isinstance(number.y, tuple):
        low, high = number.y
        if number.x is None:
            return ax.axhspan(low, high, color=colour, alpha=0.12, linewidth=0)
        middle, half = (low + high) / 2, (high - low) / 2
        return ax.errorbar([number.x], [middle], [half], color=colour, fmt="none", elinewidth=4,
                           alpha=0.4, capsize=0)  # fmt: skip
    if number.x is None:
        return ax.axhline(number.y, color=colour, linestyle=":", linewidth=1.0)
    return ax.plot([number.x], [number.y], linestyle="none", marker="*", markersize=9, zorder=5,
                   markerfacecolor="none", markeredgecolor=colour)[0]  # fmt: skip


_HATCHES = ("////", "....", "\\\\\\\\", "xxxx", "----", "oooo")
_UNSTABLE = "unstable"


def _looks(panels: Sequence[Panel]) -> dict[str, Any]:
    """How places without a value look, by the reason: the same in all panels."""
    reasons = dict.fromkeys(why for p in panels if p.field for why in p.field.blank)
    looks: dict[str, Any] = {}
    for why in reasons:
        hatch = _HATCHES[(len(looks) - (_UNSTABLE in looks)) % len(_HATCHES)]
        grey = {"facecolor": "0.93", "edgecolor": "0.5", "hatch": hatch, "linewidth": 0.0}
        looks[why] = {"facecolor": "#c0392b"} if why == _UNSTABLE else grey
    return looks


def _edges(places: Any, scale: str) -> Any:
    """Limits of cells around places, half-way between them on their scale."""
    along = np.log(places) if scale == "log" else np.asarray(places, float)
    middle = (along[1:] + along[:-1]) / 2
    half = np.diff(along)[[0, -1]] / 2 if len(along) > 1 else np.full(2, 0.5)
    ends = [along[0] - half[0], *middle, along[-1] + half[1]]
    return np.exp(ends) if scale == "log" else np.array(ends)


def _field(ax: Axes, panel: Panel, looks: dict[str, Any]) -> dict[str, Any]:
    """Draw a map; entries of the legend for its places without values."""
    field = panel.field
    assert field is not None
    values = np.ma.masked_invalid(field.z)
    norm: Any = None
    shades = "viridis"
    if field.middle is not None:
        reach = float(np.nanmax(np.abs(field.z - field.middle))) or 1.0
        norm = colors.TwoSlopeNorm(field.middle, field.middle - reach, field.middle + reach)
        shades = "RdBu_r"
    if field.bands:
        norm, shades = colors.BoundaryNorm(field.bands, 256, extend="max"), "YlGnBu"
    x, y = _edges(field.x, panel.xscale), _edges(field.y, panel.yscale)
    image = ax.pcolormesh(x, y, values, norm=norm, cmap=shades, rasterized=True)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(field.label)
    if field.contours:
        lines = ax.contour(field.x, field.y, values, levels=list(field.contours), colors="black",
                           linewidths=0.8)  # fmt: skip
        ax.clabel(lines, fontsize=6)
    ax.grid(False)
    for why, where in field.blank.items():
        for i, j in np.argwhere(where).tolist():
            corner, size = (x[j], y[i]), (x[j + 1] - x[j], y[i + 1] - y[i])
            ax.add_patch(Rectangle(corner, *size, **looks[why]))
    return {why: Patch(**looks[why]) for why in field.blank}


def rows(recipe: Recipe, panels: Sequence[Panel]) -> list[list[Any]]:
    """The drawn points, a line for each: panel, curve, engine, x, y, half width, and whether the
    model is valid there, if that is judged.
    """
    out: list[list[Any]] = [["panel", "curve", "engine", "x", "y", "ci95", "valid"]]
    for k, panel in enumerate(panels):
        name = recipe.panels[k] if k < len(recipe.panels) else str(k + 1)
        for curve in panel.curves:
            halves = [""] * len(curve.x) if curve.half is None else list(curve.half)
            label = f"{curve.label} ({curve.note})" if curve.note else curve.label
            valid = [""] * len(curve.x) if curve.valid is None else [int(v) for v in curve.valid]
            for x, y, half, own in zip(curve.x, curve.y, halves, valid, strict=True):
                out.append([name, label, curve.engine, x, y, half, own])
        for number in panel.printed:
            place = "" if number.x is None else number.x
            for y in number.y if isinstance(number.y, tuple) else (number.y,):
                out.append([name, number.text, "paper", place, y, "", ""])
        if panel.field is not None:
            field = panel.field
            for i, y in enumerate(field.y):
                label = f"{field.label} at y = {y:.6g}"
                for j, x in enumerate(field.x):
                    why = [reason for reason, where in field.blank.items() if where[i, j]]
                    out.append([name, label, FLUID, x, *(why or [field.z[i, j]]), "", ""])
    return out


def save(recipe: Recipe, panels: Sequence[Panel], folder: Path, notes: Sequence[str]) -> list[Path]:
    """Write PDF, PNG and CSV of a figure; the notes are above the table and in the caption."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"fig{recipe.number}"
    figure = draw(recipe, panels, caption=notes[0])
    files = [base.with_suffix(ending) for ending in (".pdf", ".png", ".csv")]
    with style():
        figure.savefig(files[0], metadata={"CreationDate": None})
        figure.savefig(files[1])
    with files[2].open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in (f"{recipe.name}: {recipe.title}", *notes))
        writer = csv.writer(file, lineterminator="\n")
        heads = [f"{i + 1}: {p.xlabel}; {p.ylabel}" for i, p in enumerate(panels)]
        file.writelines(f"# panel {line}\n" for line in heads)
        writer.writerows(rows(recipe, panels))
    return files
