"""Derivatives of a trajectory by all 8 parameters of the TCP/RED model, against one forward solve.

Run with `uv run --group bench python benchmarks/gradients.py`. The parameters are the number of
flows, propagation, capacity, pole of the filter, min_th, slope of the marking, and the window and
queue at the start; the lag is the round trip. Times are minima over interleaved repetitions in one
process, compilation excluded; only ratios count. Errors are against central differences of the
same scheme, relative to the largest derivative by each parameter.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
from integrate import field, lag

import fluidcc as fc
from fluidcc.dde.cpu import fast_cpu

# flows, propagation [s], capacity [packet/s], filter [1/s], min_th [packet], slope [1/packet],
# window and queue at the start [packet]
THETA = np.array([60.0, 0.2, 3750.0, 0.75, 150.0, 0.1 / 550.0, 15.0, 190.0])
ROUND_TRIP = 0.2 + 190.0 / 3750.0
END = 40 * ROUND_TRIP
TIMES = np.linspace(0.0, END, 9)[1:]
MESHES = {
    "uniform, R/64": fc.Uniform(ROUND_TRIP / 64, slots=256),
    "located, R/64": fc.Located(ROUND_TRIP / 64, max_steps=4000),
}
STEPS = 1e-6  # relative, of the differences


def history(t, p):
    return jnp.stack([p[6], p[7], p[7]])


def states(p, mesh):
    """States (8, 3) at TIMES."""
    return fc.solve_dde(field, history, 0.0, END, lags=(lag,), params=p, ts=TIMES, mesh=mesh).y


def error(solve, slopes):
    """Largest difference to central differences, relative to the largest by each parameter."""
    worst = 0.0
    for i, value in enumerate(THETA):
        step = STEPS * value
        up, down = (np.asarray(solve(THETA + s * step * np.eye(8)[i])) for s in (1, -1))
        wanted = (up - down) / (2 * step)
        worst = max(worst, np.max(np.abs(slopes[..., i] - wanted)) / np.max(np.abs(wanted)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    fast_cpu()
    runs = {}
    for name, mesh in MESHES.items():
        solve = jax.jit(functools.partial(states, mesh=mesh))
        runs[name] = solve, jax.jit(jax.jacfwd(solve))
    best = {}
    for turn in range(repetitions + 1):
        for name, functions in runs.items():
            for which, function in enumerate(functions):
                began = time.perf_counter()
                jax.block_until_ready(function(THETA))
                spent = time.perf_counter() - began
                if turn:  # the first one compiles
                    best[name, which] = min(best.get((name, which), np.inf), spent)
    for name, (solve, slopes) in runs.items():
        ratio = best[name, 1] / best[name, 0]
        print(
            f"{name}: gradient in 8 parameters {ratio:.1f} x one forward solve "
            f"({1e3 * best[name, 0]:.2f} ms), error {error(solve, np.asarray(slopes(THETA))):.1e}"
        )


if __name__ == "__main__":
    main()
