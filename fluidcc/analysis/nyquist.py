"""Frequency responses of the loops through each link, as Nyquist's criterion looks at them."""

import dataclasses

import numpy as np

from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.margins import followed, heard_links, loop_gain, scale_of


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
    scale, curves = scale_of(system), []
    for link in heard_links(system):
        frequency, log = followed(loop_gain(system, link), scale=scale)
        curves.append(LoopCurve(link, frequency, np.exp(log)))
    return tuple(curves)
