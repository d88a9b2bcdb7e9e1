"""Results as tables: LaTeX, HTML for notebooks, CSV."""

import csv
import dataclasses
import re
from html import unescape

import numpy as np
import pytest
from result_cases import (
    NET,
    PATH,
    RESULTS,
    comparison,
    made,
    packets,
    stability_map,
    sweep,
)

import fluidcc as fc
from fluidcc import quantities
from fluidcc.model.runs import FlowsRun, LinkRun
from fluidcc.results import blocks, tex
from fluidcc.results.blocks import Measured, Number, Span, Table
from fluidcc.results.export import ROWS, write
from fluidcc.results.text import html


def notebook(source):
    """The lines of text that a notebook shows."""
    return unescape(re.sub("<[^>]*>", "", source)).splitlines()


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_shows_the_same_cells_everywhere(name):
    """A notebook has the text of each cell; LaTeX is balanced, and of as many rows."""
    result = made(name)
    tables = [b for b in result.tables() if isinstance(b, Table)]
    shown = "\n".join(notebook(result._repr_html_()))
    for block in result.tables(12):
        if isinstance(block, blocks.Line):
            assert block.text.strip() in shown
            continue
        for row in [[c.heading for c in block.columns], *block.rows]:
            assert all(blocks.text(cell) in shown for cell in row)
    source = result.to_latex()
    body = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
    ends = [re.findall(rf"\\{word}{{(\w+)}}", body) for word in ("begin", "end")]
    assert ends[0] == ends[1] == ["tabular"] * len(tables)
    assert body.count("{") == body.count("}") and body.count("$") % 2 == 0
    titles = sum(bool(own.title) for own in tables) if len(tables) > 1 else 0
    assert body.count(r"\\") == sum(1 + len(own.rows) for own in tables) + titles
    unescaped = re.sub(r"\$[^$]*\$", "", body)
    assert not re.search(r"(?<!\\)[_#%]", unescaped)


def test_numbers_of_a_notebook_are_those_of_the_result():
    rest = made("Equilibrium")
    shown = [re.split(r"\s*[│┃]\s*", line) for line in notebook(rest._repr_html_())]
    rows = {row[1]: row[1:] for row in shown if len(row) > 1}
    assert float(rows["bottleneck"][1]) == pytest.approx(rest.links["bottleneck"].queue, rel=1e-4)
    assert float(rows["tcp"][2]) == pytest.approx(rest.flows["tcp"].window[0], rel=1e-4)
    assert rows["group"][3] == "rtt [ms]"


def test_a_notebook_shows_the_first_points_of_a_grid_and_computes_nothing(monkeypatch):
    found = stability_map()
    many = fc.StabilityMap(
        {PATH: tuple(range(100))}, {PATH: "1"}, tuple(found.points[0] for _ in range(100)), 100
    )
    shown = notebook(many._repr_html_())
    assert sum("│" in line for line in shown) == 12 + 1 and "… and 88 more" in shown[-2]
    assert shown[0].strip() == "100 points"

    def computed(self):
        raise AssertionError("computed")

    for name in ("outside", "windows"):
        monkeypatch.setattr(fc.Comparison, name, property(computed))
    assert "goodput" in comparison()._repr_html_()


def test_a_large_sweep_is_cut_before_it_is_laid_out():
    """The table has the points in the order of the grid, the last axis fastest."""
    import xarray as xr

    axes = {"flow.n": tuple(range(5)), PATH: tuple(range(7))}
    values = np.arange(35.0).reshape(5, 7)
    data = xr.Dataset(
        {"queue": (tuple(axes), values, {"units": "packet"})},
        {path: list(own) for path, own in axes.items()},
    )
    (own,) = fc.SweepData(axes, dict.fromkeys(axes, "1"), data).tables(9)
    assert own.hidden == 26 and own.title == "35 points"
    assert [row[2] for row in own.rows] == [Number(float(k)) for k in range(9)]
    assert own.rows[8][:2] == (Number(1), Number(1))
    assert [c.heading for c in own.columns] == ["flow.n", PATH, "queue [packet]"]


def test_html_is_escaped():
    own = blocks.table("a < b", "<script>")
    own.add_row("1 & 2")
    source = html([blocks.Line("<b>", "bad"), own])
    assert "<script>" not in source and "&lt;script&gt;" in source and "1 &amp; 2" in source


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Number(0.98765, half=0.0123), r"$0.988 \pm 0.012$"),
        (Number(123.456, half=4.567), r"$123.5 \pm 4.6$"),
        (Number(1234.5, half=123.4), r"$1230 \pm 120$"),
        (Number(9.996, half=0.0996), r"$10.00 \pm 0.10$"),
        (Number(1.23456e-5, half=2.5e-7), r"$(1.235 \pm 0.025) \times 10^{-5}$"),
        (Number(2.0, half=0.0), r"$2 \pm 0$"),
        (Number(None), "--"),
        (Number(1.5e-7), r"$1.5 \times 10^{-7}$"),
        (Number(float("inf")), r"$\infty$"),
        (Number(float("nan")), "--"),
        (Number(-3), "$-3$"),
        (Span(1.0, 2.5), r"$1$ \dots{} $2.5$"),
        (blocks.verdict(True, "50 % & more_"), r"50 \% \& more\_"),
        (
            r"a\b{c}~^#$|<>",
            r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\#\$$|$$<$$>$",
        ),
    ],
)
def test_cells_of_latex(cell, shown):
    assert tex._cell(cell) == shown


def test_packets_have_intervals_and_their_units_beside_them():
    rows = [line.split(" & ") for line in packets().to_latex().splitlines() if " & " in line]
    known = {row[0]: row[1:] for row in rows}
    assert known["queue\\_mean"] == ["packet", r"$123.5 \pm 4.6$ \\"]
    assert known["goodput"] == ["kbit/s", r"$234.6 \pm 1.2$ \\"]
    assert known["window\\_mean"] == ["packet", r"$15.5$ \\"]
    assert known["utilization"] == ["", r"$0.988 \pm 0.012$ \\"]


def test_units_have_superscripts_beside_and_above_their_numbers():
    own = blocks.table("", "metric", "unit", ("x", "1/s^2"))
    own.add_row("a", *blocks.in_row("packet^2", Measured(4.0)))
    source = tex.latex([own])
    assert "metric & unit & x [1/s$^{2}$]" in source and "a & packet$^{2}$ & $4$" in source


def test_grids_have_symbols_and_units_in_their_headings():
    """Where laws differ in the symbol the path stands."""
    assert r"$d$ [s] & status & bottleneck: queue [packet]" in sweep().to_latex()
    assert r"$N$ & $w_q$ & status" in stability_map().to_latex()
    for path, label in (
        ("links.a.queue.min_th", r"$q_{\min}$ (links.a)"),
        ("flows.mod.n", "$N$ (flows.mod)"),
        ("link.queue.increase", "link.queue.increase"),
        ("queue", "queue"),
    ):
        assert tex._cell(blocks.Path(path)) == label
    own = blocks.table("", blocks.parameter("link.delay"), blocks.parameter("link.delay"))
    assert tex.latex([own]).count("link.delay") == 2  # a symbol would not tell them apart


def test_long_tables_break_over_pages():
    own = blocks.table("many", "k")
    for k in range(61):
        own.add_row(str(k))
    source = tex.latex([own])
    assert source.count("longtable}") == 3 and r"\endhead" in source and "tabular" not in source


def test_commands_write_tables_with_their_origin(run, tmp_path):
    words = ("equilibrium", "hollot2001/slow", "--over", "flow.n=40,60", "--out", "t.tex")
    code, out, _ = run(*words)
    source = (tmp_path / "t.tex").read_text()
    assert code == 0 and "2 points" in out
    for line in ("% command: fluidcc", "% scenario: ", "% fluidcc: ", r"\toprule"):
        assert line in source
    queue = fc.equilibrium(fc.replace(NET, {"flow.n": 60})).links["bottleneck"].queue
    assert f"$60$ & interior & ${queue:.5g}$" in source
    code, _, err = run("equilibrium", "hollot2001/slow", "--out", "t.txt")
    assert code == 2 and ".tex" in err


def test_commands_refuse_pictures_in_a_sentence(run):
    words = ("equilibrium", "hollot2001/slow", "--set", "flow.n=60")
    axes = ("--over", "flow.n=40,60", "--over", "link.delay=0.1", "--over", f"{PATH}=1e-6")
    code, _, err = run("map", *words[1:2], *axes, "--plot", "map.png")
    assert code == 2 and "a result that has a picture" in err and "choose two" in err


def test_columns_of_csv_are_named_by_their_groups(tmp_path):
    for name, heads in (
        ("Equilibrium", {"window[tcp] (packet)", "group[tcp]"}),
        ("Cycles", {"point", "period (s)"}),
        ("Gradient", {"parameter", "derivative"}),
        ("PacketRuns", {"goodput_flows[tcp 1] (bit/s)", "goodput_flows[tcp 2] (bit/s)"}),
    ):
        write(made(name).to_dataset(), tmp_path / "t.csv", ROWS, {})
        with (tmp_path / "t.csv").open() as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        assert heads <= set(rows[0]), (name, list(rows[0]))


def test_sweeps_in_chunks_write_tables_with_their_origin(run, tmp_path):
    words = ("sweep", "equilibrium", "hollot2001/slow", "--over", "flow.n=40,60")
    code, _, _ = run(*words, "--workers", "0", "--out", "t.tex")
    source = (tmp_path / "t.tex").read_text()
    assert code == 0 and "% verb: fluidcc.analysis.equilibrium.equilibrium" in source
    queue = fc.equilibrium(fc.replace(NET, {"flow.n": 60})).links["bottleneck"].queue
    (row,) = [line for line in source.splitlines() if line.startswith("$60$")]
    assert f"${queue:.5g}$" in row and "queue[bottleneck] [packet]" in source


def test_one_table_has_every_quantity_that_engines_report():
    """No name stands for two quantities of a kind in one engine; data sets have its words."""
    for engine in ("rest", "fluid", "packets", "series"):
        names = [(q.kind, getattr(q, engine)) for q in quantities.TABLE if getattr(q, engine)]
        assert len(names) == len(set(names))
    for run, kind in ((LinkRun, "links"), (FlowsRun, "flows")):
        assert {f.name for f in dataclasses.fields(run)} - {"n"} == {
            *quantities.units("fluid", kind)
        }
    queue = made("Trajectory").to_dataset()["bottleneck.queue"]
    assert queue.attrs["units"] == "packet" and "in service" in queue.attrs["long_name"]
