"""Fluid integration against JiTCDDE: ratios at equal error, all contestants in one process.

Run with `uv run --group bench python benchmarks/integrate.py`. Cases:

* `single`: TCP under RED with a lag that depends on the queue, 100 s, error at 1, 10 and 100 s.
* `batch`: 1024 and 16384 such systems that oscillate with growing amplitude, 9.6 s, error at the
  end; and the first of them one after the other in a loop.

Every contestant runs with several settings; the fastest one whose largest relative error is at
most 1e-6 counts. Times are minima over interleaved repetitions, compilation excluded.
"""

import argparse
import contextlib
import functools
import tempfile
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import fluidcc as fc

LIMIT = 1e-6
LANES, RIVAL_LANES = (1024, 16384), 8

# flows, propagation [s], capacity [packet/s], filter [1/s], min_th [packet], slope [1/packet]
SINGLE = np.array([60.0, 0.2, 3750.0, 0.005, 150.0, 0.1 / 550.0])
SINGLE_START = np.array([15.0, 190.0, 195.0])
SINGLE_TIMES = np.array([1.0, 10.0, 100.0])
GROWING = np.array([60.0, 0.2, 3750.0, 0.75007501, 100.0, 0.02 / 300.0])
GROWING_END = 9.6


def field(t, y, z, p):
    """Misra, Gong and Towsley (2000) without clipping: window, queue, averaged queue."""
    (window, queue, average), (old_window, old_queue, old_average) = y, z[0]
    trip, old_trip = p[1] + queue / p[2], p[1] + old_queue / p[2]
    cut = window * old_window / (2.0 * old_trip) * p[5] * (old_average - p[4])
    return jnp.stack([1.0 / trip - cut, p[0] * window / trip - p[2], p[3] * (queue - average)])


def lag(t, y, p):
    return p[1] + y[1] / p[2]


def history(t, p):
    return p[6:]


def solver(mesh, times, batched=False):
    """A compiled function from parameters (..., 9) to states at `times`."""

    def solve(p):
        end = float(times[-1])
        return fc.solve_dde(
            field, history, 0.0, end, lags=(lag,), params=p, ts=times, mesh=mesh, batched=batched
        ).y

    return jax.jit(solve)


class Rival:
    """JiTCDDE on the same equations, compiled once with the parameters as arguments."""

    def __init__(self) -> None:
        import symengine
        from jitcdde import jitcdde, t, y

        p = [symengine.Symbol(f"p{i}") for i in range(6)]
        trip = p[1] + y(1) / p[2]
        old = [y(i, t - trip) for i in range(3)]
        cut = y(0) * old[0] / (2 * (p[1] + old[1] / p[2])) * p[5] * (old[2] - p[4])
        right = [1 / trip - cut, p[0] * y(0) / trip - p[2], p[3] * (y(1) - y(2))]
        self.dde = jitcdde(right, max_delay=0.6, verbose=False, control_pars=p)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            self.dde.compile_C(simplify=False, extra_compile_args=["-O3", "-march=native"])

    def run(self, p, times, rtol):
        """States at `times`, and the seconds that the integration took."""
        self.dde.purge_past()
        self.dde.constant_past(p[6:], time=0.0)
        self.dde.set_parameters(*p[:6])
        self.dde.set_integration_parameters(rtol=rtol, atol=1e-2 * rtol)
        began = time.perf_counter()
        self.dde.adjust_diff()
        states = np.array([self.dde.integrate(t) for t in times])
        return states, time.perf_counter() - began


def timed(function, *args):
    began = time.perf_counter()
    result = np.asarray(function(*args))
    return result, time.perf_counter() - began


def race(contestants, right, repetitions):
    """Fastest time of each (name, setting) whose result is right to LIMIT, by name.

    `contestants` maps (name, setting) to a function that gives (states, seconds).
    """
    best, errors = {}, {}
    for _ in range(repetitions):
        for key, run in contestants.items():
            states, seconds = run()
            errors[key] = np.max(np.abs(states / right[: len(states)] - 1.0))
            best[key] = min(best.get(key, np.inf), seconds)
    winners = {}
    for key, seconds in best.items():
        if errors[key] <= LIMIT and seconds < winners.get(key[0], (np.inf,))[0]:
            winners[key[0]] = (seconds, key[1], errors[key])
    return winners


def report(title, winners, rival):
    print(title)
    for name, (seconds, setting, error) in winners.items():
        ratio = winners[rival][0] / seconds
        print(f"  {name:10s} {setting:14s} error {error:.1e}   {ratio:5.2f} x {rival}")


def single(rival, repetitions):
    p = np.concatenate([SINGLE, SINGLE_START])
    right = np.asarray(solver(fc.Located(0.003), SINGLE_TIMES)(p))
    contestants = {}
    for step in (0.05, 0.04, 0.025, 0.0125, 0.01):
        for name, mesh in (("uniform", fc.Uniform(step, slots=64)), ("located", fc.Located(step))):
            run = solver(mesh, SINGLE_TIMES)
            run(p).block_until_ready()
            contestants[name, f"step {step:g}"] = functools.partial(timed, run, p)
    for rtol in (1e-6, 1e-7, 1e-8):
        contestants["JiTCDDE", f"rtol {rtol:g}"] = functools.partial(
            rival.run, p, SINGLE_TIMES, rtol
        )
    winners = race(contestants, right, repetitions)
    report("one trajectory, 100 s, error <= 1e-6 (goal: at least 0.5)", winners, "JiTCDDE")


def batch(rival, repetitions):
    rng = np.random.default_rng(1)
    p = np.tile(np.concatenate([GROWING, [15.0, 150.0, 160.0]]), (max(LANES), 1))
    p[:, :3] *= 1.0 + 0.05 * (rng.random((max(LANES), 3)) - 0.5)
    times = np.array([GROWING_END])
    right = np.asarray(solver(fc.Located(0.24 / 128), times, batched=True)(p[:64]))[:, 0]
    contestants = {}
    for share in (6, 8, 12, 16, 24):
        mesh = fc.Uniform(0.24 / share, slots=2 * share + 16)
        one, many = solver(mesh, times), solver(mesh, times, batched=True)
        one(p[0]).block_until_ready()
        contestants["in a loop", f"step R/{share}"] = functools.partial(in_a_loop, one, p)
        for count in LANES:
            many(p[:count]).block_until_ready()
            contestants[f"{count}", f"step R/{share}"] = functools.partial(lanes, many, p[:count])
    for rtol in (1e-5, 1e-6, 1e-7, 1e-8):
        contestants["JiTCDDE", f"rtol {rtol:g}"] = functools.partial(
            one_by_one, rival, p, times, rtol
        )
    winners = race(contestants, right, repetitions)
    title = (
        "growing oscillations, per trajectory, error <= 1e-6 (goals: 3 in a loop, 12 in batches)"
    )
    report(title, winners, "JiTCDDE")


def in_a_loop(run, p):
    """States of a few lanes one after the other, and the seconds per lane."""
    began = time.perf_counter()
    states = [np.asarray(run(p[i])) for i in range(RIVAL_LANES)]
    return np.array(states)[:, 0], (time.perf_counter() - began) / RIVAL_LANES


def lanes(run, p):
    """States of the first lanes, and the seconds per lane."""
    states, seconds = timed(run, p)
    return states[:64, 0], seconds / len(p)


def one_by_one(rival, p, times, rtol):
    """States of a few lanes, and the seconds per lane."""
    runs = [rival.run(p[i], times, rtol) for i in range(RIVAL_LANES)]
    return np.array([run[0][0] for run in runs]), sum(run[1] for run in runs) / RIVAL_LANES


def compilations():
    """How often a solve compiles while a delay and another parameter change."""
    run = solver(fc.Uniform(0.025, slots=64), SINGLE_TIMES)
    for change in (1.0, 1.1, 1.2):
        p = np.concatenate([SINGLE * [1.0, change, 1.0, change, 1.0, 1.0], SINGLE_START])
        run(p).block_until_ready()
    print(f"compilations for three sets of parameters, delays included: {run._cache_size()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    fc.fast_cpu()
    warnings.filterwarnings("ignore", module="jitcdde")
    rival = Rival()
    single(rival, repetitions)
    batch(rival, repetitions)
    compilations()


if __name__ == "__main__":
    main()
