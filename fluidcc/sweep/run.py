"""One verb over a grid of parameters; a point that fails is recorded, and the others go on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fluidcc.errors import misuse
from fluidcc.progress import Clock, Progress, report, reporting
from fluidcc.scenario.grid import Grid
from fluidcc.scenario.network import Network
from fluidcc.sweep.grid import GRID_VERBS, Blocks, name_of
from fluidcc.sweep.points import evaluate_block, most_at_once
from fluidcc.sweep.result import Sweep

if TYPE_CHECKING:
    from fluidcc.sweep.chunks import SweepData


@overload
def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[[Network], Any],
    *,
    progress: Callable[[Progress], object] | None = None,
) -> Sweep: ...


@overload
def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[..., Any],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> SweepData: ...


@reporting
def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[..., Any],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Sweep | SweepData:
    """Apply a verb at every point of a grid.

    Without `folder`, `workers` and `scheduler` it runs in the calling process and returns the
    result objects. With any of them processes or a cluster compute the grid in chunks
    of some seconds each, and it returns labelled arrays: the same to the last bit for any number of
    workers, on processors of one kind.

    A folder keeps every finished chunk. After any interruption the same call continues from there;
    a folder with another sweep, or one of other code, is refused. Random numbers follow from the
    `seeds` of the verb, which are the same at every point (common random numbers): each point is
    the result of the verb for `replace(net, ...)` alone.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text stands for quantities with units.
    verb
        Function of a network that returns a result, such as `equilibrium` or
        ``functools.partial(simulate_packets, until=60, seeds=range(5))``; or `stability_map` or
        ``functools.partial(simulate_map, until=60)``, which compute many points at once. In
        chunks it is a function that a new process can import, and its options are plain values.
    folder
        Folder for finished chunks.
    workers
        Number of processes (default: one per processor); 0 computes in the calling process.
        A script must call this with workers under ``if __name__ == "__main__":``.
    scheduler
        Address of a Dask scheduler, ``tcp://host:8786``, whose workers compute the chunks
        (`fluidcc.sweep.workers` has the commands that start workers).
    progress
        Called with a `Progress`, the finished share, after each point or chunk.

    Returns
    -------
    Sweep or SweepData
        `Sweep` has the result of each point; `SweepData`, from chunks, has labelled arrays. Both
        have `axes` (values by path), their `units`, and the points that `failed`.

    Raises
    ------
    ScenarioError
        If a path or a value's unit is wrong. Errors at single points are in `failed`.
    TypeError
        If the verb is not a function, or cannot be called with a network alone.
    ValueError
        If the verb cannot run in chunks, the folder has another sweep, or the table of all points
        would not fit in memory.
    SweepStopped
        If the sweep ended early: a full disk, a table that turns out not to fit in memory, dead
        processes, or a lost cluster.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> curve = fc.sweep(net, {"flow.n": [40, 60]}, fc.equilibrium)
    >>> curve.to_xarray()["queue"].sel(link="bottleneck").values.round(1)
    array([170.8, 194.4])
    """
    takes_grid = name_of(verb) in GRID_VERBS
    _require_callable(verb, 2 if takes_grid else 1)
    if workers is not None and workers < 0:
        raise ValueError(f"workers: expected a whole number of at least 0, got {workers!r}")
    grid = Grid.of(net, over)
    chunked = (folder, workers, scheduler) != (None, None, None)
    if chunked or takes_grid:
        from fluidcc.sweep.chunks import sweep_in_chunks  # heavy

        return sweep_in_chunks(
            net, grid, verb, folder=None if folder is None else Path(folder),
            workers=workers if chunked else 0, scheduler=scheduler,
        )  # fmt: skip
    blocks = Blocks.of(grid, most_at_once(net, verb, len(grid)))
    clock, found = Clock(len(grid)), {}
    for block in range(len(blocks)):
        points = evaluate_block(net, blocks, block, verb)
        found |= points
        report(clock.count(len(points), sum(bool(point.message) for point in points.values())))
    return Sweep(grid.axes, grid.units, tuple(found[k] for k in range(len(grid))), net)


def _require_callable(verb: Any, count: int) -> None:
    """Raise TypeError if a verb cannot be called with so many arguments, a network first."""
    if not callable(verb):
        raise TypeError(f"verb: expected a function such as fluidcc.equilibrium, got {verb!r}")
    flat = functools.partial(verb)  # nested partials are merged into one of the innermost function
    if fault := misuse(flat.func, (*flat.args, *(None,) * count), flat.keywords):
        raise TypeError(
            "verb: expected a function that takes a network, its options given as in "
            f"functools.partial(fc.simulate, until=60), got {fault}"
        )
