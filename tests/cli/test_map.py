"""The command `map`: its JSON, files and pictures."""

import json

import pytest
import xarray as xr

from fluidcc import plot
from fluidcc.analysis.batch.stability_map import MapPoint, StabilityMap

SLOW = "hollot2001/slow"
X, Y = "link.queue.w_q", "link.queue.p_max"


def found(net, over, progress=None):
    """One point without a verdict, the others stable where both parameters are small."""
    points = []
    for x in over[X]:
        for y in over.get(Y, (0.1,)):
            changes = {X: x, Y: y} if Y in over else {X: x}
            if x == max(over[X]) and y == 0.1:
                points.append(MapPoint(changes, "saturated", "no smooth equilibrium"))
                continue
            root, count = complex(1e4 * x * y - 1.0, 2.0), 2 * (1e4 * x * y > 1)
            queues = {"bottleneck": 100.0}
            points.append(
                MapPoint(changes, "interior", "", count == 0, count, True, root, True, queues)
            )
    axes = {path: tuple(values) for path, values in over.items()}
    return StabilityMap(axes, dict.fromkeys(axes, "1"), tuple(points), len(points) - 1)


@pytest.fixture
def quick(monkeypatch, run):
    monkeypatch.setattr("fluidcc.stability_map", found)
    return run


def test_map(quick):
    words = ("map", SLOW, "--over", f"{X}=1e-4,1e-3,1e-2", "--over", f"{Y}=0.1,0.3")
    code, out, _ = quick(*words, "--json", "--out", "map.nc", "--plot", "map.png")
    points = json.loads(out)["points"]
    assert code == 0 and len(points) == 6
    assert points[0]["set"] == {X: 1e-4, Y: 0.1} and points[0]["stable"] is True
    assert points[4]["status"] == "saturated" and points[4]["rightmost"] is None
    data = xr.load_dataset("map.nc")
    assert data["unstable"].sel({X: 1e-2, Y: 0.3}) == 2 and data["unstable"].sizes == {X: 3, Y: 2}
    code, out, _ = quick(*words)
    assert code == 0 and "growth rate" in out and "saturated" in out
    code, _, _ = quick(*words[:4], "--plot", "line.png")
    assert code == 0


def test_a_map_wants_a_grid(run):
    code, _, err = run("map", SLOW)
    assert code == 2 and "--over" in err


def test_maps_of_three_parameters_have_no_picture():
    axes = {path: (1.0,) for path in "abc"}
    result = StabilityMap(axes, dict.fromkeys(axes, "1"), (MapPoint({}, "none"),), 0)
    with pytest.raises(TypeError, match="3 parameters"):
        plot(result)
