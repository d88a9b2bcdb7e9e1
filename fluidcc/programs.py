"""Trees of numbers, derivatives, loops and compiled functions that serve NumPy as well as JAX.

Whatever is called with arrays of JAX is done by JAX: compiled, mapped over batches, differentiated.
Called with plain numbers and arrays of NumPy it is done as it is written, without importing JAX.
Trees are those of JAX, in the same order: modules, tuples and lists of numbers, with None for no
number.
"""

import contextlib
import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidcc import dual, ops
from fluidcc.module import parts_of, rebuild, skeleton
from fluidcc.ops import Num
from fluidcc.recording import Tape


def leaves(tree: Any) -> list[Any]:
    """The numbers of a tree, in order."""
    found: list[Any] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Any]) -> None:
    parts = parts_of(type(tree))
    if parts is not None:
        for inner in parts(tree):
            _collect(inner, found)
    elif tree is not None:
        found.append(tree)


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree of the results of a function of the numbers at the same position of each tree."""
    parts = parts_of(type(tree))
    if parts is None:
        return None if tree is None else function(tree, *others)
    nodes = zip(parts(tree), *map(parts, others), strict=True)
    return rebuild(tree, [map_tree(function, *each) for each in nodes])


def unflatten(tree: Any, values: Any) -> Any:
    """A tree of the same shape with other numbers, in order."""
    rest = iter(values)
    return map_tree(lambda _: next(rest), tree)


def flatten(tree: Any, points: tuple[int, ...] = (), like: Any = None) -> Any:
    """All numbers of a tree as one vector (n,); of trees of numbers at several `points`, see
    `batch`, vectors (*points, n), each with as many as its counterpart in `like`, if given.
    """
    found = leaves(tree)
    if not found:
        return np.zeros((*points, 0))
    if not points:
        return ops.concatenate([ops.ravel(v) for v in found])
    sizes = (np.shape(dual.plain(v))[-1:] or (1,) for v in (leaves(like) or found))
    rows = (ops.broadcast_to(v, (*points, *size)) for v, size in zip(found, sizes, strict=True))
    return ops.concatenate([*rows], axis=-1)


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a tree as one vector (n,), and the function that makes the tree of such a one,
    or the tree of numbers at several points of vectors (P, n), see `batch`.
    """
    shapes = [np.shape(v) for v in leaves(tree)]
    ends = [0, *itertools.accumulate(map(math.prod, shapes))]

    def restore(flat: Any) -> Any:
        points = flat.shape[:-1]
        parts = (flat[..., a:b] for a, b in itertools.pairwise(ends))
        shaped = (
            part.reshape((*points, *(shape or (points and (1,)))))
            for part, shape in zip(parts, shapes, strict=True)
        )
        return unflatten(tree, shaped)

    return flatten(tree), restore


_compiling = contextvars.ContextVar("compiling", default=False)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Compile equilibria and linearisations, for verbs that need many of one structure.

    One costs 20 to 1000 ms in NumPy; compiled it costs about 3, after seconds of compilation the
    first time for each structure of networks. What they give is NumPy's either way, as JAX takes
    longer for a few numbers at a time. Also a decorator.
    """
    before = _compiling.set(True)
    try:
        yield
    finally:
        _compiling.reset(before)


def as_array(number: Num) -> Num:
    """A number in double precision, of NumPy unless it is traced."""
    return number if ops.is_tracer(number) else np.asarray(number, float)[()]


def compiled(
    function: Callable[..., Any] | None = None,
    *,
    unless: Callable[..., bool] = lambda *_: False,
    **options: Any,
) -> Any:
    """Compile a function for arrays of JAX, and within `compiling` for NumPy's, `unless` its
    arguments are such that it compiles what it needs by itself; `options` are those of
    `compile_once`.
    """
    if function is None:
        return functools.partial(compiled, unless=unless, **options)

    @functools.cache
    def program() -> Callable[..., Any]:
        from fluidcc.executables import compile_once

        return compile_once(function, **options)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if ops.traced(*leaves(args), *leaves(tuple(named.values()))):
            return program()(*args, **named)
        if _compiling.get() and not unless(*args):
            return map_tree(lambda v: np.asarray(v)[()], program()(*args, **named))
        with np.errstate(all="ignore"):
            return function(*args, **named)

    return call


def in_columns(few: int, many: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Within `compiling`, let a function of a tree and of trees of arrays (..., B) have `few` or
    `many` columns at a time, so that two programs of what it compiles serve any number of them.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(held: Any, *given: Any, **options: Any) -> Any:
            if not _compiling.get():
                return function(held, *given, **options)
            last, parts = np.shape(leaves(given)[0])[-1] - 1, []
            count = few if last < few else many
            for first in range(0, last + 1, count):
                columns = np.minimum(np.arange(first, first + count), last)
                own = map_tree(lambda v, c=columns: v[..., c], given)
                parts.append(function(held, *own, **options))
            if len(parts) > 1:
                parts = [map_tree(lambda *v: np.concatenate(v, axis=-1), *parts)]
            return map_tree(lambda v: v[..., : last + 1], parts[0])

        return call

    return decorate


def machine_code(signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Within `compiling`, let Numba compile a function of arrays of NumPy of these types.

    The function uses NumPy, as `np`, and nothing else of its module.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.cache
        def program() -> Callable[..., Any]:
            from fluidcc.kept_modules import compiled_alone

            return compiled_alone(function, signature)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return (program() if _compiling.get() else function)(*args)

        return call

    return decorate


_written: dict[Any, Callable[..., Any]] = {}


def write_out(
    function: Callable[..., Any], held: tuple, free: tuple, **options: Any
) -> Callable[..., Any]:
    """An elementwise `function(*held, *free, **options)`, which may sum over classes, as
    straight-line code for NumPy, of the numbers of the trees `free`, in order; it gives the numbers
    of the result, in any shape that fills theirs.

    It is recorded once for each structure of the trees, to which plain Python numbers of `held`
    belong; operations on the numbers of `held` alone are done here. With arrays of JAX the function
    is called as it is. Raises ValueError if it branches in Python on a number.
    """
    numbers: list[Any] = []

    def of_held(number: Any) -> Any:
        if not _varies(number):
            return number
        numbers.append(number)
        return "number"

    key = (function, skeleton(held, of_held), skeleton(free), *options.values())
    if ops.traced(*numbers, *leaves(free)):
        return lambda *moved: tuple(leaves(function(*held, *unflatten(free, moved), **options)))
    if key not in _written:
        _written[key] = _record(function, held, free, options)
    with np.errstate(all="ignore"):
        return _written[key](*numbers)


def _record(function: Callable[..., Any], held: tuple, free: tuple, options: dict) -> Any:
    tape = Tape()

    def input_like(number: Any) -> Any:
        return tape.input(np.ravel(number)[0]) if _varies(number) else number

    fixed = map_tree(input_like, held)
    count = len(tape.inputs)
    moving = map_tree(lambda number: tape.input(np.ravel(number)[0]), free)
    with np.errstate(all="ignore"):
        return tape.program(leaves(function(*fixed, *moving, **options)), count)


def _varies(number: Any) -> bool:
    """Whether a number of a held tree is an argument of the code, not part of it."""
    return type(number) not in ops.PLAIN


def repeat(unfinished: Callable[[Any], Num], step: Callable[[Any], Any], carry: Any) -> Any:
    """Repeat a step while its carry, a tree of numbers, is unfinished.

    In compiled code at least one number of the carry must be an array of JAX.
    """
    if ops.traced(*leaves(carry)):
        from fluidcc.arrays import jax

        return jax.lax.while_loop(unfinished, step, carry)
    while unfinished(carry):
        carry = step(carry)
    return carry


def scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, rows: Any) -> tuple[Any, Any]:
    """Take a carry through the rows of a tree of arrays (n, ...), from the last row to the first.

    `step(carry, row)` gives the new carry and a tree of results; the results, in the order of the
    rows, have the shapes (n, ...). A step may change arrays of its carry.
    """
    if ops.traced(*leaves((carry, rows))):
        from fluidcc.arrays import jax

        return jax.lax.scan(step, carry, rows, reverse=True)
    found = []
    for k in reversed(range(len(leaves(rows)[0]))):
        carry, result = step(carry, map_tree(lambda v, k=k: v[k], rows))
        found.append(result)
    return carry, map_tree(lambda *v: np.stack(v), *reversed(found))


def jvp(function: Callable[[Num], Any], x: Num, direction: Num) -> tuple[Any, Any]:
    """A function at x, and its derivative along a direction: trees of numbers."""
    if ops.traced(x, direction):
        from fluidcc.arrays import jax

        return jax.jvp(function, (x,), (direction,))
    with dual.seed(x, direction) as moved:
        found = function(moved)
    pairs = [dual.parts(v, moved) for v in leaves(found)]
    values, slopes = iter(pairs), iter(pairs)
    return map_tree(lambda _: next(values)[0], found), map_tree(lambda _: next(slopes)[1], found)


def jacobian(function: Callable[[Num], Num], x: Num) -> Num:
    """Derivatives (k, n) of a function that takes (n,) to (k,)."""
    if ops.traced(x):
        from fluidcc.arrays import jax

        return jax.jacfwd(function)(x)
    return jvp(function, x, np.eye(len(x)))[1]


def slope(change: Callable[[Num], Any], *like: Any) -> Any:
    """Derivative of `change(k)` at k = 0: the rate of a rule stated for k packets or k seconds.

    Parameters
    ----------
    change
        Function of one number that returns a tree of numbers.
    like
        Trees that `change` closes over: a SymPy expression or an array of JAX among their numbers
        makes the result one.
    """
    numbers = leaves(like)
    if ops.symbolic(*numbers):
        import sympy as sp

        k = sp.Dummy("k", real=True)
        return map_tree(lambda e: sp.diff(sp.sympify(e), k).subs(k, 0), change(k))
    if ops.traced(*numbers):
        from fluidcc.arrays import jax

        def lifted(k: Num) -> Any:  # a change that ignores k must still be an array of JAX
            return map_tree(lambda v: v + 0.0 * k, change(k))

        return jax.jvp(lifted, (0.0,), (1.0,))[1]
    return jvp(change, np.float64(0.0), 1.0)[1]


def batch(function: Callable[[Num], Any], points: Num) -> Any:
    """A function of vectors at several points (P, n): trees of vectors (P, ...).

    In NumPy it takes all at once: among numbers of a tree, a single one has the shape (P, 1) and
    those of classes the shape (P, m), so that rules work number by number.
    """
    if ops.traced(points):
        from fluidcc.arrays import jax

        return jax.vmap(function)(points)
    return function(points)


def pseudo_inverse(matrix: Num) -> Num:
    """The pseudo-inverse of a matrix; NaN if an entry is not finite."""
    rounding = 10 * max(matrix.shape) * np.finfo(float).eps
    if ops.traced(matrix):
        from fluidcc.arrays import jnp

        return jnp.linalg.pinv(matrix, rtol=rounding)
    if not np.all(np.isfinite(matrix)):
        return np.full(matrix.T.shape, np.nan)
    return np.linalg.pinv(matrix, rcond=rounding)
