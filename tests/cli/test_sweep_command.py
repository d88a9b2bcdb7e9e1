"""The command `sweep`: files, chunks beside them, status, exit codes."""

import csv
import json

import numpy as np
import xarray as xr

import fluidcc as fc
from fluidcc.sweep import run as chunks

SLOW = "hollot2001/slow"
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
