"""Every rule of every law of the package, found by walking it."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import fluidcc.laws
from fluidcc.check.cases import RULES, Case, cases_of, distinct
from fluidcc.laws.law import Law
from fluidcc.laws.registry import LAWS


def concrete_laws() -> set[type[Law]]:
    """Classes of the package that can be made into a law, registered or not."""
    for module in pkgutil.walk_packages(fluidcc.laws.__path__, "fluidcc.laws."):
        importlib.import_module(module.name)

    def below(parent: type) -> Iterator[type]:
        for child in parent.__subclasses__():
            yield child
            yield from below(child)

    return {
        law
        for law in below(Law)
        if law.__module__.startswith("fluidcc.laws.") and not inspect.isabstract(law)
        and "Abstract" not in law.__name__
    }  # fmt: skip


def registered_laws() -> list[type[Law]]:
    return [law for kind in LAWS.values() for law in kind.values()]


def packet_forms() -> list[type[Law]]:
    """Laws that packets meet in the place of registered ones."""
    forms = [type(law().in_packets(60.0)) for law in LAWS["queue"].values()]
    return [form for form in forms if form not in LAWS["queue"].values()]


def _found() -> Iterator[Case]:
    """Each rule of each law with each of its choices made otherwise, unless the choice does not
    matter; a rule inherited from a law examined before only with the usual choices.
    """
    known, seen = set(), set()
    for kind in RULES:
        for law in (law for law in registered_laws() + packet_forms() if issubclass(law, kind)):
            yield from distinct(cases_of(law, known), seen)


CASES = list(_found())
