"""The least marking threshold that keeps a link busy, found by integration."""

import jax.numpy as jnp
import pytest
from scipy.optimize import brentq

import fluidcc as fc

PIPE = 10.0  # packets in flight without a queue, at one packet per unit of time

BELOW, HEARD_LATER = 0, 1


def field(t, y, z, params, mode):
    """One self-clocked flow: its window grows by 1/W per ACK, and a clock runs after a mark."""
    window = y[0]
    return jnp.stack([1.0 / window, jnp.where(mode == HEARD_LATER, 1.0, 0.0)])


def start(t, y, z, params):
    return jnp.asarray(BELOW)


def guards(t, y, z, params, mode):
    threshold, age = params
    to_mark, to_halving = threshold - (y[0] - PIPE), age - y[1]
    return jnp.stack([jnp.where(mode == BELOW, to_mark, to_halving)])


def switch(t, y, z, params, mode, hit):
    halved = jnp.stack([y[0] / 2.0, jnp.asarray(0.0)])
    return 1 - mode, jnp.where(mode == BELOW, y, halved)


def history(t, params):
    return jnp.array([PIPE, 0.0])


def lowest_queue(threshold: float, extra: float) -> float:
    """Least queue of the cycle, where a mark is heard `PIPE + extra` after it is set."""
    params = (jnp.asarray(threshold), jnp.asarray(PIPE + extra))
    modes = fc.Modes(start, guards, switch)
    run = fc.solve_dde(
        field, history, 0.0, 400.0, lags=(), params=params, modes=modes, mesh=fc.Located(step=2.0)
    )
    assert int(run.status) == 0
    return float(jnp.min(run.y[run.t > 200.0, 0])) - PIPE


@pytest.mark.parametrize(
    ("waits", "least"),
    [(1.0, 9.02498), (0.0, 9.49359)],  # tail: the packet marked still has to wait; front: not
    ids=["tail", "front"],
)
def test_result_3_of_the_mark_front_paper(waits, least):
    """Durresi et al. (2001), section 4: -N + sqrt(N^2 + 4 (CT)^2) - CT for marks at the tail, and
    sqrt(4 (CT)^2 - 2 N CT) - CT at the front, for one flow."""
    found = brentq(lambda at: lowest_queue(at, waits * at), 8.0, 10.0, xtol=1e-8)
    assert found == pytest.approx(least, abs=2e-5)
