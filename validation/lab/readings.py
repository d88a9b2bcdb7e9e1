"""What the papers leave open, how it may be read, and the joint reading of each paper.

``validation/readings.toml`` has the questions of each paper, the readings that answer them, and the
statements of the paper on its set-up that each of them departs from. The rule looks at no result:
of each question that reading is taken with the fewest departures, and what stands in the scenario
files where others have as few. Together these are the joint reading.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fluidcc.bundled import bundled

DEFAULT = "default"
"""What stands in the scenario files."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """One answer to a question: what it means, and the statements that it departs from."""

    name: str
    means: str
    departs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Question:
    """What a paper leaves open, where, and its readings; the default comes first."""

    name: str
    asks: str
    where: str
    readings: tuple[Reading, ...]

    @property
    def chosen(self) -> Reading:
        """The reading with the fewest departures; the first of those with as few."""
        return min(self.readings, key=lambda reading: len(reading.departs))


@functools.cache
def _tables() -> Mapping[str, Any]:
    text = (bundled("validation") / "readings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def questions(paper: str) -> Mapping[str, Question]:
    """The questions that a paper leaves open, by name."""
    return MappingProxyType({
        name: Question(name, table["question"], table["where"], tuple(
            Reading(own, table["options"][own]["means"], tuple(table["options"][own]["departs"]))
            for own in (DEFAULT, *(o for o in table["options"] if o != DEFAULT))
        ))
        for name, table in _tables().get(paper, {}).items()
    })  # fmt: skip


@functools.cache
def readings(paper: str) -> Mapping[str, Reading]:
    """The readings of a paper by name, without the defaults."""
    found = (reading for each in questions(paper).values() for reading in each.readings)
    return MappingProxyType({own.name: own for own in found if own.name != DEFAULT})


def meaning(paper: str, name: str) -> str:
    """What a reading means, or several that are joined by ``+``."""
    if name == DEFAULT:
        return "as in the scenario files"
    return " and ".join(readings(paper)[own].means for own in name.split("+"))


def joint(paper: str) -> tuple[str, ...]:
    """The readings, other than defaults, that the joint reading of a paper consists of."""
    chosen = (question.chosen.name for question in questions(paper).values())
    return tuple(name for name in chosen if name != DEFAULT)
