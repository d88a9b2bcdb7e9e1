"""Lines and tables for notebooks, readable on light and on dark pages."""

from collections.abc import Iterable
from html import escape

from fluidcc.results.blocks import Block, Cell, Line, Table, Tone, Word, text, verdict

_MARKS: dict[Tone, str] = {"good": "#2e9e5b", "bad": "#e0483e", "open": "#d69e00"}
_RULE = "1px solid rgba(128, 128, 128, 0.5)"


def html(blocks: Iterable[Block]) -> str:
    """All blocks in one division; text has the colour of the page."""
    parts = [_line(b) if isinstance(b, Line) else _table(b) for b in blocks]
    return f'<div class="fluidcc">{"".join(parts)}</div>'


def _line(line: Line) -> str:
    style = "margin: 0.3em 0; white-space: pre-wrap;"
    if line.tone in _MARKS:
        style += f" border-left: 4px solid {_MARKS[line.tone]}; padding-left: 0.5em;"
    if line.tone != "plain":
        style += " font-weight: bold;"
    return f'<p style="{style}">{escape(line.text.strip())}</p>'


def _table(own: Table) -> str:
    style = "border-collapse: collapse; margin: 0.6em 0;"
    title = "text-align: left; caption-side: top; font-weight: bold; color: inherit;"
    caption = f'<caption style="{title}">{escape(own.title)}</caption>' if own.title else ""
    head = "".join(_cell("th", k, column.heading) for k, column in enumerate(own.columns))
    rows = "".join(f"<tr>{_row(row)}</tr>" for row in own.rows)
    return (
        f'<table style="{style}">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}{_hidden(own)}</tbody></table>"
    )


def _row(row: Iterable[Cell]) -> str:
    return "".join(_cell("td", k, cell) for k, cell in enumerate(row))


def _cell(tag: str, place: int, cell: Cell) -> str:
    side = "right" if place else "left"
    style = f"text-align: {side}; padding: 0.15em 0.7em; border-bottom: {_RULE};"
    if isinstance(cell, Word):
        style += f" border-left: 4px solid {_MARKS[verdict(cell.good, '').tone]};"
    return f'<{tag} style="{style}">{escape(text(cell))}</{tag}>'


def _hidden(own: Table) -> str:
    if not own.hidden:
        return ""
    return f'<tr><td colspan="{len(own.columns)}">… and {own.hidden} more</td></tr>'
