"""The map of the explorer."""

import numpy as np

import fluidcc as fc
from fluidcc.explore import maps


def test_the_map_tells_what_stability_tells(monkeypatch):
    monkeypatch.setattr(maps, "_GRID", 3)
    net, told = fc.load("hollot2001/slow"), []
    found = maps.stability_grid(net, net, None, None, told.append)
    x, y = found["x"], found["y"]
    assert (x["path"], y["path"]) == ("links.bottleneck.queue.w_q", "flows.tcp.n")
    assert told[-1] == 1
    assert set(np.unique(found["stable"])) == {-1, 0, 1}
    for row, n in enumerate(y["values"]):
        for column, w_q in enumerate(x["values"]):
            here = fc.stability(fc.replace(net, {x["path"]: float(w_q), y["path"]: float(n)}))
            assert found["stable"][row, column] == (-1 if here.stable is None else here.stable)
            assert bool(found["message"][row, column]) == (here.stable is None)
