"""Laws in a scenario: tables and names that become laws, read by the laws' own metadata."""

import contextlib
from collections.abc import Mapping
from typing import Any

from fluidcc.laws.addable import BASES as ADDABLE
from fluidcc.laws.law import Law
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.reader import FAULTY, Reader, described_fields, got, sound

Laws = Mapping[str, Mapping[str, type[Law]]]

PLANNED_KEYS: Mapping[str, tuple[str, ...]] = {
    "window": ("phi", "rtt"),
    "queue": ("hash", "stamp"),
}
"""Keys of law tables that are reserved for modelling choices of later versions."""


_LABELS = {
    "queue": "a queue law",
    "marking": "a marking",
    "estimator": "an estimator",
    "traffic": "a kind of traffic",
}


def owners_of(name: str, kind: str, laws: Laws) -> list[str]:
    """Laws of a kind that have a parameter of this name."""
    return [law for law, cls in laws[kind].items() if name in described_fields(cls)]


def law_named(reader: Reader, raw: Any, key: str, kind: str, laws: Laws) -> Any:
    """The class of the law of this name, or FAULTY."""
    more = ", or a law that is added (--law-file FILE)" if kind in ADDABLE else ""
    name = reader.word(raw, key, laws[kind], more)
    return FAULTY if name is FAULTY else laws[kind][name]


def law_of(reader: Reader, table: Mapping[str, Any], key: str, kind: str, laws: Laws) -> Any:
    """The class of the law that a table names by `law`, or FAULTY."""
    if "law" in table:
        return law_named(reader, table["law"], f"{key}.law", kind, laws)
    listed = ", ".join(f'"{n}"' for n in laws[kind])
    return reader.fault(f"{key}.law", f"one of {listed}", "nothing")


def read_fields(
    reader: Reader,
    raw: Mapping[str, Any],
    key: str,
    cls: Any,
    *,
    packet_size: float | None,
    laws: Laws,
) -> dict[str, Any]:
    """The values of a table that are described fields of `cls`, faulty ones as FAULTY."""
    values: dict[str, Any] = {}
    for name, field in described_fields(cls).items():
        if name not in raw:
            continue
        if name in laws:  # a law within a law, such as the spreading of RED
            inner = law_named(reader, raw[name], f"{key}.{name}", name, laws)
            values[name] = FAULTY if inner is FAULTY else inner()
        else:
            info = field.metadata["info"]
            values[name] = reader.described(raw[name], f"{key}.{name}", info, packet_size)
    return values


def make(reader: Reader, cls: Any, key: str, values: dict[str, Any]) -> Any:
    """`cls` with these values, or FAULTY."""
    if len(sound(values)) == len(values):
        return reader.made(cls, key, values)
    with contextlib.suppress(TypeError):  # of one that compares even what is no number
        reader.made(cls, key, values)  # those that could be read must fit together too
    return FAULTY


def read_law(
    reader: Reader, raw: Any, key: str, kind: str, *, packet_size: float | None, laws: Laws = LAWS
) -> Any:
    """The law of a table ``{ law = NAME, parameter = value, ... }``.

    Parameters
    ----------
    reader
        Where faults go.
    raw, key
        The table, and its key in the scenario.
    kind
        Key of `laws`, such as ``queue``.
    packet_size
        Bytes in a packet, for parameters given as sizes; None where it is not known.
    laws
        The laws by kind and name.
    """
    if not isinstance(raw, dict):
        return reader.fault(key, 'a table such as { law = "..." }', got(raw))
    cls = law_of(reader, raw, key, kind, laws)
    if cls is FAULTY:
        return FAULTY
    known = ["law", *described_fields(cls)]
    others = {n: owners_of(n, kind, laws) for n in raw if n not in known}
    for name, owners in others.items():
        if owners:
            expected = f"{_LABELS[kind]} that has it ({', '.join(owners)}), not {cls.name}"
            reader.fault(f"{key}.{name}", expected, got(raw[name]))
    unknown = {name: raw[name] for name, owners in others.items() if not owners}
    reader.unknown(unknown, key, known, PLANNED_KEYS.get(kind, ()))
    values = read_fields(reader, raw, key, cls, packet_size=packet_size, laws=laws)
    return make(reader, cls, key, values)


def read_name_or_table(
    reader: Reader, raw: Any, key: str, kind: str, *, packet_size: float | None, laws: Laws = LAWS
) -> Any:
    """The law of a name alone, with its defaults, or of a table as in `read_law`."""
    if isinstance(raw, dict):
        return read_law(reader, raw, key, kind, packet_size=packet_size, laws=laws)
    cls = law_named(reader, raw, key, kind, laws)
    return FAULTY if cls is FAULTY else cls()
