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
    """Errors of every level, and scenarios for which none applies; nothing of an older table."""
    if not any(row.level for row in rows):
        return []
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
_WORST = 10  # scenarios


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


def _worst(rows: Sequence[Beside]) -> list[str]:
    """Scenarios in which mean windows are off most, with the other levels and why."""
    queues = [row for row in rows if row.kind == "queue"]
    errors = {row: row.error_of(row.equilibrium) for row in queues}
    worst = sorted((row for row in queues if errors[row] is not None),
                   key=lambda row: -abs(errors[row] or 0.0))[:_WORST]  # fmt: skip
    lines = [
        "## The largest errors of mean windows",
        "",
        "| queue | packets ± deviation | mean windows | population | noise is refused as |",
        "|---|---|---|---|---|",
    ]
    for row in [*worst, *(row for row in queues if row.scenario == "misra2003/mixed")]:
        spread = next(
            other.packets for other in rows
            if (other.scenario, other.quantity) == (row.scenario, f"{row.quantity}_std")
        )  # fmt: skip
        lines.append(
            f"| `{row.scenario}`, {row.quantity.split('.')[1]} | {row.packets:.3g} ± {spread:.3g} "
            f"| {_beside(row.equilibrium, row)} | {_beside(row.population, row)} | {row.refused} |"
        )
    return [*lines, ""]


def _beside(value: float | None, row: Beside) -> str:
    error = row.error_of(value)
    return "" if value is None else f"{value:.3g} ({error:+.0%})"


def pages() -> dict[str, str]:
    """Medians of the errors, by level and by validity warning, and the largest ones."""
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
        *_by_level(rows), *_levels(rows), *_worst(rows),
    ]  # fmt: skip
    return {"theory/beside.md": "\n".join(lines)}
