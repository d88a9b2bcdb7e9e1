"""Lines and tables as data, and the text of their cells."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from fluidcc import quantities
from fluidcc.results.export import scaled, with_unit

DASH = "–"  # noqa: RUF001
DIGITS = 5  # significant digits of a number, unless a table gives another number
_ROUNDING = 1e-9  # of a number; a shorter interval is none

Tone = Literal["good", "bad", "open", "bold", "plain"]


class Line(NamedTuple):
    """Words in a line or a cell; `tone` colours a verdict (`open`: neither good nor bad)."""

    text: str
    tone: Tone = "plain"


class Number(NamedTuple):
    """A number whose unit the heading has, and the half width of its interval.

    None or NaN if there is none. Words pass as they are.
    """

    value: Any
    digits: int = DIGITS
    half: float | None = None


class Measured(NamedTuple):
    """A number (None if there is none), its unit and the half width of its interval."""

    value: float | None
    unit: str = "1"
    half: float | None = None


class Span(NamedTuple):
    """The range of some numbers."""

    low: float
    high: float


class Path(NamedTuple):
    """A parameter by its path."""

    path: str


Cell = str | Number | Span | Line | Path


class Column(NamedTuple):
    """The heading of a column: a name and the unit of its numbers; a parameter's is its path.

    Words wider than `width` letters take several lines; 0: as wide as they are.
    """

    name: str
    unit: str = "1"
    parameter: bool = False
    width: int = 0

    @property
    def heading(self) -> str:
        """The name with the unit, if there is one."""
        return with_unit(self.name, self.unit)


@dataclasses.dataclass
class Table:
    """A table: all columns but the first are for numbers; `hidden` rows are left out at its end."""

    title: str
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]] = dataclasses.field(default_factory=list)
    hidden: int = 0

    def add_row(self, *cells: Cell) -> None:
        """Add a line; raises ValueError unless there is a cell for each column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(self.columns)} columns, {len(cells)} cells")
        self.rows.append(cells)

    def with_columns(self, names: Sequence[str]) -> "Table":
        """The columns with these names, in this order, as far as the table has them."""
        own = [c.name for c in self.columns]
        chosen = [own.index(name) for name in names if name in own]
        rows = [tuple(row[k] for k in chosen) for row in self.rows]
        return Table(self.title, tuple(self.columns[k] for k in chosen), rows, self.hidden)

    def is_wordy(self, column: int) -> bool:
        """Whether a column has words only."""
        cells = [row[column] for row in self.rows if row[column] not in (DASH, "")]
        words = (isinstance(c, str | Line) and not text(c).isdecimal() for c in cells)
        return bool(cells) and all(words)


Block = Line | Table


def table(title: str, *columns: str | tuple[str, str] | Column) -> Table:
    """An empty table with these columns: names, or names with units."""
    named = (Column(c) if isinstance(c, str) else c for c in columns)
    return Table(title, tuple(c if isinstance(c, Column) else Column(*c) for c in named))


def known(kind: str, *names: str) -> list[Column]:
    """Columns of quantities of links, flows, loops or windows, with the units these have."""
    return [Column(name, quantities.quantity(kind, name).unit) for name in names]


def parameter(path: str, unit: str = "1") -> Column:
    """The column of a parameter."""
    return Column(path, unit, parameter=True)


def verdict(good: bool | None, text: str) -> Line:
    """A line that is good, bad, or neither."""
    return Line(text, "open" if good is None else "good" if good else "bad")


def lines(*texts: str, tone: Tone = "plain") -> list[Block]:
    """A line for each text that is not empty."""
    return [Line(text, tone) for text in texts if text]


def span(values: Sequence[float]) -> Span:
    """The range of some numbers."""
    return Span(min(values), max(values))


def in_unit(unit: str, *values: Measured) -> tuple[str, list[Number]]:
    """The unit in which numbers read best, and the numbers in it."""
    scale, unit = scaled([measured.value for measured in values], unit)

    def divided(value: float | None) -> float | None:
        return value if value is None or scale == 1 else value / scale  # counts stay whole

    return unit, [Number(divided(m.value), half=divided(m.half)) for m in values]


def in_row(unit: str, *values: Measured) -> list[Cell]:
    """The cells of a line that has its own unit: the unit, and the numbers in it."""
    unit, numbers = in_unit(unit, *values)
    return ["" if unit == "1" else unit, *numbers]


def percent(value: float | None) -> Number:
    """A relative difference in percent, to a hundredth."""
    return Number(None if value is None else round(100 * value, 2))


def is_interval(value: Any, half: float | None) -> bool:
    """Whether a number has an interval, of more than rounding: equal runs have none."""
    return half is not None and math.isfinite(half) and half > _ROUNDING * abs(value)


def number(value: Any, digits: int = DIGITS, half: float | None = None) -> str:
    """A number as text, with the half width of its interval; a dash if there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    shown = f"{value:.{digits}g}" if isinstance(value, float) else str(value)
    return f"{shown} ± {float(f'{half:.2g}'):g}" if is_interval(value, half) else shown


def quantity(value: float | None, unit: str = "1") -> str:
    """A number with its unit as text."""
    unit, (scaled_number,) = in_unit(unit, Measured(value))
    shown = number(scaled_number.value)
    return shown if shown == DASH or unit in ("", "1") else f"{shown} {unit}"


def text(cell: Cell) -> str:
    """A cell as text."""
    match cell:
        case Number():
            return number(*cell)
        case Span(low, high):
            low, high = number(low), number(high)
            return low if low == high else f"{low} … {high}"
        case Line(words) | Path(words):
            return words
    return cell
