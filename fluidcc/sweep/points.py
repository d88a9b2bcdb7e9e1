"""A verb at points of a grid: one by one, or at those populations together whose numbers alone
differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fluidcc.programs import compiling
from fluidcc.result import failure
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import replace
from fluidcc.sweep.grid import GRID_VERBS, inner, name_of
from fluidcc.sweep.result import Point

if TYPE_CHECKING:
    from fluidcc.analysis.equilibrium import Equilibrium

_MANY = 16  # points, from which on compiled equilibria are faster
_NOISE = "fluidcc.analysis.fluctuations.fluctuations"  # always of a population


def most_at_once(net: Network, verb: Callable[..., Any]) -> int:
    """The most points of a grid that a verb takes at once."""
    size, begins = GRID_VERBS.get(name_of(verb), 1), _from_rest(net, verb) is not None
    if not begins and (size == 1 or net.closure != "population"):
        return size
    from fluidcc.analysis.population_batch import TOGETHER  # heavy

    return TOGETHER if begins else min(size, TOGETHER)


def evaluate_point(
    net: Network, changes: dict[str, Any], verb: Callable[[Network], Any], *, points: int = 1
) -> Point:
    """Call a verb at the point with these changes, one of `points`; an error becomes its message.

    Raises MemoryError if the machine has no memory left, as the point may succeed another time.
    """
    return _evaluate(changes, lambda: verb(replace(net, changes)), points)


def evaluate_points(
    net: Network,
    changes: Sequence[dict[str, Any]],
    verb: Callable[[Network], Any],
    *,
    points: int = 1,
) -> list[Point]:
    """`evaluate_point` at some points, as many as the verb takes at once at the most."""
    judge, calls = _from_rest(net, verb), {}
    if judge is not None and len(changes) > 1:
        with _compiled(points):
            rests = _rests(net, changes, verb)
        calls = {k: functools.partial(judge, eq) for k, eq in rests.items()}
    return [
        _evaluate(own, calls[k], points) if k in calls
        else evaluate_point(net, own, verb, points=points)
        for k, own in enumerate(changes)
    ]  # fmt: skip


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


def _from_rest(net: Network, verb: Callable[..., Any]) -> Callable[[Equilibrium], Any] | None:
    """What a verb makes of the equilibrium of a population, with its options; None if it does not
    begin with one.
    """
    if net.closure != "population" and name_of(verb) != _NOISE:
        return None
    from fluidcc.analysis.equilibrium import equilibrium
    from fluidcc.analysis.fluctuations import fluctuate, fluctuations
    from fluidcc.analysis.stability import judge, stability

    made: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (equilibrium, lambda eq: eq), (stability, judge), (fluctuations, fluctuate)
    )  # fmt: skip
    options = functools.partial(verb).keywords  # nested partials are merged into one
    own = (then for first, then in made if first is inner(verb))
    return next((functools.partial(then, **options) for then in own), None)


def _rests(
    net: Network, changes: Sequence[dict[str, Any]], verb: Callable[..., Any]
) -> dict[int, Equilibrium]:
    """The equilibria of populations with these changes that can be found together, by number."""
    from fluidcc.analysis.population_batch import equilibria_together

    if name_of(verb) == _NOISE:
        net = dataclasses.replace(net, closure="population")
    try:
        return equilibria_together(net, changes)
    except Exception:  # one by one, so that what is wrong at one point ends no others
        return {}
