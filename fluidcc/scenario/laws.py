"""Laws in a scenario: tables and names that become laws, read by the laws' own metadata."""

import contextlib
from collections.abc import Mapping
from typing import Any

from fluidcc.laws.law import Law
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.reader import FAULTY, Reader, described_fields, got, sound

Laws = Mapping[str, Mapping[str, type[Law]]]

PLANNED: Mapping[str, tuple[str, ...]] = {
    "window": ("sack", "becn", "bmcc"),
    "queue": ("adaptive_red", "blue", "load_factor", "modified_load_factor", "pi", "rem", "avq"),
    "feedback": ("receiver_window", "load_factor"),
}
"""Names of laws that are reserved for later."""

PLANNED_KEYS: Mapping[str, tuple[str, ...]] = {
    "window": (
        "block", "loss", "pause", "phi", "md", "rtt", "fallback", "needs_mark", "persistence",
    ),
    "queue": ("target", "trigger", "gamma", "hash", "stamp"),
    "links": (),
    "flows": ("estimator",),
}  # fmt: skip
"""Keys that are reserved for modelling choices of later laws."""


def read_name(reader: Reader, raw: Any, key: str, kind: str, laws: Laws = LAWS) -> Any:
    """A law without parameters, by its name."""
    name = reader.word(raw, key, laws[kind], PLANNED.get(kind, ()))
    if name is FAULTY:
        return FAULTY
    cls: Any = laws[kind][name]
    return cls()


def _law_class(reader: Reader, table: dict[str, Any], key: str, kind: str, laws: Laws) -> Any:
    if "law" not in table:
        listed = ", ".join(f'"{n}"' for n in laws[kind])
        return reader.fault(f"{key}.law", f"one of {listed}", "nothing")
    name = reader.word(table["law"], f"{key}.law", laws[kind], PLANNED.get(kind, ()))
    return FAULTY if name is FAULTY else laws[kind][name]


def read_law(
    reader: Reader,
    raw: Any,
    key: str,
    kind: str,
    *,
    packet_size: float | None,
    laws: Laws = LAWS,
    besides: tuple[str, ...] = (),
) -> Any:
    """The law of a table ``{ law = NAME, parameter = value, ... }``.

    Parameters
    ----------
    reader
        Where faults go.
    raw, key
        The table, and its key in the scenario.
    kind
        Key of `laws`: ``window`` or ``queue``.
    packet_size
        Bytes in a packet, for parameters given as sizes; None where it is not known.
    laws
        The laws by kind and name.
    besides
        Further keys of the table, which others read.
    """
    if not isinstance(raw, dict):
        return reader.fault(key, 'a table such as { law = "..." }', got(raw))
    cls = _law_class(reader, raw, key, kind, laws)
    if cls is FAULTY:
        return FAULTY
    fields = described_fields(cls)
    reader.unknown(raw, key, ["law", *fields, *besides], PLANNED_KEYS[kind])
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in raw:
            continue
        if name in laws:  # a law within a law, such as the spreading of RED
            values[name] = read_name(reader, raw[name], f"{key}.{name}", name, laws)
        else:
            info = field.metadata["info"]
            values[name] = reader.described(raw[name], f"{key}.{name}", info, packet_size)
    if len(sound(values)) < len(values):
        with contextlib.suppress(TypeError):  # a law that compares even what is no number
            reader.made(cls, key, values)  # those that could be read must fit together too
        return FAULTY
    return reader.made(cls, key, values)


def read_reaction(reader: Reader, raw: Any, key: str, window: Any, laws: Laws = LAWS) -> Any:
    """The reaction of a window table: its keys `reaction` and `growth`, or the law's own default.

    `raw` is the window table, `key` its key, and `window` the window law read from it.
    """
    if not isinstance(raw, dict):
        return FAULTY
    if "reaction" in raw:
        name = reader.word(raw["reaction"], f"{key}.reaction", laws["reaction"])
    else:
        name = FAULTY if window is FAULTY else window.reaction
    if name is FAULTY:
        return FAULTY
    cls: Any = laws["reaction"][name]
    if "growth" not in raw:
        return cls()
    fields = described_fields(cls)
    if "growth" not in fields:
        return reader.fault(f"{key}.growth", f"no such key with {name}", got(raw["growth"]))
    info = fields["growth"].metadata["info"]
    growth = reader.described(raw["growth"], f"{key}.growth", info, None)
    return FAULTY if growth is FAULTY else cls(growth=growth)
