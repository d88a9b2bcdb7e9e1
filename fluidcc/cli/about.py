"""Lists of scenarios, laws, quantities and figures; one scenario in full."""

import itertools
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

_KINDS = ("scenarios", "laws", "keys", "quantities", "figures")


def print_list(what: str, *, json: bool) -> None:
    """Print the bundled scenarios, the laws, the keys of scenarios, the quantities, or the figures
    of papers.
    """
    if what not in _KINDS:
        close = nearest(what, list(_KINDS), 1)
        raise ScenarioError([Fault("list", "", " or ".join(_KINDS), f"'{what}'", close)])
    listed = {
        "scenarios": lambda: list(bundled.scenarios()), "laws": _laws, "keys": _keys,
        "quantities": lambda: [q._asdict() for q in quantities.TABLE], "figures": _figures,
    }  # fmt: skip
    entries: Any = listed[what]()
    if json:
        print_json({what: entries})
    elif what == "scenarios":
        _print_scenarios()
    elif what == "laws":
        _print_laws(entries)
    elif what == "keys":
        _print_keys(entries)
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
    """A table for each kind: a line for each name, and the results that have it."""
    for kind, rows in itertools.groupby(quantities.TABLE, key=lambda q: q.kind):
        out = _narrow(quantities.KINDS[kind], "name", "unit", "symbol", "meaning", "in")
        for q in rows:
            first = ("" if q.unit == "1" else q.unit, q.symbol, q.meaning)
            for name, places in q.places.items():
                out.add_row(name, *first, places)
                first = ("", "", "")
        console().print(out, "")


def _narrow(title: str, *columns: str) -> "Table":
    """An empty table for a terminal, whose names are in one line."""
    out = table(title, *columns, left=len(columns), bare=True)
    for column in out.columns[:2]:
        column.no_wrap = True
    return out


def _keys() -> list[dict[str, Any]]:
    """Every key of a scenario."""
    from fluidcc.scenario.keys import keys

    return [key._asdict() | {"required": key.required} for key in keys()]


def _print_keys(entries: list[dict[str, Any]]) -> None:
    """A table for each table of a scenario, and within it for keys of the same laws."""
    from fluidcc.laws.parameters import ENGINES

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key in entries:
        place, laws = key["path"].rpartition(".")[0], ", ".join(key["laws"])
        groups.setdefault((place, laws), []).append(key)
    for (place, laws), rows in groups.items():
        title = (f"[{place}] {laws}" if place else "Scenario").strip()
        out = _narrow(title, "key", "default", "range", "meaning", "engines")
        for key in rows:
            about = {**key, "range": key["within"]}
            default, within, meaning = _cells(about)
            engines = "all" if len(key["engines"]) == len(ENGINES) else ", ".join(key["engines"])
            shown = "required" if key["required"] else default
            out.add_row(key["path"].rpartition(".")[2], shown, within, meaning, engines)
        console().print(out, "")


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
                "default": plain, "unit": info.unit, "meaning": info.meaning, "range": within,
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
    """A table of the parameters of each law, below its kind, name and source."""
    for kind, members in laws.items():
        for name, law in members.items():
            title = f"{kind} {name}, {law['source']}"
            if not law["parameters"]:
                console().print(title, "")
                continue
            out = _narrow(title, "parameter", "default", "range", "meaning")
            for parameter, about in law["parameters"].items():
                out.add_row(parameter, *_cells(about))
            console().print(out, "")


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
                unit, doc = (info.unit, info.meaning) if info else ("", "")
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
