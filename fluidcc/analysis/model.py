"""Interface of models with parameters for the analysis: networks and delay equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.errors import Fault, ScenarioError
from fluidcc.laws.parameters import Interval
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import (
    check_paths,
    full_path,
    info_at,
    number_at,
    replace,
    replace_unchecked,
    value_at,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from fluidcc.analysis.delay_equation import DelayEquation, EquationEquilibrium

    Model = Network | DelayEquation
    AnyEquilibrium = Equilibrium | EquationEquilibrium


def _is_equation(model: Any) -> TypeIs[DelayEquation]:
    """Whether a model is a delay equation; its class is not imported, as that imports JAX."""
    return hasattr(model, "number_at")


def equilibrium_of(model: Model) -> AnyEquilibrium:
    """The equilibrium of a model."""
    return model.equilibrium() if _is_equation(model) else equilibrium(model)


def family(model: Model, paths: Sequence[str], where: str) -> Callable[..., Model]:
    """The model as a function of parameters.

    The number of flows is any positive number here, in proportion over the round trips of a group.
    """
    if _is_equation(model):
        return lambda *values: model.replace(dict(zip(paths, values, strict=True)))
    flows = {p: full_path(model, p) for p in paths if p.endswith(".n")}

    def member(*values: float) -> Network:
        given = dict(zip(paths, values, strict=True))
        others = {path: value for path, value in given.items() if path not in flows}
        net = replace(model, others, where=where) if others else model
        return replace_unchecked(net, {full: float(given[p]) for p, full in flows.items()})

    return member


def unit_of(model: Model, path: str) -> str:
    """Unit of a parameter, `1` if it has none or none is known."""
    info = None if _is_equation(model) else info_at(model, path)
    return info.unit if info else "1"


def number_of(model: Model, path: str) -> float:
    """The model's value of a parameter; raises ScenarioError if it has none."""
    return model.number_at(path) if _is_equation(model) else number_at(model, path)


def within_of(model: Model, path: str) -> Interval | None:
    """The range of a parameter; None if any number is valid."""
    info = None if _is_equation(model) else info_at(model, path)
    return info.within if info else None


def ends_of(
    model: Model, path: str, low: float | str, high: float | str, where: str
) -> tuple[float, float]:
    """Both ends of a range as numbers; raises ScenarioError with all faults."""
    if _is_equation(model):
        model.number_at(path)
        ends, within = [float(low), float(high)], None
    else:
        check_paths(model, [path], where=where)
        info = info_at(model, path)
        if info is None or info.within is None:
            raise ScenarioError([Fault(where, path, "the path of a number", "another value")])
        ends = [value_at(model, path, end, where=where) for end in (low, high)]
        within = info.within
    faults = [
        Fault(where, path, f"a number in {within}", repr(end))
        for end in ends
        if not isinstance(end, int | float) or (within is not None and float(end) not in within)
    ]
    if not faults and not ends[0] < ends[1]:
        faults = [Fault(where, path, "low < high", f"{low!r} and {high!r}")]
    if faults:
        raise ScenarioError(faults)
    return float(ends[0]), float(ends[1])
