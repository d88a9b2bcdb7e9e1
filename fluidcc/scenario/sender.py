"""Rules of the packet sender in a scenario."""

import dataclasses
from typing import Any

from fluidcc.laws.parameters import Info, Interval
from fluidcc.packets.options import SenderOptions
from fluidcc.scenario.reader import FAULTY, Reader, got, sound

SENDER_FIELDS = {f.name: f for f in dataclasses.fields(SenderOptions)}
"""The rules by name."""


def _info(field: dataclasses.Field) -> Info:
    meta = field.metadata
    low, high = meta["bounds"] or (0, 0)
    within = Interval(f"[{low!r}, {high!r}]") if meta["bounds"] else None
    return Info("", meta["unit"], meta["doc"], within, meta["choices"])


def _option(reader: Reader, raw: Any, key: str, field: dataclasses.Field) -> Any:
    value = reader.described(raw, key, _info(field), None)
    if field.type is not int or value is FAULTY:
        return value
    if not float(value).is_integer():
        return reader.fault(key, "a whole number", got(raw))
    return int(value)


def read_sender(reader: Reader, raw: Any, key: str) -> tuple[tuple[str, Any], ...]:
    """Rules of the packet sender, as pairs of name and value in the order of their names."""
    table = reader.table(raw, key)
    if table is FAULTY:
        return ()
    reader.unknown(table, key, SENDER_FIELDS)
    values = {
        name: _option(reader, table[name], f"{key}.{name}", field)
        for name, field in SENDER_FIELDS.items()
        if name in table
    }
    return tuple(sorted(sound(values).items()))
