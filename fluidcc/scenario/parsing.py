"""Text from people: numbers with units, TOML, and values typed on a command line or in a URL.

Numbers are SI with packets inside, in any usual unit at the edge. Text is limited in size. Faults
of typed values are collected.
"""

import math
import re
import tomllib
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, overload

from fluidcc.errors import Fault, ScenarioError, nearest, ours, shown
from fluidcc.folders import LARGEST

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
_SPELT_BITS = re.compile(r"([kKmMgG])(?:b|[bB]its?)?(?:/s|ps)?")
"""Rates in bits by the letters of others."""
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
    if not _BARE.fullmatch(pointed):
        return ()
    return (f"{pointed} {unit}",) if unit in _UNITS else (pointed,) if unit in ("", "1") else ()


def _spelt(name: str, fitting: Sequence[str]) -> tuple[str, ...]:
    """The unit among the `fitting` that others spell in another way, else the nearest one."""
    found = [*ours("units").get(name.casefold(), ())]
    if bits := _SPELT_BITS.fullmatch(name):
        prefix = {"k": "k", "m": "M", "g": "G"}[bits[1].casefold()]
        found += [f"{prefix}bit/s", f"{prefix}bit"]
    return tuple(unit for unit in found if unit in fitting)[:1] or nearest(name, fitting, 1)


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
        raise UnitError(kind(unit), _close(value, unit) or _spelt(name, fitting))
    base, factor = _UNITS[name]
    if base == unit:
        return _float(number * factor, unit)
    size = Fraction(1, 8) if unit == "bit/s" else packet_size
    if base == _MADE_FROM.get(unit) and size is not None:
        return _float(number * factor / Fraction(size), unit)
    raise UnitError(kind(unit))


@overload
def in_seconds(name: str, value: float | str) -> float: ...
@overload
def in_seconds(name: str, value: float | str | None) -> float | None: ...
def in_seconds(name: str, value: float | str | None) -> float | None:
    """A time in seconds from text such as ``"500 ms"``; what is no text stays as it is.

    Raises ScenarioError, with the `name` of the argument, for text that is no time.
    """
    if not isinstance(value, str):
        return value
    try:
        return read(value, "s")
    except UnitError as error:
        raise ScenarioError([Fault(name, "", str(error), f"{value!r}", error.nearest)]) from None


_PLACE = re.compile(r"^(.*) \(at (.*)\)$", re.DOTALL)
_LINE = re.compile(r"^line (\d+), ")
_DEEP = re.compile(  # the parser takes the square of their number, or more
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){31}"""
)
_SHOWN = 60  # characters of a faulty line
_HINTS = (  # pattern of a line that is no TOML, and the remedy
    (re.compile(r"^\s*[{]"), "TOML, such as `capacity = 1250`, not JSON"),
    (re.compile(r"^\s*[\w.-]+\s*:"), "TOML, such as `capacity = 1250`, not YAML"),
    (re.compile(r"=\s*[-+]?\d+,\d"), "TOML, with a point in numbers, such as `0.08`"),
    (
        re.compile(r"=\s*[-+]?[\d.]+\s*[A-Za-z%]"),
        'TOML, with quantities in quotes, such as `"10 Mbit/s"`',
    ),
    (re.compile(r"=\s*[A-Za-z]"), 'TOML, with words in quotes, such as `"red"`'),
)


def parsed(text: str, where: str) -> dict[str, Any]:
    """The tables of scenario text.

    Raises ScenarioError with the place and the line that is no TOML.
    """
    if len(text) > LARGEST:
        expected = f"at most {LARGEST} characters"
        raise ScenarioError([Fault(where, "", expected, f"{len(text)}")])
    if _DEEP.search(text):
        raise ScenarioError([Fault(where, "", "TOML", "names with more than 30 dots")])
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")  # a byte-order mark
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.match(str(error))
        what, place = match.groups() if match else (str(error), "")
        raise ScenarioError([_fault(text, where, what, place)]) from None
    except RecursionError:
        what = "lists or tables nested too deeply"
    except ValueError:
        what = "a number of thousands of digits"
    raise ScenarioError([Fault(where, "", "TOML", what)])


def _fault(text: str, where: str, what: str, place: str) -> Fault:
    """A fault with its line, and the usual remedy for such lines."""
    number = _LINE.match(place)
    lines = re.split(r"\r?\n", text)
    line = lines[int(number[1]) - 1].strip() if number and int(number[1]) <= len(lines) else ""
    if not line:
        return Fault(where, place, "TOML", f"a fault ({what})")
    expected = next((hint for form, hint in _HINTS if form.search(line)), "TOML")
    return Fault(where, place, expected, f"`{shown(line, _SHOWN)}` ({what})")


_COUNTED = 1_000_000  # seeds, trials, starts and the like


class Faults:
    """Collects the faults of typed values, to report all of them in one error."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(
        self, option: str, key: str, expected: str, got: str, close: tuple[str, ...] = ()
    ) -> None:
        """Note a fault of an option."""
        self.found.append(Fault(option, key, expected, got, close))

    def catch(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Result of the call; if it raises ScenarioError, None, and its faults are kept."""
        try:
            return call(*args, **options)
        except ScenarioError as error:
            self.found += error.faults
            return None

    def finish(self) -> None:
        """Raise ScenarioError if there is any fault."""
        if self.found:
            raise ScenarioError(self.found)


def value_of(text: str) -> Any:
    """A value as typed: a number, a list, a table or a yes/no as in TOML; otherwise text.

    Numbers may be written as in Python too, such as ``.5``.
    """
    try:
        read = parsed(f"value = {text}", "")
    except ScenarioError:
        bare = text.strip()
        return float(bare) if NUMBER.fullmatch(bare) else bare
    return read["value"] if len(read) == 1 else text.strip()


def seconds(option: str, text: str, faults: Faults, *, within: str = "(0, inf)") -> float:
    """A time such as ``60`` or ``500 ms`` [s]; 0 if it is faulty."""
    from fluidcc.laws.parameters import Interval

    try:
        value = read(value_of(text), "s")
    except UnitError as error:
        faults.add(option, "", str(error), f"{text!r}", error.nearest)
        return 0.0
    if value not in Interval(within):
        faults.add(option, "", f"a time in {within} s", f"{text!r}")
        return 0.0
    return value


def count(option: str, text: str, faults: Faults, *, least: int = 1, most: int = _COUNTED) -> int:
    """A whole number from `least` to `most`; `least` if it is faulty."""
    typed = text.strip()
    digits = typed.lstrip("0") or typed[:1]
    if digits.isdecimal() and len(digits) <= len(str(most)) and least <= int(digits) <= most:
        return int(digits)
    faults.add(option, "", f"a whole number of at least {least} and at most {most}", f"{text!r}")
    return least


def share(option: str, text: str, faults: Faults) -> float:
    """A number between 0 and 1; 0.5 if it is faulty."""
    try:
        if 0 < float(text) < 1:
            return float(text)
    except ValueError:
        pass
    faults.add(option, "", "a number between 0 and 1", f"{text!r}")
    return 0.5
