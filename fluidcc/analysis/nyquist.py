"""Frequency responses of the loops through each link, as Nyquist's criterion looks at them."""

import dataclasses

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.margins import followed, heard_signals, loop_gain
from fluidcc.analysis.winding import frequency_bound


@dataclasses.dataclass(frozen=True)
class LoopCurve:
    """The response L(i w) of the loop cut at a link's signal, all other loops closed.

    `link` is the number of the link, `frequency` (k,) is w [rad/s], `response` (k,) is L.
    """

    link: int
    frequency: Array
    response: Array


def loop_curves(system: Linear) -> tuple[LoopCurve, ...]:
    """The curve of each link whose signal varies and is heard, over all that `margins` looks at.

    Raises ArithmeticError where a curve cannot be followed.
    """
    scale = frequency_bound(Characteristic(system)) or 1.0
    heard = [k for k in range(len(system.signals)) if heard_signals(system, k)]
    curves = []
    for link in heard:
        frequency, log = followed(loop_gain(system, link), scale=scale)
        curves.append(LoopCurve(link, frequency, np.exp(log)))
    return tuple(curves)
