"""Uniform steps on a graphics card: many runs of TCP under RED, by one kernel and by JAX's loop.

Run with `uv run --extra gpu python benchmarks/gpu.py`; where JAX sees no card it says so and ends.
The kernel is generated from the same equation (`Uniform(fused=True)`). Before anything is timed
64 such runs of 2560 steps must agree with those on the processor, to 1e-10. Seconds are the least
of three, compilation excluded, copies of parameters and end states included.
"""

import argparse
import time
from typing import Any

import jax
import numpy as np
from handwritten import STEP, Case, field, history, lags

import fluidcc as fc
from fluidcc.dde.fused.launch import device

GOALS = {True: 1.5, False: 8.0}
"""Seconds for 1e5 runs of 1e5 steps, by whether one kernel runs them."""


def run(case: Case, steps: int, *, fused: bool) -> np.ndarray:
    """End states (K + 2, B)."""
    solution = fc.solve_dde(
        field, history, 0.0, STEP * steps, lags=lags(case.classes), params=case.numbers(),
        ts=np.array([STEP * steps]), batched=True,
        mesh=fc.Uniform(STEP, slots=case.slots, fused=fused),
    )  # fmt: skip
    if np.any(np.asarray(solution.status)):
        raise SystemExit("some runs failed")
    return case.states(solution.y)[-1]


def check(fused: bool) -> float:
    """Largest relative difference of 64 runs to those on the processor."""
    case = Case(64)
    with jax.default_device(jax.devices("cpu")[0]):
        right = run(case, 2560, fused=False)
    found = float(np.max(np.abs(run(case, 2560, fused=fused) / right - 1.0)))
    if found > 1e-10:
        raise SystemExit(f"fused={fused}: differs from the processor by {found:.1e}")
    return found


def least(case: Case, steps: int, **options: Any) -> float:
    """Least seconds of three runs, after one that compiles."""
    spent = []
    for _ in range(4):
        began = time.perf_counter()
        run(case, steps, **options)
        spent.append(time.perf_counter() - began)
    return min(spent[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100_000)
    asked = parser.parse_args()
    if device() == "cpu":
        print(f"skipped: no graphics card, JAX computes on {jax.devices()[0].platform}")
        return
    print(f"{jax.devices()[0].device_kind}: {asked.runs} runs of {asked.steps} steps")
    case = Case(asked.runs)
    whole = (asked.runs, asked.steps) == (100_000, 100_000)
    for fused in (True, False):
        error = check(fused)
        spent = least(case, asked.steps, fused=fused)
        name = "fused kernel" if fused else "loop by JAX"
        wanted = f"   goal: at most {GOALS[fused]} s" if whole else ""
        print(f"  {name:22s} {spent:8.3f} s   differs by {error:.0e}{wanted}", flush=True)


if __name__ == "__main__":
    main()
