"""The solution object of the delay equation solver."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jax.core import Tracer

from fluidcc.arrays import jax, jnp
from fluidcc.dde.status import Status
from fluidcc.result import Result


class Solution(Result, eqx.Module):
    """Values of a delay equation's solution, and how the run ended.

    `t` has shape (S,), each leaf of `y` the times as its first axis; after a failure the last
    good value is repeated. `status` is a code of `Status`, `status_time` the last good time.
    `steps` counts steps; `breaking_points` are the times on which the mesh has landed, filled up
    with infinities in traced code. Calling a solution evaluates it at any times in [t0, t1].

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 3.0, lags=[lambda t, y, p: 1.0]
    ... )
    >>> round(float(found(0.5)), 6), found.breaking_points[:3].tolist()
    (0.5, [1.0, 2.0, 3.0])
    """

    _view = "runs.SolutionView"

    t: Array
    y: Any
    status: Array
    status_time: Array
    steps: Array
    breaking_points: Array
    _evaluate: Callable[[Array], Array] | None
    _unravel: Callable[[Array], Any] = eqx.field(static=True)

    def __call__(self, t: Any) -> Any:
        """State at the time or times t, of any shape; raises ValueError if it was not kept."""
        if self._evaluate is None:
            raise ValueError(
                "this run kept its state only at ts; with Uniform leave ts out to keep every node"
            )
        times = jnp.asarray(t, float)
        flat = self._evaluate(jnp.ravel(times))
        tree = jax.vmap(self._unravel)(flat)
        return jax.tree.map(lambda leaf: leaf.reshape(times.shape + leaf.shape[1:]), tree)

    @property
    def message(self) -> str:
        """Meaning of the status, with the time of a failure and advice: for one trajectory."""
        status = Status(int(self.status))
        when = "" if status is Status.ok else f"after t = {float(self.status_time):.9g}: "
        return when + status.advice

    def __repr__(self) -> str:
        if isinstance(self.status, Tracer):
            return "Solution(traced)"
        codes = np.asarray(self.status)
        names = ", ".join(
            f"{Status(int(code)).name} ({count})" if codes.ndim else Status(int(code)).name
            for code, count in zip(*np.unique(codes, return_counts=True), strict=True)
        )
        shapes = jax.tree.map(lambda leaf: leaf.shape, self.y)
        return f"Solution(status={names}, t={self.t.shape}, y={shapes})"
