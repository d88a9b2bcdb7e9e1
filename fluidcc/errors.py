"""Faults of scenarios, paths and options, collected so that all are told at once."""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: where it is (file or option), at which key, what was expected and what was got.

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
        place = ": ".join(part for part in (self.where, self.key) if part)
        hint = f"; did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""
        return f"{place}: expected {self.expected}, got {self.got}{hint}"


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
    """A sweep ended before all points were done; what is finished is kept, where it has a folder.

    The message says why, what is kept, and what to do; the same call goes on from there.

    Examples
    --------
    >>> import fluidcc as fc
    >>> issubclass(fc.SweepStopped, Exception)
    True
    """


def nearest(
    name: str, names: Sequence[str], count: int = 3, *, least: float = 0.6
) -> tuple[str, ...]:
    """The names most like `name`, the likest first; empty where none is alike by `least` of 1."""
    return tuple(difflib.get_close_matches(name, names, count, least))
