"""Reading tables of a scenario: values that fit are kept, everything else becomes a fault."""

import dataclasses
import datetime
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.laws.parameters import Info
from fluidcc.scenario import units

_NEEDS = re.compile(r"^\w+ needs ")  # how a law opens its complaint
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: they steer what shows a text
_FAULTS = 200  # that are told of one scenario
_LETTERS = 2000  # of a title
_ITEMS = 8  # of a list that are shown
_LARGEST = 1e100  # magnitude of a number, whose powers and inverses are to be numbers too
_BITS = 64  # of a whole number that is shown in full

NOT_YET: Final = "a model that this version has (planned, not available yet)"


class Faulty:
    """Stands for a value that could not be read; its fault is in the reader.

    Laws let it pass, as they let symbols pass, and judge the values beside it.
    """


FAULTY: Final[Any] = Faulty()


def got(value: Any) -> str:
    """The user's value as it would stand in the file."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        inside = ["a list" if isinstance(v, list) else got(v) for v in value[:_ITEMS]]
        inside += [f"... ({len(value)} in all)"] if len(value) > _ITEMS else []
        return f"[{', '.join(inside)}]"
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return "nothing" if value is None else repr(value)


def failed_at(changes: Mapping[str, Any], message: str) -> str:
    """Where a point of a grid failed and why, in one line."""
    place = ", ".join(f"{path} = {got(value)}" for path, value in changes.items())
    return f"failed at {place}: {'; '.join(message.splitlines())}"


class Reader:
    """Reads values of one scenario and collects its faults, each with file and key."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.faults: list[Fault] = []

    def fault(self, key: str, expected: str, got: str, close: Iterable[str] = ()) -> Any:
        """Note a fault; ScenarioError where there are more than anybody reads."""
        self.faults.append(Fault(self.where, key, expected, got, tuple(close)))
        if len(self.faults) == _FAULTS:
            self.faults.append(Fault(self.where, "", f"fewer than {_FAULTS} faults", "more"))
            self.finish()
        return FAULTY

    def finish(self) -> None:
        """Raise ScenarioError if there is any fault."""
        if self.faults:
            raise ScenarioError(self.faults)

    def table(self, raw: Any, key: str) -> Any:
        """A table."""
        return raw if isinstance(raw, dict) else self.fault(key, "a table", got(raw))

    def unknown(
        self, raw: Mapping[str, Any], key: str, known: Iterable[str], reserved: Iterable[str] = ()
    ) -> None:
        """Note every key of a table that is not among the known ones."""
        names = list(known)
        for name in raw:
            path = f"{key}.{name}" if key else name
            if name in names:
                continue
            if name in reserved:
                self.fault(path, NOT_YET, got(raw[name]))
            else:
                listed = ", ".join(names) or "nothing"
                self.fault(path, f"one of {listed}", f"the key '{name}'", nearest(name, names, 1))

    def missing(self, key: str, info: Info) -> Any:
        """Note that a required value is missing."""
        unit = f" [{info.unit}]" if info.unit not in ("", "1") else ""
        return self.fault(key, f"the {info.doc}{unit}", "nothing")

    def number(self, raw: Any, key: str, info: Info, packet_size: float | None = None) -> Any:
        """A quantity in the unit and range of `info`."""
        try:
            value = units.read(raw, info.unit, packet_size)
        except units.UnitError as error:
            return self.fault(key, str(error), got(raw), error.nearest)
        if info.within is not None and value not in info.within:
            unit = f" {info.unit}" if info.unit not in ("", "1") else ""
            return self.fault(key, f"a value in {info.within}{unit}", got(raw))
        if _LARGEST < abs(value) < math.inf:
            return self.fault(key, f"a magnitude of at most {_LARGEST:g}, or inf", got(raw))
        if 0 < abs(value) < 1 / _LARGEST:
            return self.fault(key, f"a magnitude of at least {1 / _LARGEST:g}, or 0", got(raw))
        return value

    def word(self, raw: Any, key: str, options: Iterable[str], more: str = "") -> Any:
        """One of a few words; `more` tells what else there could be."""
        names = list(options)
        if isinstance(raw, str) and raw in names:
            return raw
        close = nearest(raw, names, 1) if isinstance(raw, str) else ()
        listed = ", ".join(f'"{n}"' for n in names)
        return self.fault(key, f"one of {listed}{more}", got(raw), close)

    def flag(self, raw: Any, key: str) -> Any:
        """A yes or no."""
        if isinstance(raw, bool):
            return raw
        return self.fault(key, "true or false", got(raw))

    def text(self, raw: Any, key: str) -> str:
        """A text that can be printed in one line."""
        if not isinstance(raw, str):
            self.fault(key, "text", got(raw))
        elif len(raw) > _LETTERS or any(unicodedata.category(c) in _UNSEEN for c in raw):
            expected = f"text of at most {_LETTERS} characters, without control characters or lines"
            self.fault(key, expected, got(raw))
        else:
            return raw
        return ""

    def numbers(
        self, raw: Any, key: str, infos: Mapping[str, Info], packet_size: float | None = None
    ) -> dict[str, Any]:
        """The values of a table of described fields; faulty ones and unknown keys are left out."""
        if self.table(raw, key) is FAULTY:
            return {}
        self.unknown(raw, key, infos)
        out = {
            name: self.described(raw[name], f"{key}.{name}", info, packet_size)
            for name, info in infos.items()
            if name in raw
        }
        return sound(out)

    def described(self, raw: Any, key: str, info: Info, packet_size: float | None) -> Any:
        """A value of a described field: a number, a word, or a yes/no."""
        if info.within is not None:
            return self.number(raw, key, info, packet_size)
        return self.word(raw, key, info.choices) if info.choices else self.flag(raw, key)

    def made(self, make: Any, key: str, values: dict[str, Any]) -> Any:
        """`make(**values)`; what it refuses becomes a fault at `key`."""
        try:
            return make(**values)
        except ValueError as error:
            expected, _, seen = _NEEDS.sub("", str(error)).partition(", got ")
            return self.fault(key, expected, seen or "values that do not fit together")


def sound(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that could be read."""
    return {name: value for name, value in values.items() if value is not FAULTY}


def described_fields(cls: Any) -> dict[str, dataclasses.Field]:
    """Fields of a class with a description, by name."""
    return {f.name: f for f in dataclasses.fields(cls) if "info" in f.metadata}
