"""What a page shows: a scenario by name, changes to it, and what it is looked at by.

A state is text, as it stands in an address; nothing of it is kept on the server. Only bundled
scenarios and the one file that the explorer was started with can be named.
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
"""The scenario of a page that names none, and of an explorer that was given none."""

_PARTS = ("links.", "flows.", "link.", "flow.", "model.")
_MOST_CHANGES = 200
_LONGEST = 200
"""Characters of one value."""


@dataclasses.dataclass(frozen=True)
class State:
    """A scenario's name, changes by path as text, and further options of the request."""

    scenario: str
    changes: Mapping[str, str]
    options: Mapping[str, str]


def parse(query: Iterable[tuple[str, str]]) -> State:
    """The state that an address tells.

    Raises ScenarioError for a key that is told twice, and for what is too long.
    """
    told: dict[str, str] = {}
    for key, value in query:
        if key in told:
            raise ScenarioError([Fault("address", key, "each key once", "it twice")])
        told[key] = value
    changes = {key: value for key, value in told.items() if key.startswith(_PARTS)}
    if len(changes) > _MOST_CHANGES:
        expected = f"at most {_MOST_CHANGES} changes"
        raise ScenarioError([Fault("address", "", expected, str(len(changes)))])
    for key, value in told.items():
        if len(value) > _LONGEST:
            expected = f"at most {_LONGEST} characters"
            raise ScenarioError([Fault("address", key, expected, str(len(value)))])
    options = {key: value for key, value in told.items() if key not in changes}
    return State(options.pop("scenario", ""), changes, options)


class Catalogue:
    """The scenarios that a page may choose from.

    Parameters
    ----------
    given
        A bundled scenario, or a file, which is read once; by its file name it is one of `names`.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or it is faulty.
    """

    def __init__(self, given: str | None = None) -> None:
        self._own: dict[str, Network] = {}
        self.start = given or START
        if given is not None and (given not in bundled.scenarios() or Path(given).is_file()):
            self.start = Path(given).name
            self._own[self.start] = load(given)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, the file's first."""
        return (*self._own, *bundled.scenarios())

    def titles(self) -> dict[str, str]:
        """The title of every scenario, by name."""
        return {name: net.title for name, net in self._own.items()} | bundled.titles()

    def network(self, name: str) -> Network:
        """The network of a scenario as it stands.

        Raises ScenarioError for any other name.
        """
        if name in self._own:
            return self._own[name]
        if name not in bundled.scenarios():
            close = nearest(name, self.names)
            expected = "one of the scenarios listed"
            raise ScenarioError([Fault("", "scenario", expected, repr(name), close)])
        return _bundled(name)

    def changed(self, state: State) -> tuple[Network, Network]:
        """The network of a state as it stands in the file, and with the changes.

        Raises ScenarioError with every fault there is.
        """
        base = self.network(state.scenario or self.start)
        return base, changed(base, state.changes)


def changed(net: Network, changes: Mapping[str, str]) -> Network:
    """The network with changes as text, such as ``10 Mbit/s``.

    Raises ScenarioError with every fault there is.
    """
    values: dict[str, Any] = {path: value_of(text) for path, text in changes.items()}
    return replace(net, values, where="") if values else net


@functools.cache
def _bundled(name: str) -> Network:
    return loads(bundled.scenarios()[name].read_text(encoding="utf-8"), where=name)
