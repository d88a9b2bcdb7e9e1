r"""Tables for LaTeX, in the manner of booktabs."""

import functools
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.folders import whole
from fluidcc.quantities import TABLE, split_name, without_unit, words_of
from fluidcc.results.blocks import (
    DASH,
    DIGITS,
    Block,
    Cell,
    Column,
    Line,
    Number,
    Path,
    Span,
    Table,
    is_interval,
    text,
)
from fluidcc.results.export import with_unit

_LISTED = 24  # columns that a message lists
_LONG = 60  # rows beyond which a table breaks over pages
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$",
    ">": "$>$", "|": "$|$", "±": r"$\pm$", "…": r"\dots{}", DASH: "--", "\N{MICRO SIGN}": r"$\mu$",
    "\n": " ",
}  # fmt: skip
_TIMES = r" \times 10^{{{}}}"
_POWER = re.compile(r"\^(-?\d+)")  # of a unit
_PATH = re.compile(r"(links?|flows?)\.([\w.]+)")


def latex(
    blocks: Iterable[Block],
    origin: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
) -> str:
    """Tabulars one below the other, of some columns or of all; lines, and where it all comes from,
    as comments. Raises ScenarioError for columns that there are not.
    """
    blocks = list(blocks) if columns is None else _with_columns(list(blocks), columns)
    notes = [line for name, own in (origin or {}).items() for line in _noted(f"{name}: {own}")]
    notes += [line for b in blocks if isinstance(b, Line) for line in _noted(b.text.strip())]
    tables = [b for b in blocks if isinstance(b, Table)]
    packages = r"\usepackage{booktabs}"
    if any(len(table.rows) > _LONG for table in tables):
        packages += r"\usepackage{longtable}"
    notes.append(f"% needs {packages}")
    titled = len(tables) > 1
    return "\n".join([*notes, "\n\\par\\bigskip\n".join(_tabular(t, titled) for t in tables), ""])


def _with_columns(blocks: Sequence[Block], names: Sequence[str]) -> list[Block]:
    """Lines, and the tables that have any of these columns, with them alone."""
    known = [c.name for own in blocks if isinstance(own, Table) for c in own.columns]
    names = check_columns(names, known)
    cut = (own.with_columns(names) if isinstance(own, Table) else own for own in blocks)
    return [own for own in cut if isinstance(own, Line) or own.columns]


def check_columns(names: Iterable[str], known: Iterable[str], where: str = "columns") -> list[str]:
    """The names, without units; raises ScenarioError for those not among the known columns."""
    names = [*map(without_unit, names)]
    known = [*dict.fromkeys(filter(None, known))]
    shown = known if len(known) <= _LISTED else [*known[:_LISTED], "..."]
    expected = f"columns among {', '.join(shown)}"
    faults = [
        Fault(where, "", expected, repr(name), nearest(name, known))
        for name in names if name not in known
    ]  # fmt: skip
    if faults:
        raise ScenarioError(faults)
    return names


def write(
    blocks: Iterable[Block], path: pathlib.Path, origin: Mapping[str, str],
    columns: Sequence[str] | None = None,
) -> None:  # fmt: skip
    """A file with the tables; what was there before is replaced when all is written."""
    tables = latex(blocks, origin, columns)
    with whole(path) as part:
        part.write_text(tables, encoding="utf-8")


def _noted(words: str) -> list[str]:
    return [f"% {line}".rstrip() for line in words.splitlines()]


def escaped(words: str) -> str:
    """Text with powers raised, and all else that LaTeX reads as more than itself made harmless."""
    parts = _POWER.split(words)  # text and powers in turn
    for k, part in enumerate(parts):
        harmless = "".join(_SPECIAL.get(letter, letter) for letter in part)
        parts[k] = f"$^{{{part}}}$" if k % 2 else harmless
    return "".join(parts)


def _tabular(own: Table, titled: bool) -> str:
    sides = "".join("l" if k == 0 or own.is_wordy(k) else "r" for k in range(len(own.columns)))
    long = len(own.rows) > _LONG
    name = "longtable" if long else "tabular"
    lines = [rf"\begin{{{name}}}{{{sides}}}"]
    if titled and own.title:
        lines.append(rf"\multicolumn{{{len(sides)}}}{{l}}{{\textbf{{{escaped(own.title)}}}}} \\")
    lines += [r"\toprule", _row(_heads(own.columns)), r"\midrule", *([r"\endhead"] if long else [])]
    lines += [_row([_cell(cell) for cell in row]) for row in own.rows]
    return "\n".join([*lines, r"\bottomrule", rf"\end{{{name}}}"])


def _row(cells: Sequence[str]) -> str:
    line = " & ".join(cells)
    return ("{}" if line[:1] in ("[", "*") else "") + line + r" \\"  # no argument of the last row


def _heads(columns: Sequence[Column]) -> list[str]:
    """Headings, with symbols of parameters if these are known and distinguish the columns."""
    names = [typeset(c.name, escaped, parameter=c.parameter) for c in columns]
    if len(set(names)) < len(names):
        names = [escaped(c.name) for c in columns]
    units = ("" if c.unit in ("", "1") else f" [{escaped(c.unit)}]" for c in columns)
    return [f"{name}{unit}" for name, unit in zip(names, units, strict=True)]


def typeset(name: str, escape: Callable[[str], str] = str, *, parameter: bool = False) -> str:
    """A heading in words: paths of quantities and parameters as symbols, with their owners.

    What follows ``by`` or ``first`` is a parameter, as all paths are if `parameter`.
    """
    out = []
    for k, word in enumerate(name.split(" ")):
        quantity = None if parameter or k else split_name(word)
        if quantity is not None:
            _, owner, own, labels = quantity
            out.append(f"{_quantity(own, escape)} of {escape(owner + labels.replace('[', ' ['))}")
        else:
            out.append(_label(word, escape))
    return " ".join(out) if len(out) > 1 or parameter or "." in name else _quantity(name, escape)


def quantity_label(name: str, unit: str) -> str:
    """A quantity in words with its unit, as the axes of pictures have it."""
    words = typeset(name)
    return with_unit(f"{words[:1].upper()}{words[1:]}", unit)


def _label(path: str, escape: Callable[[str], str] = escaped) -> str:
    """The symbol of the parameter at a path, with the name of its link or group; else the path."""
    match = _PATH.fullmatch(path)
    kind, parts = (match[1], match[2].split(".")) if match else ("", [])
    owner = f" ({escape(f'{kind}.{parts.pop(0)}')})" if kind.endswith("s") else ""
    symbols = _symbols().get((kind.rstrip("s"), ".".join(parts)), set())
    return f"${next(iter(symbols))}${owner}" if len(symbols) == 1 else escape(path)


def _quantity(name: str, escape: Callable[[str], str] = escaped) -> str:
    """A quantity's own name in words, with its symbol if that is known."""
    words = escape(words_of(name))
    symbols = {q.symbol for q in TABLE if name.replace(" ", "_") in q.names}
    symbol = symbols.pop() if len(symbols) == 1 else ""
    return f"{words} ${symbol}$" if symbol else words


@functools.cache
def _symbols() -> Mapping[tuple[str, str], set[str]]:
    """Symbols that laws, links and flows have for a path below a link or a group."""
    from fluidcc.laws.parameters import infos
    from fluidcc.laws.registry import LAWS
    from fluidcc.scenario.network import Flows, FlowsInitial, Link, LinkInitial
    from fluidcc.scenario.sender import KINDS

    owners = [("link", "", Link), ("flow", "", Flows)]
    owners += [("link", "initial.", LinkInitial), ("flow", "initial.", FlowsInitial)]
    for kind, laws in LAWS.items():
        table = "window" if kind in KINDS else kind
        side = "link" if kind == "queue" else "flow"
        owners += [(side, f"{table}.", law) for law in laws.values()]
    out: dict[tuple[str, str], set[str]] = {}
    for side, prefix, thing in owners:
        for name, info in infos(thing).items():
            if info.symbol:
                out.setdefault((side, f"{prefix}{name}"), set()).add(info.symbol)
    return out


def _cell(cell: Cell) -> str:
    match cell:
        case Path(path):
            return _label(path)
        case Number(value, digits, half) if isinstance(value, int | float) and value == value:
            return _number(value, digits, half)
        case Span(low, high):
            return r" \dots{} ".join(dict.fromkeys((_number(low), _number(high))))
    return escaped(text(cell))


def _number(value: float, digits: int = DIGITS, half: float | None = None) -> str:
    if isinstance(value, int):
        return f"${value}$"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    if half is not None and is_interval(value, half):
        return _interval(value, half)
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"${mantissa}{_TIMES.format(int(exponent)) if exponent else ''}$"


def _interval(value: float, half: float) -> str:
    """A mean and its half width, which has two digits, to the same place."""
    width = float(f"{half:.1e}")
    size = math.floor(math.log10(max(abs(value), width)))
    power = size if not -4 < size < 6 else 0
    places = 1 - math.floor(math.log10(width)) + power
    ends = (round(end / 10.0**power, places) for end in (value, width))
    inner = r" \pm ".join(f"{end:.{max(places, 0)}f}" for end in ends)
    return f"$({inner}){_TIMES.format(power)}$" if power else f"${inner}$"
