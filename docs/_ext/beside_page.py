"""How far the fluid model is off, over all scenarios: a part of the page on validity."""

from collections.abc import Sequence

from fluidcc.bundled.validation.lab.beside import Beside, causes, medians, table

_KINDS = {"goodput": "goodput", "utilization": "utilisation", "queue": "mean queue",
          "mark_fraction": "marks"}  # fmt: skip


def _row(name: str, rows: Sequence[Beside]) -> str:
    found = medians(rows)
    cells = [f"{100 * found[kind][0]:.1f} %" if kind in found else "" for kind in _KINDS]
    return f"| {name} | {len({row.scenario for row in rows})} | {' | '.join(cells)} |"


def pages() -> dict[str, str]:
    """Medians of the errors, by validity warning."""
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
    ]  # fmt: skip
    return {"theory/beside.md": "\n".join(lines)}
