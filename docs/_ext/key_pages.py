"""The tables of scenario keys and of quantities, made from what declares them."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from law_pages import shown_default

from fluidcc import quantities
from fluidcc.laws.parameters import ENGINES
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.keys import Key, keys


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _range(within: str) -> str:
    """A range, or words; a space within an interval breaks no line."""
    words = within.split(" | ")
    if len(words) > 1:
        return ", ".join(f"`{word}`" for word in words)
    return within.replace(", ", ",\u00a0") if within[:1] in "[(" else within


def _of(laws: tuple[str, ...]) -> str:
    """The laws that have a key."""
    every = any(set(laws) == set(kind) and len(kind) > 1 for kind in LAWS.values())
    return "every law" if every else ", ".join(f"`{law}`" for law in laws)


def _row(key: Key) -> dict[str, str]:
    return {
        "key": f"`{key.path.rpartition('.')[2]}`", "laws": _of(key.laws) if key.laws else "",
        "unit": "" if key.unit == "1" else key.unit,
        "default": "required" if key.required else shown_default(key.default, "1"),
        "range": _range(key.within), "meaning": key.meaning,
        "engines": "all" if key.engines == ENGINES else ", ".join(key.engines),
    }  # fmt: skip


def _keys() -> Iterator[str]:
    """A table for each table of a scenario, without columns that are empty."""
    for place, own in itertools.groupby(keys(), key=lambda key: key.path.rpartition(".")[0]):
        rows = [_row(key) for key in own]
        heads = [head for head in rows[0] if any(row[head] for row in rows)]
        title = f"`[{place}]`" if place else "The scenario"
        yield from (f"### {title}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
        for row in rows:
            yield f"| {' | '.join(_cell(row[head]) for head in heads)} |"
        yield ""


def _quantities() -> Iterator[str]:
    heads = "name", "symbol", "unit", "meaning", "results"
    for kind, rows in itertools.groupby(quantities.TABLE, key=lambda q: q.kind):
        yield from (f"## {quantities.KINDS[kind]}", "")
        yield from (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
        for q in rows:
            first = (
                f"${q.symbol}$" if q.symbol else "",
                "" if q.unit == "1" else q.unit,
                q.meaning,
            )
            for name, places in q.places.items():
                yield f"| {' | '.join(map(_cell, (f'`{name}`', *first, places)))} |"
                first = ("", "", "")
        yield ""


def pages() -> dict[str, str]:
    """Parts of the pages on scenarios and on quantities."""
    return {
        "scenario_keys_tables.md": "\n".join(_keys()) + "\n",
        "quantities_tables.md": "\n".join(_quantities()) + "\n",
    }


if __name__ == "__main__":
    for name, text in pages().items():
        Path(__file__).parents[1].joinpath(name).write_text(text, encoding="utf-8")
