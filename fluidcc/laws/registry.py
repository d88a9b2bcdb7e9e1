"""The laws by the names that scenarios use: those of the package, and those added to them.

A new law of the package is one file with one class in `window/`, `queue/` or `feedback/`.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from fluidcc.errors import ScenarioError
from fluidcc.laws.law import KINDS, Law

AnyLaw = TypeVar("AnyLaw", bound=type[Law])


def kind_of(law: type[Law]) -> str:
    """The kind of a law by its abstract base; raises StopIteration if it has none."""
    return next(kind for kind, base in KINDS.items() if issubclass(law, base))


_HOMES = (
    "window", "queue", "feedback", "reaction", "marking", "spreading", "loss", "load_code",
    "traffic",
)  # fmt: skip


def _laws_of(home: str) -> Iterator[type[Law]]:
    """The laws with a name that a module defines, or that the modules of a folder do."""
    module = importlib.import_module(home)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from _laws_of(f"{home}.{found.name}")
    classes: list[Any] = [thing for thing in vars(module).values() if inspect.isclass(thing)]
    for law in classes:
        if issubclass(law, Law) and law.__module__ == home and hasattr(law, "name"):
            yield law


_KINDS: dict[str, dict[str, type[Law]]] = {kind: {} for kind in KINDS}
for _law in (law for home in _HOMES for law in _laws_of(f"fluidcc.laws.{home}")):
    _KINDS[kind_of(_law)][_law.name] = _law

LAWS: Mapping[str, Mapping[str, type[Law]]] = MappingProxyType(
    {kind: MappingProxyType(laws) for kind, laws in _KINDS.items()}
)
"""All laws by kind and name, those that were added included."""

_BUILT_IN = frozenset(law for laws in _KINDS.values() for law in laws.values())


def own_laws() -> list[type[Law]]:
    """The laws that were added."""
    return [law for laws in _KINDS.values() for law in laws.values() if law not in _BUILT_IN]


def register(law: AnyLaw) -> AnyLaw:
    """Add a user law, so that scenarios can name it; also as a decorator of its class.

    The kind follows from its abstract base. A class that is defined again, as when a cell of a
    notebook runs again, takes the place of the former; networks made before keep theirs.

    Parameters
    ----------
    law
        A class below AbstractWindowLaw, AbstractQueueLaw, AbstractFeedback, AbstractReaction,
        AbstractMarking, AbstractMarkSpacing or AbstractEstimator, with `name`, `source` and
        described parameters.

    Raises
    ------
    ScenarioError
        If it is no law that can be added, with every reason, or if its name is taken.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws import AbstractWindowLaw, param
    >>> @fc.register
    ... class Gentle(AbstractWindowLaw):
    ...     name = "gentle"
    ...     source = "an example"
    ...     reaction = "once_per_rtt"
    ...     recovery = "newreno"
    ...     b: float = param(0.2, "b", unit="1", doc="share given up", within="(0, 1)")
    ...
    ...     def on_ack(self, s, ack):
    ...         return ack.count / s
    ...
    ...     def on_mark(self, s, ack):
    ...         return -self.b * s
    >>> net = fc.replace(fc.load("hollot2001/slow"), {"flow.window.law": "gentle"})
    >>> round(float(fc.equilibrium(net).flows["tcp"].window[0]), 2)
    16.89
    """
    from fluidcc.laws.validation import fault, faults_of

    if faults := faults_of(law):
        raise ScenarioError(faults)
    kind = kind_of(law)
    known = _KINDS[kind].get(law.name)
    if known is not None and _place(known) != _place(law):
        owner = "fluidcc" if known in _BUILT_IN else known.__module__
        got = f"{law.name!r}, which is {known.__qualname__} of {owner}"
        raise ScenarioError([fault(law, "name", f"a name that no other {kind} law has", got)])
    _KINDS[kind][law.name] = law
    return law


def _place(law: type[Law]) -> tuple[str, str]:
    return law.__module__, law.__qualname__


def restore(before: list[type[Law]]) -> None:
    """Let the added laws be those of `before`, a former answer of `own_laws`."""
    for law in own_laws():
        del _KINDS[kind_of(law)][law.name]
    for law in before:
        _KINDS[kind_of(law)][law.name] = law
