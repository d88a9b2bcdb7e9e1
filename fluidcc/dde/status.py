"""How an integration ended: a code per trajectory whose text is advice."""

import enum

from jax import Array

from fluidcc.arrays import jnp


class Status(enum.IntEnum):
    """Outcome of one trajectory; the first failure is kept, and its `advice` names the remedy.

    Examples
    --------
    >>> import fluidcc as fc
    >>> [status.name for status in fc.Status][:3]
    ['ok', 'nonfinite', 'lag_negative']
    """

    ok = 0
    nonfinite = 1
    lag_negative = 2
    lag_below_step = 3
    lag_exceeds_ring = 4
    history_out_of_range = 5
    event_limit = 6
    step_limit = 7
    nonmonotone_argument = 8
    tolerance_not_met = 9

    @property
    def advice(self) -> str:
        """The cause and the remedy."""
        return _ADVICE[self]


_ADVICE = {
    Status.ok: "the run reached its end",
    Status.nonfinite: "the state or its slope is not finite; check the parameters, or use a "
    "smaller step",
    Status.lag_negative: "a lag is negative, so the equation asks for the future; check the lags",
    Status.lag_below_step: "a lag is shorter than the step or does not settle within it; use a "
    "smaller step, or Located, which iterates such steps",
    Status.lag_exceeds_ring: "a lag is longer than the history kept; give Uniform more slots",
    Status.history_out_of_range: "the history is not finite where a lag reaches back to; give a "
    "history that covers the longest lag",
    Status.event_limit: "too many events without progress, or too many open breaking points; the "
    "mode chatters: let the switch move the state off the boundary, or merge the modes",
    Status.step_limit: "the step limit was reached before the end; raise max_steps, or use a "
    "larger step",
    Status.nonmonotone_argument: "t - lag went back over a breaking point, which multiplies "
    "breaking points; bound the growth of the lag (for networks: delay = 'fifo')",
    Status.tolerance_not_met: "the error estimate stayed above the tolerance at the smallest "
    "steps tried; loosen rtol or atol, or, if the field, a lag or the history jumps there, declare "
    "it: a switch by modes, a jump at the start by y0",
}


def first(status: Array, condition: Array, code: Status) -> Array:
    """Set `code` where the condition holds and nothing has failed yet."""
    return jnp.where((status == Status.ok) & condition, jnp.int32(code), status)
