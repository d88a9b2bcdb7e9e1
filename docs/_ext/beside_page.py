"""How far the fluid model is off, over all scenarios: a part of the page on validity.

`python docs/_ext/beside_page.py` rewrites the parts of other pages that say it.
"""

import statistics
import textwrap
from collections.abc import Iterator, Sequence

from parts import rewrite

from fluidcc.bundled.validation.lab.beside import (
    LEVELS,
    WITHIN,
    Beside,
    causes,
    judged,
    level_error,
    medians,
    short_queues,
    table,
)

_WIDE = 160  # letters of a line

_KINDS = {"goodput": "goodput", "utilization": "utilisation", "queue": "mean queue",
          "mark_fraction": "marks"}  # fmt: skip


def _row(name: str, rows: Sequence[Beside]) -> str:
    found = medians(rows)
    cells = [f"{100 * found[kind][0]:.1f} %" if kind in found else "" for kind in _KINDS]
    return f"| {name} | {len({row.scenario for row in rows})} | {' | '.join(cells)} |"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _wrap(text: str) -> str:
    return textwrap.fill(text, _WIDE, break_long_words=False, break_on_hyphens=False)


_SAID = {"queue": "mean queue", "queue_std": "its standard deviation", "mark_fraction": "marks",
         "goodput": "goodput", "period": "period"}  # fmt: skip


def _level_table(rows: Sequence[Beside]) -> Iterator[str]:
    """Errors of every level, a line each."""
    heads = [f"{_SAID[kind]}, within {_percent(most)}" for kind, most in WITHIN.items()]
    yield from (f"| level | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|")
    for level in LEVELS:
        found = [level_error(judged(rows, kind), level, most) for kind, most in WITHIN.items()]
        cells = [
            f"{_percent(e.median, 1)}, {_percent(e.within)}" if e and e.known else "" for e in found
        ]
        yield f"| {_LEVEL.get(level, level)} | {' | '.join(cells)} |"


def _by_packets(rows: Sequence[Beside]) -> dict[str, str]:
    """Why packets alone apply, by the scenario."""
    return {row.scenario: row.level_reason for row in rows if row.level == "packets"}


def _by_level(rows: Sequence[Beside]) -> list[str]:
    """Errors of every level, and scenarios for which none applies."""
    none = _by_packets(rows)
    return [
        "## Errors by level", "",
        "Medians of the relative errors against packets, and the share of all quantities within a "
        "tolerance, where a number that is refused is a miss. Queues are those of links with more "
        "than a packet in the mean.", "",
        *_level_table(rows), "",
        f"Scenarios in which no level below packets applies: {len(none)}.", "",
        *(f"* `{name}`: {reason}" for name, reason in none.items()), "",
    ]  # fmt: skip


_LEVEL = {"equilibrium": "mean windows", "fluid": "mean windows, over time",
          "recommended": "level to trust"}  # fmt: skip

_LEVELS = {"queue": "mean queue", "queue_std": "standard deviation of the queue",
           "mark_fraction": "marks", "goodput": "goodput"}  # fmt: skip


def _levels(rows: Sequence[Beside]) -> list[str]:
    """Errors of the equilibria, of means and of populations, where fluctuations are known."""
    known = [row for row in rows if not row.refused]
    names = list(dict.fromkeys(row.scenario for row in known))
    lines = [
        "## The population and its noise", "",
        f"Of {len({row.scenario for row in rows})} scenarios the noise of {len(names)} is not "
        f"refused: {', '.join(f'`{name}`' for name in names)}. Median of the relative errors of "
        "their equilibria against packets, and the share within 10 % (20 % for deviations):", "",
        "| quantity | | mean windows | population |", "|---|---|---|---|",
    ]  # fmt: skip
    for kind, name in _LEVELS.items():
        most = 0.2 if kind == "queue_std" else 0.1
        cells = []
        own = [row for row in known if row.kind == kind]
        for level in ("equilibrium", "population"):
            found = [row.error_of(getattr(row, level)) for row in own]
            sizes = [abs(error) for error in found if error is not None]
            within = sum(size <= most for size in sizes)
            cells.append(
                f"{100 * statistics.median(sizes):.1f} %, {within} of {len(sizes)}" if sizes else ""
            )
        lines.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    return [*lines, ""]


def _every(rows: Sequence[Beside]) -> list[str]:
    """The queue of every scenario by packets, and how far each level is off."""
    lines = [
        "## Every queue", "",
        "Packets beside the mean queue of each level, with its relative error, and the relative "
        "error of the standard deviation by trains. Queues of a packet at most are left out.", "",
        "| link | packets ± deviation | mean windows | population | trains | deviation | trusted |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    named = {(row.scenario, row.quantity): row for row in rows}
    for row in judged(rows, "queue"):
        spread = named[row.scenario, f"{row.quantity}_std"]
        error = spread.error_of(spread.trains)
        lines.append(
            f"| `{row.scenario}` {row.quantity.split('.')[1]} "
            f"| {row.packets:.3g} ± {spread.packets:.3g} | {_beside(row.equilibrium, row)} "
            f"| {_beside(row.population, row)} | {_beside(row.trains, row)} "
            f"| {'' if error is None else f'{error:+.0%}'} | {row.level} |"
        )
    return [*lines, ""]


def _beside(value: float | None, row: Beside) -> str:
    error = row.error_of(value)
    return "" if value is None else f"{value:.3g} ({error:+.0%})"


def pages() -> dict[str, str]:
    """Medians of the errors, by validity warning and by level, and every queue."""
    rows = table()
    lines = [
        "## Errors over all scenarios", "",
        "Medians of the relative errors against packets over all bundled scenarios, by validity "
        "warning; a scenario counts under each of its warnings. The table is that "
        "of `uv run python validation/compare_all.py`.", "",
        f"| warning | scenarios | {' | '.join(_KINDS.values())} |",
        "|---" * (len(_KINDS) + 2) + "|",
        _row("none", [row for row in rows if not row.validity_warnings]),
        *(_row(cause, own) for cause, own in causes(rows).items()), "",
        *_by_level(rows), *_levels(rows), *_every(rows),
    ]  # fmt: skip
    return {"theory/beside.md": "\n".join(lines)}


def _misses(rows: Sequence[Beside]) -> str:
    """Median of the errors of the level to trust, with one for a number that it has not."""
    sizes = [abs(row.recommended / row.packets - 1) if row.recommended is not None and row.packets
             else 1.0 for row in rows]  # fmt: skip
    return _percent(statistics.median(sizes), 1)


def _median(rows: Sequence[Beside], kind: str, level: str) -> str:
    found = level_error(judged(rows, kind), level, WITHIN[kind])
    return _percent(found.median, 1) if found else ""


def _opening(rows: Sequence[Beside]) -> str:
    """The paragraph of the README."""
    count, trusted = len({row.scenario for row in rows}), "recommended"
    others = [f"{_median(rows, kind, trusted)} in {_SAID[kind]}"
              for kind in ("queue_std", "mark_fraction", "goodput")]  # fmt: skip
    return _wrap(
        "The fluid model describes means: E f(W) is taken as f(E W), and marks as independent; "
        f"over {count} scenarios its mean queue is {_median(rows, 'queue', 'equilibrium')} off in "
        "the median. `compare` says which level to trust: there it is "
        f"{_median(rows, 'queue', trusted)} off in the mean queue, {', '.join(others)}, and in "
        f"{len(_by_packets(rows))} scenarios packets alone apply "
        "([trains of packets](docs/theory/trains.md))."
    )


def _warned(rows: Sequence[Beside]) -> str:
    """How far the fluid model is off with and without a validity warning."""
    parts = {True: [row for row in rows if row.validity_warnings],
             False: [row for row in rows if not row.validity_warnings]}  # fmt: skip
    found = {
        own: " and ".join(f"{_percent(medians(part)[kind][0], 1)} in {_KINDS[kind]}"
                          for kind in ("goodput", "queue"))
        for own, part in parts.items()
    }  # fmt: skip
    short = short_queues(parts[True])
    return _wrap(
        f"In the {len({row.scenario for row in parts[False]})} of "
        f"{len({row.scenario for row in rows})} scenarios without a validity warning the median "
        f"error is {found[False]}; in the others {found[True]} ({len(short)} mean queues of less "
        "than a packet, of which the fluid has none, are off by "
        f"{statistics.median(short):.2g} packet and counted apart)."
    )


_SINGLE = ("durresi2001/ten_front", "durresi2001/ten_tail")  # ten groups of one flow at a threshold


def _trusted(rows: Sequence[Beside]) -> str:
    """The table of the page on trains, and what it leaves out."""
    queues, goodput = judged(rows, "queue"), judged(rows, "goodput")
    missed = [f"{_misses(judged(rows, kind))} of {_SAID[kind]}" for kind in WITHIN]
    rest = [row for row in goodput if not row.scenario.startswith(_SINGLE)]
    none = ", ".join(f"`{name}`" for name in _by_packets(rows))
    return "\n".join([
        f"These are the {len(queues)} links with more than a packet in the queue:", "",
        *_level_table(rows), "",
        _wrap("The level to trust is that of trains but in "
        f"{len(_by_packets(rows))} scenarios, for which it is packets ({none}; "
        "[the reasons](validity.md#errors-by-level)). With a miss counted as one, its medians are "
        f"{', '.join(missed)}. Without the {len(goodput) - len(rest)} groups of one flow of "
        f"`durresi2001` at one round trip, of {len(goodput)} groups, its median error in goodput "
        f"is {_median(rest, 'goodput', 'recommended')}, with misses counted {_misses(rest)}."),
    ])  # fmt: skip


def parts() -> dict[str, dict[str, str]]:
    """Parts of kept pages, by page and name."""
    rows = table()
    return {
        "README.md": {"errors over all scenarios": _opening(rows)},
        "docs/limits.md": {"errors with and without a warning": _warned(rows)},
        "docs/theory/trains.md": {"errors by level": _trusted(rows)},
    }


if __name__ == "__main__":
    rewrite(parts())
