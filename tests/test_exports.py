"""Results as tables: LaTeX, HTML for notebooks, CSV, pandas; their files, and the way back."""

import dataclasses
import json
import re
from html import unescape

import numpy as np
import pytest
import xarray as xr
from result_cases import NET, RESULTS, made

import fluidcc as fc
from fluidcc import quantities
from fluidcc.model.simulate import FlowsRun, LinkRun
from fluidcc.results import blocks, tex
from fluidcc.results.blocks import Number, Span, Table
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


def test_one_table_has_every_quantity_that_engines_report():
    """No name stands for two quantities of a kind in one engine; data sets have its words."""
    for engine in ("equilibrium", "fluid", "packets", "series"):
        names = [(q.kind, getattr(q, engine)) for q in quantities.TABLE if getattr(q, engine)]
        assert len(names) == len(set(names))
    for run, kind in ((LinkRun, "links"), (FlowsRun, "flows")):
        assert {f.name for f in dataclasses.fields(run)} - {"n"} == {
            *quantities.units("fluid", kind)
        }
    queue = made("Trajectory").to_xarray()["bottleneck.queue"]
    assert queue.attrs["units"] == "packet" and "in service" in queue.attrs["long_name"]


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
    for k, found in enumerate((made("Equilibrium"), made("Trajectory"), made("Stability"))):
        found.save(tmp_path / f"{k}.nc")
        assert fc.loads(fc.load_result(tmp_path / f"{k}.nc").scenario) == net
    made("PacketRuns").save(tmp_path / "runs.nc", net=net)
    assert fc.loads(fc.load_result(tmp_path / "runs.nc").scenario) == net


def test_pictures_are_saved_as_they_are_drawn(tmp_path):
    found = made("Equilibrium")
    assert found.plot(width=3.5).get_figwidth() == 3.5
    found.save(tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text()
    with pytest.raises(TypeError, match="no picture"):
        made("LawReport").save(tmp_path / "x.png")


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


def test_networks_and_sweeps_print_as_tables():
    net, grid = fc.load("misra2003/mixed"), made("Sweep")
    shown = repr(net)
    for words in ("capacity [packet/s]", "rtt [s]", "0.025 … 0.25", "ecn_mod", "p_max = 0.2"):
        assert words in shown and words in unescape(net._repr_html_())
    assert r"\toprule" in net.to_latex()
    lines = repr(grid).splitlines()
    assert lines[1].split()[:2] == ["link.delay", "[s]"] and len(lines) == 6
    assert lines[-1].startswith("failed at link.delay = -1")
