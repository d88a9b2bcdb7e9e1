"""How far the fluid model is off, over all scenarios: a part of the page on validity."""

import statistics
from collections.abc import Sequence

from fluidcc.bundled.validation.lab.beside import (
    LEVELS,
    WITHIN,
    Beside,
    causes,
    judged,
    level_error,
    medians,
    table,
)

_KINDS = {"goodput": "goodput", "utilization": "utilisation", "queue": "mean queue",
          "mark_fraction": "marks"}  # fmt: skip


def _row(name: str, rows: Sequence[Beside]) -> str:
    found = medians(rows)
    cells = [f"{100 * found[kind][0]:.1f} %" if kind in found else "" for kind in _KINDS]
    return f"| {name} | {len({row.scenario for row in rows})} | {' | '.join(cells)} |"


_SAID = {"queue": "mean queue", "queue_std": "its standard deviation", "mark_fraction": "marks",
         "goodput": "goodput", "period": "period"}  # fmt: skip


def _by_level(rows: Sequence[Beside]) -> list[str]:
    """Errors of every level, and scenarios for which none applies."""
    heads = [f"{_SAID[kind]}, within {most:.0%}" for kind, most in WITHIN.items()]
    lines = [
        "## Errors by level", "",
        "Medians of the relative errors against packets, and the share of all quantities within a "
        "tolerance, where a number that is refused is a miss. Queues are those of links with more "
        "than a packet in the mean.", "",
        f"| level | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|",
    ]  # fmt: skip
    for level in LEVELS:
        found = [level_error(judged(rows, kind), level, most) for kind, most in WITHIN.items()]
        cells = [f"{e.median:.1%}, {e.within:.0%}" if e and e.known else "" for e in found]
        lines.append(f"| {level} | {' | '.join(cells)} |")
    none = {row.scenario: row.level_reason for row in rows if row.level == "packets"}
    lines += ["", f"Scenarios in which no level below packets applies: {len(none)}.", ""]
    return [*lines, *(f"* `{name}`: {reason}" for name, reason in none.items()), ""]


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
