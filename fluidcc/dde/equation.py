"""From a delay equation as a user writes it, on PyTrees, to a system on flat arrays."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from fluidcc.arrays import jax, jnp
from fluidcc.dde.system import Events, Shapes, System, shapes_of, size_of, unraveler


def _floats(value: Any) -> Any:
    """An array of floats that does not start JAX's backend if it is not one of JAX's."""
    return value if isinstance(value, jax.Array) else np.asarray(value, float)


class Sampled(eqx.Module):
    """Inputs that are held between sample times.

    Parameters
    ----------
    times
        Shape (k,), increasing: where the input changes.
    values
        Shape (k + 1, ...): before the first time, between the times, after the last.

    Examples
    --------
    >>> import fluidcc as fc
    >>> held = fc.Sampled([1.0], [0.0, 2.0])
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p, u: u(t - 0.5), lambda t, p: 0.0, 0.0, 2.0, lags=[], ts=[1.5, 2.0],
    ...     inputs=held,
    ... )
    >>> found.y.round(6).tolist()
    [0.0, 1.0]
    """

    times: Any = eqx.field(converter=_floats)
    values: Any = eqx.field(converter=_floats)

    def __check_init__(self) -> None:
        """Raise ValueError unless times increase and there is one more value than times."""
        if self.times.ndim != 1 or self.values.shape[:1] != (self.times.size + 1,):
            raise ValueError(
                "Sampled needs times of shape (k,) and k + 1 values, got shapes "
                f"{self.times.shape} and {self.values.shape}"
            )
        if isinstance(self.times, np.ndarray) and not np.all(np.diff(self.times) > 0):
            raise ValueError(f"Sampled needs increasing times, got {self.times}")


@dataclasses.dataclass(frozen=True)
class Modes:
    """Events that change a discrete mode, an integer array that is constant within a step.

    Parameters
    ----------
    start
        start(t, y, z, params) -> mode at t0.
    guards
        guards(t, y, z, params, mode) -> array (m,), positive inside the mode.
    switch
        switch(t, y, z, params, mode, hit) -> (mode, y) when the guards marked in `hit`, an array
        of booleans (m,), have fallen to zero. It may move the state, best onto the boundary.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import jax.numpy as jnp
    >>> fall = fc.Modes(
    ...     start=lambda t, y, z, p: jnp.array(1),
    ...     guards=lambda t, y, z, p, mode: jnp.array([jnp.where(mode == 1, y, 1.0)]),
    ...     switch=lambda t, y, z, p, mode, hit: (jnp.array(0), 0.0 * y),
    ... )
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p, mode: jnp.where(mode == 1, -1.0, 0.0) + 0.0 * y,
    ...     lambda t, p: 1.5, 0.0, 3.0, lags=[], ts=[1.0, 2.0], modes=fall,
    ... )
    >>> found.y.round(6).tolist()
    [0.5, 0.0]
    """

    start: Callable[..., Any]
    guards: Callable[..., Any]
    switch: Callable[..., tuple[Any, Any]]


class Arguments(NamedTuple):
    """The traced part of an equation."""

    params: Any
    inputs: Sampled | None


def as_state(tree: Any, dtype: Any = float) -> Any:
    """A PyTree of numbers as one of arrays of floats, in double precision by default."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def ravel_like(tree: Any, shapes: Shapes, name: str, dtype: Any = float) -> Array:
    """Flat array of a user function's result; raises ValueError unless it has the shapes of y."""
    tree = as_state(tree, dtype)
    got, wanted = (
        (structure, [shape for shape, _ in leaves])
        for structure, leaves in (shapes_of(tree), shapes)
    )
    if got != wanted:
        describe = lambda s: jax.tree.unflatten(*s)  # noqa: E731
        raise ValueError(
            f"{name} must return shapes {describe(wanted)} like y, got {describe(got)}"
        )
    return ravel_pytree(tree)[0]


class _Inputs:
    """Inputs seen by one evaluation of the field: the index of each call's value is a mode."""

    def __init__(self, sampled: Sampled, index: Array) -> None:
        self.sampled, self.index, self.times = sampled, index, []

    def __call__(self, time: Any) -> Array:
        call = len(self.times)
        self.times.append(jnp.asarray(time, float))
        index = self.index[call] if self.index.size else jnp.int32(0)
        return self.sampled.values[index]

    def late(self) -> Array:
        """Times of all calls, plus a rounding error, so that an edge reached counts as passed."""
        if not self.times:
            return jnp.zeros((0,))
        times = jnp.stack(self.times)
        return times + 1e-12 * jnp.maximum(1.0, jnp.abs(times))


class _Equation:
    """One user's equation; its methods are the functions of the system."""

    def __init__(
        self,
        field: Callable[..., Any],
        history: Callable[..., Any],
        lags: tuple[Callable[..., Any], ...],
        modes: Modes | None,
        y_shapes: Shapes,
        mode_shapes: Shapes,
        calls: int,
    ) -> None:
        self.field, self.past, self.lag_functions, self.modes = field, history, lags, modes
        self.y_shapes, self.tree = y_shapes, unraveler(y_shapes)
        self.mode_tree = unraveler(mode_shapes) if modes else None
        self.size = sum(size_of(shape) for shape, _ in y_shapes[1])
        self.mode_size = sum(size_of(shape) for shape, _ in mode_shapes[1])
        self.calls = calls

    def delayed(self, z: Array) -> tuple[Any, ...]:
        """The delayed states, one PyTree per lag."""
        return tuple(self.tree(z[i * self.size : (i + 1) * self.size]) for i in range(self.lags_n))

    @property
    def lags_n(self) -> int:
        """Number of lags."""
        return len(self.lag_functions)

    def _field(
        self, t: Array, y: Array, z: Array, args: Arguments, mode: Array
    ) -> tuple[Array, _Inputs | None]:
        """dy/dt, and the inputs that it has used."""
        extra: list[Any] = []
        inputs = None
        if args.inputs is not None:
            inputs = _Inputs(args.inputs, mode[self.mode_size :])
            extra.append(inputs)
        if self.mode_tree is not None:
            extra.append(self.mode_tree(mode[: self.mode_size]))
        dy = self.field(t, self.tree(y), self.delayed(z), args.params, *extra)
        return ravel_like(dy, self.y_shapes, "field", y.dtype), inputs

    def slope(self, t: Array, y: Array, z: Array, args: Arguments, mode: Array) -> Array:
        """dy/dt."""
        return self._field(t, y, z, args, mode)[0]

    def lags(self, t: Array, y: Array, args: Arguments, look: Callable[..., Array]) -> Array:
        """All lags; `look` reads the past, which these lags do not depend on."""
        del look
        values = [
            jnp.asarray(lag(t, self.tree(y), args.params), y.dtype) for lag in self.lag_functions
        ]
        for i, value in enumerate(values):
            if value.shape:
                raise ValueError(f"lags[{i}] must return one number, got shape {value.shape}")
        return jnp.stack(values) if values else jnp.zeros((0,), y.dtype)

    def history(self, times: Array, columns: Array, args: Arguments) -> Array:
        """History at each time, one column each."""

        def flat(t: Array) -> Array:
            return ravel_like(self.past(t, args.params), self.y_shapes, "history")

        if times.size == self.lags_n * self.size:  # every lag reads all columns
            return jax.vmap(flat)(times[:: self.size]).reshape(-1)
        return jax.vmap(lambda t, j: flat(t)[j])(times, columns)

    def initial(self, t: Array, y: Array, z: Array, args: Arguments) -> Array:
        """Mode of the user, then the held value of each call of the input."""
        parts = [jnp.zeros((0,), jnp.int32)]
        if self.modes is not None:
            mode = self.modes.start(t, self.tree(y), self.delayed(z), args.params)
            parts.append(_flat_mode(mode))
        if args.inputs is not None:
            start = jnp.concatenate([*parts, jnp.zeros((self.calls,), jnp.int32)])
            inputs = self._field(t, y, z, args, start)[1]
            assert inputs is not None
            parts.append(_held(args.inputs, inputs.late()))
        return jnp.concatenate(parts)

    def guards(self, t: Array, y: Array, z: Array, args: Arguments, mode: Array) -> Array:
        """Guards of the user, then those of the next and the last edge of the input."""
        parts = []
        if self.modes is not None:
            now = self.tree_of_mode(mode)
            guards = self.modes.guards(t, self.tree(y), self.delayed(z), args.params, now)
            parts.append(jnp.ravel(jnp.asarray(guards, float)))
        if args.inputs is not None:
            inputs = self._field(t, y, z, args, mode)[1]
            assert inputs is not None
            held = mode[self.mode_size :]
            edge = jnp.concatenate([jnp.array([-jnp.inf]), args.inputs.times, jnp.array([jnp.inf])])
            late = inputs.late()
            parts += [_distance(edge[held + 1], late, 1.0), _distance(edge[held], late, -1.0)]
        return jnp.concatenate(parts)

    def tree_of_mode(self, mode: Array) -> Any:
        """Mode of the user in its original PyTree."""
        assert self.mode_tree is not None
        return self.mode_tree(mode[: self.mode_size])

    def switch(
        self, t: Array, y: Array, z: Array, args: Arguments, mode: Array, hit: Array
    ) -> tuple[Array, Array]:
        """Mode and state after the guards marked in `hit`."""
        user_mode, held = mode[: self.mode_size], mode[self.mode_size :]
        inputs_hit = hit[hit.size - 2 * self.calls :]
        if args.inputs is not None:
            inputs = self._field(t, y, z, args, mode)[1]
            assert inputs is not None
            late = inputs.late()
            after, before = inputs_hit[: self.calls], inputs_hit[self.calls :]
            reached = _held(args.inputs, late)
            held = jnp.where(after, jnp.maximum(held + 1, reached), held)
            held = jnp.where(before, jnp.minimum(mode[self.mode_size :] - 1, reached), held)
        if self.modes is not None:
            user_hit = hit[: hit.size - 2 * self.calls]
            now, state = self.tree_of_mode(mode), self.tree(y)
            new, moved = self.modes.switch(t, state, self.delayed(z), args.params, now, user_hit)
            some = jnp.any(user_hit)
            user_mode = jnp.where(some, _flat_mode(new), user_mode)
            y = jnp.where(some, ravel_like(moved, self.y_shapes, "Modes.switch"), y)
        return jnp.concatenate([user_mode, held]), y


def _flat_mode(mode: Any) -> Array:
    """Modes, a PyTree of integers, as one array."""
    leaves = [jnp.ravel(jnp.asarray(leaf)).astype(jnp.int32) for leaf in jax.tree.leaves(mode)]
    return jnp.concatenate(leaves)


def _held(inputs: Sampled, times: Array) -> Array:
    """Index of the value held at each time."""
    return jnp.searchsorted(inputs.times, times, side="right").astype(jnp.int32)


def _distance(edge: Array, times: Array, sign: float) -> Array:
    """Distance to an edge in time; 1 for an edge at infinity, which is never reached."""
    known = jnp.isfinite(edge)
    return jnp.where(known, sign * (jnp.where(known, edge, 0.0) - times), 1.0)


def build(
    field: Callable[..., Any],
    history: Callable[..., Any],
    lags: tuple[Callable[..., Any], ...],
    modes: Modes | None,
    y0: Any,
    t0: Array,
    args: Arguments,
) -> System:
    """The system of a user's equation; the same functions and shapes give the same system."""
    y_shapes = shapes_of(y0)

    if modes is None and args.inputs is None:
        return _system_of(False, field, history, lags, None, y_shapes, shapes_of(None), 0)

    def probe() -> tuple[Any, Any]:
        z = tuple(y0 for _ in lags)
        mode = None
        if modes is not None:
            mode = jax.tree.map(
                lambda leaf: jnp.asarray(leaf).astype(jnp.int32),
                modes.start(t0, y0, z, args.params),
            )
        extra: list[Any] = []
        if args.inputs is not None:
            counter = _Inputs(args.inputs, jnp.zeros((0,), jnp.int32))
            extra.append(counter)
        if modes is not None:
            extra.append(mode)
        field(t0, y0, z, args.params, *extra)
        calls = jnp.zeros((len(extra[0].times) if args.inputs is not None else 0,))
        return mode, calls

    mode, calls = jax.eval_shape(probe)
    structure, leaves = jax.tree.structure(mode), jax.tree.leaves(mode)
    mode_shapes = (structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
    has_inputs = args.inputs is not None
    return _system_of(has_inputs, field, history, lags, modes, y_shapes, mode_shapes, calls.size)


def _system_of(*key: Any) -> System:
    try:
        return _cached(*key)
    except TypeError:  # a function that cannot be hashed: no reuse of what was compiled
        return _cached.__wrapped__(*key)


@functools.lru_cache(maxsize=256)
def _cached(has_inputs: bool, *parts: Any) -> System:
    equation = _Equation(*parts)
    events = None
    if equation.modes is not None or has_inputs:
        events = Events(equation.initial, equation.guards, equation.switch)
    return System(
        slope=equation.slope,
        lags=equation.lags,
        columns=(tuple(range(equation.size)),) * equation.lags_n,
        history=equation.history,
        events=events,
    )
