"""Delay equations with known solutions, written for `fluidcc.solve_dde`.

An answer is a closed form or reference values on which two independent solvers agree to the
digits printed. Run the file for a table of the error of every mesh on every problem.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import fluidcc as fc


@dataclasses.dataclass(frozen=True)
class Problem:
    """One initial-value problem: the arguments of `solve_dde`, and its answer.

    `exact(t)` is the solution in closed form; else `reference` maps times to states. `breaks` are
    breaking points after t0 of the orders that a method of order 4 can see. `refuses` maps the
    name of a mesh that cannot solve it to the status it must report.
    """

    name: str
    source: str
    field: Callable[..., Any]
    lags: tuple[Callable[..., Any], ...]
    history: Callable[..., Any]
    t0: float
    t1: float
    y0: Any = None
    params: Any = None
    modes: fc.Modes | None = None
    exact: Callable[[float], list[float]] | None = None
    reference: dict[float, list[float]] = dataclasses.field(default_factory=dict)
    breaks: tuple[float, ...] = ()
    refuses: dict[str, fc.Status] = dataclasses.field(default_factory=dict)

    def answer(self, points: int = 12) -> tuple[np.ndarray, np.ndarray]:
        """Times (S,) and states (S, n) to compare with."""
        if self.exact is None:
            return np.array(list(self.reference)), np.array(list(self.reference.values()))
        times = np.linspace(self.t0, self.t1, points + 1)[1:]
        return times, np.array([self.exact(float(t)) for t in times])

    def solve(self, mesh: Any, ts: Any = None) -> fc.Solution:
        """Solve it up to the last of the times `ts`, or up to t1."""
        end = self.t1 if ts is None else float(ts[-1])
        return fc.solve_dde(
            self.field,
            self.history,
            self.t0,
            end,
            lags=self.lags,
            params=self.params,
            y0=self.y0,
            ts=ts,
            modes=self.modes,
            mesh=mesh,
        )

    def error(self, mesh: Any, until: float | None = None) -> tuple[fc.Solution, float]:
        """Solution and its largest error relative to the largest value of each component."""
        times, right = self.answer()
        if until is not None:
            times, right = times[times <= until], right[times <= until]
        solution = self.solve(mesh, times)
        scale = np.maximum(np.abs(right).max(axis=0), 1e-300)
        return solution, float(np.max(np.abs(np.asarray(solution.y) - right) / scale))


# -- lags that are constant ----------------------------------------------------------------------


def _fundamental(t: float) -> list[float]:
    """Method of steps for x' = -x(t - 1), x(0) = 1 after nothing."""
    terms = ((-1.0) ** k * (t - k) ** k / math.factorial(k) for k in range(math.floor(t) + 1))
    return [math.fsum(terms)]


DELTA1 = Problem(
    name="delta1",
    source="fundamental solution of x' = -x(t - 1); x jumps at t0; x(10) = 19223/362880",
    field=lambda t, y, z, p: -z[0],
    lags=(lambda t, y, p: 1.0,),
    history=lambda t, p: jnp.zeros(1),
    y0=np.ones(1),
    t0=0.0,
    t1=10.0,
    exact=_fundamental,
    breaks=(1.0, 2.0, 3.0, 4.0),
)

MACKEY_GLASS = Problem(
    name="MackeyGlass17",
    source="Mackey and Glass (1977), delay 17; weakly chaotic, so only early times are compared",
    field=lambda t, y, z, p: 0.2 * z[0] / (1.0 + z[0] ** 10) - 0.1 * y,
    lags=(lambda t, y, p: 17.0,),
    history=lambda t, p: jnp.full(1, 1.2),
    t0=0.0,
    t1=200.0,
    reference={50.0: [1.0609543629], 100.0: [1.01372401652], 200.0: [1.18671810712]},
    breaks=(17.0, 34.0, 51.0),
)

# -- lags that depend on time or state -----------------------------------------------------------

EH_B1 = Problem(
    name="EH_B1",
    source="Enright and Hayashi, DDE test set, B1: y = log t; the lag vanishes at t = 1",
    field=lambda t, y, z, p: 1.0 - z[0],
    lags=(lambda t, y, p: t - jnp.exp(1.0 - 1.0 / t),),
    history=lambda t, p: jnp.log(t)[None],
    t0=0.1,
    t1=10.0,
    exact=lambda t: [math.log(t)],
    refuses={"Uniform": fc.Status.lag_below_step, "MethodOfSteps": fc.Status.lag_below_step},
)

EH_D1 = Problem(
    name="EH_D1",
    source="Enright and Hayashi, DDE test set, D1 (ddex3 of MATLAB): y = (log t, 1/t); the "
    "state-dependent lag vanishes at t = 1",
    field=lambda t, y, z, p: jnp.stack([y[1], -z[0][1] * y[1] ** 2 * jnp.exp(1.0 - y[1])]),
    lags=(lambda t, y, p: t - jnp.exp(1.0 - y[1]),),
    history=lambda t, p: jnp.stack([jnp.log(t), 1.0 / t]),
    t0=0.1,
    t1=5.0,
    exact=lambda t: [math.log(t), 1.0 / t],
    refuses={"Uniform": fc.Status.lag_below_step, "MethodOfSteps": fc.Status.lag_below_step},
)

_ROOT2 = math.sqrt(2.0)


def _neves_feldstein(t: float) -> list[float]:
    if t <= 1.0:
        return [1.0]
    if t <= 2.0:
        return [math.sqrt(t)]
    return [0.25 * t + 0.5 + (1.0 - 0.5 * _ROOT2) * math.sqrt(t)]


NEVES_FELDSTEIN = Problem(
    name="NevesFeldstein",
    source="Neves and Feldstein (1976); breaking points at 1, 2 and (3 sqrt 2 - 2)^2",
    field=lambda t, y, z, p: z[0] / (2.0 * jnp.sqrt(t)),
    lags=(lambda t, y, p: t - (y[0] - _ROOT2 + 1.0),),
    history=lambda t, p: jnp.ones(1),
    t0=1.0,
    t1=(3.0 * _ROOT2 - 2.0) ** 2,
    exact=_neves_feldstein,
    breaks=(2.0, (3.0 * _ROOT2 - 2.0) ** 2),
)

# -- TCP under RED ---------------------------------------------------------------------------------

CAPACITY, FLOWS, PROPAGATION = 3750.0, 60.0, 0.2  # packet/s, 1, s
RED_MIN, RED_SLOPE = 150.0, 0.1 / 550.0  # packet, 1/packet


def _round_trip(queue: Any) -> Any:
    return PROPAGATION + queue / CAPACITY


def _tcp_red(t: Any, y: Any, z: Any, filter_rate: Any) -> Any:
    """Window, queue and averaged queue [packet]; `filter_rate` [1/s] drives the average."""
    (window, queue, average), (old_window, old_queue, old_average) = y, z[0]
    cut = window * old_window / (2.0 * _round_trip(old_queue)) * RED_SLOPE
    return jnp.stack(
        [
            1.0 / _round_trip(queue) - cut * (old_average - RED_MIN),
            FLOWS * window / _round_trip(queue) - CAPACITY,
            filter_rate * (queue - average),
        ]
    )


TCP = Problem(
    name="TCP_state_dependent",
    source="Misra, Gong and Towsley (2000), N = 60, C = 3750 packet/s, lag R(q(t))",
    field=_tcp_red,
    lags=(lambda t, y, p: _round_trip(y[1]),),
    history=lambda t, p: jnp.array([15.0, 190.0, 195.0]),
    params=0.005,
    t0=0.0,
    t1=100.0,
    reference={
        1.0: [15.288674004, 164.707085366, 194.855395747],
        10.0: [15.717437595, 192.966264729, 194.471300594],
        100.0: [15.739972975, 194.398349485, 194.400155542],
    },
    breaks=(0.244474138509, 0.487530924434, 0.730760921424),
)

# -- sampled control -------------------------------------------------------------------------------

GAIN = 0.7  # stable for 0 < gain < 2; a continuous controller with the mean lag is not


def _sampled(t: float) -> list[float]:
    periods = math.floor(t)
    held = (1.0 - GAIN) ** periods
    return [held * (1.0 - GAIN * (t - periods)), held]


SAMPLED = Problem(
    name="sampled_exact",
    source="x' = -a x(floor t), a delay equation with piecewise constant argument, as modes: the "
    "second component holds the sample",
    field=lambda t, y, z, p, mode: jnp.stack([-GAIN * y[1], jnp.zeros(())]),
    lags=(),
    history=lambda t, p: jnp.ones(2),
    modes=fc.Modes(
        start=lambda t, y, z, p: 0,
        guards=lambda t, y, z, p, mode: jnp.stack([jnp.asarray(mode + 1, float) - t]),
        switch=lambda t, y, z, p, mode, hit: (mode + 1, jnp.stack([y[0], y[0]])),
    ),
    t0=0.0,
    t1=12.5,
    exact=_sampled,
    breaks=tuple(float(k) for k in range(1, 13)),
)

PROBLEMS = (DELTA1, EH_B1, EH_D1, NEVES_FELDSTEIN, MACKEY_GLASS, TCP, SAMPLED)


def main() -> None:
    """Print the error of every mesh on every problem."""
    for problem in PROBLEMS:
        for mesh in (fc.Uniform(0.005), fc.Located(rtol=1e-8), fc.MethodOfSteps(rtol=1e-10)):
            solution, error = problem.error(mesh)
            status = fc.Status(int(solution.status))
            result = f"error {error:.1e}" if status is fc.Status.ok else f"refused: {status.name}"
            name = type(mesh).__name__
            print(f"{problem.name:20s} {name:14s} {int(solution.steps):6d} steps  {result}")


if __name__ == "__main__":
    main()
