"""Draws a figure in the house style, and writes what is drawn as a table."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluidcc.papers.figure import FLUID, Curve, Panel, Printed, Recipe
from fluidcc.plot import house_style

_MARKS = "osD^vP*X"
_WIDTH, _HEIGHT = 3.5, 2.5  # of a panel [inch]


def _layout(count: int) -> tuple[int, int]:
    """Rows and columns of panels."""
    columns = {1: 1, 2: 2, 4: 2}.get(count, 3)
    return math.ceil(count / columns), columns


def draw(recipe: Recipe, panels: Sequence[Panel], *, caption: str = "") -> Figure:
    """The picture of a figure, with a caption below it."""
    rows, columns = _layout(len(panels))
    with house_style():
        figure = Figure(figsize=(max(_WIDTH * columns, 4.2), _HEIGHT * rows + 0.3),
                        layout="constrained")  # fmt: skip
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for spare in axes[len(panels) :]:
            spare.set_visible(False)
        shades = _shades(panels)
        for k, (panel, ax) in enumerate(zip(panels, axes, strict=False)):
            letter = recipe.panels[k] if k < len(recipe.panels) else ""
            head = f"({letter}) " if letter else ""
            ax.set_title(head + (panel.title or ("" if len(panels) > 1 else recipe.title)))
            _panel(ax, panel, shades)
        if len(panels) > 1:
            figure.suptitle(recipe.title, fontsize=9, fontweight="bold", x=0.01, ha="left")
        if caption:
            figure.supxlabel(caption, fontsize=6, x=0.01, ha="left", color="0.35")
    return figure


def _shades(panels: Sequence[Panel]) -> dict[str, tuple[Any, str]]:
    """A colour and a mark for each label, the same in all panels."""
    labels = list(dict.fromkeys(c.label for p in panels for c in p.curves))
    cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return {
        label: (cycle[k % len(cycle)], _MARKS[k % len(_MARKS)]) for k, label in enumerate(labels)
    }


def _panel(ax: Axes, panel: Panel, shades: dict[str, tuple[Any, str]]) -> None:
    ax.set_xscale(panel.xscale)
    ax.set_yscale(panel.yscale)
    if panel.field is not None:
        _field(ax, panel)
    for curve in panel.curves:
        _curve(ax, curve, *shades[curve.label])
    for number in panel.printed:
        _printed(ax, number, shades.get(number.label, ("0.2", ""))[0])
    ax.set_xlabel(panel.xlabel)
    ax.set_ylabel(panel.ylabel)
    ax.set_ylim(*panel.ylim)
    if panel.curves or panel.printed:
        ax.legend(handlelength=2.4)


def _curve(ax: Axes, curve: Curve, colour: Any, mark: str) -> None:
    text = curve.label
    if curve.engine == FLUID:
        text += ", fluid"
    if curve.note:
        text += f" ({curve.note})"
    dashes = "--" if curve.engine == FLUID else "-"
    if curve.dense:
        ax.plot(curve.x, curve.y, dashes, color=colour, linewidth=0.6, label=text)
        return
    sound = np.isfinite(curve.y)
    x, y = curve.x[sound], curve.y[sound]
    if curve.engine == FLUID:
        ax.plot(x, y, dashes, color=colour, label=text, marker="x" if x.size == 1 else None)
        return
    half = None if curve.half is None else np.nan_to_num(curve.half[sound])
    ax.errorbar(x, y, half, fmt=dashes, marker=mark, color=colour, label=text, elinewidth=0.7)


def _printed(ax: Axes, number: Printed, colour: Any) -> None:
    text = f"paper: {number.text}"
    if isinstance(number.y, tuple):
        low, high = number.y
        if number.x is None:
            ax.axhspan(low, high, color=colour, alpha=0.12, label=text, linewidth=0)
        else:
            middle, half = (low + high) / 2, (high - low) / 2
            ax.errorbar([number.x], [middle], [half], color=colour, fmt="none", elinewidth=4,
                        alpha=0.4, capsize=0, label=text)  # fmt: skip
    elif number.x is None:
        ax.axhline(number.y, color=colour, linestyle=":", linewidth=1.0, label=text)
    else:
        ax.plot([number.x], [number.y], linestyle="none", marker="*", markersize=9, zorder=5,
                markerfacecolor="none", markeredgecolor=colour, label=text)  # fmt: skip


def _field(ax: Axes, panel: Panel) -> None:
    field = panel.field
    assert field is not None
    values = np.ma.masked_invalid(field.z)
    norm, shades = None, "viridis"
    if field.middle is not None:
        reach = float(np.nanmax(np.abs(field.z - field.middle))) or 1.0
        norm = colors.TwoSlopeNorm(field.middle, field.middle - reach, field.middle + reach)
        shades = "RdBu_r"
    image = ax.pcolormesh(field.x, field.y, values, norm=norm, cmap=shades, shading="nearest",
                          rasterized=True)  # fmt: skip
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(field.label)
    if field.contours:
        lines = ax.contour(field.x, field.y, values, levels=list(field.contours), colors="black",
                           linewidths=0.8)  # fmt: skip
        ax.clabel(lines, fontsize=6)
    ax.grid(False)


def rows(recipe: Recipe, panels: Sequence[Panel]) -> list[list[Any]]:
    """What is drawn, a line for each point: panel, curve, engine, x, y, half width."""
    out: list[list[Any]] = [["panel", "curve", "engine", "x", "y", "ci95"]]
    for k, panel in enumerate(panels):
        name = recipe.panels[k] if k < len(recipe.panels) else str(k + 1)
        for curve in panel.curves:
            halves = [""] * len(curve.x) if curve.half is None else list(curve.half)
            label = f"{curve.label} ({curve.note})" if curve.note else curve.label
            for x, y, half in zip(curve.x, curve.y, halves, strict=True):
                out.append([name, label, curve.engine, x, y, half])
        for number in panel.printed:
            place = "" if number.x is None else number.x
            for y in number.y if isinstance(number.y, tuple) else (number.y,):
                out.append([name, number.text, "paper", place, y, ""])
        if panel.field is not None:
            field = panel.field
            for i, y in enumerate(field.y):
                for j, x in enumerate(field.x):
                    out.append([name, f"{field.label} at y = {y:.6g}", FLUID, x, field.z[i, j], ""])
    return out


def save(recipe: Recipe, panels: Sequence[Panel], folder: Path, notes: Sequence[str]) -> list[Path]:
    """Write PDF, PNG and CSV of a figure; the notes stand above the table and in the caption."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"fig{recipe.number}"
    figure = draw(recipe, panels, caption="\n".join(notes[:1]))
    files = [base.with_suffix(ending) for ending in (".pdf", ".png", ".csv")]
    with house_style():
        figure.savefig(files[0], metadata={"CreationDate": None})
        figure.savefig(files[1])
    with files[2].open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in (f"{recipe.name}: {recipe.title}", *notes))
        writer = csv.writer(file)
        heads = [f"{i + 1}: {p.xlabel}; {p.ylabel}" for i, p in enumerate(panels)]
        file.writelines(f"# panel {line}\n" for line in heads)
        writer.writerows(rows(recipe, panels))
    return files
