"""Rules of the packet sender in a scenario."""

import dataclasses
from typing import Any

from fluidcc.errors import nearest
from fluidcc.scenario import units
from fluidcc.scenario.reader import FAULTY, Reader, got, sound
from fluidcc.scenario.sender_options import as_kept, expected, fields

SENDER_FIELDS = fields()
"""The rules by name."""


def _option(reader: Reader, raw: Any, key: str, field: dataclasses.Field) -> Any:
    value = raw
    if field.metadata["bounds"]:
        try:
            value = units.read(raw, field.metadata["unit"])
        except units.UnitError as error:
            return reader.fault(key, str(error), got(raw), error.nearest)
    needed = expected(field, value)
    if needed:
        words = field.metadata["choices"] if isinstance(raw, str) else ()
        return reader.fault(key, needed, got(raw), nearest(str(raw), words, 1))
    return as_kept(field, value)


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
