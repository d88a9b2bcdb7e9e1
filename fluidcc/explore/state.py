"""The state of a page: a scenario by name, changes to it, and options of the request.

A state is the text of an address; the server keeps none of it. Only bundled scenarios and the one
file that the explorer was started with can be named.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fluidcc import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.scenario.files import load, loads
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import value_of
from fluidcc.scenario.paths import replace

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
        return base, apply_changes(base, state.changes)


def apply_changes(net: Network, changes: Mapping[str, str]) -> Network:
    """The network with changes as text, such as ``10 Mbit/s``.

    Raises ScenarioError with all faults.
    """
    values: dict[str, Any] = {path: value_of(text) for path, text in changes.items()}
    return replace(net, values, where="") if values else net


@functools.cache
def _bundled(name: str) -> Network:
    return loads(bundled.scenarios()[name].read_text(encoding="utf-8"), where=name)
