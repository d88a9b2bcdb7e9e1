"""Commands: their JSON, files, pictures, exit codes, and what they say about wrong use."""

import csv
import importlib
import json
import math
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from fluidcc.cli import report
from fluidcc.cli.app import app
from fluidcc.cli.options import Faults, count, seconds, value_of

SLOW = "hollot2001/slow"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command; its exit code, standard output and standard error."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*words, heavy=True):
        extra = ["--no-fast-cpu"] if heavy else []
        result = CliRunner().invoke(app, [*words, *extra])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call


def test_help_imports_nothing_heavy():
    heavy = ("jax", "xarray", "matplotlib", "numba", "sympy", "numpy", "scipy", "rich", "pandas")
    code = (
        "import sys\nfrom fluidcc.cli import main\nsys.argv = ['fluidcc', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print('imported', [m for m in {heavy!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "crossings" in out.stdout
    assert out.stdout.splitlines()[-1] == "imported []"


def test_every_scenario_is_listed(run):
    code, out, _ = run("list", "--json", heavy=False)
    assert code == 0
    assert {"misra2003/mixed", "misra2003/besteffort", SLOW} <= set(json.loads(out)["scenarios"])
    assert SLOW in run("list", heavy=False)[1]


def test_every_law_is_listed_with_its_ranges(run):
    laws = json.loads(run("list", "laws", "--json", heavy=False)[1])["laws"]
    assert laws["queue"]["red"]["parameters"]["w_q"]["range"] == "(0, 1)"
    assert "ecn_mod" in run("list", "laws", heavy=False)[1]
    code, _, err = run("list", "law", heavy=False)
    assert code == 2 and "did you mean 'laws'?" in err


def test_show_gives_units_sources_and_equations(run):
    out = run("show", SLOW, heavy=False)[1]
    assert "3750" in out and "packet/s" in out and "Control Theoretic" in out
    shown = json.loads(run("show", SLOW, "--json", "--set", "flow.n=7", heavy=False)[1])
    assert shown["scenario"]["flows"]["tcp"]["n"] == 7
    assert {"hollot2001", "misra2000", "floyd1993"} <= set(shown["citations"])
    assert r"\begin{align*}" in run("show", SLOW, "--latex", heavy=False)[1]


def test_equilibrium_prints_one_json_object_at_full_precision(run):
    code, out, err = run("equilibrium", SLOW, "--json")
    assert (code, err) == (0, "")
    (point,) = json.loads(out)["points"]
    assert point["status"] == "interior" and point["set"] == {}
    queue, window = point["links"]["bottleneck"]["queue"], point["flows"]["tcp"]["window"]
    # theory of the MGT model: a cubic for q, p = 2/W^2
    assert (queue - 150) * (3750 * 0.2 + queue) ** 2 == pytest.approx(2 * 60**2 * 550 / 0.1)
    assert window == [pytest.approx(15.740000403380, rel=1e-10)]


def test_a_failed_point_is_named_and_the_others_go_on(run, tmp_path):
    words = ("equilibrium", SLOW, "--over", "link.queue.min_th=150,160,800", "--set", "flow.n=50")
    code, out, err = run(*words, "--json", "--out", "grid.nc")
    points = json.loads(out)["points"]
    assert code == 3
    assert [p["status"] for p in points] == ["interior", "interior", "failed"]
    assert points[1]["set"] == {"flow.n": 50, "link.queue.min_th": 160}
    assert err.startswith("failed at link.queue.min_th = 800: ") and "min_th < max_th" in err
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as data:
        assert data["queue"].dims == ("link.queue.min_th", "link")
        assert data["queue"].attrs["units"] == "packet"
        assert math.isnan(data["queue"].values[2, 0])
        assert "[flows.tcp]" in data.attrs["scenario"] and data.attrs["fluidcc"]


def test_a_grid_is_written_as_one_row_per_point(run, tmp_path):
    over = ("--over", "flow.n=40:60:10", "--over", "link.delay=40 ms,50 ms")
    code, out, _ = run("equilibrium", SLOW, *over, "--out", "grid.csv", "--plot", "grid.png")
    assert code == 0 and "6 points" in out
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [(row["flow.n"], row["link.delay (s)"]) for row in rows[:3]] == [
        ("40", "0.04"), ("40", "0.05"), ("50", "0.04"),
    ]  # fmt: skip
    assert len(rows) == 6 and float(rows[5]["queue[bottleneck] (packet)"]) > 190
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_stability_tells_roots_margins_and_verdict(run):
    code, out, _ = run("stability", "hollot2001/fast", "--json", "--plot", "roots.svg")
    (point,) = json.loads(out)["points"]
    assert code == 0
    assert (point["stable"], point["unstable"], point["certified"]) == (False, 2, True)
    assert point["rightmost"] == point["roots"][0] and point["rightmost"][0] > 0
    assert point["phase_margin"] < 0 and point["equilibrium"]["status"] == "interior"


def test_gradient_tells_a_quantity_and_its_derivatives(run):
    words = ("gradient", "hollot2001/fast", "queue", "flow.n", "link.queue.w_q")
    code, out, _ = run(*words, "--json")
    found = json.loads(out)
    assert (code, found["status"], found["unit"]) == (0, "ok", "packet")
    assert found["derivatives"]["flow.n"] > 0 and found["derivatives"]["link.queue.w_q"] == 0
    code, out, _ = run(*words)
    assert code == 0 and "flow.n" in out and "(packet) / (1)" in out
    code, _, error = run("gradient", "hollot2001/fast", "phase_margn", "flow.n")
    assert code == 2 and "phase_margin" in error


def test_crossings_finds_the_hopf_point(run):
    words = ("crossings", SLOW, "link.queue.w_q=5e-5:2e-4", "--json", "--plot", "c.pdf")
    code, out, _ = run(*words, "--out", "c.csv")
    found = json.loads(out)
    assert code == 0 and found["stable_at_low"] is True
    (hopf,) = found["crossings"]
    assert hopf["value"] == pytest.approx(1.048513e-4, rel=1e-6)
    assert hopf["frequency"] == pytest.approx(1.341540, rel=1e-6)
    assert hopf["becomes"] == "unstable"


CROSSED = {"crossings": [], "stable_at_low": None, "certified": True, "gaps": []}
GAP = {"low": 10.0, "high": 194.4, "status": "saturated"}


@pytest.mark.parametrize(
    ("changes", "says", "hides"),
    [
        ({"stable_at_low": True}, ["stable (certified)", "No change"], ["without a verdict"]),
        ({"gaps": [GAP]}, ["194.4", "saturated", "x [packet]", "no verdict"], ["No change"]),
        ({"certified": False}, ["not certified"], ["No change"]),
    ],
)
def test_crossings_shows_what_is_not_known(changes, says, hides, capsys):
    out = report.console()
    for part in report.crossings(CROSSED | changes, "x", "packet"):
        out.print(part)
    text = capsys.readouterr().out
    assert all(word in text for word in says), text
    assert not any(word in text for word in hides), text


def test_crossings_over_a_grid_gives_points(run, monkeypatch):
    from fluidcc.analysis.crossings import Crossings

    def found(net, path, low, high):
        return Crossings(path, "1", low, high, (), (), (), bool(net.flows[0].n[0] > 50), True)

    monkeypatch.setattr("fluidcc.analysis.crossings.crossings", found)
    words = ("crossings", SLOW, "link.queue.w_q=5e-5:2e-4")
    code, out, _ = run(*words, "--over", "flow.n=40,60", "--json")
    points = json.loads(out)["points"]
    assert code == 0
    assert [(p["set"], p["stable_at_low"]) for p in points] == [
        ({"flow.n": 40}, False), ({"flow.n": 60}, True),
    ]  # fmt: skip
    code, out, _ = run(*words, "--over", "flow.n=40,60")
    assert code == 0 and "parts without a verdict" in out
    assert set(json.loads(run(*words, "--json")[1])) == set(CROSSED)


def test_boundary_prints_curves_and_takes_two_ranges(run, monkeypatch):
    from fluidcc.analysis.boundary import Boundary, BoundaryCurve

    def found(net, x, y, x_range, y_range):
        sides = np.array([1e-4, 2e-4]), np.array([0.1, 0.2]), np.array([1.3, np.nan])
        curve = BoundaryCurve(*sides, "hopf", 0, 2, True, ("edge", "regime"))
        grid = (np.array(x_range), np.array(y_range))
        return Boundary(
            (x, y), ("1", "1"), (tuple(x_range), tuple(y_range)), (curve,), (), grid,
            np.array([[0.0, 2.0], [0.0, np.nan]]), "ok", "", True,
        )  # fmt: skip

    monkeypatch.setattr("fluidcc.analysis.boundary.boundary", found)
    words = ("boundary", SLOW, "link.queue.w_q=5e-5:2e-4", "link.queue.p_max=0.05:0.2")
    code, out, _ = run(*words, "--json", "--out", "edge.csv", "--plot", "edge.png")
    result = json.loads(out)
    assert code == 0
    assert result["curves"][0]["x"] == [1e-4, 2e-4]
    assert result["curves"][0]["frequency"] == [1.3, None]
    assert result["grid"]["unstable"] == [[0.0, 2.0], [0.0, None]]
    code, out, _ = run(*words)
    assert code == 0 and "1 curves (certified)" in out and "edge, regime" in out
    code, out, _ = run(*words, "--over", "flow.n=40,60", "--out", "edges.nc")
    assert code == 0 and "greatest frequency" in out
    code, _, err = run(*words[:3])
    assert code == 2 and "two ranges" in err
    code, _, err = run(*words[:3], "link.queue.pmax=0:1")
    assert code == 2 and "p_max" in err and err.count("boundary") == 1


@pytest.mark.parametrize(
    ("words", "times"),
    [((), (60.0, 20.0, 5)), (("--until", "6", "--seeds", "2"), (6.0, 2.0, 2)),
     (("--warmup", "0"), (60.0, 0.0, 5))],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["compare", "packets"])
def test_times_and_seeds_have_defaults(run, monkeypatch, verb, words, times):
    told = []

    def stop(net, *, until, warmup, seeds, progress=None, trajectory=True):
        told.append((until, warmup, len(seeds)))
        raise ValueError("enough")

    module, name = {
        "compare": ("fluidcc.compare", "compare"),
        "packets": ("fluidcc.packets.run", "simulate_packets"),
    }[verb]
    monkeypatch.setattr(importlib.import_module(module), name, stop)
    assert run(verb, SLOW, *words)[0] == 2
    assert told == [times]


def test_version_and_the_list_of_figures(run):
    code, out, _ = run("--version", heavy=False)
    assert code == 0 and out == f"fluidcc {version('fluidcc')}\n"
    assert json.loads(run("list", "figures", "--json", heavy=False)[1]) == {"figures": []}


def test_simulate_gives_trajectories(run, tmp_path):
    code, out, _ = run("simulate", SLOW, "--until", "5 s", "--json", "--out", "run.csv")
    found = json.loads(out)
    assert code == 0
    assert found["time"][-1] == 5.0 and len(found["links"]["bottleneck"]["queue"]) == 1001
    assert len(found["flows"]["tcp"]["window"][0]) == 1001
    rows = [r for r in (tmp_path / "run.csv").read_text().splitlines() if not r.startswith("#")]
    assert rows[0].startswith("time (s),") and len(rows) == 1002


def test_compare_sets_fluid_beside_packets(run, tmp_path):
    words = ("--until", "8", "--warmup", "4 s", "--seeds", "2", "--plot", "both.png", "--json")
    code, out, _ = run("compare", SLOW, *words, "--out", "both.csv")
    assert code == 0
    found = json.loads(out)
    rows = {row["name"]: row for row in found["rows"]}
    packets, half = (found["packets"][part]["flows"]["tcp"]["goodput"] for part in ("mean", "ci95"))
    goodput = rows["flows.tcp.goodput"]
    assert (goodput["packets"], goodput["ci95"], goodput["unit"]) == (packets, half, "bit/s")
    assert goodput["difference"] == pytest.approx(goodput["fluid"] / packets - 1)
    queue = found["equilibrium"]["links"]["bottleneck"]["queue"]
    assert rows["links.bottleneck.queue"]["equilibrium"] == queue
    assert found["fluid_status"] == "ok" and found["outside"] == []
    assert (tmp_path / "both.png").stat().st_size > 10_000


def test_compare_tells_what_the_fluid_model_says_against_itself(run, tmp_path):
    words = ("--until", "4", "--seeds", "1", "--no-trajectory", "--set", "flow.n=600")
    files = ("--out", "both.nc", "--plot", "both.svg")
    code, out, _ = run("compare", SLOW, *words, *files)
    assert code == 0
    assert "Equilibrium: saturated (no smooth equilibrium" in out
    assert "Outside of what the fluid model holds for:" in out
    assert "everything is dropped" in out and "steps of whole packets" in out
    kept = xr.load_dataset(tmp_path / "both.nc", engine="h5netcdf")
    assert np.isnan(kept["fluid"]).all() and kept.attrs["status"] == "saturated"
    assert "everything is dropped" in kept.attrs["outside"]
    assert (tmp_path / "both.svg").stat().st_size > 10_000


def test_packets_gives_runs_means_and_intervals(run):
    code, out, _ = run("packets", SLOW, "--until", "4", "--seeds", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert [r["seed"] for r in found["runs"]] == [1, 2]
    assert {"utilization", "queue_mean", "queue_var"} <= set(found["mean"]["links"]["bottleneck"])
    assert set(found["ci95"]["flows"]["tcp"]) == set(found["mean"]["flows"]["tcp"])


def test_packets_writes_series_traces_and_a_table(run, tmp_path):
    words = ("--until", "4", "--seeds", "2", "--sample", "500 ms", "--trace", "events.csv")
    code, out, _ = run("packets", SLOW, *words, "--out", "series.csv", "--plot", "series.png")
    assert code == 0 and "utilization" in out and "±" in out
    assert "voice" not in out and "transfer" not in out  # no metrics of what is not there
    lines = (tmp_path / "series.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) == 2 * 9
    assert [float(row["time (s)"]) for row in rows[::2]] == [0.5 * k for k in range(9)]
    assert max(float(row["link_queue[bottleneck] (packet)"]) for row in rows) > 10
    with (tmp_path / "events.csv").open() as file:
        events = {row["event"] for row in csv.DictReader(file)}
    assert {"send", "enter", "leave", "receive", "ack", "window"} <= events
    assert (tmp_path / "series.png").stat().st_size > 10_000
    code, out, _ = run("packets", SLOW, *words[:-2], "--out", "series.nc", "--json")
    with xr.open_dataset(tmp_path / "series.nc", engine="h5netcdf") as data:
        mean = json.loads(out)["mean"]["links"]["bottleneck"]["queue_mean"]
        assert data["link_queue_mean"].mean().item() == pytest.approx(mean, rel=1e-12)
        assert data["link_queue"].sizes == {"seed": 2, "time": 9, "link": 1}


def test_an_interrupt_keeps_what_is_finished(run, monkeypatch):
    """Ctrl-C after the first run."""
    from fluidcc.packets import run as packets

    def wait(jobs, watch, progress):
        jobs[0].result()
        raise KeyboardInterrupt

    monkeypatch.setattr(packets, "_wait", wait)
    code, out, err = run("packets", SLOW, "--until", "60", "--seeds", "12", "--json")
    found = json.loads(out)
    assert code == 3 and found["status"] == "interrupted"
    assert found["runs"][0]["seed"] == 1 and len(found["runs"]) < 12
    assert "did not" in err and err.startswith("failed: interrupted: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["equilibrium", "hollot2001/slwo"], ["did you mean 'hollot2001/slow'"]),
        (
            ["simulate", SLOW, "--set", "flow.m=3", "--over", "link.q=1", "--out", "x.txt",
             "--plot", "nodir/x.png"],
            ["--set: flow.m", "--over: link.q: expected a path",
             "--out: expected a file that ends in .nc, .csv, got 'x.txt'",
             "--plot: expected a file in a folder that exists"],
        ),
        (
            ["compare", SLOW, "--until", "5 kB", "--warmup", "-1", "--seeds", "0", "--over", "x"],
            ["--until: expected a number in s", "--warmup: expected a time in [0, inf) s",
             "--seeds: expected a whole number of at least 1", "--over: expected PATH=VALUE"],
        ),
        (["compare", SLOW, "--until", "5", "--warmup", "5"], ["a time before --until (5 s)"]),
        (["packets", SLOW, "--until", "5", "--over", "link.delay=1:2"], ["A:B:STEP or v1,v2"]),
        (
            ["packets", SLOW, "--sample", "1 kB", "--trace", "no/x.txt", "--over", "flow.n=1,2"],
            ["--sample: expected a number in s", "--sample: expected --out or --plot",
             "--trace: expected a file that ends in .csv", "--trace: expected a file in a folder",
             "--sample and --trace: expected no --over"],
        ),
        (["packets", SLOW, "--sample", "1e-9", "--out", "x.nc"], ["sample: expected at least"]),
        (["packets", SLOW, "--until", "5", "--over", "link.delay=2:1:1"], ["A <= B and STEP > 0"]),
        (["equilibrium", SLOW, "--over", "link.dely=1"], ["did you mean 'link.delay'"]),
        (["equilibrium", SLOW, "--over", "link.delay=1 kB"], ["--over: link.delay: "]),
        (["equilibrium", SLOW, "--set", "flow.n=1", "--set", "flow.n=2"], ["each path once"]),
        (["equilibrium", SLOW, "--set", "link.delay=1 kB"], ["--set: links.bottleneck.delay"]),
        (["equilibrium", SLOW, "--over", "link.queue.p_max=0.1,7"], ["--over: link.queue.p_max: "]),
        (["equilibrium", SLOW, "--over", "link.queue.p_max=0.5:2:0.5"], ["(0, 1], got 2"]),
        (["equilibrium", SLOW, "--over", "flow.n=1:1e12:1"], ["flow.n: expected at most 100000"]),
        (
            ["equilibrium", SLOW, "--over", "flow.n=1:1e3:1", "--over", "link.buffer=1:1e3:1"],
            ["--over: expected a grid of at most 100000 points, got 1000000 points"],
        ),
        (["equilibrium", SLOW, "--over", "link.queue.pole=capacty"], ["did you mean 'capacity'?"]),
        (["equilibrium", SLOW, "--over", "link.delay=,"], ["A:B:STEP or v1,v2"]),
        (["equilibrium", SLOW, "--set", "title=x"], ["--set: title: ", "did you mean"]),
        (["crossings", SLOW, "foo=1:2"], ["crossings: foo: ", "did you mean"]),
        (["equilibrium", SLOW, "--over", "foo=1:2:1"], ["--over: foo: ", "did you mean"]),
        (["equilibrium", SLOW, "--set", "link.delay=1979-05-27"], ["got 1979-05-27"]),
        (["crossings", SLOW, "link.queue.w_q=1"], ["expected PATH=LO:HI"]),
        (["crossings", SLOW, "link.queue.w_q=2:1"], ["expected LO < HI"]),
        (["crossings", SLOW, "link.queue.law=1:2"], ["the path of a number"]),
        (["crossings", SLOW, "link.queue.wq=1:2"], ["did you mean 'link.queue.w_q'"]),
    ],
)  # fmt: skip
def test_wrong_use_ends_with_2_and_every_fault(run, words, says):
    code, out, err = run(*words)
    assert code == 2 and out == ""
    assert all(line.startswith("error: ") for line in err.splitlines())
    assert all(text in err for text in says), err


def test_files_that_cannot_be_written_are_told_before_anything_runs(run, tmp_path):
    (tmp_path / "dir.csv").mkdir()
    words = ("equilibrium", SLOW, "--out", "dir.csv", "--plot", "/dev/fd/none.png")
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "--out: expected a file, got the folder 'dir.csv'" in err
    assert "--plot: expected a file" in err and len(err.splitlines()) == 2


def test_a_file_that_fails_while_it_is_written_is_one_fault(run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluidcc.results.write", full)
    code, out, err = run("equilibrium", SLOW, "--json", "--out", "x.csv")
    assert code == 2 and json.loads(out)["points"]
    said = "expected a file that can be written, got 'x.csv' (No space left on device)"
    assert err == f"error: --out: {said}\n"


def test_faults_of_a_file_name_it(run, tmp_path):
    (tmp_path / "mine.toml").write_text("[links.x]\ncapacity = 'fast'\n[flows.y]\nn = 0\n")
    code, _, err = run("equilibrium", "mine.toml", "--json")
    assert code == 2
    assert len(err.splitlines()) >= 5
    assert all(line.startswith("error: mine.toml: ") for line in err.splitlines())
    assert "links.x.capacity" in err and "flows.y.n" in err and "flows.y.window" in err


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("true", True), ("inf", math.inf), ("5 ms", "5 ms"),
     ("[1, 2]", [1, 2]), ("wait", "wait"), ("{ min = 1, max = 2 }", {"min": 1, "max": 2})],
)  # fmt: skip
def test_values_are_read_as_in_a_scenario(text, value):
    assert value_of(text) == value


def test_options_of_time_and_count():
    faults = Faults()
    assert seconds("--until", "500 ms", faults) == 0.5
    assert count("--seeds", "12", faults) == 12
    assert not faults.found


def test_stability_without_a_verdict_says_why_and_gives_the_relay_cycle(run):
    code, out, _ = run("stability", "durresi2001/two_tail_59ms")
    assert code == 0
    assert "unknown" in out and "relay cycle" in out and "period" in out
