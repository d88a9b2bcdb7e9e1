"""Stability over many parameter points: points per second, each way of finding it.

Run with ``python benchmarks/stability_maps.py``. Linear systems are those between four corners of
an N, w_q plane of TCP on RED, with one class of flows (3 states) and with eight (10 states), partly
unstable. Every root is the rightmost one to rounding and every count is certified, in all rows.
Compilation is left out. Rates depend on the machine, which is printed; ratios hold anywhere. Set
OPENBLAS_NUM_THREADS=1, as threads of small eigenvalue problems wait for each other.
"""

import dataclasses
import functools
import itertools
import os
import platform
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.analysis.batch import by_eigenvalues, many_roots
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.laws.queue.red import RED
from fluidcc.laws.window.reno import Reno
from fluidcc.scenario.network import Flows, Link, Network

ROUNDS = 5
SIDES = {1: 320, 8: 128}  # of the grids of linear systems, by classes
BY_EIGENVALUES = {1: 2048, 8: 128}
SINGLE = 24
PLANE = {"link.queue.w_q": (1e-5, 1e-1), "link.queue.p_max": (0.02, 0.9)}
MAP_SIDE = 64
POPULATIONS = "hollot2001/slow", "hollot2001/pi", "misra2003/mixed"
POPULATION_SIDE = 16


class Times(NamedTuple):
    """Time by the clock, and of all cores together [s]."""

    wall: float
    core: float


def network(classes: int, n: float, w_q: float) -> Network:
    """Reno on RED with round trips around 200 ms."""
    red = RED(min_th=150.0, max_th=700.0, p_max=0.1, w_q=w_q)
    rtt = np.linspace(0.15, 0.25, classes) if classes > 1 else np.array([0.2])
    flows = Flows(Reno(), n=np.full(classes, n / classes), rtt=rtt)
    return Network((Link(red, capacity=3750.0, buffer=1e4),), (flows,), rates="mgt")


def family(classes: int, side: int) -> tuple[Linear, np.ndarray]:
    """Systems between four linearised networks, and their places on a grid."""
    corners = [
        linearize(network(classes, n, w_q))
        for n, w_q in itertools.product((40.0, 90.0), (2e-5, 2e-3))
    ]
    places = np.stack([i.ravel() for i in np.indices((side, side))], axis=1)
    a, b = (places / (side - 1)).T
    weights = ((1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b)

    def between(name: str) -> np.ndarray:
        ends = [getattr(c, name) for c in corners]
        return sum(np.multiply.outer(w, e) for w, e in zip(weights, ends, strict=True))

    numbers = {name: between(name) for name in ("A", "B", "C", "D", "lag")}
    return dataclasses.replace(corners[0], **numbers), places


def least_time(function: Callable[[], object]) -> Times:
    """Least times of several rounds after a first one that compiles."""
    function()
    wall, core = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - begin[0])
        core.append(time.process_time() - begin[1])
    return Times(min(wall), min(core))


def told(name: str, count: float, times: Times, words: str = "points/s") -> None:
    """Print a rate, and the one by core time."""
    rates = f"{count / times.wall:10.3g} {words}, {count / times.core:.3g} in a second of a core"
    print(f"  {name:28s} {rates}")


def linear_systems(classes: int) -> None:
    """Rates for given linear systems."""
    systems, places = family(classes, SIDES[classes])
    found = many_roots(systems, places=places)
    print(f"{systems.size[0]} states: {found}")
    few = np.linspace(0, len(places) - 1, BY_EIGENVALUES[classes]).astype(int)
    singles = few[:: len(few) // SINGLE]
    for name, count, function in (
        ("one by one", len(singles), lambda: [rightmost_roots(systems[i]) for i in singles]),
        ("eigenvalues, certified", len(few), lambda: by_eigenvalues(systems[few], 12)),
        ("continued, certified", len(places), lambda: many_roots(systems, places=places)),
    ):
        told(name, count, least_time(function))


def networks() -> None:
    """Rates for a network over two parameters: pointwise, in lanes, and along the boundary."""
    net = network(1, 60.0, 5e-3)
    (x, x_range), (y, y_range) = PLANE.items()
    axes = {x: np.geomspace(*x_range, MAP_SIDE), y: np.linspace(*y_range, MAP_SIDE)}
    rng = np.random.default_rng(0)
    some = [{p: float(rng.choice(v)) for p, v in axes.items()} for _ in range(SINGLE)]
    one = least_time(lambda: [fc.stability(fc.replace(net, c)) for c in some])
    many = least_time(lambda: fc.stability_map(net, axes))
    curve = fc.boundary(net, x, y, x_range, y_range)
    length = sum(len(c.x) for c in curve.curves)
    traced = least_time(lambda: fc.boundary(net, x, y, x_range, y_range))
    print("TCP on RED, w_q and p_max")
    told("stability, one by one", SINGLE, one)
    told("stability_map", MAP_SIDE**2, many)
    told(f"boundary, {length} points", length, traced, "points of the curve/s")
    for name, each in (("one by one", one.wall / SINGLE), ("mapped", many.wall / MAP_SIDE**2)):
        ratio = length**2 * each / traced.wall
        print(f"    {length} x {length} verdicts {name} take {ratio:.3g} times as long")


def populations() -> None:
    """Rates for stationary laws of flows over capacity and numbers of flows or round trips."""
    for name in POPULATIONS:
        net = dataclasses.replace(fc.load(name), closure="population")
        capacity, first = float(net.links[0].capacity), net.flows[0]
        numbers, trips = np.ravel(first.n), np.ravel(first.rtt)
        spread = np.linspace(0.8, 1.2, POPULATION_SIDE)
        axes = {f"links.{net.link_names[0]}.capacity": [*(capacity * spread)]}
        if numbers.size == 1:
            axes[f"flows.{net.flow_names[0]}.n"] = [*(numbers * spread)]
        else:
            ends = {"min": trips[0], "max": trips[-1]}
            each = [{end: float(k * v) for end, v in ends.items()} for k in spread]
            axes[f"flows.{net.flow_names[0]}.rtt"] = each
        print(f"{name}, closure population")
        for words, verb in (
            ("equilibrium", fc.equilibrium),
            ("count of unstable roots", fc.stability_map),
            ("the same with margins", functools.partial(fc.stability, roots=0)),
            ("noise", fc.fluctuations),
        ):
            swept = functools.partial(fc.sweep, net, axes, verb, workers=0)
            told(words, POPULATION_SIDE**2, least_time(swept))


def main() -> None:
    """Print the machine and all rates."""
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before the start")
    for classes in SIDES:
        linear_systems(classes)
    networks()
    populations()


if __name__ == "__main__":
    fc.fast_cpu()
    main()
