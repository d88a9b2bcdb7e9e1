"""Commands: their JSON, files and pictures."""

import csv
import json
import math
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.scenario.parsing import value_of
from fluidcc.sweep import run as chunks

SLOW = "hollot2001/slow"


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


# -- The commands `sensitivity` and `windows`
IDLE = (
    "hollot2001/slow", "flow.rtt", "flow.initial.window", "--set", "link.capacity=1000000",
    "--set", "link.initial.queue=0", "--set", "link.initial.average=0",
)  # fmt: skip


def test_a_window_without_marks_has_the_slopes_of_its_growth(run, tmp_path):
    """One packet per round trip: W = 15 + t/R, so that dW/dR = -t/R^2 and dW/dW(0) = 1."""
    out = tmp_path / "slopes.nc"
    words = ("sensitivity", *IDLE, "--until", "2", "--after", "1", "--out", str(out), "--json")
    code, text, told = run(*words)
    assert code == 0, told
    found = json.loads(text)
    assert out.exists()
    for key, time in (("ends", 2.0), ("means", 1.5)):
        window = found[key]["flows.tcp.window"]
        assert window["value"] == pytest.approx(15 + time / 0.2, rel=1e-9)
        slopes = window["derivatives"]
        assert slopes["flow.rtt"] == pytest.approx(-time / 0.2**2, rel=1e-9)
        assert slopes["flow.initial.window"] == pytest.approx(1, rel=1e-9)


# -- The command `sweep`: files, chunks beside them, status, exit codes
GRID = ("--over", "flow.n=40:60:10", "--over", "link.delay=40 ms,50 ms")


def test_a_sweep_is_written_and_taken_up_again(run, tmp_path):
    words = ("sweep", "equilibrium", SLOW, *GRID, "--workers", "0", "--out", "grid.nc")
    code, out, err = run(*words)
    assert (code, out, err) == (0, "6 points, 0 failed: grid.nc\n", "")
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as data:
        data.load()
    expected = fc.sweep(
        fc.load(SLOW), {"flow.n": [40, 50, 60], "link.delay": [0.04, 0.05]}, fc.equilibrium
    ).to_dataset()
    assert np.array_equal(data["queue"].values, expected["queue"].values)
    assert data["link.delay"].attrs == {"units": "s"}
    assert fc.loads(data.attrs["scenario"]).title == fc.load(SLOW).title
    assert {"command", "fluidcc", "jax", "python", "verb", "options", "seeds"} <= set(data.attrs)

    code, out, _ = run(*words, "--status")
    assert code == 0 and "6 of 6 points done, 0 of them failed\n0 missing" in out
    next((tmp_path / "grid.nc.sweep").glob("chunk-*.nc")).write_bytes(b"damaged")
    found = json.loads(run("sweep", "--status", "--out", "grid.nc", "--json")[1])["sweep"]
    assert found["missing"] > 0 and found["done"] + found["missing"] == found["total"] == 6
    assert run(*words)[0] == 0
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again.load(), data)

    code, _, err = run("sweep", "stability", *words[2:], "--status")
    assert code == 2 and "has another sweep, which differs from this one in the verb" in err


def test_failed_points_are_named(run, tmp_path):
    words = ("sweep", "equilibrium", SLOW, "--over", "link.queue.min_th=150,800", "--workers", "0")
    code, out, err = run(*words, "--out", "grid.csv", "--json")
    assert code == 3 and json.loads(out)["sweep"]["failed"] == 1
    assert "failed at link.queue.min_th = 800: " in err and "expected min_th < max_th" in err
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [row["failed"] for row in rows] == ["0", "1"]


def test_every_fault_is_told_at_once(run):
    code, _, err = run("sweep", "equilibriun", "--workers", "x", "--scheduler", "tcp://a:1")
    assert code == 2
    for text in (
        "got 'equilibriun'; did you mean 'equilibrium'?", "SCENARIO: expected a bundled scenario",
        "--over PATH=A:B:STEP, got none", "--out FILE", "--workers: expected no --scheduler",
        "--workers: expected a whole number of at least 0, got 'x'"
    ):  # fmt: skip
        assert text in err, text
    words = ("sweep", "equilibrium", SLOW, *GRID, "--out", "grid.nc")
    code, _, err = run(*words, "--seeds", "3", "--no-trajectory")
    assert code == 2 and "--seeds: expected a verb that takes it (packets, compare), got" in err
    assert "--trajectory: expected a verb that takes it (compare)" in err
    code, _, err = run("sweep", "--status", "--out", "grid.nc")
    assert code == 2 and "expected one with a sweep in it, got 'grid.nc.sweep'" in err


def test_a_sweep_that_stops_says_what_to_do(run, monkeypatch):
    words = ("sweep", "equilibrium", SLOW, *GRID, "--out", "grid.nc")

    def stop(*_, **__):
        raise fc.SweepStopped("no room; 3 of 6 points are done")

    monkeypatch.setattr(chunks, "sweep_in_chunks", stop)
    code, out, err = run(*words, "--json")
    assert code == 3 and err == "stopped: no room; 3 of 6 points are done\n"
    assert json.loads(out)["error"]["message"] + "\n" == err

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(chunks, "sweep_in_chunks", interrupt)
    code, _, err = run(*words)
    assert code == 3 and "kept in 'grid.nc.sweep', and the same command goes on" in err
