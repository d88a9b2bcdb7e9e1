"""Prints lines and tables on the console."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fluidcc.results.tables import blocks

_STYLES = {
    "good": "bold green", "bad": "bold red", "open": "bold yellow", "bold": "bold", "plain": "",
}  # fmt: skip


def table(title: str, *columns: str, left: int = 1) -> Table:
    """An empty table; its columns after the first `left` are aligned to the right."""
    out = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for k, column in enumerate(columns):
        out.add_column(column, justify="left" if k < left else "right", overflow="fold")
    return out


def console() -> Console:
    """Where results are printed; wide where it is no terminal."""
    out = Console(highlight=False, markup=False)
    if not out.is_terminal:
        out.width = 400  # nothing is cut in a file or a pipe
    return out


def tell(result: Any) -> None:
    """Print all that is told of a result."""
    from fluidcc.results.tables.told import told

    printed(told(result, whole=True), console())


def printed(told: Iterable[blocks.Block], where: Console) -> None:
    """Print lines and tables."""
    for block in told:
        where.print(_line(block) if isinstance(block, blocks.Line) else _table(block))


def _line(line: blocks.Line) -> Text:
    return Text(line.text, style=_STYLES[line.tone])


def _table(own: blocks.Table) -> Table:
    out = table(own.title, *(column.heading for column in own.columns))
    for k, column in enumerate(out.columns):
        if blocks.wordy(own, k):
            column.justify = "left"
    for row in own.rows:
        out.add_row(*map(_cell, row))
    return out


def _cell(cell: blocks.Cell) -> str | Text:
    if isinstance(cell, blocks.Word):
        return _line(blocks.verdict(cell.good, cell.text))
    return blocks.text(cell)
