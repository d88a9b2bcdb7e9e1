"""Numbers with units in text, and back: SI with packets inside, any usual unit at the edge."""

import math
import re
from fractions import Fraction
from typing import Any

from fluidcc.errors import nearest

_DIGITS = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_TEXT = re.compile(rf"^\s*({_DIGITS}(?:[eE][-+]?\d{{1,3}})?)\s*(\S.*?)\s*$")
_BARE = re.compile(_DIGITS)
NUMBER = re.compile(rf"{_DIGITS}(?:[eE][-+]?\d+)?", re.ASCII)
"""A number without a unit, as people write it."""

_LONGEST = 100  # characters of a quantity
_COMMA = re.compile(r"(\d),(\d)")  # decimal comma

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_TIMES = {
    "s": Fraction(1), "ms": Fraction(1, 1000), "us": Fraction(1, 10**6),
    "\N{MICRO SIGN}s": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "min": Fraction(60),
    "h": Fraction(3600),
}  # fmt: skip
_BITS = {f"{prefix}bit": Fraction(size, 8) for prefix, size in _DECIMAL.items()}
_SIZES = {
    **{f"{prefix}B": Fraction(size) for prefix, size in (_DECIMAL | _BINARY).items()},
    **dict.fromkeys(("byte", "bytes"), Fraction(1)),
    **_BITS,
}
_PACKETS = dict.fromkeys(("packet", "packets", "pkt", "pkts"), Fraction(1))
_UNITS: dict[str, tuple[str, Fraction]] = {
    **{name: ("s", factor) for name, factor in _TIMES.items()},
    **{name: ("B", factor) for name, factor in _SIZES.items()},
    **{name: ("packet", factor) for name, factor in _PACKETS.items()},
    **{f"{name}/s": ("B/s", factor) for name, factor in _SIZES.items()},
    **{f"{name}/s": ("packet/s", factor) for name, factor in _PACKETS.items()},
    **{name.replace("bit", "bps"): ("B/s", factor) for name, factor in _BITS.items()},
    "%": ("1", Fraction(1, 100)),
}
_MADE_FROM = {"packet": "B", "packet/s": "B/s", "bit/s": "B/s"}
_EXAMPLES = {
    "s": '"88 ms"',
    "B": '"1000 B"',
    "packet": '"150 packet" or "90 kB"',
    "packet/s": '"1250 packet/s" or "10 Mbit/s"',
    "bit/s": '"64 kbit/s"',
}


class UnitError(ValueError):
    """Text that is no quantity of the unit asked for; the message describes the expected form."""

    def __init__(self, expected: str, close: tuple[str, ...] = ()) -> None:
        super().__init__(expected)
        self.nearest = close


def kind(unit: str) -> str:
    """How a quantity of this unit is written, for messages."""
    plain = "a number" if unit in ("", "1") else f"a number in {unit}"
    return f"{plain}, or text such as {_EXAMPLES[unit]}" if unit in _EXAMPLES else plain


def _float(value: float | Fraction, unit: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise UnitError(kind(unit)) from None


def _close(text: str, unit: str) -> tuple[str, ...]:
    """Suggested correction of a number with a comma, or of a bare one in quotes."""
    if len(text) > _LONGEST:
        return ()
    pointed = _COMMA.sub(r"\1.\2", text.strip())
    if pointed != text.strip() and pointed.count(".") == 1:
        return (pointed,)
    return (f"{pointed} {unit}",) if _BARE.fullmatch(pointed) and unit in _UNITS else ()


def read(value: Any, unit: str, packet_size: float | None = None) -> float:
    """A quantity in `unit` from a plain number, or from text such as ``"10 Mbit/s"`` or ``"inf"``.

    Parameters
    ----------
    value
        Number in `unit`, or text with a unit.
    unit
        ``s``, ``B``, ``packet``, ``packet/s``, ``bit/s`` or ``1``.
    packet_size
        Bytes in a packet, by which sizes and bit rates become packets.

    Raises
    ------
    UnitError
        If it is neither, or its unit does not fit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return _float(value, unit)
    if not isinstance(value, str):
        raise UnitError(kind(unit))
    if value.strip() in ("inf", "+inf"):
        return math.inf
    match = _TEXT.match(value) if len(value) <= _LONGEST else None
    if not match:
        raise UnitError(kind(unit), _close(value, unit))
    number, name = Fraction(match[1]), match[2]
    if name not in _UNITS:
        fitting = [u for u, (base, _) in _UNITS.items() if base in (unit, _MADE_FROM.get(unit))]
        raise UnitError(kind(unit), _close(value, unit) or nearest(name, fitting, 1))
    base, factor = _UNITS[name]
    if base == unit:
        return _float(number * factor, unit)
    size = Fraction(1, 8) if unit == "bit/s" else packet_size
    if base == _MADE_FROM.get(unit) and size is not None:
        return _float(number * factor / Fraction(size), unit)
    raise UnitError(kind(unit))
