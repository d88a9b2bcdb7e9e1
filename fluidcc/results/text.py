"""Lines and tables as text: for a console, for what `print` shows, and for notebooks."""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from fluidcc.quantities import split_name
from fluidcc.result import Result
from fluidcc.results import blocks
from fluidcc.results.blocks import Block, Cell, Line, Table

_STYLES = {
    "good": "bold green", "bad": "bold red", "open": "bold yellow", "bold": "bold", "plain": "",
}  # fmt: skip
_WIDTH = 400  # letters: nothing is cut
_RULE = 3  # letters between columns
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
    `rest` is.
    """
    for block in shown:
        if isinstance(block, Line):
            where.print(_line(block))
            continue
        failed = [r for r in block.rows[MOST:] if any(getattr(c, "tone", "") == "bad" for c in r)]
        rows = [*block.rows[:MOST], *failed]
        if block.title:
            where.print(Text(block.title, style="bold"))  # one of the table is as narrow as it
        where.print(_table(block, rows, bare, where.width))
        if left := len(block.rows) + block.hidden - len(rows):
            where.print(f"… and {left} more rows: {rest}")


def show(result: Result) -> None:
    """Print all tables of a result where results are printed."""
    printed(result.tables(), console(), rest=_IN_FILE)


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


def _table(block: Table, rows: Iterable[tuple[Cell, ...]], bare: bool, width: int) -> RichTable:
    """The table; headings that are too wide have the names of quantities in lines."""
    heads = [column.heading for column in block.columns]
    if sum(len(head) + _RULE for head in heads) > width:
        heads = [h.replace(".", ".\n") if split_name(h.split(" ")[0]) else h for h in heads]
    out = table("", *heads, bare=bare)
    for k, column in enumerate(out.columns):
        if block.is_wordy(k):
            column.justify = "left"
        column.max_width = block.columns[k].width or None
    for row in rows:
        out.add_row(*map(_cell, row))
    return out


def _cell(cell: Cell) -> str | Text:
    return _line(cell) if isinstance(cell, Line) else blocks.text(cell)
