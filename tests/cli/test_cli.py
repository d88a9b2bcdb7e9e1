"""Commands: their JSON, files and pictures."""

import csv
import dataclasses
import json
import math
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr

from fluidcc.analysis.crossings import Crossings, Gap
from fluidcc.scenario.typed import Faults, count, seconds, value_of

SLOW = "hollot2001/slow"


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
    ranges = {k: v["range"] for k, v in laws["queue"]["red"]["parameters"].items()}
    assert ranges["w_q"] == "(0, 1)" and ranges["gentle"] == ["true", "false"]
    assert ranges["spreading"] == list(laws["spreading"])
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


KEYS = {"crossings", "stable_at_low", "certified", "gaps"}
GAPS = (Gap(10.0, 194.4, "saturated"),)


@pytest.mark.parametrize(
    ("changes", "says", "hides"),
    [
        ({"stable_at_low": True}, ["stable (certified)", "No change"], ["without a verdict"]),
        ({"gaps": GAPS}, ["194.4", "saturated", "x [packet]", "no verdict"], ["No change"]),
        ({"certified": False}, ["not certified"], ["No change"]),
    ],
)
def test_crossings_shows_what_is_not_known(changes, says, hides):
    nothing = Crossings("x", "packet", 1.0, 2.0, (), (), (), None, True)
    text = repr(dataclasses.replace(nothing, **changes))
    assert all(word in text for word in says), text
    assert not any(word in text for word in hides), text


def test_crossings_over_a_grid_gives_points(run, monkeypatch):
    from fluidcc.analysis.crossings import Crossings

    def found(net, path, low, high):
        return Crossings(path, "1", low, high, (), (), (), bool(net.flows[0].n[0] > 50), True)

    monkeypatch.setattr("fluidcc.crossings", found)
    words = ("crossings", SLOW, "link.queue.w_q=5e-5:2e-4")
    code, out, _ = run(*words, "--over", "flow.n=40,60", "--json")
    points = json.loads(out)["points"]
    assert code == 0
    assert [(p["set"], p["stable_at_low"]) for p in points] == [
        ({"flow.n": 40}, False), ({"flow.n": 60}, True),
    ]  # fmt: skip
    code, out, _ = run(*words, "--over", "flow.n=40,60")
    assert code == 0 and "parts without a verdict" in out
    assert set(json.loads(run(*words, "--json")[1])) == KEYS


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

    monkeypatch.setattr("fluidcc.boundary", found)
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

    name = {"compare": "compare", "packets": "simulate_packets"}[verb]
    monkeypatch.setattr(f"fluidcc.{name}", stop)
    assert run(verb, SLOW, *words)[0] == 2
    assert told == [times]


def test_version(run):
    code, out, _ = run("--version", heavy=False)
    assert code == 0 and out == f"fluidcc {version('fluidcc')}\n"


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


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("true", True), ("inf", math.inf), ("5 ms", "5 ms"),
     ("[1, 2]", [1, 2]), ("wait", "wait"), (" .5", 0.5), ("-5.", -5.0), ("1.2.3", "1.2.3"),
     ("{ min = 1, max = 2 }", {"min": 1, "max": 2})],
)  # fmt: skip
def test_values_are_read_as_in_a_scenario(text, value):
    assert value_of(text) == value


def test_options_of_time_and_count():
    faults = Faults()
    assert seconds("--until", "500 ms", faults) == 0.5
    assert count("--seeds", "12", faults) == 12
    assert count("--seed", "0", faults, least=0) == count("--seed", "000", faults, least=0) == 0
    assert not faults.found
    assert count("--seeds", "0", faults) == 1 and count("--seed", "", faults, least=0) == 0
    assert len(faults.found) == 2


def test_stability_without_a_verdict_says_why_and_gives_the_relay_cycle(run):
    code, out, _ = run("stability", "durresi2001/two_tail_59ms")
    assert code == 0
    assert "unknown" in out and "relay cycle" in out and "period" in out
