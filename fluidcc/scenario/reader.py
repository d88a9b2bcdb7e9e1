"""Reading tables of a scenario: values that fit are kept, everything else becomes a fault."""

import datetime
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.laws.law import Law
from fluidcc.laws.parameters import Info, infos
from fluidcc.laws.registry import BASES as ADDABLE
from fluidcc.laws.registry import LAWS
from fluidcc.scenario import parsing

_NEEDS = re.compile(r"^\w+ needs ")  # how the message of a law begins
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: control characters
_FAULTS = 200  # most that are reported for one scenario
_LETTERS = 2000  # of a title
_ITEMS = 8  # most of a list in a message
_LARGEST = 1e100  # magnitude of a number, whose powers and inverses are to be numbers too
_BITS = 64  # of a whole number that is shown in full

Laws = Mapping[str, Mapping[str, type[Law]]]
"""Laws by kind and name."""

LABELS: Mapping[str, str] = {
    "window": "a window law",
    "reaction": "a reaction",
    "loss": "a loss closure",
    "feedback": "a feedback law",
    "queue": "a queue law",
    "marking": "a marking",
    "estimator": "an estimator",
    "traffic": "a kind of traffic",
}
"""Names, in messages, of the kinds of laws whose parameters stand in tables."""


class Faulty:
    """Stands for a value that could not be read; its fault is in the reader.

    Laws accept it, as they accept symbols, and check the other values.
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


class Outcome(NamedTuple):
    """A point of a grid by its changes: the status there, and the message."""

    set: Mapping[str, Any]
    status: str
    message: str

    def describe(self) -> str:
        """The point and the reason, in one line."""
        place = ", ".join(f"{path} = {got(value)}" for path, value in self.set.items())
        return f"{self.status} at {place}: {'; '.join(self.message.splitlines())}"


class Reader:
    """Reads values of one scenario and collects its faults, each with file and key.

    Parameters
    ----------
    where
        Name of the file, or of another origin, for messages.
    laws
        The laws that the scenario may name.
    """

    def __init__(self, where: str, laws: Laws = LAWS) -> None:
        self.where, self.laws = where, laws
        self.faults: list[Fault] = []

    def fault(self, key: str, expected: str, got: str, close: Iterable[str] = ()) -> Any:
        """Note a fault; raises ScenarioError at the limit of faults."""
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

    def unknown(self, raw: Mapping[str, Any], key: str, known: Iterable[str]) -> None:
        """Note every key of a table that is not among the known ones."""
        from fluidcc.scenario.keys import answer_to  # it knows what is read here

        names, (kind, *inner) = list(known), key.split(".")
        place = f"{kind}." if len(inner) == 1 else ""
        for name in (name for name in raw if name not in names):
            expected = answer_to(name, names, place)
            close = () if expected else nearest(name, names, 1)
            expected = expected or f"one of {', '.join(names) or 'nothing'}"
            self.fault(f"{key}.{name}" if key else name, expected, f"the key '{name}'", close)

    def missing(self, key: str, info: Info) -> Any:
        """Note that a required value is missing."""
        unit = f" [{info.unit}]" if info.unit not in ("", "1") else ""
        return self.fault(key, f"the {info.doc}{unit}", "nothing")

    def number(self, raw: Any, key: str, info: Info, packet_size: float | None = None) -> Any:
        """A quantity in the unit and range of `info`."""
        try:
            value = parsing.read(raw, info.unit, packet_size)
        except parsing.UnitError as error:
            expected, changes = str(error), 'schedule = [{ at = "20 s", capacity = ... }] of links'
            if isinstance(raw, list) and key.startswith("links."):
                expected = f"{expected}; changes in time are {changes}"
            return self.fault(key, expected, got(raw), error.nearest)
        if info.within is not None and value not in info.within:
            unit = f" {info.unit}" if info.unit not in ("", "1") else ""
            return self.fault(key, f"a value in {info.within}{unit}", got(raw))
        if _LARGEST < abs(value) < math.inf:
            return self.fault(key, f"a magnitude of at most {_LARGEST:g}, or inf", got(raw))
        if 0 < abs(value) < 1 / _LARGEST:
            return self.fault(key, f"a magnitude of at least {1 / _LARGEST:g}, or 0", got(raw))
        return value

    def word(
        self, raw: Any, key: str, options: Iterable[str], more: str = "", kind: str = ""
    ) -> Any:
        """One of a few words, perhaps the laws of a `kind`; `more` has further possibilities."""
        from fluidcc.scenario.keys import spelling_of  # it knows what is read here

        names = list(options)
        if isinstance(raw, str) and raw in names:
            return raw
        listed, close = ", ".join(f'"{n}"' for n in names), ()
        expected = f"one of {listed}{more}"
        if isinstance(raw, str):
            if kind and (spelling := spelling_of(raw, names, f"{kind}=")):
                expected = f"{spelling} ({expected})"
            else:
                close = nearest(raw, names, 1)
        return self.fault(key, expected, got(raw), close)

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

    def described(self, raw: Any, key: str, info: Info, packet_size: float | None = None) -> Any:
        """A value of a described field: a number, a word, or a yes/no."""
        if info.within is not None:
            return self.number(raw, key, info, packet_size)
        if info.choices:
            return self.word(raw, key, info.choices)
        return raw if isinstance(raw, bool) else self.fault(key, "true or false", got(raw))

    def fields(
        self, raw: Mapping[str, Any], key: str, described: Mapping[str, Info],
        packet_size: float | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The values of a table that are described, faulty ones as FAULTY; other keys are ignored.

        A field that is no number and named like a kind of laws is a law, such as RED's spreading.
        """
        values: dict[str, Any] = {}
        for name, info in described.items():
            if name in raw and name in self.laws and info.within is None:
                inner = self.law_named(raw[name], f"{key}.{name}", name)
                values[name] = FAULTY if inner is FAULTY else inner()
            elif name in raw:
                values[name] = self.described(raw[name], f"{key}.{name}", info, packet_size)
        return values

    def values(
        self, raw: Any, key: str, described: Mapping[str, Info], packet_size: float | None = None
    ) -> dict[str, Any]:
        """The values of a table that has nothing but described fields, faulty ones as FAULTY."""
        if self.table(raw, key) is FAULTY:
            return {}
        self.unknown(raw, key, described)
        return self.fields(raw, key, described, packet_size)

    def record(self, raw: Any, key: str, cls: Any, packet_size: float | None = None) -> Any:
        """An object of a class with described fields, or FAULTY."""
        if not isinstance(raw, dict):
            return self.table(raw, key)
        return self.made(cls, key, self.values(raw, key, infos(cls), packet_size))

    def made(self, cls: Any, key: str, values: Mapping[str, Any]) -> Any:
        """`cls` with these values, or FAULTY; its ValueError becomes a fault at `key`."""
        faulty = len(sound(values)) < len(values)
        try:  # readable values must fit together even if others are faulty
            found = cls(**values)
        except ValueError as error:
            expected, _, seen = _NEEDS.sub("", str(error)).partition(", got ")
            return self.fault(key, expected, seen or "values that do not fit together")
        except TypeError:
            if not faulty:  # raised by a law itself, not by FAULTY
                raise
            return FAULTY
        return FAULTY if faulty else found

    def law_named(self, raw: Any, key: str, kind: str) -> Any:
        """The class of the law of this name, or FAULTY."""
        more = ", or a law that is added (--law-file FILE)" if kind in ADDABLE else ""
        name = self.word(raw, key, self.laws[kind], more, kind)
        return FAULTY if name is FAULTY else self.laws[kind][name]

    def law_of(self, table: Mapping[str, Any], key: str, kind: str) -> Any:
        """The class of the law that a table names by `law`, or FAULTY."""
        if "law" in table:
            return self.law_named(table["law"], f"{key}.law", kind)
        listed = ", ".join(f'"{n}"' for n in self.laws[kind])
        return self.fault(f"{key}.law", f"one of {listed}", "nothing")

    def check_keys(
        self, raw: Mapping[str, Any], key: str, chosen: Mapping[str, Any], *named: str
    ) -> None:
        """Note keys of a table that no chosen law has, and name the laws that have them.

        `chosen` are the laws by kind, the table's own first; `named` keys name some of them.
        """
        known = ["law", *named]
        for kind, law in chosen.items():
            for cls in self.laws[kind].values() if law is FAULTY else (law,):
                known += [name for name in infos(cls) if name not in known]
        for name, value in raw.items():
            if name in known:
                continue
            for kind, law in chosen.items():
                owners = [owner for owner, cls in self.laws[kind].items() if name in infos(cls)]
                if owners:
                    having = f"{LABELS[kind]} that has it ({', '.join(owners)}), not {law.name}"
                    self.fault(f"{key}.{name}", having, got(value))
                    break
            else:
                self.unknown({name: value}, key, known)

    def law(self, raw: Any, key: str, kind: str, packet_size: float | None) -> Any:
        """The law of a table ``{ law = NAME, parameter = value, ... }``, or FAULTY.

        `packet_size` [B] is for parameters given as sizes; None if it is not known.
        """
        cls = self.law_of(raw, key, kind)
        if cls is FAULTY:
            return FAULTY
        self.check_keys(raw, key, {kind: cls})
        return self.made(cls, key, self.fields(raw, key, infos(cls), packet_size))

    def law_or_name(self, raw: Any, key: str, kind: str, packet_size: float | None) -> Any:
        """The law of a table as in `law`, or of a name alone, with its defaults."""
        if isinstance(raw, dict):
            return self.law(raw, key, kind, packet_size)
        cls = self.law_named(raw, key, kind)
        return FAULTY if cls is FAULTY else cls()


def sound(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that could be read."""
    return {name: value for name, value in values.items() if value is not FAULTY}
