"""Pictures of results, in the house style."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import rc_context
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fluidcc.result import WIDTH, Result, View
from fluidcc.results.axes import narrow, powers_in_labels, wrapped
from fluidcc.results.export import network_of

if TYPE_CHECKING:
    import xarray

    from fluidcc.scenario.network import Network

_LEAST = 2.0  # inch


def plot(*results: Any, width: float = WIDTH) -> Figure:
    """Draw results below each other, under the title of the scenario unless they are narrow.

    Parameters
    ----------
    results
        What the verbs return, a sweep of it, or what `load_result` reads of a sweep or of samples
        over time, of which the main quantities are drawn, of runs those of the first seed.
    width
        Of the picture [inch]: 7 for two columns of a page, 3.5 for one, where panels stand below
        each other.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which `savefig` writes.

    Raises
    ------
    TypeError
        For something that has no picture.
    ValueError
        For a result without anything to draw, such as windows that no group has, and for a width
        below 2 inch.

    Examples
    --------
    >>> import fluidcc as fc
    >>> figure = fc.plot(fc.equilibrium(fc.load("hollot2001/slow")), width=3.5)
    >>> figure.axes[0].get_ylabel()
    'rate of a flow [packet/s]'
    """
    if not results:
        raise TypeError("plot: expected at least one result, got none")
    return compose(results, width)


def compose(results: Sequence[Any], width: float, net: "Network | None" = None) -> Figure:
    """What `plot` draws; `net` is the network of results that do not keep theirs."""
    if not width >= _LEAST:
        raise ValueError(f"width: expected at least {_LEAST:g} inch, got {width!r}")
    shown = [_view(result) for result in results]
    slim = narrow(width)
    sizes = [view.size for view in shown]
    heights = [height * (panels if slim else 1) for height, panels in sizes]
    with style():
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
        above = ""
        for part, view in zip(parts, shown, strict=True):
            view.draw(part)
            own = network_of(view.found) or net
            title = own.title if own is not None and not slim else above
            lines = [*([title] if title != above else []), part.get_suptitle()]
            part.suptitle("\n".join(wrapped(line, width) for line in lines if line), fontsize=8)
            above = title
        powers_in_labels(figure)
        for line in figure.findobj(Line2D):  # else C0, C1 ... are those at the time of saving
            line.set_color(to_rgba(line.get_color()))
    return figure


def style() -> AbstractContextManager[None]:
    """The house style, for figures of your own: make and save them inside ``with fc.style():``.

    A figure is 3.5 inch wide, one column of a page, unless `figsize` is given; 7 inch are two
    columns. Fonts are embedded as TrueType in PDF. Colours are told apart by colour-blind readers,
    lines by their dashes in grey.

    Returns
    -------
    context manager
        The style holds inside of it.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from matplotlib.figure import Figure
    >>> with fc.style():
    ...     print(Figure().get_figwidth())
    3.5
    """
    with as_file(files("fluidcc.results") / "fluidcc.mplstyle") as file:
        return rc_context(fname=file)


def _view(result: Any) -> View:
    """How a result is drawn; raises TypeError for something that is no result."""
    if isinstance(getattr(result, "attrs", None), dict) and hasattr(result, "data_vars"):
        return _view_of_saved(result)
    if not isinstance(result, Result):
        raise TypeError(f"plot: expected a result or a sweep, got {type(result).__name__}")
    return result.view


class _Saved(NamedTuple):
    """What a view of a sweep needs of one that was saved, or of samples over time."""

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    data: "xarray.Dataset"
    net: "Network | None"


def _view_of_saved(data: "xarray.Dataset") -> View:
    """How a sweep or samples over time are drawn that `load_result` read as a data set; raises
    TypeError for other results, with the command that draws them.
    """
    from fluidcc.results.views.grids import SweepDataView
    from fluidcc.scenario.files import loads

    text, command = (data.attrs.get(name, "") for name in ("scenario", "command"))
    if "failed" not in data and "time" not in data.dims:
        again = f"`{command} --plot FILE.png`" if command.startswith("fluidcc ") else "its verb"
        raise TypeError(
            "plot: expected a result, or a file of a sweep or of samples over time; this file has "
            f"the numbers of another result, without its picture: {again} draws it"
        )
    paths = [str(dim) for dim in data["failed"].dims] if "failed" in data else ["time"]
    if "failed" not in data and "seed" in data.dims:
        data = data.isel(seed=0)
    axes = {path: tuple(data[path].values.tolist()) for path in paths}
    units = {path: data[path].attrs.get("units", "1") for path in paths}
    return SweepDataView(_Saved(axes, units, data, loads(text) if text else None))
