"""One verb over a grid of parameters; a point that fails is labelled and the rest goes on."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, overload

from fluidcc.scenario.network import Network
from fluidcc.sweep.grid import Grid
from fluidcc.sweep.identity import name_of
from fluidcc.sweep.job import GRID_VERBS
from fluidcc.sweep.plan import Clock, Progress
from fluidcc.sweep.point import evaluated
from fluidcc.sweep.result import Sweep
from fluidcc.sweep.run import SweepData, sweep_in_chunks


@overload
def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[[Network], Any],
    *,
    progress: Callable[[Progress], None] | None = None,
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
    progress: Callable[[Progress], None] | None = None,
) -> SweepData: ...


def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[..., Any],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Sweep | SweepData:
    """Apply a verb at every point of a grid.

    Without `folder`, `workers` and `scheduler` this goes on in the calling process, point by
    point, and gives the results themselves. With any of them the grid is done in chunks of some
    seconds each, by processes or a cluster, and what comes back is labelled numbers: the same to
    the last bit however they were computed, on processors of one kind.

    In a folder every finished chunk is kept. Whatever ends a sweep, the same call goes on from
    there; a folder that has another sweep, or one of other code, is refused. Random numbers follow
    from the `seeds` of the verb, which are the same at every point (common random numbers): a point
    is what the verb gives for `replace(net, ...)` alone.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text stands for quantities with units.
    verb
        Function of a network that returns a result, such as `equilibrium` or
        ``functools.partial(simulate_packets, until=60, seeds=range(5))``; or `stability_map` or
        ``functools.partial(simulate_map, until=60)``, which do many points at once. In chunks it
        is a function that a new process can import, and its options are plain values.
    folder
        Where finished chunks are kept.
    workers
        How many processes work; as many as there are processors for None, none but the calling one
        for 0. A script that calls this with workers does so under ``if __name__ == "__main__":``.
    scheduler
        Address of a Dask scheduler, ``tcp://host:8786``, whose workers do the chunks
        (`fluidcc.sweep.cluster` says how to start some).
    progress
        Called with a `Progress`, the finished share, after each point or chunk.

    Raises
    ------
    ScenarioError
        If a path or a value's unit is wrong. What fails at single points is in `failed`.
    TypeError
        If the verb is no function, or cannot be called with a network alone.
    ValueError
        If the verb is of no use in chunks, the folder is not one for this sweep, or the table of
        all points would not fit in memory.
    SweepStopped
        If the sweep ended early: no space left, a table that turns out not to fit in memory,
        processes that die, a cluster that is gone.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> curve = fc.sweep(net, {"flow.n": [40, 60]}, fc.equilibrium)
    >>> curve.to_dataset()["queue"].sel(link="bottleneck").values.round(1)
    array([170.8, 194.4])
    """
    together = name_of(verb) in GRID_VERBS
    _require_callable(verb, 2 if together else 1)
    if workers is not None and workers < 0:
        raise ValueError(f"workers: expected a whole number of at least 0, got {workers!r}")
    grid = Grid.of(net, over)
    chunked = (folder, workers, scheduler) != (None, None, None)
    if chunked or together:
        return sweep_in_chunks(
            net, grid, verb, folder=None if folder is None else Path(folder),
            workers=workers if chunked else 0, scheduler=scheduler, progress=progress,
        )  # fmt: skip
    clock, points = Clock(len(grid)), []
    for changes in grid.points():
        points.append(evaluated(net, changes, verb))
        now = clock.passed(1, int(bool(points[-1].message)))
        if progress is not None:
            progress(now)
    return Sweep(grid.axes, grid.units, tuple(points))


def _require_callable(verb: Any, count: int) -> None:
    """Raise TypeError unless a verb can be called with so many arguments, a network first."""
    if not callable(verb):
        raise TypeError(f"verb: expected a function such as fluidcc.equilibrium, got {verb!r}")
    whole = functools.partial(verb)  # of the innermost function, with all that partials give it
    try:
        signature = inspect.signature(whole.func)
    except ValueError:  # a function in C that does not tell
        return
    try:
        signature.bind(*whole.args, *(None,) * count, **whole.keywords)
    except TypeError as error:
        name = name_of(verb).rpartition(".")[2]
        raise TypeError(
            "verb: expected a function that takes a network, its options given as in "
            f"functools.partial(fc.simulate, until=60), got {name}: {error}"
        ) from None
