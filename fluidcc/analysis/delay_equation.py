"""Any delay equation as a model for the analysis: its equilibrium and linearisation."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.linear import Array, Linear
from fluidcc.arrays import jax, jnp
from fluidcc.dde.equation import as_state, ravel_like
from fluidcc.dde.system import shapes_of, unraveler
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.quantities import about
from fluidcc.result import Result

if TYPE_CHECKING:
    import xarray

_ITERATIONS = 60
_HALVINGS = 12
_SMALL = 1e-10  # of the state: a Newton step that ends the search
_SOLVED = 1e-6  # of the field: largest residual of a step if the derivative is singular

Field = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class DelayEquation:
    """y'(t) = field(t, y, z, params), z[i] = y(t - lags[i](t, y, params)), without explicit time.

    `stability`, `crossings` and `boundary` accept it like a network; paths are the keys
    of `params`, joined by dots where these are nested.

    Parameters
    ----------
    field
        field(t, y, z, params) -> dy/dt with the structure of y, as in `solve_dde`; t is 0.
    lags
        Functions (t, y, params) -> lag >= 0.
    params
        Numbers by name, nested or not.
    guess
        State near which the equilibrium is sought, or a function of `params` that returns one. It
        selects one of several equilibria.

    Examples
    --------
    >>> import fluidcc as fc
    >>> hutchinson = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.5}, 0.0
    ... )
    >>> fc.stability(hutchinson).stable
    True
    """

    field: Field
    lags: Sequence[Callable[..., Any]]
    params: Mapping[str, Any]
    guess: Any

    def __post_init__(self) -> None:
        """Keep the lags and the parameters as they are now."""
        object.__setattr__(self, "lags", tuple(self.lags))
        object.__setattr__(self, "params", copy.deepcopy(dict(self.params)))

    def number_at(self, path: str) -> float:
        """The parameter at a path; raises ScenarioError, with the nearest names, if none."""
        here: Any = self.params
        for part in path.split("."):
            here = here.get(part) if isinstance(here, Mapping) else None
        number = np.issubdtype(np.asarray(here).dtype, np.number) and not np.ndim(here)
        if not number or np.iscomplexobj(here):
            close = nearest(path, list(_names(self.params)), least=0.0)
            fault = Fault("params", path, "the path of a number", "no such path", close)
            raise ScenarioError([fault])
        return float(here)

    def replace(self, changes: Mapping[str, float]) -> DelayEquation:
        """The equation with some parameters changed, by path."""
        params = copy.deepcopy(dict(self.params))
        for path, value in changes.items():
            self.number_at(path)
            *inner, last = path.split(".")
            here: Any = params
            for part in inner:
                here = here[part]
            here[last] = value
        return dataclasses.replace(self, params=params)

    def equilibrium(self) -> EquationEquilibrium:
        """The equilibrium, with a status."""
        return equation_equilibrium(self)


def _names(params: Mapping[str, Any], prefix: str = "") -> Any:
    for key, value in params.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@dataclasses.dataclass(frozen=True, repr=False)
class EquationEquilibrium(Result):
    """An equilibrium of a delay equation: `y` as the equation has it, `flat` (n,), lags there.

    `jacobians` are the derivatives of the field by the present and by each delayed state. `status`
    is `regular`, or `none` if none was found near the guess; `message` has the reason.

    `lags` has their values (k,), `equation` is the equation.

    Examples
    --------
    >>> import fluidcc as fc
    >>> decay = fc.DelayEquation(
    ...     lambda t, y, z, p: p["a"] - z[0] ** 2, [lambda t, y, p: 1.0], {"a": 4.0}, 1.5
    ... )
    >>> rest = decay.equilibrium()
    >>> rest.status, round(float(rest.y), 6)
    ('regular', 2.0)
    """

    _view = "equilibria.EquationView"
    _in_dict = "status", "message", "y", "lags"

    kinked: ClassVar = False
    sliding: ClassVar = ()

    status: str
    message: str
    y: Any
    flat: Array
    lags: Array
    jacobians: tuple[Array, list[Array]] = dataclasses.field(repr=False)
    equation: DelayEquation = dataclasses.field(repr=False)

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation."""
        return self.status == "regular"

    @property
    def regime(self) -> Hashable:
        """Label that is constant along a family while the linearisation is smooth."""
        return (self.status,)

    def linear(self, *, side: int = 0) -> Linear:
        """The linear system, the same on any `side`; lags are frozen, which is exact to first
        order at an equilibrium.
        """
        return Linear.retarded(*self.jacobians, [float(lag) for lag in self.lags])

    def to_xarray(self) -> xarray.Dataset:
        """The equilibrium state, flat, and the lags there [s]."""
        import xarray as xr

        variables = {
            "y": ("state", self.flat, about("y")), "lag": ("delay", self.lags, about("lag")),
        }  # fmt: skip
        return xr.Dataset(variables, attrs={"status": self.status, "message": self.message})


def flat_field(equation: DelayEquation, y: Any) -> Callable[..., Any]:
    """field(y, z, params) of flat states y (n,) and z (lags, n)."""
    shapes = shapes_of(as_state(y))
    tree = unraveler(shapes)

    def field(flat: Any, delayed: Any, params: Any) -> Any:
        z = tuple(tree(row) for row in delayed)
        return ravel_like(equation.field(0.0, tree(flat), z, params), shapes, "field")

    return field


def flat_lags(equation: DelayEquation, y: Any) -> Callable[..., Any]:
    """lags(y, params) (lags,) of a flat state."""
    tree = unraveler(shapes_of(as_state(y)))

    def lags(flat: Any, params: Any) -> Any:
        values = [jnp.asarray(lag(0.0, tree(flat), params), float) for lag in equation.lags]
        return jnp.stack(values) if values else jnp.zeros((0,))

    return lags


class _Solved(NamedTuple):
    """Flat state, whether it is an equilibrium, derivatives by present and delayed states, lags."""

    y: Any
    found: Any
    present: Any
    delayed: Any
    lags: Any


@functools.lru_cache(maxsize=256)
def _solver(
    field: Field,
    lags: tuple[Callable[..., Any], ...],
    guess: Callable[..., Any] | None,
    shapes: Any,
) -> Callable[..., _Solved]:
    """Compiled function of the parameters and of a flat guess; `guess` replaces the latter."""
    y = jax.tree.unflatten(shapes[0], [np.zeros(shape) for shape, _ in shapes[1]])
    equation = DelayEquation(field, lags, {}, y)
    now, late = flat_field(equation, y), flat_lags(equation, y)

    def solved(params: Any, start: Any) -> _Solved:
        if guess is not None:
            start = ravel_pytree(as_state(guess(params)))[0]
        count = start.size

        def still(y: Any) -> Any:
            return now(y, jnp.broadcast_to(y, (len(lags), count)), params)

        y, found = _newton(still, start)
        z = jnp.broadcast_to(y, (len(lags), count))
        present, delayed = jax.jacfwd(now, (0, 1))(y, z, params)
        return _Solved(y, found, present, delayed, late(y, params))

    return jax.jit(solved)


def _newton(function: Callable[..., Any], start: Any) -> tuple[Any, Any]:
    """Zero by Newton's method with step halving, and whether it converged."""
    parts = 0.5 ** np.arange(_HALVINGS)

    def step(carry: Any) -> Any:
        count, y, _, _ = carry
        value, slope = function(y), jax.jacfwd(function)(y)
        way = jnp.linalg.solve(slope, value)
        way = jnp.where(jnp.all(jnp.isfinite(way)), way, jnp.linalg.lstsq(slope, value)[0])
        size = jnp.linalg.norm(value)
        solved = jnp.linalg.norm(slope @ way - value) <= _SOLVED * size
        small = jnp.max(jnp.abs(way)) <= _SMALL * jnp.maximum(1.0, jnp.max(jnp.abs(y)))
        done = solved & small
        sizes = jax.vmap(lambda part: jnp.linalg.norm(function(y - part * way)))(parts)
        better = sizes < size
        part = jnp.where(done, 1.0, jnp.asarray(parts)[jnp.argmax(better)])
        return count + 1, y - part * way, done, ~done & ~jnp.any(better)

    def going(carry: Any) -> Any:
        return (carry[0] < _ITERATIONS) & ~carry[2] & ~carry[3]

    no = jnp.asarray(False)
    _, y, done, _ = jax.lax.while_loop(going, step, (0, start, no, no))
    return y, done & jnp.all(jnp.isfinite(y))


def equation_equilibrium(equation: DelayEquation) -> EquationEquilibrium:
    """The equilibrium by damped Newton's method from the guess."""
    params = jax.tree.map(np.float64, dict(equation.params))
    moves = callable(equation.guess)
    start = equation.guess(params) if moves else equation.guess
    leaves, structure = jax.tree.flatten(start)
    flat = np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in leaves])
    shapes = (structure, tuple((np.shape(leaf), np.dtype(float)) for leaf in leaves))
    key = (equation.field, tuple(equation.lags), equation.guess if moves else None, shapes)
    try:
        solve = _solver(*key)
    except TypeError:  # a function that cannot be hashed: compiled anew each time
        solve = _solver.__wrapped__(*key)
    found = jax.tree.map(np.asarray, solve(params, flat))
    message = ""
    if not found.found:
        message = "no equilibrium found near the guess: try another guess"
    elif not np.all(np.isfinite(found.lags) & (found.lags >= 0)):
        message = f"a lag is negative or not finite at the equilibrium: {found.lags}"
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = [p.reshape(np.shape(v)) for p, v in zip(np.split(found.y, ends), leaves, strict=True)]
    blocks = [found.delayed[:, k] for k in range(len(found.lags))]
    return EquationEquilibrium(
        "none" if message else "regular", message, jax.tree.unflatten(structure, parts),
        found.y, found.lags, (found.present, blocks), equation,
    )  # fmt: skip
