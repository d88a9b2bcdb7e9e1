"""Cycles, best parameters, bounds and stationary windows, each against another way to the same.

Run with `uv run --group bench python benchmarks/analysis.py`. Contestants take turns in one process
and the fastest of the repetitions counts; compilation is left out, and only ratios mean anything.

* `cycles`: the stable cycles of the Mackey-Glass equation for delays from the Hopf point to 8. The
  rival is JiTCDDE at the same delays from 1.02 times the Hopf point on, which runs twice as long
  until the period moves by less than 1e-6; it gives no multipliers and no unstable cycles.
* `optimize`: gains of PI for the widest band at a phase margin of 60 degrees. The rival is SciPy's
  differential evolution on the same margins; it counts until it is within 0.1 % of the optimum.
* `stationary`: the mean window of TCP at 1 % of marks. The rival is Monte Carlo of the same rules;
  its time is what a standard error of 1e-4 takes, from that of the runs made.
* `bounds`: a search for counterexamples against the same packet runs without the search.
"""

import argparse
import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import differential_evolution

import fluidcc as fc
from fluidcc.laws.law import Ack
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.reno import Reno
from fluidcc.packets.run import simulate_packets

DELAYS, FIRST, LIMIT, RTOL = (4.0, 8.0), 200.0, 1e-6, 1e-7
CLOSE = 1e-3  # of the optimum
P, CHAINS, ACKS, STANDARD_ERROR = 0.01, 4000, 4000, 1e-4
PI = {"link.queue.k_pi": (1e-6, 1e-3), "link.queue.z": (0.05, 5.0)}
BOUND = "mark_front.slow_start"


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and its time."""
    begun = time.perf_counter()
    found = function()
    return found, time.perf_counter() - begun


def race(repetitions: int, *functions: Callable[[], Any]) -> tuple[list, list[float]]:
    """The last results and the least times of functions that take turns."""
    results, best = [None] * len(functions), [np.inf] * len(functions)
    for _ in range(repetitions):
        for k, function in enumerate(functions):
            results[k], seconds = timed(function)
            best[k] = min(best[k], seconds)
    return results, best


def mackey_glass() -> fc.DelayEquation:
    """The equation of Mackey and Glass (1977), which rests at 1."""
    return fc.DelayEquation(
        lambda t, y, z, p: 0.2 * z[0] / (1 + z[0] ** 10) - 0.1 * y,
        (lambda t, y, p: p["tau"],), {"tau": DELAYS[1]}, 1.0,
    )  # fmt: skip


class Rival:
    """JiTCDDE on the same equation, compiled once."""

    def __init__(self) -> None:
        import symengine
        from jitcdde import jitcdde, t, y

        delay = symengine.Symbol("tau")
        old = y(0, t - delay)
        right = [0.2 * old / (1 + old**10) - 0.1 * y(0)]
        self.dde = jitcdde(right, max_delay=80.0, verbose=False, control_pars=[delay])
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            self.dde.compile_C(simplify=False, extra_compile_args=["-O3", "-march=native"])

    def period(self, delay: float) -> float:
        """Time between the last two upward passages through 1, when it has settled."""
        self.dde.purge_past()
        self.dde.constant_past([1.2], time=0.0)
        self.dde.set_parameters(delay)
        self.dde.set_integration_parameters(rtol=RTOL, atol=1e-2 * RTOL)
        self.dde.adjust_diff()
        before, end = np.inf, FIRST
        while True:
            self.dde.integrate(end)
            passages = self.dde.get_state().solve(0, 1.0)
            upward = sorted(when for when, slope in passages if slope > 0)
            now = float(upward[-1] - upward[-2])
            if abs(now / before - 1) < LIMIT:
                return now
            before, end = now, 2 * end


def cycles(repetitions: int) -> None:
    """The cycles of one branch."""
    model, rival = mackey_glass(), Rival()

    def ours() -> list[tuple[float, float]]:
        (branch,) = fc.cycles(model, "tau", *DELAYS).branches
        pairs = zip(branch.values, branch.cycles, strict=True)
        return [(value, cycle.period) for value, cycle in pairs]

    branch = ours()
    chosen = [pair for pair in branch if pair[0] > 1.02 * branch[0][0]]
    (_, theirs), (own, seconds) = race(
        repetitions, ours, lambda: [rival.period(value) for value, _ in chosen]
    )
    apart = max(abs(t / mine - 1) for t, (_, mine) in zip(theirs, chosen, strict=True))
    ratio = (seconds / len(chosen)) / (own / len(branch))
    print(
        f"cycles: {len(branch)} on the branch, periods of {len(chosen)} agree to {apart:.1e}; per "
        f"cycle {ratio:.2g} times as fast as JiTCDDE"
    )


def optima(repetitions: int) -> None:
    """The widest band of PI."""
    net = fc.load("hollot2001/pi")
    low, high = np.log(np.array(list(PI.values()))).T
    wanted = "phase_margin >= 60"

    def ours() -> fc.Optimum:
        return fc.optimize(
            net, PI, maximize="gain_crossover", subject_to=[wanted], verification=False
        )

    best = ours()
    seen = 0

    def loss(logs: np.ndarray) -> float:
        nonlocal seen
        seen += 1
        found = fc.stability(fc.replace(net, dict(zip(PI, np.exp(logs), strict=True))))
        margin, band = found.phase_margin, found.gain_crossover
        if margin is None or band is None:
            return 0.0
        return 10 * (60 - margin) if margin < 60 else -band

    def theirs() -> int:
        nonlocal seen
        seen = 0

        def enough(result: Any, **_: Any) -> bool:
            return -loss(result) > best.objective * (1 - CLOSE)

        differential_evolution(
            loss, list(zip(low, high, strict=True)), seed=1, maxiter=60, polish=False,
            callback=lambda x, convergence: enough(x),
        )  # fmt: skip
        return seen

    (found, points), (own, rival) = race(repetitions, ours, theirs)
    print(
        f"optimize: gain crossover {found.objective:.6g} rad/s in {found.points} points; "
        f"{rival / own:.2g} times as fast as differential evolution with {points} points"
    )


def simulated(seed: int) -> tuple[float, float]:
    """Mean window over packets by Monte Carlo, and its relative standard error."""
    law, draw = Reno(), np.random.default_rng(seed)
    w, total, ack = np.full(CHAINS, 12.0), np.zeros(CHAINS), Ack(1.0, 0.0, 1.0)
    for k in range(ACKS + 500):
        if k >= 500:
            total += w
        marked = draw.random(CHAINS) < P
        change = np.where(marked, law.on_mark(w, ack), law.on_ack(w, ack))
        w = np.maximum(w + change, float(law.min_window))
    means = total / ACKS
    return float(means.mean()), float(means.std() / np.sqrt(CHAINS) / means.mean())


def stationary(repetitions: int) -> None:
    """The mean of one stationary window."""
    fc.window_distribution(Reno(), 2 * P, reaction=PerMark())  # compiles
    results, (own, rival) = race(
        repetitions, lambda: fc.window_distribution(Reno(), P, reaction=PerMark()),
        lambda: simulated(1),
    )  # fmt: skip
    ours, (mean, error) = results
    needed = rival * (error / STANDARD_ERROR) ** 2
    print(
        f"stationary: mean {ours.mean:.7g} (error {ours.error:.0e}), Monte Carlo {mean:.5g} "
        f"+- {mean * error:.2g}; {needed / own:.3g} times as fast as a standard error of "
        f"{STANDARD_ERROR:g}"
    )


def bounds(repetitions: int) -> None:
    """What the search costs beside its packet runs."""
    inside = 0.0

    def watched(*args: Any, **options: Any) -> Any:
        nonlocal inside
        found, seconds = timed(lambda: simulate_packets(*args, **options))
        inside += seconds
        return found

    shares = []
    fc.check_bound(BOUND, budget=4)  # compiles
    with mock.patch("fluidcc.packets.run.simulate_packets", watched):
        for _ in range(repetitions):
            inside = 0.0
            report, seconds = timed(lambda: fc.check_bound(BOUND))
            shares.append(seconds / inside)
    count = sum(reading.searched for reading in report.readings)
    print(f"bounds: {BOUND}, {count} judgements in {min(shares):.3g} times their packet runs")


def main() -> None:
    """All four."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    repetitions = parser.parse_args().repetitions
    fc.fast_cpu()
    warnings.filterwarnings("ignore", module="jitcdde")
    for each in (cycles, optima, stationary, bounds):
        each(repetitions)


if __name__ == "__main__":
    main()
