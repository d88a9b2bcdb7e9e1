"""The laws by the names that scenarios use: those of the package, and those added to them, whose
classes are checked before any of their rules is called.

A new law of the package is one file with one class in `window/`, `queue/` or `feedback/`.
"""

import dataclasses
import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.laws.law import (
    CHANGES,
    KINDS,
    MEASURES,
    RECOVERIES,
    RULES,
    SIGNALS,
    AbstractLossClosure,
    AbstractQueueLaw,
    AbstractRemembering,
    AbstractSource,
    Law,
)
from fluidcc.laws.parameters import StateField, infos, states

AnyLaw = TypeVar("AnyLaw", bound=type[Law])


def kind_of(law: type[Law]) -> str:
    """The kind of a law by its abstract base; raises StopIteration if it has none."""
    return next(kind for kind, base in KINDS.items() if issubclass(law, base))


_HOMES = ("window", "queue", "feedback", "reaction", "marking", "load_code", "traffic")


def _laws_of(home: str) -> Iterator[type[Law]]:
    """The laws with a name that a module defines, or that the modules of a folder do."""
    module = importlib.import_module(home)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from _laws_of(f"{home}.{found.name}")
    classes: list[Any] = [thing for thing in vars(module).values() if inspect.isclass(thing)]
    for law in classes:
        own = law.__module__ == home and not law.__name__.startswith("_")
        if issubclass(law, Law) and own and hasattr(law, "name"):
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

    Returns
    -------
    class
        The law itself, so that this can decorate it.

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
    if faults := faults_of(law):
        raise ScenarioError(faults)
    kind = kind_of(law)
    known = _KINDS[kind].get(law.name)
    if known is not None and _place(known) != _place(law):
        owner = "fluidcc" if known in _BUILT_IN else known.__module__
        got = f"{law.name!r}, which is {known.__qualname__} of {owner}"
        raise ScenarioError([_fault(law, "name", f"a name that no other {kind} law has", got)])
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


BASES: Mapping[str, type[Law]] = MappingProxyType(
    {kind: base for kind, base in KINDS.items() if kind not in ("loss", "traffic")}
)
"""Kinds of laws that can be added, with their abstract classes."""

CLOSED: Mapping[type[Law], str] = MappingProxyType(
    {
        AbstractLossClosure: (
            "a loss closure, which cannot be added: it stands for the recovery of the packet "
            "sender, which is no law, so that nothing would compare the two"
        ),
        AbstractSource: (
            "a kind of traffic, which cannot be added: its rates are formulas next to its draws, "
            "and nothing would compare the two"
        ),
    }
)
"""Kinds of laws that cannot be added, and why."""

_TABLE = ("window", "reaction", "loss", "feedback")  # kinds whose fields share the window table
_RESERVED = ("law", "reaction", "loss", "feedback", "phi", "rtt", "hash", "stamp")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_WORDS = ("name", "source", "reaction", "recovery", "marking_point")  # no parameters
_NEEDED = {"window": _WORDS[:4], "feedback": (*_WORDS[:2], "marking_point")}

SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "param": "param(default, symbol, unit=..., doc=..., within=...)",
        "state": "state(start, symbol, unit=..., within=...)",
    }
)
"""How parameters and states are declared."""


def _fault(law: Any, part: str, expected: str, got: str, close: tuple[str, ...] = ()) -> Fault:
    """A fault of a class, or of a part of it."""
    return Fault("", f"{law.__qualname__}.{part}" if part else law.__qualname__, expected, got,
                 close)  # fmt: skip


def faults_of(law: Any) -> list[Fault]:
    """All reasons why `law` cannot be added; empty if it can."""
    bases = ", ".join(base.__name__ for base in BASES.values())
    if not inspect.isclass(law):
        return [Fault("", "", f"a class below one of {bases}", repr(law))]
    kinds: tuple[Any, ...] = tuple(BASES.values())
    if not issubclass(law, kinds):
        closed = (why for base, why in CLOSED.items() if issubclass(law, base))
        return [_fault(law, "", f"a class below one of {bases}", next(closed, "another class"))]
    found = [*_missing(law), *_words(law), *_lists(law), *_fields(law), *_states(law)]
    if found:
        return found
    try:
        law()
    except (TypeError, ValueError) as error:
        return [_fault(law, "", "a law that can be made with its defaults", f"{error}")]
    from fluidcc.laws.trial import faults_of_rules

    return list(faults_of_rules(law))


def _missing(law: Any) -> Iterator[Fault]:
    """Rules and words that every law of the kind has."""
    kind = kind_of(law)
    base = BASES[kind]
    others = [n for n in dir(law) if not hasattr(base, n) and inspect.isfunction(getattr(law, n))]
    for name in sorted(law.__abstractmethods__):
        arguments = ", ".join(inspect.signature(getattr(base, name)).parameters)
        method = f"a method {name}({arguments}), which every {kind} law has"
        close = nearest(name, others, 1)
        if close:  # a misspelt one
            yield _fault(law, close[0], method, repr(close[0]), (name,))
        else:
            yield _fault(law, name, method, "none")
    for name in (n for n in _NEEDED.get(kind, _WORDS[:2]) if not hasattr(law, n)):
        yield _fault(law, name, f'a line `{name} = "..."` in the class', "none")


def _words(law: Any) -> Iterator[Fault]:
    """Names, and the words by which a window law chooses its sender."""
    fields = {field.name for field in dataclasses.fields(law)}
    for name in fields.intersection(_WORDS):
        yield _fault(law, name, f"a plain line `{name} = ...`", "a field, as it has a type")
    words = {"reaction": tuple(LAWS["reaction"]), "recovery": RECOVERIES}
    given = [n for n in _WORDS[:4] if n not in fields and hasattr(law, n)]
    if kind_of(law) == "window" and law.growth:
        words["growth"] = infos(LAWS["reaction"]["once_per_rtt"])["growth"].choices
        given.append("growth")
    for name in given:
        word = getattr(law, name)
        if not isinstance(word, str) or not word:
            yield _fault(law, name, "a text", repr(word))
        elif name == "name" and not _NAME.match(word):
            yield _fault(law, name, "small letters, digits and _, a letter first", repr(word))
        elif word not in words.get(name, (word,)):
            close = nearest(word, words[name], 1)
            yield _fault(law, name, f"one of {', '.join(words[name])}", repr(word), close)


def _lists(law: Any) -> Iterator[Fault]:
    """The signals that a law declares to read, to give or to carry, and the rules that it draws
    random numbers for.
    """
    known = {key: [*SIGNALS] for key in ("reads", "emits", "carries")}
    known["reads"] += MEASURES
    known["draws"] = [n for n in RULES.get(BASES[kind_of(law)], ()) if n in CHANGES]
    for name, words in known.items():
        given: Any = getattr(law, name, ())
        listed = (given,) if isinstance(given, str) else given
        if not isinstance(given, tuple) or any(word not in words for word in listed):
            names = [nearest(word, words, 1) or (word,) for word in map(str, listed)]
            line = f"{name} = {tuple(itertools.chain(*names))}"
            yield _fault(law, name, f"a tuple of {', '.join(words)}", repr(given), (line,))


def _fields(law: Any) -> Iterator[Fault]:
    """Parameters: each described, with a default in its range, and a name that is free."""
    kind, described = kind_of(law), infos(law)
    inherited = {field.name for field in dataclasses.fields(BASES[kind])}
    for field in dataclasses.fields(law):
        if field.name in inherited or field.name in _WORDS:
            continue
        if field.name in described:
            yield from _described(law, field, described[field.name])
        else:
            expected = f"{SHAPES['param']}, or choice(...) for a word or a yes/no"
            if isinstance(field.default, StateField):
                expected = f"a plain line `{field.name} = state(...)`, without a type"
            yield _fault(law, field.name, expected, "a field without unit and meaning")
        if field.name in _taken(kind):
            free = "a name that nothing else in a scenario's table has"
            yield _fault(law, field.name, free, repr(field.name))


def _states(law: Any) -> Iterator[Fault]:
    """States: where they start, their range and symbol, and names that nothing else has."""
    described, base = infos(law), BASES[kind_of(law)]
    declared = states(law)
    if declared and not issubclass(law, AbstractRemembering):
        yield _fault(law, next(iter(declared)), "a state of a window or a queue law",
                    f"one of a {kind_of(law)} law, which remembers nothing")  # fmt: skip
    for name, field in declared.items():
        if hasattr(base, name) or name in (*described, "window") or name.startswith("_"):
            yield _fault(law, name, "a name that nothing else in the law has", repr(name))
        if not field.info.symbol:
            yield _fault(law, name, "its symbol for formulas, in LaTeX", "none")
        flags = [k for k, info in described.items() if info.words == ("true", "false")]
        if field.when and field.when not in flags:
            expected = f"when= a yes/no parameter, {' or '.join(flags) or 'which the law lacks'}"
            yield _fault(law, name, expected, repr(field.when), nearest(field.when, flags, 1))
        known = [k for k, info in described.items() if info.within is not None]
        known += ["average"] if issubclass(law, AbstractQueueLaw) else []
        if isinstance(field.start, str):
            if field.start not in known:
                expected = f"a start that is a number, or one of {', '.join(known)}"
                close = nearest(field.start, known, 1)
                yield _fault(law, name, expected, repr(field.start), close)
        elif field.info.within is not None and field.start not in field.info.within:
            expected = f"a start in its own range {field.info.within}"
            yield _fault(law, name, expected, repr(field.start))


def _described(law: Any, field: dataclasses.Field, info: Any) -> Iterator[Fault]:
    needed = {"its meaning in doc=": info.doc}
    if info.within is not None:
        needed |= {'its unit in unit=, "1" for a pure number': info.unit}
        needed |= {"its symbol for formulas, in LaTeX": info.symbol}
    for expected, text in needed.items():
        if not text:
            yield _fault(law, field.name, expected, "none")
    default = field.default
    if default is dataclasses.MISSING:
        if field.default_factory is dataclasses.MISSING:
            yield _fault(law, field.name, "a default", "none")
    elif info.within is None:
        return
    elif not isinstance(default, int | float) or isinstance(default, bool):
        yield _fault(law, field.name, "a number by default", repr(default))
    elif default not in info.within:
        expected = f"a default in its own range {info.within}"
        yield _fault(law, field.name, expected, repr(default))


def _taken(kind: str) -> set[str]:
    """Names of keys that stand in the same table of a scenario, and are of other laws."""
    others = [other for other in _TABLE if other != kind] if kind in _TABLE else []
    taken = {name for other in others for law in LAWS[other].values() for name in infos(law)}
    return taken | set(_RESERVED)
