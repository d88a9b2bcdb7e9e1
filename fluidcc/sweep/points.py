"""A verb at points of a grid: one by one, or at those populations together whose numbers alone
differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from fluidcc.programs import compiling
from fluidcc.result import failure
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import replace
from fluidcc.sweep.grid import GRID_VERBS, Blocks, inner, name_of
from fluidcc.sweep.result import Point

_MANY = 16  # points, from which on compiled equilibria are faster
_NOISE = "fluidcc.analysis.fluctuations.fluctuations"  # always of a population
_BEGIN_AT_REST = (
    "fluidcc.analysis.equilibrium.equilibrium", "fluidcc.analysis.stability.stability", _NOISE,
)  # fmt: skip
_FEWEST, _BLOCKS = 8, 32  # points of a block, and blocks for all workers, of populations


def most_at_once(net: Network, verb: Callable[..., Any], points: int) -> int:
    """The most points of a grid, of so many, that a verb takes at once."""
    name, net = name_of(verb), _asked_about(net, verb)
    size = GRID_VERBS.get(name, 1)
    if net.closure != "population" or not (size > 1 or name in _BEGIN_AT_REST):
        return size
    from fluidcc.analysis.population_batch import MOST_TOGETHER, are_alike  # heavy
    from fluidcc.model.fluid import steady

    try:
        together = are_alike([steady(net)])
    except ValueError:  # so does each point
        return size
    most = min(MOST_TOGETHER, max(_FEWEST, points // _BLOCKS))
    return most if together else min(size, most)


def _asked_about(net: Network, verb: Callable[..., Any]) -> Network:
    """The network whose equilibrium a verb begins with."""
    return dataclasses.replace(net, closure="population") if name_of(verb) == _NOISE else net


def evaluate_point(
    net: Network, changes: dict[str, Any], verb: Callable[[Network], Any], *, points: int = 1
) -> Point:
    """Call a verb at the point with these changes, one of `points`; an error becomes its message.

    Raises MemoryError if the machine has no memory left, as the point may succeed another time.
    """
    return _evaluate(changes, lambda: verb(replace(net, changes)), points)


def evaluate_block(
    net: Network, blocks: Blocks, block: int, verb: Callable[[Network], Any]
) -> dict[int, Point]:
    """`evaluate_point` at the points of a block of `most_at_once`, by their numbers."""
    numbers, points = blocks.numbers(block).tolist(), len(blocks.grid)
    changes = [blocks.grid.point(k) for k in numbers]
    with _compiled(points):
        calls = _calls(net, changes, verb) if len(changes) > 1 else {}
    return {
        number: _evaluate(own, calls[k], points) if k in calls
        else evaluate_point(net, own, verb, points=points)
        for k, (number, own) in enumerate(zip(numbers, changes, strict=True))
    }  # fmt: skip


def _evaluate(changes: dict[str, Any], call: Callable[[], Any], points: int) -> Point:
    try:
        with _compiled(points):
            result = call()
    except Exception as error:  # an error at one point must not end the sweep
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            raise MemoryError(f"no memory left: {error}") from None
        return Point(changes, None, str(error) or type(error).__name__)
    return Point(changes, result, failure(result))


def _compiled(points: int) -> contextlib.AbstractContextManager[None]:
    return compiling() if points >= _MANY else contextlib.nullcontext()


def _calls(
    net: Network, changes: Sequence[dict[str, Any]], verb: Callable[..., Any]
) -> dict[int, Callable[[], Any]]:
    """What gives the results of a verb that begins at rest, by number, at the points of populations
    that are found together.
    """
    net = _asked_about(net, verb)
    from fluidcc.analysis.equilibrium import equilibrium  # heavy
    from fluidcc.analysis.fluctuations import fluctuations_at
    from fluidcc.analysis.population_batch import answer_together, equilibria_together
    from fluidcc.analysis.stability import judge

    try:
        rests = equilibria_together(net, changes)
        if inner(verb) is equilibrium:
            return {k: lambda eq=eq: eq for k, eq in rests.items()}
        answers = answer_together(rests)
    except Exception:  # one by one, so that what is wrong at one point ends no others
        return {}
    options = functools.partial(verb).keywords  # nested partials are merged into one
    at_rest: Callable[..., Any] = fluctuations_at if name_of(verb) == _NOISE else judge
    return {
        k: functools.partial(at_rest, eq, answering=answers.get(k), **options)
        for k, eq in rests.items()
    }
