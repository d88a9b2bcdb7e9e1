"""Characteristic roots: cost of each step relative to eigenvalues of the collocated system.

Run with ``python benchmarks/roots.py``. All contestants take turns in one process; the fastest of
several rounds counts, and only ratios within one run mean anything. Set OPENBLAS_NUM_THREADS=1: on
a shared machine threads of small eigenvalue problems wait for each other.
"""

import time
from collections.abc import Callable

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.roots import approximate_roots, nearby_root, rightmost_roots
from fluidcc.analysis.winding import count_roots
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.queue.red import RED
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.scenario.network import Flows, Link, Network

ROUNDS = 7
ORDER = 12
CLASSES = (1, 8, 50, 200)
LARGEST_EIG = 50  # classes up to which the whole system is collocated


def linear_system(classes: int) -> Linear:
    """ECN-mod flows with round trips spread over 25 to 250 ms on a gentle RED queue."""
    red = RED(min_th=25.0, max_th=75.0, p_max=0.2, w_q=0.002, gentle=True)
    flows = Flows(
        ECNMod(), n=np.full(classes, 40 / classes), rtt=np.linspace(0.025, 0.25, classes),
        marking=EqualWindow(),
    )  # fmt: skip
    return linearize(Network((Link(red, capacity=1250.0, buffer=150.0),), (flows,)))


def contestants(system: Linear) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    characteristic = Characteristic(system)
    near = rightmost_roots(system).rightmost * (1 + 1e-3)
    out: dict[str, Callable[[], object]] = {
        "Newton from a neighbour's root": lambda: nearby_root(characteristic, near),
        "certified count": lambda: count_roots(characteristic),
        "six rightmost roots, proven": lambda: rightmost_roots(system),
    }
    if len(np.unique(system.output_owner)) - 1 <= LARGEST_EIG:
        out["eigenvalues"] = lambda: approximate_roots(system, ORDER)
    return out


def fastest(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least time of each function over interleaved rounds [s]."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def main() -> None:
    """Print one line for each number of classes and contestant."""
    for classes in CLASSES:
        times = fastest(contestants(linear_system(classes)))
        unit = times.get("eigenvalues", times["certified count"])
        what = "eigenvalues" if "eigenvalues" in times else "certified count"
        for name, value in times.items():
            print(f"{classes:4d} classes  {name:32s} {value / unit:10.3g} x {what}")


if __name__ == "__main__":
    main()
