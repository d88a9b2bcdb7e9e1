"""Located runs of small systems with closed forms: breaking points, starved queues and kinks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidcc.dde import located
from fluidcc.dde.integrate import Status
from fluidcc.dde.system import Events, System
from fluidcc.model.delays import entry_time


def _run(system, y0, end, step, args=(), capacity=1024):
    run = located.integrate(
        system, jnp.asarray(y0), jnp.asarray(0.0), jnp.asarray(end), jnp.asarray(step), args,
        capacity=capacity, jump=False,
    )  # fmt: skip
    return located.states(run, jnp.asarray([end]), len(y0))[0], run


def _marks(times, moved=lambda y: y):
    """A mode that counts the times which have passed."""
    ends = jnp.asarray([*times, jnp.inf])

    def guards(t, y, z, args, mode):
        return jnp.where(jnp.isfinite(ends[mode]), ends[mode] - t, 1.0)

    def switch(t, y, z, args, mode, hit):
        return mode + jnp.any(hit).astype(jnp.int32), jnp.where(jnp.any(hit), moved(y), y)

    return Events(lambda t, y, z, args: jnp.zeros(1, jnp.int32), guards, switch)


def test_laws_that_are_constant_by_pieces_pass_jumps_on():
    """c jumps to 2 at 0.3; a' = [c(t - 1) < 1], b' = a(t - 1): b'' and b' break at 2.3."""
    system = System(
        slope=lambda t, y, z, args, mode: jnp.stack([0.0 * t, jnp.where(z[0] < 1, 1.0, 0.0), z[1]]),
        lags=lambda t, y, args, look: jnp.array([1.0, 1.0]),
        columns=((0,), (1,)), history=lambda t, column, args: 0.0 * t,
        record=lambda t, y, z, args, mode: y, events=_marks([0.3], lambda y: y.at[0].set(2.0)),
    )  # fmt: skip
    run = jax.jit(lambda step: _run(system, [0.0, 0.0, 0.0], 4.0, step)[0])
    # a rises to 1.3 until 1.3 and stays: b(4) is its integral up to 3
    exact = 1.3**2 / 2 + 1.3 * 1.7
    for step in (0.07, 0.0175):
        assert float(run(jnp.asarray(step))[2]) == pytest.approx(exact, abs=1e-12)


def test_a_starved_queue_that_does_not_empty_keeps_its_clock():
    """Nothing arrives from 1 to 1.4, in so many pieces: what leaves then has waited since 1."""
    times = [*np.linspace(1.0, 1.4, 60 + 1), 1.8]
    rates = jnp.asarray([0.5, *[-1.0] * 60, 0.3, 0.1])

    def lags(t, y, args, look):
        wait = jax.vmap(lambda s: look(s, 0, 0))
        return t - entry_time(jnp.atleast_1d(t) - 0.5, wait)

    system = System(
        slope=lambda t, y, z, args, mode: jnp.stack([rates[mode[0]], z[0]]), lags=lags,
        columns=((0,),), history=lambda t, column, args: jnp.where(column == 0, 1.0, 0.0 * t),
        record=lambda t, y, z, args, mode: y, events=_marks(times),
    )  # fmt: skip
    end, run = jax.jit(lambda: _run(system, [1.0, 0.0], 4.0, 0.05))()
    assert Status(int(run.status)) is Status.ok
    # the integral of q(s) over t with s + q(s) = t - 0.5, from the pieces of q
    pieces = [1.5, 1.5 + 0.5 / 1.5 * 1.5**2 / 2, 1.1 * 0.52 + 0.3 / 1.3 * 0.52**2 / 2,
              1.22 * 0.48 + 0.1 / 1.1 * 0.48**2 / 2]  # fmt: skip
    assert float(end[1]) == pytest.approx(sum(pieces), abs=1e-11)


def test_a_queue_let_go_at_a_kink_moves_with_it():
    """Arrivals begin when exp(-t) falls below p; until then the queue is held at 0."""

    def rise(t, y, p):
        return jnp.where(y[1] > p, 0.0, 2.0 + 0.1 * t) - 1.0

    def slope(t, y, z, p, mode):
        return jnp.stack([jnp.where(mode[0] == 0, rise(t, y, p), 0.0), -y[1]])

    events = Events(
        lambda t, y, z, p: jnp.full(1, -1, jnp.int32),
        lambda t, y, z, p, mode: jnp.where(mode == 0, y[0] + 1.0, -rise(t, y, p)),
        lambda t, y, z, p, mode, hit: (jnp.where(jnp.any(hit), 0, mode), y),
    )
    system = System(
        slope=slope, lags=lambda t, y, p, look: jnp.ones(1), columns=((0,),),
        history=lambda t, column, p: 0.0 * t, record=lambda t, y, z, p, mode: y, events=events,
        kinks=lambda t, y, z, p, mode: y[1:] - p,
    )  # fmt: skip
    queue = jax.jit(
        lambda p: jax.jvp(lambda p: _run(system, [0.0, 1.0], 2.0, 0.05, p)[0][0], (p,), (1.0,))
    )
    for p in np.linspace(0.3, 0.8, 12):
        begin = -np.log(p)
        value, slope_by_p = map(float, queue(jnp.asarray(p)))
        assert value == pytest.approx((2 - begin) + 0.05 * (4 - begin**2), abs=2e-7)
        assert slope_by_p == pytest.approx((1 + 0.1 * begin) / p, rel=1e-5)
