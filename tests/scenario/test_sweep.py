"""Grids of parameters: order, failures, labelled arrays, files."""

import csv
import dataclasses

import numpy as np
import pytest
import xarray as xr
from scenario_cases import BASE

import fluidcc as fc
from fluidcc.results.export import write

NET = fc.loads(BASE)


@dataclasses.dataclass(frozen=True)
class Reading:
    """A stand-in for a verb's result: what it saw of the network."""

    delay: float
    rtts: np.ndarray
    status: str = "seen"

    def to_dict(self):
        return {"delay": self.delay, "rtts": self.rtts.tolist()}

    def to_dataset(self):
        return xr.Dataset(
            {"delay": ((), self.delay, {"units": "s"}), "rtt": ("flow", self.rtts, {"units": "s"})},
            {"group": ("flow", ["tcp"] * len(self.rtts))},
            {"status": self.status, "message": ""},
        )


def read(net):
    delay = float(net.links[0].delay)
    if delay > 0.006:
        raise RuntimeError("too far")
    return Reading(delay, np.asarray(net.flows[1].rtt))


OVER = {"flows.tcp.n": [2, 3], "links.near.delay": ["5 ms", 0.007, 0.001]}


def test_points_come_in_the_order_of_the_grid():
    shares = []
    grid = fc.sweep(NET, OVER, read, progress=shares.append)
    delays = [0.005, 0.007, 0.001]
    assert [dict(p.set) for p in grid.points] == [
        {"flows.tcp.n": n, "links.near.delay": d} for n in (2, 3) for d in delays
    ]
    assert shares == [pytest.approx(k / 6) for k in range(1, 7)]
    assert [p.message for p in grid.failed] == ["too far", "too far"]
    assert grid.to_dict()["points"][1]["status"] == "failed"
    assert "failed at flows.tcp.n = 2, links.near.delay = 0.007: too far" in repr(grid)


def test_the_dataset_has_the_axes_as_dimensions_and_nan_where_a_point_failed():
    data = fc.sweep(NET, OVER, read).to_dataset()
    assert data["delay"].dims == ("flows.tcp.n", "links.near.delay")
    assert data["links.near.delay"].attrs["units"] == "s"
    assert np.array_equal(data["delay"].values, [[0.005, np.nan, 0.001]] * 2, equal_nan=True)
    assert data["rtt"].sel({"flows.tcp.n": 2}).isel({"links.near.delay": 0}).values[2:] != 0
    assert np.isnan(data["rtt"].values[0, 0, 2]) and data["rtt"].values[1, 0, 2] == 0.1
    assert data.attrs == {}  # a status belongs to its point
    assert data["status"].values.tolist() == [["seen", "failed", "seen"]] * 2


def test_files_give_back_what_was_written(tmp_path):
    grid = fc.sweep(NET, OVER, read)
    data, rows = grid.to_dataset(), list(grid.axes)
    write(data, tmp_path / "grid.nc", rows, {"command": "test"})
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as back:
        for name in ("delay", "rtt"):
            assert np.array_equal(back[name].values, data[name].values, equal_nan=True)
        assert back["delay"].attrs["units"] == "s" and back.attrs["command"] == "test"
    write(data, tmp_path / "grid.csv", rows, {"command": "test"})
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    assert lines[0] == "# command: test"
    found = list(csv.DictReader(lines[1:]))
    assert [float(r["delay (s)"]) for r in found] == pytest.approx(
        data["delay"].values.ravel(), nan_ok=True
    )
    assert float(found[3]["rtt[2] (s)"]) == 0.1 and found[1]["status"] == "failed"
