"""A script as a user writes it: pyright checks it against the package, it is not run."""

import functools
from typing import assert_type

import matplotlib.figure
import pandas
import xarray

import fluidcc as fc

net = fc.load("hollot2001/slow")
net = fc.replace(net, {"flow.n": 50, "link.queue.p_max": 0.2})
assert_type(net, fc.Network)

rest = fc.equilibrium(net)
assert_type(rest, fc.Equilibrium)
assert_type(rest.links["bottleneck"].queue, float)
assert_type(rest.status, str)
found = fc.stability(net)
assert_type(found.stable, bool | None)
assert_type(found.phase_margin, float | None)

edges = fc.crossings(net, "link.queue.w_q", 1e-6, 0.1, progress=print)
assert_type(edges.crossings[0].value, float)
curve = fc.boundary(net, "link.queue.w_q", "link.queue.p_max")
assert_type(curve, fc.Boundary)
cycle = fc.cycle(net)
assert_type(cycle.period, float | None)
noise = fc.fluctuations(net)
assert_type(noise.links["bottleneck"].queue.std, float)
slopes = fc.gradient(net, "phase_margin", ["flow.rtt"])
assert_type(slopes.derivatives["flow.rtt"], float)

runs = fc.simulate_packets(net, until="60 s", warmup=20, seeds=range(1, 5))
assert_type(runs, fc.PacketRuns)
assert_type(runs.mean["links"]["bottleneck"]["queue_mean"], float)
assert_type(runs.ci95["flows"]["tcp"]["goodput"], float)
trains = fc.simulate_trains(net, until=60, warmup=20)
assert_type(trains.mean["links"]["bottleneck"]["utilization"], float)
both = fc.compare(net, until=60, warmup=20)
assert_type(both.level, str)
fluid = fc.simulate(net, until="60 s")
assert_type(fluid, fc.Trajectory)

grid = fc.sweep(net, {"flow.n": [40, 60]}, functools.partial(fc.simulate_packets, until=60))
assert_type(grid, fc.Sweep)
best = fc.optimize(net, {"link.queue.p_max": (0.05, 0.9)}, maximize="gain_crossover")
assert_type(best.values["link.queue.p_max"], float)
assert_type(best.status, str)

assert_type(runs.to_xarray(), xarray.Dataset)
assert_type(grid.to_pandas(), pandas.DataFrame)
assert_type(fc.plot(both, grid), matplotlib.figure.Figure)
assert_type(edges.to_latex(columns=["becomes", "kind"]), str)
grid.save("grid.nc")
