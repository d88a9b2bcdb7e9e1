"""Grids of parameters: order, failures, labelled arrays, files."""

import csv

import numpy as np
import pytest
import xarray as xr
from sweep_cases import NET, draw

import fluidcc as fc
from fluidcc.results.export import write

OVER = {"flows.tcp.n": [2, 3], "links.near.delay": ["5 ms", 0.007, 0.001]}
DELAYS = [0.005, 0.007, 0.001]


def test_points_come_in_the_order_of_the_grid():
    shares = []
    grid = fc.sweep(NET, OVER, draw, progress=shares.append)
    assert [dict(p.set) for p in grid.points] == [
        {"flows.tcp.n": n, "links.near.delay": d} for n in (2, 3) for d in DELAYS
    ]
    assert shares == [pytest.approx(k / 6) for k in range(1, 7)]
    assert [p.message for p in grid.failed] == ["nothing to draw"]
    assert grid.to_dict()["points"][4]["status"] == "failed"
    assert "failed at flows.tcp.n = 3, links.near.delay = 0.007: nothing to draw" in repr(grid)


def test_files_give_back_the_axes_as_dimensions_and_nan_where_a_point_failed(tmp_path):
    grid = fc.sweep(NET, OVER, draw)
    data, rows = grid.to_dataset(), list(grid.axes)
    assert data["delay"].dims == ("flows.tcp.n", "links.near.delay")
    assert data["links.near.delay"].attrs["units"] == "s"
    known = np.array([DELAYS, [0.005, np.nan, 0.001]])
    assert np.array_equal(data["delay"].values, known, equal_nan=True)
    own = data["value"].isel({"links.near.delay": 0}).values  # two numbers at 2 flows, three at 3
    assert np.array_equal(np.isnan(own), [[False, False, True], [False, False, False]])
    assert data["status"].values.tolist() == [["drawn"] * 3, ["drawn", "failed", "drawn"]]
    assert not {"status", "message"} & set(data.attrs)  # which belong to their points
    write(data, tmp_path / "grid.nc", rows, {"command": "test"})
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as back:
        for name in ("delay", "value"):
            assert np.array_equal(back[name].values, data[name].values, equal_nan=True)
        assert back["value"].attrs["units"] == "s" and back.attrs["command"] == "test"
    write(data, tmp_path / "grid.csv", rows, {"command": "test"})
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    told = [line for line in lines if line.startswith("#")]
    found = list(csv.DictReader(lines[len(told) :]))
    assert "# command: test" in told
    assert [float(r["delay"]) for r in found] == pytest.approx(known.ravel(), nan_ok=True)
    assert float(found[3]["value[2] (s)"]) == own[1, 2] and found[4]["status"] == "failed"
