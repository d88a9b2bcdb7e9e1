"""Lines and tables as text: for a console, for what `print` shows, and for notebooks."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from fluidcc.result import Result
from fluidcc.results import blocks
from fluidcc.results.blocks import Block, Cell, Line, Table

_STYLES = {
    "good": "bold green", "bad": "bold red", "open": "bold yellow", "bold": "bold", "plain": "",
}  # fmt: skip
_WIDTH = 400  # letters: nothing is cut
_WIDEST = 115  # letters of a table
_WORDS = 14  # letters of words in a wide one
_PARTS = re.compile(r"[^ _.[]+[ _.]?|\[[^]]*\]?[ ]?|[ _.]")  # of a heading, where it may be broken
MOST = 40  # rows of a table
_IN_FILE, _IN_PYTHON = "--out FILE has them all", ".to_pandas() has them all"
_PAGE = '<pre class="fluidcc" style="line-height: normal; overflow-x: auto">{code}</pre>'


def console(**options: object) -> Console:
    """The console that results are printed on; wide if it is no terminal."""
    out = Console(highlight=False, markup=False, **options)  # pyright: ignore[reportArgumentType]
    if not out.is_terminal:
        out.width = _WIDTH  # nothing is cut in a file or a pipe
    return out


def table(title: str, *columns: str, left: int = 1, bare: bool = False) -> RichTable:
    """An empty table, aligned to the right after its first `left` columns; `bare` has no rules."""
    out = RichTable(title=title, title_justify="left", title_style="bold", header_style="bold")
    if bare:
        out.box, out.pad_edge = None, False
    for k, column in enumerate(columns):
        out.add_column(column, justify="left" if k < left else "right", overflow="fold")
    return out


def printed(
    shown: Iterable[Block], where: Console, *, bare: bool = False, rest: str = _IN_PYTHON
) -> None:
    """Print lines and tables; of a long table its first rows and those that failed, and where the
    `rest` is; a wide one in parts below each other, each with the parameters or the first column.
    """
    for block in shown:
        if isinstance(block, Line):
            where.print(_line(block))
            continue
        failed = [r for r in block.rows[MOST:] if any(getattr(c, "tone", "") == "bad" for c in r)]
        rows = [*block.rows[:MOST], *failed]
        if block.title:
            where.print(Text(block.title, style="bold"))  # one of the table is as narrow as it
        for part in _tables(block, rows, bare):
            where.print(part)
        if left := len(block.rows) + block.hidden - len(rows):
            where.print(f"… and {left} more rows: {rest}")


def show(result: Result) -> list[str]:
    """Print all tables of a result where results are printed; gives its lines that are no table."""
    blocks = result.tables()
    printed(blocks, console(), rest=_IN_FILE)
    return [block.text for block in blocks if isinstance(block, Line)]


def text(shown: Iterable[Block]) -> str:
    """Lines and tables without rules between the cells."""
    out = io.StringIO()
    printed(shown, console(file=out, color_system=None), bare=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def html(shown: Iterable[Block]) -> str:
    """Lines and tables as on a console; verdicts are readable on light and on dark pages."""
    out = console(file=io.StringIO(), record=True)
    printed(shown, out)
    return out.export_html(theme=DIMMED_MONOKAI, code_format=_PAGE, inline_styles=True)


def _line(line: Line) -> Text:
    return Text(line.text, style=_STYLES[line.tone])


def _tables(block: Table, rows: Sequence[tuple[Cell, ...]], bare: bool) -> Iterator[RichTable]:
    """The table: if it is too wide, with words and the longest headings in lines, then without
    rules, and if need be in several tables.
    """
    cells = [[_cell(row[k]) for row in rows] for k in range(len(block.columns))]
    sizes = [max((cell_len(str(c)) for c in own), default=0) for own in cells]
    sizes = [min(s, c.width or s) for s, c in zip(sizes, block.columns, strict=True)]
    heads = [column.heading for column in block.columns]

    def width(k: int) -> int:
        return max(sizes[k], *map(cell_len, heads[k].split("\n")))

    def total(chosen: Sequence[int]) -> int:
        return sum((2 if bare else 3) + width(k) for k in chosen) + (-2 if bare else 1)

    every = range(len(heads))
    parts = {k: [_items(str(c)) for c in cells[k]] for k in every if block.is_wordy(k)}
    least = {k: max(_WORDS, *(len(p.rstrip()) for c in own for p in c)) for k, own in parts.items()}
    while total(every) > _WIDEST and (wide := [k for k in parts if sizes[k] > least[k]]):
        sizes[max(wide, key=lambda k: sizes[k])] -= 1
    for k in sorted(every, key=lambda k: sizes[k] - cell_len(heads[k])):
        if total(every) > _WIDEST and not block.columns[k].parameter:
            heads[k] = _folded(_PARTS.findall(heads[k]), sizes[k])
    bare = bare or total(every) > _WIDEST
    first = [k for k in every if block.columns[k].parameter] or [0]
    left = [k for k in every if k not in first]
    for k in (k for k in parts if sizes[k] >= least[k]):
        cells[k] = [
            c if isinstance(c, Text) else _folded(own, sizes[k])
            for c, own in zip(cells[k], parts[k], strict=True)
        ]
    while True:
        count = len(left)
        while count > 1 and total([*first, *left[:count]]) > _WIDEST:
            count -= 1
        chosen = sorted([*first, *left[:count]])
        out = table("", *(heads[k] for k in chosen), bare=bare)
        for k, column in zip(chosen, out.columns, strict=True):
            column.justify = "left" if k in parts else column.justify
            column.max_width = width(k) if k in parts else None
        for row in zip(*(cells[k] for k in chosen), strict=True):
            out.add_row(*row)
        yield out
        left = left[count:]
        if not left:
            return


def _items(text: str) -> list[str]:
    """The items of a list, or words, where lines may end."""
    return re.split("(?<=, )" if ", " in text else "(?<= )", text)


def _folded(parts: Sequence[str], size: int) -> str:
    """Words in lines of a size, or as wide as the longest of their parts."""
    least, lines = max(size, *(len(part.rstrip()) for part in parts)), [""]
    for part in parts:
        if len((lines[-1] + part).rstrip()) > least:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _cell(cell: Cell) -> str | Text:
    return _line(cell) if isinstance(cell, Line) else blocks.text(cell)
