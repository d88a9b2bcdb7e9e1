"""A user-defined delay equation: production that falls with the amount, after a delay."""

import jax.numpy as jnp

import fluidcc as fc


def field(t, y, z, p):
    """dy/dt = beta y(t - tau) / (1 + y(t - tau)^n) - gamma y."""
    return p["beta"] * z[0] / (1 + z[0] ** p["n"]) - p["gamma"] * y


def lag(t, y, p):
    """The only lag [s]; it may depend on t, y and p."""
    return p["tau"]


params = {"beta": 2.0, "gamma": 1.0, "n": 6.0, "tau": 2.0}
model = fc.DelayEquation(field, [lag], params, guess=0.9)

if __name__ == "__main__":
    times = jnp.linspace(0.0, 60.0, 601)
    run = fc.solve_dde(field, lambda t, p: 0.5, 0.0, 60.0, lags=[lag], params=params, ts=times)
    print(fc.Status(int(run.status)).name, "y(60) =", float(run.y[-1]))
    print(fc.stability(model))
    print(fc.crossings(model, "tau", 0.1, 3.0))
    print(fc.boundary(model, "tau", "n", x_range=(0.1, 3.0), y_range=(2.5, 10.0)))
    print(fc.cycle(model))
