"""Results as tables: LaTeX, HTML for notebooks, CSV, pandas; names, units and meanings of data;
files of results, and the way back.
"""

import dataclasses
import functools
import itertools
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from result_cases import NET, NUMBER, PATH, RESULTS, made

import fluidcc as fc
from fluidcc import quantities
from fluidcc.model.simulate import FlowsRun, LinkRun
from fluidcc.results import blocks, tex
from fluidcc.results.blocks import Number, Span, Table
from fluidcc.results.text import html, text


def notebook(source):
    """The lines of text that a notebook shows."""
    return unescape(re.sub("<[^>]*>", "", source)).splitlines()


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_shows_the_same_cells_everywhere(name):
    """A notebook has the text of each cell; LaTeX is balanced, and of as many rows."""
    result = made(name)
    blocks_of_latex = [*result.tables(), *result.view.details()]
    tables = [b for b in blocks_of_latex if isinstance(b, Table)]
    shown = "\n".join(notebook(result._repr_html_()))
    for block in result.tables(12):
        if isinstance(block, blocks.Line):
            assert block.text.strip() in shown
            continue
        heads = [part for c in block.columns for part in re.findall(r"[^ _.[]+", c.heading)]
        for row in [heads, *block.rows]:  # headings of wide tables are in lines
            assert all(blocks.text(cell) in shown for cell in row)
    drawn = [line for line in shown.splitlines() if line.startswith(("│", "┃"))]
    assert all(len(line) <= 115 for line in drawn)
    source = result.to_latex()
    body = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
    ends = [re.findall(rf"\\{word}{{(\w+)}}", body) for word in ("begin", "end")]
    assert ends[0] == ends[1] == ["tabular"] * len(tables)
    assert body.count("{") == body.count("}") and body.count("$") % 2 == 0
    titles = sum(bool(own.title) for own in tables) if len(tables) > 1 else 0
    assert body.count(r"\\") == sum(1 + len(own.rows) for own in tables) + titles
    unescaped = re.sub(r"\$[^$]*\$", "", body)
    assert not re.search(r"(?<!\\)[_#%]", unescaped)


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
        (Number(2.0, half=0.0), "$2$"),
        (Number(1e6, half=3.5e-10), r"$1 \times 10^{6}$"),
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


def test_commands_write_tables_with_their_origin(run, tmp_path):
    words = ("equilibrium", "hollot2001/slow", "--over", "flow.n=40,60", "--out", "t.tex")
    code, out, _ = run(*words)
    source = (tmp_path / "t.tex").read_text()
    assert code == 0 and "2 points" in out
    for line in ("% command: fluidcc", "% scenario: ", "% fluidcc: ", r"\toprule"):
        assert line in source
    queue = fc.equilibrium(fc.replace(NET, {"flow.n": 60})).links["bottleneck"].queue
    assert f"$60$ & regular & ${queue:.5g}$" in source
    code, _, err = run("equilibrium", "hollot2001/slow", "--out", "t.txt")
    assert code == 2 and ".tex" in err


def test_long_tables_are_cut_if_printed_and_whole_in_files(run, tmp_path):
    words = ("equilibrium", "hollot2001/slow", "--over", "flow.n=20:64:1")
    code, out, _ = run(*words, "--out", "t.tex")
    assert code == 0 and "… and 5 more rows: --out FILE has them all" in out
    assert out.count("│ regular") == 40
    assert (tmp_path / "t.tex").read_text().count("& regular &") == 45


def test_what_failed_is_printed_however_long_the_table_is():
    own = blocks.table("Checks", "check", "verdict")
    for k in range(60):
        own.add_row(f"check {k}", blocks.verdict(k != 50, "failed" if k == 50 else "ok"))
    shown = text([own])
    assert "check 39 " in shown and "check 50 " in shown and "check 40 " not in shown
    assert "… and 19 more rows: .to_pandas() has them all" in shown


UNCHECKED = {"BoundReport", "BoundReports", "EquationEquilibrium", "LawReport", "Solution",
             "Tradeoff", "WindowDistribution"}  # fmt: skip
"""Results that no command with --columns has."""


@pytest.mark.parametrize("name", sorted(RESULTS.keys() - UNCHECKED))
def test_columns_are_known_before_a_run(name):
    found, paths = made(name), ["r", "tau", PATH, NUMBER, "link.delay"]
    view = type(found).view_class()
    tables = [*found.tables(), *found.view.details()]
    heads = {c.name for own in tables if isinstance(own, Table) for c in own.columns}
    known = [*view.columns(NET, paths), "status"]
    known += made("Equilibrium").view.quantities(NET, paths) if name == "Sweep" else []
    assert heads - {""} <= {*known}
    if name not in ("Sweep", "SweepData", "StabilityMap"):
        sums = {key.split(" (")[0] for key in found.numbers()}  # of comparisons: (packets)
        rows = {row.name for row in found.rows} if name == "Comparison" else set()
        assert sums <= {*view.quantities(NET, paths)} | rows


def test_a_name_of_a_quantity_serves_everywhere():
    """The heading of a table, the column of a CSV file, LaTeX, and what is differentiated."""
    name = "links.bottleneck.queue"
    swept = fc.sweep(NET, {"flow.n": [40, 60]}, fc.equilibrium)
    assert name in {column.name for column in swept.tables()[0].columns}
    assert name in swept.to_pandas().columns
    for heading in (name, f"{name} [packet]", f"{name} (packet)"):
        columns = swept.to_latex(columns=["flow.n", heading])
        assert "queue $q$ of bottleneck [packet]" in columns
        assert fc.gradient(NET, heading, ["flow.n"]).of == name
    assert name in fc.equilibrium(NET).to_pandas().columns
    assert name in made("Trajectory").to_pandas().columns
    slope = fc.gradient(NET, name, ["flow.n"])
    low, high = (slope.value, *swept.to_pandas()[name][:1])
    assert slope.of == name and low == pytest.approx(float(swept.to_pandas()[name][1]))
    assert high < low and slope.derivatives["flow.n"] > 0
    labels = [ax.get_ylabel().replace("\n", " ") for ax in fc.plot(swept).get_axes()]
    assert "Queue $q$ of bottleneck [packet]" in labels


def test_round_trips_of_a_group_have_numbers_and_quantiles_their_share():
    net = fc.replace(NET, {"flow.n": [20, 40], "flow.rtt": [0.1, 0.2]})
    names = fc.equilibrium(net).to_pandas().columns
    assert {"flows.tcp.window[0]", "flows.tcp.window[1]", "links.bottleneck.queue"} <= {*names}
    assert "links.bottleneck.queueing_delay_95" in made("Fluctuations").to_pandas().columns


def test_tables_of_crossings_and_boundaries_have_symbols_and_points():
    sweep = functools.partial(fc.crossings, path=PATH, low=1e-6, high=1e-2)
    source = fc.sweep(NET, {"flow.n": [60]}, sweep).to_latex()
    assert "$N$ & crossings & first $w_q$ & " in source
    edge = made("Boundary")
    rows = edge.to_latex(columns=["curve", "r", "tau"]).count("\n1 & ")
    assert rows == len(edge.curves[0].x) and len(edge.curves) == 1


def test_columns_of_latex_are_taken_by_name():
    found = made("Equilibrium")
    source = found.to_latex(columns=["queue", "link"])
    assert r"queue $q$ [packet] & link" in source and "tcp" not in source
    with pytest.raises(ValueError, match=r"columns: expected columns among link, .*, got 'quue'"):
        found.to_latex(columns=["quue"])


def test_one_table_has_every_quantity_that_engines_report():
    """No name stands for two quantities of a kind in one engine; data sets have its words."""
    for engine in ("equilibrium", "fluid", "packets", "series"):
        names = [(q.kind, getattr(q, engine)) for q in quantities.TABLE if getattr(q, engine)]
        assert len(names) == len(set(names))
    for run, kind in ((LinkRun, "links"), (FlowsRun, "flows")):
        assert {f.name for f in dataclasses.fields(run)} - {"n"} == {
            *quantities.units("fluid", kind)
        }


DIMENSIONS = ("link_", "group_", "flow_")
STATISTICS = (
    "_mean", "_std", "_var", "_cov", "_min", "_max", "_p5", "_p50", "_p95", "_p99", "_p99_9",
    "_quantile", "_density", "_sampled", "_per_packet", "_fluid", "_bias",
)  # fmt: skip
WAITING = {"number_in_system": "queue"}
"""A queue of packets has waiting packets alone, as in ns-2; elsewhere it has the one in service."""


def base(name):
    """A name without the dimension before it and the statistics at its end."""
    name = re.sub(f"^({'|'.join(DIMENSIONS)})+", "", name)
    while (short := re.sub(f"({'|'.join(STATISTICS)})$", "", name)) != name:
        name = short
    return WAITING.get(name, name)


def test_names_of_a_quantity_differ_by_dimension_and_statistic_alone():
    for row in quantities.TABLE:
        assert len({base(name) for name in row.names}) == 1, row
        assert row.unit and row.meaning


def test_a_name_is_of_one_quantity():
    for row, other in itertools.combinations(quantities.TABLE, 2):
        if row.kind == other.kind:
            assert row.meaning != other.meaning
            for name in set(row.names) & set(other.names):
                assert base(name) == "queue" and name in (row.packets, other.packets)


def of_table(variable):
    """Whether the name of a variable, without its owner, is made from one of the table."""
    own = variable.removeprefix("slope of ").removesuffix(".course").rpartition(".")[2]
    bases = {base(name) for row in quantities.TABLE for name in row.names}
    return base(re.sub(r"_\d+$", "", own)) in bases


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_variables_of_data_sets_have_units_meanings_and_names_of_the_table(name):
    if not hasattr(made(name), "to_xarray"):
        pytest.skip("it has no data set")
    for variable, values in made(name).to_xarray().variables.items():
        assert values.attrs.get("units") and values.attrs.get("long_name"), variable
        own = values.attrs["long_name"] in (f"parameter {variable}", f"state {variable}")
        assert own or of_table(variable), variable


def test_series_and_spectra_have_them_too():
    runs = fc.simulate_packets(NET, until=2.0, warmup=1.0, sample=0.5)
    for data in (runs.to_xarray(), fc.fluctuations(NET).spectrum()):
        for variable, values in data.variables.items():
            assert values.attrs["units"] and values.attrs["long_name"] and of_table(variable)
    assert "waiting" in runs.to_xarray()["link_queue_cov"].attrs["long_name"]
    assert "at the link" in quantities.attributes("links", "queue_cov")["long_name"]


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_has_a_table_with_units_and_comes_back_from_its_file(name, tmp_path):
    result = made(name)
    table = result.to_pandas()
    assert len(table) and set(table.attrs["units"]) == set(table.attrs["meaning"]) == {*table}
    for ending in ("nc", "csv", "json", "tex"):
        result.save(tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").stat().st_size
    back = fc.load_result(tmp_path / "x.nc")
    given = result.to_xarray()
    assert set(back.variables) == set(given.variables) and back.attrs["command"]
    for key, variable in given.variables.items():
        assert back[key].dims == variable.dims
        np.testing.assert_array_equal(back[key].values.astype(variable.dtype), variable.values)
    lines = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if not line.startswith("# ")]) == 1 + len(table)
    assert json.loads((tmp_path / "x.json").read_text())["provenance"]["fluidcc"]


def test_a_result_that_knows_its_network_names_it(tmp_path):
    net = fc.load("hollot2001/slow")
    for name in ("Equilibrium", "Trajectory", "Stability", "PacketRuns", "TrainRuns"):
        made(name).save(tmp_path / f"{name}.nc")
        assert fc.loads(fc.load_result(tmp_path / f"{name}.nc").scenario) == net
    made("LawReport").save(tmp_path / "report.nc", net=net)
    assert fc.loads(fc.load_result(tmp_path / "report.nc").scenario) == net


def test_pictures_are_saved_as_they_are_drawn(tmp_path):
    found = made("Equilibrium")
    assert found.plot(width=3.5).get_figwidth() == 3.5
    found.save(tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text()
    with pytest.raises(TypeError, match="no picture"):
        made("LawReport").save(tmp_path / "x.png")


def test_a_table_in_another_file_is_refused_with_its_reader(tmp_path):
    made("Equilibrium").save(tmp_path / "x.csv")
    with pytest.raises(fc.ScenarioError, match=r"ends in \.nc \(pandas\.read_csv\(file, comment"):
        fc.load_result(tmp_path / "x.csv")
    read = pd.read_csv(tmp_path / "x.csv", comment="#")
    assert [c.partition(" (")[0] for c in read] == list(made("Equilibrium").to_pandas())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file.write_bytes(b"no"), "no netCDF file"),
        (lambda file: file.unlink(), "no such file"),
        (
            lambda file: xr.load_dataset(file).assign(queue=("link", [1.0])).to_netcdf(file),
            "damaged or changed",
        ),
    ],
)
def test_files_that_are_not_as_they_were_written_are_refused(tmp_path, spoil, message):
    file = tmp_path / "x.nc"
    made("Equilibrium").save(file)
    spoil(file)
    with pytest.raises(fc.ScenarioError, match=message):
        fc.load_result(file)
    with pytest.raises(fc.ScenarioError, match=r"save: expected a file that ends in \.nc, \.csv"):
        made("Equilibrium").save(tmp_path / "x.txt")


def test_wide_tables_have_headings_in_lines_and_then_parts_with_the_parameters():
    wide = blocks.Table("wide", (blocks.Column("flow.n", "1", True), blocks.Column("status")))
    names = [f"mark_probability[{k}]" for k in "abcdefghi"]
    wide.columns += tuple(blocks.Column(name, "packet") for name in names)
    wide.add_row(blocks.Number(40), "regular", *map(blocks.Number, range(9)))
    lines = text([wide]).splitlines()
    assert max(map(len, lines)) <= 115 and sum(line.startswith("flow.n") for line in lines) == 2
    assert [line.split() for line in lines if line.startswith("40")] == [
        ["40", "regular", *"0123456"], ["40", *"78"]
    ]  # fmt: skip


def test_notes_on_kinds_and_statuses_stand_where_these_are():
    found = made("Crossings")
    (first, *_) = found.crossings
    jump = dataclasses.replace(first, jump=True)
    note = "roots jump across the imaginary axis"
    assert note not in repr(found)
    assert note in repr(dataclasses.replace(found, crossings=(jump,)))
    cycle = dataclasses.replace(made("Cycle"), status="nonsmooth")
    assert "Cycle: stable, period 4 s, found by collocation between switches" in repr(cycle)
    assert "regular" not in made("Equilibrium").plot().subfigs[0].get_suptitle()


def test_networks_and_sweeps_print_as_tables():
    net, grid = fc.load("misra2003/mixed"), made("Sweep")
    shown = repr(net)
    for words in ("capacity", "[packet/s]", "rtt [s]", "0.025 … 0.25", "ecn_mod", "p_max = 0.2"):
        assert words in shown and words in unescape(net._repr_html_())
    assert r"\toprule" in net.to_latex()
    lines = repr(grid).splitlines()
    assert ["link.delay", "[s]", "status"] in [line.split()[:3] for line in lines[:6]]
    assert lines[-2].startswith("regular: increases and decreases balance")
    assert lines[-1].startswith("failed at link.delay = -1")
