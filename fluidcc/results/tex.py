r"""Tables for LaTeX, in the manner of booktabs."""

import math
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fluidcc.folders import whole
from fluidcc.results.blocks import (
    DASH,
    DIGITS,
    Block,
    Cell,
    Column,
    Difference,
    Line,
    Measured,
    Number,
    Path,
    Span,
    Table,
    text,
    wordy,
)
from fluidcc.results.export import scaled
from fluidcc.results.symbols import symbol

_LONG = 60  # rows beyond which a table breaks over pages
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$",
    ">": "$>$", "|": "$|$", "±": r"$\pm$", "…": r"\dots{}", DASH: "--", "\N{MICRO SIGN}": r"$\mu$",
    "\n": " ",
}  # fmt: skip


class _Unit(NamedTuple):
    """A unit beside its numbers."""

    text: str


def latex(blocks: Iterable[Block], origin: Mapping[str, str] | None = None) -> str:
    """Tabulars one below the other; lines, and where it all comes from, as comments."""
    blocks = list(blocks)
    notes = [line for name, own in (origin or {}).items() for line in _noted(f"{name}: {own}")]
    notes += [line for b in blocks if isinstance(b, Line) for line in _noted(b.text.strip())]
    tables = [b for b in blocks if isinstance(b, Table)]
    packages = r"\usepackage{booktabs}"
    if any(len(own.rows) > _LONG for own in tables):
        packages += r"\usepackage{longtable}"
    notes.append(f"% needs {packages}")
    titled = len(tables) > 1
    return "\n".join([*notes, "\n\\par\\bigskip\n".join(_tabular(t, titled) for t in tables), ""])


def write(blocks: Iterable[Block], path: pathlib.Path, origin: Mapping[str, str]) -> None:
    """A file with the tables; what was there before is replaced when all is written."""
    with whole(path) as part:
        part.write_text(latex(blocks, origin), encoding="utf-8")


def _noted(words: str) -> list[str]:
    return [f"% {line}".rstrip() for line in words.splitlines()]


def escaped(words: str) -> str:
    """Text with everything that LaTeX reads as more than itself made harmless."""
    return "".join(_SPECIAL.get(letter, letter) for letter in words)


def _tabular(own: Table, titled: bool) -> str:
    own = _units_aside(own)
    sides = "".join("l" if k == 0 or wordy(own, k) else "r" for k in range(len(own.columns)))
    heads = _unit_heads(_names(own.columns), [column.unit for column in own.columns])
    long = len(own.rows) > _LONG
    lines = [rf"\begin{{{'longtable' if long else 'tabular'}}}{{{sides}}}"]
    if titled and own.title:
        lines.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{\textbf{{{escaped(own.title)}}}}} \\")
    lines += [r"\toprule", _row(heads), r"\midrule", *([r"\endhead"] if long else [])]
    lines += [_row([_cell(cell) for cell in row]) for row in own.rows]
    return "\n".join([*lines, r"\bottomrule", lines[0].split("}")[0].replace("begin", "end") + "}"])


def _row(cells: Sequence[str]) -> str:
    line = " & ".join(cells)
    return ("{}" if line[:1] in ("[", "*") else "") + line + r" \\"  # no argument of the last row


def _names(columns: Sequence[Column]) -> list[str]:
    """Headings, with symbols of parameters where these are known and tell columns apart."""
    found = [_label(c.name) if c.parameter else escaped(c.name) for c in columns]
    return found if len(set(found)) == len(found) else [escaped(c.name) for c in columns]


def _label(path: str) -> str:
    known = symbol(path)
    if known is None:
        return escaped(path)
    math, owner = known
    return f"${math}$" + (f" ({escaped(owner)})" if owner else "")


def _unit_heads(names: Sequence[str], units: Sequence[str]) -> list[str]:
    pairs = zip(names, units, strict=True)
    return [name if unit in ("", "1") else f"{name} [{_unit(unit)}]" for name, unit in pairs]


def _unit(unit: str) -> str:
    return re.sub(r"\\textasciicircum\{\}(-?\d+)", r"$^{\1}$", escaped(unit))


def _units_aside(own: Table) -> Table:
    """The same numbers with their units in the headings, or in a column where rows differ."""
    columns, rows = list(own.columns), [list(row) for row in own.rows]
    for k, column in enumerate(columns):
        cells = [row[k] for row in rows if isinstance(row[k], Measured)]
        units = {cell.unit for cell in cells if isinstance(cell, Measured)}
        if len(units) == 1 and column.unit in ("", "1"):
            scale, unit = _common(cells)
            columns[k] = column._replace(unit=unit)
            for row in rows:
                row[k] = _bare(row[k], scale)
    beside = []
    for row in rows:
        cells = [cell for cell in row if isinstance(cell, Measured) and cell.unit != "1"]
        scale, unit = _common(cells) if len({cell.unit for cell in cells}) == 1 else (1.0, "1")
        beside.append("" if unit == "1" else unit)
        if unit != "1":
            row[:] = [_bare(cell, scale) for cell in row]
    if any(beside):
        columns.insert(1, columns[0]._replace(name="unit", unit="1"))
        rows = [[row[0], _Unit(unit), *row[1:]] for row, unit in zip(rows, beside, strict=True)]
    return Table(own.title, tuple(columns), [tuple(row) for row in rows])


def _common(cells: Sequence[Cell]) -> tuple[float, str]:
    known = [cell for cell in cells if isinstance(cell, Measured)]
    return scaled([cell.value for cell in known], known[0].unit)


def _bare(cell: Cell, scale: float) -> Cell:
    """A quantity in units of `scale`, its unit elsewhere."""
    if not isinstance(cell, Measured):
        return cell
    value = None if cell.value is None else cell.value / scale
    return Measured(value, "1", None if cell.half is None else cell.half / scale)


def _cell(cell: Cell) -> str:
    match cell:
        case _Unit(unit):
            return _unit(unit)
        case Path(path):
            return _label(path)
        case Number(value, digits) if isinstance(value, int | float) and value == value:
            return _number(value, digits)
        case Measured(value, unit, half) if value is not None and value == value:
            scale, unit = scaled([value], unit)
            shown = _interval(value / scale, None if half is None else half / scale)
            return shown if unit in ("", "1") else rf"{shown}\,{_unit(unit)}"
        case Difference(value) if value is not None:
            return rf"${100 * value:+.2f}\,\%$"
        case Span(low, high):
            ends = dict.fromkeys((_number(low), _number(high)))
            return r" \dots{} ".join(ends)
    return escaped(text(cell))


def _number(value: float, digits: int = DIGITS) -> str:
    if isinstance(value, int):
        return f"${value}$"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"${mantissa}{_power(int(exponent)) if exponent else ''}$"


def _power(exponent: int) -> str:
    return rf" \times 10^{{{exponent}}}"


def _interval(value: float, half: float | None) -> str:
    """A mean and its half width, which has two digits, to the same place."""
    if half is None or not math.isfinite(half) or not math.isfinite(value):
        return _number(float(value))
    if half == 0:
        return _number(float(value))[:-1] + r" \pm 0$"
    width = float(f"{half:.1e}")
    size = math.floor(math.log10(max(abs(value), width)))
    power = size if not -4 < size < 6 else 0
    places = 1 - math.floor(math.log10(width)) + power
    ends = (round(end / 10.0**power, places) for end in (value, width))
    inner = r" \pm ".join(f"{end:.{max(places, 0)}f}" for end in ends)
    return f"$({inner}){_power(power)}$" if power else f"${inner}$"
