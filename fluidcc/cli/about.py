"""Lists of scenarios, laws, quantities and figures; one scenario in full."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from fluidcc import bundled, quantities
from fluidcc.cli.run import print_json
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.results.blocks import number
from fluidcc.results.text import console, table

if TYPE_CHECKING:
    from rich.table import Table

    from fluidcc.scenario.network import Network

_KINDS = ("scenarios", "laws", "quantities", "figures")


def print_list(what: str, *, json: bool) -> None:
    """Print the bundled scenarios, the laws, the quantities, or the figures of papers."""
    if what not in _KINDS:
        close = nearest(what, list(_KINDS), 1)
        raise ScenarioError([Fault("list", "", " or ".join(_KINDS), f"'{what}'", close)])
    listed = {
        "scenarios": lambda: list(bundled.scenarios()), "laws": _laws,
        "quantities": lambda: [q._asdict() for q in quantities.TABLE], "figures": _figures,
    }  # fmt: skip
    entries: Any = listed[what]()
    if json:
        print_json({what: entries})
    elif what == "scenarios":
        _print_scenarios()
    elif what == "laws":
        _print_laws(entries)
    elif what == "quantities":
        _print_quantities()
    else:
        _print_figures(entries)


def _print_scenarios() -> None:
    out = table("Bundled scenarios", "name", "title", left=2)
    for name, title in bundled.titles().items():
        out.add_row(name, title)
    console().print(out)


def _print_quantities() -> None:
    names = ("equilibrium", "fluid", "packets")
    out = table("Quantities", "of", *names, "unit", "symbol", "meaning", left=7)
    for q in quantities.TABLE:
        cells = [getattr(q, engine) for engine in names]
        cells[1] = cells[1] or q.run
        out.add_row(q.kind, *cells, "" if q.unit == "1" else q.unit, q.symbol, q.meaning)
    console().print(out)


def _figures() -> list[dict[str, Any]]:
    """Figures: paper, number, panels, title and the function that draws each."""
    return [
        {
            "paper": r.paper, "figure": r.number, "panels": list(r.panels), "title": r.title,
            "function": f"{r.paper}.{r.draw.__name__}",
        }
        for r in bundled.module("paper_figs.drawing.figure").wanted(())
    ]  # fmt: skip


def _print_figures(figures: list[dict[str, Any]]) -> None:
    out = table("Figures", "name", "panels", "title")
    out.columns[2].justify = "left"
    for figure in figures:
        name = f"{figure['paper']}/{figure['figure']}"
        out.add_row(name, " ".join(figure["panels"]), figure["title"])
    console().print(out)


def _laws() -> dict[str, dict[str, Any]]:
    """Laws by kind and name: source and parameters."""
    from fluidcc.laws.parameters import infos
    from fluidcc.laws.registry import LAWS

    def parameters(law: Any) -> dict[str, Any]:
        out = {}
        for name, info in infos(law).items():
            default = getattr(law, name, None)
            within = str(info.within) if info.within else list(LAWS.get(name) or info.words)
            plain = default if isinstance(default, str | int | float) else None
            out[name] = {
                "default": plain, "unit": info.unit, "meaning": info.doc, "range": within,
            }  # fmt: skip
        return out

    return {
        kind: {
            name: {"source": law.source, "parameters": parameters(law)}
            for name, law in laws.items()
        }
        for kind, laws in LAWS.items()
    }


def _print_laws(laws: Mapping[str, Mapping[str, Any]]) -> None:
    headings = "kind", "law", "parameter", "default", "range", "meaning", "source"
    out = table("Laws", *headings, left=len(headings))
    for kind, members in laws.items():
        for name, law in members.items():
            first = (kind, name)
            for parameter, about in law["parameters"].items() or {"": None}.items():
                cells = _cells(about) if about else ("", "", "")
                out.add_row(*first, parameter, *cells, law["source"] if first[1] else "")
                first = ("", "")
        out.add_section()
    console().print(out)


def _cells(about: Mapping[str, Any]) -> tuple[str, str, str]:
    unit = "" if about["unit"] in ("", "1") else f" {about['unit']}"
    within = about["range"] if isinstance(about["range"], str) else ", ".join(about["range"])
    default = about["default"]
    shown = str(default).lower() if isinstance(default, bool) else number(default)
    return f"{shown}{unit}" if default is not None else "", within, about["meaning"]


def show(net: "Network", *, latex: bool, json: bool) -> None:
    """Print a scenario: its values with units and sources, or its equations."""
    from fluidcc.scenario.files import citations
    from fluidcc.scenario.tables import tables

    values = tables(net)
    if latex:
        from fluidcc.results.latex import latex as equations

        text = equations(net)
        if json:
            print_json({"latex": text})
        else:
            typer.echo(text)
    elif json:
        print_json({"scenario": values, "citations": citations(net)})
    else:
        out = console()
        out.print(net.title, style="bold")
        out.print(f"rates = {net.rates}, delay = {net.delay}")
        out.print(_values("Links", values, net))
        out.print(_values("Flows", values, net))
        for key, text in citations(net).items():
            out.print(f"[{key}] {text}")


def _values(title: str, values: Any, net: "Network") -> "Table":
    """Every parameter in one line: value, unit, meaning."""
    from fluidcc.scenario.paths import info_at, leaf, paths

    out = table(title, "path", "value", "unit", "meaning")
    for column in out.columns[2:]:
        column.justify = "left"
    every, kind = paths(net), title.lower()
    for name in values[kind]:
        for path in every:
            value = leaf(values, path)
            if path.startswith(f"{kind}.{name}.") and value is not None:
                info = info_at(net, path)
                unit, doc = (info.unit, info.doc) if info else ("", "")
                out.add_row(path, _shown(value), "" if unit == "1" else unit, doc)
        out.add_section()
    return out


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        shown = [_shown(v) for v in value]
        return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "...", shown[-1]])
    return value if isinstance(value, str) else number(value, 8)
