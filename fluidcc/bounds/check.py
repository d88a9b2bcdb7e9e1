"""Judges bounds: by a search over parameters, or on one network."""

from collections.abc import Callable, Iterable, Mapping

from fluidcc.bounds.reports import BoundReport, BoundReports
from fluidcc.bundled import module
from fluidcc.scenario.network import Network

Progress = Callable[[float], None]


def check_bound(
    name: str,
    net: Network | None = None,
    *,
    definitions: Mapping[str, str] | None = None,
    budget: int | None = None,
    seed: int = 1,
) -> BoundReport:
    """Judge one published bound: on a network, or by a search over its parameters.

    Parameters
    ----------
    name
        Name of the bound, ``mark_front.slow_start`` for one.
    net
        The network to judge; a search over random networks and steps towards the worst for None.
    definitions
        Values of some of the bound's axes; those of a network are settled by it. By default the
        readings in which the bound's verdicts differ.
    budget
        Cases searched for each kind of network; the bound's own quick number for None.
    seed
        Seed of the search.

    Returns
    -------
    BoundReport
        Verdicts for exact definitions, with the smallest counterexample.

    Raises
    ------
    ScenarioError
        If there is no such bound, axis or value.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.check_bound(
    ...     "mark_front.slow_start", fc.load("durresi2001/slow_start_tail")
    ... )
    >>> report.verdict
    'violated'
    """
    return module("validation.lab.check").check(name, net, definitions, budget, seed)


def check_bounds(
    net: Network | None = None,
    *,
    names: Iterable[str] = (),
    budget: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> BoundReports:
    """Judge all bounds, or those named, as `check_bound` does.

    Without a network and names, bounds whose search takes long are left out.

    Examples
    --------
    >>> import fluidcc as fc
    >>> reports = fc.check_bounds(
    ...     fc.load("durresi2001/slow_start_tail"), names=["mark_front.slow_start"]
    ... )
    >>> [report.id for report in reports.reports]
    ['mark_front.slow_start']
    """
    lab, wanted = module("validation.lab.check"), list(names)
    if not wanted:
        wanted = [key for key, b in lab.BOUNDS.items() if net is not None or not b.asked]
    for key in wanted:
        lab.named(key)
    reports = []
    for k, key in enumerate(wanted):
        if progress is not None:
            progress(k / len(wanted))
        reports.append(check_bound(key, net, budget=budget, seed=seed))
    return BoundReports(tuple(reports))
