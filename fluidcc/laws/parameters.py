"""Parameters and states of laws: default, symbol, unit, meaning and range as they are declared."""

import collections
import dataclasses
import functools
import math
import re
from typing import Any

from fluidcc.module import static
from fluidcc.ops import Num

ENGINES = ("fluid", "population", "trains", "packets")
"""What answers from a scenario: the fluid model of mean windows (equilibria, loops, trajectories),
the population with its noise, trains of packets, and the packet simulator."""
EVENTS = ENGINES[2:]
"""Engines with single packets or trains of them."""

_INTERVAL = re.compile(r"^([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])$")


@dataclasses.dataclass(frozen=True)
class Interval:
    """A range of real numbers in the usual notation, such as ``(0, 1]`` or ``[1, inf]``."""

    text: str

    def __post_init__(self) -> None:
        """Refuse text that is no interval."""
        if not _INTERVAL.match(self.text):
            raise ValueError(f"expected an interval such as '(0, 1]', got {self.text!r}")

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end."""
        _, low, high, _ = _INTERVAL.match(self.text).groups()  # type: ignore[union-attr]
        return float(low), float(high)

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return all(map(math.isfinite, self.ends))

    def __contains__(self, value: float) -> bool:
        (low, high), above, below = self.ends, self.text[0] == "[", self.text[-1] == "]"
        if math.isnan(value):
            return False
        return (low < value or (above and value == low)) and (
            value < high or (below and value == high)
        )

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Info:
    """Description of a parameter: LaTeX symbol, unit, meaning, range (None: a choice), and the
    engines that use it (empty: all of `ENGINES`, or of those that its table is for).
    """

    symbol: str
    unit: str
    doc: str
    within: Interval | None = None
    choices: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """What it is, with the engines that use it if others ignore it."""
        return f"{self.doc} ({', '.join(self.engines)})" if self.engines else self.doc

    @property
    def words(self) -> tuple[str, ...]:
        """Values of a choice, as they are typed; empty for a number."""
        return () if self.within is not None else self.choices or ("true", "false")


def param(
    default: Any = dataclasses.MISSING,
    symbol: str = "",
    *,
    unit: str,
    doc: str,
    within: str,
    engines: tuple[str, ...] = (),
) -> Any:
    """Field of a law or a network with a number: its default, symbol, unit, meaning and range.

    `engines` are those of `ENGINES` that use it, if others ignore it.
    """
    info = Info(symbol, unit, doc, Interval(within), engines=engines)
    return dataclasses.field(default=default, metadata={"info": info})


def choice(default: str | bool, *options: str, doc: str, engines: tuple[str, ...] = ()) -> Any:
    """Field with one of a few words, or a yes/no if no options are given; part of the model's
    structure, so that changing it compiles anew.
    """
    return static(default, info=Info("", "", doc, None, options, engines))


@dataclasses.dataclass(frozen=True)
class StateField:
    """A number that a law remembers, as `state` declares it."""

    start: float | str
    info: Info
    stops: bool
    when: str

    @property
    def is_share(self) -> bool:
        """Whether it is a probability or a share."""
        return self.info.within is not None and self.info.within.ends == (0.0, 1.0)


def state(
    start: float | str,
    symbol: str,
    *,
    unit: str,
    doc: str = "",
    within: str = "(-inf, inf)",
    stops: bool = False,
    when: str = "",
) -> Any:
    """Declare a number that a law remembers, as a class attribute: ``p = state(0.0, "p", ...)``.

    Parameters
    ----------
    start
        Where it starts: a number, the name of a parameter of the law, or, of a queue law,
        "average" for the average queue that a scenario starts from.
    symbol, unit, doc, within
        LaTeX symbol, unit, meaning, and the range that the rules keep it in.
    stops
        Arrivals move it up to the ends of its range and no further, whatever `on_arrival` returns.
    when
        Name of a yes/no parameter; the law remembers the number only if that is true.
    """
    return StateField(start, Info(symbol, unit, doc, Interval(within)), stops, when)


@functools.cache
def states(law: type) -> dict[str, StateField]:
    """The declared state fields of a class of laws by name, those of its bases first."""
    found: dict[str, StateField] = {}
    for base in reversed(law.__mro__):
        found |= {k: v for k, v in vars(base).items() if isinstance(v, StateField)}
    return found


@functools.cache
def record_of(names: tuple[str, ...]) -> Any:
    """The NamedTuple of states with fields of these names."""

    def reduce(self: Any) -> tuple:
        return _restore, (names, tuple(self))

    base = collections.namedtuple("State", names)
    return type("State", (base,), {"__slots__": (), "__reduce__": reduce})


def _restore(names: tuple[str, ...], values: tuple) -> Any:
    return record_of(names)(*values)


def infos(thing: Any) -> dict[str, Info]:
    """The described fields of a law, link or group of flows, by name."""
    fields = dataclasses.fields(thing)
    return {f.name: f.metadata["info"] for f in fields if "info" in f.metadata}


def numeric_parameters(law: Any) -> dict[str, Info]:
    """The parameters of a law that are numbers, by name, in the order of its fields."""
    return {name: info for name, info in infos(law).items() if info.within is not None}


def parameter_values(law: Any) -> tuple[float, ...]:
    """Values of a law's numeric parameters, in the order of `numeric_parameters`."""
    return tuple(float(getattr(law, name)) for name in numeric_parameters(law))


def _plain(value: Num) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_order(law: Any, low: str, high: str, *, equal: bool = False) -> None:
    """Raise ValueError unless one field of a law is below another, if both are plain numbers.

    With `equal` the two may be the same.
    """
    below, above = getattr(law, low), getattr(law, high)
    if _plain(below) and _plain(above) and not (below < above or (equal and below == above)):
        sign = "<=" if equal else "<"
        raise ValueError(f"{law.name} needs {low} {sign} {high}, got {below!r} and {above!r}")


def check_fields(thing: Any, where: str) -> None:
    """Raise ValueError for the first described field of `thing` that is out of range.

    Only plain numbers and words are judged: traced and symbolic values pass.
    """
    for name, info in infos(thing).items():
        value = getattr(thing, name)
        if info.within is not None and isinstance(value, str):
            raise ValueError(
                f"{where}.{name}: expected a number, got {value!r}; fluidcc.replace reads units"
            )
        if info.within is not None and _plain(value) and value not in info.within:
            unit = f" {info.unit}" if info.unit not in ("", "1") else ""
            raise ValueError(
                f"{where}.{name}: expected a number in {info.within}{unit}, got {value!r}"
            )
        if info.choices and isinstance(value, str) and value not in info.choices:
            raise ValueError(
                f"{where}.{name}: expected one of {', '.join(info.choices)}, got {value!r}"
            )
