"""Trajectories over a grid: side by side, by one kernel, and point by point.

Run with ``python benchmarks/trajectory_maps.py``. Each way follows the same networks for 60 s and
tells 301 times, with `fast_cpu`, and what it takes for a point is compared with `simulate` on such
steps. Compilation is left out. The middle one of some rounds, with their range, in which all ways
take turns; rates depend on the machine, which is printed.
"""

import functools
import itertools
import platform
import time
from collections.abc import Callable

import numpy as np

import fluidcc as fc
from fluidcc.machine import threads

ROUNDS = 3
SIDE = 16
FEW = 8  # points that are done one by one
UNTIL = 60.0
TIMES = np.linspace(0.0, UNTIL, 301)
GRIDS = {
    "hollot2001/slow": {"flow.n": (40.0, 90.0), "link.queue.w_q": (1e-6, 1e-4)},
    "qazi2010/three_flows": {
        "links.bottleneck.capacity": (11250.0, 13750.0),
        "links.bottleneck.buffer": (500.0, 1000.0),
    },
}


def spent(run: Callable[[], object]) -> float:
    """Time by the clock [s]."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measure(name: str) -> None:
    """The ways of following one scenario over its grid."""
    net = fc.load(name)
    over = {path: np.geomspace(*ends, SIDE) for path, ends in GRIDS[name].items()}
    every = itertools.islice(itertools.product(*over.values()), 0, None, SIDE**2 // FEW)
    some = [fc.replace(net, dict(zip(over, values, strict=True))) for values in every]
    told = {"until": UNTIL, "points": TIMES}
    batch = functools.partial(fc.simulate_map, net, over, **told)

    def one_by_one() -> None:
        for here in some:
            fc.simulate(here, mesh=fc.Uniform(), **told)

    ways: dict[str, tuple[Callable[[], object], int]] = {
        "simulate": (one_by_one, len(some)),
        "simulate_map": (batch, SIDE**2),
        "simulate_map, fused": (lambda: batch(mesh=fc.Uniform(fused=True)), SIDE**2),
    }
    for run, _ in ways.values():
        run()  # compiles
    rounds = [
        {way: spent(run) / count for way, (run, count) in ways.items()} for _ in range(ROUNDS)
    ]
    print(f"{name}, {SIDE} x {SIDE} points, {UNTIL:g} s each, a point:")
    for way in ways:
        each = [r[way] for r in rounds]
        gains = sorted(r["simulate"] / r[way] for r in rounds)
        print(
            f"  {way:19} {1e3 * np.median(each):7.2f} ms, {np.median(gains):5.1f} times as fast"
            f" ({gains[0]:.1f} to {gains[-1]:.1f})"
        )


if __name__ == "__main__":
    fc.fast_cpu()
    print(f"{platform.processor() or platform.machine()}, {threads()} threads")
    for scenario in GRIDS:
        measure(scenario)
