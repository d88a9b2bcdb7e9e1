"""Results of the public functions, which render themselves as tables, text and a picture.

No other part of `fluidcc` is imported before a result is shown, so that every part can use this.
"""

import dataclasses
import enum
import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fluidcc.errors import Suggests
from fluidcc.quantities import Quantity, full_name, unit_of

if TYPE_CHECKING:
    import os

    import pandas
    import xarray
    from matplotlib.figure import Figure, SubFigure

    from fluidcc.results.blocks import Block, Measured
    from fluidcc.scenario.network import Network

_ROWS = 12  # of a grid that a notebook has
WIDTH = 7.0
"""Width of a picture [inch]: two columns of a page."""


REASONED = ("failed", "refused", "none", "continuum", "discontinuity")
"""Statuses of points of a grid that lack numbers, for the reason in the message."""
LISTED = 10
"""Most points whose reasons are printed."""


class View:
    """How one result is shown; each class of results names its view (`fluidcc.result.Shown`)."""

    size: Any = (4.0, 1)
    """Height of the picture [inch], and number of panels in a row, stacked in a narrow one."""
    interval = "mean and 95 % interval"
    """Meaning of its numbers with a half width, above the picture of a sweep."""
    instead = ""
    """Why there is no picture, and what to draw."""
    names: Sequence[str] = ()
    """Its few numbers: ``links.queue`` of each link, ``flows.window`` of each group, ``period``."""
    engines: Sequence[str] = Quantity._fields[4:]
    """Fields of the table of quantities that have the names in its data set."""
    heads: Sequence[str] = ()
    """Columns of its tables, beside those of parameters."""
    in_lines = False
    """Whether it has lines of its own in the table of a sweep: one for each crossing."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def tables(self, rows: int | None = None) -> "list[Block]":
        """Lines and tables, as `Shown.tables` has them."""
        raise NotImplementedError

    def details(self) -> "list[Block]":
        """Tables that are long, which LaTeX has after the others; none by default."""
        return []

    @classmethod
    def quantities(cls, net: "Network", paths: Sequence[str]) -> list[str]:
        """Full names of the few numbers of a network's result; the verb varies these `paths`."""
        owners = {"links": net.by_group.link_names, "flows": net.flow_names, "": ("",)}
        each = (name.rpartition(".") for name in cls.names)
        return [full_name(kind, owner, own) for kind, _, own in each for owner in owners[kind]]

    @classmethod
    def columns(cls, net: "Network", paths: Sequence[str]) -> list[str]:
        """Columns that the tables of a network's result can have."""
        return [*cls.heads, *paths]

    def value(self, part: Any, name: str) -> "float | tuple[float | None, float | None] | None":
        """One of the few numbers, in the unit of the table of quantities, perhaps with half the
        width of its interval; `part` is the link or group, or the result.
        """
        return getattr(part, name)

    def numbers(self) -> "dict[str, Measured]":
        """The few numbers that stand for the result in a sweep, by full name."""
        from fluidcc.results.blocks import Measured

        out = {}
        for kind, _, name in (name.rpartition(".") for name in self.names):
            parts = getattr(self.found, kind) if kind else {"": self.found}
            for owner, part in parts.items():
                value = self.value(part, name)
                known, half = value if isinstance(value, tuple) else (value, None)
                out[full_name(kind, owner, name)] = Measured(known, unit_of(kind, name), half)
        return out

    def draw(self, figure: "SubFigure") -> None:
        """Draw the picture."""
        raise TypeError(f"plot: {type(self.found).__name__} has no picture: {self.instead}")


class Shown(Suggests):
    """Something that prints as the tables of the view that its class names, in a notebook too."""

    _view: ClassVar[str]
    """The class of its view, as ``module.Class`` in `fluidcc.results.views`."""

    @classmethod
    def view_class(cls) -> type[View]:
        """The class of its view."""
        module, name = cls._view.split(".")
        return getattr(importlib.import_module(f"fluidcc.results.views.{module}"), name)

    @property
    def view(self) -> View:
        """How this result is shown."""
        return self.view_class()(self)

    def tables(self, rows: int | None = None) -> "list[Block]":
        """Lines and tables.

        Parameters
        ----------
        rows
            How many points of a grid to show, without entries that take some computing; None shows
            all.
        """
        return self.view.tables(rows)

    def to_latex(self, columns: "Sequence[str] | None" = None) -> str:
        r"""Tables with units for a paper, to be read with ``\input``.

        They need the package booktabs; tables of more than 60 rows are longtables, which need the
        package longtable and stand outside of floats. Numbers have the significant digits of the
        printed tables; a mean with its interval is rounded to the place of the second digit of
        the half width. Verdicts and messages are comments. Headings have the symbols of parameters
        and quantities.

        Parameters
        ----------
        columns
            Names of the columns to take, in this order, as printed without units
            (``links.bottleneck.queue`` in a sweep); tables that have none of these are left out.
            All by default.

        Raises
        ------
        ScenarioError
            For a name that no table has, with the nearest.

        Examples
        --------
        >>> import fluidcc as fc
        >>> found = fc.equilibrium(fc.load("hollot2001/slow"))
        >>> print(found.to_latex(columns=["link", "queue"]).partition("booktabs}")[2].strip())
        \begin{tabular}{lr}
        \toprule
        link & queue $q$ [packet] \\
        \midrule
        bottleneck & $194.4$ \\
        \bottomrule
        \end{tabular}
        """
        from fluidcc.results.tex import latex

        return latex([*self.tables(), *self.view.details()], columns=columns)

    def _repr_html_(self) -> str:
        from fluidcc.results.text import html

        return html(self.tables(_ROWS))

    def __repr__(self) -> str:
        from fluidcc.results.text import text

        return text(self.tables())


class Result(Shown):
    """A result: data, tables, a picture and files, the same for all verbs.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.equilibrium(fc.load("hollot2001/slow"))
    >>> isinstance(found, fc.Result), found.to_pandas().attrs["units"]["links.bottleneck.queue"]
    (True, 'packet')
    """

    _in_dict: ClassVar[tuple[str, ...]]
    """Names of the fields and properties that `to_dict` has, unless a class has its own."""

    def numbers(self) -> "dict[str, Measured]":
        """The few numbers that stand for this result in the table or the picture of a sweep."""
        return self.view.numbers()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, text, lists and dictionaries; None for unknown values."""
        return {name: plain(getattr(self, name)) for name in self._in_dict}

    def to_xarray(self) -> "xarray.Dataset":
        """Labelled arrays with units."""
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """The table of a CSV file of this result: samples over time, if there are any.

        Times, seeds, points of a grid and the like run over the rows. A quantity that has several
        links or groups has a column for each, ``links.bottleneck.queue``, the name that tables,
        pictures, CSV files, `gradient` and `optimize` have for it, too; round trips of a group have
        their number in brackets, ``flows.tcp.window[1]``.

        Returns
        -------
        pandas.DataFrame
            Its `attrs` have the unit and the meaning of each column, as ``attrs["units"]`` and
            ``attrs["meaning"]``.
        """
        from fluidcc.results.export import to_pandas

        return to_pandas(self)

    def plot(self, width: float = WIDTH) -> "Figure":
        """The picture, as `fluidcc.plot` draws it.

        Parameters
        ----------
        width
            Of the picture [inch].

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        TypeError
            If there is no picture of such a result.
        ValueError
            If there is nothing to draw, and for a width below 2 inch.
        """
        from fluidcc.results.plot import plot

        return plot(self, width=width)

    def save(
        self,
        path: "str | os.PathLike[str]",
        *,
        net: "Network | None" = None,
        columns: "Sequence[str] | None" = None,
    ) -> None:
        """Write a file, by the ending of its name.

        ``.nc`` (netCDF, which `fluidcc.load_result` reads), ``.csv`` and ``.json`` have the numbers
        and ``.tex`` the tables, with their origin: scenario, command and versions. ``.png``,
        ``.pdf`` and ``.svg`` have the picture.

        Parameters
        ----------
        path
            The file; it is replaced when all is written.
        net
            The network to name as the origin (default: that of the result, if it keeps it).
        columns
            Of the tables of a ``.tex`` file, as for `to_latex`.

        Raises
        ------
        ScenarioError
            For another ending, and for a column that no table has.
        TypeError, ValueError
            If there is no such table or picture of this result.
        """
        from fluidcc.results.export import save

        save(self, path, net=net, columns=columns)


def plain(value: Any) -> Any:
    """Numbers, text, lists and dictionaries for JSON; None for numbers that are not finite.

    A dataclass without `to_dict` gives the fields that it prints, a complex number both its parts.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):  # of NumPy or JAX
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(v) for v in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def failure(result: Any) -> str:
    """The reason why a result is not valid, by its `failure` or status; empty if it is valid.

    "No equilibrium", "no cycle" and "no root" are valid results; an equilibrium that fails its own
    check is not.
    """
    if why := getattr(result, "failure", ""):
        return str(why)
    status: Any = getattr(getattr(result, "fluid", result), "status", None)
    if isinstance(status, enum.IntEnum) and status:  # of a run
        return getattr(status, "advice", "")
    if status in ("incomplete", "infeasible", "unbounded", "unknown", "undetermined"):
        return str(result.message)
    packets = getattr(result, "packets", result)
    return getattr(packets, "message", "") if is_interrupted(result) else ""


def is_interrupted(result: Any) -> bool:
    """Whether packet runs were stopped before all seeds were done."""
    return bool(getattr(getattr(result, "packets", result), "missing", ()))
