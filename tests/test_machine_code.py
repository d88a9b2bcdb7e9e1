"""Steps as machine code beside the same steps by JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fluidcc.loops import Loops, NotInLoopsError
from fluidcc.trains import engine

NEAR = {"rtol": 1e-13, "atol": 1e-13}  # sums may be taken in another order


def repeated(step, held, carry, count):
    """The carry after some steps by machine code."""
    loops = Loops.of(step, held, carry)
    packed = loops.pack(carry)
    loops.repeat(loops.pack(held), packed, count)
    return packed


def by_jax(step, held, carry, count):
    """The carry after some steps by JAX, one at a time."""
    for _ in range(count):
        carry = step(held, carry)
    return Loops.pack(carry)


def agree(step, held, carry, count=5):
    held, carry = jax.tree.map(jnp.asarray, (held, carry))
    expected = by_jax(step, held, carry, count)
    np.testing.assert_allclose(repeated(step, held, carry, count), expected, **NEAR)
    return expected


def values_of(functions, *held):
    """Compare functions of arrays, by their names, with JAX; machine code does all in one step."""
    held = tuple(map(jnp.asarray, held))
    expected = [jax.jit(function)(*held) for function in functions.values()]
    likes = [jnp.zeros_like(value) for value in expected]

    def step(held, _):
        return [function(*held) for function in functions.values()]

    found = np.split(repeated(step, held, likes, 1), np.cumsum([like.size for like in likes])[:-1])
    for name, one, other in zip(functions, found, expected, strict=True):
        np.testing.assert_allclose(one, Loops.pack(other), **NEAR, err_msg=name)


def value_of(function, *held):
    """Compare one function of arrays with JAX."""
    values_of({"": function}, *held)


X = np.array([-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.75])
Y = np.array([1.0, -1.0, 2.0, 0.5, 0.5, -3.0, 0.25])
POSITIVE = np.array([1e-3, 0.2, 1.0, 1.5, 7.0, 40.0])
WHOLE = np.array([-7, -2, -1, 0, 1, 3, 8])
OTHER = np.array([3, -2, 5, 2, 7, -4, 8])
BITS = np.array([0, 1, 7, 0x85EBCA6B, 0xFFFFFFFF, 0x80000000], np.uint32)
FEWER = np.array([3, 2, 5, 0xC2B2AE35, 0xFFFFFFFF, 9], np.uint32)
YES = np.array([True, False, True, True, False])
NO = np.array([True, True, False, True, False])

PAIRS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "remainder": lambda x, y: x % y,
    "larger": jnp.maximum,
    "smaller": jnp.minimum,
    "below": lambda x, y: x < y,
    "at most": lambda x, y: x <= y,
    "above": lambda x, y: x > y,
    "at least": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "unequal": lambda x, y: x != y,
    "chosen": lambda x, y: jnp.where(x < y, x, y),
}


@pytest.mark.parametrize(("x", "y"), [(X, Y), (WHOLE, OTHER), (BITS, FEWER)], ids=list("fiu"))
def test_operations_on_two_numbers_are_those_of_jax(x, y):
    values_of(PAIRS, x, y)
    values_of(PAIRS, x[1], y[1])  # numbers that are not in an array
    values_of(PAIRS, x, y[1])


def test_truths_are_combined_as_in_jax():
    ordered = {name: PAIRS[name] for name in ("larger", "smaller", "equal", "unequal")}
    combined = {
        "and": lambda x, y: x & y,
        "or": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
        "not": lambda x, y: ~x,
    }
    values_of(ordered | combined, YES, NO)


def test_functions_of_a_number_are_those_of_jax():
    functions = {
        "negative": lambda x: -x,
        "absolute": jnp.abs,
        "sign": jnp.sign,
        "floor": jnp.floor,
        "ceil": jnp.ceil,
        "round": jnp.round,
        "square": jnp.square,
        "cube": lambda x: x**3,
        "to the power 0": lambda x: lax.integer_pow(x, 0),
        "exp": jnp.exp,
        "expm1": jnp.expm1,
        "tanh": jnp.tanh,
        "clip": lambda x: jnp.clip(x, -1.0, 0.75),
        "whole": lambda x: x.astype(int),
        "truth": lambda x: x.astype(bool),
    }
    values_of(functions, X)
    values_of(functions, X[2])


def test_functions_of_a_positive_number_are_those_of_jax():
    functions = {
        "log": jnp.log,
        "log1p": jnp.log1p,
        "root": jnp.sqrt,
        "inverse": lambda x: 1 / x,
        "inverse square": lambda x: x**-2,
        "power": lambda x: x**0.7,
        "power of two": lambda x: 2.0**x,
    }
    values_of(functions, POSITIVE)


def test_functions_of_a_whole_number_are_those_of_jax():
    functions = {
        "negative": lambda x: -x,
        "cube": lambda x: x**3,
        "to the power 0": lambda x: lax.integer_pow(x, 0),
        "clamp": lambda x: lax.clamp(-2, x, 3),
        "float": lambda x: x.astype(float),
        "bits": lambda x: x.astype(jnp.uint32),
    }
    values_of(functions, WHOLE)


def test_bits_of_32_wrap_as_in_jax():
    functions = {
        "not": lambda v: ~v,
        "negative": lambda v: -v,
        "right": lambda v: v >> np.uint32(13),
        "left": lambda v: v << np.uint32(5),
        "mixed": lambda v: v ^ (v >> np.uint32(16)),
        "product": lambda v: v * np.uint32(0x85EBCA6B),
        "sum": lambda v: jnp.sum(v, dtype=jnp.uint32),
        "cumsum": jnp.cumsum,
    }
    values_of(functions, BITS)


def test_the_hash_of_trains_is_that_of_jax():
    value_of(lambda keys, k: engine.uniform(keys, k, 17), np.array([123456789], np.uint32), 2**20)


REDUCED = {
    "sum": jnp.sum,
    "max": jnp.max,
    "min": jnp.min,
    "argmax": jnp.argmax,
    "cumsum": jnp.cumsum,
    "share": lambda x: jnp.cumsum(x) * jnp.sum(x),
    "spread": lambda x: jnp.sum((x - jnp.max(x)) ** 2),
}


@pytest.mark.parametrize("x", [X, -X - 9, WHOLE, -9 - WHOLE], ids=["f", "f<0", "i", "i<0"])
def test_what_is_reduced_is_that_of_jax(x):
    values_of(REDUCED, x)


def test_truths_are_reduced():
    functions = {
        "any": jnp.any,
        "first": jnp.argmax,
        "max": jnp.max,
        "number": lambda x: jnp.sum(x.astype(float)),
    }
    for x in (YES, YES | ~YES, YES & ~YES):
        values_of(functions, x)


def test_a_number_that_is_made_an_array_is_reduced_as_one():
    """A column is summed along either of its axes; along the short one it stays."""
    made, given = {}, {}
    for name in ("sum", "max", "min", "cumsum", "argmax"):
        for axis in (0, 1):
            reduced = functools.partial(getattr(jnp, name), axis=axis)
            made[name, axis] = lambda x, f=reduced: f(jnp.broadcast_to(x, (5, 1)))
            given[name, axis] = lambda x, f=reduced: f(x[:, None])
    values_of(made, 2.5)
    values_of(given, X)


def test_arrays_are_joined_and_cut():
    functions = {
        "joined": lambda x, y: jnp.concatenate([x, 2 * y, x[:2], jnp.ones(3)]),
        "across": lambda x, y: jnp.concatenate([x + y, y])[5:9],
        "part of a part": lambda x, y: (x * x)[2:6][1:3],
        "an element": lambda x, y: (x * x)[3] + x[1:3],
        "numbered": lambda x, y: jnp.arange(7.0) + x,
        "of a number": lambda x, y: jnp.concatenate([jnp.full((2, 1), jnp.sum(x)), x[:, None]]),
    }
    values_of(functions, X, Y)
    value_of(lambda x: jnp.arange(7) * x, 3)


def test_arrays_without_elements_do_no_harm():
    empty = np.zeros(0)
    value_of(lambda e, x: jnp.concatenate([e * 2, x]), empty, X)
    value_of(lambda e, x: jnp.sum(e) + x, empty, X)
    value_of(lambda e: jnp.max(e, initial=-3.0), empty)
    value_of(lambda e: jnp.cumsum(e), empty)
    agree(lambda held, carry: (carry[0] + 1.0, carry[1] + held), 2.0, (empty, X))


def test_elements_at_places_are_gathered():
    ring = np.arange(12.0) ** 2
    places = np.array([11, 0, 3, 3, 7])

    def gathered(ring, places):
        return ring.at[places].get(mode="promise_in_bounds")

    value_of(gathered, ring, places)
    value_of(lambda ring, places: gathered(ring, (2 * places) % 12) + ring[2], ring, places)
    value_of(lambda ring: gathered(ring, jnp.array(4)), ring)


@pytest.mark.parametrize("at", [0, 2, 4, -1, 9])
def test_rows_are_read_where_jax_reads_them(at):
    """Places beyond the end are moved to the last row."""
    ring = np.arange(15.0).reshape(5, 3)
    value_of(lambda r, k: lax.dynamic_index_in_dim(r, k, 0, keepdims=False), ring, at)
    value_of(lambda r, k: lax.dynamic_slice_in_dim(r, k, 2, 0).reshape(-1), ring, at)
    value_of(lambda r, k: lax.dynamic_slice_in_dim(r[:, 0], k, 2, 0), ring[:, :1], at)


@pytest.mark.parametrize("at", [0, 2, 4, -1, 9])
def test_rows_are_written_where_jax_writes_them(at):
    ring = np.arange(15.0).reshape(5, 3)

    def step(held, ring):
        return lax.dynamic_update_slice_in_dim(ring, held[0], held[1], 0)

    agree(step, (np.array([[7.0, 8.0, 9.0]]), at), ring, 1)
    agree(step, (np.arange(6.0).reshape(2, 3), at), ring, 1)
    agree(step, (np.array([7.0, 8.0]), at), np.arange(5.0), 1)


def test_rings_are_written_and_read_step_after_step():
    """A delay line whose rows are read before and after the row of the step is written."""

    def step(held, carry):
        k, ring, x = carry
        old = lax.dynamic_index_in_dim(ring, (k + 1) % 8, 0, keepdims=False)
        x = held * x + 0.25 * old
        ring = lax.dynamic_update_index_in_dim(ring, x, k % 8, 0)
        places = (jnp.floor(jnp.abs(x)).astype(jnp.int32) % 8) * 3 + jnp.arange(3, dtype=jnp.int32)
        x = x + 0.125 * ring.reshape(-1).at[places].get(mode="promise_in_bounds")
        return k + 1, ring, x + jnp.sum(ring) / 100

    ring = np.arange(24.0).reshape(8, 3) / 24
    agree(step, np.array([0.9, 0.7, -0.5]), (0, ring, np.array([1.0, 2.0, 3.0])), 40)


def test_two_rows_are_written_in_the_order_of_the_step():
    """The first depends on a sum, the second on nothing, and may be the same row."""

    def step(held, carry):
        k, ring = carry
        ring = lax.dynamic_update_index_in_dim(ring, jnp.sum(ring) + held, k % 4, 0)
        total = jnp.sum(ring)
        ring = lax.dynamic_update_index_in_dim(ring, held, (3 * k) % 4, 0)
        return k + 1, ring + 0.0 * total

    def last(held, carry):
        k, ring = carry
        ring = lax.dynamic_update_index_in_dim(ring, jnp.sum(ring) + held, k % 4, 0)
        return k + 1, lax.dynamic_update_index_in_dim(ring, held, (3 * k) % 4, 0)

    for each in (step, last):
        agree(each, 0.5, (0, np.array([1.0, 2.0, 3.0, 4.0])), 9)


def test_an_output_does_not_disturb_what_else_reads_its_place():
    """Each step replaces an array that other outputs read, in other loops and at other places."""
    x, y, long = np.arange(1.0, 4.0), np.array([0.5, -1.0, 2.0]), np.arange(6.0)
    order = np.array([2, 0, 1])

    def again(values, places):
        return values.at[places].get(mode="promise_in_bounds")

    steps = {
        "exchange": (lambda h, c: (c[1], c[0]), (x, y)),
        "exchange of numbers": (lambda h, c: (c[1], c[0]), (1.0, 2.0)),
        "delay": (lambda h, c: (c[1], c[1] + 1.0), (x, y)),
        "sum after": (lambda h, c: (c[0] + jnp.sum(c[1]), c[1] + c[0]), (x, y)),
        "sum before": (lambda h, c: (c[0] * 2.0, c[1] + jnp.sum(c[0])), (x, y)),
        "sums of old and new": (lambda h, c: (jnp.cumsum(c[0]) + 1.0, jnp.cumsum(c[0])), (x, y)),
        "sums exchanged": (lambda h, c: (jnp.cumsum(c[1]), jnp.cumsum(c[0])), (x, y)),
        "sums once more": (lambda h, c: (jnp.cumsum(c[0]), jnp.cumsum(c[0]) + 1.0), (x, y)),
        "its own first": (lambda h, c: (c[0] * 2.0 + c[0][0], c[1] + c[0][1]), (x, y)),
        "places": (lambda h, c: (c[0] + 1.0, again(c[0], h) + c[1]), (x, y)),
        "turned": (lambda h, c: (again(c[0], h),), (x,)),
        "part": (lambda h, c: (c[1][1:4], c[1] * 1.5), (x, long)),
        "part summed": (lambda h, c: (jnp.sum(c[1][1:4]), c[1] * 1.5), (0.0, long)),
        "first of all": (lambda h, c: (jnp.broadcast_to(c[0][0], (3,)), c[1]), (x, y)),
        "one moved": (lambda h, c: (c[1][0], jnp.concatenate([c[1][1:], c[1][:1]])), (0.0, long)),
        "same twice": (lambda h, c: (c[0] + c[1], c[0] + c[1]), (x, y)),
        "joined": (lambda h, c: (c[0] + 1, jnp.concatenate([c[0], c[0] * 2])), (x, long)),
        "row": (
            lambda h, c: (c[0] + 1, lax.dynamic_update_index_in_dim(c[1], c[0], 1, 0)),
            (x, long.reshape(2, 3)),
        ),
        "replaced": (
            lambda h, c: (lax.dynamic_update_index_in_dim(c[0], 5.0, 1, 0) * c[1], c[1]),
            (x, 2.0),
        ),
    }
    for name, (step, carry) in steps.items():
        try:
            agree(step, order, carry, 3)
        except AssertionError as fault:
            raise AssertionError(name) from fault


def test_what_is_held_stays():
    loops = Loops.of(lambda held, carry: carry + held, np.ones(3), np.zeros(3))
    held, carry = loops.pack(np.array([1.0, 2.0, 3.0])), np.zeros(3)
    loops.repeat(held, carry, 0)
    assert carry.tolist() == [0.0, 0.0, 0.0]
    for count in (1, 4):
        loops.repeat(held, carry, count)
    assert carry.tolist() == [5.0, 10.0, 15.0]
    assert held.tolist() == [1.0, 2.0, 3.0]


def test_steps_do_as_well_together_as_one_at_a_time():
    def step(held, carry):
        k, x = carry
        pull = jnp.where(x > held, -0.5 * x, 0.1 * jnp.sum(x))
        return k + 1, x + pull * jnp.exp(-k.astype(float) / 7)

    start = jnp.array(0), jnp.array([0.3, 1.0, -2.0])
    together = repeated(step, jnp.array(0.25), start, 12)
    loops = Loops.of(step, jnp.array(0.25), start)
    single = loops.pack(start)
    for _ in range(12):
        loops.repeat(loops.pack(0.25), single, 1)
    assert together.tolist() == single.tolist()
    np.testing.assert_allclose(together, by_jax(step, jnp.array(0.25), start, 12), **NEAR)


BEYOND = {
    "sort": (jnp.sort, "sort"),
    "sin": (jnp.sin, "sin"),
    "product": (jnp.prod, "reduce_prod"),
    "turned round": (lambda x: x[::-1], "rev"),
    "every second": (lambda x: x[::2], "slice"),
    "a column": (lambda x: x.reshape(3, 2)[:, 1], "slice"),
    "a matrix": (lambda x: x[:, None] * x[None], "mul"),
    "a loop": (lambda x: lax.fori_loop(0, 3, lambda _, x: x + 1, x), "scan"),
    "a condition": (lambda x: lax.cond(x[0] > 0, jnp.exp, jnp.negative, x), "cond"),
    "a sum from the end": (lambda x: lax.cumsum(x, reverse=True), "cumsum"),
    "columns side by side": (lambda x: jnp.concatenate([x[:, None], x[:, None]], 1), "concatenate"),
    "any place": (lambda x: x.at[x.astype(int)].get(mode="clip"), "gather|clamp"),
    "places in what is computed": (
        lambda x: (x + 1).at[x.astype(int)].get(mode="promise_in_bounds"), "computed array"),
    "short numbers": (lambda x: x.astype(jnp.uint8), "numbers of type uint8"),
    "complex numbers": (lambda x: jnp.abs(x.astype(complex)), "numbers of type complex"),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_what_loops_cannot_do_is_refused_by_name(name):
    function, says = BEYOND[name]
    x = jnp.arange(6.0)
    like = jax.eval_shape(function, x)
    with pytest.raises(NotInLoopsError, match=says):
        Loops.of(lambda held, _: function(held), x, jnp.zeros(like.shape, like.dtype))


def test_rings_that_are_not_replaced_are_refused():
    """A row is written in place: what was there before is no more."""

    def write(ring):
        return lax.dynamic_update_index_in_dim(ring, 9.0, 1, 0)

    x = jnp.arange(6.0)
    for step in (
        lambda held, carry: (write(carry[0]), carry[0]),
        lambda held, carry: (carry[0], write(carry[0])),
        lambda held, carry: (write(carry[0]), carry[1] * carry[0]),
        lambda held, carry: (write(carry[0]), carry[1] + write(carry[0] * 1.0)),
    ):
        with pytest.raises(NotInLoopsError, match="array"):
            Loops.of(step, x, (x, x))
    with pytest.raises(NotInLoopsError, match="constant array"):
        Loops.of(lambda held, carry: write(held) + carry, x, x)
