"""Judges bounds: by a search over parameters, or on one network."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from fluidcc.analysis.bounds import HOLDS, UNKNOWN, VIOLATED, BoundReport, Example, Reading
from fluidcc.bundled import declared
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.scenario.network import Network

from .bound import ROUNDING, Bound, Definitions, every
from .search import Attack, Case, attack

_PAPERS = ("mark_front", "bmcc", "ecn_mod", "rwm", "becn", "relay")
BOUNDS: Mapping[str, Bound] = MappingProxyType({
    own.id: own for paper in _PAPERS for own in declared(f"validation.bounds.{paper}", Bound)
})  # fmt: skip
"""Every bound by name, in the order of the papers."""

_NO_VALUE = "what is bounded is not a number on this network"
_NO_CASE = "what is bounded was a number in no case of the search"


def check(
    name: str, net: Network | None, definitions: Definitions | None, budget: int | None, seed: int
) -> BoundReport:
    """Judge a bound, as `fluidcc.check_bound` says."""
    bound = named(name)
    chosen = _readings(bound, definitions)
    if net is not None:
        return _on_network(bound, net, definitions or {})
    if budget is not None and budget < 1:
        raise ValueError(f"budget: expected at least 1, got {budget!r}")
    found = attack(bound, chosen, budget=budget or bound.quick, seed=seed)
    return BoundReport.of(bound, tuple(_reading(bound, one) for one in found))


def named(name: str) -> Bound:
    """A bound by its name; raises ScenarioError if there is none."""
    if name not in BOUNDS:
        close = nearest(name, list(BOUNDS), least=0.4)
        raise ScenarioError([Fault("bounds", "", "the name of a bound", f"{name!r}", close)])
    return BOUNDS[name]


def _readings(bound: Bound, given: Definitions | None) -> list[Definitions]:
    """The readings to judge; raises ScenarioError for axes and values that a bound lacks."""
    if given is None:
        return list(bound.readings)
    faults = []
    for axis, value in given.items():
        known = bound.axes.get(axis)
        if known is None:
            names = list(bound.axes)
            expected = f"one of the definitions {', '.join(names) or '(none)'}"
            faults.append(Fault(bound.id, "", expected, f"{axis!r}", nearest(axis, names)))
        elif value not in known:
            faults.append(Fault(bound.id, axis, f"one of {', '.join(known)}", f"{value!r}"))
    if faults:
        raise ScenarioError(faults)
    return [given]


def _on_network(bound: Bound, net: Network, given: Definitions) -> BoundReport:
    """The verdict on one network, for each way to judge that it leaves open."""
    why = bound.obstacle(net)
    if why:
        return BoundReport.of(bound, (), why)
    subject = bound.of_network(net)
    measured = bound.measure(subject)
    why = bound.silent(measured)
    if why:
        return BoundReport.of(bound, (), why)
    settled, readings = {**bound.found_in(net), **bound.settled(measured)}, []
    for open_axes in _combinations(bound, given):
        definitions = bound.defined({**open_axes, **settled})
        judged = bound.judge(subject, measured, definitions)
        if math.isnan(judged.excess):
            readings.append(Reading(definitions, UNKNOWN, False, 0, None, None, _NO_VALUE))
            continue
        case = Case({}, subject, judged)
        wrong = case if judged.excess > ROUNDING else None
        readings.append(_reading(bound, Attack(definitions, 1, case, wrong)))
    return BoundReport.of(bound, tuple(readings))


def _combinations(bound: Bound, given: Definitions) -> tuple[dict[str, str], ...]:
    """All values of the axes that a network does not settle, the first ones first."""
    return every(
        {
            axis: (given[axis],) if axis in given else values
            for axis, values in bound.axes.items()
            if axis not in bound.networks
        }
    )


def _reading(bound: Bound, found: Attack) -> Reading:
    largest = None if found.largest is None else Example.of(found.largest)
    if found.smallest is not None:
        worst = Example.of(found.smallest)
        return Reading(found.definitions, VIOLATED, False, found.searched, worst, largest)
    if largest is None:
        return Reading(found.definitions, UNKNOWN, False, found.searched, None, None, _NO_CASE)
    tight = largest.excess >= -bound.reached
    return Reading(found.definitions, HOLDS, tight, found.searched, largest, largest)
