"""Uniform steps against the same scheme in C: ratios, all contestants in one process.

Run with `uv run python benchmarks/cpu.py` (a C compiler must be there; it says so where none is).
TCP under RED with a lag that depends on the queue, h = R/64, by `fc.solve_dde` and by `tcp_red.c`,
scalar for one trajectory and with 8 or 32 trajectories side by side in batches: the fastest of its
builds counts. Before anything is timed both must agree to 1e-12. Times are minima over interleaved
repetitions, compilation excluded, all on one core; each line is the median over rounds, with the
least and the largest. `--network` adds `fc.simulate`'s own model of
the same network, by XLA and by the fused kernel;
`--plot FILE.png` draws how cost grows. JiTCDDE: `integrate.py`.
"""

import argparse
import functools
import os
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from handwritten import STEP, Case, build, compiler, network

import fluidcc as fc

WIDE = "-mprefer-vector-width=512"
ROUNDS = 5


class Row(NamedTuple):
    """One line of the table: trajectories, classes, steps, repetitions, goals."""

    lanes: int
    classes: int
    steps: int
    repetitions: int
    goal: float


ROWS = (
    Row(1, 1, 65536, 5, 1.8),
    Row(1024, 1, 2048, 3, 3.0),
    Row(16384, 1, 512, 1, 3.0),
    Row(1024, 3, 1024, 2, 3.5),
    Row(1024, 10, 512, 1, 3.5),
)
KERNEL_GOAL = 1.15


def seconds(function: Any) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def least(contestants: dict[str, Any], repetitions: int) -> dict[str, float]:
    """Least seconds of each, in turn."""
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(repetitions):
        for name, function in contestants.items():
            best[name] = min(best[name], seconds(function))
    return best


def rivals(case: Case, steps: int) -> dict[str, Any]:
    """Runs of the loop in C, by its build."""
    lanes = (1,) if case.lanes == 1 else (8, 32)
    found = {}
    for side in lanes:
        for flags in ((), (WIDE,)):
            try:
                loop = build(case.classes, side, "double", *flags)
            except OSError:  # a library that does not load
                continue
            found[f"{side} {' '.join(flags)}"] = lambda loop=loop: case.by_hand(loop, steps)
    return found


def check(case: Case, steps: int) -> float:
    """Largest relative difference to the loop in C along a run."""
    loop = build(case.classes, 1 if case.lanes == 1 else 32, "double")
    p, right = case.numbers(), case.by_hand(loop, steps, 8)
    found = float(np.max(np.abs(case.states(case.ours(steps, 8)(p)) / right - 1.0)))
    if found > 1e-12:
        raise SystemExit(f"runs differ from the loop in C by {found:.1e}")
    return found


def measure(row: Row) -> None:
    """Print the ratios of one row."""
    case = Case(row.lanes, row.classes)
    error = check(Case(min(row.lanes, 64), row.classes), 2560)
    p = case.numbers()
    by_hand = rivals(case, row.steps)
    runs = dict(by_hand)
    solve = case.ours(row.steps)
    runs["ours"] = lambda: solve(p)
    runs["kernel"] = lambda: case.fused(row.steps, p)
    least(runs, 1)
    ratios: dict[str, list[float]] = {"ours": [], "kernel": []}
    for _ in range(ROUNDS):
        best = least(runs, row.repetitions)
        rival = min(best[name] for name in by_hand)
        for name, own in ratios.items():
            own.append(best[name] / rival)
    print(f"{row.lanes} trajectories, {row.classes} classes; agree to {error:.0e}")
    told("steps by JAX / C", ratios["ours"], row.goal)
    told("fused kernel / C", ratios["kernel"], KERNEL_GOAL)


def told(name: str, ratios: list[float], goal: float | None) -> None:
    """Print the median of some ratios, their range and the goal."""
    wanted = "" if goal is None else f"   goal: at most {goal}"
    middle = float(np.median(ratios))
    print(
        f"  {name:50s} {middle:5.2f} ({min(ratios):.2f} to {max(ratios):.2f}){wanted}", flush=True
    )


def measure_network() -> None:
    """The model that `fc.simulate` makes of such a network against the scalar loop."""
    from fluidcc.dde.integrate import integrate
    from fluidcc.model.network_system import network_system

    for classes in (1, 3, 10):
        case, steps = Case(1, classes), 8192
        end = STEP * steps
        system, y0, numbers = network_system(network(classes), until=end)
        times = np.array([end])

        def run(
            fused, lanes, case=case, system=system, y0=y0, numbers=numbers, end=end, times=times
        ):
            mesh = fc.Uniform(STEP, slots=case.slots, fused=fused)
            if lanes > 1:
                y0 = np.tile(y0, (lanes, 1))
                many = lambda v: np.broadcast_to(v, (lanes, *np.shape(v)))  # noqa: E731
                numbers = jax.tree.map(many, numbers)
            found = integrate(system, y0, 0.0, end, numbers, mesh=mesh, ts=times, batched=lanes > 1)
            return found.y.block_until_ready()

        by_hand = rivals(case, steps)
        kinds = {
            "one run": (False, 1),
            "one run, fused": (True, 1),
            "64 at once, each": (False, 64),
            "64 at once, each, fused": (True, 64),
        }
        runs = {**by_hand, **{name: functools.partial(run, *kind) for name, kind in kinds.items()}}
        least(runs, 1)
        ratios: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            best = least(runs, 3)
            rival = min(best[name] for name in by_hand)
            for name, (_, lanes) in kinds.items():
                ratios[name].append(best[name] / lanes / rival)
        for name in kinds:
            told(f"network of {classes} classes, {name} / scalar C", ratios[name], None)


def plot(path: str) -> None:
    """Draw the time of a run over trajectories, steps and classes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = {
        "trajectories": [(n, Case(n), 64) for n in (64, 256, 1024, 4096, 16384)],
        "steps": [(n, Case(64), n) for n in (256, 1024, 4096, 16384)],
        "groups of flows": [(k, Case(256, k), 64) for k in (1, 2, 3, 4, 5, 6, 8, 12)],
    }
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for panel, (name, cases) in zip(panels, axes.items(), strict=True):
        spent = []
        for _, case, steps in cases:
            solve, p = case.ours(steps), case.numbers()
            solve(p)
            spent.append(min(seconds(lambda s=solve, p=p: s(p)) for _ in range(7)))
        sizes = np.array([size for size, _, _ in cases], float)
        panel.loglog(sizes, np.array(spent) / spent[0], "o-", label="measured")
        panel.loglog(sizes, sizes / sizes[0], "k:", label="proportional")
        panel.set(xlabel=name, ylabel="time / that of the smallest")
        if sizes[-1] < 100:
            panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
            panel.minorticks_off()
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE.png")
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--rows", type=int, nargs="*", default=range(len(ROWS)))
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # one core, and no thread beside
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    fc.fast_cpu()
    if asked.plot:
        plot(asked.plot)
        return
    if compiler() is None:
        print("skipped: no C compiler (cc, gcc or clang) is there to build the rival")
        return
    for number in asked.rows:
        measure(ROWS[number])
    if asked.network:
        measure_network()


if __name__ == "__main__":
    main()
