"""The state of a page, and its controls, made from the parameter metadata of laws, links and
groups.

A state is a scenario by name, changes to it, and options of the request. It is the text of an
address; the server keeps none of it. Only bundled scenarios and the one file that the explorer was
started with can be named.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from fluidcc import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.laws.law import Law
from fluidcc.laws.parameters import Interval, infos
from fluidcc.scenario.files import load, loads
from fluidcc.scenario.network import Flows, Network
from fluidcc.scenario.parsing import value_of
from fluidcc.scenario.paths import home, info_at, leaf, paths, replace
from fluidcc.scenario.reader import Laws
from fluidcc.scenario.sender import KINDS, NAMED
from fluidcc.scenario.tables import laws_of, tables

START = "hollot2001/slow"
"""The scenario of a page without one, if the explorer was started without one."""

_PARTS = ("links.", "flows.", "link.", "flow.", "model.")
_MOST_CHANGES = 200
_LONGEST = 200
"""Most characters of one value."""


@dataclasses.dataclass(frozen=True)
class State:
    """A scenario's name, changes by path as text, and further options of the request."""

    scenario: str
    changes: Mapping[str, str]
    options: Mapping[str, str]


def parse(query: Iterable[tuple[str, str]]) -> State:
    """The state in the query of an address.

    Raises ScenarioError for a key that occurs twice, too many changes, or a value that is too long.
    """
    values: dict[str, str] = {}
    for key, value in query:
        if key in values:
            raise ScenarioError([Fault("address", key, "each key once", "it twice")])
        values[key] = value
    changes = {key: value for key, value in values.items() if key.startswith(_PARTS)}
    if len(changes) > _MOST_CHANGES:
        expected = f"at most {_MOST_CHANGES} changes"
        raise ScenarioError([Fault("address", "", expected, str(len(changes)))])
    for key, value in values.items():
        if len(value) > _LONGEST:
            expected = f"at most {_LONGEST} characters"
            raise ScenarioError([Fault("address", key, expected, str(len(value)))])
    options = {key: value for key, value in values.items() if key not in changes}
    return State(options.pop("scenario", ""), changes, options)


class Catalogue:
    """The scenarios that a page may choose from.

    Parameters
    ----------
    given
        A bundled scenario, or a file, which is read once and listed in `names` by its file name.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or it is faulty.
    """

    def __init__(self, given: str | None = None) -> None:
        self._from_file: dict[str, Network] = {}
        self.start = given or START
        if given is not None and (given not in bundled.scenarios() or Path(given).is_file()):
            self.start = Path(given).name
            self._from_file[self.start] = load(given)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, the file's first."""
        return (*self._from_file, *bundled.scenarios())

    def titles(self) -> dict[str, str]:
        """The title of every scenario, by name."""
        return {name: net.title for name, net in self._from_file.items()} | bundled.titles()

    def network(self, name: str) -> Network:
        """The network of a scenario, without changes.

        Raises ScenarioError for any other name.
        """
        if name in self._from_file:
            return self._from_file[name]
        if name not in bundled.scenarios():
            close = nearest(name, self.names)
            expected = "one of the scenarios listed"
            raise ScenarioError([Fault("", "scenario", expected, repr(name), close)])
        return _bundled(name)

    def base_and_changed(self, state: State) -> tuple[Network, Network]:
        """The network of a state without and with its changes.

        Raises ScenarioError with all faults.
        """
        base = self.network(state.scenario or self.start)
        return base, _apply_changes(base, state.changes)


def _apply_changes(net: Network, changes: Mapping[str, str]) -> Network:
    """The network with changes as text, such as ``10 Mbit/s``.

    Raises ScenarioError with all faults.
    """
    values: dict[str, Any] = {path: value_of(text) for path, text in changes.items()}
    return replace(net, values, where="") if values else net


@functools.cache
def _bundled(name: str) -> Network:
    return loads(bundled.scenarios()[name].read_text(encoding="utf-8"), where=name)


_FOLDED = ("initial", "start", "sender", "voice")
"""Tables of initial states and of less common parts of a network: folded at first."""

_KINDS = {**KINDS, "queue": "queue law", "marking": "which flows a mark is for",
          "estimator": "load estimate of the senders", "traffic": "traffic of the sources",
          "spreading": "how signals are spread over packets"}  # fmt: skip
"""By kind of law: its meaning on the page."""


_FEW_GROUPS = 3
"""Most groups of flows for which every option is tried beforehand; with more, an option that does
not fit is reported when it is chosen."""


@dataclasses.dataclass(frozen=True)
class Span:
    """The range of a slider."""

    low: float
    high: float
    log: bool


@dataclasses.dataclass(frozen=True)
class Control:
    """One parameter or choice of a network.

    `value` is None for a number that is not set, `span` None if no slider makes sense. `owner` is
    the path of the law that a number belongs to: another law there removes the number. `options`
    are those of a choice, each with the reason why it is not possible, or empty text.
    """

    path: str
    name: str
    meaning: str
    symbol: str
    unit: str
    within: str
    value: float | str | None
    span: Span | None = None
    whole: bool = False
    owner: str = ""
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Group:
    """Controls that belong together; a `folded` group is closed at first."""

    title: str
    folded: bool
    controls: tuple[Control, ...]


def controls(base: Network, net: Network) -> tuple[Group, ...]:
    """All controls of `net`; sliders are centred on the values of the scenario `base`."""
    by_title: dict[tuple[str, bool], list[Control]] = {}
    for control in (*_choices(net), *numbers(base, net)):
        kind, name, *inner = control.path.split(".")
        table = inner[0] if inner else ""
        fold = table in _FOLDED or kind == "model"
        # a number that is not set, or has no limit, is rarely moved
        fold = fold or (not control.options and control.span is None)
        by_title.setdefault((_title(net, kind, name, table), fold), []).append(control)
    for members in by_title.values():  # the law, its numbers, then other choices
        members.sort(key=lambda c: (not c.path.endswith(".law"), bool(c.options)))
    folded = [c for (_, fold), members in by_title.items() if fold for c in members]
    shown = [Group(title, False, tuple(cs)) for (title, fold), cs in by_title.items() if not fold]
    shown.sort(key=lambda group: ":" in group.title)  # flows and links before their laws
    return (*shown, Group("Further values", True, tuple(folded)))


def _title(net: Network, kind: str, name: str, table: str) -> str:
    """Title of the group that a control belongs to."""
    if kind == "model":
        return "Model"
    single = len(net.links if kind == "links" else net.flows) == 1
    title = {"links": "Link", "flows": "Flows"}[kind] + ("" if single else f" {name}")
    law = {"queue": ": queue law", "window": ": window law and signal"}
    law |= {"feedback": law["window"], "marking": law["window"], "estimator": law["window"]}
    return title + law.get(table, "")


@functools.cache
def _symbol(latex: str) -> str:
    """MathML of a symbol."""
    return convert(latex) if latex else ""


def _values(net: Network) -> dict[str, Any]:
    """The value at each path; None if it is not set."""
    tree = tables(net)
    return {path: leaf(tree, path) for path in paths(net)}


def _choices(net: Network) -> Iterator[Control]:
    """Choices of laws, and the named and yes/no options of laws and of the model."""
    known, laws = laws_of(net), dict[str, str]()
    for path, kind, law in _laws(net, known):
        laws[path] = law.name
        yield _choice(net, path, kind.replace("_", " "), _KINDS.get(kind, kind), law.name,
                      known[kind])  # fmt: skip
    for name, info in infos(net).items():
        yield _choice(net, f"model.{name}", name, info.doc, getattr(net, name), info.choices)
    for path, value in _values(net).items():
        info = info_at(net, path)
        if info is not None and info.within is None and path not in laws:
            text = value if isinstance(value, str) else str(bool(value)).lower()
            yield _choice(net, path, _name(path), info.doc, text, info.words)


def _choice(
    net: Network, path: str, name: str, meaning: str, value: str, options: Iterable[str]
) -> Control:
    """A choice, with the reason against each option that does not fit the network."""
    tried = len(net.flows) <= _FEW_GROUPS
    reasons = {o: _refusal(net, path, o) if tried and o != value else "" for o in options}
    return Control(path, name, meaning, "", "", "", value, options=reasons)


def _refusal(net: Network, path: str, option: str) -> str:
    try:
        _apply_changes(net, {path: option})
    except ScenarioError as error:
        return str(error)
    return ""


def _laws(net: Network, known: Laws) -> Iterator[tuple[str, str, Law]]:
    """Path, kind and law of each law of a network."""
    for name, link in zip(net.link_names, net.links, strict=True):
        yield f"links.{name}.queue.law", "queue", link.queue
        for kind in (f.name for f in dataclasses.fields(link.queue) if f.name in known):
            yield f"links.{name}.queue.{kind}", kind, getattr(link.queue, kind)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        for kind in (f.name for f in dataclasses.fields(Flows) if f.name in known):
            yield _law_path(name, kind), kind, getattr(flows, kind)


def _law_path(group: str, kind: str) -> str:
    if kind in NAMED:
        return f"flows.{group}.window.{kind}"
    return f"flows.{group}.window.law" if kind == "window" else f"flows.{group}.{kind}"


def numbers(base: Network, net: Network) -> Iterator[Control]:
    """The controls of all single numbers of `net`; sliders are centred on the values of `base`."""
    values, base_values = _values(net), _values(base)
    for path, value in values.items():
        info = info_at(net, path)
        if info is None or info.within is None or isinstance(value, list):
            continue
        start = base_values.get(path, value)
        start = value if isinstance(start, list) or start is None else start
        whole = path.endswith(".n")  # flows are counted
        spread = whole and path.removesuffix("n") + "rtt.min" in values  # one round trip per flow
        span = None if spread else _span(info.within, start, value, whole)
        if span is None and start == 0 and value == 0:
            span = Span(0.0, _largest_of_unit(base, base_values, info.unit), False)
        unit = "" if info.unit == "1" else info.unit
        yield Control(
            path, _name(path), info.doc, _symbol(info.symbol), unit, str(info.within), value, span,
            whole, _owner(net, path),
        )  # fmt: skip


def _owner(net: Network, path: str) -> str:
    """The path of the law that a number belongs to."""
    kind, name, *inner = path.split(".")
    if len(inner) < 2 or inner[0] in (*_FOLDED, "rtt"):
        return ""
    if kind == "links":
        return f"links.{name}.{inner[0]}.law"
    flows = net.flows[net.flow_names.index(name)]
    if inner[0] == "window":
        return _law_path(name, home(flows, ["window"], inner[-1])[0])
    return _law_path(name, inner[0])


def _name(path: str) -> str:
    """Name of a parameter: the last parts of its path."""
    *_, table, last = path.split(".")
    return f"{table}.{last}" if table in ("rtt", "initial") else last


def _span(within: Interval, start: Any, value: Any, whole: bool) -> Span | None:
    """A slider around the scenario's value `start` that includes the present `value`.

    If the allowed range is finite and at most some 20 times the value, the slider covers it all.
    Other positive numbers go from a tenth to ten times the value, or from a thirtieth to thirty
    times if the range has an upper end, on a logarithmic scale.
    """
    if value is None or math.isinf(start) or math.isinf(value):
        return None
    low, high = within.ends
    if math.isfinite(high - low) and (start - low >= (high - low) / 20 or start == low):
        return _inside(within, low, high, value, log=False)
    if low >= 0 and start > 0:
        factor = 30.0 if math.isfinite(high) else 10.0
        least = max(1.0, start / factor) if whole else start / factor
        return _inside(within, _round(least), _round(start * factor), value, log=True)
    if low < 0:
        reach = max(1.0, abs(start))
        return _inside(within, start - reach, start + reach, value, log=False)
    return _inside(within, 0.0, 2 * value, value, log=False) if value > 0 else None


def _inside(within: Interval, low: float, high: float, value: float, *, log: bool) -> Span:
    """A slider from low to high within the range, without open ends, that includes the value."""
    first, last = within.ends
    gap = (min(high, last) - max(low, first)) / 1000
    low, high = max(low, first), min(high, last)
    low = low + gap if low not in within else low
    high = high - gap if high not in within else high
    return Span(min(low, value), max(high, value), log and min(low, value) > 0)


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _largest_of_unit(net: Network, values: Mapping[str, Any], unit: str) -> float:
    """The largest number of a unit in the scenario: the slider's end for a number that is 0."""
    pairs = ((info_at(net, p), v) for p, v in values.items() if isinstance(v, int | float))
    same = [v for i, v in pairs if i is not None and i.within is not None and i.unit == unit]
    return max(filter(math.isfinite, same), default=0.0) or 1.0
