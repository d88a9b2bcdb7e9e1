"""The contents of a figure as data: panels of curves, with the numbers that the paper prints."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.bundled import declared, module, modules
from fluidcc.errors import Fault, ScenarioError, nearest

from ...validation.lab.samples import interval

if TYPE_CHECKING:
    from ...validation.lab.lab import Lab

PACKETS, FLUID, FORMULA = "packets", "fluid", "formula"


@dataclasses.dataclass(frozen=True)
class Curve:
    """One curve: `y` over `x`, both of shape (points,).

    Parameters
    ----------
    label
        The subject, such as a protocol: curves of one label have one colour.
    x, y
        Numbers, or categories in `x`.
    half
        Half widths of 95 % intervals, or None.
    engine
        ``packets`` (solid, with marks), ``fluid`` (dashed) or ``formula`` (dots and dashes).
    dense
        Samples over time rather than points of their own: a thin line without marks.
    note
        Remark in the legend after the label, such as ``first seed``.
    valid
        Whether the model holds, shape (points,), or None for everywhere; else it is drawn pale.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    half: np.ndarray | None = None
    engine: str = PACKETS
    dense: bool = False
    note: str = ""
    valid: np.ndarray | None = None


def measured(label: str, x: Any, samples: np.ndarray, **how: Any) -> Curve:
    """A curve of means over seeds with their 95 % intervals; samples of shape (points, seeds)."""
    mean, half = interval(samples)
    return Curve(label, np.asarray(x), mean, half, **how)


def modelled(label: str, x: Any, y: Any, **how: Any) -> Curve:
    """A curve of the fluid model; NaN is left out."""
    return Curve(label, np.asarray(x), np.asarray(y, float), engine=FLUID, **how)


@dataclasses.dataclass(frozen=True)
class Printed:
    """A number that the paper prints: a point if `x` is given, else a line or a band.

    Parameters
    ----------
    text
        Text of the legend, such as ``43 % (VI.A)``.
    y
        A number, or the two ends of a range.
    x
        The place, or None for everywhere.
    label
        The curve that it belongs to, for its colour; "" for none.
    """

    text: str
    y: float | tuple[float, float]
    x: float | None = None
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Field:
    """A map: `z` over the grid of `x` and `y`, shape (y, x).

    Parameters
    ----------
    label
        Of the colour bar, with the unit.
    x, y, z
        Places and values; NaN stays blank.
    middle
        The value at which colours change sides, such as 0 of a rightmost root; None for one ramp.
    contours
        Values that get a line of their own.
    bands
        Limits of bands of one colour each, in place of a ramp.
    blank
        Places without a value, shape (y, x), by the reason: hatched, and named in the legend.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    middle: float | None = None
    contours: tuple[float, ...] = ()
    bands: tuple[float, ...] = ()
    blank: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes; labels carry the unit in brackets, `note` says what it has in numbers."""

    xlabel: str
    ylabel: str
    curves: Sequence[Curve] = ()
    printed: Sequence[Printed] = ()
    field: Field | None = None
    title: str = ""
    note: str = ""
    xscale: str = "linear"
    yscale: str = "linear"
    ylim: tuple[float | None, float | None] = (None, None)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a figure is made.

    Parameters
    ----------
    number, title
        ``4``, and the subject.
    draw
        Function of a `Lab` that returns the panels.
    needs
        Names of the experiments that it needs.
    panels
        Letters of the panels, if the paper has them.
    """

    number: str
    title: str
    draw: Callable[["Lab"], Sequence[Panel]]
    needs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """``becn``: the module that declares it."""
        return self.draw.__module__.rpartition(".")[2]

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that have the same colour in all figures of the module: its `LABELS`."""
        return tuple(getattr(module(f"paper_figs.{self.paper}"), "LABELS", ()))

    @property
    def name(self) -> str:
        """``becn/4``."""
        return f"{self.paper}/{self.number}"

    @property
    def about(self) -> str:
        """One sentence on the contents and their origin; the docstring of `draw`."""
        return " ".join((self.draw.__doc__ or "").split())


def figure(
    number: str, title: str, *, needs: Sequence[str] = (), panels: Sequence[str] = ()
) -> Callable[[Callable], Recipe]:
    """Declare a function of ``paper_figs`` as that of a figure; arguments as in `Recipe`."""
    return lambda draw: Recipe(number, title, draw, tuple(needs), tuple(panels))


def papers() -> list[str]:
    """The papers with figures, and `beyond` for the others."""
    return [place.rpartition(".")[2] for place in modules("paper_figs")]


@cache
def recipes(paper: str) -> Mapping[str, Recipe]:
    """The figures of a paper by number, in the order of the module."""
    return MappingProxyType({r.number: r for r in declared(f"paper_figs.{paper}", Recipe)})


def wanted(which: Sequence[str]) -> list[Recipe]:
    """Figures by ``paper`` or ``paper/number``; all for none or ``all``.

    Raises
    ------
    ScenarioError
        For an unknown paper or figure.
    """
    every = {r.name: r for paper in papers() for r in recipes(paper).values()}
    found: dict[str, Recipe] = {}
    faults = []
    for name in which or ("all",):
        hits = {n: r for n, r in every.items() if name in ("all", n, n.partition("/")[0])}
        if not hits:
            known = [*papers(), *every]
            shorts = ", ".join(papers())
            expected = f"all, a paper ({shorts}) or a figure such as {next(iter(every))}"
            faults.append(Fault("figures", "", expected, f"'{name}'", nearest(name, known)))
        found |= hits
    if faults:
        raise ScenarioError(faults)
    return list(found.values())
