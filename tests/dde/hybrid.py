"""TCP under RED with every regime as a mode: the four cases on which orders are measured."""

import jax.numpy as jnp
import numpy as np

import fluidcc as fc

BUSY, EMPTY, FULL = 0, 1, 2  # queue
BELOW, SLOPE, ABOVE = 0, 1, 2  # delayed average and RED's corners


def round_trip(queue, p):
    return p["propagation"] + queue / p["capacity"]


def growth(y, p):
    return p["flows"] * y[0] / round_trip(y[1], p) - p["capacity"]


def field(t, y, z, p, mode):
    window, queue, average = y
    old_window, old_queue, old_average = z[0]
    ramp = p["max_p"] * (old_average - p["min_th"]) / (p["max_th"] - p["min_th"])
    marked = jnp.where(mode[1] == SLOPE, ramp, jnp.where(mode[1] == ABOVE, 1.0, 0.0))
    cut = window * old_window / (2.0 * round_trip(old_queue, p)) * marked
    filling = jnp.where(mode[0] == BUSY, growth(y, p), 0.0)
    return jnp.stack([1.0 / round_trip(queue, p) - cut, filling, p["filter"] * (queue - average)])


def start(t, y, z, p):
    queue = jnp.where((y[1] <= 0.0) & (growth(y, p) < 0.0), EMPTY, BUSY)
    average = z[0][2]
    region = jnp.where(average < p["min_th"], BELOW, SLOPE)
    return jnp.stack([queue, jnp.where(average > p["max_th"], ABOVE, region)])


def guards(t, y, z, p, mode):
    queue, average, rise = y[1], z[0][2], growth(y, p) / p["capacity"]
    busy, region = mode[0] == BUSY, mode[1]
    return jnp.stack(
        [
            jnp.where(busy, queue, 1.0),
            jnp.where(busy, p["buffer"] - queue, 1.0),
            jnp.where(busy, 1.0, jnp.where(mode[0] == EMPTY, -rise, rise)),
            jnp.where(region == BELOW, p["min_th"] - average, 1.0),
            jnp.where(region == SLOPE, average - p["min_th"], 1.0),
            jnp.where(region == SLOPE, p["max_th"] - average, 1.0),
            jnp.where(region == ABOVE, average - p["max_th"], 1.0),
        ]
    )


def switch(t, y, z, p, mode, hit):
    queue = jnp.where(hit[0], 0.0, jnp.where(hit[1], p["buffer"], y[1]))
    state = jnp.where(hit[0], EMPTY, jnp.where(hit[1], FULL, jnp.where(hit[2], BUSY, mode[0])))
    up, down = (hit[3] | hit[5]).astype(mode.dtype), (hit[4] | hit[6]).astype(mode.dtype)
    return jnp.stack([state.astype(mode.dtype), mode[1] + up - down]), y.at[1].set(queue)


MODES = fc.Modes(start, guards, switch)
LAGS = (lambda t, y, p: round_trip(y[1], p),)
END = 9.6  # s, forty round trips


def history(t, p):
    return p["start"]


def case(name):
    """Parameters of one case, with its start close to equilibrium except for a slow start."""
    p = {
        "flows": 60.0,
        "propagation": 0.2,
        "capacity": 3750.0,
        "min_th": 150.0,
        "max_th": 200.0,
        "max_p": 0.1,
        "buffer": 800.0,
    }
    weight, nudge = {
        "smooth": (1.33e-6, (0.98, 1.02)),
        "growing": (2e-4, (0.9, 1.0)),
        "cycle": (2e-4, (0.9, 1.0)),
        "slow_start": (2e-3, None),
    }[name]
    if name == "growing":
        p.update(min_th=100.0, max_th=400.0, max_p=0.02)
    if name == "slow_start":
        p.update(min_th=20.0, max_th=60.0, max_p=0.2, buffer=300.0)
    p["filter"] = -p["capacity"] * np.log1p(-weight)
    low, high = p["min_th"], p["max_th"]
    for _ in range(100):  # equilibrium by bisection on the queue
        queue = 0.5 * (low + high)
        mark = p["max_p"] * (queue - p["min_th"]) / (p["max_th"] - p["min_th"])
        window = np.sqrt(2.0 / mark)
        filling = growth(np.array([window, queue]), p) > 0.0
        low, high = (queue, high) if filling else (low, queue)
    if nudge is None:
        p["start"] = np.array([1.0, 0.0, 0.0])
    else:
        p["start"] = np.array([window * nudge[0], queue * nudge[1], queue])
    return {key: jnp.asarray(value) for key, value in p.items()}


def run(p, mesh, *, end=END, **more):
    given = {"lags": LAGS, "params": p, "modes": MODES, "mesh": mesh}
    return fc.solve_dde(field, history, 0.0, end, **given, **more)
