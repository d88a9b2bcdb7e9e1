"""Faults of scenarios, paths and options, collected so that one error reports them all; and missing
optional dependencies.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

_LONGEST = 200  # characters of a name or value in a message
_LISTED = 1500  # characters of the expected form, which may list names
_COMPARED = 100  # characters of a name that is looked up among others


def shown(text: str, most: int = _LONGEST) -> str:
    """Text of any origin for a message: in one line, without control characters, not too long."""
    if len(text) > most:
        text = f"{text[: most - 40]} ... ({len(text)} characters)"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def with_type(value: object) -> str:
    """A value of a wrong type, for messages."""
    return f"{value!r:.60} ({type(value).__name__})"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: where it is (file or option), at which key, the expected form and the given value.

    Examples
    --------
    >>> import fluidcc as fc
    >>> try:
    ...     fc.replace(fc.load("hollot2001/slow"), {"link.queue.wq": 0.1})
    ... except fc.ScenarioError as error:
    ...     fault = error.faults[0]
    >>> fault.key, fault.nearest[0]
    ('link.queue.wq', 'link.queue.w_q')
    """

    where: str
    key: str
    expected: str
    got: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        where, expected, got = self._shown()
        hint = f"; did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""
        return f"{where}: expected {expected}, got {got}{hint}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the whole text as `message`; `where` has the key."""
        where, expected, got = self._shown()
        named = {"where": where, "expected": expected, "got": got, "nearest": list(self.nearest)}
        return {"message": str(self), **named}

    def _shown(self) -> tuple[str, str, str]:
        where = ": ".join(shown(part) for part in (self.where, self.key) if part)
        return where, shown(self.expected, _LISTED), shown(self.got)


class ScenarioError(ValueError):
    """A scenario, a path or an option is faulty; `faults` has every fault, `str()` lists them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> try:
    ...     fc.replace(fc.load("hollot2001/slow"), {"link.queue.p_max": 2})
    ... except fc.ScenarioError as error:
    ...     print(error)
    replace: links.bottleneck.queue.p_max: expected a value in (0, 1], got 2
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class SweepStopped(RuntimeError):
    """A sweep ended before all points were done; finished points are kept if it has a folder.

    The message gives the reason, the points kept and the remedy; the same call resumes there.

    Examples
    --------
    >>> import fluidcc as fc
    >>> issubclass(fc.SweepStopped, Exception)
    True
    """


def nearest(
    name: str, names: Sequence[str], count: int = 3, *, least: float = 0.6
) -> tuple[str, ...]:
    """The names most similar to `name`, best first; empty if none has a similarity of `least`.

    Similarity runs from 0 to 1; case is ignored.
    """
    folded: dict[str, str] = {}
    for each in sorted(names, key=lambda each: each[:1].isupper() != name[:1].isupper()):
        folded.setdefault(each.casefold(), each)
    asked = name[:_COMPARED].casefold()
    return tuple(folded[f] for f in difflib.get_close_matches(asked, folded, count, least))


class MissingExtra(ValueError):
    """A feature needs a package that is not installed."""


def extra(module: str, name: str, *, what: str) -> ModuleType:
    """Import a module that the extra `name` installs.

    Raises MissingExtra with the install command; `what` names the feature that needs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"{what} needs {module}: pip install 'fluidcc[{name}]'") from None
