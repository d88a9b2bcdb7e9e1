"""Parameters of laws: default, symbol, unit, meaning and range as metadata of a field."""

import dataclasses
import math
import re
from typing import Any

import equinox as eqx

from fluidcc.ops import Num

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
    """What a parameter is: LaTeX symbol, unit, meaning and range (None: a choice, not a number)."""

    symbol: str
    unit: str
    doc: str
    within: Interval | None = None
    choices: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """What a choice may be, as it is typed; nothing for a number."""
        return () if self.within is not None else self.choices or ("true", "false")


def param(
    default: Any = dataclasses.MISSING, symbol: str = "", *, unit: str, doc: str, within: str
) -> Any:
    """Field of a law or a network with a number: its default, symbol, unit, meaning and range."""
    info = Info(symbol, unit, doc, Interval(within))
    return eqx.field(default=default, metadata={"info": info})


def choice(default: str | bool, *options: str, doc: str) -> Any:
    """Field with one of a few words, or a yes/no where no options are given; part of the model's
    structure, so that changing it compiles anew.
    """
    info = Info("", "", doc, None, options)
    return eqx.field(default=default, static=True, metadata={"info": info})


def infos(thing: Any) -> dict[str, Info]:
    """The described fields of a law, link or group of flows, by name."""
    fields = dataclasses.fields(thing)
    return {f.name: f.metadata["info"] for f in fields if "info" in f.metadata}


def _plain(value: Num) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_order(law: Any, low: str, high: str) -> None:
    """Raise ValueError unless one field of a law is below another, where both are plain."""
    below, above = getattr(law, low), getattr(law, high)
    if _plain(below) and _plain(above) and below >= above:
        raise ValueError(f"{law.name} needs {low} < {high}, got {below!r} and {above!r}")


def check_fields(thing: Any, where: str) -> None:
    """Raise ValueError for the first described field of `thing` that is out of range.

    Only plain numbers and words are judged: traced and symbolic values pass.
    """
    for name, info in infos(thing).items():
        value = getattr(thing, name)
        if info.within is not None and _plain(value) and value not in info.within:
            unit = f" {info.unit}" if info.unit not in ("", "1") else ""
            raise ValueError(
                f"{where}.{name}: expected a number in {info.within}{unit}, got {value!r}"
            )
        if info.choices and isinstance(value, str) and value not in info.choices:
            raise ValueError(
                f"{where}.{name}: expected one of {', '.join(info.choices)}, got {value!r}"
            )
