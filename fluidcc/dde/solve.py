"""`solve_dde`: any delay equation with constant, time- and state-dependent lags; its solution."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.flatten_util import ravel_pytree

from fluidcc.arrays import jax, jnp
from fluidcc.dde import cpu, equation
from fluidcc.dde.equation import Modes, Sampled
from fluidcc.dde.integrate import AbstractMesh, Status, check_mesh, integrate, known, number
from fluidcc.dde.located import Located
from fluidcc.dde.system import shapes_of, unraveler
from fluidcc.errors import answers
from fluidcc.quantities import about
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray


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

    def to_dict(self) -> dict[str, Any]:
        """Times, values and the status as plain numbers."""
        return {
            "t": plain(self.t), "y": plain(self.y), "status": Status(int(self.status)).name,
            "message": self.message,
        }  # fmt: skip

    def to_xarray(self) -> "xarray.Dataset":
        """The values over `time`, for one trajectory; a leaf of a state of several has its name."""
        import xarray as xr

        variables = {}
        for path, leaf in jax.tree_util.tree_flatten_with_path(self.y)[0]:
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "y"
            dims = ("time", *(f"{name}.{k}" for k in range(1, leaf.ndim)))
            own = {"units": "1", "long_name": f"state {name}"}
            variables[name] = (dims, np.asarray(leaf), own)
        attrs = {"status": Status(int(self.status)).name, "message": self.message}
        time = ("time", np.asarray(self.t), about("time"))
        return xr.Dataset(variables, {"time": time}, attrs)

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


@answers
def solve_dde(
    field: Callable[..., Any],
    history: Callable[..., Any],
    t0: Any,
    t1: Any,
    *,
    lags: Sequence[Callable[..., Any]],
    params: Any = None,
    y0: Any = None,
    ts: Any = None,
    inputs: Sampled | None = None,
    modes: Modes | None = None,
    mesh: AbstractMesh | None = None,
    batched: bool = False,
) -> Solution:
    """Solve y'(t) = field(t, y, z, params), z[i] = y(t - lags[i](t, y, params)), from t0 to t1.

    Everything but the functions may change without compiling anew: `params` (delays included),
    t0, t1, steps, tolerances. It can be differentiated in forward mode (jax.jvp, jax.jacfwd), and
    vmapped, in `params` and `y0`, with `Uniform` and `Located`; derivatives follow events that
    `modes` declares. Failure of a run is given by its `status`.

    Parameters
    ----------
    field
        field(t, y, z, params) -> dy/dt with the structure of y, an array or PyTree of floats. With
        `inputs` a function u follows, u(t') the input at any time t' up to t; with `modes` the
        present mode follows.
    history
        history(t, params) -> y for t <= t0.
    t0, t1
        Start and end.
    lags
        Functions (t, y, params) -> lag >= 0. An empty list makes an ordinary equation.
    params
        Any PyTree, handed to all functions.
    y0
        State at t0 if it differs from history(t0): a jump.
    ts
        Increasing times to save, in [t0, t1]; by default the nodes of the mesh (in traced code the
        last one is repeated to a fixed number).
    inputs
        Held inputs. Their edges, direct and delayed, are breaking points.
    modes
        Events that change a discrete mode.
    mesh
        `Located(rtol=1e-6)` by default; `Uniform` for batches; `MethodOfSteps` as a check.
    batched
        Solve for every index along the leading axis of all leaves of `params`, in blocks that
        suit the processor's cache. All arrays of the solution get that axis first.

    Returns
    -------
    Solution
        `t` (S,) and `y`, each leaf with the times as its first axis; `status` and `status_time`,
        the last good time; called with times, it gives the state there.

    Raises
    ------
    ValueError
        For wrong shapes, times that are not increasing, a mesh that cannot solve the problem, or
        reverse mode (jax.grad).

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -p * z[0], lambda t, p: 1.0, 0.0, 2.0,
    ...     lags=[lambda t, y, p: 1.0], params=1.0, ts=[0.5, 2.0],
    ... )
    >>> found.message, found.y.round(6).tolist()
    ('the run reached its end', [0.5, -0.5])
    """
    mesh = Located() if mesh is None else mesh
    cpu.from_environment()
    _check_functions(field, history, lags)
    check_mesh(mesh)
    lags = tuple(lags)
    t0, t1 = number(t0), number(t1)
    if known(t0, t1) and not t0 < t1:
        raise ValueError(f"solve_dde needs t0 < t1, got {t0} and {t1}")
    if ts is not None:
        ts = _checked_times(number(ts), t0, t1)
    first = jax.tree.map(lambda leaf: leaf[0], params) if batched else params
    jump = y0 is not None
    start = equation.as_state(y0) if jump else equation.as_state(history(t0, first))
    inputs = None if inputs is None else jax.tree.map(jnp.asarray, inputs)
    args = equation.Arguments(first, inputs)
    system = equation.build(field, history, lags, modes, start, t0, args)

    def begin(params: Any) -> Array:
        return ravel_pytree(start if jump else equation.as_state(history(t0, params)))[0]

    path = integrate(
        system,
        jax.vmap(begin)(params) if batched else begin(params),
        t0,
        t1,
        equation.Arguments(params, inputs),
        mesh=mesh,
        ts=ts,
        jump=jump,
        batched=batched,
    )
    if known(path.status):
        jax.block_until_ready(path.y)  # a lack of memory shows here, not as numbers are read
    unravel = unraveler(shapes_of(start))
    tree = unravel
    for _ in range(path.y.ndim - 1):
        tree = jax.vmap(tree)
    return Solution(
        t=path.t,
        y=tree(path.y),
        status=path.status,
        status_time=path.status_time,
        steps=path.steps,
        breaking_points=path.breaking_points,
        _evaluate=path.evaluate,
        _unravel=unravel,
    )


def _check_functions(field: object, history: object, lags: object) -> None:
    """Raise TypeError if an argument is no function, such as a lag that is given as a number."""
    for name, function, form in (("field", field, "(t, y, z, params) -> dy/dt"),
                                 ("history", history, "(t, params) -> y")):  # fmt: skip
        if not callable(function):
            raise TypeError(f"{name}: expected a function {form}, got {function!r:.60}")
    listed = lags if isinstance(lags, Sequence) and not isinstance(lags, str) else None
    if listed is None or not all(map(callable, listed)):
        raise TypeError(
            f"lags: expected a list of functions (t, y, params) -> lag, got {lags!r:.60}"
        )


def _checked_times(ts: Array, t0: Array, t1: Array) -> Array:
    """`ts`; raises ValueError unless they are increasing times in [t0, t1]."""
    if ts.ndim != 1 or not ts.size:
        raise ValueError(f"ts must be a list of times, got shape {ts.shape}")
    if known(ts, t0, t1):
        slack = 1e-9 * float(t1 - t0)
        inside = t0 - slack <= ts[0] and ts[-1] <= t1 + slack
        if not inside or not np.all(np.diff(ts) >= 0):
            raise ValueError(
                f"ts must increase within [t0, t1] = [{t0}, {t1}], got {ts[0]} ... {ts[-1]}"
            )
    return ts
